r"""The kernel gap: the distance of a model with approximate features from the model of the kernel itself.

Nyström features, and those of a truncated Cholesky factor, are isometric on the functions that they span. A
model in them is a function of the RKHS of k_X with the same norm, so its objective P is an upper bound of the
smallest objective with k_X itself, P*. A dual point u of the features is also a dual point for k_X. With its T (n, s)
of ``DualRows``, its data term A(u) and its pull p on the bias,

.. math::

    P^* \ge D_K(u) = A(u) - \frac{1}{2\lambda} \operatorname{tr}(T^\top K T) - \frac{1}{2\lambda_b} \|p\|^2 .

The model is therefore within (P − D_K)/P of the best function of the whole RKHS. By the envelope theorem
the best u of the features is almost the best one for K if K − ΦΦᵀ is small: P − D_K is then about P − P*. For a large
K − ΦΦᵀ, u is mixed with u = 0.

K is computed once, in blocks of rows and columns, half of them because it is symmetric: about n² (d + s) operations,
and no array of its size is stored. Exact features do not need it: with 0 ≤ (K − ΦΦᵀ)_ii ≤ ε,
tr Tᵀ(K − ΦΦᵀ)T ≤ ε Σ_k (Σ_i |T_ik|)².
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np

from infinitask._base.arrays import IN_MEMORY, ON_DEVICE, Array, HostArray, namespace, place, row_blocks, take, to_host
from infinitask._base.threads import shared_out
from infinitask.features import FeatureMap, KernelMap, PrecomputedMap, RandomFourier, feature_recipe
from infinitask.field import Problem
from infinitask.fitting._data import Data
from infinitask.fitting._pose import with_named
from infinitask.fitting._recipe import Recipe
from infinitask.objective import DualRows, Objective, Smoothing, dual_rows, origin_rows, product
from infinitask.solvers import Solution
from infinitask.solvers._steps import mixture

NOT_OF_THE_KERNEL = (
    "; their functions are not those of the kernel, and have no norm there. Use features='auto', 'exact' or 'nystroem'."
)


def check_certifiable(recipe: Recipe) -> None:
    """Raise an error if a model cannot be compared with that of the kernel itself.

    Parameters
    ----------
    recipe : Recipe
        The recipe before "auto" was resolved to a rank.
    """
    asked = "rank='auto'" if recipe.certify is None else f"certify={recipe.certify!r}"
    if recipe.task.order.hard:
        raise ValueError(
            f"{asked} was given with noncrossing='hard'; the bound is for penalties, not for constraints. Use a "
            "weight, or noncrossing='rearrange'."
        )
    if isinstance(feature_recipe(recipe.features, recipe.rank), RandomFourier):
        raise ValueError(f"{asked} was given with features={recipe.features!r}{NOT_OF_THE_KERNEL}")


def check_map(phi: FeatureMap) -> None:
    """Raise an error if the features of a custom recipe are not those of the kernel.

    Parameters
    ----------
    phi : FeatureMap
    """
    if not isinstance(phi, (KernelMap, PrecomputedMap)):
        raise ValueError(
            "A comparison with the kernel itself was asked for, by certify or by rank='auto', with features of the "
            f"kind {type(phi).__name__}{NOT_OF_THE_KERNEL}"
        )


def kernel_gap(recipe: Recipe, data: Data, problem: Problem, solution: Solution) -> float:
    """Return P − D_K, relative to the same number as ``solution.gap``.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the posed problem.
    data : Data
        The rows of the posed problem.
    problem : Problem
    solution : Solution
        The solution of ``problem.objective``, with its final smoothing.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(200, random_state=0)
    >>> gaps = []
    >>> for rank in (3, 6, 12):
    ...     model = InfiniteQuantileRegressor(features="nystroem", rank=rank, certify="kernel", random_state=0)
    ...     gaps.append(model.fit(X, y).kernel_gap_)
    >>> bool(gaps[0] > gaps[1] > gaps[2] > model.dual_gap_)
    True
    """
    objective, constant = problem.objective, problem.constant
    ridges = objective.alpha, objective.alpha_bias if constant is None else objective.alpha / constant**2
    scale = max(min(abs(solution.objective), objective.typical_loss), solution.floor)
    points, origin = _points(objective, constant, solution), origin_rows(objective, constant)
    if not points and not origin:
        return float("inf")
    if points:
        points = [_best(points, _in_features(problem, points), ridges)]
    points += origin
    if problem.phi.exact:
        lost = [_most_lost(problem, point) / objective.alpha for point in points]
        dual = _bound(points, _in_features(problem, points), ridges, lost)
    else:
        dual = _bound(points, _in_kernel(problem, with_named(recipe, place(data.X, recipe.device)), points), ridges)
    gap = max(solution.objective - dual, 0.0)
    return 0.0 if gap == 0.0 else gap / scale if scale > 0.0 else float("inf")


# -------------------------------------------------------------------------------------------------- dual points
def _points(objective: Objective, constant: float | None, solution: Solution) -> list[DualRows]:
    """Return the best dual point of the solver and, if it was computed around a centre, the centre."""
    at = solution.dual_at
    z, smoothing = (solution.z, solution.smoothing) if at is None else (at.z, at.smoothing)
    around = [smoothing]
    if smoothing.centre is not None:
        # if κ is this large, the smoothed losses have the slopes of their centre
        around.append(Smoothing(tuple(1e9 * kappa for kappa in smoothing.kappa), smoothing.centre))
    return [point for each in around for point in dual_rows(objective, z, each, constant)]


def _gram(points: list[DualRows], traces: HostArray, ridges: tuple[float, float]) -> HostArray:
    """Return the quadratic part of the dual, (p, p), from tr(T_pᵀ K T_q)."""
    gram = traces / ridges[0]
    if points[0].pull.size and ridges[1] > 0.0:
        pulls = np.stack([point.pull for point in points])
        gram = gram + pulls @ pulls.T / ridges[1]
    return np.asarray(gram)


def _best(points: list[DualRows], traces: HostArray, ridges: tuple[float, float]) -> DualRows:
    """Return the best mixture of dual points."""
    lower = np.array([point.data for point in points])
    weights = mixture(lower[None], _gram(points, traces, ridges)[None])[0]
    rows = sum(float(c) * point.rows for c, point in zip(weights, points, strict=True) if c > 0.0)
    return DualRows(float(weights @ lower), rows, weights @ np.stack([point.pull for point in points]))


def _bound(
    points: list[DualRows], traces: HostArray, ridges: tuple[float, float], lost: Sequence[float] | float = 0.0
) -> float:
    """Return the best lower bound proved by a mixture of dual points, each reduced by half of ``lost``."""
    lower = np.array([point.data for point in points]) - 0.5 * np.asarray(lost)
    gram = _gram(points, traces, ridges)
    weights = mixture(lower[None], gram[None])[0]
    return float(weights @ lower - 0.5 * weights @ gram @ weights)


# ------------------------------------------------------------------------------------------------------- traces
def _in_features(problem: Problem, points: list[DualRows]) -> HostArray:
    """Return tr(T_pᵀ Φ Φᵀ T_q), (p, p)."""
    stacked = namespace(points[0].rows).concat([point.rows for point in points], axis=1)
    pulled = to_host(problem.phi.values.T @ stacked).astype(np.float64)
    return _traces(pulled.T @ pulled, len(points))


def _in_kernel(problem: Problem, X: Array, points: list[DualRows]) -> HostArray:
    """Return tr(T_pᵀ K T_q), (p, p)."""
    xp = namespace(points[0].rows)
    some = [k for k, point in enumerate(points) if bool(xp.any(point.rows != 0.0))]
    traces = np.zeros((len(points), len(points)))
    if some:
        stacked = xp.concat([points[k].rows for k in some], axis=1)
        traces[np.ix_(some, some)] = _traces(
            _quadratic(getattr(problem.phi.map, "kernel", None), X, stacked), len(some)
        )
    return traces


def _traces(matrix: HostArray, count: int) -> HostArray:
    """Return the traces of ``count`` × ``count`` blocks."""
    s = matrix.shape[0] // count
    return np.asarray(np.einsum("pkqk->pq", matrix.reshape(count, s, count, s)))


def _most_lost(problem: Problem, point: DualRows) -> float:
    """Return an upper bound on tr Tᵀ(K − ΦΦᵀ)T for exact features."""
    rows = to_host(point.rows).astype(np.float64)
    largest = float(np.max(np.sum(to_host(problem.phi.values).astype(np.float64) ** 2, axis=1)))
    return problem.phi.residual * largest * float(np.sum(np.sum(np.abs(rows), axis=0) ** 2))


def _quadratic(kernel: Any, X: Array, T: Array) -> HostArray:
    """Return Tᵀ K T for T (n, q); without a kernel, X is K itself.

    Rows whose T is 0 are skipped, such as rows beyond the margin of a hinge loss.
    """
    seen = np.flatnonzero(to_host(namespace(T).any(T != 0.0, axis=1)))
    if kernel is not None and seen.size < int(T.shape[0]):
        X, T = take(X, seen, 0), take(T, seen, 0)
    n, on_host = int(T.shape[0]), isinstance(T, np.ndarray)
    entries = IN_MEMORY if on_host else ON_DEVICE
    blocks = row_blocks(n, isqrt(entries), entries)  # square blocks

    def visit(i: int) -> Array:
        here, total = blocks[i], None
        for there in blocks[i:]:
            K = X[here, there] if kernel is None else kernel(X[here, :], X[there, :])
            # by symmetry, the block on the other side of the diagonal contributes the same
            part = (1.0 if there is here else 2.0) * product(K, T[there, :])
            total = part if total is None else total + part
        return T[here, :].T @ total

    each = range(len(blocks))
    parts = shared_out(visit, each) if on_host else [visit(i) for i in each]
    found = to_host(sum(parts[1:], parts[0])).astype(np.float64)
    return np.asarray(0.5 * (found + found.T))
