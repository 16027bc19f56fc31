"""The star discrepancy of the nodes when Θ has several dimensions.

The paper bounds the error of its quadrature by the variation of the risk over Θ times the discrepancy of the nodes, and
remarks that Sobol's sequence has the discrepancy log(m)^s/m with s = dim Θ. Here it is computed exactly for the rules
of the library, in two and three dimensions, and compared with that rate. Beside it stand the errors for two functions
whose integrals are known: a smooth one, and one with a kink such as the losses of quantiles and costs have.

The paper also recommends quasi Monte Carlo for few dimensions and Monte Carlo for many. In up to 100 dimensions
discrepancies cannot be computed, and errors are compared instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from infinitask.bounds._formula import star_discrepancy
from infinitask.measures import GaussLegendre, Halton, MonteCarlo, ProductMeasure, Quadrature, Rule, Sobol, Uniform

from .figures import BLUE, GREEN, INK, ORANGE, PURPLE, save
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT", "kink_integral"]

Values = NDArray[np.float64]

SKY = "#56b4e9"
"""Another colour of those that colour-blind readers can tell apart."""

RULES: dict[str, tuple[Rule, str]] = {
    "Sobol": (Sobol(scramble=False), BLUE),
    "Sobol, scrambled": (Sobol(), GREEN),
    "Halton": (Halton(scramble=False), ORANGE),
    "Gauss-Legendre grid": (GaussLegendre(), PURPLE),
    "Monte Carlo": (MonteCarlo(), SKY),
}
RANDOM = ("Sobol, scrambled", "Monte Carlo")
"""The rules of which means over some seeds are shown."""

SEQUENCES = ("Sobol", "Halton")
"""The rules whose first m points are compared with the rate for all m, not only for powers of two."""

DIMENSIONS = (2, 3)
"""In which discrepancies are computed."""

MANY, MANY_NODES, MANY_SEEDS = (5, 10, 20, 50, 100), 256, 20
"""The dimensions in which errors alone are compared, with how many nodes, and for how many seeds of random rules."""

RULES_FOR_MANY = tuple(rule for rule in RULES if rule != "Gauss-Legendre grid")
"""A grid with two nodes for each axis has 2^s of them."""


FIXED = {"sequences": "Sobol's is shifted by half of its smallest step, Halton's begins after the origin"}
"""Settings that no run changes."""

ORIGINS = {
    "sequences": "ours: the paper names the Sobol sequence",
    "scrambles": "ours: the seeds over which means of random rules are taken",
    "between": "ours: the sizes that are tried between two powers of two",
    "most": "ours: the largest number of nodes",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """One rule and one number of nodes for each unit."""
    few = [
        {"dim": dim, "rule": rule, "m": 2**k}
        for k in range(4, 7 if quick else 11)
        for dim in DIMENSIONS
        for rule in RULES
    ]
    many = [{"dim": dim, "rule": rule, "m": MANY_NODES} for dim in MANY for rule in RULES_FOR_MANY]
    return few + many[: 8 if quick else None]


def kink_integral(dim: int) -> float:
    """∫ max(0, θ_1 + … + θ_d − d/2) dθ, exactly: Σ_{k ≤ d/2} (−1)^k binom(d, k) (d/2 − k)^(d + 1)/(d + 1)!."""
    half = Fraction(dim, 2)
    terms = ((-1) ** k * math.comb(dim, k) * (half - k) ** (dim + 1) for k in range(dim // 2 + 1))
    return float(sum(terms, Fraction(0)) / math.factorial(dim + 1))


def settings(quick: bool) -> dict[str, Any]:
    """Over how many seeds means are taken, and which other m are tried: ``between`` for each power of two."""
    return {"scrambles": 2 if quick else 5, "between": 4 if quick else 64, "most": 64 if quick else 1024}


def nodes(rule: str, dim: int, m: int, seed: int = 0) -> Quadrature:
    """The rule with m nodes on the unit cube; a grid has the next larger d-th power."""
    return RULES[rule][0](ProductMeasure([Uniform(0.0, 1.0)] * dim), m, rng=seed)


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The discrepancy and the errors; of sequences also the largest discrepancy before the next power of two."""
    dim, rule, m = unit["dim"], unit["rule"], unit["m"]
    if dim in MANY:
        return _many(dim, rule, m)
    found = [nodes(rule, dim, m, seed) for seed in range(settings["scrambles"] if rule in RANDOM else 1)]
    result = {"discrepancy": _mean(star_discrepancy(one.nodes, one.weights) for one in found)}
    integrals: dict[str, tuple[Callable[[Values], Values], float]] = {
        "smooth": (np.exp, (math.e - 1.0) ** dim),
        "kink": (lambda sums: np.maximum(0.0, sums - dim / 2.0), kink_integral(dim)),
    }
    for name, (function, integral) in integrals.items():
        result[name] = _mean(abs(one.integrate(function(np.sum(one.nodes, axis=1))) - integral) for one in found)
    if rule in SEQUENCES:
        sizes = range(m, max(m + 1, min(2 * m, settings["most"])), max(1, m // settings["between"]))
        between = [nodes(rule, dim, size) for size in sizes]
        result["largest"] = max(
            star_discrepancy(one.nodes, one.weights) / rate(len(one.weights), dim) for one in between
        )
    return {"nodes": len(found[0].weights), **result}


def _many(dim: int, rule: str, m: int) -> dict[str, Any]:
    """Root mean square errors in many dimensions, each relative to the standard deviation of its function."""
    width = 0.9 * math.sqrt(3.0 / dim)
    kink = kink_integral(dim)
    functions: dict[str, tuple[Callable[[Values], Values], float, float]] = {
        "product": (
            lambda u: np.prod(1.0 + width * (2.0 * u - 1.0), axis=1),
            1.0,
            math.sqrt((1.0 + width**2 / 3.0) ** dim - 1.0),
        ),
        "kink": (lambda u: np.maximum(0.0, np.sum(u - 0.5, axis=1)), kink, math.sqrt(dim / 24.0 - kink**2)),
    }
    found = [nodes(rule, dim, m, seed) for seed in range(MANY_SEEDS if rule in RANDOM else 1)]
    return {"nodes": m} | {
        name: math.sqrt(_mean((one.integrate(function(one.nodes)) - integral) ** 2 for one in found)) / spread
        for name, (function, integral, spread) in functions.items()
    }


def _mean(values: Iterable[Any]) -> float:
    return float(np.mean(list(values)))


def rate(m: int, dim: int) -> float:
    """The rate that the paper names, log(m)^s/m."""
    return math.log(m) ** dim / m


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write discrepancy.csv, discrepancy.png and discrepancy.md."""
    rows = [
        {**record["unit"], "rate": rate(record["unit"]["m"], record["unit"]["dim"]), **record["result"]}
        for record in records
    ]
    many, rows = ([row for row in rows if (row["dim"] in MANY) == here] for here in (True, False))
    names = ("dim", "rule", "m", "nodes", "discrepancy", "rate", "largest", "smooth", "kink", "product")
    files = [
        write_csv(folder / "discrepancy.csv", [{name: row.get(name, "") for name in names} for row in rows + many]),
        save(folder / "discrepancy.png", (10.0, 4.5), lambda figure: _draw(figure, rows)),
        folder / "discrepancy.md",
    ]
    page = [
        "# Discrepancy when θ has several coordinates",
        "The quadrature term of a [generalisation bound](../guide/certificates.md#bounds) is the variation of the risk "
        "over Θ times the star discrepancy D_m of the nodes, the largest error of Σ_j w_j 1[θ_j ≤ t] − t_1 ⋯ t_s over "
        "all boxes [0, t]. The paper remarks in a footnote that Sobol's sequence has D_m = log(m)^s/m with s = dim Θ. "
        "All discrepancies below are exact.",
        settings_used(settings | FIXED, ORIGINS),
        "![Discrepancy against the number of nodes](discrepancy.png)",
        *(part for dim in DIMENSIONS for part in _about(rows, dim)),
        "## What the errors are",
        "The error of ∫ exp(θ_1 + … + θ_s) dθ, which is smooth, and of ∫ max(0, θ_1 + … + θ_s − s/2) dθ, which has a "
        "kink as the losses of quantiles and costs have where y = h(x)(θ).",
        markdown(["dimension, nodes, function", *RULES], _errors(rows)),
        _finding(rows),
        "In two dimensions the function with the kink has the variation 3 in the sense of Hardy and Krause, so its "
        "error is at most 3 D_m. In three dimensions that variation is infinite, and no multiple of D_m bounds the "
        "errors of such functions: see [certificates](../guide/certificates.md#several-coordinates-of-θ).",
        *_about_many(many),
        "All numbers are in [discrepancy.csv](discrepancy.csv).",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _about(rows: list[dict[str, Any]], dim: int) -> list[str]:
    """The table of one dimension, and what it says of the printed rate."""
    mine = {(row["rule"], row["m"]): row for row in rows if row["dim"] == dim}
    sizes = sorted({m for _, m in mine})
    if len(sizes) < 2 or any((rule, m) not in mine for rule in RULES for m in sizes):
        return []  # a run that was stopped
    lines = []
    for m in sizes:
        found = [mine[rule, m]["discrepancy"] for rule in RULES]
        largest = [mine[rule, m]["largest"] for rule in SEQUENCES]
        lines.append(
            [
                str(m),
                *(f"{value:.4f}" for value in found),
                f"{rate(m, dim):.3f}",
                f"{found[0] / rate(m, dim):.3f}",
                *(f"{value:.3f}" for value in largest),
            ]
        )
    header = ["m", *RULES, f"log(m)^{dim}/m", "Sobol/rate", *(f"{rule}/rate, largest" for rule in SEQUENCES)]
    ratios = [mine["Sobol", m]["largest"] for m in sizes]
    grid, drawn = (
        [(mine[rule, m]["nodes"], mine[rule, m]["discrepancy"]) for m in sizes]
        for rule in ("Gauss-Legendre grid", "Monte Carlo")
    )
    net = f"log(m){'^2' if dim == 3 else ''}"
    few = (sizes[0], sizes[len(sizes) // 2])
    plain = " and ".join(f"{_unshifted(m, dim):.4f} with {m} nodes" for m in few)
    return [
        f"## dim Θ = {dim}",
        markdown(header, lines),
        f"For Sobol's sequence the printed rate bounds D_m at all m that were tried, up to {sizes[-1]}: D_m is at most "
        f"{ratios[0]:.2f} log(m)^{dim}/m from {sizes[0]} to {sizes[1]} nodes, and {ratios[-2]:.3f} log(m)^{dim}/m from "
        f"{sizes[-2]} to {sizes[-1]}. Powers of two are better: there m D_m is of the order {net}; the ratio of "
        f"the two is {_net(mine, sizes[0], dim):.2f} with {sizes[0]} nodes and {_net(mine, sizes[-1], dim):.2f} with "
        f"{sizes[-1]}. The discrepancy of the grid falls like m^{_order(grid):.2f}, about m^(−1/{dim}), and that of "
        f"random nodes like m^{_order(drawn):.2f}. Without the shift, the sequence of Sobol contains the origin, and "
        f"its discrepancy is larger: {plain}.",
    ]


def _unshifted(m: int, dim: int) -> float:
    """The discrepancy of the first m points of the sequence of Sobol as it is."""
    return star_discrepancy(qmc.Sobol(dim, scramble=False).random_base2(m.bit_length() - 1), np.full(m, 1.0 / m))


def _about_many(rows: list[dict[str, Any]]) -> list[str]:
    """Errors in many dimensions, and from which one on random nodes are better than a sequence."""
    by = {(row["dim"], row["rule"]): row for row in rows}
    dims = [dim for dim in MANY if all((dim, rule) in by for rule in RULES_FOR_MANY)]
    if not dims:
        return []
    lines, better = [], []
    for name in ("product", "kink"):
        for dim in dims:
            lines.append([f"{dim}, {name}", *(f"{by[dim, rule][name]:.1e}" for rule in RULES_FOR_MANY)])
        for rule in RULES_FOR_MANY[:-1]:
            won = [str(dim) for dim in dims if by[dim, "Monte Carlo"][name] < by[dim, rule][name]]
            better.append(f"{rule} in {', '.join(won) or 'none'} ({name})")
    return [
        "## Many coordinates",
        "The paper recommends quasi Monte Carlo for few dimensions and Monte Carlo for many. Here the error is "
        f"relative to the standard deviation of the function, with {MANY_NODES} nodes; for random nodes and scrambled "
        f"ones it is the root mean square over {MANY_SEEDS} seeds. The product is ∏_k (1 + 0.9 √(3/s) (2θ_k − 1)), in "
        "which all coordinates act together; the kink is that of the sum, as above.",
        markdown(["dimension, function", *RULES_FOR_MANY], lines),
        "Of the dimensions that were tried, random nodes have a smaller error than " + "; ".join(better) + ".",
    ]


def _net(mine: dict[tuple[str, int], dict[str, Any]], m: int, dim: int) -> float:
    return float(mine["Sobol", m]["discrepancy"] / rate(m, dim - 1))


def _order(points: list[tuple[int, float]]) -> float:
    """The slope of a line through the logarithms."""
    m, d = np.log(np.array(points)).T
    return float(np.polyfit(m, d, 1)[0]) if len(set(m)) > 1 else math.nan


def _errors(rows: list[dict[str, Any]]) -> list[list[str]]:
    lines = []
    for dim in DIMENSIONS:
        for m in sorted({row["m"] for row in rows})[::2]:
            mine = {row["rule"]: row for row in rows if (row["dim"], row["m"]) == (dim, m)}
            if set(mine) == set(RULES):
                lines += [
                    [f"{dim}, {m}, {name}", *(f"{mine[rule][name]:.1e}" for rule in RULES)]
                    for name in ("smooth", "kink")
                ]
    return lines


def _finding(rows: list[dict[str, Any]]) -> str:
    """Which rule has the smallest errors at the largest m."""
    said = []
    for dim in DIMENSIONS:
        mine = [row for row in rows if row["dim"] == dim and row["m"] == max(row["m"] for row in rows)]
        if mine:
            best = {name: min((row[name], row["rule"]) for row in mine)[1] for name in ("smooth", "kink")}
            widest = max((row["discrepancy"], row["rule"]) for row in mine)[1]
            said.append(
                f"With the most nodes in {dim} dimensions, the smallest error of the smooth function is that of "
                f"{best['smooth']}, and of the function with a kink that of {best['kink']}; {widest} has the largest "
                "discrepancy."
            )
    return " ".join(said)


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    for axes, dim in zip(figure.subplots(1, len(DIMENSIONS)), DIMENSIONS, strict=True):
        for rule, (_, colour) in RULES.items():
            mine = sorted(
                (row["nodes"], row["discrepancy"]) for row in rows if (row["dim"], row["rule"]) == (dim, rule)
            )
            axes.plot(*zip(*mine, strict=True), "o-", color=colour, label=rule, markersize=4)
        m = np.array(sorted({row["m"] for row in rows}))
        axes.plot(m, np.log(m) ** dim / m, "--", color=INK, label="log(m)$^s$/m")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set(xlabel="nodes m", ylabel="star discrepancy" if dim == DIMENSIONS[0] else None)
        axes.set_title(f"dim Θ = {dim}")
    axes.legend(loc="lower left")


EXPERIMENT = Experiment(
    "discrepancy",
    "Discrepancy in several dimensions",
    units,
    work,
    report,
    settings,
    code=("src/infinitask/bounds", "src/infinitask/measures"),
)
