"""Hashed words: a function of the text alone."""

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from whole_values import texts

from pacpredict.features.exact import MOST_TERMS
from pacpredict.features.words import N_WORD_FEATURES, count_words
from pacpredict.rows.texts import LONGEST_TEXT


def test_counts_are_those_of_a_plain_computation():
    """Words and pairs, 1 + log of how often, with the sign of the hash, to length 1."""
    text = "the cat saw the other cat and the dog"
    counts = HashingVectorizer(n_features=N_WORD_FEATURES, ngram_range=(1, 2), norm=None).transform([text])
    dense = counts.toarray()[0]
    damped = np.sign(dense) * (1 + np.log(np.maximum(np.abs(dense), 1))) * (dense != 0)
    expected = damped / np.linalg.norm(damped)
    assert np.abs(count_words((text,)).toarray()[0] - expected).max() < 2.0**-15


def test_a_text_has_the_same_features_in_any_company():
    """Alone, among others and after others, a row is the same to the bit."""
    given = (*texts(30)[0], "!", "a b c")  # the last two have no words
    whole = count_words(given)
    for i, text in enumerate(given):
        alone = count_words((text,))
        assert np.array_equal(alone.indices, whole[i].indices)
        assert np.array_equal(alone.data, whole[i].data)
    assert whole[30].nnz == whole[31].nnz == 0


def test_the_longest_text_keeps_sums_exact():
    """No text that is allowed has more features than an exact sum may have terms."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [f"{a}{b}" for a in letters for b in letters]
    longest = " ".join(words[i % len(words)] for i in range(LONGEST_TEXT // 3 + 1))[:LONGEST_TEXT]
    assert count_words((longest,)).nnz <= MOST_TERMS
    assert (
        2 * (LONGEST_TEXT // 3 + 1) <= MOST_TERMS
    )  # words have two letters and are apart; pairs are as many
