"""The problems: seeded data, standardised by the training rows, and the sizes of a full and of a quick run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from sklearn.datasets import make_moons

from infinitask.datasets import make_mixture
from infinitask.kernels import RBF

Array = NDArray[np.float64]

LEVELS: Array = np.arange(1, 100) / 100.0
"""The quantile levels that every contender predicts."""
CHECKED = (0.5, 0.1, 0.9, 0.3, 0.7)
"""The levels at which single-level solvers are timed first and objectives are compared."""
D = 8


def spread(count: int, chosen: int = 5) -> list[int]:
    """Indices of a few tasks, evenly spread: those at which objectives are compared.

    >>> spread(20), spread(3)
    ([2, 6, 10, 14, 18], [0, 1, 2])
    """
    return sorted({int((k + 0.5) * count / chosen) for k in range(chosen)})


def interleaved(count: int) -> list[int]:
    """The tasks, ordered so that any number of first ones is spread over all; the checked ones come first.

    >>> interleaved(8)
    [0, 2, 4, 5, 7, 1, 3, 6]
    """
    first = spread(count)
    return first + sorted(set(range(count)) - set(first), key=lambda j: int(f"{j:016b}"[::-1], 2))


def rotation(d: int) -> Array:
    """An orthogonal matrix that mixes all d inputs equally, d a power of 2."""
    return np.asarray(hadamard(d) / np.sqrt(d))


# ------------------------------------------------------------------------------------------------------------ quantiles
def heteroscedastic(n: int, d: int, seed: int) -> tuple[Array, Array]:
    """y = sin(2x₁) + ½x₂ + (0.2 + ½ s(2x₃))ε with s the logistic function: three inputs matter, the others do not.

    With fewer than three inputs, the last one replaces those that are missing.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    first, second, third = (X[:, min(j, d - 1)] for j in range(3))
    scale = 0.2 + 0.5 / (1.0 + np.exp(-2.0 * third))
    return X, np.sin(2.0 * first) + 0.5 * second + scale * rng.standard_normal(n)


@dataclass(frozen=True)
class Regression:
    """Training and test rows of a regression."""

    n: int
    d: int = D
    n_test: int = 1000
    alpha: float = 1e-4
    """λ of our fit and of each peer that solves min (1/n) Σ ρ + (λ/2)‖h‖². Among 1e-2, …, 1e-5 the smallest test loss
    is at 1e-4 for n = 500 and at 1e-5 for n = 2000, for our fit, for single levels and for the L1 penalty alike."""
    m: int = 100
    tol: float = 1e-4
    quantiles: tuple[float, ...] = CHECKED

    @cached_property
    def data(self) -> tuple[Array, Array, Array, Array]:
        """X, y, X_test, y_test."""
        X, y = heteroscedastic(self.n, self.d, seed=0)
        Z, z = heteroscedastic(self.n_test, self.d, seed=1)
        mean, std = X.mean(axis=0), X.std(axis=0)
        return (X - mean) / std, (y - y.mean()) / y.std(), (Z - mean) / std, (z - y.mean()) / y.std()

    @cached_property
    def gamma(self) -> float:
        """γ of exp(−γ d²) from the median distance, the same for all methods."""
        return float(RBF().resolve(self.data[0]).gamma)

    @property
    def label(self) -> dict[str, Any]:
        """What tells this case from the others of its problem."""
        return {"n": self.n, "λ": self.alpha}


@dataclass(frozen=True)
class Joint(Regression):
    """Joint quantile regression: a few levels, free biases, a tight gap."""

    tol: float = 1e-6
    alpha: float = 1e-3
    quantiles: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    task_gamma: float = 2.0


QREG = (400, 36.0)
"""n and seconds of qreg, the code of the authors of joint quantile regression: measured elsewhere, on other hardware.
It cannot be installed any more."""


