r"""The joint eigenbasis of rows and columns, in which the Hessian is nearly diagonal.

Diagonalise Φᵀ diag(ω) Φ = U diag(e) Uᵀ and Σ_t ρ_t Ψ_tᵀ diag(w) Ψ_t = V diag(f) Vᵀ. If the curvature of integral t
were the same number ρ_t for all pairs, the Hessian in the unknowns Uᵀ C V would be *exactly* diagonal, λ + e_i f_j. It
is not the same for all, but its mean is known after one pass over the data, and the metric λ + e_i f_j is what a
first-order method needs.

Few eigenvalues e matter: directions with e_i f_j ≪ λ are held by the ridge, and there the metric is λ. So where there
are many features only the leading eigenvectors are computed, and the others count as one eigenvalue, their mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, double, namespace, to_host
from infinitask.objective import Objective, Smoothing, product

MAX_FEATURES_FOR_ALL = 400
"""Up to this number of features all eigenvectors are computed, which takes 15 ms."""

LEADING_VECTORS = 200
"""The number of eigenvectors that are computed for more features: with 2000 features a tenth of the time of all."""


def _gram(cols: HostArray, weights: HostArray) -> HostArray:
    return (cols.T * weights) @ cols


@dataclass(frozen=True, eq=False)
class Metric:
    """An estimate of the Hessian: diagonal, but for some directions of the rows.

    Parameters
    ----------
    diagonal : ndarray (size,)
    leading : ndarray (k, s) or None
        Entries that take the place of the diagonal in the directions ``U``.
    U : ndarray (r, k) or None
        Orthonormal.
    """

    diagonal: HostArray
    leading: HostArray | None = None
    U: HostArray | None = None

    def solve(self, v: HostArray) -> HostArray:
        """M⁻¹ v, (size,)."""
        inverse = 1.0 / self.diagonal
        out = v * inverse
        if self.U is not None and self.leading is not None:
            r, s = self.U.shape[0], self.leading.shape[1]
            # the diagonal is the same for all rows
            shift = 1.0 / self.leading - inverse[:s]
            out[: r * s] += product(self.U, shift * product(self.U.T, v[: r * s].reshape(r, s))).ravel()
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    """The rotation, and the objective in rotated unknowns.

    Parameters
    ----------
    U : ndarray (r, k)
        Eigenvectors of the rows. If k = r, the rows are rotated; else they stay as they are.
    V : ndarray (s, s)
    V_b : ndarray (s_b, s_b) or None
    e : ndarray (k,)
        Eigenvalues of the rows.
    rest : float
        The mean of the eigenvalues left out.
    objective : Objective
        Rotated.
    source : Objective
        Before the rotation.
    order : ndarray (n,) of int or None
        The rows of the source in the order of the rows of ``objective``; None: the same.
    """

    U: HostArray
    V: HostArray
    V_b: HostArray | None
    e: HostArray
    rest: float
    objective: Objective
    source: Objective
    order: HostArray | None = None

    @classmethod
    def of(cls, objective: Objective, like: Eigenbasis | None = None) -> Eigenbasis:
        """Diagonalise an objective, or nearly so with the eigenvectors of the rows of one that is ``like`` it."""
        if like is not None and like.serves(objective):
            rotated = like.objective.with_ridge(objective.alpha, objective.alpha_bias)
            return replace(like, objective=rotated, source=objective)
        near = None if like is None or like.U.shape[0] != objective.shape[0] else like.U
        turned, order = objective, None
        if isinstance(objective.rows, np.ndarray) and objective.shape[0] > MAX_FEATURES_FOR_ALL:
            found = staircase(objective.rows)
            if found is not None:
                order, reach = found
                turned = replace(objective.picked(order), reach=reach)
        U, e, rest = _of_rows(turned, near)
        terms = objective.host_integrals
        grams = [_gram(term.cols, term.weights) for term in terms]
        # The relative curvature of the integrals is not known yet. A tenth of the first one's, trace for trace, is
        # where the measured ones lie for the non-crossing term; the exact ratio turns the basis little.
        traces = [max(float(np.trace(g)), np.finfo(float).tiny) for g in grams]
        mixed = sum(g * (1.0 if t == 0 else 0.1 * traces[0] / traces[t]) for t, g in enumerate(grams))
        V = np.linalg.eigh(np.asarray(mixed))[1]
        bias_cols = terms[0].bias_cols
        V_b = None if bias_cols is None else np.linalg.eigh(_gram(bias_cols, terms[0].weights))[1]
        whole = U.shape[0] == U.shape[1]
        return cls(U, V, V_b, e, rest, turned.rotated(U if whole else None, V, V_b), objective, order)

    def serves(self, objective: Objective) -> bool:
        """Whether an objective has the rows and integrals of this one, and perhaps another ridge."""
        return self.source.rows is objective.rows and self.source.integrals is objective.integrals

    def over(self, objective: Objective) -> Eigenbasis:
        """The same basis for the rows of which this one's are a sample; features and tasks are the same."""
        return replace(
            self,
            objective=objective.rotated(self.U if self.whole else None, self.V, self.V_b),
            source=objective,
            order=None,
        )

    @property
    def whole(self) -> bool:
        """Whether all eigenvectors are known, and the rows rotated."""
        return bool(self.U.shape[0] == self.U.shape[1])

    def metric(self, z: HostArray, smoothing: Smoothing) -> Metric:
        """The Hessian, with the ridge, if every node had its mean curvature."""
        objective = self.objective
        (r, s), ridge = objective.shape, objective.ridge + self.damping
        f = np.zeros(s)
        f_b = np.zeros(objective.bias_size)
        for curvature, term in zip(objective.node_curvature(z, smoothing), objective.host_integrals, strict=True):
            f += curvature @ term.cols**2
            if term.bias_cols is not None:
                f_b += curvature @ term.bias_cols**2
        if self.whole:
            return Metric(ridge + np.concatenate([np.outer(self.e, f).ravel(), f_b]))
        diagonal = ridge + np.concatenate([np.tile(self.rest * f, r), f_b])
        return Metric(diagonal, objective.alpha + np.outer(self.e, f), self.U)

    @cached_property
    def damping(self) -> HostArray:
        """What takes the place of the ridge of a free bias in a step, (size,); 0 elsewhere.

        At a node where no loss is curved, nothing bounds the step of a free bias. A hundredth of its usual curvature
        does: of the curvature of targets spread evenly over their scale or, because a field that mimics the bias costs
        no more than λ, of λ itself if that is less.
        """
        objective = self.objective
        damping = np.zeros(objective.size)
        first = objective.host_integrals[0]
        if objective.free and first.bias_cols is not None:
            usual = np.minimum(first.weights @ first.bias_cols**2 / objective.scale, objective.alpha)
            damping[objective.size - objective.bias_size :] = 1e-2 * usual
        return damping

    def back(self, z: HostArray) -> HostArray:
        """Rotated unknowns → the original ones."""
        return self._turned(z, self.U, self.V, self.V_b)

    def forth(self, z: HostArray) -> HostArray:
        """The original unknowns → rotated ones."""
        return self._turned(z, self.U.T, self.V.T, None if self.V_b is None else self.V_b.T)

    def smoothing_back(self, smoothing: Smoothing) -> Smoothing:
        """The smoothing for rows in the original order."""
        return smoothing if self.order is None else smoothing.reordered(np.argsort(self.order))

    def smoothing_forth(self, smoothing: Smoothing) -> Smoothing:
        """The smoothing of rows in the original order, for the rows of ``objective``."""
        return smoothing if self.order is None else smoothing.reordered(self.order)

    def _turned(self, z: HostArray, U: HostArray, V: HostArray, V_b: HostArray | None) -> HostArray:
        r, s = self.objective.shape
        C = z[: r * s].reshape(r, s) @ V.T
        c = z[r * s :] if V_b is None else V_b @ z[r * s :]
        return np.concatenate([(U @ C if self.whole else C).ravel(), c])


