"""The attacks that a deployment is asked about, each as the question it answers, and how often they can succeed.

`plan`, `bounds`, `show`, `/privacy` and reports all speak of these and take their figures from here.
"""

from collections.abc import Mapping

from pacpredict.core.bounds import success_bound
from pacpredict.core.roc import DEFAULT_FPR, tpr_bound, tpr_for_epsilon
from pacpredict.core.scalars import check_prior

GROUP_SIZE = 5  # of the groups that are reported

# By the name of an attack: what the attacker wants to know. Words for a unit, sizes and numbers are filled in.
QUESTIONS: Mapping[str, str] = {
    "membership": "was this {unit} trained on?",
    "group-any": "trained on any of {size} random {unit}s?",
    "group-exact": "trained on which of {size} random {unit}s?",
    "reconstruction": "name a record that was trained on",
    "full-set": "name all {unit}s that were trained on",
    "model": "which of the {models} models answers?",
}
NOT_PREVENTED = "Training an imitation of the model on its answers is not prevented."


def question(attack: str, *, unit: str = "person", n_models: int, group_size: int = GROUP_SIZE) -> str:
    return QUESTIONS[attack].format(unit=unit, models=n_models, size=group_size)


def bound_attacks(
    priors: Mapping[str, float], total_budget: float, *, unit: str, n_models: int
) -> dict[str, dict[str, str | float]]:
    """Return, of each attack, its question and how often it succeeds: before any answer, and ever."""
    return {
        attack: {
            "question": question(attack, unit=unit, n_models=n_models),
            "prior": priors[attack],
            "success": success_after(total_budget, priors[attack]),
        }
        for attack in QUESTIONS
    }


def success_after(budget_nats: float, prior: float) -> float:
    """Return `success_bound`, also for a guess that is always right and has nothing to gain from answers."""
    return 1.0 if prior == 1 else success_bound(budget_nats, prior)


def true_positives(
    total_budget: float,
    prior: float = 0.5,
    odds_limit: float | None = None,
    odds_delta: float = 0.0,
    fpr: float = DEFAULT_FPR,
) -> float:
    """Return the highest rate of members found at a rate of false alarms: by what nats allow, and the limit on odds.

    The prior is that of membership inference: members or non-members are that share, whichever are more. Within the
    limit on odds the rate is at most that of an (odds_limit, odds_delta)-DP test (docs/theory.md, 10).
    """
    q = as_membership_prior(prior)
    by_nats = max(tpr_bound(total_budget, fpr, share) for share in {q, 1 - q})
    return by_nats if odds_limit is None else min(by_nats, tpr_for_epsilon(odds_limit, fpr, odds_delta))


def as_membership_prior(prior: float) -> float:
    """Return the prior of membership inference that goes with the prior of an attack: its own, but at least 1/2.

    Whoever may answer "in" or "out" is right half of the time at least, so a smaller prior is that of another attack.
    """
    return max(check_prior(prior), 0.5)
