"""Today's alternatives for quantiles of small tables, behind one interface, and a random search over their parameters.

A peer has ``fit(parameters, X, y, levels, seed)``, which returns a function X, levels → (n, q) of quantiles. All peers
run in one thread and write no files.
"""

from __future__ import annotations

import copy
import functools
import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.model_selection import KFold

from .tuned import LEVELS, pinball

__all__ = ["PEERS", "Peer", "fitted", "tune"]

Values = NDArray[np.float64]
Parameters = dict[str, Any]
Answer = Callable[[Values, Values], Values]


@dataclass(frozen=True)
class Peer:
    """A package, and how it predicts quantiles.

    Parameters
    ----------
    package, module : str
        The names to install and to import it by.
    defaults : callable
        n → the package's defaults, with leaves of at most n/4 rows, so that trees can split on small sets.
    draw : callable or None
        Generator, n → parameters for the search; None: nothing is searched.
    fit : callable
        Parameters, X, y, levels, seed → answer.
    any_level : bool
        Whether the answer accepts levels other than those of the fit.
    """

    package: str
    module: str
    defaults: Callable[[int], Parameters]
    draw: Callable[[np.random.Generator, int], Parameters] | None
    fit: Callable[[Parameters, Values, Values, Values, int], Answer]
    any_level: bool = False

    def load(self) -> None:
        """Import the package, or say how to get it."""
        try:
            importlib.import_module(self.module)
        except ImportError:
            raise RuntimeError(f"{self.package} is not installed; `make peers` installs it.") from None


