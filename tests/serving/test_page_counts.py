"""What the page counts, and what it does not tell."""

import html
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from live_server import LiveServer, curator_of, plain_rows
from records import mixed_table, quick_fit, recipe

from pacpredict.core.plan import plan
from pacpredict.ledger.spending import Spent
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.session import Session
from pacpredict.serving.metrics import Counted, Uncounted
from pacpredict.serving.page.budget import look_at, render_budget, share_left
from pacpredict.serving.page.counting import Counting
from pacpredict.serving.page.form import render_form
from pacpredict.serving.page.planner import render_plan
from pacpredict.serving.page.traffic import SPANS, Counts, Traffic, quantile, render_traffic
from pacpredict.show import factor_up, percent_up
from pacpredict.tables.column import Column
from pacpredict.tables.schema import Schema

AGREED, DIFFER = [0] * 8, [0, 1] * 4
STEP = 2.0**-8


def session_with(steps, when_exhausted):
    return Session(2, Budget(STEP, steps * STEP, when_exhausted=when_exhausted), 8)


def test_kinds_of_answers():
    """Until all is spent, contested and unanimous answers are counted apart."""
    session = session_with(4, "belief")
    session.answer_all([AGREED, DIFFER, AGREED, DIFFER, AGREED])
    answers = Counting(session, Uncounted()).read().answers
    assert answers == {"contested": 2, "agreed": 3, "belief": 0, "free": 0}


def test_silence_after_the_end():
    """When the belief answers, whatever was asked since is one kind: nobody learns on what models differ."""
    said = []
    for votes in (AGREED, DIFFER):
        session = session_with(2, "belief")
        counting = Counting(session, Uncounted())
        session.answer_all([AGREED, DIFFER])
        assert counting.read().answers == {"contested": 1, "agreed": 1, "belief": 0, "free": 0}
        session.answer_all([DIFFER, votes, votes])
        said.append(counting.read().answers)
    assert said[0] == said[1] == {"contested": 2, "agreed": 1, "belief": 0, "free": 2}


def test_silence_of_a_server_that_begins_after_the_end():
    """A server that is started when all is spent does not tell the kinds of older free answers either."""
    session = session_with(1, "belief")
    session.answer_all([AGREED, DIFFER, DIFFER])
    assert Counting(session, Uncounted()).read().answers == {
        "contested": 1,
        "agreed": 0,
        "belief": 0,
        "free": 2,
    }


@pytest.mark.parametrize("votes", [AGREED, DIFFER])
def test_flat_charges_tell_nothing(votes):
    """Where every answer is charged, whether models differ is told neither before the end nor after it."""
    session = Session(2, Budget(STEP, 3 * STEP, charging="flat", when_exhausted="belief"), 8)
    counting = Counting(session, Uncounted())
    session.answer_all([AGREED, votes])
    assert counting.read().answers == {"charged": 2, "agreed": 0, "belief": 0, "free": 0}
    session.answer_all([DIFFER, votes, votes])
    assert counting.read().answers == {"charged": 3, "agreed": 0, "belief": 0, "free": 2}


@pytest.mark.parametrize("when", ["belief", "unanimous"])
def test_privacy_is_silent_too(when):
    """/privacy does not count contested queries once answers do not tell them."""
    fitted = quick_fit(how=recipe(n_models=8, step=STEP, total=2 * STEP, when_exhausted=when))
    with LiveServer(curator_of(fitted)) as server:
        rows = plain_rows(mixed_table(60, seed=2))
        assert server.http.get("/privacy").json()["contested"] == 0
        body = {"instances": rows, "params": {"partial": True}}
        server.http.post("/invocations", json=body)
        assert server.spent == 2
        assert (server.http.get("/privacy").json()["contested"] is None) == (when == "belief")


def test_privacy_tells_nothing_that_flat_charges_do_not():
    """Where every answer is charged alike, /privacy does not say either on how many of them models differ."""
    fitted = quick_fit(how=recipe(n_models=8, step=STEP, total=8 * STEP, charging="flat"))
    with LiveServer(curator_of(fitted)) as server:
        for n in (0, 1):
            server.http.post("/invocations", json={"instances": plain_rows(mixed_table(60, seed=2))[:n]})
            assert server.http.get("/privacy").json()["contested"] is None


def test_repeats_refusals_and_latency(fitted, rows):
    """What the ledger does not record is counted by the server: repeated rows, refused requests, times."""
    with LiveServer(curator_of(fitted), metrics=Counted()) as server:
        counting = Counting(server.curator.session, server.service.metrics)
        server.http.get("/privacy")
        for _ in range(2):
            server.http.post("/invocations", json={"instances": rows[:3]})
        server.http.post("/invocations", json={"instances": [[1]]})
        server.http.get("/page/plan?queries=x")  # refused, but no query
        counts = counting.read()
    assert (counts.answers["repeated"], counts.answers["refused"]) == (3, 1)
    assert counts.answers["contested"] + counts.answers["agreed"] == 3
    assert counts.latency[-1] == (float("inf"), 3)


def test_bars_are_differences():
    """Each bar is what came between two looks; the last is what has come since the last look."""
    counts = iter([Counts({"agreed": n}) for n in (5, 7, 12, 20)])
    traffic = Traffic(lambda: next(counts))
    for _ in range(3):
        traffic.look()
    assert [bar["agreed"] for bar in traffic.bars(SPANS[0])] == [2, 5, 8]


