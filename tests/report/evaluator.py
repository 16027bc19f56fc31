"""A second reader of the data of a page, in NumPy: it knows the written form alone, nothing of the library."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np


def unpack(packed: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(packed["data"]), dtype="<f8").reshape(packed["shape"])


def statistic(of: str, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """s(x, z) for all pairs of rows."""
    away, total = X[:, None, :] - Z[None, :, :], X[:, None, :] + Z[None, :, :]
    found: dict[str, Callable[[], np.ndarray]] = {
        "squared": lambda: np.sum(away**2, axis=2),
        "l1": lambda: np.sum(np.abs(away), axis=2),
        "chi2": lambda: np.sum(away**2 / np.where(total == 0.0, 1.0, total), axis=2),
        "product": lambda: X @ Z.T,
        "minimum": lambda: np.minimum(X, Z.T),
    }
    return found[of]()


def gram(kernel: dict[str, Any], X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """k(x, z) for all pairs of rows."""
    kind, parts = kernel["kind"], kernel["parts"]
    if kind == "function":
        u = kernel["factor"] * kernel["gamma"] * statistic(kernel["of"], X, Z)
        u = (np.sqrt(u) if kernel["root"] else u) + kernel["offset"]
        terms = [u**i / divisor for i, divisor in enumerate(kernel["series"])]
        return sum(terms) * np.exp(-u) if terms else u ** kernel["power"]
    if kind == "each":
        each = [gram(parts[j % len(parts)], X[:, [j]], Z[:, [j]]) for j in range(X.shape[1])]
        return np.mean(each, axis=0)
    if kind in ("sum", "product"):
        found = [gram(part, X, Z) for part in parts]
        return np.sum(found, axis=0) if kind == "sum" else np.prod(found, axis=0)
    X, Z = (changed(kernel, A) for A in (X, Z))
    return gram(parts[0], X, Z)


def changed(kernel: dict[str, Any], X: np.ndarray) -> np.ndarray:
    if kernel["kind"] == "scaled":
        return X * unpack(kernel["scales"])
    if kernel["kind"] == "metric":
        return X @ unpack(kernel["root"])
    assert kernel["kind"] == "ranks"
    columns = [[unpack(part) for part in pair] for pair in kernel["ranks"]]
    return np.column_stack([np.interp(X[:, j], *pair) for j, pair in enumerate(columns)])


def left(written: dict[str, Any], X: np.ndarray) -> np.ndarray:
    if written["type"] == "fourier":
        angles = X @ unpack(written["frequencies"])
        features = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(angles.shape[1])
    else:
        features = gram(written["kernel"], X, unpack(written["landmarks"]))
    return features @ unpack(written["transform"])


def task_gram(kernel: dict[str, Any], s: np.ndarray, t: np.ndarray, order: int) -> np.ndarray:
    """k(s, t), or its derivative in t by central differences."""
    if order == 0:
        return gram(kernel, s[:, None], t[:, None])
    step = 1e-5 * np.array([1.0, -1.0])[:, None]
    above, below = (gram(kernel, s[:, None], t[:, None] + h) for h in step)
    return (above - below) / 2e-5


def psi(written: dict[str, Any], theta: np.ndarray) -> np.ndarray:
    if written["type"] == "nodes":
        nodes = unpack(written["nodes"])
        return np.column_stack([extended(theta, nodes, row) for row in np.eye(nodes.size)])
    blocks = [task_gram(written["kernel"], theta, unpack(b["nodes"]), b["order"]) for b in written["landmarks"]]
    values = np.hstack(blocks) @ unpack(written["transform"])
    if written["rest"] is None:
        return values
    return values + psi(written["rest"]["map"], theta) @ unpack(written["rest"]["right"])


def extended(x: np.ndarray, xs: np.ndarray, ys: np.ndarray) -> np.ndarray:
    """Linear between points and beyond the ends."""
    right = np.clip(np.searchsorted(xs, x), 1, xs.size - 1)
    slope = (ys[right] - ys[right - 1]) / (xs[right] - xs[right - 1])
    return ys[right - 1] + slope * (x - xs[right - 1])


def field(written: dict[str, Any], X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """h(x)(θ) from the formulas, (n, q)."""
    bias = np.full(theta.size, written["offset"])
    if written["bias"] is not None:
        bias = bias + psi(written["bias"]["psi"], theta) @ unpack(written["bias"]["coef"])
    return left(written["left"], X) @ psi(written["psi"], theta).T + bias


def shifted(model: dict[str, Any], theta: np.ndarray) -> np.ndarray:
    """What was added last."""
    shift = model["shift"]
    return np.zeros(theta.size) if shift is None else np.interp(theta, unpack(shift["levels"]), unpack(shift["values"]))


def encoded(payload: dict[str, Any], cells: np.ndarray) -> np.ndarray:
    """The model's input (n, p) for what is entered (n, d): numbers, days, places in lists, NaN where missing."""
    found = np.tile(unpack(payload["base"]), (len(cells), 1))
    for column, values in zip(payload["columns"], cells.T, strict=True):
        written = column["encoded"]
        known = np.where(np.isnan(values), 0.0, values)
        if written["type"] == "affine":
            taken = known.astype(np.float32).astype(float) if written["single"] else known
            block = unpack(written["offset"]) + (taken - written["origin"])[:, None] * unpack(written["slope"])
        elif written["type"] == "table":
            last = column["high"] - column["low"]
            block = unpack(written["values"])[np.clip(known - column["low"], 0, last).astype(int)]
        else:
            assert written["type"] == "choices"
            block = unpack(written["values"])[known.astype(int)]
        if np.any(np.isnan(values)):
            block = np.where(np.isnan(values)[:, None], unpack(written["missing"]), block)
        found[:, written["columns"]] = block
    return found


def quantiles(model: dict[str, Any], X: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Quantiles (n, q): sorted and calibrated where the model is."""
    levels = unpack(model["levels"])

    def Q(at: np.ndarray) -> np.ndarray:
        if not model["rearranged"]:
            return field(model["field"], X, at)
        curves = np.sort(field(model["field"], X, levels), axis=1)
        return np.array([np.interp(at, levels, curve) for curve in curves])

    moved = model["calibrated"]
    if moved is None:
        return Q(theta)
    taken = np.interp(theta, unpack(moved["asked"]), unpack(moved["taken"]))
    inside = np.clip(taken, moved["low"], moved["high"])
    quartiles = Q(moved["low"] + (moved["high"] - moved["low"]) * np.array([0.25, 0.75]))
    spread = np.maximum(np.diff(quartiles, axis=1), moved["least_spread"])
    down, up = moved["slopes"]
    return Q(inside) + spread * (taken - inside) * np.where(taken < inside, down, up)
