"""The integrated risk is smallest at the true quantiles (Proposition S.1 of the paper).

For the sine curve with Gaussian noise the risk of any function is known in closed form. The true quantile function q is
changed in several directions, and the excess risk R(q + size · direction) − R(q) is drawn against the size. Fits of the
library stand beside it: their risk comes down to that of q as the number of rows grows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import laplace, norm

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine, sine_quantile
from infinitask.measures import GaussLegendre, Uniform

from .figures import BLUE, GREEN, INK, ORANGE, PURPLE, save
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv

__all__ = ["DIRECTIONS", "EXPERIMENT", "integrated_risk"]

Values = NDArray[np.float64]

DIRECTIONS: dict[str, tuple[str, str, Callable[[Values, Values, Values], Values]]] = {
    "shift": ("1", INK, lambda x, theta, q: np.ones_like(q)),
    "tilt": ("2x − 3/2", BLUE, lambda x, theta, q: 2.0 * x - 1.5 + 0.0 * q),
    "waves": ("sin(7x) cos(9θ)", GREEN, lambda x, theta, q: np.sin(7.0 * x) * np.cos(9.0 * theta)),
    "wider": ("q − its mean over θ", ORANGE, lambda x, theta, q: q - np.mean(q, axis=1, keepdims=True)),
    "family": (
        "Laplace quantiles − q",
        PURPLE,
        lambda x, theta, q: np.mean(q, axis=1, keepdims=True) + laplace.ppf(theta) - q,
    ),
}
"""Name → formula, colour, and the function of x (n, 1), θ (m,) and q (n, m)."""


def units(quick: bool) -> list[dict[str, Any]]:
    """One direction, or one number of rows, for each unit."""
    rows = (50, 200) if quick else (50, 100, 200, 400, 800, 1600)
    return [{"kind": "direction", "value": name} for name in DIRECTIONS] + [{"kind": "fit", "value": n} for n in rows]


ORIGINS = {
    "reach": "ours: the largest change of the curves, in units of y",
    "sizes": "ours: the number of changes along each direction",
    "inputs": "ours: the points of the rule over x",
    "nodes": "ours: the points of the rule over θ",
    "repetitions": "ours: the data sets of each size",
    "gamma": "ours",
    "lambda": "ours: beside a sum over the rows",
}


def settings(quick: bool) -> dict[str, Any]:
    """The sizes, the rule over x and θ, and the parameters of the fits, with alpha = λ/n."""
    return {
        "reach": 1.0,
        "sizes": 11 if quick else 41,
        "inputs": 50 if quick else 300,
        "nodes": 20 if quick else 60,
        "repetitions": 2 if quick else 10,
        "gamma": 5.0,
        "lambda": 1e-2,
    }


def integrated_risk(x: Values, theta: Values, weights: Values, h: Values) -> Values:
    """R(h) for h of shape (n, m) at inputs x (n, 1) and levels θ (m,) with weights, the mean over x.

    For Y ~ N(μ, σ²) and z = (h − μ)/σ the expected pinball loss is σ (φ(z) + z (Φ(z) − θ)).
    """
    centre = sine_quantile(x, [0.5])
    spread = sine_quantile(x, [norm.cdf(1.0)]) - centre
    z = (h - centre) / spread
    return np.asarray(np.mean((spread * (norm.pdf(z) + z * (norm.cdf(z) - theta))) @ weights))


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Excess risks over that of the true quantiles: for every size, or for every repetition of a fit."""
    x = 1.5 * (np.arange(settings["inputs"])[:, None] + 0.5) / settings["inputs"]
    rule = GaussLegendre()(Uniform(0.0, 1.0), settings["nodes"])
    theta, weights = rule.nodes[:, 0], rule.weights
    q = sine_quantile(x, theta)
    smallest = float(integrated_risk(x, theta, weights, q))
    if unit["kind"] == "direction":
        direction = DIRECTIONS[unit["value"]][2](x, theta, q)
        sizes = np.linspace(-settings["reach"], settings["reach"], settings["sizes"])
        excess = [float(integrated_risk(x, theta, weights, q + size * direction)) - smallest for size in sizes]
        return {"smallest": smallest, "sizes": sizes.round(9).tolist(), "excess": excess}
    excess = []
    for repetition in range(settings["repetitions"]):
        X, y = make_sine(unit["value"], random_state=repetition)
        model = InfiniteQuantileRegressor(
            gamma=settings["gamma"], alpha=settings["lambda"] / unit["value"], measure=(0.0, 1.0), random_state=0
        ).fit(X, y)
        excess.append(float(integrated_risk(x, theta, weights, model.predict(x, theta))) - smallest)
    return {"smallest": smallest, "excess": excess}


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write true_quantiles.csv, true_quantiles.png and true_quantiles.md."""
    changed = {r["unit"]["value"]: r["result"] for r in records if r["unit"]["kind"] == "direction"}
    fits = {r["unit"]["value"]: r["result"] for r in records if r["unit"]["kind"] == "fit"}
    rows = [
        {"kind": "direction", "value": name, "size": size, "excess": excess}
        for name, result in changed.items()
        for size, excess in zip(result["sizes"], result["excess"], strict=True)
    ] + [
        {"kind": "fit", "value": n, "size": "", "excess": float(np.mean(result["excess"]))}
        for n, result in fits.items()
    ]
    smallest = records[0]["result"]["smallest"]
    files = [
        write_csv(folder / "true_quantiles.csv", rows),
        save(folder / "true_quantiles.png", (10.0, 4.5), lambda figure: _draw(figure, changed, fits)),
        folder / "true_quantiles.md",
    ]
    lines = [
        [DIRECTIONS[name][0], *(f"{_at(result, size):.5f}" for size in (-1.0, -0.5, -0.1, 0.0, 0.1, 0.5, 1.0))]
        for name, result in changed.items()
    ]
    page = [
        "# The integrated risk is smallest at the true quantiles",
        "Proposition S.1 of the paper: the true conditional quantile function q minimises R(h) = ∫ E max(θr, (θ − 1)r) "
        "dθ, r = Y − h(X)(θ), over all functions h. Here the targets are those of `make_sine`, a curve with Gaussian "
        "noise whose spread falls with x, and R has a closed form: no number of this page is subject to noise, except "
        f"for the data of the fits. R(q) = {smallest:.5f}.",
        settings_used(settings, ORIGINS),
        "![Excess risk against the size of the change, and against the number of rows](true_quantiles.png)",
        "The excess risk R(q + size · direction) − R(q):",
        markdown(["direction", *(f"size {size:g}" for size in (-1, -0.5, -0.1, 0, 0.1, 0.5, 1))], lines),
        _finding(changed),
        "The proof splits the excess into E[(θ − t)(q − h)], which is 0 if the distribution of Y given X is "
        "continuous, and E[(t − s)(Y − h)] with s = 1[Y ≤ h] and t = 1[Y ≤ q], which is never negative. "
        "[A test](../../tests/laws/test_true_quantiles.py) compares the excess with this formula for Gaussian, "
        "exponential and logistic distributions. For a discrete distribution P(Y ≤ q) may be larger than θ and the "
        "first term is then not 0; the proposition holds all the same.",
        "Fits come down to the smallest risk. The mean excess of `InfiniteQuantileRegressor` over "
        f"{settings['repetitions']} data sets of n rows:",
        markdown(["n", "excess risk", "relative to R(q)"], [_fit(n, result) for n, result in fits.items()]),
        "All numbers are in [true_quantiles.csv](true_quantiles.csv).",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _at(result: dict[str, Any], size: float) -> float:
    return float(np.interp(size, result["sizes"], result["excess"]))


def _fit(n: int, result: dict[str, Any]) -> list[str]:
    mean = float(np.mean(result["excess"]))
    return [str(n), f"{mean:.4f}", f"{mean / result['smallest']:.1%}"]


def _finding(changed: dict[str, dict[str, Any]]) -> str:
    """Whether every curve has its minimum at 0 and is convex."""
    lowest = {name: result["sizes"][int(np.argmin(result["excess"]))] for name, result in changed.items()}
    convex = all(np.all(np.diff(result["excess"], 2) > 0.0) for result in changed.values())
    if convex and not any(lowest.values()):
        return "Every curve is convex and has its minimum, 0, where nothing is changed."
    return f"Minima: {', '.join(f'{name} at {size:g}' for name, size in lowest.items())}."


def _draw(figure: Any, changed: dict[str, dict[str, Any]], fits: dict[int, dict[str, Any]]) -> None:
    left, right = figure.subplots(1, 2)
    for name, result in changed.items():
        formula, colour, _ = DIRECTIONS[name]
        left.plot(result["sizes"], result["excess"], color=colour, label=formula)
    left.set(xlabel="size of the change of q", ylabel="excess risk", ylim=(0.0, None))
    left.set_title("No change lowers the risk")
    if changed:
        left.legend(loc="upper center")
    for n, result in fits.items():
        right.plot([n] * len(result["excess"]), result["excess"], "o", color=BLUE, alpha=0.4, markersize=4)
    right.plot(list(fits), [np.mean(result["excess"]) for result in fits.values()], "o-", color=BLUE)
    right.set_xscale("log")
    right.set_yscale("log")
    right.set(xlabel="training rows n")
    right.set_title("Excess risk of fits")


EXPERIMENT = Experiment("true-quantiles", "The true quantiles", units, work, report, settings)
