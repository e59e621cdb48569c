"""From a user's table to canonical rows, and from these to digests, features and frames.

    schema = Schema.infer(training_table, min_category=10)
    rows = schema.rows(queries)             validated; InvalidQuery before anything is charged
    schema.digests(rows)                    what the ledger knows a query by
    schema.features(rows)                   what models are given

Two queries that mean the same are the same rows, whatever form, types and order of columns they came in: numbers are
float64 (an integer or decimal means the nearest one, 0.0 and -0.0 are one number), categories are codes.

Whether a query is answered follows from the kinds of the columns and from what the owner declared, never from the
values of the training data: an unknown category is "other", and any value may be missing.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.show import show, show_some
from pacpredict.tables.categories import settle_columns
from pacpredict.tables.column import Column, Kind, Values, as_floats
from pacpredict.tables.declared import Types, parse_types
from pacpredict.tables.forms import as_values, dtype_categories, split
from pacpredict.tables.infer import draft_column
from pacpredict.tables.values import MissingCodes, codes_by_column
from pacpredict.tables.words import N_WORD_FEATURES, hash_words
from pacpredict.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Column", "Kind", "Rows", "Schema", "Types"]

# Changes when the bytes below it do, so that digests of two versions are never mistaken for each other.
_DIGEST_VERSION = b"pacpredict row 2\n"


@dataclass(frozen=True, eq=False)
class Rows:
    """Canonical rows: equal queries are equal bits."""

    numbers: (
        FloatArray  # (n_rows, n_columns): numbers, booleans as 0 and 1, codes of categories; NaN is missing
    )
    texts: dict[
        int, tuple[str, ...]
    ]  # by position of the column, whose number is 0, or NaN where it is missing
    # Values of categories that are not listed, likewise, and "" elsewhere. Models do not see them, but queries that
    # differ in them are different: otherwise free repeats would tell which categories are listed.
    unlisted: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"Rows({len(self)} rows, {self.numbers.shape[1]} columns)"

    def take(self, indices: npt.ArrayLike) -> "Rows":
        """Return the rows at some positions, or those where a boolean array is true."""
        chosen = np.arange(len(self))[np.asarray(indices)]
        texts = {j: tuple(texts[i] for i in chosen) for j, texts in self.texts.items()}
        unlisted = {j: tuple(values[i] for i in chosen) for j, values in self.unlisted.items()}
        return Rows(self.numbers[chosen], texts, unlisted)

    @classmethod
    def join(cls, parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of several tables of one schema, one after the other."""
        if len(parts) == 1:
            return parts[0]
        texts = {j: tuple(text for part in parts for text in part.texts[j]) for j in parts[0].texts}
        unlisted = {
            j: tuple(value for part in parts for value in part.unlisted.get(j, ("",) * len(part)))
            for j in sorted(set().union(*(part.unlisted for part in parts)))
        }
        return cls(np.concatenate([part.numbers for part in parts]), texts, unlisted)

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
    """The columns of the training data."""

    columns: tuple[Column, ...]
    is_named: bool = True  # otherwise the columns are called x0, x1, ... and come by position
    min_category: int = 1  # units that have each category that was not declared
    # Codes that mean missing in queries, as they did in the training data, everywhere or, as age=-9, in one column.
    # Columns are the same without them.
    missing: tuple[str, ...] = field(default=(), compare=False)
    kind: ClassVar[Literal["table"]] = "table"

    @classmethod
    def infer(
        cls, table: Any, types: Types | None = None, *, min_category: int = 1, persons: IntArray | None = None
    ) -> "Schema":
        """Find out what the columns of a training table are; forms.py says what a table can be.

        Parameters
        ----------
        types
            What some columns are, as declared.py and separators.py have it: "number", "boolean", "category", "text",
            "date", "date:FORMAT", "number:EXAMPLE", "category:LIST" or a list of categories.
        min_category
            Units that must have a category for it to be listed, unless the owner declared the list; all others are one
            category. A pool takes 10 by default; 1 is for public tables.
        persons
            Of each record the number of its person; by default equal records are one unit.

        Raises
        ------
        InvalidTable
            if something cannot be learned from: duplicate names, no rows or columns, a column without values, infinite
            numbers, integers that float64 does not hold, dates that are not declared, nested or mixed values.
        """
        check_min_category(min_category)
        names, values = split(table, InvalidTable)
        called = _checked_names(names, values)
        if persons is not None and len(persons) != len(values[0]):
            raise InvalidTable(
                f"there are {len(values[0])} records and {len(persons)} labels or persons: give one per record"
            )
        of_dtype, declared = dtype_categories(table), parse_types(types or {})
        if absent := [name for name in declared if name not in called]:
            raise InvalidTable(
                f"types are declared of {show_some(absent)}, but the columns are {show_some(called, 20)}"
            )
        drafts = [
            draft_column(name, column, of_dtype.get(j), declared.get(name))
            for j, (name, column) in enumerate(zip(called, values, strict=True))
        ]
        columns = (settled.check() for settled in settle_columns(drafts, persons, min_category))
        return cls(tuple(columns), names is not None, int(min_category))

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
            for j, values in rows.unlisted.items():
                if values[i]:
                    encoded = values[i].encode("utf-8", "surrogatepass")
                    digest.update(j.to_bytes(8, "little") + len(encoded).to_bytes(8, "little"))
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
        """Of each feature the number of its codes, which are 0, 1, ... and end with that of "other"; 0 for a number."""
        return tuple(column.n_codes for column in self.columns for _ in range(_width(column)))

    @property
    def n_features(self) -> int:
        return len(self.feature_categories)

    def frame(self, rows: Rows) -> "pd.DataFrame":
        """Return the rows with the names and dtypes of the training data, for pipelines that select by these.

        Numbers are float64, also those that were integers. Booleans are nullable: any value can be missing.
        """
        from pacpredict.tables.frames import build_frame  # noqa: PLC0415  # pandas, which most servers never need

        frame = build_frame(self.columns, rows.numbers, rows.texts)
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
            "min_category": self.min_category,
        }

    @classmethod
    def from_json(cls, stored: Any) -> "Schema":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        if not isinstance(stored, dict) or stored.keys() != {"columns", "is_named", "min_category"}:
            raise InvalidModel(
                "a stored schema must have the fields columns, is_named, min_category and no others"
            )
        if not isinstance(stored["columns"], list) or not stored["columns"]:
            raise InvalidModel("the columns of a stored schema must be a list that is not empty")
        if type(stored["is_named"]) is not bool:
            raise InvalidModel("field 'is_named' of a stored schema must be true or false")
        if type(stored["min_category"]) is not int or stored["min_category"] < 1:
            raise InvalidModel("field 'min_category' of a stored schema must be a whole number from 1 on")
        columns = tuple(Column.from_json(column) for column in stored["columns"])
        if len({column.name for column in columns}) < len(columns):
            raise InvalidModel("the columns of a stored schema must have different names")
        if not stored["is_named"] and [column.name for column in columns] != _default_names(len(columns)):
            raise InvalidModel("the columns of a stored schema without names must be called x0, x1, ...")
        return cls(columns, stored["is_named"], stored["min_category"])

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
        numbers = np.array([column.numbers(given) for column, given in pairs], dtype=np.float64)
        texts = {j: column.texts(given) for j, (column, given) in enumerate(pairs) if column.kind == "text"}
        unlisted = {
            j: column.unlisted(given, numbers[j])
            for j, (column, given) in enumerate(pairs)
            if column.kind == "category" and (numbers[j] == column.n_codes - 1).any()
        }
        return self._canonical(numbers.T, texts, unlisted)

    def _canonical(
        self,
        numbers: FloatArray,
        texts: dict[int, tuple[str, ...]],
        unlisted: dict[int, tuple[str, ...]] | None = None,
    ) -> Rows:
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
        return Rows(canonical, texts, unlisted or {})


def check_min_category(min_category: Any) -> None:
    if not isinstance(min_category, int | np.integer) or min_category is True or min_category < 1:
        raise InvalidInput(
            f"min_category must be a whole number of units from 1 on, got {show(min_category)}"
        )


def _checked_names(names: list[Any] | None, values: Sequence[Values]) -> list[str]:
    if not values or not len(values[0]):
        raise InvalidTable(f"the table has no {'rows' if values else 'columns'}")
    if any(len(column) != len(values[0]) for column in values):
        raise InvalidTable("the columns of the table differ in length")
    if names is not None and not all(isinstance(name, str) for name in names):
        raise InvalidTable(
            f"column names must be texts, got {show_some(names)}; say table.columns = table.columns.astype(str)"
        )
    return _default_names(len(values)) if names is None else list(map(str, names))


def _width(column: Column) -> int:
    return N_WORD_FEATURES if column.kind == "text" else 1


def _default_names(n_columns: int) -> list[str]:
    return [f"x{j}" for j in range(n_columns)]
