"""Rules that choose nodes and weights on the unit cube, and let a measure move them to Θ."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any

import numpy as np
from scipy import special
from scipy.stats import qmc
from sklearn.base import BaseEstimator

from infinitask._array import HostArray
from infinitask.measures._quadrature import Quadrature
from infinitask.measures._spaces import Measure

__all__ = [
    "Atoms",
    "ClenshawCurtis",
    "GaussLegendre",
    "Halton",
    "MonteCarlo",
    "Rule",
    "Sobol",
    "quadrature_rule",
]

# Sampled points keep this distance from 0 and 1, where F⁻¹ may be infinite.
_UNIT_MARGIN = 2.0**-32


class Rule(BaseEstimator, ABC):
    """A recipe for nodes and weights: ``rule(measure, n_nodes, rng)`` is a :class:`Quadrature`."""

    def __call__(self, measure: Measure, n_nodes: int | None = None, rng: Any = None) -> Quadrature:
        """Nodes θ_j = F⁻¹(u_j) and weights w_j of this rule for ``measure``.

        Parameters
        ----------
        measure : Measure
        n_nodes : int
            The number m of nodes; grids in d > 1 dimensions round the number per axis up. A discrete measure
            has its own points and ignores it.
        rng : None, int, numpy.random.Generator or numpy.random.RandomState
            Source of the randomness, where the rule has any.
        """
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
        """The quadrature for a measure that is not a finite sum of point masses."""


class _Cloud(Rule):
    """Points of the unit cube, all of weight 1/m."""

    @abstractmethod
    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        """Points of shape (m, d) in the unit cube."""

    def _continuous(self, measure: Measure, n_nodes: Any, rng: Any) -> Quadrature:
        m = _count(n_nodes)
        u = np.clip(self._unit(measure.dim, m, _generator(rng)), _UNIT_MARGIN, 1.0 - _UNIT_MARGIN)
        return Quadrature.ascending(measure.ppf(u), np.full(m, 1.0 / m))


class MonteCarlo(_Cloud):
    """u_j independent and uniform, w_j = 1/m: error of order m^(−1/2), whatever f and d.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> MonteCarlo()(Uniform(0.0, 1.0), 4, rng=0).weights.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        return rng.random((n_nodes, dim))


class Sobol(_Cloud):
    """u_j the first m points of a Sobol' sequence, w_j = 1/m; best if m is a power of two.

    Parameters
    ----------
    scramble : bool
        Randomise the sequence. Otherwise its points, multiples of 2^(−k), are moved by half a step, which
        takes them off the border and makes the midpoint rule of m = 2^k nodes in one dimension.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> Sobol(scramble=False)(Uniform(0.0, 1.0), 4).nodes[:, 0].tolist()
    [0.125, 0.375, 0.625, 0.875]
    """

    def __init__(self, scramble: bool = True) -> None:
        self.scramble = scramble

    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        # A whole power of two is drawn because SciPy warns about any other number; the first m points of
        # the sequence are the same either way, and each keeps the weight 1/m.
        log2 = (n_nodes - 1).bit_length()
        points: HostArray = _sequence(qmc.Sobol, dim, self.scramble, rng).random_base2(log2)
        if not self.scramble:
            points = points + 0.5 ** (log2 + 1)
        return points[:n_nodes]


class Halton(_Cloud):
    """u_j the first m points of a Halton sequence, w_j = 1/m; any m serves equally well.

    Parameters
    ----------
    scramble : bool
        Randomise the sequence. Otherwise it starts after its first point, the origin.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> Halton(scramble=False)(Uniform(0.0, 1.0), 3).nodes[:, 0].tolist()
    [0.25, 0.5, 0.75]
    """

    def __init__(self, scramble: bool = True) -> None:
        self.scramble = scramble

    def _unit(self, dim: int, n_nodes: int, rng: np.random.Generator) -> HostArray:
        skip = 0 if self.scramble else 1
        points: HostArray = _sequence(qmc.Halton, dim, self.scramble, rng).random(n_nodes + skip)
        return points[skip:]


