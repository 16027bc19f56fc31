"""Hyperparameter selection.

* :class:`InfiniteQuantileRegressorCV`, :class:`InfiniteCostSensitiveClassifierCV`, :class:`InfiniteOneClassSVMCV`:
  models that choose their own hyperparameters.
* :func:`score_path`: cross-validated scores along a path of λ.
* :class:`OptunaSearch`: a search over any parameters (extra "tune").

All compare held-out predictions of the engine in :mod:`infinitask.calibration.held_out`.
"""

from ._one_class_cv import InfiniteOneClassSVMCV
from ._optuna_search import OptunaSearch
from ._score_path import score_path
from ._supervised_cv import InfiniteCostSensitiveClassifierCV, InfiniteQuantileRegressorCV

__all__ = [
    "InfiniteCostSensitiveClassifierCV",
    "InfiniteOneClassSVMCV",
    "InfiniteQuantileRegressorCV",
    "OptunaSearch",
    "score_path",
]
