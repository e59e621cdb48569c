"""An attacker who asks about variants that shadow worlds chose, and weighs answers by likelihood ratios learnt there.

For each world all others are the attacker's shadows: there the coin of every target is known, and so is how each
variant is answered with either. The most telling variants are asked; the score is the sum of their log-likelihood
ratios. Two ways to learn a ratio are tried, by counting answers and by the mean and deviation of the margin of votes,
and two ways to compare targets, with and without dividing by how much was expected. The best of the four counts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from pacpredict.types import BoolArray, IntArray

Floats = npt.NDArray[np.floating[Any]]  # single precision where arrays are large

N_ASKED = 120
FALSE_POSITIVES = 0.01
_SMOOTHING = 0.5
_LEAST_DEVIATION = 0.02  # of a margin: no estimate of few worlds is trusted below
_CLIP = 0.02
_N_RESAMPLES = 200


class Seen(NamedTuple):
    """What is seen of the targets of one kind in several ensembles (n_ensembles, n_targets, n_variants)."""

    probability: Floats  # that the answer is the telling label
    margin: Floats  # of the telling label over the strongest other, as a share of the models
    charged: BoolArray | None  # whether the answer is charged; None if that is not looked at
    coins: BoolArray  # (n_ensembles, n_targets)
    world: IntArray  # (n_ensembles,)

    def at(self, variants: slice) -> "Seen":
        charged = None if self.charged is None else self.charged[:, :, variants]
        return self._replace(
            probability=self.probability[:, :, variants], margin=self.margin[:, :, variants], charged=charged
        )


class Found(NamedTuple):
    """True positives at 1 % false positives, and an interval that resamples targets."""

    tpr: float
    low: float
    high: float


def attack(families: Sequence[Seen], rng: np.random.Generator, n_asked: int = N_ASKED) -> Found:
    """Return what the best of the attackers finds among the targets of all families."""
    attackers = [_attackers(seen, rng, n_asked) for seen in families]
    coins = np.concatenate([seen.coins for seen in families], axis=1)
    scores = [np.concatenate(parts, axis=1) for parts in zip(*attackers, strict=True)]
    best = max(scores, key=lambda score: true_positives(score, coins))
    return _with_interval(best, coins, rng)


def _attackers(seen: Seen, rng: np.random.Generator, n_asked: int) -> list[Floats]:
    """Return the scores (n_ensembles, n_targets) of each attacker."""
    symbols = _symbols(seen)
    answers = _draw(symbols, rng)
    scores: list[Floats] = []
    for by_margin in (False, True) if seen.charged is None else (False,):
        raw, expected = _score(seen, symbols, answers, n_asked, by_margin=by_margin)
        scores += [raw, raw / np.sqrt(expected + 1e-9)]
    tied = rng.random(scores[0].shape) * 1e-9  # a coin decides between equals
    return [score + tied for score in scores]


def _symbols(seen: Seen) -> Floats:
    """Return the probability of each symbol (n_symbols, ...): label or not, charged or not."""
    both = np.stack([seen.probability, 1 - seen.probability]).astype(np.float32)
    if seen.charged is None:
        return both
    return np.concatenate([both * seen.charged, both * ~seen.charged])


def _draw(symbols: Floats, rng: np.random.Generator) -> IntArray:
    drawn = rng.random(symbols.shape[1:], np.float32)
    return np.asarray((drawn > np.cumsum(symbols, axis=0)[:-1]).sum(axis=0))


def _score(
    seen: Seen, symbols: Floats, answers: IntArray, n_asked: int, *, by_margin: bool
) -> tuple[Floats, Floats]:
    """Return the score of each target in each ensemble, and how much its questions were expected to tell."""
    scores, expected = np.zeros(seen.coins.shape), np.zeros(seen.coins.shape)
    for world in np.unique(seen.world):
        here, shadows = seen.world == world, seen.world != world
        of_in, of_out = (
            _by_margin(seen.margin[shadows], coins) if by_margin else _by_count(symbols[:, shadows], coins)
            for coins in (seen.coins[shadows], ~seen.coins[shadows])
        )
        ratio = np.log(of_in) - np.log(of_out)  # (n_symbols, n_targets, n_variants)
        tells = ((of_in - of_out) * ratio).sum(axis=0)
        asked = np.argsort(-tells, axis=1)[:, :n_asked]
        told = np.take_along_axis(tells, asked, axis=1).sum(axis=1)
        for e in np.flatnonzero(here):
            weights = np.take_along_axis(ratio, answers[e][None], axis=0)[0]
            scores[e] = np.take_along_axis(weights, asked, axis=1).sum(axis=1)
            expected[e] = told
    return scores, expected


def _by_count(symbols: Floats, coins: BoolArray) -> Floats:
    counted = np.einsum("et,setv->stv", coins.astype(np.float32), symbols)
    return np.asarray((counted + _SMOOTHING) / (coins.sum(axis=0)[:, None] + _SMOOTHING * len(symbols)))


def _by_margin(margin: Floats, coins: BoolArray) -> Floats:
    weights = coins.astype(np.float32)
    n = np.maximum(weights.sum(axis=0), 1)[:, None]
    mean = np.einsum("et,etv->tv", weights, margin) / n
    square = np.einsum("et,etv->tv", weights, margin**2) / n
    deviation = np.sqrt(np.maximum(square - mean**2, 0) + _LEAST_DEVIATION**2)
    own = np.clip(ndtr(mean / deviation), _CLIP, 1 - _CLIP)
    return np.stack([own, 1 - own])


def true_positives(scores: Floats, coins: BoolArray) -> float:
    """Return the true positive rate at 1 % false positives, over all targets and ensembles."""
    if not coins.any() or coins.all():
        return float("nan")
    out = np.sort(scores[~coins])[::-1]
    threshold = out[int(FALSE_POSITIVES * out.size)]
    return float((scores[coins] > threshold).mean())


def _with_interval(scores: Floats, coins: BoolArray, rng: np.random.Generator) -> Found:
    n = scores.shape[1]
    drawn = []
    for _ in range(_N_RESAMPLES):
        chosen = rng.integers(n, size=n)
        drawn.append(true_positives(scores[:, chosen], coins[:, chosen]))
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Found(true_positives(scores, coins), float(low), float(high))
