"""Decisions between many classes: a trade-off θ ∈ [−1, 1] for each class against all others.

There is a continuum of decisions f_k(x)(θ) for each class, and all of them share φ. In the core, a task is a trade-off
θ together with a class k: the measure is discrete on such pairs, and :class:`~infinitask.kernels.ClassTask` keeps the
fields of the classes apart. Their probabilities p_k are coupled after the fit, and costs θ_k of false negatives of each
class decide for the largest θ_k p_k.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import numbers
from infinitask.calibration._class_probabilities import ClassScale, trade_off_levels, with_classes
from infinitask.calibration.held_out import HeldOut
from infinitask.kernels import ClassTask, task_kernel
from infinitask.losses import OneAgainstRest
from infinitask.measures import Discrete, Measure, Quadrature
from infinitask.measures._rules import quadrature_rule
from infinitask.tasks.base import FEWEST_ROWS, ROUGH_GAP, Defaults, Task

if TYPE_CHECKING:
    from infinitask.fitting import Fit


@final
@dataclass(frozen=True, eq=False)
class AgainstRestTask(Task):
    """Cost-sensitive decisions for each class: the sign of f_k(x)(θ), ideally that of P(y = k | x) − (1 − θ)/2.

    Parameters
    ----------
    trade_offs : Quadrature or None
        The nodes θ and their weights.
    over : Measure or None
        μ on the trade-offs.
    calibrated : bool
        Whether probabilities are calibrated on held-out rows.
    """

    trade_offs: Quadrature | None = None
    over: Measure | None = None
    calibrated: bool = False

    defaults: ClassVar[Defaults] = Defaults(tolerated_errors=0.0, one_scale=True)
    """The best λ is selected; one scale for all features suits pixels, some of which hardly vary."""
    calibrated_as: ClassVar[str] = "class_scale_"

    @classmethod
    def of(
        cls,
        n_classes: int,
        over: Measure,
        rule: Any,
        n_nodes: int | None,
        rng: np.random.Generator,
        *,
        smoothing: float,
        calibrated: bool,
    ) -> Self:
        """Return the task for the ``measure``, ``quadrature`` and ``n_nodes`` of a model."""
        # eight nodes are as good as 16, except with rare classes among few; 32 are no better
        m = (16 if n_classes <= 5 else 8) if n_nodes is None else int(n_nodes)
        trade_offs = quadrature_rule(rule)(over, m, rng)
        pairs = Discrete(with_classes(trade_offs.nodes, n_classes), np.repeat(trade_offs.weights, n_classes))
        loss = OneAgainstRest(int(n_classes), float(smoothing))
        return cls(loss, pairs, trade_offs=trade_offs, over=over, calibrated=calibrated)

    @property
    def codes(self) -> HostArray:
        """The numbers that encode the classes in the loss, (K,)."""
        assert isinstance(self.loss, OneAgainstRest)
        return self.loss.codes

    def kernels(self, kernel: Any, gamma: Any, bias_kernel: Any) -> dict[str, Any]:
        """Return the kernels of tasks and bias for the parameters of a model."""
        K = self.codes.size
        as_task = bias_kernel is None or (isinstance(bias_kernel, str) and bias_kernel == "task")
        own = bias_kernel if as_task else task_kernel(bias_kernel, gamma, name="bias_kernel")
        return {
            "task_kernel": ClassTask(task_kernel(kernel, gamma), K, coupled=False),
            "bias_kernel": own if as_task else ClassTask(own, K, coupled=False),
        }

    def shown(self, quadrature: Quadrature) -> tuple[Measure, Quadrature]:
        """Return the measure on the trade-offs, and the trade-offs."""
        assert self.over is not None
        assert self.trade_offs is not None
        return self.over, self.trade_offs

    def scores(self, y: HostArray) -> HostArray:
        """Return an indicator column for each class: 1 if y is that class, else 0."""
        return np.asarray(1.0 * (np.abs(y[:, None] - np.unique(y)) < 1e-9))  # codes of classes, up to rounding

    def finish(self, fit: Fit, held_out: HeldOut) -> ClassScale | None:
        """Return the map from the decisions of all classes to probabilities."""
        objective, K = fit.problem.objective, self.codes.size
        if not self.calibrated or self.over is None or self.trade_offs is None or held_out.count < FEWEST_ROWS:
            return None
        targets = objective.integrals[0].targets
        assert targets is not None
        label = np.argmin(np.abs(to_host(targets) - self.codes), axis=1)
        fits = held_out.stratified(label, ROUGH_GAP, K)
        levels = trade_off_levels(fit.field, self.trade_offs.nodes, self.over.support)
        return ClassScale.of(fits, label, held_out.count, levels, K)

    def uncalibrated(self) -> Self:
        """Return the same task without calibration."""
        return replace(self, calibrated=False)

    def warnings(self, fit: Fit) -> Iterator[str]:
        """Yield no warnings: the targets are names of classes."""
        yield from ()


@final
@dataclass(frozen=True, eq=False)
class ClassesTask(Task):
    """The task of saved models in which the fields of all classes sum to zero at every list of costs.

    Parameters
    ----------
    costs : Quadrature or None
        Costs (m, K), each summing to one, and their weights.
    over : Measure or None
        μ on the costs.
    class_order : ndarray (K,) or None
        The class of each coordinate of evenly spread costs.
    calibrated : bool
    """

    costs: Quadrature | None = None
    over: Measure | None = None
    class_order: HostArray | None = None
    calibrated: bool = False

    calibrated_as: ClassVar[str] = "share_scale_"


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


def class_order(X: HostArray, label: HostArray) -> HostArray:
    """Sort the classes by their rows, (K,): the problem is then the same for other names, orders of rows and weights.

    The rows of each class, in the lexicographic order of all distinct rows, are compared as sequences. Two classes of
    the same rows keep the order of their names.

    Examples
    --------
    >>> class_order(np.array([[3.0], [1.0], [2.0]]), np.array([0, 1, 2]))
    array([1, 2, 0])
    """
    order = np.lexsort(X.T[::-1])
    table, place = X[order], np.empty(order.size, dtype=np.intp)
    place[order] = np.cumsum(np.append(False, np.any(table[1:] != table[:-1], axis=1)))
    rows = [tuple(np.unique(place[label == k]).tolist()) for k in range(int(np.max(label)) + 1)]
    return np.array(sorted(range(len(rows)), key=rows.__getitem__), dtype=np.intp)
