"""What is sampled from blocks of rows in one pass, and what is checked there."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import date, timedelta
from typing import Any, NamedTuple, final

import numpy as np
from scipy import sparse

from infinitask._base.arrays import HostArray, namespace, take, to_host
from infinitask._base.validation import LARGEST
from infinitask.streaming._parts import Block

TIMES = (np.datetime64, np.timedelta64, date, timedelta)
TIMES_HINT = "a target is a number. Choose a unit, such as (y - y.min()) / np.timedelta64(1, 'D') for days."

NOT_FINITE = "contains NaN or infinity; impute or drop such rows before they are read."
MISSING = "has missing values; impute or drop such rows before they are read."


class Survey(NamedTuple):
    """What one pass over all rows tells."""

    n: int
    """The number of rows of positive weight."""
    mass: float
    """The sum of the weights."""
    mean: float
    """The weighted mean of all targets; 0 for labels."""
    X: HostArray
    """Features of a sample, (k, d)."""
    y: HostArray | None
    """Its targets: labels as they were given, all others as numbers."""
    weight: HostArray
    """(k,): how much weight of all rows each of them stands for."""


class Names(NamedTuple):
    """What errors call the columns of a block."""

    inputs: tuple[str, ...] | None = None
    y: str = "y"
    weight: str = "sample_weight"


UNNAMED = Names()


def checked(block: Any, place: str = "A block") -> Block:
    """A block as arrays, or an error that says what is wrong with it.

    ``place``: what errors call it; they begin with it.
    """
    if not isinstance(block, tuple) or not 1 <= len(block) <= 3:
        raise TypeError(f"{place} is {kind_of(block)}; a block is a tuple (X,), (X, y) or (X, y, weight) of arrays.")
    X, y, weight = (*block, None, None)[:3]
    if sparse.issparse(X):
        X = X.toarray()
    X = X if hasattr(X, "ndim") and hasattr(X, "shape") and not hasattr(X, "iloc") else np.asarray(X)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # text is told later
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
    """What a value is: "an int", "a list"."""
    name = type(value).__name__
    return f"{'an' if name.lower().startswith(('a', 'e', 'i', 'o', 'u', 'nd')) else 'a'} {name}"


def _missing(values: HostArray) -> bool:
    """Whether one of some values is missing: None, NaN, or what pandas writes for them."""
    if values.dtype.kind != "O":
        return values.dtype.kind in "fMm" and bool(np.any(values != values))
    return any(v is None or type(v).__name__ == "NAType" or bool(np.any(v != v)) for v in values.flat)


def _shown(value: Any) -> str:
    """A value as Python writes it, not NumPy."""
    if isinstance(value, TIMES):
        return str(value)
    return repr(value.item() if isinstance(value, np.generic) else value)


def _is_real(value: Any, text: bool) -> bool:
    """Whether a value is a real number; ``text``: or the text of one."""
    if isinstance(value, (*TIMES, complex)) or (isinstance(value, (str, bytes)) and not text):
        return False
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _floats(name: str, values: HostArray, hint: str, *, text: bool) -> HostArray:
    """Values in double precision; an error where one is no number, which ends with the hint."""
    if values.dtype.kind not in "fiub":
        if _missing(values):
            raise ValueError(f"{name} {MISSING}")
        odd = next((value for value in values.flat if not _is_real(value, text)), None)
        if odd is not None:
            hint = TIMES_HINT if isinstance(odd, TIMES) else hint
            raise ValueError(f"{name} holds {_shown(odd)}, which is not a real number; {hint}")
    return values.astype(np.float64, copy=False)


def _fault(values: Any) -> str:
    """What is wrong with values that should be finite numbers, as the end of a sentence; empty if nothing is."""
    if 0 in values.shape:
        return ""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "fiub":
        example = _shown(values.flat[0])
        return MISSING if _missing(values) else f"holds values such as {example}; encode them as numbers first."
    xp = namespace(values)
    largest = max(abs(float(xp.max(values))), abs(float(xp.min(values))))
    if not np.isfinite(largest):
        return NOT_FINITE
    if largest > LARGEST:
        return (
            f"holds values of magnitude {largest:.1e}; beyond {LARGEST:.0e} sums of squares leave the range of "
            "floating point. Rescale them, for instance with StandardScaler."
        )
    return ""


def _check_inputs(X: Any, names: tuple[str, ...] | None) -> None:
    """An error that names the column where features are no numbers, not finite, or too large."""
    if not _fault(X):  # one look at all of them, where they live
        return
    for column in range(int(X.shape[1])):
        fault = _fault(X[:, column])
        if fault:
            known = f"Column {column} of X" if names is None else f"The column {names[column]!r}"
            raise ValueError(f"{known} {fault}")


def _targets(y: HostArray, counted: HostArray, name: str) -> HostArray:
    """Targets in double precision; an error where one that counts is no number, not finite, or too large."""
    found = _floats(name, y[counted], "encode targets as numbers, or use a classifier for labels.", text=True)
    fault = _fault(found)
    if fault:
        raise ValueError(f"{name} {fault}")
    if np.all(counted):
        return found
    whole = np.full(y.shape, np.nan)  # rows of weight 0 may hold anything
    whole[counted] = found
    return whole


def _labels(y: HostArray, counted: HostArray, name: str) -> HostArray:
    """The different labels of rows that count; an error where one is missing, or they cannot be compared."""
    if y.ndim != 1:
        raise ValueError(f"{name} of shape {y.shape} was given; give one label for each row.")
    labels = y[counted]
    fault = _fault(labels) if labels.dtype.kind == "f" else MISSING if _missing(labels) else ""
    if fault:
        raise ValueError(f"{name} {fault}")
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ValueError(
            f"{name} holds labels of different types ({', '.join(kinds)}), which cannot be put in order; give all of "
            "them the same type."
        ) from None


def _weights(block: Block, name: str) -> HostArray:
    """The weights of a block, (k,); an error where one is no number, negative or not finite."""
    if block.weight is None:
        return np.ones(int(block.X.shape[0]))
    weight = _floats(name, to_host(block.weight), "weights are numbers of at least 0.", text=False)
    if not np.all(np.isfinite(weight)) or np.any(weight < 0.0):
        raise ValueError(f"{name} holds numbers that are negative or not finite; weights are at least 0.")
    return weight


def _check_mass(mass: float) -> None:
    if not np.isfinite(mass):
        raise ValueError(
            "The weights of all rows add up to more than the largest number (1.8e308); divide all of them by the same "
            "number."
        )


class _Drawn(NamedTuple):
    """Rows that were drawn, in the order of their keys."""

    keys: HostArray
    positions: HostArray
    X: HostArray
    y: HostArray | None
    weight: HostArray

    def only(self, rows: HostArray) -> _Drawn:
        return _Drawn(*(None if part is None else part[rows] for part in self))  # type: ignore[arg-type]

    def after(self, other: _Drawn) -> _Drawn:
        """The rows of ``other``, then these."""
        pairs = zip(other, self, strict=True)
        return _Drawn(*(None if a is None or b is None else np.concatenate([a, b]) for a, b in pairs))  # type: ignore[arg-type]


@final
class Draw:
    """Draws rows with equal chances while they pass by; the draw does not depend on how they are cut into blocks.

    Every row gets a random key, and the rows with the smallest keys are kept.

    Parameters
    ----------
    size : int
        The most rows that are kept; for labels this many in all, shared between them.
    seed : int
    labels : bool
    targets : bool
        Whether targets are looked at; else they may be anything.
    """

    def __init__(self, size: int, seed: Any, *, labels: bool, targets: bool = True) -> None:
        self.size, self.labels, self.targets = size, labels, targets
        self.rng = np.random.default_rng(seed)
        self.n, self.mass, self.mean, self.inputs = 0, 0.0, 0.0, -1
        self.given: tuple[bool, bool] | None = None
        self.found: dict[Any, _Drawn] = {}
        self.counts: dict[Any, int] = {}
        self.seen = 0

    def take(self, block: Block, names: Names = UNNAMED, place: str = "A block") -> None:
        """Look at some rows, which errors call ``place``; of those on a device only the ones drawn are moved."""
        try:
            self._take(block, names)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from None

    def _take(self, block: Block, names: Names) -> None:
        n, inputs = (int(size) for size in block.X.shape)
        y = None if block.y is None or not self.targets else to_host(block.y)
        self._check_alike(inputs, (y is not None, block.weight is not None))
        if self.labels and y is None:
            raise ValueError("No y was given; this task needs targets: fit(X, y), or blocks (X, y).")
        weight = _weights(block, names.weight)
        keys, positions, counted = self.rng.random(n), self.seen + np.arange(n), weight > 0.0
        self.seen += n
        self.n += int(np.count_nonzero(counted))
        with np.errstate(over="ignore"):
            mass, mean = float(np.sum(weight)), 0.0
        _check_mass(mass)
        _check_inputs(block.X if np.all(counted) else block.X[np.flatnonzero(counted)], names.inputs)
        labels: Iterable[Any] = [None]
        if y is not None and self.labels:
            labels = _labels(y, counted, names.y)
        elif y is not None:
            y = _targets(y, counted, names.y)
            if mass > 0.0:
                mean = float(np.mean(np.average(y[counted], axis=0, weights=weight[counted] / mass)))
        self._count(mass, mean)
        for label in labels:
            rows = np.flatnonzero(counted if label is None else counted & (y == label))
            self._merge(label, block.X, y, rows, keys, positions, weight)

    def _count(self, mass: float, mean: float) -> None:
        """Count rows of this weight, whose targets have this mean."""
        self.mass += mass
        _check_mass(self.mass)
        if mass > 0.0:
            self.mean += (mean - self.mean) * (mass / self.mass)

    def _check_alike(self, inputs: int, given: tuple[bool, bool]) -> None:
        """An error where a block differs from those before it, in its columns or in having targets and weights."""
        if self.inputs not in (-1, inputs):
            raise ValueError(f"A block with {inputs} inputs follows blocks with {self.inputs}; all need the same.")
        for what, before, now in zip(("y", "weights"), self.given or given, given, strict=True):
            if before is not now:
                raise ValueError(
                    f"Some blocks were given with {what} and some without; give all of them in the same way."
                )
        self.inputs, self.given = inputs, given

    def _merge(
        self, label: Any, X: Any, y: Any, rows: HostArray, keys: HostArray, positions: HostArray, weight: HostArray
    ) -> None:
        """Take in those of some rows whose keys are among the smallest."""
        self.counts[label] = self.counts.get(label, 0) + rows.size
        if len(self.counts) > 2:
            found = ", ".join(str(value) for value in self.counts)
            raise ValueError(
                f"y holds more than two classes ({found}, …); only two are supported where rows are visited in parts. "
                "Give InfiniteCostSensitiveClassifier arrays for more, with a smaller rank if the rows are very many."
            )
        most = self.size // 2 if self.labels else self.size
        old = self.found.get(label)
        if old is not None and old.keys.size >= most:  # few rows of a later block are among the smallest
            rows = rows[keys[rows] < old.keys[-1]]
        if rows.size > most:
            rows = rows[np.argpartition(keys[rows], most - 1)[:most]]
        fresh = _Drawn(
            keys[rows], positions[rows], to_host(take(X, rows, 0)), None if y is None else y[rows], weight[rows]
        )
        both = fresh if old is None else fresh.after(old)
        self.found[label] = both.only(np.argsort(both.keys, kind="stable")[:most])

    def join(self, other: Draw) -> None:
        """Take over what another draw has found in the rows that follow."""
        if other.given is not None:
            self._check_alike(other.inputs, other.given)
        for label, drawn in other.found.items():
            every = np.arange(drawn.keys.size)
            self._merge(label, drawn.X, drawn.y, every, drawn.keys, self.seen + drawn.positions, drawn.weight)
            self.counts[label] += other.counts[label] - drawn.keys.size  # those that were not drawn
        self.n, self.seen = self.n + other.n, self.seen + other.seen
        self._count(other.mass, other.mean)

    def survey(self) -> Survey:
        """What was seen, with the rows drawn in the order in which they came."""
        if self.n == 0:
            raise ValueError("No rows of positive weight were given; a fit needs at least one.")
        with np.errstate(over="ignore"):
            drawn = [
                part._replace(weight=part.weight * (self.counts[k] / part.keys.size)) for k, part in self.found.items()
            ]
            _check_mass(float(sum(np.sum(part.weight) for part in drawn)))
        whole = drawn[0] if len(drawn) == 1 else drawn[1].after(drawn[0])
        whole = whole.only(np.argsort(whole.positions, kind="stable"))
        return Survey(self.n, self.mass, self.mean, whole.X, whole.y, whole.weight)
