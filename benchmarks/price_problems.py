"""Tables whose fits are slow, for comparisons of speed and of held-out losses."""

from __future__ import annotations

from typing import Any

import numpy as np

CATEGORIES = (100, 45, 15)
"""The numbers of values of the categorical columns of the one-hot table."""


def one_hot_table(seed: int, n: int = 9_800) -> tuple[Any, Any]:
    """Three categorical columns as columns of zeros and ones, a year and three amounts; targets with a heavy tail.

    Targets are log-normal with σ = 4, rounded to tenths and at least .1: from .1 to about 1e7, with a median of .9.
    A few of them are most of the sum of all.

    Parameters
    ----------
    seed : int
    n : int
        The number of rows.

    Returns
    -------
    X : ndarray (n, 164)
    y : ndarray (n,)
    """
    rng = np.random.default_rng(seed)
    columns, log_y = [], np.zeros(n)
    for count in CATEGORIES:
        frequency = 1.0 / np.arange(1.0, count + 1.0)
        value = rng.choice(count, size=n, p=frequency / np.sum(frequency))
        columns.append(np.eye(count)[value])
        log_y += rng.normal(size=count)[value]
    year, amounts = rng.integers(1990, 2021, size=n), rng.lognormal(size=(n, 3))
    log_y += 0.5 * np.sin(year / 5.0) + 0.5 * np.log(amounts[:, 0])
    log_y += np.sqrt(max(0.0, 16.0 - np.var(log_y))) * rng.normal(size=n)
    y = np.exp(log_y - np.median(log_y) + np.log(0.9))
    return np.column_stack([*columns, year, amounts]), np.maximum(0.1, np.round(y, 1))
