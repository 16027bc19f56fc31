"""The file: self-contained, small, and whatever the data hold stays text."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import (
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    JointQuantileRegressor,
)
from infinitask.datasets import make_mixture, make_sine
from infinitask.report import explore
from infinitask.report._explore import Page
from infinitask.tuning import (
    InfiniteCostSensitiveClassifierCV,
    InfiniteOneClassSVMCV,
    InfiniteQuantileRegressorCV,
)
from tests.report.evaluator import unpack

ASSETS = Path(str(files("infinitask.report"))) / "assets"
EVIL = ['</script><script>alert("1")</script>', "<img src=x onerror=alert(1)>", 'a & b\'s "quote" \u2028 {{program}}']


@pytest.fixture(scope="module")
def fitted() -> tuple[InfiniteQuantileRegressor, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = X[:, 0] + rng.normal(size=50)
    return InfiniteQuantileRegressor(n_nodes=6, alpha=1e-2).fit(X, y), X, y


def data_of(text: str) -> dict[str, Any]:
    """What a browser reads as the data."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_what_the_data_hold_stays_text(fitted: Any) -> None:
    model, X, y = fitted
    page = explore(model, X, y, names=EVIL, title=EVIL[0])
    text = page.html
    assert [column["name"] for column in data_of(text)["columns"]] == EVIL
    assert text.lower().count("<script") == 2  # the data and the program
    assert "<img" not in text
    assert f"<h1>{html.escape(EVIL[0])}</h1>" in text
    assert text.count('"use strict"') == 1


def test_labels_and_targets_stay_text() -> None:
    pd = pytest.importorskip("pandas")
    X, _ = make_sine(40, random_state=0)
    y = pd.Series(np.where(np.arange(40) % 2, EVIL[0], "no"), name=EVIL[1])
    model = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=1e-2).fit(X, y)
    text = model.explore(X, y).html
    assert sorted(data_of(text)["labels"]) == sorted([EVIL[0], "no"])
    assert data_of(text)["target"] == EVIL[1]
    assert text.lower().count("<script") == 2


def test_nothing_is_loaded(fitted: Any) -> None:
    text = explore(*fitted).html
    program = text[: text.index('id="data"')] + text[text.index("</script>") :]
    assert not re.findall(r'(?:src|href)=["\'](?!data:)', program)
    assert "import(" not in program
    assert "fetch(" not in program
    assert set(re.findall(r"https?://[^\s\"'`]+", program)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "default-src 'none'" in text


def test_a_notebook_shows_the_page_in_a_frame(fitted: Any) -> None:
    page = explore(*fitted, title='a "title"')
    frame = page._repr_html_()
    assert frame.startswith("<iframe")
    assert frame.endswith("</iframe>")
    source = re.search(r'srcdoc="([^"]*)"', frame)
    assert source is not None
    assert html.unescape(source[1]) == page.html
    assert 'title="a &quot;title&quot;"' in frame


def test_save_says_where_the_file_is(fitted: Any, tmp_path: Path) -> None:
    page = explore(*fitted)
    path = page.save(tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == page.html
    assert page.save(str(path)) == path
    assert "MB" in repr(page)


@pytest.mark.quick("quantiles")
@pytest.mark.parametrize("kind", ["quantiles", "costs", "level-sets"])
def test_a_page_of_two_thousand_rows_is_small(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 12))
    y = X[:, 0] + rng.normal(size=2000)
    few: dict[str, Any] = {"features": "nystroem", "rank": 400, "random_state": 0, "n_nodes": 10}
    if kind == "quantiles":
        model: Any = InfiniteQuantileRegressor(alpha=1.0, tol=1e-2, **few).fit(X, y)
    elif kind == "costs":
        model, y = InfiniteCostSensitiveClassifier(alpha=1.0, tol=1e-2, **few).fit(X, y > 0.0), y > 0.0
    else:
        model = InfiniteOneClassSVM(alpha=1e-2, tol=1e-1, **few).fit(X)
    page = explore(model, X, None if kind == "level-sets" else y)
    assert page.payload["kind"] == kind
    assert len(unpack(page.payload["rows"]["X"])) == 2000
    assert len(page.html.encode()) < 6_000_000


def test_of_many_rows_some_are_shown_and_the_model_is_whole(fitted: Any) -> None:
    model, X, y = fitted
    many = np.random.default_rng(1).normal(size=(6_000, 3))
    few = explore(model, X, y).payload
    payload = explore(model, many, many[:, 0]).payload
    assert payload["total"] == 6_000
    shown = {name: unpack(payload["rows"][name]) for name in ("X", "number", "weight")}
    assert len(shown["X"]) == 2_500
    assert np.array_equal(shown["X"], many[shown["number"].astype(int)])
    assert np.isclose(shown["weight"].sum(), 6_000)
    assert payload["model"] == few["model"]
    assert payload["columns"][0]["high"] == many[:, 0].max()


def test_rare_cases_are_all_on_the_page() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8_000, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=8_000) > 2.6
    model = InfiniteCostSensitiveClassifier(alpha=1e-2, n_nodes=6).fit(X[:300], X[:300, 0] > 1.0)
    rows = explore(model, X, y).payload["rows"]
    case, weight = unpack(rows["case"]) > 0.0, unpack(rows["weight"])
    assert 10 < case.sum() == y.sum()
    assert np.isclose(weight[case].sum(), y.sum())
    assert np.isclose(weight[~case].sum(), np.sum(~y))


