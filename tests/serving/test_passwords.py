"""Passwords of databases: by a file or the environment, and never where other users of the machine see them."""

from pathlib import Path

import psycopg
import pytest
from artifacts import fit_small
from live_server import ServerProcess
from postgres_server import PostgresServer

from pacpredict.cli import main
from pacpredict.cli.options import has_password

PASSWORD = "correct horse: battery/staple@home"


@pytest.fixture(scope="module")
def database():
    """A database whose only user must say a password."""
    server = PostgresServer()
    rules = server._home / "data" / "pg_hba.conf"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("CREATE DATABASE ledger OWNER guarded")
        connection.execute("SELECT pg_reload_conf()")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def url(database):
    return database.url("ledger").replace("owner@", "guarded@")


@pytest.fixture(scope="module")
def home(tmp_path_factory, url):
    """An artifact whose ledger is in that database."""
    home = fit_small(tmp_path_factory.mktemp("fitted") / "mixed.pac").path
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PGPASSWORD", PASSWORD)
        assert main(["ledger", "move", str(home), url]) == 0
    return home


@pytest.fixture(autouse=True)
def no_password(monkeypatch):
    for variable in ("PGPASSWORD", "PGPASSFILE", "PACPREDICT_LEDGER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/nowhere")


@pytest.fixture
def secret(tmp_path):
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    file.chmod(0o600)
    return file


def show(home, *options):
    return main(["show", str(home), *map(str, options)])


def test_no_password(home, url, capsys):
    """Without a password the ledger is not reached, and the error says what to check."""
    assert show(home, "--ledger", url) == 2
    assert "password" in capsys.readouterr().err


def test_by_the_environment(home, url, monkeypatch):
    """PGPASSWORD is heeded, as by any program of PostgreSQL."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert show(home, "--ledger", url) == 0


def test_by_a_file_of_postgresql(home, url, monkeypatch, tmp_path):
    """So is a file of passwords in PostgreSQL's form."""
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:ledger:guarded:{PASSWORD.replace(':', chr(92) + ':')}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    assert show(home, "--ledger", url) == 0


def test_by_a_file(home, url, secret, monkeypatch):
    """A file with the password and nothing else, as containers get it."""
    monkeypatch.setenv("PGPASSWORD", "wrong")
    assert show(home, "--ledger", url, "--ledger-password-file", secret) == 0


def test_a_url_in_the_environment(home, url, monkeypatch):
    """The whole URL, with its password, may be in the environment."""
    quoted = PASSWORD.replace(":", "%3A").replace("/", "%2F").replace("@", "%40").replace(" ", "%20")
    monkeypatch.setenv("PACPREDICT_LEDGER", url.replace("guarded@", f"guarded:{quoted}@"))
    assert show(home) == 0


@pytest.mark.parametrize("content", [None, b"\xff", b"a\0b"], ids=["missing", "not text", "with NUL"])
def test_files_without_a_password(home, url, tmp_path, content, capsys):
    """A file that is missing or no text is refused in one line, which does not quote it."""
    file = tmp_path / "password"
    if content is not None:
        file.write_bytes(content)
    assert show(home, "--ledger", url, "--ledger-password-file", file) == 2
    assert "holds no password" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "says_it"),
    [
        ("postgresql://owner:hidden@db/census", True),
        ("postgresql://owner@db/census?password=hidden", True),
        ("postgresql://owner@db:5432/census", False),
        ("postgresql://db:5432/census?sslmode=require", False),
        ("postgres:///census", False),
    ],
)
def test_a_password_in_a_url(url, says_it, tmp_path, capsys):
    """A password on the command line is warned of, without repeating it."""
    assert has_password(url) is says_it
    show(tmp_path, "--ledger", url)
    said = capsys.readouterr().err
    assert ("warning: whoever lists the processes" in said) is says_it
    assert "hidden" not in said


def test_workers(home, url, secret, monkeypatch):
    """A server and its workers reach the ledger, and no process has the password among its arguments."""
    monkeypatch.setenv("PACPREDICT_LEDGER", url)
    with ServerProcess(home, "--workers", "2", "--ledger-password-file", str(secret)) as server:
        assert server.http.get("/v2/health/ready").status_code == 200
        assert not any(PASSWORD in arguments for arguments in command_lines())
        assert server.http.get("/privacy").status_code == 200
        server.stop()
    assert PASSWORD not in "".join(server.log)


def command_lines():
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
