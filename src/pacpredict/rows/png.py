"""Whether a PNG file is whole, and how many bits it has: libraries pass over wrong checksums and drop low bytes."""

import zlib

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FIRST, _LAST = b"IHDR", b"IEND"
_DEPTH_AT = 8  # in the first chunk, after width and height


def bits_per_channel(data: bytes) -> int:
    """Read all chunks of a file up to its end, and return what the first one says.

    Raises
    ------
    ValueError, IndexError
        if one is cut short or its checksum is wrong, or if first or last are missing.
    """
    view, at, depth = memoryview(data), len(SIGNATURE), 0
    while True:
        size = int.from_bytes(view[at : at + 4], "big")
        body, at = view[at + 4 : at + 8 + size], at + 12 + size
        kind, sum_ = bytes(body[:4]), view[at - 4 : at]
        if len(sum_) < 4 or zlib.crc32(body) != int.from_bytes(sum_, "big"):
            raise ValueError("a chunk is damaged or missing")
        if (kind == _FIRST) != (not depth):
            raise ValueError("it does not begin with its size, or has several")
        depth = depth or body[4 + _DEPTH_AT]
        if kind == _LAST:
            return depth
