"""Where an artifact is made: a directory beside it, which becomes the artifact in one rename when all is done.

A fit that was killed leaves `NAME.partial` with the models that were finished; the same fit goes on from there.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict import npz
from pacpredict.artifact.artifact import (
    CHANGING,
    FILES,
    FORMAT,
    MANIFEST,
    SECRET,
    SUBSETS,
    UNITS,
    VERSION,
    VOTES,
    files_below,
    model_name,
    partial_of,
    record_name,
)
from pacpredict.evaluation.contested import measure_contested
from pacpredict.exceptions import InvalidArtifact
from pacpredict.files import (
    DRAFT_SUFFIX,
    PRIVATE,
    as_json,
    read_json,
    sha256_of,
    sync_directory,
    write_whole,
)
from pacpredict.learners.learner import Learner, Voter
from pacpredict.mechanism.secret import Secret
from pacpredict.show import show
from pacpredict.training.block import Fitted
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.training.space import Space
from pacpredict.training.versions import library_versions

_PLAN = "plan.json"  # does not stay


class Workshop:
    """An artifact in the making; use it in a `with`, which keeps other fits out."""

    def __init__(self, path: str | Path, pool: Pool, learner: Learner, recipe: Recipe) -> None:
        self.path = Path(path)
        self.partial = partial_of(self.path)
        self.training = self.partial / "training"  # journals of models; does not stay
        self.pool, self.learner, self.recipe = pool, learner, recipe

    @contextmanager
    def open(self) -> Iterator["Workshop"]:
        self._check_is_new()
        (self.partial / "models").mkdir(parents=True, exist_ok=True)
        with _locked(self.partial):
            self._check_is_new()  # another fit may have given the directory its name just now
            for draft in self.partial.rglob(f"*{DRAFT_SUFFIX}"):  # of a fit that was killed
                draft.unlink()
            self._settle_plan()
            self._keep_files()
            yield self

    def done(self) -> set[int]:
        """Return which models are on disk, whole."""
        return {i for i in range(self.recipe.n_models) if self._is_whole(i)}

    def put(self, i: int, fitted: Fitted) -> None:
        """Keep a model: its file first, then the record that makes it count."""
        name, digest = None, None
        if fitted.model is not None:
            name, data = model_name(i, self.learner.suffix), self.learner.dump(fitted.model)
            write_whole(self.partial / name, data)
            digest = hashlib.sha256(data).hexdigest()
        record = {
            "file": name,
            "sha256": digest,
            "classes": fitted.classes.tolist(),
            "notes": fitted.notes,
            "cpu_seconds": fitted.cpu_seconds,
        }
        write_whole(self.partial / record_name(i), as_json(record))

    def complete(self, voter: Voter, space: Space, secret: Secret, source: Mapping[str, Any] | None) -> str:
        """Write all that an artifact needs; returns the deployment's identity."""
        home = self.partial
        if packed := voter.arrays():
            write_whole(home / VOTES, npz.to_bytes(packed))
        write_whole(home / UNITS, _npy(space.units.of_record.astype("<i4")))
        write_whole(home / SUBSETS, _npy(space.subsets.packed))
        write_whole(home / SECRET, _secret_bytes(secret), PRIVATE)
        for path in home.iterdir():  # of an attempt that was killed here: nothing was answered from it
            if CHANGING.fullmatch(path.name):
                path.unlink()
        contested = measure_contested(self.pool, self.learner, voter, space.subsets, self.recipe.seed)
        measured = {"priors": dict(space.priors), "contested": contested and contested._asdict()}
        manifest = as_json({**self._manifest(source), **measured})
        write_whole(home / MANIFEST, manifest)
        return hashlib.sha256(manifest).hexdigest()

    def publish(self) -> None:
        """Give the artifact its name: from now on it is there, whole."""
        (self.partial / _PLAN).unlink()
        self.partial.rename(self.path)
        sync_directory(self.path.parent)

    def _manifest(self, source: Mapping[str, Any] | None) -> dict[str, Any]:
        home = self.partial
        files = {
            name: {"bytes": (home / name).stat().st_size, "sha256": sha256_of(home / name)}
            for name in files_below(home)
            if name != _PLAN
        }
        return {
            "format": FORMAT,
            "version": VERSION,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "source": source,
            **self._plan(),
            "files": files,
        }

    def _plan(self) -> dict[str, Any]:
        """Describe what is made: the same plan makes the same models."""
        units = self.pool.units
        return {
            "recipe": self.recipe.to_json(),
            "learner": self.learner.config(),
            "schema": self.pool.schema.to_json(),
            "classes": self.pool.classes.to_json(),
            "n_records": len(self.pool),
            "records_sha256": self.pool.digest(),
            "units": {"kind": units.kind, "count": units.count, "sha256": units.digest()},
            "versions": library_versions(self.learner),
        }

    def _check_is_new(self) -> None:
        if self.path.exists():
            raise InvalidArtifact(
                f"{self.path} exists already: open it to go on with it. Another fit is a further deployment, with a "
                "secret and a budget of its own, and needs another name"
            )

    def _settle_plan(self) -> None:
        """Go on only with the fit that was begun here."""
        plan = as_json(self._plan())
        if begun := begun_plan(self.path):
            now = json.loads(plan)
            differing = list(_differences({name: begun.get(name) for name in now}, now))
            if differing:
                raise InvalidArtifact(
                    f"{self.partial} was begun with another {', '.join(differing)}: run that fit again to finish it, "
                    "or remove the directory to begin anew"
                )
        write_whole(self.partial / _PLAN, plan)

    def _keep_files(self) -> None:
        for name, path in self.learner.files().items():
            kept = self.partial / FILES / name
            if not kept.exists():
                kept.parent.mkdir(parents=True, exist_ok=True)
                write_whole(kept, path.read_bytes())

    def _is_whole(self, i: int) -> bool:
        with suppress(FileNotFoundError, InvalidArtifact, KeyError):
            record = read_json(self.partial / record_name(i))
            return record["file"] is None or sha256_of(self.partial / record["file"]) == record["sha256"]
        return False


