"""Labels for images, by the student in this folder: python predict.py one.png folder/ > labels.csv.

Needs NumPy, Pillow, and ONNX Runtime or PyTorch (student.json says which). Nothing is asked of anybody.
"""

import csv
import io
import json
import sys
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
AT_ONCE = 64  # images that a network looks at together
# What the deployment takes, whose answers the student learned.
FORMATS, PNG = ("PNG", "JPEG", "WEBP", "BMP"), b"\x89PNG\r\n\x1a\n"
MODES = ("1", "L", "LA", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
LONGEST_SIDE, MOST_PIXELS = 16_384, 2**25
SCALING = "stretch, bicubic"


def pixels(path: str | Path) -> Any:
    """Return (height, width, 3) of bytes, read and scaled as those that the student was trained with, or refuse."""
    data, wanted = Path(path).read_bytes(), (ABOUT["width"], ABOUT["height"])
    if data.startswith(PNG):
        check_png(data)
    with Image.open(io.BytesIO(data), formats=FORMATS) as image:
        check(image, wanted)
        coloured = (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")
    # The width, then the height, as the deployment scales: Pillow's own order depends on its version.
    for step in ((wanted[0], coloured.height), wanted):
        if coloured.size != step:
            coloured = coloured.resize(step, Image.Resampling.BICUBIC, reducing_gap=None)
    return np.asarray(coloured)


def check(image: Any, wanted: tuple[int, int]) -> None:
    """Refuse what the deployment refuses, before a pixel is decoded."""
    width, height = image.size
    if ABOUT.get("scaling", SCALING) != SCALING:
        raise ValueError(f"this program cannot scale it by {ABOUT['scaling']}")
    if "scaling" not in ABOUT and (width, height) != wanted:
        raise ValueError(f"it has {height} x {width} pixels, not {wanted[1]} x {wanted[0]}")
    if max(width, height) > LONGEST_SIDE or width * height > MOST_PIXELS:
        raise ValueError(f"it has {height} x {width} pixels, which are too many")
    is_several = getattr(image, "n_frames", 1) > 1
    if is_several and image.format != "MPO":  # which is a JPEG with a preview behind it
        raise ValueError("it is an animation")
    if image.mode not in MODES:
        raise ValueError("it has more than 8 bits per channel")


def check_png(data: bytes) -> None:
    """Look for what Pillow passes over: wrong checksums, a missing end, more than eight bits, animations."""
    at, kind, kinds = len(PNG), b"", []
    while kind != b"IEND":
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        body, checksum, at = data[at + 4 : end], data[end : end + 4], end + 4
        kind = body[:4]
        if len(checksum) < 4 or zlib.crc32(body) != int.from_bytes(checksum, "big"):
            raise ValueError("it is damaged")
        if kind == b"IHDR" and body[12] > 8:
            raise ValueError("it has more than 8 bits per channel")
        kinds.append(kind)
    if kinds[0] != b"IHDR" or kinds.count(b"IHDR") > 1:
        raise ValueError("it is damaged")
    if b"acTL" in kinds:
        raise ValueError("it is an animation")


@cache
def extractors() -> list[Any]:
    import onnxruntime  # noqa: PLC0415

    folders = (HOME / "extractors" / str(i) for i in range(len(ABOUT["features"])))
    return [onnxruntime.InferenceSession(folder / "model.onnx") for folder in folders]


def features(image: Any) -> Any:
    """Return what the public extractors see in an image, rounded to 15 bits as in training."""
    parts = []
    for session, about in zip(extractors(), ABOUT["features"], strict=True):
        taken = session.get_inputs()[0]
        is_first = taken.shape[1] == 3
        declared = taken.shape[2:] if is_first else taken.shape[1:3]
        size = [about["size"]] * 2 if about["size"] else [
            wanted if isinstance(wanted, int) else own for wanted, own in zip(declared, image.shape, strict=False)
        ]  # fmt: skip
        given = image
        if list(image.shape[:2]) != size:
            given = np.asarray(Image.fromarray(image).resize((size[1], size[0]), Image.Resampling.BICUBIC))
        given = given[:, :, ::-1] if about["is_bgr"] else given
        if taken.type == "tensor(float)":
            given = (given - np.array(about["mean"], np.float32)) / np.array(about["scale"], np.float32)
        given = given.transpose(2, 0, 1) if is_first else given
        outputs = session.run(None, {taken.name: np.ascontiguousarray(given[None])})
        parts.append(np.asarray(outputs[0], np.float32).reshape(-1))
    whole = np.concatenate(parts)
    unit = np.ldexp(1.0, int(np.frexp(np.abs(whole).max())[1]) - 15)
    return np.rint(whole / unit) * unit


@cache
def network() -> Any:
    import torch  # noqa: PLC0415

    return torch.export.load(HOME / ABOUT["model"]).module()


def outputs(images: list[Any]) -> Any:
    """Return the scores of some images by a network."""
    import torch  # noqa: PLC0415

    given = torch.from_numpy(np.stack(images)).float() / 255
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    with torch.inference_mode():
        return network()(((given - mean) / deviation).permute(0, 3, 1, 2)).numpy()


def predict(images: list[Any]) -> list[Any]:
    if ABOUT["format"] == "heads":
        with np.load(HOME / ABOUT["model"], allow_pickle=False) as head:
            weights, biases = head["weights"].astype(float), head["biases"]
        scores = np.stack([features(image) for image in images]) @ weights + biases
    else:
        parts = [outputs(images[start : start + AT_ONCE]) for start in range(0, len(images), AT_ONCE)]
        scores = np.concatenate(parts)
    found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    return [ABOUT["classes"][int(i)] for i in found]


def main(names: list[str]) -> None:
    files: list[Path] = []
    for path in map(Path, names):
        inside = sorted(path.rglob("*")) if path.is_dir() else []
        files += [file for file in inside if file.suffix.lower() in SUFFIXES] if path.is_dir() else [path]
    if not files or any(name.startswith("-") for name in names):
        sys.exit("name images, or a folder with images: python predict.py one.png folder/")
    images = []
    for file in files:
        try:
            images.append(pixels(file))
        except Exception as problem:  # parsers of damaged files raise anything
            raise SystemExit(f"{file} cannot be used: {problem}") from problem
    rows = zip(files, predict(images), strict=True)
    csv.writer(sys.stdout, lineterminator="\n").writerows([["file", "label"], *rows])


if __name__ == "__main__":
    main(sys.argv[1:])
