"""Decisions for every cost: what a classifier with the cost-sensitive loss is asked for, however many θ it knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, column_or_1d

from infinitask._array import HostArray
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.estimators.problem import Problem, Recipe
from infinitask.losses import CostSensitiveHinge, Loss
from infinitask.predictive import (
    Confusion,
    CostCurve,
    NetBenefitCurve,
    ROCCurve,
    choose_theta,
    flip_probability,
    flip_score,
    on_side,
    theta_from_costs,
)

__all__ = ["CostSensitiveClassification"]

LEVELS = 257
"""Trade-offs at which questions about all of Θ are answered."""

BLOCK = 4_096
"""Rows whose answers at all levels are held at a time."""


class CostSensitiveClassification(ClassifierMixin, BaseInfiniteTask):
    """A classifier whose tasks are trade-offs; its constructor names the ``theta`` of ``predict``."""

    theta: Any

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
        n = max(float(np.count_nonzero(counted)), float(weight.sum()))
        return self._fit(recipe, X, signs, weight, classes_=classes, n_samples_fit_=n)

    def _look_at(self, recipe: Recipe, problem: Problem, z: HostArray) -> None:
        nodes, decisions = problem.quadrature.nodes, self._some_values(problem, z) > 0.0
        both = np.min(nodes) < 0.0 < np.max(nodes)
        if both and (np.all(decisions) or not np.any(decisions)):
            self._remark(
                "the decision is the same for all training rows and all θ of nodes_; the ridge outweighs the errors. "
                "Lower alpha, and set alpha_bias=0 if one class is rare."
            )

    # --------------------------------------------------------------------------------------- decisions
    def decision_function(self, X: Any, theta: Any = None, *, per_sample: bool = False) -> HostArray:
        """h(x)(θ), positive for the positive class: (n,) for one trade-off or one for each row, (n, q) for several.

        Without ``theta``, and with one trade-off θ₀ in the constructor, it is θ₀ − θ*(x) instead, θ*(x) being where the
        decision flips: the sign is the same, and the rows stand in the order of ``predict_proba``, as scikit-learn asks
        of a classifier that has both. Where a decision never flips, its distance from zero is added.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``.
        per_sample : bool, default=False
            Whether ``theta``, (n,), holds one trade-off for each row: the answer is h(x_i)(θ_i).
        """
        check_is_fitted(self)
        default = self._default_theta()
        if theta is not None or per_sample or np.ndim(default) > 0:
            return self._values(X, default if theta is None else theta, "theta", per_sample=per_sample)
        positive = self._values(X, default, "theta") > 0.0
        levels = self._levels()
        score = np.concatenate([flip_score(levels, h) for h in self._blocks(X, levels)])
        return on_side(default + score, positive, centre=0.0)

    def predict(self, X: Any, theta: Any = None, *, per_sample: bool = False) -> HostArray:
        """Labels: (n,) for one trade-off or one for each row, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``.
        per_sample : bool, default=False
            Whether ``theta``, (n,), holds one trade-off for each row, say from the costs of each.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(100, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
        >>> amount = np.linspace(1.0, 100.0, 100)  # what a missed positive costs; a look at a row costs 10
        >>> model.predict(X, model.theta_from_costs(amount, 10.0), per_sample=True).shape
        (100,)
        """
        check_is_fitted(self)
        theta = self._default_theta() if theta is None else theta
        positive = self._values(X, theta, "theta", per_sample=per_sample) > 0.0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def predict_proba(self, X: Any) -> HostArray:
        """P(y = classes_[1] | x) = (1 − θ*(x))/2, in the second column of (n, 2); θ*(x): where the decision flips.

        A decision that flips several times counts with the share of Θ on which it is negative. The larger column is
        always that of ``predict(X, theta=0)``: where the share says otherwise, p is put next to ½ on that side.

        The probability is no finer than what was learnt: on Θ = [low, high] it lies between (1 − high)/2 and
        (1 − low)/2, and it keeps 1/(n + 2) away from 0 and 1, n being ``n_samples_fit_``, for n rows tell nothing of
        rarer events.

        Parameters
        ----------
        X : array (n, d)

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(100, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
        >>> model.predict_proba(X[:3]).round(1).tolist(), y[:3].tolist()
        ([[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]], [0, 1, 0])
        """
        check_is_fitted(self)
        levels = self._levels()
        p = np.concatenate([flip_probability(levels, h, self.n_samples_fit_) for h in self._blocks(X, levels)])
        if 0.0 in levels if self._knows_nodes_only() else levels[0] <= 0.0 <= levels[-1]:
            p = on_side(p, self._values(X, 0.0, "theta") > 0.0, centre=0.5)
        return np.column_stack([1.0 - p, p])

    def _default_theta(self) -> Any:
        """The trade-off that is answered when none is asked for."""
        return self.theta

    def _levels(self) -> HostArray:
        """The trade-offs at which questions about all of Θ are answered; they depend on no data."""
        if self._knows_nodes_only():
            return np.unique(self.nodes_)
        return np.linspace(*self._ends(), LEVELS)

    def _blocks(self, X: Any, levels: HostArray) -> Iterator[HostArray]:
        """h at the levels, (rows, k), for successive blocks of rows."""
        X = self._inputs(X)
        for start in range(0, X.shape[0], BLOCK):
            yield self.field_(X[start : start + BLOCK, :], levels)

    # ------------------------------------------------------------------------------- choosing a trade-off
    @staticmethod
    def theta_from_costs(fn_cost: Any, fp_cost: Any) -> Any:
        """θ = (fn − fp)/(fn + fp): the trade-off at which the errors weigh as their costs do.

        Parameters
        ----------
        fn_cost, fp_cost : float or array (n,)
            Costs of a missed positive and of a false alarm; arrays: of each row.

        Returns
        -------
        float or ndarray (n,)

        Examples
        --------
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> InfiniteCostSensitiveClassifier.theta_from_costs(fn_cost=9.0, fp_cost=1.0)
        0.8
        >>> InfiniteCostSensitiveClassifier.theta_from_costs(fn_cost=[9.0, 30.0], fp_cost=10.0)
        array([-0.05263158,  0.5       ])
        """
        return theta_from_costs(fn_cost, fp_cost)

    def choose_theta(
        self,
        X: Any,
        y: Any,
        *,
        min_sensitivity: float | None = None,
        max_fpr: float | None = None,
        fn_cost: float | None = None,
        fp_cost: float | None = None,
        confidence: float | None = None,
    ) -> float:
        """The θ that answers a wish on held-out data: one of ``min_sensitivity``, ``max_fpr``, or the two costs.

        * ``max_fpr``: the largest sensitivity with FP/negatives ≤ ``max_fpr``;
        * ``min_sensitivity``: the fewest false alarms with TP/positives ≥ ``min_sensitivity``;
        * ``fn_cost`` and ``fp_cost``: the smallest (fn_cost·FN + fp_cost·FP)/n; among equals the one next to
          ``theta_from_costs``.

        With ``confidence`` = 1 − δ the bound holds for new data: with probability 1 − δ over the draw of (X, y),
        P(predict(X, θ) positive | y negative) ≤ ``max_fpr``, or the same for the positives that are missed. From the
        cautious end of Θ on, each level is tested against the bound by the binomial tail, until one fails; the order is
        fixed beforehand, so every test has level δ and nothing is assumed of the model. Where decisions rise with θ
        this is the order statistic of Neyman–Pearson classification (Tong, Feng and Li, 2018).

        X must be held out: on the rows of ``fit`` the errors are too few, and the guarantee is void.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        min_sensitivity, max_fpr : float in [0, 1] or None
        fn_cost, fp_cost : float or None
        confidence : float in (0, 1) or None
            For ``min_sensitivity`` and ``max_fpr``; None: the bound holds on (X, y).

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(600, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:200], y[:200])
        >>> theta = model.choose_theta(X[200:400], y[200:400], max_fpr=0.1, confidence=0.9)
        >>> bool((model.predict(X[400:], theta) == 1)[y[400:] == 0].mean() <= 0.1)
        True
        """
        return choose_theta(
            self._confusion(X, y),
            min_sensitivity=min_sensitivity,
            max_fpr=max_fpr,
            fn_cost=fn_cost,
            fp_cost=fp_cost,
            confidence=confidence,
        )

    # ------------------------------------------------------------------------------------------- curves
    def roc_curve(self, X: Any, y: Any, sample_weight: Any = None) -> ROCCurve:
        """θ ↦ (FPR, TPR) of ``predict(X, theta)``, with ``theta``, ``fpr``, ``tpr`` and ``area``.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(200, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100])
        >>> model.roc_curve(X[100:], y[100:]).area > 0.9
        True
        """
        return ROCCurve.of(self._confusion(X, y, sample_weight))

    def cost_curve(self, X: Any, y: Any, sample_weight: Any = None) -> CostCurve:
        """c(θ₀) = ((1 + θ₀)/2)·P(FN) + ((1 − θ₀)/2)·P(FP) of the model at θ = θ₀, beside those who do not look at x.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(200, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> curve = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100]).cost_curve(X[100:], y[100:])
        >>> bool((curve.cost <= curve.best_constant)[60:200].all())
        True
        """
        return CostCurve.of(self._confusion(X, y, sample_weight))

    def net_benefit_curve(self, X: Any, y: Any, sample_weight: Any = None) -> NetBenefitCurve:
        """NB(p_t) = TP/n − (FP/n)·p_t/(1 − p_t) of the model at θ = 1 − 2 p_t, beside treating all and treating none.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(200, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> curve = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X[:100], y[:100]).net_benefit_curve(X[100:], y[100:])
        >>> bool((curve.net_benefit > curve.treat_all)[curve.threshold > 0.3].all())
        True
        """
        return NetBenefitCurve.of(self._confusion(X, y, sample_weight))

    def _confusion(self, X: Any, y: Any, sample_weight: Any = None) -> Confusion:
        """The errors on (X, y) at every level."""
        check_is_fitted(self)
        y = column_or_1d(y)
        check_consistent_length(X, y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds {unknown[0]!r}; the model knows the labels {self.classes_.tolist()}.")
        weight = _check_sample_weight(sample_weight, y, dtype=np.float64, ensure_non_negative=True)
        levels = self._levels()
        return Confusion.count(levels, self._blocks(X, levels), y == self.classes_[1], weight)
