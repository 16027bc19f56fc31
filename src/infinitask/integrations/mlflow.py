"""Models in MLflow without pickle: a flavour whose file is safetensors, and whose tasks are chosen at prediction.

It needs MLflow (mlflow-skinny is enough): ``pip install infinitask[mlflow]``. A model that was logged is loaded as it
was by :func:`load_model`, or by ``mlflow.pyfunc.load_model`` as a function of rows and ``params``:

* ``method``: which method of the model answers, "predict" unless another is named;
* the tasks of its methods under their names, as lists: ``quantiles``, ``expectiles``, ``theta``, ``nu``, ``coverage``.
"""

from __future__ import annotations

import inspect
import os
import platform
import sys
import warnings
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from infinitask.persistence import load, save

__all__ = ["FLAVOR_NAME", "load_model", "log_model", "save_model"]

FLAVOR_NAME = "infinitask"
"""What the flavour is called in the file MLmodel."""

MODEL_FILE = "model.safetensors"
"""The file of a model in its folder."""

METHODS = ("predict", "predict_interval", "predict_proba", "decision_function", "score_samples")
"""What can be asked of a loaded function."""

TASKS = ("quantiles", "expectiles", "theta", "nu", "coverage", "epsilon", "log_alpha")
"""Names that methods have for their tasks."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "skrub")
"""What a model may need beside this library."""


def save_model(
    model: Any,
    path: str | os.PathLike[str],
    *,
    signature: Any = None,
    input_example: Any = None,
    pip_requirements: Iterable[str] | None = None,
    metadata: dict[str, Any] | None = None,
    mlflow_model: Any = None,
) -> None:
    """Write a fitted model into a folder that MLflow can read; the model itself is a file of :func:`infinitask.save`.

    Parameters
    ----------
    model : estimator
        Fitted; of this library, or a pipeline or search that holds one.
    path : str or path
        A folder that is not there yet, or is empty.
    signature : mlflow.models.ModelSignature or None
        None: the types of ``input_example`` and of the answers to it, where it is given, and the ``params`` of the
        model's methods with their defaults. Without an example rows are not checked by MLflow, but by the model.
    input_example : table or array or None
        Some rows, kept beside the model.
    pip_requirements : iterable of str or None
        None: this library, and the versions of those below it that are in use.
    metadata : dict or None
        For the file MLmodel.
    mlflow_model : mlflow.models.Model or None
        The entry that :func:`log_model` makes.

    Examples
    --------
    >>> import tempfile
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.integrations.mlflow import load_model, save_model
    >>> X, y = make_sine(60, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, f"{folder}/sine")
    ...     again = load_model(f"{folder}/sine")
    >>> bool((again.predict(X, quantiles=0.9) == model.predict(X, quantiles=0.9)).all())
    True
    """
    _mlflow()
    from mlflow import pyfunc
    from mlflow.models import Model

    from infinitask import __version__

    folder = Path(path)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(
            f"{os.fspath(folder)!r} is there already; save_model makes a new folder, so name another."
        )
    folder.mkdir(parents=True, exist_ok=True)
    save(model, folder / MODEL_FILE)
    entry = Model() if mlflow_model is None else mlflow_model
    if input_example is not None:
        from mlflow.models.utils import _save_example  # no public way writes it into a folder

        _save_example(entry, input_example, os.fspath(folder))
    entry.signature = _signature(model, input_example) if signature is None else signature
    if metadata is not None:
        entry.metadata = metadata
    pyfunc.add_to_model(entry, loader_module=__name__, data=MODEL_FILE, python_env="python_env.yaml")
    entry.add_flavor(FLAVOR_NAME, infinitask_version=__version__, data=MODEL_FILE, code=None)
    entry.save(os.fspath(folder / "MLmodel"))
    needs = _requirements(__version__) if pip_requirements is None else list(pip_requirements)
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in needs), encoding="utf-8")
    (folder / "python_env.yaml").write_text(
        f"python: {platform.python_version()}\nbuild_dependencies:\n- pip\ndependencies:\n- -r requirements.txt\n",
        encoding="utf-8",
    )


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a fitted model to the tracking server of MLflow, in the active run or one of its own.

    Parameters
    ----------
    model : estimator
    name : str
        Of the model in MLflow.
    options
        Those of :func:`save_model`, and of ``mlflow.models.Model.log``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Its ``model_uri`` is what :func:`load_model` takes.
    """
    _mlflow()
    from mlflow.models import Model

    return Model.log(artifact_path=None, name=name, flavor=sys.modules[__name__], model=model, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """The model as it was saved, with all its methods.

    Nothing in its file is run, see :func:`infinitask.load`.

    Parameters
    ----------
    model_uri : str
        Of a logged model, such as ``"models:/…"`` or ``"runs:/…"``, or a folder.
    dst_path : str or None
        Where to download to; None: a temporary folder, or the folder itself.
    """
    _mlflow()
    from mlflow.artifacts import download_artifacts
    from mlflow.models import Model

    folder = Path(download_artifacts(artifact_uri=os.fspath(model_uri), dst_path=dst_path))
    flavors = Model.load(os.fspath(folder)).flavors
    if FLAVOR_NAME not in flavors:
        raise ValueError(
            f"{model_uri!r} has the flavours {', '.join(sorted(flavors))}, and not {FLAVOR_NAME!r}; give a model that "
            "infinitask.integrations.mlflow has logged or saved."
        )
    return load(folder / flavors[FLAVOR_NAME]["data"])


def _load_pyfunc(path: str) -> _Asked:
    """What ``mlflow.pyfunc.load_model`` calls, with the file of the model."""
    return _Asked(load(path))


class _Asked:
    """A model as the function of rows and parameters that MLflow serves."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """The answer of the method that ``params`` name, for the tasks in it."""
        given = dict(params or {})
        method = str(given.pop("method", "predict"))
        known = _methods(self.model)
        if method not in known:
            raise ValueError(f"method={method!r} was given; this model answers {', '.join(map(repr, known))}.")
        tasks = {name: _task(value) for name, value in given.items() if name in known[method]}
        return getattr(self.model, method)(data, **tasks)

    def get_raw_model(self) -> Any:
        """The model itself."""
        return self.model


def _task(value: Any) -> Any:
    """A list of one task as the task, so that its answer has one dimension as well."""
    tasks = np.asarray(value, dtype=np.float64)
    return float(tasks.ravel()[0]) if tasks.size == 1 else tasks


def _methods(model: Any) -> dict[str, dict[str, Any]]:
    """The methods that can be asked, each with its tasks and their defaults."""
    last = model
    while getattr(last, "steps", None) or hasattr(last, "best_estimator_"):
        last = last.steps[-1][1] if getattr(last, "steps", None) else last.best_estimator_
    found: dict[str, dict[str, Any]] = {}
    for name in METHODS:
        if callable(getattr(model, name, None)) and callable(getattr(last, name, None)):
            parameters = inspect.signature(getattr(last, name)).parameters
            found[name] = {task: _default(last, parameters[task]) for task in TASKS if task in parameters}
    return found


def _default(model: Any, parameter: inspect.Parameter) -> Any:
    """What a task is where none is named: of the signature, or of the constructor."""
    none = parameter.default is None or parameter.default is inspect.Parameter.empty
    return getattr(model, parameter.name, None) if none else parameter.default


def _signature(model: Any, example: Any) -> Any:
    """The parameters of the model's methods, and the types of rows and answers where there is an example."""
    from mlflow.models import ModelSignature, infer_signature
    from mlflow.types.schema import DataType, ParamSchema, ParamSpec

    tasks = {name: value for task in _methods(model).values() for name, value in task.items() if value is not None}
    specs = [ParamSpec("method", DataType.string, "predict")]
    for name, value in tasks.items():
        specs.append(ParamSpec(name, DataType.double, [float(v) for v in np.ravel(value)], shape=(-1,)))
    params = ParamSchema(specs)
    if example is None:
        return ModelSignature(params=params)
    found = infer_signature(example, _Asked(model).predict(example))
    return ModelSignature(inputs=found.inputs, outputs=found.outputs, params=params)


def _requirements(own: str) -> list[str]:
    found = [f"infinitask[mlflow]=={own}"]
    for name in LIBRARIES:
        if name.replace("scikit-learn", "sklearn") in sys.modules:
            try:
                found.append(f"{name}=={version(name)}")
            except PackageNotFoundError:  # it is there and was not installed: nothing to ask for
                continue
    return found


def _mlflow() -> None:
    if find_spec("mlflow") is None:
        raise ImportError(
            "infinitask.integrations.mlflow hands models to MLflow, which is not installed; install the extra with "
            "`pip install infinitask[mlflow]`."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at its import it warns of type hints of its own
        import_module("mlflow.pyfunc")
