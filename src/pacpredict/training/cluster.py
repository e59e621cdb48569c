"""A Ray cluster: how to reach it, and how to say that it cannot be reached."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pacpredict.exceptions import ClusterUnavailable, InvalidInput, MissingExtra

_SECONDS_TO_CONNECT = 5.0
# What a client of HTTP/2 says first, with an empty list of settings, and the kind of frame that a server answers with.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_SETTINGS = 4


@dataclass(frozen=True)
class Cluster:
    """Where models are trained or vote, and what each of them takes."""

    address: str | None = (
        None  # host:port of the head; None: a cluster that runs here, or else one that is started
    )
    cpus_per_model: float = 1.0
    gpus_per_model: float = 0.0
    actors: int | None = (
        None  # that models which vote are spread over, each with this many; None: one for each CPU
    )

    def __post_init__(self) -> None:
        if (
            self.cpus_per_model < 0
            or self.gpus_per_model < 0
            or not self.cpus_per_model + self.gpus_per_model
        ):
            raise InvalidInput(
                "a model needs a share of a CPU or of a GPU, got "
                f"{self.cpus_per_model:g} CPUs and {self.gpus_per_model:g} GPUs per model"
            )
        if (self.address or "").startswith("ray://"):
            raise InvalidInput(
                f"{self.address} is the address of a proxy: run this on a node of the cluster, and give host:port of "
                "its head, or auto"
            )


def library() -> Any:
    try:
        import ray  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("ray", "a Ray cluster") from problem
    return ray


@contextmanager
def connected(cluster: Cluster) -> Iterator[Any]:
    """Give Ray, connected. A connection that the caller had before is used, and stays."""
    ray = library()
    if ray.is_initialized():
        yield ray
        return
    connect(cluster)
    try:
        yield ray
    finally:
        ray.shutdown()


def connect(cluster: Cluster) -> Any:
    """Connect to a cluster and return Ray; ClusterUnavailable if that cannot be done within seconds."""
    ray = library()
    check_address(cluster)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here reports to nobody
    try:
        ray.init(
            address=cluster.address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            **({} if cluster.address else {"include_dashboard": False}),
        )
    except (
        Exception
    ) as problem:  # its errors have no common class: a node that starts too slowly is a bare Exception
        raise ClusterUnavailable(
            f"the Ray cluster at {cluster.address or 'this machine'} cannot be used: {problem}"
        ) from problem
    return ray


def check_address(cluster: Cluster) -> None:
    """See whether something listens that could be the head: Ray itself would try for many minutes."""
    library()
    address = cluster.address
    if address is None or address in {"auto", "local"}:
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(
            f"{address!r} is not an address of a Ray cluster: give host:port of its head, or auto"
        )
    try:
        with socket.create_connection(
            (host.strip("[]"), int(port)), timeout=_SECONDS_TO_CONNECT
        ) as connection:
            if os.environ.get("RAY_USE_TLS") == "1":
                return  # would have to be greeted otherwise
            connection.sendall(_HELLO)
            answer = connection.recv(9)
    except (OSError, OverflowError) as problem:
        raise ClusterUnavailable(
            f"there is no Ray cluster at {address}: {problem}; `ray start --head` starts one and says its address"
        ) from problem
    if len(answer) < 4 or answer[3] != _SETTINGS:
        raise ClusterUnavailable(f"what listens at {address} is not the head of a Ray cluster")
