"""How good the answers are on test rows, computed in the same way for all methods."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from suite.duality import pinball
from suite.problems import CHECKED, LEVELS

Array = NDArray[np.float64]


def quantile_scores(predicted: Mapping[float, Array], y: Array) -> dict[str, float]:
    """Test pinball loss at the checked levels and at all of them, crossing loss and share of crossing neighbours.

    Parameters
    ----------
    predicted : mapping of float to ndarray (n,)
        The quantile of each level that was answered.
    y : ndarray (n,)

    Returns
    -------
    dict
        "pinball 5", if all checked levels were answered; "pinball 99", if all levels were; "crossing loss", the mean
        over rows of Σ_j (q_j − q_(j+1))₊ and "crossing pairs", the share of neighbours in the wrong order, over the
        "levels" that were answered.
    """
    levels = np.asarray(sorted(predicted))
    curves = np.column_stack([predicted[level] for level in levels])
    losses = dict(zip(levels.tolist(), pinball(y[:, None] - curves, levels).mean(axis=0).tolist(), strict=True))
    found: dict[str, float] = {"levels": float(levels.size)}
    for count, wanted in ((5, CHECKED), (99, LEVELS.tolist())):
        if all(level in losses for level in wanted):
            found[f"pinball {count}"] = float(np.mean([losses[level] for level in wanted]))
    falls = np.maximum(curves[:, :-1] - curves[:, 1:], 0.0)
    if falls.size:
        found |= {"crossing loss": float(falls.sum(axis=1).mean()), "crossing pairs": float(np.mean(falls > 0.0))}
    return found


def cost_scores(positive: Array, labels: Array, thetas: Array) -> dict[str, float]:
    """Mean cost of an error over rows and θ, and the decisions that become negative again as θ grows.

    Parameters
    ----------
    positive : ndarray (n, m) of bool
        Whether the decision at θ_j is positive.
    labels : ndarray (n,)
        0 and 1.
    thetas : ndarray (m,)
        Ascending.
    """
    cost = np.where(labels[:, None] == 1, 0.5 * (1.0 + thetas), 0.5 * (1.0 - thetas))
    wrong = positive != (labels[:, None] == 1)
    return {
        "cost": float(np.mean(cost * wrong)),
        "reversals": int(np.sum(positive[:, :-1] & ~positive[:, 1:])),
        "pairs": int(positive[:, 1:].size),
    }


def level_set_scores(train: Array, test: Array, nus: Array) -> dict[str, float]:
    """How far the share outside is from ν, and how often a row is inside again at a larger ν.

    Parameters
    ----------
    train, test : ndarray (n, m) of bool
        Whether a row is outside at ν_j.
    nus : ndarray (m,)
        Ascending.
    """
    found: dict[str, float] = {}
    for name, outside in (("train", train), ("test", test)):
        deviation = np.abs(outside.mean(axis=0) - nus)
        found |= {f"{name} max": float(deviation.max()), f"{name} mean": float(deviation.mean())}
    found["re-entries"] = float(np.mean(test[:, :-1] & ~test[:, 1:]))
    return found
