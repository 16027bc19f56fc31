"""The conversion of the parameters of an estimator to a recipe, and checks of parameters and data.

Numbers, strings and flags are checked by the table of :mod:`infinitask._base.validation`.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, check_consistent_length, column_or_1d

from infinitask._base.arrays import HostArray
from infinitask._base.validation import Constraint, check_no_text, check_parameters, naming, number, parse_tasks
from infinitask.estimators._sources import on_host
from infinitask.fitting._pose import check_specs, is_as_task
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import task_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.measures._spaces import as_measure
from infinitask.tasks import Order, Task

SPECS = ("kernel", "gamma", "task_kernel", "task_gamma", "bias_kernel", "quadrature", "features", "rank", "certify")
"""Parameters copied to a recipe without changes; objects are copied."""

SETTINGS = ("solver", "tol", "max_iter", "device", "random_state", "verbose")
"""Parameters of the solver and the machine copied to a recipe without changes."""


ROUNDING = 1e-12
"""Tasks and costs that differ by less than this are equal."""


def check_given(given: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Raise an error for the first invalid parameter; ``constraints`` extend the common table."""
    check_parameters(given, constraints)
    check_specs(given)


def recipe_of(given: Mapping[str, Any], task: Task, *, own_measure: bool = False, **fixed: Any) -> Recipe:
    """Turn the parameters of an estimator into a recipe; ``fixed`` are choices that the estimator makes itself.

    The measure is that of the user. It is that of the task if the user gave none, or if ``own_measure`` is True. Specs
    are copied: later changes of a kernel object do not affect the fitted recipe.
    """
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

    The default of the constructor may be outside Θ because a user who names a task in every prediction never uses it. A
    value given by the user must be inside. ``strict``: the ends of the loss's domain are not tasks.
    """
    value, default = getattr(model, name), getattr(type(model), name)
    if value is None and default is None:
        return True
    given = not (np.shape(value) == np.shape(default) and np.all(np.asarray(value) == np.asarray(default)))
    support = recipe.task.measure.support
    if not given:
        if recipe.task.measure.dim > 1 or not np.all(np.isfinite(recipe.task.loss.box(1))):
            return False
        support = recipe.task.loss.box(1)
    tasks, single = parse_tasks(value, name, support, percent=is_fraction(recipe.task.loss))
    atoms = recipe.task.measure.atoms()
    if given and atoms is not None and "diagonal" in (str(recipe.task_kernel), str(recipe.bias_kernel)):
        check_nodes(name, tasks, atoms.nodes)
    if strict:
        check_inside(name, tasks, recipe.task.loss)
    return single


def order_in_theta(model: Any, *, weight_if_rearranged: float) -> Order:
    """The requirement of the ``noncrossing`` parameters: a penalty weight, a constraint, or sorted predictions."""
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
    """A copy of the features that a user named, or None."""
    return None if noncrossing_inputs is None else np.array(noncrossing_inputs, dtype=np.float64)


def named_tables(estimator: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tables of inputs among the parameters if X has named columns too, each with its parameter."""
    penalty = getattr(estimator, "penalty", None)
    given = [("noncrossing_inputs", getattr(estimator, "noncrossing_inputs", None))]
    given += [("IntegratedPenalty: inputs", one) for one in getattr(penalty, "inputs_given", ())]
    for name, inputs in given:
        if hasattr(inputs, "columns") and hasattr(estimator, "feature_names_in_"):
            yield name, inputs


def forget(estimator: Any) -> None:
    """Delete the fitted attributes of an estimator, those whose names end in an underscore."""
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)


# ------------------------------------------------------------------------------------ tasks, targets, weights
def stack_level() -> int:
    """The ``stacklevel`` at which a warning of the calling function points at the user's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("infinitask"):
        frame, level = frame.f_back, level + 1
    return level


def is_fraction(loss: Loss) -> bool:
    """Whether a task of this loss is a fraction, which users may give as a percentage by mistake."""
    return loss.domain == (0.0, 1.0)


def check_nodes(name: str, tasks: HostArray, nodes: HostArray) -> HostArray:
    """Return the nodes (m, d) equal to the tasks (q, d) up to rounding; raise an error if a task is not a node."""
    same = np.all(np.abs(tasks[:, None, :] - nodes[None]) <= ROUNDING, axis=2)
    known = np.any(same, axis=1)
    if not np.all(known):
        raise ValueError(
            f"{name} contains {np.squeeze(tasks[~known][0])}, which is not a node; the model knows "
            f"{np.squeeze(nodes, axis=1).tolist() if nodes.shape[1] == 1 else nodes.tolist()} and nothing between. Ask "
            "for one of these, or fit with other tasks or another kernel of tasks."
        )
    return np.asarray(nodes[np.argmax(same, axis=1)])


def check_inside(name: str, tasks: HostArray, loss: Loss) -> None:
    """Raise an error if a task is an end of the loss's domain."""
    low, high = loss.domain
    if not (low < tasks.min() and tasks.max() < high):
        raise ValueError(
            f"{name} contains {low:g} or {high:g}, where no finite prediction exists; ask for levels strictly between."
        )


def check_domain(measure: Measure, loss: Loss) -> None:
    """Raise an error if the loss is not defined on all of Θ."""
    if loss.dim not in (None, measure.dim):
        raise ValueError(
            f"measure={measure!r} lives in {measure.dim} dimensions; {type(loss).__name__} takes θ of dimension "
            f"{loss.dim}."
        )
    (low, high), (first, last) = measure.support, loss.box(measure.dim)
    if not (np.all(low >= first) and np.all(high <= last)):
        several = measure.dim > 1
        hint = ", or give the loss a domain with one pair for each coordinate" if several else ""
        raise ValueError(
            f"measure={measure!r} lives on {_box(low, high)}; {type(loss).__name__} is defined for θ in "
            f"{_box(first, last)}. Restrict the measure to {'these intervals' if several else 'that interval'}{hint}."
        )


def _box(low: HostArray, high: HostArray) -> str:
    """Format the intervals of a box, one for each coordinate."""
    return " × ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high, strict=True))


def targets_of(X: Any, y: Any) -> HostArray:
    """Return y as finite numbers, one for each row of X."""
    check_no_text("y", y)
    with naming("y"):
        y = check_array(column_or_1d(on_host(y)), ensure_2d=False, dtype=np.float64, input_name="y")
        check_consistent_length(X, y)
    return np.asarray(y)


def weights_of(sample_weight: Any, X: Any) -> HostArray:
    """Return nonnegative weights, one for each row of X, not all of them 0; None: 1 each."""
    with naming("sample_weight"):
        weight = _check_sample_weight(on_host(sample_weight), X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weight > 0.0):
        raise ValueError("sample_weight is zero for every row; at least one row must count.")
    return np.asarray(weight)
