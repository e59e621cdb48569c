"""Take a ledger of the first version, whose chain had no key, to one that whoever lacks the key cannot forge.

The old chain is checked from the first record to the state before anything of it is taken over. But whoever can write
to the database can compute such a chain. So none is signed without the owner's word that this deployment never had a
history under the key: a forged ledger of the first version would otherwise get a MAC for any belief and any spending.
And none can be used, by whichever command, before these are found to follow from its records: see Home.upgrade.
"""

import hashlib
import logging
import struct
from collections.abc import Callable, Iterator
from typing import Any

from pacpredict.exceptions import LedgerConflict, LedgerDamaged
from pacpredict.ledger import head as heads
from pacpredict.ledger.records import Row, as_bytes, field, first_link, link_of_row
from pacpredict.mechanism.question import request_key

Run = Callable[..., list[tuple[Any, ...]]]  # a statement, and values for its question marks

_FORMAT_1 = b"pacpredict ledger, records of format 1"
_PAGE = 500
_OLD_STATE = (
    "SELECT ledger, deployment, created, moved_to, chain, sequence, contested, spent_steps, step, origin, log_belief "
    "FROM state"
)
_OLD_RECORDS = (
    "SELECT records.sequence, records.digest, records.id, client, label, charged_steps, spent_steps, time, chain, "
    "question, noisy, requests.digest FROM records LEFT JOIN requests ON requests.id = records.id "
    "WHERE records.sequence > ? ORDER BY records.sequence LIMIT ?"
)
_NEW_RECORD = "UPDATE records SET request = ?, asked = ?, chain = ? WHERE sequence = ?"
_log = logging.getLogger(__name__)


def rekey(run: Run, key: bytes | None) -> None:
    """Chain all records anew under the key, in a transaction of the caller; a new ledger has none.

    Without a key, a ledger that has a history is refused.
    """
    found = run(_OLD_STATE)
    if not found:
        return
    if key is None:
        raise LedgerConflict(
            "the ledger is one of the first version, which anybody can forge. If this deployment was ever used by a "
            "later one, it is an older copy, or somebody has made it: bring back the latest. Nothing was released. If "
            "it never was, say so: `pacpredict ledger upgrade`"
        )
    ((ledger, deployment, created, moved_to, old_head, *numbers, step, origin, log_belief),) = found
    if moved_to is not None:
        raise LedgerConflict(f"the ledger is continued at {moved_to}. Nothing was upgraded: use that one")
    old, new, n = _old_first_link(ledger, deployment), first_link(key, ledger, deployment), 0
    run("INSERT INTO old_chains (sequence, chain) VALUES (0, ?)", (old,))
    for row, chain, asked in _old_rows(run):
        old = _old_link(old, row)
        if old != chain:
            raise _damaged(f"the chain is broken at record {row[0]}")
        new = _store(run, key, new, row, asked)
        n += 1
    if old != old_head:
        raise _damaged("its records do not end where its state says")
    lacking = (None, None)  # what later versions added: room and moved
    values = (
        ledger,
        deployment,
        created,
        heads.TO_BE_CHECKED,
        new,
        *numbers,
        step,
        None,
        origin,
        None,
        log_belief,
        *lacking,
    )
    marked = heads.TO_BE_CHECKED, new, heads.mac_of(key, values)
    run("UPDATE state SET moved_to = ?, chain = ?, mac = ?", marked)
    _log.warning("the ledger was upgraded: its %d releases are now protected by the key of the artifact", n)


def _old_rows(run: Run) -> Iterator[tuple[Row, bytes, bytes | None]]:
    """Yield each record as format 1 had it, without its chain value; that; and what was asked with its id."""
    last = -1
    while rows := run(_OLD_RECORDS, (last, _PAGE)):
        for *record, asked in rows:
            yield (*record[:8], *record[9:]), record[8], asked
        last = rows[-1][0]


def _store(run: Run, key: bytes, link: bytes, row: Row, asked: bytes | None) -> bytes:
    """Give a record its new link and return that."""
    sequence, digest, request_id, client, label, charged, spent, time, question, noisy = row
    request = None if request_id is None else request_key(client, request_id)
    asked = None if request is None else asked
    values = (
        sequence,
        digest,
        None,
        client,
        request,
        asked,
        label,
        charged,
        spent,
        time,
        None,
        question,
        noisy,
    )
    link = link_of_row(key, link, values)
    run(_NEW_RECORD, (request, asked, link, sequence))
    return link


def _old_first_link(ledger_id: str, deployment: str | None) -> bytes:
    return hashlib.sha256(_FORMAT_1 + field(ledger_id.encode()) + field(as_bytes(deployment))).digest()


def _old_link(link: bytes, row: Row) -> bytes:
    sequence, digest, request_id, client, label, charged, spent, time, question, noisy = row
    fields = (
        None if label is None else struct.pack("<Q", label),
        digest,
        as_bytes(request_id),
        as_bytes(client),
        time.encode(),
        question,
        noisy,
    )
    numbers = struct.pack("<QQQ", sequence, charged, spent)
    return hashlib.sha256(link + numbers + b"".join(map(field, fields))).digest()


def _damaged(what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the ledger is of an earlier version and damaged: {what}. Restore the latest backup; it was not upgraded"
    )
