"""Which votes the mechanism sees: those of the models as they are, or without the unit that explains them best.

A rule turns the votes of all models on a query into others, looking at nothing but the votes and the subsets. It may be
changed at any time, like the decoder: M_t is a function on the secret space either way (docs/theory.md, Leave-one-out
votes). `votes/leave_one_out.py` computes it.
"""

from typing import Literal, get_args

from pacpredict.exceptions import InvalidInput

VoteRule = Literal["plain", "leave-one-out", "leave-two-out"]
VOTE_RULES: tuple[VoteRule, ...] = get_args(VoteRule)


def check_vote_rule(rule: str) -> VoteRule:
    if rule not in VOTE_RULES:
        raise InvalidInput(f"votes must be one of {', '.join(VOTE_RULES)}, got {rule!r}")
    return rule


def n_removed(rule: VoteRule) -> int:
    """Return how many units a rule removes at most."""
    return VOTE_RULES.index(rule)
