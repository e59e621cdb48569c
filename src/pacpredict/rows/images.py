"""Images as whole values: 8 bits of red, green and blue, all of one size."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.rows.forms import Unusable, read_each, values_of
from pacpredict.rows.kind import RowKind
from pacpredict.rows.pixels import LONGEST_SIDE, Pixels, check_array, read_pixels

# Changes when the bytes below it do, so that digests of two versions are never mistaken for each other.
_DIGEST_VERSION = b"pacpredict image 1\n"


@dataclass(frozen=True, eq=False)
class Images:
    pixels: Pixels  # (n, height, width, 3)

    def __len__(self) -> int:
        return len(self.pixels)

    def __repr__(self) -> str:
        _, height, width, _ = self.pixels.shape
        return f"Images({len(self)} of {height} x {width} pixels)"

    def take(self, indices: npt.ArrayLike) -> "Images":
        return Images(self.pixels[np.asarray(indices)])

    @classmethod
    def join(cls, parts: Sequence["Images"]) -> "Images":
        return cls(np.concatenate([part.pixels for part in parts]))

    def mixed(self, rng: np.random.Generator) -> "Images":
        """Return images with the left half of one and the right half of another."""
        pixels, others = self.pixels.copy(), rng.permutation(len(self))
        middle = pixels.shape[2] // 2
        pixels[:, :, middle:] = self.pixels[others, :, middle:]
        return Images(pixels)


@dataclass(frozen=True)
class ImageSchema:
    """Two files with the same pixels are one query, whatever their format; grey is red, green and blue alike."""

    height: int
    width: int
    column: str = "image"
    kind: ClassVar[RowKind] = "image"

    @classmethod
    def learn(cls, given: Any, column: str = "image") -> tuple["ImageSchema", Images]:
        """Check training images, which must be of one size, and return what queries must be like, with the pixels."""
        pixels = _read(given, column, None, InvalidTable)
        return cls(pixels.shape[1], pixels.shape[2], column), Images(pixels)

    def rows(self, given: Any) -> Images:
        return Images(_read(given, self.column, (self.height, self.width), InvalidQuery))

    def digests(self, rows: Images) -> list[bytes]:
        size = self.height.to_bytes(4, "little") + self.width.to_bytes(4, "little")
        return [hashlib.sha256(_DIGEST_VERSION + size + image.tobytes()).digest() for image in rows.pixels]

    def example(self) -> Images:
        return Images(np.zeros((1, self.height, self.width, 3), np.uint8))

    def summary(self) -> dict[str, int]:
        return {f"image of {self.height} x {self.width} pixels": 1}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "height": self.height, "width": self.width, "column": self.column}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ImageSchema":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        sides = stored.get("height"), stored.get("width")
        is_size = all(type(side) is int and 1 <= side <= LONGEST_SIDE for side in sides)
        if (
            stored.keys() != {"kind", "height", "width", "column"}
            or not is_size
            or type(stored["column"]) is not str
        ):
            raise InvalidModel("a stored schema of images must have a height, a width and a column's name")
        return cls(stored["height"], stored["width"], stored["column"])


def _read(given: Any, column: str, size: tuple[int, int] | None, error: type[InvalidInput]) -> Pixels:
    values = values_of(given, column, error)
    if not len(values):
        raise error("there are no images")
    if isinstance(next(iter(values)), list):  # nested lists of numbers, as JSON has arrays
        values = _as_array(values, error)
    if isinstance(values, np.ndarray) and values.dtype != object:
        try:
            return check_array(values, size)
        except Unusable as problem:
            raise error(str(problem)) from problem
    return _read_each(values, size, error)


def _read_each(values: Any, size: tuple[int, int] | None, error: type[InvalidInput]) -> Pixels:
    def read(value: Any) -> Pixels:
        nonlocal size
        pixels = read_pixels(value, size)
        if size is None:
            size = pixels.shape[0], pixels.shape[1]  # as the first, so are the others
        return pixels

    return np.stack(read_each(values, read, error))


def _as_array(values: Any, error: type[InvalidInput]) -> npt.NDArray[Any]:
    try:
        return np.array(values)
    except ValueError as problem:
        raise error("the rows of pixels differ in length") from problem
