"""Store objectives, gaps and predictions of more than a hundred seeded fits, and see whether a change moves them.

``python tools/seeded_fits.py store FILE`` before a change, ``python tools/seeded_fits.py compare FILE`` after it. Every
estimator and nearly every option is there, on small data. Run both without compiled code (``INFINITASK_COMPILED=0``):
rounding differs between the two paths, and with it the last steps of a solver.

``--only WORD`` takes the fits whose name contains the word; ``--tol`` is the largest difference allowed, relative to
the largest number of an answer.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.datasets import make_moons
from sklearn.model_selection import KFold

from infinitask import (
    CrossConformal,
    IndependentCostSensitiveClassifier,
    IndependentQuantileRegressor,
    InfiniteCostSensitiveClassifier,
    InfiniteExpectileRegressor,
    InfiniteFunctionRegressor,
    InfiniteKernelRidge,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    InfiniteTaskEstimator,
    JointQuantileRegressor,
    QOneClassSVM,
    fit_path,
    score_path,
)
from infinitask.bounds import bound_of
from infinitask.datasets import make_mixture, make_sine
from infinitask.kernels import RBF, Gaussian, Laplacian, Linear, MaternTask, Scaled, TaskMatrix
from infinitask.losses import BoxLoss, ConvexLoss, Row
from infinitask.measures import Beta, Discrete, GaussLegendre, ProductMeasure, TruncatedNormal, Uniform
from infinitask.metrics import scorer
from infinitask.penalties import IntegratedRidge
from infinitask.streaming import Blocks
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
    OptunaSearch,
)

Answer = dict[str, Any]
LEVELS = [0.1, 0.35, 0.5, 0.9]
X, Y = make_sine(90, random_state=0)
X_NEW = make_sine(30, random_state=1)[0]
X_MOONS, Y_MOONS = make_moons(120, noise=0.3, random_state=0)
X_CLOUDS = make_mixture(120, random_state=0)
RNG = np.random.default_rng(0)
X_WIDE = RNG.normal(size=(80, 4))
Y_WIDE = X_WIDE[:, 0] + 0.5 * X_WIDE[:, 1] ** 2 + 0.3 * RNG.normal(size=80)
WEIGHT = RNG.integers(0, 3, size=90).astype(float)


class TubePinball(BoxLoss):
    """Quantiles with a tube: θ = (level, half-width)."""

    def row(self, theta: Any, y: Any) -> Row:
        """The interval of slopes and the dead zone."""
        return Row(theta[:, 0] - 1.0, theta[:, 0], dead_zone=theta[:, 1])


class LogCosh(ConvexLoss):
    """θ log cosh(y − h): no row of the table."""

    domain = (0.5, 2.0)

    def value(self, theta: Any, y: Any, h: Any) -> Any:
        """The loss."""
        return theta * np.log(np.cosh(y - h))

    def slope(self, theta: Any, y: Any, h: Any) -> Any:
        """Its derivative by h."""
        return -theta * np.tanh(y - h)


def fitted(model: Any) -> Answer:
    """The numbers that every fit has."""
    return {"objective": model.objective_, "gap": model.dual_gap_, "nodes": model.nodes_, "weights": model.weights_}


def quantile(data: Any = (X, Y), new: Any = X_NEW, weight: Any = None, **options: Any) -> Answer:
    """A quantile regressor."""
    model = InfiniteQuantileRegressor(**{"n_nodes": 12, "random_state": 0, **options})
    model.fit(*data, sample_weight=weight)
    inside = options.get("levels") or (LEVELS if "diagonal" not in str(options.get("task_kernel")) else model.nodes_)
    answer = fitted(model) | {"values": model.predict(new, quantiles=inside), "score": model.score(*data)}
    if hasattr(model, "smallest_slope_"):
        answer["smallest slope"] = model.smallest_slope_
    return answer


def gram(**options: Any) -> Answer:
    """A precomputed kernel."""
    kernel = RBF(gamma=5.0)
    return quantile((kernel(X, X), Y), kernel(X_NEW, X), kernel="precomputed", **options)


def discrete_quantiles(measure: Any, levels: Any, **options: Any) -> Answer:
    """Quantiles of a few levels."""
    model = InfiniteQuantileRegressor(measure=measure, random_state=0, **options).fit(X, Y)
    return fitted(model) | {"values": model.predict(X_NEW, quantiles=levels)}


def distribution() -> Answer:
    """Distributions, samples and intervals from quantile functions."""
    model = InfiniteQuantileRegressor(alpha=1e-4, n_nodes=15).fit(X, Y)
    law = model.predict_distribution(X_NEW)
    held_out = make_sine(50, random_state=2)
    answer = {
        "mean": law.mean(),
        "crps": law.crps(np.zeros(30)),
        "cdf": model.predict_cdf(X_NEW, 0.1),
        "sample": model.sample(X_NEW, 3, random_state=0),
        "interval": model.predict_interval(X_NEW, 0.8),
    }
    model.conformalize(*held_out)
    return answer | {"conformal": model.predict_interval(X_NEW, 0.8), "bound": bound_of(model, X, Y).risk}


def warm(**options: Any) -> Answer:
    """A second fit that starts from the first one."""
    model = InfiniteQuantileRegressor(n_nodes=12, warm_start=True, **options).fit(X, Y)
    model.set_params(alpha=2e-4).fit(X, Y)
    return fitted(model) | {"values": model.predict(X_NEW, quantiles=LEVELS)}


def expectile(**options: Any) -> Answer:
    """An expectile regressor."""
    model = InfiniteExpectileRegressor(**{"n_nodes": 12, **options}).fit(X, Y)
    return fitted(model) | {"values": model.predict(X_NEW, expectiles=LEVELS), "score": model.score(X, Y)}


def costs(data: Any = (X_MOONS, Y_MOONS), weight: Any = None, **options: Any) -> Answer:
    """A cost-sensitive classifier and its predictions."""
    model = InfiniteCostSensitiveClassifier(**{"n_nodes": 10, **options}).fit(*data, sample_weight=weight)
    theta = [-0.5, 0.0, 0.4] if "diagonal" not in str(options.get("task_kernel")) else model.nodes_
    answer = fitted(model) | {"values": model.decision_function(data[0], theta), "p": model.predict_proba(data[0])}
    if "task_kernel" not in options:
        answer["ordered"] = model.decision_function(data[0])
        answer["area"] = model.roc_curve(*data).area
        answer["cost"] = model.cost_curve(*data).cost
        answer["chosen"] = model.choose_theta(*data, max_fpr=0.2)
        answer["own"] = model.decision_function(data[0], np.linspace(-0.5, 0.5, len(data[0])), per_sample=True)
    return answer


def bound_of_costs() -> Answer:
    """A bound of a classifier."""
    model = InfiniteCostSensitiveClassifier(n_nodes=10, alpha=0.1, alpha_bias=None).fit(X_MOONS, Y_MOONS)
    return {"bound": bound_of(model, X_MOONS, Y_MOONS).risk}


def sets(weight: Any = None, **options: Any) -> Answer:
    """A one-class SVM and its predictions."""
    model = InfiniteOneClassSVM(**{"n_nodes": 15, **options}).fit(X_CLOUDS, sample_weight=weight)
    nu = [0.1, 0.4, 0.8]
    return fitted(model) | {
        "values": model.decision_function(X_CLOUDS, nu=nu),
        "scores": model.score_samples(X_CLOUDS),
        "threshold": model.threshold(nu),
        "area": model.mass_volume_area(X_CLOUDS, random_state=0, n_samples=500),
    }


def tube(**options: Any) -> Answer:
    """A support vector regression for every ε."""
    model = InfiniteSVR(**{"n_nodes": 12, **options}).fit(X, Y)
    epsilon = model.nodes_ if "diagonal" in str(options.get("task_kernel")) else [0.0, 0.2, 0.7]
    return fitted(model) | {"values": model.predict(X_NEW, epsilon=epsilon)}


def ridge(**options: Any) -> Answer:
    """A ridge path."""
    model = InfiniteKernelRidge(**{"n_nodes": 15, "gamma": 5.0, **options}).fit(X, Y)
    at = model.nodes_ if options.get("task_kernel") == "diagonal" else [-5.0, -2.5, 0.0]
    return fitted(model) | {"values": model.predict(X_NEW, log_alpha=at)}


def task(theta: Any, data: Any = (X, Y), new: Any = X_NEW, **options: Any) -> Answer:
    """The general case."""
    model = InfiniteTaskEstimator(**{"n_nodes": 12, "random_state": 0, **options}).fit(*data)
    return fitted(model) | {"values": model.decision_function(new, theta), "score": model.score(*data)}


def finite(model: Any, data: Any, ask: str, **options: Any) -> Answer:
    """A finite relative."""
    model.fit(*data)
    return fitted(model) | {"values": getattr(model, ask)(data[0], **options)}


def cross_conformal(model: Any) -> Answer:
    """Intervals from held-out fits."""
    model.fit(X, Y)
    return {"interval": model.predict_interval(X_NEW, 0.8)}


def path() -> Answer:
    """A path of λ."""
    models = fit_path(InfiniteQuantileRegressor(n_nodes=12), X, Y, alphas=[1e-2, 1e-4, 1e-3])
    return {f"{m.alpha:g}": m.predict(X_NEW, quantiles=LEVELS) for m in models}


def scores(model: Any, data: Any, **options: Any) -> Answer:
    """Cross-validated paths."""
    return {"scores": score_path(model, *data, cv=KFold(3, shuffle=True, random_state=0), **options)}


def self_tuned(model: Any, data: Any, **asked: Any) -> Answer:
    """A model that tunes itself."""
    model.fit(*data)
    table = model.cv_results_
    answer = fitted(model) | {"alpha": model.alpha_, "losses": table["losses"], "alphas": table["alphas"]}
    return answer | {"values": model.predict(data[0], **asked), "best": table["best"]}


def three_classes(**options: Any) -> Answer:
    """Decisions between three classes."""
    labels = np.digitize(Y_WIDE, np.quantile(Y_WIDE, [0.3, 0.6]))
    model = InfiniteCostSensitiveClassifier(**{"n_nodes": 8, "tol": 1e-3, **options}).fit(X_WIDE, labels)
    return fitted(model) | {
        "p": model.predict_proba(X_WIDE),
        "values": model.decision_function(X_WIDE, [1.0, 2.0, 1.0]),
        "labels": model.predict(X_WIDE, [1.0, 1.0, 4.0]),
    }


def curves() -> Answer:
    """Curves as targets, each on a grid of its own."""
    rng, grid = np.random.default_rng(1), np.linspace(0.0, 1.0, 15)
    seen = rng.uniform(size=(40, grid.size)) < 0.8
    values = np.sin(3.0 * grid + X_WIDE[:40, :1]) + 0.1 * rng.normal(size=seen.shape)
    model = InfiniteFunctionRegressor(theta=grid).fit(X_WIDE[:40], np.where(seen, values, np.nan))
    return {"objective": model.objective_, "gap": model.dual_gap_, "values": model.predict(X_WIDE[40:], theta=grid)}


def streamed(model: Any, data: Any, ask: str, **options: Any) -> Answer:
    """Rows in blocks, more of them than the sample holds."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, len(data[0]), size=(4, 6_000))
    noise = rng.normal(scale=1e-3, size=(4, 6_000, data[0].shape[1]))
    blocks = [(data[0][k] + more, *(part[k] for part in data[1:])) for k, more in zip(rows, noise, strict=True)]
    model.fit(Blocks(lambda: iter(blocks)))
    return fitted(model) | {"values": getattr(model, ask)(data[0], **options)}


