"""The course of a ledger's spending, from few of its records."""

from datetime import datetime, timedelta

import pytest
from small_deployment import found_home, serve_at

from pacpredict.ledger.spending import Course


@pytest.fixture
def ledger(tmp_path):
    home = found_home(tmp_path / "home")
    for number in range(70):
        serve_at(home, number)
    with home.open() as opened:
        yield opened.ledger


def test_points(ledger):
    """The first and the last release are among the points, the others lie between, and no more than were wanted."""
    records = list(ledger.records())
    for most in (2, 4, 10, 100):
        points = Course(ledger).points(most)
        assert len(points) <= most
        assert (points[0].sequence, points[-1].sequence) == (1, 70)
        for time, number, steps in points:
            assert (time, steps) == (records[number - 1].time, records[number - 1].spent_steps)
    assert len(Course(ledger).points(100)) == 70


def test_before(ledger):
    """The last release before a moment is found, for every moment."""
    course = Course(ledger)
    times = [datetime.fromisoformat(record.time) for record in ledger.records()]
    for moment in (*times, times[0] - timedelta(days=1), times[-1] + timedelta(days=1)):
        found = course.before(moment)
        assert (found.sequence if found else 0) == sum(time < moment for time in times)


def test_nothing_is_read_twice(ledger, monkeypatch):
    """Asked again, it reads only what is new."""
    course = Course(ledger)
    course.points(100)
    monkeypatch.setattr(ledger, "records", None)
    assert len(course.points(100)) == 70
