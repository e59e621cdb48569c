"""Does a ledger say what happened? Replay its chain, its spending and its belief, and compare every bit."""

from collections.abc import Iterator
from typing import NamedTuple

from pacpredict.core.belief import Belief
from pacpredict.core.validate import FloatArray
from pacpredict.exceptions import LedgerConflict, LedgerDamaged, LedgerError
from pacpredict.ledger.records import Record, first_link, next_link
from pacpredict.ledger.sql import Head, SqlLedger
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Entry, State
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.resume import describe_origin


class Verification(NamedTuple):
    """What was checked, and found to be true."""

    ledger: str
    location: str
    releases: int  # numbered without a gap and chained without a break
    contested: int  # replayed to the same belief, bit for bit
    spent_nats: float  # the sum of all charges, which every record states rightly
    total_nats: float  # and which is not more than this
    chain: str  # stands for the whole history: who wrote it down earlier can see that it was continued


def verify(ledger: SqlLedger, n_classes: int, budget: Budget, prior: Belief) -> Verification:
    """Check a ledger from its first record to its state; raises LedgerDamaged with what is wrong, and where.

    What is committed meanwhile is not looked at, and nobody has to wait.
    """
    head, state = _snapshot(ledger)
    if state is None:
        return Verification(ledger.id, ledger.location, 0, 0, 0.0, budget.total, head.chain.hex())
    if (state.step, state.origin) != (budget.step, describe_origin(prior, n_classes)):
        raise LedgerConflict(
            f"the ledger at {ledger.location} was begun with another step budget, prior or number of classes"
        )
    try:
        replayed = replay(_checked(ledger, head), n_classes, budget.step, prior)
    except LedgerDamaged:
        raise
    except LedgerError as problem:
        raise _damaged(ledger, str(problem)) from problem
    _compare(ledger, replayed, state)
    if state.spent_steps > budget.total_steps:
        raise _damaged(ledger, f"{budget.nats(state.spent_steps):g} nats are spent, of {budget.total:g}")
    return Verification(
        ledger.id,
        ledger.location,
        state.sequence,
        state.contested,
        budget.nats(state.spent_steps),
        budget.total,
        head.chain.hex(),
    )


def _snapshot(ledger: SqlLedger) -> tuple[Head, State | None]:
    """Read where the ledger stands and its state, of the same moment."""
    while True:
        head, state = ledger.head(), ledger.load()
        if head == ledger.head():
            return head, state


def _checked(ledger: SqlLedger, head: Head) -> Iterator[Entry]:
    """Yield the entries up to the head, each after what can be checked without the mathematics."""
    link, spent, last = first_link(head.ledger, head.deployment), 0, 0
    for record in ledger.records(until=head.sequence):
        entry = record.entry
        if entry.sequence != last + 1:
            raise _damaged(
                ledger, f"record {entry.sequence} follows record {last}; what was between is missing"
            )
        link, spent, last = next_link(link, record), spent + entry.charged_steps, entry.sequence
        _check_record(ledger, record, link, spent)
        yield entry
    if last != head.sequence:
        raise _damaged(ledger, f"it is truncated: its records end at {last}, its state is at {head.sequence}")
    if link != head.chain:
        raise _damaged(ledger, f"its state does not belong to record {last}, the last one")


def _check_record(ledger: SqlLedger, record: Record, link: bytes, spent: int) -> None:
    entry = record.entry
    if record.chain != link:
        raise _damaged(
            ledger, f"the chain is broken at record {entry.sequence}: it, or a record before it, was changed"
        )
    if record.spent_steps != spent:
        raise _damaged(
            ledger,
            f"record {entry.sequence} says that {record.spent_steps} steps are spent by then; it is {spent}",
        )
    if (entry.question is None) != (entry.noisy is None):
        raise _damaged(ledger, f"record {entry.sequence} has a question without a release, or the reverse")
    if entry.charged_steps != 1 and (entry.charged_steps != 0 or entry.question is not None):
        raise _damaged(ledger, f"record {entry.sequence} was charged {entry.charged_steps} steps")


def _compare(ledger: SqlLedger, replayed: State, state: State) -> None:
    if (replayed.contested, replayed.spent_steps) != (state.contested, state.spent_steps):
        raise _damaged(
            ledger,
            f"its records make {replayed.contested} contested releases and {replayed.spent_steps} charged steps, "
            f"its state says {state.contested} and {state.spent_steps}",
        )
    if _bits(replayed.log_belief) != _bits(state.log_belief):
        raise _damaged(ledger, "the belief that its records imply is not the one in its state")


def _bits(belief: FloatArray) -> bytes:
    return belief.astype("<f8").tobytes()


def _damaged(ledger: SqlLedger, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the ledger at {ledger.location} is damaged: {what}. Restore the latest backup; until then nothing should "
        "be released"
    )
