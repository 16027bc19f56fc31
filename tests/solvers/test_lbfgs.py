"""What L-BFGS remembers is an inverse Hessian, where it ends is the optimum, and no compiler has a say in it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
)
from infinitask.datasets import make_sine
from infinitask.losses import Pinball, Squared
from infinitask.losses._rows import NonCrossing
from infinitask.objective import Objective, Smoothing
from infinitask.objective._terms import SWITCH
from infinitask.solvers import SOLVERS, solve
from infinitask.solvers._base import Ledger, Start
from infinitask.solvers._basis import Eigenbasis
from infinitask.solvers._lbfgs import EVALUATIONS_BEFORE_ASKING, StepMemory, lbfgs_stage
from infinitask.solvers._newton import hessian_product
from tests.support.random_objectives import compiled_only, point, posed
from tests.support.random_problems import problem

Floats = np.ndarray[Any, Any]
Steps = list[tuple[Floats, Floats]]


def convex_matrix(size: int, seed: int, condition: float = 100.0) -> Floats:
    """A positive definite matrix."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return (Q * np.geomspace(1.0, condition, size)) @ Q.T


def random_steps(A: Floats, count: int, seed: int) -> Steps:
    """Steps s of all lengths, and what they do to the gradient of zᵀAz/2."""
    rng = np.random.default_rng(seed)
    steps = [10.0 ** rng.uniform(-3, 3) * rng.normal(size=A.shape[0]) for _ in range(count)]
    return [(s, A @ s) for s in steps]


def dense_inverse(steps: Steps, metric: Floats) -> Floats:
    """The inverse Hessian of BFGS: for each step, H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ with ρ = 1/(sᵀy)."""
    s, y = steps[-1]
    eye = np.eye(s.size)
    H = (s @ y) / (y @ (y / metric)) * np.diag(1.0 / metric)
    for s, y in steps:
        turn = eye - np.outer(s, y) / (s @ y)
        H = turn @ H @ turn.T + np.outer(s, s) / (s @ y)
    return H


def remembered(steps: Steps, size: int, length: int, metric: Floats | float = 1.0) -> StepMemory:
    memory = StepMemory(size, length)
    for s, y in steps:
        memory.add(s, y, y / metric)
    return memory


# --------------------------------------------------------------------------------------------------- the memory
@pytest.mark.parametrize("length", [1, 5, 20])
@pytest.mark.parametrize("count", [1, 4, 5, 6, 23, 57])
def test_direction_is_the_dense_inverse(length: int, count: int) -> None:
    size = 30
    for seed in range(5):
        steps = random_steps(convex_matrix(size, seed), count, seed)
        metric = 10.0 ** np.random.default_rng(seed + 50).uniform(-1, 1, size=size)
        memory = remembered(steps, size, length, metric)
        H = dense_inverse(steps[-length:], metric)
        np.testing.assert_allclose(H, H.T, atol=1e-12)
        for g in (*np.random.default_rng(seed + 100).normal(size=(3, size)), steps[0][1]):
            expected = -H @ g
            found = memory.direction(g, g / metric)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.linalg.norm(expected))
            assert found @ g < 0.0
        # the last step is known for sure
        s, y = steps[-1]
        np.testing.assert_allclose(memory.direction(y, y / metric), -s, rtol=0, atol=1e-9 * np.linalg.norm(s))


def test_without_a_step_the_direction_is_the_gradient_in_the_metric() -> None:
    g = np.arange(4.0)
    np.testing.assert_array_equal(StepMemory(4).direction(g, 2.0 * g), -2.0 * g)


def test_with_exact_steps_a_quadratic_is_solved_in_its_dimension() -> None:
    size = 12
    A, z = convex_matrix(size, 3), np.random.default_rng(3).normal(size=size)
    memory, g = StepMemory(size), A @ z
    start = np.linalg.norm(g)
    for _ in range(size):
        d = memory.direction(g, g)
        s = -(g @ d) / (d @ A @ d) * d
        memory.add(s, A @ s, A @ s)
        z, g = z + s, g + A @ s
    assert np.linalg.norm(g) < 1e-9 * start
    np.testing.assert_allclose(memory.direction(A @ np.ones(size), A @ np.ones(size)), -1.0, atol=1e-6)


def test_steps_that_tell_nothing_are_forgotten() -> None:
    steps = random_steps(convex_matrix(6, 0), 4, 0)
    memory, g = remembered(steps, 6, 5), np.ones(6)
    before = memory.direction(g, g)
    s = steps[0][0]
    for nothing in (np.zeros(6), -s, np.full(6, np.nan), np.full(6, np.inf)):
        with np.errstate(invalid="ignore"):
            memory.add(s, nothing, nothing)
    memory.add(np.zeros(6), s, s)
    np.testing.assert_array_equal(memory.direction(g, g), before)


