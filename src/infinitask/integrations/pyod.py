"""Level sets as a detector of PyOD, whose contamination may change after the fit.

:class:`InfiniteOneClassDetector` has the interface of a PyOD detector: scores that grow with abnormality, a threshold,
labels, probabilities, confidence and rejection. One fit learns the level sets of all fractions, so changing the
contamination needs no new fit.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_samples, check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.extras import not_installed
from infinitask._base.validation import choice, number, percent_meant
from infinitask.estimators import InfiniteOneClassSVM, out_of_fold_scores

try:
    from pyod.models.base import BaseDetector
except ImportError as error:
    raise not_installed("infinitask.integrations.pyod needs PyOD", "pyod") from error

__all__ = ["InfiniteOneClassDetector"]


class InfiniteOneClassDetector(BaseDetector):
    """A PyOD detector based on level sets of every fraction: the contamination can be changed after the fit.

    The score of x is −θ*(x), where θ*(x) is the fraction at which x leaves the sets of the model, small for outliers
    (:meth:`~infinitask.InfiniteOneClassSVM.score_samples`). So {x: score ≤ ``threshold_``} is the model's own level set
    of the fraction ``-threshold_``. Training rows get out-of-fold scores (:func:`~infinitask.out_of_fold_scores`),
    just as PyOD's nearest neighbours ignore the row itself; the threshold is therefore valid for new rows too.

    Setting ``contamination`` or ``threshold``, also by ``set_params``, updates ``threshold_`` and ``labels_`` of a
    fitted detector.

    Parameters
    ----------
    estimator : estimator or None, default=None
        :class:`~infinitask.InfiniteOneClassSVM`, :class:`~infinitask.InfiniteOneClassSVMCV`, or a pipeline of
        :func:`~infinitask.make_pipeline` or :func:`~infinitask.tabular` that ends with one. It is cloned, not changed.
        None: ``InfiniteOneClassSVM(nested=True, exact_fractions=True)``, and "held-out" for ``threshold="level"``. With
        "scores" the detector holds out rows itself; a model that also does so (``exact_fractions="auto"``) takes about
        eight times as long for the same alarms.
    contamination : float in (0, 0.5], or threshold object of PyOD, default=0.1
        The fraction of outliers among the rows.
    threshold : {"scores", "level"}, default="scores"
        How ``threshold_`` follows from a contamination c. "scores": as in PyOD, a fraction c of the training rows has
        larger scores, and the same fraction of ``labels_`` are ones. "level": the threshold is −c, and the detector
        predicts as the model does with ν = c. With ``exact_fractions="held-out"`` about c of new rows are outside that
        set, and about c of ``labels_`` are ones; with True c of the training rows are outside, but more of new rows,
        and of ``labels_``. c must be within the fractions of the model, which begin at 0.05 unless its ``measure`` says
        otherwise.
    cv : int, splitter, iterable of (train, test) or None, default=5
        The folds of the out-of-fold scores; each takes as long as the fit itself. A number: shuffled folds. None: no
        further fits; the training rows are scored by the fit that has seen them. These scores are too small: more than
        c of new rows are beyond the threshold.
    random_state : int, RandomState or None, default=None
        Seed of the shuffle.

    Attributes
    ----------
    detector_ : estimator
        The fitted model, for methods that PyOD does not have.
    decision_scores_ : ndarray (n,)
        Scores of the training rows.
    threshold_ : float
        Rows with larger scores are outliers.
    labels_ : ndarray (n,)
        1 for outliers among the training rows, 0 for others.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask.integrations.pyod import InfiniteOneClassDetector
    >>> X = make_mixture(40, random_state=0)
    >>> detector = InfiniteOneClassDetector(contamination=0.1, random_state=0).fit(X)
    >>> int(detector.labels_.sum())
    4
    >>> detector.contamination = 0.2  # no further fit
    >>> int(detector.labels_.sum())
    8
    >>> detector.predict(np.array([[0.0, 0.0], [30.0, 30.0]]), contamination=0.05)
    array([0, 1])
    """

    def __init__(
        self,
        estimator: Any = None,
        contamination: Any = 0.1,
        threshold: str = "scores",
        cv: Any = 5,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.cv = cv
        self.random_state = random_state
        self.contamination = contamination  # before PyOD checks it: our error message says more
        super().__init__(contamination=contamination)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; those in ``CHECKS`` update threshold and labels of a fitted detector, or are refused."""
        before = vars(self).get(name)
        super().__setattr__(name, CHECKS[name](value) if name in CHECKS else value)
        if name in CHECKS and hasattr(self, "decision_scores_"):
            try:
                self._process_decision_scores()
            except Exception:
                super().__setattr__(name, before)
                raise

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``threshold`` and ``contamination`` move together.

        Parameters
        ----------
        **params
            Parameters, as in scikit-learn.
        """
        # in an order that never leaves the contamination outside the fractions of the model
        last = "threshold" if params.get("threshold") == "level" else "contamination"
        super().set_params(**dict(sorted(params.items(), key=lambda item: item[0] == last)))
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the level sets of all fractions, and score the training rows.

        Parameters
        ----------
        X : array or table (n, d)
        y : ignored
            PyOD warns if it is given.
        """
        exact = "held-out" if self.threshold == "level" else True  # scores need no calibrated level sets
        default = InfiniteOneClassSVM(nested=True, exact_fractions=exact)
        model = default if self.estimator is None else self.estimator
        if not hasattr(model, "score_samples") or isinstance(model, type):
            raise TypeError(
                f"estimator={model!r} was given; it must be a model with score_samples, such as InfiniteOneClassSVM(), "
                "or a pipeline of make_pipeline that ends with one."
            )
        n = _num_samples(X)
        if isinstance(self.cv, Integral) and self.cv > n:
            raise ValueError(
                f"cv={self.cv} was given for {n} rows, which cannot be divided into as many folds; give a cv of at "
                f"most {n}, or cv=None, which scores the rows by the fit that has seen them."
            )
        self._set_n_classes(y)
        fitted = clone(model).fit(X)
        self._check_level(fitted)
        own = self.cv is None
        scores = (
            fitted.score_samples(X) if own else out_of_fold_scores(model, X, cv=self.cv, random_state=self.random_state)
        )
        self.detector_, self.decision_scores_ = fitted, -scores
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> HostArray:
        """Return −θ*(x), larger for rows that are more unusual: (n,), in [−1, 0).

        Parameters
        ----------
        X : array or table (n, d)
        """
        check_is_fitted(self, "labels_")
        return -np.asarray(self.detector_.score_samples(X))

    def predict(self, X: Any, return_confidence: bool = False, contamination: Any = None) -> Any:
        """Return 1 for outliers and 0 for others: (n,).

        Parameters
        ----------
        X : array or table (n, d)
        return_confidence : bool
            Whether to return the confidence of each prediction as well.
        contamination : float, threshold object of PyOD or None
            The fraction of outliers for this prediction; None: that of the detector.
        """
        asked = self if contamination is None else self.with_contamination(contamination)
        return super(InfiniteOneClassDetector, asked).predict(X, return_confidence)

    def with_contamination(self, contamination: Any) -> Self:
        """Return a detector with the same fit and another contamination; this one does not change.

        Parameters
        ----------
        contamination : float in (0, 0.5], or threshold object of PyOD

        Returns
        -------
        InfiniteOneClassDetector

        Examples
        --------
        >>> from infinitask.datasets import make_mixture
        >>> from infinitask.integrations.pyod import InfiniteOneClassDetector
        >>> X = make_mixture(60, random_state=0)
        >>> detector = InfiniteOneClassDetector(random_state=0).fit(X)
        >>> [int(detector.with_contamination(c).labels_.sum()) for c in (0.05, 0.1, 0.3)]
        [3, 6, 18]
        """
        check_is_fitted(self, "labels_")
        other = copy(self)
        other.contamination = contamination
        return other

    def _check_level(self, model: Any) -> bool:
        """Whether the threshold is a level of the model; raise an error if the model does not know that level."""
        if self.threshold != "level" or not isinstance(self.contamination, (float, int)):
            return False
        low, high = (float(np.ravel(end)[0]) for end in model.measure_.support)
        if not low <= self.contamination <= high:
            raise ValueError(
                f"contamination={self.contamination!r} was given; with threshold='level' it must be one of the "
                f"fractions of the model, from {low:g} to {high:g}. Fit a model with a measure that holds it, or use "
                "threshold='scores'."
            )
        return True

    def _process_decision_scores(self) -> Self:
        """Compute the threshold and the labels; PyOD calls this after the scores."""
        is_level = self._check_level(self.detector_)
        super()._process_decision_scores()
        if is_level:
            self.threshold_ = -float(self.contamination)
            self.labels_ = (self.decision_scores_ > self.threshold_).astype(int)
        return self


def _contamination(contamination: Any) -> Any:
    """Check a fraction of outliers or a threshold object, and return it unchanged."""
    if isinstance(contamination, (float, int)):
        meant = percent_meant(contamination) if contamination <= 50.0 else ""
        number("contamination", contamination, low=0.0, high=0.5, hint=meant or "It is the fraction of outliers.")
    elif not (hasattr(contamination, "fit") and hasattr(contamination, "predict")):
        raise TypeError(
            f"contamination={contamination!r} was given; it must be a float in (0, 0.5], or an object of PyOD that "
            "finds a threshold."
        )
    return contamination


CHECKS: dict[str, Callable[[Any], Any]] = {
    "contamination": _contamination,
    "threshold": lambda value: choice("threshold", value, ("scores", "level")),
}
"""Parameters that may change after the fit."""
