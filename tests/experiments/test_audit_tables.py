"""Tables and pictures of the audit's experiments: what stands in them."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from audited import subject_of

from pacpredict.audit.presence import worlds_on_hand
from pacpredict.audit.presences import measure_all
from pacpredict.core.bounds import success_bound
from pacpredict.experiments import adversaries, presence, priors
from pacpredict.experiments.audit import CHUNK, EXPONENTS, STOPS, _row
from pacpredict.experiments.audit import draw as draw_table

SVG = "{http://www.w3.org/2000/svg}"


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


def read(drawn):
    """Return a picture that must be well-formed, with a style and words of its own."""
    root = ET.fromstring(drawn)
    assert ".curve" in root.find(f"{SVG}style").text
    assert root.find(f"{SVG}desc").text
    return root


def curves(root):
    """Return the paths within plots, without those of the legend."""
    return [path for plot in root.findall(f"{SVG}svg") for path in plot.iter(f"{SVG}path")]


def words(root):
    return {text.text for text in root.iter(f"{SVG}text")}


def test_the_picture_of_the_table_has_three_budgets():
    """A curve with its interval and a ceiling for each, and a legend that names them."""
    root = read(draw_table(rows()[0]))
    kinds = [path.get("class").strip() for path in curves(root)]
    assert sorted(kinds) == sorted(
        ["band", "band second", "band third", "curve", "curve second", "curve third", *["curve limit"] * 3]
    )
    assert {"2^-12", "2^-16", "2^-20", "at most, as charged", "queries"} <= words(root)


def test_priors_of_groups_begin_at_a_coin_and_part():
    """Which of a group is guessed ever more rarely, down to 1 in 128; whether any of it is, ever more often."""
    found = priors.priors()
    assert found[0].exact.mean == found[0].any.mean == 0.5
    assert all(b.exact.mean < a.exact.mean and b.any.mean > a.any.mean for a, b in pairwise(found))
    assert found[-1].exact.mean > 1 / 128
    root = read(priors.draw(found))
    assert {"which of them", "any of them", "1 in 128"} <= words(root)
    docs = Path(__file__).parents[2] / "docs"  # where the command stands beside both
    assert (docs / "images" / "priors.svg").read_text() == f"{priors.draw(found)}\n"
    assert f"\n{priors.table(found)}\n" in (docs / "audit.md").read_text()


def test_adversaries_are_drawn_beside_the_ceiling():
    """Each row of the table is a dot of its kind, in a line that is named after whatever is particular about it."""
    told = {"value": 0.6, "low": 0.5, "high": 0.7}
    games = [
        {
            "adversary": adversary,
            "sees": sees,
            "mechanism": rules.mechanism,
            "limit": rules.limit,
            "targets": kind,
            "success": told,
            "ceiling": 0.73,
        }
        for kind in ("remembered", "ordinary")
        for adversary, sees, rules in adversaries.PLAYERS
    ]
    root = read(adversaries.draw("census", games))
    seen = [dot.get("class").strip() for dot in root.iter(f"{SVG}circle")]
    assert seen.count("dot") == seen.count("dot second") == len(adversaries.PLAYERS)
    assert {"random", "search, argmax labels", "search, sample, odds limited", "at most"} <= words(root)


def test_presence_is_drawn_by_one_question_and_by_many():
    """Two plots, each with chance, one model or none of it, and every decoder at the smallest step."""
    subject = subject_of()
    subject = replace(subject, labels=np.ones(len(subject.votes), np.int64))
    found = measure_all(worlds_on_hand(subject, np.arange(5)), presence.STEPS)
    drawn = presence.draw(
        "census", [{"which": "remembered", "without": "lacking it", **one._asdict()} for one in found]
    )
    once, often = read(drawn).findall(f"{SVG}svg")
    kinds = [[path.get("class").strip() for path in plot.iter(f"{SVG}path")] for plot in (once, often)]
    assert kinds[0] == ["curve limit", "curve plain", "curve second", "curve third", "curve"]
    assert kinds[1] == ["curve limit", "curve second", "curve third", "curve"]
