"""Sabotaged noise."""

# ruff: noqa: SLF001  # sabotage reaches where nobody should

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pacpredict.audit.self_test.sabotage.base import (
    GAUSSIAN,
    Answer,
    Apply,
    Sabotage,
    in_answers,
    in_noise,
    in_sessions,
    parity,
    put,
    secret_of,
)
from pacpredict.mechanism.answering import Answered
from pacpredict.mechanism.entropy import SeededEntropy
from pacpredict.mechanism.ledger import State
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.types import FloatArray, Votes

_LATE = 5000  # the release after which there is no noise
_COARSEST = 2.0**-12  # nats: noise is for steps of this size at least


def _shifted(shift: float) -> Apply:
    return in_noise(lambda drawn, session: drawn + shift * parity(secret_of(session)))


def _scaled(factor: float) -> Apply:
    return in_noise(lambda drawn, _: drawn * factor)


def _by_last_bit(share: float) -> Apply:
    return in_noise(lambda drawn, session: drawn * (1 + share * (1 if secret_of(session) % 2 else -1)))


def _once_per_turn(drawn: FloatArray, _: Session) -> FloatArray:
    return np.full_like(drawn, drawn[0]) if drawn.size else drawn


def _truncated(drawn: FloatArray, session: Session) -> FloatArray:
    """Redraw what lies beyond three standard deviations."""
    while (far := np.abs(drawn) > 3).any():
        drawn = np.where(far, session._entropy.normals(drawn.size), drawn)
    return drawn


def _single(drawn: FloatArray, _: Session) -> FloatArray:
    return drawn.astype(np.float32).astype(np.float64)


def _none_late(drawn: FloatArray, session: Session) -> FloatArray:
    return drawn * 0 if session._state.sequence >= _LATE else drawn


def _kept_back(sign: int) -> Apply:
    """Reuse the noise of every other turn in the next one, with this sign."""

    def sabotage(session: Session) -> None:
        held: list[FloatArray] = []

        def again(drawn: FloatArray) -> FloatArray:
            if held and (old := held.pop()).size >= drawn.size:
                return sign * old[: drawn.size]
            held.append(drawn)
            return drawn

        source = session._answering._entropy
        normals: Callable[[int], FloatArray] = source.normals
        put(source, "normals", lambda size: again(normals(size)) if size else normals(size))

    return in_sessions(sabotage)


def _seeded(session: Session) -> None:
    put(session._answering, "_entropy", SeededEntropy(np.random.default_rng(0)))


def _coarse(session: Session) -> None:
    budget = session.budget
    step = max(budget.step, _COARSEST)
    put(session._answering, "_budget", replace(budget, step=step, total=step * budget.total_steps))


def _for_the_prior(
    honest: Answer, before: State, votes: Votes, n_voted: Sequence[int], secret: Secret
) -> Answered:
    """Calibrate to the prior, and let the belief learn from that all the same."""
    prior = np.full(before.log_belief.size, -np.log(before.log_belief.size))
    answered = honest(replace(before, log_belief=prior.copy()), votes, n_voted, secret)
    joint = before.log_belief + answered.log_belief
    joint -= joint.max()
    return answered._replace(log_belief=joint - np.log(np.exp(joint).sum()))


def _noise(name: str, leak: str, apply: Apply, *, shown: bool = False) -> Sabotage:
    return Sabotage(name, leak, apply, GAUSSIAN, shown=shown)


SABOTAGES = (
    *(
        _noise(
            f"noise shifted by {shift:g} standard deviations, by the parity of the secret",
            f"{shift**2 / 2:.2g} nats an answer",
            _shifted(shift),
            shown=shift == 0.04,
        )
        for shift in (0.04, 0.02, 0.01)
    ),
    _noise("noise 10% too small", "1.23 steps an answer", _scaled(0.9), shown=True),
    _noise("noise 1% too small", "1.02 steps an answer", _scaled(0.99)),
    _noise(
        "noise 2% larger or smaller, by the last bit of the secret", "4e-4 nats an answer", _by_last_bit(0.02)
    ),
    _noise("noise of one turn reused in the next", "the differences of labels", _kept_back(1)),
    _noise("noise of one turn cancelled in the next", "the sums of labels", _kept_back(-1)),
    _noise("one noise for all rows of a turn", "the differences of labels", in_noise(_once_per_turn)),
    _noise("noise from a fixed seed", "everything", in_sessions(_seeded), shown=True),
    _noise(
        f"no noise after the {_LATE:,}th answer", "everything from then on", in_noise(_none_late), shown=True
    ),
    _noise("noise in single precision", "what rounding shows", in_noise(_single)),
    _noise("noise truncated at 3 standard deviations", "certainty in 0.3% of answers", in_noise(_truncated)),
    _noise("noise for a step of at least 2^-12", "2^-12 nats an answer", in_sessions(_coarse)),
    _noise("noise calibrated to the prior", "grows with what is known", in_answers(_for_the_prior)),
)
