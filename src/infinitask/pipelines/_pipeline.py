"""Pipelines that delegate all methods to their model, and a pipeline for tables with mixed columns."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from typing import Any, Self

import sklearn
from sklearn.base import is_outlier_detector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import OneHotEncoder

from infinitask._base.validation import count, flag
from infinitask.estimators._frames import FRAMED, framed, output_of, set_output
from infinitask.fitting._gradients import Relevance
from infinitask.pipelines._passing import PassesOn, where_inside_has
from infinitask.pipelines._tables import as_table


def _with_tasks(name: str, summary: str) -> Any:
    """Wrap a method of the last step as a method of the pipeline that passes all arguments on."""

    def method(self: TaskPipeline, X: Any, *arguments: Any, **params: Any) -> Any:
        return self._asked(name, X, arguments, params)

    method.__name__, method.__qualname__ = name, f"TaskPipeline.{name}"
    method.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array or table (n, d)
        *arguments, **params
            Arguments of the last step: ``quantiles``, ``theta``, ``nu``, …
        """
    return where_inside_has(name)(method)


class TaskPipeline(PassesOn, Pipeline):
    """A pipeline of scikit-learn with all methods and fitted attributes of its last step.

    Methods that take rows X transform them by the previous steps first. ``predict``, ``decision_function`` and similar
    methods take the tasks of the model (``quantiles``, ``theta``, ``nu``), and ``fit`` takes a ``sample_weight`` for
    the model. ``conformalize``, ``predict_interval``, ``roc_curve``, ``relevance_``, ``dual_gap_``, … are available if
    the model has them. Use :func:`make_pipeline` or :func:`tabular` to create it.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, and the model.
    transform_input, memory, verbose
        As in scikit-learn.

    Attributes
    ----------
    target_name_ : str
        The name of y; only if it had one.
    """

    # ------------------------------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the steps in order.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
            Weights of the rows for the last step.
        **params
            Parameters of ``fit`` of the last step, such as ``theta``; and ``<step>__<parameter>``, as in scikit-learn.
        """
        super().fit(as_table(X), y, **self._for_last(params, sample_weight))
        self.__dict__.pop("target_name_", None)
        name = getattr(y, "name", None)
        if name is not None:
            self.target_name_ = str(name)
        return self

    @where_inside_has("fit_predict")
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Fit the steps, and return predictions for the same rows.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
            Weights of the rows for the last step.
        **params
            Tasks of ``predict``, such as ``nu``; and ``<step>__<parameter>`` for the fit, as in scikit-learn.
        """
        known = inspect.signature(self.steps[-1][1].predict).parameters
        tasks = {name: params.pop(name) for name in set(params) & set(known)}
        return self.fit(X, y, sample_weight, **params).predict(X, **tasks)

    def _for_last(self, params: dict[str, Any], sample_weight: Any) -> dict[str, Any]:
        """Return the arguments of a fit, with the name of the last step before those that it takes."""
        if sample_weight is not None:
            params = params | {"sample_weight": sample_weight}
        name, last = self.steps[-1]
        if _routes() or not hasattr(last, "fit"):
            return params
        known = {"sample_weight", *inspect.signature(last.fit).parameters}
        return {f"{name}__{key}" if key in known else key: value for key, value in params.items()}

    # ---------------------------------------------------------------------------------------- predicting
    # the methods of scikit-learn's Pipeline take no arguments for the last step, or only some by name
    predict = _with_tasks("predict", "Return the predictions of the last step.")
    predict_proba = _with_tasks("predict_proba", "Return the class probabilities of the last step.")
    decision_function = _with_tasks("decision_function", "Return the decision function of the last step.")
    score_samples = _with_tasks("score_samples", "Return the scores of the rows by the last step.")

    @where_inside_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Return the score of the last step.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
        **params
            Parameters of ``score`` of the last step, such as ``theta``.
        """
        if params and not _routes():
            weight = {} if sample_weight is None else {"sample_weight": sample_weight}
            return self.steps[-1][1].score(self._encoded(X), y, **weight, **params)
        return super().score(as_table(X), y, sample_weight, **params)

    @where_inside_has("explore")
    def explore(self, X: Any, y: Any = None, *, names: Any = None, title: str | None = None) -> Any:
        """Create an interactive page on which moving the task shows the effects, with the columns as given.

        See :func:`infinitask.report.explore`.

        Parameters
        ----------
        X : array or table (n, d)
            Rows to show, preferably held-out rows.
        y : array (n,) or None
            Their targets or labels.
        names : list of str or None
            Names of the columns; None: those of X.
        title : str or None
        """
        # import by name: pages import pipelines, and imports must be acyclic
        return import_module("infinitask.report").explore(self, as_table(X), y, names=names, title=title)

    def _inside(self) -> Any:
        return self.steps[-1][1] if "steps" in vars(self) else None

    def _asked(self, method: str, X: Any, arguments: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Call a method of the last step; return the pipeline if the method returns the last step."""
        last = self.steps[-1][1]
        if _routes() and not arguments and hasattr(Pipeline, method):
            result = getattr(super(), method)(as_table(X), **params)
        else:
            result = getattr(last, method)(self._encoded(X), *arguments, **params)
        if result is last:
            return self
        kind = output_of(self)  # as requested by ``set_output``; rows have the index of X
        if kind is None or method not in FRAMED:
            return result
        return framed(result, kind, last, method, X, arguments, params)

    def set_output(self, *, transform: Any = None, predict: str | None = None) -> Self:
        """Choose whether predictions, and the outputs of the steps, are arrays or data frames.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            The outputs of the steps, as in scikit-learn.
        predict : {"default", "pandas", "polars"} or None
            Results of ``predict``, ``predict_interval``, ``predict_proba``, ``decision_function`` and
            ``score_samples``. Columns are named by tasks or classes, and rows have the index of X, the table given to
            the pipeline; see ``set_output`` of a model. None: unchanged.
        """
        if transform is not None:
            super().set_output(transform=transform)
        set_output(self, predict=predict)
        return self

    def _encoded(self, X: Any) -> Any:
        """Return X transformed by all steps before the last."""
        X = as_table(X)
        for _, step in self.steps[:-1]:
            if step is not None and step != "passthrough":
                X = step.transform(X)
        return X

    # --------------------------------------------------------------------- other attributes of the model
    @property
    def relevance_(self) -> Relevance:
        """The relevance of each feature of the model, with the names given by the previous steps."""
        last = self.steps[-1][1]
        found: Relevance = last.relevance_
        if hasattr(last, "feature_names_in_") or len(self.steps) == 1:
            return found
        try:
            names = tuple(str(name) for name in self[:-1].get_feature_names_out())
        except (AttributeError, ValueError):  # a step without feature names
            return found
        return replace(found, names=names) if len(names) == len(found.names) else found


