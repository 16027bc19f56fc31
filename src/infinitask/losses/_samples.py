"""Samples of θ, y and h at which the definition of a loss is tested."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host

CHECKED = 40
"""The number of θ, and of y, at which a loss is tested."""

CHECKED_OFFSETS = (1e-3, 1e-2, 0.1, 0.4, 1.0, 3.0, 10.0)
"""Distances from y at which a loss is tested, in units of the spread of y."""

CHECKED_VALUES = (-3.0, -1.0, -0.1, 0.1, 1.0, 3.0)
"""Values of h at which a loss is tested as well."""


def where(theta: Array, y: Array | None, k: tuple[Any, ...]) -> str:
    """The pair k in words."""
    i, j = int(k[0]), int(k[1])
    task = ", ".join(f"{t:.4g}" for t in np.atleast_1d(to_host(theta)[j]))
    task = f"({task})" if theta.ndim == 2 else task
    return f"θ = {task}" + ("" if y is None else f", y = {to_host(y)[i, min(j, y.shape[1] - 1)]:.4g}")


def some(theta: Array, y: Array | None) -> tuple[Array, Array | None]:
    """Some θ and some y, always the same ones, with the smallest and the largest.

    Their numbers differ, so that a result of the wrong shape is noticed.
    """
    rng = np.random.default_rng(0)
    tasks = to_host(theta)
    nodes = _chosen(tasks, rng)
    if y is None:
        return as_like(tasks[nodes], theta), None
    targets = to_host(y)
    rows = _chosen(targets, rng)
    if rows.size == nodes.size:
        rows = np.append(rows, rows[-1])
    if targets.shape[1] > 1:
        targets = targets[:, nodes]
    return as_like(tasks[nodes], theta), as_like(targets[rows], y)


def _chosen(values: HostArray, rng: np.random.Generator) -> HostArray:
    """Indices of about :data:`CHECKED` rows of ``values``, with the extremes of every column."""
    columns = values.reshape(values.shape[0], -1)[:, :8]
    extremes = np.concatenate([np.argmin(columns, axis=0), np.argmax(columns, axis=0)])
    return np.unique(np.concatenate([extremes, rng.permutation(values.shape[0])[:CHECKED]]))


def points(theta: Array, y: Array | None) -> list[HostArray]:
    """Values of h, (n, m) each: 0, close to 0, close to y and far from y, at random distances."""
    m = theta.shape[0]
    rng = np.random.default_rng(1)
    centre = np.zeros((2 if m == 1 else 1, 1)) if y is None else to_host(y).astype(np.float64)
    spread = float(np.std(centre)) or float(np.max(np.abs(centre))) or 1.0
    zero = np.zeros((centre.shape[0], m))

    def scattered(size: float) -> HostArray:
        return np.asarray(size * rng.uniform(0.5, 1.0, size=zero.shape))

    found = [zero, zero + centre]
    for offset in CHECKED_OFFSETS:
        found += [centre + scattered(sign * spread * offset) for sign in (-1.0, 1.0)]
    return found + [scattered(size) for size in CHECKED_VALUES]


def rounding(*arrays: Array) -> float:
    """The largest rounding error of the types of some arrays: a loss may be computed in single precision."""
    found = [0.0]
    for array in arrays:
        xp = namespace(array)
        if xp.isdtype(array.dtype, "real floating"):
            found.append(float(xp.finfo(array.dtype).eps))
    return max(found)
