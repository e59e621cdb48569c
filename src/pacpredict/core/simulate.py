"""Many independent deployments over one matrix of votes, compiled and on all cores.

Each trial draws a secret, answers the queries in random order (as often as asked, each time with fresh noise, as
the paper's experiments do), and is looked at whenever a checkpoint is passed. A trial depends on its own seed
alone, so results do not depend on the number of cores, and a run can be continued trial by trial.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from pacpredict.core import kernel
from pacpredict.core.belief import Belief
from pacpredict.core.compiled import compiled, compiled_allocating
from pacpredict.core.decode import DECODERS, Decoder, check_decoder
from pacpredict.core.release import answer_contested
from pacpredict.core.scalars import check_budget, check_model_count
from pacpredict.core.tally import Tally, tally_votes
from pacpredict.core.validate import FloatArray, IntArray, Votes, check_votes
from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidVotes


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened in each trial by each checkpoint; arrays of shape (n_trials, n_checkpoints)."""

    step_budget: float
    checkpoints: IntArray  # queries answered
    secrets: IntArray  # (n_trials,)
    correct: dict[Decoder, IntArray]  # answers that equal the true label
    contested: IntArray  # queries on which the models differed
    log_belief: FloatArray  # (n_trials, n_checkpoints, m)
    membership_accuracy: FloatArray | None  # of the optimal attack (Proposition 6.1), over all records

    def accuracy(self, decoder: Decoder = "argmax") -> FloatArray:
        check_decoder(decoder)
        return np.asarray(self.correct[decoder] / self.checkpoints, np.float64)

    def spent_nats(self, charging: str = "adaptive") -> FloatArray:
        """Charge contested queries only (`"adaptive"`) or all of them (`"flat"`)."""
        charged = (
            self.contested
            if charging == "adaptive"
            else np.broadcast_to(self.checkpoints, self.contested.shape)
        )
        return np.asarray(charged * self.step_budget, np.float64)

    def belief(self, trial: int, checkpoint: int = -1) -> Belief:
        return Belief(self.log_belief[trial, checkpoint])


