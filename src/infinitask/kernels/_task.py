"""Task kernels k_Θ and their derivatives.

A task kernel measures how similar the predictions for two tasks s and t are. A penalty on ∂h/∂θ, such as the
non-crossing one, needs ∂₂k(·, t), which lies in the space of functions only if ∂₁∂₂k exists. The smoothness of the
kernel therefore determines which penalties are possible.
"""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from infinitask._base.arrays import Array, as_like, namespace, to_host
from infinitask._base.validation import number, polynomial_parameters

from ._base import Formula, Kernel, Named, Names, Profile
from ._distances import decay, euclidean_gamma, gamma_by_rule, matrices, positive_gamma, squared_distances

SAME_TASK = 1e-12
"""Tasks that differ by less than this fraction of their size are equal."""


class TaskKernel(Kernel):
    """A kernel on tasks: it measures how similar the predictions for two tasks are, and has derivatives in θ.

    k_Θ(s, t) is a positive semi-definite function of two tasks. ``kernel.resolve(nodes)`` returns a copy in which a
    data-dependent ``gamma`` is a number. The copy maps tasks S (p, d) or (p,) and T (q, d) or (q,) to the Gram matrix
    (p, q) of ∂₁^i ∂₂^j k for ``orders=(i, j)``, with i, j in {0, 1}. Derivatives exist for Θ ⊂ ℝ only.

    Attributes
    ----------
    max_order : int
        The largest i ≤ 1 for which ∂₁^i ∂₂^i k exists; h(x)(·) then is i times differentiable.
    diagonal : bool
        Whether k(s, t) = 0 for all s ≠ t: the tasks share nothing.
    strictly_positive : bool
        Whether Gram matrices of distinct tasks are nonsingular: the values at the nodes can be arbitrary, and a free
        bias is computed quickly. False is always safe, but slower.

    Notes
    -----
    A ``gamma`` is a positive number, or "median" (None is the same): 1/(2σ²) with σ the median distance of the
    nodes. If it is 0, σ is the mean of the positive distances, and γ = 1 if all nodes coincide. If θ has several
    coordinates, each is measured in units of its standard deviation over the nodes, and ``gamma`` becomes a tuple.

    To write another kernel, derive from this class and implement ``_gram``, and ``profile`` if an HTML page or an ONNX
    graph must evaluate it. ``names`` lets users select it by name.
    """

    _named: ClassVar[Named] = {}
    max_order: ClassVar[int] = 1
    diagonal: ClassVar[bool] = False
    strictly_positive: ClassVar[bool] = False

    def resolve(self, nodes: Array) -> Self:
        """Return a copy whose data-dependent parameters are numbers."""
        return clone(self)  # type: ignore[no-any-return]

    def __call__(self, S: Array, T: Array, orders: tuple[int, int] = (0, 0)) -> Array:
        """Return ∂₁^i ∂₂^j k(s, t) for all pairs, (p, q).

        Parameters
        ----------
        S : array of shape (p,) or (p, d)
        T : array of shape (q,) or (q, d)
        orders : (i, j), default=(0, 0)
        """
        name = type(self).__name__
        if not isinstance(orders, (tuple, list)) or tuple(orders) not in ((0, 0), (1, 0), (0, 1), (1, 1)):
            raise ValueError(f"{name} was asked for orders={orders!r}; each of the two is 0 or 1.")
        orders = (orders[0], orders[1])
        derivative = "∂₁" * orders[0] + "∂₂" * orders[1] + "k"
        if max(orders) > self.max_order:
            raise ValueError(
                f"{name} has no derivative {derivative} in its RKHS, and a penalty on the derivative in θ "
                "(noncrossing) needs it; use 'rbf', 'matern32', 'matern52' or 'polynomial' as task_kernel and "
                "bias_kernel, or drop the penalty."
            )
        S, T = matrices(_rows(S), _rows(T))
        if max(orders) > 0 and S.shape[1] != 1:
            raise ValueError(
                f"{name} was asked for {derivative} on tasks with {S.shape[1]} coordinates; derivatives "
                "exist for one-dimensional tasks only: drop the penalty on the derivative, or use a Θ ⊂ ℝ."
            )
        return self._gram(S, T, orders)

    def slope_error(self, step: float) -> float:
        """Bound |∂h/∂θ − its linear interpolation on a grid of that step| for ‖h‖ = 1; ∞ if no bound is known.

        By the reproducing property |∂^o h(θ)|² ≤ ‖h‖² ∂₁^o ∂₂^o k(θ, θ), and likewise for differences of derivatives.
        The interpolation error is at most step²/8 times the third derivative of h, or step/4 times the variation of
        the second one within a step.
        """
        return math.inf

    @abstractmethod
    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        """Return ∂₁^i ∂₂^j k for S (p, d) and T (q, d) of one dtype; d = 1 if an order is positive."""


