"""Many rows: beside gradient boosting, as rows grow, and from a file that does not fit into memory.

Run ``python benchmarks/larger_than_memory.py``, or name the parts: ``beside``, ``growth``, ``file``. ``--quick`` is a
small run to check that it works. Every figure is measured in a process of its own, so that its peak of memory is its
own. What is known of the other parts stays in the report.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pages import combined, now, read, signed
from suite.machine import confine, description, environment, versions

RESULTS = Path(__file__).parents[1] / "docs" / "benchmarks" / "larger_than_memory.md"

INPUTS, BLOCK, THREADS = 8, 100_000, 2
GIB = 2**30
UNIT_OF_PEAK = 1 if sys.platform == "darwin" else 1024
"""``ru_maxrss`` is in bytes on macOS, and in KiB elsewhere."""


@dataclass(frozen=True)
class Scale:
    """The sizes of all parts."""

    rows: int = 1_000_000
    new: int = 100_000
    landmarks: int = 1_000
    nodes: int = 50
    tol: float = 1e-3
    levels: int = 19
    growth: tuple[int, ...] = (10_000, 30_000, 100_000, 300_000, 1_000_000)
    file_rows: int = 20_000_000
    file_landmarks: int = 300
    file_nodes: int = 16
    file_tol: float = 1e-2
    file_memory: int = 2 * GIB
    """Bytes that may be kept between passes: the inputs of all rows (1.6 GB), not their features (48 GB)."""


QUICK = Scale(
    rows=30_000,
    new=2_000,
    landmarks=40,
    nodes=6,
    tol=1e-2,
    levels=3,
    growth=(2_000, 8_000),
    file_rows=60_000,
    file_landmarks=30,
    file_nodes=6,
    file_memory=0,
)


# ----------------------------------------------------------------------------------------------------- what is measured
def sample(n: int, seed: int) -> tuple[Any, Any]:
    """Inputs in single precision, as files hold them, and targets whose spread depends on an input."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, INPUTS)).astype(np.float32)
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + (0.3 + 0.3 * np.abs(X[:, 3])) * rng.normal(size=n)
    return X, y


def pinball(levels: Any, y: Any, predicted: Any) -> float:
    """The mean over rows and levels."""
    import numpy as np

    r = y[:, None] - predicted
    return float(np.mean(np.maximum(levels * r, (levels - 1.0) * r)))


