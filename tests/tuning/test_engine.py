"""How self-tuned models choose: honest losses, calibrated levels, many rows, progress and interrupts."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from infinitask.datasets import make_sine
from infinitask.features import Nystroem
from infinitask.fitting._recipe import Units
from infinitask.kernels import RBF, InputKernel
from infinitask.losses import Pinball
from infinitask.measures import Discrete
from infinitask.tuning import InfiniteCostSensitiveClassifierCV, InfiniteQuantileRegressorCV, _contest, _race
from infinitask.tuning._candidates import Kind
from infinitask.tuning._contest import Contest, QuickFits
from infinitask.tuning._defaults import LAMBDAS, Effort
from infinitask.tuning._progress import Progress

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
QUICK: dict[str, Any] = {"n_nodes": 10, "tol": 1e-2, "random_state": 0}
EXACT = Effort(gap=1e-5, max_iter=5_000, floor=1e-2)
Floats = np.ndarray[Any, Any]


def pinball(y: Any, predicted: Any) -> float:
    r = y[:, None] - predicted
    return float(np.mean(np.maximum(LEVELS * r, (LEVELS - 1.0) * r)))


def contest(X: Floats, y: Floats, weight: Floats | None = None, count: int = 4) -> Contest:
    rows = InfiniteQuantileRegressorCV(n_nodes=10)._estimator()._prepare(X, y, weight)
    folds = list(KFold(count, shuffle=True, random_state=0).split(X))
    return Contest(
        rows=rows,
        units=Units(),
        levels=LEVELS,
        criterion=Pinball(),
        folds=folds,
        folds_at_once=count,
        lambdas=LAMBDAS,
        progress=Progress("", 0),
    )


# -------------------------------------------------------------------------------------------------------- honest losses
def by_targets(t: Floats) -> Kind:
    """A kernel whose width says which targets it has seen."""

    def adapt(rows: Floats) -> InputKernel:
        return RBF(gamma=float(np.exp(np.mean(t[rows]))))

    return Kind(adapt, learns=True)


def compared(X: Floats, y: Floats) -> list[Floats]:
    """What the fits of a comparison predict for the held-out rows of each fold."""
    return QuickFits(contest(X, y), by_targets(y)).values(1e-2)


@pytest.mark.slow
def test_no_row_is_scored_by_a_kernel_that_saw_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_contest, "QUICK", EXACT)
    X, y = make_sine(40, random_state=0)
    folds, before = contest(X, y).folds, compared(X, y)
    for i in (0, 7):
        other = y.copy()
        other[i] += 40.0  # the widths of kernels that saw it change more than twofold
        for (_, test), one, two in zip(folds, before, compared(X, other), strict=True):
            if i in test:
                np.testing.assert_allclose(two[test == i], one[test == i], atol=0.02)
            elif np.any(test % 2 == i % 2):
                assert np.max(np.abs(two - one)) > 0.02


@pytest.mark.parametrize("weighted", [False, True])
def test_held_out_predictions_know_nothing_of_their_fold(weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # all targets decide with which step iterations begin, which a small gap forgets
    monkeypatch.setattr(_contest, "CALIBRATING", Effort(gap=1e-4, max_iter=5_000, floor=1e-6))
    X, y = make_sine(40, random_state=0)
    weight = np.where(np.arange(40) % 5 == 0, 0.0, 1.0) if weighted else np.ones(40)
    folds = contest(X, y).folds
    counted = weight > 0.0

    def predicted(targets: Floats) -> Floats:
        compared, kind = contest(X, targets, weight), by_targets(targets[counted])
        return compared.held_out(kind, kind.on(np.arange(32)), 1e-2, LEVELS, folds)

    before, (_, test) = predicted(y), folds[1]
    assert np.all(np.isfinite(before))
    other = y.copy()
    other[test] += 3.0
    after = predicted(other)
    np.testing.assert_allclose(after[test], before[test], atol=0.05)
    assert np.max(np.abs(after - before)) > 0.5


@pytest.mark.parametrize("d", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_targets_that_are_noise_cost_little(d: int) -> None:
    rng, worse = np.random.default_rng(1), []
    for _ in range(2):
        X, y, target = rng.normal(size=(50, d)), rng.normal(size=50), rng.normal(size=2000)
        model = InfiniteQuantileRegressorCV(**QUICK).fit(X, y)
        found = pinball(target, model.predict(rng.normal(size=(2000, d)), LEVELS))
        worse.append(found / pinball(target, np.broadcast_to(np.quantile(y, LEVELS), (2000, 5))))
    assert np.mean(worse) < 1.03
    assert np.max(worse) < 1.08


@pytest.mark.slow
def test_the_order_of_rows_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_contest, "QUICK", EXACT._replace(gap=1e-4))  # no λ is near a decision then
    X, y = make_sine(80, random_state=0)
    order = np.random.default_rng(0).permutation(80)
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    place = np.argsort(order)
    moved = [(place[train], place[test]) for train, test in folds]
    options: dict[str, Any] = {"kernels": ["rbf", "laplacian"], **QUICK}
    one = InfiniteQuantileRegressorCV(cv=folds, **options).fit(X, y)
    other = InfiniteQuantileRegressorCV(cv=moved, **options).fit(X[order], y[order])
    np.testing.assert_allclose(other.cv_results_["losses"], one.cv_results_["losses"], rtol=0.02)
    assert other.alpha_ == pytest.approx(one.alpha_)
    np.testing.assert_allclose(other.predict(X, LEVELS), one.predict(X, LEVELS), atol=0.1)


def test_what_ignores_the_features_knows_the_frequency_of_the_classes() -> None:
    X, y = np.zeros((40, 1)), np.repeat([1.0, -1.0], [10, 30])
    classes = replace(contest(X, y), criterion=None)
    for (train, test), loss in zip(classes.folds, classes.ignoring, strict=True):
        p = np.mean(y[train] > 0.0)
        assert loss == pytest.approx(-np.mean(np.log(np.where(y[test] > 0.0, p, 1.0 - p))), rel=0.1)


# ---------------------------------------------------------------------------------------------------- calibrated levels
def steep(n: int, rng: Any, d: int = 4) -> tuple[Floats, Floats]:
    X = rng.uniform(-1.0, 1.0, size=(n, d))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + (0.2 + 0.3 * np.abs(X[:, 1])) * rng.normal(size=n)


def coverage(model: Any, X: Floats, y: Floats, share: float) -> float:
    low, high = model.predict_interval(X, share).T
    return float(np.mean((low <= y) & (y <= high)))


@pytest.mark.slow
def test_intervals_cover_what_they_say() -> None:
    shares, covered = np.array([0.5, 0.8, 0.9]), {True: [], False: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        (X, y), (new, target) = steep(120, rng), steep(1500, rng)
        for calibrated, rows in covered.items():
            model = InfiniteQuantileRegressorCV(kernels=["rbf"], calibrated=calibrated, **QUICK).fit(X, y)
            assert hasattr(model.best_estimator_, "levels_") is calibrated
            assert hasattr(model, "levels_") is calibrated
            rows.append([coverage(model, new, target, share) for share in shares])
    off, off_before = (np.mean(covered[calibrated], axis=0) - shares for calibrated in (True, False))
    assert np.max(np.abs(off)) < 0.035
    assert np.max(np.abs(off_before)) > 2.0 * np.max(np.abs(off))


def test_every_answer_goes_through_the_map_of_levels() -> None:
    X, y = make_sine(80, random_state=0)
    options: dict[str, Any] = {"kernels": ["rbf"], **QUICK}
    one, plain = (InfiniteQuantileRegressorCV(calibrated=c, **options).fit(X, y) for c in (True, False))
    np.testing.assert_array_equal(one.field_(X, LEVELS), plain.field_(X, LEVELS))
    expected = one.levels_.at(lambda q: plain.predict(X, q), LEVELS)
    np.testing.assert_allclose(one.predict(X, LEVELS), expected, atol=1e-9)
    many = np.linspace(0.01, 0.99, 99)
    assert np.all(np.diff(one.predict(X, many), axis=1) >= 0.0)
    # quantiles and distribution agree
    np.testing.assert_allclose(one.predict_distribution(X).ppf(0.9), one.predict(X, 0.9), atol=0.02)


def test_calibration_is_equivariant() -> None:
    X, y = make_sine(80, random_state=0)
    options: dict[str, Any] = {"kernels": ["rbf"], **QUICK}
    one, other = (InfiniteQuantileRegressorCV(**options).fit(X, t) for t in (y, 100.0 + 50.0 * y))
    np.testing.assert_allclose(other.levels_.taken, one.levels_.taken, atol=1e-4)
    np.testing.assert_allclose((other.predict(X, LEVELS) - 100.0) / 50.0, one.predict(X, LEVELS), atol=1e-4)


def test_few_levels_and_ignored_features_are_not_calibrated() -> None:
    X, y = make_sine(80, random_state=0)
    few = InfiniteQuantileRegressorCV(measure=Discrete([0.1, 0.9]), quantiles=0.9, kernels=["rbf"], **QUICK).fit(X, y)
    assert not hasattr(few, "levels_")
    ignored = InfiniteQuantileRegressorCV(kernels=["rbf"], **QUICK).fit(X, np.random.default_rng(1).normal(size=80))
    assert ignored.ignores_inputs_
    assert not hasattr(ignored, "levels_")


def test_given_folds_calibrate() -> None:
    """Rows of a group are alike: shuffled folds would find ranks that no new group has."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 5)
    X = rng.uniform(-1.0, 1.0, size=(30, 1))[groups] + 1e-3 * rng.normal(size=(150, 1))
    y = 4.0 * np.sin(3.0 * X[:, 0]) + rng.normal(size=30)[groups] + 0.05 * rng.normal(size=150)
    folds = list(GroupKFold(10).split(X, y, groups))
    options: dict[str, Any] = {"kernels": [RBF(gamma=30.0)], "rule": "best", "alphas": [1e-3], **QUICK}
    grouped = InfiniteQuantileRegressorCV(cv=folds, **options).fit(X, y)
    shuffled = InfiniteQuantileRegressorCV(cv=KFold(10, shuffle=True, random_state=0), **options).fit(X, y)
    assert np.ptp(grouped.levels_([0.1, 0.9])) > np.ptp(shuffled.levels_([0.1, 0.9])) + 0.1


