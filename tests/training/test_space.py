"""What is counted before any answer, and what is told after some."""

import numpy as np
import pandas as pd
import pytest
from records import mixed_pool, quick_fit, recipe, small_learner

from pacpredict.core.belief import Belief
from pacpredict.core.near import near_reconstruction_prior
from pacpredict.training import space, subsets
from pacpredict.training.pool import Pool
from pacpredict.training.space import POSTERIOR_EDGES, summarise_posterior


def test_priors_are_counted_in_what_was_drawn():
    """Of different records and models: 1/2 for a person and a record, 1/m for all records and for the model."""
    made = quick_fit(how=recipe(n_models=8))
    priors = made.ensemble.space.priors
    assert (priors["membership"], priors["reconstruction"]) == (0.5, 0.5)
    assert (priors["full-set"], priors["model"]) == (1 / 8, 1 / 8)
    assert 1 / 8 < priors["group-exact"] < 0.5 < priors["group-any"] < 1


@pytest.mark.parametrize(("rate", "membership"), [(0.25, 0.75), (0.75, 0.75)])
def test_priors_follow_the_rate(rate, membership):
    """With another share of subsets the better constant guess is right as often as that share says."""
    made = quick_fit(learner=small_learner("ridge"), how=recipe(n_models=8, rate=rate))
    assert made.ensemble.space.priors["membership"] == membership
    assert made.ensemble.space.priors["reconstruction"] == rate


def test_one_column_of_three_values_makes_one_model():
    """Where there are three questions all models answer alike: the model is no secret, though all files differ."""
    x = np.arange(300.0) % 3
    labels = ((x > 1) ^ (np.random.default_rng(0).random(300) < 0.1)).astype(int)
    made = quick_fit(Pool.of(x[:, None], labels, person_per_row=True), how=recipe(n_models=16))
    assert len({one.model for one in made.models}) == 16
    priors = made.ensemble.space.priors
    assert priors["model"] == 1
    assert priors["reconstruction"] == 1  # every subset has all three contents
    assert (priors["membership"], priors["full-set"]) == (0.5, 1 / 16)


def test_a_content_of_several_persons_is_more_often_in_a_subset():
    """Counted by content, reconstruction says what comparing distances says, and no longer 1/2."""
    rng = np.random.default_rng(3)
    table, labels = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    table[30:40] = table[:10]
    apart = quick_fit(
        Pool.of(table, labels, person_per_row=True), small_learner("ridge"), recipe(n_models=32)
    )
    by_record = apart.ensemble.space.subsets.matrix()
    assert (
        apart.ensemble.space.priors["reconstruction"] == near_reconstruction_prior(by_record, table, 0) > 0.7
    )
    together = quick_fit(Pool.of(table, labels), small_learner("ridge"), recipe(n_models=32))
    by_record = together.ensemble.space.subsets.matrix()[:, together.pool.units.of_record]
    assert together.ensemble.space.priors["reconstruction"] == 0.5
    assert near_reconstruction_prior(by_record, table, 0) == 0.5


def test_models_that_agree_on_the_pool_are_told_apart_by_mixtures():
    """The prior is never below the share of models that agree on every probe, and every probe is a valid question."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(200, 1)) + rng.normal(0, 0.2, (200, 2))  # two columns that say nearly the same
    table += np.sign(table.sum(axis=1, keepdims=True))
    pool = Pool.of(table, (table[:, 0] > 0).astype(int))
    made = quick_fit(pool, small_learner("logistic"), recipe(n_models=8))

    def prior_on(rows):
        _, counts = np.unique(made.ensemble.votes(rows), axis=1, return_counts=True)
        return counts.max() / 8

    probes = space._probes(pool, np.random.default_rng([made.recipe.seed, 200]))
    assert len(probes) == 400
    assert prior_on(pool.rows) > prior_on(probes) == made.ensemble.space.priors["model"]
    for j in range(2):  # each value is one that the pool has in this column
        assert np.array_equal(np.unique(probes.numbers[:, j]), np.unique(pool.rows.numbers[:, j]))
    assert np.array_equal(pool.schema.rows(probes.numbers).numbers, probes.numbers)


def test_probes_of_texts_and_categories():
    """Mixtures of records with every kind of column can be asked."""
    made = quick_fit(how=recipe(n_models=8))
    probes = space._probes(made.pool, np.random.default_rng(0))
    frame = made.pool.schema.frame(probes)
    again = made.pool.schema.rows(frame)
    assert made.pool.schema.digests(again) == made.pool.schema.digests(probes)
    assert len(set(made.pool.schema.digests(probes))) == 240


@pytest.mark.parametrize("name", ["random-forest", "ridge"])
def test_probing_in_steps_gives_the_same(name, monkeypatch):
    """Whether models are told apart early, late or not at all, the prior is that of all probes asked at once."""
    pool, learner = mixed_pool(), small_learner(name)
    found = set()
    for steps in ((240,), (1, 240), (1, 40, 8192)):
        monkeypatch.setattr(space, "_STEPS", steps)
        found.add(quick_fit(pool, learner).ensemble.space.priors["model"])
    assert len(found) == 1


def test_posteriors_are_of_units(monkeypatch):
    """Each unit has the mass of the models that were trained on it, in whatever blocks it is computed."""
    persons = np.repeat(np.arange(30), 4)
    made = quick_fit(mixed_pool(persons=persons), small_learner("ridge"), recipe(n_models=8))
    belief = Belief.from_probabilities(np.random.default_rng(0).dirichlet(np.ones(8)))
    posterior = made.ensemble.space.membership_posterior(belief)
    expected = np.zeros(30)
    for i, probability in enumerate(belief.probabilities()):
        expected[np.unique(persons[made.trained_on(i)])] += probability
    np.testing.assert_allclose(posterior, expected, rtol=1e-12)
    monkeypatch.setattr(subsets, "_UNITS_PER_BLOCK", 8)
    np.testing.assert_array_equal(made.ensemble.space.membership_posterior(belief), posterior)


def test_a_summary_of_posteriors():
    """The ends are exact, and every unit is in one bin, those at the ends included."""
    posterior = np.array([0.0, 0.5, 0.5, 0.505, 0.3, 1.0])
    summary = summarise_posterior(posterior)
    assert (summary["smallest"], summary["largest"]) == (0, 1)
    counts = dict(zip(POSTERIOR_EDGES, summary["histogram"]["units"], strict=False))
    assert {edge: n for edge, n in counts.items() if n} == {0: 1, 0.25: 1, 0.49: 3, 0.999: 1}
    assert summary["histogram"]["edges"] == list(POSTERIOR_EDGES)


def test_hints_are_of_the_pool():
    """A column of names is pointed out, and records that differ in one column; not once persons are named."""
    rng = np.random.default_rng(0)
    visits = pd.DataFrame({"patient": np.repeat([f"P{i:03d}" for i in range(40)], 3)})
    facts = pd.DataFrame(rng.normal(size=(40, 5)), columns=list("abcde"))
    table = facts.loc[np.repeat(np.arange(40), 3)].reset_index(drop=True).assign(lab=rng.normal(size=120))
    labels = rng.integers(0, 2, 120)
    assert len(Pool.of(visits.join(table), labels).hints()) == 2
    (alike,) = Pool.of(table, labels).hints()
    assert alike.startswith("120 records differ from another one in 'lab' alone")
    assert Pool.of(table, labels, persons=visits["patient"]).hints() == []
    assert Pool.of(facts.join(visits[:40]), labels[:40], persons=np.arange(40)).hints() != []
    assert mixed_pool().hints() == []
