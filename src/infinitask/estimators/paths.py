"""Regressions along a path: every width of the tube of an SVR, every weight of a kernel ridge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from infinitask._array import HostArray
from infinitask.estimators._checks import check_number
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.estimators.problem import Recipe
from infinitask.losses import EpsilonInsensitive, Loss, Squared
from infinitask.measures import Measure, Uniform
from infinitask.penalties import IntegratedRidge

__all__ = ["InfiniteKernelRidge", "InfiniteSVR"]

DECADES = 30.0
"""log₁₀ λ lies between ± this: beyond, a ridge weight is lost in the rounding of any Gram matrix of sensible size."""

TASK_GAPS = 8.0
"""The default bandwidth over log₁₀ λ, in mean gaps between nodes. Along the path every component of the fit is a
logistic curve of log₁₀ λ. Over seven decades the 5/2-Matérn kernel of this width follows the worst of them between 30
Gauss–Legendre nodes to 5e-5 and between 50 to 4e-6 (with a third of the width to 2e-4 and 1e-4), and gives the values
at the nodes back to 1e-10 and 3e-9."""

GAUSSIAN_GAPS = 2.5
"""The same for a Gaussian kernel: wider ones lose the values at the nodes to rounding. At 25 nodes it is within 1e-7 at
them and 5e-5 between, at 40 within 6e-4 and 1e-3 only; this is why it is not the default."""


class InfiniteSVR(RegressorMixin, BaseInfiniteTask):
    """min_h ∫ E (|y − h(x)(θ) − b(θ)| − θ)₊ dμ(θ) + (λ/2)‖h‖² + (λ_b/2)‖b‖², θ = ε the half-width of the tube.

    One fit learns the support vector regression of every ε; how large an error may be before it counts is chosen at
    prediction.

    Parameters
    ----------
    epsilon : float, default=0.1
        The half-width that ``predict`` and ``score`` use when none is asked for, in units of y.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on the half-widths; None: uniform on [0, 1], which suits a standardised y.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    With ``task_kernel="diagonal"``, ``bias_kernel="diagonal"`` and ``alpha_bias=0`` every node θ_j is a problem of its
    own, the one of ``sklearn.svm.SVR`` with ε = θ_j and C = w_j / (n λ), where w_j is the node's entry of ``weights_``.
    Sample weights, normalised to sum one, take the place of 1/n.

    Examples
    --------
    >>> from infinitask import InfiniteSVR
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteSVR(n_nodes=20).fit(X, y)
    >>> model.predict(X, epsilon=[0.0, 0.25, 0.5]).shape
    (100, 3)
    >>> model.dual_gap_ <= model.tol
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.1,
        kernel: Any = "rbf",
        gamma: Any = "median",
        task_kernel: Any = "rbf",
        task_gamma: Any = None,
        bias_kernel: Any = "task",
        alpha: float = 1e-3,
        alpha_bias: float | None = None,
        measure: Any = None,
        quadrature: Any = "gauss-legendre",
        n_nodes: int | None = None,
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

    def _loss(self) -> Loss:
        return EpsilonInsensitive()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the regression of every half-width.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        recipe = self._recipe()
        check_number("epsilon", self.epsilon, low=0.0, open_low=False)
        self._check_default("epsilon", recipe)
        X, y, weight = self._validated(X, y, sample_weight, y_numeric=True)
        return self._fit(recipe, X, y.astype("float64"), weight)

    def predict(self, X: Any, epsilon: Any = None) -> HostArray:
        """The regression: (n,) for one half-width, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        epsilon : float, array (q,) or None
            Half-widths of the tube; None: the constructor's ``epsilon``.
        """
        return self._values(X, self.epsilon if epsilon is None else epsilon, "epsilon")


