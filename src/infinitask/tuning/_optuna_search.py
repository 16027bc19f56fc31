"""A parameter search with Optuna, as a scikit-learn estimator."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from math import inf
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import joblib  # type: ignore[import-untyped, unused-ignore]
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.budget import Budget
from infinitask._base.events import Chosen, CutShort, Tried, Trying, tell
from infinitask._base.extras import needed
from infinitask._base.validation import (
    CONSTRAINTS,
    Constraint,
    check_parameters,
    count,
    flag,
    is_number,
    number,
    optional,
)
from infinitask.calibration.held_out import out_of_fold
from infinitask.tuning._score_path import checked, score_of

SPACE: dict[str, Any] = {"alpha": (1e-7, 10.0), "gamma": (1e-3, 1e2)}
"""The default search space, for features and targets of size one."""


SETTINGS: dict[str, Constraint] = {
    "n_trials": count,
    "progress": flag,
    "refit": flag,
    "search_tol": optional(CONSTRAINTS["tol"]),
    "timeout": optional(partial(number, low=0.0, open_low=True)),
}
"""Checks of the parameters of a search, in addition to the common table."""


@dataclass(eq=False, repr=False)
class OptunaSearch(MetaEstimatorMixin, BaseEstimator):
    """A sequential search for good parameters by cross-validation, with Optuna.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library, or any scikit-learn estimator.
    space : dict or None
        For each parameter a pair (low, high) of positive numbers, searched on a logarithmic scale; a list of choices;
        or a distribution of Optuna. A pair of integers means the integers in between, such as {"n_nodes": (10, 80)},
        unless the parameter is a real number. Names are those of ``set_params``. None: λ from 1e-7 to 10 and γ from
        1e-3 to 100, which suits standardised data.
    n_trials : int
        The total number of trials, including those found in ``storage``.
    timeout : float or None
        The number of seconds after which no further trial starts; at least one is run. None: no limit.
    sampler : {"tpe", "gp", "random"} or optuna sampler
        Tree-structured Parzen estimators; a Gaussian process with expected improvement that starts from 27 Sobol
        points, as in the paper; random sampling. With one of these and a ``random_state``, an interrupted search that
        is continued has the same result as an uninterrupted one.
    cv : int, splitter or iterable of (train, test)
        As in scikit-learn.
    scoring : str, callable or None
        As in scikit-learn, greater is better; None: the estimator's ``score``. ``infinitask.metrics`` has scorers for
        the integrated and for the finite-level losses.
    search_tol : float or None
        The duality gap of the fits during the search, if the estimator has a ``tol``; the final fit uses that ``tol``.
        None: all fits use it.
    n_jobs : int
        The number of folds fitted in parallel processes; the scores do not depend on it.
    storage : path, optuna storage or None
        A file for the finished trials, created if it does not exist. A search with the same data and settings continues
        from it; any other search raises an error.
    refit : bool
        Whether to fit the estimator with the best parameters to all rows.
    progress : bool
        Whether to show a progress bar with the best score so far.
    on_interrupt : {"raise", "best"}, default="raise"
        The effect of Ctrl-C. "raise" ends the fit, "best" only the search, if a trial is finished.
    random_state : None, int or numpy.random.RandomState

    Attributes
    ----------
    best_params_ : dict
    best_score_ : float
        The mean score over the folds.
    best_estimator_ : estimator
        Only with ``refit``; ``predict`` and all its other methods and attributes are available here as well.
    cv_results_ : dict of lists
        ``params``, ``mean_test_score``, ``std_test_score`` and ``splits_test_score`` of every finished trial, in order.
    study_ : optuna.study.Study

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.metrics import scorer
    >>> from infinitask.tuning import OptunaSearch
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressor()
    >>> search = OptunaSearch(model, n_trials=8, scoring=scorer("pinball"), random_state=0)
    >>> search.fit(X, y).predict(X[:2], quantiles=[0.1, 0.9]).shape
    (2, 2)
    >>> sorted(search.best_params_)
    ['alpha', 'gamma']
    """

    estimator: Any
    space: Mapping[str, Any] | None = None
    _: KW_ONLY
    n_trials: int = 50
    timeout: float | None = None
    sampler: Any = "tpe"
    cv: Any = 5
    scoring: Any = None
    search_tol: float | None = 1e-2
    n_jobs: int = 1
    storage: Any = None
    refit: bool = True
    progress: bool = False
    on_interrupt: str = "raise"
    random_state: Any = None

    # ------------------------------------------------------------------------------------------------------ the search
    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Search for the best parameters, and fit with them.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
            Weights of the fits; scores are not weighted.
        """
        optuna = needed("optuna", "OptunaSearch needs Optuna", "tune")
        from tqdm import tqdm  # type: ignore[import-untyped, unused-ignore]  # Optuna needs it too

        self._check_settings()
        space = self._distributions(optuna)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        X, y, weight, folds = checked(self.estimator, X, y, sample_weight, self.cv, self.scoring)
        base = clone(self.estimator)
        if self.search_tol is not None and "tol" in base.get_params() and "tol" not in space:
            base.set_params(tol=max(float(self.search_tol), float(base.get_params()["tol"])))
        job = partial(_score_of_fit, scoring=self.scoring)
        with _without_messages(optuna):
            kept = self._kept(optuna, space, X, y, weight, folds)
            study = optuna.create_study(direction="maximize", sampler=_sampler(optuna, self.sampler, space, seed))
            study.add_trials([] if kept is None else kept.get_trials())
            done = len(study.get_trials(deepcopy=False))
            total = max(done, self.n_trials)
            budget, values = Budget(inf if self.timeout is None else self.timeout), _values(study)
            bar = tqdm(total=total, initial=done, desc="search", file=sys.stderr, disable=not self.progress)
            with Parallel(n_jobs=self.n_jobs) as parallel, bar:
                for k in range(done, self.n_trials):
                    if values and budget.over:
                        tell(CutShort("out of time: the best so far is taken", interrupted=False))
                        break
                    if self.sampler in ("tpe", "random"):  # random numbers depend on the trial, not on this process
                        study.sampler = _sampler(optuna, self.sampler, space, (seed + 7919 * k) % 2**31)
                    trial = study.ask(space)
                    try:
                        tell(Trying(k + 1, self.n_trials, ""))
                        model = clone(base).set_params(**trial.params)
                        scores = out_of_fold(job, model, X, y, folds, weight=weight, parallel=parallel)
                        if not np.all(np.isfinite(scores)):
                            raise ArithmeticError(f"the scores of its folds are {scores}.")
                    except KeyboardInterrupt:
                        if values and self.on_interrupt == "best":
                            tell(CutShort("interrupted: the best so far is taken"))
                            break
                        if kept is None:
                            raise
                        words = f"{k} of {self.n_trials} trials are kept in {self.storage}: fit again to go on."
                        raise KeyboardInterrupt(words) from None
                    except (ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
                        loss = float("inf")
                        study.tell(trial, state=optuna.trial.TrialState.FAIL)
                        warnings.warn(f"A fit with {trial.params} failed: {error}", FitFailedWarning, stacklevel=2)
                    else:
                        trial.set_user_attr("splits", scores)
                        loss = -float(np.mean(scores))
                        study.tell(trial, -loss)
                    if kept is not None:  # write a finished trial in one piece: an interrupted write leaves no trace
                        kept.add_trial(study.get_trials(deepcopy=False)[k])
                    bar.update()
                    values = _values(study)
                    if values:
                        tell(Tried(k + 1, self.n_trials, "", loss, -max(values)))
                    bar.set_postfix(best=f"{max(values):.5g}" if values else "-")
        self._write(optuna, study)
        if self.refit:
            tell(Chosen(str(self.best_params_)))
            given = {"X": X, "y": y, "sample_weight": weight}
            best = clone(self.estimator).set_params(**self.best_params_)
            self.best_estimator_ = best.fit(**{name: value for name, value in given.items() if value is not None})
        return self

    def _check_settings(self) -> None:
        """Raise an error if a parameter of the search is invalid."""
        check_parameters(self.get_params(deep=False), SETTINGS)
        if isinstance(self.estimator, type) or not hasattr(self.estimator, "get_params"):
            raise TypeError(
                f"estimator={self.estimator!r} was given; it must be an estimator, such as InfiniteQuantileRegressor()."
            )
        if self.space is not None and not isinstance(self.space, Mapping):
            raise ValueError(
                f"space={self.space!r} was given; it must be a dict from names of parameters to what they may be, such "
                "as {'alpha': (1e-6, 1.0)}, or None for λ and γ."
            )

    def _distributions(self, optuna: Any) -> dict[str, Any]:
        """Convert the space to distributions of Optuna, or raise an error."""
        known, space = self.estimator.get_params(), SPACE if self.space is None else self.space
        found = {name: _distribution(optuna, name, given, known.get(name)) for name, given in space.items()}
        if not found:
            raise ValueError(
                "space={} was given, which leaves nothing to search; name parameters, or None for λ and γ."
            )
        unknown = [name for name in found if name not in known]
        if unknown:
            raise ValueError(
                f"space names {', '.join(map(repr, unknown))}, which {type(self.estimator).__name__} does not have; "
                f"its parameters are {', '.join(sorted(known))}."
            )
        return found

    def _kept(self, optuna: Any, space: Mapping[str, Any], X: Any, y: Any, weight: Any, folds: Any) -> Any:
        """Return the study of the finished trials, new or continued; None without a storage."""
        storage = self.storage
        if storage is None:
            return None
        if isinstance(storage, (str, Path)):
            if not Path(storage).absolute().parent.is_dir():
                raise ValueError(
                    f"storage={str(storage)!r} was given, and there is no folder {Path(storage).absolute().parent}; "
                    "make it, or name a file elsewhere."
                )
            _drop_cut_off_line(Path(storage))
            storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(storage)))
        elif not isinstance(storage, optuna.storages.BaseStorage):
            raise ValueError(f"storage={storage!r} was given; it must be the path of a file, or a storage of Optuna.")
        study = optuna.create_study(study_name="infinitask", storage=storage, direction="maximize", load_if_exists=True)
        settings = (self.estimator, space, self.sampler, self.search_tol, self.scoring, self.random_state)
        words = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(settings))
        asked = joblib.hash((words, X, y, weight, folds))
        found = study.user_attrs.get("problem")
        if found is None:
            study.set_user_attr("problem", asked)
        elif found != asked:
            raise ValueError(
                f"storage={str(self.storage)!r} holds the trials of a search with other data or settings. Use another "
                "file, or delete this one to start again."
            )
        return study

    def _write(self, optuna: Any, study: Any) -> None:
        trials = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
        if not trials:
            raise ValueError("Every trial failed; see the warnings above for the reasons, and choose another space.")
        splits = [trial.user_attrs["splits"] for trial in trials]
        means = [float(np.mean(part)) for part in splits]
        self.cv_results_ = {
            "params": [dict(trial.params) for trial in trials],
            "mean_test_score": means,
            "std_test_score": [float(np.std(part)) for part in splits],
            "splits_test_score": splits,
        }
        best = int(np.argmax(means))
        self.best_params_, self.best_score_ = dict(trials[best].params), means[best]
        self.study_ = study

    # -------------------------------------------------------------------------------------------------- the estimator
    def predict(self, X: Any, *arguments: Any, **options: Any) -> HostArray:
        """Return the predictions of the best estimator."""
        check_is_fitted(self, "best_estimator_")
        return np.asarray(self.best_estimator_.predict(X, *arguments, **options))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the score of the best estimator, by ``scoring``."""
        check_is_fitted(self, "best_estimator_")
        return score_of(self.best_estimator_, X, y, self.scoring)

    def __getattr__(self, name: str) -> Any:
        # other attributes of the best estimator; called only if this object has no such attribute
        if name.startswith("_") or "best_estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.best_estimator_, name)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


def _score_of_fit(model: Any, seen: dict[str, Any], X: Any, y: Any, *, scoring: Any) -> float:
    """The score on the held-out rows of a fold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # most trials are not chosen
        return score_of(model.fit(**seen), X, y, scoring)


