"""Hypotheses about scores, labels and secrets: each function returns p-values by what would be wrong.

Leaks are dependences on the secret. So sums of scores, and of scores towards the secret's own label, are tested over
every parity of the bits of the secret's index (the Walsh functions), over every index, over every session in blocks of
512 answers, and over all sessions of a kind.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from pacpredict.audit.self_test.evidence import Scores
from pacpredict.audit.self_test.statistics import (
    cells_p,
    coin_p,
    evidence_p,
    n_places,
    normal_p,
    rare_p,
    size_p,
    size_scores,
    smallest_of,
    squares_p,
    walsh_sums,
)
from pacpredict.types import BoolArray, FloatArray, IntArray

Families = Mapping[str, float]  # p-values by what would be wrong

_BLOCK = 512
# Cells of equal chance, and thresholds beyond which scores are counted.
_N_CELLS, _TAILS = 64, (3.0, 4.0, 5.0)
# Distances in a session at which scores are compared.
_LAGS = (1, 2, 3, 4, 8, 32)
# Scores that are nearer to each other than this are the same; they are known far better.
_SAME = 1e-10
# The share of a last place of single precision within which a number is taken for one of that precision.
_GRAIN = 1e-3
# Alternatives that labels are held against: the share of answers that are the secret's own label instead, and the share
# of own labels that are missing.
SHARES = (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4, 0.7, 0.99)
_MISSING = (0.02, 0.1, 0.3, 0.6, 0.9)
N_ALTERNATIVES = len(SHARES) + len(_MISSING)
# The share of labels that are copied from another session.
_COPIED = (0.02, 0.1, 0.3, 0.9, 1 - 1e-6)


def of_secret(scores: Scores, groups: Sequence[str], n_models: int) -> Families:
    """Test that scores do not depend on the secret, nor lean anywhere."""
    if not scores.score.size:
        return {}
    kinds, block, n_of_block = kinds_of(scores, groups), *_blocks(scores)
    found: dict[str, float] = {}
    features = {"score": scores.score, "score towards the secret's label": scores.score * scores.side}
    for name, feature in features.items():
        sums = _sums(block, feature) / np.sqrt(n_of_block)
        found |= {
            f"{name}: mean": smallest_of(
                float(normal_p(feature[kind].sum() / np.sqrt(kind.sum()))) for kind in kinds
            ),
            f"{name}: by session": squares_p(float(sums @ sums), sums.size),
            f"{name}: in one session": smallest_of(normal_p(sums)),
            **_by_secret(name, feature, scores.secret, n_models),
        }
    size = size_scores(_sums(block, scores.score**2), n_of_block)
    secret = np.zeros(size.size, np.int64)
    secret[block] = scores.secret
    found["squared score: by session"] = squares_p(float(size @ size), size.size)
    return {**found, **_by_secret("squared score", size, secret, n_models)}


def of_size(scores: Scores, groups: Sequence[str]) -> Families:
    """Test that scores have variance 1: overall, of each kind of session, and in each block."""
    if not scores.score.size:
        return {}
    block, n_of_block = _blocks(scores)
    squares = _sums(block, scores.score**2)
    return {
        "variance": smallest_of(
            size_p(float((scores.score[kind] ** 2).sum()), int(kind.sum()))
            for kind in kinds_of(scores, groups)
        ),
        "variance within a session": smallest_of(
            size_p(float(total), int(n)) for total, n in zip(squares, n_of_block, strict=True)
        ),
    }


def of_shape(scores: Scores) -> Families:
    """Test that scores have the distribution of a normal, in its middle and in its tails."""
    n = scores.score.size
    if not n:
        return {}
    cells = np.minimum((ndtr(scores.score) * _N_CELLS).astype(np.int64), _N_CELLS - 1)
    counts = np.bincount(cells, minlength=_N_CELLS)
    tails = {
        f"beyond {tail:g} deviations": coin_p(
            int((np.abs(scores.score) > tail).sum()), n, 2 * float(ndtr(-tail))
        )
        for tail in _TAILS
    }
    return {"distribution": cells_p(counts, np.full(_N_CELLS, 1 / _N_CELLS)), **tails}


def of_freshness(scores: Scores) -> Families:
    """Test that no noise comes again, follows from other noise, or has fewer digits than it should."""
    n, sizes = scores.score.size, np.sort(np.abs(scores.score))
    if not n:
        return {}
    # The density of two sizes being the same is 1 / sqrt(pi).
    expected = n * n / 2 * 2 * _SAME / np.sqrt(np.pi)
    found = {"repeated noise": rare_p(int((np.diff(sizes) < _SAME).sum()), float(expected))}
    signs, is_large = scores.score > 0, np.abs(scores.score) > -float(ndtri(0.25))
    for lag in _LAGS:
        together = scores.session[lag:] == scores.session[:-lag]
        for coins, name in ((signs, "sign"), (is_large, "size")):
            same = (coins[lag:] == coins[:-lag])[together]
            found[f"{name} of the noise {lag} before"] = coin_p(int(same.sum()), same.size)
    for name, numbers in (("noise", scores.score), ("released numbers", scores.value)):
        found[f"{name} in single precision"] = coin_p(int(_is_single(numbers).sum()), n, 2 * _GRAIN)
    return found


def of_own_labels(scores: Scores, groups: Sequence[str]) -> Families:
    """Test that the secret's own label comes as often as the claim says, by kind of session and by label."""
    ratios: list[float] = []
    labels = [
        np.full(scores.label.size, fill_value=True),
        *(scores.label == c for c in np.unique(scores.label)),
    ]
    for kind in kinds_of(scores, groups):
        for label in labels:
            chosen = kind & label
            ratios += own_ratios(scores.value[chosen], scores.is_own[chosen])
    return {"frequency of the secret's own label": evidence_p(ratios)} if ratios else {}


