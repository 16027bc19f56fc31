"""Reference problems with known optima: the estimators must find them.

The files in ``reference/`` hold inputs, hyperparameters and the exact minimiser of small convex problems, found by
independent solvers (two interior-point methods and a first-order one that agree to 5e-12).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
)
from infinitask.measures import Uniform

CASES = sorted((Path(__file__).parent / "reference").glob("*.json"))
SUPPORT = {"csc": (-1.0, 1.0), "ocsvm": (0.05, 1.0)}


def load(path: Path) -> dict[str, Any]:
    case = json.loads(path.read_text())
    for name, value in case.items():
        if isinstance(value, list):
            case[name] = np.asarray(value, dtype=float)
    case["x"] = case["x"].reshape(case["n"], -1)
    case["x_new"] = case["x_new"].reshape(-1, case["d"])
    return case


def estimator(case: dict[str, Any], **extra: Any) -> Any:
    hyper = case["hyper"]
    common = {
        "gamma": hyper["gamma_x"],
        "task_gamma": hyper["gamma_theta"],
        "alpha": hyper["lam"],
        "n_nodes": case["m"],
        "tol": 1e-7,
        **extra,
    }
    if case["kind"] == "ocsvm":
        return InfiniteOneClassSVM(measure=Uniform(0.05, 1.0), **common)
    common["alpha_bias"] = hyper.get("lam_b")
    common["bias_kernel"] = "task" if "lam_b" in hyper else None
    if case["kind"] == "csc":
        return InfiniteCostSensitiveClassifier(**common)
    if case["kind"] == "expectile":
        return InfiniteExpectileRegressor(**common)
    return InfiniteQuantileRegressor(noncrossing=hyper.get("lam_nc", 0.0), smoothing=hyper.get("kappa", 0.0), **common)


def fitted(case: dict[str, Any], **extra: Any) -> Any:
    model = estimator(case, **extra)
    return model.fit(case["x"]) if case["kind"] == "ocsvm" else model.fit(case["x"], case["y"])


@pytest.mark.parametrize("solver", ["auto", "newton"])
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_reference(path: Path, solver: str) -> None:
    case = load(path)
    model = fitted(case, solver=solver)

    np.testing.assert_allclose(model.nodes_, case["theta"], rtol=1e-10)
    np.testing.assert_allclose(model.weights_, case["weights"], rtol=1e-10)
    assert model.dual_gap_ <= 1e-7
    assert abs(model.objective_ - case["objective"]) <= 1e-6 * abs(case["objective"])
    assert model.objective_ >= case["objective"] - 1e-9, "a different problem was solved"

    offset = {"theta": 0.0, "theta_new": 0.0}
    if case["kind"] == "ocsvm":
        offset = {"theta": case["t_theta"], "theta_new": case["t_theta_new"]}
        np.testing.assert_allclose(model.threshold(case["theta"]), case["t_theta"], atol=1e-3)
        np.testing.assert_allclose(model.threshold(case["theta_new"]), case["t_theta_new"], atol=1e-3)
    field = model.field_
    for X, theta, expected in (
        ("x", "theta", "H_train"),
        ("x", "theta_new", "H_train_new_theta"),
        ("x_new", "theta_new", "H_new"),
    ):
        np.testing.assert_allclose(field(case[X], case[theta]) + offset[theta], case[expected], atol=1e-3)
    if "b_theta" in case:
        np.testing.assert_allclose(field.bias(case["theta"]), case["b_theta"], atol=1e-3)
        np.testing.assert_allclose(field.bias(case["theta_new"]), case["b_theta_new"], atol=1e-3)
    if "dH_train" in case:
        # a derivative is less well determined by the objective than a value
        np.testing.assert_allclose(field(case["x"], case["theta"], order=1), case["dH_train"], atol=2e-2)


def test_derivative_features_are_needed() -> None:
    """The penalty on the derivative widens the span of the representer theorem; without it the optimum is worse."""
    case = load(next(path for path in CASES if path.stem.startswith("b_")))
    model = fitted(case)
    assert model.objective_ < case["objective_alpha_only"] - 1e-4


def test_every_kind_is_present() -> None:
    assert {load(path)["kind"] for path in CASES} == {"qr", "qr_nc", "csc", "ocsvm", "expectile", "huber"}
