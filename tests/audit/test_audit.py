"""The audit of an artifact: it needs no secret and touches no ledger, says what it found, and can be shown."""

import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape

import numpy as np
import pytest
from browser import Seen, running_browser
from records import labels_of, mixed_table

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.cells import measured
from pacpredict.audit.estimates import RATES, Estimate, clopper_pearson
from pacpredict.audit.live import LedgerReview, Moment, MovedUnit, review
from pacpredict.audit.live_page import render_review
from pacpredict.audit.membership import memory_needed
from pacpredict.audit.page import render
from pacpredict.audit.presence import N_VARIANTS, n_variants
from pacpredict.audit.run import Plan, audit
from pacpredict.audit.self_test.results import CheckResult
from pacpredict.audit.subject import Subject
from pacpredict.audit.words import ASSUMED, NOT_TESTED, broken, pool_in_words, show, to_json, verdict
from pacpredict.cli import main
from pacpredict.cli.audit import _print, _print_review
from pacpredict.cli.data import read_pool_of
from pacpredict.cli.numbers import ONE_PER_CORE
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidArtifact, InvalidInput, InvalidTable, InvalidVotes

SMALL = Plan(n_trials=20, n_queries=50, n_targets=1, n_runs=30, n_sessions=4)
SHORT = [
    "--trials",
    "20",
    "--queries",
    "50",
    "--targets",
    "1",
    "--runs",
    "30",
    "--sessions",
    "4",
    "--jobs",
    "1",
]
TOO_LITTLE = CheckResult(
    "noise variance", "noise has the calibrated variance", holds=False, seen="too little"
)
CHANGING = ("ledger.sqlite", "witness.jsonl")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An artifact whose models disagree on much, and which has answered some queries."""
    folder = tmp_path_factory.mktemp("audit")
    table = mixed_table(80).drop(columns="note")
    table["label"] = labels_of(table)
    table.to_csv(folder / "records.csv", index=False)
    path = folder / "a.pac"
    how = [
        "--learner",
        "decision-tree",
        "--models",
        "16",
        "--queries",
        "1e4",
        "--success",
        "0.55",
        "--jobs",
        "1",
    ]
    assert main(["fit", str(folder / "records.csv"), "--target", "label", *how, "--out", str(path)]) == 0
    with Deployment.open(path) as deployment:
        deployment.ask(mixed_table(60, seed=5).drop(columns="note"))
    return path


@pytest.fixture(scope="module")
def found(home):
    artifact = Artifact.open(home, blind=True)
    return audit(artifact, read_pool_of(artifact, None), SMALL)


def digests(home):
    return {name: hashlib.sha256((home / name).read_bytes()).hexdigest() for name in CHANGING}


def text_of(page):
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_simulated_audit_needs_no_secret_and_no_ledger(home, tmp_path, capsys):
    """Without the files of secret, ledger and witness the audit says the same as with them."""
    bare = tmp_path / "a.pac"
    shutil.copytree(home, bare)
    for name in ("secret.json", *CHANGING):
        (bare / name).unlink()
    said = []
    for path in (home, bare):
        assert main(["audit", str(path), *SHORT, "--json"]) == 0
        said.append(json.loads(capsys.readouterr().out))
    for one in said:
        del one["made"]
        # Sessions of the self-test draw from the operating system, so their figures are never the same.
        one["self_test"] = {check["check"]: check["holds"] for check in one["self_test"]}
        one["verdict"] = [sentence for sentence in one["verdict"] if not sentence.startswith("The self-test")]
    assert said[0] == said[1]


def test_a_simulated_audit_opens_neither_secret_nor_ledger(home):
    """Of all files that are opened none is the secret's, the ledger's or the witness's, and their bytes stay."""
    before, opened, watching = digests(home), [], True

    def watch(event, arguments):
        if watching and event in {"open", "sqlite3.connect"}:
            opened.append(str(arguments[0]))

    sys.addaudithook(watch)  # for the rest of the process: there is no way to remove one
    assert main(["audit", str(home), *SHORT]) == 0
    watching = False
    assert any("subsets.npy" in name for name in opened)
    assert not [name for name in opened if re.search(r"secret\.json|ledger\.sqlite|witness", name)]
    assert digests(home) == before


def test_an_artifact_without_its_secret_has_none(home):
    """Whoever opened it so cannot ask for the secret, nor answer with it."""
    with pytest.raises(InvalidArtifact, match="without its secret"):
        Artifact.open(home, blind=True).secret()


