"""Infinite cost-sensitive classification: the trade-off between the two errors is chosen after training."""

from __future__ import annotations

from typing import Any

from infinitask.estimators._costs import CostSensitiveClassification

__all__ = ["InfiniteCostSensitiveClassifier"]


class InfiniteCostSensitiveClassifier(CostSensitiveClassification):
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
    n_samples_fit_ : float
        Rows of positive weight, or the sum of the weights where that is more: a weight of k is a row repeated.
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
        warm_start: bool = False,
    ) -> None:
        self._store(locals())
