"""Every kind of value comes back as it was; what cannot be saved is refused with a sentence."""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator

from infinitask import InfiniteQuantileRegressor, InfiniteTaskEstimator, load, save
from infinitask.fitting import Units
from infinitask.kernels import RBF, CallableKernel, Sum
from infinitask.losses import FunctionLoss
from infinitask.persistence import register
from tests.support.each import each
from tests.support.saved import again, opened, same

rng = np.random.default_rng(0)
BIG = rng.normal(size=(6, 8))

VALUES: dict[str, Any] = {
    "none": [None],
    "truth": [True, False],
    "whole": [0, -1, 2**100, -(2**63)],
    "real": [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf],
    "complex": [1 + 2j, complex(-0.0, math.inf)],
    "text": ["", "naïve ∂θ", '\x00\n"\\', "\U0001f600"],
    "bytes": [b"", bytes(range(256))],
    "containers": [(), [], {}, set(), frozenset(), (1, (2, [3]))],
    "keys": {1: "a", 2.5: "b", None: "c", False: "d", (1, "x"): "e", b"k": "f", np.int64(7): "g"},
    "sets": [{1, "a", None}, frozenset({(1, 2)})],
    "slices": [slice(1, None, 2), range(3, 9, 2)],
    "order": OrderedDict([("b", 1), ("a", 2)]),
    "types": [float, int, str, object, np.float64, np.int32, np.dtype("f4"), np.dtype("M8[ns]"), np.dtype(object)],
    "functions": [np.log1p, np.exp],
    "scalars": [np.float32(0.1), np.float64(-0.0), np.float16(2.5), np.int8(-3), np.uint64(2**64 - 1), np.bool_(True)],
    "more scalars": [np.complex64(1 + 2j), np.str_("ü"), np.bytes_(b"\xff"), np.float64(math.nan)],
    "times": [np.datetime64("2020-01-02"), np.timedelta64(3, "h"), np.datetime64("NaT", "ns")],
}

ARRAYS: dict[str, Any] = {
    **{t: np.arange(-3, 3).astype(t) for t in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "c8", "c16")},
    **{t: np.arange(6).reshape(2, 3).astype(t) for t in ("u1", "u2", "u4", "u8", ">f8", ">i4")},
    "bool": np.array([True, False, True]),
    "no axes": np.array(3.5),
    "no axes, bool": np.array(True),
    "no rows": np.empty((0, 4)),
    "no entries": np.empty((3, 0), dtype=np.int32),
    "odd numbers": np.array([math.nan, math.inf, -0.0]),
    "columns first": np.asfortranarray(BIG),
    "steps": BIG[::2, 1::3],
    "backwards": BIG[::-1],
    "broadcast": np.broadcast_to(np.arange(3.0), (4, 3)),
    "texts": np.array(["a", "naïve", ""]),
    "no texts": np.array([], dtype="<U3"),
    "bytes": np.array([b"a", b"bc"]),
    "times": np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
    "columns of times": np.asfortranarray(np.arange(6).reshape(2, 3).astype("m8[s]")),
    "objects": np.array([["a", None], [1.5, ("b", 2)]], dtype=object),
    "no object axes": np.array("a", dtype=object),
}


class Point(NamedTuple):
    """Two numbers."""

    x: float
    y: Any


class Colour(Enum):
    """One of two."""

    RED = "red"
    BLUE = "blue"


class Slotted:
    """Attributes in slots."""

    __slots__ = ("__dict__", "a")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Unknown(BaseEstimator):
    """Not registered."""


@each("name", VALUES)
def test_values_come_back_as_they_were(name: str, tmp_path: Path) -> None:
    value = VALUES[name]
    assert same(again(value, tmp_path), value)


@each("name", ARRAYS)
def test_arrays_come_back_with_their_types_and_shapes(name: str, tmp_path: Path) -> None:
    value = ARRAYS[name]
    found = again(value, tmp_path)
    assert same(found, value)
    assert found.dtype.byteorder == value.dtype.byteorder
    assert found.flags.writeable
    if value.flags.c_contiguous or value.flags.f_contiguous:  # the order in which products are summed
        assert found.flags.c_contiguous == value.flags.c_contiguous


def test_texts_of_numpy_that_are_keys_become_plain(tmp_path: Path) -> None:
    """They are equal and have one hash; rules for names then see them."""
    found = again({np.str_("a"): 1, "b": 2}, tmp_path)
    assert found == {"a": 1, "b": 2}
    assert all(type(key) is str for key in found)


def test_sparse_matrices_come_back(tmp_path: Path) -> None:
    dense = np.maximum(BIG, 0.0)
    for make in (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix):
        value = make(dense)
        found = again(value, tmp_path)
        assert type(found) is type(value)
        assert same(found.toarray(), dense)


