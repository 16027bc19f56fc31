"""A graph of ONNX answers what the model answers, for every model, kernel and feature map; NaN where Python refuses."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import infinitask
from infinitask import (
    CrossConformal,
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
    QOneClassSVM,
    make_pipeline,
)
from infinitask.kernels import (
    RBF,
    Additive,
    CallableKernel,
    Chi2,
    InputKernel,
    Laplacian,
    LearntMetric,
    Linear,
    Matern,
    MaternTask,
    Metric,
    Polynomial,
    Product,
    Scaled,
    Sum,
    TaskMatrix,
    Warped,
)
from infinitask.losses import BoxLoss, Row
from infinitask.measures import Discrete, ProductMeasure, Uniform
from infinitask.pipelines import TransformedTarget
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
)
from tests.support.every_model import NEW, public_estimators
from tests.support.every_model import fitted as public_model

onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

from infinitask.integrations.onnx import to_onnx  # noqa: E402

AGREEMENT = 1e-6
ROWS, TASKS = 25, 40  # a thousand pairs

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * (1.0 + X[:, 1] ** 2) * rng.normal(size=40)
LABELS = np.where(np.median(Y) < Y, "yes", "no")
QUICK: dict[str, Any] = {"n_nodes": 6, "tol": 1e-2, "random_state": 0}

KERNELS: dict[str, Any] = {
    **{name: name for name in ("rbf", "laplacian", "matern12", "matern32", "matern52", "linear", "polynomial")},
    "sum": Sum(RBF(gamma=0.5), Linear()),
    "product": Product(Matern(nu=1.5), Polynomial(degree=2)),
    "scaled": Scaled(Laplacian(gamma=0.3), (1.0, 0.5, 0.0)),
    "metric": Metric(RBF(gamma=1.0), [[1.0, 0.2], [0.2, 0.5], [0.0, 0.3]]),
    "learnt metric": LearntMetric(RBF()),
    "warped": Warped(Additive(Matern(nu=2.5))),
    "additive": Additive(RBF()),
    "additive, rough": Additive(Laplacian()),
    "additive, of sums": Additive(Sum(RBF(gamma=1.0), Linear())),
}
TASK_KERNELS = ("rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear")
FEATURES: dict[str, Any] = {
    "nystroem": {"features": "nystroem", "rank": 12},
    "fourier": {"features": "fourier", "rank": 20},
}

MODELS: dict[str, Callable[[], Any]] = {
    "quantiles": lambda: InfiniteQuantileRegressor(**QUICK).fit(X, Y),
    "quantiles in order": lambda: InfiniteQuantileRegressor(**QUICK, noncrossing="rearrange").fit(X, Y),
    "quantiles without a bias": lambda: InfiniteQuantileRegressor(**QUICK, bias_kernel=None, alpha=0.01).fit(X, Y),
    "quantiles with a bias of their own": lambda: InfiniteQuantileRegressor(
        **QUICK, bias_kernel=MaternTask(nu=2.5), alpha_bias=0.01
    ).fit(X, Y),
    "some levels": lambda: InfiniteQuantileRegressor(tol=1e-2, measure=Discrete([0.1, 0.5, 0.9])).fit(X, Y),
    "expectiles in order": lambda: InfiniteExpectileRegressor(**QUICK, noncrossing="rearrange").fit(X, Y),
    "expectiles": lambda: InfiniteExpectileRegressor(**QUICK).fit(X, Y),
    "SVR": lambda: InfiniteSVR(**QUICK).fit(X, Y),
    "kernel ridge": lambda: InfiniteKernelRidge(n_nodes=10).fit(X, Y),
    "costs": lambda: InfiniteCostSensitiveClassifier(**QUICK).fit(X, LABELS),
    "costs as fitted": lambda: InfiniteCostSensitiveClassifier(**QUICK, alpha=0.01).fit(X, LABELS),
    "level sets": lambda: InfiniteOneClassSVM(**QUICK).fit(X),
    "level sets as fitted": lambda: InfiniteOneClassSVM(**QUICK, exact_fractions=False).fit(X),
    "nested level sets": lambda: InfiniteOneClassSVM(**QUICK, nested=True).fit(X),
    "any loss": lambda: InfiniteTaskEstimator("pinball", **QUICK).fit(X, Y),
    "a matrix of tasks": lambda: InfiniteTaskEstimator(
        "pinball",
        measure=Discrete([0.1, 0.5, 0.9]),
        task_kernel=TaskMatrix([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]], tasks=[0.1, 0.5, 0.9]),
        tol=1e-2,
    ).fit(X, Y),
    "joint quantiles": lambda: JointQuantileRegressor(tol=1e-2).fit(X, Y),
    "separate quantiles": lambda: IndependentQuantileRegressor(tol=1e-2).fit(X, Y),
    "separate costs": lambda: IndependentCostSensitiveClassifier(tol=1e-2, calibrated=True).fit(X, LABELS),
    "q level sets": lambda: QOneClassSVM(tol=1e-2).fit(X),
    "tuned quantiles": lambda: InfiniteQuantileRegressorCV(kernels=["rbf"], **QUICK).fit(X, Y),
    "tuned quantiles in order": lambda: InfiniteQuantileRegressorCV(
        kernels=["rbf"], noncrossing="rearrange", **QUICK
    ).fit(X, Y),
    "tuned costs": lambda: InfiniteCostSensitiveClassifierCV(kernels=["rbf"], **QUICK).fit(X, LABELS),
    "tuned level sets": lambda: InfiniteOneClassSVMCV(kernels=["rbf"], **QUICK).fit(X),
}
DEFAULTS: dict[str, Callable[[], Any]] = {
    "quantiles": lambda: InfiniteQuantileRegressor().fit(X, Y),
    "expectiles": lambda: InfiniteExpectileRegressor().fit(X, Y),
    "SVR": lambda: InfiniteSVR().fit(X, Y),
    "kernel ridge": lambda: InfiniteKernelRidge().fit(X, Y),
    "costs": lambda: InfiniteCostSensitiveClassifier().fit(X, LABELS),
    "nested level sets": lambda: InfiniteOneClassSVM(nested=True).fit(X),
    "tuned quantiles": lambda: InfiniteQuantileRegressorCV(random_state=0).fit(X, Y),
    "tuned costs": lambda: InfiniteCostSensitiveClassifierCV(random_state=0).fit(X, LABELS),
}

WITH_A_GRAPH = {
    *("CrossConformal", "IndependentCostSensitiveClassifier", "IndependentQuantileRegressor", "OptunaSearch"),
    *("InfiniteCostSensitiveClassifier", "InfiniteCostSensitiveClassifierCV", "InfiniteExpectileRegressor"),
    "InfiniteFunctionRegressor",
    *("InfiniteKernelRidge", "InfiniteOneClassSVM", "InfiniteOneClassSVMCV", "InfiniteQuantileRegressor"),
    *("InfiniteQuantileRegressorCV", "InfiniteSVR", "InfiniteTaskEstimator", "JointQuantileRegressor"),
    *("QOneClassSVM", "TaskPipeline", "TaskSearch", "TransformedTarget"),
}
"""Public models that are not refused."""

SLOW = {
    *("tuned costs", "tuned quantiles in order", "separate costs", "q level sets", "separate quantiles", "any loss"),
    *("costs as fitted", "level sets as fitted", "expectiles", "quantiles without a bias", "tuned level sets"),
    *("matern12", "matern32", "matern52", "laplacian", "polynomial", "learnt metric", "metric", "additive, rough"),
    *("additive, of sums", "constant", "expectiles in order"),
}
"""Cases whose parts other cases have as well."""


def cases(names: Any) -> list[Any]:
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


@cache
def fitted(name: str) -> Any:
    return MODELS[name]()


def session(graph: Any) -> Any:
    return onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])


def run(graph: Any, rows: Any, theta: Any) -> Any:
    return session(graph).run(None, {"X": rows, "theta": theta})[0]


def known(graph: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in graph.metadata_props}


def some_tasks(graph: Any) -> Any:
    """Random tasks that the model knows, by what the graph says of them."""
    said = known(graph)
    if "tasks" in said:
        return rng.choice(json.loads(said["tasks"]), TASKS)
    low, high = json.loads(said["theta_low"])[0], json.loads(said["theta_high"])[0]
    return rng.uniform(low, high, TASKS)


def in_python(model: Any, graph: Any, rows: Any, theta: Any) -> Any:
    """What Python answers, by the method that the graph names."""
    method, _, tasks = known(graph)["h"].partition("(X, ")
    return np.asarray(getattr(model, method)(rows, **{tasks.rstrip(")"): theta}))


def check(model: Any, rows: Any = None, tolerance: float = AGREEMENT) -> Any:
    """The law; returns the graph."""
    graph = to_onnx(model)
    rows = 1.5 * rng.normal(size=(ROWS, X.shape[1])) if rows is None else rows
    theta = some_tasks(graph)
    found = run(graph, rows, theta)
    expected = in_python(model, graph, rows, theta)
    assert found.shape == expected.shape == (len(rows), TASKS)
    assert np.ptp(expected) > 1e-3  # there is something to tell
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance)
    return graph


@pytest.mark.quick(every=2)
@pytest.mark.parametrize("name", cases(MODELS))
def test_every_model(name: str) -> None:
    check(fitted(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFAULTS)
def test_every_model_as_it_is_by_default(name: str) -> None:
    check(DEFAULTS[name]())


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        InfiniteOneClassSVM(),
        InfiniteOneClassSVM(n_nodes=20),
        InfiniteOneClassSVMCV(random_state=0),
        InfiniteKernelRidge(task_kernel="rbf"),
    ],
    ids=str,
)
def test_where_python_differs_from_itself_the_graph_does_not_differ_more(model: Any) -> None:
    """Features of many close tasks are rounded, and differently where a task is asked alone."""
    model.fit(X, Y)
    graph = to_onnx(model)
    rows, theta = rng.normal(size=(ROWS, 3)), some_tasks(graph)
    together = in_python(model, graph, rows, theta)
    alone = np.concatenate([in_python(model, graph, rows, theta[[k]]) for k in range(TASKS)], axis=1)
    own = np.max(np.abs(together - alone))
    assert own > 1e-9
    np.testing.assert_allclose(run(graph, rows, theta), together, rtol=0.0, atol=max(AGREEMENT, 4.0 * own))


@pytest.mark.parametrize("kernel", cases(KERNELS))
def test_every_kernel(kernel: str) -> None:
    check(InfiniteQuantileRegressor(kernel=KERNELS[kernel], **QUICK).fit(X, Y))


def test_the_kernel_of_histograms_and_its_zeros() -> None:
    histograms = np.maximum(X, 0.0)
    graph = check(InfiniteQuantileRegressor(kernel=Chi2(), **QUICK).fit(histograms, Y), np.maximum(X[:ROWS] + 0.2, 0.0))
    assert np.all(np.isnan(run(graph, X[X.min(axis=1) < 0.0], np.array([0.5]))))  # negative: an error in Python


@pytest.mark.parametrize("columns", [9, pytest.param(120, marks=pytest.mark.slow)])  # 120: several pieces
@pytest.mark.parametrize("kernel", cases(["rbf", "matern12", "matern32", "laplacian"]))
def test_many_columns(kernel: str, columns: int) -> None:
    wide = 50.0 + rng.normal(size=(40, columns))  # far from 0, where products of matrices lose digits
    model = InfiniteQuantileRegressor(kernel=kernel, gamma="median", **QUICK).fit(wide, wide[:, 0])
    graph = check(model, 50.0 + rng.normal(size=(ROWS, columns)))
    on_landmarks = run(graph, wide, np.array([0.3]))
    np.testing.assert_allclose(on_landmarks[:, 0], model.predict(wide, 0.3), rtol=0.0, atol=AGREEMENT)


def test_units_and_constant_columns_do_not_matter() -> None:
    odd = np.column_stack([1e8 * X[:, 0], 1e-8 * X[:, 1], np.full(len(X), 7.0)])
    model = InfiniteQuantileRegressor(kernel=Warped(RBF()), **QUICK).fit(odd, 1e5 + 1e3 * Y)
    graph = to_onnx(model)
    theta = some_tasks(graph)
    np.testing.assert_allclose(run(graph, odd, theta), model.predict(odd, theta), rtol=1e-9)


@pytest.mark.parametrize("kernel", cases(TASK_KERNELS))
def test_every_task_kernel(kernel: str) -> None:
    smooth = kernel not in ("constant", "piecewise-linear")
    check(InfiniteQuantileRegressor(task_kernel=kernel, noncrossing=1.0 if smooth else 0.0, **QUICK).fit(X, Y))


@pytest.mark.parametrize("features", FEATURES)
def test_every_kind_of_features(features: str) -> None:
    check(InfiniteQuantileRegressor(**QUICK, **FEATURES[features]).fit(X, Y))


def test_gram_matrices() -> None:
    weight = np.ones(len(X))
    weight[3] = 0.0  # a row that does not count is not among the columns that are used
    model = InfiniteQuantileRegressor(kernel="precomputed", **QUICK).fit(X @ X.T + 1.0, Y, sample_weight=weight)
    check(model, rng.normal(size=(ROWS, 3)) @ X.T + 1.0)


def test_tasks_in_the_plane() -> None:
    class TubePinball(BoxLoss):
        def row(self, theta: Any, y: Any) -> Row:
            return Row(theta[:, 0] - 1.0, theta[:, 0], dead_zone=theta[:, 1])

    plane = ProductMeasure([Uniform(0, 1), Uniform(0, 0.5)])
    model = InfiniteTaskEstimator(
        TubePinball(), measure=plane, quadrature="sobol", n_nodes=8, tol=1e-2, random_state=0
    ).fit(X, Y)
    theta = np.column_stack([rng.uniform(0, 1, TASKS), rng.uniform(0, 0.5, TASKS)])
    found = run(to_onnx(model), X, theta)
    np.testing.assert_allclose(found, model.predict(X, theta), rtol=0.0, atol=AGREEMENT)


def test_single_precision_outside_and_double_inside() -> None:
    for model in (fitted("quantiles"), fitted("joint quantiles")):  # 0.05 in single precision is the level 0.05
        graph = to_onnx(model, dtype="float32")
        levels = np.array([0.05, 0.25, 0.95])
        found = run(graph, X.astype(np.float32), levels.astype(np.float32))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, model.predict(X.astype(np.float32), levels), rtol=0.0, atol=2e-6)


def test_a_field_is_h_alone() -> None:
    field = fitted("level sets").field_
    theta = rng.uniform(0.1, 1.0, TASKS)
    np.testing.assert_allclose(run(to_onnx(field), X, theta), field(X, theta), rtol=0.0, atol=AGREEMENT)


class TestPipelines:
    @pytest.mark.parametrize(
        "step",
        [
            StandardScaler(),
            pytest.param(StandardScaler(with_mean=False), marks=pytest.mark.slow),
            pytest.param(StandardScaler(with_std=False), marks=pytest.mark.slow),
            MinMaxScaler((0.0, 2.0), clip=True),
            MaxAbsScaler(),
            RobustScaler(quantile_range=(10.0, 90.0)),
            pytest.param(FunctionTransformer(), marks=pytest.mark.slow),
            "passthrough",
        ],
        ids=str,
    )
    def test_scalers(self, step: Any) -> None:
        check(make_pipeline(step, InfiniteQuantileRegressor(**QUICK)).fit(3.0 + 2.0 * X, Y), 3.0 + 3.0 * X[:ROWS])

    @pytest.mark.parametrize("options", [{}, {"add_indicator": True}, {"missing_values": -1.0}], ids=str)
    def test_missing_numbers(self, options: Any) -> None:
        holes = np.column_stack([X, np.full(len(X), np.nan)])  # the last column is left out, or 0
        holes[::5, 1] = options.get("missing_values", np.nan)
        if "missing_values" in options:
            holes[:, 3] = 2.0
        steps = SimpleImputer(strategy="median", **options), StandardScaler(), InfiniteQuantileRegressor(**QUICK)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the column without numbers
            check(plain_pipeline(*steps).fit(holes, Y), holes[:ROWS])

    def test_searches_and_models_inside_of_models(self) -> None:
        search = GridSearchCV(InfiniteQuantileRegressor(**QUICK), {"alpha": [0.1, 0.01]}, cv=2)
        model = plain_pipeline(StandardScaler(), search).fit(X, Y)
        graph = to_onnx(model)
        expected = search.best_estimator_.predict(model[:-1].transform(X), quantiles=[0.2, 0.7])
        np.testing.assert_allclose(run(graph, X, np.array([0.2, 0.7])), expected, rtol=0.0, atol=AGREEMENT)

    def test_cross_conformal_models_answer_by_their_mean(self) -> None:
        each = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(**QUICK))
        model = CrossConformal(each, cv=2, random_state=0).fit(X, Y)
        with pytest.warns(UserWarning, match="conformal intervals are not in it"):
            graph = to_onnx(model)
        theta = np.array([0.1, 0.6])
        np.testing.assert_allclose(run(graph, X, theta), model.predict(X, theta), rtol=0.0, atol=AGREEMENT)

    @pytest.mark.parametrize(
        ("func", "inverse_func"),
        [
            (np.log, np.exp),
            (np.arcsinh, np.sinh),
            (np.log1p, np.expm1),
            (np.sqrt, np.square),
            (np.reciprocal, np.reciprocal),  # decreasing
        ],
        ids=lambda function: function.__name__,
    )
    def test_targets_on_another_scale(self, func: Any, inverse_func: Any) -> None:
        inner = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(**QUICK))
        model = TransformedTarget(inner, func=func, inverse_func=inverse_func).fit(X, 2.0 + np.exp(0.3 * Y))
        check(model, X[:ROWS])

    def test_a_scale_that_ends(self) -> None:
        model = TransformedTarget(InfiniteQuantileRegressor(**QUICK), func=np.sqrt, inverse_func=np.square)
        y = np.exp(3.0 * X[:, 0])
        model.fit(X[y > 0.5], y[y > 0.5])
        far = np.column_stack([np.linspace(-9.0, 0.0, 40), np.zeros((40, 2))])
        found = run(to_onnx(model), far, np.array([0.01]))[:, 0]
        expected = np.full(40, np.nan)
        for k, row in enumerate(far):
            with warnings.catch_warnings(), suppress(ValueError):  # "not the inverse of a monotone function"
                warnings.simplefilter("ignore")  # of rows that are far away
                expected[k] = model.predict(row[None], 0.01)[0]
        assert 0 < np.count_nonzero(np.isnan(expected)) < 40
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_a_scale_without_a_graph(self) -> None:
        model = TransformedTarget(InfiniteQuantileRegressor(**QUICK), func=np.cbrt, inverse_func=lambda z: z**3)
        with pytest.raises(TypeError, match=r"inverse_func=.*which has no ONNX graph here; np\.exp, .*estimator_"):
            to_onnx(model.fit(X, Y))

    def test_other_steps_are_refused(self) -> None:
        model = make_pipeline(PowerTransformer(), InfiniteQuantileRegressor(**QUICK)).fit(X, Y)
        with pytest.raises(TypeError, match=r"PowerTransformer, which has no ONNX graph here; StandardScaler.*\[-1\]"):
            to_onnx(model)
        check(model[-1])
        model = make_pipeline(FunctionTransformer(np.sinh), InfiniteQuantileRegressor(**QUICK)).fit(X, Y)
        with pytest.raises(TypeError, match="the step FunctionTransformer"):
            to_onnx(model)


class TestWhatIsNotKnown:
    @pytest.mark.parametrize("name", ["quantiles", "quantiles in order", "tuned quantiles", "joint quantiles"])
    def test_rows_and_tasks_that_python_refuses_are_nan_and_others_are_not(self, name: str) -> None:
        model = fitted(name)
        rows = X[:5].copy()
        rows[1, 0], rows[2, 1], rows[3, 2] = np.nan, np.inf, 2e100
        theta = np.array([0.25, 0.0, 1.0, -0.5, 2.0, np.nan, 0.5])
        found = run(to_onnx(model), rows, theta)
        expected = np.full(found.shape, np.nan)
        expected[np.ix_([0, 4], [0, 6])] = model.predict(rows[[0, 4]], [0.25, 0.5])
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT)
        for row in rows[1:4]:
            with pytest.raises(ValueError, match="X"):
                model.predict(row[None])
        for task in theta[1:6]:
            with pytest.raises(ValueError, match="quantiles"):
                model.predict(X, task)

    def test_a_task_between_those_of_a_finite_model(self) -> None:
        for name in ("joint quantiles", "a matrix of tasks"):
            model = fitted(name)
            assert np.all(np.isnan(run(to_onnx(model), X, np.array([0.3]))))
            with pytest.raises(ValueError, match=r"0\.3"):
                model.predict(X, 0.3)

    def test_an_infinite_number_that_a_scaler_would_clip(self) -> None:
        model = make_pipeline(MinMaxScaler(clip=True), InfiniteQuantileRegressor(**QUICK)).fit(X, Y)
        rows = X[:2].copy()
        rows[0, 0] = np.inf
        assert np.isnan(run(to_onnx(model), rows, np.array([0.5]))).ravel().tolist() == [True, False]

    def test_no_rows_and_no_tasks(self) -> None:
        graph = to_onnx(fitted("quantiles"))
        assert run(graph, X[:0], np.array([0.5, 0.6])).shape == (0, 2)
        assert run(graph, X, np.array([])).shape == (len(X), 0)


class TestTheFile:
    def test_a_file_says_what_it_holds(self, tmp_path: Path) -> None:
        pandas = pytest.importorskip("pandas")
        table = pandas.DataFrame(X, columns=["a", "b", "c"])
        model = InfiniteCostSensitiveClassifier(**QUICK).fit(table, LABELS)
        to_onnx(model, tmp_path / "costs.onnx")
        graph = onnx.load(tmp_path / "costs.onnx")
        onnx.checker.check_model(graph, full_check=True)
        said = known(graph)
        assert said["class"] == "InfiniteCostSensitiveClassifier"
        assert said["h"] == "decision_function(X, theta)"
        assert json.loads(said["inputs"]) == ["a", "b", "c"]
        assert json.loads(said["classes"]) == ["no", "yes"]
        assert (json.loads(said["theta_low"]), json.loads(said["theta_high"])) == ([-1.0], [1.0])
        assert said["infinitask"] == graph.producer_version == infinitask.__version__
        assert [entry.name for entry in graph.graph.input] == ["X", "theta"]
        assert {entry.domain for entry in graph.opset_import} == {""}  # no operators of anybody's own
        found = onnxruntime.InferenceSession(tmp_path / "costs.onnx").run(None, {"X": X, "theta": np.array([0.3])})[0]
        np.testing.assert_allclose(found[:, 0], model.decision_function(table, 0.3), rtol=0.0, atol=AGREEMENT)

    def test_a_loaded_model_has_the_same_graph(self, tmp_path: Path) -> None:
        model = fitted("tuned quantiles")
        infinitask.save(model, tmp_path / "m")
        graph, again = to_onnx(model), to_onnx(infinitask.load(tmp_path / "m"))
        theta = some_tasks(graph)
        assert np.array_equal(run(graph, X, theta), run(again, X, theta))

    def test_a_place_that_is_none(self, tmp_path: Path) -> None:
        model = fitted("quantiles")
        with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
            to_onnx(model, tmp_path / "nowhere" / "m.onnx")
        with pytest.raises(TypeError, match="int was given as the path"):
            to_onnx(model, 3)  # type: ignore[arg-type]

    def test_a_graph_that_differs_is_not_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        model = fitted("quantiles")
        monkeypatch.setattr(type(model), "predict", lambda self, X, quantiles: np.zeros((len(X), len(quantiles))))
        with pytest.raises(ArithmeticError, match="The graph differs from Python by"):
            to_onnx(model, tmp_path / "m.onnx")
        assert not list(tmp_path.iterdir())
        to_onnx(model, tmp_path / "m.onnx", check=False)
        assert list(tmp_path.iterdir())


class TestRefused:
    def test_kernels_without_a_formula(self) -> None:
        class Own(InputKernel):
            def __call__(self, X: Any, Z: Any) -> Any:
                return X @ Z.T

            def diag(self, X: Any) -> Any:
                return (X**2).sum(axis=1)

        with pytest.raises(TypeError, match="a kernel that is a function of Python, which has no ONNX graph"):
            to_onnx(InfiniteQuantileRegressor(kernel=CallableKernel(lambda X, Z: X @ Z.T), **QUICK).fit(X, Y))
        with pytest.raises(TypeError, match="the kernel Own, which has no ONNX graph here; fit with a named kernel"):
            to_onnx(InfiniteQuantileRegressor(kernel=Sum(RBF(), Own()), **QUICK).fit(X, Y))

    def test_models_that_are_not_fitted_or_not_ours(self) -> None:
        from sklearn.exceptions import NotFittedError
        from sklearn.linear_model import LinearRegression

        with pytest.raises(NotFittedError):
            to_onnx(InfiniteQuantileRegressor())
        with pytest.raises(TypeError, match="LinearRegression has no ONNX graph; the models of infinitask for"):
            to_onnx(LinearRegression().fit(X, Y))

    def test_arguments(self) -> None:
        with pytest.raises(ValueError, match=r"dtype='float16' was given; it must be one of 'float64', 'float32'"):
            to_onnx(fitted("quantiles"), dtype="float16")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(public_estimators()))
def test_every_public_model_has_a_graph_or_is_refused_by_a_sentence(name: str) -> None:
    """Models that come later are found by themselves."""
    model = public_model(name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The graph answers predict")  # and no conformal intervals
        if name not in WITH_A_GRAPH:
            try:
                graph = to_onnx(model)
            except TypeError as error:
                assert f"{name} has no ONNX graph; the models of infinitask" in str(error)  # noqa: PT017
                return
        graph = to_onnx(model)
    theta = some_tasks(graph)
    found, expected = run(graph, NEW, theta), in_python(getattr(model, "best_estimator_", model), graph, NEW, theta)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=AGREEMENT)


def test_another_runtime_answers_alike() -> None:
    """The graph is one of the standard, not of one runtime."""
    from onnx.reference import ReferenceEvaluator

    for name in ("tuned quantiles", "costs", "nested level sets"):
        graph = to_onnx(fitted(name))
        theta = some_tasks(graph)
        (found,) = ReferenceEvaluator(graph).run(None, {"X": X, "theta": theta})
        np.testing.assert_allclose(found, in_python(fitted(name), graph, X, theta), rtol=0.0, atol=AGREEMENT)


def test_a_model_whose_data_are_on_a_device() -> None:
    pytest.importorskip("torch")
    model = InfiniteQuantileRegressor(**QUICK, device="cpu").fit(X, Y)
    assert type(model.field_.phi.landmarks).__module__ == "torch"
    check(model)
