"""Where a deployment keeps its ledger and its witness, and the acts of an owner who takes them elsewhere."""

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pacpredict.exceptions import (
    InvalidInput,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    MissingExtra,
)
from pacpredict.files import remove_drafts
from pacpredict.ledger.anchor import open_anchor
from pacpredict.ledger.backup import restore
from pacpredict.ledger.sql import Link, SqlLedger
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.ledger.witness import FileWitness, Sighting, Witness
from pacpredict.ledger.witnessed import WitnessedLedger, check_sighting
from pacpredict.mechanism.ledger import Entry, Failpoints, State, nowhere

if TYPE_CHECKING:
    from pacpredict.ledger.postgres import PostgresLedger


# Records that were never checked, and are when a ledger is opened: as many as take a second or two. If there are more,
# a server checks them while it runs, and so does the next opening.
_CHECKED_AT_ONCE = 100_000

_UNREADABLE = "a file that cannot be read, and may be anything"


@dataclass(frozen=True)
class Home:
    """The files of one deployment, its identity, and the key of its history."""

    ledger: Path
    witness: Path
    deployment: str
    key: bytes = field(repr=False)

    def found(self, location: str, entries: Sequence[Entry] = (), state: State | None = None) -> None:
        """Put a ledger and its witness here, with the history that goes on, if one does.

        `location` is where they will be found, if this directory is still to get its name.
        """
        with SqliteLedger(self.ledger, key=self.key, deployment=self.deployment) as ledger:
            if state is not None:
                ledger.commit(entries, state)
            with closing(self._near()) as witness:
                witness.replace(_sighting(ledger)._replace(location=location))

    def open(
        self,
        url: str | None = None,
        anchor: str | None = None,
        *,
        to_look: bool = False,
        at: Failpoints = nowhere,
    ) -> WitnessedLedger:
        """Open the ledger that is here or at a URL. A missing one is never replaced by an empty one.

        Whoever opens it only `to_look` does not begin to use an anchor, which would be for good.
        """
        near = self._near()
        seen = self._seen_by(near)
        if to_look and anchor is not None and seen.anchor is None:
            raise InvalidInput(
                "this deployment has no anchor yet: `serve` or `predict` with --anchor begins to use one, for good"
            )
        with ExitStack() as opened:
            opened.callback(near.close)
            ledger = opened.enter_context(self._connect(url, at, seen))
            far = self._anchor(ledger, seen, anchor, opened)
            ledger.may_fail_over = far is not None and ledger.kind == "postgresql"
            check_sighting(ledger, seen, may_be_elsewhere=ledger.may_fail_over)
            verified = ledger.check_links(seen.verified, _CHECKED_AT_ONCE)
            witnessed = self._begin(ledger, near, far, seen, verified)
            opened.pop_all()
            return witnessed

    def begin_at(self, url: str, anchor: str | None = None) -> None:
        """Let a deployment that has answered nothing yet begin at a URL, without a move of its own."""
        if not self.ledger.exists():
            return
        with self._own() as own:
            is_new = own.head().moved_to is None and not own.head().sequence
        if is_new:
            self.move_to(url, anchor)

    def move_to(self, url: str, anchor: str | None = None) -> str:
        """Take the history from here to a PostgreSQL database; returns where it is then, without a password."""
        _postgres(url)
        from pacpredict.ledger.move import move  # noqa: PLC0415  # needs the same extra
        from pacpredict.ledger.postgres import database_at  # noqa: PLC0415

        with closing(self._near()) as near, ExitStack() as opened:
            seen = self._seen_by(near)
            own = opened.enter_context(self._own())
            if own.head().moved_to is None:  # otherwise what is still to be done of a move
                check_sighting(own, seen)
                if far := self._anchor(own, seen, anchor, opened):  # or it would be refused half-way
                    self._check_apart(far, database_at(url))
            there = opened.enter_context(move(own, url))
            there.check_contains(own.seen)
            if seen.kind == there.kind:  # the move was done: this is no other history
                check_sighting(there, seen)
            else:
                there.check_contains(seen.link)
            far = self._anchor(there, seen, anchor, opened)
            near.replace(_sighting(there, seen)._replace(anchor=None if far is None else far.location))
            return there.location

    def moved(self, url: str | None, anchor: str | None, sequence: int | None) -> Link:
        """Take the owner's word that the ledger is at another place now, and that nothing goes on at the old one.

        It must contain all that its witness has seen. Without a witness, `sequence` says how many releases were shown
        to anybody: the highest number that an answer ever carried. With that word an anchor can be replaced, too.
        """
        with closing(self._near()) as near, ExitStack() as opened:
            ledger = opened.enter_context(self._connect(url, nowhere, None))
            seen = self._believed(near, sequence)
            ledger.check_is_here(ledger.head())
            _check_word(ledger, sequence)
            if url is None:
                _check_alone(self.ledger)
            if seen is not None:
                _check_left(seen, self.ledger)
                check_sighting(ledger, seen, may_be_elsewhere=True)
            if seen is not None and sequence is not None:
                seen = self._replace_anchor(ledger, seen, anchor)
            far = self._anchor(ledger, seen, anchor, opened)
            near.replace(_sighting(ledger, seen)._replace(anchor=None if far is None else far.location))
            return ledger.seen

    def restore(self, backup: Path, anchor: str | None, sequence: int | None) -> Link:
        """Put a backup into the place of a lost ledger, if it holds all that was shown to anybody."""
        with closing(self._near()) as near, ExitStack() as opened:
            seen = self._believed(near, sequence)
            if seen is not None:
                self._check_restorable(seen)
                if seen.anchor is not None and anchor is None:
                    raise _needs_anchor(seen.anchor)
            self._check_lost(seen)
            _check_alone(self.ledger)
            link = Link(sequence or 0, b"") if seen is None or not seen.place else seen.link
            link = link._replace(sequence=max(link.sequence, seen.sequence if seen else 0, sequence or 0))
            ledger = opened.enter_context(restore(backup, self.ledger, self.key, self.deployment, link))
            far = self._anchor(ledger, seen, anchor, opened)
            near.replace(_sighting(ledger, seen)._replace(anchor=None if far is None else far.location))
            return ledger.seen

    def _seen_by(self, near: FileWitness) -> Sighting:
        seen = near.read()
        if seen is None:
            raise self._missing_witness()
        return seen

    def _believed(self, near: FileWitness, sequence: int | None) -> Sighting | None:
        """Return what was seen last; None if that is lost and the owner has said how many releases were shown."""
        try:
            seen = near.read()
        except LedgerDamaged:
            if sequence is None:
                raise
            seen = None
        if seen is None and sequence is None:
            raise self._missing_witness()
        return seen

    def _check_restorable(self, seen: Sighting) -> None:
        if seen.kind != "sqlite":
            raise LedgerConflict(
                f"the history goes on at {seen.location}, not here: restore that database by its own means"
            )
        _check_left(seen, self.ledger)

    def _begin(
        self, ledger: SqlLedger, near: FileWitness, far: Witness | None, seen: Sighting, verified: int
    ) -> WitnessedLedger:
        """Note where the ledger was found, and let it be used."""
        remove_drafts(self.witness)
        sighting = _sighting(ledger, seen)
        sighting = sighting._replace(anchor=None if far is None else far.location, verified=verified)
        near.advance(sighting)  # in place: other processes have it open, perhaps by another path
        return WitnessedLedger(ledger, [near] if far is None else [near, far], sighting)

    def _near(self) -> FileWitness:
        return FileWitness(self.witness, self.key)

    def _anchor(
        self, ledger: SqlLedger, seen: Sighting | None, where: str | None, opened: ExitStack
    ) -> Witness | None:
        """Open the anchor, and refuse to go on without one that was used, or behind it."""
        used = None if seen is None else seen.anchor
        if where is None:
            if used is not None:
                raise _needs_anchor(used)
            return None
        far = open_anchor(where, self.key, ledger.id)
        opened.callback(far.close)
        self._check_apart(far, ledger.database())
        if used not in (None, far.location):
            raise LedgerConflict(f"this deployment has its anchor at {used}, not at {far.location}")
        if used is not None and far.read() is None:
            raise LedgerConflict(
                f"the anchor at {used} is gone; is its disk mounted? Bring it back: a new one would know nothing. If "
                "it is lost, say how many releases were ever shown: `pacpredict ledger moved --sequence N --anchor NEW`"
            )
        _note_farther(far, ledger, _sighting(ledger, seen))
        return far

    def _check_apart(self, far: Witness, database: str | None) -> None:
        """Refuse an anchor that would be turned back together with what it watches, the ledger in this database."""
        is_beside = database is not None and far.database() == database
        if is_beside or self.witness.parent.resolve() in Path(far.location).resolve().parents:
            raise InvalidInput(
                f"an anchor at {far.location} would be turned back with the artifact, or with its ledger: choose "
                "another disk, or another database"
            )

    def _replace_anchor(self, ledger: SqlLedger, seen: Sighting, where: str | None) -> Sighting:
        """Let an owner who has said how many releases were shown take another anchor; returns what was seen without it.

        One that is still there must not have seen more than the ledger has. None may be given up for nothing.
        """
        if seen.anchor is None or where is None:
            return seen
        with suppress(LedgerUnavailable), closing(open_anchor(seen.anchor, self.key, ledger.id)) as used:
            if (farther := used.read()) is not None:
                check_sighting(ledger, farther, may_be_elsewhere=True)
        return seen._replace(anchor=None)

    def _own(self) -> SqliteLedger:
        return SqliteLedger(self.ledger, key=self.key, deployment=self.deployment, create=False)

    def _connect(self, url: str | None, at: Failpoints, seen: Sighting | None) -> SqlLedger:
        try:
            if url is None:
                return SqliteLedger(
                    self.ledger, key=self.key, deployment=self.deployment, create=False, at=at
                )
            return _postgres(url)(url, key=self.key, deployment=self.deployment, create=False, at=at)
        except LedgerUnavailable as problem:
            if seen is None:
                raise
            raise LedgerUnavailable(
                f"{problem}. This artifact was served with the ledger at {seen.location} ({seen.sequence} releases)"
            ) from problem

    def _check_lost(self, seen: Sighting | None) -> None:
        """Refuse to replace a ledger that is whole and complete."""
        try:
            with self._own() as own:
                sequence = own.head().sequence
                own.check_links(0)
                if seen is not None and seen.place:
                    own.check_contains(seen.link)
        except LedgerError:
            return
        raise InvalidInput(
            f"the ledger at {self.ledger} is whole, with {sequence} releases: there is nothing to restore"
        )

    def _missing_witness(self) -> LedgerConflict:
        return LedgerConflict(
            f"{self.witness} is missing, so nobody knows how far the ledger had come. Bring it back; if it is lost, "
            "say how many releases were ever shown: `pacpredict ledger moved --sequence N`"
        )


