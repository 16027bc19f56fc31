"""x ↦ k(x, Z) A, where that takes less work than k(x, Z).

A function in the space of a linear kernel has d coefficients, and one of a sum over features is a sum of functions of
one feature each, which are known everywhere from their values at a few points. Neither needs the landmarks.
"""

from __future__ import annotations

import math
import sys
from functools import lru_cache
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray

from ._towards import Towards, _Joined, _Linear, _Part, _PerFeature, _summed

NODES = (16, 24, 32, 48, 64, 96, 128, 192, 256)
"""How many points an interpolation may have."""

INTERPOLATION_ERROR = 3e-15
"""The largest error of an interpolated exp(−t²); rounding alone makes 1e-15 to 2e-15 of it."""


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
        whole = towards.part
        parts = whole.parts if isinstance(whole, _Joined) and whole.join is np.add else [whole]
        found = [(part, _short(part)) for part in parts]
        rest = [part for part, short in found if short is None]
        self.parts: list[_Part] = [_Joined(np.add, rest)] if rest else []
        """What looks at landmarks, added up, and parts that have fewer features."""
        self.parts += [short for _, short in found if short is not None]
        self.weights = [part.weights(A) for part in self.parts]

    @property
    def width(self) -> int:
        """How many numbers a row takes on the way."""
        return sum(len(weights) for weights in self.weights)

    def times(self, R: HostArray) -> Folded:
        """x ↦ k(x, Z) A R."""
        other = object.__new__(Folded)
        other.towards, other.parts = self.towards, self.parts
        other.A, other.weights = self.A @ R, [weights @ R for weights in self.weights]
        return other

    def __call__(self, X: HostArray) -> HostArray:
        """(n, q), for rows that ``towards`` takes."""
        inputs = self.towards.inputs(X)
        inside = np.ones(X.shape[0], dtype=bool)
        for part in self.parts:
            inside &= part.inside(inputs)
        if inside.all():
            return self._all(inputs)
        values = np.empty((X.shape[0], self.A.shape[1]))
        values[~inside] = self.towards(X[~inside]) @ self.A
        if np.any(inside):
            values[inside] = self._all([part[inside] for part in inputs])
        return values

    def _all(self, inputs: list[HostArray]) -> HostArray:
        found = [part(inputs) @ weights for part, weights in zip(self.parts, self.weights, strict=True)]
        total = found[0]
        for values in found[1:]:
            total += values
        return total


def _short(part: _Part) -> _Part | None:
    """The part with features of its own; None where it looks at landmarks."""
    if isinstance(part, _Linear):
        return _ShortLinear(part)
    return _Interpolated.of(part) if isinstance(part, _PerFeature) else None


@final
class _ShortLinear(_Part):
    """xᵀ(ZᵀA)."""

    def __init__(self, part: _Linear) -> None:
        self.part = part

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        return inputs[self.part.view]

    def weights(self, A: HostArray) -> HostArray:
        return np.asarray(self.part.columns @ A)


@final
class _Interpolated(_Part):
    """A sum over features of Gaussian kernels, interpolated between Chebyshev points over the range of each feature.

    The interpolation has a relative error of a rounding or two; rows with a feature beyond the range of the landmarks
    are not inside.
    """

    def __init__(self, part: _PerFeature, count: int) -> None:
        self.part = part
        unit, self.signs = _chebyshev(count)
        self.low, self.high = (ends[:, None] for ends in (part.columns.min(axis=1), part.columns.max(axis=1)))
        self.points = 0.5 * (self.low + self.high) + 0.5 * (self.high - self.low) * unit

    @classmethod
    def of(cls, part: _PerFeature) -> Self | None:
        """None where the functions have kinks, or vary too much over the range of a feature."""
        if not all(p.is_exponential for p in part.profiles):
            return None
        widest = 0.0
        if part.others.size:
            rates = np.max([p.gamma[:, 0] for p in part.profiles], axis=0)
            widest = float(np.max(np.sqrt(rates) * np.ptp(part.columns, axis=1)))
        count = next((count for count in NODES if _error(count, _rounded_up(widest)) <= INTERPOLATION_ERROR), None)
        return None if count is None or count * 2 > part.at_high.shape[1] else cls(part, count)

    def _inputs(self, inputs: list[HostArray]) -> tuple[HostArray, HostArray]:
        """Features with two values, (n, d₂), and the others, (n, d₁, 1)."""
        X = inputs[self.part.view]
        return X[:, self.part.two], X[:, self.part.others, None]

    def inside(self, inputs: list[HostArray]) -> HostArray:
        x = self._inputs(inputs)[1]
        return np.asarray(np.all((x >= self.low) & (x <= self.high), axis=(1, 2)))

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        two, x = self._inputs(inputs)
        n = x.shape[0]
        features: HostArray = _weights(x - self.points, self.signs).reshape(n, -1)
        if not self.part.two.size:
            return features
        low, high = _summed((two - self.part.ends) ** 2, self.part.at_ends)
        return np.concatenate([features, low, high], axis=1)

    def weights(self, A: HostArray) -> HostArray:
        part, d = self.part, self.part.d
        blocks = []
        for j, (points, z) in enumerate(zip(self.points, part.columns, strict=True)):
            squares = (points[:, None] - z) ** 2
            blocks.append(_summed(squares, part.of_column(j)) @ A)
        high = part.at_high @ A
        blocks += [A.sum(axis=0) - high, high]
        return np.asarray(np.concatenate(blocks) / d)


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


def _rounded_up(width: float) -> float:
    """To a power of √2, so that few widths need to be looked at."""
    return 0.0 if width == 0.0 else 2.0 ** (math.ceil(2.0 * math.log2(width)) / 2.0)


@lru_cache(maxsize=256)
def _error(count: int, width: float) -> float:
    """The largest error of exp(−(t − z)²), interpolated in t, for t and z in an interval of this width."""
    if count <= width:
        return math.inf
    points, signs = _chebyshev(count)
    t, z = np.linspace(-1.0, 1.0, 4 * count + 1)[1:-1], np.linspace(-1.0, 1.0, 33)

    def gaussian(at: HostArray) -> Any:
        return np.exp(-(((at[:, None] - z) * (0.5 * width)) ** 2))

    return float(np.max(np.abs(_weights(t[:, None] - points, signs) @ gaussian(points) - gaussian(t))))
