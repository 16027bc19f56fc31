"""Arrays keep their values wherever they move."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import array_api_compat.numpy
import array_api_strict
import numpy as np
import pytest

from infinitask._array import as_like, namespace, place, to_host

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
@pytest.mark.xfail(reason="the sentence carries all of what torch has to say", strict=True)
def test_a_device_that_is_not_there_is_told_in_one_line() -> None:
    with pytest.raises(ValueError, match=r"device='cuda:99' cannot hold the data .* use device=None for NumPy"):
        place(VALUES, "cuda:99")


def test_a_missing_torch_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"torch is not installed.*pip install infinitask\[torch\]"):
        place(VALUES, "cpu")
