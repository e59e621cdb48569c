"""Where a session begins or continues, and what it refuses to continue."""

import hashlib
from dataclasses import replace

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.exceptions import ForeignLedger, InvalidBelief, InvalidBudget, InvalidInput, LedgerConflict
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import State
from pacpredict.mechanism.secret import Secret


def describe_origin(prior: Belief, n_classes: int, budget: Budget) -> bytes:
    """Digest what a history replays from: prior, label space, limit on odds, and kind of noise."""
    limit = [] if budget.odds_limit is None else [budget.odds_limit, budget.step_delta]
    about = n_classes.to_bytes(8, "little") + prior.log_probabilities.astype("<f8").tobytes()
    return hashlib.sha256(about + np.array(limit, "<f8").tobytes() + budget.noise.encode()).digest()


def first_state(recorded: State | None, snapshot: State | None, fresh: State) -> State:
    """Choose the state to continue from; `fresh` is the one that a new session begins with."""
    if recorded is not None and snapshot is not None:
        raise LedgerConflict("the ledger has a state of its own: pass a snapshot or a used ledger, not both")
    state = recorded or (snapshot and _completed(snapshot, fresh))
    if state is None:
        return fresh
    check_state(state, fresh)
    return state


def _completed(snapshot: State, fresh: State) -> State:
    """Add what a state that was replayed from entries does not say; what it does say is checked."""
    names = ("step", "origin", "total", "secret")
    return replace(
        snapshot, **{name: getattr(fresh, name) for name in names if getattr(snapshot, name) is None}
    )


def check_state(state: State, fresh: State) -> None:
    """Refuse a state that no session which began with `fresh` can have left."""
    if state.deployment != fresh.deployment:
        raise ForeignLedger(
            f"the ledger or snapshot belongs to {_named(state.deployment)}, this session to "
            f"{_named(fresh.deployment)}; each deployment continues its own history: give the ledger that belongs to it"
        )
    if state.log_belief.shape != fresh.log_belief.shape:
        raise InvalidBelief(
            f"the state is about {state.log_belief.size} models, this session about {fresh.log_belief.size}"
        )
    if state.step != fresh.step:
        raise InvalidBudget(
            f"the state was charged in steps of {state.step!r} nats; steps of {fresh.step!r} would count what is "
            "spent anew: continue with the old step budget"
        )
    if state.total != fresh.total:
        raise InvalidBudget(
            f"the history began with a total of {state.total!r} nats, and its guarantee is for that; a total of "
            f"{fresh.total!r}, chosen when answers were known, would not be: continue with the old one"
        )
    if state.secret != fresh.secret:
        raise ForeignLedger(
            "this history is about another secret; its belief would let the next release pass almost without noise. "
            "Nothing was released: give the secret that it began with, or an empty ledger"
        )
    if state.origin != fresh.origin:
        raise InvalidBelief(
            "the state began from another prior, number of classes, limit on odds or kind of noise; continue with "
            "those it began from"
        )
    Belief(state.log_belief)  # refuses what is no distribution
    if not (
        0 <= state.noisy <= state.contested <= state.sequence and 0 <= state.spent_steps <= state.sequence
    ):
        raise InvalidInput(
            f"the state counts {state.sequence} releases, {state.contested} contested and {state.spent_steps} "
            "charged, which no session can have left; restore it from the ledger"
        )


def check_moved_on(recorded: State | None, last: State) -> State:
    """Refuse a ledger that has lost what this session knows to be on record."""
    if recorded is None or recorded.sequence < last.sequence:
        raise LedgerConflict(
            f"the ledger holds {recorded.sequence if recorded else 0} releases, but {last.sequence} were on record "
            "before: it was emptied or replaced by an older copy. Nothing was released: bring the latest one back"
        )
    return recorded


def check_within(state: State, budget: Budget) -> None:
    """Refuse a history that has spent more than the total; a replayed one does not say what its total was."""
    if state.spent_steps > budget.total_steps:
        raise InvalidBudget(
            f"{budget.nats(state.spent_steps)!r} nats are spent already, which is more than the total of "
            f"{budget.total!r}: continue with the total that the history began with"
        )


def settle_secret(
    secret: Secret | None, is_new: bool, prior: Belief, generator: np.random.Generator | None
) -> Secret:
    """Return the secret that was given, or draw one for a history that begins."""
    if secret is None and not is_new:
        raise InvalidInput("this history has a secret already: pass it; a new one would void the guarantee")
    if secret is not None and secret.n_models != prior.n_models:
        raise InvalidInput(
            f"the secret is one of {secret.n_models} models, this session has {prior.n_models}"
        )
    return Secret.draw(prior, generator) if secret is None else secret


def _named(deployment: str | None) -> str:
    return "no deployment" if deployment is None else f"deployment {deployment}"
