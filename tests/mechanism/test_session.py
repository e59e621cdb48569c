"""The state machine of a deployment: what it may depend on, what it must not change, and what it never forgets."""

import copy
import math
import pickle
import re
import threading

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger_contract import same_array, same_entry, same_state
from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.exceptions import (
    BudgetExhausted,
    ForeignLedger,
    InvalidBelief,
    InvalidBudget,
    InvalidInput,
    InvalidModelCount,
    InvalidOutputs,
    InvalidVotes,
    LedgerConflict,
    LedgerError,
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import NO_REQUESTS, Entry, MemoryLedger, State
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from racing import race

M, CLASSES = 8, 4
CONTESTED = [0, 1, 1, 2, 1, 1, 1, 3]
UNANIMOUS = [2] * M
PLENTY = Budget(2.0**-8, 1000.0)
SECRET = Secret(3, M)


def random_votes(seed, n_queries, dissent=0.2, n_models=M, n_classes=CLASSES):
    rng = np.random.default_rng(seed)
    majority = rng.integers(n_classes, size=(n_queries, 1))
    dissents = rng.random((n_queries, n_models)) < dissent
    return np.where(dissents, rng.integers(n_classes, size=(n_queries, n_models)), majority)


def random_outputs(seed, n_outputs=3):
    return np.random.default_rng(seed).standard_normal((M, n_outputs))


def make(seed=0, budget=PLENTY, prior=M, secret=SECRET, **options):
    """A session with a seeded generator, which is returned as well."""
    generator = np.random.default_rng(seed)
    return Session(CLASSES, budget, prior, secret=secret, generator=generator, **options), generator


class Frozen:
    """Everything that a refused request must leave as it is."""

    def __init__(self, session, generator, ledger):
        self.watched = session, generator, ledger
        self.state, self.secret = session._state, session._secret
        self.recorded, self.entries = ledger.load(), list(ledger.entries())
        self.bits = copy.deepcopy(generator.bit_generator.state)

    def check(self, *, drew=False):
        session, generator, ledger = self.watched
        assert session._state is self.state
        assert session._secret is self.secret
        assert same_state(ledger.load(), self.recorded)
        assert all(map(same_entry, ledger.entries(), self.entries))
        assert len(list(ledger.entries())) == len(self.entries)
        assert drew or generator.bit_generator.state == self.bits


def used_session(budget=PLENTY, **options):
    """A session that has answered already, its generator and its ledger."""
    ledger = MemoryLedger()
    session, generator = make(budget=budget, ledger=ledger, **options)
    session.answer(CONTESTED)
    session.answer(UNANIMOUS)
    return session, generator, ledger


# --- the same history, however it is asked for -------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.sets(st.integers(1, 11)),
    decode=st.sampled_from(["argmax", "map"]),
    step=st.sampled_from([2.0**-32, 2.0**-10, 0.05]),
)
def test_batches_may_be_split_anywhere(seed, cuts, decode, step):
    """Answers, noise, charges and belief are the same bits for a batch, its parts and single queries."""
    votes, budget = random_votes(seed, 12), Budget(step, 1e4 * step)
    whole, generator = make(seed, budget, decode=decode, ledger=(expected := MemoryLedger()))
    releases = whole.answer_all(votes)
    for parts in ([*cuts, 12], range(1, 13)):
        ledger = MemoryLedger()
        session, other = make(seed, budget, decode=decode, ledger=ledger)
        answered, start = [], 0
        for stop in sorted(parts):
            part = votes[start:stop]
            answered += session.answer_all(part) if stop - start > 1 else [session.answer(part[0])]
            start = stop
        assert answered == releases
        assert all(map(same_entry, ledger.entries(), expected.entries()))
        assert same_state(session.snapshot(), whole.snapshot())
        assert other.bit_generator.state == generator.bit_generator.state


