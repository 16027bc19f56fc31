"""From a recipe and data to an objective, and from its solution to a field.

Here the choices of φ, ψ, loss and penalty meet. :func:`pose` makes nodes, task features, input features, the bias and
the terms of the objective, one function each; nothing here knows scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from infinitask._array import Array, HostArray, as_like, namespace, place, to_host
from infinitask._validation import check_parameters, number
from infinitask.features import (
    Features,
    TaskFeatures,
    feature_recipe,
    node_values,
    task_features,
)
from infinitask.field import Field
from infinitask.kernels import Gaussian, MaternTask, PiecewiseLinear, TaskKernel, input_kernel, task_kernel
from infinitask.losses import Finding, LevelSet, Loss
from infinitask.losses._observed import Observed
from infinitask.measures import Measure, Quadrature, quadrature_rule
from infinitask.objective import BLOCK_ENTRIES, Integral, Objective
from infinitask.penalties import Penalty, Ridge, noncrossing_penalty
from infinitask.units import Units

__all__ = ["Data", "Problem", "Recipe", "in_units", "pose", "tolerance", "with_named"]

DEVICE_ENTRIES = 16_000_000
"""Rows × nodes of a batch on a device: 128 MB per temporary. Its cost is the number of kernels started, not the
cache."""

MAX_COPIES = 1e6
"""Whole weights up to this stand for repeated rows."""

FEWEST_ROWS_OF_COPIES, MANY_VALUES = 20, 0.5
"""Equal rows are copies of one observation where there are at least this many different rows, and an input has this
many values for each of them: such rows are not equal by chance."""

WEIGHT_ROUNDING = 1e-6
"""Weights may miss a sum of one by this much."""

TASK_TOLERANCE = 1e-14
"""Tasks are few: ψ is always as exact as rounding allows."""

ALL_BUT_FREE, ALL_BUT_FREE_AT_NODES = 1e-8, 1e-10
"""λ_b of a bias that is to be free, for targets of size one: of a function of θ, and of a number for each task.

The first costs about 1e-4 of the objective, and new targets lie below the outer quantiles as often as they should (with
1e-4, 6% of them lay below the quantile of 1%). Without any ridge the same fits take 3 to 15 times as long (n = 300 and
1000), and a penalty on the derivative would be undone by functions that vanish at the nodes. The second costs 1e-8."""


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of a fit; :meth:`canonical` puts them in an order that does not depend on how they were given.

    Parameters
    ----------
    X : ndarray (n, d)
        Inputs, or rows of the Gram matrix.
    y : ndarray (n,), or (n, m) for a target of its own at every node, or None
    weight : ndarray (n,)
        Not negative, summing to one.
    copies : ndarray (n,) or None
        How many observations each of them stands for; None: one. What leaves out a row leaves out one of these.
    share : ndarray (n, m) or None
        How much each of the targets (n, m) counts, beside the weights of rows and nodes; where it is 0 there is no
        target, and the number that stands there does not matter. None: 1 everywhere.
    """

    X: HostArray
    y: HostArray | None
    weight: HostArray
    copies: HostArray | None = None
    share: HostArray | None = None

    @property
    def multiplicity(self) -> HostArray:
        """``copies`` as numbers, (n,)."""
        return np.ones(self.weight.size) if self.copies is None else self.copies

    def __post_init__(self) -> None:
        if abs(float(np.sum(self.weight)) - 1.0) > WEIGHT_ROUNDING:
            raise ValueError(
                f"Data were given weights that sum to {float(np.sum(self.weight)):g}; they must sum to one. "
                "Data.canonical(X, y, weight) divides by the sum."
            )

    @property
    def pair_weight(self) -> HostArray:
        """How much each target counts, (n, 1), or (n, m) where every pair has a share; it need not sum to one."""
        weight = self.weight[:, None]
        return weight if self.share is None else weight * self.share

    @classmethod
    def canonical(
        cls, X: Any, y: Any = None, weight: Any = None, *, gram: bool = False, share: HostArray | None = None
    ) -> Data:
        """Drop rows of weight 0, merge equal rows, sort; without weights all rows count the same.

        A row that occurs twice and a row of weight two pose the same problem, and so do two orders of the rows. Here
        they become the same numbers as well, so that the fit is the same to the last bit. Rows of a Gram matrix stay as
        they are.
        """
        X, y = np.asarray(X, dtype=np.float64), None if y is None else np.asarray(y, dtype=np.float64)
        weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
        kept = weight > 0.0
        if X.ndim != 2 or kept.shape != X.shape[:1] or (y is not None and y.shape[:1] != kept.shape) or not kept.any():
            raise ValueError(
                f"Data of shapes {X.shape}, {None if y is None else y.shape} and {weight.shape} were given; expected X "
                "(n, d), y (n,) or (n, m) or None, and weights (n,), at least one of them above 0."
            )
        # a weight that is a whole number stands for as many rows, and so must the same rows written out
        whole = bool(np.all(weight == np.round(weight)) and np.max(weight) <= MAX_COPIES)
        copies = np.where(kept, weight if whole else 1.0, 0.0)
        if not np.all(kept):
            X, weight, copies = X[kept], weight[kept], copies[kept]
            y, share = (None if part is None else part[kept] for part in (y, share))
            if gram:
                X = X[:, kept]
        if not gram:
            table = np.column_stack([part for part in (X, y, share) if part is not None])
            # the weight decides last, so that sums of weights do not depend on the order either
            order = np.lexsort((weight, *table.T[::-1]))
            table = table[order]
            fresh = np.ones(order.size, dtype=bool)
            fresh[1:] = np.any(table[1:] != table[:-1], axis=1)
            first = order[fresh]
            place = np.cumsum(fresh) - 1
            weight, copies = (np.bincount(place, weights=each[order]) for each in (weight, copies))
            X, y, share = (None if part is None else part[first] for part in (X, y, share))
        weight = weight / np.max(weight)  # so that the sum cannot overflow
        return cls(X, y, weight / np.sum(weight), copies if gram else _observations(X, y is not None, copies), share)


