"""The bound against KL at 60 digits and more, and the exact inverses that plans rely on."""

import math
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pacpredict.core import bounds
from pacpredict.core.bounds import (
    advantage_bound,
    budget_for_success,
    epsilon_for_success,
    queries_supported,
    success_bound,
    success_for_epsilon,
)
from pacpredict.exceptions import InvalidBudget, InvalidProbability

SMALLEST = 5e-324  # the smallest float
NORMAL = 2.0**-980  # every float from here on has 40 bits and more
NEXT_TO_ONE = 1 - 2.0**-53
PRIORS = [SMALLEST, 1e-310, 1e-200, 1e-20, 1e-5, 1 / 128, 0.1, 1 / 3, 0.5, 0.75, 0.99, 1 - 1e-10, NEXT_TO_ONE]
BUDGETS = [SMALLEST, 1e-300, 1e-160, 1e-50, 1e-30, 1e-12, 2.0**-32, 1e-6, 1e-3, 0.1, 0.5, 0.69, 1, 4, 30, 700]

TOLERANCE = 1e-8  # of the advantage; what the module promises is 4e-12


def scattered(low_exponent, high_exponent):
    """Floats whose exponents, not only whose values, are spread evenly."""
    exponents = st.integers(low_exponent, high_exponent)
    return st.builds(math.ldexp, st.floats(0.5, 1, exclude_max=True), exponents).filter(
        lambda value: value > 0
    )


budgets = scattered(-1073, 9)
priors = st.one_of(
    scattered(-1073, 0),
    st.floats(0.01, 0.99),
    scattered(-52, -1).map(lambda gap: 1 - gap),
)
shares = st.one_of(st.floats(0, 1, exclude_min=True), scattered(-500, 0))


def rising(count):
    """Return `count` different success rates, the first of which serves as the prior."""
    return st.lists(priors, min_size=count, max_size=count, unique=True).map(sorted)


def exact_kl(success, prior):
    """Return KL(Bernoulli(success) || Bernoulli(prior)) of two mpf at working precision."""
    lost = 0 if success == 1 else (1 - success) * mpmath.log((1 - success) / (1 - prior))
    return success * mpmath.log(success / prior) + lost


def enough_digits(*values):
    """Sixty digits beyond those that cancel: KL is of the order of the squared advantage."""
    return mpmath.workdps(60 - 3 * math.floor(math.log10(min(values))))


def assert_encloses(advantage, budget, prior):
    """The exact bound is at most `advantage`, and at least all but TOLERANCE of it."""
    below = min(advantage * (1 - TOLERANCE), math.nextafter(advantage, 0))
    with enough_digits(advantage, prior):
        q, a = mpmath.mpf(prior), mpmath.mpf(advantage)
        if budget >= -mpmath.log(q):
            assert a >= 1 - q
            assert below <= 1 - q
            return
        assert a >= 1 - q or exact_kl(q + a, q) >= budget
        # Among subnormal advantages the float below may already be the exact bound to 1e-12.
        assert exact_kl(q + mpmath.mpf(below), q) <= mpmath.mpf(budget) * (1 + mpmath.mpf("1e-11"))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_advantage_encloses_the_exact_one(budget, prior):
    """Over all magnitudes the advantage is never too low and at most 1e-8 too high."""
    assert_encloses(advantage_bound(budget, prior), budget, prior)


@settings(deadline=None, max_examples=300)
@given(budget=budgets, prior=priors)
def test_advantage_encloses_the_exact_one_anywhere(budget, prior):
    """No budget and prior bring the advantage below the exact one, or noticeably above it."""
    assert_encloses(advantage_bound(budget, prior), budget, prior)


@settings(deadline=None, max_examples=300)
@given(budget=budgets, prior=priors)
def test_success_is_never_below_the_exact_bound(budget, prior):
    """Rounding the sum of prior and advantage goes up, and by one float only."""
    success, advantage = success_bound(budget, prior), advantage_bound(budget, prior)
    assert success == 1 or Fraction(success) >= Fraction(prior) + Fraction(advantage)
    assert Fraction(math.nextafter(success, 0)) < Fraction(prior) + Fraction(advantage)


@pytest.mark.parametrize("prior", PRIORS)
def test_sixty_digit_root(prior):
    """The root that mpmath finds on its own at 60 digits is the advantage to 4e-12."""
    budget = -math.log(prior) / 3
    with enough_digits(prior, 1 - prior):
        q = mpmath.mpf(prior)
        root = mpmath.findroot(
            lambda a: exact_kl(q + a, q) - budget, (0, 1 - q), solver="anderson", tol=1e-60
        )
        excess = advantage_bound(budget, prior) / root - 1
    assert 0 <= excess < 4e-12


