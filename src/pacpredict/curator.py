"""The composition root: models, mechanism and ledger together are something that can be asked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.belief import Belief
from pacpredict.core.bounds import DEFAULT_DELTA, epsilon_for_success, success_bound
from pacpredict.ensemble.artifact.artifact import Artifact
from pacpredict.ensemble.ensemble import Ensemble
from pacpredict.ensemble.fit import Fit, Progress, fit_artifact, no_progress, save_artifact
from pacpredict.ensemble.learners.learner import Learner
from pacpredict.ensemble.pool import Pool
from pacpredict.ensemble.recipe import Recipe
from pacpredict.ensemble.tables.schema import Rows
from pacpredict.exceptions import PacPredictError
from pacpredict.ledger.home import begin_at, create_ledger, open_ledger
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import Failpoints, Ledger, State, nowhere
from pacpredict.mechanism.request import Question, Release, Request
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session


class Answers(NamedTuple):
    """What leaves: the owner's labels, and of each its number in the history and what it was charged, in nats."""

    labels: npt.NDArray[Any]
    releases: Sequence[Release]

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return a table with a row for each answer."""
        return {
            "label": self.labels.tolist(),
            "sequence": [release.sequence for release in self.releases],
            "charge_nats": [release.charge for release in self.releases],
        }


class Curator:
    """Answers queries about one secret. Several may share a ledger, in threads or in processes."""

    def __init__(
        self,
        ensemble: Ensemble,
        recipe: Recipe,
        ledger: Ledger,
        *,
        secret: Secret | None = None,
        deployment: str | None = None,
        at: Failpoints = nowhere,
    ) -> None:
        self.ensemble = ensemble
        self.recipe = recipe
        self.ledger = ledger
        # Uniform, and from the operating system's entropy, like all the randomness of a deployment.
        self._secret = Secret.draw(Belief.uniform(recipe.n_models)) if secret is None else secret
        self.session = Session(
            len(ensemble.classes),
            recipe.budget,
            recipe.n_models,
            secret=self._secret,
            decode=recipe.decode,
            ledger=ledger,
            deployment=deployment,
            at=at,
        )

    @classmethod
    def open(
        cls, path: str | Path, *, ledger: str | None = None, trust: bool = False, at: Failpoints = nowhere
    ) -> "Curator":
        """Open an artifact with its own ledger, or with the one at a URL.

        A deployment that has answered nothing yet begins at the URL; one that has must be moved there first.
        `trust` lets models be loaded from files that can name code to run: only for artifacts that are one's own.
        """
        artifact = Artifact.open(path, trust=trust)
        if ledger is not None:
            begin_at(artifact.path, artifact.identity, ledger)
        return cls(
            artifact.ensemble(),
            artifact.recipe,
            open_ledger(artifact.path, artifact.identity, ledger, at=at),
            secret=artifact.secret(),
            deployment=artifact.identity,
            at=at,
        )

    def ask(self, table: Any, *, request_id: str | None = None, client: str | None = None) -> Answers:
        """Answer all rows of a table, or none: if one is not valid, or the budget does not suffice for all.

        A row that was answered before, in any process, gets the same answer at no charge.
        """
        request = self.request(self.ensemble.schema.rows(table), request_id=request_id, client=client)
        (outcome,) = self.session.serve([request])
        if isinstance(outcome, PacPredictError):
            raise outcome
        return self.answers(outcome)

    def request(
        self, rows: Rows, *, request_id: str | None = None, client: str | None = None, partial: bool = False
    ) -> Request:
        """Let all models vote on the rows that have no answer yet. Nothing is charged; any number of threads may."""
        return Request(self.questions([rows])[0], request_id, client, partial)

    def questions(self, tables: Sequence[Rows], n_threads: int = 1) -> list[list[Question]]:
        """Let all models vote on the rows of several requests at once, which takes less time than one by one."""
        rows = Rows.join(tables)
        digests = self.ensemble.schema.digests(rows)
        known = self.ledger.recall(set(digests))
        first = {digest: i for i, digest in reversed(list(enumerate(digests))) if digest not in known}
        votes: dict[bytes, Any] = {}
        if first:
            chosen = sorted(first.values())
            asked = rows if len(chosen) == len(rows) else rows.take(chosen)
            votes = dict(
                zip((digests[i] for i in chosen), self.ensemble.votes(asked, n_threads), strict=True)
            )
        questions = iter([Question(digest, votes.get(digest)) for digest in digests])
        return [list(islice(questions, len(table))) for table in tables]

    def answers(self, releases: Sequence[Release]) -> Answers:
        return Answers(
            self.ensemble.labels(np.array([release.label for release in releases], np.int64)), releases
        )

    def close(self) -> None:
        self.ledger.close()

    def guarantee(self, prior: float | None = None) -> Guarantee:
        """Bound the success of any attack with this prior; by default of membership inference."""
        return self.session.guarantee(self.recipe.priors()["membership"] if prior is None else prior)

    def privacy(self) -> dict[str, Any]:
        """Return the guarantee as plain values, for programs and auditors."""
        return report_privacy(self.recipe, self.session.snapshot())


def report_privacy(recipe: Recipe, state: State | None) -> dict[str, Any]:
    """Say what was spent, and what each attack can achieve: before any answer, and ever.

    What is spent by now bounds no attack of a history in which questions followed answers (docs/threat-model.md), so
    there is no figure for that.
    """
    budget = recipe.budget
    spent = budget.nats(state.spent_steps if state else 0)
    return {
        "queries": state.sequence if state else 0,
        "contested": state.contested if state else 0,
        "spent_nats": spent,
        "total_nats": budget.total,
        "step_budget_nats": budget.step,
        "bounds": {
            attack: {"prior": prior, "success": success_bound(budget.total, prior)}
            for attack, prior in recipe.priors().items()
        },
        "epsilon": epsilon_for_success(success_bound(budget.total)),
        "delta": DEFAULT_DELTA,
        "decoder": recipe.decode,
        "charging": budget.charging,
        "when_exhausted": budget.when_exhausted,
    }


def describe(artifact: Artifact) -> dict[str, Any]:
    """Say what an artifact is; nothing of the secret."""
    kinds = Counter(column.kind for column in artifact.schema.columns)
    return {
        "name": artifact.path.name,
        "identity": artifact.identity,
        "created": artifact.manifest["created"],
        "learner": artifact.learner.name,
        "models": artifact.recipe.n_models,
        "construction": artifact.recipe.construction,
        "rate": artifact.recipe.inclusion,
        "records": artifact.n_records,
        "columns": dict(kinds),
        "classes": [str(label) for label in artifact.classes.values],
        "versions": artifact.manifest["versions"],
    }


def fit_deployment(
    path: str | Path,
    pool: Pool,
    learner: Learner,
    recipe: Recipe,
    *,
    source: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    backend: str | None = None,
    progress: Progress = no_progress,
) -> Artifact:
    """Fit an artifact that has its ledger from the start."""
    return fit_artifact(
        path,
        pool,
        learner,
        recipe,
        before_publishing=lambda home, identity: create_ledger(home, identity).close(),
        source=source,
        n_jobs=n_jobs,
        backend=backend,
        progress=progress,
    )


def save_deployment(path: str | Path, fitted: Fit, curator: Curator) -> Curator:
    """Write a deployment that lives in memory as an artifact, and return the one that goes on from there.

    The secret, the history and what is spent move with it: there is never a second history of one secret.
    """

    def move_history(home: Path, identity: str) -> None:
        state = replace(curator.session.snapshot(), deployment=identity)
        with create_ledger(home, identity) as ledger:
            ledger.commit(list(curator.ledger.entries()), state)

    with curator.ledger.turn():  # so that nobody is answered here any more who is not in the artifact
        artifact = save_artifact(path, fitted, curator._secret, before_publishing=move_history)  # noqa: SLF001
        curator.ledger.close()
    return Curator(
        fitted.ensemble,
        fitted.recipe,
        open_ledger(artifact.path, artifact.identity),
        secret=artifact.secret(),
        deployment=artifact.identity,
    )
