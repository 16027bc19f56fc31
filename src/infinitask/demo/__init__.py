"""Three continua of tasks, learnt, measured and drawn: ``python -m infinitask.demo``.

Each example makes its data, fits one estimator, measures it on unseen data, and draws what was learnt.
"""

from ._run import main

__all__ = ["main"]
