"""What answers tell about being in the pool: by formula, by simulation, by hand, and by training again."""

from dataclasses import replace

import numpy as np
import pytest
from audited import subject_of
from records import mixed_pool, quick_fit, recipe, small_learner

from pacpredict.audit.estimates import RATES
from pacpredict.audit.presence import (
    Worlds,
    measure,
    memorised,
    own_label_rates,
    rates_of,
    retrain_without,
    tell_apart,
    worlds_on_hand,
)
from pacpredict.core.simulate import simulate
from pacpredict.exceptions import InvalidInput


@pytest.mark.parametrize("step", [2.0**-4, 2.0**-12])
@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
def test_rates_are_those_of_the_real_mechanism(decode, step):
    """How often an answer is a record's own label is what many first answers of simulated deployments have."""
    rng = np.random.default_rng(0)
    two = (rng.random((6, 32)) < rng.uniform(0.1, 0.9, (6, 1))).astype(np.int16)
    votes = np.concatenate([two, rng.integers(0, 3, (3, 32)).astype(np.int16), np.ones((1, 32), np.int16)])
    labels = rng.integers(0, 2, len(votes))
    expected = own_label_rates(votes, labels, decode, step)
    mechanism = "channel" if decode == "sample" else "gaussian"
    for row, label, rate in zip(votes, labels, expected, strict=True):
        found = simulate(
            row[None], [label], step, n_trials=4000, seed=1, mechanism=mechanism, n_classes=3, n_jobs=1
        )
        assert found.accuracy(decode)[:, 0].mean() == pytest.approx(rate, abs=0.04)


def test_the_best_test_is_that_of_neyman_and_pearson():
    """By hand: of two records one shows in every answer, the other in none."""
    advantage, tpr, curve = tell_apart(np.array([1.0, 0.5]), np.array([0.0, 0.5]), 1)
    assert advantage == pytest.approx(0.5)
    assert tpr == pytest.approx([0.5 + 0.5 * rate / 0.5 for rate in RATES], abs=0.01)
    at = dict(curve)
    assert at[min(at)] == pytest.approx(tpr[-1])
    assert at[max(at)] == pytest.approx(1.0)
    assert all(found == pytest.approx(min(0.5 + rate, 1.0), abs=0.01) for rate, found in curve)
    assert tell_apart(np.array([0.7]), np.array([0.7]), 1)[0] == pytest.approx(0.0)
    one, many = (tell_apart(np.array([0.6]), np.array([0.5]), n)[0] for n in (1, 1000))
    assert one == pytest.approx(0.1)
    assert many > 0.99


def test_the_votes_on_hand_have_both_worlds():
    """With a record all models vote, without it those that lack it; a record that models remember shows."""
    subject = subject_of()
    subject = replace(subject, labels=np.ones(len(subject.votes), np.int64))
    order = np.argsort(-memorised(subject), kind="stable")
    worlds = worlds_on_hand(subject, order[:5])
    for i, record in enumerate(order[:5]):
        lacking = ~subject.membership[:, subject.units[record]]
        assert worlds.outside[i].tolist() == subject.votes[record][lacking].tolist()
    one = measure(rates_of(worlds, "one model", 2.0**-8), "one model", 2.0**-8)
    assert one.own_label_in > one.own_label_out + 0.5
    with pytest.raises(InvalidInput, match="same share"):
        worlds_on_hand(replace(subject, membership=np.ones_like(subject.membership)), order[:5])


def test_noise_hides_the_pool_and_votes_do_not():
    """Of a record that every model in its half remembers, map tells more than sample, and argmax least."""
    inside = np.concatenate([np.ones((4, 17)), np.zeros((4, 15))], axis=1).astype(np.int16)
    outside = np.zeros((4, 16), np.int16)
    outside[:, 0] = 1
    worlds = Worlds(inside, outside, np.arange(32)[None] < 16, np.ones(4, np.int64))
    told = {
        name: measure(rates_of(worlds, name, 2.0**-32), name, 2.0**-32).advantage
        for name in ("argmax", "sample", "map")
    }
    assert told["argmax"] < 0.01 < told["sample"] < told["map"]


def test_training_again_without_a_record_is_training_without_it():
    """Where its record is left out, a model that lacked it anyway is the same, and the record is in no other."""
    pool, how = mixed_pool(60), recipe(n_models=8)
    fitted = quick_fit(pool, small_learner("decision-tree"), how)
    subsets = fitted.ensemble.space.subsets
    unit = 3
    votes = retrain_without(fitted.learner, pool, subsets, how.seed, np.array([unit]), n_jobs=1)
    records = np.arange(len(pool))
    again, before = votes(records), fitted.ensemble.votes(pool.rows)
    lacking = ~subsets.matrix()[:, unit]
    assert 0 < lacking.sum() < 8
    assert np.array_equal(again[:, lacking], before[:, lacking])
    assert not np.array_equal(again[:, ~lacking], before[:, ~lacking])
