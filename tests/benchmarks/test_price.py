"""The table of prices compares what it says: equal tables, fair scores, both commits, and nothing is run twice."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def module(name: str) -> Any:
    return importlib.import_module(name)


# --------------------------------------------------------------------------------------------------------- the problems
@pytest.mark.parametrize(
    ("name", "positives"),
    [
        ("3 000 × 15, 2% positives", 60),
        ("8 000 × 15 mixed columns, 2.25% positives", 180),
        ("5 000 × 20, 41 positives", 41),
    ],
)
def test_rare_positives_are_as_many_as_the_name_says(name: str, positives: int) -> None:
    problem = module("price_problems").PROBLEMS[name]
    data = problem.split(0)
    rows, columns = name.replace("5 000 × 20", "5 000×20").split(",")[0].split(" mixed")[0].split("×")
    assert data.X.shape == (int(rows.replace(" ", "")), int(columns))
    assert abs(int(data.y.sum()) - positives) <= 1
    assert np.mean(data.y_new) == pytest.approx(np.mean(data.y), abs=1.0 / data.y_new.size)


def test_every_problem_has_the_rows_of_its_kind_and_a_small_table_of_all_classes() -> None:
    problems = module("price_problems")
    for name, problem in problems.PROBLEMS.items():
        n = min(problem.n, 400)
        data, again, other = problem.split(3, n), problem.split(3, n), problem.split(4, n)
        small = problem.small()
        assert data.X.shape[0] == n == len(data.y), name
        assert len(data.X_new) == problems.TEST_ROWS == len(data.y_new), name
        np.testing.assert_array_equal(data.X, again.X)
        assert not np.array_equal(data.X, other.X)
        assert small.X.shape[1] == data.X.shape[1]
        assert len(small.y) <= 2 * problems.WARM_ROWS
        if problem.kind == "level sets":
            assert np.all(data.y == 1)
            assert np.mean(data.y_new == 0) == pytest.approx(0.2)
        elif problem.kind != "quantiles":
            assert set(small.y) == set(problem.split(0).y), name


def test_the_one_hot_table_has_zeros_and_ones_and_a_tail() -> None:
    problems = module("price_problems")
    X, y = problems.one_hot_table(0)
    assert X.shape == (9_800, 164)
    assert np.array_equal(X[:, :160].sum(axis=1), np.full(9_800, 3.0))
    assert y.min() == pytest.approx(0.1)
    assert np.median(y) == pytest.approx(0.9)
    assert np.sort(y)[-49:].sum() > 0.8 * y.sum(), "half a percent of the targets own the sum"


# ----------------------------------------------------------------------------------------------------------- the scores
def test_constant_quantiles_have_the_loss_one() -> None:
    fits = module("price_fits")
    rng = np.random.default_rng(0)
    y = np.exp(4.0 * rng.normal(size=500))
    data = {"y": y, "y_new": y[:100], "X_new": np.zeros((100, 1))}
    found = fits.quantile_scores(lambda X, levels: np.tile(np.quantile(y, levels), (len(X), 1)), data, fine=True)
    assert found == pytest.approx({"pinball": 1.0, "integrated": 1.0, "logarithms": 1.0})
    assert "logarithms" not in fits.quantile_scores(
        lambda X, levels: np.zeros((len(X), levels.size)), data | {"y": y - 1.0, "y_new": y[:100] - 1.0}, fine=False
    )


def test_a_quantile_has_the_smallest_pinball_loss() -> None:
    fits = module("price_fits")
    y = np.random.default_rng(1).normal(size=2_000)
    for level in fits.LEVELS:
        best, *others = (fits.pinball(y, np.full((1, 1), q), level) for q in np.quantile(y, [level, 0.4, 0.6]))
        assert best <= min(others)


def test_costs_count_both_mistakes_at_every_trade_off() -> None:
    fits = module("price_fits")
    y = np.array([1, 0, 0, 0])
    assert fits.tuned_cost(y, np.zeros(4)) == fits.MISSED / 4
    assert fits.tuned_cost(y, np.ones(4)) == 3 * fits.FALSE_ALARM / 4
    assert fits.tuned_cost(y, y) == 0.0
    alarm = np.ones((4, fits.THETAS.size))
    assert fits.decision_cost(y, alarm, 0.5 * (1 + fits.THETAS), 0.5 * (1 - fits.THETAS)) == pytest.approx(3 / 8)


def test_a_peer_decides_by_its_probabilities_what_costs_least() -> None:
    fits = module("price_fits")

    class Peer:
        def predict_proba(self, X: Any) -> Any:
            return np.column_stack([1.0 - X[:, 0], X[:, 0]])

    p = np.random.default_rng(0).random((4_000, 1))
    y = (np.random.default_rng(1).random(4_000) < p[:, 0]).astype(int)
    true = fits._probabilities(Peer(), {"X_new": p, "y_new": y})
    wrong = fits._probabilities(Peer(), {"X_new": np.sqrt(p), "y_new": y})
    assert true["AUC"] == wrong["AUC"]
    assert all(true[score] < wrong[score] for score in ("cost", "costs", "log loss"))


def test_fractions_outside_are_those_of_normal_rows() -> None:
    fits = module("price_fits")
    rank = np.arange(100) / 100
    outside = rank[:, None] < fits.NUS
    found = fits.outside_scores(
        np.vstack([outside, np.ones((7, fits.NUS.size))]),
        np.append(rank, -np.ones(7)),
        np.append(np.ones(100), np.zeros(7)),
    )
    assert found == pytest.approx({"deviation": 0.0, "at .1": 0.1, "AUC": 1.0})


def test_a_fit_that_fails_or_misses_a_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = module("price_fits")

    def raises(error: Exception) -> Any:
        def fit(data: Any) -> Any:
            raise error

        return fits.Fit("", fit, fits._fixed)

    monkeypatch.setitem(
        fits.FITS, "none", {"a": raises(ModuleNotFoundError("no booster")), "b": raises(ValueError("!"))}
    )
    assert fits.measured("none", "a", {}, None) == {"missing": "no booster"}
    assert fits.measured("none", "b", {}, None) == {"failed": "ValueError: !"}


# ------------------------------------------------------------------------------------------------------------- the plan
def test_every_row_names_a_problem_and_fits_that_exist() -> None:
    fits, problems, report, tables = map(module, ("price_fits", "price_problems", "price_rows", "price_tables"))
    for row in report.ROWS:
        known = fits.FITS[problems.PROBLEMS[row.problem].kind]
        assert {row.fit, *row.peers} <= known.keys()
        assert row.fit in fits.OURS
        assert not set(row.peers) & set(fits.OURS)
    assert len({(row.problem, row.fit) for row in report.ROWS}) == len(report.ROWS)
    for fit in report.QUALITY_FITS:
        assert fit.fit in fits.FITS[fit.kind]
        assert len(tables.TABLES[fit.kind]) >= 10


def test_sides_alternate_and_a_seed_ends_before_the_next_begins() -> None:
    units = list(module("price").quality_units("old", "new"))
    assert [unit["side"] for unit in units] == ["base", "head"] * (len(units) // 2)
    assert [unit["seed"] for unit in units] == sorted(unit["seed"] for unit in units)
    assert all(
        {**a, "side": "", "code": ""} == {**b, "side": "", "code": ""}
        for a, b in zip(units[::2], units[1::2], strict=True)
    )


def test_tables_without_downloads_are_split_by_their_seed() -> None:
    tables = module("price_tables")
    for kind, name in (("quantiles", "diabetes"), ("costs", "moons"), ("classes", "wine"), ("level sets", "sensors")):
        split = tables.TABLES[kind][name]
        np.testing.assert_array_equal(split(0).X, split(0).X)
        assert not np.array_equal(split(0).X, split(1).X)
        assert len(split(0).y) <= tables.MOST_ROWS
        if kind == "level sets":
            assert np.mean(split(0).y_new == 0) == pytest.approx(0.2, abs=0.001)


# ------------------------------------------------------------------------------------------------------- what is stored
class Counting:
    """Instead of fits, which take time: every unit has the loss one."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def run(self, unit: dict[str, Any]) -> dict[str, Any]:
        self.seen.append(unit)
        if unit["fit"] == "CatBoost":
            return {"missing": "no CatBoost"}
        return {"seconds": 1.0, "wall": 2.0, "scores": {"integrated": 1.0}, "gap": None, "warnings": []}


