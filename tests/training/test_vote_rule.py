"""Votes count by a rule that is a setting like the decoder, for everything that asks an ensemble."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from artifacts import fit_small
from records import labels_of, mixed_table, quick_fit, recipe, small_learner

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.presence import memorised, worlds_on_hand
from pacpredict.audit.presences import votes_without
from pacpredict.audit.subject import Subject
from pacpredict.core.vote_rule import VOTE_RULES, check_vote_rule
from pacpredict.curator import Curator
from pacpredict.deployment import Deployment
from pacpredict.estimator import PrivateClassifier
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.training.pool import Pool
from pacpredict.votes.leave_one_out import LeaveOneOut

QUERIES = pd.concat([mixed_table(80)[:30], mixed_table(30, seed=3)], ignore_index=True)
HOW = recipe(n_models=64, step=2.0**-12)


@pytest.fixture(scope="module")
def pool():
    """Records of which trees remember each label: those of unlike records are spread at random."""
    table = mixed_table(80)
    return Pool.of(table, labels_of(table, 3))


@pytest.fixture(scope="module")
def home(pool, tmp_path_factory):
    return fit_small(
        tmp_path_factory.mktemp("rule") / "a.pac", pool, small_learner("decision-tree"), HOW
    ).path


@pytest.mark.parametrize("rule", VOTE_RULES)
def test_ensembles_count_votes_by_their_rule(pool, rule):
    """An ensemble's votes are those of its models, changed by the rule, whatever threads share the work."""
    fitted = quick_fit(pool, small_learner("decision-tree"), replace(HOW, votes=rule))
    rows, subsets = pool.schema.rows(QUERIES), fitted.ensemble.space.subsets
    plain, found = fitted.ensemble.votes_of_models(rows), fitted.ensemble.votes(rows)
    rounds = VOTE_RULES.index(rule)
    expected = plain
    if rounds:
        expected = LeaveOneOut.of(subsets.packed, subsets.n_units, 3, rounds=rounds).apply(plain)
        assert not np.array_equal(expected, plain)
    assert np.array_equal(found, expected)
    assert np.array_equal(fitted.ensemble.votes(rows, n_threads=2), expected)
    assert np.array_equal(fitted.ensemble.seeing_by(fitted.learner).votes(rows), expected)


def test_sessions_see_the_votes_of_the_rule(pool):
    """Curators charge and record leave-one-out votes; where these agree, the answer is free."""
    fitted = quick_fit(pool, small_learner("decision-tree"), replace(HOW, votes="leave-one-out"))
    rows, ledger = pool.schema.rows(QUERIES), MemoryLedger()
    votes, plain = fitted.ensemble.votes(rows), fitted.ensemble.votes_of_models(rows)
    answers = Curator(fitted.ensemble, fitted.recipe, ledger).ask(QUERIES)
    contested = votes.min(axis=1) < votes.max(axis=1)
    assert 0 < contested.sum() < len(QUERIES)
    assert not np.array_equal(votes, plain)
    assert [release.charge > 0 for release in answers.releases] == contested.tolist()
    recorded = [entry.question for entry in ledger.entries() if entry.question is not None]
    assert np.array_equal(recorded, votes[contested])


