"""The peers of the middle-sized tables: boosting with early stopping and native categories, the others as elsewhere.

A booster is searched by what it reaches on left-out rows, where it also stops; its last fit has all rows and the mean
number of trees at which it stopped.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .peer_models import PEERS
from .peer_search import Answer, Parameters, Peer, Values, count_uniform, log_uniform, parts

__all__ = ["BOOSTERS", "LEVELS", "MIDDLE", "Booster", "mean_pinball", "search"]

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
"""The levels that are compared."""

ORDER = (3, 0, 6, 1, 5, 2, 4)
"""The median first, then the ends: parameters that are no good show it early."""

MOST_TREES, PATIENCE = 1_500, 20
"""At most so many trees; fewer where so many more did not lower the loss of the left-out rows."""

HOPELESS = 1.03
"""Parameters whose loss so far is this many times that of the best at the same point are given up."""


def mean_pinball(y: Values, h: Values, levels: Values = LEVELS) -> float:
    """The mean pinball loss over the levels and rows, times 100."""
    r = y[:, None] - h
    return float(100.0 * np.mean(np.maximum(levels * r, (levels - 1.0) * r)))


@dataclass(frozen=True)
class Booster:
    """A boosting package.

    Parameters
    ----------
    package, module : str
        The names to install and to import it by.
    defaults : dict
        The parameters that are tried first.
    draw : callable
        Generator → parameters.
    watched : callable
        Parameters, X, y, left-out X, left-out y, categories, seed → an iterator over parts of the loss on the left-out
        rows, each with the number of trees at which it stopped.
    fit : callable
        Parameters with ``trees``, X, y, categories, levels, seed → answer.
    """

    package: str
    module: str
    defaults: Parameters
    draw: Callable[[np.random.Generator], Parameters]
    watched: Callable[[Parameters, Values, Values, Values, Values, Sequence[int], int], Iterator[tuple[float, int]]]
    fit: Callable[[Parameters, Values, Values, Sequence[int], Values, int], Answer]


def search(
    booster: Booster,
    X: Values,
    y: Values,
    categories: Sequence[int],
    *,
    evaluations: int,
    folds: int,
    seed: int,
    rows: int,
    seconds: float,
) -> tuple[Parameters, float, int]:
    """The best parameters, with the trees of each part of the loss; their loss; and how many were tried.

    Parameters
    ----------
    booster : Booster
    X, y : arrays
    categories : sequence of int
        The columns of X that are codes of categories.
    evaluations, folds, seed : int
    rows : int
        At most so many random rows take part. With more, the trees of the chosen parameters are counted again, on all
        rows but a tenth.
    seconds : float
        No further parameters are tried after so many seconds of processor time.
    """
    start, rng = time.process_time(), np.random.default_rng(seed)
    some = np.random.default_rng(seed).permutation(y.size)[:rows]
    splits = [(some[train], some[test]) for train, test in parts(some.size, folds, seed)]
    best: Parameters = {}
    pieces: list[float] = []
    tried = 0
    for number in range(evaluations):
        parameters = booster.draw(rng) if number else booster.defaults
        found: list[tuple[float, int]] = []
        for train, test in splits:
            for piece in booster.watched(parameters, X[train], y[train], X[test], y[test], categories, seed):
                found.append(piece)
                if pieces and sum(p for p, _ in found) > HOPELESS * sum(pieces[: len(found)]):
                    break
            else:
                continue
            break
        tried += 1
        losses = [p for p, _ in found]
        if not pieces or (len(losses) == len(pieces) and sum(losses) < sum(pieces)):
            trees = np.array([t for _, t in found]).reshape(len(splits), -1).mean(axis=0)
            best, pieces = parameters | {"trees": [max(1, round(t)) for t in trees.tolist()]}, losses
        if time.process_time() - start > seconds:
            break
    if y.size > some.size:
        order = np.random.default_rng(seed).permutation(y.size)
        test, train = order[: y.size // 10], order[y.size // 10 :]
        again = booster.watched(best, X[train], y[train], X[test], y[test], categories, seed)
        best["trees"] = [t for _, t in again]
    return best, sum(pieces) / len(splits), tried


def _share(y: Values, h: Values, level: float) -> float:
    """What one level adds to the mean loss."""
    return mean_pinball(y, h[:, None], np.array([level])) / LEVELS.size


# ----------------------------------------------------------------------------------------------------------- LightGBM
def _lightgbm_data(X: Values, y: Values, categories: Sequence[int], reference: Any = None) -> Any:
    from lightgbm import Dataset

    return Dataset(X, y, categorical_feature=list(categories), reference=reference, free_raw_data=False)


def _lightgbm_parameters(parameters: Parameters, level: float, seed: int) -> Parameters:
    own = {name: value for name, value in parameters.items() if name != "trees"}
    fixed = {"objective": "quantile", "alpha": level, "num_threads": 1, "seed": seed, "bagging_freq": 1}
    return own | fixed | {"verbosity": -1, "metric": "quantile", "feature_pre_filter": False}


def _lightgbm_watched(
    parameters: Parameters, X: Values, y: Values, X_out: Values, y_out: Values, categories: Sequence[int], seed: int
) -> Iterator[tuple[float, int]]:
    import lightgbm

    data = _lightgbm_data(X, y, categories)
    left_out = _lightgbm_data(X_out, y_out, categories, data)
    for place in ORDER:
        level = float(LEVELS[place])
        model = lightgbm.train(
            _lightgbm_parameters(parameters, level, seed),
            data,
            MOST_TREES,
            valid_sets=[left_out],
            callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
        )
        h = np.asarray(model.predict(X_out, num_iteration=model.best_iteration))
        yield _share(y_out, h, level), model.best_iteration


def _lightgbm_fit(
    parameters: Parameters, X: Values, y: Values, categories: Sequence[int], levels: Values, seed: int
) -> Answer:
    import lightgbm

    data = _lightgbm_data(X, y, categories)
    by_level = np.array(parameters["trees"])[np.argsort(ORDER)]  # of LEVELS, from the left
    trees = np.interp(levels, LEVELS, by_level).round().astype(int)
    models = [
        lightgbm.train(_lightgbm_parameters(parameters, float(level), seed), data, max(1, int(count)))
        for level, count in zip(levels, trees, strict=True)
    ]
    return lambda X, _: np.column_stack([model.predict(X) for model in models])


def _draw_lightgbm(rng: np.random.Generator) -> Parameters:
    return {
        "learning_rate": log_uniform(rng, 0.03, 0.2),
        "num_leaves": count_uniform(rng, 4, 127),
        "min_data_in_leaf": count_uniform(rng, 3, 100),
        "bagging_fraction": float(rng.uniform(0.5, 1.0)),
        "feature_fraction": float(rng.uniform(0.4, 1.0)),
        "lambda_l2": log_uniform(rng, 1e-3, 10.0),
        "min_data_per_group": count_uniform(rng, 5, 100),  # its default, 100, sees no category of a small table
        "cat_smooth": log_uniform(rng, 1.0, 30.0),
    }


# ----------------------------------------------------------------------------------------------------------- CatBoost
def _frame(X: Values, categories: Sequence[int]) -> Any:
    import pandas as pd

    return pd.DataFrame({k: X[:, k].astype(np.int64) if k in categories else X[:, k] for k in range(X.shape[1])})


def _catboost_model(parameters: Parameters, levels: Values, trees: int, categories: Sequence[int], seed: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(
        loss_function="MultiQuantile:alpha=" + ",".join(f"{level:g}" for level in levels),
        iterations=trees,
        cat_features=list(categories),
        thread_count=1,
        verbose=0,
        allow_writing_files=False,
        random_seed=seed,
        **{name: value for name, value in parameters.items() if name != "trees"},
    )


def _catboost_watched(
    parameters: Parameters, X: Values, y: Values, X_out: Values, y_out: Values, categories: Sequence[int], seed: int
) -> Iterator[tuple[float, int]]:
    model = _catboost_model(parameters, LEVELS, MOST_TREES, categories, seed)
    left_out = _frame(X_out, categories)
    model.fit(_frame(X, categories), y, eval_set=(left_out, y_out), early_stopping_rounds=PATIENCE)
    yield mean_pinball(y_out, np.asarray(model.predict(left_out))), int(model.get_best_iteration()) + 1


def _catboost_fit(
    parameters: Parameters, X: Values, y: Values, categories: Sequence[int], levels: Values, seed: int
) -> Answer:
    model = _catboost_model(parameters, levels, parameters["trees"][0], categories, seed).fit(_frame(X, categories), y)
    return lambda X, _: np.asarray(model.predict(_frame(X, categories)))


def _draw_catboost(rng: np.random.Generator) -> Parameters:
    return {
        "learning_rate": log_uniform(rng, 0.03, 0.3),
        "depth": int(rng.integers(4, 9)),
        "l2_leaf_reg": log_uniform(rng, 0.3, 30.0),
        "rsm": float(rng.uniform(0.4, 1.0)),
    }


BOOSTERS = {
    "lightgbm": Booster(
        "lightgbm", "lightgbm", {"learning_rate": 0.1}, _draw_lightgbm, _lightgbm_watched, _lightgbm_fit
    ),
    "catboost": Booster(
        "catboost", "catboost", {"learning_rate": 0.1}, _draw_catboost, _catboost_watched, _catboost_fit
    ),
}  # fmt: skip


# ------------------------------------------------------------------------------------------------ the others, and ours
def _default(parameters: Parameters, X: Values, y: Values, levels: Values, seed: int) -> Answer:
    from infinitask import InfiniteQuantileRegressor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = InfiniteQuantileRegressor().fit(X, y)
    return lambda X, levels: np.asarray(model.predict(X, levels))


MIDDLE: dict[str, Peer | Booster] = {
    "ignoring_x": PEERS["ignoring_x"],
    "itl_cv": PEERS["itl_cv"],
    "itl_default": Peer("infinitask", "infinitask", lambda n: {}, None, _default, any_level=True),
    "linear": PEERS["linear"],
    **BOOSTERS,
    "gp": PEERS["gp"],
    "gp_scores": PEERS["gp_scores"],
    "quantile_forest": PEERS["quantile_forest"],
    "xrfm": PEERS["xrfm"],
}
"""In the order in which they are run."""
