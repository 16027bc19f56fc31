"""Candidate kernels, ranked before any of them is fitted.

The ranking uses kernel ridge regression because its leave-one-out errors have a closed form for all ridges λ at once,
see :mod:`~infinitask.fitting._defaults`. It is applied to the normal scores of y, which limits the influence of
outliers, and to y itself with outliers clipped, because normal scores turn straight lines in y into curves. A kernel
that depends on targets (a scale for each feature, a learnt metric) also fits their noise. It must be created without
the rows on which it is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray, normal_scores
from infinitask._base.validation import naming
from infinitask.features import RandomFourier, feature_recipe
from infinitask.fitting._data import Data
from infinitask.fitting._defaults import MAX_SCALED_FEATURES, leave_one_out_of_each, relevance, some_features, spreads
from infinitask.fitting._metric_learning import learnt_metrics, with_learnt_kernels
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import (
    RBF,
    Additive,
    Chi2,
    InputKernel,
    Laplacian,
    LearntMetric,
    Linear,
    Matern,
    Metric,
    Ranks,
    Scaled,
    Sum,
    Warped,
    input_kernel,
)
from infinitask.tuning._defaults import (
    FEW_ROWS,
    FOLDS,
    LEARNING_ROWS,
    MAX_RANKING_ROWS,
    MAX_ROWS,
    MIN_ROWS_TO_LEARN,
    OUTLIER,
    RIDGES,
    ROWS_PER_FEATURE_TO_LEARN,
    SLIGHTLY_WORSE,
)

RANKS = "ranks: "
"""The prefix of the names of kernels on the ranks of the features."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A candidate kernel, and the function that creates it from data.

    Parameters
    ----------
    on : callable
        Positions of rows → the kernel determined by these rows alone.
    learns : bool
        Whether it depends on targets. If so, it must be created without the rows on which it is compared.
    """

    on: Callable[[HostArray], InputKernel]
    learns: bool = False

    @classmethod
    def fixed(cls, kernel: InputKernel) -> Kind:
        """A kernel that does not depend on the rows."""
        return cls(lambda rows: kernel)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A candidate kernel with its result in the ranking.

    Parameters
    ----------
    name : str
    kind : Kind
    error : float
        The smallest mean squared error on held-out rows.
    ridge : float
        The corresponding λ/n.
    own : bool
        Whether it competes with this λ alone.
    """

    name: str
    kind: Kind
    error: float
    ridge: float
    own: bool = False

    @property
    def family(self) -> str:
        """The name without the scale."""
        return self.name.rpartition(", ")[0]


@dataclass(frozen=True, eq=False)
class Learner:
    """Learn kernels from targets.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the fits that are compared.
    targets : ndarray (n,)
    """

    recipe: Recipe
    targets: HostArray

    def kernel(self, kernel: InputKernel, X: HostArray, rows: HostArray) -> InputKernel:
        """Return a given kernel adapted to some rows of X."""
        recipe = replace(self.recipe, kernel=kernel, alpha="auto")
        return input_kernel(with_learnt_kernels(recipe, self._data(X, rows, MAX_ROWS)).kernel).resolve(X[rows])

    def metric(self, Z: HostArray, rows: HostArray, whole: bool) -> HostArray:
        """Learn a metric from some rows of features Z (n, d) in units of their spreads: R (d,), or (d, p) if whole."""
        # all rows are used for the final fit
        data = self._data(Z, rows, MAX_ROWS if rows.size == len(Z) else FEW_ROWS)
        spec = LearntMetric(Matern(nu=1.5) if whole else Laplacian(), diagonal=not whole, iterations=2)
        # a fixed λ avoids the choice of a width, which each candidate has itself
        *_, kernel = learnt_metrics(replace(self.recipe, alpha=1.0), data, spec)
        return np.asarray(kernel.root if whole else kernel.scales)

    def _data(self, X: HostArray, rows: HostArray, most: int) -> Data:
        """Return at most ``most`` of the rows."""
        some = rows[np.linspace(0, rows.size - 1, min(rows.size, most)).astype(int)]
        return Data(X[some], self.targets[some], np.full(some.size, 1.0 / some.size))