def _observations(X: HostArray, targets: bool, copies: HostArray) -> HostArray:
    """How many observations rows in order stand for that occur as often as ``copies`` says.

    A cell of a table of categories holds many, and one that is left out leaves the others. Copies of one row of numbers
    are one: if one were left out, the others would tell its target, and rows written twice would be interpolated. To
    repeat all rows, or double all weights, changes nothing.
    """
    copies = copies / max(int(np.gcd.reduce(copies.astype(np.int64))), 1)
    if np.all(copies == 1.0) or len(X) < FEWEST_ROWS_OF_COPIES or X.shape[1] == 0:
        return copies
    if max(np.unique(column).size for column in X.T) < MANY_VALUES * len(X):
        return copies
    if targets and np.any(np.all(X[1:] == X[:-1], axis=1)):  # rows that differ in y alone are observations
        return copies
    return np.ones_like(copies)


@dataclass(frozen=True)
class Recipe:
    """What to learn, and how: all choices of a fit.

    Most names are those of the estimators' parameters; numbers are checked when a recipe is made, kernels, rules and
    features when they are used. What is read after a fit is read from its recipe, so a recipe is never changed:
    :func:`dataclasses.replace` makes another one.
    """

    loss: Loss
    measure: Measure
    penalty: Penalty
    kernel: Any = "rbf"
    gamma: Any = "median"
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    task_gaps: float | None = None
    """Where ``task_gamma`` is None: σ = (2γ)^(−1/2) in mean gaps between neighbouring nodes, at most the median
    distance of all nodes; None: σ is that median distance."""
    bias_kernel: Any = "task"
    alpha: Any = 1e-3
    """λ; "auto": chosen from the data, see :mod:`~infinitask.settle`."""
    alpha_bias: float | None = None
    """λ_b; None: as λ; 0: the bias is free."""
    bias_slope: float = 0.0
    """v of the term ∫ v b dμ that is linear in the bias: 1 for level sets, where b = −t."""
    noncrossing: float = 0.0
    noncrossing_loss: str = "hinge"
    """What λ_nc weighs: see :func:`~infinitask.penalties.noncrossing_penalty`; "smoothed" has the κ of the loss."""
    noncrossing_inputs: HostArray | None = None
    """Where order in θ is asked for, (k, d); None: at the training inputs."""
    hard: bool = False
    """Whether order in θ at the training inputs is a constraint; see :mod:`~infinitask.solvers.order`."""
    rearranged: bool = False
    """Whether predictions are put in order over θ; see :class:`~infinitask.predictive.Rearrangement`."""
    exact_fractions: bool | str = False
    """Whether a threshold is set last so that the fraction outside is θ, of the rows of the fit (True) or of new ones
    ("left-out"); see :mod:`~infinitask.threshold`."""
    chosen: bool = False
    """Whether λ was "auto"."""
    calibrated: bool = False
    """Whether decisions are set last so that they suit rows left out; see :mod:`~infinitask.threshold`."""
    units: Units | None = None
    """How targets are measured while a problem is solved; None: from the data."""
    quadrature: Any = "gauss-legendre"
    n_nodes: int = 50
    features: Any = "auto"
    rank: int | str | None = None
    """The most features; "auto": grown until the kernel gap is small, see :mod:`~infinitask.learn`."""
    certify: str | None = None
    """"kernel": whether the distance from the model of the kernel itself is bounded, see
    :mod:`~infinitask.approximation`."""
    solver: str = "auto"
    tol: float = 1e-4
    max_iter: int = 10_000
    device: str | None = None
    random_state: Any = None
    verbose: int = 0

    def __post_init__(self) -> None:
        check_parameters(vars(self), {"noncrossing": partial(number, low=0.0, open_low=False)})

    @property
    def offset(self) -> float:
        """What is taken off the targets before the fit, and added to the answers."""
        return 0.0 if self.units is None else self.units.centre

    @property
    def bias_is_free(self) -> bool:
        """Whether there is a bias that nothing but the data holds."""
        return self.bias_kernel is not None and self.alpha_bias == 0.0

    @property
    def orders(self) -> tuple[int, ...]:
        """The derivatives in θ that the objective looks at."""
        return (0, 1) if self.noncrossing > 0.0 or self.hard else (0,)

    @property
    def named_inputs(self) -> HostArray | None:
        """``noncrossing_inputs``, if the objective looks at them."""
        return self.noncrossing_inputs if len(self.orders) > 1 else None


