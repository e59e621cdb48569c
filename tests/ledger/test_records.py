"""The bytes of a record and the chain of hashes."""

import hmac
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_contract import KINDS, asked_entry, same_entry

from pacpredict.ledger.records import (
    COLUMNS,
    Record,
    first_link,
    from_row,
    link_of_row,
    next_link,
    to_row,
    to_rows,
)
from pacpredict.mechanism.ledger import Entry

TIME = "2026-11-15T12:00:00.000000+00:00"
KEY = b"key" * 11
LINK = bytes(32)


def record_of(entry, spent=1, time=TIME):
    return Record(entry, spent, time, b"")


@pytest.mark.parametrize("kind", [*KINDS, asked_entry])
def test_rows_come_back(kind):
    """A record becomes a row of plain values and back, bit for bit."""
    row = to_row(Record(kind(5), 7, TIME, b"chain"))
    assert all(value is None or type(value) in (int, str, bytes) for value in row)
    again = from_row(row)
    assert same_entry(again.entry, kind(5))
    assert (again.spent_steps, again.time, again.chain) == (7, TIME, b"chain")


def test_the_chain_as_written():
    """The chain is HMAC-SHA-256 over the link before and the record's fields, each with its length: pinned by hand."""
    votes, noisy = np.array([0, 1, -1], dtype=np.int16), np.array([0.5, -2.0])
    entry = Entry(3, 1, 2, "map", votes, noisy, b"d" * 32, "zoe", votes="leave-one-out")

    def field(value):
        return b"\1" + struct.pack("<Q", len(value)) + value

    message = (
        LINK
        + struct.pack("<QQQ", 3, 1, 9)
        + field(struct.pack("<Q", 2))
        + field(b"d" * 32)
        + field(b"map")
        + field(b"leave-one-out")
        + field(b"zoe")
        + b"\0"
        + b"\0"
        + field(TIME.encode())
        + field(struct.pack("<3h", 0, 1, -1))
        + field(struct.pack("<2d", 0.5, -2.0))
    )
    expected = hmac.new(KEY, message, "sha256").digest()
    assert next_link(KEY, LINK, Record(entry, 9, TIME, b"ignored")) == expected


CHANGES = {
    "sequence": record_of(asked_entry(4)._replace(sequence=5)),
    "charge": record_of(asked_entry(4)._replace(charged_steps=0)),
    "label": record_of(asked_entry(4)._replace(label=2)),
    "digest": record_of(asked_entry(4)._replace(digest=None)),
    "request": record_of(asked_entry(4)._replace(request=None)),
    "asked": record_of(asked_entry(4)._replace(asked=b"other")),
    "kind": record_of(asked_entry(4)._replace(kind="map")),
    "client": record_of(asked_entry(4)._replace(client=None)),
    "rule": record_of(asked_entry(4)._replace(votes="leave-one-out")),
    "votes": record_of(asked_entry(4)._replace(question=asked_entry(5).question)),
    "noisy": record_of(asked_entry(4)._replace(noisy=np.array([-0.0]))),
    "spent": record_of(asked_entry(4), spent=2),
    "time": record_of(asked_entry(4), time=TIME.replace("12", "13")),
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES)
def test_every_change_breaks_the_chain(changed):
    """No part of a record can be changed without its link changing, nor what came before it."""
    original = next_link(KEY, LINK, record_of(asked_entry(4)))
    assert next_link(KEY, LINK, changed) != original
    assert next_link(KEY, b"\1" + LINK[1:], record_of(asked_entry(4))) != original


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(
            (name, value)
            for name in ("kind", "votes", "client", "time")
            for value in (b"map", 1, True, 2**80, 0.5, [1])
        ),
        *(
            (name, value)
            for name in ("digest", "request", "asked", "question", "noisy")
            for value in ("map", 1, 0.5)
        ),
        *(
            (name, value)
            for name in ("sequence", "charged_steps", "spent_steps")
            for value in (None, -1, 2**64, "1", 0.5)
        ),
        ("time", None),
    ],
)
def test_what_no_session_writes_is_chained_to_nothing(column, value):
    """A row with a value of another type than a ledger has there has no link, also when its neighbours were genuine."""
    row = to_row(record_of(asked_entry(4)))
    place = COLUMNS.index(column)
    assert len(link_of_row(KEY, LINK, row)) == 32
    assert link_of_row(KEY, LINK, (*row[:place], value, *row[place + 1 :])) == b""


def test_positive_and_negative_zero_differ():
    """The chain is over bits: a release of -0.0 is not one of 0.0."""
    links = {
        next_link(KEY, LINK, record_of(Entry(1, 1, 0, "argmax", np.zeros(2, np.int16), np.array([z]))))
        for z in (0.0, -0.0)
    }
    assert len(links) == 2


@given(texts=st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=4, max_size=4))
def test_fields_do_not_run_into_each_other(texts):
    """Two texts that say the same when written one after the other are still two."""
    one = next_link(KEY, LINK, record_of(Entry(1, 0, 0, kind=texts[0], client=texts[1])))
    other = next_link(KEY, LINK, record_of(Entry(1, 0, 0, kind=texts[2], client=texts[3])))
    assert (one == other) is (texts[:2] == texts[2:])


def test_a_chain_belongs_to_a_ledger():
    """Histories of different ledgers or deployments share no link."""
    names = [("a", None), ("b", None), ("a", "b"), ("ab", None)]
    assert len({first_link(key, *name) for key in (KEY, b"other") for name in names}) == 8


def test_rows_are_chained_in_order():
    """Each row carries the link after it, and what was spent by then."""
    link = first_link(KEY, "a", None)
    for row, entry in zip(
        to_rows(KEY, [asked_entry(i) for i in (1, 2, 3)], 5, TIME, link), (1, 2, 3), strict=True
    ):
        record = from_row(row)
        link = next_link(KEY, link, record)
        assert (record.entry.sequence, record.spent_steps, record.chain) == (entry, 5 + entry, link)