def given_kernels(kernels: Any, X: HostArray, no_matrix: str, *, robust: bool = False) -> dict[str, InputKernel] | None:
    """Return the kernels that a user listed, by their names; None for "auto".

    A kernel given by name scales each feature by its own spread, as in a single fit.

    Parameters
    ----------
    kernels : "auto" or sequence of kernels
    X : ndarray (n, d)
    no_matrix : str
        The reason why "precomputed" is not supported.
    robust : bool
        Whether to use robust spreads.
    """
    if isinstance(kernels, str) and kernels == "auto":
        return None
    if isinstance(kernels, str) or not isinstance(kernels, Iterable):
        raise ValueError(f"kernels={kernels!r} was given; it must be 'auto' or a list of kernels.")
    listed = list(kernels)
    with naming("kernels"):
        found = [input_kernel(kernel) for kernel in listed]
    if not found:
        raise ValueError("kernels=[] was given; give at least one kernel, or 'auto'.")
    if any(kernel.precomputed for kernel in found):
        raise ValueError(f"kernels holds 'precomputed'; {no_matrix}")
    distinct = np.unique(X, axis=0)  # a weight of two is equivalent to a repeated row
    for place, kernel in enumerate(found):
        if isinstance(listed[place], str) and not isinstance(kernel, Chi2):  # parts of a histogram have their own units
            found[place] = Scaled(kernel, spreads(distinct, robust=robust)).resolve(distinct)
    return {repr(name): kernel for name, kernel in zip(listed, found, strict=True)}


def only_stationary(recipe: Recipe) -> bool:
    """Whether the features of a recipe support only stationary kernels."""
    return isinstance(feature_recipe(recipe.features, recipe.rank), RandomFourier)


def candidates(X: HostArray, t: HostArray, learner: Learner | None = None) -> dict[str, Kind]:
    """Return kernels for features X and targets t, by name: linear, with one scale, with one scale per feature, and
    sums over the features.

    Features are scaled by their spreads, and also replaced by their ranks; constant features are ignored.

    Parameters
    ----------
    X : ndarray (n, d)
    t : ndarray (n,)
    learner : Learner or None
        Learns metrics; None: no kernel has a learnt metric.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> list(candidates(X, X[:, 0]))[:3]
    ['linear', 'Gaussian, 4', 'Gaussian, 2']
    """
    found = _by_values(X, t, learner)
    if any(np.unique(column).size > 2 for column in X.T):  # ranks of two values are equivalent to the values
        ranks = Ranks.of(X)
        Z = np.asarray(Warped(RBF(), ranks).warp(X))
        for name, kind in _by_values(Z, t, learner).items():
            found[RANKS + name] = Kind(partial(_on_ranks, kind, ranks), kind.learns)
    return found


def _on_ranks(kind: Kind, ranks: Any, rows: HostArray) -> InputKernel:
    return Warped(kind.on(rows), ranks)


def _by_values(X: HostArray, t: HostArray, learner: Learner | None) -> dict[str, Kind]:
    unit = np.asarray(spreads(X))
    some = _spread_out(t, MAX_RANKING_ROWS)
    Z, scales = X * unit, tuple(unit.tolist())
    varying = int(np.count_nonzero(unit))
    gamma, taxi = float(RBF().resolve(Z[some]).gamma), float(Laplacian().resolve(Z[some]).gamma)
    linear = Scaled(Linear(), tuple((unit / np.sqrt(max(1, varying))).tolist()))
    found = {"linear": Kind.fixed(linear)}
    # names contain the length scale relative to the median distance
    for length in (4, 2, 1, 0.5, 0.25):
        found[f"Gaussian, {length:g}"] = Kind.fixed(Scaled(RBF(gamma=gamma / length**2), scales))
    for length in (4, 2, 1, 0.5):
        found[f"Matérn 3/2, {length:g}"] = Kind.fixed(Scaled(Matern(gamma=gamma / length**2, nu=1.5), scales))
    for length in (9, 3, 1):
        found[f"Laplacian, {length:g}"] = Kind.fixed(Scaled(Laplacian(gamma=taxi / length), scales))
    if varying > 1:
        for length in (2, 1, 0.5):
            found[f"additive Gaussian, {length:g}"] = Kind.fixed(Scaled(Additive(RBF(gamma=0.5 / length**2)), scales))
        found |= _in_metrics(Z, t, unit, learner)
    return found


def _remembered(make: Callable[[HostArray], HostArray]) -> Callable[[HostArray], HostArray]:
    """Cache the results of a function."""
    known: dict[bytes, HostArray] = {}

    def remembered(rows: HostArray) -> HostArray:
        key = rows.tobytes()
        if key not in known:
            known[key] = make(rows)
        return known[key]

    return remembered


