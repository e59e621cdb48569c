"""One image as pixels, whatever it comes as: an encoded file, an array, or Pillow's own object.

Only the formats below are opened. The size is checked before anything is decoded: a small file can claim a huge image.
"""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import MissingExtra
from pacpredict.rows import png
from pacpredict.rows.forms import Unusable
from pacpredict.show import show

Pixels = npt.NDArray[np.uint8]

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
# Pixels. Models look at some hundred of them on each side; a larger image is better scaled down before.
LONGEST_SIDE = 4_096
# Bits per channel that a byte holds; others would lose some, silently. Of colours in PNG the mode does not tell.
_MOST_BITS = 8
_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
_ANIMATION = "the image is an animation; give one frame of it"


def read_pixels(value: Any, size: tuple[int, int] | None) -> Pixels:
    """Return (height, width, 3) of red, green and blue; `size` is the height and width that it must have."""
    if isinstance(value, Mapping) and "bytes" in value:  # as image data sets in Parquet, and folders, have it
        value = value["bytes"]
    if isinstance(value, bytes | bytearray | memoryview):
        return _decode(bytes(value), size)
    if isinstance(value, np.ndarray):
        return check_array(value[None], size)[0]
    if type(value).__module__.startswith("PIL."):
        return _convert(value, size)
    raise Unusable(f"expected an image: the bytes of a file, or an array; got {show(value)}")


def check_array(images: npt.NDArray[Any], size: tuple[int, int] | None) -> Pixels:
    """Return (n, height, width, 3) of an array of images, with channels last or, if they are grey, without."""
    if images.ndim == 3 and images.shape[:2] == size != images.shape[1:]:
        raise Unusable("expected several images, got the array of one: put it into a list")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3):
        is_first = images.ndim == 4 and images.shape[1] in (1, 3)
        raise Unusable(
            f"expected images of shape (n, height, width, 3), or (n, height, width) if grey; got {images.shape}"
            + ("; transpose(0, 2, 3, 1) puts the channels last" if is_first else "")
        )
    _check_size((images.shape[1], images.shape[2]), size)
    if images.dtype != np.uint8:
        images = _as_bytes(images)
    return np.ascontiguousarray(np.broadcast_to(images, (*images.shape[:3], 3)))


def _as_bytes(images: npt.NDArray[Any]) -> Pixels:
    if images.dtype.kind not in "iuf":
        raise Unusable(f"pixels must be numbers from 0 to 255, got {images.dtype}")
    with np.errstate(invalid="ignore"):
        rounded = images.astype(np.uint8)
    if not (rounded == images).all():
        raise Unusable(
            "pixels must be whole numbers from 0 to 255; multiply by 255 and round if they are from 0 to 1"
        )
    return rounded


def _check_size(found: tuple[int, int], wanted: tuple[int, int] | None) -> None:
    height, width = found
    if wanted is not None and found != wanted:
        raise Unusable(
            f"the image has {height} x {width} pixels, expected {wanted[0]} x {wanted[1]} (height x width): "
            "scale it first"
        )
    if not (1 <= height <= LONGEST_SIDE and 1 <= width <= LONGEST_SIDE):
        raise Unusable(f"the image has {height} x {width} pixels; sides are from 1 to {LONGEST_SIDE:,}")


def _decode(data: bytes, size: tuple[int, int] | None) -> Pixels:
    try:
        from PIL import Image  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("images", "reading image files") from problem
    try:
        _check_file(data)
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            return _convert(image, size)
    except Unusable:
        raise
    except Exception as problem:  # parsers of damaged files raise anything
        raise Unusable(
            f"the bytes are not an image that can be read ({', '.join(FORMATS)}): it is damaged or of another format"
        ) from problem


def _check_file(data: bytes) -> None:
    """Look for what Pillow passes over."""
    if not data.startswith(png.SIGNATURE):
        return
    facts = png.read_facts(data)
    if facts.bits_per_channel > _MOST_BITS:
        raise Unusable(f"the image has more than {_MOST_BITS} bits per channel; save it with {_MOST_BITS}")
    if facts.is_animation:
        raise Unusable(_ANIMATION)


def _convert(image: Any, size: tuple[int, int] | None) -> Pixels:
    _check_size((image.height, image.width), size)
    if getattr(image, "n_frames", 1) > 1:
        raise Unusable(_ANIMATION)
    if image.mode not in _MODES:
        raise Unusable(
            f"pixels of mode {show(image.mode)} have more than {_MOST_BITS} bits per channel; save it with {_MOST_BITS}"
        )
    if image.mode == "P":
        image = image.convert("RGBA")  # Pillow warns where it leaves out what a palette says of transparency
    return np.asarray(image.convert("RGB"), np.uint8)
