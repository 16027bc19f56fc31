"""Methods of a loaded model open no files, start few processes and evaluate nothing that the writer of a file chose."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import mutual_info_regression
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from infinitask import InfiniteQuantileRegressor, load, save
from infinitask.persistence import register
from infinitask.persistence._names import class_named, known_classes, shown
from infinitask.persistence._rules import NOT_SEARCHED, RULES, is_plain_pattern
from tests.support.each import each
from tests.support.saved import again, forged, opened, refused, table

RANGE = ["range", [0, 3, 1]]
TEXT = "sklearn.feature_extraction.text."
MODELS = "sklearn.model_selection."
QUANTILES = "infinitask.estimators.InfiniteQuantileRegressor"
TUNED = "infinitask.tuning.InfiniteQuantileRegressorCV"

HARMFUL = [
    (TEXT + "CountVectorizer", "input", "filename"),
    (TEXT + "HashingVectorizer", "input", "filename"),
    (TEXT + "TfidfVectorizer", "input", "file"),
    (TEXT + "TfidfVectorizer", "encoding", "idna"),
    (TEXT + "CountVectorizer", "token_pattern", "(a+)+$"),
    ("sklearn.compose.make_column_selector", "pattern", "(a|a)*$"),
    ("sklearn.compose.ColumnTransformer", "verbose_feature_names_out", "{feature_name:>99999999999}"),
    ("sklearn.compose.ColumnTransformer", "verbose_feature_names_out", "{feature_name.__class__}"),
    ("sklearn.compose.ColumnTransformer", "n_jobs", "many"),
    (MODELS + "GridSearchCV", "pre_dispatch", "9**9**9**9"),
    (MODELS + "RandomizedSearchCV", "pre_dispatch", "__import__('os').system('true')"),
    (MODELS + "GridSearchCV", "verbose", "loud"),
    ("sklearn.metrics._scorer._Scorer", "_response_method", "fit"),
    (QUANTILES, "device", "meta"),
    (QUANTILES, "device", "privateuseone:7"),
    (QUANTILES, "verbose", "loud"),
    (TUNED, "n_jobs", 1.5),
    (TUNED, "on_interrupt", "ignore"),
]


@each(("name", "parameter", "value"), HARMFUL, ids=str)
def test_no_file_sets_a_harmful_parameter(name: str, parameter: str, value: Any, tmp_path: Path) -> None:
    path = forged(tmp_path / "m", table(["object", name, [parameter, value]]))
    refused(path, rf"{name.rpartition('.')[2]}\.{parameter} is {re.escape(shown(value))}; in a file it must be")


@each(
    "value", ["{:>99999999999}", "{.__class__}", "{0[0]}", "{!r}", "{", 3, "x" * 10**6 + "{"], ids=lambda v: str(v)[:20]
)
def test_names_of_columns_are_filled_in_plainly(value: Any, tmp_path: Path) -> None:
    pytest.importorskip("skrub")
    path = forged(tmp_path / "m", table(["object", "skrub.ApplyToCols", ["rename_columns", value]]))
    refused(path, "ApplyToCols.rename_columns is ")


def test_a_prediction_opens_no_file_of_the_writers_choice(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret words")
    model = Pipeline(
        [
            ("path", SimpleImputer(strategy="constant", fill_value=str(secret), missing_values=None)),
            ("flat", FunctionTransformer()),
            ("words", HashingVectorizer(n_features=8)),
        ]
    )
    save(model, tmp_path / "m")
    found, arrays, _ = opened(tmp_path / "m")
    (words,) = [entry for entry in found["entries"] if entry[0] == "object" and entry[1].endswith("HashingVectorizer")]
    assert words[2][words[2].index("input") + 1] == "content"
    words[2][words[2].index("input") + 1] = "filename"
    refused(forged(tmp_path / "m", found, arrays), "HashingVectorizer.input is 'filename'")


@each(
    "model",
    [
        CountVectorizer(input="filename"),
        TfidfVectorizer(token_pattern=r"(\w+-?)+"),
        make_pipeline(HashingVectorizer(input="file")),
        GridSearchCV(InfiniteQuantileRegressor(), {}, pre_dispatch="n_jobs**9"),
        FunctionTransformer(mutual_info_regression, kw_args={"n_jobs": 2}),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_model_with_a_harmful_parameter_is_not_saved(model: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be saved: .* (in a file it must be|no call in a file may have)"):
        save(model, tmp_path / "m")


class TestSearches:
    """A search sets parameters when it is fitted again: no rule sees what it sets."""

    @each("parameter", sorted(NOT_SEARCHED))
    def test_a_search_over_a_harmful_parameter_is_refused(self, parameter: str, tmp_path: Path) -> None:
        for key in (parameter, f"step__{parameter}", f"a__b__{parameter}"):
            entries = [["list", ["x"]], ["dict", [key, [0]]], ["list", [[1]]]]
            for at in (1, 2):  # a dict, and a list of dicts
                search = ["object", f"{MODELS}GridSearchCV", ["param_grid", [at]]]
                refused(forged(tmp_path / "m", table(*entries, search)), f"GridSearchCV.param_grid would set '{key}'")
            search = ["object", f"{MODELS}RandomizedSearchCV", ["param_distributions", [1]]]
            refused(forged(tmp_path / "m", table(*entries, search)), "RandomizedSearchCV.param_distributions would set")

    @each("key", ["memory", "step__n_jobs", "words__input", "words__token_pattern"])
    def test_search_keys_that_are_numpy_texts_are_checked(self, key: str, tmp_path: Path) -> None:
        """scikit-learn takes these as names of parameters, too."""
        entries = [
            ["scalar", f"<U{len(key)}", np.str_(key).tobytes().hex()],
            ["list", ["x"]],
            ["dict", [[0], [1]]],
            ["list", [[2]]],
        ]
        mapping = ["mapping", "collections.OrderedDict", [[0], [1]]]
        for name, parameter in (
            (f"{MODELS}GridSearchCV", "param_grid"),
            (f"{MODELS}RandomizedSearchCV", "param_distributions"),
            ("infinitask.tuning.OptunaSearch", "space"),
        ):
            for at in (2, 3, 4):
                search = ["object", name, [parameter, [at]]]
                path = forged(tmp_path / "m", table(*entries, mapping, search))
                refused(path, rf"\w+\.{parameter} would set '{key}'")
        with pytest.raises(ValueError, match=f"would set '{key}', which no search in a file may set"):
            save(GridSearchCV(StandardScaler(), {np.str_(key): ["x"]}), tmp_path / "m")

    def test_search_keys_that_are_no_text_are_refused(self, tmp_path: Path) -> None:
        for key in (["scalar", "|S6", b"memory".hex()], ["tuple", ["memory"]], ["bytes", "bWVtb3J5"]):
            search = ["object", f"{MODELS}GridSearchCV", ["param_grid", [2]]]
            entries = table(key, ["list", ["x"]], ["dict", [[0], [1]]], search)
            refused(forged(tmp_path / "m", entries), "the space of a search has the key a .*, which is no text")

    def test_a_search_that_hides_its_parameters_is_refused(self, tmp_path: Path) -> None:
        entries = [["list", ["x"]], ["dict", ["words__input", [0]]]]
        for hidden in (["objects", [1], [[1]]], ["named", "infinitask.solvers.Start", [[1], [1], [1]]], RANGE):
            search = ["object", f"{MODELS}GridSearchCV", ["param_grid", [2]]]
            refused(forged(tmp_path / "m", table(*entries, hidden, search)), "the space of a search is neither a dict")

    def test_the_best_model_can_be_saved(self, tmp_path: Path) -> None:
        words = make_pipeline(CountVectorizer(), StandardScaler(with_mean=False))
        search = RandomizedSearchCV(words, {"countvectorizer__token_pattern": [r"\w+"]})
        with pytest.raises(ValueError, match="save its best_estimator_ instead"):
            save(search, tmp_path / "m")
        ngrams = GridSearchCV(words, {"countvectorizer__ngram_range": [(1, 1), (1, 2)]})
        assert again(ngrams, tmp_path).param_grid == ngrams.param_grid


class TestProcesses:
    def test_there_are_no_more_than_cores(self, tmp_path: Path) -> None:
        cores = os.cpu_count() or 1
        for given, loaded in ((None, None), (1, 1), (cores, cores), (-1, -1), (cores + 1, -1), (10**6, -1)):
            model = make_pipeline(ColumnTransformer([], n_jobs=given), StandardScaler())
            assert again(model, tmp_path)[0].n_jobs == loaded

    def test_partial_calls_are_checked_too(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="a partial call has n_jobs, which no call in a file may have"):
            save(partial(mutual_info_regression, n_jobs=10**6), tmp_path / "m")
        function = ["function", "sklearn.feature_selection.mutual_info_regression"]
        entries = [function, ["tuple", []], ["dict", ["n_jobs", 10**6]]]
        refused(forged(tmp_path / "m", table(*entries, ["partial", [[0], [1], [2]]])), "a partial call has n_jobs")
        step = ["object", "sklearn.preprocessing.FunctionTransformer", ["func", [0], "kw_args", [2]]]
        refused(forged(tmp_path / "m", table(*entries, step)), "FunctionTransformer.kw_args has n_jobs")


class TestPlaces:
    @each(
        ("name", "parameter"),
        [
            ("sklearn.pipeline.Pipeline", "memory"),
            ("infinitask.pipelines.TaskPipeline", "memory"),
            ("infinitask.tuning.OptunaSearch", "storage"),
            ("infinitask.fitting.Recipe", "device"),
        ],
    )
    def test_no_file_says_where_to_write_or_to_compute(self, name: str, parameter: str, tmp_path: Path) -> None:
        path = forged(tmp_path / "m", table(["object", name, [parameter, str(tmp_path)]]))
        refused(path, f"{name.rpartition('.')[2]} has {parameter}, which a file may not set")


@each("name", ["_parameter_constraints", "_doc_link_module", "_doc_link_url_param_generator", "_white_spaces"])
def test_no_file_replaces_the_constants_of_a_class(name: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "m", table(["object", TEXT + "TfidfVectorizer", [name, None]]))
    refused(path, f"TfidfVectorizer has an attribute '{name}', which would replace a part of its class")


class TestPatterns:
    @each(
        "pattern",
        [
            *(r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", r"[a-zA-Z]+", r"\S+", r"[^,;]+", r"[]x]+", r"[a-z]{2,5}"),
            *(r"\w+|\$[\d\.]+|\S+", r"[A-Za-z]+-[A-Za-z]+", r"(?i)(?:ab|cd)\d*", r"^x_(.*)$", ""),
        ],
    )
    def test_plain_patterns_are_allowed(self, pattern: str) -> None:
        assert is_plain_pattern(pattern)
        re.compile(pattern)

    @each(
        "pattern",
        [
            *("(a+)+", "(a|a)*", "(?:a*)*b", "(?:a|aa)+$", "((a)+)+", "(a)+", r"(\w+\s?)*$", "(.)(.)*"),
            *("a*a*a*b", r"(a+)\1", r"(?P<x>a+)(?P=x)", "(?x)( a + # [\n )+ # ]", "(a|a)(a|a)(a|a)", "a?a?a?aaa"),
            *("[(]+)+", r"\\(a+)+", "a" * 201, "a++b", "(", ")", "[", "\\", "a{1,9999}", "(?>a+)"),
        ],
    )
    def test_other_patterns_are_refused(self, pattern: str) -> None:
        assert not is_plain_pattern(pattern)


def test_every_rule_is_for_a_parameter_that_exists() -> None:
    import inspect

    found = set()
    for name in known_classes():
        try:
            found |= set(inspect.signature(class_named(name)).parameters)
        except ValueError:
            continue  # a library that is not installed, or a class that does not say
    of_skrub, not_parameters = {"rename_columns"}, {"_response_method"}
    assert set(RULES) - of_skrub - not_parameters <= found


def test_defaults_pass_every_rule(tmp_path: Path) -> None:
    for cls in (CountVectorizer, HashingVectorizer, TfidfVectorizer, make_column_selector, InfiniteQuantileRegressor):
        assert type(again(cls(), tmp_path)) is cls


def test_a_class_of_ones_own_may_call_its_parameters_as_it_likes(tmp_path: Path) -> None:
    @register
    class Sensor:
        def __init__(self) -> None:
            self.input, self.n_jobs, self.pattern = "port 3", "two", "(a+)+"

    assert vars(again(Sensor(), tmp_path)) == vars(Sensor())

    @register
    class Words(TfidfVectorizer):
        pass

    assert again(Words(), tmp_path).input == "content"
    with pytest.raises(ValueError, match=r"Words\.input is 'filename'"):
        save(Words(input="filename"), tmp_path / "m")


def test_a_loaded_vectorizer_answers_as_before(tmp_path: Path) -> None:
    words = TfidfVectorizer(token_pattern=r"[a-z]+", encoding="latin-1").fit(["one two", "two three"])
    save(words, tmp_path / "m")
    texts = [b"one", b"three three"]
    assert np.array_equal(load(tmp_path / "m").transform(texts).toarray(), words.transform(texts).toarray())
