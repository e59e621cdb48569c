"""One deployment and its student, for all tests that only look at them."""

import pytest
from students import fit_teacher, make_student

from pacpredict.deployment import Deployment
from pacpredict.distill.columns import PublicRows
from pacpredict.distill.run import Exam


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A deployment that answered 30 rows for somebody else, and a student of 200 public rows."""
    home = tmp_path_factory.mktemp("made")
    table, truth = fit_teacher(home / "teacher.pac", odds_limit=1.0)
    with Deployment.open(home / "teacher.pac") as deployment:
        deployment.ask(table[:30].assign(age=25))
        rows = PublicRows.of(deployment.artifact.schema, table).rows
        tested = Exam(rows, deployment.artifact.classes.codes(truth))
    options = {"filter": "bayesian", "alpha": 0.3, "curve": (50, 100), "balanced": True}
    done = make_student(home / "teacher.pac", table, home / "student", tested, **options)
    return home, table, done
