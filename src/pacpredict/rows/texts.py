"""Texts as whole values."""

import hashlib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.rows.forms import Unusable, read_each, values_of
from pacpredict.rows.kind import RowKind
from pacpredict.show import show
from pacpredict.tables.values import is_missing, is_storable

# Characters. It bounds the time that one query takes, and the terms of a sum that must stay exact (features/exact.py).
LONGEST_TEXT = 32_768

# Changes when the bytes below it do, so that digests of two versions are never mistaken for each other.
_DIGEST_VERSION = b"pacpredict text 1\n"


@dataclass(frozen=True, eq=False)
class Texts:
    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        return f"Texts({len(self)} texts)"

    def take(self, indices: npt.ArrayLike) -> "Texts":
        chosen = np.arange(len(self))[np.asarray(indices)]
        return Texts(tuple(self.texts[i] for i in chosen))

    @classmethod
    def join(cls, parts: Sequence["Texts"]) -> "Texts":
        return cls(tuple(text for part in parts for text in part.texts))

    def mixed(self, rng: np.random.Generator) -> "Texts":
        """Return texts with the first half of the words of one and the second half of those of another."""
        halves = [_halves(text) for text in self.texts]
        others = rng.permutation(len(self))
        joined = (f"{first} {halves[other][1]}" for (first, _), other in zip(halves, others, strict=True))
        return Texts(tuple(text[:LONGEST_TEXT].strip() for text in joined))


@dataclass(frozen=True)
class TextSchema:
    """Texts in Unicode's normal form C, lines ended by one character, without blanks around: as a query means them."""

    column: str = "text"
    longest: int = LONGEST_TEXT
    kind: ClassVar[RowKind] = "text"

    @classmethod
    def learn(cls, given: Any, column: str = "text") -> tuple["TextSchema", Texts]:
        """Check training texts and return what queries must be like, with the canonical texts."""
        schema = cls(column)
        return schema, schema._read(given, InvalidTable)

    def rows(self, given: Any) -> Texts:
        return self._read(given, InvalidQuery)

    def digests(self, rows: Texts) -> list[bytes]:
        return [hashlib.sha256(_DIGEST_VERSION + text.encode()).digest() for text in rows.texts]

    def example(self) -> Texts:
        return Texts(("text",))

    def summary(self) -> dict[str, int]:
        return {"text": 1}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "column": self.column, "longest": self.longest}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "TextSchema":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        column, longest = stored.get("column"), stored.get("longest")
        if (
            stored.keys() != {"kind", "column", "longest"}
            or type(column) is not str
            or type(longest) is not int
        ):
            raise InvalidModel("a stored schema of texts must have a column's name and a largest length")
        return cls(column, longest)

    def _read(self, given: Any, error: type[InvalidInput]) -> Texts:
        values = values_of(given, self.column, error)
        if not len(values):
            raise error("there are no texts")
        return Texts(tuple(read_each(values, self._canonical, error)))

    def _canonical(self, value: Any) -> str:
        if is_missing(value):
            raise Unusable("the text is missing: leave the row out")
        if not isinstance(value, str):
            raise Unusable(f"expected a text, got {show(value)}")
        # Before it is looked into: what comes over a network may be megabytes.
        self._check_length(value)
        if not is_storable(value):
            raise Unusable(f"{show(value)} is not valid Unicode")
        text = unicodedata.normalize("NFC", value).replace("\r\n", "\n").replace("\r", "\n").strip()
        if not text:
            raise Unusable("the text is empty: leave the row out")
        self._check_length(text)  # some characters become two or three in the normal form
        return text

    def _check_length(self, text: str) -> None:
        if len(text) > self.longest:
            raise Unusable(
                f"the text has {len(text):,} characters, more than the limit of {self.longest:,}; "
                "cut it, or ask about its parts"
            )


def _halves(text: str) -> tuple[str, str]:
    words = text.split()
    middle = (len(words) + 1) // 2
    return " ".join(words[:middle]), " ".join(words[middle:])
