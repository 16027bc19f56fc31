"""Candidate kernels for some data, ranked before any of them is fitted.

The ranking is by kernel ridge regression of the normal scores of y, because its leave-one-out errors are closed form
for every ridge λ at once, see :mod:`~infinitask.settle`.
Normal scores, so that neither outliers nor the units of y decide. A scale for each input is estimated from the targets,
and with few rows it fits their noise: such a kernel is made anew without the rows by which it is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from infinitask._array import HostArray
from infinitask.kernels import RBF, Additive, InputKernel, Laplacian, Matern, Ranks, Scaled, Sum, Warped
from infinitask.relevance import relevance
from infinitask.settle import leave_one_out, normal_scores, some_features

MAX_RANKING_ROWS, MAX_SCALE_ROWS = 400, 200
"""At most this many rows take part in the ranking, and in the estimate of a scale for each input."""

RANKING_FOLDS = 5
"""Parts in which rows are left out to judge a kernel that targets had a part in."""

MAX_SCALED_INPUTS = 60
"""Beyond this many inputs no scale is estimated for each: it takes a number for each pair of rows and each input."""

RIDGES: HostArray = np.logspace(-5.0, 1.0, 19)
"""λ/n."""


Adapt = Callable[[HostArray], InputKernel]


@dataclass(frozen=True, eq=False)
class Kind:
    """A candidate kernel, and how it is made from data.

    Parameters
    ----------
    kernel : InputKernel
        From all rows.
    adapt : callable or None
        Positions of rows → the kernel that follows from these alone, if targets had a part in it: whoever judges it by
        rows left out must make it without them. None: the kernel looks at no target.
    """

    kernel: InputKernel
    adapt: Adapt | None = None

    def on(self, rows: HostArray) -> InputKernel:
        """The kernel that follows from these rows."""
        return self.kernel if self.adapt is None else self.adapt(rows)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A candidate kernel with its result in the ranking.

    Parameters
    ----------
    name : str
    kind : Kind
    error : float
        The smallest mean squared error of rows left out.
    ridge : float
        λ/n there.
    """

    name: str
    kind: Kind
    error: float
    ridge: float

    @property
    def family(self) -> str:
        """The name without the scale."""
        return self.name.rpartition(", ")[0]


def candidates(X: HostArray, t: HostArray) -> dict[str, Kind]:
    """Kernels for inputs X and targets t, by name: one scale, one for each input, sums over the inputs.

    Inputs are measured in their standard deviations, and by their ranks as well; one that does not vary is ignored.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> list(candidates(X, X[:, 0]))[:3]
    ['Gaussian, 0.06', 'Gaussian, 0.2', 'Gaussian, 1']
    """
    found = _by_values(X, t)
    if any(np.unique(column).size > 2 for column in X.T):  # ranks of two values are these values
        ranks = Ranks.of(X)
        Z = np.asarray(Warped(RBF(), ranks).warp(X))
        for name, kind in _by_values(Z, t).items():
            found[f"ranks: {name}"] = _through(kind, lambda kernel: Warped(kernel, ranks))
    return found


def _through(kind: Kind, wrap: Callable[[InputKernel], InputKernel]) -> Kind:
    adapt = kind.adapt
    return Kind(wrap(kind.kernel), None if adapt is None else lambda rows: wrap(adapt(rows)))


def _by_values(X: HostArray, t: HostArray) -> dict[str, Kind]:
    spread = np.std(X, axis=0)
    unit = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12 * np.max(np.abs(X), axis=0))
    some = _spread_out(t, MAX_RANKING_ROWS)
    Z, scales = X * unit, tuple(unit.tolist())
    gamma, taxi = float(RBF().resolve(Z[some]).gamma), float(Laplacian().resolve(Z[some]).gamma)
    found: dict[str, Kind] = {}
    for factor in (1 / 16, 1 / 4, 1.0, 4.0, 16.0):
        found[f"Gaussian, {factor:.1g}"] = Kind(Scaled(RBF(gamma=factor * gamma), scales))
    for factor in (1 / 16, 1 / 4, 1.0, 4.0):
        found[f"Matérn 3/2, {factor:.1g}"] = Kind(Scaled(Matern(gamma=factor * gamma, nu=1.5), scales))
    for factor in (1 / 4, 1.0):
        found[f"Laplacian, {factor:.1g}"] = Kind(Scaled(Laplacian(gamma=factor * taxi), scales))
    if np.count_nonzero(unit) > 1:
        for factor in (1 / 4, 1.0, 4.0):
            found[f"additive Gaussian, {factor:.1g}"] = Kind(Scaled(Additive(RBF(gamma=0.5 * factor)), scales))
    if 1 < np.count_nonzero(unit) <= MAX_SCALED_INPUTS:
        known: dict[bytes, tuple[float, ...]] = {}

        def each(rows: HostArray) -> tuple[float, ...]:
            if rows.tobytes() not in known:
                few = rows[_spread_out(t[rows], MAX_SCALE_ROWS)]
                known[rows.tobytes()] = tuple((relevance(Z[few], t[few]) * unit).tolist())
            return known[rows.tobytes()]

        def gaussian(rows: HostArray) -> InputKernel:
            return Scaled(RBF(gamma=0.5), each(rows))

        def matern(rows: HostArray) -> InputKernel:
            return Scaled(Matern(gamma=0.5, nu=1.5), each(rows))

        every = np.arange(t.size)
        found["each input its own, Gaussian"] = Kind(gaussian(every), gaussian)
        found["each input its own, Matérn 3/2"] = Kind(matern(every), matern)
    return found


