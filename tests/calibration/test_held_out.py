"""The engine for held-out predictions: folds, fits one by one, fits together, and whole estimators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold

from infinitask import InfiniteCostSensitiveClassifier
from infinitask.calibration._folds import Folds, JointFits, partition_of, solved_one_by_one, splits_of, stratified
from infinitask.calibration.held_out import HeldOut, HeldOutFits, out_of_fold
from infinitask.datasets import make_sine
from infinitask.fitting import Data, Recipe, learn
from infinitask.fitting._defaults import resolved
from infinitask.fitting._pose import pose
from infinitask.tasks import QuantileTask

LEVELS = np.array([0.1, 0.5, 0.9])


def problem(y: Any) -> Any:
    X, _ = make_sine(40, random_state=0)
    data = Data(X, y, np.full(40, 1.0 / 40))
    recipe = Recipe(QuantileTask(), n_nodes=10, alpha=1e-2, alpha_bias=1e-2, gamma=3.0)
    return pose(resolved(recipe, data), data, np.random.default_rng(0))


def splits(count: int = 4) -> Any:
    return list(KFold(count, shuffle=True, random_state=0).split(np.empty((40, 1))))


# ------------------------------------------------------------------------------------------------------------- folds
def test_every_copy_of_a_row_is_held_out_once() -> None:
    copies = np.array([1.0, 7.0, 2.0, 30.0])
    folds = Folds.of_copies(copies, 10)
    assert folds.count == 10
    np.testing.assert_allclose(np.bincount(folds.rows, weights=folds.fraction), 1.0)
    np.testing.assert_allclose(np.sum(1.0 - folds.seen, axis=0), 1.0)
    assert Folds.of_copies(copies, 10, only_first=True).count == 1


def test_values_of_held_out_rows_come_back_in_the_order_of_all_rows() -> None:
    folds = Folds.of_splits(splits(), 40)
    values = 2.0 * folds.rows[:, None] + np.array([0.0, 1.0])
    np.testing.assert_array_equal(folds.assembled(values)[:, 0], 2.0 * np.arange(40))
    np.testing.assert_array_equal(np.concatenate(folds.split(values)), values)
    some = folds.only(folds.rows < 5)
    found = some.assembled(values[folds.rows < 5])
    assert np.all(np.isfinite(found[:5]))
    assert np.all(np.isnan(found[5:]))


def test_labels_and_splits_say_the_same() -> None:
    label = np.arange(40) % 4
    one = Folds.of_labels(label, 4)
    other = Folds.of_splits([(np.flatnonzero(label != k), np.flatnonzero(label == k)) for k in range(4)], 40)
    np.testing.assert_array_equal(one.seen, other.seen)
    assert set(zip(one.rows, one.fold, strict=True)) == set(zip(other.rows, other.fold, strict=True))


def test_folds_are_checked() -> None:
    X = np.zeros((6, 1))
    for fold in ((np.arange(6), np.arange(6)), (np.arange(3), np.arange(3, 6))):
        with pytest.raises(ValueError, match="do not hold out each of the 6 rows exactly once"):
            partition_of([fold], X)
    mask = np.arange(6) < 2
    np.testing.assert_array_equal(splits_of([(~mask, mask)], X)[0][1], [0, 1])
    with pytest.raises(ValueError, match="the position 9, but X has 6 rows"):
        splits_of([(np.array([0]), np.array([9]))], X)
    with pytest.raises(ValueError, match="needs groups"):
        splits_of(GroupKFold(2), X)
    one, other = (partition_of(3, X, random_state=seed) for seed in (0, 1))
    assert any(np.any(a[1] != b[1]) for a, b in zip(one, other, strict=True))


# -------------------------------------------------------------------------------------------------------------- fits
def test_fits_one_by_one_and_together_agree() -> None:
    posed, folds = problem(make_sine(40, random_state=0)[1]), Folds.of_splits(splits(), 40)
    assert posed.constant is not None  # the bias has joined φ, which joint fits need

    def predicted(fields: list[Any]) -> Any:
        bias = np.stack([field.bias(LEVELS) for field in fields])[folds.fold]
        return HeldOutFits.of(posed, folds, fields, 40.0).values(LEVELS) + bias

    joint = JointFits.of(posed, folds, single=False).solved(posed.objective.alpha, 1e-6, 20_000)
    np.testing.assert_allclose(joint.values(LEVELS), predicted(joint.fields()), atol=1e-8)
    one_by_one = predicted(list(solved_one_by_one(posed, folds, "auto", 1e-6, 10_000)))
    np.testing.assert_allclose(joint.values(LEVELS), one_by_one, atol=5e-3)


def test_a_held_out_row_has_no_part_in_its_prediction() -> None:
    y, folds = make_sine(40, random_state=0)[1], Folds.of_splits(splits(), 40)
    first = folds.rows[folds.fold == 0]
    other = y.copy()
    other[first] += 100.0
    before, after = (
        HeldOutFits.of(posed, folds, list(solved_one_by_one(posed, folds, "auto", 1e-4, 10_000)), 40.0).values(LEVELS)
        for posed in (problem(y), problem(other))
    )
    np.testing.assert_allclose(after[folds.fold == 0], before[folds.fold == 0], atol=1e-8)
    assert np.max(np.abs(after - before)) > 1.0


@pytest.mark.parametrize("alpha", [1e-2, 10.0])
def test_fits_that_start_at_the_fit_have_not_seen_the_row(alpha: float) -> None:
    """With a large ridge and a rare class, fits at a rough gap would still be the fit of all rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + rng.normal(size=200) > 1.8, 1.0, -1.0)
    assert 10 <= np.sum(y > 0.0) <= 30
    data = Data.canonical(X, y)
    recipe = replace(InfiniteCostSensitiveClassifier(n_nodes=6, alpha=alpha, tol=1e-7).recipe(), alpha_bias=1e-8)
    fit = learn(recipe, data)
    held_out = HeldOut(fit.problem, fit.field, fit.solution, data.copies, tol=1e-7)
    label = (y > 0.0).astype(np.intp)
    assert (held_out._determining_gap(1e-2) < 1e-2) == (alpha > 1.0)
    found = held_out.stratified(label, 1e-2)
    folds = Folds.of_labels(stratified(label, 10), 10)
    alone = HeldOutFits.of(fit.problem, folds, list(solved_one_by_one(fit.problem, folds, "auto", 1e-9, 50_000)), 200.0)
    np.testing.assert_array_equal(found.rows, alone.rows)
    levels = np.linspace(-0.9, 0.9, 5)
    ours, theirs = found.values(levels), alone.values(levels)
    assert np.linalg.norm(ours - theirs) < 0.5 * np.linalg.norm(theirs - np.mean(theirs, axis=0))


