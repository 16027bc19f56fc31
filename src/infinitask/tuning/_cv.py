"""What models that choose their kernel and λ themselves share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state

from infinitask._array import HostArray, one_blas_thread
from infinitask.estimators.base import BaseInfiniteTask
from infinitask.estimators.problem import Problem, Recipe
from infinitask.features import RandomFourier, feature_recipe
from infinitask.kernels import Gaussian, InputKernel, input_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure
from infinitask.tuning._candidates import Candidate, contenders, ranked
from infinitask.tuning._choice import Splits, checked_alphas, choose, contest
from infinitask.tuning._folds import Apart, Folds

__all__ = ["Contest", "SelfTuned"]

LAMBDAS: HostArray = np.logspace(1.5, -7.0, 18)
"""λ for targets whose typical distance from their centre is 1; the first one all but ignores the inputs."""

SINGLES, JOINED = 5, 5
"""Kernels of the ranking that compete by themselves, and in sums."""

AHEAD = 3.0
"""A path begins at so many times the λ that was best in the ranking."""

SEEN = 150
"""Folds are repeated until so many rows have been left out in all, at most REPEATS times."""

REPEATS = 4

GAP, EVALUATIONS, NODES = 2e-2, 100, 9
"""The duality gap of a fit that is only to be compared, the most evaluations it may take, and its nodes."""


@dataclass(frozen=True, eq=False)
class Contest:
    """What the choice is made from, in units in which the targets are of size one.

    Parameters
    ----------
    targets : ndarray (n,)
    unit : float
        The size of the targets before: losses and 1/λ are measured in it.
    centre : float
        What was taken off the targets before, in their own units.
    levels : ndarray (q,)
        Where models are compared.
    bias_gamma : float
        γ of the bias while they are.
    """

    targets: HostArray
    unit: float
    centre: float
    levels: HostArray
    bias_gamma: float


class SelfTuned(BaseInfiniteTask):
    """A model with the parameters ``kernels``, ``alphas``, ``cv`` and ``rule`` instead of a kernel and λ."""

    # chosen, and so no parameters
    kernel: Any = "rbf"
    gamma: Any = "median"
    alpha: float = 1.0
    alpha_bias: float | None = None
    bias_kernel: Any = "task"
    warm_start: bool = False

    kernels: Any
    alphas: Any
    cv: Any
    rule: str
    offset_: float

    _bias_ridge: float
    """λ_b in the units of the contest: hardly any, so that large λ ignores the inputs and not the data."""

    _last_bias_ridge: float
    """λ_b of the last fit in these units."""

    @abstractmethod
    def _contest(self, y: HostArray, weight: HostArray, levels: HostArray) -> Contest:
        """The targets as they are compared."""

    def _contest_loss(self, contest: Contest) -> Loss:
        """The loss in the units of the contest."""
        return self._loss()

    @abstractmethod
    def _losses(self, contest: Contest, rows: HostArray, h: HostArray) -> HostArray:
        """What h (k, q) is worth at the levels for each of these rows, (k,)."""

    @abstractmethod
    def _constant(self, contest: Contest, rows: HostArray, weight: HostArray) -> HostArray:
        """What is best without inputs for these rows, (q,)."""

    def _fit(self, recipe: Recipe, X: HostArray, y: HostArray | None, weight: HostArray, **learnt: Any) -> Self:
        assert y is not None
        kernel, alpha, alpha_bias, centre, results = self._chosen(recipe, X, y, weight)
        recipe = replace(recipe, kernel=kernel, alpha=alpha, alpha_bias=alpha_bias)
        learnt |= {"kernel_": kernel, "alpha_": alpha, "alpha_bias_": alpha_bias, "cv_results_": results}
        learnt |= {"offset_": centre, "ignores_inputs_": results["best"][1] == 0}
        # targets that lie far from zero would need a large bias, and its ridge would mind
        return super()._fit(recipe, X, y - centre, weight, **learnt)

    def _write(self, recipe: Recipe, problem: Problem, field: Any, solution: Any) -> None:
        super()._write(recipe, problem, replace(field, offset=self.offset_), solution)

    def _chosen(
        self, recipe: Recipe, X: HostArray, y: HostArray, weight: HostArray
    ) -> tuple[InputKernel, float, float, float, dict[str, Any]]:
        """The kernel, λ, λ_b, the centre of the targets and the table."""
        if self.rule not in ("one-se", "best"):
            raise ValueError(f"rule={self.rule!r} was given; it must be 'one-se' or 'best'.")
        setting = self._contest(y, weight, _levels(recipe.measure))
        lambdas = LAMBDAS
        if self.alphas is not None:
            lambdas = checked_alphas(self.alphas) * setting.unit
            if lambdas[0] < LAMBDAS[0]:  # there must be one that ignores the inputs
                lambdas = np.concatenate([LAMBDAS[:1], lambdas])
        repeats = self._repeats(X, y, weight)
        spectral = isinstance(feature_recipe(recipe.features, recipe.rank), RandomFourier)
        counts = np.flatnonzero(weight > 0.0)
        ranking = ranked(X[counts], y[counts], self._named_kernels(), lambda kernel: kernel.stationary or not spectral)
        entrants = contenders(ranking, SINGLES, 0 if spectral else JOINED) if self.kernels == "auto" else ranking
        quick = replace(
            recipe,
            loss=self._contest_loss(setting),
            task_kernel="rbf",
            task_gamma=None,
            noncrossing=0.0,
            hard=False,
            quadrature="gauss-legendre",
            n_nodes=NODES,
            bias_kernel=Gaussian(gamma=setting.bias_gamma),
            alpha=float(np.max(lambdas)),
            alpha_bias=self._bias_ridge,
            tol=GAP,
            device=None,
        )
        exact = 1e-2 * GAP * float(np.min(lambdas))

        place = np.zeros(y.size, dtype=int)
        place[counts] = np.arange(counts.size)

        def posed(kernel: InputKernel, splits: Splits) -> Folds:
            recipe = replace(quick, kernel=kernel)
            return Folds(recipe, X, setting.targets, weight, splits, setting.levels, EVALUATIONS, exact)

        def folds(entrant: Candidate, splits: Splits) -> Folds | Apart:
            if entrant.kind.adapt is None:
                return posed(entrant.kind.kernel, splits)
            seen = [place[train[weight[train] > 0.0]] for train, _ in splits]
            return Apart([posed(entrant.kind.on(rows), [split]) for rows, split in zip(seen, splits, strict=True)])

        def begin(entrant: Candidate) -> int:
            return 0 if self.alphas is not None else int(np.argmin(np.abs(np.log(lambdas / (AHEAD * entrant.ridge)))))

        def loss(rows: HostArray, h: HostArray) -> float:
            total = float(np.sum(weight[rows]))
            return float(weight[rows] @ self._losses(setting, rows, h)) / total if total > 0.0 else 0.0

        def without_inputs(train: HostArray, test: HostArray) -> float:
            constant = self._constant(setting, train[weight[train] > 0.0], weight)
            return loss(test, np.broadcast_to(constant, (test.size, constant.size)))

        ignoring = np.array([without_inputs(*fold) for splits in repeats for fold in splits])
        with one_blas_thread():
            table = contest(entrants, lambdas, repeats, begin, folds, loss, self._bias_ridge, ignoring)
        choice = choose(table, ignoring, self.rule, len(repeats[0]))
        results = {
            "kernels": [entrant.name for entrant in entrants],
            "alphas": lambdas / setting.unit,
            "losses": table * setting.unit,
            "ignoring_x": ignoring * setting.unit,
            "best": (choice.kernel, choice.ridge),
        }
        alpha, bias = float(lambdas[choice.ridge] / setting.unit), self._last_bias_ridge / setting.unit
        return entrants[choice.kernel].kind.kernel, alpha, bias, setting.centre, results

    def _look_at(self, recipe: Recipe, problem: Problem, z: HostArray) -> None:
        """Nothing: what others are advised to change is chosen here."""

    def _named_kernels(self) -> dict[str, InputKernel] | None:
        if isinstance(self.kernels, str):
            if self.kernels != "auto":
                raise ValueError(f"kernels={self.kernels!r} was given; it must be 'auto' or a list of kernels.")
            return None
        if not isinstance(self.kernels, Iterable):
            raise ValueError(f"kernels={self.kernels!r} was given; it must be 'auto' or a list of kernels.")
        found = {repr(kernel): input_kernel(kernel) for kernel in self.kernels}
        if not found:
            raise ValueError("kernels=[] was given; give at least one kernel, or 'auto'.")
        if any(kernel.precomputed for kernel in found.values()):
            raise ValueError(
                "kernels holds 'precomputed'; kernels that compete are computed from X. Tune a known Gram matrix with "
                "GridSearchCV over alpha instead."
            )
        return found

    def _repeats(self, X: HostArray, y: HostArray, weight: HostArray) -> list[Splits]:
        """The folds, as often as there are few rows."""
        n = y.size
        if self.cv is not None:
            repeats = [list(check_cv(self.cv, y, classifier=is_classifier(self)).split(X, y))]
        elif n < 2:
            raise ValueError(f"{n} row was given; a cross-validation needs at least 2.")
        else:
            rng = check_random_state(self.random_state)
            size, tell = min(5, n), n
            kind: Any = KFold
            if is_classifier(self):
                # of few rows of a class more depends on which of them are left out
                positive = int(np.count_nonzero(y > 0.0))
                rare = min(positive, n - positive)
                kind, tell = StratifiedKFold if rare >= size else KFold, max(1, 2 * rare)
            count = int(np.clip(np.ceil(SEEN / tell), 1, REPEATS))
            splitters = [kind(size, shuffle=True, random_state=rng.randint(2**31 - 1)) for _ in range(count)]
            repeats = [list(splitter.split(X, y)) for splitter in splitters]
        if any(not np.any(weight[train] > 0.0) for splits in repeats for train, _ in splits):
            raise ValueError(
                f"{np.count_nonzero(weight)} rows have a positive sample_weight, and a fold is left without any to "
                "train on. Give weight to more rows, or other folds as cv."
            )
        return repeats


def _levels(measure: Measure) -> HostArray:
    """Tasks at which models are compared: the atoms of μ, or its deciles."""
    if measure.dim != 1:
        raise ValueError(f"measure={measure!r} was given; a self-tuned model has tasks on the line.")
    atoms = measure.atoms()
    nodes = measure.ppf(np.arange(1, 10)[:, None] / 10.0) if atoms is None else atoms.nodes
    return np.asarray(nodes[:, 0])
