"""Features as a user names them, and as an artifact has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pacpredict.exceptions import InvalidInput, InvalidModel
from pacpredict.features.cache import FeatureCache
from pacpredict.features.compute import Concatenation, Progress
from pacpredict.features.named import extractor_from_config, extractors_of
from pacpredict.features.words import Words
from pacpredict.rows.kind import AnyRows, RowKind

WORDS = {"hashing": Words(idf=False), "tfidf": Words(idf=True)}


class FeatureMaker(Protocol):
    """From rows to a matrix of features, dense or sparse, each row by itself."""

    @property
    def takes(self) -> tuple[RowKind, ...]: ...

    @property
    def needs_trust(self) -> bool:
        """Whether its config can name code to run."""

    def config(self) -> list[dict[str, Any]]: ...

    def files(self) -> dict[str, Path]:
        """Return what an artifact must keep."""

    def __call__(self, digests: Sequence[bytes], rows: AnyRows, progress: Progress | None = None) -> Any: ...


@dataclass(frozen=True)
class StoredFeatures:
    """What an artifact says of its features, and where it keeps their files."""

    configs: Sequence[Mapping[str, Any]]
    folder: Path | None = None


def feature_maker(given: Any, cache: Path | None = None, n_threads: int = 1) -> FeatureMaker:
    """Return what makes features: of a name, a file, a function, a list of these, or of an artifact."""
    kept = None if cache is None else FeatureCache(Path(cache))
    if isinstance(given, StoredFeatures):
        return _restore(given, kept, n_threads)
    if isinstance(given, str) and given in WORDS:
        return WORDS[given]
    if isinstance(given, str) and set(given.split("+")) & WORDS.keys():
        raise InvalidInput(f"{' and '.join(WORDS)} stand alone; {given!r} joins one with other features")
    return Concatenation(extractors_of(given), kept, n_threads)


def name_features(configs: Sequence[Mapping[str, Any]]) -> str:
    """Say which features a config is of, as a user would ask for them."""
    return "+".join(map(_name, configs))


def _name(config: Mapping[str, Any]) -> str:
    if config.get("kind") == Words.kind:
        return "tfidf" if config.get("idf") else "hashing"
    name, setting = config.get("name") or config.get("function"), config.get("size") or config.get("tokens")
    return f"{name}@{setting}" if setting else str(name)


def _restore(stored: StoredFeatures, cache: FeatureCache | None, n_threads: int) -> FeatureMaker:
    if len(stored.configs) == 1 and stored.configs[0].get("kind") == Words.kind:
        return Words(bool(stored.configs[0].get("idf")))
    if stored.folder is None:
        raise InvalidModel("these features are those of an artifact, and its folder is not known")
    folder = stored.folder
    parts = (extractor_from_config(config, folder / str(i)) for i, config in enumerate(stored.configs))
    return Concatenation(tuple(parts), cache, n_threads)