@dataclass(frozen=True)
class Problem:
    """A posed problem: the objective, and how its unknowns become a field."""

    objective: Objective
    quadrature: Quadrature
    phi: Features
    psi: TaskFeatures
    psi_bias: TaskFeatures | None
    task_kernel: TaskKernel
    constant: float | None
    """Value of the constant feature by which a bias with the task kernel joins φ; None if it did not."""
    finding: Finding | None = None
    """What was found wrong with the loss; None: nothing."""
    named: int = 0
    """How many of the last rows are no data: inputs that were named for the penalty on crossing, see `_integrals`."""

    def field(self, z: HostArray) -> Field:
        """Unknowns → h."""
        r, s = self.objective.shape
        C, c = z[: r * s].reshape(r, s), z[r * s :]
        if self.constant is not None:
            return Field(self.phi.map, self.psi.map, C[1:], self.psi.map, self.constant * C[0])
        bias_map = None if self.psi_bias is None else self.psi_bias.map
        return Field(self.phi.map, self.psi.map, C, bias_map, None if bias_map is None else c)

    def only(self, rows: HostArray) -> Problem:
        """The same problem with some of its rows, and all inputs that were named; the feature maps stay the same."""
        n = int(self.objective.rows.shape[0])
        rows = np.concatenate([rows, np.arange(n - self.named, n)]) if self.named else rows
        gram = None if self.phi.gram is None else self.phi.gram[np.ix_(rows, rows)]
        phi = replace(self.phi, values=self.phi.values[rows], gram=gram)
        return replace(self, objective=self.objective.only(rows), phi=phi)

    def with_ridge(self, recipe: Recipe) -> Problem:
        """The same problem with the λ and λ_b of a recipe."""
        alpha_bias = recipe.alpha if recipe.alpha_bias is None else recipe.alpha_bias
        objective = self.objective.with_ridge(recipe.alpha, alpha_bias)
        constant = None if self.constant is None else float(np.sqrt(recipe.alpha / alpha_bias))
        if constant == self.constant:
            return replace(self, objective=objective)
        rows = self.objective.rows
        ones = as_like(np.full((rows.shape[0], 1), constant), rows)
        rows = namespace(rows).concat([ones, rows[:, 1:]], axis=1)
        return replace(self, objective=replace(objective, rows=rows), constant=constant)

    def values(self, z: HostArray, rows: Any) -> HostArray:
        """h at the nodes for some rows of the problem, (rows, m)."""
        objective, term = self.objective, self.objective.integrals[0]
        r, s = objective.shape
        phi = to_host(objective.rows[rows, :]).astype(np.float64)
        h = phi @ z[: r * s].reshape(r, s) @ to_host(term.cols).T
        return np.asarray(h if term.bias_cols is None else h + to_host(term.bias_cols) @ z[r * s :])


