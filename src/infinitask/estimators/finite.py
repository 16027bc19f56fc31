"""Finite special cases: a few tasks, chosen before training, each with a free bias (see ``alpha_bias_``).

These are the models that *Infinite Task Learning in RKHSs* (Brault et al., 2019) compares with.

They solve the same problem with other choices of μ, k_Θ and the ridge, by the same solver with the same certificate.

=====================================  ====================================  ==================  ============
estimator                              h                                     ridge               bias
=====================================  ====================================  ==================  ============
:class:`JointQuantileRegressor`        k_X ⊗ a Gaussian kernel of levels     (λ/2)‖h‖²           b_j, free
:class:`IndependentQuantileRegressor`  one function of x for each level      mean (λ/2)‖h_j‖²    b_j, free
:class:`IndependentCostSensitive\
Classifier`                            one function of x for each θ          mean (λ/2)‖h_j‖²    b_j, free
:class:`QOneClassSVM`                  one function of x for all levels      ½‖h‖²               −t_j, free
=====================================  ====================================  ==================  ============

They predict at their tasks only. Finite multi-task learning with any other matrix of task similarities is
``InfiniteTaskEstimator(loss, measure=Discrete(...), task_kernel=TaskMatrix(A))``, and a model that is affine in x and
piecewise linear in θ (Takeuchi, Hongo, Sugiyama and Nakajima, 2013) is ``InfiniteTaskEstimator(loss, kernel="linear",
task_kernel="piecewise-linear")``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np

from infinitask._base.validation import flag_or_choice, levels_within
from infinitask.estimators._decisions import CostSensitiveEstimator
from infinitask.estimators._shared import estimator
from infinitask.estimators.one_class import _LevelSetEstimator
from infinitask.estimators.quantile import _QuantileEstimator
from infinitask.measures import Discrete
from infinitask.penalties import IntegratedRidge, Ridge
from infinitask.tasks import CostTask, LevelSetTask, QuantileTask, Task

__all__ = [
    "IndependentCostSensitiveClassifier",
    "IndependentQuantileRegressor",
    "JointQuantileRegressor",
    "QOneClassSVM",
]


JOINT: dict[str, Any] = {"bias_kernel": "diagonal", "alpha_bias": 0.0, "quadrature": "discrete"}
"""Tasks coupled by a kernel, with a free bias for each."""

SEPARATE: dict[str, Any] = {"task_kernel": "diagonal", **JOINT}
"""Uncoupled tasks, with a free bias for each."""


def _atoms(name: str, tasks: Any, **domain: Any) -> Discrete:
    """Return the tasks of a constructor as a measure; ``domain`` as in :func:`levels_within`."""
    found = levels_within(name, tasks, **domain)
    if np.unique(found).size < found.size:
        raise ValueError(f"{name}={tasks!r} was given; it must be a list of distinct numbers, the tasks to learn.")
    return Discrete(found)


def _quantile_levels(quantiles: Any) -> Discrete:
    return _atoms("quantiles", quantiles, low=0.0, high=1.0, open_low=True, open_high=True)


@estimator
class JointQuantileRegressor(_QuantileEstimator):
    """Joint quantile regression: a few levels learnt together, with a free bias for each.

    min (1/nm) Σ_ij ρ_θj(y_i − h_j(x_i) − b_j) + (λ/2)‖h‖², h in the RKHS of k_X(x, x')·exp(−γ(θ_j − θ_j')²) (Sangnier,
    Fercoq and d'Alché-Buc, 2016). Their C is 1/(λ n m).

    Parameters
    ----------
    quantiles : array, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        The levels. The model predicts no others; ``predict`` returns all of them by default.
    task_kernel : str or task kernel object, default="rbf"
        The kernel of the levels.
    task_gamma : float or None, default=None
        Its bandwidth; None: from the median distance of the levels.
    {parameters}

    Attributes
    ----------
    calibration_ : ConformalCalibration
        Only after :meth:`conformalize`.
    {attributes}

    Examples
    --------
    >>> from infinitask import JointQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = JointQuantileRegressor(quantiles=[0.1, 0.5, 0.9]).fit(X, y)
    >>> model.predict(X).shape, model.predict(X, 0.5).shape
    ((100, 3), (100,))
    >>> bool(abs((y < model.predict(X, 0.9)).mean() - 0.9) <= 0.05)  # a free bias leaves the right fraction below
    True
    """

    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95)
    task_kernel: Any = "rbf"
    task_gamma: Any = None
    alpha: float | str = "auto"

    def _task(self) -> Task:
        return QuantileTask(measure=_quantile_levels(self.quantiles))

    def _choices(self) -> dict[str, Any]:
        return JOINT


@estimator
class IndependentQuantileRegressor(_QuantileEstimator):
    """Kernel quantile regression, level by level.

    min (1/n) Σ_i ρ_θ(y_i − f(x_i) − b) + (λ/2)‖f‖², separately for each level θ (Takeuchi, Le, Sears and Smola, 2006).
    Their C is 1/(λ n).

    Parameters
    ----------
    quantiles : array, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        The levels. The model predicts no others; ``predict`` returns all of them by default.
    {parameters}

    Attributes
    ----------
    calibration_ : ConformalCalibration
        Only after :meth:`conformalize`.
    {attributes}

    Examples
    --------
    >>> from infinitask import IndependentQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> IndependentQuantileRegressor(quantiles=[0.1, 0.9]).fit(X, y).predict(X).shape
    (100, 2)
    """

    quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95)
    alpha: float | str = "auto"

    def _task(self) -> Task:
        return QuantileTask(measure=_quantile_levels(self.quantiles), penalty=IntegratedRidge())

    def _choices(self) -> dict[str, Any]:
        return SEPARATE


@estimator
class IndependentCostSensitiveClassifier(CostSensitiveEstimator):
    """Support vector machines with class weights, one for each trade-off between the errors.

    min (1/n) Σ_i c_θ(y_i) (1 − y_i (f(x_i) + b))₊ + (λ/2)‖f‖², separately for each trade-off θ, with c_θ(y) = (1 + θ)/2
    for y = 1 and (1 − θ)/2 for y = −1; their C is 1/(λ n).

    Parameters
    ----------
    thetas : array, default=(-0.9, -0.5, 0.0, 0.5, 0.9)
        The trade-offs; the model predicts at no others.
    theta : float, array or None, default=None
        The trade-off among them that ``predict`` uses by default; None: the one closest to 0.
    calibrated : "auto", True or False, default="auto"
        Whether decisions are calibrated on the held-out rows of additional fits; "auto": only if ``alpha`` is "auto".
        See :class:`~infinitask.InfiniteCostSensitiveClassifier`.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray (2,)
    n_samples_fit_ : float
        The number of rows of positive weight, or the sum of the weights if that is larger.
    shift_ : Shift
        The shift added to h(x)(θ); only if decisions are ``calibrated``.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import IndependentCostSensitiveClassifier
    >>> X, y = make_moons(100, noise=0.3, random_state=0)
    >>> model = IndependentCostSensitiveClassifier(thetas=[-0.9, 0.0, 0.9]).fit(X, y)
    >>> model.predict(X, [-0.9, 0.9]).shape
    (100, 2)
    """

    thetas: Any = (-0.9, -0.5, 0.0, 0.5, 0.9)
    theta: Any = None
    calibrated: bool | str = "auto"
    alpha: float | str = "auto"

    def _task(self) -> Task:
        measure = _atoms("thetas", self.thetas, low=-1.0, high=1.0)
        return CostTask(measure=measure, penalty=IntegratedRidge(), calibrated=self._is_calibrated())

    def _choices(self) -> dict[str, Any]:
        return SEPARATE

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


@estimator
class QOneClassSVM(_LevelSetEstimator):
    """The q-one-class support vector machine: one function of x, and a free threshold for each outlier fraction.

    min ½‖h‖² + (1/q) Σ_j [(1/(ν_j n)) Σ_i (t_j − h(x_i))₊ − t_j] (Glazer, Lindenbaum and Markovitch, 2013). All levels
    share one function, so the sets are nested if the thresholds are in order.

    Parameters
    ----------
    nus : array, default=(0.1, 0.3, 0.5, 0.7, 0.9)
        The outlier fractions; the model predicts no others.
    nu : float or None, default=None
        The fraction among them that ``predict`` uses by default; None: the smallest.
    exact_fractions : "held-out", True or False, default=False
        Post-fit calibration of the thresholds. False: they are the solution of the problem. True: quantiles of h over
        the training rows. "held-out": quantiles over the held-out rows of additional fits; a fraction ν_j of new rows
        is then expected outside. With rows streamed in blocks, it means True. See
        :class:`~infinitask.InfiniteOneClassSVM`.
    gamma : "auto", float, "median" or "scale", default="auto"
        Bandwidth of a kernel given by name. "auto": each feature is scaled by its interquartile range, and γ is five
        times that of "median".
    {parameters}

    Attributes
    ----------
    offset_ : float
        ``decision_function(X)`` is ``score_samples(X) - offset_``; the same as ``nu``.
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import QOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> X = make_mixture(200, random_state=0)
    >>> outside = (QOneClassSVM(nus=[0.1, 0.5]).fit(X).predict(X, [0.1, 0.5]) == -1).mean(axis=0)
    >>> bool(np.all(np.abs(outside - [0.1, 0.5]) < 0.05))
    True
    """

    _constraints: ClassVar = {"exact_fractions": partial(flag_or_choice, options=("held-out",))}

    nus: Any = (0.1, 0.3, 0.5, 0.7, 0.9)
    nu: float | None = None
    exact_fractions: bool | str = False

    def _task(self) -> Task:
        nus = _atoms("nus", self.nus, low=0.0, high=1.0, open_low=True)
        return LevelSetTask.over(nus, penalty=Ridge(), exact_fractions=self.exact_fractions)

    def _choices(self) -> dict[str, Any]:
        return {"alpha": 1.0, "task_kernel": "constant", **JOINT}
