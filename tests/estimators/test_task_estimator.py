"""The general estimator: any loss, any Θ, any pair of kernels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from infinitask import InfiniteExpectileRegressor, InfiniteQuantileRegressor, InfiniteTaskEstimator
from infinitask.datasets import make_sine
from infinitask.kernels import RBF, Gaussian, Linear
from infinitask.losses import (
    BoxLoss,
    CostSensitiveHinge,
    EpsilonInsensitive,
    Expectile,
    LevelSet,
    MQuantile,
    Pinball,
    Row,
)
from infinitask.measures import Beta, Discrete, ProductMeasure, Uniform
from infinitask.penalties import IntegratedRidge, Ridge
from tests.support.each import each

INPUT_KERNELS = [
    "rbf",
    "laplacian",
    "matern12",
    "matern32",
    "matern52",
    "chi2",
    "linear",
    "polynomial",
    RBF() + Linear(),
]
TASK_KERNELS = ["rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear", "diagonal"]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_sine(50, random_state=0)


class TubeQuantile(BoxLoss):
    """A loss of two numbers: the quantile level θ₁ and the half-width θ₂ of a tube in which nothing is lost."""

    def row(self, theta: Any, y: Any) -> Row:
        return Row(theta[:, 0] - 1.0, theta[:, 0], dead_zone=theta[:, 1])


PLANE = ProductMeasure([Uniform(0.0, 1.0), Uniform(0.0, 0.5)])


# ---------------------------------------------------------------------------------------------------- kernels
@pytest.mark.quick(every=3)
@each("task_kernel", TASK_KERNELS)
@pytest.mark.parametrize("kernel", INPUT_KERNELS, ids=str)
def test_every_pair_of_kernels(kernel: Any, task_kernel: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(kernel=kernel, task_kernel=task_kernel, n_nodes=5, alpha=0.01).fit(X, y)
    assert 0.0 <= model.dual_gap_ <= model.tol
    values = model.decision_function(X, model.nodes_)
    assert values.shape == (50, 5)
    assert np.all(np.isfinite(values))


@pytest.mark.parametrize("bias", [None, "task", "constant", "polynomial", Gaussian(2.0)], ids=str)
@pytest.mark.parametrize(("penalty", "noncrossing"), [("ridge", 0.0), ("ridge", 0.5), ("integrated", 0.0)])
def test_every_bias(bias: Any, penalty: str, noncrossing: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    params = {"alpha": 0.01, "bias_kernel": bias, "penalty": penalty, "noncrossing": noncrossing, "n_nodes": 6}
    model = InfiniteTaskEstimator(**params).fit(X, y)
    assert model.dual_gap_ <= model.tol
    b = model.field_.bias([0.2, 0.8])
    if bias is None:
        assert np.all(b == 0.0)
    elif bias == "constant":
        assert b[0] == pytest.approx(b[1])
    else:
        assert b[0] != b[1]


def test_the_integrated_ridge_cannot_be_joined_by_non_crossing(data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"noncrossing=0\.5 was given with the integrated ridge"):
        InfiniteTaskEstimator(penalty="integrated", noncrossing=0.5).fit(*data)


def test_the_integrated_ridge_leaves_h_free_at_every_node(data: tuple[np.ndarray, np.ndarray]) -> None:
    """Smooth task kernels have Gram matrices that are singular to rounding; at few nodes h is free all the same."""
    X, y = data
    params = {"penalty": "integrated", "bias_kernel": None, "n_nodes": 10, "alpha": 0.01, "tol": 1e-7}
    smooth = InfiniteTaskEstimator(task_gamma=5.0, **params).fit(X, y)
    alone = InfiniteTaskEstimator(task_kernel="diagonal", **params).fit(X, y)
    assert smooth.objective_ == pytest.approx(alone.objective_, rel=1e-6)
    nodes = smooth.nodes_
    np.testing.assert_allclose(smooth.predict(X, nodes), alone.predict(X, nodes), atol=1e-3)


def test_tasks_are_uniform_if_nothing_else_is_said(data: tuple[np.ndarray, np.ndarray]) -> None:
    for loss, low, high in ((Pinball(), 0.0, 1.0), (CostSensitiveHinge(), -1.0, 1.0)):
        X, y = data
        model = InfiniteTaskEstimator(loss, n_nodes=7).fit(X, y if low == 0.0 else np.sign(y))
        x, w = np.polynomial.legendre.leggauss(7)
        np.testing.assert_allclose(model.nodes_, low + (high - low) * (x + 1.0) / 2.0)
        np.testing.assert_allclose(model.weights_, w / 2.0)


def test_units_do_not_hide_a_relevant_feature() -> None:
    """A linear kernel on columns of very different size: the small one decides, and must not be lost to a tolerance."""
    rng = np.random.default_rng(0)
    X = np.column_stack([1e5 * rng.standard_normal(100), rng.standard_normal(100)])
    y = 2 * X[:, 1] + 0.1 * rng.standard_normal(100)
    model = InfiniteTaskEstimator(kernel="linear", n_nodes=10).fit(X, y)
    assert np.mean(np.abs(model.predict(X, 0.5) - y)) < 0.3


def test_a_loss_whose_row_makes_no_sense_is_refused(data: tuple[np.ndarray, np.ndarray]) -> None:
    class Backwards(BoxLoss):
        def row(self, theta: Any, y: Any) -> Row:
            return Row(theta, -theta)

    class Loose(BoxLoss):
        def row(self, theta: Any, y: Any) -> Any:
            return (theta - 1.0, theta)

    with pytest.raises(ValueError, match="low that is above 0"):
        InfiniteTaskEstimator(Backwards()).fit(*data)
    with pytest.raises(TypeError, match="must return a Row"):
        InfiniteTaskEstimator(Loose()).fit(*data)


def test_a_bias_that_costs_too_much_is_none(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    none = InfiniteTaskEstimator(bias_kernel=None, n_nodes=6).fit(X, y)
    dear = InfiniteTaskEstimator(alpha_bias=1e12, n_nodes=6).fit(X, y)
    np.testing.assert_allclose(dear.predict(X), none.predict(X), atol=1e-3)


# ----------------------------------------------------------------------------------------------------- losses
@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("pinball", Pinball()),
        ("expectile", Expectile()),
        ("epsilon-insensitive", EpsilonInsensitive()),
        ("cost-sensitive", CostSensitiveHinge()),
    ],
)
def test_a_loss_and_its_name_are_the_same(name: str, loss: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    y = np.sign(y) if name == "cost-sensitive" else y
    by_name, by_object = (InfiniteTaskEstimator(spec, n_nodes=6).fit(X, y) for spec in (name, loss))
    assert np.array_equal(by_name.predict(X, [0.2, 0.8]), by_object.predict(X, [0.2, 0.8]))
    assert by_name.dual_gap_ <= by_name.tol


def test_the_special_estimators_are_special_cases(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    levels = [0.1, 0.6]
    pairs = [
        (InfiniteTaskEstimator("pinball", noncrossing=1.0), InfiniteQuantileRegressor()),
        (InfiniteTaskEstimator(MQuantile(0.3), noncrossing=1.0), InfiniteQuantileRegressor(smoothing=0.3)),
        (InfiniteTaskEstimator("expectile"), InfiniteExpectileRegressor()),
    ]
    for general, special in pairs:
        one, other = (model.set_params(n_nodes=6).fit(X, y) for model in (general, special))
        assert np.array_equal(one.predict(X, levels), other.predict(X, levels))


@pytest.mark.parametrize("loss", ["cubic", None, Pinball, 3])
def test_losses_that_are_none(loss: Any, data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"loss=.*pinball"):
        InfiniteTaskEstimator(loss).fit(*data)


def test_level_sets_have_their_own_estimator(data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="InfiniteOneClassSVM"):
        InfiniteTaskEstimator(LevelSet()).fit(*data)


@pytest.mark.parametrize("labels", [(0.0, 1.0), (1.0, 2.0)])
def test_labels_of_the_hinge_are_signs(labels: tuple[float, float], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with pytest.raises(ValueError, match="targets other than −1 and 1"):
        InfiniteTaskEstimator("cost-sensitive", n_nodes=6).fit(X, np.where(y > 0.0, labels[1], labels[0]))


def test_a_tube_of_any_width(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator("epsilon-insensitive", measure=(0.0, 3.0), n_nodes=6).fit(X, y)
    assert np.ptp(model.predict(X, 3.0)) <= np.ptp(model.predict(X, 0.0))


def test_a_wide_tube_asks_for_nothing(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    small = 0.1 * y / np.max(np.abs(y))
    model = InfiniteTaskEstimator("epsilon-insensitive", measure=(0.2, 1.0), n_nodes=6, alpha_bias=None).fit(X, small)
    assert model.objective_ == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(model.predict(X, [0.3, 0.9]), 0.0, atol=1e-6)


# -------------------------------------------------------------------------------------------------- penalties
def test_a_penalty_and_its_name_are_the_same(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    for name, spec in (("ridge", Ridge()), ("integrated", IntegratedRidge())):
        one, other = (
            InfiniteTaskEstimator("expectile", penalty=penalty, n_nodes=6).fit(X, y) for penalty in (name, spec)
        )
        assert np.array_equal(one.predict(X), other.predict(X))
    with pytest.raises(ValueError, match="penalty="):
        InfiniteTaskEstimator(penalty="lasso").fit(X, y)


def test_an_integrated_ridge_of_weight_four_is_alpha_times_four(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    params = {"n_nodes": 6, "tol": 1e-8, "bias_kernel": None}
    heavy = InfiniteTaskEstimator(
        "expectile", penalty=IntegratedRidge(lambda nodes: np.full(len(nodes), 4.0)), alpha=0.01, **params
    ).fit(X, y)
    plain = InfiniteTaskEstimator("expectile", penalty="integrated", alpha=0.04, **params).fit(X, y)
    assert abs(heavy.objective_ - plain.objective_) <= 3e-8 * plain.objective_
    np.testing.assert_allclose(heavy.predict(X, [0.2, 0.8]), plain.predict(X, [0.2, 0.8]), atol=1e-3)


def test_tasks_alone_under_the_integrated_ridge(data: tuple[np.ndarray, np.ndarray]) -> None:
    # with a rich task kernel and ∫‖h(·)(θ)‖² every node is learnt by itself: the diagonal kernel gives the same values
    X, y = data
    params = {"measure": Discrete([0.2, 0.5, 0.8]), "bias_kernel": None, "alpha": 0.01, "tol": 1e-8}
    joint = InfiniteTaskEstimator("expectile", penalty="integrated", task_gamma=20.0, **params).fit(X, y)
    apart = InfiniteTaskEstimator("expectile", penalty="integrated", task_kernel="diagonal", **params).fit(X, y)
    np.testing.assert_allclose(joint.predict(X, [0.2, 0.8]), apart.predict(X, [0.2, 0.8]), atol=1e-3)


# ------------------------------------------------------------------------------------------------ Θ in the plane
@pytest.mark.parametrize("quadrature", ["gauss-legendre", "clenshaw-curtis", "sobol", "halton", "monte-carlo"])
def test_two_numbers_make_a_task(quadrature: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(TubeQuantile(), measure=PLANE, quadrature=quadrature, n_nodes=16, random_state=0).fit(
        X, y
    )
    assert model.nodes_.shape == (16, 2)
    assert model.dual_gap_ <= model.tol
    assert model.predict(X).shape == (50,)
    assert model.predict(X, [0.5, 0.1]).shape == (50,)
    several = model.predict(X, [[0.1, 0.0], [0.5, 0.1], [0.9, 0.5]])
    assert several.shape == (50, 3)
    np.testing.assert_allclose(several[:, 1], model.predict(X, (0.5, 0.1)), atol=1e-10)


def test_a_tube_of_no_width_is_a_quantile(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    levels = [0.25, 0.5, 0.75]
    params = {"alpha": 0.01, "tol": 1e-8}
    plane = InfiniteTaskEstimator(
        TubeQuantile(), measure=Discrete([[q, 0.0] for q in levels]), task_kernel=Gaussian(3.0), **params
    ).fit(X, y)
    line = InfiniteTaskEstimator("pinball", measure=Discrete(levels), task_kernel=Gaussian(3.0), **params).fit(X, y)
    assert abs(plane.objective_ - line.objective_) <= 3e-8 * line.objective_
    np.testing.assert_allclose(plane.predict(X, [[q, 0.0] for q in levels]), line.predict(X, levels), atol=2e-3)


def test_a_plane_of_tasks_on_torch(data: tuple[np.ndarray, np.ndarray]) -> None:
    pytest.importorskip("torch")
    X, y = data[0][::2], data[1][::2]
    host, device = (
        InfiniteTaskEstimator(TubeQuantile(), measure=PLANE, n_nodes=9, alpha=0.05, device=where).fit(X, y)
        for where in (None, "cpu")
    )
    np.testing.assert_allclose(device.predict(X, [0.3, 0.2]), host.predict(X, [0.3, 0.2]), atol=1e-6)


@pytest.mark.parametrize(
    ("theta", "sentence"),
    [
        (0.5, r"shape \(2,\) or \(q, 2\)"),
        ([0.5, 0.1, 0.2], r"shape \(2,\) or \(q, 2\)"),
        ([[0.5], [0.1]], r"shape \(2,\) or \(q, 2\)"),
        ([0.5, 0.9], "outside Θ"),
        ([[0.5, 0.1], [np.nan, 0.1]], "outside Θ"),
        ([], "not empty"),
    ],
    ids=repr,
)
def test_tasks_off_the_plane(theta: Any, sentence: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(TubeQuantile(), measure=PLANE, n_nodes=4).fit(X, y)
    with pytest.raises(ValueError, match=sentence):
        model.predict(X, theta)


def test_a_plane_has_no_derivative_in_one_number(data: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="one-dimensional"):
        InfiniteTaskEstimator(TubeQuantile(), measure=PLANE, noncrossing=1.0, n_nodes=4).fit(*data)


def test_separate_tasks_in_the_plane(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(TubeQuantile(), measure=PLANE, task_kernel="diagonal", n_nodes=4).fit(X, y)
    assert model.predict(X, model.nodes_).shape == (50, 4)
    with pytest.raises(ValueError, match="not a node"):
        model.predict(X, [0.5, 0.1])


# ------------------------------------------------------------------------------------------------ default task
def test_the_constructor_says_what_predict_answers(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(theta=[0.2, 0.7], n_nodes=6).fit(X, y)
    assert np.array_equal(model.decision_function(X), model.decision_function(X, [0.2, 0.7]))
    assert np.array_equal(model.predict(X), model.decision_function(X))
    with pytest.raises(NotFittedError):
        InfiniteTaskEstimator().predict(X)


@pytest.mark.parametrize(
    ("measure", "median"),
    [
        (None, 0.5),
        (Discrete([0.1, 0.5, 0.9], weights=[0.98, 0.01, 0.01]), 0.1),
        (Discrete([0.1, 0.4, 0.9]), 0.4),
        (Beta(2.0, 5.0), stats.beta(2.0, 5.0).median()),
    ],
    ids=str,
)
def test_without_a_task_the_median_is_meant(measure: Any, median: float, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(measure=measure, n_nodes=6).fit(X, y)
    assert model.predict(X).shape == (50,)
    assert np.array_equal(model.predict(X), model.predict(X, median))


@pytest.mark.parametrize(
    ("measure", "task"),
    [
        (PLANE, [0.5, 0.25]),
        # points of a plane have no median: the heaviest one speaks for them
        (Discrete([[0.1, 0.0], [0.5, 0.1], [0.9, 0.3]], weights=[0.2, 0.1, 0.7]), [0.9, 0.3]),
    ],
    ids=["plane", "points"],
)
def test_the_default_task_of_a_plane(measure: Any, task: list[float], data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    model = InfiniteTaskEstimator(TubeQuantile(), measure=measure, n_nodes=4).fit(X, y)
    assert model.predict(X).shape == (50,)
    assert np.array_equal(model.predict(X), model.predict(X, task))


# ------------------------------------------------------------------------------------------------------- others
def test_a_search_with_a_score_of_its_own(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data

    def closeness(model: Any, Z: np.ndarray, target: np.ndarray) -> float:
        return -float(np.mean(np.abs(model.predict(Z, 0.5) - target)))

    search = GridSearchCV(
        InfiniteTaskEstimator(MQuantile(), task_kernel=Gaussian(), n_nodes=6),
        {"task_kernel__gamma": [1.0, 5.0], "loss__kappa": [0.1, 1.0], "alpha": [1e-3, 100.0]},
        scoring=closeness,
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_["alpha"] == 1e-3
    assert search.best_estimator_.loss.kappa == search.best_params_["loss__kappa"]


def test_more_nodes_change_little_once_they_are_enough(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    levels = [0.2, 0.5, 0.8]
    params = {"alpha": 0.01, "task_gamma": 2.0, "tol": 1e-7}
    few, many, most = (
        InfiniteTaskEstimator("expectile", n_nodes=m, **params).fit(X, y).predict(X, levels) for m in (3, 15, 30)
    )
    assert np.max(np.abs(many - most)) < 2e-3
    assert np.max(np.abs(many - most)) < np.max(np.abs(few - most))


@pytest.mark.parametrize("features", ["nystroem", "fourier"])
def test_more_features_come_closer_to_the_kernel(features: str, data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    params = {"alpha": 0.01, "n_nodes": 6, "tol": 1e-6, "random_state": 0}
    exact = InfiniteTaskEstimator("expectile", features="exact", **params).fit(X, y).predict(X)
    errors = [
        np.max(
            np.abs(InfiniteTaskEstimator("expectile", features=features, rank=r, **params).fit(X, y).predict(X) - exact)
        )
        for r in (2, 1000)
    ]
    assert errors[1] < 0.1 * errors[0]
    assert errors[1] < 0.15


def test_a_tighter_ridge_makes_a_smaller_function(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    norms = [
        InfiniteTaskEstimator(alpha=a, bias_kernel=None, n_nodes=6).fit(X, y).field_.norm for a in (1e-3, 1e-1, 10)
    ]
    assert norms[0] > norms[1] > norms[2]


def test_no_warning_escapes_from_ordinary_data(data: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for params in ({}, {"alpha": 1e-6}, {"penalty": "integrated"}, {"loss": "epsilon-insensitive"}):
            model = InfiniteTaskEstimator(**params, n_nodes=10).fit(X, y)
            assert np.all(np.isfinite(model.predict(X)))
