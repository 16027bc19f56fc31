r"""Kernel ridge regression with its leave-one-out error in closed form, by which bandwidth and λ are chosen.

With the features √ω φ = U diag(√e) Vᵀ, the constant among them, and the residuals r = (I − S) √ω t, the error is

.. math:: \sum_i \Big( \frac{r_i}{1 - S_{ii}} \Big)^2, \qquad
    S = U \, \mathrm{diag}\Big( \frac{e}{e + \lambda} \Big) U^\top ,

for every λ at once.
"""

from __future__ import annotations

import numpy as np

from infinitask._base.arrays import HostArray, normal_scores
from infinitask.features import PivotedCholesky
from infinitask.fitting._data import Data
from infinitask.kernels import InputKernel
from infinitask.tasks import Task

MAX_ROWS, MAX_FEATURES = 1_000, 300
"""The most rows and features of the regressions that choose bandwidth and λ."""

RIDGES: HostArray = np.logspace(-7.0, 1.0, 33)
"""The λ that are tried for a kernel with k(x, x) = 1; the grid is longer for larger and smaller kernels."""

RUNS_OF_NODES = 10
"""Number of runs of neighbouring nodes over which curves with missing points are averaged."""


def about_as_good(errors: HostArray, weight: HostArray, copies: HostArray, tolerated: float) -> HostArray:
    """Positions of candidates whose error is within some standard errors of the best, from squared errors (k, n)."""
    difference = errors - errors[np.argmin(errors @ weight)]
    mean = difference @ weight
    deviation = np.sqrt(np.maximum((difference - mean[:, None]) ** 2 @ weight, 0.0))
    return np.flatnonzero(mean <= tolerated * deviation * np.sqrt(np.sum(weight**2 / copies)))


def some_features(kernel: InputKernel, X: HostArray) -> HostArray:
    """Features of a kernel, (n, r) with r ≤ :data:`MAX_FEATURES`."""
    largest = float(np.max(np.diag(X) if kernel.precomputed else kernel.diag(X)))
    exact = max(1e-15, float(RIDGES[0]) / max(1.0, largest))  # relative: a small column of a linear kernel counts
    features = PivotedCholesky(MAX_FEATURES).build(kernel, X, exact, np.random.default_rng(0))
    return np.asarray(features.values)


def leave_one_out(
    phi: HostArray, t: HostArray, weight: HostArray, ridges: HostArray = RIDGES, copies: HostArray | float = 1.0
) -> HostArray:
    """The squared leave-one-out errors of a ridge regression with a constant, (k, n), for every λ.

    Parameters
    ----------
    phi : ndarray (n, r)
        Features.
    t : ndarray (n,) or (n, c)
        The errors of several columns are added.
    weight : ndarray (n,)
        Positive, summing to one.
    ridges : ndarray (k,)
    copies : ndarray (n,) or float
        Number of observations that a row stands for; one of them is held out.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> errors = leave_one_out(x[:, None], 3.0 * x, np.full(50, 0.02)).mean(axis=1)
    >>> bool(errors[0] < 1e-4 < errors[-1])
    True
    """
    root = np.sqrt(weight)
    phi = root[:, None] * np.column_stack([np.ones(len(t)), phi])
    e, V = np.linalg.eigh(phi.T @ phi)
    kept = e > 1e-14 * e[-1]
    e, U = e[kept], phi @ (V[:, kept] / np.sqrt(e[kept]))
    goal, squares = (root * t.T).T, U**2
    along = U.T @ goal
    errors = []
    for ridge in ridges:
        fraction = e / (e + ridge)
        residual = goal - U @ (fraction * along.T).T
        error = (residual.T / (root * np.maximum(1.0 - (squares @ fraction) / copies, 1e-12))) ** 2
        errors.append(error if t.ndim == 1 else np.sum(error, axis=0))
    return np.array(errors)


def leave_one_out_error(kernel: InputKernel, data: Data) -> float:
    """The smallest leave-one-out error over λ of a kernel ridge regression of the normal scores of y.

    Parameters
    ----------
    kernel : InputKernel
        Resolved, and a function of x.
    data : Data
        With targets; at most :data:`MAX_ROWS` rows are used.

    Examples
    --------
    >>> from infinitask.kernels import RBF, Linear
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> data = Data.canonical(X, 3.0 * X[:, 0])
    >>> leave_one_out_error(Linear(), data) < 0.1 < leave_one_out_error(RBF(gamma=100.0), data)
    True
    """
    X, t, weight, copies = some_rows(data)
    phi = some_features(kernel, X)
    errors = leave_one_out(phi, t, weight, ridges_for(float(weight @ np.sum(phi**2, axis=1))), copies)
    return float(np.min(errors @ weight))


def some_rows(data: Data, task: Task | None = None) -> tuple[HostArray, HostArray, HostArray, HostArray]:
    """X, normal scores of y or a column for each of many classes, weights and copies of at most MAX_ROWS rows."""
    if data.y is None:
        raise ValueError("alpha='auto' was given without targets; give alpha a number.")
    n = data.weight.size
    some = np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.intp)
    y = one_for_each_row(data.y, data.share) if data.y.ndim == 2 else data.y
    weight = data.weight[some] / np.sum(data.weight[some])
    t = normal_scores(y) if task is None else task.scores(y)
    return data.X[some], t[some], weight, data.multiplicity[some]


def one_for_each_row(y: HostArray, share: HostArray | None) -> HostArray:
    """One number for each row of targets (n, m): the mean, or the leading component if targets are missing, (n,).

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
    """The λ that are tried for a kernel whose k(x, x) has the mean ``size``, (k,).

    A feature in dollars makes a linear kernel large, and a column of small numbers beside it still needs a small λ.
    """
    decades = 0.0 if not size > 0.0 else np.log10(size)
    low, high = np.log10(RIDGES[0]) + min(0.0, decades), np.log10(RIDGES[-1]) + max(0.0, decades)
    if high - low < 1e-9 + np.log10(RIDGES[-1] / RIDGES[0]):
        return RIDGES
    return np.logspace(low, high, 1 + 4 * int(np.ceil(high - low)))
