"""One trial of a simulated deployment: random passes over the same rows, compiled."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba.np.random.random_methods import random_interval

from pacpredict.core import kernel
from pacpredict.core.channel import uniform_of
from pacpredict.core.compiled import compiled, compiled_allocating
from pacpredict.core.masses import Holders
from pacpredict.core.membership import add_up, fill_tables
from pacpredict.core.release import BELIEVED, Ground, Terms, answer_contested, lay_ground
from pacpredict.core.tally import Tally, query_of, tally_votes
from pacpredict.types import FloatArray, IntArray, Votes

# What is known of a row before any trial: the models differ, or all agree on a wrong label (0) or on the right one.
_AGREED_RIGHT, _CONTESTED = 1, 2

# Beliefs are scored as multiples of this: sums of them below 2 are exact, so a tie is one in whichever order they are
# added up.
_GRAIN = 2.0**-52


class Rows(NamedTuple):
    """The rows that all trials ask about."""

    votes: Votes
    truth: IntArray
    tally: Tally
    known: npt.NDArray[np.uint8]  # (n_rows,) of the kinds above


def lay_out(votes: Votes, truth: IntArray, n_classes: int) -> Rows:
    tally = tally_votes(votes, n_classes)
    known = np.where(tally.n_voted > 1, _CONTESTED, _AGREED_RIGHT * (votes[:, 0] == truth)).astype(np.uint8)
    return Rows(votes, truth, tally, known)


@dataclass(frozen=True, eq=False)
class Trial:
    secret: int
    correct: IntArray  # (2, n_checkpoints)
    contested: IntArray
    believed: IntArray
    log_belief: FloatArray
    membership_accuracy: FloatArray | None
    answers: Votes  # (2, n_rows), or no rows if they are not kept


def run_trial(
    rows: Rows,
    terms: Terms,
    stops: IntArray,
    holders: Holders | None,
    kept: int,
    seed: np.random.SeedSequence,
) -> Trial:
    generator = np.random.Generator(np.random.SFC64(seed))
    m = rows.votes.shape[1]
    secret = int(generator.integers(m))
    counts, answers = np.zeros((4, stops.size), np.int64), np.zeros((2, kept), np.int16)
    log_belief = np.empty((stops.size, m))
    _answer_stream(rows, secret, terms, stops, generator, counts, log_belief, answers)
    accuracy = None if holders is None else _membership_accuracy(log_belief, holders, secret)
    return Trial(secret, counts[:2], counts[2], counts[3], log_belief, accuracy, answers)


@compiled_allocating
def _answer_stream(
    rows: Rows,
    secret: int,
    terms: Terms,
    stops: IntArray,
    generator: np.random.Generator,
    counts: IntArray,
    history: FloatArray,
    answers: Votes,
) -> None:
    """Answer random passes over the rows; write the counts and the belief as they are at each stop.

    Counted are right answers by either label of a release, contested queries, and answers from the belief.
    """
    n_rows, m = rows.votes.shape
    k_max = rows.tally.n_voted.max()
    log_belief, log_prior = np.full(m, -math.log(m)), np.full(m, -math.log(m))
    ground = lay_ground(log_belief, log_prior, k_max)
    normals, noisy = np.empty(k_max), np.empty(k_max)
    order, contested = np.arange(n_rows), np.empty(n_rows + 1, dtype=np.int64)
    count, done = np.zeros(4, dtype=np.int64), 0
    for stop in range(stops.size):
        while done < stops[stop]:
            if done % n_rows == 0:
                _shuffle(order, generator)
            first = done % n_rows
            asked = order[first : min(first + stops[stop] - done, n_rows)]
            n = _pass_agreed(asked, rows, contested, count, answers)
            _answer_contested(
                contested[:n], rows, secret, terms, generator, normals, ground, noisy, count, answers
            )
            done += asked.size
        counts[:, stop] = count
        history[stop] = log_belief


@compiled
def _shuffle(order: IntArray, generator: np.random.Generator) -> None:
    """Do what the generator's own method does, with the same numbers; compiled, that one takes three times as long."""
    for i in range(order.size - 1, 0, -1):
        j = np.int64(random_interval(generator.bit_generator, i))  # type: ignore[no-untyped-call]
        order[i], order[j] = order[j], order[i]


@compiled
def _pass_agreed(asked: IntArray, rows: Rows, contested: IntArray, count: IntArray, answers: Votes) -> int:
    """Count right answers where all agree, which need no release, and list the other rows; returns how many.

    Without a branch: every row is written to the next free place, which moves on past contested ones only, so
    that the list needs one place more.
    """
    n, right = 0, 0
    for q in asked:
        known = rows.known[q]
        contested[n] = q
        n += known == _CONTESTED
        right += known == _AGREED_RIGHT
    count[0] += right
    count[1] += right
    if answers.shape[1]:
        for q in asked:
            answers[0, q] = answers[1, q] = rows.votes[q, 0]
    return n


@compiled
def _answer_contested(
    asked: IntArray,
    rows: Rows,
    secret: int,
    terms: Terms,
    generator: np.random.Generator,
    normals: FloatArray,
    ground: Ground,
    noisy: FloatArray,
    count: IntArray,
    answers: Votes,
) -> None:
    draws = terms.finite or terms.epsilon < math.inf
    for q in asked:
        if terms.b == math.inf:
            first = second = np.int64(rows.votes[q, secret])
            _rule_out(rows.votes[q], secret, ground.log_belief)
        else:
            query = query_of(rows.tally, q)
            size = query.n_voted - 1
            if not terms.finite:
                for i in range(size):
                    normals[i] = generator.standard_normal()
            uniform = uniform_of(generator.random(), generator.random()) if draws else 0
            how, one, other = answer_contested(
                query, secret, terms, count[2], normals[:size], uniform, ground, noisy[:size]
            )
            first, second = query.classes[one], query.classes[other]
            count[3] += how == BELIEVED
        count[0] += first == rows.truth[q]
        count[1] += second == rows.truth[q]
        count[2] += 1
        if answers.shape[1]:
            answers[0, q], answers[1, q] = first, second


@compiled
def _rule_out(votes: IntArray, secret: int, log_belief: FloatArray) -> None:
    """Without noise an answer excludes every model that would have given another."""
    for i in range(votes.size):
        if votes[i] != votes[secret]:
            log_belief[i] = kernel.LOG_BELIEF_FLOOR
    kernel.normalise(log_belief)


def _membership_accuracy(log_beliefs: FloatArray, holders: Holders, secret: int) -> FloatArray:
    """Score the rule of Proposition 6.1: a member if the belief says so with more than one half."""
    members = (holders[:, secret // 8] >> (7 - secret % 8)) & 1
    tables, inside = np.empty((holders.shape[1], 256)), np.empty(len(holders))
    accuracy = np.empty(len(log_beliefs))
    for stop, log_belief in enumerate(log_beliefs):
        total = fill_tables(log_belief, tables, _GRAIN)
        add_up(holders, tables, inside)
        accuracy[stop] = ((inside > total - inside) == members).mean()
    return accuracy
