"""Metrics as ``scoring=`` of scikit-learn's searches: callables of (estimator, X, y), greater is better.

Three families ask ``predict`` for a grid of tasks and hand the predictions to a metric; they share
:class:`TaskScorer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.inner_model import inner_model, takes
from infinitask._base.validation import is_number, numbers
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
"""A scorer without levels asks at the 99 points that divide Θ into 100 equal parts: the percentiles for Θ = (0, 1)."""


class TaskScorer(ABC):
    """Asks a model for predictions at a grid of tasks, and returns minus a metric of them.

    A subclass says under which name ``predict`` takes the tasks, and calls its metric.
    """

    asks: ClassVar[str]
    """The argument of ``predict``, and the field that holds the levels; None there: a grid of Θ."""
    domain: ClassVar[tuple[float, float]]
    """Θ, over which the grid runs."""
    example: ClassVar[str]
    """A model that can be scored."""
    metric: Callable[..., float]

    @abstractmethod
    def loss(self, model: Any, y: Any, predicted: Any, levels: HostArray, sample_weight: Any) -> float:
        """The metric of the predictions at the levels; smaller is better."""

    def check(self, model: Any) -> None:  # noqa: B027  # most take every model that is asked such tasks
        """An error where a fitted model, whose ``predict`` takes such tasks, cannot be scored."""

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric)).lstrip("_")
        return f"{type(self).__name__}(−{name}, {self.asks}={_shown(getattr(self, self.asks), *self.domain)})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the metric at the levels; greater is better."""
        core = inner_model(estimator)
        if not takes(core, self.asks):
            raise TypeError(
                f"{self!r} was given a {type(core).__name__}, whose predict takes no {self.asks}; it scores models "
                f"that are asked predict(X, {self.asks}=…), such as {self.example}, alone or at the end of a pipeline."
            )
        self.check(core)
        # predict of a search takes no tasks; that of the model it has chosen does
        model = inner_model(estimator, stop=lambda candidate: takes(candidate, self.asks))
        given = getattr(self, self.asks)
        levels = _levels(core, *self.domain) if given is None else numbers(self.asks, given)
        return -self.loss(model, y, model.predict(X, **{self.asks: levels}), levels, sample_weight)


@final
@dataclass(frozen=True, repr=False)
class QuantileScorer(TaskScorer):
    """Scores predicted quantiles by a metric: a float, greater is better.

    The score is −metric(y, estimator.predict(X, quantiles=levels), levels). The estimator may be a pipeline or another
    wrapper that passes ``quantiles`` on to ``predict``. The scorers below are ready for ``scoring=``. Here θ_j are the
    q levels, q_ij is the quantile predicted for x_i at θ_j, ω_i are weights that sum to one (1/n without
    ``sample_weight``), and ρ_θ(r) = max(θ r, (θ − 1) r):

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

    asks, domain, example = "quantiles", (0.0, 1.0), "InfiniteQuantileRegressor"

    metric: Callable[..., float]
    quantiles: tuple[float, ...] | None = None

    def loss(self, model: Any, y: Any, predicted: Any, levels: HostArray, sample_weight: Any) -> float:
        """See :class:`TaskScorer`."""
        if not callable(self.metric):
            raise TypeError(f"metric={self.metric!r} was given; it must be a function such as integrated_pinball_loss.")
        return self.metric(y, predicted, levels, sample_weight=sample_weight)


@final
@dataclass(frozen=True, repr=False)
class CostScorer(TaskScorer):
    """Scores decisions by their cost over all trade-offs: a float, greater is better, at most 0.

    The score is −integrated_cost(y, estimator.predict(X, theta=levels), levels), that is
    −(1/q) Σ_j Σ_i ω_i c_θj(y_i) 1[ŷ_ij ≠ y_i] with c = (1 + θ)/2 for positives and (1 − θ)/2 for negatives.
    ``cost_scorer`` has ``theta=None``. The estimator may be a pipeline that ends in the classifier.

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

    asks, domain, example = "theta", (-1.0, 1.0), "InfiniteCostSensitiveClassifier"
    metric = staticmethod(integrated_cost)

    theta: tuple[float, ...] | None = None

    def check(self, model: Any) -> None:
        """See :class:`TaskScorer`."""
        classes = getattr(model, "classes_", ())
        if len(classes) > 2:
            raise ValueError(
                f"{self!r} was given a model of {len(classes)} classes; it scores the trade-offs of two. For more "
                "classes score probabilities, scoring='neg_log_loss', or the cost of predict(X, theta)."
            )

    def loss(self, model: Any, y: Any, predicted: Any, levels: HostArray, sample_weight: Any) -> float:
        """See :class:`TaskScorer`."""
        classes = getattr(model, "classes_", (None,))
        return self.metric(y, predicted, levels, pos_label=classes[-1], sample_weight=sample_weight)


