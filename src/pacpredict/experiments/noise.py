"""The least noise and fair noise side by side: accuracy, and what answers tell about the pool.

    python -m pacpredict.experiments.noise digits --artifact digits.pac
    python -m pacpredict.experiments.noise cifar10 --artifact cifar10.pac

Digits are those of scikit-learn: 128 forests of 20 trees on random halves of four fifths of the records, asked about
the other fifth. CIFAR-10 is that of `experiments.heads`: 128 linear heads on public features, asked about the test set;
an artifact of that experiment is used as it is.

Accuracy is that of simulated deployments that answer every query once. For the records that models remember best and
for others, the second table has how often an answer about a record is its own label, with it in the pool and without,
and how many of those in the pool the best test finds at 1% false positives, by the label of one question and by the
labels of a thousand imperceptible variants of it, where steps are so small that a thousand answers leave the belief as
it is. The models whose subset lacks a record stand for a pool without it.
"""

import argparse
import json
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.presence import N_VARIANTS, measure, n_variants, rates_of, worlds_on_hand
from pacpredict.audit.presences import choose_records
from pacpredict.audit.subject import Subject
from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.decode import DECODERS_OF, NOISE_RULES
from pacpredict.experiments import heads
from pacpredict.experiments.accuracy import accuracy_by_decoder
from pacpredict.experiments.fitted import SEED, fit_once
from pacpredict.learners.registry import learner_named
from pacpredict.training.pool import Pool
from pacpredict.types import IntArray, Votes

STEPS = {"2^-32": 2.0**-32, "2^-16": 2.0**-16, "2^-8": 2.0**-8, "2^-4": 2.0**-4}
DECODERS = DECODERS_OF["gaussian"]
N_OTHERS = 2000
TEST_SHARE = 0.2
# An own label's probability is then wrong by 0.001: the best test takes what is wrong for a sign of the record.
N_DRAWS = 200_000


class Setting(NamedTuple):
    """A deployment, the records it was fitted on, and the votes on what is asked."""

    artifact: Artifact
    pool: Pool
    votes: Votes
    truth: IntArray


def digits(options: argparse.Namespace) -> Setting:
    from sklearn.datasets import load_digits  # noqa: PLC0415  # takes time to import

    pixels, labels = load_digits(return_X_y=True, as_frame=True)
    asked = np.random.default_rng(SEED).random(len(labels)) < TEST_SHARE
    pool = Pool.of(pixels[~asked], labels[~asked], person_per_row=True)
    learner = learner_named("random-forest", {"n_estimators": 20})
    artifact = fit_once(options.artifact, pool, learner, options.models, options.jobs)
    votes = artifact.ensemble().votes(artifact.schema.rows(pixels[asked]))
    return Setting(artifact, pool, votes, pool.classes.codes(labels[asked].to_numpy()))


def cifar10(options: argparse.Namespace) -> Setting:
    pool, learner, asked = heads.lay_out(heads.DATASETS["cifar10"], options)
    artifact = fit_once(options.artifact, pool, learner, options.models, options.jobs)
    return Setting(artifact, pool, artifact.ensemble().voter.votes(asked.features), asked.truth)


def totals(votes: Votes, n_classes: int) -> list[float]:
    """Return the total of fair noise over that of the least, for each query with three or more voted labels."""
    uniform, ratios = Belief.uniform(votes.shape[1]), []
    for row in votes:
        if np.unique(row).size > 2:
            least, fair = (
                calibrate_votes(row, n_classes, uniform, defaults.STEP_BUDGET, noise=noise).variances.sum()
                for noise in NOISE_RULES
            )
            ratios.append(float(fair / least))
    return ratios


def accuracies(setting: Setting, n_trials: int) -> list[dict[str, Any]]:
    return [
        {"step": name, "noise": noise, **{decoder: found[decoder]._asdict() for decoder in DECODERS}}
        for name, step in STEPS.items()
        for noise in NOISE_RULES
        for found in [
            accuracy_by_decoder(
                setting.votes,
                setting.truth,
                step,
                n_trials=n_trials,
                seed=SEED,
                n_classes=len(setting.artifact.classes),
                noise=noise,
            )
        ]
    ]


