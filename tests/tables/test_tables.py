"""Files become tables with the values that were written, or an error that says what is wrong with the file."""

import gzip
import re
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pacpredict.exceptions import InvalidTable
from pacpredict.tables.csv_files import is_csv, line_of, read_texts
from pacpredict.tables.read import read_table
from pacpredict.tables.schema import Schema

TEXT = "age,work,share\n39,private,0.1\n50,,0.25\n"
EXPECTED = pd.DataFrame({"age": [39, 50], "work": ["private", None], "share": [0.1, 0.25]})


def packed(text):
    return gzip.compress(text.encode(), mtime=0)  # without the clock: tests are named after the bytes


@pytest.fixture
def write(tmp_path):
    def to_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return to_file


CSV_FILES = [
    ("a.csv", TEXT),
    ("A.CSV", TEXT),
    ("a.b.txt", TEXT),
    ("a.data", TEXT.replace(",", ", ")),
    ("a.csv", TEXT.replace(",", ";")),
    ("a.tsv", TEXT.replace(",", "\t")),
    ("a.csv", TEXT.replace("\n", "\r\n")),
    ("a.csv", "\n" + TEXT + "\n\n"),
    ("a.csv", b"\xef\xbb\xbf" + TEXT.encode()),
    ("a.csv", TEXT.replace("age", '"age"').replace("private", '"private"')),
    ("a.csv.gz", packed(TEXT)),
]


@pytest.mark.parametrize(("name", "content"), CSV_FILES)
def test_csv(write, name, content):
    """Separators, line ends, quotes, a byte order mark and compression do not change what is read."""
    path = write(name, content)
    pd.testing.assert_frame_equal(read_table(path), EXPECTED)
    pd.testing.assert_frame_equal(read_table(str(path)), EXPECTED)


def test_separators_within_quotes(write):
    """The separator is what cuts the first line, not what its names contain."""
    table = read_table(write("a.csv", '"a,b,c";"d"\n"x,y";1\n'))
    assert table.to_dict("records") == [{"a,b,c": "x,y", "d": 1}]


def test_one_column(write):
    """A file without any separator has one column."""
    assert read_table(write("a.csv", "text\nsome words\n")).to_dict("list") == {"text": ["some words"]}


def test_only_empty_cells_are_missing(write):
    """NA, null and None are texts, and so is a question mark, unless they are said to mean missing."""
    text = "a,b\nNA,1\nnull,?\nNone,3\nnan,4\n,5\n"
    table = read_table(write("a.csv", text))
    assert table["a"].tolist()[:4] == ["NA", "null", "None", "nan"]
    assert table["a"].isna().tolist() == [False] * 4 + [True]
    assert table["b"].tolist() == ["1", "?", "3", "4", "5"]
    table = read_table(write("a.csv", text), missing=["?", "NA"])
    assert table["b"].dtype == np.float64
    assert table["b"].isna().tolist() == [False, True, False, False, False]
    assert table["a"].isna().tolist() == [True, False, False, False, True]


def test_numbers_are_those_of_python(write):
    """A decimal becomes the very float that Python and JSON make of it, so that its digest is the same."""
    numbers = np.random.default_rng(0).uniform(-1, 1, 5000) * 10.0 ** np.arange(-2500, 2500).clip(-290, 290)
    text = "x\n" + "\n".join(map(repr, numbers.tolist()))
    assert (read_table(write("a.csv", text))["x"].to_numpy() == numbers).all()


def test_names_for_files_without_any(write):
    """Names can be given for a file whose first line is data."""
    path = write("a.data", "39, private\n50, state\n")
    assert read_table(path, names=["age", "work"])["age"].tolist() == [39, 50]
    with pytest.raises(InvalidTable, match="2 columns, but there are 1 names"):
        read_table(path, names=["age"])
    with pytest.raises(InvalidTable, match="more than one column called 'age'"):
        read_table(path, names=["age", "age"])


