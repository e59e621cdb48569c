"""The paper's table of membership inference: what stands in it, and its picture."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from pacpredict.core.bounds import success_bound
from pacpredict.experiments.audit import CHUNK, EXPONENTS, STOPS, _row, draw


def rows():
    rng = np.random.default_rng(0)
    accuracy = 0.5 + 0.02 * rng.random((CHUNK, len(STOPS)))
    contested = (np.array(STOPS) // 7 + rng.integers(0, 100, (CHUNK, len(STOPS)))).astype(np.int64)
    return [_row(exponent, accuracy, contested) for exponent in EXPONENTS], accuracy, contested


def test_measured_rates_stand_beside_both_ceilings():
    """One charges every query, the other the most that any trial was charged; the rate is the mean over trials."""
    table, accuracy, contested = rows()
    for row in table:
        b = 2.0**-row.exponent
        assert row.trials == CHUNK
        assert row.ceiling == [success_bound(stop * b) for stop in STOPS]
        assert row.ceiling_adaptive == [success_bound(int(n) * b) for n in contested.max(axis=0)]
        assert [rate.value for rate in row.success] == pytest.approx(accuracy.mean(axis=0))
        assert all(least <= most for least, most in zip(row.ceiling_adaptive, row.ceiling, strict=True))


def test_the_picture_stands_alone():
    """It is well-formed, has a style of its own, and a curve and a ceiling for each of three budgets."""
    root = ET.fromstring(draw(rows()[0]))
    svg = "{http://www.w3.org/2000/svg}"
    assert ".curve" in root.find(f"{svg}style").text
    assert len(root.findall(f"{svg}path")) == 6
