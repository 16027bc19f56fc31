"""Kernels with a metric on the features, given or learnt."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like
from infinitask._base.validation import numbers

from ._base import Formula, InputKernel
from ._input import RBF, _Around, _Changing


class Metric(_Changing, InputKernel):
    """Compares rows along given directions of the feature space: distances become √((x − z)ᵀ R Rᵀ (x − z)).

    k(x, z) = k₀(xR, zR). The columns of R are the relevant directions, and their lengths are the weights.
    :class:`Scaled` is the special case of a diagonal R.

    Parameters
    ----------
    kernel : InputKernel
        k₀. A data-dependent ``gamma`` is computed from xR.
    root : array (d, p)
        R.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> kernel = Metric(RBF(gamma=1.0), [[1.0], [-1.0]])
    >>> kernel(np.array([[1.0, 5.0]]), np.array([[2.0, 6.0]]))  # the sum of both features does not count
    array([[1.]])
    >>> kernel
    Metric(kernel=RBF(gamma=1.0), root=<2 × 1>)
    """

    def __init__(self, kernel: InputKernel, root: Any) -> None:
        self.kernel = kernel
        self.root = root

    def formula(self) -> Formula:
        """Return k₀ of rotated features."""
        return "metric", {"root": numbers("Metric: root", self.root)}, (self._inner(),)

    def spectral(self, n_features_in: int, n_components: int, rng: np.random.Generator) -> HostArray:
        """Return R w for the frequencies w of k₀."""
        root = self._numbers(n_features_in)
        return np.asarray(root @ self._inner().spectral(root.shape[1], n_components, rng))

    def _changed(self, X: Array) -> Array:
        return X @ as_like(self._numbers(int(X.shape[1])), X)

    def _pulled_back(self, slopes: Array, X: Array) -> Array:
        return slopes @ as_like(self._numbers(int(X.shape[1])).T, X)

    def _numbers(self, d: int) -> HostArray:
        root = numbers("Metric: root", self.root)
        if root.ndim != 2 or root.shape[0] != d or root.shape[1] == 0 or not np.all(np.isfinite(root)):
            raise ValueError(
                f"Metric was given a root of shape {root.shape} for data with {d} columns; it must be an array "
                f"({d}, p) of finite numbers, with a column for each direction."
            )
        return root


class LearntMetric(_Around, InputKernel):
    """Learns from the targets how relevant each feature, or each direction of the feature space, is.

    k(x, z) = k₀(xR, zR) with R Rᵀ = (1 − ρ) M + ρ D. M is the average of ∇ₓh ∇ₓhᵀ over rows and tasks for the learnt
    function h itself, divided by its trace. D is the plain metric, in which each feature is measured in units of its
    spread. A quick fit gives the first M, and a quick fit in that metric gives the next one. The metric with the
    smallest leave-one-out error is selected. The final fit is an ordinary fit with the selected kernel:
    ``kernel_`` is a :class:`Scaled` or a :class:`Metric`.

    Parameters
    ----------
    kernel : InputKernel or None, default=None
        k₀; None: ``RBF()``. A ``gamma`` given by a rule is resolved in the new metric. If λ is "auto", half of the
        length scale of the rule, and two and four times it, are tried as well.
    diagonal : bool, default=True
        Whether to learn only one scale for each feature. False: learn directions, which needs more rows.
    iterations : int, default=3
        The number of times that M is learnt.
    shrinkage : float or None, default=None
        ρ in [0, 1]; None: it decreases with the number of rows per feature.

    Notes
    -----
    The metric needs targets. It can be used as ``kernel`` directly, or inside a sum, a product or :class:`Warped`.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.normal(size=200)
    >>> model = InfiniteQuantileRegressor(kernel=LearntMetric(), n_nodes=10).fit(X, y)
    >>> int(np.argmax(model.kernel_.scales))
    0
    """

    def __init__(
        self,
        kernel: InputKernel | None = None,
        diagonal: bool = True,
        iterations: int = 3,
        shrinkage: float | None = None,
    ) -> None:
        self.kernel = kernel  # type: ignore[assignment]  # None is a default, not yet a kernel
        self.diagonal = diagonal
        self.iterations = iterations
        self.shrinkage = shrinkage

    needs_targets = True

    def plain(self) -> InputKernel:
        """k₀."""
        return RBF() if self.kernel is None else self._inner()

    def resolve(self, X: Array) -> Self:
        """Raise an error: the relevance of features cannot be learnt without targets."""
        raise TypeError(
            "LearntMetric learns from targets, and was asked for a kernel of inputs alone; give it as kernel to an "
            "estimator that is fitted to targets, by itself or in a sum, a product or Warped. For level sets use "
            "Scaled or Metric with numbers of your own."
        )

    def __call__(self, X: Array, Z: Array) -> Array:
        return self.resolve(X)(X, Z)

    def diag(self, X: Array) -> Array:
        """Raise an error, like :meth:`resolve`."""
        return self.resolve(X).diag(X)
