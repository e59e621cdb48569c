"""Settings from a file, the environment and options; TLS, proxies, and the end of a server."""

import json
import signal
import ssl
import subprocess
import threading
import time
from argparse import ArgumentParser
from pathlib import Path

import httpx
import pytest
from live_server import PROGRAM, ServerProcess, tensors

from pacpredict.cli import main
from pacpredict.cli.serve import SERVE
from pacpredict.cli.settings import SETTINGS, find_settings, limit_names
from pacpredict.exceptions import InvalidInput
from pacpredict.serving.limits import Limits
from pacpredict.serving.settings import Settings

TLS = Path(__file__).parents[1] / "data" / "tls"


def found(*arguments, environment=()):
    """What settings come to, each with where it was found."""
    parser = ArgumentParser()
    SERVE.add_arguments(parser)
    return find_settings(parser.parse_args(list(map(str, arguments))), dict(environment))


def write(path, text):
    path.write_text(text)
    return path


def test_what_comes_later_wins(tmp_path):
    """The environment is stronger than the file, and options are stronger than both."""
    file = write(
        tmp_path / "serve.toml", 'port = 1\nmax_rows = 1\nidle_seconds = 1.5\nallow_host = ["a", "b"]\n'
    )
    variables = {"PACPREDICT_SERVE_PORT": "2", "PACPREDICT_SERVE_MAX_ROWS": "2e0", "PATH": "x"}
    settings = found("a.pac", "--config", file, "--port", "3", environment=variables)
    assert settings["port"] == (3, "option")
    assert settings["max_rows"] == (2, "PACPREDICT_SERVE_MAX_ROWS")
    assert settings["idle_seconds"] == (1.5, str(file))
    assert settings["allow_host"] == (("a", "b"), str(file))
    assert settings["host"] == ("127.0.0.1", "default")
    assert settings["artifact"] == (Path("a.pac"), "option")


def test_every_kind_of_value(tmp_path):
    """Lists, switches and files are read alike from all three."""
    file = write(tmp_path / "serve.toml", 'artifact = "a.pac"\nopen = true\nproxy = ["10.0.0.1"]\n')
    of_file = found("--config", file)
    assert of_file["artifact"].value == tmp_path / "a.pac"  # seen from the file
    assert of_file["open"].value is True
    variables = {"PACPREDICT_SERVE_OPEN": "no", "PACPREDICT_SERVE_PROXY": "10.0.0.2,10.0.0.3"}
    settings = found("--config", file, environment=variables)
    assert settings["open"].value is False
    assert settings["proxy"].value == ("10.0.0.2", "10.0.0.3")
    assert found("a", "--open", "--proxy", "1.1.1.1", "--proxy", "2.2.2.2", environment=variables)[
        "proxy"
    ].value == ("1.1.1.1", "2.2.2.2")


@pytest.mark.parametrize(
    "text", ["max_row = 1", "port = 70000", "port = [1]", "open = 3", "port =", "[limits]\nrows = 1"]
)
def test_wrong_files(tmp_path, text):
    """A name that means nothing, and a value that cannot be, are refused with the file that has them."""
    with pytest.raises(InvalidInput, match=r"serve\.toml"):
        found("a.pac", "--config", write(tmp_path / "serve.toml", text))


def test_wrong_variables():
    """So they are in the environment."""
    for variable, text in (("PACPREDICT_SERVE_PROT", "1"), ("PACPREDICT_SERVE_PORT", "x")):
        with pytest.raises(InvalidInput, match=variable):
            found("a.pac", environment={variable: text})


def test_every_limit_is_a_setting():
    """Each limit of the server can be set, and has its default."""
    defaults = {setting.name: setting.default for setting in SETTINGS}
    assert {limit: defaults[name] for limit, name in limit_names().items()} == vars(Limits())


