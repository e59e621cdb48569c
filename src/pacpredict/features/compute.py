"""Features of many rows by one extractor or several side by side, each row by itself."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from pacpredict.exceptions import InvalidFeatures, InvalidInput
from pacpredict.features.cache import FeatureCache
from pacpredict.features.exact import MOST_TERMS, Single, round_rows
from pacpredict.features.extractor import Extractor, Vector
from pacpredict.rows.images import Images
from pacpredict.rows.kind import AnyRows, RowKind
from pacpredict.rows.texts import Texts

# Rows whose features are kept at a time: an interruption costs no more than these.
_ROWS_AT_ONCE = 256

# Called with the number of rows whose features are there, and of all.
Progress = Callable[[int, int], None]


@dataclass
class Concatenation:
    """The features of several extractors in one vector, rounded so that votes are exact (exact.py)."""

    parts: tuple[Extractor, ...]
    cache: FeatureCache | None = None
    n_threads: int = 1

    def __post_init__(self) -> None:
        if not self.takes:
            raise InvalidInput(
                f"{' and '.join(part.name for part in self.parts)} do not take the same kind of rows"
            )

    def config(self) -> list[dict[str, Any]]:
        return [{**part.config(), "identity": part.identity} for part in self.parts]

    def files(self) -> dict[str, Path]:
        """Return what an artifact must keep, in a folder for each part."""
        return {
            f"{i}/{name}": path for i, part in enumerate(self.parts) for name, path in part.files().items()
        }

    @property
    def needs_trust(self) -> bool:
        return any(part.needs_trust for part in self.parts)

    @property
    def takes(self) -> tuple[RowKind, ...]:
        kinds: tuple[RowKind, ...] = ("image", "text")
        return tuple(kind for kind in kinds if all(kind in part.takes for part in self.parts))

    def __call__(self, digests: Sequence[bytes], rows: AnyRows, progress: Progress | None = None) -> Single:
        """Return (n, width), in the order of the rows."""
        values = values_of(rows)
        whole: Single | None = None
        widths: list[int | None] = [None for _ in self.parts]
        for start in range(0, len(values), _ROWS_AT_ONCE):
            chosen = range(start, min(start + _ROWS_AT_ONCE, len(values)))
            vectors = [
                self._block(part, digests, values, chosen, width)
                for part, width in zip(self.parts, widths, strict=True)
            ]
            widths = [vector.shape[1] for vector in vectors]
            block = round_rows(np.hstack(vectors))
            if whole is None:
                _check_width(block.shape[1])
                whole = np.empty((len(values), block.shape[1]), np.float32)
            whole[start : chosen.stop] = block
            if progress is not None:
                progress(chosen.stop, len(values))
        if whole is None:
            raise InvalidInput("there are no rows")
        return whole

    def _block(
        self,
        part: Extractor,
        digests: Sequence[bytes],
        values: Sequence[Any],
        chosen: range,
        width: int | None,
    ) -> Single:
        keys = [digests[row] for row in chosen]
        cache, identity = self.cache, part.identity if self.cache is not None else None
        known = {} if cache is None or identity is None else cache.get(identity, keys)
        # An input that occurs twice is looked at once.
        missing = {key: row for key, row in zip(keys, chosen, strict=True) if key not in known}
        found = dict(zip(missing, self._run(part, values, list(missing.values())), strict=True))
        if cache is not None and identity is not None and found:
            cache.put(identity, found)
        known |= found
        width = len(known[keys[0]]) if width is None else width
        for key, row in zip(keys, chosen, strict=True):
            if len(known[key]) != width:
                raise InvalidFeatures(
                    f"row {row} (from 0): {part.name} returned {len(known[key])} features, and {width} before"
                )
        return np.stack([known[key] for key in keys])

    def _run(self, part: Extractor, values: Sequence[Any], rows: list[int]) -> list[Vector]:
        if self.n_threads == 1 or len(rows) < 2:
            return [part(values[row], row) for row in rows]
        with ThreadPoolExecutor(self.n_threads) as threads:
            return list(threads.map(lambda row: part(values[row], row), rows))


def values_of(rows: AnyRows) -> Sequence[Any]:
    if isinstance(rows, Images):
        return cast("Sequence[Any]", rows.pixels)
    if isinstance(rows, Texts):
        return rows.texts
    raise InvalidInput(f"{rows!r:.100} are neither images nor texts")


def _check_width(width: int) -> None:
    if width > MOST_TERMS:
        raise InvalidFeatures(f"{width:,} features are too many for exact votes; at most {MOST_TERMS:,} are")
