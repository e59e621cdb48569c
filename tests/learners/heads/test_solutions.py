"""Heads of many subsets at once are those that a plain solver finds on each subset alone."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler
from whole_values import texts

from pacpredict.features.words import count_words
from pacpredict.learners.heads.gram import standardise
from pacpredict.learners.heads.logistic import fit_logistic
from pacpredict.learners.heads.problem import Problem
from pacpredict.learners.heads.ridge import fit_ridge
from pacpredict.learners.heads.words import fit_words

N, WIDTH, HEADS = 400, 12, 6


def problem(n_classes, seed=0, weights=None):
    """Features of very different size and mean, one of them constant, and labels that they say something about."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(N, WIDTH))
    labels = np.argmax(base @ rng.normal(size=(WIDTH, n_classes)) + rng.gumbel(size=(N, n_classes)), axis=1)
    features = (base * rng.lognormal(0, 2, WIDTH) + rng.normal(0, 3, WIDTH)).astype(np.float32)
    features[:, 3] = 0.1
    members = rng.random((HEADS, N)) < 0.5
    counted = members.astype(np.float32) * (1.0 if weights is None else weights)
    return Problem(features, labels, counted.astype(np.float32), n_classes)


def alone(given, i):
    """Return the standardised features, the labels and the weights of one subset."""
    own = given.weights[i] > 0
    weights = given.weights[i][own].astype(float)
    scaler = StandardScaler().fit(given.features[own].astype(float), sample_weight=weights)
    return scaler.transform(given.features[own].astype(float)), given.labels[own], weights, scaler


def assert_same_scores(given, i, weights, biases, expected):
    scores = given.features.astype(float) @ weights[i] + biases[i]
    assert np.abs(scores - expected).max() < 2e-3 * np.abs(expected).max()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_gram_matrices(n_classes):
    """Shared sums give each subset the Gram matrix of its own standardised records."""
    given = problem(n_classes)
    _, grams = standardise(given)
    for i in range(HEADS):
        rows, *_ = alone(given, i)
        expected = rows.T @ rows
        kept = np.arange(WIDTH) != 3  # the constant one
        assert np.allclose(grams[i][np.ix_(kept, kept)], expected[np.ix_(kept, kept)], rtol=1e-6, atol=1e-5)
        assert np.abs(grams[i][3]).max() < 1e-4


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_heads(n_classes, weighted):
    """Each is scikit-learn's ridge regression on its own subset."""
    counts = np.random.default_rng(5).integers(1, 4, N) if weighted else None
    given = problem(n_classes, weights=counts)
    weights, biases = fit_ridge(given, 0.05)
    for i in range(HEADS):
        rows, labels, own, scaler = alone(given, i)
        wanted = [1] if n_classes == 2 else range(n_classes)
        targets = np.array([np.where(labels == c, 1.0, -1.0) for c in wanted]).T
        plain = Ridge(alpha=0.05 * own.sum()).fit(rows, targets, sample_weight=own)
        expected = plain.predict(scaler.transform(given.features.astype(float))).reshape(N, -1)
        assert_same_scores(given, i, weights, biases, expected)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_heads(n_classes, weighted):
    """After enough steps each is scikit-learn's logistic regression on its own subset."""
    counts = np.random.default_rng(5).integers(1, 4, N) if weighted else None
    given = problem(n_classes, weights=counts)
    weights, biases = fit_logistic(given, 0.02, 40)
    for i in range(HEADS):
        rows, labels, own, scaler = alone(given, i)
        plain = LogisticRegression(C=1 / (0.02 * own.sum()), tol=1e-10, max_iter=1000)
        plain.fit(rows, labels, sample_weight=own)
        expected = plain.decision_function(scaler.transform(given.features.astype(float))).reshape(N, -1)
        scores = given.features.astype(float) @ weights[i] + biases[i]
        if n_classes > 2:  # only differences between classes mean anything
            scores -= scores.mean(axis=1, keepdims=True)
            expected = expected - expected.mean(axis=1, keepdims=True)
        assert np.abs(scores - expected).max() < 2e-3 * np.abs(expected).max()


def test_few_steps_are_close():
    """The default number of steps gives the label of the exact solution to nearly all records."""
    given = problem(4)
    few, biases = fit_logistic(given, 0.02, 6)
    many, exact = fit_logistic(given, 0.02, 60)
    for i in range(HEADS):
        label = (given.features @ few[i] + biases[i]).argmax(axis=1)
        assert (label == (given.features @ many[i] + exact[i]).argmax(axis=1)).mean() > 0.98


@pytest.mark.parametrize("idf", [True, False])
def test_heads_on_words(idf):
    """With tfidf each is logistic regression on counts times the idf of its own subset, as scikit-learn has both."""
    given, labels = texts(200)
    counts, codes = count_words(tuple(given)), (labels == "good").astype(np.int64)
    members = np.random.default_rng(0).random((3, 200)) < 0.5
    weights, biases = fit_words(Problem(counts, codes, members.astype(np.float32), 2), 1e-3, 60, idf=idf)
    for i, own in enumerate(members):
        factors = TfidfTransformer(norm=None).fit(counts[own]).idf_ if idf else np.ones(counts.shape[1])
        scaled = counts.multiply(factors).tocsr()
        plain = LogisticRegression(C=1 / (1e-3 * own.sum()), tol=1e-10, max_iter=1000).fit(
            scaled[own], codes[own]
        )
        scores = (counts @ weights[i])[:, 0] + biases[i]
        expected = plain.decision_function(scaled)
        assert np.abs(scores - expected).max() < 5e-3 * np.abs(expected).max()


@pytest.mark.parametrize(
    "fit", [lambda given: fit_ridge(given, 0.1), lambda given: fit_logistic(given, 0.03, 6)]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_head_is_a_function_of_its_own_subset(fit, n_classes):
    """Other features and labels of records outside a subset leave its head as it was, to the last bit."""
    given = problem(n_classes)
    weights, biases = fit(given)
    rng = np.random.default_rng(9)
    for i in range(HEADS):
        outside = given.weights[i] == 0
        features, labels = given.features.copy(), given.labels.copy()
        features[outside] = rng.normal(0, 50, (outside.sum(), WIDTH))
        labels[outside] = rng.integers(n_classes, size=outside.sum())
        changed, moved = fit(Problem(features, labels, given.weights, n_classes))
        assert np.array_equal(changed[i], weights[i])
        assert np.array_equal(moved[i], biases[i])
        assert not np.array_equal(changed[(i + 1) % HEADS], weights[(i + 1) % HEADS])


def test_classes_that_a_subset_lacks_are_left_out():
    """The softmax of a head is over the classes that its subset has."""
    given = problem(4)
    given.weights[0, given.labels == 2] = 0.0
    weights, biases = fit_logistic(Problem(given.features, given.labels, given.weights, 4), 0.02, 40)
    rows, labels, own, scaler = alone(given, 0)
    plain = LogisticRegression(C=1 / (0.02 * own.sum()), tol=1e-10, max_iter=1000).fit(rows, labels)
    expected = plain.decision_function(scaler.transform(given.features.astype(float)))
    scores = (given.features.astype(float) @ weights[0] + biases[0])[:, [0, 1, 3]]
    scores -= scores.mean(axis=1, keepdims=True)
    assert np.abs(scores - (expected - expected.mean(axis=1, keepdims=True))).max() < 0.02
