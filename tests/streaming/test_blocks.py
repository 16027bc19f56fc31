"""Blocks are read again and again, checked, and sampled in a way that does not depend on how they are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from infinitask import (
    CrossConformal,
    InfiniteCostSensitiveClassifier,
    InfiniteOneClassSVM,
    InfiniteQuantileRegressor,
    fit_path,
    score_path,
)
from infinitask.kernels import Precomputed
from infinitask.streaming import Blocks, _sampling
from infinitask.streaming._parts import Block
from tests.support.limits import visit_in_parts

Floats = np.ndarray[Any, Any]
N = 90


@pytest.fixture(scope="module")
def data() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, X[:, 0] + 0.3 * rng.normal(size=N), rng.integers(0, 3, size=N).astype(float)


def cut(*arrays: Any, rows: int = 20, **options: Any) -> Blocks:
    n = len(arrays[0])
    return Blocks([tuple(a[k : k + rows] for a in arrays) for k in range(0, n, rows)], **options)


def quick(**options: Any) -> InfiniteQuantileRegressor:
    return InfiniteQuantileRegressor(n_nodes=6, tol=1e-2, alpha=1e-3, gamma=0.5, **options)


# ----------------------------------------------------------------------------------------------------- what is read
def test_every_pass_reads_all_blocks_and_is_counted(data: Any) -> None:
    blocks = cut(*data)
    for count in (1, 2):
        read = list(blocks)
        assert blocks.passes == count
        for k in range(3):
            np.testing.assert_array_equal(np.concatenate([block[k] for block in read]), data[k])


def test_a_pass_that_is_not_finished_does_not_count(data: Any) -> None:
    blocks = cut(*data)
    next(iter(blocks))
    assert blocks.passes == 0


def test_a_function_is_called_for_every_pass(data: Any) -> None:
    calls = []

    def read() -> Iterator[Any]:
        calls.append(0)
        yield data[:2]

    blocks = Blocks(read)
    assert len(list(blocks)) == len(list(blocks)) == 1
    assert len(calls) == 2


def test_empty_blocks_are_passed_over(data: Any) -> None:
    X, y, _ = data
    blocks = Blocks([(X[:0], y[:0]), (X[:50], y[:50]), (X[:0], y[:0]), (X[50:], y[50:]), (X[:0], y[:0])])
    assert [block.X.shape[0] for block in blocks] == [50, N - 50]
    assert quick().fit(blocks).objective_ == quick().fit(X, y).objective_


def test_arrays_are_cut_and_not_copied(data: Any) -> None:
    X, y, weight = data
    for block in Blocks.of_arrays(X, y, weight, rows=40):
        assert np.shares_memory(block.X, X)
        assert np.shares_memory(block.y, y)
        assert block.X.shape[0] <= 40


def test_a_memory_map_is_read(data: Any, tmp_path: Path) -> None:
    X, y, _ = data
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert isinstance(mapped, np.memmap)
    model = quick().fit(Blocks.of_arrays(mapped, y, rows=25))
    assert model.objective_ == quick().fit(X, y).objective_


def test_lists_and_sparse_blocks_and_columns_of_targets_are_read(data: Any) -> None:
    X, y, _ = data
    expected = quick().fit(X, y).objective_
    for block in ((X.tolist(), y.tolist()), (sparse.csr_array(X), y), (X, y[:, None]), (X.astype(object), y)):
        assert quick().fit(Blocks([block])).objective_ == expected


def test_data_frames_are_read(data: Any) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    X, y, _ = data
    frame = pandas.DataFrame(X, columns=["a", "b"])
    assert quick().fit(Blocks([(frame, pandas.Series(y))])).objective_ == quick().fit(X, y).objective_


@pytest.mark.parametrize("memory", [None, 8 * N * 6, 0], ids=["features kept", "inputs kept", "nothing kept"])
@pytest.mark.parametrize("form", ["function", "iterable"])
def test_a_reader_may_fill_the_same_arrays_again(
    data: Any, monkeypatch: pytest.MonkeyPatch, form: str, memory: int | None
) -> None:
    visit_in_parts(monkeypatch)

    class Reader:
        def __iter__(self) -> Iterator[Any]:
            buffer = [np.empty_like(values[:30]) for values in data]
            for start in range(0, N, 30):
                for mine, values in zip(buffer, data, strict=True):
                    mine[...] = values[start : start + 30]
                yield tuple(buffer)

    reader = Reader()
    blocks = Blocks(reader if form == "iterable" else reader.__iter__, memory=memory)
    for k, kept in enumerate(zip(*blocks, strict=True)):
        np.testing.assert_array_equal(np.concatenate(kept), data[k])
    before = blocks.passes
    found, expected = quick(rank=30).fit(blocks), quick(rank=30).fit(cut(*data, rows=30, memory=memory))
    assert (blocks.passes - before == 2) is (memory != 0)  # what is kept is read once after the survey
    assert found.objective_ == expected.objective_
    np.testing.assert_array_equal(found.field_.coef, expected.field_.coef)


def test_targets_of_any_type_of_numbers_are_read(data: Any) -> None:
    X, y, _ = data
    y = np.round(y, 2)
    expected = quick().fit(X, y).objective_
    for given in (y.astype(object), np.array([Decimal(str(v)) for v in y]), y.astype(np.longdouble), list(y)):
        assert quick().fit(Blocks([(X[:40], given[:40]), (X[40:], given[40:])])).objective_ == expected


# ---------------------------------------------------------------------------------------------------------- Parquet
@pytest.fixture
def parquet() -> Any:
    return pytest.importorskip("pyarrow.parquet", reason="pip install infinitask[parquet]")


@pytest.fixture
def table(data: Any, parquet: Any) -> Any:
    import pyarrow

    X, y, weight = data
    whole = np.arange(N) % 7
    columns = {"length": X[:, 0].astype(np.float32), "target": y, "count": whole, "weight": weight, "width": X[:, 1]}
    return pyarrow.table(columns)


def rows_of(data: Any) -> Floats:
    X = data[0]
    return np.column_stack([X[:, 0].astype(np.float32), np.arange(N) % 7, X[:, 1]])


def test_a_file_of_several_row_groups_is_read(data: Any, table: Any, parquet: Any, tmp_path: Path) -> None:
    parquet.write_table(table, tmp_path / "rows.parquet", row_group_size=17)
    blocks = Blocks.of_parquet(tmp_path / "rows.parquet", "target", weight="weight", rows=10)
    read = list(blocks)
    np.testing.assert_array_equal(np.concatenate([block.X for block in read]), rows_of(data))
    np.testing.assert_array_equal(np.concatenate([block.y for block in read]), data[1])
    np.testing.assert_array_equal(np.concatenate([block.weight for block in read]), data[2])
    assert max(block.X.shape[0] for block in read) <= 10
    model = quick().fit(blocks)
    assert model.feature_names_in_.tolist() == ["length", "count", "width"]
    assert model.objective_ == quick().fit(rows_of(data), data[1], data[2]).objective_


def test_a_folder_of_files_is_read(data: Any, table: Any, parquet: Any, tmp_path: Path) -> None:
    for k in range(3):
        parquet.write_table(table.slice(30 * k, 30), tmp_path / f"part{k}.parquet")
    model = quick().fit(Blocks.of_parquet(tmp_path, "target", inputs=["width"]))
    assert model.objective_ == quick().fit(data[0][:, 1:], data[1]).objective_
    assert model.feature_names_in_.tolist() == ["width"]


def test_names_are_asked_for_in_predictions(table: Any, parquet: Any, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pip install pandas")
    parquet.write_table(table, tmp_path / "rows.parquet")
    model = quick().fit(Blocks.of_parquet(tmp_path / "rows.parquet", "target", inputs=["length", "width"]))
    assert model.predict(pandas.DataFrame({"length": [0.0], "width": [1.0]})).shape == (1,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas.DataFrame({"width": [0.0], "length": [1.0]}))


def test_a_level_set_needs_no_target(table: Any, parquet: Any, tmp_path: Path) -> None:
    parquet.write_table(table, tmp_path / "rows.parquet")
    model = InfiniteOneClassSVM(n_nodes=5, tol=1e-2, alpha=0.1)
    assert model.fit(Blocks.of_parquet(tmp_path / "rows.parquet", inputs=["length", "width"])).n_features_in_ == 2


def test_wrong_columns_are_told_in_a_sentence(table: Any, parquet: Any, tmp_path: Path) -> None:
    import pyarrow

    path = tmp_path / "rows.parquet"
    parquet.write_table(table.append_column("name", pyarrow.array(["a"] * N)), path)
    with pytest.raises(ValueError, match=r"no column 'price'; its columns are 'length'"):
        Blocks.of_parquet(path, "price")
    with pytest.raises(ValueError, match=r"'name' of .* holds string; encode it as numbers first, or leave it out"):
        quick().fit(Blocks.of_parquet(path, "target"))
    with pytest.raises(TypeError, match=r"inputs='length' was given; give a list"):
        Blocks.of_parquet(path, "target", inputs="length")
    with pytest.raises(ValueError, match="at least one input"):
        Blocks.of_parquet(path, "target", inputs=[])
    with pytest.raises(ValueError, match=r"The column 'name' holds 'a', which is not a real number"):
        quick().fit(Blocks.of_parquet(path, "name", inputs=["length"]))
    with pytest.raises(ValueError, match=r"The column 'name' holds 'a', which is not a real number; weights are"):
        quick().fit(Blocks.of_parquet(path, "target", inputs=["length"], weight="name"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"inputs": ["length", "target"]}, "target='target' is named in inputs too; leave it out there"),
        ({"inputs": ["weight"], "weight": "weight"}, "weight='weight' is named in inputs too; leave it out there"),
        ({"inputs": ["length", "width", "length"]}, "inputs names the column 'length' more than once"),
        ({"weight": "target"}, "target='target' and weight='target' are the same column"),
    ],
    ids=["target in inputs", "weight in inputs", "input twice", "target as weight"],
)
def test_a_column_has_one_use(table: Any, parquet: Any, tmp_path: Path, options: Any, sentence: str) -> None:
    parquet.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match=sentence):
        Blocks.of_parquet(tmp_path / "rows.parquet", "target", **options)


def test_a_folder_without_files_is_told(parquet: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no columns; give a Parquet file"):
        Blocks.of_parquet(tmp_path, "target")


def test_a_missing_value_in_a_file_is_told_with_its_column_and_block(parquet: Any, tmp_path: Path) -> None:
    import pyarrow

    path, zeros = tmp_path / "rows.parquet", [0.0, 1.0, 0.0, 1.0]
    columns = {
        "number": [0.0, 1.0, 2.0, None],
        "whole": [0, 1, 2, None],
        "flag": [True, False, True, None],
        "money": [Decimal("1.5"), Decimal("2.5"), Decimal("0.5"), None],
        "text": ["a", "b", "a", None],
    }
    parquet.write_table(pyarrow.table({"zeros": zeros, **columns}), path)
    lacks = "(contains NaN or infinity|has missing values); impute or drop such rows"
    for name in ("number", "whole", "flag"):
        with pytest.raises(ValueError, match=f"Block 1: The column '{name}' {lacks}"):
            quick().fit(Blocks.of_parquet(path, "zeros", inputs=[name], rows=2))
    for name in ("number", "whole", "flag", "money"):
        with pytest.raises(ValueError, match=f"Block 1: The column '{name}' {lacks}"):
            quick().fit(Blocks.of_parquet(path, name, inputs=["zeros"], rows=2))
    for name in ("number", "flag", "text"):
        with pytest.raises(ValueError, match=f"Block [01]: The column '{name}' {lacks}"):
            InfiniteCostSensitiveClassifier().fit(Blocks.of_parquet(path, name, inputs=["zeros"], rows=4))


# ---------------------------------------------------------------------------------------------------------- the draw
def survey_in_blocks(data: Any, cuts: Any, size: int = 30, *, labels: bool = False, seed: int = 1) -> Any:
    found, rng = None, np.random.default_rng(seed)
    for start, stop in pairwise([0, *cuts, N]):
        block = Block(*(values[start:stop] for values in data))
        found = _sampling.joined(found, _sampling.sample_block(block, "A block", rng, size, labels=labels))
    return _sampling.survey_of(found)


@pytest.mark.parametrize("labels", [False, True], ids=["numbers", "labels"])
@pytest.mark.parametrize("cuts", [(45,), (1, 2, 3), tuple(range(1, N))], ids=lambda cuts: f"{len(cuts)} cuts")
def test_the_same_rows_are_drawn_however_they_are_cut(data: Any, cuts: Any, labels: bool) -> None:
    X, y, weight = data
    data = X, np.where(y > 0.8, "rare", "often") if labels else y, weight
    whole, pieces = survey_in_blocks(data, (), labels=labels), survey_in_blocks(data, cuts, labels=labels)
    assert (whole.n, pieces.n) == (np.count_nonzero(weight),) * 2
    assert whole.mass == pieces.mass == weight.sum()
    mean = 0.0 if labels else np.average(y, weights=weight)
    assert [whole.mean, pieces.mean] == pytest.approx([mean] * 2, rel=1e-13)
    for one, other in zip(whole[3:], pieces[3:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_drawn_rows_are_rows_in_their_order_and_never_of_weight_zero(data: Any) -> None:
    X, y, weight = data
    found = survey_in_blocks(data, (45,))
    places = [int(np.flatnonzero(np.all(row == X, axis=1))[0]) for row in found.X]
    assert places == sorted(places)
    np.testing.assert_array_equal(found.y, y[places])
    assert np.all(weight[places] > 0.0)


def test_every_row_has_the_same_chance(data: Any) -> None:
    X = np.arange(N, dtype=float)[:, None]
    rounds, size = 400, 30
    hits = np.zeros(N)
    for seed in range(rounds):
        hits[survey_in_blocks((X, X[:, 0]), (10, 50), size, seed=seed).X[:, 0].astype(int)] += 1
    # binomial: five standard deviations
    share, spread = size / N, np.sqrt(rounds * (size / N) * (1.0 - size / N))
    assert np.max(np.abs(hits - rounds * share)) <= 5.0 * spread


def test_rows_of_weight_zero_may_hold_anything(data: Any) -> None:
    X, y, weight = data
    given = np.where(weight == 0.0, "unknown", y.astype(object))
    for one, other in zip(
        survey_in_blocks((X, given, weight), (45,)), survey_in_blocks((X, y, weight), (45,)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_a_task_without_targets_does_not_look_at_them(data: Any) -> None:
    X, y, _ = data
    blocks = cut(X, np.where(y > 0.0, "up", None))
    survey = blocks.survey(30, 0, labels=False, targets=False)
    assert survey.y is None
    np.testing.assert_array_equal(survey.X, cut(X).survey(30, 0, labels=False).X)


def test_weights_of_a_sample_that_overflow_are_told(data: Any) -> None:
    X, y, _ = data
    first = np.all(survey_in_blocks((X, y), (), size=1).X == X, axis=1)
    weight = np.where(first, 1e307, 1.0)
    assert np.isfinite(weight.sum())
    assert np.isfinite(survey_in_blocks((X, y, weight), (), size=N).weight.sum())
    with pytest.raises(ValueError, match="add up to more than the largest number"):
        survey_in_blocks((X, y, weight), (), size=1)  # the heavy row stands for all


def test_a_small_sample_holds_all_rows(data: Any) -> None:
    found = survey_in_blocks(data[:2], (45,), size=N)
    np.testing.assert_array_equal(found.X, data[0])
    np.testing.assert_array_equal(found.weight, np.ones(N))


def test_rare_labels_are_drawn_more_often_with_less_weight_each(data: Any) -> None:
    X, _, _ = data
    y = np.where(np.arange(N) % 9 == 0, "rare", "often")
    found = survey_in_blocks((X, y), (45,), size=40, labels=True)
    rare = found.y == "rare"
    assert (np.count_nonzero(rare), np.count_nonzero(~rare)) == (10, 20)
    for label, mine in (("rare", rare), ("often", ~rare)):
        assert found.weight[mine].sum() == pytest.approx(np.count_nonzero(y == label))


# ---------------------------------------------------------------------------------------------- what is wrong with it
X2, Y2 = np.zeros((2, 1)), np.array([0.0, 1.0])
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "generator": (lambda: (block for block in [(X2, Y2)]), TypeError, "can be read only once"),
    "number": (lambda: 3, TypeError, "given as an int; give an iterable"),
    "nothing": (lambda: lambda: None, TypeError, "returned a NoneType; it must return an iterator"),
    "no tuple": (lambda: [X2], TypeError, r"Block 0 is an ndarray; a block is a tuple \(X,\)"),
    "long tuple": (lambda: [(X2, Y2, Y2, Y2)], TypeError, "a block is a tuple"),
    "vector": (lambda: [(Y2, Y2)], ValueError, r"shape \(2,\); it must be a matrix"),
    "unequal": (lambda: [(X2, Y2), (X2, Y2[:1])], ValueError, r"^Block 1 has 2 rows of X and y of shape \(1,\)"),
    "weights": (lambda: [(X2, Y2, Y2[:1])], ValueError, "2 rows of X and weights"),
    "matrix of weights": (lambda: [(X2, Y2, X2)], ValueError, "one number for each row"),
    "negative weight": (lambda: [(X2, Y2, Y2 - 1.0)], ValueError, "negative or not finite"),
    "nan weight": (lambda: [(X2, Y2, Y2 / 0.0)], ValueError, "negative or not finite"),
    "more inputs": (
        lambda: [(X2, Y2), (np.zeros((2, 3)), Y2)],
        ValueError,
        "A block with 3 inputs follows blocks with 1",
    ),
    "nan": (lambda: [(X2, Y2), (X2 * np.nan, Y2)], ValueError, "^Block 1: Column 0 of X contains NaN"),
    "nan after an empty block": (lambda: [(X2[:0], Y2[:0]), (X2, Y2 * np.nan)], ValueError, "^Block 1: y contains NaN"),
    "nan in one column": (
        lambda: [(np.array([[0.0, 1.0], [1.0, np.nan]]), Y2)],
        ValueError,
        "^Block 0: Column 1 of X contains NaN",
    ),
    "none as input": (lambda: [(np.array([["a"], [None]]), Y2)], ValueError, "Column 0 of X has missing values"),
    "none as target": (lambda: [(X2, Y2), (X2, np.array([0.5, None]))], ValueError, "^Block 1: y has missing values"),
    "nan among objects": (lambda: [(X2, np.array([0.5, np.nan], dtype=object))], ValueError, "y has missing values"),
    "times": (
        lambda: [(X2, np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[us]"))],
        ValueError,
        "y holds 2020-01-01T00:00:00.000000, which is not a real number; a target is a number. Choose a unit",
    ),
    "times as objects": (lambda: [(X2, np.array([datetime(2020, 1, 1)] * 2))], ValueError, "Choose a unit"),
    "complex": (lambda: [(X2, Y2 * 1j)], ValueError, "not a real number; encode targets"),
    "text as weight": (lambda: [(X2, Y2, np.array(["1", "1"]))], ValueError, "holds '1', which is not a real number"),
    "some weights": (lambda: [(X2, Y2, Y2), (X2, Y2)], ValueError, "^Block 1: Some blocks were given with weights"),
    "huge weights": (lambda: [(X2, Y2, Y2 + 1e308)] * 2, ValueError, "add up to more than the largest number"),
    "infinity": (lambda: [(X2, np.array([0.0, np.inf]))], ValueError, "y contains NaN or infinity"),
    "huge": (lambda: [(X2 + 1e120, Y2)], ValueError, "magnitude"),
    "text": (lambda: [(np.array([["a"], ["b"]]), Y2)], ValueError, "encode them as numbers"),
    "text as target": (lambda: [(X2, np.array(["a", "b"]))], ValueError, "y holds 'a', which is not a real number"),
    "no targets": (lambda: [(X2,)], ValueError, "needs targets"),
    "some targets": (lambda: [(X2, Y2), (X2,)], ValueError, "some without"),
    "no rows": (list, ValueError, "No rows of positive weight"),
    "weights of zero": (lambda: [(X2, Y2, 0.0 * Y2)], ValueError, "No rows of positive weight"),
}


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize("name", WRONG)
def test_wrong_blocks_are_told_in_a_sentence(name: str) -> None:
    make, error, sentence = WRONG[name]
    model = quick()
    with pytest.raises(error, match=sentence):
        model.fit(Blocks(make()))
    assert not hasattr(model, "field_")


LABELS = {
    "three": ([(X2, np.array([0, 1])), (X2, np.array([1, 2]))], r"more than two classes \(0, 1, 2, …\)"),
    "one": ([(X2, np.array([1, 1]))], "holds 1 class"),
    "none": ([(X2,)], "No y was given; this task needs targets"),
    "matrix": ([(X2, np.zeros((2, 2)))], "one label for each row"),
    "missing": ([(X2, np.array(["a", "b"])), (X2, np.array(["a", None]))], "^Block 1: y has missing values; impute"),
    "mixed": ([(X2, np.array(["a", 1], dtype=object))], r"labels of different types \(int, str\)"),
}


@pytest.mark.parametrize("name", LABELS)
def test_wrong_labels_are_told_in_a_sentence(name: str) -> None:
    blocks, sentence = LABELS[name]
    with pytest.raises(ValueError, match=sentence):
        InfiniteCostSensitiveClassifier().fit(Blocks(blocks))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"noncrossing": "hard"}, "noncrossing='hard' was given for rows that are visited in parts"),
        ({"noncrossing_inputs": X2}, "noncrossing_inputs was given"),
        ({"kernel": "precomputed"}, "use a kernel that is a function of inputs"),
        ({"kernel": Precomputed()}, "use a kernel that is a function of inputs"),
    ],
    ids=["order as a constraint", "named inputs", "precomputed", "precomputed object"],
)
def test_what_needs_all_rows_is_refused_before_they_are_read(options: Any, sentence: str) -> None:
    blocks = Blocks([(X2, Y2)])
    with pytest.raises(ValueError, match=sentence):
        InfiniteQuantileRegressor(**options).fit(blocks)
    assert blocks.passes == 0


@pytest.mark.parametrize("more", [{"y": Y2}, {"sample_weight": Y2}], ids=str)
def test_targets_and_weights_belong_into_the_blocks(more: Any) -> None:
    with pytest.raises(ValueError, match="belong into the blocks"):
        quick().fit(Blocks([(X2, Y2)]), **more)


def test_who_needs_arrays_says_so(data: Any) -> None:
    X, y, _ = data
    blocks, fitted = cut(X, y), quick().fit(X, y)
    asks: list[Callable[[], Any]] = [
        lambda: CrossConformal(quick()).fit(blocks),
        lambda: fit_path(quick(), blocks, alphas=[1e-3]),
        lambda: score_path(quick(), blocks, y, alphas=[1e-3]),
        lambda: fitted.predict(blocks),
        lambda: fitted.score(blocks, y),
    ]
    for ask in asks:
        with pytest.raises(TypeError, match="Blocks were given; only `fit` of an estimator"):
            ask()


@pytest.mark.parametrize("rows", [0, -1, 2.5, "many"])
def test_wrong_sizes_are_told(rows: Any) -> None:
    with pytest.raises(ValueError, match=r"rows=.* it must be an integer of at least 1"):
        Blocks.of_arrays(X2, Y2, rows=rows)


def test_wrong_arrays_are_told() -> None:
    with pytest.raises(ValueError, match=r"X has 2 rows and y 3"):
        Blocks.of_arrays(X2, np.zeros(3))
    with pytest.raises(ValueError, match=r"X of type list was given"):
        Blocks.of_arrays([[0.0]], [0.0])
    with pytest.raises(ValueError, match="3 names were given for 1 inputs"):
        quick().fit(Blocks([(X2, Y2)], names=["a", "b", "c"]))
    with pytest.raises(ValueError, match="memory=-1 was given"):
        Blocks([(X2, Y2)], memory=-1)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_of_the_reader_passes_through_and_leaves_the_model_unfitted(data: Any, error: type[Exception]) -> None:
    def read() -> Iterator[Any]:
        yield data[:2]
        raise error("the disk is gone")

    model = quick()
    with pytest.raises(error, match="the disk is gone"):
        model.fit(Blocks(read))
    assert not hasattr(model, "field_")
