"""Keys of clients: known by nobody but their owners, ended at once, and counted exactly."""

import hmac
import math
import os
import signal
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from killing import killer
from racing import race
from small_deployment import DEPLOYMENT, KEY, STEP, ask, check_history, make_session

from pacpredict.exceptions import InvalidInput, KeyMissing, LedgerDamaged, QuotaReached, RateReached
from pacpredict.ledger.backup import back_up, restore
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.keys import Terms
from pacpredict.ledger.move import move
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.sql import Link
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.ledger import nowhere


@pytest.fixture(params=["sqlite", "postgresql"])
def opening(request, tmp_path):
    """Opens the same ledger as often as one likes."""
    if request.param == "sqlite":
        return lambda at=nowhere: SqliteLedger(tmp_path / "ledger", key=KEY, deployment=DEPLOYMENT, at=at)
    url = request.getfixturevalue("url")
    return lambda at=nowhere: PostgresLedger(url, key=KEY, deployment=DEPLOYMENT, at=at)


@pytest.fixture
def ledger(opening):
    with opening() as ledger:
        yield ledger


@pytest.fixture
def keyring(ledger):
    with closing(Keyring(ledger, STEP)) as keyring:
        yield keyring


def use_of(keyring, name):
    return next((key.n_answered, key.n_steps) for key in keyring.all() if key.terms.name == name)


def recorded(ledger, name):
    mine = [entry for entry in ledger.entries() if entry.client == name]
    return len(mine), sum(entry.charged_steps for entry in mine)


def test_known_by_its_key(keyring):
    """Whoever shows a key is known by it; anything else is nobody's."""
    lab, page = keyring.make(Terms("lab")), keyring.make(Terms("page", "read"))
    prefix, identity, secret = lab.split("_", 2)
    wrong = [
        *("", "pac", "pac__", lab[:-1], f"{lab}x", lab.upper(), f"{prefix}_{identity}_", f"x_{identity}_{secret}"),
        f"{prefix}_{identity}_{page.split('_', 2)[2]}",
        f"{prefix}_{'0' * 12}_{secret}",
        f"{prefix}_{identity}_\udcff",
    ]  # fmt: skip
    assert keyring.recognise(wrong) == [None] * len(wrong)
    found = keyring.recognise([page, "no", lab])
    assert [key and (key.terms.name, key.terms.role) for key in found] == [
        ("page", "read"),
        None,
        ("lab", "query"),
    ]


def test_only_a_hash_is_kept(tmp_path, keyring, ledger):
    """Nothing in the database, nor in what is shown of a key, lets anybody use it."""
    token = keyring.make(Terms("lab"))
    secret = token.split("_", 2)[2]
    rows = ledger._connections.read("SELECT * FROM keys")
    assert secret not in repr(rows)
    assert secret.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret not in repr([keyring.all(), keyring.describe()])
    again = keyring.make(Terms("lab 2"))
    assert again != token


def test_compared_in_constant_time(keyring, monkeypatch):
    """Every key is compared by the function that takes the same time for all, also one that there is not."""
    compared = []
    real = hmac.compare_digest
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append(len(b)) or real(a, b))
    token = keyring.make(Terms("lab"))
    keyring.recognise([token])  # connects, and checks the MAC
    compared.clear()
    for shown in (token, token[:-1] + "x", "pac_000000000000_abc", "nonsense"):
        keyring.recognise([shown])
    assert compared == [32] * 4


def test_revoked_and_expired(opening, keyring):
    """A key that was revoked elsewhere, or has expired, is nobody's with the next look."""
    token = keyring.make(Terms("lab"))
    soon = (datetime.now(UTC) + timedelta(seconds=-1)).isoformat(timespec="seconds")
    late = keyring.make(Terms("late", expires=soon))
    with opening() as other, closing(Keyring(other, STEP)) as elsewhere:
        assert keyring.recognise([token])[0] is not None
        elsewhere.revoke("lab")
        elsewhere.revoke("lab")
        assert keyring.recognise([token, late]) == [None, None]
    assert [key["state"] for key in keyring.describe()] == ["revoked", "expired"]
    with pytest.raises(InvalidInput, match="there is no key"):
        keyring.revoke("nobody")