class _StationaryTask:
    """A kernel k(s, t) = f(v) with an even f and v = a(s − t), or v = a‖s − t‖ for Θ ⊂ ℝ^d.

    By the chain rule ∂₁k = a f′(v), ∂₂k = −a f′(v) and ∂₁∂₂k = −a² f″(v).
    """

    strictly_positive: ClassVar[bool] = True

    gamma: float | str | tuple[float, ...] | None

    def formula(self) -> Formula:
        """Return a function of a distance, of scaled tasks if each coordinate has its own ``gamma``."""
        if not isinstance(self.gamma, tuple):
            return TaskKernel.formula(self)  # type: ignore[arg-type]
        return "scaled", {"scales": np.sqrt(self._gammas(len(self.gamma)))}, (clone(self).set_params(gamma=1.0),)

    def resolve(self, nodes: Array) -> Self:
        """Return a copy whose ``gamma`` is a number, or one number for each coordinate."""
        rows = _rows(nodes)
        if isinstance(self.gamma, tuple):
            gamma: float | tuple[float, ...] = self._gammas(int(rows.shape[1]))
        elif rows.shape[1] > 1 and self.gamma in (None, "median"):
            gamma = _gamma_of_each(rows)
        else:
            rule = "median" if self.gamma is None else self.gamma
            gamma = gamma_by_rule(type(self).__name__, rule, {"median": euclidean_gamma}, rows)
        return clone(self).set_params(gamma=gamma)  # type: ignore[no-any-return]

    @property
    def _gamma(self) -> float:
        return self._gammas(1)[0] if isinstance(self.gamma, tuple) else positive_gamma(type(self).__name__, self.gamma)

    def _gammas(self, d: int) -> tuple[float, ...]:
        """Return γ for each of d coordinates, if each has its own."""
        given = self.gamma if isinstance(self.gamma, tuple) else ()
        if len(given) != d:
            raise ValueError(
                f"{type(self).__name__} was given gamma={self.gamma!r} for tasks with {d} coordinates; give one number "
                "for each coordinate, or one for all of them."
            )
        return tuple(positive_gamma(type(self).__name__, gamma) for gamma in given)

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        xp, ratio, order = namespace(S, T), self.profile().factor, sum(orders)
        if isinstance(self.gamma, tuple) and S.shape[1] > 1:
            rates = as_like([math.sqrt(gamma) for gamma in self._gammas(int(S.shape[1]))], S)
            return self._derivative(xp.sqrt(ratio * squared_distances(S * rates, T * rates)), 0)
        v = xp.sqrt(ratio * squared_distances(S, T, self._gamma))
        if order == 0:
            return self._derivative(v, 0)
        a = math.sqrt(ratio) * math.sqrt(self._gamma)
        gram = self._derivative(xp.sign(S - T.T) * v, order) * (-a if orders[1] else a)
        return gram * a if order == 2 else gram

    @abstractmethod
    def profile(self) -> Profile:
        """Return f; its factor is a²/γ."""

    @abstractmethod
    def _derivative(self, v: Array, order: int) -> Array:
        """Return the derivative of f of the given order at v."""


def _rows(theta: Array) -> Array:
    """Return tasks (p,) as a matrix (p, 1), and tasks (p, d) unchanged."""
    theta = namespace(theta).asarray(theta)
    return theta[:, None] if theta.ndim == 1 else theta


def _gamma_of_each(nodes: Array) -> tuple[float, ...]:
    """Return γ/s² for each coordinate, with s its standard deviation and γ the rule for standardised coordinates.

    A level in [0, 1] and a cost in [20, 1000] then have equal weight; without scaling the level would have none.
    """
    rows = to_host(nodes).astype(float)
    spread = rows.std(axis=0)
    spread[spread <= SAME_TASK * abs(rows).max(axis=0)] = 1.0
    gamma = euclidean_gamma(rows / spread)
    return tuple(min(max(gamma / s / s, sys.float_info.min), sys.float_info.max) for s in spread.tolist())


