"""x ↦ k(x, Z) A, where that takes less work than k(x, Z).

A function in the space of a linear kernel has d coefficients, and one of a sum over features is a sum of functions of
one feature each, which are known everywhere from their values at a few points. Neither needs the landmarks.
"""

from __future__ import annotations

import sys
from copy import copy
from functools import lru_cache, partial
from typing import Self, final

import numpy as np

from infinitask._base.arrays import HostArray

from ._towards import LinearPart, Part, PerFeature, Towards, joined, summed

NODES = {16: 0.7, 24: 2.0, 32: 2.8, 48: 5.6, 64: 8.0, 96: 11.3, 128: 16.0, 192: 32.0}
"""How many points an interpolation may have, and the widest interval on which exp(−t²) then is exact to 3e-15; rounding
alone makes 1e-15 to 2e-15 of it. Functions that vary more are not interpolated."""


@final
class Folded:
    """x ↦ k(x, Z) A, for NumPy arrays in double precision.

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
        """Features, and the numbers that they are multiplied by."""
        self.interpolated: list[_Interpolated] = []
        rest: list[Part] = []
        for part in towards.parts:
            fewer = _Interpolated.of(part) if isinstance(part, PerFeature) else None
            if isinstance(part, LinearPart):
                self.parts.append((partial(_seen, part.view), part.columns @ A))
            elif fewer is not None:
                self.parts.append((fewer, fewer.weights(A)))
                self.interpolated.append(fewer)
            else:
                rest.append(part)
        if rest:  # what looks at landmarks, added up
            self.parts.insert(0, (partial(joined, np.add, rest), A))

    @property
    def width(self) -> int:
        """How many numbers a row takes on the way."""
        return sum(len(weights) for _, weights in self.parts)

    def times(self, R: HostArray) -> Folded:
        """x ↦ k(x, Z) A R."""
        other = copy(self)
        other.A, other.parts = self.A @ R, [(part, weights @ R) for part, weights in self.parts]
        return other

    def __call__(self, X: HostArray) -> HostArray:
        """(n, q), for rows that ``towards`` takes."""
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


def _seen(view: int, inputs: list[HostArray]) -> HostArray:
    """The features themselves."""
    return inputs[view]


@final
class _Interpolated:
    """A sum over features of Gaussian kernels, interpolated between Chebyshev points over the range of each feature.

    The interpolation has a relative error of a rounding or two; rows with a feature beyond the range of the landmarks
    are not inside.
    """

    def __init__(self, part: PerFeature, count: int) -> None:
        self.part = part
        unit, self.signs = _chebyshev(count)
        self.low, self.high = (ends[:, None] for ends in (part.columns.min(axis=1), part.columns.max(axis=1)))
        self.points = 0.5 * (self.low + self.high) + 0.5 * (self.high - self.low) * unit

    @classmethod
    def of(cls, part: PerFeature) -> Self | None:
        """None where the functions have kinks, or vary too much over the range of a feature."""
        if not all(p.is_exponential for p in part.profiles):
            return None
        widest = 0.0
        if part.others.size:
            rates = np.max([p.gamma + np.zeros((part.others.size, 1)) for p in part.profiles], axis=0)[:, 0]
            widest = float(np.max(np.sqrt(rates) * np.ptp(part.columns, axis=1)))
        count = next((count for count, width in NODES.items() if widest <= width), None)
        return None if count is None or count * 2 > part.at_high.shape[1] else cls(part, count)

    def inside(self, inputs: list[HostArray]) -> HostArray:
        """Which rows it is made for, (n,)."""
        x = inputs[self.part.view][:, self.part.others, None]
        return np.asarray(np.all((x >= self.low) & (x <= self.high), axis=(1, 2)))

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.part.view]
        away = X[:, self.part.others, None] - self.points
        features: HostArray = _weights(away, self.signs).reshape(X.shape[0], -1)
        return np.concatenate([features, *self.part.of_two_values(X)], axis=1) if self.part.two.size else features

    def weights(self, A: HostArray) -> HostArray:
        """What the features are multiplied by, (m, q)."""
        part = self.part
        at_points = [summed((x[:, None] - part.columns) ** 2, part.profiles) @ A for x in self.points.T]
        high = part.at_high @ A
        found = [np.stack(at_points, axis=1).reshape(-1, A.shape[1]), A.sum(axis=0) - high, high]
        return np.asarray(np.concatenate(found) / part.d)


@lru_cache(maxsize=32)
def _chebyshev(count: int) -> tuple[HostArray, HostArray]:
    """Chebyshev points of the second kind on [−1, 1], and their barycentric weights."""
    signs = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    signs[[0, -1]] *= 0.5
    return np.sin(0.5 * np.pi * np.linspace(-1.0, 1.0, count)), signs


def _weights(away: HostArray, signs: HostArray) -> HostArray:
    """Barycentric weights of the points at these distances, which are overwritten; at a point, its weight is 1."""
    away[away == 0.0] = sys.float_info.min
    weights = signs / away
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights
