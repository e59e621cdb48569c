"""Training again finds what a rewritten manifest hides."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from artifacts import fit_small, rehash
from records import labels_of, mixed_pool, mixed_table, recipe, small_learner
from sklearn.naive_bayes import GaussianNB

from pacpredict import npz
from pacpredict.artifact.artifact import Artifact
from pacpredict.artifact.verify import verify_models
from pacpredict.exceptions import InvalidArtifact, InvalidTable
from pacpredict.learners.registry import learner_for
from pacpredict.training.pool import Pool
from pacpredict.training.units import Units

LEARNERS = {
    **{
        name: small_learner(name)
        for name in ("xgboost", "logistic", "random-forest", "hist-gradient-boosting")
    },
    "estimator": learner_for(GaussianNB()),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    return {name: fit_small(folder / name, learner=learner).path for name, learner in LEARNERS.items()}


def copy(path, tmp_path):
    return Path(shutil.copytree(path, tmp_path / "a.pac"))


@pytest.mark.parametrize("name", LEARNERS)
def test_an_honest_artifact_passes(name, made):
    """Of every kind of learner, models that are trained again are the same to the byte."""
    steps = []
    artifact = Artifact.open(made[name], trust=True)
    checked = verify_models(
        artifact, mixed_pool(), 3, n_jobs=1, progress=lambda done, total: steps.append((done, total))
    )
    assert len(set(checked)) == 3
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert verify_models(artifact, mixed_pool(), 99, n_jobs=1) == [0, 1, 2, 3]


def test_which_models_are_checked_is_not_foreseeable(made):
    """Whoever replaced one model cannot know that it will not be tried."""
    artifact, pool = Artifact.open(made["logistic"]), mixed_pool()
    chosen = {verify_models(artifact, pool, 1, n_jobs=1)[0] for _ in range(30)}
    assert chosen == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["xgboost", "logistic", "random-forest"])
def test_a_replaced_model_is_found(name, made, tmp_path):
    """A model trained on another subset, with votes and manifest to match, is not what training makes."""
    home = copy(made[name], tmp_path)
    suffix = LEARNERS[name].suffix
    shutil.copy(home / "models" / f"001.{suffix}", home / "models" / f"000.{suffix}")
    learner, pool = LEARNERS[name], mixed_pool()
    records = [json.loads((home / "models" / f"{i:03d}.json").read_text()) for i in range(4)]
    models = [learner.load((home / record["file"]).read_bytes()) for record in records]
    voter = learner.voter(models, [np.array(record["classes"]) for record in records], 2, pool.schema)
    (home / "votes.npz").write_bytes(npz.to_bytes(voter.arrays()))
    rehash(home)
    with pytest.raises(InvalidArtifact, match="model 0 is not what training it again makes"):
        verify_models(Artifact.open(home), pool, 4, n_jobs=1)


def test_exchanged_labels_are_found(made, tmp_path):
    """A record that exchanges the labels of a model, with votes and manifest to match, is found."""
    home = copy(made["logistic"], tmp_path)
    path = home / "models" / "002.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "classes": record["classes"][::-1]}))
    learner, pool = LEARNERS["logistic"], mixed_pool()
    records = [json.loads((home / "models" / f"{i:03d}.json").read_text()) for i in range(4)]
    models = [learner.load((home / record["file"]).read_bytes()) for record in records]
    voter = learner.voter(models, [np.array(record["classes"]) for record in records], 2, pool.schema)
    (home / "votes.npz").write_bytes(npz.to_bytes(voter.arrays()))
    rehash(home)
    with pytest.raises(InvalidArtifact, match="model 2 is not"):
        verify_models(Artifact.open(home), pool, 4, n_jobs=1)


@pytest.mark.parametrize("name", ["xgboost", "logistic"])
def test_edited_votes_are_found(name, made, tmp_path):
    """Packed votes that are not those of the stored models are found, even if no model is trained again."""
    home = copy(made[name], tmp_path)
    arrays = npz.from_bytes((home / "votes.npz").read_bytes())
    changed = next(key for key, array in arrays.items() if array.dtype.kind == "f" and array.size)
    arrays[changed] = arrays[changed] + 1
    (home / "votes.npz").write_bytes(npz.to_bytes(arrays))
    rehash(home)
    with pytest.raises(InvalidArtifact, match="packed votes are not those of the stored models"):
        verify_models(Artifact.open(home), mixed_pool(), 0, n_jobs=1)


def test_other_subsets_are_found(made, tmp_path):
    """Subsets that the seed does not draw are found."""
    home = copy(made["logistic"], tmp_path)
    np.save(home / "subsets.npy", recipe(seed=2).subsets(Units(np.arange(120), "record")).packed)
    rehash(home)
    with pytest.raises(InvalidArtifact, match="subsets are not those that its seed draws"):
        verify_models(Artifact.open(home), mixed_pool(), 1, n_jobs=1)


def test_other_records_are_refused(made):
    """Records that differ in a value, a label, a name or their order are not those of the artifact."""
    table = mixed_table()
    labels = labels_of(table)
    value, label = table.copy(), labels.copy()
    value.loc[7, "age"] += 1
    label[3] = "a" if label[3] == "b" else "b"
    artifact = Artifact.open(made["logistic"])
    renamed = table.replace({"job": {"clerk": "baker"}})  # the same code as before
    others = [(value, labels), (table, label), (table[::-1], labels[::-1]), (renamed, labels)]
    others += [(table.rename(columns={"age": "years"}), labels), (table, labels.astype("<U2") + "s")]
    for other in (Pool.of(*other) for other in others):
        with pytest.raises(InvalidTable, match="not the records that the artifact was fitted on"):
            verify_models(artifact, other, 1)


def test_other_versions_are_mentioned(made, tmp_path):
    """If libraries have changed since, the error says that this may be why."""
    home = copy(made["logistic"], tmp_path)
    arrays = npz.from_bytes((home / "models" / "000.npz").read_bytes())
    (home / "models" / "000.npz").write_bytes(npz.to_bytes({**arrays, "biases": arrays["biases"] + 1}))
    models = [LEARNERS["logistic"].load((home / f"models/{i:03d}.npz").read_bytes()) for i in range(4)]
    voter = LEARNERS["logistic"].voter(models, [np.arange(2)] * 4, 2, mixed_pool().schema)
    (home / "votes.npz").write_bytes(npz.to_bytes(voter.arrays()))
    manifest = json.loads((home / "manifest.json").read_text())
    manifest["versions"]["scikit-learn"] = "0.1"
    (home / "manifest.json").write_text(json.dumps(manifest))
    rehash(home)
    with pytest.raises(InvalidArtifact, match=r"versions differ.*scikit-learn 0.1 then and"):
        verify_models(Artifact.open(home), mixed_pool(), 4, n_jobs=1)
