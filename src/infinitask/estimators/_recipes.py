"""From the parameters of an estimator to a recipe."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import Constraint, check_parameters, number, parse_tasks
from infinitask.estimators._checks import check_domain, check_inside, check_nodes, check_specs, is_as_task, is_fraction
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import task_kernel
from infinitask.measures._spaces import as_measure
from infinitask.tasks import Order, Task

SPECS = ("kernel", "gamma", "task_kernel", "task_gamma", "bias_kernel", "quadrature", "features", "rank", "certify")
"""Parameters that a recipe takes over unchanged; objects are copied."""

SETTINGS = ("solver", "tol", "max_iter", "device", "random_state", "verbose")
"""Parameters of the solver and the machine that a recipe takes over unchanged."""


def check_given(model: Any, constraints: Mapping[str, Constraint]) -> None:
    """Raise an error for the first invalid parameter; ``constraints`` extend the common table."""
    given = model.get_params(deep=False)
    check_parameters(given, constraints)
    check_specs(given)


def recipe_of(model: Any, task: Task, *, own_measure: bool = False, **fixed: Any) -> Recipe:
    """Turn the parameters of an estimator into a recipe; ``fixed`` are choices that the estimator makes itself.

    The measure is the user's. It is the task's if the user gave none, or if ``own_measure`` is True. Specs are copied:
    later changes of a kernel object do not reach the fitted recipe.
    """
    given = model.get_params(deep=False)
    measure = task.measure if own_measure else as_measure(given.get("measure"), task.measure)
    check_domain(measure, task.loss)
    choices = {name: copy.deepcopy(given[name]) for name in SPECS if name in given}
    choices |= {name: given[name] for name in SETTINGS}
    alpha, alpha_bias = given.get("alpha", 1.0), given.get("alpha_bias")
    choices |= {"alpha": alpha if isinstance(alpha, str) else float(alpha)}
    choices |= {"alpha_bias": alpha_bias if isinstance(alpha_bias, (str, type(None))) else float(alpha_bias)}
    nodes = given.get("n_nodes")
    choices |= {"n_nodes": task.defaults.nodes if nodes is None else int(nodes)}
    return Recipe(copy.deepcopy(replace(task, measure=measure)), **(choices | fixed))


def check_default(model: Any, name: str, recipe: Recipe, *, strict: bool = False) -> bool:
    """Whether the parameter ``name`` is a single task; raises an error if the loss has no such task.

    The constructor's default may lie outside Θ, because a user who names a task in every prediction never uses it. A
    value that the user gave may not. ``strict``: the ends of the loss's domain are not tasks.
    """
    kind: type = type(model)
    value, default = getattr(model, name), _default(kind, name)
    if value is None and default is None:
        return True
    given = not (np.shape(value) == np.shape(default) and np.all(np.asarray(value) == np.asarray(default)))
    support = recipe.measure.support
    if not given:
        if recipe.measure.dim > 1 or not np.all(np.isfinite(recipe.loss.box(1))):
            return False
        support = recipe.loss.box(1)
    tasks, single = parse_tasks(value, name, support, percent=is_fraction(recipe.loss))
    atoms = recipe.measure.atoms()
    if given and atoms is not None and "diagonal" in (str(recipe.task_kernel), str(recipe.bias_kernel)):
        check_nodes(name, tasks, atoms.nodes)
    if strict:
        check_inside(name, tasks, recipe.loss)
    return single


@lru_cache(maxsize=64)
def _default(cls: type, name: str) -> Any:
    """The default of a constructor's parameter."""
    return inspect.signature(cls).parameters[name].default


def order_in_theta(model: Any, *, weight_if_rearranged: float) -> Order:
    """What the ``noncrossing`` parameters ask for: a penalty weight, a constraint, or sorted predictions."""
    noncrossing, common = model.noncrossing, (model.noncrossing_loss, inputs_of(model.noncrossing_inputs))
    if not isinstance(noncrossing, str):
        return Order(number("noncrossing", noncrossing, low=0.0, open_low=False), *common)
    if noncrossing == "hard":
        return Order(0.0, *common, hard=True)
    if noncrossing != "rearrange":
        raise ValueError(
            f"noncrossing={noncrossing!r} was given; it must be the weight of the penalty, a number of at "
            "least 0, or 'rearrange', which puts the predictions in order, or 'hard', which makes the order at the "
            "training inputs a constraint of the fit."
        )
    # sorting needs no derivative: a kernel without one is fitted without the penalty
    specs = [task_kernel(model.task_kernel)]
    specs += [] if is_as_task(model.bias_kernel) else [task_kernel(model.bias_kernel, name="bias_kernel")]
    smooth = all(spec.max_order > 0 for spec in specs)
    return Order(weight_if_rearranged if smooth else 0.0, *common, rearranged=True)


def inputs_of(noncrossing_inputs: Any) -> HostArray | None:
    """A copy of the inputs that a user named, or None."""
    return None if noncrossing_inputs is None else np.array(noncrossing_inputs, dtype=np.float64)
