"""Feature maps φ(x) of the input kernel, for predictions at new rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, take, to_host
from infinitask.features._cholesky import Inverse
from infinitask.kernels import InputKernel
from infinitask.kernels._towards import Folded, Towards


def _beside(values: Array, X: Array) -> Array:
    """Return ``values`` on the device of X; NumPy arrays of equal dtype are returned at once, for fast single rows."""
    if isinstance(values, np.ndarray) and isinstance(X, np.ndarray) and values.dtype == X.dtype:
        return values
    return as_like(values, X)


def _folded(left: Array | Inverse, right: HostArray) -> Array:
    """Return left @ right, computed once in double precision on the host, on the device of ``left``."""
    right = np.asarray(right, dtype=float)
    return (
        left.times(right)
        if isinstance(left, Inverse)
        else as_like(np.asarray(to_host(left), dtype=float) @ right, left)
    )


# eq=False: == of arrays is elementwise, so maps are compared by identity
@dataclass(frozen=True, eq=False)
class FeatureMap(ABC):
    """Computes features of new rows: φ maps (n, d) to (n, r), with φ(x)ᵀφ(z) ≈ k(x, z)."""

    @abstractmethod
    def __call__(self, X: Array) -> Array:
        """Return features (n, r) of the rows (n, d), in the library and with the dtype of ``X``."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number r of features."""

    @property
    def width(self) -> int:
        """The number of intermediate values for the features of a row."""
        return self.rank

    def then(self, R: HostArray) -> FeatureMap:
        """Return x ↦ φ(x) R, for R of shape (r, q)."""
        return CombinedMap(self, R)

    def compact(self) -> FeatureMap:
        """Return the same map without arrays that can be recomputed."""
        return self


@final
@dataclass(frozen=True, eq=False)
class CombinedMap(FeatureMap):
    """Combines the features of another map: x ↦ φ(x) R, computed in this order.

    Parameters
    ----------
    map : FeatureMap
        φ.
    right : ndarray (r, q)
        R.

    Examples
    --------
    >>> import numpy as np
    >>> FourierMap(np.zeros((3, 1))).then(np.array([[2.0], [5.0]]))(np.ones((1, 3)))
    array([[2.]])
    """

    map: FeatureMap
    right: Array

    def __call__(self, X: Array) -> Array:
        features = self.map(X)
        return features @ _beside(self.right, features)

    @property
    def rank(self) -> int:
        return int(self.right.shape[1])

    @property
    def width(self) -> int:
        return self.map.width

    def then(self, R: HostArray) -> CombinedMap:
        """Return x ↦ φ(x) (R R'), with one product for each row."""
        return replace(self, right=_folded(self.right, R))


class _Spanned(FeatureMap):
    """Columns of a Gram matrix times T."""

    transform: Array | Inverse

    @abstractmethod
    def columns_of(self, X: Array) -> Array:
        """Return k(x, z) for the landmarks z, (n, p)."""

    def __call__(self, X: Array) -> Array:
        columns, T = self.columns_of(X), self.transform
        return columns @ (T.beside(columns) if isinstance(T, Inverse) else _beside(T, columns))

    @property
    def rank(self) -> int:
        return int(self.transform.shape[1])

    @property
    def width(self) -> int:
        return int(self.transform.shape[0])

    def then(self, R: HostArray) -> FeatureMap:
        """Return x ↦ k(x, Z) (T R); the p × r numbers of T are used once, not for every row.

        T contains numbers up to 1e7 that cancel in φ(x). Folding it into R is as accurate: for kernels of one feature,
        with tolerances of 1e-12 and 1e-14, the errors of (k T) R and k (T R), against 40 digits, are within a factor of
        3.
        """
        return self.with_transform(_folded(self.transform, R))

    def with_transform(self, T: Array | Inverse) -> Self:
        """Return x ↦ k(x, Z) T."""
        return replace(self, transform=T)  # type: ignore[call-arg]  # a field of every subclass


