"""The linear composition theorem as a filter: a release that would pass the total is refused (theory.md, 1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pacpredict import defaults
from pacpredict.core.decode import NoiseRule, check_noise
from pacpredict.core.rounding import float_up
from pacpredict.core.scalars import check_budget, check_delta, check_odds_limit
from pacpredict.exceptions import BudgetExhausted, InvalidBudget, InvalidInput, InvalidProbability

Charging = Literal["adaptive", "flat"]
WhenExhausted = Literal["halt", "unanimous", "belief"]
WAYS_OUT: tuple[WhenExhausted, ...] = ("halt", "unanimous", "belief")

_MOST_STEPS = 2**62  # fits into the integers of the kernels, with room to add


@dataclass(frozen=True)
class Budget:
    """What a deployment may reveal, in nats: at most `step` per release and `total` in all.

    Spending is counted in whole steps, so that it never drifts. With `charging="adaptive"` a query on which all
    models agree costs nothing, for it reveals nothing; `"flat"` charges every query, as the paper does.

    When the total is spent the deployment halts, or with `when_exhausted="unanimous"` goes on answering queries on
    which all models agree, or with `"belief"` answers the others too, with a label drawn from what everybody may
    believe: that needs no secret and costs nothing.

    `odds_limit` limits how far answers move the log-odds of any statement about the training set, whatever else is
    known about it. A channel is coupled less to keep within it; where nothing fits, the belief answers. Gaussian noise
    keeps the limit but for the probability `odds_delta` over the whole life, a channel always.

    `noise` says how the Gaussian noise of `argmax` and `map` is shared out among the voted labels: `"least"` has the
    least total variance (the paper's), `"fair"` the same variance in every direction. Both reveal a step at most.
    """

    step: float
    total: float
    charging: Charging = defaults.CHARGING
    when_exhausted: WhenExhausted = defaults.WHEN_EXHAUSTED
    odds_limit: float | None = None
    odds_delta: float = defaults.ODDS_DELTA
    noise: NoiseRule = defaults.NOISE

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", check_budget(self.step, "step budget"))
        object.__setattr__(self, "total", check_budget(self.total, "total budget"))
        if self.total < self.step:
            raise InvalidBudget(
                f"the total budget ({self.total!r} nats) is smaller than one step ({self.step!r} nats): "
                "not a single contested query could be answered; raise the total or lower the step"
            )
        if self.total_steps > _MOST_STEPS:
            raise InvalidBudget(
                f"a total of {self.total!r} nats in steps of {self.step!r} is more than 2^62 releases, which nobody "
                "can count; lower the total or raise the step"
            )
        if self.charging not in ("adaptive", "flat"):
            raise InvalidInput(f"charging must be 'adaptive' or 'flat', got {self.charging!r}")
        if self.when_exhausted not in WAYS_OUT:
            raise InvalidInput(
                f"when_exhausted must be one of {', '.join(WAYS_OUT)}, got {self.when_exhausted!r}"
            )
        check_noise(self.noise)
        if self.odds_limit is not None:
            object.__setattr__(self, "odds_limit", check_odds_limit(self.odds_limit))
        if check_delta(self.odds_delta) == 0:
            raise InvalidProbability("odds_delta must be above 0: noise is unbounded; 1e-9 is the default")

    @cached_property
    def total_steps(self) -> int:
        """How many charged releases fit, exactly."""
        return math.floor(Fraction(self.total) / Fraction(self.step))

    @property
    def step_delta(self) -> float:
        """The share of one release in `odds_delta`."""
        return self.odds_delta / self.total_steps

    @property
    def epsilon(self) -> float:
        """The limit on odds as the kernels take it: infinite if there is none."""
        return math.inf if self.odds_limit is None else self.odds_limit

    @property
    def is_fair(self) -> bool:
        """Whether noise is the same in every direction, as the kernels take it."""
        return check_noise(self.noise)

    def nats(self, steps: int) -> float:
        """Convert charged steps into nats, rounded up."""
        return float_up(steps * Fraction(self.step))

    def is_silent(self, spent: int) -> bool:
        """Tell whether answers no longer say on what models differ: all cost nothing, and the belief gives some."""
        return self.when_exhausted == "belief" and spent >= self.total_steps

    def charge(
        self, contested: Sequence[int], spent: int, rows: Sequence[int] = (), n_rows: int = 0
    ) -> list[int]:
        """Compute the steps that each of a batch of queries costs at most, or refuse the batch whole.

        `contested` is true where models differ. The decision depends on the votes and on what was spent, never on
        the secret. Where some of `n_rows` rows were answered before, `rows` says which of them the queries are, so that
        a refusal can say how many rows would fit.
        """
        if self.total_steps - spent >= len(contested):  # whatever they cost, all of them fit
            adaptive = self.charging == "adaptive"
            return [1 if differ or not adaptive else 0 for differ in contested]
        charged, n_fitting = self._charge_each(contested, spent)
        if n_fitting < len(charged):
            # Once all is spent, what is refused is priced by its number: its price would tell where models differ.
            is_silent = spent >= self.total_steps and self.when_exhausted == "halt"
            wanted = len(charged) if is_silent else sum(charged)
            fitting = rows[n_fitting] if rows else n_fitting
            self._refuse(wanted, spent, fitting, n_rows or len(charged))
        return charged

    def charge_first(self, contested: Sequence[int], spent: int) -> list[int]:
        """Compute the steps that the first queries of a batch cost, as many of them as fit."""
        charged, n_fitting = self._charge_each(contested, spent)
        return charged[:n_fitting]

    def charge_vector(self, contested: bool, spent: int) -> int:
        """Compute the steps that a release of real outputs costs; there is no belief that it could be drawn from."""
        budget = replace(self, when_exhausted="halt") if self.when_exhausted == "belief" else self
        return budget.charge([contested], spent)[0]

    def _charge_each(self, contested: Sequence[int], spent: int) -> tuple[list[int], int]:
        """Price all queries as if the total did not matter, and count those before the first that passes it."""
        adaptive, believes = self.charging == "adaptive", self.when_exhausted == "belief"
        left = self.total_steps - spent
        charged: list[int] = []
        n_fitting = len(contested)
        for i, differ in enumerate(contested):
            is_spared = left <= 0 and (believes or (self.when_exhausted == "unanimous" and not differ))
            if left <= 0 and not is_spared:
                n_fitting = min(n_fitting, i)
            charged.append(0 if is_spared or (adaptive and not differ) else 1)
            left -= charged[-1]
        return charged, n_fitting

    def _refuse(self, wanted: int, spent: int, fitting: int, n_rows: int) -> None:
        left = max(self.total_steps - spent, 0)
        needed_nats, left_nats = self.nats(wanted), left * self.step
        why = (
            f"it needs {needed_nats:g} nats and {left_nats:g} of {self.total:g} are left"
            if wanted > left
            else f"the {left_nats:g} nats that are left are spent before its last row, and nothing is answered then, "
            "not even what costs nothing"
        )
        advice = (
            f" The first {fitting:,} of {n_rows:,} rows fit: ask for no more than these." if fitting else ""
        )
        if not left:
            advice += " The deployment has halted: a new training set needs a new deployment."
        raise BudgetExhausted(
            f"the privacy budget does not allow this release: {why}. Nothing was drawn or charged.{advice}",
            needed_nats=needed_nats,
            left_nats=left_nats,
        )
