"""Read and write the file of a model: safetensors with the model's table, a version and a checksum in the header.

Files of older formats are upgraded in steps, each from one version of the format to the next.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from infinitask._base.arrays import HostArray
from infinitask._base.extras import needed
from infinitask.persistence._entries import Reader, Writer
from infinitask.persistence._names import LONGEST, shown
from infinitask.persistence._rules import SCALARS

FORMAT = "infinitask model"
"""The format name in the header of every file of this library."""

FORMAT_VERSION = 1
"""The version of the format that is written; older versions can be read as well.

The version changes if a class is renamed or the meaning of its fields changes; new fields with a default need no new
version. To make version v + 1: write a function that converts the table of a model from version v to version v + 1,
add it to :data:`UPGRADES` under v, raise this number, and keep files of the new version with
``tools/saved_models.py``. Upgrades see untrusted files: they replace words, and create no objects."""

UPGRADES: dict[int, Callable[[dict[str, Any], dict[str, HostArray]], dict[str, Any]]] = {}
"""Under v: the upgrade from version v to v + 1, a function of the table, ``{"entries": [...], "model": ...}`` as in the
file, and of the arrays by name; it changes both in place. A file passes all upgrades from its own version on."""

MAX_HEADER_BYTES = 2**25
"""The maximum length of a header that is read, 32 MiB."""

MAX_VALUES = 2**21
"""The maximum number of values in the table, counted by commas and brackets before parsing; about 70 bytes each."""

MAX_ARRAYS = 2**17
"""The maximum number of arrays in a file."""


class _NewerFormatError(ValueError):
    """The format version of the file is newer than this library knows."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model to a file that can be loaded without running code from it.

    The file is written under a temporary name and then moved, so it is never incomplete.

    Parameters
    ----------
    model : object
        An estimator of this library, fitted or not, or a pipeline, a search or a column transformer of scikit-learn
        that holds one; the page on saving lists other supported classes. Tensors on a device are saved as arrays
        of the host, and the loaded model predicts with NumPy.
    path : str or path
        Where to save; an existing file is replaced. ``model.safetensors`` is a good name.

    See Also
    --------
    load : Restore the model.
    infinitask.persistence.register : Support your own classes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from infinitask import InfiniteQuantileRegressor, load, save
    >>> from infinitask.datasets import make_sine
    >>> X, y = make_sine(60, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/sine.safetensors")
    ...     again = load(f"{folder}/sine.safetensors")
    >>> bool(np.all(again.predict(X, quantiles=[0.1, 0.9]) == model.predict(X, quantiles=[0.1, 0.9])))
    True
    """
    serialized = _safetensors("safetensors.numpy").save
    place = place_for(path, "save(model, path)")
    if isinstance(model, SCALARS):
        raise TypeError(
            f"{type(model).__name__} was given to save, which is no model; give an estimator or a part of one."
        )
    writer = Writer()
    try:
        last = writer.value(model, type(model).__name__)
    except RecursionError as error:
        raise ValueError("The model is nested too deeply to be saved.") from error
    table = json.dumps({"entries": writer.entries, "model": last}, allow_nan=False, separators=(",", ":"))
    header = {
        "format": FORMAT,
        "format_version": str(FORMAT_VERSION),
        "made_with": json.dumps(_versions()),
        "table": table,
        "checksum": checksum(table, writer.arrays),
    }
    content = serialized(writer.arrays, metadata=header)
    for found, most, what in (
        (len(writer.arrays), MAX_ARRAYS, "arrays"),
        (_count(table), MAX_VALUES, "values beside its arrays"),
        (int.from_bytes(content[:8], "little"), MAX_HEADER_BYTES, "bytes beside its arrays"),
    ):
        if found > most:
            raise ValueError(
                f"The model has {found} {what}; files have at most {most}. Long texts, vocabularies and lists of "
                "categories are most of them: make them smaller."
            )
    with replacing(place) as beside, beside.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside the given one, which replaces it after success, so no file is half written."""
    place = path.resolve()  # a link stays a link
    beside = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    try:
        yield beside
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file written by :func:`save`.

    No code in the file is run. Only objects of known classes are created, see :func:`infinitask.persistence.register`;
    they get attributes, never methods. Sizes are checked before memory is allocated.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : object
        The saved model. Its predictions are identical bit for bit, on the same machine with the same libraries.

    Raises
    ------
    ValueError
        If the file is damaged, was not written by :func:`save`, names something forbidden, or has a newer format.
    """
    _safetensors("safetensors")
    place = _path(path, "load(path)")
    if not place.is_file():
        raise FileNotFoundError(f"There is no file {os.fspath(place)!r}; give one that infinitask.save has written.")
    try:
        _check_header(place)
        return _read(place)
    except (_NewerFormatError, PermissionError):
        raise
    except Exception as error:
        raise ValueError(
            f"{os.fspath(place)!r} cannot be loaded: it is not a file of infinitask, or damaged, or needs what is not "
            f"here ({_reason(error)}). Take a file that infinitask.save has written, as it was written."
        ) from error


def _reason(error: BaseException) -> str:
    """The first line of an error, truncated; only its type if its arguments would have to be converted to text."""
    if isinstance(error, KeyError):
        return f"{shown(error.args[0]) if error.args else 'something'} is missing"
    plain = all(isinstance(part, (str, bytes, int, float, type(None))) for part in error.args)
    lines = str(error).strip().splitlines() if plain else []
    text = lines[0] if lines else type(error).__name__
    most = 8 * LONGEST
    return text.rstrip(".") if len(text) <= most else f"{text[:most]}…"


def checksum(table: str, arrays: dict[str, HostArray]) -> str:
    """SHA-256 of the whole content of a file: it detects damage, not malice."""
    found = hashlib.sha256(table.encode())
    for name in sorted(arrays):
        array = arrays[name]
        found.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        found.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return found.hexdigest()


def _read(place: Path) -> Any:
    with _safetensors("safetensors").safe_open(place, framework="np") as file:
        header = file.metadata() or {}
        if header.get("format") != FORMAT:
            raise ValueError("its header does not say that it holds a model of infinitask")
        version = header.get("format_version", "")
        if not version.isdecimal() or not 1 <= len(version) <= 9 or int(version) < 1:
            raise ValueError("its header does not say which version of the format it has")
        if int(version) > FORMAT_VERSION:
            raise _NewerFormatError(
                f"{os.fspath(place)!r} has version {int(version)} of the format, and this infinitask reads versions up "
                f"to {FORMAT_VERSION}; update infinitask."
            )
        table = header.get("table", "")
        if _count(table) > MAX_VALUES:
            raise ValueError(f"its table has {_count(table)} values, and at most {MAX_VALUES} are read")
        # safetensors has checked all sizes against that of the file
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    if checksum(table, arrays) != header.get("checksum"):
        raise ValueError("its checksum is wrong, so some of its bytes have changed")
    content = json.loads(table, parse_constant=_refused)
    if type(content) is not dict or set(content) != {"entries", "model"}:
        raise ValueError("its table is not that of a model")
    for known in range(int(version), FORMAT_VERSION):
        content = UPGRADES[known](content, arrays)
    model = Reader(arrays).read(content["entries"], content["model"])
    if isinstance(model, SCALARS):
        raise ValueError("it holds a single value and no model")
    return model


def _check_header(place: Path) -> None:
    """Raise an error if the header is longer than the file or the limit, before anything parses it.

    A safetensors file begins with the length of its header in eight bytes.
    """
    with place.open("rb") as file:
        start, first = file.read(8), file.read(1)
        if first != b"{":
            raise ValueError("it does not start as a safetensors file does")
        length = int.from_bytes(start, "little")
        if length > min(place.stat().st_size - 8, MAX_HEADER_BYTES):
            raise ValueError(f"its header would take {length} bytes, more than there are or than a header has")
        if file.read(length - 1).count(b"data_offsets") > MAX_ARRAYS:
            raise ValueError(f"it has more than {MAX_ARRAYS} arrays")


def _count(table: str) -> int:
    """An upper bound on the number of values in a JSON text."""
    return 1 + sum(map(table.count, ",[{:"))


def _refused(name: str) -> None:
    raise ValueError(f"its table has the number {name}, which is none of JSON")


def _versions() -> dict[str, str]:
    """The versions of the libraries that the model was made with, as information for readers of the file."""
    from infinitask import __version__

    return {
        "infinitask": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "scikit-learn": sklearn.__version__,
        "scipy": scipy.__version__,
    }


def _path(path: Any, call: str) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{type(path).__name__} was given as the path; it must be a text or a path, as in {call}.")
    return Path(path)


def place_for(path: Any, call: str) -> Path:
    """The path that a call writes to; raise an error before any computation if its folder does not exist."""
    place = _path(path, call).resolve()
    if not place.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {os.fspath(place.parent)!r} to save to; make it first.")
    return place


def _safetensors(module: str) -> Any:
    return needed(module, "Models are saved in the format of safetensors", "save")
