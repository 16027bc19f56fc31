"""Models that tune themselves, as ``RidgeCV`` does.

They choose a kernel and λ by cross-validation (:mod:`~infinitask.tuning._race`), fit the chosen model to all rows,
hold it as ``best_estimator_`` and predict as it does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from infinitask._base.arrays import HostArray, one_blas_thread, weighted_quantiles
from infinitask._base.events import CutShort
from infinitask._base.validation import CONSTRAINTS, optional
from infinitask.calibration._levels import Levels
from infinitask.calibration.held_out import FOLDS as CALIBRATION_FOLDS
from infinitask.estimators import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor
from infinitask.estimators._base import Prepared, reported
from infinitask.estimators._shared import estimator
from infinitask.fitting._recipe import Recipe, Units
from infinitask.tasks import QuantileTask
from infinitask.tuning._contest import held_out
from infinitask.tuning._defaults import FARTHEST_TARGET
from infinitask.tuning._race import Selection
from infinitask.tuning._self_tuned import Compared, SelfTuned


@estimator
class InfiniteQuantileRegressorCV(SelfTuned):
    """Conditional quantiles of every level, with the kernel and λ chosen by cross-validation.

    The result is an :class:`~infinitask.InfiniteQuantileRegressor`, ``best_estimator_``; all its methods and fitted
    attributes are here as well. How it is chosen: candidate kernels (linear, Gaussian, Matérn and Laplacian with one
    scale, with a scale for each feature, in a metric learnt from gradients, sums over the features, and all of these on
    the ranks of the features) are ranked by the leave-one-out error of a kernel ridge regression of the ranks of y,
    which is closed form. The first ones, linear ones and sums of them compete by the cross-validated pinball loss along
    a path of λ; from 600 rows on with at most 500 of them first, and the best three with all. Unless the winner is
    better than ignoring the features by more than one standard error of the difference, a λ is taken that nearly
    ignores them; else the largest of the winner's that is worse than its best by no more than half of one. The model is
    then fitted to all rows, and its levels are calibrated by held-out rows. Of more than 2000 rows, 2000 choose the
    kernel; λ and the number of landmarks are then chosen by the loss of rows held out of all.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do. A name measures each
        feature in its own spread, an object takes the features as they are.
    alphas : array (k,) or None
        The λ that compete, for y in its own units, besides one that nearly ignores the features; None: up to 20 that
        follow the spread of y.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means folds in the order of the rows, so take a shuffled splitter where these are
        sorted. None: five shuffled folds, repeated up to four times where there are few rows.
    rule : {"one-se", "best"}
        Which λ: see above, or the one with the smallest loss, unless that is better than ignoring the features by less
        than half a standard error.
    n_jobs : int or None
        Kernels that are compared in parallel processes; the choice does not depend on it.
    calibrated : bool, default=True
        Whether levels are calibrated by held-out rows, so that a fraction q of new rows lies below the q-quantile on
        average, see ``Levels``: ``levels_``.
    noncrossing : float, "rearrange" or "hard", default="rearrange"
        As for :class:`~infinitask.InfiniteQuantileRegressor`, whose default keeps the order at the training rows.
        With "rearrange", the default here, predictions are sorted, and no two levels cross at any x; the fit has no
        penalty then.
    smoothing, quantiles
        As there.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, certify, solver, max_iter, device
        As there, for the final fit.
    tol : float or None
        The duality gap of the final fit; None: 1e-4, and 1e-3 with more than 5000 rows.
    verbose : int, default=0
        Above 0, lines on standard error say what is tried, the best loss so far and about how long the rest will take.
    on_interrupt : {"raise", "best"}, default="raise"
        What Ctrl-C does while kernels are compared: it ends the fit, or the comparison, and the best so far is fitted
        (with ``n_jobs`` it always ends the fit).
    random_state : None, int or numpy.random.RandomState
        For the folds, and as there.

    Attributes
    ----------
    best_estimator_ : InfiniteQuantileRegressor
        Fitted to all rows with the chosen parameters.
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    offset_ : float
        The median of y, which is taken off before the fit and added to its predictions.
    ignores_inputs_ : bool
        Whether a λ was taken that nearly ignores the features.
    cv_results_ : dict
        ``kernels`` (names, best of the ranking first), ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x``
        (folds,): the mean pinball losses, those of quantiles without features among them, inf where a fit could not win
        and was left out, as all fits of kernels that lost the heat; and ``best``, the position of the choice in
        ``losses``. Losses are means over the deciles of the measure, or over its atoms. With more than 2000 rows these
        are of some of them, ``best`` has the λ of all, and ``refined`` (ranks, k) the losses of rows held out of all.

    Examples
    --------
    >>> from infinitask.datasets import make_sine
    >>> from infinitask import InfiniteQuantileRegressorCV
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressorCV(random_state=0).fit(X, y)
    >>> model.predict(X, quantiles=[0.1, 0.9]).shape
    (100, 2)
    >>> model.cv_results_["losses"].shape
    (8, 20, 10)
    """

    _model: ClassVar = InfiniteQuantileRegressor
    _default_task: ClassVar = "quantiles"
    _constraints: ClassVar = {"tol": optional(CONSTRAINTS["tol"])}

    alphas: Any = None
    rule: str = "one-se"
    calibrated: bool = True
    noncrossing: float | str = "rearrange"
    smoothing: float = 0.0
    quantiles: Any = 0.5
    tol: float | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the kernel and λ, and learn the quantile function.

        Parameters
        ----------
        X : array (n, d), :class:`~infinitask.streaming.Blocks`, or array or frame of Dask
            Of blocks and of Dask, a sample of at least 20 000 rows chooses and calibrates; the model is fitted to all.
            λ of the sample is divided by the root of the number of rows each of its rows stands for.
        y : array (n,)
            None for blocks, which hold it.
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            self._tune(*self._begin(X, y, sample_weight))
        return self

    def _tune(self, given: Compared, rows: Prepared) -> None:
        """Choose by some rows, fit the choice to all of them, and calibrate its levels."""
        assert rows.y is not None
        order, changes = rows.recipe.task.order, dict[str, Any]()
        if order.rearranged:  # sorted predictions need no penalty on the way
            changes["task"] = replace(rows.recipe.task, order=replace(order, weight=0.0))
        units = Units.of(rows.y[rows.weight > 0.0], rows.weight[rows.weight > 0.0], centred=True)
        choice = self._raced(
            rows,
            classes=False,
            targets=np.clip(units.inside(rows.y), -FARTHEST_TARGET, FARTHEST_TARGET),
            unit=units.spread,
            loss=rows.recipe.task.in_units(units.spread).loss,
            criterion=QuantileTask().loss,
            ordered=order.rearranged,
            constant=weighted_quantiles,
        )
        self._refit(choice, given, **changes)
        if self.calibrated and not choice.ignores_inputs and rows.recipe.task.measure.atoms() is None:
            try:
                # as in the comparison: on two busy cores two threads took eleven times the processor time of one
                with one_blas_thread():
                    self.best_estimator_.levels_ = self._levels(replace(rows.recipe, **changes), choice, units)
            except KeyboardInterrupt:
                if self.on_interrupt != "best":
                    raise
                choice.contest.progress.say("interrupted: levels are not calibrated", CutShort)

    def _levels(self, recipe: Recipe, choice: Selection, units: Units) -> Levels:
        """The map of levels by held-out rows: of ten folds, of those given, or of the fold held out of many rows."""
        contest = choice.contest
        contest.progress.say("calibrating levels")
        rows, folds = contest.rows, contest.folds
        if len(folds) > 1 and self.cv is None:  # given folds may keep rows together that belong so
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            count = min(CALIBRATION_FOLDS, rows.weight.size)
            folds = list(KFold(count, shuffle=True, random_state=seed).split(rows.X))
        (low,), (high,) = recipe.task.measure.support
        grid = Levels.grid(low, high)
        Q = held_out(contest, recipe, choice.kind, choice.kernel, choice.alpha * units.spread, grid, folds)
        known = np.all(np.isfinite(Q), axis=1)
        assert rows.y is not None
        return Levels.of(rows.y[known], units.centre + units.spread * Q[known], grid, rows.weight[known])


@estimator
class InfiniteCostSensitiveClassifierCV(SelfTuned):
    """Decisions for every trade-off between the errors, with the kernel and λ chosen by cross-validation.

    The result is an :class:`~infinitask.InfiniteCostSensitiveClassifier`, ``best_estimator_``; all its methods and
    fitted attributes are here as well. It is chosen as in :class:`~infinitask.InfiniteQuantileRegressorCV`, but
    compared by the log loss of held-out rows, with log-odds that are linear in h: decisions are calibrated after the
    fit, for any cost, and what counts is how well h tells rows apart. The bias is almost free, which suits rare
    classes.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do. A name measures each
        feature in its own spread, an object takes the features as they are.
    alphas : array (k,) or None
        The λ that compete; None: up to 20.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means folds in the order of the rows, so take a shuffled splitter where these are
        sorted. None: five shuffled folds stratified by class, repeated up to four times where there are few rows.
    rule : {"one-se", "best"}
        A λ that nearly ignores the features unless they help by a standard error, and of others the largest that is
        about as good as the best; or the best one, unless it helps by less than half of one. "best" is the default.
    n_jobs : int or None
        Kernels that are compared in parallel processes; the choice does not depend on it.
    theta
        As for :class:`~infinitask.InfiniteCostSensitiveClassifier`.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, certify, solver, max_iter, device
        As there, for the final fit.
    tol : float or None
        The duality gap of the final fit; None: 1e-4, and 1e-3 with more than 5000 rows.
    verbose : int, default=0
        Above 0, lines on standard error say what is tried, the best loss so far and about how long the rest will take.
    on_interrupt : {"raise", "best"}, default="raise"
        What Ctrl-C does while kernels are compared: it ends the fit, or the comparison, and the best so far is fitted
        (with ``n_jobs`` it always ends the fit).
    random_state : None, int or numpy.random.RandomState
        For the folds, and as there.

    Attributes
    ----------
    best_estimator_ : InfiniteCostSensitiveClassifier
        Fitted to all rows with the chosen parameters.
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    ignores_inputs_ : bool
        Whether a λ was taken that nearly ignores the features: nothing was surely better.
    cv_results_ : dict
        ``kernels``, ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x`` (folds,) and ``best``, as for
        :class:`~infinitask.InfiniteQuantileRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifierCV
    >>> X, y = make_moons(100, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifierCV(kernels=["rbf"], random_state=0).fit(X, y)
    >>> cautious, bold = model.predict(X, theta=[-0.9, 0.9]).mean(axis=0)
    >>> bool(cautious < 0.5 < bold)  # the fraction of alarms
    True
    """

    _model: ClassVar = InfiniteCostSensitiveClassifier
    _default_task: ClassVar = "theta"
    _own: ClassVar = {"calibrated": True}
    _constraints: ClassVar = {"tol": optional(CONSTRAINTS["tol"])}

    alphas: Any = None
    rule: str = "best"
    theta: Any = 0.0
    tol: float | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the kernel and λ, and learn the decision function of every trade-off.

        Parameters
        ----------
        X : array (n, d), :class:`~infinitask.streaming.Blocks`, or array or frame of Dask
            As for :class:`~infinitask.InfiniteQuantileRegressorCV`.
        y : array (n,)
            Any two labels; None for blocks, which hold them.
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            given, rows = self._begin(X, y, sample_weight)
            if rows.learnt["classes_"].size > 2:
                raise ValueError(
                    "Only binary classification is supported: y holds "
                    f"{rows.learnt['classes_'].size} classes. InfiniteCostSensitiveClassifier takes more than two, and "
                    'chooses γ and λ itself with gamma="auto" and alpha="auto".'
                )
            loss = rows.recipe.task.loss
            choice = self._raced(
                rows, classes=True, targets=rows.y, loss=loss, criterion=loss, as_odds=True, constant=_best_constant
            )
            self._refit(choice, given)
        return self


def _best_constant(signs: HostArray, weight: HostArray, theta: HostArray) -> HostArray:
    """The cheaper of the decisions 1 and −1 at each θ, (q,), for all rows alike."""
    positive = float(weight @ (signs > 0.0)) / float(np.sum(weight))
    return np.where(positive * (1.0 + theta) > (1.0 - positive) * (1.0 - theta), 1.0, -1.0)
