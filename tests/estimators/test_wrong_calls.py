"""Wrong calls of the estimators: each one is refused by a sentence that names the argument."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from infinitask import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
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
    score_path,
)
from infinitask.features import Nystroem
from infinitask.kernels import RBF, Gaussian, Matern, MaternTask
from infinitask.losses import LevelSet, MQuantile, Pinball
from infinitask.measures import Beta, Discrete, ProductMeasure, Sobol, Uniform
from infinitask.penalties import IntegratedRidge
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
    OptunaSearch,
)
from tests.support.wrong_calls import Wrong, check_all_refused

X = np.random.default_rng(0).normal(size=(8, 2))
Y = np.arange(8.0) % 3
LABELS = np.arange(8) % 2
NAN, INF = float("nan"), float("inf")

ESTIMATORS = (
    InfiniteQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteTaskEstimator,
    InfiniteSVR,
    InfiniteKernelRidge,
    InfiniteFunctionRegressor,
    JointQuantileRegressor,
    IndependentQuantileRegressor,
    IndependentCostSensitiveClassifier,
    QOneClassSVM,
    InfiniteQuantileRegressorCV,
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
)

LEVELS = (0.0, 1.0, 95, [5, 95], -0.1, NAN, "half", [], [[0.1, 0.2]], None, {0.5})
PARAMETERS: dict[str, tuple[Any, ...]] = {
    "kernel": ("foo", None, 3, Gaussian(), RBF),
    "gamma": ("foo", -1.0, 0.0, NAN, INF, [1.0], None, True),
    "task_kernel": ("foo", None, 3, RBF(), Gaussian),
    "task_gamma": ("foo", -1.0, 0.0, NAN, [1.0], True),
    "bias_kernel": ("foo", 3, RBF(), Gaussian),
    "alpha": (-1.0, NAN, INF, "small", None, [1.0], True),
    "alpha_bias": (-1.0, NAN, "small", [1.0], True),
    "measure": ("uniform", 3, Uniform, (NAN, 1.0), (0.1, 0.5, 0.9), stats.norm, stats.poisson(3.0)),
    "quadrature": ("simpson", None, Sobol, 3),
    "n_nodes": (0, -1, 2.5, True, "many"),
    "features": ("all", None, Nystroem, 3),
    "rank": (0, -1, 1.5, True, "few"),
    "solver": ("simplex", None, 1),
    "tol": (0.0, -1.0, NAN, 1.0, 2, "small", None, True),
    "max_iter": (0, -1, 10.5, None, "many", True),
    "random_state": ("dice", -1, 1.5, [1.0]),
    "verbose": ("loud", -1, 1.5, None),
    "warm_start": ("yes", None, 2),
    "noncrossing": ("foo", -1.0, NAN, None, [1.0]),
    "smoothing": (-1.0, NAN, "small", None),
    "quantiles": LEVELS,
    "expectiles": LEVELS,
    "epsilon": (-1.0, NAN, "small", None),
    "log_alpha": ("small", 99.0, NAN, None),
    "thetas": (2.0, [0.5, 0.5], [], "half", [NAN], None),
    "nus": (0.0, [0.1, 5], [0.5, 0.5], [], "half", [NAN], None),
    "nested": ("yes", None, 1),
    "exact_fractions": ("yes", None, 1),
    "loss": ("foo", None, Pinball, LevelSet(), 3),
    "penalty": ("lasso", None, IntegratedRidge, 3, [1.0]),
    "kernels": ("foo", 3, [], ["rbf", "foo"], ["precomputed"]),
    "alphas": (0.0, [], [-1.0], [NAN], "small", [[0.1]]),
    "cv": ("foo", 1, 100, 0.5),
    "rule": ("worst", None, 3),
    "n_jobs": (0, 1.5, "two", True),
    "theta": (2.0, NAN, "half", [], {0.5}, [[0.1, 0.2]]),
    "nu": (5, 0.0, -0.1, NAN, "half", [0.1, 0.2]),
}
"""For each parameter, values that no estimator takes."""

OWN: list[tuple[type[Any], dict[str, Any], str]] = [
    (InfiniteQuantileRegressor, {"alpha": 0.0}, "alpha"),
    (InfiniteExpectileRegressor, {"alpha": 0.0}, "alpha"),
    (InfiniteCostSensitiveClassifier, {"alpha": 0.0}, "alpha"),
    (InfiniteSVR, {"alpha": 0.0}, "alpha"),
    (InfiniteTaskEstimator, {"alpha": 0.0}, "alpha"),
    (InfiniteTaskEstimator, {"measure": (-3.0, 3.0)}, "measure"),
    (InfiniteExpectileRegressor, {"measure": (-3.0, 3.0)}, "measure"),
    (InfiniteTaskEstimator, {"noncrossing": "hard"}, "noncrossing"),
    (InfiniteTaskEstimator, {"noncrossing": "rearrange"}, "noncrossing"),
    (InfiniteTaskEstimator, {"loss": MQuantile(-1.0)}, "kappa"),
    (InfiniteTaskEstimator, {"loss": MQuantile("wide")}, "kappa"),
    (InfiniteTaskEstimator, {"penalty": "integrated", "noncrossing": 1.0}, "noncrossing"),
    (InfiniteTaskEstimator, {"penalty": IntegratedRidge(lambda t: -np.ones(len(t)))}, "weight"),
    (InfiniteTaskEstimator, {"penalty": IntegratedRidge(3)}, "weight"),
    (InfiniteTaskEstimator, {"theta": 95}, "theta"),
    (InfiniteQuantileRegressor, {"measure": (-1.0, 1.0)}, "measure"),
    (InfiniteQuantileRegressor, {"measure": (0.9, 0.1)}, "Uniform"),
    (InfiniteQuantileRegressor, {"measure": Discrete([0.1, 5])}, "measure"),
    (InfiniteQuantileRegressor, {"measure": Discrete([0.1, 0.1])}, "points"),
    (InfiniteQuantileRegressor, {"measure": Discrete([0.1, 0.5], weights=[-1.0, 2.0])}, "weights"),
    (InfiniteQuantileRegressor, {"measure": ProductMeasure([Uniform(), Uniform()])}, "measure"),
    (InfiniteQuantileRegressor, {"measure": Beta(-1.0, 2.0)}, "a"),
    (InfiniteQuantileRegressor, {"quadrature": "discrete"}, "quadrature"),
    (InfiniteQuantileRegressor, {"quantiles": 0.05, "measure": (0.2, 0.8)}, "quantiles"),
    (InfiniteQuantileRegressor, {"task_kernel": "diagonal"}, "task_kernel"),
    (InfiniteQuantileRegressor, {"bias_kernel": "diagonal"}, "bias_kernel"),
    (InfiniteQuantileRegressor, {"noncrossing": "hard", "task_kernel": "matern32"}, "noncrossing"),
    (InfiniteQuantileRegressor, {"task_kernel": MaternTask(nu=7.0)}, "nu"),
    (InfiniteQuantileRegressor, {"kernel": Matern(nu=7.0)}, "nu"),
    (InfiniteQuantileRegressor, {"kernel": RBF(gamma=-1.0)}, "gamma"),
    (InfiniteQuantileRegressor, {"kernel": "precomputed"}, "kernel"),
    (InfiniteQuantileRegressor, {"kernel": "linear", "features": "fourier"}, "features"),
    (InfiniteQuantileRegressor, {"kernel": lambda x, z: x}, "kernel"),
    (InfiniteQuantileRegressor, {"kernel": lambda x, z: -x @ z.T}, "kernel"),
    (InfiniteQuantileRegressor, {"kernel": "linear", "gamma": "foo"}, "gamma"),
    (InfiniteQuantileRegressor, {"kernel": RBF(), "gamma": -1.0}, "gamma"),
    (InfiniteQuantileRegressor, {"features": Nystroem(landmarks="best")}, "landmarks"),
    (InfiniteQuantileRegressor, {"features": Nystroem(rank=0)}, "rank"),
    (InfiniteOneClassSVM, {"measure": (0.0, 1.0)}, "measure"),
    (InfiniteOneClassSVM, {"bias_kernel": None}, "bias_kernel"),
    (InfiniteCostSensitiveClassifier, {"measure": (-2.0, 2.0)}, "measure"),
    (IndependentCostSensitiveClassifier, {"theta": 0.3}, "theta"),
    (QOneClassSVM, {"nu": 0.2}, "nu"),
    (InfiniteKernelRidge, {"measure": (-99.0, 1.0)}, "measure"),
    (InfiniteSVR, {"measure": (-1.0, 1.0)}, "measure"),
]


def target(cls: type[Any]) -> Any:
    if "OneClass" in cls.__name__:
        return None
    return LABELS if "Classifier" in cls.__name__ else Y


def fit(cls: type[Any], params: dict[str, Any]) -> Any:
    small = {"n_nodes": 4} if "n_nodes" in inspect.signature(cls).parameters else {}
    return cls(**small | params).fit(X, target(cls))


def of_constructor(cls: type[Any]) -> Iterator[Wrong]:
    known = inspect.signature(cls).parameters
    for name, values in PARAMETERS.items():
        if name not in known:
            continue
        for value in values:
            if value is None and known[name].default is None:
                continue
            yield Wrong(f"{name}={value!r:.40}", partial(fit, cls, {name: value}), name)
    for owner, params, name in OWN:
        if owner is cls:
            yield Wrong(f"{params!r:.60}", partial(fit, cls, params), name)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_wrong_parameter_is_named(cls: type[Any]) -> None:
    check_all_refused(of_constructor(cls))


# ------------------------------------------------------------------------------------------------ data of a fit
HOLE, POLE = np.where(X > 1.0, NAN, X), np.where(X > 1.0, INF, X)
DATA: list[tuple[dict[str, Any], str]] = [
    ({"X": X[:, 0]}, "X"),
    ({"X": X[None]}, "X"),
    ({"X": X[:0]}, "X"),
    ({"X": X[:, :0]}, "X"),
    ({"X": HOLE}, "X"),
    ({"X": POLE}, "X"),
    ({"X": 1e200 * X}, "X"),
    ({"X": X.astype(str).astype(object) + "a"}, "X"),
    ({"X": None}, "X"),
    ({"X": 3.0}, "X"),
    ({"X": X + 1j}, "X"),
    ({"X": [[1.0], [1.0, 2.0]]}, "X"),
    ({"X": X[:5]}, "y"),
    ({"y": Y[:5]}, "y"),
    ({"y": np.where(Y > 1.0, NAN, Y)}, "y"),
    ({"y": np.where(Y > 1.0, INF, Y)}, "y"),
    ({"y": Y * 1e200}, "y"),
    ({"y": None}, "y"),
    ({"y": np.column_stack([Y, Y])}, "y"),
    ({"y": ["a"] * 8}, "y"),
    ({"y": 3.0}, "y"),
    ({"sample_weight": -np.ones(8)}, "sample_weight"),
    ({"sample_weight": np.zeros(8)}, "sample_weight"),
    ({"sample_weight": np.full(8, NAN)}, "sample_weight"),
    ({"sample_weight": np.ones(5)}, "sample_weight"),
    ({"sample_weight": np.ones((8, 1))}, "sample_weight"),
    ({"sample_weight": ["a"] * 8}, "sample_weight"),
]


def of_data() -> Iterator[Wrong]:
    for cls in (InfiniteQuantileRegressor, InfiniteKernelRidge, InfiniteQuantileRegressorCV):
        for k, (wrong, name) in enumerate(DATA):
            call = partial(cls().fit, **{"X": X, "y": Y, **wrong})
            yield Wrong(f"{cls.__name__}.fit, {next(iter(wrong))} {k}", call, name)
    for k, (wrong, name) in enumerate(DATA):
        if "y" in wrong or name == "y":
            continue
        call = partial(InfiniteOneClassSVM().fit, **{"X": X, **wrong})
        yield Wrong(f"InfiniteOneClassSVM.fit, {next(iter(wrong))} {k}", call, name)
    for k, labels in enumerate(([0] * 8, [[0, 1], [1, 1]] * 4, Y + 0.5, None, LABELS[:5])):
        for cls in (InfiniteCostSensitiveClassifier, InfiniteCostSensitiveClassifierCV):
            yield Wrong(f"{cls.__name__}.fit, y {k}", partial(cls().fit, X, labels), "y")
    gram = X @ X.T
    for k, wrong_gram in enumerate((gram[:5], gram + np.tri(8), -gram, np.full((8, 8), NAN))):
        name = "X" if np.isnan(wrong_gram).any() else "kernel"
        call = partial(InfiniteSVR(kernel="precomputed").fit, wrong_gram, Y[: len(wrong_gram)])
        yield Wrong(f"a Gram matrix {k}", call, name)


def test_wrong_data_are_named() -> None:
    check_all_refused(of_data())


# -------------------------------------------------------------------------------------------- questions after a fit
@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {
        "quantile": InfiniteQuantileRegressor(n_nodes=4).fit(X, Y),
        "conformal": InfiniteQuantileRegressor(n_nodes=4).fit(X, Y).conformalize(X, Y),
        "joint": JointQuantileRegressor(quantiles=[0.1, 0.5, 0.9]).fit(X, Y),
        "expectile": InfiniteExpectileRegressor(n_nodes=4).fit(X, Y),
        "classifier": InfiniteCostSensitiveClassifier(n_nodes=4).fit(X, LABELS),
        "one_class": InfiniteOneClassSVM(n_nodes=4).fit(X),
        "nested": InfiniteOneClassSVM(n_nodes=4, nested=True).fit(X),
        "svr": InfiniteSVR(n_nodes=4, measure=(0.0, 1.0)).fit(X, Y),
        "ridge": InfiniteKernelRidge(n_nodes=4).fit(X, Y),
        "general": InfiniteTaskEstimator(n_nodes=4).fit(X, Y),
        "search": OptunaSearch(InfiniteQuantileRegressor(n_nodes=4), n_trials=1, cv=2).fit(X, Y),
    }


QUESTIONS: list[tuple[str, str, dict[str, Any], str]] = [
    *[("quantile", "predict", {"X": X, "quantiles": v}, "quantiles") for v in LEVELS if v is not None],
    *[("search", "predict", {"X": X, "quantiles": v}, "quantiles") for v in (95, 0.0, "half")],
    *[("joint", "predict", {"X": X, "quantiles": v}, "quantiles") for v in (0.3, 95, "half", [])],
    *[("expectile", "predict", {"X": X, "expectiles": v}, "expectiles") for v in LEVELS if v is not None],
    *[("classifier", "predict", {"X": X, "theta": v}, "theta") for v in (2.0, NAN, "half", [], [[0.1, 0.2]])],
    *[("classifier", "decision_function", {"X": X, "theta": v}, "theta") for v in (2.0, NAN, "half", [])],
    ("classifier", "predict", {"X": X, "theta": [0.1, 0.2], "per_sample": True}, "theta"),
    ("classifier", "predict", {"X": X, "theta": 0.5, "per_sample": True}, "theta"),
    ("classifier", "predict", {"X": X, "theta": 0.5, "per_sample": "yes"}, "per_sample"),
    *[("one_class", "predict", {"X": X, "nu": v}, "nu") for v in (5, 0.0, NAN, "half", [], [[0.1, 0.2]])],
    *[("nested", "predict", {"X": X, "nu": v}, "nu") for v in (5, 0.0, NAN, "half", [])],
    *[("one_class", "decision_function", {"X": X, "nu": v}, "nu") for v in (5, 0.0, NAN, "half", [])],
    *[("one_class", "threshold", {"nu": v}, "nu") for v in (5, 0.0, NAN, "half", [])],
    *[("svr", "predict", {"X": X, "epsilon": v}, "epsilon") for v in (-1.0, 2.0, NAN, "half", [])],
    *[("ridge", "predict", {"X": X, "log_alpha": v}, "log_alpha") for v in (-9.0, 9.0, NAN, "half", [])],
    *[("general", "predict", {"X": X, "theta": v}, "theta") for v in (95, -1.0, NAN, "half", [])],
    *[
        (model, "predict", {"X": v}, "X")
        for model in ("quantile", "joint", "classifier", "one_class", "nested", "svr", "ridge", "general")
        for v in (X[:, 0], X[:, :1], HOLE, X[:0], 1e200 * X, None)
    ],
    *[
        (model, "predict_interval", {"X": X, "coverage": v}, "coverage")
        for model in ("quantile", "conformal")
        for v in (0.0, 1.0, 1, 90, [0.5, 90], -0.1, NAN, "half", [], [[0.5]], None, True)
    ],
    ("joint", "predict_interval", {"X": X, "coverage": 0.5}, "coverage"),
    ("quantile", "conformalize", {"X": X, "y": Y[:5]}, "y"),
    ("quantile", "conformalize", {"X": X, "y": np.where(Y > 1, NAN, Y)}, "y"),
    ("quantile", "conformalize", {"X": X, "y": np.column_stack([Y, Y])}, "y"),
    ("quantile", "conformalize", {"X": HOLE, "y": Y}, "X"),
    ("quantile", "predict_cdf", {"X": X, "y": Y[:5]}, "y"),
    ("quantile", "predict_cdf", {"X": X, "y": "high"}, "y"),
    ("quantile", "predict_cdf", {"X": X, "y": NAN}, "y"),
    *[("quantile", "sample", {"X": X, "n_samples": v}, "n_samples") for v in (0, -1, 1.5, "two")],
    ("quantile", "sample", {"X": X, "random_state": "dice"}, "random_state"),
    *[("quantile", "score", {"X": X, "y": v}, "y") for v in (Y[:5], np.full(8, NAN), ["a"] * 8, None)],
    *[("quantile", "score", {"X": X, "y": Y, "sample_weight": v}, "sample_weight") for v in (-np.ones(8), np.ones(5))],
    *[("quantile", "score", {"X": X, "y": Y, "sample_weight": v}, "sample_weight") for v in (np.zeros(8), ["a"] * 8)],
    *[("expectile", "score", {"X": X, "y": Y, "sample_weight": v}, "sample_weight") for v in (np.zeros(8), np.ones(5))],
    *[("general", "score", {"X": X, "y": Y, "sample_weight": v}, "sample_weight") for v in (np.zeros(8), np.ones(5))],
    *[("expectile", "score", {"X": X, "y": v}, "y") for v in (Y[:5], np.full(8, NAN))],
    *[("general", "score", {"X": X, "y": v}, "y") for v in (Y[:5], np.full(8, NAN), np.ones((8, 2)))],
    *[
        ("classifier", method, {"X": X, "y": v}, "y")
        for method in ("roc_curve", "cost_curve", "net_benefit_curve")
        for v in (LABELS[:5], LABELS + 5)
    ],
    ("classifier", "roc_curve", {"X": X, "y": np.zeros(8)}, "y"),
    ("classifier", "roc_curve", {"X": X, "y": LABELS, "sample_weight": -np.ones(8)}, "sample_weight"),
    ("classifier", "roc_curve", {"X": X, "y": LABELS, "sample_weight": np.zeros(8)}, "sample_weight"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS}, "max_fpr"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "max_fpr": 5}, "max_fpr"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "max_fpr": -0.1}, "max_fpr"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "min_sensitivity": 95}, "min_sensitivity"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "min_sensitivity": "high"}, "min_sensitivity"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "max_fpr": 0.5, "confidence": 95}, "confidence"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "max_fpr": 0.5, "confidence": 1.0}, "confidence"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "fn_cost": 1.0}, "fp_cost"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "fn_cost": -1.0, "fp_cost": 1.0}, "fn_cost"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "fn_cost": "much", "fp_cost": 1.0}, "fn_cost"),
    ("classifier", "choose_theta", {"X": X, "y": LABELS, "fn_cost": [1, 2], "fp_cost": 1.0}, "fn_cost"),
    ("classifier", "theta_from_costs", {"fn_cost": NAN, "fp_cost": 1.0}, "fn_cost"),
    ("classifier", "theta_from_costs", {"fn_cost": 0.0, "fp_cost": 0.0}, "fn_cost"),
    ("classifier", "theta_from_costs", {"fn_cost": [1, 2, 3], "fp_cost": [1, 2]}, "fp_cost"),
    *[("one_class", "mass_volume_curve", {"X": X, "n_samples": v}, "n_samples") for v in (0, 1.5, "two")],
    ("one_class", "mass_volume_curve", {"X": HOLE}, "X"),
    ("one_class", "mass_volume_curve", {"X": X, "random_state": "dice"}, "random_state"),
    *[("one_class", "mass_volume_area", {"X": X, "masses": v}, "masses") for v in ((0.9, 0.1), (10, 90), 0.5, "all")],
]


def test_a_wrong_argument_of_a_method_is_named(models: dict[str, Any]) -> None:
    check_all_refused(
        Wrong(f"{model}.{method}, {name} {k}", partial(getattr(models[model], method), **arguments), name)
        for k, (model, method, arguments, name) in enumerate(QUESTIONS)
    )


# --------------------------------------------------------------------------------------------- paths and searches
MODEL = InfiniteQuantileRegressor(n_nodes=4)
PATHS: list[tuple[Any, dict[str, Any], str]] = [
    *[(fit_path, {"alphas": v}, "alphas") for v in (0.1, [], [-1.0], [0.0], [NAN], "small", None, [[0.1]])],
    (fit_path, {"alphas": [0.1], "estimator": "quantiles"}, "estimator"),
    (fit_path, {"alphas": [0.1], "estimator": InfiniteKernelRidge()}, "alpha"),
    (fit_path, {"alphas": [0.1], "estimator": InfiniteQuantileRegressor}, "estimator"),
    (fit_path, {"alphas": [0.1], "sample_weight": np.ones(5)}, "sample_weight"),
    (fit_path, {"alphas": [0.1], "X": HOLE}, "X"),
    *[(score_path, {"alphas": v}, "alphas") for v in (0.1, [], [-1.0], [NAN], "small", None)],
    *[(score_path, {"alphas": [0.1], "gammas": v}, "gammas") for v in (0.1, [], [-1.0], [NAN], "small")],
    *[(score_path, {"alphas": [0.1], "cv": v}, "cv") for v in (1, 100, "foo", 0.5)],
    *[(score_path, {"alphas": [0.1], "scoring": v}, "scoring") for v in ("foo", 3)],
    *[(score_path, {"alphas": [0.1], "n_jobs": v}, "n_jobs") for v in (0, 1.5, "two")],
    (score_path, {"alphas": [0.1], "gammas": [1.0], "estimator": InfiniteSVR(kernel="linear")}, "gammas"),
    (score_path, {"alphas": [0.1], "estimator": "quantiles"}, "estimator"),
    (score_path, {"alphas": [0.1], "sample_weight": np.ones(5)}, "sample_weight"),
    (score_path, {"alphas": [0.1], "sample_weight": -np.ones(8)}, "sample_weight"),
    (score_path, {"alphas": [0.1], "y": Y[:5]}, "y"),
]

SEARCHES: list[tuple[dict[str, Any], str]] = [
    *[({"space": v}, "space") for v in ("a", 3, [], {}, ["alpha"], {"foo": [1]}, {"alpha": "a"}, {"alpha": 3})],
    *[({"space": {"alpha": v}}, "space") for v in ((1.0, 0.1), (0.0, 1.0), (1.0, 2.0, 3.0), ("a", "b"), [], (1, None))],
    *[({"n_trials": v}, "n_trials") for v in (0, -1, 1.5, "two", None)],
    *[({"sampler": v}, "sampler") for v in ("foo", None, 3)],
    *[({"search_tol": v}, "search_tol") for v in (-1, 0.0, NAN, 1.0, 2, "small")],
    *[({"cv": v}, "cv") for v in (1, 100, "foo")],
    *[({"scoring": v}, "scoring") for v in ("foo", 3)],
    *[({"n_jobs": v}, "n_jobs") for v in (0, 1.5, "two")],
    *[({"refit": v}, "refit") for v in ("yes", None, 1)],
    *[({"progress": v}, "progress") for v in ("yes", None, 1)],
    *[({"random_state": v}, "random_state") for v in ("dice", -1)],
    *[({"storage": v}, "storage") for v in (3, "/no/such/folder/trials")],
    *[({"estimator": v}, "estimator") for v in ("quantiles", None, InfiniteQuantileRegressor)],
    ({"sample_weight": np.ones(5)}, "sample_weight"),
]


def search(**given: Any) -> Any:
    data = {"X": X, "y": Y} | {name: given.pop(name) for name in ("sample_weight",) if name in given}
    return OptunaSearch(**{"estimator": MODEL, "n_trials": 1, "cv": 2} | given).fit(**data)


def of_searches() -> Iterator[Wrong]:
    for function, wrong, name in PATHS:
        cv = {"cv": 2} if function is score_path else {}
        arguments = {"estimator": MODEL, "X": X, "y": Y} | cv | wrong
        yield Wrong(f"{function.__name__}({wrong!r:.60})", partial(function, **arguments), name)
    for wrong, name in SEARCHES:
        yield Wrong(f"OptunaSearch({wrong!r:.60})", partial(search, **wrong), name)


def test_a_wrong_argument_of_a_search_is_named() -> None:
    check_all_refused(of_searches())
