"""Support vector machines, one for every task: scikit-learn's (libsvm, one thread) and ThunderSVM's (OpenMP, float32).

scikit-learn's class weights times C = 1/(λn) are the costs of :func:`suite.duality.costs`; its one-class machine is
that of :func:`suite.duality.one_class` times νn.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from suite.clock import Clock, Measured, one_by_one
from suite.duality import Bounds, costs, one_class
from suite.peers.qp import certificate
from suite.problems import Costs, LevelSets, interleaved, spread
from suite.scores import cost_scores, level_set_scores

Array = NDArray[np.float64]

TOL = 1e-3
"""The default tolerance of both."""


def _module(package: str) -> Any:
    if package == "sklearn":
        import sklearn.svm as module
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import thundersvm as module
    return module


def _threads(package: str, clock: Clock) -> dict[str, int]:
    return {} if package == "sklearn" else {"n_jobs": clock.cores}


def each_cost(case: Costs, clock: Clock, package: str) -> Measured:
    """A machine with class weights for every θ."""
    X, y, X_test, y_test = case.data
    module, n = _module(package), y.size

    def solve(j: int) -> tuple[Array, Array, Array, float]:
        theta = case.tasks[j]
        weights = {0: 0.5 * (1.0 - theta), 1: 0.5 * (1.0 + theta)}
        model = module.SVC(
            kernel="rbf",
            gamma=case.gamma,
            C=1.0 / (case.alpha * n),
            class_weight=weights,
            tol=TOL,
            **_threads(package, clock),
        )
        model.fit(X, y)
        return model.predict(X_test) == 1, *_cost_solution(model, package, y)

    answers = one_by_one(solve, interleaved(case.m), case.m, clock, fork=package == "sklearn")
    metrics: dict[str, Any] = {}
    if len(answers.results) == case.m:
        metrics = cost_scores(np.column_stack([answers.results[j][0] for j in range(case.m)]), y_test, case.tasks)
    signs = np.where(y == 1, 1.0, -1.0)
    bounds = []
    for j in spread(case.m):
        if j in answers.results:
            _, support, coef, bias = answers.results[j]
            weights = 0.5 * (1.0 + case.tasks[j] * signs)
            K = rbf_kernel(X, X[support], gamma=case.gamma)
            bounds.append(costs(K, signs, support, coef, bias, weights, case.alpha))
    return answers.measured(**metrics, **certificate(bounds, len(spread(case.m))))


def _cost_solution(model: Any, package: str, y: Array) -> tuple[Array, Array, float]:
    """Support, y_i a_i and bias, with the second class positive."""
    coef, bias = np.ravel(model.dual_coef_).astype(float), float(np.ravel(model.intercept_)[0])
    support = np.asarray(model.support_)
    if package == "sklearn":
        return support, coef, bias
    # ThunderSVM calls the class of the first row positive, and what it calls intercept_ is subtracted
    sign = 1.0 if y[0] == 1 else -1.0
    return support, sign * coef, -sign * bias


def each_set(case: LevelSets, clock: Clock, package: str) -> Measured:
    """A one-class machine for every ν."""
    X, X_test = case.data
    module, n = _module(package), case.n

    def solve(j: int) -> tuple[Array, Array, Array, float]:
        model = module.OneClassSVM(
            kernel="rbf", gamma=case.gamma, nu=case.tasks[j], tol=TOL, **_threads(package, clock)
        )
        model.fit(X)
        scale = 1.0 / (case.tasks[j] * n)
        offset = float(np.ravel(model.intercept_)[0])
        threshold = scale * (-offset if package == "sklearn" else offset)
        outside = np.ravel(model.predict(X_test)) == -1
        coef = scale * np.ravel(model.dual_coef_).astype(float)
        return outside, np.asarray(model.support_), coef, threshold

    answers = one_by_one(solve, interleaved(case.m), case.m, clock, fork=package == "sklearn")
    found, nus = answers.results, case.tasks
    train: dict[int, Array] = {}
    bounds: list[Bounds] = []
    for j, (_, support, coef, threshold) in found.items():
        K = rbf_kernel(X, X[support], gamma=case.gamma)
        train[j] = K @ coef < threshold
        if j in spread(case.m):
            bounds.append(one_class(K, support, coef, threshold, nus[j]))
    metrics: dict[str, Any] = {}
    if len(found) == case.m:
        parts = (train, {j: outside for j, (outside, *_) in found.items()})
        metrics = level_set_scores(*(np.column_stack([part[j] for j in range(case.m)]) for part in parts), nus)
    return answers.measured(**metrics, **certificate(bounds, len(spread(case.m))))
