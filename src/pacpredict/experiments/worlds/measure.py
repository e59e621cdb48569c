"""What a rule costs and what it hides, by decoder, in all worlds of a setting."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.experiments.worlds.answers import Decoder, is_charged, label_probability
from pacpredict.experiments.worlds.attack import Found, Seen, attack
from pacpredict.experiments.worlds.build import Worlds
from pacpredict.experiments.worlds.explain import Counts, Explained, count, explain, own_and_best_other
from pacpredict.experiments.worlds.family import KINDS, MODELS_PER_BLOCK, Family
from pacpredict.experiments.worlds.rules import RULES
from pacpredict.types import BoolArray, IntArray

_SEED = 5
UNPROTECTED = "one model"  # trained on all records, and asked without noise


class Told(NamedTuple):
    """What answers tell about the targets of one kind."""

    kind: str
    with_it: float  # how often one answer at the record is the telling label, with the coin up
    without: float
    one_question: Found
    variants: Found
    variants_and_charges: Found | None


class Measured(NamedTuple):
    rule: str
    decoder: str
    n_models: int
    n_ensembles: int  # per family
    accuracy: float
    balanced_accuracy: float
    rare_recall: float  # of the class with the fewest test records
    told: list[Told]


class Ensemble(NamedTuple):
    """The counts of votes that an ensemble or one model gives to all queries of a family."""

    counts: Counts
    coins: BoolArray
    world: int


def ensembles(worlds: Worlds, n_models: int) -> Iterator[tuple[Explained, BoolArray, int]]:
    """Yield what is known of every ensemble of so many models that the blocks on disk make up."""
    n_blocks = n_models // MODELS_PER_BLOCK
    for i, world in enumerate(worlds.worlds):
        first = 0
        while all(world.has(block) for block in range(first, first + n_blocks)):
            yield explain(world, range(first, first + n_blocks)), world.coins, i
            first += n_blocks


def unprotected(worlds: Worlds) -> list[Ensemble]:
    n_classes = worlds.family.n_classes
    return [
        Ensemble(count(world.votes_of_whole(), n_classes), world.coins, i)
        for i, world in enumerate(worlds.worlds)
    ]


def measure(
    families: Sequence[Family],
    answering: Sequence[Sequence[Ensemble]],
    rule: str,
    decoder: Decoder,
    *,
    kinds: Sequence[str] = KINDS,
    charges: bool = True,
) -> Measured:
    """Measure one rule and decoder; `answering` has the ensembles of each family."""
    scores = [
        _accuracies(family, each, decoder)
        for family, some in zip(families, answering, strict=True)
        for each in some
    ]
    told = [
        _tell(families, answering, KINDS.index(kind), decoder, charges) for kind in KINDS if kind in kinds
    ]
    n_models = int(answering[0][0].counts[0].sum())
    accuracy, balanced, rare = np.mean(scores, axis=0).tolist()
    return Measured(rule, decoder, n_models, len(answering[0]), accuracy, balanced, rare, told)


def apply_rule(rule: str, found: Sequence[tuple[Explained, BoolArray, int]]) -> list[Ensemble]:
    return [Ensemble(RULES[rule](explained), coins, world) for explained, coins, world in found]


def _accuracies(family: Family, ensemble: Ensemble, decoder: Decoder) -> tuple[float, float, float]:
    counts, truth = ensemble.counts[-len(family.truth) :], family.truth
    right = label_probability(counts, truth, decoder)
    recalls = [right[truth == c].mean() for c in np.unique(truth)]
    rare = np.bincount(truth)[np.unique(truth)].argmin()
    return float(right.mean()), float(np.mean(recalls)), float(recalls[rare])


def _tell(
    families: Sequence[Family],
    answering: Sequence[Sequence[Ensemble]],
    kind: int,
    decoder: Decoder,
    charges: bool,
) -> Told:
    seen = [_see(family, some, kind, decoder) for family, some in zip(families, answering, strict=True)]
    at_record = [one.at(slice(1)) for one in seen]
    with_it, without = (
        float(np.concatenate([one.probability[:, :, 0][choose(one.coins)] for one in seen]).mean())
        for choose in _BOTH
    )

    def best(given: Sequence[Seen]) -> Found:
        return attack(given, np.random.default_rng(_SEED))

    labels_only = [one._replace(charged=None) for one in seen]
    return Told(
        KINDS[kind],
        with_it,
        without,
        best([one._replace(charged=None) for one in at_record]),
        best(labels_only),
        best(seen) if charges else None,
    )


_BOTH: tuple[Callable[[BoolArray], BoolArray], ...] = (lambda coins: coins, lambda coins: ~coins)


def _see(family: Family, some: Sequence[Ensemble], kind: int, decoder: Decoder) -> Seen:
    """Collect what the answers about the targets of one kind look like."""
    n, v = family.n_targets, family.n_variants
    rows = slice(kind * n * v, (kind + 1) * n * v)
    labels: IntArray = np.repeat(family.hinted_labels()[kind * n : (kind + 1) * n], v)
    probability, margin, charged = [], [], []
    for each in some:
        counts = each.counts[rows]
        own, other = own_and_best_other(counts, labels)
        probability.append(label_probability(counts, labels, decoder).astype(np.float32))
        margin.append(((own - other) / counts[0].sum()).astype(np.float32))
        charged.append(is_charged(counts))
    shape = (len(some), n, v)

    def stack(parts: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        return np.stack(parts).reshape(shape)

    coins = np.stack([each.coins[kind * n : (kind + 1) * n] for each in some])
    worlds = np.array([each.world for each in some])
    return Seen(stack(probability), stack(margin), stack(charged), coins, worlds)