def _in_metrics(Z: HostArray, t: HostArray, unit: HostArray, learner: Learner | None) -> dict[str, Kind]:
    """Kernels with a scale for each feature by marginal likelihood, and kernels in a metric learnt from gradients."""
    varies = unit > 0.0

    def likely(rows: HostArray) -> HostArray:
        few = rows[_spread_out(t[rows], LEARNING_ROWS)]
        scales = np.zeros(unit.size)
        scales[varies] = relevance(Z[few][:, varies], t[few])
        return scales

    def kind(metric: Callable[[HostArray], HostArray], kernel: InputKernel, length: float = 1.0) -> Kind:
        def adapt(rows: HostArray) -> InputKernel:
            root = metric(rows)
            some = Z[rows[_spread_out(t[rows], MAX_RANKING_ROWS)]]
            resolved: Any = kernel.resolve(some * root if root.ndim == 1 else some @ root)
            power = 1.0 if isinstance(kernel, Laplacian) else 2.0
            longer = resolved.set_params(gamma=resolved.gamma / length**power)
            if root.ndim == 1:
                return Scaled(longer, tuple((root * unit).tolist()))
            return Metric(longer, unit[:, None] * root)

        return Kind(adapt, learns=True)

    found: dict[str, Kind] = {}
    if np.count_nonzero(varies) <= MAX_SCALED_FEATURES:
        scales = _remembered(likely)
        found["each input its own, Gaussian"] = kind(scales, RBF(gamma=0.5))
        found["each input its own, Matérn 3/2"] = kind(scales, Matern(gamma=0.5, nu=1.5))
    if learner is None or t.size < MIN_ROWS_TO_LEARN:
        return found
    diagonal = _remembered(lambda rows: learner.metric(Z, rows, False))
    whole = _remembered(lambda rows: learner.metric(Z, rows, True))
    found |= {f"learnt Laplacian, {length:g}": kind(diagonal, Laplacian(), length) for length in (2, 6)}
    found["half learnt Laplacian, 3"] = kind(lambda rows: np.sqrt(diagonal(rows)), Laplacian(), 3.0)
    found |= {f"learnt Gaussian, {length:g}": kind(diagonal, RBF(), length) for length in (1, 2)}
    found["learnt Matérn 3/2, 1"] = kind(diagonal, Matern(nu=1.5))
    if t.size >= ROWS_PER_FEATURE_TO_LEARN * np.count_nonzero(varies):
        found |= {f"learnt whole Gaussian, {length:g}": kind(whole, RBF(), length) for length in (1, 2)}
        found["learnt whole Matérn 3/2, 1"] = kind(whole, Matern(nu=1.5))
    return found


def _spread_out(t: HostArray, count: int) -> HostArray:
    """Return positions of ``count`` targets, evenly spaced in their order to include rare ones; all if fewer."""
    if t.size <= count:
        return np.arange(t.size)
    return np.sort(np.argsort(t, kind="stable")[np.linspace(0, t.size - 1, count).astype(int)])


def ranked(
    X: HostArray,
    y: HostArray,
    kernels: dict[str, InputKernel] | None = None,
    *,
    learner: Learner | None = None,
    stationary_only: bool = False,
    done: Callable[[float], None] = lambda fraction: None,
) -> list[Candidate]:
    """Return the candidates, or given kernels, sorted by their errors, the smallest first.

    Parameters
    ----------
    X : ndarray (n, d)
    y : ndarray (n,)
    kernels : dict or None
        Given kernels by their names.
    learner : Learner or None
        Creates kernels that learn from targets.
    stationary_only : bool
        Whether to consider only stationary candidates, which random Fourier features require.
    done : callable
        Called with the fraction of the work that is complete; it may raise an error to end it.
    """
    t = normal_scores(y)
    if kernels is None:
        kinds = candidates(X, t, learner)
    else:
        kinds = {
            name: Kind(partial(learner.kernel, kernel, X), learns=True)
            if learner is not None and kernel.needs_targets
            else Kind.fixed(kernel.resolve(X))
            for name, kernel in kernels.items()
        }
    if stationary_only:
        kinds = {name: kind for name, kind in kinds.items() if kind.on(np.arange(t.size)).stationary}
    goals, rows, found = np.column_stack([t, _near(y)]), ranking_rows(y), list[Candidate]()
    plain = {name: kind for name, kind in kinds.items() if not kind.learns}
    learning = {name: kind for name, kind in kinds.items() if kind.learns}
    for name, kind in plain.items():
        found.append(_evaluated(name, kind, X, goals, *rows))
        # kernels that learn take several times as long: their number is the work
        done(0.0 if learning else len(found) / len(plain))
    if kernels is None:
        learning = {name: kind for name, kind in learning.items() if _suits(name.startswith(RANKS), found)}
    for count, (name, kind) in enumerate(learning.items(), 1):
        found.append(_evaluated(name, kind, X, goals, *rows))
        done(count / len(learning))
    return sorted(found, key=lambda candidate: candidate.error)


def _suits(ranks: bool, plain: list[Candidate]) -> bool:
    """Whether kernels on the ranks of the features, or on their values, are about as good as the others."""
    errors = [candidate.error for candidate in plain if candidate.name.startswith(RANKS) == ranks]
    return bool(errors) and min(errors) <= SLIGHTLY_WORSE * min(candidate.error for candidate in plain)