def in_units(recipe: Recipe) -> Recipe:
    """The same problem for targets in the units of the recipe."""
    units, degree = recipe.units, recipe.loss.degree
    if units is None or degree is None:
        return recipe
    ridge = units.spread ** (2 - degree)
    of_slopes = 2 if recipe.noncrossing_loss == "squared" else 1
    return replace(
        recipe,
        loss=recipe.loss.in_units(units.spread),
        alpha=ridge * recipe.alpha,
        alpha_bias=None if recipe.alpha_bias is None else ridge * recipe.alpha_bias,
        noncrossing=units.spread ** (of_slopes - degree) * recipe.noncrossing,
        units=None,
    )


def tolerance(recipe: Recipe, data: Data) -> float:
    """How exact φ must be, relative to the largest k(x, x) or to 1.

    Replacing k by φφᵀ changes the optimum by at most residual/(2λ), because the dual variables sum to at most about
    one: a hundredth of the tolerance does not show.
    """
    y, weight = data.y, data.weight
    if y is None:
        size = 1.0
    elif data.share is None:
        size = float(np.mean(weight @ np.abs(y - weight @ y)))
    else:
        pairs = data.pair_weight / np.sum(data.pair_weight)
        size = float(np.sum(pairs * np.abs(y - np.sum(pairs * y))))
    size = min(1.0, size or 1.0)
    return 1e-2 * recipe.tol * float(recipe.alpha) * size


def pose(
    recipe: Recipe,
    data: Data,
    rng: np.random.Generator,
    *,
    phi: Features | None = None,
    tol: float | None = None,
) -> Problem:
    """Choose nodes and features, and write down the objective.

    Parameters
    ----------
    recipe : Recipe
    data : Data
    rng : numpy.random.Generator
    phi : Features or None
        Features of these inputs that are exact enough; None: they are built.
    tol : float or None
        How exact they shall be; None: :func:`tolerance`.

    Returns
    -------
    Problem
    """
    quadrature = quadrature_rule(recipe.quadrature)(recipe.measure, recipe.n_nodes, rng)
    kernel, task_gamma = _task_kernel(recipe, quadrature.nodes)
    plain = task_features(kernel, quadrature.nodes, recipe.orders, TASK_TOLERANCE)
    psi = _in_penalty_coordinates(recipe, plain, kernel, quadrature)
    X = place(data.X, recipe.device)
    if phi is None:
        phi = _input_features(recipe, X, tolerance(recipe, data) if tol is None else tol, rng)
    rows, constant, psi_bias = _bias(recipe, phi.values, psi, plain, kernel, task_gamma, quadrature.nodes)
    integrals, finding = _integrals(recipe, rows, psi, psi_bias, quadrature, data)
    objective = Objective(
        rows,
        as_like(np.pad(data.weight, (0, rows.shape[0] - data.weight.size)), X),
        integrals,
        recipe.alpha,
        recipe.alpha if recipe.alpha_bias is None else recipe.alpha_bias,
        _linear_in_bias(recipe, psi_bias, quadrature),
        BLOCK_ENTRIES if recipe.device is None else DEVICE_ENTRIES,
    )
    named = int(rows.shape[0]) - data.weight.size
    return Problem(objective, quadrature, phi, psi, psi_bias, kernel, constant, finding, named)


def _task_kernel(recipe: Recipe, nodes: HostArray) -> tuple[TaskKernel, Any]:
    """k_Θ with its bandwidth as a number, or one for each coordinate, and the bandwidth given or derived."""
    gamma = recipe.task_gamma
    if gamma is None:  # several coordinates have a width each, which the kernel finds itself
        gamma = _node_gamma(nodes, recipe.task_gaps) if nodes.shape[1] == 1 else "median"
    return task_kernel(recipe.task_kernel, gamma).resolve(nodes), gamma


