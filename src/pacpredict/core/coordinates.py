"""What a release computes for all coordinates of all voted classes: variances, noise, likelihoods.

A coordinate is a lane (`core.lanes`). The last block may have lanes without a coordinate, in which axes, noise and
release are 0: adding what they contribute changes no sum.
"""

from typing import Any

from pacpredict.core.compiled import compiled_into_callers
from pacpredict.core.lanes import (
    FEW,
    MANY,
    add_in_turn,
    few,
    load,
    many,
    numbers_from,
    one,
    root,
    store,
    where,
)
from pacpredict.types import FloatArray


@compiled_into_callers
def spread_of_coordinates(
    axes: FloatArray, mass: FloatArray, heaviest: int, deviation: FloatArray, moment: FloatArray
) -> float:
    """Compute the variance of each coordinate under the class masses (uᵀ Cov u of theory.md, 3), in two ways.

    Differences to the heaviest class are taken first: when that class has nearly all the mass, the variance
    is a small number made of small numbers, and nothing cancels. `deviation` is the root of the difference of mean
    square and squared mean, which chooses the noise. `moment` is the mean square about the mean: no less than the
    variance, however the mean is rounded, and a sum of positive terms, so right to `rounding_of_masses`. It certifies.
    Returns the sum of deviations.
    """
    total, n = 0.0, deviation.size
    if n == 1:
        return _spread_of_block(axes, mass, heaviest, 0, one(), total, deviation, moment)
    for first in range(0, n, MANY):
        if n - first > FEW:
            total = _spread_of_block(axes, mass, heaviest, first, many(), total, deviation, moment)
        else:
            total = _spread_of_block(axes, mass, heaviest, first, few(), total, deviation, moment)
    return total


@compiled_into_callers
def _spread_of_block(
    axes: FloatArray,
    mass: FloatArray,
    heaviest: int,
    first: int,
    zeros: Any,
    total: float,
    deviation: FloatArray,
    moment: FloatArray,
) -> float:
    origin = load(axes[heaviest], first, zeros)
    mean = square = about_mean = zeros
    for c in range(mass.size):
        difference = load(axes[c], first, zeros) - origin
        weighted = mass[c] * difference
        mean, square = mean + weighted, square + weighted * difference
    for c in range(mass.size):
        difference = (load(axes[c], first, zeros) - origin) - mean
        about_mean = about_mean + mass[c] * difference * difference
    deviations = root(square - mean * mean)
    store(deviation, first, deviations)
    store(moment, first, about_mean)
    added: float = add_in_turn(total, deviations)
    return added


@compiled_into_callers
def choose_variances(
    deviation: FloatArray, moment: FloatArray, factor: float, n_coordinates: int, variance: FloatArray
) -> float:
    """Make the noise as many times as large as the deviations; returns the sum of moment / (2 variance).

    Lanes without a coordinate get 1, by which one can divide.
    """
    leak, n = 0.0, variance.size
    if n == 1:
        return _variances_of_block(deviation, moment, factor, n_coordinates, 0, one(), leak, variance)
    for first in range(0, n, MANY):
        if n - first > FEW:
            leak = _variances_of_block(
                deviation, moment, factor, n_coordinates, first, many(), leak, variance
            )
        else:
            leak = _variances_of_block(deviation, moment, factor, n_coordinates, first, few(), leak, variance)
    return leak


@compiled_into_callers
def _variances_of_block(
    deviation: FloatArray,
    moment: FloatArray,
    factor: float,
    n_coordinates: int,
    first: int,
    zeros: Any,
    leak: float,
    variance: FloatArray,
) -> float:
    released = numbers_from(first, zeros) < n_coordinates
    variances = where(released, load(deviation, first, zeros) * factor, 1.0)
    store(variance, first, variances)
    added: float = add_in_turn(leak, 0.5 * load(moment, first, zeros) / variances)
    return added


@compiled_into_callers
def add_noise(
    axes: FloatArray, variance: FloatArray, n_voted: int, slot: int, normals: FloatArray, noisy: FloatArray
) -> None:
    """Write the noisy coordinates of the secret's label, where the secret votes `slot`: the release itself.

    All rows are read, and all but one multiplied by 0, so that no address depends on the secret.
    """
    if variance.size == 1:
        _add_noise_to_block(axes, variance, n_voted, slot, normals, 0, one(), noisy)
        return
    for first in range(0, variance.size, MANY):
        if variance.size - first > FEW:
            _add_noise_to_block(axes, variance, n_voted, slot, normals, first, many(), noisy)
        else:
            _add_noise_to_block(axes, variance, n_voted, slot, normals, first, few(), noisy)


@compiled_into_callers
def _add_noise_to_block(
    axes: FloatArray,
    variance: FloatArray,
    n_voted: int,
    slot: int,
    normals: FloatArray,
    first: int,
    zeros: Any,
    noisy: FloatArray,
) -> None:
    label = zeros
    for c in range(n_voted):
        label = label + load(axes[c], first, zeros) * (1.0 * (c == slot))
    deviation = root(load(variance, first, zeros))
    store(noisy, first, label + deviation * load(normals, first, zeros))


@compiled_into_callers
def weigh_classes(
    axes: FloatArray,
    variance: FloatArray,
    noisy: FloatArray,
    heaviest: int,
    gain: FloatArray,
    entries: FloatArray,
) -> None:
    """Compute for each voted class the exponent of eq. (4), less that of the heaviest class, and its entry of R_t.

    In coordinates relative to the heaviest class, -(g - u)² / (2 sigma²) exceeds -g² / (2 sigma²) by
    (g - u / 2) u / sigma². When the belief is nearly certain, the release is close to that class and the noise
    small: differences to it keep the digits that count.
    """
    gain[:] = 0.0
    entries[:] = 0.0
    if variance.size == 1:
        _weigh_by_block(axes, variance, noisy, heaviest, 0, one(), gain, entries)
        return
    for first in range(0, variance.size, MANY):
        if variance.size - first > FEW:
            _weigh_by_block(axes, variance, noisy, heaviest, first, many(), gain, entries)
        else:
            _weigh_by_block(axes, variance, noisy, heaviest, first, few(), gain, entries)


@compiled_into_callers
def _weigh_by_block(
    axes: FloatArray,
    variance: FloatArray,
    noisy: FloatArray,
    heaviest: int,
    first: int,
    zeros: Any,
    gain: FloatArray,
    entries: FloatArray,
) -> None:
    origin, released = load(axes[heaviest], first, zeros), load(noisy, first, zeros)
    observed, precision = released - origin, 1.0 / load(variance, first, zeros)
    for c in range(gain.size):
        row = load(axes[c], first, zeros)
        difference = row - origin
        exponents = (observed - 0.5 * difference) * (difference * precision)
        gain[c] = add_in_turn(gain[c], exponents)
        entries[c] = add_in_turn(entries[c], row * released)
