"""How cost grows: with models, classes, clients, rows of a request, and the length of the history.

Each part measures all its sizes in one run, in seconds of the processor (the least of some rounds), and keeps what it
has found: a run that was interrupted goes on where it was, and a part that is complete is printed without measuring.
growth.json beside this file has what README.md shows; `--results FILE` keeps that of another machine.
"Growth" is the exponent between the two largest sizes: 1 is linear, 0 is constant.

    python benchmarks/growth.py                                    all parts but histories, as tables
    python benchmarks/growth.py --part history --folder DIR        a ledger that grows to 100 million releases (25 GB)
    python benchmarks/growth.py --part postgresql --folder DIR --postgres URL    the same there
    python benchmarks/growth.py --part rows --again                measures again what is kept
    python benchmarks/growth.py --plots benchmarks/images          draws what is kept, and measures nothing
    python benchmarks/growth.py --json                             an object with the points of each part
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path

from growing import measure_classes, measure_clients, measure_models, measure_rows
from growing_history import measure_history
from threadpoolctl import threadpool_limits

from pacpredict.files import write_whole
from pacpredict.pages.svg import Point, Scale, Series, file_of, plot

KEPT = Path(__file__).with_name("growth.json")
PARTS: Mapping[str, Sequence[int]] = {
    "models": (8, 16, 32, 64, 128, 256, 512),
    "classes": (2, 4, 10, 32, 100, 316, 1000),
    "clients": (1, 4, 16, 64, 256, 1024),
    "rows": (1, 10, 100, 1_000, 10_000),
    "history": (1_000_000, 10_000_000, 100_000_000),
    "postgresql": (100_000, 1_000_000),
}
LONG = ("history", "postgresql")  # need a place for their ledgers, and much time
MEASURES = {
    "models": measure_models,
    "classes": measure_classes,
    "clients": measure_clients,
    "rows": measure_rows,
}
COLOURS = ("", "second", "third")
ROOM_FOR_WORDS = 0.45  # beside the curves, as a share of their width
NO_TIMES = {"gigabytes"}

Points = dict[str, dict[str, float]]  # by size, by what was measured


def measure(part: str, sizes: Sequence[int], points: Points, options: argparse.Namespace) -> None:
    """Measure what is missing, and keep each point as soon as it is there."""
    job = MEASURES.get(part) or partial(_history, part, options=options)
    for size in sizes:
        if str(size) not in points:
            points[str(size)] = job(size)
            kept = read_kept(options.results)
            kept.setdefault(part, {})[str(size)] = points[str(size)]
            write_whole(options.results, (json.dumps(kept, indent=1) + "\n").encode())


def _history(part: str, size: int, options: argparse.Namespace) -> dict[str, float]:
    """Measure a ledger in SQLite, or one in PostgreSQL: its witness is in the folder, too."""
    if options.folder is None or (part == "postgresql" and options.postgres is None):
        raise SystemExit(
            f"--part {part} needs a --folder of its own, with 0.25 GB for each million of releases, and for PostgreSQL "
            "the URL of an empty database (--postgres)"
        )
    url = options.postgres if part == "postgresql" else None
    return measure_history(options.folder, size, options.verify_up_to, url)


def read_kept(path: Path) -> dict[str, Points]:
    return json.loads(path.read_text()) if path.exists() else {}


def growth(points: Points, name: str) -> float:
    """Return the exponent of growth between the two largest sizes."""
    (n, small), (m, large) = sorted((int(size), row[name]) for size, row in points.items() if name in row)[
        -2:
    ]
    return math.log(large / small) / math.log(m / n)


def names_of(points: Points) -> list[str]:
    return list(dict.fromkeys(name for row in points.values() for name in row))


def show(part: str, points: Points) -> None:
    rows = sorted((int(size), row) for size, row in points.items())
    print(f"{part:<40}" + "".join(f"{size:>12,}" for size, _ in rows) + "    growth")
    for name in names_of(points):
        cells = "".join(f"{_write(name, row[name]) if name in row else '':>12}" for _, row in rows)
        is_shown = name not in NO_TIMES and sum(name in row for _, row in rows) > 1
        print(f"{name:<40}{cells}" + (f"{growth(points, name):>10.2f}" if is_shown else ""))


def _write(name: str, value: float) -> str:
    if name in NO_TIMES:
        return f"{value:.2f}"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            number = value / size
            return f"{number:,.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
    return f"{value * 1e6:.3g} µs"


def draw(part: str, points: Points) -> str:
    """Return a picture with logarithmic axes: what is linear is as steep as the dashed line."""
    names = [name for name in names_of(points) if name not in NO_TIMES]
    sizes = sorted(map(int, points))
    curves = [
        [Point(size, points[str(size)][name]) for size in sizes if name in points[str(size)]]
        for name in names
    ]
    values = [point.y for curve in curves for point in curve]
    y = _decades(min(values), max(values))
    start = min(values)
    linear = [Point(size, start * size / sizes[0]) for size in sizes if start * size / sizes[0] <= y.high]
    series = [
        Series("limit", linear),
        *(
            Series(colour, curve, says=name)
            for name, colour, curve in zip(names, cycle(COLOURS), curves, strict=False)
        ),
    ]
    room = (sizes[-1] / sizes[0]) ** ROOM_FOR_WORDS
    x = Scale(sizes[0], sizes[-1] * room, [(size, f"{size:,}") for size in sizes], log=True)
    drawn = plot(series, x, y, f"Seconds of the processor by {part}")
    return file_of(drawn, f"{'; '.join(names)}; dashed: what would be linear. Both axes are logarithmic.")


def _decades(low: float, high: float) -> Scale:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    marks = [(10.0**power, _write("", 10.0**power)) for power in range(first, last + 1)]
    return Scale(10.0**first, 10.0**last, marks, log=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="print an object for machines")
    parser.add_argument("--again", action="store_true", help="measure again what is kept")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="where to draw what is kept")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the long ledger is, or grows")
    parser.add_argument("--postgres", metavar="URL", help="an empty database for a long ledger")
    parser.add_argument("--sizes", type=float, nargs="+", help="other sizes than those of the part")
    parser.add_argument(
        "--verify-up-to", type=float, default=1e7, metavar="N", help="replay no longer history (default: 1e7)"
    )
    parser.add_argument(
        "--results", type=Path, default=KEPT, help="what is kept (default: growth.json beside this)"
    )
    options = parser.parse_args()
    kept = read_kept(options.results)
    parts = options.part or [part for part in PARTS if part not in LONG or options.plots or options.json]
    with threadpool_limits(1):
        for part in parts:
            points: Points = kept.setdefault(part, {})
            if options.again:
                points.clear()
            if not options.plots:
                sizes = [int(size) for size in options.sizes or PARTS[part]]
                measure(part, sizes, points, options)
    _report({part: kept[part] for part in parts if kept[part]}, options)


def _report(found: dict[str, Points], options: argparse.Namespace) -> None:
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for part, points in found.items():
        if options.plots and len(points) > 1:
            write_whole(options.plots / f"growth-{part}.svg", draw(part, points).encode())
        elif not options.plots:
            show(part, points)
            print()


if __name__ == "__main__":
    main()
