"""Training: what decides a model, and what does not."""

import joblib
import numpy as np
import pytest
from artifacts import fit_small, model_files
from records import mixed_pool, quick_fit, recipe, small_learner
from sklearn.naive_bayes import GaussianNB

from pacpredict.artifact.artifact import Artifact
from pacpredict.curator import Curator
from pacpredict.exceptions import InvalidInput
from pacpredict.learners.registry import learner_for
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.training.fit import fit
from pacpredict.training.train import seeds_of, train

LEARNERS = {
    **{
        name: small_learner(name)
        for name in ("xgboost", "logistic", "sgd", "random-forest", "hist-gradient-boosting", "extra-trees")
    },
    "estimator": learner_for(GaussianNB()),
}


def dumps(fitted):
    return [fitted.learner.dump(one.model) for one in fitted.models]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the models and votes of each learner, trained one after another in this process."""
    folder = tmp_path_factory.mktemp("made")
    return {
        name: model_files(fit_small(folder / name, learner=learner).path)
        for name, learner in LEARNERS.items()
    }


@pytest.mark.parametrize("name", LEARNERS)
def test_same_seed_same_bytes_in_other_processes(name, made, tmp_path):
    """Trained in two other processes, in any order, models and votes are the same bytes."""
    other = fit_small(tmp_path / "a.pac", learner=LEARNERS[name], n_jobs=2, backend="loky")
    assert model_files(other.path) == made[name]


@pytest.mark.parametrize("name", LEARNERS)
def test_other_seeds_make_other_models(name, made, tmp_path):
    """With another seed every model is another one."""
    other = model_files(fit_small(tmp_path / "a.pac", learner=LEARNERS[name], how=recipe(seed=2)).path)
    assert other.keys() == made[name].keys()
    assert not set(other.values()) & set(made[name].values())


def test_threads_and_a_configured_backend_make_the_same_models():
    """Neither joblib's backend, given or configured around the call, nor its jobs change a model."""
    pool, learner = mixed_pool(), small_learner("random-forest")
    expected = dumps(quick_fit(pool, learner))
    assert dumps(fit(pool, learner, recipe(), n_jobs=2, backend="threading")) == expected
    with joblib.parallel_config("threading", n_jobs=2):
        assert dumps(fit(pool, learner, recipe())) == expected


def test_each_model_has_its_own_seed():
    """Seeds of models are 31 bits, differ, follow from the fit's seed, and do not change with the number of models."""
    seeds = seeds_of(5, 128)
    assert len(set(seeds)) == 128
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds_of(5, 4) == seeds[:4]
    assert seeds_of(6, 4) != seeds[:4]


def test_the_seed_does_not_decide_the_secret(tmp_path):
    """Fits with one seed have the same models and different secrets: the recipe does not tell the secret."""
    pool, learner = mixed_pool(30), small_learner("decision-tree")
    how = recipe(n_models=16)
    paths = [tmp_path / str(i) for i in range(6)]
    for path in paths:
        fit_small(path, pool, learner, how)
    assert all(model_files(path) == model_files(paths[0]) for path in paths)
    # All the same by chance: once in a million runs.
    assert len({Artifact.open(path).secret().reveal() for path in paths}) > 1


def test_secrets_in_memory_are_drawn_evenly():
    """Of 400 deployments of the same four models each is the secret of about a hundred."""
    fitted = quick_fit(mixed_pool(40), small_learner("decision-tree"))
    curators = [Curator(fitted.ensemble, fitted.recipe, MemoryLedger()) for _ in range(400)]
    drawn = [curator.session._secret.reveal() for curator in curators]
    counts = np.bincount(drawn, minlength=4)
    # 100 on average with a deviation of 8.7: six of them on either side.
    assert ((counts > 48) & (counts < 152)).all()


def test_progress_counts_every_model():
    """Progress begins with none and ends with all."""
    steps = []
    fit(mixed_pool(40), small_learner("ridge"), recipe(), n_jobs=1, progress=lambda *step: steps.append(step))
    assert steps == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("options", "words"), [({"n_jobs": 0}, "got 0"), ({"backend": "clowns"}, "no backend 'clowns'")]
)
def test_jobs_that_make_no_sense(options, words):
    """What joblib cannot run is refused in words."""
    with pytest.raises(InvalidInput, match=words):
        fit(mixed_pool(20), small_learner("ridge"), recipe(), **options)


def test_only_wanted_models_are_trained():
    """Any of the models can be trained alone, and is the same."""
    pool, learner, how = mixed_pool(), small_learner("xgboost"), recipe()
    everything = quick_fit(pool, learner, how)
    alone = dict(train(learner, pool, how.subsets(pool.units), how.seed, [2], n_jobs=1))
    assert list(alone) == [2]
    assert alone[2].model == everything.models[2].model


def test_nothing_prints_a_record_or_a_model():
    """An ensemble says how many models and classes it has, nothing else."""
    assert repr(quick_fit().ensemble) == "Ensemble(4 models of xgboost, 2 classes)"
