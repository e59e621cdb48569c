"""Images of any size, scaled to one: by one way, whatever they come as, and never at the price of memory."""

import io
import math
import zlib

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from whole_values import png, refused

from pacpredict.exceptions import InvalidInput, InvalidModel, InvalidQuery, InvalidTable
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.infer import learn_rows, schema_from_json
from pacpredict.rows.pixels import read_pixels
from pacpredict.rows.sizes import Wanted, parse_size, write_size
from pacpredict.training.pool import Pool

SCHEMA = ImageSchema(4, 5, is_scaled=True)
PIXELS = np.random.default_rng(0).integers(0, 256, (2, 9, 7, 3), dtype=np.uint8)


def encode(pixels, kind, **options):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


FILES = [png(image) for image in PIXELS]


def cubic(x):
    """Return the weight of a pixel at this distance: cubic convolution (Keys, 1981) with a = -1/2."""
    x = abs(x)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


def along_first_axis(pixels, n):
    """Scale one axis as Pillow documents it: weights over all pixels that a new one covers, in 22 bits."""
    scale, bits = len(pixels) / n, 22
    wide = max(scale, 1.0)
    lines = []
    for i in range(n):
        centre = (i + 0.5) * scale
        first = max(int(centre - 2 * wide + 0.5), 0)
        last = min(int(centre + 2 * wide + 0.5), len(pixels))
        weights = [cubic((j - centre + 0.5) / wide) for j in range(first, last)]
        whole = [math.floor(weight / sum(weights) * 2**bits + 0.5) for weight in weights]
        total = sum(
            weight * pixels[j].astype(int) for weight, j in zip(whole, range(first, last), strict=True)
        )
        lines.append(np.clip((total + 2 ** (bits - 1)) >> bits, 0, 255))
    return np.array(lines, np.uint8)


def scaled(pixels, height, width):
    """Scale by hand: the width first, rounded to bytes, then the height."""
    return along_first_axis(along_first_axis(pixels.swapaxes(0, 1), width).swapaxes(0, 1), height)


@pytest.mark.parametrize("size", [(4, 5), (9, 5), (3, 7), (1, 1), (20, 30), (5, 40)], ids=str)
def test_scaling_is_bicubic_and_cuts_nothing_off(size):
    """Every pixel is what the filter says by hand, to the bit, up and down and in each direction by itself."""
    for image in PIXELS:
        found = read_pixels(image, Wanted(size, scales=True))
        assert np.array_equal(found, scaled(image, *size))


@pytest.mark.parametrize(
    "given",
    {
        "array": PIXELS,
        "whole floats": PIXELS.astype(np.float32),
        "nested lists": PIXELS.tolist(),
        "list of arrays": list(PIXELS),
        "PNG": FILES,
        "lossless WebP": [encode(image, "WEBP", lossless=True) for image in PIXELS],
        "BMP": [encode(image, "BMP") for image in PIXELS],
        "opaque": [encode(np.dstack([image, np.full((9, 7), 255, np.uint8)]), "PNG") for image in PIXELS],
        "Pillow": [Image.fromarray(image) for image in PIXELS],
        "cells of Parquet": [{"bytes": file, "path": None} for file in FILES],
        "series": pd.Series(FILES),
        "scaled already": np.stack([scaled(image, 4, 5) for image in PIXELS]),
    }.items(),
    ids=lambda given: given[0],
)
def test_the_scaled_pixels_are_the_query(given):
    """Whatever form a picture comes in, it is the query that an artifact of that size, unscaled, would know it by."""
    expected = ImageSchema(4, 5).digests(ImageSchema(4, 5).rows([scaled(image, 4, 5) for image in PIXELS]))
    assert SCHEMA.digests(SCHEMA.rows(given[1])) == expected
    _, rows = ImageSchema.learn(given[1], size=(4, 5))
    assert SCHEMA.digests(rows) == expected


def test_grey_and_colour_are_scaled_alike():
    """Grey is three equal channels, before and after; a palette is its colours; transparency is left out."""
    grey = PIXELS[0, :, :, 0]
    expected = SCHEMA.digests(SCHEMA.rows([np.repeat(grey[..., None], 3, axis=2)]))
    palette = Image.fromarray(grey).convert("RGB").quantize(256)
    for one in (grey, grey[..., None], png(grey), palette):
        assert SCHEMA.digests(SCHEMA.rows([one])) == expected
    clear = np.dstack([PIXELS[0], np.arange(63, dtype=np.uint8).reshape(9, 7)])
    assert SCHEMA.digests(SCHEMA.rows([png(clear)])) == SCHEMA.digests(SCHEMA.rows(FILES[:1]))


