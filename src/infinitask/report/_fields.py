"""What a pipeline does to each column of a table, as data: a page turns what is entered into the model's input.

A *field* is a column of the table as a person knows it, with the encoded columns that it alone decides. No encoder is
written again: the fitted pipeline is asked what it makes of chosen cells, and its answers are kept.

* A **number** is encoded as offset + slope · (value − origin). Days are numbers with an answer for each day.
* A **choice** is a list of values with an answer for each.

A missing value has an answer of its own. Whether the answers, put together, are what the pipeline makes of whole
rows is checked on the rows of the page.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask.report._export import Exported, packed
from infinitask.report._rows import MAX_NUMBERS, evenly, numbers_column
from infinitask.report._table import Table

MAX_CHOICES = 300
"""Values of a column that a person can choose from; of more, the most frequent ones, or evenly spaced times."""

PROBES = np.array([0.0, 1.0, 0.137, 0.5, 0.713, -0.31, 1.29])
"""Where a number is asked for, as fractions of its range, the ends first: curves and steps show between or beyond."""

EXACT = 1e-12
"""Relative error of answers that are put together; its root, if the pipeline computes in single precision."""

NEVER_SEEN = "\x00 a value that no table holds"

Encode = Callable[[Any], HostArray]


@final
@dataclass
class Field:
    """A column of the table, and what it is encoded as.

    Parameters
    ----------
    source : int
        Its place in the table.
    column : dict
        What the page knows of it, but for its encoded columns.
    values : ndarray (k,)
        Of the rows of the page: numbers, NaN where missing, or places in the list of choices.
    answers : list of ndarray (·, p)
        Everything that was asked, as whole encoded rows.
    encoding : dict
        How the page encodes a value.
    tables : dict of ndarray (·, p) or None
        The numbers that this takes, for all encoded columns.
    encoded : function
        From values to whole encoded rows, as the page finds them.
    columns : ndarray of int
        The encoded columns that this column decides.
    """

    source: int
    column: Exported
    values: HostArray
    answers: list[HostArray]
    encoding: Exported
    tables: dict[str, HostArray | None]
    encoded: Callable[[HostArray], HostArray]
    columns: HostArray = field(default_factory=lambda: np.arange(0))

    def exported(self) -> Exported:
        """What the page knows of the column."""
        tables = {
            name: None if table is None else packed(table[..., self.columns]) for name, table in self.tables.items()
        }
        return self.column | {"encoded": {"columns": self.columns.tolist(), **self.encoding, **tables}}


def fields_of(
    encode: Any, X: Any, Z: HostArray, rows: HostArray, names: list[str], encoded_names: list[str]
) -> tuple[list[Field], HostArray]:
    """Describe a fitted transformer column by column; an error where it cannot be done.

    Parameters
    ----------
    encode : function
        From a table to its encoded rows, an array (n, p).
    X : pandas DataFrame or array (n, d)
    Z : ndarray (n, p)
        X as it is encoded.
    rows : ndarray (k,) of int
        Rows of the page.
    names, encoded_names : list of str
        Of the d columns and of the p encoded ones.

    Returns
    -------
    fields : list of Field
        All that the model's input depends on.
    base : ndarray (p,)
        The encoded row of typical values.
    """
    asked = _Asked(encode, Table(X), Z, rows, names)
    found = [asked.field(j) for j in range(asked.table.d)]
    owner: dict[int, int] = {}
    for each in found:
        away = np.max([np.max(np.abs(answer - asked.base), axis=0) for answer in each.answers], axis=0)
        each.columns = np.flatnonzero(away > asked.tolerance)
        for c in each.columns:
            if owner.setdefault(int(c), each.source) != each.source:
                raise ValueError(
                    f"The encoded column {encoded_names[c]!r} depends on several columns of the table, "
                    f"{names[owner[int(c)]]!r} and {names[each.source]!r} among them; a page moves one column at a "
                    f"time and cannot follow such a step. {_INSTEAD}"
                )
    found = [each for each in found if each.columns.size]
    if not found:
        raise ValueError(
            "No column of the table changes what the last step of the pipeline is given, so there is nothing to move. "
            "Give rows that differ."
        )
    together = np.tile(asked.base, (rows.size, 1))
    for each in found:
        together[:, each.columns] = each.encoded(each.values)[:, each.columns]
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
    """A transformer and the rows about which it is asked."""

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
        """A column whose values have an order and a distance; None for one without, or without any value."""
        values = self.table.numbers(j) if self.days[j] is None else self.days[j]
        return None if values is None or np.all(np.isnan(values)) else values

    def _typical(self, j: int) -> int:
        """A row with a typical value: the middle one of numbers, the most frequent one otherwise."""
        line = self._line(j)
        if line is not None:
            middle = np.quantile(line[~np.isnan(line)], 0.5, method="inverted_cdf")
            return int(np.flatnonzero(line == middle)[0])
        distinct = self.table.distinct(j)
        return int(distinct.first[np.argmax(distinct.counts)])

    def with_column(self, j: int, cells: Any) -> HostArray | None:
        """Answers for typical rows with other cells in column j; None where the pipeline refuses or has none."""
        try:
            found = self.ask(self.table.made(np.tile(self.typical, (len(cells), 1)), {j: cells}))
        except Exception:  # encoders of any library refuse in their own way
            return None
        return found if np.all(np.isfinite(found)) else None

    def field(self, j: int) -> Field:
        line = self._line(j)
        found = None if line is None else (self._number if self.days[j] is None else self._days)(j, line)
        return self._choice(j) if found is None else found

    # ---------------------------------------------------------------------------------------------- numbers
    def _of_line(self, j: int, line: HostArray) -> Exported:
        return numbers_column(self.names[j], line, line[self.typical[j]], date=self.days[j] is not None)

    def _without_value(self, j: int, line: HostArray, answers: HostArray) -> HostArray | None:
        """The answer for a missing value, where a row has none or where an encoded column tells it from all values."""
        answer = self.with_column(j, self.table.missing(j))
        if answer is None or np.any(np.isnan(line)):
            return answer
        still = np.ptp(answers, axis=0) <= self.tolerance
        return answer if np.any(np.abs(answer[0] - answers[0])[still] > self.tolerance[still]) else None

    def _number(self, j: int, line: HostArray) -> Field | None:
        """A number that is shifted and scaled; None if it is not."""
        column = self._of_line(j, line)
        low, high = column["low"], column["high"]
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
        if not fits:
            return None
        error, single, origin, slope = min(fits, key=lambda fit: fit[:2])
        allowed = EXACT if np.any(answers.astype(np.float32) != answers) else np.sqrt(EXACT)
        if error > allowed:
            return None

        def encoded(values: HostArray) -> HostArray:
            return np.asarray(answers[0] + (_rounded(values, single) - origin)[:, None] * slope)

        encoding = {"type": "affine", "single": single, "origin": origin}
        return self._with_missing(j, column, line, answers, encoding, {"offset": answers[0], "slope": slope}, encoded)

    def _days(self, j: int, line: HostArray) -> Field | None:
        """Dates with an answer for each day; None if there are too many."""
        column = self._of_line(j, line)
        days = np.arange(column["low"], column["high"] + 1.0)
        if days.size > MAX_NUMBERS:
            return None
        answers = self.with_column(j, self.table.dates(j, days))
        if answers is None:
            return None
        width = np.count_nonzero(np.ptp(answers, axis=0) > self.tolerance)
        if days.size * width > MAX_NUMBERS:
            return None

        def encoded(values: HostArray) -> HostArray:
            return answers[np.where(np.isnan(values), 0.0, values - column["low"]).astype(np.intp)]

        return self._with_missing(j, column, line, answers, {"type": "table"}, {"values": answers}, encoded)

    def _with_missing(
        self,
        j: int,
        column: Exported,
        line: HostArray,
        answers: HostArray,
        encoding: Exported,
        tables: dict[str, HostArray | None],
        known: Callable[[HostArray], HostArray],
    ) -> Field:
        """A field of numbers or days; a missing value has an answer of its own."""
        missing = self._without_value(j, line, answers)
        if missing is None:
            return Field(j, column, line[self.rows], [answers], encoding, tables | {"missing": None}, known)

        def encoded(values: HostArray) -> HostArray:
            return np.where(np.isnan(values)[:, None], missing, known(values))

        tables = tables | {"missing": missing[0]}
        return Field(j, column, line[self.rows], [answers, missing], encoding, tables, encoded)

    # ---------------------------------------------------------------------------------------------- choices
    def _choice(self, j: int) -> Field:
        """A list of values: those a person can choose from first, then others that rows of the page have."""
        distinct = self.table.distinct(j)
        if distinct.counts.size > MAX_CHOICES and self.days[j] is None and self._line(j) is not None:
            raise ValueError(
                f"The column {self.names[j]!r} holds {distinct.counts.size} different numbers, and the pipeline turns "
                "them into a curve or into steps; a page follows numbers that are shifted and scaled, and lists of at "
                f"most {MAX_CHOICES} values. Fit with StandardScaler or nothing in place of that step."
            )
        kind = self.table.column(j).dtype.kind
        time = kind == "M"
        # evenly spaced times end with the missing one
        listed = evenly(distinct.counts.size, MAX_CHOICES) if time else distinct.most_frequent(MAX_CHOICES)
        others = np.setdiff1d(distinct.codes[self.rows], listed)
        kept = np.concatenate([listed, others])
        idx = np.tile(self.typical, (kept.size, 1))
        idx[:, j] = distinct.first[kept]
        answers = self.ask(self.table.made(idx))
        labels, counts = [distinct.labels[k] for k in kept], distinct.counts[kept].tolist()
        places = {int(k): place for place, k in enumerate(kept)}
        missing = places.get(distinct.missing, -1)
        if missing < 0 and kind != "b":
            answer = self._unlisted_missing(j, answers)
            if answer is not None:  # the fit knew it; no row of this table has it
                at = listed.size
                answers = np.insert(answers, at, answer, axis=0)
                labels.insert(at, "")
                counts.insert(at, 0)
                places = {k: place + (place >= at) for k, place in places.items()}
                missing = at
        codes = np.array([places[int(k)] for k in distinct.codes[self.rows]], dtype=np.float64)
        typical = places[int(distinct.codes[self.typical[j]])] if not time else listed.size // 2
        column = {
            "name": self.names[j],
            "kind": "choice",
            "typical": min(typical, len(labels) - 1),
            "choices": labels,
            "counts": counts,
            "listed": len(labels) - others.size,
            "missing": missing,
            "distinct": int(distinct.counts.size),
        }
        table: dict[str, HostArray | None] = {"values": answers}
        return Field(j, column, codes, [answers], {"type": "choices"}, table, lambda k: answers[k.astype(np.intp)])

    def _unlisted_missing(self, j: int, answers: HostArray) -> HostArray | None:
        """The answer for a missing value that no row has, if the fit knew it: no other value has the same."""
        answer = self.with_column(j, self.table.missing(j))
        unknown = self.with_column(j, np.array([NEVER_SEEN], dtype=object))
        if answer is None:
            return None
        others = answers if unknown is None else np.vstack([answers, unknown])
        same = np.all(np.abs(others - answer) <= self.tolerance, axis=1)
        return None if np.any(same) else answer[0]


def _rounded(values: HostArray, single: bool) -> HostArray:
    """Numbers as a pipeline in single precision sees them."""
    return values.astype(np.float32).astype(np.float64) if single else values


_INSTEAD = (
    "Fit with steps that encode each column by itself, such as StandardScaler, SimpleImputer, OneHotEncoder, a "
    "ColumnTransformer of these or a TableVectorizer; or explore the last step with its encoded columns: "
    "explore(pipeline[-1], pipeline[:-1].transform(X), y)."
)