@pytest.mark.parametrize("where", ["snapshot", "ledger"])
@pytest.mark.parametrize("step", [2.0**-32, 2.0**-6])
def test_resuming_continues_bit_for_bit(where, step):
    """A session restarted from a snapshot or a ledger goes on exactly as one that was never interrupted."""
    budget, votes = Budget(step, 1e4 * step), random_votes(1, 60)
    whole, _ = make(5, budget)
    expected = [
        *whole.answer_all(votes[:20]),
        whole.release(random_outputs(2)),
        *whole.answer_all(votes[20:]),
    ]
    ledger = MemoryLedger()
    first, generator = make(5, budget, ledger=ledger)
    before = first.answer_all(votes[:20])
    fresh = np.random.default_rng()
    fresh.bit_generator.state = generator.bit_generator.state
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": first.snapshot()}
    second = Session(CLASSES, budget, M, secret=SECRET, generator=fresh, **source)
    after = [second.release(random_outputs(2)), *second.answer_all(votes[20:])]
    assert same_array(after[0], expected[20])
    assert before + after[1:] == expected[:20] + expected[21:]
    assert same_state(second.snapshot(), whole.snapshot())


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    requests=st.lists(st.sampled_from(["one", "many", "vector", "agreed", "agreed vector"]), max_size=12),
    step=st.sampled_from([2.0**-32, 2.0**-10, 0.01]),
)
def test_replay_recomputes_the_state(seed, requests, step):
    """The entries alone give the state again, bit for bit, for labels and real outputs mixed."""
    ledger = MemoryLedger()
    session, _ = make(seed, Budget(step, 1e4 * step), ledger=ledger)
    for i, request in enumerate(requests):
        if request in {"one", "many"}:
            session.answer_all(random_votes(seed + i, 1 if request == "one" else 7))
        elif request == "agreed":
            session.answer(UNANIMOUS)
        else:
            outputs = random_outputs(seed + i, n_outputs=1 + i)
            session.release(outputs if request == "vector" else outputs * 0 + 3.5)
    again = replay(ledger.entries(), CLASSES, step, Belief.uniform(M))
    assert same_state(again, session.snapshot())


def test_decoding_is_post_processing():
    """Another decoder shows another label at most: noise, charges and belief are the same."""
    ledgers, votes = [MemoryLedger(), MemoryLedger()], random_votes(8, 200)
    answers = [
        make(4, Budget(1e-3, 10.0), decode=decode, ledger=ledger)[0].answer_all(votes)
        for decode, ledger in zip(["argmax", "map"], ledgers, strict=True)
    ]
    for by_argmax, by_map in zip(*(ledger.entries() for ledger in ledgers), strict=True):
        assert same_array(by_argmax.noisy, by_map.noisy)
        assert by_argmax.charged_steps == by_map.charged_steps
    assert same_state(*(ledger.load() for ledger in ledgers))
    assert [release.label for release in answers[0]] != [release.label for release in answers[1]]


def test_labels_are_what_the_recorded_vector_says():
    """The label is the voted class whose entry of the noisy vector is largest."""
    ledger, votes = MemoryLedger(), random_votes(3, 100)
    session, _ = make(9, ledger=ledger)
    for row in votes:
        classes, before = np.unique(row), session.belief
        release, entry = session.answer(row), list(ledger.entries())[-1]
        noise = calibrate_votes(row, CLASSES, before, PLENTY.step)
        expected = classes[0] if entry.noisy is None else np.argmax(noise.vector(entry.noisy))
        assert release.label == entry.label == expected
        assert same_array(entry.question, None if classes.size == 1 else row.astype(np.int16))


def test_counters_and_guarantee():
    """What was asked, contested and spent is counted exactly, and the guarantee reports it."""
    session, _ = make(budget=Budget(0.25, 2.0))
    releases = session.answer_all([CONTESTED, UNANIMOUS, CONTESTED])
    session.release(random_outputs(0))
    assert [(r.sequence, r.charge) for r in releases] == [(1, 0.25), (2, 0.0), (3, 0.25)]
    state, guarantee = session.snapshot(), session.guarantee()
    assert (state.sequence, state.contested, state.spent_steps) == (4, 3, 3)
    assert (guarantee.queries, guarantee.contested, guarantee.spent_nats) == (4, 3, 0.75)
    assert guarantee.total_nats == 2.0
    assert 0.5 < guarantee.success_at_spent <= guarantee.success <= 1


