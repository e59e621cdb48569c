"""`pacpredict distill` on the terminal: what it costs, what it makes, and what it refuses without losing anything."""

import json

import numpy as np
import pandas as pd
import pytest
from artifacts import fit_small
from records import recipe
from small_extractors import averages
from students import STEP, as_csv, fit_teacher
from terminal import refused, run_here
from tiny_networks import plain_texts
from whole_values import SIDE, images, png

from pacpredict.core.bounds import success_bound
from pacpredict.deployment import Deployment
from pacpredict.features.onnx_images import OnnxImages
from pacpredict.learners.heads.learner import Heads
from pacpredict.training.pool import Pool


@pytest.fixture
def teacher(tmp_path):
    """An artifact and the public rows beside it, as files."""
    table, truth = fit_teacher(tmp_path / "teacher.pac")
    as_csv(table, tmp_path / "public.csv")
    as_csv(table.assign(label=truth), tmp_path / "test.csv")
    return tmp_path


def distill(home, *arguments):
    return ["distill", home / "teacher.pac", home / "public.csv", "--set", "n_estimators=5", *arguments]


def state_of(home):
    with Deployment.open(home / "teacher.pac", to_look=True) as deployment:
        return deployment.privacy()


def test_a_student(teacher, capsys):
    """One command makes it, another confirms it, a third trains it again; a dry run had said what it costs."""
    code, output, _ = run_here(capsys, *distill(teacher, "--dry-run", "--json"))
    cost = json.loads(output)
    assert (code, state_of(teacher)["queries"]) == (0, 0)
    out, test = ["--out", teacher / "student"], ["--test", teacher / "test.csv", "--target", "label"]
    how = ["--filter", "bayesian", "--alpha", "0.3", "--curve", "50", "--balanced", "--soft"]
    code, output, _ = run_here(capsys, *distill(teacher, *out, *how, *test))
    assert code == 0
    assert "% of 200 rows are right" in output
    assert state_of(teacher)["spent_nats"] == cost["spent_nats_after"] == cost["contested"] * STEP
    code, output, _ = run_here(capsys, "distill", teacher / "teacher.pac", "--verify", teacher / "student")
    assert code == 0
    assert "not checked: accuracy, name of the deployment, date" in output
    assert "model and student.json" in output.splitlines()[-1]
    code, output, _ = run_here(capsys, *distill(teacher, "--verify", teacher / "student"))
    assert (code, "identical to the byte" in output) == (0, True)
    assert (
        output.splitlines()[-1]
        == "not checked: accuracy, name of the deployment, date, version of pacpredict"
    )
    assert "exists already" in refused(capsys, *distill(teacher, *out))
    within = ["--out", teacher / "teacher.pac" / "new" / "student"]
    assert "is in the artifact teacher.pac" in refused(capsys, *distill(teacher, *within))


def test_what_is_spent_by_now(teacher, capsys):
    """Said is what all answers have cost by now, those among them that came after the student's labels."""
    options = ["--queries", "100", "--filter", "bayesian", "--alpha", "0.3"]
    assert run_here(capsys, *distill(teacher, *options, "--out", teacher / "first"))[0] == 0
    by_then = state_of(teacher)["spent_nats"]
    assert run_here(capsys, "predict", teacher / "teacher.pac", teacher / "public.csv")[0] == 0
    by_now = state_of(teacher)["spent_nats"]
    assert by_now > by_then
    _, output, _ = run_here(capsys, *distill(teacher, *options, "--out", teacher / "second"))
    assert f"; {by_now:.6g} of " in output
    card = json.loads((teacher / "second" / "card.json").read_text())
    assert card["history"]["spent_nats"] == by_then


def test_ctrl_c_says_how_to_go_on(teacher, capsys, monkeypatch):
    """Whoever interrupts it, perhaps after everything was paid for, is told that the same command goes on."""

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pacpredict.distill.run.train_student", interrupt)
    code, _, errors = run_here(capsys, *distill(teacher, "--out", teacher / "student"))
    assert (code, state_of(teacher)["queries"] > 0) == (130, True)
    assert errors.splitlines()[-1] == "interrupted; run the same command again to go on from here"


