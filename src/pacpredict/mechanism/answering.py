"""From votes to labels, in a turn: what is drawn, what it is charged, and what the belief is afterwards."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.release import BELIEVED, RELEASED, answer_votes
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.entropy import Entropy
from pacpredict.mechanism.ledger import Kind, State
from pacpredict.mechanism.secret import Secret
from pacpredict.types import FloatArray, Votes


class Answered(NamedTuple):
    """Some queries, answered but not recorded yet."""

    labels: list[int]
    charged: list[int]  # steps
    kinds: list[Kind]
    noisy: list[FloatArray | None]  # the release, where it is one of noisy coordinates
    n_contested: int
    log_belief: FloatArray


class Answering:
    """Answers votes about one secret under one budget, from a state to the next."""

    def __init__(
        self, n_classes: int, budget: Budget, decode: Decoder, prior: Belief, entropy: Entropy
    ) -> None:
        mechanism, self._row = check_decoder(decode)
        self._n_classes = n_classes
        self._budget = budget
        self._decode = decode
        self._is_finite = mechanism == "channel"
        self._log_prior = prior.log_probabilities
        self._entropy = entropy
        # Labels are drawn from the channel, and where the belief answers.
        self._draws_labels = (
            self._is_finite or budget.odds_limit is not None or budget.when_exhausted == "belief"
        )

    def answer(self, before: State, votes: Votes, n_voted: Sequence[int], secret: Secret) -> Answered:
        sizes = [k - 1 for k in n_voted]  # one noisy coordinate less than classes voted for
        n_contested = len(sizes) - sizes.count(0)
        normals = self._entropy.normals(0 if self._is_finite else sum(sizes))
        uniforms = self._entropy.uniforms(n_contested if self._draws_labels else 0)
        noisy, log_belief = np.empty(normals.size), before.log_belief.copy()
        budget = self._budget
        left = budget.total_steps - before.spent_steps
        how, charged, labels = answer_votes(
            *(votes, self._n_classes, secret.reveal(), budget.step, self._is_finite, budget.epsilon),
            *(budget.step_delta, budget.charging == "flat", budget.is_fair, before.contested, left),
            *(normals, uniforms, log_belief, self._log_prior, noisy),
        )
        noisy.setflags(write=False)
        ways = how.tolist()
        return Answered(
            labels[self._row].tolist(),
            charged.tolist(),
            [self._kind(way) for way in ways],
            self._split(noisy, sizes, ways),
            n_contested,
            log_belief,
        )

    def _kind(self, way: int) -> Kind:
        if way == RELEASED:
            return self._decode
        return "belief" if way == BELIEVED else "agreed"

    def _split(self, noisy: FloatArray, sizes: Sequence[int], ways: Sequence[int]) -> list[FloatArray | None]:
        """Give each query its part of the noisy coordinates, None where it has no noisy release."""
        if self._is_finite:
            return [None] * len(sizes)
        parts: list[FloatArray | None] = []
        read = 0
        for size, way in zip(sizes, ways, strict=True):
            parts.append(noisy[read : read + size] if way == RELEASED else None)
            read += size
        return parts
