"""A loss given by value and slope, or by a function, is as good as a row of the table, and its certificate as true."""

from __future__ import annotations

import importlib.util
import math
import pickle
import re
import sys
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import wrightomega
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from infinitask import InfiniteTaskEstimator
from infinitask._base.arrays import differentiate, namespace, to_host
from infinitask.datasets import make_sine
from infinitask.losses import (
    BoxLoss,
    ConvexLoss,
    CostSensitiveHinge,
    EpsilonInsensitive,
    Expectile,
    FunctionLoss,
    LevelSet,
    Loss,
    MQuantile,
    Pinball,
)
from infinitask.losses._rows import NonCrossing
from infinitask.measures import Discrete, ProductMeasure, Uniform
from tests.support.each import each

Floats = np.ndarray[Any, Any]

ROWS: list[BoxLoss] = [
    Pinball(),
    MQuantile(0.3),
    Expectile(),
    CostSensitiveHinge(),
    LevelSet(),
    EpsilonInsensitive(),
    NonCrossing(0.3),
]
KAPPAS = [1e-8, 1e-3, 0.02, 0.4, 10.0]
BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"no {name} installed"))
    for name in ("torch", "jax")
]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


class Copy(ConvexLoss):
    """A row of the table, known by value and slope only."""

    def __init__(self, row: Any = None) -> None:
        self.row = row

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return self.row.value(theta, y, h)

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return self.row.slope(theta, y, h)


class Leaning(Copy):
    """At a kink the slope of the right-hand side, not the least in modulus."""

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return self.row.slope(theta, y, np.nextafter(h, np.inf))


class Deviance(ConvexLoss):
    """θ (exp(h) − y h + y log y − y): exponential on one side, a line on the other."""

    def __init__(self, smooth_scale: float = 0.0) -> None:
        self.smooth_scale = smooth_scale

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        xp = namespace(h)
        positive = xp.where(y > 0, y, xp.ones_like(y))
        return theta * (xp.exp(h) - y * h + xp.where(y > 0, y * xp.log(positive) - y, 0.0 * y))

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return theta * (namespace(h).exp(h) - y)


class LogCosh(ConvexLoss):
    """log(cosh(θ r))/θ."""

    smooth_scale = math.inf

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        a = theta * np.abs(y - h)
        return (a + np.log1p(np.exp(-2.0 * a)) - math.log(2.0)) / theta

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return np.tanh(theta * (h - y))


def sample(row: Loss, n: int = 80, m: int = 6) -> tuple[Floats, Floats | None, Floats]:
    """θ over Θ with its ends, targets that the loss understands, half of the h close to the kink and some at it."""
    rng = np.random.default_rng(0)
    theta = np.linspace(*(row.support or row.domain), m)
    y: Floats | None = rng.normal(size=(n, 1))
    if isinstance(row, CostSensitiveHinge):
        y = np.sign(y)
    elif isinstance(row, (LevelSet, NonCrossing)):
        y = None
    h = rng.normal(scale=1.5, size=(n, m))
    h[::2] = 0.02 * h[::2] + (0.0 if y is None else y[::2])
    h[:4] = 0.0 if y is None else y[:4]
    return theta, y, h


def centres(row: BoxLoss, theta: Floats, y: Floats | None, h: Floats) -> list[Floats | None]:
    return [None, row.pointwise(theta, y, h[::-1], 0.1).dual, row.pointwise(theta, y, h, 0.1).dual]


each_row = each("row", ROWS, ids=repr)


# ------------------------------------------------------------------------------------- as good as the row itself
@each_row
@each("kind", [Copy, Leaning])
@each("kappa", [*KAPPAS, np.linspace(0.1, 0.9, 6)], ids=str)
def test_envelope_is_that_of_the_row(row: BoxLoss, kind: type[Copy], kappa: Any) -> None:
    theta, y, h = sample(row)
    for centre in centres(row, theta, y, h):
        expected = row.pointwise(theta, y, h, kappa, centre)
        found = kind(row).pointwise(theta, y, h, kappa, centre)
        np.testing.assert_array_equal(found.value, row.value(theta, y, h))
        np.testing.assert_allclose(found.lower, expected.lower, atol=1e-10)
        # u is a difference of values of h over κ: it cannot be known better than h is
        np.testing.assert_allclose(found.dual, expected.dual, atol=1e-12 + 1e-15 / np.min(kappa), rtol=1e-7)


