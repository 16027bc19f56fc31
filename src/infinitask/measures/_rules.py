"""Quadrature rules: they choose nodes and weights on the unit cube, and a measure maps them to Θ."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special
from scipy.stats import qmc
from sklearn.base import BaseEstimator

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, flag, naming

if TYPE_CHECKING:
    from infinitask.measures._spaces import Measure


UNIT_MARGIN = 2.0**-32
"""The minimum distance of sampled points from 0 and 1, where F⁻¹ may be infinite."""


@dataclass(frozen=True, eq=False)
class Quadrature:
    """Nodes on Θ and their weights, as returned by every rule.

    ∫ f dμ ≈ Σ_j w_j f(θ_j), with weights that sum to one.

    Attributes
    ----------
    nodes : ndarray of shape (m, d)
        θ_j; ascending if d = 1.
    weights : ndarray of shape (m,)
        w_j.

    Examples
    --------
    >>> simpson = Quadrature(np.asarray([[0.0], [0.5], [1.0]]), np.asarray([1.0, 4.0, 1.0]) / 6.0)
    >>> round(float(simpson.integrate(simpson.nodes[:, 0] ** 2)), 12)
    0.333333333333
    """

    nodes: HostArray
    weights: HostArray

    def __post_init__(self) -> None:
        shapes = np.shape(self.nodes), np.shape(self.weights)
        if len(shapes[0]) != 2 or shapes[1] != shapes[0][:1]:
            raise ValueError(
                f"nodes of shape {shapes[0]} and weights of shape {shapes[1]} were given; a quadrature needs nodes of "
                "shape (m, d) and weights of shape (m,)."
            )

    def integrate(self, values: HostArray) -> HostArray:
        """Return Σ_j w_j values_j, for values of shape (m, ...) at the nodes."""
        return np.tensordot(self.weights, values, axes=1)

    @classmethod
    def ascending(cls, nodes: HostArray, weights: HostArray) -> Quadrature:
        """Return the quadrature with these nodes and weights, in ascending order if d = 1."""
        if nodes.shape[1] == 1:
            order = np.argsort(nodes[:, 0], kind="stable")
            nodes, weights = nodes[order], weights[order]
        return cls(nodes, weights)

    @classmethod
    def tensor(cls, factors: Sequence[Quadrature]) -> Quadrature:
        """Return the quadrature on the product space: all combinations of nodes, products of weights."""
        nodes, weights = factors[0].nodes, factors[0].weights
        for factor in factors[1:]:
            m = factor.weights.shape[0]
            nodes = np.hstack([np.repeat(nodes, m, axis=0), np.tile(factor.nodes, (weights.shape[0], 1))])
            weights = np.kron(weights, factor.weights)
        return cls(nodes, weights)


class Rule(BaseEstimator, ABC):
    """Chooses nodes and weights: ``rule(measure, n_nodes, rng)`` returns a :class:`Quadrature`.

    To write another rule, derive from this class, implement ``_continuous`` and add its name to the table below.
    """

    def __call__(self, measure: Measure, n_nodes: int | None = None, rng: Any = None) -> Quadrature:
        """Return the nodes θ_j and weights w_j for ``measure``: θ_j = F⁻¹(u_j), unless the rule states otherwise.

        Parameters
        ----------
        measure : Measure
        n_nodes : int
            The number m of nodes; grids in d > 1 dimensions round the number per axis up. A discrete measure has
            its own points and ignores this number.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            For rules with random nodes.
        """
        if not callable(getattr(measure, "atoms", None)) or isinstance(measure, type):
            raise TypeError(f"measure={measure!r} was given; it must be a Measure such as Uniform(0.1, 0.9).")
        atoms = measure.atoms()
        if atoms is not None:
            return atoms
        quadrature = self._continuous(measure, n_nodes, rng)
        if not np.all(np.isfinite(quadrature.nodes)):
            raise ValueError(
                f"{self!r} places a node at infinity for {measure!r}, whose support is unbounded; use a rule "
                "without nodes at the ends, such as 'gauss-legendre', or a measure on a bounded set."
            )
        return quadrature

    @abstractmethod
    def _continuous(self, measure: Measure, n_nodes: Any, rng: Any) -> Quadrature:
        """Return the quadrature for a measure that is not a finite sum of point masses."""


class _Cloud(Rule):
    """Points of the unit cube, all with weight 1/m."""

    @abstractmethod
    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        """Return points of shape (m, d) in the unit cube."""

    def _continuous(self, measure: Measure, n_nodes: Any, rng: Any) -> Quadrature:
        m = count("n_nodes", n_nodes)
        u = np.clip(self._unit(measure.dim, m, _generator(rng)), UNIT_MARGIN, 1.0 - UNIT_MARGIN)
        return Quadrature.ascending(measure.ppf(u), np.full(m, 1.0 / m))


class MonteCarlo(_Cloud):
    """Independent random nodes: u_j uniform, w_j = 1/m; the error is of order m^(−1/2) for any f and d.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> MonteCarlo()(Uniform(0.0, 1.0), 4, rng=0).weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        return rng.random((n_nodes, dim))


