"""The mass in the sets of a score against their volume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from infinitask.metrics import mass_volume_curve
from infinitask.metrics._level_sets import MassVolumeCurve
from infinitask.plotting._asked import LEVEL_SETS, asked
from infinitask.plotting._canvas import Display


@final
@dataclass(eq=False, repr=False)
class MassVolumeDisplay(Display):
    """How small the sets of a score are for the mass that they hold; a lower curve means a better score.

    Parameters
    ----------
    curve : MassVolumeCurve
        ``mass_volume_curve(X)`` of a model.
    name : str
        What the legend calls it.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask.plotting import MassVolumeDisplay
    >>> X = make_mixture(150, random_state=0)
    >>> model = InfiniteOneClassSVM(n_nodes=20).fit(X)
    >>> display = MassVolumeDisplay.from_estimator(model, make_mixture(150, random_state=1), random_state=0)
    >>> display.ax_.get_ylabel()
    'volume of the set'
    """

    curve: MassVolumeCurve
    name: str = "model"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        n_samples: int = 10_000,
        random_state: Any = None,
        name: str = "model",
        ax: Any = None,
        look: Any = None,
    ) -> Self:
        """Draw the curve of a model, best on rows that it has not seen.

        Parameters
        ----------
        estimator : estimator
            A fitted model of level sets, alone or at the end of a pipeline; volumes are those of the features of the
            model itself.
        X : table (n, d)
        n_samples : int
            Points of the Monte Carlo.
        random_state : int, RandomState or None
        name : str
            What the legend calls it; draw a second model into the same axes to compare.
        ax, look
            As in :meth:`plot`.
        """
        given = asked(estimator, LEVEL_SETS, cls.__name__)
        curve = given.model.mass_volume_curve(given.inputs(X), n_samples=n_samples, random_state=random_state)
        return cls(curve, name).plot(ax, look=look)

    @classmethod
    def from_predictions(
        cls,
        score: Any,
        X: Any,
        *,
        n_samples: int = 10_000,
        random_state: Any = None,
        name: str = "score",
        ax: Any = None,
        look: Any = None,
    ) -> Self:
        """Draw the curve of any score, such as that of another model.

        Parameters
        ----------
        score : callable
            From (n, d) to (n,); larger for points that are more normal.
        X : array (n, d)
        n_samples, random_state, name, ax, look
            As in :meth:`from_estimator`.
        """
        curve = mass_volume_curve(score, X, n_samples=n_samples, random_state=random_state)
        return cls(curve, name).plot(ax, look=look)

    def plot(self, ax: Any = None, *, look: Any = None) -> Self:
        """Draw the curve; into axes that hold such curves already it adds one.

        Parameters
        ----------
        ax : matplotlib axes or None
            None: a figure of its own.
        look : {"light", "dark"}, Look or None
            None: what suits the axes, or the settings of matplotlib.
        """
        with self._canvas(ax, look, "How small are the sets?") as (axes, look_):
            style = look_.curve(len(axes.lines))
            mass, volume = np.append(0.0, self.curve.mass), np.append(0.0, self.curve.volume)
            axes.step(mass, volume, where="pre", linewidth=1.8, label=self.name, **style)
            axes.set(xlabel="fraction of the data in the set", ylabel="volume of the set")
            axes.set(xlim=(0.0, 1.0), ylim=(0.0, None))
            axes.legend(loc="upper left")
        return self
