"""Everything that decides what a fit produces, except the records."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from pacpredict import defaults
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.scalars import check_model_count
from pacpredict.core.vote_rule import VoteRule, check_vote_rule
from pacpredict.exceptions import InvalidArtifact, InvalidInput, InvalidSubsets
from pacpredict.mechanism.budget import Budget
from pacpredict.training.subsets import Subsets
from pacpredict.training.units import Units

Construction = Literal["balanced", "half-partitions"]
CONSTRUCTIONS: tuple[Construction, ...] = ("balanced", "half-partitions")


def share_of(rate: float, n_models: int) -> float:
    """Return the share of subsets that each unit really is in."""
    check_model_count(n_models)
    if not 0 < rate < 1 or not 0 < (n_chosen := round(rate * n_models)) < n_models:
        raise InvalidSubsets(
            f"rate must put each record into at least one and not all of {n_models} subsets, got {rate}"
        )
    return n_chosen / n_models


def membership_prior(rate: float, n_models: int) -> float:
    """Return how often a guess without any answer tells whether a record was trained on."""
    share = share_of(rate, n_models)
    return max(share, 1 - share)


@dataclass(frozen=True)
class Recipe:
    """How many subsets, drawn how, from which seed; and what a deployment of them may reveal."""

    seed: int
    budget: Budget
    n_models: int = defaults.MODELS
    construction: Construction = defaults.CONSTRUCTION
    rate: float = defaults.RATE  # the share of subsets that each unit is in
    decode: Decoder = defaults.DECODE
    votes: VoteRule = defaults.VOTES

    def __post_init__(self) -> None:
        check_model_count(self.n_models)
        check_decoder(self.decode)
        check_vote_rule(self.votes)
        if self.seed < 0:
            raise InvalidInput(f"a seed is a whole number of at least 0, got {self.seed}")
        if self.construction not in CONSTRUCTIONS:
            raise InvalidInput(
                f"construction must be one of {', '.join(CONSTRUCTIONS)}, got {self.construction!r}"
            )
        if self.construction == "half-partitions" and self.rate != 0.5:
            raise InvalidInput(
                f"half-partitions put each record into half of the subsets: rate {self.rate} is not 0.5"
            )

    def subsets(self, units: Units) -> Subsets:
        """Draw the subsets. The seed decides them; it does not decide which of them is the secret."""
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, units.count]))
        if self.construction == "half-partitions":
            return Subsets.half_partitions(self.n_models, units.count, generator)
        drawn = Subsets.balanced(self.n_models, units.count, generator, self.rate)
        if not drawn.packed.any(axis=1).all():
            raise InvalidSubsets(
                f"one of the {self.n_models} subsets has none of the {units.count} {units.kind}s: fit more of them, or "
                "fewer models, or with a higher rate, or with another seed"
            )
        return drawn

    @property
    def inclusion(self) -> float:
        """The share of subsets that each unit really is in."""
        return share_of(self.rate, self.n_models)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        try:
            return cls(**cast("dict[str, Any]", {**values, "budget": Budget(**values["budget"])}))
        except (KeyError, TypeError, InvalidInput) as problem:
            raise InvalidArtifact(f"the manifest's recipe cannot be read: {problem}") from problem
