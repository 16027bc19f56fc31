"""Recipes: they select the features of the input kernel, and their number."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.cluster import kmeans_plusplus

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask._base.validation import count, number
from infinitask.features._cholesky import (
    DIRECT_ROWS,
    Inverse,
    Rows,
    factorise,
    factorise_rows,
    require_finite,
    sample,
    tolerance_for,
)
from infinitask.features._maps import FeatureMap, Features, FourierMap, KernelMap, PrecomputedMap
from infinitask.kernels import InputKernel

DEFAULT_RANK = 1000
"""The number of landmarks, or of random features, if no rank is given, and the maximum rank of `Auto` with more than
DIRECT_ROWS rows. With 1500, held-out losses of five tables of 9 000 rows change by −2 to 1.6% at twice the time."""


class FeatureRecipe(BaseEstimator, ABC):
    """Turns a kernel and the training rows into φ.

    To write another recipe, derive from this class, implement ``_build`` and add its name to the table below.

    Parameters
    ----------
    rank : int or None
        The number of features; each recipe documents the meaning of None.
    """

    def __init__(self, rank: int | None = None) -> None:
        self.rank = rank

    def build(self, kernel: InputKernel, X: Array, tolerance: float, rng: np.random.Generator) -> Features:
        """Return features of ``kernel``, built from the rows of ``X``.

        Parameters
        ----------
        kernel : InputKernel
            A data-dependent bandwidth is resolved on ``X``; the map keeps the resolved kernel.
        X : array (n, d)
            For a precomputed kernel the Gram matrix (n, n).
        tolerance : float
            The features count as exact if max_i (k − φφᵀ)(x_i, x_i) ≤ tolerance · max_i k(x_i, x_i). A tolerance
            below the precision of ``X`` is raised to it.
        rng : numpy.random.Generator

        Returns
        -------
        Features
        """
        if not isinstance(kernel, InputKernel):
            raise TypeError(f"kernel={kernel!r} was given; it must be an input kernel such as RBF(gamma=0.5).")
        with np.errstate(over="ignore", invalid="ignore"):  # overflow raises an error later, not a warning
            return self._build(kernel, X, tolerance_for(tolerance, X), rng)

    @abstractmethod
    def _build(self, kernel: InputKernel, X: Array, tolerance: float, rng: np.random.Generator) -> Features:
        """Implement ``build``, for a tolerance that the precision of ``X`` permits."""


@final
class PivotedCholesky(FeatureRecipe):
    """Exact features: φφᵀ equals the Gram matrix to the tolerance.

    φ(x) = k(x, X_P) L_P⁻ᵀ on greedily chosen rows P. It spans all k(·, x_i), as required by the representer theorem.
    The number of features is the dimension of that span, and the coordinates are orthonormal.

    Parameters
    ----------
    rank : int or None
        The maximum number of features, even if the tolerance is not met; None: no limit.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Linear
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    >>> features = PivotedCholesky().build(Linear(), X, 1e-12, np.random.default_rng(0))
    >>> features.rank, bool(np.allclose(features.values @ features.values.T, X @ X.T))
    (2, True)
    """

    def _build(self, kernel: InputKernel, X: Array, tolerance: float, rng: np.random.Generator) -> Features:
        return _by_pivots(Rows(kernel, X), tolerance, self.rank, rng)


@final
class Nystroem(FeatureRecipe):
    """Approximate features for many rows, from landmarks Z among the rows.

    φ(x) = k(x, Z) T with T Tᵀ = k(Z, Z)⁻¹ is the projection on the span of the landmarks.
    k − φφᵀ is positive semi-definite: the features never exceed the kernel.

    Parameters
    ----------
    rank : int or None
        The number of landmarks; None: min(n, 1000). Landmarks that others span to the tolerance are dropped, so
        there may be fewer features.
    landmarks : {"uniform", "k-means++", "leverage"}
        - "uniform": rows without replacement, all with the same probability.
        - "k-means++": rows that are far from each other, by scikit-learn's seeding.
        - "leverage": rows in proportion to their ridge leverage l_i = [K(K + λI)⁻¹]_ii, estimated from a uniform
          sketch B (n × rank, B Bᵀ ≈ K) as

              l_i ≈ b_iᵀ(BᵀB + λI)⁻¹b_i + (k_ii − b_iᵀb_i)/λ,     λ = Σ_i (k_ii − b_iᵀb_i) / rank.

          The first term is the leverage within the sketch, and the second bounds the remainder. λ balances the
          two: each landmark resolves about one direction.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> X = np.linspace(0, 1, 500)[:, None]
    >>> features = Nystroem(rank=5).build(RBF(gamma=1.0), X, 1e-12, np.random.default_rng(0))
    >>> features.values.shape, features.exact
    ((500, 5), False)
    """

    def __init__(self, rank: int | None = None, landmarks: str = "uniform") -> None:
        self.rank = rank
        self.landmarks = landmarks

    def _build(self, kernel: InputKernel, X: Array, tolerance: float, rng: np.random.Generator) -> Features:
        n = int(X.shape[0])
        rows = Rows(kernel, X)
        p = min(n, count("rank", DEFAULT_RANK if self.rank is None else self.rank))
        if self.landmarks == "uniform":
            chosen = sample(np.ones(n), p, rng)
        elif self.landmarks == "k-means++":
            if kernel.precomputed:
                raise ValueError(
                    "landmarks='k-means++' measures distances between inputs, and a precomputed kernel has only "
                    "their Gram matrix; use landmarks='uniform' or 'leverage'."
                )
            seed = int(rng.uniform(0, 2**31 - 1))  # scikit-learn does not accept a Generator
            # duplicated rows may be chosen twice; the factorisation would drop them anyway
            chosen = np.unique(kmeans_plusplus(to_host(X), p, random_state=seed)[1])
        elif self.landmarks == "leverage":
            chosen = sample(_leverage(rows, p, tolerance, rng), p, rng)
        else:
            raise ValueError(f"landmarks={self.landmarks!r} is given; expected 'uniform', 'k-means++' or 'leverage'.")
        phi, values = _landmark_features(rows, chosen, tolerance)
        diagonal, left = _left(rows, values)
        largest = float(np.max(diagonal))
        residual = max(float(np.max(left)), 0.0) / largest if largest else 0.0
        return Features(
            phi,
            values,
            f"Nyström on {phi.rank} {self.landmarks} landmarks for {n} rows: residual {residual:.1e}",
            residual,
            residual <= tolerance,
        )


@final
class RandomFourier(FeatureRecipe):
    """Approximate features of stationary kernels, which need no landmarks.

    φ(x) = [cos(xW), sin(xW)]/√q with the columns of W sampled from the kernel's spectral measure. As
    k(x, z) = E cos(wᵀ(x − z)), the error of φ(x)ᵀφ(z) is that of a mean of q terms, O(q^(−1/2)). The diagonal is exact
    for every q and is uninformative about the error: ``residual`` is 0.0, ``exact`` False.

    Parameters
    ----------
    rank : int or None
        The number of features, two for each frequency (an odd number is rounded up); None: 1000.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> X = np.zeros((5, 2))
    >>> RandomFourier(rank=10).build(RBF(gamma=1.0), X, 1e-12, np.random.default_rng(0)).values.shape
    (5, 10)
    """

    def _build(self, kernel: InputKernel, X: Array, tolerance: float, rng: np.random.Generator) -> Features:
        if kernel.precomputed:
            raise ValueError(
                "Random Fourier features are functions of the inputs, and a precomputed kernel has only their Gram "
                "matrix; use features='auto' or 'nystroem'."
            )
        q = -(-count("rank", DEFAULT_RANK if self.rank is None else self.rank) // 2)
        frequencies = kernel.resolve(X).spectral(int(X.shape[1]), q, rng)
        phi = FourierMap(as_like(frequencies, X))
        values = phi(X)
        described = f"random Fourier: {phi.rank} features from {q} frequencies, an error of about {q**-0.5:.0e}"
        return Features(phi, values, described, 0.0, False)


@final
class Auto(FeatureRecipe):
    """Features as exact as λ asks: a Nyström map on greedy pivots, exact with few rows.

    The pivoted Cholesky factorisation runs until the tolerance is met, little enough is left out, or a cap is reached.
    A factor that ends early is itself a Nyström map, with landmarks chosen where the error was largest.

    Parameters
    ----------
    rank : int or None
        The cap; None: n for n ≤ 3000 rows and 1000 for more.
    left_out : float or None
        The fraction of k(x, x) that features may leave out, on average over the rows. None: a fit of more than 500
        rows to targets chooses it in proportion to nλ, such that it changes held-out losses by a fraction of a percent;
        otherwise features are exact.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> Auto().build(RBF(gamma=1.0), X, 1e-10, np.random.default_rng(0)).description
    'pivoted Cholesky: exact to 1e-10 with 8 features for 200 rows'
    """

    def __init__(self, rank: int | None = None, left_out: float | None = None) -> None:
        self.rank = rank
        self.left_out = left_out

    def _build(self, kernel: InputKernel, X: Array, tolerance: float, rng: np.random.Generator) -> Features:
        cap = DEFAULT_RANK if self.rank is None and X.shape[0] > DIRECT_ROWS else self.rank
        mean = (
            0.0
            if self.left_out is None
            else number("left_out", self.left_out, low=0.0, open_low=False, high=1.0, open_high=True)
        )
        return _by_pivots(Rows(kernel, X), tolerance, cap, rng, mean)


_RECIPES: dict[str, type[Any]] = {
    "auto": Auto,
    "exact": PivotedCholesky,
    "nystroem": Nystroem,
    "fourier": RandomFourier,
    "random-fourier": RandomFourier,
}


def feature_recipe(spec: str | FeatureRecipe, rank: int | str | None = None) -> FeatureRecipe:
    """Return the recipe for a name, with ``rank`` features; a recipe object is returned unchanged.

    "auto" leaves the rank open; the code that grows it sets a number.

    Examples
    --------
    >>> feature_recipe("nystroem", rank=300)
    Nystroem(rank=300)
    """
    if isinstance(spec, FeatureRecipe):
        return spec
    if isinstance(spec, str) and spec in _RECIPES:
        recipe: FeatureRecipe = _RECIPES[spec](rank=None if rank == "auto" else rank)
        return recipe
    names = ", ".join(repr(name) for name in _RECIPES)
    raise ValueError(f"features={spec!r} is given; expected one of {names}, or a recipe such as Nystroem(rank=500).")


def _by_pivots(rows: Rows, tolerance: float, rank: int | None, rng: np.random.Generator, mean: float = 0.0) -> Features:
    """Return features on greedy pivots; see :func:`factorise_rows`."""
    factor = factorise_rows(rows, tolerance, None if rank is None else count("rank", rank), rng, mean)
    found = factor.pivots.size
    # due to rounding, the residual may be slightly above the tolerance of the elimination
    exact = factor.residual <= 2 * tolerance
    phi = _spanned(rows, factor.pivots, factor.transform)
    if exact:
        described = f"pivoted Cholesky: exact to {tolerance:.0e} with {found} features for {rows.n} rows"
        return Features(phi, factor.values, described, factor.residual, exact, factor.gram)
    diagonal, left = _left(rows, factor.values)
    left_out = float(np.sum(np.maximum(left, 0.0)) / np.sum(diagonal))
    described = (
        f"pivoted Cholesky: {found} features for {rows.n} rows leave out {left_out:.1e} of k(x, x) on average; the "
        f"largest residual is {factor.residual:.0e}"
    )
    return Features(phi, factor.values, described, factor.residual, exact)


def _spanned(rows: Rows, columns: HostArray, transform: Inverse) -> FeatureMap:
    """Return φ(x) = k(x, X[columns]) T."""
    if rows.kernel.precomputed:
        return PrecomputedMap(columns, transform)
    return KernelMap(rows.kernel, rows.some(columns), transform)


def _landmark_features(rows: Rows, chosen: HostArray, tolerance: float) -> tuple[FeatureMap, Array]:
    """Return φ on the chosen rows and its values, without landmarks that others span to the tolerance."""
    factor = factorise(rows.block(chosen, chosen), tolerance, name=rows.kernel)
    phi = _spanned(rows, chosen[factor.pivots], factor.transform)
    return phi, phi(rows.X)


def _left(rows: Rows, values: Array) -> tuple[HostArray, HostArray]:
    """Return k_ii and k_ii − ‖φ(x_i)‖² on all rows, (n,) each."""
    diagonal = rows.diagonal()
    squares = np.asarray(to_host(namespace(values).sum(values * values, axis=1)), dtype=float)
    left = diagonal - squares
    require_finite(left, rows.kernel)
    return diagonal, left


def _leverage(rows: Rows, p: int, tolerance: float, rng: np.random.Generator) -> HostArray:
    """Return approximate ridge leverage scores, in (0, 1]; see :class:`Nystroem`."""
    xp = namespace(rows.X)
    _, sketch = _landmark_features(rows, sample(np.ones(rows.n), p, rng), tolerance)
    diagonal, left = _left(rows, sketch)
    left = np.maximum(left, 0.0)
    # the floor keeps λ positive if the sketch is already exact
    ridge = max(float(np.sum(left)) / p, tolerance * float(np.max(diagonal)))
    if ridge == 0.0:  # the kernel is zero on these rows
        return np.ones(rows.n)
    energies, axes = np.linalg.eigh(np.asarray(to_host(xp.matrix_transpose(sketch) @ sketch), dtype=float))
    turned = sketch @ as_like(axes / np.sqrt(np.maximum(energies, 0.0) + ridge), sketch)
    inside = np.asarray(to_host(xp.sum(turned * turned, axis=1)), dtype=float)
    return np.minimum(inside + left / ridge, 1.0)
