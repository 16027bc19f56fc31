"""Checking and sampling blocks of rows in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from infinitask._base.arrays import HostArray, namespace, take, to_host
from infinitask._base.validation import LARGEST
from infinitask.streaming._parts import Block

TIMES = (np.datetime64, np.timedelta64, date, timedelta)
TIMES_HINT = "a target is a number. Choose a unit, such as (y - y.min()) / np.timedelta64(1, 'D') for days."

MISSING = "has missing values; impute or drop such rows before they are read."


class Survey(NamedTuple):
    """The result of one pass over all rows."""

    n: int
    """The number of rows of positive weight."""
    mass: float
    """The sum of the weights."""
    mean: float
    """The weighted mean of all targets; 0 for labels."""
    X: HostArray
    """The features of a sample, (k, d)."""
    y: HostArray | None
    """Its targets: labels as given, all others as numbers."""
    weight: HostArray
    """(k,): the weight that each of its rows represents."""


class Names(NamedTuple):
    """The names of the columns of a block in error messages."""

    inputs: tuple[str, ...] | None = None
    y: str = "y"
    weight: str = "sample_weight"


UNNAMED = Names()


def checked(block: Any, place: str = "A block") -> Block:
    """Return a block as arrays, or raise an error that describes the problem.

    ``place`` is the name of the block in error messages, at their beginning.
    """
    if not isinstance(block, tuple) or not 1 <= len(block) <= 3:
        raise TypeError(f"{place} is {kind_of(block)}; a block is a tuple (X,), (X, y) or (X, y, weight) of arrays.")
    X, y, weight = (*block, None, None)[:3]
    if sparse.issparse(X):
        X = X.toarray()
    X = X if hasattr(X, "ndim") and hasattr(X, "shape") and not hasattr(X, "iloc") else np.asarray(X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # text is reported later
            X = X.astype(np.float64)
    if X.ndim != 2:
        raise ValueError(f"{place} has X of shape {tuple(X.shape)}; it must be a matrix (rows, inputs).")
    for name, values in (("y", y), ("weights", weight)):
        if values is not None and tuple(np.shape(values))[:1] != (X.shape[0],):
            raise ValueError(
                f"{place} has {X.shape[0]} rows of X and {name} of shape {tuple(np.shape(values))}; give one for each "
                "row."
            )
    if y is not None and len(np.shape(y)) == 2 and np.shape(y)[1] == 1:
        y = to_host(y)[:, 0]
    if weight is not None and len(np.shape(weight)) != 1:
        raise ValueError(f"{place} has weights of shape {tuple(np.shape(weight))}; give one number for each row.")
    return Block(X, y, weight)


def kind_of(value: Any) -> str:
    """The type of a value with its article: "an int", "a list"."""
    name = type(value).__name__
    return f"{'an' if name.lower().startswith(('a', 'e', 'i', 'o', 'u', 'nd')) else 'a'} {name}"


def _missing(values: HostArray) -> bool:
    """Whether any of the values is missing: None, NaN, or a missing value of pandas."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "fMm" and bool(np.any(values != values))
    return any(v is None or type(v).__name__ == "NAType" or bool(np.any(v != v)) for v in values.flat)


def _shown(value: Any) -> str:
    """Format a value as Python does, not NumPy."""
    if isinstance(value, TIMES):
        return str(value)
    return repr(value.item() if isinstance(value, np.generic) else value)


def _is_real(value: Any, text: bool) -> bool:
    """Whether a value is a real number; ``text``: or a string that contains one."""
    if isinstance(value, (*TIMES, complex)) or (isinstance(value, (str, bytes)) and not text):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _floats(name: str, values: HostArray, hint: str, *, text: bool) -> HostArray:
    """Return values in double precision; raise an error that ends with the hint if one is not a number."""
    if values.dtype.kind not in "fiub":
        if _missing(values):
            raise ValueError(f"{name} {MISSING}")
        odd = next((value for value in values.flat if not _is_real(value, text)), None)
        if odd is not None:
            hint = TIMES_HINT if isinstance(odd, TIMES) else hint
            raise ValueError(f"{name} holds {_shown(odd)}, which is not a real number; {hint}")
    return values.astype(np.float64, copy=False)


