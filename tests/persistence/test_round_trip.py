"""A model from a file answers as the model that was saved, bit by bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from infinitask import (
    CrossConformal,
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
    QOneClassSVM,
    TransformedTarget,
    fit_path,
    load,
    save,
)
from infinitask.features import Nystroem, PivotedCholesky, RandomFourier
from infinitask.kernels import (
    RBF,
    Additive,
    Chi2,
    Gaussian,
    Laplacian,
    LearntMetric,
    Linear,
    Matern,
    MaternTask,
    Metric,
    Polynomial,
    Product,
    Ranks,
    Scaled,
    Sum,
    Warped,
)
from infinitask.losses import EpsilonInsensitive, MQuantile, Pinball
from infinitask.measures import Beta, Discrete, GaussLegendre, ProductMeasure, TruncatedNormal, Uniform
from infinitask.penalties import IntegratedRidge, Ridge
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
    OptunaSearch,
)
from tests.support.estimator_cases import ESTIMATORS, Case, sample
from tests.support.saved import again, answers, same

X, Y = sample(40)
NEW = sample(15, seed=1)[0]
LABELS = np.where(np.median(Y) < Y, "yes", "no")

QUICK: dict[str, Any] = {"n_nodes": 6, "tol": 1e-2, "random_state": 0}

KERNELS: dict[str, Any] = {
    **{name: name for name in ("rbf", "laplacian", "matern12", "matern32", "matern52", "linear", "polynomial")},
    "RBF": RBF(gamma=0.7),
    "sum": Sum(RBF(gamma=0.5), Linear()),
    "product": Product(Matern(nu=1.5), Polynomial(degree=2)),
    "scaled": Scaled(Laplacian(gamma=0.3), (1.0, 0.5)),
    "additive": Additive(RBF(gamma=1.0)),
    "metric": Metric(RBF(gamma=1.0), [[1.0, 0.2], [0.2, 0.5]]),
    "learnt metric": LearntMetric(RBF()),
    "warped": Warped(RBF(gamma=1.0), Ranks.of(X)),
}
FEATURES: dict[str, Any] = {
    "exact": {"features": "exact"},
    "nystroem": {"features": "nystroem", "rank": 15},
    "fourier": {"features": "fourier", "rank": 20, "kernel": "rbf"},
    "Cholesky": {"features": PivotedCholesky()},
    "landmarks": {"features": Nystroem(), "rank": 10},
    "Fourier": {"features": RandomFourier(), "rank": 20, "kernel": "rbf"},
    "certified": {"features": "nystroem", "rank": 15, "certify": "kernel"},
}
OPTIONS: dict[str, Any] = {
    "default": {},
    "numbers": {"alpha": 1e-3, "gamma": 2.0, "alpha_bias": None},
    "no bias": {"bias_kernel": None, "alpha": 1e-2},
    "task kernel": {"task_kernel": Gaussian(gamma=3.0), "bias_kernel": MaternTask(nu=2.5)},
    "measure": {"measure": Beta(2.0, 2.0)},
    "normal measure": {"measure": TruncatedNormal(0.5, 0.2, 0.05, 0.95)},
    "discrete measure": {"measure": Discrete([0.1, 0.5, 0.9])},
    "SciPy measure": {"measure": stats.uniform(0.05, 0.9)},
    "SciPy names": {"measure": stats.beta(a=2.0, b=3.0)},
    "rule": {"quadrature": GaussLegendre(density=True)},
    "sobol": {"quadrature": "sobol", "n_nodes": 8},
    "random state": {"quadrature": "monte-carlo", "random_state": np.random.RandomState(3), "n_nodes": 8},
    "warm": {"warm_start": True},
}
QUANTILE_OPTIONS: dict[str, Any] = {
    "rearranged": {"noncrossing": "rearrange"},
    "hard": {"noncrossing": "hard"},
    "no order": {"noncrossing": 0.0},
    "smoothed": {"smoothing": 0.1},
    "many levels": {"quantiles": [0.1, 0.5, 0.9]},
    "inputs": {"noncrossing": 1.0, "noncrossing_inputs": X[:5]},
}


NOT_FOR_LEVEL_SETS = {"learnt metric", "no bias", "measure", "SciPy names"}


def pairs(names: Any) -> list[tuple[str, Case]]:
    """Names with all estimators that take what they stand for."""
    return [
        (name, Case(cls))
        for name in names
        for cls in ESTIMATORS
        if cls is not InfiniteOneClassSVM or name not in NOT_FOR_LEVEL_SETS
    ]


@pytest.fixture(params=ESTIMATORS, ids=lambda cls: cls.__name__)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def check(model: Any, folder: Path, rows: Any = NEW) -> Any:
    """The law; returns the loaded model."""
    before = answers(model, rows)
    assert before
    loaded = again(model, folder)
    assert type(loaded) is type(model)
    assert loaded is not model
    after = answers(loaded, rows)
    for name, answer in before.items():
        assert same(answer, after[name]), name
    assert shown(loaded) == shown(model)
    return loaded


def shown(model: Any) -> str:
    """A model in words, without the addresses of random states."""
    return re.sub(r" at 0x\w+", "", repr(model))


def test_every_estimator_with_every_kind_of_features(case: Case, tmp_path: Path) -> None:
    for options in ({}, {"features": "nystroem", "rank": 12}, {"features": "fourier", "rank": 20}):
        check(case.fit(X, Y, tol=1e-2, n_nodes=6, **options), tmp_path)


def test_every_estimator_before_it_was_fitted(case: Case, tmp_path: Path) -> None:
    model = case.make(kernel=Sum(RBF(), Linear()), measure=(0.1, 0.9))
    loaded = again(model, tmp_path)
    assert repr(loaded) == repr(model)
    assert not hasattr(loaded, "field_")
    assert same(case.values(loaded.fit(X, case.target(Y)), NEW), case.values(model.fit(X, case.target(Y)), NEW))


@pytest.mark.slow
def test_every_estimator_with_a_precomputed_kernel(case: Case, tmp_path: Path) -> None:
    model = case.fit(X @ X.T + 1.0, Y, kernel="precomputed", tol=1e-2)
    check(model, tmp_path, NEW @ X.T + 1.0)


@pytest.mark.slow
def test_every_estimator_of_sparse_features(case: Case, tmp_path: Path) -> None:
    check(case.fit(sparse.csr_array(np.maximum(X, 0.0)), Y, tol=1e-2), tmp_path, sparse.csr_array(np.maximum(NEW, 0)))


@pytest.mark.parametrize("kernel", KERNELS)
def test_quantiles_with_every_kernel(kernel: str, tmp_path: Path) -> None:
    check(InfiniteQuantileRegressor(kernel=KERNELS[kernel], **QUICK).fit(X, Y), tmp_path)


def test_quantiles_with_the_kernel_of_positive_features(tmp_path: Path) -> None:
    check(InfiniteQuantileRegressor(kernel=Chi2(), **QUICK).fit(1.0 + np.abs(X), Y), tmp_path, 1.0 + np.abs(NEW))


@pytest.mark.slow
@pytest.mark.parametrize(("kernel", "case"), pairs(KERNELS), ids=str)
def test_every_estimator_with_every_kernel(kernel: str, case: Case, tmp_path: Path) -> None:
    for features in ({}, {"features": "nystroem", "rank": 12}):
        check(case.fit(X, Y, kernel=KERNELS[kernel], tol=1e-2, **features), tmp_path)


@pytest.mark.parametrize("features", FEATURES)
def test_quantiles_with_all_features(features: str, tmp_path: Path) -> None:
    check(InfiniteQuantileRegressor(**QUICK, **FEATURES[features]).fit(X, Y), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("option", OPTIONS | QUANTILE_OPTIONS)
def test_quantiles_with_all_options(option: str, tmp_path: Path) -> None:
    model = InfiniteQuantileRegressor(**{**QUICK, **(OPTIONS | QUANTILE_OPTIONS)[option]}).fit(X, Y)
    loaded = check(model, tmp_path)
    held_out = sample(60, seed=2)
    check(loaded.conformalize(*held_out), tmp_path)
    assert same(answers(loaded, NEW), answers(model.conformalize(*held_out), NEW))


@pytest.mark.slow
@pytest.mark.parametrize(("option", "case"), pairs(OPTIONS), ids=str)
def test_every_estimator_with_all_options(option: str, case: Case, tmp_path: Path) -> None:
    options = {name: value for name, value in OPTIONS[option].items() if case.takes(name)}
    check(case.fit(X, Y, **{"tol": 1e-2, **options}), tmp_path)


def test_costs_are_chosen_alike_after_a_load(tmp_path: Path) -> None:
    model = InfiniteCostSensitiveClassifier(**QUICK).fit(X, LABELS)
    loaded = check(model, tmp_path)
    held_out = sample(60, seed=2)
    labels = np.where(held_out[1] > np.median(Y), "yes", "no")
    for wish in ({"fn_cost": 5, "fp_cost": 1}, {"max_fpr": 0.4, "confidence": 0.8}):
        chosen = loaded.choose_theta(held_out[0], labels, **wish)
        assert same(chosen, model.choose_theta(held_out[0], labels, **wish))
        assert same(loaded.predict(NEW, theta=chosen), model.predict(NEW, theta=chosen))
    assert same(loaded.predict(NEW, theta=[-0.9, 0.0, 0.9]), model.predict(NEW, theta=[-0.9, 0.0, 0.9]))


@pytest.mark.parametrize("options", [{"nested": True}, {"exact_fractions": True}, {"exact_fractions": False}], ids=str)
def test_level_sets_with_their_options(options: dict[str, Any], tmp_path: Path) -> None:
    model = InfiniteOneClassSVM(**QUICK, **options).fit(X)
    loaded = check(model, tmp_path)
    assert same(loaded.predict(NEW, nu=[0.1, 0.4]), model.predict(NEW, nu=[0.1, 0.4]))


@pytest.mark.parametrize(
    "model",
    [
        InfiniteExpectileRegressor(**QUICK, noncrossing_loss="squared"),
        InfiniteKernelRidge(n_nodes=6, tol=1e-2),
        InfiniteKernelRidge(n_nodes=6, tol=1e-2, centred=False),
        InfiniteSVR(**QUICK),
        InfiniteFunctionRegressor(tol=1e-2),
        InfiniteTaskEstimator(Pinball(), **QUICK),
        InfiniteTaskEstimator(MQuantile(0.2), **QUICK, noncrossing=0.5),
        InfiniteTaskEstimator(EpsilonInsensitive(), **QUICK, measure=(0.0, 0.5)),
        JointQuantileRegressor(quantiles=[0.1, 0.25, 0.5, 0.75, 0.9], tol=1e-2),
        IndependentQuantileRegressor(quantiles=[0.1, 0.25, 0.5, 0.75, 0.9], tol=1e-2),
        CrossConformal(InfiniteQuantileRegressor(**QUICK), cv=3, random_state=0),
        TransformedTarget(InfiniteQuantileRegressor(**QUICK), func=np.arcsinh, inverse_func=np.sinh),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_regressors(model: Any, tmp_path: Path) -> None:
    check(model.fit(X, Y), tmp_path)


def test_finite_classifiers_and_level_sets(tmp_path: Path) -> None:
    check(IndependentCostSensitiveClassifier(tol=1e-2).fit(X, LABELS), tmp_path)
    check(QOneClassSVM(tol=1e-2).fit(X), tmp_path)


def test_models_that_tune_themselves(tmp_path: Path) -> None:
    few = {"random_state": 0, "n_nodes": 6, "tol": 1e-2}
    check(InfiniteQuantileRegressorCV(kernels=["rbf", "linear"], **few).fit(X, Y), tmp_path)
    check(InfiniteCostSensitiveClassifierCV(kernels=["rbf"], **few).fit(X, LABELS), tmp_path)
    check(InfiniteOneClassSVMCV(kernels=["rbf"], **few).fit(X), tmp_path)


@pytest.mark.slow
def test_models_that_tune_themselves_by_all_kernels(tmp_path: Path) -> None:
    check(InfiniteQuantileRegressorCV(random_state=0).fit(X, Y), tmp_path)
    check(InfiniteCostSensitiveClassifierCV(random_state=0).fit(X, LABELS), tmp_path)
    check(InfiniteOneClassSVMCV(random_state=0).fit(X), tmp_path)


def test_a_search_is_saved_without_its_study(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    model = InfiniteQuantileRegressor(**QUICK)
    search = OptunaSearch(model, {"alpha": (1e-4, 1.0)}, n_trials=2, cv=2, random_state=0, progress=False).fit(X, Y)
    loaded = again(search, tmp_path)
    assert same(loaded.predict(NEW), search.predict(NEW))
    assert loaded.best_params_ == search.best_params_
    assert not hasattr(loaded, "study_")


def test_tasks_in_the_plane_and_a_loss_that_was_registered(tmp_path: Path) -> None:
    from infinitask.losses import BoxLoss, Row
    from infinitask.persistence import register

    @register
    class TubePinball(BoxLoss):
        def row(self, theta: Any, y: Any) -> Row:
            return Row(theta[:, 0] - 1.0, theta[:, 0], dead_zone=theta[:, 1])

    plane = ProductMeasure([Uniform(0, 1), Uniform(0, 0.5)])
    model = InfiniteTaskEstimator(
        TubePinball(), measure=plane, quadrature="sobol", n_nodes=8, tol=1e-2, random_state=0
    ).fit(X, Y)
    tasks = [[0.1, 0.2], [0.9, 0.2]]
    assert same(again(model, tmp_path).decision_function(NEW, tasks), model.decision_function(NEW, tasks))


def test_a_path_of_models_shares_what_it_shared(tmp_path: Path) -> None:
    models = fit_path(InfiniteQuantileRegressor(**QUICK), X, Y, alphas=[1e-1, 1e-2])
    loaded = again(models, tmp_path)
    assert same([m.predict(NEW) for m in loaded], [m.predict(NEW) for m in models])


def test_a_fit_on_a_device_predicts_on_the_host_after_a_load(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = InfiniteQuantileRegressor(**QUICK, device="cpu").fit(X, Y)
    assert torch.is_tensor(model.field_.phi.landmarks)
    loaded = again(model, tmp_path)
    assert isinstance(loaded.field_.phi.landmarks, np.ndarray)
    assert loaded.device == "cpu"
    assert loaded.recipe_.device is None
    np.testing.assert_allclose(loaded.predict(NEW), model.predict(NEW), rtol=1e-10, atol=1e-10)


def test_the_memory_of_a_warm_start_is_not_saved(tmp_path: Path) -> None:
    model = InfiniteQuantileRegressor(**QUICK, warm_start=True).fit(X, Y)
    loaded = again(model, tmp_path)
    assert hasattr(model, "_memory")
    assert not hasattr(loaded, "_memory")
    assert same(loaded.fit(X, Y).predict(NEW), InfiniteQuantileRegressor(**QUICK).fit(X, Y).predict(NEW))


def test_saving_does_not_change_the_model(tmp_path: Path) -> None:
    model = InfiniteQuantileRegressor(**QUICK).fit(X, Y)
    before = answers(model, NEW)
    save(model, tmp_path / "a")
    save(load(tmp_path / "a"), tmp_path / "b")
    assert same(answers(model, NEW), before)
    assert same(answers(load(tmp_path / "b"), NEW), before)


def test_penalties_are_saved_without_a_model(tmp_path: Path) -> None:
    penalty = IntegratedRidge(np.exp)
    assert again(penalty, tmp_path).weight is np.exp
    assert repr(again(Ridge(), tmp_path)) == repr(Ridge())
