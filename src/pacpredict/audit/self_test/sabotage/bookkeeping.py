"""Sabotaged secrets, beliefs, limits, charges and records."""

# ruff: noqa: SLF001  # sabotage reaches where nobody should

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pacpredict.audit.self_test.mechanism import Mechanism
from pacpredict.audit.self_test.sabotage.base import (
    Answer,
    AnswerOne,
    Sabotage,
    in_answers,
    in_each_answer,
    in_sessions,
    put,
    row_by_row,
)
from pacpredict.core.belief import Belief
from pacpredict.core.kernel import LOG_BELIEF_FLOOR
from pacpredict.exceptions import PacPredictError
from pacpredict.mechanism.answering import Answered
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import Ledger, State
from pacpredict.mechanism.question import UNVOTED, Release, Request
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.types import Votes

_FORGOTTEN = 5  # the subset that the limit does not look at
_FREE = 10  # every so many releases one is not charged


def _drawing(mechanism: Mechanism, draw: Callable[[], Secret]) -> Mechanism:
    def open_session(budget: Budget, ledger: Ledger, secret: Secret | None) -> Session:
        return mechanism.open(budget, ledger, secret or draw())

    return replace(mechanism, open=open_session, draw_secret=draw)


def _first(mechanism: Mechanism) -> Mechanism:
    """Take the first subset, always."""
    return _drawing(mechanism, lambda: Secret(0, mechanism.claim.n_models))


def _uneven(mechanism: Mechanism) -> Mechanism:
    """Draw indices with an even number of bits in 55% of cases."""
    m = mechanism.claim.n_models
    weights = np.array([0.45 if i.bit_count() % 2 else 0.55 for i in range(m)])
    prior = Belief.from_probabilities(weights / weights.sum())
    return _drawing(mechanism, lambda: Secret.draw(prior))


def _redrawn(mechanism: Mechanism) -> Mechanism:
    """Draw another secret at every restart, and tell nobody."""

    def open_session(budget: Budget, ledger: Ledger, secret: Secret | None) -> Session:
        session = mechanism.open(budget, ledger, secret)
        if session._state.sequence:
            put(session, "_secret", Secret.draw(session.prior))
        return session

    return replace(mechanism, open=open_session)


def _anew(session: Session) -> None:
    """Let the total begin anew at every restart."""
    _raise_total(session, session._state.spent_steps if session._state.sequence else 0)


def _double(session: Session) -> None:
    _raise_total(session, session.budget.total_steps)


def _raise_total(session: Session, steps: int) -> None:
    """Release so many steps more than what is stated."""
    budget = replace(session.budget)
    budget.__dict__["total_steps"] = session.budget.total_steps + steps
    put(session, "budget", budget)
    put(session._answering, "_budget", budget)


def _still(honest: Answer, before: State, votes: Votes, n_voted: Sequence[int], secret: Secret) -> Answered:
    """Learn nothing from what was released."""
    return honest(before, votes, n_voted, secret)._replace(log_belief=before.log_belief.copy())


def _forgetful(session: Session) -> None:
    """Take one subset for one that the prior rules out, where the limit is looked at."""
    log_prior = session.prior.log_probabilities.copy()
    log_prior[_FORGOTTEN % log_prior.size] = LOG_BELIEF_FLOOR
    put(session._answering, "_log_prior", log_prior)


def _without_limit(session: Session) -> None:
    put(session._answering, "_budget", _unlimited(session.budget))


def _unlimited(budget: Budget) -> Budget:
    """Drop the limit, but draw labels from the belief as a budget with a limit does."""
    return replace(budget, odds_limit=None)


def _looking_afterwards(session: Session) -> None:
    """Draw a release, and withhold it if it has passed the limit."""
    limit, log_prior = session.budget.epsilon, session.prior.log_probabilities
    honest = session._answering.answer
    _without_limit(session)
    rng = np.random.default_rng()

    def change(answer: AnswerOne, before: State, votes: Votes, secret: Secret) -> Answered:
        answered = answer(before, votes, secret)
        if answered.kinds[0] in {"agreed", "belief"} or np.ptp(answered.log_belief - log_prior) <= limit:
            return answered
        label = int(votes[0, rng.choice(votes.shape[1], p=Belief(before.log_belief).probabilities())])
        return answered._replace(
            labels=[label], charged=[0], kinds=["belief"], noisy=[None], log_belief=before.log_belief.copy()
        )

    put(session._answering, "answer", row_by_row(honest, change))


def _forgotten_charges(honest: AnswerOne, before: State, votes: Votes, secret: Secret) -> Answered:
    answered = honest(before, votes, secret)
    return answered if before.sequence % _FREE else answered._replace(charged=[0])


def _telling_charges(honest: AnswerOne, before: State, votes: Votes, secret: Secret) -> Answered:
    """Charge nothing where the secret votes as most models do."""
    answered = honest(before, votes, secret)
    most = int(np.argmax(np.bincount(votes[0])))
    return answered._replace(charged=[0]) if votes[0, secret.reveal()] == most else answered


def _never_repeated(session: Session) -> None:
    """Answer a repeated query anew."""
    honest = session.serve

    def serve(requests: Sequence[Request]) -> list[list[Release] | PacPredictError]:
        return honest(
            [
                one if UNVOTED in one.rows else replace(one, digests=[None] * len(one.digests), id=None)
                for one in requests
            ]
        )

    put(session, "serve", serve)


SABOTAGES = (
    Sabotage("the secret is always the first subset", "everything", _first, shown=True),
    Sabotage("secrets of even parity in 55% of draws", "5e-3 nats in all", _uneven),
    Sabotage("the secret redrawn at a restart", "a second training set", _redrawn, shown=True),
    Sabotage("the belief not updated", "grows with what is known", in_answers(_still), shown=True),
    Sabotage(
        "an odds limit that forgets one subset",
        "that subset, up to the total",
        in_sessions(_forgetful),
        shown=True,
        needs_limit=True,
    ),
    Sabotage("no odds limit", "up to the total", in_sessions(_without_limit), needs_limit=True),
    Sabotage(
        "the odds limit applied after the draw",
        "the label of a withheld answer",
        in_sessions(_looking_afterwards),
        needs_limit=True,
    ),
    Sabotage("a doubled total", "the total once more", in_sessions(_double), shown=True),
    Sabotage("the total begins anew at a restart", "the total each time", in_sessions(_anew)),
    Sabotage(
        f"every {_FREE}th release free of charge", "a tenth of the total", in_each_answer(_forgotten_charges)
    ),
    Sabotage(
        "no charge where the secret votes with most", "0.7 nats an answer", in_each_answer(_telling_charges)
    ),
    Sabotage("repeated queries answered anew", "unbounded", in_sessions(_never_repeated)),
)
