"""Labels for image files, by the student in this folder: python predict.py one.png two.jpg > labels.csv.

Needs NumPy, Pillow, and ONNX Runtime or PyTorch (student.json says which). Nothing is asked of anybody.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HOME = Path(__file__).parent
ABOUT = json.loads((HOME / "student.json").read_text("utf-8"))


def pixels(path: str | Path) -> Any:
    """Return (height, width, 3) of bytes; images must have the size that the student was trained with."""
    with Image.open(path) as image:
        found = np.asarray(image.convert("RGB"))
    if found.shape[:2] != (ABOUT["height"], ABOUT["width"]):
        raise ValueError(f"{path} has {found.shape[:2]} pixels, not {ABOUT['height']} x {ABOUT['width']}")
    return found


def features(image: Any) -> Any:
    """Return what the public extractors see in an image, rounded to 15 bits as in training."""
    import onnxruntime  # noqa: PLC0415

    parts = []
    for i, about in enumerate(ABOUT["features"]):
        session = onnxruntime.InferenceSession(HOME / "extractors" / str(i) / "model.onnx")
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


def predict(images: list[Any]) -> list[Any]:
    path = HOME / ABOUT["model"]
    if ABOUT["format"] == "heads":
        with np.load(path, allow_pickle=False) as head:
            scores = (
                np.stack([features(image) for image in images]) @ head["weights"].astype(float)
                + head["biases"]
            )
        found = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
    else:
        import torch  # noqa: PLC0415

        network = torch.export.load(path).module()
        given = torch.from_numpy(np.stack(images)).float() / 255
        mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
        with torch.inference_mode():
            found = network(((given - mean) / deviation).permute(0, 3, 1, 2)).argmax(dim=1).numpy()
    return [ABOUT["classes"][int(i)] for i in found]


if __name__ == "__main__":
    labels = predict([pixels(name) for name in sys.argv[1:]])
    rows = zip(sys.argv[1:], labels, strict=True)
    csv.writer(sys.stdout, lineterminator="\n").writerows([["file", "label"], *rows])
