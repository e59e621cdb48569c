"""What every ledger must do; a test of an implementation subclasses LedgerContract and gives the fixture `ledger`."""

import threading

import numpy as np
import pytest

from pacpredict.exceptions import LedgerConflict
from pacpredict.mechanism.ledger import Answer, Entry, State

N_MODELS = 6

# Doubles that a detour over text or single precision would change.
DELICATE = np.array([-0.0, 5e-324, 1 / 3, -1e9, 1.7976931348623157e308, -np.pi])


def label_entry(sequence):
    """A contested label query."""
    votes = np.array([0, 1, 2, 1, 1, sequence % 3], dtype=np.int16)
    return Entry(sequence, 1, sequence % 3, "argmax", votes, DELICATE[:3] + sequence)


def vector_entry(sequence):
    """A contested release of real outputs."""
    outputs = np.add.outer(np.arange(N_MODELS), DELICATE)
    return Entry(sequence, 1, None, "vector", outputs, DELICATE.copy())


def unanimous_entry(sequence):
    """A query on which all models agree, charged like any other, so that the number says what was spent."""
    return Entry(sequence, 1, 2, "agreed")


def sampled_entry(sequence):
    """A label that was released itself: there are no noisy numbers."""
    return label_entry(sequence)._replace(noisy=None, kind="sample")


def asked_entry(sequence):
    """A query with all that a request says about it."""
    return label_entry(sequence)._replace(
        digest=digest_of(sequence),
        client="zoe",
        request=digest_of(10_000 + sequence),
        asked=digest_of(20_000 + sequence),
    )


def digest_of(number):
    return number.to_bytes(32, "big")


KINDS = [label_entry, vector_entry, unanimous_entry, sampled_entry]


def entries_from(sequence, n):
    return [KINDS[i % len(KINDS)](i) for i in range(sequence, sequence + n)]


