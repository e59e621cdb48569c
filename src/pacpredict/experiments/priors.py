"""The paper's figure of groups: how often a guess about k records succeeds before any answer.

    python -m pacpredict.experiments.priors --plot priors.svg

For subsets as they are drawn, each record in half of 128: whether any of a group was trained on, and exactly which of
them, over random groups. As in the paper the figure shows the mean and a standard deviation to both sides.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pacpredict import defaults
from pacpredict.audit.appendix import GROUP_SIZES
from pacpredict.core.priors import GroupPriors, Spread, simulate_group_priors
from pacpredict.experiments.pictures import save, stand_alone
from pacpredict.experiments.tabular import SEED
from pacpredict.pages.svg import Point, Scale, Series, plot
from pacpredict.training.subsets import balanced

N_RECORDS = 1000


def priors() -> list[GroupPriors]:
    rng = np.random.default_rng(SEED)
    subsets = balanced(defaults.MODELS, N_RECORDS, rng)
    return [simulate_group_priors(subsets, size, rng) for size in GROUP_SIZES]


def draw(found: Sequence[GroupPriors]) -> str:
    def curve(style: str, spreads: Sequence[Spread]) -> Series:
        points = [Point(size, one.mean) for size, one in zip(GROUP_SIZES, spreads, strict=True)]
        return Series(style, points, [(one.mean - one.sd, one.mean + one.sd) for one in spreads])

    floor = 1 / defaults.MODELS
    x = Scale(1, GROUP_SIZES[-1], [(size, f"{size}") for size in GROUP_SIZES], name="size of the group")
    marks = [(0.01, "1 %"), (0.03, "3 %"), (0.1, "10 %"), (0.3, "30 %"), (1.0, "100 %")]
    y = Scale(0.9 * floor, 1.0, marks, log=True, name="guesses that are right")
    curves = [
        Series("limit", [Point(size, floor) for size in GROUP_SIZES]),
        curve("second", [one.any for one in found]),
        curve("", [one.exact for one in found]),
    ]
    title = "Priors of groups by their size"
    return stand_alone(
        [("", plot(curves, x, y, title))],
        [("", "which of them"), ("second", "any of them"), ("limit", f"1 in {defaults.MODELS}")],
        title,
        "Which of a group were trained on is guessed in half of the cases for one record, and more rarely for more; "
        "whether any was, more often. The axis of rates is logarithmic.",
    )


def table(found: Sequence[GroupPriors]) -> str:
    rows = [
        f"{size:4} {one.any.mean:6.3f} {one.any.sd:6.3f} {one.exact.mean:7.3f} {one.exact.sd:6.3f}"
        for size, one in zip(GROUP_SIZES, found, strict=True)
    ]
    return "\n".join(["size    any   (sd)   which   (sd)", *rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plot", type=Path, help="a picture to write, such as priors.svg")
    options = parser.parse_args()
    found = priors()
    if options.plot is not None:
        save(options.plot, draw(found))
    print(table(found))


if __name__ == "__main__":
    main()
