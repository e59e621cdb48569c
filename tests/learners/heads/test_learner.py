"""The learner `heads`: what it takes, what it stores, and models that do not depend on how they are trained."""

import copy
import pickle

import numpy as np
import pytest
from artifacts import fit_small, model_files
from records import mixed_pool, recipe
from whole_values import image_pool, letters, mean_colours, refused, small_heads, text_pool

from pacpredict.artifact.artifact import Artifact
from pacpredict.artifact.verify import verify_models
from pacpredict.exceptions import InvalidFeatures, InvalidInput, InvalidModel, UntrustedArtifact
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.learner import TrainingSet
from pacpredict.learners.registry import learner_named, learner_of_config
from pacpredict.training.fit import fit
from pacpredict.training.train import train


def trained(pool, learner, wanted, n_models=20, n_jobs=1):
    found = train(learner, pool, recipe(n_models=n_models).subsets(pool.units), 1, wanted, n_jobs=n_jobs)
    return {i: learner.dump(one.model) for i, one in found}


@pytest.mark.parametrize("head", ["logistic", "ridge"])
def test_models_do_not_depend_on_which_are_wanted(head):
    """All at once, a few of them, and on two processes: the bytes of a model are the same."""
    pool, learner = image_pool(), small_heads(head=head)
    everything = trained(pool, learner, range(20))
    assert set(everything) == set(range(20))
    assert len(set(everything.values())) == 20
    for wanted in ([3], [19, 8], range(4, 12)):
        assert trained(pool, learner, wanted) == {i: everything[i] for i in wanted}
    assert trained(pool, learner, range(20), n_jobs=2) == everything


def test_one_alone():
    """`fit` trains one head on all that it gets."""
    pool, learner = text_pool(), small_heads("tfidf")
    records = TrainingSet(learner.prepare(pool.schema, pool.rows), pool.labels, pool.classes.values)
    one = learner.fit(records, pool.schema, 0)
    votes = learner.voter([one.model], [np.arange(2)], 2, pool.schema).votes(records.prepared)
    assert (votes[:, 0] == pool.labels).mean() > 0.8


@pytest.mark.parametrize(
    ("pool", "features"),
    [(image_pool, mean_colours), (text_pool, letters), (text_pool, "tfidf"), (text_pool, "hashing")],
)
def test_votes_do_not_depend_on_the_batch(pool, features):
    """A row gets the same votes alone, in any batch and in any order."""
    pool, learner = pool(), small_heads(features)
    ensemble = fit(pool, learner, recipe(n_models=16), n_jobs=1).ensemble
    whole = ensemble.votes(pool.rows)
    assert len(np.unique(whole)) > 1
    alone = [ensemble.votes(pool.rows.take([i])) for i in range(len(pool))]
    assert np.array_equal(np.concatenate(alone), whole)
    order = np.random.default_rng(0).permutation(len(pool))
    assert np.array_equal(ensemble.votes(pool.rows.take(order)), whole[order])


def test_an_artifact_votes_as_the_models_in_memory(tmp_path):
    """Stored and opened again, with what it keeps of its features, it gives the same votes; bytes can be verified."""
    pool, learner = text_pool(), small_heads("tfidf")
    before = fit(pool, learner, recipe(n_models=10), n_jobs=1).ensemble.votes(pool.rows)
    fit_small(tmp_path / "a.pac", pool, learner, recipe(n_models=10))
    artifact = Artifact.open(tmp_path / "a.pac")
    assert np.array_equal(artifact.ensemble().votes(pool.rows), before)
    assert len(verify_models(artifact, pool, 4, n_jobs=1)) == 4
    fit_small(tmp_path / "b.pac", pool, learner, recipe(n_models=10))
    assert model_files(tmp_path / "a.pac") == model_files(tmp_path / "b.pac")


def test_a_fit_goes_on_where_it_was_interrupted(tmp_path):
    """What is on disk stays, the rest is trained, and the result is that of one go."""
    pool, learner, how = image_pool(), small_heads(), recipe(n_models=20)
    fit_small(tmp_path / "whole.pac", pool, learner, how)

    def interrupt(done, total, doing=None):
        if done >= 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_small(tmp_path / "part.pac", pool, learner, how, progress=interrupt)
    kept = sorted(path.name for path in (tmp_path / "part.pac.partial" / "models").glob("*.npz"))
    assert 0 < len(kept) < 20
    fit_small(tmp_path / "part.pac", pool, learner, how)
    assert model_files(tmp_path / "part.pac") == model_files(tmp_path / "whole.pac")


