"""What keeps code within a PostgreSQL database from deciding what a turn writes, and where.

A trigger, a rule or a policy runs in the session of whoever writes, and so does what computes a default, a generated
column, an index, or whether a row or a value is allowed. It can move a row elsewhere, take it away again at the very
end of the commit, let names lead to temporary tables that vanish with the session, or switch synchronous commits off.
So the tables must have none, and before anything is read back or committed the names and settings of the session are
put right again.
"""

from typing import NamedTuple

_TABLES = "'state', 'records', 'keys', 'key_use', 'schema_version', 'pacpredict_anchors'"

# PostgreSQL's own types and operators have lower numbers than whatever is created in a database.
_FIRST_CREATED = 16384

# Not a table, or one that a crash empties, or with code of somebody else's, or with tables below it that have such.
# A ledger's own tables have one condition, two indexes of a part of their rows, and no foreign keys, whose triggers are
# internal ones.
_MEDDLED = (
    "SELECT FROM pg_class AS t WHERE relnamespace = {number} AND relname IN ({tables}) AND "
    "(relkind <> 'r' OR relpersistence <> 'p' OR relrowsecurity OR relhassubclass OR relispartition "
    "OR EXISTS (SELECT FROM pg_rewrite WHERE ev_class = t.oid) "
    "OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = t.oid) "
    "OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = t.oid AND attnum > 0 "
    "AND (atthasdef OR atttypid >= {created})) "
    "OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = t.oid AND contype NOT IN ('p', 'u', 'n') "
    "AND pg_get_constraintdef(oid) <> 'CHECK ((one = 1))') "
    "OR EXISTS (SELECT FROM pg_index WHERE indrelid = t.oid AND (indexprs IS NOT NULL "
    "OR pg_get_expr(indpred, indrelid) NOT IN ('(digest IS NOT NULL)', '(request IS NOT NULL)') "
    "OR {created} <= ANY (indclass::oid[]))))"
)

# Which schema the name of a table led to when the connection was made.
FIND = (
    "SELECT pg_namespace.oid::bigint, quote_ident(nspname) FROM pg_class JOIN pg_namespace "
    "ON pg_namespace.oid = relnamespace WHERE pg_class.oid = to_regclass('{table}')"
)

# A division by zero, or the logarithm of zero, ends a message of several statements, and the transaction: nothing after
# it is done.
MEDDLED_CODE = "22012"
FORGETFUL_CODE = "2201E"

# Whether the server syncs what it commits, and can repair pages that a crash has torn. It reads its settings again
# between two messages, so that within one they are those by which the commit is written.
IS_DURABLE = (
    "SELECT ln((current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on')::int::float8)"
)


class Guard(NamedTuple):
    """The schema of a ledger's tables, by its number and by its name in quotes."""

    number: int
    name: str

    @property
    def names(self) -> str:
        """Let names lead to the tables: by default temporary ones come first."""
        return f"SET search_path = {self.name}, pg_temp"

    @property
    def settle(self) -> str:
        """Put the names and the durability of a transaction right, whatever was made of the session's."""
        return f"SET LOCAL search_path = {self.name}, pg_temp; SET LOCAL synchronous_commit = on"

    @property
    def begin(self) -> str:
        return f"BEGIN ISOLATION LEVEL READ COMMITTED; {self.settle}"

    @property
    def begin_turn(self) -> str:
        """Begin a turn, and lock the one row of the state."""
        return f"{self.begin}; SELECT one FROM state FOR UPDATE"  # noqa: S608

    @property
    def check(self) -> str:
        """Fail if anybody has given the tables code of their own, or made them forgetful."""
        meddled = _MEDDLED.format(number=self.number, tables=_TABLES, created=_FIRST_CREATED)
        return f"SELECT 1 / (NOT EXISTS ({meddled}))::int"

    @property
    def commit(self) -> str:
        """Commit durably, unless a check fails, with all of its names meant as PostgreSQL means them."""
        rightly = "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL synchronous_commit = on"
        return f"{rightly}; {self.check}; {IS_DURABLE}; COMMIT"
