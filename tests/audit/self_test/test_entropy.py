"""The source of what is served is looked at, and whatever is wrong with it is found; nothing is, if nothing is."""

import numpy as np
import pytest
from scipy.special import ndtri

from pacpredict.audit.self_test.entropy import check_entropy
from pacpredict.mechanism import entropy
from pacpredict.mechanism.entropy import SeededEntropy, SystemEntropy


class Source:
    """Good numbers that are changed before anybody gets them."""

    def __init__(self, normals=None, uniforms=None, seed=None):
        self._source = SeededEntropy(np.random.default_rng(seed))
        self._change = {"normals": normals, "uniforms": uniforms}

    def normals(self, size):
        return self._draw("normals", size)

    def uniforms(self, size):
        return self._draw("uniforms", size)

    def _draw(self, kind, size):
        drawn = getattr(self._source, kind)(size)
        change = self._change[kind]
        return drawn if change is None else change(drawn)


def followed(drawn):
    """Let every number lean on the one before."""
    leaning = drawn.copy()
    for i in range(1, drawn.size):
        leaning[i] = 0.3 * leaning[i - 1] + np.sqrt(1 - 0.09) * drawn[i]
    return leaning


def in_pairs(drawn):
    """Take away with every other number what the one before it was."""
    return np.where(np.arange(drawn.size) % 2, -np.roll(drawn, 1), drawn)


# By what is wrong: what becomes of normals, of whole numbers, and what is said of it.
WRONG = {
    "no noise": (np.zeros_like, None, "variance of 0"),
    "half the variance": (lambda z: z * np.sqrt(0.55), None, "variance of 0.5"),  # never below, by chance
    "a little less": (lambda z: z * 0.97, None, "variance of 0.9"),
    "moved": (lambda z: z + 0.05, None, "mean of 0.0"),
    "not a number": (lambda z: z * np.nan, None, "variance of nan"),
    "signs only": (np.sign, None, "normals: a distribution"),
    "cancelling": (in_pairs, None, "follow from those 1 before"),
    "leaning": (followed, None, "follow from those 1 before"),
    "small numbers": (None, lambda u: u // 2, "numbers: a distribution"),
    "the same numbers": (None, lambda u: np.full_like(u, u[0]), "numbers: some came twice"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_source_that_is_wrong_is_found(what):
    """Too little noise, other noise, the same twice, or what follows from what came before."""
    normals, uniforms, words = WRONG[what]
    _, wrong = check_entropy(lambda: Source(normals, uniforms))
    assert words in ", ".join(wrong)


def test_sources_that_give_the_same_are_found():
    """Two processes with one seed would have the same noise."""
    assert "numbers: some came twice" in check_entropy(lambda: Source(seed=7))[1]


def test_labels_that_follow_from_noise_are_found():
    """Bits that serve as a normal and as a number, too, are used twice."""

    class Shared(SystemEntropy):
        def normals(self, size):
            self._shared = super().uniforms(size)
            return ndtri((self._shared + 0.5) * 2.0**-62)

        def uniforms(self, size):
            return self._shared

    assert "normals and numbers follow from each other" in check_entropy(Shared)[1]


def test_the_operating_system_passes(monkeypatch):
    """It does, time and again; and not if its noise is gone."""
    assert not any(check_entropy()[1] for _ in range(20))
    monkeypatch.setattr(entropy, "_normals", np.zeros)
    assert check_entropy()[1]
