"""Sessions that keep everybody's odds within a limit, release labels through a channel, and come to no dead end."""

from dataclasses import replace

import numpy as np
import pytest
from ledger_contract import same_state
from small_session import CLASSES, CONTESTED, SECRET, UNANIMOUS, Frozen, M, make, random_outputs, random_votes

from pacpredict import Belief, Budget, MemoryLedger, Secret, Session, replay
from pacpredict.core.exposure import Membership
from pacpredict.exceptions import (
    BudgetExhausted,
    ExposureReached,
    InvalidBelief,
    InvalidInput,
    InvalidProbability,
    LedgerError,
)
from pacpredict.mechanism.limit import Limit, limit_warning
from pacpredict.training.subsets import balanced

MEMBERSHIP = balanced(M, 12, np.random.default_rng(0))
UNITS = Membership.of(MEMBERSHIP, Belief.uniform(M))
TELLING = MEMBERSHIP[:, 0].astype(int)  # every model says whether it was trained on the first record
LIMITED = Budget(2.0**-7, 200 * 2.0**-7, exposure=0.3, exposure_delta=0.02)
LOOSE = replace(LIMITED, exposure=1.5)  # where noise of this size has room


def limited(decode="sample", budget=LIMITED, seed=0, **options):
    return make(seed, budget, membership=UNITS, decode=decode, **options)[0]


def replayed(ledger, budget):
    limit = Limit.of(budget, UNITS, Belief.uniform(M))
    return replay(
        *(ledger.entries(), CLASSES, budget.step, Belief.uniform(M)),
        limit=limit,
        total_steps=budget.total_steps,
    )


def shift(session):
    return np.abs(UNITS.shifts(session.belief)).max()


@pytest.mark.parametrize(("decode", "budget"), [("sample", LIMITED), ("argmax", LOOSE), ("map", LOOSE)])
def test_the_most_telling_question_moves_nobody_past_the_limit(decode, budget):
    """Asked until nothing is released any more, everybody's odds stay within the limit after every answer."""
    session = limited(decode, budget)
    for _ in range(60):
        session.answer(TELLING)
        assert shift(session) <= budget.exposure
    free, largest = make(0, replace(budget, exposure=None), decode=decode)[0], 0.0
    for _ in range(60):
        free.answer(TELLING)
        largest = max(largest, shift(free))
    assert largest > budget.exposure, "without a limit the same questions pass it"


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
    assert state.moved == 0
    assert LOOSE.exposure - shift(session) == pytest.approx(state.room, abs=1e-9)


def test_answers_from_the_belief_do_not_know_the_secret():
    """Two secrets with the same history and randomness get the same labels from the belief."""
    snapshot = limited("argmax", LOOSE).snapshot()
    at_limit = replace(snapshot, sequence=1, contested=1, room=0.0, moved=0.0, secret=None)
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
    """Belief, spending and room follow from the entries, whichever decoder wrote them and however they were batched."""
    ledger = MemoryLedger()
    session = limited(decode, replace(budget, when_exhausted="belief", total=40 * budget.step), ledger=ledger)
    for seed in range(12):
        session.answer_all([*random_votes(seed, 4, 0.4), TELLING])
    assert same_state(replayed(ledger, session.budget), session.snapshot())
    assert "belief" in {entry.kind for entry in ledger.entries()}


def test_decoders_may_change_within_a_history():
    """Noise, labels of a channel and vectors make one history: it replays, and the limit holds all through."""
    budget, ledger = Budget(2.0**-14, 1000 * 2.0**-14, exposure=0.45, exposure_delta=0.02), MemoryLedger()
    for i, decode in enumerate(["sample", "argmax", "sample", "map"] * 15):
        session = limited(decode, budget, seed=i, ledger=ledger)
        if i == 0:
            session.release(random_outputs(i))
        session.answer_all([*[TELLING] * 10, *random_votes(i, 2, 0.5)])
        assert shift(session) <= budget.exposure
    assert same_state(replayed(ledger, budget), session.snapshot())
    assert {entry.kind for entry in ledger.entries()} >= {"sample", "belief", "vector"}


