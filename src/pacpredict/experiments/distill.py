"""Students of private answers (the paper's Table 6), on census income and on images.

    python -m pacpredict.experiments.distill census --artifact census.pac
    python -m pacpredict.experiments.distill cifar10 --features lite2 --artifact images.pac

A quarter of the census records to train on, or 10,000 images of CIFAR-10 and public images of other sources, are held
back as unlabelled public data; 128 models are trained on halves of the rest. Each run draws a secret, lets a deployment
answer the public rows at 2^-32 nats each, keeps labels by a filter, and trains a student on those of the first T rows.
True labels are looked at to score, never to train. Interrupted, it goes on with what was fitted and computed.
"""

import argparse
import io
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.cli.progress import progress_bar
from pacpredict.core.bounds import epsilon_for_success, success_bound
from pacpredict.core.decode import Decoder
from pacpredict.core.filters import Filter
from pacpredict.deployment import Deployment
from pacpredict.distill.labels import Labels, last_of, targets_of
from pacpredict.distill.student import Ground, student_of, train_student
from pacpredict.exceptions import InvalidTable
from pacpredict.experiments.accuracy import accuracy_by_decoder
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.image_data import CIFAR10, load_cifar
from pacpredict.experiments.public_files import find
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import Learner, TrainingSet
from pacpredict.learners.registry import learner_named
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.evidence import weigh
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.limit import NO_LIMIT
from pacpredict.mechanism.planned_budget import plan_budget
from pacpredict.mechanism.session import Session
from pacpredict.rows.kind import AnyRows
from pacpredict.tables.options import TableOptions
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.types import IntArray

SEED = 1  # of the split, the subsets and the runs
TEST_SHARE, PUBLIC_SHARE = 0.2, 0.25
N_PUBLIC_CIFAR = 10_000
UNKNOWN = -1  # the true label of a public row that is of none of the classes
_STEP = defaults.STEP_BUDGET


class Method(NamedTuple):
    """How labels are drawn and chosen."""

    decoder: Decoder
    filter: Filter
    alpha: float
    soft: bool = False

    @property
    def name(self) -> str:
        return f"{self.decoder}, {self.filter} {self.alpha:g}{', soft' if self.soft else ''}"


METHODS = (
    Method("argmax", "paper", 0.01),
    Method("argmax", "corrected", 0.01),
    Method("map", "bayesian", 0.01),
    Method("sample", "bayesian", 0.01),
    Method("map", "bayesian", 0.3),
    Method("sample", "bayesian", 0.3),
    Method("map", "bayesian", 0.5, soft=True),
)


class Setting(NamedTuple):
    """A pool, public rows with what they truly are, and rows to score with."""

    pool: Pool
    learner: Learner
    public: AnyRows
    truth: IntArray  # of public rows
    test: AnyRows
    test_truth: IntArray
    balanced: bool  # whether students weigh classes alike, as the paper's do


class Found(NamedTuple):
    """One student."""

    kept: int
    right: float  # percent of the kept ones whose true label is known
    wrong: float  # percent of all rows: kept, and not the secret model's own label
    accuracy: float  # percent of test rows


def census() -> Setting:
    """Train on four fifths of the records, of which a quarter is held back without labels."""
    table, target = DATASETS["census"].load(), DATASETS["census"].target
    order = np.random.default_rng(SEED).permutation(len(table))
    n_test = round(TEST_SHARE * len(table))
    n_public = round(PUBLIC_SHARE * (len(table) - n_test))
    test, public, rest = np.split(order, [n_test, n_test + n_public])
    pool = Pool.of_frame(table.iloc[rest], TableOptions(target, person_per_row=True))  # as the paper draws

    def part(chosen: IntArray) -> tuple[AnyRows, IntArray]:
        rows = table.iloc[chosen]
        return pool.schema.rows(rows.drop(columns=target)), pool.classes.codes(rows[target])

    return Setting(pool, learner_named("xgboost"), *part(public), *part(test), balanced=False)


def cifar10(features: str, n_others: int | None, n_threads: int) -> Setting:
    """Hold 10,000 of the training images back, which with images of other sources are the public ones."""
    split = load_cifar(CIFAR10)
    order = np.random.default_rng(SEED).permutation(len(split.labels))
    held, rest = order[:N_PUBLIC_CIFAR], order[N_PUBLIC_CIFAR:]
    learner = Heads(features, n_threads=n_threads)
    pool = Pool.of(split.records[rest], split.labels[rest], person_per_row=True, kinds=learner.takes)
    others, truth = _public_images(n_others)
    public = pool.schema.rows(np.concatenate([split.records[held], others]))
    codes = np.concatenate([pool.classes.codes(split.labels[held]), truth])
    test = pool.schema.rows(split.asked), pool.classes.codes(split.truth)
    return Setting(pool, learner, public, codes, *test, balanced=True)


