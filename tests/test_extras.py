"""Without the extras the core works, and what needs one of them names it.

All packages of all extras are hidden from one process, as if they were not installed, and every row of the table is
tried there. A new feature that needs an extra is a new row; modules of ``infinitask.integrations`` are found by
themselves.
"""

from __future__ import annotations

import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import infinitask.integrations
from infinitask.objective._terms import SWITCH

ROOT = Path(__file__).parents[1]

ROWS: dict[str, tuple[str, str]] = {
    "save": ("save", "infinitask.save(model, 'model.safetensors')"),
    "load": ("save", "infinitask.load('model.safetensors')"),
    "tabular": ("table", "infinitask.tabular(model)"),
    "a display": ("plot", "from infinitask.plotting import PITDisplay; PITDisplay.from_predictions([0.2, 0.8])"),
    "plot of a curve": ("plot", "costs.roc_curve(X, labels).plot()"),
    "the command line": ("cli", "from infinitask.cli import main; ended(main(['--help']))"),
    "the demo": ("plot", "from infinitask.demo import main; ended(main(['--quick']))"),
    "OptunaSearch": ("tune", "from infinitask.tuning import OptunaSearch; OptunaSearch(model, n_trials=1).fit(X, y)"),
    "device": ("torch", "infinitask.InfiniteQuantileRegressor(device='cpu', n_nodes=5).fit(X, y)"),
    "a loss as a function": (
        "jax",
        "infinitask.InfiniteTaskEstimator(lambda theta, y, h: (y - h) ** 2, measure=(0, 1)).fit(X, y)",
    ),
    "Parquet": ("parquet", "from infinitask.streaming._blocks import Blocks; Blocks.of_parquet('rows.parquet', 'y')"),
    "onnx": ("onnx", "from infinitask.integrations.onnx import to_onnx; to_onnx(model)"),
    "MLflow": ("mlflow", "from infinitask.integrations.mlflow import log_model; log_model(model, 'model')"),
    "skops": ("skops", "from infinitask.integrations.skops import trusted; trusted('model.skops')"),
}
"""Under the name of a feature: its extra, and a call. Collections of Dask are not here: who has one has Dask."""

FOUND = sorted(module.name for module in pkgutil.iter_modules(infinitask.integrations.__path__))
INTEGRATIONS = [name for name in FOUND if not name.startswith("_")]

IMPORT_NAMES = {"mlflow-skinny": "mlflow", "scikit-clean": "skclean", "scikit-learn": "sklearn"}
"""Packages that are imported by another name."""

FOR_DEVELOPERS = ("test", "docs", "dev")

PROGRAM = """
import contextlib, io, json, sys

class Without:
    '''A finder that does not see some packages.'''

    def __init__(self, finder, hidden):
        self.finder, self.hidden = finder, hidden

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in self.hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

hidden, rows = json.loads(sys.argv[1])
sys.meta_path = [Without(finder, set(hidden)) for finder in sys.meta_path]

import numpy as np
import infinitask

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
y = X[:, 0] + 0.3 * rng.normal(size=40)
labels = np.where(y > 0, "yes", "no")
quick = {"n_nodes": 5, "tol": 1e-2}
model = infinitask.InfiniteQuantileRegressor(**quick).fit(X, y)
costs = infinitask.InfiniteCostSensitiveClassifier(**quick, alpha=0.01).fit(X, labels)
sets = infinitask.InfiniteOneClassSVM(**quick, exact_fractions=False).fit(X)
tuned = infinitask.InfiniteQuantileRegressorCV(kernels=["rbf"], **quick, random_state=0).fit(X, y)
shapes = [
    model.predict(X, quantiles=[0.1, 0.9]).shape,
    model.predict_interval(X).shape,
    tuned.predict(X, quantiles=[0.1, 0.9]).shape,
    costs.predict_proba(X).shape,
    sets.score_samples(X).shape,
    infinitask.make_pipeline("passthrough", model).fit(X, y).predict(X).shape,
]

def ended(code):
    raise SystemExit(code)

found = {}
for name, call in rows.items():
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            exec(call)
        found[name] = ["nothing", ""]
    except SystemExit as end:
        found[name] = [f"exit {end.code}", errors.getvalue()]
    except BaseException as error:
        found[name] = [type(error).__name__, str(error)]
loaded = sorted({name.partition(".")[0] for name in sys.modules} & set(hidden))
print(json.dumps({"shapes": shapes, "found": found, "loaded": loaded}))
"""


