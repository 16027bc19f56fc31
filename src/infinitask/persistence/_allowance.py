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


class Allowance:
    """What the entries of a file have used up."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._sizes: list[int] = []
        self._seen: dict[int, Any] = {}  # arrays by their address, and with them, so that no other gets it
        self._bytes = 0

    def count(self, entry: Any) -> None:
        """A ValueError where there are too many entries of a kind, or an entry has far more values than the file.

        Each entry may hold the one before it twice, so a kilobyte can say 2^33 values, for years of printing.
        """
        if type(entry) is not list or not entry or type(entry[0]) is not str:
            raise ValueError("an entry does not say what it is")
        kind, most = entry[0], MOST_ENTRIES.get(entry[0])
        self._kinds[kind] += 1
        if most is not None and self._kinds[kind] > most:
            raise ValueError(f"it has more than {most} entries of the kind {kind!r}")
        size = 1 + sum(self._size(one) for part in entry for one in (part if type(part) is list else (part,)))
        if size > MAX_UNFOLDED:
            raise ValueError(f"an entry refers to others so often that it has more than {MAX_UNFOLDED} values")
        self._sizes.append(size)

    def _size(self, value: Any) -> int:
        """How many values a part of an entry is; a long text counts as several."""
        if type(value) is str:
            return 1 + len(value) // 8
        refers = type(value) is list and len(value) == 1 and type(value[0]) is int and 0 <= value[0] < len(self._sizes)
        return self._sizes[value[0]] if refers else 1

    def count_copies(self, parts: Iterable[Any]) -> None:
        """A ValueError where the arrays among the parts were copied too often; a reference to one costs nothing."""
        for part in parts:
            if isinstance(part, np.ndarray):
                self._bytes += part.nbytes if id(part) in self._seen else 0
                self._seen[id(part)] = part
        if self._bytes > MAX_REPEATED_BYTES:
            raise ValueError(f"arrays that several values share take more than {MAX_REPEATED_BYTES} bytes")