def _public_images(n_wanted: int | None) -> tuple[Any, IntArray]:
    """Return images of ImageNet, Caltech-101 and animal photographs (n, 32, 32, 3), and which of the ten classes."""
    import pandas as pd  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    files = [find(f"tiny_imagenet/{name}.parquet") for name in ("public_32px", "public_extra_32px")]
    if None in files:
        raise InvalidTable(
            "the public images are missing: tiny_imagenet/ below the directory of PACPREDICT_DATA"
        )
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    table = table.iloc[np.random.default_rng(SEED).permutation(len(table))[:n_wanted]]
    images = [np.asarray(Image.open(io.BytesIO(data)).convert("RGB")) for data in table["image"]]
    return np.stack(images), table["cifar10_label"].to_numpy(np.int64)


def fit(setting: Setting, path: Path, n_models: int, n_jobs: int) -> Artifact:
    """Fit the artifact unless it is there."""
    if path.exists():
        return Artifact.open(path)
    recipe = Recipe(SEED, plan_budget(), n_models)
    with (
        progress_bar("models") as progress,
        Deployment.fit(
            path, setting.pool, setting.learner, recipe, n_jobs=n_jobs, progress=progress
        ) as deployment,
    ):
        return deployment.artifact


class Study:
    """What all runs share: votes of the teacher's models, features of the public and test rows."""

    def __init__(self, setting: Setting, artifact: Artifact) -> None:
        self.setting, self.artifact = setting, artifact
        schema, voter = setting.pool.schema, artifact.ensemble().voter
        learner = student_of(setting.learner)
        self.ground = Ground.of(learner, schema, setting.public)
        self.learner = learner
        # The teacher's learner: the same features as in its artifact, but from the cache.
        self.votes = voter.votes(setting.learner.prepare(schema, setting.public))
        self.test_votes = voter.votes(setting.learner.prepare(schema, setting.test))

    def labels(self, decoder: Decoder, run: int, ends: Sequence[int]) -> tuple[Labels, int]:
        """Let a deployment with a secret of its own answer all public rows; returns the secret, too, to score with."""
        classes, n_models = self.setting.pool.classes, self.artifact.recipe.n_models
        generator = np.random.default_rng([SEED, run])
        order = generator.permutation(len(self.votes))[: max(ends)]
        budget, ledger = Budget(_STEP, len(order) * _STEP), MemoryLedger()
        session = Session(len(classes), budget, n_models, decode=decoder, ledger=ledger, generator=generator)
        sequences = [release.sequence for release in session.answer_all(self.votes[order])]
        points = {last_of(sequences, end) for end in ends}
        found = weigh(ledger.entries(), len(classes), budget, session.prior, NO_LIMIT, sequences, points)
        secret, _, _ = session.hand_over()
        return Labels.of(order, sequences, found, ends), secret.reveal()

    def student(self, labels: Labels, secret: int, end: int, method: Method, run: int) -> Found:
        """Train a student on the first rows and score it."""
        setting, classes = self.setting, self.setting.pool.classes
        targets = targets_of(
            *(labels, end, method.filter, method.alpha, len(classes)),
            soft=method.soft,
            balanced=setting.balanced,
        )
        asked, given = labels.rows[:end], labels.labels[:end]
        truth = setting.truth[asked]
        known = targets.kept & (truth != UNKNOWN)
        on_ground = targets._replace(records=asked[targets.records])
        student = train_student(self.learner, self.ground, classes, on_ground, seed=run)
        answers = student.predict(setting.test, setting.pool.schema)
        return Found(
            int(targets.kept.sum()),
            100 * float((given == truth)[known].mean()),
            100 * float((targets.kept & (given != self.votes[asked, secret])).mean()),
            100 * float((answers == setting.test_truth).mean()),
        )

    def teachers(self, n_trials: int) -> dict[str, Any]:
        """Measure private answers, one model without protection, and a student of the true labels."""
        setting, n_classes = self.setting, len(self.setting.pool.classes)
        found = accuracy_by_decoder(
            *(self.test_votes, setting.test_truth, _STEP),
            n_trials=n_trials,
            seed=SEED,
            n_classes=n_classes,
        )
        one = 100 * (self.test_votes == setting.test_truth[:, None]).mean()
        private: dict[str, Any] = {decoder: percent._asdict() for decoder, percent in found.items()}
        return {**private, "one model": round(float(one), 3), "all records": self._whole()}

    def _whole(self) -> float:
        """Return the accuracy of one model that is trained on the whole pool, without protection."""
        setting, pool = self.setting, self.setting.pool
        records = TrainingSet(
            setting.learner.prepare(pool.schema, pool.rows), pool.labels, pool.classes.values
        )
        trained = setting.learner.fit(records, pool.schema, SEED)
        n_classes = len(pool.classes)
        voter = setting.learner.voter([trained.model], [np.arange(n_classes)], n_classes, pool.schema)
        answers = voter.votes(setting.learner.prepare(pool.schema, setting.test))[:, 0]
        return round(100 * float((answers == setting.test_truth).mean()), 3)


