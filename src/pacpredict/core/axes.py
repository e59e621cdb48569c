"""Eigenvectors of diag(w) - w wᵀ, the covariance of a one-hot vote with class masses w, in O(k²).

A diagonal matrix less a rank-one matrix has its eigenvalues between its poles, the masses, where a secular
equation vanishes: the heart of LAPACK's divide-and-conquer eigensolver. Solved directly for this matrix it is
several times faster than LAPACK, and accurate for masses of very different size.
"""

import math
from typing import NamedTuple

import numpy as np

from pacpredict.core.compiled import compiled, compiled_allocating
from pacpredict.types import FloatArray, IntArray

# Masses closer than this fraction count as equal: exact eigenvectors of equal masses are known, and those of
# nearly equal ones differ from them by this fraction only.
EQUAL_MASSES = 1e-13

# Steps smaller than this fraction end the iteration. Convergence is cubic: the error is then of the order of
# its third power.
SMALL_STEP = 1e-4


# Eigenvalues are found in blocks of up to eight. A block is a table with a row per quantity and a column per
# eigenvalue. Rows lie a constant distance apart, which tells the compiler that they do not overlap: it turns
# every loop over columns into vector code, without checks at run time.
BLOCK = 8
ROWS = range(0, 11 * BLOCK, BLOCK)
X, ORIGIN, LOWER_POLE, UPPER_POLE, LOWER, UPPER, LOW, HIGH, VALUE, SLOPE, CURVATURE = ROWS
SQUARES = VALUE  # the row is free again once the eigenvalues are known


class Scratch(NamedTuple):
    """Arrays to find axes in, so that a loop over queries allocates nothing."""

    order: IntArray
    start: IntArray
    ordered: FloatArray
    pole: FloatArray
    weight: FloatArray
    block: FloatArray


@compiled_allocating
def make_scratch(k: int) -> Scratch:
    """Allocate for up to k classes."""
    return Scratch(
        np.empty(k, dtype=np.int64),
        np.empty(k + 1, dtype=np.int64),
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty(11 * BLOCK),
    )


@compiled
def padded(n: int) -> int:
    """Round up to whole vector registers of four numbers; a single number needs none."""
    return (n + 3) // 4 * 4 if n > 1 else n


@compiled
def _sort_descending(mass: FloatArray, order: IntArray, ordered: FloatArray) -> None:
    for c in range(mass.size):  # by counting: k is small, and there is no branch to mispredict
        rank = 0
        for j in range(mass.size):
            rank += (mass[j] > mass[c]) | ((mass[j] == mass[c]) & (j < c))
        order[rank] = c
        ordered[rank] = mass[c]


@compiled
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


@compiled
def _solve_quadratic(a: float, b: float, c: float) -> float:
    """Solve a y² - b y + c = 0 for the y where the left side decreases, in the form that does not cancel."""
    square = b * b - 4.0 * a * c
    root = math.sqrt(max(square, 0.0))
    total, difference = b + root, b - root
    numerator, denominator = (2.0 * c if b > 0.0 else difference), (total if b > 0.0 else 2.0 * a)
    return numerator / denominator


@compiled
def _start_halfway(pole: FloatArray, first: int, columns: int, block: FloatArray) -> None:
    """Place the eigenvalues from the first on halfway between their poles, measured from the lower one."""
    for r in range(columns):
        i = min(first + r, pole.size - 2)  # the last columns may only fill up a vector register
        upper, lower = pole[i], pole[i + 1]
        block[UPPER_POLE + r], block[LOWER_POLE + r] = upper, lower
        block[X + r], block[ORIGIN + r] = 0.5 * (upper - lower), lower


@compiled
def _evaluate(pole: FloatArray, weight: FloatArray, columns: int, block: FloatArray) -> None:
    """Compute the secular function, its slope and half its curvature, times |x|, |x|² and |x|³.

    With |x| as the unit of length nothing over- or underflows, however small the masses are.
    """
    for r in range(columns):
        block[VALUE + r], block[SLOPE + r], block[CURVATURE + r] = 0.0, 0.0, 0.0
    for j in range(pole.size):
        p, w = pole[j], weight[j]
        for r in range(columns):
            x = block[X + r]
            inverse = abs(x) / ((p - block[ORIGIN + r]) - x)
            term = w * inverse
            block[VALUE + r] += term
            block[SLOPE + r] += term * inverse
            block[CURVATURE + r] += term * inverse * inverse


