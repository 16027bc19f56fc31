"""The kernel gap is an upper bound of the distance from the model of the kernel itself, and a good one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
)
from infinitask.features import FeatureRecipe, Nystroem, PivotedCholesky, RandomFourier
from infinitask.fitting import Data
from infinitask.fitting import _learn as learn
from infinitask.fitting._defaults import resolved
from infinitask.fitting._fit import in_units, in_units_of
from infinitask.fitting._kernel_gap import _quadratic, kernel_gap
from infinitask.fitting._pose import pose
from infinitask.kernels import RBF
from infinitask.solvers import solve
from infinitask.tuning import InfiniteOneClassSVMCV, score_path

Array = np.ndarray

ROUNDING = 1e-9
"""Both objectives are sums of rounded numbers."""


def problem(seed: int) -> tuple[Any, dict[str, Any], Array, Array | None, Array | None]:
    """An estimator, its parameters and data, all drawn at random."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(40, 81)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d))
    y = np.sin(2.0 * X[:, 0]) + (0.2 + 0.3 * (X[:, 0] > 0.0)) * rng.standard_normal(n)
    kind = seed % 6
    common: dict[str, Any] = {
        "alpha": float(10.0 ** rng.uniform(-5.0, -1.0)),
        "gamma": float(rng.choice([0.1, 0.5, 2.0])) / d,
        "n_nodes": int(rng.integers(3, 12)),
        "random_state": 0,
    }
    if rng.random() < 0.5 and kind != 4:
        common["alpha_bias"] = [None, 0.3 * common["alpha"], 0.0][int(rng.integers(3))]
    if rng.random() < 0.2:
        common["kernel"] = "matern32"
    weight = rng.integers(0, 4, n).astype(float) if rng.random() < 0.3 else None
    if kind in (0, 1, 2):
        common["noncrossing"] = [0.0, 1.0, 0.1][kind]
        if kind == 2 and rng.random() < 0.5:
            common["noncrossing_inputs"] = rng.standard_normal((9, d))
        return InfiniteQuantileRegressor, common, X, 3.0 * y + 1.0, weight  # in other units
    if kind == 3:
        return InfiniteCostSensitiveClassifier, common, X, (y > 0.2).astype(float), weight
    if kind == 4:
        return InfiniteOneClassSVM, common, X, None, weight
    chosen = (InfiniteExpectileRegressor, InfiniteSVR, InfiniteKernelRidge)[seed // 6 % 3]
    if chosen is InfiniteKernelRidge:  # λ is its task
        common = {name: value for name, value in common.items() if not name.startswith("alpha")}
    return chosen, common, X, y, weight


def fit(seed: int, **changes: Any) -> Any:
    kind, parameters, X, y, weight = problem(seed)
    return kind(**(parameters | {"certify": "kernel"} | changes)).fit(X, y, sample_weight=weight)


def distance(model: Any, best: float) -> float:
    """How far the objective is above the best one, relative to what gaps are relative to."""
    solution = model.solution_
    bound = solution.objective - solution.dual
    scale = bound / solution.gap if solution.gap > ROUNDING else abs(solution.objective)
    return (model.objective_ - best) / scale


def check(seed: int) -> None:
    exact = fit(seed, features="exact", tol=1e-7)
    best = exact.solution_.dual  # no objective is below it: the test is not easier for an exact fit that is not
    assert exact.kernel_gap_ <= 1e-4
    assert exact.kernel_gap_ >= distance(exact, best) - 1e-6
    for rank in (5, 15, 35):
        model = fit(seed, features="nystroem", rank=rank)
        assert model.kernel_gap_ >= distance(model, exact.objective_) - 2e-7 - ROUNDING


@pytest.mark.quick(every=4)
@pytest.mark.parametrize("seed", range(15))
def test_never_below_the_true_distance(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*on the boundary of the set itself:UserWarning")
@pytest.mark.parametrize("seed", range(15, 115))
def test_never_below_the_true_distance_of_many(seed: int) -> None:
    check(seed)


REFERENCES = sorted((Path(__file__).parents[1] / "references" / "reference").glob("*.json"))
assert REFERENCES, "the reference problems have moved; without them nothing below is tested"


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem)
def test_optima_of_other_solvers(path: Path) -> None:
    case = json.loads(path.read_text())
    hyper, X = case["hyper"], np.asarray(case["x"], dtype=float).reshape(case["n"], -1)
    common: dict[str, Any] = {"gamma": hyper["gamma_x"], "task_gamma": hyper["gamma_theta"], "alpha": hyper["lam"]}
    common |= {"n_nodes": case["m"], "features": "nystroem", "certify": "kernel", "random_state": 0}
    if case["kind"] == "ocsvm":
        kind, y = InfiniteOneClassSVM, None
    else:
        y = np.asarray(case["y"], dtype=float)
        common |= {"alpha_bias": hyper.get("lam_b"), "bias_kernel": "task" if "lam_b" in hyper else None}
        others = {"csc": InfiniteCostSensitiveClassifier, "expectile": InfiniteExpectileRegressor}
        kind = others.get(case["kind"], InfiniteQuantileRegressor)
        if kind is InfiniteQuantileRegressor:
            common |= {"noncrossing": hyper.get("lam_nc", 0.0), "smoothing": hyper.get("kappa", 0.0)}
    gaps = []
    for rank in (2, 4, case["n"]):
        model = kind(rank=rank, **common).fit(X, y)
        gaps.append(model.kernel_gap_)
        assert gaps[-1] >= distance(model, case["objective"]) - 1e-8
    assert gaps[-1] <= 2e-3
    assert gaps[0] > gaps[-1]


def sine(n: int = 300) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def quantiles(**parameters: Any) -> InfiniteQuantileRegressor:
    given = {"alpha": 1e-3, "gamma": 0.3, "n_nodes": 10, "random_state": 0, "features": "nystroem"}
    return InfiniteQuantileRegressor(**(given | parameters))


@pytest.mark.quick(every=2)
@pytest.mark.parametrize(
    "features", ["nystroem", "exact", Nystroem(landmarks="leverage")], ids=["uniform", "pivots", "leverage"]
)
def test_falls_with_the_rank_to_the_dual_gap(features: Any) -> None:
    X, y = sine()
    gaps = []
    for rank in (10, 40, 160, 300):
        recipe = features if isinstance(features, str) else Nystroem(rank, landmarks="leverage")
        model = quantiles(features=recipe, rank=rank, certify="kernel").fit(X, y)
        gaps.append(model.kernel_gap_)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] >= gaps[3] - 1e-4
    assert gaps[3] <= 1e-3