@final
@dataclass(frozen=True, eq=False)
class KernelMap(_Spanned):
    """Features spanned by a kernel at landmarks: φ(x) = k(x, Z) T.

    Parameters
    ----------
    kernel : InputKernel
        A resolved kernel: its bandwidth is a number.
    landmarks : array (p, d)
        Z.
    transform : array (p, r) or Inverse
        T, with T Tᵀ = k(Z, Z)⁻¹, φ is then the orthogonal projection on the span of the k(·, z).

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Linear
    >>> KernelMap(Linear(), np.eye(2), np.eye(2))(np.array([[3.0, 4.0]]))
    array([[3., 4.]])
    """

    kernel: InputKernel
    landmarks: Array
    transform: Array | Inverse

    def columns_of(self, X: Array) -> Array:
        if self._towards is not None and self._towards.takes(X):
            return self._towards(X)
        return self.kernel(X, _beside(self.landmarks, X))

    def __call__(self, X: Array) -> Array:
        if self._folded is not None and self._folded.towards.takes(X):
            return self._folded(X)
        return super().__call__(X)

    def then(self, R: HostArray) -> FeatureMap:
        """Return x ↦ k(x, Z) (T R)."""
        if isinstance(self.transform, Inverse):
            return self.with_transform(as_like(_folded(self.transform, R), self.landmarks))
        other = super().then(R)
        vars(other)["_before"] = self, np.asarray(R, dtype=float)
        return other

    def with_transform(self, T: Array | Inverse) -> KernelMap:
        """Return x ↦ k(x, Z) T."""
        other = replace(self, transform=T)
        if "_towards" in vars(self):  # it depends on k and Z alone
            vars(other)["_towards"] = self._towards
        return other

    def compact(self) -> KernelMap:
        """Return the same map with k and Z instead of the r × r numbers of T."""
        T = self.transform
        if not isinstance(T, Inverse) or T.spanned is not None or not np.all(np.isfinite(np.diagonal(T.lower))):
            return self  # k(Z, Z) = 0 is kept
        return self.with_transform(Inverse(spanned=(self.kernel, self.landmarks)))

    @property
    def width(self) -> int:
        """The number of intermediate values for the features of a row."""
        return super().width if self._folded is None else max(super().width, self._folded.width)

    @cached_property
    def _towards(self) -> Towards | None:
        Z = self.landmarks
        return Towards(self.kernel, Z) if isinstance(Z, np.ndarray) and Z.dtype == np.float64 else None

    @cached_property
    def _folded(self) -> Folded | None:
        T = self.transform
        before: tuple[KernelMap, HostArray] | None = vars(self).get("_before")
        if before is not None and before[0]._folded is not None:
            return before[0]._folded.times(before[1])
        known = isinstance(T, np.ndarray) and T.dtype == np.float64 and self._towards is not None
        return Folded(self._towards, T) if known else None  # type: ignore[arg-type]  # known

    def __getstate__(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}  # without what can be recomputed


@final
@dataclass(frozen=True, eq=False)
class PrecomputedMap(_Spanned):
    """Features for a Gram matrix that the caller computes: φ(x) = k(x, X_train)[columns] T.

    For a new row x the caller supplies k(x, X_train).

    Parameters
    ----------
    columns : ndarray (p,) of int
        The training rows that are landmarks.
    transform : array (p, r) or Inverse
        T; see :class:`KernelMap`.

    Examples
    --------
    >>> import numpy as np
    >>> PrecomputedMap(np.array([2]), np.array([[0.5]]))(np.array([[7.0, 8.0, 4.0]]))
    array([[2.]])
    """

    columns: HostArray
    transform: Array | Inverse

    def columns_of(self, X: Array) -> Array:
        return take(X, self.columns, axis=1)


@final
@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """Random Fourier features: φ(x) = [cos(xW), sin(xW)] / √q.

    φ(x)ᵀφ(z) is the mean of cos(wᵀ(x − z)) over the columns w of W.

    Parameters
    ----------
    frequencies : array (d, q)
        W, sampled from the spectral measure of the kernel; there are r = 2q features.

    Examples
    --------
    >>> import numpy as np
    >>> FourierMap(np.zeros((3, 1)))(np.ones((1, 3)))
    array([[1., 0.]])
    """

    frequencies: Array

    def __call__(self, X: Array) -> Array:
        xp = namespace(X)
        angles = X @ as_like(self.frequencies, X)
        return xp.concat([xp.cos(angles), xp.sin(angles)], axis=1) / float(self.frequencies.shape[1]) ** 0.5

    @property
    def rank(self) -> int:
        return 2 * int(self.frequencies.shape[1])


@final
@dataclass(frozen=True, eq=False)
class Features:
    """A feature map together with its values on the training rows.

    Parameters
    ----------
    map : FeatureMap
        φ, for new rows.
    values : array (n, r)
        Φ, its values on the training rows.
    description : str
        One sentence on the features, the reason for them, and their accuracy.
    residual : float
        max_i (k − φφᵀ)(x_i, x_i) / max_i k(x_i, x_i); 0.0 if unknown.
    exact : bool
        Whether φ reproduces the kernel on the training rows to the requested tolerance.
    gram : ndarray (n, n) or None
        k(x_i, x_j), if all of it was computed and φ is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.features import PivotedCholesky
    >>> from infinitask.kernels import Linear
    >>> X = np.array([[1.0], [2.0]])
    >>> features = PivotedCholesky().build(Linear(), X, 1e-12, np.random.default_rng(0))
    >>> features.values, features.map(np.array([[3.0]]))
    (array([[1.],
           [2.]]), array([[3.]]))
    """

    map: FeatureMap
    values: Array
    description: str
    residual: float
    exact: bool
    gram: HostArray | None = None

    @property
    def rank(self) -> int:
        """The number r of features."""
        return self.map.rank
