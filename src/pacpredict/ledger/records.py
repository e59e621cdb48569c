"""One release as bytes: how a record is stored, and the keyed chain that makes a changed history visible.

chain_n = HMAC-SHA-256(key, chain_{n-1} || bytes of record n), starting from the ledger's and the deployment's identity.
The key comes from the secret's file: whoever can write to the database but not read that file can neither change nor
add a record. Whoever knows a chain value knows the whole history up to it.
"""

import hmac
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import LedgerDamaged
from pacpredict.mechanism.ledger import Entry
from pacpredict.types import FloatArray, Votes

# The order of a record's columns in every database.
COLUMNS = (
    "sequence", "digest", "kind", "votes", "client", "request", "asked", "label", "charged_steps", "spent_steps",
    "time", "chain", "question", "noisy",
)  # fmt: skip
CHAIN = COLUMNS.index("chain")
Row = tuple[Any, ...]

# Hashed before everything else; a change of the format below needs a new one.
_FORMAT = b"pacpredict ledger, records of format 3"

_SHAPE = struct.Struct("<II")
_NUMBERS = struct.Struct("<QQQ")
_LENGTH = struct.Struct("<Q")


class Record(NamedTuple):
    """An entry with what the ledger adds to it."""

    entry: Entry
    spent_steps: int  # after this release
    time: str  # of the commit, UTC, ISO 8601
    chain: bytes

    def __repr__(self) -> str:
        return f"Record({self.entry!r}, spent_steps={self.spent_steps}, time={self.time!r}, chain={self.chain.hex()})"


def first_link(key: bytes, ledger_id: str, deployment: str | None) -> bytes:
    """Compute chain_0."""
    return mac(key, _FORMAT + field(ledger_id.encode()) + field(as_bytes(deployment)))


def next_link(key: bytes, link: bytes, record: Record) -> bytes:
    """Compute chain_n from chain_{n-1}; the record's own chain value does not enter."""
    return link_of_row(key, link, to_row(record))


def to_rows(key: bytes, entries: Iterable[Entry], spent: int, time: str, link: bytes) -> Iterator[Row]:
    """Chain new entries to `link`, which stands after `spent` steps, and yield them as rows."""
    for entry in entries:
        spent += entry.charged_steps
        row = to_row(Record(entry, spent, time, b""))
        link = link_of_row(key, link, row)
        yield (*row[:CHAIN], link, *row[CHAIN + 1 :])


def to_row(record: Record) -> Row:
    entry = record.entry
    return (
        entry.sequence,
        entry.digest,
        entry.kind,
        entry.votes,
        entry.client,
        entry.request,
        entry.asked,
        entry.label,
        entry.charged_steps,
        record.spent_steps,
        record.time,
        record.chain,
        _question_bytes(entry),
        None if entry.noisy is None else entry.noisy.astype("<f8", copy=False).tobytes(),
    )


def from_row(row: Row) -> Record:
    """Read a record back, bit for bit."""
    (
        sequence,
        digest,
        kind,
        rule,
        client,
        request,
        asked,
        label,
        charged,
        spent,
        time,
        chain,
        question,
        noisy,
    ) = row
    try:
        votes = None if question is None else _read_question(question, label is not None)
        released = None if noisy is None else _read_only(np.frombuffer(noisy, "<f8").astype(np.float64))
    except (ValueError, TypeError, struct.error) as problem:
        raise LedgerDamaged(
            f"record {sequence} of the ledger is damaged: its stored numbers have an impossible length or kind. "
            "Restore the ledger from a backup that is not older"
        ) from problem
    entry = Entry(sequence, charged, label, kind, votes, released, digest, client, request, asked, rule)
    return Record(entry, spent, time, chain)


def link_of_row(key: bytes, link: bytes, row: Row) -> bytes:
    """Compute the link of a row as it is stored, from the link before it."""
    sequence, digest, kind, rule, client, request, asked, label, charged, spent, time, _, question, noisy = (
        row
    )
    try:
        parts = (
            link,
            _NUMBERS.pack(sequence, charged, spent),
            field(None if label is None else _LENGTH.pack(label)),
            field(digest),
            _text_field(kind),
            _text_field(rule),
            _text_field(client),
            field(request),
            field(asked),
            field(time.encode()),
            field(question),
            field(noisy),
        )
    except (
        struct.error,
        AttributeError,
        TypeError,
    ):  # what no session writes: nothing that it could be chained to
        return b""
    return mac(key, b"".join(parts))


def mac(key: bytes, message: bytes) -> bytes:
    """Compute HMAC-SHA-256."""
    begun = _begin_mac(key).copy()
    begun.update(message)
    return begun.digest()


@lru_cache(maxsize=4)
def _begin_mac(key: bytes) -> hmac.HMAC:
    """Take in a key, once for all messages: that takes longer than a short message."""
    return hmac.new(key, digestmod="sha256")


def field(value: bytes | None) -> bytes:
    """Give a value its length, and absence a mark of its own: different records never have the same bytes."""
    return b"\0" if value is None else b"\1" + _LENGTH.pack(len(value)) + value


@lru_cache(maxsize=64)
def _text_field(text: str | None) -> bytes:
    """Do so for a text; those of the rows of a commit are nearly always the same."""
    return field(as_bytes(text))


def as_bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _question_bytes(entry: Entry) -> bytes | None:
    """Votes are 16-bit integers; real outputs are doubles after their shape. Both little-endian."""
    question = entry.question
    if question is None:
        return None
    if entry.label is not None:
        return question.astype("<i2", copy=False).tobytes()
    return _SHAPE.pack(*question.shape) + question.astype("<f8", copy=False).tobytes()


def _read_question(blob: bytes, are_votes: bool) -> Votes | FloatArray:
    if are_votes:
        return _read_only(np.frombuffer(blob, "<i2").astype(np.int16))
    outputs = np.frombuffer(blob, "<f8", offset=_SHAPE.size).astype(np.float64)
    return _read_only(outputs.reshape(_SHAPE.unpack_from(blob)))


def _read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array
