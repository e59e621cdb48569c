"""What an artifact is made of, and that nothing of it can be changed, missing, foreign or run unnoticed."""

import ast
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from artifacts import at_home, fit_small, rehash, save_with
from records import mixed_pool, recipe, small_learner
from sklearn.naive_bayes import GaussianNB

import pacpredict
from pacpredict.artifact.artifact import Artifact
from pacpredict.deployment import Deployment
from pacpredict.exceptions import ForeignLedger, InvalidArtifact, InvalidModel, UntrustedArtifact
from pacpredict.learners.registry import learner_for
from pacpredict.training.fit import fit

CONSTANT = [
    *(f"models/{i:03d}.{suffix}" for i in range(4) for suffix in ("ubj", "json")),
    *("votes.npz", "units.npy", "subsets.npy", "secret.json"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return fit_small(tmp_path_factory.mktemp("made") / "a.pac").path


@pytest.fixture
def home(made, tmp_path):
    """Return a copy of an artifact that a test may spoil."""
    return Path(shutil.copytree(made, tmp_path / "a.pac"))


def test_what_is_in_an_artifact(made):
    """An artifact has the files of its description and no others; the secret and the ledger are the owner's alone."""
    found = sorted(path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file())
    assert found == sorted([*CONSTANT, "manifest.json", "ledger.sqlite", "witness.jsonl"])
    manifest = json.loads((made / "manifest.json").read_text())
    assert sorted(manifest["files"]) == sorted(CONSTANT)
    assert manifest["versions"].keys() >= {"python", "pacpredict", "numpy", "scikit-learn", "xgboost"}
    for name in ("secret.json", "ledger.sqlite", "witness.jsonl"):
        assert (made / name).stat().st_mode & 0o777 == 0o600
    assert not made.with_name("a.pac.partial").exists()


def test_an_artifact_says_what_was_fitted(made):
    """Schema, classes, recipe, subsets and votes come back as they were."""
    artifact, pool = Artifact.open(made), mixed_pool()
    assert artifact.schema == pool.schema
    assert artifact.classes == pool.classes
    assert artifact.recipe == recipe()
    assert artifact.n_records == len(pool)
    assert np.array_equal(artifact.space.subsets.packed, recipe().subsets(pool.units).packed)
    fresh = fit(pool, small_learner(), recipe(), n_jobs=1)
    assert np.array_equal(artifact.ensemble().votes(pool.rows), fresh.ensemble.votes(pool.rows))


@pytest.mark.parametrize("name", CONSTANT)
@pytest.mark.parametrize(
    "damage", ["changed", "truncated", "longer", "missing", "linked", "replaced by a folder"]
)
def test_a_file_that_is_not_as_it_was_is_named(name, damage, home):
    """Whichever file is changed, cut, missing or not a plain file, opening is refused and the file named."""
    path = home / name
    data = path.read_bytes()
    path.unlink()
    if damage == "changed":
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "truncated":
        path.write_bytes(data[:-1])
    elif damage == "longer":
        path.write_bytes(data + b"\n")
    elif damage == "linked":
        elsewhere = home.with_name("elsewhere")
        elsewhere.write_bytes(data)
        path.symlink_to(elsewhere)
    elif damage == "replaced by a folder":
        path.mkdir()
    if damage != "missing" and path.is_file():
        path.chmod(0o600)
    with pytest.raises(InvalidArtifact, match=f"{name} .*(fit again|from a copy)"):
        Artifact.open(home)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(path.with_name("001.ubj").read_bytes()), "has changed"),
        (Path.unlink, "is missing"),
    ],
    ids=["another's", "missing"],
)
def test_a_model_that_is_read_later_is_still_checked(spoil, said, home):
    """Networks that do not fit into memory, and those of a lost actor, are read while the server runs."""
    artifact = Artifact.open(home)
    spoil(home / "models" / "000.ubj")
    for read in (lambda: artifact.model_bytes(0), lambda: artifact.voter_of_models(artifact.learner)):
        with pytest.raises(InvalidArtifact, match=rf"000\.ubj {said}"):
            read()


@pytest.mark.parametrize(
    "name", ["note.txt", "models/004.ubj", "models/.hidden", "deep/er/file", "plan.json"]
)
def test_a_file_that_does_not_belong_is_named(name, home):
    """A file that the manifest does not list is refused by its name, wherever it is."""
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text("{}")
    with pytest.raises(InvalidArtifact, match=f"{name} does not belong"):
        Artifact.open(home)


def test_a_dangling_link_is_a_file_that_does_not_belong(home):
    """A link to nothing is noticed, too."""
    (home / "link").symlink_to("nowhere")
    with pytest.raises(InvalidArtifact, match="link does not belong"):
        Artifact.open(home)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_secret_that_others_can_read_is_refused(mode, home):
    """Who may have read the secret is a question to ask before anything else is answered."""
    (home / "secret.json").chmod(mode)
    with pytest.raises(InvalidArtifact, match=r"secret.json can be read by others: chmod 600"):
        Artifact.open(home)


