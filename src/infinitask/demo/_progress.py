"""Which step of the demo is under way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["Progress"]


class Progress:
    """Names the steps: a line with running seconds on a terminal, a plain line when each is done elsewhere."""

    def __init__(self, stream: TextIO, n_steps: int) -> None:
        self._stream = stream
        self._n_steps = n_steps
        self._step = 0
        self._live = stream.isatty()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show the step while the body runs."""
        self._step += 1
        started = time.perf_counter()
        done = threading.Event()

        def line() -> str:
            return f"[{self._step}/{self._n_steps}] {name:<38} {time.perf_counter() - started:5.1f} s"

        def tick() -> None:
            while not done.wait(0.1):
                self._write(f"\r{line()}")

        clock = threading.Thread(target=tick, daemon=True)
        if self._live:
            self._write(f"\r{line()}")
            clock.start()
        finished = False
        try:
            yield
            finished = True
        finally:
            done.set()
            if self._live:
                clock.join()
            # an error that follows starts on a line of its own
            self._write(("\r" if self._live else "") + line() + ("" if finished else "  stopped") + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
