"""Requests of several clients in one turn: repeated queries, ids, budgets that end in the middle."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger_contract import same_entry, same_state
from pacpredict.core.belief import Belief
from pacpredict.exceptions import (
    BudgetExhausted,
    IdConflict,
    InvalidInput,
    InvalidVotes,
    LedgerError,
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import NO_REQUESTS, MemoryLedger
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.request import Question, Release, Request
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from voting import random_votes

M, CLASSES = 8, 4
SECRET = Secret(3, M)
STEP = 0.25
CONTESTED = np.array([0, 1, 1, 2, 1, 1, 1, 3])
AGREED = np.array([2] * M)


def digest(name):
    return hashlib.sha256(str(name).encode()).digest()


def contested(name):
    return Question(digest(name), CONTESTED)


def agreed(name):
    return Question(digest(name), AGREED)


def ask(*questions, **options):
    return Request(questions, **options)


def make(steps=1000, seed=0, ledger=None, **options):
    ledger = MemoryLedger() if ledger is None else ledger
    budget = Budget(STEP, steps * STEP, **options)
    generator = np.random.default_rng(seed)
    return Session(CLASSES, budget, M, secret=SECRET, ledger=ledger, generator=generator), ledger


def kinds(results):
    """What became of each request: how many answers, or which error."""
    return [type(each) if isinstance(each, PacPredictError) else len(each) for each in results]


def test_a_group_is_answered_as_one_batch():
    """Requests that share a commit get the answers, noise and belief of the same queries asked in a row."""
    votes = random_votes(np.random.default_rng(1), 12, M, CLASSES, 0.3)
    whole, expected = make()
    releases = whole.answer_all(votes)
    session, ledger = make()
    questions = [Question(digest(i), row) for i, row in enumerate(votes)]
    results = session.serve([ask(*questions[:5]), ask(questions[5], client="c"), ask(*questions[6:], id="x")])
    assert [release for each in results for release in each] == releases
    assert same_state(session.snapshot(), whole.snapshot())
    tags = [*[(None, None)] * 5, (None, "c"), *[("x", None)] * 6]
    for entry, other, question, tag in zip(
        ledger.entries(), expected.entries(), questions, tags, strict=True
    ):
        assert same_entry(entry, other._replace(digest=question.digest, id=tag[0], client=tag[1]))


def test_repeated_queries_are_free():
    """Within a request, within a group, later and by another session, a query has one answer and one charge."""
    session, ledger = make()
    first, second = session.serve([ask(contested("a"), contested("b"), contested("a")), ask(contested("b"))])
    assert [r.charge for r in first] == [STEP, STEP, 0.0]
    assert first[2] == first[0]._replace(charge=0.0)
    assert second == [first[1]._replace(charge=0.0)]
    other, _ = make(seed=1, ledger=ledger)
    (again,) = other.serve([ask(contested("b"), contested("a"))])
    assert again == [first[1]._replace(charge=0.0), first[0]._replace(charge=0.0)]
    assert ledger.load().sequence == ledger.load().spent_steps == 2


def test_repeated_queries_outlive_the_budget():
    """What was answered once is answered when nothing is left, beside other queries that are refused."""
    session, _ = make(steps=1)
    (first,) = session.serve([ask(contested("a"))])
    results = session.serve([ask(contested("a")), ask(contested("b")), ask(contested("a"), contested("b"))])
    assert kinds(results) == [1, BudgetExhausted, BudgetExhausted]
    assert results[0] == [first[0]._replace(charge=0.0)]


def test_votes_of_a_repeated_query_do_not_matter():
    """They may be left out, or be anything that votes can be: the ledger has the answer."""
    session, ledger = make()
    (first,) = session.serve([ask(contested("a"))])
    results = session.serve([ask(Question(digest("a"), None)), ask(Question(digest("a"), AGREED))])
    assert results == [[first[0]._replace(charge=0.0)]] * 2
    assert ledger.load().sequence == 1


def test_questions_without_a_digest_are_always_new():
    """They are answered each time, and each time charged."""
    session, _ = make()
    results = session.serve([ask(Question(None, CONTESTED), Question(None, CONTESTED))] * 2)
    assert [r.sequence for each in results for r in each] == [1, 2, 3, 4]
    assert session.snapshot().spent_steps == 4


def test_a_refused_request_does_not_disturb_the_others():
    """Between answered requests stand an exhausted one, an invalid one and one with a used id."""
    session, ledger = make(steps=4)
    results = session.serve(
        [
            ask(contested(0), contested(1), id="x"),
            ask(*map(contested, range(2, 6))),
            ask(Question(digest(7), CONTESTED[:-1])),
            ask(contested(8), id="x"),
            ask(contested(2), contested(3), agreed(4)),
        ]
    )
    assert kinds(results) == [2, BudgetExhausted, InvalidVotes, IdConflict, BudgetExhausted]
    assert kinds(session.serve([ask(contested(2), contested(3))])) == [2]
    assert [entry.digest for entry in ledger.entries()] == [digest(i) for i in range(4)]


def test_later_requests_get_what_refused_ones_left():
    """A request that asks for too much does not use up the budget for a smaller one behind it."""
    session, _ = make(steps=2)
    results = session.serve([ask(*map(contested, "abc")), ask(*map(contested, "ab")), ask(contested("a"))])
    assert kinds(results) == [BudgetExhausted, 2, 1]
    assert results[0].needed_nats == 3 * STEP
    assert results[2] == [results[1][0]._replace(charge=0.0)]


@pytest.mark.parametrize(
    ("questions", "answered"),
    [
        ([contested(1), contested(2), contested(3), contested(4)], 2),
        ([contested(0), contested(1), contested(0), contested(2), contested(0), contested(3)], 5),
        ([contested(1), agreed(2), contested(3)], 3),
        ([contested(1), contested(2), agreed(3)], 2),
    ],
)
def test_partial_requests_are_served_as_far_as_it_goes(questions, answered):
    """The first rows that fit are answered and charged, and nothing beyond them."""
    session, _ = make(steps=3)
    session.serve([ask(contested(0))])
    (result,) = session.serve([Request(questions, partial=True)])
    assert len(result) == answered
    assert session.snapshot().spent_steps == 3
    assert session.snapshot().sequence == 1 + len({q.digest for q in questions[:answered]} - {digest(0)})


def test_partial_requests_of_which_nothing_fits_are_refused():
    """An empty answer would not say why."""
    session, _ = make(steps=1)
    session.serve([ask(contested(0))])
    results = session.serve(
        [ask(contested(1), contested(0), partial=True), ask(contested(0), contested(1), partial=True)]
    )
    assert kinds(results) == [BudgetExhausted, 1]


def test_ids_belong_to_their_questions():
    """The same id with the same questions gets the same answers; with others it is refused, for good."""
    session, ledger = make()
    (first,) = session.serve([ask(contested("a"), contested("b"), id="x")])
    again = [r._replace(charge=0.0) for r in first]
    for other in (session, make(seed=1, ledger=ledger)[0]):
        results = other.serve(
            [
                ask(contested("a"), contested("b"), id="x"),
                ask(contested("b"), contested("a"), id="x"),
                ask(contested("a"), id="x"),
                ask(contested("c"), id="x"),
            ]
        )
        assert results[0] == again
        assert kinds(results[1:]) == [IdConflict] * 3
    assert ledger.load().sequence == 2


def test_ids_of_repeated_questions_are_remembered():
    """A request that costs nothing still binds its id."""
    session, ledger = make()
    session.serve([ask(contested("a"))])
    session.serve([ask(contested("a"), id="y")])
    assert kinds(session.serve([ask(contested("b"), id="y")])) == [IdConflict]
    assert ledger.load().sequence == 1


def test_ids_of_refused_requests_are_free():
    """What was not answered may be asked again, or otherwise, with the same id."""
    session, _ = make(steps=1)
    results = session.serve([ask(contested("a"), contested("b"), id="x"), ask(contested("a"), id="x")])
    assert kinds(results) == [BudgetExhausted, 1]


BAD_REQUESTS = {
    "no questions": (ask(), InvalidInput),
    "short digest": (ask(Question(b"short", CONTESTED)), InvalidInput),
    "id without digest": (ask(Question(None, CONTESTED), id="x"), InvalidInput),
    "empty id": (ask(contested(1), id=""), InvalidInput),
    "id with NUL": (ask(contested(1), id="a\0b"), InvalidInput),
    "id with half a character": (ask(contested(1), id="\ud800"), InvalidInput),
    "long client": (ask(contested(1), client="x" * 1001), InvalidInput),
    "id that is a number": (ask(contested(1), id=7), InvalidInput),
    "no votes for a new query": (ask(Question(digest(1), None)), InvalidVotes),
    "two queries in one question": (ask(Question(digest(1), np.stack([CONTESTED] * 2))), InvalidVotes),
    "ragged votes": (ask(contested(1), Question(digest(2), CONTESTED[:3])), InvalidVotes),
    "labels out of range": (ask(Question(digest(1), CONTESTED + 2)), InvalidVotes),
}


@pytest.mark.parametrize(("request_", "error"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_bad_requests_change_nothing(request_, error):
    """Each is refused with its error; nothing is drawn, charged or recorded."""
    session, ledger = make()
    bits = session._normals.bit_generator.state
    (refusal,) = session.serve([request_])
    assert type(refusal) is error
    assert ledger.load().sequence == 0
    assert session._normals.bit_generator.state == bits


def test_nobody_asks():
    """An empty group is answered with nothing."""
    assert make()[0].serve([]) == []


class Failing(MemoryLedger):
    """A ledger whose next commit fails, before or after it was made."""

    fails = None

    def commit(self, entries, state, requests=NO_REQUESTS):
        fails, self.fails = self.fails, None
        if fails != "before":
            super().commit(entries, state, requests)
        if fails:
            raise LedgerError("lost")


@pytest.mark.parametrize("fails", ["before", "after"])
def test_asking_again_after_a_failed_commit(fails):
    """Whether or not the commit went through, asking again gives one answer, charged once."""
    ledger = Failing()
    session, _ = make(ledger=ledger)
    ledger.fails = fails
    wanted = [ask(contested("a"), contested("b"), id="x")]
    with pytest.raises(LedgerError, match="lost"):
        session.serve(wanted)
    (releases,) = session.serve(wanted)
    assert [(r.sequence, r.charge) for r in releases] == [
        (1, STEP * (fails == "before")),
        (2, STEP * (fails == "before")),
    ]
    assert ledger.load().sequence == ledger.load().spent_steps == 2
    assert same_state(replay(ledger.entries(), CLASSES, STEP, Belief.uniform(M)), session.snapshot())


@pytest.mark.parametrize("point", ["before-draw", "after-draw"])
def test_interrupted_turns_leave_nothing(point):
    """A session that is stopped around the draw has released and charged nothing."""
    ledger = MemoryLedger()

    def stop(here):
        if here == point:
            raise KeyboardInterrupt

    session = Session(CLASSES, Budget(STEP, 1.0), M, secret=SECRET, ledger=ledger, at=stop)
    with pytest.raises(KeyboardInterrupt):
        session.serve([ask(contested("a"))])
    assert ledger.load().sequence == 0


@settings(deadline=None, max_examples=60)
@given(
    groups=st.lists(
        st.lists(st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.booleans()), max_size=4),
        max_size=6,
    ),
    steps=st.integers(1, 8),
    charging=st.sampled_from(["adaptive", "flat"]),
)
def test_any_grouping_gives_each_query_one_answer(groups, steps, charging):
    """Whatever is asked together, answers never change, spending is exact and within the total."""
    session, ledger = make(steps, charging=charging)
    answers = {}
    for group in groups:
        requests = [
            Request([(agreed if name % 3 == 0 else contested)(name) for name in names], partial=partial)
            for names, partial in group
        ]
        for (names, partial), result in zip(group, session.serve(requests), strict=True):
            if isinstance(result, BudgetExhausted):
                continue
            assert len(result) == len(names) or partial
            for name, release in zip(names, result, strict=False):
                assert answers.setdefault(name, release[:2]) == release[:2]
    state = ledger.load()
    assert state.spent_steps == sum(entry.charged_steps for entry in ledger.entries()) <= steps
    assert sorted(sequence for sequence, _ in answers.values()) == list(range(1, state.sequence + 1))
    assert same_state(replay(ledger.entries(), CLASSES, STEP, Belief.uniform(M)), state)


def test_releases_print_what_the_client_sees():
    """A release is the number, the label and the charge."""
    assert repr(Release(1, 2, 0.5)) == "Release(sequence=1, label=2, charge=0.5)"
