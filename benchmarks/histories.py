"""Ledgers with long histories, made quickly and for real: answered, chained under the key and committed by the library.

What a session does once per request is done once per thousands of queries here. Digests ascend, so that the index over
them grows at its end and not in a random page for each record; looking one up costs the same.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from pacpredict import Budget, Ledger, Session
from pacpredict.core.belief import Belief
from pacpredict.ledger.home import Home
from pacpredict.ledger.witnessed import WitnessedLedger
from pacpredict.mechanism.answering import Answering
from pacpredict.mechanism.entropy import SystemEntropy
from pacpredict.mechanism.ledger import Entry, State
from pacpredict.mechanism.secret import Secret
from pacpredict.types import Votes

N_MODELS, N_CLASSES = 128, 2
CONTESTED = 0.1  # of all queries
BUDGET = Budget(2.0**-32, 1.0)
DEPLOYMENT, KEY = "benchmark", bytes(32)
PRIOR = Belief.uniform(N_MODELS)
SECRET = Secret(3, N_MODELS, bytes(32))  # the same in every run: histories are continued

# Entries of one transaction; more would not be faster.
TOGETHER = 20_000


def home_in(folder: Path) -> Home:
    """Return the home of a ledger in a folder; an empty folder gets one."""
    home = Home(folder / "ledger.sqlite", folder / "witness.jsonl", DEPLOYMENT, KEY)
    if not home.ledger.exists():
        folder.mkdir(parents=True, exist_ok=True)
        home.found(str(home.ledger))
    return home


@contextmanager
def temporary_ledger() -> Iterator[WitnessedLedger]:
    """Open an empty ledger with its witness, for a while."""
    with tempfile.TemporaryDirectory() as name, home_in(Path(name) / "a").open() as ledger:
        yield ledger


def begin(ledger: Ledger) -> Session:
    """Open the session that continues a history."""
    return Session(N_CLASSES, BUDGET, PRIOR, secret=SECRET, ledger=ledger, deployment=DEPLOYMENT)


def lengthen(ledger: Ledger, n_releases: int) -> None:
    """Let a history go on until it has so many releases."""
    rng = np.random.default_rng()
    answering = Answering(N_CLASSES, BUDGET, "argmax", PRIOR, SystemEntropy())
    state = begin(ledger).snapshot()
    while state.sequence < n_releases:
        n = min(TOGETHER, n_releases - state.sequence)
        entries, state = answer(answering, state, make_votes(n, rng), rng)
        ledger.commit(entries, state)


def answer(
    answering: Answering, before: State, votes: Votes, rng: np.random.Generator
) -> tuple[list[Entry], State]:
    """Answer queries that nobody has asked before; returns what is to be committed."""
    contested = (votes != votes[:, :1]).any(axis=1)
    answered = answering.answer(before, votes, (1 + contested).tolist(), SECRET)
    noise, first, entries = rng.bytes(24 * len(votes)), before.sequence + 1, []
    for q, (kind, label, charged, noisy) in enumerate(
        zip(answered.kinds, answered.labels, answered.charged, answered.noisy, strict=True)
    ):
        question = None if kind == "agreed" else votes[q]
        digest = digest_start(first + q) + noise[24 * q : 24 * q + 24]
        entries.append(Entry(first + q, charged, label, kind, question, noisy, digest))
    after = replace(
        before,
        sequence=before.sequence + len(votes),
        contested=before.contested + answered.n_contested,
        spent_steps=before.spent_steps + sum(answered.charged),
        log_belief=answered.log_belief,
        noisy=before.noisy + sum(noisy is not None for noisy in answered.noisy),
    )
    return entries, after


def digest_start(sequence: int) -> bytes:
    """Return how the digest of a query begins, by its number; the rest is random."""
    return sequence.to_bytes(8, "big")


def make_votes(n: int, rng: np.random.Generator) -> Votes:
    """Return votes (n, N_MODELS) on which a tenth of all models differ, if any do."""
    votes = np.repeat(rng.integers(N_CLASSES, size=(n, 1), dtype=np.int16), N_MODELS, axis=1)
    dissenters = (rng.random((n, 1)) < CONTESTED) & (rng.random((n, N_MODELS)) < 0.1)
    votes[dissenters] = 1 - votes[dissenters]
    votes.setflags(write=False)
    return votes
