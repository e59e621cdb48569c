"""Labels for images, by the student in this folder: python predict.py one.png folder/ > labels.csv.

Needs NumPy, Pillow, and ONNX Runtime or PyTorch (student.json says which). Nothing is asked of anybody.
"""

import csv
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp")
AT_ONCE = 64  # images that a network looks at together


def pixels(path: str | Path) -> Any:
    """Return (height, width, 3) of bytes; images must be like those that the student was trained with."""
    with Image.open(path) as image:
        if image.mode[0] in "IF":
            raise ValueError("it has more than 8 bits per channel")
        found = np.asarray(image.convert("RGB"))
    if found.shape[:2] != (ABOUT["height"], ABOUT["width"]):
        height, width, _ = found.shape
        raise ValueError(f"it has {height} x {width} pixels, not {ABOUT['height']} x {ABOUT['width']}")
    return found


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
