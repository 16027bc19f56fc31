"""The base class of tasks: everything that is specific to one kind of problem.

A :class:`Task` is an immutable object that an estimator creates and a :class:`~infinitask.fitting.Recipe` contains. It
defines which problem is solved (loss, measure, penalty, order in θ), which defaults depend on the data, how a fit is
calibrated, when a certified optimum is still a poor model, and how h(x)(θ) is converted to a prediction. A new task
derives from it in one file of this package and overrides the differences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, normal_scores, to_host
from infinitask._base.validation import choice, number
from infinitask.calibration._levels import Rearrangement
from infinitask.calibration.held_out import HeldOut
from infinitask.field import Field
from infinitask.losses import Loss
from infinitask.losses._rows import NonCrossing, SquaredNonCrossing
from infinitask.measures import Measure, Quadrature
from infinitask.penalties import Penalty, Ridge, Term

if TYPE_CHECKING:
    from infinitask.fitting import Fit

STANDARDISED = 5.0
"""Targets whose root mean square is at most this are standardised."""

HEAVY_RIDGE = 0.1
"""A ridge on the bias is heavy if it exceeds this fraction of the errors of a constant."""

CHECKED_ROWS = 2_000
"""The approximate maximum number of training rows checked for a warning."""

FEWEST_ROWS = 5
"""With fewer rows a training set of cross-validation could lack a class, and decisions are not calibrated. With 6 to 15
rows of three classes, calibrated probabilities have the smaller log loss in the mean."""

ROUGH_GAP, ROUGH_EVALUATIONS = 1e-2, 300
"""The duality gap and maximum number of evaluations of a rough fit, which only prepares or calibrates another."""


@dataclass(frozen=True, eq=False)
class Order:
    """Requirements on the order of h(x)(θ) in θ, such as non-crossing quantiles.

    Parameters
    ----------
    weight : float
        λ_nc of the penalty on decreasing curves.
    loss : {"hinge", "smoothed", "squared"}
        The function weighted by λ_nc: the positive part, its smoothed form (for M-quantiles, like their loss), or its
        square.
    at : ndarray (k, d) or None
        The rows at which the penalty applies; None: the training rows.
    hard : bool
        Whether order at the training rows is a constraint; see ``solve_in_order``.
    rearranged : bool
        Whether predictions are sorted over θ; see ``Rearrangement``.
    """

    weight: float = 0.0
    loss: str = "hinge"
    at: HostArray | None = None
    hard: bool = False
    rearranged: bool = False

    def __post_init__(self) -> None:
        number("noncrossing", self.weight, low=0.0, open_low=False)
        choice("noncrossing_loss", self.loss, ("hinge", "smoothed", "squared"))

    def term(self, kappa: float) -> Term:
        """Return the penalty on decreasing curves; κ is that of the loss, 0 for the positive part itself.

        Examples
        --------
        >>> Order(2.0, "smoothed").term(0.5)
        Term(loss=NonCrossing(kappa=0.5, weight=2.0), order=1, inputs=None)
        """
        if self.loss == "squared":
            return Term(SquaredNonCrossing(self.weight), 1, self.at)
        return Term(self.falling(self.weight, kappa if self.loss == "smoothed" else 0.0), 1, self.at)

    @staticmethod
    def falling(weight: float, kappa: float = 0.0) -> Loss:
        """Return the penalty on negative slopes, the positive part or its smoothed form."""
        return NonCrossing(weight, kappa)

    def in_units(self, spread: float, degree: int) -> Order:
        """Return the same order for targets in units of a spread, with a loss of this degree."""
        of_slopes = 2 if self.loss == "squared" else 1
        return replace(self, weight=spread ** (of_slopes - degree) * self.weight)


@dataclass(frozen=True)
class Defaults:
    """The numbers that determine the data-dependent defaults of bandwidth, λ and nodes.

    Parameters
    ----------
    nodes : int
        m.
    node_gaps : float or None
        σ of the task kernel in mean gaps between neighbouring nodes, at most the median distance of all nodes; None: σ
        is that median distance.
    ridge : float
        λ as a multiple of that of half the square: a less curved loss needs a smaller one.
    tolerated_errors : float
        The number of standard errors by which a larger λ may be worse than the best one.
    width : float
        γ as a multiple of the value of the median rule.
    robust : bool
        Whether each feature is scaled by its interquartile range instead of its standard deviation.
    one_scale : bool
        Whether to try one scale for all features too.
    any_alpha : bool
        Whether to try other bandwidths even if λ is given.
    """

    nodes: int = 50
    node_gaps: float | None = None
    ridge: float = 1.0
    tolerated_errors: float = 0.5
    width: float = 1.0
    robust: bool = False
    one_scale: bool = False
    any_alpha: bool = False


class Learnt(NamedTuple):
    """The fitted quantities that a prediction needs."""

    field: Field
    nodes: HostArray
    """(m,) or (m, d)."""
    calibration: Any = None
    """The result of :meth:`Task.finish`."""

    def levels(self, ends: tuple[float, float], count: int) -> HostArray:
        """Return equally spaced levels of Θ ⊂ ℝ, or the nodes if the field is defined only at these."""
        return np.unique(self.nodes) if self.field.knows_nodes_only else np.linspace(*ends, count)

    def shift(self, levels: HostArray) -> HostArray | float:
        """Return the calibrated shift at levels (k,), (k,); 0 without a calibration."""
        return 0.0 if self.calibration is None else self.calibration(levels)


@dataclass(frozen=True, eq=False)
class Task:
    """One family of tasks θ ∈ Θ, and everything specific to it.

    min ∫ E ℓ_θ(y, h(x)(θ)) dμ(θ) + penalties, with the loss ℓ and the measure μ of the task.

    Parameters
    ----------
    loss : Loss
    measure : Measure
        μ on Θ.
    penalty : Penalty
        The penalty on h.
    order : Order
        Requirements on h as a function of θ.
    """

    loss: Loss
    measure: Measure
    penalty: Penalty = field(default_factory=Ridge)
    order: Order = field(default_factory=Order)

    defaults: ClassVar[Defaults] = Defaults()
    """The numbers that determine the data-dependent defaults of bandwidth, λ and nodes."""
    bias_slope: ClassVar[float] = 0.0
    """v of a term ∫ v b dμ that is linear in the bias."""
    calibrated_as: ClassVar[str] = "shift_"
    """The fitted attribute in which an estimator stores the calibration."""

    # ------------------------------------------------------------------------------------------ the problem
    def in_units(self, spread: float, centre: float = 0.0) -> Self:
        """Return the same task for targets (y − centre)/spread."""
        degree = self.loss.degree
        if degree is None:
            return self
        return replace(
            self,
            loss=self.loss.in_units(spread),
            penalty=self.penalty.in_units(spread, centre, degree),
            order=self.order.in_units(spread, degree),
        )

    @property
    def terms(self) -> tuple[Term, ...]:
        """The penalties on curves: the penalty on crossing, if it has a weight, and those of the penalty."""
        crossing = (self.order.term(float(self.loss.rounding)),) if self.order.weight > 0.0 else ()
        return crossing + self.penalty.terms()

    @property
    def derivatives(self) -> tuple[int, ...]:
        """The derivatives in θ that the objective uses."""
        return (0, 1) if self.order.hard or any(term.order == 1 for term in self.terms) else (0,)

    @property
    def named(self) -> tuple[HostArray, ...]:
        """The rows, beside those of the data, that penalties on curves name, each (k, d)."""
        rows = [term.inputs for term in self.terms] + [self.order.at if self.order.hard else None]
        return tuple(part for part in rows if part is not None)

    def name_of(self, named: HostArray) -> str:
        """Return the name of the parameter that names rows."""
        return "noncrossing_inputs" if named is self.order.at else "IntegratedPenalty(inputs=…)"

    @property
    def may_hold_bias(self) -> bool:
        """Whether a free bias has a tiny ridge, which makes the fit faster.

        It has one if targets have units, because their centre is subtracted before the fit. It is required if the
        objective depends on more than the values at the nodes of a line.
        """
        return self.loss.degree is not None or len(self.derivatives) > 1 or self.measure.dim > 1

    def shown(self, quadrature: Quadrature) -> tuple[Measure, Quadrature]:
        """Return the measure and the quadrature for the user, given the quadrature of the core."""
        return self.measure, quadrature

    def scores(self, y: HostArray) -> HostArray:
        """Convert targets (n,) for the ridge regressions that select bandwidth and λ, (n,) or (n, c): normal scores."""
        return normal_scores(y)

    def widened(self, fit: Fit) -> float | None:
        """Return the factor of γ with which a fit must be repeated; None if no repetition is needed."""
        return None

    # ---------------------------------------------------------------------------------------- after the fit
    def finish(self, fit: Fit, held_out: HeldOut) -> Any:
        """Return the post-fit calibration; None if the task has none.

        Parameters
        ----------
        fit : Fit
        held_out : HeldOut
            The engine for held-out fits.
        """
        return None

    def uncalibrated(self) -> Self:
        """Return the same task without post-fit calibration, for fits that are only compared."""
        return self

    def warnings(self, fit: Fit) -> Iterator[str]:
        """Yield warnings about a certified optimum that is still a poor model, each with advice."""
        yield from heavy_ridge_on_the_bias(fit)
        yield from targets_without_units(fit)

    # ------------------------------------------------------------------------------------------- prediction
    def sorting_levels(self, learnt: Learnt) -> HostArray:
        """Return the levels at which curves are sorted, (k,): atoms of a discrete measure, or 1001 of Θ.

        A curve is linear between 1001 levels: the error is an eighth of 1e-6 times its curvature.
        """
        if self.measure.atoms() is not None:
            return np.unique(learnt.nodes)
        low, high = self.measure.support
        return learnt.levels((float(low[0]), float(high[0])), 1001)

    def at_levels(self, learnt: Learnt, X: Array, levels: HostArray) -> Iterator[tuple[slice, HostArray]]:
        """Yield predictions at many levels (k,), for each block of rows: the rows, and values (rows, k)."""
        yield from learnt.field.at_levels(X, levels)

    def curves(self, learnt: Learnt, X: Array) -> Iterator[tuple[slice, Rearrangement]]:
        """Yield the sorted curves θ ↦ prediction, for each block of rows."""
        levels = self.sorting_levels(learnt)
        for rows, values in self.at_levels(learnt, X, levels):
            yield rows, Rearrangement.of(levels, values)

    def answer(self, learnt: Learnt, X: Array, theta: HostArray) -> HostArray:
        """Return the prediction for rows (n, d) and tasks (q, dim), (n, q)."""
        if not self.order.rearranged:
            return learnt.field(X, theta)
        values = np.empty((X.shape[0], theta.shape[0]))
        for rows, curves in self.curves(learnt, X):
            values[rows] = curves(theta[:, 0])
        return values

    def answer_each(self, learnt: Learnt, X: Array, theta: HostArray) -> HostArray:
        """Return the prediction for rows (n, d), each with its own task (n, dim), (n,)."""
        each = [self.answer(learnt, X[i : i + 1, :], theta[i : i + 1]) for i in range(X.shape[0])]
        return np.ravel(each)


# --------------------------------------------------------------------- warnings that regressions share
def some_rows(fit: Fit) -> slice:
    """Return the training rows that are checked for a warning."""
    return slice(None, None, -(-int(fit.problem.objective.rows.shape[0]) // CHECKED_ROWS))


def heavy_ridge_on_the_bias(fit: Fit) -> Iterator[str]:
    """Yield a warning if the ridge on the bias is too heavy for targets of this size."""
    recipe, objective = fit.recipe, fit.problem.objective
    term, omega, units = objective.integrals[0], objective.sample_weight, recipe.units
    if term.targets is None or recipe.bias_kernel is None or recipe.alpha_bias == 0.0 or units is None or units.centre:
        return
    values, share = term.loss.values_of(term.targets), term.loss.shares_of(term.targets)
    # a missing target is not 0
    seen = 0.0 * values + (1.0 if share is None else share > 0.0)
    size = float(np.max(_mean_of_seen(values**2, seen, omega))) ** 0.5
    if units.spread * size <= STANDARDISED:
        return
    rows = some_rows(fit)
    y, omega = term.targets[rows, ...], omega[rows]
    total = float(namespace(omega).sum(omega))
    mean = as_like(_mean_of_seen(values[rows, :], seen[rows, :], omega), omega)
    constant = mean + 0.0 * (omega[:, None] * term.weights)
    errors = float(omega @ (term.loss.value(term.theta, y, constant) @ term.weights)) / total
    if 0.5 * objective.alpha_bias * size**2 > HEAVY_RIDGE * errors:
        yield (
            f"y has a root mean square of {units.spread * size:.3g}, and the ridge holds the bias b(θ) towards 0 with "
            f"alpha_bias={recipe.alpha_bias:g}: too heavily for targets of that size. Set alpha_bias=0, which leaves "
            "the bias free, and alpha='auto' or an alpha that is as many times smaller."
        )


def _mean_of_seen(values: Array, seen: Array, omega: Array) -> HostArray:
    """Return the weighted mean of each column over the rows in which it is observed; 0 if there are none."""
    mass = to_host(omega @ seen)
    return np.asarray(to_host(omega @ (values * seen)) / np.where(mass > 0.0, mass, 1.0))


def targets_without_units(fit: Fit) -> Iterator[str]:
    """Yield a warning if λ was chosen for targets of size one, and these are not."""
    loss, term = fit.recipe.task.loss, fit.problem.objective.integrals[0]
    if not isinstance(fit.given.alpha, str) or loss.degree is not None or term.targets is None:
        return
    spread = fit.problem.objective.scale
    if not 1.0 / STANDARDISED <= spread <= STANDARDISED:
        yield (
            f"y has a spread of {spread:.3g}, and {type(loss).__name__} does not say how it changes with the units of "
            "y; alpha='auto' takes targets of size one for granted. Divide y by its spread, give the loss a degree, or "
            "give alpha a number."
        )
