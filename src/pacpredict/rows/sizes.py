"""Heights and widths of images: which are taken, how people write one, and what is said where they are mixed."""

import re
from collections import Counter
from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

from pacpredict.exceptions import InvalidInput
from pacpredict.rows.forms import Unusable
from pacpredict.show import show

Size = tuple[int, int]  # height and width
ImageSize = int | str | Sequence[int]  # as people give it: 64, "64", "64x48", or (64, 48)

# Pixels. Models look at some hundred of them on each side; a larger image is better scaled down before.
LONGEST_SIDE = 4_096
# Of an image before it is scaled: 34 million, where phones have 12 and cameras 24. Pillow takes up to 16 bytes for each
# until it is done (measured, of WebP), half a gigabyte, of a file that can have 34 bytes.
MOST_PIXELS_SCALED = 2**25
# Pillow's weights take 32 bytes for each pixel of a side: a line of all these pixels would take another gigabyte.
LONGEST_SIDE_SCALED = 16_384

_WRITTEN = re.compile(r"([0-9]{1,9})(?:x([0-9]{1,9}))?", re.IGNORECASE)
# Sizes that an error names; the others are counted.
_MOST_NAMED = 5


class Wanted(NamedTuple):
    """The height and width that every image must have or, if `scales`, is brought to."""

    size: Size
    scales: bool = False


def parse_size(given: ImageSize) -> Size:
    """Return the height and width that somebody wrote: 64 (both), "64x48", or (64, 48)."""
    match = _WRITTEN.fullmatch(given.strip()) if isinstance(given, str) else None
    if match is not None:
        sides: list[Any] = [int(match[1]), int(match[2] or match[1])]
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes):
        sides = list(given)
    else:
        sides = [given, given]
    if len(sides) != 2 or not all(_is_whole(side) and 1 <= side <= LONGEST_SIDE for side in sides):
        said = show(given) if match is None else write_size((sides[0], sides[1]))
        raise InvalidInput(
            f"{said} is no size of images: write 64, or 64x48 for height x width; sides are from 1 to {LONGEST_SIDE:,}"
        )
    return int(sides[0]), int(sides[1])


def write_size(size: Size) -> str:
    """Return what parse_size reads."""
    return "x".join(map(str, size))


def check_size(found: Size, wanted: Wanted | None) -> None:
    """Refuse a size that is not wanted, or that would take too much memory: before a pixel is decoded."""
    height, width = found
    said = f"the image has {height} x {width} pixels"
    if wanted is not None and wanted.scales:
        if not (
            min(found) >= 1 and max(found) <= LONGEST_SIDE_SCALED and height * width <= MOST_PIXELS_SCALED
        ):
            raise Unusable(
                f"{said}; what is scaled has sides from 1 to {LONGEST_SIDE_SCALED:,} and at most "
                f"{MOST_PIXELS_SCALED:,} pixels in all: scale it down first"
            )
        return
    if wanted is not None and found != wanted.size:
        raise Unusable(
            f"{said}, expected {wanted.size[0]} x {wanted.size[1]} (height x width): scale it first"
        )
    if not (min(found) >= 1 and max(found) <= LONGEST_SIDE):
        raise Unusable(
            f"{said}; sides are from 1 to {LONGEST_SIDE:,} unless all images are scaled, such as by --image-size 224 "
            "(image_size= in Python)"
        )


def mixed_sizes(counts: Counter[Size]) -> str:
    """Say which sizes there are, the most frequent first, and what brings all images to one."""
    named = [
        f"{height} x {width} ({n:,} image{'s' if n > 1 else ''})"
        for (height, width), n in counts.most_common(_MOST_NAMED)
    ]
    n_others = len(counts) - len(named)
    more = f" and {n_others:,} more" if n_others else ""
    return (
        f"there are images of {len(counts):,} sizes (height x width): {', '.join(named)}{more}. To have all of them "
        "scaled, and every query, add the size that models shall see, such as --image-size 224 or 224x160 "
        "(image_size= in Python)"
    )


def _is_whole(side: Any) -> bool:
    return isinstance(side, Integral) and not isinstance(side, bool)