def _of_rows(objective: Objective, near: HostArray | None = None) -> tuple[HostArray, HostArray, float]:
    """Eigenvectors and eigenvalues of Φᵀ diag(ω) Φ, all or the leading ones, and the mean of the others.

    With ``near``, vectors that are nearly such, those are taken. Without: the features are in the order in which they
    were found, the large ones first, so that the first coordinates are where to look for the leading eigenvectors, and
    one multiplication by the matrix turns them there.
    """
    r = objective.shape[0]
    if near is not None:
        e = np.diagonal(_moments(objective, near))
        return near, e, max(_total(objective) - float(np.sum(e)), 0.0) / max(r - near.shape[1], 1)
    if r <= MAX_FEATURES_FOR_ALL:
        e, U = np.linalg.eigh(_moments(objective))
        return U, np.maximum(e, 0.0), 0.0
    count = LEADING_VECTORS
    first = np.zeros((r, count))
    for phi, omega in _parts(objective):
        width = phi.shape[1]
        first[:width, : min(width, count)] += to_host(phi.T @ (omega[:, None] * phi[:, :count]))
    near_rows = as_like(first, double(objective.rows[:1, :]))
    Q = to_host(namespace(near_rows).linalg.qr(near_rows)[0])
    e, W = np.linalg.eigh(_moments(objective, Q))
    e = np.maximum(e, 0.0)
    return Q @ W, e, max(_total(objective) - float(np.sum(e)), 0.0) / (r - count)


def _parts(objective: Objective) -> Iterator[tuple[Array, Array]]:
    """Φ and ω of some rows at a time, so that no second array of the size of Φ is made."""
    n = int(objective.rows.shape[0])
    step = 512 if isinstance(objective.rows, np.ndarray) else n
    for block in (slice(start, min(start + step, n)) for start in range(0, n, step)):
        yield objective.features(block), objective.mean_weight[block]


def _moments(objective: Objective, Q: HostArray | None = None) -> HostArray:
    """(Φ Q)ᵀ diag(ω) Φ Q, for Q (r, k) or the identity."""
    total = None
    for phi, omega in _parts(objective):
        seen = phi if Q is None else phi @ as_like(Q[: phi.shape[1]], phi)
        part = to_host(seen.T @ (omega[:, None] * seen)).astype(np.float64)
        total = part if total is None else total + part
    assert total is not None
    return total


def _total(objective: Objective) -> float:
    """The trace of Φᵀ diag(ω) Φ."""
    vecdot = namespace(objective.rows).vecdot
    return sum(float(omega @ vecdot(phi, phi)) for phi, omega in _parts(objective))


def staircase(rows: HostArray) -> tuple[HostArray, HostArray] | None:
    """An order in which the rows end in ever fewer zeros, and where the zeros begin; None where it would not pay.

    A Cholesky factor is triangular in the order of its pivots: half of its products are with zeros.

    Examples
    --------
    >>> import numpy as np
    >>> staircase(np.array([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0], [5.0, 6.0, 0.0]]))
    (array([1, 2, 0]), array([1, 2, 3]))
    """
    r = rows.shape[1]
    filled = rows[:, ::-1] != 0.0
    reach = np.where(np.any(filled, axis=1), r - np.argmax(filled, axis=1), 1)
    if float(np.mean(reach)) > 0.8 * r:
        return None
    order = np.argsort(reach, kind="stable")
    return order, reach[order]
