"""Nominal fractions against observed fractions: quantiles, distributions and level sets."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
from scipy import stats

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, finite, fraction, levels_within, predictions, targets
from infinitask.plotting._asked import CURVES, LEVEL_SETS, QUANTILES, asked, by_level
from infinitask.plotting._look import Display, Look, percent


def binomial_band(share: Any, n: int, confidence: float) -> tuple[HostArray, HostArray]:
    """An interval for the fraction of n rows, with at least this probability if each counts with probability ``share``.

    P(low ≤ K/n ≤ high) ≥ ``confidence`` for K binomial, for each ``share`` separately and not simultaneously.

    Parameters
    ----------
    share : float or array (q,)
    n : int
    confidence : float in (0, 1)

    Examples
    --------
    >>> low, high = binomial_band(0.5, 100, 0.9)
    >>> float(low), float(high)
    (0.42, 0.58)
    """
    n, outside = count("n", n), 0.5 * (1.0 - fraction("confidence", confidence))
    share = np.asarray(share, dtype=np.float64)
    low, high = stats.binom.ppf(outside, n, share), stats.binom.ppf(1.0 - outside, n, share)
    return np.maximum(low, 0.0) / n, np.asarray(high / n)


LEVELS = np.round(np.linspace(0.05, 0.95, 19), 2)
"""The default levels and fractions."""


def _against(axes: Any, look: Look, nominal: HostArray, observed: HostArray, confidence: float, n: int) -> None:
    """Draw the observed fractions against the nominal ones, with the band of chance and the diagonal."""
    start, end = _span(nominal, observed)
    fine = np.linspace(start, end, 201)
    low, high = binomial_band(fine, n, confidence)
    words = f"where {percent(confidence)} fall by chance"
    axes.fill_between(fine, low, high, step="mid", **look.band(words))
    axes.plot([start, end], [start, end], "--", color=look.muted, linewidth=1.0, label="as promised")
    axes.plot(nominal, observed, "-o", color=look.main, markersize=4.0, linewidth=1.4, label=f"seen on {n} rows")
    axes.set(xlim=(start, end), ylim=(start, end), aspect="equal")
    axes.legend(loc="best")


def _span(nominal: HostArray, observed: HostArray) -> tuple[float, float]:
    """The range of the axes: from 0 to 1, or the range of the levels if it is a small part of that."""
    if nominal.min() <= 0.2 and nominal.max() >= 0.8:
        return 0.0, 1.0
    low, high = min(nominal.min(), observed.min()), max(nominal.max(), observed.max())
    margin = 0.1 * max(high - low, 0.02)
    return max(0.0, float(low - margin)), min(1.0, float(high + margin))


@final
class ReliabilityDisplay(Display):
    """Plot whether quantiles are calibrated: the fraction of rows below each of them, against its level.

    Parameters
    ----------
    nominal : ndarray (q,)
        The levels, ascending.
    observed : ndarray (q,)
        Σ_i 1[y_i ≤ Q_i(θ_j)]/n, the fraction of rows at or below the quantile.
    low, high : ndarray (q,)
        The band that contains this fraction with probability ``confidence`` if the quantiles are correct, for each
        level separately.
    n : int
        The number of rows.
    confidence : float

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.plotting import ReliabilityDisplay
    >>> X, y = make_sine(300, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=12).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], quantiles=[0.25, 0.5, 0.75])
    >>> bool((abs(display.observed - display.nominal) < 0.1).all())
    True
    """

    nominal: HostArray
    observed: HostArray
    low: HostArray
    high: HostArray
    n: int
    confidence: float = 0.9

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, quantiles: Any = None, confidence: float = 0.9, **drawing: Any
    ) -> Self:
        """Plot the reliability of a model on held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted quantile model, or a pipeline that ends with one.
        X : table (n, d)
        y : array (n,)
        quantiles : array (q,) or None
            Levels; None: 0.05, 0.1, …, 0.95.
        confidence : float in (0, 1)
            Coverage of the band, for each level separately.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, CURVES, cls.__name__)
        levels = given.tasks(quantiles, LEVELS)
        curves = given.model.predict(given.inputs(X), levels)
        return cls.from_predictions(y, curves, levels, confidence=confidence, **drawing)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_pred: Any, quantiles: Any, *, confidence: float = 0.9, **drawing: Any
    ) -> Self:
        """Plot the reliability of given quantiles.

        Parameters
        ----------
        y_true : array (n,)
        y_pred : array (n, q)
        quantiles : array (q,)
        confidence, drawing
            As in :meth:`from_estimator`.
        """
        y = targets(y_true)
        curves, levels = by_level(y_pred, quantiles, y.size, "y_pred")
        low, high = binomial_band(levels, y.size, confidence)
        observed = np.mean(y[:, None] <= curves, axis=0)
        return cls(levels, observed, low, high, y.size, confidence).plot(**drawing)

    _title = "Do the quantiles cover what they say?"
    _size = (5.4, 5.2)

    def _draw(self, axes: Any, look: Look) -> None:
        _against(axes, look, self.nominal, self.observed, self.confidence, self.n)
        axes.set(xlabel="quantile level", ylabel="fraction of rows at or below the quantile")