@final
@dataclass(frozen=True, repr=False)
class LevelSetScorer(TaskScorer):
    """Scores how well level sets leave out the fractions asked for: a float, greater is better, at most 0.

    The score is −theta_property_deviation(ν, estimator.predict(X, nu=ν)), that is
    −max_j |Σ_i ω_i 1[x_i outside at ν_j] − ν_j|, minus the largest distance between the fraction outside and the
    fraction asked for. ``theta_property_scorer`` has ``nu=None``.

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

    asks, domain, example = "nu", (0.0, 1.0), "InfiniteOneClassSVM"
    metric = staticmethod(theta_property_deviation)

    nu: tuple[float, ...] | None = None

    def loss(self, model: Any, y: Any, predicted: Any, levels: HostArray, sample_weight: Any) -> float:
        """See :class:`TaskScorer`."""
        return self.metric(levels, predicted, sample_weight)


@final
@dataclass(frozen=True)
class MassVolumeScorer:
    """Scores any detector of outliers without labels: a float, greater is better.

    The score is −mass_volume_area(estimator.score_samples, X), that is −∫ λ(t_α) dα, with λ(t) the volume of
    {x: s(x) ≥ t}, s = ``score_samples`` and t_α the largest t with a mass of at least α. ``mass_volume_scorer`` has the
    defaults below.

    Parameters
    ----------
    masses : (float, float), default=(0.1, 0.9)
        The range of α.
    n_samples : int, default=10_000
        Points of the Monte Carlo in the bounding box of X.
    random_state : int
        Fixed, so that all candidates of a search are compared at the same points.

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
        return f"MassVolumeScorer(−mass_volume_area, {', '.join(f'{k}={v}' for k, v in vars(self).items())})"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """−mass_volume_area of the scores; greater is better."""
        if not hasattr(estimator, "score_samples"):
            raise TypeError(
                f"{self!r} was given a {type(estimator).__name__}, which has no score_samples; it scores models that "
                "have it, such as InfiniteOneClassSVM or IsolationForest."
            )
        return -mass_volume_area(estimator.score_samples, X, sample_weight=sample_weight, **vars(self))


def _crossing_loss(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return crossing_loss(predicted, levels, sample_weight)


def _coverage_error(y: Any, predicted: Any, levels: HostArray, sample_weight: Any = None) -> float:
    return abs(float(interval_coverage(y, predicted, sample_weight)) - float(levels[1] - levels[0]))


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
"""Minus the largest distance of the fraction outside from the fraction asked for."""


def _levels(model: Any, low: float, high: float) -> HostArray:
    """Every candidate of a search is asked at the same levels: a grid of [low, high], inside the Θ of the model."""
    grid = low + (high - low) * np.arange(1, GRID_PARTS) / GRID_PARTS
    measure = getattr(model, "measure_", None)
    if measure is None:
        return grid
    atoms = measure.atoms()
    return grid[measure.contains(grid)] if atoms is None else np.asarray(atoms.nodes[:, 0])


def _shown(levels: tuple[float, ...] | None, low: float, high: float) -> str:
    """Levels as a person would list them."""
    if levels is None:
        step = (high - low) / GRID_PARTS
        return f"{low + step:g}, {low + 2.0 * step:g}, …, {high - step:g}"
    return ", ".join(f"{level:g}" if is_number(level) else repr(level) for level in np.atleast_1d(levels).tolist())
