"""Tables as they are: every kind of column becomes numbers, and nothing at predict time breaks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
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


@pytest.mark.slow
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
    sets = tabular(InfiniteOneClassSVM(n_nodes=6)).fit(X.drop(columns="note"))
    assert np.mean(sets.predict(X, nu=0.3) == -1) == pytest.approx(0.3, abs=0.15)


# -------------------------------------------------------------------------------------- texts and level sets
def test_level_sets_leave_texts_out_and_warn_once() -> None:
    with pytest.warns(
        UserWarning, match=r"leave out columns of text or many categories: note\. .* max_categories"
    ) as said:
        sets = tabular(InfiniteOneClassSVM(n_nodes=6)).fit(X)
    assert len(said) == 1
    assert not any(name.startswith("note") for name in sets.relevance_.names)
    other = X.assign(note=[f"nothing like it, {k}" for k in range(len(X))])
    np.testing.assert_array_equal(sets.score_samples(other), sets.score_samples(X))
    new, _ = mixed_table(400, seed=5)
    assert np.mean(sets.predict(new, nu=0.2) == -1) == pytest.approx(0.2, abs=0.1)


def test_level_sets_of_texts_alone_are_refused() -> None:
    with pytest.raises(ValueError, match=r"All columns hold text or many categories \(note\)"):
        tabular(InfiniteOneClassSVM(n_nodes=6)).fit(X[["note"]])


def test_level_sets_with_texts_come_back_from_a_file(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed: pip install infinitask[save]")
    from infinitask import load, save

    with pytest.warns(UserWarning, match="leave out columns of text"):
        sets = tabular(InfiniteOneClassSVM(n_nodes=6)).fit(X)
    save(sets, tmp_path / "sets.infinitask")
    again = load(tmp_path / "sets.infinitask")
    np.testing.assert_array_equal(again.score_samples(X[X.columns[::-1]]), sets.score_samples(X))


@pytest.mark.slow
def test_fit_predict_takes_fractions() -> None:
    table = X.drop(columns="note")
    sets = tabular(InfiniteOneClassSVM(n_nodes=6)).fit(table)
    fresh = clone(sets)
    np.testing.assert_array_equal(fresh.fit_predict(table, nu=[0.1, 0.3]), sets.predict(table, nu=[0.1, 0.3]))
    np.testing.assert_array_equal(fresh.fit_predict(table, nu=0.2), sets.predict(table, nu=0.2))
    np.testing.assert_array_equal(fresh.fit_predict(table), sets.predict(table))


def test_a_missing_number_is_ordinary_without_indicators() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    holes = rng.choice(200, 6, replace=False)
    table.loc[holes, "a"] = np.nan
    marked = tabular(InfiniteOneClassSVM(n_nodes=20)).fit(table)
    plain = tabular(InfiniteOneClassSVM(n_nodes=20), indicators=False).fit(table)
    assert plain.relevance_.names == ("a", "b", "c")
    assert np.max(marked.score_samples(table)[holes]) < np.max(plain.score_samples(table)[holes])
    assert np.mean(marked.score_samples(table)[holes]) < 0.3 < np.mean(plain.score_samples(table)[holes])
    filled = table.fillna({"a": table["a"].median()}).astype("float32")  # as an imputer of one's own would
    np.testing.assert_allclose(plain.score_samples(table), plain.score_samples(filled), atol=1e-6)


# --------------------------------------------------------------------------------------- columns by their names
def test_columns_may_stand_in_any_order_and_others_beside_them(model: TaskPipeline) -> None:
    turned = X[X.columns[::-1]].assign(more=1.0)
    np.testing.assert_array_equal(model.predict(turned, quantiles=[0.1, 0.9]), model.predict(X, quantiles=[0.1, 0.9]))
    np.testing.assert_array_equal(model.predict_interval(turned), model.predict_interval(X))
    assert model.score(turned, y) == model.score(X, y)


def test_names_that_are_numbers_are_names() -> None:
    table = pd.DataFrame({0: X["area"], 1: X["city"]})
    model = tabular(InfiniteQuantileRegressor(n_nodes=6)).fit(table, y)
    np.testing.assert_array_equal(model.predict(table[[1, 0]]), model.predict(table))


def test_a_column_that_is_missing_is_named(model: TaskPipeline) -> None:
    with pytest.raises(ValueError, match=r"no column 'area', which the model was fitted to; .* has 'Area': rename"):
        model.predict(X.rename(columns={"area": "Area"}))
    with pytest.raises(
        ValueError, match=r"no columns 'area', 'city', which .*; add them, with missing values.*known\.$"
    ):
        model.predict(X.drop(columns=["area", "city"]))


def test_a_table_without_rows_is_refused_with_a_sentence(model: TaskPipeline) -> None:
    with pytest.raises(ValueError, match="The table has no rows"):
        model.predict(X[:0])
    with pytest.raises(ValueError, match="The table has no rows"):
        clone(model).fit(X[:0], y[:0])


def test_anything_but_a_table_is_refused(model: TaskPipeline) -> None:
    for wrong in (lambda: model.predict(X.iloc[0]), lambda: clone(model).fit(X["area"], y)):
        with pytest.raises(ValueError, match=r"A Series of shape .* For one row give table\.iloc\[\[0\]\]"):
            wrong()


@pytest.mark.parametrize("size", [np.inf, -1e60], ids=["inf", "large"])
def test_a_column_with_numbers_that_are_too_large_is_named(model: TaskPipeline, size: float) -> None:
    large = X.assign(area=X["area"].mask(X.index == X.index[2], size))
    for ask in (lambda: model.predict(large), lambda: clone(model).fit(large, y)):
        with pytest.raises(
            ValueError, match=rf"The column 'area' holds {re.escape(f'{size:g}')} .* in 1 of {len(X)} rows"
        ):
            ask()


def test_text_as_target_is_not_blamed_on_the_table(model: TaskPipeline) -> None:
    with pytest.raises(ValueError, match=r"^y holds text, such as '.*'; this model needs targets that are numbers"):
        clone(model).fit(X, np.where(np.arange(len(y)) % 2, "yes", "no"))
    InfiniteQuantileRegressor(n_nodes=4, tol=0.1).fit([[0.0], [1.0], [2.0]], ["1", "2.5", "3"])  # numbers as text


@pytest.mark.quick("given0")
@pytest.mark.parametrize("given", [InfiniteQuantileRegressor(n_nodes=6), InfiniteOneClassSVM(n_nodes=6)])
def test_plain_estimators_name_what_takes_tables(given: Any) -> None:
    for table, said in (
        (X[["area", "rooms"]], "contains NaN"),
        (X[["city"]].fillna("Oslo"), "could not convert string"),
    ):
        with pytest.raises(ValueError, match=rf"{said}.*infinitask\.tabular\(model\) takes missing values"):
            given.fit(table, y)
    numbers = X[["area"]].fillna(100.0).to_numpy()
    with pytest.raises(ValueError, match=r"contains NaN.*infinitask\.tabular"):
        given.fit(numbers, y).predict(np.full((1, 1), np.nan))
    with pytest.raises(ValueError, match=r"infinity or a value too large for dtype\('float64'\)\.$"):
        given.predict(np.full((1, 1), np.inf))


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.parametrize("wrong", [{"max_categories": 0}, {"text_components": 1.5}, {"indicators": 1}])
def test_wrong_numbers_are_named(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        tabular(InfiniteQuantileRegressor(), **wrong)
