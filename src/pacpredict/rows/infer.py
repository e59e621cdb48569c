"""Which kind of rows some training data are, and which kind an artifact was fitted on."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidTable
from pacpredict.rows.forms import values_of
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.kind import AnyRows, AnySchema, RowKind
from pacpredict.rows.sizes import ImageSize, parse_size
from pacpredict.rows.texts import TextSchema
from pacpredict.tables.schema import Schema, Types
from pacpredict.types import IntArray

KINDS: tuple[RowKind, ...] = ("table", "image", "text")
IN_WORDS: dict[RowKind, str] = {"table": "a table", "image": "images", "text": "texts"}


def learn_rows(
    given: Any,
    kinds: Collection[RowKind] = KINDS,
    column: str | None = None,
    types: Types | None = None,
    image_size: ImageSize | None = None,
    *,
    min_category: int = 1,
    persons: IntArray | None = None,
) -> tuple[AnySchema, AnyRows]:
    """Check training data and return what queries must be like, with the canonical rows.

    Where `kinds` leaves a choice the form decides: arrays of three or four dimensions, and lists of image files or of
    Pillow's objects, are images; lists of texts are texts; everything else is a table. Images, and all queries, are
    scaled to the size that is given, if one is. `Schema.infer` says what types, min_category and persons are.
    """
    size = None if image_size is None else parse_size(image_size)
    kind = _kind(given, kinds, column)
    if kind == "image":
        return ImageSchema.learn(given, column or "image", size)
    if size is not None:
        raise InvalidInput(f"an image size is for images, and these are {IN_WORDS[kind]}")
    if kind == "text":
        return TextSchema.learn(given, column or "text")
    schema = Schema.infer(given, types, min_category=min_category, persons=persons)
    return schema, schema.rows(given)


def schema_from_json(stored: Any) -> AnySchema:
    """Return the schema of any kind that to_json gave; that of a table has no field `kind`."""
    kind = stored.get("kind", "table") if isinstance(stored, Mapping) else "table"
    if kind == "table":
        return Schema.from_json(stored)
    if kind == "image":
        return ImageSchema.from_json(stored)
    if kind == "text":
        return TextSchema.from_json(stored)
    raise InvalidModel(f"a stored schema of the unknown kind {kind!r:.50}")


def kind_of(given: Any) -> RowKind:
    """Tell by its form which kind of rows something is."""
    if isinstance(given, np.ndarray) and given.dtype != object:
        is_text = given.dtype.kind == "U" and given.ndim == 1
        return "text" if is_text else "image" if given.ndim in (3, 4) else "table"
    is_list = isinstance(given, list | tuple | np.ndarray) or type(given).__name__ == "Series"
    first = next(iter(given), None) if is_list else None
    if isinstance(first, str):
        return "text"
    return "image" if _is_image(first) else "table"


def _kind(given: Any, kinds: Collection[RowKind], column: str | None) -> RowKind:
    first, *others = kinds
    if first == "table" and not others:
        return first
    kind = kind_of(given if "table" in kinds else values_of(given, column or first, InvalidTable))
    if kind in kinds:
        return kind
    if kind == "table" and not others:
        return first  # nothing that is known by its form: whoever reads it says what is wrong
    wanted = " or ".join(IN_WORDS[one] for one in kinds)
    raise InvalidTable(f"these records look like {IN_WORDS[kind]}, but the learner takes {wanted}")


def _is_image(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim in (2, 3)
    is_encoded = isinstance(value, bytes | bytearray | memoryview)
    return (
        is_encoded
        or (isinstance(value, Mapping) and "bytes" in value)
        or type(value).__module__.startswith("PIL.")
    )
