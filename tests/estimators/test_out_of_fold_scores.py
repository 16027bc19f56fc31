"""Rows of a table are judged by fits that have not seen them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteOneClassSVM, out_of_fold_scores

MODEL = InfiniteOneClassSVM(n_nodes=12, tol=1e-3)


@pytest.mark.slow
def test_planted_rows_are_found_where_the_fit_itself_hides_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    X[[10, 20, 30], [0, 1, 2]] = [10.0, 20.0, 50.0]
    p = out_of_fold_scores(MODEL, X, random_state=0)
    assert set(np.argsort(p)[:3]) == {10, 20, 30}
    assert np.all(p[[10, 20, 30]] < 0.02)
    assert np.all(np.abs([np.mean(p <= a) - a for a in (0.05, 0.1)]) < 0.04)
    seen = InfiniteOneClassSVM(n_nodes=12, tol=1e-3).fit(X).score_samples(X)
    assert np.min(seen[[10, 20, 30]]) > 0.04  # the hard case: their own fit takes them in


def test_each_score_is_that_of_a_fit_to_the_other_folds() -> None:
    X = np.random.default_rng(1).normal(size=(90, 2))
    pipeline = make_pipeline(StandardScaler(), MODEL)
    p = out_of_fold_scores(pipeline, X, cv=KFold(3))
    assert np.array_equal(p[:30], pipeline.fit(X[30:]).score_samples(X[:30]))


def test_any_detector_with_scores_may_be_asked() -> None:
    X = np.random.default_rng(2).normal(size=(60, 2))
    assert np.all(np.isfinite(out_of_fold_scores(IsolationForest(n_estimators=5, random_state=0), X, random_state=0)))


def test_folds_must_leave_each_row_out_once() -> None:
    X = np.random.default_rng(3).normal(size=(40, 2))
    with pytest.raises(ValueError, match="exactly once"):
        out_of_fold_scores(MODEL, X, cv=ShuffleSplit(3, random_state=0))