def test_no_label_is_kept(teacher, capsys):
    """The command fails with what to do; all that was paid for is on record, and the next run uses it."""
    public = teacher / "public.csv"
    lines = public.read_text().splitlines()
    with Deployment.open(teacher / "teacher.pac") as deployment:
        from pacpredict.cli.queries import read_columns, with_missing  # noqa: PLC0415

        rows = deployment.artifact.schema.rows(with_missing(read_columns(public), []))
        votes = deployment.curator.ensemble.votes(rows)
    differ = votes.min(axis=1) < votes.max(axis=1)
    public.write_text(
        "\n".join([lines[0], *(line for line, is_it in zip(lines[1:], differ, strict=True) if is_it)])
    )
    how = ["--filter", "bayesian", "--out", teacher / "student"]
    code, _, errors = run_here(capsys, *distill(teacher, *how, "--alpha", "0.01"))
    assert code == 2
    assert f"kept none of {differ.sum()} labels" in errors
    paid = state_of(teacher)["spent_nats"]
    assert paid == differ.sum() * STEP
    assert run_here(capsys, *distill(teacher, *how, "--alpha", "0.6"))[0] == 0
    assert state_of(teacher)["spent_nats"] == paid


def test_one_class(teacher, capsys):
    """Labels of one class alone train nobody, and are not lost either."""
    public = teacher / "public.csv"
    with Deployment.open(teacher / "teacher.pac") as deployment:
        from pacpredict.cli.queries import read_columns, with_missing  # noqa: PLC0415

        rows = deployment.artifact.schema.rows(with_missing(read_columns(public), []))
        votes = deployment.curator.ensemble.votes(rows)
    lines = public.read_text().splitlines()
    same = (votes == 0).all(axis=1)
    public.write_text(
        "\n".join([lines[0], *(line for line, is_it in zip(lines[1:], same, strict=True) if is_it)])
    )
    code, _, errors = run_here(capsys, *distill(teacher, "--out", teacher / "student"))
    assert code == 2
    assert "of one class: there is nothing to tell apart. All labels stay on record" in errors
    assert state_of(teacher)["queries"] == same.sum() > 0


def test_a_learner_that_fails(teacher, capsys):
    """What a library cannot train is said in its words; the labels are on record, and the next run uses them."""
    out = ["--learner", "logistic", "--filter", "bayesian", "--alpha", "0.3", "--out", teacher / "student"]
    command = ["distill", teacher / "teacher.pac", teacher / "public.csv", *out]
    code, _, errors = run_here(capsys, *command, "--set", "C=-5")
    assert (code, "Traceback" in errors) == (2, False)
    assert "The 'C' parameter" in errors
    assert "All labels stay on record" in errors
    paid = state_of(teacher)
    assert paid["queries"] == 200
    assert run_here(capsys, *command)[0] == 0
    assert state_of(teacher)["spent_nats"] == paid["spent_nats"]


def test_columns_that_do_not_match(teacher, capsys):
    """Rows of another table are refused before anything is asked."""
    public = teacher / "public.csv"
    public.write_text(public.read_text().replace("hours", "weeks", 1))
    assert "'weeks'" in refused(capsys, *distill(teacher, "--out", teacher / "student"))
    as_csv(pd.read_csv(teacher / "test.csv").rename(columns={"label": "id"}), public)
    errors = refused(capsys, *distill(teacher, "--out", teacher / "student"))
    assert "the model has no column 'id'; leave out what is no feature" in errors
    public.write_text("age\n3\n")
    assert "are missing" in refused(capsys, *distill(teacher, "--out", teacher / "student"))
    assert state_of(teacher)["queries"] == 0