# ------------------------------------------------------------------------------------------------------------ many rows
@pytest.fixture
def small_contest(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done for thousands of rows, done for hundreds."""
    monkeypatch.setattr(_race, "MAX_ROWS", 100)
    monkeypatch.setattr(_race, "RANKS", (4, 20, 40))


@pytest.mark.usefixtures("small_contest")
def test_many_rows_are_refined_with_landmarks() -> None:
    rng = np.random.default_rng(0)
    (X, y), (new, target) = steep(500, rng, 2), steep(1500, rng, 2)
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], **QUICK).fit(X, y)
    results = model.cv_results_
    assert results["losses"].shape[:2] == (2, LAMBDAS.size)
    refined = results["refined"]
    assert refined.shape[1] == LAMBDAS.size
    assert 2 <= len(refined) <= 3  # four landmarks are too few
    assert np.nanmin(refined[1]) < np.nanmin(refined[0])
    assert isinstance(model.recipe_.features, Nystroem)
    assert model.recipe_.features.rank in (20, 40)
    assert model.alpha_ in results["alphas"]
    constant = pinball(target, np.broadcast_to(np.quantile(y, LEVELS), (1500, 5)))
    assert pinball(target, model.predict(new, LEVELS)) < 0.5 * constant
    assert coverage(model, new, target, 0.9) == pytest.approx(0.9, abs=0.04)
    again = InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], **QUICK).fit(X, y)
    np.testing.assert_array_equal(again.predict(new, LEVELS), model.predict(new, LEVELS))


@pytest.mark.usefixtures("small_contest")
def test_many_rows_most_of_them_without_weight() -> None:
    X, y = make_sine(300, random_state=0)
    weight = (np.arange(300) % 2 == 0).astype(float)
    far = np.where(weight > 0.0, y, 100.0)
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], **QUICK).fit(X, far, sample_weight=weight)
    assert np.max(model.predict(X, LEVELS)) < 10.0


@pytest.mark.slow
@pytest.mark.usefixtures("small_contest")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_many_rows_on_a_device() -> None:
    X, y = steep(300, np.random.default_rng(0), 2)
    here, there = (InfiniteQuantileRegressorCV(kernels=["rbf"], device=d, **QUICK).fit(X, y) for d in (None, "cpu"))
    assert there.alpha_ == here.alpha_
    one, two = here.cv_results_["refined"], there.cv_results_["refined"]
    both = np.isfinite(one) & np.isfinite(two)  # a path may end one λ earlier
    assert np.sum(both) >= 6
    np.testing.assert_allclose(two[both], one[both], rtol=0.02)
    np.testing.assert_allclose(there.predict(X, LEVELS), here.predict(X, LEVELS), atol=0.1)


@pytest.mark.usefixtures("small_contest")
def test_many_rows_of_two_classes() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=400) > 0.0
    model = InfiniteCostSensitiveClassifierCV(kernels=["rbf"], **QUICK).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > 0.8
    assert "refined" in model.cv_results_


# ---------------------------------------------------------------------------------------------- progress and interrupts
def test_a_search_tells_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = make_sine(60, random_state=0)
    InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], **QUICK).fit(X, y)
    assert capsys.readouterr().err == ""
    InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], verbose=1, **QUICK).fit(X, y)
    told = capsys.readouterr().err
    for words in ("ranking kernels on 60 rows", "1 of 2 kernels", "2 of 2 kernels", "best", "s left", "chosen:", "λ ="):
        assert words in told
    assert "calibrating" in told


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the second kernel is tried."""
    path_of, calls = _race.path_of, []

    def path(*arguments: Any, **options: Any) -> Floats:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return path_of(*arguments, **options)

    monkeypatch.setattr(_race, "path_of", path)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_gives_the_best_so_far_if_asked_to(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = make_sine(60, random_state=0)
    options: dict[str, Any] = {"kernels": ["rbf", "laplacian", "matern32"], "verbose": 1, **QUICK}
    model = InfiniteQuantileRegressorCV(on_interrupt="best", **options).fit(X, y)
    assert "interrupted" in capsys.readouterr().err
    finite = np.isfinite(model.cv_results_["losses"]).any(axis=(1, 2))
    np.testing.assert_array_equal(finite, [True, False, False])
    assert model.cv_results_["best"][0] == 0
    assert np.all(np.isfinite(model.predict(X, LEVELS)))


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_is_raised_otherwise() -> None:
    X, y = make_sine(60, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], **QUICK).fit(X, y)


@pytest.mark.parametrize(
    ("options", "words"), [({"on_interrupt": "stop"}, "'raise', 'best'"), ({"tol": -1.0}, "tol"), ({"tol": 2}, "tol")]
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    X, y = make_sine(20, random_state=0)
    with pytest.raises(ValueError, match=words):
        InfiniteQuantileRegressorCV(**options).fit(X, y)


# ----------------------------------------------------------------------------------------------------------- small data
@pytest.mark.quick("2", "3")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_handful_of_rows(n: int) -> None:
    X, y = make_sine(n, random_state=0)
    model = InfiniteQuantileRegressorCV(**QUICK).fit(X, y)
    found = model.predict(np.linspace(-3.0, 3.0, 9)[:, None], LEVELS)
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found, axis=1) >= 0.0)


def test_names_of_columns() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(size=(60, 3)), columns=["age", "size", "noise"])
    y = np.sin(2.0 * X["size"].to_numpy()) + 0.1 * rng.normal(size=60)
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], **QUICK).fit(X, y)
    assert list(model.feature_names_in_) == ["age", "size", "noise"]
    assert "size" in str(model.relevance_)
    np.testing.assert_array_equal(model.predict(X), model.predict(X[["age", "size", "noise"]]))