@pytest.mark.parametrize(("name", "content"), CSV_FILES)
def test_as_texts(write, name, content):
    """Cells stay what they are, whatever separates them: a schema reads codes that pandas would take for numbers."""
    assert read_texts(write(name, content)) == {
        "age": ["39", "50"],
        "work": ["private", ""],
        "share": ["0.1", "0.25"],
    }
    assert read_texts(write("a.csv", "code\n007\n\n008\n")) == {"code": ["007", "008"]}
    assert read_texts(write("a.csv", 'a,b\n"x, ""y""\nz",1\n')) == {"a": ['x, "y"\nz'], "b": ["1"]}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "\n \n", "is empty"),
        ("a.csv.gz", packed(""), "is empty"),
        ("a.csv", "a,b\n", "no rows"),
        ("a.xlsx", "x", r"must end in \.csv"),
        ("a", "x", r"must end in \.csv"),
        ("a.gz", "x", r"must end in \.csv"),
        ("a.parquet.gz", "x", r"must end in \.csv"),
        ("a.csv", "a,b,a\n1,2,3\n", "more than one column called 'a'"),
        ("a.csv", "a, a\n1,2\n", "more than one column called 'a'"),
        ("a.csv", ",a\n0,5\n", "no name for column 1; .*index=False"),
        ("a.csv", "a,b\n1,2\n1,2,3\n", "cannot be read as CSV: .*line 3"),
        ("a.csv", "a,b\n1,2,3\n", "cannot be read as CSV"),
        ("a.csv", 'a,b\n"1,2\n', "cannot be read as CSV"),
        ("a.csv", "a\né\n".encode("latin-1"), "not UTF-8 .*iconv -f cp1252 -t utf-8 .*a.csv > NEW"),
        ("a.csv", "é,b\n1,2\n".encode("latin-1"), "not UTF-8"),
        ("a.csv", "a\né\n".encode("utf-16"), "not UTF-8 .*iconv -f utf-16 -t utf-8 .*a.csv > NEW"),
        ("a.csv", b"\xfe\xff" + "a\né\n".encode("utf-16-be"), "iconv -f utf-16 -t utf-8 .*a.csv > NEW"),
        ("a.csv", packed("a\n1\n"), "not UTF-8"),
        ("a.csv.gz", "a\n1\n", "cannot be read: Not a gzipped file"),
        ("a.csv.gz", packed(TEXT)[:-9], "cannot be read: "),
        ("a.parquet", "PAR1", "cannot be read as Parquet"),
        ("a.parquet", "", "cannot be read as Parquet"),
    ],
)
def test_unreadable_files(write, name, content, words):
    """A file that cannot be read is named, with what is wrong."""
    path = write(name, content)
    with pytest.raises(InvalidTable, match=words) as refused:
        read_table(path)
    assert name in str(refused.value)
    if is_csv(path):
        with pytest.raises(InvalidTable, match=re.escape(name)):
            read_texts(path)


def test_cells_that_are_too_many_or_too_few(write):
    """A line that does not have a cell for each column is named by its number in the file."""
    for line in ("1,2,3", "1"):
        with pytest.raises(InvalidTable, match=r"a\.csv, line 4: there are \d cells and 2 columns"):
            read_texts(write("a.csv", f'a,b\n"1\n",2\n{line}\n'))


def test_absent_files(tmp_path):
    """A file that is not there, or is a folder, is said to be so."""
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InvalidTable, match=r"there is no file .*absent\.csv"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InvalidTable, match=r"there is no file .*absent\.parquet"):
        read_table(tmp_path / "absent.parquet")
    with pytest.raises(InvalidTable, match=r"folder\.csv cannot be read"):
        read_table(tmp_path / "folder.csv")


@pytest.mark.parametrize("name", ["a.parquet", "a.pq"])
def test_parquet(tmp_path, name):
    """Parquet files keep their types, categories and missing values."""
    table = EXPECTED.assign(
        grade=pd.Categorical(["low", None], categories=["low", "high"]), flag=[True, False]
    )
    table.to_parquet(tmp_path / name)
    again = read_table(tmp_path / name)
    pd.testing.assert_frame_equal(again, table)
    assert Schema.infer(again) == Schema.infer(table)


def test_parquet_with_duplicate_names(tmp_path):
    """Two columns of one name are refused, as in a CSV file."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # noqa: PLC0415

    parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "a.parquet")
    with pytest.raises(InvalidTable, match="more than one column called 'a'"):
        read_table(tmp_path / "a.parquet")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    """Without the extra, the error says how to install it."""
    EXPECTED.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidTable, match=r"pip install 'pacpredict\[parquet\]'"):
        read_table(tmp_path / "a.parquet")


def test_a_code_of_one_column(write, tmp_path):
    """What means missing in one column is a value in others: in CSV, in Parquet, and in queries of every form."""
    missing = ["age=-9", "?", "a=b"]  # no column is called a
    path = write("a.csv", "age,score,job\n-9,-9,?\n30,2,a=b\n40,3,-9\n")
    table = read_table(path, missing)
    assert table.isna().to_numpy().tolist() == [
        [True, False, True],
        [False, False, True],
        [False, False, False],
    ]
    table = pd.DataFrame({"age": [-9, 30], "score": [-9, 2], "job": ["?", "-9"]})
    table.to_parquet(tmp_path / "a.parquet")
    again = read_table(tmp_path / "a.parquet", missing)
    assert again.isna().to_numpy().tolist() == [[True, False, True], [False, False, False]]
    numbers = pd.DataFrame({"age": [None, 30.0], "score": [-9.0, 2.0]})
    schema = replace(Schema.infer(numbers), missing=("age=-9",))
    for query in (np.array([[-9.0, -9.0]]), [["-9", "-9"]], {"age": [-9], "score": [-9]}):
        assert np.isnan(schema.rows(query).numbers).tolist() == [[True, False]]


def test_the_line_of_a_row(write):
    """Rows are found by the lines on which they end, also behind blank lines and cells of several lines."""
    path = write("a.csv", 'a;b\n\n1;2\n"x\ny";3\n\n4;5\n')
    assert [line_of(path, row) for row in range(3)] == [3, 5, 7]
