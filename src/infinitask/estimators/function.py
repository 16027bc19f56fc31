"""Regression with functions as targets: a whole curve for every x."""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray, place, to_host
from infinitask._base.validation import choice, finite, fraction, in_support, number, optional, or_auto
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.estimators._callbacks import reported
from infinitask.estimators._curve_choice import chosen
from infinitask.estimators._curves import Curves, Design, best_level, days, one_curve_at, own_points, values_at
from infinitask.estimators._parameters import weights_of
from infinitask.estimators._shared import d2_score, estimator
from infinitask.estimators._sources import in_kind, in_memory, on_host
from infinitask.fitting._data import Data
from infinitask.fitting._fit import Fit
from infinitask.fitting._metric_learning import with_learnt_kernels
from infinitask.fitting._recipe import Recipe, Units
from infinitask.kernels import input_kernel
from infinitask.losses import BoxLoss, EpsilonInsensitive, Huber, Pinball, Squared
from infinitask.losses._observed import AtTask
from infinitask.measures import Discrete
from infinitask.streaming._blocks import RowSource
from infinitask.tasks import CurveTask, Task

__all__ = ["InfiniteFunctionRegressor"]

LOSSES = ("squared", "huber", "epsilon-insensitive", "quantile")

DEFAULT_DELTA, DEFAULT_EPSILON = 1.345, 0.6
"""Default δ and ε, in standard deviations of the errors of held-out curves: the Huber loss is 95% as efficient as the
square on normal errors, and the ε-insensitive loss is close to its most efficient."""


