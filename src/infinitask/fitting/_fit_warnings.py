"""Warnings where a certified optimum is still a poor model.

A duality gap says that the problem is solved, not that it was the right problem. Each remark says what is wrong and
what to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask.fitting._recipe import Recipe
from infinitask.fitting._units import Units
from infinitask.losses import CostSensitiveHinge, LevelSet, MultiClassHinge
from infinitask.measures import Quadrature
from infinitask.problem import Problem
from infinitask.solvers import Reason, Solution

STANDARDISED = 5.0
"""Targets whose root mean square is at most this count as standardised."""

HEAVY_RIDGE = 0.1
"""A ridge on the bias is heavy if it weighs more than this part of the errors of a constant."""

MAX_ROWS_LOOKED_AT = 2_000
"""At most about this many training rows are looked at."""

ON_BOUNDARY = 1e-4
"""A row is on the boundary of a level set where |h − t| is below this part of t."""

FEWEST_ROWS_FOR_BOUNDARY = 100
"""With fewer rows, many of them on the boundary are no surprise."""

WIDE_BOUNDARY, WIDE_TIE = 0.5, 0.25
"""The share of rows on a boundary that is too much; the second where rows are equal to others, so that they fall to one
side together: the fraction outside may be off by that share."""

MAX_UNCERTIFIED_EVALUATIONS = 100
"""The most evaluations of a fit whose loss was found wrong."""

TIES = 2.0
"""Rows are equal to others where this number of them, or more, are the same in the mean."""


class _Fitted(Protocol):
    """What is looked at of a fit."""

    @property
    def recipe(self) -> Recipe: ...

    @property
    def problem(self) -> Problem: ...

    @property
    def solution(self) -> Solution: ...

    @property
    def quadrature(self) -> Quadrature: ...

    @property
    def shift(self) -> Any: ...

    @property
    def n_rows(self) -> float: ...

    @property
    def n_sampled(self) -> float | None: ...


def within_reason(recipe: Recipe, problem: Problem) -> Recipe:
    """The recipe with few evaluations where nothing can be certified: more of them lead nowhere."""
    if problem.finding is None or problem.finding.certified:
        return recipe
    return replace(recipe, max_iter=min(recipe.max_iter, MAX_UNCERTIFIED_EVALUATIONS))


def quiet_where_wrong(problem: Problem) -> AbstractContextManager[Any]:
    """No warnings of numbers that overflow while a loss that was found wrong is fitted: one sentence says it all."""
    wrong = problem.finding is not None and not problem.finding.certified
    return np.errstate(all="ignore") if wrong else nullcontext()


def judged(problem: Problem, solution: Solution) -> Solution:
    """A solution as it is to be believed: with a loss that was found wrong, no gap is a certificate."""
    finding = problem.finding
    if finding is None:
        return solution
    if not finding.certified:
        history = solution.history.copy()
        history[:, 2] = -np.inf
        changes: dict[str, Any] = {"gap": np.inf, "dual": -np.inf, "history": history, "reason": Reason.NOT_CERTIFIED}
    elif not solution.converged:
        changes = {"reason": Reason.NOT_SMOOTH}
    else:
        return solution
    return replace(solution, note=finding.sentence, **changes)


def remarks_on(fit: _Fitted) -> Iterator[str]:
    """Sentences for the cases in which a certified optimum is still a poor model, each with what to do."""
    if fit.problem.finding is not None:
        yield fit.problem.finding.sentence
    if isinstance(fit.recipe.loss, LevelSet):
        yield from _wide_boundaries(fit)
    elif isinstance(fit.recipe.loss, CostSensitiveHinge):
        yield from _one_decision_for_all(fit)
    elif not isinstance(fit.recipe.loss, MultiClassHinge):  # whose targets are names of classes
        yield from _heavy_ridge_on_the_bias(fit)
        yield from _targets_without_units(fit)


def _some_rows(fit: _Fitted) -> slice:
    return slice(None, None, -(-int(fit.problem.objective.rows.shape[0]) // MAX_ROWS_LOOKED_AT))


def _heavy_ridge_on_the_bias(fit: _Fitted) -> Iterator[str]:
    recipe, objective = fit.recipe, fit.problem.objective
    term, omega, units = objective.integrals[0], objective.sample_weight, recipe.units or Units()
    if term.targets is None or recipe.bias_kernel is None or recipe.bias_is_free or units.centre != 0.0:
        return
    values, share = term.loss.values_of(term.targets), term.loss.shares_of(term.targets)
    # a target that is not there is no 0
    seen = 0.0 * values + (1.0 if share is None else share > 0.0)
    size = float(np.max(_mean_of_seen(values**2, seen, omega))) ** 0.5
    if units.spread * size <= STANDARDISED:
        return
    rows = _some_rows(fit)
    y, omega = term.targets[rows, ...], omega[rows]
    total = float(namespace(omega).sum(omega))
    mean = as_like(_mean_of_seen(values[rows, :], seen[rows, :], omega), omega)
    constant = mean + 0.0 * (omega[:, None] * term.weights)
    errors = float(omega @ (term.loss.value(term.theta, y, constant) @ term.weights)) / total
    if 0.5 * objective.alpha_bias * size**2 > HEAVY_RIDGE * errors:
        yield (
            f"y has a root mean square of {units.spread * size:.3g}, and the ridge holds the bias b(θ) towards 0 with "
            f"alpha_bias={recipe.alpha_bias:g}: too heavily for targets of that size. Set alpha_bias=0, which leaves "
            "the bias free, and alpha='auto' or an alpha that is as many times smaller."
        )


def _mean_of_seen(values: Array, seen: Array, omega: Array) -> HostArray:
    """The weighted mean of each column over the rows in which it was seen; 0 where it was in none."""
    mass = to_host(omega @ seen)
    return np.asarray(to_host(omega @ (values * seen)) / np.where(mass > 0.0, mass, 1.0))


def _targets_without_units(fit: _Fitted) -> Iterator[str]:
    term = fit.problem.objective.integrals[0]
    if not fit.recipe.chosen or fit.recipe.loss.degree is not None or term.targets is None:
        return
    spread = fit.problem.objective.scale
    if not 1.0 / STANDARDISED <= spread <= STANDARDISED:
        yield (
            f"y has a spread of {spread:.3g}, and {type(fit.recipe.loss).__name__} does not say how it changes with "
            "the units of y; alpha='auto' takes targets of size one for granted. Divide y by its spread, give the loss "
            "a degree, or give alpha a number."
        )


def _one_decision_for_all(fit: _Fitted) -> Iterator[str]:
    if fit.shift is not None:  # decisions that are set last do change
        return
    nodes = fit.quadrature.nodes
    decisions = fit.problem.values(fit.solution.z, _some_rows(fit)) > 0.0
    if np.min(nodes) < 0.0 < np.max(nodes) and (np.all(decisions) or not np.any(decisions)):
        yield (
            "the decision is the same for all training rows and all θ of nodes_; the ridge outweighs the errors. "
            "Take alpha='auto', lower alpha, or set calibrated=True."
        )


def rows_on_the_boundary(fit: _Fitted) -> HostArray:
    """The share of the training rows on the boundary of the set of each node, (m,)."""
    z, rows = fit.solution.z, _some_rows(fit)
    values, omega = fit.problem.values(z, rows), to_host(fit.problem.objective.sample_weight)[rows]
    mean_threshold = abs(float(fit.problem.objective.linear @ z))
    near = np.abs(values) <= ON_BOUNDARY * mean_threshold
    return np.asarray((omega @ near) / np.sum(omega))


def _wide_boundaries(fit: _Fitted) -> Iterator[str]:
    if fit.n_rows < FEWEST_ROWS_FOR_BOUNDARY:
        return
    share = rows_on_the_boundary(fit)
    worst = int(np.argmax(share))
    told = (
        f"at ν = {fit.quadrature.nodes[worst, 0]:.2g}, {share[worst]:.0%} of the training rows lie on the boundary of "
        "the set itself, to the accuracy of the fit"
    )
    distinct = int(fit.problem.objective.rows.shape[0])
    # the rows of a sample are compared with each other: equal ones were merged among them, not among all rows
    posed = fit.n_rows if fit.n_sampled is None else fit.n_sampled
    if posed >= TIES * distinct and share[worst] > WIDE_TIE:
        rows = f"the {posed:.0f} rows" + ("" if fit.n_sampled is None else " of the sample")
        yield (
            f"{told}: {rows} are only {distinct} different ones, and equal rows fall to one side together, so that the "
            "fraction outside can be far from ν. Add inputs in which these rows differ, or count how often each of "
            "them occurs instead."
        )
    elif share[worst] > WIDE_BOUNDARY:
        yield (
            f"{told}; rounding decides their side, and so the fraction outside, as in any one-class SVM whose kernel "
            "is too narrow for the data, or cannot enclose them. Try a smaller gamma, or another kernel."
        )