def test_tight_where_the_features_are_nearly_exact() -> None:
    X, y = sine()
    best = quantiles(features="exact", tol=1e-7).fit(X, y).objective_
    model = quantiles(rank=100, certify="kernel", tol=1e-6).fit(X, y)
    true = distance(model, best)
    assert 1e-4 < true < 0.05
    assert true <= model.kernel_gap_ <= 1.5 * true


def test_only_where_it_is_asked_for() -> None:
    X, y = sine(60)
    assert not hasattr(quantiles(rank=10).fit(X, y), "kernel_gap_")
    model = quantiles(rank=10, certify="kernel").fit(X, y)
    assert model.kernel_gap_ > 0.0
    assert not hasattr(model.set_params(certify=None).fit(X, y), "kernel_gap_")


def test_precomputed_kernels_and_repeated_rows() -> None:
    X, y = sine(120)
    gram = RBF(gamma=0.3)(X, X)
    best = quantiles(features="exact", kernel="precomputed", tol=1e-7).fit(gram, y).objective_
    given = quantiles(rank=40, certify="kernel", kernel="precomputed").fit(gram, y)
    assert distance(given, best) <= given.kernel_gap_ <= 2.0 * distance(given, best)
    weight = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    weighted = quantiles(features="auto", rank=15, certify="kernel").fit(X, y, sample_weight=weight)
    again = np.repeat(np.arange(120), weight.astype(int))
    repeated = quantiles(features="auto", rank=15, certify="kernel").fit(X[again], y[again])
    assert repeated.kernel_gap_ == weighted.kernel_gap_


@pytest.mark.parametrize("units", [1e-6, 1e6])
def test_the_same_in_other_units(units: float) -> None:
    X, y = sine(120)
    gap = quantiles(alpha="auto", rank=15, certify="kernel").fit(X, y).kernel_gap_
    assert quantiles(alpha="auto", rank=15, certify="kernel").fit(X, units * y).kernel_gap_ == pytest.approx(
        gap, rel=1e-3
    )


