"""Which sessions are played, each kind to show what the others cannot.

served     hundreds, at the deployment's own budget, each with a secret that it draws itself; every other one is the
twin of the one before, with its secret and questions
long       one of 20,000 releases, so that what fails late is seen
end        sessions that begin shortly before the total is spent, and are asked beyond it
amplified  sessions with steps so large that labels show which secret they are about; some are restarted on
the way, from a file, and asked again what they have answered
probes     for every subset two sessions in which it is about to pass the limit on odds, and a query that would let it
walks      sessions with steps so large that they meet the limit
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pacpredict.audit.self_test.mechanism import Mechanism
from pacpredict.audit.self_test.oracle import Posterior, Question
from pacpredict.audit.self_test.transcripts import Player, Transcript, state_at
from pacpredict.exceptions import InvalidInput, InvalidVotes
from pacpredict.mechanism.budget import Budget
from pacpredict.types import FloatArray, Votes

# Sessions as they are served, by default, and releases of each: a quarter of a million in all.
N_SESSIONS, N_RELEASES = 512, 512
# Sessions of the other kinds for each of the served ones.
_AMPLIFIED_SHARE, _WALKS_SHARE, _MOST_WALKS = 4, 32, 32
_FEWEST_AMPLIFIED, _N_RESTARTED = 64, 32
_LONG = 20_480
_N_ENDS = 8
# Questions to choose from, and the share of others that all models agree on.
_N_QUESTIONS, _AGREED = 1024, 1 / 64
# Questions of a turn.
_TURN, _SHORT_TURN = 128, 16
# Releases that are left at the beginning of the end; the answers of a belief that follow.
_LEFT, _AFTER_THE_END = 40, 48
# Further answers from the belief, for each served session: twice as many, since half of the sessions give none.
_FROM_BELIEF = 64
# Nats of an amplified step, if a deployment's own is not larger, and in all: about what it takes to tell one of 128
# subsets. There are so many steps at least.
_STEP, _TOTAL, _FEWEST_STEPS = 2.0**-4, 4.0, 8
# Walks: the share of the limit that a release about an even vote may move odds by, and how many are asked.
_STRIDE, _N_WALKED = 1 / 6, 384


class SessionStage(NamedTuple):
    """A kind of sessions."""

    name: str
    play: Callable[[], Iterator[Transcript]]


@dataclass(frozen=True)
class Stages:
    """All sessions of one self-test."""

    mechanism: Mechanism
    questions: Sequence[Question]  # contested
    rng: np.random.Generator
    n_sessions: int = N_SESSIONS

    @classmethod
    def of(cls, mechanism: Mechanism, votes: Votes, seed: int, n_sessions: int = N_SESSIONS) -> "Stages":
        """Choose from votes (n_queries, n_models) those that sessions are asked about."""
        if n_sessions < 2:
            raise InvalidInput(f"a self-test needs at least 2 sessions, got {n_sessions}")
        rng = np.random.default_rng(seed)
        contested = np.flatnonzero(votes.min(axis=1) < votes.max(axis=1))
        if not contested.size:
            raise InvalidVotes("models agree on all questions: there is nothing to test a mechanism with")
        chosen = rng.choice(contested, min(contested.size, _N_QUESTIONS), replace=False)
        return cls(mechanism, [Question.of(votes[i]) for i in np.sort(chosen)], rng, n_sessions)

    def all(self, n_parts: int = 8) -> list[SessionStage]:
        """Return the stages in order: those that are quick, and show most, first."""
        budget = self.mechanism.claim.budget
        limited = budget.odds_limit is not None
        pairs = np.array_split(np.arange(self._n_pairs()), n_parts)
        return [
            SessionStage("end", self._ends),
            *([SessionStage("probes", self._probes), SessionStage("walks", self._walks)] if limited else []),
            SessionStage("amplified", self._amplified),
            SessionStage("long", self._long),
            *(SessionStage("served", partial(self._served, part.size)) for part in pairs),
        ]

    def _served(self, n_pairs: int) -> Iterator[Transcript]:
        for _ in range(n_pairs):
            asked = self._draw(min(N_RELEASES, self.mechanism.claim.budget.total_steps))
            secret = None
            for _ in range(2):
                player = Player(self.mechanism, "served", self.rng, secret=secret)
                self._ask(player, asked, _TURN)
                transcript, secret = player.end()
                yield transcript

    def _n_pairs(self) -> int:
        """Return how many, more of them if each is short."""
        each = min(N_RELEASES, self.mechanism.claim.budget.total_steps)
        return max(1, self.n_sessions * min(N_RELEASES // each, 8) // 2)

    def _long(self) -> Iterator[Transcript]:
        player = Player(self.mechanism, "long", self.rng)
        self._ask(player, self._draw(min(_LONG, self.mechanism.claim.budget.total_steps)), 4 * _TURN)
        yield player.end()[0]

    def _ends(self) -> Iterator[Transcript]:
        """Begin shortly before the total is spent; ask for too much at once, for what fits, and for more."""
        claim = self.mechanism.claim
        spent = max(claim.budget.total_steps - _LEFT, 0)
        for i in range(_N_ENDS):
            budget = claim.budget if i % 2 else replace(claim.budget, when_exhausted="belief")
            start = state_at(replace(claim, budget=budget), spent, self._uniform())
            player = Player(self.mechanism, "end", self.rng, budget=budget, start=start)
            player.ask(self._draw(4 * _LEFT))
            for in_part in (False, True):
                self._ask(player, self._draw(_LEFT + _AFTER_THE_END), _SHORT_TURN, partial=in_part)
            if budget.when_exhausted == "belief":
                self._ask(player, self._draw(_FROM_BELIEF * self.n_sessions // _N_ENDS), _TURN)
            yield player.end()[0]

    def _amplified(self) -> Iterator[Transcript]:
        claim = self.mechanism.claim
        step = max(_STEP, claim.budget.step)
        n_steps = max(int(_TOTAL / step), _FEWEST_STEPS)
        budget = replace(
            claim.budget, step=step, total=step * n_steps, when_exhausted="belief", odds_limit=None
        )
        with tempfile.TemporaryDirectory() as folder:
            for i in range(max(_FEWEST_AMPLIFIED, self.n_sessions // _AMPLIFIED_SHARE)):
                file = Path(folder) / f"history-{i}" if i < _N_RESTARTED else None
                player = Player(self.mechanism, "amplified", self.rng, budget=budget, file=file)
                self._ask(player, self._draw(n_steps // 2), _SHORT_TURN)
                if file is not None:
                    player.ask_again(_SHORT_TURN)
                    player.restart()
                    player.ask_again(_SHORT_TURN)
                self._ask(player, self._draw(n_steps // 2 + _AFTER_THE_END), _SHORT_TURN)
                yield player.end()[0]

    def _probes(self) -> Iterator[Transcript]:
        """Let every subset stand alone at half a release from the limit, above all others and below."""
        claim, limit = self.mechanism.claim, self.mechanism.claim.budget.odds_limit or 0.0
        for j in range(claim.n_models):
            lone = Question.of((np.arange(claim.n_models) == j).astype(np.int16))
            reach = min(Posterior(claim, state_at(claim, 0, self._uniform())).reach_about(lone), limit)
            for side in (1, -1):
                log_belief = self._uniform()
                log_belief[j] += side * (limit - reach / 2)
                log_belief -= math.log(float(np.exp(log_belief).sum()))
                start = state_at(claim, 0, log_belief)
                player = Player(self.mechanism, "probes", self.rng, start=start)
                player.ask([lone])
                yield player.end()[0]

    def _walks(self) -> Iterator[Transcript]:
        claim, limit = self.mechanism.claim, self.mechanism.claim.budget.odds_limit or 0.0
        stride, total = _STRIDE * limit, 2 * _N_WALKED
        z = math.sqrt(2 * math.log(total / claim.budget.odds_delta))
        # Of an even vote: noise whose points are d deviations apart reaches d²/2 + z d, with d² = 8 b; a channel l
        # reaches log(1 + 2 l / (1 - l)), with l² about 2 b.
        d = math.sqrt(z * z + 2 * stride) - z
        step = stride**2 / 8 if claim.finite else d * d / 8
        budget = Budget(
            step,
            step * total,
            charging=claim.budget.charging,
            odds_limit=limit,
            odds_delta=claim.budget.odds_delta,
        )
        for _ in range(min(max(self.n_sessions // _WALKS_SHARE, 2), _MOST_WALKS)):
            player = Player(self.mechanism, "walks", self.rng, budget=budget)
            self._ask(player, self._draw(_N_WALKED), _SHORT_TURN)
            yield player.end()[0]

    def _uniform(self) -> FloatArray:
        m = self.mechanism.claim.n_models
        return np.full(m, -math.log(m))

    def _draw(self, n: int) -> list[Question]:
        """Draw questions, and among them some that all models agree on."""
        claim = self.mechanism.claim
        agreed = [Question.of(np.full(claim.n_models, c, np.int16)) for c in range(2)]
        drawn = [self.questions[i] for i in self.rng.integers(len(self.questions), size=n)]
        for place in np.flatnonzero(self.rng.random(n) < _AGREED):
            drawn.insert(int(place), agreed[int(place) % 2])
        return drawn

    @staticmethod
    def _ask(player: Player, questions: Sequence[Question], turn: int, *, partial: bool = False) -> None:
        for start in range(0, len(questions), turn):
            player.ask(questions[start : start + turn], partial=partial)
