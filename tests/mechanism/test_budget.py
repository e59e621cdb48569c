"""The budget as a filter: exact counts, whole refusals, and no way past the total."""

import math
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.exceptions import BudgetExhausted, InvalidBudget, InvalidInput
from pacpredict.mechanism.budget import Budget

steps = st.floats(1e-300, 1e3)
choices = {
    "charging": st.sampled_from(["adaptive", "flat"]),
    "when_exhausted": st.sampled_from(["halt", "unanimous"]),
}
small_budgets = st.builds(
    lambda step, n, **options: Budget(step, step * n, **options), steps, st.integers(1, 12), **choices
)
batches = st.lists(st.booleans(), min_size=1, max_size=8)


@st.composite
def budgets(draw):
    step = draw(steps)
    return Budget(
        step, draw(st.floats(step, min(step * 1e15, 9e8))), **{key: draw(s) for key, s in choices.items()}
    )


def charge_or_none(budget, contested, spent):
    """Return the charges as a list, or None if the batch is refused."""
    try:
        return budget.charge(contested, spent)
    except BudgetExhausted:
        return None


def charge_by_the_rules(budget, contested, spent):
    """Charge query after query, as the documentation of Budget describes it."""
    charges = []
    for is_contested in contested:
        exhausted = spent == budget.total_steps
        if exhausted and (is_contested or budget.when_exhausted == "halt"):
            return None
        free = exhausted or (budget.charging == "adaptive" and not is_contested)
        charges.append(0 if free else 1)
        spent += charges[-1]
    return charges


@settings(deadline=None, max_examples=300)
@given(budget=budgets())
def test_total_steps_is_exact(budget):
    """As many steps fit as rational arithmetic says, and not one more."""
    step, total = Fraction(budget.step), Fraction(budget.total)
    assert budget.total_steps * step <= total < (budget.total_steps + 1) * step


@pytest.mark.parametrize(
    ("step", "total", "expected"),
    [
        (0.1, 0.3, 2),  # the double next to 0.1 is above it, the one next to 0.3 below
        (0.1, math.nextafter(0.3, 1), 3),
        (0.25, 1.0, 4),
        (2.0**-32, 1e6 * 2.0**-32, 1_000_000),
        (1.0, 1.0, 1),
        (1.0, math.nextafter(2.0, 0), 1),
        (2.0**-996, 2.0**-934, 2**62),
        (2.0**-996, math.nextafter(2.0**-934, 0), 2**62 - 2**9),
    ],
)
def test_total_steps_of_awkward_numbers(step, total, expected):
    """Rounding in the quotient never grants a step."""
    assert Budget(step, total).total_steps == expected


@settings(deadline=None, max_examples=300)
@given(step=st.floats(1e-300, 1e3), n=st.integers(0, 2**70))
def test_nats_round_up(step, n):
    """What is reported as spent is the smallest double that is not below what was spent."""
    nats, exact = Budget(step, step).nats(n), n * Fraction(step)
    assert Fraction(nats) >= exact
    assert n == 0 or Fraction(math.nextafter(nats, 0)) < exact


@settings(deadline=None, max_examples=300)
@given(budget=budgets())
def test_all_steps_together_stay_within_the_total(budget):
    """Even rounded up, what can be spent is at most the total that was promised."""
    assert budget.nats(budget.total_steps) <= budget.total


@settings(deadline=None, max_examples=500)
@given(budget=small_budgets, requests=st.lists(batches, max_size=12))
def test_spending_never_passes_the_total(budget, requests):
    """Whatever batches are sent, and whichever are refused, the sum of the charges stays within the total."""
    spent = 0
    for contested in requests:
        spent += sum(charge_or_none(budget, contested, spent) or [])
        assert 0 <= spent * Fraction(budget.step) <= Fraction(budget.total)


@settings(deadline=None, max_examples=500)
@given(budget=small_budgets, contested=batches, data=st.data())
def test_batches_cost_what_their_queries_cost(budget, contested, data):
    """A batch is charged like its queries one by one, and refused whole if one of them would be."""
    spent = data.draw(st.integers(0, budget.total_steps))
    expected = charge_by_the_rules(budget, contested, spent)
    assert charge_or_none(budget, contested, spent) == expected
    charged, one_by_one = spent, []
    for is_contested in contested:
        charge = charge_or_none(budget, [is_contested], charged)
        if charge is None:
            assert expected is None
            return
        one_by_one += charge
        charged += charge[0]
    assert one_by_one == expected


@settings(deadline=None, max_examples=200)
@given(budget=small_budgets, contested=batches, data=st.data())
def test_contested_queries_are_never_free(budget, contested, data):
    """A charge of nothing is possible only where all models agree."""
    charges = charge_or_none(budget, contested, data.draw(st.integers(0, budget.total_steps)))
    assert charges is None or all(charge == 1 for charge, c in zip(charges, contested, strict=True) if c)


