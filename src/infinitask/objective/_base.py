"""What objectives have in common, wherever their rows are: from sums over the data to the value and its dual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from infinitask._base.arrays import Array, HostArray, floats, to_host
from infinitask.objective._balance import Balance, NodeSums
from infinitask.objective._terms import Evaluation, Integral, RowSums, Smoothing


class BaseObjective(ABC):
    """P(z) as a function of sums over rows; a subclass knows where the rows are.

    It has ``integrals``, ``alpha`` (λ), ``alpha_bias`` (λ_b; 0: the bias is free) and ``bias_linear`` (v or None).
    """

    integrals: tuple[Integral, ...]
    alpha: float
    alpha_bias: float
    bias_linear: HostArray | None

    # ------------------------------------------------------------------------------ what a subclass knows
    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(r, s), the shape of C."""

    @property
    @abstractmethod
    def n_pairs(self) -> int:
        """Samples × nodes of all integrals."""

    @abstractmethod
    def row_sums(self, z: HostArray, smoothing: Smoothing) -> RowSums:
        """The sums over all rows that :meth:`evaluate` is made of."""

    @abstractmethod
    def node_curvature(self, z: HostArray, smoothing: Smoothing) -> list[HostArray]:
        """Σ_i ω_i w_j ∂²ℓ^κ_ij at every node, (m,) for each integral."""

    @abstractmethod
    def resting_loss(self) -> float:
        """Σ ω w (−ℓ*(0)) of all integrals: the smallest values of the losses."""

    @abstractmethod
    def corner_sums(self, side: float, *, rows: bool = True) -> NodeSums:
        """The sums, on the host, of the dual point of a field far above (1) or far below (−1) every target.

        ``rows``: whether those with Φ are made as well.
        """

    @abstractmethod
    def slopes_at_zero(self) -> HostArray:
        """Σ_i ω_i |u_ij| of the first integral at h = 0, (m,)."""

    @abstractmethod
    def start(self) -> HostArray:
        """Where a solver starts that knows nothing better, (size,)."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The size of what the losses look at: spread of the targets, or of the field where there are none."""

    @property
    @abstractmethod
    def typical_loss(self) -> float:
        """The mean loss of h = 0, in which rows that are far from the others count no more than some others."""

    # ------------------------------------------------------------------------------------------ shapes
    @property
    def bias_size(self) -> int:
        """s_b."""
        cols = self.integrals[0].bias_cols
        return 0 if cols is None else int(cols.shape[1])

    @property
    def size(self) -> int:
        """Number of unknowns."""
        r, s = self.shape
        return r * s + self.bias_size

    @property
    def free(self) -> bool:
        """Whether there is a bias without a ridge."""
        return self.bias_size > 0 and self.alpha_bias == 0.0

    @cached_property
    def ridge(self) -> HostArray:
        """The diagonal of Λ, (size,); 0 for a free bias."""
        r, s = self.shape
        return np.concatenate([np.full(r * s, self.alpha), np.full(self.bias_size, self.alpha_bias)])

    @cached_property
    def linear(self) -> HostArray:
        """v, padded with zeros to all unknowns, (size,)."""
        v = np.zeros(self.size)
        if self.bias_linear is not None:
            v[self.size - self.bias_size :] = self.bias_linear
        return v

    @cached_property
    def host_integrals(self) -> list[Integral]:
        """The integrals without targets, their weights and columns NumPy arrays of float64."""

        def host(part: Array) -> HostArray:
            return to_host(part).astype(np.float64)

        return [
            Integral(t.loss, t.theta, host(t.weights), host(t.cols), None if t.bias_cols is None else host(t.bias_cols))
            for t in self.integrals
        ]

    @property
    def relative_sizes(self) -> list[float]:
        """How large what each integral looks at is, relative to the first: a derivative is, for a narrow kernel."""
        sizes = [float(np.sqrt(t.weights @ np.sum(t.cols**2, axis=1))) for t in self.host_integrals]
        return [size / sizes[0] if sizes[0] > 0.0 and size > 0.0 else 1.0 for size in sizes]

    # ---------------------------------------------------------------------------------------- one pass
    def evaluate(self, z: HostArray, smoothing: Smoothing) -> Evaluation:
        """Value, gradient and dual point at z, for losses with this smoothing."""
        return self._evaluation(z, self.row_sums(z, smoothing))

    def _evaluation(self, z: HostArray, sums: RowSums) -> Evaluation:
        """From sums over the data to the objective and its dual."""
        losses = floats(sums.losses)
        values, lowers, squares = (losses[k::3] for k in range(3))
        data = to_host(sums.C).astype(np.float64, copy=False).ravel()
        if sums.c is not None:
            data = np.concatenate([data, to_host(sums.c).astype(np.float64)])
        ridge_z = self.ridge * z
        penalty = float(self.linear @ z + 0.5 * ridge_z @ z)
        primal, gradient = sum(values) + penalty, data + self.linear + ridge_z
        lower, slack = sum(lowers), tuple(value - low for value, low in zip(values, lowers, strict=True))
        dual_data = lower - float(data @ z)
        if sums.nodes is None:
            step = gradient / self.ridge
            dual_z, error = z - step, 0.5 * float(step @ gradient)
        else:
            dual_data, dual_z = self.balance.dual(dual_data, -data, gradient, sums.nodes)
            error = primal - (dual_data - 0.5 * float((self.ridge * dual_z) @ dual_z)) - sum(slack)
        return Evaluation(
            primal=primal,
            smoothed=lower - 0.5 * sum(squares) + penalty,
            gradient=gradient,
            dual_data=dual_data,
            slack=slack,
            dual_z=dual_z,
            error=max(error, 0.0),
        )

    # ------------------------------------------------------------------------------------------- dual
    @cached_property
    def balance(self) -> Balance:
        """What makes dual points feasible where the bias is free."""
        return Balance.of(self)

    def origin(self) -> tuple[float, HostArray] | None:
        """The dual point u = 0, or where the bias is free what balances next to it; None where nothing does.

        Its data term is Σ ω w (−ℓ*(0)).
        """
        data = self.resting_loss()
        data, z = self.balance.origin(data, self) if self.free else (data, -self.linear / self.ridge)
        return (data, z) if np.isfinite(data) else None
