"""A good model from data in one call, in the manner of ``RidgeCV``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.model_selection import KFold, check_cv
from sklearn.utils import check_random_state

from infinitask._array import HostArray, one_blas_thread
from infinitask.estimators import InfiniteQuantileRegressor
from infinitask.estimators.problem import Data, Recipe, pose, tolerance
from infinitask.kernels import Gaussian, InputKernel, input_kernel
from infinitask.solvers import Eigenbasis, Start, solve
from infinitask.tuning._candidates import ranked

__all__ = ["InfiniteQuantileRegressorCV"]

LAMBDAS: HostArray = np.logspace(1.0, -5.0, 13)
"""λ for targets whose typical distance from their median is 1; the first one all but ignores the inputs."""

BIAS_RIDGE = 1e-4
"""λ_b during the choice: hardly any, so that large λ ignores the inputs and not the data."""

TOP = 3
"""Kernels of the ranking that compete."""

SEEN = 150
"""Folds are repeated until so many rows have been left out in all, at most REPEATS times."""

REPEATS = 4

GAP, EVALUATIONS, NODES = 1e-2, 300, 9
"""The duality gap of a fit that is only to be compared, the most evaluations it may take, and its nodes."""


@dataclass(frozen=True, eq=False)
class _Choice:
    """What was chosen, and what it was chosen from."""

    kernel: InputKernel
    alpha: float
    alpha_bias: float
    results: dict[str, Any]


class InfiniteQuantileRegressorCV(InfiniteQuantileRegressor):
    """An :class:`~infinitask.InfiniteQuantileRegressor` whose kernel and λ are chosen by cross-validation.

    Candidate kernels (Gaussian, Matérn and Laplacian with one scale, Gaussian and Matérn with a scale for each input,
    sums over the inputs) are ranked by the leave-one-out error of a kernel ridge regression of the ranks of y, which is
    closed form. The first three compete by the cross-validated pinball loss along a path of λ, from one that all but
    ignores the inputs; of the winner's λ, the largest that is worse than the best by no more than one standard error of
    their difference is taken. The model is then fitted to all rows.

    Parameters
    ----------
    kernels : "auto", or sequence of kernels
        Names or objects of input kernels that compete instead of the candidates; all of them do.
    alphas : array (k,) or None
        The λ that compete, for y in its own units; None: thirteen values that follow the spread of y.
    cv : int, splitter, iterable of (train, test) or None
        As in scikit-learn. None: five shuffled folds, repeated up to four times where there are few rows.
    rule : {{"one-se", "best"}}
        Which λ: see above, or the one with the smallest loss.
    noncrossing, smoothing, quantiles
        As for :class:`~infinitask.InfiniteQuantileRegressor`.
    task_kernel, task_gamma, measure, quadrature, n_nodes, features, rank, solver, tol, max_iter, device, verbose
        As there, for the last fit.
    random_state : None, int or numpy.random.RandomState
        For the folds, and as there.

    Attributes
    ----------
    kernel_ : InputKernel
    alpha_, alpha_bias_ : float
    cv_results_ : dict
        ``kernels`` (names, best of the ranking first), ``alphas`` (k,), ``losses`` (kernels, k, folds), ``ignoring_x``
        (folds,): the mean pinball losses, those of quantiles without inputs among them, inf for λ so small that nobody
        looked; and ``best``, the position of the choice in ``losses``.

    Examples
    --------
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.tuning import InfiniteQuantileRegressorCV
    >>> X, y = make_sine(100, random_state=0)
    >>> model = InfiniteQuantileRegressorCV(random_state=0).fit(X, y)
    >>> model.predict(X, quantiles=[0.1, 0.9]).shape
    (100, 2)
    >>> model.cv_results_["losses"].shape
    (3, 13, 10)
    """

    # chosen, and so no parameters
    kernel: Any = "rbf"
    gamma: Any = "median"
    alpha: float = 1.0
    alpha_bias: float | None = None
    bias_kernel: Any = "task"
    warm_start: bool = False

    def __init__(
        self,
        *,
        kernels: Any = "auto",
        alphas: Any = None,
        cv: Any = None,
        rule: str = "one-se",
        noncrossing: float | str = 1.0,
        smoothing: float = 0.0,
        quantiles: Any = 0.5,
        task_kernel: Any = "rbf",
        task_gamma: Any = None,
        measure: Any = None,
        quadrature: Any = "gauss-legendre",
        n_nodes: int | None = None,
        features: Any = "auto",
        rank: int | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        device: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose, and learn the quantile function.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,)
        sample_weight : array (n,) or None
            Weights of all fits; the losses of left-out rows are weighted as well.
        """
        recipe = self._recipe()
        self._check_default("quantiles", recipe)
        if self.rule not in ("one-se", "best"):
            raise ValueError(f"rule={self.rule!r} was given; it must be 'one-se' or 'best'.")
        X, y, weight = self._validated(X, y, sample_weight, y_numeric=True)
        choice = self._choose(recipe, X, y.astype("float64"), weight)
        recipe = replace(recipe, kernel=choice.kernel, alpha=choice.alpha, alpha_bias=choice.alpha_bias)
        return self._fit(
            recipe,
            X,
            y.astype("float64"),
            weight,
            kernel_=choice.kernel,
            alpha_=choice.alpha,
            alpha_bias_=choice.alpha_bias,
            cv_results_=choice.results,
        )

    def _choose(self, recipe: Recipe, X: HostArray, y: HostArray, weight: HostArray) -> _Choice:
        centre = float(np.median(y))
        away = np.abs(y - centre)
        # a single far target must not decide; where most are equal, the others do
        spread = float(np.median(away)) or float(np.mean(away)) or 1.0
        t = (y - centre) / spread
        lambdas = LAMBDAS if self.alphas is None else _alphas(self.alphas) * spread
        folds = [(train[weight[train] > 0.0], test) for train, test in self._folds(X, y)]
        if any(not train.size for train, _ in folds):
            raise ValueError(
                f"{np.count_nonzero(weight)} rows have a positive sample_weight, and a fold is left without any to "
                "train on. Give weight to more rows, or other folds as cv."
            )
        kernels = ranked(X, y, self._named_kernels())[: TOP if self.kernels == "auto" else None]
        losses = np.empty((len(kernels), lambdas.size, len(folds)))
        with one_blas_thread():
            for k, (_, kernel) in enumerate(kernels):
                quick = replace(
                    recipe,
                    kernel=kernel,
                    noncrossing=0.0,
                    hard=False,
                    quadrature="gauss-legendre",
                    n_nodes=NODES,
                    bias_kernel=Gaussian(gamma=2.0),
                    alpha=float(np.max(lambdas)),
                    alpha_bias=BIAS_RIDGE,
                    tol=GAP,
                    device=None,
                )
                parts = [_Fold(quick, X, t, weight, *fold, float(np.min(lambdas))) for fold in folds]
                losses[k] = _path(parts, lambdas)
        ignoring = np.array([_loss_without_inputs(t, weight, train, test) for train, test in folds])
        k, i = _best(losses, ignoring, self.rule)
        results = {
            "kernels": [name for name, _ in kernels],
            "alphas": lambdas / spread,
            "losses": losses * spread,
            "ignoring_x": ignoring * spread,
            "best": (k, i),
        }
        # a bias that holds the level of y may be large, and its ridge must not mind
        bias = BIAS_RIDGE / spread / (1.0 + (centre / spread) ** 2)
        return _Choice(kernels[k][1], float(lambdas[i] / spread), float(bias), results)

    def _named_kernels(self) -> dict[str, InputKernel] | None:
        if isinstance(self.kernels, str):
            if self.kernels != "auto":
                raise ValueError(f"kernels={self.kernels!r} was given; it must be 'auto' or a list of kernels.")
            return None
        found = {repr(kernel): input_kernel(kernel) for kernel in self.kernels}
        if not found:
            raise ValueError("kernels=[] was given; give at least one kernel, or 'auto'.")
        return found

    def _folds(self, X: HostArray, y: HostArray) -> list[tuple[HostArray, HostArray]]:
        n = y.size
        if self.cv is not None:
            return list(check_cv(self.cv, y).split(X, y))
        if n < 2:
            raise ValueError(f"{n} row was given; a cross-validation needs at least 2.")
        rng = check_random_state(self.random_state)
        repeats = int(np.clip(np.ceil(SEEN / n), 1, REPEATS))
        splits = [KFold(min(5, n), shuffle=True, random_state=rng.randint(2**31 - 1)) for _ in range(repeats)]
        return [fold for split in splits for fold in split.split(X)]


