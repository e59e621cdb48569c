"""The same history, however it is asked for."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_contract import same_array, same_entry, same_state
from small_session import (
    CLASSES,
    CONTESTED,
    PLENTY,
    SECRET,
    UNANIMOUS,
    M,
    make,
    random_outputs,
    random_votes,
)

from pacpredict.core.belief import Belief
from pacpredict.core.calibrate import calibrate_votes
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.ledger import MemoryLedger
from pacpredict.mechanism.replay import replay
from pacpredict.mechanism.session import Session


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    cuts=st.sets(st.integers(1, 11)),
    decode=st.sampled_from(["argmax", "map"]),
    step=st.sampled_from([2.0**-32, 2.0**-10, 0.05]),
)
def test_batches_may_be_split_anywhere(seed, cuts, decode, step):
    """Answers, noise, charges and belief are the same bits for a batch, its parts and single queries."""
    votes, budget = random_votes(seed, 12), Budget(step, 1e4 * step)
    whole, generator = make(seed, budget, decode=decode, ledger=(expected := MemoryLedger()))
    releases = whole.answer_all(votes)
    for parts in ([*cuts, 12], range(1, 13)):
        ledger = MemoryLedger()
        session, other = make(seed, budget, decode=decode, ledger=ledger)
        answered, start = [], 0
        for stop in sorted(parts):
            part = votes[start:stop]
            answered += session.answer_all(part) if stop - start > 1 else [session.answer(part[0])]
            start = stop
        assert answered == releases
        assert all(map(same_entry, ledger.entries(), expected.entries()))
        assert same_state(session.snapshot(), whole.snapshot())
        assert other.bit_generator.state == generator.bit_generator.state


def test_decoding_is_post_processing():
    """Another decoder shows another label at most: noise, charges and belief are the same."""
    ledgers, votes = [MemoryLedger(), MemoryLedger()], random_votes(8, 200)
    answers = [
        make(4, Budget(1e-3, 10.0), decode=decode, ledger=ledger)[0].answer_all(votes)
        for decode, ledger in zip(["argmax", "map"], ledgers, strict=True)
    ]
    for by_argmax, by_map in zip(*(ledger.entries() for ledger in ledgers), strict=True):
        assert same_array(by_argmax.noisy, by_map.noisy)
        assert by_argmax.charged_steps == by_map.charged_steps
    assert same_state(*(ledger.load() for ledger in ledgers))
    assert [release.label for release in answers[0]] != [release.label for release in answers[1]]


def test_labels_are_what_the_recorded_vector_says():
    """The label is the voted class whose entry of the noisy vector is largest."""
    ledger, votes = MemoryLedger(), random_votes(3, 100)
    session, _ = make(9, ledger=ledger)
    for row in votes:
        classes, before = np.unique(row), session.belief
        release, entry = session.answer(row), list(ledger.entries())[-1]
        noise = calibrate_votes(row, CLASSES, before, PLENTY.step)
        expected = classes[0] if entry.noisy is None else np.argmax(noise.vector(entry.noisy))
        assert release.label == entry.label == expected
        assert same_array(entry.question, None if classes.size == 1 else row.astype(np.int16))


def test_counters_and_guarantee():
    """What was asked, contested and spent is counted exactly, and the guarantee reports it."""
    session, _ = make(budget=Budget(0.25, 2.0))
    releases = session.answer_all([CONTESTED, UNANIMOUS, CONTESTED])
    session.release(random_outputs(0))
    assert [(r.sequence, r.charge) for r in releases] == [(1, 0.25), (2, 0.0), (3, 0.25)]
    state, guarantee = session.snapshot(), session.guarantee()
    assert (state.sequence, state.contested, state.spent_steps) == (4, 3, 3)
    assert (guarantee.queries, guarantee.contested, guarantee.spent_nats) == (4, 3, 0.75)
    assert guarantee.total_nats == 2.0
    assert 0.5 < guarantee.success <= 1


def test_answers_do_not_hang_on_the_callers_arrays():
    """Votes and results that are overwritten afterwards change neither the ledger nor the belief."""
    ledger = MemoryLedger()
    session, _ = make(ledger=ledger)
    votes, outputs = np.array([CONTESTED], dtype=np.int16), random_outputs(0)
    session.answer_all(votes)
    noisy = session.release(outputs)
    votes[...], outputs[...], noisy[...] = 0, 0, 0
    assert same_state(replay(ledger.entries(), CLASSES, PLENTY, Belief.uniform(M)), session.snapshot())


class Meddler:
    """A source of noise that overwrites the caller's votes at the moment when the noise is drawn."""

    def __init__(self, votes):
        self.votes, self.generator = votes, np.random.default_rng(0)

    def standard_normal(self, size):
        self.votes[...] = 1 - self.votes
        return self.generator.standard_normal(size)


def test_votes_are_read_once():
    """Votes that another thread overwrites meanwhile are charged, noised and recorded as they were asked."""
    votes = np.array([[0, 0, 0, 1, 1, 1, 1, 1]], dtype=np.int16)
    asked, ledger = votes.copy(), MemoryLedger()
    Session(2, PLENTY, M, secret=SECRET, ledger=ledger, generator=Meddler(votes)).answer_all(votes)
    assert same_array(next(ledger.entries()).question, asked[0])