@pytest.mark.parametrize("decode", ["sample", "argmax"])
def test_sessions_that_share_a_ledger_share_the_room(decode):
    """Two sessions that take turns leave what one leaves: nobody looks at all units because another has answered."""
    votes = [*random_votes(3, 20, 0.5), *[TELLING] * 10]
    alone, ledger = MemoryLedger(), MemoryLedger()
    draws = np.random.default_rng(1)
    one = Session(
        CLASSES, LOOSE, M, membership=UNITS, secret=SECRET, decode=decode, generator=draws, ledger=alone
    )
    for row in votes:
        one.answer(row)
    draws = np.random.default_rng(1)
    pair = [
        Session(
            CLASSES, LOOSE, M, membership=UNITS, secret=SECRET, decode=decode, generator=draws, ledger=ledger
        )
        for _ in range(2)
    ]
    for i, row in enumerate(votes):
        pair[i % 2].answer(row)
    assert same_state(alone.load(), ledger.load())
    assert ledger.load().moved is not None


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
    budget, ledger = replace(LOOSE, exposure=0.5), MemoryLedger()
    session, generator = make(0, budget, membership=UNITS, ledger=ledger)
    frozen = Frozen(session, generator, ledger)
    with pytest.raises(ExposureReached, match="Nothing was drawn"):
        session.release(random_outputs(0))
    frozen.check()
    small = make(0, replace(LOOSE, step=2.0**-14), membership=UNITS)[0]
    for i in range(5):
        small.release(random_outputs(i))
    assert 0 < shift(small) <= LOOSE.exposure
    assert small.snapshot().moved > 0


@pytest.mark.parametrize(
    "change",
    [
        {"budget": replace(LIMITED, exposure=0.4)},
        {"budget": replace(LIMITED, exposure=None)},
        {"budget": replace(LIMITED, exposure_delta=0.01)},
        {"membership": Membership.of(balanced(M, 12, np.random.default_rng(1)), Belief.uniform(M))},
    ],
    ids=["higher", "none", "delta", "units"],
)
def test_a_limit_belongs_to_its_history(change):
    """A history goes on with the limit and the units that it began with, or not at all."""
    ledger = MemoryLedger()
    make(0, LIMITED, membership=UNITS, ledger=ledger)[0].answer(TELLING)
    with pytest.raises(InvalidBelief, match="limit"):
        make(0, **({"budget": LIMITED, "membership": UNITS, "ledger": ledger} | change))


def test_a_limit_needs_units():
    """Nobody can keep odds within a limit without knowing whose."""
    with pytest.raises(InvalidInput, match="whose"):
        make(0, LIMITED)
    with pytest.raises(InvalidInput, match="whose"):
        make(
            0, LIMITED, membership=Membership.of(balanced(4, 5, np.random.default_rng(0)), Belief.uniform(4))
        )


@pytest.mark.parametrize("exposure", [0, -1, float("inf"), float("nan"), "much"])
def test_limits_that_are_refused(exposure):
    """A limit is a positive number; no limit is None."""
    with pytest.raises(InvalidProbability, match="exposure"):
        Budget(1e-3, 1.0, exposure=exposure)
    with pytest.raises(InvalidProbability, match="delta"):
        Budget(1e-3, 1.0, exposure=1, exposure_delta=0)


def test_forged_entries_do_not_replay():
    """A release that the limit did not allow, a label that nobody voted for, and another room are noticed."""
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
            replay(
                *(changed, CLASSES, LOOSE.step, Belief.uniform(M)),
                limit=Limit.of(LOOSE, UNITS, Belief.uniform(M)),
            )


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
    budget = Budget(step, 100 * step, exposure=1.0)
    warning = limit_warning(budget, decode, M)
    assert warning is None if which is None else f"{which} answers on which models differ" in warning
    assert limit_warning(replace(budget, exposure=None), decode, M) is None
    halves, lone = np.arange(M) % 2, np.arange(M) == 3
    for votes, is_released in ((halves, which != "all"), (lone.astype(int), which is None)):
        session = limited(decode, budget)
        session.answer(votes)
        assert (session.snapshot().spent_steps == 1) is is_released


def test_a_state_that_kept_no_track_of_odds():
    """It is refused by whoever has a limit: replayed without it, also the belief is another. The right one is taken."""
    ledger = MemoryLedger()
    limited(ledger=ledger).answer_all([TELLING] * 100)
    forgetful = replay(ledger.entries(), CLASSES, LIMITED.step, Belief.uniform(M))
    with pytest.raises(InvalidBelief, match="without the limit on exposure"):
        limited(seed=1, snapshot=forgetful)
    with pytest.raises(InvalidBelief, match="or with one that it has not"):
        make(1, replace(LIMITED, exposure=None), snapshot=replayed(ledger, LIMITED))
    session = limited(seed=1, snapshot=replayed(ledger, LIMITED))
    session.answer_all([TELLING] * 60)
    assert shift(session) <= LIMITED.exposure