def timed(fit: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """What a function returns, and its seconds by the clock and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = fit()
    return found, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def levels_of(scale: Scale) -> Any:
    import numpy as np

    return np.arange(1, scale.levels + 1) / (scale.levels + 1)


def ours(scale: Scale, n: int) -> dict[str, Any]:
    """One fit of arrays for all levels."""
    import numpy as np

    from infinitask import InfiniteQuantileRegressor

    X, y = sample(n, 0)
    X, levels = X.astype(np.float64), levels_of(scale)
    model = InfiniteQuantileRegressor(
        n_nodes=scale.nodes, rank=scale.landmarks, features="nystroem", tol=scale.tol, random_state=0
    )
    before = peak()
    _, seconds = timed(lambda: model.fit(X, y))
    after = peak()
    new, target = sample(scale.new, 1)
    loss = pinball(levels, target, model.predict(new.astype(np.float64), levels))
    evaluations = model.solution_.n_evaluations
    return seconds | {"loss": loss, "gap": model.dual_gap_, "evaluations": evaluations, "before": before, "peak": after}


def lightgbm(scale: Scale, n: int) -> dict[str, Any]:
    """One model for every level."""
    import numpy as np
    from lightgbm import LGBMRegressor

    X, y = sample(n, 0)
    X, levels = X.astype(np.float64), levels_of(scale)
    before = peak()
    models, seconds = timed(
        lambda: [LGBMRegressor(objective="quantile", alpha=q, n_jobs=THREADS, verbose=-1).fit(X, y) for q in levels]
    )
    after = peak()
    new, target = sample(scale.new, 1)
    loss = pinball(levels, target, np.column_stack([m.predict(new.astype(np.float64)) for m in models]))
    return seconds | {"loss": loss, "before": before, "peak": after}


def from_file(scale: Scale, path: str) -> dict[str, Any]:
    """One fit of a Parquet file."""
    import numpy as np

    from infinitask import InfiniteQuantileRegressor
    from infinitask.streaming import Blocks

    blocks = Blocks.of_parquet(path, "y", memory=scale.file_memory)
    model = InfiniteQuantileRegressor(
        n_nodes=scale.file_nodes, rank=scale.file_landmarks, features="nystroem", tol=scale.file_tol, random_state=0
    )
    before = peak()
    _, seconds = timed(lambda: model.fit(blocks))
    after = peak()
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    new, target = sample(scale.new, 1)
    levels = levels_of(scale)
    loss = pinball(levels, target, model.predict(new.astype(np.float64), levels))
    found = {"loss": loss, "gap": model.dual_gap_, "evaluations": model.solution_.n_evaluations}
    return seconds | found | {"passes": blocks.passes, "before": before, "peak": after}


def write_file(scale: Scale, path: str) -> dict[str, Any]:
    """The rows of the file, a block at a time."""
    import pyarrow
    import pyarrow.parquet

    names = [f"x{j}" for j in range(INPUTS)]
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in (*names, "y")])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for k, start in enumerate(range(0, scale.file_rows, BLOCK)):
            X, y = sample(min(BLOCK, scale.file_rows - start), 2 + k)
            columns = {**{name: X[:, j] for j, name in enumerate(names)}, "y": y.astype("float32")}
            writer.write_table(pyarrow.table(columns, schema=schema))
    return {"bytes": Path(path).stat().st_size}


def peak() -> float:
    """The most memory that this process has had, in bytes."""
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT_OF_PEAK)


MEASURES: dict[str, Callable[[Scale, Any], dict[str, Any]]] = {
    "ours": ours,
    "lightgbm": lightgbm,
    "from_file": from_file,
    "write_file": write_file,
}


def measured(name: str, scale: Scale, argument: Any) -> dict[str, Any]:
    """A measurement in a process of its own."""
    asked = json.dumps({"name": name, "scale": asdict(scale), "argument": argument})
    command = [sys.executable, str(Path(__file__).resolve()), "--measure", asked]
    done = subprocess.run(command, env=environment(THREADS), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def measure(asked: str) -> None:
    """Do what another process asked for, and print what was found."""
    confine(THREADS)
    request = json.loads(asked)
    scale = Scale(**{k: tuple(v) if isinstance(v, list) else v for k, v in request["scale"].items()})
    print(json.dumps(MEASURES[request["name"]](scale, request["argument"])))


# ------------------------------------------------------------------------------------------------------------ the parts
def beside(scale: Scale) -> dict[str, Any]:
    """One fit beside a model for every level."""
    found = {"ours": measured("ours", scale, scale.rows)}
    if find_spec("lightgbm") is not None:
        found["lightgbm"] = measured("lightgbm", scale, scale.rows)
    return {"scale": asdict(scale), **found}


def growth(scale: Scale) -> dict[str, Any]:
    """Time as rows grow."""
    return {"scale": asdict(scale), "fits": [[n, measured("ours", scale, n)] for n in scale.growth]}


def file(scale: Scale) -> dict[str, Any]:
    """A file that does not fit into memory, in features."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.parquet")
        size = measured("write_file", scale, path)["bytes"]
        return {"scale": asdict(scale), "bytes": size, "fit": measured("from_file", scale, path)}


