"""What the estimators share: the parameters, the checks, and one fit."""

from __future__ import annotations

import inspect
import sys
import warnings
from abc import ABC, abstractmethod
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from infinitask._array import HostArray, namespace, one_blas_thread, place, to_host
from infinitask.estimators._checks import LARGEST, check_magnitude, check_number, parse_tasks
from infinitask.estimators._docs import completed
from infinitask.estimators.order import solve_in_order
from infinitask.estimators.problem import Data, Problem, Recipe, pose
from infinitask.estimators.warm import Warm
from infinitask.kernels import Precomputed, input_kernel
from infinitask.losses import Loss
from infinitask.measures import Measure, Uniform, as_measure
from infinitask.objective import Smoothing
from infinitask.penalties import IntegratedRidge, Ridge
from infinitask.solvers import SOLVERS, Eigenbasis, solve

__all__ = ["BaseInfiniteTask"]

_PATH: ContextVar[Warm | None] = ContextVar("_PATH", default=None)
"""What the fits of a path share; see :func:`~infinitask.estimators.fit_path`."""

STANDARD = 5.0
"""Targets whose root mean square is below this count as standardised."""

HEAVY = 0.1
"""The part of the errors of a constant at which a ridge on the bias is said to be heavy."""

SOME_ROWS = 2_000
"""Rows that are looked at where a few are enough."""


