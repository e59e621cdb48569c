"""Labels for the rows of a CSV file, by the student in this folder: python predict.py queries.csv > labels.csv.

Needs NumPy and the library that the model is of (student.json says which). Nothing is asked of anybody.
"""

import csv
import io
import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))
COLUMNS, CATEGORIES = ABOUT["columns"], ABOUT["feature_categories"]


def means(text: str, category: Any) -> bool:
    """Tell whether a cell names a category; 1 may be written as 1.0."""
    if isinstance(category, str | bool):
        return text == category or text.lower() == str(category).lower() != category
    try:
        return float(text) == category
    except ValueError:
        return False


def number(column: dict[str, Any], text: str) -> float:
    """Return a cell as the number that the model knows it by; NaN where it is missing, or a category never seen."""
    text = text.strip()
    if not text or text in column["missing"]:
        return math.nan
    if column["kind"] == "category":
        found = (code for code, category in enumerate(column["categories"]) if means(text, category))
        return float(next(found, math.nan))
    if column["kind"] == "boolean":
        return {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}.get(text.lower(), math.nan)
    if column["kind"] == "date":
        form = column.get("form")
        moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() / 86_400
    text = text.lstrip("<>=≤≥ ")
    if form := column.get("form"):  # the number 1234.5 as people write it here, such as 1.234,5
        decimal = form[form.index("234") + 3]
        text = "".join(sign for sign in text if sign in f"0123456789+-{decimal}").replace(decimal, ".")
    return float(text)


def cell_of(column: dict[str, Any], row: int, text: str) -> float:
    try:
        return number(column, text)
    except ValueError as problem:
        raise ValueError(
            f"row {row + 1}, column {column['name']}: {text!r} is no {column['kind']}"
        ) from problem


def matrix(rows: list[dict[str, str]]) -> Any:
    """Return the features (n_rows, n_features); a column of text has 64 of them."""
    parts = []
    for column in COLUMNS:
        cells = [row[column["name"]] for row in rows]
        if column["kind"] == "text":
            from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415

            parts.append(HashingVectorizer(n_features=64).transform(cells).toarray())
        else:
            parts.append(np.array([[cell_of(column, i, cell)] for i, cell in enumerate(cells)]))
    return np.hstack(parts)


def expand(features: Any) -> Any:
    """Return quantities, flags of those that are missing, and a column of 0 and 1 for each category."""
    is_code = np.array(CATEGORIES) > 0
    quantities = features[:, ~is_code]
    missing = np.isnan(quantities)
    flags = [(features[:, [j]] == np.arange(CATEGORIES[j])).astype(float) for j in np.flatnonzero(is_code)]
    return np.hstack([np.where(missing, 0.0, quantities), missing.astype(float), *flags])


def predict(rows: list[dict[str, str]]) -> list[Any]:
    features, path = matrix(rows), HOME / ABOUT["model"]
    if ABOUT["format"] == "xgboost":
        import xgboost  # noqa: PLC0415

        booster = xgboost.Booster(model_file=path)
        types = ["c" if n_categories else "q" for n_categories in CATEGORIES]
        scores = booster.predict(xgboost.DMatrix(features, feature_types=types, enable_categorical=True))
        found = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.5).astype(int)
    else:
        import skops.io  # noqa: PLC0415

        model = skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
        found = model.predict(expand(features))
    return [ABOUT["classes"][int(i)] for i in found]


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a file; its separator is what cuts the first line into most cells."""
    content = path.read_bytes().decode("utf-8-sig")
    first = content.partition("\n")[0]
    separator = max(",;\t", key=lambda each: len(next(csv.reader([first], delimiter=each), ())))
    lines = csv.reader(
        io.StringIO(content, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    names = next(lines, [])
    if missing := [column["name"] for column in COLUMNS if column["name"] not in names]:
        raise ValueError(f"it has no column {', '.join(missing)}")
    rows = []
    for cells in filter(None, lines):
        if len(cells) != len(names):
            raise ValueError(f"line {lines.line_num} has {len(cells)} cells, and the first line {len(names)}")
        rows.append(dict(zip(names, cells, strict=True)))
    if not rows:
        raise ValueError("it has no rows")
    return rows


def main(names: list[str]) -> None:
    if len(names) != 1 or names[0].startswith("-"):
        sys.exit("name one file with rows: python predict.py queries.csv")
    try:
        labels = predict(read(Path(names[0])))
    except (OSError, ValueError, csv.Error) as problem:
        sys.exit(f"{names[0]} cannot be used: {problem}")
    csv.writer(sys.stdout, lineterminator="\n").writerows([["label"], *([label] for label in labels)])


if __name__ == "__main__":
    main(sys.argv[1:])
