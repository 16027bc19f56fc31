"""Quantile regression that tunes itself, in the manner of ``RidgeCV``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.losses import MQuantile, Pinball
from infinitask.tuning._choice import Contest, comparison_levels
from infinitask.tuning._left_out import repeated_splits
from infinitask.tuning._self_tuned import SelfTuned

SMALLEST_UNIT = 0.1
"""The unit of y is its median distance from the median, but at least this part of the mean one: most targets may be
nearly equal."""

CONTEST_BIAS_RIDGE, LAST_BIAS_RIDGE = 1e-4, 1e-8
"""λ_b of a fit that is compared, and of the last one, in units of y. Outer quantiles are steep in θ: with 1e-4 in the
last fit and 800 rows of normal noise, 6% of new targets fell below the quantile of 1%."""

CONTEST_BIAS_GAMMA = 2.0
"""γ of the bias of a fit that is compared."""


class InfiniteQuantileRegressorCV(SelfTuned):
    """Conditional quantiles of every level, with the kernel and λ chosen by cross-validation: no parameter to set.

    The answer is an :class:`~infinitask.InfiniteQuantileRegressor`, ``best_estimator_``; all its methods and fitted
    attributes are here as well. How it is chosen: candidate kernels (Gaussian, Matérn and Laplacian with one scale,
    Gaussian and Matérn with a scale for each input, sums over the inputs, and all of these on the ranks of the inputs)
    are ranked by the leave-one-out error of a kernel ridge regression of the ranks of y, which is closed form. The
    first five, their sum and the sum of the first of each family compete by the cross-validated pinball loss along a
    path of λ. Unless the winner is better than ignoring the inputs by more than one standard error of the difference, a
    λ is taken that all but ignores them; else the largest of the winner's that is worse than its best by no more than
    half of one. The model is then fitted to all rows.

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
    n_jobs : int or None
        Kernels that are compared side by side, in processes; the choice does not depend on it.
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
    best_estimator_ : InfiniteQuantileRegressor
        Fitted to all rows with the chosen parameters.
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    offset_ : float
        The median of y, which is taken off before the fit and added to its answers.
    ignores_inputs_ : bool
        Whether a λ was taken that all but ignores the inputs.
    cv_results_ : dict
        ``kernels`` (names, best of the ranking first), ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x``
        (folds,): the mean pinball losses, those of quantiles without inputs among them, inf where a fit could not win
        and was left out; and ``best``, the position of the choice in ``losses``. Losses are means over the deciles of
        the measure, or over its atoms.

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

    _model = InfiniteQuantileRegressor

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        alphas: Any = None,
        cv: Any = None,
        rule: str = "one-se",
        n_jobs: int | None = None,
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the kernel and λ, and learn the quantile function.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        self._check_parameters()
        rows = self._estimator()._prepare(X, y, sample_weight)
        levels = comparison_levels(rows.recipe.measure)
        middle, weight = np.array([0.5]), rows.weight
        centre = float(_quantiles(rows.y, weight, middle)[0])
        away = np.abs(rows.y - centre)
        # a single far target must not decide
        smallest = SMALLEST_UNIT * float(np.average(away, weights=weight))
        unit = max(float(_quantiles(away, weight, middle)[0]), smallest) or 1.0
        targets = (rows.y - centre) / unit
        repeats = repeated_splits(self.cv, rows.X, rows.y, weight, self.random_state, classes=False)
        counted = [train[weight[train] > 0.0] for splits in repeats for train, _ in splits]
        contest = Contest(
            recipe=rows.recipe,
            X=rows.X,
            y=rows.y,
            targets=targets,
            weight=weight,
            unit=unit,
            levels=levels,
            loss=MQuantile(self.smoothing / unit) if self.smoothing > 0.0 else Pinball(),
            judge=Pinball(),
            bias_gamma=CONTEST_BIAS_GAMMA,
            bias_ridge=CONTEST_BIAS_RIDGE,
            repeats=repeats,
            constants=[_quantiles(targets[train], weight[train], levels) for train in counted],
        )
        choice = contest.choose(self.kernels, self.alphas, self.rule, self.n_jobs)
        # targets that lie far from zero would need a large bias, and its ridge would mind: the centre is taken off
        return self._refit(choice, LAST_BIAS_RIDGE / unit, centre, X, y, sample_weight)

    def predict(self, X: Any, quantiles: Any = None) -> HostArray:
        """The conditional quantiles: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        quantiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``quantiles``.
        """
        return np.asarray(self._best().predict(X, quantiles))

    def conformalize(self, X: Any, y: Any) -> Self:
        """Calibrate the intervals of every coverage; see :meth:`infinitask.InfiniteQuantileRegressor.conformalize`.

        Parameters
        ----------
        X : array (n, d)
            Not the training inputs.
        y : array (n,)
        """
        self._best().conformalize(X, y)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D² of the integrated pinball loss: 1 − loss / loss of the best constants.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        return float(self._best().score(X, y, sample_weight))


def _quantiles(values: HostArray, weight: HostArray, levels: HostArray) -> HostArray:
    """Quantiles of weighted values."""
    order = np.argsort(values)
    mass = np.cumsum(weight[order])
    return np.asarray(values[order][np.searchsorted(mass, levels * mass[-1]).clip(max=order.size - 1)])
