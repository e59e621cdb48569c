"""All sabotages, and those that concern a claim."""

from pacpredict.audit.self_test.oracle import Claim
from pacpredict.audit.self_test.sabotage import bookkeeping, labels, noise
from pacpredict.audit.self_test.sabotage.base import Sabotage

SABOTAGES: tuple[Sabotage, ...] = (*noise.SABOTAGES, *labels.SABOTAGES, *bookkeeping.SABOTAGES)


def sabotages_of(claim: Claim) -> list[Sabotage]:
    """Return the lies that a mechanism with this claim can tell."""
    limited = claim.budget.odds_limit is not None
    return [one for one in SABOTAGES if claim.decode in one.decoders and (limited or not one.needs_limit)]