def test_functions_need_trust(tmp_path):
    """An artifact names the function of its features, and nobody's code is imported unless the owner says so."""
    fit_small(tmp_path / "a.pac", image_pool(), small_heads())
    artifact = Artifact.open(tmp_path / "a.pac")
    with pytest.raises(UntrustedArtifact, match="function of features"):
        artifact.ensemble()
    votes = Artifact.open(tmp_path / "a.pac", trust=True).ensemble().votes(image_pool().rows)
    assert votes.shape == (120, 4)
    problem = refused(
        fit_small, tmp_path / "b.pac", image_pool(), small_heads(lambda image: image.mean((0, 1)))
    )
    assert isinstance(problem, InvalidModel)
    assert not list(
        (tmp_path / "b.pac.partial" / "models").iterdir()
    )  # it was said before anything was trained


def test_bad_features_stop_a_fit_before_training(tmp_path):
    """NaN for one record: the error names it, and no model was trained."""
    pool = image_pool()
    bad = pool.rows.pixels[77].mean()
    learner = small_heads(lambda image: np.where(image.mean() == bad, np.nan, mean_colours(image)))
    with pytest.raises(InvalidFeatures, match=r"row 77 \(from 0\)"):
        fit(
            pool,
            learner,
            recipe(),
            n_jobs=1,
            progress=lambda done, _: pytest.fail("a model was trained") if done else None,
        )


def test_features_are_those_of_the_rows_whoever_else_asks():
    """Threads of a server share a learner: one that comes between takes nobody's features."""

    class Interrupted(Heads):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_last" and value is not None and value[0] is not others:
                self.prepare(pool.schema, others)

    pool = image_pool()
    rows, others = pool.rows.take([0, 1]), pool.rows.take([2, 3, 4])
    found = Interrupted(mean_colours, cache=None).prepare(pool.schema, rows)
    assert np.array_equal(found, small_heads().prepare(pool.schema, rows))


def test_features_that_change_their_width_are_refused():
    """Heads were trained on so many features; an extractor that returns others is named."""
    pool, learner = image_pool(), small_heads()
    ensemble = fit(pool, learner, recipe(), n_jobs=1).ensemble
    ensemble.learner = small_heads(lambda image: image.mean((0, 1)))
    with pytest.raises(InvalidFeatures, match="3 numbers, and the heads were trained on 9"):
        ensemble.votes(pool.rows)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"features": "tfidf", "head": "tail"},
        {"features": "tfidf", "head": "ridge"},
        {"features": "tfidf", "penalty": 0.0},
        {"features": "tfidf", "penalty": -1.0},
        {"features": "tfidf", "steps": 0},
        {"features": "tfidf+potion"},
        {"features": "tfidf", "depth": 3},
        {"features": "nothing"},
    ],
)
def test_wrong_parameters(params):
    """They are refused when the learner is built."""
    assert isinstance(refused(learner_named, "heads", params), InvalidInput)


def test_it_takes_what_its_features_take():
    """A table is refused by a learner of texts, and texts by a learner of tables."""
    assert small_heads("tfidf").takes == ("text",)
    assert small_heads().takes == ("image", "text")
    assert isinstance(refused(fit, mixed_pool(), small_heads("tfidf"), recipe(), n_jobs=1), InvalidInput)
    assert isinstance(refused(fit, text_pool(), learner_named("logistic"), recipe(), n_jobs=1), InvalidInput)


@pytest.mark.parametrize(
    ("configs", "name"),
    [
        ([{"kind": "words", "idf": True}], "tfidf"),
        ([{"kind": "words", "idf": False}], "hashing"),
        (
            [{"kind": "onnx-images", "name": "lite2", "size": 224}, {"kind": "function", "function": "a:f"}],
            "lite2@224+a:f",
        ),
        ([{"kind": "onnx-texts", "name": "bge-small", "tokens": 64}], "bge-small@64"),
        ([{"kind": "onnx-images", "name": "means", "size": None}], "means"),
    ],
)
def test_features_are_named_as_a_user_would(configs, name):
    """Whoever looks at an artifact sees which features it has, in words that `--features` takes."""
    assert learner_of_config({"name": "heads", "params": {"features": configs}}).title == f"heads on {name}"


def test_configs_and_copies():
    """A config makes the same learner again; a learner is pickled and copied without what it has opened."""
    learner = small_heads("hashing", penalty=0.5, steps=3)
    again = learner_of_config(learner.config())
    assert again.config() == learner.config()
    pool = text_pool()
    votes = [
        fit(pool, one, recipe(), n_jobs=1).ensemble.votes(pool.rows)
        for one in (learner, again, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)))
    ]
    assert all(np.array_equal(each, votes[0]) for each in votes)
    assert Heads("tfidf").origin().estimator.features == "tfidf"
