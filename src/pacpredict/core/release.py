"""One pass over label votes: calibrate, answer and update, query by query (Algorithm 1, or the finite channel).

A contested query is answered with the secret's label, noisy or through a channel, if every outcome stays within the
limit on odds; else from the belief, which needs no secret and changes nothing.
"""

import math
from typing import NamedTuple

import numpy as np

from pacpredict.core import channel, coordinates, kernel, odds_limit
from pacpredict.core.axes import padded
from pacpredict.core.compiled import compiled, compiled_allocating, compiled_into_callers
from pacpredict.core.tally import Query, Tally, query_of, tally_votes
from pacpredict.types import FloatArray, IntArray, Votes

# Passed as the secret to replay a history: what was released is then read instead of drawn.
REPLAY = -1

# Every update of a belief rounds the logarithm of a probability above 1e-27 by at most 2^-45: half a unit in the last
# place of a number below 64, and as much again for the gain that is added.
_ROUNDING_OF_UPDATE = 2.0**-45

# How a query was answered: all models agree; with what the secret says; from the belief, without the secret.
AGREED, RELEASED, BELIEVED = 0, 1, 2


class Terms(NamedTuple):
    """What every release of a deployment keeps to."""

    b: float  # nats at most
    finite: bool  # a label through a finite channel, instead of Gaussian noise
    epsilon: float = math.inf  # limit on the spread of log-likelihoods over the subsets
    delta: float = 0.0  # with Gaussian noise, the probability that one release may pass it
    flat: bool = False  # charge also where all agree
    fair: bool = False  # with Gaussian noise, as much in every direction


class Ground(NamedTuple):
    """What a release stands on: the belief, which it updates in place, the prior, and memory to work in."""

    log_belief: FloatArray
    log_prior: FloatArray
    spread: FloatArray  # (1,) of log-likelihoods: a bound, which grows until all subsets are looked at again
    space: kernel.Workspace


@compiled_allocating
def lay_ground(log_belief: FloatArray, log_prior: FloatArray, k: int) -> Ground:
    """Allocate what releases with up to k voted classes need."""
    return Ground(log_belief, log_prior, np.full(1, np.inf), kernel.make_workspace(k, log_belief.size))


@compiled_into_callers
def answer_contested(
    query: Query,
    secret: int,
    terms: Terms,
    contested: int,
    normals: FloatArray,
    uniform: int,
    ground: Ground,
    noisy: FloatArray,
) -> tuple[int, int, int]:
    """Answer a query on which the models differ, the one after `contested` others.

    Returns how it was answered and the slots of two labels: by argmax and by map, or twice the same. `noisy` receives
    the noisy coordinates of a Gaussian release; a draw takes `uniform`, a number below 2^62. In a replay `noisy` holds
    the former already, and `uniform` is the slot that was drawn. The secret enters only as the slot that is released.
    """
    mass = ground.space.mass[: query.n_voted]
    kernel.sum_masses(ground.log_belief, query.dissenters, query.slots, query.bulk, mass)
    if terms.finite:
        return _answer_through_channel(query, secret, terms, contested, uniform, ground)
    return _answer_with_noise(query, secret, terms, contested, normals, uniform, ground, noisy)


@compiled
def _fits(reach: float, terms: Terms, contested: int, ground: Ground) -> bool:
    """Tell whether log-likelihoods may move against each other by `reach`, whichever subsets they are of.

    A bound from earlier releases is never below the spread itself, so the decision does not depend on batches.
    """
    if ground.spread[0] + reach > terms.epsilon < math.inf:
        ground.spread[0] = odds_limit.spread_of(ground.log_belief, ground.log_prior, contested)
    return ground.spread[0] + reach <= terms.epsilon


@compiled
def _fill_rooms(query: Query, terms: Terms, contested: int, ground: Ground) -> float:
    """Write the room of each voted class into the workspace; returns the least."""
    k, space = query.n_voted, ground.space
    return odds_limit.fill_rooms(
        *(ground.log_belief, ground.log_prior, query, contested, terms.epsilon),
        *(space.entries[:k], space.gain[:k], space.room[:k]),
    )


