"""Records in files: folders of images, arrays, and tables."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from pacpredict.exceptions import InvalidQuery, InvalidTable
from pacpredict.rows.folders import left_out
from pacpredict.rows.images import ImageSchema
from pacpredict.rows.read import read_records

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "pets"
    for i, pixels in enumerate(PIXELS):
        own = home / ("cat" if i < 4 else "dog")
        own.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(own / f"{i}.png")
    (home / "cat" / "notes.txt").write_text("not an image")
    return home


def test_folders_of_classes(folder):
    """Each folder is a class; images come in the order of their names, other files do not count."""
    records = read_records(folder)
    assert list(records["label"]) == ["cat"] * 4 + ["dog"] * 2
    assert np.array_equal(ImageSchema.learn(records)[1].pixels, PIXELS)


def test_a_folder_of_images(folder):
    """Without folders of classes there are images and their names only, for queries."""
    records = read_records(folder / "cat")
    assert records.keys() == {"image", "file"}
    assert records["file"] == [f"{i}.png" for i in range(4)]
    assert np.array_equal(ImageSchema(4, 5).rows(records).pixels, PIXELS[:4])


def test_files_of_the_system_are_no_records(folder):
    """What macOS and Windows leave behind is neither an image nor a class, and needs no word."""
    for name in ("cat/._0.png", "cat/.DS_Store", "cat/Thumbs.db", ".DS_Store", "dog/desktop.ini"):
        (folder / name).write_bytes(b"x")
    (folder / ".thumbnails").mkdir()
    (folder / ".thumbnails" / "0.png").write_bytes(b"x")
    assert np.array_equal(ImageSchema.learn(read_records(folder))[1].pixels, PIXELS)
    assert left_out(folder / "dog") == []


def test_files_that_are_left_out_are_named(folder):
    """Images in formats that are not read, and links to folders, are not passed over in silence."""
    (folder / "dog" / "scan.TIFF").write_bytes(b"x")
    (folder / "dog" / "more").symlink_to(folder / "dog")
    (warning,) = left_out(folder)
    assert "3 files are left out" in warning
    assert all(name in warning for name in ("'cat/notes.txt'", "'dog/more'", "'dog/scan.TIFF'"))
    assert len(read_records(folder)["image"]) == 6


def test_folders_within_classes(folder):
    """Images may lie in folders within a class, such as one for each person; `folder` names these."""
    for number, name in ((0, "P1"), (1, "P2"), (5, "P1")):
        own = folder / ("cat" if number < 4 else "dog")
        (own / name / "2024").mkdir(parents=True)
        (own / f"{number}.png").rename(own / name / "2024" / f"{number}.png")
    records = read_records(folder)
    assert list(zip(records["file"], records["label"], records["folder"], strict=True)) == [
        ("cat/2.png", "cat", None),
        ("cat/3.png", "cat", None),
        ("cat/P1/2024/0.png", "cat", "P1"),
        ("cat/P2/2024/1.png", "cat", "P2"),
        ("dog/4.png", "dog", None),
        ("dog/P1/2024/5.png", "dog", "P1"),
    ]


def test_a_damaged_file_is_named(folder):
    """Among many images of a folder the one that cannot be read is named, in training data and in queries."""
    whole = (folder / "dog" / "5.png").read_bytes()
    (folder / "dog" / "5.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidTable, match=r"row 5 \(from 0\), file 'dog/5.png': .* damaged"):
        ImageSchema.learn(read_records(folder))
    with pytest.raises(InvalidQuery, match=r"row 1 \(from 0\), file '5.png': .* damaged"):
        ImageSchema(4, 5).rows(read_records(folder / "dog"))


def test_all_that_cannot_be_used_is_named_at_once(folder):
    """Whoever mends a folder learns of all that is wrong with it in one go, and of many how many there are."""
    for name in ("cat/0.png", "dog/5.png"):
        (folder / name).write_bytes(b"x")
    Image.fromarray(PIXELS[0][:3]).save(folder / "cat" / "2.png")
    with pytest.raises(InvalidTable) as refusal:
        ImageSchema.learn(read_records(folder))
    assert [f"file '{name}'" in str(refusal.value) for name in ("cat/0.png", "cat/2.png", "dog/5.png")] == [
        True
    ] * 3
    assert "3 x 5 pixels, expected 4 x 5 (height x width): scale it first" in str(refusal.value)
    assert "more of" not in str(refusal.value)
    with pytest.raises(InvalidQuery, match=r"row 9 .*; and 90 more of 101 rows$") as refusal:
        ImageSchema(4, 5).rows([b"x"] * 100 + [PIXELS[0]])
    assert refusal.value.row == 0


def test_wrong_folders(folder, tmp_path):
    """A folder that is not there, an empty one, and an image that is in no class, are named."""
    with pytest.raises(InvalidTable, match="there is no file or folder"):
        read_records(tmp_path / "nowhere")
    (folder / "emu").mkdir()
    with pytest.raises(InvalidTable, match="emu has no images"):
        read_records(folder)
    (folder / "emu").rmdir()
    (folder / "loose.png").write_bytes(b"")
    with pytest.raises(InvalidTable, match=r"loose.png is in no folder of a class"):
        read_records(folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidTable, match="has no images"):
        read_records(tmp_path / "empty")


def test_arrays(tmp_path):
    """npz files have named arrays, npy files one; nothing is unpickled."""
    np.savez(tmp_path / "pets.npz", image=PIXELS, label=np.arange(6))
    assert np.array_equal(read_records(tmp_path / "pets.npz")["label"], np.arange(6))
    np.save(tmp_path / "pets.npy", PIXELS)
    assert np.array_equal(ImageSchema(4, 5).rows(read_records(tmp_path / "pets.npy")).pixels, PIXELS)
    np.save(tmp_path / "code.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InvalidTable, match="plain arrays"):
        read_records(tmp_path / "code.npy")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "pets.npz").read_bytes()[:100])
    with pytest.raises(InvalidTable, match="plain arrays"):
        read_records(tmp_path / "cut.npz")
    with pytest.raises(InvalidTable, match="there is no file"):
        read_records(tmp_path / "absent.npz")


def test_images_in_parquet(folder, tmp_path):
    """Columns of bytes, and of the structures that public image data sets have, are images."""
    files = [path.read_bytes() for path in sorted(folder.rglob("*.png"))]
    cells = [{"bytes": file, "path": "x.png"} for file in files]
    for name, column in (("bytes", files), ("cells", cells)):
        pd.DataFrame({"image": column, "label": range(6)}).to_parquet(tmp_path / f"{name}.parquet")
        records = read_records(tmp_path / f"{name}.parquet")
        assert np.array_equal(ImageSchema.learn(records)[1].pixels, PIXELS)