@each_row
def test_without_smoothing_the_lower_bound_is_the_loss(row: BoxLoss) -> None:
    theta, y, h = sample(row)
    point = Copy(row).pointwise(theta, y, h)
    np.testing.assert_array_equal(point.lower, row.value(theta, y, h))
    np.testing.assert_array_equal(point.dual, -row.slope(theta, y, h))


@each_row
@each("kappa", KAPPAS[1:])
def test_curvature_is_that_of_the_row(row: BoxLoss, kappa: float) -> None:
    theta, y, h = sample(row)
    step = 1e-3 * min(kappa, 1.0)
    for centre in centres(row, theta, y, h):
        expected = row.curvature(theta, y, h, kappa, centre)
        around = [row.curvature(theta, y, h + d, kappa, centre) for d in (-step, step)]
        away = (around[0] == expected) & (expected == around[1])
        found = Copy(row).curvature(theta, y, h, kappa, centre)
        assert np.mean(away) > 0.9
        np.testing.assert_allclose(found[away], expected[away], rtol=5e-3, atol=1e-6)
        assert np.all(found <= 1.0 / kappa)
        assert np.all(found >= 0.0)


def test_curvature_of_the_loss_itself_is_its_second_derivative() -> None:
    theta, y, h = sample(LevelSet(), m=5)
    y = np.abs(h[:, :1])
    found = Deviance().curvature(theta, y, h)
    np.testing.assert_allclose(found, theta * np.exp(h), rtol=1e-6)
    np.testing.assert_array_equal(Copy(EpsilonInsensitive()).curvature(theta, y, 5.0 + h), 0.0)


@each_row
def test_dual_term_is_that_of_the_row(row: BoxLoss) -> None:
    theta, y, h = sample(row)
    for kappa in (0.05, 2.0):
        u = row.pointwise(theta, y, h, kappa).dual
        np.testing.assert_allclose(Copy(row).dual(theta, y, u), row.dual(theta, y, u), atol=1e-11)
    far = np.full(h.shape, 1e3)
    low, high = (row.pointwise(theta, y, side * far).dual for side in (1.0, -1.0))
    if np.max(high) < 100.0:
        for u in (low - 1e-6, high + 1e-6):
            assert np.all(Copy(row).dual(theta, y, u) == -np.inf)


@each_row
def test_sums_are_those_of_the_row(row: BoxLoss) -> None:
    theta, y, h = sample(row)
    weights = np.linspace(0.5, 1.5, theta.size)
    for kappa in (0.0, 0.3 * row.width(theta)):
        for centre in centres(row, theta, y, h):
            centre = None if np.all(kappa == 0.0) else centre
            found = Copy(row).sums(theta, y, h, weights, kappa, centre)
            for a, b in zip(found, row.sums(theta, y, h, weights, kappa, centre), strict=True):
                # at a kink of the loss itself the row chooses the least slope, and so does the copy
                np.testing.assert_allclose(a, b, atol=1e-11)


# ----------------------------------------------------------------------------------------------- bounds for sure
def bound_excess(loss: Loss, theta: Any, y: Any, h: Any, kappa: Any, centre: Any, points: Any) -> float:
    """By how much lower + u (h − p) ≤ ℓ(p), the meaning of a dual point, is missed at any p, relative to the terms."""
    point = loss.pointwise(theta, y, h, kappa, centre)
    worst = -math.inf
    for p in points:
        there = loss.value(theta, y, 0.0 * h + p)
        size = np.abs(there) + np.abs(point.lower) + np.abs(point.dual * (h - p))
        worst = max(worst, float(np.max((point.lower + point.dual * (h - p) - there) / (1.0 + size))))
    return worst


