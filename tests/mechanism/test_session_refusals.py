"""What a session refuses, and that refusing changes nothing."""

import copy
import math

import numpy as np
import pytest
from small_session import (
    BAD_OUTPUTS,
    BAD_VOTES,
    CLASSES,
    CONTESTED,
    PLENTY,
    SECRET,
    Frozen,
    M,
    used_session,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    InvalidBelief,
    InvalidBudget,
    InvalidInput,
    InvalidModelCount,
    InvalidOutputs,
    InvalidVotes,
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger, State
from pacpredict.mechanism.session import Session

REQUESTS = [
    *((f"answer: {name}", "answer", votes, InvalidVotes) for name, votes in BAD_VOTES.items()),
    ("answer: two queries", "answer", [CONTESTED, CONTESTED], InvalidVotes),
    *((f"answer_all: {name}", "answer_all", votes, InvalidVotes) for name, votes in BAD_VOTES.items()),
    ("answer_all: a bad last row", "answer_all", [CONTESTED, BAD_VOTES["negative"]], InvalidVotes),
    *((f"release: {name}", "release", outputs, InvalidOutputs) for name, outputs in BAD_OUTPUTS.items()),
]


@pytest.mark.parametrize(("name", "method", "argument", "error"), REQUESTS, ids=[r[0] for r in REQUESTS])
def test_bad_requests_change_nothing(name, method, argument, error):
    """Each kind of bad input raises its own error before anything is drawn, charged or recorded."""
    session, generator, ledger = used_session()
    frozen = Frozen(session, generator, ledger)
    with pytest.raises(error):
        getattr(session, method)(argument)
    frozen.check()


BAD_SESSIONS = {
    "one class": ({"n_classes": 1}, InvalidInput),
    "no class": ({"n_classes": 0}, InvalidInput),
    "odd number of models": ({"prior": 7}, InvalidModelCount),
    "no models": ({"prior": 0}, InvalidModelCount),
    "negative number of models": ({"prior": -2}, InvalidModelCount),
    "prior over an odd number": ({"prior": Belief.uniform(3)}, InvalidModelCount),
    "unknown decoder": ({"decode": "median"}, InvalidInput),
    "state about other models": (
        {"snapshot": State(1, 1, 1, Belief.uniform(4).log_probabilities.copy()), "secret": SECRET},
        InvalidBelief,
    ),
}


@pytest.mark.parametrize(("options", "error"), BAD_SESSIONS.values(), ids=BAD_SESSIONS)
def test_bad_sessions_are_not_made(options, error):
    """A session that cannot work is refused before a secret is drawn or the ledger touched."""
    ledger, generator = MemoryLedger(), np.random.default_rng(0)
    bits = copy.deepcopy(generator.bit_generator.state)
    with pytest.raises(error):
        Session(
            **{"n_classes": 2, "budget": PLENTY, "prior": M, "ledger": ledger, "generator": generator}
            | options
        )
    assert ledger.load() is None
    assert generator.bit_generator.state == bits


@pytest.mark.parametrize(
    "probabilities", [[0.5, 0.6], [0.5, 0.4], [-0.5, 1.5], [math.nan, 1.0], [math.inf, 0.0], []]
)
def test_priors_must_be_distributions(probabilities):
    """A prior that does not sum to 1, or has impossible entries, never reaches a session."""
    with pytest.raises(InvalidBelief):
        Session(2, PLENTY, Belief.from_probabilities(probabilities))


@pytest.mark.parametrize("step", [0.0, -1.0, math.nan, math.inf])
def test_budgets_must_be_amounts(step):
    """A budget that is no positive amount of information never reaches a session."""
    with pytest.raises(InvalidBudget):
        Session(2, Budget(step, 1.0), M)
    with pytest.raises(InvalidBudget):
        Session(2, Budget(1e-9, step), M)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_classes": 2.5}, InvalidInput),
        ({"n_classes": math.nan}, InvalidInput),
        ({"prior": 8.0}, InvalidInput),
        ({"prior": "8"}, InvalidInput),
    ],
)
def test_counts_must_be_integers(options, error):
    """A number of classes or models that is no integer is refused when the session is made."""
    with pytest.raises(error):
        Session(**{"n_classes": 2, "budget": PLENTY, "prior": M} | options)


class Miser:
    """A source of noise that gives another number of normals than it was asked for."""

    def __init__(self, given):
        self.given = given

    def standard_normal(self, size):
        return np.full(self.given, 0.5)


@pytest.mark.parametrize(
    ("method", "argument", "given"),
    [("answer", CONTESTED, 0), ("answer", CONTESTED, 1), ("release", np.eye(M), 1)],
)
def test_missing_noise_is_no_answer(method, argument, given):
    """A source of noise that is out of order stops the session: no label is released with less noise."""
    ledger = MemoryLedger()
    session = Session(CLASSES, PLENTY, M, secret=SECRET, ledger=ledger, generator=Miser(given))
    with pytest.raises((PacPredictError, ValueError)):
        getattr(session, method)(argument)
    assert list(ledger.entries()) == []
