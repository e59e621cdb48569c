"""Which of the m subsets is the training set: the one thing that must not get out."""

import hmac
import secrets
from typing import NoReturn, final

import numpy as np

from pacpredict.core.belief import Belief
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.entropy import draw_index

_SALT_BYTES = 32


@final
class Secret:
    """The index of the secret model. It does not print, compare, hash or pickle.

    It carries a random salt, from which come a commitment, by which a history knows its secret again, and the keys that
    its history is protected with.
    """

    __slots__ = ("__index", "__salt", "n_models")
    __hash__ = None  # type: ignore[assignment]  # a hash of a small number gives it away

    def __init__(self, index: int, n_models: int, salt: bytes | None = None) -> None:
        if not 0 <= index < n_models:
            raise InvalidInput(f"the secret must be one of the {n_models} models")  # without saying which
        if salt is not None and len(salt) < _SALT_BYTES:
            raise InvalidInput(f"the salt of a secret has at least {_SALT_BYTES} bytes")
        self.__index = int(index)
        self.__salt = secrets.token_bytes(_SALT_BYTES) if salt is None else bytes(salt)
        self.n_models = n_models

    @classmethod
    def draw(cls, prior: Belief, generator: np.random.Generator | None = None) -> "Secret":
        """Draw a secret from the prior, from the operating system's entropy unless a generator is given."""
        return cls(draw_index(prior.probabilities(), generator), prior.n_models)

    def reveal(self) -> int:
        """Return the index. For the mechanism, for storing an artifact, and for scoring a game."""
        return self.__index

    def reveal_salt(self) -> bytes:
        """Return the salt, for storing an artifact."""
        return self.__salt

    def commitment(self) -> bytes:
        """Return what only this secret gives, and what tells nothing about it to anybody without the salt."""
        return hmac.digest(self.__salt, b"commitment" + self.__index.to_bytes(8, "little"), "sha256")

    def key(self, purpose: str) -> bytes:
        """Return a key that whoever cannot read the secret's file does not have."""
        return hmac.digest(self.__salt, b"key " + purpose.encode(), "sha256")

    def __repr__(self) -> str:
        return "Secret(hidden)"

    def __eq__(self, other: object) -> bool:
        raise TypeError("secrets do not compare: the outcome would reveal something")

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets do not pickle; an artifact stores its secret in a file of its own")
