"""Connections of people who mean no good: they end, cost little memory, and nobody else waits."""

import json
import resource
import runpy
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from artifacts import fit_small
from live_server import LiveServer, ServerProcess, curator_of
from raw_client import GET, RawClient
from records import recipe
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pacpredict.exceptions import InvalidInput
from pacpredict.serving import connection
from pacpredict.serving.connection import network_of
from pacpredict.serving.limits import Limits
from pacpredict.serving.run import reserve_descriptors

OTHER = "127.0.0.2"  # somebody else's address
HEAD = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /invocations HTTP/1.1\r\nHost: localhost\r\n"
SHORT = 0.4  # seconds


@pytest.fixture(scope="module")
def quick_server(fitted):
    """A server that waits for nothing long, and has few places."""
    limits = Limits(
        head_seconds=SHORT,
        idle_seconds=SHORT,
        unread_seconds=SHORT,
        connections=8,
        connections_per_address=4,
        pipelined=3,
        body_bytes=100_000,
    )
    with LiveServer(curator_of(fitted), limits=limits) as running:
        yield running


@pytest.fixture
def client(server):
    with RawClient(server.port) as connected:
        yield connected


@pytest.fixture
def quick_client(quick_server):
    with RawClient(quick_server.port) as connected:
        yield connected


def check_others(server):
    """Somebody else is answered at once."""
    with RawClient(server.port, "127.0.0.3") as client:
        began = time.monotonic()
        assert client.send(GET).reply()[0] == 200
        assert time.monotonic() - began < 5


