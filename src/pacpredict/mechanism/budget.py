"""The linear composition theorem as a filter: a release that would pass the total is refused (theory.md, 1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pacpredict.core.rounding import float_up
from pacpredict.core.scalars import check_budget
from pacpredict.exceptions import BudgetExhausted, InvalidBudget, InvalidInput

Charging = Literal["adaptive", "flat"]
WhenExhausted = Literal["halt", "unanimous"]


@dataclass(frozen=True)
class Budget:
    """What a deployment may reveal, in nats: at most `step` per release and `total` in all.

    Spending is counted in whole steps, so that it never drifts. With `charging="adaptive"` a query on which all
    models agree costs nothing, for it reveals nothing; `"flat"` charges every query, as the paper does. When the
    total is spent the deployment halts, or with `when_exhausted="unanimous"` goes on answering queries on which
    all models agree.
    """

    step: float
    total: float
    charging: Charging = "adaptive"
    when_exhausted: WhenExhausted = "halt"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", check_budget(self.step, "step budget"))
        object.__setattr__(self, "total", check_budget(self.total, "total budget"))
        if self.total < self.step:
            raise InvalidBudget(
                f"the total budget ({self.total!r} nats) is smaller than one step ({self.step!r} nats): "
                "not a single contested query could be answered; raise the total or lower the step"
            )
        if self.charging not in ("adaptive", "flat"):
            raise InvalidInput(f"charging must be 'adaptive' or 'flat', got {self.charging!r}")
        if self.when_exhausted not in ("halt", "unanimous"):
            raise InvalidInput(f"when_exhausted must be 'halt' or 'unanimous', got {self.when_exhausted!r}")

    @cached_property
    def total_steps(self) -> int:
        """How many charged releases fit, exactly."""
        return math.floor(Fraction(self.total) / Fraction(self.step))

    def nats(self, steps: int) -> float:
        """Convert charged steps into nats, rounded up."""
        return float_up(steps * Fraction(self.step))

    def charge(self, contested: Sequence[int], spent: int) -> list[int]:
        """Compute the steps that each of a batch of queries costs, or refuse the batch whole.

        `contested` is true where models differ. The decision depends on the votes and on what was spent, never on
        the secret.
        """
        if self.total_steps - spent >= len(contested):  # whatever they cost, all of them fit
            adaptive = self.charging == "adaptive"
            return [1 if differ or not adaptive else 0 for differ in contested]
        charged, n_fitting = self._charge_each(contested, spent)
        if n_fitting < len(charged):
            self._refuse(sum(charged), spent)
        return charged

    def charge_first(self, contested: Sequence[int], spent: int) -> list[int]:
        """Compute the steps that the first queries of a batch cost, as many of them as fit."""
        charged, n_fitting = self._charge_each(contested, spent)
        return charged[:n_fitting]

    def _charge_each(self, contested: Sequence[int], spent: int) -> tuple[list[int], int]:
        """Price all queries as if the total did not matter, and count those before the first that passes it."""
        adaptive, goes_on = self.charging == "adaptive", self.when_exhausted == "unanimous"
        left = self.total_steps - spent
        charged: list[int] = []
        n_fitting = len(contested)
        for i, differ in enumerate(contested):
            free = not differ and (adaptive or (left <= 0 and goes_on))
            if left <= 0 and (differ or not goes_on):
                n_fitting = min(n_fitting, i)
            charged.append(0 if free else 1)
            left -= charged[-1]
        return charged, n_fitting

    def _refuse(self, wanted: int, spent: int) -> None:
        left = max(self.total_steps - spent, 0)
        needed_nats, left_nats = self.nats(wanted), left * self.step
        raise BudgetExhausted(
            f"the privacy budget does not allow this release: it needs {needed_nats:g} nats and {left_nats:g} of "
            f"{self.total:g} are left. Nothing was drawn or charged. "
            + (
                "Ask for fewer rows."
                if left
                else "The deployment has halted: a new training set needs a new deployment."
            ),
            needed_nats=needed_nats,
            left_nats=left_nats,
        )
