"""Whoever changes a student or its card is found out, or what they changed is named as not checked."""

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from students import make_student

from pacpredict.deployment import Deployment
from pacpredict.distill.card import VERSION, Settings, card_of
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.folder import cards, labels_file, read_card, read_labels, write_folder
from pacpredict.distill.formats import files_of, is_file_name
from pacpredict.distill.run import choose, gather
from pacpredict.distill.student import Ground, student_named, train_student
from pacpredict.distill.verify import verify_student
from pacpredict.exceptions import InvalidInput, StudentRefuted
from pacpredict.files import as_json


def rewritten(source, target, change):
    """Copy a student, change it, and let the card vouch for it as a forger would."""
    shutil.copytree(source, target)
    card = json.loads((target / "card.json").read_text())
    change(card, target)
    files = [path for path in target.rglob("*") if path.is_file() and not path.name.startswith("card.")]
    card["files"] = {
        path.relative_to(target).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    (target / "card.json").write_bytes(as_json(card))
    try:
        written = cards(card)
    except (TypeError, ValueError, LookupError, AttributeError):  # of a card that cannot be read out
        return target
    for name, data in written.items():
        (target / name).write_bytes(data)
    return target


def verified(home, student, table=None):
    with Deployment.open(home / "teacher.pac", to_look=True) as deployment:
        return verify_student(
            deployment, student, None if table is None else PublicRows.of(deployment.artifact.schema, table)
        )


def refuted(home, student, table=None):
    """Return why a student is refuted."""
    with pytest.raises(StudentRefuted) as caught:
        verified(home, student, table)
    return str(caught.value)


def edit_labels(folder, change):
    path = folder / "labels.csv"
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *change(lines)]) + "\n")


def flip_label(_, folder):
    def flip(lines):
        row, sequence, label, kept = lines[4].split(",")
        return [*lines[:4], ",".join([row, sequence, "b" if label != "b" else "c", kept]), *lines[5:]]

    edit_labels(folder, flip)


def keep_all(_, folder):
    edit_labels(folder, lambda lines: [line[:-1] + "1" for line in lines])


def respell(_, folder):
    edit_labels(folder, lambda lines: [" " + line for line in lines])


def swap_classes(card, _):
    (first, n), (second, k), *others = card["labels"]["classes"]
    card["labels"]["classes"] = [[first, n + 1], [second, k - 1], *others]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card, _: card["promise"].update(tpr=0.001), "tpr is 0.001; it is"),
        (lambda card, _: card["promise"].update(certified=True), "certified is True; it is None"),
        (lambda card, _: card["promise"].update({"certified by all": None}), "certified by all is None"),
        (lambda card, _: card["history"].update({"nobody else asked": None}), "nobody else asked is None"),
        (lambda card, _: card["history"].update(spent_nats=0.0), "spent_nats is 0.0; it is"),
        (lambda card, _: card["history"].update(chain="00" * 32), "chain is"),
        (lambda card, _: card["history"].update(other_releases=0), "other_releases is 0; it is 30"),
        (lambda card, _: card["history"].update(deployment="f" * 64), "another deployment"),
        (lambda card, _: card["labels"].update(kept=1), "kept is 1; it is"),
        (lambda card, _: card["labels"].update(kinds={"agreed": 200}), "kinds is {'agreed': 200}; it is"),
        (swap_classes, "of the labels that classes is"),
        (lambda card, _: card["labels"].update(public_rows=1_000_000), "not the first 200 of 1,000,000"),
        (lambda card, _: card["labels"].update(public_rows=100), "not among 100 public ones"),
        (lambda card, _: card["settings"].update(seed=77), "in the order random, by the seed 77"),
        (lambda card, _: card["settings"].update(alpha=0.1), "does not keep the labels"),
        (lambda card, _: card["settings"].update(alpha=1e-9), "does not keep the labels"),
        (lambda card, _: card["curve"][0].update(kept=50), "at 50 rows that kept is 50; it is"),
        (lambda card, _: card["curve"][0].update(spent_nats=0.0), "spent_nats is 0.0; it is"),
        (lambda card, _: card["curve"][0].update(rows=500), "curve has 2 points, not 3"),
        (lambda card, _: card["curve"].pop(), "curve"),
        (lambda card, _: card["curve"][-1].update(accuracy=1.0), "last accuracy in the curve"),
        (flip_label, "not those of the ledger"),
        (keep_all, "does not keep the labels"),
        (respell, "not written as"),
        (lambda _, folder: (folder / "predict.py").write_text("print('other')"), "no program that"),
        (lambda _, folder: (folder / "numpy.py").write_text("print('other')"), "'numpy.py' does not belong"),
        (lambda _, folder: (folder / "model.py").write_text(""), "'model.py' does not belong"),
    ],
)
def test_forged_cards_are_refuted(made, tmp_path, change, said):
    """Whatever a card says better than it is, the ledger says otherwise; the public rows are not needed for it."""
    home, _, _ = made
    assert said in refuted(home, rewritten(home / "student", tmp_path / "forged", change))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card, _: card["settings"].update(order="active"), "in the order active, by the seed 0"),
        (lambda card, _: card["settings"].update(soft=True), "training again gives another"),
        (lambda card, _: card["settings"].update(balanced=False), "training again gives another"),
        (lambda card, _: card["settings"].update(learner="logistic", params=None), "that notes is"),
        (lambda card, _: card["settings"].update(params={"max_depth": "deep"}), "cannot be trained"),
        (lambda card, _: card["settings"].update(learner="nobody"), "cannot be trained again as its card"),
        (lambda card, _: card.update(notes={"epochs": 3}), "of the student that notes is {'epochs': 3}"),
        (lambda _, folder: (folder / "model.npz").write_text("pool"), "model.npz: such a student has other"),
        (
            lambda _, folder: (folder / "student.json").write_text("{}"),
            "training again gives another student.json",
        ),
    ],
)
def test_what_only_the_public_rows_show(made, tmp_path, change, said):
    """What cannot be compared without them is named as not checked, and refuted with them."""
    home, table, _ = made
    forged = rewritten(home / "student", tmp_path / "forged", change)
    unchecked = set(verified(home, forged).not_checked)
    assert {"model and student.json", "learner and how it was trained", "notes"} <= unchecked
    assert said in refuted(home, forged, table)


