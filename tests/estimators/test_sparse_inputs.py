"""A sparse X is the same X: every estimator takes it in fit and in every question, a few rows dense at a time."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import get_tags

from infinitask import (
    IndependentCostSensitiveClassifier,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    InfiniteSVR,
    JointQuantileRegressor,
    QOneClassSVM,
    fit_path,
    score_path,
)
from infinitask._base.arrays import IN_MEMORY, row_blocks
from infinitask.bounds import bound_of
from infinitask.estimators import _base as base
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
    OptunaSearch,
)
from tests.support.estimator_cases import ESTIMATORS, Case

KINDS = [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array]


def sample(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which two in three entries are 0."""
    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(n, 6)) < 1 / 3, rng.normal(size=(n, 6)), 0.0)
    return X, X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=n)


X, Y = sample()
LABELS = (np.median(Y) < Y).astype(int)


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_a_sparse_x_gives_the_same_answers(cls: type[Any], kind: Any) -> None:
    case = Case(cls)
    dense, thin = case.fit(X, Y), case.fit(kind(X), Y)
    assert get_tags(thin).input_tags.sparse
    np.testing.assert_array_equal(case.values(thin, kind(X)), case.values(dense, X))


def in_blocks_of_seven_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(base, "row_blocks", partial(row_blocks, entries=6 * 7))


@pytest.mark.parametrize(
    ("model", "y", "methods"),
    [
        (
            InfiniteQuantileRegressor(n_nodes=6, noncrossing="rearrange"),
            Y,
            ("predict", "predict_interval", "predict_distribution", "score", "predict_cdf", "conformalize"),
        ),
        (JointQuantileRegressor(), Y, ("predict", "score")),
        (
            InfiniteCostSensitiveClassifier(n_nodes=6),
            LABELS,
            ("predict", "decision_function", "predict_proba", "score", "roc_curve", "cost_curve", "choose"),
        ),
        (IndependentCostSensitiveClassifier(), LABELS, ("predict", "decision_function", "predict_proba")),
        (InfiniteOneClassSVM(n_nodes=6), None, ("predict", "decision_function", "score_samples", "mass_volume_area")),
        (InfiniteOneClassSVM(n_nodes=6, nested=True), None, ("predict", "decision_function", "score_samples")),
        (QOneClassSVM(), None, ("predict", "decision_function", "score_samples")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_question_takes_a_sparse_x(
    model: Any, y: Any, methods: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(rows: Any, method: str) -> Any:
        if method == "conformalize":
            return model.conformalize(rows, y).predict_interval(rows, [0.5, 0.9])
        if method == "predict_distribution":
            return model.predict_distribution(rows).values
        if method == "choose":
            return model.choose_theta(rows, y, max_fpr=0.5)
        if method == "mass_volume_area":
            return model.mass_volume_area(rows, n_samples=100, random_state=0)
        if method in ("roc_curve", "cost_curve"):
            return getattr(getattr(model, method)(rows, y), "fpr" if method == "roc_curve" else "cost")
        return getattr(model, method)(rows, y) if method in ("score", "predict_cdf") else getattr(model, method)(rows)

    model.fit(X, y)
    for method in methods:
        expected = ask(X, method)
        with monkeypatch.context() as patch:
            in_blocks_of_seven_rows(patch)
            np.testing.assert_allclose(ask(sparse.csr_array(X), method), expected, rtol=1e-12, atol=1e-12)


def test_each_row_may_have_its_own_trade_off(monkeypatch: pytest.MonkeyPatch) -> None:
    model = InfiniteCostSensitiveClassifier(n_nodes=6).fit(X, LABELS)
    theta = np.linspace(-0.9, 0.9, len(X))
    expected = model.decision_function(X, theta, per_sample=True)
    in_blocks_of_seven_rows(monkeypatch)
    thin = model.decision_function(sparse.csr_array(X), theta, per_sample=True)
    np.testing.assert_allclose(thin, expected, rtol=1e-12, atol=1e-12)


def test_a_prediction_is_never_dense_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    # 200 000 rows of 10 000 columns would be 16 GB
    n, d = 200_000, 10_000
    columns = np.arange(40) % 5
    few = sparse.csr_array((np.ones(40), (np.arange(40), columns)), shape=(40, d))
    model = InfiniteSVR(n_nodes=4).fit(few, columns.astype(float))
    rows = np.arange(0, n, 1000)
    many = sparse.csr_array((np.ones(rows.size), (rows, rows // 1000 % 5)), shape=(n, d))
    sizes = []
    dense = sparse.csr_array.toarray
    monkeypatch.setattr(sparse.csr_array, "toarray", lambda self: sizes.append(self.shape) or dense(self))
    values = model._values(many[:5000], 0.1, "epsilon")
    assert len(sizes) > 1
    assert max(a * b for a, b in sizes) <= IN_MEMORY
    np.testing.assert_allclose(values[:5000:1000], model.predict(few[:5].toarray(), 0.1), rtol=1e-9)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e200])
def test_wrong_entries_of_a_sparse_x_are_refused(wrong: float) -> None:
    hole = X.copy()
    hole[0, 0] = wrong
    with pytest.raises(ValueError, match="X"):
        InfiniteSVR(n_nodes=4).fit(sparse.csr_array(hole), Y)
    model = InfiniteSVR(n_nodes=4).fit(X, Y)
    with pytest.raises(ValueError, match="X"):
        model.predict(sparse.csr_array(hole))
    with pytest.raises(ValueError, match="X has 5 features"):
        model.predict(sparse.csr_array(X[:, :5]))


def test_a_sparse_gram_matrix_is_a_gram_matrix() -> None:
    gram = X @ X.T
    weight = np.arange(30) % 3
    dense = InfiniteSVR(kernel="precomputed", n_nodes=4).fit(gram, Y, sample_weight=weight)
    thin = InfiniteSVR(kernel="precomputed", n_nodes=4).fit(sparse.csr_matrix(gram), Y, sample_weight=weight)
    np.testing.assert_array_equal(thin.predict(sparse.csr_matrix(gram)), dense.predict(gram))


@pytest.mark.quick(every=4)
@pytest.mark.parametrize(
    ("model", "y"),
    [
        (InfiniteQuantileRegressorCV(kernels=["rbf"], alphas=[0.1, 0.01], cv=2, n_nodes=6), Y),
        (InfiniteCostSensitiveClassifierCV(kernels=["rbf"], alphas=[0.1, 0.01], cv=2, n_nodes=6), LABELS),
        (InfiniteOneClassSVMCV(kernels=["rbf"], cv=2, n_nodes=6, exact_fractions=False, random_state=0), None),
        (OptunaSearch(InfiniteQuantileRegressor(n_nodes=6), n_trials=2, cv=2, random_state=0), Y),
    ],
    ids=lambda value: type(value).__name__,
)
def test_self_tuned_models_and_searches_take_a_sparse_x(model: Any, y: Any) -> None:
    expected = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(sparse.csr_array(X), y).predict(sparse.csr_array(X)), expected)
    assert get_tags(model).input_tags.sparse


def test_paths_and_bounds_take_a_sparse_x() -> None:
    model, thin = InfiniteQuantileRegressor(n_nodes=6, alpha_bias=1e-3), sparse.csr_matrix(X)
    np.testing.assert_array_equal(
        score_path(model, thin, Y, alphas=[0.1, 0.01], cv=2), score_path(model, X, Y, alphas=[0.1, 0.01], cv=2)
    )
    fitted = fit_path(model, thin, Y, alphas=[0.1])[0]
    assert bound_of(fitted, thin, Y).risk == bound_of(fitted, X, Y).risk
