"""L-BFGS in the joint eigenbasis, at one level of smoothing.

Needs of the objective: value and gradient. SciPy decides on the host, the data stay where they live.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from infinitask._array import HostArray
from infinitask.objective import Evaluation, Smoothing
from infinitask.solvers.base import Ledger

__all__ = ["lbfgs_stage"]

MEMORY = 20


def lbfgs_stage(
    ledger: Ledger,
    z: HostArray,
    smoothing: Smoothing,
    diagonal: HostArray,
    enough: Callable[[Evaluation], bool],
    patience: int,
) -> HostArray:
    """Minimise P_κ from z, in the variables z·√diagonal, until ``enough`` of an evaluation holds; returns the new z.

    Parameters
    ----------
    ledger : Ledger
    z : ndarray (size,)
    smoothing : Smoothing
    diagonal : ndarray (size,)
        An estimate of the diagonal of the Hessian.
    enough : callable
        Whether an evaluation is good enough to stop at.
    patience : int
        Evaluations that may pass without the optimisation error being halved.
    """
    scale = 1.0 / np.sqrt(diagonal)
    last: list[Evaluation] = []
    best, since = np.inf, ledger.n_evaluations

    def value_and_gradient(x: HostArray) -> tuple[float, HostArray]:
        if ledger.exhausted:
            raise _ExhaustedError
        evaluation = ledger.evaluate(x * scale, smoothing, label=f"L-BFGS, smoothing {smoothing.kappa[0]:.1e}")
        last[:] = [evaluation]
        return evaluation.smoothed, evaluation.gradient * scale

    def callback(intermediate_result: object) -> None:
        nonlocal best, since
        ledger.n_iter += 1
        error = last[0].error
        if error < 0.5 * best:
            best, since = error, ledger.n_evaluations
        if ledger.done or enough(last[0]) or ledger.n_evaluations - since >= patience:
            raise StopIteration

    try:
        result = minimize(
            value_and_gradient,
            z / scale,
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            # the gap decides, not the size of a step
            options={
                "maxcor": MEMORY,
                "maxiter": ledger.max_iter,
                "maxfun": ledger.max_iter + 1,
                "ftol": 0.0,
                "gtol": 0.0,
            },
        )
    except _ExhaustedError:  # in the middle of a line search
        return ledger.certificate.z
    return np.asarray(result.x * scale)


class _ExhaustedError(Exception):
    """No evaluation is left."""
