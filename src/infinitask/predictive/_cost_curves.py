"""The two errors of a classifier as curves over the trade-off θ: ROC, expected cost, net benefit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.extras import display
from infinitask._base.validation import finite, nonnegative, number, numbers


def theta_from_costs(fn_cost: Any, fp_cost: Any) -> Any:
    """Return θ = (fn − fp)/(fn + fp), the trade-off at which the errors are weighted in proportion to their costs.

    Parameters
    ----------
    fn_cost, fp_cost : float or array (n,)
        The costs of a false negative and of a false positive; an array has one for each row.

    Returns
    -------
    float or ndarray (n,)

    Examples
    --------
    >>> theta_from_costs(9.0, 1.0), theta_from_costs([9.0, 30.0], 10.0)
    (0.8, array([-0.05263158,  0.5       ]))
    """
    fn_cost, fp_cost = _costs("fn_cost", fn_cost), _costs("fp_cost", fp_cost)
    if fn_cost.ndim and fp_cost.ndim and fn_cost.shape != fp_cost.shape:
        raise ValueError(
            f"fn_cost of shape {fn_cost.shape} and fp_cost of shape {fp_cost.shape} were given; they must have one "
            "value for each row, or one of them a single value."
        )
    # halves prevent an overflow of the sum of two large costs
    total = 0.5 * fn_cost + 0.5 * fp_cost
    if np.any(total == 0.0):
        raise ValueError("fn_cost and fp_cost are both 0; at least one error must cost something.")
    theta = (0.5 * fn_cost - 0.5 * fp_cost) / total
    return theta if theta.ndim else float(theta)


def _costs(name: str, value: Any) -> HostArray:
    costs = numbers(name, value)
    wrong = ~(np.isfinite(costs) & (costs >= 0.0))
    if np.any(wrong):
        raise ValueError(f"{name} contains {costs[wrong][0]}; costs must be finite numbers of at least 0.")
    return costs


def _levels(values: HostArray, what: str = "level") -> str:
    """Describe levels in words: their number, the first and the last one."""
    if values.size < 2:
        return f"{values.size} {what}{'s' * (values.size == 0)}" + "".join(f" at {value:g}" for value in values)
    return f"{values.size} {what}s from {values[0]:g} to {values[-1]:g}"


@final
@dataclass(frozen=True, eq=False)
class Confusion:
    """The counts of false negatives and false positives of a classifier at every trade-off θ.

    FN(θ) = Σ_i ω_i 1[y_i = 1, h(x_i)(θ) ≤ 0] and FP(θ) = Σ_i ω_i 1[y_i = −1, h(x_i)(θ) > 0].

    Parameters
    ----------
    theta : ndarray (k,)
        The trade-offs, ascending.
    missed, false_alarms : ndarray (k,)
        FN and FP: the numbers of rows, or the sums of their weights.
    positives, negatives : float
        The number of rows of each class, or the sum of their weights.

    Examples
    --------
    >>> import numpy as np
    >>> counts = Confusion(np.array([-0.5, 0.5]), np.array([3.0, 0.0]), np.array([0.0, 2.0]), positives=4, negatives=8)
    >>> counts.tpr, counts.fpr
    (array([0.25, 1.  ]), array([0.  , 0.25]))
    """

    theta: HostArray
    missed: HostArray
    false_alarms: HostArray
    positives: float
    negatives: float

    def __post_init__(self) -> None:
        k = finite("theta", self.theta, 1).size
        for name in ("missed", "false_alarms"):
            nonnegative(name, getattr(self, name), k, "trade-offs")
        for name in ("positives", "negatives"):
            number(name, getattr(self, name), low=0.0, open_low=False)

    def __repr__(self) -> str:
        return f"Confusion({_levels(self.theta)}, {self.positives:g} positives, {self.negatives:g} negatives)"

    @classmethod
    def count(
        cls, theta: HostArray, blocks: Iterable[HostArray], positive: HostArray, weight: HostArray | None = None
    ) -> Confusion:
        """Count the errors of decisions h(x)(θ) > 0.

        Parameters
        ----------
        theta : ndarray (k,)
        blocks : iterable of ndarray (rows, k)
            h for successive blocks of rows; n × k values need not fit into memory at once.
        positive : ndarray of bool (n,)
            The true classes.
        weight : ndarray (n,) or None
        """
        theta, positive = finite("theta", theta, 1), np.asarray(positive)
        if positive.dtype != bool or positive.ndim != 1:
            raise ValueError(
                f"positive of shape {positive.shape} and type {positive.dtype} was given; it must be bool (n,)."
            )
        n = positive.size
        weight = np.ones(n) if weight is None else nonnegative("weight", weight, n, "rows")
        caught, false_alarms = np.zeros(theta.size), np.zeros(theta.size)
        start = 0
        for values in blocks:
            if np.shape(values)[1:] != theta.shape:
                raise ValueError(f"blocks holds an array of shape {np.shape(values)}; give (rows, {theta.size}) each.")
            rows = slice(start, start + values.shape[0])
            if rows.stop > positive.size:
                raise ValueError(f"blocks hold more rows than positive, which has {positive.size}; give as many.")
            alarms = (values > 0.0).astype(np.float64)
            caught += np.where(positive[rows], weight[rows], 0.0) @ alarms
            false_alarms += np.where(positive[rows], 0.0, weight[rows]) @ alarms
            start = rows.stop
        if start != positive.size:
            raise ValueError(f"blocks hold {start} rows in all, and positive {positive.size}; they must be as many.")
        positives, negatives = float(weight[positive].sum()), float(weight[~positive].sum())
        if positives + negatives == 0.0:
            raise ValueError("sample_weight is zero for every row; at least one row must count.")
        # rounding of sums of weights must not result in −1e-17 false negatives
        return cls(theta, np.maximum(positives - caught, 0.0), false_alarms, positives, negatives)

    @property
    def tpr(self) -> HostArray:
        """The true positive rate: 1 − FN/positives."""
        return np.asarray(1.0 - self.missed / self.positives)

    @property
    def fpr(self) -> HostArray:
        """The false positive rate: FP/negatives."""
        return np.asarray(self.false_alarms / self.negatives)

    @property
    def prevalence(self) -> float:
        """π, the fraction of positives."""
        return self.positives / (self.positives + self.negatives)

    def cost(self, fn_cost: HostArray | float, fp_cost: HostArray | float) -> HostArray:
        """Return (fn_cost·FN + fp_cost·FP)/n at each θ; the costs may depend on θ."""
        total = self.positives + self.negatives
        return np.asarray((fn_cost * self.missed + fp_cost * self.false_alarms) / total)

    def cheapest(self, fn_cost: float, fp_cost: float) -> float:
        """Return the θ of the smallest cost; among ties the one nearest to ``theta_from_costs``."""
        near = theta_from_costs(fn_cost, fp_cost)
        if np.ndim(near) > 0:
            raise ValueError(f"fn_cost={fn_cost!r}, fp_cost={fp_cost!r} were given; give two numbers to choose one θ.")
        cost = self.cost(fn_cost, fp_cost)
        # equal costs may differ by rounding
        equal = self.theta[cost <= cost.min() * (1.0 + 1e-12)]
        return float(equal[np.argmin(np.abs(equal - near))])


@final
@dataclass(frozen=True, eq=False)
class ROCCurve:
    """The ROC curve of the policies of a model, with one point for every θ.

    θ ↦ (FP(θ)/negatives, 1 − FN(θ)/positives).

    Parameters
    ----------
    theta, fpr, tpr : ndarray (k,)
        In ascending order of θ.

    Examples
    --------
    >>> import numpy as np
    >>> curve = ROCCurve(np.array([-0.5, 0.5]), fpr=np.array([0.0, 0.25]), tpr=np.array([0.5, 1.0]))
    >>> curve.area
    0.9375
    >>> curve
    ROCCurve(2 levels from -0.5 to 0.5, area=0.9375)
    """

    theta: HostArray
    fpr: HostArray
    tpr: HostArray

    def __repr__(self) -> str:
        return f"ROCCurve({_levels(self.theta)}, area={self.area:.4g})"

    @classmethod
    def of(cls, counts: Confusion) -> ROCCurve:
        """Return the curve of counted errors; both classes must occur."""
        if counts.positives == 0.0 or counts.negatives == 0.0:
            raise ValueError("y holds one class only among rows of positive weight; the ROC curve needs both.")
        return cls(counts.theta, counts.fpr, counts.tpr)

    @property
    def area(self) -> float:
        """∫ tpr d fpr, by trapezoids from (0, 0) through the policies to (1, 1).

        If more rows are predicted positive as θ increases, as they should be, this is the AUC of the score −θ*(x), up
        to the step of the grid. A policy is ignored if another one has a larger tpr at the same fpr.
        """
        order = np.lexsort((self.tpr, self.fpr))
        fpr = np.concatenate([[0.0], self.fpr[order], [1.0]])
        tpr = np.concatenate([[0.0], np.maximum.accumulate(self.tpr[order]), [1.0]])
        return float(np.trapezoid(tpr, fpr))

    def plot(self, ax: Any = None, *, chosen: Any = None, look: Any = None) -> Any:
        """Plot the curve; return a :class:`~infinitask.plotting.ThetaROCDisplay` (extra "plot").

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        chosen : float, array (k,) or None
            The trade-offs to mark.
        look : {"light", "dark"}, Look or None
        """
        return display("ThetaROCDisplay")(self, chosen).plot(ax, look=look)


@final
@dataclass(frozen=True, eq=False)
class CostCurve:
    """The expected cost of the decisions of a model for every true trade-off θ₀.

    c(θ₀) = ((1 + θ₀)/2)·P(FN) + ((1 − θ₀)/2)·P(FP), with the model evaluated at θ = θ₀. The two costs sum to one.

    Parameters
    ----------
    theta : ndarray (k,)
        θ₀, ascending.
    cost : ndarray (k,)
        The cost of the model.
    cost_all_positive, cost_all_negative : ndarray (k,)
        The costs of the two policies that ignore X: ((1 − θ₀)/2)·(1 − π) and ((1 + θ₀)/2)·π.

    Examples
    --------
    >>> import numpy as np
    >>> counts = Confusion(np.array([-0.5, 0.5]), np.array([3.0, 0.0]), np.array([0.0, 2.0]), positives=4, negatives=4)
    >>> curve = CostCurve.of(counts)
    >>> curve.cost, curve.best_constant
    (array([0.09375, 0.0625 ]), array([0.125, 0.125]))
    """

    theta: HostArray
    cost: HostArray
    cost_all_positive: HostArray
    cost_all_negative: HostArray

    def __repr__(self) -> str:
        mean, constant = np.mean(self.cost), np.mean(self.best_constant)
        return f"CostCurve({_levels(self.theta)}, mean cost {mean:.4g}, of the best constants {constant:.4g})"

    @classmethod
    def of(cls, counts: Confusion) -> CostCurve:
        """Return the curve of counted errors."""
        fn_cost, fp_cost = 0.5 * (1.0 + counts.theta), 0.5 * (1.0 - counts.theta)
        prevalence = counts.prevalence
        return cls(counts.theta, counts.cost(fn_cost, fp_cost), fp_cost * (1.0 - prevalence), fn_cost * prevalence)

    @property
    def best_constant(self) -> HostArray:
        """The smaller cost of the two constant policies."""
        return np.minimum(self.cost_all_positive, self.cost_all_negative)

    def plot(self, ax: Any = None, *, look: Any = None) -> Any:
        """Plot the curve; return an :class:`~infinitask.plotting.ExpectedCostDisplay` (extra "plot").

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        look : {"light", "dark"}, Look or None
        """
        return display("ExpectedCostDisplay")(self).plot(ax, look=look)


@final
@dataclass(frozen=True, eq=False)
class NetBenefitCurve:
    """The net benefit of treatment above a probability threshold p_t, for decision-curve analysis.

    NB(p_t) = TP/n − (FP/n)·p_t/(1 − p_t), with the model evaluated at θ = 1 − 2 p_t (Vickers and Elkin, 2006). A false
    positive costs p_t/(1 − p_t) times the value of a true positive. It is equivalent to the expected cost: with c of
    :class:`CostCurve` and the prevalence π, c(θ) = (1 − p_t)(π − NB).

    Parameters
    ----------
    threshold : ndarray (k,)
        p_t, ascending, below one.
    theta : ndarray (k,)
        1 − 2 p_t.
    net_benefit : ndarray (k,)
        The net benefit of the model.
    treat_all : ndarray (k,)
        The net benefit of treating all: π − (1 − π)·p_t/(1 − p_t).
    treat_none : ndarray (k,)
        The net benefit of treating none: 0.

    Examples
    --------
    >>> import numpy as np
    >>> counts = Confusion(np.array([-0.5, 0.5]), np.array([3.0, 0.0]), np.array([0.0, 2.0]), positives=4, negatives=4)
    >>> curve = NetBenefitCurve.of(counts)
    >>> curve.threshold, curve.treat_all
    (array([0.25, 0.75]), array([ 0.33333333, -1.        ]))
    """

    threshold: HostArray
    theta: HostArray
    net_benefit: HostArray
    treat_all: HostArray
    treat_none: HostArray

    def __repr__(self) -> str:
        return f"NetBenefitCurve({_levels(self.threshold, 'threshold')})"

    @classmethod
    def of(cls, counts: Confusion) -> NetBenefitCurve:
        """Return the curve of counted errors, without p_t = 1, where the weight of a false positive is infinite."""
        kept = np.flatnonzero(counts.theta > -1.0)[::-1]
        theta = counts.theta[kept]
        odds = (1.0 - theta) / (1.0 + theta)
        prevalence = counts.prevalence
        total = counts.positives + counts.negatives
        benefit = prevalence - counts.missed[kept] / total - odds * counts.false_alarms[kept] / total
        return cls(0.5 * (1.0 - theta), theta, benefit, prevalence - (1.0 - prevalence) * odds, np.zeros_like(theta))

    def plot(self, ax: Any = None, *, look: Any = None) -> Any:
        """Plot the curve; return a :class:`~infinitask.plotting.NetBenefitDisplay` (extra "plot").

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a new figure.
        look : {"light", "dark"}, Look or None
        """
        return display("NetBenefitDisplay")(self).plot(ax, look=look)
