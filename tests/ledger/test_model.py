"""Clients, crashes, retries and restarts in any order, against a model of the ledger in plain Python."""

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from ledger_contract import same_state
from small_deployment import (
    CLASSES,
    DEPLOYMENT,
    KEY,
    SECRET,
    STEP,
    M,
    ask,
    check_history,
    digest_of,
    votes_of,
)

from pacpredict.core.belief import Belief
from pacpredict.exceptions import BudgetExhausted, IdConflict
from pacpredict.ledger.postgres import PostgresLedger
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.session import Session

N_SESSIONS = 3
TOTAL_STEPS = 5  # fewer than there are contested queries, so that many histories come to the end
POINTS = ("before-draw", "after-draw", "before-insert", "after-insert", "before-commit", "after-commit")


class Crash(Exception):
    """The process ends here."""


class Model:
    """What a ledger must remember, and what it must answer: written for clarity, without any of our code."""

    def __init__(self, charging, when_exhausted):
        self.flat, self.goes_on = charging == "flat", when_exhausted == "unanimous"
        self.sequence = self.spent = 0
        self.numbers = {}  # of the release that answers a query
        self.ids = {}

    def copy(self):
        other = Model.__new__(Model)
        other.__dict__ = {**self.__dict__, "numbers": dict(self.numbers), "ids": dict(self.ids)}
        return other

    def cost(self, query):
        """Return the steps that a new query costs now, or None if it cannot be answered."""
        agreed = len(set(votes_of(query))) == 1
        if self.spent < TOTAL_STEPS:
            return 0 if agreed and not self.flat else 1
        return 0 if agreed and self.goes_on else None

    def ask(self, queries, name, partial):
        """Return what a request gets: [(number of the release, steps charged)], or an error; and remember it."""
        if name is not None and self.ids.get(name, queries) != queries:
            return IdConflict
        after, answers = self.copy(), []
        for query in queries:
            if query not in after.numbers:
                steps = after.cost(query)
                if steps is None:
                    break
                after.sequence += 1
                after.spent += steps
                after.numbers[query] = after.sequence
                answers.append((after.sequence, steps))
            else:
                answers.append((after.numbers[query], 0))
        if len(answers) < len(queries) and not (partial and answers):
            return BudgetExhausted
        if name is not None and after.sequence > self.sequence:  # noted with the first new answer
            after.ids[name] = queries
        self.__dict__ = after.__dict__
        return answers


request = st.tuples(
    st.lists(st.integers(0, 11), min_size=1, max_size=4),
    st.one_of(st.none(), st.sampled_from("abc")),
    st.booleans(),
)
group = st.lists(request, min_size=1, max_size=3)
session = st.integers(0, N_SESSIONS - 1)