def _check_finite(name: str, values: Any) -> None:
    """Raise an error if values are not numbers, not finite, or too large."""
    if 0 in values.shape:
        return
    if isinstance(values, np.ndarray) and values.dtype.kind not in "fiub":
        if _missing(values):
            raise ValueError(f"{name} {MISSING}")
        raise ValueError(f"{name} holds values such as {_shown(values.flat[0])}; encode them as numbers first.")
    xp = namespace(values)
    largest = max(abs(float(xp.max(values))), abs(float(xp.min(values))))
    if not np.isfinite(largest):
        raise ValueError(f"{name} contains NaN or infinity; impute or drop such rows before they are read.")
    if largest > LARGEST:
        raise ValueError(
            f"{name} holds values of magnitude {largest:.1e}; beyond {LARGEST:.0e} sums of squares leave the range of "
            "floating point. Rescale them, for instance with StandardScaler."
        )


def _check_features(X: Any, names: tuple[str, ...] | None) -> None:
    """Raise an error that names the column if features are not numbers, not finite, or too large."""
    try:
        _check_finite("X", X)  # one check of all of them, on their device
    except ValueError:
        for column in range(int(X.shape[1])):
            known = f"Column {column} of X" if names is None else f"The column {names[column]!r}"
            _check_finite(known, X[:, column])


def _targets(y: HostArray, name: str) -> HostArray:
    """Return targets in double precision; raise an error if one is not a number, not finite, or too large."""
    found = _floats(name, y, "encode targets as numbers, or use a classifier for labels.", text=True)
    _check_finite(name, found)
    return found


def _labels(labels: HostArray, name: str) -> dict[Any, int]:
    """Return the number of rows per label; raise an error if a label is missing, or labels cannot be compared."""
    if labels.ndim != 1:
        raise ValueError(f"{name} of shape {labels.shape} was given; give one label for each row.")
    if labels.dtype.kind == "f":
        _check_finite(name, labels)
    elif _missing(labels):
        raise ValueError(f"{name} {MISSING}")
    try:
        return dict(zip(*np.unique(labels, return_counts=True), strict=True))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{name} holds labels of different types ({', '.join(kinds)}), which cannot be put in order; give all of "
            "them the same type."
        ) from None


def _weights(weight: Any, name: str) -> HostArray:
    """Return weights in double precision; raise an error if one is not a number, negative or not finite."""
    found = _floats(name, to_host(weight), "weights are numbers of at least 0.", text=False)
    if not np.all(np.isfinite(found)) or np.any(found < 0.0):
        raise ValueError(f"{name} holds numbers that are negative or not finite; weights are at least 0.")
    return found


def _check_mass(mass: float) -> None:
    if not np.isfinite(mass):
        raise ValueError(
            "The weights of all rows add up to more than the largest number (1.8e308); divide all of them by the same "
            "number."
        )


