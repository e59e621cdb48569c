"""Training and voting on a real Ray cluster of two nodes, one of which is lost on the way."""

import http.server
import re
import signal
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from artifacts import fit_noise, fit_small, model_files
from live_server import LiveServer
from ray_cluster import kill_actor, two_nodes  # noqa: F401  # a fixture
from records import mixed_table, recipe, small_learner
from tiny_networks import TINY_RESNET, coloured_images
from whole_values import text_pool, texts

from pacpredict.cli import main
from pacpredict.deployment import Deployment
from pacpredict.exceptions import (
    ClusterUnavailable,
    InvalidInput,
    MissingExtra,
    VotersUnavailable,
)
from pacpredict.learners.heads.learner import Heads
from pacpredict.learners.registry import learner_from
from pacpredict.learners.torch.weights import from_bytes
from pacpredict.training.cluster import Cluster, library
from pacpredict.training.pool import Pool
from pacpredict.training.spread import Spread

EPOCHS = 24


@pytest.fixture(scope="module")
def images():
    images, labels = coloured_images(32, side=16)
    return Pool.of(images, labels, kinds=("image",))


@pytest.fixture(scope="module")
def networks():
    return learner_from("wide-resnet", {**TINY_RESNET, "epochs": EPOCHS, "decay_epochs": [18]})


class Watcher(threading.Thread):
    """Reads which step each model has reached, and kills a node when both nodes are half-way."""

    def __init__(self, partial, act):
        super().__init__()
        self._states, self._act = partial / "training", act
        self.steps = {}
        self.is_over = False

    def run(self):
        while not self.is_over:
            for path in self._states.glob("*.state"):
                try:
                    step = from_bytes(path.read_bytes()[32:]).about["step"]
                except (OSError, ValueError):  # finished just now
                    continue
                self.steps.setdefault(int(path.stem), []).append(step)
            if self._act is not None and sum(seen[-1] >= EPOCHS / 2 for seen in self.steps.values()) >= 2:
                self._act()
                self._act = None
            time.sleep(0.02)


def test_a_node_is_lost_half_way(two_nodes, images, networks, tmp_path):  # noqa: F811
    """A fit whose second node is killed ends with the bytes of a local one, and goes on from states that were kept."""
    watcher = Watcher(tmp_path / "far.pac.partial", two_nodes.kill)
    watcher.start()
    try:
        fit_small(
            tmp_path / "far.pac",
            images,
            networks,
            recipe(n_models=4),
            backend=Cluster(two_nodes.address),
            seconds_between_states=0.0,
        )
    finally:
        watcher.is_over = True
        watcher.join()
    assert watcher._act is None, "the fit was over before the node was killed"
    assert all(np.all(np.diff(seen) >= 0) for seen in watcher.steps.values())
    two_nodes.revive()
    fit_small(tmp_path / "near.pac", images, networks, recipe(n_models=4), n_jobs=1)
    far, near = model_files(tmp_path / "far.pac"), model_files(tmp_path / "near.pac")
    assert len(far) == 4
    assert far == near