# ------------------------------------------------------------------------------------------------------- costs and sets
def mixture_of_classes(n: int, seed: int) -> tuple[Array, Array]:
    """Eight inputs: the negatives are one cloud, the positives two smaller ones on either side of it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=n)
    side = rng.choice([-1.0, 1.0], size=n)
    direction = np.full(D, 1.0 / np.sqrt(D))
    X = np.where(y[:, None] == 1, 0.7, 1.0) * rng.standard_normal((n, D))
    return X + np.where(y == 1, 1.5 * side, 0.0)[:, None] * direction, y


def rare_class(n: int, seed: int) -> tuple[Array, Array]:
    """Four inputs; one row in twenty is positive, and shifted in two of them."""
    rng = np.random.default_rng(seed)
    y = (rng.uniform(size=n) < 0.05).astype(np.int64)
    return rng.standard_normal((n, 4)) + 1.2 * y[:, None] * np.array([1.0, 1.0, 0.0, 0.0]), y


@dataclass(frozen=True)
class Costs:
    """Two classes, and the costs θ at the nodes of Gauss and Legendre."""

    data_set: str
    n: int
    m: int = 20
    n_test: int = 2000
    alpha: float = 1e-4
    """Among 1e-2, …, 1e-5 it has the smallest or second smallest test cost for our fit and for single machines, on both
    data sets, at n = 500 and 2000."""
    tol: float = 1e-4

    @cached_property
    def data(self) -> tuple[Array, Array, Array, Array]:
        """X, labels 0 and 1, X_test, labels of the test."""
        if self.data_set == "two moons":
            (X, y), (Z, z) = (make_moons(k, noise=0.3, random_state=s) for k, s in ((self.n, 0), (self.n_test, 1)))
        else:
            make = rare_class if self.data_set == RARE else mixture_of_classes
            (X, y), (Z, z) = make(self.n, 0), make(self.n_test, 1)
        mean, std = X.mean(axis=0), X.std(axis=0)
        return (X - mean) / std, y, (Z - mean) / std, z

    @cached_property
    def gamma(self) -> float:
        """γ of exp(−γ d²) from the median distance, the same for all methods."""
        return float(RBF().resolve(self.data[0]).gamma)

    @cached_property
    def tasks(self) -> Array:
        """θ ∈ (−1, 1)."""
        return np.polynomial.legendre.leggauss(self.m)[0]

    @property
    def label(self) -> dict[str, Any]:
        """What tells this case from the others of its problem."""
        return {"data": self.data_set, "n": self.n}


@dataclass(frozen=True)
class LevelSets:
    """A mixture of three clouds, and the outlier fractions ν at the nodes of Gauss and Legendre on [0.05, 1]."""

    d: int
    n: int
    m: int = 100
    n_test: int = 2000
    tol: float = 1e-4

    @cached_property
    def data(self) -> tuple[Array, Array]:
        """X, X_test."""
        X, Z = (
            make_mixture(self.n, n_features=self.d, random_state=0),
            make_mixture(self.n_test, n_features=self.d, random_state=1),
        )
        mean, std = X.mean(axis=0), X.std(axis=0)
        return (X - mean) / std, (Z - mean) / std

    @cached_property
    def gamma(self) -> float:
        """γ of exp(−γ d²) from the median distance, the same for all methods."""
        return float(RBF().resolve(self.data[0]).gamma)

    @cached_property
    def tasks(self) -> Array:
        """ν ∈ (0.05, 1)."""
        return 0.05 + 0.475 * (1.0 + np.polynomial.legendre.leggauss(self.m)[0])

    @property
    def label(self) -> dict[str, Any]:
        """What tells this case from the others of its problem."""
        return {"d": self.d, "n": self.n}


# ------------------------------------------------------------------------------------------------------ many small fits
@dataclass(frozen=True)
class Small:
    """Many fits of one size: every d × alpha × non-crossing weight."""

    n: int
    dimensions: tuple[int, ...] = (1, 4, 8)
    alphas: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    noncrossing: tuple[float, ...] = (0.0, 1.0)
    m: int = 100
    tol: float = 1e-3

    @property
    def label(self) -> dict[str, Any]:
        """What tells this case from the others of its problem."""
        return {"n": self.n}

    def regressions(self) -> list[Regression]:
        """One for every d × alpha."""
        return [
            Regression(self.n, d=d, n_test=50, alpha=alpha, m=self.m, tol=self.tol)
            for d in self.dimensions
            for alpha in self.alphas
        ]


@dataclass(frozen=True)
class Path:
    """One data set, many values of alpha."""

    n: int
    d: int = 4
    alphas: tuple[float, ...] = field(default_factory=lambda: tuple(np.logspace(-1.0, -6.0, 20).tolist()))
    noncrossing: float = 1.0
    m: int = 100
    tol: float = 1e-3

    @property
    def label(self) -> dict[str, Any]:
        """What tells this case from the others of its problem."""
        ends = f"{max(self.alphas):g} to {min(self.alphas):g}"
        return {"n": self.n, "d": self.d, "alphas": f"{len(self.alphas)} from {ends}"}

    @property
    def regression(self) -> Regression:
        """The data."""
        return Regression(self.n, d=self.d, n_test=50, m=self.m, tol=self.tol)


MOONS, MIXTURE, RARE = "two moons", "8-D mixture", "one in twenty"
USUAL = tuple(np.logspace(0.0, -4.0, 20).tolist())

FULL: dict[str, list[Any]] = {
    "quantiles": [Regression(500), Regression(2000, alpha=1e-5)],
    "joint": [Joint(400)],
    "cost-sensitive": [Costs(data, n) for data in (MOONS, MIXTURE, RARE) for n in (500, 2000, 5000)],
    "level-sets": [LevelSets(d, n) for d in (2, 8) for n in (500, 2000, 5000)],
    "small": [Small(n) for n in (50, 100, 200, 300)],
    "path": [Path(200), *(Path(n, alphas=USUAL) for n in (100, 200, 300))],
}
QUICK: dict[str, list[Any]] = {
    "quantiles": [Regression(60, n_test=100, m=10, alpha=1e-3)],
    "joint": [Joint(30, n_test=100)],
    "cost-sensitive": [Costs(data, 60, m=5, n_test=100) for data in (MOONS, MIXTURE)],
    "level-sets": [LevelSets(d, 60, m=8, n_test=100) for d in (2, 8)],
    "small": [Small(30, dimensions=(1,), alphas=(1e-2, 1e-4), m=10)],
    "path": [Path(30, d=1, alphas=(1e-1, 1e-2, 1e-3), m=10)],
}


def cases(quick: bool, sizes: Sequence[int] | None = None) -> dict[str, list[Any]]:
    """The cases of every problem; ``sizes`` replaces the usual n."""
    found = QUICK if quick else FULL
    if not sizes:
        return found
    return {
        problem: list(dict.fromkeys(replace(case, n=n) for case in usual for n in sizes))
        for problem, usual in found.items()
    }
