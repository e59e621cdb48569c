"""The paper's tables, read as they were published.

Files are looked for in the directory that PACPREDICT_DATA names (in `adult/` and `bank/`), and otherwise fetched once
from the UCI repository into the user's cache. Either way their SHA-256 must be the known one.
"""

import hashlib
import io
import os
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from pacpredict.exceptions import InvalidTable
from pacpredict.files import user_cache, write_whole

_UCI = "https://archive.ics.uci.edu/static/public"


class _File(NamedTuple):
    name: str  # below the data directory
    sha256: str
    url: str
    members: tuple[str, ...]  # the way into archives


_ADULT = tuple(
    _File(f"adult/{name}", sha256, f"{_UCI}/2/adult.zip", (name,))
    for name, sha256 in (
        ("adult.data", "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
        ("adult.test", "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
    )
)
_BANK = _File(
    "bank/bank-additional-full.csv",
    "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    f"{_UCI}/222/bank+marketing.zip",
    ("bank-additional.zip", "bank-additional/bank-additional-full.csv"),
)
_ADULT_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *(
        "relationship",
        "race",
        "sex",
        "capital-gain",
        "capital-loss",
        "hours-per-week",
        "native-country",
        "income",
    ),
)


class Dataset(NamedTuple):
    load: Callable[[], pd.DataFrame]
    target: str


def load_census() -> pd.DataFrame:
    """Census income: both published files, 48,842 records with 14 features."""
    parts = []
    for file, comments in zip(_ADULT, (0, 1), strict=True):  # the second begins with a comment
        parts.append(
            pd.read_csv(
                io.BytesIO(_read(file)),
                names=_ADULT_COLUMNS,
                skiprows=comments,
                skipinitialspace=True,
                keep_default_na=False,
                na_values=["?"],
            )
        )
    table = pd.concat(parts, ignore_index=True)
    table["income"] = table["income"].str.rstrip(".")
    return _with_categories(table, "income")


def load_bank() -> pd.DataFrame:
    """Bank marketing: 41,188 records with 20 features."""
    table = pd.read_csv(io.BytesIO(_read(_BANK)), sep=";", keep_default_na=False)
    return _with_categories(table, "y")


DATASETS = {"census": Dataset(load_census, "income"), "bank": Dataset(load_bank, "y")}


def _with_categories(table: pd.DataFrame, target: str) -> pd.DataFrame:
    """Declare all categories that occur, so that a part of the table knows those of the other parts."""
    texts = [name for name in table if name != target and not pd.api.types.is_numeric_dtype(table[name])]
    return table.astype(dict.fromkeys(texts, "category"))


def _read(file: _File) -> bytes:
    given = os.environ.get("PACPREDICT_DATA")
    path = (Path(given) if given else user_cache()) / file.name
    if not path.exists():
        if given:
            raise InvalidTable(f"PACPREDICT_DATA has no {file.name}; unset it to fetch the file from UCI")
        _fetch(file, path)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise InvalidTable(
            f"{path} is not the published file: its SHA-256 differs; remove it to fetch it again"
        )
    return data


def _fetch(file: _File, path: Path) -> None:
    try:
        with urllib.request.urlopen(file.url, timeout=60) as reply:  # noqa: S310  # https, from the constants above
            data = reply.read()
        for member in file.members:
            data = zipfile.ZipFile(io.BytesIO(data)).read(member)
    except (OSError, KeyError, zipfile.BadZipFile) as problem:
        raise InvalidTable(
            f"{file.name} could not be fetched from {file.url} ({problem}); put it into a directory and name that in "
            "PACPREDICT_DATA"
        ) from problem
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)