def test_what_was_found_is_said_in_words_and_numbers(found):
    """The page has every attack, what was assumed and what was not tested; JSON says the same to programs."""
    assert not list(broken(found))
    text, said = text_of(render(found)), to_json(found)
    assert "Nothing was found that contradicts what is promised." in text
    for words in (
        *ASSUMED,
        *NOT_TESTED,
        *(attack.question for attack in found.attacks if "near" in attack.name),
    ):
        assert words in text, words
    assert said["holds"] is True
    assert len(said["duels"]) == len(found.duels)
    assert {one["check"] for one in said["self_test"]} >= {"noise independence", "belief", "charges", "total"}
    json.dumps(said, allow_nan=False)


def test_every_rate_of_the_page_has_its_interval(found, home, capsys):
    """A rate above its ceiling by chance alarms nobody who sees how wide its interval is: page and terminal show it."""
    assert measured(Estimate(0.123, 0.0456, 1.2)) == "12.30 %<small>4.56 to 100.00</small>"
    assert measured(Estimate(0.0, -0.1, 1e-7)) == "0.00 %<small>0.00 to 1e-05</small>"
    page = render(found)
    for one in (*found.attacks[-3:], *found.duels, found.larger.looks[-1]):
        assert measured(one.success) in page
    assert all(measured(point.tpr) in page for point in found.larger.true_positives)
    assert main(["audit", str(home), *SHORT]) == 0
    last = found.attacks[-1]
    assert f"{show(last.success.low)} to {show(last.success.high)}" in capsys.readouterr().out


def test_the_terminal_says_which_total_rows_are_about(found, capsys):
    """Adversaries who have a larger total than is promised of are not listed among those who have the deployment's."""
    _print(found)
    own, larger = capsys.readouterr().out.split(
        "Adversaries after one record, at a total of 0.111 nats instead"
    )
    asked, total = found.inferences[0].looks[-1].charged_nats, found.about["total_nats"]
    assert asked < total, "fewer questions than the total allows"
    assert f"after {asked:.3g} of its {total:.3g} nats" in own
    assert "73.10 %" not in own
    assert "73.10 %" in larger


def test_few_games_are_no_share_of_the_way(found):
    """Where chance reaches over much of the way to a ceiling, rate and interval are said, and no share of it."""
    few = [one._replace(runs=199) for one in found.duels]
    many = [one._replace(runs=200) for one in found.duels]
    assert "of the way" not in verdict(replace(found, duels=few))[-1]
    assert "of 199 games (" in verdict(replace(found, duels=few))[-1]
    assert "% of the way there from a coin." in verdict(replace(found, duels=many))[-1]


def test_records_that_are_not_named_are_counted(found, capsys):
    """The terminal names three rows of a person, says how many more there are, and from where it counts."""
    moment = Moment(datetime(2024, 1, 1, tzinfo=UTC), 1, 0.1, 0.1, 0.1, 0.1, 0.1)
    _print_review(LedgerReview([moment], [MovedUnit(62, [70, 736, 766, 800], 0.5, 0.1)], 1.0, None, "person"))
    said = capsys.readouterr().out
    assert "70, 736, 766 and 1 more" in said
    assert "rows of the data, from 0" in said


def test_the_page_says_in_words_what_answers_tell_about_the_pool(found):
    """For the deployment's own decoder, by label and charge and by labels alone; and which decoder tells least here."""
    text = text_of(render(found))
    assert all(sentence in text for sentence in pool_in_words(found))
    assert to_json(found)["about_the_pool"] == pool_in_words(found)
    assert "by labels and charges of `argmax`" in pool_in_words(found)[0]
    (name, of_remembered), *_ = found.presences.items()
    many = n_variants(found.about["step_budget_nats"])
    assert 1 < many < N_VARIANTS
    rates = {
        (one, n): (0.1 * place if n == 1 else 0.9 - 0.1 * place)
        for place, one in enumerate(("sample", "argmax", "map"))
        for n in (1, many)
    }
    made_up = [
        one._replace(
            tpr=[rates.get((one.answerer, one.questions), 0.0) / (2 if one.sees == "labels" else 1)]
            * len(RATES),
            charged_in=0.75,
            charged_out=0.5,
        )
        for one in of_remembered
    ]
    about = {**found.about, "decoder": "argmax"}
    own, charges, least = pool_in_words(replace(found, about=about, presences={name: made_up}))
    assert (
        f"once, or about {many} variants of it that nobody would tell apart, finds 10.00 % and 80.00 % to be"
        in own
    )
    assert "by labels alone 5.00 % and 40.00 %" in own
    assert "More variants were not measured" in own
    assert "75.00 % are charged for with the record in the pool, and 50.00 % without" in charges
    assert (
        "`sample` tells least of the three decoders by one question, and `map` by many: 0.00 % and 70.00 %"
        in least
    )
    alike = pool_in_words(replace(found, about=about | {"charging": "flat"}, presences={name: made_up}))
    assert "Every answer is charged alike here, so that charges tell nothing" in alike[1]
    single = [one for one in made_up if one.questions == 1]
    once, _, least = pool_in_words(replace(found, about=about, presences={name: single}))
    assert "asks about a record once finds 10.00 % to be in the pool" in once
    assert "`sample` tells least of the three decoders: 0.00 %." in least


