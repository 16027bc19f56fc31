"""φ as a graph: kernels of inputs, k(x, Z) for landmarks Z that are constants, and the features made of them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask.features import KernelMap
from infinitask.features._maps import CombinedMap, FeatureMap, FourierMap, PrecomputedMap
from infinitask.integrations.onnx._graph import Tensor
from infinitask.kernels import (
    RBF,
    Additive,
    CallableKernel,
    Chi2,
    InputKernel,
    Laplacian,
    Linear,
    Matern,
    Metric,
    Polynomial,
    Product,
    Ranks,
    Scaled,
    Sum,
    Warped,
)

ENTRIES_PER_ROW = 2**12
"""Differences to landmarks that a row takes at a time, 32 KiB: a thousand rows take 32 MiB."""

PRODUCT_COLUMNS = 8
"""With more columns distances come from a product of matrices, where that is as exact."""

PRODUCT_ROUNDING = 2e-15
"""The largest rounding error of γ‖x − z‖² at which the product counts as exact."""


def features(left: FeatureMap, X: Tensor) -> Tensor:
    """x ↦ left(x), (n, s), for the kinds of maps that fits make."""
    if isinstance(left, CombinedMap):
        return features(left.map, X) @ _host(left.right)
    if isinstance(left, FourierMap):
        angles, q = X @ _host(left.frequencies), int(left.frequencies.shape[1])
        both = X.graph.joined([X.graph("Cos", angles), X.graph("Sin", angles)], axis=1)
        return both * math.sqrt(1.0 / q)
    if isinstance(left, PrecomputedMap):
        return X.take(np.asarray(left.columns, dtype=np.int64), axis=1) @ _host(left.transform)
    if isinstance(left, KernelMap):
        return gram(left.kernel, X, _host(left.landmarks)) @ _host(left.transform)
    raise TypeError(
        f"The model has features of the kind {type(left).__name__}, which are not of infinitask and have no ONNX "
        "graph; fit with features='auto', 'exact', 'nystroem' or 'fourier'."
    )


def gram(kernel: InputKernel, X: Tensor, Z: HostArray) -> Tensor:
    """k(x, z) for the rows of X (n, d) and Z (p, d): (n, p)."""
    write = _KERNELS.get(type(kernel))
    if write is not None:
        return write(kernel, X, Z)
    what = (
        "a kernel that is a function of Python"
        if isinstance(kernel, CallableKernel)
        else f"the kernel {type(kernel).__name__}"
    )
    raise TypeError(
        f"The model uses {what}, which has no ONNX graph here; fit with a named kernel such as 'rbf', or with sums and "
        "products of those in infinitask.kernels."
    )


def _host(values: Any) -> HostArray:
    return np.asarray(to_host(values), dtype=np.float64)


# ---------------------------------------------------------------------------------------------------- distances
def _differences(X: Tensor, Z: HostArray) -> Iterator[tuple[Tensor, HostArray]]:
    """x_k of some columns, (n, 1, c), and z_k of the same, (1, p, c)."""
    d, width = Z.shape[1], max(1, ENTRIES_PER_ROW // max(1, Z.shape[0]))
    for start in range(0, d, width):
        columns = np.arange(start, min(start + width, d))
        yield X.take(columns, axis=1).with_axis(1), Z[None, :, columns]


def _total(parts: list[Tensor]) -> Tensor:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _squared(X: Tensor, Z: HostArray, gamma: float, *, smooth: bool) -> Tensor:
    """γ‖x − z‖², (n, p); ``smooth``: what is made of it has a finite slope at 0, so that rounding there is harmless."""
    # a power of two near √γ: exact, and squares of what remains neither overflow nor vanish
    unit = math.ldexp(1.0, math.frexp(math.sqrt(gamma))[1])
    X, Z, rate = X * unit, Z * unit, gamma / unit / unit
    if smooth and Z.shape[1] > PRODUCT_COLUMNS:
        middle = Z[:1] + np.mean(Z - Z[:1], axis=0, keepdims=True)
        right = Z - middle
        norms = np.sum(right * right, axis=1)
        if sys.float_info.epsilon * rate * float(norms.max()) <= PRODUCT_ROUNDING:
            left = X - middle
            own = X.graph("ReduceSumSquare", left, axes=[1], keepdims=1)
            squares: Tensor = own + norms[None, :] + left @ (-2.0 * right.T)
            return squares.at_least(0.0) * rate
    parts = [X.graph("ReduceSumSquare", x - z, axes=[2], keepdims=0) for x, z in _differences(X, Z)]
    return _total(parts) * rate


def _matern(squares: Tensor, nu: float) -> Tensor:
    """The Matérn function of γ d², elementwise."""
    r = (squares * (4.0 * nu)).sqrt()
    fall = (-r).exp()
    if nu == 0.5:
        return fall
    return (r + 1.0 if nu == 1.5 else r * r * (1.0 / 3.0) + r + 1.0) * fall


# ------------------------------------------------------------------------------------------------------ kernels
def _rbf(k: RBF, X: Tensor, Z: HostArray) -> Tensor:
    return (-_squared(X, Z, k._gamma, smooth=True)).exp()


def _matern_kernel(k: Matern, X: Tensor, Z: HostArray) -> Tensor:
    return _matern(_squared(X, Z, k._gamma, smooth=k._nu > 0.5), k._nu)


def _laplacian(k: Laplacian, X: Tensor, Z: HostArray) -> Tensor:
    distances = _total([X.graph("ReduceL1", x - z, axes=[2], keepdims=0) for x, z in _differences(X, Z)])
    return (distances * -k._gamma).exp()


def _chi2(k: Chi2, X: Tensor, Z: HostArray) -> Tensor:
    X = (X >= 0.0).where(X, np.nan)  # histograms have no negative entries
    parts = []
    for x, z in _differences(X, Z):
        apart, both = x - z, x + z
        # where x = z = 0 the denominator becomes 1, and the term is 0
        parts.append((apart * (apart / (both + (both <= 0.0).real()))).sum(axis=2))
    return (_total(parts) * -k._gamma).exp()


def _linear(k: Linear, X: Tensor, Z: HostArray) -> Tensor:
    return X @ Z.T


def _polynomial(k: Polynomial, X: Tensor, Z: HostArray) -> Tensor:
    root = math.sqrt(k._gamma)
    return ((X * root) @ (root * Z).T + float(k.coef0)) ** int(k.degree)


def _scaled(k: Scaled, X: Tensor, Z: HostArray) -> Tensor:
    scales = k._numbers(Z.shape[1])
    return gram(k.kernel, X * scales[None, :], Z * scales)


def _metric(k: Metric, X: Tensor, Z: HostArray) -> Tensor:
    root = k._numbers(Z.shape[1])
    return gram(k.kernel, X @ root, Z @ root)


def _warped(k: Warped, X: Tensor, Z: HostArray) -> Tensor:
    known = k._known(Z)
    return gram(k.kernel, _scores(X, known), Ranks(known)(Z))


def _scores(X: Tensor, known: tuple[tuple[HostArray, HostArray], ...]) -> Tensor:
    """Each input through its own piecewise linear function, (n, d); the shorter ones are filled up with ∞."""
    # a single value gets a second one with the same score
    known = tuple(
        (np.append(v, v[0] + max(1.0, abs(v[0]))), np.append(s, s[0])) if v.size == 1 else (v, s) for v, s in known
    )
    d, width = len(known), max(v.size for v, _ in known)
    values, scores = np.full((d, width), np.inf), np.zeros((d, width))
    for j, (v, s) in enumerate(known):
        values[j, : v.size], scores[j, : s.size] = v, s
    sizes = np.array([[v.size for v, _ in known]])
    after = (X.graph.constant(values[None]) < X.with_axis(2)).cast(np.float32).sum(axis=2).cast(np.int64)
    after = after.at_least(np.ones((1, d), dtype=np.int64)).at_most(sizes - 1)
    place = after + (width * np.arange(d) - 1)[None, :]
    gaps = np.ones((d, width))
    rises = np.zeros((d, width))
    for j, (v, s) in enumerate(known):
        gaps[j, : v.size - 1], rises[j, : s.size - 1] = np.diff(v), np.diff(s)
    start, gap, score, rise = (X.graph.constant(a.ravel()).take(place, axis=0) for a in (values, gaps, scores, rises))
    return score + ((X - start) / gap).at_least(0.0).at_most(1.0) * rise


def _additive(k: Additive, X: Tensor, Z: HostArray) -> Tensor:
    parts, share = k._each(Z), 1.0 / int(Z.shape[1])
    one_kind = len({type(part) for part in parts}) == 1 and type(parts[0]) in (RBF, Matern, Laplacian)
    if one_kind and len({getattr(part, "nu", None) for part in parts}) == 1:
        return _additive_of_one_kind(parts, X, Z) * share
    each = [gram(part, X.take(np.array([j]), axis=1), Z[:, j : j + 1]) for j, part in enumerate(parts)]
    return _total(each) * share


def _additive_of_one_kind(parts: tuple[Any, ...], X: Tensor, Z: HostArray) -> Tensor:
    """Σ_j f(γ_j, x_j − z_j) for functions of one distance, (n, p), some columns at a time."""
    rates = np.array([part._gamma for part in parts])
    sums, first = [], 0
    for x, z in _differences(X, Z):
        gamma, first = rates[first : first + z.shape[2]][None, None, :], first + z.shape[2]
        if isinstance(parts[0], Laplacian):
            values = ((x - z).abs() * -gamma).exp()
        else:
            away = (x - z) * np.sqrt(gamma)
            squares = away * away
            values = _matern(squares, parts[0]._nu) if isinstance(parts[0], Matern) else (-squares).exp()
        sums.append(values.sum(axis=2))
    return _total(sums)


_KERNELS: dict[type[InputKernel], Callable[[Any, Tensor, HostArray], Tensor]] = {
    RBF: _rbf,
    Matern: _matern_kernel,
    Laplacian: _laplacian,
    Chi2: _chi2,
    Linear: _linear,
    Polynomial: _polynomial,
    Sum: lambda k, X, Z: gram(k.left, X, Z) + gram(k.right, X, Z),
    Product: lambda k, X, Z: gram(k.left, X, Z) * gram(k.right, X, Z),
    Scaled: _scaled,
    Metric: _metric,
    Warped: _warped,
    Additive: _additive,
}
