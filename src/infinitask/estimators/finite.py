"""The finite relatives that the paper compares with: a few tasks, named before training, and a free bias for each.

They are the same problem with other choices of μ, k_Θ and the ridge, and the same solver with the same certificate.

=====================================  ====================================  ==================  ============
estimator                              h                                     ridge               bias
=====================================  ====================================  ==================  ============
:class:`JointQuantileRegressor`        k_X ⊗ a Gaussian kernel of levels     (λ/2)‖h‖²           b_j, free
:class:`IndependentQuantileRegressor`  one function of x for each level      mean (λ/2)‖h_j‖²    b_j, free
:class:`IndependentCostSensitive\
Classifier`                            one function of x for each θ          mean (λ/2)‖h_j‖²    b_j, free
:class:`QOneClassSVM`                  one function of x for all levels      ½‖h‖²               −t_j, free
=====================================  ====================================  ==================  ============

Between their tasks they know nothing. Finite multi-task learning with any other matrix of task similarities is
``InfiniteTaskEstimator(loss, measure=Discrete(...), task_kernel=TaskMatrix(A))``, and a model that is affine in x and
piecewise linear in θ (Takeuchi, Hongo, Sugiyama and Nakajima, 2013) is ``InfiniteTaskEstimator(loss, kernel="linear",
task_kernel="piecewise-linear")``.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators._checks import LARGEST, parse_tasks
from infinitask.estimators._costs import CostSensitiveClassification
from infinitask.estimators._level_sets import LevelSets
from infinitask.estimators._quantiles import QuantileRegression
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.estimators.problem import Recipe
from infinitask.losses import Loss, Pinball
from infinitask.measures import Discrete, Measure, Uniform
from infinitask.penalties import IntegratedRidge, Ridge

__all__ = [
    "IndependentCostSensitiveClassifier",
    "IndependentQuantileRegressor",
    "JointQuantileRegressor",
    "QOneClassSVM",
]


class _FiniteTasks(BaseInfiniteTask):
    """Tasks named in the constructor, each with a bias of its own that no ridge holds."""

    # What other estimators take as parameters is fixed here.
    task_kernel: Any = "diagonal"
    task_gamma: Any = None
    bias_kernel: Any = "diagonal"
    alpha_bias: float | None = 0.0
    measure: Any = None
    quadrature: Any = "discrete"
    n_nodes: int | None = None

    @abstractmethod
    def _named(self) -> tuple[str, Any]:
        """The parameter that names the tasks, and its value."""

    def _default_measure(self) -> Measure:
        name, tasks = self._named()
        try:
            found = np.atleast_1d(np.asarray(tasks, dtype=np.float64))
            measure = Discrete(found)
            measure.atoms()
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}={tasks!r} was given; it must be a list of distinct finite numbers, the tasks to learn."
            ) from None
        return measure

    def _check_default(self, name: str, recipe: Recipe) -> bool:
        return True if getattr(self, name) is None else super()._check_default(name, recipe)

    def _tasks(self, theta: Any, name: str) -> tuple[HostArray, bool]:
        tasks, single = parse_tasks(theta, name, Uniform(-LARGEST, LARGEST))
        known = np.isin(tasks[:, 0], self.nodes_)
        if not np.all(known):
            raise ValueError(
                f"{name} contains {tasks[~known][0, 0]:g}; the model knows {self.nodes_.tolist()} and nothing between. "
                f"Ask for one of them, or fit with it among {self._named()[0]}."
            )
        return tasks, single


class JointQuantileRegressor(_FiniteTasks, QuantileRegression):
    """min (1/nm) Σ_ij ρ_θj(y_i − h_j(x_i) − b_j) + (λ/2)‖h‖², h in the RKHS of k_X(x, x')·exp(−γ(θ_j − θ_j')²).

    Joint quantile regression (Sangnier, Fercoq and d'Alché-Buc, 2016): a few levels learnt together, with a free bias
    for each. Their C is 1/(λ n m).

    Parameters
    ----------
    quantiles : array, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        The levels, all that the model knows; ``predict`` answers all of them when none is asked for.
    task_kernel : str or task kernel object, default="rbf"
        The kernel of the levels.
    task_gamma : float or None, default=None
        Its bandwidth; None: from the median distance of the levels.
    {parameters}

    Attributes
    ----------
    calibration_ : ConformalCalibration
        After :meth:`conformalize` only.
    {attributes}

    Examples
    --------
    >>> from infinitask import JointQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = JointQuantileRegressor(quantiles=[0.1, 0.5, 0.9]).fit(X, y)
    >>> model.predict(X).shape, model.predict(X, 0.5).shape
    ((100, 3), (100,))
    >>> bool(abs((y < model.predict(X, 0.9)).mean() - 0.9) <= 0.05)  # a free bias leaves its share below
    True
    """

    noncrossing = 0.0
    _rearranged_weight = 0.0

    def __init__(
        self,
        *,
        quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95),
        kernel: Any = "rbf",
        gamma: Any = "median",
        task_kernel: Any = "rbf",
        task_gamma: Any = None,
        alpha: float = 1e-3,
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self._store(locals())

    def _named(self) -> tuple[str, Any]:
        return "quantiles", self.quantiles

    def _loss(self) -> Loss:
        return Pinball()


class IndependentQuantileRegressor(_FiniteTasks, QuantileRegression):
    """min (1/n) Σ_i ρ_θ(y_i − f(x_i) − b) + (λ/2)‖f‖², for each level θ by itself.

    Kernel quantile regression (Takeuchi, Le, Sears and Smola, 2006), level by level. Their C is 1/(λ n).

    Parameters
    ----------
    quantiles : array, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        The levels, all that the model knows; ``predict`` answers all of them when none is asked for.
    {parameters}

    Attributes
    ----------
    calibration_ : ConformalCalibration
        After :meth:`conformalize` only.
    {attributes}

    Examples
    --------
    >>> from infinitask import IndependentQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> IndependentQuantileRegressor(quantiles=[0.1, 0.9]).fit(X, y).predict(X).shape
    (100, 2)
    """

    noncrossing = 0.0
    _rearranged_weight = 0.0

    def __init__(
        self,
        *,
        quantiles: Any = (0.05, 0.25, 0.5, 0.75, 0.95),
        kernel: Any = "rbf",
        gamma: Any = "median",
        alpha: float = 1e-3,
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self._store(locals())

    def _named(self) -> tuple[str, Any]:
        return "quantiles", self.quantiles

    def _loss(self) -> Loss:
        return Pinball()

    def _penalty(self) -> Ridge | IntegratedRidge:
        return IntegratedRidge()


class IndependentCostSensitiveClassifier(_FiniteTasks, CostSensitiveClassification):
    """min (1/n) Σ_i c_θ(y_i) (1 − y_i (f(x_i) + b))₊ + (λ/2)‖f‖², for each trade-off θ by itself.

    c_θ(y) = (1 + θ)/2 for y = 1 and (1 − θ)/2 for y = −1: a support vector machine with class weights for every θ, with
    C = 1/(λ n).

    Parameters
    ----------
    thetas : array, default=(-0.9, -0.5, 0.0, 0.5, 0.9)
        The trade-offs, all that the model knows.
    theta : float, array or None, default=None
        The trade-off among them that ``predict`` answers when none is asked for; None: the one closest to 0.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray (2,)
    n_samples_fit_ : float
        Rows of the fit, or their total weight.
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

    def __init__(
        self,
        *,
        thetas: Any = (-0.9, -0.5, 0.0, 0.5, 0.9),
        theta: Any = None,
        kernel: Any = "rbf",
        gamma: Any = "median",
        alpha: float = 1e-3,
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self._store(locals())

    def _named(self) -> tuple[str, Any]:
        return "thetas", self.thetas

    def _default_theta(self) -> Any:
        return self.nodes_[np.argmin(np.abs(self.nodes_))] if self.theta is None else self.theta

    def _penalty(self) -> Ridge | IntegratedRidge:
        return IntegratedRidge()


class QOneClassSVM(_FiniteTasks, LevelSets):
    """min ½‖h‖² + (1/q) Σ_j [(1/(ν_j n)) Σ_i (t_j − h(x_i))₊ − t_j]: one function of x, one free threshold a level.

    The q-one-class support vector machine (Glazer, Lindenbaum and Markovitch, 2013). One function for all levels makes
    the sets nested wherever the thresholds are in order.

    Parameters
    ----------
    nus : array, default=(0.1, 0.3, 0.5, 0.7, 0.9)
        The outlier fractions, all that the model knows.
    nu : float or None, default=None
        The fraction among them that ``predict`` uses when none is asked for; None: the smallest.
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

    task_kernel = "constant"
    alpha = 0.0
    nested = False
    exact_fractions = False

    def __init__(
        self,
        *,
        nus: Any = (0.1, 0.3, 0.5, 0.7, 0.9),
        nu: float | None = None,
        kernel: Any = "rbf",
        gamma: Any = "median",
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self._store(locals())

    def _named(self) -> tuple[str, Any]:
        return "nus", self.nus

    def _default_nu(self) -> Any:
        return np.min(self.nodes_) if self.nu is None else self.nu
