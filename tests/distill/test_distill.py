"""From a deployment to a folder that may be published, and back: the card is true, and what is changed is found."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from artifacts import copy_artifact
from browser import Seen, running_browser
from students import STEP, fit_teacher, make_student, run_program

from pacpredict.core.bounds import success_bound
from pacpredict.core.filters import is_believed, posteriors
from pacpredict.deployment import Deployment
from pacpredict.distill.card import as_name
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.folder import read_labels
from pacpredict.distill.run import Options
from pacpredict.distill.verify import verify_student
from pacpredict.distill.words import markdown
from pacpredict.exceptions import InvalidInput, StudentRefuted

RESUMED = ("labels.csv", "model.ubj", "student.json", "predict.py")


def test_the_card_says_what_holds(made):
    """Ceilings are those of the deployment's total; spending and other answers are counted up to the last label."""
    home, table, done = made
    card = json.loads((home / "student" / "card.json").read_text())
    assert card == json.loads(json.dumps(done.card))
    with Deployment.open(home / "teacher.pac") as deployment:
        privacy, link = deployment.privacy(), deployment.link()
    for name in ("bounds", "tpr", "fpr", "odds_limit", "odds_delta", "total_nats"):
        assert card["promise"][name] == privacy[name]
    assert card["promise"]["bounds"]["membership"]["success"] == success_bound(1000 * STEP)
    history = card["history"]
    assert (history["releases"], history["chain"]) == (link.sequence, link.chain.hex())
    assert history["spent_nats"] == privacy["spent_nats"]
    assert (history["other_releases"], history["success_if_settled"]) == (30, None)
    assert card["labels"]["asked"] == len(table) == sum(card["labels"]["kinds"].values())
    assert sum(n for _, n in card["labels"]["classes"]) == card["labels"]["kept"]


def test_kept_labels_are_those_that_the_belief_supports(made):
    """Computed by hand from votes and the belief at the end, the kept labels are the same."""
    home, table, _ = made
    stated = read_labels(home / "student")
    with Deployment.open(home / "teacher.pac") as deployment:
        rows = deployment.artifact.schema.rows(table).take(stated.rows)
        votes, belief = deployment.curator.ensemble.votes(rows), deployment.curator.session.belief
        codes = deployment.artifact.classes.codes(stated.labels)
    np.testing.assert_array_equal(is_believed(posteriors(votes, belief, 3), codes, 0.3, 8), stated.kept)
    assert 0 < stated.kept.sum() < stated.kept.size


def test_a_learning_curve_is_one_pass(made):
    """Each point has what was spent, kept and learned by then, and the last is the student itself."""
    _, _, done = made
    marks, card = done.card["curve"], done.card
    assert [mark["rows"] for mark in marks] == [50, 100, 200]
    assert marks[-1]["kept"] == card["labels"]["kept"]
    assert marks[-1]["accuracy"] == card["evaluation"]["accuracy"] > 0.4
    assert [mark["spent_nats"] for mark in marks] == sorted(mark["spent_nats"] for mark in marks)
    assert marks[-1]["spent_nats"] == card["history"]["spent_nats"]


def test_settled_beforehand(tmp_path):
    """Only where nobody else was answered is it said what the spending alone would allow."""
    table, _ = fit_teacher(tmp_path / "teacher.pac")
    card = make_student(
        tmp_path / "teacher.pac", table, tmp_path / "student", filter="bayesian", alpha=0.3
    ).card
    history = card["history"]
    assert history["other_releases"] == 0
    assert history["success_if_settled"] == success_bound(history["spent_nats"])
    text = (tmp_path / "student" / "card.md").read_text()
    assert "Only if rows, order and number had been settled before the first answer" in text
    assert "What is spent by now bounds no attack" in text


def test_the_cards_for_people(made):
    """Markdown and HTML say the same: promise, what is not protected, and how to check it."""
    home, _, done = made
    text, page = ((home / "student" / name).read_text() for name in ("card.md", "card.html"))
    for said in (
        "this model together with everything that the deployment has answered and ever will",
        "whoever else is answered by the deployment, before or after, counts as well",
        "30 of them were answers to other queries",
        "Being in the pool of records from which the training set was drawn.",
        "What a single record of the pool says, such as its label",
        done.card["history"]["chain"],
    ):
        assert said in text
        assert said in page
    assert "<script" not in page


def test_names_and_labels_stay_within_their_line(made):
    """What an owner calls a folder or a class ends no line of a card, and begins no part of it."""
    assert as_name("my clinic (2).pac") == "my clinic (2).pac"
    assert as_name("a\n# b <!-- *c*\udcff.pac") == "a_# b _!-- _c__.pac"
    _, _, done = made
    card = {**done.card, "labels": {**done.card["labels"], "classes": [["low\n| very", 3]]}}
    assert "| low \\| very | 3 |" in markdown(card).splitlines()


def test_the_page_in_a_browser(made, tmp_path):
    """The card is a page without requests and complaints, in the window of a telephone, too."""
    home, _, _ = made
    with running_browser() as browser:
        for width in (1000, 390):
            page = browser.new_page(viewport={"width": width, "height": 900})
            seen = Seen(page)
            page.goto((home / "student" / "card.html").as_uri())
            assert len(seen.requests) == 1
            assert not seen.complaints
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()


def test_a_true_student_is_confirmed(made):
    """Files, ledger, labels and promise agree; trained again on the public rows, it is the same to the byte."""
    home, table, done = made
    with Deployment.open(home / "teacher.pac", to_look=True) as deployment:
        schema = deployment.artifact.schema
        found = verify_student(deployment, home / "student", PublicRows.of(schema, table))
        assert found.trained_again
        assert (found.labels, found.kept) == (200, done.card["labels"]["kept"])
        with pytest.raises(StudentRefuted, match="not the public rows"):
            verify_student(deployment, home / "student", PublicRows.of(schema, table[::-1]))


