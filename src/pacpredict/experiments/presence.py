"""Outside of the theorem: do answers tell that a record is in the pool? On census income, bank marketing and digits.

    python -m pacpredict.experiments.presence census --artifact census.pac --cache audit
    python -m pacpredict.experiments.presence digits --artifact digits.pac --cache audit --json

Of the records that models remember best, and of others: how often an answer is the record's own label, and how often it
is charged, with it in the pool and without, and what the best test finds at few false alarms, by one question and by a
thousand imperceptible variants of it; by labels alone, and by labels and charges. The world without a record is seen
in two ways: by the models whose subset lacks it, and by training all models again without some records at a time.
Digits are those of scikit-learn, with forests.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.estimates import RATES
from pacpredict.audit.presence import N_VARIANTS, SEES, worlds_on_hand
from pacpredict.audit.presence_page import CURVES, presence_curves
from pacpredict.audit.presences import (
    LARGE_STEP,
    LEFT_OUT,
    N_REMEMBERED,
    choose_records,
    measure_all,
    votes_without,
)
from pacpredict.audit.subject import Subject
from pacpredict.cli.progress import progress_bar
from pacpredict.deployment import Deployment
from pacpredict.experiments.audit import pool_of, subject_of
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.pictures import save, stand_alone
from pacpredict.experiments.tabular import SEED, fit
from pacpredict.files import write_whole
from pacpredict.learners.registry import learner_named
from pacpredict.mechanism.planned_budget import plan_budget
from pacpredict.npz import from_bytes, to_bytes
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.types import IntArray, Votes

STEPS = (defaults.STEP_BUDGET, LARGE_STEP)
N_OTHERS = 2000
LACKING, RETRAINED = "lacking it", "retrained"  # how the world without a record is seen


def digits() -> Pool:
    from sklearn.datasets import load_digits  # noqa: PLC0415  # takes time to import

    pixels, labels = load_digits(return_X_y=True, as_frame=True)
    return Pool.of(pixels, labels, person_per_row=True)


def prepare(name: str, path: Path, n_jobs: int) -> tuple[Artifact, Pool]:
    """Fit the artifact unless it is there."""
    if name != "digits":
        return fit(name, path, "none", defaults.MODELS, n_jobs), pool_of(name)
    pool = digits()
    if not path.exists():
        recipe, learner = Recipe(SEED, plan_budget()), learner_named("random-forest", {"n_estimators": 20})
        with progress_bar("models") as progress:
            Deployment.fit(path, pool, learner, recipe, n_jobs=n_jobs, progress=progress).close()
    return Artifact.open(path), pool


def votes_again(
    artifact: Artifact, pool: Pool, subject: Subject, records: IntArray, path: Path, n_jobs: int
) -> Votes:
    """Train all models again without some records, or read how they voted on these."""
    if not path.exists():
        with progress_bar("models without these records") as progress:
            votes = votes_without(artifact, pool, subject, records, n_jobs=n_jobs, progress=progress)
        write_whole(path, to_bytes({"votes": votes}))
    return from_bytes(path.read_bytes())["votes"]


def run(
    name: str, artifact: Artifact, pool: Pool, cache: Path, n_jobs: int, *, retrain: bool
) -> list[dict[str, Any]]:
    subject = subject_of(name, artifact, cache) if name != "digits" else Subject.of(artifact, pool)
    rows = []
    for which, records in zip(("remembered", "others"), choose_records(subject, N_OTHERS, SEED), strict=True):
        on_hand = measure_all(worlds_on_hand(subject, records), STEPS)
        rows += [{"which": which, "without": LACKING, **one._asdict()} for one in on_hand]
        if retrain:
            few = records[: min(N_REMEMBERED, len(subject.votes) // LEFT_OUT)]
            path = cache / f"{name}-{artifact.identity[:12]}-without-{which}.npz"
            votes = votes_again(artifact, pool, subject, few, path, n_jobs)
            again = measure_all(worlds_on_hand(subject, few)._replace(outside=votes), STEPS)
            rows += [{"which": which, "without": RETRAINED, **one._asdict()} for one in again]
    return rows


def draw(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return a picture of what the best test finds of those who are remembered, at the smallest step."""
    without = rows[-1]["without"]  # by training again, if that was done
    chosen = [
        row
        for row in rows
        if (row["which"], row["without"], row["step_budget"]) == ("remembered", without, STEPS[0])
        and (row["sees"] == SEES[-1] or row["answerer"] == "one model")
    ]
    title = f"{name}: records in the pool that the best test finds, by false alarms"
    panels = [
        (words, presence_curves([row for row in chosen if row["questions"] == n], title))
        for n, words in (
            (1, "one question about each record, by label and charge"),
            (N_VARIANTS, f"{N_VARIANTS:,} variants of it, by labels and charges"),
        )
    ]
    says = (
        "Of the records that models remember best, how many are found to be in the pool, against false alarms, both "
        "logarithmic: by the answers of one unprotected model, and by labels and charges of each decoder, by one "
        "question and by many."
    )
    return stand_alone(panels, [*CURVES.values(), ("limit", "by chance")], title, says)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=[*DATASETS, "digits"])
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for what takes long")
    parser.add_argument(
        "--on-hand", action="store_true", help="by the votes on hand only, without training again"
    )
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models trained at a time (default: one per core)"
    )
    parser.add_argument("--plot", type=Path, help="a picture to write, such as presence.svg")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    artifact, pool = prepare(options.dataset, options.artifact, options.jobs)
    rows = run(options.dataset, artifact, pool, options.cache, options.jobs, retrain=not options.on_hand)
    if options.plot is not None:
        save(options.plot, draw(options.dataset, rows))
    if options.json:
        print(json.dumps({"dataset": options.dataset, "false_positive_rates": RATES, "rows": rows}, indent=2))
        return
    print(
        f"{options.dataset}: own label, and charged, with the record in the pool and out of it; found at few false "
        "alarms, percent\n"
    )
    print(
        "records     without     who answers      questions      in    out  charged    out  sees                "
        "advantage    1 %  0.1 %  0.01 %"
    )
    for row in rows:
        _print_row(row)


def _print_row(row: dict[str, Any]) -> None:
    step = "" if row["answerer"] == "one model" else f" {_power(row['step_budget'])}"
    found = " ".join(f"{100 * rate:>6.1f}" for rate in row["tpr"])
    charged = ["" if row[name] is None else f"{row[name]:.3f}" for name in ("charged_in", "charged_out")]
    print(
        f"{row['which']:<11} {row['without']:<11} {row['answerer'] + step:<16} {row['questions']:>9,} "
        f"{row['own_label_in']:>7.3f} {row['own_label_out']:>6.3f} {charged[0]:>8} {charged[1]:>6}  {row['sees']:<18} "
        f"{row['advantage']:>10.3f} {found}"
    )


def _power(step: float) -> str:
    return f"2^{np.log2(step):.0f}"


if __name__ == "__main__":
    main()
