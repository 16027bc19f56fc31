"""What self-tuned models share: they hold the model that they chose, and answer as it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from infinitask._validation import check_parameters
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.tuning._choice import Choice


class SelfTuned(BaseEstimator):
    """A model that chooses its kernel and λ; what it chose is ``best_estimator_``, and its methods are here as well."""

    _model: ClassVar[type[Any]]
    """The class of ``best_estimator_``."""

    best_estimator_: Any

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep what a constructor was given, as it was given; ``parameters`` are its ``locals()``."""
        BaseInfiniteTask._store(self, parameters)

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False), {})

    def _estimator(self, **chosen: Any) -> Any:
        """The model inside, with the parameters it shares with this one and those that are chosen."""
        shared = self._model._get_param_names()
        given = {name: value for name, value in self.get_params(deep=False).items() if name in shared}
        return self._model(**given, **chosen)

    def _refit(self, choice: Choice, alpha_bias: float, centre: float, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit the chosen model to all rows and keep it."""
        best = self._estimator(kernel=choice.kernel, alpha=choice.alpha, alpha_bias=alpha_bias)
        rows = best._prepare(X, y, sample_weight)
        rows = rows._replace(recipe=replace(rows.recipe, offset=centre))
        best._learn(rows, remark=False)  # this model chooses by itself what a remark would advise
        self.kernel_, self.alpha_, self.alpha_bias_, self.offset_ = choice.kernel, choice.alpha, alpha_bias, centre
        self.ignores_inputs_, self.cv_results_ = choice.ignores_inputs, choice.results
        self.best_estimator_ = best
        return self

    def _best(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return "best_estimator_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        return get_tags(self._model())

    def __getattr__(self, name: str) -> Any:
        # called only where this object has no such attribute
        if not name.startswith("_"):
            if "best_estimator_" in vars(self):
                return getattr(self.best_estimator_, name)
            if hasattr(self._model, name):
                raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit before {name}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._model) if not name.startswith("_"))})
