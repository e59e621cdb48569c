"""A query has one answer: asked again it costs nothing, waits for nobody, and ids belong to their questions."""

from dataclasses import replace

import pytest
from asking import agreed, ask, ask_unvoted, contested, digest_of, free, kinds, make_serving
from broken_ledger import BrokenLedger

from pacpredict.exceptions import BudgetExhausted, IdConflict, LedgerError
from pacpredict.mechanism import recent
from pacpredict.mechanism.ledger import Answer


def recalling(session, request):
    """The same request, with what the ledger knows about it by now."""
    return replace(request, known=session.recall(set(request.digests)))


def test_repeated_queries_are_free():
    """Within a request, within a group, later and by another session, a query has one answer and one charge."""
    session, ledger = make_serving()
    first, second = session.serve([ask(*map(contested, "aba")), ask(contested("b"))])
    assert [r.charge for r in first] == [session.budget.step, session.budget.step, 0.0]
    assert [first[2]] == free(first[:1])
    assert second == free(first[1:2])
    other, _ = make_serving(seed=1, ledger=ledger)
    (again,) = other.serve([ask(contested("b"), contested("a"))])
    assert again == free([first[1], first[0]])
    assert ledger.load().sequence == ledger.load().spent_steps == 2


def test_repeated_queries_outlive_the_budget():
    """What was answered once is answered when nothing is left, beside other queries that are refused."""
    session, _ = make_serving(steps=1)
    (first,) = session.serve([ask(contested("a"))])
    results = session.serve([ask(contested("a")), ask(contested("b")), ask(contested("a"), contested("b"))])
    assert kinds(results) == [1, BudgetExhausted, BudgetExhausted]
    assert results[0] == free(first)


def test_votes_of_a_repeated_query_do_not_matter():
    """They may be left out, or be anything that votes can be: the ledger has the answer."""
    session, ledger = make_serving()
    (first,) = session.serve([ask(contested("a"))])
    results = session.serve([ask_unvoted("a"), recalling(session, ask_unvoted("a")), ask(agreed("a"))])
    assert results == [free(first)] * 3
    assert ledger.load().sequence == 1


@pytest.mark.parametrize("fails", ["turn", "before", "check"])
def test_repeated_requests_take_no_turn(fails):
    """A ledger that cannot be written still repeats what it holds, beside new queries that wait for it."""
    ledger = BrokenLedger()
    session, _ = make_serving(ledger=ledger)
    (first,) = session.serve([ask(*map(contested, "ab"), id="x", client="c")])
    ledger.fails = fails
    repeated = [
        recalling(session, request)
        for request in (
            ask_unvoted("b", "a", "b"),
            ask_unvoted("a", id="new"),
            ask_unvoted("a", "b", id="x", client="c"),
        )
    ]
    expected = [free([first[1], first[0], first[1]]), free(first[:1]), free(first)]
    assert session.serve(repeated) == expected
    with pytest.raises(LedgerError, match=fails):
        session.serve([*repeated, ask(contested("new"))])
    ledger.fails = None
    assert session.serve([*repeated, ask(contested("new"))])[:-1] == expected
    assert ledger.load().sequence == 3


def test_repeated_answers_are_confirmed():
    """An answer that another process has committed may not be shown before it is beyond being forgotten."""
    ledger = BrokenLedger()
    session, _ = make_serving(ledger=ledger)
    session.serve([ask(contested("a"))])
    ledger.fails = "confirm"
    with pytest.raises(LedgerError, match="confirm"):
        session.serve([recalling(session, ask_unvoted("a"))])


@pytest.mark.parametrize("same_session", [True, False])
def test_what_was_answered_meanwhile_is_not_answered_again(same_session):
    """A look before the turn is only a look: what came on record since is found in the turn."""
    session, ledger = make_serving()
    other = session if same_session else make_serving(seed=1, ledger=ledger)[0]
    looked = recalling(session, ask(*map(contested, "ab")))
    assert not looked.known.answers
    (first,) = other.serve([ask(contested("b"))])
    (late,) = session.serve([looked])
    assert late[1] == free(first)[0]
    assert [entry.digest for entry in ledger.entries()] == [digest_of("b"), digest_of("a")]


