"""Models that tune themselves, as ``RidgeCV`` does.

They choose a kernel and λ by cross-validation (:mod:`~infinitask.tuning._race`), fit the chosen model to all rows,
store it as ``best_estimator_``, and use it for predictions.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import wraps
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from infinitask._base.events import CutShort
from infinitask._base.validation import CONSTRAINTS, Constraint, check_parameters, optional
from infinitask.calibration.held_out import FOLDS as CALIBRATION_FOLDS
from infinitask.estimators import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor, _frames
from infinitask.estimators._base import Prepared
from infinitask.estimators._callbacks import CallbackSupportMixin, reported
from infinitask.estimators._frames import output_of
from infinitask.estimators._parameters import forget
from infinitask.estimators._shared import estimator
from infinitask.estimators._sources import far_rows, fit_to, on_host, source_of, surveyed
from infinitask.features import Nystroem
from infinitask.fitting._defaults import shrinkage
from infinitask.losses import Loss
from infinitask.streaming._blocks import RowSource
from infinitask.streaming._sampling import Survey
from infinitask.tasks import QuantileTask
from infinitask.tuning._contest import Contest
from infinitask.tuning._defaults import GAP_OF_MANY, MANY_ROWS
from infinitask.tuning._race import Selection, chosen

PINBALL = QuantileTask().loss
"""The loss that compares quantiles, for any loss of the fit."""


class Compared(NamedTuple):
    """The rows on which models are compared, and the source of all rows if they are only a sample."""

    X: Any
    y: Any
    weight: Any
    source: RowSource | None = None
    survey: Survey | None = None


@estimator
class SelfTuned(CallbackSupportMixin, BaseEstimator):
    """A model that chooses its kernel and λ; the methods of its ``best_estimator_`` are available here as well."""

    _model: ClassVar[type[Any]]
    """The class of ``best_estimator_``."""

    _default_task: ClassVar[str]
    """The parameter with the default tasks of predictions; it is read at each prediction."""

    _own: ClassVar[dict[str, Any]] = {}
    """Parameters of the final fit that this model sets itself, besides the kernel and λ."""

    _constraints: ClassVar[Mapping[str, Constraint]] = {}
    """Checks of parameters that differ from the common table."""

    kernels: Any = "auto"
    cv: Any = None
    n_jobs: int | None = None
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    measure: Any = None
    quadrature: Any = "gauss-legendre"
    n_nodes: int | None = None
    features: Any = "auto"
    rank: int | str | None = None
    certify: str | None = None
    solver: str = "auto"
    max_iter: int = 10_000
    device: str | None = None
    random_state: Any = None
    verbose: int = 0
    on_interrupt: str = "raise"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in dir(cls._model):
            method = inspect.getattr_static(cls._model, name)
            if not name.startswith("_") and not hasattr(cls, name) and isinstance(method, (FunctionType, staticmethod)):
                setattr(cls, name, method if isinstance(method, staticmethod) else _passed_on(name, method))
        super().__init_subclass__(**kwargs)  # scikit-learn inspects the methods here

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> tuple[Compared, Prepared]:
        """Check parameters and data, and forget an earlier fit; return the rows that choose, as given and prepared."""
        check_parameters(self.get_params(deep=False), self._constraints)
        forget(self)
        source = far_rows(X, y, sample_weight)
        if source is None:
            given = Compared(*(on_host(values) for values in (X, y, sample_weight)))
        else:
            survey = surveyed(self._estimator(), source)
            given = Compared(survey.X, survey.y, survey.weight / np.max(survey.weight), source, survey)
        return given, self._estimator()._prepare(*given[:3])

    def _estimator(self, **chosen: Any) -> Any:
        """Create the inner model, with the parameters shared with this one and the chosen ones."""
        shared = self._model._get_param_names()
        given = {name: value for name, value in self.get_params(deep=False).items() if name in shared}
        if given["tol"] is None:
            del given["tol"]
        return self._model(**given, **chosen)

    def _raced(self, rows: Prepared, criterion: Loss | None = None) -> Selection:
        """Choose a kernel and λ on some rows by a loss; None: the log loss of two classes."""
        contest = Contest.of(self, rows, criterion)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return chosen(contest, self.kernels, self.rule, seed)

    def _refit(self, choice: Selection, given: Compared, **changes: Any) -> None:
        """Fit the chosen model to all rows and keep it; ``changes`` are those of its recipe."""
        # a model that ignores the features needs no calibration: its free bias adapts by itself
        own = {} if choice.ignores_inputs else self._own
        alpha, survey = choice.alpha, given.survey
        if survey is not None and self.alphas is None and not choice.ignores_inputs:
            alpha *= shrinkage(survey.weight.size, survey.n)
        best = self._estimator(kernel=choice.kernel, alpha=alpha, **own)
        landmarks = choice.contest.landmarks
        if landmarks is not None and self.features == "auto" and self.rank is None:
            changes["features"] = Nystroem(landmarks)
        self._fitted(best, given, **changes)
        self.kernel_, self.alpha_, self.alpha_bias_ = choice.kernel, best.alpha_, best.alpha_bias_
        self.offset_ = best.recipe_.offset
        self.ignores_inputs_, self.cv_results_ = choice.ignores_inputs, choice.results
        self.best_estimator_ = best

    def _fitted(self, best: Any, given: Compared, **changes: Any) -> None:
        """Fit a model to all rows, in parts if the plain estimator does so; ``changes`` are those of its recipe.

        Issues no warning: this model already makes the choices that a warning would recommend.
        """
        rows, survey = best._prepare(given.X, given.y, given.weight), given.survey
        if self.tol is None and (rows.weight.size if survey is None else survey.n) > MANY_ROWS:
            changes["tol"] = GAP_OF_MANY
        rows = rows._replace(recipe=replace(rows.recipe, **changes))
        source = given.source or source_of(given.X, given.y, given.weight, lambda: rows.recipe)
        if source is not None:
            fit_to(best, source, survey=survey, warn=False, **changes)
        else:
            best._learn(rows, warn=False)

    def _best(self) -> Any:
        """The inner model, with the current default task."""
        if "best_estimator_" not in vars(self):
            check_is_fitted(self)
        best, task = self.best_estimator_, getattr(self, self._default_task)
        if getattr(best, self._default_task) is not task:
            setattr(best, self._default_task, task)
        if output_of(best) != output_of(self):
            best.set_output(predict=output_of(self) or "default")
        return best

    set_output = _frames.set_output

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._model())

    def __getattr__(self, name: str) -> Any:
        # called only if this object has no such attribute: fitted attributes of the inner model
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self._best(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _passed_on(name: str, method: Any) -> Any:
    """Wrap a method of the inner model as a method of this model."""

    @wraps(method)
    def passed_on(self: SelfTuned, *arguments: Any, **options: Any) -> Any:
        best = self._best()
        answer = getattr(best, name)(*arguments, **options)
        return self if answer is best else answer

    return passed_on


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
        The effect of Ctrl-C while kernels are compared. "raise" ends the fit. "best" ends the comparison and fits the
        best candidate so far (with ``n_jobs`` it always ends the fit).
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
            For blocks and Dask collections, the model is chosen and calibrated on a sample of at least 20 000 rows, and
            fitted to all rows. λ of the sample is divided by the root of the number of rows that each sampled row
            represents.
        y : array (n,)
            None for blocks, which contain it.
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            given, rows = self._begin(X, y, sample_weight)
            task, changes = rows.recipe.task, dict[str, Any]()
            if task.order.rearranged:  # sorted predictions need no penalty on the way
                changes["task"] = replace(task, order=replace(task.order, weight=0.0))
            choice = self._raced(rows, PINBALL)
            self._refit(choice, given, **changes)
            if self.calibrated and not choice.ignores_inputs and task.measure.atoms() is None:
                self._calibrate(choice)
        return self

    def _calibrate(self, choice: Selection) -> None:
        """Calibrate levels on held-out rows: of ten folds, of the given folds, or of one fold of many rows."""
        contest = choice.contest
        contest.progress.say("calibrating levels")
        folds = contest.folds
        if len(folds) > 1 and self.cv is None:  # given folds may keep related rows together
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            count = min(CALIBRATION_FOLDS, contest.rows.weight.size)
            folds = list(KFold(count, shuffle=True, random_state=seed).split(contest.rows.X))
        alpha = choice.alpha * contest.units.spread
        try:
            self.best_estimator_.levels_ = contest.calibrated_levels(choice.kind, choice.kernel, alpha, folds)
        except KeyboardInterrupt:
            if self.on_interrupt != "best":
                raise
            contest.progress.say("interrupted: levels are not calibrated", CutShort)


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
        The effect of Ctrl-C while kernels are compared. "raise" ends the fit. "best" ends the comparison and fits the
        best candidate so far (with ``n_jobs`` it always ends the fit).
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
            given, rows = self._begin(X, y, sample_weight)
            if rows.learnt["classes_"].size > 2:
                raise ValueError(
                    "Only binary classification is supported: y holds "
                    f"{rows.learnt['classes_'].size} classes. InfiniteCostSensitiveClassifier takes more than two, and "
                    'chooses γ and λ itself with gamma="auto" and alpha="auto".'
                )
            self._refit(self._raced(rows), given)
        return self
