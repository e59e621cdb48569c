"""m trained models as one thing that can be asked for its votes."""

import numpy as np
import numpy.typing as npt

from pacpredict.core.validate import Votes
from pacpredict.ensemble.learners.learner import Learner, Voter
from pacpredict.ensemble.tables.classes import Classes
from pacpredict.ensemble.tables.schema import Rows, Schema


class Ensemble:
    def __init__(
        self, schema: Schema, classes: Classes, learner: Learner, voter: Voter, n_models: int
    ) -> None:
        self.schema = schema
        self.classes = classes
        self.learner = learner
        self.voter = voter
        self.n_models = n_models

    def __repr__(self) -> str:
        return f"Ensemble({self.n_models} models of {self.learner.name}, {len(self.classes)} classes)"

    def votes(self, rows: Rows, n_threads: int = 1) -> Votes:
        """Return the label index that each model gives to each row (n_rows, n_models)."""
        votes = self.voter.votes(self.learner.prepare(self.schema, rows), n_threads)
        return np.ascontiguousarray(votes, np.int16)

    def labels(self, codes: npt.ArrayLike) -> npt.NDArray[np.generic]:
        """Return the owner's labels for label indices."""
        return self.classes.labels(np.asarray(codes))
