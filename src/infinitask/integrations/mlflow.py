"""Models in MLflow without pickle: a flavour that saves safetensors, with tasks chosen at prediction.

It needs MLflow (mlflow-skinny is enough): ``pip install infinitask[mlflow]``. Load a logged model with
:func:`load_model`, or with ``mlflow.pyfunc.load_model`` as a function of rows and ``params``:

* the tasks of its methods by name, as lists: ``quantiles``, ``expectiles``, ``theta``, ``nu``, ``costs``,
  ``coverage``; an empty list stands for the default of the model. Parameters of MLflow have one dimension: a cost
  matrix, or several lists of costs, are given row by row.
* ``method``: the method of the model to call. The default is ``predict``, or the method that takes the given tasks:
  ``predict_interval`` for ``coverage``.

MLflow ignores names that are not in the signature, with a line in its log.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from infinitask._base.extras import not_installed
from infinitask.integrations._level import model_and_arguments, without_search
from infinitask.persistence import load, save

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at its import it warns about its own type hints
        from mlflow.artifacts import download_artifacts
        from mlflow.models import Model, ModelSignature, infer_signature
        from mlflow.models.utils import _save_example  # there is no public function that writes it into a folder
        from mlflow.pyfunc import add_to_model
        from mlflow.types.schema import DataType, ParamSchema, ParamSpec
except ImportError as error:
    raise not_installed("infinitask.integrations.mlflow hands models to MLflow", "mlflow") from error

__all__ = ["load_model", "log_model", "save_model"]

FLAVOR_NAME = "infinitask"
"""The name of the flavour in the file MLmodel."""

MODEL_FILE = "model.safetensors"
"""The name of the model's file in its folder."""

METHODS = ("predict", "predict_interval", "predict_proba", "decision_function", "score_samples")
"""The methods that a loaded function can call."""

