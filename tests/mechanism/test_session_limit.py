"""Sessions that keep all odds within a limit, release labels through a channel, and come to no dead end."""

from dataclasses import replace

import numpy as np
import pytest
from ledger_contract import same_state
from small_session import CLASSES, CONTESTED, SECRET, UNANIMOUS, Frozen, M, make, random_outputs, random_votes

from pacpredict import Belief, Budget, MemoryLedger, Secret, Session, replay
from pacpredict.exceptions import (
    BudgetExhausted,
    InvalidBelief,
    InvalidProbability,
    LedgerError,
    OddsLimitReached,
)
from pacpredict.mechanism.limit import limit_warning
from pacpredict.training.subsets import balanced

MEMBERSHIP = balanced(M, 12, np.random.default_rng(0))
TELLING = MEMBERSHIP[:, 0].astype(int)  # every model says whether it was trained on the first record
LIMITED = Budget(2.0**-7, 200 * 2.0**-7, odds_limit=0.3, odds_delta=0.02)
LOOSE = replace(LIMITED, odds_limit=1.5)  # where noise of this size has room


def limited(decode="sample", budget=LIMITED, seed=0, **options):
    return make(seed, budget, decode=decode, **options)[0]


def replayed(ledger, budget):
    return replay(ledger.entries(), CLASSES, budget, Belief.uniform(M))


def spread(session):
    return np.ptp(session.belief.log_probabilities)


@pytest.mark.parametrize(("decode", "budget"), [("sample", LIMITED), ("argmax", LOOSE), ("map", LOOSE)])
def test_the_most_telling_question_moves_no_odds_past_the_limit(decode, budget):
    """Asked until nothing more is released, no two subsets move apart beyond the limit after any answer."""
    session = limited(decode, budget)
    for _ in range(60):
        session.answer(TELLING)
        assert spread(session) <= budget.odds_limit
    free, largest = make(0, replace(budget, odds_limit=None), decode=decode)[0], 0.0
    for _ in range(60):
        free.answer(TELLING)
        largest = max(largest, spread(free))
    assert largest > budget.odds_limit, "without a limit the same questions pass it"


def test_what_cannot_be_released_comes_from_the_belief():
    """At the limit an answer costs nothing, changes nothing, is marked in the ledger, and is like any to the client."""
    ledger = MemoryLedger()
    session = limited("argmax", LOOSE, ledger=ledger)
    releases = [session.answer(TELLING) for _ in range(60)]
    entries = list(ledger.entries())
    kinds = [entry.kind for entry in entries]
    first = kinds.index("belief")
    assert kinds == ["argmax"] * first + ["belief"] * (60 - first)
    assert [entry.charged_steps for entry in entries] == [1] * first + [0] * (60 - first)
    assert [release.charge for release in releases[first:]] == [0.0] * (60 - first)
    assert {release.label for release in releases[first:]} == {0, 1}, "drawn, not decided"
    assert all(entry.noisy is None and np.array_equal(entry.question, TELLING) for entry in entries[first:])
    state = session.snapshot()
    assert (state.sequence, state.contested, state.spent_steps) == (60, 60, first)
    assert state.noisy == first


def test_answers_from_the_belief_do_not_know_the_secret():
    """Two secrets with the same history and randomness get the same labels from the belief."""
    snapshot, log_belief = limited("argmax", LOOSE).snapshot(), np.where(TELLING, LOOSE.odds_limit, 0.0)
    log_belief -= np.log(np.exp(log_belief).sum())
    at_limit = replace(snapshot, sequence=1, contested=1, log_belief=log_belief, secret=None)
    answers = [
        [
            limited("argmax", LOOSE, seed=5, secret=Secret(i, M), snapshot=at_limit).answer(TELLING)
            for _ in range(3)
        ]
        for i in range(M)
    ]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("decode", ["argmax", "sample"])
