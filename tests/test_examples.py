"""The examples run as their readers run them."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pacpredict import success_bound

ROOT = Path(__file__).parents[1]


def run(script, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / script), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "COLUMNS": "80", **environment},
    )


@pytest.fixture(scope="module")
def report():
    done = run("private_session.py", "--json", "--models", "16", "--queries", "200", "--epsilon", "0.5")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_demo_reports_what_was_asked_for(report):
    """The JSON says how many models and queries there were, and has one deployment for each decoder."""
    assert (report["n_models"], report["n_queries"], report["step_budget_nats"]) == (16, 200, 2.0**-32)
    assert [deployment["decoder"] for deployment in report["deployments"]] == ["argmax", "map"]


def test_demo_accuracies_are_sane(report):
    """Digits are easy, noise costs something, and map is close to the models' vote."""
    plain = report["accuracy_without_privacy"]
    argmax, by_map = (deployment["accuracy"] for deployment in report["deployments"])
    assert 0.9 < plain < 1
    assert 0.75 < argmax < plain + 0.03  # 0.835 to 0.965 in 200,000 simulated sessions
    assert plain - 0.02 < by_map <= 1


def test_demo_charges_contested_queries_only(report):
    """Spending is a step for each query on which models differ, the same whatever the decoder."""
    argmax, by_map = report["deployments"]
    assert 0 < argmax["contested"] < 200
    assert argmax["contested"] == by_map["contested"]
    for deployment in (argmax, by_map):
        assert deployment["spent_nats"] == deployment["contested"] * 2.0**-32


def test_demo_guarantees_follow_from_the_budget(report):
    """The total is that of (0.5, 1e-5)-DP, and bounds are those of the total and of what was spent."""
    for deployment in report["deployments"]:
        total, spent = deployment["total_nats"], deployment["spent_nats"]
        assert deployment["epsilon"] == pytest.approx(0.5, rel=1e-9)
        assert deployment["membership_success"] == success_bound(total)
        assert deployment["membership_success_at_spent"] == success_bound(spent)
        assert deployment["stealing_success"] == success_bound(total, 1 / 16)
        assert deployment["stealing_prior"] == 1 / 16


def test_demo_exposes_hardly_anybody(report):
    """At 2^-32 nats a query the belief hardly moves: an exposure of 51 % would take a thousand times the noise."""
    for deployment in report["deployments"]:
        assert 0.5 <= deployment["most_exposed"] < 0.51


def test_demo_draws_a_table_that_fits():
    """On a terminal of 80 columns nothing is cut off or wrapped within the table."""
    done = run("private_session.py", "--models", "8", "--queries", "40", "--step-budget", "2^-8")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "most exposed record" in done.stdout
    assert "…" not in done.stdout
    assert "training models" in done.stderr


def test_demo_refuses_in_one_line():
    """What the library refuses is an error message and exit code 2, without a traceback."""
    done = run("private_session.py", "--models", "7")
    assert (done.returncode, done.stdout) == (2, "")
    assert "must be even" in done.stderr
    assert "Traceback" not in done.stderr


def test_confidence_levels_are_those_on_file():
    """The script still prints the table that docs/theory.md discusses."""
    done = run("confidence_levels.py")
    assert done.returncode == 0, done.stderr
    on_file = (ROOT / "examples" / "confidence_levels.txt").read_text()
    assert _numbers(done.stdout) == pytest.approx(
        _numbers(on_file), abs=0.02
    )  # percent: four of 20,000 draws


def _numbers(text):
    rates = [
        word.rstrip("*") for line in text.splitlines() if line.startswith("k=") for word in line.split()[-6:]
    ]
    assert len(rates) == 16 * 6
    values = [float(rate) for rate in rates]
    assert all(math.isfinite(value) for value in values)
    return values
