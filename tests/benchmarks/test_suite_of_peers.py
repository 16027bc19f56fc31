"""The suite is fair: the peers solve the problems that it says they solve, and the report says what was measured."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, OneClassSVM

from experiments.peer_models import PEERS
from infinitask import JointQuantileRegressor

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
OPTIONAL = {"PIQP": "piqp", "Clarabel": "clarabel", "OSQP": "osqp"}


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def keep_cores() -> Iterator[None]:
    """Some peers hold the process to certain cores."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    yield
    if cores is not None:
        os.sched_setaffinity(0, cores)


def module(name: str) -> Any:
    return importlib.import_module(f"suite.{name}" if name else "suite")


def case(problem: str) -> Any:
    return module("problems").QUICK[problem][0]


# ----------------------------------------------------------------------------------------------- the problems are equal
@pytest.mark.parametrize("solver", ["PIQP", "Clarabel", "OSQP"])
@pytest.mark.parametrize("level", [0.1, 0.5])
def test_a_single_level_is_the_peers_quadratic_program(solver: str, level: float) -> None:
    pytest.importorskip(OPTIONAL[solver])
    qp, duality, one = module("peers.qp"), module("duality"), case("quantiles")
    X, y, _, _ = one.data
    K, q = rbf_kernel(X, gamma=one.gamma), np.quantile(y, level)
    v = qp.SOLVERS[solver](qp.level_program(K, y - q, level, one.alpha), loose=False)
    bounds = duality.one_level(K, y - q, v, level, one.alpha)
    ours = module("ours").single_level(one, level)
    assert 0.0 <= bounds.gap < 1e-5
    assert ours.objective_ == pytest.approx(bounds.primal, rel=1e-5)
    # the bound of one is a law for the other
    assert bounds.dual <= ours.objective_ * (1.0 + 1e-12)


@pytest.mark.parametrize("solver", ["PIQP", "Clarabel"])
def test_a_single_level_with_a_free_bias_is_the_quadratic_program_with_a_sum(solver: str) -> None:
    pytest.importorskip(OPTIONAL[solver])
    qp, duality, one = module("peers.qp"), module("duality"), case("quantiles")
    X, y, _, _ = one.data
    K = rbf_kernel(X, gamma=one.gamma)
    bounds = [
        duality.one_level(K, y, qp.SOLVERS[solver](program, loose=False), level, one.alpha, free=True)
        for level in one.quantiles
        for program in [qp.level_program(K, y, level, one.alpha, free=True)]
    ]
    ours = module("ours").free_biases(one, module("clock").Clock(0.0)).metrics["objective"]
    assert max(b.gap for b in bounds) < 1e-5
    assert ours == pytest.approx(np.mean([b.primal for b in bounds]), rel=1e-5)


@pytest.mark.parametrize("solver", ["PIQP", "Clarabel", "OSQP"])
def test_joint_levels_are_the_peers_quadratic_program(solver: str) -> None:
    pytest.importorskip(OPTIONAL[solver])
    clock, one = module("clock").Clock(0.0), case("joint")
    ours, theirs = module("ours").joint(one, clock), module("peers.qp").joint(one, clock, solver, loose=False)
    assert 0.0 <= theirs.metrics["gap"] < 1e-5
    assert ours.metrics["objective"] == pytest.approx(theirs.metrics["objective"], rel=1e-5)
    assert ours.metrics["pinball 5"] == pytest.approx(theirs.metrics["pinball 5"], rel=1e-3)


def test_the_bounds_of_joint_levels_are_those_of_our_estimator() -> None:
    """Not of the quadratic program only: the biases are free, and those of the estimator are the best."""
    one = case("joint")
    X, y, _, _ = one.data
    model = JointQuantileRegressor(
        quantiles=one.quantiles, gamma=one.gamma, task_gamma=one.task_gamma, alpha=one.alpha, tol=1e-8
    ).fit(X, y)
    residuals = y[:, None] - model.predict(X)
    for r, level in zip(residuals.T, one.quantiles, strict=True):
        assert abs(module("duality").free_bias(r, level)) < 1e-3