@pytest.mark.parametrize(
    ("names", "n_lookups"),
    [("b", 0), ("bc", 0), ("bcd", 0), ("bcde", 1), ("bcdefghi", 1)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_own_answers_are_found_without_the_ledger(names, n_lookups, monkeypatch):
    """A session remembers its latest answers, at least as many as it says; what may be older is looked up."""
    monkeypatch.setattr(recent, "_MOST", 2)
    session, ledger = make_serving()
    looked = recalling(session, ask(contested("a"), contested("b")))
    for name in names:
        session.serve([recalling(session, ask(contested(name)))])
    first, lookups, recall = ledger.recall([digest_of("b")])[digest_of("b")], [], ledger.recall
    monkeypatch.setattr(ledger, "recall", lambda digests: lookups.append(digests) or recall(digests))
    ((new, again),) = session.serve([looked])
    assert (again.sequence, again.label, again.charge) == (first.sequence, first.label, 0)
    assert new.sequence == len(names) + 1
    assert len(lookups) == n_lookups


def test_what_others_answered_is_looked_up_in_the_ledger():
    """Whoever finds that others went on with the history does not rely on what it remembers of its own."""
    session, ledger = make_serving()
    other, _ = make_serving(seed=1, ledger=ledger)
    looked = recalling(session, ask(*map(contested, "abc")))
    (mine,) = session.serve([ask(contested("a"))])
    (theirs,) = other.serve([ask(contested("b"))])
    (mine_too,) = session.serve([ask(contested("c"))])
    assert session.serve([looked]) == [free([*mine, *theirs, *mine_too])]


def test_what_is_known_to_one_is_known_to_all():
    """Recalling says how far the ledger had come, and finds what is there."""
    session, _ = make_serving()
    assert session.recall([digest_of("a")]) == (0, {})
    (releases,) = session.serve([ask(contested("a"))])
    known = session.recall([digest_of("a"), digest_of("b")])
    assert known == (1, {digest_of("a"): Answer(1, releases[0].label, 1)})


def test_ids_belong_to_their_questions():
    """The same id with the same questions gets the same answers; with others it is refused, for good."""
    session, ledger = make_serving()
    (first,) = session.serve([ask(contested("a"), contested("b"), id="x")])
    for other in (session, make_serving(seed=1, ledger=ledger)[0]):
        requests = [ask(*map(contested, names), id="x") for names in ("ab", "ba", "a", "c")]
        for asked in (requests, [recalling(other, request) for request in requests]):
            results = other.serve(asked)
            assert results[0] == free(first)
            assert kinds(results[1:]) == [IdConflict] * 3
    assert ledger.load().sequence == 2


def test_ids_belong_to_their_clients():
    """What one client calls a request does not matter to another, or to those without a name."""
    session, ledger = make_serving()
    clients = [None, "c", "d"]
    results = session.serve([ask(contested(client), id="x", client=client) for client in clients])
    assert kinds(results) == [1, 1, 1]
    results = session.serve([ask(contested("other"), id="x", client=client) for client in clients])
    assert kinds(results) == [IdConflict] * 3
    assert ledger.load().sequence == 3


def test_ids_of_repeated_questions_are_not_noted():
    """A request that costs nothing writes nothing: it is safe to repeat, and its id is free."""
    session, ledger = make_serving()
    session.serve([ask(contested("a"))])
    for repeated in (ask(contested("a"), id="y"), recalling(session, ask_unvoted("a", id="y"))):
        session.serve([repeated])
    assert kinds(session.serve([ask(contested("b"), id="y")])) == [1]
    assert (
        kinds(session.serve([ask(contested("a"), id="y"), ask(contested("c"), id="y")])) == [IdConflict] * 2
    )
    assert ledger.load().sequence == 2


def test_ids_within_a_group():
    """The first request of a group with an id has it; one that repeats it waits for nothing."""
    session, _ = make_serving()
    ab = ask(*map(contested, "ab"), id="x")
    results = session.serve([ab, ask(contested("c"), id="x"), ab])
    assert kinds(results) == [2, IdConflict, 2]
    assert results[2] == free(results[0])


def test_ids_of_refused_requests_are_free():
    """What was not answered may be asked again, or otherwise, with the same id."""
    session, _ = make_serving(steps=1)
    results = session.serve([ask(contested("a"), contested("b"), id="x"), ask(contested("a"), id="x")])
    assert kinds(results) == [BudgetExhausted, 1]


def test_ids_of_partial_requests():
    """An id stands for all questions of its request, also for those that the budget did not reach."""
    session, _ = make_serving(steps=1)
    part = ask(contested("a"), contested("b"), id="x", partial=True)
    (first,) = session.serve([part])
    results = session.serve([part, ask(contested("a"), id="x")])
    assert len(first) == 1
    assert results[0] == free(first)
    assert kinds(results[1:]) == [IdConflict]
