"""A small file cannot make large values: what is loaded is about as long as the file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from infinitask import InfiniteQuantileRegressor, load, save
from infinitask.persistence._entries import MOST_ENTRIES
from infinitask.persistence._special import MAX_RANGE
from tests.support.each import each
from tests.support.saved import again, forged, opened, refused, table, tried

HUGE = 4 * 10**7
"""Numbers of a range that takes 20 bytes in a file, and gigabytes as a list."""

RANGE = ["range", [0, MAX_RANGE, 1]]
"""The longest range that a file may have: 8 MiB as a tuple, 40 MiB with its numbers."""

QUANTILES = "infinitask.estimators.InfiniteQuantileRegressor"


class TestRanges:
    @each("numbers", [[0, HUGE, 1], [0, -HUGE, -1], [0, 10**30, 3]], ids=str)
    def test_no_file_has_a_long_one(self, numbers: list[int], tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", table(["range", numbers])), "a range has ")

    def test_a_range_of_other_things_than_whole_numbers_is_refused(self, tmp_path: Path) -> None:
        for numbers in ([0.0, 1.0, 1.0], [0, 5, 0], ["0", "5", "1"], [True, False, True], [0, 5]):
            refused(forged(tmp_path / "m", table(["range", numbers])), "")

    def test_a_long_one_is_not_saved(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=r"list\[0\] cannot be saved: a range has 40000000 numbers"):
            save([range(HUGE)], tmp_path / "m")
        assert again(range(5, 1, -2), tmp_path) == range(5, 1, -2)

    @each(
        "entry",
        [
            ["partial", [[1], [0], [3]]],
            ["partial", [[1], [2], [0]]],
            ["distribution", ["norm", [0], [3]]],
            ["distribution", ["norm", [2], [0]]],
            ["spline", [[0], [4], 1, True, 0]],
            ["spline", [[4], [0], 1, True, 0]],
            ["spline", [[4], [4], [0], True, 0]],
            ["slice", [[0], None, None]],
            ["masked", [[4], [5], [0]]],
            ["masked", [[0], [5], 0.0]],
            ["random", ["Generator", [0]]],
            ["sparse", ["csr", True, [2], [4], [0], [4]]],
            ["sparse", ["csr", True, [0], [4], [4], [4]]],
            ["pandas type", ["category", [0], False]],
            ["pandas index", [[0], [6], None]],
            ["pandas index", [[4], [6], [0]]],
            ["range", [[0], [0], [0]]],
        ],
        ids=str,
    )
    def test_no_range_stands_for_another_value(self, entry: Any, tmp_path: Path) -> None:
        arrays = {"a": np.zeros(4), "b": np.zeros(4, dtype=bool)}
        first = [RANGE, ["function", "numpy.exp"], ["tuple", []], ["dict", []], ["array", "a", "C"]]
        path = forged(tmp_path / "m", table(*first, ["array", "b", "C"], ["dtype", "<f8"], entry), arrays)
        refused(path, "a range is a part of a value of the kind")

    @each("name", ["PCG64", "SFC64", "Philox", "MT19937"])
    def test_no_range_is_in_the_state_of_a_generator(self, name: str, tmp_path: Path) -> None:
        save(np.random.Generator(getattr(np.random, name)(0)), tmp_path / "m")
        found, arrays, _ = opened(tmp_path / "m")
        entries = [RANGE, *map(_moved, found["entries"])]
        for kind, values, *_ in entries[1:]:
            if kind == "dict" and "bit_generator" not in values:
                values[1] = [0]
        path = forged(tmp_path / "m", table(*entries), arrays)
        refused(path, "the state of a random generator has a range")


def _moved(entry: Any) -> Any:
    """An entry whose references are one further."""
    if type(entry) is list and len(entry) == 1 and type(entry[0]) is int:
        return [entry[0] + 1]
    return [_moved(one) for one in entry] if type(entry) is list else entry


class TestTypesOfParts:
    @each(
        ("entries", "reason"),
        [
            ([["list", []], ["partial", [[0], [3], [2]]]], "a partial call has arguments that are no tuple"),
            ([["dict", [1, 2]], ["partial", [[0], [1], [3]]]], "a partial call has arguments that are no tuple"),
            ([["tuple", [0] * 65], ["partial", [[0], [3], [2]]]], "a partial call has 65 arguments, and at most 64"),
            ([["list", [0]], ["distribution", ["norm", [3], [2]]]], "a distribution has arguments that are no tuple"),
            ([["tuple", ["0"]], ["distribution", ["norm", [3], [2]]]], "the distribution 'norm' has parameters that"),
            ([["list", [0.0] * 4], ["spline", [[3], [3], 1, True, 0]]], "a spline has knots or coefficients that"),
            ([["list", ["a"]], ["pandas type", ["category", [3], False]]], "labels of pandas are no array"),
            ([["tuple", [[1]]], ["pandas type", [[3], None, None]]], "the type .* of pandas cannot be saved"),
        ],
        ids=lambda value: str(value)[:60],
    )
    def test_parts_of_a_wrong_type_are_refused(self, entries: Any, reason: str, tmp_path: Path) -> None:
        first = [["function", "numpy.exp"], ["tuple", []], ["dict", []]]
        refused(forged(tmp_path / "m", table(*first, *entries)), reason)

    def test_a_table_of_two_parameters_of_a_distribution(self, tmp_path: Path) -> None:
        sides = [np.ones((20_000, 1)), np.ones((1, 20_000))]
        entries = [["array", "a", "C"], ["array", "b", "C"], ["tuple", [[0], [1]]], ["dict", []]]
        path = forged(
            tmp_path / "m", table(*entries, ["distribution", ["norm", [2], [3]]]), dict(zip("ab", sides, strict=True))
        )
        refused(path, "the distribution 'norm' has parameters that are no numbers")
        with pytest.raises(ValueError, match="has parameters that are no numbers"):
            save(stats.norm(*sides), tmp_path / "m")

    def test_types_that_are_longer_than_their_arrays(self, tmp_path: Path) -> None:
        arrays = {"a": np.empty(0, np.uint8), "b": np.empty(0, dtype=bool), "c": np.zeros(2)}
        long = [["raw", "a", "C", "<U99999999", [0]], ["array", "b", "C"], ["array", "c", "C"]]
        masked = table(*long, ["masked", [[0], [1], "x"]])
        refused(forged(tmp_path / "m", masked, arrays), "a masked array has parts of wrong types")
        index = table(*long, ["dtype", "<U99999999"], ["pandas index", [[2], [3], None]])
        pytest.importorskip("pandas")
        refused(forged(tmp_path / "m", index, arrays), "an index of pandas has a type that is none")

    def test_labels_that_take_forever_to_hash(self, tmp_path: Path) -> None:
        pytest.importorskip("pandas")
        entries: list[Any] = [["tuple", ["lol"] * 10]]
        for k in range(5):
            entries.append(["tuple", [[k]] * 10])  # 10^6 texts for one who hashes them all, each time
        entries.append(["objects", [2], [[5], [4]]])
        category = ["pandas type", ["category", [6], False]]
        refused(forged(tmp_path / "m", table(*entries, category)), "a key of a dict")
        entries += [["objects", [1], ["a"]], ["dtype", "|O"]]
        refused(forged(tmp_path / "m", table(*entries, ["pandas index", [[6], [8], None]])), "a key of a dict")
        refused(forged(tmp_path / "m", table(*entries, ["pandas index", [[7], [8], [5]]])), "an index of pandas has")

    def test_a_packed_factor_is_an_array_of_floats(self, tmp_path: Path) -> None:
        inverse = ["object", "infinitask.features.Inverse", ["packed", [0]]]
        arrays = {"a": np.ones(3, dtype=np.int8)}
        refused(
            forged(tmp_path / "m", table(["array", "a", "C"], inverse), arrays),
            "A packed factor was given that is no array",
        )


class TestRepeatedReferences:
    """A reference takes 5 bytes in a file: values that are copied for each are counted."""

    @pytest.mark.parametrize(
        "entry",
        [
            ["spline", [[0], [0], 1, True, 0]],
            ["masked", [[0], [1], 0.0]],
            ["object", "infinitask.features.Inverse", ["packed", [0]]],
        ],
        ids=lambda entry: entry[0],
    )
    def test_arrays_are_not_copied_again_and_again(
        self, entry: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("infinitask.persistence._entries.MAX_REPEATED_BYTES", 2**20)
        arrays = {"a": np.arange(5050.0), "b": np.zeros(5050, dtype=bool)}
        entries = [["array", "a", "C"], ["array", "b", "C"], *[entry] * 1_000]
        refused(forged(tmp_path / "m", table(*entries), arrays), "arrays that several values share take more than")

    def test_lists_of_arguments_are_short(self, tmp_path: Path) -> None:
        entries = [["function", "numpy.exp"], ["tuple", [0] * 50_000], ["dict", []]]
        refused(forged(tmp_path / "m", table(*entries, *[["partial", [[0], [1], [2]]]] * 1_000)), "a partial call has")

    @pytest.mark.parametrize("kind", sorted(MOST_ENTRIES))
    def test_entries_of_a_kind_are_few(self, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(MOST_ENTRIES, kind, 5)
        refused(forged(tmp_path / "m", table(*[[kind]] * 6)), f"it has more than 5 entries of the kind '{kind}'")

    def test_a_model_with_too_many_entries_is_not_saved(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(MOST_ENTRIES, "partial", 5)
        with pytest.raises(
            ValueError, match=r"list\[5\] cannot be saved: it has more than 5 entries of the kind 'partial'"
        ):
            save([partial(np.exp, k) for k in range(6)], tmp_path / "m")

    def test_empty_estimators_get_their_defaults(self, tmp_path: Path) -> None:
        entries = [["object", QUANTILES, []]] * 1_000
        assert tried(forged(tmp_path / "m", table(*entries))) == "loaded"
        assert load(tmp_path / "m").get_params() == InfiniteQuantileRegressor().get_params()

    @pytest.mark.slow
    def test_as_many_distributions_as_there_may_be(self, tmp_path: Path) -> None:
        laws = [["distribution", ["norm", [0], [1]]]] * MOST_ENTRIES["distribution"]
        path = forged(tmp_path / "m", table(["tuple", []], ["dict", []], *laws))
        assert tried(path) == "loaded"
