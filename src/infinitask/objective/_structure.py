"""What an objective offers beyond values and gradients: solvers look at these properties, not at classes of losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinitask._base.arrays import namespace, to_host
from infinitask.losses import BoxLoss

if TYPE_CHECKING:
    from infinitask.objective._objective import Objective


def kinked(objective: Objective) -> bool:
    """Whether each loss is an interval of slopes with a kink, and looks at all pairs."""
    losses = [term.loss for term in objective.integrals]
    return all(isinstance(loss, BoxLoss) and not loss.smooth(1.0) and not loss.few for loss in losses)


def free_levels(objective: Objective) -> bool:
    """Whether a free level stands at every node, and the slopes of the only loss are intervals around 0."""
    term, *others = objective.integrals
    m, loss = int(term.theta.shape[0]), term.loss
    if others or not objective.free or objective.bias_linear is not None or term.row_weight is not None:
        return False
    if term.bias_cols is None or term.bias_cols.shape != (m, m) or term.targets is None:
        return False
    if objective.rows.dtype != namespace(objective.rows).float64 or loss.shares_of(term.targets) is not None:
        return False
    row = term.row_of(slice(None))
    if row is None or not row.plain or row.low is None or row.high is None or loss.smooth(1.0):
        return False
    around = np.all(to_host(row.low) <= 0.0) and np.all(to_host(row.high) >= 0.0)
    return bool(around and np.linalg.cond(to_host(term.bias_cols)) <= 1e3)


def one_class(objective: Objective) -> bool:
    """Whether each node has an h of its own, slopes in [0, 1/θ] and no target, and a bias with a ridge joins them."""
    term, *others = objective.integrals
    (m, s), loss = term.cols.shape, term.loss
    if others or term.targets is not None or term.bias_cols is None or objective.alpha_bias <= 0.0:
        return False
    if not isinstance(objective.rows, np.ndarray) or term.row_weight is not None or m != s:
        return False
    if not isinstance(loss, BoxLoss) or type(loss).residual is not BoxLoss.residual or np.size(term.theta) != m:
        return False
    theta, row = np.ravel(to_host(term.theta)), loss.row(term.theta, None)
    if not row.plain or row.low is None or row.high is None or np.any(row.low) or np.any(theta <= 0.0):
        return False
    if not np.allclose(np.ravel(row.high) * theta, 1.0) or abs(float(np.sum(objective.sample_weight)) - 1.0) > 1e-8:
        return False
    gram = term.cols.T @ (term.weights[:, None] * term.cols)
    return bool(np.max(np.abs(to_host(gram) - np.eye(s))) < 1e-8)
