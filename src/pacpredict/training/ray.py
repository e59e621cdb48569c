"""Training on a Ray cluster: a lost node costs only what it was doing.

The records are put once into Ray's object store, from where each node fetches them. A model whose node is lost is
trained on another one, from the last state that it left on the desk of the driver. The driver writes the artifact;
nodes write nothing. What travels between nodes is pickled by Ray, so a cluster is trusted as this machine is; no file
of the artifact has anything of that.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pacpredict.exceptions import ClusterUnavailable, InvalidInput, PacPredictError
from pacpredict.learners.journal import Stage
from pacpredict.learners.learner import Learner
from pacpredict.training.block import Block, Fitted, Work, train_block
from pacpredict.training.cluster import Cluster, check_address, connected
from pacpredict.training.scratch import Scratch
from pacpredict.training.versions import library_versions

# A lost node is no reason to give up a model, however often that happens.
_AGAIN_AND_AGAIN = -1


def train_on_cluster(
    cluster: Cluster, work: Work, blocks: Iterable[Block], scratch: Scratch | None
) -> Iterator[list[tuple[int, Fitted]]]:
    """Yield blocks of models as they are finished, in any order."""
    with connected(cluster) as ray:
        _check_resources(ray, cluster)
        desk = None if scratch is None else _RemoteDesk(ray, scratch)
        shared, versions = ray.put(work), library_versions(work.learner)
        train = ray.remote(_train).options(
            num_cpus=cluster.cpus_per_model, num_gpus=cluster.gpus_per_model, max_retries=_AGAIN_AND_AGAIN
        )
        pending = [train.remote(shared, block, desk, versions) for block in blocks]
        try:
            while pending:
                (finished, *_), pending = ray.wait(pending)
                yield _result(ray, finished)
        finally:
            for one in pending:
                ray.cancel(one, force=True)


def check_cluster(cluster: Cluster, learner: Learner) -> None:
    """Refuse a cluster that cannot be reached, as far as that can be seen in a moment."""
    if learner.needs_gpu != bool(cluster.gpus_per_model):
        raise InvalidInput(
            "networks with device=cuda need GPUs per model, and only they do; got "
            f"{cluster.gpus_per_model:g} GPUs per model and {learner.config().get('params', {}).get('device', 'cpu')}"
        )
    check_address(cluster)


def _check_resources(ray: Any, cluster: Cluster) -> None:
    """Refuse models that no node could ever train; Ray would wait for one to come."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    wanted = {"CPU": cluster.cpus_per_model, "GPU": cluster.gpus_per_model}
    if not any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
        offered = "; ".join(f"{node.get('CPU', 0):g} CPUs and {node.get('GPU', 0):g} GPUs" for node in nodes)
        raise ClusterUnavailable(
            f"no node of the cluster has {cluster.cpus_per_model:g} CPUs and {cluster.gpus_per_model:g} GPUs for a "
            f"model; its nodes have {offered}"
        )


def _train(
    work: Work, block: Block, desk: "_RemoteDesk | None", versions: dict[str, str]
) -> list[tuple[int, Fitted]]:
    """Train models on a node, with the driver's versions of libraries: otherwise they would be others."""
    if (here := library_versions(work.learner)) != versions:
        other = ", ".join(
            f"{name} {here.get(name)} where the driver has {wanted}"
            for name, wanted in versions.items()
            if here.get(name) != wanted
        )
        raise ClusterUnavailable(f"a node has {other}: install the same versions on all nodes")
    return train_block(work, block, desk)


def _result(ray: Any, finished: Any) -> list[tuple[int, Fitted]]:
    try:
        result: list[tuple[int, Fitted]] = ray.get(finished)
    except ray.exceptions.RayTaskError as problem:
        if isinstance(problem.cause, PacPredictError):
            raise problem.cause from None
        raise
    return result


class _RemoteDesk:
    """The scratch folder of the driver, as nodes reach it: through an actor on the driver's node."""

    def __init__(self, ray: Any, scratch: Scratch) -> None:
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        self._actor = (
            ray.remote(Scratch)
            .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)
            .remote(scratch.folder.resolve(), scratch.seconds)
        )
        self.seconds = scratch.seconds

    def kept(self, model: int) -> bytes | None:
        return self._ask("kept", model)

    def keep(self, model: int, state: bytes) -> None:
        self._ask("keep", model, state)

    def report(self, model: int, stage: Stage) -> None:
        self._ask("report", model, stage)

    def _ask(self, what: str, *given: Any) -> Any:
        import ray  # noqa: PLC0415  # an extra, which every node has

        return ray.get(getattr(self._actor, what).remote(*given))