def make_pipeline(*steps: Any, memory: Any = None, transform_input: Any = None, verbose: bool = False) -> TaskPipeline:
    """Combine transformers and a model into a pipeline with all methods of the model.

    Parameters
    ----------
    *steps : estimators
        Transformers, and the model. The names of the steps are those of their classes in lower case.
    memory, transform_input, verbose
        As in :func:`sklearn.pipeline.make_pipeline`.

    Returns
    -------
    Pipeline
        A pipeline of scikit-learn with all methods and fitted attributes of its last step.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from infinitask import InfiniteQuantileRegressor, make_pipeline
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(150, random_state=0)
    >>> model = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=10)).fit(X[:100], y[:100])
    >>> model.conformalize(X[100:], y[100:]).predict_interval(X, coverage=0.9).shape
    (150, 2)
    >>> model.predict(X, quantiles=[0.1, 0.9]).shape, model.dual_gap_ <= 1e-4
    ((150, 2), True)
    """
    return TaskPipeline(plain_pipeline(*steps).steps, memory=memory, transform_input=transform_input, verbose=verbose)


def _routes() -> bool:
    """Whether metadata routing of scikit-learn is enabled."""
    return bool(sklearn.get_config().get("enable_metadata_routing", False))


def tabular(
    estimator: Any, *, max_categories: int = 30, text_components: int = 8, indicators: bool = True
) -> TaskPipeline:
    """Create a pipeline for tables with mixed columns: "table" encodes them as numbers, and "model" is the last step.

    skrub's ``TableVectorizer`` encodes each column separately:

    * numbers, also those written as text: missing values are replaced by the median, and a column
      ``missingindicator_…`` marks them if the fit saw any;
    * booleans: 0 and 1, with missing values as for numbers;
    * up to ``max_categories`` categories: a column for each, and one for missing values if the fit saw any. A category
      that the fit did not see is 0 in all of them;
    * more categories, and text: ``text_components`` numbers that are similar for strings with common parts. Level sets
      ignore such columns, and a fit warns: every new text would be unusual;
    * dates, also those written as text: year, month, day, the hour if the column has times of day, and seconds since
      1970; missing values are replaced by the medians of these.

    A column that is empty in the fit is ignored. Numbers are kept to about seven digits. At prediction, the columns of
    a data frame are selected by name: they may be in any order, and other columns are ignored.

    Parameters
    ----------
    estimator : estimator, or pipeline that ends with one
        The model. The other steps of a pipeline come between "table" and "model".
    max_categories : int, default=30
    text_components : int, default=8
    indicators : bool, default=True
        Whether a column marks missing numbers. Use False for level sets, because a rare mark alone makes a row unusual:
        a missing number then counts as an ordinary one.

    Returns
    -------
    Pipeline
        A pipeline of scikit-learn with all methods and fitted attributes of its last step.

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
    max_categories = count("max_categories", max_categories)
    text_components, marks = count("text_components", text_components), flag("indicators", indicators)
    texts = estimator is None or not is_outlier_detector(estimator)
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
    vectorizer = TableEncoder(
        cardinality_threshold=max_categories + 1,
        numeric=SimpleImputer(strategy="median", add_indicator=marks),
        # no category is dropped: an unknown one would be encoded like it
        low_cardinality=OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype="float32"),
        # a fixed seed of its random projection: the same table always has the same encoding
        high_cardinality=StringEncoder(n_components=text_components, random_state=0) if texts else "drop",
        datetime=plain_pipeline(DatetimeEncoder(), SimpleImputer(strategy="median")),
    )
    return TaskPipeline([("table", vectorizer), *between, ("model", estimator)])
