"""The demo ends well, leaves figures behind, and says clearly why it cannot."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="the demo draws with the extra `plot`")

from infinitask import demo
from infinitask.demo import _run

FIGURES = ("quantiles.png", "costs.png", "level_sets.png")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """One quick run for all tests: the folder, standard output, standard error."""
    folder = tmp_path_factory.mktemp("demo") / "not" / "yet" / "there"
    with pytest.MonkeyPatch.context() as patch:
        out, err = io.StringIO(), io.StringIO()
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        assert demo.main(["--quick", "--output", str(folder)]) == 0
    return folder, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("name", FIGURES)
def test_figures_show_something(quick: tuple[Path, str, str], name: str) -> None:
    from matplotlib.image import imread

    folder, out, _ = quick
    pixels = imread(folder / name)[..., :3]
    assert min(pixels.shape[:2]) > 500
    assert np.var(pixels) > 1e-3
    # not only black on white: the colours of θ are there
    assert np.mean(np.ptp(pixels, axis=2) > 0.2) > 0.01
    assert str(folder / name) in out


def test_table_certifies_every_fit(quick: tuple[Path, str, str]) -> None:
    _, out, _ = quick
    lines = out.splitlines()
    head = next(i for i, line in enumerate(lines) if "certified gap" in line)
    rows = lines[head + 2 : head + 5]
    end = lines[head].index("certified gap") + len("certified gap")
    for row in rows:
        gap = row[:end].split()[-1]  # cells end where their heading ends
        assert re.fullmatch(r"\d\.\de-\d\d", gap)
        assert 0.0 <= float(gap) <= _run.QUICK.tol
    assert max(map(len, lines[head : head + 5])) <= 110


def test_progress_names_each_step_once(quick: tuple[Path, str, str]) -> None:
    _, _, err = quick
    lines = err.splitlines()
    assert [line[:5] for line in lines] == [f"[{k}/6]" for k in range(1, 7)]
    assert "\r" not in err


def test_progress_is_shown_before_the_work_is_done() -> None:
    stream = io.StringIO()
    with _run.progress(stream, "1/1", "waiting"):
        assert "waiting" in stream.getvalue()
        assert "\n" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_progress_ends_its_line_when_a_step_fails() -> None:
    stream = io.StringIO()
    with pytest.raises(ZeroDivisionError), _run.progress(stream, "1/1", "dividing"):
        raise ZeroDivisionError
    assert stream.getvalue().endswith("stopped\n")


def test_settings_of_matplotlib_are_left_alone(tmp_path: Path) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    example = _run.EXAMPLES[0]
    _run.save_figure(example, example.fit(_run.QUICK), tmp_path, grid=20)
    assert dict(matplotlib.rcParams) == before


def test_unwritable_output_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file, where a folder is needed")
    for folder in (blocked, blocked / "below"):
        assert demo.main(["--quick", "--output", str(folder)]) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert str(folder) in err
        assert "--output" in err
        assert "Traceback" not in err


def test_missing_matplotlib_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert demo.main(["--quick", "--output", str(tmp_path / "figures")]) == 1
    assert "pip install infinitask[plot]" in capsys.readouterr().err
    assert not (tmp_path / "figures").exists()


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        demo.main(["--help"])
    assert stop.value.code == 0
    assert "--output" in capsys.readouterr().out
