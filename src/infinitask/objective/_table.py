"""The compiled computation of the pairs of an integral: when it is used, and the table that it reads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.util import find_spec
from types import ModuleType

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.losses import BoxLoss
from infinitask.losses._base import Sums
from infinitask.objective._terms import SWITCH, Integral

MAX_KINDS = 16
"""The maximum number of distinct targets of a table: a loss whose interval depends on a continuous target has none."""

REPLACED = ("residual", "pointwise", "sums")
"""Methods of a loss that the compiled functions replace. A loss that overrides one of them does not use a table."""

MISSING = {"low": -np.inf, "high": np.inf, "dead_zone": 0.0, "soft_low": 0.0, "soft_high": 0.0}
"""The entries of a row of the table, and the value of None for each."""


@lru_cache(maxsize=1)
def compiled_functions() -> ModuleType | None:
    """Return the module of compiled functions; None without numba, which is in the extra "fast"."""
    if find_spec("numba") is None:
        return None
    try:
        from infinitask.objective import _compiled
    except (ImportError, AttributeError) as error:  # AttributeError: an earlier import was interrupted
        warnings.warn(
            f"numba is installed but cannot be loaded ({error}); fits are slower without it. Install a version that "
            f"suits this NumPy, or set {SWITCH}=0 to do without.",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return _compiled


@dataclass(frozen=True, eq=False)
class Table:
    """The compiled equivalent of the method ``sums`` of a loss, for an integral on the host.

    Parameters
    ----------
    functions : module
        :mod:`infinitask.objective._compiled`.
    targets : ndarray (n, 1) or (n, m)
        What h is subtracted from: the targets, or zeros if the loss compares with none.
    kind : ndarray (n,)
        The line of the table of every sample.
    lines : ndarray (5, kinds, m)
        The entries of a row, for every kind of sample.
    weights, width : ndarray (m,)
        w, and the relative smoothing of the nodes.
    """

    functions: ModuleType
    targets: HostArray
    kind: HostArray
    lines: HostArray
    weights: HostArray
    width: HostArray
    _known: dict[float, HostArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, term: Integral, n: int) -> Table | None:
        """Create the table of an integral over n samples; None if it has none, or without compiled functions."""
        loss, y = term.loss, term.targets
        if not isinstance(loss, BoxLoss) or not isinstance(term.cols, np.ndarray):
            return None
        if any(getattr(type(loss), name) is not getattr(BoxLoss, name) for name in REPLACED):
            return None
        functions = compiled_functions()
        if functions is None:
            return None
        kind, row = np.zeros(n, dtype=np.int64), loss.row(term.theta, None if y is None else y[:1])
        if any(np.ndim(entry) == 2 for entry in row if entry is not None):
            # a row depends on the value of the target: samples with equal targets have the same kind
            if y is None or y.shape[1] > 1:
                return None
            values, kind = np.unique(y[:, 0], return_inverse=True)
            if values.size > MAX_KINDS:
                return None
            row = loss.row(term.theta, values[:, None])
        dtype, shape = term.weights.dtype, (int(kind.max()) + 1, int(term.theta.shape[0]))
        entries = [MISSING[name] if entry is None else entry for name, entry in zip(MISSING, row, strict=True)]
        lines = np.stack([np.broadcast_to(np.asarray(entry, dtype), shape) for entry in entries])
        goal = loss.goal(term.theta, y)
        if goal is None or np.ndim(goal) == 0:
            goal = np.full((n, 1), 0.0 if goal is None else goal)
        targets = np.array(goal, dtype, order="C")
        return cls(functions, targets, np.asarray(kind, np.int64), lines, term.weights, term.width)

    @property
    def nbytes(self) -> int:
        """The bytes stored per sample, in total."""
        return int(self.targets.nbytes + self.kind.nbytes)

    @property
    def loaded(self) -> bool:
        """Whether the compiled functions have been used in this process."""
        return bool(self.functions.visit.signatures)

    def sums(self, H: HostArray, block: slice, kappa: float, centre: HostArray | None) -> Sums:
        """See :meth:`Loss.sums <infinitask.losses.Loss.sums>`, on a block of rows; H is overwritten."""
        found = np.empty((H.shape[0], 3))
        if centre is None:
            centre = np.zeros((1, self.weights.size), self.weights.dtype)
        np.subtract(self.targets[block], H, out=H)
        self.functions.visit(H, self.kind[block], self._at(kappa), centre, self.kinked, found)
        value, lower, square = found.T
        return Sums(value, lower, square, H)

    @cached_property
    def kinked(self) -> bool:
        """Whether the loss has a kink at 0 and nothing else."""
        return not np.any(self.lines[2:]) and bool(np.all(np.isfinite(self.lines[:2])))

    def _at(self, kappa: float) -> HostArray:
        """The full table for this κ, (kinds, 13, m)."""
        found = self._known.get(kappa)
        if found is None:
            low, high, _, *soft = self.lines
            at_nodes = np.broadcast_to((kappa * self.width).astype(low.dtype, copy=False), low.shape)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                inverse = [np.minimum(1.0 / (q + k), self.functions.STEEPEST) for k in (at_nodes, 0.0) for q in soft]
                halves = [0.5 * self.weights * (high - low), 0.5 * self.weights * (high + low)]
            entries = [*self.lines, *inverse, np.broadcast_to(self.weights, low.shape), at_nodes, *halves]
            found = np.stack(entries, axis=1)
            self._known.clear()  # a solver stays at one level for many evaluations and never returns to an earlier one
            self._known[kappa] = found
        return found
