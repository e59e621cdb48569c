"""The examples run as their readers run them."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pacpredict import success_bound, tpr_bound, tpr_for_epsilon
from pacpredict.core.plan import propose_odds_limit

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
    done = run("private_session.py", "--json", "--models", "16", "--queries", "200", "--success", "0.6")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_demo_reports_what_was_asked_for(report):
    """The JSON says how many models and queries there were, and has one deployment for each decoder."""
    assert (report["n_models"], report["n_queries"], report["step_budget_nats"]) == (16, 200, 2.0**-32)
    assert [deployment["decoder"] for deployment in report["deployments"]] == ["argmax", "map", "sample"]


def test_demo_accuracies_are_sane(report):
    """Digits are easy, noise costs something, and map is close to the models' vote."""
    plain = report["accuracy_without_privacy"]
    argmax, by_map, sampled = (deployment["accuracy"] for deployment in report["deployments"])
    assert 0.9 < plain < 1
    assert 0.75 < argmax < plain + 0.03  # 0.835 to 0.965 in 200,000 simulated sessions
    assert plain - 0.02 < by_map <= 1
    assert abs(sampled - plain) < 0.06  # four standard deviations of 200 labels that models agree on to 95 %


def test_demo_charges_contested_queries_only(report):
    """Spending is a step for each query on which models differ, the same whatever the decoder."""
    (contested,) = {deployment["contested"] for deployment in report["deployments"]}
    assert 0 < contested < 200
    for deployment in report["deployments"]:
        assert deployment["spent_nats"] == deployment["contested"] * 2.0**-32


def test_demo_guarantees_follow_from_the_budget(report):
    """The total keeps attacks on membership within 60%, and the limit on odds follows from the total."""
    for deployment in report["deployments"]:
        total = deployment["total_nats"]
        assert deployment["membership_success"] == success_bound(total) == pytest.approx(0.6, rel=1e-9)
        assert deployment["tpr"] == min(
            tpr_bound(total), tpr_for_epsilon(2.4, delta=0 if deployment["decoder"] == "sample" else 1e-9)
        )
        assert deployment["odds_limit"] == propose_odds_limit(total) == 2.4
        assert not any("spent" in name for name in deployment if name != "spent_nats")
        assert deployment["stealing_success"] == success_bound(total, 1 / 16)
        assert deployment["stealing_prior"] == 1 / 16


def test_demo_reveals_hardly_anything(report):
    """At 2^-32 nats a query the belief hardly moves: a posterior of 51% would take a thousand times the noise."""
    for deployment in report["deployments"]:
        assert 0.5 <= deployment["largest_posterior"] < 0.51


def test_demo_draws_a_table_that_fits():
    """On a terminal of 80 columns nothing is cut off or wrapped within the table."""
    done = run("private_session.py", "--models", "8", "--queries", "40", "--step-budget", "2^-20")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "of the time; a guess without any answer is right 50% of the time." in " ".join(
        done.stdout.split()
    )
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
    assert _numbers(done.stdout) == pytest.approx(_numbers(on_file), abs=0.01)  # forty of 400,000 draws


def test_confidence_levels_are_those_of_the_exact_integral():
    """Where noise hides everything the rates are known: within four standard errors in every cell."""
    on_file = (ROOT / "examples" / "confidence_levels.txt").read_text().splitlines()
    for k in (3, 10):
        (row,) = (line.split() for line in on_file if line.startswith(f"k={k:<2} even   b=2^-32 paper"))
        for alpha, measured in zip((0.5, 0.3, 0.2, 0.1, 0.05, 0.01), row[-6:], strict=True):
            lead = math.sqrt(2) * norm.isf(alpha)
            exact = (k - 1) * quad(lambda x: norm.pdf(x) * norm.cdf(x - lead) ** (k - 1), -10, 12)[0]  # noqa: B023
            error = math.sqrt(exact * (1 - exact) / 400_000)
            assert abs(float(measured.rstrip("*")) / 100 - exact) < 4 * error + 5e-5


def _numbers(text):
    rates = [
        word.rstrip("*") for line in text.splitlines() if line.startswith("k=") for word in line.split()[-6:]
    ]
    assert len(rates) == 16 * 6
    values = [float(rate) for rate in rates]
    assert all(math.isfinite(value) for value in values)
    return values
