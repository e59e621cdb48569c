"""An artifact in the making: what an interruption leaves, who may go on with it, and that the result is the same."""

import json
import os
from dataclasses import asdict

import pytest
from artifacts import fit_small, model_files
from records import mixed_pool, recipe, small_learner

from pacpredict.artifact.artifact import Artifact
from pacpredict.artifact.make import settle_seed
from pacpredict.artifact.workshop import Workshop
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidArtifact
from pacpredict.files import write_whole
from pacpredict.learners.registry import learner_named
from pacpredict.mechanism.budget import Budget


class Interrupted(Exception):
    pass


def stop_after(n):
    def progress(done, _total, _doing):
        if done >= n:
            raise Interrupted

    return progress


def interrupt(path, n=2, **options):
    with pytest.raises(Interrupted):
        fit_small(path, progress=stop_after(n), **options)
    return path.with_name(path.name + ".partial")


def stamps(folder):
    """Return what changes when a file is written again."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("models/*")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the models of a fit that was never interrupted."""
    return model_files(fit_small(tmp_path_factory.mktemp("whole") / "a.pac").path)


@pytest.mark.parametrize("n", [0, 1, 3, 4])
def test_only_what_is_missing_is_trained(n, whole, tmp_path):
    """Interrupted after any number of models, a fit goes on with the others and gives the same bytes."""
    path = tmp_path / "a.pac"
    before = stamps(interrupt(path, n))
    assert len(before) == 2 * n
    with pytest.raises(InvalidArtifact, match="was interrupted"):
        Artifact.open(path)
    steps = []
    fit_small(path, progress=lambda done, total, _: steps.append((done, total)))
    assert steps == [(done, 4) for done in range(n, 5)]
    after = stamps(path)
    assert {name: after[name] for name in before} == before
    assert model_files(path) == whole


def test_a_model_that_was_damaged_meanwhile_is_trained_again(whole, tmp_path):
    """A file that is not what its record says does not count as done; neither does one without a record."""
    path = tmp_path / "a.pac"
    partial = interrupt(path, 4)
    for name in ("000.ubj", "001.json"):
        (partial / "models" / name).write_bytes(b"cut")
    (partial / "models" / "002.json").unlink()
    (partial / "models" / "003.ubj").unlink()
    steps = []
    fit_small(path, progress=lambda done, *_: steps.append(done))
    assert steps == [0, 1, 2, 3, 4]
    assert model_files(path) == whole


def test_leftovers_of_killed_writers_do_not_stay(tmp_path):
    """Half-written files, also one with another draw of the secret, are no part of the artifact."""
    path = tmp_path / "a.pac"
    partial = interrupt(path)
    for name in ("secret.json", "models/003.ubj", "ledger.sqlite", "witness.jsonl"):
        (partial / f"{name}.0123456789abcdef.new").write_text("half")
    (partial / "ledger.sqlite").write_text("not finished")
    fit_small(path)
    assert not list(path.rglob("*.new"))
    with Deployment.open(path) as deployment:
        assert deployment.privacy()["queries"] == 0


