"""What is asked: votes are checked once, requests say what they mean, and ids are kept as digests of one size."""

import numpy as np
import pytest
from asking import ask, ask_unvoted, contested, digest_of
from small_session import BAD_VOTES, CLASSES, CONTESTED, UNANIMOUS, M, make

from pacpredict.exceptions import InvalidInput, InvalidVotes
from pacpredict.mechanism.question import Ballots, Release, Request, request_key


def test_ballots_are_counted():
    """Each row says for how many classes there are votes; a single query is one row."""
    assert Ballots.check([CONTESTED, UNANIMOUS, [0, 1] * 4], CLASSES, M).n_voted == [4, 1, 2]
    assert len(Ballots.check(CONTESTED, CLASSES, M)) == 1


@pytest.mark.parametrize("votes", BAD_VOTES.values(), ids=BAD_VOTES)
def test_votes_that_are_none_are_refused(votes):
    """Ballots are checked when they are made, so that no request carries votes that cannot be."""
    session, _ = make()
    with pytest.raises(InvalidVotes):
        session.ballots(votes)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64])
def test_ballots_do_not_change(dtype):
    """Nobody changes the votes between the count and the release, not even through the array that was passed."""
    votes = np.array([CONTESTED], dtype=dtype)
    ballots = Ballots.check(votes, CLASSES, M)
    with pytest.raises(ValueError, match="read-only"):
        ballots.votes[0, 0] = 2
    votes[...] = 0
    assert ballots.votes.tolist() == [CONTESTED]


ROW = Ballots.check([CONTESTED], CLASSES, M)
BAD_REQUESTS = {
    "no questions": lambda: Request([], ROW, []),
    "more questions than rows": lambda: Request([digest_of(1)] * 2, ROW, [0]),
    "short digest": lambda: Request.of(ROW, [b"short"]),
    "id without digest": lambda: Request.of(ROW, id="x"),
    "empty id": lambda: ask(contested(1), id=""),
    "long id": lambda: ask(contested(1), id="x" * 1001),
    "id with half a character": lambda: ask(contested(1), id="\ud800"),
    "id that is a number": lambda: ask(contested(1), id=7),
    "empty client": lambda: ask(contested(1), client=""),
    "long client": lambda: ask(contested(1), client="x" * 101),
    "client beyond ASCII": lambda: ask(contested(1), client="Zoë"),
    "client with NUL": lambda: ask(contested(1), client="a\0b"),
    "client of two lines": lambda: ask(contested(1), client="a\nb"),
    "client that is a number": lambda: ask(contested(1), client=7),
}


@pytest.mark.parametrize("make_request", BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_bad_requests_are_not_made(make_request):
    """What a ledger could not keep, or nobody could find again, is refused before it is asked."""
    with pytest.raises(InvalidInput):
        make_request()


IDS = ["x", "x" * 1000, "\U0001f99c" * 1000, "a\0b", "line\nbreak", "Zoë", " "]


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_text_have_one_size(name):
    """No id is too long, or written in characters that a database lacks: it is kept as a digest."""
    assert len(ask(contested(1), id=name).key) == len(ask(contested(1), id=name).asked) == 32


def test_an_id_belongs_to_its_client():
    """Two requests have the same key only if both id and client are the same, wherever one ends."""
    pairs = [(client, name) for client in (None, "a", "aa", "b") for name in ("a", "aa", "aaa", "ba", "b")]
    assert len({request_key(*pair) for pair in pairs}) == len(pairs)
    assert request_key("a", "b") == request_key("a", "b")


def test_what_was_asked_is_the_questions_in_their_order():
    """Votes, client and id are not part of it; each question is."""
    asked = ask(contested("a"), contested("b")).asked
    assert asked == ask_unvoted("a", "b", id="x", client="c", partial=True).asked
    others = [ask_unvoted(*names) for names in ("ba", "a", "aab", "ab" * 2)]
    assert asked not in [other.asked for other in others]


def test_requests_without_an_id_have_no_key():
    """Nothing is noted of them."""
    assert ask(contested("a"), client="c").key is None


def test_requests_do_not_print_their_votes():
    """How models vote is about the training data, and does not belong into a log."""
    texts = {repr(ask(query, id="x")) for query in (contested("a"), contested("a")._replace(votes=UNANIMOUS))}
    assert len(texts) == 1


def test_releases_print_what_the_client_sees():
    """A release is the number, the label and the charge."""
    assert repr(Release(1, 2, 0.0, 0.5)) == "Release(sequence=1, label=2, charge=0.0, first_charge=0.5)"
