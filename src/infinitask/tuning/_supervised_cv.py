"""Self-tuned models with targets: quantiles, and decisions between two classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from infinitask._base.budget import OutOfTimeError, within
from infinitask._base.validation import CONSTRAINTS, optional
from infinitask.calibration.held_out import FOLDS as CALIBRATION_FOLDS
from infinitask.estimators import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor
from infinitask.estimators._callbacks import reported
from infinitask.estimators._shared import estimator
from infinitask.tasks import QuantileTask
from infinitask.tuning._race import Selection
from infinitask.tuning._self_tuned import SelfTuned

PINBALL = QuantileTask().loss
"""The loss that compares quantiles, for any loss of the fit."""


@estimator
class InfiniteQuantileRegressorCV(SelfTuned):
    """Conditional quantiles of every level, with the kernel and λ chosen by cross-validation.

    The result is an :class:`~infinitask.InfiniteQuantileRegressor`, ``best_estimator_``; all its methods and fitted
    attributes are available here as well. Candidate kernels (linear, Gaussian, Matérn and Laplacian with one scale,
    with a scale for each feature, in a metric learnt from gradients, sums over the features, and all of these on the
    ranks of the features) are ranked by the leave-one-out error of a kernel ridge regression of the ranks of y, which
    has a closed form. The first ones, linear ones and sums of them compete by the cross-validated pinball loss along a
    path of λ. With at least 600 rows they compete on at most 500 of them first, and the best three on all. If the
    winner improves on ignoring the features by at most one standard error of the difference, a λ that nearly ignores
    them is chosen. Otherwise it is the largest λ of the winner whose loss exceeds the smallest by at most half a
    standard error. The model is then fitted to all rows, and its levels are calibrated on held-out rows. With more than
    2000 rows, the kernel is chosen on 2000 of them; λ and the number of landmarks are then chosen by the loss on
    held-out rows of the full data.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that all compete in place of the candidates. A kernel given by name scales
        each feature by its own spread; an object uses the features unchanged.
    alphas : array (k,) or None
        The candidates for λ, in the units of y, besides one that nearly ignores the features; None: up to 20, scaled to
        the spread of y.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means folds in the order of the rows, so use a shuffled splitter if the rows are
        sorted. None: five shuffled folds, repeated up to four times if there are few rows.
    rule : {"one-se", "best"}
        "one-se": see above. "best": the λ with the smallest loss, unless it improves on ignoring the features by less
        than half a standard error.
    n_jobs : int or None
        The number of kernels compared in parallel processes; the choice does not depend on it.
    calibrated : bool, default=True
        Whether levels are calibrated on held-out rows, such that on average a fraction q of new rows is below the
        q-quantile, see ``Levels``: ``levels_``.
    noncrossing : float, "rearrange" or "hard", default="rearrange"
        As in :class:`~infinitask.InfiniteQuantileRegressor`, whose default keeps the order at the training rows.
        With "rearrange", the default here, predictions are sorted, and no two levels cross at any x; the fit then has
        no penalty.
    smoothing, quantiles
        As there.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, certify, solver, max_iter, device
        As there, for the final fit.
    tol : float or None
        The duality gap of the final fit; None: 1e-4, or 1e-3 with more than 5000 rows.
    verbose : int, default=0
        Above 0, lines on standard error show the current candidate, the best loss so far and the estimated time left.
    on_interrupt : {"raise", "best"}, default="raise"
        The effect of Ctrl-C. "raise" ends the fit. "best" ends the current stage with the best so far: a comparison
        with the best candidate, or the default if none was tried; the final fit with its best point, certified by
        ``dual_gap_``, and at most one held-out fit to calibrate it; the calibration with the folds that are done (with
        ``n_jobs`` an interrupted comparison always ends the fit).
    max_seconds : float or None
        The time that the whole fit may take, by the clock; None: no limit. Comparisons end early enough for the final
        fit and its calibration. If even these take too long, the final fit has fewer landmarks or a larger certified
        gap, with a warning. The result then depends on the speed of the machine.
    random_state : None, int or numpy.random.RandomState
        Seed of the folds and of the final fit.

    Attributes
    ----------
    best_estimator_ : InfiniteQuantileRegressor
        Fitted to all rows with the chosen parameters.
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    offset_ : float
        The median of y, which is subtracted before the fit and added to its predictions.
    ignores_inputs_ : bool
        Whether the chosen λ nearly ignores the features.
    cv_results_ : dict
        ``kernels`` (names, best of the ranking first), ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x``
        (folds,): the mean pinball losses, and those of quantiles that ignore the features; inf for fits that could not
        win and were skipped, such as all fits of kernels that lost the heat; and ``best``, the position of the choice
        in ``losses``. Losses are means over the deciles of the measure, or over its atoms. With more than 2000 rows,
        they are computed on a subset, ``best`` has the λ chosen on all rows, and ``refined`` (ranks, k) holds the
        losses on held-out rows of the full data.

    Examples
    --------
    >>> from infinitask.datasets import make_sine
    >>> from infinitask import InfiniteQuantileRegressorCV
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressorCV(random_state=0).fit(X, y)
    >>> model.predict(X, quantiles=[0.1, 0.9]).shape
    (100, 2)
    >>> model.cv_results_["losses"].shape
    (9, 21, 10)
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
            For blocks and Dask collections, the model is chosen and calibrated on a sample of at least 20 000 rows, and
            fitted to all rows. λ of the sample is divided by the root of the number of rows that each sampled row
            represents.
        y : array (n,)
            None for blocks, which contain it.
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            given, rows, progress = self._begin(X, y, sample_weight)
            task, changes = rows.recipe.task, dict[str, Any]()
            if task.order.rearranged:  # sorted predictions need no penalty on the way
                changes["task"] = replace(task, order=replace(task.order, weight=0.0))
            choice = self._raced(rows, progress, PINBALL)
            choice = self._refit(choice, given, **changes)
            if self.calibrated and not choice.ignores_inputs and task.measure.atoms() is None:
                self._calibrate(choice)
        return self

    def _calibrate(self, choice: Selection) -> None:
        """Calibrate levels on held-out rows: of ten folds, of the given folds, or of one fold of many rows."""
        contest, progress = choice.contest, choice.contest.progress
        folds = contest.folds
        if len(folds) > 1 and self.cv is None:  # given folds may keep related rows together
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            count = min(CALIBRATION_FOLDS, contest.rows.weight.size)
            folds = list(KFold(count, shuffle=True, random_state=seed).split(contest.rows.X))
        alpha = choice.alpha * contest.units.spread
        try:
            progress.begin("calibration", "calibrating levels")
            with within(progress.calibrating()) as budget:
                found = contest.calibrated_levels(choice.kind, choice.kernel, alpha, folds)
                budget.check()  # fits that time cut off are those of another λ
        except (KeyboardInterrupt, OutOfTimeError) as stop:
            progress.stopped(stop, keeps_best=self.on_interrupt == "best", then="levels are not calibrated")
        else:
            self.best_estimator_.levels_ = found


