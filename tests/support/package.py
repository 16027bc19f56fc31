"""The modules and the source files of the package."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import infinitask

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "infinitask"


def modules() -> list[ModuleType]:
    """All modules but those for a library that is not installed, which name its extra."""
    found = [infinitask]
    for info in pkgutil.walk_packages(infinitask.__path__, prefix="infinitask."):
        if info.name.endswith("__main__"):
            continue
        try:
            found.append(importlib.import_module(info.name))
        except ImportError as error:
            if "pip install infinitask[" not in str(error):
                raise
    return found


def source_files(*folders: str) -> list[Path]:
    """The files of the package, or of some of its folders."""
    return sorted(path for folder in folders or (".",) for path in (SOURCE / folder).rglob("*.py"))
