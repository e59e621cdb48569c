"""Votes in the form in which releases use them: the voted classes, the bulk, and who dissents.

Most models agree on most queries. Only the dissenters need an exponential and a place in a table; the bulk
has whatever belief they leave. A tally depends on the votes alone, so many trials can share one.
"""

from typing import NamedTuple

import numpy as np

from pacpredict.core.compiled import compiled, compiled_allocating, compiled_into_callers
from pacpredict.types import IntArray, Votes


class Tally(NamedTuple):
    """The votes on n queries. Query q's classes are classes[class_start[q]:class_start[q + 1]], ascending."""

    n_voted: IntArray  # (n,) distinct classes voted for; 1 where all models agree
    class_start: IntArray  # (n + 1,)
    classes: IntArray
    bulk: IntArray  # (n,) the slot (place among the voted classes) of all who do not dissent
    dissent_start: IntArray  # (n + 1,)
    dissenters: IntArray  # models, ascending within a query
    slots: IntArray  # of their classes


class Query(NamedTuple):
    """The votes on one query of a tally."""

    n_voted: int
    classes: IntArray
    bulk: int
    dissenters: IntArray
    slots: IntArray


@compiled_into_callers
def query_of(tally: Tally, q: int) -> Query:
    who = slice(tally.dissent_start[q], tally.dissent_start[q + 1])
    return Query(
        tally.n_voted[q],
        tally.classes[tally.class_start[q] : tally.class_start[q + 1]],
        tally.bulk[q],
        tally.dissenters[who],
        tally.slots[who],
    )


@compiled
def _bulk_class(votes: Votes) -> tuple[int, int]:
    """Pick a class as the bulk; returns it and how many vote otherwise.

    Any voted class may serve, the largest is fastest: the first model's, or if most differ from it, another.
    """
    bulk, n = votes[0], 0
    for i in range(votes.size):  # no early exit: the compiler turns this into vector instructions
        n += votes[i] != bulk
    if 2 * n > votes.size:
        for i in range(votes.size):
            if votes[i] != votes[0]:
                bulk = votes[i]
                break
        n = 0
        for i in range(votes.size):
            n += votes[i] != bulk
    return bulk, n


@compiled_allocating
def tally_votes(votes: Votes, n_classes: int) -> Tally:
    """Tally a (n_queries, n_models) matrix of class indices, which must have been checked."""
    n = votes.shape[0]
    n_voted, bulk = np.ones(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    dissent_start, class_start = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
    n_classes_at_most = _count_dissent(votes, n_classes, bulk, dissent_start)
    classes = np.empty(n_classes_at_most, dtype=np.int64)
    dissenters = np.empty(dissent_start[-1] + 1, dtype=np.int64)  # one more: see _find_dissent
    slots = np.empty(dissent_start[-1], dtype=np.int64)
    tally = Tally(n_voted, class_start, classes, bulk, dissent_start, dissenters, slots)
    _fill(tally, votes, np.empty(n_classes, dtype=np.int64))
    return tally


@compiled
def _count_dissent(votes: Votes, n_classes: int, bulk: IntArray, dissent_start: IntArray) -> int:
    """Pick every query's bulk and count who votes otherwise; returns how many classes there can be in all."""
    n_classes_at_most = 0
    for q in range(bulk.size):
        bulk[q], n = _bulk_class(votes[q])
        dissent_start[q + 1] = dissent_start[q] + n
        n_classes_at_most += min(n + 1, n_classes)
    return n_classes_at_most


@compiled
def _fill(tally: Tally, votes: Votes, slot_of: IntArray) -> None:
    """List dissenters and classes; the bulk's class becomes its slot."""
    n_voted, class_start, classes, bulk, dissent_start, dissenters, slots = tally
    for q in range(bulk.size):
        first, last, start = dissent_start[q], dissent_start[q + 1], class_start[q]
        if first == last:
            classes[start] = bulk[q]
            bulk[q] = 0
        else:
            _find_dissent(votes[q], bulk[q], dissenters[first : last + 1])
            n_voted[q] = _list_classes(votes[q], bulk[q], dissenters[first:last], slot_of, classes[start:])
            for j in range(first, last):
                slots[j] = slot_of[votes[q, dissenters[j]]]
            bulk[q] = slot_of[bulk[q]]
        class_start[q + 1] = start + n_voted[q]


@compiled
def _find_dissent(votes: Votes, bulk: int, dissenters: IntArray) -> None:
    """List the models that do not vote for the bulk.

    Without a branch: every model is written to the next free place, which moves on past dissenters only,
    so that the list needs one place more than there are dissenters.
    """
    n = 0
    for i in range(votes.size):
        dissenters[n] = i
        n += votes[i] != bulk


@compiled
def _list_classes(votes: Votes, bulk: int, dissenters: IntArray, slot_of: IntArray, classes: IntArray) -> int:
    """List the voted classes in ascending order and note the slot of each; returns how many there are."""
    for c in range(slot_of.size):
        slot_of[c] = -1
    slot_of[bulk] = 0
    for i in dissenters:
        slot_of[votes[i]] = 0
    k = 0
    for c in range(slot_of.size):
        if slot_of[c] == 0:
            slot_of[c] = k
            classes[k] = c
            k += 1
    return k
