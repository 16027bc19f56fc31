"""The models of Table 2, by every reading of what the paper leaves open."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.measures import Discrete

from .data import load_cost_set

__all__ = [
    "METHODS",
    "NARROW",
    "PAPER_GAMMA",
    "READINGS",
    "STOPPED",
    "THETAS",
    "has",
    "median_gamma",
    "model",
    "split",
    "stopped",
]

METHODS = {"itl": "∞-CSC", "ind": "IND"}
THETAS = (-0.9, 0.0, 0.9)

PAPER_GAMMA = 5.0
"""γ_Θ in the paper. The 0.2-quantile of the distances of 20 evenly spaced points on [−1, 1] gives 5.01, so the two
rules agree."""

NARROW = 20.06
"""γ_Θ in the authors' programs: the same rule for points on [0, 1]."""

READINGS: dict[str, dict[str, Any]] = {
    "raw": {"scaled": False, "ridge": 1.0, "task_gamma": PAPER_GAMMA},
    "raw_thrice": {"scaled": False, "ridge": 3.0},
    "standardised": {"scaled": True, "ridge": 1.0, "task_gamma": PAPER_GAMMA},
    "standardised_thrice": {"scaled": True, "ridge": 3.0},
    "double": {"scaled": True, "ridge": 2.0, "task_gamma": PAPER_GAMMA},
    "narrow": {"scaled": True, "ridge": 1.0, "task_gamma": NARROW},
    "authors": {"scaled": True, "ridge": 0.5, "task_gamma": NARROW},
    "authors_thrice": {"scaled": True, "ridge": 1.5},
}
"""Whether the inputs are standardised, alpha·n/λ, and γ_Θ: a reading without γ_Θ is of independent classifiers only."""

STOPPED = {"stopped": "authors", "stopped_thrice": "authors_thrice"}
"""Readings whose minimum is not reached: the algorithm of the authors' programs, stopped where it stops by default.
Their ridge is (λ/4n)‖h‖², half of ours, and three times that for each independent classifier."""


def has(method: str, reading: str) -> bool:
    """Whether a reading says something about a method: three times the λ, and γ_Θ, concern one of them only."""
    return reading != "narrow" if method == "ind" else "task_gamma" in READINGS[reading]


def split(name: str, i: int, scaled: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X_train, X_test, y_train, y_test: halves, standardised by the training half."""
    X, y = load_cost_set(name, random_state=13, return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=i)
    if scaled:
        scaler = StandardScaler().fit(X_train)
        X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
    return X_train, X_test, y_train, y_test


def median_gamma(X: np.ndarray) -> float:
    """γ = 1/(2σ²), σ the median distance of all pairs of rows."""
    return float(0.5 / np.median(pdist(X)) ** 2)


def model(method: str, X: np.ndarray, settings: dict[str, Any], ridge: float = 1.0) -> InfiniteCostSensitiveClassifier:
    """A classifier for the training rows X: all θ together, or three of them independently, each with this ridge."""
    tasks: dict[str, Any] = {"task_gamma": settings["task_gamma"], "n_nodes": settings["nodes"]}
    alpha = ridge * settings["lambda"] / len(X)
    if method == "ind":
        tasks = {"task_kernel": "diagonal", "measure": Discrete(THETAS)}
        alpha /= len(THETAS)  # each loss has the weight 1/3 in the objective, and its ridge must have the same
    return InfiniteCostSensitiveClassifier(
        gamma=median_gamma(X),
        bias_kernel=None,
        alpha=alpha,
        alpha_bias=alpha,  # there is no bias: whatever it is, nothing changes
        tol=settings["tol"],
        **tasks,
    )


def stopped(
    method: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, alpha: float, m: int
) -> tuple[np.ndarray, int]:
    """What the authors' programs do: decision values at the test rows for each θ, and the number of evaluations.

    L-BFGS-B with SciPy's defaults, from zero, on the coefficients A of H = K A G: the hinge loss as it is, and the
    narrow task kernel. Independent classifiers are minimised as one sum of three, with the ridge alpha for each.
    """
    n, gamma, s = len(y), median_gamma(X), np.where(y == 1, 1.0, -1.0)[:, None]
    K, K_test = rbf_kernel(X, gamma=gamma), rbf_kernel(X_test, X, gamma=gamma)
    theta, weights, levels = np.array(THETAS), np.full(3, 1.0 / 3.0), np.array(THETAS)
    G = G_levels = np.eye(3)
    if method == "itl":
        theta, weights = np.polynomial.legendre.leggauss(m)
        weights = 0.5 * weights
        G = np.exp(-NARROW * np.subtract.outer(theta, theta) ** 2)
        G_levels = np.exp(-NARROW * np.subtract.outer(theta, levels) ** 2)
    else:
        alpha /= len(THETAS)
    cost = np.abs((1.0 + theta) / 2.0 - (s < 0.0)) * weights / n

    def evaluate(z: np.ndarray) -> tuple[float, np.ndarray]:
        A = z.reshape(n, -1)
        H = K @ (A @ G)
        missed = cost * (1.0 - s * H > 0.0)
        value = np.sum(missed * (1.0 - s * H)) + 0.5 * alpha * np.sum(A * H)
        return float(value), (K @ ((alpha * A - s * missed) @ G)).ravel()

    found = minimize(evaluate, np.zeros(n * theta.size), jac=True, method="L-BFGS-B")
    return K_test @ (found.x.reshape(n, -1) @ G_levels), int(found.nfev)
