"""The estimators, with scikit-learn's interface: one file for each public class; the finite ones share one."""

import warnings
from importlib import import_module
from typing import Any

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
from .left_out import left_out_scores
from .one_class import InfiniteOneClassSVM
from .path import fit_path
from .quantile import InfiniteQuantileRegressor
from .svr import InfiniteSVR
from .task_estimator import InfiniteTaskEstimator

__all__ = [
    "CrossConformal",
    "IndependentCostSensitiveClassifier",
    "IndependentQuantileRegressor",
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
    "left_out_scores",
]


def __getattr__(name: str) -> Any:
    if name == "score_path":  # it compares models, and so it moved to infinitask.tuning
        words = "score_path has moved: import it from infinitask. This name goes with version 0.2."
        warnings.warn(words, FutureWarning, stacklevel=2)
        return import_module("infinitask").score_path
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
