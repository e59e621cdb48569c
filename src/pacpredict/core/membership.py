"""Sums of a belief over the subsets that have a unit, for many units at once."""

import math

from pacpredict.core.compiled import compiled
from pacpredict.core.masses import Holders
from pacpredict.types import FloatArray


@compiled
def fill_tables(log_belief: FloatArray, tables: FloatArray, grain: float = 0.0) -> float:
    """Write the belief in each of the 256 sets of eight models, for all bytes of a row; returns the belief in all.

    With a grain, a power of 2, every probability is first rounded to a multiple of it.
    """
    total = 0.0
    for j in range(tables.shape[0]):
        table, size = tables[j], 1
        table[0] = 0.0
        for i in range(8 * j + 7, 8 * j - 1, -1):  # the last of eight models is the lowest bit
            p = math.exp(log_belief[i]) if i < log_belief.size else 0.0
            if grain > 0.0:
                p = round(p / grain) * grain
            for low in range(size):
                table[size + low] = table[low] + p
            size *= 2
        total += table[255]
    return total


@compiled
def add_up(holders: Holders, tables: FloatArray, inside: FloatArray) -> None:
    """Write the belief that each unit is in the training set."""
    for u in range(inside.size):
        inside[u] = 0.0
        for j in range(tables.shape[0]):
            inside[u] += tables[j, holders[u, j]]
