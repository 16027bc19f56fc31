"""A search of Optuna around pipelines and tables, by the names of their parameters."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteQuantileRegressor, make_pipeline, tabular
from infinitask.datasets import make_sine
from infinitask.integrations import at_level
from infinitask.tuning import OptunaSearch

pytest.importorskip("optuna", reason="optuna is not installed: pip install infinitask[tune]")

X, Y = make_sine(45, random_state=0)


def test_a_search_around_a_pipeline_answers_every_level() -> None:
    pipeline = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=5, gamma=1.0))
    space = {"infinitequantileregressor__alpha": (1e-3, 10.0)}
    search = OptunaSearch(pipeline, space, n_trials=3, cv=2, random_state=0).fit(X, Y)
    best = search.best_params_["infinitequantileregressor__alpha"]
    assert search.best_estimator_.steps[-1][1].alpha == best
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    expected = search.best_estimator_.predict(X, quantiles=[0.1, 0.9])
    np.testing.assert_array_equal(search.predict(X, quantiles=[0.1, 0.9]), expected)
    view = at_level(search.best_estimator_, quantiles=0.9)
    np.testing.assert_allclose(view.predict(X), expected[:, 1], atol=1e-9)


@pytest.mark.slow
def test_a_search_around_a_table() -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("skrub")
    table = pd.DataFrame({"place": X[:, 0], "town": np.where(X[:, 0] > 0.5, "Aix", "Pau")})
    model = tabular(InfiniteQuantileRegressor(n_nodes=5))
    name = model.steps[-1][0]
    space = {f"{name}__alpha": (1e-3, 10.0), f"{name}__kernel": ["rbf", "laplacian"]}
    search = OptunaSearch(model, space, n_trials=3, cv=2, random_state=0).fit(table, Y)
    assert set(search.best_params_) == set(space)
    assert search.predict(table, quantiles=[0.1, 0.9]).shape == (45, 2)