class Gaussian(_StationaryTask, TaskKernel):
    """The Gaussian task kernel, for smooth functions of θ: k(s, t) = exp(−γ‖s − t‖²), or exp(−Σ_k γ_k (s_k − t_k)²).

    Parameters
    ----------
    gamma : float, tuple of float, "median" or None, default="median"
        γ = 1/(2σ²) for a length scale σ; a tuple has one for each coordinate of θ; "median" is the rule of
        :class:`TaskKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> kernel, nodes = Gaussian(gamma=0.5), np.array([0.0, 1.0])
    >>> kernel(nodes, nodes).round(3)
    array([[1.   , 0.607],
           [0.607, 1.   ]])
    >>> kernel(nodes, nodes, orders=(0, 1)).round(3)
    array([[ 0.   , -0.607],
           [ 0.607,  0.   ]])
    """

    names: ClassVar[Names] = {"rbf": {}, "gaussian": {}}

    def __init__(self, gamma: float | str | tuple[float, ...] | None = "median") -> None:
        self.gamma = gamma

    def profile(self) -> Profile:
        """Return exp(−u) with u = γ‖s − t‖²."""
        return Profile("squared", self.gamma, series=(1.0,))

    def slope_error(self, step: float) -> float:
        """See :meth:`TaskKernel.slope_error`; here ∂₁³∂₂³k(θ, θ) = 120 γ³."""
        return step**2 / 8.0 * math.sqrt(120.0 * self._gamma**3)

    def _derivative(self, v: Array, order: int) -> Array:
        bell = decay(v * v)
        return (bell, -2.0 * v * bell, (4.0 * v * v - 2.0) * bell)[order]


class MaternTask(_StationaryTask, TaskKernel):
    """Functions of θ with one or two derivatives: k(s, t) = Matérn_ν(‖s − t‖/ℓ) with ℓ = (2γ)^(−1/2).

    With v = √(2ν)‖s − t‖/ℓ: (1 + v)exp(−v) for ν = 3/2, (1 + v + v²/3)exp(−v) for ν = 5/2. A ``gamma`` implies the
    same length scale as for :class:`Gaussian`.

    Parameters
    ----------
    nu : {1.5, 2.5}, default=1.5
    gamma : float, tuple of float, "median" or None, default="median"
        A tuple has one for each coordinate of θ; "median" is the rule of :class:`TaskKernel`.

    Examples
    --------
    >>> import numpy as np
    >>> MaternTask(gamma=0.5)(np.array([0.0]), np.array([0.0, 1.0])).round(3)
    array([[1.   , 0.483]])
    """

    names: ClassVar[Names] = {"matern32": {"nu": 1.5}, "matern52": {"nu": 2.5}}

    def __init__(self, nu: float = 1.5, gamma: float | str | tuple[float, ...] | None = "median") -> None:
        self.nu = nu
        self.gamma = gamma

    def profile(self) -> Profile:
        """Return a polynomial of v times exp(−v)."""
        if self.nu not in (1.5, 2.5):
            raise ValueError(
                f"MaternTask was given nu={self.nu!r}; it must be 1.5 or 2.5. For rougher functions of θ use "
                "PiecewiseLinear, for smoother ones Gaussian."
            )
        series = (1.0, 1.0) if self.nu == 1.5 else (1.0, 1.0, 3.0)
        return Profile("squared", self.gamma, 4.0 * float(self.nu), root=True, series=series)

    def slope_error(self, step: float) -> float:
        """See :meth:`TaskKernel.slope_error`; a bound is known for ν = 5/2 only.

        In this case ∂₁²∂₂²k = a⁴ g(r) with g(r) = (1 − 5r/3 + r²/3)exp(−r) ≥ 1 − 8r/3, r = a|s − t| and a² = 10γ.
        """
        if self.nu != 2.5:
            return math.inf
        a = math.sqrt(10.0 * self._gamma)
        return step / 4.0 * a**2 * math.sqrt(16.0 / 3.0 * a * step)

    def _derivative(self, v: Array, order: int) -> Array:
        r = abs(v)
        fall = decay(1.0 * r)  # of a copy, because r is needed below
        if self.nu == 1.5:
            return ((1.0 + r) * fall, -v * fall, (r - 1.0) * fall)[order]
        third = fall / 3.0
        return ((3.0 + 3.0 * r + r * r) * third, -v * (1.0 + r) * third, (r * r - r - 1.0) * third)[order]


