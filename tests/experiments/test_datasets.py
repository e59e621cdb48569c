"""The paper's tables, from the files as they were published."""

import hashlib
import io
import zipfile

import numpy as np
import pytest
from real_data import DATA, real_file

from pacpredict.exceptions import InvalidTable
from pacpredict.experiments import datasets
from pacpredict.experiments.datasets import DATASETS, load_bank, load_census
from pacpredict.experiments.tabular import PUBLISHED, SEED, SHOWN, STEPS, split
from pacpredict.training.pool import Pool


@pytest.fixture
def published(monkeypatch):
    real_file("adult", "adult.data")
    real_file("bank", "bank-additional-full.csv")
    monkeypatch.setenv("PACPREDICT_DATA", str(DATA))


def test_census_income(published):
    """Census income has 48,842 records, 14 features and two classes; a question mark is a missing value."""
    table = load_census()
    pool = Pool.of_frame(table, "income")
    assert len(table) == 48_842
    assert len(pool.schema.columns) == 14
    assert pool.classes.values == ("<=50K", ">50K")
    names = [column.name for column in pool.schema.columns]
    missing = [
        name for name, values in zip(names, pool.rows.numbers.T, strict=True) if np.isnan(values).any()
    ]
    assert missing == ["workclass", "occupation", "native-country"]
    assert sum(column.kind == "category" for column in pool.schema.columns) == 8
    assert round((table["income"] == ">50K").mean(), 3) == 0.239


def test_bank_marketing(published):
    """Bank marketing has 41,188 records, 20 features and two classes; "unknown" is a category."""
    table = load_bank()
    pool = Pool.of_frame(table, "y")
    assert len(table) == 41_188
    assert len(pool.schema.columns) == 20
    assert pool.classes.values == ("no", "yes")
    assert not np.isnan(pool.rows.numbers).any()
    assert sum(column.kind == "category" for column in pool.schema.columns) == 10
    assert "unknown" in pool.schema.columns[1].categories


@pytest.mark.parametrize(("name", "sizes"), [("census", (39_073, 9_769)), ("bank", (32_950, 8_238))])
def test_splits_have_the_papers_sizes(name, sizes, published):
    """Four fifths to fit on, one fifth to ask about: disjoint, all records, the same every time."""
    train, held_out = split(name)
    assert (len(train), len(held_out)) == sizes
    assert not set(train.index) & set(held_out.index)
    assert list(split(name)[1].index) == list(held_out.index)
    assert SEED == 1
    target = DATASETS[name].target
    known = Pool.of_frame(train, target).schema
    assert len(known.rows(held_out.drop(columns=target))) == sizes[1]


def test_published_figures():
    """The figures beside which ours are printed are those of the paper."""
    shown = {
        name: [dict(zip(STEPS, PUBLISHED[name], strict=True))[noise] for noise in SHOWN] for name in PUBLISHED
    }
    assert shown["census"] == pytest.approx([87.17, 86.68, 85.84], abs=0.005)
    assert shown["bank"] == pytest.approx([91.69, 91.02, 90.29], abs=0.005)


def test_another_file_is_refused(tmp_path, monkeypatch):
    """A file of that name with another content is refused, and so is a folder without it."""
    monkeypatch.setenv("PACPREDICT_DATA", str(tmp_path))
    with pytest.raises(InvalidTable, match=r"PACPREDICT_DATA has no bank/bank-additional-full.csv"):
        load_bank()
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "bank-additional-full.csv").write_text("age;y\n1;no\n")
    with pytest.raises(InvalidTable, match=r"is not the published file: its SHA-256 differs"):
        load_bank()


def test_files_are_fetched_once(tmp_path, monkeypatch):
    """Without PACPREDICT_DATA a file is taken out of its archive, kept in the cache and checked each time."""
    text = b"age;y\n1;no\n2;yes\n"
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("bank-additional/bank-additional-full.csv", text)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("bank-additional.zip", inner.getvalue())
    fetched = []

    def reply(url, timeout):
        fetched.append(url)
        return io.BytesIO(outer.getvalue())

    monkeypatch.delenv("PACPREDICT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("urllib.request.urlopen", reply)
    with pytest.raises(InvalidTable, match="its SHA-256 differs"):
        load_bank()
    monkeypatch.setattr(datasets, "_BANK", datasets._BANK._replace(sha256=hashlib.sha256(text).hexdigest()))
    assert list(load_bank()["y"]) == ["no", "yes"]
    assert len(fetched) == 1
    assert fetched[0].startswith("https://archive.ics.uci.edu/")


def test_no_network_is_said_in_words(tmp_path, monkeypatch):
    """What cannot be fetched says where to put it."""

    def unreachable(*_, **__):
        raise OSError("no route to host")

    monkeypatch.delenv("PACPREDICT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    with pytest.raises(InvalidTable, match=r"no route to host.*PACPREDICT_DATA"):
        load_census()
