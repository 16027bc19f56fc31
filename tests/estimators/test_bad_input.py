"""What every public estimator does with parameters, tasks and data that are wrong or at the edge."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
)
from infinitask.measures import Discrete, ProductMeasure, Uniform
from tests.support.each import each
from tests.support.estimator_cases import ESTIMATORS, LEVELS, Case, sample

each_case = each("case", [Case(value) for value in ESTIMATORS], ids=[value.__name__ for value in ESTIMATORS])


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda cls: cls.__name__)
def fitted(request: pytest.FixtureRequest) -> tuple[Case, Any, np.ndarray]:
    """A fitted model for tests that only ask it: the case, the model and X."""
    X, y = sample()
    return Case(request.param), Case(request.param).fit(X, y), X


each_supervised = each(
    "supervised",
    [Case(value) for value in [c for c in ESTIMATORS if c is not InfiniteOneClassSVM]],
    ids=[value.__name__ for value in [c for c in ESTIMATORS if c is not InfiniteOneClassSVM]],
)


# ------------------------------------------------------------------------------------------------- parameters
@each_supervised
def test_a_loss_of_one_number_refuses_a_plane_of_tasks(supervised: Case) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="measure"):
        supervised.fit(X, y, measure=ProductMeasure([Uniform(0.1, 0.9), Uniform(0.1, 0.9)]))


@each_case
def test_quadrature_of_a_discrete_measure_only(case: Case) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="Discrete"):
        case.fit(X, y, quadrature="discrete")
    model = case.fit(X, y, quadrature="discrete", measure=Discrete(LEVELS))
    assert model.nodes_.tolist() == LEVELS


@each_case
@each("device", ["abacus", "", 3.5])
def test_a_device_that_is_none(case: Case, device: Any) -> None:
    pytest.importorskip("torch")
    X, y = sample()
    with pytest.raises(ValueError, match=r"device=.*use device=None"):
        case.fit(X, y, device=device)


# ---------------------------------------------------------------------------------------------------------- θ
@each(
    ("theta", "sentence"),
    [
        (-2.0, "outside Θ"),
        ([0.5, 1.5], "contains 1.5, outside Θ"),
        (np.nan, "outside Θ"),
        ([0.5, np.inf], "outside Θ"),
        ("half", "must be a number"),
        ({0.5}, "must be a number"),
        ([], "not empty"),
        ([[0.1, 0.2]], "shape"),
        ([[[0.1]]], "shape"),
        ([[0.1], [0.2, 0.3]], "must be a number"),
    ],
    ids=repr,
)
def test_a_task_outside_theta(fitted: tuple[Case, Any, np.ndarray], theta: Any, sentence: str) -> None:
    case, model, X = fitted
    with pytest.raises(ValueError, match=sentence):
        case.values(model, X, theta)


@each(
    ("cls", "name"),
    [
        (InfiniteQuantileRegressor, "quantiles"),
        (InfiniteExpectileRegressor, "expectiles"),
        (InfiniteCostSensitiveClassifier, "theta"),
        (InfiniteOneClassSVM, "nu"),
        (InfiniteTaskEstimator, "theta"),
    ],
)
@each(("default", "sentence"), [(7.0, "contains 7.0, outside Θ"), ("half", "must be a number"), ([], "not empty")])
def test_a_default_task_that_no_measure_covers_is_refused_by_fit(
    cls: type[Any], name: str, default: Any, sentence: str
) -> None:
    if cls is InfiniteTaskEstimator and default == 7.0:
        default = 1.5  # beyond the pinball loss
        sentence = "contains 1.5, outside Θ"
    X, y = sample()
    with pytest.raises(ValueError, match=f"^{name}.*{sentence}"):
        Case(cls).fit(X, y, measure=Uniform(0.6, 0.9), **{name: default})


@each_case
def test_a_default_task_outside_the_measure_matters_only_where_it_is_asked_for(case: Case) -> None:
    X, y = sample()
    model = case.cls(n_nodes=8, measure=Uniform(0.6, 0.9)).fit(X, case.target(y))
    assert np.all(np.isfinite(case.values(model, X, 0.7)))
    if case.cls not in (InfiniteTaskEstimator, InfiniteSVR):  # whose defaults are inside any measure
        with pytest.raises(ValueError, match="outside Θ"):
            model.predict(X)


@each(
    ("cls", "params"),
    [
        (InfiniteOneClassSVM, {"nu": 0.01}),
        (InfiniteSVR, {"epsilon": 3.0}),
        (InfiniteKernelRidge, {"log_alpha": 5.0}),
        (InfiniteQuantileRegressor, {"quantiles": [0.1, 0.5], "measure": (0.2, 0.8)}),
    ],
)
def test_a_task_that_the_user_names_must_lie_inside(cls: type[Any], params: dict[str, Any]) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="outside Θ"):
        cls(**params).fit(X, y)


@each_case
@each("parameter", ["task_kernel", "bias_kernel"])
def test_a_diagonal_kernel_knows_nothing_between_the_nodes(case: Case, parameter: str) -> None:
    if not case.takes(parameter):
        pytest.skip("has no such parameter")
    X, y = sample()
    extra = {"noncrossing": 0.0} if case.takes("noncrossing") else {}
    model = case.fit(X, y, **{parameter: "diagonal"}, **extra)
    assert np.all(np.isfinite(case.values(model, X, model.nodes_)))
    with pytest.raises(ValueError, match="not a node"):
        case.values(model, X, 0.5 * (model.nodes_[3] + model.nodes_[4]))


# ------------------------------------------------------------------------------------------------------- data
@each_case
def test_data_that_are_no_data(case: Case) -> None:
    X, y = sample()
    hole = X.copy()
    hole[3, 1] = np.nan
    pole = X.copy()
    pole[3, 1] = np.inf
    model = case.fit(X, y)
    for wrong, sentence in ((hole, "NaN"), (pole, "infinity"), (X[:, 0], "2D"), (X[:0], "0 sample")):
        with pytest.raises(ValueError, match=sentence):
            case.make().fit(wrong, case.target(y))
        with pytest.raises(ValueError, match=sentence):
            case.values(model, wrong)


@each_case
def test_bad_data_leave_a_fitted_estimator_unfitted_rather_than_stale(case: Case) -> None:
    X, y = sample()
    model = case.fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), case.target(y))
    with pytest.raises(NotFittedError):
        model.predict(X)


@each_supervised
def test_targets_that_are_no_targets(supervised: Case) -> None:
    X, y = sample()
    target = supervised.target(y)
    with pytest.raises(ValueError, match="inconsistent"):
        supervised.make().fit(X, target[:-1])
    with pytest.raises(ValueError, match="1d"):
        supervised.make().fit(X, np.column_stack([target, target]))
    with pytest.raises(ValueError, match=r"y.*None|None.*y"):
        supervised.make().fit(X, None)
    with pytest.raises(ValueError, match="NaN"):
        supervised.make().fit(X, np.where(y > 0.0, np.nan, 1.0))


@each_case
@each(
    ("weight", "sentence"),
    [
        (-1.0, "(?i)negative"),
        (0.0, "(?i)zero"),
        (np.nan, "NaN"),
        (np.inf, "infinity"),
    ],
)
def test_weights_that_are_no_weights(case: Case, weight: float, sentence: str) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=sentence):
        case.fit(X, y, sample_weight=np.full(len(y), weight))


@each_case
def test_weights_of_the_wrong_shape(case: Case) -> None:
    X, y = sample()
    for wrong in (np.ones(len(y) - 1), np.ones((len(y), 1))):
        with pytest.raises(ValueError, match=r"(?i)sample.weight"):
            case.fit(X, y, sample_weight=wrong)


@each_case
def test_a_precomputed_gram_must_be_square(case: Case) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match="square Gram"):
        case.fit(X, y, kernel="precomputed")


@each_case
@each("size", [1e-150, 1e150])
def test_extreme_features_are_refused(case: Case, size: float) -> None:
    X, y = sample()
    with pytest.raises(ValueError, match=r"X holds values of magnitude.*Rescale"):
        case.fit(size * X, y)


@each_case
def test_the_unit_of_the_features_does_not_matter(case: Case) -> None:
    X, y = sample()
    expected = case.values(case.fit(X, y), X)
    for unit in (2.0**-300, 2.0**300):
        found = case.values(case.fit(unit * X, y), unit * X)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@each("size", [1e3, 1e20, 1e90])
def test_an_outlier_among_the_asked_rows_does_not_disturb_the_others(
    fitted: tuple[Case, Any, np.ndarray], size: float
) -> None:
    case, model, X = fitted
    values = case.values(model, np.vstack([X, [[size, 0.0]]]))
    np.testing.assert_allclose(values[:-1], case.values(model, X), rtol=1e-9, atol=1e-9)
    assert np.all(np.isfinite(values[-1]))


@each("size", [1e101, -1e200, 1e308])
def test_an_extreme_row_is_refused_as_in_fit(fitted: tuple[Case, Any, np.ndarray], size: float) -> None:
    case, model, X = fitted
    with pytest.raises(ValueError, match=r"X holds values of magnitude.*Rescale"):
        case.values(model, np.vstack([X, [[size, 0.0]]]))


def test_rows_close_to_zero_can_be_predicted(fitted: tuple[Case, Any, np.ndarray]) -> None:
    # the smallest scale matters to a bandwidth; a fitted model has one
    case, model, _ = fitted
    np.testing.assert_allclose(
        case.values(model, np.full((1, 2), 1e-200)), case.values(model, np.zeros((1, 2))), rtol=1e-9, atol=1e-12
    )


@each_case
def test_few_or_equal_rows(case: Case) -> None:
    X, y = sample()
    for rows in (X[[0, -1]], np.repeat(X[:1], 10, axis=0)):
        target = None if case.target(y) is None else case.target(y[: len(rows)])
        if case.cls is InfiniteCostSensitiveClassifier:
            target = np.arange(len(rows)) % 2
        model = case.make().fit(rows, target)
        assert model.dual_gap_ <= model.tol
        assert np.all(np.isfinite(case.values(model, X)))


@each_case
def test_one_row(case: Case) -> None:
    if case.cls is InfiniteCostSensitiveClassifier:
        pytest.skip("one row has one class")
    X, y = sample()
    model = case.fit(X[:1], y[:1])
    assert model.dual_gap_ <= model.tol
    assert np.all(np.isfinite(case.values(model, X)))


def degenerate() -> dict[str, np.ndarray]:
    """Features without variation or size, and one feature: the kernel of few rows has a rank of one, or of zero."""
    one = sample(16)[0][:, :1]
    return {"one": one, "signs": np.sign(one), "zeros": np.zeros((16, 2)), "constants": np.full((16, 2), 3.0)}


@each_case
@each("bias", [{}, {"bias_kernel": None}, {"alpha_bias": None}], ids=["free bias", "no bias", "ridge on the bias"])
@each("X", degenerate().values(), ids=degenerate())
def test_a_linear_kernel_of_degenerate_features(case: Case, bias: dict[str, Any], X: np.ndarray) -> None:
    if not all(map(case.takes, bias)) or (case.cls is InfiniteOneClassSVM and "bias_kernel" in bias):
        pytest.skip("the threshold of a level set is its bias")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = case.fit(X, sample(16)[1], kernel="linear", **bias)
        values = case.values(model, X)
    assert np.all(np.isfinite(values))
    assert model.dual_gap_ <= model.tol
    if not np.ptp(X):
        assert np.all(np.ptp(values, axis=0) == 0.0)