def own_ratios(chances: FloatArray, is_own: BoolArray) -> list[float]:
    """Return log-likelihood ratios of the alternatives about the secret's own label, against what is claimed."""
    alternatives = [(1 - share) * chances + share for share in SHARES]
    alternatives += [(1 - share) * chances for share in _MISSING]
    with np.errstate(divide="ignore", invalid="ignore"):
        return [
            float(np.where(is_own, np.log(other / chances), np.log((1 - other) / (1 - chances))).sum())
            for other in alternatives
        ]


def of_twins(twins: Sequence[tuple[float, bool]]) -> Families:
    """Test that sessions with the same secret and questions do not give the same labels more often than by chance."""
    if not twins:
        return {}
    chances, agree = (np.array(column, np.float64) for column in zip(*twins, strict=True))
    ratios = [
        float(np.where(agree > 0, np.log((1 - share) + share / chances), np.log1p(-share)).sum())
        for share in _COPIED
    ]
    return {"labels copied from another session": evidence_p(ratios)}


def of_draws(secrets: Sequence[int], n_models: int) -> Families:
    """Test that secrets are drawn evenly from all subsets, and do not follow from the one before."""
    drawn = np.asarray(secrets, np.int64)
    if not drawn.size:
        return {}
    counts = np.bincount(drawn, minlength=n_models)
    steps = np.bincount(np.diff(drawn) % n_models, minlength=n_models)
    places = n_places(n_models)
    even = np.pad(np.ones(n_models), (0, places - n_models))
    odd = (drawn.size - walsh_sums(np.pad(counts, (0, places - n_models)))) / 2
    chance = (n_models - walsh_sums(even)) / 2 / n_models
    return {
        "one subset": _each_coin(counts, drawn.size, np.full(n_models, 1 / n_models)),
        "one parity of the index": _each_coin(odd.round().astype(np.int64), drawn.size, chance),
        "one difference of two in turn": _each_coin(steps, drawn.size - 1, np.full(n_models, 1 / n_models)),
    }


def _each_coin(hits: IntArray, n: int, chances: FloatArray) -> float:
    return smallest_of(coin_p(int(k), n, float(q)) for k, q in zip(hits, chances, strict=True) if 0 < q < 1)


def _by_secret(name: str, feature: FloatArray, secret: IntArray, n_models: int) -> Families:
    """Test sums of standard normals over each index of the secret, and over each parity of its bits."""
    places = n_places(n_models)
    sums, n = _sums(secret, feature, places), np.bincount(secret, minlength=places)
    seen = n > 0
    return {
        f"{name}: by secret": squares_p(float((sums[seen] ** 2 / n[seen]).sum()), int(seen.sum())),
        f"{name}: by a parity of the secret": smallest_of(normal_p(walsh_sums(sums) / np.sqrt(n.sum()))),
    }


def _sums(places: IntArray, values: FloatArray, n: int = 0) -> FloatArray:
    return np.asarray(np.bincount(places, values, n), np.float64)


def _blocks(scores: Scores) -> tuple[IntArray, IntArray]:
    """Return the block of each score, and the size of each block."""
    parts = scores.session * (1 + scores.position.max() // _BLOCK) + scores.position // _BLOCK
    _, block, n = np.unique(parts, return_inverse=True, return_counts=True)
    return block, n


def kinds_of(scores: Scores, groups: Sequence[str]) -> list[BoolArray]:
    """Tell of each kind of session which scores are of it."""
    names = np.asarray(groups)[scores.session] if scores.session.size else np.empty(0, str)
    return [names == name for name in np.unique(names)]


def _is_single(numbers: FloatArray) -> BoolArray:
    """Tell which numbers are those of single precision, as nearly as chance hits them in two of a thousand cases."""
    single = numbers.astype(np.float32)
    return np.asarray(np.abs(numbers - single) < _GRAIN * np.spacing(np.abs(single)).astype(np.float64))
