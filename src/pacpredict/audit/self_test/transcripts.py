"""Sessions, played and written down: what was asked, what clients were told, and what the ledger says about it."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pacpredict.audit.self_test.mechanism import Mechanism
from pacpredict.audit.self_test.oracle import Claim, Question
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.guarantee import Guarantee
from pacpredict.mechanism.ledger import Entry, Ledger, MemoryLedger, State
from pacpredict.mechanism.question import NO_BALLOTS, UNVOTED, Release, Request
from pacpredict.mechanism.secret import Secret
from pacpredict.types import FloatArray

_DIGEST_SIZE = 32
# ScoreLog of one request; a turn serves several clients, as a server does.
_ROWS = (1, 7, 24)
# Kinds of sessions that are asked at their end what they promise; that takes as long as hundreds of releases.
_STATED = ("end", "long")


@dataclass
class Transcript:
    """One session from its first answer to its last."""

    group: str  # what it was played for
    claim: Claim  # with the budget of this session
    start: State
    questions: list[Question] = field(default_factory=list)  # of each entry
    told: list[Release] = field(default_factory=list)  # likewise, what the client got
    turns: list[State] = field(default_factory=list)  # the state after each turn
    repeated: list[tuple[Release, Release]] = field(default_factory=list)  # what was told at first, and again
    repeats_recorded: int = 0  # entries that a repeated query left
    secret: int = -1
    drew_secret: bool = False  # by itself, as a new deployment does
    entries: list[Entry] = field(default_factory=list)
    guarantee: Guarantee | None = None  # as the session states it at the end


class Player:
    """Asks one session, as clients do, and keeps the transcript."""

    def __init__(
        self,
        mechanism: Mechanism,
        group: str,
        rng: np.random.Generator,
        *,
        budget: Budget | None = None,
        secret: Secret | None = None,
        start: State | None = None,
        file: Path | None = None,
    ) -> None:
        claim = mechanism.claim if budget is None else replace(mechanism.claim, budget=budget)
        self._mechanism, self._budget, self._rng = mechanism, claim.budget, rng
        self._secret = secret or (mechanism.draw_secret() if start or file else None)
        self._file = file
        self._ledger = self._open_ledger(start)
        self._session = mechanism.open(self._budget, self._ledger, self._secret)
        self._digests: list[bytes] = []
        self.transcript = Transcript(group, claim, self._session.snapshot(), drew_secret=self._secret is None)

    def ask(self, questions: Sequence[Question], *, partial: bool = False) -> None:
        """Ask in one turn, in requests of several clients; what is refused is not in the transcript."""
        requests, parts, ends = [], [], itertools.accumulate(itertools.cycle(_ROWS))
        start = 0
        while start < len(questions):
            end = min(next(ends), len(questions))
            parts.append(questions[start:end])
            start = end
        for client, part in enumerate(parts):
            ballots = self._session.ballots(np.stack([one.votes for one in part]))
            digests = [self._rng.bytes(_DIGEST_SIZE) for _ in part]
            requests.append(Request.of(ballots, digests, client=f"client {client}", partial=partial))
        for part, request, outcome in zip(parts, requests, self._session.serve(requests), strict=True):
            if isinstance(outcome, list):
                self.transcript.questions += part[: len(outcome)]
                self.transcript.told += outcome
                self._digests += [digest for digest in request.digests[: len(outcome)] if digest is not None]
        self.transcript.turns.append(self._session.snapshot())

    def ask_again(self, n: int) -> None:
        """Send some earlier queries again, with votes and without: the answers must be those on record."""
        chosen = self._rng.choice(len(self._digests), min(n, len(self._digests)), replace=False)
        digests, before = [self._digests[i] for i in chosen], self._session.snapshot().sequence
        votes = self._session.ballots(np.stack([self.transcript.questions[i].votes for i in chosen]))
        known = self._session.recall(set(digests))
        requests = [Request.of(votes, digests)]
        if len(known.answers) == len(digests):
            requests.append(Request(digests, NO_BALLOTS, [UNVOTED] * len(digests), known))
        for request in requests:
            (outcome,) = self._session.serve([request])
            if isinstance(outcome, list):
                self.transcript.repeated += [
                    (self.transcript.told[i], again) for i, again in zip(chosen, outcome, strict=True)
                ]
        self.transcript.repeats_recorded += self._session.snapshot().sequence - before

    def restart(self) -> None:
        """Open the history again, from the file if it is in one, as a server does that was stopped."""
        if self._file is not None:
            self._ledger.close()
            self._ledger = self._open_ledger(None)
        self._session = self._mechanism.open(self._budget, self._ledger, self._secret)

    def end(self) -> tuple[Transcript, Secret]:
        """Close the session; its secret is known from now on, to score it by."""
        done, session = self.transcript, self._session
        if done.group in _STATED:
            done.guarantee = session.guarantee()
        if self._secret is None:
            self._secret, done.entries, _ = session.hand_over()
        else:
            done.entries = list(self._ledger.entries())
            self._ledger.close()
        done.secret = self._secret.reveal()
        return done, self._secret

    def _open_ledger(self, start: State | None) -> Ledger:
        if self._file is not None and self._secret is not None:
            return SqliteLedger(self._file, key=self._secret.key("self-test"))
        ledger = MemoryLedger()
        if start is not None:  # bound to this secret, and otherwise as it was given
            bound = self._mechanism.open(self._budget, MemoryLedger(), self._secret).snapshot()
            ledger.commit([], replace(start, origin=bound.origin, secret=bound.secret))
        return ledger


def state_at(claim: Claim, spent: int, log_belief: FloatArray) -> State:
    """Return the state of a history that has come so far, for sessions that go on from there."""
    budget, noisy = claim.budget, 0 if claim.finite else spent
    return State(spent, spent, spent, log_belief, budget.step, total=budget.total, noisy=noisy)
