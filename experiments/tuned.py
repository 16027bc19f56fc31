"""A model of the paper's Table 1, tuned as the paper tuned it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from infinitask import IndependentQuantileRegressor, InfiniteQuantileRegressor, JointQuantileRegressor
from infinitask._base.arrays import to_host
from infinitask.field import Problem
from infinitask.fitting import Data
from infinitask.fitting._defaults import resolved
from infinitask.fitting._fit import in_units, in_units_of
from infinitask.fitting._learn import learn
from infinitask.fitting._pose import pose
from infinitask.fitting._recipe import Recipe
from infinitask.fitting._warm_start import Memory
from infinitask.tuning._proposals import Proposals

__all__ = ["LEVELS", "WIDTHS", "Trial", "best", "crossing", "limits", "model", "one_se", "pinball", "tune"]

Values = NDArray[np.float64]
Criterion = Callable[[Values, Values], float]
"""y and h → a loss, by which parameters are chosen."""

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
"""The levels that are reported, and at which models are compared."""

LOW, HIGH = -6.0, 6.0

WIDTHS = {"sigma": (-2.0 * HIGH - float(np.log10(2.0)), -2.0 * LOW - float(np.log10(2.0))), "gamma": (LOW, HIGH)}
"""The least and the largest log₁₀ of γ_X and γ_Θ = γ_b, by the parameter whose box is [1e-6, 1e6]: σ, with
γ = 1/(2σ²), as the paper's supplement prints, or γ, as in its authors' programs."""

NODES = 100

ROUGH, FINE = (3e-2, 60), (1e-2, 200)
"""The duality gap and the most evaluations of a fit that is compared, and of a fit that may be the best."""

PROMISING = 1.15
"""A fit may be the best if its loss is at most this many times the smallest so far."""

CLOSEST = 12
"""Among trials as good as the best, the effective dimension is computed for this number."""

BIAS_RIDGE = 1e-4
"""λ_b of JQR and IND while they are tuned. Their bias is free. So light a ridge is invisible next to a gap of 1e-2, and
it avoids the certificate of a free bias, which takes half the time of such a small fit."""


def pinball(y: Values, h: Values) -> float:
    """The sum over LEVELS of the mean pinball loss, times 100."""
    r = y[:, None] - h
    return float(100.0 * np.sum(np.mean(np.maximum(LEVELS * r, (LEVELS - 1.0) * r), axis=0)))


def crossing(h: Values) -> float:
    """The sum over adjacent levels of the mean decrease, times 100."""
    return float(100.0 * np.sum(np.mean(np.maximum(h[:, :-1] - h[:, 1:], 0.0), axis=0)))


def model(method: str, parameters: dict[str, float], n: int, **others: Any) -> Any:
    """An estimator for n training rows; the paper's λ stands beside a sum, our alpha beside a mean.

    The bias of ∞-QR has the same ridge as h (the paper prints no λ_b); the levels of JQR and IND have a free one each.
    """
    gamma, alpha = 10.0 ** parameters["gamma"], 10.0 ** parameters["lambda"] / n
    if method == "ind":
        return IndependentQuantileRegressor(quantiles=LEVELS, gamma=gamma, alpha=alpha, **others)
    task_gamma = 10.0 ** parameters["task_gamma"]
    if method == "jqr":
        return JointQuantileRegressor(quantiles=LEVELS, gamma=gamma, task_gamma=task_gamma, alpha=alpha, **others)
    choices = {"noncrossing": "rearrange" if method == "itl_rearranged" else 1.0, "n_nodes": NODES} | others
    return InfiniteQuantileRegressor(
        gamma=gamma,
        task_gamma=task_gamma,
        alpha=alpha,
        alpha_bias=alpha,
        quadrature="sobol",
        random_state=0,
        **choices,
    )


@dataclass(frozen=True)
class Trial:
    """Parameters (log₁₀), and the loss of each fold."""

    parameters: dict[str, float]
    losses: Values

    @property
    def loss(self) -> float:
        """The mean of the losses."""
        return float(np.mean(self.losses))


def limits(parameter: str, box: str) -> tuple[float, float]:
    """The least and the largest log₁₀ of a parameter of a model in a box of :data:`WIDTHS`."""
    return (LOW, HIGH) if parameter == "lambda" else WIDTHS[box]


def tune(
    method: str,
    X: Values,
    y: Values,
    *,
    startup: int,
    iterations: int,
    seed: int,
    box: str = "sigma",
    criterion: Criterion = pinball,
) -> list[Trial]:
    """Sobol points first, then expected improvement under a Gaussian process, all by five-fold cross-validation."""
    names = ("gamma", "lambda") if method == "ind" else ("gamma", "task_gamma", "lambda")
    evaluate = _cross_validation(method, X, y, criterion)
    low, high = np.array([limits(name, box) for name in names]).T
    proposals = Proposals(len(names), startup, seed)
    points, trials = np.empty((0, len(names))), list[Trial]()
    for number in range(startup + iterations):
        losses = np.array([trial.loss for trial in trials])
        point = proposals(number, points, -losses)
        parameters = dict(zip(names, (low + (high - low) * point).tolist(), strict=True))
        trials.append(Trial(parameters, evaluate(parameters, np.min(losses, initial=np.inf))))
        points = np.vstack([points, point])
    return trials


def best(trials: list[Trial]) -> Trial:
    """The trial with the smallest loss."""
    return min(trials, key=lambda trial: trial.loss)


def one_se(trials: list[Trial], method: str, X: Values, y: Values) -> Trial:
    """The simplest trial that is worse than the best by at most one standard error of the difference.

    The simplest has the smallest effective dimension Σ_ij e_i f_j / (e_i f_j + λ), with e and f the eigenvalues of the
    two Gram matrices. Among the trials as good as the best, the first CLOSEST are considered.
    """
    leader = best(trials)

    def good(trial: Trial) -> bool:
        difference = trial.losses - leader.losses
        return bool(np.mean(difference) <= np.std(difference, ddof=1) / np.sqrt(difference.size))

    chosen = sorted((trial for trial in trials if good(trial)), key=lambda trial: trial.loss)[:CLOSEST]
    return min(chosen, key=lambda trial: effective_dimension(method, trial.parameters, X, y))


def effective_dimension(method: str, parameters: dict[str, float], X: Values, y: Values) -> float:
    """Σ_ij e_i f_j / (e_i f_j + λ)."""
    data = Data(X, y, np.full(y.size, 1.0 / y.size))
    recipe = resolved(model(method, parameters, y.size).recipe(), data)
    problem = pose(recipe, data, np.random.default_rng(0))
    rows, term = problem.objective.rows, problem.objective.integrals[0]
    e = np.linalg.eigvalsh(rows.T @ rows / y.size)
    f = np.linalg.eigvalsh((term.cols.T * term.weights) @ term.cols)
    products = np.outer(np.maximum(e, 0.0), np.maximum(f, 0.0))
    return float(np.sum(products / (products + recipe.alpha)))


def _cross_validation(
    method: str, X: Values, y: Values, criterion: Criterion
) -> Callable[[dict[str, float], float], Values]:
    splits = list(KFold(5).split(X))
    data = Data(X, y, np.full(y.size, 1.0 / y.size))

    def losses(parameters: dict[str, float], smallest: float) -> Values:
        recipe = model(method, parameters, splits[0][0].size, tol=ROUGH[0], solver="lbfgs").recipe()
        if method != "itl":
            recipe = replace(recipe, alpha_bias=BIAS_RIDGE)
        recipe = resolved(recipe, data)
        problem = pose(in_units(recipe), in_units_of(recipe, data), np.random.default_rng(0))
        folds = [_training_part(recipe, data, problem, train) for train, _ in splits]

        def measured(tol: float, max_iter: int) -> Values:
            found, near = [], None
            for (_, part, memory), (_, test) in zip(folds, splits, strict=True):
                memory.last = near if memory.last is None else memory.last
                field = learn(replace(recipe, tol=tol, max_iter=max_iter), part, memory).field
                near = None if memory.last is None else memory.last.elsewhere()
                h = to_host(problem.phi.values[test]) @ field.coef @ field.psi(LEVELS).T + field.offset
                h = h if field.bias_psi is None else h + field.bias_psi(LEVELS) @ field.bias_coef
                found.append(criterion(y[test], h))
            return np.array(found)

        rough = measured(*ROUGH)
        return measured(*FINE) if np.mean(rough) <= PROMISING * smallest else rough

    return losses


def _training_part(recipe: Recipe, data: Data, problem: Problem, train: Values) -> tuple[Recipe, Data, Memory]:
    """The recipe, the training rows of a fold, and a memory that holds their part of a problem of all rows."""
    weight = data.weight[train]
    part = Data(data.X[train], None if data.y is None else data.y[train], weight / np.sum(weight))
    memory = Memory()  # as if it had posed the problem itself
    memory._posed = in_units(recipe), in_units_of(recipe, part), problem.only(train), 0.0
    return recipe, part, memory
