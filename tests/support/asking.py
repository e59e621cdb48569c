"""Requests to a session of eight models, for tests."""

import hashlib
from typing import NamedTuple

import numpy as np
from small_session import CLASSES, CONTESTED, SECRET, UNANIMOUS, M

from pacpredict.exceptions import PacPredictError
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.question import NO_BALLOTS, UNVOTED, Ballots, Request
from pacpredict.mechanism.session import Session

STEP = 0.25


class Query(NamedTuple):
    digest: bytes | None
    votes: object


def digest_of(name):
    return hashlib.sha256(str(name).encode()).digest()


def contested(name):
    return Query(digest_of(name), CONTESTED)


def agreed(name):
    return Query(digest_of(name), UNANIMOUS)


def ask(*queries, **options):
    ballots = Ballots.check([query.votes for query in queries], CLASSES, M)
    return Request.of(ballots, [query.digest for query in queries], **options)


def ask_unvoted(*names, **options):
    """Ask queries that no model has voted on."""
    return Request([digest_of(name) for name in names], NO_BALLOTS, [UNVOTED] * len(names), **options)


def make_serving(steps=1000, seed=0, ledger=None, **options):
    """A session with a seeded generator and a budget of so many steps, and its ledger."""
    ledger = MemoryLedger() if ledger is None else ledger
    budget = Budget(STEP, steps * STEP, **options)
    generator = np.random.default_rng(seed)
    return Session(CLASSES, budget, M, secret=SECRET, ledger=ledger, generator=generator), ledger


def free(releases):
    """The same answers, repeated."""
    return [release._replace(charge=0.0) for release in releases]


def kinds(results):
    """What became of each request: how many answers, or which error."""
    return [type(each) if isinstance(each, PacPredictError) else len(each) for each in results]
