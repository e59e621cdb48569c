"""The self-test as a whole: what it does, what it says, and how large a breach it says it would notice."""

import numpy as np
import pytest
from tested_votes import claim_of, votes_of

from pacpredict.audit.power import POWER
from pacpredict.audit.self_test import hypotheses, notice
from pacpredict.audit.self_test.checks import CHECKS
from pacpredict.audit.self_test.evidence import Scores
from pacpredict.audit.self_test.mechanism import bare_mechanism
from pacpredict.audit.self_test.results import CHECK_ALARM, FALSE_ALARM
from pacpredict.audit.self_test.run import n_stages, run_self_test
from pacpredict.audit.self_test.sabotage.registry import SABOTAGES, sabotages_of
from pacpredict.audit.self_test.statistics import smallest_of
from pacpredict.exceptions import InvalidInput, InvalidVotes

N_MODELS = 128


@pytest.mark.parametrize("decode", ["argmax", "map", "sample"])
def test_an_honest_mechanism_passes_every_check(decode):
    """All checks that apply were made, none fails, and those that chance decides say how much they would notice."""
    results = run_self_test(bare_mechanism(claim_of(decode)), votes_of(), seed=1, n_sessions=4)
    assert [one.check for one in results if not one.holds] == []
    statistical = [one for one in results if one.p_value is not None]
    assert len(statistical) * CHECK_ALARM <= FALSE_ALARM
    assert all(
        one.noticeable
        for one in statistical
        if one.check in {"noise independence", "noise variance", "channel"}
    )


@pytest.mark.parametrize("limit", [None, 0.25])
def test_progress_counts_every_stage(limit):
    """From the first to the last, with a limit on odds and without."""
    mechanism, seen = bare_mechanism(claim_of(n_models=4, odds_limit=limit, total=60 * 2.0**-32)), []
    votes = votes_of(n_models=4)
    run_self_test(mechanism, votes, seed=1, n_sessions=2, progress=lambda *at: seen.append(at))
    n = n_stages(mechanism, votes)
    assert seen == [(done, n) for done in range(1, n + 1)]


def test_what_surely_failed_is_not_tested_further():
    """A negative control need not play all sessions of a mechanism that has no noise."""
    broken = next(one for one in SABOTAGES if one.name.startswith("the secret is always"))
    seen = []
    mechanism = broken.apply(bare_mechanism(claim_of()))
    progress = {"progress": lambda *at: seen.append(at), "stop_early": True}
    results = run_self_test(mechanism, votes_of(), seed=1, n_sessions=8, **progress)
    assert seen[-1][0] < seen[-1][1]
    assert [one.check for one in results if one.holds is False] == ["secrets"]


def test_a_self_test_that_could_show_nothing_is_refused():
    """Too few sessions, and questions on which all models agree."""
    with pytest.raises(InvalidInput, match="at least 2 sessions"):
        run_self_test(bare_mechanism(claim_of()), votes_of(), seed=1, n_sessions=1)
    with pytest.raises(InvalidVotes, match="agree"):
        run_self_test(bare_mechanism(claim_of()), np.zeros((5, 32), np.int16), seed=1)


def test_names_are_unique_and_concern_somebody():
    """No two checks and no two sabotages have the same name, and every decoder has some of both."""
    for names in ([check.name for check in CHECKS], [one.name for one in SABOTAGES]):
        assert len(set(names)) == len(names)
    for decode in ("argmax", "map", "sample"):
        claims = claim_of(decode), claim_of(decode, odds_limit=None)
        limited, free = (len(sabotages_of(claim)) for claim in claims)
        assert limited == free + 3
        assert sum(one.shown for one in sabotages_of(claims[0])) >= 8


def scores_of(rng, n, n_sessions, score=None):
    """Honest scores of sessions with secrets at random."""
    session = np.repeat(np.arange(n_sessions), n // n_sessions)
    secret = rng.integers(N_MODELS, size=n_sessions)[session]
    z = rng.standard_normal(n) if score is None else score(secret)
    return Scores(
        session,
        secret,
        np.arange(n) % (n // n_sessions),
        z,
        np.where(rng.random(n) < 0.5, 1.0, -1.0),
        np.full(n, 0.5),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
    )


def alarms(families):
    return smallest_of(families.values()) < CHECK_ALARM


def share_of_alarms(draw, repetitions=150):
    return np.mean([alarms(draw()) for _ in range(repetitions)])


def test_a_shift_that_is_said_to_be_noticeable_is_noticed():
    """In 95% of self-tests or so; half of it hardly ever, and honest noise never."""
    rng, n, groups = np.random.default_rng(3), 20_000, ["served"] * 50
    n_families = len(hypotheses.of_secret(scores_of(rng, n, 50), groups, N_MODELS))
    shift = notice.lean(n, N_MODELS, CHECK_ALARM / n_families)

    def shifted(size):
        def score(secret):
            parity = np.array([(-1) ** int(s).bit_count() for s in secret])
            return rng.standard_normal(n) + size * parity

        return share_of_alarms(lambda: hypotheses.of_secret(scores_of(rng, n, 50, score), groups, N_MODELS))

    assert shifted(shift) >= POWER - 0.06
    assert shifted(shift / 2) < 0.5
    assert shifted(0.0) == 0.0


def test_a_variance_that_is_said_to_be_noticeable_is_noticed():
    """Below and above, in 95% of self-tests or so."""
    rng, n, groups = np.random.default_rng(4), 20_000, ["served"] * 50
    words = notice.variance_in_words(scores_of(rng, n, 50), groups, CHECK_ALARM / 2)
    low, high = (float(word) for word in words.split() if word[0].isdigit())

    def scaled(variance):
        draw = lambda _: np.sqrt(variance) * rng.standard_normal(n)  # noqa: E731
        return share_of_alarms(lambda: hypotheses.of_size(scores_of(rng, n, 50, draw), groups))

    assert scaled(low) >= POWER - 0.06
    assert scaled(high) >= POWER - 0.06
    assert scaled((1 + low) / 2) < 0.6


def test_own_labels_that_are_said_to_be_noticeable_are_noticed():
    """In 95% of self-tests or more, since only some shares are looked at; and honest labels are not alarming."""
    rng, n = np.random.default_rng(5), 20_000
    chances = rng.uniform(0.05, 0.95, n)
    n_tests = hypotheses.N_ALTERNATIVES * 2
    share = notice.own_share(chances, n_tests, CHECK_ALARM)

    def told(mixed):
        own = rng.random(n) < (1 - mixed) * chances + mixed
        scores = scores_of(rng, n, 50)._replace(value=chances, is_own=own)
        return hypotheses.of_own_labels(scores, ["served"] * 50)

    assert share_of_alarms(lambda: told(share)) >= POWER - 0.06
    assert share_of_alarms(lambda: told(share / 4)) < 0.5
    assert share_of_alarms(lambda: told(0.0)) == 0.0


def test_more_sessions_notice_less():
    """Four times as many scores notice half the shift."""
    assert notice.lean(40_000, 128, 1e-4) == pytest.approx(notice.lean(10_000, 128, 1e-4) / 2)
