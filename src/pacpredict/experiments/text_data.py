"""IMDb reviews (Maas et al., 2011) and AG News (Zhang et al., 2015)."""

from pathlib import Path

import numpy as np
import pandas as pd

from pacpredict.experiments.image_data import Split
from pacpredict.experiments.public_files import fetch, find

_IMDB = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz", "7c2ac02c03563afcf9b574c7e56c153a"
_AG_NEWS = "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv"
_AG_NEWS_MD5 = {"train": "b1a00f826fdfbd249f79597b59e1dc12", "test": "d52ea96a97a2d943681189a97654912d"}
_SECTIONS = np.array(["World", "Sports", "Business", "Sci/Tech"])


def load_imdb() -> Split:
    """Return reviews and whether they are positive, from tables with `text` and `label` or from published folders."""
    home = find("imdb", "aclImdb") or fetch(*_IMDB, "aclImdb")
    (records, labels), (asked, truth) = (_imdb(home, part) for part in ("train", "test"))
    return Split(records, labels, asked, truth)


def _imdb(home: Path, part: str) -> tuple[list[str], np.ndarray]:
    if (table := home / f"{part}.csv.gz").exists():
        found = pd.read_csv(table)
        return found["text"].tolist(), np.array(["neg", "pos"])[found["label"]]
    kinds = {kind: sorted((home / part / kind).glob("*.txt")) for kind in ("neg", "pos")}
    texts = [file.read_text(encoding="utf-8") for files in kinds.values() for file in files]
    return texts, np.repeat(list(kinds), [len(files) for files in kinds.values()])


def load_ag_news() -> Split:
    """Return news and their sections; where the training set is not whole, what there is of a random part of it."""
    (records, labels), (asked, truth) = _news_to_train_on(), _news("test")
    return Split(records, labels, asked, truth)


def _news(part: str) -> tuple[list[str], np.ndarray]:
    path = find(f"ag_news/{part}.csv")
    path = path or fetch(f"{_AG_NEWS}/{part}.csv", _AG_NEWS_MD5[part], f"ag_news/{part}.csv")
    table = pd.read_csv(path, names=["class", "title", "description"], keep_default_na=False)
    return (table["title"] + " " + table["description"]).tolist(), _SECTIONS[table["class"] - 1]


def _news_to_train_on() -> tuple[list[str], np.ndarray]:
    subset, more = find("ag_news/train_subset.csv.gz"), find("ag_news/ag_news_more.csv.gz")
    if find("ag_news/train.csv") is not None or subset is None or more is None:
        return _news("train")
    table = pd.concat([pd.read_csv(path, keep_default_na=False) for path in (subset, more)])
    table = table[table["random_core"].astype(int) == 1].drop_duplicates("text")
    return table["text"].tolist(), _SECTIONS[table["class"].astype(int) - 1]
