"""A measure on the costs of many classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from infinitask._base.arrays import HostArray
from infinitask._base.validation import SUPPORT_SLACK, count, number
from infinitask.measures._spaces import Measure, _as_points


class ClassCosts(Measure):
    """Costs of K classes, θ_k ≥ 0 with Σ θ_k = 1; θ_k is proportional to 1/τ_k, and τ has a Dirichlet distribution.

    The decision of least cost is the class with the largest θ_k p_k, p_k = P(y = k | x). For τ uniform on the
    simplex (a = 1) that class is k for a fraction p_k of all θ: τ_k ∝ E_k with independent exponential E_k, and
    E_k/p_k is the smallest of these with probability p_k. For two classes θ is uniform.

    Parameters
    ----------
    n_classes : int, at least 2
        K.
    concentration : float, positive
        a of the Dirichlet distribution of τ; if a > 1, nearly equal costs have more weight.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.measures import Sobol
    >>> costs = Sobol(scramble=False)(ClassCosts(3), 512).nodes
    >>> costs.shape, bool(np.allclose(costs.sum(axis=1), 1.0))
    ((512, 3), True)
    >>> p = np.array([0.6, 0.3, 0.1])
    >>> (np.bincount(np.argmax(costs * p, axis=1)) / 512).round(2)
    array([0.61, 0.29, 0.1 ])
    """

    def __init__(self, n_classes: int = 3, concentration: float = 1.0) -> None:
        self.n_classes = n_classes
        self.concentration = concentration

    @property
    def dim(self) -> int:
        """K."""
        return count("ClassCosts: n_classes", self.n_classes, least=2)

    @property
    def support(self) -> tuple[HostArray, HostArray]:
        """The bounds (low, high), each of shape (K,)."""
        return np.zeros(self.dim), np.ones(self.dim)

    def ppf(self, u: HostArray) -> HostArray:
        """Map points of the unit cube to θ, (m, K) → (m, K); u_k is the probability of a Gamma variable below τ_k."""
        u, a = _as_points(u, self.dim), number("ClassCosts: concentration", self.concentration, low=0.0)
        E = -np.log1p(-u) if a == 1.0 else np.asarray(stats.gamma(a).ppf(u))
        inverse = np.min(E, axis=1, keepdims=True) / E
        return np.asarray(inverse / np.sum(inverse, axis=1, keepdims=True))

    def marginals(self) -> tuple[Measure, ...]:
        """Raise an error: costs that sum to one have no product measure."""
        raise ValueError(
            f"{self!r} is no product of measures of single costs, which rules on a grid need; use 'sobol', 'halton' or "
            "'monte-carlo'."
        )

    def contains(self, theta: HostArray) -> HostArray:
        """Whether each θ, (q, K), is nonnegative and sums to one: bool (q,)."""
        points: Any = _as_points(theta, self.dim)
        return np.asarray(
            np.all(points >= -SUPPORT_SLACK, axis=1) & (np.abs(np.sum(points, axis=1) - 1.0) <= 10.0 * SUPPORT_SLACK)
        )
