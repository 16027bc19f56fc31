"""Good parameters from data: models that choose their own, and a search on top of Optuna (extra "tune")."""

from ._cv import InfiniteQuantileRegressorCV
from ._search import OptunaSearch

__all__ = ["InfiniteQuantileRegressorCV", "OptunaSearch"]
