"""The paper's table of membership inference, on census income and bank marketing.

    python -m pacpredict.experiments.audit census --artifact census.pac --cache audit
    python -m pacpredict.experiments.audit bank --artifact bank.pac --cache audit --trials 1000 --json

Fits 128 XGBoost models without a search for settings, unless the artifact is there, and lets an attacker who knows
everything but the secret ask the pool's own records in random order, up to a million times, at six step budgets. After
every 100,000 queries the optimal rule (Proposition 6.1) guesses the membership of all records. As in the paper there is
no limit on odds. Trials are kept in the cache, fifty at a time and of all budgets in turn: interrupted, it goes on
where it was, and whatever is there already can be printed with `--trials 0`.
"""

import argparse
import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.estimates import Estimate, mean_of
from pacpredict.audit.subject import Subject
from pacpredict.cli.progress import progress_bar
from pacpredict.core.bounds import success_bound
from pacpredict.core.simulate import simulate
from pacpredict.exceptions import InvalidInput
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.pictures import save, stand_alone
from pacpredict.experiments.tabular import SEED, fit, split
from pacpredict.files import write_whole
from pacpredict.npz import from_bytes, to_bytes
from pacpredict.pages.svg import Point, Scale, Series, plot
from pacpredict.tables.options import TableOptions
from pacpredict.training.pool import Pool
from pacpredict.types import FloatArray, IntArray

EXPONENTS = (12, 16, 20, 24, 28, 32)
STOPS = tuple(range(100_000, 1_000_001, 100_000))
CHUNK = 50  # trials that are kept together
_SAYS = (
    "Measured success of the attack for each step budget with its interval, and in dashes its ceiling, from 50 to 100 "
    "percent."
)


class Row(NamedTuple):
    """Of one step budget, after each number of queries."""

    exponent: int
    trials: int
    success: list[Estimate]
    ceiling: list[float]  # if every query is charged, as the paper does
    ceiling_adaptive: list[float]  # if only those are on which models differ


def pool_of(name: str) -> Pool:
    """Return the records that `experiments/tabular.py` fits on."""
    return Pool.of_frame(split(name)[0], TableOptions(DATASETS[name].target, person_per_row=True))


def subject_of(name: str, artifact: Artifact, cache: Path) -> Subject:
    """Let all models vote on the pool's own records, or read how they did."""
    pool, space = pool_of(name), artifact.space
    path = cache / f"{name}-{artifact.identity[:12]}-votes.npz"
    if not path.exists():
        write_whole(path, to_bytes({"votes": artifact.ensemble(rule="plain").votes(pool.rows)}))
    return Subject(
        from_bytes(path.read_bytes())["votes"],
        pool.labels,
        space.units.of_record,
        pool.contents,
        space.subsets.matrix(),
        len(artifact.classes),
        artifact.recipe.budget,
        artifact.recipe.decode,
        space.priors,
        space.units.kind,
    )


def attack(asked: Subject, exponent: int, chunk: int, path: Path, n_jobs: int) -> None:
    """Play the trials of one chunk, unless that was done."""
    if path.exists():
        return
    found = simulate(
        asked.votes,
        asked.labels,
        2.0**-exponent,
        n_trials=CHUNK,
        seed=SEED + 1 + chunk,
        n_queries=STOPS[-1],
        checkpoints=STOPS,
        membership=asked.membership,
        n_jobs=n_jobs,
    )
    accuracy = found.membership_accuracy
    if accuracy is not None:
        write_whole(path, to_bytes({"accuracy": accuracy, "contested": found.contested}))


def chunk_path(cache: Path, name: str, artifact: Artifact, exponent: int, chunk: int) -> Path:
    return cache / f"{name}-{artifact.identity[:12]}-{exponent}-{chunk:03d}.npz"


def run(name: str, artifact: Artifact, cache: Path, n_trials: int, n_jobs: int) -> None:
    n_chunks = math.ceil(n_trials / CHUNK)
    work = [(chunk, exponent) for chunk in range(n_chunks) for exponent in EXPONENTS]
    if not work:
        return
    asked = subject_of(name, artifact, cache)
    with progress_bar("chunks of trials") as progress:
        progress(0, len(work))
        for done, (chunk, exponent) in enumerate(work, start=1):
            attack(asked, exponent, chunk, chunk_path(cache, name, artifact, exponent, chunk), n_jobs)
            progress(done, len(work))


