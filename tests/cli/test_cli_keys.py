"""`keys`: made, listed and revoked from the terminal."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from artifacts import copy_artifact, fit_small

from pacpredict.cli import main


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return fit_small(tmp_path_factory.mktemp("fitted") / "small.pac").path


@pytest.fixture
def home(fitted, tmp_path):
    return copy_artifact(fitted, tmp_path / "small.pac")


def test_life_of_a_key(home, capsys):
    """Only making it shows a key; the list says what it is for, and revoking it ends it."""
    limits = ["--rate", "60", "--queries", "1e3", "--nats", "1/2", "--expires", "90d"]
    assert main(["keys", "make", str(home), "lab", *limits]) == 0
    made = capsys.readouterr()
    assert made.out.startswith("pac_")
    assert made.out.count("\n") == 1
    assert "start them again" in made.err
    assert main(["keys", "make", str(home), "officer", "--role", "read", "--json"]) == 0
    made = capsys.readouterr()
    assert json.loads(made.out)["key"].startswith("pac_")
    assert made.err == ""
    assert main(["keys", "revoke", str(home), "officer"]) == 0
    capsys.readouterr()
    assert main(["keys", "list", str(home), "--json"]) == 0
    text = capsys.readouterr().out
    lab, officer = json.loads(text)["keys"]
    assert "pac_" not in text
    assert (lab["rate"], lab["queries"], lab["nats"], lab["state"]) == (60, 1000, 0.5, "valid")
    until = datetime.fromisoformat(lab["expires"]) - datetime.now(UTC)
    assert timedelta(days=89.9) < until <= timedelta(days=90)
    assert (officer["role"], officer["state"]) == ("read", "revoked")
    assert main(["keys", "list", str(home)]) == 0
    assert "0 of 1,000" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options",
    [
        *(["--expires", "yesterday"], ["--expires", "2020-01-01"], ["--expires", "0d"], ["--role", "owner"]),
        *(["--queries", "0"], ["--queries", "1.5"], ["--rate", "-1"], ["--nats", "0"], ["--nats", "1e-12"]),
    ],
)
def test_wrong_options(home, capsys, options):
    """What makes no key is refused in one line."""
    assert main(["keys", "make", str(home), "lab", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_unknown_names(home, capsys):
    """Revoking what there is not, and listing nothing, say so."""
    assert main(["keys", "revoke", str(home), "nobody"]) == 2
    assert "there is no key 'nobody'" in capsys.readouterr().err
    assert main(["keys", "list", str(home)]) == 0
    assert "keys make" in capsys.readouterr().out
