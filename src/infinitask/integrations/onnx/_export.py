"""The ONNX file: names of inputs and outputs, metadata, and the comparison with the predictions of Python."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np
from onnx import helper
from onnx.checker import check_model
from sklearn.utils.validation import check_is_fitted

from infinitask._base.arrays import HostArray
from infinitask._base.extras import needed
from infinitask._base.validation import choice, flag
from infinitask.estimators import CrossConformal
from infinitask.field import Field
from infinitask.integrations.onnx._answers import Bare, Opened, predictions, undone
from infinitask.integrations.onnx._graph import OPSET, Graph, Tensor
from infinitask.persistence._file import place_for

LARGEST_DIFFERENCE = 1e-6
"""Tolerance of the difference from Python, relative to the largest prediction: more is an error of the export."""

TIMES_OWN_ROUNDING = 4.0
"""Tolerance relative to the difference of Python from itself: the features of many close tasks are rounded by 1e-6, and
differently if a task is predicted alone."""

CHECKED = 50
"""The number of rows and tasks at which predictions are compared."""


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float64", check: bool = True
) -> Any:
    """Export a fitted model as an ONNX graph, which any runtime evaluates without Python.

    The graph maps inputs ``X`` (n, d) and tasks ``theta`` (q,) to ``h`` (n, q), for any n and q. Its output equals the
    predictions of the model: ``predict(X, quantiles)`` of quantiles, calibrated and sorted if those of the model are;
    ``predict`` of expectiles, SVR, kernel ridge and :class:`~infinitask.InfiniteTaskEstimator`; and
    ``decision_function(X, theta)`` or ``(X, nu)`` of costs and level sets. A row with a NaN or an infinite number, and
    a task that the model does not know, raise errors in Python and give NaN here.

    Parameters
    ----------
    model : estimator, pipeline or Field
        A fitted model. For a pipeline, the graph includes the scalers and imputers of scikit-learn before the model.
        For a self-tuned model or a search, it is the graph of the selected model. A field gives h alone.
    path : str, path or None
        Path of the file, such as ``model.onnx``; None: no file is written.
    dtype : {"float64", "float32"}, default="float64"
        Type of X, θ and h. The graph computes in double precision in both cases: the features of smooth kernels need
        it.
    check : bool, default=True
        Whether to run the graph once and compare it with Python. Raise an error if a difference exceeds both 1e-6 of
        the largest prediction and four times the difference of Python from itself, between each task predicted alone
        and all of them together: features of many close tasks are rounded, in Python too.

    Returns
    -------
    onnx.ModelProto
        With metadata: the class, the predicted quantity, the names of inputs and tasks, the range of θ.

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
    choice("dtype", dtype, ("float64", "float32"))
    flag("check", check)
    if not isinstance(model, Field):
        check_is_fitted(model)
    place = None if path is None else place_for(path, "to_onnx(model, path)")
    opened = Opened.of(model)
    if isinstance(opened.core, CrossConformal) or hasattr(opened.innermost, "calibration_"):
        warnings.warn(
            "The graph answers predict(X, quantiles); conformal intervals are not in it. Ask Python for these.",
            UserWarning,
            stacklevel=2,
        )
    graph, coordinates = Graph(double=dtype == "float64"), int(opened.innermost._support[0].size)
    X, theta = (Tensor(graph, name).real() for name in ("X", "theta"))
    h = predictions(opened, X, theta if coordinates > 1 else theta.with_axis(1))
    graph.nodes.append(helper.make_node("Identity", [h.cast(dtype).name], ["h"], name="h"))
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shapes = {"X": ["n", opened.columns], "theta": ["q", coordinates] if coordinates > 1 else ["q"], "h": ["n", "q"]}
    *inputs, output = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    body = helper.make_graph(graph.nodes, "infinitask", inputs, [output], initializer=graph.constants)
    # the oldest file format that supports the operators
    written = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8, producer_name="infinitask"
    )
    _describe(written, opened, getattr(model, "feature_names_in_", None))
    check_model(written, full_check=True)
    if check:
        _compare(written, opened, dtype)
    if place is not None:
        place.write_bytes(written.SerializeToString())
    return written


def _describe(written: Any, opened: Opened, names: Any) -> None:
    """Add the metadata that a user of the graph needs."""
    from infinitask import __version__

    core, call = opened.innermost, f"{opened.method}(X, {opened.tasks})"
    cls = "Field" if isinstance(core, Bare) else type(opened.core).__name__
    low, high = (json.dumps(np.asarray(end, dtype=float).tolist()) for end in core._support)
    known = {"class": cls, "infinitask": __version__, "h": call, "theta": opened.tasks}
    known |= {"theta_low": low, "theta_high": high}
    if opened.knows_nodes_only:
        known["tasks"] = json.dumps(np.unique(core.nodes_).tolist())
    for name, labels in (("classes", getattr(core, "classes_", None)), ("inputs", names)):
        if labels is not None:
            known[name] = json.dumps([str(label) for label in labels])
    written.producer_version = __version__
    written.doc_string = f"h = {call} of {cls}: rows of X by tasks theta. NaN: an input or task is not known."
    helper.set_model_props(written, known)


# -------------------------------------------------------------------------------------------------- the comparison
def _compare(written: Any, opened: Opened, dtype: str) -> None:
    """Run the graph and compare it with Python; raise an error if they differ by more than Python from itself."""
    runs = "to_onnx(..., check=False) runs nothing; otherwise the graph is run by onnxruntime"
    onnxruntime = needed("onnxruntime", runs, "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(written.SerializeToString(), options, providers=["CPUExecutionProvider"])
    nodes = np.unique(opened.innermost.nodes_, axis=0)
    tasks = nodes[np.linspace(0, len(nodes) - 1, min(CHECKED, len(nodes))).astype(int)]
    X = _rows(opened).astype(dtype)
    (found,) = session.run(None, {"X": X, "theta": tasks.astype(dtype)})
    # a task in single precision is near a node, and Python needs the exact node
    theta = tasks if opened.knows_nodes_only else tasks.astype(dtype).astype(np.float64)
    X = X.astype(np.float64)
    expected = _in_python(opened, X, theta)
    alone = np.concatenate([_in_python(opened, X, theta[k : k + 1]) for k in range(len(theta))], axis=1)
    largest = float(np.max(np.abs(expected))) or 1.0
    allowed = max(LARGEST_DIFFERENCE * largest, TIMES_OWN_ROUNDING * float(np.max(np.abs(alone - expected))))
    if not np.max(np.abs(found - expected)) <= allowed:
        raise ArithmeticError(
            f"The graph differs from Python by {np.max(np.abs(found - expected)):.2g}, where the largest answer is "
            f"{largest:.2g}. That is an error of the export, or of the runtime; check=False writes the graph all the "
            "same."
        )


def _in_python(opened: Opened, X: HostArray, theta: HostArray) -> HostArray:
    """The predictions of Python, (n, q)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those about names: the graph knows columns by position
        for step in opened.steps:
            X = step.transform(X)
        values = getattr(opened.core, opened.method)(X, **{opened.tasks: theta})
    return np.asarray(values).reshape(X.shape[0], len(theta))


def _rows(opened: Opened) -> HostArray:
    """Training rows of the model, as they were before the steps of its pipeline."""
    if opened.inside:
        X = _rows(opened.inside[0])
    elif opened.core._looked_at is None:  # a Gram matrix, or random features
        return 1.0 + np.eye(3, opened.columns)
    else:
        X = opened.core._looked_at[0][:CHECKED]
    for step in reversed(opened.steps):
        X = undone(step, X)
    return np.asarray(X)
