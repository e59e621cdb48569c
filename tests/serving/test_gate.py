"""Who may ask: nobody's web page spends the budget of a server that its visitor can reach."""

import json
import socket

import pytest
from live_server import LiveServer, curator_of, tensors
from raw_client import GET, RawClient

from pacpredict.exceptions import InvalidInput
from pacpredict.serving.gate import Visitors
from pacpredict.serving.settings import Settings

SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store"}


@pytest.fixture(scope="module")
def open_server(fitted):
    """A server with names and visitors that its operator allows."""
    visitors = Visitors(["model.example.org", "*.lab.example.org"], ["https://app.example.org"])
    with LiveServer(curator_of(fitted), visitors=visitors) as running:
        yield running


def ask(server, rows, **headers):
    """Ask as a page could: a simple request, which browsers send without asking first."""
    body = json.dumps({"inputs": tensors(rows[:1])}).encode()
    return server.http.post(
        "/v2/models/mixed/infer", content=body, headers={"content-type": "text/plain", **headers}
    )


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost:8000", "LOCALHOST", "model.localhost", "localhost."),
        *("127.0.0.1", "127.0.0.1:8000", "10.1.2.3:80", "[::1]", "[::1]:8000", "[fe80::1]:80"),
        socket.gethostname(),
    ],
)
def test_own_names(server, rows, host):
    """By an address, and by the names of this machine, anybody may call the server."""
    assert ask(server, rows, host=host).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("rebound.example.com", "rebound.example.com:8000", "localhost.example.com", "notlocalhost"),
        *("127.0.0.1.example.com", "127.0.0.1@example.com", "model.example.org", "", "[::1", "2130706433"),
        *("localhost/", "evil@localhost", "localhost:80:80", "a" * 5_000, "\xff", "[localhost]"),
    ],
)
def test_other_names(fresh_server, rows, host):
    """A request to a name that is not the server's, as after DNS rebinding, is refused before anything is charged."""
    reply = ask(fresh_server, rows, host=host.encode("latin-1"))
    assert (reply.status_code, reply.json()["code"]) == (421, "unknown-host")
    assert "--allow-host" in reply.json()["error"]
    assert fresh_server.n_released == 0


def test_names_that_were_allowed(open_server, rows):
    """The operator can allow names, and all names below one."""
    for host in ("model.example.org", "MODEL.example.org:80", "a.lab.example.org", "b.a.lab.example.org"):
        assert ask(open_server, rows, host=host).status_code == 200
    for host in ("lab.example.org", "example.org", "other.example.org", "xlab.example.org"):
        assert ask(open_server, rows, host=host).status_code == 421


def test_any_name():
    """A star allows all names."""
    Visitors(["*"]).check([(b"host", b"anything.example.com")], "1.1")


@pytest.mark.parametrize(
    "names", [b"", b"Host: localhost\r\nHost: evil.example.com\r\n"], ids=["none", "two"]
)
def test_exactly_one_name(server, names):
    """A request without a name, or with two, is no request; only HTTP/1.0 had none."""
    with RawClient(server.port) as client:
        reply = client.send(b"GET /v2/health/live HTTP/1.1\r\n" + names + b"\r\n").reply()
        assert (reply[0], reply[2]["code"]) == (400, "invalid-http")
    with RawClient(server.port) as client:
        assert client.send(b"GET /v2/health/live HTTP/1.0\r\n\r\n").reply()[0] == 200


@pytest.mark.parametrize(
    "origin",
    [
        *("https://evil.example.com", "null", "http://localhost", "http://localhost:1", "", "file://"),
        *("http://127.0.0.1.example.com", "chrome-extension://abc", "https://app.example.org"),
    ],
)
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/json", "application/x-www-form-urlencoded"]
)
def test_foreign_pages(fresh_server, rows, origin, content_type):
    """A page of anybody else gets nothing, whatever it says the content is, and nothing is charged."""
    reply = ask(fresh_server, rows, origin=origin, **{"content-type": content_type})
    assert (reply.status_code, reply.json()["code"]) == (403, "foreign-origin")
    assert "access-control-allow-origin" not in reply.headers
    assert fresh_server.n_released == 0
    for path in ("/privacy", "/v2/models/mixed"):
        assert fresh_server.http.get(path, headers={"origin": origin}).status_code == 403


def test_own_pages(server, rows):
    """A page that the server itself, or a proxy in front of it, has shown may ask."""
    assert ask(server, rows, origin=server.url).status_code == 200
    assert ask(server, rows, host="localhost", origin="https://localhost").status_code == 200


def test_clients_that_are_no_browser(server, rows):
    """Programs send no origin, and any content type or none."""
    for content_type in (
        "",
        "application/json",
        "application/x-www-form-urlencoded",
        "application/octet-stream",
    ):
        assert ask(server, rows, **{"content-type": content_type}).status_code == 200


def test_origins_that_were_allowed(open_server, rows):
    """The operator can allow the pages of an origin; browsers then show these the answers."""
    origin = "https://app.example.org"
    preflight = open_server.http.options(
        "/invocations",
        headers={
            "origin": origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type",
        },
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == origin
    assert "content-type" in preflight.headers["access-control-allow-headers"]
    reply = ask(open_server, rows, origin=origin)
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == origin
    assert reply.headers["vary"] == "Origin"
    for other in ("http://app.example.org", "https://app.example.org:444", "https://evil.example.com"):
        assert ask(open_server, rows, origin=other).status_code == 403


def test_headers_of_every_response(server, rows):
    """Whatever is said, browsers do not guess what it is, and nobody keeps it."""
    replies = [
        ask(server, rows),
        ask(server, rows, host="evil.example.com"),
        ask(server, rows, origin="https://evil.example.com"),
        server.http.post("/invocations", content=b"{"),
        *(server.http.get(path) for path in ("/v2", "/privacy", "/ping", "/nothing", "/invocations")),
    ]
    assert {reply.status_code for reply in replies} == {200, 400, 403, 404, 405, 421}
    for reply in replies:
        assert reply.headers.items() >= SAFE.items()
    for sent in (b"nonsense\r\n\r\n", GET[:-2] + b"X: " + b"y" * 40_000 + b"\r\n\r\n"):
        with RawClient(server.port) as client:
            assert client.send(sent).reply()[1].items() >= SAFE.items()


@pytest.mark.parametrize("name", ["", "model.example.org:80", "http://model.example.org", "a/b"])
def test_wrong_names(name):
    """What cannot be the name of a host is refused when the server is started."""
    with pytest.raises(InvalidInput, match="a name without a port"):
        Settings("model.pac", "model", allow_hosts=(name,))


@pytest.mark.parametrize("origin", ["", "app.example.org", "https://app.example.org/", "ftp://a", "https://"])
def test_wrong_origins(origin):
    """What no browser would send as an origin is refused when the server is started."""
    with pytest.raises(InvalidInput, match="without a path"):
        Settings("model.pac", "model", allow_origins=(origin,))


def test_the_address_that_it_listens_at(fitted, rows):
    """Whoever starts a server under a name can call it by that name."""
    visitors = Settings("model.pac", "model", host="model.lan").visitors()
    with LiveServer(curator_of(fitted), visitors=visitors) as server:
        assert ask(server, rows, host="model.lan:8000").status_code == 200
