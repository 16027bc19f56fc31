"""Validation of arguments.

Error messages state what was given, what is expected and what to do. Parameters of estimators that are numbers, strings
or flags are checked by one table, :data:`CONSTRAINTS`; an estimator that allows more or fewer values declares them in
its ``_constraints``. Everything else is checked where it is used, with the functions of this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from reprlib import Repr
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, to_host

LARGEST = 1e100
"""Magnitudes beyond this overflow if squared and summed; below its inverse they underflow."""

SUPPORT_SLACK = 1e-7
"""The tolerance for tasks in single precision at the ends of an interval."""

NO_NUMBERS = re.compile("Input X contains NaN|could not convert string|DateTime64DType")
"""Parts of the errors of scikit-learn, Python and NumPy about features that are missing, strings or dates."""

FOR_TABLES = "If X is a table, infinitask.tabular(model) takes missing values and categories."
"""The end of an error about such features."""


# ---------------------------------------------------------------------------------------------- single values
def number(
    name: str,
    value: Any,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = True,
    open_high: bool = False,
    hint: str = "",
) -> float:
    """Return ``value`` as a finite float in the interval, or raise an error."""
    known = is_number(value)
    above = known and (value > low if open_low else value >= low)
    below = known and (value < high if open_high else value <= high)
    if not (above and below):
        bounds = [] if low == -math.inf else [f"{'above' if open_low else 'at least'} {low:g}"]
        bounds += [] if high == math.inf else [f"{'below' if open_high else 'at most'} {high:g}"]
        interval = f" {' and '.join(bounds)}" if bounds else ""
        raise ValueError(f"{name}={value!r} was given; it must be a finite number{interval}.{hint and ' ' + hint}")
    return float(value)


def fraction(name: str, value: Any, *, open_low: bool = True, open_high: bool = True, hint: str = "") -> float:
    """Return ``value`` as a float between 0 and 1, or raise an error that suggests a percentage."""
    hints = " ".join(filter(None, (hint, percent_meant(value))))
    return number(name, value, low=0.0, high=1.0, open_low=open_low, open_high=open_high, hint=hints)


def percent_meant(value: Any) -> str:
    """Return a question to a user who passed 95 instead of .95; empty for values that are not percentages."""
    return f"Did you mean {value / 100.0:g}?" if is_number(value) and 1.0 < value <= 100.0 else ""


def count(name: str, value: Any, *, least: int = 1, hint: str = "") -> int:
    """Return ``value`` as an integer of at least ``least``, or raise an error."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        given = _SHORT.repr(value)
        raise ValueError(f"{name}={given} was given; it must be an integer of at least {least}.{hint and ' ' + hint}")
    return int(value)


def choice(name: str, value: Any, options: Sequence[str], also: str = "") -> str:
    """Return ``value`` if it is one of some strings, or raise an error; ``also`` names other allowed values."""
    if not isinstance(value, str) or value not in options:
        words = ", ".join(map(repr, options))
        raise ValueError(f"{name}={value!r} was given; it must be one of {words}{also}.")
    return value


def flag(name: str, value: Any) -> bool:
    """Return ``value`` as True or False, or raise an error."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r} was given; it must be True or False.")
    return bool(value)


def jobs(name: str, value: Any) -> int | None:
    """Return ``value`` as a number of processes, which may be negative as in joblib, or None."""
    if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value == 0):
        raise ValueError(
            f"{name}={value!r} was given; it must be None, a number of processes, or −1 for as many as there are cores."
        )
    return None if value is None else int(value)


def seed(name: str, value: Any) -> Any:
    """Return ``value`` if scikit-learn accepts it as a random state, or raise an error."""
    known = isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**32
    if not (value is None or value is np.random or known or isinstance(value, np.random.RandomState)):
        raise ValueError(
            f"{name}={value!r} was given; it must be a seed, an integer from 0 to 2**32 − 1, or a "
            "numpy.random.RandomState, or None."
        )
    return value


def rule_or_positive(name: str, value: Any, rules: Sequence[str]) -> float | str:
    """Return ``value`` as a positive finite float or one of some strings, or raise an error."""
    if isinstance(value, str) and value in rules:
        return value
    if not is_number(value) or not value > 0.0:
        words = " or ".join(map(repr, rules))
        raise ValueError(f"{name}={value!r} was given; it must be a positive finite number, {words}.")
    return float(value)


def flag_or_choice(name: str, value: Any, options: Sequence[str]) -> bool | str:
    """Return ``value`` as True, False or one of some strings, or raise an error."""
    return bool(value) if isinstance(value, (bool, np.bool_)) else choice(name, value, options, ", True or False")


def positive_numbers(name: str, values: Any) -> HostArray:
    """Return ``values`` as a list of positive finite numbers, or raise an error."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.ndim != 1 or numbers.size == 0 or not np.all(np.isfinite(numbers) & (numbers > 0.0)):
        raise ValueError(f"{name}={values!r} was given; it must be a list of positive finite numbers.")
    return numbers


