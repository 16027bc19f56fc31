"""The one door to a fit: what goes in decides all that comes out, and nothing after it changes that."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
)
from infinitask.datasets import make_sine
from infinitask.fitting import Data, Recipe, learn
from infinitask.fitting._warm_start import Memory, alike
from infinitask.kernels import RBF
from infinitask.measures import Uniform
from infinitask.tasks import QuantileTask

X, Y = make_sine(60, random_state=0)
NEW = make_sine(20, random_state=1)[0]
DATA = Data.canonical(X, Y, np.ones(60))
LEVELS = np.array([0.1, 0.5, 0.9])


def recipe(**choices: Any) -> Recipe:
    return Recipe(QuantileTask(), n_nodes=10, **choices)


@pytest.mark.parametrize("options", [{}, {"noncrossing": "hard"}, {"alpha_bias": 0.0}, {"smoothing": 0.2}], ids=repr)
def test_an_estimator_fits_what_its_recipe_says(options: dict[str, Any]) -> None:
    model = InfiniteQuantileRegressor(n_nodes=10, **options)
    fit = learn(model.recipe(), DATA)
    model.fit(X, Y)
    assert fit.solution.objective == model.objective_
    np.testing.assert_array_equal(fit.field(NEW, LEVELS), model.field_(NEW, LEVELS))
    np.testing.assert_array_equal(fit.quadrature.nodes[:, 0], model.nodes_)
    assert fit.smallest_slope == getattr(model, "smallest_slope_", None)


def test_the_recipe_of_a_fit_is_the_one_it_was_given_with_numbers() -> None:
    given = recipe(alpha=1e-2)
    found = learn(given, DATA).recipe
    decided = {f.name for f in fields(Recipe) if not alike(getattr(found, f.name), getattr(given, f.name))}
    assert decided == {"kernel", "alpha_bias", "units"}
    assert found.alpha_bias == 1e-2
    # and what is settled stays as it is
    assert learn(found, DATA).recipe == found


@pytest.mark.parametrize(
    "model",
    [
        InfiniteQuantileRegressor(kernel=RBF(gamma=5.0), n_nodes=8),
        InfiniteExpectileRegressor(kernel=RBF(gamma=5.0), n_nodes=8),
        InfiniteSVR(kernel=RBF(gamma=5.0), n_nodes=8),
        InfiniteKernelRidge(kernel=RBF(gamma=5.0), n_nodes=8),
        InfiniteFunctionRegressor(kernel=RBF(gamma=5.0), n_nodes=8),
        InfiniteOneClassSVM(kernel=RBF(gamma=5.0), n_nodes=8),
        InfiniteCostSensitiveClassifier(kernel=RBF(gamma=5.0), n_nodes=8, measure=Uniform(-0.9, 0.9)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_nothing_after_a_fit_reaches_its_recipe(model: Any) -> None:
    labels = np.where(np.median(Y) < Y, 1, 0) if isinstance(model, InfiniteCostSensitiveClassifier) else Y
    model.fit(X, labels)
    before, answer = model.recipe_, model.field_(NEW, model.nodes_[:2])
    model.set_params(kernel__gamma=0.1, tol=0.5, n_nodes=3)
    if "alpha" in model.get_params():
        model.set_params(alpha=10.0)
    assert model.recipe_ is before
    assert model.recipe_.kernel.gamma == 5.0
    assert (model.recipe_.tol, model.recipe_.n_nodes) == (1e-4, 8)
    np.testing.assert_array_equal(model.field_(NEW, model.nodes_[:2]), answer)


def test_predictions_follow_the_fit_and_not_a_parameter_changed_after_it() -> None:
    model = InfiniteQuantileRegressor(n_nodes=8, noncrossing="rearrange").fit(X, Y)
    before = model.predict(NEW, LEVELS)
    np.testing.assert_array_equal(model.set_params(noncrossing=0.0).predict(NEW, LEVELS), before)
    sets = InfiniteOneClassSVM(n_nodes=8, nested=True).fit(X)
    inside = sets.decision_function(NEW, nu=[0.2, 0.6])
    np.testing.assert_array_equal(sets.set_params(nested=False).decision_function(NEW, nu=[0.2, 0.6]), inside)


def test_an_offset_is_taken_off_and_added() -> None:
    plain = learn(recipe(), replace(DATA, y=DATA.y - 3.0))
    units = replace(plain.recipe.units, centre=3.0)
    moved = learn(recipe(units=units), DATA)
    assert moved.recipe.offset == 3.0
    assert moved.solution.objective == plain.solution.objective
    np.testing.assert_allclose(moved.field(NEW, LEVELS), plain.field(NEW, LEVELS) + 3.0, rtol=1e-14)


def test_a_memory_changes_the_way_and_not_the_answer() -> None:
    memory = Memory()
    learn(recipe(), DATA, memory)
    warm, cold = learn(recipe(), DATA, memory), learn(recipe(), DATA)
    assert warm.solution.n_evaluations < cold.solution.n_evaluations
    assert warm.solution.objective == pytest.approx(cold.solution.objective, rel=2e-4)
    np.testing.assert_allclose(warm.field(NEW, LEVELS), cold.field(NEW, LEVELS), atol=2e-2)


def test_nothing_is_remembered_without_a_memory() -> None:
    first, second = learn(recipe(), DATA), learn(recipe(), DATA)
    assert first.solution.n_evaluations == second.solution.n_evaluations
    np.testing.assert_array_equal(first.solution.z, second.solution.z)


@pytest.mark.parametrize("change", [{"kernel": "laplacian"}, {"n_nodes": 12}, {"alpha_bias": 0.0}], ids=repr)
def test_a_memory_of_another_problem_does_no_harm(change: dict[str, Any]) -> None:
    memory = Memory()
    learn(recipe(tol=1e-5), DATA, memory)
    other = replace(recipe(tol=1e-5), **change)
    found, alone = learn(other, DATA, memory), learn(other, DATA)
    assert found.solution.converged
    assert found.solution.objective == pytest.approx(alone.solution.objective, rel=2e-5)
