"""From a ledger's entries back to the state, bit for bit."""

from collections.abc import Iterable

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate
from pacpredict.core.release import REPLAY, answer_votes, count_voted
from pacpredict.core.validate import FloatArray, check_votes
from pacpredict.exceptions import LedgerError
from pacpredict.mechanism.ledger import Entry, State


def replay(entries: Iterable[Entry], n_classes: int, step_budget: float, prior: Belief) -> State:
    """Recompute the state from a ledger's entries, bit for bit."""
    log_belief = prior.log_probabilities.copy()
    sequence = contested = spent = 0
    for entry in entries:
        if entry.sequence != sequence + 1:
            raise LedgerError(f"entry {entry.sequence} follows entry {sequence}: the history is not complete")
        sequence, spent = entry.sequence, spent + entry.charged_steps
        if entry.question is not None and entry.noisy is not None:
            contested += 1
            log_belief = _update(log_belief, entry, n_classes, step_budget)
    return State(sequence, contested, spent, log_belief, step_budget)


def _update(log_belief: FloatArray, entry: Entry, n_classes: int, step_budget: float) -> FloatArray:
    """Apply one contested release to the belief; label votes update it in place."""
    if entry.question is None or entry.noisy is None:
        return log_belief
    if entry.label is None:
        noise = calibrate(entry.question, Belief(log_belief), step_budget)
        _check_size(entry, noise.variances.size)
        return Belief(log_belief).updated(noise.log_likelihood(entry.noisy)).log_probabilities.copy()
    votes = check_votes(entry.question, n_classes, log_belief.size)
    _check_size(entry, int(count_voted(votes, n_classes)[0]) - 1)
    labels = answer_votes(votes, n_classes, REPLAY, step_budget, np.empty(0), log_belief, entry.noisy.copy())
    if entry.label not in labels:  # by argmax or by map
        raise LedgerError(f"entry {entry.sequence} is damaged: its label is not what its release says")
    return log_belief


def _check_size(entry: Entry, size: int) -> None:
    if entry.noisy is None or entry.noisy.shape != (size,):
        raise LedgerError(f"entry {entry.sequence} is damaged: its release does not have {size} numbers")
