"""Infinite quantile regression: the whole conditional quantile function from one fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from infinitask._array import HostArray
from infinitask.estimators.base import BaseInfiniteTask, check_number
from infinitask.losses import Loss, MQuantile, Pinball

__all__ = ["InfiniteQuantileRegressor"]


class InfiniteQuantileRegressor(RegressorMixin, BaseInfiniteTask):
    """min_h ∫ E max(θr, (θ−1)r) dθ + λ_nc ∫ E (−∂h/∂θ)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖², r = y − h(x)(θ) − b(θ).

    One fit learns the quantile of every level θ ∈ (0, 1), in order; any level can be asked for afterwards.

    Parameters
    ----------
    noncrossing : float, default=1.0
        λ_nc, the weight of the penalty on quantile curves that cross. It needs a task kernel with a derivative.
    smoothing : float, default=0.0
        κ of M-quantiles: the kink of the pinball loss is rounded on [−κ, κ]. A statistical choice; the solver needs
        none.
    quantiles : float or array, default=0.5
        The levels that ``predict`` answers when none are asked for.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressor(alpha=1e-4).fit(X, y)
    >>> model.predict(X, quantiles=[0.05, 0.5, 0.95]).shape
    (100, 3)
    >>> model.dual_gap_ <= 1e-4
    True
    """

    def __init__(
        self,
        *,
        noncrossing: float = 1.0,
        smoothing: float = 0.0,
        quantiles: Any = 0.5,
        kernel: Any = "rbf",
        gamma: Any = "median",
        task_kernel: Any = "rbf",
        task_gamma: Any = None,
        bias_kernel: Any = "task",
        alpha: float = 1e-3,
        alpha_bias: float | None = None,
        measure: Any = None,
        quadrature: Any = "gauss-legendre",
        n_nodes: int | None = None,
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            task_kernel=task_kernel,
            task_gamma=task_gamma,
            bias_kernel=bias_kernel,
            alpha=alpha,
            alpha_bias=alpha_bias,
            measure=measure,
            quadrature=quadrature,
            n_nodes=n_nodes,
            features=features,
            rank=rank,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.noncrossing = noncrossing
        self.smoothing = smoothing
        self.quantiles = quantiles

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check of "a good score" sets alpha = 0.01 and wants more than 0.5, with R² in mind. D² of
        # absolute losses is about 1 − √(1 − R²): at that alpha the check's data give 0.36, at the default alpha 0.61.
        tags.regressor_tags.poor_score = True
        return tags

    def _loss(self) -> Loss:
        smoothing = check_number("smoothing", self.smoothing, low=0.0, open_low=False)
        return MQuantile(smoothing) if smoothing > 0.0 else Pinball()

    def _noncrossing(self) -> float:
        return check_number("noncrossing", self.noncrossing, low=0.0, open_low=False)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the quantile function.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        recipe = self._recipe()
        self._check_default("quantiles", recipe)
        X, y, weight = self._validated(X, y, sample_weight, y_numeric=True)
        return self._fit(recipe, X, y.astype("float64"), weight)

    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """The conditional quantiles: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``quantiles``.
        """
        return self._values(X, self.quantiles if quantiles is None else quantiles, "quantiles", strict=True)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> HostArray:
        """The central interval from level (1 − coverage)/2 to (1 + coverage)/2: (n, 2).

        Parameters
        ----------
        X : array (n, d)
        coverage : float in (0, 1)
        """
        coverage = check_number("coverage", coverage, low=0.0, high=1.0)
        ends = [round(0.5 - 0.5 * coverage, 15), round(0.5 + 0.5 * coverage, 15)]
        return self._values(X, ends, f"coverage={coverage:g} needs the quantiles at both ends, and this", strict=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D² of the integrated pinball loss: 1 − loss / loss of the best constants.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None

        Returns
        -------
        float
            At most 1; 0 for a model no better than the unconditional quantiles of y.
        """
        check_is_fitted(self)
        predicted = self._values(X, self.nodes_, "quantiles")
        y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(predicted, y)
        weight = _check_sample_weight(sample_weight, predicted, dtype=np.float64, ensure_non_negative=True)
        null = np.quantile(y, self.nodes_, method="inverted_cdf", weights=weight)
        loss = Pinball()

        def integrated(h: HostArray) -> float:
            return float(weight @ loss.value(self.nodes_, y[:, None], h) @ self.weights_)

        worst = integrated(np.broadcast_to(null, predicted.shape))
        best = integrated(predicted)
        if worst == 0.0:
            return 1.0 if best == 0.0 else 0.0
        return 1.0 - best / worst