class InfiniteKernelRidge(RegressorMixin, BaseInfiniteTask):
    """min_h ∫ ½ E (y − h(x)(θ))² + ½ 10^θ ‖h(·)(θ)‖² dμ(θ), θ = log₁₀ λ: the regularisation path as one function.

    Nothing couples the tasks: at every node h(·)(θ) is the kernel ridge regression with λ = 10^θ, and between the nodes
    the task kernel interpolates. One fit, and the weight of the ridge is chosen at prediction.

    Parameters
    ----------
    log_alpha : float, default=-3.0
        log₁₀ λ that ``predict`` and ``score`` use when none is asked for.
    task_kernel : str or task kernel object, default="matern52"
        How the path is interpolated between the nodes: "matern52", "matern32", "rbf", or an object. "diagonal" knows
        the nodes only; one that leaves h less free there ("constant", "polynomial", a wide Gaussian) couples the tasks.
    task_gamma : float or None, default=None
        Bandwidth of a task kernel given by name; None: σ is eight mean gaps between nodes, 2.5 for "rbf".
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on log₁₀ λ; None: uniform on [−6, 1]. It decides where the nodes lie, and how much each counts in
        ``objective_`` and ``dual_gap_``.
    n_nodes : int or None, default=None
        m; None: 30. About four for a decade let values between the nodes agree to 1e-4.
    {parameters}

    Attributes
    ----------
    {attributes}

    Notes
    -----
    λ weighs the *mean* of the squared errors, so ``sklearn.kernel_ridge.KernelRidge(alpha=n * λ)`` is the same
    regression. With sample weights ω_i, here normalised to sum one, it is ``KernelRidge(alpha=λ)`` fitted with
    ``sample_weight=ω``. As there, no bias is learnt: centre y.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.kernel_ridge import KernelRidge
    >>> from infinitask import InfiniteKernelRidge
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(100, random_state=0)
    >>> path = InfiniteKernelRidge(gamma=5.0).fit(X, y)
    >>> path.predict(X, log_alpha=[-5.0, -3.0, -1.0]).shape
    (100, 3)
    >>> refitted = KernelRidge(alpha=100 * 10**-3.0, kernel="rbf", gamma=5.0).fit(X, y)
    >>> bool(np.allclose(path.predict(X, log_alpha=-3.0), refitted.predict(X), atol=1e-3))
    True
    """

    _default_nodes = 30
    # The ridge weight is the task and there is no bias: what other estimators take as parameters is fixed here.
    alpha: float = 1.0
    alpha_bias: float | None = None
    bias_kernel: Any = None

    def __init__(
        self,
        *,
        log_alpha: float = -3.0,
        kernel: Any = "rbf",
        gamma: Any = "median",
        task_kernel: Any = "matern52",
        task_gamma: Any = None,
        measure: Any = None,
        quadrature: Any = "gauss-legendre",
        n_nodes: int | None = None,
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

    def _loss(self) -> Loss:
        return Squared()

    def _default_measure(self) -> Measure:
        return Uniform(-6.0, 1.0)

    def _check_measure(self, measure: Measure, loss: Loss) -> None:
        low, high = (float(end(edge)) for end, edge in zip((np.min, np.max), measure.support, strict=True))
        if measure.dim != 1 or not (low >= -DECADES and high <= DECADES):
            raise ValueError(
                f"measure={measure!r} lives on [{low:g}, {high:g}] in {measure.dim} dimensions; log₁₀ λ is one number "
                f"between −{DECADES:g} and {DECADES:g}. Use for instance Uniform(-6, 1)."
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the path.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        recipe = self._recipe()
        check_number("log_alpha", self.log_alpha, low=-DECADES, high=DECADES, open_low=False)
        self._check_default("log_alpha", recipe)
        X, y, weight = self._validated(X, y, sample_weight, y_numeric=True)
        # The weight of the ridge is 10^low times ρ(θ) = 10^(θ − low): features are then made for the smallest λ.
        low = float(recipe.measure.support[0][0])
        ridge = IntegratedRidge(lambda nodes: 10.0 ** (nodes[:, 0] - low))
        gamma = self._interpolation(recipe) if recipe.task_gamma is None else recipe.task_gamma
        recipe = replace(recipe, alpha=10.0**low, penalty=ridge, task_gamma=gamma)
        return self._fit(recipe, X, y.astype("float64"), weight)

    def predict(self, X: Any, log_alpha: Any = None) -> HostArray:
        """The ridge regression: (n,) for one weight, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        log_alpha : float, array (q,) or None
            log₁₀ λ; None: the constructor's ``log_alpha``.
        """
        return self._values(X, self.log_alpha if log_alpha is None else log_alpha, "log_alpha")

    def _interpolation(self, recipe: Recipe) -> float:
        """γ = 1/(2σ²) of the task kernel, σ so many gaps between nodes; 1 where there is one node only."""
        low, high = (float(end[0]) for end in recipe.measure.support)
        atoms = recipe.measure.atoms()
        nodes = recipe.n_nodes if atoms is None else len(atoms.nodes)
        gaussian = isinstance(recipe.task_kernel, str) and recipe.task_kernel in ("rbf", "gaussian")
        sigma = (GAUSSIAN_GAPS if gaussian else TASK_GAPS) * (high - low) / max(1, nodes - 1)
        return 0.5 / sigma**2 if sigma > 0.0 else 1.0
