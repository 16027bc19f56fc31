"""Metrics as ``scoring=`` of scikit-learn's searches: callables of (estimator, X, y), greater is better.

Three families evaluate ``predict`` at a grid of tasks and pass the predictions to a metric; they share
:class:`TaskScorer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.inner_model import inner_model, takes
from infinitask._base.validation import choice, is_number, numbers
from infinitask.metrics._classification import integrated_cost
from infinitask.metrics._level_sets import mass_volume_area, theta_property_deviation
from infinitask.metrics._quantile import (
    calibration_error,
    crossing_loss,
    crps,
    integrated_pinball_loss,
    interval_coverage,
)

GRID_PARTS = 100
"""By default, a model is scored at the 99 points that divide Θ into 100 equal parts: the percentiles for Θ = (0, 1)."""


def _crossing_loss(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return crossing_loss(predicted, levels, sample_weight)


def _coverage_error(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return abs(float(interval_coverage(y, predicted, sample_weight)) - float(levels[1] - levels[0]))


def _theta_property_deviation(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return theta_property_deviation(levels, predicted, sample_weight)


class TaskScorer:
    """Scores the predictions of a model at a grid of tasks by minus a metric.

    A subclass names the argument of ``predict`` for the tasks. The metric is a function of
    (y_true, y_pred, levels, sample_weight=…), smaller is better; for a classifier it also takes ``pos_label``.
    """

    argument: ClassVar[str]
    """The argument of ``predict``, and the field with the levels; if the field is None, the levels are a grid of Θ."""
    domain: ClassVar[tuple[float, float]]
    """The range Θ of the grid."""
    example: ClassVar[str]
    """A model that can be scored."""
    metric: Callable[..., float]

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric)).lstrip("_")
        return f"{type(self).__name__}(−{name}, {self.argument}={_shown(getattr(self, self.argument), *self.domain)})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return minus the metric at the levels; greater is better."""
        core = inner_model(estimator)
        if not takes(core, self.argument):
            raise TypeError(
                f"{self!r} was given a {type(core).__name__}, whose predict takes no {self.argument}; it scores models "
                f"with predict(X, {self.argument}=…), such as {self.example}, alone or at the end of a pipeline."
            )
        classes: Any = getattr(core, "classes_", ())
        if len(classes) > 2:
            raise ValueError(
                f"{self!r} was given a model of {len(classes)} classes; it scores the trade-offs of two. For more "
                "classes score probabilities, scoring='neg_log_loss', or the cost of predict(X, theta)."
            )
        # predict of a search has no argument for tasks; that of its best model has
        model = inner_model(estimator, stop=lambda candidate: takes(candidate, self.argument))
        given = getattr(self, self.argument)
        levels = _levels(core, *self.domain) if given is None else numbers(self.argument, given)
        predicted = model.predict(X, **{self.argument: levels})
        options = {"pos_label": classes[-1]} if len(classes) else {}
        return -self.metric(y, predicted, levels, sample_weight=sample_weight, **options)


@final
@dataclass(frozen=True, repr=False)
class QuantileScorer(TaskScorer):
    """Scores predicted quantiles: −metric(y, estimator.predict(X, quantiles=levels), levels).

    Parameters
    ----------
    metric : callable
        A function of (y_true, y_pred, quantiles, sample_weight=…); smaller is better.
    quantiles : tuple of float or None
        The levels.
    """

    argument, domain, example = "quantiles", (0.0, 1.0), "InfiniteQuantileRegressor"

    metric: Callable[..., float]
    quantiles: tuple[float, ...] | None = None


@final
@dataclass(frozen=True, repr=False)
class CostScorer(TaskScorer):
    """Scores decisions by their cost: −integrated_cost(y, estimator.predict(X, theta=levels), levels).

    Parameters
    ----------
    theta : tuple of float or None
        The trade-offs.
    """

    argument, domain, example = "theta", (-1.0, 1.0), "InfiniteCostSensitiveClassifier"
    metric = staticmethod(integrated_cost)

    theta: tuple[float, ...] | None = None


@final
@dataclass(frozen=True, repr=False)
class LevelSetScorer(TaskScorer):
    """Scores the fractions of rows outside level sets: −theta_property_deviation(ν, estimator.predict(X, nu=ν)).

    Parameters
    ----------
    nu : tuple of float or None
        The nominal fractions.
    """

    argument, domain, example = "nu", (0.0, 1.0), "InfiniteOneClassSVM"
    metric = staticmethod(_theta_property_deviation)

    nu: tuple[float, ...] | None = None


@final
@dataclass(frozen=True)
class MassVolumeScorer:
    """Scores an outlier detector without labels: −mass_volume_area(estimator.score_samples, X).

    Parameters
    ----------
    masses : (float, float)
        The range of α.
    n_samples : int
        The number of Monte Carlo points in the bounding box of X.
    random_state : int
        A fixed seed: all candidates of a search are compared at the same points.
    """

    masses: tuple[float, float] = (0.1, 0.9)
    n_samples: int = 10_000
    random_state: int = 0

    def __repr__(self) -> str:
        return f"MassVolumeScorer(−mass_volume_area, {', '.join(f'{k}={v}' for k, v in vars(self).items())})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return −mass_volume_area of the scores; greater is better."""
        if not hasattr(estimator, "score_samples"):
            raise TypeError(
                f"{self!r} was given a {type(estimator).__name__}, which has no score_samples; it scores models that "
                "have it, such as InfiniteOneClassSVM or IsolationForest."
            )
        return -mass_volume_area(estimator.score_samples, X, sample_weight=sample_weight, **vars(self))


