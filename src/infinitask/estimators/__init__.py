"""The estimators, with scikit-learn's interface: one file for each public class; the finite models share one.

Functions that fit an estimator several times are in ``refits.py``.
"""

from .censored import InfiniteCensoredQuantileRegressor
from .classifier import InfiniteCostSensitiveClassifier
from .cross_conformal import CrossConformal
from .expectile import InfiniteExpectileRegressor
from .finite import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    JointQuantileRegressor,
    QOneClassSVM,
)
from .function import InfiniteFunctionRegressor
from .kernel_ridge import InfiniteKernelRidge
from .one_class import InfiniteOneClassSVM
from .quantile import InfiniteQuantileRegressor
from .refits import fit_path, out_of_fold_scores
from .svr import InfiniteSVR
from .task_estimator import InfiniteTaskEstimator

__all__ = [
    "CrossConformal",
    "IndependentCostSensitiveClassifier",
    "IndependentQuantileRegressor",
    "InfiniteCensoredQuantileRegressor",
    "InfiniteCostSensitiveClassifier",
    "InfiniteExpectileRegressor",
    "InfiniteFunctionRegressor",
    "InfiniteKernelRidge",
    "InfiniteOneClassSVM",
    "InfiniteQuantileRegressor",
    "InfiniteSVR",
    "InfiniteTaskEstimator",
    "JointQuantileRegressor",
    "QOneClassSVM",
    "fit_path",
    "out_of_fold_scores",
]
