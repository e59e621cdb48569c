"""Labels for the rows of a CSV file, by the student in this folder: python predict.py queries.csv > labels.csv.

Needs NumPy and the library that the model is of (student.json says which), for a column of text also scikit-learn.
Nothing is asked of anybody.
"""

import csv
import io
import json
import math
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))
COLUMNS, CATEGORIES = ABOUT["columns"], ABOUT["feature_categories"]
PACKAGES = {"sklearn": "scikit-learn"}  # that have another name than what is imported


# Limits such as <0.5, and numbers as people write them: the example 1234.5 says how, such as 1.234,5 or € 1 234.5.
LIMIT = re.compile(r"\s*(?:<=|>=|[<>≤≥])\s*")
UNIT = r"[^\d+\-.,'<>=≤≥]*"
EXAMPLE = re.compile(rf"({UNIT}?)1([,. ']?)234([.,])5({UNIT})")
SAME = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-"})


def plain(text: str) -> float:
    """Return a number as programs write it: not 1_000, "nan", "inf" and digits of other scripts, which float takes."""
    found = float(text) if text.isascii() and "_" not in text else math.nan
    if not math.isfinite(found):
        raise ValueError(text)
    return found


def written(text: str, example: str) -> float:
    """Return a number as people write it, if it fits the example; thousands and the unit may be left out."""
    ((before, group, decimal, after),) = EXAMPLE.findall(example.translate(SAME).strip())
    thousands = rf"[0-9]{{1,3}}(?:{re.escape(group)}[0-9]{{3}})+|" if group else ""
    pattern = (
        rf"([+-]?)\s*(?:{re.escape(before.strip())})?\s*([+-]?)"
        rf"({thousands}[0-9]+|(?=\{decimal}))(?:\{decimal}([0-9]+))?\s*(?:{re.escape(after.strip())})?"
    )
    found = re.fullmatch(pattern, text.strip().translate(SAME))
    if found is None or (found[1] and found[2]):
        raise ValueError(text)
    return plain(f"{found[1] or found[2]}{re.sub('[^0-9]', '', found[3]) or 0}.{found[4] or 0}")


def place(values: list[Any], text: str) -> float | None:
    """Return where a value stands among others, however it is spelt: 1 may be 1.0, and True may be true or 1."""
    spellings: list[Any] = [text]
    if (truth := {"true": True, "false": False}.get(text.strip().lower())) is not None:
        spellings += [truth, str(truth)]
    else:
        with suppress(ValueError):
            spellings += [number := plain(text), str(int(number)) if number.is_integer() else repr(number)]
    return next((float(values.index(spelt)) for spelt in spellings if spelt in values), None)


def is_missing(column: dict[str, Any], text: str) -> bool:
    return not text or text in column["missing"]


def number(column: dict[str, Any], text: str) -> float:
    """Return a cell as the number that the model knows it by: NaN if missing, the last code for other categories."""
    if is_missing(column, text):
        return math.nan
    form = column["form"]
    if column["kind"] == "category":
        code = place(column["categories"], text)
        return len(column["categories"]) if code is None else code
    if column["kind"] == "boolean":
        if (code := place([False, True], text)) is None:
            raise ValueError(text)
        return code
    if column["kind"] == "date":
        text = text.strip()
        moment = datetime.strptime(text, form) if form else datetime.fromisoformat(text)  # noqa: DTZ007
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(days=1)
    if sign := LIMIT.match(text):
        text = text[sign.end() :]
    return written(text, form) if form else plain(text)


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

            texts = ["" if is_missing(column, cell) else cell for cell in cells]
            parts.append(HashingVectorizer(n_features=64).transform(texts).toarray())
        else:
            parts.append(np.array([[cell_of(column, i, cell)] for i, cell in enumerate(cells)]))
    return np.hstack(parts)


def expand(features: Any) -> Any:
    """Return quantities, and a column of 0 and 1 for each category."""
    is_code = np.array(CATEGORIES) > 0
    flags = [(features[:, [j]] == np.arange(CATEGORIES[j])).astype(float) for j in np.flatnonzero(is_code)]
    return np.hstack([features[:, ~is_code], *flags])


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
    if twice := [column["name"] for column in COLUMNS if names.count(column["name"]) > 1]:
        raise ValueError(f"it has more than one column {', '.join(twice)}")
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
    except ModuleNotFoundError as problem:
        library = str(problem.name).partition(".")[0]
        sys.exit(f"this student needs {library}: pip install {PACKAGES.get(library, library)}")
    csv.writer(sys.stdout, lineterminator="\n").writerows([["label"], *([label] for label in labels)])


if __name__ == "__main__":
    main(sys.argv[1:])
