"""Tables as CSV and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["markdown", "read_csv", "settings_used", "write_csv"]

TARGETS = Path(__file__).resolve().parent / "targets"
"""Numbers printed in the paper."""


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write rows as CSV, with the names of the first one as header; numbers have six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()})
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a table."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """A table; all columns but the first are numbers, or all are words."""
    lines = [list(header), ["---", *["---:" if numbers else "---"] * (len(header) - 1)], *map(list, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def settings_used(settings: Mapping[str, Any], origins: Mapping[str, str] | None = None) -> str:
    """The settings that all units share, as a sentence; with the origin of each, as a table.

    Parameters
    ----------
    settings : mapping
        Of a quick run, "quick" is true and "reduced" names the settings that a full run has otherwise.
    origins : mapping or None
        Of every setting, "printed" in the paper, "inferred" or "ours", with a reason after a colon if there is one.
    """
    shown = {name: value for name, value in settings.items() if name not in ("quick", "reduced")}
    reduced = settings.get("reduced", ())
    quick = "This is a quick run, for a first look: it may have fewer units than a full one, and cheaper settings are "
    quick = f"{quick}marked as reduced. " if settings.get("quick") else ""
    if origins is None:
        said = (f"{name} = {value}{' (reduced)' * (name in reduced)}" for name, value in shown.items())
        return f"{quick}Settings: {', '.join(said)}."
    wrong = {name for name in shown if origins.get(name, "").split(":")[0] not in ORIGINS}
    if wrong:
        raise ValueError(f"The settings {', '.join(sorted(wrong))} need an origin: {', '.join(ORIGINS)}.")
    values = {name: ", ".join(map(str, v)) if isinstance(v, (list, tuple)) else str(v) for name, v in shown.items()}
    lines = [[name, value, "reduced" if name in reduced else origins[name]] for name, value in values.items()]
    return (
        f"{quick}Settings, and where they are from: printed in the paper, inferred from its tables or from its "
        "authors' programs, or ours.\n\n" + markdown(["setting", "value", "origin"], lines, numbers=False)
    )


ORIGINS = ("printed", "inferred", "ours")
