"""Quantiles of right-censored targets: the weights, the fit, and what is refused."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from infinitask import (
    CrossConformal,
    InfiniteCensoredQuantileRegressor,
    InfiniteQuantileRegressor,
    TransformedTarget,
    fit_path,
    load,
    save,
)
from infinitask.measures import Discrete
from infinitask.metrics import integrated_pinball_loss
from infinitask.streaming import Blocks
from infinitask.tasks import Censoring, KaplanMeier

QUICK: dict[str, Any] = {"n_nodes": 8, "alpha": 1e-2, "gamma": 1.0}
SURVIVAL = np.dtype([("status", bool), ("days", float)])
"""The dtype of targets in scikit-survival, whose names are free."""


def lifetimes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, lifetimes with known quantiles, and independent censoring times."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 1))
    return X, quantile(X, rng.uniform(size=(n, 1)))[:, 0], rng.uniform(0.0, 3.0, size=n)


def quantile(X: np.ndarray, level: Any) -> np.ndarray:
    """The quantiles of these lifetimes, which are lognormal given x."""
    return np.exp(0.5 * np.sin(2.0 * np.pi * X[:, :1]) + (0.2 + 0.3 * X[:, :1]) * norm.ppf(level))


def observed(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, times and events; a third of the rows are censored."""
    X, lifetime, end = lifetimes(n, seed)
    return X, np.minimum(lifetime, end), lifetime <= end


