"""A Ray cluster of two nodes on one machine, each a set of processes of its own, for tests."""

import os
import signal
import warnings

import pytest

# Before Ray is imported: it reports to nobody, and keeps its own warnings about the future to itself.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Its workers would otherwise yield to all other tests, and take minutes where these use all cores.
os.environ.setdefault("RAY_worker_niceness", "0")


class TwoNodes:
    """One CPU each; the driver is on the first."""

    def __init__(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Ray's own modules
            from ray.cluster_utils import Cluster  # noqa: PLC0415

            self._cluster = Cluster(
                initialize_head=True, head_node_args={"include_dashboard": False, **self._resources}
            )
            self.address = self._cluster.address
            self._second = None
            self.revive()

    _resources = {"num_cpus": 1, "object_store_memory": 100_000_000}  # noqa: RUF012

    def kill(self):
        """Kill all processes of the second node, as if its plug were pulled."""
        self._cluster.remove_node(self._second, allow_graceful=False)
        self._second = None

    def revive(self):
        """Let there be a second node, if there is none."""
        if self._second is None:
            self._second = self._cluster.add_node(**self._resources)

    def close(self):
        self._cluster.shutdown()


def kill_actor(handle, how=signal.SIGKILL):
    """Kill the process of an actor, as the kernel does when memory runs out, or stop it; returns its number."""
    import ray  # noqa: PLC0415

    pid = ray.get(handle.__ray_call__.remote(lambda _: os.getpid()))
    os.kill(pid, how)
    return pid


@pytest.fixture(scope="module")
def two_nodes():
    cluster = TwoNodes()
    yield cluster
    cluster.close()
