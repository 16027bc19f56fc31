"""Level sets: is the proportion of inliers 1 − θ, for every θ?

Printed in the paper: Wilt and Spambase, raw inputs, the exponentiated χ² kernel with γ = 0.25, Gauss–Legendre with
m = 100, Gaussian k_Θ = k_b with the 0.2-quantile of the distances between nodes. From its authors' programs: half of
the rows for training, λ = 1e-3 and γ = 1/d. Ours: Θ = [0.05, 1] (the paper has [ε, 1] with an ε that it does not name)
and γ = 1/median distance. What is needed to see the property, and why:

* λ stands beside a sum over the rows, so ``alpha`` is λ/n. With alpha = 1e-3 the ridge on t pulls the threshold down
  where the loss has little influence on it, as θ → 1: on the training rows the proportion is off by 0.05 (Wilt,
  γ = 1/median), with λ/n by 0.004, and with alpha = 0 by 0.004 too.
* At the optimum the fraction outside is at most θ, and together with the rows on the boundary at least θ. Which rows of
  the boundary fall outside is decided by the last digits. There are many of them: a tenth of the rows of Wilt at
  θ = 0.05 with γ = 1/d; and Spambase contains one row 35 times (1.5%), which is on the boundary for an equally wide
  range of θ. The proportion is off by 0.023 and 0.018, as with scikit-learn's OneClassSVM. A k_Θ half as wide gives
  0.017 and 0.012, and then a gap of 1e-5 instead of 1e-4 gives 0.019 and 0.014. So ``exact_fractions`` sets the
  threshold last, at the quantile, which minimises the objective for given h. The report has both.
* The proportion on the test rows depends on the kernel, not on the solver. With γ = 0.25, as printed, the model learns
  the training rows by heart, and on Spambase the property fails on them as well, by 0.16; with γ = 1/d it does so on
  Wilt for small θ. This is so for every solver. Hence the third γ, 1/median distance.
"""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import additive_chi2_kernel
from sklearn.model_selection import train_test_split
from sklearn.svm import OneClassSVM

from infinitask import InfiniteOneClassSVM
from infinitask.calibration._thresholds import THRESHOLD_LEVELS
from infinitask.measures import Uniform
from infinitask.measures._rules import quadrature_rule

from .data import load_spambase, load_wilt
from .runner import Experiment, Record
from .tables import settings_used

__all__ = ["EXPERIMENT", "deviation", "inliers", "proportions"]

Values = NDArray[np.float64]
Curves = dict[tuple[str, ...], dict[str, Any]]

SETS = {"wilt": load_wilt, "spambase": load_spambase}
PRINTED = "0.25"
GAMMAS = ("1/median", "1/d", PRINTED)
SHOWN = {"1/median": "1/median χ² distance", PRINTED: f"{PRINTED}, as printed"}
METHODS = ("itl", "ocsvm")
LOW, LAMBDA, NODES = 0.05, 1e-3, 100

PEER = "OneClassSVM at every level, test"
STYLES: dict[str, dict[str, Any]] = {
    "1 − θ": {"color": "black", "ls": "--", "lw": 1.0},
    "train": {"color": "#0072B2", "lw": 1.6},
    "test": {"color": "#D55E00", "lw": 1.6},
    PEER: {"color": "0.35", "ls": ":", "lw": 1.6},
}

INNER = 0.1
"""Below this θ every method overfits Wilt with a kernel as narrow as γ = 1/d; the report names both ranges."""


WARM_UP = 50
"""Rows of a first fit that is not timed."""