@settings(deadline=None, max_examples=300)
@given(prior=priors, share=shares)
def test_computed_kl_is_as_accurate_as_claimed(prior, share):
    """The error that the bound covers is several times the one that occurs."""
    advantage = share * (1 - prior)
    assume(advantage > 0)
    with enough_digits(advantage, prior):
        q, a = mpmath.mpf(prior), mpmath.mpf(advantage)
        assume(q + a <= 1)
        exact = exact_kl(q + a, q)
        assume(exact >= SMALLEST)
        error = abs(bounds._scaled_kl(advantage, prior) / (exact * bounds._SCALE) - 1)
    assert error < bounds._WRONG_BY / 4


@settings(deadline=None)
@given(prior=priors, share=shares)
def test_computed_kl_increases_along_the_grid(prior, share):
    """Neighbours on the grid of advantages are further apart in KL than rounding can move them."""
    start = bounds._grid_index(max(share * (1 - prior), NORMAL))
    assume(bounds._grid_float(start + 4) <= 1 - prior)
    values = [bounds._scaled_kl(bounds._grid_float(start + step), prior) for step in range(5)]
    assume(values[0] >= SMALLEST * bounds._SCALE)
    assert all(low < high for low, high in pairwise(values))


@settings(deadline=None)
@given(scaled_kl=scattered(-500, 610))
def test_largest_budget_is_the_largest(scaled_kl):
    """The budget for a KL is the last float whose bound stays within it, among subnormal floats too."""
    budget = bounds._largest_budget_within(scaled_kl)
    assert bounds._covered(budget) <= scaled_kl < bounds._covered(math.nextafter(budget, math.inf))


@settings(deadline=None, max_examples=300)
@given(share=shares, prior=priors)
def test_budget_of_a_bound_is_no_smaller(share, prior):
    """Whoever plans for the success that a budget gives gets at least this budget back."""
    budget = share * -math.log(prior)
    success = success_bound(budget, prior)
    assert success == 1 or budget_for_success(success, prior) >= budget


@settings(deadline=None, max_examples=300)
@given(rates=rising(2))
def test_bound_of_a_budget_stays_within_the_success(rates):
    """Spending everything that a success allows does not pass it, and the next larger budget does."""
    prior, success = rates
    budget = budget_for_success(success, prior)
    assert success_bound(budget, prior) <= success
    assert success_bound(math.nextafter(budget, math.inf), prior) > success


@settings(deadline=None, max_examples=300)
@given(rates=rising(2))
def test_allowance_is_rounded_down(rates):
    """The budget for a success never exceeds its KL and is at most 1e-9 below it."""
    prior, success = rates
    budget = budget_for_success(success, prior)
    with enough_digits(prior, Fraction(success) - Fraction(prior)):
        kl = exact_kl(mpmath.mpf(success), mpmath.mpf(prior))
        assert budget <= kl
        assert budget >= kl * (1 - mpmath.mpf("1e-9")) - SMALLEST


@settings(deadline=None)
@given(budget=budgets, more=budgets, prior=priors)
def test_bounds_grow_with_the_budget(budget, more, prior):
    """More leakage never lowers a bound."""
    low, high = sorted((budget, more))
    assert advantage_bound(low, prior) <= advantage_bound(high, prior)
    assert success_bound(low, prior) <= success_bound(high, prior)


@settings(deadline=None)
@given(rates=rising(3))
def test_allowances_grow_with_the_success(rates):
    """Allowing more success never lowers the budget."""
    prior, low, high = rates
    assert budget_for_success(low, prior) <= budget_for_success(high, prior)


@pytest.mark.parametrize("prior", PRIORS)
def test_ends_of_the_scale(prior):
    """No leakage leaves the prior exactly; log(1/prior) nats or more promise nothing."""
    assert success_bound(0, prior) == prior
    assert advantage_bound(0, prior) == 0
    assert budget_for_success(prior, prior) == 0
    for budget in (-math.log(prior), 1000, math.inf):
        assert success_bound(budget, prior) == 1
        assert Fraction(advantage_bound(budget, prior)) >= 1 - Fraction(prior)


def test_certainty_costs_the_logarithm_of_the_prior():
    """The budget for a success of 1 is log(1/prior), rounded down."""
    assert budget_for_success(1, 0.5) == pytest.approx(math.log(2), rel=1e-15)
    assert budget_for_success(1, 0.5) < math.log(2)