def test_support_vector_machines_reach_our_objective() -> None:
    duality, one = module("duality"), replace(case("cost-sensitive"), n=81)
    X, y, _, _ = one.data
    signs = np.where(y == 1, 1.0, -1.0)
    ours = module("ours").each_cost(one, module("clock").Clock(0.0)).metrics["objective"]
    primal = []
    for theta in one.tasks[module("problems").spread(one.m)]:
        weights = {0: 0.5 * (1.0 - theta), 1: 0.5 * (1.0 + theta)}
        model = SVC(gamma=one.gamma, C=1.0 / (one.alpha * one.n), class_weight=weights, tol=1e-9).fit(X, y)
        K = rbf_kernel(X, X[model.support_], gamma=one.gamma)
        bounds = duality.costs(
            K, signs, model.support_, model.dual_coef_[0], model.intercept_[0], 0.5 * (1.0 + theta * signs), one.alpha
        )
        assert 0.0 <= bounds.gap < 1e-5
        primal.append(bounds.primal)
    assert ours == pytest.approx(np.mean(primal), rel=1e-5)


def test_one_class_machines_reach_our_objective() -> None:
    duality, one = module("duality"), replace(case("level-sets"), n=81)
    X, _ = one.data
    ours = module("ours").each_set(one, module("clock").Clock(0.0)).metrics["objective"]
    primal = []
    for nu in one.tasks[module("problems").spread(one.m)]:
        model = OneClassSVM(gamma=one.gamma, nu=nu, tol=1e-9).fit(X)
        K, scale = rbf_kernel(X, X[model.support_], gamma=one.gamma), 1.0 / (nu * one.n)
        bounds = duality.one_class(K, model.support_, scale * model.dual_coef_[0], scale * model.offset_[0], nu)
        assert 0.0 <= bounds.gap < 1e-5
        primal.append(bounds.primal)
    assert ours == pytest.approx(np.mean(primal), rel=1e-5)


def test_liquidsvm_solves_the_single_level(keep_cores: None) -> None:
    if importlib.util.find_spec("liquidSVM") is None:
        pytest.skip("liquidSVM is not installed")
    liquid, duality, one = module("peers.liquid"), module("duality"), case("quantiles")
    X, y, X_test, _ = one.data
    levels = np.array([0.1, 0.5])
    machine = liquid.fit(X, y, levels, one.alpha, one.gamma, stop=1e-8, threads=1)
    K, K_test = rbf_kernel(X, gamma=one.gamma), rbf_kernel(X_test, X, gamma=one.gamma)
    found, curves = liquid.solutions(machine, y.size), liquid.predict(machine, X_test)
    for (c, q), level, curve in zip(found, levels, curves.T, strict=True):
        assert 0.0 <= duality.one_level(K, y - q, c * one.alpha * y.size, level, one.alpha).gap < 1e-5
        assert np.sort(y)[[int(level * y.size) - 2, int(level * y.size) + 1]] == pytest.approx(q, abs=0.2)
        np.testing.assert_allclose(curve, np.clip(K_test @ c + q, -np.abs(y).max(), np.abs(y).max()), atol=1e-9)


@pytest.mark.parametrize("task", ["cost", "set"])
def test_thundersvm_solves_the_same_machines(task: str) -> None:
    pytest.importorskip("thundersvm")
    svm, clock = module("peers.svm"), module("clock").Clock(60.0)
    one = replace(case("cost-sensitive" if task == "cost" else "level-sets"), n=81)
    theirs, judge = (getattr(svm, f"each_{task}")(one, clock, package).metrics for package in ("thundersvm", "sklearn"))
    assert 0.0 <= theirs["gap"] < 1e-2
    assert theirs["objective"] == pytest.approx(judge["objective"], rel=1e-3)


