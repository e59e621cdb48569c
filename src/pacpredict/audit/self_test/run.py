"""Run a self-test: play sessions of a mechanism, read their transcripts, and judge what was seen."""

from collections.abc import Iterator, Sequence

import numpy as np

from pacpredict.audit.self_test.checks import CHECKS, Check
from pacpredict.audit.self_test.evidence import SelfTestEvidence
from pacpredict.audit.self_test.mechanism import Mechanism
from pacpredict.audit.self_test.oracle import Claim
from pacpredict.audit.self_test.reading import Reader
from pacpredict.audit.self_test.results import CheckResult
from pacpredict.audit.self_test.stages import N_SESSIONS, Stages
from pacpredict.training.fit import Progress, no_progress
from pacpredict.types import Votes

# Secrets that are drawn for each served session.
_SECRETS_SHARE = 64
# A p-value that no further sessions bring back to where chance explains it.
_HOPELESS = 1e-12
# The checks that sessions decide, and further ones may.
_OF_SESSIONS = tuple(check for check in CHECKS if check.name != "entropy")


def run_self_test(
    mechanism: Mechanism,
    votes: Votes,
    *,
    seed: int,
    n_sessions: int = N_SESSIONS,
    progress: Progress = no_progress,
    stop_early: bool = False,
) -> list[CheckResult]:
    """Hold a mechanism against its claim, with questions from votes (n_queries, n_models).

    The seed decides what is asked. What is answered draws from the operating system, so no two self-tests see the same.
    With `stop_early` nothing more is played once something is surely wrong.
    """
    for evidence in _gather(mechanism, votes, seed, n_sessions, progress):
        if stop_early and any(map(_is_sure, results := judge(evidence, mechanism.claim, _OF_SESSIONS))):
            return results
    return judge(evidence, mechanism.claim)


def n_stages(mechanism: Mechanism, votes: Votes) -> int:
    """Return how many parts of the work progress counts."""
    return len(Stages.of(mechanism, votes, 0).all())


def judge(evidence: SelfTestEvidence, claim: Claim, checks: Sequence[Check] = CHECKS) -> list[CheckResult]:
    """Judge by all checks that apply."""
    return [check.result(evidence, claim) for check in checks if check.applies(claim)]


def _gather(
    mechanism: Mechanism, votes: Votes, seed: int, n_sessions: int, progress: Progress
) -> Iterator[SelfTestEvidence]:
    """Yield the evidence after each stage; secrets are drawn after those that are quick."""
    reader = Reader(np.random.default_rng([seed, 1]))
    stages = Stages.of(mechanism, votes, seed, n_sessions).all()
    for done, stage in enumerate(stages, 1):
        for transcript in stage.play():
            reader.read(transcript)
        if stage.name == "amplified":
            _draw_secrets(mechanism, reader.evidence, _SECRETS_SHARE * n_sessions)
        progress(done, len(stages))
        yield reader.evidence


def _draw_secrets(mechanism: Mechanism, evidence: SelfTestEvidence, n: int) -> None:
    secrets = [mechanism.draw_secret() for _ in range(n)]
    evidence.secrets += [secret.reveal() for secret in secrets]
    salts = {secret.reveal_salt() for secret in secrets}
    evidence.note("secrets", breached=len(salts) < n)


def _is_sure(result: CheckResult) -> bool:
    return result.holds is False and (result.p_value is None or result.p_value < _HOPELESS)
