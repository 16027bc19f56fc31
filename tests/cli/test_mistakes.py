"""Mistakes in tables and in names of files: each is said in one sentence, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infinitask.cli._models import rows_of
from infinitask.cli._tables import TableFile, read_table
from tests.support.mixed_tables import mixed_table

Run = Callable[..., Any]


def wrong(done: Any) -> str:
    """The one sentence with which a command failed."""
    assert done.exit_code == 1, done.output
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error ")]
    return line


def test_targets_that_are_nearly_numbers_are_told_what_is_wrong(run: Run, tmp_path: Path) -> None:
    X, y = mixed_table(40)

    def of(target: Any) -> str:
        X.assign(y=target).to_csv(tmp_path / "data.csv", index=False)
        return wrong(run("fit", tmp_path / "data.csv", "-t", "y", "-o", tmp_path / "model.infinitask"))

    text = y.astype(str)
    assert "not in 1 of 40 rows, such as 'unknown' in row 8" in of(text.where(text.index != 7, "unknown"))
    assert "without units and without separators of thousands" in of("$" + text)
    assert "holds dates" in of(X["sold"].fillna(X["sold"].dropna().iloc[0]))
    X["rooms"] = X["rooms"].astype(str).where(X.index != 3, "many")
    rows = rows_of(TableFile(tmp_path / "data.csv", X.assign(y=y), "CSV"), "y", None, [])
    assert any("'rooms' holds numbers, but not in 1 of" in note for note in rows.notes)


def test_an_extreme_target_is_named_with_its_row(run: Run, tmp_path: Path) -> None:
    X, y = mixed_table(40)
    y = y.where(y.index != 7, None)
    for value in (1e30, -1e16):
        X.assign(y=y.where(y.index != 16, value)).to_csv(tmp_path / "data.csv", index=False)
        said = wrong(run("fit", tmp_path / "data.csv", "-t", "y", "-o", tmp_path / "model.infinitask"))
        assert f"Row 17: the target 'y' is {value:g}" in said
    far = TableFile(tmp_path / "data.csv", X.assign(y=y.where(y.index != 16, 1e12)), "CSV")
    assert any("Row 17: the target 'y' is 1e+12" in note for note in rows_of(far, "y", None, []).notes)
    usual = TableFile(tmp_path / "data.csv", X.assign(y=y), "CSV")
    assert not any("Row" in note for note in rows_of(usual, "y", None, []).notes)


def test_columns_that_no_model_can_take_are_named(run: Run, tmp_path: Path) -> None:
    X, y = mixed_table(40)
    X.assign(y=y, area=X["area"].where(X.index != 5, np.inf)).to_csv(tmp_path / "data.csv", index=False)
    said = wrong(run("fit", tmp_path / "data.csv", "-t", "y", "-o", tmp_path / "model.infinitask"))
    assert "The column 'area'" in said
    assert "in 1 of 40 rows" in said


def test_cells_that_a_model_cannot_use_are_said(run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path) -> None:
    table = read_table(houses).frame.drop(columns="price")
    assert run("predict", saved["quantile"], houses, "-o", tmp_path / "out.csv").stderr == ""
    new = table.assign(area="large", sold="never", rooms=np.nan)
    new.loc[:9, "city"] = "Paris"
    new.to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", saved["quantile"], tmp_path / "new.csv", "-o", tmp_path / "out.csv")
    assert done.exit_code == 0, done.output
    (area,) = [line for line in done.stderr.splitlines() if "'area'" in line]
    assert "160 of 160 cells hold text that is no number, such as 'large', and count as missing" in area
    assert "'sold' has something else than dates" in done.stderr
    assert "'rooms' has no values here" in done.stderr
    assert "'city' has categories that the fit has not seen (Paris), in 10 of 160 rows" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_device_or_pipe_is_never_replaced(run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path) -> None:
    """A device or a pipe would become a file."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    for words in (["predict", saved["quantile"], houses], ["fit", houses, "-t", "price"]):
        assert "is a device or a pipe" in wrong(run(*words, "-o", pipe))
    assert pipe.is_fifo()
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert run("predict", saved["quantile"], houses, "-o", tmp_path / "link.csv").exit_code == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text(encoding="utf-8").startswith("price_q")


def test_what_the_system_refuses_to_write_is_a_sentence(
    run: Run, saved: dict[str, Path], houses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    said = wrong(run("predict", saved["quantile"], houses, "-o", tmp_path / "out.csv"))
    assert said.endswith("out.csv cannot be written (No space left on device).")
    assert not list(tmp_path.iterdir())
    assert wrong(run("predict", saved["quantile"], houses)) == "error The output: no space left on device."
