r"""The joint eigenbasis of rows and columns, in which the Hessian is nearly diagonal.

Diagonalise Φᵀ diag(ω) Φ = U diag(e) Uᵀ and Σ_t ρ_t Ψ_tᵀ diag(w) Ψ_t = V diag(f) Vᵀ. If the curvature of integral t
were the same number ρ_t for all pairs, the Hessian in the unknowns Uᵀ C V would be *exactly* diagonal, λ + e_i f_j. The
curvature differs between pairs, but its mean at each node is known after one pass over the data. With it, the columns
are diagonalised again, Ψᵀ diag(curvature) Ψ = W diag(f) Wᵀ, and first-order methods use the metric λ + e_i f_j in the
unknowns Uᵀ C V W. If targets have heavy tails, outer nodes have a thousandth of the curvature of the others. A metric
that is diagonal in Uᵀ C V takes 4 to 11 times as many evaluations there, and up to twice as many elsewhere.

Few eigenvalues e matter: the ridge dominates directions with e_i f_j ≪ λ, and the metric there is λ. With many
features, only the leading eigenvectors are computed; the mean of the other eigenvalues replaces them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, double, namespace, to_host
from infinitask.objective import Objective, Smoothing, product

MAX_FEATURES_FOR_ALL = 400
"""All eigenvectors are computed up to this number of features, which takes 15 ms."""

LEADING_VECTORS = 200
"""The number of eigenvectors computed for more features: with 2000 features, a tenth of the time of computing all."""

DOMINATED = 0.02
"""The ridge dominates directions with e f up to this fraction of λ, or of the second largest e f if that is smaller;
the largest may be that of a constant. A fit to a gap of 1% does not need them."""


def dominated(e: HostArray, f: float, alpha: float) -> float:
    """The largest e of directions that a ridge λ dominates, for eigenvalues e of rows and the largest f of columns."""
    second = np.partition(e, -2)[-2] if e.size > 1 else np.max(e, initial=0.0)
    return DOMINATED * float(min(alpha / f, second)) if f > 0.0 else np.inf


def _gram(cols: HostArray, weights: HostArray) -> HostArray:
    return (cols.T * weights) @ cols


@dataclass(frozen=True, eq=False)
class Metric:
    """An estimate of the Hessian, which is diagonal in its own basis of rows and columns.

    Parameters
    ----------
    W : ndarray (s, s)
        Orthonormal.
    rows : ndarray (r, s), or (s,) if it is the same for all rows
        The Hessian in C, in the coordinates C W.
    bias : ndarray (s_b, s_b)
        The Hessian in c.
    leading : ndarray (k, s) or None
        Entries that replace ``rows`` in the directions ``U``.
    U : ndarray (r, k) or None
        Orthonormal.
    """

    W: HostArray
    rows: HostArray
    bias: HostArray
    leading: HostArray | None = None
    U: HostArray | None = None

    def solve(self, v: HostArray) -> HostArray:
        """M⁻¹ v, (size,)."""
        s = self.W.shape[0]
        size = v.size - self.bias.shape[0]
        out = np.empty_like(v)
        along = product(v[:size].reshape(-1, s), self.W)
        inside = along / self.rows
        if self.U is not None and self.leading is not None:
            shift = 1.0 / self.leading - 1.0 / self.rows
            inside += product(self.U, shift * product(self.U.T, along))
        out[:size] = product(inside, self.W.T).ravel()
        if self.bias.size:
            out[size:] = self._bias_inverse @ v[size:]
        return out

    @cached_property
    def _bias_inverse(self) -> HostArray:
        values, vectors = np.linalg.eigh(self.bias)
        return np.asarray((vectors / values) @ vectors.T)


@dataclass(frozen=True, eq=False)
class Eigenbasis:
    """The rotation, and the objective in rotated unknowns.

    Parameters
    ----------
    U : ndarray (r, k)
        Eigenvectors of the rows. The rows are rotated only if k = r.
    V : ndarray (s, s)
    V_b : ndarray (s_b, s_b) or None
    e : ndarray (k,)
        Eigenvalues of the rows.
    rest : float
        The mean of the omitted eigenvalues.
    objective : Objective
        The rotated objective.
    source : Objective
        The objective before the rotation.
    order : ndarray (n,) of int or None
        The rows of the source in the order of the rows of ``objective``; None: the same order.
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
        """Diagonalise an objective; ``like`` gives nearly correct eigenvectors of the rows, of a similar objective."""
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
        # The relative curvature of the integrals is not known yet. A tenth of that of the first one, trace for trace,
        # is typical of measured values for the non-crossing term; the exact ratio hardly changes the basis.
        traces = [max(float(np.trace(g)), np.finfo(float).tiny) for g in grams]
        mixed = sum(g * (1.0 if t == 0 else 0.1 * traces[0] / traces[t]) for t, g in enumerate(grams))
        V = np.linalg.eigh(np.asarray(mixed))[1]
        bias_cols = terms[0].bias_cols
        V_b = None if bias_cols is None else np.linalg.eigh(_gram(bias_cols, terms[0].weights))[1]
        whole = U.shape[0] == U.shape[1]
        return cls(U, V, V_b, e, rest, turned.rotated(U if whole else None, V, V_b), objective, order)

    def serves(self, objective: Objective) -> bool:
        """Whether an objective has the same rows and integrals as this one; its ridge may differ."""
        return self.source.rows is objective.rows and self.source.integrals is objective.integrals

    def over(self, objective: Objective) -> Eigenbasis:
        """Return the same basis for the full rows of which these are a sample; features and tasks are the same."""
        return replace(
            self,
            objective=objective.rotated(self.U if self.whole else None, self.V, self.V_b),
            source=objective,
            order=None,
        )

    def leading(self) -> tuple[HostArray, HostArray] | None:
        """Return the directions of rows that the ridge does not dominate: eigenvalues (k,) and eigenvectors (r, k).

        See :func:`dominated`. None if some of them are unknown.
        """
        first = self.objective.host_integrals[0]
        f = float(np.linalg.eigvalsh(_gram(first.cols, first.weights))[-1])
        kept = self.e > dominated(self.e, f, self.objective.alpha)
        kept[np.argmax(self.e)] = True
        return None if not self.whole and bool(np.all(kept)) else (self.e[kept], self.U[:, kept])

    @property
    def whole(self) -> bool:
        """Whether all eigenvectors are known and the rows are rotated."""
        return bool(self.U.shape[0] == self.U.shape[1])

    def metric(self, z: HostArray, smoothing: Smoothing) -> Metric:
        """The Hessian, including the ridge, if every node had its mean curvature, without its part in C and c."""
        objective = self.objective
        (r, s), ridge = objective.shape, objective.ridge + self.damping
        F, bias = np.zeros((s, s)), np.diag(ridge[r * s :])
        for curvature, term in zip(objective.node_curvature(z, smoothing), objective.host_integrals, strict=True):
            F += _gram(term.cols, curvature)
            if term.bias_cols is not None:
                bias += _gram(term.bias_cols, curvature)
        f, W = np.linalg.eigh(F)
        f = np.maximum(f, 0.0)
        leading = objective.alpha + np.outer(self.e, f)
        if self.whole:
            return Metric(W, leading, bias)
        return Metric(W, objective.alpha + self.rest * f, bias, leading, self.U)

    @cached_property
    def damping(self) -> HostArray:
        """The term that replaces the ridge of a free bias in a step, (size,); 0 for other unknowns.

        Nothing bounds the step of a free bias at a node without any curved loss. A hundredth of its usual curvature
        is used instead. That is the curvature for targets spread evenly over their scale, or λ itself if smaller: a
        field that mimics the bias costs at most λ.
        """
        objective = self.objective
        damping = np.zeros(objective.size)
        first = objective.host_integrals[0]
        if objective.free and first.bias_cols is not None:
            usual = np.minimum(first.weights @ first.bias_cols**2 / objective.scale, objective.alpha)
            damping[objective.size - objective.bias_size :] = 1e-2 * usual
        return damping

    def back(self, z: HostArray) -> HostArray:
        """Map rotated unknowns to the original ones."""
        return self._turned(z, self.U, self.V, self.V_b)

    def forth(self, z: HostArray) -> HostArray:
        """Map the original unknowns to rotated ones."""
        return self._turned(z, self.U.T, self.V.T, None if self.V_b is None else self.V_b.T)

    def smoothing_back(self, smoothing: Smoothing) -> Smoothing:
        """Return the smoothing for rows in the original order."""
        return smoothing if self.order is None else smoothing.reordered(np.argsort(self.order))

    def smoothing_forth(self, smoothing: Smoothing) -> Smoothing:
        """Return the smoothing for the rows of ``objective``, given that of rows in the original order."""
        return smoothing if self.order is None else smoothing.reordered(self.order)

    def _turned(self, z: HostArray, U: HostArray, V: HostArray, V_b: HostArray | None) -> HostArray:
        r, s = self.objective.shape
        C = z[: r * s].reshape(r, s) @ V.T
        c = z[r * s :] if V_b is None else V_b @ z[r * s :]
        return np.concatenate([(U @ C if self.whole else C).ravel(), c])


def _of_rows(objective: Objective, near: HostArray | None = None) -> tuple[HostArray, HostArray, float]:
    """Eigenvectors and eigenvalues of Φᵀ diag(ω) Φ, all or the leading ones, and the mean of the others.

    Uses ``near``, vectors close to the eigenvectors, if given. Otherwise it relies on the order of the features: they
    were selected one by one, the large ones first. Hence the leading eigenvectors are close to the first coordinates,
    and one multiplication by the matrix rotates the coordinates towards them.
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
    """Yield Φ and ω for blocks of rows, which avoids a second array of the size of Φ."""
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
    """Order the rows by their number of trailing zeros; return the order and where the zeros begin.

    Returns None if skipping the zeros would not pay. A Cholesky factor is triangular in the order of its pivots: half
    of its products are with zeros.

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