TASKS = ("quantiles", "expectiles", "theta", "nu", "costs", "coverage", "epsilon", "log_alpha")
"""The names of task arguments in methods."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "skrub")
"""Libraries that a model may need besides this one."""


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
    """Write a fitted model to a folder that MLflow can read; the model itself is a file of :func:`infinitask.save`.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library, or a pipeline or search that holds one.
    path : str or path
        A folder that does not exist yet, or is empty.
    signature : mlflow.models.ModelSignature or None
        None: the ``params`` of the model's methods and, if ``input_example`` is given, its types and those of its
        predictions. Without an example, the model checks the rows instead of MLflow.
    input_example : table or array or None
        Some rows, stored with the model.
    pip_requirements : iterable of str or None
        None: this library, and the installed versions of its dependencies that are in use.
    metadata : dict or None
        Metadata for the file MLmodel.
    mlflow_model : mlflow.models.Model or None
        The entry that :func:`log_model` creates.

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
        _save_example(entry, input_example, os.fspath(folder))
    entry.signature = _signature(model, input_example) if signature is None else signature
    if metadata is not None:
        entry.metadata = metadata
    add_to_model(entry, loader_module=__name__, data=MODEL_FILE, python_env="python_env.yaml")
    entry.add_flavor(FLAVOR_NAME, infinitask_version=__version__, data=MODEL_FILE, code=None)
    entry.save(os.fspath(folder / "MLmodel"))
    needs = _requirements(__version__) if pip_requirements is None else list(pip_requirements)
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in needs), encoding="utf-8")
    (folder / "python_env.yaml").write_text(
        f"python: {platform.python_version()}\nbuild_dependencies:\n- pip\ndependencies:\n- -r requirements.txt\n",
        encoding="utf-8",
    )


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a fitted model to the tracking server of MLflow, in the active run or a new one.

    Parameters
    ----------
    model : estimator
    name : str
        Name of the model in MLflow.
    options
        Options of :func:`save_model`, and of ``mlflow.models.Model.log``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo
        Pass its ``model_uri`` to :func:`load_model`.
    """
    return Model.log(artifact_path=None, name=name, flavor=sys.modules[__name__], model=model, **options)


def load_model(model_uri: str, dst_path: str | None = None) -> Any:
    """Load a saved model, with all its methods.

    No code in its file is run, see :func:`infinitask.load`.

    Parameters
    ----------
    model_uri : str
        URI of a logged model, such as ``"models:/…"`` or ``"runs:/…"``, or a folder.
    dst_path : str or None
        Folder to download to; None: a temporary folder, or the folder itself.
    """
    folder = Path(download_artifacts(artifact_uri=os.fspath(model_uri), dst_path=dst_path))
    flavors = Model.load(os.fspath(folder)).flavors
    if FLAVOR_NAME not in flavors:
        raise ValueError(
            f"{model_uri!r} has the flavours {', '.join(sorted(flavors))}, and not {FLAVOR_NAME!r}; give a model that "
            "infinitask.integrations.mlflow has logged or saved."
        )
    return load(folder / flavors[FLAVOR_NAME]["data"])


def _load_pyfunc(path: str) -> _Asked:
    """The hook of ``mlflow.pyfunc.load_model``, called with the file of the model."""
    return _Asked(load(path))


class _Asked(NamedTuple):
    """A model as the function of rows and parameters that MLflow serves."""

    model: Any

    def predict(self, data: Any, params: dict[str, Any] | None = None) -> Any:
        """Call the method named in ``params``, with the tasks in it."""
        known = _methods(self.model)
        given = {name: value for name, value in (params or {}).items() if value is not None and np.size(value) > 0}
        method = str(given.pop("method", ""))
        tasks = sorted({task for taken in known.values() for task in taken})
        unknown = sorted(set(given) - set(tasks))
        if unknown:
            raise ValueError(
                f"params have {', '.join(map(repr, unknown))}; this model takes 'method' and "
                f"{', '.join(map(repr, tasks)) or 'no task'}."
            )
        if not method:
            method = next((name for name, taken in known.items() if set(given) <= set(taken)), "predict")
        if method not in known:
            raise ValueError(f"method={method!r} was given; this model answers {', '.join(map(repr, known))}.")
        other = sorted(set(given) - set(known[method]))
        if other:
            raise ValueError(
                f"params have {', '.join(map(repr, other))} for {method}, which takes "
                f"{', '.join(map(repr, known[method])) or 'no task'}; leave it out, or name the method that takes it."
            )
        core = model_and_arguments(self.model, method)[0]
        asked = {name: _task(core, name, value) for name, value in given.items()}
        return getattr(without_search(self.model), method)(data, **asked)

    def get_raw_model(self) -> Any:
        """The model itself."""
        return self.model


def _task(core: Any, name: str, value: Any) -> Any:
    """A task from a list: a single task becomes a number, so predictions have one dimension; costs get their shape."""
    tasks, classes = np.asarray(value, dtype=np.float64), len(getattr(core, "classes_", ()))
    if name == "costs":
        return tasks.reshape(classes, classes) if tasks.size == classes**2 else tasks
    if name == "theta" and classes > 2:
        lists = tasks.size % classes == 0 and tasks.size > classes
        return tasks.reshape(-1, classes) if lists else tasks
    return float(tasks.ravel()[0]) if tasks.size == 1 else tasks


def _methods(model: Any) -> dict[str, list[str]]:
    """The methods that can be called, each with its tasks."""
    found = {}
    for name in METHODS:
        core, parameters = model_and_arguments(without_search(model), name)
        if callable(getattr(without_search(model), name, None)) and callable(getattr(core, name, None)):
            found[name] = [task for task in TASKS if task in parameters]
    return found


def _signature(model: Any, example: Any) -> Any:
    """The parameters of the model's methods, and the types of rows and predictions if there is an example."""
    # an empty default stands for that of the model: other defaults would look like requested values
    specs = [ParamSpec("method", DataType.string, "")]
    tasks = dict.fromkeys(name for tasks in _methods(model).values() for name in tasks)
    params = ParamSchema(specs + [ParamSpec(name, DataType.double, [], shape=(-1,)) for name in tasks])
    if example is None:
        return ModelSignature(params=params)
    found = infer_signature(example, _Asked(model).predict(example))
    return ModelSignature(inputs=found.inputs, outputs=found.outputs, params=params)


def _requirements(own: str) -> list[str]:
    found = [f"infinitask[mlflow]=={own}"]
    for name in LIBRARIES:
        if name.replace("scikit-learn", "sklearn") in sys.modules:
            with suppress(PackageNotFoundError):  # it is importable but not installed: there is no requirement
                found.append(f"{name}=={version(name)}")
    return found
