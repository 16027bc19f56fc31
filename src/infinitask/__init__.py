"""One fit answers a continuum of tasks.

h(x)(θ) = φ(x)ᵀ C ψ(θ) is learnt for every θ at once: quantile levels, costs of errors, outlier fractions. Every fit
ends with a certified duality gap.
"""

from infinitask.estimators import (
    CrossConformal,
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteCensoredQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
    QOneClassSVM,
    fit_path,
    left_out_scores,
)
from infinitask.field import Field
from infinitask.persistence import load, save
from infinitask.pipelines import TaskSearch, TransformedTarget, make_pipeline, tabular
from infinitask.solvers import Solution
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
    score_path,
)

__version__ = "0.1.0"

__all__ = [
    "CrossConformal",
    "Field",
    "IndependentCostSensitiveClassifier",
    "IndependentQuantileRegressor",
    "InfiniteCensoredQuantileRegressor",
    "InfiniteCostSensitiveClassifier",
    "InfiniteCostSensitiveClassifierCV",
    "InfiniteExpectileRegressor",
    "InfiniteFunctionRegressor",
    "InfiniteKernelRidge",
    "InfiniteOneClassSVM",
    "InfiniteOneClassSVMCV",
    "InfiniteQuantileRegressor",
    "InfiniteQuantileRegressorCV",
    "InfiniteSVR",
    "InfiniteTaskEstimator",
    "JointQuantileRegressor",
    "QOneClassSVM",
    "Solution",
    "TaskSearch",
    "TransformedTarget",
    "fit_path",
    "left_out_scores",
    "load",
    "make_pipeline",
    "save",
    "score_path",
    "tabular",
]
