"""The unit that best explains the votes on a query, by popcounts of votes and membership bits.

Z_u^2 of a unit u and a class c depends on u only through t, the number of models that were trained on u, and n, those
of them that vote for c. So of all units with the same t only the smallest and the largest n matter, and integers are
compared until the very end. Z^2 is then one division of two integers that doubles hold exactly (up to 1,024 models),
rounded once: the same bits on every machine, whatever else is in the batch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numba.extending import intrinsic

from pacpredict.core.compiled import compiled, compiled_into_callers
from pacpredict.types import IntArray, Votes

Words = npt.NDArray[np.uint64]

UNITS_PER_BLOCK = 2048  # their counts stay in the first-level cache
NO_UNIT = -1
_NONE = -1  # in the place of a count of models
_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Holders(NamedTuple):
    """Which models were trained on each unit: bit i & 63 of words[i >> 6, u] for model i."""

    words: Words  # (n_words, n_units)
    n_trained: int  # models that were trained on a unit, if that is the same for all; else 0


class Scratch(NamedTuple):
    """Arrays for one query after the other."""

    tally: IntArray  # (n_classes,) votes for each class
    alive: Words  # (n_words,) models that have not been removed
    voters: Words  # (n_words,) those of them that vote for a class
    counts: Words  # (UNITS_PER_BLOCK,)
    trained: Words  # (UNITS_PER_BLOCK,)
    lowest: IntArray  # (n_models + 1,) of the units with t models, the smallest n
    highest: IntArray  # (n_models + 1,) and the largest


def _write_popcount(_typing: Any, word: Any) -> Any:
    return word(word), lambda _context, builder, _signature, arguments: builder.ctpop(arguments[0])


popcount = cast("Callable[[np.uint64], np.uint64]", intrinsic(_write_popcount))


@compiled
def leave_one_out(
    votes: Votes, holders: Holders, threshold: float, rounds: int, scratch: Scratch, changed: Votes
) -> None:
    """Write the leave-one-out votes (n_queries, n_models); `threshold` is the smallest Z^2 that removes a unit."""
    alive = scratch.alive
    for q in range(votes.shape[0]):
        for i in range(votes.shape[1]):
            changed[q, i] = votes[q, i]
        _revive(alive, votes.shape[1])
        removed = 0
        while removed < rounds:
            unit = most_influential(votes[q], holders, removed == 0, threshold, scratch)
            if unit == NO_UNIT:
                break
            for w in range(alive.size):
                alive[w] &= ~holders.words[w, unit]
            removed += 1
        if removed:
            _let_others_decide(votes[q], scratch, changed[q])


@compiled
def find_influential(votes: Votes, holders: Holders, scratch: Scratch, units: IntArray) -> None:
    """Write the unit with the largest Z for each query, however small that is; NO_UNIT where all models agree."""
    for q in range(votes.shape[0]):
        _revive(scratch.alive, votes.shape[1])
        units[q] = most_influential(votes[q], holders, True, 0.0, scratch)


@compiled
def _revive(alive: Words, n_models: int) -> None:
    for w in range(alive.size):
        left = n_models - 64 * w
        alive[w] = ~_ZERO if left >= 64 else (_ONE << np.uint64(left)) - _ONE


@compiled_into_callers
def _has(words: Words, i: int) -> bool:
    return (words[i >> 6] >> np.uint64(i & 63)) & _ONE != _ZERO


@compiled
def _count_votes(votes: Votes, alive: Words, tally: IntArray) -> int:
    """Count the votes of the models that are left; returns how many they are."""
    for c in range(tally.size):
        tally[c] = 0
    n = 0
    for i in range(votes.size):
        if _has(alive, i):
            tally[votes[i]] += 1
            n += 1
    return n


@compiled
def _let_others_decide(votes: Votes, scratch: Scratch, changed: Votes) -> None:
    """Give the models that were removed the plurality of the others; of equals the first class."""
    _count_votes(votes, scratch.alive, scratch.tally)
    winner = 0
    for c in range(1, scratch.tally.size):
        if scratch.tally[c] > scratch.tally[winner]:
            winner = c
    for i in range(votes.size):
        if not _has(scratch.alive, i):
            changed[i] = winner


@compiled
def most_influential(
    votes: Votes, holders: Holders, is_first: bool, threshold: float, scratch: Scratch
) -> int:
    """Return the unit with the largest Z among those that pass the threshold, of equals the first; or NO_UNIT."""
    m = _count_votes(votes, scratch.alive, scratch.tally)
    n_voted = 0
    for c in range(scratch.tally.size):
        n_voted += scratch.tally[c] > 0
    n_left = 1 if n_voted == 2 else n_voted  # of two classes either has the same Z
    n_trained = holders.n_trained if is_first else 0
    best, unit, c = threshold, NO_UNIT, 0
    while n_voted > 1 and n_left > 0:
        n_votes = scratch.tally[c]
        if n_votes > 0:
            n_left -= 1
            if n_trained == 0 or _reach(m, n_trained, n_votes) >= best:
                _mark_voters(votes, scratch.alive, c, scratch.voters)
                _find_extremes(holders.words, n_trained, m, scratch)
                score = _keep_best(m, n_votes, scratch)
                if score >= best:
                    first = _find_first(holders.words, n_trained, scratch)
                    unit = first if score > best or unit == NO_UNIT else min(first, unit)
                    best = score
        c += 1
    return unit


@compiled_into_callers
def _score(m: int, t: int, n_votes: int, n: int) -> float:
    """Compute Z^2 of a unit: m models, t of them trained on it, n_votes for a class, n of these by the t."""
    difference = np.float64(n * m - n_votes * t)
    return difference * difference * m / np.float64(t * (m - t) * n_votes * (m - n_votes))


@compiled
def _reach(m: int, t: int, n_votes: int) -> float:
    """Return the largest Z^2 that any unit could have: a small minority cannot be explained by anybody."""
    most, least = min(n_votes, t), max(0, n_votes - (m - t))
    return max(_score(m, t, n_votes, most), _score(m, t, n_votes, least))


@compiled
def _mark_voters(votes: Votes, alive: Words, c: int, voters: Words) -> None:
    for w in range(voters.size):
        voters[w] = _ZERO
    for i in range(votes.size):
        voters[i >> 6] |= np.uint64(votes[i] == c) << np.uint64(i & 63)
    for w in range(voters.size):
        voters[w] &= alive[w]


@compiled
def _count(words: Words, models: Words, start: int, counts: Words) -> None:
    """Count, of the units from `start` on, how many of some models were trained on each."""
    for u in range(counts.size):
        counts[u] = _ZERO
    for w in range(words.shape[0]):
        block, chosen = words[w, start : start + counts.size], models[w]
        for u in range(counts.size):
            counts[u] += popcount(block[u] & chosen)


@compiled
def _find_extremes(words: Words, n_trained: int, m: int, scratch: Scratch) -> None:
    """Write, for each t, the smallest and the largest number of voters among the models of a unit with t of them."""
    lowest, highest = scratch.lowest, scratch.highest
    for t in range(lowest.size):
        lowest[t], highest[t] = m + 1, _NONE
    for start in range(0, words.shape[1], UNITS_PER_BLOCK):
        size = min(UNITS_PER_BLOCK, words.shape[1] - start)
        counts = scratch.counts[:size]
        _count(words, scratch.voters, start, counts)
        if n_trained:
            low, high = _extremes(counts)
            lowest[n_trained] = min(lowest[n_trained], low)
            highest[n_trained] = max(highest[n_trained], high)
        else:
            trained = scratch.trained[:size]
            _count(words, scratch.alive, start, trained)
            for u in range(size):
                n_here, n = np.int64(trained[u]), np.int64(counts[u])
                lowest[n_here], highest[n_here] = min(lowest[n_here], n), max(highest[n_here], n)


@compiled
def _extremes(counts: Words) -> tuple[np.int64, np.int64]:
    low, high = counts[0], counts[0]
    for u in range(counts.size):
        low, high = min(low, counts[u]), max(high, counts[u])
    return np.int64(low), np.int64(high)


@compiled
def _keep_best(m: int, n_votes: int, scratch: Scratch) -> float:
    """Return the largest Z^2, and leave only what has it in the tables. Units in all models or none have no Z."""
    lowest, highest, best = scratch.lowest, scratch.highest, -1.0
    for t in range(1, m):
        if highest[t] != _NONE:
            best = max(best, _score(m, t, n_votes, lowest[t]), _score(m, t, n_votes, highest[t]))
    for t in range(lowest.size):
        known = 0 < t < m and highest[t] != _NONE
        if not known or _score(m, t, n_votes, lowest[t]) < best:
            lowest[t] = _NONE
        if not known or _score(m, t, n_votes, highest[t]) < best:
            highest[t] = _NONE
    return best


@compiled
def _find_first(words: Words, n_trained: int, scratch: Scratch) -> int:
    """Return the first unit that is in the tables."""
    for start in range(0, words.shape[1], UNITS_PER_BLOCK):
        size = min(UNITS_PER_BLOCK, words.shape[1] - start)
        counts, trained = scratch.counts[:size], scratch.trained[:size]
        _count(words, scratch.voters, start, counts)
        if n_trained == 0:
            _count(words, scratch.alive, start, trained)
        for u in range(size):
            t, n = np.int64(n_trained), np.int64(counts[u])
            if n_trained == 0:
                t = np.int64(trained[u])
            if n in (scratch.lowest[t], scratch.highest[t]):
                return start + u
    return NO_UNIT
