"""A model for tables as they are: numbers, categories, text, dates and missing values."""

from __future__ import annotations

from typing import Any

from sklearn.base import is_outlier_detector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import OneHotEncoder

from infinitask._base.validation import count, flag
from infinitask.pipelines._pipeline import TaskPipeline


def tabular(
    estimator: Any, *, max_categories: int = 30, text_components: int = 8, indicators: bool = True
) -> TaskPipeline:
    """A model for tables with mixed columns: a first step, "table", makes numbers of them; the last is "model".

    skrub's ``TableVectorizer`` looks at each column by itself:

    * numbers, also those written as text: missing ones become the median, and where the fit saw missing ones, a column
      ``missingindicator_…`` says so;
    * booleans: 0 and 1, with missing ones as for numbers;
    * up to ``max_categories`` categories: a column for each, and one for missing where the fit saw that. A category
      that the fit has not seen is 0 in all of them;
    * more categories, and text: ``text_components`` numbers that are alike for strings with common parts. Level sets
      leave such columns out, and a fit warns: every new text would be unusual;
    * dates, also those written as text: year, month, day, hour, … where they vary in kind, and seconds since 1970;
      missing ones become the medians of these.

    A column that is empty in the fit is left out. Numbers are kept to about seven digits. At predict time the columns
    of a data frame are taken by their names: they may stand in any order, and others beside them.

    Parameters
    ----------
    estimator : estimator, or pipeline that ends with one
        The model. Steps of a pipeline stand between "table" and "model".
    max_categories : int, default=30
    text_components : int, default=8
    indicators : bool, default=True
        Whether missing numbers are marked by a column. For level sets, where a mark that is rare makes a row unusual by
        itself, False: a missing number is then an ordinary one.

    Returns
    -------
    Pipeline
        Of scikit-learn, with all methods and fitted attributes of its last step.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from infinitask import InfiniteQuantileRegressor, tabular
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"area": rng.uniform(30, 200, 120), "city": rng.choice(["Oslo", "Rome"], 120)})
    >>> X.loc[3, "area"] = np.nan
    >>> price = 3.0 * X["area"].fillna(100.0) + 90.0 * (X["city"] == "Oslo") + rng.normal(0.0, 20.0, 120)
    >>> model = tabular(InfiniteQuantileRegressor(n_nodes=10)).fit(X, price)
    >>> model.predict(X, quantiles=[0.1, 0.9]).shape
    (120, 2)
    >>> model.relevance_.names
    ('area', 'missingindicator_area', 'city_Oslo', 'city_Rome')
    """
    between: list[tuple[str, Any]] = []
    if isinstance(estimator, Pipeline):
        *between, (_, estimator) = estimator.steps
    vectorizer = _vectorizer(
        count("max_categories", max_categories),
        count("text_components", text_components),
        marks=flag("indicators", indicators),
        texts=estimator is None or not is_outlier_detector(estimator),
    )
    return TaskPipeline([("table", vectorizer), *between, ("model", estimator)])


def _vectorizer(max_categories: int, text_components: int, *, marks: bool, texts: bool) -> Any:
    try:
        from skrub import DatetimeEncoder, StringEncoder

        from infinitask.pipelines._table_step import TableEncoder
    except ImportError as error:
        raise ImportError(
            "A model of tables needs skrub and pandas, which are not installed: pip install infinitask[table]"
        ) from error
    except RuntimeError as error:  # scikit-learn 1.6 beside array-api-compat and SciPy 1.14 or later
        raise ImportError(
            "skrub cannot be imported beside this scikit-learn; install scikit-learn 1.7 or later, or set the variable "
            "SCIPY_ARRAY_API=1 of the environment."
        ) from error
    return TableEncoder(
        cardinality_threshold=max_categories + 1,
        numeric=SimpleImputer(strategy="median", add_indicator=marks),
        # no category is dropped: one that is not known would look like it
        low_cardinality=OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype="float32"),
        # a fixed seed of its random projection: the same table is encoded in the same way
        high_cardinality=StringEncoder(n_components=text_components, random_state=0) if texts else "drop",
        datetime=plain_pipeline(DatetimeEncoder(), SimpleImputer(strategy="median")),
    )