# ------------------------------------------------------------------------------- parameters of the estimators
Constraint = Callable[[str, Any], Any]
"""A check of (name, value) that raises an error if the value is invalid."""


def optional(check: Constraint) -> Constraint:
    """Return the same check for a parameter that may be None."""
    return lambda name, value: None if value is None else check(name, value)


def or_auto(check: Constraint) -> Constraint:
    """Return the same check for a parameter that may be "auto"."""

    def checked(name: str, value: Any) -> Any:
        if isinstance(value, str) and value == "auto":
            return value
        try:
            return check(name, value)
        except ValueError as error:
            raise ValueError(f"{str(error).rstrip('.')}, or 'auto'.") from None

    return checked


CONSTRAINTS: dict[str, Constraint] = {
    "alpha": or_auto(partial(number, low=0.0)),
    "alpha_bias": optional(partial(number, low=0.0, open_low=False)),
    "certify": optional(partial(choice, options=("kernel",), also=", or None")),
    "calibrated": partial(flag_or_choice, options=("auto",)),
    "exact_fractions": partial(flag_or_choice, options=("auto", "held-out")),
    "gamma": partial(rule_or_positive, rules=("auto", "median", "scale")),
    "max_iter": count,
    "max_seconds": optional(partial(number, low=0.0)),
    "n_jobs": jobs,
    "n_nodes": optional(count),
    "nested": flag,
    "noncrossing_inputs": lambda name, value: None if value is None else finite(name, np.asarray(value), 2),
    "noncrossing_loss": partial(choice, options=("hinge", "smoothed", "squared")),
    "on_interrupt": partial(choice, options=("raise", "best")),
    "random_state": seed,
    "rank": optional(or_auto(count)),
    "rule": partial(choice, options=("one-se", "best")),
    "smoothing": partial(number, low=0.0, open_low=False),
    "solver": partial(choice, options=("auto", "lbfgs", "newton")),
    "task_gamma": optional(partial(rule_or_positive, rules=("median",))),
    "tol": partial(number, low=0.0, high=1.0, open_high=True, hint="It is a gap relative to the objective."),
    "verbose": lambda name, value: count(name, int(value) if isinstance(value, bool) else value, least=0),
    "warm_start": lambda name, value: flag(name, bool(value) if type(value) is int and value in (0, 1) else value),
}
"""The constraints on parameters of estimators, by name. Kernels, measures, rules and features are specs:
they are checked by the functions that convert them to objects."""


def check_parameters(parameters: Mapping[str, Any], own: Mapping[str, Constraint]) -> None:
    """Raise an error for the first parameter that violates its constraint; ``own`` replaces lines of the table."""
    for name, value in parameters.items():
        constraint = own.get(name) or CONSTRAINTS.get(name)
        if constraint is not None:
            constraint(name, value)


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the name of an argument before an error of scikit-learn, joblib or NumPy that does not contain it.

    If X contains missing values or strings, the error ends with models that support them.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        text = str(error)
        is_named = re.search(rf"(?<![A-Za-z]){name}(?![a-z])", text) is not None
        for_tables = name.startswith("X") and NO_NUMBERS.search(text) is not None
        if for_tables:  # the lines after the first recommend models of other libraries
            text = f"{text.partition(chr(10))[0].rstrip('.')}. {FOR_TABLES}"
        if is_named and not for_tables:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        were = "were" if " and " in name else "was"
        raise kind(text if is_named else f"{name} {were} refused. {text}") from error


# ------------------------------------------------------------------------------------------- tasks and data
def check_no_text(name: str, values: Any) -> None:
    """Raise an error if targets that must be numbers hold text that is not a number, or several fields."""
    if getattr(getattr(values, "dtype", None), "names", None) is not None:
        raise ValueError(
            f"{name} has the fields {values.dtype.names}; this model needs targets that are numbers. Times with events "
            "are for InfiniteCensoredQuantileRegressor by itself, in a pipeline or in a search."
        )
    if getattr(getattr(values, "dtype", None), "kind", "") in ("O", "U", "S"):
        values = np.ravel(np.asarray(values, dtype=object))
    elif not isinstance(values, (list, tuple)):
        return
    for value in values:
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                raise ValueError(
                    f"{name} holds text, such as {value!r}; this model needs targets that are numbers. For classes "
                    "take InfiniteCostSensitiveClassifier."
                ) from None


