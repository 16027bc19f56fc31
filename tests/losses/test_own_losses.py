"""Mistakes in a loss of one's own are found at fit and named; right losses are never suspected."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from infinitask import InfiniteTaskEstimator
from infinitask.datasets import make_sine
from infinitask.losses import (
    BoxLoss,
    ConvexLoss,
    EpsilonInsensitive,
    Expectile,
    FunctionLoss,
    Huber,
    Loss,
    MQuantile,
    Pinball,
    Row,
    Squared,
)
from infinitask.losses._checks import check_units
from infinitask.losses._observed import AtTask
from infinitask.measures import Discrete, ProductMeasure, Uniform
from tests.support.each import each

X, Y = make_sine(60, random_state=0)
WITH_UNITS = [
    Pinball(),
    MQuantile(0.3),
    MQuantile(20.0),
    Expectile(),
    EpsilonInsensitive(),
    Squared(),
    Huber(0.3),
    AtTask(EpsilonInsensitive(), 0.2),
]
PLANE = ProductMeasure([Uniform(0.1, 0.9), Uniform(20.0, 1000.0)])


class Rounded(BoxLoss):
    """The pinball loss, rounded over a length δ; ``in_units`` is that of a subclass."""

    domain = (0.0, 1.0)
    degree: Any = 1

    def __init__(self, delta: float = 0.5) -> None:
        self.delta = delta

    def row(self, theta: Any, y: Any) -> Row:
        return Row(theta - 1.0, theta, soft_low=self.delta, soft_high=self.delta)


class InUnits(Rounded):
    def in_units(self, spread: float) -> InUnits:
        return InUnits(self.delta / spread)


class Power(ConvexLoss):
    """|r|^power, tilted; ``degree`` is what it says."""

    domain = (0.1, 0.9)

    def __init__(self, power: float = 2.0, degree: Any = 2) -> None:
        self.power = power
        self.degree = degree

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return np.where(y > h, theta, 1.0 - theta) * np.abs(y - h) ** self.power

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        tilt = np.where(y > h, -theta, 1.0 - theta)
        return self.power * tilt * np.abs(y - h) ** (self.power - 1.0)


class Given(ConvexLoss):
    """A loss from two functions."""

    domain = (0.1, 0.9)

    def __init__(self, value: Any = None, slope: Any = None, smooth_scale: float = 0.0) -> None:
        self.values = value
        self.slopes = slope
        self.smooth_scale = smooth_scale

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return self.values(theta, y, h)

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return self.slopes(theta, y, h)


def fitted(loss: Loss, y: Any = Y, **options: Any) -> InfiniteTaskEstimator:
    return InfiniteTaskEstimator(loss, **({"n_nodes": 6} | options)).fit(X, y)


# --------------------------------------------------------------------------------------------------------- units
@each("loss", [*WITH_UNITS, InUnits(), Power(), Power(1.5, 1.5), Power(3.0, 3)], ids=str)
@each(("centre", "spread"), [(0.0, 1.0), (0.0, 1e-6), (3.0, 40.0), (1e6, 1e3), (1e6, 1.0)])
def test_a_loss_that_keeps_to_its_degree_is_not_suspected(loss: Loss, centre: float, spread: float) -> None:
    y = centre + spread * np.random.default_rng(0).standard_normal((50, 1))
    check_units(loss, np.linspace(0.05, 0.95, 9), y, centre, spread)


@each("loss", [Power(2.0, 1), Power(1.0, 2), Power(3.0, 2)], ids=str)
@each("scale", [1e-3, 1.0, 5e3])
def test_a_wrong_degree_is_refused_and_the_right_one_named(loss: Power, scale: float) -> None:
    with pytest.raises(ValueError, match=rf"Power has degree = {loss.degree}, .* set degree = {loss.power:g}\."):
        fitted(loss, scale * Y)


@each("scale", [1e-3, 1.0, 5e3])
def test_a_forgotten_in_units_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match=r"Rounded has degree = 1, .* Write a method in_units\(spread\)"):
        fitted(Rounded(0.5 * scale), scale * Y)


def test_a_wrong_in_units_is_refused() -> None:
    class Upside(InUnits):
        def in_units(self, spread: float) -> InUnits:
            return InUnits(self.delta * spread)

    class Nothing(InUnits):
        def in_units(self, spread: float) -> Any:
            return None

    with pytest.raises(ValueError, match=r"Correct in_units\(spread\)"):
        fitted(Upside(), 100.0 * Y)
    with pytest.raises(TypeError, match="in_units returned None; it must return a loss"):
        fitted(Nothing(), 100.0 * Y)
    with pytest.raises(ValueError, match="degree = 'one'; it must be a number p, or None"):
        fitted(Power(1.0, "one"))


def test_a_loss_of_more_than_the_residual_has_no_degree() -> None:
    class Poisson(ConvexLoss):
        domain = (0.5, 2.0)
        degree = 1

        def value(self, theta: Any, y: Any, h: Any) -> Any:
            return theta * np.exp(h) - y * h

        def slope(self, theta: Any, y: Any, h: Any) -> Any:
            return theta * np.exp(h) - y

    counts = np.random.default_rng(0).poisson(5.0, size=60)
    with pytest.raises(ValueError, match=r"does not depend on y − h alone: .* Set degree = None"):
        fitted(Poisson(), counts)


def test_a_right_in_units_follows_the_units() -> None:
    plain = fitted(InUnits(0.3)).predict(X, [0.2, 0.8])
    large = fitted(InUnits(300.0), 1e4 + 1e3 * Y).predict(X, [0.2, 0.8])
    np.testing.assert_allclose(large, 1e4 + 1e3 * plain, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ two coordinates
class Two(BoxLoss):
    """θ = (level, softness in units of y)."""

    degree = 1

    def __init__(self, unit: float = 1.0) -> None:
        self.unit = unit

    def in_units(self, spread: float) -> Loss:
        return type(self)(self.unit * spread)

    def row(self, theta: Any, y: Any) -> Row:
        soft = theta[:, 1] / self.unit
        return Row(theta[:, 0] - 1.0, theta[:, 0], soft_low=soft, soft_high=soft)


def test_units_of_a_coordinate_do_not_change_the_predictions() -> None:
    options: dict[str, Any] = {"quadrature": "sobol", "n_nodes": 32, "random_state": 0, "tol": 1e-7}
    y = 1e4 + 1e3 * Y
    raw = fitted(Two(), y, measure=[(0.1, 0.9), (20.0, 1000.0)], **options)
    even = fitted(Two(1e-3), y, measure=[(0.1, 0.9), (0.02, 1.0)], **options)
    tasks = np.array([[0.2, 50.0], [0.5, 500.0], [0.8, 900.0]])
    np.testing.assert_allclose(raw.predict(X, tasks), even.predict(X, tasks * [1.0, 1e-3]), rtol=1e-4)
    low, high = raw.predict(X, [[0.15, 100.0], [0.85, 100.0]]).T
    assert np.mean(low < high) > 0.9  # the level is seen beside the large coordinate


def test_a_domain_has_a_pair_for_each_coordinate() -> None:
    class Pairs(Two):
        domain = ((0.0, 1.0), (0.0, math.inf))

    class Narrow(Two):
        domain = ((0.0, 1.0), (0.0, 100.0))

    class Single(Two):
        domain = (0.0, 2.0)

    for loss in (Two(), Pairs()):
        assert fitted(loss, measure=PLANE, quadrature="sobol", n_nodes=8).nodes_.shape == (8, 2)
    for loss in (Narrow(), Single()):
        with pytest.raises(ValueError, match=r"lives on \[0.1, 0.9\] × \[20, 1000\]; .* in \[0, .\] × \[0, .*\]"):
            fitted(loss, measure=PLANE)
    assert fitted(Narrow(), quadrature="sobol", n_nodes=8).measure_.support[1].tolist() == [1.0, 100.0]
    with pytest.raises(ValueError, match="for θ of dimension 1; it must be a pair"):
        fitted(Narrow(), measure=(0.1, 0.9))


def test_a_list_of_pairs_is_a_product_and_numbers_are_points() -> None:
    product = fitted(Two(), measure=[(0.1, 0.9), Uniform(20.0, 1000.0)], quadrature="sobol", n_nodes=8)
    assert product.measure_.support[1].tolist() == [0.9, 1000.0]
    for measure, points in ((0.5, "0.5"), ([0.5], "0.5"), ([0.1, 0.5, 0.9], "0.1, 0.5, 0.9")):
        with pytest.raises(ValueError, match=rf"give Discrete\(\[{points}\]\)"):
            fitted(Rounded(), measure=measure)
    for measure in ("uniform", [None, (0.0, 1.0)], [], ["a", "b"]):
        with pytest.raises(ValueError, match="is not a measure on the tasks"):
            fitted(Rounded(), measure=measure)
    assert fitted(InUnits(), measure=Discrete([0.5])).nodes_.tolist() == [0.5]


# --------------------------------------------------------------------------------------------- value and slope
def tilted(theta: Any, y: Any, h: Any) -> Any:
    return np.where(y > h, theta, theta - 1.0) * (y - h)


def tilted_slope(theta: Any, y: Any, h: Any) -> Any:
    return np.where(y > h, -theta, 1.0 - theta)


def test_a_wrong_slope_certifies_nothing_and_costs_little() -> None:
    model = InfiniteTaskEstimator(Given(tilted, lambda *a: -2.0 * tilted_slope(*a)), n_nodes=4)
    with pytest.warns(ConvergenceWarning, match="not its derivative.*dual_gap_ is infinite") as told:
        model.fit(X, Y)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert (model.dual_gap_, model.solution_.dual, model.solution_.converged) == (math.inf, -math.inf, False)
    assert model.solution_.n_evaluations <= 200


def test_a_loss_without_a_smallest_value_is_refused() -> None:
    concave = Given(lambda t, y, h: -((y - h) ** 2) + 0.0 * t, lambda t, y, h: 2.0 * (y - h) + 0.0 * t)
    linear = Given(lambda t, y, h: t * (y - h), lambda t, y, h: -t + 0.0 * h)
    for loss, is_so in ((concave, "is not convex in h: at"), (linear, "falls without end at")):
        with pytest.raises(ValueError, match=rf"Given {is_so} θ = .* has a smallest value"):
            fitted(loss)
    with pytest.raises(ValueError, match="is not convex in h"):
        fitted(concave, alpha=1.0, alpha_bias=None)
    assert fitted(linear, alpha=1.0, alpha_bias=None).dual_gap_ <= 1e-4  # the ridge holds it


def test_a_kink_that_is_called_smooth_is_named() -> None:
    with pytest.warns(ConvergenceWarning, match=r"its slope jumps from -.* to .* Leave out `smooth_scale`") as told:
        fitted(Given(tilted, tilted_slope, math.inf), max_iter=30)
    assert len(told) == 1

    class Kinked(Pinball):
        def smooth(self, scale: float) -> bool:
            return True

    with pytest.warns(ConvergenceWarning, match=r"slope without softness \(soft_low is 0\), which is a kink"):
        fitted(Kinked(), max_iter=30)


@each("loss", [Expectile(), MQuantile(0.05), InUnits(0.05), Squared()], ids=str)
@each("scale", [1e-3, 1.0, 1e4])
def test_a_smooth_loss_is_not_suspected(loss: Loss, scale: float) -> None:
    smooth = Given(loss.value, loss.slope, math.inf)
    theta, y = np.linspace(0.1, 0.9, 5), scale * np.random.default_rng(0).standard_normal((40, 1))
    assert loss.check(theta, y) is None
    assert smooth.check(theta, y) is None


def test_a_loss_in_single_precision_is_not_suspected() -> None:
    def single(function: Any) -> Any:
        return lambda *a: function(*a).astype(np.float32)

    theta, y = np.linspace(0.1, 0.9, 9), np.random.default_rng(0).standard_normal((100, 1))
    for loss in (Expectile(), MQuantile(0.05)):
        assert Given(single(loss.value), single(loss.slope)).check(theta, y) is None
        found = Given(single(loss.value), single(lambda *a, of=loss: 1.05 * of.slope(*a))).check(theta, y)
        assert found is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(Given(single(Expectile().value), single(Expectile().slope))).dual_gap_ <= 1e-4


# ---------------------------------------------------------------------------------------------------- answers
@each("answer", [None, [[1.0]], (1.0, 2.0), "much"], ids=str)
def test_anything_but_an_array_is_named(answer: Any) -> None:
    told = "None" if answer is None else f"a {type(answer).__name__}"
    for loss in (Given(lambda t, y, h: answer, tilted_slope), Given(tilted, lambda t, y, h: answer)):
        with pytest.raises(TypeError, match=rf"Given\.(value|slope) returned {told}; it must return an array"):
            fitted(loss)


@each(
    ("row", "told"),
    [
        (Row(math.nan, 1.0), "a low that is NaN somewhere"),
        (Row(-1.0, 1.0, soft_high=math.nan), "a soft_high that is NaN"),
        (Row(-math.inf, math.inf), "no finite low and no soft_low"),
        (Row(None, 1.0), "no finite low and no soft_low"),
        (Row(-1.0, None, soft_high=0.0), "no finite high and no soft_high"),
        (Row(0.5, 1.0), "a low that is above 0"),
    ],
    ids=str,
)
def test_rows_that_are_no_loss_are_refused(row: Row, told: str) -> None:
    class Fixed(BoxLoss):
        def row(self, theta: Any, y: Any) -> Row:
            return row

    with pytest.raises(ValueError, match=told):
        fitted(Fixed())


def test_no_row_and_no_page_are_said() -> None:
    class Empty(BoxLoss):
        def row(self, theta: Any, y: Any) -> Any:
            return None

    with pytest.raises(TypeError, match=r"Empty\.row returned None; it must return a Row"):
        fitted(Empty())
    model = InfiniteTaskEstimator()
    assert not hasattr(model, "explore")
    with pytest.raises(AttributeError, match="has no explore: a page has to know what h"):
        model.explore(X)


@each("device", [None, "cpu"])
def test_a_function_with_a_degree_is_tested_where_it_is_computed(device: str | None) -> None:
    pytest.importorskip("torch")

    class Cubic(FunctionLoss):
        degree = 2

    loss = Cubic(lambda theta, y, h: theta * abs(y - h) ** 3, smooth_scale=math.inf)
    with pytest.raises(ValueError, match=r"Cubic has degree = 2, .* set degree = 3\."):
        fitted(loss, 100.0 * Y, measure=(0.5, 1.0), device=device)
    Cubic.degree = 3
    assert fitted(loss, 100.0 * Y, measure=(0.5, 1.0), device=device).dual_gap_ <= 1e-4


# --------------------------------------------------------------------------------------------------- capabilities
class Steeper(Pinball):
    """A row of the library, changed: nobody has verified its degree."""


def test_only_rows_of_the_library_have_a_verified_degree() -> None:
    assert Pinball().degree_verified
    assert Huber(0.5).degree_verified
    assert not Steeper().degree_verified
    assert not AtTask(Pinball(), 0.5).degree_verified
    changed = Pinball()
    changed.degree = 2
    assert not changed.degree_verified


def test_losses_with_bounded_slopes_have_constants_of_stability() -> None:
    theta, weights = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    levels = Steeper().stability(theta, weights, (0.0, 1.0), 2.0)
    assert levels == Pinball().stability(theta, weights, (0.0, 1.0), 2.0)
    assert levels is not None
    assert (levels.slope, levels.zero, levels.reach) == (0.75, 1.0, 2.0)
    assert Expectile().stability(theta, weights, (0.0, 1.0), 2.0) is None
