"""Read and write tables in files: CSV with any separator and encoding, and Parquet."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import typer

from infinitask._base.extras import needed, not_installed
from infinitask.cli._output import CommandError
from infinitask.persistence._file import replacing
from infinitask.pipelines._tables import listed, nearest

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}

SAMPLE_BYTES = 2**16
"""The number of bytes from which the encoding and the separator are guessed."""

PARQUET = (".parquet", ".pq")

OTHER_FORMATS = (".xlsx", ".xls", ".ods", ".json", ".html", ".feather", ".arrow", ".orc", ".xml", ".sqlite")
"""File extensions that are not CSV."""

MISSING = ("?",)
"""Cells that mean a missing value, besides those that pandas knows (empty, NA, null, …)."""


class TableFile(NamedTuple):
    """A table read from a file, with notes for the user."""

    path: Path
    frame: Any
    format: str
    notes: Sequence[str] = ()


def pandas() -> Any:
    """Import pandas; raise an error that names the extra if it is missing."""
    return needed("pandas", "Tables are read with pandas", "cli")


def read_table(path: Path) -> TableFile:
    """Read a table from a file.

    Parameters
    ----------
    path : Path
        ``.parquet`` or ``.pq``, or text with a header line.
    """
    check_there(path)
    found = _parquet(path) if path.suffix.lower() in PARQUET else _text(path)
    if found.frame.shape[0] == 0:
        raise CommandError(f"{path} has no rows; a header and at least some rows are needed.")
    return found


def check_there(path: Path, kind: str = "a table in CSV or Parquet") -> None:
    """Raise an error if there is no readable file of this kind."""
    if not path.exists():
        files = [entry.name for entry in path.parent.iterdir() if entry.is_file()] if path.parent.is_dir() else []
        near = [str(path.with_name(name)) for name in nearest(path.name, files)]
        raise CommandError(f"There is no file {path} with {kind}.{did_you_mean(near)}")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; give a file with {kind}.")
    if not os.access(path, os.R_OK):
        raise CommandError(f"{path} cannot be read (permission denied).")


def _parquet(path: Path) -> TableFile:
    try:
        frame = pandas().read_parquet(path)
    except ImportError as error:
        raise not_installed("Parquet is read and written with pyarrow", "parquet") from error
    except Exception as error:
        raise CommandError(f"{path} cannot be read as Parquet ({' '.join(str(error).split())}).") from error
    frame.columns = [str(name) for name in frame.columns]
    _check_names(path, list(frame.columns))
    return TableFile(path, frame.reset_index(drop=True), "Parquet")


def _text(path: Path) -> TableFile:
    text, encoding, separator = _decoded(path)
    header = next(row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row))
    _check_names(path, [name.strip() for name in header])
    notes = [] if encoding == "utf-8" else [f"{path.name} is not UTF-8; it was read as {encoding}."]
    decimals = (".",) if separator == "," else (".", ",")  # if commas do not separate cells, they may be decimal points
    readings = [_parsed(path, text, separator, decimal) for decimal in decimals]
    frame = max(readings, key=lambda reading: reading.select_dtypes("number").shape[1])
    if frame is not readings[0]:
        notes.append(f"Numbers of {path.name} have decimal commas.")
    frame.columns = [str(name).strip() for name in frame.columns]
    frame = _with_dates(frame)
    first = frame.columns[0]
    if first.startswith("Unnamed: ") and frame.shape[1] > 1 and _counts_rows(frame[first]):
        frame = frame.drop(columns=first)
        notes.append("The first column has no name and counts the rows; it is left out.")
    return TableFile(path, frame, f"CSV with {SEPARATORS[separator]}", notes)


def cells_of(path: Path) -> list[list[str]]:
    """The cells of a small text file, as they were written."""
    check_there(path)
    text, _, separator = _decoded(path)
    return list(csv.reader(io.StringIO(text), delimiter=separator))


def _decoded(path: Path) -> tuple[str, str, str]:
    """The text of a file, its encoding and its separator."""
    raw = path.read_bytes()
    encodings = ["utf-8-sig", "cp1252", "latin-1"]
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encodings = ["utf-16"]
    elif b"\x00" in raw[:SAMPLE_BYTES]:
        encodings = []
    for encoding in encodings:
        with suppress(UnicodeDecodeError):
            text = raw.decode(encoding)
            break
    else:
        raise CommandError(f"{path} is not a table in CSV or Parquet; save it as one of these.")
    if not text.strip():
        raise CommandError(f"{path} is empty; a header and at least some rows are needed.")
    separator = _separator(text[:SAMPLE_BYTES], whole=len(text) <= SAMPLE_BYTES)
    return text, encoding.removesuffix("-sig"), separator


def _separator(sample: str, *, whole: bool) -> str:
    """The separator that splits 90% of the first lines into equally many cells; if several do, that with most."""
    lines = [line for line in sample.splitlines() if line.strip()]
    lines = (lines if whole or len(lines) < 2 else lines[:-1])[:50]
    best, cells = ",", 1
    for separator in SEPARATORS:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator)]
        alike = sum(width == widths[0] for width in widths) / len(widths)
        if alike >= 0.9 and widths[0] > cells:
            best, cells = separator, widths[0]
    return best


def _parsed(path: Path, text: str, separator: str, decimal: str) -> Any:
    try:
        return pandas().read_csv(
            io.StringIO(text), sep=separator, decimal=decimal, na_values=list(MISSING), skipinitialspace=True
        )
    except ValueError as error:  # pandas raises ValueErrors
        raise CommandError(f"{path} cannot be read as a table ({' '.join(str(error).split())}).") from error


def _with_dates(frame: Any) -> Any:
    """Convert texts to dates, by the rule of the step that encodes them."""
    try:
        from skrub import ApplyToCols, ToDatetime
    except ImportError:  # the command that needs it reports it
        return frame
    return ApplyToCols(ToDatetime(), allow_reject=True).fit_transform(frame)


def _counts_rows(column: Any) -> bool:
    values = column.tolist()
    return values in (list(range(len(values))), list(range(1, len(values) + 1)))


def _check_names(path: Path, names: list[str]) -> None:
    for name in names:
        if name and names.count(name) > 1:
            count, doubt = names.count(name), _no_header(names)
            raise CommandError(f"{path} has {count} columns with the name {name!r}; rename or remove one.{doubt}")


def write_table(frame: Any, path: Path) -> None:
    """Write a table, as Parquet if the name says so, otherwise as CSV."""
    with writing(path) as beside:
        if path.suffix.lower() not in PARQUET:
            frame.to_csv(beside, index=False)
            return
        try:
            frame.to_parquet(beside, index=False)
        except ImportError as error:
            raise not_installed("Parquet is read and written with pyarrow", "parquet") from error


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A temporary file that replaces the given one after success; system errors become sentences."""
    try:
        with replacing(path) as beside:
            yield beside
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror or error}).") from error


