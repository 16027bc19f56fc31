"""
Forecast a series, with every quantile
======================================

An airline plans seats a year ahead. It wants the month-by-month forecast, but also what to be ready for in a busy
year. Can one fit give every month of the horizon and every quantile?
"""

# %%
# The data are the airline passengers of Box and Jenkins, 1949 to 1960 (thousands a month), from sktime. There is a
# trend and a season of twelve months, and both the season and the noise grow.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sktime.datasets import load_airline
from sktime.forecasting.arar import ARARForecaster
from sktime.forecasting.naive import NaiveForecaster

from infinitask.integrations.sktime import InfiniteQuantileForecaster
from infinitask.metrics import integrated_pinball_loss

y = load_airline()
horizon = np.arange(1, 13)
levels = np.linspace(0.05, 0.95, 19)

# %%
# The forecaster turns the series into rows: for each origin and each step of the horizon what is known then, and how
# far the value to come is from the value of the same month in the year before. The step is one of the inputs, so one
# fit answers all twelve. It is a forecaster of sktime, with ``predict_quantiles`` and ``predict_interval``.
#
# How good is it? Three years are forecast, each from all months before it, and the pinball loss is taken over months
# and levels. The opponents are those of sktime that give quantiles and need no further package: the seasonal naive
# forecast, and ARAR, the strongest of them. No method wins every year: 1956 was steady, and in 1958 growth paused.
makers = {
    "infinitask": lambda: InfiniteQuantileForecaster(sp=12),
    "ARAR": ARARForecaster,
    "seasonal naive": lambda: NaiveForecaster(sp=12),
}
fans: dict[str, list[np.ndarray]] = {name: [] for name in makers}
ends = (96, 120, 144)
with warnings.catch_warnings(record=True):  # of a default of sktime that will change
    for end in ends:
        for name, make in makers.items():
            forecaster = make().fit(y.iloc[: end - 12], fh=horizon)
            fans[name].append(forecaster.predict_quantiles(alpha=list(levels)).to_numpy())
print(f"{'pinball loss':>14}    1956    1958    1960    mean   in the 90 % interval")
for name, found in fans.items():
    years = [y.iloc[end - 12 : end].to_numpy() for end in ends]
    row = [integrated_pinball_loss(year, fan, levels) for year, fan in zip(years, found, strict=True)]
    all_years, fan = np.concatenate(years), np.concatenate(found)
    inside = np.mean((fan[:, 0] <= all_years) & (all_years <= fan[:, -1]))
    print(f"{name:>14}" + "".join(f"{value:8.2f}" for value in [*row, np.mean(row)]) + f"{inside:14.0%}")

# %%
# The fan of 1960, made at the end of 1959.
fan = fans["infinitask"][-1]
time = y.index.to_timestamp()
figure, axes = plt.subplots(figsize=(9.0, 4.2), layout="constrained")
axes.plot(time[-60:], y.iloc[-60:], color="0.25", lw=1.2, label="passengers")
for k in range(9):
    axes.fill_between(time[-12:], fan[:, k], fan[:, -1 - k], color="#1b6ca8", alpha=0.10, lw=0)
axes.plot(time[-12:], fan[:, 9], color="#1b6ca8", lw=1.6, label="median, and quantiles from 0.05 to 0.95")
axes.set_ylabel("thousands a month")
axes.legend(frameon=False, loc="upper left")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