def test_answers_do_not_hang_on_the_callers_arrays():
    """Votes and results that are overwritten afterwards change neither the ledger nor the belief."""
    ledger = MemoryLedger()
    session, _ = make(ledger=ledger)
    votes, outputs = np.array([CONTESTED], dtype=np.int16), random_outputs(0)
    session.answer_all(votes)
    noisy = session.release(outputs)
    votes[...], outputs[...], noisy[...] = 0, 0, 0
    assert same_state(replay(ledger.entries(), CLASSES, PLENTY.step, Belief.uniform(M)), session.snapshot())


# --- what is refused, and that refusing changes nothing ----------------------------------------------------

ONES = np.ones(M)
BAD_VOTES = {
    "out of range": [0] * (M - 1) + [CLASSES],
    "negative": [0] * (M - 1) + [-1],
    "far out of range": [0] * (M - 1) + [2**40],
    "floats": ONES,
    "booleans": ONES.astype(bool),
    "texts": ["a"] * M,
    "objects": [None] * M,
    "complex": ONES.astype(complex),
    "too few models": CONTESTED[:-1],
    "too many models": [*CONTESTED, 0],
    "nobody": [],
    "no queries": np.empty((0, M), dtype=int),
    "no models": np.empty((3, 0), dtype=int),
    "three dimensions": np.zeros((2, 2, M), dtype=int),
    "a number": 3,
}
BAD_OUTPUTS = {
    "NaN": np.where(np.eye(M) > 0, np.nan, 1.0),
    "infinity": np.where(np.eye(M) > 0, np.inf, 1.0),
    "minus infinity": np.where(np.eye(M) > 0, -np.inf, 1.0),
    "one dimension": np.arange(M),
    "three dimensions": np.zeros((M, 2, 2)),
    "too few models": np.zeros((M - 1, 2)),
    "no outputs": np.empty((M, 0)),
    "ragged": [[1.0]] * (M - 1) + [[1.0, 2.0]],
    "texts": [["a"]] * M,
    "complex": np.full((M, 2), 1j).tolist(),
    "too large a difference": np.arange(M)[:, None] % 2 * 1e150,
    "too small a difference": np.arange(M)[:, None] % 2 * 1e-150,
}
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


@pytest.mark.parametrize("method", ["answer", "answer_all"])
def test_ragged_votes_are_named(method):
    """Rows of different lengths are votes of the wrong shape."""
    session, _ = make()
    with pytest.raises(InvalidVotes):
        getattr(session, method)([CONTESTED, CONTESTED[:-1]])


def test_outputs_whose_difference_overflows_are_named():
    """Two finite outputs can be infinitely far apart in doubles."""
    session, _ = make()
    with pytest.raises(InvalidOutputs):
        session.release(np.where(np.arange(M) % 2, 1.7e308, -1.7e308)[:, None])


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


BAD_STATES = {
    "belief of sum 2": State(0, 0, 0, np.log(np.full(M, 2 / M))),
    "belief of NaN": State(0, 0, 0, np.full(M, np.nan)),
    "negative spending": State(0, 0, -1000, np.log(np.full(M, 1 / M))),
    "negative sequence": State(-5, 0, 0, np.log(np.full(M, 1 / M))),
    "more contested than asked": State(0, 3, 0, np.log(np.full(M, 1 / M))),
}


@pytest.mark.parametrize("state", BAD_STATES.values(), ids=BAD_STATES)
def test_impossible_states_are_refused(state):
    """A snapshot that no session can have left is refused before it is recorded."""
    ledger = MemoryLedger()
    with pytest.raises(InvalidInput):
        make(snapshot=state, ledger=ledger)
    assert ledger.load() is None


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


# --- the ledger comes first --------------------------------------------------------------------------------


class BrokenLedger(MemoryLedger):
    """A ledger that fails on demand, before or after it has committed."""

    fails = None

    def commit(self, entries, state, requests=NO_REQUESTS):
        if self.fails == "before":
            raise LedgerError("the disk is full")
        super().commit(entries, state, requests)
        if self.fails == "after":
            raise LedgerError("the connection was lost")


REQUEST = [("answer", CONTESTED), ("answer_all", [CONTESTED, UNANIMOUS]), ("release", random_outputs(1))]