def test_names_are_used_once(keyring):
    """The history tells clients by their names, so a name never means another."""
    keyring.make(Terms("lab"))
    keyring.revoke("lab")
    with pytest.raises(InvalidInput, match="used once"):
        keyring.make(Terms("lab"))


@pytest.mark.parametrize(
    "terms",
    [
        *(Terms(""), Terms(" a"), Terms("a" * 61), Terms("ä"), Terms("a\n"), Terms("a", "owner")),
        *(
            Terms("a", rate=0),
            Terms("a", queries=0),
            Terms("a", nats=STEP / 2),
            Terms("a", nats=float("nan")),
        ),
    ],
)
def test_wrong_terms(terms):
    """What would let nobody ask, or cannot be told from others, is refused with words."""
    with pytest.raises(InvalidInput):
        terms.check(STEP)


@pytest.mark.parametrize(
    "change",
    [
        *(
            "role = 'admin'",
            "revoked = NULL",
            "expires = NULL",
            "queries = 1000",
            "nats = 1.0",
            "rate = NULL",
        ),
        "name = 'other'",
    ],
)
def test_a_key_that_was_changed(keyring, ledger, change):
    """Whoever can write to the database gives nobody rights: what a key may do is under the ledger's MAC."""
    expires = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    token = keyring.make(Terms("lab", expires=expires, rate=5, queries=5, nats=STEP))
    keyring.revoke("lab")
    with ledger._connections.turn() as writer:
        writer.run(f"UPDATE keys SET {change}")
        writer.run("UPDATE key_use SET name = (SELECT name FROM keys)")
        writer.commit()
    with pytest.raises(LedgerDamaged, match="was changed"):
        keyring.recognise([token])


def test_use_is_counted_with_the_record(ledger, keyring):
    """What a key has used is what the records say, whether models differed or not; repeats are not used up."""
    keyring.make(Terms("lab"))
    session = make_session(ledger)
    session.serve([ask(1, 2, 3, client="lab"), ask(4, client="other"), ask(5)])
    session.serve([ask(1, 2, 3, client="lab"), ask(6, client="lab")])
    assert use_of(keyring, "lab") == recorded(ledger, "lab") == (4, 2)
    keyring.check_use()
    with ledger._connections.turn() as writer:
        writer.run("UPDATE key_use SET steps = 0")
        writer.commit()
    with pytest.raises(LedgerDamaged, match="'lab'"):
        keyring.check_use()


def test_number_of_queries(ledger, keyring):
    """A key is answered as many new queries as it may ask, all of a request or none, and repeats for ever."""
    keyring.make(Terms("lab", queries=5))
    session = make_session(ledger)
    first, second, third, part = session.serve(
        [
            ask(1, 2, 3, client="lab"),
            ask(3, 4, 5, 6, client="lab"),
            ask(1, 4, 4, client="lab"),
            ask(1, 7, 8, 9, client="lab", partial=True),
        ]
    )
    assert (len(first), len(third), len(part)) == (3, 3, 2)
    assert isinstance(second, QuotaReached)
    assert "2 of these 3" in str(second)
    assert isinstance(session.serve([ask(10, client="lab")])[0], QuotaReached)
    assert len(session.serve([ask(1, 2, 7, client="lab")])[0]) == 3
    assert len(session.serve([ask(10, 11)])[0]) == 2
    assert use_of(keyring, "lab") == recorded(ledger, "lab")
    assert use_of(keyring, "lab")[0] == 5
    check_history(ledger)


