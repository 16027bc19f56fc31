"""k(x, Z) for rows Z that stay, such as the landmarks of a fitted model.

What depends on Z alone is computed once, and so is what the parts of a sum share: the features that
:class:`~infinitask.kernels.Scaled` and others change, and the distances of kernels of the same features. Everything is
read from the description of the kernel. For a single row the calls of Python cost more than the arithmetic, so there
are few of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeGuard, final

import numpy as np
from scipy.spatial.distance import cdist

from infinitask._base.arrays import IN_CACHE, HostArray, row_blocks

from ._base import Description, InputKernel, Profile
from ._distances import FEW_ROWS, l1_distances, magnitude, squared_distances

ORDINARY = 1e30
"""Features and bandwidths beyond this size are left to the kernels themselves, where nothing overflows."""


@final
class Towards:
    """x ↦ k(x, Z), for NumPy arrays in double precision.

    Parameters
    ----------
    kernel : InputKernel
        Resolved: its bandwidths are numbers.
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
        """Z as kernels inside of others see it: as it is, and after each of the changes."""
        self._changes: list[tuple[int, Callable[[HostArray], HostArray]]] = []
        """The view that is changed, and how."""
        self._known: dict[Hashable, int] = {}
        self.part = self._joined(self._terms(kernel.describe(), 0))
        self._ordinary = 0 not in Z.shape and all(magnitude(view) == 1.0 for view in self._views)

    def takes(self, X: Any) -> bool:
        """Whether these rows may be given; with others, the kernel itself is to be called."""
        return (
            self._ordinary
            and type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self._views[0].shape[1]
            and bool(X.max() <= ORDINARY and X.min() >= -ORDINARY)  # not so for a NaN
        )

    def __call__(self, X: HostArray) -> HostArray:
        """k(x, z) for the rows of X, (n, p); a fresh array."""
        return self.part(self.inputs(X))

    def inputs(self, X: HostArray) -> list[HostArray]:
        """What the kernels inside of others see of the rows of X."""
        inputs = [X]
        for view, change in self._changes:
            inputs.append(change(inputs[view]))
        return inputs

    # ----------------------------------------------------------------------------------------- taking a kernel apart
    def _terms(self, node: Description, view: int) -> list[tuple[Description, int]]:
        """Kernels whose sum this one is, none of them around another of changed features; and their views."""
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

    def _joined(self, terms: list[tuple[Description, int]]) -> _Part:
        """The sum of the terms; those that look at the same distances are computed together."""
        radial: dict[tuple[int, str], list[Profile]] = {}
        each: dict[int, list[Profile]] = {}
        parts: list[_Part] = []
        for node, view in terms:
            Z = self._views[view]
            profile, per_feature = node.profile, _per_feature(node, int(Z.shape[1]))
            if _is_known(profile):
                radial.setdefault((view, profile.of), []).append(profile)
            elif per_feature is not None:
                each.setdefault(view, []).append(per_feature)
            elif node.kind == "product":
                factors = [self._joined(self._terms(part, view)) for part in node.parts]
                parts.append(_Joined(np.multiply, factors))
            elif profile is not None and profile.is_linear:
                parts.append(_Linear(view, Z))
            else:
                parts.append(_Plain(view, Z, node.kernel))
        parts += [_Radial(view, self._views[view], of, p) for (view, of), p in radial.items()]
        parts += [_PerFeature(view, self._views[view], profiles) for view, profiles in each.items()]
        return parts[0] if len(parts) == 1 else _Joined(np.add, parts)


def _change(node: Description, d: int) -> tuple[Callable[[HostArray], HostArray] | None, Hashable]:
    """g of a kernel k₀(g(x), g(z)) of d features and what tells it from others; None for other kernels."""
    if node.kind == "ranks" and node.values["ranks"] is not None:
        ranks = node.values["ranks"]
        return (ranks if len(ranks.columns) == d else None), id(ranks)
    numbers = node.values.get({"scaled": "scales", "metric": "root"}.get(node.kind, ""))
    if numbers is None or numbers.shape[0] != d:  # the kernel itself says what is wrong
        return None, None
    key = numbers.shape, numbers.tobytes()
    return (lambda X: X * numbers) if node.kind == "scaled" else (lambda X: X @ numbers), key


def _is_known(profile: Profile | None) -> TypeGuard[Profile]:
    """Whether it is a function of a distance that decays, at an ordinary rate."""
    return (
        profile is not None
        and profile.of in _DISTANCES
        and profile.series != ()
        and profile.offset == 0.0
        and 1.0 / ORDINARY <= profile.gamma <= ORDINARY
    )


def _per_feature(node: Description, d: int) -> Profile | None:
    """The profile of a mean of functions of one feature each that differ in γ only, with a column of γ; else None."""
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
    # of one feature, exp(−γ|x − z|) is a Matérn kernel
    return Profile("squared", 0.5 * gamma**2, 2.0, root=True, series=(1.0,))


