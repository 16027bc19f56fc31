"""Today's alternatives for decisions between two classes: tuned, calibrated, and with thresholds for each cost.

A peer gives real scores. Its parameters are those with the smallest left-out log-likelihood loss among the defaults and
random ones; for every setting the left-out scores first become log-odds by a logistic fit (Platt), so that scores
without units, such as those of an SVC, are compared in the same way. The last fit is to all rows. Its probabilities and
thresholds follow from the left-out scores of the chosen parameters.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from .tuned import Values

__all__ = ["PEERS", "Decisions", "Peer", "best_threshold", "decisions", "mean_cost"]

Labels = NDArray[np.int_]
Parameters = dict[str, Any]
Decisions = Callable[[Values, float], dict[str, Labels]]
"""X and the cost of a missed positive → the decisions, by the way in which the threshold was set."""

ALL_BUT_FREE = 1e6
"""C of a logistic fit of two numbers: no ridge to speak of."""


def mean_cost(y: Any, decision: Any, missed: float) -> float:
    """``missed`` for each positive that is decided 0, 1 for each negative that is decided 1; mean over rows."""
    y, decision = np.asarray(y), np.asarray(decision)
    return float(np.mean(missed * ((y == 1) & (decision != 1)) + ((y != 1) & (decision == 1))))


@dataclass(frozen=True)
class Peer:
    """A classifier that gives scores.

    Parameters
    ----------
    label, module : str
        For the page, and by which it is imported.
    draw : callable
        Generator, rows → parameters.
    make : callable
        Parameters → an estimator; none: the defaults.
    score : callable
        A fitted estimator, X → scores (n,).
    """

    label: str
    module: str
    draw: Callable[[np.random.Generator, int], Parameters]
    make: Callable[[Parameters], Any]
    score: Callable[[Any, Values], Values]

    def load(self) -> None:
        """Import the package, or say how to get it."""
        try:
            importlib.import_module(self.module)
        except ImportError:
            raise RuntimeError(f"{self.module} is not installed; `make peers` installs it.") from None


def decisions(peer: Peer, X: Values, y: Labels, *, evaluations: int, folds: int, seed: int) -> Decisions:
    """Tune, calibrate and fit a peer.

    Parameters
    ----------
    peer : Peer
    X : array (n, d)
    y : array (n,)
        0 and 1.
    evaluations : int
        Settings that are compared: the defaults, and random ones.
    folds : int
    seed : int

    Returns
    -------
    callable
        "calibrated": an alarm where the probability is above 1/(1 + missed). "tuned": an alarm above the threshold with
        the smallest cost of the left-out scores.
    """
    rng = np.random.default_rng(seed)
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(X, y))
    best, smallest, left_out = {}, np.inf, np.zeros(y.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(evaluations):
            parameters = peer.draw(rng, y.size) if number else {}
            scores = np.empty(y.size)
            for train, test in splits:
                scores[test] = peer.score(peer.make(parameters).fit(X[train], y[train]), X[test])
            loss = log_loss(y, _platt(scores, y).predict_proba(scores[:, None])[:, 1])
            if loss < smallest:
                best, smallest, left_out = parameters, loss, scores
        model = peer.make(best).fit(X, y)
    platt = _platt(left_out, y)

    def decide(X: Values, missed: float) -> dict[str, Labels]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scores = peer.score(model, X)
        probability = platt.predict_proba(scores[:, None])[:, 1]
        return {
            "calibrated": (probability > 1.0 / (1.0 + missed)).astype(int),
            "tuned": (scores > best_threshold(left_out, y, missed)).astype(int),
        }

    return decide


def _platt(scores: Values, y: Labels) -> Any:
    """Log-odds as a linear function of scores."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=ALL_BUT_FREE)).fit(scores[:, None], y)


def best_threshold(scores: Values, y: Labels, missed: float) -> float:
    """The threshold above which an alarm costs least: midway between two scores, ±∞ where all or none are alarms.

    Examples
    --------
    >>> best_threshold(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1]), 10.0)
    0.5
    >>> best_threshold(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0, 1, 0, 1]), 0.5)
    2.5
    """
    values, place = np.unique(scores, return_inverse=True)
    passed = np.bincount(place, weights=np.where(y == 1, missed, -1.0))  # cost of a threshold above one more value
    costs = np.append(0.0, np.cumsum(passed))
    edges = np.concatenate([[-np.inf], 0.5 * (values[1:] + values[:-1]), [np.inf]])
    return float(edges[np.argmin(costs)])


# ------------------------------------------------------------------------------------------------------- the peers
def _log(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _count(rng: np.random.Generator, low: int, high: int) -> int:
    return int(_log(rng, low, high + 1 - 1e-9))


def _log_odds(model: Any, X: Values) -> Values:
    p = np.clip(model.predict_proba(X)[:, 1], 1e-9, 1.0 - 1e-9)
    return np.asarray(np.log(p / (1.0 - p)))


def _decision(model: Any, X: Values) -> Values:
    return np.asarray(model.decision_function(X))


def _scaled(make: Callable[[Parameters], Any]) -> Callable[[Parameters], Any]:
    return lambda parameters: make_pipeline(StandardScaler(), make(parameters))


def _lightgbm(parameters: Parameters) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, subsample_freq=1, verbosity=-1, **parameters)


PEERS: dict[str, Peer] = {
    "logistic": Peer(
        "logistic regression",
        "sklearn.linear_model",
        lambda rng, n: {"C": _log(rng, 1e-4, 1e2)},
        _scaled(lambda parameters: LogisticRegression(max_iter=2000, **parameters)),
        _decision,
    ),
    "svc": Peer(
        "SVC",
        "sklearn.svm",
        lambda rng, n: {
            "C": _log(rng, 1e-2, 1e2),
            "gamma": _log(rng, 1e-4, 1e-1),
            "class_weight": [None, "balanced"][int(rng.integers(2))],
        },
        _scaled(lambda parameters: SVC(cache_size=500, **parameters)),
        _decision,
    ),
    "lightgbm": Peer(
        "LightGBM",
        "lightgbm",
        lambda rng, n: {
            "n_estimators": _count(rng, 30, 400),
            "learning_rate": _log(rng, 0.02, 0.2),
            "num_leaves": _count(rng, 2, 32),
            "min_child_samples": _count(rng, 3, max(20, n // 20)),
            "subsample": float(rng.uniform(0.5, 1.0)),
            "colsample_bytree": float(rng.uniform(0.3, 1.0)),
            "reg_lambda": _log(rng, 1e-3, 10.0),
        },
        _lightgbm,
        _log_odds,
    ),
}
