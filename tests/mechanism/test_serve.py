"""Requests of several clients in one turn: one batch, budgets that end in the middle, commits that fail."""

import pytest
from asking import STEP, Query, agreed, ask, ask_unvoted, contested, digest_of, free, kinds, make_serving
from broken_ledger import BrokenLedger
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_contract import same_entry, same_state
from small_session import CLASSES, CONTESTED, SECRET, M, random_votes

from pacpredict.core.belief import Belief
from pacpredict.exceptions import BudgetExhausted, IdConflict, InvalidVotes, LedgerError
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.question import Request, request_key
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.session import Session


def test_a_group_is_answered_as_one_batch():
    """Requests that share a commit get the answers, noise and belief of the same queries asked in a row."""
    votes = random_votes(1, 12, dissent=0.3)
    whole, expected = make_serving()
    releases = whole.answer_all(votes)
    session, ledger = make_serving()
    queries = [Query(digest_of(i), row) for i, row in enumerate(votes)]
    last = ask(*queries[6:], id="x")
    results = session.serve([ask(*queries[:5]), ask(queries[5], client="c"), last])
    assert [release for each in results for release in each] == releases
    assert same_state(session.snapshot(), whole.snapshot())
    tags = [*[(None, None, None)] * 5, ("c", None, None), *[(None, request_key(None, "x"), last.asked)] * 6]
    for entry, other, query, tag in zip(ledger.entries(), expected.entries(), queries, tags, strict=True):
        client, request, asked = tag
        assert same_entry(
            entry, other._replace(digest=query.digest, client=client, request=request, asked=asked)
        )


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    picks=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1), max_size=4),
)
def test_each_question_is_answered_with_its_own_votes(seed, sizes, picks):
    """However requests refer to shared ballots, each question has the votes of its row, in the order of asking."""
    whole, expected = make_serving()
    session, ledger = make_serving()
    ballots = [session.ballots(random_votes(seed + i, size, 0.5)) for i, size in enumerate(sizes)]
    requests, votes = [], []
    for pick in picks:
        mine = ballots[pick[0][0] % len(ballots)]
        rows = [row % len(mine) for _, row in pick]
        requests.append(Request([None] * len(rows), mine, rows))
        votes += [mine.votes[row] for row in rows]
    answered = [release for each in session.serve(requests) for release in each]
    assert answered == (whole.answer_all(votes) if votes else [])
    assert all(map(same_entry, ledger.entries(), expected.entries()))
    assert same_state(session.snapshot(), whole.snapshot())


def test_questions_without_a_digest_are_always_new():
    """They are answered each time, and each time charged."""
    session, _ = make_serving()
    unnamed = Query(None, CONTESTED)
    results = session.serve([ask(unnamed, unnamed)] * 2)
    assert [r.sequence for each in results for r in each] == [1, 2, 3, 4]
    assert session.snapshot().spent_steps == 4


def test_a_refused_request_does_not_disturb_the_others():
    """Between answered requests stand an exhausted one, one that lacks its votes and one with a used id."""
    session, ledger = make_serving(steps=4)
    results = session.serve(
        [
            ask(contested(0), contested(1), id="x"),
            ask(*map(contested, range(2, 6))),
            ask_unvoted(7),
            ask(contested(8), id="x"),
            ask(contested(2), contested(3), agreed(4)),
        ]
    )
    assert kinds(results) == [2, BudgetExhausted, InvalidVotes, IdConflict, BudgetExhausted]
    assert kinds(session.serve([ask(contested(2), contested(3))])) == [2]
    assert [entry.digest for entry in ledger.entries()] == [digest_of(i) for i in range(4)]


def test_a_query_that_nobody_voted_on_changes_nothing():
    """It is refused, also beside one that could be answered; nothing is drawn, charged or recorded."""
    session, ledger = make_serving()
    bits = session._entropy.generator.bit_generator.state
    mixed = Request([digest_of(1), digest_of(2)], session.ballots(CONTESTED), [0, -1])
    assert kinds(session.serve([ask_unvoted(1), mixed])) == [InvalidVotes, InvalidVotes]
    assert ledger.load().sequence == 0
    assert session._entropy.generator.bit_generator.state == bits


