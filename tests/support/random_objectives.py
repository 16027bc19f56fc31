"""Objectives of random features for every loss, and the losses that have everything a row may have."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from infinitask.losses import (
    BoxLoss,
    CostSensitiveHinge,
    EpsilonInsensitive,
    Expectile,
    LevelSet,
    Loss,
    MQuantile,
    Pinball,
    Row,
    Squared,
)
from infinitask.losses._rows import NonCrossing, SquaredNonCrossing
from infinitask.objective import Integral, Objective
from infinitask.objective._table import compiled_functions
from infinitask.objective._terms import SWITCH

Floats = np.ndarray[Any, Any]

compiled_only = pytest.mark.skipif(
    compiled_functions() is None or os.environ.get(SWITCH) == "0", reason="numba is not installed, or switched off"
)


class Given(BoxLoss):
    """A row as a function of θ and y."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def row(self, theta: Any, y: Any) -> Row:
        return self.function(theta, y)


def signed(theta: Any, y: Any) -> Row:
    """Follows the sign of the target, with a dead zone for each sample."""
    if y is None:
        return Row(theta - 1.0, theta)
    return Row(theta - 1.0, np.where(y > 0.0, theta, 0.2 * theta), dead_zone=0.05 * (y + 2.0))


LOSSES: dict[str, Loss] = {
    "pinball": Pinball(),
    "M-quantile": MQuantile(0.3),
    "expectile": Expectile(),
    "hinge": CostSensitiveHinge(),
    "smoothed hinge": CostSensitiveHinge(0.4),
    "level set": LevelSet(),
    "epsilon-insensitive": EpsilonInsensitive(),
    "squared": Squared(),
    "non-crossing": NonCrossing(0.7),
    "smoothed non-crossing": NonCrossing(0.7, kappa=0.4),
    "squared non-crossing": SquaredNonCrossing(0.7),
    # everything that a row may have, all of it different
    "tube": Given(lambda theta, y: Row(-1.0 - theta, 2.0 - theta, 0.3 * theta, soft_low=0.2, soft_high=0.1 + theta)),
    # no end on the side where the slope is soft, no softness on the side where it has an end
    "one end": Given(lambda theta, y: Row(None, 0.5 + theta, soft_low=1.0 + theta)),
    "numbers": Given(lambda theta, y: Row(-1, None, dead_zone=0, soft_high=2.0)),
    "signed": Given(signed),
}
SIGNED, TARGETLESS = (LOSSES["hinge"], LOSSES["smoothed hinge"], LOSSES["signed"]), LOSSES["level set"]


def posed(
    loss: Loss,
    *,
    bias: str | None = None,
    targets: str = "shared",
    others: tuple[tuple[Loss, int], ...] = (),
    n: int = 23,
    at_ends: bool = False,
) -> Objective:
    """An objective of random features; ``others`` are further integrals, each with its number of nodes."""
    rng = np.random.default_rng(0)
    r, s, m = 4, 3, 6
    y: Floats | None = rng.normal(size=(n, m if targets == "own" else 1))
    if loss in SIGNED:
        y = np.sign(y)
    elif targets == "none" or loss is TARGETLESS:
        y = None
    low, high = loss.support or loss.domain

    def integral(loss: Loss, m: int, y: Floats | None) -> Integral:
        theta = np.sort(rng.uniform(low, high, size=m))
        if at_ends:
            theta[[0, -1]] = low, high  # of the support: the level sets' is shorter than their domain
        bias_cols = None if bias is None else np.stack([np.ones(m), rng.normal(size=m)], axis=1)
        weights = rng.uniform(0.5, 1.5, size=m)
        return Integral(loss, theta, weights / weights.sum(), rng.normal(size=(m, s)), bias_cols, y)

    terms = [integral(loss, m, y), *(integral(other, count, None) for other, count in others)]
    omega = rng.uniform(0.2, 2.0, size=n)
    alpha_bias = 0.0 if bias == "free" else 0.2
    linear = rng.normal(size=2) if bias == "penalised" else None
    if bias == "free" and isinstance(loss, (LevelSet, NonCrossing, SquaredNonCrossing)):
        # slopes of one sign balance only against something
        linear = 0.3 * terms[0].bias_cols.T @ terms[0].weights
    return Objective(rng.normal(size=(n, r)), omega / omega.sum(), tuple(terms), 0.05, alpha_bias, linear, 100)


def point(objective: Objective, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=objective.size)
