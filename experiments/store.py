"""Store the results of units of work, one line each, on disk as soon as they are known."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["PAGES", "Store", "curves_of", "key", "known", "records_of"]

PAGES = Path(__file__).resolve().parents[1] / "docs" / "results"
"""Where the pages, pictures and tables of the documentation are."""


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

    A line is written, flushed and synchronised before the next one. A process that is killed leaves at most one broken
    line at the end, which is cut off at the next start.

    Parameters
    ----------
    path : Path
    settings : dict
        What the units depend on besides their names. A file with other settings is refused: results must not be mixed.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path, self.settings = path, json.loads(json.dumps(settings))
        self.records: dict[str, dict[str, Any]] = {}

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
            record = json.loads(line)
            self.records[key(record["unit"])] = record

    def add(self, record: Mapping[str, Any]) -> None:
        """Store a record: {"unit": ..., "result": ..., "seconds": ...}."""
        self._write(record)
        self.records[key(record["unit"])] = json.loads(json.dumps(record))

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def known(path: Path) -> list[dict[str, Any]]:
    """The complete records of a file that another process may be writing; none if there is no such file."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")[1:-1]
    return [json.loads(line) for line in lines]


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # such a system has no locks; the user must not start two runs at a time
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"Another run is writing to {path}. Wait for it, or give another folder with --out.") from None
