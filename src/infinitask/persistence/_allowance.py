"""How much a file may make: some entries make values that are larger than what the file says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

MOST_ENTRIES: Mapping[str, int] = {
    "distribution": 2**9,
    "mapping": 2**16,
    "masked": 2**14,
    "object": 2**16,
    "pandas index": 2**12,
    "pandas type": 2**14,
    "partial": 2**14,
    "random": 2**12,
    "sparse": 2**14,
    "spline": 2**14,
}
"""The most entries of a kind, where each makes kilobytes of a few bytes in the file or takes long to make."""

MAX_REPEATED_BYTES = 2**26
"""The most bytes of arrays that are given to more than one entry which may copy them, 64 MiB."""

MAX_PARTS = 2**6
"""The most arguments of a partial call or of a distribution, and parts of a key of a dict."""

LONGEST_TEXT = 200
"""Characters of an attribute's name, of a regular expression, and of a key that is a text of NumPy."""

MAX_UNFOLDED = 2**26
"""The most values of an entry where each is counted as often as it is met, as by one who prints it; for
a step of skrub that is five times the values of its table, since several of its attributes hold the same."""

MAX_RANGE = 2**20
"""The most numbers in a range: methods that take one make a list of it."""


def check_counts(entries: list[Any]) -> None:
    """A ValueError where a table has too many entries of a kind, before any of them is made."""
    _check_unfolded(entries)
    kinds = Counter(entry[0] for entry in entries if type(entry) is list and entry and type(entry[0]) is str)
    for kind, most in MOST_ENTRIES.items():
        if kinds[kind] > most:
            raise ValueError(f"it has {kinds[kind]} entries of the kind {kind!r}, and at most {most} are read")


def _check_unfolded(entries: list[Any]) -> None:
    """A ValueError where an entry has far more values than the file: it refers to what refers to others, many times.

    Each entry may hold the one before it twice, so a kilobyte can say 2^33 values, for years of printing.
    """
    sizes: list[int] = []
    for entry in entries:
        size = 1
        for part in entry if type(entry) is list else ():
            for one in part if type(part) is list else (part,):
                if type(one) is str:
                    size += 1 + len(one) // 8  # long texts count as several values
                elif type(one) is list and len(one) == 1 and type(one[0]) is int and 0 <= one[0] < len(sizes):
                    size += sizes[one[0]]
                else:
                    size += 1
        if size > MAX_UNFOLDED:
            raise ValueError(f"an entry refers to others so often that it has more than {MAX_UNFOLDED} values")
        sizes.append(size)


class Repeats:
    """Counts the bytes of arrays that are copied more than once, since a reference to an array costs nothing."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}  # with the array, so that no other gets its address
        self._bytes = 0

    def count(self, parts: Iterable[Any]) -> None:
        """A ValueError where the arrays among the parts were given too often."""
        for part in parts:
            if not isinstance(part, np.ndarray):
                continue
            if id(part) in self._seen:
                self._bytes += part.nbytes
            self._seen[id(part)] = part
        if self._bytes > MAX_REPEATED_BYTES:
            raise ValueError(f"arrays that several values share take more than {MAX_REPEATED_BYTES} bytes")