def test_somebody_elses_artifact_is_refused(home, monkeypatch):
    """Whoever is not allowed to read the secret is told so."""
    allowed = Path.open

    def denied(path, *arguments, **options):
        if path.name == "secret.json":
            raise PermissionError(13, "Permission denied")
        return allowed(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", denied)  # a mode would not stop a test that is run by root
    with pytest.raises(InvalidArtifact, match=r"secret.json cannot be read: only its owner"):
        Artifact.open(home)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text[: len(text) // 2], "manifest.json is not JSON"),
        (lambda text: "", "manifest.json is not JSON"),
        (lambda text: "[]", "manifest.json does not hold a JSON object"),
        (lambda text: "[" * 100_000, "manifest.json is not JSON"),
        (lambda text: "{}", "is not an artifact: its manifest.json is one of something else"),
        (lambda text: text.replace("pacpredict artifact", "something"), "is not an artifact"),
        (lambda text: text.replace('"files"', '"fields"'), "does not list its files"),
        (
            lambda text: json.dumps({**json.loads(text), "files": {"secret.json": 1, "subsets.npy": 2}}),
            "list",
        ),
        (
            lambda text: json.dumps({**json.loads(text), "files": {"secret.json": {}, "subsets.npy": {}}}),
            "list",
        ),
        (lambda text: text.replace('"bytes"', '"byte"'), "has changed since the fit"),
    ],
)
def test_a_damaged_manifest_is_refused(spoil, words, home):
    """A manifest that was cut, edited or written by another version is refused in words."""
    path = home / "manifest.json"
    path.write_text(spoil(path.read_text()))
    with pytest.raises(InvalidArtifact, match=words):
        Artifact.open(home)


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        *((part, part) for part in ("schema", "classes", "recipe", "learner", "n_records")),
        ("units", "space"),
        ("priors", "space"),
    ],
)
def test_a_manifest_without_a_part_is_refused(part, asked, home):
    """What a manifest lacks is named."""
    path = home / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest[part]
    path.write_text(json.dumps(manifest))
    with pytest.raises(InvalidArtifact, match=f"lacks '{part}'"):
        getattr(Artifact.open(home), asked)


@pytest.mark.parametrize(
    "edit",
    [
        lambda manifest: manifest["recipe"]["budget"].update(total=1.0),
        lambda manifest: manifest["recipe"].update(decode="map"),
        lambda manifest: manifest["classes"].reverse(),
        lambda manifest: manifest.update(created="2001-01-01T00:00:00+00:00"),
    ],
    ids=["budget", "decoder", "classes", "date"],
)
def test_an_edited_manifest_loses_its_ledger(edit, home):
    """The manifest is the deployment's identity: whoever edits it, to raise the budget say, gets no more answers."""
    path = home / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(ForeignLedger):
        Deployment.open(home)


def test_a_linked_manifest_is_refused(home):
    """The manifest must be in the artifact itself."""
    (home / "manifest.json").rename(home.with_name("elsewhere"))
    (home / "manifest.json").symlink_to(home.with_name("elsewhere"))
    with pytest.raises(InvalidArtifact, match=r"manifest.json is not a plain file"):
        Artifact.open(home)


def test_what_is_no_artifact(home, tmp_path):
    """Nothing, a file, an empty folder and an unfinished fit are told apart."""
    with pytest.raises(InvalidArtifact, match=r"there is no artifact .*: `pacpredict fit` makes one"):
        Artifact.open(tmp_path / "nothing")
    with pytest.raises(InvalidArtifact, match="there is no artifact"):
        Artifact.open(home / "manifest.json")
    with pytest.raises(InvalidArtifact, match=r"models is not an artifact: it has no manifest.json"):
        Artifact.open(home / "models")
    (tmp_path / "b.pac.partial").mkdir()
    with pytest.raises(InvalidArtifact, match=r"the fit of .*b.pac was interrupted: run the same fit again"):
        Artifact.open(tmp_path / "b.pac")


def test_from_within(tmp_path, monkeypatch):
    """An artifact can be opened from within its own folder, and from anywhere after it was renamed."""
    made = fit_small(tmp_path / "a.pac")
    monkeypatch.chdir(made.path)
    with Deployment.open(".") as deployment:
        assert deployment.artifact.identity == made.identity
    moved = made.path.rename(made.path.with_name("moved.pac"))
    with Deployment.open(moved) as deployment:
        assert deployment.curator.ensemble.n_models == 4


def test_nothing_but_the_secrets_file_depends_on_the_secret(tmp_path):
    """Saved with each possible secret, everything else is the same: names, sizes, bytes, manifest, descriptions."""
    fitted = fit(mixed_pool(), small_learner(), recipe(), n_jobs=1)
    seen = []
    for index in range(4):
        path = tmp_path / str(index) / "a.pac"
        deployment = save_with(path, fitted, index)
        artifact = deployment.artifact
        assert artifact.secret().reveal() == index
        manifest = json.loads((path / "manifest.json").read_text())
        secret = manifest["files"]["secret.json"].pop("sha256")
        assert secret not in str(seen)
        files = {name: (path / name).read_bytes() for name in CONSTANT if name != "secret.json"}
        facts = {**deployment.describe(), "identity": "", "created": manifest.pop("created")}
        shown = f"{artifact!r} {deployment!r}".replace(str(path), "").replace(artifact.identity, "")
        size = (path / "secret.json").stat().st_size
        seen.append(
            {**facts, "created": "", "manifest": manifest, "files": files, "repr": shown, "size": size}
        )
    assert all(one == seen[0] for one in seen)


