"""The one row that says whose ledger this is and where it stands, under a MAC.

Nothing of it is believed before the MAC was found right: a changed total, belief or spending, a mark that was taken
away, an identity that was exchanged are all noticed when the row is read, which is in every turn.
"""

import hmac
import struct
from typing import Any, NamedTuple

import numpy as np

from pacpredict.exceptions import LedgerDamaged
from pacpredict.ledger.records import as_bytes, field, mac
from pacpredict.mechanism.ledger import State

# The order of the columns in every statement about this row.
COLUMNS = (
    "ledger", "deployment", "created", "moved_to", "chain", "sequence", "contested", "spent_steps", "step", "total",
    "origin", "secret", "log_belief", "noisy", "mac",
)  # fmt: skip

_FORMAT = b"pacpredict ledger, state of format 3"
_NUMBER = struct.Struct("<q")
_REAL = struct.Struct("<d")


class Head(NamedTuple):
    """Whose ledger this is and where it stands."""

    ledger: str
    deployment: str | None
    created: str
    moved_to: str | None
    chain: bytes
    state: State | None  # None before the first commit

    @property
    def sequence(self) -> int:
        return 0 if self.state is None else self.state.sequence


def to_row(key: bytes, head: Head) -> tuple[Any, ...]:
    """Return the values of the columns, the MAC among them."""
    ledger, deployment, created, moved_to, chain, state = head
    values = (ledger, deployment, created, moved_to, chain, *_state_values(state))
    return (*values, _mac_of(key, values))


def from_row(key: bytes, row: tuple[Any, ...], location: str) -> Head:
    """Check the MAC, in constant time, and return what the row says."""
    *values, stored_mac = row
    try:
        is_right = stored_mac is not None and hmac.compare_digest(_mac_of(key, tuple(values)), stored_mac)
    except (struct.error, AttributeError, TypeError):  # values of kinds that no ledger writes
        is_right = False
    if not is_right:
        raise LedgerDamaged(
            f"the state of the ledger at {location} was changed by something other than pacpredict, or belongs to "
            "another secret. Restore the latest backup; until then nothing is released"
        )
    ledger, deployment, created, moved_to, chain, *stored = values
    return Head(ledger, deployment, created, moved_to, chain, _read_state(deployment, stored))


def _state_values(state: State | None) -> tuple[Any, ...]:
    if state is None:
        return (None,) * 9
    log_belief = state.log_belief.astype("<f8", copy=False).tobytes()
    counts = state.sequence, state.contested, state.spent_steps
    return (*counts, state.step, state.total, state.origin, state.secret, log_belief, state.noisy)


def _read_state(deployment: str | None, stored: list[Any]) -> State | None:
    sequence, contested, spent, step, total, origin, secret, log_belief, noisy = stored
    if sequence is None:
        return None
    belief = np.frombuffer(log_belief, "<f8").astype(np.float64)
    return State(sequence, contested, spent, belief, step, deployment, origin, total, secret, noisy)


def _mac_of(key: bytes, values: tuple[Any, ...]) -> bytes:
    """Bind all values."""
    (
        ledger,
        deployment,
        created,
        moved_to,
        chain,
        *numbers,
        step,
        total,
        origin,
        secret,
        log_belief,
        noisy,
    ) = values
    parts = (
        *map(as_bytes, (ledger, deployment, created, moved_to)),
        chain,
        *(None if number is None else _NUMBER.pack(number) for number in numbers),
        *(None if real is None else _REAL.pack(real) for real in (step, total)),
        origin,
        secret,
        log_belief,
        None if noisy is None else _NUMBER.pack(noisy),
    )
    return mac(key, _FORMAT + b"".join(map(field, parts)))