LEVELS: HostArray = np.arange(1, 10) / 10.0
"""Where models are compared."""


class _Fold:
    """The fits to the training rows of a fold, for one λ after the other, and what they are worth on the others."""

    def __init__(
        self,
        recipe: Recipe,
        X: HostArray,
        t: HostArray,
        weight: HostArray,
        train: HostArray,
        test: HostArray,
        finest: float,
    ) -> None:
        data = Data.canonical(X[train], t[train], weight[train])
        exact = tolerance(replace(recipe, alpha=finest), data)
        problem = pose(recipe, data, np.random.default_rng(0), tol=exact)
        self.recipe, self.objective = recipe, problem.objective
        self.phi, self.psi = problem.phi.map(X[test]), problem.psi.map(LEVELS)
        self.psi_bias = np.zeros((LEVELS.size, 0)) if problem.psi_bias is None else problem.psi_bias.map(LEVELS)
        self.t, self.weight = t[test], weight[test]
        self.basis: Eigenbasis | None = None
        self.start: Start | None = None

    def loss(self, ridge: float) -> float:
        """The mean pinball loss with this λ; the fit starts from the one before it."""
        self.objective = self.objective.with_ridge(ridge, self.recipe.alpha_bias)
        self.basis = Eigenbasis.of(self.objective, self.basis)
        found = solve(self.objective, tol=self.recipe.tol, max_iter=EVALUATIONS, start=self.start, basis=self.basis)
        self.start = Start(found.z, found.smoothing, found.floor)
        r, s = self.objective.shape
        h = self.phi @ found.z[: r * s].reshape(r, s) @ self.psi.T + self.psi_bias @ found.z[r * s :]
        return _pinball(self.t, h, self.weight)


