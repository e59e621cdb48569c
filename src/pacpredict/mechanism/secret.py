"""Which of the m subsets is the training set: the one thing that must not get out."""

from typing import NoReturn, final

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.entropy import draw_index


@final
class Secret:
    """The index of the secret model. It does not print, compare, hash or pickle."""

    __slots__ = ("__index", "n_models")
    __hash__ = None  # type: ignore[assignment]  # a hash of a small number gives it away

    def __init__(self, index: int, n_models: int) -> None:
        if not 0 <= index < n_models:
            raise InvalidInput(f"the secret must be one of the {n_models} models")  # without saying which
        self.__index = int(index)
        self.n_models = n_models

    @classmethod
    def draw(cls, prior: Belief, generator: np.random.Generator | None = None) -> "Secret":
        """Draw a secret from the prior, from the operating system's entropy unless a generator is given."""
        return cls(draw_index(prior.probabilities(), generator), prior.n_models)

    def reveal(self) -> int:
        """Return the index. For the mechanism, for storing an artifact, and for scoring a game."""
        return self.__index

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        raise TypeError("secrets do not compare: the outcome would reveal something")

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets do not pickle; an artifact stores its secret in a file of its own")
