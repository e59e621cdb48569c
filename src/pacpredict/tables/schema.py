"""From a user's table to canonical rows, and from these to digests, features and frames.

    schema = Schema.infer(training_table)
    rows = schema.rows(queries)             validated; InvalidQuery before anything is charged
    schema.digests(rows)                    what the ledger knows a query by
    schema.features(rows)                   what models are given

Two queries that mean the same are the same rows, whatever form, types and order of columns they came in: numbers are
float64 (an integer or decimal means the nearest one, 0.0 and -0.0 are one number), categories are codes.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from pacpredict import defaults
from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.show import show, show_some
from pacpredict.tables.column import Column, Kind, Unknown, Values, as_floats
from pacpredict.tables.declared import Types, parse_types
from pacpredict.tables.forms import as_values, declared_categories, split
from pacpredict.tables.infer import infer_column
from pacpredict.tables.values import MissingCodes, codes_by_column
from pacpredict.tables.words import N_WORD_FEATURES, hash_words
from pacpredict.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Column", "Kind", "Rows", "Schema", "Types", "Unknown"]

# Changes when the bytes below it do, so that digests of two versions are never mistaken for each other.
_DIGEST_VERSION = b"pacpredict row 1\n"


@dataclass(frozen=True, eq=False)
class Rows:
    """Canonical rows: equal queries are equal bits."""

    numbers: (
        FloatArray  # (n_rows, n_columns): numbers, booleans as 0 and 1, codes of categories; NaN is missing
    )
    texts: dict[
        int, tuple[str, ...]
    ]  # by position of the column, whose number is 0, or NaN where it is missing

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows, {self.numbers.shape[1]} columns)"

    def take(self, indices: npt.ArrayLike) -> "Rows":
        """Return the rows at some positions, or those where a boolean array is true."""
        chosen = np.arange(len(self))[np.asarray(indices)]
        texts = {j: tuple(texts[i] for i in chosen) for j, texts in self.texts.items()}
        return Rows(self.numbers[chosen], texts)

    @classmethod
    def join(cls, parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of several tables of one schema, one after the other."""
        if len(parts) == 1:
            return parts[0]
        texts = {j: tuple(text for part in parts for text in part.texts[j]) for j in parts[0].texts}
        return cls(np.concatenate([part.numbers for part in parts]), texts)

    def mixed(self, rng: np.random.Generator) -> "Rows":
        """Return as many rows that have each value from another one of these."""
        mixed = Rows(np.empty_like(self.numbers), {})
        for j in range(self.numbers.shape[1]):
            order = rng.permutation(len(self))
            mixed.numbers[:, j] = self.numbers[order, j]
            if j in self.texts:
                mixed.texts[j] = tuple(self.texts[j][i] for i in order)
        return mixed