def test_long_urls(client):
    """A URL of more than the limit is refused, whether or not the request ends."""
    assert (
        client.send(b"GET /" + b"x" * 9_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n").code()
        == "url-too-long"
    )


@pytest.mark.parametrize(
    "sent",
    [
        HEAD + b"X: " + b"y" * 40_000 + b"\r\n\r\n",
        HEAD + b"X:\r\n" * 2_000 + b"\r\n",
        HEAD + b"".join(b"X-%d: %s\r\n" % (i, b"y" * 300) for i in range(120)) + b"\r\n",
    ],
    ids=["one long", "many empty", "many"],
)
def test_large_heads(client, sent):
    """Headers beyond the limit are refused, be they long or many."""
    assert client.send(sent).code() == "head-too-large"


def test_heads_of_ordinary_size(client):
    """A head as proxies and browsers send it is taken, and so is the next on the same connection."""
    ordinary = HEAD + b"Cookie: " + b"c" * 4_000 + b"\r\n" + b"X-Forwarded-For: 10.0.0.1\r\n" * 20 + b"\r\n"
    for _ in range(20):
        assert client.send(ordinary).reply()[0] == 200


ENDLESS = {
    "a URL": (b"GET /", b"x"),
    "a method": (b"", b"G"),
    "a header": (HEAD + b"X: ", b"y"),
    "a name": (HEAD, b"y"),
    "headers": (HEAD, b"X: y\r\n"),
    "empty lines": (b"", b"\r\n"),
    "an extension of a chunk": (POST + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x"),
    "headers behind a body": (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n", b"X: y\r\n"),
    "one header behind a body": (POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nX: ", b"y"),
}


@pytest.mark.parametrize(("begin", "part"), ENDLESS.values(), ids=ENDLESS)
def test_what_never_ends(server, begin, part):
    """Of 300 MB of anything but a body, a small part is taken before the connection ends."""
    with RawClient(server.port) as client:
        sent = client.send(begin).flood(part * (60_000 // len(part)))
    assert sent < 20 * 2**20  # what fits into the buffers of two sockets
    check_others(server)


def memory(pid):
    """Return how many bytes a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory(server):
    """Twenty connections with 300 MB of headers each need little memory together."""
    before = memory("self")
    with ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(RawClient(server.port))
            client.send(HEAD + b"X: ").flood(b"y" * 60_000)
    assert memory("self") - before < 40 * 2**20


def test_heads_that_come_slowly(quick_server, quick_client):
    """Whoever sends a head byte by byte is let go when the time is over, and others do not notice."""
    began = time.monotonic()
    quick_client.socket.settimeout(0.02)
    for byte in HEAD * 3:
        try:
            quick_client.socket.sendall(bytes([byte]))
            if quick_client.socket.recv(65536, socket.MSG_PEEK):
                break
        except TimeoutError:
            continue
    assert SHORT * 0.8 < time.monotonic() - began < SHORT + 5
    quick_client.socket.settimeout(10)
    assert quick_client.code() == "head-too-slow"
    check_others(quick_server)


def test_silence(quick_client):
    """Whoever connects and says nothing is let go."""
    assert quick_client.code() == "head-too-slow"


def test_idle_connections(quick_client):
    """A connection that was used is kept for a while, and then closed without a word."""
    assert quick_client.send(GET).reply()[0] == 200
    time.sleep(SHORT / 2)
    assert quick_client.send(GET).reply()[0] == 200
    assert quick_client.seconds_until_closed() > SHORT / 2
    assert quick_client.received == b""


def test_the_rest_of_a_body_that_was_refused(quick_client):
    """Whoever has sent all of a body that was too large learns so, and may go on with the same connection."""
    body = b" " * 1_000_000
    quick_client.send(POST + b"Content-Length: %d\r\n\r\n" % len(body), body)
    status, _, content = quick_client.reply()
    assert (status, content["code"]) == (413, "body-too-large")
    assert quick_client.send(GET).reply()[0] == 200


def test_the_rest_of_a_body_that_never_comes(quick_client):
    """Nobody waits long for the rest of a body that was refused, even if some of it keeps coming."""
    quick_client.send(POST + b"Content-Length: 1000000000\r\n\r\n")
    assert quick_client.reply()[0] == 413
    began = time.monotonic()
    try:
        while time.monotonic() - began < 20:
            quick_client.send(b" ")
            time.sleep(0.01)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert time.monotonic() - began < SHORT + 5


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"], ids=["kept", "closed"])
@pytest.mark.parametrize("n_rows", [600, 6_000], ids=["short", "long"])
def test_replies_that_nobody_reads(fitted, rows, ending, n_rows):
    """A connection whose replies are not read is let go, however long they are."""
    body = json.dumps({"dataframe_records": [rows[0]] * n_rows}).encode()
    request = POST + ending + b"Content-Length: %d\r\n\r\n" % len(body) + body
    server = LiveServer(curator_of(fitted), limits=Limits(unread_seconds=SHORT, idle_seconds=SHORT))
    # The kernel buffers hardly anything on either side, so that a reply stays in the process until it is read.
    server._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with server, socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", server.port))
        deaf.sendall(request if ending else request + request)
        wait_until(lambda: server.n_released and server.n_connections == 0)


def wait_until(is_so):
    deadline = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_requests_that_do_not_wait_for_replies(quick_client):
    """A few requests may be sent before the first reply has come, and are answered in order."""
    paths = [b"/v2", b"/nothing", b"/v2/health/live"]
    quick_client.send(b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path for path in paths))
    replies = [quick_client.reply() for _ in paths]
    assert [status for status, _, _ in replies] == [200, 404, 200]
    assert replies[0][2]["name"] == "pacpredict"
    assert replies[2][2]["live"]


def test_many_requests_that_do_not_wait_for_replies(quick_server, quick_client):
    """Whoever sends many requests without waiting for replies is let go before they fill the memory."""
    quick_client.send(GET * 1_000)
    quick_client.seconds_until_closed()
    assert quick_client.received.count(b"HTTP/1.1") <= 5
    check_others(quick_server)


def busy(server, source):
    """Return a connection that is in the middle of a head."""
    return RawClient(server.port, source).send(b"GET")


def test_connections_of_one_address(quick_server):
    """One address has its number of places; more are told to come again, while others have room."""
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(busy(quick_server, OTHER))
        wait_until(lambda: quick_server.n_connections >= 4)
        with RawClient(quick_server.port, OTHER) as fifth:
            status, headers, content = fifth.reply()
            assert (status, content["code"], headers["retry-after"]) == (503, "busy", "1")
        check_others(quick_server)


def test_requests_of_connections_that_are_gone(fitted, rows):
    """Whoever leaves without waiting keeps the place until the answer is there, and does not fill the queue of all."""
    curator = curator_of(fitted)
    with LiveServer(curator, limits=Limits(connections_per_address=4)) as server:
        with curator.session._ledger.turn():
            for i in range(4):
                body = json.dumps({"dataframe_records": rows[i : i + 1]}).encode()
                with RawClient(server.port, OTHER) as leaving:
                    leaving.send(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    wait_until(lambda: server.n_waiting == i + 1)  # noqa: B023  # called here only
            with RawClient(server.port, OTHER) as fifth:
                assert fifth.code() == "busy"
            check_others(server)
        wait_until(lambda: server.n_released == 4 and not server.n_connections)
        with RawClient(server.port, OTHER) as next_one:
            assert next_one.send(GET).reply()[0] == 200


def test_connections_in_all(quick_server):
    """All addresses together have their number of places, and these become free again."""
    with ExitStack() as stack:
        for source in ("127.0.0.4", "127.0.0.5"):
            for _ in range(4):
                stack.enter_context(busy(quick_server, source))
        wait_until(lambda: quick_server.n_connections >= 8)
        with RawClient(quick_server.port) as ninth:
            assert ninth.code() == "busy"
    wait_until(lambda: quick_server.n_connections == 0)
    check_others(quick_server)


def test_idle_connections_make_room(fitted):
    """A new connection takes the place of the one of its address that has been idle longest."""
    few = Limits(connections_per_address=3)
    with LiveServer(curator_of(fitted), limits=few) as server, ExitStack() as stack:
        old = [stack.enter_context(RawClient(server.port, OTHER)) for _ in range(3)]
        for client in (old[1], old[2], old[0]):
            assert client.send(GET).reply()[0] == 200
            time.sleep(0.01)
        for _ in range(2):
            assert stack.enter_context(RawClient(server.port, OTHER)).send(GET).reply()[0] == 200
        assert old[1].seconds_until_closed() < 5
        assert old[2].seconds_until_closed() < 5
        assert old[0].send(GET).reply()[0] == 200


def test_whose_an_address_is():
    """An address of IPv6 stands for its network of 2^64, one of IPv4 for itself, however it is written."""
    assert network_of("2001:db8::1") == network_of("2001:db8::ffff:1") != network_of("2001:db8:0:1::1")
    assert network_of("::ffff:10.0.0.1") == network_of("10.0.0.1") != network_of("10.0.0.2")
    assert network_of("fe80::1%eth0") == network_of("fe80::2")


def test_another_uvicorn(monkeypatch):
    """A version of uvicorn that would never ask for a limit is not used."""
    monkeypatch.delattr(HttpToolsProtocol, "on_body")
    with pytest.raises(InvalidInput, match="has no on_body"):
        runpy.run_path(connection.__file__)


def test_idle_connections_to_the_limit_of_descriptors(tmp_path, rows):
    """Whoever opens connections until there are no descriptors left keeps nobody from being answered."""
    home = fit_small(tmp_path / "mixed.pac", how=recipe(step=2.0**-16)).path
    few = ServerProcess(home, "--max-connections", "40", descriptors=400)
    with few as server, ExitStack() as stack:
        port = int(server.url.rpartition(":")[2])
        for i in range(600):
            stack.enter_context(RawClient(port, f"127.0.1.{i % 20 + 1}"))
        for row in rows[:5]:
            began = time.monotonic()
            body = json.dumps({"dataframe_records": [row]}).encode()
            with RawClient(port) as client:
                reply = client.send(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body).reply()
            assert reply[0] == 200
            assert time.monotonic() - began < 5
        assert server.stop() == 0
    assert not any(word in "".join(server.log) for word in ("Traceback", "Too many open files"))


def test_descriptors_are_reserved():
    """As many as connections and ledger need are asked for, and what cannot be had is not promised."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, before[1]))
    try:
        reserve_descriptors(Limits(connections=100))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 100 + 256
        with pytest.raises(InvalidInput, match="lower --max-connections"):
            reserve_descriptors(Limits(connections=10**12))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
