"""Infinite cost-sensitive classification: the costs of errors are chosen after training.

Two classes have one trade-off θ between their two errors; more than two classes are in
:mod:`infinitask.estimators._many_classes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from infinitask.calibration._class_probabilities import with_classes
from infinitask.estimators._base import Prepared
from infinitask.estimators._decisions import CostSensitiveEstimator
from infinitask.estimators._many_classes import costs_by_name, several_classes
from infinitask.estimators._parameters import check_given, recipe_of
from infinitask.estimators._shared import Continuum, Explorable, estimator
from infinitask.fitting._learn import generator
from infinitask.losses import CostSensitiveHinge
from infinitask.measures import Quadrature
from infinitask.tasks import ClassesTask, CostTask, Task
from infinitask.tasks.classes import class_costs, class_order

__all__ = ["InfiniteCostSensitiveClassifier"]


@estimator
class InfiniteCostSensitiveClassifier(Continuum, Explorable, CostSensitiveEstimator):
    """Cost-sensitive classification for all costs of errors from one fit; the costs are chosen at prediction.

    Two classes: min ∫ E c_θ(y) (1 − y f)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖² over h and b, with f = h(x)(θ) + b(θ),
    c_θ(y) = (1 + θ)/2 for y = 1 and (1 − θ)/2 for y = −1.
    θ ∈ [−1, 1] weighs the errors: both cost the same at θ = 0, false negatives cost more if θ > 0, and false positives
    cost more if θ < 0. The second of the sorted ``classes_`` is the positive one.

    K > 2 classes: θ = (θ_1, …, θ_K) are the costs of false negatives of each class, Σ_k θ_k = 1, and each class has a
    field f_k, Σ_k f_k = 0. The objective is ∫ E (K/2) Σ_{k≠y} θ_y (f_k + 1/(K − 1))₊ dμ(θ) plus the same ridges. The
    model predicts the class with the largest f_k(x)(θ); the optimal prediction is the one with the largest θ_k P(y = k
    | x).

    Parameters
    ----------
    theta : float or array, default=0.0
        The trade-off that ``predict`` uses by default. K > 2 classes: their costs, (K,), or 0 for equal costs.
    calibrated : "auto", True or False, default="auto"
        Whether decisions are calibrated after the fit, for new rows and rare classes. A row is positive at θ if its
        probability is above (1 − θ)/2. The probability is a logistic function of h(x)(θ) or of its rank (Platt, 1999),
        fitted to the held-out rows of ten additional, less accurate fits. Decisions then go from no positives at θ = −1
        to only positives at θ = 1. K > 2 classes: the largest θ_k p_k decides, with the fractions p of
        ``predict_proba``, calibrated on the held-out rows of four additional fits; see ``ShareScale``. False: the
        formula above. "auto": True if ``alpha`` is "auto", and False if it is a number. ``field_`` and its certificate
        do not change.
    smoothing : float, default=0.0
        κ: if above 0, the kink of the hinge is rounded: ψ₊^κ(1 − y f) replaces (1 − y f)₊. This is a statistical
        choice; the solver does not need it.
    quadrature : str or rule, default="gauss-legendre"
        As in other models. K > 2 classes: "gauss-legendre" means evenly spread costs, always the same; "sobol",
        "halton" and "monte-carlo" sample costs; rules on a grid do not apply.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on [−1, 1]. K > 2 classes: :class:`~infinitask.measures.ClassCosts`, which is the default,
        or ``Discrete`` of costs (m, K).
    n_nodes : int or None, default=None
        m; None: 32, and 64 for three to five classes.
    {parameters}

    Attributes
    ----------
    classes_ : ndarray (K,)
        The labels; of two, classes_[1] is the positive class.
    n_samples_fit_ : float
        The number of rows of positive weight, or the sum of the weights if that is larger: a weight of k means a row
        repeated k times.
    shift_ : Shift
        The shift added to h(x)(θ); only if decisions of two classes are ``calibrated``.
    share_scale_ : ShareScale
        The map from fractions to probabilities; only if decisions of K > 2 classes are ``calibrated``.
    class_order_ : ndarray (K,) of int
        K > 2 classes, from the rarest on: the class of each coordinate of evenly spread costs.
    nodes_, weights_ : ndarray
        The quadrature on Θ: (m,) both; K > 2 classes: nodes (m, K).
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask import InfiniteCostSensitiveClassifier
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifier().fit(X, y)
    >>> cautious, balanced, bold = model.predict(X, theta=[-0.9, 0.0, 0.9]).mean(axis=0)
    >>> bool(cautious < balanced < bold)  # the fraction of positives
    True

    Three classes: the costs of false negatives are chosen after the fit.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = InfiniteCostSensitiveClassifier(n_nodes=8, tol=1e-3).fit(X, y)
    >>> few, many = ((model.predict(X, costs) == 2).sum() for costs in ([1, 9, 1], [1, 1, 9]))
    >>> bool(few <= 50 <= many)
    True
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    theta: Any = 0.0
    calibrated: bool | str = "auto"
    smoothing: float = 0.0

    def _task(self) -> Task:
        """The task of two classes."""
        return CostTask(CostSensitiveHinge(float(self.smoothing)), calibrated=self._is_calibrated())

    def _in_whole(self, y: Any, sample_weight: Any) -> bool:
        return several_classes(y, sample_weight)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        if several_classes(y, sample_weight):
            return self._prepare_many(X, y, sample_weight)
        return super()._prepare(X, y, sample_weight)

    def _prepare_many(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Prepare rows of more than two classes, with labels in the coding of the loss."""
        given = self.get_params(deep=False)
        check_given(given, self._constraints)
        X, y, weight, learnt = self._labelled(X, y, sample_weight)
        classes, counted = learnt["classes_"], weight > 0.0
        label = np.searchsorted(classes, y[counted])
        class_costs(costs_by_name(self.theta, classes), classes.size)
        task = ClassesTask.of(
            class_order(X[counted], label, weight[counted], classes.size),
            self.measure,
            self.quadrature,
            self.n_nodes,
            generator(self.random_state),
            smoothing=self.smoothing,
            calibrated=self._is_calibrated(),
        )
        targets = np.full(y.shape, task.codes[0])
        targets[counted] = task.codes[label]
        learnt["class_order_"] = task.class_order
        kernels = task.kernels(self.task_kernel, self.task_gamma, self.bias_kernel)
        return Prepared(recipe_of(given, task, own_measure=True, **kernels), X, targets, weight, learnt)

    def _node_rule(self) -> Quadrature:
        if self.classes_.size == 2:
            return super()._node_rule()
        return Quadrature(with_classes(self.nodes_), np.repeat(self.weights_ / self.classes_.size, self.classes_.size))
