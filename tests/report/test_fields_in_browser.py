"""Pages of mixed tables in a browser: categories, dates and missing values are entered, and answers are Python's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import Pipeline

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask.report import explore
from infinitask.report._explore import Page
from tests.report import mixed
from tests.report.browser import Tab

AREA, ROOMS, WALL, LIFT, SOLD, STREET = (f"input-{j}" for j in range(6))
QUICK: dict[str, Any] = {"n_nodes": 8, "alpha": 1e-2}


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with Tab() as found:
        yield found


def is_quiet(tab: Tab) -> None:
    """No complaint in the console, and nothing asked of the network."""
    assert tab.complaints() == []
    assert tab.requests() == set()


class Opened:
    """A page of a pipeline in a tab, and the rows of the table that are entered there."""

    def __init__(self, tab: Tab, pipeline: Pipeline, X: Any, y: Any = None) -> None:
        self.tab, self.X = tab, X
        self.encoder, self.model = Pipeline(pipeline.steps[:-1]), pipeline[-1]
        self.page = explore(pipeline, X, y)
        tab.open(self.page)

    @property
    def x(self) -> Any:
        """What is entered, as the model of the pipeline gets it."""
        return self.encoder.transform(mixed.as_frame(self.page.payload, self.tab.x(), self.X))

    def everything_entered(self, agrees: Callable[[], None]) -> None:
        """Move every control of the input; the answers agree each time."""
        tab = self.tab
        tab.type(AREA, 71.25)
        tab.slide(ROOMS, 2)
        tab.choose(WALL, "2")
        tab.choose(LIFT, "1")
        tab.enter_date(SOLD, "2020-02-29")
        tab.slide(SOLD, 3)
        assert tab.asked("document.getElementById(arguments[0]).value", SOLD) == "2020-03-03"
        tab.choose(STREET, "11")
        agrees()
        for name in (AREA, SOLD):
            tab.tick(f"{name}-missing")
            assert tab.asked("document.getElementById(arguments[0]).disabled", name)
        tab.choose(WALL, "3")
        assert np.isnan(tab.x()[0, [0, 4]]).all()
        assert self.page.payload["columns"][2]["missing"] == 3
        agrees()
        tab.tick(f"{AREA}-missing")
        assert tab.x()[0, 0] == 71.25  # as it was before
        row = int(np.flatnonzero(self.X["area"].isna())[0])
        tab.pick(row)
        assert np.isnan(tab.x()[0, 0])
        assert np.array_equal(np.asarray(self.x), np.asarray(self.encoder.transform(self.X.iloc[[row]])))
        agrees()


@pytest.mark.slow
def test_quantiles_of_a_mixed_table(tab: Tab) -> None:
    X, y = mixed.table()
    opened = Opened(tab, mixed.fitted(InfiniteQuantileRegressor(**QUICK), X[:100], y[:100]), X[60:], y[60:])
    model, start = opened.model, tab.compared

    def agrees() -> None:
        x, level, coverage = opened.x, tab.box("level") / 100, tab.box("coverage") / 100
        tab.agrees("out-median", model.predict(x, 0.5))
        tab.agrees("out-quantile", model.predict(x, level))
        tab.agrees("out-interval", model.predict_interval(x, coverage))
        tab.agrees("out-above", 1.0 - model.predict_cdf(x, tab.asked("page.threshold")))

    agrees()
    tab.type("level", 80)
    opened.everything_entered(agrees)
    for j in range(6):  # a picture for every column, also when it is missing
        tab.choose("along", str(j))
        assert tab.asked("[...document.querySelectorAll('svg[aria-label]')].length") >= 9
    for name in ("typical-row", "random-row", "theme"):
        tab.press(name)
    tab.pick(33)
    agrees()
    # one line for each category: the middles are Python's, the others as they are
    tab.choose("along", "2")
    table = mixed.as_frame(opened.page.payload, np.repeat(tab.x(), 4, axis=0), X)
    table[mixed.EVIL] = [*opened.page.payload["columns"][2]["choices"][:3], None]
    found = tab.asked("page.slice(2, 73).lefts.map((left) => model.quantile(left, 0.5))")
    expected = model.predict(opened.encoder.transform(table), 0.5)
    assert np.allclose(found, expected, rtol=1e-6)
    tab.compared += 4
    assert tab.compared - start >= 25
    labels = tab.asked("[...document.querySelectorAll('label')].map((label) => label.textContent)")
    assert mixed.EVIL in labels
    assert tab.barriers() == []
    is_quiet(tab)


@pytest.mark.slow
def test_costs_of_a_mixed_table(tab: Tab) -> None:
    X, y = mixed.table()
    case = np.where(y > 200.0, "dear", "cheap")
    opened = Opened(tab, mixed.fitted(InfiniteCostSensitiveClassifier(**QUICK), X[:100], case[:100]), X[60:], case[60:])
    model, start = opened.model, tab.compared
    truth = case[60:] == model.classes_[1]

    def agrees() -> None:
        x = opened.x
        tab.agrees("out-probability", model.predict_proba(x)[:, 1])
        tab.agrees("out-decision", model.decision_function(x, theta=[tab.asked("page.theta")]))

    tab.type("theta", 0.25)
    alarm = model.decision_function(opened.encoder.transform(X[60:]), 0.25) > 0.0
    tab.agrees("out-missed", np.sum(truth & ~alarm))
    tab.agrees("out-alarms", np.sum(~truth & alarm))
    opened.everything_entered(agrees)
    tab.choose("by", "5")
    tab.choose("axis-0", "4")
    offered = tab.asked("[...document.getElementById('axis-0').options].map((option) => option.textContent)")
    assert sorted(offered) == ["area", "rooms", "sold"]
    assert tab.compared - start >= 7
    assert tab.barriers() == []
    is_quiet(tab)


def axis_follows_the_bars(tab: Tab, column: int) -> None:
    """The axis ends a little beyond the largest bar, or the line where that is near; else a sentence says where."""
    card = "document.querySelector('[aria-labelledby=card-category-by-category]')"
    most = max(tab.asked(f"page.answersAlong({column}, page.walk({column}, 0), (left, x) => model.score(x, left))"))
    reached = set()
    for nu in (5, 100):
        tab.type("nu", nu)
        near = nu / 100 <= 2.5 * most
        end = max(most, nu / 100) if near else most
        ticks = [
            float(text)
            for text in tab.asked(f"[...{card}.querySelectorAll('text.tick')].map((t) => t.textContent)")
            if text[0].isdigit()
        ]
        assert 0.6 * end < max(ticks) <= 1.2 * end
        assert (f"The line is at {nu}%" in tab.asked(f"{card}.textContent")) != near
        reached.add(near)
    assert reached == {True, False}


@pytest.mark.parametrize("nested", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_level_sets_of_a_mixed_table(tab: Tab, nested: bool) -> None:
    X, _ = mixed.table()
    opened = Opened(tab, mixed.fitted(InfiniteOneClassSVM(n_nodes=8, nested=nested), X[:100]), X[60:])
    model, start = opened.model, tab.compared

    def agrees() -> None:
        x = opened.x
        tab.agrees("out-p", model.score_samples(x))
        tab.agrees("out-inside", model.decision_function(x, tab.box("nu") / 100))

    tab.type("nu", 25)
    outside = model.predict(opened.encoder.transform(X[60:]), 0.25) < 0
    tab.agrees("out-outside", np.sum(outside))
    opened.everything_entered(agrees)
    scores = model.score_samples(opened.encoder.transform(X[60:]))
    tab.pick(int(np.argmin(np.abs(scores - 0.15))))  # its bars are short, but not too short for a line at 5%
    tab.choose("by", "3")
    axis_follows_the_bars(tab, 3)
    cells = tab.asked("[...document.querySelectorAll('#first-rows tbody td')].map((cell) => cell.textContent)")
    assert {"missing", "True"} <= set(cells)
    assert tab.compared - start >= 7
    assert tab.barriers() == []
    is_quiet(tab)


def of_columns(model: Any, columns: list[str], y: Any = None) -> Page:
    """A page of some columns of the table."""
    X, _ = mixed.table()
    return explore(mixed.fitted(model, X[columns], y), X[columns], y)


def pages() -> dict[str, Callable[[], Page]]:
    _, y = mixed.table()
    quantiles, costs, sets = InfiniteQuantileRegressor, InfiniteCostSensitiveClassifier, InfiniteOneClassSVM
    every, lists = ["area", "rooms", mixed.EVIL, "lift", "sold", "street"], [mixed.EVIL, "lift"]
    return {
        "quantiles": lambda: of_columns(quantiles(**QUICK), every, y),
        "quantiles of lists": lambda: of_columns(quantiles(**QUICK), lists, y),
        "costs": lambda: of_columns(costs(**QUICK), every, y > 200.0),
        "costs of lists": lambda: of_columns(costs(**QUICK), lists, y > 200.0),
        "costs of one number and lists": lambda: of_columns(costs(**QUICK), ["area", *lists], y > 200.0),
        "level sets": lambda: of_columns(sets(**QUICK), every),
        "level sets of lists": lambda: of_columns(sets(**QUICK), [*lists, "street"]),
        "level sets of one date and a list": lambda: of_columns(sets(**QUICK), ["sold", "lift"]),
    }


QUICKLY = ("quantiles of lists",)


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICKLY else pytest.param(kind, marks=pytest.mark.slow) for kind in pages()]
)
def test_pages_of_lists_are_accessible_on_a_phone_and_in_the_dark(tab: Tab, kind: str) -> None:
    page = pages()[kind]()
    for width, dark in ((390, False), (1280, True)):
        tab.open(page, width=width, dark=dark)
        assert tab.barriers() == []
        assert tab.driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert tab.driver.execute_script("return document.querySelectorAll('svg[aria-label]').length") >= 2
    is_quiet(tab)