@pytest.mark.parametrize(("method", "argument"), REQUEST)
def test_no_answer_without_a_commit(method, argument):
    """If the ledger fails, there is no answer and the session is where it was; it can go on afterwards."""
    ledger = BrokenLedger()
    session, generator = make(ledger=ledger)
    session.answer(CONTESTED)
    frozen = Frozen(session, generator, ledger)
    ledger.fails = "before"
    with pytest.raises(LedgerError, match="disk is full"):
        getattr(session, method)(argument)
    frozen.check(drew=True)
    ledger.fails = None
    assert session.answer(CONTESTED).sequence == 2
    assert same_state(ledger.load(), session.snapshot())


@pytest.mark.parametrize(("method", "argument"), REQUEST)
def test_a_commit_that_seemed_to_fail_is_continued(method, argument):
    """If the ledger committed although it raised, the next request continues after it: there is one history."""
    ledger = BrokenLedger()
    session, _ = make(ledger=ledger)
    session.answer(CONTESTED)
    ledger.fails = "after"
    with pytest.raises(LedgerError, match="connection was lost"):
        getattr(session, method)(argument)
    ledger.fails = None
    recorded = list(ledger.entries())
    for again, row in REQUEST:
        getattr(session, again)(row)
    assert all(map(same_entry, ledger.entries(), recorded))
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, len(recorded) + 5))
    assert same_state(replay(ledger.entries(), CLASSES, PLENTY.step, Belief.uniform(M)), session.snapshot())


class WatchedLedger(MemoryLedger):
    """A ledger that notes what its session had remembered at the moment of each commit."""

    session = None

    def __init__(self):
        super().__init__()
        self.seen = []

    def commit(self, entries, state, requests=NO_REQUESTS):
        if self.session is not None:
            self.seen.append((self.session.snapshot().sequence, state.sequence))
        super().commit(entries, state, requests)


def test_durable_before_remembered():
    """At the time of the commit the session is still at the state before it."""
    ledger = WatchedLedger()
    session, _ = make(ledger=ledger)
    ledger.session = session
    for method, argument in REQUEST:
        getattr(session, method)(argument)
    assert ledger.seen == [(0, 1), (1, 3), (3, 4)]


def test_a_used_ledger_needs_its_secret():
    """A history belongs to a secret: without it nothing can be continued."""
    _, _, ledger = used_session()
    before = ledger.load()
    with pytest.raises(InvalidInput, match="secret"):
        Session(CLASSES, PLENTY, M, ledger=ledger)
    assert same_state(ledger.load(), before)


def test_a_used_ledger_takes_no_snapshot():
    """Of two states, neither is taken silently."""
    session, _, ledger = used_session()
    before = ledger.load()
    with pytest.raises(LedgerConflict, match="snapshot"):
        Session(CLASSES, PLENTY, M, ledger=ledger, snapshot=session.snapshot(), secret=SECRET)
    assert same_state(ledger.load(), before)


def test_sessions_share_a_ledger():
    """Two sessions on one ledger continue each other's history, and count its spending as one."""
    first, _, ledger = used_session(budget=Budget(0.5, 2.0))
    second, _ = make(1, Budget(0.5, 2.0), ledger=ledger)
    for session in (first, second, second):
        session.answer(CONTESTED)
    assert same_state(first.snapshot(), second.snapshot())
    with pytest.raises(BudgetExhausted):
        first.answer(CONTESTED)
    assert [entry.sequence for entry in ledger.entries()] == [1, 2, 3, 4, 5]
    assert same_state(replay(ledger.entries(), CLASSES, 0.5, Belief.uniform(M)), first.snapshot())


def test_a_shared_ledger_needs_its_secret():
    """A second session that would draw a secret of its own is refused, also before the first release."""
    ledger = MemoryLedger()
    make(ledger=ledger)
    with pytest.raises(InvalidInput, match="secret"):
        make(ledger=ledger, secret=None)


@pytest.mark.parametrize("older", [None, 1])
def test_a_ledger_that_went_back_is_refused(older):
    """A session does not continue from less than it knows to be on record."""
    session, generator, ledger = used_session()
    ledger._state = older and State(1, 1, 1, ledger.load().log_belief, PLENTY.step)
    bits = copy.deepcopy(generator.bit_generator.state)
    with pytest.raises(LedgerConflict, match="bring the latest one back"):
        session.answer(CONTESTED)
    assert generator.bit_generator.state == bits