def deployments_beside(path: str | Path, pool: Pool, source: Mapping[str, Any] | None = None) -> list[str]:
    """Return the names of artifacts in the same folder that were fitted on the same file, records or persons."""
    names = []
    for manifest in sorted(Path(path).absolute().parent.glob(f"*/{MANIFEST}")):
        with suppress(InvalidArtifact, OSError):
            if manifest.parent != partial_of(Path(path)) and _is_of_same(
                read_json(manifest), pool, source or {}
            ):
                names.append(manifest.parent.name)
    return names


def _differences(begun: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield what differs by name and, where that is a single setting, as it was and is."""
    for name in sorted({*begun, *now}):
        then, here = begun.get(name), now.get(name)
        if then == here:
            continue
        if isinstance(then, dict) and isinstance(here, dict):
            yield f"{name} ({', '.join(_differences(then, here))})"
        elif isinstance(then, list | dict) or isinstance(here, list | dict) or name.endswith("sha256"):
            yield name
        else:
            yield f"{name} ({show(then)}, now {show(here)})"


def _is_of_same(manifest: Mapping[str, Any], pool: Pool, source: Mapping[str, Any]) -> bool:
    """Tell whether a fit was on the same records, also if it took another target or other columns of these."""
    theirs, units = manifest.get("source") or {}, pool.units
    same_file = any(key in source and theirs.get(key) == source[key] for key in ("path", "sha256"))
    if same_file or manifest.get("records_sha256") == pool.digest():
        return True
    # Which rows are of one person is as good as a fingerprint of the table, but not where each is of another one.
    of_units = manifest.get("units") or {}
    tells = units.kind == "person" and units.count < len(pool) == manifest.get("n_records")
    return tells and of_units.get("kind") == "person" and of_units.get("sha256") == units.digest()


def begun_plan(path: str | Path) -> dict[str, Any] | None:
    """Return the plan of a fit to this path that was interrupted; the manifest holds it too, once it is written."""
    for name in (_PLAN, MANIFEST):
        if (found := partial_of(Path(path)) / name).exists():
            return read_json(found)
    return None


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other fits out. The directory itself is locked: it stays the same one when it gets another name."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise InvalidArtifact(f"another fit is writing {directory}: wait for it to end") from problem
        yield
    finally:
        os.close(handle)


def _npy(array: npt.NDArray[Any]) -> bytes:
    stream = BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def _secret_bytes(secret: Secret) -> bytes:
    """Return the secret's file: of one length whatever it is, and with a random part.

    The manifest lists the SHA-256 of this file; without the random part, trying all models would find the secret.
    """
    return as_json({"model": f"{secret.reveal():06d}", "salt": secret.reveal_salt().hex()})
