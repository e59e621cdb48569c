"""Features of texts by a transformer in ONNX, and by the vectors of a static model."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pacpredict.exceptions import InvalidInput, InvalidModel, MissingExtra
from pacpredict.features.extractor import Extractor
from pacpredict.features.onnx_runtime import open_model
from pacpredict.rows.kind import RowKind

_MODEL, _TOKENIZER, _VECTORS = "model.onnx", "tokenizer.json", "model.safetensors"
_POOLINGS = ("first", "mean")


@dataclass
class OnnxTexts(Extractor):
    """A folder with `model.onnx` and `tokenizer.json`: the first token's output, or the mean, scaled to length 1.

    Texts are cut after so many tokens.
    """

    folder: Path
    tokens: int = 256
    pooling: str = "mean"
    name: str = "onnx"
    kind = "onnx-texts"
    libraries = ("onnxruntime", "tokenizers")
    takes: tuple[RowKind, ...] = ("text",)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        _check_files(self.files())
        if self.pooling not in _POOLINGS or self.tokens < 1:
            raise InvalidInput(f"pooling is one of {', '.join(_POOLINGS)}, and tokens are at least 1")

    def config(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "tokens": self.tokens, "pooling": self.pooling}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> "OnnxTexts":
        return cls(folder, config["tokens"], config["pooling"], config["name"])

    def files(self) -> Mapping[str, Path]:
        return {name: self.folder / name for name in (_MODEL, _TOKENIZER)}

    def extract(self, value: str) -> npt.NDArray[Any]:
        encoded = self._tokenizer.encode(value)
        known = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        session = self._session
        inputs = {one.name: np.array([known[one.name]], np.int64) for one in session.get_inputs()}
        outputs = np.asarray(session.run([session.get_outputs()[0].name], inputs)[0])[0]
        if outputs.ndim == 2:
            outputs = outputs[0] if self.pooling == "first" else outputs.mean(axis=0)
        return _unit(outputs)

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = open_tokenizer(self.folder / _TOKENIZER)
        tokenizer.enable_truncation(self.tokens)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        session = open_model(self.folder / _MODEL)
        names = {one.name for one in session.get_inputs()}
        if not names <= {"input_ids", "attention_mask", "token_type_ids"}:
            raise InvalidModel(f"{self.folder / _MODEL} takes {sorted(names)}, not the tokens of a text")
        return session


@dataclass
class StaticTexts(Extractor):
    """A folder with `model.safetensors`, a vector for each token, and `tokenizer.json`: their mean, made length 1."""

    folder: Path
    name: str = "static"
    kind = "static-texts"
    libraries = ("tokenizers",)
    takes: tuple[RowKind, ...] = ("text",)

    def __post_init__(self) -> None:
        self.folder = Path(self.folder)
        _check_files(self.files())

    def config(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> "StaticTexts":
        return cls(folder, config["name"])

    def files(self) -> Mapping[str, Path]:
        return {name: self.folder / name for name in (_VECTORS, _TOKENIZER)}

    def extract(self, value: str) -> npt.NDArray[Any]:
        vectors, unknown = self._vectors
        ids = [i for i in self._tokenizer.encode(value, add_special_tokens=False).ids if i != unknown]
        return _unit(vectors[ids].mean(axis=0)) if ids else np.zeros(vectors.shape[1], np.float32)

    @cached_property
    def _tokenizer(self) -> Any:
        return open_tokenizer(self.folder / _TOKENIZER)

    @cached_property
    def _vectors(self) -> tuple[npt.NDArray[np.float32], int | None]:
        try:
            from safetensors.numpy import load_file  # noqa: PLC0415  # an extra
        except ImportError as problem:
            raise MissingExtra("heads", "reading the vectors of tokens") from problem
        (vectors,) = load_file(self.folder / _VECTORS).values()
        return vectors.astype(np.float32), self._tokenizer.token_to_id("[UNK]")


def open_tokenizer(path: Path) -> Any:
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415  # an extra
    except ImportError as problem:
        raise MissingExtra("heads", "cutting texts into tokens") from problem
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as problem:  # its errors have no class of their own
        raise InvalidModel(f"{path} is not a tokenizer: {problem}") from problem
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _unit(vector: npt.NDArray[Any]) -> npt.NDArray[Any]:
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


def _check_files(files: Mapping[str, Path]) -> None:
    for path in files.values():
        if not path.is_file():
            raise InvalidModel(f"there is no file {path}")