def test_the_hash_of_the_secrets_file_tells_nothing(tmp_path):
    """The file has a random part: the same secret never has the same hash in the manifest."""
    fitted = fit(mixed_pool(40), small_learner("decision-tree"), recipe(), n_jobs=1)
    digests = set()
    for attempt in range(3):
        save_with(tmp_path / str(attempt), fitted, 2)
        manifest = json.loads((tmp_path / str(attempt) / "manifest.json").read_text())
        digests.add(manifest["files"]["secret.json"]["sha256"])
    assert len(digests) == 3


@pytest.mark.parametrize(
    "stored",
    [
        {"model": "number 86753"},
        {"model": "086753"},
        {"model": "086753", "salt": "867530ab" * 8},  # one of four models it is not
        {"model": "000003", "salt": "867530ab" * 7},
        {"model": "000003", "salt": "no 86753"},
        {"model": "000003", "salt": 86753},
        {"salt": "867530ab" * 8},
        ["86753"],
    ],
)
def test_a_damaged_secret_is_not_shown(stored, home):
    """What is wrong with the file of the secret is not said in the error, nor in what caused it."""
    (home / "secret.json").write_text(json.dumps(stored))
    rehash(home)
    with pytest.raises(InvalidArtifact, match=r"secret.json (is damaged|does not hold)") as caught:
        Artifact.open(home).secret()
    assert "86753" not in at_home(caught).replace(str(home), "")


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def bombs(path):
    return np.array([Bomb(path)], dtype=object)


@pytest.mark.parametrize("learner", ["xgboost", "random-forest", "logistic"])
def test_no_pickle_is_loaded_from_votes(learner, tmp_path):
    """A pickle in the packed votes, in a file that the manifest vouches for, is refused and not run."""
    home, mark = tmp_path / "a.pac", tmp_path / "ran"
    fit_small(home, learner=small_learner(learner))
    arrays = dict(np.load(home / "votes.npz"))
    np.savez(home / "votes.npz", **{**arrays, next(iter(arrays)): bombs(mark)})
    rehash(home)
    with pytest.raises(InvalidModel, match="not an npz file of plain arrays"):
        Artifact.open(home).ensemble()
    assert not mark.exists()


@pytest.mark.parametrize("name", ["subsets.npy", "units.npy"])
def test_no_pickle_is_loaded_from_subsets(name, home, tmp_path):
    """Neither is one in the subsets or the units."""
    np.save(home / name, bombs(tmp_path / "ran"))
    rehash(home)
    with pytest.raises(InvalidArtifact, match=rf"{name} is damaged"):
        _ = Artifact.open(home).space
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("learner", ["random-forest", "logistic"])
def test_no_pickle_is_loaded_from_a_model(learner, tmp_path):
    """Neither is one in the file of a single model."""
    stream, mark = io.BytesIO(), tmp_path / "ran"
    np.savez(stream, weights=bombs(mark), biases=bombs(mark))
    with pytest.raises(InvalidModel, match="plain arrays"):
        small_learner(learner).load(stream.getvalue())
    assert not mark.exists()


def test_the_bombs_of_these_tests_go_off(tmp_path):
    """Where pickles are allowed, the file appears: the tests above prove something."""
    np.save(tmp_path / "bomb.npy", bombs(tmp_path / "ran"))
    np.load(tmp_path / "bomb.npy", allow_pickle=True)
    assert (tmp_path / "ran").exists()


def test_no_module_unpickles():
    """No module imports a library of pickles, asks NumPy to allow them, or loads with joblib."""
    for path in Path(pacpredict.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Attribute):
                names = [ast.unparse(node)]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"np.load", "numpy.load"}:
                assert "allow_pickle=False" in ast.unparse(node), path
            roots = {name.split(".")[0] for name in names}
            assert not roots & {"pickle", "cloudpickle", "dill", "marshal", "shelve"}, path
            assert not {"joblib.load", "pd.read_pickle", "pandas.read_pickle"} & set(names), path


def test_skops_needs_trust(tmp_path):
    """Models that skops stored are loaded only if the owner says that the artifact is his own."""
    home = tmp_path / "a.pac"
    pool = mixed_pool(60)
    made = fit_small(home, pool, learner_for(GaussianNB()))
    assert (home / "models" / "000.skops").exists()
    with pytest.raises(UntrustedArtifact, match=r"--trust, or trust=True"):
        Artifact.open(home).ensemble()
    with pytest.raises(UntrustedArtifact):
        Artifact.open(home).trainer()
    votes = Artifact.open(home, trust=True).ensemble().votes(pool.rows)
    assert np.array_equal(votes, made.ensemble().votes(pool.rows))
