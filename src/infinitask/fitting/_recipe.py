"""All choices of a fit, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from infinitask._base.arrays import HostArray
from infinitask._base.validation import check_parameters, number
from infinitask.fitting._units import Units
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.penalties import Penalty


@dataclass(frozen=True)
class Recipe:
    """What to learn, and how: all choices of a fit.

    Most names are those of the estimators' parameters; numbers are checked when a recipe is made, kernels, rules and
    features when they are used. What is read after a fit is read from its recipe, so a recipe is never changed:
    :func:`dataclasses.replace` makes another one.
    """

    loss: Loss
    measure: Measure
    penalty: Penalty
    kernel: Any = "rbf"
    gamma: Any = "median"
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    task_gaps: float | None = None
    """Where ``task_gamma`` is None: σ = (2γ)^(−1/2) in mean gaps between neighbouring nodes, at most the median
    distance of all nodes; None: σ is that median distance."""
    bias_kernel: Any = "task"
    alpha: Any = 1e-3
    """λ; "auto": chosen from the data, see :mod:`~infinitask.fitting._defaults`."""
    alpha_bias: float | None = None
    """λ_b; None: as λ; 0: the bias is free."""
    bias_slope: float = 0.0
    """v of the term ∫ v b dμ that is linear in the bias: 1 for level sets, where b = −t."""
    noncrossing: float = 0.0
    noncrossing_loss: str = "hinge"
    """What λ_nc weighs: see :func:`~infinitask.penalties.noncrossing_penalty`; "smoothed" has the κ of the loss."""
    noncrossing_inputs: HostArray | None = None
    """Where order in θ is asked for, (k, d); None: at the training inputs."""
    hard: bool = False
    """Whether order in θ at the training inputs is a constraint; see :mod:`~infinitask.solvers._order`."""
    rearranged: bool = False
    """Whether predictions are put in order over θ; see :class:`~infinitask.predictive.Rearrangement`."""
    exact_fractions: bool | str = False
    """Whether a threshold is set last so that the fraction outside is θ, of the rows of the fit (True) or of new ones
    ("left-out"); see :mod:`~infinitask.calibration._thresholds`."""
    chosen: bool = False
    """Whether λ was "auto"."""
    calibrated: bool = False
    """Whether decisions are calibrated on held-out rows; see :mod:`~infinitask.calibration._thresholds`."""
    units: Units | None = None
    """How targets are measured while a problem is solved; None: from the data."""
    quadrature: Any = "gauss-legendre"
    n_nodes: int = 50
    features: Any = "auto"
    rank: int | str | None = None
    """The most features; "auto": grown until the kernel gap is small, see :mod:`~infinitask.fitting._learn`."""
    certify: str | None = None
    """"kernel": whether the distance from the model of the kernel itself is bounded, see
    :mod:`~infinitask.fitting._kernel_gap`."""
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    device: str | None = None
    random_state: Any = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_parameters(vars(self), {"noncrossing": partial(number, low=0.0, open_low=False)})

    @property
    def offset(self) -> float:
        """What is taken off the targets before the fit, and added to the answers."""
        return 0.0 if self.units is None else self.units.centre

    @property
    def bias_ridge(self) -> float:
        """λ_b as a number."""
        return float(self.alpha if self.alpha_bias is None else self.alpha_bias)

    @property
    def bias_is_free(self) -> bool:
        """Whether there is a bias that nothing but the data holds."""
        return self.bias_kernel is not None and self.alpha_bias == 0.0

    @property
    def orders(self) -> tuple[int, ...]:
        """The derivatives in θ that the objective looks at."""
        return (0, 1) if self.noncrossing > 0.0 or self.hard else (0,)

    @property
    def named_inputs(self) -> HostArray | None:
        """``noncrossing_inputs``, if the objective looks at them."""
        return self.noncrossing_inputs if len(self.orders) > 1 else None


def in_units(recipe: Recipe) -> Recipe:
    """The same problem for targets in the units of the recipe."""
    units, degree = recipe.units, recipe.loss.degree
    if units is None or degree is None:
        return recipe
    ridge = units.spread ** (2 - degree)
    of_slopes = 2 if recipe.noncrossing_loss == "squared" else 1
    return replace(
        recipe,
        loss=recipe.loss.in_units(units.spread),
        alpha=ridge * recipe.alpha,
        alpha_bias=None if recipe.alpha_bias is None else ridge * recipe.alpha_bias,
        noncrossing=units.spread ** (of_slopes - degree) * recipe.noncrossing,
        units=None,
    )
