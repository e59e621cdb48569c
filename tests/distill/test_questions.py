"""What is asked, in which order and at what cost, before anything is paid for."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from students import STEP, fit_teacher, silent

from pacpredict.core.bounds import success_bound
from pacpredict.deployment import Deployment
from pacpredict.distill.questions import ask, limit_to, prepare
from pacpredict.distill.run import differed_in
from pacpredict.exceptions import BudgetExhausted, InvalidInput


@pytest.fixture
def opened(tmp_path):
    table, _ = fit_teacher(tmp_path / "teacher.pac")
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        yield deployment, deployment.artifact.schema.rows(table)


def prepared(deployment, rows, order="random", seed=0, queries=None):
    with silent("votes") as progress:
        return prepare(
            deployment.curator,
            rows,
            voters=deployment.curator.ensemble,
            differed=partial(differed_in, deployment),
            order=order,
            seed=seed,
            queries=queries,
            progress=progress,
        )


def asked(deployment, questions):
    with silent("answers") as progress:
        return ask(deployment.curator, questions, progress)


def test_a_plan_costs_nothing_and_says_what_asking_costs(opened):
    """Votes are counted, nothing is charged; then exactly what was planned is."""
    deployment, rows = opened
    questions = prepared(deployment, rows)
    assert deployment.privacy()["spent_nats"] == 0
    votes = deployment.curator.ensemble.votes(rows)
    assert questions.n_contested == (votes.min(axis=1) < votes.max(axis=1)).sum() > 10
    assert questions.n_free == len(rows) - questions.n_contested > 10
    budget = deployment.artifact.recipe.budget
    assert questions.steps(budget) == questions.n_contested
    assert questions.steps(replace(budget, charging="flat")) == len(rows)
    assert questions.is_alone
    asked(deployment, questions)
    assert deployment.privacy()["spent_nats"] == questions.n_contested * STEP
    assert prepared(deployment, rows).is_alone
    assert not prepared(deployment, rows.take(np.arange(20))).is_alone


def test_the_order_is_the_same_again(opened):
    """Seed and rows decide the order, also when some rows were answered meanwhile."""
    deployment, rows = opened
    for order in ("random", "active"):
        first = prepared(deployment, rows, order, seed=4)
        half = prepared(deployment, rows, order, seed=4, queries=80)
        np.testing.assert_array_equal(first.rows[:80], half.rows)
        releases = asked(deployment, half)
        again = prepared(deployment, rows, order, seed=4)
        np.testing.assert_array_equal(first.rows, again.rows)
        assert again.n_known >= 80
        assert [one.label for one in asked(deployment, again)][:80] == [one.label for one in releases]
    assert (
        prepared(deployment, rows, seed=5).rows.tolist() != prepared(deployment, rows, seed=6).rows.tolist()
    )


def test_active_asks_what_is_free_first(opened):
    """Rows on which all models agree come first, then the others by how many do."""
    deployment, rows = opened
    questions = prepared(deployment, rows, "active")
    votes = deployment.curator.ensemble.votes(rows)[questions.rows]
    most = np.max([(votes == label).sum(axis=1) for label in range(3)], axis=0)
    assert (np.diff(most) <= 0).all()
    with pytest.raises(InvalidInput, match="random, active"):
        prepared(deployment, rows, "clever")


def test_a_budget_that_does_not_suffice(tmp_path):
    """Nothing is asked if not all of it can be paid, and it is said how much can."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", steps=10)
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        questions = prepared(deployment, deployment.artifact.schema.rows(table))
        budget = deployment.artifact.recipe.budget
        with pytest.raises(BudgetExhausted, match=r"--queries \d+") as caught:
            limit_to(questions, budget, None, 0.5)
        assert deployment.privacy()["queries"] == 0
        fitting = int(str(caught.value).rpartition(" ")[2])
        some = limit_to(questions.first(fitting), budget, None, 0.5)
        asked(deployment, some)
        assert deployment.privacy()["spent_nats"] == 10 * STEP
        with pytest.raises(BudgetExhausted):
            limit_to(questions.first(fitting + 1), budget, None, 0.5)
        rest = deployment.artifact.schema.rows(table).take(questions.rows[fitting:])
        with pytest.raises(BudgetExhausted, match=r"0 steps are left of 10.* Not even the first row fits"):
            limit_to(prepared(deployment, rest), budget, None, 0.5)


