"""What a model in a file answers, whether two answers are the same bit by bit, and files that a stranger made."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteQuantileRegressor, load, save

QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda model, X: model.predict(X),
    "predict_interval": lambda model, X: model.predict_interval(X, coverage=[0.5, 0.8]),
    "predict_distribution": lambda model, X: model.predict_distribution(X).ppf(np.array([0.2, 0.7])),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "score_samples": lambda model, X: model.score_samples(X),
    "decision_function": lambda model, X: model.decision_function(X, model.nodes_[[0, -2]]),
    "relevance_": lambda model, X: model.relevance_.slope,
    "kernel_gap_": lambda model, X: model.kernel_gap_,
    "dual_gap_": lambda model, X: model.dual_gap_,
    "theta_from_costs": lambda model, X: model.theta_from_costs(5, 1),
    "field_": lambda model, X: model.field_(X.toarray() if issparse(X) else X, model.nodes_[:2]),
    "levels_": lambda model, X: model.levels_.taken,
    "shift_": lambda model, X: model.shift_.values,
    "solution_": lambda model, X: [model.solution_.z, model.solution_.message],
    "nodes_": lambda model, X: [model.nodes_, model.weights_],
    "cv_results_": lambda model, X: [str(model.cv_results_), str(model.get_params())],
}


def answers(model: Any, X: Any) -> dict[str, Any]:
    """All that a model answers about rows; questions it does not take are left out."""
    return {name: ask(model, X) for name, ask in QUESTIONS.items() if hasattr(model, name)}


def again(model: Any, folder: Path) -> Any:
    """The model from a file."""
    save(model, folder / "model.safetensors")
    return load(folder / "model.safetensors")


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal bit by bit, arrays with their types and shapes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return same(a.ravel().tolist(), b.ravel().tolist()) if a.dtype == object else a.tobytes() == b.tobytes()
    if isinstance(a, (float, np.generic)):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes() or bool(a != a and b != b)
    return bool(a == b)


def opened(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, str]]:
    """The table, the arrays and the header of a file."""
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        header = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return json.loads(header["table"]), arrays, header


def forged(path: Path, table: Any, arrays: dict[str, np.ndarray] | None = None, **header: str) -> Path:
    """A file with a table of one's own and a checksum that is right: damage that a stranger has made."""
    from safetensors.numpy import save_file

    from infinitask.persistence._file import FORMAT, checksum

    text = table if isinstance(table, str) else json.dumps(table)
    arrays = {} if arrays is None else arrays
    said = {"format": FORMAT, "format_version": "1", "table": text, "checksum": checksum(text, arrays)}
    save_file(arrays, path, metadata=said | header)
    return path


REFUSED = r"cannot be loaded: it is not a file of infinitask, or damaged, or needs what is not here \({}"
MEMORY = 2**24
"""Bytes that refusing a file may take."""


def refused(path: Path, reason: str) -> None:
    """The law: one sentence, with this reason."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=REFUSED.format(reason)) as caught:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert str(caught.value).endswith(".")


def tried(path: Path) -> str:
    """What comes of a file: any other error, or too much memory, fails the test."""
    tracemalloc.start()
    try:
        load(path)
    except ValueError as error:
        return "refused" if "cannot be loaded: it is not a file" in str(error) else "newer"
    else:
        return "loaded"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY


def table(*entries: Any, model: Any = None) -> dict[str, Any]:
    return {"entries": list(entries), "model": [len(entries) - 1] if model is None else model}


def good_file(path: Path) -> Path:
    """A file as it should be, of a pipeline."""
    X = np.random.default_rng(0).normal(size=(25, 2))
    save(make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=5, tol=1e-2)).fit(X, X[:, 0]), path)
    return path
