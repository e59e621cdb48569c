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

from pacpredict import defaults
from pacpredict.core import kernel
from pacpredict.core.belief import Belief
from pacpredict.core.channel import uniform_of
from pacpredict.core.compiled import compiled, compiled_allocating
from pacpredict.core.decode import DECODERS_OF, Decoder, Mechanism
from pacpredict.core.exposure import Bits, Membership
from pacpredict.core.release import BELIEVED, Ground, Terms, answer_contested, lay_ground
from pacpredict.core.scalars import check_budget, check_delta, check_epsilon, check_model_count
from pacpredict.core.tally import Tally, query_of, tally_votes
from pacpredict.core.validate import check_votes
from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidVotes
from pacpredict.types import BoolArray, FloatArray, IntArray, Votes


@dataclass(frozen=True, eq=False)
class Simulation:
    """What happened in each trial by each checkpoint; arrays of shape (n_trials, n_checkpoints)."""

    step_budget: float
    checkpoints: IntArray  # queries answered
    secrets: IntArray  # (n_trials,)
    correct: dict[Decoder, IntArray]  # by decoder, answers that equal the true label
    contested: IntArray  # queries on which the models differed
    believed: IntArray  # of these, answered from the belief because of the limit on odds
    log_belief: FloatArray  # (n_trials, n_checkpoints, m)
    membership_accuracy: FloatArray | None  # of the optimal attack (Proposition 6.1), over all records
    answers: dict[Decoder, Votes] | None = (
        None  # by decoder, (n_trials, n_rows): what each row was answered last
    )

    def accuracy(self, decoder: Decoder = "argmax") -> FloatArray:
        if decoder not in self.correct:
            raise InvalidInput(f"this simulation has the decoders {', '.join(self.correct)}, not {decoder!r}")
        return np.asarray(self.correct[decoder] / self.checkpoints, np.float64)

    def spent_nats(self, charging: str = "adaptive") -> FloatArray:
        """Charge contested queries only (`"adaptive"`) or all of them (`"flat"`), but none answered from the belief."""
        charged = self.contested if charging == "adaptive" else self.checkpoints
        return np.asarray((charged - self.believed) * self.step_budget, np.float64)

    def belief(self, trial: int, checkpoint: int = -1) -> Belief:
        return Belief(self.log_belief[trial, checkpoint])


