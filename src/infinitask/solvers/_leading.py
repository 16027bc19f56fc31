"""The leading eigenvectors of rows, for :mod:`~infinitask.solvers._free_levels`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.solvers._basis import MAX_FEATURES_FOR_ALL

HELD = 0.02
"""Directions with e f below this part of λ are held by the ridge."""


class Leading(NamedTuple):
    """Eigenvectors of ΦᵀωΦ."""

    e: HostArray
    """(k,)."""
    V: HostArray
    """(r, k)."""
    values: HostArray
    """Φ V transposed, (k, n)."""
    rest: float
    """All other eigenvalues are at most about this."""


def leading(rows: HostArray, omega: HostArray, ridge: float) -> Leading:
    """Those directions that a ridge does not hold, or enough of them."""
    n, r = rows.shape
    count, rng, few = 64, np.random.default_rng(0), min(n, r) <= MAX_FEATURES_FOR_ALL
    single = rows if few else rows.astype(np.float32)
    while not few and count <= min(n, r) // 3:
        # one step of subspace iteration: they need not be exact, for what they miss is held by the ridge
        probes = single @ rng.standard_normal((r, count), dtype=np.float32)
        probes *= omega[:, None].astype(np.float32)
        Q = np.linalg.qr((single.T @ probes).astype(np.float64))[0]
        Z = rows @ Q
        e, S = np.linalg.eigh(Z.T @ (omega[:, None] * Z))
        if e[0] <= ridge:  # in all other directions the ridge outweighs the losses
            kept = e > min(HELD * ridge, 0.5 * float(e[-1]))
            S = S[:, kept]
            return Leading(e[kept], Q @ S, np.ascontiguousarray((Z @ S).T), max(float(e[0]), HELD * ridge))
        count *= 2
    scaled = rows * np.sqrt(omega)[:, None]
    e, V = np.linalg.eigh(scaled @ scaled.T if n < r else scaled.T @ scaled)
    kept = e > min(HELD * ridge, 0.5 * float(e[-1]))
    kept[-1] = True  # also where all rows are alike, and no direction has any size
    e, V = e[kept], np.ascontiguousarray(V[:, kept])
    if n < r:
        V = (scaled.T @ V) / np.sqrt(np.maximum(e, np.finfo(float).tiny))
    return Leading(e, V, np.ascontiguousarray((rows @ V).T), HELD * ridge)
