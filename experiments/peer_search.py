"""What a peer is, and the random search over its parameters that all of them have."""

from __future__ import annotations

import functools
import importlib
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, ShuffleSplit

from .tuned import LEVELS, pinball

__all__ = ["Answer", "Parameters", "Peer", "Values", "count_uniform", "fitted", "log_uniform", "parts", "tune"]

Values = NDArray[np.float64]
Parameters = dict[str, Any]
Answer = Callable[[Values, Values], Values]
Loss = Callable[[Values, Values], float]

HELD_OUT = 0.2
"""The share of the rows that one hold-out has."""


@dataclass(frozen=True, eq=False)
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
    last : dict
        Parameters that only the last fit has.
    """

    package: str
    module: str
    defaults: Callable[[int], Parameters]
    draw: Callable[[np.random.Generator, int], Parameters] | None
    fit: Callable[[Parameters, Values, Values, Values, int], Answer]
    any_level: bool = False
    last: Parameters = field(default_factory=dict)

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


def parts(n: int, folds: int, seed: int) -> list[tuple[NDArray[np.int_], NDArray[np.int_]]]:
    """The training and left-out rows of each fold; of one hold-out where ``folds`` is 1."""
    if folds == 1:
        return list(ShuffleSplit(1, test_size=HELD_OUT, random_state=seed).split(np.empty(n)))
    return list(KFold(folds, shuffle=True, random_state=seed).split(np.empty(n)))


def tune(
    peer: Peer,
    X: Values,
    y: Values,
    *,
    evaluations: int,
    folds: int,
    seed: int,
    levels: Values = LEVELS,
    loss: Loss = pinball,
    seconds: float = np.inf,
) -> tuple[Parameters, float | None]:
    """The parameters with the smallest left-out loss, and that loss: the defaults, or random ones.

    Parameters
    ----------
    peer : Peer
    X, y : arrays
    evaluations : int
        Parameters that are tried, the defaults first.
    folds : int
        1: one hold-out.
    seed : int
    levels : array
        At which the answers are compared.
    loss : callable
        y and the answers → a number.
    seconds : float
        No further parameters are tried after so many seconds of processor time.
    """
    best, smallest = peer.defaults(y.size), np.inf
    if peer.draw is None:
        return best, None
    rng, splits, start = np.random.default_rng(seed), parts(y.size, folds, seed), time.process_time()
    for number in range(evaluations):
        parameters = peer.draw(rng, y.size) if number else best
        total = 0.0
        for train, test in splits:
            h = fitted(peer, parameters, X[train], y[train], levels, seed)(X[test], levels)
            total += loss(y[test], h) / len(splits)
            if not total < smallest:  # losses are positive: the remaining folds cannot make it the best
                break
        else:
            best, smallest = parameters, total
        if time.process_time() - start > seconds:
            break
    return best, smallest


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """A number in [low, high] whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def count_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    """An integer in [low, high], log-uniform: small ones are more frequent."""
    return int(log_uniform(rng, low, high + 1 - 1e-9))
