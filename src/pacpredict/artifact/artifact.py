"""The artifact: a directory with m models, their subsets and the secret, every file of it accounted for.

    census.pac/
      manifest.json      what it is, and the SHA-256 of every file below; its own SHA-256 is the deployment's identity
      models/000.ubj     one model in a format of plain data (see the learner), and
      models/000.json    the classes that its subset had, the settings that were chosen, the time that it took
      votes.npz          all models packed together, if the learner can
      files/             what all models need, such as the extractor of their features
      units.npy          of each record the number of its unit: a person, or a group of identical records
      subsets.npy        which unit is in which subset, one bit each
      secret.json        which subset is the training set; only the owner of the file can read it
      ledger.sqlite      what was asked and answered; it changes, so it has a hash chain of its own
      witness.jsonl      where the ledger is and how far it has come, noted before each answer

No file is ever unpickled.
"""

import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict import npz
from pacpredict.core.attacks import QUESTIONS
from pacpredict.core.vote_rule import VoteRule
from pacpredict.evaluation.contested import Contested
from pacpredict.exceptions import InvalidArtifact, InvalidInput, UntrustedArtifact
from pacpredict.files import read_json, sha256_of
from pacpredict.learners.learner import Learner, Voter
from pacpredict.learners.registry import learner_of_config
from pacpredict.mechanism.secret import Secret
from pacpredict.rows.infer import schema_from_json
from pacpredict.rows.kind import AnySchema
from pacpredict.show import explain_format
from pacpredict.tables.classes import Classes
from pacpredict.tables.schema import Schema
from pacpredict.training.cluster import Cluster
from pacpredict.training.ensemble import Ensemble
from pacpredict.training.recipe import Recipe
from pacpredict.training.space import Space
from pacpredict.training.spread import Spread, Stored
from pacpredict.training.subsets import Subsets
from pacpredict.training.units import Units

FORMAT = "pacpredict artifact"
# Raise it with every change of what the files hold, those of the ledger included. No earlier format is read.
VERSION = 3
MANIFEST, VOTES, SECRET = "manifest.json", "votes.npz", "secret.json"
UNITS, SUBSETS = "units.npy", "subsets.npy"
FILES = "files"  # a folder
LEDGER, WITNESS = "ledger.sqlite", "witness.jsonl"
# Files that change while a deployment lives, and what SQLite, or a process that was killed, has beside them.
CHANGING = re.compile(
    rf"({'|'.join(map(re.escape, (LEDGER, WITNESS)))})(\.[0-9a-f]+\.new|\.restored)?(-wal|-shm|-journal)?"
)
_OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, eq=False)
class Artifact:
    """A finished artifact whose files have been checked."""

    path: Path
    manifest: Mapping[str, Any] = field(repr=False)
    identity: str  # SHA-256 of the manifest, and through it of everything that does not change
    trust: bool = False
    blind: bool = False

    @classmethod
    def open(cls, path: str | Path, *, trust: bool = False, blind: bool = False) -> "Artifact":
        """Check every file and return the artifact; nothing is loaded that could run code unless `trust` says so.

        With `blind` the file of the secret is not read, and need not be there: for whoever only looks at models and
        subsets.
        """
        home = Path(path)
        _check_is_artifact(home)
        manifest = read_json(home / MANIFEST)
        _check_format(home, manifest)
        _check_files(home, manifest.get("files"), {SECRET} if blind else set())
        if not blind:
            _check_private(home / SECRET)
        return cls(home, manifest, sha256_of(home / MANIFEST), trust, blind)

    @cached_property
    def schema(self) -> AnySchema:
        schema = schema_from_json(self._part("schema"))
        if not isinstance(schema, Schema):
            return schema
        # What was declared to mean missing means it in every query, by whichever way it comes.
        codes = (self.manifest.get("source") or {}).get("missing", ())
        return replace(schema, missing=tuple(codes))

    @cached_property
    def classes(self) -> Classes:
        return Classes.from_json(self._part("classes"))

    @cached_property
    def recipe(self) -> Recipe:
        return Recipe.from_json(self._part("recipe"))

    @cached_property
    def learner(self) -> Learner:
        return learner_of_config(self._part("learner")).located(self.path / FILES)

    def trainer(self) -> Learner:
        """Return the learner, able to train again."""
        self._check_trust()
        return self.learner.trainer(self.model_bytes(i) for i in range(self.recipe.n_models))

    @property
    def n_records(self) -> int:
        return int(self._part("n_records"))

    @property
    def contested(self) -> Contested | None:
        """On which share of new queries the models will differ; None if nobody has measured it."""
        stored = self.manifest.get("contested")
        return None if stored is None else Contested(**stored)

    @cached_property
    def space(self) -> Space:
        about, priors = self._part("units"), self._part("priors")
        of_record = self._array(UNITS)
        if of_record.shape != (self.n_records,) or of_record.dtype.kind != "i":
            raise InvalidArtifact(f"{self.path / UNITS} is damaged: it does not hold a unit for each record")
        try:
            units, counted = Units(of_record.astype(np.int64), about["kind"]), _priors(priors)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise InvalidArtifact(
                f"the units or priors of {self.path} cannot be read: {problem}"
            ) from problem
        return Space(units, self._subsets(units.count), lambda: counted)

    def _subsets(self, n_units: int) -> Subsets:
        try:
            return Subsets(self.recipe.n_models, n_units, self._array(SUBSETS))
        except ValueError as problem:
            raise InvalidArtifact(f"{self.path / SUBSETS} is damaged: {problem}") from problem

    def _array(self, name: str) -> npt.NDArray[Any]:
        try:
            return np.asarray(np.load(self.path / name, allow_pickle=False))
        except (ValueError, EOFError) as problem:
            raise InvalidArtifact(f"{self.path / name} is damaged: {problem}") from problem

    def secret(self) -> Secret:
        """Read the secret; it stays hidden in the object."""
        if self.blind:
            raise InvalidArtifact("this artifact was opened without its secret")
        try:
            stored = read_json(self.path / SECRET)
            return Secret(int(stored["model"]), self.recipe.n_models, bytes.fromhex(stored["salt"]))
        except (KeyError, ValueError, TypeError, InvalidInput):
            # Without its cause, which would show what is in the file.
            raise InvalidArtifact(f"{self.path / SECRET} is damaged") from None

    def ensemble(self, cluster: Cluster | None = None, rule: VoteRule | None = None) -> Ensemble:
        """Load the models, ready to vote, here or on the nodes of a cluster; by another rule than the recipe's."""
        self._check_trust()
        voter = self._voter() if cluster is None else Spread(cluster, self._stored())
        recipe = self.recipe
        return Ensemble(
            self.schema, self.classes, self.learner, voter, recipe.n_models, self.space, rule or recipe.votes
        )

    def records(self) -> list[dict[str, Any]]:
        """Return what was written down about each model."""
        return read_records(self.path, self.recipe.n_models)

    def model_bytes(self, i: int) -> bytes | None:
        """Return the file of model i, None if its subset had one class only."""
        name = json.loads(self._read(record_name(i)))["file"]
        return None if name is None else self._read(name)

    def _voter(self) -> Voter:
        if (self.path / VOTES).exists():
            return self.learner.restore(npz.from_bytes((self.path / VOTES).read_bytes()))
        return self.voter_of_models(self.learner)

    def voter_of_models(self, learner: Learner) -> Voter:
        """Put the models together, one file after another."""
        return voter_of(learner, self.records(), self._read, len(self.classes), self.schema)

    def _read(self, name: str) -> bytes:
        """Return a file as it was when all were checked: a server reads models whenever it needs them."""
        path = self.path / name
        try:
            data = path.read_bytes()
        except FileNotFoundError as problem:
            raise InvalidArtifact(f"{path} is missing: restore the artifact from a copy") from problem
        if hashlib.sha256(data).hexdigest() != self._part("files")[name]["sha256"]:
            raise InvalidArtifact(f"{path} has changed since the fit: restore the artifact from a copy")
        return data

    def _stored(self) -> Stored:
        records, n_models = self.records(), self.recipe.n_models
        listed = self._part("files")
        return Stored(
            self.learner.config(),
            OnDemand(n_models, self.model_bytes),
            [0 if (file := record["file"]) is None else int(listed[file]["bytes"]) for record in records],
            [np.array(record["classes"], np.int64) for record in records],
            len(self.classes),
            self.schema,
        )

    def _check_trust(self) -> None:
        if self.learner.needs_trust and not self.trust:
            raise UntrustedArtifact(
                f"{self.path} can name code to run when it is loaded, in {self.learner.suffix} files or as a function "
                "of features; if you made this artifact yourself, say so: --trust, or trust=True"
            )

    def _part(self, name: str) -> Any:
        if name not in self.manifest:
            raise InvalidArtifact(f"{self.path / MANIFEST} lacks {name!r}: it is damaged or was edited")
        return self.manifest[name]


