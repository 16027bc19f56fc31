"""Pipelines: what a page enters is the table, and what its model is given is what the pipeline makes of it."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.report import explore
from infinitask.report._explore import Page
from infinitask.tuning import InfiniteQuantileRegressorCV
from tests.report import evaluator, mixed
from tests.support.each import each

pd = pytest.importorskip("pandas")

THETA = np.array([0.07, 0.5, 0.9])
QUICK: dict[str, Any] = {"n_nodes": 6, "alpha": 1e-2}


def written(pipeline: Any, X: Any, y: Any = None, **options: Any) -> dict[str, Any]:
    """The data of a page, after a way through text."""
    payload: dict[str, Any] = json.loads(json.dumps(explore(pipeline, X, y, **options).payload))
    return payload


def model() -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(**QUICK)


def encoded(pipeline: Any, X: Any) -> np.ndarray:
    """What the last step is given."""
    found = Pipeline(pipeline.steps[:-1]).transform(X)
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=float)


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.all(np.abs(found - expected) <= 1e-12 * np.maximum(1.0, np.abs(expected))))


def named(payload: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {column["name"]: column for column in payload["columns"]}


@pytest.fixture(scope="module")
def sold() -> tuple[Pipeline, Any, np.ndarray, dict[str, Any]]:
    """A pipeline of a mixed table, with the rows of its page."""
    X, y = mixed.table()
    pipeline = mixed.fitted(model(), X[:100], y[:100])
    return pipeline, X, y, written(pipeline, X, y)


# ------------------------------------------------------------------------------------------------- mixed tables
def test_the_columns_of_a_page_are_those_of_the_table(sold: Any) -> None:
    _, X, _, payload = sold
    columns = named(payload)
    assert list(columns) == list(X.columns)
    assert {name: column["kind"] for name, column in columns.items()} == {
        "area": "number",
        "rooms": "number",
        mixed.EVIL: "choice",
        "lift": "choice",
        "sold": "number",
        "street": "choice",
    }
    assert columns["area"]["high"] == X["area"].max()
    assert columns["rooms"]["whole"]
    assert columns["sold"]["date"]
    assert np.datetime64(int(columns["sold"]["low"]), "D") == X["sold"].min()
    assert columns["lift"]["choices"] == ["False", "True"]
    assert columns["lift"]["missing"] == -1
    assert columns[mixed.EVIL]["missing"] == 3
    assert columns[mixed.EVIL]["counts"] == X[mixed.EVIL].value_counts(dropna=False).sort_index().tolist()


def test_rows_keep_their_values_and_are_encoded_as_the_pipeline_does(sold: Any) -> None:
    pipeline, X, _, payload = sold
    cells = evaluator.unpack(payload["rows"]["X"])
    assert np.array_equal(cells[:, 0], X["area"].to_numpy(), equal_nan=True)
    assert np.isnan(cells[:, 0]).sum() == 20
    assert np.isnan(cells[:, 4]).sum() == X["sold"].isna().sum() > 0
    again = mixed.as_frame(payload, cells, X)
    assert again["street"].tolist() == X["street"].tolist()
    assert again["sold"].equals(X["sold"])
    assert same(evaluator.encoded(payload, cells), encoded(pipeline, X))


def test_what_is_entered_is_encoded_as_the_pipeline_does(sold: Any) -> None:
    pipeline, X, _, payload = sold
    rng = np.random.default_rng(1)
    entered = []
    for column in payload["columns"]:
        low, high = (column["low"], column["high"]) if column["kind"] == "number" else (0, column["listed"] - 1)
        if column["kind"] == "choice" or column["date"]:
            values = rng.integers(low, high + 1, 400).astype(float)
        else:
            values = rng.uniform(low - (high - low), 2.0 * high, 400)  # beyond the table too
        if column["encoded"].get("missing"):
            values[rng.uniform(size=400) < 0.2] = np.nan
        entered.append(values)
    cells = np.column_stack(entered)
    table = mixed.as_frame(payload, cells, X)
    found = evaluator.encoded(payload, cells)
    assert same(found, encoded(pipeline, table))
    answers = evaluator.quantiles(payload["model"], found, THETA)
    expected = pipeline.predict(table, quantiles=THETA)
    assert np.all(np.abs(answers - expected) <= 1e-6 * np.maximum(1.0, np.abs(expected)))


def test_relevance_is_that_of_all_that_a_column_is_encoded_as(sold: Any) -> None:
    pipeline, _, _, payload = sold
    effects = pipeline[-1].relevance_.effect
    taken = [column["encoded"]["columns"] for column in payload["columns"]]
    assert sorted(c for columns in taken for c in columns) == list(range(len(effects)))
    assert np.allclose(payload["relevance"], [np.linalg.norm(effects[c]) for c in taken], rtol=1e-12)


def test_reliability_and_scores_of_a_page_are_those_of_the_pipeline(sold: Any) -> None:
    pipeline, X, y, payload = sold
    found = payload["reliability"]
    levels, below = evaluator.unpack(found["levels"]), evaluator.unpack(found["below"])
    assert below[np.argmin(np.abs(levels - 0.3))] == np.mean(y <= pipeline.predict(X, quantiles=0.3))
    levels_of = mixed.fitted(InfiniteOneClassSVM(n_nodes=6, alpha=1e-3), X)
    p = evaluator.unpack(written(levels_of, X)["rows"]["p"])
    assert np.array_equal(p, levels_of.score_samples(X))


def test_names_and_values_stay_text(sold: Any) -> None:
    text = Page(sold[-1]).html
    assert text.lower().count("<script") == 2  # the data and the program
    assert "\\u003cscript\\u003ealert(1)" in text


def test_a_missing_value_that_the_fit_knew_can_be_chosen(sold: Any) -> None:
    pipeline, X, y, _ = sold
    whole = X.dropna()
    columns = named(written(pipeline, whole, y[X.notna().all(axis=1)]))
    assert columns[mixed.EVIL]["missing"] == 3
    assert columns[mixed.EVIL]["counts"][3] == 0
    assert columns["area"]["encoded"]["missing"] is not None
    assert columns["sold"]["encoded"]["missing"] is not None
    # rooms were always known, and so were streets
    assert columns["rooms"]["encoded"]["missing"] is None
    assert columns["street"]["missing"] == -1


def test_of_many_texts_the_most_frequent_can_be_chosen_and_rows_keep_theirs() -> None:
    X, y = mixed.table(1_500, names=900)
    X.loc[:200, "street"] = "street 7"
    pipeline = mixed.fitted(InfiniteQuantileRegressor(rank=50, features="nystroem", random_state=0, **QUICK), X, y)
    payload = written(pipeline, X, y)
    street = named(payload)["street"]
    different = X["street"].nunique()
    assert street["listed"] == 300 < different == street["distinct"]
    assert street["choices"][street["typical"]] == "street 7"
    assert min(street["counts"][:300]) >= max(street["counts"][300:])
    cells = evaluator.unpack(payload["rows"]["X"])
    assert mixed.as_frame(payload, cells, X)["street"].tolist() == X["street"].tolist()
    assert same(evaluator.encoded(payload, cells), encoded(pipeline, X))


def test_columns_of_rare_types() -> None:
    rng = np.random.default_rng(0)
    n = 60
    odd = pd.DataFrame(
        {
            "number or not": pd.array([None if k % 9 == 0 else k % 25 for k in range(n)], dtype="Int64"),
            "true or not": np.array([True, False, None], dtype=object)[rng.integers(0, 3, n)],
            "written": [f"{value:.1f}" for value in rng.normal(size=n)],
            "elsewhere": pd.date_range("2020-01-01", periods=n, freq="7h", tz="Europe/Berlin"),
            "lasted": pd.to_timedelta(rng.integers(0, 9, n), "h"),
            "empty": [None] * n,
            "huge": 1e12 * rng.normal(size=n),
        }
    )
    y = odd["huge"].to_numpy() / 1e12 + rng.normal(size=n)
    pipeline = mixed.fitted(model(), odd, y)
    payload = written(pipeline, odd, y)
    kinds = {name: column["kind"] for name, column in named(payload).items()}
    assert kinds.pop("number or not") == kinds.pop("huge") == "number"
    assert {"true or not", "written", "elsewhere"} <= set(kinds)
    assert set(kinds.values()) == {"choice"}
    assert same(evaluator.encoded(payload, evaluator.unpack(payload["rows"]["X"])), encoded(pipeline, odd))


@pytest.mark.slow
def test_a_page_of_two_thousand_rows_of_twelve_mixed_columns_is_small() -> None:
    left, y = mixed.table(2_000, names=800)
    right, _ = mixed.table(2_000, names=30)
    X = pd.concat([left, right.iloc[::-1].reset_index(drop=True).add_prefix("other ")], axis=1)
    few: dict[str, Any] = {"features": "nystroem", "rank": 400, "random_state": 0, "tol": 1e-2}
    page = explore(mixed.fitted(InfiniteQuantileRegressor(**few, **QUICK), X, y), X, y)
    assert page.payload["rows"]["X"]["shape"] == [2_000, 12]
    assert len(page.html.encode()) < 6_000_000


@pytest.mark.slow
def test_moments_are_chosen_from_those_seen() -> None:
    X, y = mixed.table(600)
    X["sold"] += pd.to_timedelta(np.arange(600), "min")
    pipeline = mixed.fitted(InfiniteQuantileRegressor(rank=50, features="nystroem", random_state=0, **QUICK), X, y)
    payload = written(pipeline, X, y)
    sold = named(payload)["sold"]
    assert sold["kind"] == "choice"
    assert sold["listed"] == 300 < sold["distinct"]
    assert sold["choices"][0].startswith("2019-11")
    assert same(evaluator.encoded(payload, evaluator.unpack(payload["rows"]["X"])), encoded(pipeline, X))


# -------------------------------------------------------------------------------------------- plain scikit-learn
def numbers(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * np.array([1.0, 40.0, 0.01]) + np.array([0.0, 2_000.0, 0.5])
    return X, X[:, 0] + 0.01 * X[:, 1] + rng.normal(size=n)


@each(
    "steps",
    [
        [StandardScaler()],
        [MinMaxScaler()],
        [RobustScaler(), StandardScaler()],
        [SimpleImputer(add_indicator=True), StandardScaler()],
        ["passthrough", StandardScaler()],
        [ColumnTransformer([("one", StandardScaler(), [2, 0])], remainder="passthrough")],
    ],
    ids=lambda steps: " ".join(type(step).__name__ for step in steps),
)
def test_scaled_arrays(steps: list[Any]) -> None:
    X, y = numbers()
    if isinstance(steps[0], SimpleImputer):
        X[::7, 1] = np.nan
    pipeline = make_pipeline(*steps, model()).fit(X, y)
    payload = written(pipeline, X, y, names=["a", "b", "c"])
    assert list(named(payload)) == ["a", "b", "c"]
    cells = evaluator.unpack(payload["rows"]["X"])
    assert np.array_equal(cells, X, equal_nan=True)
    assert same(evaluator.encoded(payload, cells), encoded(pipeline, X))
    beyond = X + np.array([5.0, -300.0, 0.2])
    assert same(evaluator.encoded(payload, beyond), encoded(pipeline, beyond))
    if len(payload["relevance"]) == len(pipeline[-1].relevance_.effect) and steps[0] != "passthrough":
        order = [column["encoded"]["columns"][0] for column in payload["columns"]]
        assert np.allclose(payload["relevance"], pipeline[-1].relevance_.effect[order])


def test_lists_of_a_column_transformer() -> None:
    X, y = numbers()
    table = pd.DataFrame(
        {
            "size": pd.Categorical(
                np.array(["small", "large", "middle"])[np.arange(60) % 3], ["small", "middle", "large"]
            ),
            "a": X[:, 0],
            "grade": np.arange(60) % 4 + 1,
            "unused": X[:, 1],
            "mixed": np.array([1, "1", None], dtype=object)[np.arange(60) % 3],
        }
    )
    encoder = make_column_transformer(
        (OneHotEncoder(), ["size", "grade"]),  # sparse, and a grade between two is refused
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OrdinalEncoder()), ["size"]),
        (StandardScaler(), ["a"]),
    )
    pipeline = make_pipeline(encoder, model()).fit(table, y)
    table["later"] = y  # a column that the pipeline has not seen
    columns = named(payload := written(pipeline, table, y))
    assert list(columns) == ["size", "a", "grade"]  # the others change nothing
    assert columns["size"]["choices"] == ["small", "middle", "large"]
    assert len(columns["size"]["encoded"]["columns"]) == 4
    assert columns["grade"]["choices"] == ["1", "2", "3", "4"]
    assert same(evaluator.encoded(payload, evaluator.unpack(payload["rows"]["X"])), encoded(pipeline, table))


def test_an_array_of_text() -> None:
    X, y = numbers()
    cells = np.column_stack([X[:, 0].astype(object), np.array(["n", "s", None], dtype=object)[np.arange(60) % 3]])
    encoder = ColumnTransformer([("a", StandardScaler(), [0]), ("b", OneHotEncoder(sparse_output=False), [1])])
    pipeline = make_pipeline(encoder, model()).fit(cells, y)
    payload = written(pipeline, cells, y)
    assert [column["kind"] for column in payload["columns"]] == ["number", "choice"]
    assert payload["columns"][1]["choices"] == ["n", "s", ""]
    assert same(evaluator.encoded(payload, evaluator.unpack(payload["rows"]["X"])), encoded(pipeline, cells))


def test_a_pipeline_of_the_model_alone_is_the_model() -> None:
    X, y = numbers()
    pipeline = Pipeline([("model", model())]).fit(X, y)
    payload = explore(pipeline, X, y).payload
    assert payload["base"] is None
    assert payload == explore(pipeline[-1], X, y).payload


def test_a_subclass_may_take_other_arguments_and_the_model_may_tune_itself() -> None:
    class Scaled(Pipeline):
        def __init__(self, estimator: Any) -> None:
            self.estimator = estimator
            super().__init__([("scale", StandardScaler()), ("model", estimator)])

    X, y = numbers(40)
    pipeline = Scaled(InfiniteQuantileRegressorCV(kernels=["rbf"], random_state=0, n_nodes=6)).fit(X, y)
    payload = written(pipeline, X, y)
    found = evaluator.quantiles(payload["model"], evaluator.encoded(payload, X), THETA)
    assert np.allclose(found, pipeline.predict(X, quantiles=THETA), rtol=1e-6)


# ----------------------------------------------------------------------------------------- what cannot be followed
@each(
    ("step", "words"),
    [
        (PCA(2), "'pca0' depends on several columns of the table, 'x0' and 'x1' among them"),
        (PolynomialFeatures(2, interaction_only=True), "depends on several columns"),
        (QuantileTransformer(n_quantiles=50), "'x0' holds 400 different numbers"),
        (KBinsDiscretizer(4, quantile_method="averaged_inverted_cdf"), "a curve or into steps"),
        (KNNImputer(n_neighbors=2), "looks at several columns or rows at once"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_steps_that_cannot_be_followed_are_named(step: Any, words: str) -> None:
    X, y = numbers(400)
    if isinstance(step, KNNImputer):
        X[::9, 1] = np.nan
    pipeline = make_pipeline(step, InfiniteQuantileRegressor(rank=20, features="nystroem", random_state=0, **QUICK))
    pipeline.fit(X, y)
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        explore(pipeline, X, y)
    assert "Fit with" in str(error.value)


def test_the_way_out_that_is_named_works() -> None:
    X, y = numbers()
    pipeline = make_pipeline(PCA(2), model()).fit(X, y)
    assert explore(pipeline[-1], pipeline[:-1].transform(X), y).payload["base"] is None


def test_tables_that_cannot_be_taken_apart_are_named() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    X, y = numbers()
    pipeline = make_pipeline(StandardScaler(with_mean=False), model()).fit(X, y)
    with pytest.raises(TypeError, match="takes a pandas DataFrame or an array"):
        explore(pipeline, sparse.csr_array(X), y)
    table = pd.DataFrame({"a": ["x"] * 60, "b": ["z"] * 60})
    constant = make_pipeline(OneHotEncoder(sparse_output=False), InfiniteCostSensitiveClassifier(**QUICK, gamma=1.0))
    with pytest.raises(ValueError, match="there is nothing to move"):
        explore(constant.fit(table, y > 20.0), table)
    with pytest.raises(ValueError, match="2 names were given for 3 columns"):
        explore(pipeline, X, y, names=["a", "b"])
