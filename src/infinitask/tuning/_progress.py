"""What a self-tuned model tells while it works: what is tried, the best so far, the time left."""

from __future__ import annotations

import sys
import time

import numpy as np

from infinitask._base.arrays import HostArray
from infinitask._base.events import Chosen, CutShort, Stage, Tried, is_heard, tell


class Progress:
    """Lines on standard error, and events for a listener (:mod:`infinitask._base.events`).

    Parameters
    ----------
    name : str
        Of the model.
    verbose : int
        0: silent.
    """

    def __init__(self, name: str, verbose: int) -> None:
        self.name, self.verbose = name, verbose
        self._begun = self._comparing = time.perf_counter()

    def say(self, line: str, kind: type[Stage | Chosen | CutShort] = Stage) -> None:
        """One line, with the seconds since the beginning, and an event: another stage, a choice, or an interrupt."""
        tell(kind(line))
        self._write(line)

    def _write(self, line: str) -> None:
        if self.verbose:
            print(f"{self.name}: {time.perf_counter() - self._begun:6.1f} s  {line}", file=sys.stderr, flush=True)

    def comparing(self) -> None:
        """The comparison begins."""
        self._comparing = time.perf_counter()

    def tried(self, count: int, total: int, kernel: str, path: HostArray, table: HostArray, unit: float) -> None:
        """A kernel was tried: the best so far, and about how long the others will take.

        Parameters
        ----------
        count, total : int
            Kernels that were tried, and that compete.
        kernel : str
        path : ndarray (λ, folds)
            Its losses.
        table : ndarray (kernels, λ, folds)
            Losses, inf where nothing was computed.
        unit : float
            Of the losses.
        """
        if not (self.verbose or is_heard()):
            return
        here, best = float(np.min(path.mean(axis=1))) * unit, float(np.min(table.mean(axis=2))) * unit
        tell(Tried(count, total, kernel, here, best))
        left = (time.perf_counter() - self._comparing) / count * (total - count)
        self._write(f"{count} of {total} kernels, {kernel}: loss {here:.4g}, best {best:.4g}; about {left:.0f} s left")
