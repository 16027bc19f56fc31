"""The defaults on raw tables, beside the self-tuned model, LightGBM, linear quantiles and a Gaussian process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine

from .defaults import REVISION, geometric_mean, measured
from .peer_models import PEERS, fitted
from .peer_report import MEASURED
from .raw_tables import MAX_ROWS, TABLES, n_train, split, splits
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv
from .tuned import Values

__all__ = ["EXPERIMENT", "LEVELS", "METHODS", "coverage", "known_choice", "pinball"]

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])

CV_ROWS = 3_000
"""The self-tuned model fits many models; with more training rows it is left out."""

GP_ROWS = 1_000
"""Each step of a Gaussian process is cubic in the training rows; with more it is left out."""

LINEAR_ROWS = 5_000
"""At most this many training rows, the first of the split, for linear quantiles: 21 000 rows of diamonds would take
minutes for each level (5 000: 4 s), and a few dozen coefficients need no more."""

Answer = Callable[[Values], Values]
"""X → quantiles at LEVELS."""

OURS, CONSTANT = "default", "constant"


# ----------------------------------------------------------------------------------------------------- the methods
def _default(X: Values, y: Values, seed: int) -> tuple[Answer, Any]:
    model = InfiniteQuantileRegressor().fit(X, y)
    return lambda X: np.asarray(model.predict(X, LEVELS)), model


def _peer(name: str) -> Callable[[Values, Values, int], tuple[Answer, Any]]:
    """A peer of the other studies with its own defaults."""

    def fit(X: Values, y: Values, seed: int) -> tuple[Answer, Any]:
        peer = PEERS[name]
        answer = fitted(peer, peer.defaults(y.size), X, y, LEVELS, seed)
        return lambda X: np.asarray(answer(X, LEVELS)), None

    return fit


def _linear(X: Values, y: Values, seed: int) -> tuple[Answer, Any]:
    from sklearn.linear_model import QuantileRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = [
        make_pipeline(StandardScaler(), QuantileRegressor(quantile=float(level), alpha=0.0, solver="highs")).fit(
            X[:LINEAR_ROWS], y[:LINEAR_ROWS]
        )
        for level in LEVELS
    ]
    return lambda X: np.column_stack([model.predict(X) for model in models]), None


def _gaussian_process(X: Values, y: Values, seed: int) -> tuple[Answer, Any]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel() * RBF() + WhiteKernel()  # the standard deviation then contains the noise
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)
    model = make_pipeline(StandardScaler(), process).fit(X, y)

    def answer(X: Values) -> Values:
        mean, deviation = model.predict(X, return_std=True)
        return np.asarray(mean[:, None] + deviation[:, None] * ndtri(LEVELS))

    return answer, None


@dataclass(frozen=True)
class Method:
    """A way to predict quantiles.

    Parameters
    ----------
    label : str
    fit : callable
        X, y, seed → answer, and the fitted model if it is ours.
    max_train : int
        With more training rows it is left out.
    ours : bool
        Whether its results change with REVISION.
    """

    label: str
    fit: Callable[[Values, Values, int], tuple[Answer, Any]]
    max_train: int = MAX_ROWS
    ours: bool = False


METHODS = {
    OURS: Method("default", _default, ours=True),
    "cv": Method("self-tuned", _peer("itl_cv"), CV_ROWS, ours=True),
    "lightgbm": Method("LightGBM", _peer("lightgbm")),
    "linear": Method("linear", _linear),
    "gp": Method("Gaussian process", _gaussian_process, GP_ROWS),
    CONSTANT: Method("constant", _peer("ignoring_x")),
}


# ------------------------------------------------------------------------------------------------------- the units
QUICK = ("salaries", "windsor")


def units(quick: bool) -> list[dict[str, Any]]:
    """From small to large tables; a method that a table is too large for has no unit."""
    return [
        {"table": name, "split": i, "method": method} | ({"revision": REVISION} if METHODS[method].ours else {})
        for name in (QUICK if quick else TABLES)
        for i in range(1 if quick else splits(name))
        for method in METHODS
        if n_train(TABLES[name].rows) <= METHODS[method].max_train
    ]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {
        "levels": LEVELS.tolist(),
        "max_rows": 200 if quick else MAX_ROWS,
        "cv_rows": CV_ROWS,
        "gp_rows": GP_ROWS,
        "linear_rows": LINEAR_ROWS,
    }


def pinball(y: Values, h: Values) -> float:
    """The mean pinball loss over rows and LEVELS, in the units of y."""
    r = y[:, None] - h
    return float(np.mean(np.maximum(LEVELS * r, (LEVELS - 1.0) * r)))


def coverage(y: Values, h: Values) -> float:
    """The share of y within the outer two levels: 0.9 is nominal."""
    return float(np.mean((h[:, 0] <= y) & (y <= h[:, -1])))


def known_choice(model: Any) -> dict[str, Any] | None:
    """λ and the kernel, or its γ, that a fitted model chose, as constructor parameters; None if it does not say."""
    found = {name: getattr(model, f"{name}_", None) for name in ("alpha", "kernel", "gamma")}
    if found["alpha"] is None:
        return None
    of_kernel = next((name for name in ("kernel", "gamma") if found[name] is not None), None)
    return {"alpha": found["alpha"], of_kernel: found[of_kernel]} if of_kernel else None


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit, and measure on the test rows, with the quantiles of each row sorted, whatever the method."""
    X, X_test, y, y_test = split(unit["table"], unit["split"], settings["max_rows"])
    method = METHODS[unit["method"]]
    _warm(unit["method"])
    (answer, model), seconds, seen = measured(lambda: method.fit(X, y, unit["split"]))
    h, predict_seconds, _ = measured(lambda: answer(X_test))
    result = {
        "rows": y.size,
        "columns": X.shape[1],
        "pinball": pinball(y_test, np.sort(h, axis=1)),
        "coverage": coverage(y_test, np.sort(h, axis=1)),
        "crossing": float(np.mean(np.any(np.diff(h, axis=1) < 0.0, axis=1))),
        "seconds": seconds,
        "predict_seconds": predict_seconds,
        "warnings": seen,
    }
    return result if model is None else result | _about(model, X, y)