@pytest.mark.parametrize("name", ["quantiles", "level sets"])
def test_exact_features_count_what_they_leave_out(name: str) -> None:
    """The bound without a visit to K is no better than that of K itself, and features alone would prove too much."""
    X, y = sine(120)
    estimator: Any = quantiles(features="exact")
    if name == "level sets":
        estimator, y = InfiniteOneClassSVM(alpha=0.01, gamma=0.3, n_nodes=8, features="exact"), None
    data = Data.canonical(X, y)
    recipe = resolved(estimator.recipe(), data)
    posed, rows = in_units(recipe), in_units_of(recipe, data)
    rng = np.random.default_rng(0)
    rough = pose(posed, rows, rng, phi=PivotedCholesky().build(RBF(gamma=0.3), rows.X, 1e-3, rng))
    assert rough.phi.exact
    assert 1e-5 < rough.phi.residual <= 2e-3
    solution = solve(rough.objective, solver="auto", tol=1e-6, max_iter=5_000)
    visited, blind = (
        replace(rough, phi=replace(rough.phi, **changes)) for changes in ({"exact": False}, {"residual": 0.0})
    )
    bound, true, unproved = (kernel_gap(posed, rows, problem, solution) for problem in (rough, visited, blind))
    assert unproved < 0.9 * true
    assert true <= bound


def test_on_tensors() -> None:
    pytest.importorskip("torch")
    X, y = sine(120)
    host, device = (quantiles(rank=15, certify="kernel", device=device).fit(X, y) for device in (None, "cpu"))
    assert device.kernel_gap_ == pytest.approx(host.kernel_gap_, rel=0.02)


def test_the_quadratic_form() -> None:
    rng = np.random.default_rng(0)
    X, T = rng.standard_normal((1_300, 5)), rng.standard_normal((1_300, 4))
    T[rng.random(1_300) < 0.3] = 0.0  # these rows are left out
    K = RBF(gamma=0.2)(X, X)
    for found in (_quadratic(RBF(gamma=0.2), X, T), _quadratic(None, K, T)):
        np.testing.assert_allclose(0.5 * (found + found.T), T.T @ K @ T, rtol=1e-10, atol=1e-9)


class OfTheirOwn(FeatureRecipe):
    """Features that are no functions of the kernel, and do not say so."""

    def _build(self, kernel: Any, X: Any, tolerance: float, rng: Any) -> Any:
        return RandomFourier(6).build(kernel, X, tolerance, rng)


def test_nothing_is_fitted_before_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sine(60)
    monkeypatch.setattr(learn, "resolved", lambda *_: pytest.fail("something was chosen"))
    with pytest.raises(ValueError, match="rank='auto' was given with features='fourier'"):
        quantiles(features="fourier", rank="auto").fit(X, y)


def test_refused_with_a_sentence() -> None:
    X, y = sine(60)
    for asked, options in (("certify='kernel'", {"certify": "kernel"}), ("rank='auto'", {"rank": "auto"})):
        with pytest.raises(ValueError, match=f"^{asked} was given with features='fourier'; their functions"):
            quantiles(features="fourier", **options).fit(X, y)
        with pytest.raises(ValueError, match=f"^{asked} was given with noncrossing='hard'; the bound is for penalties"):
            quantiles(noncrossing="hard", **options).fit(X, y)
        with pytest.raises(ValueError, match=r"by certify or by rank='auto', with features of the kind FourierMap"):
            quantiles(features=OfTheirOwn(), **options).fit(X, y)
    with pytest.raises(ValueError, match="certify='Kernel' was given; it must be one of 'kernel', or None"):
        quantiles(certify="Kernel").fit(X, y)
    with pytest.raises(ValueError, match=r"rank='many' was given; .* or 'auto'"):
        quantiles(rank="many").fit(X, y)
    with pytest.raises(ValueError, match="which have a rank of their own"):
        quantiles(features=Nystroem(30), rank="auto").fit(X, y)


