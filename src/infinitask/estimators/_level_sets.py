"""Level sets for every fraction: what a one-class estimator is asked for, however many fractions it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from infinitask._array import HostArray
from infinitask.estimators._thresholds import Shift
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.estimators.problem import Problem, Recipe
from infinitask.losses import LevelSet, Loss
from infinitask.metrics import mass_volume_area, mass_volume_curve
from infinitask.predictive import Rearrangement, sign_change

__all__ = ["LevelSets"]

SCORE_LEVELS = 257
"""Levels at which ``score_samples`` looks for the sign change before it interpolates, and at which ``nested`` sorts."""

ENTRIES = 1_000_000
"""Rows × levels that are held at a time."""

NEAR, MANY = 1e-4, 100
"""A row is on a boundary where |h − t| is below this part of t; from so many rows on that is worth a remark."""

TASK_GAPS = 5.0
"""The default bandwidth over θ, in mean gaps between nodes. Measured on mixtures with n = 1000: at 5 the fraction left
out is within 0.009 of θ everywhere, with the median distance it strays by 0.018; below 3 h oscillates between the
nodes."""


class LevelSets(OutlierMixin, BaseInfiniteTask):
    """An outlier detector whose tasks are fractions left out; its constructor names the ``nu`` of ``predict``."""

    nu: float | None
    nested: bool
    exact_fractions: bool
    _free_alpha = True

    def _loss(self) -> Loss:
        return LevelSet()

    def _check_measure(self, measure: Any, loss: Loss) -> None:
        low, high = (float(np.ravel(end)[0]) for end in measure.support)
        if measure.dim != 1 or not (low > 0.0 and high <= 1.0):
            raise ValueError(
                f"measure={measure!r} lives on [{low:g}, {high:g}]; the fraction left out must lie in (0, 1], away "
                "from 0. Use for instance Uniform(0.01, 1)."
            )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the level sets.

        Parameters
        ----------
        X : array (n, d)
        y : ignored
        sample_weight : array (n,) or None
        """
        recipe = self._recipe()
        for name in ("nested", "exact_fractions"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"{name}={getattr(self, name)!r} was given; it must be True or False.")
        if recipe.bias_kernel is None:
            raise ValueError(
                "bias_kernel=None was given; the threshold t(θ) needs a kernel: use 'task' or a task kernel."
            )
        if not self._check_default("nu", recipe):
            raise ValueError(f"nu={self.nu!r} was given; it must be one number. Ask predict for several fractions.")
        X, _, weight = self._validated(X, None, sample_weight)
        return self._fit(self._posed(recipe), X, None, weight)

    def _look_at(self, recipe: Recipe, problem: Problem, z: HostArray) -> None:
        values = self._some_values(problem, z)
        level = abs(float(problem.objective.linear @ z))  # the mean of t
        share = np.mean(np.abs(values) <= NEAR * level, axis=0)
        if values.shape[0] >= MANY and np.max(share) > 0.5:
            self._remark(
                f"at ν = {problem.quadrature.nodes[np.argmax(share), 0]:.2g}, {np.max(share):.0%} of the training rows "
                "lie on the boundary of the set itself, to the accuracy of the fit; their side, and so the fraction "
                "outside, is an accident, as in any one-class SVM whose kernel is too narrow for the data, or cannot "
                "enclose them. Try a smaller gamma, or another kernel."
            )

    def _posed(self, recipe: Recipe) -> Recipe:
        """h has weight 1, t = −b has weight λ, and −∫t dμ is linear in b."""
        return replace(recipe, alpha=1.0, alpha_bias=recipe.alpha, bias_slope=1.0, task_gaps=TASK_GAPS)

    def _write(self, recipe: Recipe, problem: Problem, field: Any, solution: Any) -> None:
        if self.exact_fractions:
            few = recipe.measure.atoms() is not None or any(
                features is not None and features.map.kernel.diagonal for features in (problem.psi, problem.psi_bias)
            )
            low, high = (float(np.ravel(end)[0]) for end in recipe.measure.support)
            self.shift_ = Shift.of(problem, field, None if few else (low, high))
        super()._write(recipe, problem, field, solution)

    def _shift(self, levels: HostArray) -> HostArray | float:
        """What is added to t at the levels."""
        return self.shift_(levels) if hasattr(self, "shift_") else 0.0

    @property
    def offset_(self) -> float:
        """What is subtracted from ``score_samples`` to get ``decision_function``."""
        check_is_fitted(self)
        return float(self._default_nu())

    def _default_nu(self) -> Any:
        """The fraction that is used when none is asked for."""
        return self.nu

    def decision_function(self, X: Any, nu: Any = None) -> HostArray:
        """Nonnegative inside the level set, negative outside: (n,) for one fraction, (n, q) for several.

        With ``nu`` given it is h(x)(ν) − t(ν), put in order over ν if ``nested``. Without, it follows scikit-learn's
        rule for outlier detectors and is ``score_samples(X) - nu`` for the constructor's ``nu``; the sign is the same.

        Parameters
        ----------
        X : array (n, d)
        nu : float, array (q,) or None
            Fractions left out.
        """
        if nu is None:
            return self.score_samples(X) - self.offset_
        if not self.nested:
            return self._values(X, nu, "nu") - self._shift(np.asarray(nu, dtype=np.float64))
        check_is_fitted(self)
        tasks, single = self._asked(nu, "nu")
        fractions = np.clip(tasks[:, 0], *self._ends())

        def signed(curves: Rearrangement) -> HostArray:
            values, inside = curves(fractions), fractions <= self._fall(curves)[:, None]
            # the sign is that of θ* − ν to the last bit, where interpolation may round to the other side of 0
            return np.where(inside, np.maximum(values, 0.0), np.minimum(values, np.nextafter(0.0, -1.0)))

        values = self._by_curve(X, signed)
        return np.asarray(values[:, 0] if single else values)

    def predict(self, X: Any, nu: Any = None) -> HostArray:
        """+1 inside, −1 outside: (n,) for one fraction, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        nu : float, array (q,) or None
            Fractions left out; None: the constructor's ``nu``.
        """
        return np.where(self.decision_function(X, nu) >= 0.0, 1, -1)

    def threshold(self, nu: Any = None) -> HostArray:
        """t(ν): the level of h at which the set ends.

        Parameters
        ----------
        nu : float, array (q,) or None
        """
        check_is_fitted(self)
        tasks, single = self._asked(self._default_nu() if nu is None else nu, "nu")
        t = self._shift(tasks[:, 0]) - self.field_.bias(tasks)
        return np.asarray(t[0] if single else t)

    def score_samples(self, X: Any) -> HostArray:
        """θ*(x): the fraction at which x leaves the set; small for outliers.

        It is a p-value for "x comes from the law of the data": P(θ*(X) ≤ α) ≈ α for a new X from that law and α in Θ,
        because the set of α leaves out a fraction α; to call x an outlier where θ*(x) ≤ α raises a false alarm about
        that often. On mixtures of two features the two sides differed by at most 0.06 with 200 samples and 0.045 with
        1000, the deviation of an empirical distribution function of so many. A kernel much narrower than the default
        learns the samples by heart, and new data then fall outside too often.

        Where h − t changes sign more than once (the sets are nested only as far as the data ask), the change next to
        ``nu`` counts, so that θ*(x) ≥ ν exactly where x is inside at the constructor's ν. With ``nested`` that holds
        for every ν.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        ndarray (n,)
            Between the ends of Θ. Just below the lower end for a point that is outside even there, if ``nu`` is that
            end or the sets are nested.

        Examples
        --------
        >>> from infinitask import InfiniteOneClassSVM
        >>> from infinitask.datasets import make_mixture
        >>> X = make_mixture(400, random_state=0)
        >>> p = InfiniteOneClassSVM(n_nodes=30).fit(X[:200]).score_samples(X[200:])
        >>> bool(abs((p <= 0.2).mean() - 0.2) < 0.08)
        True
        """
        check_is_fitted(self)
        if self.nested:
            return self._by_curve(X, self._fall)
        nu = float(self._asked(self._default_nu(), "nu")[0][0, 0])
        levels = np.unique(np.append(self._grid(), nu))
        return self._by_rows(X, levels, lambda values: _change_next_to(nu, levels, values))

    def mass_volume_curve(
        self, X: Any, *, n_samples: int = 10_000, random_state: Any = None
    ) -> tuple[HostArray, HostArray, HostArray]:
        """Mass P(θ*(X) ≥ t) and volume of {x: θ*(x) ≥ t}, see :func:`infinitask.metrics.mass_volume_curve`.

        Parameters
        ----------
        X : array (n, d)
            Data, best not those of the fit.
        n_samples : int
            Points of the Monte Carlo in the bounding box of X.
        random_state : int, RandomState or None

        Returns
        -------
        mass, volume, thresholds : ndarray (k,)

        Examples
        --------
        >>> from infinitask import InfiniteOneClassSVM
        >>> from infinitask.datasets import make_mixture
        >>> X = make_mixture(200, random_state=0)
        >>> mass, volume, _ = InfiniteOneClassSVM(n_nodes=20).fit(X).mass_volume_curve(X, random_state=0)
        >>> mass.shape == volume.shape
        True
        """
        X = self._points(X)
        return mass_volume_curve(self.score_samples, X, n_samples=n_samples, random_state=random_state)

    def mass_volume_area(
        self, X: Any, *, masses: tuple[float, float] = (0.1, 0.9), n_samples: int = 10_000, random_state: Any = None
    ) -> float:
        """The area under the mass–volume curve, smaller is better; see :func:`infinitask.metrics.mass_volume_area`.

        Parameters
        ----------
        X : array (n, d)
            Data, best not those of the fit.
        masses : (float, float)
            The range of masses; fractions 1 − mass outside Θ are not resolved.
        n_samples : int
        random_state : int, RandomState or None

        Examples
        --------
        >>> from infinitask import InfiniteOneClassSVM
        >>> from infinitask.datasets import make_mixture
        >>> X = make_mixture(200, random_state=0)
        >>> fair, wide = (InfiniteOneClassSVM(n_nodes=20, gamma=gamma).fit(X) for gamma in (0.3, 0.001))
        >>> fair.mass_volume_area(X, random_state=0) < wide.mass_volume_area(X, random_state=0)
        True
        """
        X = self._points(X)
        return mass_volume_area(self.score_samples, X, masses=masses, n_samples=n_samples, random_state=random_state)

    # ------------------------------------------------------------------------------------------- inside
    def _points(self, X: Any) -> HostArray:
        check_is_fitted(self)
        if self._is_precomputed():
            raise ValueError(
                "kernel='precomputed' was given; the volume of a set needs the kernel at new points, not a matrix. "
                "Use a kernel of inputs."
            )
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _grid(self) -> HostArray:
        """The levels on which curves are looked at, ascending."""
        if self._knows_nodes_only():
            return np.unique(self.nodes_)
        return np.unique(np.linspace(*self._ends(), SCORE_LEVELS))

    def _by_rows(self, X: Any, levels: HostArray, answer: Callable[[HostArray], HostArray]) -> HostArray:
        """What ``answer`` makes of h − t at the levels, (n, k), some rows at a time."""
        X = self._inputs(X)
        size = max(1, ENTRIES // levels.size)
        starts, shift = range(0, X.shape[0], size), self._shift(levels)
        return np.concatenate([answer(self.field_(X[start : start + size, :], levels) - shift) for start in starts])

    def _by_curve(self, X: Any, answer: Callable[[Rearrangement], HostArray]) -> HostArray:
        """What ``answer`` makes of θ ↦ h(x)(θ) − t(θ), put in descending order for every x.

        Where only a few fractions are learnt, their own values are sorted: h is not held to anything between them.
        """
        atoms = self.measure_.atoms()
        levels = self._grid() if atoms is None else np.unique(atoms.nodes)

        def ordered(values: HostArray) -> HostArray:
            if levels.size == 1:  # one set is nested; a curve needs two points
                ends = np.append(levels, np.nextafter(levels, np.inf))
                return answer(Rearrangement(ends, np.repeat(values, 2, axis=1), increasing=False))
            return answer(Rearrangement.of(levels, values, increasing=False))

        return self._by_rows(X, levels, ordered)

    def _fall(self, curves: Rearrangement) -> HostArray:
        """θ* of curves in order; just below Θ for those that are negative throughout."""
        low, high = self._ends()
        found = np.clip(sign_change(curves.levels, curves.values), low, high)
        return np.asarray(np.where(curves.values[:, 0] >= 0.0, found, np.nextafter(low, -np.inf)))


def _change_next_to(nu: float, levels: HostArray, values: HostArray) -> HostArray:
    """Where curves (n, k) change sign next to ``nu``, one of the levels: (n,), at least ν for those inside there."""
    at = int(np.flatnonzero(levels == nu)[0])
    inside = values >= 0.0
    onwards, back = slice(at, None), slice(at, None, -1)
    leaves = _first_change(levels[onwards], values[:, onwards], inside[:, onwards])
    enters = _first_change(levels[back], values[:, back], ~inside[:, back])
    # rounding must not carry the root across nu
    below = np.nextafter(nu, -np.inf)
    return np.asarray(np.where(inside[:, at], np.maximum(leaves, nu), np.minimum(enters, below)))


def _first_change(levels: HostArray, values: HostArray, before: HostArray) -> HostArray:
    """Where curves (n, k) first leave the side on which they are ``before``, by linear interpolation: (n,).

    The last level for a curve that stays there throughout.
    """
    if levels.size == 1:
        return np.full(values.shape[0], levels[0])
    k, rows = np.maximum(before.argmin(axis=1), 1), np.arange(values.shape[0])
    v0, v1 = values[rows, k - 1], values[rows, k]
    share = np.clip(np.divide(v0, v0 - v1, out=np.zeros_like(v0), where=v0 != v1), 0.0, 1.0)
    found = levels[k - 1] + share * (levels[k] - levels[k - 1])
    return np.asarray(np.where(before.all(axis=1), levels[-1], found))
