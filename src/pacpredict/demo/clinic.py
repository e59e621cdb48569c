"""The demo as one object: patients, the artifact that is fitted on them, its server, and what a client has asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pacpredict.demo import patients, server
from pacpredict.demo.client import Client
from pacpredict.deployment import Deployment
from pacpredict.ledger.keys import Terms


class Clinic:
    """Fits, serves and asks; counts what was asked and how often the private answer was right."""

    def __init__(self, artifact: Path, log: Path) -> None:
        self.artifact = artifact
        self.pool, self.later = patients.load()
        self.n_paid_for = patients.PAID_ANSWERS
        self.n_asked = self.n_right = self.n_charged = 0
        self.key = ""  # of whoever looks at the demo
        self._log = log
        self._questions = patients.questions(self.later)
        self._key_of_client = ""
        self._client: Client

    def fit(self, n_models: int) -> None:
        """Train while another process compiles what the server will need, and make keys."""
        with server.compiling():
            patients.fit(self.pool, self.artifact, n_models)
        with Deployment.open(self.artifact) as deployment:
            self.key = deployment.keys.make(Terms("visitor", "admin"))
            self._key_of_client = deployment.keys.make(Terms("clinic"))

    @contextmanager
    def serving(self, port: int) -> Iterator[str]:
        with server.serving(self.artifact, server.free_port(port), self._log) as url:
            self._client = Client(url, self._key_of_client)
            yield url

    def ask(self) -> bool:
        """Ask about the next patient; False when the budget is spent."""
        patient = next(self._questions)
        answer = self._client.ask(patient.row)
        if answer is None:
            return False
        self.n_asked += 1
        self.n_right += answer.label == patient.diagnosis
        self.n_charged += answer.charge_nats > 0
        return True

    def privacy(self) -> dict[str, Any]:
        """Say what the ledger says; the server is gone by then."""
        with Deployment.open(self.artifact) as deployment:
            return deployment.privacy()
