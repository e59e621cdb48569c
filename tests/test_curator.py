"""Models, mechanism and ledger together: what is answered, charged, refused and reported."""

import numpy as np
import pytest

from artifacts import fit_small
from pacpredict.core.bounds import epsilon_for_success, success_bound
from pacpredict.curator import Curator, describe, report_privacy, save_deployment
from pacpredict.ensemble.artifact.artifact import Artifact
from pacpredict.exceptions import BudgetExhausted, ForeignLedger, InvalidQuery, LedgerError, LedgerUnavailable
from pacpredict.mechanism.ledger import MemoryLedger
from records import labels_of, mixed_pool, mixed_table, quick_fit, recipe, small_learner

QUERIES = mixed_table(40, seed=3)


@pytest.fixture
def home(tmp_path):
    return fit_small(tmp_path / "a.pac").path


def test_two_curators_share_answers_and_budget(home):
    """What one was answered another gets at no charge, and what one spent the other knows."""
    one, two = Curator.open(home), Curator.open(home)
    first = one.ask(QUERIES)
    spent = sum(release.charge for release in first.releases)
    assert spent > 0
    assert two.guarantee().spent_nats == spent
    assert np.array_equal(two.ask(QUERIES).labels, first.labels)
    assert two.guarantee() == one.guarantee()
    two.ask(mixed_table(30, seed=4))
    assert one.guarantee().queries == 70


def test_what_is_charged():
    """Rows on which models disagree cost one step, others nothing; the same row twice is charged once."""
    fitted = quick_fit()
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    votes = fitted.ensemble.votes(fitted.pool.schema.rows(QUERIES))
    contested = votes.min(axis=1) < votes.max(axis=1)
    answers = curator.ask(QUERIES)
    assert [release.charge for release in answers.releases] == (contested * 2.0**-8).tolist()
    assert 0 < contested.sum() < 40
    assert np.array_equal(answers.labels[~contested], fitted.pool.classes.labels(votes[~contested, 0]))
    columns = answers.columns()
    assert columns["label"] == answers.labels.tolist()
    assert columns["sequence"] == [release.sequence for release in answers.releases]
    fresh = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    row = QUERIES.iloc[[int(np.flatnonzero(contested)[0])] * 3]
    assert fresh.ask(row).releases[0].charge == 2.0**-8
    assert fresh.guarantee().spent_nats == 2.0**-8


def test_answers_come_from_the_secret_model():
    """With a budget so large that there is hardly any noise, answers are the votes of the secret model."""
    fitted = quick_fit(how=recipe(n_models=8, step=1e6, total=1e12))
    votes = fitted.ensemble.votes(fitted.pool.schema.rows(QUERIES))
    for _ in range(3):
        curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
        secret = curator._secret.reveal()
        expected = fitted.pool.classes.labels(votes[:, secret])
        assert np.array_equal(curator.ask(QUERIES).labels, expected)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.drop(columns="age"),
        lambda table: table.assign(job="smuggler"),
        lambda table: table[:0],
        lambda table: table.assign(age=[*range(39), np.inf]),
    ],
)
def test_a_query_that_does_not_fit_charges_nothing(spoil):
    """One bad row refuses the whole table, and the ledger stays empty."""
    fitted = quick_fit()
    ledger = MemoryLedger()
    curator = Curator(fitted.ensemble, fitted.recipe, ledger)
    with pytest.raises(InvalidQuery):
        curator.ask(spoil(QUERIES))
    assert list(ledger.entries()) == []


def test_a_table_beyond_the_budget_is_refused_whole():
    """If not all rows can be paid for, none is answered and nothing is charged."""
    pool = mixed_pool()
    fitted = quick_fit(pool, how=recipe(step=0.25, total=0.25))
    ledger = MemoryLedger()
    curator = Curator(fitted.ensemble, fitted.recipe, ledger)
    with pytest.raises(BudgetExhausted):
        curator.ask(QUERIES)
    assert list(ledger.entries()) == []
    assert curator.guarantee().queries == 0


