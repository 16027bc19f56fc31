"""A length scale for each feature, by marginal likelihood."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from infinitask._base.arrays import HostArray


def relevance(X: HostArray, t: HostArray) -> HostArray:
    """A scale for each feature that maximises the marginal likelihood of a Gaussian process with t = f(X) + noise.

    The kernel is exp(−½ Σ_j s_j² (x_j − z_j)²). A weak prior holds each s_j near the value that suits standardised
    features that all matter.

    Parameters
    ----------
    X : ndarray (n, d)
        Standardised; at most a few hundred rows, because memory grows as n²d.
    t : ndarray (n,)
        Of mean 0 and size 1.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> first, second = relevance(X, np.sin(2.0 * X[:, 0]))
    >>> bool(first > 3.0 * second)
    True
    """
    n, d = X.shape
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    flat = squares.reshape(n * n, d)
    centre = np.full(d, -0.5 * np.log(2.0 * d))

    def minus_likelihood(p: HostArray) -> tuple[float, HostArray]:
        scale, (size, noise) = np.exp(2.0 * p[:d]), np.exp(p[d:])
        E = np.exp(-0.5 * (squares @ scale))
        K = size * (E + 1.0)
        K[np.diag_indices(n)] += noise + 1e-8
        try:
            factor = cho_factor(K, lower=True, check_finite=False)
        except LinAlgError:
            return 1e10, np.zeros(d + 2)
        inverse = cho_solve(factor, np.eye(n), check_finite=False)
        a = inverse @ t
        away = p[:d] - centre
        value = 0.5 * float(t @ a) + float(np.sum(np.log(np.diagonal(factor[0])))) + 0.125 * float(away @ away)
        W = inverse - np.outer(a, a)
        by_scale = -0.5 * scale * ((W * (size * E)).ravel() @ flat) + 0.25 * away
        return value, np.concatenate(
            [by_scale, [0.5 * float(np.sum(W * size * (E + 1.0))), 0.5 * noise * float(np.trace(W))]]
        )

    bounds = [(-6.0, 3.0)] * d + [(-6.0, 4.0), (-7.0, 2.0)]
    start = np.concatenate([centre, [0.0, np.log(0.3)]])
    found = minimize(minus_likelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 40})
    return np.asarray(np.exp(found.x[:d]))
