"""Simulated futures are attacked with what was answered, and scored against ceilings of what was charged."""

from dataclasses import replace

import numpy as np
import pytest
from audited import subject_of

from pacpredict.audit.membership import STRATEGIES, division, imagine, questions, score
from pacpredict.audit.subject import check_memory
from pacpredict.core.bounds import success_bound
from pacpredict.exceptions import InvalidInput, InvalidSubsets, InvalidVotes


def attacked(subject, n_trials=200, **options):
    asked = questions(subject, "random", subject.budget.total_steps)
    return score(subject, "random", imagine(subject, asked, n_trials=n_trials, seed=1, **options), None)


@pytest.mark.parametrize("decode", ["argmax", "sample"])
def test_the_optimal_attack_learns_and_stays_below_its_ceiling(decode):
    """With a large total members are told from others more often than by a coin, and no more often than promised."""
    found = attacked(subject_of(decode=decode), n_trials=400)
    last = found.looks[-1]
    assert last.charged_nats == pytest.approx(0.25)
    assert last.ceiling == success_bound(last.charged_nats)
    assert last.success.low > 0.5
    assert not any(look.success.passes(look.ceiling) for look in found.looks)
    assert not any(point.passes() for point in found.true_positives)
    assert found.information.low <= last.charged_nats
    assert found.information.value > 0.7 * last.charged_nats, (
        "nearly all that is charged is learnt about the secret"
    )


def test_more_questions_tell_more():
    """Success grows with the number of questions, and so does its ceiling."""
    looks = attacked(subject_of(), n_trials=400).looks
    assert looks[-1].success.value > looks[0].success.value
    assert [look.ceiling for look in looks] == sorted(look.ceiling for look in looks)


def test_the_limit_on_odds_is_kept_in_the_futures():
    """With a limit no log-odds pass it, and the belief answers instead."""
    subject = subject_of(odds_limit=0.5, decode="sample")
    asked = questions(subject, "random", subject.budget.total_steps)
    found = score(subject, "random", imagine(subject, asked, n_trials=50, seed=1, odds_limit=0.5), 0.5)
    assert found.largest_spread <= 0.5
    assert attacked(subject, n_trials=50).largest_spread > 0.5, "without it they do"


def test_strategies_ask_what_they_say():
    """All leave out what all models agree on; the most contested are the most divided; public votes are given."""
    subject = subject_of()
    agreed = replace(
        subject,
        votes=np.concatenate([subject.votes[:-5], np.zeros((5, 32), np.int16)]),
    )
    for strategy in STRATEGIES:
        asked = questions(agreed, strategy, 1000, public=agreed.votes)
        assert (asked.votes.min(axis=1) < asked.votes.max(axis=1)).all()
        assert asked.n_queries == (len(asked.votes) if strategy == "once" else 1000)
    most = questions(agreed, "contested", 10).votes
    assert division(most).min() >= np.sort(division(agreed.votes))[-len(most)]


def test_division_is_what_chance_disagrees_by():
    """It is the probability that two random models, drawn with replacement, differ."""
    votes = np.random.default_rng(0).integers(0, 3, (6, 16)).astype(np.int16)
    pairs = (votes[:, :, None] != votes[:, None, :]).mean(axis=(1, 2))
    assert division(votes) == pytest.approx(pairs)


def test_bad_input_is_said_before_work_starts():
    """Votes of other models, votes that teach nothing, public votes that are missing, and too little memory."""
    subject = subject_of()
    with pytest.raises(InvalidVotes, match="not of the same deployment"):
        replace(subject, membership=subject.membership[:-1])
    with pytest.raises(InvalidSubsets, match="boolean matrix"):
        replace(subject, membership=np.zeros((0, 0)))
    with pytest.raises(InvalidVotes, match="labels"):
        replace(subject, labels=subject.labels[:-1])
    with pytest.raises(InvalidSubsets, match="not among"):
        replace(subject, units=subject.units + 1)
    with pytest.raises(InvalidVotes, match="nothing to attack"):
        replace(subject, votes=np.zeros_like(subject.votes)).contested()
    with pytest.raises(InvalidInput, match="public"):
        questions(subject, "public", 10)
    with pytest.raises(InvalidVotes, match="32 models"):
        questions(subject, "public", 10, public=subject.votes[:, :-1])
    with pytest.raises(InvalidInput, match=r"1,000,000,000,000 trials would need about .* GB"):
        imagine(subject, questions(subject, "once", 10), n_trials=10**12, seed=1)
    check_memory(1, "nothing")
