"""Checks of arguments: what passes comes back in one form, what does not is named."""

import math

import numpy as np
import pytest

from pacpredict.core.validate import (
    check_belief,
    check_budget,
    check_leakage,
    check_model_count,
    check_outputs,
    check_prior,
    check_votes,
)
from pacpredict.exceptions import (
    InvalidBelief,
    InvalidBudget,
    InvalidInput,
    InvalidModelCount,
    InvalidOutputs,
    InvalidProbability,
    InvalidVotes,
    PacPredictError,
)


@pytest.mark.parametrize(
    "error", [InvalidBelief, InvalidBudget, InvalidModelCount, InvalidOutputs, InvalidVotes]
)
def test_errors_are_value_errors_of_this_package(error):
    """Callers can catch one kind, all input errors, or everything that is raised on purpose."""
    assert issubclass(error, InvalidInput)
    assert issubclass(error, ValueError)
    assert issubclass(error, PacPredictError)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_votes_of_all_integer_types(dtype):
    """Votes become a contiguous matrix of short integers with the same values."""
    votes = np.array([[0, 1, 2], [2, 2, 0]], dtype=dtype)
    for given, expected in (
        (votes, votes),
        (votes.T, votes.T),
        (votes[::-1], votes[::-1]),
        (votes[0], votes[:1]),
    ):
        checked = check_votes(given, 3)
        assert checked.dtype == np.int16
        assert checked.flags.c_contiguous
        assert checked.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [">i2", ">u2", ">i4", ">i8"])
def test_votes_of_either_byte_order(dtype):
    """Votes from a file of another machine are the same votes, and as bad if they are out of range."""
    assert check_votes(np.array([0, 1, 2], dtype=dtype), 3).tolist() == [[0, 1, 2]]
    for bad in (3, 256, 512):
        with pytest.raises(InvalidVotes, match=f"found {bad}"):
            check_votes(np.array([0, 1, bad], dtype=dtype), 3)


@pytest.mark.parametrize("n_classes", [32_768, 50_000, 2**40])
def test_votes_for_too_many_classes(n_classes):
    """A label that the type of votes cannot hold is refused, not taken for another."""
    with pytest.raises(InvalidInput):
        check_votes([n_classes - 1, 0], n_classes)


def test_votes_as_lists():
    """Plain lists will do."""
    assert check_votes([0, 1, 1, 0], 2, 4).tolist() == [[0, 1, 1, 0]]


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ([0, 3], "0 to 2, found 3"),
        ([0, -1], "0 to 2, found -1"),
        ([-7, 9], "found -7"),
        ([2**32, 0], "found 4294967296"),  # would be 0 in 32 bits
        (np.array([2**64 - 1, 0], dtype=np.uint64), "found 18446744073709551615"),
        ([0.0, 1.0], "float64"),
        ([True, False], "bool"),
        (["a", "b"], "encode the labels"),
        ([None, 1], "object"),
        ([0, 1, 2], "all 2 models, got 3"),
        ([0], "all 2 models, got 1"),
        ([], "not be empty"),
        (np.zeros((0, 2), int), "not be empty"),
        (np.zeros((2, 2, 2), int), r"got \(2, 2, 2\)"),
        (1, r"got \(\)"),
    ],
)
def test_bad_votes(votes, message):
    """The error says what was found and what was expected."""
    with pytest.raises(InvalidVotes, match=message):
        check_votes(votes, 3, 2)


