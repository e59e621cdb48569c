"""Students of simulated deployments over public rows, scored by what these rows and the test rows truly are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.cli.progress import progress_bar
from pacpredict.core.bounds import success_bound
from pacpredict.core.decode import Decoder
from pacpredict.core.filters import Filter
from pacpredict.distill.labels import Labels, Targets, last_of, targets_of
from pacpredict.distill.student import Ground, student_of, train_student
from pacpredict.experiments.accuracy import accuracy_by_decoder
from pacpredict.experiments.fitted import accuracy_of_whole
from pacpredict.experiments.unlabelled import UNKNOWN, Setting
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.evidence import weigh
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.session import Session

SEED = 1  # of the runs
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


class Found(NamedTuple):
    """One student."""

    kept: int
    right: float  # percent of the kept ones whose true label is known
    wrong: float  # percent of all rows: kept, and not the secret model's own label
    accuracy: float  # percent of test rows


class Study:
    """What all runs share: votes of the teacher's models, features of the public and test rows."""

    def __init__(self, setting: Setting, artifact: Artifact) -> None:
        self.setting, self.artifact = setting, artifact
        schema, voter = setting.pool.schema, artifact.ensemble().voter
        self.learner = student_of(setting.learner)
        with progress_bar("features of public rows") as progress:
            self.ground = Ground.of(self.learner, schema, setting.public, progress)
        # The teacher's learner: the same features as in its artifact, but from the cache.
        self.votes = voter.votes(setting.learner.prepare(schema, setting.public))
        self.test = setting.learner.prepare(schema, setting.test)
        self.test_votes = voter.votes(self.test)

    def labels(self, decoder: Decoder, run: int, ends: Sequence[int]) -> tuple[Labels, int]:
        """Let a deployment with a secret of its own answer all public rows; returns the secret, too, to score with."""
        classes, n_models = self.setting.pool.classes, self.artifact.recipe.n_models
        generator = np.random.default_rng([SEED, run])
        order = generator.permutation(len(self.votes))[: max(ends)]
        budget, ledger = Budget(_STEP, len(order) * _STEP), MemoryLedger()
        session = Session(len(classes), budget, n_models, decode=decoder, ledger=ledger, generator=generator)
        sequences = [release.sequence for release in session.answer_all(self.votes[order])]
        points = {last_of(sequences, end) for end in ends}
        found = weigh(ledger.entries(), len(classes), budget, session.prior, sequences, points)
        secret, _, _ = session.hand_over()
        return Labels.of(order, sequences, found, ends), secret.reveal()

    def student(self, labels: Labels, secret: int, end: int, method: Method, run: int) -> Found:
        """Train a student on the first rows and score it."""
        setting, n_classes = self.setting, len(self.setting.pool.classes)
        targets = targets_of(
            *(labels, end, method.filter, method.alpha, n_classes),
            soft=method.soft,
            balanced=setting.balanced,
        )
        asked, given = labels.rows[:end], labels.labels[:end]
        truth = setting.truth[asked]
        known = targets.kept & (truth != UNKNOWN)
        return Found(
            int(targets.kept.sum()),
            100 * float((given == truth)[known].mean()),
            100 * float((targets.kept & (given != self.votes[asked, secret])).mean()),
            self._accuracy(targets._replace(records=asked[targets.records]), run),
        )

    def teachers(self, n_trials: int) -> dict[str, Any]:
        """Measure private answers, models without protection, and a student of the true labels."""
        setting, n_classes = self.setting, len(self.setting.pool.classes)
        found = accuracy_by_decoder(
            *(self.test_votes, setting.test_truth, _STEP),
            n_trials=n_trials,
            seed=SEED,
            n_classes=n_classes,
        )
        one = 100 * (self.test_votes == setting.test_truth[:, None]).mean()
        private: dict[str, Any] = {decoder: percent._asdict() for decoder, percent in found.items()}
        return {
            **private,
            "one model": round(float(one), 3),
            "all records": accuracy_of_whole(setting.pool, setting.learner, self.test, setting.test_truth),
            "true labels": round(self._of_truth(), 3),
        }

    def _of_truth(self) -> float:
        """Return what a student would reach if it were told what the public rows truly are, where that is known."""
        known = np.flatnonzero(self.setting.truth != UNKNOWN)
        labels = self.setting.truth[known]
        weights = np.ones(known.size)
        if self.setting.balanced:
            weights = known.size / np.bincount(labels)[labels]
        return self._accuracy(Targets(known, labels, weights, np.ones(known.size, bool)), SEED)

    def _accuracy(self, targets: Targets, seed: int) -> float:
        setting = self.setting
        student = train_student(self.learner, self.ground, setting.pool.classes, targets, seed=seed)
        answers = student.predict(setting.test)
        return 100 * float((answers == setting.test_truth).mean())


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

    And how many are charged here, where answers on which all models agree are free.
    """
    contested = float((study.votes.min(axis=1) < study.votes.max(axis=1)).mean())
    return [
        {
            "rows": end,
            "nats": end * _STEP,
            "success": success_bound(end * _STEP),
            "contested": contested,
        }
        for end in ends
    ]
