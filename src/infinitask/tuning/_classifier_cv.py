"""The classifier of every trade-off from data in one call, in the manner of ``RidgeCV``."""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators import InfiniteCostSensitiveClassifier
from infinitask.tuning._cv import Contest, SelfTuned

__all__ = ["InfiniteCostSensitiveClassifierCV"]


class InfiniteCostSensitiveClassifierCV(SelfTuned, InfiniteCostSensitiveClassifier):
    """An :class:`~infinitask.InfiniteCostSensitiveClassifier` whose kernel and λ are chosen by cross-validation.

    The way is that of :class:`~infinitask.tuning.InfiniteQuantileRegressorCV`, with the cost-sensitive hinge loss,
    averaged over the deciles of the measure, instead of the pinball loss. The bias is all but free, which suits rare
    classes.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do.
    alphas : array (k,) or None
        The λ that compete; None: as many as needed of eighteen.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn. None: five shuffled folds with the same share of the classes, repeated up to four times
        where there are few rows.
    rule : {"one-se", "best"}
        A λ that all but ignores the inputs unless they surely help, and of others the largest that is about as good as
        the best; or the best in any case.
    theta
        As for :class:`~infinitask.InfiniteCostSensitiveClassifier`.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, solver, tol, max_iter, device, verbose
        As there, for the last fit.
    random_state : None, int or numpy.random.RandomState
        For the folds, and as there.

    Attributes
    ----------
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    ignores_inputs_ : bool
        Whether a λ was taken that all but ignores the inputs: nothing was surely better.
    cv_results_ : dict
        ``kernels``, ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x`` (folds,) and ``best``, as for
        :class:`~infinitask.tuning.InfiniteQuantileRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask.tuning import InfiniteCostSensitiveClassifierCV
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifierCV(random_state=0).fit(X, y)
    >>> cautious, bold = model.predict(X, theta=[-0.9, 0.9]).mean(axis=0)
    >>> bool(cautious < 0.5 < bold)  # the share of alarms
    True
    """

    # with one positive in twenty the decision flips near θ = 1 only, and 1e-4 is enough to keep it from doing so
    _bias_ridge = _last_bias_ridge = 1e-7

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        alphas: Any = None,
        cv: Any = None,
        rule: str = "one-se",
        theta: Any = 0.0,
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
        return Contest(y, 1.0, 0.0, levels, bias_gamma=0.5)

    def _losses(self, contest: Contest, rows: HostArray, h: HostArray) -> HostArray:
        y, theta = contest.targets[rows][:, None], contest.levels
        cost = np.where(y > 0.0, 1.0 + theta, 1.0 - theta) / 2.0
        return np.asarray(np.mean(cost * np.maximum(1.0 - y * h, 0.0), axis=1))

    def _constant(self, contest: Contest, rows: HostArray, weight: HostArray) -> HostArray:
        theta = contest.levels
        positive = float(weight[rows] @ (contest.targets[rows] > 0.0)) / float(np.sum(weight[rows]))
        return np.where(positive * (1.0 + theta) > (1.0 - positive) * (1.0 - theta), 1.0, -1.0)