@compiled_into_callers
def _answer_with_noise(
    query: Query,
    secret: int,
    terms: Terms,
    contested: int,
    normals: FloatArray,
    uniform: int,
    ground: Ground,
    noisy: FloatArray,
) -> tuple[int, int, int]:
    k, space = query.n_voted, ground.space
    mass, gain, axes, variance = space.mass[:k], space.gain[:k], space.axes, space.variance[: padded(k - 1)]
    heaviest = kernel.calibrate_masses(mass, terms.b, terms.fair, axes, variance, space)
    if terms.epsilon < math.inf:
        if terms.fair and k > 2:
            reach = odds_limit.reach_of_fair_noise(k, variance[0], terms.delta)
        else:
            reach = odds_limit.reach_of_noise(axes[:k], variance, heaviest, terms.delta)
        if not _fits(reach, terms, contested, ground) and reach > _fill_rooms(
            query, terms, contested, ground
        ):
            return _answer_from_belief(query, secret, uniform, ground)
    if secret != REPLAY:
        slot = kernel.slot_of(secret, query.dissenters, query.slots, query.bulk)
        _fill_up(space.normals, normals, k - 1)
        coordinates.add_noise(axes, variance, k, slot, space.normals, space.noisy)
        for i in range(k - 1):
            noisy[i] = space.noisy[i]
    else:
        _fill_up(space.noisy, noisy, k - 1)
    entries = space.entries[:k]
    coordinates.weigh_classes(axes, variance, space.noisy, heaviest, gain, entries)
    by_map, log_evidence = kernel.decode_map(mass, gain)
    ground.spread[0] += odds_limit.most_moved(
        -kernel.smallest(gain), contested
    )  # decode_map has made the largest gain 0
    _learn(query, gain, log_evidence, contested, ground)
    return RELEASED, kernel.decode_argmax(entries), by_map


@compiled_into_callers
def _fill_up(lanes: FloatArray, values: FloatArray, n: int) -> None:
    """Copy n values, and zeros to the end of the last lanes."""
    for i in range(padded(n)):
        lanes[i] = values[i] if i < n else 0.0


@compiled
def _answer_through_channel(
    query: Query, secret: int, terms: Terms, contested: int, uniform: int, ground: Ground
) -> tuple[int, int, int]:
    k, space = query.n_voted, ground.space
    mass, weights, gain = space.mass[:k], space.weights[:k], space.gain[:k]
    margin = kernel.rounding_of_masses(ground.log_belief.size) + contested * _ROUNDING_OF_UPDATE
    space.room[:k] = np.inf
    coupled = channel.couple(mass, terms.b, space.room[:k], margin, weights, gain)
    if not _fits(channel.reach_of_weights(weights, coupled), terms, contested, ground):
        _fill_rooms(query, terms, contested, ground)
        coupled = channel.couple(mass, terms.b, space.room[:k], margin, weights, gain)
    if coupled == 0:
        return _answer_from_belief(query, secret, uniform, ground)
    drawn = uniform
    if secret != REPLAY:
        slot = kernel.slot_of(secret, query.dissenters, query.slots, query.bulk)
        drawn = channel.draw_slot(weights, slot, uniform)
    odds = coupled / weights[drawn]
    gain[:] = 0.0
    gain[drawn] = math.log1p(odds)
    ground.spread[0] += odds_limit.most_moved(gain[drawn], contested)
    _learn(query, gain, math.log1p(mass[drawn] * odds), contested, ground)
    return RELEASED, drawn, drawn


@compiled
def _answer_from_belief(query: Query, secret: int, uniform: int, ground: Ground) -> tuple[int, int, int]:
    """Answer without the secret: a label as likely as the belief says, and the likeliest one, as map has it."""
    mass, drawn = ground.space.mass[: query.n_voted], uniform
    if secret != REPLAY:
        weights = ground.space.weights[: query.n_voted]
        channel.fill_weights(mass, 0, weights)
        drawn = channel.draw_slot(weights, 0, uniform)
    return BELIEVED, drawn, channel.heaviest(mass)


