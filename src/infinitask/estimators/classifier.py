"""Infinite cost-sensitive classification: the trade-off between the two errors is chosen after training."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from infinitask._array import HostArray
from infinitask.estimators.base import BaseInfiniteTask, check_number
from infinitask.losses import CostSensitiveHinge, Loss

__all__ = ["InfiniteCostSensitiveClassifier"]


class InfiniteCostSensitiveClassifier(ClassifierMixin, BaseInfiniteTask):
    """min_h ∫ E c_θ(y) (1 − y h(x)(θ))₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖², c_θ(y) = (1 + θ)/2 for y = 1, (1 − θ)/2 for y =
    −1.

    θ ∈ [−1, 1] weighs the errors: at θ = 0 both cost the same, towards 1 a missed positive costs more, towards −1 a
    false alarm does. The second of the sorted ``classes_`` is the positive one.

    Parameters
    ----------
    theta : float or array, default=0.0
        The trade-off that ``predict`` answers when none is asked for.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on [−1, 1].
    n_nodes : int or None, default=None
        m; None: 32.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray (2,)
        The labels; classes_[1] is the positive class.
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifier().fit(X, y)
    >>> cautious, balanced, bold = model.predict(X, theta=[-0.9, 0.0, 0.9]).mean(axis=0)
    >>> bool(cautious < balanced < bold)  # the share of alarms
    True
    """

    _default_nodes = 32

    def __init__(
        self,
        *,
        theta: Any = 0.0,
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
    ) -> None:
        super().__init__(
            kernel=kernel,
            gamma=gamma,
            task_kernel=task_kernel,
            task_gamma=task_gamma,
            bias_kernel=bias_kernel,
            alpha=alpha,
            alpha_bias=alpha_bias,
            measure=measure,
            quadrature=quadrature,
            n_nodes=n_nodes,
            features=features,
            rank=rank,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            device=device,
            random_state=random_state,
            verbose=verbose,
        )
        self.theta = theta

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _loss(self) -> Loss:
        return CostSensitiveHinge()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the decision function of every trade-off.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
            Any two labels.
        sample_weight : array (n,) or None
        """
        recipe = self._recipe()
        self._check_default("theta", recipe)
        X, y, weight = self._validated(X, y, sample_weight)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; y must hold two classes. "
                "Wrap the classifier in OneVsRestClassifier for more."
            )
        counted = weight > 0.0
        classes = np.unique(y[counted])
        if classes.size != 2:
            raise ValueError(
                f"y holds {classes.size} class ({classes.tolist()}) among rows of positive weight; two classes are "
                "needed to learn a decision between them."
            )
        signs = np.where(y == classes[1], 1.0, -1.0)
        return self._fit(recipe, X, signs, weight, classes_=classes)

    def decision_function(self, X: Any, theta: Any = None) -> HostArray:
        """h(x)(θ), positive for the positive class: (n,) for one trade-off, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``.
        """
        return self._values(X, self.theta if theta is None else theta, "theta")

    def predict(self, X: Any, theta: Any = None) -> HostArray:
        """Labels: (n,) for one trade-off, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``.
        """
        check_is_fitted(self)
        positive = self.decision_function(X, theta) > 0.0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    @staticmethod
    def theta_from_costs(fn_cost: float, fp_cost: float) -> float:
        """θ = (fn − fp)/(fn + fp): the trade-off at which the errors weigh as their costs do.

        Parameters
        ----------
        fn_cost, fp_cost : float
            Costs of a missed positive and of a false alarm.

        Examples
        --------
        >>> InfiniteCostSensitiveClassifier.theta_from_costs(fn_cost=9.0, fp_cost=1.0)
        0.8
        """
        fn_cost = check_number("fn_cost", fn_cost, low=0.0, open_low=False)
        fp_cost = check_number("fp_cost", fp_cost, low=0.0, open_low=False)
        if fn_cost + fp_cost == 0.0:
            raise ValueError("fn_cost and fp_cost are both 0; at least one error must cost something.")
        return (fn_cost - fp_cost) / (fn_cost + fp_cost)
