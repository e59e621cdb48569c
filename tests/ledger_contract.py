"""What every ledger must do; a test of an implementation subclasses LedgerContract and gives the fixture `ledger`."""

import numpy as np
import pytest

from pacpredict.exceptions import LedgerConflict
from pacpredict.mechanism.ledger import Entry, State

N_MODELS = 6

# Doubles that a detour over text or single precision would change.
DELICATE = np.array([-0.0, 5e-324, 1 / 3, -1e9, 1.7976931348623157e308, -np.pi])


def label_entry(sequence):
    """A contested label query."""
    votes = np.array([0, 1, 2, 1, 1, sequence % 3], dtype=np.int16)
    return Entry(sequence, 1, sequence % 3, votes, DELICATE[:3] + sequence)


def vector_entry(sequence):
    """A contested release of real outputs."""
    outputs = np.add.outer(np.arange(N_MODELS), DELICATE)
    return Entry(sequence, 1, None, outputs, DELICATE.copy())


def unanimous_entry(sequence):
    """A query on which all models agree."""
    return Entry(sequence, 0, 2)


KINDS = [label_entry, vector_entry, unanimous_entry]


def entries_from(sequence, n):
    return [KINDS[i % 3](i) for i in range(sequence, sequence + n)]


def state_at(sequence):
    return State(sequence, sequence // 2, sequence // 3, np.append(DELICATE[1:], sequence))


def same_array(one, other):
    """Compare bit for bit, None included."""
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def same_entry(one, other):
    return (one.sequence, one.charged_steps, one.label) == (
        other.sequence,
        other.charged_steps,
        other.label,
    ) and (same_array(one.question, other.question) and same_array(one.noisy, other.noisy))


def same_state(one, other):
    return (one.sequence, one.contested, one.spent_steps) == (
        other.sequence,
        other.contested,
        other.spent_steps,
    ) and same_array(one.log_belief, other.log_belief)


def scribble(array):
    """Overwrite an array, if that is possible."""
    if array is not None and array.flags.writeable:
        array[...] = 77


BAD_COMMITS = {
    "a gap": ([5], 5),
    "a gap inside": ([4, 6], 5),
    "a repeated number": ([4, 4], 5),
    "out of order": ([5, 4], 5),
    "the last release again": ([3], 3),
    "all from the beginning": ([1, 2, 3], 3),
    "an end too early": ([4, 5], 4),
    "an end too late": ([4, 5], 6),
    "an end without entries": ([], 4),
    "an older state": ([], 2),
}


class LedgerContract:
    @pytest.fixture
    def ledger(self):
        raise NotImplementedError("a subclass gives an empty ledger")

    @pytest.fixture
    def used(self, ledger):
        """A ledger with three releases."""
        ledger.commit([], state_at(0))
        ledger.commit(entries_from(1, 3), state_at(3))
        return ledger

    def holds_three(self, ledger):
        kept = list(ledger.entries())
        return (
            len(kept) == 3
            and all(map(same_entry, kept, entries_from(1, 3)))
            and same_state(ledger.load(), state_at(3))
        )

    def test_new_ledger_is_empty(self, ledger):
        """Nothing was committed, so there is no state and no entry."""
        assert ledger.load() is None
        assert list(ledger.entries()) == []

    def test_initial_state(self, ledger):
        """A state can be committed before any release; the ledger is then no longer empty."""
        ledger.commit([], state_at(0))
        assert same_state(ledger.load(), state_at(0))
        assert list(ledger.entries()) == []

    def test_start_from_a_snapshot(self, ledger):
        """An empty ledger takes a state of any number, and continues there."""
        ledger.commit([], state_at(41))
        ledger.commit(entries_from(42, 2), state_at(43))
        assert same_state(ledger.load(), state_at(43))
        assert [entry.sequence for entry in ledger.entries()] == [42, 43]

    def test_everything_comes_back(self, used):
        """Entries and the last state are kept bit for bit, of every kind and in order."""
        assert self.holds_three(used)
        assert [type(entry.label) for entry in used.entries()] == [type(None), int, int]

    def test_many_small_commits_are_one_large(self, ledger):
        """It does not matter how a history was divided into commits."""
        ledger.commit([], state_at(0))
        for i in range(1, 10):
            ledger.commit(entries_from(i, 1), state_at(i))
        assert all(map(same_entry, list(ledger.entries()), entries_from(1, 9)))
        assert same_state(ledger.load(), state_at(9))

    def test_state_without_entries_may_be_committed_again(self, used):
        """An empty commit that ends where the ledger is continues it."""
        used.commit([], state_at(3))
        assert self.holds_three(used)

    @pytest.mark.parametrize(("numbers", "end"), BAD_COMMITS.values(), ids=BAD_COMMITS)
    def test_conflicts_change_nothing(self, used, numbers, end):
        """A commit that does not continue the ledger is refused whole; the right one still goes through."""
        with pytest.raises(LedgerConflict):
            used.commit([label_entry(i) for i in numbers], state_at(end))
        assert self.holds_three(used)
        used.commit(entries_from(4, 1), state_at(4))
        assert used.load().sequence == 4

    def test_first_writer_wins(self, used):
        """Of two sessions that continue from the same state, the second is refused."""
        used.commit([label_entry(4)], state_at(4))
        with pytest.raises(LedgerConflict):
            used.commit([vector_entry(4)], state_at(4))
        assert same_entry(list(used.entries())[-1], label_entry(4))

    def test_conflict_says_what_to_do(self, used):
        """The error names both positions, and nothing of what was in the release."""
        with pytest.raises(LedgerConflict, match=r"holds 3 releases.*Nothing was released") as refusal:
            used.commit([Entry(9, 1, 86_753, None, np.array([86_753.0]))], state_at(9))
        assert "86" not in str(refusal.value)

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_caller_keeps_no_handle_on_an_entry(self, used, kind):
        """Arrays that are overwritten after the commit do not change what the ledger holds."""
        entry = kind(4)
        used.commit([entry], state_at(4))
        scribble(entry.question)
        scribble(entry.noisy)
        assert same_entry(list(used.entries())[-1], kind(4))

    def test_the_caller_keeps_no_handle_on_a_view(self, used):
        """Nor do arrays of which a part was committed."""
        votes, noisy = np.zeros((2, N_MODELS), dtype=np.int16), np.arange(9.0)
        used.commit([Entry(4, 1, 0, votes[1], noisy[3:6])], state_at(4))
        votes[...], noisy[...] = 77, 77
        kept = list(used.entries())[-1]
        assert same_array(kept.question, np.zeros(N_MODELS, dtype=np.int16))
        assert same_array(kept.noisy, np.arange(3.0, 6.0))

    def test_the_caller_keeps_no_handle_on_the_state(self, used):
        """The belief that was committed is the one that comes back."""
        log_belief = DELICATE.copy()
        used.commit([], State(3, 1, 1, log_belief))
        scribble(log_belief)
        assert same_array(used.load().log_belief, DELICATE)

    def test_the_caller_keeps_no_handle_on_the_list(self, used):
        """A list that is emptied after the commit was copied."""
        entries = [label_entry(4)]
        used.commit(entries, state_at(4))
        entries.clear()
        assert len(list(used.entries())) == 4

    def test_reading_is_a_snapshot(self, used):
        """A commit in the middle of a reading does not disturb it."""
        reading = used.entries()
        next(reading)
        used.commit(entries_from(4, 1), state_at(4))
        assert [entry.sequence for entry in reading][:2] == [2, 3]
        assert [entry.sequence for entry in used.entries()] == [1, 2, 3, 4]
