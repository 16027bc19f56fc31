r"""Penalties: terms of the objective that keep h small, and shape its curves.

* :class:`Ridge`: (λ/2)‖h‖² in the RKHS of the product kernel.
* :class:`IntegratedRidge`: (λ/2) ∫ ρ(θ) ‖h(·)(θ)‖²_{k_X} dμ(θ), the paper's L^{2,1} norm.
* :class:`IntegratedPenalty`: ∫∫ ω(θ, v) dμ(θ) dP(x), where v is h(x)(θ) or ∂h(x)(θ)/∂θ and ω is any convex function,
  such as the total variation over θ, ∫∫ |∂h/∂θ|.
* A weighted sum of these, ``Ridge() + 2.0 * IntegratedRidge() + 0.1 * IntegratedPenalty((0, 0), of="slope")``. λ
  multiplies the quadratic penalties and no others.

A quadratic penalty provides coordinates of ψ in which it is the plain ridge (λ/2)‖C‖²_F. An integrated one is a
loss without targets, like the empirical risk an integral over rows and nodes. This is all that the solvers use.

The parameter ``noncrossing`` of an estimator is an integrated penalty of the derivative d = ∂h/∂θ as well,
λ_nc ∫∫ (−d)₊. It has two smooth forms:

===================  ==============  =====  ==========
penalty              u in            ε      q for u > 0
===================  ==============  =====  ==========
λ_nc (−d)₊           [0, λ_nc]       0      0
λ_nc ψ₊^κ(−d)        [0, λ_nc]       0      κ / λ_nc
λ_nc (−d)₊²          [0, ∞)          0      1 / (2 λ_nc)
===================  ==============  =====  ==========
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice, finite, number
from infinitask.features import TaskFeatures, integrated_basis, node_basis
from infinitask.kernels import TaskKernel
from infinitask.losses import Loss
from infinitask.losses._integrands import integrand, rescaled
from infinitask.measures import Quadrature

__all__ = ["IntegratedPenalty", "IntegratedRidge", "Penalty", "Ridge"]

LEFT_OUT = "Leave out a penalty of weight 0; penalty='ridge' is the ridge alone."

NODE_ERROR = 1e-9
"""The integrated ridge allows any h at the nodes if ψ reproduces the values at the nodes to this accuracy, relative
to the largest. In several dimensions the Gram matrix of a smooth kernel may be singular to rounding. Then h is limited
to the span of the kernel, because the certificate needs the values that the field computes."""

NODE_ERROR_OF_A_PART = 1e-7
"""The same if the kernel spans only a part of these values. If ρ spans many decades, that part misses the nodes with
the smallest ridges: the error of a path over 12 decades is 0.4."""


class Term(NamedTuple):
    """A penalty on curves, Σ_ij ω_i w_j ω(θ_j, v_ij)."""

    loss: Loss
    """ω, with its weight."""
    order: int
    """The order of the derivative in θ that is penalised: 0 or 1."""
    inputs: HostArray | None = None
    """The rows (k, d) over which the mean is taken, each with weight 1/k; None: the training rows."""


class Penalty(BaseEstimator, ABC):
    """A quadratic penalty, which keeps h small: (λ/2)‖C‖²_F in suitable coordinates of ψ.

    To write another one, derive from this class and implement ``basis``, and ``matrix`` if it is used in a sum. A
    convex penalty that is not quadratic is an :class:`IntegratedPenalty`.
    """

    sees_nodes_only: bool = False
    """Whether the penalty ignores h between the nodes. Functions that vanish at the nodes then cost nothing and could
    undo a penalty on the derivative in θ."""

    @abstractmethod
    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """Return the ψ in whose coordinates the penalty is (λ/2)‖C‖²_F.

        Parameters
        ----------
        psi : TaskFeatures
            Feature map of the task kernel on the nodes.
        kernel : TaskKernel
            The resolved task kernel.
        quadrature : Quadrature
            The nodes and weights.
        """

    def matrix(self, psi: TaskFeatures, quadrature: Quadrature) -> HostArray:
        """Return M (s, s) with the penalty (λ/2) tr(C M Cᵀ) in the coordinates of the isometric ψ."""
        raise TypeError(
            f"{type(self).__name__} does not say which quadratic form of ψ it is, so it cannot be part of a sum; "
            "implement its method matrix."
        )

    @property
    def quadratic(self) -> Penalty | None:
        """The quadratic part; None if there is none."""
        return self

    @property
    def inputs_given(self) -> tuple[Any, ...]:
        """The inputs that integrated penalties name, as they were given."""
        return ()

    def terms(self, weight: float = 1.0) -> tuple[Term, ...]:
        """Return the penalties on curves, multiplied by a weight."""
        return ()

    def in_units(self, spread: float, centre: float, degree: int) -> Penalty:
        """Return the same penalty for targets (y − centre)/spread, with a loss of this degree."""
        return self

    def __add__(self, other: Any) -> SumPenalty:
        if not isinstance(other, Penalty):
            return NotImplemented
        (ours, mine), (theirs, its) = (_parts(penalty) for penalty in (self, other))
        return SumPenalty([*ours, *theirs], [*mine, *its])

    __array_ufunc__ = None  # an array times a penalty is an error, not an array of penalties

    def __mul__(self, factor: Any) -> SumPenalty:
        penalties, weights = _parts(self)
        factor = number("The weight of a penalty", factor, low=0.0, hint=LEFT_OUT)
        return SumPenalty(penalties, [factor * weight for weight in weights])

    __rmul__ = __mul__


def _parts(penalty: Penalty) -> tuple[list[Penalty], list[float]]:
    """Return the penalties of a sum and their weights; a single penalty is a sum of one term."""
    return penalty.parts if isinstance(penalty, SumPenalty) else ([penalty], [1.0])


def quadratic_part(penalty: Penalty) -> Penalty:
    """Return the quadratic part of a penalty, or raise an error that shows the penalty."""
    quadratic = penalty.quadratic
    if quadratic is None:
        raise ValueError(
            f"penalty={penalty!r} was given without a ridge; it does not limit the norm of h, which may then be any of "
            "many functions. Add one: Ridge() + the penalty, with a weight for each if you like."
        )
    return quadratic


class Ridge(Penalty):
    """The ridge penalty (λ/2)‖h‖², which keeps h small in the RKHS of k_X·k_Θ.

    Examples
    --------
    >>> Ridge()
    Ridge()
    """

    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """Return ψ itself, because it is isometric."""
        return psi

    def matrix(self, psi: TaskFeatures, quadrature: Quadrature) -> HostArray:
        """Return the identity."""
        return np.eye(psi.rank)


class IntegratedRidge(Penalty):
    """The integrated ridge (λ/2) Σ_j w_j ρ(θ_j) ‖h(·)(θ_j)‖²_{k_X}, which keeps h(·)(θ) small at every node.

    Parameters
    ----------
    weight : callable or None
        ρ, a positive function of the nodes: (m, d) → (m,). None means ρ = 1.

    Examples
    --------
    >>> import numpy as np
    >>> IntegratedRidge(lambda theta: 2 * theta[:, 0]).rho(np.array([[0.5], [1.0]]))
    array([1., 2.])
    """

    sees_nodes_only = True

    def __init__(self, weight: Callable[[HostArray], HostArray] | None = None) -> None:
        self.weight = weight

    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """Return a basis orthonormal in L²(ρμ): all functions on the nodes if rounding allows, else the span of ψ."""
        nodes, weights = quadrature.nodes, quadrature.weights
        rho = self.rho(nodes)
        if kernel.strictly_positive and np.all(weights > 0.0):
            free = node_basis(kernel, nodes, weights, rho)
            error = np.max(np.abs(free.map(nodes) - free.values[0])) / np.max(free.values[0])
            span = None if error <= NODE_ERROR else integrated_basis(psi, weights, rho)
            if span is None or (span.rank < nodes.shape[0] and error <= NODE_ERROR_OF_A_PART):
                return free
            return span
        return integrated_basis(psi, weights, rho)

    def matrix(self, psi: TaskFeatures, quadrature: Quadrature) -> HostArray:
        """Return Ψᵀ diag(w ρ) Ψ."""
        density = quadrature.weights * self.rho(quadrature.nodes)
        return np.asarray((psi.values[0].T * density) @ psi.values[0])

    def rho(self, nodes: HostArray) -> HostArray:
        """Return ρ at the nodes, (m,)."""
        if self.weight is None:
            return np.ones(nodes.shape[0])
        if not callable(self.weight):
            raise TypeError(f"IntegratedRidge: weight={self.weight!r} was given; it must be a function of the nodes.")
        rho = np.asarray(self.weight(nodes), dtype=np.float64)
        if rho.shape != (nodes.shape[0],) or not np.all(np.isfinite(rho)) or np.any(rho <= 0.0):
            raise ValueError(
                f"The weight of IntegratedRidge returned an array of shape {rho.shape} at {nodes.shape[0]} nodes; "
                f"it must return positive finite numbers of shape ({nodes.shape[0]},)."
            )
        return rho


class IntegratedPenalty(Penalty):
    """A convex penalty on curves, ∫∫ ω(θ, v) dμ(θ) dP(x), with v = h(x)(θ) or its derivative ∂h(x)(θ)/∂θ.

    Here h includes the bias, as a prediction does. The penalty is added to a ridge, and its weight is not multiplied
    by λ: ``Ridge() + 0.1 * IntegratedPenalty((0, 0), of="slope")`` is (λ/2)‖h‖² + 0.1 ∫∫ |∂h/∂θ|. Values and
    derivatives are measured in the units of y, and the duality gap of a fit certifies the problem with the penalty.
    The integral over θ is the sum over the nodes: a narrow task kernel needs more of them. It is a ``penalty`` of
    :class:`~infinitask.InfiniteTaskEstimator`.

    Parameters
    ----------
    loss : (low, high), callable or Loss
        ω. A pair: the distance of v from the interval [low, high], of which one end may be infinite. (0, 0) with
        ``of="slope"`` is the total variation over θ, and (-inf, c) penalises values above c. A function of (θ, v),
        convex in v, that torch or jax differentiates, with θ (m,) or (m, d) and v (n, m). Or an object of
        :mod:`infinitask.losses` that needs no targets, with v as its h, such as
        ``FunctionLoss(lambda theta, y, v: theta * v**2, smooth_scale=math.inf)`` for a function without kinks.
    of : {"value", "slope"}, default="value"
        Whether v is h or ∂h/∂θ. The derivative requires Θ ⊂ ℝ and task kernels that have one.
    inputs : array (k, d) or None, default=None
        The points x over which the mean is taken, each with weight 1/k, such as a grid or unlabelled rows. None: the
        training rows, with their weights.

    Examples
    --------
    >>> from infinitask import InfiniteTaskEstimator
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(60, random_state=0)
    >>> variation = IntegratedPenalty((0, 0), of="slope")
    >>> model = InfiniteTaskEstimator(penalty=Ridge() + variation, n_nodes=10).fit(X, y)
    >>> low, high = model.predict(X[:1], [0.1, 0.9])[0]  # all quantiles are the median
    >>> bool(abs(high - low) < 0.01)
    True
    """

    sees_nodes_only = True

    def __init__(self, loss: Any, of: str = "value", inputs: Any = None) -> None:
        self.loss = loss
        self.of = of
        self.inputs = inputs

    @property
    def quadratic(self) -> None:
        """None: the penalty has no quadratic part."""
        return None

    @property
    def inputs_given(self) -> tuple[Any, ...]:
        """See :attr:`Penalty.inputs_given`."""
        return () if self.inputs is None else (self.inputs,)

    def terms(self, weight: float = 1.0) -> tuple[Term, ...]:
        """See :meth:`Penalty.terms`."""
        order = ("value", "slope").index(choice("IntegratedPenalty: of", self.of, ("value", "slope")))
        inputs = None if self.inputs is None else finite("IntegratedPenalty: inputs", np.asarray(self.inputs), 2)
        return (Term(rescaled(integrand(self.loss), weight), order, inputs),)

    def in_units(self, spread: float, centre: float, degree: int) -> Penalty:
        """See :meth:`Penalty.in_units`: ω of the value in the units of y, which is centre + spread · v."""
        ((loss, order, inputs),) = self.terms()
        inside = rescaled(loss, float(spread) ** -degree, spread, 0.0 if order else centre)
        return IntegratedPenalty(inside, self.of, inputs)

    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """Raise an error: the penalty is not quadratic."""
        return quadratic_part(self).basis(psi, kernel, quadrature)


class SumPenalty(Penalty):
    """A weighted sum of penalties, (λ/2) Σ_k a_k Ω_k(h) for the quadratic ones, and Σ_k a_k Ω_k(h) for the integrated.

    In the coordinates of ψ the quadratic part is (λ/2) tr(C M Cᵀ) with M = Σ_k a_k M_k, such as
    M = I + a Ψᵀ diag(w ρ) Ψ for the ridge and the integrated ridge. M = V diag(d) Vᵀ is diagonalised once, and
    ψ' = diag(d)^(−1/2) Vᵀ ψ makes it the plain ridge. With a :class:`Ridge` in the sum, functions that vanish at the
    nodes are penalised too, so a penalty of the derivative can be added.

    Parameters
    ----------
    penalties : list of Penalty
        The penalties; of several quadratic ones, at least one must be a :class:`Ridge`.
    weights : list of float
        a_k, positive.

    Examples
    --------
    >>> Ridge() + 2.0 * IntegratedRidge()
    SumPenalty(penalties=[Ridge(), IntegratedRidge()], weights=[1.0, 2.0])
    """

    def __init__(self, penalties: list[Penalty], weights: list[float]) -> None:
        self.penalties = penalties
        self.weights = weights

    @property
    def sees_nodes_only(self) -> bool:  # type: ignore[override]
        """Whether all penalties ignore h between the nodes."""
        return all(penalty.sees_nodes_only for penalty in self.penalties)

    @property
    def parts(self) -> tuple[list[Penalty], list[float]]:
        """The penalties and their weights, checked: the parameters of a search may have changed them."""
        penalties, weights = list(self.penalties), list(self.weights)
        if len(penalties) != len(weights) or not penalties:
            raise ValueError(
                f"SumPenalty: {len(penalties)} penalties and {len(weights)} weights were given; it takes at least one "
                "penalty, and a weight for each."
            )
        for part in penalties:
            if not isinstance(part, Penalty):
                raise TypeError(f"SumPenalty: penalties hold {part!r}; each must be a penalty, such as Ridge().")
        return penalties, [number("The weight of a penalty", weight, low=0.0, hint=LEFT_OUT) for weight in weights]

    @property
    def quadratic(self) -> Penalty | None:
        """The sum of the quadratic penalties; a single one of weight 1 by itself."""
        pairs = [(part.quadratic, a) for part, a in zip(*self.parts, strict=True)]
        kept, weights = [part for part, _ in pairs if part is not None], [a for part, a in pairs if part is not None]
        if not kept:
            return None
        return kept[0] if weights == [1.0] else SumPenalty(kept, weights)

    @property
    def inputs_given(self) -> tuple[Any, ...]:
        """See :attr:`Penalty.inputs_given`."""
        return tuple(inputs for part in self.parts[0] for inputs in part.inputs_given)

    def terms(self, weight: float = 1.0) -> tuple[Term, ...]:
        """See :meth:`Penalty.terms`."""
        return tuple(term for part, a in zip(*self.parts, strict=True) for term in part.terms(weight * a))

    def in_units(self, spread: float, centre: float, degree: int) -> Penalty:
        """See :meth:`Penalty.in_units`."""
        penalties, weights = self.parts
        return SumPenalty([part.in_units(spread, centre, degree) for part in penalties], weights)

    def basis(self, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature) -> TaskFeatures:
        """Return ψ in the eigenvectors of M, each divided by the root of its eigenvalue."""
        if self.sees_nodes_only:
            raise ValueError(
                f"{self!r} was given; a sum needs a Ridge(), which holds what the others do not see. For several "
                "integrated ridges, add up their weights: IntegratedRidge(lambda theta: rho_1(theta) + rho_2(theta))."
            )
        sizes, axes = np.linalg.eigh(self.matrix(psi, quadrature))
        W = axes / np.sqrt(sizes)
        return TaskFeatures(psi.map.whiten(W), tuple(order @ W for order in psi.values))

    def matrix(self, psi: TaskFeatures, quadrature: Quadrature) -> HostArray:
        """Return Σ_k a_k M_k."""
        return np.asarray(sum(a * part.matrix(psi, quadrature) for part, a in zip(*self.parts, strict=True)))
