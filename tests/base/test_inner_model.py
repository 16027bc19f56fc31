"""The model inside wrappers of this library and of scikit-learn."""

import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, RandomForestRegressor
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from infinitask import (
    InfiniteQuantileRegressor,
    InfiniteQuantileRegressorCV,
    TaskSearch,
    TransformedTarget,
    make_pipeline,
)
from infinitask._base.inner_model import inner_model, steps_and_model, takes
from infinitask.datasets import make_sine


def quick() -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=4, tol=1e-2)


def search(model):
    return GridSearchCV(model, {}, cv=2)


WRAPPERS = {
    "pipeline": lambda model: make_pipeline(StandardScaler(), model),
    "scikit-learn pipeline": lambda model: Pipeline([("scale", StandardScaler()), ("model", model)]),
    "search": search,
    "task search": lambda model: TaskSearch(search(model)),
    "transformed target": lambda model: TransformedTarget(model, func=lambda y: 2 * y, inverse_func=lambda z: z / 2),
    "scikit-learn target": lambda model: TransformedTargetRegressor(model),
    "all": lambda model: TaskSearch(search(make_pipeline(MinMaxScaler(), TransformedTargetRegressor(search(model))))),
}


@pytest.mark.parametrize("wrap", WRAPPERS.values(), ids=WRAPPERS)
def test_the_model_inside_is_found_before_and_after_the_fit(wrap):
    model = quick()
    wrapped = wrap(model)
    assert inner_model(wrapped) is model
    found = inner_model(wrapped.fit(*make_sine(30, random_state=0)))
    assert type(found) is InfiniteQuantileRegressor
    assert hasattr(found, "field_")


def test_a_self_tuned_model_holds_its_choice():
    model = InfiniteQuantileRegressorCV(kernels=["rbf"], random_state=0)
    assert inner_model(model) is model
    pipeline = make_pipeline(StandardScaler(), model).fit(*make_sine(40, random_state=0))
    assert inner_model(pipeline) is pipeline[-1].best_estimator_


@pytest.mark.parametrize("model", [quick(), QuantileRegressor(), InfiniteQuantileRegressor])
def test_a_model_that_holds_no_other_is_returned(model):
    assert inner_model(model) is model


@pytest.mark.parametrize("ensemble", [RandomForestRegressor(2), BaggingRegressor(n_estimators=2)])
def test_ensembles_are_not_opened(ensemble):
    ensemble.fit(*make_sine(20, random_state=0))
    assert hasattr(ensemble, "estimator_")
    assert inner_model(ensemble) is ensemble


def test_the_steps_of_nested_pipelines_keep_their_order():
    first, second = StandardScaler(), MinMaxScaler()
    model = make_pipeline(first, "passthrough", search(make_pipeline(second, quick())))
    steps, found = steps_and_model(model)
    assert [step for _, step in steps] == [first, second]
    assert isinstance(found, InfiniteQuantileRegressor)


def test_the_outermost_model_that_takes_a_task():
    pipeline = make_pipeline(StandardScaler(), quick())
    assert inner_model(search(pipeline), stop=lambda model: takes(model, "quantiles")) is pipeline
    assert not takes(search(pipeline), "quantiles")
    assert not takes(StandardScaler(), "quantiles")
