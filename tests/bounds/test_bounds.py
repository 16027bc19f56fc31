"""Generalisation bounds: they hold, for the reasons given, and shrink as they should."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier, InfiniteQuantileRegressor, InfiniteTaskEstimator
from infinitask.bounds import bound_of, cost_sensitive_bound, propose_nodes, quantile_bound
from infinitask.bounds._formula import Bound, sequence_discrepancy, star_discrepancy
from infinitask.datasets import make_sine
from infinitask.losses import CostSensitiveHinge, Loss, Pinball
from infinitask.measures import Beta, ClenshawCurtis, Discrete, GaussLegendre, Halton, MonteCarlo, Sobol, Uniform
from infinitask.tuning import InfiniteQuantileRegressorCV
from tests.support.each import each

RULES = [GaussLegendre(), ClenshawCurtis(), Sobol(), Sobol(scramble=False), Halton(), Halton(scramble=False)]
FINE = (np.arange(100) + 0.5) / 100.0


def sine(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """|y| ≤ 1, with noise that fades."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 1.5, n)
    return x[:, None], 0.5 * np.sin(2.0 * np.pi * x) + 0.5 * (1.0 - x / 2.0) * rng.uniform(-1.0, 1.0, n)


def coin(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """y = ±1 whatever x: all that is learnt is noise."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.0, 1.0, (n, 1)), rng.choice([-1.0, 1.0], n)


def losses_of(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss of every sample, integrated over a fine rule on Θ: (n,)."""
    loss: Loss = CostSensitiveHinge() if hasattr(model, "classes_") else Pinball()
    theta = 2.0 * FINE - 1.0 if hasattr(model, "classes_") else FINE
    return np.mean(loss.value(theta, y[:, None], model.field_(X, theta)), axis=1)


# ------------------------------------------------------------------------------------------------ they hold
def test_the_quantile_bound_holds_and_says_something() -> None:
    X_new, y_new = sine(5_000, 1_000)
    gaps, bounds = [], []
    for seed in range(15):
        X, y = sine(400, seed)
        model = InfiniteQuantileRegressor(alpha=3.0, alpha_bias=None, noncrossing=0.0, gamma=2.0, n_nodes=30).fit(X, y)
        bound = bound_of(model, X, y, y_bound=1.0)
        risk = float(np.mean(losses_of(model, X_new, y_new)))
        assert bound.risk is not None
        assert risk <= bound.risk < 0.5 == pytest.approx(bound.zero_risk)
        gaps.append(risk - bound.empirical_risk)
        bounds.append(bound)
    assert max(gaps) > 0.0  # the training risk does flatter some of the models
    assert not any(bound.vacuous for bound in bounds)


def test_the_cost_sensitive_bound_holds_and_says_something() -> None:
    def clusters(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        y = rng.choice([-1.0, 1.0], n)
        return (y + 0.4 * rng.standard_normal(n))[:, None], y

    X_new, y_new = clusters(5_000, 1_000)
    for seed in range(15):
        X, y = clusters(1_000, seed)
        model = InfiniteCostSensitiveClassifier(alpha=0.2, gamma=0.5, bias_kernel=None, n_nodes=60).fit(X, y)
        bound = bound_of(model, X, y)
        assert bound.risk is not None
        assert float(np.mean(losses_of(model, X_new, y_new))) <= bound.risk < 0.5 == pytest.approx(bound.zero_risk)


@each("task", ["quantile", "cost"])
def test_the_mean_of_what_is_overfitted_is_at_most_the_stability_term(task: str) -> None:
    # a kernel so narrow that samples share nothing, and targets that are noise: as much is overfitted as λ allows
    gaps = []
    for seed in range(25):
        X, y = coin(40, seed)
        if task == "quantile":
            model = InfiniteQuantileRegressor(
                alpha=1.0, noncrossing=0.0, bias_kernel=None, task_kernel="constant", gamma=1e9, n_nodes=20
            ).fit(X, y)
        else:
            model = InfiniteCostSensitiveClassifier(
                alpha=1.0, bias_kernel=None, task_kernel="constant", gamma=1e9, n_nodes=20
            ).fit(X, y)
        bound = bound_of(model, X, y)
        X_new, y_new = coin(2_000, 10_000 + seed)
        gaps.append(float(np.mean(losses_of(model, X_new, y_new)) - bound.empirical_risk))
    share = {"quantile": 0.15, "cost": 0.4}[task]
    assert share * bound.stability < np.mean(gaps) <= bound.stability


@each("noncrossing", [0.0, 2.0])
@each("bias_kernel", [None, "task", "constant"])
def test_replacing_a_sample_moves_no_loss_by_more_than_two_beta(noncrossing: float, bias_kernel: Any) -> None:
    X, y = sine(30, 0)
    params = {"alpha": 0.2, "alpha_bias": 0.5, "gamma": 5.0, "task_gamma": 4.0, "n_nodes": 20, "tol": 1e-8}
    new = np.linspace(0.0, 1.5, 31)[:, None]
    X_all = np.concatenate([X, new])
    largest = 0.0
    first = InfiniteQuantileRegressor(noncrossing=noncrossing, bias_kernel=bias_kernel, **params).fit(X, y)
    bound = bound_of(first, X, y, y_bound=1.0)
    for i in (0, 12, 24):
        X_other, y_other = X.copy(), y.copy()
        X_other[i], y_other[i] = 0.75, -np.sign(y[i])
        second = clone(first).fit(X_other, y_other)
        for target in (-1.0, 0.0, 1.0):
            losses = [losses_of(model, X_all, np.full(len(X_all), target)) for model in (first, second)]
            largest = max(largest, float(np.max(np.abs(losses[0] - losses[1]))))
    assert 0.0 < largest <= 2.0 * bound.beta
    if noncrossing == 0.0:
        assert largest > 0.05 * bound.beta  # no empty promise


def test_replacing_a_sample_of_a_classifier_uses_up_the_bound() -> None:
    X, y = coin(20, 0)
    other = y.copy()
    other[3] = -y[3]
    params = {"alpha": 1.0, "bias_kernel": None, "task_kernel": "constant", "gamma": 1e9, "tol": 1e-8}
    first, second = (InfiniteCostSensitiveClassifier(**params).fit(X, signs) for signs in (y, other))
    bound = bound_of(first, X, y)
    moved = np.abs(losses_of(first, X, y) - losses_of(second, X, y))
    assert np.max(moved) == pytest.approx(2.0 * bound.beta, rel=1e-3)
    assert np.max(moved) <= 2.0 * bound.beta * (1.0 + 1e-4)


@pytest.mark.filterwarnings("ignore:.*the decision is the same for all training rows")
def test_removing_a_sample_moves_a_loss_by_beta_if_the_mean_is_still_over_n() -> None:
    """β bounds it for the sum over the other n − 1 samples divided by n; divided by n − 1 it moves by almost 2β."""
    n, moved = 20, []
    X, y, others = np.linspace(0.0, 1.0, n)[:, None], np.ones(n), np.arange(n) != 3
    y[[3, 7]] = -1.0
    params = {"bias_kernel": None, "task_kernel": "constant", "gamma": 1e-9, "tol": 1e-8}
    whole = InfiniteCostSensitiveClassifier(alpha=1.0, **params).fit(X, y)
    for alpha in (n / (n - 1.0), 1.0):  # the ridge beside a mean over n − 1 that is the one beside a sum over n
        without = InfiniteCostSensitiveClassifier(alpha=alpha, **params).fit(X[others], y[others])
        moved.append(np.max(np.abs(losses_of(whole, X, y) - losses_of(without, X, y))))
    beta = bound_of(whole, X, y).beta
    assert moved[0] == pytest.approx(beta, rel=1e-3)
    assert moved[1] > 1.8 * beta


def test_no_loss_exceeds_xi_and_no_variation_exceeds_v() -> None:
    X, y = sine(50, 3)
    model = InfiniteQuantileRegressor(alpha=1e-2, gamma=20.0, task_gamma=5.0).fit(X, y)
    bound = bound_of(model, X, y, y_bound=1.0)
    assert np.max(losses_of(model, X, y)) <= bound.xi
    theta = np.linspace(0.0, 1.0, 2_001)
    curves = Pinball().value(theta, y[:, None], model.field_(X, theta))
    variations = np.sum(np.abs(np.diff(curves, axis=1)), axis=1)
    of_the_mean = np.sum(np.abs(np.diff(np.mean(curves, axis=0))))
    assert 0.0 < of_the_mean < np.mean(variations)
    assert np.max(variations) <= bound.variation


def test_the_norm_that_enters_is_that_of_field_and_bias_together() -> None:
    X, y = sine(50, 3)
    model = InfiniteQuantileRegressor(alpha=0.1, alpha_bias=0.02, gamma=20.0, noncrossing=0.0, tol=1e-8).fit(X, y)
    bound = bound_of(model, X, y, y_bound=1.0)
    # what the objective holds beside the risk is (λ/2)‖·‖², and V is linear in that norm
    norm = math.sqrt(2.0 * (model.objective_ - bound.empirical_risk) / 0.1)
    kappa = math.sqrt(1.0 + 0.1 / 0.02)
    bend = kappa * math.sqrt(2.0 * model.task_kernel_.gamma)
    assert bound.variation == pytest.approx(1.0 + kappa * norm + 0.75 * bend * norm, rel=1e-3)


def test_a_fit_that_stops_early_pays_for_it() -> None:
    X, y = sine(60, 0)
    rough, fine = (bound_of(InfiniteQuantileRegressor(alpha=0.1, tol=t).fit(X, y), X, y) for t in (1e-2, 1e-8))
    assert rough.optimisation > 10.0 * fine.optimisation > 0.0
    assert rough.total == pytest.approx(rough.stability + rough.deviation + rough.quadrature + rough.optimisation)


# ------------------------------------------------------------------------------------------- how they shrink
@each("form", ["proved", "printed"])
def test_samples_count_by_their_root(form: str) -> None:
    for bound in (
        lambda n: quantile_bound(n, 100, 0.5, y_bound=2.0, discrepancy=0.01, form=form),
        lambda n: cost_sensitive_bound(n, 100, 0.5, discrepancy=0.01, form=form),
    ):
        n = np.array([10**3, 10**4, 10**5, 10**6])
        terms = np.array([bound(int(k)).statistical for k in n])
        slopes = np.diff(np.log(terms)) / np.diff(np.log(n))
        np.testing.assert_allclose(slopes[1:], -0.5, atol=0.02)
        assert bound(10**4).quadrature == bound(10**6).quadrature


@each(("form", "power"), [("proved", -1.0), ("printed", -0.5)])
def test_the_deviation_falls_with_the_ridge(form: str, power: float) -> None:
    ridges = np.array([1e-4, 1e-3, 1e-2])
    for terms in (
        [quantile_bound(1_000, 100, alpha, y_bound=1.0, form=form).deviation for alpha in ridges],
        [cost_sensitive_bound(1_000, 100, alpha, form=form).deviation for alpha in ridges],
    ):
        np.testing.assert_allclose(np.diff(np.log(terms)) / np.diff(np.log(ridges)), power, atol=0.12)


@each("form", ["proved", "printed"])
def test_nodes_count_by_log_m_over_m(form: str) -> None:
    m = np.array([2**k for k in range(6, 14)])
    terms = np.array([quantile_bound(1_000, int(k), 1.0, y_bound=1.0, form=form).quadrature for k in m])
    ratio = terms / (np.log(m) / m)
    assert np.all(np.diff(terms) < 0.0)
    assert np.max(ratio) < 2.0 * np.min(ratio)


@each("rule", [GaussLegendre(), Sobol()], ids=str)
def test_the_quadrature_term_of_a_model_shrinks_with_its_nodes(rule: Any) -> None:
    X, y = sine(60, 0)
    terms = [
        bound_of(
            InfiniteQuantileRegressor(alpha=1.0, task_gamma=1.0, quadrature=rule, n_nodes=m, random_state=0).fit(X, y),
            X,
            y,
        ).quadrature
        for m in (4, 16, 64)
    ]
    assert terms[0] > 2.0 * terms[1] > 4.0 * terms[2] > 0.0


@each("form", ["proved", "printed"])
def test_more_penalty_and_less_certainty_make_smaller_bounds(form: str) -> None:
    def total(**changed: float) -> float:
        given = {"alpha": 0.1, "y_bound": 1.0, "delta": 0.05, "kappa_x": 1.0, "kappa_theta": 1.0, "slope_theta": 1.0}
        return quantile_bound(500, 50, form=form, **{**given, **changed}).total

    for name, smaller, larger in (
        ("alpha", 10.0, 0.01),
        ("delta", 0.5, 0.001),
        ("y_bound", 0.1, 10.0),
        ("kappa_x", 0.1, 10.0),
        ("kappa_theta", 0.1, 10.0),
        ("slope_theta", 0.1, 10.0),
    ):
        assert total(**{name: smaller}) < total() < total(**{name: larger})


def test_a_penalty_on_crossing_weakens_the_bound() -> None:
    plain, penalised = (quantile_bound(500, 50, 1.0, y_bound=1.0, noncrossing=c) for c in (0.0, 1.0))
    assert penalised.beta > plain.beta
    X, y = sine(40, 0)
    fits = [InfiniteQuantileRegressor(alpha=1.0, noncrossing=c).fit(X, y) for c in (0.0, 1.0)]
    assert bound_of(fits[1], X, y).beta > bound_of(fits[0], X, y).beta


def test_numbers_and_model_agree() -> None:
    X, y = sine(80, 0)
    model = InfiniteQuantileRegressor(
        alpha=0.5, bias_kernel=None, task_gamma=2.0, n_nodes=64, noncrossing=0.5, quadrature=Sobol(scramble=False)
    ).fit(X, y)
    fitted = bound_of(model, X, y, y_bound=1.0)
    assert fitted.discrepancy == pytest.approx(1.0 / 128.0)
    plain = quantile_bound(80, 64, 0.5, y_bound=1.0, slope_theta=2.0, noncrossing=0.5, discrepancy=1.0 / 128.0)
    assert fitted.beta == pytest.approx(plain.beta, rel=0.03)  # the numbers allow for any nodes of that discrepancy
    assert fitted.xi == pytest.approx(plain.xi, rel=0.03)
    assert fitted.beta <= plain.beta
    assert fitted.variation <= plain.variation


def test_the_printed_corollaries() -> None:
    # λ/2 here is the λ of the appendix
    n, lam, kx, kt, B, delta, m = 50, 0.3, 1.5, 0.8, 2.0, 0.1, 20
    root = math.sqrt(math.log(1.0 / delta) / n)
    square = kx**2 * kt**2 / (lam * n)
    given = {"kappa_x": kx, "kappa_theta": kt, "delta": delta, "form": "printed"}
    quantile = quantile_bound(n, m, 2.0 * lam, y_bound=B, slope_theta=0.7, **given)
    assert quantile.statistical == pytest.approx(
        4.0 * square + (8.0 * square + 2.0 * (B + kx * kt * math.sqrt(B / lam))) * root
    )
    C = 0.7 * kt
    variation = B + kx * kt * math.sqrt(B / lam) + 2.0 * kx * math.sqrt(2.0 * B * C / lam)
    assert quantile.quadrature == pytest.approx(variation * math.log(m) / m)
    cost = cost_sensitive_bound(n, m, 2.0 * lam, **given)
    assert cost.statistical == pytest.approx(square + (2.0 * square + 1.0 + kx * kt / math.sqrt(lam)) * root)


# ------------------------------------------------------------------------------------- nodes and discrepancies
@each("m", [1, 2, 7, 30])
def test_the_discrepancy_is_the_largest_deviation_of_the_counts(m: int) -> None:
    rng = np.random.default_rng(m)
    u, w = rng.uniform(size=m), rng.dirichlet(np.ones(m))
    even = np.full(m, 1.0 / m)
    for weights in (even, w):
        ends = np.concatenate([u, np.nextafter(u, 0.0), [1.0], rng.uniform(size=500)])
        counted = [abs(np.sum(weights[u <= t]) - t) for t in ends]
        assert star_discrepancy(u, weights) == pytest.approx(max(counted), abs=1e-12)
    # of equal weights it is the statistic of Kolmogorov and Smirnov
    assert star_discrepancy(u, even) == pytest.approx(stats.kstest(u, "uniform").statistic)


@each("rule", RULES, ids=str)
def test_the_discrepancy_of_a_sequence_bounds_that_of_every_even_rule(rule: Any) -> None:
    for m in [*range(1, 80), 127, 128, 129, 500]:
        quadrature = rule(Uniform(0.0, 1.0), m, rng=m)
        assert star_discrepancy(quadrature.nodes[:, 0], quadrature.weights) <= sequence_discrepancy(m)


def test_random_nodes_have_a_larger_discrepancy() -> None:
    nodes = MonteCarlo()(Uniform(0.0, 1.0), 500, rng=0).nodes[:, 0]
    assert star_discrepancy(nodes, np.full(500, 1.0 / 500)) > sequence_discrepancy(500)


@each("rule", RULES, ids=str)
def test_koksma(rule: Any) -> None:
    quadrature = rule(Uniform(0.0, 1.0), 13, rng=0)
    u, w = quadrature.nodes[:, 0], quadrature.weights
    for cut in np.linspace(0.03, 0.97, 41):
        # a step of height one has variation one, and the hardest of them attains the bound
        assert abs(np.sum(w[u <= cut]) - cut) <= star_discrepancy(u, w) + 1e-12


@each("measure", [Uniform(0.2, 0.7), Beta(2.0, 3.0)], ids=str)
def test_the_discrepancy_is_that_of_the_measure(measure: Any) -> None:
    X, y = sine(40, 0)
    model = InfiniteQuantileRegressor(alpha=1.0, measure=measure, n_nodes=12).fit(X, y)
    reference = GaussLegendre()(Uniform(0.0, 1.0), 12)
    expected = star_discrepancy(reference.nodes[:, 0], reference.weights)
    assert bound_of(model, X, y).discrepancy == pytest.approx(expected, abs=1e-9)


def test_finitely_many_tasks_need_no_quadrature() -> None:
    X, y = sine(40, 0)
    for kernel in ("rbf", "diagonal"):
        model = InfiniteQuantileRegressor(
            alpha=1.0, measure=Discrete([0.1, 0.5, 0.9]), task_kernel=kernel, noncrossing=0.0
        ).fit(X, y)
        assert bound_of(model, X, y).quadrature == 0.0


def test_the_proposed_nodes_are_the_fewest_that_suffice() -> None:
    for n in (1, 10, 1_000, 10**6):
        m = propose_nodes(n)
        assert sequence_discrepancy(m) <= 1.0 / math.sqrt(n)
        assert m == 1 or sequence_discrepancy(m - 1) > 1.0 / math.sqrt(n)
    many = [propose_nodes(n) for n in (10**3, 10**5, 10**7)]
    growth = np.diff(np.log(many)) / np.log(100.0)
    assert np.all((growth > 0.5) & (growth < 0.65))  # √n, and a logarithm
    bound = quantile_bound(1_000, 100, 1.0, y_bound=1.0)
    m = propose_nodes(1_000, statistical=bound.statistical, variation=bound.variation)
    assert bound.variation * sequence_discrepancy(m) <= bound.statistical
    assert bound.variation * sequence_discrepancy(m - 1) > bound.statistical


# ------------------------------------------------------------------------------------------- what is refused
def test_fits_without_a_bound_are_refused() -> None:
    X, y = sine(30, 0)
    with pytest.raises(ValueError, match="not fitted"):
        bound_of(InfiniteQuantileRegressor(), X, y)
    linear = InfiniteQuantileRegressor(kernel="linear", n_nodes=5).fit(X, y)
    with pytest.raises(ValueError, match="kappa_x"):
        bound_of(linear, X, y)
    assert bound_of(linear, X, y, kappa_x=1.5).beta > 0.0
    rough = InfiniteQuantileRegressor(task_kernel="piecewise-linear", noncrossing=0.0, n_nodes=5).fit(X, y)
    with pytest.raises(ValueError, match="no derivative"):
        bound_of(rough, X, y)
    tube = InfiniteTaskEstimator("epsilon-insensitive", n_nodes=5).fit(X, y)
    with pytest.raises(ValueError, match="EpsilonInsensitive"):
        bound_of(tube, X, y)
    integrated = InfiniteTaskEstimator("pinball", penalty="integrated", n_nodes=5).fit(X, y)
    with pytest.raises(ValueError, match="penalty"):
        bound_of(integrated, X, y)
    with pytest.raises(ValueError, match="expected"):
        bound_of(linear, X, y[:-1], kappa_x=1.5)


def test_models_without_a_bound_are_named() -> None:
    X, y = sine(30, 0)
    takes = "bound_of takes a fitted InfiniteQuantileRegressor or InfiniteCostSensitiveClassifier"
    for wrong in (Ridge().fit(X, y), None, "model", InfiniteQuantileRegressor):
        with pytest.raises(TypeError, match=takes):
            bound_of(wrong, X, y)
    for unfitted in (InfiniteQuantileRegressor(), InfiniteCostSensitiveClassifier()):
        with pytest.raises(NotFittedError, match=type(unfitted).__name__):
            bound_of(unfitted, X, y)


def test_a_pipeline_is_refused_and_its_last_step_is_taken() -> None:
    X, y = sine(30, 0)
    pipe = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(gamma=1.0, n_nodes=5)).fit(X, y)
    with pytest.raises(TypeError, match=r"a Pipeline was given.*pass the last step, and the inputs as they reach it"):
        bound_of(pipe, X, y)
    inner = bound_of(pipe[-1], pipe[:-1].transform(X), y)
    alone = InfiniteQuantileRegressor(gamma=1.0, n_nodes=5).fit(StandardScaler().fit_transform(X), y)
    assert inner.risk == bound_of(alone, StandardScaler().fit_transform(X), y).risk
    search = GridSearchCV(InfiniteQuantileRegressor(n_nodes=5), {"alpha": [0.1, 1.0]}, cv=2).fit(X, y)
    with pytest.raises(TypeError, match=r"a GridSearchCV was given.*best_estimator_"):
        bound_of(search, X, y)
    assert bound_of(search.best_estimator_, X, y).beta > 0.0


def test_free_biases_and_hard_constraints_are_refused() -> None:
    X, y = sine(30, 0)
    free = InfiniteCostSensitiveClassifier(alpha=0.1, alpha_bias=0.0, n_nodes=5).fit(X, np.sign(y))
    with pytest.raises(ValueError, match="alpha_bias=0"):
        bound_of(free, X, np.sign(y))
    # a regression with alpha_bias=0 has a ridge that does not matter, and so a bound that does not say anything
    assert bound_of(InfiniteQuantileRegressor(alpha=0.1, alpha_bias=0.0, n_nodes=5).fit(X, y), X, y).vacuous
    hard = InfiniteQuantileRegressor(alpha=0.1, noncrossing="hard", n_nodes=5).fit(X, y)
    with pytest.raises(ValueError, match="noncrossing='hard'"):
        bound_of(hard, X, y)


def test_predictions_put_in_order_do_no_worse_than_the_field() -> None:
    X, y = sine(30, 0)
    model = InfiniteQuantileRegressor(
        alpha=1e-5, gamma=15.0, task_gamma=30.0, noncrossing="rearrange", measure=(0.0, 1.0)
    )
    model._rearranged_weight = 0.0  # so that the field itself crosses
    model.fit(X, y)
    X_new, y_new = sine(500, 1)
    levels = np.arange(1, 1_000) / 1_000.0
    field, ordered = model.field_(X_new, levels), model.predict(X_new, levels)
    assert np.mean(np.diff(field, axis=1) < 0.0) > 0.02
    losses = [np.mean(Pinball().value(levels, y_new[:, None], h), axis=1) for h in (field, ordered)]
    assert np.all(losses[1] <= losses[0] + 1e-5)
    assert np.mean(losses[1]) < np.mean(losses[0])
    assert any("rearranged" in note for note in bound_of(model, X, y).notes)


def test_what_is_taken_for_granted_is_said() -> None:
    X, y = sine(30, 0)
    held: dict[str, Any] = {"alpha": 1e-3, "alpha_bias": None, "n_nodes": 5}
    chosen, ruled = (InfiniteQuantileRegressor(gamma=g, **held).fit(X, y) for g in (1.0, "median"))
    assert bound_of(chosen, X, y, y_bound=1.0).notes == ()
    assert any("gamma" in note for note in bound_of(ruled, X, y, y_bound=1.0).notes)
    by_data = InfiniteQuantileRegressor(gamma=1.0, n_nodes=5).fit(X, y)
    assert any("alpha" in note for note in bound_of(by_data, X, y, y_bound=1.0).notes)
    assert any("offset" in note for note in bound_of(by_data, X, y, y_bound=1.0).notes)
    assert any("y_bound" in note for note in bound_of(chosen, X, y).notes)
    drawn = InfiniteQuantileRegressor(gamma=1.0, n_nodes=5, features="nystroem", rank=3).fit(X, y)
    assert any("landmarks" in note for note in bound_of(drawn, X, y, y_bound=1.0).notes)


@each(
    ("name", "value"),
    [("n", 0), ("m", 1.5), ("alpha", 0.0), ("delta", 1.0), ("delta", 0.0), ("y_bound", -1.0), ("kappa_x", np.nan)],
    ids=str,
)
def test_bad_numbers_are_named(name: str, value: Any) -> None:
    given: dict[str, Any] = {"n": 10, "m": 10, "alpha": 1.0, "y_bound": 1.0}
    with pytest.raises(ValueError, match=f"{name}="):
        quantile_bound(**{**given, name: value})


def test_bad_requests_are_named() -> None:
    with pytest.raises(ValueError, match="form"):
        quantile_bound(10, 10, 1.0, y_bound=1.0, form="exact")
    with pytest.raises(ValueError, match="noncrossing"):
        quantile_bound(10, 10, 1.0, y_bound=1.0, noncrossing=1.0, form="printed")


def test_a_bound_of_numbers_alone_has_no_risk() -> None:
    bound = quantile_bound(10, 10, 1.0, y_bound=1.0)
    assert isinstance(bound, Bound)
    assert bound.risk is None
    assert bound.vacuous


def test_the_bound_of_quantiles_by_hand() -> None:
    """κ = κ' = B = 1, λ = ½, λ_nc = 0, n = 100, δ = e⁻², levels uniform on (0, 1), D_m → 0."""
    bound = quantile_bound(100, 50, 0.5, y_bound=1.0, delta=math.exp(-2.0), discrepancy=0.0)
    beta = 0.75 * 0.75 / (0.5 * 100)  # (ℒκ)²/(λn), ℒ = ¾
    rho = min(math.sqrt(2.0 * 0.5 / 0.5), 0.75 / 0.5)  # √(2L₀/λ), L₀ = B/2, and ℒκ/λ
    xi = 0.75 * (1.0 + rho)
    assert bound.beta == pytest.approx(beta)
    assert bound.xi == pytest.approx(xi)
    assert bound.stability == pytest.approx(2.0 * beta)
    assert bound.deviation == pytest.approx((4.0 * 100 * beta + xi) * math.sqrt(2.0 / 200.0))
    assert bound.variation == pytest.approx(1.0 + rho + 0.75 * rho)
    assert bound.total == pytest.approx(bound.stability + bound.deviation)
    # with nodes, means over Θ are known up to D_m, and the variation is paid for
    nodes = quantile_bound(100, 50, 0.5, y_bound=1.0, delta=math.exp(-2.0), discrepancy=1e-6)
    assert nodes.quadrature == pytest.approx(1e-6 * bound.variation, rel=1e-5)


# ------------------------------------------------------------------------------------- read from the fit, nowhere else
def test_the_bound_of_a_self_tuned_model_is_that_of_the_model_it_chose() -> None:
    X, y = make_sine(80, random_state=0)
    y = 5.0 + y
    options: dict[str, Any] = {"n_nodes": 10, "random_state": 0}
    tuned = InfiniteQuantileRegressorCV(kernels=["rbf"], alphas=[1e-1, 1e-3], **options).fit(X, y)
    explicit = InfiniteQuantileRegressor(
        kernel=tuned.kernel_,
        alpha=tuned.alpha_,
        alpha_bias=tuned.alpha_bias_,
        noncrossing=0.0,  # answers are sorted, and the fit has no penalty
        **options,
    ).fit(X, y - tuned.offset_)
    found, expected = bound_of(tuned, X, y), bound_of(explicit, X, y - tuned.offset_)
    assert found.risk == pytest.approx(expected.risk, rel=1e-9)
    assert found.empirical_risk == pytest.approx(expected.empirical_risk, rel=1e-9)
    assert found.risk == bound_of(tuned.best_estimator_, X, y).risk
    assert any("chose" in note for note in found.notes)


@each(
    "changed",
    [{"alpha": 10.0}, {"alpha_bias": 0.0}, {"noncrossing": 7.0}, {"measure": (0.4, 0.6)}, {"gamma": 1.0}],
    ids=repr,
)
def test_parameters_changed_after_the_fit_do_not_move_the_bound(changed: dict[str, Any]) -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=10, alpha=0.1).fit(X, y)
    before = bound_of(model, X, y)
    assert bound_of(model.set_params(**changed), X, y) == before


def test_a_measure_changed_in_place_does_not_move_the_bound() -> None:
    X, y = make_sine(60, random_state=0)
    model = InfiniteQuantileRegressor(n_nodes=10, alpha=0.1, measure=Uniform(0.1, 0.9)).fit(X, y)
    before = bound_of(model, X, y).risk
    model.measure.set_params(low=0.4, high=0.6)
    assert bound_of(model, X, y).risk == before