@pytest.mark.parametrize("first", [1, 3], ids=["contested", "unanimous"])
def test_share_of_the_budget(ledger, keyring, first):
    """A share is never passed, and its end says nothing of where models differ: each row counts as if they did."""
    keyring.make(Terms("lab", nats=2.9 * STEP))
    session = make_session(ledger)
    (refused,) = session.serve([ask(first, first + 3, first + 6, client="lab")])
    assert isinstance(refused, QuotaReached)
    assert "2 of these 3" in str(refused)
    while not isinstance(session.serve([ask(first, client="lab")])[0], QuotaReached) and first < 60:
        first += 3
    answered, charged = use_of(keyring, "lab")
    assert (charged, answered) == ((2, 2) if first % 3 else (0, 20))


def test_the_end_of_a_share_tells_nothing(ledger, keyring):
    """When a share is spent, queries on which models agree are refused in the same words as the others."""
    keyring.make(Terms("lab", nats=STEP))
    session = make_session(ledger)
    session.serve([ask(1, client="lab")])
    contested, agreed = session.serve([ask(2, client="lab"), ask(3, client="lab")])
    assert str(contested) == str(agreed)
    assert type(contested) is type(agreed) is QuotaReached


def test_rate(ledger, keyring, monkeypatch):
    """As many new answers as the rate says are given at once; then one by one, as time passes."""
    now = 1_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    keyring.make(Terms("lab", rate=6))
    session = make_session(ledger)
    assert len(session.serve([ask(*range(1, 7), client="lab")])[0]) == 6
    (refused,) = session.serve([ask(7, client="lab")])
    assert isinstance(refused, RateReached)
    assert refused.seconds == 11  # ten would do, if no arithmetic were rounded
    assert len(session.serve([ask(1, 2, client="lab")])[0]) == 2  # repeats
    now += 10.5
    assert len(session.serve([ask(7, client="lab")])[0]) == 1
    assert isinstance(session.serve([ask(8, client="lab")])[0], RateReached)
    now -= 1000.0  # a host whose clock is behind
    assert isinstance(session.serve([ask(8, client="lab")])[0], RateReached)
    now += 10_000.0
    assert len(session.serve([ask(*range(8, 14), client="lab")])[0]) == 6
    assert isinstance(session.serve([ask(14, client="lab")])[0], RateReached)


@pytest.mark.parametrize(
    ("rate", "emptied", "n", "partial"),
    [(6, 6, 4, False), (7, 5, 7, False), (600, 599, 50, False), (6, 6, 4, True)],
)
def test_the_time_that_a_rate_says_is_true(ledger, keyring, monkeypatch, rate, emptied, n, partial):
    """Who waits as long as is said gets all rows of the request, and who comes two seconds earlier does not."""
    now = 1_700_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    keyring.make(Terms("lab", rate=rate))
    session = make_session(ledger)
    session.serve([ask(*range(emptied), client="lab")])
    request = ask(*range(1000, 1000 + n), client="lab", partial=partial)
    (refused,) = session.serve([request])
    assert type(refused) is RateReached
    assert refused.seconds == math.floor((1 if partial else n - (rate - emptied)) * 60 / rate) + 1
    now += refused.seconds - 2
    if refused.seconds > 2:
        assert type(session.serve([request])[0]) is RateReached
    now += 2
    assert len(session.serve([request])[0]) == (1 if partial else n)


def test_what_waiting_does_not_change(ledger, keyring):
    """Nobody is told to come again who would be refused then: by a quota, or by more rows than fit into a minute."""
    keyring.make(Terms("lab", rate=5, queries=9))
    session = make_session(ledger)
    session.serve([ask(*range(4), client="lab")])
    for n in (6, 8):  # more than the quota leaves, and than a minute has
        (refused,) = session.serve([ask(*range(100, 100 + n), client="lab")])
        assert type(refused) is QuotaReached
        assert "1 of these" in str(refused)
    keyring.make(Terms("fast", rate=5))
    (refused,) = session.serve([ask(*range(100, 106), client="fast")])
    assert type(refused) is QuotaReached
    assert "in a minute" in str(refused)
    assert type(session.serve([ask(*range(100, 104), client="lab")])[0]) is RateReached


