"""Units and priors in artifacts: stored, and checked."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from artifacts import fit_small, rehash
from records import mixed_pool, mixed_table, recipe, small_learner

from pacpredict.artifact.artifact import Artifact
from pacpredict.artifact.verify import verify_models
from pacpredict.artifact.workshop import Workshop
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidArtifact, InvalidTable

PERSONS = np.random.default_rng(1).integers(0, 40, 120)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return fit_small(tmp_path_factory.mktemp("made") / "a.pac", mixed_pool(persons=PERSONS)).path


@pytest.fixture
def home(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "a.pac"))


def test_units_and_priors_come_back(made):
    """An artifact knows the unit of each record, and what was counted when it was fitted."""
    pool, space = mixed_pool(persons=PERSONS), Artifact.open(made).space
    assert np.array_equal(space.units.of_record, pool.units.of_record)
    assert (space.units.kind, space.units.count) == ("person", len(set(PERSONS)))
    assert np.array_equal(space.subsets.packed, recipe().subsets(pool.units).packed)
    assert space.priors["membership"] == 0.5
    assert np.load(made / "units.npy").tolist() == pool.units.of_record.tolist()


def test_no_person_is_named_in_an_artifact(tmp_path):
    """The names of persons are nowhere in it: units are numbers."""
    names = [f"Somebody{i}" for i in PERSONS]
    home = fit_small(tmp_path / "a.pac", mixed_pool(persons=names)).path
    assert not any(b"Somebody" in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_deployment_tells_the_posterior_of_each_unit(tmp_path):
    """At first everybody is at 1/2; after answers some are not, and what the ledger keeps tells the same."""
    path = fit_small(tmp_path / "a.pac", mixed_pool(persons=PERSONS)).path
    with Deployment.open(path) as deployment:
        assert (deployment.membership_posterior() == 0.5).all()
        deployment.ask(mixed_table(30, seed=5))
        told = deployment.membership_posterior()
        assert np.array_equal(deployment.curator.membership_posterior(), told)
        assert told.shape == (len(set(PERSONS)),)
        assert told.min() < 0.5 < told.max()
    with Deployment.open(path) as again:
        assert np.array_equal(again.membership_posterior(), told)


def spoil(home, name, change):
    array = np.load(home / name)
    np.save(home / name, change(array))
    rehash(home)


@pytest.mark.parametrize(
    "change",
    [
        lambda units: units[:-1],
        lambda units: units.astype(float),
        lambda units: units + 1,
        lambda units: units * 2,
        np.zeros_like,
        lambda units: np.array([]),
    ],
)
def test_units_that_make_no_sense_are_refused(change, home):
    """Units that are not numbered without a gap, or do not fit the records and subsets, are refused in words."""
    spoil(home, "units.npy", change)
    with pytest.raises(InvalidArtifact, match=r"units|subsets"):
        _ = Artifact.open(home).space


@pytest.mark.parametrize(
    "edit",
    [
        lambda manifest: manifest["priors"].pop("model"),
        lambda manifest: manifest["priors"].update(model=0),
        lambda manifest: manifest["priors"].update(model=1.5),
        lambda manifest: manifest["priors"].update(model="half"),
        lambda manifest: manifest.update(priors=[]),
        lambda manifest: manifest["units"].update(kind="animal"),
        lambda manifest: manifest.update(units=1),
    ],
)
def test_priors_that_make_no_sense_are_refused(edit, home):
    """A prior that is missing or no probability, and a kind of unit that there is not, are refused in words."""
    manifest = json.loads((home / "manifest.json").read_text())
    edit(manifest)
    (home / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InvalidArtifact, match=r"units or priors of .* cannot be read"):
        _ = Artifact.open(home).space


def test_verify_counts_again(home):
    """Priors that were embellished in the manifest are found, even if no model is trained again."""
    pool = mixed_pool(persons=PERSONS)
    assert len(verify_models(Artifact.open(home), pool, 1, n_jobs=1)) == 1
    manifest = json.loads((home / "manifest.json").read_text())
    for attack in manifest["priors"]:
        prior = manifest["priors"][attack]
        manifest["priors"][attack] = prior / 2
        (home / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InvalidArtifact, match="priors are not those of its subsets and models"):
            verify_models(Artifact.open(home), pool, 0, n_jobs=1)
        manifest["priors"][attack] = prior


def test_verify_wants_the_same_persons(home):
    """With other persons, or none, the records are not those that the artifact was fitted on."""
    exchanged = PERSONS.copy()
    exchanged[[0, 1]] = exchanged[[1, 0]]
    assert exchanged[0] != exchanged[1]
    for options in ({}, {"persons": np.arange(120)}, {"persons": exchanged}):
        with pytest.raises(InvalidTable, match=r"fitted on 40 persons, and .* name persons as then"):
            verify_models(Artifact.open(home), mixed_pool(**options), 1, n_jobs=1)


def test_verify_finds_other_units(home):
    """Units that were exchanged in the file, with a manifest to match, are not those of the records."""
    spoil(home, "units.npy", lambda units: np.r_[units[0], units[2], units[1], units[3:]])
    with pytest.raises(InvalidTable, match="name persons as then"):
        verify_models(Artifact.open(home), mixed_pool(persons=PERSONS), 1, n_jobs=1)


def test_another_persons_fit_is_not_resumed(tmp_path):
    """A fit that was interrupted goes on with the same persons only."""
    arguments = small_learner(), recipe()
    with Workshop(tmp_path / "a.pac", mixed_pool(persons=PERSONS), *arguments).open():
        pass
    with (
        pytest.raises(InvalidArtifact, match="begun with another units"),
        Workshop(tmp_path / "a.pac", mixed_pool(), *arguments).open(),
    ):
        pass
    with Workshop(tmp_path / "a.pac", mixed_pool(persons=PERSONS), *arguments).open():
        pass