def fitted(peer: Peer, parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    """The peer's answer, without its warnings."""

    def quiet(f: Callable[..., Any], *arguments: Any) -> Any:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return f(*arguments)

    return functools.partial(quiet, quiet(peer.fit, parameters, X, y, levels, seed))


def tune(
    peer: Peer, X: Values, y: Values, *, evaluations: int, folds: int, seed: int
) -> tuple[Parameters, float | None]:
    """The parameters with the smallest cross-validated loss, and that loss: the defaults, or random ones."""
    best, smallest = peer.defaults(y.size), np.inf
    if peer.draw is None:
        return best, None
    rng = np.random.default_rng(seed)
    splits = list(KFold(folds, shuffle=True, random_state=seed).split(X))
    for number in range(evaluations):
        parameters = peer.draw(rng, y.size) if number else best
        loss = 0.0
        for train, test in splits:
            h = fitted(peer, parameters, X[train], y[train], LEVELS, seed)(X[test], LEVELS)
            loss += pinball(y[test], h) / folds
            if not loss < smallest:  # losses are positive: the remaining folds cannot make it the best
                break
        else:
            best, smallest = parameters, loss
    return best, smallest


def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _count(rng: np.random.Generator, low: int, high: int) -> int:
    """An integer in [low, high], log-uniform: small ones are more frequent."""
    return int(_log(rng, low, high + 1 - 1e-9))


def _leaf(n: int, rows: int = 20) -> int:
    """The smallest leaf: ``rows``, or fewer where a tree could not split otherwise."""
    return max(1, min(rows, n // 4))


def _rows(rng: np.random.Generator, n: int) -> int:
    """The rows of a leaf: up to 20, or a tenth of a larger set."""
    return _count(rng, 1, _leaf(n, max(20, n // 10)))


def _each_level(model: Callable[[float], Any], X: Values, y: Values, levels: Values) -> Answer:
    """One model for each level."""
    models = [model(float(level)).fit(X, y) for level in levels]
    return lambda X, _: np.column_stack([m.predict(X) for m in models])


# --------------------------------------------------------------------------------- our model, and the baseline
def _infinite(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from infinitask.tuning import InfiniteQuantileRegressorCV

    model = InfiniteQuantileRegressorCV(random_state=0).fit(X, y)
    return lambda X, levels: np.asarray(model.predict(X, levels))


def _marginal(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    return lambda X, levels: np.tile(np.quantile(y, levels), (len(X), 1))


# ---------------------------------------------------------------------------------------------------- LightGBM
def _lightgbm(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from lightgbm import LGBMRegressor

    return _each_level(
        lambda level: LGBMRegressor(
            objective="quantile", alpha=level, n_jobs=1, random_state=seed, subsample_freq=1, verbosity=-1, **parameters
        ),
        X,
        y,
        levels,
    )


def _draw_lightgbm(rng: np.random.Generator, n: int) -> Parameters:
    return {
        "n_estimators": _count(rng, 20, 300),
        "learning_rate": _log(rng, 0.02, 0.3),
        "num_leaves": _count(rng, 2, 8),
        "min_child_samples": _rows(rng, n),
        "min_data_in_bin": int(rng.choice([1, 3])),
        "subsample": float(rng.uniform(0.5, 1.0)),
        "colsample_bytree": float(rng.uniform(0.5, 1.0)),
        "reg_lambda": _log(rng, 1e-3, 10.0),
    }


# ------------------------------------------------------------------------------- scikit-learn's gradient boosting
def _histograms(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return _each_level(
        lambda level: HistGradientBoostingRegressor(
            loss="quantile", quantile=level, early_stopping=False, random_state=seed, **parameters
        ),
        X,
        y,
        levels,
    )


def _draw_histograms(rng: np.random.Generator, n: int) -> Parameters:
    return {
        "max_iter": _count(rng, 20, 150),  # 0.8 ms for each tree and level: the slowest of all peers
        "learning_rate": _log(rng, 0.03, 0.3),
        "max_leaf_nodes": _count(rng, 2, 8),
        "min_samples_leaf": _rows(rng, n),
        "max_features": float(rng.uniform(0.5, 1.0)),
        "l2_regularization": _log(rng, 1e-3, 10.0),
    }


# ---------------------------------------------------------------------------------------------------- CatBoost
def _catboost(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from catboost import CatBoostRegressor

    loss = "MultiQuantile:alpha=" + ",".join(f"{level:g}" for level in levels)
    model = CatBoostRegressor(
        loss_function=loss, thread_count=1, verbose=0, allow_writing_files=False, random_seed=seed, **parameters
    ).fit(X, y)
    return lambda X, _: np.asarray(model.predict(X))


def _draw_catboost(rng: np.random.Generator, n: int) -> Parameters:
    return {
        "iterations": _count(rng, 20, 300),
        "learning_rate": _log(rng, 0.02, 0.3),
        "depth": _count(rng, 2, 6),
        "l2_leaf_reg": _log(rng, 0.3, 30.0),
        "rsm": float(rng.uniform(0.5, 1.0)),
    }


# ---------------------------------------------------------------------------------------------- quantile forest
def _forest(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(n_jobs=1, random_state=seed, **parameters).fit(X, y)
    return lambda X, levels: np.asarray(model.predict(X, quantiles=levels.tolist()))


def _draw_forest(rng: np.random.Generator, n: int) -> Parameters:
    return {
        "n_estimators": 100,  # its default; more trees are not worse and need no search
        "min_samples_leaf": _rows(rng, n),
        "max_features": float(rng.uniform(0.3, 1.0)),
        "max_samples": float(rng.uniform(0.5, 1.0)),
        "max_samples_leaf": [1, None][int(rng.integers(2))],
    }


# ------------------------------------------------------------------------------------------------------ NGBoost
@functools.cache
def _lean() -> tuple[type, type]:
    """NGBoost's normal distribution and scikit-learn's tree: the same numbers in a sixth of the time.

    NGBoost creates a frozen SciPy distribution for every trial step of its line search, and clones and checks a tree at
    every step. For a hundred rows that is most of the time of a fit. Here the logarithm of the density is written out,
    and the trees check nothing.
    """
    from ngboost.distns.distn import RegressionDistn
    from ngboost.distns.normal import Normal, NormalLogScore
    from ngboost.scores import LogScore
    from sklearn.tree import DecisionTreeRegressor

    class Density(NormalLogScore, LogScore):  # NGBoost looks a score up by its last base
        def score(self, Y: Values) -> Values:
            z = (Y - self.loc) / self.scale
            return np.asarray(0.5 * z * z + np.log(self.scale) + 0.5 * np.log(2.0 * np.pi))

    class LeanNormal(Normal):
        scores = (Density,)

        def __init__(self, params: Values) -> None:
            RegressionDistn.__init__(self, params)
            self.loc, self.scale = params[0], np.exp(params[1])
            self.var = self.scale**2
            self.dist = None

    class LeanTree(DecisionTreeRegressor):
        def __sklearn_clone__(self) -> LeanTree:
            return copy.copy(self)  # self is a template that is never fitted

        def fit(self, X: Values, y: Values) -> LeanTree:
            super().fit(np.asarray(X, dtype=np.float32), y, check_input=False)
            return self

        def predict(self, X: Values) -> Values:
            return np.asarray(self.tree_.predict(np.asarray(X, dtype=np.float32))[:, 0])

    return LeanNormal, LeanTree


def _ngboost(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from ngboost import NGBRegressor
    from ngboost.learners import default_tree_learner

    normal, tree = _lean()
    others = dict(parameters)
    shape = {name: others.pop(name) for name in ("max_depth", "min_samples_leaf")}
    base = tree(criterion=default_tree_learner.criterion, random_state=seed, **shape)
    model = NGBRegressor(Dist=normal, Base=base, verbose=False, random_state=seed, **others).fit(X, y)

    def answer(X: Values, levels: Values) -> Values:
        loc, log_scale = model.pred_param(X).T
        return np.asarray(loc[:, None] + np.exp(log_scale)[:, None] * ndtri(levels))

    return answer


def _draw_ngboost(rng: np.random.Generator, n: int) -> Parameters:
    return {
        "n_estimators": _count(rng, 20, 300),
        "learning_rate": _log(rng, 0.01, 0.2),
        "max_depth": _count(rng, 2, 5),
        "min_samples_leaf": _rows(rng, n),
        "minibatch_frac": float(rng.uniform(0.5, 1.0)),
    }


# ------------------------------------------------------------------------------------------------- ChimeraBoost
def _chimeraboost(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from chimeraboost import ChimeraBoostQuantileRegressor

    model = ChimeraBoostQuantileRegressor(quantiles=levels, thread_count=1, random_state=seed, **parameters).fit(X, y)
    return lambda X, _: np.asarray(model.predict(X), dtype=float)


def _draw_chimeraboost(rng: np.random.Generator, n: int) -> Parameters:
    """Half of the draws hold out rows, by which the peer stops and chooses among five kinds of model."""
    stops = bool(rng.integers(2))
    return {
        "early_stopping": stops,
        "n_estimators": 2000 if stops else _count(rng, 20, 300),
        "learning_rate": _log(rng, 0.02, 0.3),
        "depth": _count(rng, 2, 6),
        "min_child_weight": _rows(rng, n),
        "l2_leaf_reg": _log(rng, 0.1, 10.0),
        "subsample": float(rng.uniform(0.5, 1.0)),
    }


PEERS = {
    "ignoring_x": Peer("numpy", "numpy", lambda n: {}, None, _marginal, any_level=True),
    "itl_cv": Peer("infinitask", "infinitask.tuning", lambda n: {}, None, _infinite, any_level=True),
    "lightgbm": Peer(
        "lightgbm", "lightgbm", lambda n: {"min_child_samples": _leaf(n)}, _draw_lightgbm, _lightgbm
    ),
    "hist_gradient_boosting": Peer(
        "scikit-learn", "sklearn.ensemble", lambda n: {"min_samples_leaf": _leaf(n)}, _draw_histograms, _histograms
    ),
    "catboost": Peer("catboost", "catboost", lambda n: {}, _draw_catboost, _catboost),
    "quantile_forest": Peer(
        "quantile-forest", "quantile_forest", lambda n: {}, _draw_forest, _forest, any_level=True
    ),
    "ngboost": Peer(
        "ngboost", "ngboost", lambda n: {"max_depth": 3, "min_samples_leaf": 1}, _draw_ngboost, _ngboost, any_level=True
    ),
    # its default is 1/level rows in a leaf: 10 for the five levels, 20 for nineteen
    "chimeraboost": Peer(
        "chimeraboost", "chimeraboost", lambda n: {"min_child_weight": _leaf(n, 10)}, _draw_chimeraboost, _chimeraboost
    ),
}  # fmt: skip