SCORERS: Mapping[str, Any] = {
    "pinball": QuantileScorer(integrated_pinball_loss),
    "crossing": QuantileScorer(_crossing_loss),
    "crps": QuantileScorer(crps),
    "calibration": QuantileScorer(calibration_error),
    "coverage": QuantileScorer(_coverage_error, quantiles=(0.05, 0.95)),
    "cost": CostScorer(),
    "theta_property": LevelSetScorer(),
    "mass_volume": MassVolumeScorer(),
}
"""The scorers by name, with their default levels."""


def scorer(metric: str | Callable[..., float], **options: Any) -> Callable[..., float]:
    """Return a scorer for ``scoring=`` of scikit-learn's searches.

    ================ ========================================================= ============================== =========
    metric           returns                                                   at the levels                  option
    ================ ========================================================= ============================== =========
    "pinball"        −(1/q) Σ_j Σ_i ω_i ρ_θj(y_i − q_ij)                       θ = 0.01, 0.02, …, 0.99        quantiles
    "crossing"       −Σ_j Σ_i ω_i (q_ij − q_i(j+1))₊                           θ = 0.01, 0.02, …, 0.99        quantiles
    "crps"           −2 Σ_i ω_i ∫ ρ_θ(y_i − q_i(θ)) dθ                         θ = 0.01, 0.02, …, 0.99        quantiles
    "calibration"    −(1/q) Σ_j |Σ_i ω_i 1[y_i ≤ q_ij] − θ_j|                  θ = 0.01, 0.02, …, 0.99        quantiles
    "coverage"       −|Σ_i ω_i 1[q_i1 ≤ y_i ≤ q_i2] − 0.9|                     θ = 0.05, 0.95                 quantiles
    "cost"           −(1/q) Σ_j Σ_i ω_i c_θj(y_i) 1[ŷ_ij ≠ y_i]                θ = −0.98, −0.96, …, 0.98      theta
    "theta_property" −max_j |Σ_i ω_i 1[x_i outside at ν_j] − ν_j|              ν = 0.01, 0.02, …, 0.99        nu
    "mass_volume"    −∫ λ(t_α) dα                                              masses α from 0.1 to 0.9       masses
    ================ ========================================================= ============================== =========

    A scorer maps (estimator, X, y) to a float; greater is better. ω_i are the sample weights divided by their sum,
    ρ_θ(r) = max(θ r, (θ − 1) r) the pinball loss, q_ij the quantile and ŷ_ij the label predicted for x_i at θ_j, c_θ =
    (1 + θ)/2 for positives and (1 − θ)/2 for negatives, λ(t_α) the volume of the smallest set {s ≥ t} of the score that
    contains a fraction α of the data. By default, a model is scored at the levels inside its Θ, and at the points of a
    discrete measure.

    Parameters
    ----------
    metric : str or callable
        A name in the table, or a function of (y_true, y_pred, quantiles, sample_weight=…), smaller is better, that
        evaluates predicted quantiles.
    **options
        Other levels: ``quantiles``, ``theta``, ``nu`` or ``masses``, as in the table. "mass_volume" also takes
        ``n_samples``, the number of Monte Carlo points, and ``random_state``, which is the same for all candidates of a
        search.

    Returns
    -------
    callable
        (estimator, X, y=None, sample_weight=None) → float. The estimator may be a pipeline, a search or another wrapper
        of a model with such tasks.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.metrics import scorer
    >>> X, y = make_sine(60, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    >>> scorer("crps")(model, X, y) < scorer("pinball", quantiles=[0.1, 0.5, 0.9])(model, X, y) < 0.0
    True
    >>> scorer("cost", theta=(-0.5, 0.5))
    CostScorer(−integrated_cost, theta=-0.5, 0.5)
    """
    also = ", or a function of (y_true, y_pred, quantiles, sample_weight=…)"
    found = QuantileScorer(metric) if callable(metric) else SCORERS[choice("metric", metric, list(SCORERS), also)]
    known = [field.name for field in fields(found) if field.name != "metric"]
    for name in options:
        if name not in known:
            raise TypeError(f"{name} was given with metric={metric!r}, which takes {' and '.join(known)}.")
    # tuples, so that scorers can be compared
    levels = {name: tuple(v) if isinstance(v, list | np.ndarray) else v for name, v in options.items()}
    made: Callable[..., float] = replace(found, **levels)
    return made


def _levels(model: Any, low: float, high: float) -> HostArray:
    """Return a grid of [low, high] inside the Θ of the model: all candidates of a search have the same levels."""
    grid = low + (high - low) * np.arange(1, GRID_PARTS) / GRID_PARTS
    measure = getattr(model, "measure_", None)
    if measure is None:
        return grid
    atoms = measure.atoms()
    return grid[measure.contains(grid)] if atoms is None else np.asarray(atoms.nodes[:, 0])


def _shown(levels: tuple[float, ...] | None, low: float, high: float) -> str:
    """Return levels as text."""
    if levels is None:
        step = (high - low) / GRID_PARTS
        return f"{low + step:g}, {low + 2.0 * step:g}, …, {high - step:g}"
    return ", ".join(f"{level:g}" if is_number(level) else repr(level) for level in np.atleast_1d(levels).tolist())
