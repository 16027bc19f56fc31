"""The only module that names array libraries.

Everything below the estimators is written for the Python array API standard: it gets the library of its arguments from
:func:`namespace` and calls only that. A GPU is then only a device of the arrays, not a second implementation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import array_api_compat as compat
import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import ndtri
from scipy.stats import rankdata
from threadpoolctl import ThreadpoolController

Array: TypeAlias = Any
"""An array of any library that follows the array API standard."""

HostArray: TypeAlias = NDArray[Any]
"""A NumPy array."""


SYSTEM = Path("/")
"""The root of the files in which Linux reports free memory."""

IN_CACHE = 2**16
"""The entries of a block whose temporaries fit into the cache of a core, 512 KiB each."""

IN_MEMORY = 2**20
"""The entries of a block of rows on the host, 8 MiB: memory does not grow with the number of rows."""

ON_DEVICE = 2**24
"""The entries of a block of rows on a device, 128 MiB; a GPU would be idle with smaller blocks."""

_numpy: Any = compat.array_namespace(np.array(None))


def namespace(*arrays: Array) -> Any:
    """Return the array library common to all arguments; Python scalars and ``None`` are ignored."""
    if all(type(a) is np.ndarray for a in arrays if a is not None):
        return _numpy  # the usual case, forty times faster than a call of the library
    found = [a for a in arrays if a is not None and compat.is_array_api_obj(a)]
    return compat.array_namespace(*found) if found else _numpy


def as_like(values: Any, like: Array) -> Array:
    """Return ``values`` in the library, on the device and with the dtype of ``like``."""
    xp = namespace(like)
    if compat.is_array_api_obj(values) and namespace(values) is not xp:
        values = to_host(values)
    return xp.asarray(values, dtype=like.dtype, device=compat.device(like))


def row_blocks(n: int, width: int, entries: int = IN_MEMORY) -> list[slice]:
    """Return slices that cover n rows in order, each of at most ``entries`` / ``width`` rows and of at least one.

    Parameters
    ----------
    n : int
    width : int
        The number of entries per row.
    entries : int
        The number of entries per block: :data:`IN_CACHE`, :data:`IN_MEMORY` or :data:`ON_DEVICE`.

    Examples
    --------
    >>> row_blocks(5, 3, entries=6)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    size = max(1, entries // max(1, width))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def take(values: Array, positions: HostArray | None, axis: int) -> Array:
    """Return ``values`` at host positions along an axis; None means all."""
    if positions is None:
        return values
    xp = namespace(values)
    # the index must be on the device of the values
    index = as_like(positions, xp.zeros_like(values[:0, ...], dtype=xp.int64))
    return xp.take(values, index, axis=axis)


def to_host(values: Array) -> HostArray:
    """Return ``values`` of any device as a NumPy array."""
    if isinstance(values, np.ndarray):
        return values
    if compat.is_torch_array(values):
        values = values.detach().cpu()
        return np.asarray(values.float() if str(values.dtype) == "torch.bfloat16" else values)
    if compat.is_cupy_array(values):
        return np.asarray(values.get())
    return np.asarray(values)


def host_double(values: Array) -> HostArray:
    """Return ``values`` of any device as a NumPy array of float64."""
    return to_host(values).astype(np.float64, copy=False)


def owned(values: Array) -> Array:
    """Copy ``values`` on their device; lists and columns of pandas become NumPy arrays."""
    if compat.is_torch_array(values):
        return values.detach().clone()
    return namespace(values).asarray(values, copy=True)


def floats(values: Sequence[Array | float]) -> list[float]:
    """Return scalars and 0-d arrays as numbers, in one transfer from a device, as each transfer synchronises."""
    if all(isinstance(value, (float, np.floating)) for value in values):
        return [float(value) for value in values]
    first = next(value for value in values if not isinstance(value, float))
    return [float(v) for v in to_host(namespace(first).stack([as_like(value, first) for value in values]))]


def double(values: Array) -> Array:
    """Return ``values`` in double precision, on their device."""
    if isinstance(values, np.ndarray):
        return values.astype(np.float64, copy=False)
    xp = namespace(values)
    return values if values.dtype == xp.float64 else xp.astype(values, xp.float64)


def inverse_transposed(lower: HostArray, like: Array) -> Array:
    """Return L⁻ᵀ of a lower triangular L (r, r), in the library, on the device and with the dtype of ``like``."""
    if compat.is_torch_array(like) and like.device.type != "cpu":
        import torch

        L = torch.asarray(lower, device=like.device)
        one = torch.eye(L.shape[0], dtype=L.dtype, device=L.device)
        return torch.linalg.solve_triangular(L.T, one, upper=True).to(like.dtype)
    # LAPACK's dtrtri is three times faster than a solve with the identity: 0.07 s instead of 0.2 s for 2000 rows
    inverse, singular = lapack.dtrtri(lower, lower=1)
    if singular:
        raise ZeroDivisionError(f"pivot {singular} of a Cholesky factor is zero.")
    return as_like(np.ascontiguousarray(np.tril(inverse).T), like)


def free_memory(device: str | None) -> int:
    """Return the free bytes of a device; on the host, or if unknown, the bytes that this process may allocate.

    The machine, the control groups of this process and its address space each set a limit, and the smallest one
    applies. File caches count as free, because the system frees them on demand: after reading a large file, nearly all
    memory is cache.
    """
    if device is not None and device.startswith("cuda"):
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    root = SYSTEM
    return max(0, min([_free_on_machine(root), *_left_by_groups(root), *_left_by_address_space(root)]))


def _free_on_machine(root: Path) -> int:
    """Return the bytes available to programs, including file caches."""
    available = _counted(root / "proc/meminfo").get("MemAvailable:")
    if available is not None:
        return 1024 * available
    if hasattr(os, "sysconf") and "SC_AVPHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 2**32  # unknown to the system


def _left_by_groups(root: Path) -> Iterator[int]:
    """Yield the bytes available in the control groups of this process, such as a container or a job.

    The limits of all parent groups apply too. Inside a container the path of a group may exist outside only;
    then the top of the mounted directory is the group of the container.
    """
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, limit, usage, cache = mount, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top, limit, usage = mount / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_inactive_file"
        else:
            continue
        group = top / path.strip("/")
        for place in (group, *group.parents):
            most, used = _text(place / limit).strip(), _text(place / usage).strip()
            if most.isdigit() and used.isdigit():  # "max" means no limit
                yield int(most) - int(used) + _counted(place / "memory.stat").get(cache, 0)
            if place == top:
                break


def _left_by_address_space(root: Path) -> Iterator[int]:
    """Yield the bytes of address space that this process may still allocate under `ulimit -v`."""
    if find_spec("resource") is None:
        return
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most != resource.RLIM_INFINITY:
        pages = _text(root / "proc/self/statm").split()
        yield most - (int(pages[0]) * resource.getpagesize() if pages else 0)


def _text(path: Path) -> str:
    """Return the text of a system file; empty if the file does not exist."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _counted(path: Path) -> dict[str, int]:
    """Return the lines "name number ..." of a system file."""
    words = (line.split() for line in _text(path).splitlines())
    return {name: int(value) for name, value, *_ in (w for w in words if len(w) > 1) if value.isdigit()}


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error of an array library means that it is out of memory."""
    return isinstance(error, MemoryError) or type(error).__name__ in ("OutOfMemoryError", "OutOfMemory")


def place(values: HostArray, device: str | None) -> Array:
    """Move host values to the device of the data.

    Parameters
    ----------
    values : ndarray
    device : str or None
        None: keep NumPy. Any device of torch ("cpu", "cuda", "cuda:1", "mps"): return a tensor there.
    """
    if device is None:
        return values
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={device!r} keeps the data in torch tensors, and torch is not installed; "
            "install the extra with `pip install infinitask[torch]`, or use device=None for NumPy."
        ) from error
    try:
        # read-only arrays are copied: torch has no read-only tensors
        return torch.asarray(values if values.flags.writeable else values.copy(), device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"device={device!r} cannot hold the data ({reason}); use device=None for NumPy, "
            "or a device that torch finds on this machine, such as 'cpu' or 'cuda'."
        ) from error


