"""Level sets that choose their own kernel; how it is chosen is in :mod:`~infinitask.tuning._volumes`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils import check_random_state

from infinitask._base.arrays import one_blas_thread
from infinitask._base.events import Chosen, tell
from infinitask.estimators import InfiniteOneClassSVM
from infinitask.estimators._base import reported
from infinitask.estimators._shared import estimator
from infinitask.features import RandomFourier, feature_recipe
from infinitask.fitting._data import Data
from infinitask.tuning._self_tuned import SelfTuned
from infinitask.tuning._volumes import VolumeComparison, families


@estimator
class InfiniteOneClassSVMCV(OutlierMixin, SelfTuned):
    """Nested density level sets for every outlier fraction, with the kernel and its width chosen by cross-validation.

    The result is an :class:`~infinitask.InfiniteOneClassSVM`, ``best_estimator_``; all its methods and fitted
    attributes are here as well. No labels are needed: kernels compete by the area under the mass–volume curve on
    held-out rows, ∫ vol{x: h(x)(θ) ≥ t(θ)} dθ with t(θ) the θ-quantile of h over these rows. The candidates are
    Gaussian kernels with each feature in units of its own spread, Gaussian kernels in the metric of the covariance, for
    features that depend on each other, Gaussian kernels of the ranks of the features, and Laplacian kernels. In each
    family the width begins at the one of the defaults and is changed while that makes the volume smaller. The winner is
    fitted to all rows.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do. A name measures each
        feature in its own spread, an object takes the features as they are.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn: a number means folds in the order of the rows. None: five shuffled folds of at most 1000
        rows.
    n_jobs : int or None
        Families of kernels that are compared in parallel processes; the choice does not depend on it.
    nu, nested, exact_fractions
        As for :class:`~infinitask.InfiniteOneClassSVM`.
    task_kernel, task_gamma, bias_kernel, alpha, measure, quadrature, n_nodes, features, rank, certify, \
solver, tol, max_iter, device
        As there, for the final fit.
    random_state : None, int or numpy.random.RandomState
        For the folds and the points by which volumes are measured, and as there.
    verbose : int
        1: a line for each kernel that is compared; and as there.
    on_interrupt : {"raise", "best"}, default="raise"
        What Ctrl-C does while kernels are compared: it ends the fit, or the comparison, and the best so far is fitted
        (with ``n_jobs`` it always ends the fit).

    Attributes
    ----------
    best_estimator_ : InfiniteOneClassSVM
        Fitted to all rows with the chosen kernel.
    kernel_ : InputKernel
    cv_results_ : dict
        ``kernels`` (names), ``levels`` (q,), ``volumes`` (kernels, q): the fraction of the reference points in the set
        that leaves out a fraction ``levels`` of the held-out rows; ``areas`` (kernels,): their means; and ``best``, the
        position of the choice.

    Notes
    -----
    With up to three features the reference points are uniform in a box around the data, and volumes are volumes. In
    more dimensions no point of a box comes near the data, and all kernels would look alike. There, a reference point is
    a row in which some features (one, two, four, …, or all) are sampled again from their range: the sets are asked to
    leave out what differs from a row in a few features, too.

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask import InfiniteOneClassSVMCV
    >>> X = make_mixture(150, random_state=0)
    >>> model = InfiniteOneClassSVMCV(kernels=["rbf", "laplacian"], random_state=0).fit(X)
    >>> new = make_mixture(1000, random_state=1)
    >>> bool(abs(np.mean(model.predict(new, nu=0.2) == -1) - 0.2) < 0.08)
    True
    >>> results = model.cv_results_
    >>> bool(results["areas"][results["best"]] == results["areas"].min())
    True
    """

    _model: ClassVar = InfiniteOneClassSVM
    _default_task: ClassVar = "nu"

    nu: Any = 0.1
    nested: bool = False
    exact_fractions: bool | str = "auto"
    bias_kernel: Any = "task"
    alpha: float | str = "auto"
    tol: float = 1e-4

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the kernel, and learn the level sets.

        Parameters
        ----------
        X : array (n, d), :class:`~infinitask.streaming.Blocks`, or array or frame of Dask
            Of blocks and of Dask a sample of at least 20 000 rows chooses the kernel.
        y : ignored
        sample_weight : array (n,) or None
        """
        with reported(self, X, y, sample_weight, tuning=True):
            given, rows = self._begin(X, None, sample_weight)
            rng = check_random_state(self.random_state)
            comparison = VolumeComparison.of(rows, self.cv, rng, int(self.verbose), self.on_interrupt == "best")
            stationary = isinstance(feature_recipe(rows.recipe.features, rows.recipe.rank), RandomFourier)
            kinds = families(self.kernels, Data.canonical(rows.X, None, rows.weight).X, stationary_only=stationary)
            with one_blas_thread():
                entrants = comparison.compare(kinds, self.n_jobs)
            areas = np.array([entrant.area for entrant in entrants])
            best = int(np.argmin(areas))
            tell(Chosen(entrants[best].name))
            self.kernel_ = entrants[best].kernel
            chosen = self._estimator(kernel=self.kernel_)
            self._fitted(chosen, given, chosen._prepare(given.X, None, given.weight))
            self.cv_results_ = {
                "kernels": [entrant.name for entrant in entrants],
                "levels": comparison.levels,
                "volumes": np.array([entrant.volumes for entrant in entrants]),
                "areas": areas,
                "best": best,
            }
            self.best_estimator_ = chosen
        return self
