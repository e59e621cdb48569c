"""CSV files cell by cell, as they are written; pandas is not needed for this, and takes time to import."""

import csv
import gzip
import shlex
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from pacpredict.exceptions import InvalidQuery, InvalidTable
from pacpredict.show import show, show_some

SUFFIXES = (".csv", ".tsv", ".tab", ".txt", ".data")
_SEPARATORS = (",", ";", "\t")


def is_csv(path: Path) -> bool:
    """Tell by its name whether a file is CSV, compressed or not."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return bool({*suffixes[-1:], *(suffixes[-2:-1] if is_gzip(path) else ())} & set(SUFFIXES))


def is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def read_texts(path: Path) -> dict[str, list[str]]:
    """Read the columns of a CSV file as texts, for a schema that knows what they mean; an empty cell is ""."""
    with explaining(path):
        with open_text(path) as file:
            separator, names = first_line(path, file)
        check_names(path, names, names)
        with open_text(path) as file:
            lines = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
            rows = [cells for cells in _without_blank(lines) if _fits(path, lines.line_num, cells, names)]
    if len(rows) < 2:
        raise InvalidTable(f"{path} has column names, but no rows")
    return {name: list(cells) for name, cells in zip(names, zip(*rows[1:], strict=True), strict=True)}


def line_of(path: Path, row: int) -> int:
    """Return the line of the file, from 1, on which a row ends; rows are counted from 0, as read_texts has them."""
    with open_text(path) as file:
        separator, _ = first_line(path, file)
    with open_text(path) as file:
        lines = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
        next(islice(_without_blank(lines), row + 1, None))  # the first has the names
        return lines.line_num


def _without_blank(lines: Iterator[list[str]]) -> Iterator[list[str]]:
    return (cells for cells in lines if cells and cells != [""])


def _fits(path: Path, line: int, cells: list[str], names: list[str]) -> bool:
    if len(cells) != len(names):
        raise InvalidTable(f"{path}, line {line}: there are {len(cells)} cells and {len(names)} columns")
    return True


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Say which file cannot be read, and why."""
    try:
        yield
    except InvalidTable:
        raise
    except FileNotFoundError as problem:
        raise InvalidTable(f"there is no file {path}") from problem
    except UnicodeDecodeError as problem:
        # Spreadsheets call the one with a mark Unicode, and the other CSV.
        encoding = "utf-16" if problem.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else "cp1252"
        raise InvalidTable(
            f"{path} is not UTF-8 ({problem.reason}); save it as such or, if a spreadsheet of Windows wrote it, say "
            f"iconv -f {encoding} -t utf-8 {shlex.quote(str(path))} > NEW"
        ) from problem
    except (OSError, EOFError, zlib.error) as problem:  # also what gzip and Parquet files end in when cut off
        raise InvalidTable(f"{path} cannot be read: {problem}") from problem
    except csv.Error as problem:
        raise InvalidTable(f"{path} cannot be read as CSV: {problem}") from problem


def open_text(path: Path) -> IO[str]:
    # With a byte order mark or without; line ends are for the CSV readers, which know those within quotes.
    how: dict[str, Any] = {"mode": "rt", "encoding": "utf-8-sig", "newline": ""}
    return gzip.open(path, **how) if is_gzip(path) else path.open(**how)


def first_line(path: Path, file: IO[str]) -> tuple[str, list[str]]:
    """Return the separator that cuts the first line into most cells, and these."""
    line = next((line for line in file if line.strip()), None)
    if line is None:
        raise InvalidTable(f"{path} is empty")
    cells = {each: next(csv.reader([line], delimiter=each, skipinitialspace=True)) for each in _SEPARATORS}
    separator = max(_SEPARATORS, key=lambda each: len(cells[each]))
    return separator, cells[separator]


def check_names(path: Path, names: list[str], line: list[str]) -> list[str]:
    """Refuse names that do not name each cell of the first line."""
    if len(names) != len(line):
        raise InvalidTable(f"{path} has {len(line)} columns, but there are {len(names)} names")
    if "" in names:
        raise InvalidTable(
            f"{path} has no name for column {names.index('') + 1}; name it, or leave it out "
            "(pandas writes row numbers without a name: save with index=False)"
        )
    check_unique(path, names)
    return names


def check_unique(path: Path, names: Sequence[str]) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InvalidTable(f"{path} has more than one column called {show_some(twice)}; rename or drop them")


def check_only_name(names: Sequence[str], column: str) -> None:
    """Refuse the only column if it has another name: the first line may be a value, and labels be one line off."""
    if len(names) == 1 and names[0] != column:
        raise InvalidQuery(
            f"the only column is called {show(names[0])}, not {show(column)}: if that is a value, write "
            f"{show(column)} on a line above it; if it is a name, rename the column"
        )
