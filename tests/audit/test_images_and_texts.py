"""A whole audit of images and of texts: by the same attacks, with words for what they are."""

import csv
import json

import numpy as np
import pytest
from PIL import Image

from pacpredict.cli import main

SHORT = [
    "--trials",
    "20",
    "--queries",
    "50",
    "--targets",
    "1",
    "--runs",
    "30",
    "--sessions",
    "4",
    "--retrain",
    "1",
    "--jobs",
    "1",
]
FIT = ["--models", "8", "--jobs", "1", "--seed", "1", "--feature-cache", "none"]
WORDS = ("warm", "dull", "clever", "loud", "funny", "long", "lovely", "empty")


def write_texts(folder):
    """Write texts whose labels hardly follow from their words, so that models differ; returns how to fit them."""
    rng = np.random.default_rng(0)
    with (folder / "texts.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("label", "text"))
        table.writerows(
            ("good" if rng.random() < 0.5 else "bad", " ".join(rng.choice(WORDS, 6))) for _ in range(60)
        )
    return [str(folder / "texts.csv"), "--target", "label", "--learner", "heads", "--features", "tfidf"]


def write_images(folder):
    """Write images that are noise, in two folders."""
    pytest.importorskip("onnxruntime", reason="features of images need the extra [heads]")
    from small_extractors import averages  # noqa: PLC0415  # needs onnx

    rng = np.random.default_rng(0)
    for i in range(60):
        home = folder / "skies" / ("day" if i % 2 else "night")
        home.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(256, size=(16, 16, 3), dtype=np.uint8)).save(home / f"{i}.png")
    return [str(folder / "skies"), "--features", str(averages(folder / "averages.onnx"))]


@pytest.mark.parametrize(("write", "title"), [(write_texts, "tfidf"), (write_images, "averages")])
def test_images_and_texts_are_audited_as_tables_are(write, title, tmp_path, capsys):
    """Searched for, trained again without and attacked; the page says on which features the models stand."""
    path, page = tmp_path / "a.pac", tmp_path / "audit.html"
    assert main(["fit", *write(tmp_path), *FIT, "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["audit", str(path), *SHORT, "--json", "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["holds"] is True
    assert {one["adversary"] for one in found["duels"]} >= {"targeted", "search"}
    assert any("by training without them" in name for name in found["presences"])
    assert f"8 x heads on {title}" in page.read_text()
