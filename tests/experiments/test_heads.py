"""Public images and texts are read as they were published, and the experiment runs from end to end."""

import gzip
import hashlib
import io
import json
import sys
import tarfile

import numpy as np
import pytest
from real_data import DATA, real_file

from pacpredict.core.decode import DECODERS
from pacpredict.exceptions import InvalidTable
from pacpredict.experiments import heads, public_files
from pacpredict.experiments.image_data import CIFAR10, CIFAR100, load_cifar
from pacpredict.experiments.text_data import load_ag_news, load_imdb


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A directory for data, and a cache that is empty."""
    monkeypatch.setenv("PACPREDICT_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def write_cifar(home, which, n_classes, n=30):
    """Write files of the official layout; returns the images and labels of the training files."""
    rng = np.random.default_rng(0)
    folder = home / which.folder
    folder.mkdir()
    (folder / which.names).write_text("".join(f"class{i:02d}\n" for i in range(n_classes)) + "\n")
    made = []
    for name in (*which.train, which.test):
        images, labels = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), rng.integers(n_classes, size=n)
        images[:, :, :, 0] //= 1 + labels[:, None, None].astype(np.uint8) % 3  # something to learn
        coarse = [np.full((n, 1), 7, np.uint8)] if which.n_labels == 2 else []
        planes = images.transpose(0, 3, 1, 2).reshape(n, -1)
        rows = np.hstack([*coarse, labels[:, None].astype(np.uint8), planes])
        (folder / name).write_bytes(rows.tobytes())
        made.append((images, labels))
    return made


@pytest.mark.parametrize(("which", "n_classes"), [(CIFAR10, 10), (CIFAR100, 100)])
def test_cifar(home, which, n_classes):
    """Pixels come as rows of red, green and blue, labels by name; CIFAR-100's are of the class, not the superclass."""
    made = write_cifar(home, which, n_classes)
    split = load_cifar(which)
    assert np.array_equal(split.records, np.concatenate([images for images, _ in made[:-1]]))
    assert np.array_equal(split.asked, made[-1][0])
    assert split.truth.tolist() == [f"class{label:02d}" for label in made[-1][1]]
    assert len(split.labels) == 30 * len(which.train)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), "cut off"),
        (lambda file: file.write_bytes(b""), "cut off"),
        (lambda file: file.unlink(), "there is no file"),
        (lambda file: file.write_bytes(b"\xff" * 3074), "has a label 255"),
    ],
)
def test_damaged_cifar(home, spoil, said):
    """A file that is cut off, missing, or has labels that there are not is named."""
    write_cifar(home, CIFAR100, 100)
    spoil(home / "cifar-100-binary" / "test.bin")
    with pytest.raises(InvalidTable, match=rf"test\.bin.*{said}|{said}.*test\.bin"):
        load_cifar(CIFAR100)


def test_imdb_as_folders_and_tables(home):
    """The published folders and tables made of them are the same reviews."""
    reviews = {"neg": ["dull\n<br />", "bad"], "pos": ["good é", "fine", "warm"]}
    for part in ("train", "test"):
        for kind, texts in reviews.items():
            (home / "aclImdb" / part / kind).mkdir(parents=True)
            for i, text in enumerate(texts):
                (home / "aclImdb" / part / kind / f"{i}_7.txt").write_text(text, encoding="utf-8")
    split = load_imdb()
    assert split.records == split.asked == [*reviews["neg"], *reviews["pos"]]
    assert split.labels.tolist() == ["neg"] * 2 + ["pos"] * 3
    (home / "imdb").mkdir()
    rows = [f'{int(kind == "pos")},0,7,"{text}"\n' for kind, texts in reviews.items() for text in texts]
    for part in ("train", "test"):
        with gzip.open(home / "imdb" / f"{part}.csv.gz", "wt") as file:
            file.write("label,id,rating,text\n" + "".join(rows))
    assert load_imdb().records == split.records
    assert load_imdb().labels.tolist() == split.labels.tolist()


