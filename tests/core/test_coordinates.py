"""What is computed for many coordinates at once equals loops over single numbers, bit for bit."""

import math

import numpy as np
import pytest

from pacpredict.core.axes import EQUAL_MASSES, SMALL_STEP, make_scratch, padded, principal_axes
from pacpredict.core.coordinates import (
    add_noise,
    choose_variances,
    spread_of_coordinates,
    weigh_classes,
)

SIZES = [2, 3, 4, 5, 6, 9, 10, 13, 14, 18, 30]


def masses(k, rng):
    kind = rng.integers(3)
    raw = (10.0 ** -rng.uniform(0, 20, k), rng.integers(1, 30, k) / 128, rng.random(k))[kind]
    jitter = 1 + 10.0 ** -rng.integers(2, 12) * rng.random(k)  # no two count as equal
    mass = raw * jitter
    return np.maximum(mass / mass.sum(), 1e-24)


def solve_quadratic(a, b, c):
    sqrt = math.sqrt(max(b * b - 4.0 * a * c, 0.0))
    return 2.0 * c / (b + sqrt) if b > 0.0 else (b - sqrt) / (2.0 * a)


def evaluate(pole, origin, x):
    value = slope = curvature = 0.0
    for p in pole:
        inverse = abs(x) / ((p - origin) - x)
        value += p * inverse
        slope += p * inverse * inverse
        curvature += p * inverse * inverse * inverse
    return value, slope, curvature


def guess(lower_pole, upper_pole, half, value, slope, curvature):
    sign, origin = (1.0, lower_pole) if value > 0.0 else (-1.0, upper_pole)
    below = max(0.5 * (slope - curvature), lower_pole) / upper_pole
    above = max(0.5 * (slope + curvature), upper_pole) / upper_pole
    constant = value / upper_pole + below - above
    linear = 2.0 * sign * constant + below + above
    y = half * solve_quadratic(constant, linear, 2.0 * below if value > 0.0 else -2.0 * above)
    lower, upper = (sign - 1.0) * half, (sign + 1.0) * half
    low, high = 0.5 * lower, 0.5 * upper
    return origin, y if low <= y <= high else 0.5 * (low + high), lower, upper, low, high


def improve(x, low, high, lower_pole, lower, upper, value, slope, curvature):
    unit = abs(x)
    value, slope, curvature = value / unit, slope / unit, curvature / unit
    to_lower, to_upper = unit / (lower - x), unit / (upper - x)
    below = (curvature - slope * to_upper) / (to_lower - to_upper)
    above = slope - below
    constant = value * to_lower * to_upper - below * to_upper - above * to_lower
    step = solve_quadratic(-constant, slope - value * (to_lower + to_upper), -value)
    y, small = x + unit * step, abs(step) <= SMALL_STEP
    low, high = (low if value > 0.0 else x), (x if value > 0.0 else high)
    middle = lower_pole if low < lower_pole < high else 0.5 * (low + high)
    return (y if small or low < y < high else middle), low, high, small


def solve_block(pole, first, columns):
    """Solve for some eigenvalues, one number at a time; all go on until all have arrived."""
    states = []
    for i in range(first, first + columns):
        upper, lower = pole[i], pole[i + 1]
        half = 0.5 * (upper - lower)
        states.append([lower, *guess(lower, upper, half, *evaluate(pole, lower, half))])
    for _ in range(60):
        arrived = True
        for state in states:
            lower_pole, origin, x, lower, upper, low, high = state
            following, low, high, small = improve(
                x, low, high, lower_pole, lower, upper, *evaluate(pole, origin, x)
            )
            state[2], state[5], state[6], arrived = following, low, high, arrived and small
        if arrived:
            break
    return [(state[1], state[2]) for state in states]


