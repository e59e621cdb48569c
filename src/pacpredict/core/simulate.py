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

from pacpredict import defaults
from pacpredict.core.belief import Belief
from pacpredict.core.decode import DECODERS_OF, Decoder, Mechanism, NoiseRule, check_noise
from pacpredict.core.masses import holders_of
from pacpredict.core.release import Terms
from pacpredict.core.scalars import check_budget, check_delta, check_epsilon, check_model_count
from pacpredict.core.trial import Trial, lay_out, run_trial
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
    noise: NoiseRule = defaults.NOISE,
    odds_limit: float | None = None,
    delta: float = defaults.ODDS_DELTA,
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
    noise
        Whether Gaussian noise is the `"least"` in all, the paper's, or `"fair"`, equal in all directions.
    odds_limit
        How far the log-odds of any statement about the secret may move. By default there is no limit.
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
        Threads; by default, and by joblib's -1, one per core.
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
    terms = _terms(step_budget, mechanism, odds_limit, delta, total)._replace(fair=check_noise(noise))
    holders = None if members is None else holders_of(members)
    kept = matrix.shape[0] if keep_answers else 0
    rows = lay_out(matrix, truth, n_classes)
    seeds = np.random.SeedSequence(seed).spawn(n_trials)

    def run(trial: int) -> Trial:
        return run_trial(rows, terms, stops, holders, kept, seeds[trial])

    # Threads, not processes: the kernel releases the interpreter and all share the votes.
    with ThreadPoolExecutor(_n_threads(n_jobs)) as pool:
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


def _n_threads(n_jobs: int | None) -> int:
    return n_jobs if n_jobs is not None and n_jobs > 0 else os.cpu_count() or 1


def _terms(b: float, mechanism: Mechanism, epsilon: float | None, delta: float, n_queries: int) -> Terms:
    limit = math.inf if epsilon is None else check_epsilon(epsilon)
    per_step = check_delta(delta) / n_queries
    if mechanism == "gaussian" and limit < math.inf and per_step == 0:
        raise InvalidInput(
            "Gaussian noise keeps a limit on odds but for a probability delta, which must be above 0"
        )
    return Terms(b, mechanism == "channel", limit, per_step)


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


def _count(trials: Iterator[Trial], progress: Callable[[int], None] | None) -> Iterator[Trial]:
    for finished, trial in enumerate(trials, start=1):
        if progress is not None:
            progress(finished)
        yield trial