def _path(folds: list[_Fold], lambdas: HostArray) -> HostArray:
    """The losses (k, folds) along falling λ, as far as they are worth computing; inf beyond.

    The smaller λ, the longer a fit takes: once two in a row are surely worse than the best one, the others are left.
    """
    losses = np.full((lambdas.size, len(folds)), np.inf)
    worse = 0
    for i, ridge in enumerate(lambdas):
        losses[i] = [fold.loss(float(ridge)) for fold in folds]
        best = int(np.argmin(losses[: i + 1].mean(axis=1)))
        worse = worse + 1 if _surely_worse(losses[i], losses[best]) else 0
        if worse == 2 and i > best:
            break
    return losses


def _surely_worse(losses: HostArray, best: HostArray) -> bool:
    """Whether the mean difference over the folds is above its standard error."""
    difference = losses - best
    if not np.all(np.isfinite(difference)):
        return True
    error = np.std(difference, ddof=1) / np.sqrt(difference.size) if difference.size > 1 else 0.0
    return bool(np.mean(difference) > error)


def _loss_without_inputs(t: HostArray, weight: HostArray, train: HostArray, test: HostArray) -> float:
    order = train[np.argsort(t[train])]
    mass = np.cumsum(weight[order])
    at = np.minimum(np.searchsorted(mass, LEVELS * mass[-1]), order.size - 1)
    return _pinball(t[test], np.broadcast_to(t[order][at], (test.size, LEVELS.size)), weight[test])


def _pinball(t: HostArray, h: HostArray, weight: HostArray) -> float:
    r = t[:, None] - h
    each = np.mean(np.maximum(LEVELS * r, (LEVELS - 1.0) * r), axis=1)
    total = float(np.sum(weight))
    return float(weight @ each) / total if total > 0.0 else 0.0


def _best(losses: HostArray, ignoring: HostArray, rule: str) -> tuple[int, int]:
    """The kernel and λ to take, by their positions; the first λ where nothing beats ignoring the inputs."""
    mean = losses.mean(axis=2)
    k, i = (int(p) for p in np.unravel_index(np.argmin(mean), mean.shape))
    if rule == "best":
        return k, i
    if not _surely_worse(ignoring, losses[k, i]):
        return k, 0
    return k, next(j for j in range(i + 1) if j == i or not _surely_worse(losses[k, j], losses[k, i]))


def _alphas(given: Any) -> HostArray:
    alphas = np.asarray(given, dtype=float)
    if alphas.ndim != 1 or not alphas.size or not np.all(np.isfinite(alphas)) or np.any(alphas <= 0.0):
        raise ValueError(f"alphas={given!r} was given; it must be a list of positive finite numbers.")
    return np.sort(alphas)[::-1]