def optional_packages() -> set[str]:
    """What the extras for users install, by the names under which it is imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in FOR_DEVELOPERS}
    wanted = [line for lines in extras.values() for line in lines]
    return {_name(line) for line in wanted} - {_name(line) for line in project["dependencies"]}


def _name(requirement: str) -> str:
    name = re.split(r"[\[<>=!~; ]", requirement)[0]
    return IMPORT_NAMES.get(name, name.replace("-", "_"))


def extra_of(integration: str) -> str:
    """The extra of a module of integrations is called as the module is."""
    return integration


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process without any extra finds."""
    calls = {name: call for name, (_, call) in ROWS.items()}
    calls |= {f"import of {name}": f"import infinitask.integrations.{name}" for name in INTEGRATIONS}
    given = json.dumps([sorted(optional_packages()), calls])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, given],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path_factory.mktemp("bare"),
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_core_fits_and_predicts(bare: dict[str, Any]) -> None:
    assert bare["shapes"] == [[40, 2], [40, 2], [40, 2], [40, 2], [40], [40]]
    assert bare["loaded"] == []


def test_neither_an_import_nor_a_small_fit_loads_an_extra() -> None:
    """Matplotlib and numba take longer to load than a small fit takes."""
    program = """
import sys
from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
assert "infinitask.plotting" not in sys.modules
import infinitask.plotting
InfiniteQuantileRegressor(n_nodes=20).fit(*make_sine(100, random_state=0))
assert not {"matplotlib", "numba"} & set(sys.modules)
"""
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


@pytest.mark.parametrize("name", ROWS)
def test_a_feature_names_its_extra(name: str, bare: dict[str, Any]) -> None:
    kind, words = bare["found"][name]
    assert kind in ("ImportError", "exit 1")
    assert f"infinitask[{ROWS[name][0]}]" in words
    assert "pip install" in words
    assert "Traceback" not in words


@pytest.mark.parametrize("name", INTEGRATIONS)
def test_an_integration_names_its_extra(name: str, bare: dict[str, Any]) -> None:
    """At its import, or, where that works, at a call that has a row above."""
    kind, words = bare["found"][f"import of {name}"]
    if kind == "nothing":
        assert extra_of(name) in {extra for extra, _ in ROWS.values()}, "add a call to the table"
    else:
        assert kind == "ImportError"
        assert f"pip install infinitask[{extra_of(name)}]" in words.replace('"', "")


def test_every_extra_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra for extra, _ in ROWS.values()} | set(map(extra_of, INTEGRATIONS)) <= extras.keys()


def test_parquet_at_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pandas, but without what reads the files for it."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("typer")
    from infinitask.cli._tables import read_table, write_table

    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    for name in ("pyarrow", "fastparquet"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (
        lambda: read_table(tmp_path / "rows.parquet"),
        lambda: write_table(pandas.DataFrame({"a": [1]}), tmp_path / "more.parquet"),
    ):
        with pytest.raises(ImportError, match=r"pyarrow, which is not installed; .*infinitask\[parquet\]"):
            call()


def test_onnx_without_its_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    from infinitask.integrations.onnx import to_onnx
    from tests.support.every_model import fitted

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    model = fitted("InfiniteQuantileRegressor")
    with pytest.raises(
        ImportError, match=r"check=False\) runs nothing; .*by onnxruntime, which is not.*infinitask\[onnx\]"
    ):
        to_onnx(model)
    assert to_onnx(model, check=False).graph.node