def _needs_anchor(where: str) -> LedgerConflict:
    return LedgerConflict(
        f"this deployment has an anchor at {where}: give it (--anchor). Without it nobody notices that artifact and "
        "ledger are both old"
    )


def _sighting(ledger: SqlLedger, before: Sighting | None = None) -> Sighting:
    """Say what a ledger is now; that there were keys is never forgotten."""
    sequence, chain = ledger.seen
    keyed = ledger.has_keys() or (before is not None and before.keyed)
    return Sighting(ledger.id, ledger.kind, ledger.location, ledger.place, sequence, chain.hex(), keyed=keyed)


def _note_farther(far: Witness, ledger: SqlLedger, sighting: Sighting) -> None:
    """Let the anchor see the ledger, and refuse one that lacks what the anchor has seen."""
    seen = far.read()
    if seen is not None:
        check_sighting(ledger, seen, may_be_elsewhere=True)
        far.advance(sighting)
    else:
        far.replace(sighting)


def _check_word(ledger: SqlLedger, sequence: int | None) -> None:
    if sequence is not None and sequence < 0:
        raise InvalidInput(f"a number of releases is at least 0, got {sequence}")
    if sequence is not None and ledger.head().sequence < sequence:
        raise LedgerConflict(
            f"the ledger at {ledger.location} has {ledger.head().sequence} releases, and {sequence} were shown: what "
            "it lacks was released all the same. Bring back the latest"
        )


