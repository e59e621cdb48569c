"""Adversaries who choose each question in view of all answers, on census income and bank marketing.

    python -m pacpredict.experiments.adversaries census --artifact census.pac --cache audit
    python -m pacpredict.experiments.adversaries bank --artifact bank.pac --cache audit --json

Each is after one record, one of those that models remember best or any other, until 0.1109 nats are spent: the total at
which membership can be told in 73.1 % of cases at most. Fits 128 XGBoost models without a search for settings, unless
the artifact is there. What was played is kept in the cache: interrupted, it goes on where it was.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pacpredict import defaults
from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.adversaries import N_STEPS, TOTAL, Adversary, Bout, choose_targets, duel
from pacpredict.audit.attacks_page import KINDS, Told, draw_duels
from pacpredict.audit.estimates import Estimate
from pacpredict.audit.games import Reading, Rules
from pacpredict.audit.search import search
from pacpredict.audit.subject import Subject
from pacpredict.audit.words import plain
from pacpredict.cli.progress import progress_bar
from pacpredict.core.plan import propose_odds_limit
from pacpredict.experiments.audit import pool_of, subject_of
from pacpredict.experiments.datasets import DATASETS
from pacpredict.experiments.pictures import save, stand_alone
from pacpredict.experiments.tabular import SEED, fit
from pacpredict.files import write_whole
from pacpredict.npz import from_bytes, to_bytes
from pacpredict.types import IntArray, Votes

FREE = Rules("gaussian", TOTAL / N_STEPS, N_STEPS)
LIMITED = FREE._replace(limit=propose_odds_limit(TOTAL), delta=defaults.ODDS_DELTA)
CHANNEL = FREE._replace(mechanism="channel")
PLAYERS: tuple[tuple[Adversary, Reading, Rules], ...] = (
    ("random", "history", FREE),
    ("divided", "history", FREE),
    ("memorised", "history", FREE),
    ("targeted", "history", FREE),
    ("search", "history", FREE),
    ("search", "argmax", FREE),
    ("memorised", "map", FREE),
    ("search", "history", CHANNEL),
    ("search", "history", LIMITED),
    ("search", "history", CHANNEL._replace(limit=propose_odds_limit(TOTAL))),
)


def found_inputs(
    name: str, artifact: Artifact, subject: Subject, kind: str, targets: IntArray, cache: Path
) -> list[Votes]:
    """Search for inputs that tell most about each target, or read what was found."""
    path = cache / f"{name}-{artifact.identity[:12]}-{kind}-{len(targets)}-found.npz"
    if not path.exists():
        pool, ensemble, rng = pool_of(name), artifact.ensemble(), np.random.default_rng(SEED)
        found = {
            str(target): search(
                pool.rows,
                np.flatnonzero(subject.units == target),
                subject.membership[:, target],
                ensemble.votes,
                rng,
            )
            for target in targets
        }
        write_whole(path, to_bytes(found))
    stored = from_bytes(path.read_bytes())
    return [stored[str(target)] for target in targets]


def run(name: str, artifact: Artifact, cache: Path, n_targets: int, n_runs: int) -> list[dict[str, Any]]:
    subject = subject_of(name, artifact, cache)
    chosen = choose_targets(subject, n_targets, SEED)
    rows = []
    with progress_bar("adversaries") as progress:
        progress(0, len(chosen) * len(PLAYERS))
        for kind, targets in chosen.items():
            found = found_inputs(name, artifact, subject, kind, targets, cache)
            for player in PLAYERS:
                path = (
                    cache
                    / f"{name}-{artifact.identity[:12]}-{kind}-{n_targets}x{n_runs}-{_slug(player)}.json"
                )
                if not path.exists():
                    adversary, sees, rules = player
                    bout = Bout(adversary, sees, rules, n_runs)
                    mine: Sequence[Votes] = found if adversary == "search" else ()
                    game = duel(subject, kind, targets, bout, seed=SEED, found=mine)
                    write_whole(path, json.dumps({**plain(game), "mechanism": rules.mechanism}).encode())
                rows.append(json.loads(path.read_text()))
                progress(len(rows), len(chosen) * len(PLAYERS))
    return rows


def _slug(player: tuple[Adversary, Reading, Rules]) -> str:
    adversary, sees, rules = player
    return f"{adversary}-{sees}-{rules.mechanism}-{'free' if rules.limit is None else 'limited'}"


def draw(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return a picture of how often each adversary is right, and of the ceiling, in one file."""
    told = [Told(_name(row), row["targets"], Estimate(**row["success"]), row["ceiling"]) for row in rows]
    title = f"{name}: success of adversaries who choose"
    says = "Share of games in which each adversary is right, with its interval; in dashes the ceiling."
    return stand_alone([("", draw_duels(told))], [*KINDS.values(), ("limit", "at most")], title, says)


def _name(row: dict[str, Any]) -> str:
    """Return what a row of the picture is called: whatever differs from an attacker who sees all of the noise."""
    seen = "" if row["sees"] == "history" else f", {row['sees']} labels"
    how = ", sample" if row["mechanism"] == "channel" else ""
    limited = "" if row["limit"] is None else ", odds limited"
    return f"{row['adversary']}{seen}{how}{limited}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", choices=DATASETS)
    parser.add_argument("--artifact", type=Path, required=True, help="where to fit it, or where it is")
    parser.add_argument("--cache", type=Path, required=True, help="a folder for finished games")
    parser.add_argument("--targets", type=int, default=20, help="of each kind (default: 20)")
    parser.add_argument("--runs", type=int, default=50, help="against each of them (default: 50)")
    parser.add_argument(
        "--jobs", type=int, default=-1, help="models fitted at a time (default: one per core)"
    )
    parser.add_argument("--plot", type=Path, help="a picture to write, such as adversaries.svg")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    artifact = fit(options.dataset, options.artifact, "none", defaults.MODELS, options.jobs)
    rows = run(options.dataset, artifact, options.cache, options.targets, options.runs)
    if options.plot is not None:
        save(options.plot, draw(options.dataset, rows))
    if options.json:
        print(json.dumps({"dataset": options.dataset, "games": rows}, indent=2))
        return
    print(f"{options.dataset}: {rows[0]['runs']:,} games each, {TOTAL} nats; success in percent, at 99.9 %\n")
    print(
        "after       adversary  sees     mechanism  limit  about it    told        interval  at most  largest odds"
    )
    for row in rows:
        told, limit = row["success"], "none" if row["limit"] is None else f"{row['limit']:g}"
        largest = "inf" if row["largest_spread"] is None else f"{row['largest_spread']:.2f}"
        print(
            f"{row['targets']:<11} {row['adversary']:<10} {row['sees']:<8} {row['mechanism']:<9} {limit:>6} "
            f"{100 * row['told']:>8.1f} % {100 * told['value']:>6.1f}  {100 * told['low']:>6.1f} to "
            f"{100 * told['high']:>5.1f} {100 * row['ceiling']:>8.1f} {largest:>13}"
        )


if __name__ == "__main__":
    main()