def test_the_page_says_what_every_test_of_the_pool_saw(found):
    """What labels and charges tell stands above what labels tell alone, and clients do not see labels alone."""
    either = [
        one._replace(advantage=0.75 if one.sees == "labels and charges" else 0.25)
        for one in next(iter(found.presences.values()))
    ]
    page = render(replace(found, presences={"some": either}))
    assert page.count("0.750<small>0.250</small>") == 6  # three decoders, by one question and by many
    assert "those that clients get, and not their charges" in text_of(page)
    assert "are free" not in text_of(page), "with flat charges they are not"
    assert "16 x decision-tree, decoder argmax" in text_of(page)
    flat = text_of(render(replace(found, about=found.about | {"charging": "flat"})))
    assert ("charged where models differ" in text_of(page), "charged for every answer" in flat) == (
        True,
        True,
    )
    assert "charges tell more by the votes on hand" in text_of(page)
    assert "charges tell more by the votes on hand" not in flat


def test_nobody_is_said_to_be_infinitely_sure(found):
    """Log-odds beyond what doubles can tell from certainty are said to be beyond that."""
    assert 1 / (1 + np.exp(-36.0)) < 1 == 1 / (1 + np.exp(-38.0))
    sure = render(replace(found, duels=[one._replace(largest_spread=np.inf) for one in found.duels]))
    assert sure.count("over 36") == len(found.duels)
    assert "inf<" not in sure


def test_what_was_trained_again_is_what_words_speak_of(found):
    """If models were trained again without records, that is told, and not what the votes on hand would show."""
    presences = dict(found.presences)
    presences["those trained without"] = next(iter(presences.values()))
    again = replace(found, presences=presences, plan=found.plan._replace(n_retrained=1))
    assert pool_in_words(again)[0].startswith("Of those trained without: ")
    assert not pool_in_words(found)[0].startswith("Of those trained without: ")


def test_all_cores_train_again(home, monkeypatch):
    """Unless somebody says otherwise as many models are trained at a time as there are cores, as in a fit."""
    told = []

    class Enough(Exception):
        pass

    def watched(*_args, n_jobs, **_named):
        told.append(n_jobs)
        raise Enough

    monkeypatch.setattr("pacpredict.audit.presence.train", watched)
    artifact = Artifact.open(home, blind=True)
    plan = Plan(n_trials=2, n_queries=2, n_targets=1, n_runs=2, n_retrained=1)
    with pytest.raises(Enough):
        audit(artifact, read_pool_of(artifact, None), plan)
    assert told == [ONE_PER_CORE]


def test_what_contradicts_a_promise_is_the_verdict(found):
    """A rate that is surely above its ceiling, of any attack, or a claim that does not hold, comes first."""
    high = Estimate(1.0, 0.99, 1.0)
    look = found.inferences[0].looks[-1]._replace(success=high)
    future, duel = found.inferences[0], found.duels[0]
    told = replace(future, looks=[look])
    many = [duel.true_positives[0]._replace(tpr=high, surely=0.5)]
    limited = next(one for one in found.duels if one.limit is not None)
    for worse in (
        replace(found, inferences=[told]),
        replace(found, inferences=[replace(future, true_positives=many)]),
        replace(found, inferences=[replace(future, information=high)]),
        replace(found, inferences=[replace(future, beyond=clopper_pearson(1, future.trials))]),
        replace(found, duels=[duel._replace(success=high)]),
        replace(found, duels=[duel._replace(true_positives=many)]),
        replace(found, duels=[limited._replace(beyond=clopper_pearson(limited.runs, limited.runs))]),
        replace(found, attacks=[found.attacks[1]._replace(success=high)]),
        replace(found, self_test=[TOO_LITTLE]),
    ):
        assert verdict(worse)[0].endswith("does not keep what is promised of it: 1 finding.")
        assert 'class="promise broken"' in render(worse)
        assert to_json(worse)["holds"] is False