def test_masked_arrays_come_back(tmp_path: Path) -> None:
    value = np.ma.MaskedArray([1.0, 2.0, 3.0], [False, True, False])
    found = again(value, tmp_path)
    assert same(found.filled(0.0), value.filled(0.0))


@each("bits", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_random_generators_go_on_where_they_were(bits: str, tmp_path: Path) -> None:
    generator = np.random.Generator(getattr(np.random, bits)(3))
    state = np.random.RandomState(getattr(np.random, bits)(3))
    for random in (generator, state):
        random.normal(size=3)
        found = again(random, tmp_path)
        assert type(found) is type(random)
        assert same(found.normal(size=5), random.normal(size=5))


def test_distributions_come_back(tmp_path: Path) -> None:
    value = stats.beta(2.0, b=3.0, loc=0.1)
    found = again(value, tmp_path)
    assert same(found.ppf([0.1, 0.7]), value.ppf([0.1, 0.7]))


def test_partial_calls_come_back(tmp_path: Path) -> None:
    found = again(partial(np.log1p, dtype=float), tmp_path)
    assert found.func is np.log1p
    assert found.keywords == {"dtype": float}


def test_indices_and_types_of_pandas_come_back(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    for index in (
        pandas.Index(["a", "b"], name="letters"),
        pandas.RangeIndex(3),
        pandas.Index([1.5, np.nan]),
        pandas.DatetimeIndex(["2020-01-01"]),
    ):
        found = again(index, tmp_path)
        assert found.equals(index)
        assert found.dtype == index.dtype
        assert found.name == index.name
    for name in ("datetime64[ns, Europe/Berlin]", "Int64", "boolean", "str", "string"):
        dtype = pandas.api.types.pandas_dtype(name)
        assert again(dtype, tmp_path) == dtype
    category = pandas.CategoricalDtype(["u", "v"], ordered=True)
    assert again(category, tmp_path) == category


def test_what_appears_twice_is_written_once_and_stays_one(tmp_path: Path) -> None:
    array, kernel = np.arange(4.0), RBF(gamma=2.0)
    first, second, pair = again([array, array, Sum(kernel, kernel)], tmp_path)
    assert first is second
    assert pair.left is pair.right
    _, arrays, _ = opened(tmp_path / "model.safetensors")
    assert len(arrays) == 1


def test_registered_classes_of_all_kinds_come_back(tmp_path: Path) -> None:
    for cls in (Point, Colour, Slotted):
        assert register(cls) is cls
    point, colour, slotted = again([Point(1.5, [Point(0.0, None)]), Colour.BLUE, Slotted(BIG, "b")], tmp_path)
    assert point == Point(1.5, [Point(0.0, None)])
    assert colour is Colour.BLUE
    assert same([slotted.a, slotted.b], [BIG, "b"])


def test_arrays_are_named_by_where_they_were_found(tmp_path: Path) -> None:
    X = rng.normal(size=(20, 1))
    save(InfiniteQuantileRegressor(n_nodes=5, tol=1e-2).fit(X, X[:, 0]), tmp_path / "m")
    _, arrays, header = opened(tmp_path / "m")
    assert "InfiniteQuantileRegressor.field_.coef" in arrays
    assert header["format_version"] == "1"
    assert "scikit-learn" in header["made_with"]


def function(X: Any, Z: Any) -> Any:
    return X @ Z.T


class TestRefused:
    @each(
        "value",
        [
            InfiniteQuantileRegressor(kernel=function),
            InfiniteQuantileRegressor(kernel=CallableKernel(lambda X, Z: X @ Z.T)),
            InfiniteTaskEstimator(FunctionLoss(lambda theta, y, h: (y - h) ** 2)),
            os.system,
            print,
            {"a": eval},
            RBF().get_params,
            partial(function),
        ],
        ids=["kernel", "callable kernel", "loss", "os.system", "print", "eval", "method", "partial"],
    )
    def test_functions_of_the_user(self, value: Any, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match=r"is the function .*, and functions of your own cannot be saved"):
            save(value, tmp_path / "m")
        assert not list(tmp_path.iterdir())

    def test_classes_that_are_not_registered(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match=r"kernel\.left is of the class .*Unknown, .*persistence\.register"):
            save(InfiniteQuantileRegressor(kernel=Sum(Unknown(), RBF())), tmp_path / "m")

    def test_classes_themselves(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match=r"is the class .*RBF itself, which cannot be saved; give an object"):
            save(InfiniteQuantileRegressor(kernel=RBF), tmp_path / "m")

    def test_methods_that_were_replaced(self, tmp_path: Path) -> None:
        model = InfiniteQuantileRegressor()
        model.predict = 3  # type: ignore[assignment, method-assign]
        with pytest.raises(ValueError, match="'predict', which would replace a part of its class"):
            save(model, tmp_path / "m")

    def test_values_that_a_load_would_refuse_are_not_saved(self, tmp_path: Path) -> None:
        """A file that cannot be read is not written."""
        model = InfiniteQuantileRegressor(n_nodes=5, tol=1e-2).fit(BIG, BIG[:, 0])
        model.nodes_ = "mine"
        with pytest.raises(ValueError, match=r"cannot be saved: InfiniteQuantileRegressor\.nodes_ is of type str"):
            save(model, tmp_path / "m")
        with pytest.raises(ValueError, match=r"list\[0\] cannot be saved: Units\.centre is of type str"):
            save([Units(centre="x")], tmp_path / "m")  # type: ignore[arg-type]
        assert not list(tmp_path.iterdir())

    def test_values_that_hold_themselves(self, tmp_path: Path) -> None:
        circle: list[Any] = []
        circle.append([circle])
        with pytest.raises(ValueError, match="holds itself, and cannot be saved; break the circle"):
            save(circle, tmp_path / "m")

    def test_values_that_are_nested_too_deeply(self, tmp_path: Path) -> None:
        deep: list[Any] = []
        for _ in range(10_000):
            deep = [deep]
        with pytest.raises(ValueError, match="nested too deeply"):
            save(deep, tmp_path / "m")

    @each("dtype", [np.longdouble, [("a", "f8"), ("b", "i4")]], ids=str)
    def test_numbers_that_differ_between_machines(self, dtype: Any, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="which cannot be saved; convert it, such as to float64"):
            save({"x": np.zeros(2, dtype=dtype)}, tmp_path / "m")

    def test_too_many_keys_that_are_numbers(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="keys that are not texts"):
            save(dict.fromkeys(range(10_000)), tmp_path / "m")
        save(dict.fromkeys(map(str, range(10_000))), tmp_path / "m")

    def test_more_values_than_a_file_has(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(load.__globals__, "MAX_VALUES", 100)
        with pytest.raises(ValueError, match=r"has \d+ values .*; files have at most 100\..*make them smaller"):
            save(list(range(200)), tmp_path / "m")

    def test_more_text_than_a_file_has(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(save.__globals__, "MAX_HEADER_BYTES", 5_000)
        with pytest.raises(ValueError, match=r"has \d+ bytes .*; files have at most 5000\..*make them smaller"):
            save(["x" * 5_000], tmp_path / "m")
        assert not list(tmp_path.iterdir())

    @each("value", [None, True, 3, 0.5, "model", b"model", np.float64(1.0)], ids=repr)
    def test_a_plain_value_is_no_model(self, value: Any, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="was given to save, which is no model; give an estimator"):
            save(value, tmp_path / "m")
        assert not list(tmp_path.iterdir())

    def test_models_of_other_kinds(self, tmp_path: Path) -> None:
        from sklearn.tree import DecisionTreeRegressor

        with pytest.raises(TypeError, match=r"sklearn\.tree.*which infinitask does not save"):
            save(DecisionTreeRegressor(), tmp_path / "m")

    def test_register_refuses_other_things_than_classes(self) -> None:
        with pytest.raises(TypeError, match="it must be a class, such as register"):
            register(function)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="which is for classes of your own"):
            register(RBF)
        with pytest.raises(TypeError, match="derives from ndarray"):
            register(type("Array", (np.ndarray,), {"__module__": "mine"}))

    def test_paths_that_are_none(self, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match=r"RBF was given as the path; it must be a text or a path, as in save"):
            save(tmp_path / "m", RBF())  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"int was given as the path.*load\(path\)"):
            load(3)  # type: ignore[arg-type]

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere.*; make it first\."):
            save(RBF(), tmp_path / "nowhere" / "m")


class TestTheFile:
    def test_texts_and_paths_with_any_suffix(self, tmp_path: Path) -> None:
        save(RBF(gamma=2.0), str(tmp_path / "kernel.model"))
        assert [path.name for path in tmp_path.iterdir()] == ["kernel.model"]
        assert load(tmp_path / "kernel.model").gamma == 2.0

    def test_a_failure_leaves_the_old_file_as_it_was(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        save(RBF(gamma=2.0), tmp_path / "m")

        def fails(handle: int) -> None:
            raise OSError("no space left")

        monkeypatch.setattr(os, "fsync", fails)
        with pytest.raises(OSError, match="no space left"):
            save(RBF(gamma=3.0), tmp_path / "m")
        assert load(tmp_path / "m").gamma == 2.0
        assert [path.name for path in tmp_path.iterdir()] == ["m"]

    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "target")
        save(RBF(gamma=2.0), tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert load(tmp_path / "target").gamma == 2.0

    def test_others_may_read_it_as_they_may_read_other_files(self, tmp_path: Path) -> None:
        save(RBF(), tmp_path / "m")
        (tmp_path / "plain").write_bytes(b"")
        assert (tmp_path / "m").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"There is no file .*nothing.*; give one"):
            load(tmp_path / "nothing")
