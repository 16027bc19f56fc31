"""Decisions between many classes: θ = (θ_1, …, θ_K) are the costs of a false negative of each class.

There is a function f_k(x)(θ) for each class, and the decision is the class with the largest one. In the core, a task is
a node θ together with a class k: the measure is discrete on such pairs, and :class:`~infinitask.kernels.ClassTask`
couples the functions of a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import numbers
from infinitask.calibration._class_probabilities import ShareScale, cost_points, with_classes
from infinitask.calibration.held_out import HeldOut
from infinitask.kernels import ClassTask, task_kernel
from infinitask.losses import MultiClassHinge
from infinitask.measures import ClassCosts, Discrete, Measure, Quadrature
from infinitask.measures._rules import quadrature_rule
from infinitask.solvers import Splitting
from infinitask.tasks.base import ROUGH_GAP, Defaults, Task

if TYPE_CHECKING:
    from infinitask.fitting import Fit


FOLDS, FEWEST_ROWS = 4, 20
"""The number of folds of the held-out fits; with fewer rows probabilities are not calibrated."""


@final
@dataclass(frozen=True, eq=False)
class ClassesTask(Task):
    """Cost-sensitive decisions: the class with the largest f_k(x)(θ), ideally that with the largest θ_k P(y = k | x).

    Parameters
    ----------
    costs : Quadrature or None
        Costs (m, K), each summing to one, and their weights.
    over : Measure or None
        μ on the costs.
    class_order : ndarray (K,) or None
        The class of each coordinate of evenly spread costs.
    calibrated : bool
        Whether probabilities are calibrated on held-out rows.
    """

    costs: Quadrature | None = None
    over: Measure | None = None
    class_order: HostArray | None = None
    calibrated: bool = False

    defaults: ClassVar[Defaults] = Defaults(tolerated_errors=0.0, one_scale=True)
    """The best λ is selected; one scale for all features suits pixels, some of which hardly vary."""
    calibrated_as: ClassVar[str] = "share_scale_"

    @classmethod
    def of(
        cls,
        order: HostArray,
        measure: Any,
        rule: Any,
        n_nodes: int | None,
        rng: np.random.Generator,
        *,
        smoothing: float,
        calibrated: bool,
    ) -> Self:
        """Return the task for the ``measure``, ``quadrature`` and ``n_nodes`` of a model.

        The default quadrature rule, made for a line, has no meaning here. Instead the nodes are spread evenly; they are
        always the same, and include equal costs.
        """
        K = order.size
        over = ClassCosts(K) if measure is None else measure
        # with ten classes 64 nodes take 2.6 times as long as 32 and gain little
        m = (64 if K <= 5 else 32) if n_nodes is None else int(n_nodes)
        if not isinstance(over, Measure) or over.dim != K:
            raise ValueError(
                f"measure={measure!r} was given for {K} classes; it must be a measure on the costs of {K} classes, "
                f"such as ClassCosts({K}), Discrete of costs (m, {K}), or None."
            )
        if isinstance(over, ClassCosts) and over.concentration == 1.0 and rule == "gauss-legendre":
            costs = Quadrature(for_classes(cost_points(K, m), order), np.full(m, 1.0 / m))
        else:
            rule = "sobol" if isinstance(rule, str) and rule == "gauss-legendre" else rule
            found = quadrature_rule(rule)(over, m, rng)
            nodes = class_costs(found.nodes, K, "measure")[0]
            nodes = for_classes(nodes, order) if isinstance(over, ClassCosts) else nodes
            costs = Quadrature(nodes, found.weights)
        points, unique = np.unique(costs.nodes, axis=0, return_inverse=True)
        weights = np.bincount(np.ravel(unique), weights=costs.weights)
        pairs = Discrete(with_classes(points), np.repeat(weights, K))
        loss = MultiClassHinge(int(K), float(smoothing))
        return cls(loss, pairs, costs=costs, over=over, class_order=order, calibrated=calibrated)

    @property
    def codes(self) -> HostArray:
        """The numbers that encode the classes in the loss, (K,)."""
        assert isinstance(self.loss, MultiClassHinge)
        return self.loss.codes

    def kernels(self, kernel: Any, gamma: Any, bias_kernel: Any) -> dict[str, Any]:
        """Return the kernels of tasks and bias for the parameters of a model."""
        K = self.codes.size
        as_task = bias_kernel is None or (isinstance(bias_kernel, str) and bias_kernel == "task")
        bias = bias_kernel if as_task else ClassTask(task_kernel(bias_kernel, gamma, name="bias_kernel"), K)
        return {"task_kernel": ClassTask(task_kernel(kernel, gamma), K), "bias_kernel": bias}

    def shown(self, quadrature: Quadrature) -> tuple[Measure, Quadrature]:
        """Return the measure on the costs, and the costs."""
        assert self.over is not None
        assert self.costs is not None
        return self.over, self.costs

    def scores(self, y: HostArray) -> HostArray:
        """Return an indicator column for each class: 1 if y is that class, else 0."""
        return np.asarray(1.0 * (np.abs(y[:, None] - np.unique(y)) < 1e-9))  # codes of classes, up to rounding

    def finish(self, fit: Fit, held_out: HeldOut) -> ShareScale | None:
        """Return the map from fractions of costs won by a class to probabilities; None if it is not identified."""
        problem, n = fit.problem, int(fit.problem.objective.rows.shape[0])
        if not self.calibrated or self.class_order is None or n < FEWEST_ROWS:
            return None
        if not Splitting.solves(problem.objective) or problem.task_kernel.diagonal:
            return None
        targets = problem.objective.integrals[0].targets
        assert targets is not None
        label = np.argmin(np.abs(to_host(targets) - self.codes), axis=1)
        fits = held_out.fits_of(_folds(np.argsort(self.class_order)[label]), ROUGH_GAP)
        points = for_classes(cost_points(self.class_order.size), self.class_order)
        return ShareScale.of(fits, label, held_out.count, points)

    def uncalibrated(self) -> Self:
        """Return the same task without calibration."""
        return replace(self, calibrated=False)

    def warnings(self, fit: Fit) -> Iterator[str]:
        """Yield no warnings: the targets are names of classes."""
        yield from ()


def _folds(label: HostArray) -> HostArray:
    """Return stratified folds, one for each row; they are a function of the labels 0, …, K − 1."""
    rng, fold = np.random.default_rng(0), np.empty(label.size, dtype=np.intp)
    order = np.lexsort((rng.permutation(label.size), label))
    fold[order] = np.arange(label.size) % FOLDS
    return fold


# ------------------------------------------------------------------------------------------ costs of classes
def class_costs(theta: Any, n_classes: int, name: str = "theta") -> tuple[HostArray, bool]:
    """Return the costs of the classes as (q, K), each summing to one, and whether one list of them was given.

    Both None and the 0 of the constructor mean equal costs.
    """
    K = n_classes
    if theta is None or (np.ndim(theta) == 0 and np.asarray(theta).dtype.kind in "biuf" and theta == 0.0):
        return np.full((1, K), 1.0 / K), True
    costs = numbers(name, theta)
    if costs.ndim not in (1, 2) or costs.shape[-1] != K or costs.size == 0:
        raise ValueError(
            f"{name} of shape {costs.shape} was given to a model of {K} classes; it must hold what a missed row of "
            f"each class costs, ({K},) or (q, {K}) in the order of classes_. A single number is a trade-off of two "
            "classes."
        )
    single, costs = costs.ndim == 1, np.atleast_2d(costs)
    if not np.all(np.isfinite(costs)) or np.any(costs < 0.0):
        raise ValueError(f"{name} holds a cost that is negative or not finite; give numbers of at least 0.")
    size = np.max(costs, axis=1, keepdims=True)
    if np.any(size == 0.0):
        raise ValueError(f"{name} holds costs that are all 0; nothing is to be decided then. Give at least one cost.")
    costs = costs / size
    return np.asarray(costs / np.sum(costs, axis=1, keepdims=True)), single


def class_order(X: HostArray, label: HostArray, weight: HostArray, n_classes: int) -> HostArray:
    """Sort the classes independently of their names, (K,): by weight, then by the means of the features.

    Nodes are not symmetric in the classes; with this order, renaming labels does not change decisions.
    """
    chosen = 1.0 * (label[:, None] == np.arange(n_classes)) * weight[:, None]
    mass = np.sum(chosen, axis=0)
    means = (chosen.T @ X) / mass[:, None]
    return np.lexsort((*means.T[::-1], mass))


def for_classes(costs: HostArray, order: HostArray) -> HostArray:
    """Return evenly spread costs with the coordinates in the order of the classes."""
    found = np.empty_like(costs)
    found[:, order] = costs
    return found
