"""An audit that could not have found anything says so, and does not reassure."""

from dataclasses import replace

import numpy as np
import pytest
from records import labels_of, mixed_table

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.estimates import clopper_pearson, least_to_tell, mean_of
from pacpredict.audit.membership import imagine, questions, score
from pacpredict.audit.page import render
from pacpredict.audit.power import POWER, noticeable_games, noticeable_means
from pacpredict.audit.run import Plan, audit
from pacpredict.audit.self_test.results import CheckResult
from pacpredict.audit.subject import Subject
from pacpredict.audit.words import broken, show, to_json, unsure, verdict
from pacpredict.cli import main
from pacpredict.cli.audit import _print
from pacpredict.cli.data import read_pool_of
from pacpredict.mechanism.budget import Budget
from pacpredict.training.subsets import balanced

ENOUGH = Plan(n_trials=20, n_queries=50, n_targets=1, n_runs=30, n_sessions=4, n_jobs=1)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unsure")
    table = mixed_table(80).drop(columns="note")
    table["label"] = labels_of(table)
    table.to_csv(folder / "records.csv", index=False)
    how = ["--target", "label", "--learner", "decision-tree", "--models", "16", "--jobs", "1"]
    path = folder / "a.pac"
    assert main(["fit", str(folder / "records.csv"), *how, "--queries", "1e4", "--out", str(path)]) == 0
    return Artifact.open(path, blind=True)


@pytest.fixture(scope="module")
def pool(artifact):
    return read_pool_of(artifact, None)


@pytest.fixture(scope="module")
def found(artifact, pool):
    return audit(artifact, pool, ENOUGH)


def two_models():
    """Return a subject of two models that remember all: a trial is told rightly of everybody, or of nobody."""
    rng = np.random.default_rng(0)
    membership = balanced(2, 60, rng)
    budget = Budget(2.0**-32, 1e6 * 2.0**-32, odds_limit=1.0)
    votes, each = membership.T.astype(np.int16), np.arange(60)
    return Subject(
        votes, np.ones(60, np.int64), each, each, membership, 2, budget, "argmax", {"membership": 0.5}
    )


@pytest.mark.parametrize("n_trials", [2, 3, 5])
def test_an_honest_deployment_is_not_called_broken_by_few_trials(n_trials):
    """Trials that went the same way by chance are not taken for what always happens."""
    subject = two_models()
    asked = questions(subject, "random", 50)
    for seed in range(40):
        future = imagine(subject, asked, n_trials=n_trials, seed=seed, odds_limit=1.0, n_jobs=1)
        for look in score(subject, "random", future, 1.0).looks:
            assert look.success.low <= 0.5 <= look.success.high
            assert not look.success.passes(look.ceiling)


def said_everywhere(found, capsys):
    """Return the verdict's first sentence, JSON's answer, the page, and what the terminal says."""
    _print(found)
    return verdict(found)[0], to_json(found)["holds"], render(found), capsys.readouterr().out


def test_enough_is_enough(found, capsys):
    """With some futures and games, and all claims checked, nothing is left open."""
    assert not list(broken(found))
    assert not list(unsure(found))
    first, holds, page, shown = said_everywhere(found, capsys)
    assert first == "Nothing was found that contradicts what is promised."
    assert holds is True
    assert first in page
    assert first in shown


def test_too_few_trials_are_said_to_be_too_few(found, capsys):
    """Two futures, or ten games, could not have shown any breach: the verdict says that, and how many could."""
    few = [replace(one, trials=2) for one in found.inferences]
    wanted = least_to_tell(found.inferences[0].looks[-1].ceiling, of_means=True)
    assert not mean_of(np.ones(2)).passes(found.inferences[0].looks[-1].ceiling)
    games = least_to_tell(found.duels[0].ceiling, of_means=False)
    for fewer, words in (
        (replace(found, inferences=few), f"2 futures (random) are too few to tell: {wanted} could"),
        (
            replace(found, duels=[one._replace(runs=10) for one in found.duels]),
            f"too few to tell: {games} could",
        ),
    ):
        first, holds, page, shown = said_everywhere(fewer, capsys)
        assert "cannot tell" in first
        assert holds is None
        assert 'class="promise broken"' in page
        for text in (" ".join(verdict(fewer)), page, shown):
            assert words in text
            assert "Nothing was found" not in text


def test_a_verdict_says_how_large_a_breach_it_would_have_noticed(found, capsys):
    """That nothing was found is worth as much as was played: the fewer futures and games, the larger a breach."""
    last, duel = found.inferences[0].looks[-1], found.duels[0]
    for futures, games in ((20, 30), (2000, 3000)):
        played = replace(
            found,
            inferences=[replace(one, trials=futures) for one in found.inferences],
            duels=[one._replace(runs=games) for one in found.duels],
        )
        by_futures, by_games = noticeable_means(futures, last.ceiling), noticeable_games(games, duel.ceiling)
        *_, page, shown = said_everywhere(played, capsys)
        for words in (
            f"from {show(by_futures.alike)} on if it is the same in all of them",
            f"and from {show(by_futures.all_or_nothing)} on if everybody is told in some and nobody in the others",
            f"by {games:,} games of an adversary who is after one record from {show(by_games)} on",
            "A smaller breach may pass.",
        ):
            for text in (
                " ".join(verdict(played)),
                page.replace("\N{NO-BREAK SPACE}", " "),
                " ".join(shown.split()),
            ):
                assert words in text
    nothing = replace(found.inferences[0], looks=[last._replace(ceiling=1.0)])
    assert "nothing is promised about membership" in " ".join(verdict(replace(found, inferences=[nothing])))


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_a_breach_that_is_said_to_be_noticeable_is_noticed_as_often_as_is_said(n):
    """Drawn again and again: from there on in 95 % of audits or more, a little below in fewer."""
    rng, draws = np.random.default_rng(n), 20_000
    seen = noticeable_means(n, 0.55)
    assert mean_of(np.full(n, seen.alike + 1e-6)).passes(0.55)
    assert not mean_of(np.full(n, seen.alike - 1e-6)).passes(0.55)
    passes = {
        seen.all_or_nothing: np.array([mean_of(np.arange(n) < hits).passes(0.55) for hits in range(n + 1)]),
        noticeable_games(n, 0.55): np.array([clopper_pearson(hits, n).passes(0.55) for hits in range(n + 1)]),
    }
    for rate, noticed in passes.items():
        assert noticed[rng.binomial(n, rate, draws)].mean() == pytest.approx(POWER, abs=0.006)
        assert noticed[rng.binomial(n, 0.97 * rate, draws)].mean() < POWER - 0.02


def test_checks_that_were_not_made_are_said_not_to_be(found, capsys):
    """Where the self-test could not check something, nobody says that it holds."""
    skipped = [one._replace(holds=None, seen="not checked: nothing was drawn") for one in found.self_test[:2]]
    open_one = replace(found, self_test=[*skipped, *found.self_test[2:]])
    first, holds, page, shown = said_everywhere(open_one, capsys)
    assert "cannot tell" in first
    assert holds is None
    assert page.count("<td>not checked</td>") == 2
    for text in (page, shown):
        assert "Not checked by the self-test: records, belief; nothing was drawn." in text
    worse = CheckResult("noise variance", "noise has the calibrated variance", holds=False, seen="too little")
    assert to_json(replace(found, self_test=[*skipped, worse]))["holds"] is False