def parse_tasks(
    theta: Any, name: str, support: tuple[HostArray, HostArray], *, percent: bool = False
) -> tuple[HostArray, bool]:
    """Return θ as (q, d) inside the support, and whether it was a single task without a list around it.

    Parameters
    ----------
    theta : array-like
    name : str
        The name of the argument.
    support : (ndarray (d,), ndarray (d,))
        The bounds (low, high) of Θ; they are widened by a rounding error of single precision.
    percent : bool
        Whether a task is a fraction, in which case 95 probably means 0.95.
    """
    low, high = support
    d = low.size
    tasks = numbers(name, theta)
    # for d = 1 a task is a number; otherwise, and from here on, it is a row of d numbers
    rows = tasks[..., None] if d == 1 and tasks.ndim < 2 else tasks
    if rows.ndim not in (1, 2) or rows.shape[-1] != d or rows.size == 0:
        expected = "a number or an array of shape (q,)" if d == 1 else f"an array of shape ({d},) or (q, {d})"
        raise ValueError(f"{name} of shape {tasks.shape} was given; it must be {expected}, and not empty.")
    tasks, single = rows.reshape(-1, d), rows.ndim == 1
    if d == 1 and low[0] <= tasks.min() and tasks.max() <= high[0]:  # a fast path for the usual case
        return tasks, single
    inside = in_support(tasks, support)
    if not np.all(inside):
        where = ", ".join(f"[{a:g}, {b:g}]" for a, b in zip(low, high, strict=True))
        wrong = tasks[~inside][0]
        meant = percent_meant(wrong[0]) if percent and in_support(wrong[None] / 100.0, support)[0] else ""
        raise ValueError(
            f"{name} contains {wrong[0] if d == 1 else tuple(wrong.tolist())}, outside Θ = {where} on which the model "
            f"is trained. Ask for a value inside, or fit with a measure that covers it.{meant and ' ' + meant}"
        )
    return tasks, single


def in_support(tasks: HostArray, support: tuple[HostArray, HostArray]) -> HostArray:
    """Return whether tasks (q, d) are finite and within the bounds, up to a rounding error of single precision."""
    low, high = support
    bounds = np.abs(np.stack(support))
    slack = SUPPORT_SLACK * np.max(np.where(np.isfinite(bounds), bounds, 0.0), axis=0)
    return np.asarray(np.all(np.isfinite(tasks) & (tasks >= low - slack) & (tasks <= high + slack), axis=1))


def check_magnitude(name: str, values: HostArray, smallest: float = 1.0 / LARGEST) -> None:
    """Raise an error for values whose squares overflow or underflow."""
    size = float(np.max(np.abs(values)))
    if size > LARGEST or 0.0 < size < smallest:
        raise ValueError(
            f"{name} holds values of magnitude {size:.1e}; beyond 1e±100 sums of squares leave the range of "
            f"floating point. Rescale {name}, for instance with StandardScaler."
        )


# ------------------------------------------------------------------------------------------- arrays of numbers
_SHORT = Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxarray = 4
_SHORT.maxother = 60


def is_number(value: Any) -> bool:
    """Return whether ``value`` is a finite real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and math.isfinite(value)


def numbers(name: str, values: Any) -> HostArray:
    """Return ``values`` as an array of numbers of any shape, or raise an error that shows the first values."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        given = _SHORT.repr(values)
        raise ValueError(f"{name}={given} was given; it must be a number or an array of numbers.") from None


def finite(name: str, values: Any, ndim: int) -> HostArray:
    """Return ``values`` as a nonempty array of finite numbers with ``ndim`` axes, or raise an error."""
    array = numbers(name, to_host(values) if hasattr(values, "shape") else values)
    if array.ndim != ndim or array.size == 0:
        axes = "one-dimensional" if ndim == 1 else "two-dimensional"
        raise ValueError(f"{name} of shape {array.shape} was given; it must be {axes} and not empty.")
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} contains NaN or infinity; remove or replace these entries.")
    return array