def test_what_is_stored_is_not_run_again_and_a_missing_peer_is_tried_again(tmp_path: Path) -> None:
    price = module("price")
    units = [unit for unit in price.price_units("old", "new") if unit["table"] == "10 000 × 20"]
    for expected in (units, [unit for unit in units if unit["fit"] == "CatBoost"]):
        runner = Counting()
        with price.Store(tmp_path / "price.jsonl", {"version": 1}).open() as store:
            price.run(units, runner, store)
        assert runner.seen == expected


def test_the_newest_result_of_a_fit_counts_and_only_this_base(tmp_path: Path) -> None:
    price = module("price")
    name = {"part": "price", "kind": "quantiles", "table": "10 000 × 20", "fit": "default", "seed": 0}
    with price.Store(tmp_path / "price.jsonl", {}).open() as store:
        for side, code in (("head", "one"), ("base", "old"), ("head", "two"), ("base", "older")):
            store.add({"unit": {**name, "side": side, "code": code}, "result": {}})
        assert {r["unit"]["code"] for r in price.newest(store, "old")} == {"old", "two"}


# ------------------------------------------------------------------------------------------------------------- the page
def test_ratios_are_of_means_with_the_error_of_paired_differences() -> None:
    compared = module("price_report").compared
    one = compared([1.0, 2.0, 3.0], [1.1, 2.2, 3.3])
    assert (one.ratio, one.error) == pytest.approx((1.1, 0.0), abs=1e-12)
    assert one.beyond
    assert compared([0.8], [0.9], more_is_better=True).ratio == pytest.approx(8 / 9)
    noisy = compared([1.0, 1.0], [0.8, 1.4])
    assert noisy.ratio == pytest.approx(1.1)
    assert noisy.error == pytest.approx(0.3)
    assert not noisy.beyond
    assert compared([0.0, 0.0], [0.0, 0.0]).ratio == 1.0
    assert compared([0.0, 0.0], [0.1, 0.0]).ratio == np.inf


