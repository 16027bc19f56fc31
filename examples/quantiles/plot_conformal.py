"""
Do the intervals hold as often as they say?
===========================================

A clinic predicts how a disease goes on and hands intervals to doctors: "with 90% certainty between here and there". If
such intervals hold less often than they say, trust is gone. With few patients, models are often too sure. Can the
intervals be made right for every coverage at once, whatever the model?
"""

# %%
# The data are 442 patients with diabetes, and how far the disease had gone on a year later (``load_diabetes`` of
# scikit-learn). We learn from 100 of them and calibrate with 100 others;
# :meth:`~infinitask.InfiniteQuantileRegressor.conformalize` needs rows that the fit has not seen. One calibration
# serves all coverages.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from infinitask import InfiniteQuantileRegressor
from infinitask.metrics import interval_coverage, mean_interval_width
from infinitask.plotting import Look

X, y = load_diabetes(return_X_y=True)
coverages = np.linspace(0.05, 0.95, 19)


def seen(seed):
    """Coverage and width on new patients, (2, 19) each: as fitted, and after the calibration."""
    X_known, X_test, y_known, y_test = train_test_split(X, y, train_size=200, random_state=seed)
    model = InfiniteQuantileRegressor().fit(X_known[:100], y_known[:100])
    fitted = model.predict_interval(X_test, coverages)
    calibrated = model.conformalize(X_known[100:], y_known[100:]).predict_interval(X_test, coverages)
    more = InfiniteQuantileRegressor().fit(X_known, y_known).predict_interval(X_test, coverages)
    found = (fitted, calibrated, more)
    return [interval_coverage(y_test, each) for each in found], [mean_interval_width(each) for each in found]


# %%
# A single split would show chance more than anything else: the promise is one over calibration and new patients
# together. So patients are drawn anew fifteen times.

coverage, width = np.array([seen(seed) for seed in range(15)]).swapaxes(0, 1)
names = ("100 patients, as fitted", "100 patients, 100 to calibrate", "200 patients, as fitted")
for k, name in enumerate(names):
    print(f"{name:<31} 90% intervals hold {coverage[:, k, 17].mean():.1%}, mean width {width[:, k, 17].mean():.0f}")

# %%
# How far is the share of new patients inside from the coverage asked for? Thin lines are single draws, thick ones their
# mean, and the dashed line is what was promised.

look = Look.of_settings()
plt.rcParams.update(look.settings())
pale = look.colours(pale=0.35)(0.7)
figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), sharey=True, layout="constrained")
for k, (ax, name) in enumerate(zip(axes, names, strict=True)):
    off = 100 * (coverage[:, k] - coverages)
    ax.plot(100 * coverages, off.T, color=pale, linewidth=0.9, alpha=0.7, label=["one draw of patients"] + 14 * [None])
    ax.plot(100 * coverages, off.mean(axis=0), color=look.main, linewidth=2.6, label="mean of fifteen")
    ax.axhline(0, linestyle="--", color=look.ink, linewidth=1.3, label="as promised")
    ax.set(xlabel="coverage asked for (percent)", title=name, xlim=(0, 100))
axes[0].set_ylabel("seen minus asked for (points)")
axes[0].legend(loc="upper left")
plt.show()

# %%
# As fitted, intervals hold too little on average, and much too little in some draws. After the calibration the mean is
# on the line or a little above it. Single draws still scatter to both sides: the promise is an average over
# calibrations, and a hundred patients say only so much. The price is width, and the rows that were kept aside. The
# third picture shows what these rows are worth in the fit instead: intervals are narrower, and nearer to the line than
# in the first, but nothing is promised. :class:`~infinitask.CrossConformal` uses all rows for both and promises less.