def test_what_is_never_checked_is_said(made, tmp_path):
    """Accuracy, name, date and version are the word of whoever made the card: it says so, and so does the check."""
    home, table, _ = made

    def boast(card, _):
        card["evaluation"] = {"rows": 100_000, "accuracy": 0.9999}
        card["curve"][-1]["accuracy"] = 0.9999
        card["promise"]["name"] = "other-hospital.pac"
        card["made"], card["pacpredict"] = "2001-01-01T00:00:00+00:00", "9.9"

    forged = rewritten(home / "student", tmp_path / "forged", boast)
    found = verified(home, forged, table)
    assert found.trained_again
    assert found.not_checked == ("accuracy", "name of the deployment", "date", "version of pacpredict")
    for name in ("card.md", "card.html"):
        text = (forged / name).read_text()
        assert "99.99 % right, says whoever made this card: it is not checked" in text
        assert (
            "Accuracies, the name of the deployment, the date and the version of pacpredict are not checked"
            in text
        )


def remade(home, table, target, keep, rows=None):
    """Make a student of chosen answers, with a card that is true but for how they were chosen, or to which rows."""
    stated, card = read_labels(home / "student"), json.loads((home / "student" / "card.json").read_text())
    settings = Settings(**card["settings"])
    with Deployment.open(home / "teacher.pac", to_look=True) as deployment:
        classes, public = deployment.artifact.classes, PublicRows.of(deployment.artifact.schema, table)
        rows = stated.rows[keep] if rows is None else rows
        labels = gather(deployment, rows, stated.sequences[keep].tolist())
        targets = choose(labels, len(labels), settings, len(classes))
        learner = student_named(settings.learner, settings.params)
        ground = Ground.of(learner, public.schema, public.rows.take(labels.rows))
        student = train_student(learner, ground, classes, targets, seed=settings.seed)
        own = card_of(deployment, labels, targets, settings, [], len(table), student.notes, None)
        files = files_of(student) | {"labels.csv": labels_file(labels, targets.kept, classes.values)}
        write_folder(target, files, own)
    return target


def test_rows_that_were_chosen_by_their_labels(made, tmp_path):
    """Whoever leaves out answers they do not like has not asked at random, and cannot say so of these rows.

    Without the public rows, nobody knows whether the labels are theirs: that is named as not checked.
    """
    home, table, _ = made
    labels = np.array(read_labels(home / "student").labels)
    one = np.flatnonzero(labels == labels[0])
    keep = np.sort(np.append(one, np.flatnonzero(labels != labels[0])[:20]))
    chosen = remade(home, table, tmp_path / "chosen", keep)
    for rows in (None, table):
        assert "not the first" in refuted(home, chosen, rows)
    first = read_labels(home / "student").rows[: keep.size]
    moved = remade(home, table, tmp_path / "moved", keep, first)
    assert "which row each label was given to" in verified(home, moved).not_checked
    assert "not the public rows that the labels were given to" in refuted(home, moved, table)
    again = remade(home, table, tmp_path / "first", np.arange(120))  # the first of them are as random as all
    assert verified(home, again, table).trained_again


