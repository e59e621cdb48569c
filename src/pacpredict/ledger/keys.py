"""Keys by which clients are known: in the ledger's database, so that all who serve from it see the same ones.

A key is shown once; kept are a salt and the hash of both, which is enough for 256 random bits. What a key is allowed is
under a MAC, as the history is: whoever can write to the database but has not the secret's file makes no key. What it
has used is counted by the commits themselves, and `ledger verify` counts again.
"""

import hashlib
import hmac
import math
import secrets
import struct
import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

from pacpredict.exceptions import InvalidInput, LedgerDamaged
from pacpredict.ledger.records import Row, as_bytes, field, mac
from pacpredict.mechanism.allowance import Allowance, Quota, Rate
from pacpredict.mechanism.ledger import Entry

Role = Literal["query", "read", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)

Read = Callable[[str, Sequence[Any]], list[Row]]

_PREFIX = "pac"  # by which programs that look for leaked secrets can know them
_FORMAT = b"pacpredict key of format 1"
_NUMBER = struct.Struct("<d")
_MINUTE = 60.0
_LONGEST_NAME = 60

_TERMS = (
    "name",
    "id",
    "role",
    "salt",
    "hash",
    "created",
    "expires",
    "revoked",
    "rate",
    "queries",
    "nats",
    "mac",
)
COLUMNS = {"keys": _TERMS, "key_use": ("name", "queries", "steps", "drained")}
_SELECT = (
    f"SELECT {', '.join(f'keys.{column}' for column in _TERMS)}, key_use.queries, key_use.steps, "  # noqa: S608
    "key_use.drained FROM keys JOIN key_use ON key_use.name = keys.name "
)
_BY = _SELECT + "WHERE keys.{} IN ({})"
ALL = _SELECT + "ORDER BY keys.name"
ANY = "SELECT 1 FROM keys LIMIT 1"
INSERT = f"INSERT INTO keys ({', '.join(_TERMS)}) VALUES ({', '.join('?' * len(_TERMS))})"  # noqa: S608
INSERT_USE = "INSERT INTO key_use (name, queries, steps, drained) VALUES (?, 0, 0, 0)"
# In one statement, so that no commit comes between; and what the records up to there say.
USE = (
    "SELECT key_use.name, key_use.queries, key_use.steps, COALESCE(state.sequence, 0) FROM key_use, state "
    "ORDER BY key_use.name"
)
RECORDED = (
    "SELECT client, count(*), sum(charged_steps) FROM records WHERE client IS NOT NULL AND sequence <= ? "
    "GROUP BY client"
)
REVOKE = "UPDATE keys SET revoked = ?, mac = ? WHERE name = ?"
# `drained` is when the bucket of a rate was, or will be, empty: it fills within a minute, and a new answer takes out
# its part of that.
# Of one type on both sides of the division: PostgreSQL then takes its own operator, and none that somebody has defined.
_COUNT = (
    "UPDATE key_use SET queries = queries + ?, steps = steps + ?, drained = CASE WHEN drained > ? THEN drained ELSE ? "
    "END + ? * COALESCE((SELECT CAST(60.0 AS DOUBLE PRECISION) / CAST(rate AS DOUBLE PRECISION) FROM keys "
    "WHERE keys.name = key_use.name), CAST(0.0 AS DOUBLE PRECISION)) WHERE name = ?"
)


class Terms(NamedTuple):
    """What a key is for, and how much of what all share it may use."""

    name: str
    role: Role = "query"
    expires: str | None = None  # UTC, ISO 8601
    rate: int | None = None  # new answers in a minute
    queries: int | None = None  # new answers in all
    nats: float | None = None  # what they may be charged

    def check(self, step: float) -> None:
        """Refuse what cannot be, or would let nobody be answered."""
        if (
            not 0 < len(self.name) <= _LONGEST_NAME
            or not (self.name.isascii() and self.name.isprintable())
            or self.name != self.name.strip()
        ):
            raise InvalidInput(f"the name of a key is 1 to {_LONGEST_NAME} printable ASCII characters")
        if self.role not in ROLES:
            raise InvalidInput(f"a key has one of the roles {', '.join(ROLES)}, not {self.role!r}")
        for what, most in (("rate", self.rate), ("number of queries", self.queries)):
            if most is not None and not 1 <= most < 2**63:
                raise InvalidInput(f"with a {what} of {most} nothing could be answered")
        if self.nats is not None and not (math.isfinite(self.nats) and self.nats >= step):
            raise InvalidInput(
                f"a share of {self.nats!r} nats allows no answer on which models differ: each is charged {step!r}"
            )


class Key(NamedTuple):
    """A key as the database has it."""

    terms: Terms
    id: str
    salt: bytes
    hash: bytes
    created: str
    revoked: str | None
    n_answered: int
    n_steps: int
    drained: float

    def __repr__(self) -> str:
        return f"Key({self.terms!r})"

    def opens(self, secret: str) -> bool:
        """Compare in a time that does not depend on what is the same."""
        return hmac.compare_digest(self.hash, _hash(self.salt, secret))

    @property
    def state(self) -> Literal["valid", "expired", "revoked"]:
        if self.revoked is not None:
            return "revoked"
        expires = self.terms.expires
        is_over = expires is not None and datetime.fromisoformat(expires) <= datetime.now(UTC)
        return "expired" if is_over else "valid"

    def is_valid(self) -> bool:
        return self.state == "valid"

    def allowance(self, step: float) -> Allowance | None:
        """Return how many queries may still be answered anew, or None without a limit.

        An answer may cost a step: what is left of a share allows as many as it has steps.
        """
        if not self.is_valid():
            return Allowance(Quota(0, "revoked"))
        left: list[Quota] = []
        if self.terms.queries is not None:
            left.append(Quota(max(0, self.terms.queries - self.n_answered), "queries"))
        if self.terms.nats is not None:
            left.append(Quota(max(0, _steps(self.terms.nats, step) - self.n_steps), "nats"))
        rate = None
        if self.terms.rate is not None:
            full = min(1.0, (time.time() - self.drained) / _MINUTE)
            rate = Rate(self.terms.rate, self.terms.rate * full)
        return Allowance(min(left, default=None), rate) if left or rate else None


