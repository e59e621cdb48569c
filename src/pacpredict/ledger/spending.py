"""How a budget was spent over time, from a few records of a history that may have millions."""

from datetime import datetime
from typing import NamedTuple

from pacpredict.ledger.sql import SqlLedger

# Beyond this many, the records that were looked at are forgotten and read again.
_MOST_KEPT = 4096


class Spent(NamedTuple):
    """What was spent by a time, in charged steps, and after how many releases."""

    time: str  # UTC, ISO 8601
    sequence: int
    steps: int


class Course:
    """The course of a ledger's spending. It may be asked again and again: no record is read twice."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger
        self._known: dict[int, Spent] = {}

    def points(self, most: int) -> list[Spent]:
        """Return the first release, the last, and some between them at equal distances; at most so many in all."""
        n = self._ledger.head().sequence
        if not n:
            return []
        distance = 1
        while n // distance > most - 2:  # powers of two: as a history grows, most points stay where they are
            distance *= 2
        wanted = sorted({1, *range(distance, n, distance), n})
        return [self._at(number) for number in wanted]

    def before(self, moment: datetime) -> Spent | None:
        """Return the last release before a moment; times of a ledger do not go back by more than clocks do."""
        low, high = 0, self._ledger.head().sequence
        while low < high:
            middle = (low + high + 1) // 2
            if datetime.fromisoformat(self._at(middle).time) < moment:
                low = middle
            else:
                high = middle - 1
        return self._at(low) if low else None

    def _at(self, number: int) -> Spent:
        known = self._known  # replaced, never emptied: several threads may ask
        if number not in known:
            if len(known) >= _MOST_KEPT:
                known = self._known = {}
            (record,) = self._ledger.records(after=number - 1, until=number)
            known[number] = Spent(record.time, record.entry.sequence, record.spent_steps)
        return known[number]