def _about(model: Any, X: Values, y: Values) -> dict[str, Any]:
    """What our model chose, its gap, and the seconds of the same fit with that choice given."""
    about: dict[str, Any] = {"gap": float(model.dual_gap_)}
    choice = known_choice(model)
    if choice is not None:
        about["choice"] = {name: str(value) for name, value in choice.items()}
        _, about["known_seconds"], _ = measured(lambda: InfiniteQuantileRegressor(**choice).fit(X, y))
    return about


@functools.cache
def _warm(method: str) -> None:
    """Load and compile what the method needs, so that no unit's seconds contain it."""
    if method == "lightgbm":
        PEERS[method].load()
    X, y = make_sine(60, random_state=0)
    measured(lambda: METHODS[method].fit(X, y, 0)[0](X))


# ------------------------------------------------------------------------------------------------------ the report
class Found:
    """The results by table and method.

    Parameters
    ----------
    records : list of Record
    """

    def __init__(self, records: list[Record]) -> None:
        self._by: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
        for record in records:
            unit = record["unit"]
            self._by.setdefault((unit["table"], unit["method"]), {})[unit["split"]] = record["result"]
        self.tables = [name for name in TABLES if any(table == name for table, _ in self._by)]

    def results(self, table: str, method: str) -> dict[int, dict[str, Any]]:
        """Split → result."""
        return self._by.get((table, method), {})

    def mean(self, table: str, method: str, what: str) -> float | None:
        """The mean over the splits; None if no result has it."""
        values = [result[what] for result in self.results(table, method).values() if what in result]
        return float(np.mean(values)) if values else None

    def ratio(self, table: str, method: str, other: str, what: str = "pinball") -> float | None:
        """Mean of the one by mean of the other, over the splits that both have."""
        ours, theirs = self.results(table, method), self.results(table, other)
        both = ours.keys() & theirs.keys()
        if not both:
            return None
        return float(sum(ours[i][what] for i in both) / sum(theirs[i][what] for i in both))

    def overall(self, method: str, other: str, what: str = "pinball") -> tuple[float, int]:
        """The geometric mean of the ratios over the tables, and how many tables have one."""
        ratios = [r for name in self.tables if (r := self.ratio(name, method, other, what)) is not None]
        return geometric_mean(ratios), len(ratios)


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write defaults_tables.csv and defaults_tables.md."""
    found = Found(records)
    rows = [
        {
            "table": name,
            "method": method,
            "splits": len(found.results(name, method)),
            "rows": int(found.mean(name, method, "rows") or 0),
            "relative": found.ratio(name, method, CONSTANT),
        }
        | {
            what: found.mean(name, method, what)
            for what in ("pinball", "coverage", "crossing", "seconds", "known_seconds", "predict_seconds", "gap")
        }
        for name in found.tables
        for method in METHODS
        if found.results(name, method)
    ]
    files = [write_csv(folder / "defaults_tables.csv", rows), folder / "defaults_tables.md"]
    files[1].write_text(_page(found, settings), encoding="utf-8")
    return files


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _page(found: Found, settings: dict[str, Any]) -> str:
    labels = [method.label for method in METHODS.values()]
    others = [name for name in METHODS if name not in (OURS, CONSTANT)]
    return "\n\n".join(
        [
            "# The defaults on raw tables",
            f"`InfiniteQuantileRegressor()` as it comes, on {len(found.tables)} of the tables of "
            "`experiments/raw_tables.py`: targets and inputs in their own units, text one-hot encoded, missing numbers "
            "replaced by the median. 70% of the rows for training; 3 splits up to 2 000 rows, 2 up to 5 000, else 1. "
            "The list was made before any method had seen one of the tables. The defaults were not: a scale for each "
            "input, and how λ falls with the rows, were settled after first results on these tables had been seen, so "
            "the figures are not those of fresh data.",
            f"{settings_used(settings)} LightGBM {MEASURED['lightgbm']}.",
            "Loss: the mean pinball loss over the levels "
            f"{', '.join(f'{level:g}' for level in LEVELS)} on the test rows, quantiles of a row sorted, whatever the "
            "method. Constant: the quantiles of the training targets. Self-tuned: "
            f"`InfiniteQuantileRegressorCV(random_state=0)`, left out beyond {CV_ROWS} training rows, because it fits "
            "many models; the figures are of a version that did not calibrate its levels yet. LightGBM: its defaults, "
            "one model for each level. Linear: scikit-learn's `QuantileRegressor` "
            f"without penalty on standardised inputs, at most {LINEAR_ROWS} training rows. Gaussian process: "
            f"scikit-learn's, one length scale and noise on standardised inputs, left out beyond {GP_ROWS} training "
            "rows.",
            "## Over the tables",
            markdown(
                ["default against", "tables", "loss, geometric mean of ratios", "better on", "worst ratio"],
                [_against(found, other) for other in [*others, CONSTANT]],
            ),
            _verdicts(found),
            "## Loss relative to the constant",
            markdown(
                ["table", "rows", "columns", *labels[:-1], "default / self-tuned", "default / LightGBM"],
                [_losses(found, name) for name in found.tables],
            ),
            "## Coverage of the 90% interval",
            markdown(
                ["table", *labels],
                [
                    [name, *(_number(found.mean(name, method, "coverage"), ".3f") for method in METHODS)]
                    for name in found.tables
                ],
            ),
            "## Seconds",
            "Wall-clock seconds of a fit with one thread. Known: the same fit with the chosen λ and kernel given"
            f"{_whether_known(found)}.",
            markdown(
                ["table", "rows", "default", "known", *labels[1:-1], "default, predict"],
                [_seconds(found, name) for name in found.tables],
            ),
            "## What a user is told",
            _warned(found),
            "",
        ]
    )


def _against(found: Found, other: str) -> list[str]:
    mean, count = found.overall(OURS, other)
    ratios = {name: r for name in found.tables if (r := found.ratio(name, OURS, other)) is not None}
    if not ratios:
        return [METHODS[other].label, "0", "–", "–", "–"]
    worst = max(ratios, key=lambda name: ratios[name])
    better = sum(ratio < 1.0 for ratio in ratios.values())
    return [METHODS[other].label, str(count), f"{mean:.3f}", str(better), f"{ratios[worst]:.3f} ({worst})"]


def _verdicts(found: Found) -> str:
    """Where the defaults are worse than ignoring x, and the mean coverage."""
    ratios = {name: r for name in found.tables if (r := found.ratio(name, OURS, CONSTANT)) is not None}
    worse = [name for name, ratio in ratios.items() if not ratio < 1.0]
    covered = [c for name in found.tables if (c := found.mean(name, OURS, "coverage")) is not None]
    mean = f"{np.mean(covered):.3f}, from {min(covered):.3f} to {max(covered):.3f}" if covered else "unknown"
    return f"The default is no better than the constant on: {_words(worse)}. Mean coverage of its 90% interval: {mean}."


def _words(names: Sequence[str]) -> str:
    return ", ".join(names) or "no table"


def _losses(found: Found, name: str) -> list[str]:
    size = [_number(max((found.mean(name, m, what) or 0.0) for m in METHODS), ".0f") for what in ("rows", "columns")]
    relative = [_number(found.ratio(name, method, CONSTANT), ".3f") for method in METHODS if method != CONSTANT]
    return [name, *size, *relative, *(_number(found.ratio(name, OURS, other), ".3f") for other in ("cv", "lightgbm"))]


def _seconds(found: Found, name: str) -> list[str]:
    rows = _number(max((found.mean(name, m, "rows") or 0.0) for m in METHODS), ".0f")
    peers = [found.mean(name, method, "seconds") for method in METHODS if method not in (OURS, CONSTANT)]
    ours = [found.mean(name, OURS, what) for what in ("seconds", "known_seconds")]
    return [name, rows, *(_number(s, ".3g") for s in [*ours, *peers, found.mean(name, OURS, "predict_seconds")])]


def _whether_known(found: Found) -> str:
    """A sentence's end: how much longer the default takes than the fit alone."""
    pairs = [(found.mean(name, OURS, "seconds"), found.mean(name, OURS, "known_seconds")) for name in found.tables]
    ratios = [own / known for own, known in pairs if own is not None and known]
    if not ratios:
        return "; not measured, because the model does not say what it chose"
    return f"; the default takes {geometric_mean(ratios):.2f} times as long (geometric mean of {len(ratios)} tables)"


def _warned(found: Found) -> str:
    """The warnings of the default fits, each with its tables."""
    tables: dict[str, list[str]] = {}
    for name in found.tables:
        for result in found.results(name, OURS).values():
            for text in result["warnings"]:
                kind = text.split(". ")[0]
                if name not in tables.setdefault(kind, []):
                    tables[kind].append(name)
    lines = [f"* {', '.join(names)}: {kind}" for kind, names in tables.items()]
    return "\n".join(lines) or "No default fit issued a warning."


EXPERIMENT = Experiment("defaults-tables", "The defaults on raw tables", units, work, report, settings)
