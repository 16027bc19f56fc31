"""
A skewed law, judged by skpro
=============================

skpro has its own regressors, its own distributions and its own metrics. A quantile model of this library can stand
beside them as one of theirs, and be judged by tools that know nothing of it. What do they say where the noise is
neither normal nor of the same size everywhere?
"""

# %%
# The data are made up: delays in minutes through a day. Most are small, a few are long, and towards the rush hour the
# long ones grow. skpro wants frames, and gives frames back.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.model_selection import KFold
from skpro.benchmarking.evaluate import evaluate
from skpro.metrics import CRPS, EmpiricalCoverage, PinballLoss
from skpro.regression.gp import GaussianProcess
from skpro.regression.residual import ResidualDouble

from infinitask import InfiniteQuantileRegressorCV
from infinitask.integrations.skpro import InfiniteQuantileProba
from infinitask.plotting import LIGHT

rng = np.random.default_rng(0)
hour = np.sort(rng.uniform(6.0, 18.0, 250))
rush = np.exp(-(((hour - 16.0) / 2.0) ** 2))
X = pd.DataFrame({"hour": hour})
y = pd.DataFrame({"delay": 2.0 + 3.0 * rush + rng.exponential(1.0 + 6.0 * rush)})

# %%
# Three regressors of skpro. Two of them are skpro's own: a forest for the mean with a second one for the size of the
# residuals, and a Gaussian process. Both answer with normal distributions. Ours chooses its λ by itself, within each
# fit.
forest = RandomForestRegressor(n_estimators=50, min_samples_leaf=10, random_state=0)
models = {
    "infinite quantiles": InfiniteQuantileProba(InfiniteQuantileRegressorCV(kernels=["rbf"], random_state=0)),
    "forest and residuals": ResidualDouble(forest),
    "Gaussian process": GaussianProcess(kernel=RBF() + WhiteKernel(), normalize_y=True, random_state=0),
}

# %%
# skpro cross-validates them and computes the scores: the continuous ranked probability score and the mean of three
# pinball losses, where less is better, and the share of delays in intervals that ask for 90 %.
scores = {
    "CRPS": CRPS(),
    "pinball": PinballLoss(alpha=[0.05, 0.5, 0.95]),
    "coverage": EmpiricalCoverage(coverage=0.9),
}
table = {}
for name, model in models.items():
    found = evaluate(
        model, KFold(5, shuffle=True, random_state=0), X, y, scoring=list(scores.values()), error_score="raise"
    )
    table[name] = found.filter(like="test_").mean().to_numpy()
print(pd.DataFrame(table, index=list(scores)).T.round(3))

# %%
# The curves show why. A normal distribution has its middle where its mean is, and as much room below as above: part of
# its band lies below any delay that occurs. Quantiles follow the long tail upwards and stay tight below. For a time
# between, skpro draws the distribution itself.
plt.rcParams.update(LIGHT.settings())
fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.2), layout="constrained", width_ratios=[1.2, 1.2, 1.0])
grid = pd.DataFrame({"hour": np.linspace(6.0, 18.0, 200)})
rush_hour = pd.DataFrame({"hour": [16.0]})
for ax, colour, name in zip(axes, (0, 1), ("infinite quantiles", "Gaussian process"), strict=False):
    model = models[name].fit(X, y)
    band, style = model.predict_interval(grid, coverage=[0.5, 0.9])["delay"], LIGHT.curve(colour)
    ax.scatter(X["hour"], y["delay"], s=8, color=LIGHT.muted)
    for coverage, alpha in ((0.9, 0.2), (0.5, 0.35)):
        low, high = band[coverage]["lower"], band[coverage]["upper"]
        ax.fill_between(grid["hour"], low, high, color=style["color"], alpha=alpha, linewidth=0.0)
    ax.set(title=name, xlabel="hour of the day", ylabel="delay, minutes", ylim=(-10.0, 32.0))
    law = model.predict_proba(rush_hour).iat[0, 0]
    delays = np.linspace(-8.0, 28.0, 300)
    axes[2].plot(delays, [law.pdf(delay) for delay in delays], **style, label=name)
axes[2].set(title="four in the afternoon", xlabel="delay, minutes", ylabel="density", ylim=(0.0, 0.17))
_ = axes[2].legend()

# %%
# Nothing was refitted for these answers. Intervals of every coverage, quantiles of every level and the distribution
# come from one fit, and skpro's metrics see the quantile function as it is: its CRPS is exact, not sampled.
