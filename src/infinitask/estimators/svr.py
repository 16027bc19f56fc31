"""Infinite support vector regression: every half-width of the tube from one fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.validation import number, optional, parse_tasks
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.estimators._shared import Continuum, estimator
from infinitask.estimators._sources import in_kind
from infinitask.fitting._recipe import Units
from infinitask.tasks import EpsilonTask, Task

__all__ = ["InfiniteSVR"]


@estimator
class InfiniteSVR(Continuum, RegressorMixin, BaseInfiniteTask):
    """Support vector regression for every half-width ε of the tube from one fit; ε is chosen at prediction.

    min_h ∫ E (|y − h(x)(θ) − b(θ)| − θ)₊ dμ(θ) + (λ/2)‖h‖² + (λ_b/2)‖b‖², where θ = ε is the largest error without a
    loss.

    Parameters
    ----------
    epsilon : float or None, default=None
        The half-width that ``predict`` and ``score`` use by default, in units of y; None: a tenth of the largest, or
        the smallest if that is larger.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on the half-widths, in units of y; None: uniform from 0 to twice the median absolute deviation of y.
    {parameters}

    Attributes
    ----------
    epsilon_ : float
        The half-width that ``predict`` uses by default.
    {attributes}

    Notes
    -----
    With ``task_kernel="diagonal"``, ``bias_kernel="diagonal"`` and ``alpha_bias=0`` every node θ_j is a separate
    problem, that of ``sklearn.svm.SVR`` with ε = θ_j and C = w_j / (n λ), where w_j is the node's entry of
    ``weights_``. Sample weights, normalised to sum one, replace 1/n.

    Examples
    --------
    >>> from infinitask import InfiniteSVR
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteSVR(measure=(0.0, 0.5), n_nodes=20).fit(X, y)
    >>> model.predict(X, epsilon=[0.0, 0.25, 0.5]).shape
    (100, 3)
    >>> model.dual_gap_ <= model.tol
    True
    """

    _constraints: ClassVar = {"epsilon": optional(partial(number, low=0.0, open_low=False))}

    epsilon: float | None = None

    def _task(self) -> Task:
        return EpsilonTask()

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        prepared = self._regression(self.recipe(), X, y, sample_weight)
        recipe = prepared.recipe
        if self.measure is None:
            assert prepared.y is not None
            counted = prepared.weight > 0.0
            spread = Units.of(prepared.y[counted], prepared.weight[counted], centred=True).spread
            recipe = replace(recipe, task=EpsilonTask().up_to(spread))
        low, high = (float(end[0]) for end in recipe.task.measure.support)
        epsilon = max(low, 0.1 * high) if self.epsilon is None else float(self.epsilon)
        parse_tasks(epsilon, "epsilon", recipe.task.measure.support)
        return prepared._replace(recipe=recipe, learnt={"epsilon_": epsilon})

    @in_kind
    def predict(self, X: Any, epsilon: Any = None) -> HostArray:
        """Predict y: (n,) for one half-width, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        epsilon : float, array (q,) or None
            Half-widths of the tube; None: the constructor's ``epsilon``, or ``epsilon_`` if that is None.
        """
        check_is_fitted(self)
        default = self.epsilon_ if self.epsilon is None else self.epsilon
        return self._values(X, default if epsilon is None else epsilon, "epsilon")
