"""A table as people have them: numbers, categories, text, dates, booleans, and holes."""

from __future__ import annotations

from typing import Any

import numpy as np

CITIES = ("Oslo", "Rome", "Lima")


def mixed_table(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Columns of every kind, and a price that depends on some of them."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    area, rooms = rng.uniform(30.0, 200.0, n), rng.integers(1, 7, n)
    city, garden = rng.choice(CITIES, n), rng.uniform(size=n) < 0.4
    day = rng.integers(0, 1000, n)
    price = 3.0 * area + 90.0 * (city == "Oslo") + 40.0 * garden + 0.05 * day + rng.normal(0.0, 20.0, n)
    table = pd.DataFrame(
        {
            "area": area,
            "rooms": rooms,
            "city": city,
            "garden": garden,
            "sold": pd.Timestamp("2021-03-01") + pd.to_timedelta(day, "D"),
            "note": [f"house {k} in street {k % 17}" for k in rng.permutation(n)],
            "same": 1.0,
        }
    )
    table.loc[rng.choice(n, n // 10, replace=False), "area"] = np.nan
    table.loc[rng.choice(n, n // 10, replace=False), "city"] = None
    table.loc[rng.choice(n, n // 20, replace=False), "sold"] = pd.NaT
    table.loc[rng.choice(n, n // 20, replace=False), "note"] = None
    return table, pd.Series(price, name="price")
