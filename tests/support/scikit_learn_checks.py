"""The checks of scikit-learn, without one that an old version gets wrong."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn
from sklearn.base import is_classifier

LABELS_FOLLOW_THE_FIRST_ROW = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
"""scikit-learn 1.6 names two classes by the label of the first row, then compares fits with different first rows."""


def run_check(estimator: Any, check: Any) -> None:
    """Call a check of ``parametrize_with_checks``."""
    about_weights = check.func.__name__.startswith("check_sample_weight_equivalence")
    if LABELS_FOLLOW_THE_FIRST_ROW and about_weights and is_classifier(estimator):
        pytest.skip("scikit-learn 1.6 swaps the labels of one of the two fits that it compares")
    check(estimator)
