"""True positives at given false positives: against information at 60 digits and more, and the inverses of plans."""

import math
import subprocess
import sys

import mpmath
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pacpredict.core.bounds import success_bound, success_for_epsilon
from pacpredict.core.roc import budget_for_tpr, tpr_bound, tpr_for_epsilon
from pacpredict.exceptions import InvalidBudget, InvalidProbability

SMALLEST = 5e-324
PRIORS = [1e-300, 1 / 128, 0.5, 1 - 2.0**-53]
FPRS = [0.0, SMALLEST, 1e-200, 1e-12, 1e-3, 0.1, 0.5, 0.999, 1 - 2.0**-53]
BUDGETS = [SMALLEST, 1e-60, 1e-12, 1_000_000 * 2.0**-32, 0.1109, 0.5, 1]


def scattered(low_exponent, high_exponent):
    """Floats whose exponents, not only whose values, are spread evenly."""
    exponents = st.integers(low_exponent, high_exponent)
    return st.builds(math.ldexp, st.floats(0.5, 1, exclude_max=True), exponents).filter(bool)


budgets = scattered(-1000, 0)
priors = st.one_of(st.just(0.5), scattered(-300, 0), scattered(-52, -1).map(lambda gap: 1 - gap))
rates = st.one_of(st.just(0.0), scattered(-300, 0), scattered(-52, -1).map(lambda gap: 1 - gap))


def divergence(p, q):
    """KL of two Bernoulli laws; 0 log 0 is 0."""
    return sum(a * mpmath.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a > 0)


def information(t, f, prior):
    """I(member; answer) as the mean divergence of the answer from its marginal: not the formula of the code."""
    t, f, pi = mpmath.mpf(t), mpmath.mpf(f), mpmath.mpf(prior)
    marginal = pi * t + (1 - pi) * f
    return pi * divergence(t, marginal) + (1 - pi) * divergence(f, marginal)


def assert_encloses(bound, budget, fpr, prior):
    """The exact bound is at most `bound`, and above the float before it."""
    with mpmath.workdps(700):
        assert bound == 1 or information(bound, fpr, prior) >= budget
        before = math.nextafter(bound, 0)
        assert before <= fpr or information(before, fpr, prior) < mpmath.mpf(budget) * (
            1 + mpmath.mpf("1e-29")
        )


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("fpr", [1e-200, 1e-3, 0.5])
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_bound_is_the_next_float_above_the_exact_one(budget, fpr, prior):
    """Over all magnitudes the rate is never too low, and the float below it would be."""
    assert_encloses(tpr_bound(budget, fpr, prior), budget, fpr, prior)


@pytest.mark.parametrize("fpr", FPRS)
def test_every_false_positive_rate_has_its_bound(fpr):
    """From none to all false positives."""
    for budget in (1e-200, 1e-6, 0.3):
        assert_encloses(tpr_bound(budget, fpr), budget, fpr, 0.5)


@settings(deadline=None, max_examples=40)
@given(budget=budgets, fpr=rates, prior=priors)
def test_the_bound_encloses_the_exact_one_anywhere(budget, fpr, prior):
    """No budget, false positive rate and prior bring it below the exact one, or two floats above it."""
    assert_encloses(tpr_bound(budget, fpr, prior), budget, fpr, prior)


