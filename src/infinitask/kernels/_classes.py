"""The task kernel of many classes: one field for each of them, and the fields sum to zero."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from infinitask._base.arrays import Array, namespace
from infinitask._base.validation import count

from ._base import Formula
from ._task import TaskKernel, task_kernel


class ClassTask(TaskKernel):
    """Ties the fields of K classes together: at every θ they sum to zero.

    A task is (θ, k), a point of Θ followed by the number of a class, and

        k((θ, k), (θ', k')) = k_Θ(θ, θ') · (K δ_kk' − 1)/(K − 1) .

    The second factor is the Gram matrix of the corners of a regular simplex around 0: it is 1 for k = k', its rows sum
    to 0, and so do the K functions f_k(θ) that it spans. For K = 2 it is ±1, and f_2 = −f_1 has the norm of one
    function with kernel k_Θ.

    Parameters
    ----------
    kernel : TaskKernel
        k_Θ. A data dependent ``gamma`` is found from the θ.
    n_classes : int, at least 2
        K.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.kernels import ConstantTask
    >>> tasks = np.array([[0.3, 0.7, k] for k in range(3)])
    >>> ClassTask(ConstantTask(), 3)(tasks, tasks)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]])
    """

    max_order: ClassVar[int] = 0

    def __init__(self, kernel: Any, n_classes: int) -> None:
        self.kernel = kernel
        self.n_classes = n_classes

    def formula(self) -> Formula:
        """k_Θ times the similarity of the classes."""
        return "classes", {"n_classes": self.n_classes}, (task_kernel(self.kernel),)

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        """Whether costs share nothing; classes always do."""
        return task_kernel(self.kernel).diagonal

    def resolve(self, nodes: Array) -> Self:
        """A copy with k_Θ resolved on the θ of the nodes."""
        first = nodes[nodes[:, -1] == nodes[0, -1], :-1]  # of one class: all have the same
        return type(self)(task_kernel(self.kernel).resolve(first), self.n_classes)

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        xp, K = namespace(S, T), count("ClassTask: n_classes", self.n_classes, least=2)
        if S.shape[1] < 2:
            raise ValueError(
                "ClassTask was given tasks with one coordinate; give θ and, last, the number of the class."
            )
        same = xp.astype(xp.abs(S[:, -1:] - T[:, -1:].T) < 0.5, S.dtype)
        repeats = _repeats(xp, S[:, :-1])  # a θ is followed by itself, for each class
        gram = task_kernel(self.kernel)(S[::repeats, :-1], T[:, :-1])
        return xp.repeat(gram, repeats, axis=0) * ((K * same - 1.0) / (K - 1.0))


def _repeats(xp: Any, points: Array) -> int:
    """How often each point stands in a list that repeats all of them equally often, one after the other; else 1."""
    n = int(points.shape[0])
    if n < 2:
        return 1
    new = xp.any(points[1:, :] != points[:-1, :], axis=1)
    times = int(xp.argmax(xp.astype(new, points.dtype))) + 1 if bool(xp.any(new)) else n
    if n % times:
        return 1
    first = points[::times, :]
    return times if bool(xp.all(xp.repeat(first, times, axis=0) == points)) else 1
