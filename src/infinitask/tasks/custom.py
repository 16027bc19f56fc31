"""The task for a loss given by name, or for a custom loss."""

from __future__ import annotations

from typing import Any

from infinitask.losses import CostSensitiveHinge, EpsilonInsensitive, Expectile, Loss, MQuantile, Pinball, Squared
from infinitask.measures import Measure
from infinitask.tasks.base import Task
from infinitask.tasks.cost import CostTask
from infinitask.tasks.curves import CurveTask
from infinitask.tasks.epsilon import EpsilonTask
from infinitask.tasks.expectile import ExpectileTask
from infinitask.tasks.quantile import QuantileTask

TASKS: tuple[tuple[type[Loss] | tuple[type[Loss], ...], type[Task]], ...] = (
    ((Pinball, MQuantile), QuantileTask),
    (Expectile, ExpectileTask),
    (EpsilonInsensitive, EpsilonTask),
    (CostSensitiveHinge, CostTask),
    (Squared, CurveTask),
)


def task_for(loss: Loss, measure: Measure, **parts: Any) -> Task:
    """Return the task with the defaults for a loss; :class:`Task` itself for a custom loss.

    Parameters
    ----------
    loss : Loss
    measure : Measure
    parts
        ``penalty`` and ``order``.
    """
    kind = next((task for losses, task in TASKS if isinstance(loss, losses)), Task)
    return kind(loss=loss, measure=measure, **parts)
