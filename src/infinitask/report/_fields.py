"""Describe as data how a pipeline encodes each column of a table: the page encodes what a person enters.

A *field* is a column of the table as a person knows it, with the encoded columns that it alone determines. No encoder
is reimplemented: the fitted pipeline transforms chosen cells, and the results are stored.

* A **number** is encoded as offset + slope · (value − origin). Dates are numbers with a result for each day.
* A **choice** is a list of values with a result for each.

A missing value has its own result. The rows of the page serve to check that the combined results equal the encoding of
whole rows.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.report._export import Exported, packed
from infinitask.report._table import MAX_NUMBERS, Table, evenly, numbers_column

MAX_CHOICES = 300
"""The maximum number of values to choose from; of more, the most frequent ones, or evenly spaced times."""

PROBES = np.array([0.0, 1.0, 0.137, 0.5, 0.713, -0.31, 1.29])
"""Test points of a number, as fractions of its range, the ends first: they reveal curves and steps."""

EXACT = 1e-12
"""Relative tolerance of combined results; its square root if the pipeline computes in single precision."""

NEVER_SEEN = "\x00 a value that no table holds"

Encoding = tuple[HostArray, HostArray, Exported, dict[str, HostArray | None]]
"""All results as whole encoded rows; those of the page's rows; how the page encodes a value; and its tables."""


class Field(NamedTuple):
    """A column of the table, and its encoding.

    Parameters
    ----------
    column : dict
        The description of the column for the page.
    values : ndarray (k,)
        Values of the page's rows: numbers, NaN if missing, or positions in the list of choices.
    columns : ndarray (c,) of int
        The encoded columns that this column determines.
    encoded : ndarray (k, c)
        These columns for the rows of the page, as the page computes them.
    """

    column: Exported
    values: HostArray
    columns: HostArray
    encoded: HostArray


def fields_of(
    encode: Any, X: Any, Z: HostArray, rows: HostArray, names: list[str], encoded_names: list[str]
) -> tuple[list[Field], HostArray]:
    """Describe a fitted transformer column by column; raise an error if that is impossible.

    Parameters
    ----------
    encode : function
        Maps a table to its encoded rows, an array (n, p).
    X : pandas DataFrame or array (n, d)
    Z : ndarray (n, p)
        The encoded X.
    rows : ndarray (k,) of int
        Positions of the page's rows.
    names, encoded_names : list of str
        Names of the d columns and of the p encoded ones.

    Returns
    -------
    fields : list of Field
        All fields that the encoded rows depend on.
    base : ndarray (p,)
        The encoded row of typical values.
    """
    asked = _Asked(encode, Table(X), Z, rows, names)
    found = [asked.field(j) for j in range(asked.table.d)]
    owner: dict[int, int] = {}
    for j, each in enumerate(found):
        for c in each.columns:
            if owner.setdefault(int(c), j) != j:
                raise ValueError(
                    f"The encoded column {encoded_names[c]!r} depends on several columns of the table, "
                    f"{names[owner[int(c)]]!r} and {names[j]!r} among them; a page moves one column at a time and "
                    f"cannot follow such a step. {_INSTEAD}"
                )
    found = [each for each in found if each.columns.size]
    if not found:
        raise ValueError(
            "No column of the table changes what the last step of the pipeline is given, so there is nothing to move. "
            "Give rows that differ."
        )
    together = np.tile(asked.base, (rows.size, 1))
    for each in found:
        together[:, each.columns] = each.encoded
    wrong = np.argwhere(~(np.abs(together - Z[rows]) <= asked.tolerance * np.maximum(1.0, np.abs(Z[rows]))))
    if wrong.size:
        row, place = wrong[0]
        raise ValueError(
            f"The encoded column {encoded_names[place]!r} of row {int(rows[row])} is not what its column of the table "
            "alone would give; a step of the pipeline looks at several columns or rows at once, and a page cannot "
            f"follow it. {_INSTEAD}"
        )
    return found, asked.base


