"""Laws that every fit obeys, whatever the task, the kernels and the weights."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from infinitask import InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_mixture, make_sine
from infinitask.fitting import Data, Recipe
from infinitask.fitting._pose import pose
from infinitask.objective import Smoothing
from infinitask.solvers import solve
from infinitask.tasks import Order, QuantileTask
from tests.support.random_problems import COUNT, problem


@pytest.mark.quick(*(str(seed) for seed in range(5, COUNT, 6) if seed != 227))  # which takes seconds
@pytest.mark.filterwarnings("ignore:Infinite:UserWarning")  # some of them are of no use, and say so
@pytest.mark.parametrize("seed", range(COUNT))
def test_certificate(seed: int) -> None:
    """Weak duality holds at every iterate, and the gap reaches the tolerance."""
    model, arguments, name = problem(seed)
    model.fit(*arguments)
    assert model.dual_gap_ <= 1e-4, name
    primal, dual = model.solution_.history[:, 1], model.solution_.history[:, 2]
    rounding = 1e-10 * np.abs(primal) + 1e-300
    assert np.all(dual <= primal + rounding), name
    assert np.all(np.diff(dual) >= -1e-9 * np.abs(dual[1:]) - 1e-300), "the best lower bound never falls"
    assert model.objective_ == primal.min()


@pytest.mark.quick("0")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_theta_property(seed: int) -> None:
    """The fraction of training points outside the level set θ is θ, at the nodes and between them."""
    X = make_mixture(1000, random_state=seed)
    model = InfiniteOneClassSVM(alpha=1e-3, gamma="median").fit(X)
    levels = np.linspace(0.05, 0.95, 181)
    assert np.min(np.abs(levels[:, None] - model.nodes_)) < np.max(
        np.min(np.abs(levels[:, None] - model.nodes_), axis=1)
    )
    margin = model.decision_function(X, nu=levels)
    # h = t to the accuracy of the solver: such points may count on either side
    boundary = model.tol * np.mean(np.abs(margin))
    surely, at_most = np.mean(margin < -boundary, axis=0), np.mean(margin <= boundary, axis=0)
    hundredth = 0.01 + 1e-12  # a count of points less a level is a multiple of a thousandth only up to rounding
    assert np.max(surely - levels) <= hundredth
    assert np.max(levels - at_most) <= hundredth


def _recipe() -> Recipe:
    return Recipe(QuantileTask(order=Order(1.0)), n_nodes=40, alpha=1e-4, alpha_bias=1e-4)


BLOCKS = (40, 400, 4_000, 10**7)


@pytest.mark.slow
def test_result_does_not_depend_on_the_block_size() -> None:
    X, y = make_sine(300, random_state=0)
    problem = pose(_recipe(), Data.canonical(X, y, np.ones(300)), np.random.default_rng(0))
    objectives = [replace(problem.objective, block_entries=entries) for entries in BLOCKS]
    assert len({len(list(objective.blocks())) for objective in objectives}) == len(BLOCKS)
    solutions = [solve(objective, tol=1e-11) for objective in objectives]
    fields = [problem.field(solution.z)(X, [0.1, 0.5, 0.9]) for solution in solutions]
    for solution, field in zip(solutions, fields, strict=True):
        assert solution.converged
        assert solution.objective == pytest.approx(solutions[0].objective, rel=1e-10)
        np.testing.assert_allclose(field, fields[0], rtol=1e-5, atol=1e-6)
    # and one evaluation, with no path of a solver between the block size and the numbers
    evaluations = [objective.evaluate(solutions[0].z, Smoothing((0.1, 0.1))) for objective in objectives]
    for evaluation in evaluations:
        assert evaluation.primal == pytest.approx(evaluations[0].primal, rel=1e-12)
        np.testing.assert_allclose(evaluation.gradient, evaluations[0].gradient, rtol=1e-10, atol=1e-14)


SCRIPT = """
import os, sys
if sys.argv[1] == "1" and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
X, y = make_sine(6000, random_state=0)
model = InfiniteQuantileRegressor(n_nodes=60, random_state=0).fit(X, y)
X = X[::20]
print(*map(repr, [float(model.objective_), *model.predict(X, [0.1, 0.5, 0.9]).ravel().tolist()]))
"""


@pytest.mark.slow
def test_result_does_not_depend_on_the_number_of_threads() -> None:
    X, y = make_sine(6000, random_state=0)
    recipe = replace(_recipe(), n_nodes=60)
    posed = pose(recipe, Data.canonical(X, y, np.ones(6000)), np.random.default_rng(0))
    assert len(posed.objective._groups) > 1, "threads would have nothing to share"
    answers = []
    for threads in ("1", "2"):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads)}
        command = [sys.executable, "-c", SCRIPT, threads]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answers.append(np.array([float(word) for word in done.stdout.split()]))
    assert answers[0].size == 901
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-10)


def test_noncrossing_weight_orders_the_quantiles() -> None:
    """The penalised quantity never grows with its weight, and the unpenalised fit really crosses."""
    X, y = make_sine(40, random_state=13)
    levels = np.linspace(0.01, 0.99, 99)
    falls = []
    for weight in (0.0, 0.1, 1.0, 10.0):
        model = InfiniteQuantileRegressor(
            gamma=15.0, task_gamma=15.0, alpha=1e-4, noncrossing=weight, n_nodes=20, tol=1e-6
        ).fit(X, y)
        slopes = model.field_(X, model.nodes_, order=1)
        falls.append(float(np.mean(np.maximum(-slopes, 0.0) @ model.weights_)))
        crossing = np.mean(np.diff(model.predict(X, levels), axis=1) < -1e-3)
        if weight == 0.0:
            assert crossing > 0.02
    assert falls[0] > 0.03
    assert all(after <= before + 1e-6 for before, after in pairwise(falls))
    assert crossing < 0.005
