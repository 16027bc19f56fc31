"""Files of skops: every model comes back with the types that the file needs, and nothing else is trusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteQuantileRegressor, make_pipeline
from infinitask.integrations.skops import trusted
from infinitask.kernels import RBF, Additive, InputKernel, Linear, Sum, Warped
from infinitask.persistence import register
from infinitask.solvers import Reason
from tests.support.every_model import NEW, X, Y, fitted, public_estimators
from tests.support.saved import answers, same

io = pytest.importorskip("skops.io")
exceptions = pytest.importorskip("skops.io.exceptions")

WITHOUT = {"OptunaSearch", "TaskSearch"}
"""Searches hold the study of Optuna, which skops cannot write, or folds of scikit-learn, about which it asks."""


SLOW = {"CrossConformal", "InfiniteCostSensitiveClassifierCV", "InfiniteOneClassSVMCV"}


def again(model: Any, folder: Path) -> Any:
    io.dump(model, folder / "model.skops")
    return io.load(folder / "model.skops", trusted=trusted(folder / "model.skops"))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name in sorted(public_estimators().keys() - WITHOUT)
    ],
)
def test_every_model_answers_alike(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    before = answers(model, NEW)
    loaded = again(model, tmp_path)
    assert type(loaded) is type(model)
    assert same(answers(loaded, NEW), before)


def test_of_a_search_only_our_types_are_trusted(tmp_path: Path) -> None:
    model = fitted("TaskSearch")
    with pytest.raises(exceptions.UntrustedTypesFoundException, match="KFold"):
        again(model, tmp_path)
    asked = io.get_untrusted_types(file=tmp_path / "model.skops")
    assert all(name.startswith("sklearn.") for name in set(asked) - set(trusted(tmp_path / "model.skops")))
    assert same(io.load(tmp_path / "model.skops", trusted=asked).predict(NEW), model.predict(NEW))
    assert same(again(model.best_estimator_, tmp_path).predict(NEW), model.predict(NEW))


def test_kernels_made_of_kernels(tmp_path: Path) -> None:
    model = InfiniteQuantileRegressor(kernel=Sum(Warped(RBF()), Additive(Linear())), n_nodes=6, tol=1e-2).fit(X, Y)
    assert same(again(model, tmp_path).predict(NEW), model.predict(NEW))


def test_only_what_the_file_has_is_named(tmp_path: Path) -> None:
    model = make_pipeline(StandardScaler(), InfiniteQuantileRegressor(n_nodes=6, tol=1e-2)).fit(X, Y)
    io.dump(model, tmp_path / "m")
    named = trusted(tmp_path / "m")
    assert named == io.get_untrusted_types(file=tmp_path / "m") == trusted(data=(tmp_path / "m").read_bytes())
    assert set(named) < set(trusted())
    assert not [name for name in named if "Classifier" in name]
    assert all(name.startswith("infinitask.") for name in named)


class Stranger(InputKernel):
    """A kernel that nobody registered."""

    def __call__(self, X: Any, Z: Any) -> Any:
        return X @ Z.T

    def diag(self, X: Any) -> Any:
        return (X**2).sum(axis=1)


def test_untrusted_types_are_refused(tmp_path: Path) -> None:
    for thing in (os.system, Stranger()):
        model = InfiniteQuantileRegressor(n_nodes=6, tol=1e-2, kernel=RBF()).fit(X, Y)
        model.kernel = thing
        with pytest.raises(exceptions.UntrustedTypesFoundException, match=r"system|Stranger"):
            again(model, tmp_path)


def test_a_class_that_was_registered_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from infinitask.persistence import _names

    monkeypatch.setattr(_names, "_registered", {})
    model = InfiniteQuantileRegressor(kernel=Stranger(), n_nodes=6, tol=1e-2).fit(X, Y)
    register(Stranger)
    assert same(again(model, tmp_path).predict(NEW), model.predict(NEW))


def test_reasons_are_written_by_their_names() -> None:
    for reason in Reason:
        assert io.loads(io.dumps(reason), trusted=trusted()) is reason
        assert Reason(reason.name) is Reason(reason.value) is reason
    with pytest.raises(ValueError, match="'never' is not a valid Reason"):
        Reason("never")


def test_a_file_or_data() -> None:
    with pytest.raises(ValueError, match="A file and data were given; give one of them"):
        trusted("model.skops", data=b"")
    assert "infinitask.field.Field" in trusted()
    assert np.all([name == "functools.partial" or name.split(".")[0] in ("infinitask", "tests") for name in trusted()])
