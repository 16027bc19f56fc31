"""More than two classes: decisions at all costs, probabilities, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

import infinitask
from infinitask import (
    IndependentCostSensitiveClassifier,
    InfiniteCostSensitiveClassifier,
    InfiniteCostSensitiveClassifierCV,
)
from infinitask.calibration._log_odds import multinomial_scaling
from infinitask.estimators import classifier
from infinitask.measures import ClassCosts, Discrete, Uniform
from infinitask.metrics import scorer
from infinitask.streaming import Blocks
from tests.support.limits import large_from
from tests.support.scikit_learn_checks import run_checks

QUICK: dict[str, Any] = {"n_nodes": 8, "alpha": 0.01, "gamma": 0.5}
CENTRES = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])


def clouds(n: int = 90, seed: int = 0, shares: Any = (1 / 3, 1 / 3, 1 / 3)) -> tuple[np.ndarray, np.ndarray]:
    """Three normal clouds that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    return CENTRES[y] + rng.normal(size=(n, 2)), y


def truth(X: np.ndarray) -> np.ndarray:
    """The probabilities of equally frequent clouds."""
    p = np.exp(-0.5 * np.sum((X[:, None, :] - CENTRES) ** 2, axis=2))
    return p / p.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    return clouds()


@pytest.fixture(scope="module")
def model(rows: tuple[np.ndarray, np.ndarray]) -> InfiniteCostSensitiveClassifier:
    """Fitted, decisions set last."""
    return InfiniteCostSensitiveClassifier(**QUICK, calibrated=True).fit(*rows)


# ------------------------------------------------------------------------------------------------ scikit-learn
@pytest.mark.slow
def test_scikit_learn_accepts_it() -> None:
    run_checks(InfiniteCostSensitiveClassifier(n_nodes=6, alpha=0.01, alpha_bias=None))


def test_the_tags_say_that_it_takes_many_classes() -> None:
    assert InfiniteCostSensitiveClassifier().__sklearn_tags__().classifier_tags.multi_class
    for other in (IndependentCostSensitiveClassifier(), InfiniteCostSensitiveClassifierCV()):
        assert not other.__sklearn_tags__().classifier_tags.multi_class