@pytest.mark.parametrize("mine", [None, "artifact-2"])
@pytest.mark.parametrize("where", ["ledger", "snapshot"])
def test_histories_of_another_deployment_are_refused(mine, where):
    """A ledger or snapshot belongs to the artifact that it was begun with."""
    ledger = MemoryLedger()
    session, _ = make(ledger=ledger, deployment="artifact-1")
    session.answer(CONTESTED)
    source = {"ledger": ledger} if where == "ledger" else {"snapshot": session.snapshot()}
    with pytest.raises(ForeignLedger, match="artifact-1"):
        make(deployment=mine, **source)
    assert make(deployment="artifact-1", **source)[0].answer(CONTESTED).sequence == 2


def test_histories_keep_their_prior_and_classes():
    """A belief that began elsewhere, or on other labels, would not replay and is refused."""
    session, _, ledger = used_session()
    other = Belief.from_probabilities([0.3] + [0.1] * 7)
    for source in ({"ledger": ledger}, {"snapshot": session.snapshot()}):
        with pytest.raises(InvalidBelief, match="another prior"):
            make(prior=other, **source)
        with pytest.raises(InvalidBelief, match="number of classes"):
            Session(CLASSES + 1, PLENTY, M, secret=SECRET, **source)


def test_a_history_keeps_its_step_budget():
    """What was spent is not counted anew in smaller steps."""
    session, _, ledger = used_session()
    smaller = Budget(PLENTY.step / 10, PLENTY.total)
    with pytest.raises(InvalidBudget, match="step"):
        Session(CLASSES, smaller, M, secret=SECRET, snapshot=session.snapshot())
    with pytest.raises(InvalidBudget, match="step"):
        Session(CLASSES, smaller, M, secret=SECRET, ledger=ledger)


def test_a_snapshot_without_its_secret_leaves_the_ledger_empty():
    """The mistake can be repaired by passing the secret as well."""
    session, _, _ = used_session()
    ledger = MemoryLedger()
    with pytest.raises(InvalidInput, match="secret"):
        Session(CLASSES, PLENTY, M, snapshot=session.snapshot(), ledger=ledger)
    assert ledger.load() is None


class Meddler:
    """A source of noise that overwrites the caller's votes at the moment when the noise is drawn."""

    def __init__(self, votes):
        self.votes, self.generator = votes, np.random.default_rng(0)

    def standard_normal(self, size):
        self.votes[...] = 1 - self.votes
        return self.generator.standard_normal(size)


def test_votes_are_read_once():
    """Votes that another thread overwrites meanwhile are charged, noised and recorded as they were asked."""
    votes = np.array([[0, 0, 0, 1, 1, 1, 1, 1]], dtype=np.int16)
    asked, ledger = votes.copy(), MemoryLedger()
    Session(2, PLENTY, M, secret=SECRET, ledger=ledger, generator=Meddler(votes)).answer_all(votes)
    assert same_array(next(ledger.entries()).question, asked[0])


@pytest.mark.parametrize(
    "spoil", [lambda e: e[1:], lambda e: e[::-1], lambda e: e[:2] + e[3:], lambda e: e + e[-1:]]
)
def test_replay_refuses_what_is_no_history(spoil):
    """Entries that are missing, repeated or out of order give no state."""
    session, _, ledger = used_session()
    session.answer_all([CONTESTED] * 3)
    with pytest.raises(PacPredictError):
        replay(spoil(list(ledger.entries())), CLASSES, PLENTY.step, Belief.uniform(M))


@pytest.mark.parametrize("change", [lambda noisy: noisy[:-1], lambda noisy: np.append(noisy, 0.0)])
def test_replay_refuses_releases_of_another_size(change):
    """An entry whose noisy coordinates do not fit its question is no release of it."""
    _, _, ledger = used_session()
    first = next(ledger.entries())
    spoilt = Entry(1, first.charged_steps, first.label, first.question, change(first.noisy))
    with pytest.raises(PacPredictError):
        replay([spoilt], CLASSES, PLENTY.step, Belief.uniform(M))


# --- what costs nothing, and what always has noise ---------------------------------------------------------


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


