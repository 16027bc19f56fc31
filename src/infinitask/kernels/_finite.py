"""Task kernels for finitely many tasks: independent, with a matrix of similarities, or the classes of a classifier."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from infinitask._base.arrays import Array, HostArray, as_like, namespace, to_host
from infinitask._base.validation import count, finite

from ._base import Formula, Names, Profile
from ._task import SAME_TASK, TaskKernel, task_kernel


class Diagonal(TaskKernel):
    """Learns every task independently: k(s, t) = 1 if s = t, else 0. Tasks between the nodes are not learnt.

    Tasks are equal if all their coordinates are bitwise equal.

    Examples
    --------
    >>> import numpy as np
    >>> Diagonal()(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    array([[0., 0.],
           [1., 0.]])
    """

    names: ClassVar[Names] = {"diagonal": {}}
    max_order: ClassVar[int] = 0
    diagonal: ClassVar[bool] = True

    def profile(self) -> Profile:
        """Return 1 for equal tasks, else 0."""
        return Profile("equal")

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        xp = namespace(S, T)
        return xp.astype(xp.all(S[:, None, :] == T[None, :, :], axis=2), S.dtype)


class TaskMatrix(TaskKernel):
    """Kernel for multi-task learning with finitely many tasks whose similarities are known.

    k(t_i, t_j) = A_ij for tasks t_0, …, t_{T−1}, which are the integers 0, …, T − 1 unless ``tasks`` names them. A task
    in the list that is not a node is predicted from similar tasks; tasks outside the list have no prediction.

    Parameters
    ----------
    matrix : array-like of shape (T, T)
        A, symmetric and positive semi-definite.
    tasks : array-like of shape (T,) or None, default=None
        Distinct numbers that identify the rows of A; None: 0, …, T − 1.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = TaskMatrix([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    >>> kernel(np.array([0, 2]), np.array([1]))
    array([[0.5],
           [0.5]])
    >>> TaskMatrix([[1.0, 0.5], [0.5, 1.0]], tasks=[10.0, 20.0])(np.array([20.0]), np.array([10.0, 20.0]))
    array([[0.5, 1. ]])

    Three quantiles, the middle one related to both others:

    >>> from infinitask import InfiniteTaskEstimator
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.measures import Discrete
    >>> X, y = make_sine(60, random_state=0)
    >>> levels = [0.1, 0.5, 0.9]
    >>> model = InfiniteTaskEstimator(
    ...     "pinball", measure=Discrete(levels), task_kernel=TaskMatrix(kernel.matrix, tasks=levels)
    ... ).fit(X, y)
    >>> model.decision_function(X, levels).shape
    (60, 3)
    """

    max_order: ClassVar[int] = 0

    def __init__(self, matrix: Any, tasks: Any = None) -> None:
        self.matrix = matrix
        self.tasks = tasks

    def formula(self) -> Formula:
        """Return the entries of a matrix, by the names of its rows."""
        A, tasks = self._checked()
        return "matrix", {"matrix": A, "tasks": tasks}, ()

    def resolve(self, nodes: Array) -> Self:
        """Check the eigenvalues of the matrix and return a copy."""
        A, _ = self._checked()
        eigenvalues = np.linalg.eigvalsh(A)
        if eigenvalues[0] < -SAME_TASK * len(A) * max(abs(eigenvalues[0]), abs(eigenvalues[-1])):
            raise ValueError(
                f"TaskMatrix was given a matrix with the eigenvalue {eigenvalues[0]:.3g}; a kernel must be positive "
                "semi-definite. Set negative eigenvalues to 0, or add a multiple of the identity."
            )
        return super().resolve(nodes)

    def _checked(self) -> tuple[HostArray, HostArray]:
        """Return A (T, T) and the names of its rows (T,)."""
        A = finite("TaskMatrix: matrix", self.matrix, 2)
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"TaskMatrix was given a matrix of shape {A.shape}; it must be square.")
        if np.max(np.abs(A - A.T)) > SAME_TASK * np.max(np.abs(A)):
            raise ValueError(
                f"TaskMatrix was given a matrix that differs from its transpose by {np.max(np.abs(A - A.T)):.3g}; "
                "similarity goes both ways: give a symmetric one, for instance (A + A.T) / 2."
            )
        names = np.arange(len(A), dtype=float) if self.tasks is None else finite("TaskMatrix: tasks", self.tasks, 1)
        if names.shape != (len(A),) or np.unique(names).size < len(A):
            raise ValueError(
                f"TaskMatrix was given tasks={self.tasks!r} for a matrix of shape {A.shape}; give one number for each "
                "row, no number twice."
            )
        return A, names

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        A, names = self._checked()
        # Products with zeros and ones select the entries: they are exact and need no indexing on a device.
        return _membership(S, names) @ as_like(A, S) @ _membership(T, names).T


def _membership(tasks: Array, names: HostArray) -> Array:
    """Return 1 if a task (p, 1) has that name, else 0: (p, T)."""
    xp = namespace(tasks)
    if tasks.shape[1] != 1:
        raise ValueError(
            f"TaskMatrix names its tasks by single numbers, and was given tasks with {tasks.shape[1]} coordinates; "
            "number them, and give these numbers as measure=Discrete(numbers)."
        )
    labels = as_like(names, tasks)
    same = xp.abs(tasks - labels[None, :]) <= SAME_TASK * xp.clip(xp.abs(labels), 1.0)
    known = xp.any(same, axis=1)
    if not bool(xp.all(known)):
        wrong = float(to_host(tasks[:, 0])[~to_host(known)][0])
        raise ValueError(
            f"TaskMatrix was asked for the task {wrong:g}, which is none of its {len(names)} tasks "
            f"({', '.join(f'{name:g}' for name in names[:6])}{', …' if len(names) > 6 else ''}). Ask for one of these, "
            "or give the matrix a row and a column for it."
        )
    return xp.astype(same, tasks.dtype)


class ClassTask(TaskKernel):
    """A field for each of K classes.

    A task is (θ, k), a point of Θ followed by the number of a class, and

        k((θ, k), (θ', k')) = k_Θ(θ, θ') δ_kk' .

    The fields share no unknowns. If they are ``coupled``, they sum to zero at every θ:

        k((θ, k), (θ', k')) = k_Θ(θ, θ') · (K δ_kk' − 1)/(K − 1) .

    The second factor is the Gram matrix of the corners of a regular simplex around 0: it is 1 for k = k', its rows sum
    to 0, and so do the K functions f_k(θ) that it spans. For K = 2 it is ±1, and f_2 = −f_1 has the norm of one
    function with kernel k_Θ.

    Parameters
    ----------
    kernel : TaskKernel
        k_Θ. A data-dependent ``gamma`` is computed from the θ.
    n_classes : int, at least 2
        K.
    coupled : bool, default=True

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

    coupled: bool = True  # of saved kernels that do not say so

    def __init__(self, kernel: Any, n_classes: int, coupled: bool = True) -> None:
        self.kernel = kernel
        self.n_classes = n_classes
        self.coupled = coupled

    def formula(self) -> Formula:
        """Return k_Θ times the similarity of the classes."""
        return "classes", {"n_classes": self.n_classes, "coupled": self.coupled}, (task_kernel(self.kernel),)

    @property
    def diagonal(self) -> bool:  # type: ignore[override]
        """Whether different θ share nothing."""
        return task_kernel(self.kernel).diagonal

    def resolve(self, nodes: Array) -> Self:
        """Return a copy with k_Θ resolved on the θ of the nodes."""
        first = nodes[nodes[:, -1] == nodes[0, -1], :-1]  # one class is enough: all have the same θ
        return type(self)(task_kernel(self.kernel).resolve(first), self.n_classes, self.coupled)

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        xp, K = namespace(S, T), count("ClassTask: n_classes", self.n_classes, least=2)
        if S.shape[1] < 2:
            raise ValueError(
                "ClassTask was given tasks with one coordinate; give θ and, last, the number of the class."
            )
        same = xp.astype(xp.abs(S[:, -1:] - T[:, -1:].T) < 0.5, S.dtype)
        return task_kernel(self.kernel)(S[:, :-1], T[:, :-1]) * ((K * same - 1.0) / (K - 1.0) if self.coupled else same)
