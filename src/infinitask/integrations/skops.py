"""Models in skops files: the types that skops may load without asking (extra "skops").

skops loads types that it knows and those that a user trusts. :func:`trusted` lists the types of this library that a
file contains, and no others: skops still refuses everything else in the file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from infinitask._base.extras import needed
from infinitask.persistence._names import (
    class_named,
    function_named,
    known_classes,
    known_functions,
    registered_classes,
)

__all__ = ["trusted"]

HARMLESS = ("functools.partial",)
"""Python types that models hold and skops asks about; the functions they call must be trusted as well."""


def trusted(file: str | os.PathLike[str] | None = None, *, data: bytes | None = None) -> list[str]:
    """List the types of infinitask in a skops file, for ``skops.io.load(file, trusted=trusted(file))``.

    These are the classes that :func:`infinitask.save` supports, and those passed to
    :func:`infinitask.persistence.register`. Types of other libraries are not included: skops knows those of
    scikit-learn, and asks about the rest.

    Parameters
    ----------
    file : str, path or None
        A file written by ``skops.io.dump``. None, and no ``data``: all types, whether a file has them or not.
    data : bytes or None
        The result of ``skops.io.dumps``, instead of a file.

    Returns
    -------
    list of str
        The names of the types as skops writes them, sorted.

    See Also
    --------
    infinitask.save : Safetensors files, which are checked more strictly: see the page on saving.

    Examples
    --------
    >>> import numpy as np
    >>> import skops.io
    >>> from infinitask import InfiniteQuantileRegressor
    >>> from infinitask.datasets import make_sine
    >>> from infinitask.integrations.skops import trusted
    >>> X, y = make_sine(60, random_state=0)
    >>> model = InfiniteQuantileRegressor(n_nodes=10).fit(X, y)
    >>> data = skops.io.dumps(model)
    >>> again = skops.io.loads(data, trusted=trusted(data=data))
    >>> bool(np.all(again.predict(X, quantiles=[0.1, 0.9]) == model.predict(X, quantiles=[0.1, 0.9])))
    True
    """
    ours = _names()
    if file is None and data is None:
        return sorted(ours)
    if file is not None and data is not None:
        raise ValueError("A file and data were given; give one of them.")
    untrusted = needed("skops.io", "Files of skops need skops", "skops").get_untrusted_types
    asked: list[str] = untrusted(data=data) if file is None else untrusted(file=os.fspath(file))
    return [name for name in asked if name in ours]


def _names() -> frozenset[str]:
    """The full names of this library's classes and functions by place of definition, as skops writes them."""
    functions = [function_named(name) for name in known_functions() if name.startswith("infinitask.")]
    things: list[Any] = [*registered_classes(), *functions]
    for name in known_classes():
        if name.startswith("infinitask."):
            with suppress(ValueError):  # the step for tables needs skrub
                things.append(class_named(name))
    return frozenset([*(f"{thing.__module__}.{thing.__name__}" for thing in things), *HARMLESS])
