"""Whoever may change the tables of a ledger in PostgreSQL cannot make it forget what was shown."""

import psycopg
import pytest
from small_deployment import DEPLOYMENT, KEY, ask, make_session

from pacpredict.exceptions import LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.ledger.postgres import PostgresConnection, PostgresLedger, describe_url

# What makes a session see temporary tables, with everything that was written, and takes it out of the real ones.
ELSEWHERE = """
    CREATE TEMP TABLE IF NOT EXISTS records AS TABLE public.records;
    CREATE TEMP TABLE IF NOT EXISTS state AS TABLE public.state;
    DELETE FROM public.records WHERE sequence > 3;
    PERFORM set_config('search_path', 'pg_temp, public', false);
"""
FORGETFUL = "PERFORM set_config('synchronous_commit', 'off', true);"
FUNCTION = "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} RETURN NULL; END $$"
TRIGGER = "CREATE TRIGGER meddle AFTER INSERT ON records FOR EACH ROW EXECUTE FUNCTION meddle()"

MEDDLING = {
    "names that lead elsewhere": (FUNCTION.format(ELSEWHERE), TRIGGER),
    "asynchronous commits": (FUNCTION.format(FORGETFUL), TRIGGER),
    "at the end of the commit": (
        FUNCTION.format("DELETE FROM public.records WHERE sequence > 3;"),
        TRIGGER.replace("CREATE", "CREATE CONSTRAINT").replace("FOR", "DEFERRABLE INITIALLY DEFERRED FOR", 1),
    ),
    "on the keys": (
        FUNCTION.format(""),
        "CREATE TRIGGER meddle AFTER UPDATE ON key_use FOR EACH ROW EXECUTE FUNCTION meddle()",
    ),
    "a rule": ("CREATE RULE meddle AS ON DELETE TO records DO ALSO NOTHING",),
    "a policy": ("ALTER TABLE records ENABLE ROW LEVEL SECURITY",),
    "tables that a crash empties": ("ALTER TABLE records SET UNLOGGED",),
}


@pytest.fixture
def served(url):
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
        make_session(ledger).serve([ask(1, 2, 3)])
        yield ledger


def run(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def n_records(url):
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM public.records").fetchone()[0]


@pytest.mark.parametrize("how", MEDDLING)
def test_tables_with_code_of_somebody_else(url, served, how):
    """No answer leaves, neither from a ledger that was open nor from one that is opened, until it is taken away."""
    session = make_session(served)
    run(url, *MEDDLING[how])
    for _ in range(2):
        with pytest.raises(LedgerError, match="Nothing was released"):
            session.serve([ask(4)])
    with pytest.raises(LedgerDamaged, match="trigger, a rule, a policy"):
        PostgresLedger(url, deployment=DEPLOYMENT, key=KEY, create=False)
    assert n_records(url) == 3


def test_code_that_is_no_trigger(url, served):
    """A condition that a column must meet can run code, too; what it writes elsewhere is not taken for the ledger."""
    session = make_session(served)
    run(
        url,
        f"CREATE FUNCTION meddle(bigint) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN {ELSEWHERE} RETURN true; END $$",
        "ALTER TABLE records ADD CONSTRAINT meddle CHECK (meddle(sequence)) NOT VALID",
    )
    with pytest.raises(LedgerDamaged, match="does not keep what is written"):
        session.serve([ask(4)])
    run(url, "ALTER TABLE records DROP CONSTRAINT meddle")
    ((release,),) = session.serve([ask(4)])
    assert (release.sequence, n_records(url)) == (4, 4)


SETTINGS = (
    "statement_timeout = '1ms'",
    "extra_float_digits = -5",
    "client_encoding = 'SQL_ASCII'",
    "default_transaction_isolation = 'serializable'",
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_a_role_do_not_matter(url, setting):
    """Whatever sessions begin with, a ledger is written, read back and opened again as usual."""
    run(url, f"ALTER ROLE owner SET {setting}")
    try:
        for query in (1, 2, 3):
            with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
                ((release,),) = make_session(ledger).serve([ask(query)])
                assert release.sequence == query
    finally:
        run(url, "SET statement_timeout = 0", f"ALTER ROLE owner RESET {setting.split()[0]}")


class Warned(PostgresConnection):
    """A connection whose next commits come with a warning, as when somebody ends the wait for a standby."""

    n_warned = 0

    def run(self, statement, values=()):
        rows = super().run(statement, values)
        if statement.endswith("COMMIT") and Warned.n_warned:
            Warned.n_warned -= 1
            super().run("DO $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; END $$")
        return rows


@pytest.mark.parametrize("n_warned", [1, 100])
def test_a_commit_that_a_standby_may_lack(url, monkeypatch, n_warned):
    """Such an answer is given only after a later commit has come through without a warning."""
    monkeypatch.setattr("pacpredict.ledger.postgres.PostgresConnection", Warned)
    monkeypatch.setattr("pacpredict.ledger.sql._INQUIRY_S", 0.5)
    with PostgresLedger(url, deployment=DEPLOYMENT, key=KEY) as ledger:
        session = make_session(ledger)
        session.serve([ask(1)])
        monkeypatch.setattr(Warned, "n_warned", n_warned)
        if n_warned == 1:
            ((release,),) = session.serve([ask(2)])
            assert release.sequence == 2
        else:
            with pytest.raises(LedgerUnavailable, match="a standby may lack"):
                session.serve([ask(2)])


def test_servers_that_are_named_otherwise(url):
    """Two URLs that lead to two servers are two places, also where only an address or a service differs."""
    at = "postgresql://owner@localhost/census?{}={}"
    places = {describe_url(at.format(name, i)) for name in ("hostaddr", "service") for i in (1, 2)}
    assert len(places | {describe_url("postgresql://owner@localhost/census")}) == 5