class PolynomialTask(TaskKernel):
    """Polynomials in θ: k(s, t) = (sᵀt + c)^degree.

    Parameters
    ----------
    degree : int, default=3
    coef0 : float, default=1.0
        The c ≥ 0 of the formula.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = PolynomialTask(degree=2)
    >>> kernel(np.array([1.0]), np.array([2.0])), kernel(np.array([1.0]), np.array([2.0]), orders=(1, 0))
    (array([[9.]]), array([[12.]]))
    """

    names: ClassVar[Names] = {"poly": {}, "polynomial": {}}

    def __init__(self, degree: int = 3, coef0: float = 1.0) -> None:
        self.degree = degree
        self.coef0 = coef0

    def profile(self) -> Profile:
        """Return u^degree with u = sᵀt + c."""
        degree, coef0 = polynomial_parameters("PolynomialTask", self.degree, self.coef0)
        return Profile("product", offset=coef0, power=degree)

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        degree, coef0 = polynomial_parameters("PolynomialTask", self.degree, self.coef0)
        inner = S @ T.T
        base = inner + coef0
        if orders == (0, 0):
            return base**degree
        slope = degree * base ** (degree - 1)
        if sum(orders) == 1:
            return slope * (T.T if orders == (1, 0) else S)
        # For degree 1 the second term is zero, but 0 · base^(−1) is NaN at base = 0.
        return slope if degree == 1 else slope + degree * (degree - 1) * inner * base ** (degree - 2)


class ConstantTask(TaskKernel):
    """Gives all tasks the same prediction: k(s, t) = 1.

    Examples
    --------
    >>> import numpy as np
    >>> ConstantTask()(np.array([0.1, 0.9]), np.array([0.5]))
    array([[1.],
           [1.]])
    """

    names: ClassVar[Names] = {"constant": {}}

    def profile(self) -> Profile:
        """Return u^0."""
        return Profile("product", power=0)

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        return namespace(S, T).full_like(S @ T.T, 0.0 if max(orders) > 0 else 1.0)


class PiecewiseLinear(TaskKernel):
    """Interpolates linearly between the nodes: k(s, t) = min(s, t) + c for s, t ≥ −c.

    Parameters
    ----------
    offset : float, default=1.0
        The c of the formula. The functions of θ are 0 at −c, which must be to the left of Θ.

    Examples
    --------
    >>> import numpy as np
    >>> PiecewiseLinear()(np.array([0.25]), np.array([0.0, 0.5, 1.0]))
    array([[1.  , 1.25, 1.25]])
    """

    names: ClassVar[Names] = {"piecewise-linear": {}}
    max_order: ClassVar[int] = 0
    strictly_positive: ClassVar[bool] = True

    def __init__(self, offset: float = 1.0) -> None:
        self.offset = offset

    def profile(self) -> Profile:
        """Return min(s, t) + c."""
        return Profile("minimum", offset=number("PiecewiseLinear: offset", self.offset))

    def _gram(self, S: Array, T: Array, orders: tuple[int, int]) -> Array:
        xp = namespace(S, T)
        offset = number("PiecewiseLinear: offset", self.offset)
        if S.shape[1] != 1:
            raise ValueError(
                f"PiecewiseLinear was given tasks with {S.shape[1]} coordinates; it orders tasks on a line: "
                "use 'rbf', 'matern32' or 'matern52' for Θ ⊂ ℝ^d."
            )
        gram = xp.minimum(S, T.T) + offset
        if bool(xp.any(gram < 0)):
            raise ValueError(
                f"PiecewiseLinear is positive semi-definite only for tasks θ ≥ −offset, and was given θ = "
                f"{float(xp.min(gram)) - offset:.6g} with offset={self.offset!r}; use a larger offset."
            )
        return gram


def task_kernel(spec: Any, gamma: float | str | None = None, *, name: str = "task_kernel") -> TaskKernel:
    """Return the task kernel for a name or a kernel object.

    Parameters
    ----------
    spec : str or TaskKernel
        "rbf" (or "gaussian"), "matern32", "matern52", "polynomial" (or "poly"), "constant", "piecewise-linear",
        "diagonal"; or a kernel object, returned unchanged.
    gamma : float, "median" or None, default=None
        The ``gamma`` for names of kernels that have one; None means "median". An object has its own.
    name : str, default="task_kernel"
        The name of the parameter in error messages.

    Returns
    -------
    TaskKernel

    Examples
    --------
    >>> task_kernel("matern52", gamma=2.0)
    MaternTask(gamma=2.0, nu=2.5)
    """
    if isinstance(spec, TaskKernel):
        return spec
    if isinstance(spec, str) and spec in TaskKernel._named:
        named: TaskKernel = TaskKernel._named[spec]()
        if hasattr(named, "gamma"):
            named.gamma = "median" if gamma is None else gamma
        return named
    raise ValueError(
        f"{name}={spec!r} is not a task kernel; expected one of {', '.join(map(repr, TaskKernel._named))}, or an "
        "object such as Gaussian(gamma=0.5). A kernel of your own derives from TaskKernel, which knows derivatives."
    )
