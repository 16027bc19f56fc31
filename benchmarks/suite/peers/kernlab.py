"""kernlab's ``kqr`` through R: kernel quantile regression with a free bias, level by level.

It solves min ½‖f‖² + C Σ ρ_θ(y − f(x) − b) with C = 1/(λn), and predicts K c − b where c are its coefficients.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from suite.clock import Clock, Measured
from suite.duality import Bounds, pinball
from suite.peers.qp import certificate
from suite.problems import CHECKED, LEVELS, Regression
from suite.scores import quantile_scores

SCRIPT = Path(__file__).with_name("kqr.R")


@lru_cache(maxsize=1)
def missing() -> str | None:
    """Why it cannot run; None if it can."""
    if shutil.which("Rscript") is None:
        return "Rscript is not on the path"
    found = subprocess.run(["Rscript", "-e", "library(kernlab)"], capture_output=True, text=True, check=False)
    return None if found.returncode == 0 else "R has no package kernlab"


def each_level(case: Regression, clock: Clock) -> Measured:
    """The checked levels within the budget; R times the fits, the predictions are timed here."""
    X, y, X_test, y_test = case.data
    n, d = X.shape
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X.T.astype("<f8").tofile(folder / "X.bin")  # R stores by columns
        y.astype("<f8").tofile(folder / "y.bin")
        numbers = [str(n), str(d), repr(case.gamma), repr(1.0 / (case.alpha * n)), repr(clock.budget)]
        command = ["Rscript", str(SCRIPT), name, *numbers, *map(repr, CHECKED)]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        about, *rows = printed
        found = [list(map(float, row.split())) for row in rows]  # level, seconds, b
        coef = np.fromfile(folder / "coef.bin", dtype="<f8").reshape(len(found), n)
    K, K_test = rbf_kernel(X, gamma=case.gamma), rbf_kernel(X_test, X, gamma=case.gamma)
    predicted, bounds, raw = {}, [], []
    for (level, seconds, b), c in zip(found, coef, strict=True):
        h = K @ c
        ridge = 0.5 * case.alpha * float(c @ h)
        primal = float(pinball(y - h + b, level).mean()) + ridge
        bounds.append(Bounds(primal, case.alpha * float(c @ y) - ridge))
        started = time.perf_counter()
        predicted[level] = K_test @ c - b
        raw.append(seconds + time.perf_counter() - started)
    metrics = quantile_scores(predicted, y_test) | certificate(bounds, len(CHECKED)) | {"about": about}
    return Measured(float(np.mean(raw)) * LEVELS.size, raw, LEVELS.size, len(raw), metrics)
