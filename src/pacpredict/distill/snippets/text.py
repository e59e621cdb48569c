"""Labels for texts, by the student in this folder: python predict.py texts.csv > labels.csv.

A .csv, .tsv or .tab file has texts in the column that student.json names, or in its only one; any other file has one
on each line. Columns are separated by commas, semicolons or tabs, whichever cuts the first line into most.
Needs NumPy and scikit-learn, ONNX Runtime and tokenizers, or transformers (student.json says which). Nothing is
asked of anybody.
"""

import csv
import io
import json
import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))
AT_ONCE = 32  # texts that a network reads together
TABLES = (".csv", ".tsv", ".tab")
PACKAGES = {"sklearn": "scikit-learn"}  # that have another name than what is imported


def canonical(text: str) -> str:
    """Return a text as training had it, however it is spelt in Unicode."""
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").strip()


def read(path: Path) -> list[str]:
    """Return the texts of a file."""
    content = path.read_bytes().decode("utf-8-sig")
    if path.suffix.lower() in TABLES:
        return column_of(content)
    lines = content.replace("\r\n", "\n").split("\n")
    if lines[0].strip() == ABOUT["column"]:
        raise ValueError(f"it begins with the name of a column, so call it {path.stem}.csv")
    return lines[:-1] if lines[-1] == "" else lines


def column_of(content: str) -> list[str]:
    """Return the texts of a table."""
    names, *rows = cells_of(content) or [[]]
    column = names[0] if len(names) == 1 else ABOUT["column"]
    if column not in names:
        raise ValueError(f"it has no column {column!r}, but {', '.join(names)}")
    if names.count(column) > 1:
        raise ValueError(f"it has more than one column {column!r}")
    return [row[names.index(column)] for row in rows]


def cells_of(content: str) -> list[list[str]]:
    """Return a table, names first; its separator is what cuts the first line into most cells."""
    first = content.partition("\n")[0]
    separator = max(",;\t", key=lambda each: len(next(csv.reader([first], delimiter=each), ())))
    lines = csv.reader(
        io.StringIO(content, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    rows: list[list[str]] = []
    for cells in filter(None, lines):
        if rows and len(cells) != len(rows[0]):
            raise ValueError(
                f"line {lines.line_num} has {len(cells)} cells, and the first line {len(rows[0])}"
            )
        rows.append(cells)
    return rows


def words(texts: list[str]) -> Any:
    """Return hashed counts of words and pairs of words, as rows of length 1, rounded to 15 bits as in training."""
    from sklearn.feature_extraction.text import HashingVectorizer  # noqa: PLC0415
    from sklearn.preprocessing import normalize  # noqa: PLC0415

    counts = HashingVectorizer(n_features=2**18, ngram_range=(1, 2), norm=None).transform(texts)
    counts.data = np.sign(counts.data) * (1.0 + np.log(np.maximum(np.abs(counts.data), 1.0)))
    counts = normalize(counts)
    exponents = np.frexp(abs(counts).max(axis=1).toarray().ravel())[1]
    units = np.repeat(np.ldexp(1.0, exponents - 15), np.diff(counts.indptr))
    counts.data = np.rint(counts.data / units) * units
    return counts


@cache
def extractor(i: int) -> tuple[Any, Any]:
    """Return a tokenizer with what makes numbers of tokens: vectors, or a model."""
    from tokenizers import Tokenizer  # noqa: PLC0415

    folder, about = HOME / "extractors" / str(i), ABOUT["features"][i]
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if about["kind"] == "static-texts":
        from safetensors.numpy import load_file  # noqa: PLC0415

        (vectors,) = load_file(folder / "model.safetensors").values()
        return tokenizer, vectors
    import onnxruntime  # noqa: PLC0415

    tokenizer.enable_truncation(about["tokens"])
    return tokenizer, onnxruntime.InferenceSession(folder / "model.onnx")


def embedded(text: str) -> Any:
    """Return what the public extractors make of a text, rounded to 15 bits as in training."""
    parts = []
    for i, about in enumerate(ABOUT["features"]):
        tokenizer, model = extractor(i)
        if about["kind"] == "static-texts":
            unknown = tokenizer.token_to_id("[UNK]")
            ids = [
                token for token in tokenizer.encode(text, add_special_tokens=False).ids if token != unknown
            ]
            found = model[ids].astype(np.float32).mean(axis=0) if ids else np.zeros(model.shape[1])
        else:
            tokens = tokenizer.encode(text)
            known = {
                "input_ids": tokens.ids,
                "attention_mask": tokens.attention_mask,
                "token_type_ids": tokens.type_ids,
            }
            given = {one.name: np.array([known[one.name]], np.int64) for one in model.get_inputs()}
            found = np.asarray(model.run(None, given)[0])[0]
            if found.ndim == 2:
                found = found[0] if about["pooling"] == "first" else found.mean(axis=0)
        length = np.linalg.norm(found)
        parts.append(found / length if length > 0 else found)
    whole = np.concatenate(parts)
    unit = np.ldexp(1.0, int(np.frexp(np.abs(whole).max())[1]) - 15)
    return np.rint(whole / unit) * unit


def outputs(texts: list[str]) -> Any:
    """Return the scores of texts by a network of transformers."""
    import torch  # noqa: PLC0415
    from transformers import AutoModelForSequenceClassification, AutoTokenizer  # noqa: PLC0415

    tokenizer = AutoTokenizer.from_pretrained(HOME / ABOUT["model"])
    model = AutoModelForSequenceClassification.from_pretrained(HOME / ABOUT["model"]).eval()
    parts = []
    for start in range(0, len(texts), AT_ONCE):
        given = tokenizer(texts[start : start + AT_ONCE], padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            parts.append(model(**given).logits.numpy())
    return np.concatenate(parts)


def predict(texts: list[str]) -> list[Any]:
    texts = [canonical(text) for text in texts]
    if ABOUT["format"] == "heads":
        is_words = ABOUT["features"][0]["kind"] == "words"
        features = words(texts) if is_words else np.stack([embedded(text) for text in texts])
        with np.load(HOME / ABOUT["model"], allow_pickle=False) as head:
            scores = features @ head["weights"].astype(float) + head["biases"]
    else:
        scores = outputs(texts)
    found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    return [ABOUT["classes"][int(i)] for i in found]


def main(names: list[str]) -> None:
    if len(names) != 1 or names[0].startswith("-"):
        sys.exit("name one file with texts: python predict.py texts.csv")
    try:
        texts = read(Path(names[0]))
    except (OSError, ValueError, csv.Error) as problem:
        sys.exit(f"{names[0]} cannot be used: {problem}")
    if not texts:
        sys.exit(f"{names[0]} cannot be used: it has no texts")
    if empty := [i for i, text in enumerate(texts) if not canonical(text)]:
        sys.exit(f"{names[0]} cannot be used: text {empty[0] + 1} is empty")
    try:
        labels = predict(texts)
    except ModuleNotFoundError as problem:
        library = str(problem.name).partition(".")[0]
        sys.exit(f"this student needs {library}: pip install {PACKAGES.get(library, library)}")
    csv.writer(sys.stdout, lineterminator="\n").writerows([["label"], *([label] for label in labels)])


if __name__ == "__main__":
    main(sys.argv[1:])
