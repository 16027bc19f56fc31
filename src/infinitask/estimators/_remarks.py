"""Warnings where a certified optimum is still a poor model.

A duality gap says that the problem is solved, not that it was the right problem. These are the cases that a look at the
solution shows, each with what to do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from infinitask._array import namespace, to_host
from infinitask.learn import Fit
from infinitask.losses import CostSensitiveHinge, LevelSet

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


def remarks(fit: Fit) -> Iterator[str]:
    """What a user should know of a fit that converged, as sentences."""
    if isinstance(fit.recipe.loss, LevelSet):
        yield from _rows_on_the_boundary(fit)
    elif isinstance(fit.recipe.loss, CostSensitiveHinge):
        yield from _one_decision_for_all(fit)
    else:
        yield from _heavy_ridge_on_the_bias(fit)


def _some_rows(fit: Fit) -> slice:
    return slice(None, None, -(-int(fit.problem.objective.rows.shape[0]) // MAX_ROWS_LOOKED_AT))


def _heavy_ridge_on_the_bias(fit: Fit) -> Iterator[str]:
    recipe, objective = fit.recipe, fit.problem.objective
    term, omega = objective.integrals[0], objective.sample_weight
    if term.targets is None or recipe.bias_kernel is None or recipe.alpha_bias == 0.0:
        return
    size = float(np.max(to_host(omega @ term.targets**2))) ** 0.5
    if size <= STANDARDISED:
        return
    rows = _some_rows(fit)
    y, omega = term.targets[rows, :], omega[rows]
    total = float(namespace(omega).sum(omega))
    constant = (omega @ y) / total + 0.0 * (omega[:, None] * term.weights)
    errors = float(omega @ (term.loss.value(term.theta, y, constant) @ term.weights)) / total
    if 0.5 * recipe.alpha_bias * size**2 > HEAVY_RIDGE * errors:
        yield (
            f"y has a root mean square of {size:.3g}, and the ridge holds the bias b(θ) towards 0 with "
            f"alpha_bias={recipe.alpha_bias:g}: too heavily for targets of that size. Standardise y, for instance "
            "with TransformedTargetRegressor, or set alpha_bias=0, which leaves the bias free, and an alpha "
            "that is as many times smaller."
        )


def _one_decision_for_all(fit: Fit) -> Iterator[str]:
    nodes = fit.quadrature.nodes
    decisions = fit.problem.values(fit.solution.z, _some_rows(fit)) > 0.0
    if np.min(nodes) < 0.0 < np.max(nodes) and (np.all(decisions) or not np.any(decisions)):
        yield (
            "the decision is the same for all training rows and all θ of nodes_; the ridge outweighs the errors. "
            "Lower alpha, and set alpha_bias=0 if one class is rare."
        )


def _rows_on_the_boundary(fit: Fit) -> Iterator[str]:
    z = fit.solution.z
    values = fit.problem.values(z, _some_rows(fit))
    mean_threshold = abs(float(fit.problem.objective.linear @ z))
    share = np.mean(np.abs(values) <= ON_BOUNDARY * mean_threshold, axis=0)
    if values.shape[0] >= FEWEST_ROWS_FOR_BOUNDARY and np.max(share) > 0.5:
        yield (
            f"at ν = {fit.quadrature.nodes[np.argmax(share), 0]:.2g}, {np.max(share):.0%} of the training rows "
            "lie on the boundary of the set itself, to the accuracy of the fit; their side, and so the fraction "
            "outside, is an accident, as in any one-class SVM whose kernel is too narrow for the data, or cannot "
            "enclose them. Try a smaller gamma, or another kernel."
        )
