from pacpredict.mechanism.ledger import MemoryLedger

L = {}


class M(MemoryLedger):
    def close(self):
        pass


def create_ledger(home, identity):
    return L.setdefault(identity, M())


def open_ledger(home, identity, url=None):
    return L[identity]
