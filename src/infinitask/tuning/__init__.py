"""Good parameters from data: models that choose their own, and a search on top of Optuna (extra "tune")."""

from ._classifier_cv import InfiniteCostSensitiveClassifierCV
from ._quantile_cv import InfiniteQuantileRegressorCV
from ._search import OptunaSearch

__all__ = ["InfiniteCostSensitiveClassifierCV", "InfiniteQuantileRegressorCV", "OptunaSearch"]