def test_pictures_of_mixed_sizes_come_together():
    """Files, arrays and nested lists of several sizes are rows of one, each as it is by itself."""
    pictures = [PIXELS[0], PIXELS[1, :3], PIXELS[1, :, :2], PIXELS[0, :1, :1]]
    apart = [SCHEMA.digests(SCHEMA.rows([one]))[0] for one in pictures]
    assert len(set(apart)) == 4
    for given in (pictures, list(map(png, pictures)), [one.tolist() for one in pictures]):
        assert SCHEMA.digests(SCHEMA.rows(given)) == apart


def test_the_border_counts():
    """Another first column is another query: no crop leaves it out."""
    other = PIXELS[:1].copy()
    other[:, :, 0] = 255 - other[:, :, 0]
    assert SCHEMA.digests(SCHEMA.rows(other)) != SCHEMA.digests(SCHEMA.rows(PIXELS[:1]))


def test_one_image_is_not_taken_for_many_in_grey():
    """Lines of an image in colour would be grey images of three columns, and answered, where any size is scaled."""
    for one in (PIXELS[0], PIXELS[0].tolist(), PIXELS[0, :, :, :1]):
        with pytest.raises(InvalidQuery, match="got the array of one: put it into a list"):
            SCHEMA.rows(one)
    with pytest.raises(InvalidTable, match="got the array of one: put it into a list"):
        ImageSchema.learn(PIXELS[0], size=(4, 5))
    assert len(SCHEMA.rows(PIXELS[..., 0])) == 2
    assert len(SCHEMA.rows([png(PIXELS[0, :, :3, 0])])) == 1  # a file knows whether it is grey


def chunk(kind, data):
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


def claiming(height, width):
    """Return a PNG that claims a size, and has no pixel: whoever decodes it finds it damaged."""
    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 2, 0, 0, 0])
    data = chunk(b"IDAT", zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + data + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("height", "width", "said"),
    [
        (
            5_793,
            5_793,
            "5793 x 5793 pixels; what is scaled has sides from 1 to 16,384 and at most 33,554,432",
        ),
        (1, 16_385, "1 x 16385 pixels; what is scaled"),
        (16_385, 1, "16385 x 1 pixels; what is scaled"),
        (40_000, 40_000, "more pixels than are ever decoded"),
        (10_000, 9_500, "more pixels than are ever decoded|10000 x 9500 pixels"),
        (5_792, 5_792, "damaged"),  # within the limits: it is looked at
        (1, 16_384, "damaged"),
    ],
)
def test_what_would_take_much_memory_is_not_decoded(height, width, said):
    """That it would be scaled down afterwards does not help a bomb: sides and pixels are limited before."""
    for call, error in (
        (SCHEMA.rows, InvalidQuery),
        (lambda given: ImageSchema.learn(given, size=(4, 5)), InvalidTable),
    ):
        with pytest.raises(error, match=rf"row 1 \(from 0\).*({said})"):
            call([FILES[0], claiming(height, width)])


def test_arrays_have_the_same_limits():
    """Arrays are in memory already; a side that a file could not have is refused all the same."""
    with pytest.raises(InvalidQuery, match="1 x 16385 pixels; what is scaled"):
        SCHEMA.rows(np.zeros((1, 1, 16_385), np.uint8))
    with pytest.raises(InvalidQuery, match="0 x 5 pixels"):
        SCHEMA.rows(np.zeros((1, 0, 5), np.uint8))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (FILES[0][:60], "damaged or of another format"),
        (encode(np.zeros((9, 7), np.uint16), "PNG"), "more than 8 bits"),
        (encode(PIXELS[0], "WEBP", save_all=True, append_images=[Image.fromarray(PIXELS[1])]), "animation"),
        (None, "expected an image"),
        (np.full((9, 7, 3), 0.5), "whole numbers from 0 to 255"),
        (np.zeros((9, 7, 2), np.uint8), "shape"),
    ],
)
def test_what_cannot_be_used_is_refused_as_ever(bad, said):
    """Scaling makes nothing of what is no image of eight bits."""
    with pytest.raises(InvalidQuery, match=rf"row 1 \(from 0\).*{said}"):
        SCHEMA.rows([FILES[0], bad])
    ragged = [PIXELS[0].tolist(), [[1, 2], [3]]]
    with pytest.raises(InvalidQuery, match=r"row 1 \(from 0\): the rows of pixels differ in length"):
        SCHEMA.rows(ragged)


