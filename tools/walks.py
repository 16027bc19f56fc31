"""Count the modules that a call of a user passes through, and the edges between them.

``python tools/walks.py`` traces ``fit`` and ``predict`` of a quantile regressor, ``fit`` of its self-tuned relative and
``fit`` of three classes, on 200 rows. A module counts when one of its functions runs; an edge leads from the module of
a caller to the module of the function it calls. Pairs of modules that call each other both ways are listed: above
``objective`` there should be none.

``--edges`` lists every edge as well.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import infinitask
from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.tuning import InfiniteQuantileRegressorCV

PACKAGE = Path(infinitask.__file__).parent
N_ROWS = 200
BELOW = ("_base", "kernels", "measures", "features", "losses", "penalties", "objective", "solvers", "field")
"""Modules in which calls in both directions are natural: a solver calls the objective, which calls a loss."""


@dataclass
class Walk:
    """The modules that a call visited, and the edges between them."""

    modules: set[str] = field(default_factory=set)
    edges: set[tuple[str, str]] = field(default_factory=set)

    def visit(self, frame: FrameType, event: str, _: Any) -> None:
        """Note a call; a hook for ``sys.setprofile``."""
        if event != "call":
            return
        here = _module(frame)
        if here is None:
            return
        self.modules.add(here)
        caller = frame.f_back
        while caller is not None and (there := _module(caller)) is None:
            caller = caller.f_back
        if caller is not None and there != here:
            self.edges.add((there, here))

    @property
    def both_ways(self) -> list[tuple[str, str]]:
        """Pairs of modules above ``objective`` that call each other."""
        return sorted(
            (a, b)
            for a, b in self.edges
            if a < b and (b, a) in self.edges and not (a.startswith(BELOW) and b.startswith(BELOW))
        )


def _module(frame: FrameType) -> str | None:
    """The module of a function of the package, without the package's name; the top of a file does not count."""
    if frame.f_code.co_name == "<module>":
        return None
    path = Path(frame.f_code.co_filename)
    return str(path.relative_to(PACKAGE).with_suffix("")).replace(os.sep, ".") if PACKAGE in path.parents else None


def walk(call: Callable[[], Any]) -> Walk:
    """The walk of a call."""
    found = Walk()
    threading.setprofile(found.visit)
    sys.setprofile(found.visit)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return found


def main() -> int:
    """Trace, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", action="store_true", help="list every edge")
    options = parser.parse_args()
    os.environ["INFINITASK_COMPILED"] = "0"  # compiled functions leave no trace
    X, y = make_sine(N_ROWS, random_state=0)
    InfiniteQuantileRegressor().fit(X, y).predict(X)  # imports and caches of the first use are not counted
    model = InfiniteQuantileRegressor()
    calls: dict[str, Callable[[], Any]] = {
        "fit": lambda: model.fit(X, y),
        "predict": lambda: model.predict(X, quantiles=[0.1, 0.5, 0.9]),
        "fit of the self-tuned model": lambda: InfiniteQuantileRegressorCV(random_state=0).fit(X, y),
        "fit of three classes": lambda: InfiniteCostSensitiveClassifier().fit(X, np.digitize(y, [-0.5, 0.5])),
    }
    print(f"{'call':<28} {'modules':>7} {'edges':>6}  both ways")
    for name, call in calls.items():
        found = walk(call)
        pairs = ", ".join(f"{a} <-> {b}" for a, b in found.both_ways) or "none"
        print(f"{name:<28} {len(found.modules):>7} {len(found.edges):>6}  {pairs}")
        if options.edges:
            for a, b in sorted(found.edges):
                print(f"    {a} -> {b}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
