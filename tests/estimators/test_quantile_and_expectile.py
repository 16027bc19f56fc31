"""Infinite quantile and expectile regression: order, symmetry, scores, tuning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteExpectileRegressor, InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile
from infinitask.kernels import RBF, Diagonal, Gaussian, PiecewiseLinear
from infinitask.measures import Beta, Discrete, GaussLegendre, Sobol, TruncatedNormal, Uniform

REGRESSORS = [InfiniteQuantileRegressor, InfiniteExpectileRegressor]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_sine(60, random_state=0)


@pytest.fixture(scope="module")
def model(data: tuple[np.ndarray, np.ndarray]) -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=20, alpha=1e-3).fit(*data)


# ---------------------------------------------------------------------------------------------- what is learnt
def test_a_fit_finds_the_true_quantiles() -> None:
    X, y = make_sine(500, random_state=0)
    levels = [0.1, 0.25, 0.5, 0.75, 0.9]
    model = InfiniteQuantileRegressor(alpha=1e-4, n_nodes=20).fit(X, y)
    error = np.abs(model.predict(X, levels) - sine_quantile(X, levels))
    assert np.mean(error) < 0.15  # the noise has a standard deviation from 0.2 to 1.2
    below = np.mean(y[:, None] <= model.predict(X, levels), axis=0)
    np.testing.assert_allclose(below, levels, atol=0.05)


def test_the_middle_expectile_is_kernel_ridge_regression(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    new = np.linspace(0.0, 1.5, 20)[:, None]
    model = InfiniteExpectileRegressor(
        measure=Discrete([0.5]), bias_kernel=None, kernel=RBF(5.0), alpha=1e-3, tol=1e-10
    ).fit(X, y)
    ridge = KernelRidge(kernel="rbf", gamma=5.0, alpha=1e-3 * len(y)).fit(X, y)
    np.testing.assert_allclose(model.predict(new), ridge.predict(new), atol=1e-4)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_turning_y_around_turns_the_levels_around(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    params = {"alpha": 0.01, "n_nodes": 10, "tol": 1e-8}
    up, down = cls(**params).fit(X, y), cls(**params).fit(X, -y)
    np.testing.assert_allclose(down.predict(X, levels), -up.predict(X, 1.0 - levels), atol=2e-3)
    assert abs(up.objective_ - down.objective_) <= 3e-8 * up.objective_


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e-15, 1e-60, 1e90], ids=str)
def test_expectiles_have_the_unit_of_y(scale: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteExpectileRegressor(n_nodes=8, tol=1e-7)
    expected = model.fit(X, y).predict(X, [0.1, 0.9])
    np.testing.assert_allclose(model.fit(X, scale * y).predict(X, [0.1, 0.9]) / scale, expected, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-90, 1e-40, 1e-12, 1e12, 1e40, 1e90], ids=str)
@pytest.mark.filterwarnings("ignore:.*root mean square")
@pytest.mark.filterwarnings("ignore:.*duality gap:sklearn.exceptions.ConvergenceWarning")
def test_quantiles_of_any_unit_are_numbers(scale: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    # λ is not rescaled with y, so the function differs; it must be one
    X, y = data
    predicted = InfiniteQuantileRegressor(n_nodes=8).fit(X, scale * y).predict(X, [0.1, 0.9])
    assert np.all(np.isfinite(predicted))


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-9], ids=str)
def test_the_gap_holds_for_the_kernel_itself(scale: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    # a finer tolerance also builds finer features: what they gain must be covered by the gap of the coarse fit
    X, y = data
    rough, fine = (
        InfiniteQuantileRegressor(noncrossing=0.0, n_nodes=10, tol=t).fit(X, scale * y) for t in (1e-4, 1e-6)
    )
    assert rough.objective_ - fine.objective_ <= rough.dual_gap_ * rough.objective_


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_extreme_targets_are_refused(cls: type[Any], size: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(ValueError, match=r"y holds values of magnitude.*Rescale"):
        cls().fit(X, size * y)


@pytest.mark.parametrize(
    ("cls", "constant"),
    [
        (InfiniteQuantileRegressor, 0.0),
        (InfiniteQuantileRegressor, 1.0),
        (InfiniteQuantileRegressor, -3.0),
        (InfiniteExpectileRegressor, 0.0),
        (InfiniteExpectileRegressor, 1.0),
        (InfiniteExpectileRegressor, -3.0),
    ],
)
def test_a_constant_target_is_learnt(cls: type[Any], constant: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, _ = data
    model = cls(alpha=1e-5, n_nodes=10).fit(X, np.full(len(X), constant))
    assert model.dual_gap_ <= model.tol
    np.testing.assert_allclose(model.predict(X, [0.1, 0.5, 0.9]), constant, atol=0.02 * abs(constant))


def test_smoothing_is_a_choice_between_quantiles_and_expectiles(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    levels = [0.1, 0.5, 0.9]
    params: dict[str, Any] = {"noncrossing": 0.0, "n_nodes": 10, "tol": 1e-7, "alpha_bias": None}
    sharp = InfiniteQuantileRegressor(alpha=0.01, **params).fit(X, y).predict(X, levels)
    hair = InfiniteQuantileRegressor(alpha=0.01, smoothing=1e-5, **params).fit(X, y).predict(X, levels)
    np.testing.assert_allclose(hair, sharp, atol=0.01)
    # a r²/(2κ) with λ/(2κ) is the expectile problem with λ, divided by 2κ
    wide = InfiniteQuantileRegressor(alpha=0.01 / 200.0, smoothing=100.0, **params).fit(X, y).predict(X, levels)
    expectiles = InfiniteExpectileRegressor(alpha=0.01, **params).fit(X, y).predict(X, levels)
    np.testing.assert_allclose(wide, expectiles, atol=0.01)


# ------------------------------------------------------------------------------------------------ non-crossing
def crossing(model: Any, X: np.ndarray) -> float:
    """What the penalty weighs: Σ ω w (−∂h/∂θ)₊."""
    slope = model.field_(X, model.nodes_, order=1)
    return float(np.mean(np.maximum(-slope, 0.0) @ model.weights_))


@pytest.mark.parametrize(("cls", "gamma"), [(InfiniteQuantileRegressor, 30.0), (InfiniteExpectileRegressor, 300.0)])
def test_the_penalty_keeps_the_curves_in_order(cls: type[Any], gamma: float) -> None:
    X, y = make_sine(40, random_state=3)
    weights = [0.0, 0.01, 0.1, 1.0]
    models = [cls(noncrossing=w, alpha=1e-4, gamma=gamma, n_nodes=12, tol=1e-5).fit(X, y) for w in weights]
    amounts = [crossing(model, X) for model in models]
    levels = np.linspace(0.02, 0.98, 49)
    share = [float(np.mean(np.diff(model.predict(X, levels), axis=1) < 0.0)) for model in models]
    assert share[0] > 0.05  # without the penalty the curves do cross
    assert amounts[-1] < 0.01 * amounts[0]
    assert share[-1] < 0.5 * share[0]
    # the optimum crosses less the more that costs; certified gaps say how far from it the fits may be
    for k in range(len(weights) - 1):
        errors = sum(model.dual_gap_ * model.objective_ for model in models[k : k + 2])
        assert amounts[k + 1] <= amounts[k] + errors / (weights[k + 1] - weights[k])


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize(
    ("kernel", "named"),
    [("piecewise-linear", "PiecewiseLinear"), ("diagonal", "Diagonal"), (PiecewiseLinear(), "P"), (Diagonal(), "D")],
)
def test_the_penalty_needs_a_derivative(cls: type[Any], kernel: Any, named: str) -> None:
    X, y = make_sine(20, random_state=0)
    with pytest.raises(ValueError, match=rf"{named}.*derivative"):
        cls(task_kernel=kernel, noncrossing=1.0, n_nodes=5).fit(X, y)
    with pytest.raises(ValueError, match=rf"{named}.*derivative"):
        cls(bias_kernel=kernel, noncrossing=1.0, n_nodes=5).fit(X, y)
    assert cls(task_kernel=kernel, noncrossing=0.0, n_nodes=5).fit(X, y).dual_gap_ <= 1e-4


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "much", None])
@pytest.mark.parametrize("name", ["noncrossing", "smoothing"])
def test_bad_weights_of_the_penalties_are_named(name: str, value: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=name):
        InfiniteQuantileRegressor(**{name: value}).fit(*data)


# ------------------------------------------------------------------------------------------------ rearrangement
CROSSING = {InfiniteQuantileRegressor: {"gamma": 30.0}, InfiniteExpectileRegressor: {"gamma": 300.0}}


def crossed_fits(cls: type[Any], **params: Any) -> tuple[Any, Any]:
    """The same fit twice, on data where curves cross: as it is, and put in order."""
    X, y = make_sine(40, random_state=3)
    given = {"alpha": 1e-4, "n_nodes": 12, **CROSSING[cls], **params}
    plain = cls(**given).fit(X, y)
    return plain, cls(**{**given, "noncrossing": "rearrange"}).fit(X, y)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_rearranged_predictions_never_cross(cls: type[Any]) -> None:
    plain, ordered = crossed_fits(cls)
    rng = np.random.default_rng(0)
    far = [[-1e9], [-40.0], [17.0], [1e9]]
    X = np.concatenate([rng.uniform(0.0, 1.5, size=(500, 1)), rng.uniform(-1.0, 3.0, size=(496, 1)), far])
    low, high = np.sort(rng.uniform(1e-6, 1.0 - 1e-6, size=(2, 1000)), axis=0)
    high[:100] = np.nextafter(low[:100], 1.0)  # neighbours in floating point
    # a million triples (x, θ, θ'), the two levels asked for in separate calls
    assert np.mean(plain.predict(X, high) < plain.predict(X, low)) > 0.005
    assert np.sum(ordered.predict(X, high) < ordered.predict(X, low)) == 0


def test_rearranging_never_adds_to_the_loss() -> None:
    X, y = make_sine(40, random_state=3)
    plain, ordered = crossed_fits(InfiniteQuantileRegressor)
    distribution = ordered.predict_distribution(X)
    levels, after = distribution.levels, distribution.values
    before = plain.field_(X, levels)
    # at equally spaced levels the sum of the losses falls for every pair (x, y), and for every other y as well
    for target in (y, y + 0.5, np.zeros(40)):
        r, s = target[:, None] - before, target[:, None] - after
        raw, sorted_ = (np.sum(np.maximum(levels * e, (levels - 1.0) * e), axis=1) for e in (r, s))
        assert np.all(sorted_ <= raw * (1.0 + 1e-12))
        assert np.mean(sorted_ < raw * (1.0 - 1e-9)) > 0.1


@pytest.mark.parametrize("cls", REGRESSORS)
def test_curves_in_order_are_left_alone(cls: type[Any]) -> None:
    X, y = make_sine(200, random_state=0)
    levels = np.linspace(0.001, 0.999, 99)
    weights = (cls().noncrossing, "rearrange")
    held: dict[str, Any] = {"alpha": 1e-2, "alpha_bias": None, "gamma": 1.0, "n_nodes": 12}
    plain, ordered = (cls(noncrossing=w, **held).fit(X, y) for w in weights)
    known = plain.field_(X, np.linspace(0.0, 1.0, 1001))
    steady = np.all(np.diff(known, axis=1) > 0.0, axis=1)
    assert np.mean(steady) > 0.5
    expected = plain.predict(X, levels)[steady]
    np.testing.assert_allclose(ordered.predict(X, levels)[steady], expected, atol=1e-5)
    assert np.isclose(ordered.score(X, y), plain.score(X, y), atol=1e-3)
    assert ordered.predict(X).shape == (200,)
    assert ordered.predict(X, [0.3]).shape == (200, 1)


def test_every_prediction_is_rearranged() -> None:
    X, _ = make_sine(40, random_state=3)
    plain, ordered = crossed_fits(InfiniteQuantileRegressor)
    assert not np.allclose(plain.predict(X, 0.3), ordered.predict(X, 0.3), atol=1e-6)
    np.testing.assert_array_equal(ordered.predict_interval(X, 0.8), ordered.predict(X, [0.1, 0.9]))
    np.testing.assert_allclose(ordered.predict_distribution(X).ppf([0.1, 0.37]), ordered.predict(X, [0.1, 0.37]))


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize(
    "params",
    [
        {"task_kernel": "diagonal", "noncrossing": 0.0},
        {"task_kernel": "piecewise-linear", "noncrossing": 0.0},
        {"bias_kernel": "piecewise-linear", "noncrossing": 0.0},
        {"measure": Discrete([0.2, 0.4, 0.5, 0.6])},
        {"measure": Discrete([0.5])},
        {"measure": (0.3, 0.7)},
        {"quadrature": "clenshaw-curtis"},
    ],
    ids=str,
)
def test_rearranging_asks_nothing_of_the_kernel_or_the_measure(cls: type[Any], params: dict[str, Any]) -> None:
    X, _ = make_sine(40, random_state=3)
    plain, ordered = crossed_fits(cls, **params)
    assert ordered.objective_ == plain.objective_  # the weight that the default has, or none where there is no slope
    nodes = ordered.nodes_[(ordered.nodes_ > 0.0) & (ordered.nodes_ < 1.0)]
    values = ordered.predict(X, nodes)
    assert np.all(np.diff(values, axis=1) >= 0.0)
    if params.get("task_kernel") == "diagonal" or isinstance(params.get("measure"), Discrete):
        np.testing.assert_allclose(values, np.sort(plain.predict(X, nodes), axis=1), atol=1e-12)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_words_for_order(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"noncrossing='sorted' was given.*'rearrange'"):
        cls(noncrossing="sorted").fit(*data)


# ------------------------------------------------------------------------------------------------- predictions
def test_the_constructor_says_what_predict_answers(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteQuantileRegressor(quantiles=[0.2, 0.8], n_nodes=8).fit(X, y)
    assert np.array_equal(model.predict(X), model.predict(X, [0.2, 0.8]))
    middle = InfiniteExpectileRegressor(n_nodes=8).fit(X, y)
    assert np.array_equal(middle.predict(X), middle.predict(X, expectiles=0.5))


def test_an_interval_is_a_pair_of_quantiles(
    model: InfiniteQuantileRegressor, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    interval = model.predict_interval(X, coverage=0.8)
    assert interval.shape == (len(X), 2)
    np.testing.assert_allclose(interval, model.predict(X, [0.1, 0.9]), rtol=1e-12, atol=1e-12)
    wider = model.predict_interval(X, coverage=0.9)
    assert np.mean(wider[:, 1] - wider[:, 0]) > np.mean(interval[:, 1] - interval[:, 0])
    assert abs(np.mean((interval[:, 0] <= y) & (y <= interval[:, 1])) - 0.8) < 0.1


@pytest.mark.parametrize("coverage", [0.0, -0.5, 1.0, 1.5, np.nan, "most", None, [0.5, 1.5], []])
def test_an_interval_covers_its_fraction(
    model: InfiniteQuantileRegressor, coverage: Any, data: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(data[0], coverage)


def test_an_interval_outside_the_measure(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteQuantileRegressor(measure=(0.2, 0.8), n_nodes=6).fit(X, y)
    assert np.all(np.isfinite(model.predict_interval(X, 0.5)))
    with pytest.raises(ValueError, match="outside Θ"):
        model.predict_interval(X, 0.9)


@pytest.mark.parametrize(
    ("measure", "low", "high"),
    [
        (None, 0.0, 1.0),
        ((0.2, 0.8), 0.2, 0.8),
        (Uniform(0.2, 0.8), 0.2, 0.8),
        (Beta(2.0, 2.0), 0.0, 1.0),
        (TruncatedNormal(0.5, 0.2, 0.1, 0.9), 0.1, 0.9),
        (Discrete([0.25, 0.5, 0.75]), 0.25, 0.75),
    ],
    ids=str,
)
@pytest.mark.parametrize("cls", REGRESSORS)
def test_measures(cls: type[Any], measure: Any, low: float, high: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = cls(measure=measure, n_nodes=6).fit(X, y)
    assert low <= model.nodes_.min() <= model.nodes_.max() <= high
    assert np.all(np.isfinite(model.predict(X, [max(low, 1e-3), min(high, 1 - 1e-3)])))
    assert model.dual_gap_ <= model.tol
    for end in (0.0, 1.0):  # the least and the largest of all values: nothing finite
        with pytest.raises(ValueError, match=r"outside Θ|strictly between"):
            model.predict(X, end)


def test_a_frozen_distribution_is_a_measure(data: tuple[np.ndarray, np.ndarray]) -> None:
    from scipy import stats

    X, y = data
    ours = InfiniteQuantileRegressor(measure=Beta(2.0, 3.0), n_nodes=6).fit(X, y)
    theirs = InfiniteQuantileRegressor(measure=stats.beta(2.0, 3.0), n_nodes=6).fit(X, y)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    with pytest.raises(ValueError, match="Pinball is defined for θ"):
        InfiniteQuantileRegressor(measure=stats.norm(0.5, 0.1)).fit(X, y)


@pytest.mark.parametrize(
    "rule", ["gauss-legendre", "clenshaw-curtis", "sobol", "halton", "monte-carlo", GaussLegendre()]
)
def test_quadratures(rule: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteQuantileRegressor(quadrature=rule, n_nodes=9, random_state=0).fit(X, y)
    assert model.nodes_.shape == (9,)
    assert model.dual_gap_ <= model.tol


def test_a_rule_and_its_name_are_the_same(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    by_name, by_object = (
        InfiniteQuantileRegressor(quadrature=rule, n_nodes=8, random_state=0).fit(X, y) for rule in ("sobol", Sobol())
    )
    assert np.array_equal(by_name.predict(X), by_object.predict(X))


# ------------------------------------------------------------------------------------------------------ scores
def test_the_score_is_one_minus_a_ratio_of_pinball_losses(
    model: InfiniteQuantileRegressor, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    predicted = model.predict(X, model.nodes_)
    loss, null = (
        sum(
            w * mean_pinball_loss(y, h, alpha=theta)
            for theta, w, h in zip(model.nodes_, model.weights_, columns, strict=True)
        )
        for columns in (predicted.T, np.repeat(np.quantile(y, model.nodes_, method="inverted_cdf")[:, None], len(y), 1))
    )
    assert np.isclose(model.score(X, y), 1.0 - loss / null)
    assert 0.0 < model.score(X, y) < 1.0


@pytest.mark.parametrize("cls", REGRESSORS)
def test_laws_of_the_score(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = cls(n_nodes=8).fit(X, y)
    times = np.random.default_rng(0).integers(1, 4, size=len(y))
    repeated = model.score(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert np.isclose(model.score(X, y, sample_weight=times), repeated)
    shuffled = np.random.default_rng(1).permutation(y)
    assert model.score(X, shuffled) < 0.0 < model.score(X, y) < 1.0
    # nearly no freedom in x: about as good as the best constants, and on their own data not better
    flat = cls(kernel="rbf", gamma=1e-12, alpha=1e-7, n_nodes=8).fit(X, y)
    assert -0.05 < flat.score(X, y) <= 1e-9


@pytest.mark.parametrize("cls", REGRESSORS)
def test_the_score_of_a_constant_target(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    zeros = np.zeros(len(y))
    assert cls(n_nodes=8).fit(X, zeros).score(X, zeros) == 1.0
    assert cls(n_nodes=8).fit(X, y).score(X, zeros) == 0.0


def test_expectile_scores_at_the_ends_of_theta(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteExpectileRegressor(quadrature="clenshaw-curtis", n_nodes=9).fit(X, y)
    assert 0.0 < model.score(X, y) < 1.0


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda y: y[:-1], "inconsistent"),
        (lambda y: np.column_stack([y, y]), "1d"),
        (lambda y: np.where(y > 0.0, np.nan, y), "NaN"),
    ],
)
def test_targets_that_cannot_be_scored(
    cls: type[Any], change: Any, sentence: str, data: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = data
    model = cls(n_nodes=4).fit(X, y)
    with pytest.raises(ValueError, match=sentence):
        model.score(X, change(y))


@pytest.mark.parametrize("cls", REGRESSORS)
def test_no_score_without_a_fit(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(NotFittedError):
        cls().score(*data)


# ------------------------------------------------------------------------------------------------------- tuning
@pytest.mark.quick(every=2)
@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_search_reaches_into_the_task_kernel(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    search = GridSearchCV(
        cls(task_kernel=Gaussian(), kernel=RBF(), n_nodes=6),
        {"task_kernel__gamma": [0.5, 5.0], "kernel__gamma": [0.01, 10.0]},
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_["kernel__gamma"] == 10.0
    assert search.best_estimator_.task_kernel_.gamma == search.best_params_["task_kernel__gamma"]
    assert search.best_score_ < search.score(X, y) <= 1.0


@pytest.mark.parametrize("cls", REGRESSORS)
def test_a_search_through_a_pipeline(cls: type[Any], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    pipeline = make_pipeline(StandardScaler(), cls(n_nodes=6))
    name = f"{cls.__name__.lower()}__alpha"
    search = GridSearchCV(pipeline, {name: [1e-3, 100.0]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_[name] == 1e-3  # the other one allows no function but 0
    assert search.predict(X).shape == (len(X),)


def test_cross_validation_with_a_known_gram(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    kernel = RBF(gamma=5.0)
    direct = cross_val_score(InfiniteExpectileRegressor(kernel=kernel, n_nodes=6), X, y, cv=3)
    known = cross_val_score(InfiniteExpectileRegressor(kernel="precomputed", n_nodes=6), kernel(X, X), y, cv=3)
    np.testing.assert_allclose(known, direct, atol=1e-6)
