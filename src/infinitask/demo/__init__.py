"""Three continua of tasks, learnt, measured and drawn: ``python -m infinitask.demo``.

Each example makes its data, fits one estimator, measures it on unseen data, and draws what was learnt.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if all went well.

    Parameters
    ----------
    arguments : sequence of str or None
        The words after the command; None: those of the process.
    """
    from infinitask.demo._run import main

    return main(arguments)
