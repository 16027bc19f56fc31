"""What must happen to a wrong call: an error that is a sentence about the argument that is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.support.each import run_each
from tests.support.names import case_name


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


def check_all_refused(wrongs: Iterable[Wrong]) -> None:
    """All calls are refused; the failure names each that is not."""
    run_each((case_name(wrong.id), partial(check_refused, wrong)) for wrong in wrongs)
