"""Whether the fit is robust to κ and to the start, as the paper says.

The supplement smooths the pinball loss over a width κ, and says that the optimisation "showed a robust behaviour" with
respect to κ "with a random coefficient initialization". It prints no numbers for this. Two studies measure it.

κ: the library solves the problem for κ from 10 to 0. Is the number of evaluations stable, and how far are the
M-quantiles from the quantiles of κ = 0? For a smooth density f, the θ-M-quantile q + δ satisfies
θ(1 − F − κf/2) = (1 − θ)(F − κf/2), hence δ ≈ κ(1 − 2θ)/2 at a small κ.

Starts: L-BFGS-B on the coefficients of the representer theorem, the paper's algorithm, begins at zero and at random
coefficients. The library's certificate bounds the optimum from below, whatever the start.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from infinitask.datasets import make_sine
from infinitask.field import Field
from infinitask.fitting import Data, Fit, Units, learn
from infinitask.objective import Smoothing
from infinitask.solvers import Start, solve

from .convergence import Coefficients, tuned_parameters
from .robustness_report import PRINTED_KAPPAS, report
from .runner import Experiment
from .table1 import split
from .tuned import LEVELS, Values, model, pinball

__all__ = ["EXPERIMENT"]

SPLITS = {"sine": 1, "mcycle": 5, "boston_housing": 5}
"""The sets, and how many splits of each the study of κ has; the paper has one sample of the toy data."""

SETS = tuple(SPLITS)

SINE = {"gamma": 0.0, "task_gamma": 0.0, "lambda": -3.0}
"""log₁₀ of γ_X = γ_Θ = 1 and λ = 10⁻³, those of the paper's study of κ; other sets have those of Table 1's tuning."""

KAPPAS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 0.0)

MAX_ITER = 20_000


def units(quick: bool) -> list[dict[str, Any]]:
    """One training set at all κ for each unit of the first study; one κ at all starts for each unit of the second."""
    kappas = [
        {"part": "kappa", "dataset": name, "split": i} for name, k in SPLITS.items() for i in range(1 if quick else k)
    ]
    names = SETS[:2] if quick else SETS
    return kappas + [{"part": "starts", "dataset": name, "kappa": kappa} for name in names for kappa in PRINTED_KAPPAS]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {
        "kappas": list(PRINTED_KAPPAS if quick else KAPPAS),
        "rows": 300 if quick else 10_000,
        "nodes": 100,
        "tol": 1e-4,
        "fine_tol": 1e-5 if quick else 1e-7,
        "few_rows": 60 if quick else 100,
        "few_nodes": 10 if quick else 20,
        "sizes": [0.01, 1.0, 100.0],
        "starts": 2 if quick else 10,
        "evaluations": [30, 100] if quick else [100, 1000],
        "parameters": {"sine": SINE} | tuned_parameters(SETS[1:]),
    }


def data(name: str, i: int, rows: int) -> tuple[Values, Values, Values, Values]:
    """X_train, X_test, y_train, y_test, standardised."""
    if name != "sine":
        return split(name, i)
    (X, y), (X_test, y_test) = make_sine(rows, random_state=13 + i), make_sine(2000, random_state=1000 + i)
    (x0, dx), (y0, dy) = (X.mean(), X.std()), (y.mean(), y.std())
    return (X - x0) / dx, (X_test - x0) / dx, (y - y0) / dy, (y_test - y0) / dy


def fitted(name: str, X: Values, y: Values, kappa: float, parameters: dict[str, float], **others: Any) -> Fit:
    """The paper's problem at κ: both the pinball loss and the penalty on crossing are smoothed."""
    estimator = model("itl", parameters, y.size, smoothing=kappa, noncrossing_loss="smoothed", max_iter=MAX_ITER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the gap
        return learn(estimator.set_params(**others).recipe(), Data.canonical(X, y))


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """One unit of either study."""
    return _all_kappas(unit, settings) if unit["part"] == "kappa" else _all_starts(unit, settings)


def _all_kappas(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The evaluations to the tolerance, and the solution to a finer one, for every κ."""
    name = unit["dataset"]
    X, X_test, y, y_test = data(name, unit["split"], settings["rows"])
    chosen: dict[str, Any] = {"n_nodes": settings["nodes"]}
    if name == "sine":
        chosen["quadrature"] = "gauss-legendre"  # as in the paper's study of κ

    def at(kappa: float, tol: float) -> Fit:
        return fitted(name, X, y, kappa, settings["parameters"][name], tol=tol, **chosen)

    exact = at(0.0, settings["fine_tol"])
    h0, sharp = exact.field(X_test, LEVELS), Smoothing((0.0,) * len(exact.problem.objective.integrals))
    best = exact.problem.objective.evaluate(exact.solution.z, sharp).primal
    rows = []
    for kappa in settings["kappas"]:
        asked, fine = at(kappa, settings["tol"]).solution, at(kappa, settings["fine_tol"])
        h = fine.field(X_test, LEVELS)
        objective = exact.problem.objective.evaluate(fine.solution.z, sharp).primal
        rows.append(
            {
                "kappa": kappa,
                "evaluations": asked.n_evaluations,
                "gap": asked.gap,
                "fine_gap": fine.solution.gap,
                "distance": float(np.sqrt(np.mean((h - h0) ** 2))),
                "excess": (objective - best) / best,
                "pinball": pinball(y_test, h),
            }
        )
    return {"rows": rows, "optimum": exact.solution.objective}


def _all_starts(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The paper's algorithm and the library's solver from zero and from random coefficients of several sizes."""
    name, kappa = unit["dataset"], unit["kappa"]
    X, X_test, y, y_test = data(name, 0, settings["few_rows"])
    chosen = settings["parameters"][name]
    fit = fitted(name, X, y, kappa, chosen, n_nodes=settings["few_nodes"], tol=settings["fine_tol"])
    nodes, dual, objective = fit.quadrature.nodes[:, 0], fit.solution.dual, fit.problem.objective
    units_of_y = fit.recipe.units or Units()
    paper, rng = Coefficients(X, y, nodes, chosen), np.random.default_rng(0)

    def library(z: Values) -> Field:
        return units_of_y.field(fit.problem.field(z))

    rows = []
    for size, i in [(0.0, 0), *((size, i) for size in settings["sizes"] for i in range(settings["starts"]))]:
        coefficients, unknowns = rng.normal(size=paper.size), rng.normal(size=objective.size)
        raw = _rms(paper.values(coefficients, X, nodes))
        row: dict[str, Any] = {"size": size, "start": i, "raw": raw}
        ends = paper.after_each(settings["evaluations"], kappa, size / raw * coefficients)
        for stop, z in zip(settings["evaluations"], ends, strict=True):
            row[f"excess_{stop}"] = (paper.evaluate(z, kappa)[0] - dual) / abs(dual)
            row[f"pinball_{stop}"] = pinball(y_test, paper.values(z, X_test, LEVELS))
        begun = Start(size / _rms(library(unknowns)(X, nodes)) * unknowns, objective.widest)
        found = solve(objective, tol=settings["tol"], max_iter=MAX_ITER, start=begun if size else None)
        row |= {"evaluations": found.n_evaluations, "gap": found.gap}
        rows.append(row | {"pinball": pinball(y_test, library(found.z)(X_test, LEVELS))})
    return {"rows": rows, "pinball": pinball(y_test, fit.field(X_test, LEVELS)), "fine_gap": fit.solution.gap}


def _rms(h: Values) -> float:
    return float(np.sqrt(np.mean(h**2)))


EXPERIMENT = Experiment("robustness", "Robustness to κ and to the start", units, work, report, settings)
