"""Trust, but train again: whether an artifact's models are what its recipe makes of its records."""

import numpy as np

from pacpredict.ensemble.artifact.artifact import Artifact, voter_of
from pacpredict.ensemble.artifact.workshop import library_versions
from pacpredict.ensemble.fit import Progress, no_progress
from pacpredict.ensemble.pool import Pool
from pacpredict.ensemble.train import check_parallel, train
from pacpredict.exceptions import InvalidArtifact, InvalidTable


def verify_models(
    artifact: Artifact,
    pool: Pool,
    n_models: int,
    *,
    n_jobs: int | None = None,
    progress: Progress = no_progress,
) -> list[int]:
    """Train models that are chosen at random again, and return which were found identical to the byte.

    Raises
    ------
    InvalidTable
        if these are not the records that the artifact was fitted on.
    InvalidArtifact
        if the subsets, a model or the packed votes are not what the recipe makes.
    """
    check_parallel(n_jobs, None)
    recipe = artifact.recipe
    same_columns = pool.schema == artifact.schema and pool.classes == artifact.classes
    if not same_columns or pool.digest() != artifact.manifest["records_sha256"]:
        raise InvalidTable(
            "these are not the records that the artifact was fitted on, or not in the same order"
        )
    subsets = recipe.subsets(len(pool))
    if not np.array_equal(subsets.packed, artifact.subsets.packed):
        raise InvalidArtifact("the artifact's subsets are not those that its seed draws")
    _check_votes(artifact)
    chosen = np.random.default_rng().permutation(recipe.n_models)[:n_models].tolist()
    learner, records = artifact.trainer(), artifact.records()
    progress(0, len(chosen))
    for done, (i, fitted) in enumerate(
        train(learner, pool, subsets, recipe.seed, chosen, n_jobs=n_jobs), start=1
    ):
        again = None if fitted.model is None else learner.dump(fitted.model)
        if again != artifact.model_bytes(i) or fitted.classes.tolist() != records[i]["classes"]:
            raise InvalidArtifact(f"model {i} is not what training it again makes{_other_versions(artifact)}")
        progress(done, len(chosen))
    return sorted(chosen)


def _check_votes(artifact: Artifact) -> None:
    """Pack the stored models again: the arrays that vote must be theirs."""
    n_classes = len(artifact.classes)
    again = voter_of(
        artifact.trainer(), artifact.path, artifact.recipe.n_models, n_classes, artifact.schema
    ).arrays()
    stored = artifact.ensemble().voter.arrays()
    if set(again) != set(stored) or any(again[name].tobytes() != stored[name].tobytes() for name in again):
        raise InvalidArtifact("the packed votes are not those of the stored models")


def _other_versions(artifact: Artifact) -> str:
    then, now = artifact.manifest["versions"], library_versions()
    other = [
        f"{name} {then.get(name)} then and {now.get(name)} now"
        for name in then
        if then.get(name) != now.get(name)
    ]
    return f"; versions differ, which can be the reason: {', '.join(other)}" if other else ""