def test_mixed_sizes_are_told_with_what_to_add():
    """Without a size the most frequent sizes are named with their numbers, and the option that brings all to one."""
    other = png(PIXELS[0, :3])
    said = str(refused(ImageSchema.learn, [other, *FILES, FILES[0]]))
    assert said.startswith("row 0 (from 0): the image has 3 x 7 pixels, expected 9 x 7 (height x width)")
    assert "images of 2 sizes (height x width): 9 x 7 (3 images), 3 x 7 (1 image). To have all" in said
    assert "--image-size 224 or 224x160 (image_size= in Python)" in said
    many = [png(PIXELS[0, :height, :width]) for height in (2, 3, 4) for width in (2, 3, 4)]
    said = str(refused(ImageSchema.learn, [*many, many[4]]))
    assert said.startswith(
        "there are images of 9 sizes (height x width): 3 x 3 (2 images), 2 x 2 (1 image), "
    )
    assert "and 4 more. To have all" in said
    assert "row" not in said


def test_photographs_that_are_too_large_as_they_are():
    """Of one size or not, what is beyond the sides that models are given is told how it can be taken."""
    large = png(np.zeros((1, 4_097, 3), np.uint8))
    said = str(refused(ImageSchema.learn, [large, large]))
    assert "1 x 4097 pixels; sides are from 1 to 4,096 unless all images are scaled" in said
    assert "--image-size 224 (image_size= in Python)" in said
    assert len(ImageSchema.learn([large, large], size=(4, 5))[1]) == 2


def test_a_damaged_file_is_no_other_size():
    """Where all that can be read are of one size, no size is asked for."""
    said = str(refused(ImageSchema.learn, [*FILES, FILES[0][:60]]))
    assert "row 2 (from 0): the bytes are not an image" in said
    assert "image-size" not in said


def test_schemas_that_scale_survive_json():
    """An artifact knows that, and how, its images are scaled; another way than this one is refused."""
    stored = {"kind": "image", "height": 4, "width": 5, "column": "image", "scaling": "stretch, bicubic"}
    assert SCHEMA.to_json() == stored
    assert schema_from_json(stored) == SCHEMA
    for other in ("crop", None, True):
        with pytest.raises(InvalidModel, match="scaled in an unknown way"):
            schema_from_json({**stored, "scaling": other})


def test_artifacts_from_before_are_what_they_were():
    """A schema without a word on scaling scales nothing, and is written as it was, to the byte."""
    stored = {"kind": "image", "height": 9, "width": 7, "column": "image"}
    schema = schema_from_json(stored)
    assert schema.to_json() == stored
    assert list(schema.to_json()) == list(stored)
    assert np.array_equal(schema.rows(FILES).pixels, PIXELS)
    with pytest.raises(InvalidQuery, match="3 x 7 pixels, expected 9 x 7"):
        schema.rows([png(PIXELS[0, :3])])


@pytest.mark.parametrize(
    "given", [(64, 48), [64, 48], "64x48", "64X48", " 64x48 ", (np.int64(64), np.int32(48))], ids=str
)
def test_how_a_size_is_written(given):
    """Height first, as numbers or as a text; one number is both."""
    assert parse_size(given) == (64, 48)
    assert write_size((64, 48)) == "64x48"
    assert parse_size(64) == parse_size("64") == (64, 64)


@pytest.mark.parametrize(
    "given",
    [
        0,
        -1,
        4_097,
        "0",
        "64x",
        "x64",
        "64x48x3",
        "64,48",
        "",
        "big",
        (64,),
        (1, 2, 3),
        (64, 0),
        True,
        6.5,
        None,
        b"64",
    ],
    ids=str,
)
def test_what_is_no_size(given):
    """Anything else is refused with how a size is written."""
    with pytest.raises(InvalidInput, match="is no size of images: write 64, or 64x48 for height x width"):
        parse_size(given)


def test_a_size_is_for_images():
    """For a table, or for texts, it is refused, and not passed over."""
    with pytest.raises(InvalidInput, match="an image size is for images, and these are a table"):
        learn_rows(pd.DataFrame({"x": range(20)}), image_size=64)
    with pytest.raises(InvalidInput, match="an image size is for images, and these are texts"):
        learn_rows(["some", "words"], image_size=64)


def test_pictures_that_are_alike_once_scaled_are_one_record():
    """What models cannot tell apart is protected together, as identical records are."""
    flat = [np.full((side, side + 1), 10 * i, np.uint8) for i in range(10) for side in (6, 8)]
    pool = Pool.of(flat, [0, 1] * 10, image_size=5)
    assert (pool.units.count, len(pool)) == (10, 20)
