"""Frames in: tables of pandas, polars and Arrow mean the same, whichever of them the fit was given."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.preprocessing import StandardScaler

from infinitask import (
    CrossConformal,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    load,
    make_pipeline,
    save,
    tabular,
)

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 60
rng = np.random.default_rng(0)
QUICK: dict[str, Any] = {"n_nodes": 6, "alpha": 1e-3, "tol": 0.05, "random_state": 0}
MODEL = InfiniteQuantileRegressor(**QUICK)

# ------------------------------------------------------------------------------------------------ numbers alone
NUMBERS = pd.DataFrame({"age": rng.normal(size=N), "mass": rng.integers(0, 9, N).astype(float)})
Y = NUMBERS["age"] + 0.1 * rng.normal(size=N)
LABELS = np.where(Y > 0.0, "up", "down")

OF_NUMBERS: dict[str, Any] = {
    "pandas": NUMBERS,
    "nullable": NUMBERS.astype({"age": "Float64", "mass": "Int64"}),
    "pandas with Arrow": NUMBERS.astype("double[pyarrow]"),
    "polars": pl.from_pandas(NUMBERS),
    "Arrow": pa.Table.from_pandas(NUMBERS),
    "batch of Arrow": pa.RecordBatch.from_pandas(NUMBERS),
}


@pytest.mark.quick(every=5)
@pytest.mark.parametrize("frame", OF_NUMBERS.values(), ids=OF_NUMBERS)
@pytest.mark.parametrize("before", [(), (StandardScaler(),)], ids=["alone", "in a pipeline"])
def test_numbers_of_any_frame_are_the_same(frame: Any, before: Any) -> None:
    model = make_pipeline(*before, clone(MODEL)) if before else clone(MODEL)
    expected = clone(model).fit(NUMBERS, Y)
    found = model.fit(frame, Y)
    assert list(found.feature_names_in_) == ["age", "mass"]
    assert found.relevance_.names == ("age", "mass")
    np.testing.assert_array_equal(found.predict(frame, [0.1, 0.9]), expected.predict(NUMBERS, [0.1, 0.9]))
    np.testing.assert_array_equal(found.predict(NUMBERS), expected.predict(frame))
    assert found.score(frame, Y) == expected.score(NUMBERS, Y)
    page = found.explore(frame, Y).payload
    assert [column["name"] for column in page["columns"]] == ["age", "mass"]


TARGETS: dict[str, Any] = {
    "pandas": lambda y: pd.Series(y, name="price"),
    "nullable": lambda y: pd.Series(y, name="price", dtype="Float64"),
    "polars": lambda y: pl.Series("price", y),
    "Arrow": lambda y: pa.array(y),
    "chunks of Arrow": lambda y: pa.chunked_array([pa.array(y)]),
}


@pytest.mark.parametrize("kind", TARGETS.values(), ids=TARGETS)
def test_targets_of_any_kind_are_the_same(kind: Any) -> None:
    y, plain = kind(Y.to_numpy()), clone(MODEL).fit(NUMBERS, Y)
    model = clone(MODEL).fit(NUMBERS, y)
    np.testing.assert_array_equal(model.predict(NUMBERS), plain.predict(NUMBERS))
    assert model.score(NUMBERS, y) == plain.score(NUMBERS, Y)
    np.testing.assert_array_equal(
        model.conformalize(NUMBERS, y).predict_interval(NUMBERS),
        plain.conformalize(NUMBERS, Y).predict_interval(NUMBERS),
    )
    named = hasattr(y, "name")
    assert model.explore(NUMBERS, y).payload["target"] == ("price" if named else "y")
    assert getattr(make_pipeline(clone(MODEL)).fit(NUMBERS, y), "target_name_", None) == ("price" if named else None)


LABELLED: dict[str, Any] = {
    "categories of pandas": pd.Series(LABELS).astype("category"),
    "text of Arrow in pandas": pd.Series(LABELS, dtype="string[pyarrow]"),
    "polars": pl.Series("state", LABELS),
    "categories of polars": pl.Series("state", LABELS).cast(pl.Categorical),
    "dictionary of Arrow": pa.array(LABELS).dictionary_encode(),
}


@pytest.mark.parametrize("labels", LABELLED.values(), ids=LABELLED)
def test_labels_of_any_kind_are_the_same(labels: Any) -> None:
    model = InfiniteCostSensitiveClassifier(**QUICK)
    plain = clone(model).fit(NUMBERS, LABELS)
    model.fit(NUMBERS, labels)
    assert model.classes_.tolist() == ["down", "up"]
    assert model.predict(NUMBERS).tolist() == plain.predict(NUMBERS).tolist()
    assert model.score(NUMBERS, labels) == plain.score(NUMBERS, LABELS)
    assert model.roc_curve(NUMBERS, labels).area == plain.roc_curve(NUMBERS, LABELS).area


def test_rows_that_are_not_read_yet_are_refused() -> None:
    lazy = pl.from_pandas(NUMBERS).lazy()
    fitted = clone(MODEL).fit(NUMBERS, Y)
    for refused in (
        lambda: clone(MODEL).fit(lazy, Y),
        lambda: fitted.predict(lazy),
        lambda: make_pipeline(StandardScaler(), clone(MODEL)).fit(lazy, Y),
        lambda: InfiniteOneClassSVM(**QUICK).fit(lazy),
    ):
        with pytest.raises(TypeError, match=r"give the frame: X\.collect\(\)"):
            refused()


# ------------------------------------------------------------------------------------------------ mixed columns
def holes(values: Any) -> list[Any]:
    return [None if i % 7 == 0 else value for i, value in enumerate(values)]


TOWN = rng.choice(["Aix", "Dax", "Pau"], N).tolist()
DAY = [dt.date(2024, 1, 1) + dt.timedelta(int(k)) for k in rng.integers(0, 300, N)]
TIME = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(k)) for k in rng.integers(0, 3000, N)]
CELLS: dict[str, list[Any]] = {
    "size": holes(rng.uniform(1.0, 9.0, N).tolist()),
    "rooms": holes(rng.integers(1, 6, N).tolist()),
    "town": holes(TOWN),
    "garden": holes((rng.uniform(size=N) < 0.4).tolist()),
    "day": holes(DAY),
    "time": holes(TIME),
    "empty": [None] * N,
}
PANDAS = pd.DataFrame(
    {
        "size": pd.array(CELLS["size"], dtype="Float64"),
        "rooms": pd.array(CELLS["rooms"], dtype="Int64"),
        "town": pd.array(CELLS["town"], dtype="string[pyarrow]"),
        "garden": pd.array(CELLS["garden"], dtype="boolean"),
        "day": pd.to_datetime(pd.Series(CELLS["day"])),
        "time": pd.to_datetime(pd.Series(CELLS["time"])),
        "empty": pd.Series(CELLS["empty"], dtype=object),
    }
)
MIXED: dict[str, Any] = {
    "pandas": PANDAS,
    "categories of pandas": PANDAS.astype({"town": "category", "garden": object}),
    "polars": pl.DataFrame(CELLS | {"town": pl.Series(CELLS["town"], dtype=pl.Categorical)}),
    "Enum of polars": pl.DataFrame(CELLS | {"town": pl.Series(CELLS["town"], dtype=pl.Enum(["Aix", "Dax", "Pau"]))}),
    "Arrow": pa.table(CELLS | {"town": pa.array(CELLS["town"]).dictionary_encode()}),
}


SOME = [name if name == "polars" else pytest.param(name, marks=pytest.mark.slow) for name in MIXED]


@pytest.fixture(scope="module", params=SOME)
def fitted(request: pytest.FixtureRequest) -> Any:
    return tabular(clone(MODEL)).fit(MIXED[request.param], Y)


def test_any_frame_may_be_fitted_and_any_be_asked(fitted: Any) -> None:
    expected = fitted.predict(PANDAS, quantiles=[0.1, 0.9])
    for name, frame in MIXED.items():
        np.testing.assert_allclose(fitted.predict(frame, quantiles=[0.1, 0.9]), expected, err_msg=name)
    assert {"size", "rooms", "garden", "town_Aix", "day_month", "time_hour"} <= set(fitted.relevance_.names)
    assert list(fitted.feature_names_in_) == list(CELLS)


def test_a_page_and_a_file_of_any_frame(fitted: Any, tmp_path: Any, request: pytest.FixtureRequest) -> None:
    frame = MIXED[request.node.callspec.params["fitted"]]
    page = fitted.explore(frame, Y).payload
    assert [column["name"] for column in page["columns"]] == [name for name in CELLS if name != "empty"]
    pytest.importorskip("safetensors")
    save(fitted, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(frame), fitted.predict(frame))


def test_columns_of_another_type_at_predict_time(fitted: Any) -> None:
    full = PANDAS.ffill().bfill().assign(empty=None)
    expected = fitted.predict(full)
    for changed in (
        {"rooms": [str(k) for k in full["rooms"]]},
        {"size": [f"{float(k)!r}" for k in full["size"]]},
        {"rooms": full["rooms"].astype(float)},
        {"town": full["town"].astype(object)},
        {"garden": full["garden"].astype(int)},
        {"time": full["time"].astype(str)},
        {"empty": 7.0},
    ):
        np.testing.assert_allclose(fitted.predict(full.assign(**changed)), expected, err_msg=str(list(changed)))


def test_text_among_numbers_counts_as_missing_with_a_warning() -> None:
    model = tabular(clone(MODEL)).fit(PANDAS, Y)
    gone = model.predict(PANDAS.assign(rooms=None))
    with pytest.warns(
        UserWarning, match=r"column 'rooms' held numbers .*; 60 of 60 cells .* such as 'many', and count"
    ) as caught:
        found = model.predict(PANDAS.assign(rooms="many"))
    assert caught[0].filename == __file__  # the line of the user
    np.testing.assert_array_equal(found, gone)
    np.testing.assert_array_equal(model.predict(PANDAS.assign(rooms="N/A")), gone)  # no warning: that is missing


@pytest.mark.parametrize("column", ["size", "rooms", "town", "garden", "day", "time"])
def test_a_column_may_be_all_missing_at_predict_time(fitted: Any, column: str) -> None:
    gone = PANDAS.assign(**{column: pd.array([pd.NA] * N, dtype=PANDAS[column].dtype)})
    found = fitted.predict(gone)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(fitted.predict(PANDAS.assign(**{column: None})), found)
    as_polars = MIXED["polars"].with_columns(pl.lit(None).alias(column))
    np.testing.assert_allclose(fitted.predict(as_polars), found)
    had = PANDAS[column].isna().to_numpy()  # rows that lacked it before have the answer they had
    np.testing.assert_allclose(found[had], fitted.predict(PANDAS)[had])


def test_decimals_and_durations_are_numbers() -> None:
    rooms, hours = rng.integers(1, 6, N), rng.integers(0, 90, N)
    cells = {"rooms": [Decimal(int(k)) for k in rooms], "wait": [dt.timedelta(hours=int(k)) for k in hours]}
    plain = tabular(clone(MODEL)).fit(pd.DataFrame({"rooms": rooms, "wait": pd.to_timedelta(hours, "h")}), Y)
    for frame in (pl.DataFrame(cells), pa.table(cells)):
        found = tabular(clone(MODEL)).fit(frame, Y)
        assert found.relevance_.names == plain.relevance_.names == ("rooms", "wait")
        np.testing.assert_allclose(found.predict(frame), plain.predict(frame), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["polars", "Arrow"])
def test_folds_of_any_frame(kind: str) -> None:
    frame, model = MIXED[kind], tabular(clone(MODEL))
    np.testing.assert_allclose(cross_val_predict(model, frame, Y, cv=3), cross_val_predict(model, PANDAS, Y, cv=3))
    search = GridSearchCV(model, {"model__alpha": [1e-3, 1.0]}, cv=3).fit(frame, Y)
    assert search.best_estimator_.predict_interval(frame, coverage=0.8).shape == (N, 2)
    found, expected = (CrossConformal(model, cv=3, random_state=0).fit(each, Y) for each in (frame, PANDAS))
    np.testing.assert_allclose(found.predict_interval(frame), expected.predict_interval(PANDAS))