def test_from_the_terminal(two_nodes, tmp_path, monkeypatch, capsys):  # noqa: F811
    """`fit --backend ray --address` gives the models that a fit without it gives."""
    monkeypatch.chdir(tmp_path)
    table = mixed_table(60)
    table.assign(kind=np.arange(60) % 2).to_csv("train.csv", index=False)
    common = ["fit", "train.csv", "--target", "kind", "--learner", "ridge", "--models", "4", "--seed", "1"]
    assert main([*common, "--out", "near.pac", "--jobs", "1"]) == 0
    far = ["--out", "far.pac", "--backend", "ray", "--address", two_nodes.address]
    assert main([*common, *far]) == 0, capsys.readouterr().err
    assert model_files(tmp_path / "far.pac") == model_files(tmp_path / "near.pac")


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Return an artifact whose 8 models disagree on nearly everything."""
    path = tmp_path_factory.mktemp("noise") / "noise.pac"
    fit_noise(path, n_columns=3, step=2.0**-8, steps=1000)
    return path


def check_votes(path, rows, released):
    """Check that the votes of all models, as they vote here, are behind each release."""
    with Deployment.open(path) as here:
        ensemble = here.curator.ensemble
        canonical = ensemble.schema.rows(rows)
        votes = dict(zip(ensemble.schema.digests(canonical), ensemble.votes(canonical), strict=True))
        assert here.verify().releases == len(list(here.entries()))
    for entry in released:
        assert len(votes[entry.digest]) == 8
        if entry.question is None:
            assert set(votes[entry.digest]) == {entry.label}
        else:
            assert np.array_equal(entry.question, votes[entry.digest])


def test_an_actor_is_killed_while_serving(two_nodes, noise):  # noqa: F811
    """Whatever becomes of actors, all models have voted on what is released; whoever asks meanwhile waits."""
    rows = np.random.default_rng(1).normal(size=(90, 3))
    statuses = []
    with (
        Deployment.open(noise, voters=Cluster(two_nodes.address)) as deployment,
        LiveServer(deployment.curator) as server,
    ):
        spread = deployment.curator.ensemble.voter
        assert isinstance(spread, Spread)
        assert len(spread._parts) == 2

        def ask(mine):
            with httpx.Client(base_url=server.url, timeout=100) as client:
                asked = (client.post("/invocations", json={"inputs": [row]}) for row in mine.tolist())
                statuses.extend(answer.status_code for answer in asked)

        clients = [threading.Thread(target=ask, args=[rows[i::3]]) for i in range(3)]
        for client in clients:
            client.start()
        for i in (0, 1):
            while len(statuses) < 30 * (i + 1):
                time.sleep(0.001)
            kill_actor(spread._parts[i].actor(time.monotonic() + 60))
        for client in clients:
            client.join()
        released = list(deployment._ledger.ledger.entries())
    assert statuses == [200] * 90
    assert len(released) == 90
    assert sum(entry.question is not None for entry in released) > 60
    check_votes(noise, rows, released)


def ask_in_time(server, rows):
    """Ask, and see to it that nobody waits for ever."""
    started = time.monotonic()
    reply = server.http.post("/invocations", json={"inputs": rows})
    assert time.monotonic() - started < 30
    return reply


@pytest.mark.parametrize("n_hanging", [1, 2])
def test_actors_hang_while_serving(two_nodes, noise, monkeypatch, n_hanging):  # noqa: F811
    """Actors that neither vote nor die are replaced: requests are refused in time until all models vote again."""
    rows = np.random.default_rng(4 + n_hanging).normal(size=(2, 3))
    with (
        Deployment.open(noise, voters=Cluster(two_nodes.address)) as deployment,
        LiveServer(deployment.curator) as server,
    ):
        monkeypatch.setattr(Spread, "patience", 3.0)
        before = server.n_released
        spread = deployment.curator.ensemble.voter
        asked = rows.tolist()
        assert server.http.post("/invocations", json={"inputs": asked[:1]}).status_code == 200
        hanging = [
            kill_actor(part.actor(time.monotonic() + 60), signal.SIGSTOP)
            for part in spread._parts[:n_hanging]
        ]
        deadline = time.monotonic() + 90
        while (reply := ask_in_time(server, asked[1:])).status_code == 503:
            assert reply.json()["code"] == "voters-unavailable"
            assert server.n_released == before + 1
            assert time.monotonic() < deadline
        assert reply.status_code == 200  # at once, if the replacement was there in time
        assert server.n_released == before + 2
        assert not any(Path(f"/proc/{pid}").exists() for pid in hanging)
        released = list(deployment._ledger.ledger.entries())[-2:]
    check_votes(noise, rows, released)


def test_ray_hangs_while_serving(two_nodes, noise, monkeypatch):  # noqa: F811
    """Where Ray itself holds a question up, it is refused in time, and answered once Ray goes on."""
    rows, goes_on, put = (
        np.random.default_rng(8).normal(size=(1, 3)).tolist(),
        threading.Event(),
        library().put,
    )
    with (
        Deployment.open(noise, voters=Cluster(two_nodes.address)) as deployment,
        LiveServer(deployment.curator) as server,
    ):
        before = server.n_released
        with monkeypatch.context() as patch:
            patch.setattr(Spread, "patience", 1.0)
            patch.setattr("ray.put", lambda value: put(value) if goes_on.wait(60) else None)
            for _ in range(4):
                refused = httpx.post(f"{server.url}/invocations", json={"inputs": rows}, timeout=30)
                assert (refused.status_code, refused.json()["code"]) == (503, "voters-unavailable")
            goes_on.set()
        assert server.n_released == before
        assert server.http.post("/invocations", json={"inputs": rows}).status_code == 200
        assert server.n_released == before + 1


def test_models_that_cannot_be_read_for_a_while(two_nodes, noise):  # noqa: F811
    """If a lost actor's models are not there, nothing is answered; once they are again, the server answers."""
    rows = np.random.default_rng(3).normal(size=(1, 3)).tolist()
    with (
        Deployment.open(noise, voters=Cluster(two_nodes.address)) as deployment,
        LiveServer(deployment.curator) as server,
    ):
        before, models = server.n_released, noise / "models"
        models.rename(noise / "elsewhere")
        part = deployment.curator.ensemble.voter._parts[0]
        kill_actor(part.actor(time.monotonic() + 60))
        assert server.http.post("/invocations", json={"inputs": rows}).status_code == 500
        assert server.n_released == before
        (noise / "elsewhere").rename(models)
        deadline = time.monotonic() + 60
        while server.http.post("/invocations", json={"inputs": rows}).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert server.n_released == before + 1