# ------------------------------------------------------------------------------------------ arguments of metrics
def targets(y_true: Any) -> HostArray:
    """Return targets (n,); a single column is accepted as a vector."""
    y = numbers("y_true", y_true)
    return finite("y_true", y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, 1)


def levels_within(
    name: str, levels: Any, low: float, high: float, *, open_low: bool = False, open_high: bool = False
) -> HostArray:
    """Return levels (q,) in the interval, closed by default; a single number is one level."""
    found = finite(name, np.atleast_1d(numbers(name, levels)), 1)
    outside = (found <= low if open_low else found < low) | (found >= high if open_high else found > high)
    if np.any(outside):
        first = float(found[outside][0])
        meant = percent_meant(first) if (low, high) == (0.0, 1.0) else ""
        interval = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
        strictly = "strictly " * (open_low and open_high)
        raise ValueError(
            f"{name} contains {first:g}, outside {interval}; give levels {strictly}inside.{meant and ' ' + meant}"
        )
    return found


def coverages(coverage: Any, *, open_high: bool = True) -> tuple[HostArray, bool]:
    """Return coverages (q,) between 0 and 1, and whether one was given without a list around it."""
    single = np.ndim(coverage) == 0
    if single:
        return np.array([fraction("coverage", coverage, open_high=open_high)]), True
    return levels_within("coverage", coverage, 0.0, 1.0, open_low=True, open_high=open_high), False


def predictions(y_pred: Any, n: int, q: int, what: str, name: str = "y_pred") -> HostArray:
    """Return predictions (n, q) for n samples and q levels; (n,) is accepted as one level."""
    found = numbers(name, y_pred)
    found = finite(name, found[:, None] if found.ndim == 1 and q == 1 else found, 2)
    if found.shape != (n, q):
        raise ValueError(
            f"{name} of shape {found.shape} was given for {n} samples and {q} {what}; it must be ({n}, {q})."
        )
    return found


def intervals(y_interval: Any) -> tuple[HostArray, HostArray]:
    """Return lower and upper ends, (n,) of intervals (n, 2) or (n, q) of (n, q, 2); −∞ and +∞ are allowed."""
    ends = numbers("y_interval", y_interval)
    if ends.ndim not in (2, 3) or ends.shape[-1] != 2 or ends.size == 0:
        raise ValueError(
            f"y_interval of shape {ends.shape} was given; it must be (n, 2), lower and upper ends, or (n, q, 2) for q "
            "coverages."
        )
    low, high = ends[..., 0], ends[..., 1]
    if np.any(np.isnan(ends)):
        raise ValueError("y_interval contains NaN; remove or replace these entries.")
    if np.any(low == np.inf) or np.any(high == -np.inf):
        raise ValueError(
            "y_interval contains a lower end of +∞ or an upper end of −∞; an interval without limits is (−∞, +∞)."
        )
    return low, high


def nonnegative(name: str, values: Any, n: int, of: str) -> HostArray:
    """Return nonnegative numbers (n,), or raise an error; ``of`` names the items that have one each."""
    found = finite(name, values, 1)
    if found.shape != (n,) or np.any(found < 0.0):
        raise ValueError(
            f"{name} of shape {found.shape} with smallest value {np.min(found):g} was given for {n} {of}; give one "
            "number ≥ 0 for each."
        )
    return found


def shares(weights: Any, n: int, name: str = "sample_weight", of: str = "samples") -> HostArray:
    """Return weights (n,) divided by their sum; None: 1/n each."""
    if weights is None:
        return np.full(n, 1.0 / n)
    weight = finite(name, weights, 1)
    if weight.shape != (n,) or np.any(weight < 0.0) or not np.any(weight > 0.0):
        raise ValueError(
            f"{name} of shape {weight.shape} was given for {n} {of}; give one nonnegative number for each, not all of "
            "them 0."
        )
    if np.max(weight) > LARGEST:  # the sum cannot overflow then
        weight = weight / np.max(weight)
    return np.asarray(weight / np.sum(weight))


# ------------------------------------------------------------------------------------------ arguments of kernels
def polynomial_parameters(owner: str, degree: Any, coef0: Any) -> tuple[int, float]:
    """Return a degree ≥ 1 and a constant ≥ 0; for others (u + c)^degree is not a kernel."""
    needs = f"{owner} needs a whole degree ≥ 1 and a finite coef0 ≥ 0 to be a kernel:"
    return count(f"{needs} degree", degree), number(f"{needs} coef0", coef0, low=0.0, open_low=False)
