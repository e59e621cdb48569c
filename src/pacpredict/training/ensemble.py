"""m trained models as one thing that can be asked for its votes."""

import numpy as np
import numpy.typing as npt

from pacpredict.learners.learner import Learner, Voter
from pacpredict.rows.kind import AnyRows, AnySchema
from pacpredict.tables.classes import Classes
from pacpredict.training.space import Space
from pacpredict.training.spread import Spread
from pacpredict.types import Votes


class Ensemble:
    def __init__(
        self,
        schema: AnySchema,
        classes: Classes,
        learner: Learner,
        voter: Voter,
        n_models: int,
        space: Space,
    ) -> None:
        self.schema = schema
        self.classes = classes
        self.learner = learner
        self.voter = voter
        self.n_models = n_models
        self.space = space  # what the models were trained on

    def __repr__(self) -> str:
        return f"Ensemble({self.n_models} models of {self.learner.name}, {len(self.classes)} classes)"

    def votes(self, rows: AnyRows, n_threads: int = 1) -> Votes:
        """Return the label index that each model gives to each row (n_rows, n_models)."""
        votes = self.voter.votes(self.learner.prepare(self.schema, rows), n_threads)
        return np.ascontiguousarray(votes, np.int16)

    def seeing_by(self, learner: Learner) -> "Ensemble":
        """Return the same models, which look at rows through a learner that makes of them what their own does."""
        return Ensemble(self.schema, self.classes, learner, self.voter, self.n_models, self.space)

    def close(self) -> None:
        """Let models go that were elsewhere."""
        if isinstance(self.voter, Spread):
            self.voter.close()

    def labels(self, codes: npt.ArrayLike) -> npt.NDArray[np.generic]:
        """Return the owner's labels for label indices."""
        return self.classes.labels(np.asarray(codes))
