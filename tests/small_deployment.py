"""A small deployment for tests of durable ledgers, and what must hold of any history of it."""

import hashlib

import numpy as np

from ledger_contract import same_state
from pacpredict.core.belief import Belief
from pacpredict.ledger.records import first_link, next_link
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.request import Question, Request
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session

M, CLASSES = 8, 4
DEPLOYMENT = "artifact-1"
STEP = 2.0**-8
SECRET = 3


def digest_of(number):
    return hashlib.sha256(f"query {number}".encode()).digest()


def votes_of(number):
    """All models agree on every third query."""
    rng = np.random.default_rng(number)
    votes = rng.integers(CLASSES, size=M)
    return np.full(M, votes[0]) if number % 3 == 0 else votes


def question(number):
    return Question(digest_of(number), votes_of(number))


def ask(*numbers, **options):
    return Request([question(number) for number in numbers], **options)


def make_session(ledger, steps=10_000, **options):
    budget = Budget(STEP, steps * STEP)
    return Session(
        CLASSES, budget, M, secret=Secret(SECRET, M), ledger=ledger, deployment=DEPLOYMENT, **options
    )


def check_history(ledger, n_classes=CLASSES, step=STEP, n_models=M):
    """Check that a history is whole: no gap, an unbroken chain, exact spending, and the belief that it implies."""
    records, state, head = list(ledger.records()), ledger.load(), ledger.head()
    link, spent = first_link(ledger.id, ledger.deployment), 0
    for number, record in enumerate(records, 1):
        assert record.entry.sequence == number
        spent += record.entry.charged_steps
        assert record.spent_steps == spent
        link = next_link(link, record)
        assert record.chain == link
    assert (head.chain, head.sequence) == (link, len(records))
    digests = [record.entry.digest for record in records if record.entry.digest is not None]
    assert len(set(digests)) == len(digests)
    replayed = replay((record.entry for record in records), n_classes, step, Belief.uniform(n_models))
    assert same_state(replayed, state)
    return records
