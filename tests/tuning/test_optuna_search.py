"""The search on top of Optuna: it finds, it goes on where it stopped, and it says what is wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteCostSensitiveClassifier, InfiniteOneClassSVM, InfiniteQuantileRegressor
from infinitask._base.events import Event, Tried, listening
from infinitask.datasets import make_mixture, make_sine
from infinitask.metrics import scorer
from infinitask.tuning import OptunaSearch

optuna = pytest.importorskip("optuna")
sampler_module = pytest.importorskip("infinitask.tuning._sampler")

X, Y = make_sine(60, random_state=0)


class Bowl(RegressorMixin, BaseEstimator):
    """Its score is how close its parameters are to (10, 0.01), on a logarithmic scale."""

    def __init__(self, a: float = 1.0, b: float = 1.0, tol: float = 1e-4, fail: bool = False) -> None:
        self.a, self.b, self.tol, self.fail = a, b, tol, fail

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Bowl:
        if self.fail or self.a > 500.0:
            raise ValueError("too large an a")
        self.mass_ = None if sample_weight is None else float(np.sum(sample_weight))
        self.tol_ = self.tol
        return self

    def score(self, X: Any, y: Any) -> float:
        return float(-((np.log10(self.a) - 1.0) ** 2) - (np.log10(self.b) + 2.0) ** 2)

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.a)


SPACE = {"a": (1e-3, 1e2), "b": (1e-4, 1e4)}


def bowl(**options: Any) -> OptunaSearch:
    return OptunaSearch(Bowl(), SPACE, **{"cv": 2, "random_state": 0, **options}).fit(X, Y)


# ------------------------------------------------------------------------------------------------------- it finds
@pytest.mark.parametrize("sampler", ["tpe", "gp", "random"])
def test_the_best_trial_is_the_answer(sampler: str) -> None:
    search = bowl(sampler=sampler, n_trials=35)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 35
    assert search.best_score_ == max(scores)
    assert search.best_params_ == search.cv_results_["params"][int(np.argmax(scores))]
    assert search.best_estimator_.get_params()["a"] == search.best_params_["a"]
    np.testing.assert_array_equal(search.predict(X), search.best_params_["a"])
    for params in search.cv_results_["params"]:
        for name, (low, high) in SPACE.items():
            assert low <= params[name] <= high


@pytest.mark.slow
def test_expected_improvement_is_better_than_chance() -> None:
    found = {
        sampler: np.median([bowl(sampler=sampler, n_trials=40, random_state=s).best_score_ for s in range(5)])
        for sampler in ("gp", "random")
    }
    assert found["gp"] > 0.02 * found["random"]  # both are negative: a fiftieth of the distance


def test_the_paper_starts_from_sobol_points() -> None:
    params = bowl(sampler="gp", n_trials=27).cv_results_["params"]
    for name, (low, high) in SPACE.items():
        place = np.sort([np.log(p[name] / low) / np.log(high / low) for p in params])
        assert np.max(np.diff(np.concatenate([[0.0], place, [1.0]]))) < 0.13, "no wide gap is left"


@pytest.mark.quick("random")
@pytest.mark.parametrize("sampler", ["tpe", "gp", "random"])
def test_other_distributions(sampler: str) -> None:
    d = optuna.distributions
    space = {"a": d.FloatDistribution(1.0, 9.0), "b": [0.1, 0.01, 1.0], "fail": [False]}
    search = OptunaSearch(Bowl(), space, sampler=sampler, n_trials=32, cv=2, random_state=1).fit(X, Y)
    assert search.best_params_["b"] == 0.01
    assert search.best_params_["a"] > 7.0
    numbers = {"a": d.IntDistribution(1, 100, log=True), "b": d.FloatDistribution(0.01, 1.0, step=0.33)}
    found = OptunaSearch(Bowl(), numbers, sampler=sampler, n_trials=35, cv=2, random_state=1).fit(X, Y).best_params_
    assert isinstance(found["a"], int)
    assert 5 <= found["a"] <= 20
    assert found["b"] == pytest.approx(0.01)


def test_a_search_of_quantiles_beats_poor_parameters() -> None:
    poor = InfiniteQuantileRegressor(gamma=1e-3, alpha=10.0, n_nodes=20)
    pinball = scorer("pinball", quantiles=(0.1, 0.5, 0.9))
    search = OptunaSearch(poor, n_trials=12, scoring=pinball, cv=3, random_state=0).fit(X, Y)
    new, target = make_sine(500, random_state=1)
    assert pinball(search, new, target) > 0.8 * pinball(clone(poor).fit(X, Y), new, target)
    assert search.score(new, target) == pinball(search.best_estimator_, new, target)
    assert search.predict(new, quantiles=[0.1, 0.9]).shape == (500, 2)
    assert search.dual_gap_ <= 1e-4, "the last fit has the estimator's own tolerance"
    assert search.predict_interval(new, coverage=0.8).shape[0] == 500


@pytest.mark.slow
def test_costs_and_level_sets() -> None:
    labels = (np.median(Y) < Y).astype(int)
    costs = OptunaSearch(InfiniteCostSensitiveClassifier(n_nodes=10), n_trials=3, cv=2, random_state=0).fit(X, labels)
    assert set(costs.predict(X)) <= {0, 1}
    assert costs.classes_.tolist() == [0, 1]
    Z = make_mixture(120, random_state=0)
    sets = OptunaSearch(
        InfiniteOneClassSVM(n_nodes=10), {"gamma": (0.1, 1.0)}, n_trials=3, cv=2, scoring=scorer("mass_volume")
    ).fit(Z)
    assert sets.best_params_.keys() == {"gamma"}


def test_a_pipeline_is_searched_by_its_names() -> None:
    pipe = make_pipeline(StandardScaler(), Bowl())
    search = OptunaSearch(pipe, {"bowl__a": (1.0, 100.0)}, n_trials=10, cv=2, random_state=0).fit(X, Y)
    assert search.best_estimator_[-1].a == search.best_params_["bowl__a"]


def test_the_gap_is_wider_during_the_search() -> None:
    seen: list[float] = []

    def watch(model: Any, X: Any, y: Any) -> float:
        seen.append(model.tol_)
        return float(model.score(X, y))

    assert bowl(n_trials=2, scoring=watch).best_estimator_.tol_ == 1e-4
    assert seen == [1e-2] * 4
    bowl(n_trials=2, scoring=watch, search_tol=None)
    assert seen[4:] == [1e-4] * 4


def test_weights_reach_every_fit() -> None:
    seen: list[float | None] = []

    def watch(model: Any, X: Any, y: Any) -> float:
        seen.append(model.mass_)
        return float(model.score(X, y))

    weight = np.arange(60.0)
    search = OptunaSearch(Bowl(), SPACE, n_trials=1, cv=KFold(3), scoring=watch, random_state=0)
    search.fit(X, Y, sample_weight=weight)
    assert seen == [float(np.sum(weight[train])) for train, _ in KFold(3).split(X)]
    assert search.mass_ == np.sum(weight)


def test_processes_find_the_same() -> None:
    one, two = (bowl(n_trials=5, n_jobs=jobs).cv_results_ for jobs in (1, 2))
    assert one == two


# ------------------------------------------------------------------------------------------ it goes on where it stopped
@pytest.mark.quick("tpe")
@pytest.mark.parametrize("sampler", ["tpe", "gp", "random"])
def test_a_search_in_parts_is_the_search(sampler: str, tmp_path: Path) -> None:
    whole = bowl(sampler=sampler, n_trials=34)
    file = tmp_path / "trials.log"
    for part in (3, 28, 31, 34):
        search = bowl(sampler=sampler, n_trials=part, storage=file)
        assert search.cv_results_ == {name: values[:part] for name, values in whole.cv_results_.items()}
    assert search.best_params_ == whole.best_params_
    # nothing is left to do
    again = bowl(sampler=sampler, n_trials=20, storage=file)
    assert len(again.cv_results_["params"]) == 34


SCRIPT = """
    import sys, time
    import numpy as np
    from sklearn.base import BaseEstimator, RegressorMixin
    from infinitask.tuning import OptunaSearch

    class Slow(RegressorMixin, BaseEstimator):
        def __init__(self, a=1.0):
            self.a = a
        def fit(self, X, y):
            time.sleep({nap})
            return self
        def score(self, X, y):
            return -(np.log10(self.a) - 1.0) ** 2
        def predict(self, X):
            return np.zeros(len(X))

    X, y = np.arange(20.0)[:, None], np.arange(20.0)
    search = OptunaSearch(Slow(), {{"a": (1e-3, 1e3)}}, n_trials=12, cv=2, storage=sys.argv[1], random_state=0)
    print(repr(search.fit(X, y).cv_results_["params"]))
