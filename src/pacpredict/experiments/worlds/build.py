"""Worlds on disk: what is missing is trained, smallest ensembles first, and an interrupted run goes on where it was."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pacpredict.experiments.worlds.family import MODELS_PER_BLOCK, Family, open_family
from pacpredict.experiments.worlds.tables import SETTINGS
from pacpredict.experiments.worlds.world import World


class Worlds(NamedTuple):
    """All worlds of a family."""

    family: Family
    worlds: list[World]


def open_worlds(name: str, cache: Path, n_worlds: int) -> Iterator[Worlds]:
    """Yield the families of a setting with their worlds."""
    for number in range(SETTINGS[name].n_families):
        folder = cache / name / f"family-{number:02d}"
        family = open_family(name, number, folder)
        yield Worlds(family, [World(family, number, i, folder) for i in range(n_worlds)])


def build(
    name: str, cache: Path, n_worlds: int, n_models: int, progress: Callable[[int, int], None]
) -> list[Worlds]:
    """Train all models that are missing; returns the families."""
    found = list(open_worlds(name, cache, n_worlds))
    worlds = [world for family in found for world in family.worlds]
    n_blocks = n_models // MODELS_PER_BLOCK
    for block in range(n_blocks):
        for i, world in enumerate(worlds):
            world.train(block)
            if block == 0:
                world.train_whole()
            progress(block * len(worlds) + i + 1, n_blocks * len(worlds))
    return found
