"""The estimators: scikit-learn's face of the library, one file for each public class."""

from .classifier import InfiniteCostSensitiveClassifier
from .expectile import InfiniteExpectileRegressor
from .finite import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    JointQuantileRegressor,
    QOneClassSVM,
)
from .kernel_ridge import InfiniteKernelRidge
from .one_class import InfiniteOneClassSVM
from .path import fit_path
from .quantile import InfiniteQuantileRegressor
from .svr import InfiniteSVR
from .task_estimator import InfiniteTaskEstimator

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
]
