"""Arrays keep their values wherever they move."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from infinitask import InfiniteQuantileRegressor
from infinitask._base import arrays
from infinitask._base.arrays import as_like, free_memory, namespace, one_blas_thread, owned, place, to_host
from infinitask.losses import Pinball

VALUES = np.array([[1.0, -2.5], [1.0 / 3.0, 4.0]])
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def test_the_namespace_is_that_of_the_arrays(xp: Any) -> None:
    a = xp.asarray(VALUES)
    assert namespace(a) is xp
    assert namespace(None, 3.0, a, a) is xp


def test_scalars_and_none_have_the_namespace_of_numpy() -> None:
    for nothing in ((), (None,), (1.0, 2), (None, 0.5)):
        assert namespace(*nothing) is array_api_compat.numpy


def test_libraries_do_not_mix() -> None:
    with pytest.raises(TypeError, match="Multiple namespaces"):
        namespace(VALUES, array_api_strict.asarray(VALUES))


def test_to_host_and_back(xp: Any) -> None:
    a = xp.asarray(VALUES)
    host = to_host(a)
    assert type(host) is np.ndarray
    np.testing.assert_array_equal(host, VALUES)
    back = as_like(host, a)
    assert namespace(back) is xp
    np.testing.assert_array_equal(to_host(back), VALUES)


def test_host_arrays_stay_themselves() -> None:
    assert to_host(VALUES) is VALUES
    assert place(VALUES, None) is VALUES


def test_a_copy_stays_what_it_was(xp: Any) -> None:
    given = xp.asarray(VALUES.copy())
    copied = owned(given)
    given[0, 0] = 7.0
    assert namespace(copied) is xp
    assert copied.dtype == given.dtype
    np.testing.assert_array_equal(to_host(copied), VALUES)
    np.testing.assert_array_equal(owned(VALUES.tolist()), VALUES)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_as_like_takes_library_and_dtype(xp: Any, dtype: str) -> None:
    like = xp.zeros(1, dtype=getattr(xp, dtype))
    whole = np.array([[1.0, -2.0]])
    for values in (whole, whole.tolist(), array_api_strict.asarray(whole), xp.asarray(whole)):
        moved = as_like(values, like)
        assert namespace(moved) is xp
        assert moved.dtype == like.dtype
        np.testing.assert_array_equal(to_host(moved), whole)


def test_scalars_become_arrays_without_dimension(xp: Any) -> None:
    moved = as_like(2.5, xp.zeros(3, dtype=xp.float64))
    assert moved.shape == ()
    assert float(moved) == 2.5


@needs_torch
def test_place_makes_a_tensor_on_the_device() -> None:
    import torch

    placed = place(VALUES, "cpu")
    assert isinstance(placed, torch.Tensor)
    assert placed.dtype == torch.float64
    assert placed.device.type == "cpu"
    np.testing.assert_array_equal(to_host(placed), VALUES)


@needs_torch
def test_a_tensor_that_records_gradients_comes_back() -> None:
    import torch

    np.testing.assert_array_equal(to_host(torch.asarray(VALUES).requires_grad_()), VALUES)


@needs_torch
def test_an_unknown_device_is_told_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"device='nowhere' cannot hold the data .* use device=None for NumPy"):
        place(VALUES, "nowhere")


@needs_torch
def test_a_device_that_is_not_there_is_told_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"device='cuda:99' cannot hold the data .* use device=None for NumPy") as told:
        place(VALUES, "cuda:99")
    assert "\n" not in str(told.value)


@needs_torch
def test_a_type_that_torch_does_not_know_is_told_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"device='cpu' cannot hold the data"):
        place(np.array(["a"]), "cpu")


@needs_torch
def test_values_that_may_not_be_written_are_copied() -> None:
    fixed = VALUES.copy()
    fixed.flags.writeable = False
    placed = place(fixed, "cpu")
    placed[0, 0] = 7.0
    np.testing.assert_array_equal(fixed, VALUES)


def test_a_missing_torch_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"torch is not installed.*pip install infinitask\[torch\]"):
        place(VALUES, "cpu")


# ------------------------------------------------------------------------------------------------- free memory
MIB = 2**20


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the files of a system: a machine with 2 MiB free, of which 1 MiB holds files, and no other bounds."""
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(arrays, "SYSTEM", tmp_path)
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY,) * 2)

    def write(path: str, text: Any) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(str(text))

    write("proc/meminfo", "MemTotal: 8192 kB\nMemFree: 1024 kB\nMemAvailable: 2048 kB\nHugePages_Total: 0\n")
    return write


def test_memory_of_cached_files_is_free(system: Any) -> None:
    assert free_memory(None) == 2 * MIB