def test_held_out_h_is_on_the_scale_of_a_less_accurate_fit() -> None:
    """The field of all rows is a copy with noise: values grow by its variance over its covariance with the copy."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.repeat([-1.0, 1.0], 150)
    fit = learn(
        replace(InfiniteCostSensitiveClassifier(n_nodes=5, alpha=1e-3).recipe(), alpha_bias=1e-8), Data.canonical(X, y)
    )
    field, levels, phi = fit.field, np.array([-0.3, 0.2]), np.asarray(fit.problem.objective.rows)[:, 1:]
    noisy = replace(field, coef=field.coef + np.std(field.coef) * rng.normal(size=field.coef.shape))
    rows, omega = np.arange(300), np.full(300, 1.0 / 300)
    fits = HeldOutFits(rows, 0 * rows, phi, omega, 300.0, [field])
    plain, scaled = fits.on_scale_of(noisy, levels), replace(fits, whole=field).on_scale_of(noisy, levels)
    own, copy = (part - np.mean(part, axis=0) for part in (noisy(X, levels), field(X, levels)))
    ratio = np.sum(own * own, axis=0) / np.sum(own * copy, axis=0)
    assert np.all(np.abs(ratio - 1.0) > 0.05)
    np.testing.assert_allclose(scaled - np.mean(scaled, axis=0), ratio * (plain - np.mean(plain, axis=0)), rtol=1e-6)
    np.testing.assert_allclose(np.mean(scaled, axis=0), np.mean(noisy(X, levels), axis=0), atol=1e-9)


def test_folds_have_equal_fractions_of_all_labels_whatever_their_names() -> None:
    label = np.random.default_rng(0).choice(3, size=100, p=(0.8, 0.15, 0.05))
    fold = stratified(label, 5)
    counts = np.stack([np.bincount(fold[label == k], minlength=5) for k in range(3)])
    assert np.all(np.ptp(counts, axis=1) <= 1)
    assert np.ptp(np.sum(counts, axis=0)) <= 1
    np.testing.assert_array_equal(stratified(2 - label, 5), fold)


def _seen_and_held_out(model: Any, seen: dict[str, Any], X: Any, y: Any) -> tuple[int, float, Any]:
    return seen["X"].shape[0], float(np.sum(seen["sample_weight"])), model.fit(**seen).predict(X) - y


def test_whole_models_see_training_rows_only() -> None:
    X, y = make_sine(40, random_state=0)
    model, weight = Ridge(), np.arange(40.0)
    for (train, test), (count, mass, errors) in zip(
        splits(), out_of_fold(_seen_and_held_out, model, X, y, splits(), weight=weight), strict=True
    ):
        alone = Ridge().fit(X[train], y[train], sample_weight=weight[train])
        assert (count, mass) == (30, np.sum(weight[train]))
        np.testing.assert_allclose(errors, alone.predict(X[test]) - y[test])
    assert not hasattr(model, "coef_")
