"""What costs nothing, what always has noise, and where a budget ends."""

import copy
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_contract import same_array
from small_session import (
    CONTESTED,
    UNANIMOUS,
    Frozen,
    M,
    make,
    random_outputs,
    used_session,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    BudgetExhausted,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.secret import Secret


@pytest.mark.parametrize("charging", ["adaptive", "flat"])
@pytest.mark.parametrize("method", ["answer", "answer_all", "release"])
def test_unanimous_queries_draw_nothing(method, charging):
    """Where all models agree, the answer is theirs, no noise is drawn and only the counters move."""
    session, generator, ledger = used_session(Budget(0.01, 1.0, charging=charging))
    before, bits = session.snapshot(), copy.deepcopy(generator.bit_generator.state)
    argument = {"answer": UNANIMOUS, "answer_all": [UNANIMOUS], "release": np.full((M, 2), 1 / 3)}[method]
    answer = getattr(session, method)(argument)
    after = session.snapshot()
    assert generator.bit_generator.state == bits
    assert same_array(after.log_belief, before.log_belief)
    assert (after.sequence, after.contested) == (before.sequence + 1, before.contested)
    assert after.spent_steps == before.spent_steps + (charging == "flat")
    entry = list(ledger.entries())[-1]
    assert entry.question is None
    assert entry.noisy is None
    if method == "release":
        assert answer.tolist() == [1 / 3, 1 / 3]
    else:
        assert (answer[0] if method == "answer_all" else answer).label == 2


@pytest.mark.parametrize("step", [2.0**-32, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("dissenter", [0, 3, M - 1])
def test_agreement_means_all_models(step, dissenter):
    """A dissenter that the belief has ruled out still makes a query contested: charged, and noised visibly."""
    prior = np.full(M, 1 / (M - 1))
    prior[dissenter] = 0.0
    ledger = MemoryLedger()
    secret = Secret((dissenter + 1) % M, M)
    session, generator = make(
        budget=Budget(step, 10 * step), prior=Belief.from_probabilities(prior), secret=secret, ledger=ledger
    )
    bits = copy.deepcopy(generator.bit_generator.state)
    release = session.answer((np.arange(M) == dissenter).astype(int))
    entry = next(ledger.entries())
    assert release.charge == step
    assert session.snapshot().contested == 1
    assert generator.bit_generator.state != bits
    assert not np.isin(np.abs(entry.noisy), [math.sqrt(0.5)]).any()


def test_outputs_of_a_ruled_out_model_are_charged():
    """The same holds for real outputs, which carry no signal of a model that cannot be."""
    prior = Belief.from_probabilities([0.0] + [1 / (M - 1)] * (M - 1))
    session, _ = make(prior=prior, budget=Budget(0.1, 1.0))
    session.release(np.eye(M)[:, :1])
    assert (session.snapshot().contested, session.snapshot().spent_steps) == (1, 1)


@pytest.mark.parametrize("charging", ["adaptive", "flat"])
@pytest.mark.parametrize(
    ("method", "argument"),
    [
        ("answer", CONTESTED),
        ("answer", UNANIMOUS),
        ("answer_all", [CONTESTED, UNANIMOUS, CONTESTED]),
        ("release", random_outputs(0)),
        ("release", np.ones((M, 2))),
    ],
)
def test_exhausted_budgets_refuse_before_drawing(charging, method, argument):
    """When the total is spent, every further request is refused and nothing at all happens."""
    session, generator, ledger = used_session(Budget(0.5, 1.0, charging=charging))
    while session.snapshot().spent_steps < 2:
        session.answer(CONTESTED)
    frozen = Frozen(session, generator, ledger)
    with pytest.raises(BudgetExhausted):
        getattr(session, method)(argument)
    frozen.check()


def test_batches_beyond_the_budget_are_refused_whole():
    """A batch that would pass the total gives no answer, not even to the queries that would still fit."""
    session, generator, ledger = used_session(Budget(0.5, 1.5))
    frozen = Frozen(session, generator, ledger)
    with pytest.raises(BudgetExhausted) as refusal:
        session.answer_all([CONTESTED] * 3)
    assert (refusal.value.needed_nats, refusal.value.left_nats) == (1.5, 1.0)
    frozen.check()
    assert len(session.answer_all([CONTESTED] * 2)) == 2


@settings(deadline=None, max_examples=50)
@given(
    requests=st.lists(st.lists(st.booleans(), min_size=1, max_size=6), max_size=10),
    charging=st.sampled_from(["adaptive", "flat"]),
    when=st.sampled_from(["halt", "unanimous"]),
)
def test_sessions_never_spend_more_than_the_total(requests, charging, when):
    """Whatever is sent, no more contested releases are recorded than the budget has steps."""
    ledger = MemoryLedger()
    session, _ = make(budget=Budget(0.1, 0.75, charging=charging, when_exhausted=when), ledger=ledger)
    for request in requests:
        try:
            session.answer_all([CONTESTED if contested else UNANIMOUS for contested in request])
        except BudgetExhausted:
            continue
    entries = list(ledger.entries())
    assert sum(entry.charged_steps for entry in entries) == session.snapshot().spent_steps <= 7
    assert sum(entry.noisy is not None for entry in entries) == session.snapshot().contested <= 7


@pytest.mark.parametrize("when", ["halt", "unanimous"])
def test_exhaustion_leaves_only_agreement(when):
    """After the total is spent only what all models agree on is answered, and only if that was chosen."""
    session, _ = make(budget=Budget(0.5, 0.5, when_exhausted=when))
    session.answer(CONTESTED)
    for contested in (CONTESTED, [0] * (M - 1) + [1]):
        with pytest.raises(BudgetExhausted):
            session.answer(contested)
    with pytest.raises(BudgetExhausted):
        session.answer_all([UNANIMOUS, CONTESTED])
    if when == "halt":
        with pytest.raises(BudgetExhausted):
            session.answer(UNANIMOUS)
    else:
        assert session.answer(UNANIMOUS).label == 2
        assert session.release(np.ones((M, 1))).tolist() == [1.0]


def what_is_refused(session, method, argument):
    with pytest.raises(BudgetExhausted) as refusal:
        getattr(session, method)(argument)
    return str(refusal.value), vars(refusal.value)


@pytest.mark.parametrize("charging", ["adaptive", "flat"])
@pytest.mark.parametrize(
    ("method", "contested", "agreed"),
    [
        ("answer", CONTESTED, UNANIMOUS),
        ("answer_all", [CONTESTED] * 3, [UNANIMOUS] * 3),
        ("answer_all", [CONTESTED] * 3, [UNANIMOUS, CONTESTED, UNANIMOUS]),
        ("release", random_outputs(0), np.ones((M, 2))),
    ],
)
def test_a_halted_session_does_not_tell_where_models_differ(charging, method, contested, agreed):
    """After the end nothing is learned for free: a refusal says the same whatever the models would say."""
    session, _ = make(budget=Budget(0.5, 0.5, charging=charging))
    session.answer(CONTESTED)
    assert what_is_refused(session, method, contested) == what_is_refused(session, method, agreed)
