"""Who calls, and what that lets them do. Every route says what it needs; whatever is not allowed is refused here."""

import asyncio
import threading
from collections.abc import Sequence
from enum import Enum
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

from pacpredict.exceptions import KeyMissing, RoleMissing
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.keys import Role
from pacpredict.mechanism.allowance import Allowance

# Keys that are looked up by one statement.
_MOST_AT_ONCE = 100

Headers = Sequence[tuple[bytes, bytes]]


class Needs(Enum):
    """What a route asks of its caller: one of the roles in its value."""

    NOTHING = frozenset[Role | None](
        {None, "query", "read", "admin"}
    )  # says whether the server runs, no more
    KEY = frozenset[Role | None]({"query", "read", "admin"})
    QUERY = frozenset[Role | None]({"query", "admin"})
    READ = frozenset[Role | None]({"read", "admin"})
    ADMIN = frozenset[Role | None]({"admin"})


class Caller(NamedTuple):
    """Whose request it is. Without keys everybody is the owner, and has no name."""

    role: Role | None  # None for whoever has shown no key
    name: str | None = None  # of the key; the client in the ledger
    allowance: Allowance | None = None  # what it may still be answered, as of now


STRANGER = Caller(None)
OWNER = Caller("admin")


class Access(Protocol):
    """Decides whose request it is."""

    @property
    def unnamed(self) -> Caller:
        """Whoever calls a route that needs nothing."""

    async def identify(self, headers: Headers) -> Caller:
        """Return who calls; KeyMissing unless a valid key says so."""

    def enter(self) -> None:
        """Notice a request that begins."""

    def leave(self) -> None:
        """Notice that one has ended."""

    def start(self) -> None:
        """Begin, in the event loop that will ask."""

    def close(self) -> None:
        """End what was begun."""


class Anybody:
    """Lets everybody do everything: for servers that only this machine reaches, or whose owner wants it so."""

    unnamed = OWNER

    async def identify(self, headers: Headers) -> Caller:  # noqa: ARG002
        return OWNER

    def enter(self) -> None:
        """Need nothing."""

    def leave(self) -> None:
        """Need nothing."""

    def start(self) -> None:
        """Need nothing."""

    def close(self) -> None:
        """Need nothing."""


class Keyed:
    """Knows callers by their keys, as the database has them at that moment: a key that was revoked is unknown at once.

    All that are waiting are looked up with one statement, so that many callers need hardly more than one. If the
    database is a file, those that came together are looked up between two turns of the event loop, and whoever is
    alone right away: going to a thread and back would take longer. A database elsewhere is asked by a thread.
    """

    unnamed = STRANGER

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._n_inside = 0
        self._together: list[_Waiting] = []  # that came in this turn of the event loop
        self._waiting: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._loop: asyncio.AbstractEventLoop

    def enter(self) -> None:
        self._n_inside += 1

    def leave(self) -> None:
        self._n_inside -= 1

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join()

    async def identify(self, headers: Headers) -> Caller:
        waiting = _Waiting(read_token(headers), self._loop.create_future())
        if not self._keyring.is_near:
            self._waiting.put(waiting)
        else:
            self._together.append(waiting)
            if self._n_inside == 1:
                self._look_up()
            elif len(self._together) == 1:
                self._loop.call_soon(self._look_up)
        return await waiting.future

    def _look_up(self) -> None:
        group, self._together = self._together, []
        for start in range(0, len(group), _MOST_AT_ONCE):
            part = group[start : start + _MOST_AT_ONCE]
            _resolve(part, self._identify([each.token for each in part]))

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            group = [first]
            while len(group) < _MOST_AT_ONCE:
                try:
                    other = self._waiting.get_nowait()
                except Empty:
                    break
                if other is None:  # answer these first
                    self._waiting.put(None)
                    break
                group.append(other)
            self._loop.call_soon_threadsafe(_resolve, group, self._identify([each.token for each in group]))

    def _identify(self, tokens: Sequence[str]) -> list[Caller | Exception]:
        try:
            found = self._keyring.recognise(tokens)
        except Exception as problem:  # noqa: BLE001  # the callers get it, the thread goes on
            return [problem] * len(tokens)
        return [
            KeyMissing("this is not a valid key: it was never made, has expired or was revoked")
            if key is None
            else Caller(key.terms.role, key.terms.name, key.allowance(self._keyring.step))
            for key in found
        ]


class _Waiting(NamedTuple):
    token: str
    future: "asyncio.Future[Caller]"


def _resolve(group: Sequence[_Waiting], outcomes: Sequence[Caller | Exception]) -> None:
    for (_, future), outcome in zip(group, outcomes, strict=True):
        if future.done():  # cancelled, with its connection
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


async def admit(access: Access, needs: Needs, headers: Headers) -> Caller:
    """Return who calls a route, or refuse. A route that needs nothing looks at no key."""
    if needs is Needs.NOTHING:
        return access.unnamed
    caller = await access.identify(headers)
    if caller.role not in needs.value:
        allowed = " or ".join(sorted(role for role in needs.value if role))
        raise RoleMissing(f"a key with the role {caller.role!r} may not do this; it needs the role {allowed}")
    return caller


def read_token(headers: Headers) -> str:
    """Return the key that a request came with; KeyMissing if there is none."""
    bearers = [value for name, value in headers if name == b"authorization"]
    if len(bearers) > 1:
        raise KeyMissing("a request must not have two keys")
    if bearers:
        scheme, _, token = bearers[0].decode("latin-1").strip().partition(" ")
        if scheme.lower() != "bearer":
            raise KeyMissing("a key is sent as `Authorization: Bearer KEY`")
        return token.strip()
    raise KeyMissing(
        "this needs a key: send `Authorization: Bearer KEY`; its operator makes one with `pacpredict keys make`"
    )
