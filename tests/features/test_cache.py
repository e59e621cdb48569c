"""Features are computed once per input, kept by content, and readable by their owner only."""

import os
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from whole_values import texts

from pacpredict.exceptions import InvalidFeatures, InvalidInput
from pacpredict.features.cache import FeatureCache, default_folder
from pacpredict.features.compute import Concatenation
from pacpredict.features.own import OwnExtractor
from pacpredict.rows.texts import TextSchema

SCHEMA = TextSchema()


class Counting(OwnExtractor):
    """Counts how often it is asked, and has an identity as models have."""

    identity = "counting"

    def __init__(self, fail_at=None):
        super().__init__(self.count)
        self.asked, self.fail_at = [], fail_at

    def count(self, text):
        self.asked.append(text)
        return np.array([np.nan if text == self.fail_at else 1.0, len(text)])


def compute(extract, folder, given, **options):
    rows = SCHEMA.rows(given)
    return Concatenation((extract,), FeatureCache(folder), **options)(SCHEMA.digests(rows), rows)


def test_an_input_is_looked_at_once(tmp_path):
    """A second pass, another order, a subset and duplicates ask for nothing that is known."""
    given = [f"text {i}" for i in range(20)]
    extract = Counting()
    first = compute(extract, tmp_path, [*given, *given[:5]])
    assert len(extract.asked) == 20
    again = Counting()
    assert np.array_equal(compute(again, tmp_path, given[::-1]), first[:20][::-1])
    assert again.asked == []
    compute(again, tmp_path, [*given[:3], "new"])
    assert again.asked == ["new"]


def test_an_interruption_costs_only_what_was_under_way(tmp_path):
    """Whatever was finished before a failure is there for the next attempt."""
    given = [f"text {i}" for i in range(600)]
    with pytest.raises(InvalidFeatures, match=r"row 550 \(from 0\)"):
        compute(Counting(fail_at="text 550"), tmp_path, given)
    extract = Counting()
    compute(extract, tmp_path, given)
    assert len(extract.asked) == 600 - 512


def test_only_the_owner_can_read_it(tmp_path):
    """What was computed from records is as confidential as they are."""
    compute(Counting(), tmp_path / "kept", texts(5)[0])
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "kept" / "counting.sqlite").stat().st_mode & 0o777 == 0o600


def kept_by_somebody(folder, data, text="text"):
    """Write a file of features as another program would, for one text."""
    folder.mkdir(mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(folder / "counting.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE features (digest BLOB PRIMARY KEY, features BLOB)")
        connection.execute(
            "INSERT INTO features VALUES (?, ?)", (SCHEMA.digests(SCHEMA.rows([text]))[0], data)
        )
    (folder / "counting.sqlite").chmod(0o600)
    return folder


@pytest.mark.parametrize("mode", [0o666, 0o644, 0o640, 0o620, 0o602])
def test_a_file_that_others_may_open_is_not_used(tmp_path, mode):
    """They could have read what is computed from records, or have written what was not."""
    folder = kept_by_somebody(tmp_path / "kept", np.ones(2, "<f4").tobytes())
    assert compute(Counting(), folder, ["text"]).tolist() == [[1, 1]]
    (folder / "counting.sqlite").chmod(mode)
    for text in ("text", "new"):
        with pytest.raises(InvalidInput, match=f"others may read or change the file: its mode is {mode:o}"):
            compute(Counting(), folder, [text])


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o720])
def test_a_folder_that_others_may_write_into_is_not_used(tmp_path, mode):
    """They could put a file or a journal there."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept").chmod(mode)
    with pytest.raises(InvalidInput, match=f"others may write into the folder: its mode is {mode:o}"):
        compute(Counting(), tmp_path / "kept", ["text"])
    assert not list((tmp_path / "kept").iterdir())


def test_what_belongs_to_somebody_else_is_not_used(tmp_path, monkeypatch):
    """Whatever its mode is."""
    folder = kept_by_somebody(tmp_path / "kept", np.ones(2, "<f4").tobytes())
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(InvalidInput, match="belongs to somebody else"):
        compute(Counting(), folder, ["text"])


@pytest.mark.parametrize(
    "data",
    [
        np.array([np.nan, 7e9], "<f4").tobytes(),
        np.array([np.inf, 1], "<f4").tobytes(),
        b"abc",
        b"",
        "text",
        None,
    ],
)
def test_features_that_no_extractor_returns_are_not_used(tmp_path, data):
    """A file that holds them is named."""
    folder = kept_by_somebody(tmp_path / "kept", data)
    with pytest.raises(InvalidInput, match=r"counting\.sqlite cannot be used .* remove the file"):
        compute(Counting(), folder, ["text"])


def test_a_damaged_cache_is_named(tmp_path):
    """It says which file to remove."""
    (tmp_path / "counting.sqlite").write_bytes(b"SQLite format 3\0" + b"damaged" * 100)
    (tmp_path / "counting.sqlite").chmod(0o600)
    with pytest.raises(InvalidInput, match=r"counting\.sqlite cannot be used .* remove the file"):
        compute(Counting(), tmp_path, ["text"])


def test_progress_counts_rows(tmp_path):
    """Whoever waits sees how many rows are done."""
    rows, said = SCHEMA.rows([f"text {i}" for i in range(300)]), []
    Concatenation((Counting(),))(SCHEMA.digests(rows), rows, lambda *done: said.append(done))
    assert said == [(256, 300), (300, 300)]


def test_the_default_is_in_the_users_cache(monkeypatch, tmp_path):
    """As other programs keep theirs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "pacpredict" / "features"