def test_the_rule_may_change(home, pool):
    """Opened with another rule, a deployment answers new queries by it; those on record stay, and all verify."""
    half = len(QUERIES) // 2
    with Deployment.open(home, votes="leave-one-out") as deployment:
        assert deployment.vote_rule == deployment.privacy()["votes"] == "leave-one-out"
        first = deployment.ask(QUERIES[:half])
        assert deployment.curator.privacy() == deployment.privacy()
    with Deployment.open(home) as deployment:
        assert deployment.vote_rule == deployment.privacy()["votes"] == "plain"
        again = deployment.ask(QUERIES)
        assert np.array_equal(again.labels[:half], first.labels)
        ensemble, rows = deployment.curator.ensemble, pool.schema.rows(QUERIES)
        by_rule = [deployment.artifact.ensemble(rule=rule).votes(rows) for rule in ("leave-one-out", "plain")]
        assert np.array_equal(by_rule[1], ensemble.votes(rows))
        entries = list(deployment.entries())
        expected = [*by_rule[0][:half], *by_rule[1][half:]]
        for entry, votes in zip(entries, expected, strict=True):
            assert entry.question is None or np.array_equal(entry.question, votes)
        assert not np.array_equal(*by_rule)
        assert deployment.verify().votes == ("plain", "leave-one-out")
        assert [entry.votes for entry in entries] == ["leave-one-out"] * half + ["plain"] * half


def test_the_rule_of_a_fit_is_kept(tmp_path, pool):
    """An artifact answers by the rule that it was fitted with, by whichever way it is opened."""
    how = replace(HOW, votes="leave-two-out")
    artifact = fit_small(tmp_path / "a.pac", pool, small_learner("decision-tree"), how)
    assert Artifact.open(artifact.path).recipe == how
    assert Artifact.open(artifact.path).ensemble().rule == "leave-two-out"
    loaded = PrivateClassifier.load(artifact.path, trust=True)
    assert loaded.votes == "leave-two-out"
    assert loaded.curator_.privacy()["votes"] == "leave-two-out"


def test_estimators_have_the_rule(tmp_path):
    """`votes` of a classifier is the rule of its ensemble, before it is saved and after."""
    table = mixed_table(80)
    options = {"n_models": 16, "odds_limit": None, "votes": "leave-one-out", "random_state": 1, "n_jobs": 1}
    model = PrivateClassifier("decision-tree", **options).fit(table, labels_of(table))
    assert model.curator_.ensemble.rule == "leave-one-out"
    model.save(tmp_path / "a.pac")
    assert model.curator_.ensemble.rule == "leave-one-out"
    with pytest.raises(InvalidInput, match="votes must be one of"):
        PrivateClassifier("logistic", votes="leave-all-out").fit(table, labels_of(table))


def test_unknown_rules(home):
    """A rule that there is not is refused wherever it can be given."""
    for give in (
        lambda: recipe(votes="all"),
        lambda: check_vote_rule("none"),
        lambda: Deployment.open(home, votes="some"),
        lambda: Artifact.open(home).ensemble(rule="any"),
    ):
        with pytest.raises(InvalidInput, match="votes must be one of plain, leave-one-out, leave-two-out"):
            give()


def test_audits_attack_the_votes_of_the_rule(home, pool):
    """An audit asks by the deployment's rule; what models remember is judged by their own votes."""
    artifact = Artifact.open(home)
    plain = Subject.of(artifact, pool)
    changed = Subject.of(artifact, pool, votes="leave-one-out")
    assert (plain.rule, changed.rule) == ("plain", "leave-one-out")
    assert np.array_equal(changed.plain, plain.votes)
    assert np.array_equal(memorised(changed), memorised(plain))
    assert np.array_equal(changed.votes, artifact.ensemble(rule="leave-one-out").votes(pool.rows))
    records = np.argsort(-memorised(plain))[:5]
    here, there = worlds_on_hand(changed, records), worlds_on_hand(plain, records)
    assert there.plain is None
    assert np.array_equal(here.inside, changed.votes[records])
    assert np.array_equal(here.plain.outside, there.outside)
    for i, record in enumerate(records):
        lacking = ~plain.membership[:, plain.units[record]]
        bits = np.packbits(plain.membership[lacking], axis=1)
        rule = LeaveOneOut.of(bits, plain.n_units, plain.n_classes)
        assert np.array_equal(here.outside[i], rule.apply(plain.votes[record, lacking][None])[0])
    retrained = votes_without(artifact, pool, changed, records, n_jobs=1)
    assert retrained.shape == (5, 64)
