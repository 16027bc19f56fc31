"""Convex penalties on curves, in the general estimator: limits, units, weights, solvers, copies and wrong calls."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from infinitask import InfiniteTaskEstimator, fit_path, load, save
from infinitask.bounds import bound_of
from infinitask.fitting import representer_coefficients
from infinitask.losses import ConvexLoss, CostSensitiveHinge, Expectile, Huber, Loss, Pinball
from infinitask.losses._rows import NonCrossing
from infinitask.measures import ProductMeasure, Uniform
from infinitask.penalties import IntegratedPenalty, IntegratedRidge, Penalty, Ridge
from infinitask.streaming import Blocks
from tests.support.each import each

Floats = np.ndarray[Any, Any]

VARIATION = IntegratedPenalty((0, 0), of="slope")
CEILING = IntegratedPenalty((-np.inf, 0.3))
BOTH = Ridge() + 0.05 * VARIATION + 0.5 * CEILING
LEVELS = np.linspace(0.05, 0.95, 19)


def sample(n: int = 50) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, size=(n, 1))
    return X, np.sin(5.0 * X[:, 0]) + (0.2 + X[:, 0]) * rng.normal(size=n)


X, Y = sample()


def model_of(penalty: Any, loss: Any = "pinball", **params: Any) -> InfiniteTaskEstimator:
    common: dict[str, Any] = {"gamma": 3.0, "alpha": 1e-3, "n_nodes": 8, "measure": (0.05, 0.95)}
    return InfiniteTaskEstimator(loss, penalty=penalty, **(common | params))


def fitted(penalty: Any, loss: Any = "pinball", **params: Any) -> Any:
    return model_of(penalty, loss, **params).fit(X, Y)


def slopes(model: Any) -> Floats:
    return np.asarray(model.field_(X, model.nodes_, order=1))


def mean(model: Any, values: Floats) -> float:
    """∫ E v dμ over the training rows and nodes."""
    return float(np.mean(values @ model.weights_))


def relu(theta: Any, v: Any) -> Any:
    return (v - 0.3).relu()


class Cosh(ConvexLoss):
    """A convex function with a value and a slope, of NumPy arrays."""

    smooth_scale = 1.0

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return np.cosh(h) - 1.0 + 0.0 * theta

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return np.sinh(h) + 0.0 * theta


# ---------------------------------------------------------------------------------------------------- the limits
@each("of", ["value", "slope"])
@each("loss", ["pinball", "expectile", "squared"])
def test_a_weight_near_zero_gives_the_model_without_it(loss: str, of: str) -> None:
    task_kernel = {"task_gamma": 5.0, "tol": 1e-8}
    plain = fitted("ridge", loss, alpha_bias=1e-3, **task_kernel)
    tiny = fitted(Ridge() + 1e-9 * IntegratedPenalty((0, 0), of), loss, alpha_bias=1e-3, **task_kernel)
    assert tiny.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    np.testing.assert_allclose(tiny.predict(X, LEVELS), plain.predict(X, LEVELS), atol=2e-3)


@each("loss", ["pinball", "expectile"])
def test_total_variation_makes_all_tasks_one(loss: str) -> None:
    """The limit has the same value for every θ: it minimises the mean loss over θ, here that of θ = ½."""
    plain, heavy = fitted("ridge", loss), fitted(Ridge() + 100.0 * VARIATION, loss, tol=1e-6)
    assert np.mean(np.ptp(plain.predict(X, LEVELS), axis=1)) > 1.0
    curves = heavy.predict(X, LEVELS)
    assert np.max(np.ptp(curves, axis=1)) < 2e-3
    alone = fitted("ridge", loss, measure=(0.499, 0.501), n_nodes=1, tol=1e-6).predict(X, 0.5)
    assert np.mean(np.abs(curves[:, 9] - alone)) < 0.02


def test_total_variation_makes_curves_piecewise_constant_as_its_weight_grows() -> None:
    weights, found = [0.003, 0.03, 0.3], []
    for weight in weights:
        model = fitted(Ridge() + weight * VARIATION, task_gamma=50.0, n_nodes=20)
        found.append(mean(model, np.abs(slopes(model))))
    assert found[0] > 1.0
    assert found[0] > found[1] > found[2]
    middle = fitted(Ridge() + 0.03 * VARIATION, task_gamma=50.0, n_nodes=20)
    size = np.abs(slopes(middle))
    assert np.mean(size < 0.02) > 0.1, "some slopes vanish"
    assert np.mean(size > 0.2) > 0.2, "and others do not"


def test_a_ceiling_is_kept_as_its_weight_grows() -> None:
    plain, soft, firm = (fitted(p) for p in ("ridge", Ridge() + 0.2 * CEILING, Ridge() + 100.0 * CEILING))
    above = [mean(model, np.maximum(model.predict(X, model.nodes_) - 0.3, 0.0)) for model in (plain, soft, firm)]
    assert above[0] > 0.2
    assert above[0] > above[1] > above[2]
    assert above[2] < 1e-4


def test_the_penalty_is_the_mean_over_named_rows() -> None:
    far = np.linspace(1.5, 2.5, 8)[:, None]
    plain, there = fitted("ridge"), fitted(Ridge() + 10.0 * IntegratedPenalty((1.0, 1.2), inputs=far))
    assert np.max(np.abs(plain.predict(far, plain.nodes_) - 1.1)) > 1.0
    assert np.max(np.abs(there.predict(far, there.nodes_) - 1.1)) < 0.15
    assert there.objective_ == pytest.approx(plain.objective_, rel=0.2), "the data are fitted as before"


def test_several_penalties_name_rows_of_their_own() -> None:
    near, far = np.linspace(1.2, 1.4, 3)[:, None], np.linspace(5.0, 6.0, 4)[:, None]
    penalty = (
        Ridge()
        + 10.0 * IntegratedPenalty((-np.inf, -1.0), inputs=near)
        + 10.0 * IntegratedPenalty((2.0, np.inf), inputs=far)
    )
    model = fitted(penalty, noncrossing=0.5, noncrossing_inputs=np.vstack([near, far]))
    assert np.max(model.predict(near, LEVELS)) < -0.95
    assert np.min(model.predict(far, LEVELS)) > 1.95
    found = representer_coefficients(model, X)
    assert found.inputs.shape == (len(X) + 14, 1)
    np.testing.assert_allclose(found(far, LEVELS), model.predict(far, LEVELS), atol=1e-6)


# ------------------------------------------------------------------------------------------------ one mechanism
def test_the_penalty_on_crossing_is_one_of_them() -> None:
    params = {"task_gamma": 50.0, "tol": 1e-7, "alpha": 1e-4}
    plain, usual = fitted("ridge", **params), fitted("ridge", noncrossing=0.3, **params)
    assert mean(plain, np.maximum(-slopes(plain), 0.0)) > 0.05, "curves cross without it"
    for penalty in (IntegratedPenalty((0, np.inf), of="slope"), IntegratedPenalty(NonCrossing(), of="slope")):
        model = fitted(Ridge() + 0.3 * penalty, **params)
        assert model.objective_ == pytest.approx(usual.objective_, rel=3e-7)


def test_a_function_and_an_interval_are_the_same() -> None:
    pytest.importorskip("torch")
    pair, function = (fitted(Ridge() + 0.5 * p, tol=1e-6) for p in (CEILING, IntegratedPenalty(relu)))
    assert function.dual_gap_ <= 1e-6
    assert function.objective_ == pytest.approx(pair.objective_, rel=2e-6)


def test_sums_are_associative_and_weights_multiply() -> None:
    params = {"tol": 1e-7}
    one = fitted(0.5 * (2.0 * Ridge() + 0.1 * VARIATION + CEILING), **params)
    other = fitted(0.5 * CEILING + (Ridge() + 0.05 * VARIATION), **params)
    assert one.objective_ == pytest.approx(other.objective_, rel=2e-7)
    total = Ridge() + 2.0 * (IntegratedRidge() + 0.25 * VARIATION)
    assert repr(total) == (
        "SumPenalty(penalties=[Ridge(), IntegratedRidge(),\n"
        "                      IntegratedPenalty(loss=(0, 0), of='slope')],\n"
        "           weights=[1.0, 2.0, 0.5])"
    )
    assert repr(total.quadratic) == repr(Ridge() + 2.0 * IntegratedRidge())
    assert repr(BOTH.quadratic) == repr(Ridge())
    assert repr(clone(total)) == repr(total)
    assert repr(VARIATION * 2) == repr(2 * VARIATION)
    with pytest.raises(ValueError, match="The weight of a penalty=array"):
        np.array([1.0, 2.0]) * VARIATION
    assert fitted(Ridge() + IntegratedPenalty(np.array([0.0, 0.0]))).objective_ == pytest.approx(
        fitted(Ridge() + IntegratedPenalty((0.0, 0.0))).objective_
    )


# -------------------------------------------------------------------------------------------------------- units
@each("loss", ["pinball", "expectile", "squared"])
def test_a_shift_and_a_scale_of_y_change_predictions_alike(loss: str) -> None:
    """a y + b: slopes and their penalty grow by a, the loss by a^p; values and their cap follow y."""
    a, b, degree = 40.0, -700.0, 1 if loss == "pinball" else 2
    cap, weight, params = 0.3, 0.05, {"measure": (0.05, 0.95), "gamma": 3.0, "n_nodes": 8, "tol": 1e-7}
    first = Ridge() + weight * VARIATION + weight * IntegratedPenalty((-np.inf, cap))
    in_units = weight * a ** (degree - 1)
    other = Ridge() + in_units * VARIATION + in_units * IntegratedPenalty((-np.inf, a * cap + b))
    ridge = 1e-3
    plain = InfiniteTaskEstimator(loss, penalty=first, alpha=ridge, **params).fit(X, Y)
    moved = InfiniteTaskEstimator(loss, penalty=other, alpha=ridge * a ** (degree - 2), **params).fit(X, a * Y + b)
    assert moved.objective_ == pytest.approx(a**degree * plain.objective_, rel=1e-6)
    np.testing.assert_allclose(moved.predict(X, LEVELS), a * plain.predict(X, LEVELS) + b, atol=2e-3 * a)


@each("a", [1.0, 1e6])
def test_a_loss_with_a_length_is_solved_in_any_units(a: float) -> None:
    """The slopes of Huber(δ) end at δ: in units of 1e6 the width of its smoothing must follow."""
    penalty = Ridge() + 0.05 / a * IntegratedPenalty(Huber(0.5 * a), of="slope")
    model = model_of(penalty, tol=1e-6, alpha=1e-3 / a).fit(X, a * Y)
    plain = model_of(Ridge() + 0.05 * IntegratedPenalty(Huber(0.5), of="slope"), tol=1e-6).fit(X, Y)
    assert model.dual_gap_ <= 1e-6
    assert model.objective_ == pytest.approx(a * plain.objective_, rel=1e-5)


def test_a_function_sees_values_in_the_units_of_y() -> None:
    pytest.importorskip("torch")
    seen: list[float] = []

    def watched(theta: Any, v: Any) -> Any:
        seen.append(float(v.detach().median()))
        return (v - 1000.3).relu()

    model = model_of(Ridge() + 100.0 * IntegratedPenalty(watched)).fit(X, 1000.0 + Y)
    assert np.max(model.predict(X, model.nodes_)) < 1000.31
    assert 995.0 < float(np.median(seen)) < 1005.0


# ------------------------------------------------------------------------------------------- data and arithmetic
def test_a_weight_of_two_is_a_repeated_row() -> None:
    omega = np.random.default_rng(1).integers(1, 3, size=len(X))
    weighted = model_of(BOTH).fit(X, Y, sample_weight=omega)
    repeated = model_of(BOTH).fit(np.repeat(X, omega, axis=0), np.repeat(Y, omega))
    np.testing.assert_array_equal(weighted.predict(X, LEVELS), repeated.predict(X, LEVELS))


def test_single_precision_gives_the_same_model() -> None:
    double = fitted(BOTH)
    single = model_of(BOTH).fit(X.astype(np.float32), Y.astype(np.float32))
    assert single.dual_gap_ <= single.tol
    np.testing.assert_allclose(single.predict(X, LEVELS), double.predict(X, LEVELS), atol=2e-2)


@pytest.mark.quick("auto")
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton"])
@each(
    "penalty", [BOTH, Ridge() + 0.2 * IntegratedPenalty(Cosh(), of="slope"), Ridge() + 0.1 * VARIATION + 0.2 * CEILING]
)
@each("bias", [1e-3, 0.0, None])
def test_every_solver_certifies_it(solver: str, penalty: Penalty, bias: float | None) -> None:
    params = {"bias_kernel": None} if bias is None else {"alpha_bias": bias}
    model = fitted(penalty, noncrossing=0.1, solver=solver, tol=1e-5, **params)
    assert 0.0 <= model.dual_gap_ <= 1e-5
    assert model.objective_ == pytest.approx(fitted(penalty, noncrossing=0.1, tol=1e-6, **params).objective_, rel=2e-5)


def test_compiled_loops_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setenv("INFINITASK_COMPILED", "0")
    plain = fitted(BOTH, tol=1e-6)
    monkeypatch.setenv("INFINITASK_COMPILED", "1")
    compiled = fitted(BOTH, tol=1e-6)
    assert compiled.objective_ == pytest.approx(plain.objective_, rel=2e-6)


def test_rows_in_blocks_give_the_same() -> None:
    blocks = [(X[i : i + 10], Y[i : i + 10]) for i in range(0, len(X), 10)]
    streamed = model_of(BOTH).fit(Blocks(blocks))
    assert streamed.objective_ == pytest.approx(fitted(BOTH).objective_, rel=2e-4)
    named = model_of(Ridge() + IntegratedPenalty((0, 1), inputs=X[:3]))
    with pytest.raises(ValueError, match=r"IntegratedPenalty\(inputs=…\) was given for rows that are visited in parts"):
        named.fit(Blocks(blocks))


def test_a_warm_start_and_a_path_end_at_the_same_model() -> None:
    model = model_of(BOTH, warm_start=True, tol=1e-6).fit(X, Y)
    first, objective = model.solution_.n_evaluations, model.objective_
    model.fit(X, Y)
    assert model.solution_.n_evaluations < first
    assert model.objective_ == pytest.approx(objective, rel=1e-6)
    for alpha, each_model in zip([1e-2, 1e-3], fit_path(model_of(BOTH), X, Y, alphas=[1e-2, 1e-3]), strict=True):
        assert each_model.objective_ == pytest.approx(fitted(BOTH, alpha=alpha).objective_, rel=2e-4)


def test_a_warm_start_notices_another_weight() -> None:
    model = model_of(BOTH, warm_start=True).fit(X, Y)
    model.set_params(penalty=Ridge() + 50.0 * VARIATION).fit(X, Y)
    assert np.max(np.ptp(model.predict(X, LEVELS), axis=1)) < 0.01


# ------------------------------------------------------------------------------------------------------ copies
def test_copies_are_the_same_model(tmp_path: Path) -> None:
    penalty = BOTH + 0.1 * IntegratedPenalty(Huber(0.5), of="slope", inputs=X[:4] + 2.0)
    model = fitted(penalty)
    expected = model.predict(X, LEVELS)
    save(model, tmp_path / "model")
    for twin in (pickle.loads(pickle.dumps(model)), load(tmp_path / "model")):
        np.testing.assert_array_equal(twin.predict(X, LEVELS), expected)
        np.testing.assert_array_equal(twin.fit(X, Y).predict(X, LEVELS), expected)
    copied = clone(model)
    assert repr(copied.get_params()["penalty"]) == repr(penalty)
    np.testing.assert_array_equal(copied.fit(X, Y).predict(X, LEVELS), expected)


def test_a_search_takes_weights() -> None:
    grid = {"penalty": [Ridge() + weight * VARIATION for weight in (0.01, 100.0)]}
    search = GridSearchCV(model_of("ridge", n_nodes=5, tol=1e-3), grid, cv=3).fit(X, Y)
    assert search.best_params_["penalty"].weights == [1.0, 0.01]


# ------------------------------------------------------------------------------------------------- wrong calls
class Targeted(ConvexLoss):
    """A loss that needs targets."""

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return (y - h) ** 2

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return -2.0 * (y - h)


class Wavy(ConvexLoss):
    """A function that is not convex."""

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return h**2 + 3.0 * np.sin(2.0 * h) + 0.0 * theta

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return 2.0 * h + 6.0 * np.cos(2.0 * h) + 0.0 * theta


@each(
    ("penalty", "params", "sentence"),
    [
        (VARIATION, {}, r"was given without a ridge; .* Add one: Ridge\(\)"),
        (VARIATION + CEILING, {}, r"was given without a ridge; .* Add one: Ridge\(\)"),
        (Ridge() + IntegratedPenalty((0, 0), of="slopes"), {}, "IntegratedPenalty: of='slopes' was given"),
        (
            Ridge() + IntegratedPenalty("absolute"),
            {},
            "IntegratedPenalty: loss='absolute' was given; it must be a pair",
        ),
        (Ridge() + IntegratedPenalty((2, 1)), {}, r"loss=\(2, 1\) was given; it must be a pair \(low, high\)"),
        (Ridge() + IntegratedPenalty((-np.inf, np.inf)), {}, "of which one may be infinite"),
        (Ridge() + IntegratedPenalty((np.nan, 0.0)), {}, "it must be a pair"),
        (Ridge() + IntegratedPenalty(Huber), {}, "it must be a pair"),
        (Ridge() + IntegratedPenalty(Huber(-1.0)), {}, "Huber: delta=-1.0 was given"),
        (Ridge() + IntegratedPenalty(CostSensitiveHinge()), {}, "CostSensitiveHinge was given no labels"),
        (
            Ridge() + IntegratedPenalty(Targeted()),
            {},
            r"of Targeted\(\) failed .*A penalty has no targets",
        ),
        (
            Ridge() + IntegratedPenalty((0, 0), inputs=[1.0]),
            {},
            r"IntegratedPenalty\(inputs=…\) of shape|IntegratedPenalty: inputs",
        ),
        (
            Ridge() + IntegratedPenalty((0, 0), inputs=np.ones((2, 3))),
            {},
            r"IntegratedPenalty\(inputs=…\) of shape \(2, 3\) was given for X with 1",
        ),
        (Ridge() + VARIATION, {"task_kernel": "diagonal"}, "a penalty on the derivative in θ"),
        (IntegratedRidge() + VARIATION, {}, "An IntegratedPenalty of the slope was given with the integrated ridge"),
    ],
)
def test_a_wrong_penalty_is_named(penalty: Any, params: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        fitted(penalty, **params)


def test_a_slope_needs_a_line() -> None:
    plane = ProductMeasure([Uniform(0.0, 1.0), Uniform(0.0, 1.0)])

    class OnPlane(Pinball):
        dim = None

        def row(self, theta: Any, y: Any) -> Any:
            return super().row(theta[:, 0], y)

    with pytest.raises(ValueError, match="derivatives exist for one-dimensional tasks only"):
        fitted(Ridge() + VARIATION, OnPlane(), measure=plane)
    values = fitted(Ridge() + CEILING, OnPlane(), measure=plane, quadrature="sobol", random_state=0)
    assert values.dual_gap_ <= values.tol


def test_the_integrated_ridge_takes_a_penalty_of_values() -> None:
    model = fitted(IntegratedRidge() + 100.0 * CEILING)
    assert model.dual_gap_ <= model.tol
    assert np.max(model.predict(X, model.nodes_)) < 0.31


def test_a_function_that_is_not_convex_is_not_certified() -> None:
    with pytest.warns(UserWarning, match="Wavy is not convex"):
        model = fitted(Ridge() + IntegratedPenalty(Wavy()))
    assert model.dual_gap_ == np.inf


class Kinked(ConvexLoss):
    """|v|, which claims to have no kink."""

    smooth_scale = np.inf

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return np.abs(h) + 0.0 * theta

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return np.sign(h) + 0.0 * theta


class Wells(ConvexLoss):
    """Two wells, 10 on either side of a place, of which the right one is deeper."""

    smooth_scale = np.inf

    def __init__(self, place: float = 50.0) -> None:
        self.place = place

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        v = h - self.place
        return (v**2 - 100.0) ** 2 / 1e4 - 0.02 * v + 0.0 * theta

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        v = h - self.place
        return 4.0 * v * (v**2 - 100.0) / 1e4 - 0.02 + 0.0 * theta


def test_convexity_is_checked_where_the_targets_are() -> None:
    """Far from 0 the function is convex, and a fit rests in the well that is not the deeper one."""
    y = 49.0 + 0.3 * Y
    penalty, params = Ridge() + 100.0 * IntegratedPenalty(Wells()), {"kernel": "linear", "alpha": 1.0, "gamma": "auto"}
    with pytest.warns(UserWarning, match=r"Wells is not convex in h.* the tangent at h = \d\d"):
        model = model_of(penalty, "squared", **params).fit(X, y)
    assert model.dual_gap_ == np.inf
    constant = 58.9
    at_it = np.mean((y - constant) ** 2) / 2.0 + 100.0 * Wells().value(0.0, None, constant)
    assert model.objective_ > at_it + 1.0, "it would have been wrong to call the gap small"


@each("spread", [1.0, 1e4])
def test_convexity_of_slopes_is_checked_in_the_units_of_y(spread: float) -> None:
    """log(1 + v²) is convex only for |v| < 1."""

    class Logarithm(ConvexLoss):
        def value(self, theta: Any, y: Any, h: Any) -> Any:
            return np.log1p((h / (50.0 * spread)) ** 2) + 0.0 * theta

        def slope(self, theta: Any, y: Any, h: Any) -> Any:
            return 2.0 * h / ((50.0 * spread) ** 2 + h**2) + 0.0 * theta

    def fit(width: float) -> Any:
        measure = (0.4, 0.4 + width)
        return model_of(Ridge() + IntegratedPenalty(Logarithm(), of="slope"), measure=measure).fit(X, spread * Y)

    with pytest.warns(UserWarning, match="Logarithm is not convex in h"):
        assert fit(0.1).dual_gap_ == np.inf
    # over a longer Θ slopes are smaller
    assert fit(0.5).dual_gap_ <= 1e-4


@each("order", [1, -1])
def test_the_worst_of_several_problems_counts(order: int) -> None:
    penalties = [IntegratedPenalty(Wavy()), IntegratedPenalty(Kinked())][::order]
    with pytest.warns(UserWarning, match="Wavy is not convex") as warned:
        model = fitted(Ridge() + penalties[0] + penalties[1])
    assert any("Kinked says that it needs no smoothing" in str(one.message) for one in warned)
    assert model.dual_gap_ == np.inf


class Line(ConvexLoss):
    """−c v, which no value of v makes smallest."""

    def __init__(self, c: float = 1.0) -> None:
        self.c = c

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        return -self.c * h + 0.0 * theta

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        return -self.c + 0.0 * h * theta


@each("inputs", [None, X[:5]], ids=["training rows", "other rows"])
def test_a_penalty_that_outweighs_the_loss_is_refused(inputs: Any) -> None:
    """Far above y the pinball loss rises by 1 − θ, at least 0.05 here; a line may fall by less."""
    weak, strong = (Ridge() + IntegratedPenalty(Line(c), inputs=inputs) for c in (0.02, 10.0))
    model = fitted(weak)
    assert model.dual_gap_ <= model.tol
    with pytest.raises(ValueError, match=r"at θ = 0\.\d+ the slope of their sum is -9\.\d+ far above y"):
        fitted(strong)
    held = fitted(strong, alpha=1.0, alpha_bias=1.0)
    assert held.dual_gap_ <= held.tol


def test_a_penalty_of_slopes_that_falls_without_end_is_refused() -> None:
    penalty = Ridge() + IntegratedPenalty(Line(0.01), of="slope")
    with pytest.raises(ValueError, match="An IntegratedPenalty of the slope falls without end"):
        fitted(penalty)
    held = fitted(penalty, alpha=1.0, alpha_bias=1.0)
    assert held.dual_gap_ <= held.tol


def test_a_concave_function_is_refused_in_its_own_units() -> None:
    pytest.importorskip("torch")
    concave = Ridge() + IntegratedPenalty(lambda theta, v: -(v**2) + 0.0 * theta)
    with pytest.raises(
        ValueError, match=r"FunctionLoss is not convex in h: at θ = .*, its slope is .* far below .* and"
    ):
        model_of(concave).fit(X, 1e3 * Y)
    with pytest.raises(ValueError, match=r"FunctionLoss is not convex in h, or its slope"):
        model_of(concave).fit(X, 1e3 + Y)
    with pytest.raises(ValueError, match="FunctionLoss is not convex in h"):
        fitted(Ridge() + IntegratedPenalty(lambda theta, v: v.cos() + 0.0 * theta))
    with pytest.raises(TypeError, match=r"The function of an IntegratedPenalty failed .*; it takes \(θ, v\)"):
        fitted(Ridge() + IntegratedPenalty(lambda v: v**2))


def test_a_function_that_falls_without_end_may_join_a_loss_that_rises() -> None:
    pytest.importorskip("torch")
    plain, pushed = (fitted(p, Expectile()) for p in ("ridge", Ridge() + IntegratedPenalty(lambda theta, v: -0.1 * v)))
    assert pushed.dual_gap_ <= pushed.tol
    assert mean(pushed, pushed.predict(X, pushed.nodes_)) > mean(plain, plain.predict(X, plain.nodes_)) + 0.01


def test_a_bound_is_refused() -> None:
    model = fitted(BOTH, alpha_bias=1e-3)
    with pytest.raises(ValueError, match="the bound is for penalty='ridge'"):
        bound_of(model, X, Y)


@each("loss", [Huber(0.5), Expectile(), Cosh()], ids=repr)
def test_any_loss_without_targets_is_an_integrand(loss: Loss) -> None:
    model = fitted(Ridge() + 0.1 * IntegratedPenalty(loss, of="slope"), alpha_bias=1e-3, bias_kernel=None)
    penalty = mean(model, loss.value(model.nodes_, np.zeros((1, 1)), slopes(model)))
    r = Y[:, None] - model.predict(X, model.nodes_)
    risk = mean(model, np.maximum(model.nodes_ * r, (model.nodes_ - 1.0) * r))
    assert model.objective_ == pytest.approx(risk + 0.1 * penalty + 0.5e-3 * model.field_.norm**2, rel=1e-6)
