"""All choices of a fit, as one value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from infinitask._base.validation import check_parameters
from infinitask.fitting._units import Units
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.penalties import Penalty
from infinitask.tasks import Order, Task


@dataclass(frozen=True)
class Recipe:
    """What to learn, and how: all choices of a fit.

    Most names are those of the estimators' parameters; numbers are checked when a recipe is made, kernels, rules and
    features when they are used. What is read after a fit is read from its recipe, so a recipe is never changed:
    :func:`dataclasses.replace` and :meth:`with_task` make another one.
    """

    task: Task
    """The problem, and all that is particular to it."""
    kernel: Any = "rbf"
    gamma: Any = "median"
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    bias_kernel: Any = "task"
    alpha: Any = 1e-3
    """λ; "auto": chosen from the data."""
    alpha_bias: float | None = None
    """λ_b; None: as λ; 0: the bias is free."""
    units: Units | None = None
    """How targets are measured while a problem is solved; None: from the data."""
    quadrature: Any = "gauss-legendre"
    n_nodes: int = 50
    features: Any = "auto"
    rank: int | str | None = None
    """The most features; "auto": grown until the kernel gap is small."""
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
        """The recipe with other parts of its task."""
        return replace(self, task=replace(self.task, **changes))

    @property
    def loss(self) -> Loss:
        """That of the task."""
        return self.task.loss

    @property
    def measure(self) -> Measure:
        """That of the task."""
        return self.task.measure

    @property
    def penalty(self) -> Penalty:
        """That of the task."""
        return self.task.penalty

    @property
    def order(self) -> Order:
        """That of the task."""
        return self.task.order

    @property
    def offset(self) -> float:
        """What is subtracted from the targets before the fit, and added to the predictions."""
        return 0.0 if self.units is None else self.units.centre

    @property
    def bias_ridge(self) -> float:
        """λ_b as a number."""
        return float(self.alpha if self.alpha_bias is None else self.alpha_bias)

    @property
    def bias_is_free(self) -> bool:
        """Whether there is a bias that nothing but the data holds."""
        return self.bias_kernel is not None and self.alpha_bias == 0.0


def in_units(recipe: Recipe) -> Recipe:
    """The same problem for targets in the units of the recipe."""
    units, degree = recipe.units, recipe.loss.degree
    if units is None or degree is None:
        return recipe
    ridge = units.spread ** (2 - degree)
    return replace(
        recipe,
        task=recipe.task.in_units(units.spread),
        alpha=ridge * recipe.alpha,
        alpha_bias=None if recipe.alpha_bias is None else ridge * recipe.alpha_bias,
        units=None,
    )
