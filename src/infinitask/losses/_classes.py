"""Hinge losses of many classes, whose costs are chosen after the fit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace
from infinitask._base.validation import count
from infinitask.losses._base import BoxLoss, Row
from infinitask.losses._rows import _Rounded


class _Coded(_Rounded):
    """A hinge whose targets are classes, encoded as numbers."""

    n_classes: int

    @property
    def codes(self) -> HostArray:
        """The numbers that encode the classes as targets, (K,): equally spaced on [−1, 1], the range of f."""
        return np.linspace(-1.0, 1.0, self._count())

    def _count(self) -> int:
        return count(f"{type(self).__name__}: n_classes", self.n_classes, least=2)

    def check_targets(self, y: Array | None) -> None:
        """Check that the targets are codes of classes."""
        if y is None or y.shape[1] != 1 or not bool(namespace(y).all(namespace(y).any(self._is(y), axis=1))):
            raise ValueError(
                f"{self!r} was given targets other than its codes {self.codes.tolist()}; write each class as its code, "
                "or use InfiniteCostSensitiveClassifier, which takes any labels."
            )

    def _is(self, y: Array) -> Array:
        """Return the class of each target as indicators, (n, K) of bool."""
        return namespace(y).abs(y - as_like(self.codes, y)) < 0.5 / (self._count() - 1)


class OneAgainstRest(_Coded, BoxLoss):
    """For decisions between K classes: the cost-sensitive hinge of each class against all others.

    A task is a trade-off θ ∈ [−1, 1] together with a class, (θ, k), and with s = 1 for y = k and s = −1 for y ≠ k,

        ℓ_(θ,k)(y, f) = √K c (1 − s f)₊ ,  c = (1 + θ s)/2 .

    The f that minimises the expected loss is the sign of P(y = k | x) − (1 − θ)/2. Pairs weigh w_j/K, so the objective
    is 1/√K times the sum over the classes, between their mean and their sum: with the λ of ridge regressions of
    indicators, five classes that overlap prefer the sum, twenty clouds the mean, and this is within a tenth of the
    better log loss for both.

    Parameters
    ----------
    n_classes : int, at least 2
        K.
    kappa : float, at least 0
        If positive, the kink is rounded: ψ₊^κ(1 − s f), as in :class:`CostSensitiveHinge`.

    Examples
    --------
    >>> import numpy as np
    >>> loss = OneAgainstRest(4)
    >>> tasks = np.array([[0.5, k] for k in range(4)])
    >>> loss.value(tasks, loss.codes[:2, None], np.zeros((2, 4)))  # a row of class 0, and one of class 1
    array([[1.5, 0.5, 0.5, 0.5],
           [0.5, 1.5, 0.5, 0.5]])
    """

    dim = 2
    target_bound = 1.0

    def __init__(self, n_classes: int = 3, kappa: float = 0.0) -> None:
        self.n_classes = n_classes
        self.kappa = kappa

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """Trade-offs in [−1, 1], classes in [0, K − 1]."""
        return ((-1.0, 1.0), (0.0, self._count() - 1.0))

    @property
    def separate_fields(self) -> int:  # type: ignore[override]
        """K."""
        return self._count()

    def goal(self, theta: Array, y: Array | None) -> Array | None:
        """Return s, 1 at the tasks of class y and −1 at all others."""
        if y is None:
            return None
        xp, half = namespace(theta, y), 1.0 / (self._count() - 1)
        own = xp.abs(y - (2.0 * half * theta[:, 1] - 1.0)) < half
        return 2.0 * xp.astype(own, theta.dtype) - 1.0

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return s·u ∈ [0, √K c], q = κ/(√K c)."""
        s = self.goal(theta, y)
        if s is None:
            raise ValueError("OneAgainstRest was given no classes; it needs targets.")
        xp = namespace(theta, y)
        cost = (0.5 * math.sqrt(self._count())) * (s + theta[:, 0])  # its sign is that of s
        soft = self._softness(xp.abs(cost))
        return Row(xp.clip(cost, max=0.0), xp.clip(cost, 0.0), soft_low=soft, soft_high=soft)


class MultiClassHinge(_Coded, BoxLoss):
    """For decisions between K classes with cost θ_k of a false negative of class k: the hinge of Lee, Lin and Wahba.

    Each class has a field f_k(x)(θ), and Σ_k f_k = 0. With costs θ_k ≥ 0 that sum to one the loss is

        ℓ_θ(y, f) = (K/2) Σ_{k≠y} θ_y (f_k + 1/(K − 1))₊ .

    The f that minimises the expected loss is 1 for the class with the largest θ_k P(y = k | x), and −1/(K − 1) for all
    others: the decision of least cost. The factor K/2 makes the costs ½ on average, as for two classes,
    where the loss equals :class:`CostSensitiveHinge`.

    A task is a pair of costs and a class, (θ_1, …, θ_K, k), and the loss at a pair is the part of class k. Pairs weigh
    w_j/K, so the part is multiplied by K: (K²/2) θ_y (f + 1/(K − 1))₊ for k ≠ y, and 0 for k = y.

    Parameters
    ----------
    n_classes : int, at least 2
        K.
    kappa : float, at least 0
        If positive, the kink is rounded: ψ₊^κ(f + 1/(K − 1)), as in :class:`CostSensitiveHinge`.

    References
    ----------
    Y. Lee, Y. Lin and G. Wahba. Multicategory support vector machines. Journal of the American Statistical Association
    99, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> loss = MultiClassHinge(3)
    >>> pairs = np.array([[0.2, 0.2, 0.6, k] for k in range(3)])
    >>> loss.value(pairs, loss.codes[:, None], np.zeros((3, 3))).round(2) + 0.0  # a row for each true class
    array([[0.  , 0.45, 0.45],
           [0.45, 0.  , 0.45],
           [1.35, 1.35, 0.  ]])
    """

    def __init__(self, n_classes: int = 3, kappa: float = 0.0) -> None:
        self.n_classes = n_classes
        self.kappa = kappa

    @property
    def dim(self) -> int:  # type: ignore[override]
        """K + 1: the costs and the class."""
        return self._count() + 1

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """Costs in [0, 1], classes in [0, K − 1]."""
        return ((0.0, 1.0),) * self._count() + ((0.0, self._count() - 1.0),)

    def goal(self, theta: Array, y: Array | None) -> Array | None:
        """Return −1/(K − 1), the ideal value of f_k for all classes except y."""
        return None if y is None else 0.0 * y - 1.0 / (self._count() - 1)

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ [−c, 0] with c = (K²/2) θ_y for k ≠ y and 0 for k = y, q = κ/c."""
        if y is None:
            raise ValueError("MultiClassHinge was given no classes; it needs targets.")
        xp, K = namespace(theta, y), self._count()
        costs = theta[:, :K] * (0.5 * K * K)
        other = xp.abs(theta[:, K:] - as_like(np.arange(K, dtype=np.float64), theta)) > 0.5  # (m, K), whether k ≠ y
        # a product with zeros and ones selects the column of y: it is exact and needs no indexing on a device
        cost = xp.astype(self._is(y), theta.dtype) @ xp.where(other, costs, xp.zeros_like(costs)).T
        soft = self._softness(cost)
        return Row(-cost, xp.zeros_like(cost), soft_low=soft, soft_high=soft)