def moved(values: Array, device: str | None) -> Array:
    """Return ``values`` on the device of the data; None: NumPy, but tensors of another device stay there."""
    if device is not None and compat.is_cupy_array(values):
        import torch

        values = torch.from_dlpack(values)  # shares memory
    if compat.is_torch_array(values) and (device is not None or values.device.type != "cpu"):
        return values if device is None else values.to(device)
    return place(to_host(values), device)


Function: TypeAlias = Callable[[Array, Array, Array], Array]

_DIFFERENTIATING = ("torch", "jax")


def differentiate(function: Function, backend: str = "auto") -> Callable[[Array, Array, Array], tuple[Array, Array]]:
    """Return (θ, y, h) ↦ f and ∂f/∂h for a function f(θ, y, h) that acts on every entry of h separately.

    The function receives tensors of the backend; the results have the library, device and dtype of h.

    Parameters
    ----------
    function : callable
    backend : {"auto", "torch", "jax"}
        "auto": torch if it is installed, else jax.
    """
    if backend not in ("auto", *_DIFFERENTIATING):
        raise ValueError(f"backend={backend!r} was given; it must be 'auto', 'torch' or 'jax'.")
    wanted = _DIFFERENTIATING if backend == "auto" else (backend,)
    found = next((name for name in wanted if find_spec(name) is not None), None)
    if found is None:
        extras = " or ".join(f"`pip install infinitask[{name}]`" for name in wanted)
        raise ImportError(
            f"backend={backend!r} differentiates a function with {' or '.join(wanted)}, which is not installed; "
            f"install the extra with {extras}, or write the loss as a class with a value and a slope (ConvexLoss)."
        )
    return partial(_by_torch if found == "torch" else _by_jax, function)


