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
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from infinitask._base.budget import OutOfTimeError, within
from infinitask._base.events import Chosen, listening
from infinitask._base.validation import Constraint, check_parameters
from infinitask.estimators import _frames
from infinitask.estimators._base import Prepared
from infinitask.estimators._callbacks import CallbackSupportMixin
from infinitask.estimators._frames import output_of
from infinitask.estimators._parameters import forget
from infinitask.estimators._shared import estimator
from infinitask.estimators._sources import far_rows, fit_to, on_host, source_of, surveyed
from infinitask.features import Nystroem
from infinitask.fitting._defaults import shrinkage
from infinitask.losses import Loss
from infinitask.solvers import Reason
from infinitask.streaming._blocks import RowSource
from infinitask.streaming._sampling import Survey
from infinitask.tasks.base import ROUGH_EVALUATIONS, ROUGH_GAP
from infinitask.tuning._contest import Contest
from infinitask.tuning._defaults import GAP_OF_MANY, HARDLY_BEGUN, MANY_ROWS, RANKS
from infinitask.tuning._progress import Progress
from infinitask.tuning._race import Selection, chosen


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
    max_seconds: float | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        for name in dir(cls._model):
            method = inspect.getattr_static(cls._model, name)
            if not name.startswith("_") and not hasattr(cls, name) and isinstance(method, (FunctionType, staticmethod)):
                setattr(cls, name, method if isinstance(method, staticmethod) else _passed_on(name, method))
        super().__init_subclass__(**kwargs)  # scikit-learn inspects the methods here

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> tuple[Compared, Prepared, Progress]:
        """Check parameters and data, and forget an earlier fit; return the rows that choose, as given and prepared."""
        check_parameters(self.get_params(deep=False), self._constraints)
        forget(self)
        progress = Progress(type(self).__name__, self.verbose, self.max_seconds)
        source = far_rows(X, y, sample_weight)
        if source is None:
            given = Compared(*(on_host(values) for values in (X, y, sample_weight)))
        else:
            survey = surveyed(self._estimator(), source)
            given = Compared(survey.X, survey.y, survey.weight / np.max(survey.weight), source, survey)
        return given, self._estimator()._prepare(*given[:3]), progress

    def _estimator(self, **chosen: Any) -> Any:
        """Create the inner model, with the parameters shared with this one and the chosen ones."""
        shared = self._model._get_param_names()
        given = {name: value for name, value in self.get_params(deep=False).items() if name in shared}
        if given["tol"] is None:
            del given["tol"]
        return self._model(**given, **chosen)

    def _raced(self, rows: Prepared, progress: Progress, criterion: Loss | None = None) -> Selection:
        """Choose a kernel and λ on some rows by a loss; None: the log loss of two classes."""
        contest = Contest.of(self, rows, criterion, progress)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return chosen(contest, self.kernels, self.rule, seed)

    def _refit(self, choice: Selection, given: Compared, **changes: Any) -> Selection:
        """Fit the chosen model to all rows and keep it; ``changes`` are those of its recipe.

        Returns the choice, with fewer landmarks for its calibration if there is little time left.
        """
        # a model that ignores the features needs no calibration: its free bias adapts by itself
        own = {} if choice.ignores_inputs else self._own
        alpha, survey = choice.alpha, given.survey
        if survey is not None and self.alphas is None and not choice.ignores_inputs:
            alpha *= shrinkage(survey.weight.size, survey.n)
        best = self._estimator(kernel=choice.kernel, alpha=alpha, **own)
        landmarks = choice.contest.landmarks
        if landmarks is not None and self.features == "auto" and self.rank is None:
            changes["features"] = Nystroem(landmarks)
        rank = self._fitted(best, given, choice.contest.progress, **changes)
        self.kernel_, self.alpha_, self.alpha_bias_ = choice.kernel, best.alpha_, best.alpha_bias_
        self.offset_ = best.recipe_.offset
        self.ignores_inputs_, self.cv_results_ = choice.ignores_inputs, choice.results
        self.best_estimator_ = best
        return choice if rank is None else choice._replace(contest=replace(choice.contest, landmarks=rank))

    def _fitted(self, best: Any, given: Compared, progress: Progress, **changes: Any) -> int | None:
        """Fit a model to all rows in the time left; ``changes`` are those of its recipe.

        An interrupt or the end of the time ends the solver with its best point. A rough fit takes its place if there is
        none yet, or if it is hardly better than a constant. Returns the number of landmarks if there is too little time
        for the usual features.
        """
        n = given.survey.n if given.survey is not None else _num_samples(given.X)
        keeps_best, rank = self.on_interrupt == "best", None
        if self.tol is None and n > MANY_ROWS:
            changes["tol"] = GAP_OF_MANY
        try:
            progress.begin("fit", f"fitting {n} rows", Chosen)
            rank = progress.rank_in_time(n) if self.features == "auto" and self.rank is None else None
            if rank is not None:
                changes["features"] = Nystroem(rank)
                changes["tol"] = ROUGH_GAP if self.tol is None else self.tol
            with listening(progress.heard), within(progress.finishing(keeps_best=keeps_best)):
                self._fitted_to_all(best, given, changes)
                if best.solution_.reason is Reason.ENDED_EARLY and best.dual_gap_ > HARDLY_BEGUN:
                    raise OutOfTimeError if progress.budget.over else KeyboardInterrupt
        except (KeyboardInterrupt, OutOfTimeError) as stop:
            progress.stopped(stop, keeps_best=keeps_best, then="a rough fit is made")
            rank = min(n, RANKS[0])
            rough: dict[str, Any] = {"features": Nystroem(rank), "rank": None, "certify": None, "solver": "lbfgs"}
            rough |= {"tol": ROUGH_GAP, "max_iter": ROUGH_EVALUATIONS}
            self._fitted_to_all(best, given, changes | rough)
        if best.solution_.reason is Reason.ENDED_EARLY:
            then = f"the fit has a duality gap of {best.dual_gap_:.1e}"
            progress.cut_short(then, interrupted=not progress.budget.over)
        return rank

    @staticmethod
    def _fitted_to_all(best: Any, given: Compared, changes: dict[str, Any]) -> None:
        """Fit a model to all rows, in parts if the plain estimator does so; ``changes`` are those of its recipe.

        Issues no warning about the model: this one already makes the choices that a warning would recommend.
        """
        rows = best._prepare(given.X, given.y, given.weight)
        rows = rows._replace(recipe=replace(rows.recipe, **changes))
        source = given.source or source_of(given.X, given.y, given.weight, lambda: rows.recipe)
        if source is not None:
            fit_to(best, source, survey=given.survey, warn=False, **changes)
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
