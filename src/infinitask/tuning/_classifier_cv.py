"""Cost-sensitive classification that tunes itself, in the manner of ``RidgeCV``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from infinitask._array import HostArray
from infinitask.estimators import InfiniteCostSensitiveClassifier
from infinitask.losses import CostSensitiveHinge
from infinitask.tuning._choice import Contest, comparison_levels
from infinitask.tuning._left_out import repeated_splits
from infinitask.tuning._self_tuned import SelfTuned

BIAS_RIDGE = 1e-7
"""λ_b. With one positive in twenty the decision flips near θ = 1 only, and 1e-4 is enough to keep it from doing so."""

CONTEST_BIAS_GAMMA = 0.5
"""γ of the bias of a fit that is compared."""


class InfiniteCostSensitiveClassifierCV(SelfTuned):
    """Decisions for every trade-off between the errors, with the kernel and λ chosen by cross-validation.

    The answer is an :class:`~infinitask.InfiniteCostSensitiveClassifier`, ``best_estimator_``; all its methods and
    fitted attributes are here as well. It is chosen as in :class:`~infinitask.tuning.InfiniteQuantileRegressorCV`, with
    the cost-sensitive hinge loss, averaged over the deciles of the measure, instead of the pinball loss. The bias is
    all but free, which suits rare classes.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do.
    alphas : array (k,) or None
        The λ that compete; None: as many as needed of eighteen.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn. None: five shuffled folds with the same share of the classes, repeated up to four times
        where there are few rows.
    rule : {"one-se", "best"}
        A λ that all but ignores the inputs unless they surely help, and of others the largest that is about as good as
        the best; or the best in any case.
    n_jobs : int or None
        Kernels that are compared side by side, in processes; the choice does not depend on it.
    theta
        As for :class:`~infinitask.InfiniteCostSensitiveClassifier`.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, solver, tol, max_iter, device, verbose
        As there, for the last fit.
    random_state : None, int or numpy.random.RandomState
        For the folds, and as there.

    Attributes
    ----------
    best_estimator_ : InfiniteCostSensitiveClassifier
        Fitted to all rows with the chosen parameters.
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    ignores_inputs_ : bool
        Whether a λ was taken that all but ignores the inputs: nothing was surely better.
    cv_results_ : dict
        ``kernels``, ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x`` (folds,) and ``best``, as for
        :class:`~infinitask.tuning.InfiniteQuantileRegressorCV`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from infinitask.tuning import InfiniteCostSensitiveClassifierCV
    >>> X, y = make_moons(200, noise=0.3, random_state=0)
    >>> model = InfiniteCostSensitiveClassifierCV(random_state=0).fit(X, y)
    >>> cautious, bold = model.predict(X, theta=[-0.9, 0.9]).mean(axis=0)
    >>> bool(cautious < 0.5 < bold)  # the share of alarms
    True
    """

    _model = InfiniteCostSensitiveClassifier

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        alphas: Any = None,
        cv: Any = None,
        rule: str = "one-se",
        n_jobs: int | None = None,
        theta: Any = 0.0,
        task_kernel: Any = "rbf",
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
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the kernel and λ, and learn the decision function of every trade-off.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
            Any two labels.
        sample_weight : array (n,) or None
        """
        self._check_parameters()
        rows = self._estimator()._prepare(X, y, sample_weight)
        levels, weight = comparison_levels(rows.recipe.measure), rows.weight
        repeats = repeated_splits(self.cv, rows.X, rows.y, weight, self.random_state, classes=True)
        counted = [train[weight[train] > 0.0] for splits in repeats for train, _ in splits]
        contest = Contest(
            recipe=rows.recipe,
            X=rows.X,
            y=rows.y,
            targets=rows.y,
            weight=weight,
            unit=1.0,
            levels=levels,
            loss=CostSensitiveHinge(),
            judge=CostSensitiveHinge(),
            bias_gamma=CONTEST_BIAS_GAMMA,
            bias_ridge=BIAS_RIDGE,
            repeats=repeats,
            constants=[_best_constant(rows.y[train], weight[train], levels) for train in counted],
        )
        choice = contest.choose(self.kernels, self.alphas, self.rule, self.n_jobs)
        return self._refit(choice, BIAS_RIDGE, 0.0, X, y, sample_weight)

    def predict(self, X: Any, theta: Any = None, *, per_sample: bool = False) -> HostArray:
        """Labels: (n,) for one trade-off or one for each row, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        theta : float, array (q,) or None
            In [−1, 1]; None: the constructor's ``theta``.
        per_sample : bool, default=False
            Whether ``theta``, (n,), holds one trade-off for each row.
        """
        return np.asarray(self._best().predict(X, theta, per_sample=per_sample))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of ``predict(X)``.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
        """
        return float(self._best().score(X, y, sample_weight))

    @staticmethod
    def theta_from_costs(fn_cost: Any, fp_cost: Any) -> Any:
        """θ = (fn − fp)/(fn + fp); see :meth:`infinitask.InfiniteCostSensitiveClassifier.theta_from_costs`."""
        return InfiniteCostSensitiveClassifier.theta_from_costs(fn_cost, fp_cost)


def _best_constant(signs: HostArray, weight: HostArray, theta: HostArray) -> HostArray:
    """The cheaper of the decisions 1 and −1 at each θ, (q,), for all rows alike."""
    positive = float(weight @ (signs > 0.0)) / float(np.sum(weight))
    return np.where(positive * (1.0 + theta) > (1.0 - positive) * (1.0 - theta), 1.0, -1.0)
