"""What all self-tuned models share: they hold what they chose as ``best_estimator_`` and predict as it does."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import wraps
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.validation import Constraint, check_parameters
from infinitask.calibration._folds import Splits, splits_of
from infinitask.estimators import _frames
from infinitask.estimators._base import Prepared
from infinitask.estimators._callbacks import CallbackSupportMixin
from infinitask.estimators._frames import output_of
from infinitask.estimators._shared import estimator
from infinitask.estimators._sources import far_rows, fit_to, on_host, source_of, surveyed
from infinitask.features import Nystroem
from infinitask.fitting._defaults import shrinkage
from infinitask.measures import Measure
from infinitask.streaming._blocks import RowSource
from infinitask.streaming._sampling import Survey
from infinitask.tuning._contest import Contest, Progress
from infinitask.tuning._defaults import FOLDS, GAP_OF_MANY, MANY_ROWS, MAX_REPEATS, ROWS_TO_HOLD_OUT
from infinitask.tuning._race import Selection, chosen


class Compared(NamedTuple):
    """The rows by which models are compared, and where all rows are if these are only a sample."""

    X: Any
    y: Any
    weight: Any
    source: RowSource | None = None
    survey: Survey | None = None


@estimator
class SelfTuned(CallbackSupportMixin, BaseEstimator):
    """A model that chooses its kernel and λ; what it chose is ``best_estimator_``, and its methods are here as well."""

    _model: ClassVar[type[Any]]
    """The class of ``best_estimator_``."""

    _default_task: ClassVar[str]
    """The parameter that names the tasks of a prediction that asks for none; it is read when that happens."""

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
        super().__init_subclass__(**kwargs)  # scikit-learn looks at the methods here

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> tuple[Compared, Prepared]:
        """Check parameters and data, and forget an earlier fit: the rows that choose, as given and as prepared."""
        check_parameters(self.get_params(deep=False), self._constraints)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        source = far_rows(X, y, sample_weight)
        if source is None:
            given = Compared(*(on_host(values) for values in (X, y, sample_weight)))
        else:
            survey = surveyed(self._estimator(), source)
            given = Compared(survey.X, survey.y, survey.weight / np.max(survey.weight), source, survey)
        return given, self._estimator()._prepare(*given[:3])

    def _estimator(self, **chosen: Any) -> Any:
        """The model inside, with the parameters it shares with this one and those that are chosen."""
        shared = self._model._get_param_names()
        given = {name: value for name, value in self.get_params(deep=False).items() if name in shared}
        if given["tol"] is None:
            del given["tol"]
        return self._model(**given, **chosen)

    def _raced(self, rows: Prepared, *, classes: bool, **own: Any) -> Selection:
        """The kernel and λ that some rows choose; ``own`` are the parameters of the contest that the task decides."""
        assert rows.y is not None
        repeats = _repeated_splits(self.cv, rows.X, rows.y, rows.weight, self.random_state, classes=classes)
        contest = Contest(
            rows=rows,
            levels=_comparison_levels(rows.recipe.task.measure),
            folds=[fold for splits in repeats for fold in splits],
            folds_at_once=len(repeats[0]),
            progress=Progress(type(self).__name__, self.verbose),
            device=self.device,
            keeps_best=self.on_interrupt == "best",
            **own,
        )
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        return chosen(contest, self.kernels, self.alphas, self.rule, self.n_jobs, seed)

    def _refit(self, choice: Selection, given: Compared, **changes: Any) -> None:
        """Fit the chosen model to all rows and keep it; ``changes`` are those of its recipe."""
        # what ignores the features has nothing to calibrate: a free bias moves all the way by itself
        own = {} if choice.ignores_inputs else self._own
        alpha, survey = choice.alpha, given.survey
        if survey is not None and self.alphas is None and not choice.ignores_inputs:
            alpha *= shrinkage(survey.weight.size, survey.n)
        best = self._estimator(kernel=choice.kernel, alpha=alpha, **own)
        rows = best._prepare(given.X, given.y, given.weight)
        if self.tol is None and (rows.weight.size if survey is None else survey.n) > MANY_ROWS:
            changes["tol"] = GAP_OF_MANY
        landmarks = choice.contest.landmarks
        if landmarks is not None and self.features == "auto" and self.rank is None:
            changes["features"] = Nystroem(landmarks)
        self._fitted(best, given, rows._replace(recipe=replace(rows.recipe, **changes)), **changes)
        self.kernel_, self.alpha_, self.alpha_bias_ = choice.kernel, best.alpha_, best.alpha_bias_
        self.offset_ = best.recipe_.offset
        self.ignores_inputs_, self.cv_results_ = choice.ignores_inputs, choice.results
        self.best_estimator_ = best

    def _fitted(self, best: Any, given: Compared, rows: Prepared, **changes: Any) -> None:
        """Fit a model to all rows, in parts where the plain estimator would; ``rows`` are its own, with ``changes``.

        No warning: this model chooses by itself what one would advise.
        """
        source = given.source or source_of(given.X, given.y, given.weight, lambda: rows.recipe)
        if source is not None:
            fit_to(best, source, survey=given.survey, warn=False, **changes)
        else:
            best._learn(rows, warn=False)

    def _best(self) -> Any:
        """The model inside, with the default task as it is now."""
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
        # called only where this object has no such attribute: fitted attributes of the model inside
        if name.endswith("_") and not name.startswith("_") and "best_estimator_" in vars(self):
            return getattr(self._best(), name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _passed_on(name: str, method: Any) -> Any:
    """A method of the model inside as a method of the model that chose it."""

    @wraps(method)
    def passed_on(self: SelfTuned, *arguments: Any, **options: Any) -> Any:
        best = self._best()
        answer = getattr(best, name)(*arguments, **options)
        return self if answer is best else answer

    return passed_on


def _comparison_levels(measure: Measure) -> HostArray:
    """Tasks at which models are compared: the atoms of μ, or its deciles."""
    if measure.dim != 1:
        raise ValueError(f"measure={measure!r} was given; a self-tuned model has tasks on the line.")
    atoms = measure.atoms()
    nodes = measure.ppf(np.arange(1, 10)[:, None] / 10.0) if atoms is None else atoms.nodes
    return np.asarray(nodes[:, 0])


def _repeated_splits(
    cv: Any, X: HostArray, y: HostArray, weight: HostArray, random_state: Any, *, classes: bool
) -> list[Splits]:
    """The folds of a cross-validation, repeated where there are few rows.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        As in scikit-learn, taken once; None: shuffled folds, repeated.
    X, y, weight : ndarray
    random_state : int, RandomState or None
    classes : bool
        Whether y holds the signs of two classes, by which folds are stratified.
    """
    n = y.size
    if cv is not None:
        found = [splits_of(cv, X, y, classifier=classes)]
    elif n < 2:
        raise ValueError(f"{n} row was given; a cross-validation needs at least 2.")
    else:
        rng = check_random_state(random_state)
        size, telling, splitter = min(FOLDS, n), n, KFold
        if classes:
            # the rows of a rare class decide how much the loss of a fold varies
            positive = int(np.count_nonzero(y > 0.0))
            rare = min(positive, n - positive)
            splitter, telling = StratifiedKFold if rare >= size else KFold, max(1, 2 * rare)
        count = int(np.clip(np.ceil(ROWS_TO_HOLD_OUT / telling), 1, MAX_REPEATS))
        splitters = [splitter(size, shuffle=True, random_state=rng.randint(2**31 - 1)) for _ in range(count)]
        found = [list(each.split(X, y)) for each in splitters]
    if any(not np.any(weight[train] > 0.0) for splits in found for train, _ in splits):
        raise ValueError(
            f"{np.count_nonzero(weight)} rows have a positive sample_weight, and a fold is left without any to "
            "train on. Give weight to more rows, or other folds as cv."
        )
    return found
