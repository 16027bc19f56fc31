"""All choices of a fit as one object, and the units in which its problem is solved: y = centre + spread · y'.

A problem is posed for targets y' of size one in any units of y. With a loss of degree p, ℓ(a r) = a^p ℓ(r), and
f = centre + spread · f',

    P(f; λ) = spread^p · P'(f'; spread^(2−p) λ) ,

so only numbers change. The problem and the predictions are those of the user, and y → a·y + b transforms the
predictions in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray, place, weighted_quantiles
from infinitask._base.validation import check_parameters
from infinitask.field import Field
from infinitask.losses import Loss
from infinitask.losses._checks import check_units
from infinitask.measures import Measure
from infinitask.solvers import Solution
from infinitask.tasks import Task

NO_SPREAD = 1e-13
"""A spread below this fraction of the targets is a rounding error: they are all equal."""

USUAL_SHARE = 0.9
"""The size of typical targets is this quantile of their distances from the centre."""

TOO_FAR = 1e12
"""The maximum distance of a target from the centre, in typical sizes: beyond it, rounding hides the other rows."""


@final
@dataclass(frozen=True)
class Units:
    """The units of targets: y' = (y − centre)/spread.

    Parameters
    ----------
    centre : float
        0 unless the bias is free: otherwise a constant is penalised.
    spread : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> units = Units.of(np.array([100.0, 103.0, 101.0, 1e9]), np.full(4, 0.25), centred=True)
    >>> units
    Units(centre=102.0, spread=1.5)
    >>> units.inside(np.array([105.0]))
    array([2.])
    """

    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def of(cls, y: HostArray, weight: HostArray, *, centred: bool) -> Units:
        """Return units that are robust to outliers: the median of targets and their median distance from it.

        Parameters
        ----------
        y : ndarray (n,) or (n, m)
        weight : ndarray (n,), or (n, m) if every target has its own weight
        centred : bool
            Whether the centre may be subtracted.
        """
        values = np.ravel(y)
        shares = np.repeat(weight, values.size // weight.size) if weight.ndim == 1 else np.ravel(weight)
        if weight.ndim == 2:  # the value of a missing target is arbitrary
            values, shares = values[shares > 0.0], shares[shares > 0.0] / np.sum(shares)
        centre = float(_middles(values, shares, np.array([0.5]))[0])
        away = np.abs(values - centre)
        size = max(abs(centre), float(np.max(np.abs(values))) * NO_SPREAD)
        # the median distance or, if more than half of the targets are equal, the first quantile that is not 0
        found = (float(v) for v in _middles(away, shares, np.array([0.5, 0.75, 0.9, 0.95, 0.99, 1.0])))
        spread = next((v for v in found if v > NO_SPREAD * size), size if size > 0.0 else 1.0)
        return cls(centre if centred else 0.0, spread)

    def inside(self, y: HostArray) -> HostArray:
        """Return y' for targets y."""
        return np.asarray((y - self.centre) / self.spread)

    def field(self, field: Field) -> Field:
        """Convert a field of y' to a field of y."""
        bias = None if field.bias_coef is None else self.spread * field.bias_coef
        offset = self.centre + self.spread * field.offset
        return replace(field, coef=self.spread * field.coef, bias_coef=bias, offset=offset)

    def solution(self, solution: Solution, degree: int) -> Solution:
        """Convert the bounds of a solution to units of the loss of y; the unknowns are those of the posed problem."""
        unit = self.spread**degree
        history = solution.history * np.array([1.0, unit, unit])
        return replace(solution, objective=unit * solution.objective, dual=unit * solution.dual, history=history)


