"""Everything that decides what a fit produces, except the records."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from pacpredict.core.bounds import budget_for_success, success_for_epsilon
from pacpredict.core.decode import Decoder, check_decoder
from pacpredict.core.scalars import check_model_count
from pacpredict.ensemble.subsets import Subsets
from pacpredict.exceptions import InvalidArtifact, InvalidInput
from pacpredict.mechanism.budget import Budget

Construction = Literal["balanced", "half-partitions"]
CONSTRUCTIONS: tuple[Construction, ...] = ("balanced", "half-partitions")

# The paper's: 128 models, 2^-32 nats per query.
DEFAULT_MODELS = 128
DEFAULT_STEP = 2.0**-32


def default_total() -> float:
    """Return the nats that bound membership inference as (1, 1e-5)-differential privacy does."""
    return budget_for_success(success_for_epsilon(1.0))


@dataclass(frozen=True)
class Recipe:
    """How many subsets, drawn how, from which seed; and what a deployment of them may reveal."""

    seed: int
    budget: Budget
    n_models: int = DEFAULT_MODELS
    construction: Construction = "balanced"
    rate: float = 0.5  # the share of subsets that each record is in
    decode: Decoder = "argmax"

    def __post_init__(self) -> None:
        check_model_count(self.n_models)
        check_decoder(self.decode)
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

    def subsets(self, n_records: int) -> Subsets:
        """Draw the subsets. The seed decides them; it does not decide which of them is the secret."""
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, n_records]))
        if self.construction == "half-partitions":
            return Subsets.half_partitions(self.n_models, n_records, generator)
        return Subsets.balanced(self.n_models, n_records, generator, self.rate)

    @property
    def inclusion(self) -> float:
        """The share of subsets that each record really is in."""
        return round(self.rate * self.n_models) / self.n_models

    def priors(self) -> dict[str, float]:
        """Return the success of each attack before any answer (appendix C of the paper)."""
        share = self.inclusion
        return {
            "membership": max(share, 1 - share),
            "reconstruction": share,
            "full-set": 1 / self.n_models,
            "model": 1 / self.n_models,
        }

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Recipe":
        try:
            return cls(**cast("dict[str, Any]", {**values, "budget": Budget(**values["budget"])}))
        except (KeyError, TypeError, InvalidInput) as problem:
            raise InvalidArtifact(f"the manifest's recipe cannot be read: {problem}") from problem