def test_until_a_ceiling(opened):
    """Asking ends before what is spent in all passes the budget of the ceiling, and is refused where it has."""
    deployment, rows = opened
    budget = deployment.artifact.recipe.budget
    ceiling = success_bound(20.5 * STEP)
    questions = limit_to(prepared(deployment, rows), budget, ceiling, 0.5)
    assert questions.n_contested == 20
    assert questions.n_refused == len(rows) - len(questions) > 0
    asked(deployment, questions)
    spent = deployment.privacy()["spent_nats"]
    assert spent == 20 * STEP
    assert success_bound(spent) <= ceiling
    with pytest.raises(BudgetExhausted, match="are spent already"):
        limit_to(prepared(deployment, rows), budget, success_bound(19 * STEP), 0.5)


@pytest.mark.parametrize("done", [0.3, 0.9, 1.0])
def test_a_ceiling_is_settled_before_the_first_answer(tmp_path, done):
    """Answers from the belief cost nothing, and make no room: interrupted and begun again, the plan is the same."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", odds_limit=0.03)
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        rows = deployment.artifact.schema.rows(table)
        deployment.ask(table[150:160])  # by somebody else, and some of them come later
        deployment.ask(table[:30].assign(age=25))
        budget, spent = deployment.artifact.recipe.budget, deployment.curator.session.snapshot().spent_steps
        assert spent > 0
        ceiling = success_bound((spent + 30.5) * STEP)
        first = limit_to(prepared(deployment, rows), budget, ceiling, 0.5)
        assert 20 < first.n_contested <= 30
        asked(deployment, first.first(int(done * len(first))))
        again = limit_to(prepared(deployment, rows), budget, ceiling, 0.5)
        np.testing.assert_array_equal(again.rows, first.rows)
        asked(deployment, again)
        after = deployment.curator.session.snapshot().spent_steps
        assert after < spent + first.n_contested  # the belief has answered some
        once_more = limit_to(prepared(deployment, rows), budget, ceiling, 0.5)
        np.testing.assert_array_equal(once_more.rows, first.rows)


def test_a_ceiling_does_not_move_with_what_else_is_known(tmp_path):
    """Rows beyond it that were answered from the belief meanwhile cost nothing, and are left out all the same."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", odds_limit=0.01)  # less than one release could move
    with Deployment.open(tmp_path / "teacher.pac") as deployment:
        rows, budget = deployment.artifact.schema.rows(table), deployment.artifact.recipe.budget
        ceiling = success_bound(30.5 * STEP)
        first = limit_to(prepared(deployment, rows), budget, ceiling, 0.5)
        everything = prepared(deployment, rows)
        asked(deployment, everything)
        assert deployment.privacy()["spent_nats"] == 0
        assert prepared(deployment, rows).most_steps(budget) == everything.n_contested > 30
        again = limit_to(prepared(deployment, rows), budget, ceiling, 0.5)
        np.testing.assert_array_equal(again.rows, first.rows)
        assert again.most_steps(budget) == first.n_contested == 30
        assert prepared(deployment, rows).most_steps(replace(budget, charging="flat")) == len(rows)


def test_equal_rows_are_asked_once(opened):
    """A row that occurs twice has one answer and is charged once."""
    deployment, rows = opened
    twice = type(rows).join([rows, rows])
    questions = prepared(deployment, twice)
    assert questions.n_contested + questions.n_free == len(rows)
    releases = asked(deployment, questions)
    by_row = dict(zip(questions.rows.tolist(), releases, strict=True))
    assert all(by_row[i].sequence == by_row[i + len(rows)].sequence for i in range(len(rows)))
    assert deployment.privacy()["queries"] == len(rows)
