"""A metric on the features, learnt from the gradients of quick fits; see :class:`~infinitask.kernels.LearntMetric`.

    D = the plain metric: each feature scaled by its spread;  M = D, or the scales of gamma="auto"
    repeat: fit h in the metric M;  M ← the average of ∇ₓh ∇ₓhᵀ over rows and tasks, with trace one, shrunk towards D

The fits are those of the recipe, on some of its rows, with few nodes and a loose gap: they only determine which
features are relevant. With 2 000 rows and 30 features three fits take two to four seconds on one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from infinitask._base.arrays import HostArray, place
from infinitask._base.validation import count, number
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import leave_one_out, resolved, ridges_for, some_features, some_rows, spreads
from infinitask.fitting._fit import fitted
from infinitask.fitting._gradients import gradient_outer_product
from infinitask.fitting._recipe import Recipe
from infinitask.fitting._warm_start import Memory
from infinitask.kernels import (
    RBF,
    InputKernel,
    LearntMetric,
    Matern,
    Metric,
    Product,
    Ranks,
    Scaled,
    Sum,
    Warped,
)
from infinitask.penalties import Ridge
from infinitask.tasks import Order
from infinitask.tasks.base import ROUGH_EVALUATIONS, ROUGH_GAP

MAX_ROWS = 2_000
"""Metrics are learnt from at most 2 000 rows, evenly spaced."""

QUICK_NODES = 8
"""The number of nodes of a quick fit."""

QUICK_FEATURES = 1_000
"""The maximum rank of a quick fit. With half of it, an interaction of two features among 30 was not detected."""

SMALLER_RIDGE = 0.1
"""λ of a quick fit, as a multiple of the λ with the smallest leave-one-out error. A metric without a relevant feature
removes its effect, and then the next metric lacks it too."""


def with_learnt_kernels(recipe: Recipe, data: Data, memory: Memory | None = None) -> Recipe:
    """Return the recipe with every :class:`~infinitask.kernels.LearntMetric` replaced by the learnt kernel.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    memory : Memory or None
        The results of earlier fits; a kernel for the same recipe and data is not learnt again.
    """
    kernel = recipe.kernel
    if not isinstance(kernel, InputKernel) or not kernel.needs_targets:
        return recipe
    learnt = None if memory is None else memory.learnt_kernel(recipe, data)
    if learnt is None:
        learnt = _learnt(kernel, recipe, data)
        if memory is not None:
            memory.learnt = recipe, data, learnt
    return replace(recipe, kernel=learnt)


def _learnt(kernel: InputKernel, recipe: Recipe, data: Data) -> InputKernel:
    if not kernel.needs_targets:
        return kernel
    if isinstance(kernel, LearntMetric):
        return learnt_metric(recipe, data, kernel)
    if isinstance(kernel, (Sum, Product)):
        return type(kernel)(_learnt(kernel.left, recipe, data), _learnt(kernel.right, recipe, data))
    if isinstance(kernel, Warped):
        warped = Warped(kernel.kernel, Ranks.of(data.X) if kernel.ranks is None else kernel.ranks)
        return Warped(_learnt(kernel.kernel, recipe, replace(data, X=warped.warp(data.X))), warped.ranks)
    raise TypeError(
        f"{type(kernel).__name__} was given a LearntMetric; it may stand by itself, or be a part of a sum, a product "
        "or Warped. Put it around the kernel instead: LearntMetric(kernel)."
    )


def learnt_metric(recipe: Recipe, data: Data, spec: LearntMetric) -> Metric | Scaled:
    """Return the kernel that a :class:`~infinitask.kernels.LearntMetric` learns from some data.

    Among all iterations, the kernel with the smallest leave-one-out error is selected: overfitted noise causes slopes
    along features that distinguish rows, and with a rough kernel each iteration may increase them.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the fits; its own kernel is ignored.
    data : Data
    spec : LearntMetric

    Returns
    -------
    Scaled if the metric is diagonal, else Metric; with a bandwidth that is a number

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 3))
    >>> recipe = InfiniteQuantileRegressor().recipe()
    >>> kernel = learnt_metric(recipe, Data.canonical(X, X[:, 1] ** 2), LearntMetric())
    >>> int(np.argmax(kernel.scales))
    1
    """
    return min(learnt_metrics(recipe, data, spec), key=lambda kernel: leave_one_out_error(kernel, data))


def learnt_metrics(recipe: Recipe, data: Data, spec: LearntMetric) -> Iterator[Metric | Scaled]:
    """Yield the kernel in the initial metric, then the kernel after each iteration.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    spec : LearntMetric
    """
    if data.y is None:
        raise ValueError(
            "A LearntMetric was given as kernel of a model without targets; which features matter is learnt from "
            "targets. For level sets use kernel='rbf', or Scaled and Metric with numbers of your own."
        )
    iterations = count("LearntMetric: iterations", spec.iterations)
    some = np.linspace(0, data.weight.size - 1, min(data.weight.size, MAX_ROWS)).astype(np.intp)
    weight = data.weight[some]
    X, unit = data.X[some], np.asarray(spreads(data.X))
    varies = np.flatnonzero(unit)
    if varies.size == 0:
        yield Scaled(spec.plain(), tuple(unit.tolist())).resolve(X)
        return
    share = None if data.share is None else data.share[some]
    inside = Data((X * unit)[:, varies], data.y[some], weight / np.sum(weight), data.copies[some], share)
    rho = _shrinkage(spec.shrinkage, float(np.sum(inside.copies)), varies.size)
    plain = np.full(varies.size, 1.0 / varies.size) if spec.diagonal else np.eye(varies.size) / varies.size
    quick = _quick(recipe, inside)
    M = _start(spec, quick, inside, plain)
    by_rule = isinstance(getattr(spec.plain(), "gamma", None), str)
    # a wide kernel requires a small λ: if λ is given, use the median rule
    free = isinstance(recipe.alpha, str) or recipe.task.defaults.any_alpha
    for iteration in range(iterations + 1):
        kernel = _in_metric(spec, M).resolve(inside.X)
        if iteration == iterations and not free:  # no fit follows that would need a λ
            yield _in_units_of_features(kernel, unit, varies)
            return
        resolved_recipe = resolved(replace(quick, kernel=kernel), inside, widths=by_rule)
        yield _in_units_of_features(resolved_recipe.kernel if free else kernel, unit, varies)
        if iteration == iterations:
            return
        rough = replace(resolved_recipe, alpha=SMALLER_RIDGE * resolved_recipe.alpha)
        fit = fitted(rough, inside, None, np.random.default_rng(0))
        rows = place(inside.X, recipe.device)
        G = gradient_outer_product(fit.field, fit.quadrature, rows, inside.weight, diagonal=spec.diagonal)
        size = float(np.sum(G) if spec.diagonal else np.trace(G))
        M = (1.0 - rho) * G / size + rho * plain if size > 0.0 else plain  # a constant is uninformative about features


def _start(spec: LearntMetric, quick: Recipe, data: Data, plain: HostArray) -> HostArray:
    """Return the first M: the scales of gamma="auto" if the kernel has them, else the plain metric.

    A fit in the plain metric may be constant, and its gradients are then uninformative: with 350 rows and 20
    features, an interaction of two features was missed in one of two tries.
    """
    if not isinstance(spec.plain(), (RBF, Matern)):
        return plain
    found = resolved(replace(quick, kernel="rbf", gamma="auto"), data).kernel
    squares = np.asarray(found.scales) ** 2
    squares = squares / np.sum(squares)
    return np.asarray(squares if spec.diagonal else np.diag(squares))


def _shrinkage(given: float | None, n: float, d: int) -> float:
    if given is None:
        return 1.0 / (1.0 + n / (0.5 * d))
    return number("LearntMetric: shrinkage", given, low=0.0, high=1.0, open_low=False)


def _quick(recipe: Recipe, data: Data) -> Recipe:
    """Return the recipe of the quick fits."""
    assert data.y is not None
    return replace(
        recipe.with_task(penalty=Ridge(), order=Order()),
        n_nodes=recipe.n_nodes if data.y.ndim == 2 else min(recipe.n_nodes, QUICK_NODES),  # or a target for each
        tol=5.0 * ROUGH_GAP,  # a smaller gap takes longer and moves held-out losses by .05%
        max_iter=ROUGH_EVALUATIONS,
        features="auto",
        rank=QUICK_FEATURES,
        task_gamma=None,
        alpha="auto",
        alpha_bias=0.0,
        units=None,
        solver="lbfgs",  # with kinked losses, Newton steps cost half of a fit with 71 features, and move M little
        certify=None,
        random_state=0,
        verbose=0,
    )


def _in_metric(spec: LearntMetric, M: HostArray) -> Metric | Scaled:
    """Return k₀ in the metric M."""
    if spec.diagonal:
        return Scaled(spec.plain(), tuple(np.sqrt(M).tolist()))
    e, V = np.linalg.eigh(M)
    kept = e > 1e-8 * e[-1]
    return Metric(spec.plain(), V[:, kept] * np.sqrt(e[kept]))


def _in_units_of_features(kernel: InputKernel, unit: HostArray, varies: HostArray) -> Metric | Scaled:
    """Convert a kernel of the varying features, in units of their spreads, to a kernel of all raw features."""
    if isinstance(kernel, Scaled):
        scales = np.zeros(unit.size)
        scales[varies] = unit[varies] * np.asarray(kernel.scales)
        return Scaled(kernel.kernel, tuple(scales.tolist()))
    assert isinstance(kernel, Metric)
    root = np.zeros((unit.size, np.shape(kernel.root)[1]))
    root[varies] = unit[varies, None] * kernel.root
    return Metric(kernel.kernel, root)


def leave_one_out_error(kernel: InputKernel, data: Data) -> float:
    """Return the smallest leave-one-out error over λ of a kernel ridge regression of the normal scores of y.

    Parameters
    ----------
    kernel : InputKernel
        A resolved kernel that is a function of x.
    data : Data
        With targets; at most 1 000 rows are used.

    Examples
    --------
    >>> from infinitask.kernels import RBF, Linear
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> data = Data.canonical(X, 3.0 * X[:, 0])
    >>> leave_one_out_error(Linear(), data) < 0.1 < leave_one_out_error(RBF(gamma=100.0), data)
    True
    """
    X, t, weight, copies = some_rows(data)
    phi = some_features(kernel, X)
    errors = leave_one_out(phi, t, weight, ridges_for(float(weight @ np.sum(phi**2, axis=1))), copies)
    return float(np.min(errors @ weight))
