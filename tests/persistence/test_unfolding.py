"""A file says in a kilobyte what takes years to print or to hash; and errors are short however long a value is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from infinitask import load, save
from infinitask.persistence._file import _reason as reason
from infinitask.persistence._names import LONGEST, shown
from tests.support.each import each
from tests.support.saved import forged, refused, table

OFTEN = "an entry refers to others so often that it has more than 67108864 values"


def doubled(levels: int, kind: str = "tuple") -> list[Any]:
    """Entries of which each holds the one before it twice: 2^(levels + 1) texts."""
    return [[kind, ["x", "y"]], *([kind, [[k], [k]]] for k in range(levels))]


class TestManyReferences:
    @each("kind", ["tuple", "list"])
    @each("levels", [32, 3000])
    def test_many_references_to_containers_are_refused(self, kind: str, levels: int, tmp_path: Path) -> None:
        refused(forged(tmp_path / "m", table(*doubled(levels, kind))), OFTEN)

    def test_many_references_to_objects_are_refused(self, tmp_path: Path) -> None:
        """Dataclasses print, compare and hash what they hold."""
        sums = [["object", "infinitask.kernels.Sum", ["left", [k], "right", [k]]] for k in range(30)]
        refused(forged(tmp_path / "m", table(["object", "infinitask.kernels.RBF", []], *sums)), OFTEN)

    def test_of_long_texts(self, tmp_path: Path) -> None:
        text = ["scalar", "<U100000", np.str_("x" * 100_000).tobytes().hex()]
        refused(forged(tmp_path / "m", table(text, ["list", [[0]] * 1_000])), OFTEN)
        assert len(load(forged(tmp_path / "m", table(text, ["list", [[0]] * 100])))) == 100

    def test_nothing_is_saved_that_would_not_be_loaded(self, tmp_path: Path) -> None:
        value: Any = ("x", "y")
        for _ in range(30):
            value = (value, value)
        with pytest.raises(ValueError, match=rf"tuple.* cannot be saved: {OFTEN}"):
            save(value, tmp_path / "m")


D = 19  # a million texts: allowed, but in no error
ARRAYS = {"d": np.ones(1), "i": np.zeros(1, dtype=np.int32), "p": np.array([0, 1], dtype=np.int32)}
PARTS: list[Any] = [["array", "d", "C"], ["array", "i", "C"], ["array", "p", "C"]]


def of(name: str, attribute: str) -> list[Any]:
    return [["object", name, [attribute, [D]]]]


WITHOUT_VALUES: dict[str, tuple[list[Any], str]] = {
    **{
        f"{name.rpartition('.')[2]}.{attribute}": (of(name, attribute), rf"\w+.{attribute} is a tuple; in a file")
        for name, attribute in (
            ("sklearn.pipeline.Pipeline", "verbose"),
            ("sklearn.impute.KNNImputer", "n_jobs"),
            ("sklearn.feature_extraction.text.CountVectorizer", "input"),
            ("sklearn.metrics._scorer._Scorer", "_response_method"),
            ("sklearn.compose.ColumnTransformer", "verbose_feature_names_out"),
            ("infinitask.estimators.InfiniteQuantileRegressor", "device"),
        )
    },
    "version": (
        of("sklearn.preprocessing.StandardScaler", "_sklearn_version"),
        "StandardScaler says that it is of scikit-learn a tuple, which is no version",
    ),
    "name of an attribute": ([["object", "sklearn.pipeline.Pipeline", [[D], 1]]], "a key of a dict"),
    "law": ([["tuple", []], ["dict", []], ["distribution", [[D], [D + 1], [D + 2]]]], "the distribution a tuple is"),
    "parameters of a law": ([["dict", []], ["distribution", [[D], [D], [D + 1]]]], "the distribution a tuple has"),
    "type of pandas": ([["pandas type", [[D], None, None]]], "the type a tuple of pandas cannot be saved"),
    "order of categories": ([["pandas type", ["category", None, [D]]]], "categories of pandas are neither in order"),
    "slice": ([["slice", [[D], None, None]]], "a slice is not made of numbers or texts"),
    "generator": ([["dict", ["bit_generator", [D]]], ["random", ["Generator", [D + 1]]]], "the state of a random gen"),
    "kind of generator": (
        [["dict", ["bit_generator", "PCG64"]], ["random", [[D], [D + 1]]]],
        "a random generator is of the kind a tuple",
    ),
    "space": (of("sklearn.model_selection.GridSearchCV", "param_grid"), "the space of a search is neither a dict"),
}


@each("case", WITHOUT_VALUES)
def test_errors_name_the_type_of_what_is_long(case: str, tmp_path: Path) -> None:
    if "pandas" in case or "categories" in case:
        pytest.importorskip("pandas")
    entries, sentence = WITHOUT_VALUES[case]
    refused(forged(tmp_path / "m", table(*doubled(D), *entries)), sentence)


def test_the_form_of_a_sparse_matrix(tmp_path: Path) -> None:
    matrix = ["sparse", [[D], True, [D + 4], [D + 1], [D + 2], [D + 3]]]
    entries = [*doubled(D), *PARTS, ["tuple", [1, 1]], matrix]
    refused(forged(tmp_path / "m", table(*entries), ARRAYS), "a sparse matrix has the form a tuple")


LONG = "x" * 100_000


@each(
    ("entries", "sentence"),
    [
        ([["object", LONG, []]], "it names the class 'x"),
        ([["function", LONG]], "it names the function 'x"),
        ([["function", [LONG]]], "it names the function a list"),
        ([["type", LONG]], "it names the type 'x"),
        ([["float", LONG]], "a number is 'x"),
        ([["scalar", "<i8", LONG]], ""),
        ([["dtype", LONG]], "'x"),
        ([["array", LONG, "C"]], "it has no array 'x"),
        ([["enum", "infinitask.solvers.Reason", LONG]], "'infinitask.solvers.Reason' has no member 'x"),
        ([["object", "infinitask.measures.Uniform", [LONG, 1]]], "Uniform has an attribute 'x"),
        ([["dict", ["bit_generator", LONG]], ["random", ["Generator", [0]]]], "the random generator 'x"),
        ([["range", [0, int("9" * 4000), 1]]], "a range has a whole number of 13288 bits numbers"),
        ([["range", [0, 10, 0]]], "a range has the step 0"),
        ([["object", "sklearn.pipeline.Pipeline", ["_sklearn_version", LONG]]], "Pipeline says that it is of scikit"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_errors_are_short_and_sentences(entries: list[Any], sentence: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "m", table(*entries))
    refused(path, sentence)
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        load(path)
    error: BaseException | None = caught.value
    while error is not None:  # a traceback prints all of them
        assert len(str(error)) < 800
        error = error.__cause__ or error.__context__


def test_a_single_value_is_no_model(tmp_path: Path) -> None:
    for value in (None, 3, "x"):
        refused(forged(tmp_path / "m", {"entries": [], "model": value}), "it holds a single value and no model")


def test_an_error_shows_short_values_only() -> None:
    assert shown("a") == "'a'"
    assert shown(np.str_("a")) == "'a'"
    assert shown(1.5) == "1.5"
    assert shown({}) == "a dict"
    assert len(shown("\x00" * 1000)) <= 4 * LONGEST + 3
    assert reason(KeyError(("a", "b"))) == "a tuple is missing"
    assert reason(RuntimeError(("a", "b"))) == "RuntimeError"
    assert reason(ValueError("one.\ntwo")) == "one"
    assert reason(ValueError()) == "ValueError"
