"""The conditional quantile function from data in one call, in the manner of ``RidgeCV``."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.losses import Loss, MQuantile, Pinball
from infinitask.tuning._cv import Contest, SelfTuned

__all__ = ["InfiniteQuantileRegressorCV"]

SMALLEST = 0.1
"""The unit of y is its median distance from the median, but at least so many times the mean one: most targets may be
nearly equal."""


class InfiniteQuantileRegressorCV(SelfTuned, InfiniteQuantileRegressor):
    """An :class:`~infinitask.InfiniteQuantileRegressor` whose kernel and λ are chosen by cross-validation.

    Candidate kernels (Gaussian, Matérn and Laplacian with one scale, Gaussian and Matérn with a scale for each input,
    sums over the inputs, and all of these on the ranks of the inputs) are ranked by the leave-one-out error of a kernel
    ridge regression of the ranks of y, which is closed form. The first five, their sum and the sum of the first of each
    family compete by the cross-validated pinball loss along a path of λ. Unless the winner is better than ignoring the
    inputs by more than one standard error of the difference, a λ is taken that all but ignores them; else the largest
    of the winner's that is worse than its best by no more than half of one. The model is then fitted to all rows.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do.
    alphas : array (k,) or None
        The λ that compete, for y in its own units, besides one that all but ignores the inputs; None: as many as needed
        of eighteen that follow the spread of y.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn. None: five shuffled folds, repeated up to four times where there are few rows.
    rule : {"one-se", "best"}
        Which λ: see above, or the one with the smallest loss.
    noncrossing : float, "rearrange" or "hard", default="rearrange"
        As for :class:`~infinitask.InfiniteQuantileRegressor`, whose default keeps the order at the training inputs.
        With "rearrange", the default here, no two levels cross at any x; it takes some microseconds a row.
    smoothing, quantiles
        As there.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, solver, tol, max_iter, device, verbose
        As there, for the last fit.
    random_state : None, int or numpy.random.RandomState
        For the folds, and as there.

    Attributes
    ----------
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    offset_ : float
        The median of y, which is taken off before the fit and added to its answers.
    ignores_inputs_ : bool
        Whether a λ was taken that all but ignores the inputs.
    cv_results_ : dict
        ``kernels`` (names, best of the ranking first), ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x``
        (folds,): the mean pinball losses, those of quantiles without inputs among them, inf where nobody looked because
        nothing was to be won; and ``best``, the position of the choice in ``losses``. Losses are means over the deciles
        of the measure, or over its atoms.

    Examples
    --------
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.tuning import InfiniteQuantileRegressorCV
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressorCV(random_state=0).fit(X, y)
    >>> model.predict(X, quantiles=[0.1, 0.9]).shape
    (100, 2)
    >>> model.cv_results_["losses"].shape
    (7, 18, 10)
    """

    _bias_ridge = 1e-4
    # outer quantiles are steep in θ: with 1e-4 and 800 rows of normal noise, 6% of new targets fell below that of 1%
    _last_bias_ridge = 1e-8

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        alphas: Any = None,
        cv: Any = None,
        rule: str = "one-se",
        noncrossing: float | str = "rearrange",
        smoothing: float = 0.0,
        quantiles: Any = 0.5,
        task_kernel: Any = "rbf",
        task_gamma: Any = None,
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
        self._store(locals())

    def _contest(self, y: HostArray, weight: HostArray, levels: HostArray) -> Contest:
        middle = np.array([0.5])
        centre = float(_quantiles(y, weight, middle)[0])
        away = np.abs(y - centre)
        # a single far target must not decide
        unit = max(float(_quantiles(away, weight, middle)[0]), SMALLEST * float(np.average(away, weights=weight)))
        unit = unit or 1.0
        return Contest((y - centre) / unit, unit, centre, levels, bias_gamma=2.0)

    def _contest_loss(self, contest: Contest) -> Loss:
        return MQuantile(self.smoothing / contest.unit) if self.smoothing > 0.0 else Pinball()

    def _losses(self, contest: Contest, rows: HostArray, h: HostArray) -> HostArray:
        levels, r = contest.levels, contest.targets[rows][:, None] - h
        return np.asarray(np.mean(np.maximum(levels * r, (levels - 1.0) * r), axis=1))

    def _constant(self, contest: Contest, rows: HostArray, weight: HostArray) -> HostArray:
        return _quantiles(contest.targets[rows], weight[rows], contest.levels)


def _quantiles(values: HostArray, weight: HostArray, levels: HostArray) -> HostArray:
    """Quantiles of weighted values."""
    order = np.argsort(values)
    mass = np.cumsum(weight[order])
    return np.asarray(values[order][np.searchsorted(mass, levels * mass[-1]).clip(max=order.size - 1)])
