"""Images as whole values: pixels decide the digest, and errors name the row."""

import hashlib
import io
import re
import warnings
import zlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pacpredict.exceptions import InvalidModel, InvalidQuery, InvalidTable
from pacpredict.rows.images import Images, ImageSchema
from pacpredict.rows.infer import schema_from_json

SCHEMA = ImageSchema(4, 5)
PIXELS = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)


def encode(pixels, kind="PNG", **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


FILES = [encode(image) for image in PIXELS]


@pytest.mark.parametrize(
    "given",
    {
        "array": PIXELS,
        "integers": PIXELS.astype(np.int64),
        "whole floats": PIXELS.astype(np.float32),
        "nested lists": PIXELS.tolist(),
        "list of arrays": list(PIXELS),
        "PNG": FILES,
        "lossless WebP": [encode(image, "WEBP", lossless=True) for image in PIXELS],
        "BMP": [encode(image, "BMP") for image in PIXELS],
        "opaque": [encode(np.dstack([image, np.full((4, 5), 255, np.uint8)])) for image in PIXELS],
        "Pillow": [Image.fromarray(image) for image in PIXELS],
        "cells of Parquet": [{"bytes": file, "path": None} for file in FILES],
        "series": pd.Series(FILES),
        "frame": pd.DataFrame({"image": FILES, "label": [0, 1]}),
        "part of a frame": pd.DataFrame({"image": FILES}, index=[7, 8]),
        "column of a part": {"image": pd.Series(FILES, index=[7, 8])},
        "mapping": {"image": PIXELS, "label": [0, 1]},
        "records": [{"image": file, "label": 0} for file in FILES],
    }.items(),
    ids=lambda given: given[0],
)
def test_the_same_pixels_are_the_same_query(given):
    """Whatever form or format they come in, the digest is that of size and pixels."""
    size = (4).to_bytes(4, "little") + (5).to_bytes(4, "little")
    expected = [hashlib.sha256(b"pacpredict image 1\n" + size + image.tobytes()).digest() for image in PIXELS]
    assert SCHEMA.digests(SCHEMA.rows(given[1])) == expected


def test_another_pixel_or_shape_is_another_query():
    """One bit, or the same bytes in another shape, makes another digest."""
    other = PIXELS[:1].copy()
    other[0, 0, 0, 0] ^= 1
    assert SCHEMA.digests(SCHEMA.rows(other)) != SCHEMA.digests(SCHEMA.rows(PIXELS[:1]))
    turned = ImageSchema(5, 4)
    reshaped = turned.rows(PIXELS[:1].reshape(1, 5, 4, 3))
    assert turned.digests(reshaped) != SCHEMA.digests(SCHEMA.rows(PIXELS[:1]))


def test_grey_is_three_equal_channels():
    """Arrays without channels, with one, and grey files are one query."""
    grey = PIXELS[..., 0]
    wanted = SCHEMA.digests(SCHEMA.rows(np.repeat(grey[..., None], 3, axis=3)))
    assert SCHEMA.digests(SCHEMA.rows(grey)) == wanted
    assert SCHEMA.digests(SCHEMA.rows(grey[..., None])) == wanted
    assert SCHEMA.digests(SCHEMA.rows([encode(image) for image in grey])) == wanted


def test_a_palette_with_transparency_is_its_colours():
    """How transparent a colour is does not matter, whether a palette, a channel or nothing says it."""
    palette = Image.fromarray(PIXELS[0]).quantize(256)
    stream = io.BytesIO()
    palette.save(stream, "PNG", transparency=bytes([0, 128, 255]))
    assert np.array_equal(SCHEMA.rows([stream.getvalue()]).pixels, PIXELS[:1])
    palette.info["transparency"] = bytes([0, 128, 255])
    assert np.array_equal(SCHEMA.rows([palette]).pixels, PIXELS[:1])


def test_decoding_leaves_the_warnings_of_the_process_alone(monkeypatch):
    """Many threads decode at a time: what one of them switched, another would restore, and everybody would have."""
    filters, seen = list(warnings.filters), []

    def watch(*arguments, **options):
        seen.append(list(warnings.filters))
        return opened(*arguments, **options)

    opened = Image.open
    monkeypatch.setattr(Image, "open", watch)
    SCHEMA.rows(FILES)
    assert seen == [filters, filters]


def animation():
    stream = io.BytesIO()
    frames = [Image.fromarray(image) for image in PIXELS]
    frames[0].save(stream, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    return stream.getvalue()


def chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def animated_png(n_frames, times=1, *, late=False):
    """Return a file of two frames that says how many there are: once or more often, in time or too late."""
    first, data, end = FILES[0][8:33], FILES[0][33:-12], FILES[0][-12:]
    about = chunk(b"acTL", n_frames.to_bytes(4, "big") + bytes(4)) * times
    frames = [
        chunk(b"fcTL", b"".join(number.to_bytes(4, "big") for number in (i, 5, 4, 0, 0)) + bytes(6))
        for i in (0, 1)
    ]
    black = chunk(b"fdAT", (2).to_bytes(4, "big") + zlib.compress(bytes(16) * 4))
    before, after = (b"", about) if late else (about, b"")
    return FILES[0][:8] + first + before + frames[0] + data + after + frames[1] + black + end


def deep_png(colour, channels):
    """Return an image of 16 bits a channel, in a colour type of PNG: Pillow reads them and does not write them."""
    header = (5).to_bytes(4, "big") + (4).to_bytes(4, "big") + bytes([16, colour, 0, 0, 0])
    lines = b"".join(b"\0" + np.arange(5 * channels, dtype=">u2").tobytes() for _ in range(4))
    start = FILES[0][:8]
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def flipped(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (deep_png(0, 1), "more than 8 bits"),
        (deep_png(2, 3), "more than 8 bits"),
        (deep_png(4, 2), "more than 8 bits"),
        (deep_png(6, 4), "more than 8 bits"),
        (FILES[0][:-12], "damaged or of another format"),  # without its last chunk
        (FILES[0][:-1], "damaged or of another format"),
        (FILES[0][:8] + FILES[0][33:], "damaged or of another format"),  # without its first
        (FILES[0][:33] + FILES[0][8:], "damaged or of another format"),  # with two
        (FILES[0][:8] + chunk(b"IHDR", b"") + FILES[0][33:], "damaged or of another format"),
        (FILES[0][:8], "damaged or of another format"),
        (FILES[0][:60], "damaged or of another format"),
        (FILES[0][:50] + bytes(8) + FILES[0][58:], "damaged or of another format"),
        (b"", "damaged or of another format"),
        (b"<svg/>", "damaged or of another format"),
        (encode(PIXELS[0], "TIFF"), "damaged or of another format"),
        (encode(PIXELS[0].transpose(1, 0, 2).copy()), "5 x 4 pixels, expected 4 x 5"),
        (PIXELS[0][:3], "3 x 5 pixels, expected 4 x 5"),
        (encode(np.zeros((4, 5), np.uint16)), "more than 8 bits"),
        (animation(), "animation"),
        (animated_png(2), "animation"),
        (animated_png(1), "animation"),
        (animated_png(0), "animation"),
        (animated_png(2, times=2), "animation"),
        (animated_png(2, late=True), "animation"),
        ("file.png", "expected an image"),
        (None, "expected an image"),
        (np.full((4, 5, 3), 0.5), "whole numbers from 0 to 255"),
        (np.full((4, 5, 3), 256), "whole numbers from 0 to 255"),
        (np.full((4, 5, 3), -1), "whole numbers from 0 to 255"),
        (np.full((4, 5, 3), np.nan), "whole numbers from 0 to 255"),
        (np.full((4, 5, 3), "a"), "must be numbers"),
        (np.zeros((4, 5, 2), np.uint8), "shape"),
        (np.zeros(5, np.uint8), "shape"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_row(bad, said):
    """A corrupt file, another size or kind of pixels: the error names the row."""
    with pytest.raises(InvalidQuery, match=rf"row 1 \(from 0\).*{said}"):
        SCHEMA.rows([FILES[0], bad])
    with pytest.raises(InvalidTable, match=rf"row 1 \(from 0\).*{said}"):
        ImageSchema.learn([FILES[0], bad])


def test_one_bit_of_a_png_is_missed_nowhere():
    """Every byte after the signature is in a chunk with a checksum, or decides where one is."""
    for at in range(8, len(FILES[0])):
        with pytest.raises(InvalidQuery, match="damaged or of another format"):
            SCHEMA.rows([flipped(FILES[0], at)])


def test_what_follows_a_png_is_not_part_of_it():
    """Bytes after the last chunk change nothing, as for other programs."""
    assert SCHEMA.digests(SCHEMA.rows([FILES[0] + b"more"])) == SCHEMA.digests(SCHEMA.rows(FILES[:1]))


def test_a_damaged_jpeg_can_be_another_image():
    """JPEG has no checksums: what can be decoded is an image, and another query."""
    whole = encode(np.random.default_rng(1).integers(0, 256, (4, 5, 3), dtype=np.uint8), "JPEG", quality=90)
    wanted, others = SCHEMA.digests(SCHEMA.rows([whole])), 0
    for at in range(len(whole) - 30, len(whole) - 2):
        try:
            others += SCHEMA.digests(SCHEMA.rows([flipped(whole, at)])) != wanted
        except InvalidQuery:
            continue
    assert others > 0


def test_a_photograph_with_a_preview_is_the_photograph():
    """Phones put a second image behind a JPEG, a preview or a gain map: it is no animation, and is not looked at."""
    alone, both = io.BytesIO(), io.BytesIO()
    first, second = map(Image.fromarray, PIXELS)
    first.save(alone, "JPEG", quality=90)
    first.save(both, "MPO", quality=90, save_all=True, append_images=[second])
    assert Image.open(both).n_frames == 2
    assert np.array_equal(SCHEMA.rows([both.getvalue()]).pixels, SCHEMA.rows([alone.getvalue()]).pixels)


def test_a_small_file_that_claims_a_huge_image_is_not_decoded():
    """The size is looked at before pixels are made: a bomb of a gigapixel costs nothing."""
    bomb = encode(np.zeros((1, 1), np.uint8), "PNG")
    huge = bomb[:16] + (40_000).to_bytes(4, "big") * 2 + bomb[24:]
    huge = huge[:29] + zlib.crc32(huge[12:29]).to_bytes(4, "big") + huge[33:]
    with pytest.raises(InvalidTable, match="more pixels than are ever decoded"):
        ImageSchema.learn([huge])


@pytest.mark.parametrize(
    "given", [[], PIXELS[..., :2], PIXELS[0, 0], PIXELS[:0], [[[1], [2, 3]]], 7, "image"], ids=str
)
def test_what_holds_no_images_is_refused(given):
    """Nothing, arrays of other shapes and things of other kinds."""
    with pytest.raises(InvalidQuery):
        SCHEMA.rows(given)


def test_training_images_decide_the_size():
    """What queries must be like is what the training data were like."""
    schema, rows = ImageSchema.learn(PIXELS)
    assert schema == SCHEMA
    assert np.array_equal(rows.pixels, PIXELS)
    with pytest.raises(InvalidTable, match="sides are from 1 to"):
        ImageSchema.learn(np.zeros((1, 1, 5000), np.uint8))


def test_take_and_join():
    """Parts of rows, put together again, are the rows."""
    rows = SCHEMA.rows(PIXELS)
    assert np.array_equal(Images.join([rows.take([1]), rows.take([0])]).pixels, PIXELS[::-1])
    assert np.array_equal(rows.take(np.array([False, True])).pixels, PIXELS[1:])


def test_schema_survives_json():
    """An artifact's schema is read back as it was, and a damaged one is refused."""
    assert schema_from_json(SCHEMA.to_json()) == SCHEMA
    for damaged in (
        {"kind": "image"},
        {**SCHEMA.to_json(), "width": 0},
        {**SCHEMA.to_json(), "kind": "sound"},
    ):
        with pytest.raises(InvalidModel):
            schema_from_json(damaged)


def test_arrays_in_another_order_are_explained():
    """One image where several are expected, or channels first, as networks have them: the error says what to do."""
    schema = ImageSchema(4, 5)
    with pytest.raises(InvalidQuery, match="got the array of one: put it into a list"):
        schema.rows(PIXELS[0])
    assert len(schema.rows([PIXELS[0]])) == 1
    first = PIXELS.transpose(0, 3, 1, 2)
    with pytest.raises(InvalidQuery, match=re.escape("transpose(0, 2, 3, 1) puts the channels last")):
        schema.rows(first)
    assert np.array_equal(schema.rows(first.transpose(0, 2, 3, 1)).pixels, PIXELS)
    with pytest.raises(InvalidTable, match="'photo', 'day': rename the one that is meant"):
        ImageSchema.learn({"photo": PIXELS, "day": range(len(PIXELS))})


def test_three_columns_of_grey_pixels_are_images():
    """As many lines as images, and three columns: grey images, where their size says so."""
    grey = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
    assert len(ImageSchema(3, 3).rows(grey)) == 3
