"""From files to answers with tiny networks: fitted, killed in the middle of a model, served and asked."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from artifacts import fit_small, model_files
from live_server import ServerProcess
from records import recipe
from tiny_networks import TINY_BERT, TINY_RESNET, coloured_images, plain_texts

from pacpredict.deployment import Deployment
from pacpredict.learners.registry import learner_from
from pacpredict.learners.torch.weights import from_bytes
from pacpredict.training.pool import Pool

PROGRAM = shutil.which("pacpredict", path=Path(sys.executable).parent) or "pacpredict"
CASES = {
    "wide-resnet": ("images.npz", TINY_RESNET, coloured_images(32)),
    "bert-small": ("texts.csv", TINY_BERT, plain_texts(32)),
}


def command(name, folder, out):
    source, params, _ = CASES[name]
    settings = [f"{key}={value}" for key, value in params.items()]
    options = ["--models", "4", "--seed", "1", "--jobs", "1", "--save-every", "0", "--set", *settings]
    return [PROGRAM, "fit", folder / source, "--target", "label", "--learner", name, "--out", out, *options]


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """Return a name, a folder with the records, and the models of a fit that nobody interrupted."""
    folder = tmp_path_factory.mktemp(request.param)
    _, params, (records, labels) = CASES[request.param]
    np.savez(folder / "images.npz", image=records, label=labels)
    pd.DataFrame({"text": list(map(str, records)), "label": labels}).to_csv(folder / "texts.csv", index=False)
    learner = learner_from(request.param, params)
    pool = Pool.of(records, labels, kinds=learner.takes)
    fit_small(folder / "whole.pac", pool, learner, recipe(seed=1, n_models=4))
    return request.param, folder, model_files(folder / "whole.pac")


def reached(partial):
    """Return which step each model that is not finished has reached."""
    states = (partial / "training").glob("*.state")
    return {int(path.stem): from_bytes(path.read_bytes()[32:]).about["step"] for path in states}


# The command itself, killed with -9 as soon as a model's state of a step is written down. Whoever watches from outside
# may come too late: on a busy machine these models are finished between two looks.
KILLED = """
import os, signal, sys
from pacpredict.cli import main
from pacpredict.learners.torch.weights import from_bytes
from pacpredict.training.scratch import Scratch

model, step = int(sys.argv.pop(1)), int(sys.argv.pop(1))
keep = Scratch.keep

def keep_and_die(self, kept, state):
    keep(self, kept, state)
    if (kept, from_bytes(state).about["step"]) == (model, step):
        os.kill(os.getpid(), signal.SIGKILL)

Scratch.keep = keep_and_die
sys.exit(main())
"""


def test_killed_in_the_middle_of_models(case):
    """Killed with -9 while models are trained, a fit goes on within them and ends with the same bytes."""
    name, folder, whole = case
    partial = folder / "killed.pac.partial"
    wanted = command(name, folder, folder / "killed.pac")
    for model, step in ((0, 2), (0, 3), (1, 3)):
        killed = subprocess.run(
            [sys.executable, "-c", KILLED, str(model), str(step), *wanted[1:]],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert reached(partial) == {model: step}
    done = subprocess.run(wanted, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    # The second model was begun: the first line about models says how far it is.
    first = next(line for line in done.stderr.splitlines() if line.endswith("models") or " models; " in line)
    assert first.startswith("1/4 models; model 1 in epoch "), done.stderr
    assert model_files(folder / "killed.pac") == whole
    assert not (folder / "killed.pac" / "training").exists()


def test_served_and_asked(case):
    """A server answers images and texts as the artifact does, whatever shares a request, and charges once."""
    name, folder, _ = case
    records, _ = CASES[name][2]
    with ServerProcess(folder / "whole.pac", name="tiny") as server:
        if name == "wide-resnet":
            shape, data = [8, 32, 32, 3], records[:8].ravel().tolist()
            inputs = [{"name": "image", "datatype": "UINT8", "shape": shape, "data": data}]
        else:
            inputs = [{"name": "text", "datatype": "BYTES", "shape": [8], "data": list(records[:8])}]
        first = server.http.post("/v2/models/tiny/infer", json={"inputs": inputs})
        again = server.http.post("/v2/models/tiny/infer", json={"inputs": inputs})
    assert first.status_code == 200, first.text
    answers = first.json()["outputs"][0]["data"]
    assert answers == again.json()["outputs"][0]["data"]
    with Deployment.open(folder / "whole.pac") as deployment:
        ensemble = deployment.curator.ensemble
        votes = ensemble.votes(ensemble.schema.rows(records[:8]))
        voted = [set(ensemble.classes.labels(row).tolist()) for row in votes]
        assert all(answer in labels_voted for answer, labels_voted in zip(answers, voted, strict=True))
        assert deployment.ask(records[:8]).labels.tolist() == answers  # on record: nothing is charged again
        assert deployment.privacy()["queries"] == 8
