"""Tables whose fits are slow, for comparisons of speed and of held-out losses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from tuned_growth import sample as waves

__all__ = ["CATEGORIES", "PROBLEMS", "TEST_ROWS", "WARM_ROWS", "Problem", "Split", "one_hot_table"]

CATEGORIES = (100, 45, 15)
"""The numbers of values of the categorical columns of the one-hot table."""

TEST_ROWS = 5_000
"""New rows of the simulated tables."""

WARM_ROWS = 100
"""Rows of the small table that is fitted before the clock starts."""


@dataclass(frozen=True)
class Split:
    """Rows to learn from, and new rows.

    Parameters
    ----------
    X, X_new : arrays (n, d) and (n_new, d)
    y, y_new : arrays
        Targets; for level sets, ``y`` is empty and ``y_new`` is 1 for rows of the same distribution, 0 for outliers.
    """

    X: Any
    y: Any
    X_new: Any
    y_new: Any


Draw = Callable[[np.random.Generator, int], tuple[Any, Any]]
"""A generator and a number of rows → X and y."""


@dataclass(frozen=True)
class Problem:
    """A table.

    Parameters
    ----------
    kind : str
        "quantiles", "costs", "classes" or "level sets".
    n : int
        Rows to learn from.
    draw : callable
    tail : bool
        Whether the targets have a heavy tail, so that losses of their logarithms are told as well.
    """

    kind: str
    n: int
    draw: Draw
    tail: bool = False

    def split(self, seed: int, n: int | None = None) -> Split:
        """Rows to learn from and new ones of the same distribution, with the same fractions of two classes.

        Parameters
        ----------
        seed : int
        n : int, optional
            Rows to learn from, if not as many as the problem has.
        """
        n = self.n if n is None else n
        rng = np.random.default_rng(seed)
        X, y = self.draw(rng, n + TEST_ROWS)
        if self.kind == "level sets":  # only normal rows are learnt from
            order = np.argsort(y == 0, kind="stable")
        elif self.kind == "costs":  # the k-th of the positives stands at the k-th of evenly spaced places
            order = np.empty(y.size, dtype=int)
            positives = np.flatnonzero(y == 1)
            places = np.floor((np.arange(positives.size) + 0.5) * y.size / positives.size).astype(int)
            order[places] = positives
            order[np.setdiff1d(np.arange(y.size), places)] = np.flatnonzero(y != 1)
        else:
            order = np.arange(y.size)
        train, new = order[:n], order[n:]
        return Split(X[train], y[train], X[new], y[new])

    def small(self) -> Split:
        """A small table of the same columns, with rows of every class."""
        whole = self.split(0)
        if self.kind == "level sets" or self.kind == "quantiles":
            rows = np.arange(min(len(whole.y), WARM_ROWS))
        else:
            each = WARM_ROWS // np.unique(whole.y).size
            rows = np.concatenate([np.flatnonzero(whole.y == label)[: max(6, each)] for label in np.unique(whole.y)])
        return Split(whole.X[rows], whole.y[rows], whole.X_new[:100], whole.y_new[:100])


# ------------------------------------------------------------------------------------------------------------ quantiles
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


def _one_hot(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return one_hot_table(int(rng.integers(2**31)), n)


def _waves(d: int) -> Draw:
    """A wave, a product of two features, and Student's noise whose size depends on a fourth; the rest is useless."""
    return lambda rng, n: waves(n, d, int(rng.integers(2**31)))


