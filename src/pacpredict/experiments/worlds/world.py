"""One world: a pool in which coins decide about the targets, its models in blocks of 64, and how they vote.

Each record is in exactly half of the models of every block, so that ensembles of 64, 128, ... models are blocks put
together, and one block after the other can be trained, kept, and trained further.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pacpredict.experiments.worlds.family import (
    MODELS_PER_BLOCK,
    SEED,
    Family,
    train_models,
    with_labels,
)
from pacpredict.files import write_whole
from pacpredict.npz import from_bytes, to_bytes
from pacpredict.training.subsets import Subsets
from pacpredict.types import BoolArray, Votes

_WHOLE = 10**6  # in the place of a block: one model of all records


class World:
    def __init__(self, family: Family, family_number: int, number: int, folder: Path) -> None:
        self.family = family
        self._key = (SEED, family_number, number)
        self.name = f"world-{number:03d}"
        self.folder = folder
        rng = np.random.default_rng([*self._key, 0])
        self.coins: BoolArray = rng.random(len(family.targets)) < 0.5  # in the pool, or flipped
        n_asked = 2 * family.n_targets  # about presence
        absent = family.targets[:n_asked][~self.coins[:n_asked]]
        self.present: BoolArray = np.ones(family.n_pool, np.bool_)
        self.present[absent] = False

    def has(self, block: int) -> bool:
        return self._file(block).exists()

    def subsets(self, blocks: Sequence[int]) -> BoolArray:
        """Return which records of the pool each model of some blocks was trained on; absent ones count as others do."""
        drawn = [
            Subsets.balanced(
                MODELS_PER_BLOCK, self.family.n_pool, np.random.default_rng([*self._key, 1, block])
            )
            for block in blocks
        ]
        return np.concatenate([one.matrix() for one in drawn])

    def membership(self, blocks: Sequence[int]) -> Subsets:
        """Return the subsets of the records that are in the pool."""
        return Subsets.of(self.subsets(blocks)[:, self.present])

    def train(self, block: int) -> None:
        """Train the models of a block unless that was done, and keep their votes."""
        self._train(block, self.subsets([block]) & self.present)

    def train_whole(self) -> None:
        """Train one model on all records of the pool, which nothing protects."""
        self._train(_WHOLE, self.present[None, :])

    def _train(self, block: int, subsets: BoolArray) -> None:
        if self.has(block):
            return
        family = self.family
        labels = family.work.everything.labels.copy()
        flipped = np.flatnonzero(self.coins[2 * family.n_targets :]) + 2 * family.n_targets
        labels[family.targets[flipped]] = family.false_labels[flipped]
        seed = int(np.random.SeedSequence([*self._key, 2, block]).generate_state(1)[0])
        votes = train_models(with_labels(family.work, labels), subsets, seed)(family.queries)
        packed = np.packbits(votes == 1, axis=1) if family.n_classes == 2 else votes.astype(np.uint8)
        write_whole(self._file(block), to_bytes({"votes": packed}))

    def votes(self, blocks: Sequence[int]) -> Votes:
        """Return the votes (n_queries, n_models) of some blocks."""
        return np.concatenate([self._read(block, MODELS_PER_BLOCK) for block in blocks], axis=1)

    def votes_of_whole(self) -> Votes:
        """Return what the unprotected model says (n_queries, 1)."""
        return self._read(_WHOLE, 1)

    def _read(self, block: int, n_models: int) -> Votes:
        packed = from_bytes(self._file(block).read_bytes())["votes"]
        if self.family.n_classes == 2:
            packed = np.unpackbits(packed, axis=1, count=n_models)
        return packed.astype(np.int16)

    def _file(self, block: int) -> Path:
        name = "whole" if block == _WHOLE else f"{block:02d}"
        return self.folder / f"{self.name}-{name}.npz"