ORIGINS = {
    "training rows": "inferred: authors' programs",
    "test levels": "inferred: authors' programs",
    "inputs": "printed",
    "kernel": "printed",
    "gamma": f"printed: {PRINTED}; 1/d is that of the authors' programs, 1/median distance is ours",
    "quadrature": "printed",
    "domain": "ours: the paper has [ε, 1] and names no ε",
    "task kernel": "printed: but that the quantile is σ, and not γ, is inferred",
    "lambda": "inferred: none is printed; the authors' programs have it beside a sum over the rows",
    "thresholds": "ours",
    "tol": "ours",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """Every set with every γ; our model comes first."""
    return [
        {"dataset": name, "gamma": gamma, "method": method} for method in METHODS for name in SETS for gamma in GAMMAS
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    few, full = {"rows": 300, "levels": 20, "nodes": 40}, {"rows": None, "levels": 100, "nodes": NODES}
    return {**(few if quick else full), "tol": 1e-4, "seconds": "by the clock"}


def split(name: str, rows: int | None) -> tuple[Values, Values]:
    """Training and test features, with at most ``rows`` rows each."""
    X, _ = SETS[name](return_X_y=True)
    train, test = train_test_split(X, test_size=0.5, random_state=0)
    return train[:rows], test[:rows]


def bandwidth(name: str, X: Values) -> float:
    """γ_X by its name: "1/d", "1/median" of the χ² distances, or a number."""
    if name == "1/d":
        return 1.0 / int(X.shape[1])
    if name == "1/median":
        return 1.0 / float(np.median(-additive_chi2_kernel(X)[np.triu_indices(X.shape[0], 1)]))
    return float(name)


def task_bandwidth(nodes: int) -> float:
    """γ = 1/(2σ²) with σ the 0.2-quantile of the distances between the nodes."""
    rule = quadrature_rule("gauss-legendre")(Uniform(LOW, 1.0), nodes, np.random.default_rng(0))
    return float(0.5 / np.quantile(pdist(rule.nodes), 0.2) ** 2)


class Timer:
    """Seconds by the clock, and of the processor: where they differ, the machine did other work as well."""

    def __init__(self) -> None:
        self.clock, self.processor = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        """The seconds since the timer was made."""
        clock, processor = time.perf_counter() - self.clock, time.process_time() - self.processor
        return {"fit_seconds": round(clock, 2), "processor_seconds": round(processor, 2)}


def inliers(decision: Values) -> list[float]:
    """The proportion of rows with a decision of at least 0, (n, q) → q numbers."""
    return [float(p) for p in np.mean(decision >= 0.0, axis=0)]


def deviation(theta: Values, proportion: Values, low: float = 0.0) -> float:
    """The largest |proportion of inliers − (1 − θ)| over the levels θ ≥ low that have a proportion; NaN without any."""
    stray = np.abs(proportion - (1.0 - theta))[(theta >= low) & ~np.isnan(proportion)]
    return float(np.max(stray)) if stray.size else float("nan")


def proportions(method: str, X: Values, Z: Values, gamma: float, theta: Values, options: dict[str, Any]) -> Any:
    """Fit to X; the proportions of inliers among X and Z at the levels, and the seconds the fit took."""
    if method == "ocsvm":
        return _refitted(X, Z, gamma, theta)
    model = InfiniteOneClassSVM(
        kernel="chi2",
        gamma=gamma,
        task_gamma=task_bandwidth(options["nodes"]),
        alpha=LAMBDA / X.shape[0],
        measure=Uniform(LOW, 1.0),
        n_nodes=options["nodes"],
        tol=options["tol"],
        exact_fractions=True,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is in the record
        warnings.filterwarnings("ignore", message=".*lie on the boundary", category=UserWarning)  # and in the report
        model.fit(X[:WARM_UP])  # loads the libraries, so that the timed fit does not
        timer = Timer()
        model.fit(X)
        seconds = timer.read()
    return {
        "train": inliers(model.decision_function(X, theta)),
        "test": inliers(model.decision_function(Z, theta)),
        "train_as_fitted": inliers(model.field_(X, theta)),  # h − t with the threshold of the fit
        "test_as_fitted": inliers(model.field_(Z, theta)),
        "gap": model.dual_gap_,
        **seconds,
    }


def _refitted(X: Values, Z: Values, gamma: float, theta: Values) -> dict[str, Any]:
    """scikit-learn's OneClassSVM, level by level. Its intercept is infinite at ν = 1, which it refuses: no entry."""
    timer = Timer()
    gram = np.exp(gamma * additive_chi2_kernel(X))
    models = [OneClassSVM(kernel="precomputed", nu=nu).fit(gram) if nu < 1.0 else None for nu in theta]
    seconds = timer.read()
    new = np.exp(gamma * additive_chi2_kernel(Z, X))

    def share(K: Values) -> list[float | None]:
        return [None if m is None else inliers(m.decision_function(K)[:, None])[0] for m in models]

    return {"train": share(gram), "test": share(new), **seconds}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """One curve."""
    X, Z = split(unit["dataset"], settings["rows"])
    gamma = bandwidth(unit["gamma"], X)
    theta = np.linspace(LOW, 1.0, settings["levels"])
    found = proportions(unit["method"], X, Z, gamma, theta, settings)
    return {"theta": theta.tolist(), "gamma": gamma, "rows": [len(X), len(Z)], **found}


# ---------------------------------------------------------------------------------------------- the report
def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """The curves as CSV and figure, the largest deviations and the times as a page."""
    curves = {tuple(record["unit"][k] for k in ("dataset", "gamma", "method")): _arrays(record) for record in records}
    files = [folder / f"level_sets.{kind}" for kind in ("csv", "png", "md")]
    for path, write in zip(files, (_write_csv, _draw, _write_page), strict=True):
        write(curves, path, settings)
    return files


def _arrays(record: Record) -> dict[str, Any]:
    """A result with its lists as arrays; None is NaN."""
    result = record["result"]
    return {k: np.asarray(v, dtype=float) if isinstance(v, list) else v for k, v in result.items()}


def _write_csv(curves: Curves, path: Path, settings: dict[str, Any]) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("dataset", "gamma", "theta", "train", "test", "ocsvm_train", "ocsvm_test"))
        for name, gamma in _pairs(curves):
            both = [curves.get((name, gamma, method)) for method in METHODS]
            theta = next(curve for curve in both if curve is not None)["theta"]
            for j, level in enumerate(theta):
                shares = [float("nan") if c is None else c[part][j] for c in both for part in ("train", "test")]
                cells = ("" if np.isnan(share) else f"{share:.6g}" for share in shares)
                table.writerow((name, gamma, f"{level:.6g}", *cells))


def _pairs(curves: Curves) -> list[tuple[str, str]]:
    """The sets and γ that have results."""
    return [(n, g) for n in SETS for g in GAMMAS if any((n, g, method) in curves for method in METHODS)]


def _draw(curves: Curves, path: Path, settings: dict[str, Any]) -> None:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(12.5, 9.8), dpi=120, layout="constrained")
    axes = figure.subplots(4, len(GAMMAS), sharex=True, height_ratios=[3, 1.5, 3, 1.5])
    figure.suptitle(
        "One fit, every level: the proportion of inliers and 1 − θ, by the width of the kernel", fontsize=13
    )
    for column, gamma in enumerate(GAMMAS):
        for row, name in enumerate(SETS):
            top, strip = axes[2 * row, column], axes[2 * row + 1, column]
            ours, peer = (curves.get((name, gamma, method)) for method in METHODS)
            top.set_title(f"{name.capitalize()}, γ = {SHOWN.get(gamma, gamma)}", fontsize=11)
            top.plot([LOW, 1.0], [1.0 - LOW, 0.0], zorder=3, **STYLES["1 − θ"])
            strip.axhline(0.0, **STYLES["1 − θ"])
            if peer is not None:
                strip.plot(peer["theta"], peer["test"] - 1.0 + peer["theta"], zorder=3, **STYLES[PEER])
            if ours is not None:
                for part in ("train", "test"):
                    top.plot(ours["theta"], ours[part], **STYLES[part])
                    strip.plot(ours["theta"], ours[part] - 1.0 + ours["theta"], **STYLES[part])
            top.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
            low, high = strip.get_ylim()
            strip.set_ylim(min(-0.1, low), max(0.05, high))
            for ax in (top, strip):
                ax.grid(color="0.9")
    for row, label in enumerate(("proportion of inliers", "deviation") * 2):
        axes[row, 0].set_ylabel(label)
    for ax in axes[3]:
        ax.set_xlabel("θ")
    lines = [Line2D([], [], label=label, **style) for label, style in STYLES.items()]
    figure.legend(handles=lines, loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(path, facecolor="white")


def _write_page(curves: Curves, path: Path, settings: dict[str, Any]) -> None:
    path.write_text("\n".join(_page(curves, settings)) + "\n")


def _page(curves: Curves, settings: dict[str, Any]) -> list[str]:
    rows = "" if settings["rows"] is None else f", {settings['rows']} rows of each half"
    lines = [
        "# Level sets",
        "",
        "The largest deviation of the proportion of inliers from 1 − θ over "
        f"{settings['levels']} levels θ spread evenly over [{LOW:g}, 1], on the rows of the fit and on new ones.",
        "",
        settings_used(
            {
                "training rows": f"half (seed 0){rows}",
                "test levels": settings["levels"],
                "inputs": "raw",
                "kernel": "exponentiated χ²",
                "gamma": ", ".join(GAMMAS),
                "quadrature": f"Gauss–Legendre, m = {settings['nodes']}",
                "domain": f"[{LOW:g}, 1]",
                "task kernel": "Gaussian, k_b = k_Θ, σ the 0.2-quantile of the distances between nodes",
                "lambda": f"{LAMBDA:g} (alpha = λ/n)",
                "thresholds": "`exact_fractions=True`",
                "tol": settings["tol"],
            },
            ORIGINS,
        ),
        "",
        "OneClassSVM: scikit-learn's, ν = θ, fitted anew at every level but θ = 1, which it refuses. Seconds are by "
        "the clock (wall clock), without predictions: one thread on a machine with two cores. The paper shows its "
        "curves without numbers.",
        "",
        f"| set | γ | train | test | test, θ ≥ {INNER:g} | OneClassSVM: train | test | test, θ ≥ {INNER:g} "
        "| train, threshold as fitted | test | seconds, one fit | OneClassSVM |",
        "|---|---|" + "---:|" * 10,
    ]
    lines += [_row(curves, name, gamma) for name, gamma in _pairs(curves)]
    return [*lines, "", "\n\n".join(_remarks(curves)), "", "![The proportion of inliers against θ](level_sets.png)"]


def _row(curves: Curves, name: str, gamma: str) -> str:
    ours, peer = (curves.get((name, gamma, method)) for method in METHODS)
    shown = f"{gamma} (printed)" if gamma == PRINTED else gamma
    cells = [name.capitalize(), shown]
    asked = (("train", 0.0), ("test", 0.0), ("test", INNER))
    for curve, parts in ((ours, asked), (peer, asked), (ours, (("train_as_fitted", 0.0), ("test_as_fitted", 0.0)))):
        cells += ["–" if curve is None else f"{deviation(curve['theta'], curve[p], low):.3f}" for p, low in parts]
    cells += ["–" if curve is None else f"{curve['fit_seconds']:.2f}" for curve in (ours, peer)]
    return "| " + " | ".join(cells) + " |"


def _remarks(curves: Curves) -> list[str]:
    """What the results show, as sentences."""
    lines = []
    ours = {key[:2]: curve for key, curve in curves.items() if key[2] == "itl"}
    peers = {key[:2]: curve for key, curve in curves.items() if key[2] == "ocsvm"}
    if ours:
        n = min(int(curve["rows"][1]) for curve in ours.values())
        lines.append(
            f"On the rows of the fit the threshold is a quantile at the nodes and at {THRESHOLD_LEVELS} levels; what "
            "is left of the deviation comes from repeated rows, and from levels next to a node. At a node, the rows on "
            "the boundary have the same h to many digits, so that between two of these levels they fall to either "
            "side, as they do with the threshold as fitted. For scale: two samples of "
            f"{n} rows from the same distribution differ by up to {1.36 * np.sqrt(2.0 / n):.3f} in 19 of 20 cases."
        )
        lines.append(f"All fits reached a duality gap of {max(curve['gap'] for curve in ours.values()):.1e} or less.")
    both = [pair for pair in ours if pair in peers]
    if ("wilt", "1/d") in both:
        a, b = (deviation(c["wilt", "1/d"]["theta"], c["wilt", "1/d"]["test"]) for c in (ours, peers))
        lines.append(
            f"With γ = 1/d on Wilt too many new rows fall outside where θ is small: {a:.3f} here and {b:.3f} with "
            "OneClassSVM, which solves every level by itself. That is the kernel, not the solver."
        )
    printed = [pair for pair in both if pair[1] == PRINTED]
    if printed:
        told = (
            f"{deviation(ours[p]['theta'], ours[p]['test']):.2f} on {p[0].capitalize()} (OneClassSVM "
            f"{deviation(peers[p]['theta'], peers[p]['test']):.2f})"
            for p in printed
        )
        lines.append(
            f"With γ = {PRINTED}, as printed in the paper, the rows of the fit are memorised and the property "
            f"fails on new ones for everyone: {', '.join(told)}."
        )
        worst = max(printed, key=lambda p: deviation(ours[p]["theta"], ours[p]["train"]))
        lines.append(
            f"With that γ it fails on the training rows of {worst[0].capitalize()} as well, by "
            f"{deviation(ours[worst]['theta'], ours[worst]['train']):.3f} (OneClassSVM "
            f"{deviation(peers[worst]['theta'], peers[worst]['train']):.3f}): many rows lie on the boundary, and "
            "fall to one side together."
        )
    if both:
        clock, processor = (
            [ours[p][which] / max(peers[p][which], 1e-3) for p in both]
            for which in ("fit_seconds", "processor_seconds")
        )
        lines.append(
            f"One fit for all θ takes {min(clock):.1f} to {max(clock):.1f} times as long as all fits of OneClassSVM "
            f"together by the clock, {min(processor):.1f} to {max(processor):.1f} times by processor seconds; it "
            "answers every θ, with a certificate."
        )
    shares = [c["processor_seconds"] / c["fit_seconds"] for c in curves.values() if c["fit_seconds"] >= 1.0]
    if shares:
        lines.append(
            f"The machine did other work at times: of the seconds by the clock, the processor spent {min(shares):.0%} "
            f"to {max(shares):.0%} on these fits, {np.median(shares):.0%} in the median."
        )
    return lines


EXPERIMENT = Experiment("level-sets", "Level sets", units, work, report, settings)
