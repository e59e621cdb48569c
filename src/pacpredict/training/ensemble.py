"""m trained models as one thing that can be asked for its votes."""

from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from pacpredict.core.vote_rule import VoteRule, check_vote_rule
from pacpredict.learners.learner import Learner, Voter
from pacpredict.rows.kind import AnyRows, AnySchema
from pacpredict.tables.classes import Classes
from pacpredict.training.space import Space
from pacpredict.training.spread import Spread
from pacpredict.types import Votes
from pacpredict.votes.leave_one_out import LeaveOneOut
from pacpredict.votes.threads import run_together

# Fewer rows than this take less time than it takes to wake a thread.
_ROWS_PER_THREAD = 16


class Ensemble:
    def __init__(
        self,
        schema: AnySchema,
        classes: Classes,
        learner: Learner,
        voter: Voter,
        n_models: int,
        space: Space,
        rule: VoteRule = "plain",
    ) -> None:
        self.schema = schema
        self.classes = classes
        self.learner = learner
        self.voter = voter
        self.n_models = n_models
        self.space = space  # what the models were trained on
        self.rule = check_vote_rule(rule)  # by which their votes count

    def __repr__(self) -> str:
        return f"Ensemble({self.n_models} models of {self.learner.name}, {len(self.classes)} classes)"

    def votes(self, rows: AnyRows, n_threads: int = 1) -> Votes:
        """Return the label index of each model for each row (n_rows, n_models), as it counts by the rule."""
        return self.count(self.votes_of_models(rows, n_threads), n_threads)

    def votes_of_models(self, rows: AnyRows, n_threads: int = 1) -> Votes:
        """Return the same before the rule: what the models themselves say."""
        votes = self.voter.votes(self.learner.prepare(self.schema, rows), n_threads)
        return np.ascontiguousarray(votes, np.int16)

    def count(self, votes: Votes, n_threads: int = 1) -> Votes:
        """Return what votes of the models (n_rows, n_models) count as by the rule; a row depends on itself alone."""
        change = self._leave_out
        if change is None:
            return votes
        n_parts = max(1, min(n_threads, len(votes) // _ROWS_PER_THREAD))
        if n_parts == 1:
            return change.apply(votes)
        parts = np.array_split(votes, n_parts)
        return np.concatenate(run_together([partial(change.apply, part) for part in parts]))

    @cached_property
    def _leave_out(self) -> LeaveOneOut | None:
        subsets = self.space.subsets
        return LeaveOneOut.by(self.rule, subsets.packed, subsets.n_units, len(self.classes))

    def seeing_by(self, learner: Learner) -> "Ensemble":
        """Return the same models, which look at rows through a learner that makes of them what their own does."""
        return Ensemble(self.schema, self.classes, learner, self.voter, self.n_models, self.space, self.rule)

    def close(self) -> None:
        """Let models go that were elsewhere."""
        if isinstance(self.voter, Spread):
            self.voter.close()

    def labels(self, codes: npt.ArrayLike) -> npt.NDArray[np.generic]:
        """Return the owner's labels for label indices."""
        return self.classes.labels(np.asarray(codes))