def test_steps_of_any_size_are_remembered() -> None:
    """Near the minimum steps and changes of the gradient are tiny, and their products tinier still."""
    A = convex_matrix(8, 1)
    steps = random_steps(A, 5, 1)
    g = np.ones(8)
    expected = remembered(steps, 8, 5).direction(g, g)
    for scale in (1e-100, 1e-30, 1e30, 1e100):
        scaled = [(scale * s, scale * y) for s, y in steps]
        np.testing.assert_allclose(remembered(scaled, 8, 5).direction(g, g), expected, rtol=1e-9)


# ---------------------------------------------------------------------------------------------------- the stage
def stage(objective: Objective, smoothing: Smoothing, enough: Any, give_up: Any, max_iter: int = 2000) -> Any:
    basis = Eigenbasis.of(objective)
    ledger = Ledger(basis.objective, 1e-14, max_iter)
    z = basis.objective.start()
    start = ledger.evaluate(z, smoothing)
    ledger.enough = enough  # type: ignore[method-assign]
    for seen in lbfgs_stage(ledger, z, start, smoothing, basis.metric):
        if seen[2] is not None and give_up(seen[0], seen[2]):
            break
    return basis, ledger, start, *seen[:2]


def test_a_stage_ends_where_it_says() -> None:
    objective = posed(Pinball(), bias="penalised", others=((NonCrossing(0.7), 4),), n=60)
    smoothing = Smoothing((0.1, 0.3))
    basis, ledger, start, z, here = stage(objective, smoothing, lambda e: e.error < 1e-9, lambda z, stalled: False)
    assert here.error < 1e-9 < start.error
    assert here.smoothed < start.smoothed
    assert 1 <= ledger.n_iter < ledger.n_evaluations
    for a, b in zip(here, basis.objective.evaluate(z, smoothing), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_stage_gives_up_when_told() -> None:
    objective = posed(Pinball(), others=((NonCrossing(0.7), 4),), n=60)
    asked: list[int] = []

    def give_up(z: Floats, stalled: int) -> bool:
        asked.append(stalled)
        return len(asked) == 2

    _, ledger, *_ = stage(objective, Smoothing((0.01, 0.01)), lambda e: False, give_up)
    assert len(asked) == 2
    assert 2 * EVALUATIONS_BEFORE_ASKING <= ledger.n_evaluations < 1000


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("allowed", [1, 2, 3, 7, 20])
def test_no_more_evaluations_than_allowed(solver: str, allowed: int) -> None:
    objective = posed(Pinball(), bias="free", others=((NonCrossing(0.7), 4),), n=60)
    found = solve(objective, solver=solver, tol=1e-12, max_iter=allowed)
    assert found.n_evaluations <= allowed
    assert not found.converged
    assert np.all(np.isfinite(found.z))


# -------------------------------------------------------------------------------------------------- the optimum
@pytest.mark.parametrize("bias", [None, "penalised", "free"])
@pytest.mark.parametrize("solver", SOLVERS)
def test_least_squares_are_solved(bias: str | None, solver: str) -> None:
    """A quadratic has its minimum in closed form."""
    objective = posed(Squared(), bias=bias, n=60)
    nothing = Smoothing((0.0,))
    zero = np.zeros(objective.size)
    H = np.stack([hessian_product(objective, zero, nothing, e) for e in np.eye(objective.size)])
    best = -np.linalg.solve(H, objective.evaluate(zero, nothing).gradient)
    found = solve(objective, solver=solver, tol=1e-10)
    assert found.converged
    value = objective.evaluate(best, nothing).primal
    assert found.objective == pytest.approx(value, rel=1e-10)
    assert found.dual <= value * (1.0 + 1e-13)
    np.testing.assert_allclose(found.z, best, atol=1e-4)


SECONDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in (43, 278)]


@pytest.mark.quick(every=3)
@pytest.mark.filterwarnings("ignore:Infinite:UserWarning")
@pytest.mark.parametrize("seed", [25, 31, 67, 72, 92, 123, 136, 178, 190, 284, *SECONDS])
def test_solvers_agree(seed: int) -> None:
    model, arguments, name = problem(seed)
    found = [model.set_params(solver=solver).fit(*arguments).solution_ for solver in SOLVERS]
    assert all(f.converged for f in found), name
    lowest = min(f.objective for f in found)
    assert max(f.dual for f in found) <= lowest + 1e-12 * abs(lowest), name
    assert max(f.objective for f in found) <= lowest + model.tol * abs(lowest), name


