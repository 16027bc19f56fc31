"""A fitted model as an ONNX graph, which predicts without Python (extra "onnx").

:func:`to_onnx` writes (X, θ) ↦ h(x)(θ) with operators of the standard alone; what a model does to h afterwards, such as
a shift of decisions, calibrated levels or curves put in order, is in the graph as well.

* :mod:`~infinitask.integrations.onnx._graph` has tensors that are added and multiplied as arrays are;
* :mod:`~infinitask.integrations.onnx._kernels` writes a kernel from its description, and φ, ψ and the bias;
* :mod:`~infinitask.integrations.onnx._answers` says what a model predicts, with the steps of its pipeline;
* :mod:`~infinitask.integrations.onnx._export` is the file: names, metadata, and the comparison with Python.
"""

from infinitask._base.extras import needed

needed("onnx", "infinitask.integrations.onnx writes graphs of ONNX", "onnx")

from ._export import to_onnx  # noqa: E402 - its modules import onnx

__all__ = ["to_onnx"]
