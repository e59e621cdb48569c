"""Many rows are inserted by few statements, and all of them arrive in order."""

import sqlite3

import pytest

from pacpredict.ledger.sqlite import SqliteConnection

SIZES = [0, 1, 2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 575, 576, 577, 1000, 1001, 1088]


@pytest.fixture
def connection(tmp_path):
    path = tmp_path / "table.sqlite"
    sqlite3.connect(path).close()
    found = SqliteConnection(path, 1.0)
    found.run("CREATE TABLE numbers (number INTEGER PRIMARY KEY, square INTEGER)")
    yield found
    found.close()


@pytest.mark.parametrize("n_rows", SIZES)
def test_any_number_of_rows(connection, n_rows):
    """Whatever number of rows is inserted, these and no others are there."""
    rows = [(number, number**2) for number in range(n_rows)]
    connection.run_many("INSERT INTO numbers (number, square) VALUES (?, ?)", rows)
    assert connection.run("SELECT * FROM numbers ORDER BY number") == rows