def test_heads_on_words_vote_there(two_nodes, tmp_path):  # noqa: F811
    """Features may be a sparse matrix, too: the votes are those that the same heads have here."""
    pool = text_pool(n=60)
    fit_small(tmp_path / "words.pac", pool, Heads("tfidf", cache=None), recipe(n_models=4), n_jobs=1)
    rows, _ = texts(10, seed=1)
    votes = []
    for voters in (None, Cluster(two_nodes.address)):
        with Deployment.open(tmp_path / "words.pac", voters=voters) as deployment:
            ensemble = deployment.curator.ensemble
            votes.append(ensemble.votes(ensemble.schema.rows(rows)))
    assert np.array_equal(*votes)


def test_a_node_is_killed_while_serving(two_nodes, noise, monkeypatch):  # noqa: F811
    """While models have no place, requests are refused with 503 and nothing is released; then they are answered."""
    rows = np.random.default_rng(2).normal(size=(3, 3))
    with (
        Deployment.open(noise, voters=Cluster(two_nodes.address)) as deployment,
        LiveServer(deployment.curator) as server,
    ):
        monkeypatch.setattr(Spread, "patience", 2.0)
        before = server.n_released
        answer = server.http.post("/invocations", json={"inputs": [rows[0].tolist()]})
        assert answer.status_code == 200
        two_nodes.kill()
        refused = server.http.post("/invocations", json={"inputs": [rows[1].tolist()]})
        assert (refused.status_code, refused.json()["code"]) == (503, "voters-unavailable")
        assert "retry-after" in refused.headers
        assert server.n_released == before + 1
        again = server.http.post("/invocations", json={"inputs": [rows[0].tolist()]})
        assert again.json()["predictions"] == answer.json()["predictions"]  # what was answered needs no votes
        two_nodes.revive()
        deadline = time.monotonic() + 60
        while (
            later := server.http.post("/invocations", json={"inputs": [rows[1].tolist()]})
        ).status_code == 503:
            assert time.monotonic() < deadline
        assert later.status_code == 200
        assert server.n_released == before + 2


def test_models_that_find_no_place(two_nodes, noise, monkeypatch):  # noqa: F811
    """More actors than the cluster has CPUs for are refused at the start, with what there is."""
    monkeypatch.setattr(Spread, "patience", 3.0)
    cluster = Cluster(two_nodes.address, actors=4)
    with (
        Deployment.open(noise, voters=cluster) as deployment,
        pytest.raises(VotersUnavailable, match="of 8 models found a place"),
    ):
        _ = deployment.curator


def test_what_no_node_has_is_refused(two_nodes, images, networks, tmp_path):  # noqa: F811
    """Models for which no node has the CPUs or GPUs are refused before anything is trained."""
    with pytest.raises(
        ClusterUnavailable, match=r"no node of the cluster has 3 CPUs and 0 GPUs.*1 CPUs and 0 GPUs"
    ):
        fit_small(tmp_path / "a.pac", images, networks, backend=Cluster(two_nodes.address, cpus_per_model=3))
    on_gpu = learner_from("wide-resnet", {**TINY_RESNET, "device": "cuda"})
    with pytest.raises(ClusterUnavailable, match="1 GPUs for a model"):
        fit_small(tmp_path / "b.pac", images, on_gpu, backend=Cluster(two_nodes.address, gpus_per_model=1))
    with pytest.raises(InvalidInput, match="need GPUs per model"):
        fit_small(tmp_path / "c.pac", images, on_gpu, backend=Cluster(two_nodes.address))
    assert not (tmp_path / "c.pac.partial").exists()


