"""The machine on which figures are measured, and the number of threads of a process."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "infinitask",
    "numpy",
    "scipy",
    "scikit-learn",
    "piqp",
    "cvxpy",
    "clarabel",
    "osqp",
    "liquidSVM",
    "thundersvm-cpu",
    "lightgbm",
    "quantile-forest",
    "numba",
)
LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def environment(threads: int) -> dict[str, str]:
    """The environment of a process with this number of threads; libraries read it when they are loaded."""
    return {**os.environ, **dict.fromkeys(LIMITS, str(threads))}


def confine(threads: int) -> None:
    """Limit this process to this number of cores, where the system can, so that no library uses more."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def versions() -> dict[str, str]:
    """Versions of the library and of the installed peers."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def description() -> dict[str, Any]:
    """System, processor, cores, and how busy they were."""
    found: dict[str, Any] = {"system": platform.system(), "machine": platform.machine(), "cores": cores()}
    information = Path("/proc/cpuinfo")
    if information.exists():
        names = [line for line in information.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        if names:
            found["processor"] = names[0].split(":", 1)[1].strip()
    if hasattr(os, "getloadavg"):
        found["load"] = round(os.getloadavg()[0], 2)
    return found
