"""Tables as they are: every kind of column becomes numbers, and nothing at predict time breaks."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import (
    CrossConformal,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    tabular,
)
from infinitask.pipelines import TaskPipeline
from tests.support.mixed_tables import mixed_table

pd = pytest.importorskip("pandas")
pytest.importorskip("skrub", reason="skrub is not installed: pip install infinitask[table]")

X, y = mixed_table(150)


@pytest.fixture(scope="module")
def model() -> TaskPipeline:
    return tabular(InfiniteQuantileRegressor(n_nodes=10), text_components=3).fit(X, y)


def encoded(model: TaskPipeline, table: Any) -> Any:
    return model.named_steps["table"].transform(table)


def test_steps_have_their_names(model: TaskPipeline) -> None:
    assert [name for name, _ in model.steps] == ["table", "model"]
    between = tabular(plain_pipeline(StandardScaler(), InfiniteQuantileRegressor()))
    assert [name for name, _ in between.steps] == ["table", "standardscaler", "model"]


def test_predictions_are_those_of_the_parts(model: TaskPipeline) -> None:
    Z = clone(model.named_steps["table"]).fit_transform(X)
    by_hand = InfiniteQuantileRegressor(n_nodes=10).fit(Z, y)
    np.testing.assert_array_equal(model.predict(X, quantiles=[0.1, 0.9]), by_hand.predict(Z, quantiles=[0.1, 0.9]))
    np.testing.assert_array_equal(model.predict_interval(X), by_hand.predict_interval(Z))
    assert model.score(X, y) > 0.5  # the columns do help


def test_every_kind_of_column_becomes_numbers(model: TaskPipeline) -> None:
    names = set(model.relevance_.names)
    assert {"area", "missingindicator_area", "rooms", "garden", "same"} <= names
    assert {"city_Oslo", "city_Rome", "city_Lima"} <= names
    assert len([name for name in names if name.startswith("city_")]) == 4  # missing is a category
    assert {"sold_year", "sold_month", "sold_day", "sold_total_seconds"} <= names
    assert len([name for name in names if name.startswith("note_")]) == 3
    assert "missingindicator_rooms" not in names  # nothing was missing
    assert set(np.unique(encoded(model, X)["garden"])) == {0.0, 1.0}
    assert model.relevance_.names[model.relevance_.order[0]] == "area"


def test_missing_numbers_become_the_median_and_are_marked(model: TaskPipeline) -> None:
    Z, holes = encoded(model, X), X["area"].isna().to_numpy()
    assert holes.any()
    np.testing.assert_allclose(Z["area"][holes], np.float32(X["area"].median()))
    np.testing.assert_array_equal(Z["missingindicator_area"], holes)


def test_a_missing_date_becomes_the_median_date(model: TaskPipeline) -> None:
    Z, holes = encoded(model, X), X["sold"].isna().to_numpy()
    assert holes.any()
    seconds = Z["sold_total_seconds"].to_numpy()
    np.testing.assert_allclose(seconds[holes], np.median(seconds[~holes]), rtol=1e-6)


def test_what_is_missing_only_at_predict_time_is_the_median(model: TaskPipeline) -> None:
    new = X.head(4).copy()
    new["rooms"], new["garden"] = [None, 2, 3, 1], [None, True, False, None]
    Z = encoded(model, new)
    assert Z["rooms"].iloc[0] == X["rooms"].median()
    assert Z["garden"].tolist() == [float(X["garden"].median()), 1.0, 0.0, float(X["garden"].median())]
    assert np.all(np.isfinite(model.predict(new)))


def test_an_unknown_category_is_zero_in_all_columns(model: TaskPipeline) -> None:
    new = X.head(2).copy()
    new["city"] = ["Atlantis", "Rome"]
    cities = encoded(model, new)[[name for name in model.relevance_.names if name.startswith("city_")]]
    assert cities.sum(axis=1).tolist() == [0.0, 1.0]
    assert np.all(np.isfinite(model.predict(new)))


def test_a_category_that_is_missing_only_at_predict_time_is_zero_in_all_columns() -> None:
    full = X.assign(city=X["city"].fillna("Oslo"))
    model = tabular(InfiniteQuantileRegressor(n_nodes=6)).fit(full[["area", "city"]], y)
    new = full[["area", "city"]].head(3).copy()
    new["city"] = [None, "Rome", np.nan]
    Z = encoded(model, new)
    assert Z[["city_Oslo", "city_Rome", "city_Lima"]].sum(axis=1).tolist() == [0.0, 1.0, 0.0]
    assert np.all(np.isfinite(model.predict(new)))


def test_a_table_with_nothing_in_it_has_an_answer(model: TaskPipeline) -> None:
    empty = pd.DataFrame({name: [None, None] for name in X.columns}, dtype=object)
    assert np.all(np.isfinite(model.predict(empty, quantiles=[0.1, 0.9])))


def test_many_categories_are_encoded_as_text() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"code": rng.choice([f"code {k}" for k in range(12)], 120), "x": rng.normal(size=120)})
    few = tabular(InfiniteQuantileRegressor(n_nodes=6), max_categories=12, text_components=2)
    many = tabular(InfiniteQuantileRegressor(n_nodes=6), max_categories=11, text_components=2)
    assert len(few.fit(table, table["x"]).relevance_.names) == 13
    assert len(many.fit(table, table["x"]).relevance_.names) == 3


def test_numbers_and_dates_that_are_written_as_text() -> None:
    table = pd.DataFrame({"x": X["area"].map(str), "day": X["sold"].dt.strftime("%d/%m/%Y")})
    names = tabular(InfiniteQuantileRegressor(n_nodes=6)).fit(table, y).relevance_.names
    assert {"x", "day_year", "day_total_seconds"} <= set(names)


def test_an_empty_column_is_left_out() -> None:
    model = tabular(InfiniteQuantileRegressor(n_nodes=6)).fit(X[["area"]].assign(none=np.nan), y)
    assert model.relevance_.names == ("area", "missingindicator_area")


def test_classes_and_level_sets() -> None:
    high = np.where(y > y.median(), "high", "low")
    costs = tabular(InfiniteCostSensitiveClassifier(n_nodes=6)).fit(X, high)
    assert costs.predict(X, theta=[-0.5, 0.5]).shape == (150, 2)
    assert costs.roc_curve(X, high).area > 0.9
    sets = tabular(InfiniteOneClassSVM(n_nodes=6)).fit(X)
    assert np.mean(sets.predict(X, nu=0.3) == -1) == pytest.approx(0.3, abs=0.15)


def test_intervals_across_folds_stand_around_a_table_or_behind_one() -> None:
    model = InfiniteQuantileRegressor(n_nodes=6)
    around = CrossConformal(tabular(model), cv=3, random_state=0).fit(X, y)
    behind = tabular(CrossConformal(model, cv=3, random_state=0)).fit(X, y)
    for found in (around, behind):
        low, high = found.predict_interval(X, coverage=0.8).T
        assert np.mean((low <= y) & (y <= high)) > 0.7


def test_cross_validation_takes_the_table_apart() -> None:
    found = cross_val_predict(tabular(InfiniteQuantileRegressor(n_nodes=6)), X, y, cv=3)
    assert np.corrcoef(found, y)[0, 1] > 0.7


def test_a_table_of_arrow_is_a_table(model: TaskPipeline) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install infinitask[parquet]")
    table = arrow.Table.from_pandas(X)
    again = clone(model).fit(table, y)
    np.testing.assert_allclose(again.predict(table), model.predict(X))
    np.testing.assert_allclose(again.predict_interval(table), model.predict_interval(X))
    assert again.score(table, y) == pytest.approx(model.score(X, y))


def test_a_table_of_polars_is_a_table(model: TaskPipeline) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    frame = polars.from_pandas(X)
    np.testing.assert_allclose(clone(model).fit(frame, y).predict(frame), model.predict(X), rtol=1e-5)


def test_without_skrub_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skrub", None)
    with pytest.raises(ImportError, match=r"pip install infinitask\[table\]"):
        tabular(InfiniteQuantileRegressor())


@pytest.mark.parametrize("wrong", [{"max_categories": 0}, {"text_components": 1.5}])
def test_wrong_numbers_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        tabular(InfiniteQuantileRegressor(), **wrong)