"""


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.slow
def test_a_killed_search_loses_nothing(tmp_path: Path) -> None:
    def run(file: str, nap: float) -> subprocess.Popen[str]:
        code = textwrap.dedent(SCRIPT.format(nap=nap))
        command = [sys.executable, "-c", code, str(tmp_path / file)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    expected, errors = run("whole", 0.0).communicate(timeout=120)
    assert expected.startswith("["), errors
    victim, file = run("killed", 0.1), tmp_path / "killed"
    waited = time.monotonic() + 60.0
    while time.monotonic() < waited and (not file.exists() or file.read_text().count("splits") < 3):
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    kept = file.read_text().count("splits")
    assert kept >= 3
    found, errors = run("killed", 0.0).communicate(timeout=120)
    assert found == expected, errors


def test_a_line_that_was_cut_off_is_done_again(tmp_path: Path) -> None:
    whole, file = bowl(n_trials=6), tmp_path / "trials.log"
    bowl(n_trials=4, storage=file)
    text = file.read_bytes()
    last = text.rstrip(b"\n").rfind(b"\n") + 1
    for cut in (last + 1, (last + len(text)) // 2, len(text) - 1):
        file.write_bytes(text[:cut])
        assert bowl(n_trials=6, storage=file).cv_results_ == whole.cv_results_


def test_other_data_or_settings_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "trials.log"
    bowl(n_trials=2, storage=file)
    for other in ({"random_state": 1}, {"cv": 3}, {"sampler": "random"}, {"search_tol": 0.1}):
        with pytest.raises(ValueError, match="other data or settings"):
            bowl(n_trials=3, storage=file, **other)
    with pytest.raises(ValueError, match="other data or settings"):
        OptunaSearch(Bowl(), SPACE, cv=2, n_trials=3, storage=file, random_state=0).fit(X, Y + 1.0)
    bowl(n_trials=3, storage=file)


# ---------------------------------------------------------------------------------------------- it says what is wrong
def test_a_failure_is_a_warning_and_the_search_goes_on() -> None:
    with pytest.warns(FitFailedWarning, match="too large an a"):
        search = OptunaSearch(Bowl(), {"a": (1.0, 1e5)}, n_trials=20, cv=2, sampler="gp", random_state=0).fit(X, Y)
    assert 0 < len(search.cv_results_["params"]) < 20
    assert search.best_params_["a"] < 500.0
    with pytest.warns(FitFailedWarning), pytest.raises(ValueError, match="Every trial failed"):
        OptunaSearch(Bowl(fail=True), SPACE, n_trials=2, cv=2).fit(X, Y)


def test_a_failed_trial_has_no_loss_of_another() -> None:
    heard: list[Event] = []
    with listening(heard.append), pytest.warns(FitFailedWarning, match="too large an a"):
        search = OptunaSearch(Bowl(), {"a": (1.0, 1e5)}, n_trials=12, cv=2, random_state=0).fit(X, Y)
    losses = [event.loss for event in heard if isinstance(event, Tried)]
    finite = [loss for loss in losses if loss < np.inf]
    assert len(finite) < len(losses)
    np.testing.assert_allclose(finite, [-score for score in search.cv_results_["mean_test_score"]])


def test_scores_that_are_no_numbers_fail() -> None:
    with pytest.warns(FitFailedWarning, match="nan"), pytest.raises(ValueError, match="Every trial"):
        bowl(n_trials=1, scoring=lambda model, X, y: float("nan"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"space": {"c": (1.0, 2.0)}}, "'c', which Bowl does not have"),
        ({"space": {"a": (0.0, 2.0)}}, "0 < low < high"),
        ({"space": {"a": (2.0, 1.0)}}, "0 < low < high"),
        ({"space": {"a": []}}, "a list of choices"),
        ({"space": {}}, "nothing to search"),
        ({"space": {"a": 3.0}}, "expected a pair"),
        ({"n_trials": 0}, "an integer of at least 1"),
        ({"n_trials": 2.5}, "an integer of at least 1"),
        ({"sampler": "best"}, "'tpe', 'gp', 'random'"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        OptunaSearch(Bowl(), **{"space": SPACE, "cv": 2, **options}).fit(X, Y)


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"infinitask\[tune\]"):
        bowl(n_trials=1)


def test_before_the_fit() -> None:
    search = OptunaSearch(Bowl())
    with pytest.raises(NotFittedError):
        search.predict(X)
    with pytest.raises(NotFittedError):
        search.score(X, Y)
    with pytest.raises(AttributeError, match="tol_"):
        _ = search.tol_
    assert clone(search).get_params()["estimator"].get_params() == Bowl().get_params()
    found = bowl(n_trials=1, refit=False)
    assert not hasattr(found, "best_estimator_")
    assert found.best_params_


def test_optuna_speaks_as_before() -> None:
    level = optuna.logging.get_verbosity()
    bowl(n_trials=1)
    assert optuna.logging.get_verbosity() == level


def test_the_bar_shows_the_best(capsys: pytest.CaptureFixture[str]) -> None:
    search = bowl(n_trials=3, progress=True)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert f"best={search.best_score_:.5g}" in shown


def test_a_storage_without_a_folder_is_refused(tmp_path: Path) -> None:
    X, y = make_sine(30, random_state=0)
    search = OptunaSearch(InfiniteQuantileRegressor(), n_trials=1, storage=tmp_path / "none" / "trials.log")
    with pytest.raises(ValueError, match=r"there is no folder .*none; make it, or name a file elsewhere"):
        search.fit(X, y)


def test_a_search_that_is_stopped_says_what_is_kept(tmp_path: Path) -> None:
    X, y = make_sine(30, random_state=0)
    calls = list[int]()

    def stopped(model: Any, X: Any, y: Any) -> float:
        calls.append(1)
        if len(calls) == 5:  # two folds each: in the third trial
            raise KeyboardInterrupt
        return float(model.score(X, y))

    model = InfiniteQuantileRegressor(n_nodes=5)
    search = OptunaSearch(model, n_trials=4, cv=2, scoring=stopped, storage=tmp_path / "trials.log")
    with pytest.raises(KeyboardInterrupt, match=r"2 of 4 trials are kept in .*trials\.log: fit again to go on"):
        search.fit(X, y)
    assert len(search.fit(X, y).cv_results_["params"]) == 4
    assert len(calls) == 9


def test_a_search_ends_when_its_time_is_up() -> None:
    """However little time there is, one trial is made."""
    search = bowl(n_trials=50, timeout=1e-9)
    assert len(search.cv_results_["params"]) == 1
    assert bowl(n_trials=3, timeout=1e9).cv_results_["params"][0] == search.best_params_
    with pytest.raises(ValueError, match="timeout=0 was given"):
        bowl(timeout=0)


def test_an_interrupted_search_keeps_the_best_if_asked() -> None:
    whole = bowl(n_trials=3)
    calls: list[int] = []

    def third_is_interrupted(model: Bowl, X: Any, y: Any) -> float:
        calls.append(1)
        if len(calls) == 5:  # two folds each: in the third trial
            raise KeyboardInterrupt
        return model.score(X, y)

    search = bowl(n_trials=3, scoring=third_is_interrupted, on_interrupt="best")
    assert search.cv_results_["params"] == whole.cv_results_["params"][:2]
    assert search.best_score_ == max(whole.cv_results_["mean_test_score"][:2])
    assert search.predict(X).shape == (60,)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        bowl(n_trials=3, scoring=third_is_interrupted)
