"""Targets that are observed at some tasks only, and losses that are the same for every task."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace
from infinitask.losses._base import BoxLoss, Loss, Row

FEW = 0.2
"""If fewer than this fraction of the pairs have a target, splitting is slower, because it visits all of them."""


class Observed(BoxLoss):
    r"""A loss of targets with gaps: v_ij ℓ_θj(y_ij, h_ij), where v_ij = 0 means that the target is missing.

    In the table of losses this is a row with a scaled interval,

    .. math:: v \, \ell(y, h) = \max_{u \in [v a, v b]} \; u r - \epsilon |u| - \tfrac{1}{2} \tfrac{q}{v} u^2 ,

    and the interval is [0, 0] if v = 0: value, slope, curvature and dual are then 0 for any placeholder of
    the target. Targets are (n, m, 2) arrays that stack y and v; see :meth:`targets`.

    Parameters
    ----------
    loss : BoxLoss
        ℓ.
    usual : float, positive
        A typical v: smoothing is relative to it.
    few : bool
        Whether only few of the pairs have a target; see :data:`FEW`.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.losses import Squared
    >>> y, share = np.array([[2.0, 7.0]]), np.array([[0.5, 0.0]])
    >>> Observed(Squared()).value(np.array([0.0, 1.0]), Observed.targets(y, share), np.zeros((1, 2)))
    array([[1., 0.]])
    """

    weighted = True

    def __init__(self, loss: BoxLoss, usual: float = 1.0, few: bool = False) -> None:
        self.loss = loss
        self.usual = usual
        self.few = few

    @classmethod
    def of(cls, loss: Loss, share: HostArray) -> Observed:
        """Return the loss of targets with these weights v, (n, m)."""
        if not isinstance(loss, BoxLoss):
            raise TypeError(
                f"{type(loss).__name__} was given for targets with gaps; it must be a BoxLoss, a row of the table of "
                "losses. Fill the gaps, or write the loss as a row."
            )
        seen = share > 0.0
        return cls(loss, float(np.median(share[seen])), bool(np.mean(seen) < FEW))

    @staticmethod
    def targets(y: Array, share: Array) -> Array:
        """Stack targets and their weights v, (n, m) each, as the methods need them; y must not be NaN."""
        return namespace(y).stack([y, share], axis=-1)

    @property
    def degree(self) -> int | None:  # type: ignore[override]
        """The degree of ℓ."""
        return self.loss.degree

    def values_of(self, targets: Array) -> Array:
        """Return y, (n, m)."""
        return targets[..., 0]

    def shares_of(self, targets: Array) -> Array | None:
        """Return v, (n, m)."""
        return targets[..., 1]

    def goal(self, theta: Array, y: Array | None) -> Array | None:
        """Return y without v."""
        return None if y is None else y[..., 0]

    def smooth(self, scale: float) -> bool:
        """Whether ℓ is smooth."""
        return self.loss.smooth(scale)

    def width(self, theta: Array) -> Array:
        """Return the width of ℓ over a typical v: the smoothed part is then as wide as for v = 1."""
        return self.loss.width(theta) / self.usual

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return u ∈ v·[a, b], q/v."""
        if y is None:
            raise ValueError("Observed was given no targets; it needs y and v, see Observed.targets.")
        xp, v = namespace(y), y[..., 1]
        row, seen = self.loss.row(theta, y[..., 0]), v > 0.0
        endless = as_like(math.inf, v) + xp.zeros_like(v)
        over = 1.0 / xp.where(seen, v, xp.ones_like(v))

        def end(value: Any, sign: float) -> Array:
            return xp.where(seen, sign * endless if value is None else v * value, xp.zeros_like(v))

        def soft(value: Any) -> Any:
            return None if value is None else value * over

        return Row(end(row.low, -1.0), end(row.high, 1.0), row.dead_zone, soft(row.soft_low), soft(row.soft_high))


class AtTask(BoxLoss):
    """The same loss for every θ: the loss at one task.

    Parameters
    ----------
    loss : BoxLoss
        A loss with one-dimensional θ.
    task : float
        The θ of the task.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.losses import Pinball
    >>> AtTask(Pinball(), 0.25).value(np.array([10.0, 20.0]), np.array([[1.0]]), np.zeros((1, 2)))
    array([[0.25, 0.25]])
    """

    domain = (-math.inf, math.inf)
    support = (0.0, 1.0)

    def __init__(self, loss: BoxLoss, task: float = 0.5) -> None:
        self.loss = loss
        self.task = task

    @property
    def degree(self) -> int | None:  # type: ignore[override]
        """The degree of the loss."""
        return self.loss.degree

    def in_units(self, spread: float) -> AtTask:
        """Return the loss at the same task in these units."""
        loss = self.loss.in_units(spread)
        assert isinstance(loss, BoxLoss)
        return AtTask(loss, self.task)

    def _tasks(self, theta: Array) -> Array:
        on_line = theta if theta.ndim == 1 else theta[:, 0]
        return namespace(theta).full_like(on_line, float(self.task))

    def smooth(self, scale: float) -> bool:
        """Whether the loss is smooth."""
        return self.loss.smooth(scale)

    def width(self, theta: Array) -> Array:
        """Return the width of the loss at its task."""
        return self.loss.width(self._tasks(theta))

    def row(self, theta: Array, y: Array | None) -> Row:
        """Return the row of the loss at its task."""
        return self.loss.row(self._tasks(theta), y)
