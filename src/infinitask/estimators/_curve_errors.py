r"""Errors of curves that are left out, one at a time, by a regression with the squared loss: closed forms.

**Curves on one grid** (gaps are filled for this purpose). With the nodes' weights w, √w K_Θ √w = P diag(f) Pᵀ, and the
scores Z = (Y − mean) √w P part the problem into one for each column, a ridge regression with λ/f_k, whose leave-one-out
errors are closed form:

.. math:: \sum_i \omega_i \sum_k \Big( \frac{z_{ik} - \hat z_{ik}}{1 - \omega_i - S^k_{ii}} \Big)^2, \qquad
    S^k = U \, \mathrm{diag}\Big( \frac{e f_k}{e f_k + \lambda} \Big) U^\top .

**Few points on grids of their own.** With the observations of some rows, √c (k_X + ρ) k_Θ √c = V diag(e) Vᵀ and
Q = V diag(1/(e + λ)) Vᵀ, the residuals of a curve that is left out are Q_ii⁻¹ (Q √c y)_i. Here the mean curve has to be
smoothed as well, by λ/ρ: where every point is seen once, a free one would go through all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.estimators._curves import Design
from infinitask.fitting._data import Data
from infinitask.fitting._leave_one_out import about_as_good, one_for_each_row, some_features
from infinitask.kernels import InputKernel, TaskKernel, task_kernel

MAX_ROWS, MAX_NODES = 600, 200
"""Rows and nodes of curves on one grid that take part."""

MAX_OBSERVATIONS, MAX_OF_ROW = 600, 20
"""Observations of curves with few points that take part, in all and of a row: a tenth of a second for each kernel."""

RIDGES: HostArray = np.logspace(-8.0, 1.0, 19)
"""The λ that are tried."""

ROUNDS, STEPS_OF_REFILL = 2, 5
"""How often gaps are filled again by the model that was best, or wild values brought near to it; and the steps of a
fill."""

WILD_ERROR = 3.0
"""Errors beyond this many deviations are those of wild values."""

DEVIATION = 0.6745
"""The median distance from 0 of a normal law, in standard deviations."""

TOLERATED = 0.5
"""As for other targets, see :mod:`~infinitask.fitting._defaults`."""


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What is open: specs as they were given."""

    kernel: Any
    gamma: Any
    task_kernel: Any
    task_gamma: float | str | None
    alpha: float | None
    """λ of half the square, if it is known."""
    robust: bool = False
    """Whether wild values count as if they were less so, as they do for the loss of the fit."""