def test_an_estimator_is_named_so_that_it_can_be_trained_again(tmp_path):
    """A card says where an estimator of scikit-learn is, and with which parameters; checking makes the same."""
    from sklearn.ensemble import GradientBoostingClassifier  # noqa: PLC0415

    table, _ = fit_teacher(tmp_path / "teacher.pac")
    given = GradientBoostingClassifier(n_estimators=7)
    how = {"learner": given, "params": None, "filter": "bayesian", "alpha": 0.3}
    card = make_student(tmp_path / "teacher.pac", table, tmp_path / "student", **how).card
    assert card["settings"]["learner"].endswith(".GradientBoostingClassifier")
    assert card["settings"]["params"] == {"n_estimators": 7}
    with Deployment.open(tmp_path / "teacher.pac", to_look=True) as deployment:
        public = PublicRows.of(deployment.artifact.schema, table)
        assert verify_student(deployment, tmp_path / "student", public).trained_again


def test_the_program_says_what_the_student_says(made, tmp_path):
    """The folder is used where pacpredict is not installed."""
    home, table, done = made
    table.to_csv(tmp_path / "asked.csv", index=False)
    with Deployment.open(home / "teacher.pac", to_look=True) as deployment:
        rows = done.student.schema.rows(table)
        expected = [deployment.artifact.classes.values[i] for i in done.student.predict(rows)]
    assert run_program(home / "student", tmp_path / "asked.csv")[1:] == expected


KILLED = """
import sys
sys.path[:0] = {paths!r}
import pandas as pd
from killing import killer
from students import silent
from pacpredict.deployment import Deployment
from pacpredict.distill import questions
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.run import Options, distill
questions._AT_ONCE = 20
with Deployment.open({artifact!r}, decode="map", at=killer({point!r}, {times})) as deployment:
    public = PublicRows.of(deployment.artifact.schema, pd.read_pickle({table!r}))
    options = Options("xgboost", {{"n_estimators": 5, "max_depth": 3}}, alpha=0.3)
    distill(deployment, public, options, {out!r}, silent)
"""


@pytest.mark.parametrize(("point", "times"), [("after-draw", 5), ("before-commit", 3), ("after-commit", 5)])
def test_killed_half_way(tmp_path, point, times):
    """Killed with SIGKILL while it asks, and begun again: the student of an uninterrupted run, at the same charge.

    By `map` at a tiny budget labels are those of the models' vote, so that two histories have the same.
    """
    table, _ = fit_teacher(tmp_path / "teacher.pac")
    whole = copy_artifact(tmp_path / "teacher.pac", tmp_path / "whole.pac")
    table.to_pickle(tmp_path / "table")
    script = KILLED.format(
        paths=[str(Path(__file__).parents[1] / "support")],
        artifact=str(tmp_path / "teacher.pac"),
        table=str(tmp_path / "table"),
        out=str(tmp_path / "killed"),
        point=point,
        times=times,
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == -9, done.stderr
    assert not (tmp_path / "killed").exists()
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        paid = deployment.privacy()
    assert 0 < paid["queries"] < 200
    how = {"decode": "map", "alpha": 0.3}
    resumed = make_student(tmp_path / "teacher.pac", table, tmp_path / "resumed", **how)
    uninterrupted = make_student(whole, table, tmp_path / "uninterrupted", **how)
    for name in RESUMED[1:]:
        assert (tmp_path / "resumed" / name).read_bytes() == (tmp_path / "uninterrupted" / name).read_bytes()
    mine, other = (read_labels(tmp_path / name) for name in ("resumed", "uninterrupted"))
    for stated in (mine, other):  # where models are divided in halves, noise decides; those are not kept
        stated.labels[:] = [
            label if kept else None for label, kept in zip(stated.labels, stated.kept, strict=True)
        ]
    np.testing.assert_array_equal(mine.rows, other.rows)
    assert (mine.labels, mine.kept.tolist()) == (other.labels, other.kept.tolist())
    assert (
        resumed.card["history"]["spent_nats"]
        == uninterrupted.card["history"]["spent_nats"]
        > paid["spent_nats"]
    )


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
def test_made_again_from_the_ledger(tmp_path, decode):
    """A run whose answers are all on record charges nothing and makes the same student, whoever asked meanwhile."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", n_classes=2)
    once = make_student(tmp_path / "teacher.pac", table, tmp_path / "once", decode=decode, alpha=0.3)
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        deployment.ask(table[:40].assign(age=77))
        before = deployment.privacy()
    again = make_student(tmp_path / "teacher.pac", table, tmp_path / "again", decode=decode, alpha=0.3)
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        assert deployment.privacy() == before
    for name in RESUMED:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    assert once.card["history"] == again.card["history"]


def test_what_is_refused_before_anything_is_paid(tmp_path):
    """Settings that cannot work are refused while the ledger is still empty."""
    table, _ = fit_teacher(tmp_path / "teacher.pac")
    for options in (
        {"filter": "corrected", "decode": "sample"},
        {"alpha": 0.0},
        {"queries": 0},
        {"curve": (0,)},
        {"learner": "nobody"},
        {"filter": "printed"},
        {"order": "clever"},
    ):
        with pytest.raises(InvalidInput):
            make_student(tmp_path / "teacher.pac", table, tmp_path / "student", **options)
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        assert deployment.privacy()["queries"] == 0
    assert not (tmp_path / "student").exists()
    assert Options().alpha == 0.01
