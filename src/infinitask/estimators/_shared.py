"""Parameters with their defaults, docstrings, the interactive page, and scores: common to all estimators."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.estimators._parameters import targets_of, weights_of
from infinitask.losses import Loss, Pinball

_Class = TypeVar("_Class", bound=type[Any])


class SharedEntries:
    """The entries common to all estimators.

    Parameters
    ----------
    kernel : str, kernel object or callable, default="rbf"
        k_X: "rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "polynomial", "precomputed", an
        object of :mod:`infinitask.kernels` (sums and products of these too), or a function of (X, Z) that returns a
        Gram matrix.
    gamma : "auto", float, "median" or "scale", default="auto"
        Bandwidth of a kernel given by name: exp(−γ d²) for "rbf". "auto": each feature is scaled by its own standard
        deviation, and σ = (2γ)^(−1/2) is the median distance. If ``alpha`` is not a number, ½, 2 and 4 times this σ are
        also tried, and the one with the smallest leave-one-out error of a kernel ridge regression is chosen. With at
        least 200 rows, each feature gets its own scale if that is clearly better on held-out rows. The other
        choices do not scale the features; "median": σ is the median distance.
    task_kernel : str or task kernel object, default="rbf"
        k_Θ: "rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear", "diagonal", or an object.
    task_gamma : float or None, default=None
        Bandwidth of a task kernel given by name; None: from the median distance of the nodes.
    bias_kernel : "task", str, task kernel object or None, default="task"
        Kernel of a bias b(θ); "task": the task kernel; None: no bias.
    alpha : "auto" or float, default="auto"
        λ, the weight of (λ/2)‖h‖². "auto": the λ with the smallest leave-one-out error of a kernel ridge regression
        of the normal scores of y, found in at most a few tenths of a second; see ``alpha_``. A number is the λ of the
        formula, in the units of y.
    alpha_bias : float or None, default=0.0
        λ_b, the weight of (λ_b/2)‖b‖², in the units of y; None: the same as ``alpha``. 0: the bias is free. Some
        problems keep a tiny ridge (λ_b/2)‖b − c‖² even then because it makes the solver much faster without changing
        predictions: regressions, objectives with derivatives, a Θ of several dimensions, and calibrated decisions. Its
        weight is ``alpha_bias_``, and c is the median of y (0 for classes). In all other cases b is a free number at
        every node, and linear between the nodes.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on (0, 1).
    quadrature : str or rule, default="gauss-legendre"
        "gauss-legendre", "clenshaw-curtis", "sobol", "halton", "monte-carlo" or "discrete", or an object of
        :mod:`infinitask.measures` such as ``GaussLegendre(density=True)``.
    n_nodes : int or None, default=None
        m; None: 50.
    features : str or recipe, default="auto"
        φ: "exact" (pivoted Cholesky), "nystroem", "fourier", or "auto": exact if that is affordable.
    rank : int, "auto" or None, default=None
        The largest number of components of φ. "auto": 250, 500, … up to 4000, until ``kernel_gap_`` is at most 1e-2 or
        ten times ``tol``, or no longer decreases; see ``features_``.
    certify : "kernel" or None, default=None
        "kernel": compute ``kernel_gap_``, a bound on the distance from the model with the exact kernel, if φ is an
        approximation. This visits all pairs of rows once.
    solver : {"auto", "lbfgs", "newton"}, default="auto"
        Data streamed in blocks use "auto" or "lbfgs", which are equivalent there.
    tol : float, default=1e-4
        The required duality gap, relative to the objective.
    max_iter : int, default=10000
        The maximum number of evaluations of the objective.
    device : str or None, default=None
        None: NumPy. A torch device ("cpu", "cuda"): the data are stored there.
    random_state : int, RandomState or None, default=None
        Seed of quadrature rules and features that use random sampling.
    verbose : int, default=0
        1 shows evaluations, objective and gap as they change, 2 shows every evaluation.
    warm_start : bool, default=False
        True: a second ``fit`` starts from the first one's solution, and keeps φ if X and the kernel are the same. This
        is useful if little changes, such as ``alpha``. The solution is equally accurate either way. Data streamed in
        blocks (blocks, Dask collections, very many rows) start from their sample instead, in every fit.

    Attributes
    ----------
    field_ : Field
        h, callable as ``field_(X, theta, order=0)``.
    nodes_, weights_ : ndarray (m,)
        The quadrature on Θ.
    objective_ : float
        The exact, non-smooth objective at the solution.
    dual_gap_ : float
        Certified: the objective is within ``dual_gap_``·|objective| of the minimum. If a few outliers
        dominate the objective, the gap is relative to a smaller value: the mean loss of a constant, in which no row
        counts more than twenty times the median row.
    kernel_gap_ : float
        Certified, with ``certify="kernel"`` or ``rank="auto"``: as ``dual_gap_``, but relative to the minimum over all
        functions of k_X, not only those spanned by φ.
    alpha_, alpha_bias_ : float
        λ and λ_b in the units of y, as given or chosen; λ_b of a free bias is a tiny ridge around the median
        of y, or 0.
    kernel_ : InputKernel
        k_X, with its bandwidth as a number.
    relevance_ : Relevance
        The relevance of each feature: the root mean square of ∂h/∂x_j over rows and tasks, and this value times the
        standard deviation of the feature, with column names. Computed on at most 300 training rows on first access.
    n_iter_ : int
    solution_ : Solution
        Why the solver stopped (``reason``, ``message``), and the bounds along the way (``history``).
    features_ : str
        The chosen approximation φ.
    recipe_ : Recipe
        All choices of the fit; later changes of parameters do not affect it.
    """


def _entries(text: str) -> dict[str, str]:
    """Split a numpydoc list into entries, by name."""
    found = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return {entry.split(" : ")[0].strip(): entry.rstrip("\n") for entry in found if entry.strip()}


@dataclass_transform(kw_only_default=True, eq_default=False)
def estimator(cls: _Class) -> _Class:
    """Decorate an estimator: its fields become keyword arguments of its constructor.

    ``{parameters}`` and ``{attributes}`` in its docstring are replaced by the entries of :class:`SharedEntries` that
    the docstring does not define itself. Only parameters of the constructor are included.
    """
    dataclass(kw_only=True, eq=False, repr=False)(cls)
    if "{parameters}" not in (cls.__doc__ or ""):
        return cls
    doc, shared = inspect.cleandoc(cls.__doc__ or ""), inspect.cleandoc(SharedEntries.__doc__ or "")
    parameters, attributes = re.split(r"^(?:Parameters|Attributes)\n-+\n", shared, flags=re.MULTILINE)[1:]
    taken = inspect.signature(cls).parameters
    for mark, entries in (
        ("{parameters}", {k: v for k, v in _entries(parameters).items() if k in taken}),
        ("{attributes}", _entries(attributes)),
    ):
        missing = [entry for name, entry in entries.items() if not re.search(rf"^{name} : ", doc, re.MULTILINE)]
        doc = doc.replace(mark, "\n".join(missing))
    cls.__doc__ = doc
    return cls


@estimator
class Continuum:
    """The parameters of models of a continuum of tasks."""

    task_kernel: Any = "rbf"
    task_gamma: Any = None
    bias_kernel: Any = "task"
    alpha: float | str = "auto"
    alpha_bias: float | None = 0.0
    measure: Any = None
    quadrature: Any = "gauss-legendre"
    n_nodes: int | None = None


class Explorable:
    """Estimators whose predictions can be explored in an interactive page."""

    def explore(self, X: Any, y: Any = None, *, names: Any = None, title: str | None = None) -> Any:
        """Create an interactive page on which moving the task shows how predictions and errors change.

        The page is one HTML file and needs neither a server nor a network. A notebook displays it;
        ``.save("report.html")`` writes it. See :func:`infinitask.report.explore`.

        Parameters
        ----------
        X : array or data frame (n, d)
            Rows to show, preferably held-out rows.
        y : array (n,) or None
            Their targets or labels; without them, the page does not show how often the model is right.
        names : list of str or None
            Names of the columns; None: those of the model or of X.
        title : str or None

        Returns
        -------
        page
            ``save(path)`` writes the file; a notebook shows it.
        """
        # import by name: pages import estimators, and imports must be acyclic
        return import_module("infinitask.report").explore(self, X, y, names=names, title=title)


def d2_of_quantiles(rule: tuple[HostArray, HostArray], predicted: HostArray, y: Any, sample_weight: Any) -> float:
    """D² of predicted quantiles (n, m) at weighted levels, relative to the quantiles of y."""
    y, weight = targets_of(predicted, y), weights_of(sample_weight, predicted)
    constants = np.quantile(y, rule[0], method="inverted_cdf", weights=weight)
    return d2_score(rule, Pinball(), predicted, constants, y, weight)


def d2_score(
    rule: tuple[HostArray, HostArray],
    loss: Loss,
    predicted: HostArray,
    constants: HostArray,
    y: HostArray,
    weight: HostArray,
) -> float:
    """1 − the integrated loss of ``predicted`` (n, m) / that of the best ``constants`` (m,), at nodes with weights."""
    nodes, weights = rule

    def integrated(h: HostArray) -> float:
        return float(weight @ loss.value(nodes, y[:, None], h) @ weights)

    worst, best = integrated(np.broadcast_to(constants, predicted.shape)), integrated(predicted)
    if worst == 0.0:
        return 1.0 if best == 0.0 else 0.0
    return 1.0 - best / worst
