"""Wrong calls of the parts below and beside the estimators: each is refused by a sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteQuantileRegressor,
    bounds,
    datasets,
    features,
    kernels,
    losses,
    measures,
    metrics,
    penalties,
    predictive,
)
from infinitask.calibration._conformal import ConformalCalibration
from infinitask.losses._rows import NonCrossing
from infinitask.measures import _rules, _spaces
from tests.support.wrong_calls import Wrong, check_all_refused, check_refused

NAN, INF = float("nan"), float("inf")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 2))
Y = np.arange(8.0) % 3
LABELS = np.arange(8) % 2
LEVELS = np.array([0.1, 0.5, 0.9])
CURVES = np.sort(RNG.normal(size=(8, 3)), axis=1)
RULE, RBF = measures.GaussLegendre(), kernels.RBF(1.0)


def kernel_at(kernel: Any) -> Any:
    """Use an input kernel as a fit does."""
    return kernel.resolve(X)(X, X)


def task_kernel_at(kernel: Any, orders: Any = (0, 0)) -> Any:
    """Use a task kernel as a fit does."""
    return kernel.resolve(LEVELS)(LEVELS, LEVELS, orders)


def build(recipe: Any, kernel: Any = RBF, tolerance: Any = 1e-9, inputs: Any = X) -> Any:
    return recipe.build(kernel, inputs, tolerance, np.random.default_rng(0))


def rule(measure: Any, n_nodes: Any = 3, using: Any = RULE, rng: Any = None) -> Any:
    return using(measure, n_nodes, rng)


# ----------------------------------------------------------------------------------------------- building blocks
MEASURES: list[tuple[Any, str]] = [
    *[
        (measures.Uniform(*v), "low")
        for v in ((1.0, 0.0), (0.5, 0.5), (NAN, 1.0), ("a", 1.0), (None, 1.0), (True, 2.0))
    ],
    *[(measures.Uniform(0.0, v), "high") for v in (INF, NAN, "a", None, [1.0])],
    *[(measures.Beta(v, 2.0), "a") for v in (0.0, -1.0, NAN, "two", None)],
    *[(measures.Beta(2.0, v), "b") for v in (0.0, -1.0, NAN, "two", None)],
    (measures.Beta(2.0, 2.0, 1.0, 0.0), "low"),
    *[(measures.TruncatedNormal(v), "loc") for v in (NAN, "two", None)],
    *[(measures.TruncatedNormal(0.0, v), "scale") for v in (0.0, -1.0, NAN, "two")],
    (measures.TruncatedNormal(0.0, 1.0, 1.0, -1.0), "low"),
    *[(_spaces.ScipyMeasure(v), "distribution") for v in (stats.norm, stats.poisson(3.0), stats.norm([0, 1]), 3)],
    *[
        (measures.Discrete(v), "points")
        for v in ([], [NAN], [0.5, 0.5], "half", None, np.ones((2, 2, 2)), [[1], [1, 2]])
    ],
    *[
        (measures.Discrete([0.1, 0.9], v), "weights")
        for v in ([1.0], [-1.0, 2.0], [0.0, 0.0], [NAN, 1.0], "ab", [[1.0, 1.0]])
    ],
    *[(measures.ProductMeasure(v), "measures") for v in ([], 3, [3.0], measures.Uniform(), "ab")],
]

RULES: list[tuple[dict[str, Any], str]] = [
    *[({"measure": v}, "measure") for v in (None, 3, "uniform", measures.Uniform, (0.0, 1.0))],
    *[({"n_nodes": v}, "n_nodes") for v in (0, -1, 1.5, "ten", True, None)],
    *[({"using": measures.MonteCarlo(), "rng": v}, "rng") for v in ("dice", -1, 1.5)],
    *[({"using": cls(scramble=v)}, "scramble") for cls in (measures.Sobol, measures.Halton) for v in ("yes", None, 2)],
    ({"using": _rules.Atoms()}, "measure"),
    ({"measure": _spaces.ScipyMeasure(stats.norm()), "using": measures.ClenshawCurtis()}, "support"),
]

KERNELS: list[tuple[Any, str]] = [
    *[
        (cls(gamma=v), "gamma")
        for cls in (kernels.RBF, kernels.Laplacian, kernels.Chi2, kernels.Matern, kernels.Polynomial)
        for v in (0.0, -1.0, NAN, INF, "foo", None, [1.0], True)
    ],
    *[(kernels.Matern(nu=v), "nu") for v in (0.0, 7.0, "rough", None, [1.5])],
    *[(kernels.Polynomial(degree=v), "degree") for v in (0, -1, 1.5, "two", None)],
    *[(kernels.Polynomial(coef0=v), "coef0") for v in (-1.0, NAN, "two", None)],
    *[(kernels.Scaled(kernels.RBF(), v), "scales") for v in ([1.0], [-1.0, 1.0], [NAN, 1.0], "ab", None, 3.0)],
    *[
        (cls(kernel=v, **more), "kernel")
        for cls, more in ((kernels.Scaled, {"scales": (1.0, 1.0)}), (kernels.Additive, {}), (kernels.Warped, {}))
        for v in ("rbf", None, 3, kernels.Precomputed(), kernels.Gaussian())
    ],
    *[(cls(v, kernels.RBF()), "left") for cls in (kernels.Sum, kernels.Product) for v in ("rbf", None, 3)],
    *[(cls(kernels.RBF(), v), "right") for cls in (kernels.Sum, kernels.Product) for v in ("rbf", None, 3)],
    *[(kernels.CallableKernel(v), "function") for v in (3, None, "rbf")],
    (kernels.CallableKernel(lambda x, z: x), "function"),
    (kernels.Chi2(), "X"),
]

TASK_KERNELS: list[tuple[Any, Any, str]] = [
    *[
        (cls(gamma=v), (0, 0), "gamma")
        for cls in (kernels.Gaussian, kernels.MaternTask)
        for v in (0.0, -1.0, NAN, INF, "foo", [1.0], True)
    ],
    *[(kernels.MaternTask(nu=v), (0, 0), "nu") for v in (0.5, 7.0, "rough", None, [1.5])],
    *[(kernels.PolynomialTask(degree=v), (0, 0), "degree") for v in (0, 1.5, "two", None)],
    *[(kernels.PolynomialTask(coef0=v), (0, 0), "coef0") for v in (-1.0, NAN, "two")],
    *[(kernels.PiecewiseLinear(offset=v), (0, 0), "offset") for v in (-0.5, NAN, "two", None)],
    *[(kernels.Gaussian(1.0), v, "orders") for v in ((2, 0), (0, -1), (0.5, 0), "ab", 3, (0,))],
    *[
        (kernels.TaskMatrix(v), (0, 0), "matrix")
        for v in (np.ones((2, 3)), [[1.0, 2.0], [0.0, 1.0]], -np.eye(3), [[NAN]], "ab", None, [1.0])
    ],
    *[
        (kernels.TaskMatrix(np.eye(3), tasks=v), (0, 0), "tasks")
        for v in ([0.1, 0.5], [0.1, 0.1, 0.9], "abc", [0.1, NAN, 0.9])
    ],
]

PSI = features.task_features(kernels.Gaussian(1.0), LEVELS)
FEATURES: list[tuple[Any, dict[str, Any], str]] = [
    *[
        (build, {"recipe": cls(rank=v)}, "rank")
        for cls in (features.PivotedCholesky, features.Nystroem, features.RandomFourier, features.Auto)
        for v in (0, -1, 1.5, "ten", True)
    ],
    *[(build, {"recipe": features.Nystroem(landmarks=v)}, "landmarks") for v in ("best", None, 3)],
    *[(build, {"recipe": features.Auto(), "tolerance": v}, "tolerance") for v in (-1.0, NAN, INF, "small", None)],
    *[(build, {"recipe": features.Auto(), "kernel": v}, "kernel") for v in ("rbf", None, 3, kernels.Gaussian())],
    (build, {"recipe": features.RandomFourier(), "kernel": kernels.Linear()}, "kernel"),
    (build, {"recipe": features.RandomFourier(), "kernel": kernels.Precomputed()}, "kernel"),
    (
        build,
        {"recipe": features.Nystroem(landmarks="k-means++"), "kernel": kernels.Precomputed(), "inputs": X @ X.T},
        "landmarks",
    ),
    *[(features.feature_recipe, {"spec": v}, "features") for v in ("all", None, 3, features.Nystroem)],
    *[(features.task_features, {"kernel": v, "nodes": LEVELS}, "kernel") for v in ("rbf", None, kernels.RBF())],
    (features.task_features, {"kernel": kernels.Gaussian(1.0), "nodes": LEVELS, "tolerance": -1.0}, "tolerance"),
    *[
        (features.integrated_basis, {"features": PSI, "weights": v}, "weights")
        for v in (-np.ones(3), np.ones(2), [NAN] * 3)
    ],
    *[
        (features.integrated_basis, {"features": PSI, "weights": np.ones(3), "rho": v}, "rho")
        for v in (-np.ones(3), [NAN] * 3)
    ],
    *[
        (features.node_basis, {"kernel": kernels.Gaussian(1.0), "nodes": LEVELS, "weights": v}, "weights")
        for v in (-np.ones(3), np.zeros(3), np.ones(2))
    ],
]

SPECS: list[tuple[Any, dict[str, Any], str]] = [
    *[(kernels.input_kernel, {"spec": v}, "kernel") for v in ("foo", None, 3, kernels.RBF, kernels.Gaussian(), [1.0])],
    *[(kernels.task_kernel, {"spec": v}, "task_kernel") for v in ("foo", None, 3, kernels.Gaussian, kernels.RBF())],
    (kernels.task_kernel, {"spec": "foo", "name": "bias_kernel"}, "bias_kernel"),
    *[(_spaces.as_measure, {"spec": v, "default": None}, "measure") for v in ("uniform", 3, [0.1, 0.9], (0.9, NAN))],
    *[(_rules.quadrature_rule, {"spec": v}, "quadrature") for v in ("simpson", None, 3, measures.Sobol)],
    (measures.Quadrature, {"nodes": np.zeros(3), "weights": np.ones(3)}, "nodes"),
    (measures.Quadrature, {"nodes": np.zeros((3, 1)), "weights": np.ones(2)}, "weights"),
    (measures.Quadrature, {"nodes": [0.1], "weights": [1.0]}, "nodes"),
    *[
        (losses.MQuantile(v).value, {"theta": LEVELS, "y": Y[:, None], "h": CURVES}, "kappa")
        for v in (0.0, -1.0, NAN, "a")
    ],
    *[(NonCrossing(v).value, {"theta": LEVELS, "y": None, "h": CURVES}, "weight") for v in (0.0, -1.0, NAN, "a")],
    (losses.CostSensitiveHinge().check_targets, {"y": Y}, "targets"),
    *[
        (losses.FunctionLoss(abs, backend=v).value, {"theta": LEVELS, "y": Y, "h": CURVES}, "backend")
        for v in ("foo", None)
    ],
    *[
        (losses.FunctionLoss(abs, smooth_scale=v).smooth, {"scale": 0.1}, "smooth_scale")
        for v in (-1.0, NAN, "a", None)
    ],
    *[(losses.FunctionLoss(v).value, {"theta": LEVELS, "y": Y, "h": CURVES}, "function") for v in (3, None, "abs")],
    *[
        (penalties.IntegratedRidge(v).rho, {"nodes": LEVELS[:, None]}, "weight")
        for v in (3, "a", lambda t: t, lambda t: -t[:, 0])
    ],
    *[(datasets.make_sine, {"n_samples": v}, "n_samples") for v in (0, -1, 1.5, "ten", None)],
    *[(datasets.make_sine, {"random_state": v}, "random_state") for v in ("dice", -1)],
    *[(datasets.make_mixture, {"n_features": v}, "n_features") for v in (0, 1.5, "two")],
    *[(datasets.make_mixture, {"random_state": v}, "random_state") for v in ("dice", -1)],
    *[(datasets.sine_quantile, {"x": [0.1], "theta": v}, "theta") for v in (0.0, 1.0, 95, NAN, "half", [[0.1]])],
    *[(datasets.sine_quantile, {"x": v, "theta": 0.5}, "x") for v in (np.ones((2, 2)), "half", 0.5)],
]

# -------------------------------------------------------------------------------------------------------- answers
Q = {"y_true": Y, "y_pred": CURVES, "quantiles": LEVELS}
INTERVALS = {"y_true": Y, "y_interval": np.column_stack([Y - 1.0, Y + 1.0])}
BAD_LEVELS = (95, [0.1, 0.5, 90], -0.1, [NAN] * 3, "half", [], [[0.1, 0.5, 0.9]], None)
BAD_WEIGHTS = (-np.ones(8), np.zeros(8), np.ones(5), np.full(8, NAN), "heavy", np.ones((8, 1)))
BAD_TARGETS = (Y[:5], np.full(8, NAN), ["a"] * 8, np.ones((8, 2)), [], None)


def wrong(base: dict[str, Any], name: str, values: Any) -> list[tuple[dict[str, Any], str]]:
    return [(base | {name: value}, name) for value in values]


COUNTS = predictive.Confusion(LEVELS, Y[:3] ** 2, Y[:3] ** 2, positives=40, negatives=40)
METRICS: list[tuple[Any, list[tuple[dict[str, Any], str]]]] = [
    (metrics.integrated_pinball_loss, wrong(Q, "quantiles", BAD_LEVELS)),
    (metrics.integrated_pinball_loss, wrong(Q, "weights", (-np.ones(3), np.ones(2), [NAN] * 3, "abc"))),
    (metrics.integrated_pinball_loss, wrong(Q, "sample_weight", BAD_WEIGHTS)),
    (metrics.integrated_pinball_loss, wrong(Q, "y_true", (*BAD_TARGETS[1:], "ab"))),
    (metrics.integrated_pinball_loss, wrong(Q, "y_pred", (CURVES[:, :2], CURVES[:5], CURVES * NAN, Y, "ab", None))),
    (metrics.calibration_error, wrong(Q, "quantiles", BAD_LEVELS)),
    (metrics.calibration_error, wrong(Q, "sample_weight", BAD_WEIGHTS)),
    (metrics.crps, wrong(Q, "quantiles", BAD_LEVELS)),
    (metrics.crps, wrong(Q, "y_pred", (CURVES[:, :2], "ab"))),
    (metrics.crossing_loss, wrong({"y_pred": CURVES}, "quantiles", BAD_LEVELS[:-1])),
    (metrics.crossing_loss, wrong({}, "y_pred", (Y, CURVES * NAN, "ab", [], None))),
    (
        metrics.interval_score,
        wrong(INTERVALS, "coverage", (90, 0.0, 1.0, NAN, "half", None, [0.5, 90], [0.5, 0.9], True)),
    ),
    (metrics.interval_score, wrong(INTERVALS | {"coverage": 0.5}, "sample_weight", BAD_WEIGHTS)),
    (
        metrics.interval_coverage,
        wrong(INTERVALS, "y_interval", (Y, np.ones((8, 3)), np.ones((5, 2)), np.full((8, 2), NAN), "ab")),
    ),
    (metrics.interval_coverage, wrong(INTERVALS, "y_interval", ([[INF, INF]] * 8, [[-INF, -INF]] * 8, None))),
    (metrics.mean_interval_width, wrong({}, "y_interval", (Y, np.ones((8, 3)), np.full((8, 2), NAN), "ab"))),
    (
        metrics.integrated_cost,
        wrong({"y_true": LABELS, "y_pred": LABELS}, "theta", (2.0, [0.1, 0.2], NAN, "half", [], None)),
    ),
    (metrics.integrated_cost, wrong({"y_true": LABELS, "y_pred": LABELS, "theta": 0.5}, "pos_label", (7, "yes"))),
    (metrics.integrated_cost, wrong({"y_true": LABELS, "theta": 0.5}, "y_pred", (LABELS[:5], LABELS + 5, 3, None))),
    (metrics.sensitivity_specificity, wrong({"y_true": LABELS, "y_pred": LABELS}, "sample_weight", BAD_WEIGHTS)),
    (metrics.sensitivity_specificity, wrong({"y_pred": np.zeros(8)}, "y_true", (np.zeros(8), Y, [], LABELS[:5]))),
    (metrics.theta_property_deviation, wrong({"inside": np.ones(8)}, "nu", (5, -0.1, NAN, "half", [], None))),
    (metrics.theta_property_deviation, wrong({"nu": 0.5}, "inside", (np.ones((8, 2)), np.full(8, NAN), "ab", [], 1))),
    (metrics.theta_property_deviation, wrong({"nu": 0.5, "inside": np.ones(8)}, "sample_weight", BAD_WEIGHTS)),
    (metrics.mass_volume_curve, wrong({"X": X}, "score", (3, None, "density", lambda Z: Z))),
    (metrics.mass_volume_curve, wrong({"score": len}, "X", (Y, X * NAN, "ab", [], None))),
    (metrics.mass_volume_curve, wrong({"score": lambda Z: Z[:, 0], "X": X}, "n_samples", (0, -1, 1.5, "ten"))),
    (
        metrics.mass_volume_curve,
        wrong({"score": lambda Z: Z[:, 0], "X": X}, "box", (3, [[0.0], [1.0]], (X[0], X[0] - 1.0))),
    ),
    (metrics.mass_volume_curve, wrong({"score": lambda Z: Z[:, 0], "X": X}, "random_state", ("dice", -1))),
    (metrics.mass_volume_curve, wrong({"score": lambda Z: Z[:, 0], "X": X}, "sample_weight", BAD_WEIGHTS)),
    (
        metrics.mass_volume_area,
        wrong({"score": lambda Z: Z[:, 0], "X": X}, "masses", ((0.9, 0.1), (10, 90), 0.5, "ab", (0.1,))),
    ),
    (
        predictive.QuantileDistribution,
        wrong({"values": CURVES}, "levels", (LEVELS[::-1], LEVELS[:2], [5, 50, 95], "ab", [0.5] * 3)),
    ),
    (predictive.QuantileDistribution, wrong({"levels": LEVELS}, "values", (CURVES[:, ::-1], CURVES * NAN, Y, "ab"))),
    (
        predictive.choose_theta,
        wrong({"counts": COUNTS, "max_fpr": 0.1}, "confidence", (0.0, 1.0, 95, NAN, "high")),
    ),
    (
        predictive.choose_theta,
        wrong({"counts": COUNTS, "confidence": 0.9}, "max_fpr", (0.0, 1.0, 5, NAN, "low")),
    ),
    (predictive.theta_from_costs, wrong({"fp_cost": 1.0}, "fn_cost", (-1.0, NAN, INF, "much", None))),
    (predictive.theta_from_costs, wrong({"fn_cost": [1.0, 2.0]}, "fp_cost", (-1.0, NAN, "much", [1.0, 2.0, 3.0]))),
    (predictive.choose_theta, wrong({"max_fpr": 0.1}, "counts", (None, 3, {"theta": [0.1]}))),
    (
        predictive.Confusion,
        wrong({"theta": LEVELS, "false_alarms": Y[:3], "positives": 4, "negatives": 4}, "missed", (Y, -LEVELS, "ab")),
    ),
    (
        predictive.Confusion,
        wrong({"theta": LEVELS, "missed": Y[:3], "false_alarms": Y[:3], "negatives": 4}, "positives", (-1, NAN, "ab")),
    ),
    (
        predictive.Confusion.count,
        wrong({"theta": LEVELS, "blocks": [CURVES]}, "positive", (LABELS, LABELS[:5] == 1, "ab")),
    ),
    (
        predictive.Confusion.count,
        wrong({"theta": LEVELS, "positive": LABELS == 1}, "blocks", ([CURVES[:5]], [CURVES[:, :2]])),
    ),
    (
        predictive.Confusion.count,
        wrong(
            {"theta": LEVELS, "blocks": [CURVES], "positive": LABELS == 1}, "weight", BAD_WEIGHTS[:1] + BAD_WEIGHTS[2:]
        ),
    ),
]

DISTRIBUTION = predictive.QuantileDistribution(LEVELS, CURVES)
CALIBRATION = ConformalCalibration(np.arange(20.0), 1.0)
METRICS += [
    (DISTRIBUTION.ppf, wrong({}, "level", (95, 0.01, NAN, "half", [[0.3, 0.5]]))),
    (DISTRIBUTION.interval, wrong({}, "coverage", (80, 0.0, -0.1, NAN, "half", [], [0.5, 80], None, 0.99))),
    (DISTRIBUTION.cdf, wrong({}, "y", (Y[:5], NAN, "half", np.ones((5, 2)), None))),
    (DISTRIBUTION.pdf, wrong({}, "y", (Y[:5], NAN, "half"))),
    (DISTRIBUTION.crps, wrong({}, "y", (Y[:5], INF, "half", np.ones((8, 2))))),
    (DISTRIBUTION.sample, wrong({}, "n_samples", (0, -1, 1.5, "ten"))),
    (DISTRIBUTION.sample, wrong({}, "random_state", ("dice", -1))),
    (CALIBRATION.radius, wrong({}, "coverage", (90, 0.0, 1.0, NAN, "half", [], [0.5, 90], None))),
]

SIZES = {"n": 100, "m": 10, "alpha": 1.0}
BOUNDS: list[tuple[Any, list[tuple[dict[str, Any], str]]]] = [
    *[
        (function, wrong(SIZES | more, name, values))
        for function, more in ((bounds.quantile_bound, {"y_bound": 1.0}), (bounds.cost_sensitive_bound, {}))
        for name, values in {
            "n": (0, 1.5, "many"),
            "m": (0, 1.5, "many"),
            "alpha": (0.0, -1.0, NAN, "small"),
            "kappa_x": (0.0, -1.0, NAN, "one"),
            "kappa_theta": (0.0, -1.0, NAN),
            "slope_theta": (-1.0, NAN, "one"),
            "delta": (0.0, 1.0, 5, NAN, "small"),
            "discrepancy": (-1.0, NAN, "small"),
            "form": ("printed?", None, 3),
        }.items()
    ],
    (bounds.quantile_bound, wrong(SIZES, "y_bound", (0.0, -1.0, NAN, "one", None))),
    (bounds.quantile_bound, wrong(SIZES | {"y_bound": 1.0}, "noncrossing", (-1.0, NAN, "hard"))),
    (bounds.propose_nodes, wrong({}, "n", (0, 1.5, "many"))),
    (bounds.propose_nodes, wrong({"n": 100}, "statistical", (0.0, -1.0, NAN, "small"))),
    (bounds.propose_nodes, wrong({"n": 100}, "variation", (0.0, -1.0, NAN, "small"))),
    (bounds.propose_nodes, wrong({"n": 100}, "dim", (0, 1.5, 5, "two"))),
]


def of_measures() -> Iterator[Wrong]:
    for measure, name in MEASURES:
        yield Wrong(f"{measure!r:.60}", partial(rule, measure), name)
    for arguments, name in RULES:
        yield Wrong(
            f"a rule with {arguments!r:.60}", partial(rule, **{"measure": measures.Uniform()} | arguments), name
        )


def of_kernels() -> Iterator[Wrong]:
    for kernel, name in KERNELS:
        yield Wrong(f"{type(kernel).__name__} {kernel.get_params(deep=False)!r:.50}", partial(kernel_at, kernel), name)
    for kernel, orders, name in TASK_KERNELS:
        call = partial(task_kernel_at, kernel, orders)
        yield Wrong(f"{type(kernel).__name__} {kernel.get_params(deep=False)!r:.50} {orders}", call, name)


def of_features_and_specs() -> Iterator[Wrong]:
    for function, arguments, name in FEATURES + SPECS:
        shown = getattr(function, "__name__", function)
        yield Wrong(f"{shown}, {name}", partial(function, **arguments), name)


def of_metrics_and_bounds() -> Iterator[Wrong]:
    for function, calls in METRICS + BOUNDS:
        for k, (arguments, name) in enumerate(calls):
            shown = getattr(function, "__qualname__", function)
            yield Wrong(f"{shown}, {name} {k}", partial(function, **arguments), name)


@pytest.mark.parametrize(
    "wrongs", [of_measures, of_kernels, of_features_and_specs, of_metrics_and_bounds], ids=lambda rows: rows.__name__
)
def test_a_wrong_argument_is_named(wrongs: Callable[[], Iterator[Wrong]]) -> None:
    check_all_refused(wrongs())


# ---------------------------------------------------------------------------------------- questions about a model
@pytest.fixture(scope="module")
def quantile() -> Any:
    return InfiniteQuantileRegressor(n_nodes=4, alpha_bias=1e-3).fit(X, Y)


BOUND_OF: list[tuple[dict[str, Any], str]] = [
    *[({"X": value}, "X") for value in (X[:5], X + 1.0, X * NAN, X[:, :1], Y, None, "ab")],
    *[({"y": value}, "y") for value in (Y[:5], Y + 1.0, Y * NAN, np.ones((8, 2)), "ab", None)],
    *[({"y_bound": value}, "y_bound") for value in (1.0, 0.0, -1.0, NAN, "one")],
    *[({"delta": value}, "delta") for value in (0.0, 1.0, 5, NAN, None)],
    *[({"kappa_x": value}, "kappa_x") for value in (0.0, -1.0, NAN, "one")],
]


def test_a_bound_of_other_rows_is_refused(quantile: Any) -> None:
    check_all_refused(
        Wrong(f"{arguments!r:.60}", partial(bounds.bound_of, quantile, **{"X": X, "y": Y} | arguments), name)
        for arguments, name in BOUND_OF
    )


def test_a_bound_needs_a_model_that_has_one() -> None:
    for model in (3, "quantiles", InfiniteQuantileRegressor):
        check_refused(Wrong("", partial(bounds.bound_of, model, X, Y), "bound_of"))
    expectile = InfiniteExpectileRegressor(n_nodes=4).fit(X, Y)
    check_refused(Wrong("", partial(bounds.bound_of, expectile, X, Y), "loss"))


def test_a_bound_of_the_rows_of_the_fit_is_not_refused(quantile: Any) -> None:
    order = np.random.default_rng(0).permutation(8)
    for rows in (np.arange(8), order):
        assert bounds.bound_of(quantile, X[rows], Y[rows]).risk > 0.0
    rearranged = InfiniteQuantileRegressor(n_nodes=4, noncrossing="rearrange", alpha_bias=1e-3).fit(X, Y)
    assert bounds.bound_of(rearranged, X, Y, y_bound=2.0).risk > 0.0
    classifier = InfiniteCostSensitiveClassifier(n_nodes=4, alpha_bias=1e-3).fit(X, LABELS)
    assert bounds.bound_of(classifier, X, LABELS).risk > 0.0
    weighted = InfiniteQuantileRegressor(n_nodes=4, alpha=1e-2, alpha_bias=1e-3).fit(
        X, Y, sample_weight=np.arange(1.0, 9.0)
    )
    check_refused(Wrong("", partial(bounds.bound_of, weighted, X, Y), "weights"))


SCORERS: list[tuple[Any, str]] = [
    (metrics.scorer(metrics.integrated_pinball_loss, quantiles=(95,)), "quantiles"),
    (metrics.scorer(metrics.integrated_pinball_loss, quantiles=()), "quantiles"),
    (metrics.scorer(metrics.integrated_pinball_loss, quantiles=("half",)), "quantiles"),
    (metrics.scorer("cost"), "theta"),
    (metrics.scorer("theta_property"), "nu"),
    (metrics.scorer("mass_volume"), "score_samples"),
]


def test_a_wrong_scorer_is_named(quantile: Any) -> None:
    check_all_refused(Wrong(f"{scorer!r:.50}", partial(scorer, quantile, X, Y), name) for scorer, name in SCORERS)
