"""The library's own answers."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from infinitask import (
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    JointQuantileRegressor,
)
from infinitask.measures import Discrete
from suite.clock import Clock, Measured, one_by_one, repeated
from suite.problems import LEVELS, Costs, Joint, LevelSets, Path, Regression, Small, spread
from suite.scores import cost_scores, level_set_scores, quantile_scores

EXACT = 1e-6
"""The gap at which the library solves the peers' single problems, to show that they are the same problems."""


def certificate(model: Any) -> dict[str, float]:
    """The figures that every fit reports."""
    return {
        "objective": float(model.objective_),
        "gap": float(model.dual_gap_),
        "evaluations": int(model.solution_.n_evaluations),
    }


# ------------------------------------------------------------------------------------------------------------ quantiles
def every_level(case: Regression, clock: Clock, noncrossing: float) -> Measured:
    """All levels from one fit, and its predictions of 99 levels on the test rows."""
    X, y, X_test, y_test = case.data
    model = InfiniteQuantileRegressor(
        n_nodes=case.m, noncrossing=noncrossing, alpha=case.alpha, gamma=case.gamma, tol=case.tol
    )
    raw, curves = repeated(lambda: model.fit(X, y).predict(X_test, LEVELS), clock)
    predicted = dict(zip(LEVELS.tolist(), curves.T, strict=True))
    known = certificate(model)
    known.pop("objective")  # the objective of a continuum: no peer has it
    metrics = quantile_scores(predicted, y_test) | known
    return Measured(float(np.median(raw)), raw, LEVELS.size, LEVELS.size, metrics)


def single_level(case: Regression, level: float, tol: float = EXACT) -> Any:
    """min (1/n) Σ ρ_θ(y − q_θ − f(x)) + (λ/2)‖f‖², q_θ the sample quantile: the problem of the single-level peers."""
    X, y, _, _ = case.data
    model = InfiniteQuantileRegressor(
        measure=Discrete([level]),
        quadrature="discrete",
        task_kernel="constant",
        bias_kernel=None,
        noncrossing=0.0,
        alpha=case.alpha,
        gamma=case.gamma,
        tol=tol,
    )
    return model.fit(X, y - np.quantile(y, level))


def each_level(case: Regression, clock: Clock) -> Measured:
    """The peers' problem, level by level."""
    _, y, X_test, y_test = case.data

    def solve(level: float) -> tuple[dict[str, float], Any]:
        model = single_level(case, level)
        return certificate(model), model.predict(X_test, level) + np.quantile(y, level)

    answers = one_by_one(solve, case.quantiles, len(case.quantiles), clock, fork=False)
    metrics = quantile_scores({level: curve for level, (_, curve) in answers.results.items()}, y_test)
    metrics |= checked_objective({level: c["objective"] for level, (c, _) in answers.results.items()}, case)
    metrics["gap"] = max(c["gap"] for c, _ in answers.results.values())
    return replace(answers, asked=LEVELS.size).measured(**metrics)


def checked_objective(found: dict[float, float], case: Regression) -> dict[str, float]:
    """The mean objective over the checked levels, if all were solved."""
    if not all(level in found for level in case.quantiles):
        return {}
    return {"objective": float(np.mean([found[level] for level in case.quantiles]))}


def free_biases(case: Regression, clock: Clock) -> Measured:
    """The problem of kernlab: the checked levels, each by itself, with a free bias."""
    X, y, X_test, y_test = case.data
    model = IndependentQuantileRegressor(
        quantiles=np.sort(case.quantiles), alpha=case.alpha, gamma=case.gamma, tol=EXACT
    )
    raw, curves = repeated(lambda: model.fit(X, y).predict(X_test), clock)
    predicted = dict(zip(np.sort(case.quantiles).tolist(), curves.T, strict=True))
    seconds = float(np.median(raw)) * LEVELS.size / len(case.quantiles)
    return Measured(
        seconds, raw, LEVELS.size, len(case.quantiles), quantile_scores(predicted, y_test) | certificate(model)
    )


def joint(case: Joint, clock: Clock) -> Measured:
    """Joint quantile regression to a tight gap."""
    X, y, X_test, y_test = case.data
    model = JointQuantileRegressor(
        quantiles=case.quantiles, gamma=case.gamma, task_gamma=case.task_gamma, alpha=case.alpha, tol=case.tol
    )
    raw, curves = repeated(lambda: model.fit(X, y).predict(X_test), clock)
    predicted = dict(zip(case.quantiles, curves.T, strict=True))
    return Measured(float(np.median(raw)), raw, metrics=quantile_scores(predicted, y_test) | certificate(model))


