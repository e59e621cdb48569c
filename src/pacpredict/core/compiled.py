"""How the numerical kernels are compiled: once per installation and user, cached on disk, and announced."""

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import event

P = ParamSpec("P")
T = TypeVar("T")

_ours: set[str] = set()


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a kernel on its first call; other threads run while it does.

    Strict IEEE arithmetic (no fastmath): replaying a ledger must give the same bits.

    A kernel that makes arrays does not compile: Numba's memory manager is off. In return no references are
    counted, which would cost about as much as the arithmetic on arrays this short. So it must not return arrays,
    also not as parts of tuples, to a kernel that allocates: that one would count them down.
    """
    return _compile(function, allocates=False)


def compiled_allocating(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a kernel that makes arrays, likewise."""
    return _compile(function, allocates=True)


def compiled_into_callers(function: Callable[P, T]) -> Callable[P, T]:
    """Compile a kernel whose code becomes a part of those that call it: where a call would take as long as the work."""
    return _compile(function, allocates=False, forceinline=True)


def _compile(function: Callable[P, T], *, allocates: bool, forceinline: bool = False) -> Callable[P, T]:
    _ours.add(function.__qualname__)
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "_nrt": allocates,
        "forceinline": forceinline,
    }
    try:
        kernel: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither beside the sources nor at the user's home can anything be written
        return cast("Callable[P, T]", numba.njit(**options)(function))
    # Numba looks only at the file of the kernel itself when it decides whether a cached compilation is still
    # good. A kernel contains the code of those it calls, so every source beside it counts.
    kernel._cache._cache_file._source_stamp = digest_of_sources(Path(function.__code__.co_filename).parent)  # noqa: SLF001
    return cast("Callable[P, T]", kernel)


def cache_of(kernel: Callable[..., Any]) -> Path | None:
    """Return the folder in which compilations of a kernel are kept; None where nothing can be written."""
    folder = cast("Any", kernel)._cache.cache_path  # noqa: SLF001
    return None if folder is None else Path(folder)


@functools.cache
def digest_of_sources(folder: Path) -> str:
    digest = hashlib.sha256()
    for source in sorted({*folder.glob("*.py"), *Path(__file__).parent.glob("*.py")}):
        digest.update(source.read_bytes())
    return digest.hexdigest()


class _Announcement(event.Listener):
    """Tell a waiting person what takes so long; a kernel found in the cache raises no event."""

    said = False

    def on_start(self, compilation: Any) -> None:
        if not self.said and compilation.data["dispatcher"].py_func.__qualname__ in _ours:
            self.said = True
            sys.stderr.write(
                "pacpredict: compiling numerical kernels, once per installation (a minute or two)\n"
            )

    def on_end(self, compilation: Any) -> None:
        """Nothing more to say."""


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]