@pytest.mark.parametrize("numbers", [250_000, 3_000])
def test_the_strangest_rows_are_on_the_page(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infinitask.report._table.MAX_NUMBERS", numbers)
    X = make_mixture(5_000, random_state=0)
    model = InfiniteOneClassSVM(alpha=1e-3, n_nodes=8).fit(X[:100])
    shown = unpack(explore(model, X).payload["rows"]["p"])
    first = min(200, len(shown) // 2)
    assert (len(shown) < 500) == (numbers < 250_000)
    assert np.array_equal(np.sort(shown)[:first], np.sort(model.score_samples(X))[:first])


def test_names_come_from_the_table_the_model_or_the_user(fitted: Any) -> None:
    pd = pytest.importorskip("pandas")
    model, X, y = fitted

    def names(page: Page) -> list[str]:
        return [column["name"] for column in page.payload["columns"]]

    assert names(explore(model, X, y)) == ["x0", "x1", "x2"]
    assert names(explore(model, X, y, names=["a", "b", "c"])) == ["a", "b", "c"]
    frame = pd.DataFrame(X, columns=["r", "s", "t"])
    again = InfiniteQuantileRegressor(n_nodes=6, alpha=1e-2).fit(frame, y)
    assert names(again.explore(frame, pd.Series(y, name="price"))) == ["r", "s", "t"]
    assert again.explore(frame, pd.Series(y, name="price")).payload["title"] == "What to expect of price"
    with pytest.raises(ValueError, match="2 names were given for 3 columns"):
        explore(model, X, y, names=["a", "b"])
    with pytest.raises(ValueError, match="a list with a name for each"):
        explore(model, X, y, names="abc")


def test_rows_keep_the_names_of_their_table(fitted: Any) -> None:
    pd = pytest.importorskip("pandas")
    model, X, y = fitted

    def labels(index: Any) -> Any:
        return data_of(explore(model, pd.DataFrame(X, index=index), y).html)["rows"]["label"]

    assert explore(model, X, y).payload["rows"]["label"] is None
    assert labels(None) is None
    assert labels(np.arange(50)) is None
    assert labels(range(200, 250)) == [str(k) for k in range(200, 250)]
    evil = [f"{EVIL[k % 3]} {k}" for k in range(50)]
    assert labels(evil) == evil
    assert labels(pd.date_range("2024-01-30", periods=50))[:3] == ["2024-01-30", "2024-01-31", "2024-02-01"]
    assert labels(pd.MultiIndex.from_product([["a", "b"], range(25)]))[26] == "b, 1"
    many = pd.DataFrame(np.random.default_rng(1).normal(size=(3_000, 3)), index=[f"run-{k}" for k in range(3_000)])
    rows = explore(model, many).payload["rows"]
    assert rows["label"] == [f"run-{int(k)}" for k in unpack(rows["number"])]
    assert len(rows["label"]) == 2_500


def test_the_band_of_chance_is_binomial() -> None:
    X = make_mixture(120, random_state=0)
    model = InfiniteOneClassSVM(alpha=1e-3, n_nodes=8).fit(X[:40])
    chance = explore(model, X[40:]).payload["chance"]
    assert (chance["rows"], chance["confidence"]) == (80, 0.9)
    share, low, high = (unpack(chance[name]) for name in ("share", "low", "high"))
    seen = np.mean(np.random.default_rng(0).uniform(size=(4_000, 80, 1)) < share[[5, 50, 90]], axis=1)
    held = np.mean((low[[5, 50, 90]] <= seen) & (seen <= high[[5, 50, 90]]), axis=0)
    assert np.all(held > 0.88)


def test_all_main_estimators_have_a_page_and_no_other() -> None:
    X, y = make_sine(40, random_state=0)
    for cls in (
        *(InfiniteQuantileRegressor, InfiniteCostSensitiveClassifier, InfiniteOneClassSVM),
        *(InfiniteQuantileRegressorCV, InfiniteCostSensitiveClassifierCV, InfiniteOneClassSVMCV),
    ):
        assert callable(cls().explore)
    tuned = InfiniteOneClassSVMCV(kernels=["rbf"], random_state=0, n_nodes=8).fit(X)
    assert tuned.explore(X).payload["kind"] == "level-sets"
    assert not hasattr(JointQuantileRegressor, "explore")
    for other in (LinearRegression(), make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)):
        with pytest.raises(TypeError, match=r"LinearRegression; .* or a pipeline whose last step it is"):
            explore(other, X, y)


def test_labels_that_the_model_does_not_know_are_named() -> None:
    X, y = make_sine(40, random_state=0)
    model = InfiniteCostSensitiveClassifier(n_nodes=6, alpha=1e-2).fit(X, np.where(y > 0, "yes", "no"))
    with pytest.raises(ValueError, match="'perhaps'"):
        explore(model, X, np.where(y > 0, "perhaps", "no"))


def test_rows_and_targets_of_different_number_are_an_error(fitted: Any) -> None:
    model, X, y = fitted
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        explore(model, X, y[:-1])


def test_the_program_is_typed() -> None:
    compiler = shutil.which("tsc")
    if compiler is None:
        pytest.skip("tsc is not on the PATH, which checks the types of the program: npm install --global typescript")
    options = ["--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2022", "--lib", "es2022,dom"]
    scripts = [str(path) for path in sorted(ASSETS.glob("*.js"))]
    found = subprocess.run([compiler, *options, *scripts], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
