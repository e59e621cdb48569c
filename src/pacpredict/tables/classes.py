"""The label space: which labels there are, and their codes."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.core.validate import MOST_CLASSES
from pacpredict.exceptions import InvalidModel, InvalidTable
from pacpredict.show import show, show_rows, show_some
from pacpredict.tables.forms import without_mask
from pacpredict.tables.values import is_missing, is_storable
from pacpredict.types import IntArray


@dataclass(frozen=True)
class Classes:
    """Labels of any hashable type, in the order of their codes: sorted, or as they first appeared if they cannot be."""

    values: tuple[Hashable, ...]

    @classmethod
    def infer(cls, labels: Any) -> "Classes":
        """Return the classes of a target of the training data; equal labels (1, 1.0 and True) are one class.

        Raises
        ------
        InvalidTable
            if labels are missing, infinite, not valid Unicode or cannot be hashed, or if there are fewer than two
            classes or too many.
        """
        given = _as_list(labels)
        try:
            distinct = dict.fromkeys(given)
        except TypeError as problem:
            raise InvalidTable(f"labels must be hashable, such as texts or integers ({problem})") from problem
        if any(map(is_missing, distinct)):
            n_missing, which = sum(map(is_missing, given)), show_rows(map(is_missing, given))
            raise InvalidTable(f"the target has {n_missing:,} missing values; drop these records: {which}")
        if any(isinstance(label, float) and math.isinf(label) for label in distinct):
            raise InvalidTable("the target has infinite values; a class must be a finite number or a name")
        for label in distinct:  # no answer could be sent
            if isinstance(label, str) and not is_storable(label):
                raise InvalidTable(f"the class {show(label)} is not valid Unicode; give it another name")
        if len(distinct) < 2:
            raise InvalidTable(
                f"the target has {len(distinct)} class; there is nothing to predict with fewer than two classes"
            )
        if len(distinct) > MOST_CLASSES:
            raise InvalidTable(
                f"the target has {len(distinct):,} classes, and there can be at most {MOST_CLASSES:,}; "
                "is it a quantity or an identifier?"
            )
        try:
            return cls(tuple(sorted(distinct)))
        except TypeError:
            return cls(tuple(distinct))

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, labels: Any) -> IntArray:
        """Return the position of each label among the classes."""
        given = _as_list(labels)
        codes = self._codes
        try:
            return np.array([codes[label] for label in given], dtype=np.int64)
        except (KeyError, TypeError):
            unknown = next(label for label in given if not _is_key(label, codes))
        raise InvalidTable(f"{show(unknown)} is none of the classes {show_some(list(self.values))}")

    def labels(self, codes: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the labels of some codes, as an array of integers, floats, booleans, texts or else objects."""
        return self._array[np.asarray(codes)]

    def to_json(self) -> list[Any]:
        return [label_to_json(value) for value in self.values]

    @classmethod
    def from_json(cls, stored: Any) -> "Classes":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        if not isinstance(stored, list) or not 2 <= len(stored) <= MOST_CLASSES:
            raise InvalidModel(f"stored classes must be a list of 2 to {MOST_CLASSES:,} labels")
        values = tuple(label_from_json(value) for value in stored)
        if len(set(values)) < len(values):
            raise InvalidModel("stored classes must differ from each other")
        return cls(values)

    @cached_property
    def _codes(self) -> dict[Hashable, int]:
        return {value: code for code, value in enumerate(self.values)}

    @cached_property
    def _array(self) -> npt.NDArray[Any]:
        (kind, *others) = {type(value) for value in self.values}
        if not others and kind in {bool, int, float, str}:
            array = np.array(self.values)
            # NumPy makes other things of huge integers, and drops NUL characters at the end of a text.
            if array.tolist() == list(self.values) and type(array.tolist()[0]) is kind:
                return array
        return np.fromiter(self.values, dtype=object, count=len(self.values))


def _as_list(labels: Any) -> list[Any]:
    """Return Python's own scalars, whatever array or series the labels came in."""
    if hasattr(labels, "to_numpy"):  # a pandas series, also of a nullable or category dtype
        labels = labels.to_numpy()
    if isinstance(labels, np.ndarray) and labels.ndim == 1:
        labels = without_mask(labels)
        return list(map(_as_python, labels)) if labels.dtype.kind in "MmO" else labels.tolist()
    if isinstance(labels, list | tuple):
        return list(map(_as_python, labels))
    shape = f"an array of shape {labels.shape}" if isinstance(labels, np.ndarray) else type(labels).__name__
    raise InvalidTable(f"the target must be one-dimensional, with a label for each record; got {shape}")


def _as_python(label: Any) -> Any:
    if isinstance(label, np.datetime64 | np.timedelta64):
        return label.astype(
            f"{label.dtype.kind}8[us]"
        ).item()  # from nanoseconds, item() would make an integer
    return label.item() if isinstance(label, np.generic) else label


def _is_key(label: Any, codes: dict[Hashable, int]) -> bool:
    try:
        return label in codes
    except TypeError:
        return False


def label_to_json(value: Any) -> Any:
    """Return a label as JSON has it; InvalidModel if it has none."""
    if _is_plain(value):
        return value
    if type(value) is tuple:
        return {"tuple": [label_to_json(item) for item in value]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    # pandas's timestamps are datetimes, with nanoseconds that a datetime does not have.
    if isinstance(value, datetime) and not getattr(value, "nanosecond", 0):
        return {"datetime": value.isoformat()}
    if type(value) is date:
        return {"date": value.isoformat()}
    raise InvalidModel(
        f"the class {show(value)} cannot be stored; classes can be texts, integers, finite floats, booleans, bytes, "
        "dates, datetimes to the microsecond, and tuples of these"
    )


def _is_plain(value: Any) -> bool:
    return type(value) in {str, int, bool} or (type(value) is float and math.isfinite(value))


def label_from_json(stored: Any) -> Hashable:
    """Return the label that label_to_json wrote."""
    if _is_plain(stored):
        return stored
    try:
        ((kind, value),) = stored.items()
        if kind == "tuple" and type(value) is list:
            return tuple(label_from_json(item) for item in value)
        return {"bytes": bytes.fromhex, "datetime": datetime.fromisoformat, "date": date.fromisoformat}[kind](
            value
        )
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise InvalidModel(f"a stored class is not one that we can read: {show(stored)}") from problem
