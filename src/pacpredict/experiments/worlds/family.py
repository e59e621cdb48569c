"""A family of worlds: one pool, the targets in it, and the queries that all worlds of the family are asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pacpredict.experiments.worlds.tables import SETTINGS, TARGET
from pacpredict.experiments.worlds.variants import vary
from pacpredict.files import write_whole
from pacpredict.learners.learner import Learner, TrainingSet, subset_of
from pacpredict.npz import from_bytes, to_bytes
from pacpredict.tables.options import TableOptions
from pacpredict.training.block import Block, Work, train_block
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.types import BoolArray, IntArray, Votes

SEED = 23
MODELS_PER_BLOCK = 64
_BLOCKS_TO_CHOOSE_BY = 2  # of models, to find out which records are remembered

Kind = Literal["remembered", "ordinary", "flipped"]
KINDS: tuple[Kind, ...] = ("remembered", "ordinary", "flipped")


@dataclass(frozen=True, eq=False)
class Family:
    """Records 0 to n_pool - 1 are the pool, with all targets; the others are for tests.

    A target of the first two kinds is in the pool of a world, or is not; one of the third is always in, with its own
    label or with the false one.
    """

    work: Work  # with true labels
    queries: Any  # prepared: variants of one target after the other, then test records
    n_pool: int
    n_variants: int  # candidates per target, with the record itself
    targets: IntArray  # (3 * n_targets,) records, one kind after the other
    false_labels: IntArray  # of all targets

    @property
    def n_classes(self) -> int:
        return len(self.work.everything.names)

    @property
    def n_targets(self) -> int:
        """Of each kind."""
        return len(self.targets) // len(KINDS)

    @property
    def truth(self) -> IntArray:
        """The labels of the test records."""
        return self.work.everything.labels[self.n_pool :]

    def hinted_labels(self) -> IntArray:
        """Return the label that tells of each target: its own where presence is asked, the false one of others."""
        own = self.work.everything.labels[self.targets]
        return np.where(np.arange(len(own)) < 2 * self.n_targets, own, self.false_labels)


def open_family(name: str, number: int, folder: Path) -> Family:
    """Prepare a family, and find its targets unless that was done before."""
    setting, learner = SETTINGS[name], SETTINGS[name].learner()
    table = setting.load()
    order = np.random.default_rng([SEED, number]).permutation(len(table))[: setting.n_pool + setting.n_test]
    table = table.iloc[order].reset_index(drop=True)
    pool = Pool.of_frame(table, TableOptions(TARGET, person_per_row=True))
    prepared = learner.prepare(pool.schema, pool.rows)
    work = Work(learner, TrainingSet(prepared, pool.labels, pool.classes.values), pool.schema)
    targets, false_labels = _keep(folder / "targets.npz", work, setting.n_pool, setting.n_targets, number)
    features = table.drop(columns=TARGET)
    donors = np.setdiff1d(np.arange(setting.n_pool), targets)
    asked = vary(features, targets, donors, setting.n_variants, number)
    tests = features.iloc[setting.n_pool :]
    rows = pool.schema.rows(asked)
    queries = learner.prepare(pool.schema, rows.join([rows, pool.schema.rows(tests)]))
    return Family(work, queries, setting.n_pool, setting.n_variants + 1, targets, false_labels)


def _keep(path: Path, work: Work, n_pool: int, n_targets: int, seed: int) -> tuple[IntArray, IntArray]:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        targets, false_labels = _choose_targets(work, n_pool, n_targets, seed)
        write_whole(path, to_bytes({"targets": targets, "false_labels": false_labels}))
    stored = from_bytes(path.read_bytes())
    return stored["targets"], stored["false_labels"]


def _choose_targets(work: Work, n_pool: int, n_targets: int, seed: int) -> tuple[IntArray, IntArray]:
    """Choose the records that models remember best, others at random, and as many whose labels may be flipped."""
    rng, labels = np.random.default_rng([SEED, seed, 1]), work.everything.labels
    subsets = Subsets.balanced(_BLOCKS_TO_CHOOSE_BY * MODELS_PER_BLOCK, n_pool, rng).matrix()
    records = subset_of(work.everything.prepared, np.arange(n_pool))
    own = train_models(work, subsets, SEED)(records) == labels[:n_pool, None]
    inside = subsets.T
    memory = (own & inside).mean(axis=1) - (own & ~inside).mean(
        axis=1
    )  # each record is in half of the subsets
    order = np.argsort(-memory, kind="stable")
    others = rng.permutation(order[n_targets:])[: 2 * n_targets]
    targets = np.concatenate([order[:n_targets], others])
    n_classes = len(work.everything.names)
    false_labels = (labels[targets] + rng.integers(1, n_classes, targets.size)) % n_classes
    return targets, false_labels


def train_models(work: Work, subsets: BoolArray, seed: int) -> Any:
    """Train a model on each row of a matrix (n_models, n_records); returns what votes (n_rows, n_models)."""
    learner: Learner = work.learner
    seeds = np.random.SeedSequence(seed).generate_state(len(subsets)) >> np.uint32(1)
    blocks = (Block([i], [np.flatnonzero(row)], [int(seeds[i])]) for i, row in enumerate(subsets))
    models = [fitted for block in blocks for _, fitted in train_block(work, block)]
    voter = learner.voter(
        [one.model for one in models],
        [one.classes for one in models],
        len(work.everything.names),
        work.schema,
    )

    def votes(prepared: Any) -> Votes:
        return np.ascontiguousarray(voter.votes(prepared), np.int16)

    return votes
