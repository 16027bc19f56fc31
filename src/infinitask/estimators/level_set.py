"""Infinite one-class SVM: nested density level sets, the outlier fraction chosen at prediction."""

from __future__ import annotations

from typing import Any

from infinitask.estimators._level_sets import LevelSets
from infinitask.penalties import IntegratedRidge, Ridge

__all__ = ["InfiniteOneClassSVM"]


class InfiniteOneClassSVM(LevelSets):
    """min_(h,t) ∫ E (1/θ)(t(θ) − h(x)(θ))₊ − t(θ) dθ + ½ ∫ ‖h(·)(θ)‖² dθ + (λ/2)‖t‖².

    {x: h(x)(θ) ≥ t(θ)} is a set that leaves out a fraction θ of the data: a density level set of mass 1 − θ. One fit
    learns it for every θ; which fraction counts as outlying is decided at prediction.

    Parameters
    ----------
    nu : float, default=0.1
        The outlier fraction that ``predict`` uses when none is asked for.
    nested : bool, default=False
        Whether the set of a larger fraction lies inside that of a smaller one without exception. The fit has them so
        where the data ask for it; with True the curve θ ↦ h(x)(θ) − t(θ) of every x is put in order, so that x is
        inside for ν ≤ θ*(x) and outside for ν > θ*(x), whatever x.
    exact_fractions : bool, default=False
        Whether t(θ) is set last, at the θ-quantile of h(x)(θ) over the rows of the fit, so that the fraction of them
        outside is θ at every θ, as nearly as equal rows and a few hundred levels allow. Given h it is the best t but
        for its ridge. Without, the ridge and the smoothness of t move the fraction, most of all at the ends of Θ, and
        so do rows on the boundary itself, whose side is an accident: with 1000 rows or more by up to 0.06 on mixtures
        and on the paper's sets, with True by 0.008, for up to a third of the time of the fit. ``field_`` and its
        certificate stay what they are; sets put in order by ``nested`` keep the fraction nearly.
    task_gamma : float or None, default=None
        Bandwidth of a task kernel given by name; None: σ is five mean gaps between nodes.
    bias_kernel : "task", str, task kernel object or None, default="task"
        Kernel of the threshold t(θ); "task": as the task kernel.
    alpha : float, default=1e-3
        λ, the weight of (λ/2)‖t‖²; small, or the fraction left out strays from θ. 0: the threshold is free.
    alpha_bias : float or None, default=None
        Not used: the threshold is all the bias there is.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on [0.05, 1].
    n_nodes : int or None, default=None
        m; None: 100.
    {parameters}

    Attributes
    ----------
    offset_ : float
        ``decision_function(X)`` is ``score_samples(X) - offset_``; the same as ``nu``.
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> X = make_mixture(200, random_state=0)
    >>> model = InfiniteOneClassSVM().fit(X)
    >>> outside = np.mean(model.predict(X, nu=[0.1, 0.3, 0.5]) == -1, axis=0)
    >>> bool(np.all(np.abs(outside - [0.1, 0.3, 0.5]) < 0.05))
    True
    """

    _default_nodes = 100

    def __init__(
        self,
        *,
        nu: Any = 0.1,
        nested: bool = False,
        exact_fractions: bool = False,
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

    def _penalty(self) -> Ridge | IntegratedRidge:
        return IntegratedRidge()
