"""The quantile property and the θ-property as n grows.

Two laws say that a level means what it promises. Where each level is learnt by itself with a free bias, the share of
the training y strictly below the θ-quantile is at most θ, and with those on it at least θ (Takeuchi, Le, Sears and
Smola, 2006). For level sets it is the share of the training rows strictly outside, and with those on the boundary
(Schölkopf, Platt, Shawe-Taylor, Smola and Williamson, 2001). On both sides the limit for new rows is θ as n → ∞.

One fit for all θ has a smooth bias b(θ), so its optimality says less: the deviation from θ is orthogonal to the
functions that b can take, and not bounded at each θ. A ridge on b and the penalty on crossing weaken that further. Here
it is measured what is left of both laws, on the training rows and on new ones, for n from 50 to 1600.

No parameter is left to a default: the study is about n.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import OneClassSVM

from infinitask import IndependentQuantileRegressor, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_mixture, make_sine, sine_quantile

from .figures import BLUE, GREEN, INK, ORANGE, PURPLE, colours, save
from .runner import Experiment, Record
from .store import curves_of
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT", "deviations", "model", "summary"]

Values = NDArray[np.float64]
Answer = Callable[[Values], Values]
"""Inputs → the signed distance from the curve or boundary, below or outside where negative, (n, q)."""

METHODS: dict[str, dict[str, str]] = {
    "quantile": {
        "independent": "each level by itself, free bias",
        "free": "∞-QR, free bias, no penalty on crossing",
        "penalty": "∞-QR, free bias, λ_nc = 1",
        "ridge": "∞-QR, λ_b = λ, λ_nc = 1",
    },
    "level-set": {
        "ocsvm": "OneClassSVM at every level",
        "fitted": "one fit, threshold as fitted",
        "exact": "one fit, `exact_fractions=True`",
    },
}
COLOURS = dict(zip(("independent", "free", "penalty", "ridge"), (INK, GREEN, BLUE, ORANGE), strict=True))
COLOURS |= {"ocsvm": INK, "fitted": PURPLE, "exact": BLUE}

SHOWN = {"quantile": "penalty", "level-set": "exact"}
"""The method whose deviation is drawn against θ."""

KOLMOGOROV = float(np.sqrt(np.pi / 2.0) * np.log(2.0))
"""E sup_θ |F_n − F| → this/√n: how far the shares of n rows stray from the true quantiles themselves."""

ROUNDING = 1e-9
"""Shares that differ by less are equal."""

MEASURES = ("train_sup", "train_mean", "train_signed", "off_bounds", "on_curve", "new_sup", "new_mean")

FIXED = {
    "data": "the toy data for quantiles, make_mixture for level sets",
    "kernels": "Gaussian",
    "quadrature": "Gauss–Legendre",
}
"""Settings that no run changes."""

ORIGINS = dict.fromkeys(
    (
        *FIXED,
        *("gamma", "task_gamma", "lambda", "noncrossing", "set_gamma", "set_task_gamma", "low", "nodes"),
        *("step", "new_rows", "on", "tol"),
    ),
    "ours",
)
"""The paper names both laws and prints no study of n."""


def units(quick: bool) -> list[dict[str, Any]]:
    """One fit, or one fit for each level, for each unit."""
    return [
        {"property": name, "method": method, "n": n, "seed": seed}
        for n in ((50, 100) if quick else (50, 100, 200, 400, 800, 1600))
        for seed in range(2 if quick else 5)
        for name, methods in METHODS.items()
        for method in methods
    ]


def settings(quick: bool) -> dict[str, Any]:
    """All parameters, as numbers; λ stands beside a sum over the samples, so alpha = λ/n."""
    return {
        "gamma": 5.0,
        "task_gamma": 5.0,
        "lambda": 1e-3,
        "noncrossing": 1.0,
        "set_gamma": 0.5,
        "set_task_gamma": 20.0,
        "low": 0.05,
        "nodes": 30 if quick else 50,
        "step": 0.05 if quick else 0.01,
        "new_rows": 1000 if quick else 10_000,
        "on": 1e-3,
        "tol": 1e-4 if quick else 1e-6,
    }


def levels(name: str, settings: dict[str, Any]) -> Values:
    """The levels at which shares are counted: within (0, 1), or from the lower end of Θ on for level sets."""
    step = settings["step"]
    inner: Values = np.arange(1, round(1.0 / step)) * step
    return inner if name == "quantile" else inner[inner >= settings["low"] - 1e-9]


def model(method: str, n: int, theta: Values, settings: dict[str, Any]) -> Any:
    """The estimator for n rows."""
    alpha = settings["lambda"] / n
    if method == "independent":
        return IndependentQuantileRegressor(
            quantiles=theta, gamma=settings["gamma"], alpha=alpha, tol=settings["tol"], random_state=0
        )
    if method in METHODS["quantile"]:
        return InfiniteQuantileRegressor(
            gamma=settings["gamma"],
            task_gamma=settings["task_gamma"],
            alpha=alpha,
            alpha_bias=alpha if method == "ridge" else 0.0,
            noncrossing=0.0 if method == "free" else settings["noncrossing"],
            n_nodes=settings["nodes"],
            tol=settings["tol"],
            random_state=0,
        )
    return InfiniteOneClassSVM(
        gamma=settings["set_gamma"],
        task_gamma=settings["set_task_gamma"],
        alpha=alpha,
        measure=(settings["low"], 1.0),
        n_nodes=settings["nodes"],
        exact_fractions=method == "exact",
        tol=settings["tol"],
        random_state=0,
    )


def deviations(theta: Values, distance: Values, on: float) -> dict[str, float]:
    """Of the share with a negative distance (n, q) from θ; rows within ``on`` of the curve count as on it.

    ``off_bounds`` is by how much share below ≤ θ ≤ share below or on fails, at the worst θ.
    """
    off = np.mean(distance < 0.0, axis=0) - theta
    below, with_those_on = np.mean(distance < -on, axis=0), np.mean(distance <= on, axis=0)
    return {
        "train_sup": float(np.max(np.abs(off))),
        "train_mean": float(np.mean(np.abs(off))),
        "train_signed": float(np.mean(off)),
        "off_bounds": float(max(np.max(below - theta), np.max(theta - with_those_on), 0.0)),
        "on_curve": float(np.mean(with_those_on - below)),
    }


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Shares on the training rows and on new ones, and how far they are from θ."""
    theta = levels(unit["property"], settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record has the gap
        warnings.filterwarnings("ignore", message=".*lie on the boundary", category=UserWarning)
        measure = _quantiles if unit["property"] == "quantile" else _sets
        distance, new, gap = measure(unit, theta, settings)
    strays = np.abs(new - theta)
    return {
        **deviations(theta, distance, settings["on"]),
        "new_sup": float(np.max(strays)),
        "new_mean": float(np.mean(strays)),
        "train": np.mean(distance < 0.0, axis=0).round(6).tolist(),
        "new": new.round(6).tolist(),
        "gap": gap,
    }


def _quantiles(unit: dict[str, Any], theta: Values, settings: dict[str, Any]) -> tuple[Values, Values, float | None]:
    """y − h on the training rows, negative below the curve; P(y < h) for new ones, from the true law; the gap."""
    X, y = make_sine(unit["n"], random_state=unit["seed"])
    fitted = model(unit["method"], unit["n"], theta, settings).fit(X, y)
    x = 1.5 * (np.arange(settings["new_rows"]) + 0.5) / settings["new_rows"]
    centre, spread = sine_quantile(x, [0.5]), sine_quantile(x, [norm.cdf(1.0)]) - sine_quantile(x, [0.5])
    share = np.mean(norm.cdf((fitted.predict(x[:, None], theta) - centre) / spread), axis=0)
    return (y[:, None] - fitted.predict(X, theta)) / np.std(y), share, float(fitted.dual_gap_)


def _sets(unit: dict[str, Any], theta: Values, settings: dict[str, Any]) -> tuple[Values, Values, float | None]:
    """h − t relative to its largest value at the level, on the training rows; the share outside of new ones."""
    X = make_mixture(unit["n"], random_state=unit["seed"])
    Z = make_mixture(settings["new_rows"], random_state=1000 + unit["seed"])
    if unit["method"] == "ocsvm":
        answer = _one_by_one(X, theta, settings)
        gap = None  # libsvm has no certificate
    else:
        fitted = model(unit["method"], unit["n"], theta, settings).fit(X)
        answer, gap = (lambda A: fitted.decision_function(A, theta)), float(fitted.dual_gap_)
    distance = answer(X)
    return distance / np.max(np.abs(distance), axis=0), np.mean(answer(Z) < 0.0, axis=0), gap


def _one_by_one(X: Values, theta: Values, settings: dict[str, Any]) -> Answer:
    """scikit-learn's OneClassSVM with ν = θ, at every level."""
    gram = rbf_kernel(X, gamma=settings["set_gamma"])
    coef, rho = np.zeros((len(X), theta.size)), np.empty(theta.size)
    for j, nu in enumerate(theta):
        one = OneClassSVM(kernel="precomputed", nu=nu, tol=settings["tol"]).fit(gram)
        coef[one.support_, j], rho[j] = one.dual_coef_[0], -one.intercept_[0]
    return lambda A: rbf_kernel(A, X, gamma=settings["set_gamma"]) @ coef - rho


# ---------------------------------------------------------------------------------------------------- the report
def summary(records: list[Record]) -> list[dict[str, Any]]:
    """A row for each property, method and n: medians over the seeds, and the largest ``off_bounds``."""
    found: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    for record in records:
        unit = record["unit"]
        found.setdefault((unit["property"], unit["method"], unit["n"]), []).append(record["result"])
    rows = []
    for name, methods in METHODS.items():
        for method in methods:
            for n in sorted(n for p, m, n in found if (p, m) == (name, method)):
                mine = found[name, method, n]
                row: dict[str, Any] = {"property": name, "method": method, "n": n, "seeds": len(mine)}
                row |= {what: float(np.median([one[what] for one in mine])) for what in MEASURES}
                rows.append(row | {"off_bounds_max": max(one["off_bounds"] for one in mine)})
    return rows


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write properties.csv, properties_curves.csv, properties.png and properties.md."""
    rows = summary(records)
    curves = [
        {"property": r["unit"]["property"], "method": r["unit"]["method"], "n": r["unit"]["n"], "theta": float(t)}
        | {"train": train, "new": new}
        for r in records
        if r["unit"]["seed"] == 0
        for t, train, new in zip(
            levels(r["unit"]["property"], settings), r["result"]["train"], r["result"]["new"], strict=True
        )
    ]
    files = [
        write_csv(folder / "properties.csv", rows),
        write_csv(curves_of(folder, "properties_curves.csv"), curves),
        save(folder / "properties.png", (10.0, 8.4), lambda figure: _draw(figure, records, rows, settings)),
        folder / "properties.md",
    ]
    gaps = [r["result"]["gap"] for r in records if r["result"]["gap"] is not None]
    files[-1].write_text(_page(rows, gaps, settings), encoding="utf-8")
    return files


def _page(rows: list[dict[str, Any]], gaps: list[float], settings: dict[str, Any]) -> str:
    seeds = max(row["seeds"] for row in rows)
    return "\n\n".join(
        [
            "# The quantile property and the θ-property as n grows",
            "A θ-quantile should have a share θ of the y below it, and a level set a share θ of the rows outside. How "
            f"far the shares are from θ, on the training rows and on new ones; medians over {seeds} training sets. "
            f"Sup and mean are over the levels θ = {settings['step']:g}, {2 * settings['step']:g}, …, "
            f"{1.0 - settings['step']:g}, for level sets from {settings['low']:g} on.",
            settings_used(settings | FIXED, ORIGINS),
            "All parameters are numbers; alpha = λ/n, and for level sets this is the ridge on the threshold.",
            "What is known: where a level is learnt by itself with a free bias, the share of training rows strictly "
            "below (outside) is at most θ, and with the rows on the curve (boundary) at least θ; on new rows the share "
            "goes to θ as n → ∞ (Takeuchi et al. 2006 for quantiles, Schölkopf et al. 2001 for level sets). One fit "
            "for all θ has a bias b(θ) that is smooth in θ. At its optimum, without penalty on crossing and with a "
            "free bias, the deviation is orthogonal to the functions that b can take, so it nearly vanishes in the "
            "mean over θ (the column “signed”), and not at each θ. The bounds are then no theorem, and it is measured "
            "how far they fail.",
            "![Deviations against θ and against n](properties.png)",
            "Off the bounds: by how much “share strictly below ≤ θ ≤ share below or on” fails on the training rows at "
            "the worst θ, the median and, in brackets, the worst of the training sets; rows within "
            f"{settings['on']:g} of the curve (in standard deviations of y, or of the largest |h − t|) count as on it. "
            "Signed: the mean over θ of share − θ. New: for quantiles exactly, from the true law of the toy data; for "
            f"level sets on {settings['new_rows']} rows, whose own noise is "
            f"{KOLMOGOROV / settings['new_rows'] ** 0.5:.3f} in the sup.",
            *(part for name in METHODS for part in (f"## {_TITLES[name]}", _table(rows, name), _findings(rows, name))),
            *([f"The largest duality gap of our fits is {max(gaps):.1g}."] if gaps else []),
            "All numbers: [properties.csv](properties.csv), the shares of the first training set: "
            "`experiments/curves/properties_curves.csv`.",
            "",
        ]
    )


_TITLES = {"quantile": "Quantile property", "level-set": "θ-property of level sets"}


def _table(rows: list[dict[str, Any]], name: str) -> str:
    header = ["method", "n", "train: sup", "mean", "signed", "off the bounds", "on the curve", "new: sup", "mean"]
    lines = [
        [
            METHODS[name][row["method"]],
            str(row["n"]),
            f"{row['train_sup']:.4f}",
            f"{row['train_mean']:.4f}",
            f"{row['train_signed']:+.4f}",
            f"{row['off_bounds']:.4f} ({row['off_bounds_max']:.4f})",
            f"{row['on_curve']:.4f}",
            f"{row['new_sup']:.4f}",
            f"{row['new_mean']:.4f}",
        ]
        for row in rows
        if row["property"] == name
    ]
    return markdown([*header, "0.87/√n"], [[*line, f"{KOLMOGOROV / int(line[1]) ** 0.5:.4f}"] for line in lines])


def _findings(rows: list[dict[str, Any]], name: str) -> str:
    """What the numbers say: the bounds, then how deviations fall with n."""
    lines = []
    for method, label in METHODS[name].items():
        mine = [row for row in rows if (row["property"], row["method"]) == (name, method)]
        if not mine:
            continue
        worst, last = max(row["off_bounds_max"] for row in mine), mine[-1]
        held = "the bounds hold in every fit"
        if worst > ROUNDING:
            at_last = f"by up to {last['off_bounds_max']:.4f}" if last["off_bounds_max"] > ROUNDING else "not at all"
            held = f"the bounds fail by up to {worst:.3f}, at n = {last['n']} {at_last}"
        lines.append(
            f"- {label}: {held}. The largest deviation on new rows falls {_fall(mine, 'new_sup')}, that on training "
            f"rows {_fall(mine, 'train_sup')}."
        )
    return "\n".join(lines)


def _fall(mine: list[dict[str, Any]], what: str) -> str:
    """From where to where, and like which power of n: the slope of a line through the logarithms."""
    first, last = mine[0], mine[-1]
    said = f"from {first[what]:.3f} at n = {first['n']} to {last[what]:.4f} at n = {last['n']}"
    values = np.array([row[what] for row in mine])
    if len(mine) < 3 or np.any(values <= 0.0):
        return said
    slope = np.polyfit(np.log([row["n"] for row in mine]), np.log(values), 1)[0]
    return f"{said}, like n^{slope:.2f}"


def _draw(figure: Any, records: list[Record], rows: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    from matplotlib.lines import Line2D

    axes = figure.subplots(2, 2, sharey="row")
    words = {"quantile": "share below − θ", "level-set": "share outside − θ"}
    for column, name in enumerate(METHODS):
        top, low = axes[0, column], axes[1, column]
        shown = [r for r in records if (r["unit"]["property"], r["unit"]["method"]) == (name, SHOWN[name])]
        shown = sorted((r for r in shown if r["unit"]["seed"] == 0), key=lambda r: r["unit"]["n"])
        for record, colour in zip(shown, colours(len(shown)) if shown else [], strict=True):
            theta, result = levels(name, settings), record["result"]
            top.plot(theta, np.array(result["new"]) - theta, color=colour, label=f"n = {record['unit']['n']}")
            top.plot(theta, np.array(result["train"]) - theta, color=colour, linewidth=0.8, linestyle=":")
        top.axhline(0.0, color=INK, linewidth=0.8)
        top.set(title=_TITLES[name], xlabel="θ", ylabel=words[name], xlim=(0.0, 1.0))
        sizes = sorted({row["n"] for row in rows if row["property"] == name})
        for method in METHODS[name]:
            mine = [row for row in rows if (row["property"], row["method"]) == (name, method)]
            for what, style in (("new_sup", "o-"), ("train_sup", "o:")):
                positive = [row for row in mine if row[what] > 0.0]
                n, value = [row["n"] for row in positive], [row[what] for row in positive]
                low.plot(n, value, style, color=COLOURS[method], markersize=3.5, linewidth=1.6)
        low.plot(sizes, [KOLMOGOROV / n**0.5 for n in sizes], "--", color="#9aa3ad", linewidth=1.4)
        low.set(xscale="log", yscale="log", xlabel="n", ylabel="largest deviation over θ")
        low.set_xticks(sizes, [str(n) for n in sizes])
        low.minorticks_off()
        lines = [Line2D([], [], color=COLOURS[m], label=label.replace("`", "")) for m, label in METHODS[name].items()]
        lines.append(Line2D([], [], color="#9aa3ad", linestyle="--", label="0.87/√n"))
        low.legend(handles=lines, loc="lower left", fontsize=8, frameon=False)
    if axes[0, 0].lines[:-1]:
        axes[0, 0].legend(loc="upper right", fontsize=8, frameon=False)
    figure.suptitle(
        "Solid: new rows, dotted: training rows. Above: one training set, the blue method",
        x=0.01,
        ha="left",
        fontsize=12,
    )


EXPERIMENT = Experiment("properties", "The quantile property and the θ-property", units, work, report, settings)
