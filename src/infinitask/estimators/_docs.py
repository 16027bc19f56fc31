"""Docstrings of the parameters and attributes that the estimators share: written once, shown by every class."""

from __future__ import annotations

import inspect
import re
import textwrap

_PARAMETERS = """
kernel : str, kernel object or callable, default="rbf"
    k_X: "rbf", "laplacian", "matern12", "matern32", "matern52", "chi2", "linear", "polynomial", "precomputed", an
    object of :mod:`infinitask.kernels` (sums and products of these too), or a function of (X, Z) that returns a
    Gram matrix.
gamma : float, "median" or "scale", default="median"
    Bandwidth of a kernel given by name: exp(−γ d²) for "rbf". "median": σ = (2γ)^(−1/2) is the median distance.
task_kernel : str or task kernel object, default="rbf"
    k_Θ: "rbf", "matern32", "matern52", "polynomial", "constant", "piecewise-linear", "diagonal", or an object.
task_gamma : float or None, default=None
    Bandwidth of a task kernel given by name; None: from the median distance of the nodes.
bias_kernel : "task", str, task kernel object or None, default="task"
    Kernel of a bias b(θ); "task": as the task kernel; None: no bias.
alpha : float, default=1e-3
    λ, the weight of (λ/2)‖h‖².
alpha_bias : float or None, default=None
    λ_b, the weight of (λ_b/2)‖b‖²; None: as ``alpha``; 0: the bias is free.
measure : measure, (low, high), frozen scipy.stats distribution or None, default=None
    μ on Θ; None: uniform on (0, 1).
quadrature : str or rule, default="gauss-legendre"
    "gauss-legendre", "clenshaw-curtis", "sobol", "halton", "monte-carlo" or "discrete".
n_nodes : int or None, default=None
    m; None: 50.
features : str or recipe, default="auto"
    φ: "exact" (pivoted Cholesky), "nystroem", "fourier", or "auto": exact where that is affordable.
rank : int or None, default=None
    The most features of φ.
solver : {"auto", "lbfgs", "newton"}, default="auto"
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
    same. Worth it where little changes, such as ``alpha``. The answer is as exact either way.
"""

_ATTRIBUTES = """
field_ : Field
    h, callable as ``field_(X, theta, order=0)``.
nodes_, weights_ : ndarray (m,)
    The quadrature on Θ.
objective_ : float
    The exact, non-smooth objective at the solution.
dual_gap_ : float
    Certified: the objective is within ``dual_gap_``·|objective| of the smallest possible.
n_iter_ : int
solution_ : Solution
    Why the solver stopped (``reason``, ``message``), and the bounds along the way (``history``).
features_ : str
    Which features were picked.
recipe_ : Recipe
    All choices of the fit, as they were made; parameters that change later do not change it.
"""


def _entries(text: str) -> dict[str, str]:
    """The entries of a numpydoc list, each under the name it opens with."""
    found = re.split(r"^(?=\S)", textwrap.dedent(text).strip("\n"), flags=re.MULTILINE)
    return {entry.split(" : ")[0].strip(): entry.rstrip("\n") for entry in found if entry.strip()}


def completed(cls: type) -> str | None:
    """The docstring of an estimator with ``{parameters}`` and ``{attributes}`` written out.

    They stand for the shared entries that the docstring does not give itself, of the parameters in the order in which
    the constructor takes them.
    """
    doc = cls.__doc__
    if doc is None or "{parameters}" not in doc:
        return doc
    taken = inspect.signature(cls).parameters
    for mark, shared in (
        ("{parameters}", {k: v for k, v in _entries(_PARAMETERS).items() if k in taken}),
        ("{attributes}", _entries(_ATTRIBUTES)),
    ):
        missing = [entry for name, entry in shared.items() if not re.search(rf"^    {name} : ", doc, re.MULTILINE)]
        doc = doc.replace(f"    {mark}", textwrap.indent("\n".join(missing), "    "))
    return doc
