r"""Leave-one-curve-out errors of a regression with the squared loss, in closed form.

**Curves on one grid** (gaps are filled for this purpose). With the nodes' weights w, √w K_Θ √w = P diag(f) Pᵀ, and the
scores Z = (Y − mean) √w P split the problem into one for each column: a ridge regression with λ/f_k, whose
leave-one-out errors have a closed form:

.. math:: \sum_i \omega_i \sum_k \Big( \frac{z_{ik} - \hat z_{ik}}{1 - \omega_i - S^k_{ii}} \Big)^2, \qquad
    S^k = U \, \mathrm{diag}\Big( \frac{e f_k}{e f_k + \lambda} \Big) U^\top .

**Few points on grids of their own.** With the observations of some rows, √c (k_X + ρ) k_Θ √c = V diag(e) Vᵀ and
Q = V diag(1/(e + λ)) Vᵀ, the residuals of a held-out curve are Q_ii⁻¹ (Q √c y)_i. Here the mean curve has to be
smoothed as well, by λ/ρ: if every point is seen once, a free mean curve would go through all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.estimators._curves import Design
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import IQR_OF_NORMAL, RIDGES, about_as_good, one_for_each_row, some_features
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import InputKernel, TaskKernel, input_kernel, task_kernel
from infinitask.losses import Squared
from infinitask.tasks import Defaults

MAX_ROWS, MAX_NODES, MAX_POINTS_OF_ROW = 600, 200, 20
"""Curves on a grid take part with at most 600 rows and 200 nodes, others with 600 observations and 20 in each row."""

OUTLIER = 3.0
"""Values farther than this from their prediction, in robust standard deviations, are outliers."""


class Candidate(NamedTuple):
    """Choices that are compared by their errors."""

    kernel: InputKernel
    gamma: float | str | None
    """Bandwidth of the task kernel."""
    bias_ratio: float | None
    """λ/λ_b; None: the mean curve is free."""


def deviation(errors: HostArray) -> float:
    """The standard deviation of normal errors with the same median distance from 0."""
    return float(np.median(np.abs(errors))) / (0.5 * IQR_OF_NORMAL)


def spaced(n: int, most: int) -> HostArray:
    """At most ``most`` of the positions 0, …, n − 1, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


class CurveErrors(ABC):
    """Errors of held-out curves for a candidate."""

    X: HostArray
    weight: HostArray
    copies: HostArray
    recipe: Recipe
    robust: bool
    """Whether outliers are clipped, because the loss of the fit is less sensitive to them than the square."""

    def _take_rows(self, recipe: Recipe, data: Data, some: HostArray) -> None:
        self.recipe, self.copies = recipe, data.copies[some]
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
        far = OUTLIER * deviation(each)
        return np.asarray(each - np.clip(each, -far, far))

    @abstractmethod
    def revise(self, candidate: Candidate, alpha: float) -> None:
        """Replace gaps and outliers among the targets by what the model of these choices predicts."""

    @abstractmethod
    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """X, the scores of the leading component of the curves, and the multiplicity of at most 600 rows."""


@final
class GridErrors(CurveErrors):
    """Errors of curves on one grid, of which the entries ``seen`` (n, m) were observed."""

    def __init__(self, recipe: Recipe, data: Data, design: Design, seen: HostArray) -> None:
        some, kept = spaced(data.weight.size, MAX_ROWS), spaced(design.nodes.size, MAX_NODES)
        self._take_rows(recipe, data, some)
        self.weight = data.weight[some] / np.sum(data.weight[some])
        self.nodes, w = design.nodes[kept], design.weights[kept]
        self.seen = seen[np.ix_(some, kept)]
        if not np.all(seen) or kept.size < design.nodes.size:  # the mass of a node says how often it was seen
            w = np.gradient(self.nodes) if kept.size > 1 else np.ones(1)
        self.root_w = np.sqrt(w / np.sum(w))
        self._set_targets(_filled(data, seen, design.nodes)[np.ix_(some, kept)])
        self._bases: dict[int, tuple[InputKernel, HostArray, HostArray]] = {}

    def _set_targets(self, Y: HostArray) -> None:
        self.mean = self.weight @ Y
        self.Y = (Y - self.mean) * self.root_w

    def revise(self, candidate: Candidate, alpha: float) -> None:
        """See :class:`CurveErrors`."""
        if self.robust:
            Y = self.mean + self.Y / self.root_w
            Y[self.seen] -= self.excess(candidate, alpha)
            self._set_targets(Y)
        if np.all(self.seen):
            return
        f, P = self._task_basis(candidate)
        e, U = self._basis(candidate.kernel)
        root, part = np.sqrt(self.weight)[:, None], e[:, None] * f / (e[:, None] * f + alpha)
        for _ in range(5):  # fits and fillings of the gaps alternate
            fitted = (U @ (part * (U.T @ (root * self.Y @ P)))) / root @ P.T
            self._set_targets(self.mean + np.where(self.seen, self.Y, fitted) / self.root_w)

    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """See :class:`CurveErrors`."""
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
        """See :class:`CurveErrors`."""
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
            found.append(np.sum(at_nodes**2, axis=1, where=self.seen))  # filled gaps are no errors
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


# ---------------------------------------------------------------------------------------- points of their own
@final
class ScatteredErrors(CurveErrors):
    """Errors of curves with few points, each on a grid of its own."""

    def __init__(self, recipe: Recipe, data: Data, design: Design) -> None:
        assert data.y is not None
        assert data.share is not None
        more = spaced(data.weight.size, MAX_ROWS)  # than those whose errors are computed
        self._leading = data.X[more], one_for_each_row(data.y, data.share)[more], data.copies[more]
        counts = np.minimum(np.sum(data.share > 0.0, axis=1), MAX_POINTS_OF_ROW)
        some = spaced(data.weight.size, max(2, int(MAX_ROWS / float(np.mean(counts)))))
        self._take_rows(recipe, data, some)
        self.weight = np.full(some.size, 1.0 / some.size)  # the weights of the rows are among those of the observations
        pairs = (data.weight[:, None] * data.share * design.weights)[some]
        points = [np.flatnonzero(row > 0.0) for row in pairs]
        points = [p[spaced(p.size, MAX_POINTS_OF_ROW)] for p in points]
        sizes = np.array([p.size for p in points])
        self.row, node = np.repeat(np.arange(some.size), sizes), np.concatenate(points)
        mass = pairs[self.row, node]
        total = float(np.sum(pairs) / np.sum(data.weight[some]))
        self.root_c = np.sqrt(mass * (total / float(np.sum(mass))))
        self.goal = self.root_c * data.y[some][self.row, node]
        self.theta, self.nodes = design.nodes[node], design.nodes
        # the observations of each row as a line of a table, −1 if there is none
        place = np.arange(np.max(sizes))
        self.table = np.where(place < sizes[:, None], (np.cumsum(sizes) - sizes)[:, None] + place, -1)

    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """See :class:`CurveErrors`."""
        return self._leading

    def revise(self, candidate: Candidate, alpha: float) -> None:
        """See :class:`CurveErrors`."""
        self.goal = self.goal - self.root_c * self.excess(candidate, alpha)

    def errors(self, candidate: Candidate, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """See :class:`CurveErrors`."""
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