# Compared with the secret of a key that there is not, so that this takes as long.
_NOBODY = Key(Terms(""), "", b"\0" * 16, b"\0" * 32, "", "never made", 0, 0, 0.0)


def new_key(terms: Terms, signing: bytes) -> tuple[str, Row]:
    """Make a key; returns it as the client gets it, and the row that is kept."""
    identity, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_bytes(16)
    key = Key(terms, identity, salt, _hash(salt, secret), _now(), None, 0, 0, 0.0)
    return f"{_PREFIX}_{identity}_{secret}", _to_row(signing, key)


def revoked(key: Key, signing: bytes) -> tuple[str, bytes, str]:
    """Return the values for REVOKE."""
    now = _now()
    return now, _mac(signing, key._replace(revoked=now)), key.terms.name


def find_by(column: Literal["id", "name"], wanted: Collection[str], read: Read, signing: bytes) -> list[Key]:
    """Look keys up, by their public part or their name."""
    values = list(wanted)
    if not values:
        return []
    rows = read(_BY.format(column, ", ".join("?" * len(values))), values)
    return [from_row(signing, row) for row in rows]


def split(token: str) -> tuple[str, str]:
    """Return the public part of a key and its secret; empty texts of what is no key."""
    prefix, _, rest = token.partition("_")
    identity, _, secret = rest.partition("_")
    return (identity, secret) if prefix == _PREFIX else ("", "")


def recognise(tokens: Sequence[str], find: Callable[[Collection[str]], Sequence[Key]]) -> list[Key | None]:
    """Say whose keys these are, all looked up at once; None for what is no valid key."""
    parts = [split(token) for token in tokens]
    known = {key.id: key for key in find({identity for identity, _ in parts if identity})}
    found = [known.get(identity, _NOBODY) for identity, _ in parts]
    fits = [key.opens(secret) for key, (_, secret) in zip(found, parts, strict=True)]
    return [key if fit and key.is_valid() else None for key, fit in zip(found, fits, strict=True)]


def count_use(entries: Sequence[Entry], run: Callable[[str, Sequence[Any]], list[Row]]) -> None:
    """Count what was answered to each client, in the transaction that records it."""
    used: dict[str, tuple[int, int]] = {}
    for entry in entries:
        if entry.client is not None:
            n, steps = used.get(entry.client, (0, 0))
            used[entry.client] = n + 1, steps + entry.charged_steps
    full_since = time.time() - _MINUTE
    for client, (n, steps) in used.items():
        run(_COUNT, (n, steps, full_since, full_since, float(n), client))


def from_row(signing: bytes, row: Row) -> Key:
    n_answered, n_steps, drained = row[len(_TERMS) :]
    genuine = _genuine(signing, tuple(row[: len(_TERMS)]))
    return genuine._replace(n_answered=n_answered, n_steps=n_steps, drained=drained)


@lru_cache(maxsize=1024)  # what was found to be genuine stays so: these are the very bytes
def _genuine(signing: bytes, row: Row) -> Key:
    """Read what a key is allowed, and refuse what nobody with the ledger's key has written."""
    name, identity, role, salt, digest, created, expires, end, rate, queries, nats, mac = row
    terms = Terms(name, role, expires, rate, queries, nats)
    key = Key(terms, identity, salt, digest, created, end, 0, 0, 0.0)
    if not hmac.compare_digest(_mac(signing, key), mac):
        raise LedgerDamaged(
            f"the key {name!r} was changed by somebody who had no right to; revoke it and make another"
        )
    return key


@lru_cache(maxsize=1024)
def _steps(nats: float, step: float) -> int:
    """Return how many whole steps a share has, exactly."""
    return math.floor(Fraction(nats) / Fraction(step))


def _to_row(signing: bytes, key: Key) -> Row:
    name, role, expires, rate, queries, nats = key.terms
    stored = (name, key.id, role, key.salt, key.hash, key.created, expires, key.revoked, rate, queries, nats)
    return (*stored, _mac(signing, key))


def _mac(signing: bytes, key: Key) -> bytes:
    name, role, expires, rate, queries, nats = key.terms
    texts = [as_bytes(text) for text in (name, key.id, role, key.created, expires, key.revoked)]
    limits = [None if most is None else str(most).encode() for most in (rate, queries)]
    share = None if nats is None else _NUMBER.pack(nats)
    parts = (*texts, key.salt, key.hash, *limits, share)
    return mac(signing, _FORMAT + b"".join(map(field, parts)))


def _hash(salt: bytes, secret: str) -> bytes:
    return hashlib.sha256(salt + secret.encode("utf-8", "replace")).digest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