@compiled
def _answer_unasked(query: Query, secret: int, uniform: int, ground: Ground) -> tuple[int, int, int]:
    """Answer from the belief when nothing may be charged any more, whatever the limit on odds says."""
    mass = ground.space.mass[: query.n_voted]
    kernel.sum_masses(ground.log_belief, query.dissenters, query.slots, query.bulk, mass)
    return _answer_from_belief(query, secret, uniform, ground)


@compiled_into_callers
def _learn(query: Query, gain: FloatArray, log_evidence: float, contested: int, ground: Ground) -> None:
    kernel.update_belief(
        ground.log_belief, query.dissenters, query.slots, query.bulk, gain, log_evidence, ground.space.dissent
    )
    kernel.keep_normalised(ground.log_belief, contested + 1)


@compiled_allocating
def answer_all(
    tally: Tally,
    secret: int,
    terms: Terms,
    contested: int,
    left: int,
    normals: FloatArray,
    uniforms: IntArray,
    log_belief: FloatArray,
    log_prior: FloatArray,
    noisy: FloatArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Answer the queries of a tally in turn, after `contested` contested ones and with `left` steps to charge.

    Returns how each was answered, the steps that it is charged, and labels (2, n_queries). For each contested query
    `normals` holds n_voted - 1 numbers and `noisy` may receive as many, one query after the other, and `uniforms` holds
    one; a query on which all agree uses none and leaves the belief as it is. With no steps left the belief answers.
    """
    n = tally.n_voted.size
    how, charged, labels = np.empty(n, np.int64), np.empty(n, np.int64), np.empty((2, n), np.int64)
    ground = lay_ground(log_belief, log_prior, tally.n_voted.max())
    _answer_each(
        tally, secret, terms, contested, left, normals, uniforms, ground, noisy, how, charged, labels
    )
    return how, charged, labels


@compiled
def _answer_each(
    tally: Tally,
    secret: int,
    terms: Terms,
    contested: int,
    left: int,
    normals: FloatArray,
    uniforms: IntArray,
    ground: Ground,
    noisy: FloatArray,
    how: IntArray,
    charged: IntArray,
    labels: IntArray,
) -> None:
    used, asked = 0, 0
    for q in range(tally.n_voted.size):
        query = query_of(tally, q)
        size = query.n_voted - 1
        first = second = 0
        if size == 0:
            how[q] = AGREED
        else:
            uniform = uniforms[asked] if uniforms.size else 0
            mine, released = normals[used : used + size], noisy[used : used + size]
            if left > 0:
                how[q], first, second = answer_contested(
                    query, secret, terms, contested + asked, mine, uniform, ground, released
                )
            else:
                how[q], first, second = _answer_unasked(query, secret, uniform, ground)
            used, asked = used + size, asked + 1
        charged[q] = (how[q] == RELEASED) | ((how[q] == AGREED) & terms.flat & (left > 0))
        left -= charged[q]
        labels[0, q], labels[1, q] = query.classes[first], query.classes[second]


@compiled_allocating
def count_voted(votes: Votes, n_classes: int) -> IntArray:
    """Count the distinct classes voted for in each row: what a charge and the size of the noise depend on."""
    return tally_votes(votes, n_classes).n_voted


@compiled_allocating
def answer_votes(
    votes: Votes,
    n_classes: int,
    secret: int,
    b: float,
    finite: bool,
    epsilon: float,
    delta: float,
    flat: bool,
    fair: bool,
    contested: int,
    left: int,
    normals: FloatArray,
    uniforms: IntArray,
    log_belief: FloatArray,
    log_prior: FloatArray,
    noisy: FloatArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Answer rows of votes in turn. Tallying again is cheaper than handing a tally, or any tuple, through Python."""
    terms, tally = Terms(b, finite, epsilon, delta, flat, fair), tally_votes(votes, n_classes)
    return answer_all(tally, secret, terms, contested, left, normals, uniforms, log_belief, log_prior, noisy)
