"""Standard normals from the operating system: their distribution, and that none is used twice."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import special, stats

from pacpredict.mechanism import entropy
from pacpredict.mechanism.entropy import SystemEntropy, draw_index

N = 1_000_000

# Loose enough to fail once in a million runs.
P_VALUE = 1e-6


@pytest.fixture(scope="module")
def normals():
    return SystemEntropy().normals(N)


def test_they_are_standard_normal(normals):
    """A million of them pass the Kolmogorov-Smirnov test."""
    assert stats.kstest(normals, "norm").pvalue > P_VALUE


@pytest.mark.parametrize("deviations", [2, 3, 4, 4.5])
def test_tails(normals, deviations):
    """Far from 0 there are as many as there should be, on either side."""
    expected = special.ndtr(-deviations)
    for count in ((normals > deviations).sum(), (normals < -deviations).sum()):
        assert stats.binomtest(int(count), N, expected).pvalue > P_VALUE


@pytest.mark.parametrize("lag", [1, 2, 1024])
def test_they_are_independent(normals, lag):
    """Neither the numbers nor their squares nor their signs follow from those before."""
    for values in (normals, normals**2, np.sign(normals)):
        centred = values - values.mean()
        correlation = centred[lag:] @ centred[:-lag] / (centred @ centred)
        assert abs(correlation) < 5 / np.sqrt(N)


@pytest.mark.parametrize("bits", [0, 1, 2**63, 2**64 - 2, 2**64 - 1, 12345678901234567])
def test_each_comes_from_64_bits(monkeypatch, bits):
    """One bit is the sign and 63 are the tail probability, up to the extremes, which stay finite."""
    monkeypatch.setattr(entropy.os, "urandom", lambda n: bits.to_bytes(8, sys.byteorder) * (n // 8))
    normal = SystemEntropy().normals(1)[0]
    tail = ((bits >> 1) + 0.5) / 2**64
    assert special.ndtr(-abs(normal)) == pytest.approx(tail, rel=1e-12)
    assert normal == 0 or (normal > 0) == (bits % 2 == 1)


@pytest.mark.parametrize("size", [0, 1, 2, 1023, 1024, 1025, 5000])
def test_sizes(size):
    """Any number of them can be asked for, whatever is left of the last block."""
    source = SystemEntropy()
    for _ in range(3):
        drawn = source.normals(size)
        assert drawn.shape == (size,)
        assert np.isfinite(drawn).all()


def test_none_is_used_twice():
    """Draws of all sizes, from several instances, never repeat a number."""
    sources = [SystemEntropy() for _ in range(3)]
    sizes = [1, 0, 3, 1020, 7, 2000, 1, 500]
    drawn = np.concatenate([source.normals(size) for size in sizes for source in sources])
    assert np.unique(drawn).size == drawn.size == 3 * sum(sizes)


FORK = """
import os, sys
import numpy as np
from pacpredict.mechanism.entropy import SystemEntropy

source = SystemEntropy()
source.normals(1)
child = os.fork()
drawn = source.normals(500)
np.save(sys.argv[1] if child else sys.argv[2], drawn)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_a_forked_process_draws_its_own(tmp_path):
    """Numbers made in advance are not used by two processes."""
    files = [str(tmp_path / "parent.npy"), str(tmp_path / "child.npy")]
    subprocess.run([sys.executable, "-c", FORK, *files], check=True)
    parent, child = (np.load(file) for file in files)
    assert not np.isin(parent, child).any()


def test_draw_index_follows_the_weights():
    """Weights need not sum to 1, and a seeded generator repeats the draw."""
    weights = [0, 3, 0, 1]
    drawn = [draw_index(weights, np.random.default_rng(seed)) for seed in range(4000)]
    counts = np.bincount(drawn, minlength=4)
    assert counts[0] == counts[2] == 0
    assert stats.binomtest(int(counts[1]), 4000, 0.75).pvalue > P_VALUE
    assert drawn == [draw_index(weights, np.random.default_rng(seed)) for seed in range(4000)]
