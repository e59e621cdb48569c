"""Counts of words and pairs of words, hashed: a function of the text alone, since there is no vocabulary to learn."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pacpredict.exceptions import InvalidInput
from pacpredict.features.compute import Progress
from pacpredict.features.exact import round_sparse
from pacpredict.rows.kind import AnyRows, RowKind
from pacpredict.rows.texts import Texts

# Enough that frequent words and pairs seldom share one.
N_WORD_FEATURES = 2**18


@dataclass(frozen=True)
class Words:
    """`hashing`, or `tfidf`: the same, where each head weighs words by how rare they are in its own subset.

    Frequencies of the whole pool would be a function of the pool; those of a subset belong to that subset's head.
    """

    idf: bool
    kind = "words"
    takes: tuple[RowKind, ...] = ("text",)
    needs_trust = False

    def config(self) -> list[dict[str, Any]]:
        return [{"kind": self.kind, "idf": self.idf}]

    def files(self) -> dict[str, Path]:
        return {}

    def __call__(self, digests: Sequence[bytes], rows: AnyRows, progress: Progress | None = None) -> Any:  # noqa: ARG002
        """Return a sparse matrix, in the order of the rows."""
        if not isinstance(rows, Texts):
            raise InvalidInput(f"{rows!r:.100} are not texts")
        counts = count_words(rows.texts)
        if progress is not None:
            progress(len(rows), len(rows))
        return counts


def count_words(texts: tuple[str, ...]) -> Any:
    """Return a sparse matrix (n_texts, N_WORD_FEATURES): rows of length 1, unless a text has no words.

    A word that occurs c times counts 1 + log c, with a sign from its hash: where two words share a feature they cancel
    as often as they add.
    """
    counts = _vectorizer().transform(texts)
    counts.data = np.sign(counts.data) * (1.0 + np.log(np.maximum(np.abs(counts.data), 1.0)))
    counts.eliminate_zeros()
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1)).A1
    rows = np.repeat(np.arange(len(texts)), np.diff(counts.indptr))
    counts.data /= lengths[rows]
    return round_sparse(counts)


@cache
def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415  # slow to import; few need it

    return HashingVectorizer(n_features=N_WORD_FEATURES, ngram_range=(1, 2), norm=None)
