"""Infinite one-class SVM: nested density level sets; the outlier fraction is chosen at prediction."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray, place, to_host
from infinitask._base.validation import number, or_auto
from infinitask.calibration._sign_change import change_next_to
from infinitask.estimators._base import BaseInfiniteTask, Prepared
from infinitask.estimators._parameters import check_default
from infinitask.estimators._shared import Continuum, Explorable, estimator
from infinitask.estimators._sources import in_kind
from infinitask.fitting._fit import Fit
from infinitask.fitting._recipe import Recipe
from infinitask.kernels import input_kernel
from infinitask.measures._spaces import as_measure
from infinitask.metrics import mass_volume_area, mass_volume_curve
from infinitask.metrics._level_sets import MassVolumeCurve
from infinitask.predictive._beyond import Beyond
from infinitask.tasks import LevelSetTask, Order, Task
from infinitask.tasks.level_set import SORTING_LEVELS

__all__ = ["InfiniteOneClassSVM"]

SMALL_RIDGE = 1e-6
"""λ if ``alpha`` is "auto": (λ/2)‖t‖² is then a fraction of about 1e-5 of the objective."""


class _LevelSetEstimator(OutlierMixin, BaseInfiniteTask):
    """Base class of level-set estimators: inliers, scores, thresholds and mass–volume curves."""

    nu: float | None

    def recipe(self) -> Recipe:
        """Return the checked choices that ``fit`` would make, the input of :func:`~infinitask.fitting.learn`."""
        recipe = super().recipe()
        if recipe.bias_kernel is None:
            raise ValueError(
                "bias_kernel=None was given; the threshold t(θ) needs a kernel: use 'task' or a task kernel."
            )
        if self.nu is not None and not check_default(self, "nu", recipe):
            raise ValueError(f"nu={self.nu!r} was given; it must be one number. Ask predict for several fractions.")
        return recipe

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        """Check parameters and data, which have no targets."""
        recipe = self.recipe()
        X, _, weight = self._rows(X, None, sample_weight)
        return Prepared(recipe, X, None, weight, {})

    @property
    def offset_(self) -> float:
        """The value subtracted from ``score_samples`` to get ``decision_function``."""
        check_is_fitted(self)
        return float(self._default_nu())

    def _default_nu(self) -> Any:
        """Return the default fraction: that of the constructor, or the smallest node if it is None."""
        return np.min(self.nodes_) if self.nu is None else self.nu

    @in_kind
    def decision_function(self, X: Any, nu: Any = None) -> HostArray:
        """Return values ≥ 0 inside the level set and < 0 outside: (n,) for one fraction, (n, q) for several.

        With ``nu``, it is h(x)(ν) − t(ν), sorted over ν if ``nested``. Without ``nu``, it is ``score_samples(X) - nu``
        for the constructor's ``nu``, as scikit-learn requires of outlier detectors; the sign is the same.

        Parameters
        ----------
        X : array (n, d)
        nu : float, array (q,) or None
            Outlier fractions.
        """
        if nu is None:
            return self.score_samples(X) - self.offset_
        return self._values(X, nu, "nu")

    @in_kind
    def predict(self, X: Any, nu: Any = None) -> HostArray:
        """Return +1 inside the level set and −1 outside: (n,) for one fraction, (n, q) for several.

        Parameters
        ----------
        X : array (n, d)
        nu : float, array (q,) or None
            Outlier fractions; None: the constructor's ``nu``.
        """
        return np.where(self.decision_function(X, nu) >= 0.0, 1, -1)

    def threshold(self, nu: Any = None) -> HostArray:
        """Return t(ν), the level of h at the boundary of the set.

        Parameters
        ----------
        nu : float, array (q,) or None
        """
        check_is_fitted(self)
        tasks, single = self._tasks(self._default_nu() if nu is None else nu, "nu")
        t = self._learnt().shift(tasks[:, 0]) - self.field_.bias(tasks)
        return np.asarray(t[0] if single else t)

    @in_kind
    def score_samples(self, X: Any) -> HostArray:
        """Return θ*(x), the outlier fraction at which x leaves the set; small for outliers.

        It is a p-value for "x comes from the distribution of the data": P(θ*(X) ≤ α) ≈ α for a new X from that
        distribution and α in Θ, because a fraction α of the data is outside the set of α. The rule θ*(x) ≤ α for
        outliers has a false positive rate of about α. If thresholds are calibrated on held-out rows
        (``exact_fractions``), the error of this rate is that of an empirical distribution function of these rows, even
        with narrow kernels. With the fitted threshold, new rows fall outside too often, and more often the narrower the
        kernel.

        If h − t changes sign more than once (sets are nested only as far as the data suggest it), the change next to
        ``nu`` counts: θ*(x) ≥ ν if and only if x is inside at the constructor's ν. With ``nested``, this holds for
        every ν. Hence the p-value is right at the constructor's ν and below. Far above, it is too small if sets cross:
        P(θ*(X) ≤ 0.5) is 0.7 for 500 normal rows with two features.

        Points beyond Θ = [low, high] are ranked as well, without ties. Outside all sets, the score is low·h/t, which
        decreases to 0 with the distance. Inside all sets, it is 1 − (1 − high)·t/h, which is 1 if high is 1. These
        scores are continuous in x, but they are not p-values.

        Parameters
        ----------
        X : array (n, d)

        Returns
        -------
        ndarray (n,)
            In (0, 1].

        Examples
        --------
        >>> from infinitask import InfiniteOneClassSVM
        >>> from infinitask.datasets import make_mixture
        >>> X = make_mixture(400, random_state=0)
        >>> p = InfiniteOneClassSVM(n_nodes=30).fit(X[:200]).score_samples(X[200:])
        >>> bool(abs((p <= 0.2).mean() - 0.2) < 0.08)
        True
        """
        Z = self._inputs(X)
        task = self.recipe_.task
        assert isinstance(task, LevelSetTask)
        if task.order.rearranged:
            levels = task.sorting_levels(self._learnt())
            first, last = levels, levels
            found = [
                (task.leaves_at(curves), curves.values[:, 0] < 0.0, curves.values[:, -1] >= 0.0)
                for _, curves in self._curves(Z)
            ]
        else:
            nu = float(self._tasks(self._default_nu(), "nu")[0][0, 0])
            levels = np.unique(np.append(self._levels(SORTING_LEVELS), nu))
            first, last = levels[:1], levels[-1:]
            found = [change_next_to(nu, levels, values) for values in self._at_levels(Z, levels)]
        score, outside, inside = (np.concatenate(parts) for parts in zip(*found, strict=True))
        low, high = self._ends()
        host: Any = Z if sparse.issparse(Z) else to_host(Z)

        def dense(rows: HostArray) -> HostArray:
            return np.asarray(host[rows].toarray() if sparse.issparse(host) else host[rows])

        if np.any(outside):
            fraction = self._beyond(first).outside(dense(outside))
            score[outside] = np.minimum(low * fraction, np.nextafter(low, -np.inf))
        if np.any(inside) and high < 1.0:
            fraction = self._beyond(last).inside(dense(inside))
            score[inside] = np.maximum(1.0 - (1.0 - high) * fraction, high)
        return score

    def mass_volume_curve(self, X: Any, *, n_samples: int = 10_000, random_state: Any = None) -> MassVolumeCurve:
        """Return the mass P(θ*(X) ≥ t) and volume of {x: θ*(x) ≥ t}; see :func:`infinitask.metrics.mass_volume_curve`.

        Parameters
        ----------
        X : array (n, d)
            Preferably held-out rows.
        n_samples : int
            The number of Monte Carlo points in the bounding box of X.
        random_state : int, RandomState or None

        Returns
        -------
        MassVolumeCurve
            ``mass``, ``volume`` and ``thresholds``, (k,) each; ``plot()`` draws it.

        Examples
        --------
        >>> from infinitask import InfiniteOneClassSVM
        >>> from infinitask.datasets import make_mixture
        >>> X = make_mixture(200, random_state=0)
        >>> mass, volume, _ = InfiniteOneClassSVM(n_nodes=20).fit(X).mass_volume_curve(X, random_state=0)
        >>> mass.shape == volume.shape
        True
        """
        X = self._points(X)
        return mass_volume_curve(self.score_samples, X, n_samples=n_samples, random_state=random_state)

    def mass_volume_area(
        self, X: Any, *, masses: tuple[float, float] = (0.1, 0.9), n_samples: int = 10_000, random_state: Any = None
    ) -> float:
        """Return the area under the mass–volume curve; smaller is better.

        See :func:`infinitask.metrics.mass_volume_area`.

        Parameters
        ----------
        X : array (n, d)
            Preferably held-out rows.
        masses : (float, float)
            The range of masses; fractions 1 − mass outside Θ are not resolved.
        n_samples : int
        random_state : int, RandomState or None

        Examples
        --------
        >>> from infinitask import InfiniteOneClassSVM
        >>> from infinitask.datasets import make_mixture
        >>> X = make_mixture(200, random_state=0)
        >>> fair, wide = (InfiniteOneClassSVM(n_nodes=20, gamma=gamma).fit(X) for gamma in (0.3, 0.001))
        >>> fair.mass_volume_area(X, random_state=0) < wide.mass_volume_area(X, random_state=0)
        True
        """
        X = self._points(X)
        return mass_volume_area(self.score_samples, X, masses=masses, n_samples=n_samples, random_state=random_state)

    # ------------------------------------------------------------------------------------------- inside
    def _points(self, X: Any) -> HostArray:
        """Return X as a dense array on the host; raise an error if the kernel is unknown at new points."""
        check_is_fitted(self)
        if input_kernel(self.recipe_.kernel).precomputed:
            raise ValueError(
                "kernel='precomputed' was given; the volume of a set needs the kernel at new points, not a matrix. "
                "Use a kernel of inputs."
            )
        return np.concatenate([to_host(block) for _, block in self._dense_blocks(self._inputs(X))])

    def _beyond(self, levels: HostArray) -> Beyond:
        """Return the ranking of points that are on the same side of all sets of these levels."""
        field, device = self.field_, self.recipe_.device
        # without the bias: in their sum, the h of a distant point would be lost to rounding
        sections = field.sections(levels)
        t = self._learnt().shift(levels) - field.bias(levels)
        return Beyond(lambda X: to_host(sections(place(X, device))), t, self._deepest)

    def _adopt(self, fit: Fit, prepared: Prepared) -> Self:
        """Store a fit and the row deepest inside the smallest set, the reference for distances of distant points."""
        super()._adopt(fit, prepared)
        self._deepest = None
        if self._looked_at is not None:
            X = self._looked_at[0]
            smallest = np.max(fit.quadrature.nodes, axis=0)
            self._deepest = X[np.argmax(fit.field(place(X, fit.recipe.device), smallest)[:, 0])].copy()
        return self


@estimator
class InfiniteOneClassSVM(Continuum, Explorable, _LevelSetEstimator):
    """Nested density level sets for every outlier fraction from one fit; the fraction is chosen at prediction.

    min_(h,t) ∫ E (1/θ)(t(θ) − h(x)(θ))₊ − t(θ) dθ + ½ ∫ ‖h(·)(θ)‖² dθ + (λ/2)‖t‖².
    {x: h(x)(θ) ≥ t(θ)} excludes a fraction θ of the data: it is a density level set of mass 1 − θ.

    Parameters
    ----------
    nu : float, default=0.1
        The outlier fraction that ``predict`` uses by default.
    nested : bool, default=False
        Whether the set of a larger fraction is always contained in that of a smaller one. The fit nests the sets only
        as far as the data suggest it. True: the curve θ ↦ h(x)(θ) − t(θ) of every x is sorted; x is then inside for
        ν ≤ θ*(x) and outside for ν > θ*(x).
    exact_fractions : "auto", "held-out", True or False, default="auto"
        Post-fit calibration of t(θ). "held-out": the θ-quantile of h − t over rows that are each held out, by leave-
        one-out in closed form, or by ten additional, less accurate fits if nodes share functions or most rows are on a
        boundary. A fraction θ of new rows is then expected outside, even with few rows and narrow kernels. True: the
        θ-quantile of h over the training rows. The fraction of these outside is then θ at every θ, up to ties and the
        resolution of a few hundred levels. False: t is the solution of the problem. Its ridge, its smoothness and rows
        on the boundary then change the fraction, and new rows are outside too often. "auto": "held-out" if ``alpha`` is
        "auto", and False if it is a number. ``field_`` and its certificate do not change; sets sorted by ``nested``
        nearly keep the fraction. With rows streamed in blocks, "held-out" means True on a sample of thousands of rows,
        which are as good as new ones.
    gamma : float, "auto", "median" or "scale", default="auto"
        Bandwidth of a kernel given by name. "auto": each feature is scaled by its interquartile range, and γ is five
        times that of "median". Level sets need narrower kernels than regressions: over 12 anomaly detection problems,
        the mean AUC is 0.88 with the median rule and 0.91 with four times its γ.
    task_gamma : float or None, default=None
        Bandwidth of a task kernel given by name; None: σ is five times the mean gap between nodes.
    bias_kernel : "task", str, task kernel object or None, default="task"
        Kernel of the threshold t(θ); "task": the task kernel.
    alpha : float or "auto", default="auto"
        λ, the weight of (λ/2)‖t‖². The fraction outside differs from θ if it is not small. 0: the threshold is free.
        "auto": 1e-6.
    alpha_bias : float or None, default=None
        Not used: the threshold is the only bias, and ``alpha`` is its weight.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on [0.05, 1].
    {parameters}

    Attributes
    ----------
    alpha_, alpha_bias_ : float
        λ of the fit; both are equal.
    offset_ : float
        ``decision_function(X)`` is ``score_samples(X) - offset_``; the same as ``nu``.
    shift_ : Shift
        The shift of t by ``exact_fractions``; only if t was calibrated.
    {attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> X = make_mixture(200, random_state=0)
    >>> model = InfiniteOneClassSVM().fit(X)
    >>> new = make_mixture(1000, random_state=1)
    >>> outside = np.mean(model.predict(new, nu=[0.1, 0.3, 0.5]) == -1, axis=0)
    >>> bool(np.all(np.abs(outside - [0.1, 0.3, 0.5]) < 0.08))
    True
    """

    _constraints: ClassVar = {"alpha": or_auto(partial(number, low=0.0, open_low=False))}

    nu: Any = 0.1
    nested: bool = False
    exact_fractions: bool | str = "auto"
    alpha_bias: float | None = None

    def _task(self) -> Task:
        fractions = self.exact_fractions
        if isinstance(fractions, str) and fractions == "auto":
            fractions = "held-out" if isinstance(self.alpha, str) else False
        measure = as_measure(self.measure, LevelSetTask().measure)
        return LevelSetTask.over(measure, order=Order(rearranged=bool(self.nested)), exact_fractions=fractions)

    def _choices(self) -> dict[str, Any]:
        """h has weight 1, and t = −b has weight λ."""
        return {"alpha": 1.0, "alpha_bias": SMALL_RIDGE if isinstance(self.alpha, str) else float(self.alpha)}

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Prepared:
        prepared = super()._prepare(X, y, sample_weight)
        prepared.learnt["alpha_"] = prepared.recipe.alpha_bias
        return prepared
