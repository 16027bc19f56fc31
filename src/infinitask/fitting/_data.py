"""The rows of a fit, in a canonical order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from infinitask._base.arrays import HostArray

FEWEST_DISTINCT_ROWS = 20
"""With fewer distinct rows, equal rows may be equal by chance and are not treated as copies of one observation."""


@dataclass(frozen=True, eq=False)
class Data:
    """The rows of a fit; :meth:`canonical` sorts them, which makes a fit independent of their order.

    Parameters
    ----------
    X : ndarray (n, d)
        Features, or rows of the Gram matrix.
    y : ndarray (n,), or (n, m) for separate targets at every node, or None
    weight : ndarray (n,)
        Nonnegative, summing to one.
    copies : ndarray (n,)
        The number of observations that each row represents, by default one. A leave-one-out error holds out one of
        them.
    share : ndarray (n, m) or None
        The weight of each target (n, m), in addition to the weights of rows and nodes. A target of weight 0 is missing,
        and its value is ignored. None: 1 everywhere.
    """

    X: HostArray
    y: HostArray | None
    weight: HostArray
    copies: HostArray = None  # type: ignore[assignment]  # becomes ones
    share: HostArray | None = None

    def __post_init__(self) -> None:
        if self.copies is None:
            object.__setattr__(self, "copies", np.ones(self.weight.size))
        if abs(float(np.sum(self.weight)) - 1.0) > 1e-6:
            raise ValueError(
                f"Data were given weights that sum to {float(np.sum(self.weight)):g}; they must sum to one. "
                "Data.canonical(X, y, weight) divides by the sum."
            )

    @property
    def pair_weight(self) -> HostArray:
        """Return the weight of each target, (n, 1), or (n, m) if every pair has its own; it need not sum to one."""
        weight = self.weight[:, None]
        return weight if self.share is None else weight * self.share

    @classmethod
    def canonical(
        cls, X: Any, y: Any = None, weight: Any = None, *, gram: bool = False, share: HostArray | None = None
    ) -> Data:
        """Drop rows of weight 0, merge equal rows, sort; without weights all rows are weighted equally.

        A row that occurs twice and a row of weight two define the same problem, and so do two orders of the rows. Here
        they also become the same numbers, which makes the fit bitwise equal. Rows of a Gram matrix are
        unchanged.
        """
        X, y = np.asarray(X, dtype=np.float64), None if y is None else np.asarray(y, dtype=np.float64)
        weight = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=np.float64)
        kept = weight > 0.0
        if X.ndim != 2 or kept.shape != X.shape[:1] or (y is not None and y.shape[:1] != kept.shape) or not kept.any():
            raise ValueError(
                f"Data of shapes {X.shape}, {None if y is None else y.shape} and {weight.shape} were given; expected X "
                "(n, d), y (n,) or (n, m) or None, and weights (n,), at least one of them above 0."
            )
        # an integer weight k and a row that is repeated k times are the same data
        whole = bool(np.all(weight == np.round(weight)) and np.max(weight) <= 1e6)
        copies = np.where(kept, weight if whole else 1.0, 0.0)
        if not np.all(kept):
            X, weight, copies = X[kept], weight[kept], copies[kept]
            y, share = (None if part is None else part[kept] for part in (y, share))
            if gram:
                X = X[:, kept]
        if not gram:
            table = np.column_stack([part for part in (X, y, share) if part is not None])
            # sort by weight last, which makes sums of weights independent of the order too
            order = np.lexsort((weight, *table.T[::-1]))
            table = table[order]
            fresh = np.ones(order.size, dtype=bool)
            fresh[1:] = np.any(table[1:] != table[:-1], axis=1)
            first = order[fresh]
            place = np.cumsum(fresh) - 1
            weight, copies = (np.bincount(place, weights=each[order]) for each in (weight, copies))
            X, y, share = (None if part is None else part[first] for part in (X, y, share))
        fraction, power = np.frexp(weight / np.max(weight))  # the sum cannot overflow
        # 36 of the 53 binary digits are kept: weights times a factor then are the same numbers, mostly
        weight = np.ldexp(np.round(np.ldexp(fraction, 36)), power - 36)
        return cls(X, y, weight / np.sum(weight), copies if gram else _observations(X, y is not None, copies), share)


def _observations(X: HostArray, targets: bool, copies: HostArray) -> HostArray:
    """Return the number of observations that each sorted row represents, given the number of its copies, (n,).

    A cell of a table of categories contains many observations. Copies of one row of numbers are one observation: if one
    copy were held out, the others would reveal its target, and duplicated rows would be interpolated. Repeating
    all rows, or doubling all weights, changes nothing.
    """
    copies = copies / max(int(np.gcd.reduce(copies.astype(np.int64))), 1)
    if np.all(copies == 1.0) or len(X) < FEWEST_DISTINCT_ROWS or X.shape[1] == 0:
        return copies
    if 2 * max(np.unique(column).size for column in X.T) < len(X):  # categories: rows are equal by chance
        return copies
    if targets and np.any(np.all(X[1:] == X[:-1], axis=1)):  # rows that differ in y alone are observations
        return copies
    return np.ones_like(copies)
