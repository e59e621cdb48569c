"""Whether the operating system gives what the mechanism takes it for: independent normals, and evenly spread numbers.

What is served cannot be repeated by a seed. So every comparison has a bound on how often it alarms without cause that
is exact or proved for any number of draws, and an audit alarms so less than once in a million times.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np

from pacpredict.core.channel import UNITY_BITS
from pacpredict.mechanism.entropy import Entropy, SystemEntropy
from pacpredict.types import FloatArray

# Of one comparison, of which there are about forty.
FALSE_ALARM = 1e-8
# Sources, as of several processes, and what is drawn from each: few at a time, as it is served.
_N_SOURCES, _N_DRAWS, _AT_A_TIME = 4, 2340, 7
# Distances at which numbers are compared: neighbours, those of one draw, blocks that a source makes, other sources.
_LAGS = (1, 2, 3, _AT_A_TIME, 1024, _N_DRAWS * _AT_A_TIME)


def check_entropy(make: Callable[[], Entropy] = SystemEntropy) -> tuple[str, list[str]]:
    """Draw from several sources, and compare mean, variance, distribution, repeats and what follows from neighbours.

    Returns what was looked at, and what is wrong with it.
    """
    from scipy.special import ndtr  # noqa: PLC0415  # takes time to import

    normals, uniforms = _drawn(make)
    spread = (uniforms + 0.5) * 2.0**-UNITY_BITS
    wrong = [f"normals: {what}" for what in _wrong_moments(normals)]
    if not wrong:
        shares = ndtr(normals)
        wrong += [f"normals: {what}" for what in _wrong_shares(shares, np.abs(normals))]
        wrong += [f"numbers: {what}" for what in _wrong_shares(spread, uniforms)]
        if _is_related((2 * shares - 1) * (2 * spread - 1)):
            wrong.append("normals and numbers follow from each other")
    looked_at = f"mean, variance, distribution, repeats and neighbours of {normals.size:,} normals and as many numbers"
    return looked_at, wrong


def _drawn(make: Callable[[], Entropy]) -> tuple[FloatArray, FloatArray]:
    normals, uniforms = [], []
    for _ in range(_N_SOURCES):
        source = make()
        for _ in range(_N_DRAWS):
            normals.append(source.normals(_AT_A_TIME))
            uniforms.append(source.uniforms(_AT_A_TIME))
    return np.concatenate(normals), np.concatenate(uniforms).astype(np.float64)


def _wrong_moments(normals: FloatArray) -> Iterator[str]:
    """Compare sum and sum of squares with their exact distributions."""
    from scipy.special import gammainc, gammaincc, ndtr  # noqa: PLC0415

    n, squares = normals.size, float(normals @ normals)
    if not 2 * ndtr(-abs(normals.sum()) / math.sqrt(n)) >= FALSE_ALARM:
        yield f"a mean of {normals.mean():.3g} instead of 0"
    if not 2 * min(gammainc(n / 2, squares / 2), gammaincc(n / 2, squares / 2)) >= FALSE_ALARM:
        yield f"a variance of {squares / n:.3g} instead of 1"


def _wrong_shares(shares: FloatArray, numbers: FloatArray) -> Iterator[str]:
    """Look at probabilities of being below, which should be independent and evenly spread from 0 to 1."""
    n = shares.size
    steps = np.arange(n + 1) / n
    ordered = np.sort(shares)
    distance = max(float((steps[1:] - ordered).max()), float((ordered - steps[:-1]).max()))
    if (
        2 * math.exp(-2 * n * distance**2) < FALSE_ALARM
    ):  # Dvoretzky, Kiefer and Wolfowitz, with Massart's constant
        yield f"a distribution that is {distance:.3g} off"
    if np.unique(numbers).size < n:  # of 53 bits or more each: by chance less than once in a million times
        yield "some came twice"
    centred = 2 * shares - 1
    for lag in _LAGS:
        # The second are sizes without signs, which are evenly spread from -1 to 1 as well.
        if any(_is_related(one[lag:] * one[:-lag]) for one in (centred, 2 * np.abs(centred) - 1)):
            yield f"they follow from those {lag} before"


def _is_related(products: FloatArray) -> bool:
    """Tell whether products of independent numbers from -1 to 1 are not 0 on average (Azuma and Hoeffding)."""
    return bool(2 * math.exp(-(float(products.sum()) ** 2) / (2 * products.size)) < FALSE_ALARM)
