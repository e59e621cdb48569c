"""What a server is started with."""

import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from pacpredict.core.decode import Decoder
from pacpredict.core.vote_rule import VoteRule
from pacpredict.exceptions import InvalidInput
from pacpredict.serving.gate import Visitors
from pacpredict.serving.limits import Limits
from pacpredict.serving.logs import Log
from pacpredict.training.cluster import Cluster


@dataclass(frozen=True)
class Settings:
    """What a server is started with; sent to the processes of its workers."""

    artifact: Path
    name: str
    ledger: str | None = None
    anchor: str | None = None
    trust: bool = False
    decode: Decoder | None = None  # another than the artifact's
    votes: VoteRule | None = None  # likewise
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    voters: Cluster | None = None  # where the models vote; None: in the server
    open: bool = False  # to everybody who can reach it, without a key
    separate_answers: bool = False  # of each key
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()  # addresses whose word about the caller is taken
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    metrics: bool = True
    log: Log = "text"
    drain_seconds: float = 5.0  # between being not ready any more and taking no more connections
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.name or "/" in self.name:
            raise InvalidInput(
                f"a model's name is part of a path, and {self.name!r} cannot be; choose another with --name"
            )
        if self.workers < 1:
            raise InvalidInput(f"there must be at least one worker, got {self.workers}")
        if self.workers > 1 and not (self.ledger or "").startswith(("postgresql://", "postgres://")):
            raise InvalidInput(
                "several workers need a PostgreSQL ledger: --ledger postgresql://... (`pacpredict ledger move` takes a "
                "deployment there). One worker answers many clients at a time, too"
            )
        if self.workers > 1 and self.voters is not None:
            raise InvalidInput(
                "models on a cluster are asked by one worker: each further one would load all of them again"
            )
        if self.log not in ("text", "json"):
            raise InvalidInput(f"logs are written as text or as json, not as {self.log!r}")
        if not self.drain_seconds >= 0:
            raise InvalidInput(f"nobody can wait {self.drain_seconds:g} seconds; say 0 or more")
        self.visitors()  # which says what is wrong with a host or an origin
        self._check_proxies()
        self._check_tls()

    def visitors(self) -> Visitors:
        return Visitors((self.host, *self.allow_hosts), self.allow_origins)

    @property
    def is_reachable(self) -> bool:
        """Whether others than this machine may reach it, directly or through a proxy."""
        return bool(self.proxies) or not _is_loopback(self.host)

    def _check_proxies(self) -> None:
        for proxy in self.proxies:
            try:
                ipaddress.ip_network(proxy)
            except ValueError:
                raise InvalidInput(
                    f"a proxy is named by its address, like 10.0.0.2 or 10.0.0.0/24, not by {proxy!r}"
                ) from None

    def _check_tls(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise InvalidInput("TLS needs both --tls-certificate and --tls-key")
        if self.tls_certificate is not None and self.tls_key is not None:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.tls_certificate, self.tls_key)
            except (OSError, ssl.SSLError) as problem:
                raise InvalidInput(
                    f"{self.tls_certificate} and {self.tls_key} are no certificate with its key: {problem}"
                ) from None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
