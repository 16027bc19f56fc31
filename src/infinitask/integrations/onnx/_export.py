"""The file: names of inputs and outputs, metadata, and the comparison with the predictions of Python."""

from __future__ import annotations

import json
import os
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray, to_host
from infinitask._base.validation import choice, flag
from infinitask.estimators import CrossConformal
from infinitask.features import KernelMap
from infinitask.features._maps import FourierMap
from infinitask.field import Field
from infinitask.integrations.onnx._answers import Question, answer, question
from infinitask.integrations.onnx._graph import OPSET, Graph, Tensor
from infinitask.integrations.onnx._steps import changed, opened, undone
from infinitask.integrations.onnx._target import in_units
from infinitask.pipelines import TransformedTarget

LARGEST_DIFFERENCE = 1e-6
"""From Python, relative to the largest prediction: more is an error of the export."""

TIMES_OWN_ROUNDING = 4.0
"""How much more than Python from itself a graph may differ: the features of many close tasks are rounded by 1e-6, and
differently for a task that is asked alone."""

CHECKED = 50
"""Rows and tasks at which predictions are compared."""


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float64", check: bool = True
) -> Any:
    """Write a fitted model as an ONNX graph, which any runtime evaluates without Python.

    The graph maps inputs ``X`` (n, d) and tasks ``theta`` (q,) to ``h`` (n, q), for any n and q. It answers what the
    model answers: ``predict(X, quantiles)`` of quantiles, calibrated and in order where the model's are;
    ``predict`` of expectiles, SVR, kernel ridge and :class:`~infinitask.InfiniteTaskEstimator`; and
    ``decision_function(X, theta)`` or ``(X, nu)`` of costs and level sets. A row with a NaN or an infinite number, and
    a task that the model does not know, are errors in Python and NaN here.

    Parameters
    ----------
    model : estimator, pipeline or Field
        Fitted. Of a pipeline, the scalers and imputers of scikit-learn before the model are a part of the graph. Of a
        model that tunes itself, and of a search, the model that was chosen. A field is h alone.
    path : str, path or None
        Where to write it, ``model.onnx`` say; None: nowhere.
    dtype : {"float64", "float32"}, default="float64"
        Of X, θ and h. The graph computes in double precision in both cases: the features of smooth kernels need it.
    check : bool, default=True
        Whether to run the graph once and compare it with Python. A difference is an error if it is more than 1e-6 of
        the largest answer, and more than four times that of Python from itself, where it is asked for each task alone
        and for all of them together: features of many close tasks are rounded, in Python too.

    Returns
    -------
    onnx.ModelProto
        With metadata: the class, what is answered, the names of inputs and tasks, the range of θ.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.integrations.onnx import to_onnx
    >>> X, y = make_sine(60, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    >>> graph = onnxruntime.InferenceSession(to_onnx(model).SerializeToString())
    >>> levels = np.array([0.1, 0.5, 0.9])
    >>> (h,) = graph.run(None, {"X": X, "theta": levels})
    >>> bool(np.allclose(h, model.predict(X, levels), atol=1e-6))
    True
    """
    onnx, helper = _library("onnx"), _library("onnx.helper")
    choice("dtype", dtype, ("float64", "float32"))
    if flag("check", check):
        _library("onnxruntime")
    if not isinstance(model, Field):
        check_is_fitted(model)
    place = _place(path)
    asked, core = _asked(model)
    if isinstance(opened(model)[1], CrossConformal) or hasattr(core, "calibration_"):
        warnings.warn(
            "The graph answers predict(X, quantiles); conformal intervals are not in it. Ask Python for these.",
            UserWarning,
            stacklevel=2,
        )
    graph = Graph(double=dtype == "float64")
    X, theta = Tensor(graph, "X"), Tensor(graph, "theta")
    tasks = theta if dtype == "float64" else theta.cast(np.float64)
    several = _task_coordinates(core) > 1
    h = _whole(model, X if dtype == "float64" else X.cast(np.float64), tasks if several else tasks.with_axis(1))
    graph.renamed(h if dtype == "float64" else h.cast(np.float32), "h")
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shape = ["q", _task_coordinates(core)] if several else ["q"]
    body = helper.make_graph(
        graph.nodes,
        "infinitask",
        [
            helper.make_tensor_value_info("X", kind, ["n", _columns(model)]),
            helper.make_tensor_value_info("theta", kind, shape),
        ],
        [helper.make_tensor_value_info("h", kind, ["n", "q"])],
        initializer=graph.constants,
    )
    # the oldest format of files that goes with the operators
    written = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="infinitask"
    )
    _describe(written, model, core, asked)
    onnx.checker.check_model(written, full_check=True)
    if check:
        _compare(written, model, asked, dtype)
    if place is not None:
        place.write_bytes(written.SerializeToString())
    return written


