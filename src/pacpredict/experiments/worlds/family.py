"""A family of worlds: one pool, the targets in it, and the queries that all worlds of the family are asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from pacpredict.experiments.worlds.tables import SETTINGS, TARGET, Setting
from pacpredict.experiments.worlds.variants import choose_variants, judge_votes
from pacpredict.files import write_whole
from pacpredict.learners.learner import Learner, TrainingSet, subset_of
from pacpredict.npz import Arrays, from_bytes, to_bytes
from pacpredict.tables.options import TableOptions
from pacpredict.training.block import Block, Work, train_block
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes

SEED = 23
MODELS_PER_BLOCK = 64
_SHADOW_BLOCKS = 4  # of models, by which targets and their variants are chosen

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
    """Prepare a family; its targets and queries are found once."""
    setting, learner = SETTINGS[name], SETTINGS[name].learner()
    table = setting.load()
    order = np.random.default_rng([SEED, number]).permutation(len(table))[: setting.n_pool + setting.n_test]
    table = table.iloc[order].reset_index(drop=True)
    pool = Pool.of_frame(table, TableOptions(TARGET, person_per_row=True))
    prepared = learner.prepare(pool.schema, pool.rows)
    work = Work(learner, TrainingSet(prepared, pool.labels, pool.classes.values), pool.schema)
    path = folder / "family.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_bytes(_choose(work, table.drop(columns=TARGET), setting, number)))
    stored = from_bytes(path.read_bytes())
    tests = subset_of(prepared, np.arange(setting.n_pool, len(table)))
    queries = np.concatenate([stored["variants"], tests])
    return Family(
        work, queries, setting.n_pool, setting.n_variants + 1, stored["targets"], stored["false_labels"]
    )


def _choose(work: Work, table: pd.DataFrame, setting: Setting, seed: int) -> Arrays:
    """Choose targets by an ensemble of the whole pool, and variants by another in which labels that may be are flipped.

    Targets are the records that models remember best, others at random, and as many whose labels may be flipped.
    """
    n_pool, n = setting.n_pool, setting.n_targets
    rng, labels = np.random.default_rng([SEED, seed, 1]), work.everything.labels.copy()
    subsets = Subsets.balanced(_SHADOW_BLOCKS * MODELS_PER_BLOCK, n_pool, rng).matrix()
    records = subset_of(work.everything.prepared, np.arange(n_pool))
    own = train_models(work, subsets, SEED)(records) == labels[:n_pool, None]
    memory = (own & subsets.T).mean(axis=1) - (own & ~subsets.T).mean(
        axis=1
    )  # each record is in half of them
    order = np.argsort(-memory, kind="stable")
    targets = np.concatenate([order[:n], rng.permutation(order[n:])[: 2 * n]])
    n_classes = len(work.everything.names)
    false_labels = (labels[targets] + rng.integers(1, n_classes, targets.size)) % n_classes
    labels[targets[2 * n :]] = false_labels[2 * n :]
    votes = train_models(with_labels(work, labels), subsets, SEED + 1)

    def prepare(rows: pd.DataFrame) -> Any:
        return work.learner.prepare(work.schema, work.schema.rows(rows))

    def judge(rows: pd.DataFrame) -> list[FloatArray]:
        return judge_votes(votes(prepare(rows)), subsets[:, targets].T, labels[targets], n_classes)

    donors = table.iloc[np.setdiff1d(np.arange(n_pool), targets)]
    asked = table.iloc[targets].reset_index(drop=True)
    variants = choose_variants(asked, donors, setting.n_variants, judge, seed)
    return {"targets": targets, "false_labels": false_labels, "variants": prepare(variants)}


def with_labels(work: Work, labels: IntArray) -> Work:
    return work._replace(everything=work.everything._replace(labels=labels))


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