def test_a_budget_that_is_too_small(tmp_path, capsys):
    """Nothing is paid if it does not suffice for all; the number of rows that fit is said, and works."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", steps=10)
    as_csv(table, tmp_path / "public.csv")
    out = ["--out", tmp_path / "student"]
    code, _, errors = run_here(capsys, *distill(tmp_path, *out))
    assert code == 2
    assert "Nothing was asked or charged" in errors
    assert state_of(tmp_path)["queries"] == 0
    fitting = errors.split()[-1]
    assert run_here(capsys, *distill(tmp_path, *out, "--queries", fitting))[0] == 0
    assert state_of(tmp_path)["spent_nats"] == 10 * STEP
    code, _, errors = run_here(
        capsys, *distill(tmp_path, "--out", tmp_path / "more", "--until-success", "0.5001")
    )
    assert (code, "are spent already" in errors) == (2, True)


def test_a_budget_of_which_every_row_costs_a_step(tmp_path, capsys):
    """Where rows are charged whether models differ or not, all of them are counted in what is said."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", steps=10, charging="flat")
    as_csv(table, tmp_path / "public.csv")
    code, _, errors = run_here(capsys, *distill(tmp_path, "--dry-run"))
    assert (code, "200 of the rows cost a step" in errors) == (2, True)
    assert "The first 10 of 200 rows fit: --queries 10" in errors
    _, output, _ = run_here(capsys, *distill(tmp_path, "--dry-run", "--queries", "10"))
    assert "all models agree: a step each" in output


def test_a_dry_run_begins_nothing(teacher, capsys):
    """An anchor is used for good once it is; by a look at the cost it is not."""
    look = distill(teacher, "--dry-run")
    assert "has no anchor yet" in refused(capsys, *look, "--anchor", teacher / "anchor")
    assert run_here(capsys, *look)[0] == 0


def test_until_a_ceiling(teacher, capsys):
    """Asking ends by itself where the ceiling is reached."""
    how = ["--until-success", "0.502", "--out", teacher / "student", "--order", "active", "--json"]
    code, output, _ = run_here(capsys, *distill(teacher, *how))
    card = json.loads(output)
    assert code == 0
    assert card["history"]["success_if_settled"] <= 0.502
    assert card["labels"]["asked"] < 200


def test_a_dry_run_says_of_the_ceiling_what_the_card_says(tmp_path, capsys):
    """What was spent is no bound where the belief answers at no charge: the most that rows could have cost is."""
    table, _ = fit_teacher(tmp_path / "teacher.pac", odds_limit=0.03)
    as_csv(table, tmp_path / "public.csv")
    how = ["--filter", "bayesian", "--alpha", "0.3"]
    before = json.loads(run_here(capsys, *distill(tmp_path, *how, "--dry-run", "--json"))[1])
    code, output, _ = run_here(capsys, *distill(tmp_path, *how, "--out", tmp_path / "student", "--json"))
    history = json.loads(output)["history"]
    assert code == 0
    assert success_bound(history["spent_nats"]) < history["success_if_settled"]
    after = json.loads(run_here(capsys, *distill(tmp_path, *how, "--dry-run", "--json"))[1])
    assert before["success_if_settled"] == after["success_if_settled"] == history["success_if_settled"]
    assert after["success_if_settled"] == success_bound(before["contested"] * STEP)


def test_wrong_command_lines(teacher, capsys):
    """What is missing or does not fit is said before anything is read."""
    assert "say where the student shall be" in refused(capsys, *distill(teacher))
    assert "give the public rows" in refused(capsys, "distill", teacher / "teacher.pac")
    assert "has no card.json" in refused(capsys, "distill", teacher / "teacher.pac", "--verify", teacher)
    assert "has no column 'nobody'" in refused(
        capsys,
        *distill(teacher, "--out", teacher / "s", "--test", teacher / "test.csv", "--target", "nobody"),
    )
    assert state_of(teacher)["queries"] == 0


