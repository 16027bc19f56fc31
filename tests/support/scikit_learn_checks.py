"""The checks of scikit-learn, without one that an old version gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import SkipTest

import pytest
import sklearn
from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from tests.support.each import run_each

LABELS_FOLLOW_THE_FIRST_ROW = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
"""scikit-learn 1.6 names two classes by the label of the first row, then compares fits with different first rows."""


def run_checks(
    estimator: Any, expected_failures: Mapping[str, str] | None = None, prepare: Callable[[Any, str], Any] | None = None
) -> None:
    """Run all checks of an estimator; the failure names each check that fails.

    ``expected_failures`` gives checks that must fail, and why. ``prepare`` may change the estimator that a check gets.
    """

    def cases() -> Iterator[tuple[str, Callable[[], None]]]:
        for instance, check in estimator_checks_generator(estimator):
            name = check.func.__name__
            given = instance if prepare is None else prepare(instance, name)
            yield name, partial(_run, given, check, name, (expected_failures or {}).get(name))

    run_each(cases())


def _run(estimator: Any, check: Any, name: str, reason: str | None) -> None:
    about_weights = name.startswith("check_sample_weight_equivalence")
    if LABELS_FOLLOW_THE_FIRST_ROW and about_weights and is_classifier(estimator):
        pytest.skip("scikit-learn 1.6 swaps the labels of one of the two fits that it compares")
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.skip(str(skipped))
    except Exception:
        if reason is None:
            raise
    else:
        assert reason is None, f"passes, and should not: {reason}"
