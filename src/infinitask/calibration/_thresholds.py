"""Thresholds that are set last, so that they hold for new rows.

* Level sets: the fraction of rows outside is the one asked for, of the rows of the fit (:meth:`Shift.of`), or of rows
  as seen by a fit without them (:meth:`Shift.left_out`). A new row is more often outside than a row of the fit, and
  the second shift allows for that.
* Decisions: they change sides where the probability of the positive class does what the trade-off asks for
  (:meth:`Shift.of_classes`). A ridge holds h(x)(θ) near the decision that suits most rows; with rare classes it may
  never flip although it knows which rows are more likely positive.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.special import logit

from infinitask._base.arrays import Array, HostArray, as_like, one_blas_thread, to_host
from infinitask._base.events import Stage, tell
from infinitask.calibration._log_odds import Scale, logistic_lines
from infinitask.field import Field
from infinitask.fitting._recipe import Recipe
from infinitask.measures import Measure
from infinitask.objective import Smoothing
from infinitask.problem import Problem
from infinitask.solvers import Eigenbasis, Solution, Start, solve

THRESHOLD_LEVELS = 513
"""Evenly spread levels at which the threshold is set, besides the nodes. Equal rows leave the set together, and the
level at which they do is known up to the distance of two levels: on Spambase (35 equal rows of 2300, 1.5%) the fraction
strays by 0.008 with 513 levels, as it must by 35/2300/2, and by 0.015 with 257."""

ENTRIES_AT_A_TIME = 1_000_000
"""Rows × levels that are held in memory."""

FOLDS = 10
"""Each row is left out of one of this many fits. With five, fits are too unlike the one with all rows: on mixtures of
1000 rows ν = 0.05 leaves out 0.03 to 0.045 of new rows, with ten 0.05. Together they take once (n = 1000) to three
times (n = 100) as long as the fit."""

ROWS_FOR_ONE_FOLD = 10_000
"""From this many rows on, a single fit leaves out a tenth of them: 1000 values are enough for a threshold."""

FOLDS_OF_PAIRS = 4
"""With at most this many rows decisions stay as they were fitted."""

SMALLEST_SHARE = 1e-12
"""Probabilities below this are not told from 0."""

FARTHEST_FLIP = 10.0
"""A decision that does not flip is put beyond the largest |h| by this factor."""

LOOSE, LOOSE_FRACTIONS = 1e-2, 1e-3
"""The duality gap of these fits, of decisions and of level sets, if that of the fit itself is not larger. The ends of Θ
have little weight in the objective of level sets: with 1e-2 the fraction outside at ν = 0.05 is 0.08 (n = 400), with
1e-3 it is 0.05, for a third more time."""

TIE = 1e-10
"""Values closer than this part of the largest count as equal: their order is rounding."""


@final
@dataclass(frozen=True, eq=False)
class Shift:
    """A correction of the threshold t(θ), or of a decision, linear between levels.

    Parameters
    ----------
    levels : ndarray (k,)
        Ascending.
    values : ndarray (k,)
    """

    levels: HostArray
    values: HostArray

    def __call__(self, theta: HostArray) -> HostArray:
        """The shift at each θ: (q,)."""
        return np.interp(theta, self.levels, self.values)

    @classmethod
    def of(cls, problem: Problem, field: Field, measure: Measure) -> Shift:
        """The shift after which a fraction θ of the rows of the problem lies outside.

        Given h, the θ-quantile of h(x_i)(θ) minimises E (1/θ)(t − h)₊ − t, which is all that the objective says of t
        but for its ridge: as far as it sees the data, the shift makes the objective smaller.

        Parameters
        ----------
        problem : Problem
        field : Field
            Its solution.
        measure : Measure
            μ on the fractions.
        """
        levels = _levels(problem, field, measure)
        rows, omega = problem.objective.rows, to_host(problem.objective.sample_weight)
        h, psi = to_host(rows @ as_like(field.coef, rows)), field.psi(levels).T  # fewer functions than levels
        size = max(1, ENTRIES_AT_A_TIME // rows.shape[0])
        t = [halfway(h @ psi[:, k : k + size], omega, levels[k : k + size]) for k in range(0, levels.size, size)]
        return cls(levels, np.concatenate(t) + field.bias(levels))

    @classmethod
    def left_out(cls, problem: Problem, field: Field, solution: Solution, recipe: Recipe, copies: HostArray) -> Shift:
        """The shift after which a fraction θ of new rows is expected outside.

        The rows are split into folds, and h of each row is taken from a fit without its fold. The θ-quantile of these
        values, as conformal prediction has it, is the threshold; it never falls with θ. It is not above that which
        leaves out a fraction θ of the rows themselves: they are inside more often than new ones are. Where equal rows
        make h flat, fits differ more in their level than h does from row to row, and all rows were left out.

        Values of h, not of h − t: with a narrow kernel t is of the order of 1/n, and larger in a fit with fewer rows,
        while h at a new row is not. On a normal law in 8 dimensions (n = 300, θ = 0.05) quantiles of h − t leave out
        0.03, those of h 0.05.

        Parameters
        ----------
        problem : Problem
        field : Field
            Its solution.
        solution : Solution
            The same, where the fits of the folds start.
        recipe : Recipe
        copies : ndarray (n,)
            How many equal rows each row stands for.
        """
        if np.sum(copies) < 2:
            return cls.of(problem, field, recipe.measure)
        levels = _levels(problem, field, recipe.measure)
        without = _Without.of(problem, solution, recipe, copies)
        size = max(1, ENTRIES_AT_A_TIME // int(problem.objective.rows.shape[0]))
        t = np.empty(levels.size)
        for start in range(0, levels.size, size):
            part = slice(start, start + size)
            values = without.level_with(field, problem.objective.rows, levels[part])
            t[part] = left_out_quantile(values, without.omega, levels[part], without.count)
        own = cls.of(problem, field, recipe.measure)
        return cls(levels, np.minimum(np.maximum.accumulate(t) + field.bias(levels), own(levels)))

    @classmethod
    def of_classes(
        cls,
        problem: Problem,
        field: Field,
        solution: Solution,
        recipe: Recipe,
        copies: HostArray,
        *,
        left_out: bool = True,
    ) -> Shift:
        """The shift of decisions after which they flip where P(y = 1 | h(x)(θ)) = (1 − θ)/2.

        The probability is a logistic function of h(x)(θ) (Platt, 1999), or of its normal scores, fitted at every node
        to values that are left out; the likelihood decides between the two. Where classes are far apart h itself is
        better, where they overlap h is −1 for most rows, and its order tells more. The shift is added to h, not to a
        threshold.

        Parameters
        ----------
        problem, field, solution, recipe, copies
            As in :meth:`left_out`.
        left_out : bool
            False: the rows are a few of very many that were fitted, and are taken as they are.
        """
        if np.sum(copies) <= FOLDS_OF_PAIRS:  # a fit without a row could be one without a class
            return cls(np.array(recipe.measure.support).ravel(), np.zeros(2))
        levels, nodes = _levels(problem, field, recipe.measure), np.unique(problem.quadrature.nodes[:, 0])
        without = (
            _Without.of(problem, solution, recipe, copies) if left_out else _Without.nothing(problem, field, copies)
        )
        targets = problem.objective.integrals[0].targets
        assert targets is not None
        positive, h = to_host(targets)[without.rows, 0] > 0.0, without.decisions(nodes, field)
        share = np.clip(0.5 * (1.0 - levels), SMALLEST_SHARE, 1.0 - SMALLEST_SHARE)
        farthest = FARTHEST_FLIP * (1.0 + float(np.max(np.abs(h))))
        by_order = [False, True]
        scales = [Scale.of(h, without.omega, order) for order in by_order]
        lines = [logistic_lines(scale.scores, positive, without.omega, without.count) for scale in scales]
        ranked = int(np.argmin([np.sum(loss) for *_, loss in lines]))
        slope, intercept = (np.interp(levels, nodes, line) for line in lines[ranked][:2])
        rise = logit(share) - intercept
        # where h tells nothing of the class, the decision is that of the base rate
        score = np.divide(rise, slope, out=np.copysign(np.inf, rise), where=slope > 0.0)
        size = max(1, ENTRIES_AT_A_TIME // max(1, without.rows.size))
        flips = []
        for start in range(0, levels.size, size):
            part = slice(start, start + size)
            scale = Scale.of(without.decisions(levels[part], field), without.omega, by_order[ranked])
            flips.append(scale.values(score[part]))
        return cls(levels, -np.clip(np.concatenate(flips), -farthest, farthest))


@dataclass(frozen=True, eq=False)
class _Without:
    """Fits that leave out some rows each, and these rows.

    Parameters
    ----------
    rows : ndarray (k,) of int
        Positions of the rows that were left out; a row that stands for several may be here several times.
    fold : ndarray (k,) of int
        Which fit left them out.
    phi : array (k, r)
        Their features.
    omega : ndarray (k,)
        Their weights, summing to one.
    count : float
        How many rows they stand for.
    fields : list of Field
    """

    rows: HostArray
    fold: HostArray
    phi: Array
    omega: HostArray
    count: float
    fields: list[Field]

    @classmethod
    def of(cls, problem: Problem, solution: Solution, recipe: Recipe, copies: HostArray) -> _Without:
        """The fits without each fold of the rows, or without one fold where there are many rows."""
        shares = _fold_shares(copies)
        weight = to_host(problem.objective.sample_weight).astype(np.float64)
        used = shares.shape[1] if np.sum(copies) < ROWS_FOR_ONE_FOLD else 1
        with one_blas_thread():
            fields = _fields_without(problem, solution, weight, shares[:, :used], recipe)
        rows, fold = np.nonzero(shares[:, :used])
        phi = problem.objective.rows[rows] if problem.constant is None else problem.objective.rows[rows][:, 1:]
        omega = weight[rows] * shares[rows, fold]
        count = float(np.sum(copies[rows] * shares[rows, fold]))
        return cls(rows, fold, phi, omega / np.sum(omega), count, fields)

    @classmethod
    def nothing(cls, problem: Problem, field: Field, copies: HostArray) -> _Without:
        """All rows, with the fit of all of them."""
        omega = to_host(problem.objective.sample_weight).astype(np.float64)
        phi = problem.objective.rows if problem.constant is None else problem.objective.rows[:, 1:]
        rows = np.arange(omega.size)
        return cls(rows, np.zeros_like(rows), phi, omega, float(np.sum(copies)), [field])

    def values(self, levels: HostArray) -> HostArray:
        """h at the levels without the bias, (k, q)."""
        values = np.empty((self.rows.size, levels.size))
        for k, field in enumerate(self.fields):
            phi = self.phi[self.fold == k]
            values[self.fold == k] = to_host(phi @ as_like(field.coef @ field.psi(levels).T, phi))
        return values

    def level_with(self, field: Field, phi: Array, levels: HostArray) -> HostArray:
        """h at the levels without the bias, (k, q), with the level of each fit moved to that of the whole ``field``.

        With few inputs h is all but flat where the rows are, and fits differ more from each other than h does from row
        to row: quantiles over all of them would tell fits apart, not rows (200 rows of a normal law in one dimension,
        θ = 0.05, four draws: up to 0.92 of new rows lay outside, levelled at most 0.09). A fit is moved by the median
        difference at the rows that both have seen, but only where its own rows and those it left out have medians that
        differ by less: with a narrow kernel h is larger at rows that a fit has seen, which is no difference of level.

        Parameters
        ----------
        field : Field
            The fit of all rows.
        phi : array (n, r)
            Features of all rows.
        levels : ndarray (q,)
        """
        values = self.values(levels)
        whole = to_host(phi @ as_like(field.coef @ field.psi(levels).T, phi))
        for k, part in enumerate(self.fields):
            left = np.zeros(whole.shape[0], dtype=bool)
            left[self.rows[self.fold == k]] = True
            if np.all(left) or not np.any(left):
                continue
            h = to_host(phi @ as_like(part.coef @ part.psi(levels).T, phi))
            apart = np.median(h[~left] - whole[~left], axis=0)
            own = np.abs(np.median(h[~left], axis=0) - np.median(h[left], axis=0))
            values[self.fold == k] -= np.where(own < np.abs(apart), apart, 0.0)
        return values

    def decisions(self, levels: HostArray, field: Field) -> HostArray:
        """h at the levels, (k, q), each fit moved so that its mean over the rows is that of the whole ``field``.

        The level of h follows the few rows of a rare class that a fit has seen; under a heavy ridge it would differ
        more from fit to fit than h does from row to row.
        """
        middle = to_host(as_like(self.omega, self.phi) @ self.phi).astype(np.float64)
        means = np.stack([middle @ f.coef @ f.psi(levels).T for f in self.fields])
        whole = middle @ field.coef @ field.psi(levels).T + field.bias(levels)
        return np.asarray(self.values(levels) - means[self.fold] + whole)


def _levels(problem: Problem, field: Field, measure: Measure) -> HostArray:
    """The levels at which a threshold is set, (k,)."""
    levels = problem.quadrature.nodes[:, 0]
    if measure.atoms() is None and not field.knows_nodes_only:
        low, high = (float(np.ravel(end)[0]) for end in measure.support)
        levels = np.append(levels, np.linspace(low, high, THRESHOLD_LEVELS))
    return np.unique(levels)


def _fold_shares(copies: HostArray) -> HostArray:
    """The share of each row that each fold leaves out, (n, folds), by equal rows and not by cells of them.

    Rows that are neighbours in the order of the data are mostly in different folds. Always the same: a fit that draws
    nothing else must not depend on ``random_state``.
    """
    numbers = np.maximum(np.round(copies), 1.0).astype(np.intp)
    total = int(np.sum(numbers))
    rng, count = np.random.default_rng(0), min(FOLDS, total)
    folds = np.concatenate([rng.permutation(count) for _ in range(-(-total // count))])[:total]
    shares = np.zeros((numbers.size, count))
    np.add.at(shares, (np.repeat(np.arange(numbers.size), numbers), folds), 1.0)
    return shares / numbers[:, None]


def _fields_without(
    problem: Problem, solution: Solution, weight: HostArray, shares: HostArray, recipe: Recipe
) -> list[Field]:
    """The solutions without each of the folds."""
    whole = Eigenbasis.of(problem.objective)
    start = Start(solution.z, Smoothing(solution.smoothing.kappa))
    fields = []
    for k, left_out in enumerate(shares.T):
        tell(Stage(f"left-out fit {k + 1} of {shares.shape[1]}"))
        if recipe.verbose:
            print(f"thresholds: fit without fold {k + 1} of {shares.shape[1]}", file=sys.stderr, flush=True)
        rest = weight * (1.0 - left_out)
        kept = np.flatnonzero(rest > 0.0)
        lighter = replace(problem.objective, sample_weight=as_like(rest, problem.objective.sample_weight))
        part = replace(problem, objective=lighter).only(kept)
        found = solve(
            part.objective,
            solver=recipe.solver,
            tol=max(recipe.tol, LOOSE if recipe.calibrated else LOOSE_FRACTIONS),
            max_iter=recipe.max_iter,
            start=start,
            basis=Eigenbasis.of(part.objective, whole),
            gram=part.phi.gram,
        )
        fields.append(part.field(found.z))
    return fields


def left_out_quantile(values: HostArray, omega: HostArray, theta: HostArray, count: float | None = None) -> HostArray:
    """The value below which a new row lies with probability θ, for each column: (k,).

    Of n exchangeable values and a new one, all n + 1 ranks of the new one are equally likely: it is below the i-th
    smallest with probability i/(n + 1). Between order statistics the answer is linear, and beyond the first and the
    last one it continues by at most the distance to its neighbour.

    Parameters
    ----------
    values : ndarray (n, k)
    omega : ndarray (n,)
        Weights that sum to one.
    theta : ndarray (k,)
    count : float or None
        n, where rows stand for several; None: 1/Σω².

    Examples
    --------
    >>> import numpy as np
    >>> left_out_quantile(np.arange(1.0, 10.0)[:, None], np.full(9, 1 / 9), np.array([0.25]))
    array([2.5])
    """
    order = np.argsort(values, axis=0)
    values = np.take_along_axis(values, order, axis=0).astype(np.float64)
    count = 1.0 / float(np.sum(omega**2)) if count is None else count
    below = np.cumsum(omega[order], axis=0) * (count / (count + 1.0))
    first, last = 2.0 * values[0] - values[min(1, len(values) - 1)], 2.0 * values[-1] - values[max(-2, -len(values))]
    ends = np.zeros(theta.size), np.ones(theta.size)
    values, below = np.vstack([first, values, last]), np.vstack([ends[0], below, ends[1]])
    return np.array([np.interp(theta[j], below[:, j], values[:, j]) for j in range(theta.size)])


def halfway(h: HostArray, omega: HostArray, theta: HostArray) -> HostArray:
    """t_j, halfway between two neighbours among the h_ij, with Σ_i ω_i 1[h_ij < t_j] as near to θ_j as can be: (k,).

    Halfway, so that no row lies on the boundary and rounding decides nothing.

    Parameters
    ----------
    h : ndarray (n, k)
    omega : ndarray (n,)
        Weights that sum to one.
    theta : ndarray (k,)

    Examples
    --------
    >>> import numpy as np
    >>> halfway(np.array([[3.0], [1.0], [2.0], [5.0]]), np.full(4, 0.25), np.array([0.7]))
    array([4.])
    """
    order = np.argsort(h, axis=0)
    values = np.take_along_axis(h, order, axis=0).astype(np.float64)
    scale = np.max(np.abs(values), axis=0)
    beyond = 1e-3 * scale  # past the last row, any t would do
    values = np.vstack([values[0] - beyond, values, values[-1] + beyond])
    below = np.vstack([np.zeros(theta.size), np.cumsum(omega[order], axis=0)])
    stray = np.where(np.diff(values, axis=0) > TIE * scale, np.abs(below - theta), np.inf)
    place, column = np.argmin(stray, axis=0), np.arange(theta.size)
    return np.asarray(0.5 * (values[place, column] + values[place + 1, column]))