def whole_times(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times with many ties, events and weights."""
    rng = np.random.default_rng(seed)
    return rng.integers(1, 12, size=n).astype(float), rng.uniform(size=n) < 0.6, rng.uniform(0.5, 2.0, size=n)


def product_limit(time: np.ndarray, event: np.ndarray, weight: np.ndarray, t: float, *, of_events: bool) -> float:
    """∏ (1 − leaving/at risk), by the definition: of the events up to t, or of the censorings before t."""
    value = 1.0
    for u in np.unique(time[event == of_events]):
        if u > t or (u == t and not of_events):
            break
        at_risk = (time > u) | ((time == u) & (event == of_events)) | ((time == u) & of_events)
        value *= 1.0 - np.sum(weight[(time == u) & (event == of_events)]) / np.sum(weight[at_risk])
    return value


# -------------------------------------------------------------------------------------------------- weights
def test_kaplan_meier_of_an_example_by_hand() -> None:
    time = np.array([1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 4.0])
    event = np.array([False, True, False, True, True, False, True])
    G = KaplanMeier.of(time, event, np.ones(7))
    # one of seven is censored at 1; at 2 two events come first, then one of four; at 4 the last one
    assert G.times.tolist() == [1.0, 2.0, 4.0]
    at = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0])
    expected = [1.0, 1.0, 6 / 7, 6 / 7, 6 / 7 * 3 / 4, 6 / 7 * 3 / 4, 0.0]
    np.testing.assert_allclose(G(None, at), expected, rtol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_kaplan_meier_is_the_product_limit_formula(seed: int) -> None:
    time, event, weight = whole_times(seed=seed)
    assert np.intersect1d(time[event], time[~event]).size > 3, "events and censorings at the same time"
    at = np.arange(0.5, 13.0, 0.5)
    expected = [product_limit(time, event, weight, t, of_events=False) for t in at]
    np.testing.assert_allclose(KaplanMeier.of(time, event, weight)(None, at), expected, atol=1e-14)


@pytest.mark.parametrize("floor", [1e-6, 0.05, 0.4])
@pytest.mark.parametrize("seed", range(3))
def test_the_weights_redistribute_the_mass_of_censored_rows(seed: int, floor: float) -> None:
    """The weighted distribution of the complete rows is the Kaplan–Meier estimate of the events, up to the horizon."""
    time, event, weight = whole_times(seed=seed)
    censoring = Censoring.of(None, floor, None, time, event, weight)
    target, w = censoring.complete(None, time, event, weight)
    assert np.sum(w) == pytest.approx(np.sum(weight), rel=1e-12)
    assert np.max(w / weight) <= 1.0 / floor
    for t in np.unique(target[target < censoring.horizon]):
        below = np.sum(w[target <= t]) / np.sum(w)
        assert below == pytest.approx(1.0 - product_limit(time, event, weight, t, of_events=True), abs=1e-12)
    if floor == 0.4:
        assert censoring.horizon < np.max(time[event]), "a floor that cuts the follow-up"


def test_each_group_keeps_its_mass_if_the_censoring_depends_on_it() -> None:
    time, event, weight = whole_times(200)
    group = np.arange(200) % 2
    time = np.where(group == 1, np.minimum(time, 6.0), time)  # a shorter study
    event &= (group == 0) | (time < 6.0)
    G = [KaplanMeier.of(time[group == k], event[group == k], weight[group == k]) for k in (0, 1)]
    X = group[:, None].astype(float)
    censoring = Censoring.of(lambda X, t: np.where(X[:, 0] == 1, G[1](X, t), G[0](X, t)), 0.05, X, time, event, weight)
    target, w = censoring.complete(X, time, event, weight)
    assert np.max(target[group == 1]) <= 6.0 < np.max(target[group == 0])
    for k in (0, 1):
        assert np.sum(w[group == k]) == pytest.approx(np.sum(weight[group == k]), rel=1e-12)


def test_censored_rows_before_the_horizon_have_no_weight() -> None:
    time, event, weight = whole_times()
    censoring = Censoring.of(None, 0.05, None, time, event, weight)
    _, w = censoring.complete(None, time, event, weight)
    early = time < censoring.horizon
    assert np.array_equal(w[early] > 0.0, event[early])
    assert np.all(w[~early] > 0.0)


def test_beyond_the_last_event_nothing_is_identified() -> None:
    time, event = np.array([1.0, 2.0, 3.0, 3.0, 3.0]), np.array([True, True, False, False, False])
    censoring = Censoring.of(None, 0.05, None, time, event, np.ones(5))
    assert (censoring.horizon, censoring.identified) == (2.0, pytest.approx(0.4))
    target, w = censoring.complete(None, time, event, np.ones(5))
    assert target.tolist() == [1.0, 2.0, 2.0, 2.0, 2.0]
    assert w.tolist() == [1.0] * 5


# ------------------------------------------------------------------------------------------------------ laws
@pytest.mark.parametrize("params", [{}, {"noncrossing": "rearrange", "smoothing": 0.1, **QUICK}])
def test_without_censored_rows_it_is_the_quantile_regressor(params: dict[str, Any]) -> None:
    X, y, _ = observed(80)
    weight = np.random.default_rng(0).integers(0, 3, size=80)
    plain = InfiniteQuantileRegressor(**params).fit(X, y, sample_weight=weight)
    levels = [0.1, 0.5, 0.99]
    every = np.ones(80, dtype=bool)
    for event in (None, every, every.astype(int)):
        model = InfiniteCensoredQuantileRegressor(**params).fit(X, y, event, weight)
        assert np.array_equal(model.predict(X, levels), plain.predict(X, levels))
        assert (model.objective_, model.alpha_) == (plain.objective_, plain.alpha_)
        assert model.score(2.0 * X, 2.0 * y, event) == plain.score(2.0 * X, 2.0 * y)
        assert (model.censoring_.horizon, model.censoring_.identified) == (np.inf, 1.0)


def test_it_solves_the_weighted_problem() -> None:
    """Judged by cvxpy: min Σ w_i ρ_θ(min(t_i, τ) − h(x_i)(θ))/Σ w_i + (λ/2)‖h‖², with a bias of the task kernel."""
    X, y, event = observed(47)
    levels, gamma, task_gamma, alpha = np.array([0.2, 0.5, 0.7]), 2.0, 1.0, 1e-2
    model = InfiniteCensoredQuantileRegressor(
        measure=Discrete(levels),
        quadrature="discrete",
        gamma=gamma,
        task_gamma=task_gamma,
        alpha=alpha,
        alpha_bias=None,
        noncrossing=0.0,
        tol=1e-8,
    ).fit(X, y, event)
    horizon = model.censoring_.horizon
    target = np.minimum(y, horizon)
    G = np.array([product_limit(y, event, np.ones(47), t, of_events=False) for t in target])
    w = np.where(event | (y >= horizon), 1.0 / G, 0.0)
    assert 0.2 < np.mean(~event) < 0.5
    assert np.max(w) > 2.0, "weights that matter"

    def root(K: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(K)
        return vectors * np.sqrt(np.maximum(values, 0.0))

    left = root(np.exp(-gamma * (X - X.T) ** 2) + 1.0)
    right = root(np.exp(-task_gamma * (levels[:, None] - levels) ** 2))
    coef = cp.Variable((47, 3))
    h = left @ coef @ right.T
    r = target[:, None] - h
    losses = cp.sum(cp.maximum(cp.multiply(levels[None], r), cp.multiply(levels[None] - 1.0, r)), axis=1) / 3.0
    problem = cp.Problem(cp.Minimize((w / np.sum(w)) @ losses + 0.5 * alpha * cp.sum_squares(coef)))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert model.objective_ == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(model.predict(X, levels), h.value, atol=1e-3)


def test_it_is_nearer_to_the_true_quantiles_than_fits_that_ignore_the_censoring() -> None:
    """The pinball loss of uncensored lifetimes beyond that of their true quantiles, on average over five samples."""
    levels = np.linspace(0.1, 0.8, 8)
    new, lifetime, _ = lifetimes(4000, 99)
    best = integrated_pinball_loss(lifetime, quantile(new, levels), levels)

    def excess(model: Any) -> float:
        return integrated_pinball_loss(lifetime, model.predict(new, levels), levels) - best

    found = []
    for seed in range(5):
        X, y, event = observed(500, seed)
        assert 0.3 < np.mean(~event) <= 0.4
        models = (
            InfiniteCensoredQuantileRegressor(n_nodes=20).fit(X, y, event),
            InfiniteQuantileRegressor(n_nodes=20).fit(X[event], y[event]),
            InfiniteQuantileRegressor(n_nodes=20).fit(X, y),
        )
        found.append([excess(model) for model in models])
    assert np.all(np.diff(found, axis=1) > 0.0), "the order of every sample"
    ours, dropped, as_events = np.mean(found, axis=0)
    assert 0.0 < ours < 0.6 * dropped < 0.6 * 0.5 * as_events


def test_levels_below_the_end_of_a_study_are_not_moved_by_it() -> None:
    X, lifetime, _ = lifetimes(600)
    y, event = np.minimum(lifetime, 1.2), lifetime <= 1.2
    same = {"n_nodes": 20, "alpha": 1e-3, "gamma": 10.0}
    with pytest.warns(UserWarning, match=r"levels above 0\.64 are not identified: 36% of the rows outlive .* at 1\.19"):
        model = InfiniteCensoredQuantileRegressor(**same).fit(X, y, event)
    median = quantile(X, 0.5)[:, 0]
    dropped = InfiniteQuantileRegressor(**same).fit(X[event], y[event])
    whole = InfiniteQuantileRegressor(**same).fit(X, lifetime)
    errors = [np.mean(np.abs(each.predict(X, 0.5) - median)[median < 1.0]) for each in (whole, model, dropped)]
    assert errors[1] < 1.3 * errors[0] < 0.7 * errors[2]


def test_a_censoring_that_depends_on_x_is_corrected_by_a_model_of_it() -> None:
    X, lifetime, _ = lifetimes(800)
    rng = np.random.default_rng(5)
    scale = 1.0 + 6.0 * (X[:, 0] < 0.25)  # rows with long lives are seldom censored, the others often
    end = rng.exponential(scale)
    y, event = np.minimum(lifetime, end), lifetime <= end

    def survival(rows: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.exp(-t / (1.0 + 6.0 * (rows[:, 0] < 0.25)))

    levels = np.linspace(0.1, 0.8, 8)
    error = {}
    for name, censoring in {"marginal": "kaplan-meier", "given x": survival}.items():
        model = InfiniteCensoredQuantileRegressor(censoring=censoring, n_nodes=20).fit(X, y, event)
        error[name] = np.mean(np.abs(model.predict(X, levels) - quantile(X, levels)))
        assert -1.0 < model.score(X, y, event) < 1.0
    assert error["given x"] < 0.9 * error["marginal"]


def test_units_of_the_times_do_not_matter() -> None:
    X, y, event = observed(120)
    one = InfiniteCensoredQuantileRegressor(n_nodes=10).fit(X, y, event)
    other = InfiniteCensoredQuantileRegressor(n_nodes=10).fit(X, 365.0 * y, event)
    np.testing.assert_allclose(other.predict(X, [0.2, 0.6]), 365.0 * one.predict(X, [0.2, 0.6]), rtol=1e-6)
    assert other.censoring_.identified == one.censoring_.identified


def test_a_weight_of_two_is_a_row_that_occurs_twice() -> None:
    X, y, event = observed(60)
    times = np.random.default_rng(1).integers(1, 4, size=60)
    weighted = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event, times)
    repeated = InfiniteCensoredQuantileRegressor(**QUICK).fit(
        *(np.repeat(part, times, axis=0) for part in (X, y, event))
    )
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)
    assert weighted.censoring_.identified == pytest.approx(repeated.censoring_.identified)
    scores = [model.score(X, y, event, times) for model in (weighted, repeated)]
    assert scores[0] == pytest.approx(scores[1])


def test_the_score_takes_the_censoring_into_account() -> None:
    X, y, event = observed(150)
    new, t, seen = observed(400, 7)
    model = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)
    target, weight = model.censoring_.complete(new, t, seen, np.ones(400))
    plain = InfiniteQuantileRegressor(**QUICK).fit(X, y)
    plain.field_ = model.field_
    assert model.score(new, t, seen) == pytest.approx(plain.score(new, target, weight), rel=1e-12)
    assert np.mean(weight == 0.0) > 0.2


# -------------------------------------------------------------------------------------------------- interface
def test_a_structured_array_says_the_same_as_times_and_events() -> None:
    X, y, event = observed(60)
    target = np.array(list(zip(event, y, strict=True)), dtype=SURVIVAL)
    model = InfiniteCensoredQuantileRegressor(**QUICK)
    one, other = clone(model).fit(X, y, event), clone(model).fit(X, target)
    assert np.array_equal(one.predict(X), other.predict(X))
    assert one.score(X, y, event) == other.score(X, target)
    (on_path,) = fit_path(model, X, target, alphas=[1e-2])
    np.testing.assert_allclose(on_path.predict(X), one.predict(X), atol=1e-2)
    search = GridSearchCV(model, {"alpha": [1e-2, 1.0]}, cv=2).fit(X, target)
    assert search.best_params_["alpha"] == 1e-2


def test_a_pickle_predicts_the_same_bits() -> None:
    X, y, event = observed(60)
    model = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y, event) == model.score(X, y, event)
    assert np.array_equal(clone(model).fit(X, y, event).predict(X), model.predict(X))


def test_a_file_predicts_the_same_bits(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    X, y, event = observed(60)
    model = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y, event) == model.score(X, y, event)


def test_what_can_be_asked_of_quantile_functions() -> None:
    X, y, event = observed(60)
    model = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)
    assert model.predict_interval(X, 0.5).shape == (60, 2)
    assert model.predict_distribution(X).mean().shape == (60,)
    assert model.predict_cdf(X, y).shape == (60,)
    assert model.sample(X, 3, random_state=0).shape == (60, 3)
    held = lifetimes(40, 3)
    low, high = model.conformalize(held[0], held[1], np.ones(40)).predict_interval(X, 0.8).T
    assert np.all(low < high)


def test_a_level_that_is_not_identified_earns_a_warning_that_names_it() -> None:
    X, lifetime, _ = lifetimes(200)
    y, event = np.minimum(lifetime, 1.2), lifetime <= 1.2
    model = InfiniteCensoredQuantileRegressor(measure=(0.0, 0.6), **QUICK).fit(X, y, event)
    assert 0.55 < model.censoring_.identified < 0.75
    model.predict(X, [0.1, 0.5])
    with pytest.warns(UserWarning, match="not identified"):
        whole = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)
    with pytest.warns(UserWarning, match=r"level 0\.9 was asked for; the data identify levels up to 0\.\d+"):
        whole.predict(X, [0.1, 0.9])
    with pytest.warns(UserWarning, match=r"level 0\.95 was asked for"):
        whole.predict_interval(X, 0.9)


def test_levels_are_identified_by_the_rows_with_the_shortest_follow_up() -> None:
    X, lifetime, _ = lifetimes(600)
    rng = np.random.default_rng(2)
    short = rng.uniform(size=600) < 0.4
    X = np.column_stack([X, short])
    end = np.where(short, 1.0, 9.0) * rng.uniform(0.5, 1.0, size=600)
    y, event = np.minimum(lifetime, end), lifetime <= end

    def survival(rows: np.ndarray, t: np.ndarray) -> np.ndarray:
        return np.clip(2.0 * (1.0 - t / np.where(rows[:, 1] == 1.0, 1.0, 9.0)), 0.0, 1.0)

    with pytest.warns(UserWarning, match="of the rows with the shortest follow-up outlive it"):
        model = InfiniteCensoredQuantileRegressor(censoring=survival, **QUICK).fit(X, y, event)
    reached = np.mean(lifetime[short] <= 1.0)
    assert reached - 0.15 < model.censoring_.identified < reached + 0.05 < 0.8 < np.mean(lifetime <= end.max())
    assert model.censoring_.identified < model.censoring_.average
    with pytest.warns(UserWarning, match="levels up to 0.*with the shortest follow-up"):
        model.predict(X, 0.7)


def test_events_must_be_told_to_a_model_of_censored_rows() -> None:
    X, y, event = observed(60)
    model = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)
    for ask in (model.score, model.conformalize):
        with pytest.raises(ValueError, match="The events of y were not given, and 30% of the rows"):
            ask(X, y)
    known = InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y)
    assert known.score(X, y) == known.score(X, y, np.ones(60))


def test_models_of_other_targets_refuse_times_with_events() -> None:
    y = np.array(list(zip(E0, Y0, strict=True)), SURVIVAL)
    model = InfiniteCensoredQuantileRegressor(**QUICK)
    for wrapper in (CrossConformal(model), TransformedTarget(model), InfiniteQuantileRegressor(**QUICK)):
        with pytest.raises(ValueError, match=r"y has the fields \('status', 'days'\); this model needs targets that"):
            wrapper.fit(X0, y)


def test_few_heavy_rows_earn_a_warning() -> None:
    X, y, event = observed(60)
    late = np.zeros(60, dtype=bool)
    late[np.argsort(y)[-6:]] = True
    with pytest.warns(
        UserWarning, match=r"90% of the rows are censored, and the weights .* worth only \d of 60 equal rows"
    ):
        InfiniteCensoredQuantileRegressor(floor=1e-3, **QUICK).fit(X, y, late)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        InfiniteCensoredQuantileRegressor(**QUICK).fit(X, y, event)


# -------------------------------------------------------------------------------------------------- refusals
def _wrong_survival(value: Any) -> Any:
    return lambda X, t: value


X0, Y0, E0 = observed(30)
REFUSED: dict[str, tuple[dict[str, Any], tuple[Any, ...], str]] = {
    "events too few": ({}, (X0, Y0, E0[:-1]), r"event of shape \(29,\) was given for 30 targets; give one True or"),
    "events that are numbers": ({}, (X0, Y0, 2 * E0), r"event contains .*2.*; it must be True \(1\) where"),
    "events with NaN": ({}, (X0, Y0, np.where(E0, 1.0, np.nan)), "event contains .*nan.*; it must be True"),
    "events that are texts": ({}, (X0, Y0, np.where(E0, "yes", "no")), "event contains .*; it must be True"),
    "all censored": ({}, (X0, Y0, np.zeros(30, bool)), "event is False for every row that counts; at least one event"),
    "observed rows without weight": ({}, (X0, Y0, E0, 1.0 * ~E0), "event is False for every row that counts"),
    "negative weights": ({}, (X0, Y0, E0, -np.ones(30)), "sample_weight"),
    "NaN in y": ({}, (X0, np.where(E0, Y0, np.nan), E0), "y contains NaN"),
    "NaN in X": ({}, (np.where(E0[:, None], X0, np.nan), Y0, E0), "X contains NaN"),
    "y too short": ({}, (X0, Y0[:-1], E0[:-1]), "y"),
    "events twice": ({}, (X0, np.array(list(zip(E0, Y0, strict=True)), SURVIVAL), E0), "give the events once"),
    "three fields": ({}, (X0, np.zeros(30, [("a", bool), ("b", float), ("c", float)])), "a structured array needs two"),
    "unknown censoring": ({"censoring": "cox"}, (X0, Y0, E0), "censoring='cox' was given; it must be one of"),
    "floor of a percentage": ({"floor": 5}, (X0, Y0, E0), r"floor=5 was given; .* Did you mean 0\.05"),
    "a survival above one": ({"censoring": _wrong_survival(np.full(30, 2.0))}, (X0, Y0, E0), "values from 2 to 2"),
    "a survival that rises": ({"censoring": lambda X, t: 0.3 + t / 9.0}, (X0, Y0, E0), "C ≥ t . x., which falls"),
    "a survival that is a number": ({"censoring": _wrong_survival(1.0)}, (X0, Y0, E0), r"an array of shape \(\)"),
    "a floor that none reach": ({"censoring": _wrong_survival(np.full(30, 0.01))}, (X0, Y0, E0), "Use a smaller floor"),
}


@pytest.mark.parametrize(("params", "given", "sentence"), REFUSED.values(), ids=REFUSED)
def test_wrong_arguments_are_refused(params: dict[str, Any], given: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        InfiniteCensoredQuantileRegressor(**{**QUICK, **params}).fit(*given)


def test_rows_that_are_not_in_memory_are_refused() -> None:
    with pytest.raises(TypeError, match="the censoring weights need all rows"):
        InfiniteCensoredQuantileRegressor().fit(Blocks.of_arrays(X0, Y0))


def test_conformal_calibration_refuses_censored_rows() -> None:
    model = InfiniteCensoredQuantileRegressor(**QUICK).fit(*observed(60))
    with pytest.raises(ValueError, match=r"event is False for \d+ of 30 rows; conformalize needs rows whose events"):
        model.conformalize(X0, Y0, E0)