class Judge(ABC):
    """Errors of curves left out, for a kernel, a width over θ and a share of the mean curve."""

    rows: int
    weight: HostArray
    copies: HostArray
    question: Question
    kernels: list[InputKernel]

    @abstractmethod
    def errors(self, k: int, gamma: Any, share: float | None, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """Squared errors (ridges, rows), and for each ridge the errors at all points."""

    def _ridges(self) -> HostArray:
        return RIDGES if self.question.alpha is None else np.array([self.question.alpha])

    def good(self, errors: HostArray) -> HostArray:
        """The positions of those that are about as good as the best, from squared errors (candidates, rows)."""
        return about_as_good(errors, self.weight, self.copies, TOLERATED)

    def best(self, k: int, gamma: Any, share: float | None) -> tuple[HostArray, float]:
        """The errors of the best λ, (rows,), and the largest λ that is about as good."""
        ridges = self._ridges()
        errors, _ = self.errors(k, gamma, share, ridges)
        return errors[np.argmin(errors @ self.weight)], float(ridges[self.good(errors)[-1]])

    def noise(self, k: int, gamma: Any, share: float | None, alpha: float) -> float:
        """The usual size of an error at a point."""
        _, (each,) = self.errors(k, gamma, share, np.array([alpha]))
        return _deviation(each)

    @property
    @abstractmethod
    def rounds(self) -> int:
        """How often the targets are revised."""

    @abstractmethod
    def revise(self, k: int, gamma: Any, share: float | None, alpha: float) -> None:
        """Change targets to what the model of these choices says of them: where there are gaps, and wild values."""

    @abstractmethod
    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """Inputs, scores of the leading component, and copies of some rows."""

    def _excess(self, k: int, gamma: Any, share: float | None, alpha: float) -> HostArray:
        """By how much values at all points are too far from what a model without their curve says."""
        _, (each,) = self.errors(k, gamma, share, np.array([alpha]))
        far = WILD_ERROR * _deviation(each)
        return np.asarray(each - np.clip(each, -far, far))


def _deviation(errors: HostArray) -> float:
    return float(np.median(np.abs(errors))) / DEVIATION


@final
class OnGrid(Judge):
    def __init__(self, question: Question, data: Data, design: Design, kernels: list[InputKernel]) -> None:
        self.question = question
        some = np.linspace(0, data.weight.size - 1, min(data.weight.size, MAX_ROWS)).astype(np.intp)
        kept = np.unique(np.linspace(0, design.nodes.size - 1, min(design.nodes.size, MAX_NODES)).astype(np.intp))
        self.rows, self.copies = some.size, data.multiplicity[some]
        self.weight = data.weight[some] / np.sum(data.weight[some])
        self.nodes, w = design.nodes[kept], design.weights[kept]
        if data.share is not None or kept.size < design.nodes.size:  # the mass of a node says how often it was seen
            w = np.gradient(self.nodes) if kept.size > 1 else np.ones(1)
        self.root_w = np.sqrt(w / np.sum(w))
        Y = _filled(data, design.nodes)[np.ix_(some, kept)]
        self.seen = None if data.share is None else data.share[np.ix_(some, kept)] > 0.0
        self._take(Y)
        self.kernels, self.X = kernels, data.X[some]
        if kernels[0].precomputed:
            self.X = self.X[:, some]
        self._known: dict[int, tuple[HostArray, HostArray]] = {}

    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """See :class:`Judge`."""
        U, size, _ = np.linalg.svd(self.Y, full_matrices=False)
        return self.X, np.asarray(U[:, 0] * size[0]), self.copies

    def _take(self, Y: HostArray) -> None:
        self.mean = self.weight @ Y
        self.Y = (Y - self.mean) * self.root_w

    @property
    def rounds(self) -> int:
        """See :class:`Judge`."""
        return ROUNDS if self.question.robust or self.seen is not None else 0

    def revise(self, k: int, gamma: Any, share: float | None, alpha: float) -> None:
        """See :class:`Judge`."""
        seen = np.ones(self.Y.shape, dtype=bool) if self.seen is None else self.seen
        Y = self.mean + self.Y / self.root_w
        if self.question.robust:
            Y[seen] -= self._excess(k, gamma, share, alpha)
            self._take(Y)
        if self.seen is None:
            return
        f, P = _task_basis(self.question, gamma, self.nodes, self.root_w)
        e, U = self._basis(k)
        root, part = np.sqrt(self.weight)[:, None], e[:, None] * f / (e[:, None] * f + alpha)
        for _ in range(STEPS_OF_REFILL):  # in turn with a fit
            fitted = (U @ (part * (U.T @ (root * self.Y @ P)))) / root @ P.T
            self._take(self.mean + np.where(seen, self.Y, fitted) / self.root_w)

    def _basis(self, k: int) -> tuple[HostArray, HostArray]:
        """Eigenvalues and eigenvectors of √ω K √ω, around its mean."""
        if k not in self._known:
            phi = some_features(self.kernels[k], self.X)
            phi = np.sqrt(self.weight)[:, None] * (phi - self.weight @ phi)
            e, V = np.linalg.eigh(phi.T @ phi)
            kept = e > 1e-14 * max(float(e[-1]), 1e-300)
            self._known[k] = e[kept], phi @ (V[:, kept] / np.sqrt(e[kept]))
        return self._known[k]

    def errors(self, k: int, gamma: Any, share: float | None, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """See :class:`Judge`."""
        f, P = _task_basis(self.question, gamma, self.nodes, self.root_w)
        e, U = self._basis(k)
        root, Z = np.sqrt(self.weight)[:, None], self.Y @ P
        along, squares = U.T @ (root * Z), U**2
        left = (self.weight / self.copies)[:, None]
        rest = self.Y - Z @ P.T  # what no curve of the kernel follows
        outside = np.sum(rest**2, axis=1)
        found, points = [], []
        for ridge in ridges:
            part = e[:, None] * f / (e[:, None] * f + ridge)
            residual = Z - (U @ (part * along)) / root
            residual = residual / np.maximum(1.0 - left - (squares @ part) / self.copies[:, None], 1e-12)
            if self.seen is None and ridges.size > 1:
                found.append(np.sum(residual**2, axis=1) + outside)
                continue
            at_nodes = residual @ P.T + rest
            seen = np.ones(at_nodes.shape, dtype=bool) if self.seen is None else self.seen
            found.append(np.sum(at_nodes**2, axis=1, where=seen))  # what was filled is no error
            points.append((at_nodes / self.root_w)[seen])
        return np.array(found), points


def _task_basis(question: Question, gamma: Any, nodes: HostArray, root_w: HostArray) -> tuple[HostArray, HostArray]:
    """Eigenvalues and eigenvectors of √w K_Θ √w."""
    kernel = _resolved(question, gamma, nodes)
    f, P = np.linalg.eigh(root_w[:, None] * np.asarray(kernel(nodes, nodes)) * root_w)
    kept = f > 1e-12 * max(float(f[-1]), 1e-300)
    return f[kept], P[:, kept]


def _resolved(question: Question, gamma: Any, nodes: HostArray) -> TaskKernel:
    return task_kernel(question.task_kernel, gamma).resolve(nodes[:, None])


def _filled(data: Data, nodes: HostArray) -> HostArray:
    """Targets without gaps: the mean of the others, and what the row is above or below it at the points around."""
    assert data.y is not None
    if data.share is None:
        return data.y
    seen, Y = data.share > 0.0, np.array(data.y)
    mass = data.weight @ seen
    mean = (data.weight @ (seen * Y)) / mass
    for i in np.flatnonzero(~np.all(seen, axis=1)):
        own = seen[i]
        Y[i, ~own] = mean[~own] + np.interp(nodes[~own], nodes[own], (Y[i] - mean)[own])
    return Y


# ---------------------------------------------------------------------------------------- points of their own
@final
class OwnPoints(Judge):
    def __init__(self, question: Question, data: Data, design: Design, kernels: list[InputKernel]) -> None:
        assert data.y is not None
        assert data.share is not None
        self.question, self.data = question, data
        counts = np.minimum(np.sum(data.share > 0.0, axis=1), MAX_OF_ROW)
        most = max(2, int(MAX_OBSERVATIONS / float(np.mean(counts))))
        some = np.linspace(0, data.weight.size - 1, min(data.weight.size, most)).astype(np.intp)
        self.rows, self.copies = some.size, data.multiplicity[some]
        self.weight = np.full(some.size, 1.0 / some.size)  # the weights of the rows are among those of the observations
        pairs = (data.weight[:, None] * data.share * design.weights)[some]
        points = [np.flatnonzero(row > 0.0) for row in pairs]
        points = [p[np.linspace(0, p.size - 1, min(p.size, MAX_OF_ROW)).astype(np.intp)] for p in points]
        self.row = np.repeat(np.arange(some.size), [p.size for p in points])
        node = np.concatenate(points)
        mass = pairs[self.row, node]
        total = float(np.sum(pairs) / np.sum(data.weight[some]))
        self.root_c = np.sqrt(mass * (total / float(np.sum(mass))))
        self.goal = self.root_c * data.y[some][self.row, node]
        self.theta, self.nodes = design.nodes[node], design.nodes
        self.kernels, self.X = kernels, data.X[some]
        if kernels[0].precomputed:
            self.X = self.X[:, some]
        # the observations of each row as a line of a table, −1 where there is none
        self.table = np.full((some.size, max(p.size for p in points)), -1)
        start = 0
        for i, p in enumerate(points):
            self.table[i, : p.size] = np.arange(start, start + p.size)
            start += p.size

    @property
    def rounds(self) -> int:
        """See :class:`Judge`."""
        return 1 if self.question.robust else 0

    def leading(self) -> tuple[HostArray, HostArray, HostArray]:
        """See :class:`Judge`."""
        data, n = self.data, self.data.weight.size
        assert data.y is not None
        some = np.linspace(0, n - 1, min(n, MAX_ROWS)).astype(np.intp)
        return data.X[some], one_for_each_row(data.y, data.share)[some], data.multiplicity[some]

    def revise(self, k: int, gamma: Any, share: float | None, alpha: float) -> None:
        """See :class:`Judge`."""
        self.goal = self.goal - self.root_c * self._excess(k, gamma, share, alpha)

    def errors(self, k: int, gamma: Any, share: float | None, ridges: HostArray) -> tuple[HostArray, list[HostArray]]:
        """See :class:`Judge`."""
        kernel, tasks = self.kernels[k], _resolved(self.question, gamma, self.nodes)
        gram = self.X if kernel.precomputed else np.asarray(kernel(self.X, self.X))
        K = (gram + (share or 0.0))[np.ix_(self.row, self.row)] * np.asarray(tasks(self.theta, self.theta))
        K *= self.root_c[:, None] * self.root_c
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
