r"""Gradients of the learnt function in x: ∇ₓh(x)(θ), and the average of its outer product.

.. math:: M = \int \sum_i \omega_i \, \nabla_x h(x_i)(\theta) \, \nabla_x h(x_i)(\theta)^\top \, d\mu(\theta)

shows along which directions of the feature space h varies, in the units of y² by those of x. As h(x)(θ) = φ(x)ᵀCψ(θ) +
b(θ), the integral over θ is the sum over a few functions φ(x)ᵀB_s: with G = ∫ψψᵀdμ, those of the largest singular
values of C√G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, place, row_blocks, to_host
from infinitask.features import FeatureMap, FourierMap
from infinitask.features._maps import CombinedMap, KernelMap
from infinitask.field import Field
from infinitask.measures import Quadrature

ACCURACY = 1e-6
"""The part of ∫‖h(·)(θ)‖²dμ, in the norm of the RKHS of k_X, that the functions φ(x)ᵀB_s may omit."""


@final
@dataclass(frozen=True, eq=False)
class Relevance:
    """The relevance of each feature; printed as a table, the most relevant feature first.

    Parameters
    ----------
    names : tuple of str
        The names of the d features, as in the data of the fit; "x0", "x1", … for an array.
    slope : ndarray (d,)
        √∫E(Δh/Δx_j)² dμ: the change of the prediction, in units of y per unit of x_j, from half a standard deviation
        below a row to half a standard deviation above it, as a root mean square over rows and tasks.
    effect : ndarray (d,)
        slope times the standard deviation of x_j, in units of y: the effect of one standard deviation of the feature.

    Examples
    --------
    >>> import numpy as np
    >>> Relevance(("age", "weight"), np.array([1.0, 2.0]), np.array([8.0, 0.5]))
    feature  slope  effect
    age          1       8
    weight       2     0.5
    """

    names: tuple[str, ...]
    slope: HostArray
    effect: HostArray

    @property
    def order(self) -> HostArray:
        """The positions of the features, the largest effect first, (d,)."""
        return np.argsort(-self.effect, kind="stable")

    def __repr__(self) -> str:
        shown = [int(j) for j in self.order[:20]]
        rows = [("feature", "slope", "effect")]
        rows += [(self.names[j], f"{self.slope[j]:.3g}", f"{self.effect[j]:.3g}") for j in shown]
        left, middle, right = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = [f"{a:<{left + 2}}{b:>{middle}}  {c:>{right}}" for a, b, c in rows]
        more = len(self.names) - len(shown)
        return "\n".join([*lines, f"... and {more} more"] if more else lines)


def input_gradients(field: Field, X: Array, theta: Array) -> HostArray:
    """Return ∇ₓh(x)(θ) for every task and row, (q, n, d).

    Parameters
    ----------
    field : Field
    X : array (n, d)
    theta : array (q,) or (q, d_Θ)

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.kernels import Linear
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = InfiniteQuantileRegressor(kernel=Linear(), n_nodes=10).fit(X, 3.0 * X[:, 0])
    >>> input_gradients(model.field_, X[:1], [0.5]).round(1) + 0.0
    array([[[3., 0.]]])
    """
    return to_host(_gradients(field.left, field.psi(theta).T, X))


def gradient_outer_product(
    field: Field,
    quadrature: Quadrature,
    X: Array,
    weight: HostArray | None = None,
    *,
    diagonal: bool = False,
) -> HostArray:
    """Return M of a learnt function, (d, d), or its diagonal, (d,).

    Parameters
    ----------
    field : Field
    quadrature : Quadrature
        Nodes and weights on Θ.
    X : array (n, d)
        The rows to average over, on the device of the data.
    weight : ndarray (n,) or None
        ω, summing to one; None: 1/n.
    diagonal : bool

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.measures import Quadrature
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, np.sin(2.0 * X[:, 1]))
    >>> rule = Quadrature(model.nodes_[:, None], model.weights_)
    >>> first, second = gradient_outer_product(model.field_, rule, X, diagonal=True)
    >>> bool(second > 10.0 * first)
    True
    """
    n, d = (int(size) for size in X.shape)
    weight = np.full(n, 1.0 / n) if weight is None else weight
    W = _components(field, quadrature)
    total = np.zeros(d if diagonal else (d, d))
    for rows in row_blocks(n, d * W.shape[1]):
        slopes = _gradients(field.left, W, X[rows, :])
        xp = namespace(slopes)
        weighted = slopes * as_like(np.sqrt(weight[rows]), slopes)[None, :, None]
        flat = xp.reshape(weighted, (-1, d))
        total += to_host(xp.sum(flat * flat, axis=0) if diagonal else flat.T @ flat)
    return total


def mean_square_slopes(
    field: Field, quadrature: Quadrature, X: HostArray, weight: HostArray, spread: HostArray, device: str | None = None
) -> HostArray:
    """Return ∫E(Δh/Δx_j)² dμ for every feature, (d,), over a step of half its spread to either side.

    This is not the derivative: functions of ranks are steep between neighbouring values, and those of a Laplacian
    kernel have a kink at every landmark, which is unrelated to the relevance of a feature.

    Parameters
    ----------
    field : Field
    quadrature : Quadrature
    X : ndarray (n, d)
    weight : ndarray (n,)
        Summing to one.
    spread : ndarray (d,)
    device : str or None
        The device of the field.
    """
    squares = np.zeros(spread.size)
    for j in np.flatnonzero(spread > 0.0):
        step = np.zeros(spread.size)
        step[j] = 0.5 * spread[j]
        ahead, behind = (to_host(field(place(X + sign * step, device), quadrature.nodes)) for sign in (1.0, -1.0))
        squares[j] = weight @ (((ahead - behind) / (2.0 * step[j])) ** 2 @ quadrature.weights)
    return squares


def _components(field: Field, quadrature: Quadrature) -> HostArray:
    """Return W (s, s') with ∫ f(h(·)(θ)) dμ ≈ Σ_s f(φᵀB_s) for B = CW and quadratic f."""
    psi = field.psi(quadrature.nodes)
    e, V = np.linalg.eigh(psi.T @ (quadrature.weights[:, None] * psi))
    W = V * np.sqrt(np.maximum(e, 0.0))
    B = field.coef @ W
    energy, axes = np.linalg.eigh(B.T @ B)
    energy, axes = energy[::-1], axes[:, ::-1]
    left = np.sum(energy) - np.cumsum(energy)
    kept = 1 + int(np.sum(left > ACCURACY * np.sum(energy)))
    return np.asarray(W @ axes[:, :kept])


def _gradients(phi: FeatureMap, R: HostArray, X: Array) -> Array:
    """Return the gradients of the columns of φ(x)R, (q, n, d)."""
    if isinstance(phi, CombinedMap):
        return _gradients(phi.map, to_host(phi.right) @ R, X)
    if isinstance(phi, KernelMap):
        folded = phi.then(R)
        assert isinstance(folded, KernelMap)
        return phi.kernel.gradient(X, as_like(phi.landmarks, X), as_like(folded.transform, X))
    if isinstance(phi, FourierMap):
        xp, W = namespace(X), as_like(phi.frequencies, X)
        q = int(W.shape[1])
        angles, R = X @ W, as_like(R / q**0.5, X)
        cos, sin = xp.cos(angles), xp.sin(angles)
        return xp.stack(
            [(cos * R[q:, k] - sin * R[:q, k]) @ xp.matrix_transpose(W) for k in range(int(R.shape[1]))], axis=0
        )
    raise TypeError(
        f"The model has features of the kind {type(phi).__name__}, of which no gradients in x are known; fit with a "
        "kernel of inputs, not with a Gram matrix."
    )
