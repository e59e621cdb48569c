"""The training data on the command line: which file, and what its columns are."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pacpredict import defaults
from pacpredict.cli.columns import print_warnings
from pacpredict.cli.numbers import count
from pacpredict.cli.options import Arguments, add_missing
from pacpredict.exceptions import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection

    from pacpredict.artifact.artifact import Artifact
    from pacpredict.rows.kind import RowKind
    from pacpredict.tables.cells import Reading
    from pacpredict.tables.options import TableOptions


def add_data_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "table",
        type=Path,
        help="training data: CSV (also .gz) or Parquet, one record per row; a folder of images; .npz",
    )
    about = parser.add_argument_group(
        "columns", "What the columns of the table are; a dry run of fit shows them."
    )
    about.add_argument("--target", metavar="COLUMN", help="the column to predict")
    about.add_argument(
        "--input", metavar="COLUMN", help="the column of images or texts (default: the only other one)"
    )
    about.add_argument(
        "--image-size",
        metavar="SIZE",
        help="scale all images, and later those of queries, to this height x width: 64, or 64x48 "
        "(default: all are of one size, and others are refused)",
    )
    about.add_argument(
        "--drop", nargs="+", action="extend", default=[], metavar="COLUMN", help="columns to leave out"
    )
    about.add_argument(
        "--types",
        nargs="+",
        action="extend",
        default=[],
        type=_column_type,
        metavar="COLUMN=TYPE",
        help="what columns are: number, boolean, category, text, date, date:FORMAT such as date:%%d.%%m.%%Y, "
        "number:EXAMPLE that shows how 1234.5 is written, such as number:1.234,5, or category:LIST as in category:A,B",
    )
    about.add_argument("--weights", metavar="COLUMN", help="the column that says what each record counts")
    _add_person_arguments(about)
    add_missing(about)
    about.add_argument(
        "--min-category",
        type=count,
        metavar="UNITS",
        help="how many units, persons if they are named, must have a category for it to be listed; all others are one, "
        f"'other' (default: {defaults.MIN_CATEGORY})",
    )
    about.add_argument(
        "--config", type=Path, metavar="FILE", help="a TOML file with all of this; options add to it"
    )


def _add_person_arguments(parser: Arguments) -> None:
    parser.add_argument(
        "--person",
        metavar="COLUMN",
        help="the column that says whose a record is: all records of a person are protected together "
        "(default: identical records are)",
    )
    parser.add_argument(
        "--person-per-row",
        action="store_true",
        help="each row is of another person, also if rows are identical",
    )
    parser.add_argument(
        "--person-is-feature",
        action="store_true",
        help="learn from the column of persons, too; queries then need it",
    )


def table_options(arguments: Namespace) -> "TableOptions":
    """Put together what the file and the command line say about the table; the latter has the last word."""
    from pacpredict.rows.sizes import parse_size, write_size  # noqa: PLC0415  # NumPy takes time to import
    from pacpredict.tables.options import TableOptions, read_options  # noqa: PLC0415

    said: dict[str, Any] = {} if arguments.config is None else read_options(arguments.config)
    said |= {
        name: getattr(arguments, name)
        for name in (
            *("target", "input", "image_size", "weights", "min_category"),
            *("person", "person_per_row", "person_is_feature"),
        )
        if getattr(arguments, name) is not None and getattr(arguments, name) is not False
    }
    if said.get("image_size") is not None:
        said["image_size"] = write_size(parse_size(said["image_size"]))
    if arguments.table.is_dir():  # of images, whose classes are folders
        said = {"target": "label", "input": "image", **said}
    for name in ("drop", "missing"):
        said[name] = [*said.get(name, []), *getattr(arguments, name)]
    said["types"] = {**said.get("types", {}), **dict(arguments.types)}
    return TableOptions.from_json(said)


def read_with_warnings(path: Path, options: "TableOptions", kinds: "Collection[RowKind]") -> Any:
    """Read the pool, and say what a dry run would say about its columns."""
    pool, warnings = read_pool_and_warnings(path, options, kinds)
    print_warnings(warnings)
    return pool


def read_pool_and_warnings(
    path: Path, options: "TableOptions", kinds: "Collection[RowKind]"
) -> tuple[Any, list[str]]:
    """Read the pool, and return it with what to think about."""
    from pacpredict.rows.folders import FOLDER, left_out  # noqa: PLC0415
    from pacpredict.tables.beside import persons_beside  # noqa: PLC0415
    from pacpredict.tables.survey import survey  # noqa: PLC0415
    from pacpredict.training.pool import Pool  # noqa: PLC0415

    records, readings = read_training(path, options, kinds)
    pool = Pool.of_records(records, options, kinds)
    if "table" in kinds:
        return pool, survey(records, options, readings).warnings
    others = {name: records[name] for name in options.beside(list(map(str, records)))}
    suspects, unread = ((FOLDER,), left_out(path)) if path.is_dir() else ((), [])
    hints = persons_beside(others, suspects) if pool.units.kind == "record" else []
    return pool, [*unread, *hints]


def read_training(
    path: Path, options: "TableOptions", kinds: "Collection[RowKind]"
) -> "tuple[Any, dict[str, Reading]]":
    """Return the records of a file or a folder and, of a CSV file, which columns of texts are numbers or booleans."""
    from pacpredict.rows.read import read_records  # noqa: PLC0415
    from pacpredict.tables.cells import settle_cells  # noqa: PLC0415
    from pacpredict.tables.csv_files import is_csv  # noqa: PLC0415

    records = read_records(path, options.missing, options.texts)
    return settle_cells(records, options) if is_csv(path) and "table" in kinds else (records, {})


def read_pool(path: str | Path, options: "TableOptions", kinds: "Collection[RowKind]") -> Any:
    """Read the records of a file or a folder, as learners that take these kinds of rows need them."""
    from pacpredict.training.pool import Pool  # noqa: PLC0415

    records, _ = read_training(Path(path), options, kinds)
    return Pool.of_records(records, options, kinds)


def read_pool_of(artifact: "Artifact", data: Path | None) -> Any:
    """Read the records that an artifact was fitted on, from where they were or are now."""
    from pacpredict.tables.options import TableOptions  # noqa: PLC0415

    source = artifact.manifest.get("source")
    if source is None:
        raise InvalidInput(
            "this artifact was fitted in Python and does not know its data: do this in Python, too"
        )
    said = {name: value for name, value in source.items() if name not in {"path", "sha256"}}
    path = source["path"] if data is None else data
    return read_pool(path, TableOptions.from_json(said), artifact.learner.takes)


def _column_type(text: str) -> tuple[str, str]:
    from pacpredict.tables.column import KINDS  # noqa: PLC0415  # NumPy takes time to import

    name, sign, kind = text.rpartition("=")
    parts = text.split("=")
    for i in range(1, len(parts)):  # names and lists of categories may have the sign
        if (rest := "=".join(parts[i:])).partition(":")[0] in KINDS:
            return "=".join(parts[:i]), rest
    if not sign:
        raise ArgumentTypeError(f"{text!r} is not of the form COLUMN=TYPE, such as age=number")
    return name, kind
