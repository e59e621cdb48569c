"""A ledger under the eyes of its witnesses: what they have seen it must contain, and no answer leaves unseen."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Self

from pacpredict.exceptions import ForeignLedger, LedgerConflict, LedgerDamaged, LedgerUnavailable
from pacpredict.ledger.sql import Link, SqlLedger
from pacpredict.ledger.witness import Sighting, Witness
from pacpredict.mechanism.allowance import Allowance
from pacpredict.mechanism.ledger import Answer, Entry, State

# Records that are checked each time that a server looks: one page, a few milliseconds of every second.
_PATROLLED = 500
# Records that were never checked may become this many while a server has much to answer; half of what is checked at the
# next opening. Beyond, it checks as many as come.
_MOST_UNCHECKED = 50_000


class WitnessedLedger:
    """Implements the protocol of `mechanism.ledger` on top of a ledger in a database.

    All witnesses note what is released before it is shown; up to `sighting` they have. The first of them is near.
    """

    def __init__(self, ledger: SqlLedger, witnesses: Sequence[Witness], sighting: Sighting) -> None:
        self.ledger = ledger
        self._witnesses = witnesses
        self._sighting = sighting
        self._confirmed = sighting.sequence
        self._looked_at = -1
        self._patrolled = 0  # how far the round has come that checks records once more
        self._come_to = sighting.sequence  # when the last patrol was
        self._damage: str | None = None  # what the patrol has found

    def turn(self) -> AbstractContextManager[object]:
        self._check_undamaged()
        return self.ledger.turn(self._look)

    def load(self) -> State | None:
        return self.ledger.load()

    def recall(self, digests: Collection[bytes]) -> dict[bytes, Answer]:
        return self.ledger.recall(digests)

    def request(self, request: bytes) -> bytes | None:
        return self.ledger.request(request)

    def allowances(self, clients: Collection[str]) -> dict[str, Allowance]:
        return self.ledger.allowances(clients)

    def commit(self, entries: Sequence[Entry], state: State) -> None:
        self.ledger.commit(entries, state)

    def confirm(self, sequence: int) -> None:
        if sequence <= self._confirmed:
            return
        if self.ledger.seen.sequence < sequence:  # another process has released it, and was not seen doing so
            self.ledger.head()
        self._note(self.ledger.seen)

    def keep_up(self) -> None:
        """See, and note, how far others have come: whoever does so now and then notices a ledger that goes back.

        On the way some older records are checked.
        """
        self.ledger.keep_up()
        self._check_undamaged()
        self._patrol()
        self._note(self.ledger.seen)

    def check(self) -> None:
        self._check_undamaged()
        self.ledger.check()
        self._note(self.ledger.seen)

    @property
    def was_keyed(self) -> bool:
        """Whether clients ever had keys, whatever the database says now."""
        return self._sighting.keyed

    def note_keys(self) -> None:
        """Note that there are keys, where whoever can write to the database alone does not reach."""
        if not self.was_keyed:
            self._sighting = self._sighting._replace(keyed=True)
            self._note(self.ledger.seen)

    def entries(self) -> Iterator[Entry]:
        return self.ledger.entries()

    def close(self) -> None:
        for witness in self._witnesses:
            witness.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"WitnessedLedger({self.ledger!r})"

    def _patrol(self) -> None:
        """Check some more records: those first that nobody has checked yet, then older ones, round after round."""
        come_to, verified = self.ledger.seen.sequence, self._sighting.verified
        left = _PATROLLED
        if come_to - verified > _MOST_UNCHECKED:
            left += come_to - self._come_to
        try:
            if verified < come_to:
                now = self.ledger.check_links(verified, left)
                self._sighting, left = self._sighting._replace(verified=now), left - (now - verified)
            if left > 0:
                start = self._patrolled if self._patrolled < come_to else 0
                self._patrolled = self.ledger.check_links(start, left)
        except LedgerDamaged as problem:
            self._damage = str(problem)
            raise
        self._come_to = come_to

    def _check_undamaged(self) -> None:
        """Go on refusing: what was found once is not looked at in every turn."""
        if self._damage is not None:
            raise LedgerDamaged(self._damage)

    def _look(self) -> None:
        """Compare with what was seen: near by in every turn, elsewhere when the connection is new."""
        is_new = self._looked_at != self.ledger.n_connections
        for witness in self._witnesses if is_new else self._witnesses[:1]:
            seen = witness.read()
            if seen is None:
                raise LedgerConflict(f"{witness.location} is missing. Nothing was released: bring it back")
            self._check_seen(seen)
        self._looked_at = self.ledger.n_connections

    def _note(self, link: Link) -> None:
        self._looked_at = -1  # if one of them cannot be reached, the next turn finds that out before it draws
        for witness in self._witnesses:
            noted = witness.advance(self._sighting.at(link))
            if noted.sequence < link.sequence:
                raise LedgerUnavailable(
                    f"{witness.location} does not keep what it is told, and no answer leaves that it cannot remember"
                )
            self._check_seen(noted)
        self._looked_at = self.ledger.n_connections
        self._confirmed = max(self._confirmed, link.sequence)

    def _check_seen(self, seen: Sighting) -> None:
        if seen.ledger != self.ledger.id:
            raise ForeignLedger(
                f"this deployment goes on with another ledger, at {seen.location}. Nothing was released: start again"
            )
        if seen.link != self.ledger.seen:
            self.ledger.check_contains(seen.link)


def check_sighting(ledger: SqlLedger, seen: Sighting, *, may_be_elsewhere: bool = False) -> None:
    """Refuse a ledger that is not the one that was seen, is a copy of it, or has not come as far."""
    ledger.check_is_here(ledger.head())
    before = f"this artifact was served with the ledger at {seen.location} with {seen.sequence} releases"
    if ledger.id != seen.ledger:
        raise ForeignLedger(
            f"{before}; the one at {ledger.location} is another. Continue with the first, or move it here"
        )
    if ledger.head().sequence < seen.sequence:
        raise LedgerConflict(
            f"{before}; the one at {ledger.location} has {ledger.head().sequence}: it is an older copy. What it has "
            "forgotten was released all the same: bring back the latest"
        )
    ledger.check_contains(seen.link)
    # A file may be reached by other names. A database may not: a clone of its server has all its numbers.
    is_here = ledger.kind == "sqlite" or ledger.location == seen.location
    if seen.place and not (is_here and seen.place == ledger.place) and not may_be_elsewhere:
        raise LedgerConflict(
            f"{before}; the one at {ledger.location} may be a copy of it ({ledger.place}, it was {seen.place}). Two "
            "copies would spend the budget twice. If this is the only one, because it was moved, restored or failed "
            "over, say so: `pacpredict ledger moved`"
        )
