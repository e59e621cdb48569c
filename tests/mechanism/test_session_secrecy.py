"""Nothing but the release depends on the secret."""

import copy
import pickle
import re

import numpy as np
import pytest
from small_session import (
    ASKED,
    BAD_OUTPUTS,
    BAD_VOTES,
    CONTESTED,
    SECRET,
    UNANIMOUS,
    M,
    make,
    random_outputs,
    random_votes,
)

from pacpredict.exceptions import (
    InvalidInput,
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.secret import Secret


def public_trace(secret):
    """Everything that a session shows besides its labels and vectors, errors and texts included."""
    ledger = MemoryLedger()
    session, generator = make(3, Budget(2.0**-10, 2.0**-5), secret=Secret(secret, M), ledger=ledger)
    trace = []
    requests = [
        *(("answer", row) for row in random_votes(0, 10)),
        ("answer_all", random_votes(1, 6)),
        ("release", random_outputs(0)),
        ("release", np.eye(M)),
        ("answer", BAD_VOTES["out of range"]),
        ("answer_all", BAD_VOTES["too few models"]),
        ("release", BAD_OUTPUTS["NaN"]),
        ("release", BAD_OUTPUTS["too large a difference"]),
        ("answer_all", [CONTESTED] * 30),
        ("answer", UNANIMOUS),
    ]
    for method, argument in requests:
        try:
            answer = getattr(session, method)(argument)
        except PacPredictError as refusal:
            trace.append((type(refusal), str(refusal), vars(refusal)))
        else:
            trace.append([(r.sequence, r.charge) for r in answer] if method == "answer_all" else None)
            trace.append((answer.sequence, answer.charge) if method == "answer" else None)
            trace.append((answer.shape, answer.dtype) if method == "release" else None)
        state = session.snapshot()
        trace += [(state.sequence, state.contested, state.spent_steps), str(generator.bit_generator.state)]
    trace += [session.guarantee(), repr(ledger.load())]
    texts = f"{session!r} {vars(session)} {[str(v) for v in vars(session).values()]}"
    trace.append(re.sub(r"0x[0-9A-Fa-f]+", "address", texts))
    trace += [(entry.sequence, entry.charged_steps, entry.label is None) for entry in ledger.entries()]
    return trace


def test_only_releases_depend_on_the_secret():
    """Charges, counters, errors, texts and the use of randomness are the same for every secret."""
    expected = public_trace(0)
    assert all(public_trace(secret) == expected for secret in range(1, M))


def test_answers_do_depend_on_the_secret():
    """The comparison above would be empty if sessions ignored their secret."""
    noisy = []
    for secret in range(M):
        session, _ = make(3, Budget(10.0, 10.0), secret=Secret(secret, M), prior=M)
        noisy.append(session.release(np.arange(M)[:, None])[0])
    assert np.abs(np.array(noisy) - np.arange(M)).max() < 3
    assert np.unique(noisy).size == M


@pytest.mark.parametrize("carry", [pickle.dumps, copy.deepcopy])
def test_sessions_are_not_carried_away(carry):
    """A copy would be a second history of one secret."""
    session, _ = make()
    with pytest.raises(TypeError) as refusal:
        carry(session)
    assert str(SECRET.reveal()) not in str(refusal.value)


@pytest.mark.parametrize(("method", "argument"), ASKED)
def test_foreign_secrets_are_refused_unnamed(method, argument):
    """A secret of another ensemble is refused at once, and no error tells which it is."""
    with pytest.raises(InvalidInput) as refusal:
        getattr(make(secret=Secret(86_753, 100_000))[0], method)(argument)
    assert "86" not in str(refusal.value)