def _node_gamma(nodes: HostArray, gaps: float | None) -> float:
    """γ = 1/(2σ²) with σ from the distances between nodes; 1 where there is one node only."""
    distances = pdist(nodes)
    sigma = float(np.median(distances)) if distances.size else 0.0
    if gaps is not None and distances.size:
        sigma = min(sigma, gaps * float(np.max(distances)) / (len(nodes) - 1))
    return 0.5 / sigma**2 if sigma > 0.0 else 1.0


def _in_penalty_coordinates(
    recipe: Recipe, psi: TaskFeatures, kernel: TaskKernel, quadrature: Quadrature
) -> TaskFeatures:
    """ψ in coordinates in which the penalty is (λ/2)‖C‖²."""
    if isinstance(recipe.penalty, Ridge):  # isometric features have them from the start
        return psi
    if recipe.penalty.sees_nodes_only and len(recipe.orders) > 1:
        given = "'hard'" if recipe.hard else f"{recipe.noncrossing:g}"
        raise ValueError(
            f"noncrossing={given} was given with the integrated ridge; that ridge sees h at the "
            "nodes only, and functions that vanish there could undo the penalty at no cost. Use the plain ridge, or "
            "the sum of both."
        )
    if recipe.hard:
        raise ValueError(
            f"noncrossing='hard' was given with the penalty {recipe.penalty!r}; the proof of order needs the norm of "
            "the RKHS. Use the plain ridge, or a weight."
        )
    return recipe.penalty.basis(psi, kernel, quadrature)


def _input_features(recipe: Recipe, X: Array, exact: float, rng: np.random.Generator) -> Features:
    """φ of the inputs and, below them, of those that were named; a bandwidth that is a rule looks at the data only."""
    xp = namespace(X)
    k_input = input_kernel(recipe.kernel, recipe.gamma)
    if not k_input.precomputed:
        k_input = k_input.resolve(X)
    if recipe.named_inputs is not None:
        _check_named(recipe.named_inputs, int(X.shape[1]), k_input.precomputed)
    X = with_named(recipe, X)
    largest = float(xp.max(xp.linalg.diagonal(X) if k_input.precomputed else k_input.diag(X)))
    exact = min(1e-9, max(1e-15, exact / max(1.0, largest)))
    phi = feature_recipe(recipe.features, recipe.rank).build(k_input, X, exact, rng)
    # only level sets are solved with the Gram matrix itself
    return phi if isinstance(recipe.loss, LevelSet) else replace(phi, gram=None)


def with_named(recipe: Recipe, X: Array) -> Array:
    """The inputs, where they live, and below them those that were named: the inputs of all rows of a problem."""
    named = recipe.named_inputs
    return X if named is None else namespace(X).concat([X, as_like(named, X)], axis=0)


def _check_named(named: HostArray, d: int, precomputed: bool) -> None:
    if precomputed:
        raise ValueError(
            "noncrossing_inputs was given with kernel='precomputed'; k_X at these inputs is not known then. Use a "
            "kernel that is a function of inputs, or noncrossing_inputs=None."
        )
    if named.ndim != 2 or named.shape[1] != d:
        raise ValueError(
            f"noncrossing_inputs of shape {named.shape} was given for X with {d} features; it must be (k, {d})."
        )


def _bias(
    recipe: Recipe,
    rows: Array,
    psi: TaskFeatures,
    plain: TaskFeatures,
    kernel: TaskKernel,
    task_gamma: Any,
    nodes: HostArray,
) -> tuple[Array, float | None, TaskFeatures | None]:
    """How the bias b(θ) enters: through one more feature of x (rows and its value), or with a ψ_b of its own."""
    if recipe.bias_kernel is None:
        return rows, None, None
    as_task = isinstance(recipe.bias_kernel, str) and recipe.bias_kernel == "task"
    try:
        k_bias = kernel if as_task else task_kernel(recipe.bias_kernel, task_gamma).resolve(nodes)
    except ValueError as error:
        raise ValueError(f"bias_kernel={recipe.bias_kernel!r} was given. {error}") from None
    if recipe.bias_is_free:
        return rows, None, _free_bias(k_bias, nodes)
    if as_task and psi is plain and recipe.bias_slope == 0.0:
        # the same ψ for h and b: the bias is the coefficient of one more, constant, feature of x
        constant = 1.0 if recipe.alpha_bias is None else float(np.sqrt(recipe.alpha / recipe.alpha_bias))
        ones = as_like(np.full((rows.shape[0], 1), constant), rows)
        return namespace(rows).concat([ones, rows], axis=1), constant, None
    return rows, None, plain if as_task else task_features(k_bias, nodes, recipe.orders, TASK_TOLERANCE)