@estimator
class InfiniteCostSensitiveClassifierCV(SelfTuned):
    """Decisions for every trade-off between the errors, with the kernel and λ chosen by cross-validation.

    The result is an :class:`~infinitask.InfiniteCostSensitiveClassifier`, ``best_estimator_``; all its methods and
    fitted attributes are available here as well. It is chosen as in :class:`~infinitask.InfiniteQuantileRegressorCV`,
    but compared by the log loss on held-out rows, with log-odds that are linear in h. Decisions are calibrated after
    the fit, for any cost, so only the discrimination between rows matters. The bias is almost free, which suits rare
    classes.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that all compete in place of the candidates. A kernel given by name scales
        each feature by its own spread; an object uses the features unchanged.
    alphas : array (k,) or None
        The candidates for λ; None: up to 20.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means folds in the order of the rows, so use a shuffled splitter if the rows are
        sorted. None: five shuffled folds stratified by class, repeated up to four times if there are few rows.
    rule : {"one-se", "best"}
        "one-se": a λ that nearly ignores the features unless they improve the loss by a standard error, otherwise the
        largest λ that is about as good as the best one. "best", the default: the best λ, unless it improves by less
        than half a standard error.
    n_jobs : int or None
        The number of kernels compared in parallel processes; the choice does not depend on it.
    theta
        As in :class:`~infinitask.InfiniteCostSensitiveClassifier`.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, certify, solver, max_iter, device
        As there, for the final fit.
    tol : float or None
        The duality gap of the final fit; None: 1e-4, or 1e-3 with more than 5000 rows.
    verbose : int, default=0
        Above 0, lines on standard error show the current candidate, the best loss so far and the estimated time left.
    on_interrupt : {"raise", "best"}, default="raise"
        The effect of Ctrl-C. "raise" ends the fit. "best" ends the current stage with the best so far: a comparison
        with the best candidate, or the default if none was tried; the final fit with its best point, certified by
        ``dual_gap_``, and at most one held-out fit to calibrate it; the calibration with the folds that are done (with
        ``n_jobs`` an interrupted comparison always ends the fit).
    max_seconds : float or None
        The time that the whole fit may take, by the clock; None: no limit. Comparisons end early enough for the final
        fit and its calibration. If even these take too long, the final fit has fewer landmarks or a larger certified
        gap, with a warning. The result then depends on the speed of the machine.
    random_state : None, int or numpy.random.RandomState
        Seed of the folds and of the final fit.

    Attributes
    ----------
    best_estimator_ : InfiniteCostSensitiveClassifier
        Fitted to all rows with the chosen parameters.
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    ignores_inputs_ : bool
        Whether the chosen λ nearly ignores the features because no other was significantly better.
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
            As in :class:`~infinitask.InfiniteQuantileRegressorCV`.
        y : array (n,)
            Any two labels; None for blocks, which contain them.
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            given, rows, progress = self._begin(X, y, sample_weight)
            if rows.learnt["classes_"].size > 2:
                raise ValueError(
                    "Only binary classification is supported: y holds "
                    f"{rows.learnt['classes_'].size} classes. InfiniteCostSensitiveClassifier takes more than two, and "
                    'chooses γ and λ itself with gamma="auto" and alpha="auto".'
                )
            self._refit(self._raced(rows, progress), given)
        return self
