"""The study of robustness: the laws of κ hold in its records, and its page says what the numbers say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, check_grad, minimize
from scipy.stats import norm

pytest.importorskip("matplotlib", reason="the figure is drawn with the extra `plot`")

from experiments import robustness, robustness_report
from experiments.convergence import Coefficients
from experiments.robustness_figure import PREDICTED
from experiments.runner import Record
from experiments.tables import read_csv
from experiments.tuned import LEVELS

PARAMETERS = {"gamma": 0.0, "task_gamma": 0.0, "lambda": -1.0}
SETTINGS: dict[str, Any] = {
    "kappas": [10.0, 0.1, 0.01, 1e-3, 0.0],
    "rows": 120,
    "nodes": 24,
    "tol": 1e-4,
    "fine_tol": 1e-8,
    "few_rows": 40,
    "few_nodes": 8,
    "sizes": [1.0, 100.0],
    "starts": 2,
    "evaluations": [10, 150],
    "parameters": {"sine": PARAMETERS},
}


@pytest.fixture(scope="module")
def records() -> list[Record]:
    units: list[dict[str, Any]] = [
        {"part": "kappa", "dataset": "sine", "split": 0},
        {"part": "starts", "dataset": "sine", "kappa": 0.1},
    ]
    done = [{"unit": unit, "result": robustness.work(unit, SETTINGS), "seconds": 1.0} for unit in units]
    found: list[Record] = json.loads(json.dumps(done))
    return found


def test_smoothing_costs_at_most_seven_eighths_of_kappa(records: list[Record]) -> None:
    """ψ_κ ≤ |·| ≤ ψ_κ + κ/2, the mean weight ∫ max(θ, 1 − θ) is 3/4, and λ_nc = 1: P(h_κ) − P(h₀) ≤ 7κ/8."""
    *rows, exact = records[0]["result"]["rows"]
    optimum = records[0]["result"]["optimum"]
    assert exact["kappa"] == exact["distance"] == 0.0
    for row in rows:
        assert row["gap"] <= SETTINGS["tol"]
        assert row["fine_gap"] <= SETTINGS["fine_tol"]
        assert -1e-7 <= row["excess"] * optimum <= 0.88 * row["kappa"]
    excess, distance = (np.array([row[what] for row in rows]) for what in ("excess", "distance"))
    assert np.all(np.diff(distance) < 0.0)
    assert np.all(np.diff(excess) < 0.0)
    assert excess[0] > 0.01  # κ = 10 is another problem


def test_the_predicted_distance_is_that_of_normal_m_quantiles() -> None:
    """M-quantiles of a normal distribution, from their defining equation in closed form."""
    kappa, found = 0.01, []

    def clipped(a: float) -> float:
        """E min(max(Z − a, 0)/κ, 1)."""
        inside = norm.pdf(a) - norm.pdf(a + kappa) - a * (norm.cdf(a + kappa) - norm.cdf(a))
        return float(inside / kappa + norm.sf(a + kappa))

    for theta in LEVELS:
        q = float(norm.ppf(theta))
        m_quantile = brentq(lambda a, t=theta: t * clipped(a) - (1.0 - t) * clipped(-a), q - kappa, q + kappa)
        found.append(m_quantile - q)
    assert np.sqrt(np.mean(np.square(found))) / kappa == pytest.approx(PREDICTED, rel=0.02)


# ---------------------------------------------------------------------------------------------------------- the starts
def test_the_gradient_of_the_paper_s_problem() -> None:
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(12, 2)), rng.normal(size=12), np.array([0.2, 0.5, 0.7])
    problem = Coefficients(X, y, theta, PARAMETERS)
    z = 0.1 * rng.normal(size=problem.size)
    value, slopes = problem.evaluate(z, 0.3)
    assert check_grad(lambda z: problem.evaluate(z, 0.3)[0], lambda z: problem.evaluate(z, 0.3)[1], z) <= 1e-5
    assert np.linalg.norm(slopes) > 0.01
    # without smoothing both losses are larger: the first by at most κ/2 times its mean weight 2/3, the other by κ/2
    assert 0.0 < problem.evaluate(z, 0.0)[0] - value <= 0.3 * (1.0 / 3.0 + 1.0 / 2.0)
    assert problem.evaluate(problem.after(30, 0.3, z), 0.3)[0] < value


def test_one_run_stops_where_several_would() -> None:
    rng = np.random.default_rng(0)
    X, y, theta = rng.normal(size=(12, 2)), rng.normal(size=12), np.array([0.2, 0.5, 0.7])
    problem, start = Coefficients(X, y, theta, PARAMETERS), None
    stops = [1, 2, 5, 5, 40, 100_000]

    def of_scipy(stop: int) -> Any:
        options = {"maxfun": stop, "maxiter": stop, "ftol": 0.0, "gtol": 0.0}
        return minimize(problem.evaluate, start, args=(0.3,), jac=True, method="L-BFGS-B", options=options)

    for start in (np.zeros(problem.size), rng.normal(size=problem.size)):
        for found, stop in zip(problem.after_each(stops, 0.3, start), stops, strict=True):
            np.testing.assert_array_equal(found, of_scipy(stop).x)


def test_the_dual_value_bounds_the_paper_s_algorithm_from_below(records: list[Record]) -> None:
    rows = records[1]["result"]["rows"]
    assert [(row["size"], row["start"]) for row in rows] == [(0.0, 0), (1.0, 0), (1.0, 1), (100.0, 0), (100.0, 1)]
    for row in rows:
        assert row["excess_10"] > row["excess_150"] > -1e-9
    # the starts are at different places, and a large one is far away
    assert len({row["excess_10"] for row in rows}) == len(rows)
    assert min(row["excess_10"] for row in rows[3:]) > 3.0 * max(row["excess_10"] for row in rows[:3])


def test_the_library_arrives_from_every_start(records: list[Record]) -> None:
    result = records[1]["result"]
    for row in result["rows"]:
        assert row["gap"] <= SETTINGS["tol"]
        assert row["pinball"] == pytest.approx(result["pinball"], rel=5e-3)
    assert len({row["evaluations"] for row in result["rows"]}) > 1  # it did begin elsewhere


# ------------------------------------------------------------------------------------------------------------ the page
def test_the_page(records: list[Record], tmp_path: Path) -> None:
    files = robustness_report.report(records, tmp_path, SETTINGS)
    assert {file.name for file in files} == {
        "robustness.csv",
        "robustness_starts.csv",
        "robustness.png",
        "robustness.md",
    }
    assert all(file.stat().st_size > 0 for file in files)
    page = files[-1].read_text(encoding="utf-8")
    assert page.count("\n# ") + page.startswith("# ") == 1
    assert [float(row["kappa"]) for row in read_csv(files[0])] == SETTINGS["kappas"]
    rows = read_csv(files[1])
    assert {row["algorithm"] for row in rows} == {"the paper's", "infinitask"}
    for row in rows:
        assert float(row["excess_min"]) <= float(row["excess"]) <= float(row["excess_max"])
    for name, origin in robustness_report.ORIGINS.items():
        assert any(line.startswith(f"| {name} | ") and line.endswith(f"{origin} |") for line in page.splitlines())


@pytest.mark.parametrize("part", [0, 1])
def test_a_report_copes_with_one_of_the_two_studies(records: list[Record], part: int, tmp_path: Path) -> None:
    files = robustness_report.report([records[part]], tmp_path, SETTINGS)
    page = files[-1].read_text(encoding="utf-8")
    assert ("## κ" in page, "## Starts" in page) == (part == 0, part == 1)


def test_the_verdicts_follow_the_numbers(tmp_path: Path) -> None:
    def of_kappa(name: str, evaluations: int, pinball: float) -> Record:
        rows = [
            {"kappa": 0.1, "evaluations": 20, "gap": 1e-5, "distance": 0.03, "excess": 0.1, "pinball": 50.0},
            {
                "kappa": 0.01,
                "evaluations": evaluations,
                "gap": 1e-5,
                "distance": 0.003,
                "excess": 0.1,
                "pinball": pinball,
            },
            {"kappa": 0.0, "evaluations": 20, "gap": 1e-5, "distance": 0.0, "excess": 0.0, "pinball": 50.0},
        ]
        return {"unit": {"part": "kappa", "dataset": name, "split": 0}, "result": {"rows": rows}, "seconds": 1.0}

    def of_starts(name: str, zero: float, large: float) -> Record:
        same = {"start": 0, "raw": 30.0, "pinball_10": 60.0, "pinball_150": 50.0, "excess_10": 9.0}
        same |= {"evaluations": 40, "gap": 9e-5, "pinball": 50.1}
        rows = [same | {"size": size, "excess_150": e} for size, e in ((0.0, zero), (1.0, 1.5 * zero), (100.0, large))]
        unit = {"part": "starts", "dataset": name, "kappa": 0.1}
        return {"unit": unit, "result": {"rows": rows, "pinball": 50.0}, "seconds": 1.0}

    records = [of_kappa("a", 30, 50.2), of_kappa("b", 90, 49.0), of_starts("a", 1e-4, 1.5e-4), of_starts("b", 0.2, 0.9)]
    settings = SETTINGS | {"parameters": {"a": PARAMETERS, "b": PARAMETERS}}
    page = robustness_report.report(records, tmp_path, settings)[-1].read_text(encoding="utf-8")
    assert "(test loss within 1% of κ = 0): holds on a; does not hold on b." in page
    assert "(evaluations within a factor of 2): holds on a; does not hold on b." in page
    assert "a 0.30 κ (power 1.00)" in page
    assert "(a fitted power of κ within 0.1 of 1): holds on a, b." in page
    slow = [of_kappa("a", 30, 50.2)]
    for row, distance in zip(slow[0]["result"]["rows"], (0.03, 0.005, 0.0), strict=True):
        row["distance"] = distance
    told = robustness_report.report(slow, tmp_path, settings)[-1].read_text(encoding="utf-8")
    assert "(a fitted power of κ within 0.1 of 1): holds on no set; does not hold on a." in told
    assert "a 0.40 κ (power 0.78)" in told
    assert "| paper's, 150 evaluations: distance | paper's, 10 evaluations: loss |" in page
    assert "sizes up to 1 do as well as zero** after 150 evaluations" in page
    up_to_one, hundred, _, solved, _ = (line for line in page.split("## Starts")[1].splitlines() if line[:2] == "- ")
    assert "holds on a (κ = 0.1), b (κ = 0.1). " in up_to_one
    assert "holds on a (κ = 0.1); does not hold on b (κ = 0.1). " in hundred
    assert "distance is 4.5 times that of zero" in hundred
    assert "(within 0.001 of the optimum): holds on a (κ = 0.1); does not hold on b (κ = 0.1). " in solved
