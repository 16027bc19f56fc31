"""All one-class machines by one walk, and level sets by it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from infinitask import InfiniteOneClassSVM
from infinitask.fitting import Data
from infinitask.fitting._defaults import resolved
from infinitask.fitting._pose import pose
from infinitask.kernels import RBF
from infinitask.solvers import _one_class_path, _solve, solve
from infinitask.solvers._one_class_path import Knots, Path

Floats = np.ndarray[Any, Any]
FRACTIONS = np.array([0.9, 0.5, 0.3, 0.1, 0.05])


def points(n: int, d: int = 2, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    return 2.0 * rng.normal(size=(3, d))[rng.integers(0, 3, n)] + rng.normal(size=(n, d))


def machines(K: Floats, omega: Floats | None = None) -> list[tuple[Floats, float]]:
    """b and ρ of some fractions."""
    path = Path(K, np.full(len(K), 1.0 / len(K)) if omega is None else omega, 0.9 * float(FRACTIONS[-1]))
    return [(path.machine(fraction), float(path.threshold(fraction))) for fraction in FRACTIONS]


def check(K: Floats, omega: Floats, found: list[tuple[Floats, float]], room: float) -> None:
    """The conditions of an optimum: rows with a smaller field than ρ have b = ω, those with a larger one b = 0."""
    for fraction, (b, rho) in zip(FRACTIONS, found, strict=True):
        assert np.sum(b) == pytest.approx(fraction)
        assert np.all(b >= -1e-12)
        assert np.all(b <= omega + 1e-12)
        field = K @ b
        np.testing.assert_allclose(b[field < rho - room], omega[field < rho - room], atol=1e-12)
        np.testing.assert_allclose(b[field > rho + room], 0.0, atol=1e-12)


@pytest.mark.quick("60-1-1.0", "500-8-0.1")
@pytest.mark.parametrize(("n", "d", "gamma"), [(60, 1, 1.0), (300, 2, 0.5), (600, 2, 1.0), (500, 8, 0.1)])
def test_the_solutions_are_those_of_libsvm(n: int, d: int, gamma: float) -> None:
    X = points(n, d)
    K = RBF(gamma)(X, X)
    found = machines(K)
    check(K, np.full(n, 1.0 / n), found, 1e-7)
    for fraction, (b, _) in zip(FRACTIONS, found, strict=True):
        machine = OneClassSVM(gamma=gamma, nu=fraction, tol=1e-9).fit(X)
        a = np.zeros(n)
        a[machine.support_] = machine.dual_coef_[0] * fraction / np.sum(machine.dual_coef_)
        assert b @ K @ b == pytest.approx(a @ K @ a, rel=1e-6)


def test_weights_are_copies() -> None:
    X, count = points(80), np.random.default_rng(1).integers(1, 4, 80)
    copies = np.repeat(np.arange(80), count)
    K = RBF(0.5)(X, X)
    weighted, repeated = machines(K, count / count.sum()), machines(K[np.ix_(copies, copies)])
    for one, two in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(np.bincount(copies, two[0]), one[0], atol=1e-5)
        assert one[1] == pytest.approx(two[1], rel=1e-5)


@pytest.mark.parametrize("kind", ["equal rows", "few directions", "far apart"])
def test_matrices_that_are_hard(kind: str) -> None:
    X = points(120)
    if kind == "equal rows":
        X = np.repeat(X[:12], 10, axis=0)
    K = X @ X.T + 1.0 if kind == "few directions" else RBF(50.0 if kind == "far apart" else 0.5)(X, X)
    check(K, np.full(120, 1.0 / 120), machines(K), 1e-4 * float(np.max(K)))


def test_a_wide_margin_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X = points(200)
    monkeypatch.setattr(_one_class_path, "WORK_PER_PAIR", 1.0 * (150 / 1_000) ** 2)
    assert Path(RBF(0.5)(X, X), np.full(200, 1.0 / 200), 0.05).too_wide
    for gamma in (0.5, 50.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of a kernel that is too narrow
            model = InfiniteOneClassSVM(alpha=1e-6, gamma=gamma).fit(X)
        assert model.dual_gap_ <= 1e-4
        assert model.n_iter_ <= 3


@pytest.mark.parametrize("weighted", [False, True])
def test_machines_one_by_one_are_those_of_the_walk(weighted: bool) -> None:
    X, rng = points(150), np.random.default_rng(0)
    omega = rng.uniform(0.2, 1.8, 150) if weighted else np.ones(150)
    omega = omega / np.sum(omega)
    K = RBF(0.5)(X, X)
    path, knots = Path(K, omega, 0.04), Knots(K, omega, FRACTIONS[::-1])
    for fraction in FRACTIONS:
        b = knots.machine(fraction)
        assert np.sum(b) == pytest.approx(fraction)
        assert np.all((b >= 0.0) & (b <= omega + 1e-12))
        best = path.machine(fraction)
        assert b @ K @ b == pytest.approx(best @ K @ best, rel=1e-4)
        assert knots.threshold(fraction) == pytest.approx(path.threshold(fraction), rel=1e-3)


def test_machines_one_by_one_go_on_where_a_walk_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    X, omega = points(150), np.full(150, 1.0 / 150)
    K = RBF(0.5)(X, X)
    whole = Path(K, omega, 0.04)
    monkeypatch.setattr(_one_class_path, "WORK_PER_PAIR", 20.0 * (150 / 1_000) ** 2)
    part = Path(K, omega, 0.04)
    end = float(part.fractions[0])
    assert part.too_wide
    assert 0.15 < end < 0.95
    both = Knots(K, omega, np.linspace(0.05, end, 20, endpoint=False), part)
    assert np.all(np.diff(both.fractions) >= 0.0)
    assert np.all(np.diff(both.thresholds) >= 0.0)
    for fraction in (0.07, 0.5 * end, 0.999 * end, end, 0.5 + 0.5 * end):
        b, best = both.machine(fraction), whole.machine(fraction)
        assert np.sum(b) == pytest.approx(fraction)
        assert b @ K @ b == pytest.approx(best @ K @ best, rel=1e-3)
        assert both.threshold(fraction) == pytest.approx(whole.threshold(fraction), rel=1e-2)


# ----------------------------------------------------------------------------------------------------------- level sets
KINDS: list[dict[str, Any]] = [
    {},
    {"task_kernel": "piecewise-linear"},
    {"bias_kernel": "matern32"},
    {"n_nodes": 7},
    {"task_kernel": "diagonal"},
]


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 0.1, 10.0])
@pytest.mark.parametrize("params", KINDS, ids=repr)
def test_level_sets_are_solved_by_a_walk(params: dict[str, Any], alpha: float) -> None:
    X = points(90)
    walk = InfiniteOneClassSVM(alpha=alpha, gamma=0.5, **params).fit(X)
    steps = InfiniteOneClassSVM(alpha=alpha, gamma=0.5, solver="lbfgs", **params).fit(X)
    assert walk.dual_gap_ <= 1e-5
    assert walk.n_iter_ <= 3 < steps.n_iter_
    assert steps.solution_.dual - 1e-9 <= walk.objective_ <= steps.objective_ + 1e-9
    assert walk.solution_.dual <= steps.objective_


def test_the_bounds_hold_for_the_reference() -> None:
    """A gap far below the one asked for: the solution of a slower solver lies between the bounds."""
    X = points(80)
    walk = InfiniteOneClassSVM(alpha=1e-2, gamma=0.5, n_nodes=9).fit(X).solution_
    slow = InfiniteOneClassSVM(alpha=1e-2, gamma=0.5, n_nodes=9, solver="newton", tol=1e-8).fit(X).solution_
    assert walk.dual <= slow.objective + 1e-12
    assert slow.dual <= walk.objective + 1e-12
    assert walk.gap < 1e-6


def test_weights_and_rows_of_weight_zero() -> None:
    X, rng = points(150), np.random.default_rng(0)
    weight = rng.integers(0, 3, 150).astype(float)
    one = InfiniteOneClassSVM(alpha=1e-6, gamma=0.5).fit(X, sample_weight=weight)
    two = InfiniteOneClassSVM(alpha=1e-6, gamma=0.5).fit(np.repeat(X, weight.astype(int), axis=0))
    assert one.objective_ == pytest.approx(two.objective_, rel=2e-4)


def test_the_gram_matrix_of_the_kernel_is_that_of_the_features() -> None:
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, 120).astype(float)
    data = Data(points(120), None, weight / np.sum(weight))
    recipe = InfiniteOneClassSVM(alpha=1e-4, gamma=0.5).recipe()
    problem = pose(resolved(recipe, data), data, rng)
    assert problem.phi.gram is not None
    known = solve(problem.objective)
    built = solve(replace(problem.objective, gram=None))
    assert known.n_evaluations == built.n_evaluations == 1
    assert known.gap <= 1e-6
    assert known.objective == pytest.approx(built.objective, rel=1e-6)
    some = rng.permutation(120)[:70]
    part = problem.only(some)
    assert part.phi.gram is not None
    np.testing.assert_allclose(part.phi.gram, part.phi.values @ part.phi.values.T, atol=1e-8)


def test_many_rows_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X = points(120)
    monkeypatch.setattr(_solve, "MAX_MACHINE_ROWS", 100)
    assert InfiniteOneClassSVM(alpha=1e-6, gamma=0.5).fit(X).n_iter_ > 5


def test_thresholds_that_differ_by_factors_of_a_thousand() -> None:
    X = np.random.default_rng(0).normal(size=(400, 8)) * (1 + np.arange(400)[:, None] % 3)
    model = InfiniteOneClassSVM(kernel=RBF(0.1), alpha=1e-6, rank=100, exact_fractions=False).fit(X)
    t = -model.field_.bias(model.nodes_)
    assert np.max(model.nodes_ * t) > 300.0 * np.min(model.nodes_ * t) > 0.0  # ρ = αθt
    assert model.dual_gap_ <= 1e-4
    assert model.n_iter_ == 1  # the walk alone
