"""How fast a private release is, beside Algorithm 1 as the paper describes it.

Both answer the same streams of votes of 128 models in one run and one thread: "mix" is 70 % unanimous, 15 % one
dissenter, 15 % about 10 % dissent; "contested" has about 10 % dissent in every query. Timings are the best of
several rounds that alternate between the two, in the processor's time, so that other work on the machine counts little.

Then the finite channel (`decode="sample"`) beside the noise, and both with a limit on the odds of 50,000 records beside
the same without, on a stream that is long enough for several looks at all records; and what one look costs.

    python benchmarks/release.py            a table
    python benchmarks/release.py --json     an object with `cases`, `limits`, `looks_us` and `session_us`
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from algorithm1 import Algorithm1
from threadpoolctl import threadpool_limits

from pacpredict import Budget, Session, defaults
from pacpredict.core.release import Terms, answer_all
from pacpredict.core.tally import tally_votes

M, B, SECRET = 128, 2.0**-32, 3
DIMENSIONS = (2, 10, 100)
SHARES = {"mix": (0.7, 0.15, 0.15), "contested": (0.0, 0.0, 1.0)}

# How a release is made without a limit on odds, and with one.
MECHANISMS = {"gaussian": Terms(B, finite=False), "channel": Terms(B, finite=True)}
STEP_DELTA = defaults.ODDS_DELTA / defaults.QUERIES
LONG = 300_000  # queries

Votes = npt.NDArray[np.int16]


def make_votes(kind: str, n_queries: int, d: int, rng: np.random.Generator) -> Votes:
    majority = np.repeat(rng.integers(d, size=(n_queries, 1)), M, axis=1)
    style = rng.choice(3, size=n_queries, p=SHARES[kind])
    dissents = (rng.random((n_queries, M)) < 0.1) & (style == 2)[:, None]
    lone = (style == 1) | ((style == 2) & ~dissents.any(axis=1))
    dissents[lone, rng.integers(M, size=lone.sum())] = True
    other = (majority + rng.integers(1, d, size=majority.shape)) % d
    return np.where(dissents, other, majority).astype(np.int16)


def run_naive(votes: Votes, d: int, rng: np.random.Generator) -> None:
    mechanism = Algorithm1(np.full(M, 1 / M), B, SECRET, rng)
    for row in votes:
        mechanism.answer(row, d)


def run_ours(votes: Votes, d: int, rng: np.random.Generator) -> None:
    answer(votes, d, rng, MECHANISMS["gaussian"])


def answer(votes: Votes, d: int, rng: np.random.Generator, terms: Terms) -> None:
    tally = tally_votes(votes, d)
    contested = int((tally.n_voted > 1).sum())
    noisy = np.empty((tally.n_voted - 1).sum() if not terms.finite else 0)
    normals, uniforms = rng.standard_normal(noisy.size), rng.integers(2**62, size=contested)
    belief, prior = np.full(M, -np.log(M)), np.full(M, -np.log(M))
    answer_all(tally, SECRET, terms, 0, len(votes), normals, uniforms, belief, prior, noisy)


def run_session(votes: Votes, d: int, rng: np.random.Generator) -> None:
    session = Session(d, Budget(B, 1.0), M, generator=rng)
    for row in votes:
        session.answer(row)


def microseconds(job: Callable[[Votes, int, np.random.Generator], None], votes: Votes, d: int) -> float:
    rng = np.random.default_rng(1)
    started = time.process_time()
    job(votes, d, rng)
    return (time.process_time() - started) / len(votes) * 1e6


def measure(kind: str, d: int, rounds: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    votes = make_votes(kind, 5_000, d, rng)
    run_ours(votes[:10], d, rng)  # compile
    naive, ours = [], []
    for _ in range(rounds):
        naive.append(microseconds(run_naive, votes[: 1_000 if d < 100 else 200], d))
        ours.append(microseconds(run_ours, votes, d))
    best_naive, best_ours = min(naive), min(ours)
    return {
        "d": d,
        "votes": kind,
        "naive_us": round(best_naive, 2),
        "ours_us": round(best_ours, 3),
        "ratio": round(best_naive / best_ours, 1),
    }


def measure_limits(kind: str, d: int, rounds: int) -> list[dict[str, object]]:
    """Time both mechanisms without a limit on odds and with one, in turns."""
    votes = make_votes(kind, LONG, d, np.random.default_rng(0))
    jobs = {
        (name, limited): terms._replace(epsilon=defaults.ODDS_LIMIT, delta=STEP_DELTA) if limited else terms
        for name, terms in MECHANISMS.items()
        for limited in (False, True)
    }
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds + 1):  # the first compiles
        for key, terms in jobs.items():

            def run(votes: Votes, d: int, rng: np.random.Generator, terms: Terms = terms) -> None:
                answer(votes, d, rng, terms)

            best[key] = min(best[key], microseconds(run, votes, d))
    return [
        {
            "d": d,
            "votes": kind,
            "mechanism": name,
            "free_us": round(best[name, False], 3),
            "limited_us": round(best[name, True], 3),
            "ratio": round(best[name, True] / best[name, False], 3),
        }
        for name in MECHANISMS
    ]


def measure_session(kind: str, rounds: int) -> float:
    """Time single releases in process: checks, charge, noise from a seeded generator, record and state."""
    votes = make_votes(kind, 2_000, 10, np.random.default_rng(2))
    return round(min(microseconds(run_session, votes, 10) for _ in range(rounds)), 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--rounds", type=int, default=7, help="alternating rounds per case (default: 7)")
    options = parser.parse_args()
    with threadpool_limits(1):
        cases = [measure(kind, d, options.rounds) for d in DIMENSIONS for kind in SHARES]
        limits = [
            row for d in DIMENSIONS[:2] for kind in SHARES for row in measure_limits(kind, d, options.rounds)
        ]
        session = {kind: measure_session(kind, options.rounds) for kind in SHARES}
    if options.json:
        print(json.dumps({"cases": cases, "limits": limits, "session_us": session}, indent=2))
        return
    print(f"{'d':>4}  {'votes':<10} {'Algorithm 1':>12} {'pacpredict':>12} {'ratio':>8}")
    for case in cases:
        print(
            f"{case['d']:>4}  {case['votes']:<10} {case['naive_us']:>9} µs {case['ours_us']:>9} µs {case['ratio']:>8}"
        )
    print(f"\n{'d':>4}  {'votes':<10} {'mechanism':<10} {'no limit':>12} {'limit':>12} {'ratio':>8}")
    for case in limits:
        print(
            f"{case['d']:>4}  {case['votes']:<10} {case['mechanism']:<10} {case['free_us']:>9} µs "
            f"{case['limited_us']:>9} µs {case['ratio']:>8}"
        )
    for kind, each in session.items():
        print(f"one release through a Session at d = 10, {kind}: {each} µs")


if __name__ == "__main__":
    main()