def presences(subject: Subject) -> list[dict[str, Any]]:
    rows = []
    for which, records in zip(("remembered", "others"), choose_records(subject, N_OTHERS, SEED), strict=True):
        worlds = worlds_on_hand(subject, records)
        alone = measure(rates_of(worlds, "one model", 0.0), "one model", 0.0)
        rows.append({"which": which, "step": "", "noise": "", "found_by_many": None, **alone._asdict()})
        for decoder, (name, step), noise in product(DECODERS, STEPS.items(), NOISE_RULES):
            rates = rates_of(worlds, decoder, step, noise=noise, n_draws=N_DRAWS)
            found = measure(rates, decoder, step)
            is_many = n_variants(step) == N_VARIANTS
            many = measure(rates, decoder, step, N_VARIANTS).tpr[0] if is_many else None
            about = {"which": which, "step": name, "noise": noise, "found_by_many": many}
            rows.append({**about, **found._asdict()})
    return rows


def run(options: argparse.Namespace) -> dict[str, Any]:
    setting = {"digits": digits, "cifar10": cifar10}[options.dataset](options)
    ratios = totals(setting.votes, len(setting.artifact.classes))
    return {
        "dataset": options.dataset,
        "models": options.models,
        "records": len(setting.pool),
        "asked": len(setting.truth),
        "trials": options.trials,
        "contested": float((setting.votes.min(axis=1) < setting.votes.max(axis=1)).mean()),
        "three_or_more": len(ratios) / len(setting.truth),
        "total_noise": dict(
            zip(("least", "median", "most"), np.quantile(ratios, [0, 0.5, 1]).tolist(), strict=True)
        ),
        "accuracy": accuracies(setting, options.trials),
        "presence": presences(Subject.of(setting.artifact, setting.pool)),
    }


def print_tables(found: dict[str, Any]) -> None:
    ratio = found["total_noise"]
    print(
        f"{found['dataset']}: {found['models']} models, {found['records']:,} records, {found['asked']:,} queries, "
        f"{found['trials']:,} trials\n"
        f"models disagree on {100 * found['contested']:.1f}% of queries, and give three or more labels on "
        f"{100 * found['three_or_more']:.1f}%\n"
        f"there fair noise has {ratio['least']:.2f} to {ratio['most']:.2f} times the total of the least noise, median "
        f"{ratio['median']:.2f}\n"
    )
    names = [f"{decoder}, {noise}" for decoder, noise in product(DECODERS, NOISE_RULES)]
    print("accuracy" + "".join(f"{name:>14}   (sd)" for name in names))
    for step, pair in groupby(found["accuracy"], key=lambda row: row["step"]):
        both = list(pair)
        cells = [row[decoder] for decoder in DECODERS for row in both]
        print(f"{step:<8}" + "".join(f"{cell['mean']:>13.2f}%{cell['sd']:>7.2f}" for cell in cells))
    print(f"\n{'':<29}" + "".join(f"   {noise + ' noise':<34}" for noise in NOISE_RULES).rstrip())
    print("own label, and found at 1%   " + "   ".join(["      in    out      one    1,000"] * 2))
    for (which, answerer, step), pair in groupby(found["presence"], key=_about):
        print(f"{which:<11}{answerer:<10}{step:<8}" + "".join(map(_cells, pair)).rstrip())


def _about(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["which"], row["answerer"], row["step"]


def _cells(row: dict[str, Any]) -> str:
    many = "" if row["found_by_many"] is None else f"{100 * row['found_by_many']:.2f}%"
    return f"{row['own_label_in']:>8.3f}{row['own_label_out']:>7.3f}{100 * row['tpr'][0]:>8.2f}%{many:>9}   "


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=("digits", "cifar10"))
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--features", default="lite2", help="of CIFAR-10 (default: lite2)")
    parser.add_argument("--models", type=int, default=defaults.MODELS)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.set_defaults(head="logistic", penalty=None)
    found = run(options := parser.parse_args())
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_tables(found)


if __name__ == "__main__":
    main()