def measure(
    study: Study, ends: Sequence[int], n_runs: int, methods: Sequence[Method]
) -> list[dict[str, Any]]:
    """Make the students of all runs; returns, of each method and number of rows, what was found in each run."""
    rows: dict[tuple[Method, int], list[Found]] = {}
    n_students = n_runs * len(methods) * len(ends)
    with progress_bar("students") as progress:
        for run in range(n_runs):
            histories = {
                decoder: study.labels(decoder, run, ends) for decoder in {one.decoder for one in methods}
            }
            for method in methods:
                for end in ends:
                    found = study.student(*histories[method.decoder], end, method, run)
                    rows.setdefault((method, end), []).append(found)
                    progress(sum(map(len, rows.values())), n_students)
    return [
        {"method": method.name, "rows": end, "runs": [found._asdict() for found in rows[method, end]]}
        for method in methods
        for end in ends
    ]


def budgets(study: Study, ends: Sequence[int]) -> list[dict[str, float]]:
    """Return what T answers cost if each is charged, as the paper does, and what that allows if settled in advance.

    And what they cost here on average, where answers on which all models agree are free.
    """
    contested = float((study.votes.min(axis=1) < study.votes.max(axis=1)).mean())
    return [
        {
            "rows": end,
            "nats": end * _STEP,
            "success": success_bound(end * _STEP),
            "epsilon": epsilon_for_success(success_bound(end * _STEP)),
            "contested": contested,
        }
        for end in ends
    ]


def run(options: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()
    n_threads = options.jobs if options.jobs > 0 else os.cpu_count() or 1
    setting = (
        census() if options.dataset == "census" else cifar10(options.features, options.others, n_threads)
    )
    artifact = fit(setting, options.artifact, options.models, options.jobs)
    study = Study(setting, artifact)
    ends = [end for end in options.rows if end < len(setting.public)] + [len(setting.public)]
    prepared = time.perf_counter()
    return {
        "dataset": options.dataset,
        "pool": len(setting.pool),
        "public": len(setting.public),
        "test": len(setting.test),
        "runs": options.runs,
        "models": options.models,
        "budgets": budgets(study, ends),
        "teachers": study.teachers(options.trials),
        "students": measure(study, ends, options.runs, METHODS),
        "seconds": {"prepared": round(prepared - started), "all": round(time.perf_counter() - started)},
    }


def print_tables(found: dict[str, Any]) -> None:
    about = f"{found['pool']:,} records in the pool, {found['public']:,} public rows, {found['runs']} runs"
    print(f"{found['dataset']}: {found['models']} models, {about}\n")
    print("| T | nats, if each is charged | membership, at most | matching epsilon |\n|---:|---:|---:|---:|")
    for one in found["budgets"]:
        print(
            f"| {one['rows']:,} | {one['nats']:.3g} | {100 * one['success']:.2f} % | {one['epsilon']:.4f} |"
        )
    print(f"\nmodels differ on {100 * found['budgets'][0]['contested']:.1f} % of the public rows\n")
    teachers = dict(found["teachers"])
    for name in ("all records", "one model"):
        print(f"without protection, {name}: {teachers.pop(name):.2f} %")
    for name, percent in teachers.items():
        print(f"private teacher, {name}: {percent['mean']:.2f} % (sd {percent['sd']:.2f})")
    print("\n| labels | T | kept | right among the kept | kept and not the secret's | student (sd) |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in found["students"]:
        kept, right, wrong, accuracy = np.array([list(one.values()) for one in row["runs"]]).T
        print(
            f"| {row['method']} | {row['rows']:,} | {kept.mean():,.0f} | {right.mean():.2f} % | {wrong.mean():.3f} % | "
            f"{accuracy.mean():.2f} % ({accuracy.std():.2f}) |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=("census", "cifar10"))
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--features", default="lite2", help="of images (default: lite2)")
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[1000, 2000, 5000, 10_000, 20_000], metavar="T"
    )
    parser.add_argument("--others", type=int, help="public images of other sources (default: all 28,603)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--trials", type=int, default=1000, help="simulated teachers")
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    found = run(options)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_tables(found)


if __name__ == "__main__":
    main()