@estimator
class InfiniteFunctionRegressor(RegressorMixin, BaseInfiniteTask):
    r"""Function-on-vector regression: predict a whole curve from x.

    The training curves may have gaps, or each curve its own points. For a new x, the model predicts the whole curve
    θ ↦ h(x)(θ) + b(θ), by solving

    .. math:: \min_{h, b} \; \sum_i \omega_i \sum_{a \in S_i} c_{ia} \, \ell(y_{ia},\, h(x_i)(\theta_{ia}) +
        b(\theta_{ia})) + \tfrac{\lambda}{2} \|h\|^2 + \tfrac{\lambda_b}{2} \|b\|^2

    where S_i are the points at which curve i was observed. ω are the sample weights, divided by their sum. The weight
    c_ia of an observation is the fraction of Θ that it represents, so the sum over a curve is an integral: c_ia is half
    the distance between its two neighbours in the same curve, divided by the length of Θ. The first and the last
    observation represent as much outside as inside. c_ia is at most a tenth, or the widest gap between all points if
    that is more. So a curve with 300 points does not count a hundred times as much as one with three, and three points
    represent three tenths of a curve, not all of it. On a common equally spaced grid of T points, c = 1/T.

    Parameters
    ----------
    loss : {"squared", "huber", "epsilon-insensitive", "quantile"}, default="squared"
        ℓ, of r = y − h: r²/2; r²/2 up to |r| = δ and linear beyond; (|r| − ε)₊; max(τ r, (τ − 1) r).
    quantile : float, default=0.5
        τ, of the loss "quantile". About a fraction τ of the training observations lies below the curves; the level is
        not calibrated on held-out curves.
    delta : float or None, default=None
        δ, of the loss "huber", in units of y; None: 1.345 standard deviations of the errors of held-out curves.
    epsilon : float or None, default=None
        ε, of the loss "epsilon-insensitive", in units of y; None: 0.6 standard deviations of the same errors.
    theta : array (T,) or None, default=None
        The common grid of a y of shape (n, T), if ``fit`` and ``score`` get no ``theta``. None: the names of the
        columns if y is a table and these are numbers or dates, or else T equally spaced points from 0 to 1. For curves
        with their own points: the points at which ``predict`` evaluates curves by default; Θ contains at least the
        interval from the first to the last. Dates are converted to days since the beginning of 1970, here and
        everywhere.
    gamma : "auto", float, "median" or "scale", default="auto"
        Bandwidth of a kernel given by name: exp(−γ d²) for "rbf". "auto": each feature is scaled by its own standard
        deviation, and σ = (2γ)^(−1/2) is the median distance, or ½, 2 or 4 times that, by the errors of held-out
        curves. With at least 50 rows, each feature gets its own scale if that makes these errors clearly smaller. The
        other choices do not scale the features; "median": σ is the median distance.
    task_gamma : float, "median" or None, default=None
        Bandwidth of a task kernel given by name: exp(−γ d²) for "rbf". None: σ = (2γ)^(−1/2) is one of six fractions of
        the length of Θ, from 0.3 to 0.01 and no less than the median gap between points, by the errors of held-out
        curves.
    alpha : "auto" or float, default="auto"
        λ. "auto": by the leave-one-curve-out errors of a regression with the squared loss, chosen together with the
        widths of both kernels. A number is the λ of the formula, in the units of y.
    alpha_bias : "auto", float or None, default="auto"
        λ_b, the ridge of the mean curve b. "auto": b is free (apart from a negligible ridge) if the median point is
        observed in at least ten curves. Otherwise it is smoothed by λ/100, λ or λ/10⁴, by the errors of held-out
        curves. In both cases it is shrunk towards the median of y. None: as ``alpha``.
    n_nodes : int or None, default=None
        The largest number of nodes; None: 1000. The nodes are the distinct points at which curves were observed. If
        there are more, Θ is cut into ``n_nodes`` equal parts, the points of each part are merged, and the values of a
        row there are averaged. The cost of a fit is rows × nodes.
    {parameters}

    Attributes
    ----------
    theta_ : ndarray (T,)
        The points at which ``predict`` evaluates curves by default: the common grid of the fit or, for curves with
        their own points, the constructor's ``theta`` or the nodes.
    nodes_, weights_ : ndarray (m,)
        The grid, and the fraction of the weight of all observations at each node.
    delta_, epsilon_ : float
        δ or ε of the fit, for the losses that have one.
    {attributes}

    Notes
    -----
    ``y`` may contain NaN where a curve was not observed, and each curve may have its own points. Values at the same θ
    of a row are averaged. If y is one number for each row, it is a curve of one point, and ``predict`` returns (n,).

    With the squared loss, complete curves and given kernels, this is kernel ridge regression with the kernel k_X·k_Θ
    and the weights ω_i c_a.

    Examples
    --------
    Growth of children, each measured at different ages:

    >>> import numpy as np
    >>> from infinitask import InfiniteFunctionRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1))  # the height of the parents, say
    >>> ages = [np.sort(rng.uniform(2.0, 18.0, size=6)) for _ in X]
    >>> heights = [80.0 + 6.0 * age + 3.0 * x + rng.normal(size=6) for x, age in zip(X, ages)]
    >>> model = InfiniteFunctionRegressor().fit(X, heights, theta=ages)
    >>> model.predict([[0.0], [2.0]], theta=[5.0, 10.0, 15.0]).shape
    (2, 3)
    >>> float(model.predict([[0.0]], theta=10.0)[0].round(-1))
    140.0
    >>> float(model.derivative([[0.0]], theta=10.0)[0].round())  # the speed of growth
    6.0
    >>> model.dual_gap_ <= model.tol
    True
    """

    _constraints: ClassVar = {
        "loss": partial(choice, options=LOSSES),
        "quantile": fraction,
        "delta": optional(partial(number, low=0.0)),
        "theta": optional(lambda name, value: finite(name, days(value), ndim=1)),
        "epsilon": optional(partial(number, low=0.0, open_low=False)),
        "alpha_bias": optional(or_auto(partial(number, low=0.0, open_low=False))),
    }

    loss: str = field(default="squared", kw_only=False)
    quantile: float = 0.5
    delta: float | None = None
    epsilon: float | None = None
    theta: Any = None
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    bias_kernel: Any = "task"
    alpha: float | str = "auto"
    alpha_bias: float | str | None = "auto"
    n_nodes: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # ------------------------------------------------------------------------------------------- fitting
    def _task(self) -> Task:
        """Return the task before the grid is known."""
        return CurveTask(self._loss(1.0), Discrete([0.0]))

    def _choices(self) -> dict[str, Any]:
        return {"alpha_bias": 0.0} if isinstance(self.alpha_bias, str) else {}

    def _loss(self, noise: float) -> BoxLoss:
        """Return ℓ; ``noise`` is the standard deviation of the errors."""
        if self.loss == "squared":
            return Squared()
        if self.loss == "huber":
            return Huber(DEFAULT_DELTA * noise if self.delta is None else float(self.delta))
        if self.loss == "epsilon-insensitive":
            return AtTask(
                EpsilonInsensitive(), DEFAULT_EPSILON * noise if self.epsilon is None else float(self.epsilon)
            )
        return AtTask(Pinball(), float(self.quantile))

    def _prepare(self, X: Any, y: Any, sample_weight: Any, theta: Any = None) -> Prepared:
        """Check parameters and data, and resolve the defaults."""
        recipe = self.recipe()
        in_memory(X)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give the curves, an array "
                "(n, T) or a list of n arrays."
            )
        X, _, weight = self._rows(X, None, sample_weight)
        curves = Curves.of(y, theta, self.theta)
        if curves.n != X.shape[0]:
            raise ValueError(
                f"X has {X.shape[0]} rows and y {curves.n} curves; Found input variables with inconsistent numbers of "
                "samples. Give one curve for each row of X."
            )
        learnt: dict[str, Any] = {"_flat": curves.flat}
        if not np.all(weight > 0.0):  # only rows of positive weight define the grid
            counted = np.flatnonzero(weight > 0.0)
            curves, X, weight = curves.only(weight > 0.0), X[counted], weight[counted]
            if self._is_precomputed():
                X, learnt["training_rows_"] = X[:, counted], counted
        design = Design.of(curves, weight, self.n_nodes)
        grid = curves.grid
        if grid is None:
            grid = design.nodes if self.theta is None else np.asarray(days(self.theta), dtype=np.float64)
        learnt["theta_"] = grid
        recipe = recipe.with_task(measure=Discrete(design.nodes, design.weights))
        data = Data.canonical(X, design.y, weight, gram=self._is_precomputed(), share=design.share)
        recipe = self._resolved(recipe, data, design)
        if isinstance(recipe.task.loss, Huber):
            learnt["delta_"] = recipe.task.loss.delta
        elif isinstance(recipe.task.loss, AtTask) and isinstance(recipe.task.loss.loss, EpsilonInsensitive):
            learnt["epsilon_"] = recipe.task.loss.task
        return Prepared(recipe, X, design.y, weight, learnt, data)

    def _resolved(self, recipe: Recipe, data: Data, design: Design) -> Recipe:
        """Return the recipe with units, and with numbers for the choices made from the curves."""
        assert data.y is not None
        held = not isinstance(self.alpha_bias, str) and self.alpha_bias != 0.0
        pairs = data.pair_weight * design.weights
        units = Units.of(
            data.y, np.broadcast_to(pairs, data.y.shape), centred=recipe.bias_kernel is not None and not held
        )
        recipe = replace(recipe, units=units)
        if input_kernel(recipe.kernel).needs_targets:
            shared = data if data.share is not None else replace(data, share=np.ones_like(data.y))
            learnt = with_learnt_kernels(recipe.with_task(loss=self._loss(units.spread)), shared)
            recipe = replace(recipe, kernel=learnt.kernel)
        ridge = units.spread ** (2 - (recipe.task.loss.degree or 2))
        known = isinstance(recipe.alpha, float)
        inside = replace(recipe, alpha=ridge * recipe.alpha) if known else recipe
        best, alpha, noise = chosen(inside, replace(data, y=units.inside(data.y)), design)
        alpha = recipe.alpha if known else alpha / ridge
        alpha_bias = recipe.alpha_bias
        if isinstance(self.alpha_bias, str):
            alpha_bias = 0.0 if best.bias_ratio is None else alpha / best.bias_ratio
        return replace(
            recipe.with_task(loss=self._loss(units.spread * (noise or 1.0))),
            kernel=best.kernel,
            task_gamma=best.gamma,
            alpha=alpha,
            alpha_bias=alpha_bias,
        )

    def fit(  # type: ignore[override]
        self, X: Any, y: Any = None, theta: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn a curve for every x.

        Parameters
        ----------
        X : array (n, d)
        y : array (n, T), list of n arrays, or array (n,)
            An array has one row for each curve, with NaN where it was not observed. A list has the values of each
            curve, (k_i,), at its own points ``theta``; or both, (k_i, 2), with the columns θ and value.
        theta : array (T,), array (n, T), list of n arrays (k_i,), or None
            The points in any order: a common grid, or those of each curve. None: see the constructor's ``theta``.
        sample_weight : array (n,) or None
            Weight of each curve.
        """
        if isinstance(X, RowSource):
            raise TypeError(
                f"{type(X).__name__} were given; curves are fitted in memory. Give X as an array (n, d), and the "
                "curves beside it."
            )
        with reported(self, X, y, sample_weight, theta=theta):
            return self._fit_prepared(X, self._prepare(on_host(X), y, on_host(sample_weight), theta))

    def _adopt(self, fit: Fit, prepared: Prepared) -> Self:
        super()._adopt(fit, prepared)
        # a grid may begin before the first observation, and end after the last
        low, high = np.min(self.theta_), np.max(self.theta_)
        self._support = np.minimum(self._support[0], low), np.maximum(self._support[1], high)
        left = to_host(self.field_.left(place(prepared.X, fit.recipe.device)))
        self._mean_left = (prepared.weight / np.sum(prepared.weight)) @ left
        return self

    # ---------------------------------------------------------------------------------------- prediction
    @in_kind
    def predict(self, X: Any, theta: Any = None) -> Any:
        """Predict the curves h(x)(θ) + b(θ).

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,), list of n arrays or array (n, q), or None
            Points in the range of the fit, for all rows or for each row; None: ``theta_``.

        Returns
        -------
        ndarray (n, q), (n,) for a single θ, or a list of n arrays if ``theta`` is a list
        """
        return self._asked(X, theta, 0)

    @in_kind
    def derivative(self, X: Any, theta: Any = None) -> Any:
        """Predict the derivative of the curves in θ, such as the growth rate; shapes are as in ``predict``.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,), list of n arrays, or None
        """
        return self._asked(X, theta, 1)

    def _asked(self, X: Any, theta: Any, order: int) -> Any:
        X = self._inputs(X)
        theta = days(theta)
        own = None if theta is None else own_points(theta, X.shape[0])
        if own is not None:
            flat, _ = self._tasks(np.concatenate(own), "theta")
            row = np.repeat(np.arange(X.shape[0]), [points.size for points in own])
            values = self._at(X, row, flat, order)
            split = np.split(values, np.cumsum([points.size for points in own])[:-1])
            return np.array(split) if isinstance(theta, np.ndarray) and theta.ndim == 2 else split
        tasks, single = self._tasks(self.theta_ if theta is None else theta, "theta")
        single = single or (theta is None and self._flat)
        blocks = [self.field_(block, tasks, order) for _, block in self._dense_blocks(X)]
        values = np.concatenate(blocks) if len(blocks) > 1 else blocks[0]
        return values[:, 0] if single else values

    def _at(self, X: Any, row: HostArray, tasks: HostArray, order: int = 0) -> HostArray:
        """Return h of row ``row[k]`` of a checked X at task ``tasks[k]``, (N,)."""
        left = np.concatenate([to_host(self.field_.left(block)) for _, block in self._dense_blocks(X)])
        return values_at(self.field_, left, row, tasks, order)

    def mean_curve(self, theta: Any = None) -> HostArray:
        """Return the mean curve of the training rows, (q,).

        Parameters
        ----------
        theta : float, array (q,) or None
            None: ``theta_``.
        """
        check_is_fitted(self)
        tasks, single = self._tasks(self.theta_ if theta is None else days(theta), "theta")
        values = one_curve_at(self.field_, self._mean_left, tasks)
        return np.asarray(values[0] if single else values)

    def score(self, X: Any, y: Any, theta: Any = None, sample_weight: Any = None) -> float:
        """Return D² of the loss over the observations (R² for the squared loss); greater is better, 1 is perfect.

        It is 1 − Σ ω_i c_ia ℓ(y_ia, f_ia) / Σ ω_i c_ia ℓ(y_ia, m(θ_ia)), with the weights of the fit's formula for
        these curves. m is the mean curve of the training rows plus the best constant for these observations, the
        prediction of a model without features. Observations outside the range of the fit are ignored, because curves
        with their own points may have some.

        Parameters
        ----------
        X : array (n, d)
        y : array (n, T), list of n arrays, or array (n,)
            As in ``fit``.
        theta : array (T,), array (n, T), list of n arrays (k_i,), or None
            None: the names of the columns of a table if these are numbers and the constructor has no ``theta``, or
            else the grid of the fit if y has the same number of columns, or the constructor's ``theta``; otherwise it
            must be given.
        sample_weight : array (n,) or None
        """
        X = self._inputs(X)
        curves = Curves.of(y, theta, self.theta, self.theta_)
        if curves.n != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y {curves.n} curves; give one curve for each row of X.")
        weight = weights_of(sample_weight, curves.n * [0.0])[curves.row] * curves.shares()
        known = in_support(curves.theta[:, None], self._support) & (weight > 0.0)
        if not np.any(known):
            low, high = self._ends()
            raise ValueError(
                f"theta lies outside of Θ = [{low:g}, {high:g}] for all observations that count; the model was fitted "
                "to curves between these points. Score curves that were seen there."
            )
        row, value, weight = curves.row[known], curves.value[known], weight[known]
        tasks, _ = self._tasks(curves.theta[known], "theta")
        loss, rule = self.recipe_.task.loss, (self.nodes_[:1], np.ones(1))  # the same at every point
        mean = one_curve_at(self.field_, self._mean_left, tasks)
        constants = mean + best_level(loss, value - mean, weight)
        return d2_score(rule, loss, self._at(X, row, tasks)[:, None], constants[:, None], value, weight)
