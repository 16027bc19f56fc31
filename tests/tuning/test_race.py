"""Which kernels and λ are looked at: paths that end, kernels that are left, heats with some of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

from infinitask.tuning import InfiniteCostSensitiveClassifierCV, InfiniteQuantileRegressorCV, _race
from infinitask.tuning._candidates import Candidate, Kind, ranking_rows
from infinitask.tuning._rules import walk

FOLDS = 5
IGNORING = np.full(FOLDS, 1.0)
NOISE = 1e-3 * np.arange(FOLDS)
Floats = np.ndarray[Any, Any]
OPTIONS: dict[str, Any] = {"n_nodes": 10, "tol": 1e-2, "random_state": 0, "calibrated": False}


def rows(n: int = 240) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=n)


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
def test_a_kernel_that_catches_up_is_kept(path: list[float]) -> None:
    begin = 1 if path[1] == 0.6 else 0
    _, table = walked(path, begin, leader=0.25)
    assert np.argmin(table.mean(axis=1)) == np.argmin(path)


def test_a_path_ends_where_nothing_changes() -> None:
    seen, _ = walked([0.9, 0.5, 0.3, *[0.2001, 0.2, 0.2002, 0.2], *[0.2] * 9])
    assert max(seen) == 6


def test_a_path_does_not_end_before_it_beats_ignoring_the_features() -> None:
    """A path over given λ begins where it ignores the inputs."""
    path = [1.0] * 6 + [0.5, 0.2, 0.4, 0.6]
    _, table = walked(path)
    assert np.argmin(table.mean(axis=1)) == 7


@pytest.mark.quick("20")
@pytest.mark.parametrize("count", [20, 200])
def test_given_values_may_lie_close_together(count: int) -> None:
    X, y = rows(150)
    options = OPTIONS | {"rule": "best", "kernels": ["rbf"], "alphas": np.logspace(1.0, -4.0, count)}
    results = InfiniteQuantileRegressorCV(cv=2, **options).fit(X, y).cv_results_
    assert np.min(results["losses"].mean(axis=2)) < 0.6 * np.mean(results["ignoring_x"])


# ---------------------------------------------------------------------------------------------------------------- heats
@pytest.fixture
def early_heats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_race, "FEW_ROWS", 200)


@pytest.mark.usefixtures("early_heats")
def test_a_heat_leaves_the_best_kernels_to_all_rows(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rows()
    model = InfiniteQuantileRegressorCV(verbose=1, **OPTIONS).fit(X, y)
    losses = model.cv_results_["losses"]
    tried = np.isfinite(losses).any(axis=(1, 2))
    assert model.cv_results_["kernels"][0] == "default"
    assert 1 <= tried.sum() <= _race.FINALISTS  # kernels that clearly lost the heat are not among them
    assert not tried.all()
    assert tried[model.cv_results_["best"][0]]
    said = capsys.readouterr().err
    assert "kernels on 120 rows" in said
    assert "with all rows" in said


@pytest.mark.slow
def test_the_choice_is_about_as_good_as_without_a_heat(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    patient = InfiniteQuantileRegressorCV(**OPTIONS).fit(X, y)
    monkeypatch.setattr(_race, "FEW_ROWS", 200)
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


@pytest.mark.quick("5-3")
@pytest.mark.usefixtures("early_heats")
@pytest.mark.parametrize("after", [3, 8])
@pytest.mark.parametrize("folds", [5, pytest.param(80, marks=pytest.mark.slow)])
def test_an_interrupt_gives_the_best_so_far(after: int, folds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a heat of eight kernels, and at the first of those that race with all rows."""
    X, y = rows()
    count, path_of = 0, _race.path_of

    def interrupted(*arguments: Any, **options: Any) -> Floats:
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt
        return path_of(*arguments, **options)

    monkeypatch.setattr(_race, "path_of", interrupted)
    judging, _ = ranking_rows(y)
    # of eighty folds some have no row in a heat: eight with these among them serve as well
    cv = sorted(KFold(folds, shuffle=True, random_state=0).split(X), key=lambda fold: np.isin(fold[1], judging).any())[
        :8
    ]
    assert np.isin(cv[0][1], judging).any() == (folds == 5)
    model = InfiniteQuantileRegressorCV(on_interrupt="best", cv=cv, **OPTIONS).fit(X, y)
    results = model.cv_results_
    assert results["losses"].shape[2] == results["ignoring_x"].size
    assert not model.ignores_inputs_
    with pytest.raises(KeyboardInterrupt):
        InfiniteQuantileRegressorCV(cv=cv, **OPTIONS).fit(X, y)