def test_the_mean_over_tables_is_geometric() -> None:
    report = module("price_report")
    each = [report.Comparison(1.0, 2.0, 2.0, 0.2), report.Comparison(1.0, 0.5, 0.5, 0.05)]
    mean, error = report.geometric(each)
    assert mean == pytest.approx(1.0)
    assert error == pytest.approx(0.1 / np.sqrt(2.0))


def result(seconds: float, wall: float = 0.0, **scores: float) -> dict[str, Any]:
    return {"seconds": seconds, "wall": wall, "scores": scores, "gap": None, "warnings": []}


def test_a_goal_is_kept_by_the_processor_and_a_budget_by_the_clock() -> None:
    report = module("price_report")
    goal, budget = (
        module("price_rows").Row("10 000 × 20", "default", 3.0),
        module("price_rows").Row("5 000 × 30", "tuned in time"),
    )
    for row, found, kept in (
        (goal, result(3.0, 9.0, pinball=1.0), True),
        (goal, result(3.1, 1.0, pinball=1.0), False),
        (goal, {"failed": "ValueError"}, False),
        (budget, result(40.0, 24.9, integrated=1.0), True),
        (budget, result(9.0, 25.1, integrated=1.0), False),
        (module("price_rows").Row("10 000 × 20", "default"), result(1.0, pinball=1.0), None),
    ):
        assert report.verdict(row, lambda *_, found=found: {0: found}) is kept


def test_the_slowest_sample_must_keep_the_goal() -> None:
    row = module("price_rows").Row("10 000 × 20", "default", 3.0)
    found = {0: result(1.0, 2.0, pinball=1.0), 1: result(3.5, 9.0, pinball=1.0)}
    assert module("price_report").verdict(row, lambda *_: found) is False
    assert module("price_report").slowest(found, "seconds") == "1, at most 3.5"


def test_a_budget_is_kept_only_by_a_model_that_is_no_worse_than_the_default() -> None:
    report = module("price_report")
    row = module("price_rows").Row("5 000 × 30", "tuned in time")
    for losses, kept in (((0.9, 1.0), True), ((1.1, 0.95), True), ((1.1, 1.101), False)):
        found = {
            "default": {seed: result(1.0, integrated=1.0) for seed in range(2)},
            "tuned in time": {seed: result(9.0, integrated=loss) for seed, loss in enumerate(losses)},
        }
        assert report.verdict(row, lambda table, fit, side, found=found: found[fit]) is kept


def test_the_page_tells_both_sides_and_what_misses() -> None:
    report = module("price_report")

    def record(part: str, kind: str, table: str, fit: str, side: str, seed: int, found: dict[str, Any]) -> Any:
        unit = {"part": part, "kind": kind, "table": table, "fit": fit, "side": side, "seed": seed}
        return {"unit": unit, "result": found}

    name = "1 000 × 30"
    records = [
        record("price", "quantiles", name, "tuned", "head", 0, result(7.0, integrated=0.5)),
        record("price", "quantiles", name, "default", "head", 0, result(1.0, integrated=0.4)),
        record("price", "quantiles", name, "LightGBM", "peer", 0, result(2.5, pinball=0.45)),
        *(
            record("quality", "quantiles", "diabetes", "default", side, seed, result(0.1, integrated=loss + seed))
            for side, loss in (("base", 1.0), ("head", 1.1))
            for seed in range(2)
        ),
    ]
    text = report.page(records, "abc1234")
    assert "0 of 1 goals are kept." in text
    assert f"| {name} | `InfiniteQuantileRegressorCV()` | 7 | 6 | **no** |" in text
    assert "| | *LightGBM, 7 levels* | 2.5 |" in text
    assert f"| {name} | `InfiniteQuantileRegressorCV()` | 1 | 0.4 | 0.5 | 1.250 |" in text
    assert "**more than .5%**" in text
    assert "| diabetes | 2 | 1.5 | 1.6 | 1.067 ± 0.022 |" in text
    assert "level sets, default" not in text, "what was not run is not there"


@pytest.mark.slow
def test_a_small_run_makes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    price = module("price")
    monkeypatch.setenv("INFINITASK_COMPILED", "0")  # fresh copies would have to be compiled
    page = tmp_path / "price.md"
    price.main(["--quick", "--page", str(page)])
    text = page.read_text(encoding="utf-8")
    assert "failed" not in text
    assert text.count("1.0000 ± 0.0000") == 7, "the working tree beside itself"
    signature = module("pages").read(text)
    assert signature is not None
    assert signature.command == "make bench-price"
