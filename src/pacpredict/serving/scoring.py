"""MLflow's scoring protocol: rows with named columns, as one would write them by hand for curl.

| body | rows |
|---|---|
| `{"dataframe_split": {"columns": ["age", ...], "data": [[39, ...], ...]}}` | as pandas splits a frame |
| `{"dataframe_records": [{"age": 39, ...}, ...]}` | one object for each row |
| `{"instances": ...}` | a list of objects, or of lists in the order of the columns |
| `{"inputs": ...}` | an object of columns, or a list as above |
| CSV, with `Content-Type: text/csv` | a line of names first; an empty cell is missing |

Beside these, `"params": {"id": "...", "partial": true}` means what id and parameters mean in the other protocol.
"""

import csv
import io
from collections.abc import Mapping
from typing import Any

import orjson

from pacpredict.curator import Answers, Inquiry
from pacpredict.exceptions import InvalidQuery
from pacpredict.rows.kind import AnyRows
from pacpredict.serving.inputs import Inputs
from pacpredict.serving.labels import Labels, describe_releases
from pacpredict.serving.limits import Limits
from pacpredict.serving.wire import Message, Reply, parse_json, read_flag, read_id, read_object
from pacpredict.show import show
from pacpredict.tables.csv_files import check_only_name

_FORMS = ("dataframe_split", "dataframe_records", "instances", "inputs")


class Scoring:
    def __init__(self, inputs: Inputs, labels: Labels) -> None:
        self._inputs = inputs
        self._labels = labels

    def read(self, body: bytes, headers: Mapping[str, str], limits: Limits) -> Message:
        content_type = headers.get("content-type", "")
        # Whatever does not say that it is CSV is read as JSON: curl says neither.
        if content_type.partition(";")[0].strip().lower() == "text/csv":
            return Message(Inquiry(self._rows_of_csv(body, limits)))
        request = parse_json(body)
        forms = [form for form in _FORMS if form in request]
        if len(forms) != 1:
            raise InvalidQuery(f"the body must have exactly one of {', '.join(_FORMS)}")
        params = read_object(request, "params")
        given = request[forms[0]]
        read_rows = self._rows_of_split if forms == ["dataframe_split"] else self._rows
        rows = read_rows(given, limits)
        return Message(Inquiry(rows, read_id(params.get("id")), partial=read_flag(params, "partial")))

    def write(self, message: Message, answers: Answers) -> Reply:
        reply = {
            "predictions": self._labels.plain(answers),
            "parameters": describe_releases(message.inquiry, answers),
        }
        return Reply(orjson.dumps(reply), {"content-type": "application/json"})

    def _rows(self, given: Any, limits: Limits) -> AnyRows:
        if isinstance(given, dict):
            longest = max((len(column) for column in given.values() if isinstance(column, list)), default=0)
            limits.check_rows(longest, self._inputs.pixel_bytes)
            return self._inputs.rows_from_columns(given)
        if not isinstance(given, list):
            raise InvalidQuery(f"expected a list of rows or an object of columns, got {show(given)}")
        limits.check_rows(len(given), self._inputs.pixel_bytes)
        if given and not isinstance(given[0], list | dict):
            given = [[value] for value in given]  # a table of one column
        return self._inputs.rows(given)

    def _rows_of_split(self, split: Any, limits: Limits) -> AnyRows:
        names = split.get("columns") if isinstance(split, dict) else None
        rows = split.get("data") if isinstance(split, dict) else None
        if not isinstance(names, list) or not isinstance(rows, list):
            raise InvalidQuery("'dataframe_split' needs the lists 'columns' and 'data'")
        limits.check_rows(len(rows), self._inputs.pixel_bytes)
        if names == list(range(len(names))):  # pandas's names for columns that have none
            return self._inputs.rows(rows)
        return self._rows_of_table(names, rows)

    def _rows_of_csv(self, body: bytes, limits: Limits) -> AnyRows:
        try:
            # With a byte order mark or without, and blanks after commas skipped: as files are read.
            lines = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), skipinitialspace=True)
            cells = [line for line in lines if line]
        except UnicodeDecodeError:
            raise InvalidQuery("the CSV is not UTF-8") from None
        except csv.Error as problem:
            raise InvalidQuery(f"the body cannot be read as CSV: {problem}") from None
        if not cells:
            raise InvalidQuery("the CSV is empty")
        limits.check_rows(len(cells) - 1, self._inputs.pixel_bytes)
        _check_commas(cells[0])
        if len(inputs := self._inputs.metadata()) == 1:
            check_only_name(cells[0], inputs[0]["name"])
        return self._rows_of_table(cells[0], [[cell or None for cell in line] for line in cells[1:]])

    def _rows_of_table(self, names: list[Any], rows: list[Any]) -> AnyRows:
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise InvalidQuery("the names of columns must be texts that differ from each other")
        for i, row in enumerate(rows):
            if not isinstance(row, list) or len(row) != len(names):
                raise InvalidQuery(f"row {i} (from 0) must be a list of {len(names)} values")
        return self._inputs.rows_from_columns(
            {name: [row[j] for row in rows] for j, name in enumerate(names)}
        )


def _check_commas(names: list[str]) -> None:
    """Refuse what a spreadsheet separates by semicolons or tabs: all columns would be one, and texts be answered so."""
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise InvalidQuery(f"separate the columns by commas; the first line has one name, {show(names[0])}")
