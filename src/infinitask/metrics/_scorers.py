"""Metrics as ``scoring=`` of scikit-learn's searches: callables of (estimator, X, y), greater is better."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._array import HostArray
from infinitask.metrics._classification import integrated_cost
from infinitask.metrics._level_sets import mass_volume_area, theta_property_deviation
from infinitask.metrics._quantile import (
    calibration_error,
    crossing_loss,
    crps,
    integrated_pinball_loss,
    interval_coverage,
)

__all__ = [
    "CostScorer",
    "LevelSetScorer",
    "MassVolumeScorer",
    "QuantileScorer",
    "calibration_scorer",
    "cost_scorer",
    "coverage_scorer",
    "crossing_scorer",
    "crps_scorer",
    "integrated_pinball_scorer",
    "mass_volume_scorer",
    "theta_property_scorer",
]

PARTS = 100
"""Θ is asked at its 99 inner points of a hundred equal parts: the percentiles for (0, 1)."""


@final
@dataclass(frozen=True)
class QuantileScorer:
    """−metric(y, estimator.predict(X, quantiles=levels), levels): a float, greater is better.

    The estimator may be a pipeline or another wrapper that hands ``quantiles`` on to ``predict``. These are ready to be
    given as ``scoring=``; θ_j are the levels below, q of them, q_ij the quantile predicted for x_i at θ_j, ω_i weights
    that sum to one (1/n without ``sample_weight``), ρ_θ(r) = max(θ r, (θ − 1) r):

    integrated_pinball_scorer
        −(1/q) Σ_j Σ_i ω_i ρ_θj(y_i − q_ij), minus the mean pinball loss over the percentiles.
    crossing_scorer
        −Σ_j Σ_i ω_i (q_ij − q_i(j+1))₊, minus the paper's crossing loss (without its factor 100), the sum over adjacent
        percentiles of the mean fall.
    crps_scorer
        −2 Σ_i ω_i ∫ ρ_θ(y_i − q_i(θ)) dθ, minus the continuous ranked probability score, from the percentiles.
    calibration_scorer
        −(1/q) Σ_j |Σ_i ω_i 1[y_i ≤ q_ij] − θ_j|, minus the mean distance of coverage and level over the percentiles.
    coverage_scorer
        −|Σ_i ω_i 1[q_i1 ≤ y_i ≤ q_i2] − 0.9|, minus the distance of the coverage of the central 90% interval, between
        the levels 0.05 and 0.95, from 90%.

    Parameters
    ----------
    metric : callable
        A function of (y_true, y_pred, quantiles, sample_weight=…); smaller is better.
    quantiles : tuple of float or None
        The levels; None: the percentiles 0.01, 0.02, …, 0.99, as far as they lie inside the Θ of the model, or the
        points of a discrete measure.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.metrics import integrated_pinball_loss
    >>> X, y = make_sine(60, random_state=0)
    >>> five = QuantileScorer(integrated_pinball_loss, quantiles=(0.1, 0.3, 0.5, 0.7, 0.9))
    >>> five(InfiniteQuantileRegressor(n_nodes=10).fit(X, y), X, y) < 0
    True
    """

    metric: Callable[..., float]
    quantiles: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric)).lstrip("_")
        return f"QuantileScorer(−{name}, {_shown('quantiles', self.quantiles, 0.0, 1.0)})"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """−metric at the quantiles; greater is better."""
        estimator = _chosen(estimator)
        _check_asked(self, estimator, "quantiles", "InfiniteQuantileRegressor")
        levels = _levels(estimator, 0.0, 1.0) if self.quantiles is None else np.asarray(self.quantiles, dtype=float)
        predicted = estimator.predict(X, quantiles=levels)
        return -self.metric(y, predicted, levels, sample_weight=sample_weight)


@final
@dataclass(frozen=True)
class CostScorer:
    """−integrated_cost(y, estimator.predict(X, theta=levels), levels): a float, greater is better, at most 0.

    That is −(1/q) Σ_j Σ_i ω_i c_θj(y_i) 1[ŷ_ij ≠ y_i] with c = (1 + θ)/2 for positives and (1 − θ)/2 for negatives;
    ``cost_scorer`` is the one with ``theta=None``. The estimator may be a pipeline that ends in the classifier.

    Parameters
    ----------
    theta : tuple of float or None
        The trade-offs; None: −0.98, −0.96, …, 0.98, as far as they lie inside the Θ of the model, or the points of a
        discrete measure.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> CostScorer((-0.5, 0.5))(InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y), X, y) > -0.25
    True
    """

    theta: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        return f"CostScorer(−integrated_cost, {_shown('theta', self.theta, -1.0, 1.0)})"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """−integrated_cost over the trade-offs; greater is better."""
        estimator = _chosen(estimator)
        _check_asked(self, estimator, "theta", "InfiniteCostSensitiveClassifier")
        levels = _levels(estimator, -1.0, 1.0) if self.theta is None else np.asarray(self.theta, dtype=float)
        classes = getattr(estimator, "classes_", None)
        return -integrated_cost(
            y,
            estimator.predict(X, theta=levels),
            levels,
            pos_label=None if classes is None else classes[-1],
            sample_weight=sample_weight,
        )


@final
@dataclass(frozen=True)
class LevelSetScorer:
    """−theta_property_deviation(ν, estimator.predict(X, nu=ν)): a float, greater is better, at most 0.

    That is −max_j |Σ_i ω_i 1[x_i outside at ν_j] − ν_j|, minus the largest distance of the fraction left out from the
    fraction asked for; ``theta_property_scorer`` is the one with ``nu=None``.

    Parameters
    ----------
    nu : tuple of float or None
        The fractions; None: 0.01, 0.02, …, 0.99, as far as they lie inside the Θ of the model, or the points of a
        discrete measure.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> X = make_mixture(100, random_state=0)
    >>> LevelSetScorer((0.1, 0.5))(InfiniteOneClassSVM(n_nodes=20).fit(X), X) > -0.1
    True
    """

    nu: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        return f"LevelSetScorer(−theta_property_deviation, {_shown('nu', self.nu, 0.0, 1.0)})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−theta_property_deviation over the fractions; greater is better."""
        estimator = _chosen(estimator)
        _check_asked(self, estimator, "nu", "InfiniteOneClassSVM")
        levels = _levels(estimator, 0.0, 1.0) if self.nu is None else np.asarray(self.nu, dtype=float)
        return -theta_property_deviation(levels, estimator.predict(X, nu=levels), sample_weight)


