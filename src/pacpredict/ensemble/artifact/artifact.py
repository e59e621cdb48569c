"""The artifact: a directory with m models, their subsets and the secret, every file of it accounted for.

    census.pac/
      manifest.json      what it is, and the SHA-256 of every file below; its own SHA-256 is the deployment's identity
      models/000.ubj     one model in a format of plain data (see the learner), and
      models/000.json    the classes that its subset had, the settings that were chosen, the time that it took
      votes.npz          all models packed together, if the learner can
      subsets.npy        which record is in which subset, one bit each
      secret.json        which subset is the training set; only the owner of the file can read it
      ledger.sqlite      what was asked and answered; it changes, so it has a hash chain of its own
      witness.json       where the ledger is and how far it was when last seen

No file is ever unpickled.
"""

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from pacpredict.ensemble import arrays as npz
from pacpredict.ensemble.artifact.files import read_json, sha256_of
from pacpredict.ensemble.ensemble import Ensemble
from pacpredict.ensemble.learners.anything import EstimatorLearner
from pacpredict.ensemble.learners.learner import Learner, Voter
from pacpredict.ensemble.learners.registry import learner_of_config
from pacpredict.ensemble.recipe import Recipe
from pacpredict.ensemble.subsets import Subsets
from pacpredict.ensemble.tables.classes import Classes
from pacpredict.ensemble.tables.schema import Schema
from pacpredict.exceptions import InvalidArtifact, InvalidInput, UntrustedArtifact
from pacpredict.mechanism.secret import Secret

FORMAT, VERSION = "pacpredict artifact", 1
MANIFEST, VOTES, SUBSETS, SECRET = "manifest.json", "votes.npz", "subsets.npy", "secret.json"
LEDGER, WITNESS = "ledger.sqlite", "witness.json"
# Files that change while a deployment lives, and what SQLite, or a process that was killed, has beside them.
CHANGING = re.compile(rf"({re.escape(LEDGER)}|{re.escape(WITNESS)})(\.[0-9a-f]+\.new)?(-wal|-shm|-journal)?")
_OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, eq=False)
class Artifact:
    """A finished artifact whose files have been checked."""

    path: Path
    manifest: Mapping[str, Any] = field(repr=False)
    identity: str  # SHA-256 of the manifest, and through it of everything that does not change
    trust: bool = False

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False) -> "Artifact":
        """Check every file and return the artifact; nothing is loaded that could run code unless `trust` says so."""
        home = Path(path)
        _check_is_artifact(home)
        manifest = read_json(home / MANIFEST)
        if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
            raise InvalidArtifact(
                f"{home / MANIFEST} is of format {manifest.get('format')!r} version {manifest.get('version')!r}; "
                f"this pacpredict reads {FORMAT!r} version {VERSION}"
            )
        _check_files(home, manifest.get("files"))
        _check_private(home / SECRET)
        return cls(home, manifest, sha256_of(home / MANIFEST), trust)

    @cached_property
    def schema(self) -> Schema:
        return Schema.from_json(self._part("schema"))

    @cached_property
    def classes(self) -> Classes:
        return Classes.from_json(self._part("classes"))

    @cached_property
    def recipe(self) -> Recipe:
        return Recipe.from_json(self._part("recipe"))

    @cached_property
    def learner(self) -> Learner:
        return learner_of_config(self._part("learner"))

    def trainer(self) -> Learner:
        """Return the learner, able to train again: a user's own estimator is taken from a stored model."""
        stored = (self.model_bytes(i) for i in range(self.recipe.n_models))
        if isinstance(self.learner, EstimatorLearner):
            self._check_trust()
            fitted = self.learner.load(next(data for data in stored if data is not None))
            return EstimatorLearner(clone(fitted), takes_frames=self.learner.takes_frames)
        return self.learner

    @property
    def n_records(self) -> int:
        return int(self._part("n_records"))

    @cached_property
    def subsets(self) -> Subsets:
        try:
            packed = np.load(self.path / SUBSETS, allow_pickle=False)
            return Subsets(self.recipe.n_models, self.n_records, packed)
        except (ValueError, EOFError) as problem:
            raise InvalidArtifact(
                f"{self.path / SUBSETS} does not hold these subsets: {problem}"
            ) from problem

    def secret(self) -> Secret:
        """Read the secret; it stays hidden in the object."""
        try:
            index = int(read_json(self.path / SECRET)["model"])
            return Secret(index, self.recipe.n_models)
        except (KeyError, ValueError, TypeError, InvalidInput):
            # Without its cause, which would show what is in the file.
            raise InvalidArtifact(f"{self.path / SECRET} is damaged") from None

    def ensemble(self) -> Ensemble:
        """Load the models, ready to vote."""
        return Ensemble(self.schema, self.classes, self.learner, self._voter(), self.recipe.n_models)

    def records(self) -> list[dict[str, Any]]:
        """Return what was written down about each model."""
        return [read_json(self.path / record_name(i)) for i in range(self.recipe.n_models)]

    def model_bytes(self, i: int) -> bytes | None:
        """Return the file of model i, None if its subset had one class only."""
        name = read_json(self.path / record_name(i))["file"]
        return None if name is None else (self.path / name).read_bytes()

    def _voter(self) -> Voter:
        self._check_trust()
        if (self.path / VOTES).exists():
            return self.learner.restore(npz.from_bytes((self.path / VOTES).read_bytes()))
        return voter_of(self.learner, self.path, self.recipe.n_models, len(self.classes), self.schema)

    def _check_trust(self) -> None:
        if self.learner.needs_trust and not self.trust:
            raise UntrustedArtifact(
                f"the models of {self.path} are stored by skops, whose files can name code to run when they are "
                "loaded; if you made this artifact yourself, say so: --trust, or trust=True"
            )

    def _part(self, name: str) -> Any:
        if name not in self.manifest:
            raise InvalidArtifact(f"{self.path / MANIFEST} lacks {name!r}: it is damaged or was edited")
        return self.manifest[name]


