"""Pipelines that pass every question on to their model, and one for tables with mixed columns."""

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
    """A method of the last step as one of the pipeline, which hands all arguments on."""

    def method(self: TaskPipeline, X: Any, *arguments: Any, **params: Any) -> Any:
        return self._asked(name, X, arguments, params)

    method.__name__, method.__qualname__ = name, f"TaskPipeline.{name}"
    method.__doc__ = f"""{summary}

        Parameters
        ----------
        X : array or table (n, d)
        *arguments, **params
            Of the last step: ``quantiles``, ``theta``, ``nu``, …
        """
    return where_inside_has(name)(method)


class TaskPipeline(PassesOn, Pipeline):
    """A pipeline of scikit-learn with all methods and fitted attributes of its last step.

    What is asked with rows X sends them through the steps before. ``predict``, ``decision_function`` and the like take
    the tasks that the model takes (``quantiles``, ``theta``, ``nu``), ``fit`` a ``sample_weight`` for the model, and
    ``conformalize``, ``predict_interval``, ``roc_curve``, ``relevance_``, ``dual_gap_``, … are there where the model
    has them. :func:`make_pipeline` and :func:`tabular` make it.

    Parameters
    ----------
    steps : list of (str, estimator)
        Transformers, and the model.
    transform_input, memory, verbose
        As in scikit-learn.

    Attributes
    ----------
    target_name_ : str
        What y was called; only where it had a name.
    """

    # ------------------------------------------------------------------------------------------- fitting
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the steps one after the other.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
            For the last step.
        **params
            What ``fit`` of the last step takes by name, such as ``theta``; and ``<step>__<parameter>``, as in
            scikit-learn.
        """
        super().fit(as_table(X), y, **self._for_last(params, sample_weight))
        self.__dict__.pop("target_name_", None)
        name = getattr(y, "name", None)
        if name is not None:
            self.target_name_ = str(name)
        return self

    @where_inside_has("fit_predict")
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """Fit the steps, and predict the same rows.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
            For the last step.
        **params
            Tasks of ``predict``, such as ``nu``; and ``<step>__<parameter>`` for the fit, as in scikit-learn.
        """
        known = inspect.signature(self.steps[-1][1].predict).parameters
        tasks = {name: params.pop(name) for name in set(params) & set(known)}
        return self.fit(X, y, sample_weight, **params).predict(X, **tasks)

    def _for_last(self, params: dict[str, Any], sample_weight: Any) -> dict[str, Any]:
        """Arguments of a fit, in which those that the last step takes by name are under its name."""
        if sample_weight is not None:
            params = params | {"sample_weight": sample_weight}
        name, last = self.steps[-1]
        if _routes() or not hasattr(last, "fit"):
            return params
        known = {"sample_weight", *inspect.signature(last.fit).parameters}
        return {f"{name}__{key}" if key in known else key: value for key, value in params.items()}

    # ---------------------------------------------------------------------------------------- predicting
    # scikit-learn's own take no arguments for the last step, or only some by name
    predict = _with_tasks("predict", "What the last step predicts for X.")
    predict_proba = _with_tasks("predict_proba", "The probabilities that the last step gives to the classes.")
    decision_function = _with_tasks("decision_function", "The decision function of the last step.")
    score_samples = _with_tasks("score_samples", "The scores that the last step gives to rows.")

    @where_inside_has("score")
    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> Any:
        """The score of the last step.

        Parameters
        ----------
        X : array or table (n, d)
        y : array (n,) or None
        sample_weight : array (n,) or None
        **params
            What ``score`` of the last step takes by name, such as ``theta``.
        """
        if params and not _routes():
            weight = {} if sample_weight is None else {"sample_weight": sample_weight}
            return self.steps[-1][1].score(self._encoded(X), y, **weight, **params)
        return super().score(as_table(X), y, sample_weight, **params)

    @where_inside_has("explore")
    def explore(self, X: Any, y: Any = None, *, names: Any = None, title: str | None = None) -> Any:
        """A page in which a person moves the task and sees the consequences, with the columns as they were given.

        See :func:`infinitask.report.explore`.

        Parameters
        ----------
        X : array or table (n, d)
            Rows to look at, best not those of the fit.
        y : array (n,) or None
            Their targets or labels.
        names : list of str or None
            Of the columns; None: their own.
        title : str or None
        """
        # by name: pages know pipelines, and imports point one way
        return import_module("infinitask.report").explore(self, as_table(X), y, names=names, title=title)

    def _inside(self) -> Any:
        return self.steps[-1][1] if "steps" in vars(self) else None

    def _asked(self, method: str, X: Any, arguments: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """The answer of the last step; it is the pipeline where the last step answers with itself."""
        last = self.steps[-1][1]
        if _routes() and not arguments and hasattr(Pipeline, method):
            answer = getattr(super(), method)(as_table(X), **params)
        else:
            answer = getattr(last, method)(self._encoded(X), *arguments, **params)
        if answer is last:
            return self
        kind = output_of(self)  # as ``set_output`` wants it: rows are named as those of X
        if kind is None or method not in FRAMED:
            return answer
        return framed(answer, kind, last, method, X, arguments, params)

    def set_output(self, *, transform: Any = None, predict: str | None = None) -> Self:
        """Choose whether answers, and what steps hand on, are arrays or data frames.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            For the steps, as in scikit-learn.
        predict : {"default", "pandas", "polars"} or None
            For ``predict``, ``predict_interval``, ``predict_proba``, ``decision_function`` and ``score_samples``:
            columns are named by what was asked, rows as those of X, the table that the pipeline is given; see
            ``set_output`` of a model. None: as it is.
        """
        if transform is not None:
            super().set_output(transform=transform)
        set_output(self, predict=predict)
        return self

    def _encoded(self, X: Any) -> Any:
        """X as the last step takes it."""
        X = as_table(X)
        for _, step in self.steps[:-1]:
            if step is not None and step != "passthrough":
                X = step.transform(X)
        return X

    # ------------------------------------------------------------------------------- what else the model has
    @property
    def relevance_(self) -> Relevance:
        """Which features of the model matter, under the names that the steps before gave them."""
        last = self.steps[-1][1]
        found: Relevance = last.relevance_
        if hasattr(last, "feature_names_in_") or len(self.steps) == 1:
            return found
        try:
            names = tuple(str(name) for name in self[:-1].get_feature_names_out())
        except (AttributeError, ValueError):  # a step that makes no names
            return found
        return replace(found, names=names) if len(names) == len(found.names) else found


def make_pipeline(*steps: Any, memory: Any = None, transform_input: Any = None, verbose: bool = False) -> TaskPipeline:
    """Transformers and a model as one model, which answers every question that the last step answers.

    Parameters
    ----------
    *steps : estimators
        Transformers, and the model. Their names are those of their classes, in small letters.
    memory, transform_input, verbose
        As in :func:`sklearn.pipeline.make_pipeline`.

    Returns
    -------
    Pipeline
        Of scikit-learn, with all methods and fitted attributes of its last step.

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
    """Whether scikit-learn decides which step sees which metadata."""
    return bool(sklearn.get_config().get("enable_metadata_routing", False))


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
        # no category is dropped: one that is not known would look like it
        low_cardinality=OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype="float32"),
        # a fixed seed of its random projection: the same table is encoded in the same way
        high_cardinality=StringEncoder(n_components=text_components, random_state=0) if texts else "drop",
        datetime=plain_pipeline(DatetimeEncoder(), SimpleImputer(strategy="median")),
    )
    return TaskPipeline([("table", vectorizer), *between, ("model", estimator)])
