"""Serve a classifier's predictions with a proof that they hide which records were in its training set.

Names are imported when they are first used: the bounds need no NumPy, and only releases need compiled kernels.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pacpredict.core.belief import Belief
    from pacpredict.core.bounds import (
        advantage_bound,
        budget_for_success,
        epsilon_for_success,
        queries_supported,
        success_bound,
        success_for_epsilon,
    )
    from pacpredict.core.calibrate import Noise, calibrate, calibrate_votes
    from pacpredict.core.composition import compose_linear, compose_oblivious
    from pacpredict.core.plan import Plan, plan
    from pacpredict.core.roc import budget_for_tpr, tpr_bound, tpr_for_epsilon
    from pacpredict.core.simulate import Simulation, simulate
    from pacpredict.curator import Answers, Curator
    from pacpredict.deployment import Deployment
    from pacpredict.estimator import PrivateClassifier
    from pacpredict.evaluation.evaluate import Evaluation, evaluate
    from pacpredict.exceptions import PacPredictError
    from pacpredict.learners.heads.learner import Heads
    from pacpredict.mechanism.budget import Budget
    from pacpredict.mechanism.guarantee import Guarantee
    from pacpredict.mechanism.ledger import Entry, Ledger, MemoryLedger, State
    from pacpredict.mechanism.question import Ballots, Release, Request
    from pacpredict.mechanism.replay import replay
    from pacpredict.mechanism.secret import Secret
    from pacpredict.mechanism.session import Session
    from pacpredict.training.cluster import Cluster

__all__ = [
    "Answers",
    "Ballots",
    "Belief",
    "Budget",
    "Cluster",
    "Curator",
    "Deployment",
    "Entry",
    "Evaluation",
    "Guarantee",
    "Heads",
    "Ledger",
    "MemoryLedger",
    "Noise",
    "PacPredictError",
    "Plan",
    "PrivateClassifier",
    "Release",
    "Request",
    "Secret",
    "Session",
    "Simulation",
    "State",
    "advantage_bound",
    "budget_for_success",
    "budget_for_tpr",
    "calibrate",
    "calibrate_votes",
    "compose_linear",
    "compose_oblivious",
    "epsilon_for_success",
    "evaluate",
    "plan",
    "queries_supported",
    "replay",
    "simulate",
    "success_bound",
    "success_for_epsilon",
    "tpr_bound",
    "tpr_for_epsilon",
]

_HOME = {
    "Answers": "curator",
    "Ballots": "mechanism.question",
    "Belief": "core.belief",
    "Budget": "mechanism.budget",
    "Cluster": "training.cluster",
    "Curator": "curator",
    "Deployment": "deployment",
    "Entry": "mechanism.ledger",
    "Evaluation": "evaluation.evaluate",
    "Guarantee": "mechanism.guarantee",
    "Heads": "learners.heads.learner",
    "Ledger": "mechanism.ledger",
    "MemoryLedger": "mechanism.ledger",
    "Noise": "core.calibrate",
    "PacPredictError": "exceptions",
    "Plan": "core.plan",
    "PrivateClassifier": "estimator",
    "Release": "mechanism.question",
    "Request": "mechanism.question",
    "Secret": "mechanism.secret",
    "Session": "mechanism.session",
    "Simulation": "core.simulate",
    "State": "mechanism.ledger",
    "advantage_bound": "core.bounds",
    "budget_for_success": "core.bounds",
    "budget_for_tpr": "core.roc",
    "calibrate": "core.calibrate",
    "calibrate_votes": "core.calibrate",
    "compose_linear": "core.composition",
    "compose_oblivious": "core.composition",
    "epsilon_for_success": "core.bounds",
    "evaluate": "evaluation.evaluate",
    "plan": "core.plan",
    "queries_supported": "core.bounds",
    "replay": "mechanism.replay",
    "simulate": "core.simulate",
    "success_bound": "core.bounds",
    "success_for_epsilon": "core.bounds",
    "tpr_bound": "core.roc",
    "tpr_for_epsilon": "core.roc",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415  # reads files; only needed here

        return version("pacpredict")
    if name not in _HOME:
        raise AttributeError(f"module 'pacpredict' has no attribute {name!r}")
    value = getattr(import_module(f"pacpredict.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