class _Sequence:
    """The first points of a sequence that fills the unit cube evenly."""

    def __init__(self, scramble: bool = True) -> None:
        self.scramble = scramble

    def _engine(self, kind: Any, dim: int, rng: np.random.Generator) -> Any:
        # SciPy 1.15 renamed `seed` to `rng`
        keyword = "rng" if "rng" in inspect.signature(kind.__init__).parameters else "seed"
        return kind(d=dim, scramble=flag("scramble", self.scramble), **{keyword: rng})


class Sobol(_Sequence, _Cloud):
    """Evenly spread nodes: u_j are the first m points of a Sobol' sequence, w_j = 1/m; best if m is a power of two.

    Parameters
    ----------
    scramble : bool
        Whether to randomise the sequence. Otherwise its points, multiples of 2^(−k), are shifted by half a step: off
        the border, and, in one dimension, to the midpoint rule with m = 2^k nodes.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> Sobol(scramble=False)(Uniform(0.0, 1.0), 4).nodes[:, 0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    """

    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        # SciPy warns unless the number is a power of two; the first m points of the sequence are the same either way
        log2 = (n_nodes - 1).bit_length()
        points: HostArray = self._engine(qmc.Sobol, dim, rng).random_base2(log2)
        return (points if self.scramble else points + 0.5 ** (log2 + 1))[:n_nodes]


class Halton(_Sequence, _Cloud):
    """Evenly spread nodes: u_j are the first m points of a Halton sequence, w_j = 1/m; any m works equally well.

    Parameters
    ----------
    scramble : bool
        Whether to randomise the sequence. Otherwise its first point, the origin, is skipped.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> Halton(scramble=False)(Uniform(0.0, 1.0), 3).nodes[:, 0].tolist()
    [0.25, 0.5, 0.75]
    """

    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        skip = 0 if self.scramble else 1
        points: HostArray = self._engine(qmc.Halton, dim, rng).random(n_nodes + skip)
        return points[skip:]