def voter_of(learner: Learner, home: Path, n_models: int, n_classes: int, schema: Schema) -> Voter:
    """Put the models of a directory together."""
    records = [read_json(home / record_name(i)) for i in range(n_models)]
    models = [
        None if record["file"] is None else learner.load((home / record["file"]).read_bytes())
        for record in records
    ]
    classes = [np.array(record["classes"], np.int64) for record in records]
    return learner.voter(models, classes, n_classes, schema)


def partial_of(path: Path) -> Path:
    """Return where the artifact of this name is made."""
    return path.parent / f"{path.name}.partial"


def record_name(i: int) -> str:
    return f"models/{i:03d}.json"


def model_name(i: int, suffix: str) -> str:
    return f"models/{i:03d}.{suffix}"


def files_below(home: Path) -> Iterator[str]:
    """Yield the names of all files that belong to an artifact for good."""
    for path in sorted(home.rglob("*")):
        name = path.relative_to(home).as_posix()
        if not CHANGING.fullmatch(name) and name != MANIFEST and (path.is_symlink() or not path.is_dir()):
            yield name


def _check_is_artifact(home: Path) -> None:
    if not home.exists() and partial_of(home).exists():
        raise InvalidArtifact(
            f"the fit of {home} was interrupted: run the same fit again, it trains what is missing"
        )
    if not home.is_dir():
        raise InvalidArtifact(f"there is no artifact {home}: `pacpredict fit` makes one")
    if not (home / MANIFEST).exists():
        raise InvalidArtifact(f"{home} is not an artifact: it has no {MANIFEST}")
    _check_is_plain(home / MANIFEST)


def _check_files(home: Path, listed: Any) -> None:
    is_list = isinstance(listed, dict) and all(isinstance(about, dict) for about in listed.values())
    if not is_list or SECRET not in listed or SUBSETS not in listed:
        raise InvalidArtifact(f"{home / MANIFEST} does not list its files: it is damaged or was edited")
    found = set(files_below(home))
    for name in sorted(set(listed) | found):
        path = home / name
        if name not in found:
            raise InvalidArtifact(f"{path} is missing: restore the artifact from a copy, or fit again")
        if name not in listed:
            raise InvalidArtifact(f"{path} does not belong to this artifact: remove it")
        _check_is_plain(path)
        about = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        if listed[name] != about:
            raise InvalidArtifact(f"{path} has changed since the fit: restore the artifact from a copy")


def _check_is_plain(path: Path) -> None:
    if path.is_symlink() or not path.is_file():
        raise InvalidArtifact(f"{path} is not a plain file: restore the artifact from a copy")


def _check_private(path: Path) -> None:
    if path.stat().st_mode & _OTHERS_MAY:
        raise InvalidArtifact(f"{path} can be read by others: chmod 600 it, and ask who may have read it")
