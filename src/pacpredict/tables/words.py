"""Free text as a fixed number of features."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from pacpredict.types import FloatArray

# Few enough that a text column does not drown the others, enough that frequent words seldom share one.
N_WORD_FEATURES = 64


def hash_words(texts: Sequence[str]) -> FloatArray:
    """Return (n_texts, N_WORD_FEATURES) sums of signed, hashed words, of length 1 unless a text has no words.

    Words are hashed, not looked up: there is no vocabulary that could tell which words the training data had.
    """
    return _vectorizer().transform(texts).toarray()


@cache
def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415  # slow to import; few need it

    return HashingVectorizer(n_features=N_WORD_FEATURES)
