r"""Resolve the defaults of a recipe: the units of y, the scale of each feature, λ, and the ridge of a free bias.

A number given by the user is used unchanged, in the user's units. "auto" is resolved here, before the problem is
posed, in some milliseconds:

* ``gamma="auto"``: each feature is scaled by its own spread; the length scale is the median distance or, if λ is
  "auto" too, 2 or 4 times that, or half;
* ``alpha="auto"``: λ.

Both minimise the leave-one-out error of a kernel ridge regression of the normal scores of y. Normal scores make the
choice independent of outliers and of the units of y. Classification regresses an indicator for each class and adds the
errors. It also tries one scale for all features. With the features √ω φ = U diag(√e) Vᵀ, which include the constant,
and the residuals r = (I − S) √ω t, the error for all λ is

.. math:: \sum_i \Big( \frac{r_i}{1 - S_{ii}} \Big)^2, \qquad
    S = U \, \mathrm{diag}\Big( \frac{e}{e + \lambda} \Big) U^\top .

The largest λ that is about as good as the best one is selected. A loss that is less curved than the square needs a
smaller λ for the same smoothing: see :class:`~infinitask.tasks.Defaults` of its task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from sklearn.base import clone

from infinitask._base.arrays import HostArray, normal_scores
from infinitask.features import PivotedCholesky
from infinitask.fitting._data import Data
from infinitask.fitting._pose import ALL_BUT_FREE, ALL_BUT_FREE_AT_NODES
from infinitask.fitting._recipe import Recipe, Units, check_far_targets, check_loss
from infinitask.kernels import RBF, Chi2, InputKernel, Matern, Metric, Scaled, input_kernel, takes_gamma, task_kernel
from infinitask.tasks import Task

MAX_ROWS, MAX_FEATURES = 1_000, 300
"""The maximum numbers of rows and features of the regressions that select bandwidth and λ."""

RIDGES: HostArray = np.logspace(-7.0, 1.0, 33)
"""The candidates of λ for a kernel with k(x, x) = 1; the grid is longer for larger and smaller kernels."""

RUNS_OF_NODES = 10
"""The number of runs of neighbouring nodes over which curves with missing points are averaged."""

GAMMA_FACTORS = (1.0, 1 / 16, 1 / 4, 4.0)
"""Candidate multiples of the γ of the median rule: length scales of 1, 4, 2 and ½ times the median distance."""

MAX_SCALED_FEATURES, MIN_ROWS_FOR_SCALES, ROWS_PER_SCALE = 60, 200, 8
"""A scale for each feature is tried with at most 60 features, at least 200 rows, and at least 8 rows for each feature.
With fewer rows the result is unreliable; with more features a fit takes a quarter longer."""

MAX_SCALE_ROWS = 150
"""Scales are learnt from at most 150 rows, in about a tenth of a second."""

CLEARLY_BETTER = 0.9
"""Scales are used if their leave-one-out error on other rows is below this fraction of the error without them."""

IQR_OF_NORMAL = 1.349
"""The interquartile range of a normal distribution, in standard deviations."""

OUTLIER, MAX_OUTLIERS = 20.0, 0.05
"""Values beyond 20 robust deviations from the median are clipped to that distance: otherwise a single outlier would
mask its column. If more than 5% of the values are this far away, they are not outliers."""

RIDGE_RATE, SMALLEST_RIDGE = 0.5, 1e-5
"""λ selected on a subset of the rows decreases with this power of n, and is at least SMALLEST_RIDGE/n: a few rows on
a curve would otherwise be interpolated, and no duality gap would be reached."""


def resolved(recipe: Recipe, data: Data, *, widths: bool = False, rows: int | None = None) -> Recipe:
    """Return the recipe with all data-dependent defaults replaced by numbers.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    widths : bool
        Whether to try other widths also for a kernel object with a ``gamma``.
    rows : int or None
        The number of rows of the fit, if the data are a sample of them; None: that of the data.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> recipe = resolved(InfiniteQuantileRegressor().recipe(), Data.canonical(X, 1000.0 + y))
    >>> recipe.alpha > 0.0, bool(abs(recipe.units.centre - 1000.0) < 1.0)
    (True, True)
    """
    units = _units(recipe, data) if recipe.units is None else recipe.units
    if data.y is not None:
        check_loss(recipe.task.loss, recipe.task.measure, units, data.y, recipe.device)
    ridge = 1.0 if recipe.task.loss.degree is None else units.spread ** (2 - recipe.task.loss.degree)
    changes: dict[str, Any] = {"units": units}
    by_rule = takes_gamma(recipe.kernel) and isinstance(recipe.gamma, str)
    kernel = kernel_by_rule(recipe, data.X)
    chosen = _is_auto(recipe.alpha)
    # a wide kernel requires a small λ: if λ is given, use the median rule, and one kernel for a path of λ
    wide = by_rule and _is_auto(recipe.gamma) and data.y is not None and (chosen or recipe.task.defaults.any_alpha)
    if wide or widths or chosen:
        factors = GAMMA_FACTORS if wide or widths else (1.0,)
        kernel, best = _regressed(kernel, data, factors, recipe.task, own_scales=wide, rows=rows)
        if chosen:
            changes |= {"alpha": best * recipe.task.defaults.ridge / ridge}
    if by_rule or widths:
        changes["kernel"] = kernel
    alpha = changes.get("alpha", recipe.alpha)
    if recipe.alpha_bias is None:
        changes["alpha_bias"] = alpha
    elif recipe.bias_is_free and recipe.task.may_hold_bias:
        as_task = isinstance(recipe.bias_kernel, str) and recipe.bias_kernel == "task"
        diagonal = task_kernel(recipe.task_kernel if as_task else recipe.bias_kernel).diagonal
        changes["alpha_bias"] = (ALL_BUT_FREE_AT_NODES if diagonal else ALL_BUT_FREE) / ridge
    return replace(recipe, **changes)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _units(recipe: Recipe, data: Data) -> Units:
    if data.y is None or recipe.task.loss.degree is None:
        return Units()
    weight = data.weight if data.share is None else data.pair_weight
    if recipe.task.loss.degree == 1:  # the squared loss must remain sensitive to outliers
        check_far_targets(data.y, weight)
    return Units.of(data.y, weight, centred=recipe.bias_is_free)


# -------------------------------------------------------------------------------------------------- features
def kernel_by_rule(recipe: Recipe, X: HostArray) -> InputKernel:
    """Return a named kernel with the bandwidth of a rule; other kernels are returned unchanged."""
    if not takes_gamma(recipe.kernel) or not isinstance(recipe.gamma, str):
        return input_kernel(recipe.kernel, recipe.gamma)
    if not _is_auto(recipe.gamma):
        return input_kernel(recipe.kernel, recipe.gamma).resolve(X)
    if isinstance(input_kernel(recipe.kernel), Chi2):  # fractions of a histogram have their own units
        return input_kernel(recipe.kernel, "median").resolve(X)
    defaults = recipe.task.defaults
    kernel = Scaled(input_kernel(recipe.kernel), spreads(X, robust=defaults.robust)).resolve(X)
    return kernel if defaults.width == 1.0 else with_width(kernel, defaults.width)


def spreads(X: HostArray, *, robust: bool = False) -> tuple[float, ...]:
    """Return one over the spread of each feature; 0 for a constant feature.

    The spread is the standard deviation with outliers clipped. ``robust``: it is the interquartile range, scaled to a
    standard deviation of the normal distribution, if that is not 0, and the size of a constant feature.
    Level sets use the robust spread: their data contain outliers, and a constant feature that begins to vary is one.

    Examples
    --------
    >>> import numpy as np
    >>> spreads(np.array([[1.0, 5.0], [3.0, 5.0]]))
    (1.0, 0.0)
    """
    size = np.max(np.abs(X), axis=0)
    unit = np.where(size > 0.0, size, 1.0)  # squares then neither overflow nor vanish
    middle, quartiles = np.median(X, axis=0), np.subtract(*np.quantile(X, [0.75, 0.25], axis=0)) / IQR_OF_NORMAL
    # if many values are far away, most are one value and its rounding (an encoded category), and quartiles are noise
    far = OUTLIER * quartiles
    telling = (quartiles > 1e-12 * size) & (np.mean(np.abs(X - middle) > far, axis=0) <= MAX_OUTLIERS)
    far = np.where(telling, far, np.inf)
    deviation = unit * np.std(np.clip(X, middle - far, middle + far) / unit, axis=0)
    if robust:
        deviation = np.where(telling, quartiles, deviation)
        deviation = np.where(deviation > 1e-12 * size, deviation, unit)  # a constant feature may begin to vary
    varies = deviation > 1e-12 * size
    return tuple(np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies).tolist())


# ------------------------------------------------------------------------------------------------------- λ
def _regressed(
    kernel: InputKernel,
    data: Data,
    factors: tuple[float, ...],
    task: Task,
    *,
    own_scales: bool,
    rows: int | None,
) -> tuple[InputKernel, float]:
    """Return the kernel with γ times the best factor, and λ for half the squared loss."""
    X, t, weight, copies = some_rows(data, task)
    tolerated = task.defaults.tolerated_errors
    n = data.weight.size
    if kernel.precomputed:
        X = X[:, np.linspace(0, n - 1, len(t)).astype(np.intp)]
    else:
        kernel = kernel.resolve(X)
    bases = [kernel]
    if own_scales and isinstance(kernel, Scaled) and task.defaults.one_scale:
        bases.append(_one_scale(kernel, X))
    kernels = [base if factor == 1.0 else with_width(base, factor) for base in bases for factor in factors]
    features = [some_features(k, X) for k in kernels]
    tried = [ridges_for(float(weight @ np.sum(phi**2, axis=1))) for phi in features]
    found = [leave_one_out(phi, t, weight, ridges, copies) for phi, ridges in zip(features, tried, strict=True)]
    bests = np.array([errors[np.argmin(errors @ weight)] for errors in found])
    ridges = [
        float(each[about_as_good(errors, weight, copies, tolerated)[-1]])
        for errors, each in zip(found, tried, strict=True)
    ]
    # a wide kernel with a small λ is equivalent to a narrow one with a large λ, which is solved faster
    best = max(about_as_good(bests, weight, copies, tolerated), key=lambda k: ridges[k])
    kernel, ridge = kernels[best], ridges[best]
    if own_scales and isinstance(kernel, Scaled):
        own = with_own_scales(kernel, X, t, copies)
        if own is not None:
            errors = leave_one_out(some_features(own, X), t, weight, RIDGES, copies)
            kernel, ridge = own, float(RIDGES[about_as_good(errors, weight, copies, tolerated)[-1]])
    n = n if rows is None else rows
    return kernel, max(ridge * shrinkage(len(t), n), SMALLEST_RIDGE / n)


def _one_scale(kernel: Scaled, X: HostArray) -> InputKernel:
    """Return the kernel with one scale for all features, which suits features in the same units.

    Pixels at the border of an image hardly vary; scaled by their own spread, they are noise.
    """
    scales = np.asarray(kernel.scales)
    middle = float(np.median(scales[scales > 0.0])) if np.any(scales > 0.0) else 1.0
    plain = clone(kernel.kernel).set_params(gamma="median") if hasattr(kernel.kernel, "gamma") else kernel.kernel
    return Scaled(plain, (middle,) * scales.size).resolve(X)


def shrinkage(some: int, rows: int) -> float:
    """Return the factor between λ for some rows and λ for all rows."""
    return float((some / rows) ** RIDGE_RATE)


def with_own_scales(
    kernel: Scaled, X: HostArray, t: HostArray, copies: HostArray, fewest: int = MIN_ROWS_FOR_SCALES
) -> InputKernel | None:
    """Return the kernel with a scale for each feature, learnt from the targets; None unless it is clearly better.

    Scales learnt from one half of the rows are compared by the leave-one-out error on the other half.
    """
    inputs = np.flatnonzero(kernel.scales)
    if t.ndim > 1:  # scales are learnt for one target
        return None
    if not isinstance(kernel.kernel, (RBF, Matern)) or not (
        1 < inputs.size <= MAX_SCALED_FEATURES and max(fewest, ROWS_PER_SCALE * inputs.size) <= t.size
    ):
        return None
    unit = np.asarray(kernel.scales)
    halves = np.arange(t.size) % 2 == 0
    learnt, tested = (np.flatnonzero(half)[:: -(-int(np.sum(half)) // MAX_SCALE_ROWS)] for half in (halves, ~halves))

    def scaled(rows: HostArray) -> InputKernel:
        each = np.zeros(unit.size)
        each[inputs] = relevance((X[rows] * unit)[:, inputs], t[rows]) * unit[inputs]
        return Scaled(clone(kernel.kernel).set_params(gamma=0.5), tuple(each.tolist()))

    def error(k: InputKernel) -> float:
        equal = np.full(tested.size, 1.0 / tested.size)
        found = leave_one_out(some_features(k, X[tested]), t[tested], equal, RIDGES, copies[tested])
        return float(np.min(found @ equal))

    own = scaled(learnt)
    if error(own) > CLEARLY_BETTER * error(kernel):
        return None
    return own if learnt.size >= MAX_SCALE_ROWS // 2 else scaled(np.arange(t.size))


def relevance(X: HostArray, t: HostArray) -> HostArray:
    """Return scales of features that maximise the marginal likelihood of a Gaussian process with t = f(X) + noise.

    The kernel is exp(−½ Σ_j s_j² (x_j − z_j)²). A weak prior keeps each s_j near the value for standardised
    features that are all relevant.

    Parameters
    ----------
    X : ndarray (n, d)
        Standardised; at most a few hundred rows, because memory grows as n²d.
    t : ndarray (n,)
        Targets of mean 0 and size 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> first, second = relevance(X, np.sin(2.0 * X[:, 0]))
    >>> bool(first > 3.0 * second)
    True
    """
    n, d = X.shape
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    flat = squares.reshape(n * n, d)
    centre = np.full(d, -0.5 * np.log(2.0 * d))

    def minus_likelihood(p: HostArray) -> tuple[float, HostArray]:
        scale, (size, noise) = np.exp(2.0 * p[:d]), np.exp(p[d:])
        E = np.exp(-0.5 * (squares @ scale))
        K = size * (E + 1.0)
        K[np.diag_indices(n)] += noise + 1e-8
        try:
            factor = cho_factor(K, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros(d + 2)
        inverse = cho_solve(factor, np.eye(n), check_finite=False)
        a = inverse @ t
        away = p[:d] - centre
        value = 0.5 * float(t @ a) + float(np.sum(np.log(np.diagonal(factor[0])))) + 0.125 * float(away @ away)
        W = inverse - np.outer(a, a)
        by_scale = -0.5 * scale * ((W * (size * E)).ravel() @ flat) + 0.25 * away
        return value, np.concatenate(
            [by_scale, [0.5 * float(np.sum(W * size * (E + 1.0))), 0.5 * noise * float(np.trace(W))]]
        )

    bounds = [(-6.0, 3.0)] * d + [(-6.0, 4.0), (-7.0, 2.0)]
    start = np.concatenate([centre, [0.0, np.log(0.3)]])
    found = minimize(minus_likelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return np.asarray(np.exp(found.x[:d]))


def with_width(kernel: InputKernel, factor: float) -> InputKernel:
    """Return the kernel with γ times a factor."""
    around = isinstance(kernel, (Scaled, Metric))
    inner = kernel.kernel if around else kernel
    changed: InputKernel = clone(inner).set_params(gamma=factor * inner.gamma)
    return type(kernel)(**(kernel.get_params(deep=False) | {"kernel": changed})) if around else changed


# ------------------------------------------------------------- kernel ridge regression and its leave-one-out error
def about_as_good(errors: HostArray, weight: HostArray, copies: HostArray, tolerated: float) -> HostArray:
    """Return positions of candidates within some standard errors of the best, given squared errors (k, n)."""
    difference = errors - errors[np.argmin(errors @ weight)]
    mean = difference @ weight
    deviation = np.sqrt(np.maximum((difference - mean[:, None]) ** 2 @ weight, 0.0))
    return np.flatnonzero(mean <= tolerated * deviation * np.sqrt(np.sum(weight**2 / copies)))


def some_features(kernel: InputKernel, X: HostArray) -> HostArray:
    """Return features of a kernel, (n, r) with r ≤ :data:`MAX_FEATURES`."""
    largest = float(np.max(np.diag(X) if kernel.precomputed else kernel.diag(X)))
    exact = max(1e-15, float(RIDGES[0]) / max(1.0, largest))  # relative: a small column of a linear kernel matters
    features = PivotedCholesky(MAX_FEATURES).build(kernel, X, exact, np.random.default_rng(0))
    return np.asarray(features.values)


def leave_one_out(
    phi: HostArray, t: HostArray, weight: HostArray, ridges: HostArray = RIDGES, copies: HostArray | float = 1.0
) -> HostArray:
    """Return the squared leave-one-out errors of a ridge regression with a constant, (k, n), for every λ.

    Parameters
    ----------
    phi : ndarray (n, r)
        Features.
    t : ndarray (n,) or (n, c)
        The targets; the errors of several columns are added.
    weight : ndarray (n,)
        Positive, summing to one.
    ridges : ndarray (k,)
    copies : ndarray (n,) or float
        The number of observations that a row represents; one of them is held out.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> errors = leave_one_out(x[:, None], 3.0 * x, np.full(50, 0.02)).mean(axis=1)
    >>> bool(errors[0] < 1e-4 < errors[-1])
    True
    """
    return np.asarray(sum(leave_one_out_of_each(phi, t.reshape(len(t), -1), weight, ridges, copies)))


def leave_one_out_of_each(
    phi: HostArray, t: HostArray, weight: HostArray, ridges: HostArray = RIDGES, copies: HostArray | float = 1.0
) -> Iterator[HostArray]:
    """Yield the errors of :func:`leave_one_out`, (k, n), for each column of t (n, c)."""
    root = np.sqrt(weight)
    phi = root[:, None] * np.column_stack([np.ones(len(t)), phi])
    e, V = np.linalg.eigh(phi.T @ phi)
    kept = e > 1e-14 * e[-1]
    e, U = e[kept], phi @ (V[:, kept] / np.sqrt(e[kept]))
    fractions = e[:, None] / (e[:, None] + ridges)
    slack = root[:, None] * np.maximum(1.0 - ((U**2) @ fractions).T / copies, 1e-12).T
    for goal in (root[:, None] * t).T:
        yield np.asarray(((goal[:, None] - U @ (fractions * (U.T @ goal)[:, None])) / slack).T ** 2)


def some_rows(data: Data, task: Task | None = None) -> tuple[HostArray, HostArray, HostArray, HostArray]:
    """Return X, normal scores of y or an indicator per class, weights and copies of at most MAX_ROWS rows."""
    if data.y is None:
        raise ValueError("alpha='auto' was given without targets; give alpha a number.")
    n = data.weight.size
    some = np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.intp)
    y = one_for_each_row(data.y, data.share) if data.y.ndim == 2 else data.y
    weight = data.weight[some] / np.sum(data.weight[some])
    t = normal_scores(y) if task is None else task.scores(y)
    return data.X[some], t[some], weight, data.copies[some]


def one_for_each_row(y: HostArray, share: HostArray | None) -> HostArray:
    """Return one number for each row of targets (n, m): the mean, or the leading component if targets are missing.

    Curves with missing points are first averaged over runs of neighbouring nodes.
    """
    if share is None:
        return np.asarray(np.mean(y, axis=1))
    run = (RUNS_OF_NODES * np.arange(y.shape[1])) // y.shape[1]
    member = (run[:, None] == np.unique(run)).astype(np.float64)
    mass = share @ member
    mean = np.divide((share * y) @ member, mass, out=np.zeros_like(mass), where=mass > 0.0)
    above = np.where(mass > 0.0, mean - np.sum(mass * mean, axis=0) / np.maximum(np.sum(mass, axis=0), 1e-300), 0.0)
    U, size, _ = np.linalg.svd(above, full_matrices=False)
    return np.asarray(U[:, 0] * size[0])


def ridges_for(size: float) -> HostArray:
    """Return the candidates of λ for a kernel whose k(x, x) has the mean ``size``, (k,).

    A feature in dollars makes a linear kernel large, and a column of small numbers beside it still needs a small λ.
    """
    decades = 0.0 if not size > 0.0 else np.log10(size)
    low, high = np.log10(RIDGES[0]) + min(0.0, decades), np.log10(RIDGES[-1]) + max(0.0, decades)
    if high - low < 1e-9 + np.log10(RIDGES[-1] / RIDGES[0]):
        return RIDGES
    return np.logspace(low, high, 1 + 4 * int(np.ceil(high - low)))
