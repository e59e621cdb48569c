"""Whoever may change the tables of a ledger in PostgreSQL cannot make it forget what was shown."""

import psycopg
import pytest
from small_deployment import DEPLOYMENT, KEY, STEP, ask, make_session

from pacpredict.exceptions import LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.keys import Terms
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

# What takes the last records away after all was read back: it writes where the commit comes upon another trigger.
LATE = """
    CREATE TEMP TABLE IF NOT EXISTS late (x int);
    IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'late') THEN
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION public.undo();
    END IF;
    INSERT INTO late VALUES (1);
"""
UNDO = FUNCTION.replace("meddle", "public.undo").format("DELETE FROM public.records WHERE sequence > 3;")
COMPUTED = "CREATE FUNCTION meddle({}) RETURNS {} LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN {} RETURN {}; END $$"

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
    "a default": (
        UNDO,
        COMPUTED.replace("IMMUTABLE", "").format("", "int", LATE, "1"),
        "ALTER TABLE records ADD COLUMN more int",
        "ALTER TABLE records ALTER COLUMN more SET DEFAULT meddle()",
    ),
    "a condition": (
        UNDO,
        COMPUTED.replace("IMMUTABLE", "").format("bigint", "bool", LATE, "true"),
        "ALTER TABLE records ADD CONSTRAINT meddle CHECK (meddle(sequence)) NOT VALID",
    ),
    "a condition instead of the ledger's own": (
        COMPUTED.format("bigint", "bool", "", "true"),
        "ALTER TABLE state DROP CONSTRAINT state_one_check",
        "ALTER TABLE state ADD CONSTRAINT state_one_check CHECK (one = 1 AND meddle(one))",
    ),
    "a condition of a type": (
        COMPUTED.format("text", "bool", "", "true"),
        "CREATE DOMAIN kind AS text CHECK (meddle(VALUE))",
        "ALTER TABLE records ALTER COLUMN kind TYPE kind",
    ),
    "a computed column": (
        COMPUTED.format("bigint", "int", "", "1"),
        "ALTER TABLE records ADD COLUMN more int GENERATED ALWAYS AS (meddle(sequence)) STORED",
    ),
    "a computed index": (
        COMPUTED.format("bigint", "int", "", "1"),
        "CREATE INDEX meddle ON records (meddle(sequence))",
    ),
    "an index of a computed part": (
        COMPUTED.format("bigint", "int", "", "1"),
        "CREATE INDEX meddle ON records (sequence) WHERE meddle(sequence) = 1",
    ),
    "a foreign key": ("CREATE TABLE others (x bigint REFERENCES records (sequence) ON DELETE CASCADE)",),
    "a table below": ("CREATE TABLE others () INHERITS (key_use)",),
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


def test_operators_of_somebody_else(url, served):
    """A division that the database itself lacks, of a decimal by an integer, is not looked for elsewhere."""
    keys = Keyring(served, STEP)
    keys.make(Terms("clinic", rate=60))
    run(
        url,
        "CREATE FUNCTION meddle(numeric, bigint) RETURNS float8 LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'somebody else was asked'; END $$",
        "CREATE OPERATOR / (LEFTARG = numeric, RIGHTARG = bigint, FUNCTION = meddle)",
    )
    ((release,),) = make_session(served).serve([ask(4, client="clinic")])
    assert release.sequence == 4
    assert keys.all()[0].drained > 0


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
