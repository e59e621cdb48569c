"""Contributors against leave-one-out votes: decoys and near-duplicates, on digits with decision trees.

    python -m pacpredict.experiments.decoys
    python -m pacpredict.experiments.decoys --models 512 --worlds 8 --json

Some labels are false. An attacker who may put units into the pool adds decoys next to each of these records: units with
three copies of it and a third label. A rule that removes the decoy leaves the record where it was. Or the same false
record was contributed by two units. Printed is how often one answer at the record is its false label, by rule of votes.
Eight worlds of 128 models take about half a minute.
"""

import argparse
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.experiments.worlds.explain import count
from pacpredict.experiments.worlds.family import train_models
from pacpredict.experiments.worlds.tables import TARGET, digits, named
from pacpredict.learners.learner import TrainingSet
from pacpredict.tables.options import TableOptions
from pacpredict.training.block import Work
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.types import IntArray
from pacpredict.votes.leave_one_out import LeaveOneOut

SEED = 31
COPIES = 3  # of a record, in each decoy
N_TARGETS = 40
ROUNDS = (0, 1, 2, 3)  # units that are removed at most; 0: plain votes


class Case(NamedTuple):
    name: str
    n_decoys: int  # units next to each false record
    n_false: int  # units that have it


CASES = (
    Case("alone", 0, 1),
    Case("one decoy", 1, 1),
    Case("two decoys", 2, 1),
    Case("two units with the same false record", 0, 2),
)


class Spoilt(NamedTuple):
    """Records of the pool, with those that contributors add: which digit, which label, whose."""

    records: IntArray
    labels: IntArray
    units: IntArray
    targets: IntArray
    false_labels: IntArray


def spoil(truth: IntArray, case: Case, rng: np.random.Generator) -> Spoilt:
    n = len(truth)
    targets = rng.choice(n, N_TARGETS, replace=False)
    false_labels = (truth[targets] + rng.integers(1, 10, N_TARGETS)) % 10
    labels = truth.copy()
    labels[targets] = false_labels
    records, units, added = [np.arange(n)], [np.arange(n)], [labels]
    last = n

    def add(labels_of_unit: IntArray, n_copies: int) -> None:
        nonlocal last
        records.append(np.repeat(targets, n_copies))
        added.append(np.repeat(labels_of_unit, n_copies))
        units.append(np.repeat(np.arange(last, last + N_TARGETS), n_copies))
        last += N_TARGETS

    for _ in range(case.n_decoys):
        third = (false_labels + 1 + (truth[targets] == (false_labels + 1) % 10)) % 10
        add(third, COPIES)
    for _ in range(case.n_false - 1):
        add(false_labels, 1)
    every = [np.concatenate(parts) for parts in (records, added, units)]
    return Spoilt(every[0], every[1], every[2], targets, false_labels)


def told(work: Work, case: Case, n_models: int, seed: int) -> list[float]:
    """Return, for each number of rounds, how often the answer at a false record is its false label."""
    rng = np.random.default_rng([SEED, seed])
    spoilt = spoil(work.everything.labels, case, rng)
    every = work.everything._replace(prepared=work.everything.prepared[spoilt.records], labels=spoilt.labels)
    n_units = int(spoilt.units.max()) + 1
    subsets = Subsets.balanced(n_models, n_units, rng)
    models = train_models(work._replace(everything=every), subsets.matrix()[:, spoilt.units], seed)
    votes = models(work.everything.prepared[spoilt.targets])
    found = []
    for rounds in ROUNDS:
        rule = LeaveOneOut.of(subsets.packed, n_units, 10, rounds=max(1, rounds))
        counted = count(rule.apply(votes) if rounds else votes, 10)
        found.append(float((counted.argmax(axis=1) == spoilt.false_labels).mean()))
    return found


def run(n_models: int, n_worlds: int) -> list[dict[str, Any]]:
    table = digits()
    pool = Pool.of_frame(table, TableOptions(TARGET, person_per_row=True))
    learner = named("decision-tree")()
    work = Work(
        learner,
        TrainingSet(learner.prepare(pool.schema, pool.rows), pool.labels, pool.classes.values),
        pool.schema,
    )
    rows = []
    for case in CASES:
        shares = np.mean([told(work, case, n_models, seed) for seed in range(n_worlds)], axis=0)
        rows.append({"case": case.name, "targets": n_worlds * N_TARGETS, "told": shares.round(3).tolist()})
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args(arguments)
    rows = run(options.models, options.worlds)
    if options.json:
        print(json.dumps({"models": options.models, "rounds": ROUNDS, "rows": rows}, indent=2))
        return
    print(f"digits, {options.models} decision trees: one answer gives the false label\n")
    print(f"{'contributed':<38} plain  leave-one-out  leave-two-out  three")
    for row in rows:
        plain, one, two, three = row["told"]
        print(f"{row['case']:<38} {plain:>5.3f} {one:>14.3f} {two:>14.3f} {three:>6.3f}")


if __name__ == "__main__":
    main()