def _values(study: Any) -> list[float]:
    """The scores of the trials that did not fail."""
    return [trial.value for trial in study.get_trials(deepcopy=False) if trial.value is not None]


def _distribution(optuna: Any, name: str, given: Any, default: Any = None) -> Any:
    """Convert a user's entry to a distribution of Optuna; ``default`` is the estimator's value of the parameter."""
    if isinstance(given, optuna.distributions.BaseDistribution):
        return given
    if isinstance(given, list) and given:
        return optuna.distributions.CategoricalDistribution(given)
    if isinstance(given, tuple) and len(given) == 2 and all(map(is_number, given)) and 0.0 < given[0] < given[1]:
        if all(isinstance(end, Integral) for end in given) and not _is_real(name, default):
            return optuna.distributions.IntDistribution(int(given[0]), int(given[1]), log=True)
        return optuna.distributions.FloatDistribution(float(given[0]), float(given[1]), log=True)
    raise ValueError(
        f"space[{name!r}]={given!r} was given; expected a pair (low, high) with 0 < low < high, a list of choices, or "
        "a distribution of Optuna."
    )


def _is_real(name: str, default: Any) -> bool:
    """Whether a parameter is a real number, by the common table or by its current value: (1, 10) for alpha."""
    parameter = name.rpartition("__")[2]
    if parameter not in CONSTRAINTS:
        return isinstance(default, float)
    try:
        CONSTRAINTS[parameter](parameter, 1.5)
    except ValueError:
        return False
    return True


def _sampler(optuna: Any, given: Any, space: Mapping[str, Any], seed: int) -> Any:
    if given == "gp":
        from infinitask.tuning._sampler import ExpectedImprovement

        return ExpectedImprovement(space, seed=seed % 2**20)
    if given == "tpe":
        return optuna.samplers.TPESampler(seed=seed, multivariate=True)
    if given == "random":
        return optuna.samplers.RandomSampler(seed=seed)
    if isinstance(given, optuna.samplers.BaseSampler):
        return given
    raise ValueError(f"sampler={given!r} was given; it must be 'tpe', 'gp', 'random' or a sampler of Optuna.")


def _drop_cut_off_line(file: Path) -> None:
    """Drop an incomplete last line, to which the next write would append."""
    if file.exists():
        text = file.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            os.truncate(file, whole)


@contextmanager
def _without_messages(optuna: Any) -> Iterator[None]:
    """Suppress the line for every trial, and warnings about experimental parts of Optuna."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(level)