def test_outputs_of_a_ruled_out_model_are_charged():
    """The same holds for real outputs, which carry no signal of a model that cannot be."""
    prior = Belief.from_probabilities([0.0] + [1 / (M - 1)] * (M - 1))
    session, _ = make(prior=prior, budget=Budget(0.1, 1.0))
    session.release(np.eye(M)[:, :1])
    assert (session.snapshot().contested, session.snapshot().spent_steps) == (1, 1)


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


# --- many threads ------------------------------------------------------------------------------------------


def test_threads_share_one_history():
    """Eight threads on one session: no gap, no double number, exact spending, and a history that replays."""
    n_threads, n_rounds = 8, 40
    ledger, releases, problems = MemoryLedger(), [], []
    session = Session(CLASSES, Budget(1e-4, 1.0), M, secret=SECRET, ledger=ledger)

    def ask(thread):
        try:
            for i in range(n_rounds):
                votes = random_votes(1000 * thread + i, 3)
                releases.extend(
                    session.answer_all(votes) if i % 3 else [session.answer(row) for row in votes]
                )
                if i % 5 == 0:
                    session.release(random_outputs(i))
                session.guarantee()
        except Exception as problem:  # noqa: BLE001  # whatever a thread raises is for the main thread to see
            problems.append(problem)

    race(ask, n_threads)
    assert problems == []
    entries, state = list(ledger.entries()), session.snapshot()
    n_labels, n_vectors = n_threads * n_rounds * 3, n_threads * n_rounds // 5
    assert [entry.sequence for entry in entries] == list(range(1, n_labels + n_vectors + 1))
    labelled = {entry.sequence: entry.label for entry in entries if entry.label is not None}
    assert {release.sequence: release.label for release in releases} == labelled
    assert len(releases) == n_labels
    assert state.spent_steps == sum(entry.charged_steps for entry in entries) == state.contested
    assert same_state(replay(entries, CLASSES, 1e-4, Belief.uniform(M)), state)


def test_threads_cannot_overspend():
    """However many ask at once, exactly as many contested answers are given as the budget has steps."""
    session, _ = make(budget=Budget(2.0**-7, 0.5))
    answered = []

    def ask():
        for _ in range(30):
            try:
                answered.append(session.answer(CONTESTED).sequence)
            except BudgetExhausted:
                continue

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answered) == list(range(1, 65))


# --- nothing but the release depends on the secret ---------------------------------------------------------


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


@pytest.mark.parametrize(("method", "argument"), REQUEST)
def test_foreign_secrets_are_refused_unnamed(method, argument):
    """A secret of another ensemble is refused at once, and no error tells which it is."""
    with pytest.raises(InvalidInput) as refusal:
        getattr(make(secret=Secret(86_753, 100_000))[0], method)(argument)
    assert "86" not in str(refusal.value)


# --- the belief stays the posterior ------------------------------------------------------------------------


def exact_posterior(entries, prior, step):
    """Bayes' rule in fifty digits, for the noise that the tracked belief calibrates."""
    tracked = prior.log_probabilities.copy()
    with mpmath.workdps(50):
        log_p = [mpmath.mpf(x) for x in tracked]
        for i, entry in enumerate(entries):
            if entry.noisy is None:
                continue
            noise = calibrate_votes(entry.question, CLASSES, Belief(tracked), step)
            for s, vote in enumerate(entry.question):
                exponent = mpmath.mpf(0)
                for axis, variance, noisy in zip(noise.axes, noise.variances, entry.noisy, strict=True):
                    distance = mpmath.mpf(noisy) - mpmath.mpf(axis[vote])
                    exponent -= distance**2 / (2 * mpmath.mpf(variance))
                log_p[s] += exponent
            evidence = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in log_p))
            log_p = [x - evidence for x in log_p]
            tracked = replay(entries[: i + 1], CLASSES, step, prior).log_belief
        return np.array([float(mpmath.exp(x)) for x in log_p])