def test_other_versions_are_refused(two_nodes, monkeypatch, tmp_path):  # noqa: F811
    """A node whose libraries are not the driver's would train another model; it is told so instead."""
    monkeypatch.setattr("pacpredict.training.versions.version", lambda _: "0.0")
    with pytest.raises(
        ClusterUnavailable, match=r"numpy .* where the driver has 0.0: install the same versions"
    ):
        fit_small(tmp_path / "a.pac", learner=small_learner("ridge"), backend=Cluster(two_nodes.address))


@pytest.fixture
def web_server():
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.RequestHandlerClass.log_message = lambda *_: None
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_cluster_that_is_not_there(tmp_path, web_server, monkeypatch, capsys):
    """An address at which no cluster listens is refused in seconds, by fit and by serve, and nothing is begun."""
    for address in ("127.0.0.1:1", "nowhere.invalid:6379", web_server):
        started = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=address):
            fit_small(tmp_path / "a.pac", backend=Cluster(address))
        assert time.monotonic() - started < 20
    monkeypatch.chdir(tmp_path)
    fit_small(tmp_path / "b.pac", learner=small_learner("ridge"))
    assert main(["serve", "b.pac", "--voters", "ray", "--address", "127.0.0.1:1", "--port", "0"]) == 2
    assert "there is no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err
    assert not (tmp_path / "a.pac.partial").exists()


@pytest.mark.parametrize("raised", [Exception, ConnectionError, RuntimeError, ValueError])
def test_a_cluster_that_does_not_start(raised, tmp_path, monkeypatch):
    """Whatever class Ray's error has, such as that of a node on a busy machine, what is raised here has a name."""

    def start(**_):
        raise raised("The current node timed out during startup")

    monkeypatch.setattr("ray.init", start)
    with pytest.raises(ClusterUnavailable, match=r"this machine cannot be used: .* timed out during startup"):
        fit_small(tmp_path / "a.pac", backend="ray")


def test_features_wait_for_the_cluster(tmp_path, monkeypatch, capsys):
    """A cluster that is not there is said before features are computed, which may take hours."""
    monkeypatch.chdir(tmp_path)
    texts = "".join(f"{word} {i},{word}\n" for i in range(8) for word in ("good", "bad"))
    (tmp_path / "texts.csv").write_text(f"text,label\n{texts}")
    heads = [
        "fit",
        "texts.csv",
        "--target",
        "label",
        "--learner",
        "heads",
        "--features",
        "tfidf",
        "--models",
        "4",
    ]
    assert main([*heads, "--out", "a.pac", "--backend", "ray", "--address", "127.0.0.1:1"]) == 2
    said = capsys.readouterr().err
    assert "there is no Ray cluster at 127.0.0.1:1" in said
    assert "features" not in said
    assert not (tmp_path / "a.pac.partial").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"address": "ray://head:10001"}, "address of a proxy"),
        ({"address": "head"}, "not an address"),
        ({"cpus_per_model": 0}, "needs a share"),
        ({"cpus_per_model": -1, "gpus_per_model": 2}, "needs a share"),
    ],
)
def test_what_cannot_be_a_cluster(options, complaint, tmp_path):
    """Addresses and shares that cannot be are refused with what to do."""
    with pytest.raises(InvalidInput, match=complaint):
        fit_small(tmp_path / "a.pac", backend=Cluster(**options))


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", "train.csv", "--target", "kind", "--out", "a.pac", "--address", "head:1"],
        ["serve", "a.pac", "--actors", "3"],
        ["serve", "a.pac", "--voters", "ray", "--workers", "2", "--ledger", "postgresql://x/y"],
    ],
)
def test_options_that_do_not_go_together(arguments, capsys):
    """Options about a cluster without one, and several workers with one, are refused."""
    assert main(arguments) == 2
    assert re.search("ray|cluster", capsys.readouterr().err)


def test_without_ray(monkeypatch, tmp_path):
    """Where Ray is not installed, whoever asks for it is told how to install it."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pacpredict\[ray\]'"):
        fit_small(tmp_path / "a.pac", backend="ray")
