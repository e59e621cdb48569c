"""How long the same models take to train in processes of this machine and on a Ray cluster with as many CPUs."""

import os
import time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from pacpredict.learners.learner import Learner
from pacpredict.learners.registry import learner_from
from pacpredict.training.cluster import Cluster, connected
from pacpredict.training.pool import Pool
from pacpredict.training.subsets import Subsets
from pacpredict.training.train import Backend, train

N_MODELS = 16
ROUNDS = 3  # the fastest counts: other programs on the machine only slow one down
TINY = {"depth": 10, "width": 1, "epochs": 2, "batch": 64, "device": "cpu"}


def pools() -> dict[str, tuple[Learner, Pool]]:
    """Return models that take about a second each: trees on a table, and networks on images."""
    x, y = make_classification(20_000, 30, n_informative=10, random_state=0)
    images = np.random.default_rng(0).integers(256, size=(512, 32, 32, 3), dtype=np.uint8)
    networks = learner_from("wide-resnet", TINY)
    return {
        "xgboost": (learner_from("xgboost"), Pool.of(x, y)),
        "wide-resnet, 10-1": (networks, Pool.of(images, np.arange(512) % 2, kinds=networks.takes)),
    }


def measure_places() -> list[dict[str, Any]]:
    """Time both places in turns, after each has trained some models, so that processes and libraries are there."""
    n_cpus = os.cpu_count() or 1
    cases = []
    with connected(Cluster()) as _:
        for name, (learner, pool) in pools().items():
            places = {"local": (None, n_cpus), "ray": (Cluster(), None)}
            models = {place: _train(learner, pool, n_cpus, *where) for place, where in places.items()}
            seconds: dict[str, list[float]] = {place: [] for place in places}
            for _ in range(ROUNDS):
                for place, where in places.items():
                    started = time.perf_counter()
                    models[place] = _train(learner, pool, N_MODELS, *where)
                    seconds[place].append(time.perf_counter() - started)
            if models["local"] != models["ray"]:
                raise SystemExit(f"{name}: the models differ")
            local, ray = min(seconds["local"]), min(seconds["ray"])
            times = {"local_seconds": round(local, 1), "ray_seconds": round(ray, 1)}
            cases.append({"learner": name, **times, "ratio": round(ray / local, 2)})
    return cases


def _train(
    learner: Learner, pool: Pool, n_models: int, backend: Backend, n_jobs: int | None
) -> dict[int, bytes]:
    subsets = Subsets.balanced(N_MODELS, pool.units.count, np.random.default_rng(0))
    trained = train(learner, pool, subsets, 0, range(n_models), n_jobs=n_jobs, backend=backend)
    return {i: learner.dump(fitted.model) for i, fitted in trained}