def test_ag_news(home):
    """Title and description are one text, and the whole training set comes before a part of it."""
    (home / "ag_news").mkdir()
    (home / "ag_news" / "test.csv").write_text('"3","Title, here","What it says"\n"1","Other","None"\n')
    for name, core in (("train_subset", 1), ("ag_news_more", 0)):
        with gzip.open(home / "ag_news" / f"{name}.csv.gz", "wt") as file:
            file.write(f"class,text,title,description,source,random_core\n2,{name} text,,,x,{core}\n")
    split = load_ag_news()
    assert split.asked == ["Title, here What it says", "Other None"]
    assert split.truth.tolist() == ["Business", "World"]
    assert (split.records, split.labels.tolist()) == (["train_subset text"], ["Sports"])
    (home / "ag_news" / "train.csv").write_text('"4","All","of it"\n')
    assert load_ag_news().records == ["All of it"]


def test_what_is_not_here_is_fetched_once(home, tmp_path, monkeypatch):
    """From the published archive, whose MD5 must be the known one; then it is in the cache."""
    write_cifar(tmp_path, CIFAR10, 10, n=3)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        archive.add(tmp_path / CIFAR10.folder, CIFAR10.folder)
    sent, asked = stream.getvalue(), []

    def urlopen(url, timeout):
        asked.append(url)
        return io.BytesIO(sent)

    monkeypatch.setattr(public_files.urllib.request, "urlopen", urlopen)
    with pytest.raises(InvalidTable, match="MD5 differs"):
        load_cifar(CIFAR10)
    known = CIFAR10._replace(md5=hashlib.md5(sent, usedforsecurity=False).hexdigest())
    assert len(load_cifar(known).records) == 15
    assert len(load_cifar(known).records) == 15
    assert asked == ["https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"] * 2


def test_no_network(home, monkeypatch):
    """The error says what to do."""

    def urlopen(url, timeout):
        raise OSError("no network")

    monkeypatch.setattr(public_files.urllib.request, "urlopen", urlopen)
    with pytest.raises(InvalidTable, match="PACPREDICT_DATA"):
        load_imdb()


def test_the_experiment(home, tmp_path, monkeypatch, capsys):
    """From files to figures, by every decoder that there is."""
    (home / "imdb").mkdir()
    rng = np.random.default_rng(0)
    words = np.array([["poor", "dull", "cold", "flat"], ["fine", "warm", "deep", "rich"]])
    for part in ("train", "test"):
        labels = rng.integers(2, size=60)
        texts = [" ".join(words[label if rng.random() < 0.9 else 1 - label]) for label in labels]
        with gzip.open(home / "imdb" / f"{part}.csv.gz", "wt") as file:
            file.write(
                "label,text\n"
                + "".join(f"{a},{b} {i}\n" for i, (a, b) in enumerate(zip(labels, texts, strict=True)))
            )
    few = ["--features", "tfidf", "--models", "8", "--trials", "20", "--jobs", "1"]
    arguments = ["heads", "imdb", "--artifact", str(tmp_path / "imdb.pac"), *few]
    monkeypatch.setattr(sys, "argv", [*arguments, "--json"])
    heads.main()
    found = json.loads(capsys.readouterr().out)
    assert [row["noise"] for row in found["rows"]] == list(heads.BUDGETS)
    assert [row["published"] for row in found["rows"]] == [85.13, 84.46, 69.32, 69.10]
    assert all(50 < row[decoder]["mean"] <= 100 for row in found["rows"] for decoder in DECODERS)
    monkeypatch.setattr(sys, "argv", arguments)
    heads.main()
    table = capsys.readouterr().out
    assert "one model, all records" in table
    assert all(decoder in table for decoder in DECODERS)


def test_real_texts(monkeypatch):
    """The real files are read: their sizes, labels and first words."""
    real_file("imdb", "train.csv.gz")
    monkeypatch.setenv("PACPREDICT_DATA", str(DATA))
    split = load_imdb()
    assert (len(split.records), len(split.asked)) == (25_000, 25_000)
    assert (split.labels == "pos").sum() == (split.truth == "pos").sum() == 12_500
    real_file("ag_news", "test.csv")
    news = load_ag_news()
    assert len(news.asked) == 7_600
    assert len(set(news.records)) == len(news.records) > 50_000
    assert not set(news.records) & set(news.asked)