def searched() -> Answer:
    """A search on top of Optuna."""
    search = OptunaSearch(
        InfiniteQuantileRegressor(n_nodes=10), n_trials=4, cv=3, scoring=scorer("pinball"), random_state=0
    ).fit(X, Y)
    return {"scores": search.cv_results_["mean_test_score"], "values": search.predict(X_NEW, quantiles=LEVELS)}


def cases() -> dict[str, Callable[[], Answer]]:
    """Every fit by its name."""
    found: dict[str, Callable[[], Answer]] = {"quantile": quantile}

    def add(name: str, call: Callable[..., Answer], **options: Any) -> None:
        found[name] = partial(call, **options)

    for value in (0.0, 0.1, 10.0, "rearrange", "hard"):
        add(f"quantile, noncrossing={value}", quantile, noncrossing=value)
    add("quantile, hard, matern52", quantile, noncrossing="hard", task_kernel="matern52", tol=1e-3)
    add("quantile, hard, free bias", quantile, noncrossing="hard", alpha_bias=0.0, tol=1e-3)
    for value in (0.05, 1.0):
        add(f"quantile, smoothing={value}", quantile, smoothing=value)
    for kind in ("smoothed", "squared"):
        add(f"quantile, noncrossing_loss={kind}", quantile, smoothing=0.5, noncrossing_loss=kind)
    add("quantile, noncrossing_inputs", quantile, noncrossing_inputs=np.linspace(-1.0, 3.0, 15)[:, None])
    for name in ("laplacian", "matern12", "matern32", "matern52", "linear", "polynomial"):
        add(f"quantile, kernel={name}", quantile, kernel=name, tol=1e-3)
    add("quantile, kernel=chi2", quantile, kernel="chi2", data=(X + 2.0, Y), new=X_NEW + 2.0)
    add("quantile, sum of kernels", quantile, kernel=RBF(gamma=3.0) + Linear())
    add("quantile, product of kernels", quantile, kernel=RBF(gamma=3.0) * Laplacian(gamma=1.0))
    add(
        "quantile, scaled kernel",
        quantile,
        kernel=Scaled(RBF(), (2.0, 1.0, 0.5, 0.0)),
        data=(X_WIDE, Y_WIDE),
        new=X_WIDE,
    )
    add("quantile, function as kernel", quantile, kernel=lambda a, b: np.exp(-4.0 * (a - b.T) ** 2))
    add("quantile, precomputed", gram)
    add("quantile, precomputed, weights", gram, weight=WEIGHT)
    for gamma in ("scale", 0.5, 20.0):
        add(f"quantile, gamma={gamma}", quantile, gamma=gamma)
    for name in ("matern32", "matern52", "polynomial"):
        add(f"quantile, task_kernel={name}", quantile, task_kernel=name)
    for name in ("constant", "piecewise-linear", "diagonal"):
        add(f"quantile, task_kernel={name}", quantile, task_kernel=name, noncrossing=0.0)
    add("quantile, rearrange, piecewise-linear", quantile, task_kernel="piecewise-linear", noncrossing="rearrange")
    for gamma in (0.5, 50.0):
        add(f"quantile, task_gamma={gamma}", quantile, task_gamma=gamma)
    for bias in (None, "matern52", Gaussian(gamma=2.0)):
        add(f"quantile, bias_kernel={bias}", quantile, bias_kernel=bias)
    for alpha in (1.0, 1e-5):
        add(f"quantile, alpha={alpha:g}", quantile, alpha=alpha, max_iter=2_000)
    for alpha_bias in (0.0, 1e-2, 1e-6):
        add(f"quantile, alpha_bias={alpha_bias:g}", quantile, alpha_bias=alpha_bias)
    for measure in (Beta(2.0, 2.0), TruncatedNormal(0.5, 0.2, 0.0, 1.0), (0.05, 0.95)):
        add(f"quantile, measure={measure}", quantile, measure=measure)
    add("quantile, discrete", discrete_quantiles, measure=Discrete([0.1, 0.5, 0.9]), levels=[0.1, 0.9])
    for rule in ("clenshaw-curtis", "sobol", "halton", "monte-carlo"):
        add(f"quantile, quadrature={rule}", quantile, quadrature=rule)
    add("quantile, density", quantile, measure=Beta(2.0, 2.0), quadrature=GaussLegendre(density=True))
    for features, rank in (("exact", None), ("nystroem", 20), ("fourier", 40), ("auto", 10)):
        add(f"quantile, features={features}, rank={rank}", quantile, features=features, rank=rank)
    for solver in ("lbfgs", "newton"):
        add(f"quantile, solver={solver}", quantile, solver=solver)
    for tol in (1e-2, 1e-7):
        add(f"quantile, tol={tol:g}", quantile, tol=tol)
    add("quantile, max_iter=5", quantile, max_iter=5)
    add("quantile, weights", quantile, weight=WEIGHT)
    add("quantile, repeated rows", quantile, data=(np.vstack([X, X[:20]]), np.append(Y, Y[:20])))
    add("quantile, four inputs", quantile, data=(X_WIDE, Y_WIDE), new=X_WIDE)
    add("quantile, far from zero", quantile, data=(X, 40.0 + 10.0 * Y))
    add("quantile, distribution", distribution)
    add("quantile, warm start", warm)
    add("quantile, warm start, free bias", warm, alpha_bias=0.0)
    for value in (0.0, 1.0, "rearrange", "hard"):
        add(f"expectile, noncrossing={value}", expectile, noncrossing=value)
    add("expectile, squared", expectile, noncrossing=0.1, noncrossing_loss="squared")
    add("expectile, free bias", expectile, alpha_bias=0.0)
    add("costs", costs)
    add("costs, free bias", costs, alpha_bias=0.0)
    add("costs, smoothing", costs, smoothing=0.5)
    add("costs, weights", costs, weight=np.append(WEIGHT, np.ones(30)))
    add("costs, small alpha", costs, alpha=1e-5)
    add("costs, diagonal", costs, task_kernel="diagonal")
    add("costs, measure", costs, measure=(-0.6, 0.9))
    add("costs, one input", costs, data=(X, np.where(np.quantile(Y, 0.9) < Y, "b", "a")))
    add("costs, nystroem", costs, features="nystroem", rank=20, random_state=0)
    add("costs, bound", bound_of_costs)
    add("level sets", sets)
    add("level sets, nested", sets, nested=True)
    add("level sets, exact fractions", sets, exact_fractions=True)
    add("level sets, nested, exact fractions", sets, nested=True, exact_fractions=True)
    add("level sets, measure", sets, measure=(0.01, 1.0))
    add("level sets, free threshold", sets, alpha=0.0)
    add("level sets, weights", sets, weight=np.append(WEIGHT, np.ones(30)))
    add("level sets, laplacian", sets, kernel="laplacian", tol=1e-3)
    add("level sets, many nodes", sets, n_nodes=100, tol=1e-3)
    add("tube", tube)
    add("tube, free bias", tube, alpha_bias=0.0)
    add("tube, diagonal", tube, task_kernel="diagonal", bias_kernel="diagonal", alpha_bias=0.0)
    add("tube, measure", tube, measure=Uniform(0.0, 0.8))
    add("ridge path", ridge)
    add("ridge path, rbf", ridge, task_kernel="rbf")
    add("ridge path, diagonal", ridge, task_kernel="diagonal")
    for loss in ("pinball", "expectile", "epsilon-insensitive", "squared"):
        add(f"task, {loss}", task, theta=[0.2, 0.5], loss=loss)
    add(
        "task, cost-sensitive",
        task,
        theta=[0.0],
        loss="cost-sensitive",
        data=(X_MOONS, 2.0 * Y_MOONS - 1.0),
        new=X_MOONS,
    )
    add("task, integrated", task, theta=[0.2, 0.5], loss="pinball", penalty="integrated")
    add("task, both ridges", task, theta=[0.2, 0.5], penalty="both", noncrossing=1.0)
    add("task, weighted ridge", task, theta=[0.5], penalty=IntegratedRidge(lambda nodes: 1.0 + nodes[:, 0]))
    add("task, noncrossing", task, theta=[0.2, 0.5], noncrossing=2.0)
    plane = ProductMeasure([Uniform(0, 1), Uniform(0, 0.5)])
    add("task, plane", task, theta=[[0.1, 0.2]], loss=TubePinball(), measure=plane, quadrature="sobol", n_nodes=32)
    add("task, convex loss", task, theta=[0.7, 1.5], loss=LogCosh())
    alike = TaskMatrix([[1.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.0]])
    several = np.column_stack([Y, Y**2, -Y])
    points = {"measure": Discrete([0.0, 1.0, 2.0]), "quadrature": "discrete", "theta": [0.0, 2.0]}
    add(
        "task, a target for each",
        task,
        loss="squared",
        data=(X, several),
        task_kernel=alike,
        bias_kernel=None,
        **points,
    )
    add("task, matern bias", task, theta=[0.4], bias_kernel=MaternTask(nu=2.5, gamma=2.0))
    add("joint quantiles", finite, model=JointQuantileRegressor(quantiles=LEVELS), data=(X, Y), ask="predict")
    add(
        "independent quantiles",
        finite,
        model=IndependentQuantileRegressor(quantiles=LEVELS),
        data=(X, Y),
        ask="predict",
    )
    add(
        "independent costs",
        finite,
        model=IndependentCostSensitiveClassifier(),
        data=(X_MOONS, Y_MOONS),
        ask="predict_proba",
    )
    add("several sets", finite, model=QOneClassSVM(), data=(X_CLOUDS,), ask="decision_function", nu=[0.1, 0.5])
    add("path of alpha", path)
    regressor, alphas = InfiniteQuantileRegressor(n_nodes=10), [1e-1, 1e-3]
    add("scores of a path", scores, model=regressor, data=(X, Y), alphas=alphas)
    add("scores of a path, gammas", scores, model=regressor, data=(X, Y), alphas=alphas, gammas=[1.0, 10.0])
    classifier = InfiniteCostSensitiveClassifier(n_nodes=8)
    add("scores of a path, costs", scores, model=classifier, data=(X_MOONS, Y_MOONS), alphas=alphas)
    quantile_cv = InfiniteQuantileRegressorCV(random_state=0, n_nodes=15)
    add("self-tuned quantiles", self_tuned, model=quantile_cv, data=(X[:60], Y[:60]), quantiles=LEVELS)
    wide_cv = InfiniteQuantileRegressorCV(random_state=0, n_nodes=10, rule="best", noncrossing=1.0)
    add(
        "self-tuned quantiles, four inputs",
        self_tuned,
        model=wide_cv,
        data=(X_WIDE, 30.0 + 5.0 * Y_WIDE),
        quantiles=LEVELS,
    )
    listed_cv = InfiniteQuantileRegressorCV(
        random_state=0, n_nodes=10, kernels=["rbf", "laplacian"], alphas=[1e-2, 1e-3], cv=3
    )
    add("self-tuned quantiles, listed", self_tuned, model=listed_cv, data=(X, Y), quantiles=LEVELS)
    cost_cv = InfiniteCostSensitiveClassifierCV(random_state=0, n_nodes=10)
    add("self-tuned costs", self_tuned, model=cost_cv, data=(X_MOONS[:80], Y_MOONS[:80]), theta=[-0.5, 0.5])
    set_cv = InfiniteOneClassSVMCV(random_state=0)
    add("self-tuned level sets", finite, model=set_cv, data=(X_CLOUDS,), ask="decision_function", nu=[0.1, 0.5])
    add("search", searched)
    add("three classes", three_classes)
    add("three classes, not calibrated", three_classes, calibrated=False, alpha=1e-2)
    add("curves", curves)
    crossed = CrossConformal(InfiniteQuantileRegressor(n_nodes=8), cv=4, random_state=0)
    add("cross-conformal", cross_conformal, model=crossed)
    some = {"n_nodes": 8, "rank": 30, "features": "nystroem", "random_state": 0, "tol": 1e-3}
    add("streamed quantiles", streamed, model=InfiniteQuantileRegressor(**some), data=(X, Y), ask="predict")
    add(
        "streamed costs",
        streamed,
        model=InfiniteCostSensitiveClassifier(**some),
        data=(X_MOONS, Y_MOONS),
        ask="predict_proba",
    )
    add("streamed level sets", streamed, model=InfiniteOneClassSVM(**some), data=(X_CLOUDS,), ask="score_samples")
    return found