def _by_torch(function: Function, theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
    import torch

    def tensor(values: Array) -> Any:
        # arrays of other libraries are copied: torch has no read-only tensors
        return values.detach() if compat.is_torch_array(values) else torch.asarray(to_host(values).copy())

    with torch.enable_grad():
        at = tensor(h).requires_grad_()
        value = _called(function, "torch", tensor(theta), None if y is None else tensor(y), at)
        if not (compat.is_torch_array(value) and value.requires_grad):
            raise TypeError(
                f"The function of the loss returned {type(value).__name__}, from which torch cannot find a derivative "
                "by h; use operators and functions of torch, and let the result depend on h."
            )
        (slope,) = torch.autograd.grad(value.sum(), at)
    return as_like(value.detach(), h), as_like(slope, h)


def _by_jax(function: Function, theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
    import jax

    # older versions have it in jax.experimental
    double: Any = jax.enable_x64 if hasattr(jax, "enable_x64") else import_module("jax.experimental").enable_x64
    with double(True):
        host = [None if a is None else to_host(a) for a in (theta, y, h)]
        (_, value), slope = _jax_derivative(function)(*host)
        # copies: arrays of jax are read-only, and torch has no such tensors
        return as_like(np.array(value), h), as_like(np.array(slope), h)


def _called(function: Function, name: str, *tensors: Array) -> Array:
    """Return function(θ, y, h); if it fails, the error hints at the most frequent mistake."""
    try:
        return function(*tensors)
    except (TypeError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise TypeError(
            f"The function of the loss failed on tensors of {name} ({reason}); use operators and functions of {name}."
        ) from error


@lru_cache(maxsize=16)
def _jax_derivative(function: Function) -> Any:
    """Return the derivative, compiled once for every shape; cached here, because a loss with it cannot be pickled."""
    import jax

    def total(theta: Array, y: Array | None, h: Array) -> tuple[Array, Array]:
        value = _called(function, "jax", theta, y, h)
        return value.sum(), value

    return jax.jit(jax.value_and_grad(total, argnums=2, has_aux=True))


@lru_cache(maxsize=1)
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit matrix products of NumPy and SciPy to one thread inside a context.

    The products of a fit are small: a second thread is of little use, and if other processes use the cores it mostly
    waits (measured: a fit of 0.6 s took 18 s). Also, a sum computed by one thread is the same on every machine.
    """
    global _inside, _limiter
    # fits may overlap in time: the first one sets the limit, and the last one to end removes it
    with _lock:
        if _inside == 0:
            _take_control()
            _limiter = _threadpools().limit(limits=1, user_api="blas")
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _take_control()
                _limiter.restore_original_limits()
                _take_control()


def _take_control() -> None:
    """Let this thread set the limit of OpenBLAS: threadpoolctl 3.8 and later reserve this for the first thread."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


_lock = Lock()
_inside = 0
_limiter: Any = None


def weighted_quantiles(y: HostArray, weight: HostArray, levels: HostArray) -> HostArray:
    """Return the smallest values with at least these fractions of the weight at or below them, (q,)."""
    return np.asarray(np.quantile(y, levels, method="inverted_cdf", weights=weight))


def normal_scores(y: HostArray) -> HostArray:
    """Return the normal scores of y: normal quantiles of its ranks."""
    return np.asarray(ndtri((rankdata(y) - 0.5) / y.size))