@final
@dataclass(frozen=True)
class MassVolumeScorer:
    """−mass_volume_area(estimator.score_samples, X): a float, greater is better; for any detector of outliers.

    That is −∫ λ(t_α) dα, λ(t) the volume of {x: s(x) ≥ t}, s = ``score_samples`` and t_α the largest t with a mass of
    at least α. No labels are needed. ``mass_volume_scorer`` is the one with the values below.

    Parameters
    ----------
    masses : (float, float), default=(0.1, 0.9)
        The range of α.
    n_samples : int, default=10_000
        Points of the Monte Carlo in the bounding box of X.
    random_state : int
        Fixed, so that all candidates of a search are judged by the same points.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> X = make_mixture(200, random_state=0)
    >>> wide, fitting = (InfiniteOneClassSVM(gamma=g, n_nodes=20).fit(X) for g in (1e-3, 0.5))
    >>> score = MassVolumeScorer()
    >>> score(wide, X) < score(fitting, X)
    True
    """

    masses: tuple[float, float] = (0.1, 0.9)
    n_samples: int = 10_000
    random_state: int = 0

    def __repr__(self) -> str:
        given = f"masses={self.masses}, n_samples={self.n_samples}, random_state={self.random_state}"
        return f"MassVolumeScorer(−mass_volume_area, {given})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−mass_volume_area of the scores; greater is better."""
        if not hasattr(estimator, "score_samples"):
            raise TypeError(
                f"{self!r} was given a {type(estimator).__name__}, which has no score_samples; it scores models that "
                "have it, such as InfiniteOneClassSVM or IsolationForest."
            )
        return -mass_volume_area(
            estimator.score_samples,
            X,
            masses=self.masses,
            n_samples=self.n_samples,
            random_state=self.random_state,
            sample_weight=sample_weight,
        )


def _crossing_loss(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return crossing_loss(predicted, levels, sample_weight)


def _coverage_error(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return abs(interval_coverage(y, predicted, sample_weight) - float(levels[1] - levels[0]))


integrated_pinball_scorer = QuantileScorer(integrated_pinball_loss)
"""Minus the pinball loss, averaged over the percentiles."""
crossing_scorer = QuantileScorer(_crossing_loss)
"""Minus the crossing loss of the percentiles."""
crps_scorer = QuantileScorer(crps)
"""Minus the continuous ranked probability score."""
calibration_scorer = QuantileScorer(calibration_error)
"""Minus the mean distance of empirical coverage and level."""
coverage_scorer = QuantileScorer(_coverage_error, quantiles=(0.05, 0.95))
"""Minus the distance of the coverage of the central 90% interval from 90%."""
cost_scorer = CostScorer()
"""Minus the cost of wrong decisions, averaged over θ."""
mass_volume_scorer = MassVolumeScorer()
"""Minus the area under the mass–volume curve."""
theta_property_scorer = LevelSetScorer()
"""Minus the largest distance of the fraction left out from the fraction asked for."""


def _levels(estimator: Any, low: float, high: float) -> HostArray:
    """Tasks that every candidate of a search is asked: a grid of Θ as a whole, inside the Θ of the model."""
    grid = low + (high - low) * np.arange(1, PARTS) / PARTS
    measure = getattr(_core(estimator), "measure_", None)
    if measure is None:
        return grid
    atoms = measure.atoms()
    return grid[measure.contains(grid)] if atoms is None else np.asarray(atoms.nodes[:, 0])


def _shown(name: str, levels: tuple[float, ...] | None, low: float, high: float) -> str:
    """Levels as a person would list them."""
    if levels is None:
        step = (high - low) / PARTS
        return f"{name}={low + step:g}, {low + 2.0 * step:g}, …, {high - step:g}"
    return f"{name}=" + ", ".join(f"{level:g}" for level in levels)


def _check_asked(scorer: Any, estimator: Any, name: str, example: str) -> None:
    """An error where ``predict`` of the model cannot be asked for these tasks."""
    core = _core(estimator)
    predict = getattr(core, "predict", None)
    known = {} if predict is None else inspect.signature(predict).parameters
    if name not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        raise TypeError(
            f"{scorer!r} was given a {type(core).__name__}, whose predict takes no {name}; it scores models that are "
            f"asked predict(X, {name}=…), such as {example}, alone or at the end of a pipeline."
        )


def _chosen(estimator: Any) -> Any:
    """What a search has chosen: its own ``predict`` takes no tasks."""
    return getattr(estimator, "best_estimator_", estimator)


def _core(estimator: Any) -> Any:
    """The model inside pipelines, searches and transformed targets."""
    for name in ("best_estimator_", "regressor_"):
        if hasattr(estimator, name):
            return _core(getattr(estimator, name))
    steps = getattr(estimator, "steps", None)
    return _core(steps[-1][1]) if steps else estimator
