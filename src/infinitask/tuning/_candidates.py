r"""Kernels that may suit some data, ranked before any of them is used for what it is chosen for.

The ranking is by kernel ridge regression of the normal scores t of y, because its leave-one-out errors are closed form
for every ridge λ at once: with K + 1 = U diag(e) Uᵀ, the 1 for a constant, and the residuals r = (I − S) t,

.. math:: \frac{1}{n} \sum_i \Big( \frac{r_i}{1 - S_{ii}} \Big)^2,
    \qquad S = U \, \mathrm{diag}\Big( \frac{e}{e + \lambda} \Big) \, U^\top .

Normal scores, so that neither outliers nor the units of y decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import ndtri
from scipy.stats import rankdata

from infinitask._array import HostArray
from infinitask.kernels import RBF, Additive, InputKernel, Laplacian, Matern, Scaled, Warped

__all__ = ["Candidate", "candidates", "contenders", "leave_one_out", "normal_scores", "ranked", "relevance"]

ROWS = 400
"""Of more rows so many, evenly spaced, decide the ranking."""

MANY_INPUTS = 60
"""Of more inputs scales are not looked for one by one: that takes a number for each pair of rows and each input."""

RIDGES: HostArray = np.logspace(-5.0, 1.0, 19)
"""λ/n."""


def normal_scores(y: HostArray) -> HostArray:
    """y by its ranks, as quantiles of the normal distribution."""
    return np.asarray(ndtri((rankdata(y) - 0.5) / y.size))


def leave_one_out(K: HostArray, t: HostArray, ridges: HostArray = RIDGES) -> HostArray:
    """The mean squared leave-one-out error of a ridge regression with a constant, for every λ = n·ridge.

    Parameters
    ----------
    K : ndarray (n, n)
    t : ndarray (n,)
    ridges : ndarray (k,)

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1.0, 1.0, 50)
    >>> errors = leave_one_out(np.outer(x, x), 3.0 * x)
    >>> bool(errors[0] < 1e-4 < errors[-1])
    True
    """
    e, U = np.linalg.eigh(K + 1.0)
    e, along, squares = np.maximum(e, 0.0), U.T @ t, U**2
    errors = []
    for ridge in ridges:
        left = ridge * t.size / (e + ridge * t.size)
        errors.append(np.mean(((U @ (left * along)) / np.maximum(squares @ left, 1e-12)) ** 2))
    return np.array(errors)


def relevance(X: HostArray, t: HostArray) -> HostArray:
    """A scale for each input, (d,), by the marginal likelihood of a Gaussian process with t = f(X) + noise.

    A weak prior holds each scale near the one that suits standardised inputs that all matter.
    """
    n, d = X.shape
    squares = (X[:, None, :] - X[None, :, :]) ** 2
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
        by_scale = -0.5 * scale * np.einsum("ij,ijk->k", W * (size * E), squares) + 0.25 * away
        return value, np.concatenate(
            [by_scale, [0.5 * float(np.sum(W * size * (E + 1.0))), 0.5 * noise * float(np.trace(W))]]
        )

    bounds = [(-6.0, 3.0)] * d + [(-6.0, 4.0), (-7.0, 2.0)]
    start = np.concatenate([centre, [0.0, np.log(0.3)]])
    found = minimize(minus_likelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return np.asarray(np.exp(found.x[:d]))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel, and how well it did in the ranking.

    Parameters
    ----------
    name : str
    kernel : InputKernel
    error : float
        The smallest mean squared leave-one-out error.
    ridge : float
        λ/n there.
    """

    name: str
    kernel: InputKernel
    error: float
    ridge: float

    @classmethod
    def of(cls, name: str, kernel: InputKernel, X: HostArray, t: HostArray) -> Candidate:
        """Judge a kernel."""
        errors = leave_one_out(kernel(X, X), t)
        best = int(np.argmin(errors))
        return cls(name, kernel, float(errors[best]), float(RIDGES[best]))

    @property
    def family(self) -> str:
        """The name without the scale."""
        return self.name.rpartition(", ")[0]


def candidates(X: HostArray, t: HostArray) -> dict[str, InputKernel]:
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
        warped = Warped(RBF()).resolve(X)
        Z = np.asarray(warped.warp(X))
        found |= {f"ranks: {name}": Warped(kernel, warped.ranks) for name, kernel in _by_values(Z, t).items()}
    return found


def _by_values(X: HostArray, t: HostArray) -> dict[str, InputKernel]:
    spread = np.std(X, axis=0)
    unit = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e-12 * np.max(np.abs(X), axis=0))
    Z = X * unit
    scales = tuple(unit.tolist())
    gamma, taxi = float(RBF().resolve(Z).gamma), float(Laplacian().resolve(Z).gamma)
    found: dict[str, InputKernel] = {}
    for factor in (1 / 16, 1 / 4, 1.0, 4.0, 16.0):
        found[f"Gaussian, {factor:.1g}"] = Scaled(RBF(gamma=factor * gamma), scales)
    for factor in (1 / 16, 1 / 4, 1.0, 4.0):
        found[f"Matérn 3/2, {factor:.1g}"] = Scaled(Matern(gamma=factor * gamma, nu=1.5), scales)
    for factor in (1 / 4, 1.0):
        found[f"Laplacian, {factor:.1g}"] = Scaled(Laplacian(gamma=factor * taxi), scales)
    if np.count_nonzero(unit) > 1:
        for factor in (1 / 4, 1.0, 4.0):
            found[f"additive Gaussian, {factor:.1g}"] = Scaled(Additive(RBF(gamma=0.5 * factor)), scales)
    if 1 < np.count_nonzero(unit) <= MANY_INPUTS:
        each = tuple((relevance(Z, t) * unit).tolist())
        found["each input its own, Gaussian"] = Scaled(RBF(gamma=0.5), each)
        found["each input its own, Matérn 3/2"] = Scaled(Matern(gamma=0.5, nu=1.5), each)
    return found


def ranked(X: HostArray, y: HostArray, kernels: dict[str, InputKernel] | None = None) -> list[Candidate]:
    """The candidates, or given kernels, the one with the smallest leave-one-out error first."""
    rows = np.unique(np.linspace(0, y.size - 1, min(y.size, ROWS)).astype(int))
    X, t = X[rows], normal_scores(y[rows])
    kernels = candidates(X, t) if kernels is None else {name: k.resolve(X) for name, k in kernels.items()}
    found = [Candidate.of(name, kernel, X, t) for name, kernel in kernels.items()]
    return sorted(found, key=lambda candidate: candidate.error)


def contenders(ranking: list[Candidate], singles: int, joined: int) -> list[Candidate]:
    """Whom to compare by what they are chosen for: the first ones, and sums of kernels.

    A function in the space of a sum is a sum of functions: with few rows, where chance decides the ranking, it is the
    safer choice.

    Parameters
    ----------
    ranking : list of Candidate
    singles : int
        Kernels by themselves.
    joined : int
        Kernels of a sum: of the first ones, and of the first of each family.
    """
    found = ranking[:singles]
    families: dict[str, Candidate] = {}
    for candidate in ranking:
        families.setdefault(candidate.family, candidate)
    for name, parts in (("sum of the first", ranking[:joined]), ("sum of families", list(families.values())[:joined])):
        if len(parts) > 1:
            ridge = len(parts) * float(np.median([part.ridge for part in parts]))
            found.append(Candidate(name, reduce(add, (part.kernel for part in parts)), float("nan"), ridge))
    return found
