"""HTTP byte by byte, for tests of what no decent client does."""

import json
import socket
import time

GET = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


class RawClient:
    """A connection to a server on this machine, from any of its loopback addresses; use it in a `with`."""

    def __init__(self, port, source="127.0.0.1", timeout=10):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout, (source, 0))
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *parts):
        for part in parts:
            self.socket.sendall(part)
        return self

    def flood(self, part, most=300 * 2**20):
        """Send the same again and again until the server closes; return how many bytes it let through."""
        sent = 0
        try:
            while sent < most:
                sent += self.socket.send(part)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return sent

    def reply(self):
        """Wait for one reply; return its status, headers and JSON, or None if the server closes instead."""
        while b"\r\n\r\n" not in self.received:
            if not self._receive():
                return None
        head, _, rest = self.received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        size = int(headers["content-length"])
        while len(rest) < size:
            assert self._receive()
            rest = self.received.partition(b"\r\n\r\n")[2]
        self.received = rest[size:]
        return int(status.split()[1]), headers, json.loads(rest[:size])

    def code(self):
        """Wait for a refusal and the end of the connection; return its code."""
        _, headers, content = self.reply()
        assert headers["connection"] == "close"
        assert self.seconds_until_closed() < 5
        return content["code"]

    def seconds_until_closed(self):
        """Read until the server closes; return how long that took."""
        began = time.monotonic()
        while self._receive():
            pass
        return time.monotonic() - began

    def _receive(self):
        try:
            part = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.received += part
        return bool(part)
