"""How errors show what a file holds. A file chooses how long its values are, and how long it takes to print them."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

LONGEST = 50
"""Characters of a text from a file that an error shows."""


def check_word(value: Any, words: Container[str], reason: str) -> None:
    """A ValueError with this reason where a value from a file is not one of some words."""
    if type(value) is not str or value not in words:
        raise ValueError(reason)


def shown(value: Any) -> str:
    """A value in an error: a text or a number, cut; of all else the type alone.

    A tuple of tuples can take a kilobyte in a file and years to print, since each may hold the one before it twice.

    Examples
    --------
    >>> shown("x" * 1000)[:8], len(shown("x" * 1000))
    ("'xxxxxxx", 53)
    >>> shown(3), shown((1, 2)), shown(10**5000)
    ('3', 'a tuple', 'a whole number of 16610 bits')
    """
    if isinstance(value, str):
        text = str.__str__(value[:LONGEST])
        return repr(text if len(value) <= LONGEST else f"{text}…")
    if type(value) is int and value.bit_length() > LONGEST * 3:
        return f"a whole number of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return str(value)
    return f"a {type(value).__name__}"


def reason(error: BaseException) -> str:
    """The first line of an error, cut; the type alone where its arguments would have to be written out."""
    if isinstance(error, KeyError):
        return f"{shown(error.args[0]) if error.args else 'something'} is missing"
    plain = all(isinstance(part, (str, bytes, int, float, type(None))) for part in error.args)
    lines = str(error).strip().splitlines() if plain else []
    text = lines[0] if lines else type(error).__name__
    most = 8 * LONGEST
    return text.rstrip(".") if len(text) <= most else f"{text[:most]}…"
