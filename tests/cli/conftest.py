"""Files, and a way to call commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.mixed_tables import mixed_table

for package in ("typer", "rich", "pandas", "skrub"):
    pytest.importorskip(package, reason=f"{package} is not installed: pip install infinitask[cli]")

Run = Callable[..., Any]


def runner() -> Any:
    """One that keeps standard error apart, as older releases do only when asked."""
    from typer.testing import CliRunner

    try:
        return CliRunner(mix_stderr=False)
    except TypeError:
        return CliRunner()


@pytest.fixture
def run() -> Run:
    """Call a command; the answer has ``exit_code``, ``stdout`` and ``stderr``."""
    from infinitask.cli._app import app

    def called(*words: Any) -> Any:
        return runner().invoke(app, [str(word) for word in words])

    return called


@pytest.fixture(scope="session")
def houses(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with prices, columns of every kind, and holes in the target."""
    X, y = mixed_table(160)
    y[[3, 50]] = None
    path = tmp_path_factory.mktemp("tables") / "houses.csv"
    X.assign(price=y).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with two classes."""
    X, y = mixed_table(160, seed=1)
    path = tmp_path_factory.mktemp("tables") / "loans.csv"
    X.drop(columns="note").assign(paid=(y > y.median()).map({True: "yes", False: "no"})).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in which the rarer of two labels is the first in sorted order."""
    X, y = mixed_table(200, seed=2)
    risk = y + np.random.default_rng(3).normal(0.0, 120.0, 200)
    label = (risk > risk.quantile(0.8)).map({True: "fraud", False: "ok"})
    path = tmp_path_factory.mktemp("tables") / "payments.csv"
    X[["area", "rooms", "city"]].assign(status=label).to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def fraud(files_of_models: None, payments: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model of its first 120 rows."""
    from infinitask.cli._app import app

    folder = tmp_path_factory.mktemp("models")
    lines = payments.read_text(encoding="utf-8").splitlines()
    (folder / "old.csv").write_text("\n".join(lines[:121]), encoding="utf-8")
    path = folder / "fraud.infinitask"
    done = runner().invoke(
        app, ["fit", str(folder / "old.csv"), "--target", "status", "--no-tune", "--output", str(path)]
    )
    assert done.exit_code == 0, done.output
    assert "fraud is the positive class, " in done.stdout
    return path


@pytest.fixture(scope="session")
def files_of_models() -> None:
    """Skip where models cannot be saved."""
    pytest.importorskip("safetensors", reason="models cannot be saved here: pip install infinitask[cli]")


@pytest.fixture(scope="session")
def saved(
    files_of_models: None, houses: Path, loans: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """A saved model of each task, by the command that makes it."""
    from infinitask.cli._app import app

    folder = tmp_path_factory.mktemp("models")
    calls = {
        "quantile": [houses, "--target", "price"],
        "cost": [loans, "--target", "paid"],
        "level-set": [loans, "--ignore", "paid"],
    }
    for task, words in calls.items():
        done = runner().invoke(app, ["fit", *map(str, words), "--no-tune", "-o", str(folder / f"{task}.infinitask")])
        assert done.exit_code == 0, done.output
        assert task in done.stdout
    return {task: folder / f"{task}.infinitask" for task in calls}