def test_revoked_against_a_trigger(tmp_path):
    """Nobody is told that a key is revoked while a trigger keeps it valid."""
    with (
        SqliteLedger(tmp_path / "ledger", key=KEY, deployment=DEPLOYMENT) as ledger,
        closing(Keyring(ledger, STEP)) as keyring,
    ):
        keyring.make(Terms("lab"))
        with closing(sqlite3.connect(tmp_path / "ledger")) as database:
            database.execute("CREATE TRIGGER keep BEFORE UPDATE ON keys BEGIN SELECT raise(ignore); END")
        with pytest.raises(LedgerDamaged, match="it has a trigger"):
            keyring.revoke("lab")


def test_revoked_in_the_middle(ledger, keyring):
    """A key that is revoked between being recognised and the turn is answered nothing new."""
    keyring.make(Terms("lab", queries=100))
    session = make_session(ledger)
    session.serve([ask(1, client="lab")])
    keyring.revoke("lab")
    assert isinstance(session.serve([ask(2, client="lab")])[0], KeyMissing)
    assert use_of(keyring, "lab")[0] == 1


def test_sessions_that_race(opening, keyring):
    """Several who serve at once answer one key exactly as often as it may ask."""
    keyring.make(Terms("lab", queries=25))
    refused = []

    def serve(worker):
        with opening() as mine:
            session = make_session(mine)
            for number in range(12):
                (outcome,) = session.serve([ask(100 * worker + number, client="lab")])
                refused.extend([outcome] if isinstance(outcome, QuotaReached) else [])

    race(serve, 4)
    assert len(refused) == 4 * 12 - 25
    with opening() as ledger:
        assert use_of(keyring, "lab") == recorded(ledger, "lab")
        assert use_of(keyring, "lab")[0] == 25


def test_keys_move_with_the_ledger(tmp_path, url):
    """A ledger that moves to PostgreSQL, or is brought back from a backup, has its keys and what they have used."""
    for name in ("home", "kept"):
        (tmp_path / name).mkdir()
    with (
        SqliteLedger(tmp_path / "home" / "ledger", key=KEY, deployment=DEPLOYMENT) as here,
        closing(Keyring(here, STEP)) as keyring,
    ):
        token = keyring.make(Terms("lab", queries=5))
        make_session(here).serve([ask(1, 2, client="lab")])
        back_up(here, tmp_path / "kept" / "backup")
        with move(here, url) as there, closing(Keyring(there, STEP)) as moved:
            assert moved.recognise([token])[0].terms.queries == 5
            assert isinstance(make_session(there).serve([ask(3, 4, 5, 6, client="lab")])[0], QuotaReached)
            moved.check_use()
    kept = restore(tmp_path / "kept" / "backup", tmp_path / "back", KEY, DEPLOYMENT, Link(2, b""))
    with kept as back, closing(Keyring(back, STEP)) as restored:
        assert restored.recognise([token])[0].n_answered == 2
        restored.check_use()


@pytest.mark.parametrize("point", ["before-insert", "after-insert", "before-commit", "after-commit"])
def test_killed_in_the_middle(opening, keyring, point):
    """Whoever is killed anywhere in a turn has counted what is on record, no more and no less."""
    keyring.make(Terms("lab", queries=3))
    child = os.fork()
    if child == 0:
        try:
            ledger = opening(killer(point, 3))  # the first is the founding of the session
            session = make_session(ledger)
            for number in range(10):
                session.serve([ask(number, client="lab")])
        finally:
            os._exit(1)  # whatever happens, the rest of the tests is the parent's
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with opening() as ledger:
        n_before = 2 if point == "after-commit" else 1
        assert use_of(keyring, "lab") == recorded(ledger, "lab")
        assert use_of(keyring, "lab")[0] == n_before
        outcomes = make_session(ledger).serve([ask(20 + i, client="lab") for i in range(4)])
        assert [isinstance(each, QuotaReached) for each in outcomes] == [i >= 3 - n_before for i in range(4)]
        keyring.check_use()
        check_history(ledger)
