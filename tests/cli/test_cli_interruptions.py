"""Fits that are killed, interrupted or started twice, as real processes."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from artifacts import model_files
from records import labels_of, mixed_table, recipe

from pacpredict.cli import main
from pacpredict.learners.registry import learner_named
from pacpredict.npz import to_bytes
from pacpredict.tables.read import read_table
from pacpredict.training.fit import fit
from pacpredict.training.pool import Pool

PROGRAM = shutil.which("pacpredict", path=Path(sys.executable).parent) or "pacpredict"
N_MODELS = 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    table = mixed_table(300)
    table.assign(kind=labels_of(table)).to_csv(folder / "train.csv", index=False)
    return folder


def command(out, *options):
    fixed = ["fit", "train.csv", "--target", "kind", "--learner", "random-forest", "--models", str(N_MODELS)]
    return [*fixed, "--out", out, "--jobs", "1", *options]


def start(folder, out, *options):
    """Start a fit that takes some seconds, in a process group of its own."""
    return subprocess.Popen(
        [PROGRAM, *command(out, *options)],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that starts tests in the background lets its children ignore Ctrl-C; a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )


def finished(folder, out):
    return sorted(path.name for path in (folder / f"{out}.partial" / "models").glob("*.json"))


def wait_for_models(process, folder, out, n):
    """Wait until n models more than now are on disk."""
    wanted = len(finished(folder, out)) + n
    deadline = time.monotonic() + 100
    while len(finished(folder, out)) < wanted and process.poll() is None:
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()


def stamps(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("models/*")}


@pytest.fixture(scope="module")
def whole(folder):
    """Return the models of a fit that nobody interrupted."""
    pool = Pool.of_frame(read_table(folder / "train.csv"), "kind")
    learner = learner_named("random-forest")
    fitted = fit(pool, learner, recipe(seed=1, n_models=N_MODELS), n_jobs=1)
    files = {f"models/{i:03d}.npz": learner.dump(one.model) for i, one in enumerate(fitted.models)}
    return {**files, "votes.npz": to_bytes(fitted.ensemble.voter.arrays())}


def test_killed_again_and_again(folder, whole):
    """Killed at random moments, a fit trains each finished model once, and ends with the same bytes."""
    chance = random.Random(1)
    kept = {}
    for n in (1, 2, 4):
        process = start(folder, "killed.pac", "--seed", "1")
        wait_for_models(process, folder, "killed.pac", n)
        time.sleep(chance.random() * 0.1)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.communicate()
        assert not (folder / "killed.pac").exists()
        partial = folder / "killed.pac.partial"
        now = stamps(partial)
        assert {name: now[name] for name in kept} == kept
        kept = {
            name: now[name]
            for record in finished(folder, "killed.pac")
            for name in (record, f"{record[:3]}.npz")
        }
    process = start(folder, "killed.pac", "--seed", "1")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert f"{len(kept) // 2}/{N_MODELS} models" in errors
    after = stamps(folder / "killed.pac")
    assert {name: after[name] for name in kept} == kept
    assert len(after) == 2 * N_MODELS
    assert model_files(folder / "killed.pac") == whole


def test_ctrl_c_and_the_second_fit(folder, monkeypatch, capsys):
    """Ctrl-C ends a fit with 130 and says how to go on; meanwhile a second fit to the same place is refused."""
    first = start(folder, "stopped.pac")  # without a seed: the same command must go on with the one it drew
    wait_for_models(first, folder, "stopped.pac", 1)
    os.killpg(first.pid, signal.SIGSTOP)  # it stays where it is while the second one tries
    monkeypatch.chdir(folder)
    assert main(command("stopped.pac")) == 2
    assert "another fit is writing" in capsys.readouterr().err
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to all processes of the group
    os.killpg(first.pid, signal.SIGCONT)
    output, errors = first.communicate(timeout=120)
    assert first.returncode == 130
    assert output == ""
    assert errors.splitlines()[-1] == "interrupted; run the same command again to go on from here"
    assert "Traceback" not in errors
    n_done = len(finished(folder, "stopped.pac"))
    assert 0 < n_done < N_MODELS
    again = start(folder, "stopped.pac")
    output, errors = again.communicate(timeout=120)
    assert again.returncode == 0
    assert f"{n_done}/{N_MODELS} models" in errors
    assert "random-forest" in output
