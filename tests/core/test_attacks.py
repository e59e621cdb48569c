"""The table of attacks, and the epsilon that goes with the prior that is reported."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pacpredict.core.attacks import QUESTIONS, bound_attacks, matching_epsilon, question
from pacpredict.core.bounds import budget_for_success, success_bound
from pacpredict.exceptions import InvalidProbability


def dp_success(epsilon, delta, prior):
    """Return the success of the best test under (epsilon, delta)-DP, by trying many false positive rates."""
    corner = (1 - delta) / (1 + math.exp(epsilon))
    fpr = np.union1d(np.linspace(0, 1, 2001), [corner, 1 - delta, delta])
    power = np.minimum(
        np.minimum(math.exp(epsilon) * fpr + delta, 1 - math.exp(-epsilon) * (1 - delta - fpr)), 1
    )
    return max(float((share * power + (1 - share) * (1 - fpr)).max()) for share in (prior, 1 - prior))


@settings(deadline=None, max_examples=200)
@given(
    prior=st.one_of(st.just(0.5), st.floats(0.5, 0.99)),
    share=st.floats(1e-4, 0.99),
    delta=st.sampled_from([0, 1e-5, 0.01]),
)
def test_matching_epsilon_allows_the_same_success(prior, share, delta):
    """DP with this epsilon allows a test with this prior what the budget does, and with a smaller one less."""
    budget = budget_for_success(prior + share * (1 - prior), prior)
    success, epsilon = success_bound(budget, prior), matching_epsilon(budget, prior, delta)
    if epsilon == 0:
        assert success <= dp_success(0, delta, prior) + 1e-12
        return
    assert dp_success(epsilon, delta, prior) == pytest.approx(success, rel=1e-9)
    if success > prior + (1 - prior) * delta + 1e-6:
        assert dp_success(0.999 * epsilon, delta, prior) < success


def test_matching_epsilon_follows_the_prior():
    """At prior 1/2 it is the paper's; a budget of 0 matches 0; no membership inference has a smaller prior."""
    assert matching_epsilon(0.0) == matching_epsilon(0.0, 0.75) == 0
    assert matching_epsilon(0.1109, 1 / 128) == matching_epsilon(0.1109, 0.5) == pytest.approx(1, abs=1e-3)
    assert matching_epsilon(0.1109, 0.75) > 2
    assert matching_epsilon(1.0) == math.inf
    with pytest.raises(InvalidProbability):
        matching_epsilon(0.1, 1.5)


def test_the_table_words_each_attack_as_its_question():
    """Every attack has a question, a prior and a ceiling; a certain guess has nothing to gain."""
    priors = dict.fromkeys(QUESTIONS, 0.5) | {"model": 1.0, "full-set": 1 / 8}
    table = bound_attacks(priors, 0.1, unit="person", n_models=8)
    assert list(table) == list(QUESTIONS)
    assert table["membership"] == {
        "question": "was this person trained on?",
        "prior": 0.5,
        "success": success_bound(0.1),
    }
    assert table["full-set"]["success"] == success_bound(0.1, 1 / 8)
    assert (table["model"]["prior"], table["model"]["success"]) == (1, 1)
    assert table["model"]["question"] == "which of the 8 models answers?"
    assert table["group-any"]["question"] == "trained on any of 5 random persons?"
    assert (
        question("group-exact", unit="record", n_models=8, group_size=3)
        == "trained on which of 3 random records?"
    )
    assert not any("{" in bound["question"] for bound in table.values())
