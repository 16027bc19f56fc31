"""Store the results of units of work, one line each, on disk as soon as they are known, with their provenance."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .provenance import Provenance, read

__all__ = ["FOLDER", "PAGES", "Store", "curves_of", "folders", "key", "known", "made", "records_of"]

PAGES = Path(__file__).resolve().parents[1] / "docs" / "results"
"""Where the pages, pictures and tables of the documentation are."""


FOLDER = "INFINITASK_RESULTS"
"""The variable that tells the processes of a run its folder."""


def folders() -> list[Path]:
    """Where results of other experiments are looked for: the folder of this run, then that of the documentation."""
    return list(dict.fromkeys([Path(os.environ.get(FOLDER, PAGES)).resolve(), PAGES]))


def made(name: str) -> list[Path]:
    """The tables of this name that other experiments have made."""
    return [folder / name for folder in folders() if (folder / name).exists()]


def records_of(folder: Path, name: str) -> Path:
    """The file with the records behind the pages of a folder: those of the documentation are kept out of it.

    Parameters
    ----------
    folder : Path
        With the pages.
    name : str
        Of the experiment.
    """
    units = Path(__file__).resolve().parent / "units" if folder.resolve() == PAGES else folder / "units"
    return units / f"{name}.jsonl"


def key(unit: Mapping[str, Any]) -> str:
    """A unit as a string that is the same for equal units."""
    return json.dumps(unit, sort_keys=True)


def curves_of(folder: Path, name: str) -> Path:
    """The file with the many numbers behind a picture: those of the documentation are kept out of it.

    Parameters
    ----------
    folder : Path
        With the pages.
    name : str
        Of the file.
    """
    curves = Path(__file__).resolve().parent / "curves" if folder.resolve() == PAGES else folder
    return curves / name


class Store:
    """A file of JSON lines: the settings, then one record for each unit that is done.

    A line with a provenance holds for the records below it, up to the next such line.

    A line is written, flushed and synchronised before the next one. A process that is killed leaves at most one broken
    line at the end, which is cut off at the next start.

    Parameters
    ----------
    path : Path
    settings : dict
        What the units depend on besides their names. A file with other settings is refused: results must not be mixed.
    provenance : Provenance, optional
        That of the records which will be added.

    Attributes
    ----------
    records, provenances : dict
        The record of each unit that is done, and its provenance, None if it is not known, by :func:`key`.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], provenance: Provenance | None = None) -> None:
        self.path, self.settings, self.provenance = path, json.loads(json.dumps(settings)), provenance
        self.records: dict[str, dict[str, Any]] = {}
        self.provenances: dict[str, Provenance | None] = {}
        self._last: Provenance | None = None

    @contextlib.contextmanager
    def open(self) -> Iterator[Store]:
        """Read the stored records, and lock the file so that no other process writes to it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            _lock(file, self.path)
            self._file = file
            self._read()
            yield self

    def _read(self) -> None:
        self._file.seek(0)
        lines = self._file.read().split(b"\n")
        broken = lines.pop()  # after the last end of a line there is nothing, or half a record
        if broken:
            self._file.truncate(self._file.tell() - len(broken))
        if not lines:
            self._write({"settings": self.settings})
            return
        found = json.loads(lines[0])["settings"]
        if found != self.settings:
            differ = sorted(k for k in found.keys() | self.settings.keys() if found.get(k) != self.settings.get(k))
            raise SystemExit(
                f"{self.path} holds results for other settings ({', '.join(differ)}). Remove it to begin anew, or give "
                "another folder with --out."
            )
        for line in lines[1:]:
            found = json.loads(line)
            if "provenance" in found:
                self._last = read(found["provenance"])
            else:
                self._keep(found)

    def add(self, record: Mapping[str, Any]) -> None:
        """Store a record: {"unit": ..., "result": ..., "seconds": ...}."""
        if self.provenance is not None and self.provenance != self._last:
            self._write({"provenance": str(self.provenance)})
            self._last = self.provenance
        self._write(record)
        self._keep(json.loads(json.dumps(record)))

    def _keep(self, record: dict[str, Any]) -> None:
        name = key(record["unit"])
        self.records[name], self.provenances[name] = record, self._last

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def known(path: Path) -> list[dict[str, Any]]:
    """The complete records of a file that another process may be writing; none if there is no such file."""
    if not path.exists():
        return []
    lines = map(json.loads, path.read_bytes().split(b"\n")[1:-1])
    return [line for line in lines if "unit" in line]


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # such a system has no locks; the user must not start two runs at a time
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"Another run is writing to {path}. Wait for it, or give another folder with --out.") from None
