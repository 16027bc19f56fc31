"""The provenance of a page: the commit, the date and the versions behind its figures, in one line.

Every program that makes a page signs it. The line is the last one of the page, and :func:`read` reads it back::

    Provenance: `make reproduce NAME=table1` at commit `abc1234` of 2026-11-18; code: `src/infinitask`; Python 3.11.7, …

The commit is that of the code that computed the figures, not the one that added the page. A page whose figures come
from several runs names the newest commit and the oldest one.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import threadpoolctl

__all__ = ["CODE", "UNKNOWN", "Provenance", "combined", "now", "read", "reproduce", "signed", "unrecorded"]

ROOT = Path(__file__).resolve().parents[1]

CODE = ("src/infinitask",)
"""The code that figures depend on, unless a program names other paths."""

UNKNOWN = "unknown"
"""The commit of figures that were computed outside a clone, or whose provenance was not recorded."""

SOME_DAY = "an unknown date"

PACKAGES = {"NumPy": "numpy", "SciPy": "scipy", "scikit-learn": "scikit-learn"}

LINE = re.compile(
    r"^Provenance: `(?P<command>[^`]+)` at commit `(?P<commit>[0-9a-f]{7,40}|unknown)`(?P<modified> with changes)?"
    r" of (?P<date>\d{4}-\d\d-\d\d|an unknown date)"
    r"(?:, oldest figures at `(?P<oldest>[0-9a-f]{7,40}|unknown)` of "
    r"(?P<oldest_date>\d{4}-\d\d-\d\d|an unknown date))?"
    r"; code: (?P<code>`[^`]+`(?:, `[^`]+`)*); (?P<made>.+)\.$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Provenance:
    """Where figures come from; ``str`` of it is the line of a page.

    Parameters
    ----------
    command : str
        The command that makes the page.
    commit, date : str
        The short hash of the newest code behind the figures, and the day in UTC on which it ran, such as 2026-11-18.
    code : sequence of str
        Paths of the code that the figures depend on, relative to the root of the repository.
    made : str
        Versions and machine, or how the provenance was recovered.
    modified : bool
        Whether the code differed from the commit.
    oldest, oldest_date : str
        The same for the oldest figures, if they come from another commit.
    """

    command: str
    commit: str
    date: str
    code: tuple[str, ...]
    made: str
    modified: bool = False
    oldest: str = ""
    oldest_date: str = ""

    def __str__(self) -> str:
        changes = " with changes" if self.modified else ""
        oldest = f", oldest figures at `{self.oldest}` of {self.oldest_date}" if self.oldest else ""
        code = ", ".join(f"`{path}`" for path in self.code)
        return (
            f"Provenance: `{self.command}` at commit `{self.commit}`{changes} of {self.date}{oldest}; "
            f"code: {code}; {self.made}."
        )


def now(command: str, *, code: Sequence[str] = CODE, device: str = "") -> Provenance:
    """The provenance of figures that are computed now.

    Call it before the computation, because the tree may change meanwhile. In a copy without a history the variable
    ``INFINITASK_COMMIT`` gives the commit.

    Parameters
    ----------
    command : str
        The command that makes the page, as a reader would type it.
    code : sequence of str
        Paths of the code that the figures depend on.
    device : str
        The accelerator, if there is one.
    """
    python = [f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in PACKAGES)]
    versions = ", ".join([*python, f"infinitask {import_module('infinitask').__version__}"])
    machine = f"{platform.system()} {platform.machine()}, {_cores()} cores" + (f", {device}" if device else "")
    return Provenance(
        command=command,
        commit=_git("rev-parse", "--short", "HEAD") or os.environ.get("INFINITASK_COMMIT", UNKNOWN),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        code=tuple(code),
        made="; ".join([versions, machine, *_blas()]),
        # results are written during a run, so that only programs count
        modified=bool(_git("status", "--porcelain", "--", "src", "experiments/*.py", "benchmarks/*.py")),
    )


def read(text: str) -> Provenance | None:
    """The provenance in the text of a page, the last one if there are several; None if there is none."""
    found = list(LINE.finditer(text))
    if not found:
        return None
    fields = found[-1].groupdict(default="")
    code, modified = tuple(re.findall(r"`([^`]+)`", fields.pop("code"))), bool(fields.pop("modified"))
    return Provenance(code=code, modified=modified, **fields)


def combined(every: Sequence[Provenance]) -> Provenance:
    """The provenance of figures from several runs, of which the later ones stand last: the newest, with the oldest."""
    ordered = sorted(every, key=lambda one: "" if one.date == SOME_DAY else one.date)
    oldest, newest = ordered[0], ordered[-1]
    if oldest.commit == newest.commit:
        return replace(newest, modified=any(one.modified for one in every))
    return replace(newest, oldest=oldest.commit, oldest_date=oldest.date)


def unrecorded(provenance: Provenance) -> Provenance:
    """The same command and code, with nothing known about the run."""
    return replace(provenance, commit=UNKNOWN, date=SOME_DAY, made="nothing else was recorded", modified=False)


def signed(text: str, provenance: Provenance | str) -> str:
    """The text of a page with its provenance as the last line."""
    return f"{text.rstrip()}\n\n{provenance}\n"


def reproduce(name: str, *, quick: bool = False) -> str:
    """The command that runs an experiment."""
    return f'make reproduce NAME="{name} --quick"' if quick else f"make reproduce NAME={name}"


def _git(*arguments: str) -> str:
    """What git says about this clone; nothing in a folder without a history."""
    if not (ROOT / ".git").exists():  # git would describe a repository around it
        return ""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:  # git is not installed
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(name: str) -> str:
    try:
        return version(PACKAGES[name])
    except PackageNotFoundError:
        return "of unknown version"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _blas() -> list[str]:
    pools = (pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas")
    return sorted({f"{pool['internal_api']} {pool['version']} ({pool['architecture']})" for pool in pools})
