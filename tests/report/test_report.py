"""The report says what the deployment says, to a person, on two sheets of paper, and nothing of the secret."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest
from artifacts import fit_small, save_with
from browser import Seen, running_browser
from records import mixed_pool, mixed_table, quick_fit, recipe, small_learner

from pacpredict.cli import main
from pacpredict.core.bounds import success_bound
from pacpredict.core.roc import tpr_bound
from pacpredict.deployment import Deployment
from pacpredict.mechanism.budget import Budget
from pacpredict.promise import NEVER_TELL, NOT_PROMISED, about_the_pool, on_erasure, plain, why_never
from pacpredict.report.facts import Moment, forecast, gather
from pacpredict.report.page import render
from pacpredict.show import percent_up


def text_of(page):
    """Return what a reader reads."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    body = re.sub(r"</?(b|strong|code)>", "", body)  # within a sentence
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """An artifact that has answered 40 queries, on some of which models disagreed."""
    path = tmp_path_factory.mktemp("report") / "a.pac"
    fit_small(path, how=recipe(step=2.0**-12, total=0.25))
    with Deployment.open(path) as deployment:
        for seed in range(4):
            deployment.ask(mixed_table(10, seed=seed))
    return path


def test_the_page_says_what_the_deployment_says(home):
    """Every figure on the page is one of the deployment's own."""
    with Deployment.open(home) as deployment:
        found = gather(deployment)
        privacy, link = deployment.privacy(), deployment.link()
        budget = deployment.artifact.recipe.budget
    text = text_of(render(found))
    for words in (
        f"more than {100 * success_bound(0.25) + 0.005:.2f}% of the time",  # rounded up
        f"{privacy['queries']:,} queries were answered; the models disagreed on {privacy['contested']}",
        f"{budget.total_steps - privacy['contested']:,} queries on which models disagree can still be answered",
        f"all {link.sequence} records of the ledger were checked",
        link.chain.hex(),
        found.about["identity"],
        "0.25 nats in all, at most 2^-12 nats for an answer",
    ):
        assert words in text, words
    assert found.true_positives == tpr_bound(0.25, 0.001)
    assert f"{sum(found.membership_posterior['histogram']['units'])} records" in render(found)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("halt", "no new query is answered"),
        ("unanimous", "only queries on which all models agree are answered"),
        ("belief", "answers are drawn from the public belief"),
    ],
)
def test_settings_are_said_as_they_are(tmp_path, when, words):
    """What happens at the end, the share of a subset and every decoder on record are those of this deployment."""
    how = recipe(step=2.0**-12, total=0.25, when_exhausted=when, rate=0.25, n_models=8)
    fit_small(tmp_path / "a.pac", how=how)
    with Deployment.open(tmp_path / "a.pac", decode="map") as deployment:
        deployment.ask(mixed_table(40, seed=3))
    with Deployment.open(tmp_path / "a.pac") as deployment:
        found, unread = gather(deployment), gather(deployment, verify=False)
    assert list(found.decoders) == ["argmax", "map"]
    text = text_of(render(found))
    for each in (
        words,
        "Before any answer it was 25%",
        "decoder argmax, on record also map",
        "With map, an answer at a small step is the vote of all models.",
    ):
        assert each in text, each
    assert "decoder argmax; votes plain now; the history was not read" in text_of(render(unread))


def test_an_officers_questions_come_first(home):
    """Who, against what, by how much, what not, what never, what on erasure: in this order, before anything else."""
    with Deployment.open(home) as deployment:
        page = render(gather(deployment, verify=False))
    assert re.findall("<h2>(.*?)</h2>", page)[:8] == [
        "Who is protected?",
        "Against what?",
        "By how much?",
        "What is not protected?",
        "What must we never do?",
        "What if someone asks to be erased?",
        "How does it work?",
        "How often can an attack succeed?",
    ]
    text = text_of(page)
    for words in (NOT_PROMISED, NEVER_TELL, why_never(4, 0.5, "record"), on_erasure(0.5, "record")):
        assert words in text, words
    assert "rises from 50% to 75%, and after five erasures to 98.44%, with six budgets" in text
    assert "The history was not replayed for this report." in text


def test_a_prior_above_a_half_is_explained(home):
    """No row of the table starts above 50% without the sentence that says why."""
    with Deployment.open(home) as deployment:
        found = gather(deployment, verify=False)
    text, high = (
        text_of(render(found)),
        [one for one in found.privacy["bounds"].values() if one["prior"] > 0.5],
    )
    assert high
    for bound in high:
        assert f'"{bound["question"]}" starts at {percent_up(bound["prior"])} because ' in text


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
def test_each_decoder_has_its_words(home, decode):
    """What answers say about the records as a whole depends on the decoder that is in use."""
    with Deployment.open(home, decode=decode) as deployment:
        page = render(gather(deployment, verify=False))
    text = text_of(page)
    told = {name: plain(about_the_pool(name, "least")) for name in ("argmax", "map", "sample")}
    assert [name for name, words in told.items() if words in text] == [decode]


