"""Predictions as data frames: columns are named by tasks or classes, rows as those of X."""

from __future__ import annotations

import copy
import inspect
import itertools
from importlib import import_module
from typing import Any

import numpy as np

from infinitask._base.inner_model import inner_model
from infinitask._base.validation import choice

CONFIG = "_sklearn_output_config"
"""The attribute in which scikit-learn stores the choice of ``set_output``; a clone copies it."""

KINDS = ("default", "pandas", "polars")

FRAMED = {
    "predict": "prediction",
    "derivative": "derivative",
    "predict_interval": "interval",
    "predict_proba": "probability",
    "decision_function": "decision",
    "score_samples": "score",
}
"""The methods that may return frames, and the name of a column that no task names."""

TASK_PREFIXES = {
    "quantiles": "q",
    "expectiles": "expectile_",
    "theta": "theta_",
    "nu": "nu_",
    "epsilon": "epsilon_",
    "log_alpha": "log_alpha_",
}
"""The arguments that name tasks, and the prefixes of the columns of their predictions."""


def set_output(self: Any, *, transform: Any = None, predict: str | None = None) -> Any:
    """Choose whether predictions are arrays or data frames with named columns and the index of X.

    It applies to ``predict``, ``predict_interval``, ``predict_proba``, ``decision_function``, ``score_samples`` and
    ``derivative``. One number for each row is a series, several are a frame. The columns of levels are "q0.05", "q0.5",
    …, those of other tasks "theta_0.5", "nu_0.1", …; intervals are "low" and "high", of several coverages "low_0.9",
    "high_0.9", …; probabilities, and decisions between more than two classes, have the names of the classes. Labels for
    several lists of costs are "theta_0", "theta_1", … in their order. A repeated name is numbered: "q0.5", "q0.5_2".
    Predictions for Dask collections are Dask arrays in any case. Lists of curves with their own points, and decisions
    (n, q, K) for several lists of costs, do not change.

    Parameters
    ----------
    transform : None
        Models do not transform; a pipeline passes it to its steps.
    predict : {"default", "pandas", "polars"} or None
        "default": arrays. None: unchanged. The global ``transform_output`` of scikit-learn affects transformers only.

    Examples
    --------
    >>> import pandas as pd
    >>> from infinitask import InfiniteQuantileRegressor
    >>> X = pd.DataFrame({"hour": [1.0, 2.0, 3.0, 4.0]}, index=["a", "b", "c", "d"])
    >>> model = InfiniteQuantileRegressor(n_nodes=5).fit(X, X["hour"]).set_output(predict="pandas")
    >>> model.predict(X, quantiles=[0.1, 0.9]).columns.tolist(), model.predict_interval(X).columns.tolist()
    (['q0.1', 'q0.9'], ['low', 'high'])
    >>> model.predict(X).index.tolist()
    ['a', 'b', 'c', 'd']
    """
    if transform is not None:
        raise ValueError(
            f"set_output(transform={transform!r}) was given to {type(self).__name__}, which does not transform; "
            "set_output(predict='pandas') makes frames of predictions."
        )
    if predict is not None:
        _library(choice("predict", predict, KINDS))
        setattr(self, CONFIG, {**getattr(self, CONFIG, {}), "predict": predict})
    return self


def output_of(model: Any) -> str | None:
    """The library whose frames a model returns; None: arrays."""
    kind: str | None = vars(model).get(CONFIG, {}).get("predict")
    return None if kind == "default" else kind


def as_arrays(model: Any) -> Any:
    """The model itself, or a copy that returns arrays if the model returns frames."""
    if output_of(model) is None:
        return model
    plain = copy.copy(model)
    setattr(plain, CONFIG, {**getattr(model, CONFIG), "predict": "default"})
    return plain


def framed(predicted: Any, kind: str, model: Any, method: str, X: Any, arguments: Any, options: Any) -> Any:
    """Predictions as a frame, or as a series if there is one number for each row.

    Parameters
    ----------
    predicted : array (n,), (n, q) or (n, q, 2)
        Anything else, such as a list of curves, is returned unchanged.
    kind : {"pandas", "polars"}
    model : estimator
        Whose method was called.
    method : str
        A key of ``FRAMED``.
    X : array or table (n, d)
    arguments, options
        Of the call, after X.
    """
    if isinstance(predicted, list) or (np.ndim(predicted) == 3 and method != "predict_interval"):
        return predicted
    values = np.asarray(predicted)
    names = _distinct(_names(values, model, method, arguments, options))
    library = _library(kind)
    columns = dict(zip(names, values.reshape(len(values), -1).T, strict=True))
    index = {"index": X.index} if kind == "pandas" and isinstance(X, library.DataFrame) else {}
    frame = library.DataFrame(columns, **index)
    return frame[names[0]] if values.ndim == 1 else frame


def _library(kind: str) -> Any:
    try:
        return None if kind == "default" else import_module(kind)
    except ImportError as error:
        raise ImportError(
            f"Frames of {kind} were asked for, and {kind} is not installed: "
            f"pip install {'infinitask[table]' if kind == 'pandas' else kind}"
        ) from error


def _names(values: Any, model: Any, method: str, arguments: Any, options: Any) -> list[str]:
    """The names of the columns of predictions."""
    core = inner_model(model)
    classes = [str(label) for label in getattr(core, "classes_", ())]
    if method == "predict_proba" or (method == "decision_function" and len(classes) > 2):
        return classes
    plain = _numbered(values, FRAMED[method])
    if not hasattr(core, method):  # a method of another wrapper
        return plain
    asked = inspect.signature(getattr(core, method)).bind(None, *arguments, **options)
    asked.apply_defaults()
    if method == "predict_interval":
        coverage = asked.arguments["coverage"]
        if np.ndim(coverage) == 0:
            return ["low", "high"]
        return [f"{end}_{_number(level)}" for level in np.ravel(coverage) for end in ("low", "high")]
    task = next((name for name in asked.arguments if name in TASK_PREFIXES), None)
    tasks: Any = None if task is None else asked.arguments[task]
    one_label = values.ndim == 1 and method == "predict" and len(classes) > 0
    one_decision = values.ndim == 1 and method == "decision_function" and tasks is None
    if task is None or one_label or one_decision or asked.arguments.get("per_sample", False):
        return plain
    if len(classes) > 2:  # a list of costs is too long for a name
        return _numbered(values, TASK_PREFIXES[task].rstrip("_"))
    fitted = getattr(core, f"{task}_", None)  # the points of curves
    if fitted is not None and np.ndim(tasks) == 2:  # points of each row
        return plain
    if tasks is None:  # the default of the constructor, or of the fit
        tasks = getattr(core, task, None) if fitted is None else fitted
    each = [tasks] if values.ndim == 1 else list(np.asarray(tasks))
    return [TASK_PREFIXES[task] + ",".join(_number(part) for part in np.ravel(one)) for one in each]


def _distinct(names: list[str]) -> list[str]:
    """Return the names, with repeated ones numbered from 2 on."""
    found: list[str] = []
    for name in names:
        numbered = (f"{name}_{k}" for k in itertools.count(2))
        found.append(next(each for each in itertools.chain([name], numbered) if each not in found))
    return found


def _numbered(values: Any, name: str) -> list[str]:
    return [name] if values.ndim == 1 else [f"{name}_{j}" for j in range(int(np.prod(values.shape[1:])))]


def _number(value: Any) -> str:
    return f"{float(value):.12g}"