@pytest.mark.slow
@pytest.mark.usefixtures("early_heats")
def test_folds_with_hardly_any_row_have_no_heat() -> None:
    X, y = rows()
    tests = np.random.default_rng(0).choice(240, size=(4, 2), replace=False)
    cv = [(np.setdiff1d(np.arange(240), test), test) for test in tests]
    model = InfiniteQuantileRegressorCV(cv=cv, **OPTIONS).fit(X, y)
    assert model.cv_results_["losses"].shape[2] == 4


@pytest.mark.usefixtures("early_heats")
def test_kernels_of_a_heat_have_not_seen_its_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    judging, _ = ranking_rows(y)
    seen: list[set[int]] = []

    def spy(entrants: list[Candidate]) -> list[Candidate]:
        def watched(kind: Kind) -> Kind:
            def adapt(given: Floats) -> Any:
                seen.append(set(given.tolist()))
                return kind.on(given)

            return Kind(adapt, learns=True)

        return [replace(entrant, kind=watched(entrant.kind)) for entrant in entrants]

    entrants, default = _race._entrants, _race.default_candidate
    monkeypatch.setattr(_race, "_entrants", lambda contest, kernels: spy(entrants(contest, kernels)))
    monkeypatch.setattr(_race, "default_candidate", lambda contest: spy([default(contest)])[0])
    monkeypatch.setattr(_race, "FINALISTS", 0)
    model = InfiniteQuantileRegressorCV(**OPTIONS).fit(X, y)
    count = len(model.cv_results_["kernels"])
    heat, finals = seen[:count], seen[count:]  # only the default races with all rows
    assert len(heat) > 4
    assert not any(rows & set(judging.tolist()) for rows in heat)
    assert len(finals[-1]) == y.size  # the kernel of the choice


@pytest.mark.slow
@pytest.mark.usefixtures("early_heats")
def test_classes_have_heats_too() -> None:
    X, _ = rows()
    labels = X[:, 0] ** 2 + X[:, 1] ** 2 > 3.0  # rare
    options = {name: value for name, value in OPTIONS.items() if name != "calibrated"}
    model = InfiniteCostSensitiveClassifierCV(cv=2, **options).fit(X, labels)
    tried = np.isfinite(model.cv_results_["losses"]).any(axis=(1, 2))
    assert 1 <= tried.sum() <= _race.FINALISTS < tried.size  # those that lost the heat do not race with all rows
    assert np.mean(model.predict(X) == labels) > 0.9


# --------------------------------------------------------------------------------------------------------- given folds
@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ([(np.arange(100), np.arange(100, 300))], "cv holds the position 299, but X has 240 rows"),
        (GroupKFold(3), r"cv=list\(splitter.split\(X, y, groups\)\)"),
    ],
)
def test_folds_that_do_not_fit_are_refused(cv: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        InfiniteQuantileRegressorCV(cv=cv, **OPTIONS).fit(*rows())


@pytest.mark.slow
def test_intervals_of_a_line_with_next_to_no_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, size=(530, 1))
    y = 3.0 * x[:, 0] + 7.0 + 1e-3 * rng.normal(size=530)
    model = InfiniteQuantileRegressorCV(random_state=0).fit(x[:30], y[:30])
    low, high = model.predict_interval(x[30:], 0.9).T
    assert 0.75 < np.mean((low <= y[30:]) & (y[30:] <= high)) <= 1.0
    assert np.mean(high - low) < 2.0 * 3.29e-3
