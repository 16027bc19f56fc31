"""Three continua of tasks, fitted, measured and drawn: ``python -m infinitask.demo``.

Each example makes its data, fits one estimator, measures it on held-out data, and draws the result.
"""

from ._run import main

__all__ = ["main"]
