"""Files as people have them are read, and what cannot be read is said in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from infinitask.cli._output import CommandError
from infinitask.cli._tables import check_column, check_output, read_table, write_table
from tests.support.each import each

FRAME = pd.DataFrame({"name": ["Zoë", "Ådne", "Ole; jr", np.nan], "size": [1.5, 2.25, np.nan, 4.0], "n": [1, 2, 3, 4]})


@each("separator", [",", ";", "\t", "|"])
@each("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_any_separator_and_encoding(tmp_path: Path, separator: str, encoding: str) -> None:
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, sep=separator, encoding=encoding, index=False)
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    assert bool(table.notes) == (encoding in ("cp1252", "utf-16"))


def test_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, sep=";", decimal=",", index=False)
    table = read_table(path)
    pd.testing.assert_frame_equal(table.frame, FRAME, check_dtype=False)
    assert "decimal commas" in table.notes[0]


def test_a_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install infinitask[parquet]")
    write_table(FRAME, tmp_path / "data.parquet")
    frame = read_table(tmp_path / "data.parquet").frame
    pd.testing.assert_frame_equal(frame.fillna({"name": ""}), FRAME.fillna({"name": ""}), check_dtype=False)
    (tmp_path / "wrong.parquet").write_text("a,b\n1,2\n")
    with pytest.raises(CommandError, match="cannot be read as Parquet"):
        read_table(tmp_path / "wrong.parquet")


def test_an_index_without_a_name_is_dropped(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "data.csv")
    table = read_table(tmp_path / "data.csv")
    assert list(table.frame.columns) == ["name", "size", "n"]
    assert "counts the rows" in table.notes[0]


def test_a_single_column_needs_no_separator(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("x\n1\n2\n")
    assert read_table(tmp_path / "data.csv").frame["x"].tolist() == [1, 2]


def test_cells_with_separators_in_quotes_and_question_marks(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text('x;place\n1;"a, b, c"\n?;"d, e, f"\n')
    frame = read_table(tmp_path / "data.csv").frame
    assert frame["place"].tolist() == ["a, b, c", "d, e, f"]
    assert frame["x"].isna().tolist() == [False, True]


@each(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"  \n\n", "is empty"),
        (b"a,b\n", "no rows"),
        (b"a,b,a\n1,2,3\n", "2 columns with the name 'a'"),
        (b"PK\x03\x04\x00\x00", "not a table"),
        (b"a,b\n1,2\n1,2,3,4\n5,6\n", "cannot be read as a table"),
    ],
)
def test_files_that_are_no_tables_are_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    with pytest.raises(CommandError, match=says) as found:
        read_table(path)
    assert str(path) in str(found.value)


def test_files_and_columns_that_are_not_there(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(CommandError, match=r"no file .*date\.csv.* Did you mean .*data\.csv"):
        read_table(tmp_path / "date.csv")
    with pytest.raises(CommandError, match="is a folder"):
        read_table(tmp_path)
    table = read_table(tmp_path / "data.csv")
    with pytest.raises(CommandError, match=r"no column 'Sise'.* Did you mean size\?"):
        check_column(table, "Sise", "")
    with pytest.raises(CommandError, match="Its columns are name, size, n"):
        check_column(table, "q", "")


@each("name", ["", "not/there.csv"])
def test_outputs_in_missing_folders_are_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(CommandError, match="folder"):
        check_output(tmp_path / name)


def test_what_a_command_reads_is_never_written_over(tmp_path: Path) -> None:
    there, link = tmp_path / "costs.csv", tmp_path / "link.csv"
    there.touch()
    link.symlink_to(there)
    for name in (there, link, tmp_path / "." / "costs.csv"):
        with pytest.raises(CommandError, match=r"--output .* would be lost"):
            check_output(name, None, tmp_path / "data.csv", there)
    with pytest.raises(CommandError, match=r"--storage .* would be lost"):
        check_output(tmp_path / "new", tmp_path / "new", option="--storage")  # two that are written
    check_output(tmp_path / "new", there, None)
