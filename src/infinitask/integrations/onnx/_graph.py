"""Tensors of a graph with the syntax of arrays: ``(X - Z) * 2.0`` adds the nodes that compute it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, final

import numpy as np
from onnx import helper, numpy_helper

from infinitask._base.arrays import HostArray

OPSET = 17
"""The version of the standard operators: all runtimes since 2022 have it."""


def _operator(name: str) -> Callable[..., Tensor]:
    return lambda *inputs: inputs[0].graph(name, *inputs)


@final
@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of a graph; numbers and arrays in an operation with it become constants."""

    graph: Graph
    name: str

    __add__ = _operator("Add")
    __sub__ = _operator("Sub")
    __mul__ = _operator("Mul")
    __truediv__ = _operator("Div")
    __pow__ = _operator("Pow")
    __matmul__ = _operator("MatMul")
    __le__ = _operator("LessOrEqual")
    __lt__ = _operator("Less")
    __ge__ = _operator("GreaterOrEqual")
    __and__ = _operator("And")
    __radd__ = __add__
    __rmul__ = __mul__
    __neg__ = _operator("Neg")
    abs = _operator("Abs")
    exp = _operator("Exp")
    sqrt = _operator("Sqrt")
    at_least = _operator("Max")
    at_most = _operator("Min")
    where = _operator("Where")  # condition.where(yes, no)

    def __rsub__(self, left: Any) -> Tensor:
        return self.graph("Sub", left, self)

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix."""
        return self.graph("Transpose", self, perm=[1, 0])

    def take(self, places: Any, axis: int) -> Tensor:
        """Entries at the given positions along an axis."""
        return self.graph("Gather", self, places, axis=axis)

    def sum(self, axis: int, keepdims: bool = False) -> Tensor:
        """The sum over an axis."""
        return self.graph("ReduceSum", self, np.array([axis]), keepdims=int(keepdims))

    def with_axis(self, axis: int) -> Tensor:
        """Insert an axis of length 1 at this position."""
        return self.graph("Unsqueeze", self, np.array([axis]))

    def cast(self, dtype: Any) -> Tensor:
        """Convert to another number type."""
        return self.graph("Cast", self, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def real(self) -> Tensor:
        """Convert booleans or integers to double precision."""
        return self.cast(np.float64)


@final
class Graph:
    """Collects nodes and constants; equal nodes are computed once.

    Parameters
    ----------
    double : bool
        Whether the graph inputs have double precision; the graph computes in it in any case.
    """

    def __init__(self, double: bool = True) -> None:
        self.double = double
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._known: dict[Any, Tensor] = {}

    def __call__(self, operator: str, *inputs: Any, **attributes: Any) -> Tensor:
        """Apply an operator; return its first output."""
        names = [self.constant(value).name for value in inputs]
        key = operator, tuple(names), repr(sorted(attributes.items()))
        if key not in self._known:
            found = self._known[key] = Tensor(self, f"{operator}_{len(self._known)}")
            # the second output of TopK is not used
            outputs = [found.name, f"{found.name}_places"] if operator == "TopK" else [found.name]
            self.nodes.append(helper.make_node(operator, names, outputs, name=found.name, **attributes))
        return self._known[key]

    def constant(self, value: Any) -> Tensor:
        """Convert to a tensor; numbers become constants: integer arrays as indices, others in double precision."""
        if isinstance(value, Tensor):
            return value
        array: HostArray = np.asarray(value)
        array = array.astype(np.int64 if array.ndim > 0 and array.dtype.kind == "i" else np.float64, order="C")
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._known:
            found = self._known[key] = Tensor(self, f"constant_{len(self._known)}")
            self.constants.append(numpy_helper.from_array(array, found.name))
        return self._known[key]

    def joined(self, parts: list[Tensor], axis: int) -> Tensor:
        """Concatenate tensors along an axis."""
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=axis)


def total(parts: Iterable[Tensor]) -> Tensor:
    """The sum of tensors."""
    return reduce(add, parts)


def interpolated(theta: Tensor, levels: HostArray) -> tuple[Tensor, Tensor, Tensor]:
    """Locate tasks (q, 1) among ascending levels (k ≥ 2,): the level below, the level above, the fraction in between.

    Beyond the ends the fraction is less than 0 or more than 1.
    """
    last = levels.size - 1
    after = (theta.graph.constant(levels[None, :]) < theta).cast(np.int64).sum(axis=1)
    after = after.at_least(np.array([1])).at_most(np.array([last]))
    before = after - np.array([1])
    start = theta.graph.constant(levels).take(before, axis=0)
    width = theta.graph.constant(np.diff(levels)).take(before, axis=0)
    return before, after, (theta.sum(axis=1) - start) / width


def piecewise_linear(X: Tensor, curves: Sequence[tuple[HostArray, HostArray]]) -> Tensor:
    """Map each column of X (n, d) by its own function: linear through (points, values), constant beyond its ends."""
    d, width = len(curves), max(points.size for points, _ in curves)
    points, (values, slopes) = np.full((d, width), np.inf), np.zeros((2, d, width))
    for j, (at, taken) in enumerate(curves):
        points[j, : at.size], values[j, : at.size] = at, taken
        slopes[j, : at.size - 1] = np.diff(taken) / np.diff(at)
    ends = np.array([[at[[0, -1]] for at, _ in curves]])
    X = X.at_least(ends[..., 0]).at_most(ends[..., 1])
    # numbers in single precision are added up faster than integers
    passed = (X.graph.constant(points[None]) <= X.with_axis(2)).cast(np.float32).sum(axis=2).cast(np.int64)
    places = passed + (width * np.arange(d) - 1)[None, :]
    start, value, slope = (X.graph.constant(of.ravel()).take(places, axis=0) for of in (points, values, slopes))
    return value + (X - start) * slope
