"""How long leave-one-out votes take on a contested query.

Votes of which 40 % are for the second of two classes, or spread over ten classes, in one thread; no unit explains them,
so that all are looked at. "Removed" is a query that follows one unit, "skipped" one whose minority is too small for any
unit to explain. Best of several rounds.

    python benchmarks/leave_one_out.py            a table
    python benchmarks/leave_one_out.py --json     an object with `cases`
"""

import argparse
import json
import time

import numpy as np

from pacpredict.training.subsets import Subsets
from pacpredict.votes.leave_one_out import LeaveOneOut

UNITS = (1_300, 12_000, 50_000, 1_000_000)
MODELS = (64, 128, 512, 1024)


def queries(subsets: Subsets, rng: np.random.Generator) -> dict[str, np.ndarray]:
    m = subsets.n_models
    trained = np.array([subsets.row(i)[-1] for i in range(m)])
    few = np.zeros(m)
    few[: m // 16] = 1
    return {
        "2 classes": rng.permuted(np.arange(m) < 0.4 * m),
        "10 classes": rng.permuted(np.arange(m) % 10),
        "removed": trained,
        "skipped": few,
    }


def microseconds(rule: LeaveOneOut, votes: np.ndarray, rounds: int) -> float:
    rule.apply(votes)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        rule.apply(votes)
        times.append(time.perf_counter() - start)
    return round(1e6 * min(times), 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--rounds", type=int, default=50, help="of which the best counts (default: 50)")
    options = parser.parse_args()
    cases = []
    for n_models in MODELS:
        for n_units in UNITS:
            rng = np.random.default_rng(0)
            subsets = Subsets.balanced(n_models, n_units, rng)
            case = {"models": n_models, "units": n_units}
            for name, votes in queries(subsets, rng).items():
                rule = LeaveOneOut.of(subsets.packed, n_units, 10 if name == "10 classes" else 2)
                case[name] = microseconds(rule, votes.astype(np.int16)[None, :], options.rounds)
            cases.append(case)
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    names = list(cases[0])[2:]
    print(f"{'models':>6} {'units':>9}" + "".join(f"{name:>12}" for name in names) + "   µs")
    for case in cases:
        print(f"{case['models']:>6} {case['units']:>9,}" + "".join(f"{case[name]:>12,.1f}" for name in names))


if __name__ == "__main__":
    main()