def _spread_out(t: HostArray, count: int) -> HostArray:
    """Positions of ``count`` targets, or of all if there are fewer: spread over their order, rare ones among them."""
    if t.size <= count:
        return np.arange(t.size)
    return np.sort(np.argsort(t, kind="stable")[np.linspace(0, t.size - 1, count).astype(int)])


def ranked(
    X: HostArray,
    y: HostArray,
    kernels: dict[str, InputKernel] | None = None,
    *,
    stationary_only: bool = False,
) -> list[Candidate]:
    """The candidates, or given kernels, the one with the smallest error first.

    Parameters
    ----------
    X : ndarray (n, d)
    y : ndarray (n,)
    kernels : dict or None
        Given kernels by their names.
    stationary_only : bool
        Whether only stationary candidates take part: random Fourier features know no others.
    """
    t = normal_scores(y)
    if kernels is None:
        kinds = {k: kind for k, kind in candidates(X, t).items() if not stationary_only or kind.kernel.stationary}
    else:
        kinds = {name: Kind(kernel.resolve(X)) for name, kernel in kernels.items()}
    rows = _spread_out(t, MAX_RANKING_ROWS)
    found = [_judged(name, kind, X, t, rows) for name, kind in kinds.items()]
    return sorted(found, key=lambda candidate: candidate.error)


def _judged(name: str, kind: Kind, X: HostArray, t: HostArray, rows: HostArray) -> Candidate:
    if kind.adapt is None or rows.size < 2 * RANKING_FOLDS:
        equal = np.full(rows.size, 1.0 / rows.size)
        errors = leave_one_out(some_features(kind.kernel, X[rows]), t[rows], equal, RIDGES).mean(axis=1)
    else:
        errors = np.zeros(RIDGES.size)
        for k in range(RANKING_FOLDS):  # rows are in no order that matters: every fifth one is left out
            test, train = rows[k::RANKING_FOLDS], np.delete(rows, np.s_[k::RANKING_FOLDS])
            kernel = kind.on(train)
            e, U = np.linalg.eigh(kernel(X[train], X[train]) + 1.0)
            along, across = U.T @ t[train], (kernel(X[test], X[train]) + 1.0) @ U
            for i, ridge in enumerate(RIDGES):
                predicted = across @ (along / (np.maximum(e, 0.0) + ridge * train.size))
                errors[i] += np.sum((t[test] - predicted) ** 2) / rows.size
    best = int(np.argmin(errors))
    return Candidate(name, kind, float(errors[best]), float(RIDGES[best]))


def contenders(ranking: list[Candidate], singles: int, joined: int) -> list[Candidate]:
    """The candidates that are worth a cross-validation: the first of the ranking, and sums of kernels.

    A function in the space of a sum is a sum of functions: with few rows, where chance decides the ranking, it is the
    safer choice.

    Parameters
    ----------
    ranking : list of Candidate
    singles : int
        Kernels that compete by themselves.
    joined : int
        Kernels in a sum: one sum of the first ones, one of the first of each family; less than 2: no sums.
    """
    found = ranking[:singles]
    families: dict[str, Candidate] = {}
    for candidate in ranking:
        families.setdefault(candidate.family, candidate)
    first, diverse = ranking[:joined], list(families.values())[:joined]
    for name, parts in (("sum of the first", first), ("sum of families", diverse)):
        same = parts is diverse and {part.name for part in first} == {part.name for part in diverse}
        if len(parts) > 1 and not same:
            ridge = len(parts) * float(np.median([part.ridge for part in parts]))
            found.append(Candidate(name, _sum([part.kind for part in parts]), float("nan"), ridge))
    return found


def _sum(kinds: list[Kind]) -> Kind:
    adapt = None
    if any(kind.adapt is not None for kind in kinds):

        def adapt(rows: HostArray) -> InputKernel:
            return reduce(Sum, (kind.on(rows) for kind in kinds))

    return Kind(reduce(Sum, (kind.kernel for kind in kinds)), adapt)
