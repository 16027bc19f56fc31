"""Infinite kernel ridge regression: the regularisation path as one function of log₁₀ λ."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from sklearn.base import RegressorMixin

from infinitask._base.arrays import HostArray
from infinitask._base.validation import flag, number
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.estimators._shared import estimator
from infinitask.estimators._sources import in_kind
from infinitask.fitting._recipe import Units
from infinitask.measures._spaces import as_measure
from infinitask.streaming._sampling import Survey
from infinitask.tasks import RidgePathTask
from infinitask.tasks.ridge_path import DECADES

__all__ = ["InfiniteKernelRidge"]


@estimator
class InfiniteKernelRidge(RegressorMixin, BaseInfiniteTask):
    """Kernel ridge regression for every λ from one fit; λ is chosen at prediction.

    min_h ∫ ½ E (y − h(x)(θ))² + ½ 10^θ ‖h(·)(θ)‖² dμ(θ), θ = log₁₀ λ: the regularisation path as one function.
    The tasks are not coupled: at every node, h(·)(θ) is the kernel ridge regression with λ = 10^θ. Between the nodes,
    the task kernel interpolates.

    Parameters
    ----------
    log_alpha : float, default=-3.0
        log₁₀ λ that ``predict`` and ``score`` use by default.
    centred : bool, default=True
        Whether the mean of y is subtracted before the fit and added to predictions; False: the formula for y itself.
    task_kernel : str or task kernel object, default="matern52"
        The kernel that interpolates the path between the nodes: "matern52", "matern32", "rbf", or an object. "diagonal"
        predicts at the nodes only. A kernel that restricts h at the nodes ("constant", "polynomial", a wide Gaussian)
        couples the tasks.
    task_gamma : float or None, default=None
        Bandwidth of a task kernel given by name; None: σ is eight times the mean gap between nodes, or 2.5 times for
        "rbf".
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on log₁₀ λ; None: uniform on [−6, 1]. It determines the positions of the nodes, and their weights in
        ``objective_`` and ``dual_gap_``.
    n_nodes : int or None, default=None
        m; None: 30. With about four per decade, values between the nodes agree to 1e-4.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    λ weighs the *mean* of the squared errors, so ``sklearn.kernel_ridge.KernelRidge(alpha=n * λ)`` is the same
    regression. With sample weights ω_i, here normalised to sum one, it is ``KernelRidge(alpha=λ)`` fitted with
    ``sample_weight=ω``. Neither model learns a bias; here the mean of y replaces it, unless ``centred=False``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from infinitask import InfiniteKernelRidge
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> path = InfiniteKernelRidge(gamma=5.0, centred=False).fit(X, y)
    >>> path.predict(X, log_alpha=[-5.0, -3.0, -1.0]).shape
    (100, 3)
    >>> refitted = KernelRidge(alpha=100 * 10**-3.0, kernel="rbf", gamma=5.0).fit(X, y)
    >>> bool(np.allclose(path.predict(X, log_alpha=-3.0), refitted.predict(X), atol=1e-3))
    True
    """

    _asked_by = "log_alpha"
    _constraints: ClassVar = {"log_alpha": partial(number, low=-DECADES, high=DECADES, open_low=False), "centred": flag}

    log_alpha: float = -3.0
    centred: bool = True
    task_kernel: Any = "matern52"
    task_gamma: Any = None
    measure: Any = None
    quadrature: Any = "gauss-legendre"
    n_nodes: int | None = None

    def _task(self) -> RidgePathTask:
        return RidgePathTask.over(as_measure(self.measure, RidgePathTask().measure))

    def _choices(self) -> dict[str, Any]:
        task = self._task()
        nodes = task.defaults.nodes if self.n_nodes is None else int(self.n_nodes)
        gamma = task.interpolating_gamma(self.task_kernel, nodes) if self.task_gamma is None else self.task_gamma
        return {"bias_kernel": None, "alpha": task.smallest_ridge, "task_gamma": gamma}

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        prepared = self._regression(self.recipe(), X, y, sample_weight)
        if not self.centred:
            return prepared
        assert prepared.y is not None
        counted = prepared.weight > 0.0
        y, weight = prepared.y[counted], prepared.weight[counted]
        units = Units.of(y, weight, centred=True)
        # exact sums: they depend neither on the order of the rows nor on how repeated rows are given
        mean = units.centre + units.spread * (math.fsum(weight * units.inside(y)) / math.fsum(weight))
        return prepared._replace(recipe=replace(prepared.recipe, units=replace(units, centre=mean)))

    def _prepared_for_all(self, prepared: Prepared, survey: Survey) -> Prepared:
        """Subtract the mean of all rows, not that of the sample."""
        recipe = prepared.recipe
        if not self.centred or recipe.units is None:
            return prepared
        return prepared._replace(recipe=replace(recipe, units=replace(recipe.units, centre=survey.mean)))

    @in_kind
    def predict(self, X: Any, log_alpha: Any = None) -> HostArray:
        """Predict by ridge regression: (n,) for one λ, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        log_alpha : float, array (q,) or None
            log₁₀ λ; None: the constructor's ``log_alpha``.
        """
        return self._values(X, self.log_alpha if log_alpha is None else log_alpha, "log_alpha")
