"""Fast k(x, Z) for fixed rows Z, such as the landmarks of a fitted model, and fast x ↦ k(x, Z) A.

Quantities that depend on Z alone are computed once. Quantities that the parts of a sum share are computed once too: the
features that :class:`~infinitask.kernels.Scaled` and others transform, and the distances of kernels of the same
features. Everything is derived from the description of the kernel. For a single row Python calls take longer than the
arithmetic, so there are few of them.

A function in the space of a linear kernel has d coefficients. A function of a sum over features is a sum of functions
of one feature each, which are determined by their values at a few points. Neither needs the landmarks.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, Self, TypeAlias, TypeGuard, final

import numpy as np
from scipy.spatial.distance import cdist

from infinitask._base.arrays import IN_CACHE, HostArray, row_blocks

from ._base import Description, InputKernel, Profile
from ._distances import FEW_ROWS, l1_distances, magnitude, squared_distances

ORDINARY = 1e30
"""Features and bandwidths beyond this size are handled by the kernels themselves, which do not overflow."""

NODES = {16: 0.7, 24: 2.0, 32: 2.8, 48: 5.6, 64: 8.0, 96: 11.3, 128: 16.0, 192: 32.0}
"""The numbers of points of an interpolation, and the widest interval on which exp(−t²) is then exact to 3e-15; rounding
alone contributes 1e-15 to 2e-15. Functions that vary more are not interpolated."""


@final
class Towards:
    """The function x ↦ k(x, Z), for NumPy arrays in double precision.

    Parameters
    ----------
    kernel : InputKernel
        A resolved kernel: its bandwidths are numbers.
    Z : ndarray (p, d)

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import RBF, Linear
    >>> towards = Towards(RBF(gamma=1.0) + Linear(), np.array([[0.0], [2.0]]))
    >>> X = np.array([[2.0]])
    >>> towards.takes(X), towards(X).round(3)
    (True, array([[0.018, 5.   ]]))
    """

    def __init__(self, kernel: InputKernel, Z: HostArray) -> None:
        self._views = [np.ascontiguousarray(Z)]
        """Z as the inner kernels receive it: unchanged, and after each transformation."""
        self._changes: list[tuple[int, Callable[[HostArray], HostArray]]] = []
        """The view that is transformed, and the transformation."""
        self._known: dict[Hashable, int] = {}
        self.parts = self._parts(self._terms(kernel.describe(), 0))
        """The summands of k(x, Z)."""
        self._ordinary = 0 not in Z.shape and all(magnitude(view) == 1.0 for view in self._views)

    def takes(self, X: Any) -> bool:
        """Whether these rows are supported; for others, call the kernel itself."""
        return (
            self._ordinary
            and type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self._views[0].shape[1]
            and bool(X.max() <= ORDINARY and X.min() >= -ORDINARY)  # False for a NaN
        )

    def __call__(self, X: HostArray) -> HostArray:
        """Return k(x, z) for the rows of X, (n, p), as a new array."""
        return _joined(np.add, self.parts, self.inputs(X))

    def inputs(self, X: HostArray) -> list[HostArray]:
        """Return the rows of X as the inner kernels receive them."""
        inputs = [X]
        for view, change in self._changes:
            inputs.append(change(inputs[view]))
        return inputs

    # ----------------------------------------------------------------------------------------- taking a kernel apart
    def _terms(self, node: Description, view: int) -> list[tuple[Description, int]]:
        """Return the kernels whose sum this one is, without transformations around them, and their views."""
        if node.kind == "sum":
            return [term for part in node.parts for term in self._terms(part, view)]
        Z = self._views[view]
        change, key = _change(node, int(Z.shape[1]))
        if change is None:
            return [(node, view)]
        place = view, node.kind, key
        if place not in self._known:
            self._known[place] = len(self._views)
            self._views.append(np.ascontiguousarray(change(Z)))
            self._changes.append((view, change))
        return self._terms(node.parts[0], self._known[place])

    def _parts(self, terms: list[tuple[Description, int]]) -> list[Part]:
        """Return parts with the same sum as the terms; terms of the same distances are merged into one part."""
        radial: dict[tuple[int, str], list[Profile]] = {}
        each: dict[int, list[Profile]] = {}
        parts: list[Part] = []
        for node, view in terms:
            Z = self._views[view]
            profile, per_feature = node.profile, _per_feature(node, int(Z.shape[1]))
            if _is_known(profile):
                radial.setdefault((view, profile.of), []).append(profile)
            elif per_feature is not None:
                each.setdefault(view, []).append(per_feature)
            elif node.kind == "product":
                factors = [self._parts(self._terms(part, view)) for part in node.parts]
                parts.append(partial(_joined, np.multiply, [partial(_joined, np.add, factor) for factor in factors]))
            elif profile is not None and profile.is_linear:
                parts.append(_Linear(view, Z))
            else:
                parts.append(partial(_plain, view, Z, node.kernel))
        parts += [_Radial(view, self._views[view], of, p) for (view, of), p in radial.items()]
        return parts + [_PerFeature(view, self._views[view], profiles) for view, profiles in each.items()]


def _change(node: Description, d: int) -> tuple[Callable[[HostArray], HostArray] | None, Hashable]:
    """Return g of a kernel k₀(g(x), g(z)) of d features, and a key that identifies g; None for other kernels."""
    if node.kind == "ranks" and node.values["ranks"] is not None:
        ranks = node.values["ranks"]
        return (ranks if len(ranks.columns) == d else None), id(ranks)
    numbers = node.values.get({"scaled": "scales", "metric": "root"}.get(node.kind, ""))
    if numbers is None or numbers.shape[0] != d:  # the kernel itself raises the error
        return None, None
    key = numbers.shape, numbers.tobytes()
    return (lambda X: X * numbers) if node.kind == "scaled" else (lambda X: X @ numbers), key


def _is_known(profile: Profile | None) -> TypeGuard[Profile]:
    """Whether it is a decaying function of a distance with a rate of moderate size."""
    return (
        profile is not None
        and profile.of in _DISTANCES
        and profile.series != ()
        and profile.offset == 0.0
        and 1.0 / ORDINARY <= profile.gamma <= ORDINARY
    )


def _per_feature(node: Description, d: int) -> Profile | None:
    """Return the profile of a mean of one-feature functions that differ in γ only, with a column of γ; else None."""
    if node.kind != "each" or len(node.parts) not in (1, d):
        return None
    found = [part.profile for part in node.parts]
    profiles = [profile for profile in found if _is_known(profile)]
    shapes = {(p.of, p.factor, p.root, p.series) for p in profiles}
    if len(profiles) < len(found) or len(shapes) > 1:
        return None
    gamma = np.full((d, 1), [[p.gamma] for p in profiles])
    if profiles[0].of == "squared":
        return replace(profiles[0], gamma=gamma)
    if not profiles[0].is_exponential:
        return None
    # exp(−γ|x − z|) of one feature is a Matérn kernel
    return Profile("squared", 0.5 * gamma**2, 2.0, root=True, series=(1.0,))


def mean_over_features(kernel: InputKernel, X: HostArray, Z: HostArray) -> HostArray | None:
    """Return the Gram matrix (n, p) of a mean of one-feature functions; None if the kernel must compute it itself.

    Parameters
    ----------
    kernel : Additive
    X : ndarray (n, d)
    Z : ndarray (p, d)
    """
    profile = _per_feature(kernel.describe(), int(Z.shape[1]))
    ordinary = 0 not in (*X.shape, *Z.shape) and magnitude(X) == 1.0 == magnitude(Z)
    return _PerFeature(0, Z, [profile])([X]) if profile is not None and ordinary else None


# -------------------------------------------------------------------------------------------------------- the parts
Part: TypeAlias = Callable[[list[HostArray]], HostArray]
"""Maps the rows in all views to a part of k(x, Z), or to features for a part of k(x, Z) A, as a new array."""


def _joined(join: np.ufunc, parts: list[Part], inputs: list[HostArray]) -> HostArray:
    """Return the sum or the product of some parts, by a NumPy ufunc."""
    first, *others = parts
    total = first(inputs)
    for part in others:
        join(total, part(inputs), out=total)
    return total


def _plain(view: int, Z: HostArray, kernel: Any, inputs: list[HostArray]) -> HostArray:
    """Evaluate a kernel of unknown structure."""
    return np.array(kernel(inputs[view], Z))  # a copy: the function may keep a reference


@final
class _Linear:
    """The linear kernel xᵀz."""

    def __init__(self, view: int, Z: HostArray) -> None:
        self.view, self.columns = view, Z.T

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        return np.asarray(inputs[self.view] @ self.columns)


_DISTANCES = {"squared": ("sqeuclidean", squared_distances), "l1": ("cityblock", l1_distances)}


@final
class _Radial:
    """A sum of functions of one distance."""

    def __init__(self, view: int, Z: HostArray, of: str, profiles: list[Profile]) -> None:
        self.view, self.Z, self.profiles = view, Z, profiles
        self.metric, self.distances = _DISTANCES[of]
        self.rate = max(p.gamma for p in profiles)
        self.relative = [replace(p, gamma=p.gamma / self.rate) for p in profiles]

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.view]
        if X.shape[0] < FEW_ROWS:
            return _summed(cdist(X, self.Z, self.metric), self.profiles)
        # with the largest rate, which determines the accuracy that the matrix product needs
        return _summed(self.distances(X, self.Z, self.rate), self.relative)


@final
class _PerFeature:
    """A sum of means over the features of a function of one feature: (1/d) Σ_j f_j(x_j − z_j).

    A feature with two values u and v among the landmarks, such as a one-hot column, needs f_j at both only:
    f_j(x_j − z_j) = f_j(x_j − u_j) + [z_j = v_j] (f_j(x_j − v_j) − f_j(x_j − u_j)).
    """

    def __init__(self, view: int, Z: HostArray, profiles: list[Profile]) -> None:
        self.view, self.d = view, int(Z.shape[1])
        low, high = Z.min(axis=0), Z.max(axis=0)
        two = np.all((low == Z) | (high == Z), axis=0)
        self.two, self.others = np.flatnonzero(two), np.flatnonzero(~two)
        self.ends = np.stack([low, high])[:, None, two]
        self.at_high = np.ascontiguousarray((Z[:, two] == high[two]).T, dtype=float)
        self.at_ends = [replace(p, gamma=_same(p.gamma[two].T)) for p in profiles]
        self.columns = np.ascontiguousarray(Z[:, ~two].T)
        self.profiles = [replace(p, gamma=_same(p.gamma[~two])) for p in profiles]

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.view]
        total = np.zeros((X.shape[0], self.columns.shape[1]))
        if self.two.size:
            low, high = self.of_two_values(X)
            total += (high - low) @ self.at_high
            total += low.sum(axis=1, keepdims=True)
        rest, ones = X[:, self.others, None], np.ones(len(self.columns))
        for rows in row_blocks(len(X), self.columns.size, IN_CACHE):
            squares = rest[rows] - self.columns
            np.multiply(squares, squares, out=squares)
            total[rows] += ones @ _summed(squares, self.profiles)
        total /= self.d
        return total

    def of_two_values(self, X: HostArray) -> HostArray:
        """f_j(x_j − u_j) and f_j(x_j − v_j) of the features with two values, (2, n, d₂)."""
        return _summed((X[:, self.two] - self.ends) ** 2, self.at_ends)


def _same(gamma: HostArray) -> Any:
    """Return a scalar if all entries are equal: multiplying by it takes a third of the time."""
    return float(gamma.flat[0]) if gamma.size and np.all(gamma == gamma.flat[0]) else gamma


def _summed(squares: HostArray, profiles: list[Profile]) -> HostArray:
    """Return the sum of all profiles at these distances, which are overwritten."""
    *others, last = profiles
    found = [profile(profile.gamma * squares) for profile in others]
    squares *= last.gamma
    total = last(squares)
    for values in found:
        total += values
    return np.asarray(total)


# ------------------------------------------------------------------------------------------------ without landmarks
@final
class Folded:
    """The function x ↦ k(x, Z) A, for NumPy arrays in double precision.

    Parameters
    ----------
    towards : Towards
        x ↦ k(x, Z).
    A : ndarray (p, q)

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import Linear
    >>> Z, A = np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])
    >>> Folded(Towards(Linear(), Z), A)(np.array([[5.0]]))
    array([[30.]])
    """

    def __init__(self, towards: Towards, A: HostArray) -> None:
        self.towards, self.A = towards, A
        self.parts: list[tuple[Part, HostArray]] = []
        """Features, and their coefficients."""
        self.interpolated: list[_Interpolated] = []
        rest: list[Part] = []
        for part in towards.parts:
            fewer = _Interpolated.of(part) if isinstance(part, _PerFeature) else None
            if isinstance(part, _Linear):
                self.parts.append((itemgetter(part.view), part.columns @ A))
            elif fewer is not None:
                self.parts.append((fewer, fewer.weights(A)))
                self.interpolated.append(fewer)
            else:
                rest.append(part)
        if rest:  # the sum of the parts that use landmarks
            self.parts.insert(0, (partial(_joined, np.add, rest), A))

    @property
    def width(self) -> int:
        """The number of intermediate values for a row."""
        return sum(len(weights) for _, weights in self.parts)

    def times(self, R: HostArray) -> Folded:
        """Return x ↦ k(x, Z) A R."""
        other = copy(self)
        other.A, other.parts = self.A @ R, [(part, weights @ R) for part, weights in self.parts]
        return other

    def __call__(self, X: HostArray) -> HostArray:
        """Return values (n, q) for rows that ``towards`` supports."""
        inputs = self.towards.inputs(X)
        inside = np.ones(X.shape[0], dtype=bool)
        for part in self.interpolated:
            inside &= part.inside(inputs)
        if inside.all():
            return self._all(inputs)
        values = np.empty((X.shape[0], self.A.shape[1]))
        values[~inside] = self.towards(X[~inside]) @ self.A
        if np.any(inside):
            values[inside] = self._all([part[inside] for part in inputs])
        return values

    def _all(self, inputs: list[HostArray]) -> HostArray:
        (first, weights), *others = self.parts
        total = first(inputs) @ weights
        for part, weights in others:
            total += part(inputs) @ weights
        return np.asarray(total)


@final
class _Interpolated:
    """A sum over features of Gaussian kernels, interpolated between Chebyshev points over the range of each feature.

    The interpolation has a relative error of one or two roundings. Rows with a feature beyond the range of the
    landmarks are not inside.
    """

    def __init__(self, part: _PerFeature, count: int) -> None:
        self.part = part
        unit, self.signs = _chebyshev(count)
        self.low, self.high = (ends[:, None] for ends in (part.columns.min(axis=1), part.columns.max(axis=1)))
        self.points = 0.5 * (self.low + self.high) + 0.5 * (self.high - self.low) * unit

    @classmethod
    def of(cls, part: _PerFeature) -> Self | None:
        """Return None if the functions have kinks, or vary too much over the range of a feature."""
        if not all(p.is_exponential for p in part.profiles):
            return None
        widest = 0.0
        if part.others.size:
            rates = np.max([p.gamma + np.zeros((part.others.size, 1)) for p in part.profiles], axis=0)[:, 0]
            widest = float(np.max(np.sqrt(rates) * np.ptp(part.columns, axis=1)))
        count = next((count for count, width in NODES.items() if widest <= width), None)
        return None if count is None or count * 2 > part.at_high.shape[1] else cls(part, count)

    def inside(self, inputs: list[HostArray]) -> HostArray:
        """Return a mask (n,) of the rows within the range of the landmarks."""
        x = inputs[self.part.view][:, self.part.others, None]
        return np.asarray(np.all((x >= self.low) & (x <= self.high), axis=(1, 2)))

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.part.view]
        away = X[:, self.part.others, None] - self.points
        features: HostArray = _weights(away, self.signs).reshape(X.shape[0], -1)
        return np.concatenate([features, *self.part.of_two_values(X)], axis=1) if self.part.two.size else features

    def weights(self, A: HostArray) -> HostArray:
        """Return the coefficients of the features, (m, q)."""
        part = self.part
        at_points = [_summed((x[:, None] - part.columns) ** 2, part.profiles) @ A for x in self.points.T]
        high = part.at_high @ A
        found = [np.stack(at_points, axis=1).reshape(-1, A.shape[1]), A.sum(axis=0) - high, high]
        return np.asarray(np.concatenate(found) / part.d)


def _chebyshev(count: int) -> tuple[HostArray, HostArray]:
    """Return Chebyshev points of the second kind on [−1, 1], and their barycentric weights."""
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    signs[[0, -1]] *= 0.5
    return np.sin(0.5 * np.pi * np.linspace(-1.0, 1.0, count)), signs


def _weights(away: HostArray, signs: HostArray) -> HostArray:
    """Return barycentric weights for these distances, which are overwritten; at a point its weight is 1."""
    away[away == 0.0] = sys.float_info.min
    weights = signs / away
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights
