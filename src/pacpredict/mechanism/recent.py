"""The latest answers of a session: a turn need not look up in the ledger what the session has just put there."""

from collections.abc import Callable, Collection, Iterable

from pacpredict.mechanism.ledger import Answer, Entry
from pacpredict.mechanism.question import Request

Recall = Callable[[Collection[bytes]], dict[bytes, Answer]]

# Answers of a generation; two of them are kept. Requests that wait for a turn are as old as a few turns.
_MOST = 4096


class Recent:
    """Remembers what was answered from some release on, as long as nobody else goes on with the history."""

    def __init__(self, sequence: int) -> None:
        self.begin(sequence)

    def begin(self, sequence: int) -> None:
        """Know nothing of what was released up to this number, by whomever."""
        self._since = self._since_new = sequence
        self._old: dict[bytes, Answer] = {}
        self._new: dict[bytes, Answer] = {}

    def add(self, entries: Iterable[Entry]) -> None:
        """Remember what was committed, right after all that was remembered before."""
        for entry in entries:
            if entry.digest is not None and entry.label is not None:
                self._new[entry.digest] = Answer(entry.sequence, entry.label, entry.charged_steps)
            if len(self._new) >= _MOST:
                self._old, self._since = self._new, self._since_new
                self._new, self._since_new = {}, entry.sequence

    def look_up(self, requests: Iterable[Request], sequence: int, recall: Recall) -> dict[bytes, Answer]:
        """Return, in a turn after this number of releases, what these requests repeat.

        What may have been answered before anything that is remembered is looked up in the ledger, with `recall`.
        """
        known: dict[bytes, Answer] = {}
        lately, before = set[bytes](), set[bytes]()
        for request in requests:
            known.update(request.known.answers)
            as_of = request.known.as_of
            if as_of != sequence:  # something was released since it was looked up
                unsure = lately if as_of >= self._since else before
                unsure.update(digest for digest in request.digests if digest is not None)
        for remembered in (self._old, self._new):
            known.update({digest: remembered[digest] for digest in lately & remembered.keys()})
        if before := before - known.keys():
            known |= recall(before)
        return known