def plain_axes(mass):
    order = np.argsort(-mass, kind="stable")
    pole = mass[order].tolist()
    axes = np.zeros((mass.size, mass.size - 1))
    for first in range(0, mass.size - 1, 8):
        for r, (origin, x) in enumerate(solve_block(pole, first, min(8, mass.size - 1 - first))):
            components = [m / ((m - origin) - x) for m in pole]
            squares = 0.0
            for component in components:
                squares += component * component
            axes[order, first + r] = [component * (1.0 / math.sqrt(squares)) for component in components]
    return axes


@pytest.mark.parametrize("k", SIZES[1:])
def test_axes_equal_a_loop_over_single_eigenvalues(k):
    """Every axis has the bits that plain arithmetic gives."""
    rng = np.random.default_rng(k)
    for _ in range(30):
        mass = masses(k, rng)
        ordered = np.sort(mass)
        if (np.diff(ordered) <= 2 * EQUAL_MASSES * ordered[1:]).any():
            continue
        axes = np.empty((k, padded(k - 1)))
        assert principal_axes(mass, axes, make_scratch(k)) == mass.argmax()
        np.testing.assert_array_equal(axes[:, : k - 1], plain_axes(mass))
        assert (axes[:, k - 1 :] == 0).all()


def plain_spread(axes, mass, top):
    deviations, moments, total = [], [], 0.0
    for i in range(mass.size - 1):
        mean = square = moment = 0.0
        for c in range(mass.size):
            difference = axes[c, i] - axes[top, i]
            mean += mass[c] * difference
            square += mass[c] * difference * difference
        for c in range(mass.size):
            difference = (axes[c, i] - axes[top, i]) - mean
            moment += mass[c] * difference * difference
        deviations.append(math.sqrt(square - mean * mean))
        moments.append(moment)
        total += deviations[-1]
    return deviations, moments, total


@pytest.mark.parametrize("k", SIZES)
def test_a_release_equals_loops_over_single_coordinates(k):
    """Spread, noise, release, exponents and entries have the bits that plain arithmetic gives."""
    rng, n, width = np.random.default_rng(k), k - 1, padded(k - 1)
    for slot in range(k):
        mass, axes = masses(k, rng), np.empty((k, width))
        top = principal_axes(mass, axes, make_scratch(k))
        deviation, moment, variance, noisy = np.empty((4, width))
        total = spread_of_coordinates(axes, mass, top, deviation, moment)
        deviations, moments, expected_total = plain_spread(axes, mass, top)
        assert total == expected_total
        np.testing.assert_array_equal(deviation[:n], deviations)
        np.testing.assert_array_equal(moment[:n], moments)
        leak, expected_leak = choose_variances(deviation, moment, total * 3, n, variance), 0.0
        np.testing.assert_array_equal(variance, [d * (total * 3) for d in deviations] + [1.0] * (width - n))
        for i in range(n):
            expected_leak += 0.5 * moments[i] / variance[i]
        assert leak == expected_leak
        normals = np.where(np.arange(width) < n, rng.standard_normal(width), 0.0)
        add_noise(axes, variance, k, slot, normals, noisy)
        np.testing.assert_array_equal(
            noisy[:n], [axes[slot, i] + math.sqrt(variance[i]) * normals[i] for i in range(n)]
        )
        assert (noisy[n:] == 0).all()
        gain, entries = np.empty((2, k))
        weigh_classes(axes, variance, noisy, top, gain, entries)
        for c in range(k):
            exponent = entry = 0.0
            for i in range(n):
                u = axes[c, i] - axes[top, i]
                exponent += ((noisy[i] - axes[top, i]) - 0.5 * u) * (u * (1.0 / variance[i]))
                entry += axes[c, i] * noisy[i]
            assert (gain[c], entries[c]) == (exponent, entry)


def test_padding_reaches_whole_lanes():
    """A single coordinate stands alone; more fill lanes of four."""
    assert [padded(n) for n in (0, 1, 2, 4, 5, 9)] == [0, 1, 4, 4, 8, 12]
