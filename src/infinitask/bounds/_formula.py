"""The bounds as functions of numbers, the discrepancy of nodes, and a proposed number of nodes."""

from __future__ import annotations

import math
import sys
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice, count, fraction, number
from infinitask.losses._rows import Stability
from infinitask.measures import ProductMeasure, Sobol, Uniform

MOST_CELLS = 2**31
"""The number of cells up to which a star discrepancy is exact: about 1000 nodes in three dimensions, in two seconds."""


@final
@dataclass(frozen=True, kw_only=True)
class Bound:
    """A generalisation bound and its terms.

    R(h) ≤ R̂(h) + stability + deviation + quadrature + optimisation, with probability 1 − δ.

    Attributes
    ----------
    n, m : int
        The numbers of samples and nodes.
    delta : float
        δ.
    beta, xi : float
        β, the uniform stability, and ξ, a bound on the loss.
    variation, discrepancy : float
        V and D_m; for several coordinates of θ a Lipschitz constant, and 4·D_m^(1/s).
    deviation : float
        (4nβ + ξ)√(log(1/δ)/(2n)).
    optimisation : float
        The contribution of the duality gap ε of the fit, 2ℒκ√(2ε/λ); 0 for an exact minimiser.
    empirical_risk : float or None
        R̂(h), if the model is known.
    zero_risk : float
        A bound on the risk of h = 0, which needs no data.
    notes : tuple of str
        The assumptions of the bound.

    Examples
    --------
    >>> bound = quantile_bound(10_000, 100, alpha=1.0, y_bound=1.0)
    >>> round(bound.stability, 6), round(bound.deviation, 3), round(bound.quadrature, 3)
    (0.000122, 0.047, 0.076)
    >>> bound.vacuous
    False
    """

    n: int
    m: int
    delta: float
    beta: float
    xi: float
    variation: float
    discrepancy: float
    deviation: float
    optimisation: float = 0.0
    empirical_risk: float | None = None
    zero_risk: float
    notes: tuple[str, ...] = ()

    @property
    def stability(self) -> float:
        """2β."""
        return 2.0 * self.beta

    @property
    def quadrature(self) -> float:
        """V·D_m."""
        return self.variation * self.discrepancy

    @property
    def statistical(self) -> float:
        """The statistical part: stability + deviation."""
        return self.stability + self.deviation

    @property
    def total(self) -> float:
        """The bound on R(h) − R̂(h): the sum of all terms."""
        return self.statistical + self.quadrature + self.optimisation

    @property
    def risk(self) -> float | None:
        """The bound on R(h): R̂(h) + total, if the model is known."""
        return None if self.empirical_risk is None else self.empirical_risk + self.total

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no smaller than the bound on the risk of h = 0."""
        return (self.total if self.risk is None else self.risk) >= self.zero_risk


def assemble(
    loss: Stability,
    *,
    n: int,
    m: int,
    alpha: float,
    kappa: float,
    slope: float,
    noncrossing: float,
    delta: float,
    discrepancy: float,
    norm: float | None = None,
    **known: Any,
) -> Bound:
    """Evaluate the formulas of the package; ``norm`` is ‖h‖ if known, which only the quadrature term may use."""
    pull = loss.slope * kappa + noncrossing * slope
    radius = min(math.sqrt(2.0 * loss.zero / alpha), pull / alpha)
    beta = loss.slope * kappa * pull / (alpha * n)
    xi = loss.slope * (loss.reach + kappa * radius)
    size = radius if norm is None else norm
    variation = loss.value_rate * (loss.reach + kappa * size) + loss.slope_rate * slope * size
    return Bound(
        n=n,
        m=m,
        delta=delta,
        beta=beta,
        xi=xi,
        variation=variation,
        discrepancy=discrepancy,
        deviation=(4.0 * n * beta + xi) * math.sqrt(math.log(1.0 / delta) / (2.0 * n)),
        zero_risk=loss.zero,
        **known,
    )


def quantile_bound(
    n: int,
    m: int,
    alpha: float,
    *,
    y_bound: float,
    kappa_x: float = 1.0,
    kappa_theta: float = 1.0,
    slope_theta: float = 1.0,
    noncrossing: float = 0.0,
    delta: float = 0.05,
    discrepancy: float | None = None,
    form: str = "proved",
) -> Bound:
    """Bound R − R̂ ≤ 2β + (4nβ + ξ)√(log(1/δ)/(2n)) + V·D_m for quantiles of levels uniform on (0, 1).

    Parameters
    ----------
    n, m : int
        The numbers of samples and nodes.
    alpha : float
        λ of (λ/2)‖h‖².
    y_bound : float
        B ≥ |y|.
    kappa_x, kappa_theta : float
        κ_X² ≥ k_X(x, x) and κ_Θ² ≥ k_Θ(θ, θ): 1 for Gaussian kernels.
    slope_theta : float
        κ'_Θ² ≥ ∂₁∂₂k_Θ(θ, θ): √(2γ) for exp(−γ d²).
    noncrossing : float
        λ_nc.
    delta : float in (0, 1)
        The probability that the bound fails.
    discrepancy : float or None
        D_m; None: that of a low-discrepancy sequence, :func:`sequence_discrepancy`.
    form : {"proved", "printed"}
        "printed": the formulas exactly as in the paper, including its slips.

    Returns
    -------
    Bound

    Examples
    --------
    >>> [round(quantile_bound(n, 200, 0.1, y_bound=1.0).statistical, 2) for n in (100, 10_000)]
    [3.4, 0.33]
    """
    reach = number("y_bound", y_bound, low=0.0)

    def loss(d: float) -> Stability:
        # the means over the nodes differ from those over Θ by at most variation · discrepancy
        return Stability.of_levels(reach, 0.0, 1.0, slope=min(1.0, 0.75 + d), middle=min(1.0, 0.5 + d))

    given = (n, m, alpha, kappa_x, kappa_theta, slope_theta, noncrossing, delta, discrepancy)
    return _bound(form, loss, 2.0, reach, given)


def cost_sensitive_bound(
    n: int,
    m: int,
    alpha: float,
    *,
    kappa_x: float = 1.0,
    kappa_theta: float = 1.0,
    slope_theta: float = 1.0,
    delta: float = 0.05,
    discrepancy: float | None = None,
    form: str = "proved",
) -> Bound:
    """Bound R − R̂ ≤ 2β + (4nβ + ξ)√(log(1/δ)/(2n)) + V·D_m for costs uniform on (−1, 1) and the hinge loss.

    Parameters
    ----------
    n, m, alpha, kappa_x, kappa_theta, slope_theta, delta, discrepancy
        See :func:`quantile_bound`.
    form : {"proved", "printed"}
        "printed": as in the paper, which has no quadrature term here; that of quantiles with B = 1 is used.

    Returns
    -------
    Bound

    Examples
    --------
    >>> round(cost_sensitive_bound(10_000, 100, 1.0).statistical, 3)
    0.024
    """
    given = (n, m, alpha, kappa_x, kappa_theta, slope_theta, 0.0, delta, discrepancy)
    return _bound(form, lambda d: Stability.of_costs(-1.0, 1.0, slope=min(1.0, 0.5 + d)), 1.0, 1.0, given)


def _bound(form: str, loss: Callable[[float], Stability], sigma: float, reach: float, given: tuple[Any, ...]) -> Bound:
    """Check the parameters of :func:`quantile_bound` and return the bound in the requested form.

    ``loss`` returns the proved constants for a discrepancy; ``sigma`` and ``reach`` are the printed ones.
    """
    n, m, alpha, kappa_x, kappa_theta, slope_theta, noncrossing, delta, discrepancy = given
    n, m = count("n", n), count("m", m)
    alpha = number("alpha", alpha, low=0.0)
    kappa_x, kappa_theta = number("kappa_x", kappa_x, low=0.0), number("kappa_theta", kappa_theta, low=0.0)
    slope_theta = number("slope_theta", slope_theta, low=0.0, open_low=False)
    noncrossing = number("noncrossing", noncrossing, low=0.0, open_low=False)
    delta = fraction("delta", delta)
    known = None if discrepancy is None else number("discrepancy", discrepancy, low=0.0, open_low=False)
    kappa = kappa_x * kappa_theta
    if choice("form", form, ("proved", "printed")) == "proved":
        spread = sequence_discrepancy(m) if known is None else known
        sizes = {"alpha": alpha, "kappa": kappa, "slope": kappa_x * slope_theta, "noncrossing": noncrossing}
        return assemble(loss(spread), n=n, m=m, delta=delta, discrepancy=spread, **sizes)
    if noncrossing > 0.0:
        raise ValueError(
            f"noncrossing={noncrossing:g} was given with form='printed'; the paper bounds the problem without that "
            "penalty. Use form='proved', or noncrossing=0."
        )
    # the corollaries of the appendix, with its λ, which is half of ours
    lam = alpha / 2.0
    beta = sigma**2 * kappa**2 / (2.0 * lam * n)
    size = reach + kappa * math.sqrt(reach / lam)
    # |∂₁k_Θ(s, t)| ≤ κ'_Θ κ_Θ, the C of the paper
    variation = size + 2.0 * kappa_x * math.sqrt(2.0 * reach * (slope_theta * kappa_theta) / lam)
    spread = math.log(m) / m if known is None else known
    return Bound(
        n=n,
        m=m,
        delta=delta,
        beta=beta,
        xi=sigma * size,
        variation=variation,
        discrepancy=spread,
        deviation=(4.0 * beta + sigma * size) * math.sqrt(math.log(1.0 / delta) / n),
        zero_risk=reach,
        notes=("These are the printed formulas; the deviation lacks a factor n that its theorem has.",),
    )


# ------------------------------------------------------------------------------------------------- discrepancy
def star_discrepancy(u: HostArray, weights: HostArray) -> float:
    """Compute D_m = sup_t |Σ_j w_j 1[u_j ≤ t] − t_1 ⋯ t_d|, the largest error of the nodes on a box [0, t].

    For every f of bounded variation in the sense of Hardy and Krause, |∫f − Σ_j w_j f(u_j)| ≤ V(f)·D_m (Koksma in one
    dimension, Hlawka in several; for weights by the same integration by parts).

    The coordinates of the nodes cut the cube into cells [a, b) in which the mass W of the boxes [0, t] is constant, so
    D_m is the largest W − Π a_k or Π b_k − W. There are about m^d cells. If that is more than ``MOST_CELLS``, each axis
    keeps only some of its cuts, and the result is an upper bound: W then lies between the masses of [0, a] and [0, b).
    It exceeds D_m by at most the largest step between two cuts of an axis, summed over the axes.

    Parameters
    ----------
    u : ndarray (m,) or (m, d)
        Points in the unit cube.
    weights : ndarray (m,)
        Weights that sum to one; an upper bound needs nonnegative ones.

    Examples
    --------
    >>> star_discrepancy(np.array([0.125, 0.375, 0.625, 0.875]), np.full(4, 0.25))
    0.125
    >>> star_discrepancy(np.array([[0.25, 0.5], [0.75, 0.5]]), np.full(2, 0.5))
    0.625
    """
    u = u[:, None] if u.ndim == 1 else u
    dim = u.shape[1]
    if dim == 1:
        line = np.unique(np.append(u, [0.0, 1.0]))
        below = np.cumsum(np.bincount(np.searchsorted(line, u[:, 0]), weights, len(line)))
        return float(max(np.max(below - line), np.max(np.append(line[1:], 1.0) - below)))
    most = max(2, int(MOST_CELLS ** (1.0 / dim)))
    cuts = [_thinned(np.unique(np.append(column, [0.0, 1.0])), most) for column in u.T]
    # the first cell of each axis whose [0, a] contains the node, and the first whose [0, b) does
    pairs = list(zip(cuts, u.T, strict=True))
    inside = np.stack([np.searchsorted(cut, column) for cut, column in pairs], axis=1)
    within = np.stack([np.searchsorted(cut, column, "right") - 1 for cut, column in pairs], axis=1)
    first, *others = cuts
    small = _volumes(others)
    large = _volumes([np.append(cut[1:], 1.0) for cut in others])
    least = greatest = np.zeros(small.shape)
    sums = [(least, inside, _by_cell(inside[:, 0], len(first)))]
    if np.any(inside != within):  # some cuts were left out
        greatest = np.zeros(small.shape)
        sums.append((greatest, within, _by_cell(within[:, 0], len(first))))
    worst = 0.0
    for k, (low, high) in enumerate(zip(first, np.append(first[1:], 1.0), strict=True)):
        for mass, places, nodes in sums:
            for j in nodes[k]:
                mass[tuple(slice(place, None) for place in places[j, 1:])] += weights[j]
        worst = max(worst, float(np.max(greatest - low * small)), float(np.max(high * large - least)))
    return worst


def _by_cell(places: HostArray, cells: int) -> list[HostArray]:
    """Return the nodes in each cell of an axis, given the cell of each node."""
    order = np.argsort(places, kind="stable")
    return np.split(order, np.searchsorted(places[order], np.arange(1, cells)))


def _thinned(values: HostArray, most: int) -> HostArray:
    """Return ``most`` of the ascending values, evenly by rank and with both ends, or all if there are no more."""
    if len(values) <= most:
        return values
    return np.asarray(values[np.linspace(0, len(values) - 1, most).round().astype(int)])


def _volumes(axes: list[HostArray]) -> HostArray:
    """Return the products of one coordinate from each axis: an array with one dimension for each axis."""
    return np.asarray(reduce(np.multiply.outer, axes, np.asarray(1.0)))


def sequence_discrepancy(m: int) -> float:
    """Return log(m)/(3m log 2) + 1/m, a bound on the discrepancy of m points of van der Corput's sequence.

    Parameters
    ----------
    m : int

    Examples
    --------
    >>> round(sequence_discrepancy(100), 4)
    0.0321
    """
    return math.log(m) / (3.0 * m * math.log(2.0)) + 1.0 / m


def propose_nodes(n: int, *, statistical: float | None = None, variation: float = 1.0, dim: int = 1) -> int:
    """Return the number of nodes m at which the quadrature term is at most the statistical term: more are no use.

    In one dimension this is the smallest m with V·(log(m)/(3m log 2) + 1/m) ≤ the statistical term. Without further
    arguments it is the trade-off of the paper, log(m)/m ~ 1/√n, so m grows like √n log n. Pass the terms of a
    :class:`Bound` to use its constants. If λ is small, these propose few nodes, because the statistical term is then
    large and the quadrature hardly affects the bound. In several dimensions m is the smallest power of two for which
    V·D_m is small enough, where D_m is computed for the nodes of ``Sobol(scramble=False)``.

    Parameters
    ----------
    n : int
        The number of samples.
    statistical : float or None
        The statistical term; None: 1/√n.
    variation : float
        V; in several dimensions that of Hardy and Krause, see :mod:`infinitask.bounds`.
    dim : int
        The dimension of Θ, at most 4. Discrepancies are computed exactly for at most 32 768 nodes in two dimensions,
        1 024 in three and 128 in four, so the default statistical term needs n ≤ 17 570 in three and n ≤ 273 in four.

    Returns
    -------
    int

    Examples
    --------
    >>> [propose_nodes(n) for n in (100, 1_000, 10_000)]
    [26, 102, 387]
    >>> [propose_nodes(1_000, dim=dim) for dim in (1, 2, 3)]
    [102, 128, 256]
    >>> from infinitask.bounds import quantile_bound
    >>> bound = quantile_bound(1_000, 100, 1.0, y_bound=1.0)
    >>> propose_nodes(bound.n, statistical=bound.statistical, variation=bound.variation)
    45
    """
    n, dim = count("n", n), count("dim", dim)
    if dim > 4:
        raise ValueError(f"dim={dim} was given; discrepancies are computed exactly in at most 4 dimensions.")
    target = 1.0 / math.sqrt(n) if statistical is None else number("statistical", statistical, low=0.0)
    target /= number("variation", variation, low=0.0)
    if dim == 1:
        # the discrepancy decreases in m, so the sufficient m come last
        return bisect_left(range(sys.maxsize), True, lo=1, key=lambda m: sequence_discrepancy(m) <= target)
    cube = ProductMeasure([Uniform(0.0, 1.0)] * dim)
    most = int(MOST_CELLS ** (1.0 / dim))  # up to which the discrepancy is exact
    for m in (1 << k for k in range(most.bit_length())):
        nodes = Sobol(scramble=False)(cube, m)
        if star_discrepancy(nodes.nodes, nodes.weights) <= target:
            return m
    raise ValueError(
        f"n={n} and dim={dim} were given; the discrepancy must be at most {target:.3g}, and {m} nodes, the largest "
        f"power of two for which it is computed in {dim} dimensions, do not reach that. Give a larger `statistical` or "
        "a smaller `variation`."
    )
