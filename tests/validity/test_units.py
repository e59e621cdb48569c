"""Games about persons with 1 to 10 records, and about contents that occur several times, against what is printed.

The same games are played against subsets that were drawn row by row, as they were before there were units, to show
that they can be lost.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from records import recipe, small_learner
from scipy.stats import binomtest

from pacpredict.core.bounds import success_bound
from pacpredict.core.simulate import simulate
from pacpredict.curator import report_privacy
from pacpredict.training.fit import Fit, fit
from pacpredict.training.pool import Pool
from pacpredict.training.units import Units

pytestmark = pytest.mark.validity

STEP, QUERIES = 2.0**-6, 3
TOTAL = STEP * QUERIES
SIZES = np.tile(np.arange(1, 11), 2)  # records of each person
OF_PERSON = np.repeat(np.arange(len(SIZES)), SIZES)
TRIALS = 600


def hospital():
    """Return records and labels: a person's are close to each other, and only who has seen them knows their label.

    From four records on, two are identical; and the last record of each person of the second half is also the last
    one of a person of the first half, under another label.
    """
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(SIZES), 3))[OF_PERSON] + rng.normal(0, 0.01, (len(OF_PERSON), 3))
    last = np.cumsum(SIZES) - 1
    table[last[SIZES >= 4] - 1] = table[last[SIZES >= 4] - 2]
    table[last[10:]] = table[last[:10]]
    return table, rng.integers(0, 2, len(SIZES))[OF_PERSON]


def fitted(pool):
    how = recipe(n_models=32, step=STEP, total=TOTAL)
    return fit(pool, small_learner("decision-tree"), how, n_jobs=1)


class Game(NamedTuple):
    fitted: Fit
    printed: dict[str, float]  # ceilings by attack


@pytest.fixture(scope="module")
def by_person():
    return played(fitted(Pool.of(*hospital(), persons=OF_PERSON)))


@pytest.fixture(scope="module")
def by_content():
    return played(fitted(Pool.of(*hospital())))


@pytest.fixture(scope="module")
def by_row():
    """Each row drawn by itself, and the ceiling that used to be printed for membership and reconstruction."""
    made = fitted(replace(Pool.of(*hospital()), units=Units(np.arange(len(OF_PERSON)), "record")))
    return Game(made, dict.fromkeys(("membership", "reconstruction"), success_bound(TOTAL)))


def played(made):
    bounds = report_privacy(made.recipe, made.ensemble.space, None)["bounds"]
    return Game(made, {attack: bound["success"] for attack, bound in bounds.items()})


def has_any(made, groups):
    """Return which models were trained on any record of each group (n_models, n_groups)."""
    matrix = np.zeros((made.recipe.n_models, groups.max() + 1), dtype=bool)
    for i in range(len(matrix)):
        matrix[i, groups[made.trained_on(i)]] = True
    return matrix


def beliefs_after(made, records, seed):
    """Ask about some records until the budget is spent; return the beliefs and the secrets of all trials."""
    rows = made.pool.rows.take(records)
    votes = made.ensemble.votes(rows)
    run = simulate(
        votes, made.pool.labels[records], STEP, n_trials=TRIALS, seed=seed, n_queries=QUERIES, n_jobs=1
    )
    assert run.spent_nats().max() <= TOTAL
    return np.exp(run.log_belief[:, -1]), run.secrets


def wins_against(made, groups, targets):
    """Play membership of each target, asking about its own records; return wins and games."""
    members, wins = has_any(made, groups), 0
    for target in targets:
        beliefs, secrets = beliefs_after(made, np.flatnonzero(groups == target), int(target))
        guesses = beliefs @ members[:, target] > 0.5
        wins += int((guesses == members[secrets, target]).sum())
    return wins, TRIALS * len(targets)


def interval(wins, games):
    return binomtest(wins, games).proportion_ci(0.99)


@pytest.mark.parametrize("size", range(1, 11))
def test_a_person_is_protected_however_many_records_they_have(by_person, size):
    """The optimal attack on a person's membership stays below the ceiling that is printed."""
    targets = np.flatnonzero(size == SIZES)
    assert (
        interval(*wins_against(by_person.fitted, OF_PERSON, targets)).high < by_person.printed["membership"]
    )


def test_the_attack_on_persons_learns_something(by_person):
    """It is right more often than a guess, or the game would prove nothing."""
    assert interval(*wins_against(by_person.fitted, OF_PERSON, range(len(SIZES)))).low > 0.52


@pytest.mark.parametrize("size", range(2, 11))
def test_rows_drawn_one_by_one_expose_persons(by_row, size):
    """The same attack passes the ceiling that was printed for rows, for persons of two records already."""
    targets = np.flatnonzero(size == SIZES)
    assert interval(*wins_against(by_row.fitted, OF_PERSON, targets)).low > by_row.printed["membership"]


def shared(made):
    """Return every fourth of the contents that occur more than once, within a person and between two."""
    several = np.flatnonzero(np.bincount(made.pool.contents) > 1)
    assert len(several) == 14 + 10
    return several[::4]


def test_a_content_that_occurs_twice_is_protected(by_content):
    """Without persons, whether a content was trained on is told no more often than is printed."""
    made = by_content.fitted
    wins = wins_against(made, made.pool.contents, shared(made))
    assert interval(*wins).high < by_content.printed["membership"] == success_bound(TOTAL)


def test_rows_drawn_one_by_one_expose_contents(by_row):
    """Drawn separately, of two identical rows one is in 3/4 of the subsets: the ceiling for rows is passed."""
    made = by_row.fitted
    assert interval(*wins_against(made, made.pool.contents, shared(made))).low > by_row.printed["membership"]


def reconstructions(made):
    """Ask about a content that occurs more than once, then name the likeliest of all; return wins and games."""
    members, wins, games = has_any(made, made.pool.contents), 0, 0
    for seed, content in enumerate(shared(made)):
        beliefs, secrets = beliefs_after(made, np.flatnonzero(made.pool.contents == content), seed)
        named = np.argmax(beliefs @ members, axis=1)
        wins, games = wins + int(members[secrets, named].sum()), games + len(secrets)
    return wins, games


def test_a_record_that_two_persons_have_is_named_no_more_often_than_printed(by_person, by_content, by_row):
    """Reconstruction starts where contents are most common, which is counted: above 1/2 for persons who share one."""
    for game in (by_person, by_content):
        assert interval(*reconstructions(game.fitted)).high < game.printed["reconstruction"]
    assert by_person.printed["reconstruction"] > by_content.printed["reconstruction"] == success_bound(TOTAL)
    assert interval(*reconstructions(by_row.fitted)).low > by_row.printed["reconstruction"]
