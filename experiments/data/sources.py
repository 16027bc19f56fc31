"""Search for a set in a folder and in installed packages, and check that its values are right."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

from .specs import FOLDER, Spec
from .tables import Columns, checksum, plain_rows, read_csv

__all__ = ["verified_rows"]


def verified_rows(spec: Spec) -> tuple[list[list[str]], str]:
    """The rows of a set as text, after a check of their checksum, and the place where they were found.

    The folder that the user named comes before an installed package. A file there with other values is an error; it
    is not skipped. Both sources must have the same checksum, so either gives the same numbers.
    """
    columns, place = _found(spec)
    absent = [name for name in spec.columns if name not in columns]
    if absent:
        raise ValueError(f"{place} is not the data set {spec.name}: no column {', '.join(absent)}. {spec.directions}")
    rows = plain_rows(columns, spec.columns)
    digest = checksum(spec.columns, rows)
    if digest != spec.sha256:
        raise ValueError(
            f"{place} is not the data set {spec.name}: its {len(rows)} rows have the SHA-256 {digest}; expected are "
            f"{spec.n_rows} rows with {spec.sha256}. {spec.directions}"
        )
    return rows, place


def _found(spec: Spec) -> tuple[Columns, str]:
    folder = os.environ.get(FOLDER)
    if folder:
        path = Path(folder).expanduser()
        if not path.is_dir():
            raise FileNotFoundError(f"{FOLDER}={folder} is not a folder; name the one that holds {spec.file}.")
        if (path / spec.file).is_file():
            return read_csv(path / spec.file, spec.columns), str(path / spec.file)
    if spec.package is not None:
        columns = spec.package.columns(spec.columns)
        if columns is not None:
            return columns, f"{spec.package.distribution} {version(spec.package.distribution)}"
    reason = f"{FOLDER}={folder} does not hold {spec.file}" if folder else f"{FOLDER} is not set"
    raise FileNotFoundError(f"The data set {spec.name} was not found: {reason}. {spec.directions}")