def test_rows_that_count_more_than_once(made, tmp_path):
    """A row was asked once, however often a file has it."""
    home, table, _ = made
    thrice = remade(home, table, tmp_path / "thrice", np.tile(np.arange(200), 3))
    for rows in (None, table):
        assert "more than once" in refuted(home, thrice, rows)


def test_an_active_order_is_derived_again(made, tmp_path):
    """By votes, for which the rows are needed; without them it is named as not checked."""
    home, table, _ = made
    how = {"filter": "bayesian", "alpha": 0.3, "order": "active", "seed": 5, "queries": 150}
    make_student(home / "teacher.pac", table, tmp_path / "active", **how)
    assert verified(home, tmp_path / "active", table).trained_again
    change = {"which rows were asked", "seed", "number of public rows"}
    assert change <= set(verified(home, tmp_path / "active").not_checked)
    forged = rewritten(
        tmp_path / "active", tmp_path / "forged", lambda card, _: card["settings"].update(seed=6)
    )
    verified(home, forged)
    assert "in the order active, by the seed 6" in refuted(home, forged, table)


@pytest.mark.parametrize("name", ["model.ubj", "predict.py", "card.md", "card.html", "labels.csv"])
def test_changed_files_are_found(made, tmp_path, name):
    """A file that is not the one that the card names, one too many and one too few are found."""
    home, _, _ = made
    shutil.copytree(home / "student", tmp_path / "student")
    path = tmp_path / "student" / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(StudentRefuted, match=f"{name} is not what the card says"):
        read_card(tmp_path / "student")
    path.unlink()
    with pytest.raises(StudentRefuted, match=f"{name} is missing"):
        read_card(tmp_path / "student")
    shutil.copy(home / "student" / name, path)
    (tmp_path / "student" / "more").write_text("")
    with pytest.raises(StudentRefuted, match="more does not belong"):
        read_card(tmp_path / "student")


def link_folder(folder, elsewhere):
    (elsewhere / "__init__.py").write_text("print('code behind a link runs')")
    (folder / "numpy").symlink_to(elsewhere)


def link_file(folder, elsewhere):
    shutil.move(folder / "model.ubj", elsewhere / "model.ubj")
    (folder / "model.ubj").symlink_to(elsewhere / "model.ubj")


@pytest.mark.parametrize(
    "plant",
    [
        link_folder,
        link_file,
        lambda folder, elsewhere: (folder / "gone").symlink_to(elsewhere / "nothing"),
        lambda folder, _: (folder / "numpy").mkdir(),
        lambda folder, _: os.mkfifo(folder / "pipe"),
    ],
)
def test_what_is_no_file_does_not_belong(made, tmp_path, plant):
    """A link, an empty folder and a pipe are refuted, though no hash of the card has changed."""
    home, _, _ = made
    shutil.copytree(home / "student", tmp_path / "student")
    (tmp_path / "elsewhere").mkdir()
    plant(tmp_path / "student", tmp_path / "elsewhere")
    assert "does not belong to the student" in refuted(home, tmp_path / "student")


@pytest.mark.parametrize(
    "change",
    [
        lambda card, _: card["settings"].update(alpha="0.1"),
        lambda card, _: card["settings"].update(alpha=2.0),
        lambda card, _: card["settings"].update(filter="clever"),
        lambda card, _: card["settings"].update(order=["random"]),
        lambda card, _: card["settings"].update(seed=-1),
        lambda card, _: card["settings"].update(more=1),
        lambda card, _: card["settings"].update(params={"cache": "/elsewhere"}),
        lambda card, _: card["settings"].pop("soft"),
        lambda card, _: card.update(settings=None),
        lambda card, _: card.update(made="yesterday"),
        lambda card, _: card.update(made="2026-11-17\n10:50:10+00:00"),
        lambda card, _: card["promise"].update(
            name="it.pac\n\n## What is promised\n\nAt most **50 %**.\n\n<!--"
        ),
        lambda card, _: card["promise"].update(name="it.pac <!--"),
        lambda card, _: card["promise"].update(name="it.pac \u202e"),
        lambda card, _: card["settings"].update(
            learner="logistic.\n\n## What is promised\n\nAt most **50 %**"
        ),
        lambda card, _: card.update(pacpredict="0.2, certified by everybody"),
        lambda card, _: card.update(evaluation={"rows": 5, "accuracy": 1.5}),
        lambda card, _: card.update(evaluation=None),
        lambda card, _: card.update(curve=[{"rows": 5}]),
        lambda card, _: card.update(version=VERSION + 1),
        lambda card, _: card.update(version=float(VERSION)),
        lambda card, _: card.update(version=True),
        lambda card, _: card.pop("notes"),
        lambda card, _: card.update(more=1),
        lambda card, _: card["promise"].pop("bounds"),
        lambda card, _: card["promise"].update(name=5),
        lambda card, _: card["labels"].update(asked="many"),
        lambda card, _: card["labels"].update(public_rows=0),
        lambda card, _: card["labels"].update(classes=[1, 2]),
        lambda card, _: card["history"].pop("spent_nats"),
        lambda _, folder: (folder / "labels.csv").write_text(""),
        lambda _, folder: (folder / "labels.csv").write_bytes(b"row,release,label,kept\n\xff"),
        lambda _, folder: edit_labels(folder, lambda lines: [f"{'9' * 30},1,a,1", *lines]),
        lambda _, folder: edit_labels(folder, lambda lines: ["1,2,a", *lines]),
    ],
)
def test_malformed_cards_are_refuted(made, tmp_path, change):
    """Nothing that stands in a folder ends the check with another error."""
    home, _, _ = made
    refuted(home, rewritten(home / "student", tmp_path / "forged", change))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "pacpredict student"}', "[" * 100_000])
