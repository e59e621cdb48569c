"""Models and mechanism together: something that can be asked."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pacpredict.core.decode import Decoder
from pacpredict.core.vote_rule import VoteRule
from pacpredict.exceptions import PacPredictError
from pacpredict.mechanism.allowance import Allowance
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import Failpoints, Ledger, State, nowhere
from pacpredict.mechanism.question import NO_BALLOTS, UNVOTED, Ballots, Known, Release, Request, own_digest
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.promise import explain_priors
from pacpredict.rows.kind import AnyRows
from pacpredict.training.ensemble import Ensemble
from pacpredict.training.recipe import Recipe
from pacpredict.training.space import Space
from pacpredict.types import FloatArray


class Inquiry(NamedTuple):
    """What a client asks in one go, before any model has voted."""

    rows: AnyRows
    id: str | None = None  # a repeated inquiry has the same
    client: str | None = None
    partial: bool = False  # answer as many rows as the budget allows
    separate: bool = False  # from what others asked: their answers are not its own
    allowance: Allowance | None = None  # what the client may be answered, as of when the inquiry came


class Answers(NamedTuple):
    """What leaves: the owner's labels, and of each its number in the history and what it was charged, in nats."""

    labels: npt.NDArray[Any]
    releases: Sequence[Release]

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return a table with a row for each answer; its charge is that of the number, whenever it was given first."""
        return {
            "label": self.labels.tolist(),
            "sequence": [release.sequence for release in self.releases],
            "charge_nats": [release.first_charge for release in self.releases],
        }


class Curator:
    """Answers queries about one secret. Several may share a ledger, in threads or in processes.

    Without a secret one is drawn, from the operating system's entropy; a ledger that was used needs its own. Another
    `decode` than the recipe's may be chosen at any time: it is post-processing. So may an ensemble whose votes count by
    another rule.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        recipe: Recipe,
        ledger: Ledger,
        *,
        secret: Secret | None = None,
        deployment: str | None = None,
        decode: Decoder | None = None,
        at: Failpoints = nowhere,
    ) -> None:
        self.ensemble = ensemble
        self.recipe = recipe
        self.session = Session(
            len(ensemble.classes),
            recipe.budget,
            recipe.n_models,
            secret=secret,
            decode=decode or recipe.decode,
            votes=ensemble.rule,
            ledger=ledger,
            deployment=deployment,
            at=at,
        )

    def ask(self, table: Any, *, request_id: str | None = None, client: str | None = None) -> Answers:
        """Answer all rows of a table, or none: if one is not valid, or the budget does not suffice for all.

        A row that was answered before, in any process, gets the same answer at no charge.
        """
        inquiry = Inquiry(self.ensemble.schema.rows(table), request_id, client)
        (outcome,) = self.serve(self.requests([inquiry]))
        if isinstance(outcome, PacPredictError):
            raise outcome
        return outcome

    def requests(self, inquiries: Sequence[Inquiry], n_threads: int = 1) -> list[Request]:
        """Let all models vote on the rows that have no answer yet, of several inquiries at once.

        Nothing is charged; any number of threads may do this at a time.
        """
        rows = type(inquiries[0].rows).join([inquiry.rows for inquiry in inquiries])
        digests = _own_digests(inquiries, self.ensemble.schema.digests(rows))
        known = self.session.recall(set(digests))
        _check_allowances(inquiries, digests, known)
        ballots, row_of = self._vote(rows, digests, known, n_threads)
        requests = []
        for inquiry, mine in zip(inquiries, _split(inquiries, digests), strict=True):
            places = [row_of.get(digest, UNVOTED) for digest in mine]
            requests.append(
                Request(mine, ballots, places, known, inquiry.id, inquiry.client, inquiry.partial)
            )
        return requests

    def _vote(
        self, rows: AnyRows, digests: Sequence[bytes], known: Known, n_threads: int
    ) -> tuple[Ballots, dict[bytes, int]]:
        """Let the models vote once on each query that is not known; returns where its votes stand."""
        first = {digest: i for i, digest in reversed(list(enumerate(digests))) if digest not in known.answers}
        chosen = sorted(first.values())
        if not chosen:
            return NO_BALLOTS, {}
        asked = rows if len(chosen) == len(rows) else rows.take(chosen)
        ballots = self.session.ballots(self.ensemble.votes(asked, n_threads))
        return ballots, {digests[i]: row for row, i in enumerate(chosen)}

    def serve(self, requests: Sequence[Request]) -> list[Answers | PacPredictError]:
        """Answer several requests in one turn and one commit; a refused one does not disturb the others."""
        outcomes = self.session.serve(requests)
        codes = [release.label for one in outcomes if isinstance(one, list) for release in one]
        labels, read = self.ensemble.labels(np.array(codes, np.int64)), 0
        answers: list[Answers | PacPredictError] = []
        for one in outcomes:
            if isinstance(one, PacPredictError):
                answers.append(one)
            else:
                answers.append(Answers(labels[read : read + len(one)], one))
                read += len(one)
        return answers

    def keep_up(self) -> None:
        """See how far others have come with the same ledger, so as to notice one that goes back."""
        self.session.keep_up()

    def check_ledger(self) -> None:
        """Raise LedgerError if no answer could be recorded now."""
        self.session.check_ledger()

    def guarantee(self, prior: float | None = None) -> Guarantee:
        """Bound the success of any attack with this prior; by default of membership inference."""
        space, own = self.ensemble.space, self.ensemble.space.priors["membership"]
        unit = space.units.kind if prior is None or prior == own else None
        chosen = own if prior is None else prior
        return Guarantee.of(self.recipe.budget, self.recipe.decode, self.session.snapshot(), chosen, unit)

    def membership_posterior(self) -> FloatArray:
        """Return each unit's posterior probability of membership, given all answers so far.

        For the owner only: it reveals who is in the pool.
        """
        return self.ensemble.space.membership_posterior(self.session.belief)

    def privacy(self) -> dict[str, Any]:
        """Return the guarantee as plain values, for programs and auditors."""
        return report_privacy(
            self.recipe, self.ensemble.space, self.session.snapshot(), self.session.decode, self.ensemble.rule
        )


