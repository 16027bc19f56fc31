"""Decisions over a range of costs: labels, probabilities, the choice of a trade-off, and curves over all trade-offs.

Two classes have one trade-off θ between their two errors. The predictions of more than two classes are in
:mod:`infinitask.estimators._many_classes`.
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, column_or_1d

from infinitask._base.arrays import HostArray
from infinitask._base.validation import flag, naming
from infinitask.calibration._sign_change import flip_probability, flip_score, on_side
from infinitask.calibration._thresholds import EXTREME_TRADE_OFFS
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.estimators._many_classes import (
    check_one_type,
    cost_matrix,
    costs_of_matrix,
    decision_values,
    probabilities,
)
from infinitask.estimators._parameters import weights_of
from infinitask.estimators._sources import in_kind, in_memory
from infinitask.predictive import Confusion, CostCurve, NetBenefitCurve, ROCCurve, choose_theta, theta_from_costs

TRADE_OFFS = 257
"""Equally spaced trade-offs at which probabilities and curves over Θ are computed."""


class CostSensitiveEstimator(ClassifierMixin, BaseInfiniteTask):
    """Base class of classifiers whose costs of errors are chosen at prediction."""

    theta: Any
    calibrated: Any

    _asked_by = "theta"

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Check parameters and data of two classes; labels are coded as −1 and 1."""
        recipe = self.recipe()
        in_memory(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X, y, weight, learnt = self._labelled(X, y, sample_weight)
        kind, classes = type_of_target(y, input_name="y", raise_unknown=True), learnt["classes_"]
        if kind not in ("binary", "multiclass") or classes.size > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}; y must hold two classes. "
                "InfiniteCostSensitiveClassifier takes more."
            )
        if classes.size != 2:
            raise ValueError(
                f"y holds {classes.size} class ({classes.tolist()}) among rows of positive weight; two classes are "
                "needed to learn a decision between them."
            )
        return Prepared(recipe, X, np.where(y == classes[1], 1.0, -1.0), weight, learnt)

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> tuple[HostArray, Any, HostArray, dict[str, Any]]:
        """X, labels and weights, checked, and the classes and the number of the rows that count."""
        X, y, weight = self._rows(X, y, sample_weight)
        check_one_type(y)
        with naming("y"):
            check_classification_targets(y)
        counted = weight > 0.0
        n = max(float(np.count_nonzero(counted)), float(weight.sum()))
        return X, y, weight, {"classes_": np.unique(y[counted]), "n_samples_fit_": n}

    def _is_calibrated(self) -> bool:
        """Whether decisions are calibrated."""
        calibrated, automatic = self.calibrated, isinstance(self.get_params(deep=False)["alpha"], str)
        return automatic if isinstance(calibrated, str) else bool(calibrated)

    # --------------------------------------------------------------------------------------- decisions
    @in_kind
    def decision_function(self, X: Any, theta: Any = None, *, per_sample: bool = False) -> HostArray:
        """h(x)(θ), positive for the positive class: (n,) for one trade-off or one for each row, (n, q) for several.

        Without ``theta``, and with one trade-off θ₀ in the constructor, it is θ₀ − θ*(x) instead, where θ*(x) is the
        trade-off at which the decision flips. The sign is the same, and the rows have the order of ``predict_proba``,
        as scikit-learn requires. If a decision never flips, its distance from zero is added.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``. With K > 2 classes: the costs of false negatives of each
            class, (K,) or (q, K). The result is then log θ_k p_k(x) minus its mean, (n, K) or (n, q, K), and the
            largest value decides.
        per_sample : bool, default=False
            Whether ``theta``, (n,) or (n, K), holds one trade-off for each row: the result is h(x_i)(θ_i).
        """
        per_sample = flag("per_sample", per_sample)
        if self._has_several_classes():
            return decision_values(self, X, self.theta if theta is None else theta, per_sample)
        default = self._default_theta()
        if theta is not None or per_sample or np.ndim(default) > 0:
            return self._values(X, default if theta is None else theta, "theta", per_sample=per_sample)
        positive = self._values(X, default, "theta") > 0.0
        levels = self._trade_offs()
        score = np.concatenate([flip_score(levels, h) for h in self._at_levels(self._inputs(X), levels)])
        return on_side(default + score, positive, centre=0.0)

    @in_kind
    def predict(self, X: Any, theta: Any = None, *, per_sample: bool = False, costs: Any = None) -> HostArray:
        """Labels: (n,) for one trade-off or one for each row, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``. With K > 2 classes: the cost of a false negative of each
            class, (K,) or (q, K), in the order of ``classes_`` and on any scale, or with their names: a dictionary
            {class: cost}, a series, or a table with a column for each class.
        per_sample : bool, default=False
            Whether ``theta``, (n,) or (n, K), holds one trade-off for each row, for example from its own costs.
        costs : array (K, K) or (n, K, K), or None
            In place of ``theta``: costs[i, j] is the cost of predicting classes_[j] if the truth is classes_[i], or a
            gain if it is negative; one matrix, or one for each row. A data frame with the names of the classes as
            index and columns may have them in any order. The prediction has the smallest cost: the decision at θ if
            the cost of an error depends only on the true class, and else the smallest Σ_i p_i costs[i, j], with p from
            ``predict_proba``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import make_moons
        >>> X, y = make_moons(100, noise=0.3, random_state=0)
        >>> from infinitask import InfiniteCostSensitiveClassifier
        >>> model = InfiniteCostSensitiveClassifier(n_nodes=8).fit(X, y)
        >>> amount = np.linspace(1.0, 100.0, 100)  # the cost of a false negative; a false positive costs 10
        >>> model.predict(X, model.theta_from_costs(amount, 10.0), per_sample=True).shape
        (100,)
        >>> bool((model.predict(X, costs=[[0.0, 1.0], [9.0, 0.0]]) == model.predict(X, theta=0.8)).all())
        True
        """
        several, per_sample, name = self._has_several_classes(), flag("per_sample", per_sample), "theta"
        if costs is not None:
            if theta is not None or per_sample:
                raise ValueError("costs was given with theta or per_sample; costs say all of it: leave these out.")
            more = cost_matrix(costs, self.classes_, _num_samples(X))
            misses = costs_of_matrix(more)
            if misses is None:  # costs that depend on the wrong class too are no trade-off
                cheapest = np.argmin(np.einsum("ni,nij->nj", self.predict_proba(X), more), axis=1)
                return np.asarray(self.classes_[cheapest])
            theta = misses if several else self.theta_from_costs(misses[:, 1], misses[:, 0])
            per_sample, name = len(theta) > 1, "costs"
            theta = theta if per_sample else theta[0]
        if several:
            values = decision_values(self, X, self.theta if theta is None else theta, per_sample)
            return np.asarray(self.classes_[np.argmax(values, axis=-1)])
        theta = self._default_theta() if theta is None else theta
        if not per_sample and np.ndim(theta) == 1 and np.size(theta) == _num_samples(X) > TRADE_OFFS:
            warnings.warn(
                f"theta has {np.size(theta)} trade-offs, as many as X has rows, and all of them are predicted for each "
                "row; for one trade-off for each row give per_sample=True.",
                UserWarning,
                stacklevel=2,
            )
        positive = self._values(X, theta, name, per_sample=per_sample) > 0.0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def _has_several_classes(self) -> bool:
        """Whether the fitted model decides between more than two classes."""
        check_is_fitted(self)
        return bool(self.classes_.size > 2)

    @in_kind
    def predict_proba(self, X: Any) -> HostArray:
        """Class probabilities, (n, 2) or (n, K).

        Two classes: P(y = classes_[1] | x) = (1 − θ*(x))/2 in the second column, where θ*(x) is the trade-off at which
        the decision flips. A decision that flips several times counts with the fraction of Θ on which it is negative.
        The larger column is always that of ``predict(X, theta=0)``: if the fraction disagrees, p is set next to ½.

        On Θ = [low, high] the probability lies between (1 − high)/2 and (1 − low)/2. It keeps a distance of 1/(n + 2)
        from 0 and 1, where n is ``n_samples_fit_``, because n rows contain no information on rarer events.

        K > 2 classes: the decision for a class against all others flips at a trade-off, as above, and its odds are
        those of the fraction of trade-offs at which it is positive. Log-odds o_k and the mean m_k of the field become
        p_k ∝ exp(a o_k + c m_k + b_k), with a, c and b from held-out rows if decisions are ``calibrated``, as they are
        by default, and else a = 1, c = 0 and b = 0. No column is below about 1/((n + K)(K − 1)), and the largest is
        that of the decision at equal costs.

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
        ([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]], [0, 1, 0])
        """
        if self._has_several_classes():
            return probabilities(self, X)
        levels = self._trade_offs()
        blocks = self._at_levels(self._inputs(X), levels)
        p = np.concatenate([flip_probability(levels, h, self.n_samples_fit_) for h in blocks])
        if 0.0 in levels if self.field_.knows_nodes_only else levels[0] <= 0.0 <= levels[-1]:
            p = on_side(p, self._values(X, 0.0, "theta") > 0.0, centre=0.5)
        return np.column_stack([1.0 - p, p])

    def _trade_offs(self, also: tuple[float, ...] = ()) -> HostArray:
        """Equally spaced trade-offs, extreme ones and ``also``; the nodes if the model is defined only there."""
        levels = self._levels(TRADE_OFFS)
        if self.field_.knows_nodes_only:
            return levels
        more = np.append(EXTREME_TRADE_OFFS, also)
        return np.union1d(levels, more[(levels[0] <= more) & (more <= levels[-1])])

    def _default_theta(self) -> Any:
        """The trade-off predicted by default; None in the constructor: the node closest to 0."""
        return self.nodes_[np.argmin(np.abs(self.nodes_))] if self.theta is None else self.theta

    # ------------------------------------------------------------------------------- choosing a trade-off
    theta_from_costs = staticmethod(theta_from_costs)

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
        """The θ that meets a requirement on held-out data: one of ``min_sensitivity``, ``max_fpr``, or the two costs.

        * ``max_fpr``: the largest sensitivity with FP/negatives ≤ ``max_fpr``;
        * ``min_sensitivity``: the fewest false positives with TP/positives ≥ ``min_sensitivity``;
        * ``fn_cost`` and ``fp_cost``: the smallest (fn_cost·FN + fp_cost·FP)/n; among equals the one closest to
          ``theta_from_costs``. Use it with at least a few hundred positives: with few, the result is mostly noise.

        Candidates are equally spaced θ, ratios of costs up to 100 000, and ``theta_from_costs`` itself.

        With ``confidence`` = 1 − δ the bound holds for new data: with probability 1 − δ over the sampling of (X, y),
        P(predict(X, θ) positive | y negative) ≤ ``max_fpr``, or the same for false negatives. Starting from the
        cautious end of Θ, each level is tested against the bound by the binomial tail, until one fails. The order is
        fixed beforehand, so every test has level δ and no assumption is made about the model. If decisions increase
        with θ, this is the order statistic of Neyman–Pearson classification (Tong, Feng and Li, 2018).

        X must be held out: the training rows have too few errors, and the guarantee does not hold.

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
        costs = [cost for cost in (fn_cost, fp_cost) if isinstance(cost, Real) and 0.0 <= cost < np.inf]
        return choose_theta(
            self._confusion(X, y, also=(self.theta_from_costs(*costs),) if len(costs) == 2 and any(costs) else ()),
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
        """c(θ₀) = ((1 + θ₀)/2)·P(FN) + ((1 − θ₀)/2)·P(FP) of the model at θ = θ₀, compared with constant predictions.

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
        >>> bool((curve.cost <= curve.best_constant + 1e-12)[60:200].all())
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

    def _confusion(self, X: Any, y: Any, sample_weight: Any = None, also: tuple[float, ...] = ()) -> Confusion:
        """The errors on (X, y) at all levels and at those of ``also``."""
        if self._has_several_classes():
            raise ValueError(
                f"The model has {self.classes_.size} classes; curves and choices of a single θ are those of two. Give "
                "costs to predict: predict(X, theta) with a cost for each class, or predict(X, costs=matrix)."
            )
        with naming("y"):
            y = column_or_1d(y)
            check_consistent_length(X, y)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y holds {unknown[0]!r}; the model knows the labels {self.classes_.tolist()}.")
        weight = weights_of(sample_weight, y)
        levels = self._trade_offs(also)
        return Confusion.count(levels, self._at_levels(self._inputs(X), levels), y == self.classes_[1], weight)
