"""The pinball loss at θ = 0.8 and its smoothed versions.

The paper draws max(θr, (θ − 1)r) against the residual r = y − h(x), with slope θ to the right of 0 and θ − 1 to the
left, and smooths it for its solver: |θ − 1[r < 0]| ψ(r) with ψ(r) = r²/(2κ) where |r| ≤ κ and |r| − κ/2 elsewhere. The
minimisers are quantiles for κ = 0, M-quantiles for κ > 0, and they approach expectiles as κ grows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from infinitask.losses import MQuantile, Pinball

from .figures import BLUE, GREEN, INK, ORANGE, save
from .runner import Experiment, Record
from .tables import markdown, settings_used, write_csv

__all__ = ["EXPERIMENT"]

KAPPAS = (0.0, 0.25, 0.5, 1.0)

FIXED = {"kappa": "see the table"}
"""Settings that no run changes."""

ORIGINS = {
    "theta": "printed",
    "reach": "ours",
    "points": "ours",
    "kappa": "ours: the paper draws the pinball loss alone",
}


def units(quick: bool) -> list[dict[str, Any]]:
    """One loss for each unit."""
    return [{"kappa": kappa} for kappa in KAPPAS]


def settings(quick: bool) -> dict[str, Any]:
    """The level, and the residuals from −reach to reach."""
    return {"theta": 0.8, "reach": 1.5, "points": 301}


def work(unit: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The loss and its slope in r."""
    r = np.linspace(-settings["reach"], settings["reach"], settings["points"])
    theta, h = np.array([settings["theta"]]), np.zeros((r.size, 1))
    loss = MQuantile(unit["kappa"]) if unit["kappa"] > 0.0 else Pinball()
    return {
        "residual": r.round(6).tolist(),
        "loss": loss.value(theta, r[:, None], h)[:, 0].tolist(),
        "slope": (-loss.slope(theta, r[:, None], h)[:, 0]).tolist(),
    }


def report(records: list[Record], folder: Path, settings: dict[str, Any]) -> list[Path]:
    """Write pinball.csv, pinball.png and pinball.md."""
    rows = [
        {"kappa": record["unit"]["kappa"], "residual": r, "loss": loss, "slope": slope}
        for record in records
        for r, loss, slope in zip(*(record["result"][name] for name in ("residual", "loss", "slope")), strict=True)
    ]
    files = [
        write_csv(folder / "pinball.csv", rows),
        save(folder / "pinball.png", (8.0, 5.0), lambda figure: _draw(figure, records, settings["theta"])),
        folder / "pinball.md",
    ]
    at_zero = [_numbers(record) for record in records]
    page = [
        "# The pinball loss and its smoothed versions",
        f"The loss of a residual r = y − h(x) at the level θ = {settings['theta']:g}, for some widths κ of smoothing.",
        settings_used(settings | FIXED, ORIGINS),
        "![The loss against the residual](pinball.png)",
        markdown(["κ", "loss at r = −1", "at r = 1", "largest slope left of 0", "right of 0"], at_zero),
        "Beyond |r| = κ the smoothed losses keep the slopes θ − 1 and θ, and lie below the pinball loss by κ(1 − θ)/2 "
        "on the left and κθ/2 on the right. Within, they are parabolas, steeper on the right: there they count how "
        "large a residual is and not only its sign, so their minimisers are M-quantiles, between quantiles and "
        "expectiles. All numbers are in [pinball.csv](pinball.csv).",
        "",
    ]
    files[-1].write_text("\n\n".join(page), encoding="utf-8")
    return files


def _numbers(record: Record) -> list[str]:
    found = {name: np.array(record["result"][name]) for name in ("residual", "loss", "slope")}
    left, right = (np.interp(r, found["residual"], found["loss"]) for r in (-1.0, 1.0))
    steepest = found["slope"].min(), found["slope"].max()
    return [f"{record['unit']['kappa']:g}", *(f"{value:.3f}" for value in (left, right, *steepest))]


def _draw(figure: Any, records: list[Record], theta: float) -> None:
    axes = figure.add_subplot()
    for record, colour in zip(records, (INK, BLUE, GREEN, ORANGE), strict=False):
        r, loss, kappa = record["result"]["residual"], record["result"]["loss"], record["unit"]["kappa"]
        axes.plot(r, loss, color=colour, linewidth=2.2)
        axes.annotate(
            f"κ = {kappa:g}" + (" (pinball)" if kappa == 0.0 else ""),
            (r[-1], loss[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            verticalalignment="center",
            annotation_clip=False,
        )
    for r, label in ((-1.0, "slope θ − 1"), (0.75, "slope θ")):
        height = max(theta * r, (theta - 1.0) * r)
        place: dict[str, Any] = {"xytext": (0, 10), "ha": "left"} if r < 0.0 else {"xytext": (-8, 10), "ha": "right"}
        axes.annotate(label, (r, height), textcoords="offset points", color=INK, **place)
    axes.set(xlabel="residual r = y − h(x)", ylabel="loss", ylim=(0.0, None))
    axes.set_title(f"Pinball loss at θ = {theta:g}: smoothing rounds the kink and keeps the slopes")
    axes.margins(x=0.0)


EXPERIMENT = Experiment("pinball", "The pinball loss", units, work, report, settings, code=("src/infinitask/losses",))
