"""Infinite expectile regression: the whole conditional expectile function from one fit."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.stats import expectile
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.validation import choice
from infinitask.estimators._base import BaseInfiniteTask
from infinitask.estimators._parameters import order_in_theta, targets_of, weights_of
from infinitask.estimators._shared import Continuum, d2_score, estimator
from infinitask.estimators._sources import in_kind
from infinitask.losses import Expectile
from infinitask.tasks import ExpectileTask, Task

__all__ = ["InfiniteExpectileRegressor"]


@estimator
class InfiniteExpectileRegressor(Continuum, RegressorMixin, BaseInfiniteTask):
    """Conditional expectiles of every level from one fit; the level is chosen at prediction.

    min ∫ E |θ − 1[r<0]| r² dθ + λ_nc ∫ E (−∂f/∂θ)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖² over h and b, with the expectile
    f = h(x)(θ) + b(θ) and r = y − f.
    The expectile of level 0.5 is the conditional mean; the others weigh positive and negative residuals unequally.

    Parameters
    ----------
    noncrossing : float, "rearrange" or "hard", default=0.0
        λ_nc, the weight of the penalty on crossing expectile curves. "rearrange": weight 0, and predictions come from
        the expectile function of each x, sorted on a fine grid of levels; no two levels cross, at any x. "hard": the
        fit has the constraint that ∂h/∂θ ≥ 0 for all θ at the training rows of positive weight, which is proved to hold
        (kernels "rbf" and "matern52"); see ``smallest_slope_``.
    noncrossing_loss : {"hinge", "squared"}, default="hinge"
        The penalty where ∂f/∂θ < 0: (−∂f/∂θ)₊ for "hinge", or its square as in the paper's table. With "hinge", a large
        enough weight can make curves increase everywhere; with "squared", only nearly so.
    noncrossing_inputs : array (k, d) or None, default=None
        The points x at which crossing is penalised, each with weight 1/k, such as a grid or unlabelled rows. They
        replace the training rows in the mean of the penalty; include the training rows to keep the order there as well.
        With "hard", the constraint holds at these points and at the training rows. None: the training rows.
    expectiles : float or array, default=0.5
        The levels that ``predict`` uses by default.
    {parameters}

    Attributes
    ----------
    smallest_slope_ : float
        Only with ``noncrossing="hard"``: a proved lower bound of ∂h/∂θ, for all θ and all training rows of positive
        weight (and ``noncrossing_inputs``). Rows of ``sample_weight`` 0 are ignored, and curves may cross there.
    {attributes}

    Examples
    --------
    >>> from infinitask import InfiniteExpectileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> InfiniteExpectileRegressor().fit(X, y).predict(X, expectiles=[0.1, 0.5, 0.9]).shape
    (100, 3)
    """

    _asked_by = "expectiles"
    _open_ends = True
    _constraints: ClassVar = {"noncrossing_loss": partial(choice, options=("hinge", "squared"))}

    noncrossing: float | str = 0.0
    noncrossing_loss: str = "hinge"
    noncrossing_inputs: Any = None
    expectiles: Any = 0.5

    def _task(self) -> Task:
        return ExpectileTask(order=order_in_theta(self, weight_if_rearranged=0.0))

    @in_kind
    def predict(self, X: Any, expectiles: Any = None) -> HostArray:
        """Predict conditional expectiles: (n,) for one level, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        expectiles : float, array (q,) or None
            Levels in (0, 1); None: the constructor's ``expectiles``.
        """
        return self._values(X, self.expectiles if expectiles is None else expectiles, "expectiles", strict=True)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return D² of the integrated expectile loss: 1 − loss / loss of the best constants.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        check_is_fitted(self)
        predicted = self._values(X, self.nodes_, "expectiles")
        y = targets_of(predicted, y)
        weight = weights_of(sample_weight, predicted)
        spread = np.ptp(y) or 1.0  # SciPy's tolerance is absolute
        constants = spread * np.array([expectile(y / spread, theta, weights=weight) for theta in self.nodes_])
        return d2_score((self.nodes_, self.weights_), Expectile(), predicted, constants, y, weight)