class BaseInfiniteTask(BaseEstimator, ABC):
    """One fit for every θ. Subclasses say which loss, which Θ, and what to call the answers."""

    _default_nodes: int = 50
    _free_alpha: bool = False
    """Whether λ may be 0, because it does not weigh h."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.__doc__ = completed(cls)

    kernel: Any
    gamma: Any
    task_kernel: Any
    task_gamma: Any
    bias_kernel: Any
    alpha: float
    alpha_bias: float | None
    measure: Any
    quadrature: Any
    n_nodes: int | None
    features: Any
    rank: int | None
    solver: str
    tol: float
    max_iter: int
    device: str | None
    random_state: Any
    verbose: int
    warm_start: bool

    def _store(self, parameters: dict[str, Any]) -> None:
        """Keep what a constructor was given, as it was given; ``parameters`` are its ``locals()``.

        scikit-learn reads the signature of each constructor, so there it must stand; once is enough.
        """
        for name, value in parameters.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    # ------------------------------------------------------------------------------------- scikit-learn
    @classmethod
    @lru_cache(maxsize=64)
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at every call: a tenth of the time of a small fit on a path
        return list(super()._get_param_names())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "field_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        return tags

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    # ------------------------------------------------------------------------------------------- fitting
    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of the task."""

    def _default_measure(self) -> Measure:
        loss = self._loss()
        return Uniform(*(loss.support or loss.domain))

    def _penalty(self) -> Ridge | IntegratedRidge:
        return Ridge()

    def _noncrossing(self) -> float:
        return 0.0

    def _hard(self) -> bool:
        """Whether order in θ is a constraint."""
        return False

    def _recipe(self) -> Recipe:
        """The parameters, checked."""
        alpha = check_number("alpha", self.alpha, low=0.0, open_low=not self._free_alpha)
        if self.solver not in SOLVERS:
            raise ValueError(f"solver={self.solver!r} was given; it must be one of {', '.join(map(repr, SOLVERS))}.")
        for name in ("max_iter", "n_nodes", "rank"):
            value = getattr(self, name)
            if value is None and name != "max_iter":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r} was given; it must be an integer of at least 1.")
        if not isinstance(self.verbose, Integral) or self.verbose < 0:
            raise ValueError(f"verbose={self.verbose!r} was given; it must be 0, 1 or 2.")
        loss = self._loss()
        measure = as_measure(self.measure, self._default_measure())
        self._check_measure(measure, loss)
        return Recipe(
            loss=loss,
            measure=measure,
            penalty=self._penalty(),
            kernel=self.kernel,
            gamma=self.gamma,
            task_kernel=self.task_kernel,
            task_gamma=self.task_gamma,
            bias_kernel=self.bias_kernel,
            alpha=alpha,
            alpha_bias=(
                alpha
                if self.alpha_bias is None
                else check_number("alpha_bias", self.alpha_bias, low=0.0, open_low=False)
            ),
            noncrossing=self._noncrossing(),
            hard=self._hard(),
            quadrature=self.quadrature,
            n_nodes=self._default_nodes if self.n_nodes is None else int(self.n_nodes),
            features=self.features,
            rank=self.rank,
            tol=check_number("tol", self.tol, low=0.0),
            device=self.device,
            random_state=self.random_state,
        )

    def _check_default(self, name: str, recipe: Recipe) -> bool:
        """Whether the task in the constructor is a single one; an error if the loss has no such task.

        The constructor's own default may lie outside Θ: a user who names a task at every prediction need not care for
        it. What the user gave must not.
        """
        value = getattr(self, name)
        default = _default(type(self), name)
        given = not (np.shape(value) == np.shape(default) and np.all(np.asarray(value) == np.asarray(default)))
        if recipe.measure.dim > 1 or not np.all(np.isfinite(recipe.loss.domain)):
            domain = recipe.measure
            if not given:
                return False
        else:
            domain = recipe.measure if given else Uniform(*recipe.loss.domain)
        return parse_tasks(value, name, domain)[1]

    def _check_measure(self, measure: Measure, loss: Loss) -> None:
        if loss.dim not in (None, measure.dim):
            raise ValueError(
                f"measure={measure!r} lives in {measure.dim} dimensions; {type(loss).__name__} takes θ of dimension "
                f"{loss.dim}."
            )
        low, high = (float(end(edge)) for end, edge in zip((np.min, np.max), measure.support, strict=True))
        if not (low >= loss.domain[0] and high <= loss.domain[1]):
            raise ValueError(
                f"measure={measure!r} lives on [{low:g}, {high:g}]; {type(loss).__name__} is defined for θ in "
                f"[{loss.domain[0]:g}, {loss.domain[1]:g}]. Restrict the measure to that interval."
            )

    def _validated(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> tuple[HostArray, Any, HostArray]:
        """X, y and nonnegative weights as arrays; the fit before this one, if any, is forgotten."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        if y is None and "y_numeric" not in options:
            X, y = validate_data(self, X, dtype=np.float64), None
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, **options)
        if self._is_precomputed() and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"kernel='precomputed' was given with X of shape {X.shape}; fit needs the square Gram matrix of the "
                "training inputs, and predict the rows k(x, training inputs)."
            )
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not np.any(weight > 0.0):
            raise ValueError("sample_weight is zero for every row; at least one row must count.")
        check_magnitude("X", X[weight > 0.0])
        return X, y, weight

    def _fit(self, recipe: Recipe, X: HostArray, y: HostArray | None, weight: HostArray, **learnt: Any) -> Self:
        """Pose, solve, and only then write what was ``learnt``: an interrupt leaves the estimator unfitted."""
        if y is not None:
            check_magnitude("y", y[weight > 0.0])
        recipe.loss.check_targets(y)
        gram = input_kernel(recipe.kernel, recipe.gamma).precomputed
        data = Data.canonical(X, y, weight, gram=gram)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        with one_blas_thread():
            warm = self._memory()
            problem = pose(recipe, data, rng) if warm is None else warm.pose(recipe, data, rng)
            if self.verbose:
                r, s = problem.objective.shape
                print(f"{type(self).__name__}: {problem.phi.description}; {r} × {s} unknowns", file=sys.stderr)
            settings: dict[str, Any] = {
                "solver": self.solver,
                "tol": recipe.tol,
                "max_iter": int(self.max_iter),
                "verbose": int(self.verbose),
            }
            if recipe.hard:
                solution, learnt["smallest_slope_"] = solve_in_order(problem, recipe.measure.support, **settings)
            elif warm is None:
                solution = solve(problem.objective, **settings)
            else:
                basis = Eigenbasis.of(problem.objective, warm.basis)
                solution = solve(problem.objective, start=warm.start(problem), basis=basis, **settings)
                warm.learn(problem, solution, basis)
        if solution.converged:
            self._look_at(recipe, problem, solution.z)
        else:
            warnings.warn(f"{type(self).__name__}: {solution.message}", ConvergenceWarning, stacklevel=3)
        if gram and not np.all(weight > 0.0):
            learnt["training_rows_"] = np.flatnonzero(weight > 0.0)
        for name, value in learnt.items():
            setattr(self, name, value)
        solution = replace(solution, smoothing=Smoothing(solution.smoothing.kappa))  # one number per pair is not kept
        self._write(recipe, problem, problem.field(solution.z), solution)
        return self

    def _memory(self) -> Warm | None:
        """What the fit before this one left, with ``warm_start``, or what a path keeps between its fits."""
        path = _PATH.get()
        if path is not None or not self.warm_start:
            self.__dict__.pop("_warm", None)
            return path
        if "_warm" not in self.__dict__:
            self._warm = Warm()
        return self._warm

    def __getstate__(self) -> Any:
        # what a later fit may start from does not travel
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_warm"}

    def _look_at(self, recipe: Recipe, problem: Problem, z: HostArray) -> None:
        """A warning where the ridge on the bias weighs about as much as the errors it should avoid.

        Subclasses look at more: what a certificate of the optimum does not say of its use.
        """
        term, omega = problem.objective.integrals[0], problem.objective.sample_weight
        if term.targets is None or recipe.bias_kernel is None or recipe.alpha_bias == 0.0:
            return
        size = float(np.max(to_host(omega @ term.targets**2))) ** 0.5
        if size <= STANDARD:
            return
        rows = _some(problem)
        y, omega = term.targets[rows, :], omega[rows]
        total = float(namespace(omega).sum(omega))
        constant = (omega @ y) / total + 0.0 * (omega[:, None] * term.weights)
        errors = float(omega @ (term.loss.value(term.theta, y, constant) @ term.weights)) / total
        if 0.5 * recipe.alpha_bias * size**2 > HEAVY * errors:
            self._remark(
                f"y has a root mean square of {size:.3g}, and the ridge holds the bias b(θ) towards 0 with "
                f"alpha_bias={recipe.alpha_bias:g}: too heavily for targets of that size. Standardise y, for instance "
                "with TransformedTargetRegressor, or set alpha_bias=0, which leaves the bias free, and an alpha "
                "that is as many times smaller."
            )

    def _remark(self, sentence: str) -> None:
        """Warn the caller of ``fit``."""
        warnings.warn(f"{type(self).__name__}: {sentence}", UserWarning, stacklevel=5)

    @staticmethod
    def _some_values(problem: Problem, z: HostArray) -> HostArray:
        """h at the nodes for some training rows, (rows, m)."""
        objective = problem.objective
        (r, s), term = objective.shape, objective.integrals[0]
        rows = to_host(objective.rows[_some(problem), :]).astype(np.float64)
        h = rows @ z[: r * s].reshape(r, s) @ to_host(term.cols).T
        return np.asarray(h if term.bias_cols is None else h + to_host(term.bias_cols) @ z[r * s :])

    def _write(self, recipe: Recipe, problem: Problem, field: Any, solution: Any) -> None:
        nodes = problem.quadrature.nodes
        self.nodes_ = nodes[:, 0] if nodes.shape[1] == 1 else nodes
        self.weights_ = problem.quadrature.weights
        self.objective_ = solution.objective
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.solution_ = solution
        self.features_ = problem.phi.description
        self.measure_ = recipe.measure
        self.task_kernel_ = problem.kernel
        self.field_ = field  # last: with it the estimator counts as fitted

    # ---------------------------------------------------------------------------------------- prediction
    def _inputs(self, X: Any) -> Any:
        """X, checked, where the data live."""
        check_is_fitted(self)
        if not self._is_plain(X):
            X = validate_data(self, X, dtype=np.float64, reset=False)
            if X.size:
                check_magnitude("X", X, smallest=0.0)
        if hasattr(self, "training_rows_"):
            X = X[:, self.training_rows_]
        return place(X, self.device)

    def _is_plain(self, X: Any) -> bool:
        """Whether X is sure to pass all checks as it is. They take longer than the prediction of a single row does."""
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")  # an array without names earns a warning there
            and bool(X.max() <= LARGEST and X.min() >= -LARGEST)  # not so for a NaN
        )

    def _values(self, X: Any, theta: Any, name: str, *, strict: bool = False, per_sample: bool = False) -> HostArray:
        """h(x)(θ): (n,) for a single θ or one for each row, (n, q) for several; ``strict``: the ends of the loss's
        domain are no tasks.
        """
        X = self._inputs(X)
        tasks, single = self._asked(theta, name, strict=strict)
        if per_sample:
            return np.asarray(self.field_.paired(X, tasks))
        values = self.field_(X, tasks)
        return np.asarray(values[:, 0] if single else values)

    def _asked(self, theta: Any, name: str, *, strict: bool = False) -> tuple[HostArray, bool]:
        """What :meth:`_tasks` makes of θ, and ``strict`` as above; not checked again where it was a moment ago."""

        def checked() -> tuple[HostArray, bool]:
            tasks, single = self._tasks(theta, name)
            low, high = self._loss().domain
            if strict and not np.all((tasks > low) & (tasks < high)):
                raise ValueError(
                    f"{name} contains {low:g} or {high:g}, where no finite answer exists; ask for levels strictly "
                    "between."
                )
            return tasks.copy(), single  # the caller may write into what was given

        try:
            given = np.asarray(theta, dtype=np.float64)
        except (TypeError, ValueError):
            return checked()  # which says what is wrong
        found: tuple[HostArray, bool] = self.field_.recall(("tasks", strict), checked, given)
        return found

    def _tasks(self, theta: Any, name: str) -> tuple[HostArray, bool]:
        """θ as (q, d), known to the model, and whether one task was asked for without a list around it."""
        tasks, single = parse_tasks(theta, name, self.measure_)
        if self._knows_nodes_only():
            nodes = self.nodes_.reshape(len(self.nodes_), -1)
            known = np.any(np.all(np.abs(tasks[:, None, :] - nodes[None]) <= 1e-12, axis=2), axis=1)
            if not np.all(known):
                raise ValueError(
                    f"{name} contains {tasks[~known][0]}, which is not a node; a diagonal kernel learns each node by "
                    "itself and knows nothing between them. Ask for values of nodes_, or use another kernel of tasks."
                )
        return tasks, single

    def _ends(self) -> tuple[float, float]:
        """The ends of Θ ⊂ ℝ; a measure asks SciPy for them, which takes longer than a prediction."""

        def ends() -> tuple[float, float]:
            low, high = (float(np.ravel(end)[0]) for end in self.measure_.support)
            return low, high

        found: tuple[float, float] = self.field_.recall("ends", ends)
        return found

    def _knows_nodes_only(self) -> bool:
        maps = (self.field_.psi, self.field_.bias_psi)
        return any(feature_map is not None and feature_map.kernel.diagonal for feature_map in maps)


@lru_cache(maxsize=64)
def _default(cls: type, name: str) -> Any:
    """What a constructor's parameter is when it is not given."""
    return inspect.signature(cls).parameters[name].default


def _some(problem: Problem) -> slice:
    """A few thousand training rows at most."""
    return slice(None, None, -(-int(problem.objective.rows.shape[0]) // SOME_ROWS))