class _Grid(Rule):
    """A rule on the unit interval; in d > 1 dimensions the tensor product of d of them."""

    @abstractmethod
    def _unit(self, n_nodes: int) -> tuple[HostArray, HostArray]:
        """Nodes in the unit interval and weights, both of shape (m,)."""

    def _continuous(self, measure: Measure, n_nodes: Any, rng: Any) -> Quadrature:
        axes = [(mu, mu.atoms()) for mu in measure.marginals()]
        # Point masses along an axis stay as they are; the other axes share what is left of n_nodes.
        fixed = math.prod(len(atoms.weights) for _, atoms in axes if atoms is not None)
        per_axis = _root_up(-(-_count(n_nodes) // fixed), sum(atoms is None for _, atoms in axes))
        u, weights = self._unit(per_axis)
        return Quadrature.tensor(
            [Quadrature.ascending(mu.ppf(u[:, None]), weights) if atoms is None else atoms for mu, atoms in axes]
        )


class GaussLegendre(_Grid):
    """u_j the zeros of the Legendre polynomial of degree m on [0, 1]: exact up to degree 2m − 1 in u.

    Examples
    --------
    >>> from infinitask.measures import Uniform
    >>> GaussLegendre()(Uniform(-1.0, 1.0), 2).nodes.round(4).tolist()
    [[-0.5774], [0.5774]]
    """

    def _unit(self, n_nodes: int) -> tuple[HostArray, HostArray]:
        nodes, weights = special.roots_legendre(n_nodes)
        return (1.0 + nodes) / 2.0, weights / np.sum(weights)


class ClenshawCurtis(_Grid):
    """u_j = sin²(πj / (2(m − 1))), the ends included: exact up to degree m − 1 in u.

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
        # The interpolant's cosine series, integrated term by term: ∫ cos(2kt) sin t dt = −2 / (4k² − 1).
        k = np.arange(1, last // 2 + 1)
        series = np.where(2 * k == last, 1.0, 2.0) / (4.0 * k**2 - 1.0)
        weights = 1.0 - np.cos(2.0 * np.outer(angles, k)) @ series
        weights[[0, -1]] /= 2.0
        return np.sin(angles / 2.0) ** 2, weights / np.sum(weights)


class Atoms(Rule):
    """The point masses of a discrete measure, and nothing else.

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
    """The rule of that name, or the rule itself.

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
    raise ValueError(f"quadrature={spec!r} is not a rule; give one of {names}, or a Rule such as Sobol().")


def _count(n_nodes: Any) -> int:
    if not isinstance(n_nodes, Integral) or isinstance(n_nodes, bool) or n_nodes < 1:
        raise ValueError(f"n_nodes={n_nodes!r} is not a number of nodes; give an integer of at least 1.")
    return int(n_nodes)


def _generator(rng: Any) -> np.random.Generator:
    """``rng`` as a NumPy generator; one of the older kind seeds a new one, and thereby moves on."""
    if isinstance(rng, np.random.RandomState):
        return np.random.default_rng(rng.randint(0, 2**31 - 1, size=4))
    return np.random.default_rng(rng)


def _sequence(engine: Any, dim: int, scramble: bool, rng: np.random.Generator) -> Any:
    # SciPy 1.15 renamed `seed` to `rng`.
    keyword = "rng" if "rng" in inspect.signature(engine.__init__).parameters else "seed"
    return engine(d=dim, scramble=scramble, **{keyword: rng})


def _root_up(number: int, degree: int) -> int:
    """The smallest integer whose power of that degree is at least ``number``."""
    # Integers decide: in floating point the cube root of 125 is not 5.
    root: int = max(1, math.floor(number ** (1.0 / degree)))
    while root**degree < number:
        root += 1
    return root
