"""k(x, Z) for rows Z that stay, such as the landmarks of a fitted model.

What depends on Z alone is made once, and what the parts of a sum share is computed once: the inputs that
:class:`~infinitask.kernels.Scaled` and others hand on, and the distances of kernels that look at the same inputs. For a
single row the calls of Python cost more than the arithmetic, so there are few of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from scipy.spatial.distance import cdist

from infinitask._base.arrays import HostArray

from ._base import InputKernel
from ._composed import Additive, Product, Sum, _Changing
from ._distances import FEW_ROWS, l1_distances, magnitude, squared_distances
from ._input import RBF, Laplacian, Linear, Matern

ORDINARY = 1e30
"""Inputs and bandwidths beyond this size are left to the kernels themselves, which take care that nothing overflows."""

ENTRIES_IN_CACHE = 2**16
"""Numbers of a sum over inputs that are computed together for a single row: 512 KiB stay in the cache. With 3000
landmarks and 30 inputs that takes 150 µs, an eighth of it 190 µs."""

ROWS_ONE_BY_ONE = 4
"""Up to this many rows a sum over inputs is computed row by row, with more rows input by input."""

Profile: TypeAlias = tuple[float, Any]
"""ν and γ of a Matérn kernel as a function of squared distances, ν = ∞ for exp(−γ d²); γ may be a column."""


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
        self._views = [_View(0, None, np.ascontiguousarray(Z))]
        self._known: dict[Hashable, int] = {}
        self.part = self._joined(self._terms(kernel, 0))
        sizes = [magnitude(view.Z) for view in self._views]
        self._ordinary = 0 not in Z.shape and all(size == 1.0 for size in sizes)

    def takes(self, X: Any) -> bool:
        """Whether these inputs may be given; with others, the kernel itself is to be called."""
        return (
            self._ordinary
            and type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self._views[0].Z.shape[1]
            and bool(X.max() <= ORDINARY and X.min() >= -ORDINARY)  # not so for a NaN
        )

    def __call__(self, X: HostArray) -> HostArray:
        """k(x, z) for the rows of X, (n, p); a fresh array."""
        return self.part(self.inputs(X))

    def inputs(self, X: HostArray) -> list[HostArray]:
        """What the kernels inside of others see of the rows of X."""
        inputs = [X]
        for view in self._views[1:]:
            assert view.change is not None
            inputs.append(view.change(inputs[view.of]))
        return inputs

    # ----------------------------------------------------------------------------------------- taking a kernel apart
    def _terms(self, kernel: InputKernel, view: int) -> list[tuple[InputKernel, int]]:
        """Kernels whose sum this one is, none of them around another that it hands changed inputs; and their views."""
        if type(kernel) is Sum:
            return self._terms(kernel.left, view) + self._terms(kernel.right, view)
        # a class of a user that derives from one of ours may do something else
        if not isinstance(kernel, _Changing) or "change" not in vars(type(kernel)):
            return [(kernel, view)]
        Z = self._views[view].Z
        change = kernel.change(int(Z.shape[1]))
        key = view, type(kernel), kernel.change_key()
        if key not in self._known:
            self._known[key] = len(self._views)
            self._views.append(_View(view, change, np.ascontiguousarray(change(Z))))
        return self._terms(kernel.kernel, self._known[key])

    def _joined(self, terms: list[tuple[InputKernel, int]]) -> _Part:
        """The sum of the terms; those that look at the same distances are computed together."""
        radial: dict[tuple[int, bool], list[Profile]] = {}
        each: dict[int, list[Profile]] = {}
        parts: list[_Part] = []
        for kernel, view in terms:
            Z = self._views[view].Z
            profile = _profile(kernel)
            per_input = _per_input(kernel, Z)
            if profile is not None:
                radial.setdefault((view, type(kernel) is Laplacian), []).append(profile)
            elif per_input is not None:
                each.setdefault(view, []).append(per_input)
            elif type(kernel) is Product:
                left, right = (self._joined(self._terms(factor, view)) for factor in (kernel.left, kernel.right))
                parts.append(_Times(left, right))
            else:
                parts.append(_Linear(view, Z) if type(kernel) is Linear else _Plain(view, Z, kernel))
        parts += [_Radial(view, self._views[view].Z, taxicab, p) for (view, taxicab), p in radial.items()]
        parts += [_PerInput(view, self._views[view].Z, profiles) for view, profiles in each.items()]
        return parts[0] if len(parts) == 1 else _Plus(parts)


@final
@dataclass(frozen=True)
class _View:
    """Inputs as kernels inside of others see them: a change of the inputs of another view, and Z after it."""

    of: int
    change: Callable[[HostArray], HostArray] | None
    Z: HostArray


def _profile(kernel: InputKernel) -> Profile | None:
    """A function of a distance that is known here; None for other kernels."""
    if type(kernel) not in (RBF, Matern, Laplacian) or not 1.0 / ORDINARY <= kernel._gamma <= ORDINARY:
        return None
    return (kernel._nu if type(kernel) is Matern else math.inf), kernel._gamma


def _per_input(kernel: InputKernel, Z: HostArray) -> Profile | None:
    """The same for a mean of functions of one input each, with a column of γ."""
    if type(kernel) is not Additive:
        return None
    parts = kernel._each(Z)
    profiles = [_profile(part) for part in parts]
    if len({type(part) for part in parts}) > 1 or len({p and p[0] for p in profiles}) > 1 or profiles[0] is None:
        return None
    gamma = np.array([[p[1]] for p in profiles if p is not None])
    if type(parts[0]) is Laplacian:  # of one input it is a Matérn kernel
        return 0.5, 0.5 * gamma**2
    return profiles[0][0], gamma


def mean_over_inputs(kernel: Additive, X: HostArray, Z: HostArray) -> HostArray | None:
    """The Gram matrix (n, p) of a mean of functions of one input each; None where the kernel is to compute it itself.

    Parameters
    ----------
    kernel : Additive
    X : ndarray (n, d)
    Z : ndarray (p, d)
    """
    profile = _per_input(kernel, Z)
    ordinary = 0 not in (*X.shape, *Z.shape) and magnitude(X) == 1.0 == magnitude(Z)
    return _PerInput(0, Z, [profile])([X]) if profile is not None and ordinary else None


# -------------------------------------------------------------------------------------------------------- the parts
class _Part(ABC):
    """A part of k(x, Z), from the inputs of all views."""

    @abstractmethod
    def __call__(self, inputs: list[HostArray]) -> HostArray:
        """A fresh array (n, p)."""


@final
class _Plain(_Part):
    """A kernel that nothing more is known of."""

    def __init__(self, view: int, Z: HostArray, kernel: InputKernel) -> None:
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
class _Plus(_Part):
    """A sum."""

    def __init__(self, parts: list[_Part]) -> None:
        self.parts = parts

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        total = self.parts[0](inputs)
        for part in self.parts[1:]:
            total += part(inputs)
        return total


@final
class _Times(_Part):
    """A product."""

    def __init__(self, left: _Part, right: _Part) -> None:
        self.left, self.right = left, right

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        product = self.left(inputs)
        product *= self.right(inputs)
        return product


@final
class _Radial(_Part):
    """A sum of functions of one distance."""

    def __init__(self, view: int, Z: HostArray, taxicab: bool, profiles: list[Profile]) -> None:
        self.view, self.Z = view, Z
        self.metric = "cityblock" if taxicab else "sqeuclidean"
        self.distances = l1_distances if taxicab else squared_distances
        self.profiles = profiles
        self.rate = max(gamma for _, gamma in profiles)
        self.relative = [(nu, gamma / self.rate) for nu, gamma in profiles]

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.view]
        if X.shape[0] < FEW_ROWS:
            return _summed(cdist(X, self.Z, self.metric), self.profiles)
        # with the largest rate: how exact a product of matrices has to be depends on it
        return _summed(self.distances(X, self.Z, self.rate), self.relative)


@final
class _PerInput(_Part):
    """A sum of means over the inputs of a function of one input: (1/d) Σ_j f_j(x_j − z_j).

    An input with two values u and v among the landmarks, such as a one-hot column, needs f_j at both only:
    f_j(x_j − z_j) = f_j(x_j − u_j) + [z_j = v_j] (f_j(x_j − v_j) − f_j(x_j − u_j)).
    """

    def __init__(self, view: int, Z: HostArray, profiles: list[Profile]) -> None:
        self.view, self.d = view, int(Z.shape[1])
        low, high = Z.min(axis=0), Z.max(axis=0)
        two = np.all((low == Z) | (high == Z), axis=0)
        self.two, self.others = np.flatnonzero(two), np.flatnonzero(~two)
        self.ends = np.stack([low, high])[:, None, two]
        self.at_high = np.ascontiguousarray((Z[:, two] == high[two]).T, dtype=float)
        self.at_ends = [(nu, _same(gamma[two].T)) for nu, gamma in profiles]
        self.columns = np.ascontiguousarray(Z[:, ~two].T)
        self.profiles = [(nu, gamma[~two]) for nu, gamma in profiles]
        d, p = self.columns.shape
        width = max(1, min(d, ENTRIES_IN_CACHE // p))
        self.blocks = [slice(start, min(start + width, d)) for start in range(0, d, width)]
        self.each = [[(nu, _same(gamma[block])) for nu, gamma in self.profiles] for block in self.blocks]

    def __call__(self, inputs: list[HostArray]) -> HostArray:
        X = inputs[self.view]
        total = self._of_two_values(X[:, self.two])
        rest = X[:, self.others]
        if X.shape[0] <= ROWS_ONE_BY_ONE:
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
        n, p = total.shape
        step = max(1, ENTRIES_IN_CACHE // p)
        squares = np.empty((min(n, step), p))
        each = [[(nu, float(gamma[j, 0])) for nu, gamma in self.profiles] for j in range(len(self.columns))]
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            part, room = total[rows], squares[: rows.stop - start]
            for j, z in enumerate(self.columns):
                np.subtract(X[rows, j, None], z, out=room)
                np.multiply(room, room, out=room)
                part += _summed(room, each[j])

    def _add_row(self, total: HostArray, x: HostArray) -> None:
        ones, room = np.ones(len(self.columns)), None
        for block, profiles in zip(self.blocks, self.each, strict=True):
            if room is None:
                room = np.empty((block.stop, total.size))
            squares = room[: block.stop - block.start]
            np.subtract(self.columns[block], x[block], out=squares)
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
    nu, gamma = profile
    if nu == math.inf:
        np.multiply(squares, -gamma, out=out)
        np.exp(out, out=out)
        return out
    np.multiply(squares, 4.0 * nu * gamma, out=out)
    np.sqrt(out, out=out)
    decayed = np.exp(-out)
    if nu == 2.5:
        decayed *= 1.0 + out + out * out / 3.0
    elif nu == 1.5:
        out += 1.0
        decayed *= out
    return decayed
