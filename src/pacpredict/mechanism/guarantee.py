"""What a budget promises against an attack, as numbers."""

from dataclasses import dataclass

from pacpredict.core.bounds import epsilon_for_success, success_bound
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import State


@dataclass(frozen=True)
class Guarantee:
    """A ceiling on the success of any attack with this prior, whatever was asked.

    `success` is the promise: it holds for the whole life of the deployment, since the total is never passed.
    `success_at_spent` is the same bound for a budget of what has been spent by now. Both speak about the average
    over all histories; what this history reveals about a record is its exposure.
    """

    queries: int
    contested: int
    spent_nats: float
    total_nats: float
    prior: float
    success: float
    success_at_spent: float
    epsilon: float  # of the DP guarantee that limits membership inference as the total does, at delta = 1e-5

    @classmethod
    def of(cls, budget: Budget, state: State, prior: float = 0.5) -> "Guarantee":
        spent = budget.nats(state.spent_steps)
        return cls(
            queries=state.sequence,
            contested=state.contested,
            spent_nats=spent,
            total_nats=budget.total,
            prior=prior,
            success=success_bound(budget.total, prior),
            success_at_spent=success_bound(spent, prior),
            epsilon=epsilon_for_success(success_bound(budget.total)),
        )
