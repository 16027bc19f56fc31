"""Fits whose loss was found to break a promise: no duality gap is a certificate then."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from infinitask.fitting._recipe import Recipe
from infinitask.problem import Problem
from infinitask.solvers import Reason, Solution
from infinitask.tasks.base import ROUGH_EVALUATIONS


def with_few_evaluations(recipe: Recipe, problem: Problem) -> Recipe:
    """The recipe with few evaluations if nothing can be certified."""
    assert problem.finding is not None
    if problem.finding.certified:
        return recipe
    return replace(recipe, max_iter=min(recipe.max_iter, ROUGH_EVALUATIONS))


def silenced(problem: Problem) -> AbstractContextManager[Any]:
    """No warnings about overflow while a faulty loss is fitted: one sentence says it all."""
    assert problem.finding is not None
    return nullcontext() if problem.finding.certified else np.errstate(all="ignore")


def without_false_certificate(problem: Problem, solution: Solution) -> Solution:
    """The solution with a gap that can be believed: infinite where the loss was found faulty."""
    finding = problem.finding
    assert finding is not None
    if not finding.certified:
        history = solution.history.copy()
        history[:, 2] = -np.inf
        changes: dict[str, Any] = {"gap": np.inf, "dual": -np.inf, "history": history, "reason": Reason.NOT_CERTIFIED}
    elif not solution.converged:
        changes = {"reason": Reason.NOT_SMOOTH}
    else:
        return solution
    return replace(solution, note=finding.sentence, **changes)
