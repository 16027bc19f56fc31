"""Models in MLflow: what was logged is what is loaded, without pickle, and tasks are chosen at prediction."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteFunctionRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    make_pipeline,
)

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install infinitask[mlflow]")
pytest.importorskip("safetensors", reason="safetensors is not installed: pip install infinitask[save]")
pd = pytest.importorskip("pandas")

from infinitask.integrations import mlflow as flavour  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (60, 2))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=60)
LABELS = np.where(Y > 0.0, "up", "down")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A store in a temporary folder, and an empty folder to work in that has to stay empty."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    yield tmp_path
    mlflow.set_tracking_uri(before)
    assert list(work.iterdir()) == []


@pytest.fixture(scope="module")
def model() -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=8, alpha=0.01).fit(X, Y)


def function_of(model: Any, folder: Path, **options: Any) -> Any:
    flavour.save_model(model, folder / "saved", **options)
    return mlflow.pyfunc.load_model(str(folder / "saved"))


def test_a_logged_model_comes_back_bit_by_bit(elsewhere: Path, model: InfiniteQuantileRegressor) -> None:
    with mlflow.start_run():
        info = flavour.log_model(model, "sine", input_example=X[:3])
    again = flavour.load_model(info.model_uri)
    assert isinstance(again, InfiniteQuantileRegressor)
    np.testing.assert_array_equal(again.predict(X, quantiles=[0.1, 0.9]), model.predict(X, quantiles=[0.1, 0.9]))
    function = mlflow.pyfunc.load_model(info.model_uri)
    np.testing.assert_array_equal(function.predict(X), model.predict(X))
    written = [path for path in elsewhere.rglob("*") if path.is_file()]
    assert any(path.name == "model.safetensors" for path in written)
    assert not any(path.suffix in (".pkl", ".pickle", ".joblib", ".cloudpickle") for path in written)


def test_tasks_are_chosen_at_prediction(tmp_path: Path, model: InfiniteQuantileRegressor) -> None:
    function = function_of(model, tmp_path)
    assert function.predict(X, params={"quantiles": [0.3]}).shape == (60,)
    expected = model.predict(X, quantiles=[0.05, 0.95])
    np.testing.assert_array_equal(function.predict(X, params={"quantiles": [0.05, 0.95]}), expected)
    intervals = function.predict(X, params={"method": "predict_interval", "coverage": [0.8]})
    np.testing.assert_array_equal(intervals, model.predict_interval(X, coverage=0.8))
    with pytest.raises(ValueError, match=r"method='fit' was given; this model answers 'predict', 'predict_interval'"):
        function.predict(X, params={"method": "fit"})


def test_classes_and_level_sets_have_their_own_tasks(tmp_path: Path) -> None:
    classifier = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=0.1).fit(X, LABELS)
    function = function_of(classifier, tmp_path / "classes")
    for theta in (-0.8, 0.8):
        answer = function.predict(X, params={"theta": [theta]})
        assert list(answer) == list(classifier.predict(X, theta=theta))
    chances = function.predict(X, params={"method": "predict_proba"})
    np.testing.assert_array_equal(chances, classifier.predict_proba(X))
    detector = InfiniteOneClassSVM(n_nodes=6, alpha=0.1).fit(X)
    function = function_of(detector, tmp_path / "sets")
    inside = function.predict(X, params={"nu": [0.1, 0.5]})
    np.testing.assert_array_equal(inside, detector.predict(X, nu=[0.1, 0.5]))
    assert np.mean(inside[:, 0]) > np.mean(inside[:, 1])


def test_costs_and_coverage_are_heard(tmp_path: Path, model: InfiniteQuantileRegressor) -> None:
    three = np.select([Y < -0.4, Y > 0.4], ["low", "high"], "middle")
    classifier = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=1e-3, random_state=0).fit(X, three)
    function = function_of(classifier, tmp_path / "classes", input_example=X[:2])
    costs = np.array([[0.0, 9.0, 9.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    found = function.predict(X, params={"costs": list(costs.ravel())})
    assert list(found) == list(classifier.predict(X, costs=costs))
    assert list(found) != list(classifier.predict(X))
    lists = [[1.0, 1.0, 9.0], [9.0, 1.0, 1.0]]
    found = function.predict(X, params={"theta": list(np.ravel(lists))})
    np.testing.assert_array_equal(found, classifier.predict(X, theta=lists))
    function = function_of(model, tmp_path / "levels")
    np.testing.assert_array_equal(function.predict(X, params={"coverage": [0.9]}), model.predict_interval(X, 0.9))
    with pytest.raises(ValueError, match=r"params have 'coverage' for predict, which takes 'quantiles'"):
        function.predict(X, params={"method": "predict", "coverage": [0.5]})
    with pytest.raises(ValueError, match=r"params have 'quantile'; this model takes 'method' and 'coverage', 'quant"):
        flavour._load_pyfunc(str(tmp_path / "levels" / "saved" / "model.safetensors")).predict(X, {"quantile": 0.5})


def test_curves_are_asked_at_points(tmp_path: Path) -> None:
    grid = np.linspace(0.0, 1.0, 5)
    curves = InfiniteFunctionRegressor(gamma=0.5).fit(X, np.outer(Y, 1.0 + grid), theta=grid)
    function = function_of(curves, tmp_path)
    np.testing.assert_array_equal(function.predict(X, params={"theta": [0.3, 0.4]}), curves.predict(X, [0.3, 0.4]))
    np.testing.assert_array_equal(function.predict(X), curves.predict(X))


def test_a_search_is_asked_as_its_best_model(tmp_path: Path) -> None:
    small = InfiniteQuantileRegressor(n_nodes=6, tol=1e-2)
    search = GridSearchCV(make_pipeline(StandardScaler(), small), {"infinitequantileregressor__alpha": [0.1]}, cv=2)
    function = function_of(search.fit(X, Y), tmp_path, input_example=X[:2])
    expected = search.best_estimator_.predict(X, quantiles=[0.2, 0.8])
    np.testing.assert_array_equal(function.predict(X, params={"quantiles": [0.2, 0.8]}), expected)
    expected = search.best_estimator_.predict_interval(X, 0.5)
    np.testing.assert_array_equal(function.predict(X, params={"coverage": [0.5]}), expected)


def test_a_pipeline_is_asked_by_the_names_of_its_last_step(tmp_path: Path) -> None:
    table = pd.DataFrame(X, columns=["width", "height"])
    pipeline = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=6, alpha=0.1)).fit(table, Y)
    function = function_of(pipeline, tmp_path, input_example=table.head(2), metadata={"team": "roofs"})
    signature = function.metadata.signature
    assert signature.inputs.input_names() == ["width", "height"]
    assert [spec.name for spec in signature.params.params] == ["method", "quantiles", "coverage"]
    assert function.metadata.metadata == {"team": "roofs"}
    found = function.predict(table, params={"quantiles": [0.2, 0.8]})
    np.testing.assert_array_equal(found, pipeline.predict(table, quantiles=[0.2, 0.8]))
    with pytest.raises(mlflow.exceptions.MlflowException, match="height"):
        function.predict(table[["width"]])


def test_what_is_needed_is_written_beside_the_model(tmp_path: Path, model: InfiniteQuantileRegressor) -> None:
    flavour.save_model(model, tmp_path / "own", pip_requirements=["infinitask==9.9"])
    assert (tmp_path / "own" / "requirements.txt").read_text() == "infinitask==9.9\n"
    flavour.save_model(model, tmp_path / "found")
    lines = (tmp_path / "found" / "requirements.txt").read_text().splitlines()
    assert lines[0].startswith("infinitask[mlflow]==")
    assert f"numpy=={np.__version__}" in lines


def test_wrong_calls_are_sentences(tmp_path: Path, model: InfiniteQuantileRegressor) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(FileExistsError, match="is there already"):
        flavour.save_model(model, tmp_path / "full")
    other = mlflow.models.Model()
    other.add_flavor("somebody", data="x")
    (tmp_path / "other").mkdir()
    other.save(str(tmp_path / "other" / "MLmodel"))
    with pytest.raises(ValueError, match="has the flavours somebody, and not 'infinitask'"):
        flavour.load_model(str(tmp_path / "other"))


def test_without_mlflow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "infinitask.integrations.mlflow")
    monkeypatch.setitem(sys.modules, "mlflow.artifacts", None)
    with pytest.raises(ImportError, match=r"pip install infinitask\[mlflow\]"):
        importlib.import_module("infinitask.integrations.mlflow")
