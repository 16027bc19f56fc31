"""The step of :func:`infinitask.tabular` that encodes a table as numbers; it needs skrub."""

from __future__ import annotations

import warnings
from typing import Any

from skrub import TableVectorizer

from infinitask.pipelines._tables import as_pandas, check_sizes, listed, nearest

NOTHING = ("", "?", "-", "...", "#n/a", "<na>", "n/a", "na", "nan", "-nan", "nat", "none", "null", "missing", "unknown")
"""Text, in lower case, that means a missing value."""


class TableEncoder(TableVectorizer):
    """Encode a table with mixed columns as numbers; the columns of the fit are selected by name.

    This is skrub's ``TableVectorizer``. Frames of polars are converted to pandas, so the fit may use either kind. At
    prediction, the columns of a data frame may be in any order, and other columns are ignored; a missing column or a
    table without rows raises an error. Text in a column of numbers causes a warning. With ``high_cardinality="drop"``,
    a fit warns if it ignores a column of text.

    Parameters
    ----------
    cardinality_threshold, low_cardinality, high_cardinality, numeric, datetime, specific_transformers, \
drop_null_fraction, drop_if_constant, drop_if_unique, datetime_format, n_jobs
        As in skrub.
    """

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the encoding of each column, and encode the table.

        Parameters
        ----------
        X : data frame (n, d)
        y : array (n,) or None
        """
        _check_rows(X)
        table = as_pandas(X)
        check_sizes(table)
        encoded = super().fit_transform(table, y)
        drops = isinstance(self.high_cardinality, str) and self.high_cardinality == "drop"
        texts = self.kind_to_columns_["high_cardinality"] if drops else []
        if texts and encoded.shape[1] == 0:
            raise ValueError(
                f"All columns hold text or many categories ({listed(texts)}), and level sets leave these out: every "
                "new text is unusual. Give columns of numbers, dates or few categories, or raise max_categories."
            )
        if texts:
            warnings.warn(
                f"Level sets leave out columns of text or many categories: {listed(texts)}. New texts are encoded "
                "unlike those of the fit, and nearly all rows would be unusual. Drop these columns, make numbers or "
                "few categories of them, or raise max_categories.",
                UserWarning,
                stacklevel=2,
            )
        return encoded

    def transform(self, X: Any) -> Any:
        """Encode a table.

        Parameters
        ----------
        X : data frame (n, ≥ d)
            With the columns of the fit, in any order.
        """
        _check_rows(X)
        X = self._taken(as_pandas(X))
        check_sizes(X)
        self._warn_of_words(X)
        return super().transform(X)

    def _warn_of_words(self, X: Any) -> None:
        """Warn if columns of numbers contain text that is not a number, which counts as missing."""
        if not hasattr(X, "iloc"):
            return
        import pandas as pd

        known = {str(name) for name in self.kind_to_columns_["numeric"]}
        for place, name in enumerate(map(str, X.columns)):
            column = X.iloc[:, place]
            if name not in known or pd.api.types.is_numeric_dtype(column.dtype):
                continue
            texts = pd.Series([cell for cell in column if isinstance(cell, str)], dtype=object)
            words = texts[pd.to_numeric(texts, errors="coerce").isna() & ~texts.str.strip().str.lower().isin(NOTHING)]
            if len(words):
                warnings.warn(
                    f"The column {name!r} held numbers at the fit; {len(words)} of {len(column)} cells hold text "
                    f"that is no number, such as {words.iloc[0]!r}, and count as missing.",
                    UserWarning,
                    stacklevel=7,  # the caller of predict of a pipeline
                )

    def _taken(self, X: Any) -> Any:
        """Return the columns of the fit in their order; skrub checks what is not a data frame."""
        names, known = getattr(X, "columns", None), getattr(self, "feature_names_in_", None)
        if names is None or known is None:
            return X
        given, wanted = [str(name) for name in names], [str(name) for name in known]
        if given == wanted or len(set(given)) < len(given):
            return X
        missing = [name for name in wanted if name not in given]
        if missing:
            raise ValueError(_missing(missing, [name for name in given if name not in wanted]))
        places = [given.index(name) for name in wanted]
        return X.iloc[:, places]


def _missing(missing: list[str], others: list[str]) -> str:
    """Return the error message about missing columns, with another column of a similar name."""
    one = len(missing) == 1
    near = nearest(missing[0], others)
    hint = f" The table has {near[0]!r}: rename it if that is {missing[0]!r}." if near else ""
    return (
        f"The table has no column{'' if one else 's'} {listed([repr(name) for name in missing])}, which the model was "
        f"fitted to; add {'it' if one else 'them'}, with missing values where nothing is known.{hint}"
    )


def _check_rows(X: Any) -> None:
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) > 0 and shape[0] == 0:
        raise ValueError("The table has no rows (0 samples); give at least one.")
    if shape is not None and len(shape) == 1:
        raise ValueError(
            f"A {type(X).__name__} of shape {tuple(shape)} was given; a table has two dimensions. For one row give "
            "table.iloc[[0]], for one column table[['name']]."
        )
