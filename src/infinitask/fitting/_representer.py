r"""The coefficients of the representer theorem: the solution in the notation of the paper.

.. math::

    h(x)(\theta) = \sum_{ij} k_X(x, x_i) \left( \alpha_{ij} k_\Theta(\theta, \theta_j)
                   + \beta_{ij} \, \partial_2 k_\Theta(\theta, \theta_j) \right)

A fit never needs them: its unknowns C are coordinates in the span of these functions, which are far fewer than the
2nm numbers of the theorem. :func:`representer_coefficients` computes the α and β for a given C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import finite
from infinitask.features import TaskMap, task_features
from infinitask.features._maps import KernelMap, PrecomputedMap
from infinitask.features._task import as_tasks
from infinitask.fitting._pose import TASK_TOLERANCE
from infinitask.kernels import InputKernel, TaskKernel
from infinitask.penalties import Ridge

SEEN = 1e-9
"""Directions whose singular value is below this fraction of the largest one have no coefficients, which would be mostly
rounding errors. The contribution of these directions to an optimum is as small."""


MISSED = 1e-3
"""The tolerated error of coefficients, as a fraction of the norm of the model; it is larger if rows are missing."""


@final
@dataclass(frozen=True, eq=False)
class Representer:
    """A learnt function as a sum over training rows and nodes; call it as ``representer(X, theta)``.

    Parameters
    ----------
    kernel : InputKernel or None
        k_X; None if Gram matrices are given instead of rows.
    task_kernel : TaskKernel
        k_Θ.
    inputs : ndarray (n, d)
        x_i: the training rows and, below them, those named for penalties on curves.
    nodes : ndarray (m, d_Θ)
        θ_j.
    alpha : ndarray (n, m)
        α.
    beta : ndarray (n, m) or None
        β; None if the objective does not contain the derivative.
    bias_kernel : TaskKernel or None
        k_b of b(θ) = Σ_j a_j k_b(θ, θ_j) + a'_j ∂₂k_b(θ, θ_j) + offset; None without a bias.
    bias_alpha, bias_beta : ndarray (m,) or None
        a and a'.
    free_bias : callable or None
        θ ↦ b(θ), for a bias outside any RKHS; it has no coefficients.
    offset : float
        A constant in the bias.
    error : float
        The largest difference from the learnt function at the training rows and nodes: a rounding error.
    """

    kernel: InputKernel | None
    task_kernel: TaskKernel
    inputs: HostArray
    nodes: HostArray
    alpha: HostArray
    beta: HostArray | None
    bias_kernel: TaskKernel | None = None
    bias_alpha: HostArray | None = None
    bias_beta: HostArray | None = None
    free_bias: Callable[[HostArray], HostArray] | None = None
    offset: float = 0.0
    error: float = 0.0

    def __call__(self, X: Any, theta: Any) -> HostArray:
        """Return h(x)(θ) for rows (q, d) and tasks (p,) or (p, d_Θ), summed as written: (q, p)."""
        rows, tasks = np.asarray(X, dtype=np.float64), as_tasks(theta)
        gram = rows if self.kernel is None else to_host(self.kernel(rows, self.inputs))
        values = gram @ _sections(self.task_kernel, tasks, self.nodes, self.alpha, self.beta)
        if self.bias_kernel is not None and self.bias_alpha is not None:
            beta = None if self.bias_beta is None else self.bias_beta[None, :]
            values = values + _sections(self.bias_kernel, tasks, self.nodes, self.bias_alpha[None, :], beta)
        if self.free_bias is not None:
            values = values + self.free_bias(tasks)
        return np.asarray(values + self.offset)


def _sections(
    kernel: TaskKernel, tasks: HostArray, nodes: HostArray, alpha: HostArray, beta: HostArray | None
) -> HostArray:
    """Return Σ_j α_ij k(θ, θ_j) + β_ij ∂₂k(θ, θ_j) for every θ, (n, q)."""
    values = alpha @ np.asarray(kernel(tasks, nodes)).T
    return np.asarray(values if beta is None else values + beta @ np.asarray(kernel(tasks, nodes, orders=(0, 1))).T)


def representer_coefficients(model: Any, X: Any) -> Representer:
    """Return the α_ij and β_ij of the representer theorem for a fitted model.

    If the functions k_X(·, x_i) k_Θ(·, θ_j) are linearly dependent, many coefficients give the same function, and
    the smallest ones are returned. Otherwise they are unique, and at the optimum with a ridge they are the dual
    variables, α_ij = ω_i w_j u_ij/λ: rows with α_i· = β_i· = 0 are not support vectors.

    Parameters
    ----------
    model : fitted estimator
        A model with exact features; for a pipeline, its last step.
    X : array (n, d)
        The training rows as passed to the model; for a precomputed kernel, their Gram matrix.

    Returns
    -------
    Representer

    Examples
    --------
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(40, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=8).fit(X, y)
    >>> found = representer_coefficients(model, X)
    >>> found.alpha.shape, found.beta.shape
    ((40, 8), (40, 8))
    >>> bool(np.allclose(found(X[:3], [0.1, 0.9]), model.predict(X[:3], [0.1, 0.9]), atol=1e-5))
    True
    """
    if not hasattr(model, "field_"):
        raise TypeError(
            f"a {type(model).__name__} was given; representer_coefficients takes a fitted estimator of infinitask. Of "
            "a pipeline, pass the last step, and the inputs as they reach it: pipe[-1], pipe[:-1].transform(X)."
        )
    field, recipe = model.field_, model.recipe_
    inputs = _inputs(model, X)
    phi_map, field_coef = field.in_coordinates()
    phi, kernel = _exact_features(phi_map, inputs)
    nodes = as_tasks(model.nodes_)
    plain = task_features(field.psi.kernel, nodes, recipe.task.derivatives, TASK_TOLERANCE)
    seen = np.vstack(plain.values)
    # the coordinates of ψ itself, which are isometric
    coef = (
        field_coef
        if isinstance(recipe.task.penalty.quadratic, Ridge)
        else field_coef @ _change(field.psi, nodes, seen).T
    )
    alpha, beta = _split(_smallest(phi, coef, seen), nodes.shape[0])
    bias: dict[str, Any] = {"offset": field.offset}
    if field.bias_psi is not None and not hasattr(field.bias_psi, "kernel"):
        bias = {"free_bias": field.bias}
    elif field.bias_psi is not None and field.bias_coef is not None:
        orders = recipe.task.derivatives if field.bias_psi.kernel.max_order > 0 else (0,)
        seen = np.vstack(task_features(field.bias_psi.kernel, nodes, orders, TASK_TOLERANCE).values)
        coef = (_change(field.bias_psi, nodes, seen) @ field.bias_coef)[None, :]
        a, a_slope = _split(_smallest(np.ones((1, 1)), coef, seen), nodes.shape[0])
        bias |= {
            "bias_kernel": field.bias_psi.kernel,
            "bias_alpha": a[0],
            "bias_beta": None if a_slope is None else a_slope[0],
        }
    found = Representer(kernel, field.psi.kernel, inputs, nodes, alpha, beta, **bias)
    error = float(np.max(np.abs(found(inputs, nodes) - field(inputs, nodes))))
    return Representer(**(vars(found) | {"error": error}))


def _inputs(model: Any, X: Any) -> HostArray:
    """Return the training rows and, below them, those named for penalties."""
    inputs, named = finite("X", np.asarray(X), 2), model.recipe_.task.named
    if inputs.shape[1] != model.n_features_in_:
        raise ValueError(
            f"X of shape {inputs.shape} was given; the model was fitted to {model.n_features_in_} features. Give the "
            "inputs of the fit."
        )
    if hasattr(model, "training_rows_"):
        inputs = inputs[np.ix_(model.training_rows_, model.training_rows_)]
    return np.vstack([inputs, *named])


def _exact_features(phi: Any, inputs: HostArray) -> tuple[HostArray, InputKernel | None]:
    """Return Φ at the rows and k_X; raise an error if Φ does not reproduce k_X there."""
    if isinstance(phi, KernelMap):
        kernel, diagonal = phi.kernel, to_host(phi.kernel.diag(inputs))
    elif isinstance(phi, PrecomputedMap):
        kernel, diagonal = None, np.diagonal(inputs)
    else:
        raise ValueError(
            f"The model has features of the kind {type(phi).__name__}, which are no sums of k_X(·, x_i); coefficients "
            "exist for exact features. Fit with features='exact'."
        )
    values = to_host(phi(inputs)).astype(np.float64)
    left = float(np.max(diagonal - np.sum(values**2, axis=1)))
    if left > 1e-6 * float(np.max(diagonal)):
        raise ValueError(
            f"The features miss k_X(x, x) by up to {left:.1e} at the inputs given: either these are not the training "
            "inputs, or the features are not exact. Give the inputs of the fit, and fit with features='exact'."
        )
    return values, kernel


def _change(psi: TaskMap, nodes: HostArray, seen: HostArray) -> HostArray:
    """Return R (s, s') with ψ(θ) = Rᵀ ψ_plain(θ), given their values at the nodes; ``seen`` are those of ψ_plain."""
    orders = range(seen.shape[0] // nodes.shape[0])
    return np.asarray(np.linalg.lstsq(seen, np.vstack([psi(nodes, order) for order in orders]), rcond=SEEN)[0])


def _smallest(rows: HostArray, coef: HostArray, cols: HostArray) -> HostArray:
    """Return the smallest A with rowsᵀ A cols = coef, up to directions of negligible singular values."""
    U, S, Vt = np.linalg.svd(rows, full_matrices=False)
    Q, T, Wt = np.linalg.svd(cols, full_matrices=False)
    sizes = np.outer(S, T)
    kept = sizes > SEEN * np.max(sizes)
    inner = np.where(kept, Vt @ coef @ Wt.T, 0.0) / np.where(kept, sizes, 1.0)
    found = np.asarray(U @ inner @ Q.T)
    missed = np.linalg.norm(rows.T @ found @ cols - coef)
    if missed > MISSED * np.linalg.norm(coef):
        raise ValueError(
            f"The {len(rows)} inputs given cannot express {missed / np.linalg.norm(coef):.1%} of the model, in norm: "
            "they are not all training inputs. Give the inputs of the fit."
        )
    return found


def _split(coefficients: HostArray, m: int) -> tuple[HostArray, HostArray | None]:
    """Return α and β."""
    return coefficients[:, :m], coefficients[:, m:] if coefficients.shape[1] > m else None
