"""The peers without trees: linear quantiles, Gaussian processes, recursive feature machines and support vectors.

Their interface is that of :mod:`experiments.peer_models`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import sys
import sysconfig
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri

from .peer_search import Answer, Parameters, Values, log_uniform, parts

__all__ = [
    "draw_linear",
    "draw_xrfm",
    "gaussian_process",
    "gaussian_process_of_scores",
    "linear",
    "linear_defaults",
    "linear_quantile",
    "liquid_svm",
    "xrfm",
    "xrfm_defaults",
]


def _standard(X: Values) -> Callable[[Values], Values]:
    """X → X in standard deviations of these rows, and without the columns that do not vary."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    kept = spread > 1e-12 * np.maximum(1.0, np.abs(centre))
    return lambda X: (X[:, kept] - centre[kept]) / spread[kept]


# ------------------------------------------------------------------------------------------- linear quantile regression
WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Widths of the smoothed kink, in standard deviations of y, each begun at the solution of the last."""

NEWTON_STEPS = 30


def linear_quantile(Z: Values, y: Values, level: float, alpha: float, start: Values | None = None) -> Values:
    """The minimum of mean ρ(y − b − Zβ) + α/2 ‖β‖² by Newton's method on ever less smoothed kinks.

    ρ(r) = θr + ε log(1 + exp(−r/ε)) is at most ε log 2 above the pinball loss. HiGHS solves the problem without
    penalty exactly, and takes minutes for 10 000 rows.

    Parameters
    ----------
    Z : array (n, d)
        Standardised inputs.
    y : array (n,)
    level, alpha : float
    start : array (1 + d,), optional

    Returns
    -------
    array (1 + d,)
        b, then β.
    """
    A = np.column_stack([np.ones(len(Z)), Z])
    n, spread = y.size, float(y.std()) or 1.0
    ridge = np.full(A.shape[1], alpha)
    ridge[0] = 0.0
    coef = np.zeros(A.shape[1]) if start is None else start.copy()
    if start is None:
        coef[0] = np.quantile(y, level)
    for width in WIDTHS if start is None else WIDTHS[2:]:
        eps = width * spread

        def objective(coef: Values, eps: float = eps) -> tuple[float, Values]:
            r = y - A @ coef
            return float(np.mean(level * r + eps * np.logaddexp(0.0, -r / eps)) + 0.5 * ridge @ coef**2), r

        value, r = objective(coef)
        for _ in range(NEWTON_STEPS):
            below = expit(-r / eps)
            gradient = A.T @ (below - level) / n + ridge * coef
            curvature = below * (1.0 - below) / (eps * n)
            H = (A.T * curvature) @ A + np.diag(ridge)
            H[np.diag_indices_from(H)] += 1e-9 * np.trace(H) + 1e-12
            step = -np.linalg.solve(H, gradient)
            slope, length = float(gradient @ step), 1.0
            new, r_new = objective(coef + step)
            while new > value + 1e-4 * length * slope and length > 1e-6:
                length *= 0.5
                new, r_new = objective(coef + length * step)
            if not new < value:
                break
            gain, coef, value, r = value - new, coef + length * step, new, r_new
            if gain < 1e-7 * abs(value):
                break
    return coef


def linear(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    """Each level by itself, with a ridge."""
    standard = _standard(X)
    Z, coefs = standard(X), list[Values]()
    for level in levels:
        coefs.append(linear_quantile(Z, y, float(level), parameters["alpha"], coefs[-1] if coefs else None))
    C = np.array(coefs).T
    return lambda X, _: C[0] + standard(X) @ C[1:]


def linear_defaults(n: int) -> Parameters:
    """Hardly a penalty."""
    return {"alpha": 1e-6}


def draw_linear(rng: np.random.Generator, n: int) -> Parameters:
    """A ridge for standardised inputs and targets."""
    return {"alpha": log_uniform(rng, 1e-6, 1.0)}


# --------------------------------------------------------------------------------------------------- Gaussian process
LIKELIHOOD_ROWS, POSTERIOR_ROWS = 1_500, 3_000
"""At most so many rows choose the parameters of a Gaussian process, and at most so many are conditioned on."""

LIKELIHOOD_STEPS = 50
BLOCK = 4_000


class _Process:
    """y = f(x) + noise, f of kernel s² Matérn₅⸝₂(‖(x − x')/ℓ‖) + v⟨x, x'⟩ + c, one ℓ for each input.

    The logarithms of s², v, the variance of the noise and ℓ maximise the likelihood (L-BFGS with its gradient) plus a
    normal prior on log ℓ, wide enough (standard deviation 1.5) to rule out nothing but flat directions.
    """

    def __init__(self, X: Values, y: Values, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.standard, self.mean, self.spread = _standard(X), float(y.mean()), float(y.std()) or 1.0
        rows = rng.permutation(y.size)
        few, many = rows[:LIKELIHOOD_ROWS], rows[:POSTERIOR_ROWS]
        Z, t = self.standard(X), (y - self.mean) / self.spread
        self.log = self._chosen(Z[few], t[few])
        self.Z = Z[many]
        K = self._kernel(self.Z, self.Z)
        K[np.diag_indices_from(K)] += np.exp(self.log[2]) + 1e-8
        self.factor = cho_factor(K, lower=True)
        self.weights = cho_solve(self.factor, t[many])

    @staticmethod
    def _matern(Z: Values, W: Values, scale: Values) -> tuple[Values, Values]:
        """√5 r, and exp(−√5 r)."""
        A, B = Z / scale, W / scale
        squared = (A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T
        r = np.sqrt(5.0 * np.maximum(squared, 0.0))
        return r, np.exp(-r)

    def _kernel(self, Z: Values, W: Values) -> Values:
        r, decay = self._matern(Z, W, np.exp(self.log[3:]))
        smooth = np.exp(self.log[0]) * (1.0 + r + r * r / 3.0) * decay
        return np.asarray(smooth + np.exp(self.log[1]) * (Z @ W.T) + 1.0)

    def _chosen(self, Z: Values, t: Values) -> Values:
        n, d = Z.shape
        centre = np.log(np.sqrt(d) * 2.0)
        linear = Z @ Z.T

        def negative(log: Values) -> tuple[float, Values]:
            s, v, noise, scale = np.exp(log[0]), np.exp(log[1]), np.exp(log[2]), np.exp(log[3:])
            r, decay = self._matern(Z, Z, scale)
            smooth = s * (1.0 + r + r * r / 3.0) * decay
            K = smooth + v * linear + 1.0
            K[np.diag_indices(n)] += noise + 1e-8
            factor, failed = dpotrf(K, lower=1)
            if failed:
                return 1e25, np.zeros_like(log)
            half, _ = dpotri(factor, lower=1)  # the lower half of the inverse: three times faster than n solves
            inverse = np.tril(half, -1)
            inverse += inverse.T + np.diag(np.diag(half))
            a = inverse @ t
            G = 0.5 * (inverse - np.outer(a, a))
            value = 0.5 * t @ a + np.log(np.diag(factor)).sum() + 0.5 * np.sum((log[3:] - centre) ** 2) / 1.5**2
            # ∂ Matérn / ∂ log ℓ_k = (5/3) s (1 + √5 r) exp(−√5 r) (x_k − x'_k)² / ℓ_k²
            B, Y = G * (5.0 / 3.0 * s * (1.0 + r) * decay), Z / scale
            by_scale = 2.0 * (B.sum(axis=1) @ Y**2) - 2.0 * np.sum(Y * (B @ Y), axis=0)
            parts = [np.sum(G * smooth), v * np.sum(G * linear), noise * np.trace(G)]
            return float(value), np.concatenate([parts, by_scale + (log[3:] - centre) / 1.5**2])

        bounds = [(-9.0, 6.0), (-12.0, 4.0), (-12.0, 2.0), *[(-4.0, 9.0)] * d]
        found = [
            minimize(
                negative,
                np.concatenate([[np.log(0.5), np.log(0.1), noise], np.full(d, centre)]),
                jac=True,
                method="L-BFGS-B",
                bounds=bounds,
                options={"maxiter": LIKELIHOOD_STEPS, "ftol": 1e-6},
            )
            for noise in ((np.log(0.1), np.log(0.01)) if n <= 500 else (np.log(0.1),))
        ]
        return np.asarray(min(found, key=lambda result: result.fun).x)

    def __call__(self, X: Values) -> tuple[Values, Values]:
        """Mean and standard deviation of a new y at each row, in the units of y."""
        means, deviations = [], []
        for begin in range(0, len(X), BLOCK):
            Z = self.standard(X[begin : begin + BLOCK])
            K = self._kernel(Z, self.Z)
            above = np.exp(self.log[0]) + np.exp(self.log[1]) * np.sum(Z**2, axis=1) + 1.0 + np.exp(self.log[2])
            known = np.sum(solve_triangular(self.factor[0], K.T, lower=True) ** 2, axis=0)
            means.append(K @ self.weights)
            deviations.append(np.sqrt(np.maximum(above - known, 1e-8)))
        return self.mean + self.spread * np.concatenate(means), self.spread * np.concatenate(deviations)


def gaussian_process(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    """The normal law of a new y."""
    process = _Process(X, y, seed)

    def answer(X: Values, levels: Values) -> Values:
        mean, deviation = process(X)
        return np.asarray(mean[:, None] + deviation[:, None] * ndtri(levels))

    return answer


def gaussian_process_of_scores(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    """The same for normal scores of y; their quantiles go back by the sample quantiles of y."""
    order = np.argsort(np.argsort(y, kind="stable"), kind="stable")
    process = _Process(X, ndtri((order + 0.5) / y.size), seed)

    def answer(X: Values, levels: Values) -> Values:
        mean, deviation = process(X)
        places = ndtr(mean[:, None] + deviation[:, None] * ndtri(levels))
        return np.asarray(np.interp(places, (np.arange(y.size) + 0.5) / y.size, np.sort(y)))

    return answer


# --------------------------------------------------------------------------------------------------------------- xRFM
LEAF_ROWS = 4_000
"""xRFM splits larger sets into leaves with a machine each; its own bound, 60 000, is for a GPU. The direction of a
split comes from a machine on as many rows."""

BAGGED_ROWS = 5_000
"""With more rows there is one bag: a fifth of them is enough for residuals."""


def xrfm(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    """Recursive feature machines for the mean; the quantiles are those of the residuals of rows left out.

    With ``bags`` > 1 in the parameters, so many machines leave out a fold each, and their mean predicts.
    """
    bags, standard = parameters.get("bags", 1) if y.size <= BAGGED_ROWS else 1, _standard(X)
    Z, centre, spread = standard(X), y.mean(), y.std() or 1.0
    t = (y - centre) / spread
    machines, residuals = [], []
    for train, left_out in parts(y.size, bags, seed):
        machines.append(_machine(parameters, Z[train], t[train], Z[left_out], t[left_out], seed))
        residuals.append(t[left_out] - machines[-1](Z[left_out]))
    errors = np.concatenate(residuals)

    def answer(X: Values, levels: Values) -> Values:
        Z = standard(X)
        mean = np.mean([machine(Z) for machine in machines], axis=0)
        return np.asarray(centre + spread * (mean[:, None] + np.quantile(errors, levels)))

    return answer


def _machine(
    parameters: Parameters, Z: Values, t: Values, Z_out: Values, t_out: Values, seed: int
) -> Callable[[Values], Values]:
    import torch
    from xrfm import xRFM

    torch.set_num_threads(1)
    kernel = {"kernel": "l2", "bandwidth_mode": "constant"} | {
        name: parameters[name] for name in ("bandwidth", "exponent", "diag")
    }
    steps = {"reg": parameters["reg"], "iters": 5, "verbose": False, "early_stop_rfm": True}
    model = xRFM(
        {"model": kernel, "fit": steps | {"early_stop_multiplier": 1.1}},
        device=torch.device("cpu"),
        tuning_metric="mse",
        max_leaf_size=LEAF_ROWS,
        overlap_fraction=0.1,
        random_state=seed,
        n_threads=1,
        verbose=False,
    )
    model._get_agop_on_subset = functools.partial(model._get_agop_on_subset, subset_size=LEAF_ROWS)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        model.fit(*(part.astype(np.float32) for part in (Z, t, Z_out, t_out)))

    def mean(Z: Values) -> Values:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            found = model.predict(Z.astype(np.float32))
        return np.nan_to_num(np.asarray(found, dtype=np.float64).reshape(len(Z)))

    return mean


def xrfm_defaults(n: int) -> Parameters:
    """Those of its interface for tables."""
    return {"bandwidth": 10.0, "reg": 1e-3, "exponent": 1.0, "diag": True}


def draw_xrfm(rng: np.random.Generator, n: int) -> Parameters:
    """The space that its authors recommend for its fast kernel, l2."""
    return {
        "bandwidth": log_uniform(rng, 0.5, 200.0),
        "reg": log_uniform(rng, 1e-6, 10.0),
        "exponent": float(rng.uniform(0.7, 1.4)),
        "diag": bool(rng.integers(2)),
    }


# ---------------------------------------------------------------------------------------------------------- liquidSVM
def liquid_svm(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    """Its own five-fold cross-validation over its own grid of ten γ and ten λ, for each level.

    It does not end on some targets with ties: they are told apart by a millionth of their spread.
    """
    y = y + 1e-6 * np.std(y) * np.random.default_rng(seed).normal(size=y.size)
    library, cores = _liquid(), os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    try:
        machine = library.qtSVM(
            X, y, weights=[float(level) for level in levels], display=0, threads=1, scale=1, random_seed=seed + 1
        )
    finally:
        if cores:  # it pins its process to one core
            os.sched_setaffinity(0, cores)

    def answer(X: Values, _: Values) -> Values:
        try:
            return np.array(machine.test(X, np.zeros(len(X)))[0], dtype=np.float64).reshape(len(X), -1)
        finally:
            if cores:
                os.sched_setaffinity(0, cores)

    return answer


def _liquid() -> Any:
    """The module, with names that Python no longer has."""
    if importlib.util.find_spec("liquidSVM") is None:
        raise RuntimeError("liquidSVM is not installed; `make peers` installs it.")
    sysconfig.get_config_vars().setdefault("SO", sysconfig.get_config_var("EXT_SUFFIX"))
    missing = "pkg_resources" not in sys.modules and importlib.util.find_spec("pkg_resources") is None
    if missing:  # needed for its example data only
        sys.modules["pkg_resources"] = types.ModuleType("pkg_resources")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import liquidSVM
    finally:
        if missing:  # other modules would take it for the real one
            del sys.modules["pkg_resources"]
    return liquidSVM
