"""How long the paper's heaviest experiment takes: 6 budgets, 1,000 trials each, 1,000,000 queries a trial.

Runs a few trials per budget on all cores, over votes of 128 models on 10,000 rows with 10 classes (70 % unanimous,
15 % one dissenter, 15 % about 10 % dissent), with ten checkpoints of the optimal attack on 50,000 records, and
multiplies.

    python benchmarks/simulate.py            a table
    python benchmarks/simulate.py --json     an object with `cases` and `hours_in_all`
"""

import argparse
import json
import time

import numpy as np
from release import make_votes

from pacpredict import simulate
from pacpredict.training.subsets import balanced

BUDGETS = tuple(2.0**-power for power in (12, 16, 20, 24, 28, 32))
TRIALS, QUERIES, CHECKPOINTS = 1_000, 1_000_000, 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--trials", type=int, default=4, help="trials measured per budget (default: 4)")
    parser.add_argument("--queries", type=int, default=200_000, help="queries per trial (default: 200000)")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    votes = make_votes("mix", 10_000, 10, rng)
    membership = balanced(128, 50_000, rng)
    checkpoints = np.linspace(0, options.queries, CHECKPOINTS + 1, dtype=int)[1:]
    simulate(votes, votes[:, 0].astype(int), 2.0**-8, n_trials=2, seed=0, n_queries=100)  # compile
    cases = []
    for b in BUDGETS:
        started = time.perf_counter()
        simulate(
            votes,
            votes[:, 0].astype(int),
            b,
            n_trials=options.trials,
            seed=1,
            n_queries=options.queries,
            checkpoints=checkpoints,
            membership=membership,
        )
        per_query = (time.perf_counter() - started) / (options.trials * options.queries)
        cases.append(
            {"step_budget": b, "us_per_query": per_query * 1e6, "hours": per_query * TRIALS * QUERIES / 3600}
        )
    hours = sum(case["hours"] for case in cases)
    if options.json:
        print(json.dumps({"cases": cases, "hours_in_all": hours}, indent=2))
        return
    print(f"{'budget':>8} {'per query':>12} {'1,000 x 1,000,000':>19}")
    for case in cases:
        print(
            f"2^{np.log2(case['step_budget']):.0f} {case['us_per_query']:>12.2f} µs {case['hours']:>16.2f} h"
        )
    print(f"in all: {hours:.1f} hours")


if __name__ == "__main__":
    main()
