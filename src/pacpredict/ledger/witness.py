"""Who remembers how far a ledger has come, so that a missing, older, copied or exchanged one is noticed.

A ledger cannot tell that it is an old copy of itself. A witness says which ledger an artifact is served with, where it
is, and the last link of its history that was shown to anybody: it is on disk before an answer leaves, and an answer
that it cannot note does not leave. There is one in the artifact's directory; another, the anchor, may be kept
elsewhere, so that artifact and ledger cannot be turned back together.
"""

import fcntl
import hmac
import json
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Protocol

from pacpredict.exceptions import LedgerConflict, LedgerDamaged, LedgerUnavailable
from pacpredict.files import PRIVATE, remove_drafts, write_whole
from pacpredict.ledger.records import mac
from pacpredict.ledger.sql import Link

# A record of the file is written in the place of the older of two, in one block of the disk: a write that is cut off
# damages the new one only.
_SLOT = 4096
_N_SLOTS = 2

_write_json = json.JSONEncoder(sort_keys=True).encode


class Sighting(NamedTuple):
    """Which ledger was seen, where, and how far it had come."""

    ledger: str
    kind: str
    location: str
    place: str  # the file or server itself, however it is reached; empty if that is not known
    sequence: int
    chain: str
    anchor: str | None = None  # where the other witness is, if there is one
    verified: int = 0  # up to which release every record was checked
    keyed: bool = False  # whether clients ever had keys: a database that has none any more has lost them

    @property
    def link(self) -> Link:
        return Link(self.sequence, bytes.fromhex(self.chain))

    def at(self, link: Link) -> "Sighting":
        ledger, kind, location, place, _, _, anchor, verified, keyed = self
        chain = link.chain.hex()
        return Sighting(ledger, kind, location, place, link.sequence, chain, anchor, verified, keyed)

    def knowing(self, other: "Sighting") -> "Sighting":
        """Add what another sighting knows of an anchor, of checks and of keys, however far it has come."""
        if self[-3:] == other[-3:]:  # nearly always
            return self
        return self._replace(
            anchor=self.anchor or other.anchor,  # which another process may have begun to use
            verified=max(self.verified, other.verified),
            keyed=self.keyed or other.keyed,
        )


class Witness(Protocol):
    @property
    def location(self) -> str: ...

    def database(self) -> str | None:
        """Name the database that it is in, however that is reached; None for a file."""

    def read(self) -> Sighting | None:
        """Return what was seen last, or None if there is no such witness."""

    def advance(self, sighting: Sighting) -> Sighting:
        """Note a sighting, durably, unless one that is farther is noted; returns the one that is on record then."""

    def replace(self, sighting: Sighting) -> None:
        """Note a sighting in the place of whatever is there."""

    def close(self) -> None: ...


