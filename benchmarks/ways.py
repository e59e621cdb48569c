"""The ways in which trees can vote, beside each other: what each was worth.

Census income with 128 XGBoost models of 200 trees (see census.py), in one thread: nodes that compare for themselves,
as version 0.1 did; splits that are columns of zeros and ones; and trees that are filled up until they are perfect.
The votes are compared before anything is timed. Timings are the best of rounds in which each way has its turn.

    python benchmarks/ways.py            a table
    python benchmarks/ways.py --json     an object with `cases`
"""

import argparse
import json
from pathlib import Path

import census
import numpy as np

from pacpredict.votes.packed_trees import PackedTrees
from votes import census_models, microseconds

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 1000)


def measure(trees: PackedTrees, rows: np.ndarray, rounds: int) -> dict[str, float]:
    """Return microseconds of each way."""
    ways = {"nodes": trees.voting_by(None), "columns": trees.voting_by(trees.columns), "perfect": trees}
    votes = [way.votes(rows) for way in ways.values()]
    if any(not np.array_equal(each, votes[0]) for each in votes):
        raise SystemExit("the votes differ")
    times = [
        {
            name: microseconds(lambda way=way: way.votes(rows), max(1, 100 // len(rows)))
            for name, way in ways.items()
        }
        for _ in range(rounds)
    ]
    return {name: round(min(each[name] for each in times)) for name in ways}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--rounds", type=int, default=5, help="in which each way has its turn (default: 5)")
    parser.add_argument(
        "--artifact", type=Path, help="where the census ensemble is kept (default: the user's cache)"
    )
    options = parser.parse_args()
    _, trees, rows = census_models(census.fitted(options.artifact))
    if not isinstance(trees, PackedTrees) or trees.perfect is None:
        raise SystemExit("these trees cannot vote in all ways")
    cases = [{"rows": n, **measure(trees, rows[:n], options.rounds)} for n in ROWS]
    if options.json:
        print(json.dumps({"cases": cases}, indent=2))
        return
    print(f"{'µs':>5} {'nodes':>10} {'columns':>10} {'perfect':>10}")
    for case in cases:
        print(f"{case['rows']:>5} {case['nodes']:>10,} {case['columns']:>10,} {case['perfect']:>10,}")


if __name__ == "__main__":
    main()