def test_fair_noise_has_its_words(tmp_path):
    """With fair noise `argmax` does not follow the vote shares, and the page does not say so."""
    fit_small(tmp_path / "a.pac", how=replace(recipe(), budget=Budget(2.0**-8, 1.0, noise="fair")))
    with Deployment.open(tmp_path / "a.pac") as deployment:
        text = text_of(render(gather(deployment)))
    assert plain(about_the_pool("argmax", "fair")) in text
    assert "follows the vote shares" not in text


def test_nothing_depends_on_the_secret(tmp_path):
    """For each possible secret the page is the same, but for identity, dates, and the chain, which the key decides."""
    fitted = quick_fit(mixed_pool(40), small_learner("ridge"))
    pages = set()
    for index in range(4):
        path = tmp_path / str(index) / "a.pac"
        save_with(path, fitted, index)
        with Deployment.open(path) as deployment:
            page = render(gather(deployment))
        page = re.sub(r"[0-9a-f]{64}", "", page).replace(str(path), "")
        pages.add(page)
    assert len(pages) == 1


def test_an_artifact_that_was_never_asked(tmp_path):
    """Before the first answer there is nothing to draw, and the rest is there."""
    fit_small(tmp_path / "new.pac")
    with Deployment.open(tmp_path / "new.pac") as deployment:
        found = gather(deployment)
    text = text_of(render(found))
    assert "0 queries were answered" in text
    assert "between 50.0000% and 50.0000%" in text
    assert "by time (UTC)" not in text


def test_names_are_escaped(tmp_path):
    """A folder may have any name; on the page it is a text."""
    path = tmp_path / "<script>&.pac"
    fit_small(path, learner=small_learner("ridge"))
    with Deployment.open(path) as deployment:
        page = render(gather(deployment))
    assert "<script" not in page
    assert "Privacy report on &lt;script&gt;&amp;.pac" in page


NOW = datetime(2026, 11, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days_and_spent", "expected"),
    [
        ([], None),
        ([(0, 0.1)], None),
        ([(0.5, 0.1), (0, 0.2)], None),  # half a day is no pace
        ([(10, 0.0), (0, 0.5)], 10),  # half in ten days: ten more
        ([(100, 0.4), (30, 0.5), (0, 0.75)], 30),  # only the last month counts
        ([(10, 0.5), (0, 0.5)], None),
        ([(10, 0.5), (0, 0.5 + 1e-12)], None),  # in more years than a calendar has
        ([(10, 0.5), (0, 1.0)], 0),
    ],
)
def test_forecasts(days_and_spent, expected):
    """When the budget ends follows from the pace of the last thirty days, if there is one."""
    moments = [Moment(NOW - timedelta(days=days), 0, spent) for days, spent in days_and_spent]
    ends = forecast(moments, 1.0)
    assert (
        (ends is None)
        if expected is None
        else abs(ends - NOW - timedelta(days=expected)) < timedelta(seconds=1)
    )


def test_the_command(home, tmp_path, capsys):
    """`report` writes the page, replaces none unasked, and prints the same as JSON."""
    out = tmp_path / "report.html"
    assert main(["report", str(home), "--out", str(out)]) == 0
    assert "report.html says what a.pac promises" in capsys.readouterr().out
    page = out.read_text()
    assert main(["report", str(home), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["report", str(home), "--out", str(out), "--force", "--json", "--no-verify"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["queries"], said["releases"], said["verified"]) == (40, 40, False)
    assert {"smallest", "largest", "histogram"} <= said["membership_posterior"].keys()
    assert said["chain"] in page


def test_the_commands_of_the_page_run_as_they_stand(tmp_path):
    """Whoever pastes what the page says about checking into a shell has everything checked."""
    path = tmp_path / "our patients.pac"
    fit_small(path)
    with Deployment.open(path) as deployment:
        deployment.ask(mixed_table(4))
        page, identity = render(gather(deployment)), deployment.describe()["identity"]
    pasted = unescape(re.search(r"<pre><code>(.*?)</code></pre>", page, flags=re.DOTALL)[1])
    shell = f'pacpredict() {{ {shlex.quote(sys.executable)} -m pacpredict "$@"; }}\n{pasted}'
    done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert identity in done.stdout
    assert "numbered and chained without a gap" in " ".join(done.stdout.split())
    # The pool was one in memory, so that models cannot be trained again by a command; it was understood, though.
    assert re.fullmatch(r"pacpredict: error: this artifact was fitted in Python.*\n", done.stderr)


def test_what_the_model_is(home):
    """A reader learns what is told apart, from what, and how often models will disagree."""
    with Deployment.open(home) as deployment:
        facts = gather(deployment)
        about, read = deployment.describe(), text_of(render(facts))
    assert f"classes {', '.join(about['classes'])} columns " in read
    assert f"models will disagree on about {100 * about['contested_share']:.3g}% of new queries" in read


def test_two_printed_pages(home, tmp_path):
    """A real browser prints it on two sheets, with pictures, and asks the network for nothing."""
    out = tmp_path / "report.html"
    assert main(["report", str(home), "--out", str(out)]) == 0
    with running_browser() as browser:
        page = browser.new_page()
        seen = Seen(page)
        page.goto(out.as_uri())
        printed = page.pdf(format="A4", print_background=True)
    assert seen.requests == [out.as_uri()]
    assert not seen.complaints
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
