"""What holds for every display: where it draws, how it looks, what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor, plotting
from infinitask.plotting import DARK, LIGHT, Look
from infinitask.plotting._look import contrast, luminance
from tests.support.each import each

Draw = Callable[..., Any]
DISPLAYS: dict[str, tuple[str, Draw]] = {
    "QuantileFanDisplay": ("sine", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, grid=20, **o)),
    "ConditionalQuantileDisplay": ("sine", lambda D, f, **o: D.from_estimator(f.model, f.X[:2], grid=20, **o)),
    "ReliabilityDisplay": ("sine", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, **o)),
    "PITDisplay": ("sine", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, **o)),
    "CrossingDisplay": ("crossed", lambda D, f, **o: D.from_estimator(f.model, f.X, grid=20, **o)),
    "RelevanceDisplay": ("houses", lambda D, f, **o: D.from_estimator(f.model, **o)),
    "DecisionBoundaryDisplay": ("moons", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, grid=20, **o)),
    "ThetaROCDisplay": ("moons", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, **o)),
    "ExpectedCostDisplay": ("moons", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, **o)),
    "NetBenefitDisplay": ("moons", lambda D, f, **o: D.from_estimator(f.model, f.X, f.y, **o)),
    "LevelSetDisplay": ("clouds", lambda D, f, **o: D.from_estimator(f.model, f.X, grid=20, **o)),
    "ThetaPropertyDisplay": ("clouds", lambda D, f, **o: D.from_estimator(f.model, f.X, **o)),
    "MassVolumeDisplay": ("clouds", lambda D, f, **o: D.from_estimator(f.model, f.X, n_samples=200, **o)),
    "ConvergenceDisplay": ("sine", lambda D, f, **o: D.from_estimator(f.model, **o)),
    "ContestDisplay": ("tuned", lambda D, f, **o: D.from_estimator(f.model, **o)),
}


@pytest.fixture(params=sorted(DISPLAYS))
def draw(request: pytest.FixtureRequest) -> Draw:
    """Draws one display after the other."""
    fixture, make = DISPLAYS[request.param]
    fitted, display = request.getfixturevalue(fixture), getattr(plotting, request.param)
    return lambda **options: make(display, fitted, **options)


def test_every_display_is_tried() -> None:
    assert set(DISPLAYS) == {name for name in plotting.__all__ if name.endswith("Display")}


def test_a_display_draws_into_given_axes(draw: Draw) -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_title("mine")
    display = draw(ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is figure
    assert axes.get_title() == "mine"
    assert axes.has_data() or axes.texts
    assert axes.get_xlabel()
    assert not plt.get_fignums()  # no other figure was made


@pytest.mark.quick(every=2)
def test_a_display_makes_a_figure_of_its_own_and_shows_nothing(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a figure was shown"))
    before = dict(matplotlib.rcParams)
    display = draw()
    assert len(plt.get_fignums()) == 1
    display.figure_.draw_without_rendering()
    assert dict(matplotlib.rcParams) == before
    again = display.plot()
    assert again is display
    assert len(plt.get_fignums()) == 2


@pytest.mark.quick(every=4)
@pytest.mark.parametrize("look", ["light", "dark", pytest.param("dark_background", marks=pytest.mark.slow)])
def test_text_can_be_read_on_its_paper(draw: Draw, look: Any) -> None:
    if look == "dark_background":
        with plt.style.context("dark_background"):
            display = draw()
    else:
        display = draw(look=look)
    display.figure_.draw_without_rendering()
    for axes in display.figure_.axes:
        paper = display.figure_.get_facecolor()
        assert (luminance(paper) < 0.3) == (look != "light")
        texts = [axes.xaxis.label, axes.yaxis.label, axes.title, *axes.get_xticklabels(), *axes.get_yticklabels()]
        legend = axes.get_legend()
        texts += [] if legend is None else legend.get_texts()
        for text in texts:
            assert contrast(text.get_color(), paper) > 4.5, text.get_text()


@pytest.mark.quick(every=2)
def test_labels_are_words_and_nothing_is_cut_off(draw: Draw) -> None:
    figure = draw().figure_
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    box = figure.get_tightbbox()
    assert box.x0 * figure.dpi >= -1.0
    assert box.y0 * figure.dpi >= -1.0
    assert box.x1 * figure.dpi <= width + 1.0
    assert box.y1 * figure.dpi <= height + 1.0
    for axes in figure.axes:
        legend = axes.get_legend()
        words = [axes.get_xlabel(), axes.get_ylabel()]
        words += [] if legend is None else [text.get_text() for text in legend.get_texts()]
        assert all(any("a" <= letter <= "z" for letter in word) for word in words if word)
        assert legend is None or all(legend.get_texts())


def test_a_legend_within_dark_axes_is_dark() -> None:
    figure = Figure(facecolor="black")
    axes = figure.subplots()
    axes.set_facecolor("black")
    display = plotting.PITDisplay.from_predictions(np.linspace(0.0, 1.0, 50), ax=axes)
    for text in display.ax_.get_legend().get_texts():
        assert luminance(text.get_color()) > 0.5


# --------------------------------------------------------------------------------------------------------- looks
def test_the_look_follows_the_settings() -> None:
    assert Look.of_settings() == LIGHT
    with plt.style.context("dark_background"):
        look = Look.of_settings()
    assert look.is_dark
    assert to_rgb(look.ink) == (1.0, 1.0, 1.0)


@each("look", [LIGHT, DARK])
def test_no_colour_of_the_map_is_lost_on_the_paper(look: Look) -> None:
    colours = look.colours()(np.linspace(0.0, 1.0, 9))
    assert min(contrast(colour, look.paper) for colour in colours) > 1.4
    assert contrast(look.main, look.paper) > 4.5


@each("look", ["bright", 3, ("black", "white")])
def test_an_unknown_look_is_refused(look: Any) -> None:
    with pytest.raises(ValueError, match="'light', 'dark' or a Look"):
        plotting.PITDisplay.from_predictions([0.2, 0.8], look=look)


# ---------------------------------------------------------------------------------------------------- wrong calls
OTHER = {"sine": "moons", "crossed": "moons", "moons": "sine", "clouds": "sine", "houses": None, "tuned": None}


@each("name", sorted(DISPLAYS))
def test_a_model_of_another_kind_is_refused_by_a_sentence(name: str, request: pytest.FixtureRequest) -> None:
    fixture, make = DISPLAYS[name]
    fitted = request.getfixturevalue(fixture)
    others = [LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), InfiniteQuantileRegressor]
    if OTHER[fixture] is not None and name != "ConvergenceDisplay":
        others.append(request.getfixturevalue(OTHER[fixture]).model)
    for other in others:
        with pytest.raises(TypeError, match=f"{name} shows .* needs a fitted model, such as Infinite"):
            make(getattr(plotting, name), fitted._replace(model=other))


@each("name", sorted(DISPLAYS))
def test_an_unfitted_model_is_refused(name: str, request: pytest.FixtureRequest) -> None:
    from sklearn.base import clone

    fixture, make = DISPLAYS[name]
    fitted = request.getfixturevalue(fixture)
    for model in (clone(fitted.model), make_pipeline(clone(fitted.model))):
        with pytest.raises(NotFittedError):
            make(getattr(plotting, name), fitted._replace(model=model))


def test_a_plane_needs_two_features(clouds: Any, moons: Any) -> None:
    X = np.column_stack([clouds.X, clouds.X[:, 0]])[:40]
    sets = InfiniteOneClassSVM(n_nodes=8, alpha=1e-3).fit(X)
    with pytest.raises(
        ValueError, match=r"3 features; LevelSetDisplay draws a plane of two\. .*features=\('x0', 'x1'\)"
    ):
        plotting.LevelSetDisplay.from_estimator(sets, X)
    labels = (X[:, 0] > 0.0).astype(int)
    decisions = InfiniteCostSensitiveClassifier(n_nodes=4, alpha=0.1).fit(X[:, :1], labels)
    with pytest.raises(ValueError, match="1 feature; DecisionBoundaryDisplay draws"):
        plotting.DecisionBoundaryDisplay.from_estimator(decisions, X[:, :1])
    with pytest.raises(ValueError, match="X with 3 columns"):
        plotting.DecisionBoundaryDisplay.from_estimator(moons.model, X)


FAN, PIT = plotting.QuantileFanDisplay, plotting.PITDisplay
WRONG: list[tuple[Callable[[Any, Any], Any], str]] = [
    (lambda h, s: FAN.from_estimator(h.model, h.X, feature="rooms"), "rooms.*area, age"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, feature=2), "position below 2"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, at={"rooms": 3}), "at names 'rooms'"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, grid=1), "grid"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, along=np.arange(3)), "along holds 3 entries for 40 rows"),
    (lambda h, s: FAN.from_estimator(h.model, h.X.assign(age=3.0), feature="age"), "3 in all rows"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, kind="heap"), "kind"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, quantiles=[0.2, 0.5], kind="bands"), "such as 0.1 and 0.9"),
    (lambda h, s: FAN.from_estimator(h.model, h.X, quantiles=[50]), "quantiles"),
    (lambda h, s: FAN.from_predictions(np.ones((4, 2)), [0.1, 0.9], x=[1, 2]), "x holds 2 entries for 4 rows"),
    (
        lambda h, s: FAN.from_predictions(np.ones((4, 2)), [0.1]),
        r"curves of shape \(4, 2\) was given for 4 .* 1 levels",
    ),
    (lambda h, s: plotting.ThetaPropertyDisplay.from_predictions(True, [0.1]), "inside"),
    (lambda h, s: plotting.ThetaPropertyDisplay.from_predictions(np.ones((0, 1)), [0.1]), "inside"),
    (lambda h, s: PIT.from_predictions([0.2, 1.2]), "probabilities"),
    (lambda h, s: PIT.from_predictions([0.2], bins=1), "bins"),
    (lambda h, s: PIT.from_predictions([0.2], confidence=90), "Did you mean 0.9"),
    (lambda h, s: plotting.ReliabilityDisplay.from_predictions([1.0], [[1.0, 2.0]], [0.5]), "levels"),
    (lambda h, s: plotting.ConditionalQuantileDisplay.from_estimator(s.model, s.X), "at most 8"),
    (lambda h, s: plotting.ConditionalQuantileDisplay.from_estimator(s.model, s.X[:2], names=["a"]), "names"),
    (lambda h, s: plotting.CrossingDisplay.from_estimator(s.model, s.X, quantiles=[0.5]), "at least two"),
    (lambda h, s: plotting.ThetaPropertyDisplay.from_predictions([[1], [1]], [0.1, 0.2]), "inside"),
    (lambda h, s: plotting.ThetaROCDisplay.from_predictions([0, 1], [[0], [1]], [0.1, 0.2]), "one column each"),
    (
        lambda h, s: plotting.ThetaROCDisplay.from_predictions([0, 1], [[0], [1]], [0.1], chosen=[0.1, 3.0]),
        "contains 3",
    ),
    (lambda h, s: plotting.ThetaROCDisplay.from_predictions([0, 1], [[0], [1]], [0.1], chosen=[[0.1]]), "chosen"),
    (lambda h, s: plotting.ThetaROCDisplay.from_predictions([0, 1], [[0], [1]], [0.1], chosen="best"), "chosen"),
]


@each(("call", "words"), WRONG, ids=[words for _, words in WRONG])
def test_a_wrong_call_is_a_sentence(call: Any, words: str, houses: Any, sine: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=words) as error:
        call(houses, sine)
    assert str(error.value).endswith((".", "?"))
    assert not plt.get_fignums()  # nothing half drawn is left


@each("look", [None, "dark"])
@each("ax", ["left", 3, Figure()])
def test_anything_but_axes_is_refused(ax: Any, look: Any) -> None:
    with pytest.raises(TypeError, match="must be axes of matplotlib"):
        plotting.PITDisplay.from_predictions([0.2, 0.8], ax=ax, look=look)


# -------------------------------------------------------------------------------------------------------- imports


def test_missing_matplotlib_names_the_extra(draw: Draw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install infinitask\[plot\]"):
        draw()
