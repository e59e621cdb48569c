"""Eigenvectors of diag(w) - w wᵀ, the covariance of a one-hot vote with class masses w, in O(k²).

A diagonal matrix less a rank-one matrix has its eigenvalues between its poles, the masses, where a secular
equation vanishes: the heart of LAPACK's divide-and-conquer eigensolver. Solved directly for this matrix it is
several times faster than LAPACK, and accurate for masses of very different size.
"""

import math
from typing import NamedTuple

import numpy as np

from pacpredict.core.compiled import compiled
from pacpredict.core.validate import FloatArray, IntArray

# Masses closer than this fraction count as equal: exact eigenvectors of equal masses are known, and those of
# nearly equal ones differ from them by this fraction only.
EQUAL_MASSES = 1e-13

# Steps smaller than this fraction end the iteration. Convergence is cubic: the error is then of the order of its
# third power.
SMALL_STEP = 1e-4


class Scratch(NamedTuple):
    """Arrays to find axes in, so that a loop over queries allocates nothing."""

    order: IntArray
    start: IntArray
    ordered: FloatArray
    pole: FloatArray
    weight: FloatArray
    roots: FloatArray


@compiled
def make_scratch(k: int) -> Scratch:
    """Allocate for up to k classes."""
    return Scratch(
        np.empty(k, dtype=np.int64),
        np.empty(k + 1, dtype=np.int64),
        np.empty(k),
        np.empty(k),
        np.empty(k),
        np.empty(9 * (k + 3)),
    )


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
        weight[n_groups - 1] += ordered[c]
    start[n_groups] = ordered.size
    return n_groups


@compiled
def _between_poles(constant: float, lower: float, upper: float, below: float, above: float) -> float:
    """Solve constant + below / (lower - x) + above / (upper - x) = 0 for the x between the poles.

    One of the poles is 0. Of the two solutions of the quadratic this is the one between the poles, in the
    form that does not cancel.
    """
    linear = constant * (lower + upper) + below + above
    last = below * upper + above * lower
    square = linear * linear - 4.0 * constant * last
    root = math.sqrt(square if square > 0.0 else 0.0)
    numerator = 2.0 * last if linear > 0.0 else linear - root
    return numerator / (linear + root if linear > 0.0 else 2.0 * constant)


@compiled
def _start_halfway(pole: FloatArray, weight: FloatArray, table: FloatArray) -> None:
    """Choose the nearer pole of each eigenvalue as its origin, and a first guess.

    The guess is exact but for the other poles, whose part varies little from one pole to the next.
    """
    x, origin, lower, upper, low, high = table[0], table[1], table[2], table[3], table[4], table[5]
    value, gap = table[6], table[7]
    for r in range(x.size):
        i = min(r, pole.size - 2)  # the last columns only fill up a vector register
        gap[r] = pole[i] - pole[i + 1]
        origin[r] = pole[i + 1] + 0.5 * gap[r]
        value[r] = 0.0
    for j in range(pole.size):
        for r in range(x.size):
            value[r] += weight[j] / (pole[j] - origin[r])
    for r in range(x.size):
        i = min(r, pole.size - 2)
        near_lower = value[r] > 0.0
        rest = value[r] - 2.0 * (weight[i] - weight[i + 1]) / gap[r]
        origin[r] = pole[i + 1] if near_lower else pole[i]
        lower[r] = 0.0 if near_lower else -gap[r]
        upper[r] = gap[r] if near_lower else 0.0
        low[r], high[r] = 0.5 * lower[r], 0.5 * upper[r]
        guess = _between_poles(rest, lower[r], upper[r], weight[i + 1], weight[i])
        x[r] = guess if (low[r] < guess) & (guess < high[r]) else 0.5 * (low[r] + high[r])


@compiled
def _evaluate(pole: FloatArray, weight: FloatArray, table: FloatArray) -> None:
    """Compute the secular function at every x, with its slope and half its curvature."""
    x, origin, value, slope, curvature = table[0], table[1], table[6], table[7], table[8]
    for r in range(x.size):
        value[r], slope[r], curvature[r] = 0.0, 0.0, 0.0
    for j in range(pole.size):
        for r in range(x.size):
            inverse = 1.0 / ((pole[j] - origin[r]) - x[r])
            term = weight[j] * inverse
            value[r] += term
            slope[r] += term * inverse
            curvature[r] += term * inverse * inverse