def ranking_rows(y: HostArray) -> tuple[HostArray, HostArray]:
    """Return positions of the rows that rank kernels, evenly spaced in the order of y, and of the other rows."""
    rows = _spread_out(y, min(MAX_RANKING_ROWS, y.size if y.size < LEARNING_ROWS else y.size // 2))
    return rows, np.setdiff1d(np.arange(y.size), rows)


def _near(y: HostArray) -> HostArray:
    """y in units of its spread, with outliers clipped, with mean 0 and standard deviation 1."""
    middle = np.median(y)
    spread = float(np.median(np.abs(y - middle))) or float(np.mean(np.abs(y - middle))) or 1.0
    near = np.clip((y - middle) / spread, -OUTLIER, OUTLIER)
    return np.asarray((near - np.mean(near)) / (np.std(near) or 1.0))


def _evaluated(name: str, kind: Kind, X: HostArray, goals: HostArray, rows: HostArray, rest: HostArray) -> Candidate:
    """Evaluate a kernel by its errors on some held-out rows; ``rest`` are the others."""
    if not kind.learns or rest.size >= rows.size or rows.size < 2 * FOLDS:
        kernel = kind.on(rest if rest.size >= rows.size else rows)
        equal, phi = np.full(rows.size, 1.0 / rows.size), some_features(kernel, X[rows])
        tables = np.array([each.mean(axis=1) for each in leave_one_out_of_each(phi, goals[rows], equal, RIDGES)])
    else:
        tables = np.zeros((goals.shape[1], RIDGES.size))
        for k in range(FOLDS):  # the order of the rows is irrelevant: every fifth one is held out
            test, train = rows[k::FOLDS], np.delete(rows, np.s_[k::FOLDS])
            kernel = kind.on(train)
            e, U = np.linalg.eigh(kernel(X[train], X[train]) + 1.0)
            along, across = U.T @ goals[train], (kernel(X[test], X[train]) + 1.0) @ U
            for i, ridge in enumerate(RIDGES):
                predicted = across @ (along / (np.maximum(e, 0.0) + ridge * train.size)[:, None])
                tables[:, i] += np.sum((goals[test] - predicted) ** 2, axis=0) / rows.size
    # ratios of errors have the same weight for both targets
    error = float(np.exp(np.mean(np.log(np.maximum(np.min(tables, axis=1), 1e-12)))))
    ridge = float(np.exp(np.mean(np.log(RIDGES[np.argmin(tables, axis=1)]))))
    return Candidate(name, kind, error, ridge)


def contenders(ranking: list[Candidate], singles: int, joined: int) -> list[Candidate]:
    """Return the candidates for cross-validation: the first of the ranking, and sums of kernels.

    A function in the space of a sum is a sum of functions. With few rows, when the ranking is largely random, a sum is
    the safer choice.

    Parameters
    ----------
    ranking : list of Candidate
    singles : int
        The number of single kernels, at most two of a family.
    joined : int
        The number of kernels in a sum: one sum of the first of each family, and one of the first, the first smooth one
        and the first linear one; less than 2: no sums.
    """
    families: dict[str, list[Candidate]] = {}
    for candidate in ranking:
        families.setdefault(candidate.family, []).append(candidate)
    found = [c for c in ranking if c in families[c.family][:2]][:singles]
    lines = [c for c in ranking if c.name.endswith("linear")]
    found += [c for c in lines if c not in found and joined > 1]
    diverse = [family[0] for family in families.values()]
    first = diverse[0]
    # one kernel that learns from targets is enough: it is created again whenever a sum is compared
    learnt = [c for c in diverse if c.kind.learns][:1]
    diverse = [c for c in diverse if not c.kind.learns or c in learnt]
    smooth = [c for c in diverse if c is not first and "Gaussian" in c.name and "additive" not in c.name]
    straight = [c for c in lines if c is not first]
    sums, varied = {"sum of families": diverse[:joined]}, [first, *smooth[:1], *straight[:1]]
    if set(varied) != set(diverse[:joined]):
        sums["sum of rough, smooth and linear"] = varied
    for name, parts in sums.items():
        if len(parts) > 1 and joined > 1:
            ridge = len(parts) * float(np.median([part.ridge for part in parts]))
            found.append(Candidate(name, _sum([part.kind for part in parts]), float("nan"), ridge))
    return found


def _sum(kinds: list[Kind]) -> Kind:
    return Kind(lambda rows: reduce(Sum, (kind.on(rows) for kind in kinds)), any(kind.learns for kind in kinds))
