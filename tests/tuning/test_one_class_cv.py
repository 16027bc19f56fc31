"""Level sets that choose their own kernel."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_outlier_detector
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from infinitask import InfiniteOneClassSVM
from infinitask.datasets import make_mixture
from infinitask.kernels import RBF, Metric, Warped
from infinitask.measures import Discrete
from infinitask.metrics import mass_volume_area
from infinitask.tuning import InfiniteOneClassSVMCV
from infinitask.tuning._defaults import FACTORS, MAX_BOX_FEATURES
from infinitask.tuning._one_class_cv import Entrant, VolumeComparison, candidates, families, reference_points
from tests.support.scikit_learn_checks import run_checks

QUICK: dict[str, Any] = {"kernels": ["rbf"], "cv": 2, "n_nodes": 5, "tol": 1e-2, "exact_fractions": False}
LAST_FIT: dict[str, Any] = {"n_nodes": 12, "tol": 1e-2, "exact_fractions": False}
"""The last fit does not decide the kernel."""


@pytest.mark.slow
def test_scikit_learn_accepts_it() -> None:
    run_checks(InfiniteOneClassSVMCV(**QUICK))


# -------------------------------------------------------------------------------------------------------- the choice
@pytest.mark.slow
def test_on_two_moons_no_width_of_a_grid_has_a_smaller_volume() -> None:
    X = make_moons(200, noise=0.1, random_state=0)[0]
    new = make_moons(2000, noise=0.1, random_state=1)[0]

    def area(model: Any) -> float:
        return float(mass_volume_area(model.score_samples, new, masses=(0.1, 0.9), random_state=0))

    chosen = InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the narrowest has most rows on the boundary
        grid = [area(InfiniteOneClassSVM(kernel=RBF(gamma=g), **LAST_FIT).fit(X)) for g in (0.5, 2.0, 8.0, 20.0, 50.0)]
    assert max(grid) > 1.5 * min(grid)  # the width matters
    assert area(chosen) < 1.05 * min(grid)


@pytest.mark.slow
def test_units_of_the_features_do_not_matter() -> None:
    X = make_mixture(50, random_state=0)
    wide = X * [2.0**13, 2.0**-10]  # without rounding: the same to the last bit
    one, other = (InfiniteOneClassSVMCV(cv=2, random_state=0, **LAST_FIT).fit(data) for data in (X, wide))
    assert one.cv_results_["kernels"] == other.cv_results_["kernels"]
    np.testing.assert_array_equal(one.cv_results_["volumes"], other.cv_results_["volumes"])
    np.testing.assert_array_equal(one.score_samples(X), other.score_samples(wide))


@pytest.mark.slow
def test_the_order_of_rows_does_not_matter_and_weights_are_copies() -> None:
    X = make_mixture(30, random_state=0)
    weight = 1.0 + np.arange(30) % 2
    models = [
        InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(X, sample_weight=weight),
        InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(np.vstack([X[1::2], X[::-1]])),
    ]
    assert models[0].cv_results_["kernels"] == models[1].cv_results_["kernels"]
    np.testing.assert_allclose(models[0].cv_results_["volumes"], models[1].cv_results_["volumes"], atol=1e-12)


@pytest.mark.slow
def test_correlated_features_are_compared_by_their_covariance() -> None:
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(240, 1))
    X = factor + 0.15 * rng.normal(size=(240, 6))
    outliers = rng.normal(size=(100, 6))  # the same inputs one by one, without the dependence
    chosen = InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(X[:120])
    plain = InfiniteOneClassSVM(**LAST_FIT).fit(X[:120])
    assert isinstance(chosen.kernel_, Metric)
    new, normal = np.vstack([X[120:], outliers]), np.arange(220) < 120
    found, before = (roc_auc_score(normal, model.score_samples(new)) for model in (chosen, plain))
    assert found > 0.99
    assert found >= before


def test_features_with_long_tails_are_compared_by_their_ranks() -> None:
    X = np.exp(2.0 * np.random.default_rng(1).normal(size=(150, 4)))
    kernel, again = (candidates(features)["Gaussian of ranks"] for features in (X, np.log(X)))
    assert isinstance(kernel, Warped)
    # monotone maps of the inputs make no difference there
    np.testing.assert_allclose(kernel(X, X), again(np.log(X), np.log(X)), atol=1e-10)


def test_the_kernel_of_the_defaults_is_where_a_walk_begins() -> None:
    X = make_mixture(60, random_state=0)
    default = InfiniteOneClassSVM(**LAST_FIT).fit(X).kernel_
    first = families("auto", X, stationary_only=False)[0]
    name, kernel = first[len(first) // 2]
    assert name == "Gaussian, 5"
    np.testing.assert_allclose(kernel(X, X), default(X, X), atol=1e-12)


@pytest.mark.parametrize("best", range(len(FACTORS)))
def test_a_walk_ends_where_both_neighbours_are_worse(best: int) -> None:
    race = object.__new__(VolumeComparison)
    looked: list[int] = []

    def entrant(self: VolumeComparison, name: str, kernel: Any) -> Entrant:
        k = FACTORS.index(float(name.partition(", ")[2]))
        looked.append(k)
        return Entrant(name, kernel, np.array([abs(k - best) + 1.0]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(VolumeComparison, "entrant", entrant)
        found = race.walk([(f"Gaussian, {factor:g}", RBF(gamma=factor)) for factor in FACTORS], {}).values()
    assert min(found, key=lambda e: e.area).kernel.gamma == FACTORS[best]
    assert len(looked) == len(set(looked)) <= len(FACTORS)
    if 0 < best < len(FACTORS) - 1:
        assert {best - 1, best, best + 1} <= set(looked)


def test_reference_points_fill_a_box_or_differ_from_rows_in_some_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, MAX_BOX_FEATURES))
    points = reference_points(X, rng, 4000)
    middle = (X.min(axis=0) + X.max(axis=0)) / 2.0
    assert np.all(np.abs((points > middle).mean(axis=0) - 0.5) < 0.1)  # uniform
    X = rng.normal(size=(100, 8))
    points = reference_points(X, rng, 500)
    same = (points[:, None, :] == X[None]).sum(axis=2).max(axis=1)
    assert set(np.unique(8 - same)) == {1, 2, 4, 8}


@pytest.mark.slow
def test_one_outlier_does_not_decide_what_a_volume_is() -> None:
    X = make_mixture(60, random_state=0)
    outlier = np.vstack([X, [[1e6, -1e6]]])
    box = [reference_points(data, np.random.default_rng(0), 1000) for data in (X, outlier)]
    assert np.max(np.abs(box[1])) < 6.0 * np.max(np.abs(box[0]))
    new = make_mixture(1000, random_state=1)
    one, other = (
        mass_volume_area(InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(data).score_samples, new, random_state=0)
        for data in (X, outlier)
    )
    assert other < 1.15 * one


def test_the_number_of_processes_does_not_change_the_choice() -> None:
    X = make_mixture(40, random_state=0)
    kernels = ["rbf", "laplacian", "matern32"]
    one, two = (
        InfiniteOneClassSVMCV(kernels=kernels, random_state=0, n_jobs=jobs, **LAST_FIT).fit(X) for jobs in (None, 2)
    )
    assert one.cv_results_["kernels"] == two.cv_results_["kernels"]
    np.testing.assert_array_equal(one.cv_results_["volumes"], two.cv_results_["volumes"])


@pytest.mark.slow
def test_only_stationary_kernels_compete_with_random_features() -> None:
    X = make_mixture(40, random_state=0)
    model = InfiniteOneClassSVMCV(features="fourier", rank=50, cv=2, random_state=0, **LAST_FIT).fit(X)
    assert not any("ranks" in name for name in model.cv_results_["kernels"])


# ---------------------------------------------------------------------------------------------------- what is learnt
@pytest.mark.slow
def test_fractions_hold_on_new_rows() -> None:
    X, new = make_mixture(100, random_state=0), make_mixture(2000, random_state=1)
    model = InfiniteOneClassSVMCV(n_nodes=20, random_state=0).fit(X)
    nu = np.array([0.1, 0.3, 0.6])
    outside = np.mean(model.predict(new, nu=nu) == -1, axis=0)
    band = 3.0 * np.sqrt(nu * (1.0 - nu) * (1.0 / 100 + 1.0 / 2000))
    assert np.all(np.abs(outside - nu) < band)
    assert model.dual_gap_ <= 1e-4


def test_predictions_are_those_of_the_model_inside() -> None:
    X = make_mixture(60, random_state=0)
    model = InfiniteOneClassSVMCV(**QUICK).fit(X)
    best = model.best_estimator_
    assert isinstance(best, InfiniteOneClassSVM)
    assert is_outlier_detector(model)
    np.testing.assert_array_equal(model.score_samples(X), best.score_samples(X))
    np.testing.assert_array_equal(model.decision_function(X, nu=[0.2, 0.5]), best.decision_function(X, nu=[0.2, 0.5]))
    np.testing.assert_array_equal(model.nodes_, best.nodes_)
    assert model.offset_ == 0.1
    model.set_params(nu=0.4)  # read when a prediction is asked for
    assert model.offset_ == 0.4
    np.testing.assert_array_equal(model.predict(X), model.predict(X, nu=0.4))
    np.testing.assert_array_equal(clone(model).fit_predict(X), model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))


def test_results_say_what_was_compared() -> None:
    X = make_mixture(60, random_state=0)
    model = InfiniteOneClassSVMCV(kernels=[RBF(gamma=0.3), RBF(gamma=1e-4)], random_state=0, **LAST_FIT).fit(X)
    results = model.cv_results_
    assert len(results["kernels"]) == 2
    assert results["volumes"].shape == (2, results["levels"].size)
    np.testing.assert_allclose(results["areas"], results["volumes"].mean(axis=1))
    assert results["best"] == int(np.argmin(results["areas"])) == 0
    assert model.kernel_.gamma == 0.3
    assert np.all(np.diff(results["volumes"][0]) <= 0.02)  # a larger fraction leaves out more of the space


@pytest.mark.slow
def test_a_row_of_weight_zero_has_no_part_in_the_choice() -> None:
    X = make_mixture(30, random_state=0)
    far = np.vstack([X, np.full((10, 2), 50.0)])
    weight = np.append(np.ones(30), np.zeros(10))
    one = InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(X)
    other = InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(far, sample_weight=weight)
    np.testing.assert_allclose(one.cv_results_["volumes"], other.cv_results_["volumes"], atol=1e-12)
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X), atol=1e-8)


def test_folds_may_be_given() -> None:
    X = make_mixture(40, random_state=0)
    splits = list(KFold(3).split(X))
    one = InfiniteOneClassSVMCV(kernels=["rbf"], cv=splits, random_state=0, **LAST_FIT).fit(X)
    other = InfiniteOneClassSVMCV(kernels=["rbf"], cv=KFold(3), random_state=0, **LAST_FIT).fit(X)
    np.testing.assert_array_equal(one.cv_results_["volumes"], other.cv_results_["volumes"])


def test_single_fractions_are_compared_at_these() -> None:
    X = make_mixture(50, random_state=0)
    model = InfiniteOneClassSVMCV(measure=Discrete([0.1, 0.5]), cv=2, random_state=0, tol=1e-2).fit(X)
    np.testing.assert_array_equal(model.cv_results_["levels"], [0.1, 0.5])


def test_a_line_for_each_kernel_is_printed_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    X = make_mixture(30, random_state=0)
    InfiniteOneClassSVMCV(kernels=["rbf", "laplacian"], verbose=1, random_state=0, **LAST_FIT).fit(X)
    printed = capsys.readouterr().err
    assert "kernel 1, 'rbf': loss" in printed
    assert "kernel 2, 'laplacian': loss" in printed


@pytest.mark.quick("X0")
@pytest.mark.parametrize(
    "X", [np.zeros((5, 2)), np.arange(4.0)[:, None], np.eye(3), np.array([[0.0, 1.0], [1.0, 1.0]])]
)
def test_few_and_equal_rows_are_learnt(X: np.ndarray) -> None:
    model = InfiniteOneClassSVMCV(random_state=0, **LAST_FIT).fit(X)
    assert np.all(np.isfinite(model.score_samples(X)))


# -------------------------------------------------------------------------------------------------------- wrong calls
def test_wrong_calls_are_refused_by_a_sentence() -> None:
    X = make_mixture(20, random_state=0)
    with pytest.raises(NotFittedError):
        InfiniteOneClassSVMCV().predict(X)
    for kernels, words in (
        ("rbf", "must be 'auto' or a list of kernels"),
        ([], "give at least one kernel"),
        (["foo"], "kernels"),
        (["precomputed"], "needs the kernel at new points"),
    ):
        with pytest.raises(ValueError, match=words):
            InfiniteOneClassSVMCV(kernels=kernels).fit(X)
    with pytest.raises(ValueError, match="a fold is left without any to train on"):
        InfiniteOneClassSVMCV(cv=2).fit(X, sample_weight=np.append(1.0, np.zeros(19)))
