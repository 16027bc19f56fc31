"""Adapters to other libraries: each module needs the library that it is for, and is imported by its name.

:func:`at_level` needs none: it wraps one level of a model, for libraries that only call ``predict(X)``.

* :mod:`~infinitask.integrations.skpro`: distributions of skpro (extra "skpro").
* :mod:`~infinitask.integrations.pyod`: a detector of PyOD whose contamination may change after the fit (extra "pyod").
* :mod:`~infinitask.integrations.sktime`: quantile forecasts by reduction (extra "sktime").
* :mod:`~infinitask.integrations.onnx`: the predictor as a graph that runs without Python (extra "onnx").
* :mod:`~infinitask.integrations.skops`: the types that skops may load without asking (extra "skops").
* :mod:`~infinitask.integrations.mlflow`: models in MLflow, without pickle (extra "mlflow").
"""

from ._level import at_level

__all__ = ["at_level"]
