r"""Defaults that follow the curves: the widths of both kernels, λ, and the ridge of the mean curve.

They minimise the leave-one-curve-out error of a regression with the squared loss, which has a closed form.

**Curves on one grid** (gaps are filled for this purpose). With the nodes' weights w, √w K_Θ √w = P diag(f) Pᵀ, and the
scores Z = (Y − mean) √w P split the problem into one for each column: a ridge regression with λ/f_k, whose
leave-one-out errors have a closed form:

.. math:: \sum_i \omega_i \sum_k \Big( \frac{z_{ik} - \hat z_{ik}}{1 - \omega_i - S^k_{ii}} \Big)^2, \qquad
    S^k = U \, \mathrm{diag}\Big( \frac{e f_k}{e f_k + \lambda} \Big) U^\top .

**Few points on separate grids.** With the observations of some rows, √c (k_X + ρ) k_Θ √c = V diag(e) Vᵀ and
Q = V diag(1/(e + λ)) Vᵀ, the residuals of a held-out curve are Q_ii⁻¹ (Q √c y)_i. Here the mean curve has to be
smoothed as well, by λ/ρ: if every point is observed once, a free mean curve would go through all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from infinitask._base.arrays import HostArray, normal_scores
from infinitask.estimators._curves import Design
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import (
    CLEARLY_BETTER,
    GAMMA_FACTORS,
    IQR_OF_NORMAL,
    RIDGES,
    SMALLEST_RIDGE,
    about_as_good,
    kernel_by_rule,
    one_for_each_row,
    shrinkage,
    some_features,
    with_own_scales,
    with_width,
)
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, Scaled, TaskKernel, input_kernel, takes_gamma, task_kernel
from infinitask.losses import Squared
from infinitask.tasks import Defaults

SEEN_FRACTION, MANY_POINTS = 0.4, 100
"""Gaps are filled if at least this fraction of the grid was observed, or if the rows have 100 points on average."""

ENOUGH_VALUES = 10
"""The number of observations needed for a mean or a median: the mean curve is free if the median node has ten."""

WIDTHS = (0.3, 0.15, 0.08, 0.04, 0.02, 0.01)
"""Values of σ of the task kernel that are tried, relative to the length of Θ."""

BIAS_RATIOS = (1e2, 1e4, 1.0)
"""Ratios λ/λ_b that are tried if the mean curve is smoothed."""

MIN_ROWS_FOR_SCALES = 50
"""The number of rows from which on a scale for each feature is tried: a curve is more informative than a number."""

MAX_ROWS, MAX_NODES, MAX_POINTS_OF_ROW = 600, 200, 20
"""Curves on a grid use at most 600 rows and 200 nodes; others use 600 observations, and at most 20 of each row."""

OUTLIER = 3.0
"""Values farther than this from their prediction, in robust standard deviations, are outliers."""


def chosen(recipe: Recipe, data: Data, design: Design) -> tuple[Candidate, float, float]:
    """Return the choices with the smallest error of held-out curves, λ, and a robust standard deviation of the errors.

    Parameters
    ----------
    recipe : Recipe
        With the λ for half the squared loss if it is known, in the units of the data.
    data : Data
        With targets of size one on the nodes of the design, (n, m), and their ``share``.
    design : Design
    """
    assert data.y is not None
    seen = np.ones(data.y.shape, dtype=bool) if data.share is None else data.share > 0.0
    robust = not isinstance(recipe.task.loss, Squared)
    data = replace(data, y=_clipped(data.y, seen)) if robust else data
    kernels, gammas = _input_kernels(recipe, data), _task_gammas(recipe, design.nodes)
    free = float(np.median(np.sum(data.copies[:, None] * seen, axis=0))) >= ENOUGH_VALUES
    if np.mean(seen) >= SEEN_FRACTION or float(np.mean(np.sum(seen, axis=1))) >= MANY_POINTS:
        held_out: _CurveErrors = _GridErrors(recipe, data, design, seen)
        ratios: tuple[float | None, ...] = (None,) if free else BIAS_RATIOS[:1]
        revised = robust or not np.all(seen)
    else:
        held_out, ratios, revised = _ScatteredErrors(recipe, data, design), BIAS_RATIOS, robust
    best, alpha = _search(held_out, kernels, gammas, ratios)
    if revised:
        held_out.revise(best, alpha)
        best, alpha = _search(held_out, kernels, gammas, ratios)
    own = _with_own_scales(held_out, best.kernel)
    if own is not None:
        errors, ridge = held_out.best(best._replace(kernel=own))
        if errors @ held_out.weight < CLEARLY_BETTER * float(held_out.best(best)[0] @ held_out.weight):
            best, alpha = best._replace(kernel=own), ridge
    n = data.weight.size
    ridge = recipe.alpha
    if isinstance(ridge, str):
        ridge = max(alpha * shrinkage(held_out.weight.size, n), SMALLEST_RIDGE / n)
    return best, ridge, _deviation(held_out.at_points(best, alpha))


# ---------------------------------------------------------------------------------------------- candidates
def _input_kernels(recipe: Recipe, data: Data) -> list[InputKernel]:
    kernel = kernel_by_rule(recipe, data.X)
    kernel = kernel if kernel.precomputed else kernel.resolve(data.X)
    wide = takes_gamma(recipe.kernel) and isinstance(kernel, Scaled)
    return [with_width(kernel, factor) for factor in (GAMMA_FACTORS if wide else ())] or [kernel]


def _with_own_scales(held_out: _CurveErrors, kernel: InputKernel) -> InputKernel | None:
    """Return the kernel with a scale for each feature, estimated from the leading component of the curves."""
    gamma = held_out.recipe.gamma
    if not isinstance(kernel, Scaled) or not isinstance(gamma, str) or gamma != "auto":
        return None
    X, leading, copies = held_out.leading()
    return with_own_scales(kernel, X, normal_scores(leading), copies, MIN_ROWS_FOR_SCALES)


def _task_gammas(recipe: Recipe, nodes: HostArray) -> list[float | str | None]:
    """Return bandwidths over θ, with σ no less than the median gap between points.

    A narrower kernel falls back to the mean curve between the points of a grid.
    """
    spec, given = recipe.task_kernel, recipe.task_gamma
    if given is not None or not isinstance(spec, str) or not hasattr(task_kernel(spec), "gamma"):
        return [given]
    length = float(nodes[-1] - nodes[0])
    if not length > 0.0:
        return [None]
    gap = float(np.median(np.diff(nodes)))
    widths = [width for width in WIDTHS if width * length >= gap] or [WIDTHS[0]]
    return [0.5 / (width * length) ** 2 for width in widths]


def _clipped(y: HostArray, seen: HostArray) -> HostArray:
    """Return targets with outliers clipped towards the median of the other targets at about the same θ."""
    upto = np.cumsum(np.sum(seen, axis=0)) / ENOUGH_VALUES
    part = np.minimum(np.ceil(upto), max(1.0, np.floor(upto[-1]))).astype(np.intp)  # runs of nodes
    clipped = np.array(y)
    for k in np.unique(part):
        here = (part == k) & seen
        middle = float(np.median(y[here]))
        far = OUTLIER * _deviation(y[here] - middle)
        if far > 0.0:
            clipped[here] = np.clip(y[here], middle - far, middle + far)
    return clipped


def _search(
    held_out: _CurveErrors,
    kernels: list[InputKernel],
    gammas: list[float | str | None],
    ratios: tuple[float | None, ...],
) -> tuple[Candidate, float]:
    """Choose the width over θ, then that over x, then the ridge of the mean curve; return the choices and λ.

    Of widths over θ about as good as the best, it takes the widest; of those over x, the one with the largest λ.
    """
    by_gamma = [Candidate(kernels[0], gamma, ratios[0]) for gamma in gammas]
    tried = [held_out.best(candidate) for candidate in by_gamma]
    first = int(held_out.good(np.array([errors for errors, _ in tried]))[0])
    by_kernel = [by_gamma[first]._replace(kernel=kernel) for kernel in kernels]
    tried = [tried[first], *(held_out.best(candidate) for candidate in by_kernel[1:])]
    k = max(held_out.good(np.array([errors for errors, _ in tried])), key=lambda k: tried[k][1])
    by_ratio = [by_kernel[k]._replace(bias_ratio=ratio) for ratio in ratios]
    tried = [tried[k], *(held_out.best(candidate) for candidate in by_ratio[1:])]
    last = int(np.argmin([errors @ held_out.weight for errors, _ in tried]))
    return by_ratio[last], tried[last][1]


# ------------------------------------------------------------------------------------------- errors
class Candidate(NamedTuple):
    """Choices that are compared by their errors."""

    kernel: InputKernel
    gamma: float | str | None
    """Bandwidth of the task kernel."""
    bias_ratio: float | None
    """λ/λ_b; None: the mean curve is free."""


def _deviation(errors: HostArray) -> float:
    """The standard deviation of normal errors with the same median distance from 0."""
    return float(np.median(np.abs(errors))) / (0.5 * IQR_OF_NORMAL)


def _spaced(n: int, most: int) -> HostArray:
    """At most ``most`` of the positions 0, …, n − 1, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


