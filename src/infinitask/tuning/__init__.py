"""Good parameters from data.

* :class:`InfiniteQuantileRegressorCV`, :class:`InfiniteCostSensitiveClassifierCV`, :class:`InfiniteOneClassSVMCV`:
  models that choose their own.
* :func:`score_path`: cross-validated scores along a path of λ.
* :class:`OptunaSearch`: a search over any parameters (extra "tune").

All compare by held-out rows, which the engine of :mod:`infinitask.calibration.held_out` predicts.
"""

from ._one_class_cv import InfiniteOneClassSVMCV
from ._optuna_search import OptunaSearch
from ._score_path import score_path
from ._self_tuned import InfiniteCostSensitiveClassifierCV, InfiniteQuantileRegressorCV

__all__ = [
    "InfiniteCostSensitiveClassifierCV",
    "InfiniteOneClassSVMCV",
    "InfiniteQuantileRegressorCV",
    "OptunaSearch",
    "score_path",
]
