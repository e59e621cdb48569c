"""The checks of a self-test: a registry of small objects, each with a name, a statement and a judgement.

A check either compares exactly, and fails with the first breach, or has a p-value. All p-values together alarm about an
honest mechanism in one of a thousand self-tests at most, however they depend on each other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pacpredict.audit.self_test import hypotheses, notice
from pacpredict.audit.self_test.entropy import check_entropy
from pacpredict.audit.self_test.evidence import ScoreLog, SelfTestEvidence
from pacpredict.audit.self_test.oracle import Claim
from pacpredict.audit.self_test.results import CHECK_ALARM, CheckResult
from pacpredict.audit.self_test.statistics import smallest_of


@dataclass(frozen=True)
class Check:
    """One check. It applies to a claim, or to none of its kind."""

    name: str
    statement: str
    judge: Callable[["Check", SelfTestEvidence, Claim], CheckResult]
    applies: Callable[[Claim], bool] = lambda _: True

    def result(self, evidence: SelfTestEvidence, claim: Claim) -> CheckResult:
        return self.judge(self, evidence, claim)

    def skipped(self, why: str) -> CheckResult:
        """Say that this was not checked."""
        return CheckResult(self.name, self.statement, None, f"not checked: {why}")


def _exact(check: Check, evidence: SelfTestEvidence, _: Claim) -> CheckResult:
    """Judge comparisons of which none may fail."""
    n, breaches = evidence.looked_at[check.name], evidence.breaches[check.name]
    if not n:
        return check.skipped("nothing of the kind happened")
    return CheckResult(
        check.name, check.statement, breaches == 0, f"{breaches:,} of {n:,} comparisons failed"
    )


def _statistical(
    check: Check, families: Mapping[str, float], looked_at: str, noticeable: str = ""
) -> CheckResult:
    if not families:
        return check.skipped("nothing was drawn")
    p_value = smallest_of(families.values())
    if p_value >= CHECK_ALARM:
        return CheckResult(check.name, check.statement, True, f"{looked_at}: consistent", p_value, noticeable)
    worst = min(families, key=lambda name: families[name])
    seen = f"{looked_at}: p = {p_value:.1g}; most unlikely: {worst}"
    return CheckResult(check.name, check.statement, False, seen, p_value, noticeable)


def _secrets(check: Check, evidence: SelfTestEvidence, claim: Claim) -> CheckResult:
    m, drawn = claim.n_models, (evidence.secrets, evidence.session_secrets)
    families = {
        f"{name}, {what}": p
        for name, secrets in zip(("new deployments", "sessions"), drawn, strict=True)
        for what, p in hypotheses.of_draws(secrets, m).items()
    }
    if evidence.looked_at["secrets"]:
        families["salts that came again"] = float(not evidence.breaches["secrets"])
    looked_at = f"{len(drawn[0]):,} secrets, and {len(drawn[1]):,} drawn by sessions"
    alarm = CHECK_ALARM / max(len(families), 1)
    return _statistical(check, families, looked_at, notice.secrets_in_words(len(drawn[0]), m, alarm))


def _noise_independence(check: Check, evidence: SelfTestEvidence, claim: Claim) -> CheckResult:
    scores = evidence.noise.columns()
    families = hypotheses.of_secret(scores, evidence.groups, claim.n_models)
    alarm = CHECK_ALARM / max(len(families), 1)
    noticeable = notice.lean_in_words(scores.score.size, claim, alarm) if families else ""
    return _statistical(check, families, _scores(scores.score.size, evidence), noticeable)


def _noise_variance(check: Check, evidence: SelfTestEvidence, _: Claim) -> CheckResult:
    scores = evidence.noise.columns()
    families = hypotheses.of_size(scores, evidence.groups)
    alarm = CHECK_ALARM / max(len(families), 1)
    noticeable = notice.variance_in_words(scores, evidence.groups, alarm) if families else ""
    return _statistical(check, families, _scores(scores.score.size, evidence), noticeable)


def _noise_distribution(check: Check, evidence: SelfTestEvidence, _: Claim) -> CheckResult:
    scores = evidence.noise.columns()
    return _statistical(check, hypotheses.of_shape(scores), _scores(scores.score.size, evidence))


def _noise_freshness(check: Check, evidence: SelfTestEvidence, _: Claim) -> CheckResult:
    scores = evidence.noise.columns()
    return _statistical(check, hypotheses.of_freshness(scores), _scores(scores.score.size, evidence))


def _channel(check: Check, evidence: SelfTestEvidence, claim: Claim) -> CheckResult:
    return _labels(check, evidence, claim, evidence.labels, hypotheses.of_twins(evidence.twins))


def _beliefs(check: Check, evidence: SelfTestEvidence, claim: Claim) -> CheckResult:
    return _labels(check, evidence, claim, evidence.beliefs, {})


def _labels(
    check: Check, evidence: SelfTestEvidence, claim: Claim, rows: ScoreLog, further: Mapping[str, float]
) -> CheckResult:
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


def _entropy(check: Check, _: SelfTestEvidence, __: Claim) -> CheckResult:
    looked_at, wrong = check_entropy()
    seen = ", ".join(wrong) or "consistent"
    return CheckResult(check.name, check.statement, not wrong, f"{looked_at}: {seen}")


def _scores(n: int, evidence: SelfTestEvidence) -> str:
    return f"{n:,} noisy numbers in {len(evidence.groups):,} sessions"


def _has_limit(claim: Claim) -> bool:
    return claim.budget.odds_limit is not None


def _is_noisy(claim: Claim) -> bool:
    return not claim.finite


def _is_finite(claim: Claim) -> bool:
    return claim.finite


def _draws(claim: Claim) -> bool:
    return claim.decode != "map"


CHECKS = (
    Check("records", "the ledger records every query and answer as sent", _exact),
    Check("belief", "the belief is the posterior given the releases", _exact),
    Check("labels", "labels follow from the releases, or from the votes where all models agree", _exact),
    Check("certificate", "noise reveals at most one step by its certificate", _exact, _is_noisy),
    Check("charges", "each release costs one step, everything else nothing, and clients see that", _exact),
    Check("total", "the promised total is the one enforced", _exact),
    Check(
        "odds limit",
        "the limit is decided before the draw, and no pair of subsets passes it",
        _exact,
        _has_limit,
    ),
    Check("repeats", "a repeated query gets the answer on record, free, also after a restart", _exact),
    Check("secrets", "secrets are fresh and uniform over the subsets", _secrets),
    Check("noise independence", "noise is independent of the secret", _noise_independence, _is_noisy),
    Check("noise variance", "noise has the calibrated variance", _noise_variance, _is_noisy),
    Check("noise distribution", "noise is Gaussian", _noise_distribution, _is_noisy),
    Check("noise freshness", "noise is neither reused nor correlated", _noise_freshness, _is_noisy),
    Check("channel", "labels have the channel's probabilities given the secret", _channel, _is_finite),
    Check(
        "belief draws",
        "answers from the belief are drawn from it, independent of the secret",
        _beliefs,
        _draws,
    ),
    Check("entropy", "the operating system gives independent normals and uniforms", _entropy),
)