def test_half_the_information_about_a_coin():
    """At prior 1/2 and small budgets the advantage is the square root of half the budget (Pinsker)."""
    assert advantage_bound(1e-30) == pytest.approx(math.sqrt(0.5e-30), rel=1e-11)
    assert advantage_bound(1e-12) == pytest.approx(math.sqrt(0.5e-12), rel=1e-9)


@settings(deadline=None)
@given(queries=st.integers(1, 10**9), spare_bits=st.integers(1, 30))
def test_queries_of_a_bound_come_back(queries, spare_bits):
    """The success bound of T releases supports T releases, not T - 1."""
    step = 2.0 ** -(queries.bit_length() + spare_bits)
    assert queries_supported(step, success_bound(queries * step)) >= queries


@settings(deadline=None)
@given(step=scattered(-60, -3), success=st.floats(0.5001, 0.999))
def test_queries_are_counted_exactly(step, success):
    """The count is the exact floor: one release more would pass the allowance."""
    count = queries_supported(step, success)
    allowed = Fraction(budget_for_success(success))
    assert count * Fraction(step) <= allowed < (count + 1) * Fraction(step)


@settings(deadline=None)
@given(epsilon=st.floats(1e-6, 30), delta=st.sampled_from([0, 1e-9, 1e-5, 0.01]))
def test_epsilon_and_success_are_inverses(epsilon, delta):
    """Going to a success rate and back keeps epsilon up to the resolution of success rates."""
    success = success_for_epsilon(epsilon, delta)
    resolution = 4 * math.ulp(success) / (1 - success)
    assert epsilon_for_success(success, delta) == pytest.approx(epsilon, rel=1e-14, abs=resolution)


def test_ends_of_the_epsilon_scale():
    """Where (0, delta)-DP allows the success epsilon is 0, at certainty it is infinite."""
    assert epsilon_for_success(0.3) == 0
    assert epsilon_for_success(0.5) == 0
    assert epsilon_for_success(0.5 + 0.4e-5) == 0
    assert epsilon_for_success(0.5 + 0.6e-5) > 0
    assert epsilon_for_success(1) == math.inf
    assert success_for_epsilon(0, 0) == 0.5
    assert success_for_epsilon(math.inf) == 1


@pytest.mark.parametrize("budget", [-1, -5e-324, math.nan, "much", None])
def test_budgets_that_are_refused(budget):
    """A negative or absent amount of information is an error."""
    with pytest.raises(InvalidBudget):
        success_bound(budget)
    with pytest.raises(InvalidBudget):
        advantage_bound(budget)


@pytest.mark.parametrize("step", [0, -1, math.nan, math.inf])
def test_step_budgets_that_are_refused(step):
    """A number of releases needs a finite positive step."""
    with pytest.raises(InvalidBudget, match="step_budget"):
        queries_supported(step, 0.6)


@pytest.mark.parametrize("value", [-0.1, 0, 1, 1.5, math.nan])
def test_priors_that_are_refused(value):
    """A prior of 0 or 1 leaves nothing to bound."""
    with pytest.raises(InvalidProbability, match="prior"):
        success_bound(0.1, value)
    with pytest.raises(InvalidProbability, match="prior"):
        budget_for_success(0.9, value)


@pytest.mark.parametrize("value", [-0.1, 1.5, 51.08, math.nan])
def test_successes_that_are_refused(value):
    """A success rate is a probability, not a percentage."""
    with pytest.raises(InvalidProbability, match="success"):
        budget_for_success(value)
    with pytest.raises(InvalidProbability, match="success"):
        epsilon_for_success(value)


def test_success_below_the_prior_is_refused():
    """Nobody can promise less success than guessing has, and the text says what to ask for."""
    with pytest.raises(InvalidProbability, match="at least the prior"):
        budget_for_success(0.4)


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan])
@pytest.mark.parametrize("delta", [-1e-9, 1, math.nan])
def test_dp_parameters_that_are_refused(epsilon, delta):
    """Negative or missing epsilon and delta are errors, and so is a delta of 1."""
    with pytest.raises(InvalidProbability, match="epsilon"):
        success_for_epsilon(epsilon)
    with pytest.raises(InvalidProbability, match="delta"):
        success_for_epsilon(1, delta)
    with pytest.raises(InvalidProbability, match="delta"):
        epsilon_for_success(0.6, delta)


def test_import_is_light():
    """Bounds need neither NumPy nor SciPy."""
    program = (
        "import sys, pacpredict.core.bounds; print(sorted({'numpy', 'scipy', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
