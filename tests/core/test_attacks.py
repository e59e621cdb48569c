"""The table of attacks."""

from pacpredict.core.attacks import QUESTIONS, bound_attacks, question
from pacpredict.core.bounds import success_bound


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
