"""What a pair of numbers in the space of a search stands for."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.ensemble import RandomForestRegressor

from infinitask import InfiniteQuantileRegressor
from infinitask.datasets import make_sine
from infinitask.tuning import OptunaSearch

X, Y = make_sine(20, random_state=0)


@pytest.mark.quick("gp")
@pytest.mark.parametrize("sampler", ["tpe", "random", "gp"])
def test_a_pair_of_integers_gives_integers(sampler: str) -> None:
    model = InfiniteQuantileRegressor(n_nodes=4)
    search = OptunaSearch(model, {"n_nodes": (2, 8)}, n_trials=4, cv=2, sampler=sampler, random_state=0).fit(X, Y)
    tried = [params["n_nodes"] for params in search.cv_results_["params"]]
    assert len(tried) == 4  # none of them failed
    assert all(type(n) is int and 2 <= n <= 8 for n in tried)


@pytest.mark.parametrize(("name", "pair"), [("alpha", (1, 10)), ("gamma", (1, 100)), ("alpha_bias", (1, 10))])
def test_a_parameter_that_is_a_real_number_stays_one(name: str, pair: Any) -> None:
    model = InfiniteQuantileRegressor(n_nodes=4)
    search = OptunaSearch(model, {name: pair}, n_trials=3, cv=2, random_state=0).fit(X, Y)
    assert any(params[name] != int(params[name]) for params in search.cv_results_["params"])


def test_a_pair_of_integers_for_another_estimator() -> None:
    forest = RandomForestRegressor(n_estimators=2, random_state=0)
    space = {"max_depth": (1, 4), "min_impurity_decrease": (1, 2)}
    search = OptunaSearch(forest, space, n_trials=2, cv=2, random_state=0).fit(X, Y)
    assert all(type(params["max_depth"]) is int for params in search.cv_results_["params"])
    assert all(type(params["min_impurity_decrease"]) is float for params in search.cv_results_["params"])