PARTS = {"beside": beside, "growth": growth, "file": file}


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Of the line of least squares through the logarithms."""
    import numpy as np

    x, y = np.log(np.asarray(points, dtype=float)).T
    return float(np.polyfit(x, y, 1)[0])


# ----------------------------------------------------------------------------------------------------------- the report
def report(known: dict[str, Any]) -> str:
    """What was measured, in Markdown; parts may come from several runs."""
    how = "Every fit in a process of its own, with two threads on two cores."
    lines = ["# Many rows", "", how, known["machine"], ""]
    for name, table in (("beside", _beside), ("growth", _growth), ("file", _file)):
        lines += [*table(known[name]), ""] if name in known else []
    return signed("\n".join(lines), combined([read(line) for line in known["provenances"].values()]))


def _beside(found: dict[str, Any]) -> list[str]:
    s = found["scale"]
    lines = [
        f"## {s['rows']:,} rows beside gradient boosting",
        "",
        f"`InfiniteQuantileRegressor` with {s['landmarks']} landmarks and {s['nodes']} nodes to a gap of {s['tol']:g}, "
        f"by `fit(X, y)`; LightGBM: {s['levels']} models with its defaults, one for each level. {INPUTS} inputs; the "
        f"pinball loss is the mean over {s['levels']} levels and {s['new']:,} new rows. Peak: of the process, data "
        "included.",
        "",
        "| | wall, s | processor, s | peak, GiB | before the fit, GiB | pinball loss | gap | evaluations |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        _row("infinitask", found["ours"]),
    ]
    if "lightgbm" in found:
        return [*lines, _row("LightGBM", found["lightgbm"])]
    return [*lines, "", "LightGBM is not installed here: `make peers`."]


def _row(name: str, f: dict[str, Any]) -> str:
    own = f"{f['gap']:.1e} | {f['evaluations']}" if "gap" in f else "– | –"
    memory = f"{f['peak'] / GIB:.2f} | {f['before'] / GIB:.2f}"
    return f"| {name} | {f['wall']:.1f} | {f['cpu']:.1f} | {memory} | {f['loss']:.5f} | {own} |"


def _growth(found: dict[str, Any]) -> list[str]:
    fits = found["fits"]
    lines = [
        "## Time as rows grow",
        "",
        f"The same fit. The slope of the logarithm of seconds by that of rows is {_slope(fits, 'wall')} by the clock "
        f"and {_slope(fits, 'cpu')} of the processor; a slope of 1 is time in proportion to rows.",
        "",
        "| rows | wall, s | processor, s | peak, GiB | before the fit, GiB | pinball loss | gap | evaluations |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    return [*lines, *(_row(f"{n:,}", fit) for n, fit in fits)]


def _slope(fits: Any, clock: str) -> str:
    return f"{slope([(n, fit[clock]) for n, fit in fits]):.2f}"


def _file(found: dict[str, Any]) -> list[str]:
    s, fit = found["scale"], found["fit"]
    return [
        f"## {s['file_rows']:,} rows of a Parquet file",
        "",
        f"{found['bytes'] / GIB:.2f} GiB on disk; features in double precision would take "
        f"{8 * s['file_rows'] * s['file_landmarks'] / GIB:.1f} GiB. {s['file_landmarks']} landmarks, "
        f"{s['file_nodes']} nodes, a gap of {s['file_tol']:g}, `memory={s['file_memory']}`. Rows were read "
        f"{fit['passes']} times.",
        "",
        "| | wall, s | processor, s | peak, GiB | before the fit, GiB | pinball loss | gap | evaluations |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        _row("infinitask", fit),
    ]


def machine() -> str:
    """Where the figures come from."""
    where, packages = description(), ", ".join(f"{name} {number}" for name, number in versions().items())
    return f"{where['system']} {where['machine']}, {where.get('processor', '')}, {where['cores']} cores; {packages}."


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"{', '.join(PARTS)}; all of them by default")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, help=f"default: {RESULTS.name}; nowhere with --quick")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.measure:
        measure(given.measure)
        return
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        parser.error(f"{unknown[0]} is no part; the parts are {', '.join(PARTS)}")
    scale = QUICK if given.quick else Scale()
    output = given.output or (None if given.quick else RESULTS)
    kept = None if output is None else output.with_suffix(".json")
    known = json.loads(kept.read_text(encoding="utf-8")) if kept is not None and kept.exists() else {}
    for part in given.parts or PARTS:
        provenance = now("make bench-large")
        known |= {part: PARTS[part](scale), "machine": machine()}
        known["provenances"] = known.get("provenances", {}) | {part: str(provenance)}
        if output is not None and kept is not None:
            kept.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            output.write_text(report(known), encoding="utf-8")
    print(report(known))


if __name__ == "__main__":
    main()
