"""Frames out: the numbers of an answer are the same, its columns have names and its rows those of X."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from infinitask import (
    CrossConformal,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
    InfiniteTaskEstimator,
    load,
    make_pipeline,
    save,
)
from infinitask.metrics import scorer
from infinitask.plotting._asked import CURVES, asked
from infinitask.report import explore
from tests.support.each import each

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(-1.0, 1.0, (60, 2)), columns=["a", "b"], index=[f"row {i}" for i in range(60)])
Y = X["a"] + 0.2 * rng.normal(size=60)
LABELS = np.where(Y > 0.0, "up", "down")
THREE = np.select([Y < -0.3, Y > 0.3], ["low", "high"], "middle")
POINTS = np.array([0.0, 0.1, 0.5, 1.0])
COMMON: dict[str, Any] = {"gamma": 0.5, "n_nodes": 6, "tol": 0.1, "random_state": 0}

QUANTILES = InfiniteQuantileRegressor(**COMMON)
EXPECTILES = InfiniteExpectileRegressor(**COMMON)
COSTS = InfiniteCostSensitiveClassifier(**COMMON, alpha=0.1)
SETS = InfiniteOneClassSVM(**COMMON, alpha=0.01)
MANY = InfiniteCostSensitiveClassifier(**COMMON, alpha=0.2)
CURVE = InfiniteFunctionRegressor(gamma=0.5)
ANY = InfiniteTaskEstimator("pinball", **COMMON)

MODELS = (QUANTILES, EXPECTILES, COSTS, MANY, SETS, CURVE, ANY)

ANSWERS: dict[str, tuple[Any, str, dict[str, Any], Any]] = {
    "levels": (QUANTILES, "predict", {"quantiles": [0.05, 0.5, 0.95]}, ["q0.05", "q0.5", "q0.95"]),
    "one level": (QUANTILES, "predict", {"quantiles": 0.3}, "q0.3"),
    "default level": (QUANTILES, "predict", {}, "q0.5"),
    "list of one level": (QUANTILES, "predict", {"quantiles": [0.1]}, ["q0.1"]),
    "interval": (QUANTILES, "predict_interval", {"coverage": 0.8}, ["low", "high"]),
    "intervals": (
        QUANTILES,
        "predict_interval",
        {"coverage": [0.5, 0.9]},
        ["low_0.5", "high_0.5", "low_0.9", "high_0.9"],
    ),
    "expectiles": (EXPECTILES, "predict", {"expectiles": [0.25, 0.75]}, ["expectile_0.25", "expectile_0.75"]),
    "labels": (COSTS, "predict", {"theta": [-0.5, 0.5]}, ["theta_-0.5", "theta_0.5"]),
    "label": (COSTS, "predict", {}, "prediction"),
    "label at a trade-off": (COSTS, "predict", {"theta": 0.5}, "prediction"),
    "cheapest label": (COSTS, "predict", {"costs": [[0.0, 1.0], [2.0, 0.0]]}, "prediction"),
    "label of each row": (COSTS, "predict", {"theta": np.linspace(-0.5, 0.5, 60), "per_sample": True}, "prediction"),
    "probabilities": (COSTS, "predict_proba", {}, ["down", "up"]),
    "decision": (COSTS, "decision_function", {}, "decision"),
    "decisions": (COSTS, "decision_function", {"theta": [0.0, 0.5]}, ["theta_0", "theta_0.5"]),
    "insides": (SETS, "predict", {"nu": [0.1, 0.2]}, ["nu_0.1", "nu_0.2"]),
    "score": (SETS, "score_samples", {}, "score"),
    "outlierness": (SETS, "decision_function", {}, "decision"),
    "a level twice": (QUANTILES, "predict", {"quantiles": [0.5, 0.5, 0.1]}, ["q0.5", "q0.5_2", "q0.1"]),
    "names of classes": (MANY, "decision_function", {}, ["high", "low", "middle"]),
    "names of classes at costs": (MANY, "decision_function", {"theta": [1, 1, 9]}, ["high", "low", "middle"]),
    "label of many": (MANY, "predict", {"theta": [1, 1, 9]}, "prediction"),
    "labels of many": (MANY, "predict", {"theta": [[1, 1, 9], [1, 2, 3]]}, ["theta_0", "theta_1"]),
    "cheapest of many": (MANY, "predict", {"costs": 1.0 - np.eye(3)}, "prediction"),
    "curves": (CURVE, "predict", {}, ["theta_0", "theta_0.1", "theta_0.5", "theta_1"]),
    "slopes": (CURVE, "derivative", {"theta": [0.2, 0.3]}, ["theta_0.2", "theta_0.3"]),
    "a point of the curves": (CURVE, "predict", {"theta": 0.3}, "theta_0.3"),
    "points of each row": (CURVE, "predict", {"theta": np.full((60, 2), 0.5)}, ["prediction_0", "prediction_1"]),
    "tasks": (ANY, "predict", {"theta": [[0.2], [0.4]]}, ["theta_0.2", "theta_0.4"]),
}


def fitted(model: Any, *, piped: bool) -> Any:
    targets = {id(COSTS): LABELS, id(MANY): THREE, id(SETS): None, id(CURVE): np.outer(Y, 1.0 + POINTS)}
    given = {"infinitefunctionregressor__theta" if piped else "theta": POINTS} if model is CURVE else {}
    own = make_pipeline(StandardScaler(), clone(model)) if piped else clone(model)
    return own.fit(X, targets.get(id(model), Y), **given)


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "in a pipeline"])
def models(request: pytest.FixtureRequest) -> dict[int, Any]:
    return {id(m): fitted(m, piped=request.param) for m in MODELS}


@each("kind", ["pandas", "polars"])
@each("case", ANSWERS.values(), ids=ANSWERS)
def test_names_are_those_of_the_tasks_and_numbers_stay(models: dict[int, Any], case: Any, kind: str) -> None:
    library = pytest.importorskip(kind)
    spec, method, options, names = case
    model = models[id(spec)].set_output(predict="default")
    plain = getattr(model, method)(X, **options)
    assert type(plain) is np.ndarray
    frame = getattr(model.set_output(predict=kind), method)(X, **options)
    if isinstance(names, str):
        assert isinstance(frame, library.Series)
        assert frame.name == names
    else:
        assert isinstance(frame, library.DataFrame)
        assert list(frame.columns) == names
    np.testing.assert_array_equal(np.asarray(frame), plain.reshape(np.asarray(frame).shape))
    if kind == "pandas":
        assert frame.index.equals(X.index)


def test_answers_that_are_no_tables_stay_as_they_are(models: dict[int, Any]) -> None:
    curve, many = (models[id(spec)].set_output(predict="pandas") for spec in (CURVE, MANY))
    ragged = curve.predict(X, theta=[[0.1]] * 30 + [[0.1, 0.9]] * 30)
    assert [len(one) for one in ragged] == [1] * 30 + [2] * 30
    assert type(many.decision_function(X, [[1, 1, 9], [1, 2, 3]])) is np.ndarray


def test_rows_without_names_are_counted() -> None:
    model = InfiniteQuantileRegressor(**COMMON).fit(X.to_numpy(), Y).set_output(predict="pandas")
    assert model.predict(X.to_numpy()).index.tolist() == list(range(60))
    assert model.predict(X.to_numpy(), quantiles=[0.2]).index.tolist() == list(range(60))


def test_the_constructor_names_levels_too() -> None:
    model = InfiniteQuantileRegressor(quantiles=[0.1, 0.9], **COMMON).fit(X, Y).set_output(predict="pandas")
    assert model.predict(X).columns.tolist() == ["q0.1", "q0.9"]


def test_a_clone_a_pickle_and_a_file_remember() -> None:
    model = InfiniteQuantileRegressor(**COMMON).set_output(predict="pandas")
    again = pickle.loads(pickle.dumps(clone(model).fit(X, Y)))
    assert isinstance(again.predict(X), pd.Series)
    assert type(again.set_output(predict="default").predict(X)) is np.ndarray
    assert isinstance(again.set_output().set_output(predict="pandas").predict(X), pd.Series)


@each("piped", [False, True])
def test_a_saved_model_remembers(tmp_path: Any, piped: bool) -> None:
    pytest.importorskip("safetensors")
    model = fitted(QUANTILES, piped=piped).set_output(predict="pandas")
    save(model, tmp_path / "model")
    pd.testing.assert_frame_equal(load(tmp_path / "model").predict(X, [0.1, 0.9]), model.predict(X, [0.1, 0.9]))


def test_models_around_models_have_it() -> None:
    tuned = InfiniteQuantileRegressorCV(kernels=["linear"], n_nodes=6, random_state=0).set_output(predict="pandas")
    assert tuned.fit(X, Y).predict(X, quantiles=[0.2, 0.8]).columns.tolist() == ["q0.2", "q0.8"]
    assert type(tuned.set_output(predict="default").predict(X)) is np.ndarray
    crossed = CrossConformal(InfiniteQuantileRegressor(**COMMON).set_output(predict="pandas"), cv=3, random_state=0)
    assert type(crossed.fit(X, Y).predict(X)) is np.ndarray
    crossed.set_output(predict="pandas")
    assert crossed.predict(X, quantiles=[0.2]).columns.tolist() == ["q0.2"]
    assert crossed.predict_interval(X, 0.5).columns.tolist() == ["low", "high"]


def test_what_asks_a_model_for_numbers_still_gets_them() -> None:
    for piped in (False, True):
        model = fitted(QUANTILES, piped=piped)
        expected = (
            model.score(X, Y),
            scorer("crps")(model, X, Y),
            explore(model, X, Y).payload["reliability"],
            cross_val_predict(model, X, Y, cv=3),
        )
        model.set_output(predict="pandas")
        assert model.score(X, Y) == expected[0]
        assert scorer("crps")(model, X, Y) == expected[1]
        assert explore(model, X, Y).payload["reliability"] == expected[2]
        np.testing.assert_array_equal(cross_val_predict(model, X, Y, cv=3), expected[3])
    alone = fitted(QUANTILES, piped=False).set_output(predict="pandas")
    assert type(asked(alone, CURVES, "A display").model.predict(X, [0.1, 0.9])) is np.ndarray


def test_an_answer_that_is_the_model_stays_it() -> None:
    model = fitted(QUANTILES, piped=True).set_output(predict="pandas")
    assert model.conformalize(X, Y) is model
    assert model.predict_interval(X).index.equals(X.index)
    assert fitted(SETS, piped=True).set_output(predict="pandas").fit_predict(X).index.equals(X.index)


def test_what_is_said_about_transformers_changes_no_prediction() -> None:
    with sklearn.config_context(transform_output="pandas"):
        assert type(fitted(QUANTILES, piped=False).predict(X, [0.1, 0.9])) is np.ndarray
        assert type(fitted(QUANTILES, piped=True).predict(X, [0.1, 0.9])) is np.ndarray
    piped = make_pipeline(StandardScaler(), clone(QUANTILES)).set_output(transform="pandas").fit(X, Y)
    assert isinstance(piped[:-1].transform(X), pd.DataFrame)
    assert type(piped.predict(X)) is np.ndarray


def test_wrong_kinds_are_named() -> None:
    with pytest.raises(ValueError, match=r"predict='panda' was given; it must be one of 'default', 'pandas', 'polars'"):
        InfiniteQuantileRegressor().set_output(predict="panda")
    with pytest.raises(ValueError, match=r"does not transform; set_output\(predict='pandas'\)"):
        InfiniteQuantileRegressor().set_output(transform="pandas")


def test_without_polars_the_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="pip install polars"):
        InfiniteQuantileRegressor().set_output(predict="polars")
