"""What every public estimator promises, whatever its task."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

import infinitask
from infinitask import (
    InfiniteCensoredQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
)
from infinitask.estimators._shared import estimator
from infinitask.features import Nystroem
from infinitask.kernels import RBF, Gaussian, Linear, Precomputed
from infinitask.measures import Sobol, Uniform
from tests.support.each import each
from tests.support.estimator_cases import ESTIMATORS, LEVELS, Case, sample
from tests.support.scikit_learn_checks import run_checks

SAME_ROAD = {InfiniteCensoredQuantileRegressor, InfiniteExpectileRegressor, InfiniteSVR, InfiniteTaskEstimator}
"""Estimators that a fit treats as others here: the quick tests leave them out."""


@pytest.fixture(
    params=[pytest.param(cls, marks=pytest.mark.slow) if cls in SAME_ROAD else cls for cls in ESTIMATORS],
    ids=lambda cls: cls.__name__,
)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda cls: cls.__name__)
def fitted(request: pytest.FixtureRequest) -> tuple[Case, Any, np.ndarray]:
    """A fitted model for tests that only ask it: the case, the model and X."""
    X, y = sample()
    return Case(request.param), Case(request.param).fit(X, y), X


# ---------------------------------------------------------------------------------------------- scikit-learn
QUICK: dict[str, dict[str, Any]] = {
    "InfiniteCensoredQuantileRegressor": {"n_nodes": 4, "alpha": 1e-1, "tol": 1e-2},
    "InfiniteOneClassSVM": {"n_nodes": 10, "alpha": 1e-3},
    "InfiniteCostSensitiveClassifier": {"n_nodes": 4, "alpha": 1e-2, "alpha_bias": None, "tol": 1e-2},
    "InfiniteQuantileRegressor": {"n_nodes": 4, "alpha": 1e-1, "tol": 1e-2},
    "InfiniteSVR": {"n_nodes": 8, "tol": 1e-3},
    "InfiniteTaskEstimator": {"n_nodes": 8},
}
"""Estimators that by default fit ten more times for their thresholds, without that, and others with few nodes: the
checks fit them a hundred times."""


def test_scikit_learn_accepts_it(case: Case) -> None:
    run_checks(case.cls(**QUICK.get(case.cls.__name__, {})))


def test_every_public_estimator_is_tested_here() -> None:
    names = [name for name in infinitask.__all__ if name.startswith("Infinite")]
    names.remove("InfiniteFunctionRegressor")  # of curves, not of tasks: see test_function_regressor.py
    tuned = {name for name in names if name.endswith("CV")}  # these are in tests/tuning
    assert {getattr(infinitask, name) for name in names if name not in tuned} == set(ESTIMATORS)
    assert {name.removesuffix("CV") for name in tuned} < set(names)


def test_a_clone_has_equal_parameters_and_is_not_fitted(case: Case) -> None:
    X, y = sample()
    model = case.fit(X, y, task_kernel=Gaussian(gamma=3.0), kernel=RBF(0.5) + Linear(), measure=Uniform(0.1, 0.9))
    copy = clone(model)
    assert repr(copy.get_params()) == repr(model.get_params())
    assert copy.task_kernel is not model.task_kernel
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    assert np.array_equal(case.values(copy.fit(X, case.target(y)), X), case.values(model, X))


def test_a_pickle_answers_with_the_same_bits(fitted: tuple[Case, Any, np.ndarray]) -> None:
    case, model, X = fitted
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(case.values(again, X), case.values(model, X))
    assert again.dual_gap_ == model.dual_gap_


def test_nested_parameters_can_be_set(case: Case) -> None:
    model = case.make(task_kernel=Gaussian(), kernel=RBF(), quadrature=Sobol(), features=Nystroem())
    model.set_params(task_kernel__gamma=2.0, kernel__gamma=0.7, quadrature__scramble=False, features__rank=9)
    assert (model.task_kernel.gamma, model.kernel.gamma) == (2.0, 0.7)
    X, y = sample()
    fitted = model.fit(X, case.target(y))
    assert fitted.task_kernel_.gamma == 2.0
    assert "9" in fitted.features_


def test_columns_of_a_data_frame_are_remembered(case: Case) -> None:
    pd = pytest.importorskip("pandas")
    X, y = sample()
    frame = pd.DataFrame(X, columns=["b", "a"])
    model = case.fit(frame, y)
    assert model.feature_names_in_.tolist() == ["b", "a"]
    assert model.n_features_in_ == 2
    assert np.array_equal(case.values(model, frame), case.values(case.fit(X, y), X))
    with pytest.raises(ValueError, match="order"):
        case.values(model, frame[["a", "b"]])


def test_attributes_after_a_fit(fitted: tuple[Case, Any, np.ndarray]) -> None:
    case, model, X = fitted
    assert model.nodes_.shape == model.weights_.shape == (8,)
    assert np.isclose(model.weights_.sum(), 1.0)
    assert 0.0 <= model.dual_gap_ <= model.tol
    assert model.solution_.converged
    assert model.solution_.objective == model.objective_
    assert model.n_iter_ >= 1
    values = model.field_(X, LEVELS)
    if hasattr(model, "shift_"):  # a threshold that is set last is taken off, a decision is moved
        classifies = case.cls is InfiniteCostSensitiveClassifier
        values = values + model.shift_(LEVELS) if classifies else values - model.shift_(LEVELS)
    assert np.array_equal(values, case.values(model, X))


def test_one_task_or_many(fitted: tuple[Case, Any, np.ndarray]) -> None:
    case, model, X = fitted
    many = case.values(model, X)
    assert many.shape == (len(X), 3)
    assert np.array_equal(case.values(model, X, np.asarray(LEVELS)[:, None]), many)
    for j, level in enumerate(LEVELS):
        one = case.values(model, X, level)
        assert one.shape == (len(X),)
        np.testing.assert_allclose(one, many[:, j], rtol=1e-9, atol=1e-9)
        assert case.values(model, X, [level]).shape == (len(X), 1)


# -------------------------------------------------------------------------------------------------- weights
def test_a_weight_of_k_is_a_row_repeated_k_times(case: Case) -> None:
    X, y = sample()
    times = np.random.default_rng(1).integers(1, 4, size=len(y))
    weighted = case.fit(X, y, sample_weight=times)
    # labels come from the median: repeat them, not y
    repeated = case.make().fit(
        np.repeat(X, times, axis=0), None if case.target(y) is None else np.repeat(case.target(y), times)
    )
    assert np.array_equal(case.values(weighted, X), case.values(repeated, X))
    assert weighted.objective_ == repeated.objective_


def test_a_weight_of_zero_removes_a_row(case: Case) -> None:
    X, y = sample()
    kept = np.arange(len(y)) % 3 > 0
    target = case.target(y)
    zero = case.make().fit(X, target, sample_weight=kept.astype(float))
    gone = case.make().fit(X[kept], None if target is None else target[kept])
    assert np.array_equal(case.values(zero, X), case.values(gone, X))


def test_the_order_of_the_rows_does_not_matter(case: Case) -> None:
    X, y = sample(30)
    times = 1 + np.arange(30) % 2  # some of them are equal
    X, y = np.repeat(X, times, axis=0), np.repeat(y, times)
    rng = np.random.default_rng(2)
    weight = rng.random(len(y))
    order = rng.permutation(len(y))
    one = case.fit(X, y, sample_weight=weight)
    other = case.fit(X[order], y[order], sample_weight=weight[order])
    assert np.array_equal(case.values(one, X), case.values(other, X))


def test_only_the_ratio_of_weights_matters(case: Case) -> None:
    X, y = sample()
    expected = case.values(case.fit(X, y), X)
    for scale in (2.0**1000, 2.0**-1000):
        scaled = case.fit(X, y, sample_weight=np.full(len(y), scale))
        assert np.array_equal(case.values(scaled, X), expected)


# ----------------------------------------------------------------------------------------- what a fit touches
def test_a_fit_writes_neither_to_specs_nor_to_parameters(case: Case) -> None:
    X, y = sample()
    model = case.make(
        kernel=RBF() + Linear(),
        task_kernel=Gaussian(),
        quadrature=Sobol(),
        features=Nystroem(20),
        measure=Uniform(0.1, 1),
    )
    if case.cls is InfiniteCostSensitiveClassifier:
        model.set_params(theta=[0.2, 0.5])
    if case.cls is InfiniteQuantileRegressor:
        model.set_params(quantiles=[0.1, 0.9])
    before = {name: (value, pickle.dumps(value)) for name, value in model.get_params(deep=False).items()}
    model.fit(X, case.target(y))
    model.predict(X)
    for name, value in model.get_params(deep=False).items():
        assert value is before[name][0], name
        assert pickle.dumps(value) == before[name][1], name


def test_a_fit_leaves_the_data_alone(case: Case) -> None:
    X, y = sample()
    weight = np.ones(len(y))
    target = case.target(y)
    copies = X.copy(), y.copy()
    for array in (X, weight):
        array.flags.writeable = False
    model = case.make().fit(X, target, sample_weight=weight)
    case.values(model, X)
    assert np.array_equal(X, copies[0])
    assert np.array_equal(y, copies[1])


def test_a_second_fit_forgets_the_first(case: Case) -> None:
    pd = pytest.importorskip("pandas")
    X, y = sample()
    model = case.fit(pd.DataFrame(X, columns=["a", "b"]), y)
    model.fit(X[:, :1], case.target(y))
    assert model.n_features_in_ == 1
    assert not hasattr(model, "feature_names_in_")
    fresh = case.make().fit(X[:, :1], case.target(y))
    assert np.array_equal(case.values(model, X[:, :1]), case.values(fresh, X[:, :1]))


def test_a_second_fit_forgets_rows_left_out(case: Case) -> None:
    X, y = sample()
    K = RBF(0.5)(X, X)
    weight = np.ones(len(y))
    weight[::2] = 0.0
    weight[1] = 2.0
    model = case.fit(K, y, sample_weight=weight, kernel="precomputed")
    model.fit(K, case.target(y))
    assert np.array_equal(case.values(model, K), case.values(case.fit(K, y, kernel="precomputed"), K))


def test_changing_a_parameter_after_a_fit_changes_no_answer(case: Case) -> None:
    X, y = sample()
    model = case.fit(X, y)
    before = case.values(model, X)
    model.set_params(kernel="linear", task_kernel="constant", measure=Uniform(0.4, 0.6), n_nodes=3)
    if case.takes("alpha"):
        model.set_params(alpha=7.0)
    assert np.array_equal(case.values(model, X), before)


def bell(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def test_an_interrupt_leaves_the_estimator_unfitted(case: Case) -> None:
    X, y = sample()
    calls, last = 0, 0

    def interrupted(A: np.ndarray, B: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == last:
            raise KeyboardInterrupt
        return bell(A, B)

    model = case.fit(X, y, kernel=interrupted)
    calls, last = 0, 1 + calls // 2  # the next fit ends half way
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, case.target(y))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert np.array_equal(case.values(model.fit(X, case.target(y)), X), case.values(case.fit(X, y, kernel=bell), X))


# ------------------------------------------------------------------------------------- certificate and display
def test_a_fit_that_ends_too_early_says_by_how_much(case: Case) -> None:
    X, y = sample()
    with pytest.warns(ConvergenceWarning, match="gap") as caught:
        model = case.make(max_iter=1).fit(X, case.target(y))
    assert model.dual_gap_ > model.tol
    message = str(caught[0].message)
    assert f"{model.dual_gap_:.1e}" in message
    assert case.cls.__name__ in message
    assert caught[0].filename == __file__  # the line of the user, not one of the library
    assert np.all(np.isfinite(case.values(model, X)))


def test_the_gap_bounds_the_distance_to_a_better_solution(case: Case) -> None:
    X, y = sample()
    rough, fine = case.fit(X, y, tol=1e-2), case.fit(X, y, tol=1e-7)
    assert fine.dual_gap_ <= 1e-7
    assert fine.objective_ <= rough.objective_ + 1e-12
    assert rough.objective_ - fine.objective_ <= rough.dual_gap_ * abs(rough.objective_) + 1e-12


@each("solver", ["lbfgs", "newton"])
def test_solvers_agree(case: Case, solver: str) -> None:
    X, y = sample()
    params = {"alpha": 0.05, "tol": 1e-7}
    with warnings.catch_warnings():
        if solver == "lbfgs":  # it alone need not reach such a gap; its answer is held against its own certificate
            warnings.simplefilter("ignore", ConvergenceWarning)
        one = case.fit(X, y, solver=solver, **params)
    auto = case.fit(X, y, **params)
    size = abs(auto.objective_)
    assert abs(one.objective_ - auto.objective_) <= (one.dual_gap_ + auto.dual_gap_) * size + 1e-12


def test_verbose_shows_the_gap_and_silence_is_silent(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = sample()
    lines = []
    for verbose in (0, 1, 2):
        case.fit(X, y, verbose=verbose)
        shown = capsys.readouterr()
        assert shown.out == ""  # what a program prints is its own
        lines.append(shown.err.splitlines())
    assert lines[0] == []
    assert any("gap" in line for line in lines[1])
    assert any(case.cls.__name__ in line for line in lines[1])
    assert len(lines[2]) > len(lines[1]) or case.cls is InfiniteOneClassSVM  # a walk is one evaluation


# -------------------------------------------------------------------------------------------------- randomness
@each(
    "params",
    [
        {"features": "nystroem", "rank": 10},
        {"features": "fourier", "rank": 20},
        {"quadrature": "sobol"},
        {"quadrature": "halton"},
        {"quadrature": "monte-carlo"},
    ],
    ids=lambda params: "-".join(map(str, params.values())),
)
def test_a_seed_decides_everything(case: Case, params: dict[str, Any]) -> None:
    X, y = sample()
    one, two, other = (case.values(case.fit(X, y, alpha=0.05, **params, random_state=seed), X) for seed in (3, 3, 4))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_a_shared_random_state_moves_on(case: Case) -> None:
    X, y = sample()
    rng = np.random.RandomState(0)
    model = case.make(quadrature="monte-carlo", random_state=rng)
    first = model.fit(X, case.target(y)).nodes_
    assert not np.array_equal(first, model.fit(X, case.target(y)).nodes_)


def test_without_drawing_the_seed_plays_no_role(case: Case) -> None:
    X, y = sample()
    answers = [case.values(case.fit(X, y, random_state=seed), X) for seed in (None, 1, 2)]
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


# ------------------------------------------------------------------------------------------- where data live
def test_torch_gives_the_answers_of_numpy(case: Case) -> None:
    pytest.importorskip("torch")
    X, y = sample(25)
    host, device = (case.fit(X, y, alpha=0.05, n_nodes=6, device=where) for where in (None, "cpu"))
    answer = case.values(device, X)
    assert isinstance(answer, np.ndarray)
    # the optimum of level sets is flat: rounding moves the last steps, both within the certificate
    tolerance = 1e-4 if case.cls is InfiniteOneClassSVM else 1e-6
    np.testing.assert_allclose(answer, case.values(host, X), rtol=tolerance, atol=tolerance)
    bound = (host.dual_gap_ + device.dual_gap_) * abs(host.objective_)
    assert abs(host.objective_ - device.objective_) <= bound + 1e-15
    again = pickle.loads(pickle.dumps(device))
    assert np.array_equal(case.values(again, X), answer)


def test_torch_takes_data_that_may_not_be_written_to() -> None:
    # joblib hands such arrays to the workers of a search
    torch = pytest.importorskip("torch")
    X, y = sample(20)
    model = InfiniteExpectileRegressor(n_nodes=4, device="cpu").fit(X, y)
    X.flags.writeable = False
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # otherwise torch warns once in a process
    try:
        assert np.all(np.isfinite(model.predict(X)))
    finally:
        torch.set_warn_always(always)


# -------------------------------------------------------------------------------------- kernels known otherwise
@each("form", ["name", "object"])
def test_a_precomputed_gram_is_the_kernel_itself(case: Case, form: str) -> None:
    X, y = sample()
    new = sample(7, seed=5)[0]
    kernel = RBF(gamma=0.5)
    direct = case.fit(X, y, kernel=kernel)
    known = case.fit(kernel(X, X), y, kernel="precomputed" if form == "name" else Precomputed())
    np.testing.assert_allclose(case.values(known, kernel(new, X)), case.values(direct, new), rtol=1e-7, atol=1e-7)


def test_a_precomputed_gram_with_rows_of_weight_zero(case: Case) -> None:
    X, y = sample()
    new = sample(7, seed=5)[0]
    kernel = RBF(gamma=0.5)
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    direct = case.fit(X, y, sample_weight=weight, kernel=kernel)
    known = case.fit(kernel(X, X), y, sample_weight=weight, kernel="precomputed")
    np.testing.assert_allclose(case.values(known, kernel(new, X)), case.values(direct, new), rtol=1e-7, atol=1e-7)


@each("form", ["name", "object"])
def test_folds_cut_a_precomputed_gram_on_both_sides(case: Case, form: str) -> None:
    kernel = "precomputed" if form == "name" else Precomputed()
    assert case.make(kernel=kernel).__sklearn_tags__().input_tags.pairwise
    assert not case.make(kernel=RBF()).__sklearn_tags__().input_tags.pairwise


def test_a_function_is_a_kernel(case: Case) -> None:
    X, y = sample()
    known = case.fit(X, y, kernel=RBF(gamma=0.5))
    np.testing.assert_allclose(case.values(case.fit(X, y, kernel=bell), X), case.values(known, X), rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------------------------------- constructors
def test_the_constructor_of_a_derived_estimator_is_a_list_of_fields() -> None:
    @estimator
    class Shrunk(InfiniteQuantileRegressor):
        """Quantiles with one more parameter.

        Parameters
        ----------
        factor : float, default=2.0
        {parameters}
        """

        factor: float = 2.0
        n_nodes: int | None = 5

    X, y = sample()
    model = clone(Shrunk(factor=3.0)).fit(X, y)
    assert (model.factor, len(model.nodes_)) == (3.0, 5)
    assert set(Shrunk().get_params()) == {*InfiniteQuantileRegressor().get_params(), "factor"}
    assert all(f"\n{name} : " in (Shrunk.__doc__ or "") for name in ("alpha", "tol", "factor"))
    np.testing.assert_array_equal(model.predict(X), InfiniteQuantileRegressor(n_nodes=5).fit(X, y).predict(X))
    with pytest.raises(TypeError, match="unexpected keyword argument 'levels'"):
        Shrunk(levels=3)  # type: ignore[call-arg]
