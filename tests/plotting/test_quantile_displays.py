"""What displays of quantiles draw is what the model says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from infinitask import CrossConformal, IndependentQuantileRegressor, InfiniteQuantileRegressor
from infinitask.metrics import crossing_loss
from infinitask.plotting import (
    ConditionalQuantileDisplay,
    CrossingDisplay,
    PITDisplay,
    QuantileFanDisplay,
    ReliabilityDisplay,
)
from infinitask.plotting._reliability import LEVELS


# ------------------------------------------------------------------------------------------------------- the fan
def test_the_fan_of_one_feature_is_what_predict_says(sine: Any) -> None:
    display = QuantileFanDisplay.from_estimator(sine.model, sine.X, sine.y, quantiles=[0.9, 0.1, 0.5], grid=50)
    assert display.x[0] == sine.X.min()
    assert display.x[-1] == sine.X.max()
    np.testing.assert_array_equal(display.quantiles, [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(display.curves, sine.model.predict(display.x[:, None], [0.1, 0.5, 0.9]))
    assert display.points is not None
    np.testing.assert_array_equal(display.points[1], sine.y)
    (median,) = (line for line in display.ax_.lines if line.get_label() == "median")
    np.testing.assert_array_equal(median.get_ydata(), display.curves[:, 1])
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["data", "middle 80%", "median"]


def test_a_slice_holds_other_features_at_their_medians_or_where_asked(houses: Any) -> None:
    display = QuantileFanDisplay.from_estimator(houses.model, houses.X, houses.y, feature="age", grid=20)
    rows = houses.X.iloc[:20].assign(area=houses.X["area"].median(), age=display.x)
    np.testing.assert_allclose(display.curves, houses.model.predict(rows, display.quantiles), rtol=1e-12)
    assert display.ax_.get_xlabel() == "age"
    assert display.ax_.get_ylabel() == "price"
    assert "other inputs held" in display.ax_.get_title(loc="left").replace("\n", " ")
    held = QuantileFanDisplay.from_estimator(houses.model, houses.X, feature=1, at={"area": 150.0}, grid=20)
    np.testing.assert_allclose(held.curves, houses.model.predict(rows.assign(area=150.0), display.quantiles))


def test_along_time_rows_are_drawn_in_order(houses: Any) -> None:
    import pandas as pd

    times = pd.Series(pd.date_range("2024-01-01", periods=len(houses.X))[::-1], name="day")
    display = QuantileFanDisplay.from_estimator(houses.model, houses.X, houses.y, along=times)
    assert np.all(np.diff(display.x) > np.timedelta64(0))
    np.testing.assert_array_equal(display.curves, houses.model.predict(houses.X, display.quantiles)[::-1])
    assert display.points is not None
    np.testing.assert_array_equal(display.points[1], houses.y[::-1])
    assert display.ax_.get_xlabel() == "day"


@pytest.mark.parametrize("kind", ["bands", "lines"])
def test_a_fan_of_known_predictions_sorts_places_and_levels(sine: Any, kind: str) -> None:
    curves = sine.model.predict(sine.X, [0.75, 0.25])
    places = np.arange(len(sine.X))[::-1]
    display = QuantileFanDisplay.from_predictions(curves, [0.75, 0.25], x=places, y=sine.y, kind=kind)
    np.testing.assert_array_equal(display.curves, curves[::-1, ::-1])
    np.testing.assert_array_equal(display.quantiles, [0.25, 0.75])


def test_many_levels_are_lines_with_a_colour_bar(sine: Any) -> None:
    levels = np.linspace(0.01, 0.99, 99)
    display = QuantileFanDisplay.from_estimator(sine.model, sine.X, quantiles=levels)
    assert len(display.ax_.collections[0].get_segments()) == 99
    assert len(display.figure_.axes) == 2
    assert display.figure_.axes[1].get_ylabel() == "quantile level"
    np.testing.assert_allclose(display.figure_.axes[1].get_yticks(), [0.01, 0.25, 0.5, 0.75, 0.99])


def test_a_model_of_few_levels_is_asked_at_these(sine: Any) -> None:
    model = IndependentQuantileRegressor(quantiles=[0.2, 0.8]).fit(sine.X, sine.y)
    display = QuantileFanDisplay.from_estimator(model, sine.X)
    np.testing.assert_allclose(display.quantiles, [0.2, 0.8])


def test_a_pipeline_is_drawn_in_its_own_units(houses: Any) -> None:
    model = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=8)).fit(houses.X, houses.y)
    display = QuantileFanDisplay.from_estimator(model, houses.X, feature="age", quantiles=[0.1, 0.9], grid=10)
    rows = houses.X.iloc[:10].assign(area=houses.X["area"].median(), age=display.x)
    np.testing.assert_allclose(display.curves, model.predict(rows, quantiles=[0.1, 0.9]))
    assert display.x_name == "age"


def test_a_slice_holds_categories_at_the_most_frequent_and_leaves_missing_values_to_the_pipeline() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame({"size": rng.uniform(1.0, 9.0, 60), "kind": ["a", "b", "b"] * 20})
    X.loc[3, "size"] = np.nan
    y = rng.normal(size=60)
    prepare = make_column_transformer((OneHotEncoder(), ["kind"]), remainder=SimpleImputer())
    model = make_pipeline(prepare, InfiniteQuantileRegressor(n_nodes=6)).fit(X, y)
    display = QuantileFanDisplay.from_estimator(model, X, feature="size", grid=10)
    rows = pandas.DataFrame({"size": display.x, "kind": "b"})
    np.testing.assert_allclose(display.curves, model.predict(rows, quantiles=display.quantiles))


def test_a_search_is_drawn_as_what_it_found(houses: Any) -> None:
    search = GridSearchCV(InfiniteQuantileRegressor(n_nodes=6), {"alpha": [1e-3, 1e-1]}, cv=2).fit(houses.X, houses.y)
    display = QuantileFanDisplay.from_estimator(search, houses.X, feature="age", grid=10)
    assert display.x_name == "age"
    rows = houses.X.iloc[:10].assign(area=houses.X["area"].median(), age=display.x)
    np.testing.assert_allclose(display.curves, search.best_estimator_.predict(rows, display.quantiles))


def test_any_model_that_predicts_quantiles_can_be_drawn(sine: Any) -> None:
    model = CrossConformal(InfiniteQuantileRegressor(n_nodes=6, alpha=1e-2), cv=2).fit(sine.X, sine.y)
    display = QuantileFanDisplay.from_estimator(model, sine.X, sine.y, grid=10)
    np.testing.assert_array_equal(display.curves, model.predict(display.x[:, None], display.quantiles))
    shares = ReliabilityDisplay.from_estimator(model, sine.X, sine.y).observed
    np.testing.assert_array_equal(shares, np.mean(sine.y[:, None] <= model.predict(sine.X, LEVELS), axis=0))


# --------------------------------------------------------------------------------- distributions at chosen rows
def test_the_curves_at_chosen_rows_are_those_of_the_distribution(sine: Any) -> None:
    display = ConditionalQuantileDisplay.from_estimator(sine.model, [[0.2], [1.0]], grid=80)
    law = sine.model.predict_distribution(np.array([[0.2], [1.0]]))
    np.testing.assert_array_equal(display.values, law.ppf(display.levels))
    np.testing.assert_array_equal(display.density, law.pdf(display.y[None, :]))
    mass = np.trapezoid(display.density, display.y, axis=1)
    assert np.all(np.abs(mass - 1.0) < 0.05)
    assert display.names == ["x = 0.2", "x = 1"]
    assert len(display.ax_) == 2


def test_curves_differ_by_style_as_well_as_by_colour(sine: Any) -> None:
    display = ConditionalQuantileDisplay.from_estimator(sine.model, [[0.2], [0.6], [1.0]])
    lines = display.ax_[0].lines
    assert len({line.get_linestyle() for line in lines}) == 3
    assert len({tuple(line.get_color()) for line in lines}) == 3


def test_rows_of_a_table_go_by_their_index(houses: Any) -> None:
    display = ConditionalQuantileDisplay.from_estimator(houses.model, houses.X[:2], kind="density")
    assert display.names == ["row 80", "row 81"]
    assert display.ax_.get_ylabel() == "density"


# ---------------------------------------------------------------------------------------------------- calibration
def test_observed_fractions_are_those_of_rows_at_or_below(sine: Any) -> None:
    display = ReliabilityDisplay.from_estimator(sine.model, sine.X, sine.y, quantiles=[0.7, 0.2])
    below = sine.y[:, None] <= sine.model.predict(sine.X, [0.2, 0.7])
    np.testing.assert_array_equal(display.nominal, [0.2, 0.7])
    np.testing.assert_array_equal(display.observed, below.mean(axis=0))
    assert display.n == len(sine.y)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_bands_of_reliability_have_their_coverage(confidence: float) -> None:
    rng, n, levels = np.random.default_rng(0), 60, np.array([0.1, 0.5, 0.95])
    uniform = rng.uniform(size=(4000, n))
    display = ReliabilityDisplay.from_predictions(uniform[0], np.tile(levels, (n, 1)), levels, confidence=confidence)
    shares = np.mean(uniform[:, :, None] <= levels, axis=1)
    covered = np.mean((display.low <= shares) & (shares <= display.high), axis=0)
    assert np.all(covered > confidence - 0.025)
    # not wider than needed: a step less at both ends would cover less
    counts = stats.binom(n, levels)
    narrower = counts.cdf(np.round(n * display.high) - 1) - counts.cdf(np.round(n * display.low))
    assert np.all(narrower < confidence)


def test_the_histogram_of_predicted_probabilities(sine: Any) -> None:
    display = PITDisplay.from_estimator(sine.model, sine.X, sine.y, bins=8)
    counts, _ = np.histogram(sine.model.predict_cdf(sine.X, sine.y), bins=8, range=(0.0, 1.0))
    np.testing.assert_array_equal(display.share, counts / len(sine.y))
    assert display.share.sum() == pytest.approx(1.0)
    np.testing.assert_allclose([bar.get_height() for bar in display.ax_.patches[:8]], display.share)


def test_bands_of_the_histogram_have_their_coverage() -> None:
    rng = np.random.default_rng(1)
    display = PITDisplay.from_predictions(rng.uniform(size=200), bins=5, confidence=0.8)
    shares = rng.multinomial(200, [0.2] * 5, size=4000) / 200
    assert np.mean((display.low <= shares) & (shares <= display.high)) > 0.8
    assert np.mean((display.low < shares) & (shares < display.high)) < 0.8


# ------------------------------------------------------------------------------------------------------- crossing
def test_the_map_shows_where_neighbouring_curves_are_out_of_order(crossed: Any) -> None:
    display = CrossingDisplay.from_estimator(crossed.model, crossed.X, grid=60)
    curves = crossed.model.predict(display.x[:, None], display.quantiles)
    np.testing.assert_array_equal(display.depth, np.maximum(curves[:, :-1] - curves[:, 1:], 0.0))
    assert 0.0 < display.share < 1.0
    loss = crossing_loss(curves, display.quantiles)
    assert loss == pytest.approx(display.depth.sum(axis=1).mean())
    assert "cross at" in display.ax_.get_title(loc="left")


def test_sorted_curves_do_not_cross(crossed: Any) -> None:
    model = InfiniteQuantileRegressor(n_nodes=12, noncrossing="rearrange", gamma=100.0, alpha=1e-5)
    display = CrossingDisplay.from_estimator(model.fit(crossed.X, crossed.y), crossed.X, grid=60)
    assert display.share == 0.0
    assert display.ax_.get_title(loc="left") == "No quantile curves cross"


def test_a_map_of_known_predictions() -> None:
    display = CrossingDisplay.from_predictions([1.0, 0.0], [[2.0, 1.0], [0.0, 3.0]], [0.1, 0.9])
    np.testing.assert_array_equal(display.depth, [[0.0], [1.0]])
    assert display.share == 0.5
