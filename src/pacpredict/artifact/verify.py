"""Trust, but train again: whether an artifact's models are what its recipe makes of its records."""

import numpy as np

from pacpredict.artifact.artifact import Artifact
from pacpredict.exceptions import InvalidArtifact, InvalidTable
from pacpredict.training.fit import Progress, no_progress
from pacpredict.training.pool import Pool
from pacpredict.training.space import Space
from pacpredict.training.train import check_training, train
from pacpredict.training.versions import library_versions


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
        if the subsets, the priors, a model or the packed votes are not what the recipe makes.
    """
    learner, recipe = artifact.trainer(), artifact.recipe
    check_training(learner, pool, n_jobs)
    same_columns = pool.schema == artifact.schema and pool.classes == artifact.classes
    if not same_columns or pool.digest() != artifact.manifest["records_sha256"]:
        raise InvalidTable(
            "these are not the records that the artifact was fitted on, or not in the same order"
        )
    _check_units(artifact, pool)
    subsets = recipe.subsets(pool.units)
    if not np.array_equal(subsets.packed, artifact.space.subsets.packed):
        raise InvalidArtifact("the artifact's subsets are not those that its seed draws")
    _check_votes(artifact)
    chosen = np.random.default_rng().permutation(recipe.n_models)[:n_models].tolist()
    records = artifact.records()
    progress(0, len(chosen))
    for done, (i, fitted) in enumerate(
        train(learner, pool, subsets, recipe.seed, chosen, n_jobs=n_jobs), start=1
    ):
        again = None if fitted.model is None else learner.dump(fitted.model)
        if again != artifact.model_bytes(i) or fitted.classes.tolist() != records[i]["classes"]:
            raise InvalidArtifact(f"model {i} is not what training it again makes{_other_versions(artifact)}")
        progress(done, len(chosen))
    _check_priors(artifact, pool)
    return sorted(chosen)


def _check_units(artifact: Artifact, pool: Pool) -> None:
    units = artifact.space.units
    if units.kind != pool.units.kind or not np.array_equal(units.of_record, pool.units.of_record):
        raise InvalidTable(
            f"the artifact was fitted on {units.count:,} {units.kind}s, and these records are not those of the same "
            f"({pool.units.count:,} {pool.units.kind}s): name persons as then"
        )


def _check_priors(artifact: Artifact, pool: Pool) -> None:
    """Count again what an attacker knows before any answer."""
    space, voter = artifact.space, artifact.ensemble().voter
    again = Space.realised(pool, space.subsets, artifact.learner, voter, artifact.recipe.seed)
    if again.priors != space.priors:
        raise InvalidArtifact("the artifact's priors are not those of its subsets and models")


def _check_votes(artifact: Artifact) -> None:
    """Pack the stored models again: the arrays that vote must be theirs."""
    again = artifact.voter_of_models(artifact.trainer()).arrays()
    stored = artifact.ensemble().voter.arrays()
    if set(again) != set(stored) or any(again[name].tobytes() != stored[name].tobytes() for name in again):
        raise InvalidArtifact("the packed votes are not those of the stored models")


def _other_versions(artifact: Artifact) -> str:
    then, now = artifact.manifest["versions"], library_versions(artifact.learner)
    other = [
        f"{name} {then.get(name)} then and {now.get(name)} now"
        for name in now
        if then.get(name) != now.get(name)
    ]
    return f"; versions differ, which can be the reason: {', '.join(other)}" if other else ""