def test_kernlab_solves_the_single_level_with_a_free_bias() -> None:
    kernlab, one, clock = module("peers.kernlab"), case("quantiles"), module("clock").Clock(60.0)
    if kernlab.missing() is not None:
        pytest.skip(kernlab.missing())
    theirs, ours = kernlab.each_level(one, clock).metrics, module("ours").free_biases(one, clock).metrics
    assert theirs["objective"] == pytest.approx(ours["objective"], rel=1e-5)


# --------------------------------------------------------------------------------------------------------- the measures
def test_a_wrong_point_has_a_gap() -> None:
    """The certificate is no tautology: another λ, or half the solution, is far from optimal."""
    qp, duality, one = module("peers.qp"), module("duality"), case("quantiles")
    X, y, _, _ = one.data
    K = rbf_kernel(X, gamma=one.gamma)
    v = qp.SOLVERS["OSQP"](qp.level_program(K, y, 0.5, one.alpha), loose=False)
    assert duality.one_level(K, y, v, 0.5, one.alpha).gap < 1e-5
    assert duality.one_level(K, y, v, 0.5, 2.0 * one.alpha).gap > 1e-2
    assert duality.one_level(K, y, 0.5 * v, 0.5, one.alpha).gap > 1e-2


def test_balanced_points_lie_in_the_box_and_sum_to_zero() -> None:
    levels = np.array([0.1, 0.5, 0.9])
    v = module("duality").balanced(np.random.default_rng(0).normal(size=(40, 3)), levels)
    assert np.all(v >= levels - 1.0)
    assert np.all(v <= levels)
    np.testing.assert_allclose(v.sum(axis=0), 0.0, atol=1e-12)


def test_scores_by_hand() -> None:
    scores = module("scores")
    found = scores.quantile_scores({0.1: np.array([0.0, 2.0]), 0.9: np.array([1.0, 1.0])}, np.zeros(2))
    assert found == {"levels": 2.0, "crossing loss": 0.5, "crossing pairs": 0.5}
    thetas = np.array([-0.5, 0.5])
    found = scores.cost_scores(np.array([[True, False], [False, True]]), np.array([1, 0]), thetas)
    # a missed positive at θ = ½ costs ¾, a false alarm there ¼
    assert found == {"cost": pytest.approx((0.75 + 0.25) / 4.0), "reversals": 1, "pairs": 2}
    outside = np.array([[True, False], [False, True]])
    found = scores.level_set_scores(outside, outside, np.array([0.5, 0.75]))
    assert found["train max"] == 0.25
    assert found["re-entries"] == 0.5


@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.filterwarnings("ignore:os.fork")  # jax, where it was imported, warns of every fork
def test_single_tasks_are_extrapolated_within_the_budget(cores: int) -> None:
    clock = module("clock")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python's word on fork beside threads
        all_of_them = clock.one_by_one(lambda task: task**2, [3, 1, 2], 1, clock.Clock(60.0, cores), fork=True)
        some = clock.one_by_one(lambda task: task**2, [3, 1, 2], 2, clock.Clock(0.0, cores), shared=5.0, fork=True)
    assert all_of_them.results == {3: 9, 1: 1, 2: 4}
    assert 1 <= len(some.results) <= 2
    assert 3 in some.results
    assert some.seconds == pytest.approx(5.0 + np.mean(some.raw) * 3 / cores)
    assert some.measured().timed < some.measured().tasks


def test_gaussian_kernels_do_not_see_the_rotation() -> None:
    one = case("quantiles")
    X, Q = one.data[0], module("problems").rotation(one.d)
    np.testing.assert_allclose(rbf_kernel(X @ Q), rbf_kernel(X), atol=1e-12)
    assert np.abs(Q).min() > 0.1, "every input takes part in every other"


