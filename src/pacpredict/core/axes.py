"""Orthonormal axes of the sum-zero space of k voted classes: eigenvectors of the votes' covariance, or fixed ones.

The covariance of a one-hot vote with class masses w is diag(w) - w wᵀ. A diagonal matrix less a rank-one matrix has its
eigenvalues between its poles, the masses, where a secular equation vanishes: the heart of LAPACK's divide-and-conquer
eigensolver. Solved directly for this matrix, in O(k²), it is several times faster than LAPACK, and accurate for masses
of very different size.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pacpredict.core.compiled import compiled, compiled_allocating, compiled_into_callers
from pacpredict.core.lanes import (
    FEW,
    MANY,
    all_of,
    few,
    load,
    magnitude,
    many,
    numbers_from,
    root,
    store,
    where,
)
from pacpredict.types import FloatArray, IntArray

# Masses closer than this fraction count as equal: exact eigenvectors of equal masses are known, and those of
# nearly equal ones differ from them by this fraction only.
EQUAL_MASSES = 1e-13

# Steps smaller than this fraction end the iteration. Convergence is cubic: the error is then of the order of
# its third power.
SMALL_STEP = 1e-4


class Scratch(NamedTuple):
    """Arrays to find axes in, so that a loop over queries allocates nothing; all have room for whole lanes."""

    order: IntArray
    start: IntArray
    mass: FloatArray
    rank: FloatArray
    ordered: FloatArray
    pole: FloatArray
    weight: FloatArray


@compiled_allocating
def make_scratch(k: int) -> Scratch:
    """Allocate for up to k classes."""
    n = k + MANY
    return Scratch(
        np.empty(k, dtype=np.int64),
        np.empty(k + 1, dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
        np.empty(n),
    )


@compiled
def padded(n: int) -> int:
    """Round up to whole lanes; a single number needs no others beside it."""
    return (n + FEW - 1) // FEW * FEW if n > 1 else n


@compiled_into_callers
def _sort_descending(mass: FloatArray, scratch: Scratch) -> None:
    """Order masses by counting those before each: k is small, and there is no branch to mispredict."""
    for c in range(mass.size):
        scratch.mass[c] = mass[c]
    for first in range(0, mass.size, MANY):
        own, place = load(scratch.mass, first, many()), numbers_from(first, many())
        rank = many()
        for j in range(mass.size):
            before = (own < mass[j]) | ((own == mass[j]) & (place > j))
            rank = rank + where(before, 1.0, 0.0)
        store(scratch.rank, first, rank)
    for c in range(mass.size):
        rank_of_c = int(scratch.rank[c])
        scratch.order[rank_of_c] = c
        scratch.ordered[rank_of_c] = mass[c]


@compiled_into_callers
def _group_equal(ordered: FloatArray, start: IntArray, pole: FloatArray, weight: FloatArray) -> int:
    """Group (nearly) equal masses; group g is ordered[start[g]:start[g + 1]]."""
    n_groups = 0
    for c in range(ordered.size):
        if c == 0 or pole[n_groups - 1] - ordered[c] > EQUAL_MASSES * pole[n_groups - 1]:
            start[n_groups] = c
            pole[n_groups] = ordered[c]
            weight[n_groups] = 0.0
            n_groups += 1
        ordered[c] = pole[n_groups - 1]
        weight[n_groups - 1] += ordered[c]
    start[n_groups] = ordered.size
    return n_groups


@compiled_into_callers
def _solve_quadratic(a: Any, b: Any, c: Any) -> Any:
    """Solve a y² - b y + c = 0 for the y where the left side decreases, in the form that does not cancel."""
    square = b * b - 4.0 * a * c
    sqrt = root(where(square > 0.0, square, 0.0))
    total, difference = b + sqrt, b - sqrt
    positive = b > 0.0
    return where(positive, 2.0 * c, difference) / where(positive, total, 2.0 * a)


@compiled_into_callers
def _evaluate(pole: FloatArray, weight: FloatArray, origin: Any, x: Any) -> Any:
    """Compute the secular function, its slope and half its curvature, times |x|, |x|² and |x|³.

    With |x| as the unit of length nothing over- or underflows, however small the masses are.
    """
    unit = magnitude(x)
    value = slope = curvature = 0.0 * unit
    for j in range(pole.size):
        inverse = unit / ((pole[j] - origin) - x)
        term = weight[j] * inverse
        value = value + term
        term = term * inverse
        slope = slope + term
        curvature = curvature + term * inverse
    return value, slope, curvature


@compiled_into_callers
def _guess(lower_pole: Any, upper_pole: Any, half: Any, value: Any, slope: Any, curvature: Any) -> Any:
    """Choose the nearer pole of each eigenvalue as its origin, which the sign of f halfway tells, and guess.

    The guess is the zero of the interpolant, as in `_improve`, but computed as a distance from the pole: that
    may be many orders of magnitude smaller than the way from here to there. Returns origin, guess and bracket.
    """
    positive = value > 0.0
    sign, origin = where(positive, 1.0, -1.0), where(positive, lower_pole, upper_pole)
    # Neither coefficient is less than the weight of its own pole: rounding can say otherwise.
    below, above = 0.5 * (slope - curvature), 0.5 * (slope + curvature)
    below = where(below > lower_pole, below, lower_pole) / upper_pole
    above = where(above > upper_pole, above, upper_pole) / upper_pole
    constant = value / upper_pole + below - above
    linear = 2.0 * sign * constant + below + above
    y = half * _solve_quadratic(constant, linear, where(positive, 2.0 * below, -2.0 * above))
    low, high = 0.5 * ((sign - 1.0) * half), 0.5 * ((sign + 1.0) * half)
    return origin, where((low <= y) & (y <= high), y, 0.5 * (low + high)), low, high


@compiled_into_callers
def _improve(
    x: Any,
    low: Any,
    high: Any,
    lower_pole: Any,
    lower: Any,
    upper: Any,
    value: Any,
    slope: Any,
    curvature: Any,
) -> Any:
    """Find the next x, inside the bracket; returns it, the bracket, and whether all have arrived."""
    unit = magnitude(x)
    value, slope, curvature = value / unit, slope / unit, curvature / unit
    to_lower, to_upper = unit / (lower - x), unit / (upper - x)
    below = (curvature - slope * to_upper) / (to_lower - to_upper)
    above = slope - below
    constant = value * to_lower * to_upper - below * to_upper - above * to_lower
    step = _solve_quadratic(-1.0 * constant, slope - value * (to_lower + to_upper), -1.0 * value)
    y = x + unit * step
    small = magnitude(step) <= SMALL_STEP
    # A small step out of the bracket is rounding; a large one is replaced by bisection, once the order of
    # magnitude is right: an x that is tiny beside the upper pole is about as large as the lower one.
    positive = value > 0.0
    low, high = where(positive, low, x), where(positive, x, high)
    inside = (low < lower_pole) & (lower_pole < high)
    middle = where(inside, lower_pole, 0.5 * (low + high))
    return where(small | ((low < y) & (y < high)), y, middle), low, high, all_of(small)


@compiled_into_callers
def _solve_secular(pole: FloatArray, weight: FloatArray, upper_pole: Any, lower_pole: Any) -> Any:
    """Find the eigenvalue between each pole and the next, as the nearer pole and an offset.

    diag(w) - w wᵀ with sum(w) = 1 has its non-zero eigenvalues where f(x) = sum_j weight_j / (pole_j - x)
    vanishes: the null vector is divided out in advance. f increases between two poles. It is replaced by
    c + a / (lower - x) + b / (upper - x) with the value, slope and curvature of f at x, and the zero of that
    is the next x: cubic convergence (Borges & Gragg 1993). Offsets from the nearer pole keep close poles from
    cancelling. The first x is halfway.
    """
    half = 0.5 * (upper_pole - lower_pole)
    value, slope, curvature = _evaluate(pole, weight, lower_pole, half)
    origin, x, low, high = _guess(lower_pole, upper_pole, half, value, slope, curvature)
    lower, upper = low + low, high + high
    for _ in range(60):  # three are typical; a bracket halves in the worst case
        value, slope, curvature = _evaluate(pole, weight, origin, x)
        x, low, high, arrived = _improve(x, low, high, lower_pole, lower, upper, value, slope, curvature)
        if arrived:
            break
    return origin, x


@compiled_into_callers
def _write_axes(
    pole: FloatArray,
    weight: FloatArray,
    ordered: FloatArray,
    order: IntArray,
    first: int,
    zeros: Any,
    axes: FloatArray,
) -> None:
    """Write as many axes as there are lanes, from the first on; those past the last eigenvalue become 0.

    Components are mass / (mass - eigenvalue).
    """
    n = pole.size - 1
    wanted = numbers_from(first, zeros) < n
    upper_pole = where(wanted, load(pole, first, zeros), pole[n - 1])
    lower_pole = where(wanted, load(pole, first + 1, zeros), pole[n])
    origin, x = _solve_secular(pole, weight, upper_pole, lower_pole)
    squares = zeros
    for c in range(ordered.size):
        component = ordered[c] / ((ordered[c] - origin) - x)
        squares = squares + component * component
        store(axes[order[c]], first, component)
    scale = where(wanted, 1.0 / root(squares), 0.0)
    for c in range(ordered.size):
        store(axes[c], first, load(axes[c], first, zeros) * scale)


@compiled_into_callers
def principal_axes(mass: FloatArray, axes: FloatArray, scratch: Scratch) -> int:
    """Fill column i of `axes` with the i-th eigenvector of diag(w) - w wᵀ on the sum-zero subspace.

    `mass` must be positive. The columns past k - 1, up to padded(k - 1), become 0; `axes` may be larger
    than that. Returns the class with the largest mass.
    """
    k, width = mass.size, padded(mass.size - 1)
    if k == 2:  # whatever the masses
        axes[0, 0], axes[1, 0] = math.sqrt(0.5), -math.sqrt(0.5)
        return 0 if mass[0] > mass[1] else 1
    order, start, ordered = scratch.order[:k], scratch.start, scratch.ordered[:k]
    _sort_descending(mass, scratch)
    n = _group_equal(ordered, start, scratch.pole, scratch.weight)
    pole, weight = scratch.pole[:n], scratch.weight
    for first in range(0, n - 1, MANY):
        if n - 1 - first > FEW:
            _write_axes(pole, weight, ordered, order, first, many(), axes)
        else:
            _write_axes(pole, weight, ordered, order, first, few(), axes)
    if n < k:
        _separate_equal(order, start[: n + 1], n - 1, width, axes)
    heaviest: int = order[0]
    return heaviest


@compiled
def _separate_equal(order: IntArray, start: IntArray, first: int, width: int, axes: FloatArray) -> None:
    """Write axes between equal masses, from the first on: each class against the mean of those before it."""
    for c in range(order.size):
        for i in range(first, width):
            axes[c, i] = 0.0
    i = first
    for g in range(start.size - 1):
        group = order[start[g] : start[g + 1]]
        _write_helmert(group, i, axes)
        i += group.size - 1


@compiled_into_callers
def _write_helmert(group: IntArray, first: int, axes: FloatArray) -> None:
    """Write Helmert's axes of some classes, from the first on; entries of other classes stay as they are."""
    for size in range(1, group.size):
        length, i = math.sqrt(size * (size + 1.0)), first + size - 1
        for c in range(size):
            axes[group[c], i] = 1.0 / length
        axes[group[size], i] = -size / length


@compiled_into_callers
def helmert_axes(mass: FloatArray, axes: FloatArray, scratch: Scratch) -> int:
    """Fill `axes` likewise with fixed axes of the sum-zero subspace: each class against the mean of those before it.

    Noise of equal variances is the same along any orthonormal axes, and these cost least. Returns the class with the
    largest mass.
    """
    k, order, heaviest = mass.size, scratch.order[: mass.size], 0
    for c in range(k):
        order[c] = c
        if mass[c] > mass[heaviest]:
            heaviest = c
        for i in range(padded(k - 1)):
            axes[c, i] = 0.0
    _write_helmert(order, 0, axes)
    return heaviest
