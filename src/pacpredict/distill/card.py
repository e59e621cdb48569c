"""The privacy card of a student, as plain values: what is promised, what it rests on, what is in it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np

from pacpredict.core.attacks import success_after
from pacpredict.core.filters import Filter
from pacpredict.deployment import Deployment
from pacpredict.distill.labels import Labels, Targets, last_of
from pacpredict.distill.questions import Order
from pacpredict.types import BoolArray, Votes

# Raise the version with every change of what a card says. No earlier one is read.
FORMAT, VERSION = "pacpredict student", 3

# What a promise is, of all that a deployment says about its privacy: nothing that changes with what is asked.
_PROMISE = (
    *("bounds", "fpr", "tpr", "odds_limit", "odds_delta", "total_nats"),
    *("step_budget_nats", "charging", "when_exhausted"),
)


# What Markdown takes for a mark; and nobody has longer names.
_MARKS, _LONGEST = frozenset("<>[]`*|\\"), 255


class Settings(NamedTuple):
    """All that decides what becomes of given labels."""

    learner: str
    params: Mapping[str, Any] | None
    filter: Filter
    alpha: float
    order: Order
    seed: int
    soft: bool
    balanced: bool


class Mark(NamedTuple):
    """One point of a learning curve."""

    rows: int  # that were asked
    kept: int
    spent_nats: float  # by the deployment, when they were answered
    accuracy: float | None  # of a student of these


def as_name(text: str) -> str:
    """Return a text as a card may have it though nobody checks it: a few words of a line, and nothing that ends it."""
    return "".join(sign if sign.isprintable() and sign not in _MARKS else "_" for sign in text[:_LONGEST])


def promise_of(deployment: Deployment) -> dict[str, Any]:
    """Return what holds for the whole life of a deployment, and so for every student of it."""
    about, privacy = deployment.describe(), deployment.privacy()
    promise = {name: privacy[name] for name in _PROMISE}
    named = {name: about[name] for name in ("models", "rate", "unit")}
    return promise | named | {"name": as_name(about["name"])}


def history_of(deployment: Deployment, labels: Labels) -> dict[str, Any]:
    """Say on which part of the ledger the labels rest, and who else was answered in it."""
    budget, last = deployment.artifact.recipe.budget, last_of(labels.sequences.tolist(), len(labels))
    point, link = labels.points[len(labels)], deployment.chain_at(last)
    numbers, first = np.unique(labels.sequences, return_index=True)
    others = last - numbers.size
    return {
        "deployment": deployment.artifact.identity,
        "releases": last,
        "chain": "" if link is None else link.hex(),
        "spent_nats": budget.nats(point.spent_steps),
        "other_releases": int(others),
        "success_if_settled": None if others else _success_of(deployment, labels.votes[first]),
    }


def _success_of(deployment: Deployment, votes: Votes) -> float:
    is_flat = deployment.artifact.recipe.budget.charging == "flat"
    n_charged = len(votes) if is_flat else int((votes != votes[:, :1]).any(axis=1).sum())
    return success_if_settled(deployment, n_charged)


def success_if_settled(deployment: Deployment, most_steps: int) -> float:
    """Return what queries would promise if they had been settled beforehand, and nothing else were ever answered.

    By the most that they could have cost: what they did cost depends on answers, where the limit on odds is near.
    """
    budget, prior = deployment.artifact.recipe.budget, deployment.artifact.space.priors["membership"]
    return success_after(budget.nats(min(most_steps, budget.total_steps)), prior)


def labels_part(deployment: Deployment, labels: Labels, kept: BoolArray, n_public: int) -> dict[str, Any]:
    """Count what was asked and what became of it."""
    values = deployment.artifact.classes.values
    counts = np.bincount(labels.labels[: len(kept)][kept], minlength=len(values)).tolist()
    return {
        "public_rows": n_public,
        "asked": len(labels),
        "kept": int(kept.sum()),
        "kinds": dict(sorted(Counter(labels.kinds).items())),
        "classes": [list(pair) for pair in zip(map(str, values), counts, strict=True)],
    }


def card_of(
    deployment: Deployment,
    labels: Labels,
    targets: Targets,
    settings: Settings,
    marks: Sequence[Mark],
    n_public: int,
    notes: Mapping[str, Any],
    evaluation: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Put the card together; the hashes of files are added when they are written."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "pacpredict": version("pacpredict"),
        "promise": promise_of(deployment),
        "history": history_of(deployment, labels),
        "labels": labels_part(deployment, labels, targets.kept, n_public),
        "settings": settings._asdict(),
        "notes": dict(notes),
        "curve": [mark._asdict() for mark in marks],
        "evaluation": None if evaluation is None else dict(evaluation),
    }