@dataclass(frozen=True)
class Recipe:
    """All choices of a fit: what to learn, and how.

    Most names are those of the estimators' parameters; numbers are checked when a recipe is created, kernels, rules and
    features when they are used. A fit refers to its recipe, so a recipe is immutable:
    :func:`dataclasses.replace` and :meth:`with_task` create a new one.
    """

    task: Task
    """The problem, and everything specific to it."""
    kernel: Any = "rbf"
    gamma: Any = "median"
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    bias_kernel: Any = "task"
    alpha: Any = 1e-3
    """λ; "auto": chosen from the data."""
    alpha_bias: Any = None
    """λ_b; None: equal to λ; 0: the bias is free."""
    units: Units | None = None
    """The units of targets in which a problem is solved; None: derived from the data."""
    quadrature: Any = "gauss-legendre"
    n_nodes: int = 50
    features: Any = "auto"
    rank: int | str | None = None
    """The maximum number of features; "auto": increased until the kernel gap is small."""
    certify: str | None = None
    """"kernel": the distance from the model of the kernel itself is bounded."""
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    device: str | None = None
    random_state: Any = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_parameters(vars(self), {})

    def with_task(self, **changes: Any) -> Recipe:
        """Return the recipe with a modified task."""
        return replace(self, task=replace(self.task, **changes))

    @property
    def offset(self) -> float:
        """The constant subtracted from the targets before the fit, and added to the predictions."""
        return 0.0 if self.units is None else self.units.centre

    @property
    def bias_is_free(self) -> bool:
        """Whether there is a bias without a ridge."""
        return self.bias_kernel is not None and self.alpha_bias == 0.0


def check_far_targets(y: HostArray, weight: HostArray) -> None:
    """Raise an error if one outlier among the targets is so large that double precision loses the others.

    The objective of a loss of degree one is a sum of distances. With one distance of 1e18 among distances of size one,
    it is the same number for any predictions of the others, and every fit appears optimal.

    Parameters
    ----------
    y : ndarray (n,) or (n, m)
    weight : ndarray (n,), or (n, m) if every target has its own weight

    Examples
    --------
    >>> check_far_targets(np.array([1.0, 2.0, 4.0, 1e9]), np.full(4, 0.25))
    """
    shares = np.broadcast_to(weight if weight.ndim == y.ndim else weight[:, None], y.shape)
    values, shares = y[shares > 0.0], shares[shares > 0.0] / np.sum(shares)
    centre = float(_middles(values, shares, np.array([0.5]))[0])
    away = np.abs(values - centre)
    usual = float(weighted_quantiles(away, shares, np.array([USUAL_SHARE]))[0])
    farthest = int(np.argmax(away))
    if usual > NO_SPREAD * abs(centre) and away[farthest] > TOO_FAR * usual:
        raise ValueError(
            f"The target {values[farthest]:g} is {away[farthest] / usual:.1g} times as far from the median as nine of "
            f"ten others; beyond {TOO_FAR:g} double precision loses the others. Remove it if it is a mistake, or "
            "learn from a transformed y, such as its logarithm."
        )


def check_loss(loss: Loss, measure: Measure, units: Units, y: HostArray, device: str | None = None) -> None:
    """Raise an error if a custom loss does not scale with the units of y as its degree claims.

    Parameters
    ----------
    loss : Loss
        Losses of this library are not checked at every fit, but in its tests.
    measure : Measure
    units : Units
    y : ndarray (n,) or (n, m)
    device : str or None
        The device on which the loss is computed.

    Examples
    --------
    >>> from infinitask.tasks import QuantileTask
    >>> from infinitask.measures import Uniform
    >>> check_loss(QuantileTask().loss, Uniform(), Units(), np.array([1.0, 2.0]))
    """
    if loss.degree is None or loss.degree_verified:
        return
    atoms = measure.atoms()
    shares = np.random.default_rng(0).uniform(size=(24, measure.dim))
    nodes = measure.ppf(shares) if atoms is None else atoms.nodes
    theta = nodes[:, 0] if measure.dim == 1 else nodes
    check_units(loss, place(theta, device), y if y.ndim == 2 else y[:, None], units.centre, units.spread)


def _middles(y: HostArray, weight: HostArray, levels: HostArray) -> HostArray:
    """Return quantiles (q,), as midpoints of intervals: −y has the units of y, and repeated rows those of weights.

    With an even number of rows the sum of half of the weights is 0.5 up to rounding, above or below.
    """
    below = weighted_quantiles(y, weight, np.maximum(levels - 1e-9, 0.0))
    return 0.5 * below + 0.5 * weighted_quantiles(y, weight, np.minimum(levels + 1e-9, 1.0))