# ------------------------------------------------------------------------------------------------------- costs and sets
def every_cost(case: Costs, clock: Clock) -> Measured:
    """All costs from one fit, evaluated at its nodes on the test rows."""
    X, y, X_test, y_test = case.data
    model = InfiniteCostSensitiveClassifier(
        n_nodes=case.m, alpha=case.alpha, alpha_bias=0.0, gamma=case.gamma, tol=case.tol
    )
    raw, labels = repeated(lambda: model.fit(X, y).predict(X_test, case.tasks), clock)
    metrics = cost_scores(labels == 1, y_test, case.tasks) | {"gap": float(model.dual_gap_)}
    return Measured(float(np.median(raw)), raw, case.m, case.m, metrics)


def each_cost(case: Costs, clock: Clock) -> Measured:
    """The peers' problem at a few costs: a support vector machine with class weights for each."""
    X, y, _, _ = case.data
    thetas = case.tasks[spread(case.m)]
    model = IndependentCostSensitiveClassifier(thetas=thetas, alpha=case.alpha, gamma=case.gamma, tol=EXACT)
    raw, _ = repeated(lambda: model.fit(X, y), clock)
    return Measured(float(np.median(raw)) * case.m / thetas.size, raw, case.m, thetas.size, metrics=certificate(model))


def every_set(case: LevelSets, clock: Clock) -> Measured:
    """All level sets from one fit, evaluated at its nodes on the test rows."""
    X, X_test = case.data
    model = InfiniteOneClassSVM(n_nodes=case.m, gamma=case.gamma, alpha=1e-3, tol=case.tol)
    raw, sides = repeated(lambda: model.fit(X).predict(X_test, case.tasks), clock)
    metrics = level_set_scores(model.predict(X, case.tasks) == -1, sides == -1, case.tasks)
    return Measured(float(np.median(raw)), raw, case.m, case.m, metrics=metrics | {"gap": float(model.dual_gap_)})


def each_set(case: LevelSets, clock: Clock) -> Measured:
    """The peers' problem at a few fractions: a one-class support vector machine for each."""
    X, _ = case.data
    nus = case.tasks[spread(case.m)]
    model = InfiniteOneClassSVM(
        measure=Discrete(nus), quadrature="discrete", task_kernel="diagonal", alpha=0.0, gamma=case.gamma, tol=EXACT
    )
    raw, _ = repeated(lambda: model.fit(X), clock)
    return Measured(float(np.median(raw)) * case.m / nus.size, raw, case.m, nus.size, metrics=certificate(model))


# ------------------------------------------------------------------------------------------------------ many small fits
def small(case: Small, clock: Clock) -> Measured:
    """Every fit of the grid once; the seconds are those of the median fit."""
    raw, gaps = [], []
    for regression in case.regressions():
        X, y, _, _ = regression.data
        for weight in case.noncrossing:
            model = InfiniteQuantileRegressor(
                n_nodes=case.m, noncrossing=weight, alpha=regression.alpha, gamma=regression.gamma, tol=case.tol
            )
            started = time.perf_counter()
            model.fit(X, y)
            raw.append(time.perf_counter() - started)
            gaps.append(float(model.dual_gap_))
    metrics = {"quantile 0.9": float(np.quantile(raw, 0.9)), "largest": max(raw), "gap": max(gaps)}
    return Measured(float(np.median(raw)), raw, len(raw), len(raw), metrics)


def _path_model(case: Path) -> tuple[Any, Any, Any]:
    X, y, _, _ = case.regression.data
    model = InfiniteQuantileRegressor(
        n_nodes=case.m, noncrossing=case.noncrossing, gamma=case.regression.gamma, tol=case.tol
    )
    return model, X, y


def separate_fits(case: Path, clock: Clock) -> Measured:
    """A fit for every alpha, from scratch; the seconds are those of all of them."""
    model, X, y = _path_model(case)
    raw, gaps = repeated(lambda: [model.set_params(alpha=a).fit(X, y).dual_gap_ for a in case.alphas], clock)
    return Measured(float(np.median(raw)), raw, len(case.alphas), len(case.alphas), {"gap": float(max(gaps))})


def path(case: Path, clock: Clock) -> Measured:
    """One call for all values of alpha."""
    from infinitask import fit_path

    model, X, y = _path_model(case)
    raw, fitted = repeated(lambda: fit_path(model, X, y, alphas=case.alphas), clock)
    gap = max(float(found.dual_gap_) for found in fitted)
    return Measured(float(np.median(raw)), raw, len(case.alphas), len(case.alphas), {"gap": gap})
