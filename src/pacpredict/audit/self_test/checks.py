"""The checks of a self-test: a registry of small objects, each with a name, a statement and a judgement.

A check either compares exactly, and fails with the first breach, or has a p-value. All p-values together alarm about an
honest mechanism in one of a thousand self-tests at most, however they depend on each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from pacpredict.audit.randomness import check_entropy
from pacpredict.audit.self_test import hypotheses, notice
from pacpredict.audit.self_test.evidence import Evidence, Rows
from pacpredict.audit.self_test.oracle import Claim
from pacpredict.audit.self_test.statistics import smallest_of

# How often all statistical checks together alarm about an honest mechanism, at most, and how often one of them does.
FALSE_ALARM = 1e-3
CHECK_ALARM = FALSE_ALARM / 8


class Result(NamedTuple):
    """What a check came to."""

    check: str
    statement: str  # what should be
    holds: bool | None  # None: it was not checked
    seen: str  # in words
    p_value: float | None = None  # of statistical checks
    noticeable: str = ""  # how large a breach would have been noticed


@dataclass(frozen=True)
class Check:
    """One check. It applies to a claim, or to none of its kind."""

    name: str
    statement: str
    judge: Callable[["Check", Evidence, Claim], Result]
    applies: Callable[[Claim], bool] = lambda _: True

    def result(self, evidence: Evidence, claim: Claim) -> Result:
        return self.judge(self, evidence, claim)

    def skipped(self, why: str) -> Result:
        """Say that this was not checked."""
        return Result(self.name, self.statement, None, f"not checked: {why}")


def _exact(check: Check, evidence: Evidence, _: Claim) -> Result:
    """Judge comparisons of which none may fail."""
    n, breaches = evidence.looked_at[check.name], evidence.breaches[check.name]
    if not n:
        return check.skipped("nothing of the kind happened")
    return Result(check.name, check.statement, breaches == 0, f"{breaches:,} of {n:,} comparisons failed")


def _statistical(
    check: Check, families: Mapping[str, float], looked_at: str, noticeable: str = ""
) -> Result:
    if not families:
        return check.skipped("nothing was drawn")
    p_value = smallest_of(families.values())
    if p_value >= CHECK_ALARM:
        return Result(check.name, check.statement, True, f"{looked_at}: as chance allows", p_value, noticeable)
    worst = min(families, key=lambda name: families[name])
    seen = f"{looked_at}: by chance so at most once in {1 / max(p_value, 1e-99):.0e} self-tests; see {worst}"
    return Result(check.name, check.statement, False, seen, p_value, noticeable)


def _secrets(check: Check, evidence: Evidence, claim: Claim) -> Result:
    m, drawn = claim.n_models, (evidence.secrets, evidence.session_secrets)
    families = {
        f"{name}, {what}": p
        for name, secrets in zip(("of new deployments", "of sessions"), drawn, strict=True)
        for what, p in hypotheses.of_draws(secrets, m).items()
    }
    if evidence.looked_at["secrets"]:
        families["salts that came again"] = float(not evidence.breaches["secrets"])
    looked_at = f"{len(drawn[0]):,} secrets, and {len(drawn[1]):,} that sessions drew"
    alarm = CHECK_ALARM / max(len(families), 1)
    return _statistical(check, families, looked_at, notice.secrets_in_words(len(drawn[0]), m, alarm))


def _noise_secret(check: Check, evidence: Evidence, claim: Claim) -> Result:
    scores = evidence.noise.columns()
    families = hypotheses.of_secret(scores, evidence.groups, claim.n_models)
    alarm = CHECK_ALARM / max(len(families), 1)
    noticeable = notice.lean_in_words(scores.score.size, claim, alarm) if families else ""
    return _statistical(check, families, _scores(scores.score.size, evidence), noticeable)


def _noise_size(check: Check, evidence: Evidence, _: Claim) -> Result:
    scores = evidence.noise.columns()
    families = hypotheses.of_size(scores, evidence.groups)
    alarm = CHECK_ALARM / max(len(families), 1)
    noticeable = notice.variance_in_words(scores, evidence.groups, alarm) if families else ""
    return _statistical(check, families, _scores(scores.score.size, evidence), noticeable)


def _noise_shape(check: Check, evidence: Evidence, _: Claim) -> Result:
    scores = evidence.noise.columns()
    return _statistical(check, hypotheses.of_shape(scores), _scores(scores.score.size, evidence))


def _noise_fresh(check: Check, evidence: Evidence, _: Claim) -> Result:
    scores = evidence.noise.columns()
    return _statistical(check, hypotheses.of_freshness(scores), _scores(scores.score.size, evidence))


def _channel(check: Check, evidence: Evidence, claim: Claim) -> Result:
    return _labels(check, evidence, claim, evidence.labels, hypotheses.of_twins(evidence.twins))


def _beliefs(check: Check, evidence: Evidence, claim: Claim) -> Result:
    return _labels(check, evidence, claim, evidence.beliefs, {})


def _labels(
    check: Check, evidence: Evidence, claim: Claim, rows: Rows, further: Mapping[str, float]
) -> Result:
    """Judge labels that were drawn, with probabilities that depend on the secret as the claim says or not at all."""
    scores = rows.columns()
    if not scores.score.size:
        return check.skipped("nothing was drawn")
    families = {
        **hypotheses.of_own_labels(scores, evidence.groups),
        **hypotheses.of_secret(scores, evidence.groups, claim.n_models),
        **hypotheses.of_size(scores, evidence.groups),
        **hypotheses.of_shape(scores),
        **further,
    }
    alarm = CHECK_ALARM / len(families)
    noticeable = notice.own_share_in_words(scores, evidence.groups, claim, alarm)
    looked_at = f"{scores.score.size:,} labels"
    return _statistical(check, families, looked_at, noticeable)


def _entropy(check: Check, _: Evidence, __: Claim) -> Result:
    found = check_entropy()
    return Result(check.name, check.statement, found.holds, found.seen)


def _scores(n: int, evidence: Evidence) -> str:
    return f"noise of {n:,} released numbers in {len(evidence.groups):,} sessions"


def _has_limit(claim: Claim) -> bool:
    return claim.budget.odds_limit is not None


def _is_noisy(claim: Claim) -> bool:
    return not claim.finite


def _draws_beliefs(claim: Claim) -> bool:
    return claim.decode != "map"


CHECKS = (
    Check("records", "the ledger has every answer as it was asked for and given", _exact),
    Check("belief", "the belief is what follows from what was released, and from nothing else", _exact),
    Check("labels", "labels follow from what was released; where all models agree, they are theirs", _exact),
    Check("certificate", "noise reveals no more than a step, by its own numbers", _exact, _is_noisy),
    Check("charges", "every release is charged a step, nothing else is, and clients are told so", _exact),
    Check("total", "no more is released than the total that is promised", _exact),
    Check("odds", "the limit on odds decides before anything is drawn, and no two subsets pass it", _exact, _has_limit),
    Check("repeats", "a repeated query gets the same answer, at no charge, also after a restart", _exact),
    Check("secrets", "secrets are drawn evenly and anew", _secrets),
    Check("noise and secret", "noise does not depend on the secret, nor lean anywhere", _noise_secret, _is_noisy),
    Check("size of noise", "noise has the variance that budget and belief ask for", _noise_size, _is_noisy),
    Check("shape of noise", "noise is normal", _noise_shape, _is_noisy),
    Check("new noise", "no noise comes again, or follows from other noise", _noise_fresh, _is_noisy),
    Check("channel", "labels come as often as the channel says, given the secret", _channel, lambda c: c.finite),
    Check("belief's labels", "labels of the belief come as often as it says, whatever the secret", _beliefs, _draws_beliefs),
    Check("entropy", "the operating system gives independent normals and evenly spread numbers", _entropy),
)
