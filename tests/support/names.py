"""Names of test cases."""

from __future__ import annotations

import re
from typing import Any


def case_name(value: Any) -> str:
    """What a value is, without the address of a function: processes that share out the tests must agree on names."""
    return re.sub(r" at 0x[0-9a-f]+", "", value if isinstance(value, str) else repr(value))
