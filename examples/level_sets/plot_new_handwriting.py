"""
Signs that a reader has never seen
==================================

A machine reads forms on which only even digits occur. Then odd ones turn up, among the usual ones. No label says
which they are, and the machine knows only what even digits look like. Which images should a person look at, if at
most one in ten of those that are handed over may be a usual one?
"""

# %%
# The data are the 8 × 8 images of handwritten digits that come with scikit-learn. The fit sees 400 even digits. New
# are 300 other even digits and 150 odd ones. The first 30 principal components of the training images are the inputs.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import false_discovery_control
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from infinitask import InfiniteOneClassSVM
from infinitask.plotting import LIGHT

images, digit = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
even, odd = (rng.permutation(np.flatnonzero(digit % 2 == k)) for k in (0, 1))
train, new = even[:400], np.concatenate([even[400:700], odd[:150]])
is_odd = digit[new] % 2 == 1
components = PCA(30).fit(images[train])
seen, unseen = components.transform(images[train]), components.transform(images[new])

# %%
# ``score_samples`` says at which outlier fraction an image leaves the set of usual ones, which is a p-value. From 400
# rows nothing smaller than 1 in 401 can be known, so smaller ones are raised to that. The rule of Benjamini and
# Hochberg then hands over as many images as it can while at most one in ten of them is expected to be a usual one.
model = InfiniteOneClassSVM(measure=(0.005, 1.0)).fit(seen)
p = np.maximum(model.score_samples(unseen), 1.0 / (len(train) + 1))
strange = false_discovery_control(p) <= 0.1
print(f"{strange.sum()} images are handed over, {np.mean(~is_odd[strange]):.0%} of them are usual ones")
print(f"odd digits found: {strange[is_odd].mean():.0%}; usual images with p below 5%: {np.mean(p[~is_odd] < 0.05):.1%}")

# %%
# Which odd digits are strange to someone who knows only even ones?
plt.rcParams.update(LIGHT.settings())
fig = plt.figure(figsize=(11, 4.4), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[1.2, 1])
ax = left.subplots()
share = [strange[digit[new] == k].mean() for k in range(10)]
colours = [LIGHT.curve(1)["color"] if k % 2 else LIGHT.main for k in range(10)]
ax.bar(range(10), np.multiply(100, share), color=colours)
ax.bar([0], [0], color=LIGHT.main, label="known to the fit")
ax.bar([0], [0], color=colours[1], label="never seen")
ax.set_xticks(range(10))
ax.set(xlabel="digit", ylabel="handed over as strange, % of the images", title="Which digits are strange?")
ax.legend()
for place, row in zip(right.subplots(3, 5).flat, np.argsort(p, kind="stable"), strict=False):
    place.imshow(images[new[row]].reshape(8, 8), cmap="gray_r")
    place.set_axis_off()
    place.set_title(f"{digit[new[row]]}", loc="center", size=10, pad=3)
_ = right.suptitle("The strangest fifteen", weight="bold", color=LIGHT.ink)

# %%
# How well are odd and even images told apart, whatever the threshold? The area under the ROC curve, beside two
# detectors of scikit-learn with their defaults:
scores = {
    "level sets": model.score_samples(unseen),
    "isolation forest": IsolationForest(random_state=0).fit(seen).score_samples(unseen),
    "local outlier factor": LocalOutlierFactor(novelty=True).fit(seen).score_samples(unseen),
}
for name, score in scores.items():
    print(f"{name}: {roc_auc_score(is_odd, -score):.3f}")

# %%
# The local outlier factor orders the images best, and then come the level sets, ahead of the forest. What they add is
# the scale: their score is a p-value, so one can promise how many of the images that are handed over are usual, on
# average. The price of that promise with 400 training rows is that most odd digits stay unnoticed, and those that
# look like an even one most of all.