def test_a_day_is_remembered():
    """A day is looked back on in wide bars, and nothing is kept for longer."""
    done = [0]
    traffic = Traffic(lambda: Counts({"contested": done[0]}, [(0.01, done[0]), (float("inf"), done[0])]))
    for _ in range(2 * round(timedelta(days=1) / SPANS[0].width)):
        traffic.look()
        done[0] += 1
    assert [len(traffic.bars(span)) for span in SPANS] == [span.bars for span in SPANS]
    looks = round(timedelta(minutes=10) / SPANS[0].width)
    assert sum(bar["contested"] for bar in traffic.bars(SPANS[0])) == looks  # one in each, and not one more
    assert sum(count for _, count in traffic.latency(SPANS[0])) == looks
    assert f"In the last 10 minutes, of this server: charged: models differ {looks}." in "".join(
        render_traffic(traffic)
    )
    assert traffic.bars(SPANS[1])[5]["contested"] == SPANS[1].width / SPANS[0].width
    assert "the last 24 hours" in "".join(render_traffic(traffic))


def test_quantiles_do_not_flatter():
    """A quantile is never below the true one."""
    times = np.random.default_rng(0).exponential(0.02, 1000)
    edges = [0.005, 0.01, 0.05, 0.1, np.inf]
    counts = np.histogram(times, [0.0, *edges])[0]
    for share in (0.5, 0.95, 0.99):
        assert quantile(list(zip(edges, counts, strict=True)), share) >= np.quantile(times, share)


class Steady:
    """The course of a ledger with one charged answer a minute."""

    def __init__(self, start, n):
        self.all = [Spent((start + timedelta(minutes=i)).isoformat(), i + 1, i + 1) for i in range(n)]

    def points(self, most):
        return self.all

    def before(self, moment):
        return next((each for each in reversed(self.all) if datetime.fromisoformat(each.time) < moment), None)


def test_rate_and_end():
    """At one charged answer a minute, a budget of 3,000 that has spent 600 ends in 40 hours."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    now = start + timedelta(minutes=600)
    standing = look_at(Budget(STEP, 3000 * STEP), 600, Steady(start, 600), now)
    assert standing.pace.per_minute == pytest.approx(1, rel=0.11)
    assert abs(standing.pace.ends - (now + timedelta(hours=40))) < timedelta(minutes=10)
    assert standing.left == 2400


@pytest.mark.parametrize(
    ("minutes", "n", "said"),
    [
        (0.4, 1, "1.00 charged answers a minute, over the last minute"),
        (4, 4, "1.00 charged answers a minute, over the 4 minutes since the first answer"),
        (2.5, 1, "0.400 charged answers a minute, over the 2.5 minutes since the first answer"),
        (10, 10, "1.00 charged answers a minute, over the last 10 minutes"),
        (900, 900, "1.00 charged answers a minute, over the last 10 minutes"),
        (900, 800, "nothing was charged in the last 10 minutes"),
    ],
)
def test_the_rate_names_its_time(minutes, n, said):
    """The number is that of the time which the sentence names, also when the first answer is younger than that."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    now = start + timedelta(minutes=minutes)
    shown = render_budget(look_at(Budget(STEP, 3000 * STEP), n, Steady(start, n), now))
    assert said in shown
    assert "at the pace since the first answer" in shown
    old = render_budget(
        look_at(Budget(STEP, 30_000 * STEP), 1500, Steady(start, 1500), start + timedelta(minutes=1500))
    )
    assert "at the pace of the last day" in old


def test_a_pause_slows_the_pace():
    """When nobody asks, the rate falls to nothing and the end moves away."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    course, budget = Steady(start, 600), Budget(STEP, 3000 * STEP)
    paused = look_at(budget, 600, course, start + timedelta(minutes=1200))
    assert paused.pace.per_minute == 0
    assert paused.pace.ends > look_at(
        budget, 600, course, start + timedelta(minutes=600)
    ).pace.ends + timedelta(hours=30)


def test_the_planner_proposes_the_limit_of_the_planned_total():
    """The plan has the odds limit that goes with its own total, and what is found with it and without."""
    shown = html.unescape(render_plan({"queries": "100000", "step_budget": "2^-20"}, 0.5))
    expected = plan(queries=100_000, step_budget=2.0**-20)
    assert expected.limited_tpr < expected.tpr
    assert f"<td>{expected.odds_limit:g}, a factor of {factor_up(expected.odds_limit)}</td>" in shown
    assert shown.index(f"<td>{percent_up(expected.limited_tpr)}</td>") < shown.index(
        f"<td>{percent_up(expected.tpr)}</td>"
    )


def test_what_is_left_rounds_down():
    """Nobody is promised more than there is."""
    assert share_left(999_999, 1_000_000) == "99.99%"
    assert share_left(1, 1_000_000) == "0.00%"
    assert share_left(10, 10) == "100.00%"


def test_dates_are_asked_for_by_an_example():
    """The form says how a date is written as refusals do, and not in the signs of programmers."""
    columns = (Column("born", "date", form="%d.%m.%Y"), Column("seen", "date"))
    form = str(render_form(Schema(columns), Budget(STEP, STEP), 0))
    assert "date, like 31.12.2024" in form
    assert "date, like 2024-12-31" in form
    assert "%d" not in form