@pytest.mark.parametrize(
    ("charging", "when_exhausted", "spent", "contested", "expected"),
    [
        ("adaptive", "halt", 0, [0, 1, 0, 1], [0, 1, 0, 1]),
        ("flat", "halt", 0, [0, 1, 0, 1], [1, 1, 1, 1]),
        ("adaptive", "halt", 3, [0, 1], [0, 1]),
        ("adaptive", "halt", 3, [1, 0], None),  # the budget is spent before the second query
        ("adaptive", "unanimous", 3, [1, 0], [1, 0]),
        ("adaptive", "halt", 4, [0], None),
        ("adaptive", "unanimous", 4, [0, 0], [0, 0]),
        ("adaptive", "unanimous", 4, [0, 1, 0], None),
        ("flat", "halt", 3, [0, 0], None),
        ("flat", "unanimous", 3, [0, 0, 0], [1, 0, 0]),
        ("flat", "unanimous", 4, [0], [0]),
        ("flat", "unanimous", 3, [0, 1], None),
    ],
)
def test_charging_and_exhaustion(charging, when_exhausted, spent, contested, expected):
    """Each combination of options does what its documentation says, here with four steps in all."""
    budget = Budget(0.25, 1.0, charging=charging, when_exhausted=when_exhausted)
    assert charge_or_none(budget, contested, spent) == expected


@pytest.mark.parametrize(
    ("spent", "contested", "needed", "left", "advice"),
    [
        (2, [1, 1, 1], 0.75, 0.5, "needs 0.75 nats and 0.5 .* The first 2 of 3 rows fit"),
        (4, [1], 0.25, 0.0, "halted"),
        (4, [0], 0.25, 0.0, "halted"),  # as if it were contested
        (3, [1, 0], 0.25, 0.25, "spent before its last row.* The first 1 of 2 rows fit"),
    ],
)
def test_refusal_says_what_was_needed_and_left(spent, contested, needed, left, advice):
    """The exception carries both amounts in nats and says what can be done."""
    with pytest.raises(BudgetExhausted, match=advice) as refusal:
        Budget(0.25, 1.0).charge(contested, spent)
    assert (refusal.value.needed_nats, refusal.value.left_nats) == (needed, left)


def refusal_of(budget, contested, spent):
    """Return all that a refusal says."""
    with pytest.raises(BudgetExhausted) as refusal:
        budget.charge(contested, spent)
    return str(refusal.value), vars(refusal.value)


@settings(deadline=None, max_examples=200)
@given(step=steps, n=st.integers(1, 12), charging=choices["charging"], contested=batches)
def test_a_halted_budget_does_not_tell_where_models_differ(step, n, charging, contested):
    """Once all is spent, a refusal depends on the number of rows and on nothing that models say about them."""
    budget = Budget(step, step * n, charging=charging)
    spent = budget.total_steps
    assert refusal_of(budget, contested, spent) == refusal_of(budget, [True] * len(contested), spent)
    assert budget.charge_first(contested, spent) == []


def test_a_budget_for_agreement_tells_where_models_differ():
    """With "unanimous" that is what was chosen: what is refused is contested, and the price counts those rows."""
    budget = Budget(0.25, 1.0, when_exhausted="unanimous")
    assert budget.charge([False, False], 4) == [0, 0]
    assert budget.charge_first([False, True, False], 4) == [0]
    assert refusal_of(budget, [False, True, True], 4)[1]["needed_nats"] == 0.5
    assert refusal_of(budget, [False, True, False], 4)[1]["needed_nats"] == 0.25


def test_charging_leaves_its_argument_alone():
    """The caller's array is read, not written."""
    contested = np.array([True, False])
    Budget(0.25, 0.25, when_exhausted="unanimous").charge(contested, 0)
    assert contested.tolist() == [True, False]


@pytest.mark.parametrize("bad", [0, -1.0, -0.0, math.nan, math.inf, -math.inf, None, "much", [], 1 + 0j])
@pytest.mark.parametrize("field", ["step", "total"])
def test_bad_amounts_are_refused(field, bad):
    """A step and a total are finite numbers above 0."""
    with pytest.raises(InvalidBudget, match=field):
        Budget(**{"step": 0.5, "total": 1.0, field: bad})


def test_total_below_one_step_is_refused():
    """A budget that allows no contested query at all is a mistake."""
    with pytest.raises(InvalidBudget, match=r"more than 2\^62 releases"):
        Budget(2.0**-70, 1.0)
    assert Budget(2.0**-62, 1.0).total_steps == 2**62
    with pytest.raises(InvalidBudget, match="smaller than one step"):
        Budget(1.0, math.nextafter(1.0, 0))


@pytest.mark.parametrize(
    "options", [{"charging": "free"}, {"when_exhausted": "ignore"}, {"charging": None}, {"noise": "paper"}]
)
def test_unknown_options_are_refused(options):
    """A misspelt option is not taken for its default."""
    with pytest.raises(InvalidInput, match="must be"):
        Budget(0.5, 1.0, **options)


@pytest.mark.parametrize("kind", [np.float32, np.float64, Decimal, Fraction, str, int])
def test_amounts_become_plain_floats(kind):
    """Whatever type of number was given, arithmetic goes on with a float."""
    budget = Budget(kind(1), kind(3))
    assert type(budget.step) is type(budget.total) is float
    assert (budget.total_steps, budget.nats(3)) == (3, 3.0)


def test_budgets_do_not_change():
    """What was promised cannot be edited afterwards."""
    budget = Budget(0.5, 1.0)
    with pytest.raises(FrozenInstanceError):
        budget.total = 100.0