def test_a_student_of_texts(tmp_path, capsys):
    """Texts go in as a file with one column; where features are kept is not on the card."""
    texts, labels = plain_texts(120)
    fit_small(tmp_path / "teacher.pac", Pool.of(texts[:60], labels[:60]), Heads("tfidf"), recipe(n_models=8))
    as_csv({"text": texts[60:]}, tmp_path / "public.csv")
    as_csv({"text": texts[60:], "mood": labels[60:]}, tmp_path / "test.csv")
    how = [
        "--features",
        "tfidf",
        "--feature-cache",
        tmp_path / "cache",
        "--jobs",
        "1",
        "--filter",
        "bayesian",
    ]
    made = ["distill", tmp_path / "teacher.pac", tmp_path / "public.csv", *how, "--alpha", "0.4", "--json"]
    test = ["--test", tmp_path / "test.csv", "--target", "mood", "--out", tmp_path / "student"]
    code, output, errors = run_here(capsys, *made, *test)
    assert code == 0, errors
    card = json.loads(output)
    assert card["settings"]["params"] == {"features": "tfidf"}
    assert str(tmp_path) not in (tmp_path / "student" / "card.json").read_text()
    assert card["evaluation"]["accuracy"] > 0.7
    command = ["distill", tmp_path / "teacher.pac", tmp_path / "public.csv", "--verify", tmp_path / "student"]
    assert run_here(capsys, *command)[0] == 0


@pytest.fixture
def of_images(tmp_path):
    """A deployment over images, with a folder of public ones and the extractor beside it."""
    pixels, labels = images(100)
    model = averages(tmp_path / "means.onnx", SIDE)
    pool = Pool.of(pixels[:60], labels[:60])
    fit_small(tmp_path / "teacher.pac", pool, Heads(model, cache=None), recipe(n_models=8))
    (tmp_path / "public").mkdir()
    for i, image in enumerate(pixels[60:]):
        (tmp_path / "public" / f"{i:02}.png").write_bytes(png(image))
    return tmp_path


@pytest.mark.parametrize(
    "how", [[], ["--learner", "logistic"], ["--learner", "bert-small"], ["--features", "tfidf"]]
)
def test_a_learner_of_something_else(of_images, capsys, how):
    """A learner that does not take what a deployment answers is refused before anything is asked."""
    command = ["distill", of_images / "teacher.pac", of_images / "public", *how]
    for wanted in (["--out", of_images / "student"], ["--dry-run"]):
        said = refused(capsys, *command, *wanted)
        assert "this deployment answers images: choose heads with features of images" in said
    assert state_of(of_images)["queries"] == 0


def test_a_table_is_not_for_heads(teacher, capsys):
    """The same of a deployment over a table."""
    command = ["distill", teacher / "teacher.pac", teacher / "public.csv", "--features", "tfidf"]
    assert "learns from texts, and this deployment answers a table" in refused(
        capsys, *command, "--out", teacher / "student"
    )
    assert state_of(teacher)["queries"] == 0


def test_features_that_fail(of_images, capsys, monkeypatch):
    """An extractor of the student's own that fails on a row is said before any is asked."""
    look = OnnxImages.extract
    monkeypatch.setattr(
        OnnxImages, "extract", lambda self, value: look(self, value) * (np.nan if self.name == "other" else 1)
    )
    command = ["distill", of_images / "teacher.pac", of_images / "public", "--jobs", "1"]
    command += ["--features", averages(of_images / "other.onnx", 2), "--feature-cache", "none"]
    code, _, errors = run_here(capsys, *command, "--out", of_images / "student")
    assert (code, "other returned a feature that is not a finite number" in errors) == (2, True)
    assert state_of(of_images)["queries"] == 0


def test_features_are_computed_once(of_images, capsys, monkeypatch):
    """A deployment and its student that see alike share features: each image is looked at once, dry run and all."""
    seen, look = [], OnnxImages.extract
    monkeypatch.setattr(
        OnnxImages, "extract", lambda self, value: seen.append(value.tobytes()) or look(self, value)
    )
    command = ["distill", of_images / "teacher.pac", of_images / "public", "--alpha", "0.4", "--jobs", "1"]
    command += ["--filter", "bayesian", "--features", of_images / "means.onnx"]
    command += ["--feature-cache", of_images / "cache"]
    assert run_here(capsys, *command, "--dry-run")[0] == 0
    assert len(seen) == len(set(seen)) == 40
    code, _, errors = run_here(capsys, *command, "--out", of_images / "student")
    assert (code, len(seen)) == (0, 40)
    assert "40/40 features" in errors
    other = [*command[:-3], averages(of_images / "other.onnx", 2), *command[-2:]]
    assert run_here(capsys, *other, "--out", of_images / "other")[0] == 0
    assert len(seen) == 80  # through its own eyes
