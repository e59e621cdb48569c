"""What an experiment begins with: an artifact that is fitted once, and one model of all records to compare it with."""

from pathlib import Path
from typing import Any

import numpy as np

from pacpredict.artifact.artifact import Artifact
from pacpredict.cli.progress import progress_bar
from pacpredict.deployment import Deployment
from pacpredict.learners.learner import Learner, TrainingSet
from pacpredict.mechanism.planned_budget import plan_budget
from pacpredict.training.pool import Pool
from pacpredict.training.recipe import Recipe
from pacpredict.types import IntArray

SEED = 1  # of subsets and models


def fit_once(path: Path, pool: Pool, learner: Learner, n_models: int, n_jobs: int) -> Artifact:
    """Fit the artifact unless it is there."""
    if path.exists():
        return Artifact.open(path)
    recipe = Recipe(SEED, plan_budget(), n_models)
    with (
        progress_bar("models") as progress,
        Deployment.fit(path, pool, learner, recipe, n_jobs=n_jobs, progress=progress) as deployment,
    ):
        return deployment.artifact


def accuracy_of_whole(pool: Pool, learner: Learner, asked: Any, truth: IntArray) -> float:
    """Return the accuracy in percent, on prepared rows, of one model that is trained on all records."""
    records = TrainingSet(learner.prepare(pool.schema, pool.rows), pool.labels, pool.classes.values)
    trained = learner.fit(records, pool.schema, SEED)
    n_classes = len(pool.classes)
    voter = learner.voter([trained.model], [np.arange(n_classes)], n_classes, pool.schema)
    return round(100 * float((voter.votes(asked)[:, 0] == truth).mean()), 3)
