"""Models and mechanism together: what is answered, charged, refused and reported."""

import numpy as np
import pytest
from broken_ledger import BrokenLedger
from records import mixed_pool, mixed_table, quick_fit, recipe

from pacpredict.core.belief import Belief
from pacpredict.core.bounds import success_bound
from pacpredict.curator import Curator, Inquiry, report_privacy
from pacpredict.exceptions import (
    BudgetExhausted,
    ForeignLedger,
    IdConflict,
    InvalidBudget,
    InvalidInput,
    InvalidQuery,
    LedgerError,
)
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.secret import Secret

QUERIES = mixed_table(40, seed=3)


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
    fitted = quick_fit(how=recipe(n_models=8, step=1e3, total=1e8))
    votes = fitted.ensemble.votes(fitted.pool.schema.rows(QUERIES))
    for _ in range(3):
        curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
        secret = curator.session._secret.reveal()
        expected = fitted.pool.classes.labels(votes[:, secret])
        assert np.array_equal(curator.ask(QUERIES).labels, expected)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.drop(columns="age"),
        lambda table: table.assign(married="perhaps"),
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


def test_the_report_is_the_guarantee():
    """What is reported of each attack is the bound for its prior: before any answer, and ever."""
    fitted = quick_fit(how=recipe(rate=0.25, total=0.5))
    curator = Curator(fitted.ensemble, fitted.recipe, MemoryLedger())
    space = fitted.ensemble.space
    assert report_privacy(fitted.recipe, space, None) == curator.privacy()
    curator.ask(QUERIES)
    report = curator.privacy()
    spent = curator.guarantee().spent_nats
    assert report["spent_nats"] == spent > 0
    assert report["queries"] == 40
    assert report["promise"] == curator.guarantee().promise().to_json()
    assert {attack: bound["prior"] for attack, bound in report["bounds"].items()} == space.priors
    assert report["bounds"]["membership"]["prior"] == 0.75
    for bound in report["bounds"].values():
        assert bound["success"] == success_bound(0.5, bound["prior"])
        assert set(bound) == {
            "question",
            "prior",
            "success",
        }  # what is spent by now bounds no adaptive attack


@pytest.fixture(scope="module")
def fitted():
    return quick_fit()


def curator_on(fitted, ledger, **options):
    return Curator(fitted.ensemble, options.pop("recipe", fitted.recipe), ledger, **options)


def test_two_curators_share_answers_and_budget(fitted):
    """With the same secret and ledger, what one was answered another gets at no charge, and knows what it spent."""
    ledger, secret = MemoryLedger(), Secret.draw(Belief.uniform(4))
    one, two = (curator_on(fitted, ledger, secret=secret) for _ in range(2))
    first = one.ask(QUERIES)
    assert np.array_equal(two.ask(QUERIES).labels, first.labels)
    assert two.guarantee().spent_nats == sum(release.charge for release in first.releases) > 0
    two.ask(mixed_table(30, seed=4))
    assert one.guarantee().queries == 70


@pytest.mark.parametrize("n_asked", [0, 40])
def test_a_used_ledger_takes_no_other_secret(fitted, n_asked):
    """A curator that would draw a secret, or brings another one, does not continue an old history."""
    ledger = MemoryLedger()
    curator = curator_on(fitted, ledger)
    if n_asked:
        curator.ask(QUERIES)
    before = ledger.load()
    with pytest.raises(InvalidInput, match="has a secret already"):
        curator_on(fitted, ledger)
    with pytest.raises(ForeignLedger, match="another secret"):
        curator_on(fitted, ledger, secret=Secret.draw(Belief.uniform(4)))
    assert ledger.load() is before
    assert curator_on(fitted, ledger, secret=curator.session._secret).guarantee().queries == n_asked


@pytest.mark.parametrize("total", [2.0**-8, 0.5, 2.0])
def test_a_used_ledger_keeps_its_total(fitted, total):
    """The guarantee that is printed is that of the total which the history began with."""
    ledger = MemoryLedger()
    curator = curator_on(fitted, ledger)
    curator.ask(QUERIES)
    secret = curator.session._secret
    with pytest.raises(InvalidBudget, match="total"):
        curator_on(fitted, ledger, secret=secret, recipe=recipe(total=total))
    assert curator_on(fitted, ledger, secret=secret).privacy() == curator.privacy()


def test_another_decoder_goes_on_with_the_same_history(fitted):
    """Decoding is post-processing: old answers stay, new ones are decoded otherwise, and the report says so."""
    ledger = MemoryLedger()
    first = curator_on(fitted, ledger)
    labels = first.ask(QUERIES).labels
    second = curator_on(fitted, ledger, secret=first.session._secret, decode="map")
    assert np.array_equal(second.ask(QUERIES).labels, labels)
    second.ask(mixed_table(40, seed=5))
    assert (first.privacy()["decoder"], second.privacy()["decoder"]) == ("argmax", "map")
    kinds = {entry.kind for entry in ledger.entries()}
    assert kinds == {"agreed", "argmax", "map"}


def test_inquiries_that_share_their_votes(fitted):
    """Rows that several clients ask at once are voted on once, and each client gets the answers to its own rows."""
    curator = curator_on(fitted, MemoryLedger())
    rows = fitted.pool.schema.rows
    tables = [QUERIES[5:15], QUERIES[:10], QUERIES[12:13]]
    requests = curator.requests([Inquiry(rows(table), client=f"c{i}") for i, table in enumerate(tables)])
    assert len({id(request.ballots) for request in requests}) == 1
    assert len(requests[0].ballots) == 15
    outcomes = curator.serve(requests)
    together = curator.ask(QUERIES[:15])
    assert all(release.charge == 0 for release in together.releases)
    for (start, stop), outcome in zip([(5, 15), (0, 10), (12, 13)], outcomes, strict=True):
        assert np.array_equal(outcome.labels, together.labels[start:stop])


def test_a_table_that_was_answered_needs_no_turn(fitted):
    """When the ledger can be read but not written, answers are repeated, and new rows are refused."""
    ledger = BrokenLedger()
    curator = curator_on(fitted, ledger)
    labels = curator.ask(QUERIES).labels
    ledger.fails = "turn"
    assert np.array_equal(curator.ask(QUERIES[::-1]).labels, labels[::-1])
    with pytest.raises(LedgerError):
        curator.ask(mixed_table(3, seed=4))


def test_readiness_is_the_ledgers(fitted):
    """A curator is ready if a release could be recorded."""
    ledger = BrokenLedger()
    curator = curator_on(fitted, ledger)
    curator.check_ledger()
    ledger.fails = "check"
    with pytest.raises(LedgerError):
        curator.check_ledger()


def test_ids_are_the_clients_own(fitted):
    """A request that is sent again gets the same answers; the same id with other rows is refused to that client."""
    curator = curator_on(fitted, MemoryLedger())
    first = curator.ask(QUERIES[:5], request_id="r1", client="c")
    again = curator.ask(QUERIES[:5], request_id="r1", client="c")
    assert np.array_equal(first.labels, again.labels)
    with pytest.raises(IdConflict):
        curator.ask(QUERIES[:6], request_id="r1", client="c")
    assert len(curator.ask(QUERIES[:6], request_id="r1", client="d").labels) == 6