class FileWitness:
    """A witness in a file of two lines of JSON, each under a MAC; the farther one counts."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._name = str(path)  # a text, as is cheapest: it is looked at before and after every release
        self._key = key
        self._lock = threading.Lock()
        self._reading, self._writing = _Explained(path, "read"), _Explained(path, "written")
        self._handle: int | None = None
        self._identity = (0, 0)  # of the file that is open: its device and inode
        self._parsed: tuple[bytes, list[Sighting | None]] = b"", [None] * _N_SLOTS

    @property
    def location(self) -> str:
        return str(self._path.absolute())

    def database(self) -> None:
        """Return None: it is a file."""

    def read(self) -> Sighting | None:
        with self._lock, self._reading:
            if not self._open():
                return None
            self._check_in_place()
            with self._locked(fcntl.LOCK_SH) as handle:
                return self._newest(self._slots(handle))

    def advance(self, sighting: Sighting) -> Sighting:
        with self._lock, self._writing:
            if not self._open():
                raise LedgerUnavailable(
                    f"{self._path} is missing; the artifact must be able to remember its ledger"
                )
            with self._locked(fcntl.LOCK_EX) as handle:
                slots = self._slots(handle)
                newest = self._newest(slots)
                sighting = sighting.knowing(newest)
                noted = sighting if _is_farther(sighting, newest) else newest
                # Keys are remembered also by whoever has not come as far.
                if newest.ledger == sighting.ledger and noted.keyed != sighting.keyed:
                    noted = noted._replace(keyed=sighting.keyed)
                if noted != newest:
                    self._put(handle, noted, min(range(_N_SLOTS), key=lambda i: _rank(slots[i])))
                    newest = noted
                os.fdatasync(handle)  # also what another process has just written
                self._check_in_place()  # or nobody will read it
            return newest

    def replace(self, sighting: Sighting) -> None:
        with self._lock, self._writing:
            remove_drafts(self._path)
            if self._open():
                self._check_in_place()
                with self._locked(fcntl.LOCK_EX) as handle:  # nobody notes anything meanwhile
                    self._check_unused(self._slots(handle), sighting)
                    self._write(sighting)
            else:
                self._write(sighting)
            self._release()

    def _write(self, sighting: Sighting) -> None:
        write_whole(self._path, self._line(sighting) + b" " * (_SLOT - 1) + b"\n", PRIVATE)

    def _check_unused(self, slots: list[Sighting | None], sighting: Sighting) -> None:
        newest = max(slots, key=_rank)
        if newest is not None and newest.ledger == sighting.ledger and newest.sequence > sighting.sequence:
            raise LedgerConflict(
                f"{self._path} was written meanwhile: the deployment is in use. Stop whatever serves it, and try again"
            )

    def close(self) -> None:
        with self._lock:
            self._release()

    def _open(self) -> bool:
        """Open the file, unless it is open; False if there is none."""
        if self._handle is None:
            try:
                self._handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
            self._identity = _identify(os.fstat(self._handle))
        return True

    def _check_in_place(self) -> None:
        """Refuse to go on with a file that was taken away."""
        try:
            there = _identify(os.stat(self._name))  # noqa: PTH116
        except FileNotFoundError:
            there = None
        if there != self._identity:
            raise LedgerConflict(
                f"{self._path} was removed or replaced while the ledger was in use: another process may go on with "
                "this deployment. Nothing is released: find out who did that, and start again"
            )

    def _release(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
        self._handle = None

    def _locked(self, how: int) -> "_Locked":
        assert self._handle is not None  # noqa: S101  # for the type checker: the file was opened
        return _Locked(self._handle, how)

    def _slots(self, handle: int) -> list[Sighting | None]:
        data = os.pread(handle, _N_SLOTS * _SLOT, 0)
        if data != self._parsed[0]:
            self._parsed = data, [self._parse(data[i * _SLOT : (i + 1) * _SLOT]) for i in range(_N_SLOTS)]
        return self._parsed[1]

    def _put(self, handle: int, sighting: Sighting, place: int) -> None:
        """Write a slot, and remember what it says: whoever reads the same bytes again need not check their MAC."""
        data, slots = self._parsed
        line, start, end = self._line(sighting), place * _SLOT, (place + 1) * _SLOT
        os.pwrite(handle, line, start)
        self._parsed = data[:start] + line + data[end:], [*slots[:place], sighting, *slots[place + 1 :]]

    def _newest(self, slots: list[Sighting | None]) -> Sighting:
        newest = max(slots, key=_rank)
        if newest is None:
            raise LedgerDamaged(
                f"{self._path} is damaged: it does not say which ledger this artifact was served with. Restore it, or "
                "see `pacpredict ledger moved --help`"
            )
        return newest

    def _line(self, sighting: Sighting) -> bytes:
        ledger, kind, location, place, sequence, chain, anchor, verified, keyed = sighting
        before, between = _names(ledger, kind, location, place, anchor, keyed)
        text = f'{before}, "chain": "{chain}", {between}, "sequence": {sequence}, "verified": {verified}}}'
        line = f'{text[:-1]}, "mac": "{self._mac(text)}"}}'.encode()
        if len(line) >= _SLOT:
            raise LedgerUnavailable(
                f"{self._path} cannot hold the name of a place that long; choose a shorter one"
            )
        return line.ljust(_SLOT - 1) + b"\n"

    def _parse(self, line: bytes) -> Sighting | None:
        """Return what a line says if its MAC is right; anything else is a write that was cut off."""
        try:
            values = json.loads(line)
            written = values.pop("mac")
            is_right = hmac.compare_digest(self._mac(_write_json(values)), written)
            return Sighting(**values) if is_right else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def _mac(self, text: str) -> str:
        return mac(self._key, text.encode()).hex()


class _Explained:
    """Says of what the operating system refuses what it means for a ledger."""

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what

    def __enter__(self) -> None:
        """Wait for problems."""

    def __exit__(self, _: object, problem: BaseException | None, __: object) -> None:
        if isinstance(problem, OSError):
            raise LedgerUnavailable(
                f"{self._path} cannot be {self._what} ({problem.strerror}); no answer leaves that the artifact cannot "
                "remember"
            ) from problem


class _Locked:
    """A file that no other process uses, or writes to, meanwhile."""

    def __init__(self, handle: int, how: int) -> None:
        self._handle, self._how = handle, how

    def __enter__(self) -> int:
        fcntl.flock(self._handle, self._how)
        return self._handle

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_UN)


@lru_cache(maxsize=8)
def _names(
    ledger: str, kind: str, location: str, place: str, anchor: str | None, keyed: bool
) -> tuple[str, str]:
    """Write as JSON what stays the same from release to release: what comes before the chain, and what behind it."""
    behind = {"keyed": keyed, "kind": kind, "ledger": ledger, "location": location, "place": place}
    return _write_json({"anchor": anchor})[:-1], _write_json(behind)[1:-1]


def _identify(file: os.stat_result) -> tuple[int, int]:
    return file.st_dev, file.st_ino


def _is_farther(sighting: Sighting, newest: Sighting) -> bool:
    """Tell whether there is something to note: never backwards, and nothing of another ledger."""
    is_same = newest.ledger == sighting.ledger and _rank(newest) <= _rank(sighting)
    return (
        is_same
        and newest != sighting
        and (newest.sequence < sighting.sequence or newest.chain == sighting.chain)
    )


def _rank(sighting: Sighting | None) -> tuple[int, int, bool, bool]:
    """Order sightings; of two of one moment, the one that knows of an anchor, or of keys, came later."""
    if sighting is None:
        return -1, -1, False, False
    return sighting.sequence, sighting.verified, sighting.anchor is not None, sighting.keyed
