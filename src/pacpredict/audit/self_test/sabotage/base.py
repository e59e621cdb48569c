"""How a mechanism is sabotaged: one function of it is replaced, everything else stays what is served."""

# ruff: noqa: SLF001  # sabotage reaches where nobody should

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pacpredict.audit.self_test.mechanism import Mechanism
from pacpredict.core.decode import Decoder
from pacpredict.mechanism.answering import Answered
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.entropy import Entropy
from pacpredict.mechanism.ledger import Ledger, State
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session
from pacpredict.types import FloatArray, Votes

GAUSSIAN: tuple[Decoder, ...] = ("argmax", "map")
CHANNEL: tuple[Decoder, ...] = ("sample",)
EVERY: tuple[Decoder, ...] = (*GAUSSIAN, *CHANNEL)

Apply = Callable[[Mechanism], Mechanism]
Answer = Callable[[State, Votes, Sequence[int], Secret], Answered]
AnswerOne = Callable[[State, Votes, Secret], Answered]
# The first argument answers as an honest mechanism does; votes have one row.
ChangeOne = Callable[[AnswerOne, State, Votes, Secret], Answered]


@dataclass(frozen=True)
class Sabotage:
    """A lie, what it leaks in words, the decoders that it concerns, and whether users are shown that it is caught."""

    name: str
    leak: str
    apply: Apply
    decoders: tuple[Decoder, ...] = EVERY
    shown: bool = False
    needs_limit: bool = False


def in_sessions(change: Callable[[Session], None]) -> Apply:
    """Change every session once it is open."""

    def apply(mechanism: Mechanism) -> Mechanism:
        def open_session(budget: Budget, ledger: Ledger, secret: Secret | None) -> Session:
            session = mechanism.open(budget, ledger, secret)
            change(session)
            return session

        return replace(mechanism, open=open_session)

    return apply


def in_noise(change: Callable[[FloatArray, Session], FloatArray]) -> Apply:
    """Change the standard normals that a session draws for one turn."""

    def sabotage(session: Session) -> None:
        source = session._answering._entropy
        put(
            session._answering,
            "_entropy",
            _OtherNoise(source, lambda size: change(source.normals(size), session)),
        )

    return in_sessions(sabotage)


def in_answers(change: Callable[[Answer, State, Votes, Sequence[int], Secret], Answered]) -> Apply:
    """Change how a turn is answered; the first argument answers as an honest mechanism does."""

    def sabotage(session: Session) -> None:
        honest = session._answering.answer

        def answer(before: State, votes: Votes, n_voted: Sequence[int], secret: Secret) -> Answered:
            return change(honest, before, votes, n_voted, secret)

        put(session._answering, "answer", answer)

    return in_sessions(sabotage)


def in_each_answer(change: ChangeOne) -> Apply:
    """Change how each row of a turn is answered, one after the other."""
    return in_sessions(
        lambda session: put(session._answering, "answer", row_by_row(session._answering.answer, change))
    )


def row_by_row(honest: Answer, change: ChangeOne) -> Answer:
    """Answer a turn row by row, each in view of the answers before it."""

    def answer(before: State, votes: Votes, n_voted: Sequence[int], secret: Secret) -> Answered:
        parts, state = [], before
        for row, k in zip(votes, n_voted, strict=True):
            parts.append(change(partial(_answer_one, honest, k), state, row[None], secret))
            state = _after(state, parts[-1])
        return Answered(
            [part.labels[0] for part in parts],
            [part.charged[0] for part in parts],
            [part.kinds[0] for part in parts],
            [part.noisy[0] for part in parts],
            sum(part.n_contested for part in parts),
            state.log_belief,
        )

    return answer


def _answer_one(honest: Answer, n_voted: int, before: State, votes: Votes, secret: Secret) -> Answered:
    return honest(before, votes, [n_voted], secret)


def _after(state: State, answered: Answered) -> State:
    return replace(
        state,
        sequence=state.sequence + 1,
        contested=state.contested + answered.n_contested,
        spent_steps=state.spent_steps + answered.charged[0],
        log_belief=answered.log_belief,
    )


class _OtherNoise:
    """A source whose normals are others."""

    def __init__(self, source: Entropy, normals: Callable[[int], FloatArray]) -> None:
        self.normals, self.uniforms = normals, source.uniforms


def secret_of(session: Session) -> int:
    return session._secret.reveal()


def parity(index: int) -> int:
    """Return 1 or -1, by the number of bits."""
    return 1 - 2 * (index.bit_count() % 2)


def put(where: Any, name: str, value: Any) -> None:
    """Replace a part of an object, also of one that does not want to be changed."""
    object.__setattr__(where, name, value)
