"""Every loss is the largest of its lower bounds, and all that it says of itself follows from that.

One list of losses × one list of laws: a new class in ``infinitask.losses.__all__`` is picked up by itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from infinitask import losses
from infinitask.losses import (
    BoxLoss,
    CostSensitiveHinge,
    EpsilonInsensitive,
    Expectile,
    Huber,
    LevelSet,
    Loss,
    MQuantile,
    Pinball,
    Row,
    Squared,
)
from infinitask.losses._integrands import Distance, RescaledRow
from infinitask.losses._observed import AtTask
from infinitask.losses._rows import NonCrossing, SquaredNonCrossing
from tests.support.arrays import to_host
from tests.support.each import each

Floats = np.ndarray[Any, Any]


def concrete(module: Any) -> list[type[Loss]]:
    """The losses of a module that can be made."""
    found = (getattr(module, name) for name in module.__all__)
    kinds = [c for c in found if inspect.isclass(c) and issubclass(c, Loss) and not inspect.isabstract(c)]
    own_file = (losses.ConvexLoss,)
    return [c for c in kinds if not issubclass(c, own_file)]


CLASSES = [*concrete(losses), NonCrossing, SquaredNonCrossing, Distance]
LOSSES: list[Loss] = [c() for c in CLASSES] + [
    MQuantile(kappa=1.5),
    AtTask(EpsilonInsensitive(), 0.3),
    AtTask(MQuantile(kappa=0.2), 0.8),
    Huber(delta=0.4),
    CostSensitiveHinge(kappa=0.4),
    NonCrossing(weight=0.3),
    NonCrossing(weight=0.3, kappa=1.5),
    SquaredNonCrossing(weight=0.3),
    Distance(-0.3, 0.5),
    Distance(-np.inf, 0.01),
    Distance(0.2, np.inf),
    RescaledRow(Distance(-0.3, 0.5), 2.0, spread=0.7, centre=0.4),
    RescaledRow(MQuantile(kappa=0.4), 0.5, spread=3.0),
]

# What the losses look at, where it is not a real number.
LABELS = {CostSensitiveHinge}
NO_TARGET = {LevelSet, NonCrossing, SquaredNonCrossing, Distance, RescaledRow}

KAPPAS = [0.02, 0.4]


def smoothed_abs(r: Floats, kappa: float) -> Floats:
    return np.where(np.abs(r) <= kappa, r**2 / (2 * kappa), np.abs(r) - kappa / 2)


def positive(a: Floats) -> Floats:
    return np.maximum(a, 0.0)


def smoothed_positive(a: Floats, kappa: float) -> Floats:
    if kappa == 0.0:
        return positive(a)
    return np.where(a <= kappa, positive(a) ** 2 / (2 * kappa), a - kappa / 2)


def at_its_task(loss: Any, y: Any, h: Floats) -> Floats:
    base = Pinball() if loss.loss is None else loss.loss
    return FORMULAS[type(base)](base, np.array([loss.task]), y, h)


def in_other_units(loss: Any, theta: Floats, y: Any, h: Floats) -> Floats:
    inside, v = loss.loss, loss.spread * h + loss.centre
    return loss.weight * FORMULAS[type(inside)](inside, theta, np.zeros((1, 1)), v)


# ℓ_θ(y, h) as it is written on paper; y is None where the loss has no target.
FORMULAS: dict[type[Loss], Callable[[Any, Floats, Any, Floats], Floats]] = {
    Pinball: lambda loss, theta, y, h: np.maximum(theta * (y - h), (theta - 1) * (y - h)),
    MQuantile: lambda loss, theta, y, h: np.abs(theta - (y < h)) * smoothed_abs(y - h, loss.kappa),
    Expectile: lambda loss, theta, y, h: np.abs(theta - (y < h)) * (y - h) ** 2,
    CostSensitiveHinge: lambda loss, theta, y, h: (
        np.abs((theta + 1) / 2 - (y == -1)) * smoothed_positive(1 - y * h, loss.kappa)
    ),
    LevelSet: lambda loss, theta, y, h: positive(-h) / theta,
    EpsilonInsensitive: lambda loss, theta, y, h: positive(np.abs(y - h) - theta),
    Squared: lambda loss, theta, y, h: 0.5 * (y - h) ** 2 + 0.0 * theta,
    Huber: lambda loss, theta, y, h: loss.delta * smoothed_abs(y - h, loss.delta) + 0.0 * theta,
    AtTask: lambda loss, theta, y, h: at_its_task(loss, y, h) + 0.0 * theta,
    NonCrossing: lambda loss, theta, y, h: loss.weight * smoothed_positive(-h, loss.kappa),
    SquaredNonCrossing: lambda loss, theta, y, h: loss.weight * positive(-h) ** 2,
    Distance: lambda loss, theta, y, h: positive(loss.low - h) + positive(h - loss.high),
    RescaledRow: in_other_units,
}


def sample(loss: Loss, n: int = 60, m: int = 7, seed: int = 0) -> tuple[Floats, Floats | None, Floats]:
    """θ over all of the default Θ, its ends among them, targets the loss understands, and values of h around them."""
    rng = np.random.default_rng(seed)
    theta = np.linspace(*(loss.support or loss.domain), m)
    y: Floats | None = rng.normal(size=(n, 1))
    if type(loss) in LABELS:
        y = np.sign(y)
    elif type(loss) in NO_TARGET:
        y = None
    h = rng.normal(scale=1.5, size=(n, m))
    h[::2] = 0.02 * h[::2] + (0.0 if y is None else y[::2])  # half of them close to the kink
    return theta, y, h


def envelope(loss: Loss, theta: Any, y: Any, h: Any, kappa: Any) -> Any:
    """ℓ^κ from what ``pointwise`` yields: the lower bound less (κ/2)u²."""
    point = loss.pointwise(theta, y, h, kappa)
    return point.lower - 0.5 * kappa * point.dual**2


def interval(loss: Loss, theta: Floats, y: Floats | None, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Where u lives, seen from far away."""
    far = np.full(shape, 1e3)
    return loss.pointwise(theta, y, far).dual, loss.pointwise(theta, y, -far).dual


