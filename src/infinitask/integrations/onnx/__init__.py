"""A fitted model as an ONNX graph, which predicts without Python (extra "onnx").

:func:`to_onnx` writes (X, θ) ↦ h(x)(θ) with standard operators only. The graph includes the post-processing of h by
the model, such as a shift of decisions, calibrated levels or sorted curves.

* :mod:`~infinitask.integrations.onnx._graph` defines tensors that are added and multiplied like arrays;
* :mod:`~infinitask.integrations.onnx._kernels` writes a kernel from its description, and φ, ψ and the bias;
* :mod:`~infinitask.integrations.onnx._answers` writes the predictions of a model, with the steps of its pipeline;
* :mod:`~infinitask.integrations.onnx._export` handles the file: names, metadata, and the comparison with Python.
"""

from infinitask._base.extras import needed

needed("onnx", "infinitask.integrations.onnx writes graphs of ONNX", "onnx")

from ._export import to_onnx  # noqa: E402 - its modules import onnx

__all__ = ["to_onnx"]
