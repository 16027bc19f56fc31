"""A table as people have them: numbers, categories, truth values, dates, text, and cells without a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder

EVIL = "<script>alert(1)</script>"


def table(n: int = 160, *, names: int = 60) -> tuple[Any, np.ndarray]:
    """A data frame and a target that depends on most of its columns; ``names`` different texts."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": rng.lognormal(4.5, 0.3, n),
            "rooms": rng.integers(1, 8, n),
            EVIL: rng.choice([EVIL, "brick", "wood & clay"], n),
            "lift": rng.uniform(size=n) < 0.4,
            "sold": pd.Timestamp("2019-11-03") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
            "street": [f"street {k}" for k in rng.integers(0, names, n)],
        }
    )
    y = 2.0 * frame["area"] + 20.0 * frame["lift"] + 30.0 * (frame[EVIL] == "brick") + 20.0 * rng.normal(size=n)
    frame.loc[rng.choice(n, n // 8, replace=False), "area"] = np.nan
    frame.loc[rng.choice(n, n // 10, replace=False), EVIL] = None
    frame.loc[rng.choice(n, n // 12, replace=False), "sold"] = pd.NaT
    return frame, y.to_numpy()


def vectorizer() -> Any:
    """What makes numbers of such a table."""
    skrub = pytest.importorskip("skrub", reason="skrub is not installed: pip install skrub")
    return skrub.TableVectorizer(
        cardinality_threshold=20,
        numeric=SimpleImputer(strategy="median", add_indicator=True),
        low_cardinality=OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        high_cardinality=skrub.StringEncoder(n_components=4, random_state=0),
        datetime=make_pipeline(skrub.DatetimeEncoder(), SimpleImputer(add_indicator=True)),
    )


def fitted(model: Any, X: Any, y: Any = None) -> Pipeline:
    """A pipeline of the two steps."""
    return Pipeline([("table", vectorizer()), ("model", model)]).fit(X, y)


def as_frame(payload: dict[str, Any], cells: np.ndarray, like: Any) -> Any:
    """What is entered, as rows of the table."""
    pd = pytest.importorskip("pandas")
    columns: dict[str, Any] = {}
    for column, values in zip(payload["columns"], cells.T, strict=True):
        name = column["name"]
        if column.get("date"):
            days = np.where(np.isnan(values), np.datetime64("NaT"), np.nan_to_num(values).astype("datetime64[D]"))
            columns[name] = pd.Series(days).astype(like[name].dtype)
        elif column["kind"] == "number":
            columns[name] = values
        else:
            texts = [None if k == column["missing"] else column["choices"][int(k)] for k in values]
            truth = like[name].dtype == bool
            columns[name] = pd.Series([t == "True" for t in texts] if truth else texts, dtype=like[name].dtype)
    return pd.DataFrame(columns)
