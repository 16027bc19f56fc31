"""The benchmark is fair: the paper's algorithm solves the same problem, with the right gradient."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def kappa_study(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("paper_kappa")


@pytest.fixture
def paper(kappa_study: Any) -> Any:
    return importlib.import_module("paper_algorithm")


def small(kappa_study: Any, kappa: float, alpha: float = 1e-3) -> Any:
    return kappa_study.study(40, 6, alpha, kappa)


def crossing_point(algorithm: Any) -> Any:
    """A point at which the curves are of the size of the data and many of them cross."""
    return 0.3 * np.random.default_rng(0).standard_normal(algorithm.size)


@pytest.mark.parametrize("kappa", [10.0, 0.1, 0.0])
def test_gradient_of_the_papers_algorithm_is_a_finite_difference(kappa_study: Any, paper: Any, kappa: float) -> None:
    problem = small(kappa_study, kappa)
    algorithm = paper.PaperAlgorithm(problem, paper.input_gram(problem.X))
    z = crossing_point(algorithm)
    gradient = algorithm.evaluate(z).gradient
    assert np.any(algorithm._slopes[:, problem.theta.size :] != 0.0)  # the penalty takes part
    for seed in range(5):
        direction = np.random.default_rng(seed).standard_normal(algorithm.size)
        direction *= 1e-6 / np.linalg.norm(direction)
        ahead, behind = (algorithm.evaluate(z + sign * direction).value for sign in (1.0, -1.0))
        assert 0.5 * (ahead - behind) == pytest.approx(gradient @ direction, rel=1e-5)


@pytest.mark.parametrize("kappa", [10.0, 0.0])
def test_both_reach_the_same_objective(kappa_study: Any, paper: Any, kappa: float) -> None:
    problem = small(kappa_study, kappa, alpha=1e-2)
    ours = kappa_study.fit(problem.X, problem.y, problem.theta.size, problem.alpha, kappa)
    algorithm = paper.PaperAlgorithm(problem, paper.input_gram(problem.X))
    outcome = paper.run(algorithm, 0.0, max_evaluations=500)
    assert not outcome.reached
    assert np.all(np.diff(outcome.objectives) <= 0.0)
    assert outcome.objectives[-1] == pytest.approx(ours.objective, rel=1e-3)
    # what our certificate says is a law for anybody's point
    assert outcome.objectives[-1] >= ours.objective * (1.0 - ours.gap) - 1e-12


def test_the_run_stops_at_the_target(kappa_study: Any, paper: Any) -> None:
    problem = small(kappa_study, 0.1)
    algorithm = paper.PaperAlgorithm(problem, paper.input_gram(problem.X))
    start = algorithm.evaluate(np.zeros(algorithm.size), objective=True).objective
    outcome = paper.run(algorithm, 0.9 * start, max_evaluations=1000)
    assert outcome.reached
    assert outcome.objectives[-1] <= 0.9 * start < outcome.objectives[-2]


def test_rotated_coordinates_take_the_same_steps(kappa_study: Any, paper: Any) -> None:
    problem = small(kappa_study, 0.1)
    everything = paper.PaperAlgorithm(problem, paper.input_gram(problem.X))
    rotated = paper.RotatedAlgorithm(problem)
    assert rotated.size < everything.size
    # rounding separates the two in the end; they are the same for as long as the steps are well determined
    long, short = (paper.run(a, 0.0, max_evaluations=20).objectives for a in (everything, rotated))
    np.testing.assert_allclose(long, short, rtol=1e-6)


@pytest.mark.slow
def test_the_whole_script_runs(kappa_study: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "table.md"
    kappa_study.main(["--quick", "--output", str(output)])
    text = output.read_text(encoding="utf-8")
    assert text in capsys.readouterr().out
    rows = [line for line in text.splitlines() if line.startswith(("| 1e-03 |", "| 1e-07 |"))]
    assert len(rows) == len(kappa_study.QUICK.cases)
    assert "Smallest ratio" in text


@pytest.mark.slow
def test_the_comparison_of_probabilities_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    output = tmp_path / "table.md"
    importlib.import_module("probabilities").main(["--quick", "--output", str(output)])
    rows = [line.split("|")[1:-1] for line in output.read_text(encoding="utf-8").splitlines() if "±" in line]
    assert len(rows) == 8, "four methods on two data sets"
    losses = [float(row[1].replace("*", "").split("±")[0]) for row in rows]
    assert all(0.0 < loss < 1.5 for loss in losses)