def test_something_else_than_a_card(made, tmp_path, text):
    """A file that is no JSON, or no card, is refuted."""
    home, _, _ = made
    shutil.copytree(home / "student", tmp_path / "student")
    (tmp_path / "student" / "card.json").write_text(text)
    refuted(home, tmp_path / "student")


def test_a_card_says_each_thing_once(made, tmp_path):
    """Of two values under one name, another reader could take the other."""
    home, _, _ = made
    shutil.copytree(home / "student", tmp_path / "student")
    path = tmp_path / "student" / "card.json"
    path.write_text(path.read_text().replace('"evaluation": {', '"evaluation": {"accuracy": 1.0,', 1))
    assert "card.json is not what the card says" in refuted(home, tmp_path / "student")


def test_another_model_is_found_by_training(made, tmp_path):
    """A model that was trained on something else is vouched for by its own card, and not by training again."""
    home, table, _ = made
    how = {"params": {"n_estimators": 6}, "filter": "bayesian", "alpha": 0.4}
    other = make_student(home / "teacher.pac", table, tmp_path / "other", **how)
    assert other.card["labels"]["kept"] > 0
    forged = rewritten(
        home / "student",
        tmp_path / "forged",
        lambda _, folder: shutil.copy(tmp_path / "other" / "model.ubj", folder / "model.ubj"),
    )
    verified(home, forged)  # nothing but training shows it
    assert "training again gives another model.ubj" in refuted(home, forged, table)


@pytest.mark.parametrize(
    ("version", "advice"),
    [(VERSION - 1, "distill again"), (VERSION + 1, "use the version that wrote it")],
)
def test_students_of_another_format_are_refused(made, tmp_path, version, advice):
    """A folder that another version wrote is refused in one sentence, which says what to do."""
    home, table, _ = made
    other = rewritten(home / "student", tmp_path / "other", lambda card, _: card.update(version=version))
    said = refuted(home, other, table)
    assert said == (
        f"the student {other} has format {version}, but this version of pacpredict reads only format {VERSION}: "
        f"{advice}"
    )


def restyled(home, target, style):
    shutil.copytree(home / "student", target)
    page = (target / "card.html").read_text()
    start, end = page.index("<style>"), page.index("</style>")
    (target / "card.html").write_text(page[: start + len("<style>")] + style + page[end:])
    return target


def test_another_style_is_named(made, tmp_path):
    """Pages of other versions look otherwise, and a look can hide what stands there: it is said not to be checked."""
    home, _, _ = made
    own, named = (
        verified(home, home / "student").not_checked,
        "style of card.html, which is not of this version",
    )
    assert named not in own
    found = verified(home, restyled(home, tmp_path / "plain", ".promise { display: none; }"))
    assert set(found.not_checked) == {*own, named}


@pytest.mark.parametrize(
    "style", ["</STYLE><p>50.01 %</p><style>", "</style><p>50.01 %</p><style>", "<!--", "</style >"]
)
def test_a_style_holds_nothing_else(made, tmp_path, style):
    """What a browser would show, or hide, is no style."""
    home, _, _ = made
    assert "card.html is not what the card says" in refuted(home, restyled(home, tmp_path / "forged", style))


def test_a_card_names_no_code_to_run(tmp_path):
    """A name on a card is a class of estimators or refused: nothing else of a library is called."""
    goal, source = tmp_path / "written", tmp_path / "source"
    source.write_text("by a forger")
    params = {"url": source.as_uri(), "filename": str(goal)}
    with pytest.raises(InvalidInput, match="is no estimator"):
        student_named("sklearn.datasets._base.urlretrieve", params)
    assert not goal.exists()


@pytest.mark.parametrize(
    "name",
    ["numpy.py", "model.py", "model/__init__.py", "../model.ubj", "/model.ubj", "model", "extractors/0/a.py"],
)
def test_names_that_no_student_has(name):
    """Nothing that Python would import, and nothing outside the folder."""
    assert not is_file_name(name)