@dataclass(frozen=True)
class Schema:
    """The columns of the training data, and what is done with values that it did not have.

    With unknown="refuse", a query with an unknown category, or with a missing value in a column where none was missing,
    is refused; with "missing" both are taken as missing.
    """

    columns: tuple[Column, ...]
    is_named: bool = True  # otherwise the columns are called x0, x1, ... and come by position
    unknown: Unknown = defaults.UNKNOWN
    # Codes that mean missing in queries, as they did in the training data, everywhere or, as age=-9, in one column.
    # Columns are the same without them.
    missing: tuple[str, ...] = field(default=(), compare=False)
    kind: ClassVar[Literal["table"]] = "table"

    def __post_init__(self) -> None:
        if self.unknown not in {"refuse", "missing"}:
            raise InvalidInput(f"unknown must be 'refuse' or 'missing', got {show(self.unknown)}")

    @classmethod
    def infer(cls, table: Any, unknown: Unknown = defaults.UNKNOWN, types: Types | None = None) -> "Schema":
        """Find out what the columns of a training table are; forms.py says what a table can be.

        `types` declares what some of them are: "number", "boolean", "category", "text", "date", "date:FORMAT" or
        "number:EXAMPLE", as declared.py and separators.py have it.

        Raises
        ------
        InvalidTable
            if something cannot be learned from: duplicate names, no rows or columns, a column without values, infinite
            numbers, integers that float64 does not hold, dates that are not declared, nested or mixed values.
        """
        names, values = split(table, InvalidTable)
        if not values or not len(values[0]):
            raise InvalidTable(f"the table has no {'rows' if values else 'columns'}")
        if any(len(column) != len(values[0]) for column in values):
            raise InvalidTable("the columns of the table differ in length")
        if names is not None and not all(isinstance(name, str) for name in names):
            raise InvalidTable(
                f"column names must be texts, got {show_some(names)}; "
                "say table.columns = table.columns.astype(str)"
            )
        called = _default_names(len(values)) if names is None else names
        of_dtype, declared = declared_categories(table), parse_types(types or {})
        if absent := [name for name in declared if name not in called]:
            raise InvalidTable(
                f"types are declared of {show_some(absent)}, but the columns are {show_some(called, 20)}"
            )
        columns = (
            infer_column(str(name), column, of_dtype.get(j), declared.get(name))
            for j, (name, column) in enumerate(zip(called, values, strict=True))
        )
        return cls(tuple(columns), names is not None, unknown)

    def rows(self, table: Any) -> Rows:
        """Return the canonical rows of a table in any of the forms of forms.py.

        Names may come in any order. A form without names needs as many columns as the training data had.

        Raises
        ------
        InvalidQuery
            that names the column, the row and the value, whatever the table holds.
        """
        if self._is_all_numbers and type(table) is np.ndarray and table.dtype.kind in "biuf":
            return self._rows_of_matrix(table)
        if isinstance(table, Mapping):
            return self.rows_from_columns(table)
        names, values = split(table, InvalidQuery)
        if names is not None:
            return self.rows_from_columns(dict(zip(names, values, strict=True)))
        if len(values) != len(self.columns):
            raise InvalidQuery(
                f"expected {len(self.columns)} values per row, for {show_some(self._names)}; got {len(values)}"
            )
        return self._encode(values)

    def rows_from_columns(self, columns: Mapping[str, Any]) -> Rows:
        """Return the canonical rows of columns by name, each a list or a one-dimensional array.

        This is the short way: neither a frame nor pandas is needed.
        """
        try:
            values = [as_values(name, columns[name], InvalidQuery) for name in self._names]
        except KeyError:
            values = []
        if len(columns) != len(self.columns) or not values:
            raise self._wrong_names(columns)
        return self._encode(values)

    def digests(self, rows: Rows) -> list[bytes]:
        """Return the SHA-256 of each row: equal for equal rows, and only for these."""
        numbers = rows.numbers.astype("<f8", copy=False).tobytes()
        width = 8 * len(self.columns)
        digests = []
        for i in range(len(rows)):
            digest = hashlib.sha256(_DIGEST_VERSION)
            digest.update(numbers[i * width : (i + 1) * width])
            for texts in rows.texts.values():
                encoded = texts[i].encode()
                # With the length before it, no two lists of texts are the same bytes.
                digest.update(len(encoded).to_bytes(8, "little"))
                digest.update(encoded)
            digests.append(digest.digest())
        return digests

    def features(self, rows: Rows) -> FloatArray:
        """Return (n_rows, n_features): the numbers, with hashed words in place of each text column.

        A missing text has no words, as an empty one.
        """
        if not rows.texts:
            return rows.numbers
        parts = [
            hash_words(rows.texts[j]) if j in rows.texts else rows.numbers[:, j : j + 1]
            for j in range(len(self.columns))
        ]
        return np.hstack(parts)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names for people to read; the features of a text column t are t#0, t#1, ..."""
        return tuple(
            f"{column.name}#{i}" if column.kind == "text" else column.name
            for column in self.columns
            for i in range(_width(column))
        )

    @cached_property
    def feature_categories(self) -> tuple[int, ...]:
        """Of each feature the number of its categories, whose codes are from 0 to one less; 0 for a number."""
        return tuple(len(column.categories) for column in self.columns for _ in range(_width(column)))

    @property
    def n_features(self) -> int:
        return len(self.feature_categories)

    def frame(self, rows: Rows) -> "pd.DataFrame":
        """Return the rows with the names and dtypes of the training data, for pipelines that select by these.

        Numbers are float64, also those that were integers. Booleans are nullable if a value can be missing.
        """
        from pacpredict.tables.frames import build_frame  # noqa: PLC0415  # pandas, which most servers never need

        frame = build_frame(self.columns, rows.numbers, rows.texts, is_nullable=self.unknown == "missing")
        return frame.set_axis(self._names, axis=1) if self.is_named else frame

    def example(self) -> Rows:
        """Return a row of no consequence."""
        texts: dict[int, tuple[str, ...]] = {
            j: ("",) for j, column in enumerate(self.columns) if column.kind == "text"
        }
        return Rows(np.zeros((1, len(self.columns))), texts)

    def summary(self) -> dict[str, int]:
        """Count the columns of each kind."""
        return dict(Counter(column.kind for column in self.columns))

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [column.to_json() for column in self.columns],
            "is_named": self.is_named,
            "unknown": self.unknown,
        }

    @classmethod
    def from_json(cls, stored: Any) -> "Schema":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        if not isinstance(stored, dict) or stored.keys() != {"columns", "is_named", "unknown"}:
            raise InvalidModel(
                "a stored schema must have the fields columns, is_named, unknown and no others"
            )
        if not isinstance(stored["columns"], list) or not stored["columns"]:
            raise InvalidModel("the columns of a stored schema must be a list that is not empty")
        if type(stored["is_named"]) is not bool:
            raise InvalidModel("field 'is_named' of a stored schema must be true or false")
        if stored["unknown"] not in ("refuse", "missing"):
            raise InvalidModel("field 'unknown' of a stored schema must be 'refuse' or 'missing'")
        columns = tuple(Column.from_json(column) for column in stored["columns"])
        if len({column.name for column in columns}) < len(columns):
            raise InvalidModel("the columns of a stored schema must have different names")
        if not stored["is_named"] and [column.name for column in columns] != _default_names(len(columns)):
            raise InvalidModel("the columns of a stored schema without names must be called x0, x1, ...")
        return cls(columns, stored["is_named"], stored["unknown"])

    @cached_property
    def _names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def _codes(self) -> list[MissingCodes] | None:
        """Return what means missing in each column, None if nothing does."""
        of_columns = codes_by_column(self.missing, self._names)
        return [MissingCodes(of_columns[name]) for name in self._names] if self.missing else None

    @cached_property
    def _is_all_numbers(self) -> bool:
        return all(column.kind == "number" for column in self.columns)

    @cached_property
    def _must_be_present(self) -> npt.NDArray[np.bool_]:
        return np.array([self.unknown == "refuse" and not column.has_missing for column in self.columns])

    def _wrong_names(self, given: Mapping[Any, Any]) -> InvalidQuery:
        absent = [name for name in self._names if name not in given]
        extra = [name for name in given if name not in self._names]
        problems = [f"columns {show_some(absent)} are missing"] if absent else []
        problems += [f"columns {show_some(extra)} are not known"] if extra else []
        raise InvalidQuery(
            f"{' and '.join(problems)}; the model was fitted with {show_some(self._names, 20)}"
        )

    def _rows_of_matrix(self, matrix: npt.NDArray[Any]) -> Rows:
        if matrix.ndim != 2 or matrix.shape[1] != len(self.columns):
            raise InvalidQuery(
                f"expected an array of shape (n_rows, {len(self.columns)}), got {matrix.shape}"
            )
        numbers = as_floats(matrix)
        if self._codes is not None:
            columns = zip(self._codes, numbers.T, strict=True)
            numbers = np.column_stack([codes.without_numbers(column) for codes, column in columns])
        return self._canonical(numbers, {})

    def _encode(self, values: Sequence[Values]) -> Rows:
        n_rows = len(values[0])
        for column, given in zip(self.columns, values, strict=True):
            if len(given) != n_rows:
                raise InvalidQuery(
                    f"columns differ in length: {show(self._names[0])} has {n_rows} values, "
                    f"{show(column.name)} has {len(given)}"
                )
        if self._codes is not None:
            by_column = zip(self._codes, values, strict=True)
            values = [codes.without(given) if codes else given for codes, given in by_column]
        pairs = list(zip(self.columns, values, strict=True))
        numbers = np.array([column.numbers(given, self.unknown) for column, given in pairs], dtype=np.float64)
        texts = {j: column.texts(given) for j, (column, given) in enumerate(pairs) if column.kind == "text"}
        return self._canonical(numbers.T, texts)

    def _canonical(self, numbers: FloatArray, texts: dict[int, tuple[str, ...]]) -> Rows:
        if not len(numbers):
            raise InvalidQuery("the table has no rows")
        canonical = np.add(numbers, 0.0, order="C")  # and -0.0 becomes 0.0
        is_finite = np.isfinite(canonical)
        if not is_finite.all():
            is_missing = np.isnan(canonical)
            canonical[is_missing] = np.nan  # the same bits for every NaN
            if (is_infinite := ~is_finite & ~is_missing).any():
                row, j = np.argwhere(is_infinite)[0]
                raise self.columns[j].refusal(row, "expected a finite number, got an infinite one")
            if (is_unexpected := is_missing & self._must_be_present).any():
                row, j = np.argwhere(is_unexpected)[0]
                raise self.columns[j].refusal(
                    row,
                    "the value is missing, which this column does not allow; "
                    "a model fitted with --unknown missing (unknown='missing' in Python) takes such rows",
                )
        return Rows(canonical, texts)


def _width(column: Column) -> int:
    return N_WORD_FEATURES if column.kind == "text" else 1


def _default_names(n_columns: int) -> list[str]:
    return [f"x{j}" for j in range(n_columns)]