@compiled
def _leave_halfway(columns: int, block: FloatArray) -> None:
    """Choose the nearer pole of each eigenvalue as its origin, which the sign of f halfway tells, and guess.

    The guess is the zero of the interpolant, as in `_improve`, but computed as a distance from the pole: that
    may be many orders of magnitude smaller than the way from here to there.
    """
    for r in range(columns):
        lower_pole, upper_pole, half = block[LOWER_POLE + r], block[UPPER_POLE + r], block[X + r]
        value, slope, curvature = block[VALUE + r], block[SLOPE + r], block[CURVATURE + r]
        sign, origin = (1.0, lower_pole) if value > 0.0 else (-1.0, upper_pole)
        # Neither coefficient is less than the weight of its own pole: rounding can say otherwise.
        below = max(0.5 * (slope - curvature), lower_pole) / upper_pole
        above = max(0.5 * (slope + curvature), upper_pole) / upper_pole
        constant = value / upper_pole + below - above
        linear = 2.0 * sign * constant + below + above
        y = half * _solve_quadratic(constant, linear, 2.0 * below if value > 0.0 else -2.0 * above)
        lower, upper = (sign - 1.0) * half, (sign + 1.0) * half
        low, high = 0.5 * lower, 0.5 * upper
        block[X + r] = y if (low <= y) & (y <= high) else 0.5 * (low + high)
        block[ORIGIN + r], block[LOWER + r], block[UPPER + r] = origin, lower, upper
        block[LOW + r], block[HIGH + r] = low, high


@compiled
def _improve(columns: int, block: FloatArray) -> int:
    """Move every x to its next value, inside its bracket; returns how many still move."""
    moving = 0
    for r in range(columns):
        x, low, high = block[X + r], block[LOW + r], block[HIGH + r]
        lower_pole, unit = block[LOWER_POLE + r], abs(x)
        value, slope = block[VALUE + r] / unit, block[SLOPE + r] / unit
        curvature = block[CURVATURE + r] / unit
        to_lower, to_upper = unit / (block[LOWER + r] - x), unit / (block[UPPER + r] - x)
        below = (curvature - slope * to_upper) / (to_lower - to_upper)
        above = slope - below
        constant = value * to_lower * to_upper - below * to_upper - above * to_lower
        step = _solve_quadratic(-constant, slope - value * (to_lower + to_upper), -value)
        y = x + unit * step
        small = abs(step) <= SMALL_STEP
        moving += not small
        # A small step out of the bracket is rounding; a large one is replaced by bisection, once the order of
        # magnitude is right: an x that is tiny beside the upper pole is about as large as the lower one.
        low, high = (low if value > 0.0 else x), (x if value > 0.0 else high)
        middle = lower_pole if (low < lower_pole) & (lower_pole < high) else 0.5 * (low + high)
        block[X + r] = y if small | ((low < y) & (y < high)) else middle
        block[LOW + r], block[HIGH + r] = low, high
    return moving


@compiled
def _solve_secular(pole: FloatArray, weight: FloatArray, first: int, columns: int, block: FloatArray) -> None:
    """Find the eigenvalues between each pole and the next, as the nearer pole (ORIGIN) and an offset (X).

    diag(w) - w wᵀ with sum(w) = 1 has its non-zero eigenvalues where f(x) = sum_j weight_j / (pole_j - x)
    vanishes: the null vector is divided out in advance. f increases between two poles. It is replaced by
    c + a / (lower - x) + b / (upper - x) with the value, slope and curvature of f at x, and the zero of that
    is the next x: cubic convergence (Borges & Gragg 1993). Offsets from the nearer pole keep close poles from
    cancelling.
    """
    _start_halfway(pole, first, columns, block)
    _evaluate(pole, weight, columns, block)
    _leave_halfway(columns, block)
    for _ in range(60):  # three are typical; a bracket halves in the worst case
        _evaluate(pole, weight, columns, block)
        if not _improve(columns, block):
            break


@compiled
def _write_eigenvectors(
    ordered: FloatArray,
    order: IntArray,
    n: int,
    first: int,
    columns: int,
    block: FloatArray,
    axes: FloatArray,
) -> None:
    """Write axes with components mass / (mass - eigenvalue), from the first on: n in all, then zeros."""
    for r in range(columns):
        block[SQUARES + r] = 0.0
    for c in range(ordered.size):
        mass, row = ordered[c], axes[order[c], first:]
        for r in range(columns):
            component = mass / ((mass - block[ORIGIN + r]) - block[X + r])
            block[SQUARES + r] += component * component
            row[r] = component
    for r in range(columns):
        block[SQUARES + r] = 1.0 / math.sqrt(block[SQUARES + r]) if first + r < n else 0.0
    for c in range(ordered.size):
        row = axes[c, first:]
        for r in range(columns):
            row[r] *= block[SQUARES + r]


@compiled
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
    _sort_descending(mass, order, ordered)
    n = _group_equal(ordered, start, scratch.pole, scratch.weight)
    pole = scratch.pole[:n]
    for first in range(0, n - 1, BLOCK):
        columns = min((n + 2 - first) // 4 * 4, BLOCK)
        _solve_secular(pole, scratch.weight, first, columns, scratch.block)
        _write_eigenvectors(ordered, order, n - 1, first, columns, scratch.block, axes)
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
        for size in range(1, start[g + 1] - start[g]):
            length = math.sqrt(size * (size + 1.0))
            for c in range(start[g], start[g] + size):
                axes[order[c], i] = 1.0 / length
            axes[order[start[g] + size], i] = -size / length
            i += 1
