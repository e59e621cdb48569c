"""What a recipe draws, and what an attacker knows before any answer."""

import json

import numpy as np
import pytest
from records import recipe

from pacpredict.exceptions import (
    InvalidArtifact,
    InvalidBudget,
    InvalidInput,
    InvalidModelCount,
    InvalidSubsets,
    PacPredictError,
)
from pacpredict.mechanism.budget import Budget
from pacpredict.training.recipe import Recipe
from pacpredict.training.units import Units


def alone(n_records):
    """Make each record a unit of its own."""
    return Units(np.arange(n_records), "record")


@pytest.mark.parametrize(
    ("options", "share"),
    [
        ({}, 1 / 2),
        ({"construction": "half-partitions"}, 1 / 2),
        ({"rate": 0.25}, 1 / 4),
        ({"rate": 0.75}, 3 / 4),
        ({"rate": 0.3}, 5 / 16),  # round(4.8) of 16 subsets
    ],
    ids=str,
)
def test_everybody_is_in_the_same_share_of_the_subsets(options, share):
    """Whatever is drawn, the share that the recipe states is the one that each unit really is in."""
    made = recipe(n_models=16, **options)
    membership = made.subsets(alone(200)).matrix()
    assert np.array_equal(membership.mean(axis=0), np.full(200, share))
    assert made.inclusion == share


def test_half_partitions_are_pairs():
    """Of each pair of subsets one has what the other has not."""
    membership = recipe(n_models=6, construction="half-partitions").subsets(alone(31)).matrix()
    assert (membership[0::2] ^ membership[1::2]).all()


def test_the_seed_decides_the_subsets():
    """The same seed draws the same subsets, another one others, and so does another number of records."""
    first, again, other = (recipe(seed=seed).subsets(alone(100)).packed for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(first[:, :12], recipe().subsets(alone(101)).packed[:, :12])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_models": 7}, InvalidModelCount, "even"),
        ({"n_models": 0}, InvalidModelCount, "0"),
        ({"decode": "median"}, InvalidInput, "median"),
        ({"construction": "random"}, InvalidInput, "construction must be one of balanced, half-partitions"),
        ({"construction": "half-partitions", "rate": 0.25}, InvalidInput, "rate 0.25 is not 0.5"),
        ({"seed": -1}, InvalidInput, "at least 0"),
        ({"step": 0.0}, InvalidBudget, "step budget"),
        ({"step": 2.0}, InvalidBudget, "smaller than one step"),
    ],
)
def test_recipes_that_make_no_sense(options, error, words):
    """A recipe is checked when it is written, before any training."""
    with pytest.raises(error, match=words):
        recipe(**options)


@pytest.mark.parametrize("rate", [0.0, 1.0, -1.0, 0.01, float("nan")])
def test_rates_that_leave_no_choice(rate):
    """A rate that puts records into no subset or into all is refused before any training."""
    with pytest.raises(InvalidSubsets, match="at least one and not all of 4 subsets"):
        recipe(rate=rate).subsets(alone(10))


def test_a_recipe_is_stored_exactly():
    """JSON gives the same recipe back; a damaged one is refused in words."""
    made = Recipe(2**62 + 1, Budget(2.0**-32, 0.1109, "flat", "unanimous"), 64, "balanced", 0.3, "map")
    stored = json.loads(json.dumps(made.to_json()))
    assert Recipe.from_json(stored) == made
    for damaged in ({**stored, "n_models": 3}, {**stored, "more": 1}, {"seed": 1}, {**stored, "budget": {}}):
        with pytest.raises(InvalidArtifact, match="recipe cannot be read"):
            Recipe.from_json(damaged)
    with pytest.raises(PacPredictError):
        Recipe.from_json({**stored, "seed": None})
