"""Which kernels and λ are looked at: paths that end, kernels that are left, heats with some of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from infinitask.tuning import InfiniteQuantileRegressorCV, _race
from infinitask.tuning._rules import walk

FOLDS = 5
IGNORING = np.full(FOLDS, 1.0)
NOISE = 1e-3 * np.arange(FOLDS)
Floats = np.ndarray[Any, Any]


def walked(path: list[float], begin: int = 0, leader: float = np.inf) -> tuple[list[int], Floats]:
    """The λ that a walk looks at, and its table, where the mean loss at each λ is given."""
    seen: list[int] = []

    def losses(i: int) -> list[float]:
        seen.append(i)
        return [path[i] + noise for noise in NOISE]

    return seen, walk(losses, len(path), begin, IGNORING, leader)


def test_a_kernel_that_is_far_behind_is_left() -> None:
    seen, table = walked([0.80, 0.79, 0.78, 0.30], leader=0.3)
    assert seen == [0, 1]
    assert np.all(np.isinf(table[2:]))


@pytest.mark.parametrize("path", [[0.9, 0.5, 0.3, 0.2, 0.25, 0.3], [0.9, 0.6, 0.2, 0.4, 0.9, 1.0]])
def test_one_that_comes_nearer_fast_is_not(path: list[float]) -> None:
    begin = 1 if path[1] == 0.6 else 0
    _, table = walked(path, begin, leader=0.25)
    assert np.argmin(table.mean(axis=1)) == np.argmin(path)


def test_a_path_ends_where_nothing_changes() -> None:
    seen, _ = walked([0.9, 0.5, 0.3, *[0.2001, 0.2, 0.2002, 0.2], *[0.2] * 9])
    assert max(seen) == 6


def test_not_where_nothing_is_known_yet() -> None:
    """A path over given λ begins where it ignores the inputs."""
    path = [1.0] * 6 + [0.5, 0.2, 0.4, 0.6]
    _, table = walked(path)
    assert np.argmin(table.mean(axis=1)) == 7


# ---------------------------------------------------------------------------------------------------------------- heats
def rows(n: int = 240) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=n)


@pytest.fixture
def early_heats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_race, "MIN_ROWS_FOR_HEAT", 200)


OPTIONS: dict[str, Any] = {"n_nodes": 10, "tol": 1e-2, "random_state": 0, "calibrated": False}


@pytest.mark.usefixtures("early_heats")
def test_a_heat_leaves_the_best_kernels_to_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rows()
    model = InfiniteQuantileRegressorCV(verbose=1, **OPTIONS).fit(X, y)
    losses = model.cv_results_["losses"]
    tried = np.isfinite(losses).any(axis=(1, 2))
    assert tried.sum() == _race.FINALISTS < len(tried)
    assert tried[model.cv_results_["best"][0]]
    said = capsys.readouterr().err
    assert "kernels on 120 rows" in said
    assert "the best 3 on 240 rows" in said


def test_the_choice_is_about_as_good_as_without_a_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    patient = InfiniteQuantileRegressorCV(**OPTIONS).fit(X, y)
    monkeypatch.setattr(_race, "MIN_ROWS_FOR_HEAT", 200)
    hasty = InfiniteQuantileRegressorCV(**OPTIONS).fit(X, y)
    best = [float(np.min(model.cv_results_["losses"].mean(axis=2))) for model in (patient, hasty)]
    assert best[1] <= 1.02 * best[0]


@pytest.mark.usefixtures("early_heats")
@pytest.mark.slow
def test_heats_do_not_depend_on_the_number_of_jobs() -> None:
    X, y = rows()
    one, two = (InfiniteQuantileRegressorCV(n_jobs=jobs, **OPTIONS).fit(X, y) for jobs in (None, 2))
    np.testing.assert_array_equal(one.cv_results_["losses"], two.cv_results_["losses"])


@pytest.mark.usefixtures("early_heats")
def test_all_given_kernels_compete_with_all_rows() -> None:
    X, y = rows()
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "linear", "laplacian", "matern32"], **OPTIONS).fit(X, y)
    assert np.isfinite(model.cv_results_["losses"]).any(axis=(1, 2)).all()