def test_a_group_leaves_its_limit_less_what_cannot_be_given_back(system: Any) -> None:
    system("proc/self/cgroup", "0::/job/step\n")
    system("sys/fs/cgroup/job/step/memory.max", "max\n")
    system("sys/fs/cgroup/job/step/memory.current", 0)
    assert free_memory(None) == 2 * MIB
    system("sys/fs/cgroup/job/memory.max", MIB)  # that of the group above
    system("sys/fs/cgroup/job/memory.current", MIB // 2)
    assert free_memory(None) == MIB // 2
    system("sys/fs/cgroup/job/memory.stat", f"anon 7\ninactive_file {MIB // 4}\n")
    assert free_memory(None) == 3 * MIB // 4
    system("sys/fs/cgroup/job/step/memory.max", 100)
    assert free_memory(None) == 100


def test_a_group_of_the_first_version_leaves_its_limit(system: Any) -> None:
    system("proc/self/cgroup", "5:cpu:/\n4:memory:/known/only/outside\n0::/\n")
    system("sys/fs/cgroup/memory/memory.limit_in_bytes", MIB)
    system("sys/fs/cgroup/memory/memory.usage_in_bytes", MIB // 2)
    system("sys/fs/cgroup/memory/memory.stat", "total_inactive_file 24\n")
    assert free_memory(None) == MIB // 2 + 24
    system("sys/fs/cgroup/memory/memory.usage_in_bytes", 2 * MIB)
    assert free_memory(None) == 0


def test_an_address_space_leaves_what_is_not_used(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    system("proc/self/statm", "3 2 1 0 0 0 0\n")
    page = resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (10 * page, resource.RLIM_INFINITY))
    assert free_memory(None) == 7 * page


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="this system does not count pages")
def test_pages_are_counted_where_there_is_no_such_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "SYSTEM", tmp_path)
    monkeypatch.setattr(os, "sysconf_names", {"SC_AVPHYS_PAGES": 0, "SC_PAGE_SIZE": 1})
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 5, "SC_PAGE_SIZE": 10}.__getitem__)
    assert free_memory(None) == 50
    monkeypatch.setattr(os, "sysconf_names", {})
    assert free_memory(None) == 2**32


# ------------------------------------------------------------------------------------------------ the threads
def blas_threads() -> set[int]:
    """Threads of every linear algebra library that is loaded."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Two threads to start with, whatever the environment says."""
    with threadpool_limits(2, "blas"):
        if blas_threads() != {2}:
            pytest.skip("this linear algebra library cannot be given two threads")
        yield


@pytest.mark.usefixtures("two_threads")
def test_one_thread_inside_and_as_many_as_before_afterwards() -> None:
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_an_error_gives_the_threads_back() -> None:
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        raise KeyboardInterrupt
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_contexts_that_overlap_give_the_threads_back() -> None:
    # as those of two fits in two threads do
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    try:
        assert blas_threads() == {1}
    finally:
        second.__exit__(None, None, None)
    assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_other_threads_keep_to_one_thread_as_well() -> None:
    def inside() -> set[int]:
        with one_blas_thread():
            return blas_threads()

    inside()  # the main thread is the first to set the limit
    with ThreadPoolExecutor(1) as other:
        assert other.submit(inside).result() == {1}
        assert blas_threads() == {2}
        # entered here and left there, and the other way round
        for enter, leave in ((lambda f: f(), lambda f: other.submit(f).result()), (other_calls(other), lambda f: f())):
            context = one_blas_thread()
            enter(context.__enter__)
            assert blas_threads() == {1}
            leave(lambda context=context: context.__exit__(None, None, None))
            assert blas_threads() == {2}


def other_calls(pool: ThreadPoolExecutor) -> Any:
    return lambda f: pool.submit(f).result()


@pytest.mark.usefixtures("two_threads")
def test_a_fit_keeps_to_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[int]] = []
    sums = Pinball.sums

    def watched(self: Pinball, *args: Any, **options: Any) -> Any:
        seen.append(blas_threads())
        return sums(self, *args, **options)

    monkeypatch.setattr(Pinball, "sums", watched)
    X = np.linspace(-1.0, 1.0, 12)[:, None]
    InfiniteQuantileRegressor(n_nodes=4, noncrossing=0.0, tol=0.1).fit(X, X[:, 0])
    assert seen
    assert set().union(*seen) == {1}
    assert blas_threads() == {2}


@pytest.mark.parametrize(
    ("n", "width", "entries"), [(0, 3, 6), (1, 100, 6), (5, 3, 6), (6, 3, 6), (7, 0, 2), (9, 1, 100)]
)
def test_blocks_of_rows_cover_all_rows_in_order(n: int, width: int, entries: int) -> None:
    blocks = arrays.row_blocks(n, width, entries)
    assert [row for rows in blocks for row in range(rows.start, rows.stop)] == list(range(n))
    assert all(rows.stop - rows.start <= max(1, entries // max(1, width)) for rows in blocks)
