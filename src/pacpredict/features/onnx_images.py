"""Features of images by a model in ONNX."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidModel, MissingExtra
from pacpredict.features.extractor import Extractor
from pacpredict.features.onnx_runtime import open_model
from pacpredict.rows.kind import RowKind
from pacpredict.rows.pixels import Pixels

_FILE = "model.onnx"


@dataclass
class OnnxImages(Extractor):
    """The first output of a model whose input is (n, 3, height, width) or (n, height, width, 3), of float32 or bytes.

    Images are scaled to `size` pixels a side, bicubic; without a size, to what the model declares, or not at all.
    Floats are (pixel - mean) / scale for each channel, by default from 0 to 1.
    """

    path: Path
    size: int | None = None
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scale: tuple[float, float, float] = (255.0, 255.0, 255.0)
    is_bgr: bool = False
    name: str = "onnx"
    kind = "onnx-images"
    libraries = ("onnxruntime", "pillow")
    takes: tuple[RowKind, ...] = ("image",)

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        if not self.path.is_file():
            raise InvalidModel(f"there is no model {self.path}")

    def config(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "size": self.size,
            "mean": list(self.mean),
            "scale": list(self.scale),
            "is_bgr": self.is_bgr,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> "OnnxImages":
        mean, scale = tuple(config["mean"]), tuple(config["scale"])
        return cls(folder / _FILE, config["size"], mean, scale, config["is_bgr"], config["name"])

    def files(self) -> Mapping[str, Path]:
        return {_FILE: self.path}

    def extract(self, value: Pixels) -> npt.NDArray[Any]:
        model = self._model
        pixels = _resize(value, model.size(value) if self.size is None else (self.size, self.size))
        if self.is_bgr:
            pixels = pixels[:, :, ::-1]
        if not model.takes_bytes:
            pixels = (pixels - np.array(self.mean, np.float32)) / np.array(self.scale, np.float32)
        if model.is_channels_first:
            pixels = pixels.transpose(2, 0, 1)
        (found, *_) = model.session.run([model.output], {model.input: np.ascontiguousarray(pixels[None])})
        return np.asarray(found)[0]

    @cached_property
    def _model(self) -> "_Model":
        return _Model(self.path)


class _Model:
    """What a model says about its input."""

    def __init__(self, path: Path) -> None:
        self.session = open_model(path)
        first = self.session.get_inputs()[0]
        shape = first.shape
        self.input, self.output = first.name, self.session.get_outputs()[0].name
        self.is_channels_first = len(shape) == 4 and shape[1] == 3
        if len(self.session.get_inputs()) > 1 or not (
            self.is_channels_first or (len(shape) == 4 and shape[3] == 3)
        ):
            raise InvalidModel(
                f"{path} takes {shape}; a model of images takes (n, 3, height, width) or (n, height, width, 3)"
            )
        if first.type not in {"tensor(float)", "tensor(uint8)"}:
            raise InvalidModel(f"{path} takes {first.type}; a model of images takes float32 or bytes")
        self.takes_bytes = first.type == "tensor(uint8)"
        self._declared = shape[2:] if self.is_channels_first else shape[1:3]

    def size(self, image: Pixels) -> tuple[int, int]:
        """Return the height and width that the model declares, the image's own where it does not."""
        height, width = (
            declared if isinstance(declared, int) else own
            for declared, own in zip(self._declared, image.shape[:2], strict=True)
        )
        return height, width


def _resize(image: Pixels, size: tuple[int, int]) -> npt.NDArray[Any]:
    if image.shape[:2] == size:
        return image
    try:
        from PIL import Image  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("heads", "scaling images") from problem
    scaled = Image.fromarray(image).resize((size[1], size[0]), Image.Resampling.BICUBIC)
    return np.asarray(scaled, np.uint8)
