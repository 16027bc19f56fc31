"""The pages in a browser: every control moves, and what is shown is what Python says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.datasets import make_mixture
from infinitask.report import explore
from infinitask.tuning import InfiniteQuantileRegressorCV
from tests.report.browser import Tab

READY = "return Number(document.documentElement.dataset.ready)"


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with Tab() as found:
        yield found


def table(n: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)) * np.array([1.0, 30.0, 0.01]) + np.array([0.0, 200.0, 0.5])
    return X, 1_000.0 + 100.0 * np.sin(X[:, 0]) + 0.3 * X[:, 1] * rng.normal(size=n)


def is_quiet(tab: Tab) -> None:
    """No complaint in the console, and nothing asked of the network."""
    assert tab.complaints() == []
    assert tab.requests() == set()


def test_quantiles(tab: Tab) -> None:
    X, y = table()
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian"], random_state=0, n_nodes=10).fit(X[:80], y[:80])
    assert model.levels_ is not None  # calibrated and sorted: the longest way to an answer
    tab.open(explore(model, X[40:], y[40:], names=["age", "weight", "<script>"]))
    assert tab.driver.execute_script(READY) < 2_000
    assert tab.driver.execute_script("return [...document.querySelectorAll('label')].map((l) => l.textContent)").count(
        "<script>"
    )
    start = tab.compared

    def agrees(x: np.ndarray, level: float, coverage: float, limit: float, ends: list[float]) -> None:
        tab.agrees("out-median", model.predict(x, 0.5))
        tab.agrees("out-quantile", model.predict(x, level))
        tab.agrees("out-interval", model.predict_interval(x, coverage))
        tab.agrees("out-above", 1.0 - model.predict_cdf(x, limit))
        tab.agrees("out-between", model.predict(x, ends))

    typical = np.quantile(X[40:], 0.5, axis=0, method="inverted_cdf")[None, :]
    assert np.array_equal(tab.x(), typical)
    tab.type("threshold", 1_050.0)
    agrees(typical, 0.5, 0.9, 1_050.0, [0.05, 0.95])
    for j, value in enumerate([0.7, 190.25, 0.493]):
        tab.type(f"input-{j}", value)
    x = np.array([[0.7, 190.25, 0.493]])
    tab.type("level", 97.5)
    tab.type("coverage", 80)
    tab.type("from", 20)
    tab.type("to", 40)
    agrees(x, 0.975, 0.8, 1_050.0, [0.2, 0.4])
    for name, steps in (
        ("coverage", -3),
        ("level", -2),
        ("threshold", 4),
        ("input-0", 2),
        ("input-1", -2),
        ("input-2", 1),
    ):
        before = tab.box(name)
        tab.slide(name, steps)
        assert (tab.box(name) - before) * steps > 0.0
    limit = float(tab.asked("page.threshold"))
    agrees(tab.x(), tab.box("level") / 100, tab.box("coverage") / 100, limit, [0.2, 0.4])
    for row in (3, 57, 20):
        tab.pick(row)
        assert np.array_equal(tab.x(), X[[40 + row]])
        agrees(X[[40 + row]], tab.box("level") / 100, tab.box("coverage") / 100, limit, [0.2, 0.4])
        assert f"Row {row}." in tab.text("row-line")
    held = np.mean(
        [low <= t <= high for (low, high), t in zip(model.predict_interval(X[40:], 0.77), y[40:], strict=True)]
    )
    tab.type("coverage", 77)
    tab.agrees("out-held", held)
    tab.press("random-row")
    assert np.any(np.all(tab.x() == X[40:], axis=1))
    tab.choose("along", "1")
    # the density, and rows far beyond the table
    law = model.predict_distribution(X[:10])
    for i in range(10):
        found = tab.asked("model.pdf(model.curve(model.left(arguments[0])), 1010)", X[i].tolist())
        assert abs(found - law.pdf(1_010.0)[i]) <= 1e-6
        tab.compared += 1
    tab.type("input-0", 40.0)
    assert "age" in tab.text("range-line")
    agrees(tab.x(), tab.box("level") / 100, 0.77, limit, [0.2, 0.4])
    tab.press("typical-row")
    assert tab.text("range-line") == ""
    tab.press("theme")
    assert tab.untouched() == set()
    assert tab.compared - start >= 60
    is_quiet(tab)


@pytest.mark.slow
def test_quantiles_that_are_conformal(tab: Tab) -> None:
    X, y = table()
    model = InfiniteQuantileRegressor(n_nodes=10, alpha=1e-2).fit(X[:60], y[:60]).conformalize(X[60:], y[60:])
    tab.open(explore(model, X, y))
    for coverage in (50, 90, 99):
        tab.type("coverage", coverage)
        if coverage < 99:
            tab.agrees("out-interval", model.predict_interval(tab.x(), coverage / 100))
    assert "no upper end" in tab.text("out-interval")  # 60 rows promise at most 98%
    is_quiet(tab)


def entries_that_cannot_be(tab: Tab, theta: float) -> None:
    """Each gets a sentence beside its box and changes nothing else."""
    state = "[page.theta, page.costs.missed, page.costs.alarm]"
    before = tab.asked(state)
    assert before == [theta, 10, 4]
    alone = (
        "Object.assign(document.getElementById(arguments[0]), {value: arguments[1]}).dispatchEvent(new Event('input'))"
    )
    for name, value, alert, words, right in (
        ("missed-cost", "-5", "costs-alert", "0 or more", "10"),
        ("alarm-cost", "", "costs-alert", "0 or more", "4"),
        ("theta", "3", "theta-alert", "between -1 and 1", str(theta)),
        ("required-sensitivity", "200", "wish-alert", "from 0 to 100%", "90"),
        ("allowed-alarms", "-1", "wish-alert", "from 0 to 100%", "5"),
    ):
        tab.asked(alone, name, value)
        assert words in tab.text(alert)
        assert tab.asked("document.getElementById(arguments[0]).getAttribute('aria-invalid')", name) == "true"
        assert tab.asked(state) == before
        tab.asked(alone, name, right)
        assert tab.text(alert) == ""
        tab.asked("page.move(arguments[0])", theta)
    tab.asked(
        "[document.getElementById('missed-cost').value, document.getElementById('alarm-cost').value] = ['0', '0']"
    )
    tab.asked(alone, "alarm-cost", "0")
    assert "above 0" in tab.text("costs-alert")
    assert tab.asked(state) == before
    tab.asked("document.getElementById('missed-cost').value = '10'")
    tab.asked(alone, "alarm-cost", "4")
    assert tab.text("costs-alert") == ""
    tab.asked("page.move(arguments[0])", theta)
    tab.settle()


def test_costs(tab: Tab) -> None:
    X, y = table(200)
    case = np.where(y + 20.0 * np.sin(np.arange(200.0)) > 1_060.0, "ill", "fine")
    model = InfiniteCostSensitiveClassifier(n_nodes=10, kernel="laplacian").fit(X[:80], case[:80])
    rest = X[80:]
    truth = case[80:] == model.classes_[1]
    tab.open(explore(model, rest, case[80:]))
    assert tab.driver.execute_script(READY) < 2_000
    start = tab.compared

    def agrees(theta: float, missed_cost: float, alarm_cost: float) -> None:
        alarm = model.decision_function(rest, theta) > 0.0
        missed, alarms = np.sum(truth & ~alarm), np.sum(~truth & alarm)
        tab.agrees("out-found", np.sum(truth & alarm))
        tab.agrees("out-missed", missed)
        tab.agrees("out-alarms", alarms)
        tab.agrees("out-quiet", np.sum(~truth & ~alarm))
        tab.agrees("out-sensitivity", np.mean(alarm[truth]))
        tab.agrees("out-specificity", np.mean(~alarm[~truth]))
        tab.agrees("out-cost", (missed_cost * missed + alarm_cost * alarms) / truth.size)
        tab.agrees("out-probability", model.predict_proba(tab.x())[:, 1])
        tab.agrees("out-decision", model.decision_function(tab.x(), theta=[theta]))

    agrees(0.0, 1.0, 1.0)
    tab.type("missed-cost", 10)
    tab.type("alarm-cost", 4)
    asked = model.theta_from_costs(10.0, 4.0)
    agrees(asked, 10.0, 4.0)
    assert "2.5 times" in tab.text("sentence")
    assert tab.text("costs-theta") == ""

    def costs_stay(theta: float) -> None:
        """The trade-off is another one, the costs are those that were typed, and the page says what they ask for."""
        agrees(theta, 10.0, 4.0)
        assert (tab.box("missed-cost"), tab.box("alarm-cost")) == (10.0, 4.0)
        assert tab.text("costs-theta").startswith("These costs would ask for θ = 0.4286")
        tab.agrees("costs-theta", asked)

    tab.type("theta", 0.5)
    costs_stay(0.5)
    tab.slide("theta", -5)
    costs_stay(0.5 - 5 / 128)
    tab.type("required-sensitivity", 90)
    tab.press("find-sensitivity")
    wished = model.choose_theta(rest, case[80:], min_sensitivity=0.9)
    tab.agrees("wish-line", wished)
    costs_stay(wished)
    tab.type("allowed-alarms", 5)
    tab.press("find-alarms")
    theta = model.choose_theta(rest, case[80:], max_fpr=0.05)
    tab.agrees("wish-line", theta)
    costs_stay(theta)
    # the least of the curve is the least cost of all trade-offs, at a trade-off where the cost is that
    curve = model.roc_curve(rest, case[80:])
    every = (10.0 * (1.0 - curve.tpr) * truth.sum() + 4.0 * curve.fpr * np.sum(~truth)) / truth.size
    tab.agrees("out-least", every.min())
    alarm = model.decision_function(rest, tab.number("out-least-theta")) > 0.0
    assert np.isclose((10.0 * np.sum(truth & ~alarm) + 4.0 * np.sum(~truth & alarm)) / truth.size, every.min())
    entries_that_cannot_be(tab, theta)
    tab.press("to-costs")
    agrees(asked, 10.0, 4.0)
    assert tab.text("costs-theta") == ""
    theta = asked
    for j, value in enumerate([1.5, 260.0, 0.51]):
        tab.type(f"input-{j}", value)
        tab.slide(f"input-{j}", 1)
        tab.agrees("out-probability", model.predict_proba(tab.x())[:, 1])
        tab.agrees("out-decision", model.decision_function(tab.x(), theta=[theta]))
    tab.pick(11)
    tab.agrees("out-probability", model.predict_proba(rest[[11]])[:, 1])
    tab.choose("axis-0", "1")
    tab.choose("axis-1", "1")  # both cannot be the same: the other one makes room
    assert tab.asked("document.getElementById('axis-0').value !== document.getElementById('axis-1').value")
    for name in ("random-row", "typical-row", "theme"):
        tab.press(name)
    assert tab.untouched() == set()
    assert tab.compared - start >= 45
    is_quiet(tab)


@pytest.mark.quick("True")
@pytest.mark.parametrize("nested", [False, True])
def test_level_sets(tab: Tab, nested: bool) -> None:
    X = make_mixture(150, random_state=0)
    model = InfiniteOneClassSVM(n_nodes=12, nested=nested, nu=0.2).fit(X[:90])
    rest = X[60:]
    tab.open(explore(model, rest, names=["heat", "noise"]))
    assert tab.driver.execute_script(READY) < 2_000
    start = tab.compared

    def agrees(nu: float) -> None:
        outside = model.predict(rest, nu) < 0
        tab.agrees("out-outside", np.sum(outside))
        tab.agrees("out-share", np.mean(outside))
        tab.agrees("out-p", model.score_samples(tab.x()))
        tab.agrees("out-inside", model.decision_function(tab.x(), nu))

    agrees(0.2)
    tab.type("nu", 35)
    agrees(0.35)
    tab.slide("nu", 3)
    agrees(0.365)
    for x in ([0.3, -0.2], [2.5, 2.5], [30.0, -40.0], [-1.0, 1.0]):
        for j, value in enumerate(x):
            tab.type(f"input-{j}", value)
        agrees(0.365)
    tab.slide("input-0", 2)
    tab.slide("input-1", -2)
    agrees(0.365)
    tab.pick(5)
    agrees(0.365)
    listed = tab.driver.execute_script(
        "return [...document.querySelectorAll('#first-rows td[data-value]')].map((node) => Number(node.dataset.value))"
    )
    assert np.allclose(listed, np.sort(model.score_samples(rest))[:15], rtol=0.0, atol=1e-9)
    tab.compared += len(listed)
    assert tab.text("first-line") == "15 of 90 rows are listed."
    for count in (50, 90):
        tab.press("more-rows")
        assert tab.text("first-line") == f"{count} of 90 rows are listed."
        assert tab.asked("document.querySelectorAll('#first-rows tbody tr').length") == count
        now = tab.asked("[...document.querySelectorAll('#first-rows td:nth-child(3)')].map((cell) => cell.textContent)")
        order = np.argsort(model.score_samples(rest), kind="stable")[:count]
        outside = model.predict(rest, 0.365)[order] < 0
        assert now == ["unusual" if out else "usual" for out in outside]
    assert tab.asked("document.getElementById('more-rows').hidden")
    tab.driver.execute_script("document.querySelector('button.link').click()")
    tab.settle()
    assert np.array_equal(tab.x()[0], rest[np.argmin(model.score_samples(rest))])
    for name in ("random-row", "typical-row", "theme"):
        tab.press(name)
    assert tab.untouched() == set()
    assert tab.compared - start >= 40
    is_quiet(tab)


def test_rows_are_called_as_the_table_calls_them(tab: Tab) -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 15)))
    X.columns = [f"column {j}" for j in range(15)]
    evil = "<img src=x onerror=alert(1)>"
    X.index = [evil, "run-7", "7", *(f"run {k}" for k in range(26)), "run-7"]
    model = InfiniteOneClassSVM(n_nodes=6, alpha=1e-2).fit(X)
    tab.open(explore(model, X))

    def looks_at(row: int, words: str) -> None:
        assert np.array_equal(tab.x()[0], X.to_numpy()[row])
        assert tab.text("row-line") == words

    names = {
        evil: (0, f"Row {evil}."),
        "7": (2, "Row 7."),
        "run 3": (6, "Row run 3."),
        "5": (5, "Row run 2, at place 5 of the table."),
    }
    for typed, (row, words) in names.items():
        tab.pick(typed)
        looks_at(row, words)
    tab.pick("run-7")
    looks_at(1, "Row run-7, the first of 2 with this name.")
    for typed in ("run-8", "500", "-1"):
        tab.pick(typed)
        assert f"No row on this page is called “{typed}”" in tab.text("row-alert")
        looks_at(1, "Row run-7, the first of 2 with this name.")
    tab.press("random-row")
    assert tab.text("row-alert") == ""
    tab.press("more-rows")
    listed = tab.asked("[...document.querySelectorAll('#first-rows tbody th')].map((cell) => cell.textContent)")
    assert listed == list(X.index[np.argsort(model.score_samples(X), kind="stable")])
    assert tab.asked("document.querySelectorAll('#first-rows thead th').length") == 3 + 12
    assert "3 of 15 columns are left out" in tab.text("first-line")
    assert tab.asked("document.querySelectorAll('img').length") == 0
    assert tab.asked("document.documentElement.scrollWidth") <= 1280
    is_quiet(tab)


def test_numbers_are_written_as_people_read_them(tab: Tab) -> None:
    X, y = table(40)
    said = {4.62e-6: "4.62 × 10⁻⁶", -1.5e12: "−1.50 × 10¹²", 0.25: "0.25", 0.0: "0"}
    tab.open(explore(InfiniteQuantileRegressor(n_nodes=4, alpha=1e-1).fit(X, y), X, np.append(list(said), y[4:])))
    for row, words in enumerate(said.values()):
        tab.pick(row)
        assert tab.text("row-line") == f"Row {row}. Its y was {words}."


def pages() -> dict[str, Any]:
    X, y = table(60)
    quick: dict[str, Any] = {"n_nodes": 8, "alpha": 1e-2}
    return {
        "quantiles": lambda: explore(InfiniteQuantileRegressor(**quick).fit(X, y), X, y),
        "quantiles of one input without targets": lambda: explore(
            InfiniteQuantileRegressor(**quick).fit(X[:, :1], y), X[:, :1]
        ),
        "costs": lambda: explore(InfiniteCostSensitiveClassifier(**quick).fit(X, y > 1_000), X, y > 1_000),
        "costs of one input without labels": lambda: explore(
            InfiniteCostSensitiveClassifier(**quick).fit(X[:, :1], y > 1_000), X[:, :1]
        ),
        "level sets": lambda: explore(InfiniteOneClassSVM(**quick).fit(X), X),
        "level sets of one input": lambda: explore(InfiniteOneClassSVM(**quick).fit(X[:, :1]), X[:, :1]),
        "many inputs": lambda: explore(
            InfiniteQuantileRegressor(**quick).fit(np.tile(X, 5), y),
            np.tile(X, 5),
            y,
            names=[f"col {j}" for j in range(15)],
        ),
    }


@pytest.mark.quick("costs", "many inputs")
@pytest.mark.parametrize("kind", pages())
def test_pages_are_accessible_on_a_phone_and_in_the_dark(tab: Tab, kind: str) -> None:
    page = pages()[kind]()
    for width, dark in ((390, False), (1280, True)):
        tab.open(page, width=width, dark=dark)
        assert tab.barriers() == []
        assert tab.driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert tab.driver.execute_script("return document.querySelectorAll('svg[aria-label]').length") >= 2
    is_quiet(tab)
