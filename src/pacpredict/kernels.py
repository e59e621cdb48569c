"""All numerical kernels in all variants, compiled in one go: afterwards no command waits for a compiler any more.

Numba compiles a kernel when it is first called with arguments of new types. Trees of single and of double precision,
with categories and without, releases and simulations are such variants; compiled as they are met, each of them lets
somebody wait.
"""

import fcntl
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
from llvmlite.binding import get_host_cpu_name

from pacpredict.audit.games import Rules, play
from pacpredict.core.compiled import cache_of, digest_of_sources
from pacpredict.core.odds_limit import reach_of_noise, spread_of
from pacpredict.core.release import answer_votes
from pacpredict.core.simulate import simulate
from pacpredict.learners.heads.logistic import fit_logistic
from pacpredict.learners.heads.problem import Problem
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.evidence import weigh
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.question import Request
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.session import Session
from pacpredict.votes import pack_xgboost
from pacpredict.votes.leave_one_out import LeaveOneOut
from pacpredict.votes.packed_trees import PackedTrees
from pacpredict.votes.trees import Tree, TreeModel, pack


def compile_once() -> bool:
    """Compile everything unless that was done before, by this user on this machine; returns whether it was needed.

    Several processes that begin at the same time wait for one of them.
    """
    folder = cache_of(answer_votes)
    if folder is None:  # each process compiles what it meets: there is nowhere to keep it
        return False
    done = folder / f"pacpredict-{_version()}.compiled"
    if done.exists():
        return False
    with _locked(folder):
        if done.exists():
            return False
        compile_all()
        done.touch()
    return True


def compile_all() -> None:
    """Call every kernel with arguments of every type that it is called with; what is cached is only loaded."""
    _compile_releases()
    _compile_votes()
    _compile_heads()
    _compile_games()


def _compile_releases() -> None:
    """Answer contested and unanimous questions, in each way that they come, and replay the history."""
    votes, budget, ledger = np.array([[0, 1], [1, 1]]), Budget(1.0, 10.0), MemoryLedger()
    session = Session(2, budget, 2, ledger=ledger)
    session.answer_all(votes)
    session.serve([Request.of(session.ballots(votes)), Request.of(session.ballots(votes))])
    replay(ledger.entries(), 2, budget, session.prior)
    weigh(ledger.entries(), 2, budget, session.prior, [1], [1])
    simulate(votes, [0, 1], budget.step, n_trials=1, seed=0, membership=np.eye(2), n_jobs=1)


def _compile_votes() -> None:
    """Let trees vote in every way: in single and in double precision, with one value at a leaf and with several."""
    pack_xgboost.margin(np.float32(0.5))
    LeaveOneOut.of(np.full((2, 1), 128, np.uint8), 1, 1).apply(np.zeros((1, 2), np.int16))
    row, nothing, never = np.zeros((1, 1)), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    for precision, n_values in ((np.float32, 1), (np.float64, 1), (np.float64, 2)):
        leaf = Tree(nothing - 1, nothing, nothing, np.zeros(1), never, np.zeros((1, n_values)), output=0)
        model = TreeModel([leaf], np.zeros(2, precision), np.arange(2))
        trees = PackedTrees(**pack([model], 1, single=precision is np.float32))
        for sets in (trees.sets, np.zeros(1, np.uint64)):
            replace(trees, sets=sets).voting_by(None).votes(row)
        columns, perfect = trees.columns, trees.perfect
        for least_swept in (1, 2):  # one row is swept, and walks
            if columns is not None:
                trees.voting_by(replace(columns, least_swept=least_swept)).votes(row)
            if perfect is not None:
                trees.voting_by(columns, replace(perfect, least_swept=least_swept)).votes(row)


def _compile_heads() -> None:
    """Train heads of two classes and of three."""
    for n_classes in (2, 3):
        labels = np.arange(6, dtype=np.int64) % n_classes
        fit_logistic(
            Problem(np.eye(6, 2, dtype=np.float32), labels, np.ones((1, 6), np.float32), n_classes), 1.0, 1
        )


def _compile_games() -> None:
    """Play a game of an audit, whose adversaries and decoders are values and not types."""
    play(np.array([[0, 1]], np.int16), np.array([True, False]), "random", Rules("gaussian", 1.0, 1), n_runs=1)
    reach_of_noise(np.eye(2, 1), np.ones(1), 0, 0.5)  # the claims' lint calls it from Python
    spread_of(np.zeros(2), np.zeros(2), 0)  # and so do releases of vectors


def _version() -> str:
    """Return what a compilation depends on, in short."""
    folders = ("core", "votes", "learners/heads", "audit")
    sources = [digest_of_sources(Path(__file__).parent / folder) for folder in folders]
    about = (*sources, numba.__version__, np.__version__, sys.version, get_host_cpu_name())
    return hashlib.sha256(repr(about).encode()).hexdigest()[:16]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "pacpredict.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(
                "pacpredict: waiting for another pacpredict that is compiling numerical kernels\n"
            )
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