def test_programs_see_by_the_exit_code_that_a_promise_is_broken(found, home, tmp_path, capsys, monkeypatch):
    """All is said and written first; then the command fails, as every command does whose object is refuted."""
    worse = replace(found, self_test=[TOO_LITTLE])
    for outcome, code in ((found, 0), (worse, 2)):
        monkeypatch.setattr("pacpredict.audit.run.audit", lambda *_args, _found=outcome, **_named: _found)
        page = tmp_path / f"{code}.html"
        assert main(["audit", str(home), "--report", str(page), "--json"]) == code
        said = capsys.readouterr()
        assert json.loads(said.out)["holds"] is (code == 0)
        assert ("does not keep what is promised" in said.err) == (code == 2)
        assert page.exists()


def test_a_ledger_shows_what_was_revealed(home, capsys, tmp_path):
    """What is shown is the deployment's own posterior, over time, and the ledger stays as it is."""
    before = digests(home)["ledger.sqlite"]
    with Deployment.open(home) as deployment:
        shown, own, spent = (
            review(deployment),
            deployment.membership_posterior(),
            deployment.privacy()["spent_nats"],
        )
    last = shown.moments[-1]
    assert last.charged_nats == spent > 0
    assert last.answers == 60
    assert [one.answers for one in shown.moments] == sorted(one.answers for one in shown.moments)
    most = shown.most_moved[0]
    assert most.probability == pytest.approx(own[most.unit])
    assert (
        abs(most.shift)
        == pytest.approx(np.abs(np.log(own / (1 - own))).max())
        == pytest.approx(last.largest_shift)
    )
    page = text_of(render_review("a.pac", shown))
    assert "For the owner only" in page
    # As many digits as a shift has: at the budgets of deployments two would show 50 % for everybody.
    assert f"{100 * most.probability:.4f} % {most.shift:+.3g}" in page
    assert main(["audit", str(home), "--ledger", "--report", str(tmp_path / "e.html")]) == 0
    assert "for the owner only" in capsys.readouterr().out
    assert digests(home)["ledger.sqlite"] == before


def _never(*_args, **_named):
    raise AssertionError("work has started")


def _unanimous(artifact, pool):
    """Return records on which all models agree."""
    votes = artifact.ensemble().votes(pool.rows)
    return pool.rows.take(np.flatnonzero(votes.min(axis=1) == votes.max(axis=1)))


