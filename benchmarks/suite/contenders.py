"""The contenders: the library in several ways, and the peers that are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from suite import ours
from suite.clock import Clock, Measured
from suite.peers import kernlab, liquid, qp, regressors, svm

SINGLE_THREAD = ("small", "path")
"""Problems that are run with one thread only."""


@dataclass(frozen=True)
class Contender:
    """A method that solves a problem.

    Parameters
    ----------
    name : str
    run : callable
        Of the case and a clock.
    solves : str
        Which problem it solves; those that solve the same one have comparable objectives.
    needs : str
        The package without which it is skipped; "": none.
    ours : bool
    largest : int or None
        The largest n at which it is run.
    """

    name: str
    run: Callable[[Any, Clock], Measured]
    solves: str = ""
    needs: str = ""
    ours: bool = False
    largest: int | None = None

    def missing(self) -> str | None:
        """The reason why it cannot run here; None if it can."""
        if self.needs == "kernlab":
            return kernlab.missing()
        if self.needs == "infinitask.fit_path":
            import infinitask

            return None if hasattr(infinitask, "fit_path") else "infinitask has no fit_path"
        for package in self.needs.split():
            if importlib.util.find_spec(package) is None:
                return f"the package {package} is not installed"
        return None


CONTINUUM, FIXED, FREE, OTHER = "all levels at once", "one level, fixed bias", "one level, free bias", "another problem"
JOINT = "5 levels jointly, free biases"
ALL_COSTS, ONE_COST = "all costs at once", "one cost"
ALL_SETS, ONE_SET = "all fractions at once", "one fraction"
PACKAGES = {"PIQP": "piqp", "Clarabel": "cvxpy clarabel", "OSQP": "cvxpy osqp"}
PROOF = 500
"""The largest n at which the library solves the peers' single problems, which shows that they are the same problems."""


def _programs(run: Callable[..., Measured], solves: str) -> Iterator[Contender]:
    """Each with its default tolerances and, where this saves time, with loose ones; those of OSQP are loose already."""
    for solver, needs in PACKAGES.items():
        for loose in (False,) if solver == "OSQP" else (False, True):
            through = "" if solver == "PIQP" else " by cvxpy"
            name = f"{solver}{through}{' (loose)' if loose else ''}"
            yield Contender(name, partial(run, solver=solver, loose=loose), solves, needs)


def _trees() -> Iterator[Contender]:
    for name, run, needs in (
        ("HistGradientBoosting", regressors.boosting, ""),
        ("LightGBM", regressors.lightgbm, "lightgbm"),
        ("quantile forest", regressors.forest, "quantile_forest"),
    ):
        for rotated in (False, True):
            yield Contender(f"{name}{' (rotated)' if rotated else ''}", partial(run, rotated=rotated), OTHER, needs)


CONTENDERS: dict[str, tuple[Contender, ...]] = {
    "quantiles": (
        Contender("ours (non-crossing 1)", partial(ours.every_level, noncrossing=1.0), CONTINUUM, ours=True),
        Contender("ours (non-crossing 0)", partial(ours.every_level, noncrossing=0.0), CONTINUUM, ours=True),
        Contender("ours (level by level)", ours.each_level, FIXED, ours=True, largest=PROOF),
        *_programs(qp.each_level, FIXED),
        Contender("liquidSVM", partial(liquid.every_level, stop=None), FIXED, "liquidSVM"),
        Contender("liquidSVM (tight)", partial(liquid.every_level, stop=liquid.TIGHT), FIXED, "liquidSVM"),
        Contender("ours (level by level, free)", ours.free_biases, FREE, ours=True, largest=PROOF),
        Contender("kernlab", kernlab.each_level, FREE, "kernlab"),
        Contender("QuantileRegressor on Nyström", regressors.l1_on_landmarks, OTHER),
        *_trees(),
    ),
    "joint": (
        Contender("ours", ours.joint, JOINT, ours=True),
        *_programs(qp.joint, JOINT),
    ),
    "cost-sensitive": (
        Contender("ours", ours.every_cost, ALL_COSTS, ours=True),
        Contender("ours (cost by cost)", ours.each_cost, ONE_COST, ours=True, largest=PROOF),
        Contender("SVC", partial(svm.each_cost, package="sklearn"), ONE_COST),
        Contender("ThunderSVM", partial(svm.each_cost, package="thundersvm"), ONE_COST, "thundersvm"),
    ),
    "level-sets": (
        Contender("ours", ours.every_set, ALL_SETS, ours=True),
        Contender("ours (fraction by fraction)", ours.each_set, ONE_SET, ours=True, largest=PROOF),
        Contender("OneClassSVM", partial(svm.each_set, package="sklearn"), ONE_SET),
        Contender("ThunderSVM", partial(svm.each_set, package="thundersvm"), ONE_SET, "thundersvm"),
    ),
    "small": (
        Contender("ours", ours.small, CONTINUUM, ours=True),
        Contender("PIQP", qp.small, FIXED, "piqp"),
        Contender("liquidSVM (middle)", liquid.small, FIXED, "liquidSVM"),
    ),
    "path": (
        Contender("ours (separate fits)", ours.separate_fits, CONTINUUM, ours=True),
        Contender("ours (fit_path)", ours.path, CONTINUUM, "infinitask.fit_path", ours=True),
    ),
}


def contender(problem: str, name: str) -> Contender:
    """By name."""
    return next(found for found in CONTENDERS[problem] if found.name == name)
