"""A model of the paper's Table 1, tuned as the paper tuned it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from infinitask import IndependentQuantileRegressor, InfiniteQuantileRegressor, JointQuantileRegressor
from infinitask.tuning._folds import Folds
from infinitask.tuning._proposals import Proposals

__all__ = ["LEVELS", "crossing", "model", "pinball", "tune"]

Values = NDArray[np.float64]

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
"""The levels that are reported, and by which models are chosen."""

LOW, HIGH = -6.0, 6.0
"""log₁₀ of γ_X, γ_Θ = γ_b and λ."""

NODES = 100

ROUGH, FINE = (3e-2, 60), (1e-2, 200)
"""The duality gap and the most evaluations of a fit that is compared, and of one that may be the best."""

PROMISING = 1.15
"""A fit may be the best if its loss is at most so many times the smallest so far."""

BIAS_RIDGE = 1e-4
"""λ_b of JQR and IND while they are tuned. Their bias is free; a ridge as light as that is out of sight next to a gap
of 1e-2, and spares the certificate of a free bias, which takes half the time of so small a fit."""


def pinball(y: Values, h: Values) -> float:
    """The sum over LEVELS of the mean pinball loss, times 100."""
    r = y[:, None] - h
    return float(100.0 * np.sum(np.mean(np.maximum(LEVELS * r, (LEVELS - 1.0) * r), axis=0)))


def crossing(h: Values) -> float:
    """The sum over adjacent levels of the mean decrease, times 100."""
    return float(100.0 * np.sum(np.mean(np.maximum(h[:, :-1] - h[:, 1:], 0.0), axis=0)))


def model(method: str, parameters: dict[str, float], n: int, **others: Any) -> Any:
    """An estimator for n training rows; the paper's λ stands beside a sum, ours beside a mean."""
    gamma, alpha = 10.0 ** parameters["gamma"], 10.0 ** parameters["lambda"] / n
    if method == "ind":
        return IndependentQuantileRegressor(quantiles=LEVELS, gamma=gamma, alpha=alpha, **others)
    task_gamma = 10.0 ** parameters["task_gamma"]
    if method == "jqr":
        return JointQuantileRegressor(quantiles=LEVELS, gamma=gamma, task_gamma=task_gamma, alpha=alpha, **others)
    return InfiniteQuantileRegressor(
        gamma=gamma,
        task_gamma=task_gamma,
        alpha=alpha,
        quadrature="sobol",
        n_nodes=NODES,
        noncrossing="rearrange" if method == "itl_rearranged" else 1.0,
        random_state=0,
        **others,
    )


def tune(
    method: str, X: Values, y: Values, *, startup: int, iterations: int, seed: int
) -> tuple[dict[str, float], float]:
    """The parameters (log₁₀) with the smallest five-fold loss, and that loss.

    Sobol points first, then expected improvement under a Gaussian process.
    """
    names = ("gamma", "lambda") if method == "ind" else ("gamma", "task_gamma", "lambda")
    loss = _cross_validation(method, X, y)
    proposals = Proposals(len(names), startup, seed)
    points, losses = np.empty((0, len(names))), np.empty(0)
    for number in range(startup + iterations):
        point = proposals(number, points, -losses)
        here = loss(dict(zip(names, LOW + (HIGH - LOW) * point, strict=True)), np.min(losses, initial=np.inf))
        points, losses = np.vstack([points, point]), np.append(losses, here)
    best = int(np.argmin(losses))
    values = (LOW + (HIGH - LOW) * points[best]).tolist()
    return dict(zip(names, values, strict=True)), float(losses[best])


def _cross_validation(method: str, X: Values, y: Values) -> Callable[[dict[str, float], float], float]:
    splits = list(KFold(5).split(X))
    weight = np.ones(y.size)

    def loss(parameters: dict[str, float], best: float) -> float:
        recipe = model(method, parameters, splits[0][0].size, tol=ROUGH[0])._recipe()
        if method != "itl":
            recipe = replace(recipe, alpha_bias=BIAS_RIDGE)
        folds = Folds(recipe, X, y, weight, splits, LEVELS)

        def mean(tol: float, max_iter: int) -> float:
            found = folds.left_out(tol=tol, max_iter=max_iter)
            return float(np.mean([pinball(y[test], h) for (_, test), h in zip(splits, found, strict=True)]))

        rough = mean(*ROUGH)
        return mean(*FINE) if rough <= PROMISING * best else rough

    return loss
