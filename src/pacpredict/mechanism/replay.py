"""From a ledger's entries back to the state, bit for bit."""

from collections.abc import Container, Iterable, Iterator

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate
from pacpredict.core.release import RELEASED, REPLAY, answer_votes
from pacpredict.core.validate import check_votes
from pacpredict.exceptions import LedgerError, OddsLimitReached
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Entry, State
from pacpredict.mechanism.limit import admit_vector
from pacpredict.types import FloatArray, Votes


def replay(entries: Iterable[Entry], n_classes: int, budget: Budget, prior: Belief) -> State:
    """Recompute the state from a ledger's entries, bit for bit; `budget` is that of the session that wrote them."""
    history = History(n_classes, budget, prior)
    for entry in entries:
        history.add(entry)
    return history.state()


def retrace(
    entries: Iterable[Entry], n_classes: int, budget: Budget, prior: Belief, *, stops: Container[int]
) -> Iterator[State]:
    """Yield the states on the way, likewise: after each release whose number is among the stops."""
    history = History(n_classes, budget, prior)
    for entry in entries:
        history.add(entry)
        if entry.sequence in stops:
            yield history.state()


class History:
    """A history as far as it was replayed."""

    def __init__(self, n_classes: int, budget: Budget, prior: Belief) -> None:
        self._n_classes = n_classes
        self._budget = budget
        self._prior = prior
        self._log_belief: FloatArray = prior.log_probabilities.copy()
        self._sequence = self._contested = self._spent = self._noisy = 0

    @property
    def belief(self) -> Belief:
        """What everybody may believe after the last entry that was added."""
        return Belief(self._log_belief)

    def state(self) -> State:
        counts = self._sequence, self._contested, self._spent
        return State(*counts, self._log_belief.copy(), self._budget.step, noisy=self._noisy)

    def add(self, entry: Entry) -> None:
        if entry.sequence != self._sequence + 1:
            raise LedgerError(
                f"entry {entry.sequence} follows entry {self._sequence}: the history is not complete"
            )
        if entry.question is not None:
            if entry.label is None:
                self._add_vector(entry, np.asarray(entry.question, np.float64))
            else:
                self._add_label(
                    entry, check_votes(entry.question, self._n_classes, self._log_belief.size), entry.label
                )
            self._contested += 1
        self._sequence, self._spent = entry.sequence, self._spent + entry.charged_steps
        self._noisy += entry.noisy is not None

    def _add_label(self, entry: Entry, votes: Votes, label: int) -> None:
        """Take what was released from the record; whether that was allowed is decided again."""
        voted = np.unique(votes)
        if label not in voted:
            raise _damaged(entry, "its label is one that nobody voted for")
        if entry.kind == "belief":
            return
        noisy = np.empty(0) if entry.noisy is None else entry.noisy.copy()
        if entry.noisy is not None and noisy.shape != (voted.size - 1,):
            raise _damaged(entry, f"its release does not have {voted.size - 1} numbers")
        budget = self._budget
        how, _, labels = answer_votes(
            *(votes, self._n_classes, REPLAY, budget.step, entry.noisy is None, budget.epsilon),
            *(budget.step_delta, False, budget.is_fair, self._contested, budget.total_steps - self._spent),
            *(np.empty(0), np.searchsorted(voted, [label]), self._log_belief),
            *(self._prior.log_probabilities, noisy),
        )
        if how[0] != RELEASED:
            raise _damaged(entry, "budget and limit on odds did not allow a release")
        if label not in labels:  # by argmax or by map
            raise _damaged(entry, "its label is not what its release says")

    def _add_vector(self, entry: Entry, outputs: FloatArray) -> None:
        belief = Belief(self._log_belief)
        noise = calibrate(outputs, belief, self._budget.step)
        if entry.noisy is None or entry.noisy.shape != (noise.variances.size,):
            raise _damaged(entry, f"its release does not have {noise.variances.size} numbers")
        try:
            admit_vector(noise, self._budget, belief, self._prior, self._contested)
        except OddsLimitReached as problem:
            raise _damaged(entry, "the limit on odds did not allow a release") from problem
        self._log_belief = belief.updated(noise.log_likelihood(entry.noisy)).log_probabilities.copy()


def _damaged(entry: Entry, what: str) -> LedgerError:
    return LedgerError(f"entry {entry.sequence} is damaged: {what}")
