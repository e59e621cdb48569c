"""Whether a PNG file is whole, how many bits it has and whether it moves.

Libraries pass over wrong checksums, drop low bytes, and take an animation that is not quite right for a picture.
"""

import zlib
from typing import NamedTuple

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FIRST, _LAST, _ANIMATION = b"IHDR", b"IEND", b"acTL"
_DEPTH_AT = 8  # in the first chunk, after width and height


class Facts(NamedTuple):
    bits_per_channel: int
    is_animation: bool


def read_facts(data: bytes) -> Facts:
    """Read all chunks of a file up to its end, and return what they say.

    Raises
    ------
    ValueError, IndexError
        if one is cut short or its checksum is wrong, or if first or last are missing.
    """
    view, at, depth, is_animation = memoryview(data), len(SIGNATURE), 0, False
    while True:
        size = int.from_bytes(view[at : at + 4], "big")
        body, at = view[at + 4 : at + 8 + size], at + 12 + size
        kind, sum_ = bytes(body[:4]), view[at - 4 : at]
        if len(sum_) < 4 or zlib.crc32(body) != int.from_bytes(sum_, "big"):
            raise ValueError("a chunk is damaged or missing")
        if (kind == _FIRST) != (not depth):
            raise ValueError("it does not begin with its size, or has several")
        depth = depth or body[4 + _DEPTH_AT]
        is_animation = is_animation or kind == _ANIMATION
        if kind == _LAST:
            return Facts(depth, is_animation)