def _place(path: Any) -> Path | None:
    """Where to write, checked before anything is computed."""
    if path is None:
        return None
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{type(path).__name__} was given as the path; it must be a text or a path.")
    place = Path(path).resolve()
    if not place.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {os.fspath(place.parent)!r} to write to; make it first.")
    return place


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(
            f"Models are written as graphs of ONNX, which needs {name.partition('.')[0]}; install the extra with "
            "`pip install infinitask[onnx]`. to_onnx(..., check=False) needs no onnxruntime."
        ) from error


# ------------------------------------------------------------------------------------------------------- the graph
def _asked(model: Any) -> tuple[Question, Any]:
    """What the graph answers, and a model inside that knows its tasks."""
    if isinstance(model, Field):
        return question(model), model
    _, core = opened(model)
    inner = _inside(core)
    return (question(core), core) if inner is None else (Question("predict", "quantiles"), _asked(inner)[1])


def _inside(core: Any) -> Any:
    """A model that another one asks; None where there is none."""
    if isinstance(core, CrossConformal):
        return core.estimators_[0]
    return core.estimator_ if isinstance(core, TransformedTarget) else None


def _whole(model: Any, X: Tensor, theta: Tensor) -> Tensor:
    """The predictions, with the steps of a pipeline before them."""
    if isinstance(model, Field):
        return answer(model, X, theta)
    steps, core = opened(model)
    given = X
    for step in steps:
        X = changed(step, X)
    if isinstance(core, CrossConformal):
        each = [_whole(one, X, theta) for one in core.estimators_]
        values = each[0]
        for one in each[1:]:
            values = values + one
        values = values * (1.0 / len(each))
    elif isinstance(core, TransformedTarget):
        values = in_units(core, _whole(core.estimator_, X, theta if core.increasing_ else 1.0 - theta))
    else:
        values = answer(core, X, theta)
    if not steps:
        return values
    # a step that clips would make a number of what Python refuses
    infinite = given.graph("IsInf", given).where(np.nan, 0.0)
    return values + infinite.sum(axis=1, keepdims=True)


def _columns(model: Any) -> int:
    """How many columns X has."""
    if not isinstance(model, Field):
        steps, core = opened(model)
        inner = _inside(core)
        return int([*steps, core][0].n_features_in_) if steps or inner is None else _columns(inner)
    left = getattr(model.left, "map", model.left)
    if isinstance(left, KernelMap):
        return int(left.landmarks.shape[1])
    if isinstance(left, FourierMap):
        return int(left.frequencies.shape[0])
    raise TypeError(
        "A field of a Gram matrix that was computed beforehand does not know its columns; export the model."
    )


def _task_coordinates(core: Any) -> int:
    if not isinstance(core, Field):
        return int(core._support[0].size)
    return int(np.shape(core.psi.landmarks[0][0])[1])