def _free_bias(kernel: TaskKernel, nodes: HostArray) -> TaskFeatures:
    """ψ_b of a bias without a ridge, where the objective sees its values at the nodes only.

    In the RKHS of a strictly positive definite kernel any values at the nodes are possible, and without a ridge they
    cost nothing: the bias is a number at every node, and linear between them, which is not what the kernel would have
    between them, but never overshoots. A kernel of few functions, such as a constant, keeps to these.
    """
    few = task_features(kernel, nodes, (0,), TASK_TOLERANCE)
    rich = isinstance(kernel, (Gaussian, MaternTask, PiecewiseLinear)) and nodes.shape[1] == 1
    return node_values(nodes) if rich else few


def _integrals(
    recipe: Recipe,
    rows: Array,
    psi: TaskFeatures,
    psi_bias: TaskFeatures | None,
    quadrature: Quadrature,
    data: Data,
) -> tuple[tuple[Integral, ...], Finding | None]:
    """The empirical risk and, where it has a weight, the penalty on crossing; and what was found wrong with the loss.

    Inputs that were named for the penalty are the last rows. The risk leaves them out by a weight of 0 (what stands
    there as a target does not matter), and the penalty is the mean over them alone.
    """
    nodes = quadrature.nodes
    named = 0 if recipe.named_inputs is None else len(recipe.named_inputs)
    n = int(rows.shape[0]) - named
    theta = as_like(nodes[:, 0] if nodes.shape[1] == 1 else nodes, rows)
    weights = as_like(quadrature.weights, rows)
    y = data.y
    targets = None if y is None else as_like(y if y.ndim == 2 else y[:, None], rows)
    recipe.loss.check_targets(targets)
    finding = _held(recipe, recipe.loss.check(theta, targets))
    loss = recipe.loss
    if data.share is not None and targets is not None:
        loss = Observed.of(recipe.loss, data.share)
        targets = Observed.targets(targets, as_like(data.share, rows))
    if named and targets is not None:
        first = namespace(rows).broadcast_to(targets[:1, ...], (named, *targets.shape[1:]))
        targets = namespace(rows).concat([targets, first], axis=0)

    def integral(loss: Loss, order: int, targets: Array | None, omega: Array | None = None) -> Integral:
        bias_cols = None if psi_bias is None else as_like(psi_bias.values[order], rows)
        return Integral(loss, theta, weights, as_like(psi.values[order], rows), bias_cols, targets, omega)

    risk = integral(loss, 0, targets)
    if recipe.noncrossing == 0.0:
        return (risk,), finding
    kappa = float(getattr(recipe.loss, "kappa", 0.0))
    falling = noncrossing_penalty(recipe.noncrossing_loss, recipe.noncrossing, kappa)
    omega = as_like(np.repeat([0.0, 1.0 / named], [n, named]), rows) if named else None
    return (risk, integral(falling, 1, None, omega)), finding


def _held(recipe: Recipe, finding: Finding | None) -> Finding | None:
    """What was found wrong with the loss; that it falls without end is an error unless a ridge holds the bias."""
    if finding is None or not finding.endless:
        return finding
    if recipe.bias_kernel is not None and recipe.alpha_bias is not None and recipe.alpha_bias <= ALL_BUT_FREE:
        raise ValueError(finding.sentence)
    return None


def _linear_in_bias(recipe: Recipe, psi_bias: TaskFeatures | None, quadrature: Quadrature) -> HostArray | None:
    """v of the term ⟨v, c⟩; None where there is none."""
    if recipe.bias_slope == 0.0 or psi_bias is None:
        return None
    return np.asarray(recipe.bias_slope * (psi_bias.values[0].T @ quadrature.weights))
