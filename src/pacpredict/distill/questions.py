"""Which rows are asked, in which order and at what cost: settled before anything is paid for."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from pacpredict.core.bounds import budget_for_success
from pacpredict.curator import Curator
from pacpredict.exceptions import BudgetExhausted, InvalidInput
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.question import NO_BALLOTS, UNVOTED, Ballots, Known, Release, Request
from pacpredict.rows.kind import AnyRows
from pacpredict.training.ensemble import Ensemble
from pacpredict.types import FloatArray, IntArray, Votes

# At random; or by how many models agree, the most first: what costs nothing, then what is likeliest to be kept.
Order = Literal["random", "active"]
ORDERS: tuple[Order, ...] = get_args(Order)

# Rows in one request: so many answers are on disk before the next ones are drawn.
_AT_ONCE = 500

# Called with how many rows are done, and how many there are.
Progress = Callable[[int, int], None]

# Tells on which of some releases models differed, whatever these were charged.
Differed = Callable[[Collection[int]], Collection[int]]


@dataclass(frozen=True, eq=False)
class Questions:
    """Rows in the order in which they are asked."""

    rows: IntArray  # positions in the public data
    digests: list[bytes]
    ballots: Ballots  # of those that have no answer yet
    places: dict[bytes, int]  # of a query in the ballots
    known: Known
    differed: Differed
    spent_steps: int  # before
    n_releases: int  # before
    n_refused: int = 0  # rows that the budget, or the ceiling that was asked for, has no room for

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_known(self) -> int:
        """Rows that have their answer already."""
        return sum(digest in self.known.answers for digest in self.digests)

    @property
    def n_contested(self) -> int:
        """Different new queries on which models differ: one step each, at most."""
        return sum(self.ballots.n_voted[place] > 1 for place in self._new())

    @property
    def n_free(self) -> int:
        """Different new queries on which all models agree."""
        return len(self._new()) - self.n_contested

    def n_charged(self, budget: Budget) -> int:
        """Different new queries that cost a step, if all can be paid."""
        return len(self._new()) if budget.charging == "flat" else self.n_contested

    @property
    def is_alone(self) -> bool:
        """Whether nothing else was answered before."""
        return self.n_releases == len({digest for digest in self.digests if digest in self.known.answers})

    def steps(self, budget: Budget) -> int:
        """Count the steps that asking costs, at most."""
        differ = [self.ballots.n_voted[place] > 1 for place in self._new()]
        return sum(budget.charge_first(differ, self.spent_steps))

    @cached_property
    def _known_contested(self) -> frozenset[bytes]:
        """Known queries on which models differ: they may have been answered from the belief, and cost nothing."""
        answers = self.known.answers
        by_sequence = {answers[digest].sequence: digest for digest in self.digests if digest in answers}
        return frozenset(by_sequence[sequence] for sequence in self.differed(by_sequence.keys()))

    def most_steps(self, budget: Budget) -> int:
        """Count the steps that all rows cost at most, known ones too: what they did cost depends on answers."""
        return sum(self.costs(digest, budget) for digest in set(self.digests))

    def costs(self, digest: bytes, budget: Budget) -> int:
        """Count the steps that a query costs at most, or could have cost: one or none."""
        if budget.charging == "flat":
            return 1
        place = self.places.get(digest)
        return int(digest in self._known_contested if place is None else self.ballots.n_voted[place] > 1)

    def charged(self, digest: bytes) -> int:
        """Count the steps that a query has cost."""
        return self.known.answers[digest].charged_steps if digest in self.known.answers else 0

    def _new(self) -> list[int]:
        return [self.places[digest] for digest in dict.fromkeys(self.digests) if digest in self.places]

    def first(self, n: int) -> "Questions":
        """Leave out all rows after the first n."""
        return replace(
            self, rows=self.rows[:n], digests=self.digests[:n], n_refused=self.n_refused + len(self) - n
        )


def prepare(
    curator: Curator,
    rows: AnyRows,
    *,
    voters: Ensemble,
    differed: Differed,
    order: Order,
    seed: int,
    queries: int | None,
    progress: Progress,
) -> Questions:
    """Put rows into their order, and let all models vote on those that have no answer yet. Nothing is charged.

    Order and choice follow from the rows, the seed and the votes of all models: public quantities, and the same when an
    interrupted run is begun again. The voters are the curator's, who may have another way to look at rows.
    """
    if order not in ORDERS:
        raise InvalidInput(f"an order is one of {', '.join(ORDERS)}, got {order!r:.50}")
    digests = voters.schema.digests(rows)
    chosen, votes = in_order(voters, rows, order, seed, progress)
    chosen = chosen[:queries]
    state, known = curator.session.snapshot(), curator.session.recall(set(digests))
    first = {digests[row]: int(row) for row in reversed(chosen) if digests[row] not in known.answers}
    new = np.array(sorted(first.values()), np.int64)
    if new.size:
        own = _vote(voters, rows, new, progress) if votes is None else votes[new]
        ballots = curator.session.ballots(own)
    else:
        ballots = NO_BALLOTS
    places = {digests[row]: place for place, row in enumerate(new)}
    asked = [digests[row] for row in chosen]
    return Questions(chosen, asked, ballots, places, known, differed, state.spent_steps, state.sequence)


def in_order(
    voters: Ensemble, rows: AnyRows, order: Order, seed: int, progress: Progress
) -> tuple[IntArray, Votes | None]:
    """Return all rows in the order in which they are asked, with the votes on them if it depends on these."""
    chosen = at_random(len(rows), seed)
    if order == "random":
        return chosen, None
    votes = _vote(voters, rows, np.arange(len(rows)), progress)
    return chosen[np.argsort(-_agreement(votes)[chosen], kind="stable")], votes


def at_random(n_rows: int, seed: int) -> IntArray:
    """Return the numbers of all rows in an order that follows from the seed."""
    return np.random.default_rng(seed).permutation(n_rows)


def limit_to(questions: Questions, budget: Budget, success: float | None, prior: float) -> Questions:
    """Leave out the rows from the first on that could bring what is spent past the budget of a ceiling.

    A row on which models differ counts as a step, also one that was answered from the belief and charged nothing: so
    the number of rows is settled before the first answer, and the same when an interrupted run is begun again. Without
    a ceiling all rows must fit into what is left.

    Raises
    ------
    BudgetExhausted
        before anything is paid for.
    """
    if success is None:
        fitting = _fitting(questions, budget)
        if fitting < len(questions):
            raise _too_little(questions, budget, fitting)
        return questions
    nats = min(budget_for_success(success, prior), budget.total)
    if nats < max(budget.nats(questions.spent_steps), budget.step):
        raise BudgetExhausted(
            f"a ceiling of {100 * success:g}% allows {nats:g} nats, and {budget.nats(questions.spent_steps):g} are "
            f"spent already, in steps of {budget.step:g}: nothing can be asked. Nothing was charged",
            needed_nats=budget.step,
            left_nats=0.0,
        )
    return questions.first(_below(questions, replace(budget, total=nats)))


def ask(curator: Curator, questions: Questions, progress: Progress) -> list[Release]:
    """Ask the rows in turn, like any other queries; what is interrupted goes on where it was, at no second charge."""
    releases: list[Release] = []
    for start in range(0, len(questions), _AT_ONCE):
        digests = questions.digests[start : start + _AT_ONCE]
        places = [questions.places.get(digest, UNVOTED) for digest in digests]
        answers = questions.known.answers
        own = questions.known._replace(answers={one: answers[one] for one in digests if one in answers})
        (outcome,) = curator.serve([Request(digests, questions.ballots, places, own)])
        if isinstance(outcome, Exception):
            raise outcome
        releases += outcome.releases
        progress(len(releases), len(questions))
    return releases


def _fitting(questions: Questions, budget: Budget) -> int:
    """Count the rows before the first that does not fit."""
    new = [digest for digest in dict.fromkeys(questions.digests) if digest in questions.places]
    differ = [questions.ballots.n_voted[questions.places[digest]] > 1 for digest in new]
    n_fitting = len(budget.charge_first(differ, questions.spent_steps))
    return len(questions) if n_fitting == len(new) else questions.digests.index(new[n_fitting])


def _too_little(questions: Questions, budget: Budget, fitting: int) -> BudgetExhausted:
    wanted, left = questions.n_charged(budget), budget.total_steps - questions.spent_steps
    halts = "" if wanted > left else ". Once these are spent nothing is answered, not even what costs nothing"
    advice = (
        f"The first {fitting:,} of {len(questions):,} rows fit: --queries {fitting}"
        if fitting
        else "Not even the first row fits"
    )
    return BudgetExhausted(
        f"the budget does not suffice: {wanted:,} of the rows cost a step of {budget.step:g} nats each, and {left:,} "
        f"steps are left of {budget.total_steps:,}{halts}. Nothing was asked or charged. {advice}",
        needed_nats=budget.nats(wanted),
        left_nats=left * budget.step,
    )


def _below(questions: Questions, budget: Budget) -> int:
    """Count the rows before the first at which a total may be spent already."""
    own = sum(map(questions.charged, set(questions.digests)))
    settled = questions.spent_steps - own  # by others, and by the rows so far
    spent = questions.spent_steps  # the same, with what later rows have cost, whoever asked them
    seen: set[bytes] = set()
    for i, digest in enumerate(questions.digests):
        is_known = digest in questions.known.answers
        if settled >= budget.total_steps or (not is_known and spent >= budget.total_steps):
            return i
        if digest not in seen:
            seen.add(digest)
            settled += questions.costs(digest, budget)
            spent += questions.costs(digest, budget) - questions.charged(digest)
    return len(questions)


def _vote(voters: Ensemble, rows: AnyRows, chosen: IntArray, progress: Progress) -> Votes:
    parts = []
    for start in range(0, len(chosen), _AT_ONCE):
        parts.append(voters.votes(rows.take(chosen[start : start + _AT_ONCE])))
        progress(min(start + _AT_ONCE, len(chosen)), len(chosen))
    return np.concatenate(parts)


def _agreement(votes: Votes) -> FloatArray:
    """Return, of each row, the share of models that vote for its most frequent label."""
    counts = [(votes == label).sum(axis=1) for label in range(int(votes.max()) + 1)]
    return np.max(counts, axis=0) / votes.shape[1]
