"""Extractors by name: `lite2`, `lite2@128`, `lite2+resnet50`, a file in ONNX, or a folder with one and its tokenizer.

| name | takes | width | what it is |
|---|---|---|---|
| `lite0`, `lite2` | images | 1,280 | EfficientNet-Lite, trained on ImageNet; `@128`: at 128 pixels a side, not 224 |
| `resnet50` | images | 2,048 | ResNet-50, trained on ImageNet; `@` likewise |
| `potion` | texts | 256 | potion-base-8M: the mean of static vectors of tokens |
| `bge-small` | texts | 384 | bge-small-en-v1.5 in 8 bits; `@128` cuts texts after 128 tokens, not 256 |

Weights come inside packages of public registries (weights/) and are kept in the user's cache, or where
PACPREDICT_EXTRACTORS says.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pacpredict.exceptions import InvalidInput, InvalidModel
from pacpredict.features.extractor import Extractor
from pacpredict.features.onnx_images import OnnxImages
from pacpredict.features.onnx_texts import OnnxTexts, StaticTexts
from pacpredict.features.own import OwnExtractor
from pacpredict.features.weights.fetch import SOURCES, fetch
from pacpredict.files import user_cache
from pacpredict.rows.sizes import LONGEST_SIDE

_SIZE, _TOKENS = 224, 256

# From a folder of weights, and what stands after "@", to an extractor.
_NAMED: dict[str, Callable[[Path, int | None], Extractor]] = {
    **dict.fromkeys(
        ("lite0", "lite2"),
        lambda folder, size: OnnxImages(
            folder / "model.onnx", size or _SIZE, (127.0,) * 3, (128.0,) * 3, name=folder.name
        ),
    ),
    "resnet50": lambda folder, size: OnnxImages(
        folder / "model.onnx",
        size or _SIZE,
        (103.939, 116.779, 123.68),
        (1.0,) * 3,
        is_bgr=True,
        name=folder.name,
    ),
    "potion": lambda folder, _: StaticTexts(folder, folder.name),
    "bge-small": lambda folder, tokens: OnnxTexts(folder, tokens or _TOKENS, "first", folder.name),
}
_KINDS: dict[str, type[Extractor]] = {
    each.kind: each for each in (OnnxImages, OnnxTexts, StaticTexts, OwnExtractor)
}


def extractor_names() -> list[str]:
    return list(_NAMED)


def extractors_of(given: Any) -> tuple[Extractor, ...]:
    """Return the extractors of a text such as "lite2+resnet50", a function, an extractor, or a list of these."""
    if isinstance(given, list | tuple) and given:
        return tuple(one for part in given for one in extractors_of(part))
    if isinstance(given, Extractor):
        return (given,)
    if isinstance(given, Path):
        return (_from_path(given),)
    if isinstance(given, str):
        if Path(given).exists() and given not in _NAMED:
            return (_from_path(Path(given)),)
        return tuple(map(_by_name, given.split("+")))
    if callable(given):
        return (OwnExtractor(given),)
    raise InvalidInput(f"features are a name, a file, a function or a list of these; got {given!r:.100}")


def extractor_from_config(config: Mapping[str, Any], folder: Path) -> Extractor:
    """Build the extractor that an artifact has."""
    kind = _KINDS.get(config.get("kind", ""))
    if kind is None:
        raise InvalidModel(f"this pacpredict has no extractor of kind {config.get('kind')!r:.50}")
    try:
        return kind.from_config(config, folder)
    except (KeyError, TypeError) as problem:
        raise InvalidModel(f"the stored extractor lacks what it needs: {problem}") from problem


def home() -> Path:
    """Return the folder where weights are."""
    given = os.environ.get("PACPREDICT_EXTRACTORS")
    return Path(given) if given else user_cache() / "extractors"


def _by_name(given: str) -> Extractor:
    name, sign, setting = given.partition("@")
    is_number = setting.isascii() and setting.isdigit() and 0 < int(setting) <= LONGEST_SIDE
    if name not in _NAMED or not (is_number or not sign):
        raise InvalidInput(
            f"there are no features {given!r}; choose among {', '.join((*_NAMED, 'tfidf', 'hashing'))}, several "
            "joined by '+', or name a file in ONNX"
        )
    if name == "potion" and setting:
        raise InvalidInput("potion looks at whole texts: leave out what stands after @")
    folder = home() / name
    if not all((folder / file).is_file() for file in SOURCES[name].makes):
        fetch(name, folder)
    return _NAMED[name](folder, int(setting) if setting else None)


def _from_path(path: Path) -> Extractor:
    if path.is_dir():
        return OnnxTexts(path, name=path.name)
    if path.suffix == ".onnx":
        return OnnxImages(path, name=path.stem)
    raise InvalidInput(f"{path} is neither a file in ONNX nor a folder with model.onnx and tokenizer.json")
