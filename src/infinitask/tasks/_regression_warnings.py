"""What a task reads of a fit, and the warnings that regressions share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask.field import Field
from infinitask.measures import Quadrature
from infinitask.problem import Problem
from infinitask.solvers import Solution

STANDARDISED = 5.0
"""Targets whose root mean square is at most this are standardised."""

HEAVY_RIDGE = 0.1
"""A ridge on the bias is heavy if it weighs more than this fraction of the errors of a constant."""

CHECKED_ROWS = 2_000
"""At most about this many training rows are checked for a warning."""


class Fitted(Protocol):
    """What a task reads of a fit."""

    @property
    def field(self) -> Field: ...

    @property
    def problem(self) -> Problem: ...

    @property
    def solution(self) -> Solution: ...

    @property
    def quadrature(self) -> Quadrature: ...

    @property
    def recipe(self) -> Any: ...

    @property
    def given(self) -> Any: ...

    @property
    def calibration(self) -> Any: ...

    @property
    def n_rows(self) -> float: ...

    @property
    def n_sampled(self) -> float | None: ...


def some_rows(fit: Fitted) -> slice:
    """The training rows that are checked for a warning."""
    return slice(None, None, -(-int(fit.problem.objective.rows.shape[0]) // CHECKED_ROWS))


def heavy_ridge_on_the_bias(fit: Fitted) -> Iterator[str]:
    """A sentence if the ridge on the bias is too heavy for targets of this size."""
    recipe, objective = fit.recipe, fit.problem.objective
    term, omega, units = objective.integrals[0], objective.sample_weight, recipe.units
    if term.targets is None or recipe.bias_kernel is None or recipe.alpha_bias == 0.0 or units.centre != 0.0:
        return
    values, share = term.loss.values_of(term.targets), term.loss.shares_of(term.targets)
    # a missing target is not 0
    seen = 0.0 * values + (1.0 if share is None else share > 0.0)
    size = float(np.max(_mean_of_seen(values**2, seen, omega))) ** 0.5
    if units.spread * size <= STANDARDISED:
        return
    rows = some_rows(fit)
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


def targets_without_units(fit: Fitted) -> Iterator[str]:
    """A sentence if λ was chosen for targets of size one, and these are not."""
    loss, term = fit.recipe.task.loss, fit.problem.objective.integrals[0]
    if not isinstance(fit.given.alpha, str) or loss.degree is not None or term.targets is None:
        return
    spread = fit.problem.objective.scale
    if not 1.0 / STANDARDISED <= spread <= STANDARDISED:
        yield (
            f"y has a spread of {spread:.3g}, and {type(loss).__name__} does not say how it changes with the units of "
            "y; alpha='auto' takes targets of size one for granted. Divide y by its spread, give the loss a degree, or "
            "give alpha a number."
        )
