"""An audit: every attack there is against simulated futures of one deployment, in one go.

Nothing here reads the secret or the ledger. Games draw secrets of their own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from pacpredict.artifact.artifact import Artifact
from pacpredict.audit.adversaries import N_STEPS, TOTAL, Adversary, Bout, Duel, choose_targets, duel
from pacpredict.audit.appendix import Attack, Futures, attack_all, points_of
from pacpredict.audit.games import Reading, Rules
from pacpredict.audit.membership import (
    N_LOOKS,
    Inference,
    Questions,
    Strategy,
    imagine,
    memory_needed,
    questions,
    score,
)
from pacpredict.audit.presence import Presence
from pacpredict.audit.presences import check_retrained, presences
from pacpredict.audit.search import search
from pacpredict.audit.self_test.mechanism import served_mechanism
from pacpredict.audit.self_test.results import CheckResult
from pacpredict.audit.self_test.run import n_stages, run_self_test
from pacpredict.audit.self_test.stages import N_RELEASES, N_SESSIONS
from pacpredict.audit.subject import Subject, check_memory, check_pool
from pacpredict.core.decode import Decoder
from pacpredict.core.plan import propose_odds_limit
from pacpredict.core.simulate import Simulation
from pacpredict.core.vote_rule import VoteRule
from pacpredict.exceptions import InvalidInput
from pacpredict.mechanism.budget import Budget
from pacpredict.rows.kind import AnyRows
from pacpredict.training.fit import Progress, no_progress
from pacpredict.training.pool import Pool
from pacpredict.types import IntArray, Votes

# Steps in which futures with a larger total spend it: the attacks of appendix C are made at their end, too.
_LARGER_STEPS = 2000
# Futures with a larger total are cheap, and there are so many more of them.
_LARGER_TRIALS = 10
# Parts of an audit but for games and the self-test, as its progress counts them: two of futures, two of other attacks,
# presence.
_N_PARTS = 5
# Bytes that a self-test keeps of each number that was released.
_BYTES_PER_RELEASE = 256
_N_KINDS = 2  # of targets


class Plan(NamedTuple):
    """How much is done."""

    n_trials: int = 100  # futures of each kind
    n_queries: int = 100_000  # contested ones, in each future
    n_targets: int = 10  # of each kind, for adversaries who are after one
    n_runs: int = 50  # against each of them
    n_sessions: int = N_SESSIONS  # of the self-test, as they are served
    n_retrained: int = 0  # records without which all models are trained again
    seed: int = 1
    n_jobs: int = -1  # threads, and models trained at a time; -1: one per core


@dataclass(frozen=True)
class Audit:
    made: datetime
    version: str
    about: dict[str, Any]
    plan: Plan
    inferences: list[Inference]
    larger: Inference  # with a larger total
    attacks: list[Attack]  # at the end of the deployment's own futures
    larger_attacks: list[Attack]
    duels: list[Duel]
    self_test: list[CheckResult]
    presences: dict[str, list[Presence]]  # by what records, and how the world without them was found


def audit(
    artifact: Artifact,
    pool: Pool,
    plan: Plan,
    *,
    decode: Decoder | None = None,
    votes: VoteRule | None = None,
    public: AnyRows | None = None,
    progress: Progress = no_progress,
) -> Audit:
    """Make every attack. What cannot be done is said before anything is."""
    _check(plan)
    check_memory(_needed(artifact, plan), f"{plan.n_trials:,} trials")
    check_retrained(plan.n_retrained, artifact.n_records)
    check_pool(artifact, pool)
    subject = Subject.of(artifact, pool, decode=decode, votes=votes)
    asked = _all_questions(
        subject, plan, None if public is None else artifact.ensemble(rule=subject.rule).votes(public)
    )
    players = _players(subject)
    mechanism = served_mechanism(artifact.ensemble(rule=subject.rule), artifact.recipe, decode)
    n_tests = n_stages(mechanism, subject.votes)
    n_parts = _N_PARTS + n_tests + _N_KINDS * (1 + len(players))
    done = iter(range(1, n_parts + 1))

    def step() -> None:
        progress(next(done), n_parts)

    progress(0, n_parts)
    inferences, own = _attack_futures(subject, plan, asked)
    step()
    larger_future, larger = _attack_larger(subject, plan)
    step()
    points = points_of(pool)
    attacks = attack_all(subject, own, points=points)
    step()
    larger_attacks = attack_all(subject, larger_future, points=points)
    step()
    duels = list(_duels(artifact, pool, subject, plan, players, step))
    self_test = run_self_test(
        mechanism, subject.votes, seed=plan.seed, n_sessions=plan.n_sessions, progress=lambda *_: step()
    )
    found_presences = dict(presences(artifact, pool, subject, plan.n_retrained, plan.seed, plan.n_jobs))
    step()
    return Audit(
        datetime.now(UTC),
        version("pacpredict"),
        describe(artifact, subject),
        plan,
        inferences,
        larger,
        attacks,
        larger_attacks,
        duels,
        self_test,
        found_presences,
    )


def describe(artifact: Artifact, subject: Subject) -> dict[str, Any]:
    budget = subject.budget
    return {
        "name": artifact.path.name,
        "identity": artifact.identity,
        "learner": artifact.learner.name,
        "title": artifact.learner.title,
        "models": subject.n_models,
        "records": len(subject.votes),
        "units": subject.n_units,
        "unit": subject.unit,
        "decoder": subject.decode,
        "votes": subject.rule,
        "noise": budget.noise,
        "step_budget_nats": budget.step,
        "total_nats": budget.total,
        "odds_limit": budget.odds_limit,
        "charging": budget.charging,
        "contested_share": subject.contested().size / len(subject.votes),
        "prior": subject.priors["membership"],
    }


def _check(plan: Plan) -> None:
    for name, least in (
        ("n_trials", 2),
        ("n_queries", 1),
        ("n_targets", 1),
        ("n_runs", 2),
        ("n_sessions", 2),
        ("n_retrained", 0),
    ):
        if getattr(plan, name) < least:
            raise InvalidInput(f"{name} must be at least {least}, got {getattr(plan, name)}")


def _needed(artifact: Artifact, plan: Plan) -> int:
    """Return the bytes that an audit takes, about, before any model has voted."""
    n_models, n_units = artifact.recipe.n_models, artifact.space.units.count
    trials = _LARGER_TRIALS * plan.n_trials
    self_test = plan.n_sessions * N_RELEASES * _BYTES_PER_RELEASE
    return memory_needed(n_models, n_units, trials, N_LOOKS) + artifact.n_records * n_models * 16 + self_test


def _all_questions(subject: Subject, plan: Plan, public: Votes | None) -> dict[Strategy, Questions]:
    """Choose what is asked of futures: records on which no models differ are refused before any of these begins."""
    strategies: list[Strategy] = ["random", "once", "contested"]
    if public is not None:
        strategies.append("public")
    n_queries = min(plan.n_queries, subject.budget.total_steps)
    return {strategy: questions(subject, strategy, n_queries, public) for strategy in strategies}


def _attack_futures(
    subject: Subject, plan: Plan, asked: Mapping[Strategy, Questions]
) -> tuple[list[Inference], Futures]:
    found, first = [], None
    for strategy, chosen in asked.items():
        future = imagine(
            subject,
            chosen,
            n_trials=plan.n_trials,
            seed=plan.seed,
            odds_limit=subject.budget.odds_limit,
            n_jobs=plan.n_jobs,
        )
        first = first or _end(subject, future)
        found.append(score(subject, strategy, future, subject.budget.odds_limit))
    return found, first or Futures(np.empty((0, 0)), np.empty(0, np.int64), 0.0)


def _attack_larger(subject: Subject, plan: Plan) -> tuple[Futures, Inference]:
    """Spend a larger total, without a limit on odds, so that there is something to see."""
    total = max(TOTAL, subject.budget.total)
    larger = replace(subject, budget=Budget(total / _LARGER_STEPS, total, noise=subject.budget.noise))
    future = imagine(
        larger,
        questions(larger, "random", _LARGER_STEPS),
        n_trials=_LARGER_TRIALS * plan.n_trials,
        seed=plan.seed,
        n_jobs=plan.n_jobs,
    )
    return _end(larger, future), score(larger, "random", future, None)


def _end(subject: Subject, future: Simulation) -> Futures:
    spent = float(future.spent_nats(subject.budget.charging)[:, -1].max())
    return Futures(np.exp(future.log_belief[:, -1]), future.secrets, spent)


def _players(subject: Subject) -> list[tuple[Adversary, Reading, Rules]]:
    """Return who plays, by what they see and by which rules."""
    total = max(TOTAL, subject.budget.total)
    free = Rules(subject.mechanism, total / N_STEPS, N_STEPS, noise=subject.budget.noise)
    limited = free._replace(limit=propose_odds_limit(total), delta=subject.budget.odds_delta)
    players: list[tuple[Adversary, Reading, Rules]] = [
        *((name, "history", free) for name in ("random", "divided", "memorised", "targeted", "search")),
    ]
    if subject.decode == "argmax":
        players.append(("targeted", "argmax", free))
    if subject.decode == "map":  # whose label says something to who asks the same again
        players.append(("memorised", "map", free))
    if subject.budget.odds_limit is not None:
        players.append(("targeted", "history", limited))
    return players


def _duels(
    artifact: Artifact,
    pool: Pool,
    subject: Subject,
    plan: Plan,
    players: Sequence[tuple[Adversary, Reading, Rules]],
    step: Callable[[], None],
) -> Iterator[Duel]:
    for kind, targets in choose_targets(subject, plan.n_targets, plan.seed).items():
        found = _found(artifact, pool, subject, targets, plan.seed)
        step()
        for name, sees, rules in players:
            bout = Bout(name, sees, rules, plan.n_runs)
            yield duel(subject, kind, targets, bout, seed=plan.seed, found=found if name == "search" else ())
            step()


def _found(artifact: Artifact, pool: Pool, subject: Subject, targets: IntArray, seed: int) -> Sequence[Votes]:
    """Search, for each target, for inputs that tell more about it than any record does."""
    ensemble, rng = artifact.ensemble(rule=subject.rule), np.random.default_rng(seed)
    return [
        search(
            pool.rows,
            np.flatnonzero(subject.units == target),
            subject.membership[:, target],
            ensemble.votes,
            rng,
        )
        for target in targets
    ]
