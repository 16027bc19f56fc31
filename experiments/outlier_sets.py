"""Problems of outlier detection: rows of a normal law to learn from, and new rows of it among others.

The list was made before the self-tuned level sets existed, and must never be changed because of their results. Digits,
breast cancer, wine and iris have been used to set the defaults of :class:`~infinitask.InfiniteOneClassSVM`; the laws
have not been used at all.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_moons

from .tuned import Values

__all__ = ["PROBLEMS", "problem"]

LAW_ROWS = 600
"""Normal rows of a law, half of them to learn from; a quarter as many others."""

CONTAMINATION = 0.05
"""The part of the rows to learn from that are outliers, where these are dirty."""

Rows = tuple[Values, Values]
"""Normal rows, and others."""


def _classes(load: Callable[..., tuple[Values, Values]], *normal: int) -> Callable[[np.random.Generator], Rows]:
    """Some classes of a set are normal."""

    def rows(rng: np.random.Generator) -> Rows:
        X, y = load(return_X_y=True)
        inside = np.isin(y, normal)
        return X[inside], X[~inside]

    return rows


def _around(X: Values, count: int, rng: np.random.Generator) -> Values:
    """Uniform points in a box a tenth larger than the rows on each side."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), size=(count, X.shape[1])))


def _moons(rng: np.random.Generator) -> Rows:
    X = make_moons(LAW_ROWS, noise=0.1, random_state=int(rng.integers(2**31)))[0]
    return X, _around(X, LAW_ROWS // 4, rng)


def _hidden_moons(rng: np.random.Generator) -> Rows:
    """Moons in two of eight inputs; the others are noise, and outliers have it too."""
    X, Z = _moons(rng)
    noise = rng.standard_normal((len(X) + len(Z), 6))
    return np.hstack([X, noise[: len(X)]]), np.hstack([Z, noise[len(X) :]])


def _shell(rng: np.random.Generator) -> Rows:
    """A sphere in three dimensions with some thickness: its centre is an outlier."""
    X = rng.standard_normal((LAW_ROWS, 3))
    X *= ((1.0 + 0.08 * rng.standard_normal(LAW_ROWS)) / np.linalg.norm(X, axis=1))[:, None]
    return X, _around(X, LAW_ROWS // 4, rng)


def _clusters(rng: np.random.Generator) -> Rows:
    """Five clusters in four dimensions whose spreads differ by a factor of ten."""
    centres, spread = rng.uniform(-6.0, 6.0, size=(5, 4)), np.geomspace(0.1, 1.0, 5)
    which = rng.integers(5, size=LAW_ROWS)
    X = centres[which] + spread[which, None] * rng.standard_normal((LAW_ROWS, 4))
    return X, _around(X, LAW_ROWS // 4, rng)


def _factors(rng: np.random.Generator) -> Rows:
    """Ten inputs that follow two factors; outliers have the same inputs without the dependence."""
    loadings = rng.standard_normal((2, 10))
    X = rng.standard_normal((LAW_ROWS + LAW_ROWS // 4, 2)) @ loadings + 0.4 * rng.standard_normal((1, 10))
    X += 0.4 * rng.standard_normal(X.shape)
    return X[:LAW_ROWS], np.column_stack([rng.permutation(column) for column in X[LAW_ROWS:].T])


def _tails(rng: np.random.Generator) -> Rows:
    """Five inputs with Student's tails in units from 1e-3 to 1e3; outliers are shifted by three quartile distances."""
    X = rng.standard_t(3.0, size=(LAW_ROWS + LAW_ROWS // 4, 5))
    X[LAW_ROWS:] += 3.0 * 1.53 * rng.choice([-1.0, 1.0], size=(LAW_ROWS // 4, 5)) / np.sqrt(5.0)
    X *= np.geomspace(1e-3, 1e3, 5)
    return X[:LAW_ROWS], X[LAW_ROWS:]


def _amounts(rng: np.random.Generator) -> Rows:
    """Four lognormal inputs with a common factor; outliers have another ratio of the inputs."""
    common = rng.standard_normal((LAW_ROWS + LAW_ROWS // 4, 1))
    logs = common + 0.3 * rng.standard_normal((len(common), 4))
    logs[LAW_ROWS:, 0] += 1.5 * rng.choice([-1.0, 1.0], size=LAW_ROWS // 4)
    return np.exp(logs[:LAW_ROWS]), np.exp(logs[LAW_ROWS:])


PROBLEMS: dict[str, Callable[[np.random.Generator], Rows]] = {
    **{f"digit {k}": _classes(load_digits, k) for k in range(10)},
    "even digits": _classes(load_digits, 0, 2, 4, 6, 8),
    "breast cancer": _classes(load_breast_cancer, 1),
    **{f"wine {k}": _classes(load_wine, k) for k in range(3)},
    **{f"iris {k}": _classes(load_iris, k) for k in range(3)},
    "moons": _moons,
    "hidden moons": _hidden_moons,
    "shell": _shell,
    "clusters": _clusters,
    "factors": _factors,
    "tails": _tails,
    "amounts": _amounts,
}
"""Where normal rows and outliers come from."""


def problem(name: str, seed: int, *, dirty: bool) -> tuple[Values, Values, Values]:
    """Rows to learn from, new rows, and whether each of the new ones is normal (1) or an outlier (0).

    Parameters
    ----------
    name : str
    seed : int
    dirty : bool
        Whether one in twenty of the rows to learn from is an outlier.
    """
    rng = np.random.default_rng(seed)
    normal, other = PROBLEMS[name](rng)
    normal, other = rng.permutation(normal), rng.permutation(other)
    half = len(normal) // 2
    few = round(CONTAMINATION / (1.0 - CONTAMINATION) * half) if dirty else 0
    X = rng.permutation(np.concatenate([normal[:half], other[:few]]))
    new = np.concatenate([normal[half:], other[few:]])
    return X, new, (np.arange(len(new)) < len(normal) - half).astype(float)
