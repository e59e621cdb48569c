"""What a history says about its own labels: how clearly each beat its rivals, and what is believed by some point.

A function of what the ledger has, hence public in the sense of the proof, and the same however often it is computed. It
is for the owner all the same: clients see labels only, and nothing of `serving/` may import this.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.filters import Confidence, confidence
from pacpredict.exceptions import LedgerError
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Entry, Kind
from pacpredict.mechanism.replay import History
from pacpredict.types import Votes

CERTAIN, UNKNOWN = Confidence(np.inf, 0), Confidence(-np.inf, 1)


class Weighed(NamedTuple):
    """One label of a history."""

    label: int
    kind: Kind
    charged_steps: int
    votes: Votes | None  # None where all models agreed
    confidence: (
        Confidence  # of the noisy release; minus infinity where there was none that could hide the label
    )


class Point(NamedTuple):
    """How far a history had come after some release."""

    belief: Belief
    spent_steps: int


class Evidence(NamedTuple):
    labels: Mapping[int, Weighed]  # by the number of the release
    points: Mapping[int, Point]


def weigh(
    entries: Iterable[Entry],
    n_classes: int,
    budget: Budget,
    prior: Belief,
    wanted: Collection[int],
    points: Collection[int],
) -> Evidence:
    """Replay a history up to the last point, and weigh the labels of the wanted releases."""
    history = History(n_classes, budget, prior)
    chosen, stops, last = set(wanted), set(points), max(points, default=0)
    labels: dict[int, Weighed] = {}
    reached = {0: Point(prior, 0)} if 0 in stops else {}
    spent = 0
    for entry in entries:
        if entry.sequence > last:
            break
        if entry.sequence in chosen:
            labels[entry.sequence] = _weigh(entry, n_classes, budget, history)
        history.add(entry)
        spent += entry.charged_steps
        if entry.sequence in stops:
            reached[entry.sequence] = Point(history.belief, spent)
    if absent := (chosen - labels.keys()) | (stops - reached.keys()):
        raise LedgerError(f"the ledger has no release {min(absent)}, or none of a label")
    return Evidence(labels, reached)


def _weigh(entry: Entry, n_classes: int, budget: Budget, history: History) -> Weighed:
    """Weigh a label under the belief that its noise was calibrated to, the one before it."""
    if entry.label is None:
        raise LedgerError(f"release {entry.sequence} is one of numbers, not of a label")
    if entry.question is None:
        return Weighed(entry.label, entry.kind, entry.charged_steps, None, CERTAIN)
    votes = np.asarray(entry.question, np.int16)
    found = UNKNOWN
    if entry.noisy is not None:
        noise = calibrate_votes(votes, n_classes, history.belief, budget.step, noise=budget.noise)
        found = confidence(noise, votes, entry.noisy, entry.label)
    return Weighed(entry.label, entry.kind, entry.charged_steps, votes, found)