def simulate(
    votes: npt.ArrayLike,
    labels: npt.ArrayLike,
    step_budget: float,
    *,
    n_trials: int,
    seed: int,
    n_classes: int | None = None,
    n_queries: int | None = None,
    checkpoints: Sequence[int] | None = None,
    membership: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Run independent trials of a deployment over the votes (n_rows, n_models) of m models.

    Parameters
    ----------
    labels
        The true label of each row, to measure accuracy.
    step_budget
        Nats per query. Here alone it may be infinite: the paper's baseline without noise.
    n_queries
        Queries per trial; by default one pass over the rows. More take further random passes.
    checkpoints
        Numbers of queries after which to look; by default at the end.
    membership
        Which subset has which record (n_models, n_records), to score the optimal membership attack.
    n_jobs
        Threads; by default one per core.
    progress
        Called with the number of finished trials.
    """
    if step_budget != math.inf:
        check_budget(step_budget, "step_budget")
    matrix, truth, n_classes = _check_rows(votes, labels, n_classes)
    total, stops = _check_stops(n_queries or matrix.shape[0], checkpoints)
    if n_trials < 1:
        raise InvalidInput(f"n_trials must be at least 1, got {n_trials}")
    members = None if membership is None else _check_membership(membership, matrix.shape[1])
    tally = tally_votes(matrix, n_classes)
    seeds = np.random.SeedSequence(seed).spawn(n_trials)

    def run(trial: int) -> "_Trial":
        return _run(tally, matrix, truth, step_budget, total, stops, members, seeds[trial])

    # Threads, not processes: the kernel releases the interpreter and all share the votes. One BLAS thread each.
    with threadpool_limits(1), ThreadPoolExecutor(n_jobs or os.cpu_count()) as pool:
        trials = list(_count(pool.map(run, range(n_trials)), progress))
    return Simulation(
        step_budget,
        stops,
        np.array([t.secret for t in trials]),
        {name: np.array([t.correct[column] for t in trials]) for column, name in enumerate(DECODERS)},
        np.array([t.contested for t in trials]),
        np.array([t.log_belief for t in trials]),
        None if members is None else np.array([t.membership_accuracy for t in trials]),
    )


@dataclass(frozen=True, eq=False)
class _Trial:
    secret: int
    correct: IntArray  # (n_decoders, n_checkpoints)
    contested: IntArray
    log_belief: FloatArray
    membership_accuracy: FloatArray | None


def _run(
    tally: Tally,
    votes: Votes,
    truth: IntArray,
    b: float,
    n_queries: int,
    stops: IntArray,
    members: FloatArray | None,
    seed: np.random.SeedSequence,
) -> _Trial:
    generator = np.random.Generator(np.random.SFC64(seed))
    m = votes.shape[1]
    secret = int(generator.integers(m))
    correct, contested = np.zeros((len(DECODERS), stops.size), np.int64), np.zeros(stops.size, np.int64)
    log_belief = np.empty((stops.size, m))
    _answer_stream(
        tally, votes, truth, secret, b, n_queries, stops, generator, correct, contested, log_belief
    )
    accuracy = None if members is None else _membership_accuracy(np.exp(log_belief), members, secret)
    return _Trial(secret, correct, contested, log_belief, accuracy)


@compiled_allocating
def _answer_stream(
    tally: Tally,
    votes: Votes,
    truth: IntArray,
    secret: int,
    b: float,
    n_queries: int,
    stops: IntArray,
    generator: np.random.Generator,
    correct: IntArray,
    contested: IntArray,
    history: FloatArray,
) -> None:
    """Answer random passes over the rows; write the counts and the belief as they are at each stop."""
    n_rows, m = votes.shape
    k_max = tally.n_voted.max()
    space = kernel.make_workspace(k_max, m)
    normals, noisy = np.empty(k_max), np.empty(k_max)
    log_belief = np.full(m, -math.log(m))
    order = np.arange(n_rows)
    right_argmax, right_map, n_contested, stop = 0, 0, 0, 0
    for t in range(n_queries):
        if t % n_rows == 0:
            generator.shuffle(order)
        q = order[t % n_rows]
        k = tally.n_voted[q]
        by_argmax = by_map = votes[q, secret]  # the answer where all agree, or where there is no noise
        n_contested += k > 1
        if k > 1 and b == math.inf:
            _rule_out(votes[q], secret, log_belief)
        elif k > 1:
            for i in range(k - 1):
                normals[i] = generator.standard_normal()
            by_argmax, by_map = answer_contested(
                tally, q, secret, b, normals[: k - 1], log_belief, noisy[: k - 1], space
            )
        right_argmax += by_argmax == truth[q]
        right_map += by_map == truth[q]
        if t + 1 == stops[stop]:
            correct[0, stop], correct[1, stop], contested[stop] = right_argmax, right_map, n_contested
            history[stop] = log_belief
            stop += 1


@compiled
def _rule_out(votes: IntArray, secret: int, log_belief: FloatArray) -> None:
    """Without noise an answer excludes every model that would have given another."""
    for i in range(votes.size):
        if votes[i] != votes[secret]:
            log_belief[i] = kernel.LOG_BELIEF_FLOOR
    kernel.normalise(log_belief)


def _membership_accuracy(beliefs: FloatArray, members: FloatArray, secret: int) -> FloatArray:
    """Score the rule of Proposition 6.1: a member if the belief says so with more than one half.

    `members` holds +1 for a record in the subset and -1 otherwise: the sign of the weighted sum decides.
    """
    guess = beliefs @ members > 0
    return np.asarray((guess == (members[secret] > 0)).mean(axis=1))


def _check_rows(
    votes: npt.ArrayLike, labels: npt.ArrayLike, n_classes: int | None
) -> tuple[Votes, IntArray, int]:
    truth = np.asarray(labels)
    if truth.ndim != 1 or truth.size == 0 or not np.issubdtype(truth.dtype, np.integer):
        raise InvalidVotes(
            f"labels must be a vector of class indices, got {truth.dtype} of shape {truth.shape}"
        )
    n_classes = n_classes or int(max(np.max(votes, initial=1), truth.max())) + 1
    matrix = check_votes(votes, n_classes)
    check_model_count(matrix.shape[1])
    if truth.size != matrix.shape[0]:
        raise InvalidVotes(f"there are {matrix.shape[0]} rows of votes but {truth.size} labels")
    return matrix, truth.astype(np.int64), n_classes


def _check_stops(n_queries: int, checkpoints: Sequence[int] | None) -> tuple[int, IntArray]:
    stops = np.unique(np.asarray([n_queries] if checkpoints is None else checkpoints, dtype=np.int64))
    if n_queries < 1 or stops.size == 0 or stops[0] < 1 or stops[-1] > n_queries:
        raise InvalidInput(
            f"checkpoints must lie between 1 and n_queries ({n_queries}), got {stops.tolist()}"
        )
    return int(stops[-1]), stops


def _check_membership(membership: npt.ArrayLike, m: int) -> FloatArray:
    members = np.asarray(membership)
    if members.ndim != 2 or members.shape[0] != m or members.shape[1] == 0:
        raise InvalidSubsets(f"membership must have shape ({m}, n_records), got {members.shape}")
    return np.where(members.astype(np.bool_), 1.0, -1.0)


def _count(trials: Iterator[_Trial], progress: Callable[[int], None] | None) -> Iterator[_Trial]:
    for finished, trial in enumerate(trials, start=1):
        if progress is not None:
            progress(finished)
        yield trial
