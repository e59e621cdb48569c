"""Images as whole values: 8 bits of red, green and blue, all of one size or brought to it."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.rows.forms import Unusable, read_each, values_of
from pacpredict.rows.kind import RowKind
from pacpredict.rows.pixels import SCALING, Pixels, check_array, read_pixels, size_of
from pacpredict.rows.sizes import LONGEST_SIDE, Size, Wanted, mixed_sizes
from pacpredict.show import show

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
    """Two files with the same pixels are one query, whatever their format; grey is red, green and blue alike.

    With `is_scaled` images of any size are taken, and scaled to this one. The query is what comes of that, since models
    see nothing else: pictures that are alike once they are scaled have the same votes. To send the stored answer again
    reveals nothing more. A release for each picture would be another noisy look at the same votes, and charged as such.
    Where another version of Pillow scales otherwise, that is another query, never an answer to other votes.
    """

    height: int
    width: int
    column: str = "image"
    is_scaled: bool = False
    kind: ClassVar[RowKind] = "image"

    @classmethod
    def learn(
        cls, given: Any, column: str = "image", size: Size | None = None
    ) -> tuple["ImageSchema", Images]:
        """Check training images, and return what queries must be like, with the pixels.

        They must be of one size, unless there is one to which they and all queries are scaled.
        """
        wanted = None if size is None else Wanted(size, scales=True)
        pixels = _read(given, column, wanted, InvalidTable)
        return cls(pixels.shape[1], pixels.shape[2], column, size is not None), Images(pixels)

    def rows(self, given: Any) -> Images:
        wanted = Wanted((self.height, self.width), self.is_scaled)
        return Images(_read(given, self.column, wanted, InvalidQuery))

    def digests(self, rows: Images) -> list[bytes]:
        size = self.height.to_bytes(4, "little") + self.width.to_bytes(4, "little")
        return [hashlib.sha256(_DIGEST_VERSION + size + image.tobytes()).digest() for image in rows.pixels]

    def example(self) -> Images:
        return Images(np.zeros((1, self.height, self.width, 3), np.uint8))

    def summary(self) -> dict[str, int]:
        any_size = "any size, scaled to " if self.is_scaled else ""
        return {f"image of {any_size}{self.height} x {self.width} pixels": 1}

    def to_json(self) -> dict[str, Any]:
        # Artifacts whose images are not scaled stay to the byte what they were before any could be.
        scaling = {"scaling": SCALING} if self.is_scaled else {}
        return {
            "kind": self.kind,
            "height": self.height,
            "width": self.width,
            "column": self.column,
            **scaling,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "ImageSchema":
        """Return what to_json gave; anything else is an InvalidModel that says what is wrong."""
        sides = stored.get("height"), stored.get("width")
        is_size = all(type(side) is int and 1 <= side <= LONGEST_SIDE for side in sides)
        if (
            stored.keys() - {"scaling"} != {"kind", "height", "width", "column"}
            or not is_size
            or type(stored["column"]) is not str
        ):
            raise InvalidModel("a stored schema of images must have a height, a width and a column's name")
        if stored.get("scaling", SCALING) != SCALING:
            raise InvalidModel(
                f"a stored schema has images scaled in an unknown way, {show(stored['scaling'])}"
            )
        return cls(stored["height"], stored["width"], stored["column"], "scaling" in stored)


def _read(given: Any, column: str, wanted: Wanted | None, error: type[InvalidInput]) -> Pixels:
    values = values_of(given, column, error)
    if not len(values):
        raise error("there are no images")
    if isinstance(next(iter(values)), list):  # nested lists of numbers, as JSON has arrays
        values = _as_arrays(values, wanted, error)
    if isinstance(values, np.ndarray) and values.dtype != object:
        try:
            return check_array(values, wanted)
        except Unusable as problem:
            raise error(str(problem)) from problem
    return _read_of_one_size(values, error) if wanted is None else _read_all(values, wanted, error)


def _read_of_one_size(values: Any, error: type[InvalidInput]) -> Pixels:
    """Read images that must have the size of most of them; where there are others, say which."""
    counts = Counter(size for value in values if (size := size_of(value)) is not None)
    size, n = counts.most_common(1)[0] if counts else (None, 0)
    if 2 * n < counts.total():
        raise error(mixed_sizes(counts))  # there is none that the others could be told to have
    try:
        return _read_all(values, None if size is None else Wanted(size), error)
    except InvalidInput as problem:
        if len(counts) < 2:
            raise
        raise error(f"{problem}; {mixed_sizes(counts)}") from problem


def _read_all(values: Any, wanted: Wanted | None, error: type[InvalidInput]) -> Pixels:
    return np.stack(read_each(values, lambda value: read_pixels(value, wanted), error))


def _as_arrays(values: Any, wanted: Wanted | None, error: type[InvalidInput]) -> Any:
    """Return one array of all images or, if they may differ in size and do, one of each."""
    try:
        return np.array(values)
    except ValueError as problem:
        if wanted is None or not wanted.scales:
            raise error("the rows of pixels differ in length") from problem
    return list(read_each(values, _as_array, error))


def _as_array(value: Any) -> npt.NDArray[Any]:
    try:
        return np.array(value)
    except ValueError as problem:
        raise Unusable("the rows of pixels differ in length") from problem