def _split(inquiries: Sequence[Inquiry], digests: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Return the digests of each inquiry."""
    ends = list(accumulate(len(inquiry.rows) for inquiry in inquiries))
    return [digests[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def _own_digests(inquiries: Sequence[Inquiry], digests: list[bytes]) -> list[bytes]:
    """Let queries of clients that share no answers be others than those of everybody else."""
    if not any(inquiry.separate for inquiry in inquiries):
        return digests
    return [
        own_digest(inquiry.client, digest) if inquiry.separate else digest
        for inquiry, mine in zip(inquiries, _split(inquiries, digests), strict=True)
        for digest in mine
    ]


def _check_allowances(inquiries: Sequence[Inquiry], digests: Sequence[bytes], known: Known) -> None:
    """Refuse, before any model votes, what the turn would refuse."""
    if all(inquiry.allowance is None for inquiry in inquiries):
        return
    for inquiry, mine in zip(inquiries, _split(inquiries, digests), strict=True):
        if inquiry.allowance is not None:
            inquiry.allowance.take(len(set(mine) - known.answers.keys()), partial=inquiry.partial)


def report_privacy(
    recipe: Recipe,
    space: Space,
    state: State | None,
    decode: Decoder | None = None,
    votes: VoteRule | None = None,
) -> dict[str, Any]:
    """Say what was spent, and what each attack can achieve: before any answer, and ever.

    What is spent by now bounds no attack of a history in which questions followed answers (docs/threat-model.md), so
    there is no figure for that.
    """
    budget = recipe.budget
    decoder = decode or recipe.decode
    unit, bounds = space.units.kind, space.bounds(budget.total)
    promise = Guarantee.of(budget, recipe.decode, state, space.priors["membership"], unit)
    return {
        "queries": promise.queries,
        "contested": promise.contested,
        "spent_nats": promise.spent_nats,
        "total_nats": promise.total_nats,
        "step_budget_nats": budget.step,
        "bounds": bounds,
        "fpr": promise.fpr,
        "tpr": promise.tpr,
        "odds_limit": promise.odds_limit,
        "odds_delta": None if promise.odds_limit is None else promise.odds_delta,
        "decoder": decoder,
        "votes": votes or recipe.votes,
        "noise": budget.noise,
        "charging": budget.charging,
        "when_exhausted": budget.when_exhausted,
        "promise": promise.promise().to_json(),
        "explanations": explain_priors(bounds, unit),
    }