@each_row
@each("kappa", [0.0, *KAPPAS])
def test_every_lower_bound_holds_everywhere(row: BoxLoss, kappa: float) -> None:
    theta, y, h = sample(row)
    points = np.concatenate([np.linspace(-3.0, 3.0, 121), [-1e3, 1e3], h[:20, 0]])
    for centre in centres(row, theta, y, h):
        assert bound_excess(Leaning(row), theta, y, h, kappa, centre, points) <= 1e-15


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_lower_bounds_hold_even_if_the_search_is_cut_short(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr("infinitask.losses._convex.MAX_STEPS", steps)
    points = np.linspace(-3.0, 3.0, 121)
    off = []
    for row in (MQuantile(0.3), Expectile(), EpsilonInsensitive()):
        theta, y, h = sample(row)
        assert bound_excess(Copy(row), theta, y, h, 0.4, None, points) <= 1e-15
        difference = Copy(row).pointwise(theta, y, h, 0.4).dual - row.pointwise(theta, y, h, 0.4).dual
        off.append(np.max(np.abs(difference)))
    assert max(off) > 1e-6  # the search was not over


@each("kappa", [1e-3, 0.05, 0.72])
@each("at", [-1000.0, -5.0, 0.0, 3.0, 20.0, 65.0, 600.0, 800.0])
def test_an_exponential_loss_has_the_envelope_that_is_known(at: float, kappa: float) -> None:
    """θ(exp(p) − y) + (p − h)/κ = 0 is solved by Wright's omega; exp(800) is no number any more."""
    theta, y = np.array([0.5, 5.0]), np.array([[0.0], [1.0], [30.0], [3000.0]])
    h = np.full((4, 2), at)
    point = Deviance().pointwise(theta, y, h, kappa)
    moved = at + kappa * theta * y
    omega = np.real(wrightomega(np.log(kappa * theta) + moved))
    expected = theta * y - omega / kappa
    np.testing.assert_allclose(point.dual, expected, rtol=1e-9, atol=1e-9)
    envelope = point.lower - 0.5 * kappa * point.dual**2
    p = at + kappa * expected
    value = Deviance().value(theta, y, p) + 0.5 * kappa * expected**2
    np.testing.assert_allclose(envelope, value, rtol=1e-9, atol=1e-8)


def test_units_do_not_matter() -> None:
    theta, y, h = sample(Pinball())
    for unit in (1e-6, 1e6):
        plain = Copy(Pinball()).pointwise(theta, y, h, 0.2)
        scaled = Copy(Pinball()).pointwise(theta, unit * y, unit * h, 0.2 * unit)
        np.testing.assert_allclose(scaled.dual, plain.dual, atol=1e-9)
        np.testing.assert_allclose(scaled.lower, unit * plain.lower, atol=1e-9 * unit)


def test_every_task_may_have_targets_of_its_own() -> None:
    theta, y, h = sample(Pinball())
    assert y is not None
    own = y + np.linspace(-1.0, 1.0, theta.size)
    found = Copy(Pinball()).pointwise(theta, own, h, 0.2)
    expected = Pinball().pointwise(theta, own, h, 0.2)
    np.testing.assert_allclose(found.dual, expected.dual, atol=1e-11)
    assert Copy(Pinball()).check(theta, own) is None


@each("dtype", ["float64", "float32"])
def test_libraries_agree_and_precision_stays(xp: Any, dtype: str) -> None:
    theta, y, h = sample(Expectile())
    centre = Expectile().pointwise(theta, y, h[::-1], 0.1).dual
    arrays = [xp.asarray(a, dtype=getattr(xp, dtype)) for a in (theta, y, h, centre)]
    exact = 1e-11 if dtype == "float64" else 1e-4
    for loss in (Copy(Expectile()), Copy(Pinball())):
        found = loss.pointwise(*arrays[:3], 0.3, arrays[3])
        for a, b in zip(found, loss.pointwise(theta, y, h, 0.3, centre), strict=True):
            assert a.dtype == getattr(xp, dtype)
            np.testing.assert_allclose(to_host(a), b, atol=exact, rtol=exact)
        u = 0.9 * found.dual
        expected = loss.dual(theta, y, to_host(u).astype(np.float64))
        np.testing.assert_allclose(to_host(loss.dual(*arrays[:2], u)), expected, atol=10 * exact, rtol=exact)
        assert loss.curvature(*arrays[:3], 0.3, arrays[3]).dtype == getattr(xp, dtype)
        assert loss.check(arrays[0], arrays[1]) is None


def test_smooth_scale_says_what_a_solver_need_not_smooth() -> None:
    assert LogCosh().smooth(1e9)
    assert not Copy(Expectile()).smooth(1e-9)
    assert [Deviance(0.3).smooth(scale) for scale in (0.1, 0.3, 1.0)] == [True, True, False]


def test_a_loss_without_value_or_slope_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ConvexLoss()  # type: ignore[abstract]


# ---------------------------------------------------------------------------------------------------- the check
class WrongSlope(Copy):
    def __init__(self, row: Any = None, factor: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(row)
        self.factor = factor
        self.shift = shift

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return self.factor * self.row.slope(theta, y, h) + self.shift


class Cauchy(ConvexLoss):
    """log(1 + θ r²), which bends down far from y."""

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return np.log1p(theta * (y - h) ** 2)

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return -2.0 * theta * (y - h) / (1.0 + theta * (y - h) ** 2)


@each_row
@each("scale", [1e-3, 1.0, 1e5])
def test_no_row_of_the_table_is_suspected(row: BoxLoss, scale: float) -> None:
    theta, y, _ = sample(row, n=200, m=40)
    y = y if y is None or isinstance(row, CostSensitiveHinge) else scale * y
    for loss in (Copy(row), Leaning(row)):
        assert loss.check(theta, y) is None


@each("targets", [3.0, 30.0, 3000.0])
def test_no_exponential_loss_is_suspected(targets: float) -> None:
    y = np.random.default_rng(0).poisson(targets, size=(100, 1)).astype(float)
    assert Deviance().check(np.linspace(0.5, 5.0, 8), y) is None


@each("wrong", [{"factor": -1.0}, {"factor": 2.0}, {"factor": 1.01}, {"shift": 0.01}], ids=str)
def test_a_wrong_slope_is_seen(wrong: dict[str, float]) -> None:
    theta, y, _ = sample(Expectile())
    for row in (Expectile(), Pinball()):
        found = WrongSlope(row, **wrong).check(theta, y)
        assert found is not None
        assert not found.certified
        assert re.search(r"is not convex in h, or its slope is not its derivative: at θ = .*, y = ", found.sentence)


def test_a_loss_that_is_not_convex_is_seen() -> None:
    theta, y, _ = sample(EpsilonInsensitive())
    theta = theta + 0.1
    told = Cauchy().check(theta, y)
    assert told is not None
    assert "The duality gap is no certificate" in told.sentence
    found = re.search(r"θ = (\S+), y = (\S+) .* h = (\S+) lies above the loss at h = (\S+) by", told.sentence)
    assert found is not None
    t, target, a, b = (float(number) for number in found.groups())
    task, point = np.array([t]), np.array([[target]])
    here = Cauchy().value(task, point, np.array([[a]])) + Cauchy().slope(task, point, np.array([[a]])) * (b - a)
    assert here[0, 0] > Cauchy().value(task, point, np.array([[b]]))[0, 0]


def test_the_check_sees_a_single_wrong_task_or_target_at_the_edge() -> None:
    class Edge(Copy):
        def slope(self, theta: Any, y: Any, h: Any) -> Any:
            slope = super().slope(theta, y, h)
            return np.where((theta > self.row_edge) | (y > self.row_edge), -slope, slope)

        row_edge = 0.999

    theta = np.linspace(0.0, 1.0, 500)
    y = np.linspace(-1.0, 0.5, 2000)[:, None]
    assert Edge(Expectile()).check(theta, y) is not None
    y[1234] = 1.0
    assert Edge(Expectile()).check(0.9 * theta, y) is not None


@each("y", [np.array([[2.0]]), np.full((5, 1), -3.0), np.zeros((4, 1))], ids=["one", "equal", "zero"])
def test_few_targets_are_enough_for_a_check(y: Floats) -> None:
    theta = np.array([0.3])
    assert Copy(Expectile()).check(theta, y) is None
    assert WrongSlope(Expectile(), factor=1.1).check(theta, y) is not None


class Flawed(LogCosh):
    def __init__(self, what: str = "") -> None:
        self.what = what

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        value = super().value(theta, y, h)
        flaws = {
            "row": value[:, 0],
            "number": float(value[0, 0]),
            "nan": np.where(h > 0.5, np.nan, value),
            "inf": value + np.where(h == 0.0, np.inf, 0.0),
        }
        return flaws.get(self.what, value)

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        slope = super().slope(theta, y, h)
        return slope.T if self.what == "turned" else slope


@each(
    ("what", "message"),
    [
        ("row", r"Flawed\.value returned an array of shape \(8,\) .* and h of shape \(8, 7\)"),
        ("number", r"Flawed\.value returned a number, an array of shape \(\)"),
        ("turned", r"Flawed\.slope returned an array of shape \(7, 8\) .* it must have the shape of h"),
        ("nan", r"Flawed\.value returned nan at θ = .*, y = .*, h = .*; it must be a finite number"),
        ("inf", r"Flawed\.value returned inf at θ = .*, y = .*, h = 0; it must be a finite number"),
    ],
)
def test_answers_that_cannot_be_are_refused(what: str, message: str) -> None:
    # as many targets as tasks: an answer that is turned over must be seen even so
    theta, y = np.linspace(0.5, 2.0, 7), np.linspace(-1.0, 1.0, 7)[:, None]
    with pytest.raises(ValueError, match=message):
        Flawed(what).check(theta, y)


class Likelihood(Deviance):
    """exp(h) − y h, whose smallest value is negative for y > e."""

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return theta * (np.exp(h) - y * h)


class Line(ConvexLoss):
    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return theta * h + 0.0 * y

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return theta + 0.0 * h


def test_a_loss_may_be_negative() -> None:
    """A term in θ and y alone changes the objective by a constant, and nothing else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y = rng.poisson(8.0 * np.exp(0.3 * X[:, 0])).astype(float)
    above, below = (
        InfiniteTaskEstimator(loss, measure=(0.5, 2.0), n_nodes=5, alpha=0.1, tol=1e-6).fit(X, y)
        for loss in (Deviance(), Likelihood())
    )
    assert below.objective_ < 0.0 < above.objective_
    for model in (above, below):
        assert model.dual_gap_ <= 1e-6
        assert np.max(model.solution_.history[:, 2]) <= np.min(model.solution_.history[:, 1])
    np.testing.assert_allclose(above.decision_function(X, 1.0), below.decision_function(X, 1.0), atol=1e-4)


def test_a_loss_may_have_no_smallest_value() -> None:
    """min θ h + (λ/2)‖h‖²: nothing but the ridge holds it."""
    X = np.linspace(0.0, 1.0, 9)[:, None]
    model = InfiniteTaskEstimator(Line(), measure=(0.5, 2.0), n_nodes=5, alpha=1.0, alpha_bias=None, tol=1e-9)
    model.fit(X, X[:, 0])
    assert model.dual_gap_ <= 1e-9
    assert model.objective_ == pytest.approx(-0.5 * (model.field_.norm**2 + np.sum(model.field_.bias_coef**2)))


# --------------------------------------------------------------------------------------------------- a function
def by_operators(theta: Any, y: Any, h: Any) -> Any:
    """The expectile loss without a function of any library."""
    r = y - h
    return theta * r**2 * (r > 0) + (1.0 - theta) * r**2 * (r <= 0)


def quartic(theta: Any, y: Any, h: Any) -> Any:
    return theta * (y - h) ** 4


def with_numpy(theta: Any, y: Any, h: Any) -> Any:
    return np.abs(y - h) * theta


@pytest.mark.parametrize("backend", BACKENDS)
@each("dtype", ["float64", "float32"])
def test_a_function_is_differentiated(xp: Any, dtype: str, backend: str) -> None:
    arrays = [xp.asarray(a, dtype=getattr(xp, dtype)) for a in sample(Expectile())]
    value, slope = differentiate(by_operators, backend)(*arrays)
    exact = 1e-13 if dtype == "float64" else 1e-5
    for found, expected in ((value, Expectile().value(*arrays)), (slope, Expectile().slope(*arrays))):
        assert namespace(found) is xp
        assert found.dtype == getattr(xp, dtype)
        np.testing.assert_allclose(to_host(found), to_host(expected), atol=exact, rtol=exact)


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_that_may_not_be_written_are_left_alone(backend: str) -> None:
    arrays = sample(Expectile())
    before = [np.array(a) for a in arrays]
    for a in arrays:
        assert a is not None
        a.flags.writeable = False
    differentiate(by_operators, backend)(*arrays)
    for a, b in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_without_targets(backend: str) -> None:
    theta, _, h = sample(LevelSet())
    loss = FunctionLoss(lambda theta, y, h: (h < 0) * -h / theta, backend)
    np.testing.assert_allclose(loss.slope(theta, None, h), LevelSet().slope(theta, None, h), atol=1e-12)
    assert loss.check(theta, None) is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_with_numpy_inside_is_told_in_a_sentence(backend: str) -> None:
    with pytest.raises(TypeError, match=rf"use operators and functions of {backend}"):
        FunctionLoss(with_numpy, backend).value(*sample(Expectile()))


@needs_torch
def test_a_function_that_forgets_h_is_told_in_a_sentence() -> None:
    with pytest.raises(TypeError, match="let the result depend on h"):
        FunctionLoss(lambda theta, y, h: theta * y, "torch").value(*sample(Expectile()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_loss_can_be_cloned_and_pickled(backend: str) -> None:
    args = sample(Expectile())
    loss = FunctionLoss(quartic, backend, smooth_scale=math.inf)
    expected = loss.pointwise(*args, 0.2)
    for twin in (clone(loss), pickle.loads(pickle.dumps(loss))):
        assert twin.get_params() == loss.get_params()
        for a, b in zip(twin.pointwise(*args, 0.2), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_unknown_backend_is_told_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="backend='tape' was given; it must be 'auto', 'torch' or 'jax'"):
        FunctionLoss(quartic, "tape").value(*sample(Expectile()))


@pytest.mark.parametrize("backend", ["auto", "torch", "jax"])
def test_a_missing_library_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    for name in ("torch", "jax"):
        monkeypatch.setitem(sys.modules, name, None)
    extra = (
        r"infinitask\[torch\]` or `pip install infinitask\[jax\]" if backend == "auto" else rf"infinitask\[{backend}\]"
    )
    with pytest.raises(ImportError, match=rf"backend='{backend}'.*is not installed.*{extra}"):
        FunctionLoss(quartic, backend).value(*sample(Expectile()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_auto_takes_what_is_there(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    monkeypatch.setitem(sys.modules, "jax" if backend == "torch" else "torch", None)
    theta, y, h = sample(Expectile())
    np.testing.assert_allclose(FunctionLoss(quartic).slope(theta, y, h), -4.0 * theta * (y - h) ** 3, atol=1e-12)


# --------------------------------------------------------------------------------------------------- estimators
@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats]:
    return make_sine(60, random_state=0)


def fit(loss: Any, data: tuple[Floats, Floats], **params: Any) -> Any:
    given = {"measure": (0, 1), "n_nodes": 8, "alpha": 1e-2, "alpha_bias": None, "tol": 1e-6, **params}
    return InfiniteTaskEstimator(loss, **given).fit(*data)


@each("solver", ["auto", "lbfgs", "newton"])
@each("row", [Pinball(), Expectile(), EpsilonInsensitive()], ids=repr)
def test_a_copy_is_fitted_as_well_as_the_row(row: BoxLoss, solver: str, data: tuple[Floats, Floats]) -> None:
    best = fit(row, data, tol=1e-9, solver="newton")
    model = fit(Copy(row), data, solver=solver)
    assert model.dual_gap_ <= model.tol
    assert model.objective_ == pytest.approx(best.objective_, rel=1e-6)
    # weak duality at every iterate: all P are above the optimum, all D below it
    history = model.solution_.history
    assert len(history) > 3
    assert np.all(history[:, 1] >= best.objective_ * (1 - 1e-9))
    assert np.all(history[:, 2] <= best.objective_ * (1 + 1e-9))
    assert np.any(history[:, 2] < 0.999 * best.objective_)  # it was not there from the start


@each("params", [{"noncrossing": 0.5}, {"penalty": "integrated"}, {"bias_kernel": None}], ids=str)
def test_a_copy_goes_with_all_penalties(params: dict[str, Any], data: tuple[Floats, Floats]) -> None:
    row, copy = (fit(loss, data, **params) for loss in (Pinball(), Copy(Pinball())))
    assert copy.dual_gap_ <= copy.tol
    assert copy.objective_ == pytest.approx(row.objective_, rel=2e-6)


def reference(loss: ConvexLoss, model: Any, X: Floats, y: Floats, gamma: float, task_gamma: float) -> float:
    """min P over all functions of the two kernels, by SciPy, from the kernel matrices themselves."""
    nodes, weights = model.nodes_, model.weights_
    roots = []
    for points, g in ((X, gamma), (nodes[:, None], task_gamma)):
        e, V = np.linalg.eigh(np.exp(-g * np.sum((points[:, None] - points[None]) ** 2, axis=2)))
        roots.append(V[:, e > 1e-13] * np.sqrt(e[e > 1e-13]))
    rows, cols = roots
    shape = rows.shape[1], cols.shape[1]

    def primal(c: Floats) -> tuple[float, Floats]:
        H = rows @ c.reshape(shape) @ cols.T
        P = np.mean(loss.value(nodes, y[:, None], H) @ weights) + 0.5 * model.alpha * (c @ c)
        G = rows.T @ (loss.slope(nodes, y[:, None], H) * weights) @ cols / y.size
        return P, G.ravel() + model.alpha * c

    options = {"maxiter": 20_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-10}
    return float(minimize(primal, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options).fun)


@each("solver", ["auto", "lbfgs", "newton"])
@each("smooth", [True, False])
def test_log_cosh_agrees_with_scipy(solver: str, smooth: bool, data: tuple[Floats, Floats]) -> None:
    X, y = data
    loss = LogCosh() if smooth else Copy(LogCosh())
    params = {"measure": (0.5, 5.0), "gamma": 2.0, "task_gamma": 0.1, "bias_kernel": None, "alpha": 1e-3}
    model = fit(loss, data, solver=solver, **params)
    assert model.dual_gap_ <= model.tol
    assert model.objective_ == pytest.approx(reference(LogCosh(), model, X, y, 2.0, 0.1), rel=1e-6)


@each("solver", ["auto", "lbfgs", "newton"])
@each("smooth_scale", [math.inf, 0.0])
def test_counts_are_fitted_whether_or_not_the_loss_says_it_is_smooth(smooth_scale: float, solver: str) -> None:
    """exp(h) reaches far: where a solver's step is too long the envelope spans dozens of powers of ten."""
    X, _ = make_sine(60, random_state=0)
    y = np.random.default_rng(0).poisson(np.exp(1.0 + 2.0 * np.sin(3.0 * X[:, 0]))).astype(float)
    params = {"measure": (0.5, 5.0), "gamma": 2.0, "task_gamma": 0.1, "bias_kernel": None, "alpha": 1e-3}
    model = fit(Deviance(smooth_scale), (X, y), solver=solver, **params)
    assert model.dual_gap_ <= model.tol
    assert model.objective_ == pytest.approx(reference(Deviance(), model, X, y, 2.0, 0.1), rel=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_is_fitted_as_well_as_the_row(backend: str, data: tuple[Floats, Floats]) -> None:
    model = fit(FunctionLoss(by_operators, backend, smooth_scale=math.inf), data)
    assert model.dual_gap_ <= model.tol
    assert model.objective_ == pytest.approx(fit("expectile", data).objective_, rel=2e-6)
    twin = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(twin.predict(data[0], [0.1, 0.9]), model.predict(data[0], [0.1, 0.9]))


@needs_torch
def test_a_plain_function_will_do(data: tuple[Floats, Floats]) -> None:
    model = fit(quartic, data, measure=(0.5, 2.0), n_nodes=4, tol=1e-4)
    assert model.dual_gap_ <= model.tol
    assert clone(model).loss is quartic


@needs_torch
def test_a_function_is_fitted_where_the_data_live(data: tuple[Floats, Floats]) -> None:
    here, there = (fit(FunctionLoss(quartic, smooth_scale=math.inf), data, device=d) for d in (None, "cpu"))
    assert there.dual_gap_ <= there.tol
    assert there.objective_ == pytest.approx(here.objective_, rel=2e-6)


def test_tasks_may_be_points_of_a_plane(data: tuple[Floats, Floats]) -> None:
    class TubePinball(ConvexLoss):
        def value(self, theta: Any, y: Any, h: Any) -> Any:
            r = np.abs(y - h) - theta[:, 1]
            return np.maximum(r, 0.0) * np.where(y > h, theta[:, 0], 1.0 - theta[:, 0])

        def slope(self, theta: Any, y: Any, h: Any) -> Any:
            beyond = np.abs(y - h) > theta[:, 1]
            return beyond * np.where(y > h, -theta[:, 0], 1.0 - theta[:, 0])

    plane = ProductMeasure([Uniform(0.05, 0.95), Uniform(0.0, 0.5)])
    model = fit(TubePinball(), data, measure=plane, quadrature="sobol", n_nodes=16, random_state=0, tol=1e-4)
    assert model.dual_gap_ <= model.tol
    low, high = model.predict(data[0], [[0.1, 0.1], [0.9, 0.1]]).T
    assert np.mean(high > low) > 0.95


def test_targets_of_every_task_are_fitted(data: tuple[Floats, Floats]) -> None:
    X, y = data
    several = np.column_stack([y, 2.0 * y, -y])
    params = {"measure": Discrete([0.2, 0.5, 0.8]), "quadrature": "gauss-legendre", "tol": 1e-5}
    row, copy = (fit(loss, (X, several), **params) for loss in (Expectile(), Copy(Expectile())))
    assert copy.objective_ == pytest.approx(row.objective_, rel=2e-5)


def test_a_loss_that_is_not_convex_is_told_at_fit(data: tuple[Floats, Floats]) -> None:
    """One warning, from the line of the user, and nothing that looks like a certificate."""
    model = InfiniteTaskEstimator(Cauchy(), measure=(0.5, 2.0), n_nodes=4, tol=1e-3)
    with pytest.warns(ConvergenceWarning, match="The duality gap is no certificate") as told:
        model.fit(*data)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert model.dual_gap_ == np.inf
    assert not model.solution_.converged
    assert model.solution_.dual == -np.inf
    assert model.solution_.n_evaluations <= 200


def test_a_loss_that_names_no_domain_needs_a_measure(data: tuple[Floats, Floats]) -> None:
    for loss in (LogCosh(), quartic):
        with pytest.raises(ValueError, match=r"measure=None was given with .*; give a measure on Θ"):
            fit(loss, data, measure=None)

    class Bounded(LogCosh):
        domain = (0.5, 2.0)

    assert fit(Bounded(), data, measure=None, tol=1e-4).dual_gap_ <= 1e-4


@each("wrong", [Pinball, "quartic", 3.0, None])
def test_anything_but_a_loss_is_refused(wrong: Any, data: tuple[Floats, Floats]) -> None:
    with pytest.raises(ValueError, match=r"was given; it must be one of 'pinball'.*or a function of \(theta, y, h\)"):
        fit(wrong, data)
