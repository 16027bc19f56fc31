"""The learnt function of x and θ, and the posed problem whose unknowns define it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from infinitask._base.arrays import (
    IN_MEMORY,
    ON_DEVICE,
    Array,
    HostArray,
    as_like,
    namespace,
    one_blas_thread,
    row_blocks,
    to_host,
)
from infinitask._base.threads import shared_out
from infinitask.features import FeatureMap, Features, NodeMap, TaskFeatures, TaskMap
from infinitask.features._cholesky import Inverse
from infinitask.features._maps import CombinedMap
from infinitask.features._task import as_tasks
from infinitask.kernels import TaskKernel
from infinitask.losses._checks import Finding
from infinitask.measures import Quadrature
from infinitask.objective import Objective

__all__ = ["Field"]

KEPT_SECTIONS = 8
"""The number of cached sections x ↦ h(x)(θ): a service predicts the same levels repeatedly."""

LONGEST_KEPT = 4_096
"""The maximum number of tasks of a cached section."""


@final
@dataclass(frozen=True, eq=False)
class Field:
    """The learnt function: h(x)(θ) = φ(x)ᵀ C ψ(θ) + b(θ), with b(θ) = ψ_b(θ)ᵀ c + offset.

    Parameters
    ----------
    phi : FeatureMap
        φ, r features of x.
    psi : TaskMap
        ψ, s features of the task.
    coef : ndarray (r, s)
        C.
    bias_psi : TaskMap, NodeMap or None
        ψ_b; None without a bias.
    bias_coef : ndarray (s_b,) or None
        c.
    offset : float
        Subtracted from the targets before the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(50, random_state=0)
    >>> field = InfiniteQuantileRegressor(n_nodes=10).fit(X, y).field_
    >>> field(X[:3], [0.1, 0.5, 0.9]).shape
    (3, 3)
    >>> field(X[:3], [0.5], order=1).shape  # the slope in θ
    (3, 1)
    >>> field.paired(X[:3], [0.1, 0.5, 0.9]).shape  # to each row its own task
    (3,)
    """

    phi: FeatureMap
    psi: TaskMap
    coef: HostArray
    bias_psi: TaskMap | NodeMap | None = None
    bias_coef: HostArray | None = None
    offset: float = 0.0

    def __call__(self, X: Array, theta: Array, order: int = 0) -> HostArray:
        """Return ∂^order h(x)(θ)/∂θ^order for every row (n, d) and task (q, d_Θ) or (q,): (n, q)."""
        return self.at(theta, order)(X)

    def at(self, theta: Array, order: int = 0) -> Callable[[Array], HostArray]:
        """Return x ↦ ∂^order h(x)(θ)/∂θ^order at fixed tasks, (n, d) → (n, q), for many rows in blocks."""
        return self._section(as_tasks(theta), order)

    def paired(self, X: Array, theta: Array, order: int = 0) -> HostArray:
        """Return ∂^order h(x_i)(θ_i)/∂θ^order for rows (n, d), each with its own task, (n, d_Θ) or (n,): (n,)."""
        tasks = to_host(theta)
        n = X.shape[0]
        if tasks.shape[:1] != (n,):
            raise ValueError(
                f"Tasks of shape {tasks.shape} were given for {n} inputs; to pair them, give one task for each input, "
                f"an array of shape ({n},)."
            )
        values = np.empty(n)

        def fill(rows: slice) -> None:
            left = to_host(self.left(X[rows, :]))
            values[rows] = np.sum(left * self.psi(tasks[rows], order), axis=1) + self.bias(tasks[rows], order)

        _by_rows(fill, X, max(self.left.width, self.psi.transform.shape[0]))
        return values

    def bias(self, theta: Array, order: int = 0) -> HostArray:
        """Return b(θ), or its derivative, for every task: (q,)."""
        offset = self.offset if order == 0 else 0.0
        if self.bias_psi is None or self.bias_coef is None:
            return np.full(as_tasks(theta).shape[0], offset)
        return np.asarray(self.bias_psi(theta, order) @ self.bias_coef + offset)

    def at_levels(self, X: Array, levels: HostArray) -> Iterator[tuple[slice, HostArray]]:
        """Yield h at many levels (k,), for each block of rows: the rows, and h (rows, k)."""
        for rows in row_blocks(X.shape[0], levels.size, IN_MEMORY):
            yield rows, self(X[rows, :], levels)

    @cached_property
    def knows_nodes_only(self) -> bool:
        """Whether h is undefined between the nodes, because the task kernel is diagonal."""
        maps = (self.psi, self.bias_psi)
        return any(task_map is not None and task_map.diagonal for task_map in maps)

    @property
    def norm(self) -> float:
        """‖C‖_F: the norm of φᵀCψ in its RKHS, because φ and ψ are isometric."""
        return float(np.linalg.norm(self.coef))

    def sections(self, theta: Array) -> FeatureMap:
        """Return x ↦ h(x)(θ) − b(θ), the part that depends on x, at q tasks: (n, d) → (n, q)."""
        return self.left.then(self.psi(theta).T)

    def compact(self) -> Field:
        """Return the same function without the r × r numbers of T, which makes its features orthonormal.

        A prediction needs k(x, Z) (T C), with the r × s numbers T C. φ can still be called: it recomputes T up to
        rounding errors, which nearly dependent landmarks amplify; see :meth:`in_coordinates`.
        """
        field = replace(self, phi=self.phi.compact())
        vars(field)["left"] = self.left
        return field

    def in_coordinates(self) -> tuple[FeatureMap, HostArray]:
        """Return consistent φ and C: C = T⁻¹ (T C) with the T that φ has recomputed."""
        transform, folded = getattr(self.phi, "transform", None), getattr(self.left, "transform", None)
        if not isinstance(transform, Inverse) or transform.spanned is None:
            return self.phi, self.coef
        return self.phi, np.asarray(transform.lower.T @ to_host(folded))

    # ------------------------------------------------------------------------------------- what is kept
    @cached_property
    def left(self) -> FeatureMap:
        """The map x ↦ Cᵀφ(x): the s numbers of x that a prediction needs."""
        return self.phi.then(self.coef)

    def _section(self, tasks: HostArray, order: int) -> _Section:
        """Return x ↦ h(x)(θ) at these tasks, created or from the cache, which is not saved with the field."""
        key = order, tasks.shape, tasks.tobytes()
        kept: tuple[tuple[Any, _Section], ...] = vars(self).get("_kept", ())
        for known, section in kept:
            if known == key:
                return section
        psi = self.psi(tasks, order).T
        (s, q), p = psi.shape, self.left.width
        # φ(x) has p numbers: a prediction at q tasks costs pq in one product, ps + sq via Cᵀφ(x)
        direct = p * q <= (p + q) * s
        section = _Section(self.left.then(psi) if direct else CombinedMap(self.left, psi), self.bias(tasks, order))
        if tasks.size <= LONGEST_KEPT:
            # one assignment: a concurrent thread can only lose an entry
            object.__setattr__(self, "_kept", ((key, section), *kept[: KEPT_SECTIONS - 1]))
        return section

    def __getstate__(self) -> dict[str, Any]:
        # with T C, which predictions use: recomputed, it would differ by rounding
        return {part.name: getattr(self, part.name) for part in fields(self)} | {"left": self.left}


@final
@dataclass(frozen=True, eq=False)
class _Section:
    """The map x ↦ h(x)(θ) at fixed tasks: (n, d) → (n, q)."""

    map: FeatureMap
    bias: HostArray

    def __call__(self, X: Array) -> HostArray:
        values = np.empty((X.shape[0], self.bias.size))

        def fill(rows: slice) -> None:
            np.add(to_host(self.map(X[rows, :])), self.bias, out=values[rows])

        _by_rows(fill, X, max(self.map.width, self.bias.size))
        return values


def _by_rows(visit: Callable[[slice], None], X: Array, entries: int) -> None:
    """Call ``visit`` for all rows of X in blocks; a row needs ``entries`` numbers of memory."""
    on_host = isinstance(X, np.ndarray)
    blocks = row_blocks(X.shape[0], entries, IN_MEMORY if on_host else ON_DEVICE)
    if not on_host or len(blocks) < 2:
        for rows in blocks:
            visit(rows)
        return
    with one_blas_thread():  # the threads of the pool are enough
        shared_out(visit, blocks)


# -------------------------------------------------------------------------- the problem whose unknowns become h
@dataclass(frozen=True)
class Problem:
    """A posed problem: the objective, and the map from its unknowns to a field."""

    objective: Objective
    quadrature: Quadrature
    phi: Features
    psi: TaskFeatures
    psi_bias: TaskFeatures | None
    task_kernel: TaskKernel
    constant: float | None
    """The value of the constant feature that adds a bias with the task kernel to φ; None if there is none."""
    finding: Finding | None = None
    """The problem of the loss; None if there is none."""
    named: int = 0
    """The number of last rows that are not data but were named for the non-crossing penalty, see `_integrals`."""

    def field(self, z: HostArray) -> Field:
        """Convert unknowns to h."""
        s, in_bias = (0 if psi is None else psi.values[0].shape[1] for psi in (self.psi, self.psi_bias))
        C, c = z[: z.size - in_bias].reshape(-1, s), z[z.size - in_bias :]
        if self.constant is not None:
            return Field(self.phi.map, self.psi.map, C[1:], self.psi.map, self.constant * C[0])
        bias_map = None if self.psi_bias is None else self.psi_bias.map
        return Field(self.phi.map, self.psi.map, C, bias_map, None if bias_map is None else c)

    def only(self, rows: HostArray) -> Problem:
        """Return the same problem with some of its rows, and all named rows; the feature maps are unchanged."""
        n = int(self.objective.rows.shape[0])
        rows = np.concatenate([rows, np.arange(n - self.named, n)]) if self.named else rows
        objective = self.objective.only(rows)
        phi = replace(self.phi, values=self.phi.values[rows], gram=objective.gram)
        return replace(self, objective=objective, phi=phi)

    def with_ridge(self, alpha: float, alpha_bias: float) -> Problem:
        """Return the same problem with another λ and λ_b."""
        objective = self.objective.with_ridge(alpha, alpha_bias)
        constant = None if self.constant is None else float(np.sqrt(alpha / alpha_bias))
        if constant == self.constant:
            return replace(self, objective=objective)
        rows = self.objective.rows
        ones = as_like(np.full((rows.shape[0], 1), constant), rows)
        rows = namespace(rows).concat([ones, rows[:, 1:]], axis=1)
        return replace(self, objective=replace(objective, rows=rows), constant=constant)

    def values(self, z: HostArray, rows: Any) -> HostArray:
        """Return h at the nodes for some rows of the problem, (rows, m)."""
        objective, term = self.objective, self.objective.integrals[0]
        r, s = objective.shape
        phi = to_host(objective.rows[rows, :]).astype(np.float64)
        h = phi @ z[: r * s].reshape(r, s) @ to_host(term.cols).T
        return np.asarray(h if term.bias_cols is None else h + to_host(term.bias_cols) @ z[r * s :])
