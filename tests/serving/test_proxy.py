"""deploy/nginx.conf in a real nginx, before a real server: what operators are told to put in front works."""

import json
import os
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from live_server import ServerProcess
from programs import environment, free_port, needs, program

from pacpredict.deployment import Deployment
from pacpredict.ledger.keys import Terms

ROOT = Path(__file__).parents[2]
TLS = ROOT / "tests" / "data" / "tls"
NAME = "census.example.org"

# What the distribution's nginx.conf has around a site.
AROUND = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""

pytestmark = needs("nginx", "nginx")


class Nginx:
    """The site of deploy/, with the ports and the certificate of this test."""

    def __init__(self, folder, behind):
        self.port = free_port()
        site = (ROOT / "deploy" / "nginx.conf").read_text()
        for written, meant in (
            ("127.0.0.1:8000", behind.removeprefix("http://")),
            ("listen 443 ", f"listen 127.0.0.1:{self.port} "),
            ("/etc/nginx/census.pem", str(TLS / "certificate.pem")),
            ("/etc/nginx/census.key", str(TLS / "key.pem")),
        ):
            assert written in site
            site = site.replace(written, meant)
        (folder / "site.conf").write_text(site)
        user = "user root;" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(AROUND.format(folder=folder, user=user))
        command = [program("nginx"), "-p", folder, "-e", folder / "error.log", "-c", folder / "nginx.conf"]
        self._process = subprocess.Popen(command, env=environment())
        trusting = ssl.create_default_context(cafile=TLS / "certificate.pem")
        self.http = httpx.Client(
            base_url=f"https://localhost:{self.port}",
            verify=trusting,
            timeout=60,
            headers={"host": f"{NAME}:{self.port}"},
        )
        self._wait(folder)

    def _wait(self, folder):
        deadline = time.monotonic() + 60
        while True:
            assert self._process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline
            try:
                self.http.get("/v2/health/ready")
            except httpx.TransportError:
                time.sleep(0.05)
            else:
                return

    def close(self):
        self.http.close()
        self._process.terminate()
        self._process.wait(30)


@pytest.fixture
def scene(home, tmp_path):
    """A server, a key, and nginx before it; at the end, what the server has logged."""
    with Deployment.open(home) as deployment:
        key = deployment.keys.make(Terms("lab", "admin"))
    folder = tmp_path / "nginx"
    folder.mkdir()
    options = ("--proxy", "127.0.0.1", "--allow-host", NAME, "--log", "json")
    with ServerProcess(home, *options) as server:
        nginx = Nginx(folder, server.url)
        try:
            yield nginx, {"authorization": f"Bearer {key}"}, server
        finally:
            nginx.close()


def test_answers_through_nginx(scene, rows):
    """Queries, the page and refusals pass; the page's own origin may ask, and a stranger's may not."""
    nginx, key, server = scene
    own = {"origin": f"https://{NAME}:{nginx.port}"}
    asked = nginx.http.post("/invocations", json={"instances": rows[:2]}, headers={**key, **own})
    assert asked.status_code == 200
    assert asked.headers["cache-control"] == "no-store"
    assert nginx.http.get("/page.js").status_code == 200
    assert nginx.http.get("/privacy").status_code == 401
    foreign = nginx.http.get("/privacy", headers={**key, "origin": "https://elsewhere.example.org"})
    assert foreign.json()["code"] == "foreign-origin"
    other = nginx.http.get("/privacy", headers={**key, "host": "elsewhere.example.org"})
    assert other.json()["code"] == "unknown-host"
    large = nginx.http.post("/invocations", content=b" " * (8 * 2**20 + 1), headers=key)
    assert large.status_code == 413
    fits = nginx.http.post("/invocations", content=b" " * (8 * 2**20), headers=key)
    assert fits.json()["code"] == "invalid-request"  # the server's own word: both have one limit
    server.stop()


def test_nobody_makes_up_an_address(scene):
    """What a client says about where it comes from does not get into the log; nginx's id of a request does."""
    nginx, key, server = scene
    lies = {"x-forwarded-for": "198.51.100.1", "x-request-id": "invented", "x-forwarded-proto": "http"}
    reply = nginx.http.get("/privacy", headers={**key, **lies})
    assert reply.status_code == 200
    server.stop()
    lines = [json.loads(line) for line in server.log]
    (line,) = [line for line in lines if line.get("path") == "/privacy"]
    assert line["address"] == "127.0.0.1"
    assert line["request"] == reply.headers["x-request-id"] != "invented"