def rows(name: str, artifact: Artifact, cache: Path) -> list[Row]:
    """Put together what is in the cache."""
    found = []
    for exponent in EXPONENTS:
        paths = sorted(
            cache.glob(chunk_path(cache, name, artifact, exponent, 0).name.replace("-000.", "-???."))
        )
        if paths:
            chunks = [from_bytes(path.read_bytes()) for path in paths]
            found.append(
                _row(
                    exponent, *(np.concatenate([c[key] for c in chunks]) for key in ("accuracy", "contested"))
                )
            )
    return found


def _row(exponent: int, accuracy: FloatArray, contested: IntArray) -> Row:
    b = 2.0**-exponent
    return Row(
        exponent,
        len(accuracy),
        [mean_of(column) for column in accuracy.T],
        [success_bound(stop * b) for stop in STOPS],
        [success_bound(int(most) * b) for most in contested.max(axis=0)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for finished trials")
    parser.add_argument("--trials", type=int, default=1000, help="of each step budget (default: 1000)")
    parser.add_argument(
        "--jobs", type=int, default=0, help="threads, or models at a time (default: one per core)"
    )
    parser.add_argument("--plot", type=Path, help="a picture to write, such as mia.svg")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    artifact = fit(options.dataset, options.artifact, "none", defaults.MODELS, options.jobs or -1)
    run(options.dataset, artifact, options.cache, options.trials, options.jobs)
    table = rows(options.dataset, artifact, options.cache)
    if not table:
        raise InvalidInput(f"there are no trials in {options.cache} yet: ask for some with --trials")
    if options.plot is not None:
        save(options.plot, draw(table))
    if options.json:
        print(
            json.dumps(
                {"dataset": options.dataset, "queries": STOPS, "rows": [row._asdict() for row in table]}
            )
        )
        return
    _print(options.dataset, table)


def draw(table: list[Row]) -> str:
    """Return a picture of three of the budgets, measured and at most, in one file."""
    shown = dict(zip((12, 16, 20), ("", "second", "third"), strict=True))
    curves = []
    for row in table:
        if row.exponent in shown:
            told = [Point(stop, rate.value) for stop, rate in zip(STOPS, row.success, strict=True)]
            band = [(rate.low, rate.high) for rate in row.success]
            most = [Point(stop, rate) for stop, rate in zip(STOPS, row.ceiling_adaptive, strict=True)]
            curves += [Series("limit", most), Series(shown[row.exponent], told, band)]
    x = Scale(
        0,
        STOPS[-1],
        [(stop, f"{stop:,}") for stop in (0, 250_000, 500_000, 750_000, 1_000_000)],
        name="queries",
    )
    y = Scale(
        0.5,
        1.0,
        [(rate / 100, f"{rate} %") for rate in (50, 60, 70, 80, 90, 100)],
        name="guesses that are right",
    )
    title = "Success of the optimal attack by queries, at 2^-12, 2^-16 and 2^-20 nats"
    keys = [(style, f"2^-{exponent}") for exponent, style in shown.items()]
    return stand_alone(
        [("", plot(curves, x, y, title))], [*keys, ("limit", "at most, as charged")], title, _SAYS
    )


def _print(name: str, table: list[Row]) -> None:
    shown = [STOPS.index(stop) for stop in (100_000, 300_000, 500_000, 700_000, 1_000_000)]
    print(f"{name}: success of the optimal attack in percent, by queries\n")
    print("step   trials  what             " + "".join(f"{STOPS[i]:>11,}" for i in shown))
    for row in table:
        parts = (
            ("at most, flat", [f"{100 * row.ceiling[i]:.2f}" for i in shown]),
            ("at most, charged", [f"{100 * row.ceiling_adaptive[i]:.2f}" for i in shown]),
            ("measured", [f"{100 * row.success[i].value:.2f}" for i in shown]),
            ("  to, at 99.9 %", [f"{100 * min(row.success[i].high, 1):.2f}" for i in shown]),
        )
        for position, (what, cells) in enumerate(parts):
            head = f"2^-{row.exponent:<3} {row.trials:>6}" if not position else " " * 13
            print(f"{head}  {what:<17}" + "".join(f"{cell:>11}" for cell in cells))


if __name__ == "__main__":
    main()
