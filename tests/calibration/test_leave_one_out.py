"""Leave-one-out of one-class machines in closed form, beside n refits."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.svm import OneClassSVM

from infinitask import InfiniteOneClassSVM
from infinitask.calibration._leave_one_out import leave_one_out
from infinitask.calibration._thresholds import new_row_quantile
from infinitask.calibration.held_out import HeldOut
from infinitask.fitting import Data
from infinitask.fitting._defaults import resolved
from infinitask.fitting._pose import pose
from infinitask.solvers import solve
from tests.support.each import each

SETTINGS: dict[str, Any] = {"gamma": 0.3, "n_nodes": 5, "features": "exact"}


def solved(X: np.ndarray, weight: np.ndarray | None = None, **changed: Any) -> tuple[Data, Any, Any]:
    data = Data.canonical(X, None, weight)
    recipe = resolved(InfiniteOneClassSVM(**SETTINGS | changed).recipe(), data)
    problem = pose(recipe, data, np.random.default_rng(0))
    return data, problem, solve(problem.objective, solver=recipe.solver)


def refits(data: Data, problem: Any, solution: Any) -> np.ndarray:
    """h − t at every row and node by the machine without a copy of it; the bounds of the other rows stay."""
    rows, theta, n = problem.objective.rows, problem.quadrature.nodes[:, 0], data.weight.size
    K, dual = rows @ rows.T, solution.dual_at.smoothing.centre[0]
    found = np.empty((n, theta.size))
    for i in range(n):
        weight = n * data.weight * (1.0 - (np.arange(n) == i) / data.copies[i])
        kept = weight > 0.0
        for j, level in enumerate(theta):
            s = float(data.weight @ dual[:, j]) * level  # the ridge on t moves it away from its node
            machine = OneClassSVM(kernel="precomputed", nu=n * s / np.sum(weight), tol=1e-8)
            machine.fit(K[np.ix_(kept, kept)], sample_weight=weight[kept])
            found[i, j] = machine.decision_function(K[[i]][:, kept])[0] / (n * level)
    return found


def normal(n: int = 60) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 2))


INSTANCES: dict[str, Any] = {
    "distinct rows": (normal(), None),
    "weights": (normal(), np.random.default_rng(1).integers(1, 4, size=60).astype(float)),
    "duplicates": (np.vstack([normal(), normal()[:20]]), None),
    "cells of a table": (np.clip(np.round(2.0 * normal(120)), -3.0, 3.0), None),
}


@pytest.mark.quick("weights", "duplicates")
@pytest.mark.parametrize("name", list(INSTANCES))
def test_leave_one_out_equals_as_many_refits(name: str) -> None:
    data, problem, solution = solved(*INSTANCES[name])
    assert (np.max(data.copies) > 1.0) == (name == "cells of a table")
    left_out = leave_one_out(problem, solution, data.copies)
    assert left_out is not None
    theta = problem.quadrature.nodes[:, 0]
    found, expected = left_out.values(theta), refits(data, problem, solution)
    seen = problem.values(solution.z, slice(None))
    near = np.abs(found - expected) < 1e-5 * np.max(np.abs(seen), axis=0)  # a row that stays on the boundary

    def agree(values: np.ndarray, t: np.ndarray) -> float:
        """The fraction of rows on the same side of t."""
        return float(np.mean(data.weight @ (((values < t) == (expected < t)) | near)))

    # at t itself, and at the threshold with a fraction θ of new rows outside
    own, calibrated = np.zeros(theta.size), new_row_quantile(expected, data.weight, theta)
    assert agree(found, own) >= (0.95 if name == "cells of a table" else 0.99)
    assert agree(found, calibrated) >= 0.95
    for t in (own, calibrated):
        assert agree(seen, t) < agree(found, t)


def test_rows_inside_stay_and_all_others_fall() -> None:
    data, problem, solution = solved(normal())
    left_out = leave_one_out(problem, solution, data.copies)
    assert left_out is not None
    inside = solution.dual_at.smoothing.centre[0] == 0.0
    assert 0.2 < np.mean(inside) < 0.8
    assert np.all(left_out.change[inside] == 0.0)
    assert np.all(left_out.change[~inside] < 0.0)


# ------------------------------------------------------------------------------------------------------------ folds
FAILS: dict[str, dict[str, Any]] = {
    "all rows on the boundary": {"gamma": 1e3},
    "nodes share their h": {"task_kernel": "polynomial"},
    "another solver": {"solver": "lbfgs"},
}


@each("name", list(FAILS))
def test_the_closed_form_is_refused_where_it_fails(name: str) -> None:
    data, problem, solution = solved(normal(), **FAILS[name])
    assert leave_one_out(problem, solution, data.copies) is None
    assert leave_one_out(*solved(normal())[1:], data.copies) is not None


def test_a_dual_point_of_another_h_is_refused() -> None:
    data, problem, solution = solved(normal())
    assert leave_one_out(problem, replace(solution, z=1.1 * solution.z), data.copies) is None
    assert leave_one_out(problem, replace(solution, dual_at=None), data.copies) is None


@each("gamma", [0.3, 1e3])
def test_thresholds_come_from_one_fit_or_from_folds(gamma: float) -> None:
    folds = []
    with pytest.MonkeyPatch.context() as patch:
        fits = HeldOut.fits
        patch.setattr(HeldOut, "fits", lambda self, tol: folds.append(tol) or fits(self, tol))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # rows on the boundary
            model = InfiniteOneClassSVM(**SETTINGS | {"gamma": gamma, "n_nodes": 12}).fit(normal(100))
    assert len(folds) == (gamma > 1.0)
    nu = np.array([0.1, 0.3, 0.6])
    outside = np.mean(model.predict(np.random.default_rng(1).normal(size=(4000, 2)), nu) == -1, axis=0)
    if gamma < 1.0:
        assert np.all(np.abs(outside - nu) < 3.0 * np.sqrt(nu * (1.0 - nu) / 100))