class TestRankAuto:
    """The rank grows until the kernel gap is small."""

    def test_stops_where_the_gap_is_small(self) -> None:
        X, y = sine(800)
        model = quantiles(rank="auto", gamma=1.0, n_nodes=5).fit(X, y)
        assert model.kernel_gap_ <= 1e-2
        assert model.recipe_.rank == 500
        assert "at 250" in model.features_
        assert "at 500" in model.features_
        before = quantiles(rank=250, gamma=1.0, n_nodes=5, certify="kernel").fit(X, y)
        assert before.kernel_gap_ > 1e-2

    def test_one_round_is_enough_for_few_features(self) -> None:
        X, y = sine(100)
        model = quantiles(rank="auto", features="auto").fit(X, y)
        assert model.recipe_.rank == 250
        assert model.kernel_gap_ <= 2e-4

    def test_landmarks_are_those_before_and_more(self) -> None:
        X, y = sine(800)
        for features in ("nystroem", "exact"):
            options: dict[str, Any] = {"gamma": 2.0, "features": features, "n_nodes": 4, "tol": 1e-2}
            few, more = (quantiles(rank=rank, **options).fit(X, y) for rank in (250, 500))
            some = {tuple(row) for row in more.field_.phi.landmarks}
            assert {tuple(row) for row in few.field_.phi.landmarks} <= some

    def test_thresholds_are_those_of_the_last_rank(self) -> None:
        X = sine(300)[0]
        common: dict[str, Any] = {"features": "nystroem", "random_state": 0, "n_nodes": 5}
        grown = InfiniteOneClassSVM(rank="auto", **common).fit(X)
        given = InfiniteOneClassSVM(rank=grown.recipe_.rank, certify="kernel", **common).fit(X)
        assert grown.kernel_gap_ == given.kernel_gap_
        np.testing.assert_array_equal(grown.decision_function(X), given.decision_function(X))

    def test_fits_that_are_compared_do_not_grow_it(self) -> None:
        X, y = sine(60)
        alphas = [1e-2, 1e-3]
        asked = score_path(quantiles(rank="auto", features="auto", n_nodes=6), X, y, alphas=alphas, cv=3)
        plain = score_path(quantiles(features="auto", n_nodes=6), X, y, alphas=alphas, cv=3)
        np.testing.assert_array_equal(asked, plain)

    @pytest.mark.slow
    def test_self_tuned_level_sets(self) -> None:
        X = sine(120)[0]
        model = InfiniteOneClassSVMCV(rank="auto", random_state=0).fit(X)
        assert model.kernel_gap_ <= 1e-2


# ----------------------------------------------------------------------------------------- features as λ asks
@pytest.mark.quick("quantile")
@pytest.mark.parametrize("name", ["quantile", "expectile", "costs"])
def test_features_of_many_rows_are_as_exact_as_the_ridge_asks(name: str) -> None:
    """Fewer features as nλ grows, by steps of a block; the objective and the values at new inputs hardly notice."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(700, 4)), rng.normal(size=(300, 4))
    target = np.sin(X[:, 0]) + 0.3 * rng.normal(size=700)
    models: dict[str, Any] = {
        "quantile": InfiniteQuantileRegressor(n_nodes=10, certify="kernel"),
        "expectile": InfiniteExpectileRegressor(n_nodes=10, certify="kernel"),
        "costs": InfiniteCostSensitiveClassifier(n_nodes=10, certify="kernel", calibrated=False),
    }
    y = np.where(target > 0.5, 1, 0) if name == "costs" else target
    ranks = []
    for alpha in (1e-2, 1e-3, 1e-4):
        loose = models[name].set_params(alpha=alpha, features="auto").fit(X, y)
        h = loose.field_(new, [0.2, 0.5])
        ranks.append(loose.field_.phi.rank)
        assert "leave out" in loose.features_
        gap = loose.kernel_gap_
        exact = models[name].set_params(features="exact").fit(X, y)
        assert "exact to" in exact.features_
        assert exact.field_.phi.rank > ranks[-1]
        assert gap <= 1e-2
        assert loose.objective_ <= (1.0 + 5e-3) * exact.objective_
        whole = exact.field_(new, [0.2, 0.5])
        assert np.sqrt(np.mean((h - whole) ** 2)) <= 0.03 * np.std(whole)
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1]


def test_features_become_exact_with_the_tolerance() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 4))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=700)
    gaps = [quantiles(features="auto", certify="kernel", tol=tol).fit(X, y).kernel_gap_ for tol in (1e-3, 1e-4, 1e-6)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] <= 2e-5
