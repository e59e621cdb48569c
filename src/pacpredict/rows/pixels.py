"""One image as pixels, whatever it comes as: an encoded file, an array, or Pillow's own object.

Only the formats below are opened. The size is checked before anything is decoded: a small file can claim a huge image.

There is one way of scaling, for every form and everywhere: to red, green and blue first, then by Pillow's bicubic
filter, which weighs all pixels that a new one covers, to the wanted width and then to the wanted height. Nothing is cut
off, so that another aspect ratio is stretched. A crop would leave out the borders, unnoticed, and with them perhaps
what an image was taken for; and extractors stretch as well. Whoever wants a crop makes it before.
"""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import MissingExtra
from pacpredict.rows import png
from pacpredict.rows.forms import Unusable
from pacpredict.rows.sizes import Size, Wanted, check_size
from pacpredict.show import show

Pixels = npt.NDArray[np.uint8]

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
# How an artifact names the way of scaling above: another one would be other pixels, and needs another name.
SCALING = "stretch, bicubic"
# Bits per channel that a byte holds; others would lose some, silently. Of colours in PNG the mode does not tell.
_MOST_BITS = 8
_MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
# What Pillow calls a JPEG with further images, a preview or a gain map, as phones make them: the first is the picture.
_JPEG_WITH_OTHERS = "MPO"
_ANIMATION = "the image is an animation; give one frame of it"


def read_pixels(value: Any, wanted: Wanted | None) -> Pixels:
    """Return (height, width, 3) of red, green and blue; None takes any size."""
    value = _content(value)
    if isinstance(value, bytes):
        return _decode(value, wanted)
    if isinstance(value, np.ndarray):
        return check_array(value[None], wanted)[0]
    if _is_pillow(value):
        return _convert(value, wanted)
    raise Unusable(f"expected an image: the bytes of a file, or an array; got {show(value)}")


def size_of(value: Any) -> Size | None:
    """Return the height and width that something claims to have, without decoding it; None if it is no image."""
    value = _content(value)
    if isinstance(value, np.ndarray):
        return (value.shape[0], value.shape[1]) if value.ndim in (2, 3) else None
    if not isinstance(value, bytes):
        return (value.height, value.width) if _is_pillow(value) else None
    try:
        with _pillow().open(io.BytesIO(value), formats=FORMATS) as image:
            return image.height, image.width
    except MissingExtra:
        raise
    except Exception:  # noqa: BLE001  # whoever reads it says what is wrong
        return None


def _content(value: Any) -> Any:
    if isinstance(value, Mapping) and "bytes" in value:  # as image data sets in Parquet, and folders, have it
        value = value["bytes"]
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _is_pillow(value: Any) -> bool:
    return type(value).__module__.startswith("PIL.")


def check_array(images: npt.NDArray[Any], wanted: Wanted | None) -> Pixels:
    """Return (n, height, width, 3) of an array of images, with channels last or, if they are grey, without."""
    if images.ndim == 3 and _is_one(images, wanted):
        raise Unusable("expected several images, got the array of one: put it into a list")
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3):
        is_first = images.ndim == 4 and images.shape[1] in (1, 3)
        raise Unusable(
            f"expected images of shape (n, height, width, 3), or (n, height, width) if grey; got {images.shape}"
            + ("; transpose(0, 2, 3, 1) puts the channels last" if is_first else "")
        )
    size = images.shape[1], images.shape[2]
    check_size(size, wanted)
    if images.dtype != np.uint8:
        images = _as_bytes(images)
    coloured = np.ascontiguousarray(np.broadcast_to(images, (*images.shape[:3], 3)))
    if wanted is None or size == wanted.size:
        return coloured
    pillow = _pillow()
    return np.stack([_scaled(pillow.fromarray(image), wanted.size) for image in coloured])


def _is_one(images: npt.NDArray[Any], wanted: Wanted | None) -> bool:
    """Tell one image in colour from several in grey: by its size or, where there may be any, by its channels."""
    if wanted is None:
        return False
    if wanted.scales:  # or its lines would be answered as grey images of three columns
        return images.shape[2] in (1, 3)
    return images.shape[:2] == wanted.size != images.shape[1:]


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


def _decode(data: bytes, wanted: Wanted | None) -> Pixels:
    pillow = _pillow()
    try:
        _check_file(data)
        with pillow.open(io.BytesIO(data), formats=FORMATS) as image:
            return _convert(image, wanted)
    except Unusable:
        raise
    except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as problem:
        raise Unusable("the image has more pixels than are ever decoded: scale it down first") from problem
    except Exception as problem:  # parsers of damaged files raise anything
        raise Unusable(
            f"the bytes are not an image that can be read ({', '.join(FORMATS)}): it is damaged or of another format"
        ) from problem


def _pillow() -> Any:
    try:
        from PIL import Image  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("images", "reading and scaling images") from problem
    return Image


def _check_file(data: bytes) -> None:
    """Look for what Pillow passes over."""
    if not data.startswith(png.SIGNATURE):
        return
    facts = png.read_facts(data)
    if facts.bits_per_channel > _MOST_BITS:
        raise Unusable(f"the image has more than {_MOST_BITS} bits per channel; save it with {_MOST_BITS}")
    if facts.is_animation:
        raise Unusable(_ANIMATION)


def _convert(image: Any, wanted: Wanted | None) -> Pixels:
    size = image.height, image.width
    check_size(size, wanted)
    if getattr(image, "n_frames", 1) > 1 and image.format != _JPEG_WITH_OTHERS:
        raise Unusable(_ANIMATION)
    if image.mode not in _MODES:
        raise Unusable(
            f"pixels of mode {show(image.mode)} have more than {_MOST_BITS} bits per channel; save it with {_MOST_BITS}"
        )
    if image.mode == "P":
        image = image.convert("RGBA")  # Pillow warns where it leaves out what a palette says of transparency
    coloured = image.convert("RGB")
    return np.asarray(coloured, np.uint8) if wanted is None else _scaled(coloured, wanted.size)


def _scaled(image: Any, size: Size) -> Pixels:
    """Return the pixels of an image in red, green and blue at this size; at its own, they are what they were."""
    height, width = size
    # The width first: in one call, Pillow begins with the height from version 13 on if more of that goes (its pull
    # request 9549), and pixels round otherwise.
    for step in ((width, image.height), (width, height)):
        if image.size != step:
            # A gap would first reduce the image by whole numbers: faster, and other pixels.
            image = image.resize(step, _pillow().Resampling.BICUBIC, reducing_gap=None)
    return np.asarray(image, np.uint8)
