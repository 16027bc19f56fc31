"""Good parameters from data: a search on top of Optuna (extra "tune")."""

from ._search import OptunaSearch

__all__ = ["OptunaSearch"]
