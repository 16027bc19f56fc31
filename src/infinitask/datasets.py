"""Synthetic data sets with a known truth: :func:`make_sine` with :func:`sine_quantile`, and :func:`make_mixture`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special
from sklearn.utils import check_random_state

from infinitask._base.arrays import HostArray
from infinitask._base.validation import count, levels_within, numbers, seed

__all__ = ["make_mixture", "make_sine", "sine_quantile"]


def make_sine(n_samples: int = 200, *, random_state: Any = None) -> tuple[HostArray, HostArray]:
    """Sample y = −sin(2πx)(1 + sin(2πx/3)) + σ(x)ε with σ(x) = 0.2 + (1.5 − x)/1.5 and ε ~ N(0, 1).

    The standard deviation of the noise decreases from 1.2 to 0.2: the outer quantiles approach the median as x
    increases.

    Parameters
    ----------
    n_samples : int
    random_state : None, int or numpy.random.RandomState

    Returns
    -------
    X : ndarray of shape (n, 1)
        Uniform on [0, 1.5], in ascending order.
    y : ndarray of shape (n,)

    See Also
    --------
    sine_quantile : the true conditional quantiles.

    Examples
    --------
    >>> X, y = make_sine(50, random_state=0)
    >>> X.shape, y.shape
    ((50, 1), (50,))
    """
    n = count("n_samples", n_samples)
    rng = check_random_state(seed("random_state", random_state))
    x = np.sort(rng.uniform(0.0, 1.5, size=n))
    return x[:, None], _sine_mean(x) + _sine_scale(x) * rng.standard_normal(n)


def sine_quantile(x: Any, theta: Any) -> HostArray:
    """Return q_θ(x) = −sin(2πx)(1 + sin(2πx/3)) + σ(x) Φ⁻¹(θ): the conditional quantiles of :func:`make_sine`.

    Parameters
    ----------
    x : array-like of shape (n,) or (n, 1)
    theta : float or array-like of shape (q,)
        Levels strictly between 0 and 1.

    Returns
    -------
    ndarray of shape (n, q)
        One column per level; q = 1 for a single number.

    Examples
    --------
    >>> sine_quantile([0.25], [0.5, 0.9]).round(3).tolist()
    [[-1.5, -0.176]]
    """
    x = numbers("x", x)
    if not (x.ndim == 1 or (x.ndim == 2 and x.shape[1] == 1)):
        raise ValueError(f"x was given with shape {x.shape}; give the one input as (n,) or (n, 1).")
    x = x.reshape(-1)
    levels = levels_within("theta", theta, 0.0, 1.0, open_low=True, open_high=True)
    return np.asarray(_sine_mean(x)[:, None] + _sine_scale(x)[:, None] * special.ndtri(levels)[None, :])


def make_mixture(n_samples: int = 500, *, n_features: int = 2, random_state: Any = None) -> HostArray:
    """Sample X ~ ½ N(μ₁, Σ₁) + 3/10 N(μ₂, Σ₂) + 1/5 N(μ₃, Σ₃): a wide, a slanted and a small cluster.

    Sets of high density surround the three clusters one by one, and those of low density all of them: nested level sets
    with a varying number of components.

    Parameters
    ----------
    n_samples : int
    n_features : int
        Features beyond the second are independent N(0, ¼): pure noise.
    random_state : None, int or numpy.random.RandomState

    Returns
    -------
    X : ndarray of shape (n, n_features)

    Examples
    --------
    >>> make_mixture(100, random_state=0).shape
    (100, 2)
    """
    n, d = count("n_samples", n_samples), count("n_features", n_features)
    rng = check_random_state(seed("random_state", random_state))
    centres = np.asarray([[-2.0, 0.0], [1.5, 1.5], [1.5, -2.0]])
    # Lower triangular roots of the covariances: Σ = R Rᵀ.
    roots = np.asarray([[[0.9, 0.0], [0.0, 1.1]], [[0.9, 0.0], [-0.5, 0.4]], [[0.35, 0.0], [0.0, 0.35]]])
    cloud = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    noise = rng.standard_normal((n, max(d, 2)))
    plane = centres[cloud] + np.einsum("nij,nj->ni", roots[cloud], noise[:, :2])
    return np.concatenate([plane, 0.5 * noise[:, 2:]], axis=1)[:, :d]


def _sine_mean(x: HostArray) -> HostArray:
    return np.asarray(-np.sin(2.0 * np.pi * x) * (1.0 + np.sin(2.0 * np.pi * x / 3.0)))


def _sine_scale(x: HostArray) -> HostArray:
    return np.asarray(0.2 + (1.5 - x) / 1.5)