def test_bad_input_is_said_before_work_starts(home, tmp_path, capsys, monkeypatch):
    """Other records, too many trials, an artifact without subsets, no ledger, a page that exists already."""
    artifact = Artifact.open(home, blind=True)
    pool = read_pool_of(artifact, None)
    with pytest.raises(InvalidTable, match="not the records"):
        audit(artifact, replace(pool, labels=1 - pool.labels), SMALL)
    with pytest.raises(InvalidInput, match="trials would need"):
        audit(artifact, pool, SMALL._replace(n_trials=10**10))
    # Futures with a larger total are ten times as many: their memory counts before anything is played.
    free = memory_needed(16, 80, 9 * SMALL.n_trials, 10)
    with monkeypatch.context() as patch:
        patch.setattr("pacpredict.audit.subject._free_memory", lambda: free)
        patch.setattr("pacpredict.audit.run.imagine", _never)
        with pytest.raises(InvalidInput, match="trials would need"):
            audit(artifact, pool, SMALL)
    with pytest.raises(InvalidInput, match="without 1 of these 80 records at most, and 2 were asked for"):
        audit(artifact, pool, SMALL._replace(n_retrained=2))
    with monkeypatch.context() as patch:
        patch.setattr("pacpredict.audit.run.imagine", _never)
        with pytest.raises(InvalidVotes, match=r"agree on all public records.*leave --public out"):
            audit(artifact, pool, SMALL, public=_unanimous(artifact, pool))
    with pytest.raises(InvalidInput, match="n_runs must be at least 2"):
        audit(artifact, pool, SMALL._replace(n_runs=1))
    bare = tmp_path / "b.pac"
    shutil.copytree(home, bare)
    (bare / "ledger.sqlite").unlink()
    assert main(["audit", str(bare), "--ledger"]) == 2
    assert "ledger" in capsys.readouterr().err
    assert main(["audit", str(home), "--report", str(home / "audit.html")]) == 2
    assert "audit.html is in the artifact a.pac" in capsys.readouterr().err
    (bare / "subsets.npy").unlink()
    assert main(["audit", str(bare)]) == 2
    assert "subsets.npy is missing" in capsys.readouterr().err
    (tmp_path / "there.html").touch()
    assert main(["audit", str(home), "--report", str(tmp_path / "there.html")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_no_option_is_passed_over(home, tmp_path, capsys, monkeypatch):
    """What means nothing beside a ledger, or without one, is refused, and so is no thread at all."""
    numbers = [
        [f"--{name}", "2"]
        for name in ("trials", "queries", "targets", "runs", "sessions", "retrain", "seed", "jobs")
    ]
    for option in (["--public", "p.csv"], ["--data", "d.csv"], ["--decode", "map"], *numbers):
        assert main(["audit", str(home), "--ledger", *option]) == 2
        assert f"{option[0]} is for simulated futures" in capsys.readouterr().err
    monkeypatch.setenv("PGPASSWORD", "")  # which the option sets, and which ends with the test
    (tmp_path / "word").write_text("secret")
    for option in (["--anchor", "elsewhere"], ["--ledger-password-file", str(tmp_path / "word")]):
        assert main(["audit", str(home), *option]) == 2
        assert f"{option[0]} is for looking at a ledger: say --ledger, too" in capsys.readouterr().err
    for command in (["audit", str(home)], ["verify", str(home)]):
        assert main([*command, "--jobs", "0"]) == 2
        assert "so many at a time, 1 or more, or -1 for one per core; got 0" in capsys.readouterr().err


def test_models_that_agree_on_everything_are_said_with_what_to_do(home):
    """An audit that has nothing to ask says why, what tells whether the models are any good, and where else to look."""
    artifact = Artifact.open(home, blind=True)
    subject = Subject.of(artifact, read_pool_of(artifact, None))
    with pytest.raises(InvalidVotes, match=r"nothing is charged.*pacpredict evaluate.*audit --ledger"):
        replace(subject, votes=np.zeros_like(subject.votes)).contested()
    flat = replace(subject.budget, charging="flat")
    with pytest.raises(InvalidVotes) as refused:
        replace(subject, votes=np.zeros_like(subject.votes), budget=flat).contested()
    assert "charged" not in str(refused.value), "every answer is"


# Pairs of texts of one picture that lie over one another.
OVERLAPS = """
[...document.querySelectorAll("svg[role=img]")].flatMap(picture => {
  const texts = [...picture.querySelectorAll("text")].filter(one => getComputedStyle(one).display !== "none");
  const boxes = texts.map(one => one.getBoundingClientRect());
  return texts.flatMap((one, i) => texts.slice(i + 1).flatMap((other, k) => {
    const [a, b] = [boxes[i], boxes[i + 1 + k]];
    const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;
    return apart ? [] : [`${one.textContent} / ${other.textContent}`];
  }));
})
"""
# Scrolls every table to its right end, and says where its first column begins and how wide that is.
SCROLLED = """
[...document.querySelectorAll(".wide")].map(table => {
  table.scrollLeft = 10000;
  const [outer, first] = [table, table.querySelector("tbody td")].map(one => one.getBoundingClientRect());
  return [first.left - outer.left, first.width];
})
"""


def open_page(browser, path, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    seen = Seen(page)
    page.goto(f"file://{path}")
    assert seen.requests == [f"file://{path}"]
    assert seen.complaints == []
    return page


def test_the_pages_are_whole_on_every_screen(found, home, tmp_path):
    """They ask for nothing, complain of nothing, and nothing lies over anything; tables scroll, their names stay."""
    (tmp_path / "audit.html").write_text(render(found))
    with Deployment.open(home, to_look=True) as deployment:
        (tmp_path / "live.html").write_text(render_review("a.pac", review(deployment)))
    with running_browser() as browser:
        for name in ("audit.html", "live.html"):
            for width, scheme in ((1000, "light"), (1000, "dark"), (380, "light")):
                page = open_page(browser, tmp_path / name, width, scheme)
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.locator("svg[role=img] title").count() == page.locator("svg[role=img]").count()
                assert page.evaluate(OVERLAPS) == []
                if width < 500:
                    assert all(left == 0 and wide > 100 for left, wide in page.evaluate(SCROLLED))
                page.close()
