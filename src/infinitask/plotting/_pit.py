"""The histogram of F(y | x), which is flat where predicted distributions are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, finite
from infinitask.plotting._asked import QUANTILES, asked
from infinitask.plotting._bands import binomial_band
from infinitask.plotting._canvas import Display, percent


@final
@dataclass(eq=False, repr=False)
class PITDisplay(Display):
    """Whether predicted distributions are right: a histogram of F(y_i | x_i), which is flat where they are.

    A hill in the middle says that distributions are too wide, hills at both ends that they are too narrow, a slope that
    they lie too high or too low.

    Parameters
    ----------
    edges : ndarray (bins + 1,)
        Of the bins, from 0 to 1.
    share : ndarray (bins,)
        The fraction of rows in each bin.
    low, high : float
        Where the fraction of a bin lies with probability ``confidence`` if the distributions are right, at each bin by
        itself.
    n : int
        The number of rows.
    confidence : float

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

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
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        bins: int = 10,
        confidence: float = 0.9,
        ax: Any = None,
        look: Any = None,
    ) -> Self:
        """Draw the histogram of ``predict_cdf(X, y)``, for rows that the model has not seen.

        Parameters
        ----------
        estimator : estimator
            A fitted model of quantiles, alone or at the end of a pipeline.
        X : table (n, d)
        y : array (n,)
        bins : int
        confidence : float in (0, 1)
            Of the band, at each bin by itself.
        ax, look
            As in :meth:`plot`.
        """
        given = asked(estimator, QUANTILES, cls.__name__)
        values = given.model.predict_cdf(given.inputs(X), np.asarray(y, dtype=np.float64))
        return cls.from_predictions(values, bins=bins, confidence=confidence, ax=ax, look=look)

    @classmethod
    def from_predictions(
        cls, values: Any, *, bins: int = 10, confidence: float = 0.9, ax: Any = None, look: Any = None
    ) -> Self:
        """Draw the histogram of values F(y_i | x_i) that are known already.

        Parameters
        ----------
        values : array (n,)
            In [0, 1].
        bins, confidence, ax, look
            As in :meth:`from_estimator`.
        """
        values, bins = finite("values", values, 1), count("bins", bins, least=2)
        if np.any((values < 0.0) | (values > 1.0)):
            raise ValueError(f"values contains {values.min():g} to {values.max():g}; probabilities lie in [0, 1].")
        counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
        low, high = (float(end) for end in binomial_band(1.0 / bins, values.size, confidence))
        return cls(edges, counts / values.size, low, high, values.size, confidence).plot(ax, look=look)

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the histogram.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        with self._canvas(ax, look, "Are the predicted distributions right?") as (axes, look_):
            width = np.diff(self.edges)
            axes.bar(
                self.edges[:-1],
                self.share,
                width,
                align="edge",
                color=look_.colours(pale=0.45)(0.25 if not look_.is_dark else 0.65),
                edgecolor=look_.paper,
                linewidth=1.2,
                label=f"fraction of {self.n} rows",
            )
            words = f"where {percent(self.confidence)} fall by chance"
            axes.axhspan(self.low, self.high, color=look_.muted, alpha=0.25, linewidth=0, label=words)
            axes.axhline(
                1.0 / self.share.size, linestyle="--", color=look_.ink, linewidth=1.2, label="right distributions"
            )
            top = max(float(self.share.max()), self.high)
            axes.set(xlim=(0.0, 1.0), ylim=(0.0, 1.35 * top), ylabel="fraction of rows")
            axes.set_xlabel("predicted probability of a value at or below the observed one")
            self._legend(axes, loc="upper center", ncols=3, columnspacing=1.2)
        return self
