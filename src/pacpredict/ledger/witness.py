"""An artifact remembers its ledger, so that a missing, older or exchanged one is noticed.

A ledger cannot tell that it is an old copy of itself. The file `witness.json` in the artifact's directory says which
ledger the artifact was served with and how far that ledger had come. It is written after commits, at most once a
second, so a ledger that is all right is never behind it.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from pacpredict.ensemble.artifact.artifact import WITNESS
from pacpredict.ensemble.artifact.files import PRIVATE, as_json, remove_drafts, write_whole
from pacpredict.exceptions import ForeignLedger, LedgerConflict, LedgerDamaged, LedgerError, LedgerUnavailable
from pacpredict.ledger.closing import Closing
from pacpredict.ledger.records import first_link
from pacpredict.ledger.sql import SqlLedger
from pacpredict.mechanism.ledger import NO_REQUESTS, Answer, Entry, State

_INTERVAL_S = 1.0
_log = logging.getLogger(__name__)


class Sighting(NamedTuple):
    """Which ledger was seen, where, and how far it had come."""

    ledger: str
    kind: str
    location: str
    sequence: int
    chain: str


class Witness:
    """The file that remembers."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / WITNESS

    def read(self) -> Sighting | None:
        """Return what was seen last, or None if the artifact was never served."""
        try:
            found = json.loads(self._path.read_bytes())
            seen = Sighting(**{name: kind(found[name]) for name, kind in Sighting.__annotations__.items()})
            bytes.fromhex(seen.chain)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise LedgerUnavailable(f"{self._path} cannot be read ({problem.strerror})") from problem
        except (ValueError, KeyError, TypeError) as problem:
            raise LedgerDamaged(
                f"{self._path} is damaged: it does not say which ledger this artifact was served with. Restore it; "
                "remove it only if you are sure that the ledger is the latest"
            ) from problem
        return seen

    def write(self, ledger: SqlLedger) -> None:
        """Note how far a ledger has come, unless another process has seen it farther."""
        head, seen = ledger.head(), self.read()
        sequence = head.sequence or 0
        if seen is not None and seen.ledger == ledger.id and seen.sequence > sequence:
            return
        sighting = Sighting(ledger.id, ledger.kind, ledger.location, sequence, head.chain.hex())
        try:
            write_whole(self._path, as_json(sighting._asdict()), PRIVATE)
        except OSError as problem:
            raise LedgerUnavailable(
                f"{self._path} cannot be written ({problem.strerror}); the artifact must be able to remember its ledger"
            ) from problem

    def check(self, ledger: SqlLedger, seen: Sighting) -> None:
        """Refuse a ledger that is not the one that was seen, or has not come as far."""
        head, before = ledger.head(), f"the ledger at {seen.location} with {seen.sequence} releases"
        if head.moved_to is not None:
            raise LedgerConflict(
                f"the ledger at {ledger.location} is continued at {head.moved_to}: use that one"
            )
        if ledger.id != seen.ledger:
            raise ForeignLedger(
                f"this artifact was served with {before}; the one at {ledger.location} is another. Continue with "
                "the first, or move it here"
            )
        if (head.sequence or 0) < seen.sequence:
            raise LedgerConflict(
                f"this artifact was served with {before}; the one at {ledger.location} has {head.sequence or 0}: it is "
                "an older copy. What it has forgotten was released all the same: bring back the latest"
            )
        chain = ledger.chain_at(seen.sequence) or first_link(head.ledger, head.deployment)
        if chain.hex() != seen.chain:
            raise LedgerConflict(
                f"this artifact was served with {before}; the one at {ledger.location} tells another history from "
                "some release on: two copies were in use, or records were changed. Bring back the one that was seen"
            )

    def forget_drafts(self) -> None:
        remove_drafts(self._path)


class WitnessedLedger(Closing):
    """A ledger whose progress is noted beside the artifact."""

    def __init__(self, ledger: SqlLedger, witness: Witness) -> None:
        self.ledger = ledger
        self._witness = witness
        self._noted_at = time.monotonic()
        witness.write(ledger)

    def turn(self) -> AbstractContextManager[object]:
        return self.ledger.turn()

    def load(self) -> State | None:
        return self.ledger.load()

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        return self.ledger.recall(digests)

    def request(self, request_id: str) -> bytes | None:
        return self.ledger.request(request_id)

    def commit(
        self, entries: Sequence[Entry], state: State, requests: Mapping[str, bytes] = NO_REQUESTS
    ) -> None:
        self.ledger.commit(entries, state, requests)
        if time.monotonic() - self._noted_at >= _INTERVAL_S:
            self._note()

    def entries(self) -> Iterator[Entry]:
        return self.ledger.entries()

    def close(self) -> None:
        self._note()
        self.ledger.close()

    def __repr__(self) -> str:
        return f"WitnessedLedger({self.ledger!r})"

    def _note(self) -> None:
        """Write the witness; a release that is on record is answered even if this fails."""
        self._noted_at = time.monotonic()
        try:
            self._witness.write(self.ledger)
        except LedgerError as problem:
            _log.warning("the artifact could not note how far its ledger has come: %s", problem)


def open_witnessed(directory: Path, connect: Callable[[bool], SqlLedger]) -> WitnessedLedger:
    """Open the ledger of an artifact; it is created only if the artifact was never served.

    `connect` opens the ledger, and creates a missing one if its argument is true.
    """
    witness = Witness(directory)
    seen = witness.read()
    try:
        ledger = connect(seen is None)
    except LedgerUnavailable as problem:
        if seen is None:
            raise
        raise LedgerUnavailable(
            f"{problem}. This artifact was served with the ledger at {seen.location} ({seen.sequence} releases)"
        ) from problem
    try:
        if seen is not None:
            witness.check(ledger, seen)
        witness.forget_drafts()
        return WitnessedLedger(ledger, witness)
    except BaseException:
        ledger.close()
        raise
