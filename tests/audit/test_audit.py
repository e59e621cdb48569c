"""The audit of an artifact: it needs no secret and touches no ledger, says what it found, and can be shown."""

import hashlib
import json
import re
import shutil
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from browser import Seen, running_browser
from records import labels_of, mixed_table

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.estimates import Estimate, Finding
from pacpredict.audit.live import expose
from pacpredict.audit.live_page import render_exposure
from pacpredict.audit.page import render
from pacpredict.audit.run import Plan, audit
from pacpredict.audit.words import ASSUMED, NOT_TESTED, broken, to_json, verdict
from pacpredict.cli import main
from pacpredict.cli.data import read_pool_of
from pacpredict.deployment import Deployment
from pacpredict.exceptions import InvalidArtifact, InvalidInput, InvalidTable

SMALL = Plan(n_trials=20, n_queries=50, n_targets=1, n_runs=30)
SHORT = ["--trials", "20", "--queries", "50", "--targets", "1", "--runs", "30", "--jobs", "1"]
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
    assert {one["claim"] for one in said["claims"]} >= {
        "noise",
        "belief",
        "charges",
        "information",
        "success",
    }
    json.dumps(said, allow_nan=False)


def test_what_contradicts_a_promise_is_the_verdict(found):
    """A rate that is surely above its ceiling, of any attack, or a claim that does not hold, comes first."""
    high = Estimate(1.0, 0.99, 1.0)
    look = found.inferences[0].looks[-1]._replace(success=high)
    told = replace(found.inferences[0], looks=[look])
    for worse in (
        replace(found, inferences=[told]),
        replace(found, duels=[found.duels[0]._replace(success=high)]),
        replace(found, attacks=[found.attacks[1]._replace(success=high)]),
        replace(found, claims=[Finding("noise", holds=False, seen="too little")]),
    ):
        assert "does not keep what is promised" in verdict(worse)[0]
        assert 'class="promise broken"' in render(worse)
        assert to_json(worse)["holds"] is False


def test_a_ledger_shows_what_was_exposed(home, capsys, tmp_path):
    """What is shown is the deployment's own exposure, over time, and the ledger stays as it is."""
    before = digests(home)["ledger.sqlite"]
    with Deployment.open(home) as deployment:
        shown, own, spent = expose(deployment), deployment.exposure(), deployment.privacy()["spent_nats"]
    last = shown.moments[-1]
    assert last.charged_nats == spent > 0
    assert last.answers == 60
    assert [one.answers for one in shown.moments] == sorted(one.answers for one in shown.moments)
    most = shown.most_exposed[0]
    assert most.probability == pytest.approx(own[most.unit])
    assert (
        abs(most.shift)
        == pytest.approx(np.abs(np.log(own / (1 - own))).max())
        == pytest.approx(last.largest_shift)
    )
    assert "For the owner only" in render_exposure("a.pac", shown)
    assert main(["audit", str(home), "--ledger", "--report", str(tmp_path / "e.html")]) == 0
    assert "for the owner only" in capsys.readouterr().out
    assert digests(home)["ledger.sqlite"] == before


def test_bad_input_is_said_before_work_starts(home, tmp_path, capsys):
    """Other records, too many trials, an artifact without subsets, no ledger, a page that exists already."""
    artifact = Artifact.open(home, blind=True)
    pool = read_pool_of(artifact, None)
    with pytest.raises(InvalidTable, match="not the records"):
        audit(artifact, replace(pool, labels=1 - pool.labels), SMALL)
    with pytest.raises(InvalidInput, match="trials would need"):
        audit(artifact, pool, SMALL._replace(n_trials=10**10))
    with pytest.raises(InvalidInput, match="n_runs must be at least 2"):
        audit(artifact, pool, SMALL._replace(n_runs=1))
    bare = tmp_path / "b.pac"
    shutil.copytree(home, bare)
    (bare / "ledger.sqlite").unlink()
    assert main(["audit", str(bare), "--ledger"]) == 2
    assert "ledger" in capsys.readouterr().err
    (bare / "subsets.npy").unlink()
    assert main(["audit", str(bare)]) == 2
    assert "subsets.npy is missing" in capsys.readouterr().err
    (tmp_path / "there.html").touch()
    assert main(["audit", str(home), "--report", str(tmp_path / "there.html")]) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_page_is_whole_on_every_screen(found, tmp_path):
    """It asks for nothing, complains of nothing, and is not wider than a telephone but for tables that scroll."""
    (tmp_path / "audit.html").write_text(render(found))
    with running_browser() as browser:
        for width, scheme in ((1000, "light"), (1000, "dark"), (380, "light")):
            page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
            seen = Seen(page)
            page.goto(f"file://{tmp_path / 'audit.html'}")
            assert seen.requests == [f"file://{tmp_path / 'audit.html'}"]
            assert seen.complaints == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("svg[role=img] title").count() == page.locator("svg[role=img]").count()
            page.close()
