"""The bound of a fitted model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import finite, fraction, number
from infinitask.bounds._formula import Bound, assemble, star_discrepancy
from infinitask.features import FourierMap
from infinitask.kernels import Chi2, Gaussian, InputKernel, MaternTask, takes_gamma
from infinitask.losses import Loss
from infinitask.losses._rows import Stability
from infinitask.measures import Measure, Uniform
from infinitask.penalties import Ridge

OTHER_ROWS = 1e-5
"""The tolerance for the objective: training rows reproduce that of the fit to 1e-9, other rows to about 1%."""


def bound_of(
    model: Any, X: Any, y: Any, *, delta: float = 0.05, y_bound: float | None = None, kappa_x: float | None = None
) -> Bound:
    """Compute the bound R(h) ≤ R̂(h) + 2β + (4nβ + ξ)√(log(1/δ)/(2n)) + V·D_m + 2ℒκ√(2ε/λ) for a fitted model.

    D_m is the discrepancy of its nodes and weights with respect to its measure, V uses the norm of its field, and R̂ is
    its risk on the data. R is integrated over the measure of the model. If θ has s > 1 coordinates, V is a Lipschitz
    constant and 4·D_m^(1/s) takes the place of D_m; this needs a uniform measure, nodes of equal weights such as
    ``quadrature="sobol"``, and a loss that has constants of stability for several coordinates.

    Parameters
    ----------
    model : fitted InfiniteQuantileRegressor or InfiniteCostSensitiveClassifier
        Or another model of this library with one of their losses, including self-tuned models. All quantities are those
        of the fit; parameters changed after the fit are ignored. With smoothing > 0 (M-quantiles) the risk is that of
        the smoothed loss. For a pipeline, pass its last step, and X as transformed by the steps before.
    X : array (n, d)
        The training data passed to ``fit``: rows sampled independently, with equal weights. The bound applies to new
        data. Other rows than those of the fit would give a wrong R̂ and raise an error.
    y : array (n,)
        The targets of the fit.
    delta : float in (0, 1)
    y_bound : float or None
        B, at least the largest |y| of the sample; None: this largest |y|, which is then assumed to bound all y.
    kappa_x : float or None
        κ_X; None: 1 for kernels with k(x, x) = 1. Required for others: √k(x, x) at the largest possible x.

    Returns
    -------
    Bound

    Examples
    --------
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(200, random_state=0)
    >>> bound = bound_of(InfiniteQuantileRegressor(alpha=1.0).fit(X, y), X, y)
    >>> bound.empirical_risk < bound.risk
    True
    >>> bound.vacuous  # 200 samples are few for a bound
    True
    """
    model, notes = _fitted(model)
    recipe = model.recipe_
    notes += _assumptions(model, recipe)
    X, targets = model._inputs(X), _targets(model, y)
    if targets.shape != X.shape[:1]:
        raise ValueError(f"X of shape {X.shape} and y of shape {targets.shape} were given; expected (n, d) and (n,).")
    largest = float(np.max(np.abs(targets)))
    if recipe.task.loss.target_bound is not None:
        y_bound = recipe.task.loss.target_bound
    elif y_bound is None:
        y_bound = largest
        notes.append("y_bound is the largest |y| of the sample; the bound needs one that holds for every y.")
    elif number("y_bound", y_bound, low=0.0, open_low=False) < largest * (1.0 - 1e-9):  # up to rounding
        raise ValueError(
            f"y_bound={y_bound!r} was given, and the sample has |y| = {largest:g}"
            f"{' after its offset is taken off' * (recipe.offset != 0.0)}; give a number that no |y| exceeds."
        )
    losses = recipe.task.loss.value(model.nodes_, targets[:, None], _values(model, X) - recipe.offset)
    risk = float(np.mean(losses @ model.weights_))
    _check_rows_of_the_fit(model, X, risk)
    loss = _stability(model, y_bound)
    measure, discrete = recipe.task.measure, recipe.task.measure.atoms() is not None
    kappa, slope = _sizes(model, kappa_x, derivative=recipe.task.order.weight > 0.0 or not discrete)
    discrepancy = 0.0  # the risk of a discrete measure is exactly the sum over its points
    if not discrete:
        discrepancy = star_discrepancy(_cdf(measure, model.nodes_.reshape(-1, measure.dim)), model.weights_)
    if measure.dim > 1 and not discrete:
        discrepancy = 4.0 * discrepancy ** (1.0 / measure.dim)
        notes.append(
            "Several coordinates of θ: variation is a Lipschitz constant, discrepancy is 4·D_m^(1/s) (Proinov, 1988)."
        )
    gap = max(0.0, float(model.solution_.objective - model.solution_.dual))
    return assemble(
        loss,
        n=X.shape[0],
        m=len(model.nodes_),
        alpha=recipe.alpha,
        kappa=kappa,
        slope=slope,
        noncrossing=recipe.task.order.weight,
        delta=fraction("delta", delta),
        discrepancy=discrepancy,
        norm=_norm(model),
        optimisation=2.0 * loss.slope * kappa * math.sqrt(2.0 * gap / recipe.alpha),
        empirical_risk=risk,
        notes=tuple(notes),
    )


def _fitted(model: Any) -> tuple[Any, list[str]]:
    """Return the fitted model, also inside a self-tuned one; raise an error if it has no bound."""
    notes = []
    if hasattr(type(model), "_refit"):  # a self-tuned model
        check_is_fitted(model)
        notes.append("The kernel and λ are taken as chosen without the sample; this model chose them from it.")
        model = model.best_estimator_
    if hasattr(type(model), "_prepare"):
        check_is_fitted(model, "field_")
        return model, notes
    given = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
    raise TypeError(
        f"{given} was given; bound_of takes a fitted InfiniteQuantileRegressor or InfiniteCostSensitiveClassifier. Of "
        "a pipeline, pass the last step, and the inputs as they reach it: pipe[-1], pipe[:-1].transform(X). Of a "
        "search, pass its best_estimator_."
    )


def _assumptions(model: Any, recipe: Any) -> list[str]:
    """Return the assumptions of the bound in words; raise an error if the stability argument does not apply."""
    name = type(model).__name__
    _stability(model, 1.0)
    if recipe.task.measure.dim > 1 and recipe.task.measure.atoms() is None:
        _check_coordinates(model, recipe)
    if not isinstance(recipe.task.penalty, Ridge):
        raise ValueError(f"{name} has the penalty {recipe.task.penalty!r}; the bound is for penalty='ridge'.")
    if model.field_.bias_psi is not None and recipe.alpha_bias == 0.0:
        raise ValueError(
            f"{name} has a bias without penalty (alpha_bias=0); one sample can then move it by any amount, and "
            "stability fails. Fit with alpha_bias above 0, or bias_kernel=None."
        )
    if recipe.task.order.weight > 0.0 and recipe.task.order.loss == "squared":
        raise ValueError(
            "The model was fitted with noncrossing_loss='squared', whose slopes have no bound; stability needs one. "
            "Use 'hinge' or 'smoothed', or noncrossing=0."
        )
    if recipe.task.order.hard:
        raise ValueError(
            "The model was fitted with noncrossing='hard'; a constraint at the training inputs that may not be "
            "violated at all is no Lipschitz function of the sample, and the bound does not cover it. Use a weight, or "
            "'rearrange'."
        )
    notes = []
    if recipe.task.order.rearranged:
        notes.append("The bound is for the field before it is rearranged; that does not raise a uniform risk.")
    if recipe.offset != 0.0:
        notes.append(f"The targets are y − {recipe.offset:g}, an offset taken as chosen without the sample.")
    if getattr(model, "alpha", None) == "auto":
        notes.append("λ is taken as chosen without the sample; alpha='auto' looks at X and y.")
    if isinstance(recipe.gamma, str) and takes_gamma(model.kernel):
        notes.append("The kernel is taken as chosen without the sample; gamma is a rule that looks at X.")
    if not isinstance(model.field_.phi, FourierMap) and "exact" not in model.features_:
        notes.append("The features are taken as chosen without the sample; their landmarks are rows of it.")
    return notes


def _check_coordinates(model: Any, recipe: Any) -> None:
    """Raise an error if the error of the quadrature over several coordinates has no bound."""
    measure, kernel = recipe.task.measure, model.field_.psi.kernel
    if not all(isinstance(mu, Uniform) for mu in measure.marginals()):
        raise ValueError(
            f"measure={measure!r} was given; in {measure.dim} dimensions the bound is for products of uniform measures."
        )
    if np.ptp(model.weights_) > 1e-9 * np.max(model.weights_):
        raise ValueError(
            f"quadrature={recipe.quadrature!r} was given, whose nodes have different weights; in {measure.dim} "
            "dimensions the bound is for equal ones. Use quadrature='sobol' or 'halton'."
        )
    if not isinstance(kernel, (Gaussian, MaternTask)):
        raise ValueError(
            f"task_kernel={kernel!r} was given; in {measure.dim} dimensions the bound is for 'rbf', 'matern32' and "
            "'matern52', kernels of the distance alone."
        )


def _targets(model: Any, y: Any) -> HostArray:
    """Return the targets of the fit: ±1 for classes, otherwise y minus the offset."""
    if hasattr(model, "classes_"):
        labels = np.asarray(y)
        unknown = np.setdiff1d(labels, model.classes_)
        if unknown.size:
            raise ValueError(f"y holds {unknown[0]!r}; the model knows the labels {model.classes_.tolist()}.")
        return np.where(labels == model.classes_[1], 1.0, -1.0)
    return np.asarray(finite("y", y, 1) - model.recipe_.offset)


def _stability(model: Any, y_bound: float) -> Stability:
    """Return the constants of the loss, with means over the nodes of the model."""
    loss: Loss = model.recipe_.task.loss
    ends = model._ends() if model.recipe_.task.measure.dim == 1 else model.recipe_.task.measure.support
    found = loss.stability(model.nodes_, np.abs(model.weights_), ends, y_bound)
    if found is None:
        raise ValueError(
            f"{type(model).__name__} has the loss {loss!r}, whose method stability() gives no constants; a bound needs "
            "a loss whose slopes are bounded, and these constants of it."
        )
    found = Stability(*found)
    if found.reach < y_bound:
        raise ValueError(
            f"{loss!r} returned reach={found.reach:g} from stability(); it is B, a bound on |y|, and must be at least "
            f"y_bound={y_bound:g}."
        )
    return found


def _sizes(model: Any, kappa_x: float | None, *, derivative: bool) -> tuple[float, float]:
    """Return κ and κ' of the whole model, k_X k_Θ + (λ/λ_b) k_b; κ' is 0 if it is not needed."""
    field = model.field_
    inputs = _kappa_x(field.phi) if kappa_x is None else number("kappa_x", kappa_x, low=0.0)
    parts = [(inputs**2, field.psi.kernel)]
    if field.bias_psi is not None:
        parts.append((_bias_ratio(model), field.bias_psi.kernel))
    if derivative and any(kernel.max_order < 1 for _, kernel in parts):
        raise ValueError(
            f"task_kernel={field.psi.kernel!r} has no derivative ∂₁∂₂k; the variation over θ is then not bounded by "
            "the norm. Use 'rbf', 'matern32', 'matern52' or 'polynomial', or a Discrete measure."
        )
    low, high = model.recipe_.task.measure.support
    # the ends are included, where non-stationary kernels are largest; those of several coordinates are stationary
    grid = np.linspace(low[0], high[0], 201)
    lines = [(factor, *_along_a_line(kernel, high - low)) for factor, kernel in parts]

    def size(order: int) -> float:
        largest = (float(np.max(np.diagonal(k(grid, grid, (order, order))))) for _, k, _ in lines)
        return math.sqrt(sum(f * stretch ** (2 * order) * k for (f, _, stretch), k in zip(lines, largest, strict=True)))

    return size(0), size(1) if derivative else 0.0


def _along_a_line(kernel: Any, sides: HostArray) -> tuple[Any, float]:
    """Return a task kernel of one coordinate, and the factor to its distance.

    The factor is that from the largest difference of coordinates, relative to the sides of Θ, to the distance that the
    kernel measures. A single side stays as it is.
    """
    gamma = getattr(kernel, "gamma", None)
    if isinstance(gamma, tuple) and len(gamma) > 1:
        return clone(kernel).set_params(gamma=1.0), float(np.linalg.norm(sides * np.sqrt(gamma)))
    return kernel, float(np.linalg.norm(sides)) if len(sides) > 1 else 1.0


def _kappa_x(phi: Any) -> float:
    """Return √k(x, x) if it is the same for all x."""
    if isinstance(phi, FourierMap):
        return 1.0
    kernel = getattr(phi, "kernel", None)
    if kernel is not None and _has_constant_diagonal(kernel):
        return math.sqrt(float(np.max(to_host(kernel.diag(phi.landmarks[:1, :])))))
    raise ValueError(
        f"The kernel {kernel!r} does not say how large k(x, x) can become; give kappa_x, the square root of its "
        "largest value over all x that can occur."
    )


def _has_constant_diagonal(kernel: InputKernel) -> bool:
    """Whether k(x, x) is the same for all x: for stationary kernels, and for kernels made of such kernels."""
    if kernel.stationary or isinstance(kernel, Chi2):
        return True
    parts = [part for part in kernel.get_params(deep=False).values() if isinstance(part, InputKernel)]
    return bool(parts) and all(map(_has_constant_diagonal, parts))


def _bias_ratio(model: Any) -> float:
    return float(model.recipe_.alpha / model.recipe_.alpha_bias)


def _norm(model: Any) -> float:
    """Return the joint norm of h and b, in which the penalty is (λ/2)‖·‖²."""
    field = model.field_
    bias = 0.0 if field.bias_coef is None else float(np.sum(np.square(field.bias_coef))) / _bias_ratio(model)
    return math.sqrt(field.norm**2 + bias)


def _values(model: Any, X: Any, order: int = 0) -> HostArray:
    """Return h at the nodes, or its derivative in θ, for checked X: (n, m)."""
    blocks = [model.field_(block, model.nodes_, order) for _, block in model._dense_blocks(X)]
    return np.concatenate(blocks)


def _check_rows_of_the_fit(model: Any, X: Any, risk: float) -> None:
    """Raise an error if the objective on these rows is not that of the fit: other rows, or other weights."""
    recipe = model.recipe_
    crossing = 0.0
    if recipe.task.order.weight > 0.0:
        penalty, _, named = recipe.task.order.term(recipe.task.loss.rounding)
        slopes = _values(model, X if named is None else model._inputs(named), order=1)
        crossing = float(np.mean(penalty.value(model.nodes_, None, slopes) @ model.weights_))
    objective = risk + crossing + 0.5 * recipe.alpha * _norm(model) ** 2
    if abs(objective - model.objective_) > OTHER_ROWS * abs(model.objective_):
        raise ValueError(
            f"X and y are not the rows of the fit, or these had unequal weights: the objective on them is "
            f"{objective:.6g}, and that of the fit {model.objective_:.6g}. The bound needs the training data."
        )


def _cdf(measure: Measure, theta: HostArray) -> HostArray:
    """Return F(θ) of each coordinate, (m, d), by bisection of F⁻¹, which every measure implements."""
    low, high = np.zeros(theta.shape), np.ones(theta.shape)
    for _ in range(60):
        middle = 0.5 * (low + high)
        right = measure.ppf(middle) <= theta
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    return low