def smallest(f: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """The minimum of a convex function of each entry, by ternary search: kinks do not disturb it."""
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        left = f(a) <= f(b)
        low, high = np.where(left, low, a), np.where(left, b, high)
    return np.minimum(f((low + high) / 2), np.minimum(f(low), f(high)))


each_loss = each("loss", LOSSES, ids=repr)


def test_every_loss_is_written_on_paper() -> None:
    assert set(FORMULAS) == {*CLASSES, AtTask, RescaledRow}, "write the formula of the new loss into FORMULAS"


# ------------------------------------------------------------------------------------------------- the value
@each_loss
def test_value_is_the_formula(loss: Loss) -> None:
    theta, y, h = sample(loss)
    np.testing.assert_allclose(loss.value(theta, y, h), FORMULAS[type(loss)](loss, theta, y, h), rtol=1e-13, atol=1e-15)


@each_loss
@each("kappa", KAPPAS)
def test_value_does_not_depend_on_the_smoothing(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    centre = loss.pointwise(theta, y, h[::-1]).dual
    expected = loss.value(theta, y, h)
    np.testing.assert_allclose(loss.pointwise(theta, y, h, kappa).value, expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(loss.pointwise(theta, y, h, kappa, centre).value, expected, rtol=1e-13, atol=1e-15)


@each_loss
def test_value_is_nonnegative_and_somewhere_zero(loss: Loss) -> None:
    theta, y, h = sample(loss)
    assert np.all(loss.value(theta, y, h) >= 0.0)
    best = smallest(lambda p: loss.value(theta, y, p), np.full(h.shape, -50.0), np.full(h.shape, 50.0))
    np.testing.assert_allclose(best, 0.0, atol=1e-12)


# ------------------------------------------------------------------------------------------------- the slope
@each_loss
def test_slope_is_a_subgradient_everywhere(loss: Loss) -> None:
    theta, y, h = sample(loss)
    # kinks, where the subgradient is a choice, are among the points
    h[0], h[1] = (0.0 if y is None else y[0]), (0.0 if y is None else y[1] + theta)
    value, slope = loss.value(theta, y, h), loss.slope(theta, y, h)
    for other in np.linspace(-4.0, 4.0, 41):
        there = loss.value(theta, y, np.full_like(h, other))
        assert np.all(there >= value + slope * (other - h) - 1e-12)


@each_loss
def test_slope_is_the_derivative_away_from_kinks(loss: Loss) -> None:
    theta, y, h = sample(loss)
    step = 1e-6
    left = (loss.value(theta, y, h) - loss.value(theta, y, h - step)) / step
    right = (loss.value(theta, y, h + step) - loss.value(theta, y, h)) / step
    away = np.abs(right - left) < 1e-4
    assert np.mean(away) > 0.95
    np.testing.assert_allclose(loss.slope(theta, y, h)[away], (0.5 * (left + right))[away], atol=1e-7)


@each_loss
def test_slope_at_a_kink_is_the_least_in_modulus(loss: Loss) -> None:
    theta, y, h = sample(loss)
    kink = np.zeros_like(h) if y is None else y + np.zeros_like(h)
    left, right = loss.slope(theta, y, kink - 1e-9), loss.slope(theta, y, kink + 1e-9)
    least = np.where(left * right <= 0.0, 0.0, np.minimum(np.abs(left), np.abs(right)))
    np.testing.assert_allclose(np.abs(loss.slope(theta, y, kink)), least, atol=1e-8)


@each_loss
@each("kappa", KAPPAS)
def test_slope_of_the_envelope_is_its_derivative_everywhere(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    if y is not None:
        h[0] = y[0]
    step = 1e-6
    difference = (envelope(loss, theta, y, h + step, kappa) - envelope(loss, theta, y, h - step, kappa)) / (2 * step)
    # the slope is Lipschitz with constant 1/κ: over one step it moves by no more than that
    np.testing.assert_allclose(loss.slope(theta, y, h, kappa), difference, atol=step / kappa + 1e-8)


@each_loss
@each("kappa", [0.0, *KAPPAS])
def test_slope_grows_with_h_and_not_faster_than_the_smoothing_allows(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    line = np.linspace(-4.0, 4.0, 201)
    for j in range(theta.size):
        grid = np.broadcast_to(line, (h.shape[0], line.size))
        slope = loss.slope(theta[j] + 0.0 * line, y, grid, kappa)
        steps = np.diff(slope, axis=1)
        assert np.all(steps >= -1e-12)
        if kappa > 0.0:
            assert np.all(steps <= np.diff(line) / kappa + 1e-12)


SCALES = [1e-3, 0.1, 0.5, 1.5, 1e3]


@each_loss
def test_smooth_losses_have_no_kink(loss: Loss) -> None:
    theta, y, _ = sample(loss)
    line = np.linspace(-3.0, 3.0, 6001)
    rows = np.broadcast_to(line, (60, line.size))
    step = line[1] - line[0]
    jump = max(np.max(np.diff(loss.slope(t + 0.0 * line, y, rows), axis=1)) for t in theta)
    for scale in SCALES:
        if loss.smooth(scale):
            # the slope of a loss without kinks moves with h, and by no more than about 1 over the scale
            assert jump <= step * max(2.0, 1.0 / scale) * (1 + 1e-6)
    # a loss with a kink is smooth at no scale
    if jump > 100.0 * step:
        assert not any(loss.smooth(scale) for scale in SCALES)


@each_loss
def test_what_is_smooth_at_a_scale_is_smooth_at_a_smaller_one(loss: Loss) -> None:
    answers = [loss.smooth(scale) for scale in SCALES]
    assert answers == sorted(answers, reverse=True)


def test_some_losses_are_smooth() -> None:
    assert Expectile().smooth(0.5)
    assert MQuantile(kappa=1.5).smooth(0.5)
    assert not MQuantile(kappa=0.1).smooth(0.5)
    assert not Pinball().smooth(0.5)


# --------------------------------------------------------------------------------------------- the curvature
@each_loss
@each("kappa", [0.0, *KAPPAS])
def test_curvature_is_the_derivative_of_the_slope(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    step = 1e-7
    around = [loss.curvature(theta, y, h + d, kappa) for d in (-step, 0.0, step)]
    away = (around[0] == around[1]) & (around[1] == around[2])
    assert np.mean(away) > 0.95
    difference = (loss.slope(theta, y, h + step, kappa) - loss.slope(theta, y, h - step, kappa)) / (2 * step)
    if kappa == 0.0:
        # a kink within the step is a jump of the slope, not a curvature
        away &= np.abs(difference) < 0.01 / step
    np.testing.assert_allclose(around[1][away], difference[away], atol=1e-6, rtol=1e-6)
    if kappa > 0.0:
        assert np.any(around[1] > 0.0)
        assert np.all(around[1] <= 1.0 / kappa + 1e-12)


# ------------------------------------------------------------------------------------------- Moreau's envelope
@each_loss
@each("kappa", KAPPAS)
def test_envelope_is_the_minimum_it_is_defined_by(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    far = np.full(h.shape, 40.0)
    brute = smallest(lambda p: loss.value(theta, y, p) + (h - p) ** 2 / (2 * kappa), -far, far)
    np.testing.assert_allclose(envelope(loss, theta, y, h, kappa), brute, atol=1e-11)


@each_loss
def test_envelope_rises_to_the_loss_as_smoothing_vanishes(loss: Loss) -> None:
    theta, y, h = sample(loss)
    value, slope = loss.value(theta, y, h), loss.slope(theta, y, h)
    last = np.full(h.shape, -np.inf)
    for kappa in (1.0, 0.1, 1e-2, 1e-4, 1e-8):
        smooth = envelope(loss, theta, y, h, kappa)
        assert np.all(smooth >= last - 1e-12)
        assert np.all(smooth <= value + 1e-12)
        assert np.all(value - smooth <= 0.5 * kappa * slope**2 + 1e-12)
        last = smooth


@each_loss
def test_smoothing_may_differ_from_node_to_node(loss: Loss) -> None:
    theta, y, h = sample(loss)
    kappa = np.linspace(0.1, 0.9, theta.size)
    together = loss.pointwise(theta, y, h, kappa)
    curved = loss.curvature(theta, y, h, kappa)
    for j in range(theta.size):
        one = slice(j, j + 1)
        alone = loss.pointwise(theta[one], y, h[:, one], float(kappa[j]))
        for a, b in zip(together, alone, strict=True):
            np.testing.assert_allclose(a[:, one], b, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(
            curved[:, one], loss.curvature(theta[one], y, h[:, one], float(kappa[j])), rtol=1e-13
        )


# --------------------------------------------------------------------------------------------------- the dual
@each_loss
@each("kappa", [0.0, *KAPPAS])
def test_lower_bound_is_below_the_loss_and_is_the_dual_term(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    point = loss.pointwise(theta, y, h, kappa)
    assert np.all(point.value - point.lower >= -1e-12)
    np.testing.assert_allclose(loss.dual(theta, y, point.dual) - point.dual * h, point.lower, atol=1e-12)
    if kappa == 0.0:
        np.testing.assert_allclose(point.lower, point.value, atol=1e-12)


@each_loss
def test_dual_term_is_the_conjugate(loss: Loss) -> None:
    theta, y, h = sample(loss)
    u = loss.pointwise(theta, y, h, 0.3).dual
    far = np.full(h.shape, 40.0)
    brute = smallest(lambda p: loss.value(theta, y, p) + u * p, -far, far)
    np.testing.assert_allclose(loss.dual(theta, y, u), brute, atol=1e-10)


@each_loss
def test_every_dual_point_bounds_the_loss_everywhere(loss: Loss) -> None:
    theta, y, h = sample(loss)
    low, high = interval(loss, theta, y, h.shape)
    value = loss.value(theta, y, h)
    for share in np.linspace(0.0, 1.0, 11):
        u = low + share * (high - low)
        assert np.all(np.isfinite(loss.dual(theta, y, u)))
        assert np.all(loss.dual(theta, y, u) - u * h <= value + 1e-9)


@each_loss
def test_dual_is_concave_and_minus_infinity_outside(loss: Loss) -> None:
    theta, y, h = sample(loss)
    low, high = interval(loss, theta, y, h.shape)
    assert np.all(low <= 0.0)
    assert np.all(high >= 0.0)
    np.testing.assert_allclose(loss.dual(theta, y, np.zeros_like(h)), 0.0, atol=0.0)
    rng = np.random.default_rng(1)
    a, b = (low + rng.uniform(size=h.shape) * (high - low) for _ in range(2))
    middle = loss.dual(theta, y, 0.5 * (a + b))
    ends = 0.5 * (loss.dual(theta, y, a) + loss.dual(theta, y, b))
    assert np.all(middle >= ends - 1e-9 * (1.0 + np.abs(ends)))
    if not np.any(high > 100.0):  # bounded, as the slope is that far out
        assert np.all(loss.dual(theta, y, high + 1e-6) == -np.inf)
        assert np.all(loss.dual(theta, y, low - 1e-6) == -np.inf)


@each_loss
@each("kappa", KAPPAS)
def test_slopes_of_the_envelope_are_feasible(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    for scale in (1.0, 1e3):
        point = loss.pointwise(theta, y, scale * h, kappa)
        assert np.all(np.isfinite(loss.dual(theta, y, point.dual)))


@each_loss
@each("kappa", KAPPAS)
def test_centre_moves_the_proximal_term(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    centre = loss.pointwise(theta, y, h[::-1], 0.1).dual
    point = loss.pointwise(theta, y, h, kappa, centre)

    def shifted(u: Floats) -> Floats:
        return loss.dual(theta, y, u) - u * h - 0.5 * kappa * (u - centre) ** 2

    low, high = interval(loss, theta, y, h.shape)
    low, high = np.maximum(low, -100.0), np.minimum(high, 100.0)
    np.testing.assert_allclose(shifted(point.dual), -smallest(lambda u: -shifted(u), low, high), atol=1e-9)
    # where the moving is done: the curvature is that of the same maximisation
    step = 1e-7
    around = [loss.curvature(theta, y, h + d, kappa, centre) for d in (-step, 0.0, step)]
    away = (around[0] == around[1]) & (around[1] == around[2])
    up, down = (loss.pointwise(theta, y, h + d, kappa, centre).dual for d in (step, -step))
    np.testing.assert_allclose(around[1][away], ((down - up) / (2 * step))[away], atol=1e-6, rtol=1e-6)
    assert np.mean(away) > 0.95


@each_loss
@each("kappa", KAPPAS)
def test_centre_zero_is_no_centre(loss: Loss, kappa: float) -> None:
    theta, y, h = sample(loss)
    for a, b in zip(
        loss.pointwise(theta, y, h, kappa, np.zeros_like(h)), loss.pointwise(theta, y, h, kappa), strict=True
    ):
        np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------------------------------------ the libraries
@each_loss
@each("dtype", ["float64", "float32"])
def test_libraries_agree_and_precision_stays(loss: Loss, xp: Any, dtype: str) -> None:
    theta, y, h = sample(loss)
    centre = loss.pointwise(theta, y, h[::-1], 0.1).dual

    def there(a: Floats | None) -> Any:
        return None if a is None else xp.asarray(a, dtype=getattr(xp, dtype))

    def check(found: Any, expected: Floats) -> None:
        assert found.dtype == getattr(xp, dtype)
        tolerance = 1e-12 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(to_host(found), expected, rtol=tolerance, atol=tolerance)

    args, moved = (theta, y, h), (there(theta), there(y), there(h))
    check(loss.value(*moved), loss.value(*args))
    check(loss.width(moved[0]), loss.width(theta))
    for kappa in (0.0, 0.3):
        for found, expected in zip(
            loss.pointwise(*moved, kappa, there(centre)), loss.pointwise(*args, kappa, centre), strict=True
        ):
            check(found, expected)
        check(loss.slope(*moved, kappa), loss.slope(*args, kappa))
        check(loss.curvature(*moved, kappa, there(centre)), loss.curvature(*args, kappa, centre))
    u = loss.pointwise(*args, 0.3).dual * 0.9
    check(loss.dual(moved[0], moved[1], there(u)), loss.dual(theta, y, u))


@each_loss
def test_single_precision_holds_at_the_ends_of_the_domain(loss: Loss) -> None:
    theta, y, h = (None if a is None else a.astype(np.float32) for a in sample(loss))
    assert theta is not None
    assert h is not None
    assert (theta[0], theta[-1]) == tuple(np.float32(loss.support or loss.domain))
    for kappa in (0.0, 0.3):
        point = loss.pointwise(theta, y, h, kappa)
        for found in (*point, loss.curvature(theta, y, h, kappa), loss.dual(theta, y, point.dual)):
            assert found.dtype == np.float32
            assert np.all(np.isfinite(found))


class Huber(BoxLoss):
    """A row of scalars: r²/2 up to |r| = 1, and the tangents beyond."""

    def row(self, theta: Any, y: Any) -> Row:
        return Row(-1.0, 1.0, soft_low=1.0, soft_high=1.0)


class SoftBelow(BoxLoss):
    """r²/2 for r < 0 and r beyond: one side is soft, the other not."""

    def row(self, theta: Any, y: Any) -> Row:
        return Row(None, 1.0, soft_low=1.0)


class SoftAbove(BoxLoss):
    """−r for r < 0 and r²/2 beyond."""

    def row(self, theta: Any, y: Any) -> Row:
        return Row(-1.0, None, soft_high=1.0)


def test_a_row_may_be_made_of_scalars(xp: Any) -> None:
    theta, y, h = (xp.asarray(a, dtype=xp.float64) for a in ([0.5], [[0.0], [0.0]], [[0.5], [3.0]]))
    np.testing.assert_allclose(to_host(Huber().value(theta, y, h)), [[0.125], [2.5]])
    np.testing.assert_allclose(to_host(Huber().slope(theta, y, h)), [[0.5], [1.0]])
    np.testing.assert_allclose(to_host(Huber().curvature(theta, y, h)), [[1.0], [0.0]])
    np.testing.assert_allclose(to_host(Huber().dual(theta, y, h)), [[-0.125], [-np.inf]])


@each("kappa", [0.0, *KAPPAS])
def test_a_row_may_be_soft_on_one_side_only(xp: Any, kappa: float) -> None:
    r = np.array([[-2.0], [-0.01], [0.0], [0.01], [3.0]])
    cases: list[tuple[BoxLoss, Floats, Callable[[Floats], Floats]]] = [
        (SoftBelow(), r < 0, lambda r: np.where(r < 0, r**2 / 2, r)),
        (SoftAbove(), r > 0, lambda r: np.where(r > 0, r**2 / 2, -r)),
    ]
    theta, y, h = (xp.asarray(a, dtype=xp.float64) for a in ([0.5], 0.0 * r, -r))
    for loss, soft, formula in cases:
        point = loss.pointwise(theta, y, h, kappa)
        np.testing.assert_allclose(to_host(point.value), formula(r), atol=1e-15)
        np.testing.assert_allclose(to_host(loss.value(theta, y, 1e9 * h)), formula(1e9 * r))
        curved = to_host(loss.curvature(theta, y, h, kappa))
        assert np.all(np.isfinite(curved))
        if kappa == 0.0:
            np.testing.assert_allclose(to_host(point.dual), np.where(soft, r, np.sign(r)), atol=1e-15)
            away = r != 0.0  # the kink has no curvature of its own
            np.testing.assert_allclose(curved[away], 1.0 * soft[away])
        else:
            far = np.full(r.shape, 40.0)
            brute = smallest(lambda p, of=formula: of(-p) + (-r - p) ** 2 / (2 * kappa), -far, far)  # type: ignore[misc]
            np.testing.assert_allclose(to_host(point.lower - 0.5 * kappa * point.dual**2), brute, atol=1e-11)


class Given(BoxLoss):
    """A row as it is handed over."""

    def __init__(self, entries: Any = None) -> None:
        self.entries = entries

    def row(self, theta: Any, y: Any) -> Row:
        return Row(**{"low": -1.0, "high": 1.0, **(self.entries or {})})


@each("name", Row._fields)
@each("shape", [(4,), (6,), (4, 1), (3, 6), (6, 4), (1, 6, 4), (2, 1)])
def test_entries_that_do_not_fit_the_pairs_are_named(xp: Any, name: str, shape: tuple[int, ...]) -> None:
    theta, y = xp.asarray(np.full(4, 0.5)), xp.asarray(np.zeros((6, 1)))
    loss = Given({name: xp.zeros(shape, dtype=xp.float64)})
    if shape in ((4,), (6, 4)):
        assert loss.check(theta, y) is None
        return
    words = rf"{name} of shape {re.escape(str(shape))} for 4 tasks and 6 samples; expected a number, \(4,\).*\(6, 4\)"
    with pytest.raises(ValueError, match=words):
        loss.check(theta, y)


def test_without_targets_a_row_has_one_value_per_task_at_most() -> None:
    theta = np.full(4, 0.5)
    for shape in ((), (1,), (4,), (1, 4)):
        assert Given({"high": np.ones(shape)}).check(theta, None) is None
    with pytest.raises(ValueError, match=r"high of shape \(6, 1\) for 4 tasks; expected a number, \(4,\)"):
        Given({"high": np.ones((6, 1))}).check(theta, None)


def test_entries_that_are_no_arrays_are_named() -> None:
    with pytest.raises(TypeError, match="dead_zone of type list; it must be a number, an array"):
        Given({"dead_zone": [0.0, 0.0]}).check(np.full(2, 0.5), np.zeros((3, 1)))


# --------------------------------------------------------------------------------------------- the parameters
@each_loss
def test_clone_is_the_same_loss(loss: Loss) -> None:
    theta, y, h = sample(loss)
    before = loss.get_params()
    twin = clone(loss)
    assert type(twin) is type(loss)
    assert repr(twin) == repr(loss)  # with its parameters, losses among them
    np.testing.assert_array_equal(twin.value(theta, y, h), loss.value(theta, y, h))
    assert loss.get_params() == before


@each_loss
def test_width_is_one_positive_number_per_node(loss: Loss) -> None:
    theta, _, _ = sample(loss)
    width = loss.width(theta)
    assert width.shape == theta.shape
    assert np.all(width > 0.0)


def test_level_sets_are_smoothed_over_the_same_width_at_every_level() -> None:
    loss = LevelSet()
    theta = np.array([0.05, 0.3, 1.0])
    h = np.linspace(-1.0, 1.0, 2001)[:, None] + np.zeros(3)
    curved = np.sum(loss.curvature(theta, None, h, 0.25 * loss.width(theta)) > 0.0, axis=0)
    assert np.ptp(curved) <= 1
    assert curved[0] == pytest.approx(250, abs=2)


@each("kappa", [0.0, -1.0, np.inf, np.nan, "wide", None])
def test_m_quantile_wants_a_positive_kappa(kappa: Any) -> None:
    with pytest.raises(ValueError, match=r"kappa=.*must be a finite number above 0"):
        MQuantile(kappa).value(np.array([0.5]), np.zeros((1, 1)), np.zeros((1, 1)))


@each("kappa", [-1.0, np.inf, np.nan, "wide", None])
def test_hinge_wants_a_kappa_of_at_least_zero(kappa: Any) -> None:
    with pytest.raises(ValueError, match=r"CostSensitiveHinge: kappa=.*must be a finite number at least 0"):
        CostSensitiveHinge(kappa).value(np.array([0.5]), np.ones((1, 1)), np.zeros((1, 1)))


def test_hinge_wants_labels() -> None:
    with pytest.raises(ValueError, match="was given no labels; it needs targets −1 and 1"):
        CostSensitiveHinge().value(np.array([0.5]), None, np.zeros((1, 1)))


def test_hinge_takes_no_other_labels(xp: Any) -> None:
    loss = CostSensitiveHinge()
    loss.check_targets(xp.asarray([[1.0], [-1.0], [1.0]]))
    for wrong in ([[1.0], [0.0]], [[2.0]], [[-1.0], [float("nan")]]):
        with pytest.raises(ValueError, match="targets other than −1 and 1; recode the labels"):
            loss.check_targets(xp.asarray(wrong))
    with pytest.raises(ValueError, match="targets other than −1 and 1"):
        loss.check_targets(None)


@each_loss
def test_a_loss_takes_the_targets_it_is_made_for(loss: Loss) -> None:
    theta, y = sample(loss)[:2]
    assert loss.check_targets(y) is None
    assert loss.check(theta, y) is None


@each_loss
def test_default_tasks_are_an_interval_of_the_domain(loss: Loss) -> None:
    low, high = loss.support or loss.domain
    assert np.isfinite([low, high]).all()
    assert loss.domain[0] <= low < high <= loss.domain[1]
    assert loss.dim in (None, 1)


def test_abstract_losses_cannot_be_made() -> None:
    for cls in (Loss, BoxLoss):
        with pytest.raises(TypeError, match="abstract"):
            cls()
