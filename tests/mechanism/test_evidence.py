"""What a history says about its labels, computed again from what a ledger keeps."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import pacpredict
from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.core.filters import confidence
from pacpredict.exceptions import LedgerError
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.evidence import weigh
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import History
from pacpredict.mechanism.session import Session

M, C = 12, 4


def history(decode, step, n=60, **options):
    """Answer questions on which models agree, differ at random, and tie; returns the session and its ledger."""
    rng, ledger = np.random.default_rng(5), MemoryLedger()
    votes = rng.integers(C, size=(n, M))
    votes[::4], votes[1::4] = 2, np.arange(M) % C
    budget = Budget(step, options.pop("total", n * step), **options)
    session = Session(C, budget, M, decode=decode, ledger=ledger, generator=rng)
    beliefs = []
    for row in votes:
        session.answer(row)
        beliefs.append(session.belief)
    return session, ledger, votes, beliefs


def weighed(session, ledger, wanted, points):
    return weigh(ledger.entries(), C, session.budget, session.prior, wanted, points)


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
@pytest.mark.parametrize("step", [2.0**-32, 2.0**-5])
def test_points_are_what_was(decode, step):
    """Belief and spending at any point are those that the session had there, bit for bit."""
    session, ledger, _, beliefs = history(decode, step)
    found = weighed(session, ledger, [], [0, 1, 7, 33, 60])
    assert found.points[0].spent_steps == 0
    for number in (1, 7, 33, 60):
        np.testing.assert_array_equal(
            found.points[number].belief.log_probabilities, beliefs[number - 1].log_probabilities
        )
    entries = list(ledger.entries())
    assert found.points[33].spent_steps == sum(entry.charged_steps for entry in entries[:33])


@pytest.mark.parametrize("step", [2.0**-32, 2.0**-5])
def test_statistics_are_those_of_the_noise_that_was_used(step):
    """Noise calibrated again is that of the release to the bit: its vector has the label that was given."""
    session, ledger, votes, _ = history("argmax", step, n=200)
    found = weighed(session, ledger, range(1, 201), [200]).labels
    past = History(C, session.budget, session.prior)
    for entry in ledger.entries():
        one = found[entry.sequence]
        assert (one.label, one.kind, one.charged_steps) == (entry.label, entry.kind, entry.charged_steps)
        if entry.question is None:
            assert (one.votes, one.confidence) == (None, (math.inf, 0))
        else:
            noise = calibrate_votes(entry.question, C, past.belief, step)
            vector, voted = noise.vector(entry.noisy), np.unique(entry.question)
            assert voted[vector[voted].argmax()] == entry.label
            assert one.confidence == confidence(noise, entry.question, entry.noisy, entry.label)
            np.testing.assert_array_equal(one.votes, votes[entry.sequence - 1])
        past.add(entry)


def test_what_has_no_noise_has_no_statistic():
    """Labels of a channel, and those that the belief gave, pass no test of noise."""
    session, ledger, _, _ = history("sample", 2.0**-5)
    kinds = {one.kind: one for one in weighed(session, ledger, range(1, 61), [60]).labels.values()}
    assert kinds["sample"].confidence.statistic == -math.inf
    session, ledger, _, _ = history("argmax", 2.0**-5, total=2.0**-3, when_exhausted="belief")
    kinds = {one.kind: one for one in weighed(session, ledger, range(1, 61), [60]).labels.values()}
    assert kinds["belief"].confidence.statistic == -math.inf
    assert kinds["argmax"].confidence.statistic > -math.inf


def test_later_answers_change_nothing():
    """What is said of a prefix does not depend on how the history went on."""
    session, ledger, votes, _ = history("argmax", 2.0**-9, total=1.0)
    before = weighed(session, ledger, range(1, 61), [60])
    session.answer_all(votes)
    after = weighed(session, ledger, range(1, 61), [60])
    for number in range(1, 61):
        assert before.labels[number].confidence == after.labels[number].confidence
    np.testing.assert_array_equal(
        before.points[60].belief.log_probabilities, after.points[60].belief.log_probabilities
    )


def test_releases_that_are_not_there():
    """A number that the history has not come to, and a release that has no label, are refused."""
    session, ledger, _, _ = history("argmax", 2.0**-5, total=10.0)
    with pytest.raises(LedgerError, match="no release 61"):
        weighed(session, ledger, [61], [61])
    session.release(np.random.default_rng(0).normal(size=(M, 2)))
    with pytest.raises(LedgerError, match="61 is one of numbers"):
        weighed(session, ledger, [61], [61])


def test_nothing_that_serves_imports_it():
    """Posteriors and statistics are for the owner: no module of the server knows of evidence or students."""
    served = Path(pacpredict.__file__).parent / "serving"
    for path in served.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module is None or not node.module.startswith(
                    ("pacpredict.mechanism.evidence", "pacpredict.distill", "pacpredict.core.filters")
                )
            if isinstance(node, ast.Attribute):
                assert node.attr != "weigh"


def test_uniform_belief_is_the_prior():
    """Before anything was answered the belief is the prior."""
    session, ledger, _, _ = history("argmax", 2.0**-5, n=1)
    np.testing.assert_array_equal(
        weighed(session, ledger, [], [0]).points[0].belief.probabilities(), Belief.uniform(M).probabilities()
    )
