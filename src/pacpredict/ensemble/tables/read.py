"""Tables in files: CSV, with a few separators and compressed or not, and Parquet."""

import csv
import gzip
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd

from pacpredict.ensemble.tables.values import show_some
from pacpredict.exceptions import InvalidTable

_CSV = (".csv", ".tsv", ".tab", ".txt", ".data")
_PARQUET = (".parquet", ".pq")
_SEPARATORS = (",", ";", "\t")

# A text must become the float that Python and JSON make of it, to the last bit: then a query from a CSV file is known
# by the same digest as one from JSON. From pandas 3.1 on that is the default, and saying so deprecated.
_FLOAT_PRECISION = "round_trip" if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else None


def read_table(
    source: str | Path,
    missing: Sequence[str] = ("",),
    *,
    names: Sequence[str] | None = None,
    as_text: bool = False,
) -> pd.DataFrame:
    """Read a CSV file (.csv, .tsv, .tab, .txt, .data, each also with .gz) or a Parquet file (.parquet, .pq).

    CSV is UTF-8 with a line of column names, unless `names` gives these; columns are separated by commas, semicolons or
    tabs, whichever the first line has most of. Blanks after a separator are skipped.

    An empty cell is missing. Others are only if `missing` has them: "?", "NA" or "None" may be meant as they are.

    With `as_text`, every cell of a CSV file stays the text that it is, for a schema that knows its columns to read.
    """
    path = Path(source)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    is_gzip = suffixes[-1:] == [".gz"]
    suffix = (["", *suffixes[:-1]] if is_gzip else ["", *suffixes])[-1]
    if suffix not in _CSV and (is_gzip or suffix not in _PARQUET):
        raise InvalidTable(
            f"{path} is none of the files that can be read; the name must end in "
            f"{', '.join(_CSV)} (with or without .gz) or {', '.join(_PARQUET)}"
        )
    try:
        is_csv = suffix in _CSV
        table = _read_csv(path, is_gzip, missing, names, as_text) if is_csv else _read_parquet(path)
    except FileNotFoundError as problem:
        raise InvalidTable(f"there is no file {path}") from problem
    except (OSError, EOFError, zlib.error) as problem:  # also what gzip and Parquet files end in when cut off
        raise InvalidTable(f"{path} cannot be read: {problem}") from problem
    if table.empty:
        raise InvalidTable(f"{path} has column names, but no rows")
    return table


def _read_csv(
    path: Path, is_gzip: bool, missing: Sequence[str], names: Sequence[str] | None, as_text: bool
) -> pd.DataFrame:
    try:
        with _open(path, is_gzip) as file:
            separator, header = _first_line(path, file)
        columns = _check_names(path, header if names is None else list(names), header)
        with _open(path, is_gzip) as file, warnings.catch_warnings():
            # Lines with more cells than there are names: pandas warns, and would drop the last ones.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                file,
                sep=separator,
                names=columns,
                header=0 if names is None else None,
                index_col=False,
                dtype=str if as_text else None,
                keep_default_na=False,
                na_values=["", *missing],
                skipinitialspace=True,
                float_precision=_FLOAT_PRECISION,
                low_memory=False,  # types are those of whole columns, not of blocks
            )
    except InvalidTable:
        raise
    except UnicodeDecodeError as problem:
        raise InvalidTable(f"{path} is not UTF-8 ({problem.reason}); save it as such") from problem
    except (ValueError, csv.Error, pd.errors.ParserWarning) as problem:
        raise InvalidTable(f"{path} cannot be read as CSV: {problem}") from problem


def _open(path: Path, is_gzip: bool) -> IO[str]:
    # With a byte order mark or without; line ends are for the CSV readers, which know those within quotes.
    how: dict[str, Any] = {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
    return gzip.open(path, **how) if is_gzip else path.open(**how)


def _first_line(path: Path, file: IO[str]) -> tuple[str, list[str]]:
    """Return the separator that cuts the first line into most cells, and these."""
    line = next((line for line in file if line.strip()), None)
    if line is None:
        raise InvalidTable(f"{path} is empty")
    cells = {each: next(csv.reader([line], delimiter=each, skipinitialspace=True)) for each in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda each: len(cells[each]))
    return separator, cells[separator]


def _check_names(path: Path, names: list[str], first_line: list[str]) -> list[str]:
    if len(names) != len(first_line):
        raise InvalidTable(f"{path} has {len(first_line)} columns, but there are {len(names)} names")
    if "" in names:
        raise InvalidTable(
            f"{path} has no name for column {names.index('') + 1}; name it, or leave it out "
            "(pandas writes row numbers without a name: save with index=False)"
        )
    _check_unique(path, names)
    return names


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as problem:
        raise InvalidTable(
            f"{path} is a Parquet file, which needs pyarrow: pip install 'pacpredict[parquet]'"
        ) from problem
    try:
        with path.open("rb") as file:
            stored = parquet.ParquetFile(file)
            _check_unique(path, stored.schema_arrow.names)
            return stored.read().to_pandas()
    except pa.ArrowException as problem:
        raise InvalidTable(f"{path} cannot be read as Parquet: {problem}") from problem


def _check_unique(path: Path, names: Sequence[str]) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidTable(f"{path} has more than one column called {show_some(twice)}; rename or drop them")
