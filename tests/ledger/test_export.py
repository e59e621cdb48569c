"""What an auditor gets: all releases, and nothing that stays inside."""

import csv

import numpy as np
import pandas as pd
import pytest
from small_deployment import DEPLOYMENT, KEY, STEP, M, ask, digest_of, make_session

from pacpredict.exceptions import InvalidInput
from pacpredict.ledger.export import COLUMNS, export
from pacpredict.ledger.sqlite import SqliteLedger
from pacpredict.mechanism.budget import Budget
from pacpredict.mechanism.question import request_key

BUDGET = Budget(STEP, 1e4 * STEP)


@pytest.fixture
def ledger(tmp_path):
    with SqliteLedger(tmp_path / "ledger.sqlite", deployment=DEPLOYMENT, key=KEY) as ledger:
        session = make_session(ledger)
        session.serve([ask(1, 3, id='a,"b"\n', client="zoe"), ask(2)])
        session.release(np.arange(float(M))[:, None])
        yield ledger


def test_csv(ledger, tmp_path):
    """One line for each release, with the owner's label, charges in nats and the chain."""
    path = tmp_path / "audit.csv"
    assert export(ledger, path, BUDGET, lambda code: f"class {code}") == 4
    with path.open(newline="", encoding="utf-8") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == COLUMNS
    spent = 0
    for line, record in zip(lines, ledger.records(), strict=True):
        entry = record.entry
        spent += entry.charged_steps
        label = "" if entry.label is None else f"class {entry.label}"
        digest = entry.digest.hex() if entry.digest else ""
        assert line[:8] == [
            str(entry.sequence),
            record.time,
            entry.client or "",
            entry.kind,
            entry.votes,
            entry.request.hex() if entry.request else "",
            digest,
            label,
        ]
        assert (float(line[8]), float(line[9])) == (entry.charged_steps * STEP, spent * STEP)
        assert line[10] == record.chain.hex()
    assert lines[0][5:7] == [request_key("zoe", 'a,"b"\n').hex(), digest_of(1).hex()]


def test_parquet(ledger, tmp_path):
    """The same table with types."""
    pytest.importorskip("pyarrow")
    export(ledger, tmp_path / "audit.csv", BUDGET)
    assert export(ledger, tmp_path / "audit.parquet", BUDGET) == 4
    table = pd.read_parquet(tmp_path / "audit.parquet")
    assert tuple(table.columns) == COLUMNS
    assert table["sequence"].tolist() == [1, 2, 3, 4]
    assert table["charge_nats"].tolist() == [STEP, 0.0, STEP, STEP]
    assert table["label"].isna().tolist() == [False, False, False, True]
    text = pd.read_csv(tmp_path / "audit.csv", dtype=str)
    for name in ("time", "digest", "chain", "label"):
        assert table[name].fillna("").tolist() == text[name].fillna("").tolist()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_empty_ledger(tmp_path, ending):
    """A table without rows still has its columns."""
    pytest.importorskip("pyarrow")
    with SqliteLedger(tmp_path / "new", deployment=DEPLOYMENT, key=KEY) as ledger:
        assert export(ledger, tmp_path / f"audit.{ending}", BUDGET) == 0
    read = pd.read_csv if ending == "csv" else pd.read_parquet
    assert tuple(read(tmp_path / f"audit.{ending}").columns) == COLUMNS


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nothing_else_leaves(ledger, tmp_path, ending):
    """Votes, noisy numbers and beliefs are not in the file, as bytes or as text."""
    pytest.importorskip("pyarrow")
    path = tmp_path / f"audit.{ending}"
    export(ledger, path, BUDGET)
    content = path.read_bytes()
    for entry in ledger.entries():
        for array in (entry.question, entry.noisy, ledger.load().log_belief):
            if array is not None:
                assert array.tobytes() not in content
                assert array.tobytes().hex().encode() not in content
                assert (
                    repr(float(array.ravel()[0])).encode() not in content
                    or float(array.ravel()[0]).is_integer()
                )


def test_other_endings_are_refused(ledger, tmp_path):
    """The ending of the name decides, so it must be known."""
    with pytest.raises(InvalidInput, match=r"\.csv or \.parquet"):
        export(ledger, tmp_path / "audit.xlsx", BUDGET)
    assert not (tmp_path / "audit.xlsx").exists()
