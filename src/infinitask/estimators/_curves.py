"""Curves as targets: convert y and θ to observations, and these to a grid with weights."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from infinitask._base.arrays import HostArray, row_blocks
from infinitask._base.validation import check_magnitude
from infinitask.estimators._sources import on_host
from infinitask.field import Field
from infinitask.losses import Loss, Squared

MOST_NODES = 1_000
"""Points are merged if there are more than this: the cost of a fit is rows × nodes."""

WIDEST_CELL = 0.1
"""An observation represents at most this fraction of Θ."""


class Curves(NamedTuple):
    """Observations of n curves, sorted by row and θ; no θ occurs twice in a row.

    Parameters
    ----------
    row : ndarray (N,) of int
    theta, value : ndarray (N,)
    n : int
    grid : ndarray (T,) or None
        The common grid as given; None: each row has its own.
    flat : bool
        Whether each row is a number, not a curve.

    Examples
    --------
    >>> import numpy as np
    >>> seen = Curves.of([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]], [0.0, 1.0, 2.0])
    >>> seen.row.tolist(), seen.theta.tolist()
    ([0, 0, 1, 1, 1], [0.0, 2.0, 0.0, 1.0, 2.0])
    """

    row: HostArray
    theta: HostArray
    value: HostArray
    n: int
    grid: HostArray | None = None
    flat: bool = False

    # ------------------------------------------------------------------------------------- construction
    @classmethod
    def of(cls, y: Any, theta: Any = None, default: Any = None, known: HostArray | None = None) -> Curves:
        """Return the observations of y at θ.

        Parameters
        ----------
        y : array (n, T), array (n,), or list of n arrays (k_i,), or (k_i, 2) with θ and values as columns
        theta : array (T,), array (n, T), list of n arrays (k_i,), or None
        default : array (T,) or None
            The common grid if ``theta`` is None.
        known : ndarray (T,) or None
            The points of a fit, if its predictions are scored on these curves: then no other grid is assumed.
        """
        values = _numbers_of("y", y)
        if isinstance(values, list) or (values.ndim == 3 and values.shape[2] == 2):
            return cls._of_lists(list(values), theta)
        if values.ndim not in (1, 2) or values.size == 0:
            raise ValueError(
                f"y of shape {values.shape} was given; it must be (n, T), one row for each curve, with NaN where there "
                "is no observation, or a list of n arrays, with theta as a list of n arrays."
            )
        one_each, n = values.ndim == 1, len(values)
        table = values.reshape(n, -1)
        T = table.shape[1]
        given = _grid_of(y, values.shape, None if one_each else default, known) if theta is None else theta
        grid = _numbers_of("theta", days(given))
        common = not isinstance(grid, list) and grid.shape == (T,) and not (one_each and theta is not None)
        if isinstance(grid, list) or not (common or grid.shape == values.shape):
            shape = f"a list of {len(grid)} arrays" if isinstance(grid, list) else f"theta of shape {grid.shape}"
            shapes = f"({T},), the common grid, or {values.shape}, a θ for each entry of y"
            if one_each:
                shapes = f"{values.shape} too, a θ for each row, and for curves y must be (n, T) or a list of n arrays"
            raise ValueError(f"y of shape {values.shape} was given with {shape}; theta must be {shapes}.")
        if common:
            _check_theta(grid, np.ones(T, dtype=bool))
        row, at = np.repeat(np.arange(n), T), np.broadcast_to(grid if common else grid.reshape(n, T), (n, T))
        flat = one_each and theta is None
        return cls(row, at.ravel(), values.ravel(), n, grid if common else None, flat)._cleaned()

    @classmethod
    def _of_lists(cls, values: list[HostArray], theta: Any) -> Curves:
        """Return the observations of a list of arrays, with points in ``theta`` or in the first column of each."""
        n = len(values)
        if theta is None:
            wrong = next((i for i, v in enumerate(values) if v.ndim != 2 or v.shape[1] != 2), None)
            if wrong is not None:
                raise ValueError(
                    f"y is a list of {n} arrays, and theta was not given; give theta as a list of {n} arrays of the "
                    f"same lengths, or each curve as an array (k, 2) with the columns θ and value. Row {wrong} has the "
                    f"shape {values[wrong].shape}."
                )
            at, values = [v[:, 0] for v in values], [v[:, 1] for v in values]
        else:
            given = _numbers_of("theta", days(theta))
            at = list(given) if isinstance(given, list) or given.ndim == 2 else []
            if len(at) != n:
                many = len(at) or "one array"
                raise ValueError(f"y is a list of {n} arrays and theta holds {many}; give one array for each row.")
        for i, (own, v) in enumerate(zip(at, values, strict=True)):
            if own.shape != v.shape or v.ndim != 1:
                raise ValueError(
                    f"Row {i} has {v.shape} values of y and {own.shape} of theta; each curve needs one θ "
                    "for each value, in one-dimensional arrays."
                )
        row = np.repeat(np.arange(n), [v.size for v in values])
        return cls(row, np.concatenate(at), np.concatenate(values), n)._cleaned()

    def _cleaned(self) -> Curves:
        """Return the curves without gaps, sorted, with values at the same θ of a row averaged."""
        if np.any(np.isinf(self.value)):
            i = int(self.row[np.argmax(np.isinf(self.value))])
            raise ValueError(
                f"Input y contains infinity, in row {i}; a value must be a number, and NaN where there is none."
            )
        seen = ~np.isnan(self.value)
        _check_theta(self.theta, seen)
        counts = np.bincount(self.row[seen], minlength=self.n)
        if not np.all(counts):
            i = int(np.argmin(counts))
            raise ValueError(
                f"Input y contains NaN only in row {i}: a curve without any observation says nothing. Leave out such "
                f"rows of X and y, here {int(np.sum(counts == 0))} of {self.n}."
            )
        order = np.flatnonzero(seen)
        order = order[np.lexsort((self.value[order], self.theta[order], self.row[order]))]
        return self._replace(row=self.row[order], theta=self.theta[order], value=self.value[order])._averaged()

    def _averaged(self) -> Curves:
        """Return the mean of all values at each θ of a row; the order is kept."""
        fresh = np.ones(self.row.size, dtype=bool)
        fresh[1:] = (self.row[1:] != self.row[:-1]) | (self.theta[1:] != self.theta[:-1])
        place = np.cumsum(fresh) - 1
        mean = np.bincount(place, weights=self.value) / np.bincount(place)
        return self._replace(row=self.row[fresh], theta=self.theta[fresh], value=mean)

    # ------------------------------------------------------------------------------------------ derived
    def only(self, kept: HostArray) -> Curves:
        """Return the rows for which ``kept``, (n,) of bool, is True, renumbered."""
        seen, number = kept[self.row], np.cumsum(kept) - 1
        row = number[self.row[seen]]
        return self._replace(row=row, theta=self.theta[seen], value=self.value[seen], n=int(np.sum(kept)))

    def merged(self, most: int) -> Curves:
        """Merge to at most ``most`` points: the points in each of ``most`` equal parts of Θ become their mean."""
        points = np.unique(self.theta)
        if points.size <= most:
            return self
        low, high = points[0], points[-1]
        part = np.minimum((most * ((points - low) / (high - low))).astype(np.intp), most - 1)
        count = np.bincount(part, minlength=most)
        means = np.bincount(part, weights=points, minlength=most) / np.maximum(count, 1)
        means[part[0]], means[part[-1]] = low, high  # the ends of Θ do not move
        theta = means[part[np.searchsorted(points, self.theta)]]
        return self._replace(theta=theta)._averaged()

    def shares(self) -> HostArray:
        """Return c, (N,): the fraction of Θ that each observation represents, half way to its neighbours in the row.

        It is at most :data:`WIDEST_CELL`, or the widest part of all points. The first and the last observation of a row
        represent as much outside as inside.
        """
        points = np.unique(self.theta)
        if points.size == 1:
            return np.ones(self.row.size)
        whole = _cells(points, np.zeros(points.size, dtype=np.intp))
        total = float(np.sum(whole))
        widest = max(WIDEST_CELL * total, float(np.max(whole)))
        return np.asarray(np.minimum(_cells(self.theta, self.row), widest) / total)


class Design(NamedTuple):
    """Curves on a grid: targets (n, m) and their weights.

    Parameters
    ----------
    nodes, weights : ndarray (m,)
        w, summing to one.
    y : ndarray (n, m)
        0 where there is no observation.
    share : ndarray (n, m) or None
        v: an observation has the weight ω_i w_j v_ij = ω_i c_ij; None: 1 everywhere, and c_ij = w_j.
    """

    nodes: HostArray
    weights: HostArray
    y: HostArray
    share: HostArray | None

    @classmethod
    def of(cls, curves: Curves, omega: HostArray, most: int | None) -> Design:
        """Return the grid of curves with positive row weights ω (n,), with at most ``most`` nodes."""
        check_magnitude("y", curves.value)
        curves = curves.merged(MOST_NODES if most is None else most)
        nodes, node = np.unique(curves.theta, return_inverse=True)
        y, c = np.zeros((curves.n, nodes.size)), np.zeros((curves.n, nodes.size))
        y[curves.row, node], c[curves.row, node] = curves.value, curves.shares()
        if np.all(c > 0.0):
            return cls(nodes, c[0] / np.sum(c[0]), y, None)
        # sums of sorted numbers do not depend on the order of the rows
        mass = np.sum(np.sort((omega / np.sum(omega))[:, None] * c, axis=0), axis=0)
        total = float(np.sum(mass))
        return cls(nodes, mass / total, y, c * (total / mass))


def own_points(theta: Any, n: int) -> list[HostArray] | None:
    """Return θ of a prediction as n arrays of points, one for each row; None if all rows share one list."""
    if isinstance(theta, np.ndarray) and theta.ndim == 2:
        theta = list(theta)
    if not isinstance(theta, (list, tuple)) and getattr(getattr(theta, "dtype", None), "kind", "f") != "O":
        return None
    if len(theta) == 0 or all(np.ndim(own) == 0 for own in theta):
        return None
    points = [np.asarray(on_host(own), dtype=np.float64) for own in theta]
    if len(points) != n:
        raise ValueError(
            f"theta is a list of {len(points)} arrays for {n} rows of X; give one array of points for each row, or one "
            "array for all."
        )
    wrong = next((own for own in points if own.ndim != 1 or own.size == 0), None)
    if wrong is not None:
        raise ValueError(f"theta holds an array of shape {wrong.shape}; the points of a row must be a list of numbers.")
    return points


def _cells(theta: HostArray, row: HostArray) -> HostArray:
    """Return half the distance between the neighbours of each point in its row; ∞ if a row has no other point."""
    gap = np.where(row[1:] == row[:-1], np.diff(theta), np.nan)
    left, right = np.concatenate([[np.nan], gap]), np.concatenate([gap, [np.nan]])
    left, right = np.where(np.isnan(left), right, left), np.where(np.isnan(right), left, right)
    return np.where(np.isnan(left), np.inf, 0.5 * left + 0.5 * right)


def days(points: Any) -> Any:
    """Convert dates of any resolution to days since the beginning of 1970; return everything else unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> days(np.array(["1970-01-03", "1971-01-01"], dtype="datetime64[s]")).tolist()
    [2.0, 365.0]
    >>> days([0.5, 1.0])
    [0.5, 1.0]
    """
    if hasattr(points, "to_numpy") and not hasattr(getattr(points, "dtype", None), "kind"):  # of Polars or Arrow
        host = points.to_numpy()
        return days(host) if host.dtype.kind == "M" else points
    first = points
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    if getattr(getattr(first, "dtype", None), "kind", None) != "M" and not isinstance(first, date):
        return points
    if isinstance(points, (list, tuple)) and np.ndim(points[0]) > 0:
        return [days(own) for own in points]
    found = np.asarray(points, dtype="datetime64[us]")
    return (found - np.datetime64(0, "us")) / np.timedelta64(1, "D")


def _grid_of(y: Any, shape: tuple[int, ...], default: Any, known: HostArray | None) -> Any:
    """The common grid of a y (n, T) or (n,) if none was given."""
    count = math.prod(shape[1:])
    named = None if default is not None else _named(y)
    if known is not None and known.size == count and (named is None or np.array_equal(named, np.arange(count))):
        return known  # 0, 1, 2, … are the names of columns that have none
    if named is not None:
        return named
    if default is not None:
        return default
    if known is not None:
        raise ValueError(
            f"y of shape {shape} was given without theta, and the model was fitted to curves, with theta_ of "
            f"{known.size} points; give theta, the points at which these values were seen."
        )
    return np.linspace(0.0, 1.0, count)


def _named(table: Any) -> HostArray | None:
    """The names of the columns of a table if they are numbers or dates."""
    names = _names_of(table)
    try:
        return None if names is None else np.array([float(name) for name in days(names)])
    except (TypeError, ValueError):
        return None


def _names_of(table: Any) -> list[Any] | None:
    """The names of the columns of a table; None if it is not a table."""
    names = getattr(table, "column_names", None)  # the columns of an Arrow table are its values
    names = getattr(table, "columns", None) if names is None else names
    return None if names is None or callable(names) else list(names)


def _check_theta(theta: HostArray, seen: HostArray) -> None:
    if not np.all(np.isfinite(theta[seen])):
        raise ValueError("theta contains NaN or infinity where y has a value; every observation needs its point θ.")
    if np.any(seen):
        check_magnitude("theta", theta[seen], smallest=0.0)


def _numbers_of(name: str, values: Any) -> HostArray | list[HostArray]:
    """``values`` as an array of floats, or as a list of arrays if lengths differ."""
    found = on_host(values)
    if _names_of(found) is not None and hasattr(found, "iloc"):
        found = found.to_numpy(dtype=np.float64, na_value=np.nan)
    elif hasattr(found, "to_numpy"):
        found = found.to_numpy()
    found = found if isinstance(found, (list, tuple)) else np.asarray(found)
    if getattr(found, "dtype", np.dtype(float)).kind == "c":
        raise ValueError(f"Complex data not supported: {name} holds complex numbers; it must be real.")
    with suppress(TypeError, ValueError):
        return np.asarray(found, dtype=np.float64)
    with suppress(TypeError, ValueError):  # arrays of several lengths
        parts = [np.asarray(on_host(part), dtype=np.float64) for part in found]
        if parts and all(part.ndim > 0 for part in parts):
            return parts
    raise ValueError(
        f"{name} was given as {type(values).__name__} that does not hold numbers only; it must be an array of "
        "numbers, with NaN for gaps, or a list of such arrays."
    )


# --------------------------------------------------------------------------------------------- values
def values_at(field: Field, left: HostArray, row: HostArray, tasks: HostArray, order: int = 0) -> HostArray:
    """h, or its derivative, of row ``row[k]`` at task ``tasks[k]``: (N,).

    Parameters
    ----------
    field : Field
    left : ndarray (n, s)
        Cᵀφ(x) of all rows.
    row : ndarray (N,) of int
    tasks : ndarray (N, 1)
    order : int
    """
    values = np.empty(row.size)
    for here in row_blocks(row.size, left.shape[1]):
        some, at = np.unique(tasks[here, 0], return_inverse=True)
        psi, bias = field.psi(some[:, None], order), field.bias(some[:, None], order)
        values[here] = np.einsum("ks,ks->k", left[row[here]], psi[at]) + bias[at]
    return values


def one_curve_at(field: Field, left: HostArray, tasks: HostArray) -> HostArray:
    """The curve of one Cᵀφ(x), (s,), at tasks (N, 1): (N,)."""
    return values_at(field, left[None], np.zeros(len(tasks), dtype=np.intp), tasks)


def best_level(loss: Loss, r: HostArray, weight: HostArray) -> float:
    """The constant with the smallest loss of r."""
    if isinstance(loss, Squared):
        return float(weight @ r) / float(np.sum(weight))
    low, high = float(np.min(r)), float(np.max(r))
    if not high > low:
        return low
    nodes = np.zeros(1)

    def lost(part: float) -> float:
        return float(weight @ loss.value(nodes, r[:, None], np.full((r.size, 1), low + part * (high - low)))[:, 0])

    # relative to the range, because the search does not know the units of r
    found = minimize_scalar(lost, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-9})
    return low + float(found.x) * (high - low)
