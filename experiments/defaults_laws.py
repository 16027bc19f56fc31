"""Are the quantiles of the defaults quantiles? Ten known laws in raw units, and the share of new targets below.

y = 1000 + 300 (f(x) + e), with x uniform on the unit cube in one to three dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from infinitask import InfiniteQuantileRegressor

from .defaults import REVISION, measured, shares_below, within
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv
from .tuned import Values

__all__ = ["BANDS", "EXPERIMENT", "LAWS", "Law"]

BANDS = {0.01: (0.0, 0.03), 0.05: (0.03, 0.08), 0.5: (0.46, 0.54), 0.95: (0.92, 0.97), 0.99: (0.97, 1.0)}
"""Level → where the mean share of new targets below must be."""

SHIFT, SCALE = 1000.0, 300.0

Noise = Callable[[np.random.Generator, Values], Values]


@dataclass(frozen=True)
class Law:
    """A distribution of x and y.

    Parameters
    ----------
    dimension : int
    words : str
        f and e, for the page.
    f : callable
        X (n, d) → (n,).
    noise : callable
        Generator, X → (n,).
    """

    dimension: int
    words: str
    f: Callable[[Values], Values]
    noise: Noise

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Values, Values]:
        """n rows, y in raw units."""
        X = rng.uniform(size=(n, self.dimension))
        return X, SHIFT + SCALE * (self.f(X) + self.noise(rng, X))


def _sine(X: Values) -> Values:
    return np.asarray(np.sin(2.0 * np.pi * X[:, 0]))


def _line(X: Values) -> Values:
    return np.asarray(2.0 * X[:, 0] - 1.0)


def _saddle(X: Values) -> Values:
    return np.asarray(4.0 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5))


def _sum(X: Values) -> Values:
    return np.asarray(np.sin(2.0 * np.pi * X[:, 0]) + X[:, 1] ** 2 - X[:, 2])


LAWS = {
    "normal": Law(1, "sine, 0.3 × normal", _sine, lambda rng, X: 0.3 * rng.normal(size=len(X))),
    "t3": Law(1, "line, 0.3 × Student's t with 3 degrees", _line, lambda rng, X: 0.3 * rng.standard_t(3, size=len(X))),
    "laplace": Law(2, "saddle, 0.3 × Laplace", _saddle, lambda rng, X: 0.3 * rng.laplace(size=len(X))),
    "exponential": Law(1, "sine, 0.5 × exponential", _sine, lambda rng, X: 0.5 * rng.exponential(size=len(X))),
    "uniform": Law(2, "saddle, uniform on [-0.5, 0.5]", _saddle, lambda rng, X: rng.uniform(-0.5, 0.5, size=len(X))),
    "lognormal": Law(1, "line, 0.3 × lognormal", _line, lambda rng, X: 0.3 * rng.lognormal(size=len(X))),
    "heteroscedastic": Law(
        1, "sine, (0.1 + 0.6 x) × normal", _sine, lambda rng, X: (0.1 + 0.6 * X[:, 0]) * rng.normal(size=len(X))
    ),
    "bimodal": Law(
        1,
        "line, ±0.5 + 0.15 × normal",
        _line,
        lambda rng, X: rng.choice([-0.5, 0.5], size=len(X)) + 0.15 * rng.normal(size=len(X)),
    ),
    "rounded": Law(
        2,
        "saddle, 0.3 × normal rounded to fifths",
        _saddle,
        lambda rng, X: 0.06 * np.round(5.0 * rng.normal(size=len(X))),
    ),
    "gamma": Law(3, "sum of three curves, 0.3 × gamma(2)", _sum, lambda rng, X: 0.3 * rng.gamma(2.0, size=len(X))),
}
"""Listed before any result."""


def units(quick: bool) -> list[dict[str, Any]]:
    """Ordered by seed, so that a run that was stopped has results for every law."""
    laws = ("normal", "heteroscedastic", "gamma") if quick else tuple(LAWS)
    return [{"law": law, "seed": seed, "revision": REVISION} for seed in range(2 if quick else 10) for law in laws]


def settings(quick: bool) -> dict[str, Any]:
    """What all units have in common."""
    return {"rows": 100 if quick else 300, "new": 2_000 if quick else 20_000, "levels": list(BANDS)}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Fit the default, draw new rows of the same law, and count."""
    law = LAWS[unit["law"]]
    rng = np.random.default_rng([unit["seed"], list(LAWS).index(unit["law"])])
    X, y = law.draw(rng, settings["rows"])
    X_new, y_new = law.draw(rng, settings["new"])
    model, seconds, seen = measured(lambda: InfiniteQuantileRegressor().fit(X, y))
    h = np.asarray(model.predict(X_new, settings["levels"]))
    return {"shares": shares_below(y_new, h), "seconds": seconds, "warnings": seen}


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write defaults_laws.csv and defaults_laws.md."""
    rows: list[dict[str, Any]] = []
    for name in LAWS:
        results = [record["result"] for record in records if record["unit"]["law"] == name]
        for k, (level, band) in enumerate(BANDS.items()):
            if results:
                shares = [result["shares"][k] for result in results]
                mean = float(np.mean(shares))
                rows.append(
                    {"law": name, "level": level, "seeds": len(shares), "share": mean}
                    | {"lowest": min(shares), "highest": max(shares), "passes": within(mean, band)}
                )
    seconds = float(np.mean([record["result"]["seconds"] for record in records]))
    warned = sum(bool(record["result"]["warnings"]) for record in records)
    files = [write_csv(folder / "defaults_laws.csv", rows), folder / "defaults_laws.md"]
    files[1].write_text(_page(rows, settings, seconds, f"{warned} of {len(records)}"), encoding="utf-8")
    return files


def _page(rows: list[dict[str, Any]], settings: dict[str, Any], seconds: float, warned: str) -> str:
    names = list(dict.fromkeys(row["law"] for row in rows))
    by = {(row["law"], row["level"]): row for row in rows}
    lines = [
        [f"{name}: {LAWS[name].words}", str(LAWS[name].dimension)]
        + [f"{by[name, level]['share']:.3f}{'' if by[name, level]['passes'] else ' ✗'}" for level in BANDS]
        + ["yes" if all(by[name, level]["passes"] for level in BANDS) else "no"]
        for name in names
    ]
    passed = sum(line[-1] == "yes" for line in lines)
    seeds = max(row["seeds"] for row in rows)
    return "\n\n".join(
        [
            "# Are the quantiles of the defaults quantiles?",
            f"`InfiniteQuantileRegressor()` as it comes, on {settings['rows']} rows of y = 1000 + 300 (f(x) + e), x "
            f"uniform on the unit cube: the share of {settings['new']} new y below the predicted quantiles, mean over "
            f"{seeds} seeds. A tie counts half. The bands are "
            f"{', '.join(f'[{low:g}, {high:g}] at {level:g}' for level, (low, high) in BANDS.items())}; ✗: outside.",
            settings_used(settings),
            f"{passed} of {len(names)} laws pass all bands, {sum(row['passes'] for row in rows)} of {len(rows)} single "
            f"shares do. A fit takes {seconds:.2f} s on average; {warned} fits issued a warning.",
            markdown(["law", "d", *(f"{level:g}" for level in BANDS), "passes"], lines),
            "",
        ]
    )


EXPERIMENT = Experiment("defaults-laws", "Are the quantiles of the defaults quantiles?", units, work, report, settings)
