"""What is measured as something grows, at one size of it.

All times are seconds of the processor, the least of several rounds: what else the machine does counts for little.
"""

import atexit
import hashlib
import tempfile
import time
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import histories
import numpy as np
import pandas as pd
from release import SECRET
from sklearn.datasets import make_classification
from xgboost import XGBClassifier

from pacpredict import Deployment, PrivateClassifier, Request
from pacpredict.core.release import Terms, answer_all
from pacpredict.core.tally import tally_votes
from pacpredict.ledger.keyring import Keyring
from pacpredict.ledger.keys import Terms as KeyTerms
from pacpredict.types import Votes
from pacpredict.votes.pack_xgboost import pack_xgboost
from pacpredict.votes.stacked_heads import HeadModel, StackedHeads

M, B = 128, 2.0**-32
N_FEATURES, N_TREES, DEPTH, N_RECORDS = 14, 20, 4, 1_000
N_WIDE = 256  # features of heads
ROUNDS = 5

Point = dict[str, float]  # what was measured, in seconds, by name


def seconds(job: Callable[[], object], least: float = 0.02, rounds: int = ROUNDS) -> float:
    """Time a job by the processor: repeated until it takes `least` seconds, and the best of some rounds of that."""
    job()  # compiles, and fills caches
    repeats = 1
    while (took := _time(job, repeats)) < least:
        repeats *= 2
    return min(took, *(_time(job, repeats) for _ in range(rounds - 1))) / repeats


def _time(job: Callable[[], object], repeats: int) -> float:
    started = time.process_time()
    for _ in range(repeats):
        job()
    return time.process_time() - started


def table_of_numbers() -> tuple[Any, Any]:
    x, y = make_classification(N_RECORDS, N_FEATURES, n_informative=8, flip_y=0.1, random_state=0)
    return x, y


def train(n_models: int) -> tuple[list[XGBClassifier], Any]:
    """Train small models on halves of a table; returns rows to ask about, too."""
    x, y = table_of_numbers()
    rng, models = np.random.default_rng(0), []
    for _ in range(n_models):
        half = rng.permutation(N_RECORDS)[: N_RECORDS // 2]
        model = XGBClassifier(n_estimators=N_TREES, max_depth=DEPTH, n_jobs=1)
        models.append(model.fit(x[half], y[half]))
    return models, x


def votes_of(n_models: int, n_classes: int, dissent: float, n_queries: int = 1000) -> Votes:
    """Return votes on which this share of the models differs from the others, wherever it likes."""
    rng = np.random.default_rng(0)
    majority = rng.integers(n_classes, size=(n_queries, 1))
    other = (majority + rng.integers(1, n_classes, size=(n_queries, n_models))) % n_classes
    votes = np.where(rng.random(other.shape) < dissent, other, majority).astype(np.int16)
    votes[:, 0], votes[:, 1] = majority[:, 0], other[:, 1]  # all are contested
    return votes


def release_all(votes: Votes, n_classes: int) -> Callable[[], None]:
    """Return the job of answering votes: their tally, calibration, noise, labels and beliefs."""
    rng, n_models = np.random.default_rng(0), votes.shape[1]
    n_noisy = int((tally_votes(votes, n_classes).n_voted - 1).sum())
    normals, uniforms = rng.standard_normal(n_noisy), np.empty(0, np.int64)

    def job() -> None:
        tally = tally_votes(votes, n_classes)
        belief, prior = np.full(n_models, -np.log(n_models)), np.full(n_models, -np.log(n_models))
        terms = Terms(B, finite=False)
        answer_all(tally, SECRET, terms, 0, len(votes), normals, uniforms, belief, prior, np.empty(n_noisy))

    return job


def measure_models(n_models: int) -> Point:
    models, rows = train(n_models)
    packed = pack_xgboost([model.get_booster() for model in models])
    votes, different = votes_of(n_models, 10, 0.1), votes_of(n_models, 1000, 1.0, 100)
    return {
        "votes of one row": seconds(lambda: packed.votes(rows[:1])),
        "votes of 1,000 rows, each": seconds(lambda: packed.votes(rows)) / len(rows),
        "a release, a tenth dissents": seconds(release_all(votes, 10)) / len(votes),
        "a release, all differ": seconds(release_all(different, 1000)) / len(different),
    }


def measure_classes(n_classes: int) -> Point:
    rng = np.random.default_rng(0)
    n_scores = n_classes if n_classes > 2 else 1
    heads = [HeadModel.of(rng.normal(size=(N_WIDE, n_scores)), rng.normal(size=n_scores)) for _ in range(M)]
    stack = StackedHeads.of(heads, [np.arange(n_classes)] * M, n_classes)
    rows = rng.normal(size=(1, N_WIDE)).astype(np.float32)
    some, most = (votes_of(M, n_classes, dissent, 200) for dissent in (0.1, 1.0))
    return {
        "votes of one row": seconds(lambda: stack.votes(rows)),
        "a release, a tenth dissents": seconds(release_all(some, n_classes)) / len(some),
        "a release, all differ": seconds(release_all(most, n_classes)) / len(most),
    }


def measure_rows(n_rows: int) -> Point:
    """Ask one request of so many rows, new and repeated, of a deployment on disk."""
    deployment, pool, rng = small_deployment()

    def ask() -> pd.DataFrame:
        """Ask about records that are a little off, so that nobody has asked about them."""
        table = pool.iloc[rng.integers(len(pool), size=n_rows)] + rng.normal(size=(n_rows, 1)) / 100
        deployment.ask(table)
        return table

    known = ask()
    return {"new rows": seconds(ask), "repeated rows": seconds(lambda: deployment.ask(known))}


@cache
def small_deployment() -> tuple[Deployment, pd.DataFrame, np.random.Generator]:
    """Fit a deployment, once, that is gone when the process ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    x, y = table_of_numbers()
    names = [f"x{i}" for i in range(N_FEATURES)]
    pool, params = pd.DataFrame(x, columns=names), {"n_estimators": N_TREES, "max_depth": DEPTH}
    classifier = PrivateClassifier("xgboost", n_models=M, params=params, random_state=0, n_jobs=1)
    classifier.fit(pool, y).save(Path(folder.name) / "a.pac")
    return Deployment.open(Path(folder.name) / "a.pac"), pool, np.random.default_rng(0)


def measure_clients(n_clients: int) -> Point:
    """Let so many clients wait at once, each with a key and one new row: they share a commit and a witness's sync."""
    rng, numbers = np.random.default_rng(0), count()
    with histories.temporary_ledger() as ledger, Keyring(ledger.ledger, B) as keyring:
        names = [f"client {i}" for i in range(n_clients)]
        tokens = [keyring.make(KeyTerms(name, rate=10**9, queries=10**9, nats=0.5)) for name in names]
        session = histories.begin(ledger)

        def serve() -> None:
            ballots = session.ballots(histories.make_votes(n_clients, rng))
            digests = [hashlib.sha256(str(next(numbers)).encode()).digest() for _ in names]
            session.serve(
                [Request([digest], ballots, [i], client=names[i]) for i, digest in enumerate(digests)]
            )

        return {
            "all of them answered": seconds(serve),
            "one key recognised": seconds(lambda: keyring.recognise(tokens[:1])),
        }
