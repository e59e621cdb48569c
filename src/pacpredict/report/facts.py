"""What a report says, as plain values: computed from the artifact and its ledger, nothing of the secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any, NamedTuple

from pacpredict.core.decode import Decoder
from pacpredict.core.vote_rule import VoteRule
from pacpredict.deployment import Deployment
from pacpredict.ledger.verify import Verification
from pacpredict.training.space import summarise_posterior

# Moments that a picture of the spending has; more cannot be told apart on paper.
_MOMENTS = 300
# A forecast goes by the pace of this time, and is not made for less than the other.
RECENT, SHORTEST = timedelta(days=30), timedelta(days=1)


class Moment(NamedTuple):
    """How far a history had come at a time."""

    time: datetime
    answers: int
    spent_nats: float


@dataclass(frozen=True)
class Facts:
    made: datetime  # when the report was
    version: str
    about: dict[str, Any]  # what Deployment.describe says
    privacy: dict[str, Any]  # what Deployment.privacy says
    true_positives: float  # that a test of membership finds at most, at a rate of false positives of
    false_positives: float
    rows_left: int  # contested ones that can still be answered
    membership_posterior: dict[str, Any]
    moments: Sequence[Moment]
    lasts_until: datetime | None  # at the pace of the last month
    ledger: str  # where it is
    releases: int
    chain: str  # the last link, in hexadecimal
    verified: Verification | None  # None if nobody looked
    decoders: Sequence[Decoder]  # the one in use, and those by which answers on record were given
    vote_rules: Sequence[VoteRule]  # likewise

    def to_json(self) -> dict[str, Any]:
        return {
            **self.about,
            **self.privacy,
            "report_made": self.made.isoformat(timespec="seconds"),
            "true_positives": self.true_positives,
            "false_positives": self.false_positives,
            "rows_left": self.rows_left,
            "membership_posterior": self.membership_posterior,
            "lasts_until": self.lasts_until and self.lasts_until.isoformat(timespec="seconds"),
            "ledger": self.ledger,
            "releases": self.releases,
            "chain": self.chain,
            "verified": self.verified is not None,
            "decoders": list(self.decoders),
            "vote_rules": list(self.vote_rules),
        }


def gather(deployment: Deployment, *, verify: bool = True) -> Facts:
    """Collect what a report says; with `verify` the whole history is replayed first."""
    verified = deployment.verify() if verify else None
    privacy, link, budget = deployment.privacy(), deployment.link(), deployment.artifact.recipe.budget
    spent = deployment.course.points(_MOMENTS)
    moments = [Moment(datetime.fromisoformat(time), n, budget.nats(steps)) for time, n, steps in spent]
    return Facts(
        made=datetime.now(UTC),
        version=version("pacpredict"),
        about=deployment.describe(),
        privacy=privacy,
        true_positives=privacy["tpr"],
        false_positives=privacy["fpr"],
        rows_left=budget.total_steps - (spent[-1].steps if spent else 0),
        membership_posterior=summarise_posterior(deployment.membership_posterior()),
        moments=moments,
        lasts_until=forecast(moments, budget.total),
        ledger=deployment.location,
        releases=link.sequence,
        chain=link.chain.hex(),
        verified=verified,
        decoders=sorted({privacy["decoder"], *(verified.decoders if verified else ())}),
        vote_rules=sorted({privacy["votes"], *(verified.votes if verified else ())}),
    )


def forecast(
    moments: Sequence[Moment],
    total_nats: float,
    recent: timedelta = RECENT,
    shortest: timedelta = SHORTEST,
) -> datetime | None:
    """Say when all will be spent if the pace of recent times goes on; None if too little is known."""
    if not moments:
        return None
    now = moments[-1]
    then = next(moment for moment in moments if moment.time >= now.time - recent)
    passed, spent = now.time - then.time, now.spent_nats - then.spent_nats
    if passed < shortest or spent <= 0:
        return None
    try:
        return now.time + passed * ((total_nats - now.spent_nats) / spent)
    except OverflowError:  # in more years than a calendar has
        return None