class _CurveErrors(ABC):
    """Errors of held-out curves for a candidate."""

    weight: HostArray

    def _take_rows(self, recipe: Recipe, data: Data, some: HostArray) -> None:
        self.recipe, self.copies = recipe, data.copies[some]
        # whether outliers are clipped, because the loss of the fit is less sensitive to them than the square
        self.robust = not isinstance(recipe.task.loss, Squared)
        self.X = data.X[np.ix_(some, some)] if input_kernel(recipe.kernel).precomputed else data.X[some]

    def _task_kernel(self, candidate: Candidate, nodes: HostArray) -> TaskKernel:
        """k_Θ of a candidate."""
        return task_kernel(self.recipe.task_kernel, candidate.gamma).resolve(nodes[:, None])

    @abstractmethod
    def errors(self, candidate: Candidate, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """Squared errors (ridges, rows), and for each ridge the errors at all points."""

    def good(self, errors: HostArray) -> HostArray:
        """The positions of candidates that are about as good as the best, from squared errors (candidates, rows)."""
        return about_as_good(errors, self.weight, self.copies, Defaults().tolerated_errors)

    def best(self, candidate: Candidate) -> tuple[HostArray, float]:
        """The errors of the best λ, (rows,), and the largest λ that is about as good."""
        ridges = RIDGES[::2] if isinstance(self.recipe.alpha, str) else np.array([self.recipe.alpha])
        errors, _ = self.errors(candidate, ridges)
        return errors[np.argmin(errors @ self.weight)], float(ridges[self.good(errors)[-1]])

    def at_points(self, candidate: Candidate, alpha: float) -> HostArray:
        """The errors at all points."""
        return self.errors(candidate, np.array([alpha]))[1][0]

    def excess(self, candidate: Candidate, alpha: float) -> HostArray:
        """By how much the errors at all points exceed those of values that are not outliers."""
        each = self.at_points(candidate, alpha)
        far = OUTLIER * _deviation(each)
        return np.asarray(each - np.clip(each, -far, far))

    @abstractmethod
    def revise(self, candidate: Candidate, alpha: float) -> None:
        """Replace gaps and outliers among the targets by the predictions of the model with these choices."""

    @abstractmethod
    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """X, the scores of the leading component of the curves, and the multiplicity of at most 600 rows."""


@final
class _GridErrors(_CurveErrors):
    """Errors of curves on one grid, of which the entries ``seen`` (n, m) were observed."""

    def __init__(self, recipe: Recipe, data: Data, design: Design, seen: HostArray) -> None:
        some, kept = _spaced(data.weight.size, MAX_ROWS), _spaced(design.nodes.size, MAX_NODES)
        self._take_rows(recipe, data, some)
        self.weight = data.weight[some] / np.sum(data.weight[some])
        self.nodes, w = design.nodes[kept], design.weights[kept]
        self.seen = seen[np.ix_(some, kept)]
        if not np.all(seen) or kept.size < design.nodes.size:  # the weight of a node is how often it was seen
            w = np.gradient(self.nodes) if kept.size > 1 else np.ones(1)
        self.root_w = np.sqrt(w / np.sum(w))
        self._set_targets(_filled(data, seen, design.nodes)[np.ix_(some, kept)])
        self._bases: dict[int, tuple[InputKernel, HostArray, HostArray]] = {}

    def _set_targets(self, Y: HostArray) -> None:
        self.mean = self.weight @ Y
        self.Y = (Y - self.mean) * self.root_w

    def revise(self, candidate: Candidate, alpha: float) -> None:
        """See :class:`_CurveErrors`."""
        if self.robust:
            Y = self.mean + self.Y / self.root_w
            Y[self.seen] -= self.excess(candidate, alpha)
            self._set_targets(Y)
        if np.all(self.seen):
            return
        f, P = self._task_basis(candidate)
        e, U = self._basis(candidate.kernel)
        root, part = np.sqrt(self.weight)[:, None], e[:, None] * f / (e[:, None] * f + alpha)
        for _ in range(5):  # alternate between fitting and filling the gaps
            fitted = (U @ (part * (U.T @ (root * self.Y @ P)))) / root @ P.T
            self._set_targets(self.mean + np.where(self.seen, self.Y, fitted) / self.root_w)

    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """See :class:`_CurveErrors`."""
        U, size, _ = np.linalg.svd(self.Y, full_matrices=False)
        return self.X, np.asarray(U[:, 0] * size[0]), self.copies

    def _basis(self, kernel: InputKernel) -> tuple[HostArray, HostArray]:
        """Eigenvalues and eigenvectors of √ω K √ω, around its mean."""
        if id(kernel) not in self._bases:
            phi = some_features(kernel, self.X)
            phi = np.sqrt(self.weight)[:, None] * (phi - self.weight @ phi)
            e, V = np.linalg.eigh(phi.T @ phi)
            kept = e > 1e-14 * max(float(e[-1]), 1e-300)
            self._bases[id(kernel)] = kernel, e[kept], phi @ (V[:, kept] / np.sqrt(e[kept]))
        return self._bases[id(kernel)][1:]

    def _task_basis(self, candidate: Candidate) -> tuple[HostArray, HostArray]:
        """Eigenvalues and eigenvectors of √w K_Θ √w."""
        kernel = self._task_kernel(candidate, self.nodes)
        f, P = np.linalg.eigh(self.root_w[:, None] * np.asarray(kernel(self.nodes, self.nodes)) * self.root_w)
        kept = f > 1e-12 * max(float(f[-1]), 1e-300)
        return f[kept], P[:, kept]

    def errors(self, candidate: Candidate, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """See :class:`_CurveErrors`."""
        f, P = self._task_basis(candidate)
        e, U = self._basis(candidate.kernel)
        root, Z = np.sqrt(self.weight)[:, None], self.Y @ P
        along, squares = U.T @ (root * Z), U**2
        left = (self.weight / self.copies)[:, None]
        rest = self.Y - Z @ P.T  # the part outside the span of the task kernel
        found, points = [], []
        for ridge in ridges:
            part = e[:, None] * f / (e[:, None] * f + ridge)
            residual = Z - (U @ (part * along)) / root
            residual = residual / np.maximum(1.0 - left - (squares @ part) / self.copies[:, None], 1e-12)
            at_nodes = residual @ P.T + rest
            found.append(np.sum(at_nodes**2, axis=1, where=self.seen))  # filled gaps do not count
            points.append((at_nodes / self.root_w)[self.seen])
        return np.array(found), points


def _filled(data: Data, seen: HostArray, nodes: HostArray) -> HostArray:
    """Targets without gaps: the mean curve, shifted to meet the row at the neighbouring observations."""
    Y = np.array(data.y)
    mean = (data.weight @ (seen * Y)) / (data.weight @ seen)
    for i in np.flatnonzero(~np.all(seen, axis=1)):
        own = seen[i]
        Y[i, ~own] = mean[~own] + np.interp(nodes[~own], nodes[own], (Y[i] - mean)[own])
    return Y


# --------------------------------------------------------------------------------------- separate points
@final
class _ScatteredErrors(_CurveErrors):
    """Errors of curves with few points, each on its own grid."""

    def __init__(self, recipe: Recipe, data: Data, design: Design) -> None:
        assert data.y is not None
        assert data.share is not None
        more = _spaced(data.weight.size, MAX_ROWS)  # more than those whose errors are computed
        self._leading = data.X[more], one_for_each_row(data.y, data.share)[more], data.copies[more]
        counts = np.minimum(np.sum(data.share > 0.0, axis=1), MAX_POINTS_OF_ROW)
        some = _spaced(data.weight.size, max(2, int(MAX_ROWS / float(np.mean(counts)))))
        self._take_rows(recipe, data, some)
        self.weight = np.full(some.size, 1.0 / some.size)  # weights of observations include those of rows
        pairs = (data.weight[:, None] * data.share * design.weights)[some]
        points = [np.flatnonzero(row > 0.0) for row in pairs]
        points = [p[_spaced(p.size, MAX_POINTS_OF_ROW)] for p in points]
        sizes = np.array([p.size for p in points])
        self.row, node = np.repeat(np.arange(some.size), sizes), np.concatenate(points)
        mass = pairs[self.row, node]
        total = float(np.sum(pairs) / np.sum(data.weight[some]))
        self.root_c = np.sqrt(mass * (total / float(np.sum(mass))))
        self.goal = self.root_c * data.y[some][self.row, node]
        self.theta, self.nodes = design.nodes[node], design.nodes
        # the observations of each row as a line of a table; −1 means none
        place = np.arange(np.max(sizes))
        self.table = np.where(place < sizes[:, None], (np.cumsum(sizes) - sizes)[:, None] + place, -1)

    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """See :class:`_CurveErrors`."""
        return self._leading

    def revise(self, candidate: Candidate, alpha: float) -> None:
        """See :class:`_CurveErrors`."""
        self.goal = self.goal - self.root_c * self.excess(candidate, alpha)

    def errors(self, candidate: Candidate, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """See :class:`_CurveErrors`."""
        kernel, tasks = candidate.kernel, self._task_kernel(candidate, self.nodes)
        gram = self.X if kernel.precomputed else np.asarray(kernel(self.X, self.X))
        K = (gram + (candidate.bias_ratio or 0.0))[np.ix_(self.row, self.row)]
        K *= np.asarray(tasks(self.theta, self.theta)) * (self.root_c[:, None] * self.root_c)
        e, V = np.linalg.eigh(K)
        e, along = np.maximum(e, 0.0), V.T @ self.goal
        here = self.table >= 0
        lines = np.where(here[:, :, None], V[self.table], 0.0)  # (rows, points, N)
        found, points = [], []
        padding = np.where(here, 0.0, 1.0)[:, :, None] * np.eye(here.shape[1])
        for ridge in ridges:
            inverse = 1.0 / (e + ridge)
            Q = (lines * inverse) @ lines.transpose(0, 2, 1) + padding
            a = lines @ (inverse * along)
            residual = np.linalg.solve(Q, a[:, :, None])[:, :, 0]
            found.append(len(here) * np.sum(residual**2, axis=1))
            points.append(residual[here] / self.root_c)
        return np.array(found), points