# -------------------------------------------------------------------------------------------------- the run, the report
@pytest.mark.slow
def test_a_quick_run_writes_its_results_and_skips_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    contenders = module("contenders")
    kept = [c for c in contenders.CONTENDERS["joint"] if c.name in ("ours", "OSQP by cvxpy")]
    absent = contenders.Contender("Absent", kept[0].run, needs="a_package_that_nobody_has")
    monkeypatch.setitem(contenders.CONTENDERS, "joint", (*kept, absent))
    module("run").main(["--quick", "--only", "joint", "--threads", "1", "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    line = "skipped: Absent (the package a_package_that_nobody_has is not installed)"
    assert line in printed.splitlines()
    results = json.loads((tmp_path / "suite.json").read_text(encoding="utf-8"))
    text = (tmp_path / "suite.md").read_text(encoding="utf-8")
    assert module("report").report(results) == text
    assert text in printed
    assert line in text.splitlines()
    rows = {row["contender"]: row for row in results["rows"]}
    assert set(rows) == {"ours", "OSQP by cvxpy"}
    ours, theirs = (rows[name]["metrics"]["objective"] for name in ("ours", "OSQP by cvxpy"))
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert rows["ours"]["seconds"] == pytest.approx(np.median(rows["ours"]["raw"]))


def rows_for_the_report() -> list[dict[str, Any]]:
    def row(contender: str, seconds: float, *, ours: bool = False, timed: int = 99, **metrics: Any) -> dict[str, Any]:
        return {
            "problem": "quantiles",
            "case": {"n": 500},
            "contender": contender,
            "ours": ours,
            "solves": "one level",
            "threads": 1,
            "seconds": seconds,
            "raw": [seconds],
            "tasks": 99,
            "timed": timed,
            "metrics": metrics,
        }

    return [
        row("ours", 2.0, ours=True, **{"pinball 5": 0.2, "objective": 1.0, "gap": 1e-5}),
        row("quick peer", 0.5, **{"pinball 5": 0.1, "objective": 1.0 + 1e-7}),
        row("slow peer", 30.0, timed=5, **{"pinball 5": 0.3}),
    ]


def test_the_report_says_who_wins_and_what_was_extrapolated() -> None:
    report, verdicts = module("report"), module("verdicts")
    lines = report.table("quantiles", rows_for_the_report())
    assert [line.split(" | ")[3:5] for line in lines[2:]] == [["2", "1"], ["0.5", "0.25"], ["≈ 30", "15"]]
    (sentence,) = verdicts.verdicts("quantiles", rows_for_the_report())
    assert "faster: quick peer 4×, slower: slow peer 15×" in sentence
    assert "smallest test loss at 5 levels: 0.1 by quick peer, 0.2 by ours" in sentence
    assert "are the same to 1e-07" in sentence


@pytest.mark.slow
def test_a_contender_that_breaks_is_a_line_not_the_end(tmp_path: Path) -> None:
    run = module("run")
    rows, why = run.employ("joint", "nobody of this name", run.Plan(quick=True), 1)
    assert rows == []
    assert why


def test_sizes_replace_the_usual_ones() -> None:
    problems = module("problems")
    found = problems.cases(False, [64])
    assert [one.label for one in found["level-sets"]] == [{"d": 2, "n": 64}, {"d": 8, "n": 64}]
    assert [one.n for one in found["joint"]] == [64]


def test_every_requirement_of_a_peer_is_listed() -> None:
    lines = (BENCHMARKS / "peers.txt").read_text(encoding="utf-8").splitlines()
    listed = {line.split(">")[0].replace("-", "_").removesuffix("_cpu") for line in lines if not line.startswith("#")}
    needed = {
        package
        for found in module("contenders").CONTENDERS.values()
        for contender in found
        for package in contender.needs.split()
    }
    needed |= {peer.package.replace("-", "_") for peer in PEERS.values() if peer.draw}
    assert needed - {"kernlab", "infinitask.fit_path", "scikit_learn"} == listed
