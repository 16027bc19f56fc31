"""Many cases in one test: a law or a refusal runs for each of them, and the failure names every case that fails."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, wraps
from itertools import product
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet

from tests.support.names import case_name


def run_each(cases: Iterable[tuple[str, Callable[[], Any]]]) -> None:
    """Run all cases, then fail once, with one line for each case that failed. Skips if all of them skip."""
    failed: list[tuple[str, BaseException]] = []
    reasons: list[str] = []
    n = 0
    for name, call in cases:
        n += 1
        try:
            call()
        except pytest.skip.Exception as skipped:
            reasons.append(str(skipped))
        except (Exception, pytest.fail.Exception) as error:
            failed.append((name, error))
    assert n, "there is no case"
    if failed:
        lines = "\n".join(f"  {name}: {_line(error)}" for name, error in failed)
        raise AssertionError(f"{len(failed)} of {n} cases failed:\n{lines}") from failed[0][1]
    if len(reasons) == n:
        pytest.skip(reasons[0])


def _line(error: BaseException) -> str:
    """The kind of an error, its first line, and the line of a test that it came from."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if "/test_" in frame.filename]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{type(error).__name__}{where}: {(str(error).splitlines() or [''])[0]}"


def each(
    names: str | Sequence[str], values: Iterable[Any] | Callable[[], Iterable[Any]], ids: Any = None
) -> Callable[[Any], Any]:
    """As ``pytest.mark.parametrize``, with all cases in one test.

    Several of them above one test are all combinations. Fixtures of a function are shared by its cases. A function that
    gives the values is called when the test runs, not when it is collected.
    """
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    known = values if callable(values) else list(values)

    def axis() -> list[tuple[str, dict[str, Any]]]:
        return [_case(split, value, k, ids) for k, value in enumerate(known() if callable(known) else known)]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        inner, axes, taken = getattr(test, "cases", (test, [], []))
        axes, taken = [axis, *axes], [*split, *taken]
        assert len(set(taken)) == len(taken), f"an argument has values twice: {taken}"

        @wraps(test)
        def together(*instance: Any, **fixtures: Any) -> None:
            def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
                for combination in product(*(axis() for axis in axes)):
                    given = {name: value for _, part in combination for name, value in part.items()}
                    yield "-".join(name for name, _ in combination), partial(inner, *instance, **fixtures, **given)

            run_each(cases())

        signature = inspect.signature(inner)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in taken]
        together.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        together.cases = inner, axes, taken  # type: ignore[attr-defined]
        return together

    return decorate


def _case(names: list[str], value: Any, k: int, ids: Any) -> tuple[str, dict[str, Any]]:
    """The name of a case, and its arguments."""
    if isinstance(value, ParameterSet):
        assert not value.marks, "a case of a loop has no marks"
        row, name = value.values, value.id
    else:
        row, name = ((value,) if len(names) == 1 else tuple(value)), None
    if name is None and ids is not None and not callable(ids):
        name = str(list(ids)[k])
    if name is None:
        name = "-".join(case_name(part if ids is None else ids(part)) for part in row)
    return " ".join(str(name).split())[:100], dict(zip(names, row, strict=True))