def mean_over_features(kernel: InputKernel, X: HostArray, Z: HostArray) -> HostArray | None:
    """The Gram matrix (n, p) of a mean of functions of one feature each; None where the kernel is to compute it itself.

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
class _Part(ABC):
    """A part of k(x, Z), or features of which a part of k(x, Z) A is made, from the rows in all views."""

    @abstractmethod
    def __call__(self, inputs: list[HostArray]) -> HostArray:
        """A fresh array (n, p), or features (n, m)."""

    def weights(self, A: HostArray) -> HostArray:
        """What the features are multiplied by, (m, q); A itself for k(x, Z)."""
        return A

    def inside(self, inputs: list[HostArray]) -> Any:
        """Which rows the features are made for, (n,) or one answer for all."""
        return True


@final
class _Plain(_Part):
    """A kernel that nothing more is known of."""

    def __init__(self, view: int, Z: HostArray, kernel: Any) -> None:
        self.view, self.Z, self.kernel = view, Z, kernel

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        return np.array(self.kernel(inputs[self.view], self.Z))  # a copy: a function may keep what it returns


@final
class _Linear(_Part):
    """xᵀz."""

    def __init__(self, view: int, Z: HostArray) -> None:
        self.view, self.columns = view, Z.T

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        return inputs[self.view] @ self.columns


@final
class _Joined(_Part):
    """A sum or a product, by a function of NumPy."""

    def __init__(self, join: np.ufunc, parts: list[_Part]) -> None:
        self.join, self.parts = join, parts

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        total = self.parts[0](inputs)
        for part in self.parts[1:]:
            self.join(total, part(inputs), out=total)
        return total


_DISTANCES = {"squared": ("sqeuclidean", squared_distances), "l1": ("cityblock", l1_distances)}


@final
class _Radial(_Part):
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
        # with the largest rate: how exact a product of matrices has to be depends on it
        return _summed(self.distances(X, self.Z, self.rate), self.relative)


@final
class _PerFeature(_Part):
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
        self.profiles = [replace(p, gamma=p.gamma[~two]) for p in profiles]
        self.blocks = row_blocks(len(self.columns), len(Z), IN_CACHE)
        self.each = [[replace(p, gamma=_same(p.gamma[block])) for p in self.profiles] for block in self.blocks]

    def of_column(self, j: int) -> list[Profile]:
        """The functions of one feature with more than two values."""
        return [replace(p, gamma=float(p.gamma[j, 0])) for p in self.profiles]

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.view]
        total = self._of_two_values(X[:, self.two])
        rest = X[:, self.others]
        if X.shape[0] < len(self.columns):
            for row, x in zip(total, rest[:, :, None], strict=True):
                self._add_row(row, x)
        else:
            self._add_rows(total, rest)
        total /= self.d
        return total

    def _of_two_values(self, X: HostArray) -> HostArray:
        if not self.two.size:
            return np.zeros((X.shape[0], self.columns.shape[1]))
        low, high = _summed((X - self.ends) ** 2, self.at_ends)
        total = (high - low) @ self.at_high
        total += low.sum(axis=1, keepdims=True)
        return np.asarray(total)

    def _add_rows(self, total: HostArray, X: HostArray) -> None:
        each = [self.of_column(j) for j in range(len(self.columns))]
        blocks = row_blocks(len(total), total.shape[1], IN_CACHE)
        squares = np.empty_like(total[blocks[0]])
        for rows in blocks:
            part, room = total[rows], squares[: rows.stop - rows.start]
            for j, z in enumerate(self.columns):
                np.subtract(X[rows, j, None], z, out=room)
                np.multiply(room, room, out=room)
                part += _summed(room, each[j])

    def _add_row(self, total: HostArray, x: HostArray) -> None:
        ones, room = np.ones(len(self.columns)), np.empty_like(self.columns[self.blocks[0]])
        for block, profiles in zip(self.blocks, self.each, strict=True):
            squares = np.subtract(self.columns[block], x[block], out=room[: block.stop - block.start])
            np.multiply(squares, squares, out=squares)
            total += ones[block] @ _summed(squares, profiles)


def _same(gamma: HostArray) -> Any:
    """A number, where all entries are the same: multiplying by it takes a third of the time."""
    return float(gamma.flat[0]) if gamma.size and np.all(gamma == gamma.flat[0]) else gamma


def _summed(squares: HostArray, profiles: list[Profile]) -> HostArray:
    """The sum of all profiles at these squared distances, which are overwritten."""
    *others, last = profiles
    found = [_at(squares, profile, np.empty_like(squares)) for profile in others]
    total = _at(squares, last, squares)
    for values in found:
        total += values
    return total


def _at(squares: HostArray, profile: Profile, out: HostArray) -> HostArray:
    """One profile; ``out`` may be ``squares``, and is used up."""
    if profile.is_exponential:
        np.multiply(squares, -profile.gamma, out=out)
        np.exp(out, out=out)
        return out
    np.multiply(squares, profile.factor * profile.gamma, out=out)
    if profile.root:
        np.sqrt(out, out=out)
    decayed = np.exp(-out)
    if len(profile.series) > 1:
        decayed *= profile.polynomial(out)
    return decayed
