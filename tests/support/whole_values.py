"""Small images and texts that something can be learned from, and an extractor of the tests' own."""

import io

import numpy as np
from PIL import Image

from pacpredict.exceptions import PacPredictError
from pacpredict.learners.heads.learner import Heads
from pacpredict.training.pool import Pool

SIDE = 6
WORDS = {"good": ("fine", "lovely", "great", "warm"), "bad": ("poor", "dull", "awful", "cold")}


def images(n=120, n_classes=3, seed=0):
    """Return noise that is a little brighter in one channel, and which channel that is."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_classes, size=n)
    pixels = rng.integers(0, 200, (n, SIDE, SIDE, 3))
    pixels[np.arange(n), :, :, labels] += 25
    return pixels.astype(np.uint8), np.array(["red", "green", "blue"])[labels]


def texts(n=120, seed=0):
    """Return texts with words of both kinds, and which there are more of."""
    rng = np.random.default_rng(seed)
    labels = np.array(["bad", "good"])[rng.integers(2, size=n)]
    other = {"good": "bad", "bad": "good"}
    kinds = [[label if rng.random() < 0.6 else other[label] for _ in range(12)] for label in labels]
    return [" ".join(rng.choice(WORDS[kind]) for kind in own) for own in kinds], labels


def mean_colours(image):
    """Return the mean of each channel, and of each row: an extractor that an artifact can find again."""
    return np.concatenate([image.mean(axis=(0, 1)), image.mean(axis=(1, 2))])


def letters(text):
    """Return how often each letter occurs."""
    return np.bincount([ord(letter) % 32 for letter in text], minlength=32)


def image_pool(**options):
    return Pool.of(*images(**options))


def text_pool(**options):
    return Pool.of(*texts(**options))


def small_heads(features=mean_colours, **options):
    return Heads(features, cache=None, **options)


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def refused(call, *arguments, **options):
    """Return the error of this package that a call ends with."""
    try:
        call(*arguments, **options)
    except PacPredictError as problem:
        return problem
    raise AssertionError("nothing was refused")
