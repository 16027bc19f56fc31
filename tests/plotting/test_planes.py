"""Planes through models of several features: two change, the others are held, and the model is asked there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM
from infinitask.plotting import DecisionBoundaryDisplay, LevelSetDisplay
from infinitask.plotting._look import contrast
from tests.plotting.conftest import Fitted

QUICK: dict[str, Any] = {"n_nodes": 8, "alpha": 1e-2}
LEVELS = [0.2, 0.6]


@pytest.fixture(scope="module")
def cube() -> Fitted:
    X = np.random.default_rng(0).normal(size=(80, 3)) * np.array([1.0, 20.0, 0.1])
    return Fitted(InfiniteOneClassSVM(**QUICK).fit(X), X)


@pytest.fixture(scope="module")
def birds() -> Fitted:
    """Numbers with holes, categories, truth values and dates."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(
        {
            "island": pandas.Categorical(rng.choice(["Biscoe", "Dream", "Torgersen"], 120, p=[0.5, 0.3, 0.2])),
            "bill": rng.normal(40.0, 5.0, 120),
            "adult": rng.uniform(size=120) < 0.7,
            "seen": pandas.Timestamp("2024-03-01") + pandas.to_timedelta(rng.integers(0, 30, 120), "D"),
            "mass": rng.normal(4000.0, 600.0, 120),
        }
    )
    y = np.where(X["mass"] + 60.0 * X["bill"] + 300.0 * (X["island"] == "Biscoe") > 6_500.0, "big", "small")
    X.loc[::17, "bill"] = np.nan
    encoder = make_column_transformer(
        (SimpleImputer(), ["bill", "mass"]), (OneHotEncoder(handle_unknown="ignore"), ["island", "adult", "seen"])
    )
    return Fitted(make_pipeline(encoder, InfiniteCostSensitiveClassifier(**QUICK)).fit(X, y), X, y)


def test_the_others_are_held_at_their_medians(cube: Fitted) -> None:
    display = LevelSetDisplay.from_estimator(cube.model, cube.X, features=(2, 0), nu=LEVELS, grid=20)
    points = np.column_stack([display.b.ravel(), np.full(400, np.median(cube.X[:, 1])), display.a.ravel()])
    np.testing.assert_array_equal(display.values.reshape(400, 2), cube.model.decision_function(points, LEVELS))
    np.testing.assert_array_equal(display.X, cube.X[:, [2, 0]])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x2", "x0")
    assert display.held == {"x1": np.median(cube.X[:, 1])}
    assert "the other input held" in display.ax_.get_title(loc="left")


def test_the_others_are_held_where_at_says(cube: Fitted) -> None:
    display = LevelSetDisplay.from_estimator(cube.model, cube.X, features=("x0", 1), at={2: 0.25}, nu=LEVELS, grid=20)
    points = np.column_stack([display.a.ravel(), display.b.ravel(), np.full(400, 0.25)])
    np.testing.assert_array_equal(display.values.reshape(400, 2), cube.model.decision_function(points, LEVELS))


@pytest.mark.parametrize("reverse", [False, True], ids=["order of the fit", "another order"])
def test_a_pipeline_of_mixed_columns(birds: Fitted, reverse: bool) -> None:
    X = birds.X[birds.X.columns[::-1]] if reverse else birds.X
    at = {"adult": False}
    display = DecisionBoundaryDisplay.from_estimator(
        birds.model, X, birds.y, features=("bill", "mass"), at=at, theta=LEVELS, grid=20
    )
    most = birds.X["seen"].mode()[0]
    assert display.held["island"] == "Biscoe"
    assert np.datetime64(display.held["seen"]) == most.to_datetime64()
    points = birds.X.iloc[np.zeros(400, dtype=int)].assign(
        bill=display.a.ravel(), mass=display.b.ravel(), adult=False, seen=most
    )
    points["island"] = birds.X["island"].iloc[np.full(400, np.flatnonzero(birds.X["island"] == "Biscoe")[0])].array
    expected = birds.model[-1].decision_function(birds.model[:-1].transform(points), LEVELS)
    np.testing.assert_array_equal(display.values.reshape(400, 2), expected)
    other = DecisionBoundaryDisplay.from_estimator(
        birds.model, X, features=("bill", "mass"), at={**at, "island": "Dream"}, theta=LEVELS, grid=20
    )
    assert np.any(other.values != display.values)