@compiled
def _improve(table: FloatArray) -> int:
    """Move every x to its next value, inside its bracket; returns how many still move."""
    x, lower, upper, low, high = table[0], table[2], table[3], table[4], table[5]
    value, slope, curvature = table[6], table[7], table[8]
    moving = 0
    for r in range(x.size):
        low[r] = low[r] if value[r] > 0.0 else x[r]
        high[r] = x[r] if value[r] > 0.0 else high[r]
        to_lower, to_upper = lower[r] - x[r], upper[r] - x[r]
        below = to_lower * (curvature[r] * to_upper - slope[r]) / (upper[r] - lower[r])
        above = slope[r] - below
        constant = value[r] - below * to_lower - above * to_upper
        y = _between_poles(
            constant, lower[r], upper[r], below * to_lower * to_lower, above * to_upper * to_upper
        )
        small = abs(y - x[r]) <= SMALL_STEP * abs(x[r])
        moving += not small
        # A small step out of the bracket is rounding; a large one is replaced by bisection.
        x[r] = y if small | ((low[r] < y) & (y < high[r])) else 0.5 * (low[r] + high[r])
    return moving


@compiled
def _solve_secular(pole: FloatArray, weight: FloatArray, table: FloatArray) -> None:
    """Find the eigenvalue between each pole and the next: table[1] + table[0], the nearer pole and an offset.

    diag(w) - w wᵀ with sum(w) = 1 has its non-zero eigenvalues where f(x) = sum_j weight_j / (pole_j - x)
    vanishes: the null vector is divided out in advance. f increases between two poles. It is replaced by
    c + a / (lower - x) + b / (upper - x) with the value, slope and curvature of f at x, and the zero of that
    is the next x: cubic convergence (Borges & Gragg 1993). Offsets from the nearer pole keep close poles from
    cancelling. All eigenvalues move together, one per column, which the compiler turns into vector code.
    """
    _start_halfway(pole, weight, table)
    for _ in range(60):  # three or four are typical; a bracket halves in the worst case
        _evaluate(pole, weight, table)
        if not _improve(table):
            break


@compiled
def principal_axes(mass: FloatArray, axes: FloatArray, scratch: Scratch) -> int:
    """Fill column i of `axes` (k, k - 1) with the i-th eigenvector of diag(w) - w wᵀ on the sum-zero subspace.

    `mass` must be positive. Returns the class with the largest mass.
    """
    k = mass.size
    if k == 2:
        axes[0, 0], axes[1, 0] = math.sqrt(0.5), -math.sqrt(0.5)
        return 0 if mass[0] > mass[1] else 1
    order, start, ordered, pole = scratch.order, scratch.start, scratch.ordered[:k], scratch.pole
    _sort_descending(mass, order, ordered)
    n = _group_equal(ordered, start, pole, scratch.weight)
    done = _separate_equal(order, start[: n + 1], axes) if n < k else 0
    if n == 1:
        return order[0]
    width = (n + 2) // 4 * 4  # four double numbers to a vector register
    table = scratch.roots[: 9 * width].reshape(9, width)
    _solve_secular(pole[:n], scratch.weight, table)
    x, origin, squares = table[0], table[1], table[2]
    squares[:] = 0.0
    for g in range(n):  # components mass / (mass - eigenvalue), the same for equal masses
        for r in range(n - 1):
            component = pole[g] / ((pole[g] - origin[r]) - x[r])
            squares[r] += (start[g + 1] - start[g]) * component * component
            axes[order[start[g]], done + r] = component
        for c in range(start[g] + 1, start[g + 1]):
            axes[order[c], done:] = axes[order[start[g]], done:]
    for r in range(n - 1):
        squares[r] = 1.0 / math.sqrt(squares[r])
    for c in range(k):
        for r in range(n - 1):
            axes[c, done + r] *= squares[r]
    return order[0]


@compiled
def _separate_equal(order: IntArray, start: IntArray, axes: FloatArray) -> int:
    """Write the axes between equal masses, each class against the mean of those before it; returns their number."""
    i = 0
    for g in range(start.size - 1):
        for size in range(1, start[g + 1] - start[g]):
            length = math.sqrt(size * (size + 1.0))
            axes[:, i] = 0.0
            for c in range(start[g], start[g] + size):
                axes[order[c], i] = 1.0 / length
            axes[order[start[g] + size], i] = -size / length
            i += 1
    return i
