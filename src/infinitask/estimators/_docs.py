"""Docstrings of the parameters and attributes that the estimators share: written once, shown by every class."""

from __future__ import annotations

import inspect
import re
import textwrap

SHARED = """
    Parameters
    ----------
    kernel : str, kernel object or callable, default="rbf"
        k_X: "rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "polynomial", "precomputed", an
        object of :mod:`infinitask.kernels` (sums and products of these too), or a function of (X, Z) that returns a
        Gram matrix.
    gamma : "auto", float, "median" or "scale", default="auto"
        Bandwidth of a kernel given by name: exp(−γ d²) for "rbf". "auto": each input is measured in its own standard
        deviation, and σ = (2γ)^(−1/2) is the median distance or, where ``alpha`` is not a number, ½, 2 or 4 times that:
        the one with the smallest leave-one-out error of a kernel ridge regression; or, from 200 rows on, each input
        has a scale of its own, where other rows say that this is clearly better. The others take distances of the
        inputs as they are; "median": σ is the median distance.
    task_kernel : str or task kernel object, default="rbf"
        k_Θ: "rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear", "diagonal", or an object.
    task_gamma : float or None, default=None
        Bandwidth of a task kernel given by name; None: from the median distance of the nodes.
    bias_kernel : "task", str, task kernel object or None, default="task"
        Kernel of a bias b(θ); "task": as the task kernel; None: no bias.
    alpha : "auto" or float, default="auto"
        λ, the weight of (λ/2)‖h‖². "auto": the one with the smallest leave-one-out error of a kernel ridge regression
        of the normal scores of y, found in at most tenths of a second; see ``alpha_``. A number is the λ of the
        formula, in the units of y.
    alpha_bias : float or None, default=0.0
        λ_b, the weight of (λ_b/2)‖b‖², in the units of y; None: as ``alpha``. 0: the bias is free. For regressions,
        where the objective sees derivatives, for a Θ of several dimensions and where decisions are calibrated, it is
        held all the same, by (λ_b/2)‖b − c‖² with the weight ``alpha_bias_`` and c the median of y (0 for classes): so
        small that it does not matter, and much faster than none. In all other cases b is a number of its own at every
        node, linear between them, and has no ridge.
    measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
        μ on Θ; None: uniform on (0, 1).
    quadrature : str or rule, default="gauss-legendre"
        "gauss-legendre", "clenshaw-curtis", "sobol", "halton", "monte-carlo" or "discrete", or an object of
        :mod:`infinitask.measures` such as ``GaussLegendre(density=True)``.
    n_nodes : int or None, default=None
        m; None: 50.
    features : str or recipe, default="auto"
        φ: "exact" (pivoted Cholesky), "nystroem", "fourier", or "auto": exact where that is affordable.
    rank : int, "auto" or None, default=None
        The most features of φ. "auto": 250, 500, … until ``kernel_gap_`` is at most 1e-2 or ten times ``tol``, or does
        not fall any more, up to 4000; see ``features_``.
    certify : "kernel" or None, default=None
        "kernel": bound the distance from the model of the kernel itself, ``kernel_gap_``, where φ is an approximation.
        That visits all pairs of rows once.
    solver : {"auto", "lbfgs", "newton"}, default="auto"
        Rows that are visited in parts take "auto" or "lbfgs", which are the same there.
    tol : float, default=1e-4
        The duality gap asked for, relative to the objective.
    max_iter : int, default=10000
        The most evaluations of the objective.
    device : str or None, default=None
        None: NumPy. A device of torch ("cpu", "cuda"): the data live there.
    random_state : int, RandomState or None, default=None
        For quadrature rules and features that draw.
    verbose : int, default=0
        1 shows evaluations, objective and gap while they change, 2 every evaluation.
    warm_start : bool, default=False
        True: a second ``fit`` starts from the first one's solution, and keeps its features if inputs and kernel are the
        same. Worth it where little changes, such as ``alpha``. The answer is as exact either way. Rows that are visited
        in parts (blocks, collections of Dask, very many rows) start from their sample instead, in every fit.

    Attributes
    ----------
    field_ : Field
        h, callable as ``field_(X, theta, order=0)``.
    nodes_, weights_ : ndarray (m,)
        The quadrature on Θ.
    objective_ : float
        The exact, non-smooth objective at the solution.
    dual_gap_ : float
        Certified: the objective is within ``dual_gap_``·|objective| of the smallest possible. Where a few absurd
        targets own the objective, the gap is relative to less: to the mean loss of a constant, in which no row counts
        more than twenty times the median row.
    kernel_gap_ : float
        Certified, with ``certify="kernel"`` or ``rank="auto"``: as ``dual_gap_``, but the smallest objective is that
        of all functions of k_X, not of those that φ spans.
    alpha_, alpha_bias_ : float
        λ and λ_b in the units of y, as they were given or chosen; λ_b of a free bias is a tiny ridge around the median
        of y, or 0.
    kernel_ : InputKernel
        k_X, with its bandwidth as a number.
    relevance_ : Relevance
        Which inputs matter: for each the root mean square of ∂h/∂x_j over rows and tasks, and that times its standard
        deviation, under the names of the columns; from at most 300 training rows, when it is first asked for.
    n_iter_ : int
    solution_ : Solution
        Why the solver stopped (``reason``, ``message``), and the bounds along the way (``history``).
    features_ : str
        Which features were picked.
    recipe_ : Recipe
        All choices of the fit, as they were made; parameters that change later do not change it.
"""
"""The entries that all estimators share."""


def _entries(text: str) -> dict[str, str]:
    """The entries of a numpydoc list, each under the name it opens with."""
    found = re.split(r"^(?=\S)", textwrap.dedent(text).strip("\n"), flags=re.MULTILINE)
    return {entry.split(" : ")[0].strip(): entry.rstrip("\n") for entry in found if entry.strip()}


def completed(cls: type) -> str | None:
    """The docstring of an estimator with ``{parameters}`` and ``{attributes}`` written out.

    They stand for the entries of :data:`SHARED` that this one does not give itself; of the parameters, those
    that the constructor takes.
    """
    doc = cls.__doc__
    if doc is None or "{parameters}" not in doc:
        return doc
    parameters, attributes = re.split(r" +(?:Parameters|Attributes)\n +-+\n", SHARED)[1:]
    taken = inspect.signature(cls).parameters
    for mark, entries in (
        ("{parameters}", {k: v for k, v in _entries(parameters).items() if k in taken}),
        ("{attributes}", _entries(attributes)),
    ):
        missing = [entry for name, entry in entries.items() if not re.search(rf"^    {name} : ", doc, re.MULTILINE)]
        doc = doc.replace(f"    {mark}", textwrap.indent("\n".join(missing), "    "))
    return doc
