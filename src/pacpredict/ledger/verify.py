"""Does a ledger say what happened? Replay its chain, its spending and its belief, and compare every bit."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pacpredict.core.belief import Belief
from pacpredict.core.decode import DECODERS, Decoder
from pacpredict.core.vote_rule import VOTE_RULES, VoteRule
from pacpredict.exceptions import LedgerConflict, LedgerDamaged, LedgerError
from pacpredict.ledger.head import Head
from pacpredict.ledger.records import Record
from pacpredict.ledger.sql import SqlLedger
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Entry, Kind, State
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.resume import describe_origin
from pacpredict.types import FloatArray


class Verification(NamedTuple):
    """What was checked, and found to be true."""

    ledger: str
    location: str
    releases: int  # numbered without a gap and chained without a break
    contested: int  # replayed to the same belief, bit for bit
    spent_nats: float  # the sum of all charges, which every record states rightly
    total_nats: float  # and which is not more than this
    chain: str  # stands for the whole history: whoever wrote it down earlier can see that it was continued
    decoders: tuple[Decoder, ...] = ()  # by which contested queries were answered
    votes: tuple[VoteRule, ...] = ()  # the rules by which votes counted


def verify(ledger: SqlLedger, n_classes: int, budget: Budget, prior: Belief) -> Verification:
    """Check a ledger from its first record to its state; raises LedgerDamaged with what is wrong, and where.

    What is committed meanwhile is not looked at, and no session has to wait.
    """
    head = ledger.head()
    state = head.state
    if state is None:
        return Verification(ledger.id, ledger.location, 0, 0, 0.0, budget.total, head.chain.hex())
    if (state.step, state.origin) != (budget.step, describe_origin(prior, n_classes, budget)):
        raise LedgerConflict(
            f"the ledger at {ledger.location} was begun with another step budget, prior, number of classes, limit on "
            "odds or kind of noise"
        )
    if state.spent_steps > budget.total_steps:
        raise _damaged(ledger, f"{budget.nats(state.spent_steps):g} nats are spent, of {budget.total:g}")
    kinds: set[Kind] = set()
    rules: set[VoteRule] = set()
    entries = _noting(kinds, rules, checked_entries(ledger, head))
    try:
        replayed = replay(entries, n_classes, budget, prior)
    except LedgerDamaged:
        raise
    except LedgerError as problem:
        raise _damaged(ledger, str(problem)) from problem
    _compare(ledger, replayed, state)
    return Verification(
        ledger.id,
        ledger.location,
        state.sequence,
        state.contested,
        budget.nats(state.spent_steps),
        budget.total,
        head.chain.hex(),
        tuple(decoder for decoder in DECODERS if decoder in kinds),
        tuple(rule for rule in VOTE_RULES if rule in rules),
    )


def _noting(kinds: set[Kind], rules: set[VoteRule], entries: Iterable[Entry]) -> Iterator[Entry]:
    """Pass entries on, and remember of which kinds there were any, by which rules of votes."""
    for entry in entries:
        kinds.add(entry.kind)
        if entry.label is not None:
            rules.add(entry.votes)
        yield entry


def checked_entries(ledger: SqlLedger, head: Head) -> Iterator[Entry]:
    """Yield the entries up to the head, each after what can be checked without the mathematics."""
    link, spent, last = ledger.chain_at(0), 0, 0
    for record, link in ledger.links(head):
        entry = record.entry
        if entry.sequence != last + 1:
            raise _damaged(
                ledger, f"record {entry.sequence} follows record {last}; what was between is missing"
            )
        spent, last = spent + entry.charged_steps, entry.sequence
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
    needs_noise = entry.question is not None and entry.kind not in ("sample", "belief")
    if needs_noise != (entry.noisy is not None):
        raise _damaged(ledger, f"record {entry.sequence} has a question without a release, or the reverse")
    costs = {0} if entry.kind == "belief" else {1} if entry.question is not None else {0, 1}
    if entry.charged_steps not in costs:
        raise _damaged(ledger, f"record {entry.sequence} was charged {entry.charged_steps} steps")


def _compare(ledger: SqlLedger, replayed: State, state: State) -> None:
    if _counts(replayed) != _counts(state):
        raise _damaged(
            ledger,
            f"its records make {_counts(replayed)}, its state says {_counts(state)}",
        )
    if _bits(replayed.log_belief) != _bits(state.log_belief):
        raise _damaged(ledger, "the belief that its records imply is not the one in its state")


def _counts(state: State) -> str:
    return f"{state.contested} contested releases, {state.spent_steps} charged steps and {state.noisy} with noise"


def _bits(belief: FloatArray) -> bytes:
    return belief.astype("<f8").tobytes()


def _damaged(ledger: SqlLedger, what: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"the ledger at {ledger.location} is damaged: {what}. Restore the latest backup; until then nothing should "
        "be released"
    )
