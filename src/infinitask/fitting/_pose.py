"""From a recipe and data to a posed problem.

This module combines φ, ψ, loss and penalty. :func:`pose` creates the nodes, task features, input features, the bias and
the terms of the objective, one function each; nothing here depends on scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.base import clone

from infinitask._base.arrays import ON_DEVICE, Array, HostArray, as_like, namespace, place
from infinitask.features import (
    Auto,
    Features,
    TaskFeatures,
    feature_recipe,
    node_values,
    task_features,
)
from infinitask.field import Problem
from infinitask.fitting._data import Data
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import TaskKernel, input_kernel, task_kernel
from infinitask.losses import BoxLoss, Loss
from infinitask.losses._checks import Finding, check_sum
from infinitask.losses._integrands import check_integrand
from infinitask.losses._observed import Observed
from infinitask.measures import Quadrature
from infinitask.measures._rules import quadrature_rule
from infinitask.objective import BLOCK_ENTRIES, Integral, Objective
from infinitask.penalties import Ridge, quadratic_part

TASK_TOLERANCE = 1e-14
"""There are few tasks, so ψ is always as exact as rounding allows."""

EXACT = 1e-9
"""Features with a larger tolerance, relative to the largest k(x, x), do not count as exact."""

EXACT_ROWS, LEFT_OUT = 500, 100.0
"""Features are exact with at most the first number of rows. With more, features="auto" leaves out at most the second
number times tol · nλ of each k(x, x). With 100, held-out losses of twelve problems increase by .03% in the mean and .2%
at most, and with 300 by .2% and 1%; the rank falls from 2000 to 100 or 700."""

COARSEST = 5e-3
"""The maximum fraction of k(x, x) that features leave out, whatever λ is."""

ALL_BUT_FREE, ALL_BUT_FREE_AT_NODES = 1e-8, 1e-10
"""λ_b of a free bias, for targets of size one: for a function of θ, and for a number for each task.

