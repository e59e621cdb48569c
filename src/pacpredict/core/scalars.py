"""Checks of single numbers, without NumPy: bounds and plans must start as fast as the terminal asks."""

import math
from operator import index

from pacpredict import defaults
from pacpredict.exceptions import InvalidBudget, InvalidModelCount, InvalidProbability

# The deviation of the noise of a vote is of the order of 1 / sqrt(budget), and 1e-12 of that where the belief has all
# but ruled a class out. Down to 1e-300 nats it is an ordinary floating-point number. From 1e9 nats on the smallest
# would vanish in the last digit of what it is added to; promises end at 1 nat, or a few.
SMALLEST_BUDGET, TOO_LARGE_BUDGET = 1e-300, 1e9

# Odds that may move by e^700 are not limited in any number that a computer has.
LARGEST_ODDS_LIMIT = 700.0


def check_budget(nats: float, name: str = "budget_nats") -> float:
    """Return a finite number of nats for which noise is a finite positive number as well."""
    value = as_float(nats, name, InvalidBudget)
    if not math.isfinite(value) or value <= 0:
        raise InvalidBudget(f"{name} must be a finite number of nats above 0, got {nats!r}")
    if not SMALLEST_BUDGET <= value < TOO_LARGE_BUDGET:
        raise InvalidBudget(
            f"{name} must be at least {SMALLEST_BUDGET:g} and below {TOO_LARGE_BUDGET:g} nats, got {nats!r}"
        )
    return value


def check_leakage(nats: float, name: str = "budget_nats") -> float:
    """Return an amount of information that may also be 0 or infinite, but not negative or NaN."""
    value = as_float(nats, name, InvalidBudget)
    if math.isnan(value) or value < 0:
        raise InvalidBudget(f"{name} must be a number of nats of at least 0, got {nats!r}")
    return value


def check_prior(prior: float) -> float:
    """Return the success rate of an attacker who has seen nothing, strictly between 0 and 1."""
    value = as_float(prior, "prior", InvalidProbability)
    if not 0 < value < 1:
        raise InvalidProbability(
            f"prior must lie strictly between 0 and 1, got {prior!r}; it is the success rate of the best "
            "guess without any answer (0.5 for membership, 1/m for stealing the model)"
        )
    return value


def check_success(success: float) -> float:
    """Return a success rate: a probability, 0 and 1 included."""
    value = as_float(success, "success", InvalidProbability)
    if not 0 <= value <= 1:
        raise InvalidProbability(
            f"success must lie between 0 and 1, got {success!r}; write 51.08 % as 0.5108"
        )
    return value


def check_rate(rate: float, name: str) -> float:
    """Return the rate of true or false positives of a test: a probability, 0 and 1 included."""
    value = as_float(rate, name, InvalidProbability)
    if not 0 <= value <= 1:
        raise InvalidProbability(f"{name} must lie between 0 and 1, got {rate!r}; write 0.1 % as 0.001")
    return value


def check_delta(delta: float) -> float:
    """Return the delta of (epsilon, delta)-DP: at least 0 and below 1, where it promises nothing."""
    value = as_float(delta, "delta", InvalidProbability)
    if not 0 <= value < 1:
        raise InvalidProbability(f"delta must be at least 0 and below 1, got {delta!r}; 1e-5 is customary")
    return value


def check_epsilon(epsilon: float) -> float:
    """Return the epsilon of (epsilon, delta)-DP: at least 0, and infinite where nothing is promised."""
    value = as_float(epsilon, "epsilon", InvalidProbability)
    if math.isnan(value) or value < 0:
        raise InvalidProbability(f"epsilon must be at least 0, got {epsilon!r}")
    return value


def check_odds_limit(epsilon: float) -> float:
    """Return a limit on how far log-odds may move: above 0 and finite."""
    value = as_float(epsilon, "odds_limit", InvalidProbability)
    if not 0 < value <= LARGEST_ODDS_LIMIT:
        raise InvalidProbability(
            f"odds_limit must be above 0 and at most {LARGEST_ODDS_LIMIT:g}, got {epsilon!r}; None (--odds-limit none) "
            "means no limit"
        )
    return value


def check_model_count(m: int) -> int:
    """Return an even number of models, so that every record can be in exactly half the subsets."""
    if not hasattr(m, "__index__") or m < 2 or m % 2:
        raise InvalidModelCount(
            f"the number of models must be even and at least 2, got {m!r}; an even number lets each record "
            "be in exactly half of the subsets, which makes the membership prior 1/2 "
            f"({defaults.MODELS} is the default)"
        )
    return index(m)


def as_float(value: float, name: str, error: type[ValueError]) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(f"{name} must be a number, got {value!r}") from problem
