"""Algorithm 1 as a state machine: ask, and get an answer that is on the ledger before you see it."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from pacpredict import defaults
from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate
from pacpredict.core.decode import Decoder
from pacpredict.core.scalars import check_model_count
from pacpredict.core.validate import MOST_CLASSES, check_outputs
from pacpredict.core.vote_rule import VoteRule, check_vote_rule
from pacpredict.exceptions import InvalidInput, InvalidVotes, PacPredictError
from pacpredict.mechanism.admission import Batch, Draft, Place, check_request_id, repeated
from pacpredict.mechanism.answering import Answered, Answering
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.entropy import Entropy, SeededEntropy, SystemEntropy
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import Answer, Entry, Failpoints, Ledger, MemoryLedger, State, nowhere
from pacpredict.mechanism.limit import admit_vector
from pacpredict.mechanism.question import Ballots, Known, Release, Request
from pacpredict.mechanism.recent import Recent
from pacpredict.mechanism.resume import (
    check_moved_on,
    check_state,
    check_within,
    describe_origin,
    first_state,
    settle_secret,
)
from pacpredict.mechanism.secret import Secret
from pacpredict.types import FloatArray, Votes

X = TypeVar("X")
Y = TypeVar("Y")


class Session:
    """Answers questions about one secret, each noised to what an all-knowing adversary believes by now.

    Parameters
    ----------
    n_classes
        Labels are 0 to n_classes - 1.
    budget
        What may be revealed per release and in all.
    prior
        The distribution that the secret was drawn from: a number of models for the uniform one, or a belief.
    secret
        By default drawn from the prior. Give the old one to continue from a ledger or a snapshot.
    decode
        `"argmax"` (the paper's) or `"map"`, which is more accurate, both of a noisy release; or `"sample"`, a label
        released through a finite channel. docs/threat-model.md says what they mean.
    votes
        The rule by which the votes that this session is given came from those of the models; each answer records it.
    ledger
        Where the session continues and records. By default in memory. Several sessions of one deployment, also in
        other processes, may share a durable one; each then passes the same secret.
    snapshot
        A state to continue from, of this secret and prior; only with a ledger that is still empty.
    generator
        A seeded generator makes an experiment repeatable. Without one, the secret and the noise come from the
        operating system's entropy, as they must when answers leave the building.
    deployment
        The identity of the artifact that the secret belongs to. A ledger or snapshot of another one is refused.
    at
        Called with `"before-draw"` and `"after-draw"` in each turn, for tests that interrupt a session there.
    """

    def __init__(
        self,
        n_classes: int,
        budget: Budget,
        prior: int | Belief = defaults.MODELS,
        *,
        secret: Secret | None = None,
        decode: Decoder = defaults.DECODE,
        votes: VoteRule = "plain",
        ledger: Ledger | None = None,
        snapshot: State | None = None,
        generator: np.random.Generator | None = None,
        deployment: str | None = None,
        at: Failpoints = nowhere,
    ) -> None:
        if not hasattr(n_classes, "__index__") or not 2 <= n_classes <= MOST_CLASSES:
            raise InvalidInput(f"n_classes must be an integer from 2 to {MOST_CLASSES}, got {n_classes!r}")
        self.prior = prior if isinstance(prior, Belief) else Belief.uniform(check_model_count(prior))
        check_model_count(self.prior.n_models)
        self.n_classes = int(n_classes)
        self.budget = budget
        self.decode = decode
        self.votes = check_vote_rule(votes)
        self._ledger = MemoryLedger() if ledger is None else ledger
        self._entropy: Entropy = SystemEntropy() if generator is None else SeededEntropy(generator)
        self._answering = Answering(self.n_classes, budget, decode, self.prior, self._entropy)
        self._at = at
        origin, log_belief = describe_origin(self.prior, self.n_classes, budget), self.prior.log_probabilities
        fresh = State(0, 0, 0, log_belief.copy(), budget.step, deployment, origin, budget.total)
        with self._ledger.turn():
            recorded = self._ledger.load()
            is_new = recorded is None and (snapshot is None or snapshot.sequence == 0)
            self._secret = settle_secret(secret, is_new, self.prior, generator)
            self._fresh = replace(fresh, secret=self._secret.commitment())
            self._state = first_state(recorded, snapshot, self._fresh)
            self._recent = Recent(self._state.sequence)
            check_within(self._state, budget)
            if recorded is None:
                self._ledger.commit([], self._state)

    @property
    def belief(self) -> Belief:
        return Belief(self.snapshot().log_belief)

    def snapshot(self) -> State:
        """Return the state after the last release. A seeded generator's own state is the caller's to keep."""
        last = self._state  # before loading: another thread may be answering meanwhile
        return self._checked(self._ledger.load(), last)

    def guarantee(self, prior: float = 0.5) -> Guarantee:
        """Bound the success of any attack with this prior (0.5: is a given record in the training set?)."""
        unit = "record" if prior == 0.5 else None
        return Guarantee.of(self.budget, self.decode, self.snapshot(), prior, unit)

    def answer(self, votes: npt.ArrayLike) -> Release:
        """Answer one query, given the labels of all models (n_models,)."""
        row = self.ballots(votes)
        if len(row) != 1:
            raise InvalidVotes(f"answer takes one query, got {len(row)}; use answer_all")
        return self._answer(row)[0]

    def answer_all(self, votes: npt.ArrayLike) -> list[Release]:
        """Answer queries (n_queries, n_models) in turn; all of them, or none if the budget is short."""
        return self._answer(self.ballots(votes))

    def ballots(self, votes: npt.ArrayLike) -> Ballots:
        """Check and count votes (n_queries, n_models), to be asked about in requests."""
        return Ballots.check(votes, self.n_classes, self.prior.n_models)

    def recall(self, digests: Collection[bytes]) -> Known:
        """Look up which of these queries were answered, without waiting for anybody."""
        as_of = (
            self._state.sequence
        )  # before looking: what is committed meanwhile is looked up again in the turn
        return Known(as_of, self._ledger.recall(digests))

    def serve(self, requests: Sequence[Request]) -> list[list[Release] | PacPredictError]:
        """Answer the requests of several clients in one turn and one commit.

        Each is answered whole, or as far as the budget goes if it says so, or refused with the error that stands in
        its place; a refused one does not disturb the others. Queries that were answered before, here or by another
        session, get the same answer at no charge; a request of such queries alone waits for no turn and writes
        nothing, so its id is not noted. What is raised concerns all of them: nothing was answered.
        """
        outcomes = [_or_error(self._repeat, request) for request in requests]
        waiting = [i for i, outcome in enumerate(outcomes) if outcome is None]
        if waiting:
            for i, outcome in zip(waiting, self._serve_new([requests[i] for i in waiting]), strict=True):
                outcomes[i] = outcome
        answered = [releases for releases in outcomes if isinstance(releases, list)]
        self._confirm(release for releases in answered for release in releases)
        return [[] if outcome is None else outcome for outcome in outcomes]

    def keep_up(self) -> None:
        """See how far others have come with the same ledger."""
        self._ledger.keep_up()

    def check_ledger(self) -> None:
        """Raise LedgerError if a release could not be recorded now."""
        self._ledger.check()

    def hand_over(self) -> tuple[Secret, list[Entry], State]:
        """Give secret and history to whoever goes on with them; from now on nobody is answered here any more."""
        with self._ledger.turn():
            state = self._resume()
            self._ledger.close()
            return self._secret, list(self._ledger.entries()), state

    def take_back(self) -> None:
        """Go on here, since nobody went on with what was handed over."""
        if isinstance(self._ledger, MemoryLedger):
            self._ledger.reopen()

    def release(self, outputs: npt.ArrayLike) -> FloatArray:
        """Release a noisy vector, given the outputs of all models (n_models, n_outputs).

        For statistics and iterative algorithms inside the owner's walls; the server releases labels only.
        """
        y = check_outputs(outputs, self.prior.n_models)
        contested = bool((y != y[0]).any())
        with self._ledger.turn():
            state = self._resume()
            charged = self.budget.charge_vector(contested, state.spent_steps)
            released, belief, question, record = y[0].copy(), Belief(state.log_belief), None, None
            if contested:
                noise = calibrate(y, belief, self.budget.step)
                admit_vector(noise, self.budget, belief, self.prior, state.contested)
                noisy = noise.draw(self._secret.reveal(), self._entropy.normals(noise.variances.size))
                released, belief = noise.vector(noisy), belief.updated(noise.log_likelihood(noisy))
                question, record = y, noisy
            entry = Entry(state.sequence + 1, charged, None, "vector", question, record)
            self._commit([entry], int(contested), belief.log_probabilities)
        self._ledger.confirm(entry.sequence)
        return released

    def _answer(self, ballots: Ballots) -> list[Release]:
        with self._ledger.turn():
            before = self._resume()
            self.budget.charge([k > 1 for k in ballots.n_voted], before.spent_steps)  # or refuse
            drafts = [Draft()] * len(ballots)
            answered = self._release(before, ballots.votes, ballots.n_voted, drafts)
        self._ledger.confirm(before.sequence + len(drafts))
        places = [Place(row, is_first=True) for row in range(len(drafts))]
        return self._fill_in(places, before.sequence + 1, answered)

    def _resume(self) -> State:
        """Load the state, in a turn: another session may have moved it since the last."""
        recorded = self._ledger.load()
        if recorded is not self._state:
            self._state = self._checked(recorded, self._state)
            self._recent.begin(self._state.sequence)
        return self._state

    def _checked(self, recorded: State | None, last: State) -> State:
        if recorded is not None and recorded is last:
            return recorded
        state = check_moved_on(recorded, last)
        check_state(state, self._fresh)
        return state

    def _repeat(self, request: Request) -> list[Release] | None:
        """Answer a request that has all its answers on record; None if one is missing."""
        answers = repeated(request)
        if answers is None:
            return None
        if request.key is not None:
            check_request_id(request, self._ledger.request(request.key))
        return [self._again(answer) for answer in answers]

    def _serve_new(self, requests: Sequence[Request]) -> list[list[Release] | PacPredictError]:
        answered: Answered | None = None
        with self._ledger.turn():
            before = self._resume()
            clients = {request.client for request in requests if request.client is not None}
            allowances = self._ledger.allowances(clients) if clients else {}
            known, asked = self._look_up(requests, before.sequence)
            batch = Batch(self.budget, before.spent_steps, known, asked, allowances)
            places = [_or_error(batch.admit, request) for request in requests]
            if batch:
                answered = self._release(before, batch.votes(), batch.n_voted, batch.drafts)
        return [
            each if isinstance(each, PacPredictError) else self._fill_in(each, before.sequence + 1, answered)
            for each in places
        ]

    def _look_up(
        self, requests: Sequence[Request], sequence: int
    ) -> tuple[dict[bytes, Answer], dict[bytes, bytes]]:
        """Find out, in the turn, what these requests repeat, and what was asked with their ids."""
        known = self._recent.look_up(requests, sequence, self._ledger.recall)
        keys = {request.key for request in requests if request.key is not None}
        asked = {key: found for key in keys if (found := self._ledger.request(key)) is not None}
        return known, asked

    def _fill_in(
        self, places: Sequence[Answer | Place], first: int, answered: Answered | None
    ) -> list[Release]:
        releases = []
        for place in places:
            if isinstance(place, Answer):
                releases.append(self._again(place))
            elif answered is not None:
                charge = answered.charged[place.row] * self.budget.step
                label, number = answered.labels[place.row], first + place.row
                releases.append(Release(number, label, charge if place.is_first else 0.0, charge))
        return releases

    def _again(self, answer: Answer) -> Release:
        return Release(answer.sequence, answer.label, 0.0, answer.charged_steps * self.budget.step)

    def _confirm(self, releases: Iterable[Release]) -> None:
        last = max((release.sequence for release in releases), default=0)
        if last:
            self._ledger.confirm(last)

    def _release(
        self, before: State, votes: Votes, n_voted: Sequence[int], drafts: Sequence[Draft]
    ) -> Answered:
        """Draw, decode, update and commit, in a turn and after the charge was found to fit."""
        self._at("before-draw")
        answered = self._answering.answer(before, votes, n_voted, self._secret)
        self._at("after-draw")
        entries = _entries(before.sequence, votes, answered, drafts, self.votes)
        self._commit(entries, answered.n_contested, answered.log_belief)
        return answered

    def _commit(self, entries: Sequence[Entry], contested: int, log_belief: FloatArray) -> None:
        """Record first, then remember: if the ledger fails, the next turn continues where the ledger is."""
        before, fresh = self._state, self._fresh
        after = State(
            before.sequence + len(entries),
            before.contested + contested,
            before.spent_steps + sum(entry.charged_steps for entry in entries),
            log_belief,
            fresh.step,
            fresh.deployment,
            fresh.origin,
            fresh.total,
            fresh.secret,
            before.noisy + sum(entry.noisy is not None for entry in entries),
        )
        self._ledger.commit(entries, after)
        self._recent.add(entries)
        self._state = after


def _entries(
    sequence: int, votes: Votes, answered: Answered, drafts: Sequence[Draft], rule: VoteRule
) -> list[Entry]:
    """Complete the drafts: with numbers, labels, charges and, where models differ, what was asked and released."""
    votes.setflags(write=False)
    labels, charged, kinds, noisy, *_ = answered
    return [
        Entry(
            *(sequence + 1 + q, charged[q], labels[q], kinds[q]),
            None if kinds[q] == "agreed" else votes[q],
            noisy[q],
            *draft,
            votes=rule,
        )
        for q, draft in enumerate(drafts)
    ]


def _or_error(function: Callable[[X], Y], argument: X) -> Y | PacPredictError:
    try:
        return function(argument)
    except PacPredictError as refusal:
        return refusal
