"""An audit that could not have found anything says so, and does not reassure."""

from dataclasses import replace

import numpy as np
import pytest
from broken_lives import CLAIMED, M, begin_with, scene
from records import labels_of, mixed_table

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.claims import examine
from pacpredict.audit.estimates import Finding, least_to_tell, mean_of
from pacpredict.audit.membership import imagine, questions, score
from pacpredict.audit.page import render
from pacpredict.audit.run import Plan, audit, examine_mechanism
from pacpredict.audit.subject import Subject
from pacpredict.audit.words import broken, to_json, unsure, verdict
from pacpredict.cli import main
from pacpredict.cli.audit import _print
from pacpredict.cli.data import read_pool_of
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.session import Session
from pacpredict.training.subsets import balanced

ENOUGH = Plan(n_trials=20, n_queries=50, n_targets=1, n_runs=30, n_jobs=1)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unsure")
    table = mixed_table(80).drop(columns="note")
    table["label"] = labels_of(table)
    table.to_csv(folder / "records.csv", index=False)
    how = ["--target", "label", "--learner", "decision-tree", "--models", "16", "--jobs", "1"]
    path = folder / "a.pac"
    assert main(["fit", str(folder / "records.csv"), *how, "--queries", "1e4", "--out", str(path)]) == 0
    return Artifact.open(path, blind=True)


@pytest.fixture(scope="module")
def pool(artifact):
    return read_pool_of(artifact, None)


@pytest.fixture(scope="module")
def found(artifact, pool):
    return audit(artifact, pool, ENOUGH)


def two_models():
    """Return a subject of two models that remember all: a trial is told rightly of everybody, or of nobody."""
    rng = np.random.default_rng(0)
    membership = balanced(2, 60, rng)
    budget = Budget(2.0**-32, 1e6 * 2.0**-32, exposure=1.0)
    votes, each = membership.T.astype(np.int16), np.arange(60)
    return Subject(
        votes, np.ones(60, np.int64), each, each, membership, 2, budget, "argmax", {"membership": 0.5}
    )


@pytest.mark.parametrize("n_trials", [2, 3, 5])
def test_an_honest_deployment_is_not_called_broken_by_few_trials(n_trials):
    """Trials that went the same way by chance are not taken for what always happens."""
    subject = two_models()
    asked = questions(subject, "random", 50)
    for seed in range(40):
        future = imagine(subject, asked, n_trials=n_trials, seed=seed, exposure=1.0, n_jobs=1)
        for look in score(subject, "random", future, 1.0).looks:
            assert look.success.low <= 0.5 <= look.success.high
            assert not look.success.passes(look.ceiling)


def said_everywhere(found, capsys):
    """Return the verdict's first sentence, JSON's answer, the page, and what the terminal says."""
    _print(found)
    return verdict(found)[0], to_json(found)["holds"], render(found), capsys.readouterr().out


def test_enough_is_enough(found, capsys):
    """With some futures and games, and all claims checked, nothing is left open."""
    assert not list(broken(found))
    assert not list(unsure(found))
    first, holds, page, shown = said_everywhere(found, capsys)
    assert first == "Nothing was found that contradicts what is promised."
    assert holds is True
    assert first in page
    assert first in shown


def test_too_few_trials_are_said_to_be_too_few(found, capsys):
    """Two futures, or ten games, could not have shown any breach: the verdict says that, and how many could."""
    few = [replace(one, trials=2) for one in found.inferences]
    wanted = least_to_tell(found.inferences[0].looks[-1].ceiling, of_means=True)
    assert not mean_of(np.ones(2)).passes(found.inferences[0].looks[-1].ceiling)
    games = least_to_tell(found.duels[0].ceiling, of_means=False)
    for fewer, words in (
        (replace(found, inferences=few), f"2 futures (random) are too few to tell: {wanted} could"),
        (
            replace(found, duels=[one._replace(runs=10) for one in found.duels]),
            f"too few to tell: {games} could",
        ),
    ):
        first, holds, page, shown = said_everywhere(fewer, capsys)
        assert "cannot tell" in first
        assert holds is None
        assert 'class="promise broken"' in page
        for text in (" ".join(verdict(fewer)), page, shown):
            assert words in text
            assert "Nothing was found" not in text


def test_claims_that_were_not_checked_are_said_not_to_be(found, capsys):
    """Where no question has two voted labels no life can be played, and nobody says that claims hold."""
    votes = np.stack([np.arange(M) % 3 for _ in range(20)]).astype(np.int16)
    membership = scene()[1]
    begin = begin_with(Session, CLAIMED, membership, "argmax")
    claims = examine(begin, CLAIMED, votes, membership, finite=False, seed=0)
    assert {one.claim for one in claims if one.holds is None} >= {
        "noise",
        "belief",
        "draws",
        "served",
        "success",
    }
    assert [one.claim for one in claims if one.holds] == ["entropy"], "that needs no questions"
    first, holds, page, shown = said_everywhere(replace(found, claims=claims), capsys)
    assert "cannot tell" in first
    assert holds is None
    assert page.count("<td>not checked</td>") >= 9
    for text in (page, shown):
        assert "Not checked, of what the mechanism claims: noise, belief" in text
    worse = replace(found, claims=[*claims, Finding("noise", holds=False, seen="too little")])
    assert to_json(worse)["holds"] is False


def test_the_belief_answers_in_the_lives_of_every_deployment(artifact, pool):
    """Whatever a deployment does when all is spent, the labels that its belief would draw are tested."""
    subject = Subject.of(artifact, pool)
    for budget in (subject.budget, replace(subject.budget, exposure=None)):
        claims = examine_mechanism(replace(subject, budget=budget), seed=1)
        assert all(one.holds for one in claims), claims
        assert "draws" in {one.claim for one in claims}
