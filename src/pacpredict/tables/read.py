"""Tables in files: CSV, with a few separators and compressed or not, and Parquet."""

import warnings
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pacpredict.exceptions import InvalidTable
from pacpredict.tables import csv_files
from pacpredict.tables.values import MissingCodes, codes_by_column

_PARQUET = (".parquet", ".pq")

# A text must become the float that Python and JSON make of it, to the last bit: then a query from a CSV file is known
# by the same digest as one from JSON. From pandas 3.1 on that is the default, and saying so deprecated.
_FLOAT_PRECISION = "round_trip" if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else None


def read_table(
    source: str | Path,
    missing: Sequence[str] = ("",),
    texts: Sequence[str] = (),
    *,
    names: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Read a CSV file (.csv, .tsv, .tab, .txt, .data, each also with .gz) or a Parquet file (.parquet, .pq).

    CSV is UTF-8 with a line of column names, unless `names` gives these; columns are separated by commas, semicolons or
    tabs, whichever the first line has most of. Blanks after a separator are skipped.

    An empty cell is missing. Others are only if `missing` has them: "?", "NA" or "None" may be meant as they are.
    "age=-9" is missing in the column age only.
    The columns `texts` of a CSV file are left as they are written: 1.234 may be a number with separators.
    """
    path = Path(source)
    is_csv = csv_files.is_csv(path)
    if not is_csv and path.suffix.lower() not in _PARQUET:
        if not path.exists():
            raise InvalidTable(f"there is no file or folder {path}")
        raise InvalidTable(
            f"{path} is none of the files that can be read; the name must end in "
            f"{', '.join(csv_files.SUFFIXES)} (with or without .gz) or {', '.join(_PARQUET)}"
        )
    with csv_files.explaining(path):
        table = _read_csv(path, missing, texts, names) if is_csv else _read_parquet(path, missing)
    if table.empty:
        raise InvalidTable(f"{path} has column names, but no rows")
    return table


def _read_csv(
    path: Path, missing: Sequence[str], texts: Sequence[str], names: Sequence[str] | None
) -> pd.DataFrame:
    with csv_files.open_text(path) as file:
        separator, header = csv_files.first_line(path, file)
    columns = csv_files.check_names(path, header if names is None else list(names), header)
    try:
        with csv_files.open_text(path) as file, warnings.catch_warnings():
            # Lines with more cells than there are names: pandas warns, and would drop the last ones.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(
                file,
                sep=separator,
                names=columns,
                header=0 if names is None else None,
                index_col=False,
                keep_default_na=False,
                na_values={name: ["", *codes] for name, codes in codes_by_column(missing, columns).items()},
                dtype=dict.fromkeys(texts, str),
                skipinitialspace=True,
                float_precision=_FLOAT_PRECISION,
                low_memory=False,  # types are those of whole columns, not of blocks
            )
    except UnicodeDecodeError:
        raise
    except (ValueError, pd.errors.ParserWarning) as problem:
        raise InvalidTable(f"{path} cannot be read as CSV: {problem}") from problem


def _read_parquet(path: Path, missing: Sequence[str]) -> pd.DataFrame:
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
            csv_files.check_unique(path, stored.schema_arrow.names)
            table = stored.read().to_pandas()
    except pa.ArrowException as problem:
        raise InvalidTable(f"{path} cannot be read as Parquet: {problem}") from problem
    for name, texts in codes_by_column(missing, table.columns).items():
        if codes := MissingCodes(texts):
            table[name] = table[name].mask(codes.among(table[name]))
    return table
