"""A file from a stranger is refused with a sentence, runs nothing and takes little memory."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import load, save
from infinitask.kernels import RBF
from tests.support.each import each
from tests.support.saved import REFUSED, forged, good_file, opened, refused, table


def raw_file(path: Path, header: Any, data: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return good_file(tmp_path_factory.mktemp("good") / "m")


class TestOtherFiles:
    def test_files_of_other_kinds_are_refused(self, tmp_path: Path) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("model", "x")
        for content in (
            b"",
            b"{",
            b"\x80\x04",
            pickle.dumps(RBF()),
            packed.getvalue(),
            b"\x00" * 100,
            b"PK\x03\x04" * 9,
        ):
            path = tmp_path / "m"
            path.write_bytes(content)
            refused(path, "it does not start as a safetensors file does")

    def test_a_pickle_in_disguise_is_not_run(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "trapped"),)

        path = tmp_path / "m.safetensors"
        path.write_bytes(pickle.dumps(Trap()))
        refused(path, "it does not start as")
        path = raw_file(
            path, {"__metadata__": {"format": "infinitask model", "table": pickle.dumps(Trap(), 0).decode()}}
        )
        refused(path, "its header does not say which version")
        assert not (tmp_path / "trapped").exists()

    def test_safetensors_of_others(self, tmp_path: Path) -> None:
        from safetensors.numpy import save_file

        save_file({"weight": np.zeros(3)}, tmp_path / "m")
        refused(tmp_path / "m", "its header does not say that it holds a model of infinitask")
        save_file({"weight": np.zeros(3)}, tmp_path / "m", metadata={"format": "pt"})
        refused(tmp_path / "m", "its header does not say that it holds a model of infinitask")

    def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match="There is no file"):
            load(tmp_path)


class TestSizes:
    @each("length", [2**63, 2**40, 2**26, 10_000])
    def test_a_header_longer_than_the_file(self, length: int, tmp_path: Path) -> None:
        (tmp_path / "m").write_bytes(length.to_bytes(8, "little") + b'{"a":1}' + b" " * 50)
        refused(tmp_path / "m", f"its header would take {length} bytes")

    def test_a_header_longer_than_any(self, tmp_path: Path) -> None:
        with (tmp_path / "m").open("wb") as file:
            file.write((2**26).to_bytes(8, "little") + b"{")
            file.truncate(2**27)  # holes: nothing is written
        refused(tmp_path / "m", "its header would take 67108864 bytes")

    def test_a_file_that_was_cut(self, good: Path, tmp_path: Path) -> None:
        content = good.read_bytes()
        for share in (0.01, 0.3, 0.7, 0.99):
            (tmp_path / "m").write_bytes(content[: int(share * len(content))])
            refused(tmp_path / "m", "")

    def test_a_file_with_more_at_its_end(self, good: Path, tmp_path: Path) -> None:
        (tmp_path / "m").write_bytes(good.read_bytes() + b"more")
        refused(tmp_path / "m", "Error while deserializing header")

    @each(
        ("shape", "offsets", "data"),
        [
            ([10**12], [0, 8 * 10**12], b""),
            ([10**12], [0, 8], b"\x00" * 8),
            ([2**62, 4], [0, 8], b"\x00" * 8),
            ([1], [8, 16], b"\x00" * 16),
            ([1], [8, 0], b"\x00" * 8),
            ([1], [0, 2**63], b"\x00" * 8),
            ([-1], [0, 8], b"\x00" * 8),
        ],
        ids=str,
    )
    def test_arrays_that_lie_about_their_size(self, shape: Any, offsets: Any, data: bytes, tmp_path: Path) -> None:
        header = {"a": {"dtype": "F64", "shape": shape, "data_offsets": offsets}}
        refused(raw_file(tmp_path / "m", header, data), "Error while deserializing header")

    def test_arrays_that_overlap(self, tmp_path: Path) -> None:
        one = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
        header = {"a": one, "b": {**one, "data_offsets": [8, 24]}}
        refused(raw_file(tmp_path / "m", header, b"\x00" * 24), "Error while deserializing header")

    def test_more_arrays_than_a_file_has(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(load.__globals__, "MAX_ARRAYS", 10)
        header = {f"a{k}": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]} for k in range(11)}
        refused(raw_file(tmp_path / "m", header), "it has more than 10 arrays")

    def test_more_values_than_a_table_has(self, tmp_path: Path) -> None:
        text = '{"entries":[' + "[]," * 2**20 + '[]],"model":[0]}'
        with pytest.raises(ValueError, match="its table has 2097160 values, and at most 2097152 are read"):
            load(forged(tmp_path / "m", text))

    @each("bracket", ["[", '{"a":'])
    def test_tables_that_are_nested(self, bracket: str, tmp_path: Path) -> None:
        text = '{"entries":' + bracket * 100_000
        with pytest.raises(ValueError, match=REFUSED.format("")):
            load(forged(tmp_path / "m", text))

    @each(
        "number",
        ["9" * 100_000, "-" + "1" * 5_000, "1." + "0" * 10**6, "1e" + "9" * 5_000],
        ids=lambda text: f"{text[:3]}, {len(text)} characters",
    )
    def test_numbers_that_take_long_to_read(self, number: str, tmp_path: Path) -> None:
        path = forged(tmp_path / "m", '{"entries":[["list",[' + number + ']]],"model":[0]}')
        if "." in number or "e" in number:  # read in time that grows with its length
            assert load(path) == [float(number)]
        else:
            refused(path, "Exceeds the limit")

    def test_headers_that_say_a_thing_twice(self, tmp_path: Path) -> None:
        text = json.dumps(table(["list", []]))
        said = '"format":"infinitask model","format_version":"1"'
        header = f'{{"__metadata__":{{{said},"table":{json.dumps(text)},"table":"[]","checksum":"0"}}}}'
        refused(raw_file(tmp_path / "m", header.encode()), "")

    def test_headers_that_are_nested(self, tmp_path: Path) -> None:
        refused(raw_file(tmp_path / "m", b'{"__metadata__":' + b"[" * 100_000), "Error while deserializing header")

    @each(
        ("entry", "reason"),
        [
            (["raw", "a", "C", "<U9", [10**12]], "the array 'a' does not have the size that it says"),
            (["raw", "a", "C", "<U0", [10**12]], "the array 'a' "),
            (["raw", "a", "C", "|O", [1]], "the array 'a' does not have the size"),
            (["raw", "a", "C", "f8,f8", [1]], "'f8,f8' is not the name of a type of numbers"),
            (["raw", "a", "C", "<U2", [1]], "the array 'a' has texts that are none"),
            (["raw", "a", "C", "<f8", [-1]], "an array has no shape"),
            (["raw", "a", "C", "<f8", [1] * 40], "an array has no shape"),
            (["objects", [10**12], []], "an array of objects does not have the size that it says"),
            (["array", "a", "K"], "an array has no order"),
            (["array", "b", "C"], "it has no array 'b'"),
            (["array", 3, "C"], "it has no array 3"),
            (["list", []], "1 of its arrays belong to nothing"),
        ],
        ids=str,
    )
    def test_entries_that_lie_about_their_arrays(self, entry: Any, reason: str, tmp_path: Path) -> None:
        arrays = {"a": np.full(8, 255, dtype=np.uint8)}
        refused(forged(tmp_path / "m", table(entry), arrays), reason)

    def test_an_array_of_two_entries(self, tmp_path: Path) -> None:
        both = table(["array", "a", "C"], ["array", "a", "C"])
        refused(forged(tmp_path / "m", both, {"a": np.zeros(2)}), "the array 'a' belongs to two entries")

    def test_sparse_matrices_whose_indices_are_outside(self, tmp_path: Path) -> None:
        arrays = {"d": np.ones(1), "i": np.array([10**6]), "p": np.array([0, 1])}
        parts = [["array", name, "C"] for name in "dip"]
        for shape, form in (([1, 3], "csr"), ([10**12, 3], "csr"), ([1, 3], "csc"), ([1, 3], "bsr")):
            entry = ["sparse", [form, True, [3], [0], [1], [2]]]
            refused(forged(tmp_path / "m", table(*parts, ["tuple", shape], entry), arrays), "")

    def test_a_random_state_that_would_read_elsewhere(self, tmp_path: Path) -> None:
        save(np.random.RandomState(0), tmp_path / "m")
        found, arrays, _ = opened(tmp_path / "m")
        text = json.dumps(found).replace('"pos", 624', '"pos", 1000000')
        assert "1000000" in text
        refused(forged(tmp_path / "m", text, arrays), "the random generator MT19937 is at 1000000, beyond its 624")


class TestNames:
    @each(
        "name",
        [
            "os.system",
            "builtins.eval",
            "builtins.object",
            "subprocess.Popen",
            "sklearn.utils._joblib.Memory",
            "sklearn.base.BaseEstimator",
            "sklearn.preprocessing._data.StandardScaler",
            "infinitask.streaming._blocks.Blocks",
            "infinitask.fitting._warm_start.Memory",
            "infinitask.kernels.__builtins__",
            "infinitask.kernels.input_kernel",
            "numpy.ndarray",
            "../../x",
            "infinitask.kernels/../../os.system",
            "infinitask.kernels.RBF/../../../tmp/x",
            "file:///etc/passwd",
            "",
            ".",
            "..",
            "x" * 10_000,
        ],
    )
    def test_classes_that_no_file_may_name(self, name: str, tmp_path: Path) -> None:
        for kind in ("object", "mapping", "named", "enum"):
            refused(forged(tmp_path / "m", table([kind, name, []])), "it names the class")

    @each("name", ["os.system", "builtins.eval", "numpy.load", "numpy.fromfile", "pickle.loads", "../../x", ""])
    def test_functions_that_no_file_may_name(self, name: str, tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", table(["function", name])), "it names the function")

    @each("name", ["../../x", "/etc/passwd", "C:\\x", "..", "a\x00b", "~/x", "", " "])
    def test_names_of_arrays_lead_nowhere(self, name: str, tmp_path: Path) -> None:
        inside = tmp_path / "a" / "b"
        inside.mkdir(parents=True, exist_ok=True)
        path = forged(inside / "m", table(["array", name, "C"]), {name: np.arange(3.0)})
        before = sorted(tmp_path.rglob("*"))
        assert load(path).tolist() == [0.0, 1.0, 2.0]
        assert sorted(tmp_path.rglob("*")) == before

    def test_types_and_distributions_that_no_file_may_name(self, tmp_path: Path) -> None:
        refused(
            forged(tmp_path / "m", table(["type", "os.system"])), "it names the type 'os.system', which is not among"
        )
        law = [["tuple", []], ["dict", []]]
        for name in ("rv_continuous", "os", "_distn_infrastructure", "bootstrap"):
            entries = table(*law, ["distribution", [name, [0], [1]]])
            refused(forged(tmp_path / "m", entries), f"the distribution '{name}' is not one of scipy.stats")

    def test_a_partial_call_of_a_type(self, tmp_path: Path) -> None:
        entries = table(["type", "builtins.bytes"], ["tuple", [10**12]], ["dict", []], ["partial", [[0], [1], [2]]])
        refused(forged(tmp_path / "m", entries), "a partial call is of something that is no function")

    def test_classes_that_are_abstract_or_of_another_kind(self, tmp_path: Path) -> None:
        for kind, name in (
            ("object", "infinitask.kernels.InputKernel"),
            ("object", "infinitask.solvers.Reason"),
            ("object", "collections.OrderedDict"),
            ("named", "infinitask.kernels.RBF"),
            ("enum", "infinitask.kernels.RBF"),
            ("mapping", "infinitask.kernels.RBF"),
        ):
            refused(forged(tmp_path / "m", table([kind, name, []])), f"'{name}' ")


class TestAttributes:
    @each(
        "name",
        [
            *("__class__", "__dict__", "__init__", "__reduce__", "__sklearn_tags__", "__anything"),
            *("predict", "fit", "get_params", "set_fit_request", "kernel_gap_"),
            *("_support ", "a.b", "", 3, "x" * 1000),
        ],
        ids=lambda name: str(name)[:20],
    )
    def test_no_attribute_replaces_what_a_class_does(self, name: Any, tmp_path: Path) -> None:
        entry = ["object", "infinitask.estimators.InfiniteQuantileRegressor", [name, 1]]
        refused(forged(tmp_path / "m", table(entry)), "InfiniteQuantileRegressor has an attribute")

    @each("name", ["transform", "fit_transform", "steps_", "predict"])
    def test_no_attribute_replaces_a_method_of_another_library(self, name: str, tmp_path: Path) -> None:
        path = forged(
            tmp_path / "m", table(["object", "sklearn.pipeline.Pipeline", ["_sklearn_version", "0", name, 1]])
        )
        if name == "steps_":
            with pytest.warns(UserWarning, match="version 0"):
                assert load(path).steps_ == 1
        else:
            refused(path, "Pipeline has an attribute")

    def test_a_cache_on_disk_is_not_set(self, tmp_path: Path) -> None:
        entry = ["object", "sklearn.pipeline.Pipeline", ["memory", "/etc"]]
        refused(forged(tmp_path / "m", table(entry)), "Pipeline has memory, which a file may not set")

    @each(
        ("entries", "reason"),
        [
            (
                [["object", "infinitask.fitting.Units", ["centre", "x", "spread", 1.0]]],
                "Units.centre is of type str",
            ),
            ([["object", "infinitask.calibration.Shift", []]], "Shift has no 'levels'"),
            (
                [["object", "infinitask.fitting.Units", ["more", 0.0]]],
                "Units has an attribute 'more', which is not a",
            ),
            ([["object", "infinitask.field.Field", ["phi", 1]]], "Field.phi is of type int"),
            ([["object", "infinitask.estimators.InfiniteSVR", ["field_", 1]]], "InfiniteSVR.field_ is of type int"),
            ([["object", "infinitask.estimators.InfiniteSVR", ["recipe_", "a"]]], "InfiniteSVR.recipe_ is of type str"),
            ([["object", "infinitask.kernels.Sum", ["left", 1]]], "Sum has no 'right'"),
            ([["object", "infinitask.kernels.RBF", ["gamma"]]], "a dict has a key without a value"),
            ([["object", "infinitask.kernels.RBF", 3]], "an entry has no list of values"),
            ([["object", ["infinitask.kernels.RBF"], []]], "it names the class a list"),
            ([["object", "infinitask.kernels.RBF"]], ""),
            ([["object", "infinitask.features.Inverse", ["packed", 3]]], ""),
            ([["enum", "infinitask.solvers.Reason", "NEVER"]], "'infinitask.solvers.Reason' has no member 'NEVER'"),
            ([["named", "infinitask.solvers.Start", [1]]], "'infinitask.solvers.Start' is no tuple of 1 names"),
            ([["list", []], ["dict", [[0], 1]]], "a key of a dict, or a member of a set, is not made of"),
            ([["list", []], ["set", [[0]]]], "a key of a dict, or a member of a set, is not made of"),
            ([["scalar", "<f8", 3]], "a number is not written as a text"),
            ([["scalar", "<f8", "nothing"]], ""),
            ([["scalar", "<i8", "9" * 10_000]], ""),
            ([["float", "1.0"]], ""),
            ([["bytes", "not base64!"]], ""),
            ([["dtype", "O,O"]], "'O,O' is not the name of a type of numbers"),
            ([["pandas type", ["datetime64[ns, Europe]", None, None]]], ""),
            ([["pandas type", ["datetime64[ns, ../../etc/passwd]", None, None]]], ""),
            ([["pandas type", ["object", None, None]]], "the type 'object' of pandas cannot be saved"),
            ([["slice", []]], ""),
            ([["nothing", 1]], "an entry is of the unknown kind 'nothing'"),
            ([[]], "an entry does not say what it is"),
            (["x"], "an entry does not say what it is"),
            ([["_make_list", 1]], "an entry is of the unknown kind '_make_list'"),
            ([["list", [1.5, {"a": 1}]]], "a value is neither a number, a text nor a reference"),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_entries_of_wrong_types(self, entries: Any, reason: str, tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", table(*entries)), reason)

    @each("number", [0, 1, -1, 5, 10**30, True, 0.0, "0"])
    def test_references_to_what_does_not_come_before(self, number: Any, tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", table(["list", [[number]]])), "a value ")
        refused(forged(tmp_path / "m", table(["list", []], model=[number] if number != 0 else [1])), "a value ")

    def test_numbers_that_are_chosen_to_collide(self, tmp_path: Path) -> None:
        keys = [k * (2**61 - 1) for k in range(5_000)]
        refused(forged(tmp_path / "m", table(["set", keys])), "a dict or a set has 5000 keys that are not texts")

    @each("text", ["", "[]", "{}", "null", '{"entries":[]}', '{"entries":3,"model":[0]}', '{"a'])
    def test_tables_that_are_none(self, text: str, tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", text), "")

    def test_numbers_that_are_none_of_json(self, tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", '{"entries":[],"model":NaN}'), "its table has the number NaN")


class TestVersions:
    def test_a_newer_format(self, tmp_path: Path) -> None:
        path = forged(tmp_path / "m", table(["list", []]), format_version="2")
        with pytest.raises(ValueError, match=r"has version 2 of the format, .* versions up to 1; update infinitask\.$"):
            load(path)

    @each("version", ["", "x", "0", "000", "-1", "1.0", "９" * 3, "1" * 1000])
    def test_a_version_that_is_none(self, version: str, tmp_path: Path) -> None:
        path = forged(tmp_path / "m", table(["list", []]), format_version=version)
        with pytest.raises(ValueError, match=r"which version of the format|update infinitask"):
            load(path)

    def test_a_library_that_is_not_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from infinitask.persistence import _names

        monkeypatch.setattr(_names, "known_classes", lambda: frozenset({"nowhere.Thing", "sklearn.pipeline.Tube"}))
        refused(
            forged(tmp_path / "m", table(["object", "nowhere.Thing", []])), "it names 'nowhere.Thing', and nowhere is"
        )
        old = forged(tmp_path / "m", table(["object", "sklearn.pipeline.Tube", []]))
        refused(old, r"it names 'sklearn.pipeline.Tube', which sklearn .* does not have")