def state_at(sequence):
    belief = np.append(DELICATE[1:], sequence)
    return State(sequence, sequence // 2, sequence, belief, noisy=sequence // 3)


def same_array(one, other):
    """Compare bit for bit, None included."""
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def same_entry(one, other):
    return (
        one._replace(question=None, noisy=None) == other._replace(question=None, noisy=None)
        and same_array(one.question, other.question)
        and same_array(one.noisy, other.noisy)
    )


def same_state(one, other):
    counts, others = (
        (state.sequence, state.contested, state.spent_steps, state.noisy) for state in (one, other)
    )
    return counts == others and same_array(one.log_belief, other.log_belief)


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

    def test_the_state_changes_with_entries_only(self, used):
        """Without a release there is nothing that another state could follow from."""
        used.commit([], State(3, 0, 3, DELICATE.copy()))
        assert self.holds_three(used)

    def test_what_binds_a_state_comes_back(self, ledger):
        """Step, total, origin, commitment and counts are kept with the state, to the last bit."""
        bound = (1 / 3, None, digest_of(7), 2 / 3, digest_of(8), 7)
        ledger.commit([], State(0, 0, 0, DELICATE.copy(), *bound))
        state = ledger.load()
        assert (state.step, state.deployment, state.origin) == (1 / 3, None, digest_of(7))
        assert (state.total, state.secret) == (2 / 3, digest_of(8))
        assert state.noisy == 7

    def test_load_returns_the_same_object(self, used):
        """As long as nobody commits, a session recognises its state without comparing arrays."""
        state = state_at(4)
        used.commit([label_entry(4)], state)
        with used.turn():
            assert used.load() is state
        assert used.load() is state

    @pytest.mark.parametrize(("numbers", "end"), BAD_COMMITS.values(), ids=BAD_COMMITS)
    def test_conflicts_change_nothing(self, used, numbers, end):
        """A commit that does not continue the ledger is refused whole; the right one still goes through."""
        with pytest.raises(LedgerConflict):
            used.commit([label_entry(i) for i in numbers], state_at(end))
        assert self.holds_three(used)
        used.commit(entries_from(4, 1), state_at(4))
        assert used.load().sequence == 4

    @pytest.mark.parametrize("spent", [3, 5])
    def test_spending_adds_up(self, used, spent):
        """A state whose spending is not that of its entries is refused."""
        with pytest.raises(LedgerConflict, match="charged steps"):
            used.commit([label_entry(4)], State(4, 1, spent, DELICATE.copy()))
        assert self.holds_three(used)

    def test_first_writer_wins(self, used):
        """Of two sessions that continue from the same state, the second is refused."""
        used.commit([label_entry(4)], state_at(4))
        with pytest.raises(LedgerConflict):
            used.commit([vector_entry(4)], state_at(4))
        assert same_entry(list(used.entries())[-1], label_entry(4))

    def test_conflict_says_what_to_do(self, used):
        """The error names both positions, and nothing of what was in the release."""
        with pytest.raises(LedgerConflict, match=r"holds 3 releases.*Nothing was released") as refusal:
            used.commit([Entry(9, 1, 86_753, "argmax", None, np.array([86_753.0]))], state_at(9))
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
        used.commit([Entry(4, 1, 0, "argmax", votes[1], noisy[3:6])], state_at(4))
        votes[...], noisy[...] = 77, 77
        kept = list(used.entries())[-1]
        assert same_array(kept.question, np.zeros(N_MODELS, dtype=np.int16))
        assert same_array(kept.noisy, np.arange(3.0, 6.0))

    def test_the_caller_keeps_no_handle_on_the_state(self, used):
        """The belief that was committed is the one that comes back."""
        log_belief = DELICATE.copy()
        used.commit([label_entry(4)], State(4, 1, 4, log_belief))
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

    def test_recall_finds_what_was_answered(self, used):
        """A query is found by its digest, with the number, label and charge of its answer; others are not."""
        used.commit([asked_entry(4), asked_entry(5)], state_at(5))
        wanted = [digest_of(number) for number in (5, 6, 4)]
        assert used.recall(wanted) == {digest_of(4): Answer(4, 1, 1), digest_of(5): Answer(5, 2, 1)}
        assert used.recall([]) == {}
        assert same_entry(list(used.entries())[-1], asked_entry(5))

    def test_recall_of_many(self, used):
        """As many queries as a request may hold are looked up in one go."""
        used.commit([asked_entry(i) for i in range(4, 1204)], state_at(1203))
        found = used.recall([digest_of(i) for i in range(3000)])
        assert found == {digest_of(i): Answer(i, i % 3, 1) for i in range(4, 1204)}

    def test_recall_within_a_turn(self, used):
        """Whoever has the turn sees all that was committed."""
        used.commit([asked_entry(4)], state_at(4))
        with used.turn():
            assert used.recall([digest_of(4)]) == {digest_of(4): Answer(4, 1, 1)}

    def test_a_query_is_answered_once(self, used):
        """A second answer to the same query is refused whole, in another commit or in the same."""
        used.commit([asked_entry(4)], state_at(4))
        again = label_entry(5)._replace(digest=digest_of(4))
        with pytest.raises(LedgerConflict):
            used.commit([again], state_at(5))
        twins = [label_entry(i)._replace(digest=digest_of(9)) for i in (5, 6)]
        with pytest.raises(LedgerConflict):
            used.commit(twins, state_at(6))
        assert len(list(used.entries())) == used.load().sequence == 4
        assert used.recall([digest_of(9)]) == {}

    @pytest.mark.parametrize("place", [0, 7, 20, 39])
    def test_a_query_of_many_is_answered_once(self, used, place):
        """Wherever in a large commit it stands, a repeated query lets nothing of it be written."""
        used.commit([asked_entry(4)], state_at(4))
        many = [asked_entry(number) for number in range(5, 45)]
        repeated = [*many[:place], many[place]._replace(digest=digest_of(4)), *many[place + 1 :]]
        with pytest.raises(LedgerConflict, match="in the ledger already"):
            used.commit(repeated, state_at(44))
        assert used.load().sequence == len(list(used.entries())) == 4
        used.commit(many, state_at(44))
        assert all(map(same_entry, list(used.entries())[4:], many))

    def test_request_ids_are_remembered(self, used):
        """What was asked with an id is found, in a turn and outside."""
        used.commit([asked_entry(4), asked_entry(5)], state_at(5))
        wanted = [digest_of(10_004), digest_of(10_005), digest_of(10_006)]
        expected = [digest_of(20_004), digest_of(20_005), None]
        assert [used.request(request) for request in wanted] == expected
        with used.turn():
            assert [used.request(request) for request in wanted] == expected

    def test_a_ledger_that_can_be_written_passes_its_check(self, used):
        """Whether a release could be recorded is found out without recording one."""
        used.check()
        used.confirm(3)
        assert self.holds_three(used)

    def test_turns_exclude_each_other(self, used):
        """While one thread has the turn another waits, so both continue the same history."""
        order, inside = [], threading.Event()

        def second():
            inside.wait()
            with used.turn():
                order.append("second")
                used.commit([label_entry(5)], state_at(used.load().sequence + 1))

        thread = threading.Thread(target=second)
        thread.start()
        with used.turn():
            inside.set()
            thread.join(0.2)
            used.commit([label_entry(4)], state_at(4))
            order.append("first")
        thread.join()
        assert order == ["first", "second"]
        assert [entry.sequence for entry in used.entries()] == [1, 2, 3, 4, 5]

    def test_readers_do_not_wait_for_turns(self, used):
        """Looking up and loading go on while another thread has the turn."""
        found = []

        def read():
            found.extend([used.recall([digest_of(4)]), used.load().sequence, used.request(digest_of(1))])

        with used.turn():
            thread = threading.Thread(target=read)
            thread.start()
            thread.join(10)
            assert found == [{}, 3, None]

    def test_turns_that_fail_leave_nothing(self, used):
        """An exception in a turn changes nothing and does not keep the turn."""
        with pytest.raises(RuntimeError, match="power cut"), used.turn():
            raise RuntimeError("power cut")
        assert self.holds_three(used)
        with used.turn():
            used.commit([label_entry(4)], state_at(4))
        assert used.load().sequence == 4
