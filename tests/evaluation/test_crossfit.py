"""Votes on records that no model has seen: nobody is on both sides, and models are those of a deployment."""

from dataclasses import replace

import numpy as np
import pytest
from hospital import OPTIONS, hospital
from records import labels_of, mixed_table, recipe, small_learner
from sklearn.tree import DecisionTreeClassifier

from pacpredict.evaluation.crossfit import answers_unprotected, cross_fit, votes_outside
from pacpredict.evaluation.folds import split
from pacpredict.exceptions import InvalidInput
from pacpredict.learners.registry import learner_from
from pacpredict.tables.options import TableOptions
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool
from pacpredict.training.train import seeds_of


@pytest.fixture(scope="module")
def pool():
    table = mixed_table(100)
    return Pool.of(table, labels_of(table, 3), weights=np.arange(1.0, 101.0))


def test_each_record_is_held_out_once(pool):
    """The folds are a partition, each with its share of every class."""
    folds = split(pool, 5, seed=3)
    assert (np.sum(folds, axis=0) == 1).all()
    for held_out in folds:
        assert held_out.sum() == 20
        assert set(np.bincount(pool.labels[held_out])) <= {6, 7}
    assert not np.array_equal(split(pool, 5, seed=4), folds)


def test_nobody_is_on_both_sides():
    """All records of a person are held out together, and those of one content where nobody is named."""
    table, persons = mixed_table(100), np.random.default_rng(0).integers(0, 30, 100)
    table.iloc[50:60] = table.iloc[:10]
    for pool in (Pool.of(table, labels_of(table), persons=persons), Pool.of(table, labels_of(table))):
        folds = split(pool, 5, seed=3)
        assert (np.sum(folds, axis=0) == 1).all()
        units = pool.units.of_record
        assert not any(set(units[held_out]) & set(units[~held_out]) for held_out in folds)


def test_persons_are_held_out_as_a_whole():
    """Nobody has records on both sides, also where records of several classes are one person's."""
    table = hospital(80)
    types = {"admitted": "date", "born": "date:%d.%m.%Y"}
    pool = Pool.of_frame(table, TableOptions.from_json({**OPTIONS, "types": types, "person": "patient_id"}))
    folds = split(pool, 5, seed=1)
    assert (np.sum(folds, axis=0) == 1).all()
    for held_out in folds:
        assert not set(table["patient_id"][held_out]) & set(table["patient_id"][~held_out])
        assert len(set(table["patient_id"][held_out])) == 16
    fold = next(cross_fit(pool, lambda _: small_learner("decision-tree"), recipe(n_models=4), 5, n_jobs=1))
    assert len(fold.truth) == split(pool, 5, recipe().seed)[0].sum()


def test_a_rare_class_is_no_obstacle():
    """A class with fewer records than folds is held out wherever it comes."""
    table = mixed_table(40)
    labels = np.where(np.arange(40) == 7, "rare", labels_of(table))
    assert sum(fold.sum() for fold in split(Pool.of(table, labels), 5, seed=0)) == 40


@pytest.mark.parametrize("n_folds", [1, 101])
def test_impossible_folds(n_folds, pool):
    """There must be something to train on and something to ask about."""
    with pytest.raises(InvalidInput, match="from 2 to 100 folds"):
        split(pool, n_folds, seed=0)


def test_a_part_keeps_columns_classes_and_weights(pool):
    """A part of a pool is a pool with the same schema, so that models of all parts vote alike."""
    part = pool.part(pool.labels != 1)
    assert part.schema is pool.schema
    assert part.classes is pool.classes
    assert set(part.labels) == {0, 2}
    assert np.array_equal(part.weights, pool.weights[pool.labels != 1])


def test_votes_are_those_of_a_deployment_on_the_rest(pool):
    """Fitting the rest by hand gives the same votes, fold by fold; one model on the rest gives the unprotected ones."""
    learner, how = learner_from("decision-tree", {"max_depth": 4}), recipe(seed=5, n_models=6)
    seen = []
    folds = list(cross_fit(pool, lambda part: seen.append(len(part)) or learner, how, 4, n_jobs=1))
    assert seen == [75, 75, 75, 75]
    for held_out, fold, seed in zip(split(pool, 4, 5), folds, seeds_of(5, 4), strict=True):
        rest, asked = pool.part(~held_out), pool.rows.take(held_out)
        by_hand = fit(rest, learner, recipe(seed=seed, n_models=6), n_jobs=1)
        assert np.array_equal(fold.votes, by_hand.ensemble.votes(asked))
        assert np.array_equal(fold.truth, pool.labels[held_out])
        oracle = DecisionTreeClassifier(max_depth=4, random_state=seeds_of(seed, 1)[0])
        features = pool.schema.features(pool.rows)
        oracle.fit(features[~held_out], pool.labels[~held_out], sample_weight=pool.weights[~held_out])
        assert np.array_equal(fold.unprotected, oracle.predict(features[held_out]))


def test_held_out_records_do_not_matter(pool):
    """Changing what is held out changes no vote on other queries: it was not trained on."""
    held_out = split(pool, 4, 1)[0]
    labels = np.where(held_out, 0, pool.labels)
    changed = replace(pool, labels=labels)
    learner, how = small_learner("decision-tree"), recipe(n_models=4)
    votes = [votes_outside(one, held_out, learner, how, n_jobs=1) for one in (pool, changed)]
    assert np.array_equal(*votes)
    alone = [answers_unprotected(one, held_out, learner, 1) for one in (pool, changed)]
    assert np.array_equal(*alone)


def test_progress_counts_all_models(pool):
    """Half-models and unprotected ones are counted, from 0 to all."""
    steps = []
    learner = small_learner("decision-tree")
    list(
        cross_fit(
            pool,
            lambda _: learner,
            recipe(n_models=4),
            2,
            n_jobs=1,
            progress=lambda *step: steps.append(step),
        )
    )
    assert steps[0] == (0, 10)
    assert steps[-1] == (10, 10)
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