def test_only_new_rows_are_voted_on(monkeypatch):
    """Models are asked for each row that has no answer yet, once."""
    fitted = quick_fit()
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    asked = []
    vote = fitted.ensemble.votes
    monkeypatch.setattr(
        fitted.ensemble, "votes", lambda rows, n_threads: asked.append(len(rows)) or vote(rows, n_threads)
    )
    curator.ask(QUERIES[:10])
    curator.ask(QUERIES[5:20])
    curator.ask(QUERIES.iloc[[30, 30, 1, 30]])
    curator.ask(QUERIES[:5])
    assert asked == [10, 10, 1]


def test_requests_are_answered_once(home):
    """The same request again, after a lost reply, gets the same answer and costs nothing."""
    curator = Curator.open(home)
    first = curator.ask(QUERIES, request_id="r1", client="c")
    again = Curator.open(home).ask(QUERIES, request_id="r1", client="c")
    assert np.array_equal(first.labels, again.labels)
    assert curator.guarantee().queries == 40


def test_an_artifact_without_its_ledger_answers_nothing(home):
    """A missing ledger is not replaced by an empty one."""
    Curator.open(home).ask(QUERIES)
    (home / "ledger.sqlite").rename(home.parent / "elsewhere")
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        Curator.open(home)


def test_the_ledger_of_another_artifact_is_refused(home, tmp_path):
    """A ledger belongs to one artifact, also if both were made of the same data with the same seed."""
    other = fit_small(tmp_path / "b.pac").path
    for name in ("ledger.sqlite", "witness.json"):
        (other / name).replace(home / name)
    with pytest.raises(LedgerError) as caught:
        Curator.open(home)
    assert isinstance(caught.value, ForeignLedger)


def test_the_report_is_the_guarantee():
    """What is reported of each attack is the bound for its prior: before any answer, and ever."""
    fitted = quick_fit(how=recipe(rate=0.25, total=0.5))
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    assert report_privacy(fitted.recipe, None) == curator.privacy()
    curator.ask(QUERIES)
    report = curator.privacy()
    spent = curator.guarantee().spent_nats
    assert report["spent_nats"] == spent > 0
    assert report["queries"] == 40
    assert report["epsilon"] == epsilon_for_success(success_bound(0.5))
    priors = {"membership": 0.75, "reconstruction": 0.25, "full-set": 0.25, "model": 0.25}
    assert {attack: bound["prior"] for attack, bound in report["bounds"].items()} == priors
    for bound in report["bounds"].values():
        assert bound["success"] == success_bound(0.5, bound["prior"])
        assert set(bound) == {"prior", "success"}  # what is spent by now bounds no adaptive attack


def test_a_description_says_what_was_fitted(home):
    """What an artifact is can be told without its data."""
    about = describe(Artifact.open(home))
    assert about["name"] == "a.pac"
    assert (about["learner"], about["models"], about["records"]) == ("xgboost", 4, 120)
    assert about["columns"] == {"number": 2, "category": 2, "boolean": 1, "text": 1}
    assert about["classes"] == ["a", "b"]
    assert about["identity"] == Artifact.open(home).identity


def test_other_models_of_the_same_table(tmp_path):
    """A curator of each kind of learner answers from its artifact as from memory."""
    table = mixed_table(60)
    for name in ("logistic", "random-forest"):
        path = fit_small(
            tmp_path / name,
            learner=small_learner(name),
            how=recipe(step=1e6, total=1e12),
            pool=mixed_pool(60),
        ).path
        curator = Curator.open(path)
        votes = curator.ensemble.votes(curator.ensemble.schema.rows(table))
        expected = curator.ensemble.labels(votes[:, Artifact.open(path).secret().reveal()])
        assert np.array_equal(curator.ask(table).labels, expected)
        assert set(expected) <= set(labels_of(table))


def test_a_saved_deployment_goes_on_in_its_artifact_only(tmp_path):
    """A reference to the curator from before the save answers nothing more: there is one history of a secret."""
    fitted = quick_fit(how=recipe(total=0.5))
    before = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    first = before.ask(QUERIES[:5])
    after = save_deployment(tmp_path / "saved.pac", fitted, before)
    with pytest.raises(LedgerError, match="closed"):
        before.ask(QUERIES[5:10])
    assert after.ask(QUERIES[:5]).labels.tolist() == first.labels.tolist()
    assert after.guarantee().queries == 5
    after.close()
