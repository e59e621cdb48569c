"""A small deployment for tests of durable ledgers, and what must hold of any history of it."""

import hashlib

import numpy as np
from ledger_contract import same_state

from pacpredict.core.belief import Belief
from pacpredict.ledger.home import Home
from pacpredict.ledger.records import first_link, next_link
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.question import Ballots, Request, request_key
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.secret import Secret
from pacpredict.mechanism.session import Session

M, CLASSES = 8, 4
DEPLOYMENT = "artifact-1"
STEP = 2.0**-8
SECRET = Secret(3, M, b"salt" * 8)
KEY = SECRET.key("ledger")
PLENTY = Budget(STEP, 2**30 * STEP)
# What a session is made with so that it releases labels through a channel, within a limit, and never halts.
LIMITED = {"odds_limit": 0.5, "when_exhausted": "belief"}


def digest_of(number):
    return hashlib.sha256(f"query {number}".encode()).digest()


def votes_of(number):
    """All models agree on every third query."""
    rng = np.random.default_rng(number)
    votes = rng.integers(CLASSES, size=M)
    return np.full(M, votes[0]) if number % 3 == 0 else votes


def ask(*numbers, **options):
    ballots = Ballots.check([votes_of(number) for number in numbers], CLASSES, M)
    return Request.of(ballots, [digest_of(number) for number in numbers], **options)


def asked_with(name, client=None):
    """The digest under which a ledger keeps a request's id."""
    return request_key(client, name)


def budget_of(steps=10_000, decode="argmax"):
    """Return the budget of a session with so many steps; one that samples is limited, too."""
    return Budget(STEP, steps * STEP, **(LIMITED if decode == "sample" else {}))


def make_session(ledger, steps=10_000, decode="argmax", **options):
    options = {
        "secret": SECRET,
        "ledger": ledger,
        "deployment": DEPLOYMENT,
        **options,
    }
    return Session(CLASSES, budget_of(steps, decode), M, decode=decode, **options)


def check_history(ledger, n_classes=CLASSES, n_models=M, budget=PLENTY):
    """Check that a history is whole: no gap, an unbroken chain, exact spending, and the belief that it implies."""
    records, state, head = list(ledger.records()), ledger.load(), ledger.head()
    link, spent = first_link(ledger.key, ledger.id, ledger.deployment), 0
    for number, record in enumerate(records, 1):
        assert record.entry.sequence == number
        spent += record.entry.charged_steps
        assert record.spent_steps == spent
        link = next_link(ledger.key, link, record)
        assert record.chain == link
    assert (head.chain, head.sequence) == (link, len(records))
    digests = [record.entry.digest for record in records if record.entry.digest is not None]
    assert len(set(digests)) == len(digests)
    entries, prior = (record.entry for record in records), Belief.uniform(n_models)
    replayed = replay(entries, n_classes, budget, prior)
    assert same_state(replayed, state)
    return records


def home_at(directory):
    """The home of a deployment in a directory, as an artifact has it."""
    return Home(directory / "ledger.sqlite", directory / "witness.jsonl", DEPLOYMENT, KEY)


def found_home(directory):
    """Begin a deployment in a directory."""
    directory.mkdir(exist_ok=True)
    home = home_at(directory)
    home.found(str(home.ledger))
    return home


def serve_at(home, *numbers, **options):
    """Answer queries in a session that ends; returns the releases."""
    with home.open(**options) as ledger:
        (releases,) = make_session(ledger).serve([ask(*numbers)])
    return releases
