"""A loop over cases is a test like any other: it fails, skips and passes, and says where."""

from __future__ import annotations

import pytest

from tests.support.each import each


@each("k", [1, pytest.param(2, id="two"), 3])
@each(("sign", "word"), [(1, "plus"), (-1, "minus")])
def some_fail(sign: int, word: str, k: int, *, limit: int) -> None:
    assert sign * k < limit, word


def test_a_failure_names_every_case_that_fails() -> None:
    with pytest.raises(AssertionError) as caught:
        some_fail(limit=2)
    head, *lines = str(caught.value).splitlines()
    assert head == "2 of 6 cases failed:"
    assert [line.split(":")[0].strip() for line in lines] == ["two-1-plus", "3-1-plus"]
    some_fail(limit=4)


def test_what_is_not_raised_is_a_failure_too() -> None:
    @each("value", ["1", "one"])
    def refuses(value: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(value)

    with pytest.raises(AssertionError, match=r"1 of 2 cases failed:\n  1: .*DID NOT RAISE"):
        refuses()


def test_a_loop_is_skipped_if_all_of_its_cases_are() -> None:
    @each("k", range(3))
    def skips(k: int, below: int) -> None:
        if k < below:
            pytest.skip(f"below {below}")

    skips(below=2)
    with pytest.raises(pytest.skip.Exception, match="below 3"):
        skips(below=3)


@pytest.mark.parametrize("below", [3])
@each("k", range(3))
def test_fixtures_and_parameters_reach_the_cases(k: int, below: int, request: pytest.FixtureRequest) -> None:
    assert k < below
    assert "below" in request.fixturenames
    assert "k" not in request.fixturenames


class TestMethods:
    @each("k", range(3))
    def test_a_method_has_cases(self, k: int) -> None:
        assert k < 3
