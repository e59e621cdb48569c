"""All keys of one deployment, for whoever makes them and for whoever asks whether one is valid."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from pacpredict.exceptions import InvalidInput, LedgerDamaged
from pacpredict.ledger import keys
from pacpredict.ledger.connections import Connections
from pacpredict.ledger.keys import Key, Terms
from pacpredict.ledger.sql import SqlLedger


class Keyring:
    """Looks keys up over a connection of its own: nobody who waits for the ledger keeps others from being known."""

    def __init__(self, ledger: SqlLedger, step: float, on_make: Callable[[], None] = lambda: None) -> None:
        self.step = step
        self.is_near = (
            ledger.kind == "sqlite"
        )  # to look something up takes microseconds, and waits for nobody
        self._ledger = ledger
        self._on_make = on_make  # to remember outside of the database that there are keys
        self._connections = Connections(ledger.connect)

    def make(self, terms: Terms) -> str:
        """Make a key and return it. This is the only time that it can be seen."""
        terms.check(self.step)
        token, row = keys.new_key(terms, self._ledger.key)
        with self._connections.turn() as writer:
            if keys.find_by("name", [terms.name], writer.run, self._ledger.key):
                raise InvalidInput(
                    f"there is a key {terms.name!r} already, or was: names stay in the history, so each is used once"
                )
            writer.run(keys.INSERT, row)
            writer.run(keys.INSERT_USE, (terms.name,))
            writer.commit()
        self._on_make()
        return token

    def revoke(self, name: str) -> None:
        """End a key. All servers know it with the next request."""
        with self._connections.turn() as writer:
            found = keys.find_by("name", [name], writer.run, self._ledger.key)
            if not found:
                raise InvalidInput(f"there is no key {name!r}; `pacpredict keys list` shows all")
            if found[0].revoked is None:
                writer.run(keys.REVOKE, keys.revoked(found[0], self._ledger.key))
                writer.commit()

    def all(self) -> list[Key]:
        return [keys.from_row(self._ledger.key, row) for row in self._connections.read(keys.ALL)]

    def describe(self) -> list[dict[str, Any]]:
        """Say what each key is for and what it has used, without anything that gives access."""
        return [
            {
                **key.terms._asdict(),
                "created": key.created,
                "revoked": key.revoked,
                "state": key.state,
                "used_queries": key.n_answered,
                "used_nats": key.n_steps * self.step,
            }
            for key in self.all()
        ]

    def recognise(self, tokens: Sequence[str]) -> list[Key | None]:
        """Say whose keys these are, by what the database has now; None for what is no valid key."""
        return keys.recognise(tokens, self._find)

    def check_use(self) -> None:
        """Compare what the keys are said to have used with the records of the ledger, up to the same moment."""
        rows = self._connections.read(keys.USE)
        if not rows:
            return
        counted = {
            name: (n, int(steps)) for name, n, steps in self._connections.read(keys.RECORDED, rows[0][-1:])
        }
        for name, n, steps, _ in rows:
            found = counted.get(name, (0, 0))
            if (n, steps) != found:
                raise LedgerDamaged(
                    f"the key {name!r} is said to have used {n} queries and {steps} steps, and the records say "
                    f"{found[0]} and {found[1]}: somebody has changed its count"
                )

    def close(self) -> None:
        self._connections.close()

    def _find(self, ids: Collection[str]) -> list[Key]:
        return keys.find_by("id", ids, self._connections.read, self._ledger.key)