@contextmanager
def _told_of(place: str) -> Iterator[None]:
    """Make errors begin with the place."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


class BlockSample(NamedTuple):
    """Rows sampled with equal probabilities from some blocks, with statistics of these blocks.

    Every row gets a random key, and the rows with the smallest keys are kept: at most ``size`` in total, or half of it
    for each label. Hence the sample does not depend on the division into blocks.
    """

    place: str
    """The name of the block, or of the first of several, in error messages."""
    size: int
    given: tuple[bool, bool]
    """Whether there are targets and weights."""
    mass: float
    """The sum of the weights of all rows."""
    mean: float
    """The weighted mean of their targets; 0 for labels."""
    counts: dict[Any, int]
    """The number of all rows of each label; under None that of all rows if targets are not labels."""
    keys: HostArray
    X: HostArray
    y: HostArray | None
    weight: HostArray

    def smallest(self) -> BlockSample:
        """Keep the rows with the smallest keys, in their original order."""
        if len(self.counts) > 2:
            found = ", ".join(str(value) for value in self.counts)
            raise ValueError(
                f"y holds more than two classes ({found}, …); only two are supported where rows are visited in parts. "
                "Give InfiniteCostSensitiveClassifier arrays for more, with a smaller rank if the rows are very many."
            )
        kept = np.zeros(self.keys.size, dtype=bool)
        for label in self.counts:
            rows = np.arange(kept.size) if label is None else np.flatnonzero(self.y == label)
            most = self.size if label is None else self.size // 2
            kept[rows if rows.size <= most else rows[np.argpartition(self.keys[rows], most - 1)[:most]]] = True
        rows, y = np.flatnonzero(kept), None if self.y is None else self.y[kept]
        return self._replace(keys=self.keys[rows], X=to_host(take(self.X, rows, 0)), y=y, weight=self.weight[rows])


def sample_block(
    block: Block, place: str, rng: Any, size: int, *, labels: bool, targets: bool = True, names: Names = UNNAMED
) -> BlockSample:
    """Check a block and sample its rows; ``place`` is its name in errors. From a device only the sample is moved.

    Parameters
    ----------
    block : Block
    place : str
    rng : int, sequence of int or generator
    size : int
        The maximum number of rows to keep.
    labels : bool
        Whether targets are labels.
    targets : bool
        Whether targets are used; otherwise they may have any content.
    names : Names
    """
    with _told_of(place):
        X, y, weight = block.counted()
        y = None if y is None or not targets else to_host(y)
        if labels and y is None:
            raise ValueError("No y was given; this task needs targets: fit(X, y), or blocks (X, y).")
        given = y is not None, weight is not None
        weight = np.ones(int(X.shape[0])) if weight is None else _weights(weight, names.weight)
        with np.errstate(over="ignore"):
            mass, mean = float(np.sum(weight)), 0.0
        _check_mass(mass)
        _check_features(X, names.inputs)
        counts: dict[Any, int] = {None: weight.size}
        if y is not None and labels:
            counts = _labels(y, names.y)
        elif y is not None:
            y = _targets(y, names.y)
            mean = float(np.mean(np.average(y, axis=0, weights=weight / mass))) if mass > 0.0 else 0.0
        keys = np.random.default_rng(rng).random(weight.size)
        return BlockSample(place, size, given, mass, mean, counts, keys, X, y, weight).smallest()


def joined(one: BlockSample | None, other: BlockSample) -> BlockSample:
    """Join the sample of some blocks, None if there are none yet, with that of the following ones."""
    if one is None:
        return other
    with _told_of(other.place):
        if one.X.shape[1] != other.X.shape[1]:
            raise ValueError(
                f"A block with {other.X.shape[1]} inputs follows blocks with {one.X.shape[1]}; all need the same."
            )
        for what, before, now in zip(("y", "weights"), one.given, other.given, strict=True):
            if before is not now:
                raise ValueError(
                    f"Some blocks were given with {what} and some without; give all of them in the same way."
                )
        mass = one.mass + other.mass
        _check_mass(mass)
        mean = one.mean + (other.mean - one.mean) * (other.mass / mass) if mass > 0.0 else 0.0
        counts = dict(one.counts)
        for label, count in other.counts.items():
            counts[label] = counts.get(label, 0) + count
        y = None if one.y is None or other.y is None else np.concatenate([one.y, other.y])
        keys, X, weight = (
            np.concatenate([getattr(sample, k) for sample in (one, other)]) for k in ("keys", "X", "weight")
        )
        return BlockSample(one.place, one.size, one.given, mass, mean, counts, keys, X, y, weight).smallest()


def survey_of(sample: BlockSample | None) -> Survey:
    """Return the survey, with a sample of the rows in their original order."""
    n = 0 if sample is None else sum(sample.counts.values())
    if sample is None or n == 0:
        raise ValueError("No rows of positive weight were given; a fit needs at least one.")
    weight = sample.weight.copy()
    with np.errstate(over="ignore"):
        for label, count in sample.counts.items():
            rows = slice(None) if label is None else sample.y == label
            weight[rows] *= count / weight[rows].size
        _check_mass(float(np.sum(weight)))
    return Survey(n, sample.mass, sample.mean, sample.X, sample.y, weight)
