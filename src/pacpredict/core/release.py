"""One pass over label votes: calibrate, add noise, decode and update, query by query (Algorithm 1)."""

import numpy as np

from pacpredict.core import kernel
from pacpredict.core.axes import padded
from pacpredict.core.compiled import compiled, compiled_allocating
from pacpredict.core.tally import Tally, tally_votes
from pacpredict.core.validate import FloatArray, IntArray, Votes

# Passed as the secret to replay a history: the noisy coordinates are then read instead of drawn.
REPLAY = -1


@compiled
def answer_contested(
    tally: Tally,
    q: int,
    secret: int,
    b: float,
    normals: FloatArray,
    log_belief: FloatArray,
    noisy: FloatArray,
    space: kernel.Workspace,
) -> tuple[int, int]:
    """Answer query q, on which the models differ; returns the labels by argmax and by map.

    `noisy` receives the release, the k - 1 noisy coordinates, and `log_belief` is updated in place. The secret
    enters only as the slot that is noised.
    """
    k, bulk, classes = tally.n_voted[q], tally.bulk[q], tally.classes[tally.class_start[q] :]
    who = slice(tally.dissent_start[q], tally.dissent_start[q + 1])
    dissenters, slots = tally.dissenters[who], tally.slots[who]
    mass, gain, axes, variance = space.mass[:k], space.gain[:k], space.axes, space.variance[: padded(k - 1)]
    kernel.sum_masses(log_belief, dissenters, slots, bulk, mass)
    heaviest = kernel.calibrate_masses(mass, b, axes, variance, space)
    if secret != REPLAY:
        slot = bulk
        for j in range(slots.size):  # the same work whoever the secret is
            slot = slots[j] if dissenters[j] == secret else slot
        kernel.add_noise(axes, variance, slot, normals, noisy)
    kernel.log_likelihoods(axes, variance, noisy, heaviest, gain, space.coordinates)
    by_map, log_evidence = kernel.decode_map(mass, gain)
    kernel.update_belief(log_belief, dissenters, slots, bulk, gain, log_evidence, space.dissent)
    return classes[kernel.decode_argmax(axes, noisy, k)], classes[by_map]


@compiled_allocating
def answer_all(
    tally: Tally, secret: int, b: float, normals: FloatArray, log_belief: FloatArray, noisy: FloatArray
) -> IntArray:
    """Answer the queries of a tally in turn; returns labels (2, n_queries), by argmax and by map.

    For each contested query `normals` holds n_voted - 1 numbers and `noisy` receives as many, one query after the
    other; a query on which all agree uses none and leaves the belief as it is.
    """
    labels = np.empty((2, tally.n_voted.size), dtype=np.int64)
    space = kernel.make_workspace(tally.n_voted.max(), log_belief.size)
    _answer_each(tally, secret, b, normals, log_belief, noisy, labels, space)
    return labels


@compiled
def _answer_each(
    tally: Tally,
    secret: int,
    b: float,
    normals: FloatArray,
    log_belief: FloatArray,
    noisy: FloatArray,
    labels: IntArray,
    space: kernel.Workspace,
) -> None:
    used = 0
    for q in range(tally.n_voted.size):
        k = tally.n_voted[q]
        if k == 1:
            labels[0, q] = labels[1, q] = tally.classes[tally.class_start[q]]
            continue
        mine, out = normals[used : used + k - 1], noisy[used : used + k - 1]
        labels[0, q], labels[1, q] = answer_contested(tally, q, secret, b, mine, log_belief, out, space)
        used += k - 1


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
    normals: FloatArray,
    log_belief: FloatArray,
    noisy: FloatArray,
) -> IntArray:
    """Answer rows of votes in turn. Tallying again is cheaper than handing a tally through Python."""
    return answer_all(tally_votes(votes, n_classes), secret, b, normals, log_belief, noisy)
