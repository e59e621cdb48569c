"""Canonical rows as a pandas frame, for pipelines that select columns by name or dtype."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pacpredict.tables.column import OTHER, Category, Column
from pacpredict.types import FloatArray

# str, or object before pandas 3.
_TEXT = pd.Series(["text"]).dtype


def build_frame(
    columns: Sequence[Column], numbers: FloatArray, texts: dict[int, tuple[str, ...]]
) -> pd.DataFrame:
    """Return a frame with columns 0, 1, ...; the dtypes depend on the columns only, not on what the rows hold."""
    return pd.DataFrame(
        {
            j: _texts(texts[j], numbers[:, j]) if column.kind == "text" else _series(column, numbers[:, j])
            for j, column in enumerate(columns)
        }
    )


def _series(column: Column, numbers: FloatArray) -> Any:
    if column.kind in {"number", "date"}:
        return numbers
    if column.kind == "boolean":
        return pd.array(column.decode(numbers), dtype="boolean")
    if not column.is_dtype:
        return pd.Series(column.decode(numbers), dtype=_TEXT)
    categories: list[Category] = list(column.categories)
    # Among numbers "other" is missing: encoders take either texts or numbers.
    other = [OTHER] if all(isinstance(category, str) for category in categories) else []
    codes = np.where(numbers < len(categories) + len(other), numbers, -1).astype(
        np.int64
    )  # -1: pandas's missing
    return pd.Categorical.from_codes(codes, categories=categories + other)


def _texts(texts: Sequence[str], numbers: FloatArray) -> Any:
    is_missing = np.isnan(numbers)
    return pd.Series([None if is_missing[i] else text for i, text in enumerate(texts)], dtype=_TEXT)
