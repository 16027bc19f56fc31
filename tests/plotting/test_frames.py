"""Displays take tables of any library, and models of a transformed target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer

from infinitask import InfiniteQuantileRegressor, TransformedTarget, make_pipeline
from infinitask.plotting import QuantileFanDisplay
from infinitask.plotting._asked import ANY, CURVES, Features, asked, columns_of

pd = pytest.importorskip("pandas")

TABLE = pd.DataFrame({"size": [1.0, 2.0, 4.0, 3.0], "rooms": [1, 2, None, 4], "town": ["a", "b", "a", "a"]})
KINDS: dict[str, Any] = {
    "pandas": lambda: TABLE,
    "nullable": lambda: TABLE.astype({"rooms": "Int64", "size": "Float64"}),
    "polars": lambda: pytest.importorskip("polars").from_pandas(TABLE),
    "Arrow": lambda: pytest.importorskip("pyarrow").Table.from_pandas(TABLE),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_columns_and_slices_are_those_of_any_frame(kind: Any) -> None:
    frame = kind()
    size, rooms, town = columns_of(frame)
    np.testing.assert_array_equal(size, [1.0, 2.0, 4.0, 3.0])
    np.testing.assert_array_equal(rooms, [1.0, 2.0, np.nan, 4.0])
    assert town.tolist() == ["a", "b", "a", "a"]
    x, rows, _ = Features(frame, ("size", "rooms", "town")).slice("size", None, 3)
    np.testing.assert_array_equal(x, [1.0, 2.5, 4.0])
    made = columns_of(rows)
    np.testing.assert_array_equal(made[1], [2.0, 2.0, 2.0])  # the median of those that are known
    assert made[2].tolist() == ["a", "a", "a"]


def test_what_is_about_the_fit_is_asked_of_the_model_inside() -> None:
    X = np.linspace(0.0, 1.0, 30)[:, None]
    inner = InfiniteQuantileRegressor(n_nodes=5)
    for model in (TransformedTarget(inner), make_pipeline(TransformedTarget(inner))):
        model.fit(X, np.exp(X[:, 0]))
        assert asked(model, ANY, "A display").model.dual_gap_ == model.dual_gap_
        whole = asked(model, CURVES, "A display")
        assert np.all(whole.model.predict(whole.inputs(X), [0.1, 0.9]) > 0.5)


def test_columns_in_another_order_than_those_of_the_fit_keep_their_names() -> None:
    X = pd.DataFrame({"small": np.linspace(0.0, 1.0, 30), "large": np.linspace(500.0, 600.0, 30)})
    model = make_pipeline(make_column_transformer(("passthrough", ["large", "small"])), InfiniteQuantileRegressor())
    model.fit(X, X["large"])
    display = QuantileFanDisplay.from_estimator(model, X[["large", "small"]], feature="large", grid=5)
    assert display.x_name == "large"
    np.testing.assert_array_equal(display.x, np.linspace(500.0, 600.0, 5))