@final
class ThetaPropertyDisplay(Display):
    """Plot whether level sets have the requested size: the fraction of rows outside, against the requested fraction.

    Parameters
    ----------
    nu : ndarray (q,)
        The requested fractions, ascending.
    outside : ndarray (q,)
        The fraction of rows outside each set.
    low, high : ndarray (q,)
        The band that contains this fraction with probability ``confidence`` if the sets are correct, for each
        separately.
    n : int
        The number of rows.
    confidence : float

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask.plotting import ThetaPropertyDisplay
    >>> model = InfiniteOneClassSVM(n_nodes=20).fit(make_mixture(150, random_state=0))
    >>> display = ThetaPropertyDisplay.from_estimator(model, make_mixture(500, random_state=1), nu=[0.2, 0.5])
    >>> bool((abs(display.outside - display.nu) < 0.1).all())
    True
    """

    nu: HostArray
    outside: HostArray
    low: HostArray
    high: HostArray
    n: int
    confidence: float = 0.9

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, nu: Any = None, confidence: float = 0.9, **drawing: Any) -> Self:
        """Plot the fractions of rows outside the sets of a model, preferably for held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted level-set model, or a pipeline that ends with one.
        X : table (n, d)
        nu : array (q,) or None
            Fractions; None: the smallest that the model knows, and those of 0.05, 0.1, …, 0.95 that it knows.
        confidence : float in (0, 1)
            Coverage of the band, for each fraction separately.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, LEVEL_SETS, cls.__name__)
        smallest = float(given.model.measure_.support[0][0]) if hasattr(given.model, "measure_") else 0.0
        fractions = given.tasks(nu, np.union1d(LEVELS, [smallest or 0.01]))
        inside = given.model.predict(given.inputs(X), fractions)
        return cls.from_predictions(inside, fractions, confidence=confidence, **drawing)

    @classmethod
    def from_predictions(cls, inside: Any, nu: Any, *, confidence: float = 0.9, **drawing: Any) -> Self:
        """Plot the fractions of given decisions.

        Parameters
        ----------
        inside : array (n, q)
            Booleans, or the +1 and −1 of ``predict``.
        nu : array (q,)
        confidence, drawing
            As in :meth:`from_estimator`.
        """
        fractions, n = levels_within("nu", nu, 0.0, 1.0), np.shape(inside)[0] if np.ndim(inside) else 0
        said, order = predictions(inside, n, fractions.size, "fractions", "inside"), np.argsort(fractions)
        outside, fractions = np.mean(~(said > 0.0), axis=0)[order], fractions[order]
        low, high = binomial_band(fractions, n, confidence)
        return cls(fractions, outside, low, high, n, confidence).plot(**drawing)

    _title = "Do the sets leave out what they say?"
    _size = (5.4, 5.2)

    def _draw(self, axes: Any, look: Look) -> None:
        _against(axes, look, self.nu, self.outside, self.confidence, self.n)
        axes.set(xlabel="fraction asked for", ylabel="fraction of rows outside")


@final
class PITDisplay(Display):
    """Plot whether predicted distributions are calibrated: a histogram of F(y_i | x_i), which is flat if they are.

    A hump in the middle means that the distributions are too wide, humps at both ends that they are too narrow, and a
    slope that they are too high or too low.

    Parameters
    ----------
    edges : ndarray (bins + 1,)
        Edges of the bins, from 0 to 1.
    share : ndarray (bins,)
        The fraction of rows in each bin.
    low, high : float
        The band that contains the fraction of a bin with probability ``confidence`` if the distributions are correct,
        for each bin separately.
    n : int
        The number of rows.
    confidence : float

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.plotting import PITDisplay
    >>> display = PITDisplay.from_predictions(np.random.default_rng(0).uniform(size=1000), bins=5)
    >>> bool(((display.low <= display.share) & (display.share <= display.high)).all())
    True
    """

    edges: HostArray
    share: HostArray
    low: float
    high: float
    n: int
    confidence: float = 0.9

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, bins: int = 10, confidence: float = 0.9, **drawing: Any
    ) -> Self:
        """Plot the histogram of ``predict_cdf(X, y)``, for held-out rows.

        Parameters
        ----------
        estimator : estimator
            A fitted quantile model, or a pipeline that ends with one.
        X : table (n, d)
        y : array (n,)
        bins : int
        confidence : float in (0, 1)
            Coverage of the band, for each bin separately.
        drawing
            Options passed to :meth:`plot`, such as ``ax``.
        """
        given = asked(estimator, QUANTILES, cls.__name__)
        values = given.model.predict_cdf(given.inputs(X), np.asarray(y, dtype=np.float64))
        return cls.from_predictions(values, bins=bins, confidence=confidence, **drawing)

    @classmethod
    def from_predictions(cls, values: Any, *, bins: int = 10, confidence: float = 0.9, **drawing: Any) -> Self:
        """Plot the histogram of given values F(y_i | x_i).

        Parameters
        ----------
        values : array (n,)
            Values in [0, 1].
        bins, confidence, drawing
            As in :meth:`from_estimator`.
        """
        values, bins = finite("values", values, 1), count("bins", bins, least=2)
        if np.any((values < 0.0) | (values > 1.0)):
            raise ValueError(f"values contains {values.min():g} to {values.max():g}; probabilities lie in [0, 1].")
        counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
        low, high = (float(end) for end in binomial_band(1.0 / bins, values.size, confidence))
        return cls(edges, counts / values.size, low, high, values.size, confidence).plot(**drawing)

    _title = "Are the predicted distributions right?"

    def _draw(self, axes: Any, look: Look) -> None:
        bars = {"color": look.colours(pale=0.45)(look.middle), "edgecolor": look.paper, "linewidth": 1.2}
        words = f"fraction of {self.n} rows"
        axes.bar(self.edges[:-1], self.share, np.diff(self.edges), align="edge", label=words, **bars)
        words = f"where {percent(self.confidence)} fall by chance"
        axes.axhspan(self.low, self.high, color=look.muted, alpha=0.25, linewidth=0, label=words)
        axes.axhline(1.0 / self.share.size, **look.dashed("right distributions"))
        top = max(float(self.share.max()), self.high)
        axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.35 * top), ylabel="fraction of rows")
        axes.set_xlabel("predicted probability of a value at or below the observed one")
        self._legend(axes, loc="upper center", ncols=3, columnspacing=1.2)
