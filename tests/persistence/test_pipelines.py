"""Whole pipelines come back: scalers, encoders, imputers, searches, and tables with skrub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor, load, save
from infinitask.kernels import RBF, Linear, Sum
from infinitask.metrics import scorer
from infinitask.tuning import InfiniteQuantileRegressorCV
from tests.support.saved import again, same

N = 60
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(N, 2)), rng.normal(size=N)


def quick(**options: Any) -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=6, tol=1e-2, random_state=0, **options)


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        RobustScaler(),
        MinMaxScaler(),
        PowerTransformer(),
        QuantileTransformer(n_quantiles=10),
        SplineTransformer(),
        PolynomialFeatures(),
        PCA(random_state=0),
        TruncatedSVD(1, random_state=0),
        SimpleImputer(add_indicator=True),
        KNNImputer(),
        KBinsDiscretizer(encode="ordinal", strategy="uniform"),
        VarianceThreshold(),
        SelectKBest(f_regression, k=1),
        FunctionTransformer(np.tanh),
        FunctionTransformer(),
        RBFSampler(random_state=0),
        FeatureUnion([("a", StandardScaler()), ("b", PCA(1))]),
        "passthrough",
    ],
    ids=lambda step: step if isinstance(step, str) else type(step).__name__,
)
def test_every_step_of_a_pipeline(step: Any, tmp_path: Path) -> None:
    model = Pipeline([("step", step), ("model", quick())]).fit(X, Y)
    loaded = again(model, tmp_path)
    assert same(loaded.predict(X, quantiles=[0.1, 0.9]), model.predict(X, quantiles=[0.1, 0.9]))
    assert same(loaded[:-1].transform(X), model[:-1].transform(X))
    assert repr(loaded) == repr(model)
    assert same(loaded.fit(X, Y).predict(X), model.fit(X, Y).predict(X))


def frame() -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "area": rng.normal(size=N),
            "age": np.where(rng.uniform(size=N) < 0.2, np.nan, np.arange(N)),
            "kind": rng.choice(["house", "flat", "boat"], N),
            "street": [f"{k} Long Street, town {k % 7}" for k in range(N)],
            "built": pandas.date_range("1990-01-01", periods=N, freq="37D"),
            "seen": pandas.date_range("2020-01-01", periods=N, freq="7h", tz="Europe/Berlin"),
            "sold": pandas.Categorical(rng.choice(["yes", "no"], N)),
            "new": rng.uniform(size=N) < 0.5,
            "text": [f"{k}.5" for k in range(N)],
            "wait": pandas.to_timedelta(np.arange(N), unit="D"),
            "floors": pandas.array(rng.integers(0, 9, N), dtype="Int64"),
        }
    )


def test_columns_of_all_kinds(tmp_path: Path) -> None:
    table = frame()
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), make_column_selector(dtype_include="f8")),
            ("kinds", OneHotEncoder(handle_unknown="ignore"), ["kind", "sold"]),
            ("order", OrdinalEncoder(), ["sold"]),
            ("target", TargetEncoder(), ["kind"]),
            ("words", TfidfVectorizer(), "street"),
            ("same", "passthrough", ["new"]),
        ]
    )
    model = make_pipeline(columns, quick()).fit(table, Y)
    loaded = again(model, tmp_path)
    assert same(loaded.predict(table), model.predict(table))
    assert same(loaded[0].get_feature_names_out(), model[0].get_feature_names_out())
    assert loaded[0].named_transformers_["kinds"].categories_[0].dtype == object


def test_searches_and_changed_targets(tmp_path: Path) -> None:
    error = make_scorer(mean_absolute_error, greater_is_better=False)
    folds = KFold(3, shuffle=True, random_state=0)
    space = {"alpha": [1e-3, 1e-1], "kernel": [RBF(gamma=1.0), Sum(RBF(), Linear())]}
    for model in (
        GridSearchCV(quick(), space, cv=folds),
        RandomizedSearchCV(quick(), space, n_iter=2, cv=folds, scoring=scorer("crps"), random_state=0),
        GridSearchCV(quick(), {"alpha": [1e-2]}, cv=2, scoring=error),
        TransformedTargetRegressor(quick(), func=np.sinh, inverse_func=np.arcsinh),
    ):
        model.fit(X, Y)
        loaded = again(model, tmp_path)
        assert same(loaded.predict(X), model.predict(X))
        assert same(loaded.score(X, Y), model.score(X, Y))
        if hasattr(model, "cv_results_"):
            assert repr(loaded.cv_results_) == repr(model.cv_results_)


def test_a_pipeline_forgets_where_its_cache_is(tmp_path: Path) -> None:
    model = Pipeline([("model", quick())], memory=str(tmp_path / "cache"))
    assert again(model, tmp_path).memory is None


def test_tables_with_skrub(tmp_path: Path) -> None:
    skrub = pytest.importorskip("skrub")
    table = frame()
    vectorizer = skrub.TableVectorizer(
        cardinality_threshold=10, high_cardinality=skrub.StringEncoder(n_components=4, random_state=0)
    )
    model = make_pipeline(vectorizer, SimpleImputer(), StandardScaler(), quick()).fit(table, Y)
    loaded = again(model, tmp_path)
    assert same(loaded.predict(table, quantiles=[0.2, 0.8]), model.predict(table, quantiles=[0.2, 0.8]))
    assert same(loaded[0].transform(table).to_numpy(), model[0].transform(table).to_numpy())
    assert list(loaded[0].get_feature_names_out()) == list(model[0].get_feature_names_out())
    assert same(loaded.fit(table, Y).predict(table), model.predict(table))


@pytest.mark.slow
def test_tables_with_other_parts_of_skrub(tmp_path: Path) -> None:
    skrub = pytest.importorskip("skrub")
    table, dates = frame(), skrub.DatetimeEncoder
    for part in (
        skrub.TableVectorizer(datetime=dates(periodic_encoding="spline"), numeric=skrub.SquashingScaler()),
        skrub.TableVectorizer(datetime=dates(periodic_encoding="circular")),
        skrub.TableVectorizer(high_cardinality=skrub.MinHashEncoder(n_components=4), cardinality_threshold=10),
        skrub.TableVectorizer(specific_transformers=[(StandardScaler(), ["area"])]),
        skrub.Cleaner(),
    ):
        part.fit(table, Y)
        found, expected = again(part, tmp_path).transform(table), part.transform(table)
        assert found.equals(expected)
        assert list(found.dtypes) == list(expected.dtypes)


def test_a_tuned_model_at_the_end_of_a_pipeline(tmp_path: Path) -> None:
    tuned = InfiniteQuantileRegressorCV(kernels=["rbf"], n_nodes=6, tol=1e-2, random_state=0)
    model = make_pipeline(StandardScaler(), tuned).fit(X, Y)
    loaded = again(model, tmp_path)
    assert same(loaded.predict(X, quantiles=[0.1, 0.9]), model.predict(X, quantiles=[0.1, 0.9]))
    assert same(loaded[-1].predict_interval(X), model[-1].predict_interval(X))


def test_names_of_columns_and_labels_are_kept(tmp_path: Path) -> None:
    table = frame()[["area", "new"]].astype(float)
    labels = np.where(Y > 0.0, "up", "down")
    model = InfiniteCostSensitiveClassifier(n_nodes=6, tol=1e-2).fit(table, labels)
    loaded = again(model, tmp_path)
    assert list(loaded.feature_names_in_) == ["area", "new"]
    assert same(loaded.classes_, model.classes_)
    assert same(loaded.predict(table), model.predict(table))


def test_another_version_of_scikit_learn_warns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.exceptions import InconsistentVersionWarning

    model = StandardScaler().fit(X)
    with monkeypatch.context() as patched:
        patched.setattr("sklearn.base.__version__", "1.0")
        save(model, tmp_path / "m")
    with pytest.warns(InconsistentVersionWarning, match=r"StandardScaler from version 1\.0"):
        load(tmp_path / "m")
