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
from infinitask.estimators._parameters import check_domain, check_given, recipe_of
from infinitask.estimators._shared import Continuum, Explorable, estimator
from infinitask.fitting._learn import generator
from infinitask.losses import CostSensitiveHinge
from infinitask.measures import ClassCosts, Measure, Quadrature
from infinitask.measures._spaces import as_measure
from infinitask.tasks import AgainstRestTask, ClassesTask, CostTask, Task
from infinitask.tasks.classes import class_costs, class_order

__all__ = ["InfiniteCostSensitiveClassifier"]


@estimator
class InfiniteCostSensitiveClassifier(Continuum, Explorable, CostSensitiveEstimator):
    """Cost-sensitive classification for all costs of errors from one fit; the costs are chosen at prediction.

    Two classes: min ∫ E c_θ(y) (1 − y f)₊ dθ + (λ/2)‖h‖² + (λ_b/2)‖b‖² over h and b, with f = h(x)(θ) + b(θ),
    c_θ(y) = (1 + θ)/2 for y = 1 and (1 − θ)/2 for y = −1.
    θ ∈ [−1, 1] weighs the errors: both cost the same at θ = 0, false negatives cost more if θ > 0, and false positives
    cost more if θ < 0. The second of the sorted ``classes_`` is the positive one.

    K > 2 classes: each class has a field f_k against all others, with s_k = 1 if y = k and s_k = −1 otherwise. All are
    solved together: min Σ_k [(1/√K) ∫ E c_θ(s_k) (1 − s_k f_k)₊ dμ(θ) + (λ/2)‖h_k‖² + (λ_b/2)‖b_k‖²]. Their decisions
    at all trade-offs are coupled to probabilities p_k, and with costs θ_k of false negatives of each class the model
    predicts the class with the largest θ_k p_k.

    Parameters
    ----------
    theta : float or array, default=0.0
        The trade-off that ``predict`` uses by default. K > 2 classes: their costs, (K,), or 0 for equal costs.
    calibrated : "auto", True or False, default="auto"
        Whether decisions are calibrated after the fit, for new rows and rare classes. A row is positive at θ if its
        probability is above (1 − θ)/2. The probability is a logistic function of h(x)(θ) or of its rank (Platt, 1999),
        fitted to the held-out rows of ten additional, less accurate fits. Decisions then go from no positives at θ = −1
        to only positives at θ = 1. K > 2 classes: ``predict_proba`` is calibrated on the held-out rows of four
        additional fits, or of ten with few rows; see ``class_scale_``. False: the formula above; K > 2 classes: the
        odds of the decisions are normalised. "auto": True if ``alpha`` is "auto", and False if it is a number.
        ``field_`` and its certificate do not change.
    smoothing : float, default=0.0
        κ: if above 0, the kink of the hinge is rounded: ψ₊^κ(1 − y f) replaces (1 − y f)₊. This is a statistical
        choice; the solver does not need it.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on [−1, 1].
    n_nodes : int or None, default=None
        m; None: 32, 16 for three to five classes, and 8 for more.
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
    class_scale_ : ClassScale
        The map p_k ∝ exp(a o_k + c m_k + b_k) from the log-odds o_k of the decisions of a class, and from the mean m_k
        of its field, to probabilities; only if decisions of K > 2 classes are ``calibrated``.
    class_order_ : ndarray (K,) of int
        K > 2 classes: the class of each field, in an order that does not depend on names and on the order of rows.
    nodes_, weights_ : ndarray (m,)
        The quadrature on Θ.
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
        order = class_order(X[counted], label)
        task = AgainstRestTask.of(
            classes.size,
            _trade_offs(self.measure),
            self.quadrature,
            self.n_nodes,
            generator(self.random_state),
            smoothing=self.smoothing,
            calibrated=self._is_calibrated(),
        )
        targets = np.full(y.shape, task.codes[0])
        targets[counted] = task.codes[np.argsort(order)[label]]
        learnt["class_order_"] = order
        kernels = task.kernels(self.task_kernel, self.task_gamma, self.bias_kernel)
        return Prepared(recipe_of(given, task, own_measure=True, **kernels), X, targets, weight, learnt)

    def _node_rule(self) -> Quadrature:
        rule, K = super()._node_rule(), self.classes_.size
        if K == 2:
            return rule
        if isinstance(self.recipe_.task, ClassesTask):
            return Quadrature(with_classes(self.nodes_, K), np.repeat(self.weights_ / K, K))
        return Quadrature(with_classes(rule.nodes, K), np.repeat(rule.weights / K, K))


def _trade_offs(measure: Any) -> Measure:
    """The measure on the trade-offs of each class; None: uniform on [−1, 1]."""
    over = as_measure(measure, CostTask().measure)
    if isinstance(over, ClassCosts):
        raise ValueError(
            f"measure={measure!r} was given; each class has trade-offs in [−1, 1] against all others, and costs are "
            "given to predict. Leave out measure, or give one on [−1, 1], such as Uniform(-0.9, 0.9)."
        )
    check_domain(over, CostSensitiveHinge())
    return over