def test_later_requests_get_what_refused_ones_left():
    """A request that asks for too much does not use up the budget for a smaller one behind it."""
    session, _ = make_serving(steps=2)
    results = session.serve([ask(*map(contested, "abc")), ask(*map(contested, "ab")), ask(contested("a"))])
    assert kinds(results) == [BudgetExhausted, 2, 1]
    assert results[0].needed_nats == 3 * STEP
    assert results[2] == free(results[1][:1])


@pytest.mark.parametrize(
    ("queries", "answered"),
    [
        ([contested(1), contested(2), contested(3), contested(4)], 2),
        ([contested(0), contested(1), contested(0), contested(2), contested(0), contested(3)], 5),
        ([contested(1), agreed(2), contested(3)], 3),
        ([contested(1), contested(2), agreed(3)], 2),
    ],
)
def test_partial_requests_are_served_as_far_as_it_goes(queries, answered):
    """The first rows that fit are answered and charged, and nothing beyond them."""
    session, _ = make_serving(steps=3)
    session.serve([ask(contested(0))])
    (result,) = session.serve([ask(*queries, partial=True)])
    assert len(result) == answered
    assert session.snapshot().spent_steps == 3
    assert session.snapshot().sequence == 1 + len({q.digest for q in queries[:answered]} - {digest_of(0)})


def test_partial_requests_of_which_nothing_fits_are_refused():
    """An empty answer would not say why."""
    session, _ = make_serving(steps=1)
    session.serve([ask(contested(0))])
    results = session.serve(
        [ask(contested(1), contested(0), partial=True), ask(contested(0), contested(1), partial=True)]
    )
    assert kinds(results) == [BudgetExhausted, 1]


@pytest.mark.parametrize("partial", [False, True])
def test_a_halted_session_does_not_tell_clients_where_models_differ(partial):
    """After the end of the budget a refusal says the same whatever the models would say, in the same group too."""
    told = []
    for query in (contested, agreed):
        session, _ = make_serving(steps=1)
        results = session.serve([ask(contested("last")), ask(query("a"), query("b"), partial=partial)])
        results += session.serve([ask(query("c"), agreed("d"), partial=partial)])
        told.append([(str(refusal), vars(refusal)) for refusal in results[1:]])
    assert told[0] == told[1]


def test_clients_are_told_where_models_differ_if_that_was_chosen():
    """With `when_exhausted="unanimous"` agreement goes on being answered, and the rest is refused."""
    session, _ = make_serving(steps=1, when_exhausted="unanimous")
    results = session.serve([ask(contested("last")), ask(agreed("a")), ask(contested("b")), ask(agreed("c"))])
    assert kinds(results) == [1, 1, BudgetExhausted, 1]
    assert session.snapshot().spent_steps == 1


def test_nobody_asks():
    """An empty group is answered with nothing."""
    assert make_serving()[0].serve([]) == []


@pytest.mark.parametrize("fails", ["before", "after", "confirm"])
def test_asking_again_after_a_failed_commit(fails):
    """Whether or not the commit went through, asking again gives one answer, charged once."""
    ledger = BrokenLedger()
    session, _ = make_serving(ledger=ledger)
    ledger.fails = fails
    wanted = [ask(contested("a"), contested("b"), id="x")]
    with pytest.raises(LedgerError, match=fails):
        session.serve(wanted)
    ledger.fails = None
    (releases,) = session.serve(wanted)
    charge = STEP if fails == "before" else 0.0
    assert [(r.sequence, r.charge) for r in releases] == [(1, charge), (2, charge)]
    assert ledger.load().sequence == ledger.load().spent_steps == 2
    assert same_state(
        replay(ledger.entries(), CLASSES, session.budget, Belief.uniform(M)), session.snapshot()
    )


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
    session, ledger = make_serving(steps, charging=charging)
    answers = {}
    for group in groups:
        requests = [
            ask(*((agreed if name % 3 == 0 else contested)(name) for name in names), partial=partial)
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
    assert same_state(replay(ledger.entries(), CLASSES, session.budget, Belief.uniform(M)), state)