@pytest.mark.parametrize("charging", ["adaptive", "flat"])
def test_with_belief_there_is_no_end(decode, charging):
    """When the total is spent contested questions are answered from the belief, at no charge; agreement goes on too."""
    budget, ledger = Budget(2.0**-8, 3 * 2.0**-8, charging, "belief"), MemoryLedger()
    session = make(0, budget, decode=decode, ledger=ledger)[0]
    releases = session.answer_all([CONTESTED, UNANIMOUS, CONTESTED, CONTESTED, CONTESTED, UNANIMOUS])
    charged = [1, 0, 1, 1, 0, 0] if charging == "adaptive" else [1, 1, 1, 0, 0, 0]
    assert [entry.charged_steps for entry in ledger.entries()] == charged
    assert [release.charge for release in releases] == [steps * 2.0**-8 for steps in charged]
    kinds = [entry.kind for entry in ledger.entries()]
    assert kinds == [
        ("agreed" if votes is UNANIMOUS else decode if steps else "belief")
        for votes, steps in zip([CONTESTED, UNANIMOUS, *[CONTESTED] * 3, UNANIMOUS], charged, strict=True)
    ]
    before = session.snapshot().log_belief
    labels = {session.answer(CONTESTED).label for _ in range(80)}
    assert labels == set(CONTESTED)
    assert np.array_equal(session.snapshot().log_belief, before)
    with pytest.raises(BudgetExhausted):
        session.release(random_outputs(0))


def test_halting_stays_the_default():
    """Without a word the total ends all answers."""
    session = make(0, Budget(2.0**-8, 2.0**-8))[0]
    session.answer(CONTESTED)
    with pytest.raises(BudgetExhausted):
        session.answer(CONTESTED)


@pytest.mark.parametrize(("decode", "budget"), [("sample", LIMITED), ("argmax", LOOSE), ("map", LOOSE)])
def test_a_limited_history_replays_to_the_bit(decode, budget):
    """Belief, spending and counts follow from the entries, for every decoder and however they were batched."""
    ledger = MemoryLedger()
    session = limited(decode, replace(budget, when_exhausted="belief", total=40 * budget.step), ledger=ledger)
    for seed in range(12):
        session.answer_all([*random_votes(seed, 4, 0.4), TELLING])
    assert same_state(replayed(ledger, session.budget), session.snapshot())
    assert "belief" in {entry.kind for entry in ledger.entries()}


def test_decoders_may_change_within_a_history():
    """Noise, labels of a channel and vectors make one history: it replays, and the limit holds all through."""
    budget, ledger = Budget(2.0**-14, 1000 * 2.0**-14, odds_limit=0.45, odds_delta=0.02), MemoryLedger()
    for i, decode in enumerate(["sample", "argmax", "sample", "map"] * 15):
        session = limited(decode, budget, seed=i, ledger=ledger)
        if i == 0:
            session.release(random_outputs(i))
        session.answer_all([*[TELLING] * 10, *random_votes(i, 2, 0.5)])
        assert spread(session) <= budget.odds_limit
    assert same_state(replayed(ledger, budget), session.snapshot())
    assert {entry.kind for entry in ledger.entries()} >= {"sample", "belief", "vector"}


@pytest.mark.parametrize("decode", ["sample", "argmax"])
def test_sessions_that_share_a_ledger_share_the_limit(decode):
    """Two sessions that take turns leave what one leaves."""
    votes = [*random_votes(3, 20, 0.5), *[TELLING] * 10]
    alone, ledger = MemoryLedger(), MemoryLedger()
    draws = np.random.default_rng(1)
    one = Session(CLASSES, LOOSE, M, secret=SECRET, decode=decode, generator=draws, ledger=alone)
    for row in votes:
        one.answer(row)
    draws = np.random.default_rng(1)
    pair = [
        Session(CLASSES, LOOSE, M, secret=SECRET, decode=decode, generator=draws, ledger=ledger)
        for _ in range(2)
    ]
    for i, row in enumerate(votes):
        pair[i % 2].answer(row)
    assert same_state(alone.load(), ledger.load())


def test_batches_and_single_questions_are_the_same_history():
    """The order of questions decides, not how they were sent: at the limit, too."""
    votes = [TELLING] * 20
    one, many = MemoryLedger(), MemoryLedger()
    limited(seed=2, ledger=one).answer_all(votes)
    session = limited(seed=2, ledger=many)
    for row in votes:
        session.answer(row)
    assert same_state(one.load(), many.load())
    assert [entry.label for entry in one.entries()] == [entry.label for entry in many.entries()]


