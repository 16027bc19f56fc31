"""Run the quick tests with the oldest and the newest supported dependencies, on each Python of this machine.

``python tools/test_matrix.py [ARGUMENTS OF PYTEST]``, or ``make test-matrix PYTEST_ARGS="..."``. Each pair of a Python
and a set of versions has an environment of its own under ``build/matrix``. The oldest versions are the lower bounds in
pyproject.toml, of ``dependencies`` and of the extra ``test``: "numpy>=2.0" is tested with the last release of NumPy
2.0. A Python for which pip finds no wheels of these versions is reported and left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / "build" / "matrix"
NEWEST_MINOR = 20  # Pythons are searched for up to 3.20
SHOWN = ("numpy", "scipy", "scikit-learn", "numba")
VERSIONS = f"""
from importlib.metadata import PackageNotFoundError, version
for name in {SHOWN!r}:
    try:
        print(name, version(name), end="  ")
    except PackageNotFoundError:
        print(name, "absent", end="  ")
"""


def pythons(required: str) -> dict[str, str]:
    """The supported Pythons on the path and among those of pyenv, by version."""
    oldest = int(required.removeprefix(">=3."))
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in (f"3.{minor}" for minor in range(oldest, NEWEST_MINOR + 1)):
        folders = [os.environ.get("PATH", ""), *map(str, pyenv.glob(f"{version}.*/bin"))]
        paths = (shutil.which(f"python{version}", path=folder) for folder in folders)
        working = next((path for path in paths if path is not None and works(path)), None)
        if working is not None:
            found[version] = working
    return found


def works(python: str) -> bool:
    """Whether this Python runs and can make environments: version managers put names on the path that do not run."""
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0


def lower_bounds(dependencies: list[str]) -> list[str]:
    """The dependencies held at their lower bounds: ``numpy>=2.0`` becomes ``numpy==2.0.*``."""
    return [re.sub(r">=([\d.]+)$", r"==\1.*", dependency) for dependency in dependencies]


def install(python: str, folder: Path, constraints: list[str]) -> bool:
    """Make a fresh environment with the library and what its tests need; False if pip finds no such versions."""
    subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
    held = folder / "constraints.txt"
    held.write_text("\n".join(constraints) + "\n", encoding="utf-8")
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", "numpy,scipy,scikit-learn,numba,pandas"]
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", *options, "--constraint", str(held)]
    return subprocess.run([*command, "--editable", f"{ROOT}[test]"], check=False).returncode == 0


def main(arguments: list[str]) -> int:
    """Test every pair; 0 if at least one could be installed and all of those passed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounded = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    sets: dict[str, list[str]] = {"oldest": lower_bounds(bounded), "newest": []}
    results: dict[str, str] = {}
    for version, python in pythons(project["requires-python"]).items():
        for age, constraints in sets.items():
            name = f"Python {version}, {age}"
            folder = ENVIRONMENTS / f"{version}-{age}"
            print(f"== {name}", flush=True)
            if not install(python, folder, constraints):
                results[name] = "left out: pip finds no wheels of these versions"
                continue
            inside = str(folder / "bin" / "python")
            versions = subprocess.run([inside, "-c", VERSIONS], check=True, capture_output=True, text=True).stdout
            tests = subprocess.run(
                [inside, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m", "not slow", *arguments],
                cwd=ROOT,
                check=False,
            )
            results[name] = f"{'passed' if tests.returncode == 0 else 'FAILED'}  {versions}"
    print()
    for name, result in results.items():
        print(f"{name:<20} {result}")
    verdicts = [result.split()[0] for result in results.values()]
    return 0 if "passed" in verdicts and "FAILED" not in verdicts else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
