"""Today's alternatives for quantiles of small tables, behind one interface.

A peer has ``fit(parameters, X, y, levels, seed)``, which returns a function X, levels → (n, q) of quantiles. All peers
run in one thread and write no files. Those without trees are in :mod:`experiments.smooth_peers`.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri

from . import smooth_peers as smooth
from .peer_search import Answer, Parameters, Peer, Values, fitted, tune
from .peer_search import count_uniform as _count
from .peer_search import log_uniform as _log

__all__ = ["PEERS", "Peer", "fitted", "tune"]


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
    "linear": Peer("scikit-learn", "sklearn", smooth.linear_defaults, smooth.draw_linear, smooth.linear),
    "gp": Peer("scipy", "scipy", lambda n: {}, None, smooth.gaussian_process, any_level=True),
    "gp_scores": Peer("scipy", "scipy", lambda n: {}, None, smooth.gaussian_process_of_scores, any_level=True),
    "xrfm": Peer(
        "xrfm", "xrfm", smooth.xrfm_defaults, smooth.draw_xrfm, smooth.xrfm, any_level=True, last={"bags": 5}
    ),
    "liquidsvm": Peer("liquidSVM", "experiments.smooth_peers", lambda n: {}, None, smooth.liquid_svm),
}  # fmt: skip
