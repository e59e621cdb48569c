"""Training on this machine, many models at a time."""

from collections.abc import Iterable, Iterator
from typing import Any

from pacpredict.exceptions import InvalidInput
from pacpredict.training.block import Block, Fitted, Work, train_block
from pacpredict.training.scratch import Scratch


def train_here(
    n_jobs: int | None, backend: str | None, work: Work, blocks: Iterable[Block], scratch: Scratch | None
) -> Iterator[list[tuple[int, Fitted]]]:
    """Yield blocks of models as they are finished, in any order."""
    from joblib import Parallel, delayed  # noqa: PLC0415  # takes time to import; only training needs it

    jobs = (delayed(train_block)(work, block, scratch) for block in blocks)
    with _configured(backend):
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs)


def check_parallel(n_jobs: int | None, backend: str | None) -> None:
    """Refuse what joblib cannot run, before anything is begun."""
    if n_jobs == 0:
        raise InvalidInput(
            "n_jobs must be a number of models to train at a time, or -1 for one per core; got 0"
        )
    try:
        with _configured(backend):
            pass
    except ValueError as problem:
        raise InvalidInput(f"joblib has no backend {backend!r}: {problem}") from problem


def _configured(backend: str | None) -> Any:
    from joblib import parallel_config  # noqa: PLC0415

    # A backend of None would hide one that the caller has configured around the training.
    return parallel_config(**({} if backend is None else {"backend": backend}))