def _check_left(seen: Sighting, here: Path) -> None:
    """Refuse to leave a place where the same ledger can still be used."""
    old = Path(seen.location)
    if seen.kind != "sqlite" or not old.is_file() or old.parent.samefile(here.parent):
        return
    if _ledger_id(old) not in (seen.ledger, _UNREADABLE):
        return
    raise LedgerConflict(
        f"the ledger that this one is a copy of is still at {old}. Two copies would spend the budget twice: serve "
        "that one, or remove it first"
    )


def _check_alone(ledger: Path) -> None:
    """Refuse a file that has another name in another directory: SQLite would keep another log beside that one."""
    if ledger.exists() and ledger.stat().st_nlink > 1:
        raise LedgerConflict(
            f"the ledger at {ledger} is the same file as another one, by a hard link. Whoever uses that one has a "
            "history of their own: remove it, or copy the directory without links"
        )


def _ledger_id(path: Path) -> str | None:
    """Read whose ledger a file is, without its key."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
            found = database.execute("SELECT ledger FROM state WHERE moved_to IS NULL").fetchall()
    except sqlite3.Error:
        return _UNREADABLE
    return str(found[0][0]) if found else None


def _postgres(url: str) -> "type[PostgresLedger]":
    if not url.startswith(("postgresql://", "postgres://")):
        raise InvalidInput(
            f"a ledger is at a URL like postgresql://user@host/database, not at {url.split(':', maxsplit=1)[0]}:..."
        )
    try:
        from pacpredict.ledger.postgres import PostgresLedger  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("postgres", "a ledger in PostgreSQL") from problem
    return PostgresLedger