def flat(answers: dict[str, Answer]) -> dict[str, Any]:
    """One array for each answer of each fit."""
    return {
        f"{name} | {part}": np.asarray(value, dtype=float)
        for name, answer in answers.items()
        for part, value in answer.items()
    }


def run(only: str) -> dict[str, Any]:
    """Fit everything whose name contains a word."""
    answers, started = {}, time.perf_counter()
    for name, call in cases().items():
        if only in name:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers[name] = call()
    print(f"{len(answers)} fits in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return flat(answers)


def difference(before: Any, after: Any) -> float:
    """The largest difference, relative to the largest number; infinite where shapes or infinities differ."""
    if before.shape != after.shape or np.any(np.isfinite(before) != np.isfinite(after)):
        return float("inf")
    known = np.isfinite(before)
    size = max(1e-300, float(np.max(np.abs(before[known]), initial=0.0)))
    return float(np.max(np.abs(before[known] - after[known]), initial=0.0)) / size


def main() -> int:
    """Store or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["store", "compare"])
    parser.add_argument("file")
    parser.add_argument("--only", default="")
    parser.add_argument("--tol", type=float, default=1e-10)
    options = parser.parse_args()
    found = run(options.only)
    if options.action == "store":
        np.savez_compressed(options.file, **found)
        return 0
    known = np.load(options.file)
    moved = 0
    for name, value in found.items():
        if name not in known:
            print(f"new       {name}")
            continue
        # a gap is itself a small difference of large numbers: it is compared as it stands
        size = float(np.max(np.abs(known[name] - value))) if name.endswith("| gap") else difference(known[name], value)
        if not size <= options.tol:
            moved += 1
            print(f"{size:9.1e} {name}")
    print(f"{len(found)} answers, {moved} moved by more than {options.tol:g}")
    return int(moved > 0)


if __name__ == "__main__":
    sys.exit(main())
