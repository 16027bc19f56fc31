"""What must happen to a wrong call: an error that is a sentence about the argument that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest


class Wrong(NamedTuple):
    """A call that must be refused, and the name that its error must contain."""

    id: str
    call: Callable[[], Any]
    name: str


def check_refused(wrong: Wrong) -> None:
    """The call raises a ValueError or a TypeError that names the argument; nothing else, and no silence."""
    with pytest.raises((ValueError, TypeError)) as caught:
        wrong.call()
    # LinAlgError is a ValueError, and nobody's answer to a wrong argument
    assert not isinstance(caught.value, np.linalg.LinAlgError), repr(caught.value)
    sentence = str(caught.value)
    assert re.search(rf"(?<![A-Za-z]){re.escape(wrong.name)}(?![a-z])", sentence), sentence