The first costs about 1e-4 of the objective, and new targets are below the outer quantiles at the nominal rate (with
1e-4, 6% of them were below the quantile of 1%). Without any ridge the same fits take 3 to 15 times as long (n = 300 and
1000), and a penalty on the derivative would be undone by functions that vanish at the nodes. The second costs 1e-8."""


def is_as_task(bias_kernel: Any) -> bool:
    """Whether there is no bias, or a bias with the kernel of the tasks."""
    return bias_kernel is None or (isinstance(bias_kernel, str) and bias_kernel == "task")


SPEC_READERS: Mapping[str, Callable[[Any], Any]] = {
    "kernel": input_kernel,
    "task_kernel": task_kernel,
    "bias_kernel": lambda spec: None if is_as_task(spec) else task_kernel(spec, name="bias_kernel"),
    "quadrature": quadrature_rule,
    "features": feature_recipe,
}
"""The functions that parse specs before a problem is posed."""


def check_specs(given: Mapping[str, Any]) -> None:
    """Raise an error for the first wrong spec, before the data are read."""
    for name, read in SPEC_READERS.items():
        if name in given:
            read(given[name])


def tolerance(recipe: Recipe, data: Data) -> float:
    r"""Return the tolerance of φ, in units of k(x, x) − ‖φ(x)‖².

    With features, the optimum increases by at most tr(Tᵀ(K − ΦΦᵀ)T)/2λ, where T (n, s) has the dual variables ω_i u_i.
    The rows of T add up to at most about one: a hundredth of the tolerance is negligible, and such features count as
    exact. The dual variables of noisy targets also have random signs. The increase is then about ε E u²/2nλ for the
    tolerance ε, and features="auto" takes ε in proportion to nλ.
    """
    y, weight = data.y, data.weight
    if y is None:
        size = 1.0
    elif data.share is None:
        size = float(np.mean(weight @ np.abs(y - weight @ y)))
    else:
        pairs = data.pair_weight / np.sum(data.pair_weight)
        size = float(np.sum(pairs * np.abs(y - np.sum(pairs * y))))
    exact = 1e-2 * recipe.tol * float(recipe.alpha) * min(1.0, size or 1.0)
    if y is None or weight.size <= EXACT_ROWS or not isinstance(feature_recipe(recipe.features), Auto):
        return min(EXACT, exact)
    return max(exact, LEFT_OUT * recipe.tol * float(recipe.alpha) / float(np.sum(weight**2)))


def pose(
    recipe: Recipe,
    data: Data,
    rng: np.random.Generator,
    *,
    phi: Features | None = None,
    tol: float | None = None,
) -> Problem:
    """Choose nodes and features, and construct the objective.

    Parameters
    ----------
    recipe : Recipe
        A resolved recipe: λ and λ_b are numbers.
    data : Data
    rng : numpy.random.Generator
    phi : Features or None
        Features of these rows that are exact enough; None: they are built.
    tol : float or None
        The tolerance of the features; None: :func:`tolerance`.

    Returns
    -------
    Problem
    """
    quadrature = quadrature_rule(recipe.quadrature)(recipe.task.measure, recipe.n_nodes, rng)
    kernel, task_gamma = _task_kernel(recipe, quadrature.nodes)
    plain = task_features(kernel, quadrature.nodes, recipe.task.derivatives, TASK_TOLERANCE)
    psi = _in_penalty_coordinates(recipe, plain, kernel, quadrature)
    X = place(data.X, recipe.device)
    if phi is None:
        phi = _input_features(recipe, X, tolerance(recipe, data) if tol is None else tol, rng)
    rows, constant, psi_bias = _bias(recipe, phi.values, psi, plain, kernel, task_gamma, quadrature.nodes)
    integrals, finding = _integrals(recipe, rows, psi, psi_bias, quadrature, data)
    phi = phi if integrals[0].one_class else replace(phi, gram=None)  # no other solver uses it
    objective = Objective(
        rows,
        as_like(np.pad(data.weight, (0, rows.shape[0] - data.weight.size)), X),
        integrals,
        recipe.alpha,
        recipe.alpha_bias,
        _linear_in_bias(recipe, psi_bias, quadrature),
        BLOCK_ENTRIES if recipe.device is None else ON_DEVICE,
        gram=phi.gram,
    )
    named = int(rows.shape[0]) - data.weight.size
    return Problem(objective, quadrature, phi, psi, psi_bias, kernel, constant, finding, named)


def _task_kernel(recipe: Recipe, nodes: HostArray) -> tuple[TaskKernel, Any]:
    """Return k_Θ with a number, or one per coordinate, as its bandwidth, and the bandwidth given or derived."""
    gamma = recipe.task_gamma
    if gamma is None:  # each of several coordinates has its own width, which the kernel computes
        gamma = _node_gamma(nodes, recipe.task.defaults.node_gaps) if nodes.shape[1] == 1 else "median"
    return task_kernel(recipe.task_kernel, gamma).resolve(nodes), gamma


def _node_gamma(nodes: HostArray, gaps: float | None) -> float:
    """Return γ = 1/(2σ²) with σ from the distances between nodes; 1 for a single node."""
    distances = pdist(nodes)
    sigma = float(np.median(distances)) if distances.size else 0.0
    if gaps is not None and distances.size:
        sigma = min(sigma, gaps * float(np.max(distances)) / (len(nodes) - 1))
    return 0.5 / sigma**2 if sigma > 0.0 else 1.0


def _in_penalty_coordinates(
    recipe: Recipe, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature
) -> TaskFeatures:
    """Return ψ in coordinates in which the penalty is (λ/2)‖C‖²."""
    task, penalty = recipe.task, quadratic_part(recipe.task.penalty)
    if task.order.hard and not isinstance(task.penalty, Ridge) and not penalty.sees_nodes_only:
        raise ValueError(
            f"noncrossing='hard' was given with the penalty {task.penalty!r}; the proof of order needs the norm "
            "of the RKHS. Use the plain ridge, or a weight."
        )
    if isinstance(penalty, Ridge):  # isometric features have these coordinates already
        return psi
    if penalty.sees_nodes_only and len(task.derivatives) > 1:
        given = "An IntegratedPenalty of the slope"
        if task.order.hard or task.order.weight > 0.0:
            given = "noncrossing='hard'" if task.order.hard else f"noncrossing={task.order.weight:g}"
        raise ValueError(
            f"{given} was given with the integrated ridge; that ridge sees h at the "
            "nodes only, and functions that vanish there could undo the penalty at no cost. Use the plain ridge, or "
            "the sum of both."
        )
    return penalty.basis(psi, kernel, quadrature)


def _input_features(recipe: Recipe, X: Array, exact: float, rng: np.random.Generator) -> Features:
    """Return φ of the rows and of those named for the penalty; a bandwidth rule uses the data only."""
    xp = namespace(X)
    k_input = input_kernel(recipe.kernel, recipe.gamma)
    if not k_input.precomputed:
        k_input = k_input.resolve(X)
    for named in recipe.task.named:
        _check_named(recipe.task.name_of(named), named, int(X.shape[1]), k_input.precomputed)
    X = with_named(recipe, X)
    diagonal = xp.linalg.diagonal(X) if k_input.precomputed else k_input.diag(X)
    largest, typical = float(xp.max(diagonal)), float(xp.mean(diagonal))
    features = feature_recipe(recipe.features, recipe.rank)
    if isinstance(features, Auto) and features.left_out is None and exact > EXACT * typical > 0.0:
        features = clone(features).set_params(left_out=min(COARSEST, exact / typical))
    return features.build(k_input, X, min(EXACT, max(1e-15, exact / max(1.0, largest))), rng)


def with_named(recipe: Recipe, X: Array) -> Array:
    """Return all rows of a problem: those of the data and, below them, those named for penalties on curves."""
    named = recipe.task.named
    return namespace(X).concat([X, *(as_like(rows, X) for rows in named)], axis=0) if named else X


def _check_named(name: str, named: HostArray, d: int, precomputed: bool) -> None:
    if precomputed:
        raise ValueError(
            f"{name} was given with kernel='precomputed'; k_X at these inputs is not known then. Use a "
            f"kernel that is a function of inputs, or leave out {name}."
        )
    if named.ndim != 2 or named.shape[1] != d:
        raise ValueError(f"{name} of shape {named.shape} was given for X with {d} features; it must be (k, {d}).")


def _bias(
    recipe: Recipe,
    rows: Array,
    psi: TaskFeatures,
    plain: TaskFeatures,
    kernel: TaskKernel,
    task_gamma: Any,
    nodes: HostArray,
) -> tuple[Array, float | None, TaskFeatures | None]:
    """Return the bias b(θ) as one more feature of x (rows and its value), or as its own ψ_b."""
    if recipe.bias_kernel is None:
        return rows, None, None
    as_task = isinstance(recipe.bias_kernel, str) and recipe.bias_kernel == "task"
    try:
        k_bias = kernel if as_task else task_kernel(recipe.bias_kernel, task_gamma).resolve(nodes)
    except ValueError as error:
        raise ValueError(f"bias_kernel={recipe.bias_kernel!r} was given. {error}") from None
    if recipe.alpha_bias == 0.0:
        return rows, None, _free_bias(k_bias, nodes)
    if as_task and psi is plain and recipe.task.bias_slope == 0.0:
        # the same ψ for h and b: the bias is the coefficient of an additional constant feature of x
        constant = float(np.sqrt(recipe.alpha / recipe.alpha_bias))
        ones = as_like(np.full((rows.shape[0], 1), constant), rows)
        return namespace(rows).concat([ones, rows], axis=1), constant, None
    return rows, None, plain if as_task else task_features(k_bias, nodes, recipe.task.derivatives, TASK_TOLERANCE)


def _free_bias(kernel: TaskKernel, nodes: HostArray) -> TaskFeatures:
    """Return ψ_b of a bias without a ridge, if the objective depends only on its values at the nodes.

    In the RKHS of a strictly positive definite kernel the values at the nodes are arbitrary, and without a ridge they
    cost nothing. The bias is therefore a number at every node and linear between them. This is not the interpolation of
    the kernel, but it never overshoots. A kernel of few functions, such as a constant, is restricted to these.
    """
    if kernel.strictly_positive and nodes.shape[1] == 1:
        return node_values(nodes)
    return task_features(kernel, nodes, (0,), TASK_TOLERANCE)


def _integrals(
    recipe: Recipe,
    rows: Array,
    psi: TaskFeatures,
    psi_bias: TaskFeatures | None,
    quadrature: Quadrature,
    data: Data,
) -> tuple[tuple[Integral, ...], Finding | None]:
    """Return the empirical risk and the penalties on curves, and any problem of their losses.

    Rows named for penalties are the last ones. They have weight 0 in the risk (their targets are ignored), and such a
    penalty is the mean over its rows alone.
    """
    nodes = quadrature.nodes
    named = sum(map(len, recipe.task.named))
    n = int(rows.shape[0]) - named
    theta = as_like(nodes[:, 0] if nodes.shape[1] == 1 else nodes, rows)
    weights = as_like(quadrature.weights, rows)
    y = data.y
    targets = None if y is None else as_like(y if y.ndim == 2 else y[:, None], rows)
    recipe.task.loss.check_targets(targets)
    findings = [_held(recipe, recipe.task.loss.check(theta, targets)), *_of_penalties(recipe, theta, targets)]
    loss = recipe.task.loss
    if data.share is not None and targets is not None:
        loss = Observed.of(recipe.task.loss, data.share)
        targets = Observed.targets(targets, as_like(data.share, rows))
    if named and targets is not None:
        first = namespace(rows).broadcast_to(targets[:1, ...], (named, *targets.shape[1:]))
        targets = namespace(rows).concat([targets, first], axis=0)

    def integral(loss: Loss, order: int, targets: Array | None, omega: Array | None = None) -> Integral:
        bias_cols = None if psi_bias is None else as_like(psi_bias.values[order], rows)
        return Integral(loss, theta, weights, as_like(psi.values[order], rows), bias_cols, targets, omega)

    found, start = [integral(loss, 0, targets)], n
    for penalty, order, inputs in recipe.task.terms:
        omega = None
        if inputs is not None:
            k, stop = len(inputs), start + len(inputs)
            omega = as_like(np.repeat([0.0, 1.0 / k, 0.0], [start, k, n + named - stop]), rows)
            start = stop
        found.append(integral(penalty, order, None, omega))
    return tuple(found), Finding.of(findings)


def _of_penalties(recipe: Recipe, theta: Array, targets: Array | None) -> Iterator[Finding]:
    """Yield the problems of penalties on curves; raise an error if nothing limits the bias that they ask for."""
    terms, wrong = recipe.task.terms, ""
    for penalty, order, _ in terms:
        found = check_integrand(penalty, theta, _expected(targets, theta, order))
        if found is not None and not found.endless:
            wrong = wrong if found.certified else found.sentence
            yield found
    # a row of the table is bounded below, any other convex function may fall without end
    unsafe = [order for penalty, order, _ in terms if not isinstance(penalty, BoxLoss)] if _free(recipe) else []
    held = "or hold the bias by a ridge, for instance alpha_bias=None."
    if 1 in unsafe and check_sum([p for p, order, _ in terms if order == 1], theta, None) is not None:
        raise ValueError(
            wrong
            or "An IntegratedPenalty of the slope falls without end, so there is no minimiser. Write a penalty with a "
            f"smallest value, {held}"
        )
    if 0 in unsafe:
        told = check_sum([recipe.task.loss, *(p for p, order, _ in terms if order == 0)], theta, targets)
        if told is not None:
            raise ValueError(
                wrong
                or f"The loss with its IntegratedPenalty falls without end: {told}, so there is no minimiser. Lower "
                f"the weight of the penalty, {held}"
            )


def _expected(targets: Array | None, theta: Array, order: int) -> Array | None:
    """Return the values of h, or of ∂h/∂θ, around which a penalty is checked, (n, 1) or (n, m); None: around 0.

    They are the targets, or their distances from the mean over the length of Θ.
    """
    if targets is None or order == 0:
        return targets
    xp = namespace(targets)
    length = float(xp.max(theta) - xp.min(theta)) or 1.0
    return (targets - xp.mean(targets)) / length


def _free(recipe: Recipe) -> bool:
    """Whether no ridge limits the bias."""
    return recipe.bias_kernel is not None and recipe.alpha_bias is not None and recipe.alpha_bias <= ALL_BUT_FREE


def _held(recipe: Recipe, finding: Finding | None) -> Finding | None:
    """Return any problem of the loss; raise an error if it is unbounded below and no ridge limits the bias."""
    if finding is None or not finding.endless:
        return finding
    if _free(recipe):
        raise ValueError(finding.sentence)
    return None


def _linear_in_bias(recipe: Recipe, psi_bias: TaskFeatures | None, quadrature: Quadrature) -> HostArray | None:
    """Return v of the term ⟨v, c⟩; None if there is none."""
    if recipe.task.bias_slope == 0.0 or psi_bias is None:
        return None
    return np.asarray(recipe.task.bias_slope * (psi_bias.values[0].T @ quadrature.weights))