RULED_OUT = np.array([0.3, 0.3, 0.2, 0.2, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("prior", [None, RULED_OUT], ids=["uniform", "ruled out"])
@pytest.mark.parametrize("step", [2.0**-8, 2.0**-4])
def test_the_belief_is_the_posterior(step, prior):
    """What the session believes is what Bayes' rule says, also when some models are ruled out."""
    ledger = MemoryLedger()
    belief = Belief.uniform(M) if prior is None else Belief.from_probabilities(prior)
    session, _ = make(11, Budget(step, 100 * step), prior=belief, secret=Secret(1, M), ledger=ledger)
    session.answer_all(random_votes(2, 25, dissent=0.5))
    expected = exact_posterior(list(ledger.entries()), belief, step)
    assert np.exp(session.snapshot().log_belief) == pytest.approx(expected, rel=0, abs=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("step", [2.0**-32, 2.0**-10, 2.0**-6, 0.25, 1.0])
def test_the_belief_stays_a_distribution(step, n_classes):
    """However long a session lasts and however much it reveals, the belief sums to 1."""
    generator = np.random.default_rng(5)
    session = Session(n_classes, Budget(step, 1e6 * step), 16, secret=Secret(3, 16), generator=generator)
    for i in range(30):
        session.answer_all(random_votes(i, 20, 0.6, 16, n_classes))
        assert math.fsum(np.exp(session.snapshot().log_belief)) == pytest.approx(1, rel=0, abs=1e-12)
    assert session.belief.n_models == 16


def extreme_prior(m, log_gap):
    """Nearly all belief in one model; the others share exp(-log_gap)."""
    log_p = np.full(m, -log_gap - math.log(m - 1))
    log_p[m // 2] = math.log1p(-math.exp(-log_gap))
    return Belief(log_p)


@pytest.mark.parametrize("log_gap", [50.0, 690.0, 720.0, 740.0, 1e6])
def test_real_outputs_of_near_certain_beliefs(log_gap):
    """A release of real outputs under a belief of 1 - 1e-300 neither overflows nor changes what is known."""
    session, _ = make(budget=Budget(10.0, 100.0), prior=extreme_prior(M, log_gap), secret=Secret(M // 2, M))
    assert np.isfinite(session.release(np.arange(M)[:, None] * 1e6)).all()
    assert session.belief.probabilities()[M // 2] == 1


@pytest.mark.parametrize("m", [2, 16, 1024])
@pytest.mark.parametrize("n_classes", [2, 5, 1000])
@pytest.mark.parametrize("step", [1e-300, 1e-30, 1e-9, 1.0, 1e3])
def test_extremes_stay_finite(m, n_classes, step):
    """Tiny and huge budgets, near-certain beliefs and many classes give labels and beliefs, never NaN."""
    for log_gap in (1.0, 40.0, 690.0, 1e6):
        prior = extreme_prior(m, log_gap)
        for secret in (m // 2, 0):
            session = Session(
                n_classes, Budget(step, 100 * step), prior, secret=Secret(secret, m),
                generator=np.random.default_rng(1),
            )  # fmt: skip
            for i in range(3):
                votes = random_votes(i, 1, 0.9, m, n_classes)[0]
                votes[:2] = 0, 1
                assert session.answer(votes).label in votes
            log_belief = session.snapshot().log_belief
            assert np.isfinite(log_belief).all()
            assert math.fsum(np.exp(log_belief)) == pytest.approx(1, rel=0, abs=1e-10)


@pytest.mark.parametrize("step", [5e-324, 1e-310, 1e-300, 1e100, 1e295, 1e300, 1e308])
def test_absurd_budgets_leave_no_nan(step):
    """A budget for which noise cannot be a double is refused, or answered with a belief that is a number."""
    try:
        session, _ = make(
            budget=Budget(step, step), prior=Belief.from_probabilities(RULED_OUT), secret=Secret(0, M)
        )
        session.answer(CONTESTED)
    except PacPredictError:
        return
    assert np.isfinite(session.snapshot().log_belief).all()


def test_surprises_leave_a_distribution():
    """When a model that was ruled out turns out to be the secret, the belief is normalised to the last digits."""
    prior = Belief.from_probabilities([0.0] * 3 + [1 / (M - 3)] * (M - 3))
    session, _ = make(budget=Budget(1.0, 10.0), prior=prior, secret=Secret(0, M))
    session.answer([1] * 3 + [0] * (M - 3))
    assert np.exp(session.snapshot().log_belief[:3]) == pytest.approx(1 / 3, rel=1e-12)