def test_check(home, tmp_path, capsys, monkeypatch):
    """`--check` says what all settings come to and who may ask, shows no password, and starts nothing."""
    monkeypatch.setenv("PACPREDICT_SERVE_MAX_ROWS", "7")
    assert main(["serve", str(home), "--check", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["settings"]["max_rows"] == {"value": 7, "source": "PACPREDICT_SERVE_MAX_ROWS"}
    assert said["settings"]["name"]["value"] == "mixed"
    assert "whoever can reach it" in said["access"]
    assert main(["keys", "make", str(home), "lab"]) == 0
    capsys.readouterr()
    assert main(["serve", str(home), "--check"]) == 0
    assert "there are 1 that are valid" in " ".join(capsys.readouterr().out.split())
    assert main(["serve", "--check"]) == 2
    assert main(["serve", str(tmp_path / "none.pac"), "--check"]) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        *({"proxies": ("proxy.example.org",)}, {"log": "xml"}, {"drain_seconds": -1.0}),
        *({"tls_key": TLS / "key.pem"}, {"tls_certificate": TLS / "key.pem", "tls_key": TLS / "key.pem"}),
        {"tls_certificate": TLS / "none.pem", "tls_key": TLS / "key.pem"},
    ],
)
def test_wrong_settings(wrong):
    """What cannot be is refused before anything is opened."""
    with pytest.raises(InvalidInput):
        Settings(Path("model.pac"), "model", **wrong)


def test_tls(home, rows):
    """With a certificate the server speaks HTTPS to clients that check it, and nothing to those that speak HTTP."""
    trusting = ssl.create_default_context(cafile=TLS / "certificate.pem")
    files = ("--tls-certificate", TLS / "certificate.pem", "--tls-key", TLS / "key.pem")
    with ServerProcess(home, *files, verify=trusting) as server:
        assert server.url.startswith("https://")
        reply = server.http.post("/v2/models/mixed/infer", json={"inputs": tensors(rows[:1])})
        assert reply.status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(server.url.replace("https", "http") + "/v2/health/live")
        server.stop()


@pytest.mark.parametrize(("proxies", "believed"), [([], "127.0.0.1"), (["127.0.0.1"], "203.0.113.7")])
def test_forwarded_headers(home, proxies, believed):
    """Whose request it is, and whether it came by HTTPS, is taken from named proxies only."""
    options = [word for proxy in proxies for word in ("--proxy", proxy)]
    assert main(["keys", "make", str(home), "lab"]) == 0
    with ServerProcess(home, "--log", "json", *options) as server:
        headers = {"x-forwarded-for": "198.51.100.1, 203.0.113.7", "x-forwarded-proto": "https"}
        assert server.http.get("/privacy", headers=headers).status_code == 401
        server.stop()
    lines = [json.loads(line) for line in server.log]
    assert [line["address"] for line in lines if line.get("path") == "/privacy"] == [believed]


def test_every_line_is_json(home):
    """With --log json there is no other line: from the first on, with its warnings, and with what stops it."""
    with ServerProcess(home, "--log", "json") as server:
        server.http.get("/privacy")
        server.stop()
    lines = [json.loads(line) for line in server.log]
    assert lines[0]["message"] == f"serving 'mixed' at {server.url}"
    assert (lines[1]["level"], lines[1]["message"][:17]) == ("warning", "there are no keys")
    assert [line.get("path") for line in lines].count("/privacy") == 1
    (home / "ledger.sqlite").unlink()
    done = subprocess.run(
        [PROGRAM, "serve", home, "--log", "json"], capture_output=True, text=True, check=False
    )
    (said,) = [json.loads(line) for line in done.stderr.splitlines()]
    assert (said["level"], done.returncode) == ("error", 2)
    assert "no ledger" in said["message"]


def test_a_server_that_ends(home, rows):
    """After SIGTERM it is not ready, and still answers; then it takes no more, and ends with all that it began."""
    with ServerProcess(home, "--drain-seconds", "2") as server:
        stopping = threading.Thread(target=server.signal, args=[signal.SIGTERM])
        stopping.start()
        deadline = time.monotonic() + 20
        while server.http.get("/v2/health/ready").status_code == 200:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        reply = server.http.post("/v2/models/mixed/infer", json={"inputs": tensors(rows[:1])})
        assert reply.status_code == 200
        assert server.http.get("/v2/health/live").json() == {"live": True, "ready": False}
        stopping.join()
        assert server.wait() == 0


def test_a_second_signal_does_not_wait(home):
    """Whoever says it twice, or by Ctrl-C, means now."""
    for signals in ([signal.SIGTERM, signal.SIGTERM], [signal.SIGINT]):
        with ServerProcess(home, "--drain-seconds", "60") as server:
            for each in signals[:-1]:
                server.signal(each)
                while server.http.get("/v2/health/ready").status_code == 200:  # two that wait would be one
                    time.sleep(0.05)
            server.signal(signals[-1])
            server.wait()