class Deployment(RuleBasedStateMachine):
    """Sessions that share a ledger. Subclasses say where it is, and where a session can crash."""

    points = POINTS

    def __init__(self, charging, when_exhausted):
        super().__init__()
        self.budget = Budget(STEP, TOTAL_STEPS * STEP, charging, when_exhausted)
        self.model = Model(charging, when_exhausted)
        self.labels = {}  # what clients received
        self.bomb = None
        self.ledgers, self.sessions = [None] * N_SESSIONS, [None] * N_SESSIONS
        for i in range(N_SESSIONS):
            self.start(i)

    def open_ledger(self):
        raise NotImplementedError

    def at(self, point):
        if point == self.bomb:
            self.bomb = None
            raise Crash

    def start(self, i):
        self.ledgers[i] = self.open_ledger()
        self.sessions[i] = Session(
            CLASSES, self.budget, M, secret=SECRET, ledger=self.ledgers[i], deployment=DEPLOYMENT, at=self.at
        )  # fmt: skip

    def serve(self, i, requests):
        return self.sessions[i].serve(
            [ask(*queries, id=name, client="client", partial=partial) for queries, name, partial in requests]
        )

    @rule(i=session, requests=group)
    def ask(self, i, requests):
        expected = [self.model.ask(*each) for each in requests]
        for (queries, _, _), wanted, result in zip(requests, expected, self.serve(i, requests), strict=True):
            if isinstance(wanted, type):
                assert type(result) is wanted
                continue
            assert [(release.sequence, release.charge) for release in result] == [
                (n, s * STEP) for n, s in wanted
            ]
            for query, release in zip(queries, result, strict=False):
                assert release.label in votes_of(query)
                assert self.labels.setdefault(query, release.label) == release.label

    @rule(i=session, requests=group, data=st.data())
    def crash(self, i, requests, data):
        """A session that stops in the middle has committed all of its group, or nothing; a new one goes on."""
        self.bomb = data.draw(st.sampled_from(self.points))
        after = self.model.copy()
        for each in requests:
            after.ask(*each)
        try:
            self.serve(i, requests)
        except Crash:
            after = after if self.went_through else self.model
        self.bomb = None
        self.model = after
        self.restart(i)

    went_through = False  # whether a crash comes after the commit

    @rule(i=session)
    def restart(self, i):
        self.close(i)
        self.start(i)

    @rule(i=session, queries=st.lists(st.integers(0, 11), min_size=1, max_size=3))
    def recall(self, i, queries):
        found = self.ledgers[i].recall([digest_of(query) for query in queries])
        assert {digest: answer.sequence for digest, answer in found.items()} == {
            digest_of(query): self.model.numbers[query] for query in queries if query in self.model.numbers
        }

    @invariant()
    def spending_is_exact(self):
        for each in self.sessions:
            state = each.snapshot()
            assert (state.sequence, state.spent_steps) == (self.model.sequence, self.model.spent)
        assert self.model.spent <= TOTAL_STEPS

    def close(self, i):
        pass

    def teardown(self):
        if self.sessions[-1] is None:
            return
        entries = list(self.ledgers[0].entries())
        assert same_state(
            replay(entries, CLASSES, self.budget, Belief.uniform(M)), self.sessions[0].snapshot()
        )
        by_digest = {entry.digest: entry for entry in entries}
        for query, label in self.labels.items():
            assert by_digest[digest_of(query)].label == label
        assert {digest: entry.sequence for digest, entry in by_digest.items()} == {
            digest_of(query): number for query, number in self.model.numbers.items()
        }


class InMemory(Deployment):
    """One ledger that outlives its sessions; it commits in one step."""

    points = ("before-draw", "after-draw")

    def __init__(self, charging, when_exhausted):
        self.shared = MemoryLedger()
        super().__init__(charging, when_exhausted)

    def open_ledger(self):
        return self.shared


class Durable(Deployment):
    """Each session has a ledger of its own on the same database, as processes have."""

    def at(self, point):
        self.went_through = point == "after-commit"
        super().at(point)

    def close(self, i):
        self.ledgers[i].close()

    def teardown(self):
        try:
            super().teardown()
            check_history(self.ledgers[0], budget=self.budget)
        finally:
            for ledger in self.ledgers:
                if ledger is not None:
                    ledger.close()


class InSqlite(Durable):
    def __init__(self, charging, when_exhausted):
        self.directory = tempfile.TemporaryDirectory()
        super().__init__(charging, when_exhausted)

    def open_ledger(self):
        return SqliteLedger(Path(self.directory.name, "ledger"), deployment=DEPLOYMENT, at=self.at, key=KEY)

    def teardown(self):
        super().teardown()
        self.directory.cleanup()


def run(machine, n_examples, *arguments):
    """Try histories; a slow machine must not fail the test."""
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        lambda: machine(*arguments),
        settings=settings(
            max_examples=n_examples, stateful_step_count=20, deadline=None, suppress_health_check=quiet
        ),
    )


POLICIES = pytest.mark.parametrize(
    ("charging", "when_exhausted"), [("adaptive", "halt"), ("adaptive", "unanimous"), ("flat", "unanimous")]
)


@POLICIES
def test_any_history_in_memory(charging, when_exhausted):
    """Answers, charges, refusals and ids are those of the model, whatever happens in between."""
    run(InMemory, 60, charging, when_exhausted)


@POLICIES
def test_any_history_in_sqlite(charging, when_exhausted):
    """The same with sessions that share a file."""
    run(InSqlite, 20, charging, when_exhausted)


def test_any_history_in_postgresql(postgres):
    """The same with sessions that share a database."""
    names = itertools.count()

    class InPostgres(Durable):
        def __init__(self):
            self.url = postgres.create_database(f"model_{next(names)}")
            super().__init__("adaptive", "halt")

        def open_ledger(self):
            return PostgresLedger(self.url, deployment=DEPLOYMENT, at=self.at, key=KEY)

    run(InPostgres, 8)