def test_outputs_become_doubles():
    """Real outputs of any type become a contiguous copy in double precision."""
    source = np.arange(6, dtype=np.float32).reshape(2, 3).T
    checked = check_outputs(source, 3)
    assert checked.dtype == np.float64
    assert checked.flags.c_contiguous
    assert checked.tolist() == source.tolist()
    assert not np.shares_memory(check_outputs(checked), checked)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([[1.0, math.nan], [0.0, 0.0]], r"nan at index \(0, 1\)"),
        ([[1.0, 2.0], [math.inf, 0.0]], r"inf at index \(1, 0\)"),
        ([[1.0, 2.0], [0.0, -math.inf]], r"-inf at index \(1, 1\)"),
        ([1.0, 2.0], r"\(2, n_outputs\)"),
        ([[1.0, 2.0]], r"got \(1, 2\)"),
        ([[], []], "not be empty"),
        ([[1.0], [1.0, 2.0]], "rectangular"),
        ([["a"], ["b"]], "real numbers"),
        ([[1j], [2.0]], "real numbers"),
        (None, "shape"),
    ],
)
def test_bad_outputs(outputs, message):
    """The error says where the first bad number is, or which shape was expected."""
    with pytest.raises(InvalidOutputs, match=message):
        check_outputs(outputs, 2)


def test_any_number_of_models():
    """Without a number of models, any will do."""
    assert check_outputs([[1.0], [2.0], [3.0]]).shape == (3, 1)
    assert check_belief([0.5, 0.5]).tolist() == [0.5, 0.5]
    assert check_votes([0, 1, 2], 3).shape == (1, 3)


def test_beliefs_are_normalised():
    """A sum that is off by rounding is put right, and the source is left alone."""
    source = np.array([0.25, 0.75 + 5e-7])
    assert math.fsum(check_belief(source)) == pytest.approx(1, rel=1e-15)
    assert source[1] == 0.75 + 5e-7


@pytest.mark.parametrize(
    ("belief", "message"),
    [
        ([0.5, 0.6], "sums to 1.1"),
        ([0.5, 0.5 + 2e-6], "divide it by its sum"),
        ([1.5, -0.5], "-0.5 at index 1"),
        ([math.nan, 1.0], "nan at index 0"),
        ([0.0, math.inf], "inf at index 1"),
        ([1.0], r"\(2,\), got \(1,\)"),
        ([[0.5, 0.5]], r"\(2,\)"),
        ("half", "real numbers"),
    ],
)
def test_bad_beliefs(belief, message):
    """The error says which entry or sum is wrong."""
    with pytest.raises(InvalidBelief, match=message):
        check_belief(belief, 2)


@pytest.mark.parametrize("m", [2, 4, 128, np.int64(6)])
def test_model_counts(m):
    """Even numbers pass."""
    assert check_model_count(m) == m


@pytest.mark.parametrize("m", [1, 3, 127, 0, -2, -1, 2.5, math.nan, math.inf, True])
def test_bad_model_counts(m):
    """Odd numbers, and what is no number of models at all, do not."""
    with pytest.raises(InvalidModelCount, match="even"):
        check_model_count(m)


@pytest.mark.parametrize("nats", [1e-300, 2.0**-32, 1, np.float32(0.5), "0.25", 1e3])
def test_budgets(nats):
    """Positive finite amounts pass, as floats."""
    assert type(check_budget(nats)) is float
    assert check_budget(nats) == float(nats)


@pytest.mark.parametrize(
    "nats", [0, -0.0, -1e-300, 5e-324, math.nan, math.inf, None, "x", [1.0], 1e9, 10**400]
)
def test_bad_budgets(nats):
    """Everything else is refused by name."""
    with pytest.raises(InvalidBudget, match="my budget"):
        check_budget(nats, "my budget")


@pytest.mark.parametrize("nats", [0, 1.5, math.inf])
def test_leakages(nats):
    """An amount of leaked information may also be nothing or everything."""
    assert check_leakage(nats) == nats


@pytest.mark.parametrize("nats", [-1e-300, math.nan, -math.inf, None])
def test_bad_leakages(nats):
    """But neither negative nor NaN."""
    with pytest.raises(InvalidBudget):
        check_leakage(nats)


@pytest.mark.parametrize("prior", [0, 1, -0.5, 1.5, math.nan, math.inf, None])
def test_bad_priors(prior):
    """A guess that always or never succeeds is no prior of an attack."""
    with pytest.raises(InvalidProbability, match="prior"):
        check_prior(prior)
    assert check_prior(0.5) == 0.5
