"""Make a page from a fitted model and some rows: one HTML file with the text, the style, the program and the data."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length, check_is_fitted, column_or_1d

from infinitask._base.arrays import HostArray, place, to_host
from infinitask._base.inner_model import steps_and_model
from infinitask._base.validation import naming
from infinitask.estimators import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.estimators._frames import as_arrays
from infinitask.pipelines import TransformedTarget
from infinitask.pipelines._tables import as_pandas
from infinitask.plotting._reliability import binomial_band
from infinitask.report._export import Exported, decisions, level_sets, packed, quantiles
from infinitask.report._fields import fields_of
from infinitask.report._table import MAX_LOOKED_AT, Shown, Table, evenly, most_rows, names_of, numbers_column, row_names
from infinitask.tuning._self_tuned import SelfTuned

PERCENTS = np.arange(1, 100) / 100.0
"""Levels and coverages at which a page reports the observed fractions."""

CHANCE = 0.9
"""Probability that a fraction of rows falls into its band by chance."""

FIRST_TO_LEAVE = 200
"""The number of rows with the smallest p-values that a page always shows, up to half of its rows."""


def explore(model: Any, X: Any, y: Any = None, *, names: Any = None, title: str | None = None) -> Page:
    """Make a page in which a person moves θ and sees the consequences at once: one file, no server, no network.

    The page evaluates the model itself, for any row that is entered. Quantiles: the quantile function, the density, any
    interval and P(y > t) at a row, a fan chart along a feature, what-if curves, the relevance of features, and the
    coverage of intervals on the rows. Costs: decisions from "no false alarm" to "miss no case" with their errors and
    costs, the boundary, and the setting that meets a required sensitivity. Level sets: the unusual rows, for every
    fraction, with p-values.

    Parameters
    ----------
    model : fitted estimator or pipeline
        An :class:`~infinitask.InfiniteQuantileRegressor`, :class:`~infinitask.InfiniteCostSensitiveClassifier` or
        :class:`~infinitask.InfiniteOneClassSVM`, or one of their self-tuned versions; or a pipeline that ends with one
        and whose other steps encode each column separately. The page then shows the original columns of the table,
        with categories, dates and missing values.
    X : array or data frame (n, d)
        Rows to show, in the units of the fit; preferably held-out rows. Of more than 2500 rows only some are shown.
    y : array (n,) or None
        Targets or labels of the rows. If None, the page says nothing about how often the model is right.
    names : list of str or None
        Names of the columns; None: those of the model or of X.
    title : str or None

    Returns
    -------
    page
        ``save(path)`` writes the file and returns its path; ``html`` is its text. A notebook displays the page if it
        is the last line of a cell.

    Examples
    --------
    >>> from infinitask import InfiniteOneClassSVM
    >>> from infinitask.datasets import make_mixture
    >>> from infinitask.report import explore
    >>> X = make_mixture(80, random_state=0)
    >>> explore(InfiniteOneClassSVM(n_nodes=8, alpha=1e-3).fit(X), X, names=["width", "height"]).payload["kind"]
    'level-sets'
    """
    steps, last = steps_and_model(model, stop=lambda inner: hasattr(inner, "inverse_func"))
    encoder = Pipeline(steps) if steps else None
    X = X if encoder is None else as_pandas(X)  # other tables are made from it cell by cell
    inner, kind = _inner(last)
    check_is_fitted(inner)
    exported, n = kind.export(inner), _num_samples(X)
    target = "y" if getattr(y, "name", None) is None else str(y.name)
    if y is not None:
        with naming("y"):
            check_consistent_length(X, y)
    taken = evenly(n, MAX_LOOKED_AT)
    part = X if taken.size == n else _safe_indexing(X, taken)
    given = part if encoder is None else encoder.transform(part)
    values = _dense(inner._inputs(given))
    d = values.shape[1]
    left = np.asarray(to_host(inner.field_.left(place(values, inner.recipe_.device))), dtype=np.float64)
    targets = None if y is None or not kind.has_targets else np.asarray(column_or_1d(y))[taken]
    shown, answers = kind.answers(inner, given, targets, d + left.shape[1])
    relevance = _relevance(inner)
    if encoder is None:
        typical = np.quantile(values, 0.5, axis=0, method="inverted_cdf")
        named = zip(names_of(X, inner, names, d), values.T, typical, strict=True)
        about = [numbers_column(name, column, middle) | {"encoded": None} for name, column, middle in named]
        base, cells = None, values[shown.rows]
    else:
        # a table may have columns that the pipeline ignores and does not name
        labels = names_of(X, model, getattr(X, "columns", None) if names is None else names, Table(part).d)

        def encode(table: Any) -> HostArray:
            return _dense(encoder.transform(table))

        fields, typical = fields_of(encode, part, values, shown.rows, labels, _encoded_names(given, encoder, d))
        about, base = [field.column for field in fields], packed(typical)
        cells = np.column_stack([field.values for field in fields])
        if relevance is not None:  # the root of the sum of squares over the encoded columns
            effect = np.asarray(relevance)
            relevance = [float(np.sqrt(np.sum(effect[field.columns] ** 2))) for field in fields]
    numbers, names_of_rows = taken[shown.rows], row_names(X)
    rows: Exported = {
        "label": None if names_of_rows is None else [names_of_rows[k] for k in numbers],
        "X": packed(cells),
        "left": packed(left[shown.rows]),
        "number": packed(numbers),
        "weight": packed(shown.weight),
    }
    payload: Exported = {
        "format": 1,
        "kind": kind.name,
        "title": kind.title.format(target) if title is None else str(title),
        "target": target,
        "columns": about,
        "base": base,
        "relevance": relevance,
        "model": exported,
        "rows": rows | answers.pop("rows"),
        "total": n,
        "looked_at": int(taken.size),
        **answers,
    }
    return Page(payload)


def _dense(Z: Any) -> HostArray:
    return np.asarray(Z.toarray() if hasattr(Z, "toarray") else to_host(Z), dtype=np.float64)


def _encoded_names(Z: Any, encoder: Any, p: int) -> list[str]:
    """Names of the encoded columns, for sentences about them."""
    try:
        names = getattr(Z, "columns", None)
        found = [str(name) for name in (encoder.get_feature_names_out() if names is None else names)]
    except (AttributeError, ValueError):
        found = []
    return found if len(found) == p else [f"column {c}" for c in range(p)]


def _inner(model: Any) -> tuple[Any, Kind]:
    """The model inside a pipeline, and its kind."""
    if isinstance(model, SelfTuned):
        check_is_fitted(model)  # a fitted model inside was opened
    found = as_arrays(model)
    if isinstance(found, TransformedTarget):
        raise TypeError(
            "A page was asked for a TransformedTarget, and a page knows no functions of the target. Explore the model "
            "inside, in the units of func(y): explore(model.estimator_, X, func(y))."
        )
    for kind in KINDS:
        if isinstance(found, kind.model):
            return found, kind
    raise TypeError(
        f"A page was asked for {type(model).__name__}; it is made for InfiniteQuantileRegressor, "
        "InfiniteCostSensitiveClassifier, InfiniteOneClassSVM and those that tune themselves. Give one of these, "
        "or a pipeline whose last step it is."
    )


def _relevance(model: Any) -> list[float] | None:
    """The relevance of each feature; None if the kernel is not defined a step away from a row."""
    try:
        return [float(effect) for effect in model.relevance_.effect]
    except ValueError:
        return None


# ------------------------------------------------------------------------------------------ what each kind reports
def _quantile_answers(model: Any, X: Any, y: HostArray | None, width: int) -> tuple[Shown, Exported]:
    """Targets of the rows, and the observed fractions of quantiles and central intervals."""
    n = _num_samples(X)
    shown = Shown.of(n, width)
    start, end = model._ends()
    if y is None:
        middle = model.predict(X, 0.5 * (float(start) + float(end)))
        return shown, {"rows": {}, "range": [float(middle.min()), float(middle.max())], "reliability": None}
    y = y.astype(np.float64)
    levels = PERCENTS[(start <= PERCENTS) & (end >= PERCENTS)]
    below = np.mean(y[:, None] <= model.predict(X, levels), axis=0)
    widest = 1.0 if hasattr(model, "calibration_") else min(1.0 - 2.0 * start, 2.0 * end - 1.0)
    coverages = PERCENTS[widest + 1e-12 >= PERCENTS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an infinite interval is drawn as such
        ends = model.predict_interval(X, coverages)
    held = np.mean((ends[..., 0] <= y[:, None]) & (y[:, None] <= ends[..., 1]), axis=0)
    tables = {"levels": levels, "below": below, "coverages": coverages, "held": held}
    reliability = {"rows": int(y.size)} | {name: packed(table) for name, table in tables.items()}
    answers = {"rows": {"y": packed(y[shown.rows])}, "range": [float(y.min()), float(y.max())]}
    return shown, answers | {"reliability": reliability, "chance": _chance(y.size)}


def _decision_answers(model: Any, X: Any, y: HostArray | None, width: int) -> tuple[Shown, Exported]:
    """The class of each row; if there are too many rows, those of the rarer class are selected first."""
    labels = [str(label) for label in model.classes_]
    if y is None:
        return Shown.of(_num_samples(X), width), {"rows": {}, "labels": labels}
    unknown = np.setdiff1d(y, model.classes_)
    if unknown.size:
        raise ValueError(f"y holds {unknown[0]!r}; the model knows the labels {model.classes_.tolist()}.")
    positive = y == model.classes_[1]
    rare = np.flatnonzero(positive if 2 * np.count_nonzero(positive) <= positive.size else ~positive)
    shown = Shown.of(positive.size, width, rare)
    return shown, {"rows": {"case": packed(positive[shown.rows])}, "labels": labels}


def _level_set_answers(model: Any, X: Any, y: HostArray | None, width: int) -> tuple[Shown, Exported]:
    """p-values of the rows; the most unusual rows are always on the page."""
    p = model.score_samples(X)
    first = min(FIRST_TO_LEAVE, most_rows(width) // 2)  # all of them, not some
    shown = Shown.of(p.size, width, np.argsort(p, kind="stable")[:first])
    return shown, {"rows": {"p": packed(p[shown.rows])}, "chance": _chance(p.size)}


def _chance(n: int) -> Exported:
    """The band in which a fraction of n rows falls by chance if the nominal fraction is correct."""
    share = np.arange(101) / 100.0
    low, high = binomial_band(share, n, CHANCE)
    return {"rows": n, "confidence": CHANCE, "share": packed(share), "low": packed(low), "high": packed(high)}


class Kind(NamedTuple):
    """A kind of page: its name, title, model, and the functions that collect its data."""

    name: str
    title: str
    model: type[Any]
    export: Callable[[Any], Exported]
    answers: Callable[[Any, Any, HostArray | None, int], tuple[Shown, Exported]]
    """Maps the model, rows, targets and the numbers per row to the rows shown and the data about them."""
    has_targets: bool = True


KINDS = (
    Kind("quantiles", "What to expect of {}", InfiniteQuantileRegressor, quantiles, _quantile_answers),
    Kind("costs", "Decisions about {}", InfiniteCostSensitiveClassifier, decisions, _decision_answers),
    Kind("level-sets", "Which rows are unusual?", InfiniteOneClassSVM, level_sets, _level_set_answers, False),
)


# ----------------------------------------------------------------------------------------------------------- the file
ASSETS = files("infinitask.report") / "assets"
"""The template, the style and the program: plain scripts that share one scope, ordered by name."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Page:
    """A page in which a person explores a model; made by :func:`~infinitask.report.explore`.

    A notebook displays it if it is the last line of a cell.

    Parameters
    ----------
    payload : dict
        The model, the rows and the texts, as plain data.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(60, random_state=0)
    >>> page = InfiniteQuantileRegressor(n_nodes=8).fit(X, y).explore(X, y)
    >>> page.save(Path(tempfile.mkdtemp()) / "report.html").name
    'report.html'
    """

    payload: Exported

    def __repr__(self) -> str:
        return f"Page({self.payload['title']!r}, {len(self.html.encode()) / 1e6:.2g} MB; page.save('report.html'))"

    @property
    def html(self) -> str:
        """The content of the file."""
        # a "<" in the data must not end the script, whatever follows it
        data = json.dumps(self.payload, allow_nan=False, separators=(",", ":"))
        for sign in "<>&":
            data = data.replace(sign, f"\\u{ord(sign):04x}")
        scripts = sorted(file.name for file in ASSETS.iterdir() if file.name.endswith(".js"))
        program = '"use strict";\n(() => {\n' + "\n".join(map(_asset, scripts)) + "\n})();\n"
        digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode("ascii")
        parts = {
            "title": html.escape(str(self.payload["title"])),
            "policy": f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'",
            "style": _asset("page.css"),
            "data": data,
            "program": program,
        }
        # one pass, so that inserted parts are not searched for marks
        return re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], _asset("page.html"))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the file and return its path.

        Parameters
        ----------
        path : str or path
            Usually ends in ``.html``; the folder must exist.
        """
        target = Path(path)
        target.write_text(self.html, encoding="utf-8", newline="\n")
        return target

    def _repr_html_(self) -> str:
        """The page in an iframe, which separates its style from that of the notebook."""
        source, title = html.escape(self.html), html.escape(str(self.payload["title"]))
        style = "width:100%;height:900px;border:0"
        return f'<iframe srcdoc="{source}" title="{title}" style="{style}"></iframe>'


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")
