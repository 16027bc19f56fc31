"""The estimators: scikit-learn's face of the library."""

from .classifier import InfiniteCostSensitiveClassifier
from .finite import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    JointQuantileRegressor,
    QOneClassSVM,
)
from .general import InfiniteTaskEstimator
from .level_set import InfiniteOneClassSVM
from .paths import InfiniteKernelRidge, InfiniteSVR
from .quantile import InfiniteQuantileRegressor
from .regression import InfiniteExpectileRegressor
from .sweep import fit_path, score_path

__all__ = [
    "IndependentCostSensitiveClassifier",
    "IndependentQuantileRegressor",
    "InfiniteCostSensitiveClassifier",
    "InfiniteExpectileRegressor",
    "InfiniteKernelRidge",
    "InfiniteOneClassSVM",
    "InfiniteQuantileRegressor",
    "InfiniteSVR",
    "InfiniteTaskEstimator",
    "JointQuantileRegressor",
    "QOneClassSVM",
    "fit_path",
    "score_path",
]
