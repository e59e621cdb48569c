"""What every kind of row can do, so that pools, ledgers and servers need not know which kind theirs is.

| kind | a row is | schema |
|---|---|---|
| table | a value for each column | `tables.schema.Schema` |
| image | pixels, red, green and blue | `rows.images.ImageSchema` |
| text | a text | `rows.texts.TextSchema` |

Images and texts are whole values: a learner sees all of one, and a digest is of all of it.
"""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

RowKind = Literal["table", "image", "text"]


class AnyRows(Protocol):
    """Canonical rows: equal queries are equal bits."""

    def __len__(self) -> int: ...

    def take(self, indices: npt.ArrayLike) -> Self:
        """Return the rows at some positions, or those where a boolean array is true."""

    @classmethod
    def join(cls, parts: Sequence[Any]) -> Self:
        """Return the rows of several queries of one schema, one after the other."""

    def mixed(self, rng: np.random.Generator) -> Self:
        """Return as many rows that are made of parts of these, such as nobody has."""


class AnySchema(Protocol):
    """What the training data were like, and what queries must be like. Rows are of its own kind."""

    @property
    def kind(self) -> RowKind: ...

    def rows(self, given: Any) -> AnyRows:
        """Return the canonical rows of a query in any form; InvalidQuery, with the row, if one cannot be used."""

    def digests(self, rows: Any) -> list[bytes]:
        """Return the SHA-256 of each row: equal for equal rows, and only for these."""

    def example(self) -> AnyRows:
        """Return a row of no consequence, to let models vote once before anybody waits for them."""

    def summary(self) -> dict[str, int]:
        """Count what a row consists of, for people to read."""

    def to_json(self) -> dict[str, Any]: ...
