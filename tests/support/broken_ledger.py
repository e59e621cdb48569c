"""A ledger that fails on demand, for tests."""

from pacpredict.exceptions import LedgerError
from pacpredict.mechanism.ledger import MemoryLedger


class BrokenLedger(MemoryLedger):
    """Fails where it is told to: at the "turn", "before" or "after" the commit, or when it should "confirm"."""

    fails = None

    def turn(self):
        self._fail_at("turn")
        return super().turn()

    def commit(self, entries, state):
        self._fail_at("before")
        super().commit(entries, state)
        self._fail_at("after")

    def confirm(self, sequence):
        self._fail_at("confirm")

    def check(self):
        self._fail_at("check")
        super().check()

    def _fail_at(self, step):
        if self.fails == step:
            raise LedgerError(f"lost: {step}")