def check_output(path: Path | None, *inputs: Path | None, option: str = "--output") -> None:
    """Raise an error, before any work, if a file cannot be written or is also read by the command.

    Parameters
    ----------
    path : Path or None
        The file to write; None: there is none.
    *inputs : Path or None
        Other files that the same command reads or writes.
    option : str
        The option that names the file.
    """
    if path is None:
        return
    for given in inputs:
        if given is not None and _is_same(path, given):
            raise CommandError(f"{option} {path} is a file that is needed, and would be lost; choose another name.")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; give the name of a file with {option}.")
    if path.exists() and not path.is_file():
        raise CommandError(f"{path} is a device or a pipe, and not a file; give the name of a file with {option}.")
    if not path.parent.is_dir():
        raise CommandError(f"There is no folder {path.parent} for {path.name}; make it, or choose another {option}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CommandError(f"{path} cannot be written (permission denied); choose another {option}.")


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths refer to the same file, which may not exist yet."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def check_format(path: Path | None) -> None:
    """Raise an error if the file name asks for a format that cannot be written."""
    if path is not None and path.suffix.lower() in OTHER_FORMATS:
        raise typer.BadParameter(
            f"{path} would be a file of another kind; tables are written as CSV, or as Parquet if the name ends with "
            ".parquet.",
            param_hint="--output",
        )


# --------------------------------------------------------------------------------------------------- columns
def check_column(table: TableFile, name: str, why: str) -> None:
    """Raise an error if a table does not have the column."""
    if name not in table.frame.columns:
        near = nearest(name, table.frame.columns)
        others = did_you_mean(near) or f" Its columns are {listed(table.frame.columns)}.{_doubts(table)}"
        raise CommandError(f"{table.path} has no column {name!r}{why}.{others}")


def _doubts(table: TableFile) -> str:
    """Possible problems of a file in which a column is not found."""
    if table.frame.shape[1] == 1 and table.format != "Parquet":
        return f" All was read as one column: columns are separated by {', '.join(SEPARATORS.values())}."
    return _no_header(list(table.frame.columns))


def _no_header(names: Iterable[Any]) -> str:
    """The end of an error message if the first line holds numbers."""
    if pandas().to_numeric(pandas().Series(names, dtype=str), errors="coerce").isna().any():
        return ""
    return " The first line holds numbers; a line with the names of the columns is needed."


def did_you_mean(names: Sequence[str]) -> str:
    """A question that ends an error message."""
    return f" Did you mean {' or '.join(names)}?" if names else ""
