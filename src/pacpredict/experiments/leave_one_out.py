"""Leave-one-out votes against attackers who ask whether a record is in the pool, and what it says.

    python -m pacpredict.experiments.leave_one_out digits --cache worlds
    python -m pacpredict.experiments.leave_one_out census --cache worlds --worlds 24 --models 512 --json
    python -m pacpredict.experiments.leave_one_out census --cache worlds --every-rule --decoders map

Trains ensembles of pools in which coins decide about the targets, each world with subsets and seeds of its own: 200
records that models remember best and 200 ordinary ones are in the pool or not; 200 others have their own label or a
false one. Attackers ask one question at the record, or 120 variants of it that shadow worlds chose, and weigh the
answers by likelihood ratios learnt in other worlds. Printed is how many coins they tell at 1% false positives, with
95% intervals over targets, next to accuracy, balanced accuracy and the recall of the rarest class.

Interrupted, it goes on where it was. Models come in blocks of 64, so ensembles can be made larger later; where there
are more models than asked for, each world has several ensembles. Census with 24 worlds of 128 models takes about ten
minutes of one core, of 512 models forty; digits two and ten.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pacpredict import defaults
from pacpredict.cli.progress import progress_bar
from pacpredict.experiments.worlds.answers import DECODERS
from pacpredict.experiments.worlds.build import build
from pacpredict.experiments.worlds.measure import (
    UNPROTECTED,
    Measured,
    apply_rule,
    ensembles,
    measure,
    unprotected,
)
from pacpredict.experiments.worlds.rules import LEAVE_ONE_OUT, PLAIN, RULES
from pacpredict.experiments.worlds.tables import SETTINGS


def run(name: str, options: argparse.Namespace) -> Iterator[Measured]:
    """Train what is missing, and yield what is measured of one unprotected model, then of every rule and decoder."""
    with progress_bar("blocks of 64 models") as progress:
        worlds = build(name, options.cache, options.worlds, options.models, progress)
    families = [one.family for one in worlds]
    yield measure(families, [unprotected(one) for one in worlds], UNPROTECTED, "map", charges=False)
    found = [list(ensembles(one, options.models)) for one in worlds]
    for rule in RULES if options.every_rule else (PLAIN, LEAVE_ONE_OUT):
        answering = [apply_rule(rule, some) for some in found]
        for decoder in options.decoders:
            yield measure(families, answering, rule, decoder, charges=not options.without_charges)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("setting", choices=SETTINGS, help="table and learner")
    parser.add_argument("--cache", type=Path, required=True, help="folder for votes")
    parser.add_argument("--worlds", type=int, default=16, help="per family (default: 16)")
    parser.add_argument(
        "--models", type=int, default=defaults.MODELS, help=f"a multiple of 64 (default: {defaults.MODELS})"
    )
    parser.add_argument("--every-rule", action="store_true", help="compare all rules that were tried")
    parser.add_argument("--decoders", nargs="+", choices=DECODERS, default=DECODERS)
    parser.add_argument(
        "--without-charges", action="store_true", help="skip the attacker who also sees charges"
    )
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    options = parser.parse_args()
    if options.models % 64 or options.models < 64:
        parser.error(f"--models must be a multiple of 64, got {options.models}")
    if options.json:
        rows = [_as_json(row) for row in run(options.setting, options)]
        print(json.dumps({"setting": options.setting, "worlds": options.worlds, "rows": rows}, indent=2))
        return
    print(f"{options.setting}: {options.worlds} worlds per family; coins told at 1% false positives\n")
    print(_HEAD)
    for row in run(options.setting, options):
        _print(row)


_HEAD = (
    f"{'votes':<22} {'decoder':<7} models  accuracy  balanced  rare  targets     own with/without  "
    "one question         variants              and charges"
)


def _print(row: Measured) -> None:
    start = (
        f"{row.rule:<22} {row.decoder if row.n_models > 1 else '':<7} {row.n_models:>6} {100 * row.accuracy:>8.2f}% "
        f"{100 * row.balanced_accuracy:>8.2f}% {row.rare_recall:>5.3f}"
    )
    for told in row.told:
        found = (told.one_question, told.variants, told.variants_and_charges)
        cells = ["" if one is None else f"{one.tpr:.3f} ({one.low:.3f}-{one.high:.3f})" for one in found]
        print(
            f"{start:<57}  {told.kind:<10} {told.with_it:>10.3f} / {told.without:.3f}  "
            + "  ".join(f"{cell:<19}" for cell in cells)
        )
        start = ""


def _as_json(row: Measured) -> dict[str, Any]:
    told = []
    for one in row.told:
        found = {
            key: value._asdict() if hasattr(value, "_asdict") else value
            for key, value in one._asdict().items()
        }
        told.append(found)
    return {**row._asdict(), "told": told}


if __name__ == "__main__":
    main()