def _wide(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """239 noisy features that follow 12 factors, as spectra do; the target is a curved function of three of them."""
    loadings = np.random.default_rng(239).normal(size=(12, 239))
    factors = rng.normal(size=(n, 12))
    X = factors @ loadings + 1.5 * rng.normal(size=(n, 239))
    y = factors[:, 0] + np.sin(2.0 * factors[:, 1]) + 0.4 * np.exp(0.5 * factors[:, 2]) * rng.normal(size=n)
    return X, y


# ---------------------------------------------------------------------------------------------------------- two classes
def _rarely(rng: np.random.Generator, score: Any, fraction: float) -> Any:
    """Labels 0 and 1: the rows whose log-odds plus logistic noise are largest."""
    noisy = score + rng.logistic(size=score.size)
    return (noisy > np.quantile(noisy, 1.0 - fraction)).astype(int)


def _machines(fraction: float, d: int = 15) -> Draw:
    """Readings of a machine in three modes, and rare failures.

    Readings follow five factors that move with the mode, with Student's noise. The log-odds of a failure add a linear
    part, a square and a product of factors, so that a linear model misses about a half of what can be known.
    """

    def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        fixed = np.random.default_rng(d)
        loadings, centres = fixed.normal(size=(5, d)), 1.5 * fixed.normal(size=(3, 5))
        mode = rng.choice(3, n, p=(0.6, 0.3, 0.1))
        factors = centres[mode] + rng.normal(size=(n, 5))
        X = factors @ loadings + 0.7 * rng.standard_t(5, size=(n, d))
        inside = factors - centres[mode]
        score = inside[:, 0] + 0.6 * inside[:, 1] ** 2 + 0.7 * inside[:, 2] * inside[:, 3] + 0.5 * (mode == 2)
        return X, _rarely(rng, score, fraction)

    return draw


def _customers(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Mixed columns in their own units: 4 log-normal amounts, 3 counts, 2 of years, a ratio with zeros, 5 of 0 and 1.

    The log-odds of a rare default are additive in logarithms, with a step, one product and one bend.
    """
    wealth = rng.normal(size=n)
    amounts = np.exp(0.7 * wealth[:, None] + rng.normal(size=(n, 4)) + np.array([7.0, 5.0, 3.0, 8.0]))
    counts = rng.poisson(np.exp(0.4 * rng.normal(size=(n, 3)) + np.array([0.0, 1.0, 2.0]) - 0.2 * wealth[:, None]))
    years = np.column_stack([rng.integers(18, 85, n), rng.integers(0, 30, n)])
    ratio = np.where(rng.random(n) < 0.4, 0.0, rng.beta(2.0, 5.0, n))
    flags = (rng.random((n, 5)) < np.array([0.5, 0.3, 0.1, 0.05, 0.02])).astype(float)
    score = (
        -0.5 * (np.log(amounts[:, 0]) - 7.0)
        + 0.4 * np.minimum(counts[:, 0], 4)
        + 2.5 * ratio
        + 1.0 * flags[:, 2]
        - 0.8 * flags[:, 1] * (years[:, 0] > 40)
        + 0.9 * np.exp(-years[:, 1] / 4.0)
        + 0.4 * np.abs(np.log(amounts[:, 1]) - 5.0)
    )
    return np.column_stack([amounts, counts, years, ratio, flags]), _rarely(rng, score, 0.0225)


# --------------------------------------------------------------------------------------------------------- many classes
def _clouds(n_classes: int, d: int, informative: int, per_class: int) -> Draw:
    """Classes that are unions of normal clouds around corners of a cube; one label in twenty is random."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        seed = int(rng.integers(2**31))
        return make_classification(
            n, d, n_informative=informative, n_redundant=d - informative - 1, n_classes=n_classes,
            n_clusters_per_class=per_class, flip_y=0.05, class_sep=1.0, random_state=seed,
        )  # fmt: skip

    return draw


# ----------------------------------------------------------------------------------------------------------- level sets
def _sensors(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    """Ten sensors of a plant in four modes of different spread; one new row in five has two sensors out of step.

    Normal rows follow three factors around the centre of their mode. Outliers are such rows with two of the sensors
    taken from other rows, so that no single sensor is unusual. All of them are among the new rows.
    """
    outliers = TEST_ROWS // 5
    fixed = np.random.default_rng(10)
    loadings, centres = fixed.normal(size=(3, 10)), 3.0 * fixed.normal(size=(4, 10))
    mode = rng.choice(4, n, p=(0.4, 0.3, 0.2, 0.1))
    spread = np.array([0.3, 0.6, 1.0, 1.5])[mode][:, None]
    X = centres[mode] + spread * (rng.normal(size=(n, 3)) @ loadings + 0.3 * rng.standard_t(5, size=(n, 10)))
    normal = (np.arange(n) < n - outliers).astype(int)
    for k in np.flatnonzero(normal == 0):
        which = rng.choice(10, 2, replace=False)
        X[k, which] = X[rng.integers(0, n - outliers, 2), which]
    return X, normal


PROBLEMS: dict[str, Problem] = {
    "10 000 × 20": Problem("quantiles", 10_000, _waves(20)),
    "one-hot, 9 800 × 164": Problem("quantiles", 9_800, _one_hot, tail=True),
    "1 000 × 8": Problem("quantiles", 1_000, _waves(8)),
    "5 000 × 8": Problem("quantiles", 5_000, _waves(8)),
    "1 000 × 30": Problem("quantiles", 1_000, _waves(30)),
    "5 000 × 30": Problem("quantiles", 5_000, _waves(30)),
    "50 000 × 30": Problem("quantiles", 50_000, _waves(30)),
    "wide, 2 051 × 239": Problem("quantiles", 2_051, _wide),
    "3 000 × 15, 2% positives": Problem("costs", 3_000, _machines(0.02)),
    "8 000 × 15 mixed columns, 2.25% positives": Problem("costs", 8_000, _customers),
    "5 000 × 20, 41 positives": Problem("costs", 5_000, _machines(41 / 5_000, 20)),
    "five classes, 1 000 × 8": Problem("classes", 1_000, _clouds(5, 8, 5, 2)),
    "five classes, 2 000 × 8": Problem("classes", 2_000, _clouds(5, 8, 5, 2)),
    "twenty classes, 300 × 10": Problem("classes", 300, _clouds(20, 10, 8, 1)),
    "level sets, 3 000 × 10": Problem("level sets", 3_000, _sensors),
}
"""What is fitted, by name."""
