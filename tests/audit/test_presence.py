"""What answers tell about being in the pool: by formula, by simulation, by hand, and by training again."""

from dataclasses import replace

import numpy as np
import pytest
from audited import subject_of
from records import mixed_pool, quick_fit, recipe, small_learner
from scipy import stats

from pacpredict.audit.estimates import RATES
from pacpredict.audit.presence import (
    N_VARIANTS,
    SEES,
    Worlds,
    measure,
    memorised,
    n_variants,
    own_label_rates,
    rates_of,
    retrain_without,
    tell_apart,
    worlds_on_hand,
)
from pacpredict.core.simulate import simulate
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session


@pytest.mark.parametrize("step", [2.0**-4, 2.0**-12])
@pytest.mark.parametrize("noise", ["least", "fair"])
@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
def test_rates_are_those_of_the_real_mechanism(decode, noise, step):
    """How often an answer is a record's own label is what many first answers of simulated deployments have."""
    rng = np.random.default_rng(0)
    two = (rng.random((6, 32)) < rng.uniform(0.1, 0.9, (6, 1))).astype(np.int16)
    votes = np.concatenate([two, rng.integers(0, 3, (3, 32)).astype(np.int16), np.ones((1, 32), np.int16)])
    labels = rng.integers(0, 2, len(votes))
    expected = own_label_rates(votes, labels, decode, step, noise)
    how = {"mechanism": "channel" if decode == "sample" else "gaussian", "noise": noise}
    for row, label, rate in zip(votes, labels, expected, strict=True):
        found = simulate(row[None], [label], step, n_trials=4000, seed=1, n_classes=3, n_jobs=1, **how)
        assert found.accuracy(decode)[:, 0].mean() == pytest.approx(rate, abs=0.04)


def rate_by_quadrature(votes, label, decode, step):
    """How probable a label is with fair noise, as an integral over one normal.

    In the space of all voted labels the noise is independent and equal, up to a part that all entries share.
    """
    classes, counts = np.unique(votes, return_counts=True)
    w, own = counts / votes.size, int(np.flatnonzero(classes == label)[0])
    sigma = np.sqrt((1 - w @ w) / (2 * step))
    lean = sigma * np.log(w[own] / w) if decode == "map" else np.zeros(w.size)
    z, weights = np.polynomial.hermite_e.hermegauss(101)
    weights = weights / weights.sum()
    rate = 0.0
    for secret in range(w.size):
        released = np.eye(w.size)[secret]
        ahead = (released[own] - released) / sigma + lean
        beaten = np.prod([stats.norm.cdf(z + ahead[j]) for j in range(w.size) if j != own], axis=0)
        rate += w[secret] * weights @ beaten
    return rate


@pytest.mark.parametrize("step", [2.0**-32, 2.0**-8, 2.0**-4])
@pytest.mark.parametrize("decode", ["argmax", "map"])
def test_rates_with_fair_noise_are_an_integral(decode, step):
    """Of three and more labels, how often an answer is the own one agrees with quadrature over fair noise."""
    for counts in ([20, 10, 1, 1], [12, 11, 9]):
        row = np.repeat(np.arange(len(counts)), counts).astype(np.int16)
        for label in range(len(counts)):
            found = own_label_rates(row[None], np.array([label]), decode, step, "fair", 100_000)
            assert found[0] == pytest.approx(rate_by_quadrature(row, label, decode, step), abs=0.008)


@pytest.mark.parametrize(("decode", "mechanism"), [("argmax", "gaussian"), ("sample", "channel")])
@pytest.mark.parametrize("step", [2.0**-32, 2.0**-20, 2.0**-12])
def test_as_many_variants_are_asked_about_as_answers_are_independent(decode, mechanism, step):
    """In simulated deployments the count of own labels varies as a binomial number does, and far more beyond."""
    votes = (np.arange(32) < 16).astype(np.int16)[None]

    def spread(n):
        how = {"n_trials": 2000, "seed": 1, "mechanism": mechanism, "n_classes": 2, "n_jobs": 1}
        shares = simulate(votes, [1], step, n_queries=n, checkpoints=[n], **how).accuracy(decode)[:, -1]
        return shares.var() / (0.25 / n)

    n = n_variants(step)
    assert spread(n) == pytest.approx(1, abs=0.15)
    if n < N_VARIANTS and decode == "sample":
        assert spread(20 * n) > 2
    assert n_variants(2.0**-8) == 1


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


def test_a_charge_that_differs_tells_at_once():
    """By hand: of four records one is charged for only if it is in the pool; labels of none tell anything."""
    half, told = np.full(4, 0.5), np.array([True, False, False, False])
    for n in (1, 1000):
        assert tell_apart(half, half, n)[0] == pytest.approx(0.0)
        advantage, tpr, _ = tell_apart(half, half, n, told)
        assert advantage == pytest.approx(0.25)
        # All of what is told, and by chance as much of the rest as may be accused.
        assert tpr == pytest.approx([0.25 + 0.75 * rate / 0.75 for rate in RATES], abs=1e-6)
    # Where labels tell something, too, a charge adds to it.
    inside, outside = np.array([0.5, 0.9]), np.array([0.5, 0.2])
    assert tell_apart(inside, outside, 1)[0] == pytest.approx(0.35)
    assert tell_apart(inside, outside, 1, np.array([True, False]))[0] == pytest.approx(0.85)


def seen_by_clients(votes, budget, decode):
    """Return the charges of first answers about each row, in sessions of their own."""
    n_models = votes.shape[1]
    return [
        Session(
            2, budget, n_models, decode=decode, secret=Secret(0, n_models), generator=np.random.default_rng(i)
        )
        .answer(row)
        .charge
        for i, row in enumerate(votes)
    ]


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
def test_charges_are_measured_as_clients_see_them(decode):
    """Whether all models agree shows in what the real mechanism charges for one answer, unless all cost alike."""
    inside = np.zeros((3, 16), np.int16)
    inside[1:, :3] = 1  # two of three records are contested with the record in the pool, and one without
    outside = inside.copy()
    outside[1] = 0
    worlds = Worlds(inside, outside, np.arange(16)[None] < 8, np.ones(3, np.int64))
    for charging in ("adaptive", "flat"):
        budget = Budget(2.0**-32, 2.0**-20, charging=charging)
        rates = rates_of(worlds, decode, budget.step, charging)
        for votes, charged in ((inside, rates.charged_inside), (outside, rates.charged_outside)):
            assert [charge > 0 for charge in seen_by_clients(votes, budget, decode)] == charged.tolist()
        labels, both = (measure(rates, decode, budget.step, 1, sees) for sees in SEES)
        if charging == "flat":
            assert both._replace(sees="labels") == labels, "charges tell nothing"
            assert both.charged_in == both.charged_out == 1
        else:
            assert both.advantage == pytest.approx(1 / 3)
            assert labels.advantage < both.advantage
            assert (both.charged_in, both.charged_out) == pytest.approx((2 / 3, 1 / 3))


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
