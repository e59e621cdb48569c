"""What a long history costs: a real ledger on this disk that is lengthened from size to size, and measured at each."""

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from histories import BUDGET, KEY, N_CLASSES, PRIOR, begin, home_in, lengthen, make_votes

from pacpredict import Request, Session
from pacpredict.ledger.home import Home
from pacpredict.ledger.verify import verify
from pacpredict.ledger.witness import FileWitness
from pacpredict.ledger.witnessed import WitnessedLedger

N_LOOKUPS, N_NEW, N_OPENINGS = 500, 50, 3


def measure_history(
    folder: Path, n_releases: int, verify_up_to: int, url: str | None = None
) -> dict[str, float]:
    """Lengthen the ledger in a folder or at a URL, and measure it. A replay that would take too long is left out."""
    home, found = home_in(folder), {}
    if url is not None:
        home.begin_at(url)

    def open_and_close() -> None:
        home.open(url).close()

    with home.open(url) as ledger:
        lengthen(ledger, n_releases)
    found["opening after a long run"] = _cpu(open_and_close)  # which checks what was written
    _vouch(home)
    found["opening"] = min(_cpu(open_and_close) for _ in range(N_OPENINGS))
    if url is None:
        found["gigabytes"] = home.ledger.stat().st_size / 1e9
        found["opening uncached, by the clock"] = min(_open_from_disk(home) for _ in range(N_OPENINGS))
    else:
        found["opening, by the clock"] = min(_clock(open_and_close) for _ in range(N_OPENINGS))
    with home.open(url) as ledger:
        session = begin(ledger)
        found["a repeated query"] = _per_repeated_query(session, ledger)
        found["a new query"] = min(_cpu(_new_query(session)) for _ in range(N_NEW))
        if n_releases <= verify_up_to:
            found["verify"] = _cpu(lambda: verify(ledger.ledger, N_CLASSES, BUDGET, PRIOR))
    return found


def _cpu(job: Callable[[], object]) -> float:
    started = time.process_time()
    job()
    return time.process_time() - started


def _clock(job: Callable[[], object]) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def _vouch(home: Home) -> None:
    """Note that all records were checked, as openings and servers would by and by: they were written just now."""
    with closing(FileWitness(home.witness, KEY)) as witness:
        seen = witness.read()
        assert seen is not None  # noqa: S101  # for the type checker
        witness.advance(seen._replace(verified=seen.sequence))


def _open_from_disk(home: Home) -> float:
    """Open a ledger of which the operating system has nothing in memory."""
    with home.ledger.open("rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return _clock(lambda: home.open().close())


def _per_repeated_query(session: Session, ledger: WitnessedLedger) -> float:
    """Look up queries from all over the history."""
    numbers = np.random.default_rng(0).integers(session.snapshot().sequence, size=N_LOOKUPS).tolist()
    digests = [record.entry.digest for n in numbers for record in ledger.ledger.records(n, n + 1)]
    session.recall([digest for digest in digests if digest is not None])  # as often asked: they are in memory
    return _cpu(lambda: [session.recall([digest]) for digest in digests if digest is not None]) / N_LOOKUPS


def _new_query(session: Session) -> Callable[[], object]:
    rng = np.random.default_rng()
    ballots, digest = session.ballots(make_votes(1, rng)), rng.bytes(32)
    return lambda: session.serve([Request([digest], ballots, [0], session.recall([digest]))])
