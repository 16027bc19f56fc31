"""Every public estimator, also one that comes later, is saved and loaded, and answers alike in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV

from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor, load, make_pipeline, save
from tests.support.every_model import LABELS, NEW, X, Y, built, fitted, public_estimators
from tests.support.saved import again, answers, same

NAMES = sorted(public_estimators())
NEEDS = {"OptunaSearch": "optuna"}


def needed(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_fitted_one_answers_alike(name: str, tmp_path: Path) -> None:
    needed(name)
    model = fitted(name)
    before = answers(model, NEW)
    assert "predict" in before
    loaded = again(model, tmp_path)
    assert type(loaded) is type(model)
    assert same(answers(loaded, NEW), before)


@pytest.mark.parametrize("name", NAMES)
def test_one_that_is_not_fitted_comes_back(name: str, tmp_path: Path) -> None:
    needed(name)
    model = built(name)
    assert repr(again(model, tmp_path)) == repr(model)


def test_a_classifier_of_three_classes(tmp_path: Path) -> None:
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    model = InfiniteCostSensitiveClassifier(n_nodes=6, tol=1e-2).fit(X, labels)
    loaded = again(model, tmp_path)
    assert same(loaded.predict_proba(NEW), model.predict_proba(NEW))
    assert same(loaded.predict(NEW), model.predict(NEW))


FRESH_PROCESS = """
import pathlib, sys
import numpy as np
assert not any(name.startswith(("infinitask", "sklearn")) for name in sys.modules)
from infinitask import load
folder = pathlib.Path(sys.argv[1])
X = np.load(folder / "X.npy")
for path in sorted(folder.glob("*.safetensors")):
    np.save(path.with_suffix(".npy"), load(path).predict(X))
"""


@pytest.mark.slow
def test_a_fresh_process_answers_alike(tmp_path: Path) -> None:
    """With nothing imported: a file needs no more than its path."""
    pytest.importorskip("optuna")
    quantiles = InfiniteQuantileRegressor(n_nodes=6, tol=1e-2)
    models = {name: fitted(name) for name in NAMES} | {
        "pipeline": make_pipeline("passthrough", quantiles).fit(X, Y),
        "search": GridSearchCV(quantiles, {"alpha": [0.1, 0.01]}, cv=2).fit(X, Y),
        "targets": TransformedTargetRegressor(quantiles, func=np.sinh, inverse_func=np.arcsinh).fit(X, Y),
    }
    np.save(tmp_path / "X.npy", NEW)
    for name, model in models.items():
        save(model, tmp_path / f"{name}.safetensors")
    subprocess.run([sys.executable, "-c", FRESH_PROCESS, str(tmp_path)], check=True)
    for name, model in models.items():
        found = np.load(tmp_path / f"{name}.npy")
        assert same(found.astype(LABELS.dtype) if found.dtype.kind == "U" else found, model.predict(NEW)), name


@pytest.mark.slow
def test_a_table_in_a_fresh_process(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
    from infinitask import tabular

    table = pandas.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down"), "c": X[:, 1]})
    table.loc[3, "c"] = np.nan
    model = tabular(InfiniteQuantileRegressor(n_nodes=6, tol=1e-2)).fit(table, Y)
    save(model, tmp_path / "m")
    table.to_csv(tmp_path / "table.csv", index=False)
    program = (
        "import sys, numpy as np, pandas\n"
        "from infinitask import load\n"
        "table = pandas.read_csv(sys.argv[1] + '/table.csv', float_precision='round_trip')\n"
        "np.save(sys.argv[1] + '/found.npy', load(sys.argv[1] + '/m').predict(table))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert same(np.load(tmp_path / "found.npy"), model.predict(table))
    assert same(load(tmp_path / "m").predict(table), model.predict(table))