@pytest.mark.parametrize(
    "failing", ["votes.npz", "secret.json", "manifest.json", "ledger", "witness", "rename"]
)
def test_interrupted_while_it_is_published(failing, whole, tmp_path, monkeypatch):
    """Stopped at any point of the last step, nothing looks finished, and the same fit finishes it."""
    path = tmp_path / "a.pac"
    partial = interrupt(path, 4)

    def fail(*_, **__):
        raise Interrupted

    def fail_at(path, *rest):
        if path.name == failing:
            fail()
        write_whole(path, *rest)

    places = {
        "ledger": "pacpredict.ledger.home.SqliteLedger",
        "witness": "pacpredict.ledger.witness.write_whole",
        "rename": "pathlib.Path.rename",
    }
    with monkeypatch.context() as patch:
        patch.setattr(
            places.get(failing, "pacpredict.artifact.workshop.write_whole"),
            fail if failing in places else fail_at,
        )
        with pytest.raises(Interrupted):
            fit_small(path)
    assert (partial / "manifest.json").exists() is (failing in {"ledger", "witness", "rename"})
    with pytest.raises(InvalidArtifact, match="was interrupted"):
        Artifact.open(path)
    models = stamps(partial)
    fit_small(path)
    assert stamps(path) == models
    assert model_files(path) == whole
    assert not partial.exists()
    with Deployment.open(path) as deployment:
        assert deployment.privacy()["queries"] == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"pool": mixed_pool(seed=5)}, "records_sha256"),
        ({"pool": mixed_pool(min_category=5)}, "schema"),
        ({"pool": mixed_pool(n_classes=3)}, "classes"),
        (
            {"learner": learner_named("xgboost", {"n_estimators": 6})},
            r"learner \(params \(.*n_estimators \(\d, now 6\)",
        ),
        ({"learner": small_learner("logistic")}, "learner"),
        ({"how": recipe(seed=2)}, r"recipe \(seed \(1, now 2\)\)"),
        ({"how": recipe(n_models=6)}, "recipe"),
        ({"how": recipe(total=2.0)}, "recipe"),
        ({"how": recipe(decode="map")}, r"recipe \(decode \('argmax', now 'map'\)\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_another_fit_does_not_go_on(change, named, whole, tmp_path):
    """A fit with other records or settings is refused, says what differs, and harms nothing."""
    path = tmp_path / "a.pac"
    partial = interrupt(path)
    before = stamps(partial)
    with pytest.raises(InvalidArtifact, match=rf"begun with another (.*, )?{named}.* remove the directory"):
        fit_small(path, **change)
    assert stamps(partial) == before
    fit_small(path)
    assert model_files(path) == whole


def test_other_versions_of_libraries_do_not_go_on(tmp_path, monkeypatch):
    """Models of two versions of a library are not mixed."""
    path = tmp_path / "a.pac"
    interrupt(path)
    monkeypatch.setattr("pacpredict.training.versions.version", lambda _: "0.0")
    with pytest.raises(InvalidArtifact, match="begun with another versions"):
        fit_small(path)


def test_two_fits_at_once(tmp_path):
    """While one fit writes, a second to the same place is refused; afterwards the place is taken."""
    path = tmp_path / "a.pac"
    first = Workshop(path, mixed_pool(), small_learner(), recipe())
    with first.open(), pytest.raises(InvalidArtifact, match="another fit is writing"):
        fit_small(path)
    fit_small(path)
    models = stamps(path)
    with pytest.raises(InvalidArtifact, match=r"a.pac exists already"):
        fit_small(path)
    assert stamps(path) == models


def test_a_fit_that_was_overtaken_does_not_write(tmp_path, monkeypatch):
    """A fit that waited for its turn finds the artifact finished and leaves it alone."""
    path = tmp_path / "a.pac"
    workshop = Workshop(path, mixed_pool(), small_learner(), recipe())
    lock = os.open

    def overtaken(*arguments):
        monkeypatch.undo()
        fit_small(path)
        (tmp_path / "a.pac.partial").mkdir()
        return lock(*arguments)

    monkeypatch.setattr(os, "open", overtaken)
    with pytest.raises(InvalidArtifact, match="exists already"), workshop.open():
        pytest.fail("it must not be opened")
    Artifact.open(path)


def test_errors_in_a_fit_are_not_taken_for_another_fit(tmp_path):
    """What goes wrong while the place is held is passed on as it is."""
    with (
        pytest.raises(BlockingIOError),
        Workshop(tmp_path / "a.pac", mixed_pool(), small_learner(), recipe()).open(),
    ):
        raise BlockingIOError


def test_a_fit_without_a_seed_goes_on_with_the_one_it_had(tmp_path):
    """Who gave no seed gets that of the interrupted fit, so that the same command goes on; elsewhere a new one."""
    path = tmp_path / "a.pac"
    assert settle_seed(path, 5) == 5
    assert settle_seed(path, None) != settle_seed(path, None)
    interrupt(path, how=recipe(seed=77))
    assert settle_seed(path, None) == 77
    assert settle_seed(tmp_path / "b.pac", None) != 77


def test_the_plan_is_what_the_manifest_says(tmp_path):
    """An artifact keeps the plan that it was begun with."""
    path = tmp_path / "a.pac"
    plan = json.loads((interrupt(path) / "plan.json").read_text())
    fit_small(path, source={"path": "x.csv"})
    manifest = json.loads((path / "manifest.json").read_text())
    assert {name: manifest[name] for name in plan} == plan
    assert manifest["source"] == {"path": "x.csv"}
    assert plan["recipe"]["budget"] == asdict(Budget(2.0**-8, 1.0))