def test_the_plane_of_two_features_is_the_default(cube: Fitted) -> None:
    model = InfiniteOneClassSVM(**QUICK).fit(cube.X[:, :2])
    one, two = (
        LevelSetDisplay.from_estimator(model, cube.X[:, :2], features=features, grid=15) for features in (None, (0, 1))
    )
    np.testing.assert_array_equal(one.values, two.values)
    assert one.held == {}
    swapped = LevelSetDisplay.from_estimator(model, cube.X[:, :2], features=(1, 0), grid=15)
    np.testing.assert_array_equal(swapped.values, one.values.transpose(1, 0, 2))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, r"5 features; .* features=\('bill', 'mass'\)"),
    ({"features": ("bill", "island")}, r"'island', which is no column of numbers; .* at={'island': "),
    ({"features": ("bill", "adult")}, "'adult', which is no column of numbers"),
    ({"features": ("bill", "seen")}, "'seen', which is no column of numbers"),
    ({"features": ("bill", "wing")}, "features names 'wing', .* island, bill"),
    ({"features": ("bill", 5)}, "position below 5"),
    ({"features": "bill"}, "must be a pair, such as"),
    ({"features": 1}, "must be a pair"),
    ({"features": ("bill", "mass", "island")}, "must be a pair"),
    ({"features": ("bill", 1)}, "two must be different"),
    ({"features": ("bill", "mass"), "at": {"mass": 1.0}}, "'mass', which is an axis"),
    ({"features": ("bill", "mass"), "at": {"wing": 1.0}}, "at names 'wing'"),
    ({"features": ("bill", "mass"), "at": {"island": "Java"}}, "'Java' for 'island'; its categories are 'Biscoe'"),
]


@pytest.mark.parametrize(("options", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_plane_is_a_sentence(birds: Fitted, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        DecisionBoundaryDisplay.from_estimator(birds.model, birds.X, birds.y, grid=5, **options)
    assert str(error.value).endswith(".")


def test_words_for_a_number_are_a_sentence(cube: Fitted) -> None:
    with pytest.raises(ValueError, match="'much' for 'x2', a column of numbers"):
        LevelSetDisplay.from_estimator(cube.model, cube.X, features=(0, 1), at={"x2": "much"})


# ------------------------------------------------------------------------------------------------------ the picture
@pytest.mark.quick(every=5)
@pytest.mark.parametrize("units", [(1.0, 1.0), (1.5, 1.0), (1.0, 1.5), (2.5, 1.0), (1.0, 2.5), (1.0, 1e3)])
def test_axes_are_never_slivers_and_nothing_is_covered(moons: Fitted, units: tuple[float, float]) -> None:
    spread = np.ptp(moons.X, axis=0)
    X = moons.X / spread * units
    model = InfiniteCostSensitiveClassifier(**QUICK).fit(X, moons.y)
    display = DecisionBoundaryDisplay.from_estimator(model, X, moons.y, grid=20)
    figure = display.figure_
    figure.draw_without_rendering()
    box = display.ax_.get_window_extent()
    assert 1.0 / 1.7 < box.width / box.height < 1.9
    equal = 1.0 / 1.6 <= units[0] / units[1] <= 1.6
    assert (display.ax_.get_aspect() != "auto") == equal
    (legend,) = figure.legends
    covered = legend.get_window_extent()
    for text in (display.ax_.xaxis.label, *display.ax_.get_xticklabels()):
        assert not covered.overlaps(text.get_window_extent())
    assert not covered.overlaps(box)
    bar = figure.axes[1]
    assert bar.yaxis.label.get_window_extent().height <= bar.get_window_extent().height


@pytest.mark.parametrize("size", [(4.0, 2.2), (9.0, 3.0)])
def test_the_label_of_a_bar_is_not_longer_than_the_bar(moons: Fitted, size: tuple[float, float]) -> None:
    figure = Figure(figsize=size, layout="constrained")
    DecisionBoundaryDisplay.from_estimator(moons.model, moons.X, moons.y, grid=10, ax=figure.subplots(1, 2)[0])
    figure.draw_without_rendering()
    bar = figure.axes[2]
    assert bar.yaxis.label.get_window_extent().height <= bar.get_window_extent().height


@pytest.mark.quick("dark")
@pytest.mark.parametrize("look", ["light", "dark"])
def test_the_outermost_set_has_an_edge_that_is_seen(clouds: Fitted, look: str) -> None:
    display = LevelSetDisplay.from_estimator(clouds.model, clouds.X, nu=[0.1, 0.5], grid=30, look=look)
    edges = [c for c in display.ax_.collections if not c.get_facecolor().size]
    paper = display.figure_.get_facecolor()
    assert contrast(to_rgb(edges[0].get_edgecolor()[0]), paper) > 3.0
    assert to_rgb(edges[1].get_edgecolor()[0]) == to_rgb(paper)