@pytest.mark.parametrize("prior", [1 / 128, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("fpr", [1e-5, 1e-3, 0.2])
def test_sixty_digit_root(fpr, prior):
    """The root that mpmath finds on its own at 60 digits is the bound."""
    budget = float(information(0.5, fpr, prior)) / 3
    with mpmath.workdps(60):
        root = mpmath.findroot(
            lambda t: information(t, fpr, prior) - budget, (fpr, 0.5), solver="anderson", tol=1e-55
        )
        assert 0 <= tpr_bound(budget, fpr, prior) - root <= math.ulp(float(root))


@settings(deadline=None, max_examples=40)
@given(first=rates, second=rates, prior=priors)
def test_spending_what_a_rate_allows_does_not_pass_it(first, second, prior):
    """The allowance for a rate keeps it, to the last bit, and the next larger budget does not."""
    fpr, tpr = sorted((first, second))
    assume(fpr < tpr < 1)
    budget = budget_for_tpr(tpr, fpr, prior)
    assert tpr_bound(budget, fpr, prior) <= tpr
    assert tpr_bound(math.nextafter(budget, math.inf), fpr, prior) > tpr


@settings(deadline=None, max_examples=25)
@given(budget=budgets, fpr=rates, prior=priors)
def test_planning_for_a_bound_gives_its_budget_back(budget, fpr, prior):
    """Whoever plans for the rate that a budget gives gets at least this budget."""
    tpr = tpr_bound(budget, fpr, prior)
    assert tpr == 1 or budget_for_tpr(tpr, fpr, prior) >= budget


@settings(deadline=None, max_examples=15)
@given(low=budgets, high=budgets, fpr=rates, more=rates, prior=priors)
def test_more_nats_or_more_false_positives_never_lower_the_bound(low, high, fpr, more, prior):
    """The ceiling rises in both."""
    low, high = sorted((low, high))
    fpr, more = sorted((fpr, more))
    assert tpr_bound(low, fpr, prior) <= tpr_bound(high, fpr, prior)
    assert tpr_bound(low, fpr, prior) <= tpr_bound(low, more, prior)


@pytest.mark.parametrize("fpr", FPRS)
def test_ends_of_the_scale(fpr):
    """No nats leave the diagonal exactly; unlimited ones promise nothing; all false positives find everybody."""
    assert tpr_bound(0, fpr) == fpr
    assert tpr_bound(math.inf, fpr) == 1
    assert tpr_bound(math.log(2), fpr) == 1
    assert tpr_bound(1e-9, 1.0) == 1
    assert budget_for_tpr(fpr, fpr) == 0


@pytest.mark.parametrize("budget", [1e-4, 1e-2, 0.1109])
def test_the_best_average_is_that_of_the_success_bound(budget):
    """At prior 1/2 the best (true positives + true negatives) / 2 along the curve is the ceiling on success."""
    success = success_bound(budget)
    averages = {f: (tpr_bound(budget, f) + 1 - f) / 2 for f in (0, 0.001, 0.1, 1 - success, 0.5, 0.9)}
    assert max(averages.values()) == averages[1 - success] == pytest.approx(success, rel=1e-11)


def test_figures_of_the_documentation():
    """What matches (1, 1e-5)-DP on average finds a hundred times as many members at 0.1 % false positives."""
    assert f"{tpr_bound(0.1109):.3f} {tpr_for_epsilon(1):.4f}" == "0.293 0.0027"
    assert f"{tpr_bound(1_000_000 * 2.0**-32):.5f}" == "0.00285"


@settings(deadline=None)
@given(epsilon=st.floats(0, 60), fpr=rates, delta=st.sampled_from([0, 1e-9, 1e-5, 0.3]))
@example(epsilon=0.0, fpr=5.169878828456423e-26, delta=0)
@example(epsilon=0.0, fpr=2.033531755166077e-69, delta=0)
def test_the_region_of_dp_is_enclosed(epsilon, fpr, delta):
    """The corner of the two inequalities of (epsilon, delta)-DP, rounded up by at most two floats."""
    bound = tpr_for_epsilon(epsilon, fpr, delta)
    with mpmath.workdps(400):
        factor = mpmath.exp(mpmath.mpf(epsilon))
        exact = min(factor * fpr + delta, 1 - (1 - mpmath.mpf(delta) - mpmath.mpf(fpr)) / factor, 1)
        assert exact <= bound <= exact + 2 * math.ulp(float(exact))


@pytest.mark.parametrize("epsilon", [999.0, 1001.0, 1e7, 1e300])
def test_an_epsilon_that_limits_nothing(epsilon):
    """However large it is, only a test without any false alarm is limited, by delta."""
    assert tpr_for_epsilon(epsilon, 5e-324) == tpr_for_epsilon(epsilon, 0.001) == 1.0
    assert 1e-5 <= tpr_for_epsilon(epsilon, 0.0, 1e-5) < 1.0000000001e-5


@settings(deadline=None)
@given(epsilon=st.floats(0.01, 5), delta=st.sampled_from([0, 1e-5]))
def test_dp_at_its_best_threshold_has_the_success_of_dp(epsilon, delta):
    """The corner of the region is (1 - delta) / (1 + e^epsilon) false positives; there the average is DP's."""
    corner = (1 - delta) / (1 + math.exp(epsilon))
    assert (tpr_for_epsilon(epsilon, corner, delta) + 1 - corner) / 2 == pytest.approx(
        success_for_epsilon(epsilon, delta), rel=1e-12
    )


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, "few", None])
def test_rates_that_are_refused(rate):
    """A rate is a probability, not a percentage."""
    for call in (
        lambda: tpr_bound(0.1, rate),
        lambda: budget_for_tpr(0.5, rate),
        lambda: budget_for_tpr(rate),
        lambda: tpr_for_epsilon(1, rate),
    ):
        with pytest.raises(InvalidProbability, match="pr must"):
            call()


def test_values_that_are_refused():
    """Fewer true than false positives need no answer; budgets, priors and DP's numbers have their own errors."""
    with pytest.raises(InvalidProbability, match="knows nothing"):
        budget_for_tpr(0.001, 0.01)
    with pytest.raises(InvalidBudget):
        tpr_bound(-1)
    with pytest.raises(InvalidProbability, match="prior"):
        tpr_bound(0.1, prior=1)
    with pytest.raises(InvalidProbability, match="epsilon"):
        tpr_for_epsilon(-1)


def test_import_is_light():
    """The ceiling needs neither NumPy nor SciPy."""
    program = "import sys, pacpredict.core.roc; print(sorted({'numpy', 'scipy', 'numba'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