class _Asked:
    """A transformer and the rows that it is tested on."""

    def __init__(self, encode: Any, table: Table, Z: HostArray, rows: HostArray, names: list[str]) -> None:
        self._encode, self.table, self.rows, self.names = encode, table, rows, names
        single = np.all(Z.astype(np.float32).astype(np.float64) == Z, axis=0)
        self.tolerance = np.where(single, np.sqrt(EXACT), EXACT) * np.maximum(1e-300, np.max(np.abs(Z), axis=0))
        self.days = [table.days(j) for j in range(table.d)]
        self.typical = np.array([self._typical(j) for j in range(table.d)])
        self.base = self.ask(table.made(self.typical[None, :]))[0]

    def ask(self, table: Any) -> HostArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the pipeline has warned about these rows before
            return np.asarray(self._encode(table), dtype=np.float64)

    def _line(self, j: int) -> HostArray | None:
        """A column whose values are ordered and have distances; None if it is not, or has no values."""
        values = self.table.numbers(j) if self.days[j] is None else self.days[j]
        return None if values is None or np.all(np.isnan(values)) else values

    def _typical(self, j: int) -> int:
        """A row with a typical value: the median of numbers, otherwise the most frequent value."""
        line = self._line(j)
        if line is not None:
            middle = np.quantile(line[~np.isnan(line)], 0.5, method="inverted_cdf")
            return int(np.flatnonzero(line == middle)[0])
        distinct = self.table.distinct(j)
        return int(distinct.first[np.argmax(distinct.counts)])

    def with_column(self, j: int, cells: Any) -> HostArray | None:
        """Encoded typical rows with other cells in column j; None if the pipeline refuses them or has no result."""
        try:
            found = self.ask(self.table.made(np.tile(self.typical, (len(cells), 1)), {j: cells}))
        except Exception:  # encoders of other libraries raise errors of any type
            return None
        return found if np.all(np.isfinite(found)) else None

    def field(self, j: int) -> Field:
        """Column j as a number or a date if it is one, otherwise as a list of choices."""
        line, is_date = self._line(j), self.days[j] is not None
        if line is None:
            return self._choice(j)
        column, values = numbers_column(self.names[j], line, line[self.typical[j]], is_date), line[self.rows]
        found = (self._days if is_date else self._number)(j, column["low"], column["high"], values)
        if found is None:
            return self._choice(j)
        answers, encoded, encoding, tables = found
        missing = self._without_value(j, line, answers)
        tables["missing"] = None if missing is None else missing[0]
        if missing is not None:
            answers, encoded = np.vstack([answers, missing]), np.where(np.isnan(values)[:, None], missing, encoded)
        return self._field(column, values, (answers, encoded, encoding, tables))

    def _field(self, column: Exported, values: HostArray, found: Encoding) -> Field:
        answers, encoded, encoding, tables = found
        columns = np.flatnonzero(np.max(np.abs(answers - self.base), axis=0) > self.tolerance)
        kept = {name: None if table is None else packed(table[..., columns]) for name, table in tables.items()}
        description = {"columns": columns.tolist(), **encoding, **kept}
        return Field(column | {"encoded": description}, values, columns, encoded[:, columns])

    # ---------------------------------------------------------------------------------------------- numbers
    def _without_value(self, j: int, line: HostArray, answers: HostArray) -> HostArray | None:
        """The result for a missing value, if a row has one or an encoded column tells it from all other values."""
        answer = self.with_column(j, self.table.missing(j))
        if answer is None or np.any(np.isnan(line)):
            return answer
        still = np.ptp(answers, axis=0) <= self.tolerance
        return answer if np.any(np.abs(answer[0] - answers[0])[still] > self.tolerance[still]) else None

    def _number(self, j: int, low: float, high: float, values: HostArray) -> Encoding | None:
        """A number that is shifted and scaled; None if it is not."""
        at = low + PROBES * ((high - low) or max(1.0, abs(low)))
        answers = self.with_column(j, at)
        if answers is None:
            return None
        fits = []
        for single in (False, True):
            u = _rounded(at, single)
            if u[1] == u[0]:
                continue
            slope = (answers[1] - answers[0]) / (u[1] - u[0])
            error = np.abs(answers[0] + (u - u[0])[:, None] * slope - answers)
            size = np.maximum(np.abs(answers), np.abs(u - u[0])[:, None] * np.abs(slope))
            fits.append((float(np.max(error / np.maximum(size, 1e-300))), single, float(u[0]), slope))
        error, single, origin, slope = min(fits, key=lambda fit: fit[:2])
        allowed = EXACT if np.any(answers.astype(np.float32) != answers) else np.sqrt(EXACT)
        if error > allowed:
            return None
        encoded = answers[0] + (_rounded(values, single) - origin)[:, None] * slope
        encoding = {"type": "affine", "single": single, "origin": origin}
        return answers, encoded, encoding, {"offset": answers[0], "slope": slope}

    def _days(self, j: int, low: float, high: float, values: HostArray) -> Encoding | None:
        """Dates with a result for each day; None if there are too many."""
        days = np.arange(low, high + 1.0)
        if days.size > MAX_NUMBERS:
            return None
        answers = self.with_column(j, self.table.dates(j, days))
        if answers is None:
            return None
        width = np.count_nonzero(np.ptp(answers, axis=0) > self.tolerance)
        if days.size * width > MAX_NUMBERS:
            return None
        places = np.where(np.isnan(values), 0.0, values - low).astype(np.intp)
        return answers, answers[places], {"type": "table"}, {"values": answers}

    # ---------------------------------------------------------------------------------------------- choices
    def _choice(self, j: int) -> Field:
        """A list of values: first those to choose from, then others that occur in the page's rows."""
        distinct = self.table.distinct(j)
        if distinct.counts.size > MAX_CHOICES and self.days[j] is None and self._line(j) is not None:
            raise ValueError(
                f"The column {self.names[j]!r} holds {distinct.counts.size} different numbers, and the pipeline turns "
                "them into a curve or into steps; a page follows numbers that are shifted and scaled, and lists of at "
                f"most {MAX_CHOICES} values. Fit with StandardScaler or nothing in place of that step."
            )
        kind = self.table.column(j).dtype.kind
        # the evenly spaced times include the missing value as the last one
        listed = evenly(distinct.counts.size, MAX_CHOICES) if kind == "M" else distinct.most_frequent(MAX_CHOICES)
        others = np.setdiff1d(distinct.codes[self.rows], listed)
        kept = np.concatenate([listed, others])
        idx = np.tile(self.typical, (kept.size, 1))
        idx[:, j] = distinct.first[kept]
        answers = self.ask(self.table.made(idx))
        missing, labels, counts = distinct.missing, [*distinct.labels, ""], np.append(distinct.counts, 0)
        if kind != "b" and missing not in kept:
            missing, answer = -1, self._unlisted_missing(j, answers)
            if answer is not None:  # known to the fit, but in no row of this table: the last label and count
                kept, answers = np.insert(kept, listed.size, -1), np.insert(answers, listed.size, answer, axis=0)
        places = {int(k): place for place, k in enumerate(kept)}
        codes = np.array([places[int(k)] for k in distinct.codes[self.rows]])
        column = {
            "name": self.names[j],
            "kind": "choice",
            "typical": listed.size // 2 if kind == "M" else places[int(distinct.codes[self.typical[j]])],
            "choices": [labels[k] for k in kept],
            "counts": counts[kept].tolist(),
            "listed": kept.size - others.size,
            "missing": places.get(missing, -1),
            "distinct": int(distinct.counts.size),
        }
        return self._field(column, codes, (answers, answers[codes], {"type": "choices"}, {"values": answers}))

    def _unlisted_missing(self, j: int, answers: HostArray) -> HostArray | None:
        """The result for a missing value that no row has, if the fit knew it: no other value has the same result."""
        answer = self.with_column(j, self.table.missing(j))
        unknown = self.with_column(j, np.array([NEVER_SEEN], dtype=object))
        if answer is None:
            return None
        others = answers if unknown is None else np.vstack([answers, unknown])
        same = np.all(np.abs(others - answer) <= self.tolerance, axis=1)
        return None if np.any(same) else answer[0]


def _rounded(values: HostArray, single: bool) -> HostArray:
    """Numbers rounded as in a pipeline with single precision."""
    return values.astype(np.float32).astype(np.float64) if single else values


_INSTEAD = (
    "Fit with steps that encode each column by itself, such as StandardScaler, SimpleImputer, OneHotEncoder, a "
    "ColumnTransformer of these or a TableVectorizer; or explore the last step with its encoded columns: "
    "explore(pipeline[-1], pipeline[:-1].transform(X), y)."
)
