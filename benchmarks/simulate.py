"""How long the paper's heaviest experiment takes: 6 budgets, 1,000 trials each, 1,000,000 queries a trial.

Runs a few trials per budget on all cores, over votes of 128 models on 10,000 rows with 10 classes (70 % unanimous,
15 % one dissenter, 15 % about 10 % dissent), with ten checkpoints of the optimal attack on 50,000 records, and
multiplies: the time that passed, and the processor's time divided by the cores, which is what it would be on a
machine with nothing else to do.

    python benchmarks/simulate.py            a table
    python benchmarks/simulate.py --json     an object with `cases`, `hours_in_all` and `processor_hours_in_all`
"""

import argparse
import json
import os
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
    parser.add_argument("--queries", type=int, default=QUERIES, help="queries per trial (default: 1000000)")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    votes = make_votes("mix", 10_000, 10, rng)
    membership = balanced(128, 50_000, rng)
    checkpoints = np.linspace(0, options.queries, CHECKPOINTS + 1, dtype=int)[1:]
    simulate(votes, votes[:, 0].astype(int), 2.0**-8, n_trials=2, seed=0, n_queries=100)  # compile
    cases = []
    for b in BUDGETS:
        started, busy = time.perf_counter(), time.process_time()
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
        n = options.trials * options.queries
        passed, used = time.perf_counter() - started, (time.process_time() - busy) / (os.cpu_count() or 1)
        cases.append(
            {
                "step_budget": b,
                "us_per_query": passed / n * 1e6,
                "hours": passed / n * TRIALS * QUERIES / 3600,
                "processor_us_per_query": used / n * 1e6,
                "processor_hours": used / n * TRIALS * QUERIES / 3600,
            }
        )
    hours, busy_hours = (sum(case[key] for case in cases) for key in ("hours", "processor_hours"))
    if options.json:
        print(
            json.dumps(
                {"cases": cases, "hours_in_all": hours, "processor_hours_in_all": busy_hours}, indent=2
            )
        )
        return
    print(f"{'budget':>8} {'per query':>12} {'1,000 x 1,000,000':>19} {'if not disturbed':>30}")
    for case in cases:
        print(
            f"2^{np.log2(case['step_budget']):.0f} {case['us_per_query']:>12.3f} µs {case['hours']:>16.3f} h "
            f"{case['processor_us_per_query']:>13.3f} µs {case['processor_hours']:>11.3f} h"
        )
    print(f"in all: {60 * hours:.1f} minutes, if not disturbed {60 * busy_hours:.1f}")


if __name__ == "__main__":
    main()