def _priors(stored: Mapping[str, float]) -> dict[str, float]:
    if stored.keys() != QUESTIONS.keys() or not all(0 < float(prior) <= 1 for prior in stored.values()):
        raise ValueError("the manifest does not have a prior for each attack")
    return {attack: float(stored[attack]) for attack in QUESTIONS}


def read_records(home: Path, n_models: int) -> list[dict[str, Any]]:
    """Return what was written down about each model of a directory."""
    return [read_json(home / record_name(i)) for i in range(n_models)]


def voter_of(
    learner: Learner,
    records: Sequence[Mapping[str, Any]],
    read: Callable[[str], bytes],
    n_classes: int,
    schema: AnySchema,
) -> Voter:
    """Put models together that were written down; `read` returns a file by its name."""

    def load(i: int) -> Any:
        file = records[i]["file"]
        return None if file is None else learner.load(read(file))

    models = OnDemand(len(records), load)
    classes = [np.array(record["classes"], np.int64) for record in records]
    return learner.voter(models, classes, n_classes, schema)


class OnDemand(Sequence[Any]):
    """Models that are read whenever they are looked at: whoever takes them decides which stay in memory."""

    def __init__(self, n_models: int, read: Callable[[int], Any]) -> None:
        self._n_models, self._read = n_models, read

    def __len__(self) -> int:
        return self._n_models

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < self._n_models:
            raise IndexError(i)
        return self._read(i)


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


def _check_format(home: Path, manifest: Mapping[str, Any]) -> None:
    if manifest.get("format") != FORMAT:
        raise InvalidArtifact(f"{home} is not an artifact: its {MANIFEST} is one of something else")
    if type(version := manifest.get("version")) is not int or version != VERSION:
        raise InvalidArtifact(explain_format(f"the artifact {home}", version, VERSION))


def _check_files(home: Path, listed: Any, unread: set[str]) -> None:
    is_list = isinstance(listed, dict) and all(isinstance(about, dict) for about in listed.values())
    if not is_list or not listed.keys() >= {SECRET, SUBSETS, UNITS}:
        raise InvalidArtifact(f"{home / MANIFEST} does not list its files: it is damaged or was edited")
    found = set(files_below(home))
    for name in sorted((set(listed) | found) - unread):
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