# ------------------------------------------------------------------------------------------------- the problem
def test_the_fit_is_certified_and_the_largest_value_decides(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    assert 0.0 <= model.dual_gap_ <= model.tol
    assert model.solution_.dual <= model.objective_
    costs = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    values = model.decision_function(rows[0], costs)
    assert values.shape == (90, 6, 3)
    np.testing.assert_allclose(values.sum(axis=2), 0.0, atol=1e-9)
    np.testing.assert_array_equal(np.argmax(values, axis=2), model.predict(rows[0], costs))
    assert model.nodes_.shape == (8,)
    assert -1.0 < model.nodes_.min() < model.nodes_.max() < 1.0
    assert model.relevance_.slope.shape == (2,)


def test_two_classes_by_this_way_are_the_model_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = clouds(60, seed=3)
    X, y = X[y < 2], y[y < 2]
    theta = np.polynomial.legendre.leggauss(6)[0]
    common = {"alpha": 0.01, "gamma": 0.5, "alpha_bias": None, "tol": 1e-7}
    binary = InfiniteCostSensitiveClassifier(n_nodes=6, task_gamma=1.0, **common).fit(X, y)
    monkeypatch.setattr(classifier, "several_classes", lambda y, weight: True)
    # the mirrored field of the other class is as large, and losses count √2/2 times each
    common["alpha"] /= np.sqrt(2.0)
    many = InfiniteCostSensitiveClassifier(n_nodes=6, task_gamma=1.0, **common).fit(X, y)
    np.testing.assert_allclose(many.objective_, np.sqrt(2.0) * binary.objective_, rtol=3e-7)
    np.testing.assert_allclose(many.nodes_, theta)
    positive = np.argsort(many.class_order_)[1]
    own = many.field_(X, [[theta[2], positive], [theta[3], 1 - positive]])
    np.testing.assert_allclose(own[:, 0], binary.decision_function(X, theta[2]), atol=5e-3)
    np.testing.assert_allclose(own[:, 1], -binary.decision_function(X, theta[2]), atol=5e-3)


def unequal(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random problem of many classes: balanced or not, with a scaled column of zeros and ones, or equal rows."""
    rng = np.random.default_rng(seed)
    K, n = int(rng.integers(3, 6)), int(rng.integers(24, 60))
    y = np.arange(n) % K if seed % 2 else np.append(np.arange(K), rng.integers(K, size=n - K) // (1 + seed % 3))
    X = rng.normal(size=(n, 2)) + 1.5 * rng.normal(size=(K, 2))[y]
    if seed % 3 == 0:
        X[:, 0] = 0.3 * (X[:, 0] > 0.0)
    if seed % 5 == 0:
        X[1] = X[0]
    return X, y


@pytest.mark.quick(every=4)
@pytest.mark.parametrize("seed", range(16))
def test_orders_of_rows_scales_of_weights_and_names_change_nothing(seed: int) -> None:
    X, y = unequal(seed)
    rng = np.random.default_rng(seed)
    # weights of a sum above n are rows that occur several times: their size has a meaning
    weight = rng.uniform(0.2, 1.0, size=y.size) if seed % 4 == 0 else None
    plain = InfiniteCostSensitiveClassifier(n_nodes=4).fit(X, y, sample_weight=weight)
    costs = rng.exponential(size=(5, plain.classes_.size))
    p, values = plain.predict_proba(X), plain.decision_function(X, costs)
    assert np.ptp(p) > 0.2

    rows = rng.permutation(y.size)
    moved = clone(plain).fit(X[rows], y[rows], sample_weight=None if weight is None else weight[rows])
    scaled = clone(plain).fit(X, y, sample_weight=3e-7 * (np.ones(y.size) if weight is None else weight))
    for other in (moved, scaled):
        np.testing.assert_allclose(other.predict_proba(X), p, atol=1e-8)
        np.testing.assert_allclose(other.decision_function(X, costs), values, atol=1e-8)

    names = np.array([f"{rng.integers(10**6):06d}" for _ in range(int(y.max()) + 1)])
    named = clone(plain).fit(X, names[y], sample_weight=weight)
    place = np.searchsorted(named.classes_, names[plain.classes_])  # where a class of the first is in the second
    back = np.argsort(place)
    np.testing.assert_allclose(named.predict_proba(X)[:, place], p, atol=1e-8)
    np.testing.assert_allclose(named.decision_function(X, costs[:, back])[:, :, place], values, atol=1e-8)


def test_a_weight_of_two_is_a_row_repeated(rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = rows
    twice = np.repeat(np.arange(90), np.where(np.arange(90) % 3 == 0, 2, 1))
    weighted = InfiniteCostSensitiveClassifier(**QUICK).fit(X, y, sample_weight=np.where(np.arange(90) % 3 == 0, 2, 1))
    repeated = InfiniteCostSensitiveClassifier(**QUICK).fit(X[twice], y[twice])
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


def test_fits_are_the_same_each_time_and_survive_pickle_clone_and_a_file(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X, y = rows
    again = clone(model).fit(X, y)
    infinitask.save(model, tmp_path / "model")
    for copy in (again, pickle.loads(pickle.dumps(model)), infinitask.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(copy.decision_function(X, [3, 1, 2]), model.decision_function(X, [3, 1, 2]))


def test_rows_in_blocks_are_of_two_classes(rows: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(ValueError, match="visited in parts"):
        InfiniteCostSensitiveClassifier(**QUICK).fit(Blocks.of_arrays(*rows, rows=40))


# ------------------------------------------------------------------------------------------------- decisions
def test_a_class_that_costs_more_is_missed_less(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    X = clouds(400, seed=8)[0]
    for k in range(3):
        costs = np.ones((7, 3))
        costs[:, k] = np.geomspace(0.05, 20.0, 7)
        share = np.mean(model.predict(X, costs) == k, axis=0)
        assert np.all(np.diff(share) > -0.02)
        assert share[0] < 0.3 < 0.6 < share[-1]


def test_scale_shape_and_defaults_of_costs(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    X = rows[0]
    np.testing.assert_array_equal(model.predict(X), model.predict(X, [7.0, 7.0, 7.0]))
    np.testing.assert_array_equal(model.predict(X, [1, 2, 3]), model.predict(X, [0.1, 0.2, 0.3]))
    np.testing.assert_array_equal(model.predict(X, [[1, 2, 3], [3, 2, 1]])[:, 1], model.predict(X, [3, 2, 1]))
    assert model.decision_function(X).shape == (90, 3)
    each = np.random.default_rng(0).exponential(size=(90, 3))
    one_by_one = np.concatenate([model.predict(X[i : i + 1], each[i]) for i in range(90)])
    np.testing.assert_array_equal(model.predict(X, each, per_sample=True), one_by_one)
    np.testing.assert_array_equal(np.argmax(model.decision_function(X, each, per_sample=True), axis=1), one_by_one)


def test_default_costs_are_those_of_the_constructor(rows: tuple[np.ndarray, np.ndarray]) -> None:
    model = InfiniteCostSensitiveClassifier(**QUICK, theta=[5.0, 1.0, 1.0]).fit(*rows)
    np.testing.assert_array_equal(model.predict(rows[0]), model.predict(rows[0], [5, 1, 1]))
    with pytest.raises(ValueError, match="trade-off of two classes"):
        InfiniteCostSensitiveClassifier(**QUICK, theta=0.3).fit(*rows)


def test_matrices_of_costs(model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]) -> None:
    X, p = rows[0], model.predict_proba(rows[0])
    by_class = np.array([[0.0, 2.0, 2.0], [1.0, 0.0, 1.0], [5.0, 5.0, 0.0]])
    np.testing.assert_array_equal(model.predict(X, costs=by_class), model.predict(X, [2.0, 1.0, 5.0]))
    # gains of right answers, and constants of a row, do not change which answer is best
    np.testing.assert_array_equal(
        model.predict(X, costs=by_class - np.array([[3.0], [0.5], [1.0]])), model.predict(X, [2.0, 1.0, 5.0])
    )
    C = np.random.default_rng(0).exponential(size=(3, 3)) * (1.0 - np.eye(3))
    np.testing.assert_array_equal(model.predict(X, costs=C), np.argmin(p @ C, axis=1))
    each = np.random.default_rng(1).exponential(size=(90, 3, 3))
    np.testing.assert_array_equal(model.predict(X, costs=each), np.argmin(np.einsum("ni,nij->nj", p, each), axis=1))
    of_rows = by_class * np.linspace(1.0, 2.0, 90)[:, None, None]
    np.testing.assert_array_equal(model.predict(X, costs=of_rows), model.predict(X, costs=by_class))


def test_matrices_of_two_classes() -> None:
    X, y = clouds(60, seed=3)
    X, y = X[y < 2], y[y < 2]
    model = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=0.01).fit(X, y)
    np.testing.assert_array_equal(model.predict(X, costs=[[0, 1], [9, 0]]), model.predict(X, theta=0.8))
    np.testing.assert_array_equal(model.predict(X, costs=[[-1, 0], [7, -2]]), model.predict(X, theta=0.8))
    amount = np.linspace(1.0, 9.0, len(y))
    each = np.stack([np.array([[0.0, 1.0], [a, 0.0]]) for a in amount])
    np.testing.assert_array_equal(
        model.predict(X, costs=each), model.predict(X, model.theta_from_costs(amount, 1.0), per_sample=True)
    )
    assert np.all(model.predict(X, costs=[[0, -1], [2, 0]]) == 1)  # a false alarm is a gain


@pytest.mark.parametrize(
    ("costs", "sentence"),
    [
        (np.zeros((2, 2)), "costs of shape"),
        (np.zeros((5, 3, 3)), "costs of shape"),
        (np.full((3, 3), np.nan), "costs"),
        (np.zeros((3, 3)), "costs the same"),
        (np.ones((3, 3)), "costs the same"),
        ("dear", "costs"),
    ],
)
def test_wrong_matrices_are_refused(model: InfiniteCostSensitiveClassifier, costs: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        model.predict(np.zeros((2, 2)), costs=costs)


@pytest.mark.parametrize(
    ("theta", "sentence"),
    [
        (0.5, "trade-off of two classes"),
        ([1.0, 2.0], "shape"),
        ([1.0, -1.0, 1.0], "negative"),
        ([1.0, np.inf, 1.0], "not finite"),
        ([0.0, 0.0, 0.0], "all 0"),
    ],
)
def test_wrong_costs_of_classes_are_refused(model: InfiniteCostSensitiveClassifier, theta: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        model.predict(np.zeros((2, 2)), theta)
    with pytest.raises(ValueError, match="leave these out"):
        model.predict(np.zeros((2, 2)), [1, 1, 1], costs=np.eye(3))


def test_what_is_known_for_two_classes_only_says_so(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    for ask in (
        lambda: model.choose_theta(*rows, max_fpr=0.1),
        lambda: model.roc_curve(*rows),
        lambda: model.cost_curve(*rows),
        lambda: model.net_benefit_curve(*rows),
        lambda: model.explore(*rows),
    ):
        with pytest.raises((ValueError, TypeError), match="3 classes"):
            ask()
    for other in (IndependentCostSensitiveClassifier(), InfiniteCostSensitiveClassifierCV()):
        with pytest.raises(ValueError, match="InfiniteCostSensitiveClassifier takes more"):
            other.fit(*rows)


@pytest.mark.slow
def test_measures_rules_and_kernels_that_a_user_names(rows: tuple[np.ndarray, np.ndarray]) -> None:
    for given in (
        {"measure": Uniform(-0.9, 0.9)},
        {"quadrature": "sobol", "random_state": 0},
        {"task_kernel": "matern32", "task_gamma": 2.0},
        {"bias_kernel": None},
        {"bias_kernel": "constant"},
        {"smoothing": 0.2},
    ):
        found = InfiniteCostSensitiveClassifier(**QUICK, **given).fit(*rows)
        assert found.dual_gap_ <= found.tol
        assert found.score(*rows) > 0.7
    known = InfiniteCostSensitiveClassifier(**QUICK, task_kernel="diagonal").fit(*rows)
    np.testing.assert_allclose(known.predict_proba(rows[0]).sum(axis=1), 1.0)
    for measure in (ClassCosts(3), Uniform(-1.0, 2.0), Discrete(np.eye(3))):
        with pytest.raises(ValueError, match=r"measure="):
            InfiniteCostSensitiveClassifier(measure=measure).fit(*rows)


# --------------------------------------------------------------------------------------------- probabilities
def test_probabilities_sum_to_one_and_agree_with_decisions(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    X = np.concatenate([rows[0], 30.0 * rows[0][:10]])
    p = model.predict_proba(X)
    assert p.shape == (100, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert p.min() > 0.5 / (93 * 2)
    np.testing.assert_array_equal(model.classes_[np.argmax(p, axis=1)], model.predict(X, [1, 1, 1]))


def test_classes_of_single_rows_are_fitted_without_a_warning() -> None:
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.r_[np.zeros(38), 1, 2]
    found = InfiniteCostSensitiveClassifier(n_nodes=8, tol=1e-3).fit(X, y)  # a warning would be an error
    assert found.dual_gap_ <= 1e-3
    assert found.predict_proba(X).mean(axis=0)[0] > 0.8


@pytest.mark.slow
def test_iris_is_easy() -> None:
    X, y = load_iris(return_X_y=True)
    found = InfiniteCostSensitiveClassifier(n_nodes=16, tol=1e-3).fit(X[::2], y[::2])
    assert found.score(X[1::2], y[1::2]) > 0.9
    assert log_loss(y[1::2], found.predict_proba(X[1::2])) < 0.25


@pytest.mark.slow
def test_probabilities_approach_the_truth() -> None:
    Z = clouds(2_000, seed=9)[0]
    errors = []
    for n in (100, 800):
        found = InfiniteCostSensitiveClassifier(tol=1e-3).fit(*clouds(n, seed=n))
        errors.append(np.mean(np.abs(found.predict_proba(Z) - truth(Z))))
    assert errors[1] < 0.75 * errors[0]
    assert errors[1] < 0.03


@pytest.mark.slow
def test_rare_classes_have_calibrated_probabilities() -> None:
    X, y = clouds(600, seed=1, shares=(0.88, 0.08, 0.04))
    Z, z = clouds(3_000, seed=2, shares=(0.88, 0.08, 0.04))
    found = InfiniteCostSensitiveClassifier(tol=1e-3).fit(X, y)
    mean = found.predict_proba(Z).mean(axis=0)
    np.testing.assert_allclose(mean, np.bincount(z) / z.size, atol=0.03)
    # where a missed row costs as much as its class is rare, all classes are found
    dear = found.predict(Z, 1.0 / np.array([0.88, 0.08, 0.04]))
    assert min(np.mean(dear[z == k] == k) for k in range(3)) > 0.5


def test_other_names_of_the_labels_change_no_calibrated_probability() -> None:
    X, y = clouds(70, seed=4, shares=(0.5, 0.3, 0.2))
    names = np.array(["z", "a", "m"])
    model = InfiniteCostSensitiveClassifier(**QUICK, tol=1e-6, calibrated=True)
    fits = [clone(model).fit(X, label) for label in (y, names[y])]
    place = np.searchsorted(fits[1].classes_, names)
    np.testing.assert_array_equal(fits[1].class_scale_.offsets, fits[0].class_scale_.offsets)
    np.testing.assert_array_equal(fits[1].class_order_, place[fits[0].class_order_])
    np.testing.assert_array_equal(fits[1].predict_proba(X)[:, place], fits[0].predict_proba(X))


# ------------------------------------------------------------------------------------------------- names of classes
def test_costs_that_name_the_classes_may_stand_in_any_order() -> None:
    pd = pytest.importorskip("pandas")
    X, y = clouds(60, seed=2)
    names = np.array(["dry", "fog", "ice"])
    model = InfiniteCostSensitiveClassifier(**QUICK, theta={"ice": 4.0, "dry": 1.0, "fog": 2.0}).fit(X, names[y])
    expected = model.predict(X, [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(model.predict(X), expected)
    series = pd.Series([2.0, 4.0, 1.0], index=["fog", "ice", "dry"])
    np.testing.assert_array_equal(model.predict(X, series), expected)
    both = model.predict(X, pd.DataFrame([[2.0, 4.0, 1.0]] * 2, columns=["fog", "ice", "dry"]))
    np.testing.assert_array_equal(both, np.column_stack([expected] * 2))
    C = np.array([[0.0, 1.0, 7.0], [2.0, 0.0, 1.0], [9.0, 5.0, 0.0]])
    table = pd.DataFrame(C, index=names, columns=names)
    expected = model.predict(X, costs=C)
    np.testing.assert_array_equal(model.predict(X, costs=table.iloc[[2, 0, 1], [1, 2, 0]]), expected)
    np.testing.assert_array_equal(model.predict(X, costs=pd.DataFrame(C)), expected)
    with pytest.raises(ValueError, match=r"'snow'.*no classes and lacks \['ice'\]"):
        model.predict(X, costs=table.rename(columns={"ice": "snow"}))
    with pytest.raises(ValueError, match=r"lacks \['fog'\]"):
        model.predict(X, {"dry": 1.0, "ice": 2.0})


def test_two_classes_take_costs_by_name() -> None:
    pd = pytest.importorskip("pandas")
    X, y = clouds(60, seed=2)
    X, y = X[y < 2], y[y < 2]
    model = InfiniteCostSensitiveClassifier(**QUICK).fit(X, y)
    table = pd.DataFrame([[0.0, 5.0], [1.0, 0.0]], index=[1, 0], columns=[1, 0])
    np.testing.assert_array_equal(model.predict(X, costs=table), model.predict(X, costs=[[0.0, 1.0], [5.0, 0.0]]))


def test_many_rows_of_many_classes_stay_in_memory(
    rows: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = InfiniteCostSensitiveClassifier(**QUICK).fit(*rows).predict_proba(rows[0])
    large_from(monkeypatch, 50)
    found = InfiniteCostSensitiveClassifier(**QUICK).fit(*rows).predict_proba(rows[0])
    np.testing.assert_array_equal(found, expected)


def test_labels_of_several_types_are_named(rows: tuple[np.ndarray, np.ndarray]) -> None:
    for odd in (1, None):
        for labels in (["a", odd], ["a", odd, "b"]):
            y = np.resize(np.array(labels, dtype=object), 90)
            with pytest.raises(TypeError, match=r"labels of the types .* must be of one type"):
                InfiniteCostSensitiveClassifier(**QUICK).fit(rows[0], y)


def test_the_scorer_of_trade_offs_is_for_two_classes(
    model: InfiniteCostSensitiveClassifier, rows: tuple[np.ndarray, np.ndarray]
) -> None:
    with pytest.raises(ValueError, match="model of 3 classes; it scores the trade-offs of two"):
        scorer("cost")(model, *rows)


def test_a_rare_class_is_as_probable_as_it_is_frequent() -> None:
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], [148, 148, 4])
    p = np.abs(rng.normal([1.0, 1.0, 0.004], [0.2, 0.2, 0.001], size=(300, 3)))
    p /= p.sum(axis=1, keepdims=True)
    (a,), b = multinomial_scaling((np.log(p),), label, np.full(300, 1 / 300))
    q = p**a * np.exp(b)
    mean = (q / q.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(mean, [148 / 300, 148 / 300, 4 / 300], rtol=0.03)


def test_probabilities_of_a_table_of_categories_are_its_frequencies() -> None:
    """Equal rows have several classes, and calibration must hold out some copies of a row, not all of them."""
    rng = np.random.default_rng(0)
    x = (rng.uniform(size=(600, 1)) < 0.5) * 1.0
    P = np.where(x > 0.0, [[0.7, 0.2, 0.1]], [[0.2, 0.3, 0.5]])
    y = np.array([rng.choice(3, p=p) for p in P])
    found = InfiniteCostSensitiveClassifier().fit(x, y).predict_proba(np.array([[0.0], [1.0]]))
    frequencies = [np.bincount(y[x[:, 0] == value], minlength=3) / np.sum(x == value) for value in (0.0, 1.0)]
    np.testing.assert_allclose(found, frequencies, atol=0.05)
    rows = np.repeat([[0.0]], 30, axis=0)
    few = InfiniteCostSensitiveClassifier().fit(rows, np.repeat([0, 1, 2], [15, 10, 5])).predict_proba(rows[:1])
    np.testing.assert_allclose(few, [[0.5, 1 / 3, 1 / 6]], atol=0.05)
