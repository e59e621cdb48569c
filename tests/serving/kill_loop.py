"""Kill a server again and again while clients ask it; run by test_kills.py.

A process that has imported and compiled everything forks a server for each round, so that starting one takes
milliseconds; everything else is as in production: the artifact and its ledger are opened anew, HTTP is spoken over a
socket, and the server dies by SIGKILL, at a failpoint or at a random moment. Clients ask over and over, also again
after no answer came, and write down every answer that they receive.
"""

import argparse
import http.client
import json
import os
import random
import select
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path

import uvicorn
from kill_queries import N_COLUMNS, query
from killing import killer

from pacpredict.artifact.artifact import Artifact
from pacpredict.curator import Curator
from pacpredict.deployment import Deployment
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.serving.access import Anybody
from pacpredict.serving.app import build_app
from pacpredict.serving.run import uvicorn_config, warm_up
from pacpredict.serving.service import Service
from pacpredict.serving.settings import Settings

POINTS = (
    *("before-draw", "after-draw", "before-insert", "after-insert", "before-commit", "after-commit"),
    *("before-send", "after-send"),
)
N_CLIENTS = 4
N_QUERIES = 600


def run_server(options, listening, point, times):
    at = killer(point, times)
    curator = Deployment.open(options.artifact, ledger=options.ledger, at=at).curator
    app = build_app(Service(curator, "model", at=at), Anybody())
    uvicorn.Server(uvicorn_config(lambda: app, Settings(Path("model"), "model"))).run([listening])


def fork_servers(options, listening, orders, pids):
    """Start a server for each order that is read, until there are no more."""
    artifact = Artifact.open(options.artifact)
    warm_up(Curator(artifact.ensemble(), artifact.recipe, MemoryLedger()))
    os.write(pids, b"0\n")
    for line in os.fdopen(orders, closefd=False):
        point, times = line.split()
        child = os.fork()
        if child == 0:
            try:
                run_server(options, listening, point, int(times))
            except BaseException:  # noqa: BLE001  # nothing may come back from a child
                traceback.print_exc()
            os._exit(1)
        os.write(pids, f"{child}\n".encode())
        os.waitpid(child, 0)
        os.write(pids, b"dead\n")


class Client(threading.Thread):
    """Asks random queries, alone and in batches, with ids and without; gives up on none that was not answered."""

    def __init__(self, port, seed, answers, stop):
        super().__init__(daemon=True)
        self.port, self.rng, self.answers, self.stop = port, random.Random(seed), answers, stop
        self.n_requests = 0

    def run(self):
        connection = None
        while not self.stop.is_set():
            numbers = [self.rng.randrange(N_QUERIES) for _ in range(self.rng.choice((1, 1, 1, 3, 8)))]
            self.n_requests += 1
            request_id = f"{self.ident}-{self.n_requests}" if self.rng.random() < 0.5 else ""
            for _attempt in range(5):
                try:
                    connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                    if self.ask(connection, numbers, request_id):
                        break
                except (OSError, http.client.HTTPException):
                    connection = None
                if self.stop.is_set():
                    return

    def ask(self, connection, numbers, request_id):
        body = {
            "id": request_id,
            "inputs": [
                {
                    "name": "rows",
                    "shape": [len(numbers), N_COLUMNS],
                    "datatype": "FP64",
                    "data": [query(number) for number in numbers],
                }
            ],
        }
        connection.request("POST", "/v2/models/model/infer", json.dumps(body))
        response = connection.getresponse()
        reply = json.loads(response.read())
        if response.status == 503:
            time.sleep(0.01)
            return False
        if response.status == 200:
            parameters = reply["parameters"]
            labels = reply["outputs"][0]["data"]
            rows = zip(numbers, labels, parameters["sequence"], parameters["charge_nats"], strict=True)
            self.answers.write("".join(f"{json.dumps(row)}\n" for row in rows))
        elif response.status != 403:
            sys.stderr.write(f"unexpected: {response.status} {reply}\n")
            os._exit(3)
        return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("artifact")
    parser.add_argument("answers", type=Path)
    parser.add_argument("--ledger")
    parser.add_argument("--kills", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    listening = socket.create_server(("127.0.0.1", 0), backlog=128)
    orders, give = os.pipe()
    take, pids = os.pipe()
    if os.fork() == 0:
        os.close(give)
        os.close(take)
        fork_servers(options, listening, orders, pids)
        os._exit(0)
    os.close(orders)
    os.close(pids)
    with os.fdopen(take) as reports, listening:
        reports.readline()
        loop(options, listening.getsockname()[1], lambda order: os.write(give, order.encode()), reports)


def loop(options, port, order, reports):
    rng, stop = random.Random(options.seed), threading.Event()
    with options.answers.open("a", buffering=1) as answers:
        clients = [Client(port, f"{options.seed} {i}", answers, stop) for i in range(N_CLIENTS)]
        for client in clients:
            client.start()
        for number in range(options.kills):
            at_point = number % 2 == 0
            order(f"{rng.choice(POINTS) if at_point else 'never'} {rng.randint(1, 12)}\n")
            # At random moments: sometimes before it is up, mostly while it serves. A failpoint may never be reached
            # once the budget is spent.
            end(reports, 1.0 if at_point else rng.uniform(0.0, 0.25))
        stop.set()
        order("never 1\n")  # so that no client waits for ever
        end(reports, 0.0, [client.join for client in clients])


def end(reports, patience_s, before=()):
    """Kill a server unless it dies in time."""
    pid = int(reports.readline())
    select.select([reports], [], [], patience_s)
    for wait in before:
        wait(30)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    assert reports.readline() == "dead\n"


if __name__ == "__main__":
    main()
