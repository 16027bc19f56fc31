r"""Pivoted Cholesky factors of the Gram matrix of a kernel.

Greedy elimination writes K ≈ L Lᵀ with L of size n × r: each step selects as pivot the row whose residual
d_i = K_ii − ‖L_i‖² is largest. The factor is exact to a tolerance if no residual exceeds it
(|R_ij| ≤ √(R_ii R_jj) bounds the remaining matrix). With the pivots P, the features

    φ(x) = k(x, X_P) L_P⁻ᵀ

have the values L on the training rows and are the Nyström map on P at new rows. A small Gram matrix is factorised by
LAPACK (:func:`factorise`); a large one is never formed: :func:`factorise_rows` eliminates blocks of pivots,
each found by the same LAPACK call on a few candidate rows.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from scipy.linalg import lapack, solve_triangular

from infinitask._base.arrays import Array, HostArray, as_like, inverse_transposed, namespace, take, to_host
from infinitask._base.validation import number
from infinitask.kernels import InputKernel

DIRECT_ROWS = 3000
"""The maximum number of rows for which LAPACK factorises the whole Gram matrix, unless its rank is low: at full rank
this is 3 times faster than blocks of pivots. The rank is then not capped by default."""

BLOCK_PIVOTS = 256
"""The number of pivots eliminated together for large Gram matrices, chosen among twice that number of rows."""

BLOCK_DROP = 1e-3
"""A block stops at this fraction of the largest residual at its start. Rows that were not candidates may keep large
residuals, and large pivots after small ones reduce the accuracy of the transform: without this bound the error of
φ(X)φ(X)ᵀ was 2e-10 with a tolerance of 1e-12."""

INDEFINITE = 1e-6
"""A negative residual is a rounding error up to this fraction of the largest diagonal entry."""


@final
class Inverse:
    """The matrix T = L⁻ᵀ, represented without computing it.

    A prediction needs only T R: for 2000 features and 16 columns of R a solve takes 5 ms, the inverse 90 ms.

    Parameters
    ----------
    lower : ndarray (r, r) or None
        L, lower triangular.
    spanned : (InputKernel, array (r, d)) or None
        Instead of L: k and Z with L Lᵀ = k(Z, Z). L is then computed on first access, and not saved.

    Examples
    --------
    >>> import numpy as np
    >>> T = Inverse(np.array([[2.0, 0.0], [1.0, 4.0]]))
    >>> T.matrix, T.times(np.array([[0.0], [8.0]]))
    (array([[ 0.5  , -0.125],
           [ 0.   ,  0.25 ]]), array([[-1.],
           [ 2.]]))
    """

    def __init__(self, lower: HostArray | None = None, spanned: tuple[InputKernel, Array] | None = None) -> None:
        self.spanned = spanned
        if lower is not None:
            self.lower = lower

    @cached_property
    def lower(self) -> HostArray:
        """L, (r, r)."""
        assert self.spanned is not None
        kernel, landmarks = self.spanned
        gram = np.array(to_host(kernel(landmarks, landmarks)), dtype=float)
        return _factor(0.5 * (gram + gram.T))

    @property
    def shape(self) -> tuple[int, ...]:
        r = int(self.spanned[1].shape[0]) if self.spanned is not None else self.lower.shape[0]
        return r, r

    @cached_property
    def matrix(self) -> HostArray:
        """T, (r, r)."""
        return np.asarray(inverse_transposed(self.lower, self.lower))

    def beside(self, like: Array) -> Array:
        """Return T in the library, on the device and with the dtype of ``like``."""
        return as_like(self.matrix, like) if isinstance(like, np.ndarray) else inverse_transposed(self.lower, like)

    def times(self, R: HostArray) -> HostArray:
        """Return T R without computing T."""
        return np.asarray(solve_triangular(self.lower, R, lower=True, trans="T", check_finite=False))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        return np.array(self.matrix, dtype=dtype, copy=copy)

    def __getstate__(self) -> dict[str, Any]:
        # without what can be recomputed, and without the zeros of L
        if self.spanned is not None:
            return {"spanned": self.spanned}
        return {"packed": self.lower[np.tril_indices(self.lower.shape[0])]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.spanned = state.get("spanned")
        if "packed" in state:
            packed = state["packed"]  # from a file: another dtype would need more memory here
            if not isinstance(packed, np.ndarray) or packed.ndim != 1 or packed.dtype != np.float64:
                raise ValueError("A packed factor was given that is no array of floats.")
            r = int((2 * packed.size + 0.25) ** 0.5)
            self.lower = np.zeros((r, r))
            self.lower[np.tril_indices(r)] = packed


def _factor(gram: HostArray) -> HostArray:
    """Return L with L Lᵀ = k(Z, Z), for landmarks in the order of an earlier factorisation.

    The last pivots may be as small as rounding errors; the diagonal is then increased by such an error.
    """
    raised = 0.0
    largest = float(np.max(np.diagonal(gram)))
    while True:
        lower, failed = lapack.dpotrf(gram + raised * np.eye(gram.shape[0]), lower=1, clean=1)
        if not failed:
            return np.asarray(lower)
        raised = max(10.0 * raised, sys.float_info.epsilon * largest)


@final
@dataclass(frozen=True, eq=False)
class Factor:
    """A pivoted Cholesky factor: K ≈ L Lᵀ.

    Parameters
    ----------
    values : array (n, r)
        L, in the order of the rows of K.
    pivots : ndarray (p,) of int
        The eliminated rows, in this order; p = r, or p = r = 1 with zero values for K = 0.
    transform : Inverse (p, r)
        L_P⁻ᵀ: L is K[:, P] times it.
    residual : float
        The largest diagonal entry of K − L Lᵀ relative to that of K.
    gram : ndarray (n, n) or None
        K, if all of it was computed.
    """

    values: Array
    pivots: HostArray
    transform: Inverse
    residual: float
    gram: HostArray | None = None


@final
class Rows:
    """The Gram matrix of the training rows, computed entry by entry.

    Parameters
    ----------
    kernel : InputKernel
        Resolved on X here. Error messages name it, and its text is created for an error only.
    X : array (n, d)
        For a precomputed kernel the Gram matrix (n, n).
    """

    def __init__(self, kernel: InputKernel, X: Array) -> None:
        if kernel.precomputed:
            _check_gram(X)
        self.kernel = kernel if kernel.precomputed else kernel.resolve(X)
        self.X, self.n = X, int(X.shape[0])

    def diagonal(self) -> HostArray:
        """k(x_i, x_i), shape (n,)."""
        gram = self.kernel.precomputed
        diagonal = namespace(self.X).linalg.diagonal(self.X) if gram else self.kernel.diag(self.X)
        return np.asarray(to_host(diagonal), dtype=float)

    def block(self, rows: HostArray | None, columns: HostArray | None) -> Array:
        """Return k(x_i, x_j) for i in ``rows`` and j in ``columns``; None means all."""
        if self.kernel.precomputed:
            return take(self.some(rows), columns, 1)
        return self.kernel(self.some(rows), self.some(columns))

    def some(self, rows: HostArray | None) -> Array:
        """Return x_i for i in ``rows``; None means all."""
        return take(self.X, rows, 0)


def _check_gram(gram: Array) -> None:
    """Raise an error if a matrix does not have the shape or the symmetry of a Gram matrix."""
    xp = namespace(gram)
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"kernel='precomputed' was given an array of shape {tuple(gram.shape)}; fit expects the square "
            "Gram matrix k(X_train, X_train). Rows k(x, X_train) of new inputs belong to predict."
        )
    # rounding errors of a Gram matrix grow with its entries
    slack = max(1e-8, 100 * float(xp.finfo(gram.dtype).eps)) * float(xp.max(xp.abs(gram)))
    skew = float(xp.max(xp.abs(gram - xp.matrix_transpose(gram))))
    if skew > slack:
        raise ValueError(
            f"kernel='precomputed' was given a Gram matrix with |K − Kᵀ| up to {skew:.3g}; a kernel is "
            "symmetric. Pass (K + K.T) / 2 if the difference is an accident of rounding."
        )


def tolerance_for(tolerance: float, like: Array) -> float:
    """Return the given tolerance, or a larger one if the precision of ``like`` requires it."""
    tolerance = number("tolerance", tolerance, low=0.0, open_low=False)
    # entries of size 1 have an error of eps, and sums of hundreds of squares several eps: smaller pivots are noise
    return max(tolerance, 32 * float(namespace(like).finfo(like.dtype).eps))


def sample(weights: HostArray, size: int, rng: np.random.Generator) -> HostArray:
    """Sample ``size`` positions without replacement in proportion to ``weights``; zero weights come last."""
    if size >= weights.shape[0]:
        return np.arange(weights.shape[0])
    # exponential clocks with rates w: the first `size` to ring are such a sample
    times = np.full(weights.shape[0], np.inf)
    clocks = rng.exponential(size=weights.shape[0])
    np.divide(clocks, weights, out=times, where=weights > 0)
    return np.sort(np.argpartition(times, size - 1)[:size])


def require_finite(values: HostArray, name: object) -> None:
    """Raise an error if kernel values overflowed."""
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"The kernel {name} gave values that are not finite: it overflows on these inputs. Standardise the inputs "
            "(for example with sklearn.preprocessing.StandardScaler), or lower the degree or scale of the kernel."
        )


def require_semidefinite(residual: HostArray, largest: float, name: object, eps: float) -> None:
    """Raise an error if a residual of the elimination is only possible for an indefinite or infinite matrix."""
    require_finite(residual, name)
    lowest = float(np.min(residual, initial=0.0))
    if lowest < -max(INDEFINITE, 100 * eps) * largest or (largest == 0 and lowest < 0):
        raise ValueError(
            f"The kernel {name} is not positive semi-definite on these inputs: elimination leaves {lowest:.3g} on its "
            f"diagonal, whose largest entry is {largest:.3g}. Use a kernel that is, such as 'rbf'; the diagonal of a "
            "precomputed Gram can be raised by minus its smallest eigenvalue."
        )


def eliminate(gram: HostArray, stop: float, limit: int) -> tuple[HostArray, HostArray]:
    """Return the lower factor (n, r) in the order of the pivots, and all n positions in that order.

    The elimination stops at a pivot ≤ ``stop``, or after ``limit`` pivots.
    """
    # LAPACK's dpstrf updates in BLAS-3 blocks: at least 5 times faster than one rank-one step per pivot. A symmetric
    # matrix is its own transpose, so passing the Fortran-ordered transpose avoids a copy.
    factor, order, rank, _ = lapack.dpstrf(gram.T, tol=stop, lower=1, overwrite_a=1)
    rank = min(int(rank), limit)
    return np.tril(factor[:, :rank]), order - 1


def _zero_factor(values: Array) -> Factor:
    """Return the factor of K = 0: one feature that is zero everywhere, which avoids empty arrays."""
    return Factor(values, np.zeros(1, dtype=int), Inverse(np.full((1, 1), np.inf)), 0.0)


def factorise(gram: Array, tolerance: float, rank: int | None = None, name: object = "given") -> Factor:
    """Compute the pivoted Cholesky factor of a matrix (n, n) of any library, on the host in double precision."""
    eps = float(namespace(gram).finfo(gram.dtype).eps)
    known = np.asarray(to_host(gram), dtype=float)
    gram = known.copy()  # LAPACK overwrites it
    n = gram.shape[0]
    diagonal = np.diagonal(gram).copy()
    largest = float(np.max(diagonal, initial=0.0))
    # the diagonal does not determine the other entries; one product with a vector of signs involves the whole matrix
    signs = np.where(np.arange(n) * 0.6180339887498949 % 1 < 0.5, 1.0, -1.0)
    probe = gram @ signs
    require_finite(probe, name)
    lower, order = eliminate(gram, tolerance * largest, n if rank is None else rank)
    r = lower.shape[1]
    values = np.zeros((n, max(r, 1)))
    values[order, :r] = lower
    left = diagonal - np.einsum("ij,ij->i", values, values)
    require_semidefinite(left, largest, name, eps)
    residual = max(float(np.max(left, initial=0.0)), 0.0)
    # a positive semi-definite remainder R has |R v|_i ≤ √R_ii Σ_j √R_jj for signs v
    bound = np.sqrt(residual) * np.sum(np.sqrt(np.maximum(left, 0.0))) + n * max(INDEFINITE, 100 * eps) * largest
    excess = float(np.max(np.abs(probe - values @ (values.T @ signs)), initial=0.0))
    if excess > bound:
        raise ValueError(
            f"The kernel {name} is not positive semi-definite on these inputs: it has entries off the diagonal "
            "that the diagonal does not allow. Use a kernel that is, such as 'rbf'."
        )
    if not r:
        return _zero_factor(values)
    pivots = np.asarray(order[:r], dtype=int)
    return Factor(values, pivots, Inverse(lower[:r].copy()), residual / largest, known)


def _low_rank(rows: Rows, tolerance: float) -> bool:
    """Whether a quarter of a block of pivots spans a sample of rows of the size of a block.

    With few rows the sample takes more time than it saves. Only kernels known to be positive semi-definite are sampled:
    errors in entries that are never computed cannot be detected.
    """
    if rows.n <= 5 * BLOCK_PIVOTS or not rows.kernel.stationary:
        return False
    some = np.linspace(0, rows.n - 1, BLOCK_PIVOTS).astype(int)
    gram = np.array(to_host(rows.block(some, some)), dtype=float)
    require_finite(gram, rows.kernel)
    factor, _ = eliminate(gram, tolerance * float(np.max(np.diagonal(gram))), BLOCK_PIVOTS)
    return bool(factor.shape[1] <= BLOCK_PIVOTS // 4)


def factorise_rows(
    rows: Rows, tolerance: float, rank: int | None, rng: np.random.Generator, mean: float = 0.0
) -> Factor:
    """Compute the pivoted Cholesky factor of the Gram matrix of ``rows``, in O(n r) memory if it is large.

    With more than ``DIRECT_ROWS`` rows, or fewer rows of low rank, the elimination proceeds in rounds. Each round
    samples candidates in proportion to their residuals, eliminates greedily among them until the tolerance is met there
    or a block is full, and computes that block of columns for all rows by two matrix products:

        B = (k(X, X_P) − L L_Pᵀ) L_PP⁻ᵀ,        L ← [L, B],        d ← d − Σ_j B_·j².

    One pivot at a time would do the same arithmetic in matrix–vector products, and take three times as long. The rounds
    end when no row is above the tolerance, so the guarantee is that of greedy steps, and the rank is almost the same.
    With a cap, the mean residual is smaller than that of greedy steps and the largest one is larger: candidates come
    from dense regions, while greedy steps prefer outliers.

    With ``mean``, the rounds also end when the mean of the residuals is at most this fraction of the mean diagonal
    entry. Outliers that nothing else spans then remain outside of the span.
    """
    n = rows.n
    limit = n if rank is None else min(n, rank)
    if n <= DIRECT_ROWS:
        # a fixed seed: sampling only determines the order of the work, and a fit to few rows is bitwise reproducible
        rng = np.random.default_rng(0)
    # errors of a matrix that is never computed cannot be detected
    whole = n <= DIRECT_ROWS and not (mean > 0.0 and rows.kernel.stationary)
    if whole and (limit < n or not _low_rank(rows, tolerance)):
        diagonal = rows.diagonal()
        largest = float(np.max(diagonal, initial=0.0)) or 1.0
        tolerance = max(tolerance, mean * float(np.mean(diagonal)) / largest)
        found = factorise(rows.block(None, None), tolerance, limit, rows.kernel)
        return replace(found, values=as_like(found.values, rows.X))
    xp = namespace(rows.X)
    left = rows.diagonal().copy()
    largest = float(np.max(left, initial=0.0))
    eps = float(xp.finfo(rows.X.dtype).eps)
    require_semidefinite(left, largest, rows.kernel, eps)
    stop, enough = tolerance * largest, mean * float(np.mean(left))
    blocks: list[Array] = []
    pivots: list[HostArray] = []
    found_so_far = 0
    while found_so_far < limit and float(np.max(left)) > stop and float(np.mean(left)) > enough:
        above = np.flatnonzero(left > stop)
        # the worst row is always a candidate: every round then makes progress
        candidates = np.union1d(above[sample(left[above], 2 * BLOCK_PIVOTS, rng)], np.argmax(left))
        remainder = rows.block(candidates, candidates)
        for block in blocks:
            part = take(block, candidates, 0)
            remainder = remainder - part @ xp.matrix_transpose(part)
        host = np.array(to_host(remainder), dtype=float)
        require_finite(host, rows.kernel)
        fresh = np.diagonal(host).copy()
        floor = max(stop, enough, BLOCK_DROP * float(np.max(left)))
        lower, order = eliminate(host, floor, min(BLOCK_PIVOTS, limit - found_so_far))
        r = lower.shape[1]
        if not r:  # these rows are above the floor by rounding only
            left[candidates] = np.minimum(left[candidates], fresh)
            continue
        chosen = candidates[order[:r]]
        columns = rows.block(None, chosen)
        for block in blocks:
            columns = columns - block @ xp.matrix_transpose(take(block, chosen, 0))
        new = columns @ as_like(Inverse(lower[:r]).matrix, columns)
        left = left - np.asarray(to_host(xp.sum(new * new, axis=1)), dtype=float)
        require_semidefinite(left, largest, rows.kernel, eps)
        left[chosen] = 0.0
        blocks.append(new)
        pivots.append(chosen)
        found_so_far += r
    if not blocks:
        return _zero_factor(as_like(np.zeros((n, 1)), rows.X))
    values = xp.concat(blocks, axis=1)
    order = np.concatenate(pivots)
    lower = np.tril(np.asarray(to_host(take(values, order, 0)), dtype=float))
    return Factor(values, order, Inverse(lower), max(float(np.max(left)), 0.0) / largest)
