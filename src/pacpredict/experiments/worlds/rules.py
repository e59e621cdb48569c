"""Rules that turn votes into other votes: the one of the package, and what it was chosen among."""

from collections.abc import Callable

import numpy as np

from pacpredict.experiments.worlds.explain import Counts, Explained
from pacpredict.types import BoolArray
from pacpredict.votes.leave_one_out import influence_threshold

Rule = Callable[[Explained], Counts]


def remove_if(condition: Callable[[Explained], BoolArray]) -> Rule:
    return lambda found: np.where(condition(found)[:, None], found.removed, found.plain)


def beyond(z: float) -> Rule:
    return remove_if(lambda found: found.z >= z)


def beyond_chance(least_effect: float = 0.0, factor: float = 1.0) -> Rule:
    """Remove a unit whose Z exceeds z_n times a factor, and whose effect on a share exceeds another threshold."""
    return remove_if(
        lambda found: (
            (found.z >= factor * influence_threshold(found.n_units)) & (found.effect >= least_effect)
        )
    )


PLAIN, LEAVE_ONE_OUT = "plain", "leave-one-out"
RULES: dict[str, Rule] = {
    PLAIN: lambda found: found.plain,
    LEAVE_ONE_OUT: beyond_chance(),
    "two rounds": lambda found: found.twice,
    "z >= 3": beyond(3.0),
    "z >= 3.65": beyond(3.65),
    "z >= 4.2": beyond(4.2),
    "z >= 5": beyond(5.0),
    "z_n and effect >= 0.2": beyond_chance(0.2),
    "z_n and effect >= 0.3": beyond_chance(0.3),
    "z_n and effect >= 0.4": beyond_chance(0.4),
    "always": beyond(0.0),
}
