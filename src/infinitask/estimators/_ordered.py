"""Curves h(x)(·) that rise with θ: what is asked of the fit, and what is done with its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from infinitask._array import HostArray
from infinitask.estimators._checks import check_number
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.kernels import task_kernel
from infinitask.losses import Loss
from infinitask.predictive import Rearrangement

__all__ = ["OrderedTask", "targets_of"]

LEVELS = 1001
"""Levels at which a curve is sorted. Between them it is linear: off by an eighth of 1e-6 times its curvature."""

ENTRIES = 1_000_000
"""Rows × levels that are sorted at a time; the field and the sorted curves each keep a copy or two of them."""


class OrderedTask(BaseInfiniteTask):
    """A task whose answers rise with θ, with the parameter ``noncrossing``."""

    noncrossing: float | str
    _rearranged_weight: ClassVar[float]
    """λ_nc of a fit whose predictions are rearranged afterwards."""

    def _noncrossing(self) -> float:
        """λ_nc, from a weight or from a word."""
        if not isinstance(self.noncrossing, str):
            return check_number("noncrossing", self.noncrossing, low=0.0, open_low=False)
        if self.noncrossing == "hard":
            return 0.0
        if self.noncrossing != "rearrange":
            raise ValueError(
                f"noncrossing={self.noncrossing!r} was given; it must be the weight of the penalty, a number of at "
                "least 0, or 'rearrange', which puts the predictions in order, or 'hard', which makes the order at the "
                "training inputs a constraint of the fit."
            )
        # sorting asks for no derivative: a kernel without one is fitted without the penalty
        kernels = [self.task_kernel] if self.bias_kernel in (None, "task") else [self.task_kernel, self.bias_kernel]
        smooth = all(task_kernel(kernel).max_order > 0 for kernel in kernels)
        return self._rearranged_weight if smooth else 0.0

    def _hard(self) -> bool:
        return isinstance(self.noncrossing, str) and self.noncrossing == "hard"

    def _values(self, X: Any, theta: Any, name: str, *, strict: bool = False, per_sample: bool = False) -> HostArray:
        """h(x)(θ) as the base class has it, in order if that is asked for."""
        if self.noncrossing != "rearrange":
            return super()._values(X, theta, name, strict=strict, per_sample=per_sample)
        X = self._inputs(X)
        tasks, single = self._asked(theta, name, strict=strict)
        if per_sample:
            return self._sorted(X, lambda curves, rows: curves.paired(tasks[rows, 0]))
        values = self._sorted(X, lambda curves, _: curves(tasks[:, 0]))
        return values[:, 0] if single else values

    def _by_curve(self, X: Any, answer: Callable[[Rearrangement, slice], HostArray]) -> HostArray:
        """What ``answer`` makes of the rearranged curves of some rows, for all rows."""
        return self._sorted(self._inputs(X), answer)

    def _sorted(self, X: Any, answer: Callable[[Rearrangement, slice], HostArray]) -> HostArray:
        """The same for inputs that are checked."""
        levels = self._levels()
        size = max(1, ENTRIES // levels.size)
        parts = []
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            parts.append(answer(Rearrangement.of(levels, self.field_(X[rows, :], levels)), rows))
        return np.concatenate(parts)

    def _levels(self) -> HostArray:
        """Where the curves are sorted: at equally spaced levels, or at the nodes where no more is known."""
        if self._knows_nodes_only() or self.measure_.atoms() is not None:
            return np.unique(self.nodes_)
        return np.linspace(*self._ends(), LEVELS)

    def _d2(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        loss: Loss,
        constants: Callable[[HostArray, HostArray], HostArray],
        name: str,
    ) -> float:
        """1 − the integrated loss / that of the best ``constants`` (m,) of y and its weights."""
        check_is_fitted(self)
        predicted = self._values(X, self.nodes_, name)
        y = targets_of(predicted, y)
        weight = _check_sample_weight(sample_weight, predicted, dtype=np.float64, ensure_non_negative=True)

        def integrated(h: HostArray) -> float:
            return float(weight @ loss.value(self.nodes_, y[:, None], h) @ self.weights_)

        worst = integrated(np.broadcast_to(constants(y, weight), predicted.shape))
        best = integrated(predicted)
        if worst == 0.0:
            return 1.0 if best == 0.0 else 0.0
        return 1.0 - best / worst


def targets_of(X: Any, y: Any) -> HostArray:
    """y, finite, one for each row of X."""
    y = check_array(column_or_1d(y), ensure_2d=False, dtype=np.float64, input_name="y")
    check_consistent_length(X, y)
    return np.asarray(y)
