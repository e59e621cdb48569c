"""For every query: the votes, the unit that explains them best, and the votes without it.

Any rule that removes one unit under some condition is then a choice between two counts, without any model.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.experiments.worlds.world import World
from pacpredict.files import write_whole
from pacpredict.npz import from_bytes, to_bytes
from pacpredict.training.subsets import Subsets
from pacpredict.types import FloatArray, IntArray, Votes
from pacpredict.votes.leave_one_out import LeaveOneOut

Counts = npt.NDArray[np.uint16]  # (n_queries, n_classes)


class Explained(NamedTuple):
    plain: Counts
    removed: Counts  # if the models that were trained on the unit follow the others
    twice: Counts  # by the rule of the package, with two rounds
    z: npt.NDArray[np.float32]  # influence of the unit in standard errors; 0 where all models agree
    effect: npt.NDArray[np.float32]  # the difference of shares that has this Z
    n_units: int
    n_models: int


def explain(world: World, blocks: Sequence[int]) -> Explained:
    """Explain the votes of an ensemble of some blocks, or read what was found before."""
    path = world.folder / "explained" / f"{world.name}-{blocks[0]:02d}-{len(blocks):02d}.npz"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        found = _explain(world.votes(blocks), world.membership(blocks), world.family.n_classes)
        write_whole(path, to_bytes({key: np.asarray(value) for key, value in found._asdict().items()}))
    stored = from_bytes(path.read_bytes())
    return Explained(**{key: value if value.ndim else int(value) for key, value in stored.items()})  # type: ignore[arg-type]


def _explain(votes: Votes, subsets: Subsets, n_classes: int) -> Explained:
    n = subsets.n_units
    rule = LeaveOneOut.of(subsets.packed, n, n_classes, threshold=0.0)
    units = rule.most_influential(votes)
    trained = subsets.matrix().T
    z, effect = np.zeros((2, len(votes)), np.float32)
    for chosen in np.array_split(np.flatnonzero(units >= 0), max(1, len(votes) // 10_000)):
        z[chosen], effect[chosen] = _influence(votes[chosen], trained[units[chosen]], n_classes)
    twice = LeaveOneOut.of(subsets.packed, n, n_classes, rounds=2)
    return Explained(
        count(votes, n_classes),
        count(rule.apply(votes), n_classes),
        count(twice.apply(votes), n_classes),
        z,
        effect,
        n,
        votes.shape[1],
    )


def _influence(votes: Votes, trained: npt.NDArray[np.bool_], n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Compute Z of one unit per query, and the difference of shares that has it."""
    n_in = trained.sum(axis=1)
    n_out = votes.shape[1] - n_in
    best, effect = np.zeros((2, len(votes)))
    for c in range(n_classes):
        is_c = votes == c
        share = is_c.mean(axis=1)
        difference = np.abs((is_c & trained).sum(axis=1) / n_in - (is_c & ~trained).sum(axis=1) / n_out)
        error = np.sqrt(share * (1 - share) * (1 / n_in + 1 / n_out))
        z = np.divide(difference, error, out=np.zeros(len(votes)), where=error > 0)
        effect = np.where(z > best, difference, effect)
        best = np.maximum(best, z)
    return best, effect


def count(votes: Votes, n_classes: int) -> Counts:
    return np.stack([(votes == c).sum(axis=1) for c in range(n_classes)], axis=1).astype(np.uint16)


def own_and_best_other(counts: Counts, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return how many vote for the given label of each query, and for the strongest of the others."""
    rows = np.arange(len(counts))
    own = counts[rows, labels].astype(np.float64)
    others = counts.astype(np.int32)
    others[rows, labels] = -1
    return own, others.max(axis=1).astype(np.float64)
