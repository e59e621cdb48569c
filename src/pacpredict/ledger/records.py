"""One release as bytes: how a record is stored, and the chain of hashes that makes a changed history visible.

chain_n = SHA-256(chain_{n-1} || bytes of record n), starting from a digest of the ledger's and the deployment's
identity. Whoever knows a chain value knows the whole history up to it.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pacpredict.core.validate import FloatArray, Votes
from pacpredict.exceptions import LedgerDamaged
from pacpredict.mechanism.ledger import Entry

# The order of a record's columns in every database.
COLUMNS = (
    "sequence", "digest", "id", "client", "label", "charged_steps", "spent_steps", "time", "chain", "question", "noisy",
)  # fmt: skip
Row = tuple[Any, ...]

# Hashed before everything else; a change of the format below needs a new one.
_FORMAT = b"pacpredict ledger, records of format 1"

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


def first_link(ledger_id: str, deployment: str | None) -> bytes:
    """Compute chain_0."""
    return hashlib.sha256(_FORMAT + _field(ledger_id.encode()) + _field(_bytes(deployment))).digest()


def next_link(link: bytes, record: Record) -> bytes:
    """Compute chain_n from chain_{n-1}; the record's own chain value does not enter."""
    return _link(link, to_row(record))


def to_rows(entries: Iterable[Entry], spent: int, time: str, link: bytes) -> Iterator[Row]:
    """Chain new entries to `link`, which stands after `spent` steps, and yield them as rows."""
    for entry in entries:
        spent += entry.charged_steps
        row = to_row(Record(entry, spent, time, b""))
        link = _link(link, row)
        yield (*row[:8], link, *row[9:])


def to_row(record: Record) -> Row:
    entry = record.entry
    return (
        entry.sequence,
        entry.digest,
        entry.id,
        entry.client,
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
    sequence, digest, request_id, client, label, charged, spent, time, chain, question, noisy = row
    try:
        asked = None if question is None else _read_question(question, label is not None)
        released = None if noisy is None else _read_only(np.frombuffer(noisy, "<f8").astype(np.float64))
    except (ValueError, struct.error) as problem:
        raise LedgerDamaged(
            f"record {sequence} of the ledger is damaged: its stored numbers have an impossible length. "
            "Restore the ledger from a backup that is not older"
        ) from problem
    entry = Entry(sequence, charged, label, asked, released, digest, request_id, client)
    return Record(entry, spent, time, chain)


def _link(link: bytes, row: Row) -> bytes:
    sequence, digest, request_id, client, label, charged, spent, time, _, question, noisy = row
    return hashlib.sha256(
        b"".join(
            (
                link,
                _NUMBERS.pack(sequence, charged, spent),
                _field(None if label is None else _LENGTH.pack(label)),
                _field(digest),
                _field(_bytes(request_id)),
                _field(_bytes(client)),
                _field(time.encode()),
                _field(question),
                _field(noisy),
            )
        )
    ).digest()


def _field(value: bytes | None) -> bytes:
    """Give a value its length, and absence a mark of its own: different records never have the same bytes."""
    return b"\0" if value is None else b"\1" + _LENGTH.pack(len(value)) + value


def _bytes(text: str | None) -> bytes | None:
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
