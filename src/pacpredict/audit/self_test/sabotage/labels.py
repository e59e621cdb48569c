"""Sabotaged labels."""

# ruff: noqa: SLF001  # sabotage reaches where nobody should

import math
from collections.abc import Sequence

import numpy as np

from pacpredict.audit.self_test.oracle import channel_information
from pacpredict.audit.self_test.sabotage.base import (
    CHANNEL,
    GAUSSIAN,
    Answer,
    AnswerOne,
    Apply,
    Sabotage,
    in_answers,
    in_each_answer,
    in_sessions,
    put,
)
from pacpredict.core.decode import Decoder
from pacpredict.mechanism.answering import Answered
from pacpredict.mechanism.entropy import SeededEntropy
from pacpredict.mechanism.ledger import State
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.types import Votes

_NEAR = 0.03  # deviations within which two labels count as tied
_DRAWN: tuple[Decoder, ...] = ("argmax", "sample")  # answers from the belief are drawn, with map they are not


def _own_in(share: float) -> Apply:
    """Let the channel give the secret's own label in this share of answers, and the belief learn from it as usual."""
    rng = np.random.default_rng()

    def change(honest: AnswerOne, before: State, votes: Votes, secret: Secret) -> Answered:
        answered = honest(before, votes, secret)
        return _until_own(honest, before, votes, secret, answered) if rng.random() < share else answered

    return in_each_answer(change)


def _closer(only: int | None = None) -> Apply:
    """Couple labels twice as closely to the secret as is said, where the secret's is a certain label or always."""
    rng = np.random.default_rng()

    def change(honest: AnswerOne, before: State, votes: Votes, secret: Secret) -> Answered:
        answered = honest(before, votes, secret)
        own = int(votes[0, secret.reveal()])
        if answered.kinds[0] != "sample" or only not in (None, own):
            return answered
        learnt, voted = answered.log_belief - before.log_belief, votes[0] == answered.labels[0]
        # With coupling c = odds / (1 + odds) this makes it c + (1 - c) odds = 2 c.
        odds = math.expm1(learnt[voted][0] - learnt[~voted][0]) * np.exp(before.log_belief)[voted].sum()
        return _until_own(honest, before, votes, secret, answered) if rng.random() < odds else answered

    return in_each_answer(change)


def _until_own(
    honest: AnswerOne, before: State, votes: Votes, secret: Secret, answered: Answered
) -> Answered:
    while answered.kinds[0] == "sample" and answered.labels[0] != votes[0, secret.reveal()]:
        answered = honest(before, votes, secret)
    return answered


def _own_instead(kind: str, share: float) -> Apply:
    """Tell the secret's own label in a share of answers of a kind, and record what an honest mechanism would."""
    rng = np.random.default_rng()

    def change(
        honest: Answer, before: State, votes: Votes, n_voted: Sequence[int], secret: Secret
    ) -> Answered:
        answered, own = honest(before, votes, n_voted, secret), votes[:, secret.reveal()]
        told = [
            int(mine)
            if (is_a == kind or (kind == "released" and is_a != "belief")) and rng.random() < share
            else label
            for label, is_a, mine in zip(answered.labels, answered.kinds, own, strict=True)
        ]
        return answered._replace(labels=told)

    return in_answers(change)


def _ties(session: Session) -> None:
    """Give the secret's own label where noise leaves two labels all but tied."""
    honest, step = session._answering.answer, session.budget.step

    def answer(before: State, votes: Votes, n_voted: Sequence[int], secret: Secret) -> Answered:
        answered, told = honest(before, votes, n_voted, secret), []
        weights = np.exp(before.log_belief)
        for row, label, noisy in zip(votes, answered.labels, answered.noisy, strict=True):
            if noisy is not None and noisy.size == 1:
                mass = float(weights[row == row[0]].sum())
                is_tied = noisy[0] ** 2 < _NEAR**2 * mass * (1 - mass) / step
                told.append(int(row[secret.reveal()]) if is_tied else label)
            else:
                told.append(label)
        return answered._replace(labels=told)

    put(session._answering, "answer", answer)


def _agreed(honest: Answer, before: State, votes: Votes, n_voted: Sequence[int], secret: Secret) -> Answered:
    """Tell the last bit of the secret where all models agree."""
    answered = honest(before, votes, n_voted, secret)
    told = [
        secret.reveal() % 2 if kind == "agreed" else label
        for label, kind in zip(answered.labels, answered.kinds, strict=True)
    ]
    return answered._replace(labels=told)


def _likeliest(
    honest: Answer, before: State, votes: Votes, n_voted: Sequence[int], secret: Secret
) -> Answered:
    """Answer from the belief with its likeliest label, instead of one that is drawn."""
    answered = honest(before, votes, n_voted, secret)
    weights = np.exp(before.log_belief)
    told = [
        int(np.argmax(np.bincount(row, weights))) if kind == "belief" else label
        for row, label, kind in zip(votes, answered.labels, answered.kinds, strict=True)
    ]
    return answered._replace(labels=told)


def _seeded(session: Session) -> None:
    put(session._answering, "_entropy", SeededEntropy(np.random.default_rng(0)))


SABOTAGES = (
    *(
        Sabotage(
            f"the secret's own label in {100 * share:g}% of answers",
            f"{channel_information([0.5, 0.5], share)[0]:.2g} nats an answer",
            _own_in(share),
            CHANNEL,
            shown=share == 0.1,
        )
        for share in (0.3, 0.1, 0.05, 0.02, 0.01)
    ),
    Sabotage("coupling doubled", "4 steps an answer", _closer(), CHANNEL, shown=True),
    Sabotage("coupling doubled if the secret's label is 1", "2.5 steps an answer", _closer(1), CHANNEL),
    Sabotage("labels from a fixed seed", "everything", in_sessions(_seeded), CHANNEL, shown=True),
    Sabotage(
        "the secret's own label in 0.1% of answers, noise as claimed",
        "7e-4 nats an answer",
        _own_instead("released", 0.001),
        GAUSSIAN,
    ),
    Sabotage(
        "ties within 0.03 standard deviations go to the secret's label",
        "the label in 2% of answers",
        in_sessions(_ties),
        ("argmax",),
    ),
    Sabotage("the last bit of the secret where all models agree", "0.7 nats in all", in_answers(_agreed)),
    Sabotage(
        "the secret's own label in answers from the belief", "0.7 nats each", _own_instead("belief", 1.0)
    ),
    Sabotage(
        "the secret's own label in 20% of answers from the belief",
        "0.02 nats each",
        _own_instead("belief", 0.2),
        _DRAWN,
    ),
    Sabotage("the likeliest label in answers from the belief", "nothing", in_answers(_likeliest), _DRAWN),
)