def _describe(written: Any, model: Any, core: Any, asked: Question) -> None:
    """Write down what a user of the graph needs to know."""
    from infinitask import __version__

    written.producer_version = __version__
    call = f"field_(X, {asked.tasks})" if isinstance(core, Field) else f"{asked.method}(X, {asked.tasks})"
    known: dict[str, str] = {"class": type(opened(model)[1]).__name__, "infinitask": __version__, "h": call}
    known["theta"] = asked.tasks
    if not isinstance(core, Field):
        low, high = (np.asarray(end, dtype=float).tolist() for end in core._support)
        known |= {"theta_low": json.dumps(low), "theta_high": json.dumps(high)}
        if _knows_nodes_only(core):
            known["tasks"] = json.dumps(np.unique(core.nodes_).tolist())
        if hasattr(core, "classes_"):
            known["classes"] = json.dumps([str(label) for label in core.classes_])
        names = getattr(model, "feature_names_in_", None)
        if names is not None:
            known["inputs"] = json.dumps([str(name) for name in names])
    written.doc_string = (
        f"h = {call} of {known['class']}: rows of X by tasks theta. NaN: an input or task is not known."
    )
    for name, value in known.items():
        entry = written.metadata_props.add()
        entry.key, entry.value = name, value


# -------------------------------------------------------------------------------------------------- the comparison
def _compare(written: Any, model: Any, asked: Question, dtype: str) -> None:
    """Run the graph and compare it with Python; an error where they differ by more than Python does from itself."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(written.SerializeToString(), options, providers=["CPUExecutionProvider"])
    X, tasks = _rows(model).astype(dtype), _some_tasks(model)
    (found,) = session.run(None, {"X": X, "theta": tasks.astype(dtype)})
    # a task in single precision is near a node, and Python wants the node
    theta = tasks if _knows_nodes_only(model) else tasks.astype(dtype).astype(np.float64)
    X = X.astype(np.float64)
    expected = _in_python(model, X, theta, asked)
    alone = np.concatenate([_in_python(model, X, theta[k : k + 1], asked) for k in range(len(theta))], axis=1)
    largest = float(np.max(np.abs(expected))) or 1.0
    allowed = max(LARGEST_DIFFERENCE * largest, TIMES_OWN_ROUNDING * float(np.max(np.abs(alone - expected))))
    if not np.max(np.abs(found - expected)) <= allowed:
        raise ArithmeticError(
            f"The graph differs from Python by {np.max(np.abs(found - expected)):.2g}, where the largest answer is "
            f"{largest:.2g}. That is an error of the export, or of the runtime; check=False writes the graph all the "
            "same."
        )


def _in_python(model: Any, X: HostArray, theta: HostArray, asked: Question) -> HostArray:
    """The predictions of Python, (n, q)."""
    if isinstance(model, Field):
        return model(X, theta)
    steps, core = opened(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of names: the graph knows columns by their places
        for step in steps:
            X = step.transform(X)
        values = getattr(core, asked.method)(X, **{asked.tasks: theta})
    return np.asarray(values).reshape(X.shape[0], len(theta))


def _rows(model: Any) -> HostArray:
    """Rows that the model has seen, as they were before the steps of its pipeline."""
    if isinstance(model, Field):
        left = getattr(model.left, "map", model.left)
        return to_host(left.landmarks)[:CHECKED] if isinstance(left, KernelMap) else np.zeros((1, _columns(model)))
    steps, core = opened(model)
    inner = _inside(core)
    if inner is not None:
        X = _rows(inner)
    elif core._looked_at is None:  # a Gram matrix
        return 1.0 + np.eye(3, _columns(model))
    else:
        X = core._looked_at[0][:CHECKED]
    for step in reversed(steps):
        X = undone(step, X)
    return np.asarray(X)


def _some_tasks(model: Any) -> HostArray:
    if isinstance(model, Field):
        return np.asarray(model.psi.landmarks[0][0][:CHECKED].squeeze(axis=1))
    nodes = np.unique(_asked(model)[1].nodes_, axis=0)
    return np.asarray(nodes[np.linspace(0, len(nodes) - 1, min(CHECKED, len(nodes))).astype(int)])


def _knows_nodes_only(model: Any) -> bool:
    core = _asked(model)[1]
    field = core if isinstance(core, Field) else core.field_
    return bool(field.knows_nodes_only or field.psi.kernel.describe().kind == "matrix")
