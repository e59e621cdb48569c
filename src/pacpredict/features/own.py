"""Any function of one value as an extractor."""

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from pacpredict.exceptions import InvalidModel
from pacpredict.features.extractor import Extractor
from pacpredict.rows.kind import RowKind


class OwnExtractor(Extractor):
    """A function that takes one image (height, width, 3) of bytes, or one text, and returns a vector.

    It must return the same numbers for the same value, and must not have seen the training data. An artifact keeps its
    name only: whoever opens it needs the same function, and says that it may be run.
    """

    kind = "function"
    takes: tuple[RowKind, ...] = ("image", "text")
    needs_trust = True

    def __init__(self, function: Callable[[Any], Any] | str) -> None:
        self.function = function  # or, as an artifact has it, module:name
        self.name = (
            function
            if isinstance(function, str)
            else getattr(function, "__qualname__", type(function).__name__)
        )

    def config(self) -> dict[str, Any]:
        if isinstance(self.function, str):
            return {"kind": self.kind, "function": self.function}
        home, name = getattr(self.function, "__module__", None), getattr(self.function, "__qualname__", None)
        return {"kind": self.kind, "function": f"{home}:{name}"}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], folder: Path) -> "OwnExtractor":  # noqa: ARG003
        return cls(str(config["function"]))

    @cached_property
    def identity(self) -> None:
        """Its code may change while its name does not, so that nothing is cached."""

    def files(self) -> Mapping[str, Path]:
        """Return no file, but refuse a function that an artifact could not find again."""
        reference = self.config()["function"]
        is_here = reference.startswith("__main__:")  # in another process, that is another program
        if not isinstance(self.function, str) and (is_here or self._find(reference) is not self.function):
            raise InvalidModel(
                f"an artifact finds the function {self.name} again by its name, so that it must be one of a module: no "
                "lambda, no method, none of a notebook or of the script that is run"
            )
        return {}

    def extract(self, value: Any) -> Any:
        return self._callable(value)

    @cached_property
    def _callable(self) -> Callable[[Any], Any]:
        """Import what an artifact names, not before it is needed: by then somebody has said that it may be run."""
        if not isinstance(self.function, str):
            return self.function
        if (found := self._find(self.function)) is None:
            raise InvalidModel(
                f"the features of this artifact are those of {self.function}, which cannot be imported"
            )
        return found

    @staticmethod
    def _find(reference: str) -> Callable[[Any], Any] | None:
        home, _, name = reference.partition(":")
        try:
            found = getattr(import_module(home), name)
        except (ImportError, AttributeError, ValueError):
            return None
        return cast("Callable[[Any], Any]", found)