def simulate(
    votes: npt.ArrayLike,
    labels: npt.ArrayLike,
    step_budget: float,
    *,
    n_trials: int,
    seed: int,
    mechanism: Mechanism = "gaussian",
    exposure: float | None = None,
    delta: float = defaults.EXPOSURE_DELTA,
    n_classes: int | None = None,
    n_queries: int | None = None,
    checkpoints: Sequence[int] | None = None,
    membership: npt.ArrayLike | None = None,
    keep_answers: bool = False,
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
    mechanism
        `"gaussian"` noise, whose releases are decoded by argmax and by map, or the finite `"channel"`, whose labels
        are sampled.
    exposure
        The limit on how far anybody's log-odds of membership may move; needs `membership`. By default none.
    delta
        With Gaussian noise, the probability that a trial may pass that limit; shared among its queries.
    n_queries
        Queries per trial; by default one pass over the rows. More take further random passes.
    checkpoints
        Numbers of queries after which to look; by default at the end.
    membership
        Which subset has which record (n_models, n_records), to score the optimal membership attack.
    keep_answers
        Keep the label that each row got, to see which are right.
    n_jobs
        Threads; by default one per core.
    progress
        Called with the number of finished trials.
    """
    if step_budget != math.inf:
        check_budget(step_budget, "step_budget")
    if mechanism not in DECODERS_OF:
        raise InvalidInput(f"mechanism must be one of {', '.join(DECODERS_OF)}, got {mechanism!r}")
    matrix, truth, n_classes = _check_rows(votes, labels, n_classes)
    total, stops = _check_stops(n_queries or matrix.shape[0], checkpoints)
    if n_trials < 1:
        raise InvalidInput(f"n_trials must be at least 1, got {n_trials}")
    members = None if membership is None else _check_membership(membership, matrix.shape[1])
    terms = _terms(step_budget, mechanism, exposure, delta, total)
    bits = _watched(members, terms, matrix.shape[1])
    signs = None if members is None else np.where(members, 1.0, -1.0)
    kept = matrix.shape[0] if keep_answers else 0
    tally = tally_votes(matrix, n_classes)
    seeds = np.random.SeedSequence(seed).spawn(n_trials)

    def run(trial: int) -> "_Trial":
        return _run(tally, matrix, truth, terms, bits, stops, signs, kept, seeds[trial])

    # Threads, not processes: the kernel releases the interpreter and all share the votes. One BLAS thread each.
    with threadpool_limits(1), ThreadPoolExecutor(n_jobs or os.cpu_count()) as pool:
        trials = list(_count(pool.map(run, range(n_trials)), progress))
    return Simulation(
        step_budget,
        stops,
        np.array([t.secret for t in trials]),
        {name: np.array([t.correct[row] for t in trials]) for row, name in enumerate(DECODERS_OF[mechanism])},
        np.array([t.contested for t in trials]),
        np.array([t.believed for t in trials]),
        np.array([t.log_belief for t in trials]),
        None if members is None else np.array([t.membership_accuracy for t in trials]),
        {name: np.array([t.answers[row] for t in trials]) for row, name in enumerate(DECODERS_OF[mechanism])}
        if keep_answers
        else None,
    )


def _terms(b: float, mechanism: Mechanism, epsilon: float | None, delta: float, n_queries: int) -> Terms:
    limit = math.inf if epsilon is None else check_epsilon(epsilon)
    per_step = check_delta(delta) / n_queries
    if mechanism == "gaussian" and limit < math.inf and per_step == 0:
        raise InvalidInput(
            "Gaussian noise keeps a limit on odds but for a probability delta, which must be above 0"
        )
    return Terms(b, mechanism == "channel", limit, per_step)


def _watched(members: BoolArray | None, terms: Terms, m: int) -> Bits:
    """Return the units whose odds are watched: none without a limit."""
    if terms.epsilon < math.inf and members is None:
        raise InvalidInput("a limit on odds needs membership: which subset has which record")
    watched = np.empty((m, 0), np.bool_) if members is None or terms.epsilon == math.inf else members
    return Membership.of(watched, Belief.uniform(m)).bits


@dataclass(frozen=True, eq=False)
class _Trial:
    secret: int
    correct: IntArray  # (2, n_checkpoints)
    contested: IntArray
    believed: IntArray
    log_belief: FloatArray
    membership_accuracy: FloatArray | None
    answers: Votes  # (2, n_rows), or no rows if they are not kept


def _run(
    tally: Tally,
    votes: Votes,
    truth: IntArray,
    terms: Terms,
    bits: Bits,
    stops: IntArray,
    signs: FloatArray | None,
    kept: int,
    seed: np.random.SeedSequence,
) -> _Trial:
    generator = np.random.Generator(np.random.SFC64(seed))
    m = votes.shape[1]
    secret = int(generator.integers(m))
    counts, answers = np.zeros((4, stops.size), np.int64), np.zeros((2, kept), np.int16)
    log_belief = np.empty((stops.size, m))
    _answer_stream(tally, votes, truth, secret, terms, bits, stops, generator, counts, log_belief, answers)
    accuracy = None if signs is None else _membership_accuracy(np.exp(log_belief), signs, secret)
    return _Trial(secret, counts[:2], counts[2], counts[3], log_belief, accuracy, answers)


@compiled_allocating
def _answer_stream(
    tally: Tally,
    votes: Votes,
    truth: IntArray,
    secret: int,
    terms: Terms,
    bits: Bits,
    stops: IntArray,
    generator: np.random.Generator,
    counts: IntArray,
    history: FloatArray,
    answers: Votes,
) -> None:
    """Answer random passes over the rows; write the counts and the belief as they are at each stop.

    Counted are right answers by either label of a release, contested queries, and answers from the belief.
    """
    n_rows, m = votes.shape
    k_max = tally.n_voted.max()
    log_belief, track = np.full(m, -math.log(m)), np.array([terms.epsilon, 0.0])
    ground = lay_ground(log_belief, track, bits, terms, k_max)
    normals, noisy = np.empty(k_max), np.empty(k_max)
    order, count = np.arange(n_rows), np.zeros(4, dtype=np.int64)
    done = 0
    for stop in range(stops.size):
        while done < stops[stop]:
            if done % n_rows == 0:
                generator.shuffle(order)
            first = done % n_rows
            rows = order[first : min(first + stops[stop] - done, n_rows)]
            _answer_rows(
                tally, votes, truth, rows, secret, terms, generator, normals, ground, noisy, count, answers
            )
            done += rows.size
        counts[:, stop] = count
        history[stop] = log_belief


@compiled
def _answer_rows(
    tally: Tally,
    votes: Votes,
    truth: IntArray,
    rows: IntArray,
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
    for q in rows:
        query = query_of(tally, q)
        k = query.n_voted
        first = second = np.int64(votes[q, secret])  # the answer where all agree, or where there is no noise
        if k > 1 and terms.b == math.inf:
            _rule_out(votes[q], secret, ground.log_belief)
        elif k > 1:
            if not terms.finite:
                for i in range(k - 1):
                    normals[i] = generator.standard_normal()
            uniform = uniform_of(generator.random(), generator.random()) if draws else 0
            how, one, other = answer_contested(
                query, secret, terms, count[2], normals[: k - 1], uniform, ground, noisy[: k - 1]
            )
            first, second = query.classes[one], query.classes[other]
            count[3] += how == BELIEVED
        count[0] += first == truth[q]
        count[1] += second == truth[q]
        count[2] += k > 1
        if answers.shape[1]:
            answers[0, q], answers[1, q] = first, second


@compiled
def _rule_out(votes: IntArray, secret: int, log_belief: FloatArray) -> None:
    """Without noise an answer excludes every model that would have given another."""
    for i in range(votes.size):
        if votes[i] != votes[secret]:
            log_belief[i] = kernel.LOG_BELIEF_FLOOR
    kernel.normalise(log_belief)


def _membership_accuracy(beliefs: FloatArray, signs: FloatArray, secret: int) -> FloatArray:
    """Score the rule of Proposition 6.1: a member if the belief says so with more than one half.

    `signs` holds +1 for a record in the subset and -1 otherwise: the sign of the weighted sum decides.
    """
    guess = beliefs @ signs > 0
    return np.asarray((guess == (signs[secret] > 0)).mean(axis=1))


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


def _check_membership(membership: npt.ArrayLike, m: int) -> BoolArray:
    members = np.asarray(membership)
    if members.ndim != 2 or members.shape[0] != m or members.shape[1] == 0:
        raise InvalidSubsets(f"membership must have shape ({m}, n_records), got {members.shape}")
    return members.astype(np.bool_)


def _count(trials: Iterator[_Trial], progress: Callable[[int], None] | None) -> Iterator[_Trial]:
    for finished, trial in enumerate(trials, start=1):
        if progress is not None:
            progress(finished)
        yield trial
