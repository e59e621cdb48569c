"""Deployments over the same records, as far as this process knows of them: each draws a secret of its own.

A record is in at least one of k training sets with probability 1 - 2^-k, and what the deployments reveal adds up.
"""

import threading

import numpy as np
import numpy.typing as npt

from pacpredict.training.pool import Pool

# Of each deployment the smallest hashes of its records. Of two pools that share a tenth, these have one in common but
# for one case in 10^180; and no list of records is kept.
_KEPT = 4096

_lock = threading.Lock()
_known: list[npt.NDArray[np.uint64]] = []


def count_deployments(pool: Pool) -> int:
    """Note a deployment over these records; returns how many share some of them by now, this one included."""
    hashes = np.array([int.from_bytes(digest[:8]) for digest in pool.schema.digests(pool.rows)], np.uint64)
    smallest = np.unique(hashes)[:_KEPT]
    with _lock:
        n_before = sum(np.isin(smallest, other).any() for other in _known)
        _known.append(smallest)
    return int(n_before) + 1


def reuse_warning(n_deployments: int) -> str | None:
    """Say what a further deployment over the same records means, when their number has doubled."""
    if n_deployments < 2 or n_deployments & (n_deployments - 1):
        return None
    return (
        f"this is deployment {n_deployments} in this process over some of these records, and each draws a secret of "
        f"its own: a record is in at least one training set with probability {1 - 0.5**n_deployments:.4g}, and budgets "
        "add up. To compare settings use pacpredict.evaluate, which draws no secret and spends nothing"
    )
