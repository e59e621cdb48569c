"""Train 128 small classifiers on halves of a pool, answer 1,000 queries privately, and print what leaked.

The data are the handwritten digits that come with scikit-learn: 797 records are the pool, 1,000 are queries.
Three deployments answer the same queries, one for each decoder; each draws a secret of its own from the operating
system's entropy, as a real one would.

    python examples/private_session.py [--json] [--help]
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from joblib import Parallel, cpu_count, delayed
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from pacpredict import Budget, Session
from pacpredict.cli.numbers import real
from pacpredict.core.decode import DECODERS, Decoder
from pacpredict.exceptions import PacPredictError
from pacpredict.mechanism.planned_budget import plan_budget
from pacpredict.training.subsets import balanced

N_POOL = 797
N_DIGITS = 10
BATCH = 50  # queries answered between two looks at the progress bar

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """A pool that the training set is drawn from, and queries with their true labels."""

    pool: FloatArray
    pool_labels: IntArray
    queries: FloatArray
    query_labels: IntArray


@dataclass(frozen=True)
class Outcome:
    """What one deployment answered, and what an attacker may have learnt from it."""

    decoder: Decoder
    accuracy: float
    contested: int
    spent_nats: float
    total_nats: float
    membership_success: float
    fpr: float
    tpr: float
    odds_limit: float
    stealing_prior: float
    stealing_success: float
    largest_posterior: float
    promise: str


def main() -> int:
    options = parse_options()
    # Progress goes to stderr, results to stdout, so that the results can be piped.
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=options.json,
    )
    try:
        budget = plan_budget(success=options.success, step=options.step_budget, odds_limit="auto")
        data = load_data(options.queries, options.seed)
        membership = balanced(options.models, len(data.pool), np.random.default_rng(options.seed))
        with progress:
            votes = gather_votes(train(data, membership, progress), data.queries)
            outcomes = [deploy(name, votes, data, membership, budget, progress) for name in DECODERS]
    except PacPredictError as problem:
        print(f"private_session: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("private_session: stopped; nothing was kept", file=sys.stderr)
        return 130
    plain = float((votes == data.query_labels[:, None]).mean())
    if options.json:
        print(json.dumps(as_record(votes, budget, plain, outcomes), indent=2))
    else:
        show(votes, budget, plain, outcomes)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Train an ensemble on halves of a pool, answer queries privately and print what leaked."
    )
    parser.add_argument("--models", type=int, default=128, help="an even number (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=1000, choices=range(1, 1001), metavar="1..1000")
    parser.add_argument(
        "--step-budget", type=real, default=2.0**-32, metavar="NATS", help="per query (default: 2^-32)"
    )
    parser.add_argument(
        "--success",
        type=real,
        metavar="P",
        help="the highest success rate that attacks on membership are allowed "
        "(default: 0.5108, as after a million queries at 2^-32)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the split and the subsets, which are public")
    parser.add_argument("--json", action="store_true", help="for machines, without progress bars")
    return parser.parse_args()


def load_data(n_queries: int, seed: int) -> Data:
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    pool, queries = order[:N_POOL], order[N_POOL : N_POOL + n_queries]
    return Data(images[pool], labels[pool], images[queries], labels[queries])


def train(data: Data, membership: BoolArray, progress: Progress) -> list[Pipeline]:
    """Fit one model on each subset, one thread each, as many at a time as there are cores."""
    jobs = (delayed(fit)(data.pool[subset], data.pool_labels[subset]) for subset in membership)
    with threadpool_limits(1):
        models = Parallel(cpu_count(), prefer="threads", return_as="generator")(jobs)
        return list(progress.track(models, total=len(membership), description="training models"))


def fit(records: FloatArray, labels: IntArray) -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(records, labels)


def gather_votes(models: list[Pipeline], queries: FloatArray) -> npt.NDArray[np.int16]:
    """Let every model label every query: (n_queries, n_models)."""
    return np.stack([model.predict(queries) for model in models], axis=1).astype(np.int16)


def deploy(
    decoder: Decoder,
    votes: npt.NDArray[np.int16],
    data: Data,
    membership: BoolArray,
    budget: Budget,
    progress: Progress,
) -> Outcome:
    """Answer all queries in a new session, and ask what it promises and what it has revealed."""
    n_queries, n_models = votes.shape
    session = Session(N_DIGITS, budget, n_models, decode=decoder)
    labels: list[int] = []
    task = progress.add_task(f"answering ({decoder})", total=n_queries)
    for start in range(0, n_queries, BATCH):
        releases = session.answer_all(votes[start : start + BATCH])
        labels.extend(release.label for release in releases)
        progress.advance(task, len(releases))
    member, thief = session.guarantee(), session.guarantee(prior=1 / n_models)
    posterior = session.belief.membership_posterior(membership)
    return Outcome(
        decoder=decoder,
        accuracy=float((np.array(labels) == data.query_labels).mean()),
        contested=member.contested,
        spent_nats=member.spent_nats,
        total_nats=member.total_nats,
        membership_success=member.success,
        fpr=member.fpr,
        tpr=member.tpr,
        odds_limit=budget.odds_limit or math.inf,
        stealing_prior=thief.prior,
        stealing_success=thief.success,
        largest_posterior=float(np.maximum(posterior, 1 - posterior).max()),
        promise=str(member.promise()),
    )


def as_record(
    votes: npt.NDArray[np.int16], budget: Budget, plain: float, outcomes: list[Outcome]
) -> dict[str, object]:
    n_queries, n_models = votes.shape
    return {
        "n_models": n_models,
        "n_queries": n_queries,
        "step_budget_nats": budget.step,
        "accuracy_without_privacy": plain,
        "deployments": [asdict(outcome) for outcome in outcomes],
    }


def show(votes: npt.NDArray[np.int16], budget: Budget, plain: float, outcomes: list[Outcome]) -> None:
    n_queries, n_models = votes.shape
    table = Table(title=f"{n_queries:,} queries to {n_models} models, {budget.step:.3g} nats a query")
    table.add_column("")
    table.add_column("no\nprivacy", justify="right")
    for outcome in outcomes:
        table.add_column(f"private\n{outcome.decoder}", justify="right")
    for label, without, values in rows(plain, outcomes):
        table.add_row(label, without, *values)
    console = Console(highlight=False)
    console.print(table)
    console.print(f"{outcomes[0].decoder} promises:\n{outcomes[0].promise}")
    console.print(
        "From the answers above, the membership of any record is guessed right at most "
        f"{percent(max(o.largest_posterior for o in outcomes), 4)} of the time. map does better than one model because "
        "its answers tend to the vote of all; to serve several deployments over one pool would add up what they spend."
    )


def rows(plain: float, outcomes: list[Outcome]) -> Iterator[tuple[str, str, list[str]]]:
    false = f"{100 * outcomes[0].fpr:g}%"
    yield "accuracy", percent(plain), [percent(o.accuracy) for o in outcomes]
    yield "models differ on", "", [f"{o.contested} queries" for o in outcomes]
    yield "spent, in nats", "", [f"{o.spent_nats:.3g}" for o in outcomes]
    yield "total, in nats", "no limit", [f"{o.total_nats:.3g}" for o in outcomes]
    yield "membership success, at most", "100%", [at_most(o.membership_success) for o in outcomes]
    yield f"  true positives at {false}", "100%", [at_most(o.tpr) for o in outcomes]
    yield "odds limit", "none", [f"{o.odds_limit:g}" for o in outcomes]
    yield "model named, at most", "100%", [at_most(o.stealing_success) for o in outcomes]
    yield "  by guessing", "", [percent(o.stealing_prior) for o in outcomes]
    yield "largest posterior", "", [percent(o.largest_posterior, 4) for o in outcomes]


def percent(rate: float, digits: int = 2) -> str:
    return f"{100 * rate:.{digits}f}%"


def at_most(rate: float) -> str:
    """Write a bound in percent, rounded up."""
    return f"{math.ceil(10_000 * rate) / 100:.2f}%"


if __name__ == "__main__":
    sys.exit(main())