def test_vectors_keep_the_limit_or_are_refused():
    """A vector that could move odds too far is refused before anything is drawn; a smaller one passes."""
    budget, ledger = replace(LOOSE, odds_limit=0.5), MemoryLedger()
    session, generator = make(0, budget, ledger=ledger)
    frozen = Frozen(session, generator, ledger)
    with pytest.raises(OddsLimitReached, match="Nothing was drawn"):
        session.release(random_outputs(0))
    frozen.check()
    small = make(0, replace(LOOSE, step=2.0**-14))[0]
    for i in range(5):
        small.release(random_outputs(i))
    assert 0 < spread(small) <= LOOSE.odds_limit
    assert small.snapshot().noisy == 5


@pytest.mark.parametrize(
    "change",
    [
        {"budget": replace(LIMITED, odds_limit=0.4)},
        {"budget": replace(LIMITED, odds_limit=None)},
        {"budget": replace(LIMITED, odds_delta=0.01)},
    ],
    ids=["higher", "none", "delta"],
)
def test_a_limit_belongs_to_its_history(change):
    """A history goes on with the limit that it began with, or not at all."""
    ledger = MemoryLedger()
    make(0, LIMITED, ledger=ledger)[0].answer(TELLING)
    with pytest.raises(InvalidBelief, match="limit"):
        make(0, **({"budget": LIMITED, "ledger": ledger} | change))


@pytest.mark.parametrize("odds_limit", [0, -1, float("inf"), float("nan"), "much"])
def test_limits_that_are_refused(odds_limit):
    """A limit is a positive number; no limit is None."""
    with pytest.raises(InvalidProbability, match="odds_limit"):
        Budget(1e-3, 1.0, odds_limit=odds_limit)
    with pytest.raises(InvalidProbability, match="delta"):
        Budget(1e-3, 1.0, odds_limit=1, odds_delta=0)


def test_forged_entries_do_not_replay():
    """A release that the limit did not allow, and a label without votes, are noticed."""
    ledger = MemoryLedger()
    session = limited("argmax", LOOSE, ledger=ledger)
    session.answer_all([TELLING] * 40)
    entries = list(ledger.entries())
    first = next(i for i, entry in enumerate(entries) if entry.kind == "belief")
    forged = {
        "did not allow": entries[first]._replace(kind="argmax", noisy=np.zeros(1), charged_steps=1),
        "nobody voted for": entries[first]._replace(label=3),
    }
    for words, entry in forged.items():
        changed = [*entries[:first], entry]
        with pytest.raises(LedgerError, match=words):
            replay(changed, CLASSES, LOOSE, Belief.uniform(M))


@pytest.mark.parametrize(
    ("step", "decode", "which"),
    [
        (2.0**-32, "argmax", None),
        (2.0**-9, "argmax", "some"),
        (2.0**-6, "map", "all"),
        (2.0**-6, "sample", None),
    ],
)
def test_a_step_that_is_too_large_for_the_limit(step, decode, which):
    """It is said beforehand that the belief will answer, and then it does; a channel is coupled less instead."""
    budget = Budget(step, 100 * step, odds_limit=1.0)
    warning = limit_warning(budget, decode, M)
    assert warning is None if which is None else f"{which} answers on which models differ" in warning
    assert limit_warning(replace(budget, odds_limit=None), decode, M) is None
    halves, lone = np.arange(M) % 2, np.arange(M) == 3
    for votes, is_released in ((halves, which != "all"), (lone.astype(int), which is None)):
        session = limited(decode, budget)
        session.answer(votes)
        assert (session.snapshot().spent_steps == 1) is is_released


def test_a_replayed_history_goes_on_within_the_limit():
    """A session that continues from a replay keeps the limit of the whole history."""
    ledger = MemoryLedger()
    limited(ledger=ledger).answer_all([TELLING] * 100)
    session = limited(seed=1, snapshot=replayed(ledger, LIMITED))
    session.answer_all([TELLING] * 60)
    assert spread(session) <= LIMITED.odds_limit


def test_delta_is_zero_only_without_noise():
    """A channel keeps the limit always; what noise may have passed before the decoder was changed still counts."""
    ledger = MemoryLedger()
    assert limited("sample", LOOSE).guarantee().odds_delta == 0
    noisy = limited("argmax", LOOSE, ledger=ledger)
    assert noisy.guarantee().odds_delta == LOOSE.odds_delta
    noisy.answer_all([TELLING] * 3)
    released = ledger.load().noisy
    assert released > 0
    assert limited("sample", LOOSE, ledger=ledger).guarantee().odds_delta == LOOSE.odds_delta