class _Grid(Rule):
    """A rule on the unit interval; in d > 1 dimensions the tensor product of d such rules."""

    def __init__(self, density: bool = False) -> None:
        self.density = density

    @abstractmethod
    def _unit(self, n_nodes: int) -> tuple[HostArray, HostArray]:
        """Return nodes in the unit interval and weights, both of shape (m,)."""

    def _continuous(self, measure: Measure, n_nodes: Any, rng: Any) -> Quadrature:
        axes = [(mu, mu.atoms()) for mu in measure.marginals()]
        # point masses along an axis are kept; the rest of n_nodes is split among the other axes
        fixed = math.prod(len(atoms.weights) for _, atoms in axes if atoms is not None)
        wanted, degree = -(-count("n_nodes", n_nodes) // fixed), sum(atoms is None for _, atoms in axes)
        # a search among integers, because in floating point the cube root of 125 is not 5
        per_axis = bisect_left(range(wanted + 1), wanted, key=lambda root: root**degree)
        u, weights = self._unit(per_axis)
        return Quadrature.tensor([self._along(mu, u, weights) if atoms is None else atoms for mu, atoms in axes])

    def _along(self, measure: Measure, u: HostArray, weights: HostArray) -> Quadrature:
        """Return the rule along one axis."""
        if not flag(f"{type(self).__name__}: density", self.density):
            return Quadrature.ascending(measure.ppf(u[:, None]), weights)
        low, high = (float(end[0]) for end in measure.support)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError(
                f"{self!r} spreads its nodes over the support of {measure!r}, which is [{low:g}, {high:g}]; it must be "
                "bounded. Use density=False, which places nodes by the inverse distribution function."
            )
        nodes = low + (high - low) * u[:, None]
        found = weights * measure.pdf(nodes)[:, 0]
        if not (np.all(np.isfinite(found)) and np.sum(found) > 0.0):
            raise ValueError(
                f"{self!r} met a density of {measure!r} that is infinite at a node, or 0 at all of them; use "
                "density=False, which places nodes by the inverse distribution function."
            )
        return Quadrature(nodes, found / np.sum(found))


class GaussLegendre(_Grid):
    """Gauss' rule, exact for polynomials in u up to degree 2m − 1: u_j are the zeros of a Legendre polynomial.

    Parameters
    ----------
    density : bool, default=False
        False: nodes F⁻¹(u_j) with weights w'_j; nodes are dense where μ has much mass. True, the form printed in the
        paper: nodes spread over the support, θ_j = low + (high − low) u_j, with weights w'_j f_μ(θ_j) divided by their
        sum. μ must then have a bounded support and a density f_μ. It converges faster if f_μ is smooth and F⁻¹ is
        not, as for Beta(2, 2), whose F⁻¹ is steep at both ends. For a uniform measure both are equal.

    Examples
    --------
    >>> from infinitask.measures import Beta, Uniform
    >>> GaussLegendre()(Uniform(-1.0, 1.0), 2).nodes.round(4).tolist()
    [[-0.5774], [0.5774]]
    >>> by_density = GaussLegendre(density=True)(Beta(2.0, 2.0), 3)
    >>> round(float(by_density.integrate(by_density.nodes[:, 0] ** 2)), 12)  # exact: 0.3
    0.3
    """

    def _unit(self, n_nodes: int) -> tuple[HostArray, HostArray]:
        nodes, weights = special.roots_legendre(n_nodes)
        return (1.0 + nodes) / 2.0, weights / np.sum(weights)


class ClenshawCurtis(_Grid):
    """A rule that includes the ends of Θ, exact for polynomials in u up to degree m − 1: u_j = sin²(πj / (2(m − 1))).

    Parameters
    ----------
    density : bool, default=False
        See :class:`GaussLegendre`.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> ClenshawCurtis()(Uniform(0.0, 1.0), 3).weights.round(4).tolist()
    [0.1667, 0.6667, 0.1667]
    """

    def _unit(self, n_nodes: int) -> tuple[HostArray, HostArray]:
        if n_nodes == 1:
            return np.asarray([0.5]), np.asarray([1.0])
        last = n_nodes - 1
        angles = np.pi * np.arange(n_nodes) / last
        # The cosine series of the interpolant is integrated term by term: ∫ cos(2kt) sin t dt = −2 / (4k² − 1).
        k = np.arange(1, last // 2 + 1)
        series = np.where(2 * k == last, 1.0, 2.0) / (4.0 * k**2 - 1.0)
        weights = 1.0 - np.cos(2.0 * np.outer(angles, k)) @ series
        weights[[0, -1]] /= 2.0
        return np.sin(angles / 2.0) ** 2, weights / np.sum(weights)


class Atoms(Rule):
    """The points of a discrete measure.

    Examples
    --------
    >>> from infinitask.measures import Discrete
    >>> Atoms()(Discrete([0.1, 0.9], weights=[1, 3])).weights.tolist()
    [0.25, 0.75]
    """

    def _continuous(self, measure: Measure, n_nodes: Any, rng: Any) -> Quadrature:
        raise ValueError(
            f"quadrature='discrete' takes the points of a Discrete measure, but the measure is {measure!r}; give "
            "measure=Discrete(points), or choose a rule such as 'gauss-legendre'."
        )


_RULES: dict[str, type[Rule]] = {
    "monte-carlo": MonteCarlo,
    "sobol": Sobol,
    "halton": Halton,
    "gauss-legendre": GaussLegendre,
    "clenshaw-curtis": ClenshawCurtis,
    "discrete": Atoms,
}


def quadrature_rule(spec: str | Rule) -> Rule:
    """Return the rule for a name, or the rule itself.

    Examples
    --------
    >>> quadrature_rule("gauss-legendre")
    GaussLegendre()
    """
    if isinstance(spec, Rule):
        return spec
    if isinstance(spec, str) and spec in _RULES:
        return _RULES[spec]()
    names = ", ".join(repr(name) for name in _RULES)
    raise ValueError(f"quadrature={spec!r} was given; it must be one of {names}, or a Rule such as Sobol().")


def _generator(rng: Any) -> np.random.Generator:
    """Return ``rng`` as a NumPy generator; a RandomState supplies the seed of a new one."""
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(0, 2**31 - 1, size=4))
    with naming("rng"):
        return np.random.default_rng(rng)