def test_a_start_where_nothing_is_curved() -> None:
    """At h = 0 every residual of a hinge is 1: the metric knows the ridge alone."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = InfiniteCostSensitiveClassifier(alpha=1e-6, alpha_bias=None, gamma="median", solver="lbfgs")
    model.fit(X, np.arange(12) % 2)
    assert model.dual_gap_ <= model.tol


@pytest.mark.quick(every=5)
@pytest.mark.parametrize(
    "kappa",
    [0.0, 1e-30, 1e-3, 1e3],
)
@pytest.mark.parametrize("solver", SOLVERS)
def test_from_wherever_it_starts(kappa: float, solver: str) -> None:
    objective = posed(Pinball(), bias="penalised", others=((NonCrossing(0.7), 4),), n=60)
    expected = solve(objective)
    smoothing = Smoothing((kappa, kappa))
    for size in (0.1, 1e3):
        z = size * point(objective)
        centred = replace(smoothing, centre=objective.duals(-z, smoothing))
        for there in (smoothing, centred):
            found = solve(objective, solver=solver, max_iter=1000, start=Start(z, there, None))
            assert found.converged
            assert max(found.dual, expected.dual) <= min(found.objective, expected.objective) * (1.0 + 1e-12)


# ---------------------------------------------------------------------------------- with and without a compiler
def fitted(model: Any, X: Floats, y: Floats | None, weight: Floats | None, compiled: bool) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SWITCH, "1" if compiled else "0")
        return model.fit(X, sample_weight=weight) if y is None else model.fit(X, y, sample_weight=weight)


MODELS: list[Any] = [
    InfiniteQuantileRegressor,
    InfiniteExpectileRegressor,
    InfiniteSVR,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
]


@pytest.mark.quick(every=3)
@compiled_only
@pytest.mark.filterwarnings("ignore:Infinite:UserWarning")  # of what a fit to three samples is worth
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("nodes", [1, 12])
@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.slow), 3, 14])
def test_fits_agree(model: Any, nodes: int, n: int) -> None:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 2))
    uneven = np.where(np.arange(n) == 0, 1e6, 1.0)
    ways: list[tuple[Floats | None, Floats | None]] = [
        (rng.normal(size=n), None),
        (np.full(n, 3.7), None),
        (rng.normal(size=n), uneven),
    ]
    params = {"alpha": 1e-2} if model in (InfiniteCostSensitiveClassifier, InfiniteOneClassSVM) else {}
    if model is InfiniteCostSensitiveClassifier:
        if n == 1:
            return  # two classes are two samples
        params["alpha_bias"] = None
        ways = [(np.arange(n) % 2, None), (np.arange(n) % 2, uneven)]
    elif model is InfiniteOneClassSVM:
        ways = [(None, None), (None, uneven)]
    for goal, weight in ways:
        ours, theirs = (fitted(model(n_nodes=nodes, **params), X, goal, weight, way).solution_ for way in (True, False))
        assert ours.converged
        assert theirs.converged
        # every bound lies below every value
        least = min(ours.objective, theirs.objective)
        assert max(ours.dual, theirs.dual) <= least + 1e-9 * abs(least) + 1e-15


@compiled_only
def test_the_bound_of_a_free_bias_is_one() -> None:
    for seed in (1, 23, 24, 37, 40, 45, 47, 58):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 1))
        y = X[:, 0] + rng.normal(size=30) > 0.0
        weight = rng.uniform(0.1, 1.0, size=30)
        model = InfiniteCostSensitiveClassifier(alpha=1.0, alpha_bias=0.0, n_nodes=5)
        ours, theirs = (fitted(model, X, y, weight, way).solution_ for way in (True, False))
        assert ours.converged
        assert theirs.converged
        assert ours.dual <= theirs.objective * (1.0 + 1e-9)
        assert ours.objective <= theirs.objective * (1.0 + model.tol)


def test_the_bound_holds_far_from_the_data() -> None:
    """u is at an end of its interval: its dual term is known, however far away the field is."""
    objective = posed(Pinball(), bias="free", n=60)
    r, s = objective.shape
    best = solve(objective, solver="newton", tol=1e-10)
    for seed in range(20):
        z = point(objective, seed)
        z[r * s :] *= 1e26
        found = objective.evaluate(z, Smoothing((1e-3,)))
        dual = found.dual_data - 0.5 * objective.alpha * float(found.dual_z @ found.dual_z)
        assert dual <= best.objective


# ------------------------------------------------------------------------------------------------- the switch
SCRIPT = """
import sys
{prelude}
from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
model = InfiniteQuantileRegressor(n_nodes=10).fit(*make_sine(40, random_state=0))
print(model.objective_, "infinitask.objective._compiled" in sys.modules)
"""


@pytest.mark.slow  # test_extras.py has a quick fit without numba
@pytest.mark.parametrize("way", ["switched off", "not installed", "broken"])
def test_without_numba(way: str, tmp_path: Path) -> None:
    environment = {**os.environ, SWITCH: "0" if way == "switched off" else "1"}
    if way == "broken":
        (tmp_path / "numba").mkdir()
        (tmp_path / "numba" / "__init__.py").write_text("raise ImportError('made for another NumPy')")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(tmp_path), environment.get("PYTHONPATH")]))
    script = SCRIPT.format(prelude="sys.modules['numba'] = None" if way == "not installed" else "")
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    value, loaded = done.stdout.split()
    assert loaded == "False"
    here = InfiniteQuantileRegressor(n_nodes=10).fit(*make_sine(40, random_state=0))
    assert float(value) == pytest.approx(here.objective_, rel=here.tol)
