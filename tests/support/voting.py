"""Votes as an ensemble might cast them, for tests."""

import numpy as np


def random_votes(rng, n_queries, n_models, n_classes, dissent=0.1):
    """Each query has a majority label; each model dissents with the given probability."""
    majority = rng.integers(n_classes, size=(n_queries, 1))
    other = (majority + rng.integers(1, n_classes, size=(n_queries, n_models))) % n_classes
    dissents = rng.random((n_queries, n_models)) < dissent
    return np.where(dissents, other, majority).astype(np.int16)


def contested_votes(rng, n_queries, n_models, n_classes, dissent=0.1):
    """The same, with at least one dissenter in every query."""
    votes = random_votes(rng, n_queries, n_models, n_classes, dissent)
    unanimous = np.flatnonzero((votes == votes[:, :1]).all(axis=1))
    votes[unanimous, rng.integers(n_models, size=unanimous.size)] = (votes[unanimous, 0] + 1) % n_classes
    return votes
